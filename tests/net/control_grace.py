#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The grace period by ringnfsctl: who is waited for, and its end at the administrator's request, which lasts."""
import json
import subprocess

import harness
import nfs4client as n4
from control import BINARY, Control, ctl
from control_end import on_terminal
from control_state import api, new_client
from harness import Count

SETTINGS = {"nfs4.lease_time": 600, "nfs4.grace_time": 600}


def restart(d):
    d.process.kill()
    d.process.wait()
    d.start()


def state(d):
    return json.loads(ctl("-s", d.path, "--json", "grace", "status").stdout)


def names(grace):
    return sorted((c["name"], c["version"], c["address"], c["back"]) for c in grace["clients"])


def test_none(t, d):
    t.equal("no grace period", state(d), {"active": False, "seconds_left": 0, "expected": 0, "waiting": 0, "clients": []})
    t.equal("for people", ctl("-s", d.path, "grace", "status").stdout, "no grace period\n")
    res = ctl("-s", d.path, "grace", "end", "--yes")
    t.equal("nothing to end", (res.returncode, res.stdout), (0, "no grace period\n"))
    t.equal("by the API", api(d, "/v1/grace/end", "POST"), (200, {"active": False, "seconds_left": 0, "expected": 0, "waiting": 0,
                                                                 "clients": [], "ended": False}))
    for args in (("grace",), ("grace", "begin"), ("grace", "status", "--yes"), ("grace", "end", "now"), ("grace", "--none")):
        res = ctl("-s", d.path, *args)
        t.check(f"wrong use {args}", res.returncode == 2 and res.stderr and not res.stdout, (res.returncode, res.stderr))


def test_end(t, d):
    clients = [new_client(d, f"holds by 4.{minor}", minor) for minor in (0, 1)]
    handles = [c.open(c.path(d.exports["one"]), c.owner.replace(b" ", b"_"), create=True)[1] for c in clients]
    restart(d)
    grace = state(d)
    t.check("it is active", grace["active"] and 0 < grace["seconds_left"] <= 600 and grace["expected"] == grace["waiting"] == 2, grace)
    away = [("holds by 4.0", "4.0", "127.0.0.1", False), ("holds by 4.1", "4.1", "127.0.0.1", False)]
    t.equal("who is waited for", names(grace), away)
    text = ctl("-s", d.path, "grace", "status").stdout
    for words in ("left; 2 of 2 clients", "holds by 4.1", "127.0.0.1", "has not come back"):
        t.check(f"for people: {words}", words in text, text)
    clients[0].again()
    clients[0].register()
    t.equal("one is back", names(state(d)), [(*away[0][:3], True), away[1]])
    other = new_client(d, "new")
    res, fh = other.open(other.path(d.exports["one"]), b"new", create=True)
    t.equal("a new client's LOCK", other.lock(fh, res["stateid"])["status"], n4.GRACE)
    res2 = subprocess.run([BINARY, "-s", d.path, "grace", "end"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    t.check("no terminal to ask on", res2.returncode == 2 and "--yes" in res2.stderr, res2)
    status, said = on_terminal(d, "n", "grace", "end")
    t.check("the answer n", status == 1 and "holds by 4.1" in said and state(d)["active"], (status, said))
    status, said = on_terminal(d, "y", "grace", "end")
    t.check("the answer y", status == 0 and "2 clients had not reclaimed" in said, (status, said))
    t.equal("it is over", state(d)["active"], False)
    t.equal("the new client's LOCK", other.lock(fh, res["stateid"])["status"], n4.OK)
    t.equal("a reclaim of one that is back", clients[0].reclaim_open(handles[0])["status"], n4.NO_GRACE)
    t.check("it is logged", d.wait_log(r"user 0: the grace period is ended, while others waited for 2 clients"), d.read_log()[-300:])
    for c in clients:
        c.close()
    return clients[1], handles[1], other


def test_lasts(t, d, away, handle, other):
    """After another restart, those whose record was given up reclaim nothing, and nobody waits for them."""
    restart(d)
    t.equal("only the new client is waited for", [c[0] for c in names(state(d))], ["new"])
    away.again()
    away.register()
    t.equal("a reclaim", away.reclaim_open(handle)["status"], n4.NO_GRACE)
    t.equal("ended", ctl("-s", d.path, "grace", "end", "--yes").returncode, 0)
    t.equal("it is over", state(d)["active"], False)
    for c in (away, other):
        c.close()


def main():
    t = Count()
    with Control(SETTINGS) as d:
        test_none(t, d)
        test_lasts(t, d, *test_end(t, d))
        t.equal("the daemon ends well", d.stop()[0], 0)
    harness.result(t)


if __name__ == "__main__":
    main()
