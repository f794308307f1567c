#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The keeper of a cluster's member (doc/design/keeper.md): locks of a daemon that was killed are given to nobody before its clients have
reclaimed, however soon it is started again; what else it had is free at once. A daemon whose keeper dies leaves the cluster."""
import os
import select
import signal
import socket
import time

import nfs4client as n
from cluster import DEAD, ENDED, SOON, Holder, await_status, no_lock, open_at, stop_all, two_members
from harness import Count, Daemon, result

AT_ONCE = 0.5  # seconds; the keeper needs some milliseconds


def keepers_of(pid):
    """Child processes called ringnfs-keeper."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as f:
                comm, rest = f.read().split(" ", 1)[1].rsplit(") ", 1)
        except OSError:
            continue
        if comm == "(ringnfs-keeper" and int(rest.split()[1]) == pid:
            found.append(int(name))
    return found


def end_keepers(*members):
    """Kills keepers that a failed test has left behind; their command line has the daemon's options."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/comm") as f, open(f"/proc/{name}/cmdline") as g:
                if f.read() == "ringnfs-keeper\n" and g.read().split("--config\0")[-1].rstrip("\0") in [m.config for m in members]:
                    os.kill(int(name), signal.SIGKILL)
        except OSError:
            continue


def lives(pid):
    """True if the process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def has_ended(pid, seconds=20.0):
    end = time.monotonic() + seconds
    while lives(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not lives(pid)


def rss(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_process(t, a):
    print("# the process")
    found = keepers_of(a.process.pid)
    t.equal("one keeper", len(found), 1)
    with open(f"/proc/{found[0]}/cmdline", "rb") as f:
        t.equal("its name", f.read().split(b"\0")[0], b"ringnfs-keeper"[:len(a.binary)])
    print(f"# it has {rss(found[0]) >> 10} KiB, the daemon {a.rss() >> 10}")
    with Daemon({"plain": "rw,insecure"}) as d:
        t.equal("a server without a cluster has none", keepers_of(d.process.pid), [])


def never_granted(t, what, other, held, until):
    """Asks the other member for the lock until `until` returns true: it must never be granted."""
    seen = set()
    end = time.monotonic() + 20
    while not until() and time.monotonic() < end:
        seen.add(no_lock(other, *held)["status"])
        time.sleep(0.005)
    t.check(what, seen and seen <= {n.DENIED, n.GRACE}, seen)


def test_killed(t, a, holder, other):
    print("# a member is killed, and not started again for a while")
    held = open_at(t, other, "locked")
    keeper, = keepers_of(a.process.pid)
    conn = socket.create_connection(("127.0.0.1", a.port))
    a.process.send_signal(signal.SIGKILL)
    since = time.monotonic()
    select.select([conn], [], [], 20)
    took = time.monotonic() - since
    print(f"# its connection ended {took * 1e3:.1f} ms later")
    t.check("connections end at once", took < AT_ONCE, took)
    a.process.wait()
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", a.port))
        s.listen()
    conn.close()
    never_granted(t, "its lock is given to nobody", other, held, lambda: not lives(keeper))
    took = time.monotonic() - since
    print(f"# the keeper ended {took:.2f} s later")
    t.check("when the other grants no new locks", DEAD - 0.5 < took < DEAD + 2 * SOON, took)
    t.equal("LOCK at the other", no_lock(other, *held)["status"], n.GRACE)
    a.start()
    holder.back()
    finish_grace(t, holder, other, held)


def finish_grace(t, holder, other, held):
    t.equal("RECLAIM_COMPLETE", holder.c.reclaim_complete(), n.OK)
    t.equal("what was reclaimed is locked", await_status(lambda: no_lock(other, *held), n.GRACE)["status"], n.DENIED)


def test_started_again(t, a, holder, other):
    print("# a member is killed and started at once")
    held = open_at(t, other, "locked")
    keeper, = keepers_of(a.process.pid)
    a.killed()
    a.start()
    never_granted(t, "its lock is given to nobody", other, held, lambda: not lives(keeper))
    holder.back()
    finish_grace(t, holder, other, held)


def test_keeper_killed(t, a, holder, other):
    print("# the keeper is killed")
    held = open_at(t, other, "locked")
    keeper, = keepers_of(a.process.pid)
    os.kill(keeper, signal.SIGTERM)
    os.kill(keeper, signal.SIGKILL)
    never_granted(t, "its lock is given to nobody", other, held, lambda: not a.alive())
    t.equal("the daemon ends", a.process.wait(20), ENDED)
    t.check("the log says why", a.wait_log("keeps the locks of member a over a crash has ended"))
    a.start()
    holder.back()
    finish_grace(t, holder, other, held)


def main():
    t = Count()
    with two_members(t) as (a, b, _):
        try:
            holder, other = Holder(t, a, "holder", "locked"), Holder(t, b, "other", "others")
            test_process(t, a)
            test_killed(t, a, holder, other)
            test_started_again(t, a, holder, other)
            test_keeper_killed(t, a, holder, other)
            last = keepers_of(a.process.pid) + keepers_of(b.process.pid)
            stop_all(t, a, b)
            t.check("keepers end with their daemons", all(has_ended(k) for k in last), last)
        finally:
            end_keepers(a, b)
    result(t)


if __name__ == "__main__":
    main()
