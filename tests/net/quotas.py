#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Clients that take all they can get, beside one that asks politely: who gets what, and how much memory it costs.

Prints figures and asserts what does not depend on the machine: everything the polite client asks is answered, a flood gets no
more than so many calls for each of its calls, memory stays within memory_max, and everything held comes back.
SHARES_CONNECTIONS idle connections (2000), floods from SHARES_FLOOD connections (256), SHARES_CALLS polite calls (640).
"""
import os
import resource
import time

import harness
import rpcclient as r
from flood import Flood, deaf, record
from harness import Count, Daemon
from held import Held

IDLE = int(os.environ.get("SHARES_CONNECTIONS", 2000))
FLOOD = int(os.environ.get("SHARES_FLOOD", 256))
CALLS = int(os.environ.get("SHARES_CALLS", 640))
MEMORY = 128  # MiB: less than a flood would take if it could
BESIDE = 96  # MiB that are no matter of memory_max: the program, the reply cache, rings, the allocator's losses
AT_ONCE = 64  # calls that the polite client has under way; so many that what they wait for a processor counts little
FEW = 8  # connections: enough to always have calls waiting
RATIO = 8  # calls of a flood from FLOOD connections for one of a flood from FEW: about 1 if shared by client, else FLOOD / FEW
MOST = 400  # calls that a flood may have answered in the time of one polite call: served in order of arrival, it has hundreds
POLITE = "127.0.0.2"
MIB = 1 << 20


def peak(d):
    """Most memory that the daemon has had resident, in MiB."""
    with open(f"/proc/{d.process.pid}/status") as f:
        return next(int(line.split()[1]) >> 10 for line in f if line.startswith("VmHWM"))


class Polite:
    """A client that asks a bounded number of things at a time, and wants them all answered."""

    def __init__(self, t, d, root, fh):
        self.t, self.conn, self.root, self.fh = t, d.connect(source=(POLITE, 0)), root, fh

    def work(self, what, n, message, at_once=AT_ONCE):
        """n calls; returns (calls a second, how many at a time, the longest wait for so many)."""
        start, longest, good = time.monotonic(), 0, 0
        for _ in range(n // at_once):
            begin = time.monotonic()
            self.conn.send_raw(record(message) * at_once)
            for _ in range(at_once):
                x = r.reply_body(self.conn.recv())
                good += x.u32() == r.OK
            longest = max(longest, time.monotonic() - begin)
        self.t.equal(f"answers to a polite client {what}", good, n // at_once * at_once)
        return n / (time.monotonic() - start), at_once, longest

    def getattr(self):
        return r.call_message(r.NFS, 3, r.GETATTR, r.getattr_args(self.fh))

    def read(self, size):
        return r.call_message(r.NFS, 3, r.READ, r.read_args(self.fh, 0, size))


def show(what, polite, d, more=""):
    rate, at_once, longest = polite
    print(f"{what:44} polite {rate:7.0f} calls/s, {at_once} of them within {longest * 1000:6.1f} ms; {more}"
          f"memory {d.rss() >> 20} MiB, peak {peak(d)}", flush=True)


def test_alone(t, d, p):
    for name, message in (("GETATTR", p.getattr()), ("READ 64 KiB", p.read(65536))):
        show(f"{name} alone", p.work("alone", CALLS, message), d)


def test_flood(t, d, p):
    """The same client's share beside a flood, whatever the number of connections that it comes from."""
    for name, message in (("GETATTR", p.getattr()), ("READ 64 KiB", p.read(65536))):
        for conns in (1, FLOOD):
            flood = Flood(d, message, conns, "127.0.0.3")
            try:
                before = flood.replies()
                got = p.work(f"beside {conns} connections of {name}", CALLS, message)
                others = flood.replies() - before
            finally:
                flood.stop()
            show(f"{name} beside a flood of it from {conns}", got, d, f"the flood {others / CALLS * got[0]:.0f}/s; ")
            t.check(f"a flood of {name} from {conns} connections gets {others / CALLS:.0f} calls for one", others <= MOST * CALLS,
                    f"at most {MOST}")


def test_two_floods(t, d, p):
    """Two clients that take all they can, one by few connections."""
    for name, message in (("GETATTR", p.getattr()), ("READ 64 KiB", p.read(65536))):
        floods = [Flood(d, message, FEW, "127.0.0.3"), Flood(d, message, FLOOD, "127.0.0.4")]
        before = [f.replies() for f in floods]
        time.sleep(1)
        few, many = (f.replies() - b for f, b in zip(floods, before))
        for f in floods:
            f.stop()
        print(f"two floods of {name:30} {few} calls/s by {FEW} connections, {many} by {FLOOD}", flush=True)
        t.check(f"a client gets no more {name} by {FLOOD} connections", many <= RATIO * few, f"{many} calls for {few}")


def test_deaf(t, d, p):
    """Clients that never take a reply: they are closed in the end, and until then hold their share only."""
    conns = deaf(d, p.read(MIB >> 2), 20, "127.0.0.4")
    time.sleep(0.5)
    show("READ 1 MiB beside 20 that take no replies", p.work("beside deaf ones", 64, p.read(MIB), 8), d)
    show("GETATTR beside them", p.work("beside deaf ones", CALLS, p.getattr()), d)
    end = time.monotonic() + 60
    while d.sockets() > 5 and time.monotonic() < end:
        time.sleep(0.1)
    t.check("who takes no replies is closed", d.sockets() <= 5, f"{d.sockets()} sockets")
    for s in conns:
        s.close()


def may_open(n):
    """Opens connections, up to n or the limit of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    want = n + 500
    if soft < want:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (want, max(want, hard)))
        except (ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            n = min(n, hard - 500)
    return n


def test_many(t, d, p):
    """Connections that do little, from 200 addresses."""
    n, rss, fds = may_open(IDLE), d.rss(), d.fds()
    conns, start = [], time.monotonic()
    for i in range(n):
        conns.append(d.connect(source=(f"127.0.1.{i % 200 + 1}", 0)))
    for c in conns:
        c.send(p.getattr())
    for c in conns:
        r.reply_body(c.recv())
    took = time.monotonic() - start
    print(f"{n} connections, each with a call answered: {took:.1f} s, {(d.rss() - rss) // n} bytes and "
          f"{(d.fds() - fds) / n:.2f} descriptors each", flush=True)
    show(f"GETATTR beside {n} connections", p.work("beside many", CALLS, p.getattr()), d)
    for c in conns:
        c.send(p.getattr())
    good = sum(r.reply_body(c.recv()).u32() == r.OK for c in conns)
    t.equal("all of them are still served", good, n)
    for c in conns:
        c.close()


def test_short(t):
    """With the least memory more calls wait for some than there are stacks without memory. They go on and give it back, though no other
    call can begin."""
    with Daemon({"x": "rw,no_root_squash,insecure"}, {"server.memory_max": "64M", "tcp.stall_timeout": "2s"}, nofile=4000) as d:
        with d.connect() as c:
            root = d.root(c, "x")
            fh = c.nfs(r.CREATE, r.create_args(root, "f"))["fh"]
            c.nfs(r.WRITE, r.write_args(fh, 0, os.urandom(MIB)))
        p = Polite(t, d, root, fh)
        conns = [s for host in range(40) for s in deaf(d, p.read(MIB >> 2), 4, f"127.0.1.{host + 1}")]
        show("READ 1 MiB beside 40 hosts that take no replies", p.work("beside many deaf hosts", 8, p.read(MIB), 8), d)
        p.conn.close()
        for s in conns:
            s.close()
        harness.finish(t, d)


def main():
    t = Count()
    test_short(t)
    settings = {"server.memory_max": f"{MEMORY}M", "tcp.stall_timeout": "2s"}
    with Daemon({"x": "rw,no_root_squash,insecure"}, settings, nofile=IDLE * 2 + 4000) as d:
        with d.connect() as c:
            root = d.root(c, "x")
            fh = c.nfs(r.CREATE, r.create_args(root, "f"))["fh"]
            c.nfs(r.WRITE, r.write_args(fh, 0, os.urandom(MIB)))
        held = Held(d)
        before = held.settled()
        p = Polite(t, d, root, fh)
        for test in (test_alone, test_flood, test_two_floods, test_deaf, test_many):
            test(t, d, p)
            if not t.check(f"the daemon lives after {test.__name__}", d.alive()):
                break
        if d.alive():
            p.conn.close()
            t.equal("everything that was held has come back", held.lost(before), {})
            most = peak(d)
            print(f"memory_max {MEMORY} MiB, most that was resident {most} MiB", flush=True)
            if not d.sanitized():
                t.check("memory stays within memory_max", most <= MEMORY + BESIDE, f"{most} MiB")
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
