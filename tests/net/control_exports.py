#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsctl exports: the exports in force, as the control socket and the tool show them."""
import json
import os
import subprocess

import harness
import mounts
import rpcclient as r
from control import Control, ask, connect, ctl
from harness import Count

OPTIONS = "rw,insecure,no_root_squash"

CANONICAL = "hide,no_subtree_check,{port},anonuid=65534,anongid=65534,sec=sys,{rw},{squash},no_all_squash"
WRITABLE = "sync,wdelay," + CANONICAL.format(port="insecure", rw="rw", squash="no_root_squash")


def get(d, path):
    with connect(d.path) as s:
        status, _, body = ask(s, path=path)
    return status, json.loads(body)


def exports_of(d):
    return {e["path"]: e for e in get(d, "/v1/exports")[1]["exports"]}


def fs_type(path):
    return subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "--target", path], capture_output=True, text=True, check=True).stdout.strip()


def test_list(t, d):
    one, file = d.exports["one"], d.top + "/exports"
    e = exports_of(d)[one]
    t.equal("clients", e["clients"], [{"client": "127.0.0.0/8", "options": WRITABLE, "waiting": False, "temporary": False,
                                       "file": file, "line": 1}])
    t.equal("state and type", (e["state"], e.get("reason"), e["fs_type"], e["read_only_mount"]), ("served", None, fs_type(one), False))
    res = ctl("-s", d.path, "exports", "list")
    t.equal("exit status", res.returncode, 0)
    row = res.stdout.splitlines()[1].split()
    t.equal("a row for people", (row[0], row[1], row[2], row[3], row[5], row[6]),
            (one, "127.0.0.0/8", WRITABLE, "served", str(e["id"]), f"{file}:1"))
    t.equal("--json", json.loads(ctl("-s", d.path, "-j", "exports", "list").stdout)["exports"][0]["id"], e["id"])
    for args in (("exports",), ("exports", "lists"), ("exports", "list", "now")):
        t.equal(f"wrong use {args}", ctl("-s", d.path, *args).returncode, 2)


def test_not_served(t, d):
    """A path that waits for its mount, one that cannot be exported, a name that is no UTF-8, and an error in the file."""
    one, two = d.exports["one"], d.exports["two"]
    odd = os.path.join(os.fsencode(d.top), b"odd\xff")
    os.makedirs(odd, exist_ok=True)
    with open(d.top + "/exports", "wb") as f:
        f.write(f"# first\n{one} -insecure *(rw) 10.1.2.3\n{two} 127.0.0.1(mp) *(ro)\n/proc *(ro)\n".encode() + odd + b" *(fsid=7)\n"
                + f"{d.top}/none *(ro)\n".encode())
    d.stop()
    d.start()
    all_of = exports_of(d)
    t.equal("lines and order", [(c["client"], c["line"]) for c in all_of[one]["clients"]], [("*", 2), ("10.1.2.3", 2)])
    e = all_of[two]
    t.equal("served to those without mp", (e["state"], [c["waiting"] for c in e["clients"]]), ("served", [True, False]))
    t.equal("no handles", all_of["/proc"]["state"], "failed")
    t.check("and why", "handles" in all_of["/proc"]["reason"] and all_of["/proc"]["reason"] in d.read_log(), all_of["/proc"])
    t.equal("a path that is no UTF-8", all_of[d.top + "/odd\\xff"]["id"], 7)
    messages = get(d, "/v1/exports")[1]["messages"]
    t.check("the path that is missing", any((m["severity"], m["file"], m["line"]) == ("error", d.top + "/exports", 6) and
                                            "create the directory" in m["text"] for m in messages), messages)
    text = ctl("-s", d.path, "exports", "list").stdout
    t.check("for people", "/proc: not served: " in text and f"{d.top}/exports:6:1: error: {d.top}/none" in text and "waiting" in text, text)
    d.write_exports([f"{two} *(mp)"])
    d.reload()
    e = exports_of(d)[two]
    t.equal("it waits", (e["state"], e["reason"]), ("waiting", "not mounted yet (option mp)"))
    d.write_exports([f"{one} *(rw)"])
    d.reload()
    t.equal("a reload takes it away", list(exports_of(d)), [one])


def test_explain(t, d):
    """Each line with its verdict, each option with its origin, identities, and who may do nothing."""
    one, two = d.exports["one"], d.exports["two"]
    d.write_exports([f"{one} -rw,anonuid=77 127.0.0.1(async,insecure,all_squash) 127.0.0.0/8 no-such-host.invalid",
                     f"{two} 10.0.0.0/8", f"{two}/sub 127.0.0.1(sec=sys,rw,sec=none,ro)"])
    os.makedirs(two + "/sub", exist_ok=True)
    d.reload()
    status, got = get(d, f"/v1/exports/explain?client=127.0.0.1&path={one}/below&uid=1000&gid=100")
    t.equal("status and export", (status, got["export"], got["state"], got["client"]), (200, one, "served", "127.0.0.1"))
    t.equal("their places", [(x["file"], x["temporary"]) for x in got["lines"]], [(d.top + "/exports", False)] * 3)
    t.equal("lines in the order that counts", [(x["client"], x["kind"], x["applies"], x["line"]) for x in got["lines"]],
            [("127.0.0.1", "host", "yes", 1), ("no-such-host.invalid", "host", "not needed", 1), ("127.0.0.0/8", "network", "not needed", 1)])
    origin = {o["option"]: o["from"] for o in got["options"]}
    t.equal("origins", [origin[o] for o in ("async", "insecure", "all_squash", "rw", "anonuid=77", "hide", "root_squash")],
            ["client"] * 3 + ["line defaults"] * 2 + ["default"] * 2)
    t.equal("rights", (got["access"], got["port"], got["flavors"], got["read_only_mount"]),
            ("rw", "any", [{"flavor": "sys", "access": "rw"}], False))
    t.equal("squashed", got["identity"], {"uid": 1000, "gid": 100, "as_uid": 77, "as_gid": 65534})
    for _ in range(20):  # a name service may have no answer now
        got = get(d, f"/v1/exports/explain?client=127.0.0.9&path={one}")[1]
        if "not known" not in [x["applies"] for x in got["lines"]]:
            break
    t.equal("another line", [x["applies"] for x in got["lines"]][0::2], ["no", "yes"])
    t.equal("and why not the first", got["lines"][0]["why"], "it is another address")
    t.equal("root is squashed", (got["identity"]["uid"], got["identity"]["as_uid"], got["port"]), (0, 77, "below 1024"))
    got = get(d, f"/v1/exports/explain?client=127.0.0.1&path={two}/sub&uid=5")[1]
    t.equal("by flavour", got["flavors"], [{"flavor": "sys", "access": "rw"}, {"flavor": "none", "access": "ro"}])
    t.equal("not squashed", (got["identity"]["as_uid"], got["identity"]["as_gid"]), (5, 5))
    got = get(d, f"/v1/exports/explain?client=127.0.0.1&path={two}/subs")[1]
    t.equal("no line", (got["access"], got["export"], got["lines"][0]["why"]), ("none", two, "the client's address is not within it"))
    t.equal("no export", get(d, "/v1/exports/explain?client=127.0.0.1&path=/nowhere")[1], {"access": "none"})
    for query in ("", "client=localhost&path=/", "client=127.0.0.1", "client=127.0.0.1&path=a", "client=127.0.0.1&path=/&uid=-1",
                  "client=127.0.0.1&path=/&gid=4294967295", f"client=::1&path={one}/..", f"client=::1&path={one}/../x"):
        t.equal(f"wrong: {query}", get(d, "/v1/exports/explain?" + query)[0], 400)


def test_explain_nested(t, d):
    one = d.exports["one"]
    d.write_exports([f"{one} 127.0.0.1(rw)", f"{one}/in 10.0.0.1(ro)", f"{one}/out 127.0.0.1(ro)"])
    for name in ("in", "out"):
        os.makedirs(f"{one}/{name}", exist_ok=True)
    d.reload()
    got = get(d, f"/v1/exports/explain?client=127.0.0.1&path={one}/in/below")[1]
    t.equal("no line in the inner one: the outer one counts", (got["access"], got["export"], got["no_line_in"]), ("rw", one, [f"{one}/in"]))
    got = get(d, f"/v1/exports/explain?client=127.0.0.1&path={one}/out")[1]
    t.equal("a line in the inner one", (got["access"], got["within"], got["entered_by"]), ("ro", one, "all versions"))


def test_explain_in_error(t, d):
    """A line that was left out at the start: neither it nor the one around it gives access."""
    one = d.exports["one"]
    d.stop()
    d.write_exports([f"{one} 127.0.0.1(rw)", f"{one}/in 127.0.0.1(rv)"])
    d.start()
    got = get(d, f"/v1/exports/explain?client=127.0.0.1&path={one}/in/below")[1]
    t.equal("a line in error", got, {"access": "none", "in_error": f"{one}/in"})
    res = ctl("-s", d.path, "exports", "explain", "127.0.0.1", f"{one}/in")
    t.equal("the tool", (res.returncode, "in error" in res.stdout), (1, True))
    t.equal("beside it", get(d, f"/v1/exports/explain?client=127.0.0.1&path={one}/out")[1]["access"], "rw")
    d.stop()
    d.write_exports([f"{one} 127.0.0.1(rw)"])
    d.start()


def test_explain_mount(t, d):
    one = d.exports["one"]
    d.stop()  # it has mounts of its own
    os.makedirs(f"{one}/disk", exist_ok=True)
    mounts.must("mount", "-t", "tmpfs", "-o", "size=1m", "ringnfs-test", f"{one}/disk")
    d.write_exports([f"{one} 127.0.0.1(rw)"])
    d.start()
    for options, shown in (("rw", False), ("rw,crossmnt", True)):
        d.write_exports([f"{one} 127.0.0.1({options})"])
        d.reload()
        got = get(d, f"/v1/exports/explain?client=127.0.0.1&path={one}/disk/below")[1]
        t.equal(f"a mount below, {options}", (got["export"], got["mount_below"], got["mount_shown"]), (one, f"{one}/disk", shown))
        t.check("nothing of it for a directory beside", "mount_below" not in get(d, f"/v1/exports/explain?client=127.0.0.1&path={one}/in")[1])
        said = ctl("-s", d.path, "exports", "explain", "127.0.0.1", f"{one}/disk").stdout
        t.check(f"the tool says so, {options}", ("shown by crossmnt" if shown else "MNT is refused") in said, said)
    d.write_exports([])
    d.reload()
    mounts.umount(f"{one}/disk", "-l")


def test_explain_tool(t, d):
    one, two = d.exports["one"], d.exports["two"]
    res = ctl("-s", d.path, "exports", "explain", "127.0.0.1", one, "--uid", "1000")
    t.equal("exit status", res.returncode, 0)
    for words in (f"127.0.0.1 at {one}: access rw, by the export {one}, which is served\n", "it is the client's address", f"{d.top}/exports:1",
                  "async", "line defaults", "sec=sys: rw\n", "source port over TCP: any\n", "uid 1000 gid 1000 of the client acts as uid 77 gid 65534\n"):
        t.check(f"it says: {words.strip()}", words in res.stdout, res.stdout)
    res = ctl("-s", d.path, "exports", "explain", "localhost", one)
    t.check("a name", "127.0.0.1 at" in res.stdout, res.stdout + res.stderr)
    t.equal("no access", ctl("-s", d.path, "exports", "explain", "127.0.0.1", two).returncode, 1)
    t.equal("a name that is none", ctl("-s", d.path, "exports", "explain", "no-such-host.invalid", one).returncode, 2)
    for args in ((), ("127.0.0.1",), ("127.0.0.1", one, "more"), ("127.0.0.1", one, "--uid")):
        t.equal(f"wrong use {args}", ctl("-s", d.path, "exports", "explain", *args).returncode, 2)


def test_read_only_mount(t, d):
    """The line says rw, and the mount does not."""
    one = d.exports["one"]
    d.stop()
    mounts.must("mount", "-t", "tmpfs", "-o", "ro", "t", one)
    d.write_exports([f"{one} 127.0.0.1(rw,insecure,no_root_squash,fsid=9)"])
    d.start()
    e = exports_of(d)[one]
    t.equal("in the list", (e["state"], e["fs_type"], e["read_only_mount"]), ("served", "tmpfs", True))
    got = get(d, f"/v1/exports/explain?client=127.0.0.1&path={one}")[1]
    t.equal("explained", (got["access"], got["flavors"], got["read_only_mount"]), ("ro", [{"flavor": "sys", "access": "ro"}], True))
    text = ctl("-s", d.path, "exports", "explain", "127.0.0.1", one).stdout
    t.check("for people", "access ro" in text and "mounted read-only" in text, text)
    with d.connect() as c:
        t.equal("so it is", c.nfs(r.CREATE, r.create_args(d.root(c, "one"), "new"))["status"], r.ROFS)


def main():
    t = Count()
    mounts.own_namespace()
    with Control(exports={"one": OPTIONS, "two": OPTIONS}) as d:
        for test in (test_list, test_not_served, test_explain, test_explain_tool, test_explain_nested, test_explain_mount, test_read_only_mount):
            test(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
