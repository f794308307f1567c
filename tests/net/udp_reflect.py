#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Datagrams with a forged source, by a raw socket: the host whose address they bear gets no more answers than there were calls, and no
more bytes than doc/design/udp.md allows."""
import os
import socket
import struct
import time

import harness
import rpcclient as r
from control import Control
from rpcclient import opaque, u32, u64
from scrape import Growth

NLM, RQUOTA, NFSACL = 100021, 100011, 100227
OPTIONS = "rw,insecure,no_root_squash"
HOSTS = ("127.0.0.0/29",)
ADMITTED, STRANGER = "127.0.0.6", "127.0.0.9"
DATA, RATION, RATION_HANDLE = 32 << 10, 64 << 10, 32 << 20
EXPORTS = 40
READS = 5000
UDP_HEADERS = 8


class Forger:
    """Sends to the daemon in the name of another host, and that host, which looks at what it gets."""

    def __init__(self, port, source):
        self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.victim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.victim.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUFFORCE if hasattr(socket, "SO_RCVBUFFORCE") else 33, 256 << 20)
        self.victim.bind((source, 0))
        self.source, self.port, self.sent, self.calls = source, port, 0, 0
        self.got = []

    def send(self, message):
        at = self.victim.getsockname()[1]
        udp = struct.pack(">HHHH", at, self.port, UDP_HEADERS + len(message), 0) + message  # no checksum
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0, socket.inet_aton(self.source),
                         socket.inet_aton("127.0.0.1"))
        self.raw.sendto(ip + udp, ("127.0.0.1", 0))
        self.sent += len(message)
        self.calls += 1

    def take(self, seconds):
        """Reads until nothing has come for so long."""
        self.victim.settimeout(seconds)
        try:
            while True:
                self.got.append(len(self.victim.recv(1 << 16)))
        except TimeoutError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.raw.close()
        self.victim.close()


def procedures(path, fh):
    """Every procedure of every program, with arguments of several kinds."""
    for prog, versions, procs in ((r.MOUNT, (1, 2, 3, 4), 7), (NLM, (1, 3, 4, 5), 24), (r.NFS, (2, 3, 4), 23), (RQUOTA, (1, 2, 3), 6),
                                  (NFSACL, (2, 3, 4), 5), (100000, (2, 3, 4), 5)):
        for vers in versions:
            for proc in range(procs):
                for args in (b"", opaque(fh) + u64(0) + u32(DATA), fh[:32].ljust(32, b"\0") + u32(0) * 3, r.name(path)):
                    yield r.call_message(prog, vers, proc, args, r.auth_none())


def test_stranger(t, d, fh):
    """A host that no export admits: no answer is longer than its call."""
    with Forger(d.port, STRANGER) as f:
        longest = 0
        for message in procedures(d.exports["x"], fh):
            before = len(f.got)
            f.send(message)
            f.take(0.003)
            longest = max([longest, *(n - len(message) for n in f.got[before:])])
        f.take(1)
        t.check("a stranger gets something", f.got)
        t.check("a stranger gets no more answers than calls in its name", len(f.got) <= f.calls, (len(f.got), f.calls))
        t.check("nor more bytes", sum(f.got) <= f.sent and longest <= 0, (sum(f.got), f.sent, longest))
        n = len(f.got)
        for _ in range(300):
            f.send(r.call_message(r.MOUNT, 3, r.EXPORT, cred=r.auth_none()))
        f.take(1)
        t.check("nor in a burst", len(f.got) - n <= 300 and sum(f.got) <= f.sent, (len(f.got) - n, sum(f.got), f.sent))


def flood(t, d, name, messages, ration, over):
    """Calls in the name of a host that is admitted: the server's count, as the host's socket may overflow. over: they ask for more
    than the ration, however slow the machine is."""
    with Forger(d.port, ADMITTED) as f:
        with Growth(d) as g:
            begin = time.monotonic()
            for i, message in enumerate(messages):
                f.send(message)
                if i % 20 == 0:
                    f.take(0.0005)
            f.take(0.5)
        seconds = time.monotonic() - begin
        out, answers = (g.of("ringnfs_sent_bytes_total", transport="udp"), len(f.got))
        allowed = (int(seconds) + 2) * ration + f.sent
        print(f"{name}: {f.calls} calls of {f.sent} bytes, {answers} answers of {sum(f.got)} bytes, {out:.0f} sent in {seconds:.1f} s", flush=True)
        t.check(f"{name}: bytes", out <= allowed, f"{out} of {allowed}")
        t.check(f"{name}: answers", answers <= f.calls, (answers, f.calls))
        t.check(f"{name}: some are left out", not over or g.of("ringnfs_udp_dropped_total", reason="rationed") >= 1)
        t.check(f"{name}: not all", answers >= 1)


def test_admitted(t, d, fh):
    flood(t, d, "the list of exports", (r.call_message(r.MOUNT, 3, r.EXPORT, cred=r.auth_none()) for _ in range(1000)), RATION, True)
    # Each call is another one, of which nothing is kept.
    flood(t, d, "READ with a handle", (r.call_message(r.NFS, 3, r.READ, r.read_args(fh, 0, DATA)) for _ in range(READS)), RATION_HANDLE, False)


def test_again(t, d, root):
    """One call, many times: kept replies count, too."""
    xid = r.next_xid()
    message = r.call_message(r.NFS, 3, r.MKDIR, r.mkdir_args(root, "made"), xid=xid)
    with Forger(d.port, ADMITTED) as f:
        for _ in range(200):
            f.send(message)
        f.take(1)
        t.check("a call that is sent again gets one answer each time, at most", 1 <= len(f.got) <= 200, len(f.got))
        t.equal("they are all one reply", len(set(f.got)), 1)


def test_messages(t, d, fh):
    """NLM's messages, which the server answers by calls: to the host that they seem to come from, and few."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rpcbind, Forger(d.port, ADMITTED) as f:
        rpcbind.bind((ADMITTED, 111))
        for i in range(500):
            args = opaque(b"%08d" % i) + u32(1) + opaque(b"victim") + opaque(fh) + opaque(b"%d" % i) + u32(i) + u64(0) + u64(10)
            f.send(r.call_message(NLM, 4, 6, args))  # TEST_MSG
        rpcbind.settimeout(2)
        asked, end = 0, time.monotonic() + 3
        try:
            while time.monotonic() < end:
                rpcbind.recv(4096)
                asked += 1
        except TimeoutError:
            pass
        f.take(0.2)
    t.check("questions where to answer: four at a time, sent four times", asked <= 4 * (4 + 16), asked)
    t.check("beside one answer to each call, no longer than it", len(f.got) <= 500 and sum(f.got) <= f.sent, (len(f.got), sum(f.got), f.sent))


def main():
    t = harness.Count()
    names = {"x": OPTIONS} | {f"export-{i}": OPTIONS for i in range(EXPORTS)}
    with Control({"udp.nfs": "yes", "nfs2.enabled": "yes"}, exports=names, hosts=HOSTS) as d:
        with d.connect() as c:
            root = d.root(c, "x")
            fh = c.nfs(r.CREATE, r.create_args(root, "file"))["fh"]
        with open(os.path.join(d.exports["x"], "file"), "wb") as file:
            file.write(os.urandom(DATA))
        test_stranger(t, d, fh)
        test_admitted(t, d, fh)
        test_again(t, d, root)
        test_messages(t, d, fh)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
