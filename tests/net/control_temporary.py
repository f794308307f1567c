#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Temporary exports: ringnfsctl exports add and remove, what they revoke and ask, how long they last, and who is told."""
import json
import os
import subprocess
import urllib.parse

import harness
import nfs4client as n4
from control import BINARY, GROUP, USER, Control, ask, connect_as, ctl
from control_end import on_terminal
from control_exports import exports_of, get
from control_state import api, client_id, new_client, tool
from harness import Count

OPTIONS = "rw,insecure,no_root_squash"
LOCAL = "127.0.0.0/8"


def edit(d, verb, client, path, *options):
    return ctl("-s", d.path, "exports", verb, f"{client}:{path}", *options)


def post(d, verb, query):
    return api(d, f"/v1/exports/{verb}?{urllib.parse.urlencode(query)}", "POST")


def clients_of(d, path):
    e = exports_of(d).get(path)
    return [(c["client"], c["temporary"]) for c in e["clients"]] if e else None


def folder(d, name):
    path = os.path.join(d.top, name)
    os.makedirs(path, exist_ok=True)
    os.chmod(path, 0o777)
    return path


def test_add(t, d):
    path = folder(d, "added here")
    res = edit(d, "add", LOCAL, path, "-o", OPTIONS)
    t.check("it is added", res.returncode == 0 and f"+ {path}" in res.stdout and "until the next reload" in res.stdout, res)
    t.equal("and listed", clients_of(d, path), [(LOCAL, True)])
    text = ctl("-s", d.path, "exports", "list").stdout
    t.check("as temporary", "temporary\n" in text and "1 temporary change holds" in text, text)
    c = new_client(d, "uses it")
    res = c.open(c.path(path), b"file", create=True)[0]
    t.equal("a client may use it", res["status"], n4.OK)
    t.equal("a file is there", os.listdir(path), ["file"])
    t.check("it is logged with the user", d.wait_log(f"user 0: export added until the next reload: {LOCAL}:{path}\\({OPTIONS}\\)"),
            d.read_log()[-400:])
    res = ctl("-s", d.path, "exports", "explain", "127.0.0.1", path)
    t.check("it is explained", res.returncode == 0 and "temporary" in res.stdout, res.stdout)
    res = edit(d, "add", "127.0.0.2", path)
    t.equal("a second client", (res.returncode, clients_of(d, path)), (0, [(LOCAL, True), ("127.0.0.2", True)]))
    return c


def test_revoked(t, d, c):
    """The client that has a file open loses it, after a question."""
    path = os.path.join(d.top, "added here")
    res = subprocess.run([BINARY, "-s", d.path, "exports", "remove", f"{LOCAL}:{path}"], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=60)
    t.check("no terminal to ask on", res.returncode == 2 and "--yes" in res.stderr and client_id(c)[2:].lstrip("0") in res.stderr, res)
    t.equal("nothing has changed", clients_of(d, path), [(LOCAL, True), ("127.0.0.2", True)])
    status, said = on_terminal(d, "n", "exports", "remove", f"{LOCAL}:{path}")
    t.check("the answer n", status == 1 and "would revoke: 1 opens" in said and "127.0.0.1" in said, (status, said))
    t.equal("nothing was done", len(tool(d, "opens", "--client", client_id(c))), 1)
    status, said = on_terminal(d, "y", "exports", "remove", f"{LOCAL}:{path}")
    t.check("the answer y", status == 0 and "revoked: 1 opens" in said, (status, said))
    t.equal("it is revoked", [r["revoked"] for r in tool(d, "opens", "--client", client_id(c))], [True])
    t.equal("who is left", clients_of(d, path), [("127.0.0.2", True)])
    t.equal("the last one", edit(d, "remove", "127.0.0.2", path).returncode, 0)
    t.equal("takes the export along", clients_of(d, path), None)
    c.close()


def test_of_file(t, d):
    """A client that the file names is replaced, and removed, and is back after a reload."""
    one = d.exports["one"]
    res = edit(d, "add", LOCAL, one, "-o", "ro,insecure")
    t.check("it is told", res.returncode == 0 and f"{d.top}/exports line 1 names it" in res.stderr and "loses rw" in res.stdout, res)
    t.equal("replaced", clients_of(d, one), [(LOCAL, True)])
    status, answer = get(d, "/v1/exports")
    t.check("counted since the last reload", answer["temporary_changes"] >= 1 and answer["messages"] == [], answer)
    res = edit(d, "remove", LOCAL, one)
    t.check("removed", res.returncode == 0 and clients_of(d, one) is None, res)
    with open(d.top + "/exports", "a") as f:
        f.write(f"{d.top} *(ro)\n")
    t.equal("other lines of the file come with a reload only", edit(d, "add", "*", folder(d, "more")).returncode, 0)
    t.equal("and not before", clients_of(d, d.top), None)
    res = ctl("-s", d.path, "exports", "diff")
    t.check("the diff tells what ends", f"- {d.top}/more" in res.stdout and f"+ {one}" in res.stdout, res.stdout)
    res = ctl("-s", d.path, "exports", "reload")
    t.equal("reloaded", res.returncode, 0)
    t.equal("as the file has it", (clients_of(d, one), clients_of(d, d.top + "/more"), clients_of(d, d.top)),
            ([(LOCAL, False)], None, [("*", False)]))
    t.check("it is logged", d.wait_log(r"\d+ temporary changes of the exports end with this reload"), d.read_log()[-400:])
    t.check("none is left", "temporary" not in ctl("-s", d.path, "exports", "list").stdout)


def test_other_in_error(t, d):
    """An export whose path has gone since is no concern of a change of another."""
    two, more = d.exports["two"], folder(d, "beside")
    os.rename(two, two + ".away")
    res = edit(d, "add", "*", more)
    t.equal("added", (res.returncode, clients_of(d, more)), (0, [("*", True)]))
    t.equal("the other is served still, where it is now", exports_of(d)[two]["state"], "moved")
    os.rename(two + ".away", two)


def test_refused(t, d):
    one = d.exports["one"]
    for words, why in (((f"*:{d.top}/none",), "No such file or directory"), ((f"*:{one}", "-o", "rv"), "rv"),
                       ((f"*:{one}", "-o", "fsid=77"), "leave it out"), (("*:/proc",), "/proc")):
        res = ctl("-s", d.path, "exports", "add", *words)
        t.check(f"add {words}", res.returncode == 1 and why in res.stderr, res)
    for client, path, why in (("10.9.8.7", one, f"exported to {LOCAL}, and not to 10.9.8.7"), ("*", "/nowhere", "/nowhere is not exported")):
        res = edit(d, "remove", client, path, "--yes")
        t.check(f"remove {client}:{path}", res.returncode == 1 and why in res.stderr, res)
    for args in (("add",), ("add", "*"), ("add", "*:relative"), ("add", ":/srv"), ("add", "*:/a", "-o"), ("add", "*:/a", "more"),
                 ("remove", "*:/a", "-o", "rw"), ("add", "fe80::1:/srv"), ("add", "2001:db8::/32:/srv"), ("add", "[fe80::1:/srv")):
        res = ctl("-s", d.path, "exports", *args)
        t.check(f"wrong use {args}", res.returncode == 2 and res.stderr and not res.stdout, (res.returncode, res.stderr))
    for query in ({}, {"client": "*"}, {"path": "/a"}, {"client": "*", "path": "a"}, {"client": "*", "path": "/a/../b"},
                  {"client": "*", "path": "/a", "try": "2"}, {"client": "a\nb", "path": "/a"}, {"client": "*", "path": "/a\x1b"}):
        for verb in ("add", "remove"):
            status, answer = post(d, verb, query)
            t.check(f"{verb} {query}", status == 400 and answer["error"], (status, answer))
    for verb in ("add", "remove"):
        with connect_as(d.path, USER, GROUP) as s:
            code, _, body = ask(s, "POST", f"/v1/exports/{verb}?client=*&path=/&try=1")
        t.equal(f"a reader may not {verb}", (code, json.loads(body)["code"]), (403, "forbidden"))


def test_words(t, d):
    """Addresses of IPv6, and names of all kinds."""
    path = folder(d, "odd #\"(names)")
    for given, shown in (("[fe80::1]", "fe80::1"), ("[2001:db8::]/32", "2001:db8::/32"), ("*.example.org", "*.example.org"), ("@lab", "@lab")):
        t.equal(f"add {given}", edit(d, "add", given, path).returncode, 0)
        t.check(f"{shown} is there", (shown, True) in clients_of(d, path), clients_of(d, path))
        t.equal(f"remove {given}", edit(d, "remove", given, path + "/./").returncode, 0)
        t.equal(f"{shown} is gone", clients_of(d, path), None)
    status, answer = post(d, "add", {"client": "*", "path": path, "try": 1})
    t.equal("only tried", (status, [c["change"] for c in answer["changes"]], clients_of(d, path)), (200, ["added"], None))


def main():
    t = Count()
    with Control({"nfs4.lease_time": 60}, exports={"one": OPTIONS, "two": OPTIONS}) as d:
        c = test_add(t, d)
        test_revoked(t, d, c)
        for test in (test_of_file, test_other_in_error, test_refused, test_words):
            test(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
