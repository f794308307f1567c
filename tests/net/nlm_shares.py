#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""SHARE and UNSHARE of NLM beside opens of NFSv4: each keeps the other out, in both orders. Shares of a client that restarts or is ended by
an administrator, that a reload takes away, and that are reclaimed; memory of a client that takes very many."""
import os

import harness
import nfs4client as n4
import nlm_recovery as base
import rpcclient as r
from control import ctl
from control_state import tool
from harness import Count, Daemon
from nlm_recovery import (DENIED, GRACE_PERIOD, GRANTED, NLM, ONE, TWO, Client, FakeHost, make_file, notify, restart, wait_for)
from rpcclient import opaque, u32

THREE = "127.0.0.4"
SHARE, UNSHARE, FREE_ALL = 20, 21, 23
READ, WRITE, BOTH = 1, 2, 3
SHARE_DENIED, LEASE = 10015, 5
CONTROL = f"/run/ringnfs-shares-{os.getpid()}/control"
MANY = 30000  # owners of one host: more than its memory is for


def share(c, fh, deny, access, owner=b"1@here", proc=SHARE, vers=4, reclaim=False):
    x = c.conn.call(NLM, vers, proc, opaque(b"cookie") + opaque(c.name) + opaque(fh) + opaque(owner) + u32(deny) + u32(access) + u32(int(reclaim)))
    x.opaque()
    stat = x.u32()
    x.u32()
    x.end()
    return stat


def unshare(c, fh, owner=b"1@here"):
    return share(c, fh, 0, 0, owner, UNSHARE)


def nfs4(d):
    four = n4.Client(d.port, "beside NLM", 1)
    if four.register()["status"] or four.reclaim_complete():
        raise SystemExit("NFSv4 does not register")
    return four


def test_opens(t, d, one, two, four):
    fh = make_file(d, one, "opens")
    at = four.path(d.exports["one"])
    t.equal("SHARE", share(one, fh, WRITE, READ), GRANTED)
    t.equal("OPEN to write", four.open(at, b"opens", False, WRITE, 0)[0]["status"], SHARE_DENIED)
    t.equal("OPEN that denies reading", four.open(at, b"opens", False, READ, READ)[0]["status"], SHARE_DENIED)
    res, fh4 = four.open(at, b"opens", False, READ, WRITE)
    t.equal("OPEN that fits", res["status"], n4.OK)
    t.equal("SHARE to write beside it", share(two, fh, 0, WRITE), DENIED)
    t.equal("SHARE that denies reading", share(two, fh, READ, READ), DENIED)
    t.equal("SHARE that fits", share(two, fh, 0, READ, vers=3), GRANTED)
    x = one.conn.call(r.NFS, 3, r.WRITE, r.write_args(fh, 0, b"data"))
    t.check("a WRITE of NFSv3 is refused by NFSv4's share", x.u32() != r.OK)
    four.last(n4.putfh(fh4), (n4.CLOSE, u32(0) + res["stateid"]))
    x = one.conn.call(r.NFS, 3, r.WRITE, r.write_args(fh, 0, b"data"))
    t.equal("and not by NLM's, which names no owner", x.u32(), r.OK)
    t.equal("UNSHARE", (unshare(one, fh), unshare(two, fh)), (GRANTED, GRANTED))
    res, fh4 = four.open(at, b"opens", False, WRITE, BOTH)
    t.equal("OPEN then", res["status"], n4.OK)
    t.equal("SHARE of nothing but the file", share(one, fh, 0, 0), GRANTED)
    t.equal("SHARE to read", share(one, fh, 0, READ), DENIED)
    four.last(n4.putfh(fh4), (n4.CLOSE, u32(0) + res["stateid"]))
    t.equal("when it is closed", share(one, fh, 0, READ), GRANTED)
    unshare(one, fh)


def test_listed(t, d, one):
    """An administrator sees and ends it."""
    fh = make_file(d, one, "listed")
    share(one, fh, WRITE, BOTH)
    rows = tool(d, "locks")
    t.equal("listed", [(x["access"], x["deny"], x["client"], x["ranges"]) for x in rows], [("both", "write", ONE, [])])
    t.check("as text", "share both" in ctl("-s", d.path, "locks").stdout)
    t.equal("ended", ctl("-s", d.path, "lock", "release", rows[0]["id"], "--yes").returncode, 0)
    t.equal("gone", tool(d, "locks"), [])


def test_ends(t, d, one, two):
    fh = make_file(d, one, "ends")
    for what, end in (("FREE_ALL", lambda: one.conn.call(NLM, 4, FREE_ALL, opaque(one.name) + u32(3))),
                      ("a restart of the client", lambda: notify(one.name, 9, ONE))):
        t.equal("SHARE", share(one, fh, BOTH, BOTH), GRANTED)
        t.equal("another's", share(two, fh, 0, READ), DENIED)
        end()
        t.check(f"{what} ends it", wait_for(lambda: share(two, fh, 0, READ) == GRANTED, 5))
        unshare(two, fh)
    t.equal("SHARE of the new life", share(one, fh, BOTH, BOTH), GRANTED)
    notify(one.name, 9, ONE)
    t.equal("outlasts the same word", share(two, fh, 0, READ), DENIED)
    notify(two.name, 9, TWO)
    t.equal("and another's", share(two, fh, 0, READ), DENIED)
    unshare(one, fh)


def test_reclaim(t, d, one, two, three):
    fh = make_file(d, one, "reclaimed")
    t.equal("SHARE", share(one, fh, BOTH, BOTH), GRANTED)
    restart(d)
    one.again()
    two.again()
    three.again()
    t.equal("a new one has to wait", share(two, fh, 0, READ), GRACE_PERIOD)
    t.equal("a reclaim of who had none", share(three, fh, 0, READ, reclaim=True), DENIED)
    t.equal("a reclaim", share(one, fh, BOTH, BOTH, reclaim=True), GRANTED)
    t.check("grace ends", wait_for(lambda: share(two, fh, 0, READ) != GRACE_PERIOD))
    t.equal("it is in the way", share(two, fh, 0, READ), DENIED)
    unshare(one, fh)


def test_memory(t, d, one, two):
    """A host that takes all that it can leaves room for another."""
    fh, n = make_file(d, one, "many"), 0
    while n < MANY and share(one, fh, 0, READ, b"%d" % n) == GRANTED:
        n += 1
    t.check("ends before all is used", 10000 <= n < MANY, n)
    t.equal("another host has room", share(two, fh, 0, READ), GRANTED)
    one.conn.call(NLM, 4, FREE_ALL, opaque(one.name) + u32(3))
    t.equal("and all is given back", share(one, fh, 0, READ), GRANTED)


def inside():
    t = Count()
    base.network_up()
    hosts = [FakeHost(ONE), FakeHost(TWO)]
    try:
        settings = {"server.control_socket": CONTROL, "nlm.statd_port": base.MONITOR_PORT, "tcp.listen": "", "nfs4.lease_time": LEASE, "nfs4.grace_time": LEASE}
        with Daemon({"one": "rw,insecure,no_root_squash"}, settings) as d:
            d.path = CONTROL
            one, two, three = Client(d, ONE, b"one"), Client(d, TWO, b"two"), Client(d, THREE, b"three")
            test_listed(t, d, one)
            test_opens(t, d, one, two, nfs4(d))
            test_ends(t, d, one, two)
            test_reclaim(t, d, one, two, three)
            test_memory(t, d, one, two)
            harness.finish(t, d)
    finally:
        for h in hosts:
            h.close()
    harness.result(t)


if __name__ == "__main__":
    base.main(__file__, inside)
