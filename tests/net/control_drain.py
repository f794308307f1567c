#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsctl drain: clients get nothing new and keep what they have, who holds what is told, and the end comes when nothing is held."""
import json
import os
import subprocess
import time

import harness
import nfs4client as n4
from control import BINARY, GROUP, USER, Control, ask, connect_as, ctl
from control_state import Called, WANT_READ, api, client_id, new_client, nlm_lock, tool
from harness import Count
from rpcclient import opaque, u32, u64

SETTINGS = {"nfs4.lease_time": 60, "nfs4.grace_time": 60}
RW = "rw,insecure,no_root_squash"
NLM, NLM_UNLOCK, NLM_GRANTED, NLM_GRACE = 100021, 4, 0, 4
HELD = 4  # exit status


def drain(d, *args):
    return ctl("-s", d.path, "drain", *args)


def cancel(t, d, *args):
    res = drain(d, "--cancel", *args)
    t.check("cancelled", res.returncode == 0 and "again" in res.stdout, res)


def leave(t, d, c):
    t.equal("it leaves", ctl("-s", d.path, "client", "evict", client_id(c), "--yes").returncode, 0)
    c.close()


def unlock(c, fh, stateid, length):
    """The first LOCKU of a lock-owner."""
    return c.last(n4.putfh(fh), (n4.LOCKU, u32(n4.WRITE_LT) + u32(1) + stateid + u64(0) + u64(length)))["status"]


def nlm_unlock(conn, fh, offset, length, host=b"host.example"):
    lock = opaque(host) + opaque(fh) + opaque(b"7@host") + u32(7) + u64(offset) + u64(length)
    x = conn.call(NLM, 4, NLM_UNLOCK, opaque(b"") + lock)
    x.opaque()
    return x.u32()


def test_nothing(t, d):
    start = time.monotonic()
    res = drain(d)
    t.check("nothing is held", res.returncode == 0 and "drained: nothing is held" in res.stdout, res)
    t.check("at once", time.monotonic() - start < 20)
    text = ctl("-s", d.path, "status").stdout
    t.check("the status tells", "drain        for " in text and "of all exports" in text, text)
    t.check("it is logged", d.wait_log(r"user 0: clients get no new state of all exports"), d.read_log()[-300:])
    cancel(t, d)
    t.check("nor does it any more", "drain" not in ctl("-s", d.path, "status").stdout)
    t.check("that is logged", d.wait_log(r"user 0: clients get new state of all exports again"), d.read_log()[-300:])
    res = drain(d, "--cancel")
    t.check("nothing to cancel", res.returncode == 1 and "nothing is drained" in res.stderr, res)


def test_new_state(t, d):
    one = d.exports["one"]
    for minor in (0, 1, 2):
        name = f"held{minor}".encode()
        c = new_client(d, f"holds {minor}", minor)
        root = c.path(one)
        res, fh = c.open(root, name, create=True)
        lock = c.lock(fh, res["stateid"], length=10)
        gone = drain(d, "--timeout", "0")
        t.check(f"4.{minor}: the time is over", gone.returncode == HELD and "1 opens, 1 locks" in gone.stdout
                and client_id(c) in gone.stdout and "127.0.0.1" in gone.stdout and "--cancel" in gone.stderr, gone)
        t.equal(f"4.{minor}: a new OPEN", c.open(root, b"new", create=True)[0]["status"], n4.DELAY)
        t.check(f"4.{minor}: has made nothing", not os.path.exists(os.path.join(one, "new")))
        t.equal(f"4.{minor}: another OPEN of the file", c.open(root, name)[0]["status"], n4.DELAY)
        t.equal(f"4.{minor}: a new LOCK", c.lock(fh, res["stateid"], offset=20, length=10)["status"], n4.DELAY)
        t.equal(f"4.{minor}: READ", c.last(n4.putfh(fh), n4.read(res["stateid"], 0, 10))["status"], n4.OK)
        t.equal(f"4.{minor}: WRITE", c.last(n4.putfh(fh), n4.write(res["stateid"], 0, b"data"))["status"], n4.OK)
        t.equal(f"4.{minor}: GETATTR", c.getattr(fh)["status"], n4.OK)
        other = n4.Client(d.port, f"new {minor}", minor)
        t.equal(f"4.{minor}: a new client", other.register()["status"], n4.DELAY)
        other.close()
        t.equal(f"4.{minor}: LOCKU", unlock(c, fh, lock["stateid"], 10), n4.OK)
        c.close_file(fh, res["stateid"])
        gone = drain(d, "--timeout", "60")
        t.check(f"4.{minor}: drained", gone.returncode == 0 and "nothing is held" in gone.stdout, gone)
        cancel(t, d)
        res, fh = c.open(root, name)
        t.equal(f"4.{minor}: an OPEN afterwards", res["status"], n4.OK)
        c.close_file(fh, res["stateid"])
        c.close()


def test_waits(t, d):
    """The tool waits, tells each change, and ends with the last open. Its own end ends nothing."""
    c = new_client(d, "closes late")
    opened = [c.open(c.path(d.exports["one"]), name, create=True) for name in (b"late1", b"late2")]
    c.lock(opened[0][1], opened[0][0]["stateid"])
    mine = {"client": client_id(c), "address": "127.0.0.1", "opens": 2, "locks": 1, "delegations": 0}
    with subprocess.Popen([BINARY, "-s", d.path, "drain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        t.check("two", "2 opens" in p.stdout.readline())
        t.equal("who holds them", [p.stdout.readline().split() for _ in range(2)],
                [["CLIENT", "ADDRESS", "OPENS", "LOCKS", "DELEGATIONS"], [client_id(c), "127.0.0.1", "2", "1", "0"]])
        answer = api(d, "/v1/drain")[1]
        t.equal("by the interface, too", answer["held"], {"opens": 2, "locks": 1, "delegations": 0, "nlm_owners": 0, "clients": [mine]})
        t.check("since when", answer["active"] and 0 <= answer["seconds"] < 60, answer)
        c.close_file(opened[0][1], opened[0][0]["stateid"])
        while (line := p.stdout.readline()) and "held:" not in line:
            pass
        t.check("one", "1 opens" in line, line)
        p.kill()
    t.equal("it goes on without the tool", c.open(c.path(d.exports["one"]), b"late1")[0]["status"], n4.DELAY)
    with subprocess.Popen([BINARY, "-s", d.path, "--json", "drain"], stdout=subprocess.PIPE, text=True) as p:
        c.close_file(opened[1][1], opened[1][0]["stateid"])
        out = p.communicate(timeout=60)[0]
    answer = json.loads(out)
    t.check("--json", p.returncode == 0 and answer["active"] and answer["all"] and answer["held"]["opens"] == 0, (p.returncode, out))
    cancel(t, d)
    res, fh = c.open(c.path(d.exports["one"]), b"late1")
    with subprocess.Popen([BINARY, "-s", d.path, "drain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        t.check("one again", "1 opens" in p.stdout.readline())
        cancel(t, d)
        said = p.communicate(timeout=60)[1]
    t.check("cancelled while somebody waits", p.returncode == 1 and "was cancelled" in said, (p.returncode, said))
    c.close_file(fh, res["stateid"])
    c.close()


def test_export(t, d):
    """One export of two; NLM, and what a reload leaves."""
    one, two = d.exports["one"], d.exports["two"]
    c = new_client(d, "two exports")
    with d.connect() as conn:
        res, fh = c.open(c.path(one), b"nlm", create=True)
        c.close_file(fh, res["stateid"])
        t.equal("NLM4_LOCK", nlm_lock(conn, fh, 0, 10), NLM_GRANTED)
        gone = drain(d, "--export", one, "--timeout", "0")
        t.check("NLM's lock is held", gone.returncode == HELD and "locks of 1 owners of NFSv3" in gone.stdout, gone)
        answer = api(d, "/v1/drain", export=one)[1]
        t.equal("and told", (answer["active"], answer["all"], answer["exports"], answer["held"]["nlm_owners"]), (True, False, [one], 1))
        t.equal("of the other export", api(d, "/v1/drain", export=two)[1]["active"], False)
        t.equal("a new NLM4_LOCK", nlm_lock(conn, fh, 100, 10), NLM_GRACE)
        t.equal("OPEN there", c.open(c.path(one), b"new", create=True)[0]["status"], n4.DELAY)
        res2, fh2 = c.open(c.path(two), b"free", create=True)
        t.equal("OPEN in the other one", res2["status"], n4.OK)
        other = new_client(d, "new with one drained")
        other.close()
        t.equal("a reload", ctl("-s", d.path, "exports", "reload").returncode, 0)
        t.equal("changes nothing", c.open(c.path(one), b"new", create=True)[0]["status"], n4.DELAY)
        text = ctl("-s", d.path, "status").stdout
        t.check("the status names it", f"of {one}\n" in text, text)
        t.equal("NLM4_UNLOCK", nlm_unlock(conn, fh, 0, 10), NLM_GRANTED)
    gone = drain(d, "--export", one, "--timeout", "60")
    t.equal("drained, whatever is held of the other", gone.returncode, 0)
    t.equal("all of it", drain(d, "--timeout", "0").returncode, HELD)
    res = drain(d, "--cancel", "--export", one)
    t.check("one of all cannot be cancelled", res.returncode == 1 and "cancel all" in res.stderr, res)
    cancel(t, d)
    drain(d, "--export", two, "--timeout", "0")
    drain(d, "--export", one, "--timeout", "0")
    cancel(t, d, "--export", two)
    t.equal("one of two is cancelled", [c.open(c.path(p), b"last", create=True)[0]["status"] for p in (one, two)], [n4.DELAY, n4.OK])
    cancel(t, d)
    leave(t, d, c)


def test_delegations(t, d):
    """They are recalled, and what the client has opened and locked under one is taken over."""
    one = d.exports["one"]
    with open(os.path.join(one, "given"), "w") as f:
        f.write("data")
    c = new_client(d, "delegated", kind=Called)
    root = c.path(one)
    res, fh = c.open(root, b"given", access=n4.SHARE_READ | WANT_READ)
    t.equal("it has one", res.get("delegation"), n4.DELEGATE_READ)
    c.close_file(fh, res["stateid"])
    gone = drain(d, "--timeout", "0")
    t.check("it is held", gone.returncode == HELD and "1 delegations" in gone.stdout, gone)
    c.await_callback(4)  # CB_RECALL
    t.check("it is recalled", tool(d, "delegations")[0]["recalled"])
    mine = c.claim_open(fh, res["deleg"])
    t.equal("CLAIM_DELEG_CUR_FH", mine["status"], n4.OK)
    lock = c.lock(fh, mine["stateid"], kind=n4.READ_LT, length=5)
    t.equal("LOCK while it has the delegation", lock["status"], n4.OK)
    t.equal("DELEGRETURN", c.delegreturn(fh, res["deleg"]), n4.OK)
    t.equal("LOCK without it", c.lock(fh, mine["stateid"], kind=n4.READ_LT, offset=50, length=5)["status"], n4.DELAY)
    unlock(c, fh, lock["stateid"], 5)
    c.close_file(fh, mine["stateid"])
    t.equal("drained", drain(d, "--timeout", "60").returncode, 0)
    cancel(t, d)
    c.close()


def test_restart(t, d):
    """A restart of a client during the drain, and of the server, which ends the drain; reclaims are no new state."""
    one = d.exports["one"]
    c = new_client(d, "restarts")
    res, fh = c.open(c.path(one), b"reclaimed", create=True)
    d.process.kill()
    d.process.wait()
    d.start()
    t.equal("drain in the grace period", drain(d, "--timeout", "0").returncode, 0 if not tool(d, "opens") else HELD)
    c.again()
    t.equal("it comes back", c.register()["status"], n4.OK)
    t.equal("and reclaims", c.reclaim_open(fh)["status"], n4.OK)
    c.reclaim_complete()
    c.again()
    c.verifier = b"rebooted"
    t.equal("the client restarts", c.register()["status"], n4.OK)
    t.equal("its state has gone", drain(d, "--timeout", "60").returncode, 0)
    d.process.kill()
    d.process.wait()
    d.start()
    t.equal("a restart of the server ends it", api(d, "/v1/drain"), (200, {"active": False, "all": False, "exports": []}))
    c.close()


def test_wrong(t, d):
    for args in (("now",), ("--timeout",), ("--timeout", "x"), ("--timeout", "-1"), ("--timeout", "1", "--cancel"), ("--timeout", "1e3"),
                 ("--timeout", "99999999999")):
        res = drain(d, *args)
        t.check(f"wrong use {args}", res.returncode == 2 and res.stderr and not res.stdout, (res.returncode, res.stderr))
    res = drain(d, "--export", "/nowhere")
    t.check("no such export", res.returncode == 1 and "no export is at /nowhere" in res.stderr, res)
    t.equal("a relative one", api(d, "/v1/drain?export=one", "POST")[0], 400)
    res = drain(d, "--cancel", "--export", d.exports["one"])
    t.check("not drained", res.returncode == 1 and "is not drained" in res.stderr, res)
    for path in ("/v1/drain", "/v1/drain/cancel"):
        with connect_as(d.path, USER, GROUP) as s:
            code, _, body = ask(s, "POST", path)
        t.equal(f"a reader may not POST {path}", (code, json.loads(body)["code"]), (403, "forbidden"))
    with connect_as(d.path, USER, GROUP) as s:
        t.equal("and may ask", ask(s, path="/v1/drain")[0], 200)


def main():
    t = Count()
    with Control(SETTINGS, exports={"one": RW + ",nfs_only", "two": RW}) as d:
        for test in (test_nothing, test_new_state, test_waits, test_export, test_delegations, test_wrong, test_restart):
            test(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
