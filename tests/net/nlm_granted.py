#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""NFSv3 clients that wait for a lock get it when it is free, in their order, and are called (NLM4_GRANTED). What a client does with the
call decides whether it keeps the lock."""
import fcntl
import os
import struct
import time

import harness
import nfs4client as n4
import nlm_recovery as base
import rpcclient as r
from harness import Count, Daemon
from nlm_recovery import (BLOCKED, DENIED, GRANTED, NLM, NLM_FREE_ALL, ONE, SERVER, TWO, Client, FakeHost, make_file, notify, wait_for)
from rpcclient import opaque, u32

THREE = "127.0.0.4"
MANY = 12
LEASE = 60


def granted(t, what, host, n, fh, svid=7, offset=0):
    """The n-th grant that the host was told of."""
    if t.check(f"{what}: called", wait_for(lambda: len(host.grants) >= n), host.grants):
        g = host.grants[n - 1]
        t.equal(f"{what}: with", g[:8], (b"cookie", True, g[2], fh, b"%d@here" % svid, svid, offset, 10))
        t.check(f"{what}: from the address that it calls, by a privileged port", g[8][0] == SERVER and g[8][1] < 1024, g[8])


def free(c, fh):
    """The lock can be had; it is given back."""
    return c.lock(fh) == GRANTED and c.unlock(fh) == GRANTED


def test_granted(t, d, one, two, host):
    fh = make_file(d, one, "granted")
    t.equal("held", one.lock(fh), GRANTED)
    t.equal("waits", two.lock(fh, block=True), BLOCKED)
    t.equal("an unlock of other bytes", one.unlock(fh, 50), GRANTED)
    t.equal("unlock", one.unlock(fh), GRANTED)
    granted(t, "an unlock", host, 1, fh)
    t.equal("it is the waiter's", one.lock(fh), DENIED)
    t.equal("which gives it back", two.unlock(fh), GRANTED)
    t.check("free", free(one, fh))
    t.equal("nobody is called twice", len(host.grants), 1)


def test_order(t, d, one, two, three, hosts):
    """Those who wait for the same bytes, from two addresses by turns, get them one after the other."""
    fh = make_file(d, one, "order")
    one.lock(fh)
    order = []
    for i in range(MANY):
        t.equal("waits", (two, three)[i % 2].lock(fh, svid=100 + i, block=True), BLOCKED)
    before = [len(h.grants) for h in hosts]
    one.unlock(fh)
    for i in range(MANY):
        wait_for(lambda n=i + 1: sum(len(h.grants) for h in hosts) - sum(before) >= n)
        new = [(w, g[5]) for w, h in enumerate(hosts) for g in h.grants[before[w]:] if (w, g[5]) not in order]
        order += new
        for w, svid in new:
            (two, three)[w].unlock(fh, svid=svid)
    t.equal("in the order in which they came", order, [(i % 2, 100 + i) for i in range(MANY)])


def test_unwanted(t, d, one, two, host):
    """A client that says no, or has no lock manager."""
    fh = make_file(d, one, "unwanted")
    for what, verdict, programs in (("says no", DENIED, host.programs), ("has no lock manager", GRANTED, set())):
        one.lock(fh)
        two.lock(fh, block=True)
        known, host.verdict, host.programs = host.programs, verdict, programs
        one.unlock(fh)
        t.check(f"a client that {what} loses it", wait_for(lambda: free(one, fh)), what)
        host.verdict, host.programs = GRANTED, known


def test_lost(t, d, one, two, host):
    """Calls that are lost are sent again."""
    fh = make_file(d, one, "lost")
    n = len(host.grants)
    host.left = [1, 1]
    one.lock(fh)
    two.lock(fh, block=True)
    one.unlock(fh)
    granted(t, "a call that was lost", host, n + 1, fh)
    t.equal("its lock", one.lock(fh), DENIED)
    two.unlock(fh)


def pending(d, one, two, host, name):
    """Granted, and the client has not answered."""
    fh, n = make_file(d, one, name), len(host.grants)
    host.verdict = None
    one.lock(fh)
    two.lock(fh, block=True)
    one.unlock(fh)
    wait_for(lambda: len(host.grants) > n)
    return fh


def settled(host, one, fh):
    """The client says no, too late: the state of the lock when it has said so, more than once."""
    n = len(host.grants)
    host.verdict = DENIED
    wait_for(lambda: len(host.grants) > n)
    for _ in range(20):
        status = one.lock(fh)
    host.verdict = GRANTED
    return status


def test_cancel(t, d, one, two, host):
    fh = pending(d, one, two, host, "cancel")
    t.equal("a lock whose client has not answered", one.lock(fh), DENIED)
    t.equal("CANCEL", two.cancel(fh), GRANTED)
    t.equal("frees it", one.lock(fh), GRANTED)
    t.equal("and an answer changes nothing", settled(host, one, fh), GRANTED)
    t.equal("the lock is the other's", two.lock(fh), DENIED)
    one.unlock(fh)
    one.lock(fh)
    two.lock(fh, block=True)
    t.equal("CANCEL of a request that waits", two.cancel(fh), GRANTED)
    n = len(host.grants)
    one.unlock(fh)
    t.check("which is not granted", free(one, fh))
    t.equal("nor called", len(host.grants), n)


def test_claimed(t, d, one, two, host):
    """The client asks again before it has answered, and has the lock then, whatever it answers."""
    fh = pending(d, one, two, host, "claimed")
    t.equal("LOCK again", two.lock(fh, block=True), GRANTED)
    t.equal("is not taken back", settled(host, one, fh), DENIED)
    two.unlock(fh)
    fh = pending(d, one, two, host, "claimed anew")
    t.equal("UNLOCK", two.unlock(fh), GRANTED)
    t.equal("LOCK", two.lock(fh), GRANTED)
    t.equal("is not taken back either", settled(host, one, fh), DENIED)
    two.unlock(fh)


def test_ends(t, d, one, two, host):
    """Other ends of a lock than an unlock."""
    fh = make_file(d, one, "ends")
    n = len(host.grants)
    for what, how in (("FREE_ALL", lambda: one.conn.call(NLM, 4, NLM_FREE_ALL, opaque(one.name) + u32(3))),
                      ("the holder restarts", lambda: notify(one.name, 9, ONE))):
        one.lock(fh)
        two.lock(fh, block=True)
        how()
        n += 1
        granted(t, what, host, n, fh)
        two.unlock(fh)
    four = n4.Client(d.port, "holder", 1)
    if four.register()["status"] or four.reclaim_complete():
        raise SystemExit("NFSv4 does not register")
    res, fh4 = four.open(four.path(d.exports["one"]), b"ends")
    locked = four.lock(fh4, res["stateid"], n4.WRITE_LT, 0, 10)
    t.equal("held by NFSv4", locked["status"], n4.OK)
    t.equal("waits for NFSv4", two.lock(fh, block=True), BLOCKED)
    four.last(n4.putfh(fh4), (n4.LOCKU, u32(n4.WRITE_LT) + u32(1) + locked["stateid"] + r.u64(0) + r.u64(10)))
    granted(t, "NFSv4 unlocks", host, n + 1, fh)


def local(d, name, kind, offset=0, fd=None):
    """A local process's lock of ten bytes; returns its descriptor."""
    fd = os.open(os.path.join(d.exports["one"], name), os.O_RDWR) if fd is None else fd
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, 0, offset, 10, 0))
    return fd


def test_local(t, d, one, two, host):
    """A local process has the lock: the waiter is called soon after it gives it up."""
    fh, n = make_file(d, one, "local"), len(host.grants)
    fd = local(d, "local", fcntl.F_WRLCK)
    t.equal("waits for a local process", two.lock(fh, block=True), BLOCKED)
    t.equal("and once more", two.lock(fh, block=True), BLOCKED)
    time.sleep(2.5)
    t.equal("it is not called before", len(host.grants), n)
    local(d, "local", fcntl.F_UNLCK, fd=fd)
    granted(t, "a local process unlocks", host, n + 1, fh)
    t.equal("its lock", one.lock(fh), DENIED)
    two.unlock(fh)
    local(d, "local", fcntl.F_WRLCK, fd=fd)
    t.equal("waits again", two.lock(fh, block=True), BLOCKED)
    t.equal("CANCEL", two.cancel(fh), GRANTED)
    os.close(fd)
    time.sleep(2.5)
    t.equal("a request that was cancelled is not granted", (len(host.grants), free(one, fh)), (n + 1, True))
    one.lock(fh, 20)
    two.lock(fh, block=True, length=30)
    fd = local(d, "local", fcntl.F_WRLCK)
    one.unlock(fh, 20)
    time.sleep(1)
    t.equal("a client's lock first, then a local one", len(host.grants), n + 1)
    os.close(fd)
    t.check("is granted in the end", wait_for(lambda: len(host.grants) == n + 2))
    t.equal("nobody is called twice", (two.unlock(fh, length=0), len(host.grants)), (GRANTED, n + 2))
    fd = local(d, "local", fcntl.F_WRLCK)
    t.equal("one that still waits at the end", two.lock(fh, block=True), BLOCKED)
    return fd


def test_stop(t, d, one, two, host):
    """The server stops while a client waits, and while another has not answered."""
    fh = pending(d, one, two, host, "stop")
    one.lock(fh, block=True)
    t.equal("one waits for the other", one.lock(fh, block=True), BLOCKED)


def inside():
    t = Count()
    base.network_up()
    hosts = [FakeHost(a) for a in (ONE, TWO, THREE)]
    try:
        settings = {"nlm.statd_port": base.MONITOR_PORT, "tcp.listen": "", "nfs4.lease_time": LEASE}
        with Daemon({"one": "rw,insecure,no_root_squash"}, settings) as d:
            one, two, three = Client(d, ONE, b"one"), Client(d, TWO, b"two"), Client(d, THREE, b"three")
            test_granted(t, d, one, two, hosts[1])
            test_order(t, d, one, two, three, hosts[1:])
            test_unwanted(t, d, one, two, hosts[1])
            test_lost(t, d, one, two, hosts[1])
            test_cancel(t, d, one, two, hosts[1])
            test_claimed(t, d, one, two, hosts[1])
            test_ends(t, d, one, two, hosts[1])
            test_local(t, d, one, two, hosts[1])
            t.equal("nobody else is called", [h.strangers for h in hosts] + [hosts[0].grants], [[]] * 4)
            test_stop(t, d, one, two, hosts[1])
            harness.finish(t, d)
    finally:
        for h in hosts:
            h.close()
    harness.result(t)


if __name__ == "__main__":
    base.main(__file__, inside)
