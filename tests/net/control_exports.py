#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsctl exports: the exports in force, as the control socket and the tool show them."""
import json
import os
import subprocess

import harness
from control import Control, ask, connect, ctl
from harness import Count

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
    t.check("the path that is missing", any(m["severity"] == "error" and m["line"] == 6 and "create the directory" in m["text"]
                                            for m in messages), messages)
    text = ctl("-s", d.path, "exports", "list").stdout
    t.check("for people", "/proc: not served: " in text and f"{d.top}/exports:6:1: error: {d.top}/none" in text and "waiting" in text, text)
    d.write_exports([f"{two} *(mp)"])
    d.reload()
    e = exports_of(d)[two]
    t.equal("it waits", (e["state"], e["reason"]), ("waiting", "not mounted yet (option mp)"))
    d.write_exports([f"{one} *(rw)"])
    d.reload()
    t.equal("a reload takes it away", list(exports_of(d)), [one])


def main():
    t = Count()
    with Control(folders=("one", "two")) as d:
        for test in (test_list, test_not_served):
            test(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
