#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The same as quotas.py over RDMA, on the software fabric: floods, clients that take no reply, very many connections.

RDMA_SHARES_CONNECTIONS (1000) connections of one client; memory_max is chosen so that not all can have all their credits.
"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import rpcclient as r
from held import Held
from rdmaclient import Peer
from quotas import peak

CROWD = os.path.abspath("tests/rdma/crowd")
MANY = int(os.environ.get("RDMA_SHARES_CONNECTIONS", 1000))
MEMORY = int(os.environ.get("RDMA_SHARES_MEMORY", 288))  # MiB
FLOOD = 64
CALLS = 300
MOST = 2000  # calls of a flood for one of a client that waits for each of its own, and for a processor in between
FEW = 4  # enough to always have calls waiting
RATIO = 7  # a flood's calls from FLOOD connections for one of a flood from FEW: about 1 if shared by client, else FLOOD / FEW
BESIDE = 96  # MiB, see quotas.py
PORT = 20049


class Crowd:
    def __init__(self, f, source, conns, window, message, *more):
        command = f.command("crowd") + [CROWD, "127.0.0.1", str(PORT), source, str(conns), str(window), message.hex(), *more]
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=f.environment())
        self.opened = self.numbers()[0]

    def say(self, line):
        self.p.stdin.write(line.encode() + b"\n")
        self.p.stdin.flush()

    def numbers(self):
        line = self.p.stdout.readline().decode()
        if not line:
            raise SystemExit("the crowd has ended")
        return [int(w) for w in line.replace(",", " ").replace("..", " ").split() if w.isdigit()]

    def ask(self, line):
        self.say(line)
        return self.numbers()

    def flood(self):
        """Begins, and returns when it has got somewhere."""
        self.say("flood")
        self.numbers()

    def end(self):
        self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        self.p.stdout.close()


def getattrs(peer, fh, n):
    """n calls, one after the other: how many were right, and in how many seconds."""
    start, good = time.monotonic(), 0
    for _ in range(n):
        good += peer.nfs(r.GETATTR, r.getattr_args(fh))["status"] == r.OK
    return good, time.monotonic() - start


def test_flood(t, d, f, polite, fh, call):
    good, alone = getattrs(polite, fh, CALLS)
    t.equal("answers alone", good, CALLS)
    print(f"alone                            polite {CALLS / alone:7.0f} calls/s", flush=True)
    for conns in (1, FLOOD):
        crowd = Crowd(f, "127.0.0.3", conns, 32, call)
        t.equal("flooding connections", crowd.opened, conns)
        crowd.flood()
        good, took = getattrs(polite, fh, CALLS)
        crowd.say("enough")
        others = crowd.numbers()[0]
        crowd.end()
        t.equal(f"answers beside a flood from {conns}", good, CALLS)
        t.check(f"a flood from {conns} gets {others / CALLS:.0f} calls for one", others < MOST * CALLS)
        print(f"beside a flood from {conns:4}         polite {CALLS / took:7.0f} calls/s; the flood {others / took:.0f}/s; "
              f"memory {d.rss() >> 20} MiB", flush=True)


def test_two_floods(t, d, f, polite, fh, call):
    """Two clients that take all they can, one by few connections."""
    crowds = [Crowd(f, "127.0.0.3", FEW, 32, call), Crowd(f, "127.0.0.4", FLOOD, 32, call)]
    for c in crowds:
        c.flood()
    time.sleep(1.5)
    for c in crowds:
        c.say("enough")
    few, many = (c.numbers()[0] for c in crowds)
    for c in crowds:
        c.end()
    print(f"two floods                       {few / 1.5:.0f} calls/s by {FEW} connections, {many / 1.5:.0f} by {FLOOD}", flush=True)
    t.check(f"a client gets no more by {FLOOD} connections", many <= RATIO * few, f"{many} calls for {few}")


def test_deaf(t, d, f, polite, fh, call):
    """They post no Receives: what is sent to them is retried for ever. With more replies than may be quiet, they are closed after
    stall_timeout."""
    conns = 10
    crowd = Crowd(f, "127.0.0.4", conns, 32, call, "deaf")
    crowd.say("deaf")
    sent = crowd.numbers()[0]
    good, took = getattrs(polite, fh, CALLS)
    t.equal("answers beside clients without Receives", good, CALLS)
    print(f"beside {sent} that post no Receives  polite {CALLS / took:7.0f} calls/s", flush=True)
    end = time.monotonic() + 60
    while (closed := crowd.ask("closed")[0]) < conns and time.monotonic() < end:
        time.sleep(0.1)
    t.equal("who posts no Receives is closed", closed, conns)
    crowd.end()


def test_many(t, d, f, polite, fh, call):
    rss, start = d.rss(), time.monotonic()
    crowd = Crowd(f, "127.0.0.5", MANY, 1, call)
    took = time.monotonic() - start
    n = crowd.opened
    t.check("as many connections as asked for get in", n == MANY, f"{n} of {MANY}")
    answered, of, least, most = crowd.ask("round")
    t.equal("connections that are served", answered, of)
    t.check("with fewer credits for the later ones", least < most or MANY < 100, f"{least}..{most}")
    each = (d.rss() - rss) // n
    good, seconds = getattrs(polite, fh, CALLS)
    t.equal("answers beside many", good, CALLS)
    print(f"{n} connections in {took:.1f} s, credits {most} down to {least}, {each} bytes resident each; beside them "
          f"polite {CALLS / seconds:.0f} calls/s; memory {d.rss() >> 20} MiB", flush=True)
    answered, of, *_ = crowd.ask("round")
    t.equal("connections that are still served", answered, of)
    crowd.end()


def main():
    t = harness.Count()
    settings = {"rdma.enabled": "yes", "rdma.port": PORT, "rdma.stall_timeout": "2s", "rdma.max_connections": MANY + 100,
                "server.memory_max": f"{MEMORY}M"}
    with fabric.Fabric() as f, harness.Daemon({"x": "rw,insecure,no_root_squash"}, settings, before=f.command("server"),
                                              env=f.environment()) as d:
        with d.connect() as c:
            root = d.root(c, "x")
            fh = c.nfs(r.CREATE, r.create_args(root, "f"))["fh"]
        call = r.call_message(r.NFS, 3, r.GETATTR, r.getattr_args(fh))
        polite = Peer(f.environment(), before=f.command("polite")).connect("127.0.0.1", PORT)
        getattrs(polite, fh, 1)
        held = Held(d)
        before = held.settled()
        for test in (test_flood, test_two_floods, test_deaf, test_many):
            test(t, d, f, polite, fh, call)
            if not t.check(f"the daemon lives after {test.__name__}", d.alive()):
                break
        if d.alive():
            t.equal("everything that was held has come back", held.lost(before), {})
            print(f"memory_max {MEMORY} MiB, most that was resident {peak(d)} MiB", flush=True)
            if not d.sanitized():
                t.check("memory stays within memory_max", peak(d) <= MEMORY + BESIDE, f"{peak(d)} MiB")
        polite.kill()
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
