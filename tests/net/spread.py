#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Connections are spread over event threads, of both transports; and a thread that has too much to do gives one away."""
import os
import re
import signal
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import rpcclient as r
from rdmaclient import Peer

PORT = 20049
EACH = 3  # connections of a transport on each event thread
BATCH, COUNT = 32, 32768  # READs that a busy client has under way, and their bytes
SECONDS = 60  # for what takes two or three


class Threads:
    """What the daemon says of its event threads."""

    def __init__(self, d):
        self.d = d

    def now(self):
        """(connections of each event thread, moves so far)."""
        before = len(self.d.read_log())
        self.d.process.send_signal(signal.SIGUSR1)
        if not self.d.wait_log("held:", before):
            raise SystemExit("no answer to SIGUSR1")
        log = self.d.read_log()[before:]
        conns = {int(i): int(n) for i, n in re.findall(r"event thread (\d+): (\d+) connections, busy for \d+ ms", log)}
        return [conns[i] for i in range(len(conns))], int(re.search(r"(\d+) moved to another event thread", log)[1])

    def until(self, true):
        """The first state that is true, or the last one."""
        end = time.monotonic() + SECONDS
        while not true(state := self.now()) and time.monotonic() < end:
            time.sleep(0.1)
        return state


class Busy(threading.Thread):
    """Has one or two batches of READs under way, and finds out whether each call is answered once."""

    def __init__(self, conn, fh):
        super().__init__(daemon=True)
        self.conn, self.stop, self.answers, self.wrong = conn, False, 0, None
        args = r.read_args(fh, 0, COUNT)
        self.size = 4 + len(conn.exchange(r.call_message(r.NFS, 3, r.READ, args)))
        self.xids = [range(i * BATCH, (i + 1) * BATCH) for i in range(2)]
        self.calls = []
        for xids in self.xids:
            calls = [r.call_message(r.NFS, 3, r.READ, args, xid=x) for x in xids]
            self.calls.append(b"".join(r.u32(len(c) | 0x80000000) + c for c in calls))
        self.waits = [set(), set()]  # xids of each batch that are not answered yet

    def receive(self, into):
        """As many answers as a batch has; they may be of both."""
        got = 0
        while got < len(into):
            n = self.conn.s.recv_into(into[got:])
            if n == 0:
                raise r.Closed()
            got += n
        for i in range(BATCH):
            xid = struct.unpack_from(">I", into, i * self.size + 4)[0]
            if not any(xid in w for w in self.waits):
                raise ValueError(f"a second answer to {xid}, or to no call")
            for w in self.waits:
                w.discard(xid)
        self.answers += BATCH

    def run(self):
        into = memoryview(bytearray(self.size * BATCH))
        try:
            while not self.stop or any(self.waits):
                for calls, xids, waits in zip(self.calls, self.xids, self.waits):
                    if not waits and not self.stop:
                        self.conn.send_raw(calls)
                        waits.update(xids)
                if any(self.waits):
                    self.receive(into)
        except Exception as e:  # told by the main thread
            self.wrong = repr(e)


def test_spread(t, d, f, threads):
    """New connections go round."""
    with d.connect() as c:
        root = d.root(c, "x")
    n = len(threads.until(lambda s: sum(s[0]) == 0)[0])
    conns = [d.connect() for _ in range(EACH * n)]
    for c in conns:
        c.nfs(r.NULL)
    t.equal("TCP connections of each event thread", threads.until(lambda s: sum(s[0]) == EACH * n)[0], [EACH] * n)
    peers = [Peer(f.environment(), before=f.command(f"client{i}")) for i in range(EACH * n)]
    for p in peers:
        p.connect("127.0.0.1", PORT)
        p.nfs(r.GETATTR, r.getattr_args(root))
    t.equal("and RDMA connections as well", threads.until(lambda s: sum(s[0]) == 2 * EACH * n)[0], [2 * EACH] * n)
    for c in conns:
        c.close()
    t.equal("when those of TCP have ended", threads.until(lambda s: sum(s[0]) == EACH * n)[0], [EACH] * n)
    for p in peers:
        p.close()
    t.equal("when all have ended", sum(threads.until(lambda s: sum(s[0]) == 0)[0]), 0)
    return n


def test_move(t, d, threads, n):
    """Two busy clients on one event thread: one of them goes to another thread, and every call is answered once."""
    with d.connect() as c:
        fh = c.nfs(r.CREATE, r.create_args(d.root(c, "x"), "f"))["fh"]
        c.nfs(r.WRITE, r.write_args(fh, 0, os.urandom(COUNT)))
    threads.until(lambda s: sum(s[0]) == 0)
    conns = []
    for _ in range(2 * n):
        conns.append(d.connect())
        conns[-1].nfs(r.NULL)
    t.equal("connections of each event thread", threads.until(lambda s: sum(s[0]) == 2 * n)[0], [2] * n)
    busy = [Busy(conns[0], fh), Busy(conns[n], fh)]
    for b in busy:
        b.start()
    counts, moved = threads.until(lambda s: s[1] > 0)
    t.check("a connection has moved", moved > 0)
    t.check("away from the busy thread", counts[0] == 1 and max(counts) == 3, counts)
    seen = [b.answers for b in busy]
    end = time.monotonic() + SECONDS
    while any(b.answers <= s + 10 * BATCH and b.is_alive() for b, s in zip(busy, seen)) and time.monotonic() < end:
        time.sleep(0.01)
    for b in busy:
        b.stop = True
    for b, s in zip(busy, seen):
        b.join(SECONDS)
        t.check("a busy client goes on", b.answers > s + 10 * BATCH, (s, b.answers))
        t.equal("every call of it has one answer", b.wrong, None)
    print(f"{sum(b.answers for b in busy)} READs, {threads.now()[1]} moves")
    for c in conns:
        c.nfs(r.NULL)
        c.close()


def main():
    if os.geteuid() != 0:
        harness.skip_all("file handles and identities need root")
    if len(os.sched_getaffinity(0)) < 2:
        harness.skip_all("one processor has one event thread")
    t = harness.Count()
    settings = {"rdma.enabled": "yes", "rdma.port": PORT}
    with fabric.Fabric() as f, harness.Daemon({"x": "rw,insecure,no_root_squash"}, settings, before=f.command("server"),
                                              env=f.environment()) as d:
        threads = Threads(d)
        n = test_spread(t, d, f, threads)
        test_move(t, d, threads, n)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
