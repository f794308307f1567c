#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Memory of the server's that RDMA keys let a peer reach: over the software fabric as InfiniBand, as siw, and as hardware of iWARP.

Over iWARP an RDMA Read tells the peer where its data go (RFC 5040), and the fabric passes that on. A hostile client writes to
what it has learned: on the same connection once its call is answered, on another while the Read lasts, and all over the
neighbourhood while others write files. None of it may be taken, and no file may have a byte of it.
"""
import contextlib
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import rpcclient as r
from rdmaclient import Peer

PORT = 20049
HOST = "127.0.0.1"
SIZE = 256 << 10
SLAB = 2 << 20
FOREIGN = 0xEE
SECONDS = float(os.environ.get("RDMA_SINKS_SECONDS", 3))
FILES = 60  # of each victim at most, until the attack is over
VICTIMS = 2
PULLS, ROUNDS = 100, 5  # of 1 MiB for each measurement
KINDS = {"InfiniBand": "", "siw": ":siw", "iWARP": ":iwarp"}


class Bench:
    def __init__(self, t, kind, f, d):
        self.t, self.kind, self.f, self.d = t, kind, f, d
        with d.connect() as c:
            self.root = d.root(c, "x")
        self.peers = []

    def peer(self):
        p = Peer(self.f.environment(), before=self.f.command("client")).connect(HOST, PORT)
        self.peers.append(p)
        return p

    def status(self):
        return self.f.status(self.d.process.pid)

    def create(self, p, name):
        return p.nfs(r.CREATE, r.create_args(self.root, name))["fh"]

    def path(self, name):
        return os.path.join(self.d.exports["x"], name)

    def check(self, what, good, detail=""):
        return self.t.check(f"{self.kind}: {what}", good, detail)

    def equal(self, what, got, want):
        return self.t.equal(f"{self.kind}: {what}", got, want)


@contextlib.contextmanager
def bench(t, kind):
    settings = {"rdma.enabled": "yes", "rdma.port": PORT}
    with fabric.Fabric(f"sv0={HOST}{KINDS[kind]}") as f:
        with harness.Daemon({"x": "rw,insecure,no_root_squash"}, settings, before=f.command("server"), env=f.environment()) as d:
            b = Bench(t, kind, f, d)
            try:
                yield b
            finally:
                for p in b.peers:
                    p.kill()
            harness.finish(t, d)


def test_rights(b):
    """No region has rights for peers, but the sink of a Read while it lasts, where the hardware wants that."""
    p = b.peer()
    fh = b.create(p, "rights")
    many = p.nfs(r.MKDIR, r.mkdir_args(b.root, "many"))["fh"]
    for i in range(100):
        open(b.path(f"many/a-name-of-some-length-{i}"), "w").close()
    before = b.status()
    for i in range(10):
        data = os.urandom(1 << 20)
        p.nfs(r.WRITE, r.write_args(fh, 0, data))
        b.equal("data read back", p.nfs(r.READ, r.read_args(fh, 0, len(data)))["data"] == data, True)
        p.nfs(r.READDIR, r.readdir_args(many, count=65536))
    now = b.status()
    b.equal("regions that a peer can reach, afterwards", now["remote"], 0)
    want = 10 if b.kind == "iWARP" else 0
    b.equal("regions made for a peer to reach", now["remote_ever"] - before["remote_ever"], want)
    more = [b.peer() for _ in range(3)]
    b.equal("domains of three more connections", b.status()["pds"] - now["pds"], 3 if b.kind == "iWARP" else 0)
    for q in more:
        q.disconnect()
    b.check("they go with the connections", fabric.wait_for(lambda: b.status()["pds"] == now["pds"], 20), b.status())


def learn(p, b, fh):
    """A call of one's own tells where its data went."""
    p.nfs(r.WRITE, r.write_args(fh, 0, bytes([1]) * SIZE))
    sinks = [s for s in p.sinks() if s[3] == p.qp]
    b.check("a Read's sink is seen by the peer", sinks and sinks[0][2] == SIZE, sinks)
    return sinks[0]


def test_same_connection(b):
    p = b.peer()
    fh = b.create(p, "own")
    key, address, size, _ = learn(p, b, fh)
    b.equal("the sink is written again when its call is over", p.write(key, address, size), False)


def test_other_connection(b):
    """While the Read lasts: the peer does not answer it yet."""
    a, other = b.peer(), b.peer()
    fh = b.create(a, "slow")
    pid = a.process.pid
    n = b.f.status(pid)["connected"]
    b.equal("rule", b.f.control(pid, f"on request 1 qp {n} : stop-reading"), "ok")
    a.send(a.call_for(r.WRITE, r.write_args(fh, 0, bytes(SIZE))))
    seen = fabric.wait_for(lambda: any(s[3] == a.qp for s in a.sinks()), 10)
    if not b.check("the Read comes", seen):
        return
    key, address, size, _ = next(s for s in a.sinks() if s[3] == a.qp)
    other.put(bytes([FOREIGN]) * SIZE)
    if b.kind == "iWARP":
        b.check("its sink is there", b.status()["remote"] == 1, b.status())
    b.equal("another connection writes to the sink of a Read under way", other.write(key, address, 4096), False)


def test_key_that_stays(b):
    """The device does not end the key: what it let the peer change is not looked at, and the connection goes."""
    p = b.peer()
    fh = b.create(p, "stays")
    before = b.status()
    b.equal("rule", b.f.control(b.d.process.pid, "on dereg-mr 1 : fail 5"), "ok")
    p.send(p.call_for(r.WRITE, r.write_args(fh, 0, bytes([1]) * SIZE)))
    b.check("a connection whose key cannot be ended is closed", p.closed(20))
    b.equal("the rule took hold", b.status()["fired"], before["fired"] + 1)
    b.equal("bytes of the call in the file", os.path.getsize(b.path("stays")), 0)
    gone = fabric.wait_for(lambda: b.status()["pds"] == before["pds"] - 1 and b.status()["remote"] == 0, 20)
    b.check("its domain and all keys in it end with it", gone, b.status())


class Victim(threading.Thread):
    """Writes files until it is told to end; what was acknowledged is compared with what is in them."""

    def __init__(self, b, i, done):
        super().__init__()
        self.b, self.i, self.done, self.peer = b, i, done, b.peer()
        self.written = 0

    def run(self):
        while not self.done.is_set():
            fh = self.b.create(self.peer, f"v{self.i}-{self.written}")
            res = self.peer.nfs(r.WRITE, r.write_args(fh, 0, bytes([self.i]) * SIZE))
            if res["status"] != r.OK or res["count"] != SIZE:
                return
            self.written += 1

    def foreign(self):
        n = 0
        for k in range(self.written):
            with open(self.b.path(f"v{self.i}-{k}"), "rb") as f:
                n += f.read() != bytes([self.i]) * SIZE
        return n


def strike(b, p, sink):
    """Writes over the whole slab that the sink is in; how many were taken, of how many."""
    key, address, _, _ = sink
    base, taken, tried = address & ~(SLAB - 1), 0, 0
    p.put(bytes([FOREIGN]) * SIZE)
    for at in range(base, base + SLAB, SIZE):
        tried += 1
        if not p.write(key, at, SIZE):
            return taken, tried
        taken += 1
    return taken, tried


def test_neighbours(b):
    done = threading.Event()
    victims = [Victim(b, i + 1, done) for i in range(VICTIMS)]
    for v in victims:
        v.start()
    taken = tried = 0
    p = b.peer()
    fh = b.create(p, "own-of-the-attacker")
    start = time.monotonic()

    def goes_on():
        """For a while, and on a busy machine until both have come to write."""
        passed = time.monotonic() - start
        return passed < SECONDS or (passed < 120 and (tried <= 10 or sum(v.written for v in victims) <= 10))

    while goes_on():
        sink = learn(p, b, fh)
        t, n = strike(b, p, sink)
        taken, tried = taken + t, tried + n
        p.drop()
        p.connect(HOST, PORT)
        t, n = strike(b, p, sink)  # the same key on the next connection
        taken, tried = taken + t, tried + n
        p.drop()
        p.connect(HOST, PORT)
    done.set()
    for v in victims:
        v.join()
    files, foreign = sum(v.written for v in victims), sum(v.foreign() for v in victims)
    print(f"{b.kind}: {tried} RDMA Writes of the attacker, {taken} taken; {foreign} of {files} files of others have foreign bytes", flush=True)
    b.check("the attacker got to write", tried > 10, tried)
    b.check("the others got to write", files > 10, files)
    b.equal("Writes taken", taken, 0)
    b.equal("acknowledged files with foreign bytes", foreign, 0)


class Puller:
    """A client of WRITEs of 1 MiB, each of which the server pulls by an RDMA Read."""

    def __init__(self, b):
        self.peer = b.peer()
        self.message = self.peer.call_for(r.WRITE, r.write_args(b.create(self.peer, "rate"), 0, bytes(1 << 20), stable=r.UNSTABLE))

    def seconds(self):
        start = time.monotonic()
        for _ in range(PULLS):
            self.peer.send(self.message.replace(self.message[:4], r.u32(r.next_xid())))
            self.peer.receive()
        return (time.monotonic() - start) / PULLS


def print_cost(t):
    """Regions for each transfer beside slabs that are registered once, taking turns."""
    with bench(t, "siw") as once, bench(t, "iWARP") as each:
        pair = Puller(once), Puller(each)
        rounds = sorted(((b := pair[1].seconds()) / (a := pair[0].seconds()), a, b) for _ in range(ROUNDS))
    ratio, a, b = rounds[ROUNDS // 2]
    print(f"a WRITE of 1 MiB: {a * 1e6:.0f} us with slabs registered once, {b * 1e6:.0f} us with a region for each transfer; "
          f"ratio {ratio:.2f} ({rounds[0][0]:.2f} to {rounds[-1][0]:.2f})", flush=True)


def main():
    t = harness.Count()
    for kind in KINDS:
        with bench(t, kind) as b:
            test_rights(b)
            if kind != "InfiniBand":
                test_same_connection(b)
                test_other_connection(b)
                test_neighbours(b)
            if kind == "iWARP":
                test_key_that_stays(b)
    print_cost(t)
    harness.result(t)


if __name__ == "__main__":
    sys.exit(main())
