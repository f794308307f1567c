#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""What clients hold of one file, by ringnfsctl --file: the file is found by its handle, whatever its name is and whether the server has it
open or not; and the paths of files that it has not open."""
import os
import subprocess
import time

import harness
import nfs4client as n4
from control import BINARY, Control, ctl
from control_state import Called, WANT_READ, api, client_id, new_client, tool
from harness import Count

MANY = 400  # more than the cache keeps open
SETTINGS = {"nfs4.lease_time": 600, "nfs4.grace_time": 600, "server.max_fds": 128}


def give_delegations(t, d, c):
    """The files, of which nobody has anything but a delegation. {name: (handle, stateid)}"""
    one, given = d.exports["one"], {}
    root = c.path(one)
    for n in range(MANY):
        name = f"given{n}"
        with open(os.path.join(one, name), "w") as f:
            f.write("data")
        res, fh = c.open(root, name.encode(), access=n4.SHARE_READ | WANT_READ)
        if res.get("delegation") == n4.DELEGATE_READ:
            given[name] = fh, res["deleg"]
        c.close_file(fh, res["stateid"])
    return given


def ids(d, *args):
    return sorted(row["id"] for row in tool(d, *args))


def id_of(deleg):
    return "0x" + deleg[-8:].hex()


def closed_files(d):
    """Waits until the server has less files open than there are delegations."""
    end = time.monotonic() + 30
    while (n := api(d, "/v1/status")[1]["held"]["nodes"]) > MANY // 2 and time.monotonic() < end:
        time.sleep(0.1)
    return n


def test_names(t, d):
    one = d.exports["one"]
    c = new_client(d, "names")
    res, _ = c.open(c.path(one), b"plain", create=True)
    wanted = ["0x" + res["stateid"][-8:].hex()]
    os.link(os.path.join(one, "plain"), os.path.join(one, "second"))
    os.symlink("second", os.path.join(one, "soft"))
    for name in ("plain", "second", "soft"):
        t.equal(f"by {name}", ids(d, "opens", "--file", os.path.join(one, name)), wanted)
    os.rename(os.path.join(one, "second"), os.path.join(d.exports["two"], "moved"))
    t.equal("by a name in another export", ids(d, "opens", "--file", os.path.join(d.exports["two"], "moved")), wanted)
    res2 = subprocess.run([os.path.abspath(BINARY), "-s", d.path, "opens", "--file", "plain"], cwd=one, capture_output=True, text=True, timeout=60)
    t.check("by a relative path", res2.returncode == 0 and wanted[0] in res2.stdout, res2)
    os.unlink(os.path.join(one, "plain"))
    with open(os.path.join(one, "plain"), "w") as f:
        f.write("another")
    t.equal("another file of that name", ids(d, "opens", "--file", os.path.join(one, "plain")), [])
    os.unlink(os.path.join(one, "plain"))
    done = ctl("-s", d.path, "open", "close", "--file", os.path.join(d.exports["two"], "moved"), "--yes")
    t.equal("it is closed by that", (done.returncode, done.stdout), (0, "closed: 1 opens\n"))
    c.close()


def test_closed(t, d, c, given):
    one = d.exports["one"]
    t.equal("every file was delegated", len(given), MANY)
    t.check("the server has few of them open", closed_files(d) <= MANY // 2)
    for name in ("given0", f"given{MANY // 2}", f"given{MANY - 1}"):
        t.equal(f"{name} is found", ids(d, "delegations", "--file", os.path.join(one, name)), [id_of(given[name][1])])
    rows = tool(d, "delegations", "--client", client_id(c))
    t.equal("their paths", sorted(r["path"] or r["handle"] for r in rows), sorted(os.path.join(one, n) for n in given))
    os.rename(os.path.join(one, "given0"), os.path.join(one, "renamed0"))
    t.equal("by its new name", ids(d, "delegations", "--file", os.path.join(one, "renamed0")), [id_of(given["given0"][1])])
    t.equal("its old one", ctl("-s", d.path, "delegations", "--file", os.path.join(one, "given0")).returncode, 1)
    res = ctl("-s", d.path, "delegation", "recall", "--revoke", "--file", os.path.join(one, "given1"), "--yes")
    t.equal("it is revoked by that", (res.returncode, res.stdout), (0, "revoked: 1 delegations\n"))


def test_api(t, d, given):
    row = tool(d, "delegations", "--file", os.path.join(d.exports["one"], "given2"))[0]
    dev = os.stat(os.path.join(d.exports["one"], "given2")).st_dev
    device = f"{os.major(dev)}:{os.minor(dev)}"
    got = api(d, "/v1/delegations", handle=row["handle"], device=device)[1]["delegations"]
    t.equal("by handle and device", [r["id"] for r in got], [id_of(given["given2"][1])])
    t.equal("of another device", api(d, "/v1/delegations", handle=row["handle"], device="9:999"), (200, {"delegations": []}))
    for query in ({"handle": row["handle"]}, {"device": device}, {"handle": "xy", "device": device}, {"handle": "abc", "device": device},
                  {"handle": row["handle"], "device": "8"}, {"handle": row["handle"], "device": "8:1x"}, {"handle": "", "device": device},
                  {"handle": "ab" * 133, "device": device}):
        status, answer = api(d, "/v1/opens", **query)
        t.check(f"wrong: {query}", status == 400 and answer["error"], (status, answer))


def test_restart(t, d):
    """An open that was reclaimed is one by a handle alone."""
    one = d.exports["one"]
    c = new_client(d, "comes back")
    res, fh = c.open(c.path(one), b"kept", create=True)
    d.process.kill()
    d.process.wait()
    d.start()
    c.again()
    c.register()
    res = c.reclaim_open(fh)
    t.equal("it is reclaimed", res["status"], n4.OK)
    rows = tool(d, "opens", "--file", os.path.join(one, "kept"))
    t.equal("and found", [r["id"] for r in rows], ["0x" + res["stateid"][-8:].hex()])
    t.equal("with its path", [r["path"] for r in rows], [os.path.join(one, "kept")])
    c.close()


def main():
    t = Count()
    with Control(SETTINGS, exports={"one": "rw,insecure,no_root_squash,nfs_only", "two": "rw,insecure,no_root_squash"}) as d:
        test_names(t, d)
        c = new_client(d, "holds", kind=Called)
        given = give_delegations(t, d, c)
        test_closed(t, d, c, given)
        test_api(t, d, given)
        c.close()
        test_restart(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
