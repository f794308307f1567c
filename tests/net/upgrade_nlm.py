#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The program is run anew while NFSv3 clients have locks: they keep them, and are told nothing; one that has restarted loses them as before, and who
waits is told of its lock. In a network name space, where hosts have addresses of their own."""
import fcntl
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import harness
import nlm_granted as waiting
import nlm_messages as messages
import nlm_recovery as base
from harness import Count, Daemon
from nlm_recovery import (ACCEPTED, BLOCKED, DENIED, GRANTED, NLM_NM_LOCK, NSM, ONE, ONE_NAME, SERVER, SM_NOTIFY, TWO, TWO_NAME, Client, FakeHost, make_file, notify, record, records, wait_for)
from rpcclient import Conn, opaque, u32
from upgrade import is_locked, restart


def test_locks(t, d, host):
    one, two = Client(d, ONE, ONE_NAME), Client(d, TWO, TWO_NAME)
    fh = make_file(d, one, "file")
    t.equal("a lock on record", one.lock(fh, 0, 10), GRANTED)
    t.equal("one without a record", one.lock(fh, 100, 50, svid=9, proc=NLM_NM_LOCK), GRANTED)
    number, known = records(d)
    for _ in range(3):
        said = restart(t, d, "NLM")
        t.check("the state goes along", "goes on from" in said, said)
        t.check("a local process does not get the lock", is_locked(d.exports["one"] + "/file"))
        t.equal("another client", (two.lock(fh, 5, 1), two.lock(fh, 120, 1)), (DENIED, DENIED))
        t.equal("what is free, at once", two.lock(fh, 1000), GRANTED)
        t.equal("and given up", two.unlock(fh, 1000), GRANTED)
        t.equal("the holder asks once more", one.lock(fh, 0, 10), GRANTED)
    t.equal("the state number", records(d)[0], number)
    t.check("the record", known <= records(d)[1] and record(ONE, ONE_NAME) in known, records(d))
    t.equal("the holder was told", host.notices, [])
    t.equal("it gives a part up", one.unlock(fh, 100, 10, svid=9), GRANTED)
    t.equal("that is free", (two.lock(fh, 105, 1), two.lock(fh, 115, 1)), (GRANTED, DENIED))
    t.equal("the holder has restarted", notify(ONE_NAME, 5, ONE), ACCEPTED)
    t.check("its lock is free", wait_for(lambda: two.lock(fh, 5, 1) == GRANTED, 10))


def test_reboots(t, d):
    """A client says at some moment of the restart that it has rebooted: its earlier locks are free."""
    one, two = Client(d, ONE, ONE_NAME), Client(d, TWO, TWO_NAME)
    fh = make_file(d, one, "rebooted")
    for state in range(11, 51, 2):
        one.state = state
        one.again()
        if one.lock(fh, 0, 10) != GRANTED:
            t.check("a lock of a client that is to reboot", False, state)
        with Conn(d.port, SERVER, source=(ONE, 500 + state)) as monitor, ThreadPoolExecutor() as pool:
            told = pool.submit(lambda monitor=monitor, state=state: (time.sleep(0.005 * state), monitor.call(NSM, 1, SM_NOTIFY, opaque(ONE_NAME) + u32(state + 2))))
            said = restart(t, d, "NLM")
            told.result()
        t.check("the state goes along, without that lock", "goes on from" in said, said)
        got = []
        t.check("it is free", wait_for(lambda: got.append(two.lock(fh, 0, 10)) or got[-1] == GRANTED, 5), got[-3:])
        t.equal("and given up", two.unlock(fh, 0, 10), GRANTED)


def test_waiters(t, d, host):
    """Clients that wait for a lock of another client or of a local process are called after the restart, in order."""
    one, two = Client(d, ONE, ONE_NAME), Client(d, TWO, TWO_NAME)
    fh, n = make_file(d, one, "waiters"), len(host.grants)
    local = waiting.local(d, "waiters", fcntl.F_WRLCK, offset=1000)
    t.equal("held", one.lock(fh), GRANTED)
    for svid in range(100, 104):
        t.equal("waits", two.lock(fh, svid=svid, block=True), BLOCKED)
    t.equal("waits for a local process", two.lock(fh, 1000, block=True), BLOCKED)
    said = restart(t, d, "waiters")
    t.check("the state goes along", "goes on from" in said, said)
    t.equal("CANCEL", two.cancel(fh, svid=101), GRANTED)
    t.equal("nobody is called before", len(host.grants), n)
    one.unlock(fh)
    for i, svid in enumerate((100, 102, 103), 1):
        waiting.granted(t, f"waiter {svid}", host, n + i, fh, svid=svid)
        t.equal("it has the lock", one.lock(fh), DENIED)
        if svid == 102:
            said = restart(t, d, "waiters once more")
            t.check("the state goes along", "goes on from" in said, said)
        two.unlock(fh, svid=svid)
    os.close(local)
    waiting.granted(t, "who waits for a local process", host, n + 4, fh, offset=1000)
    t.equal("it has the lock", one.lock(fh, 1000), DENIED)
    two.unlock(fh, 1000)


def test_called(t, d, host):
    """A client that has not answered GRANTED is called again, and keeps the lock whatever it answers."""
    one, two = Client(d, ONE, ONE_NAME), Client(d, TWO, TWO_NAME)
    for verdict in GRANTED, DENIED:
        fh = waiting.pending(d, one, two, host, f"called {verdict}")
        host.verdict, n = None, len(host.grants)
        said = restart(t, d, "called")
        t.check("the state goes along", "goes on from" in said, said)
        t.check("it is called again", wait_for(lambda n=n: len(host.grants) > n), host.grants)
        t.equal("the lock is its own", one.lock(fh), DENIED)
        host.verdict = verdict
        if verdict == DENIED:  # as Linux's client says to a second call of what it has accepted
            t.equal("and stays so", waiting.settled(host, one, fh), DENIED)
        t.equal("it gives it up", two.unlock(fh), GRANTED)
        host.verdict = GRANTED


def test_messages(t, d, host):
    """GRANTED_RES after the restart answers a GRANTED_MSG of before."""
    one, three = Client(d, ONE, ONE_NAME), Client(d, base.THREE, b"three")
    fh, n = messages.waiting(d, one, three, 4, messages.LOCK + messages.MSG, "messages"), len(host.heard)
    t.equal("it gives up the lock", one.unlock(fh), GRANTED)
    cookie = messages.granted(host, n, messages.GRANT + messages.MSG).args.opaque()
    said = restart(t, d, "a message")
    t.check("the state goes along", "goes on from" in said, said)
    t.equal("the waiter has it", one.lock(fh), DENIED)
    messages.answer(three, 4, cookie, DENIED)
    t.check("and does not want it", wait_for(lambda: waiting.free(one, fh)))


def test_first_locks(t, d):
    """A client whose first lock waits for its record when the restart comes gets the lock. Each comes by another name."""
    one, over, got = Client(d, TWO, b"first"), threading.Event(), []
    fh = make_file(d, one, "first")

    def locks():
        while not over.is_set():
            one.name = b"first %d" % len(got)
            got.append((one.lock(fh), one.unlock(fh)))

    with ThreadPoolExecutor() as pool:
        asks = pool.submit(locks)
        for _ in range(8):
            n = len(got)
            t.check("it locks", wait_for(lambda n=n: len(got) > n + 3 or asks.done()))
            said = restart(t, d, "first locks")
            t.check("the state goes along", "goes on from" in said, said)
        over.set()
        asks.result()
    t.equal(f"{len(got)} first locks", set(got), {(GRANTED, GRANTED)})


def test_untold(t, d, host):
    """A client that had a lock when the server crashed, and cannot be reached: it is told after a restart that others do not notice."""
    one, two = Client(d, ONE, ONE_NAME), Client(d, TWO, TWO_NAME)
    fh = make_file(d, two, "untold")
    t.equal("a lock", two.lock(fh), GRANTED)
    known, host.programs = host.programs, set()
    base.restart(d)
    one.again()
    t.check("the grace period ends", wait_for(lambda: one.lock(fh) == GRANTED, 60))
    t.equal("it was not told", host.notices, [])
    for _ in range(2):
        said = restart(t, d, "untold")
        t.check("the state goes along", "goes on from" in said, said)
    t.check("its record is gone", wait_for(lambda: record(TWO, TWO_NAME) not in records(d)[1]), records(d))
    host.programs = known
    t.check("it is told", wait_for(lambda: host.notices, 90))
    t.equal("of the crash", host.notices[0][1], records(d)[0])


def inside():
    t = Count()
    base.network_up()
    host, bystander, third = FakeHost(ONE), FakeHost(TWO), messages.Host(base.THREE)
    try:
        with Daemon({"one": "rw,insecure,no_root_squash"}, {"nlm.statd_port": base.MONITOR_PORT, "tcp.listen": "", **base.NFS4_CLIENT}) as d:
            test_locks(t, d, host)
            test_waiters(t, d, bystander)
            test_called(t, d, bystander)
            test_messages(t, d, third)
            test_reboots(t, d)
            test_first_locks(t, d)
            test_untold(t, d, bystander)
            harness.finish(t, d)
    finally:
        host.close()
        bystander.close()
        third.close()
    harness.result(t)


if __name__ == "__main__":
    base.main(__file__, inside)
