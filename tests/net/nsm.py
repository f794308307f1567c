#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The status monitor for another lock manager of this machine (SM_MON and its like), and by TCP. Whom it calls, when, and who may ask."""
import itertools
import os
import signal
import socket
import time

import harness
import nlm_recovery as base
import rpcclient as r
from harness import Count, Daemon
from nlm_messages import Host
from nlm_recovery import (ACCEPTED, DENIED, GRANTED, NSM, ONE, OUTSIDE, SERVER, SM_CRASH, SM_MON, SM_NOTIFY, SM_NULL, SM_STAT, SM_UNMON,
                          SM_UNMON_ALL, TOO_WEAK, TWO, Client, make_file, monitor, notify, restart, wait_for)
from rpcclient import opaque, u32

LOCKD = (400021, 1, 16)  # program, version and procedure of the lock manager
MONITORS_MAX = 256
GARBAGE = u32(0) * 3 + u32(4)
PRIV = bytes(range(16))
_ports = itertools.count(700)


def my_id(lockd=LOCKD, name=b"me"):
    return opaque(name) + b"".join(map(u32, lockd))


def mon(name, priv=PRIV, lockd=LOCKD):
    return opaque(name) + my_id(lockd) + priv


def state_of(reply):
    return int.from_bytes(reply[-4:], "big")


def by_tcp(d, proc, args, source, privileged=True):
    """The result of a call by TCP, or the word for its refusal."""
    for port in _ports if privileged else [0]:
        try:
            conn = r.Conn(d.port, SERVER, source=(source, port))
            break
        except OSError:
            continue
    try:
        return rest(conn.call(NSM, 1, proc, args))
    except r.Refused as e:
        return e.why
    finally:
        conn.close()


def rest(x):
    return x.take(len(x.data) - x.at)


def path_of(d):
    return os.path.join(d.top, "state", "nsm-monitors")


def test_local(t, d):
    """Root of this machine only, by both transports."""
    t.equal("SM_STAT of an address", monitor(SM_STAT, opaque(b"10.1.2.3"), SERVER)[:20], ACCEPTED + u32(0))
    t.equal("of another name", monitor(SM_STAT, opaque(b"host.example"), SERVER)[:20], ACCEPTED + u32(1))
    t.equal("SM_MON of a name that is no address", monitor(SM_MON, mon(b"host.example"), SERVER)[:20], ACCEPTED + u32(1))
    t.equal("SM_MON of no name", monitor(SM_MON, mon(b""), SERVER)[:20], ACCEPTED + u32(1))
    t.equal("SM_MON of a very long one", monitor(SM_MON, mon(b"1" * 1000), SERVER)[:20], ACCEPTED + u32(1))
    t.equal("nothing is recorded", os.path.exists(path_of(d)), False)
    for proc, args in ((SM_STAT, opaque(b"::1")), (SM_MON, mon(b"10.1.2.3")), (SM_UNMON, mon(b"10.1.2.3")[:-16]), (SM_UNMON_ALL, my_id())):
        for cut in range(0, len(args), 4):
            got = monitor(proc, args[:cut] + bytes(4 * (cut < 4)), SERVER)
            if cut >= 4 and got != GARBAGE:
                t.equal(f"procedure {proc} cut at {cut}", got, GARBAGE)
        t.check(f"procedure {proc} by TCP", isinstance(by_tcp(d, proc, args, SERVER), bytes))
        t.equal(f"procedure {proc} by TCP, cut short", by_tcp(d, proc, args[:-4], SERVER), "GARBAGE_ARGS")
        t.equal(f"procedure {proc} by TCP and an unprivileged port", by_tcp(d, proc, args, SERVER, False), "AUTH_ERROR")
    for source, port, to in ((SERVER, 0, SERVER), (OUTSIDE, None, OUTSIDE)):
        for proc in (SM_STAT, SM_MON, SM_UNMON, SM_UNMON_ALL, SM_CRASH):
            t.equal(f"procedure {proc} of {source}, port {port}", monitor(proc, mon(b"10.1.2.3"), source, port, to), TOO_WEAK)
    t.equal("NULL by TCP", by_tcp(d, SM_NULL, b"", ONE, False), b"")


def heard(host, n):
    wait_for(lambda: len(host.heard) > n)
    return host.heard[n:]


def told(host):
    """Numbers of notices that are of the lock manager, not of this server as the one that has locks."""
    out = []
    for h in list(host.heard):
        h.args.at = h.args.args_at
        if h.proc == SM_NOTIFY and h.args.opaque() == b"me":
            out.append(h.args.u32())
    return out


def watch(name=ONE.encode(), priv=PRIV):
    return monitor(SM_MON, mon(name, priv), SERVER)


def test_monitor(t, d, here, one, two):
    t.equal("SM_MON", watch()[:20], ACCEPTED + u32(0))
    with open(path_of(d)) as f:
        t.check("is on disk when it is answered", PRIV.hex() in f.read())
    t.equal("once more", watch()[:20], ACCEPTED + u32(0))
    watch(TWO.encode(), bytes(16))
    t.equal("a notice from an unprivileged port", notify(b"one", 7, ONE, 0), ACCEPTED)
    t.equal("one from who is not monitored", notify(b"one", 7, SERVER), ACCEPTED)
    t.equal("the host's own", notify(b"one", 7, ONE), ACCEPTED)
    calls = heard(here, 0)
    t.equal("its lock manager is told, once", [(h.vers, h.proc, h.peer[0]) for h in calls], [(*LOCKD[1:], SERVER)])
    x = calls[0].args
    t.equal("of what", (x.opaque(), x.u32(), rest(x)), (ONE.encode(), 7, PRIV))
    notify(b"one", 7, ONE)
    t.equal("the same word by TCP", by_tcp(d, SM_NOTIFY, opaque(b"one") + u32(7), ONE), b"")
    t.equal("another by TCP", by_tcp(d, SM_NOTIFY, opaque(b"one") + u32(9), ONE), b"")
    t.equal("is told once", [h.args.opaque() for h in heard(here, 1)], [ONE.encode()])
    monitor(SM_UNMON, opaque(ONE.encode()) + my_id((1, 2, 3)), SERVER)
    notify(b"one", 11, ONE)
    t.equal("another's SM_UNMON changes nothing", len(heard(here, 2)), 1)
    monitor(SM_UNMON, opaque(ONE.encode()) + my_id(), SERVER)
    notify(b"one", 13, ONE)
    notify(b"two", 13, TWO)
    t.equal("its own does", [h.args.opaque() for h in heard(here, 3)], [TWO.encode()])
    monitor(SM_UNMON_ALL, my_id(), SERVER)
    notify(b"two", 15, TWO)
    time.sleep(0.3)
    t.equal("SM_UNMON_ALL", len(here.heard), 4)
    t.equal("no monitored host is called", (one.heard, two.heard), ([], []))


def test_crash(t, d, here, one):
    before = state_of(watch())
    t.equal("SM_SIMU_CRASH", monitor(SM_CRASH, b"", SERVER), ACCEPTED)
    wait_for(lambda: told(one))
    t.equal("the host is told", told(one), [before + 2])
    t.equal("the number is odd and new", state_of(monitor(SM_STAT, opaque(b"::1"), SERVER)), before + 2)
    n = len(here.heard)
    notify(b"one", 21, ONE)
    time.sleep(0.3)
    t.equal("the monitor is gone", (len(here.heard), told(one)), (n, [before + 2]))


def test_restart(t, d, here, one):
    """The server's restart is not the machine's."""
    watch()
    restart(d)
    n, was = len(here.heard), told(one)
    notify(b"one", 23, ONE)
    t.equal("after a crash of the server it is still monitored", len(heard(here, n)), 1)
    t.equal("and was not told", told(one), was)
    d.stop(signal.SIGKILL)
    with open(path_of(d)) as f:
        text = f.read()
    boot = text.splitlines()[1].split()[1]
    with open(path_of(d), "w") as f:
        f.write(text.replace(boot, "another boot"[:36].replace(" ", "-")))
    d.start()
    wait_for(lambda: len(told(one)) > len(was))
    t.equal("after a restart of the machine the host is told, once", len(told(one)), len(was) + 1)
    t.check("and forgotten", wait_for(lambda: open(path_of(d)).read().endswith("end 0\n")), open(path_of(d)).read())
    d.stop(signal.SIGKILL)
    with open(path_of(d), "a") as f:
        f.write("more\n")
    d.start()
    t.equal("a damaged file is set aside", os.path.exists(path_of(d) + ".damaged"), True)


def test_bounds(t, d):
    got = [watch(b"10.0.%d.%d" % (i // 250, i % 250 + 1))[16:20] for i in range(MONITORS_MAX + 3)]
    t.equal("so many hosts and no more", got, [u32(0)] * MONITORS_MAX + [u32(1)] * 3)
    begun = time.monotonic()
    monitor(SM_CRASH, b"", SERVER)
    for _ in range(20):
        monitor(SM_NULL, b"", SERVER)
    t.check("telling hosts that are not there holds up nobody", time.monotonic() - begun < 30)


def test_locks_by_tcp(t, d):
    """A client's notice by TCP frees its locks, under the same rules."""
    one, two = Client(d, ONE, b"one"), Client(d, TWO, b"two")
    fh = make_file(d, one, "x")
    t.equal("a lock", one.lock(fh), GRANTED)
    for what, source, privileged in (("an unprivileged port", ONE, False), ("another address", TWO, True)):
        by_tcp(d, SM_NOTIFY, opaque(b"one") + u32(31), source, privileged)
        t.equal(f"a notice by TCP from {what}", two.lock(fh), DENIED)
    by_tcp(d, SM_NOTIFY, opaque(b"one") + u32(31), ONE)
    t.check("the client's own", wait_for(lambda: two.lock(fh) == GRANTED, 5))


def inside():
    t = Count()
    base.network_up()
    hosts = [Host(a) for a in (SERVER, ONE, TWO)]
    try:
        settings = {"nlm.statd_port": base.MONITOR_PORT, "tcp.listen": "", "nfs4.lease_time": 5, "nfs4.grace_time": 5}
        with Daemon({"one": "rw,insecure,no_root_squash"}, settings) as d:
            test_local(t, d)
            monitor(SM_UNMON_ALL, my_id(), SERVER)
            test_locks_by_tcp(t, d)
            test_monitor(t, d, *hosts)
            test_crash(t, d, *hosts[:2])
            test_restart(t, d, *hosts[:2])
            test_bounds(t, d)
            harness.finish(t, d)
    finally:
        for h in hosts:
            h.close()
    harness.result(t)


if __name__ == "__main__":
    base.main(__file__, inside)
