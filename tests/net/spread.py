#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Connections are spread over event threads, of both transports."""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "softverbs"))
import fabric  # adds this folder to the path
import harness
import rpcclient as r
from rdmaclient import Peer

PORT = 20049
EACH = 3  # connections of a transport on each event thread
SECONDS = 60  # for what takes two or three


class Threads:
    """What the daemon says of its event threads."""

    def __init__(self, d):
        self.d = d

    def now(self):
        """Connections of each event thread."""
        before = len(self.d.read_log())
        self.d.process.send_signal(signal.SIGUSR1)
        if not self.d.wait_log("held:", before):
            raise SystemExit("no answer to SIGUSR1")
        log = self.d.read_log()[before:]
        conns = {int(i): int(n) for i, n in re.findall(r"event thread (\d+): (\d+) connections, busy for \d+ ms", log)}
        return [conns[i] for i in range(len(conns))]

    def until(self, true):
        """The first state that is true, or the last one."""
        end = time.monotonic() + SECONDS
        while not true(state := self.now()) and time.monotonic() < end:
            time.sleep(0.1)
        return state


def test_spread(t, d, f, threads):
    """New connections go round."""
    with d.connect() as c:
        root = d.root(c, "x")
    n = len(threads.until(lambda s: sum(s) == 0))
    conns = [d.connect() for _ in range(EACH * n)]
    for c in conns:
        c.nfs(r.NULL)
    t.equal("TCP connections of each event thread", threads.until(lambda s: sum(s) == EACH * n), [EACH] * n)
    peers = [Peer(f.environment(), before=f.command(f"client{i}")) for i in range(EACH * n)]
    for p in peers:
        p.connect("127.0.0.1", PORT)
        p.nfs(r.GETATTR, r.getattr_args(root))
    t.equal("and RDMA connections as well", threads.until(lambda s: sum(s) == 2 * EACH * n), [2 * EACH] * n)
    for c in conns:
        c.close()
    t.equal("when those of TCP have ended", threads.until(lambda s: sum(s) == EACH * n), [EACH] * n)
    for p in peers:
        p.close()
    t.equal("when all have ended", sum(threads.until(lambda s: sum(s) == 0)), 0)


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
        test_spread(t, d, f, threads)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
