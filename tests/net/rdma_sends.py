#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Quiet Sends: most short replies over RDMA make no completion, and none of them is in the way of what follows.

With few credits there are few contexts for Sends, of which quiet ones may have at most half. Each client has replies with and without
RDMA Writes under way at once, so that signalled Sends follow quiet ones in every order.
"""
import os
import random
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import rpcclient as r
from rdmaclient import Peer

PORT, HOST = 20049, "127.0.0.1"
CALLS, ROUNDS = 340, 60
QUIET = 16  # in a row, with at least 32 credits
CONTENT = random.Random(1).randbytes(256 << 10)


class Bench:
    def __init__(self, t, f, d, credits):
        self.t, self.f, self.d, self.credits = t, f, d, credits
        with open(os.path.join(d.exports["x"], "file"), "wb") as file:
            file.write(CONTENT)
        with d.connect() as c:
            self.fh = c.nfs(r.LOOKUP, r.diropargs(d.root(c, "x"), "file"))["fh"]

    def peer(self):
        return Peer(self.f.environment(), before=self.f.command("client")).connect(HOST, PORT)

    def counters(self):
        """{"replies": , "posts": , "completions": } over RDMA."""
        since = len(self.d.read_log())
        self.d.process.send_signal(signal.SIGUSR1)
        self.d.wait_log(r"rdma: .*\d+ completions", since)
        line = re.search(r"rdma: .*completions", self.d.read_log()[since:]).group()
        return {word: int(re.search(rf"(\d+) {word}", line).group(1)) for word in ("replies", "posts", "completions")}


def test_one_by_one(b):
    p = b.peer()
    before = b.counters()
    for _ in range(CALLS):
        if p.nfs(r.GETATTR, r.opaque(b.fh))["status"]:
            raise SystemExit("GETATTR fails")
    now = b.counters()
    n = {word: now[word] - before[word] for word in now}
    print(f"{b.credits} credits: {n['completions']} completions and {n['posts']} posts for {n['replies']} replies", flush=True)
    b.t.equal(f"{b.credits} credits: replies", n["replies"], CALLS)
    if b.credits == 1:
        b.t.check("the only context is never quiet", n["completions"] >= 2 * CALLS - 1, n)
    elif b.credits > 2 * QUIET:
        b.t.check("a signalled Send follows each 16 quiet ones", n["completions"] <= CALLS + CALLS // (QUIET + 1) + 1, n)
    p.close()


def test_mixed(b):
    """As many calls at once as there are credits, one of them a READ by a Write chunk."""
    p, chance, bad = b.peer(), random.Random(b.credits), []
    for _ in range(ROUNDS):
        depth = chance.randint(1, min(b.credits, 20))
        reading = chance.randrange(2 * depth)  # not in each round
        off = chance.randrange(len(CONTENT) - 65536)
        procs = {}
        for i in range(depth):
            proc, args = (r.READ, r.read_args(b.fh, off, 65536)) if i == reading else (r.GETATTR, r.opaque(b.fh))
            message = p.call_for(proc, args)
            procs[message[:4]] = proc
            p.send(message)
        while procs:
            raw = p.receive(60)
            if raw is None:
                bad.append(f"{len(procs)} of {depth} calls are not answered")
                break
            proc = procs.pop(raw[:4])
            got = p.reply(proc, raw)
            if got["status"] or (proc == r.READ and got["data"] != CONTENT[off:off + 65536]):
                bad.append((r.NAMES[proc], got["status"]))
    b.t.check(f"{b.credits} credits: {ROUNDS} rounds of calls are answered as they should", not bad, bad[:3])
    p.close()


def main():
    t = harness.Count()
    for credits in (1, 2, 3, 5, 128):
        settings = {"rdma.enabled": "yes", "rdma.port": PORT, "rdma.credits": credits}
        with fabric.Fabric(f"sv0={HOST}") as f:
            with harness.Daemon({"x": "rw,insecure,no_root_squash"}, settings, before=f.command("server"), env=f.environment()) as d:
                b = Bench(t, f, d, credits)
                test_one_by_one(b)
                test_mixed(b)
                harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    sys.exit(main())
