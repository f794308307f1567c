#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""READs whose data go from the page cache to the socket without a copy: the same bytes as by copying, whole records
whatever happens to the file or the reader, and pipes that are shared and come back."""
import os
import random
import re
import signal
import socket
import threading
import time

import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from held import Held

KIB, MIB = 1 << 10, 1 << 20
LEAST = 68 * KIB  # VFS_PAGES_LEAST
SIZE = 3 * MIB + 12345
SEED = int(os.environ.get("READ_PAGES_SEED", time.time_ns() & 0xffffffff))
rnd = random.Random(SEED)


class Client4(n4.Client):
    longest = 4 * MIB
    keeps = False


class T(Count):
    def __init__(self, daemon):
        super().__init__()
        self.d, self.c, self.held = daemon, daemon.connect(), Held(daemon)
        self.root, self.path = daemon.root(self.c, "rw"), daemon.exports["rw"]

    def file(self, name, data):
        with open(f"{self.path}/{name}", "wb") as f:
            f.write(data)
        return self.c.nfs(r.LOOKUP, r.lookup_args(self.root, name))["fh"]

    def read(self, fh, offset, count, conn=None):
        return (conn or self.c).nfs(r.READ, r.read_args(fh, offset, count))

    def spliced(self):
        """Bytes that were sent without a copy."""
        before = len(self.d.read_log())
        self.held.now()
        return int(re.search(r"bytes out, (\d+) without a copy", self.d.read_log()[before:])[1])

    def goes_by_pages(self, fh):
        """Does a READ of 1 MiB go without a copy on this machine and file system?"""
        before = self.spliced()
        self.read(fh, 0, MIB)
        return self.spliced() - before == MIB


def ask(conn, fh, offset, count):
    conn.send(r.call_message(r.NFS, 3, r.READ, r.read_args(fh, offset, count)))


def test_v3(t, fh, data):
    lens = [1, 4096, LEAST - 1, LEAST, LEAST + 1, LEAST + 2, LEAST + 4095, LEAST + 4096, MIB - 4096, MIB - 1, MIB, MIB + 1]
    offsets = [0, 1, 4095, 4096, 65536, MIB, MIB + 1, SIZE - MIB, SIZE - LEAST, SIZE - LEAST + 1, SIZE - 1, SIZE, SIZE + 5]
    cases = [(o, n) for o in offsets for n in lens] + [(rnd.randrange(SIZE), rnd.randrange(MIB)) for _ in range(60)]
    before = t.spliced()
    wrong = []
    for offset, count in cases:
        res = t.read(fh, offset, count)
        want = data[offset:offset + min(count, MIB)]
        if (res["status"], res["data"], res["count"], bool(res["eof"])) != (0, want, len(want), offset + len(want) >= SIZE):
            wrong.append((offset, count, res["status"], len(res["data"]), res["eof"]))
    t.equal("READs by NFSv3 with wrong results: offset, count, status, length, eof", wrong, [])
    t.check("some of these data were not copied", t.spliced() > before + 10 * MIB)
    before = t.spliced()
    for offset in (0, MIB):
        t.read(fh, offset, LEAST - 1)
    t.equal("bytes of short READs that were not copied", t.spliced() - before, 0)


def test_v4(t, data):
    c = Client4(t.d.port, "reader", 2)
    c.register()
    c.reclaim_complete()
    fh = c.path(t.path + "/data")
    before = t.spliced()
    # The replies of a session are hardly longer than 1 MiB.
    for reads in ([(0, MIB)], [(5, LEAST)], [(0, LEAST + 1), (MIB, 2 * LEAST - 3)],
                  [(0, 10), (4096, LEAST + 2), (SIZE - LEAST, 2 * LEAST), (SIZE, 5)], [(LEAST * i, LEAST) for i in range(3)]):
        results = c.compound(n4.putfh(fh), *(op for o, n in reads for op in (n4.read(n4.ANONYMOUS, o, n), (n4.GETFH, b""))))
        t.equal(f"statuses of READs {reads}", {x["status"] for x in results}, {0})
        got = [x for x in results if x["op"] == n4.READ]
        t.check(f"data of READs {reads}", [x["data"] for x in got] == [data[o:o + n] for o, n in reads])
        t.equal(f"eof of READs {reads}", [bool(x["eof"]) for x in got], [o + n >= SIZE for o, n in reads])
        t.equal(f"handles between the data of READs {reads}", {x.get("fh") for x in results if x["op"] == n4.GETFH}, {fh})
    t.check("some of these data were not copied", t.spliced() > before + MIB + 5 * LEAST)
    t.equal("an unknown operation behind a READ", [x["status"] for x in c.compound(n4.putfh(fh), n4.read(n4.ANONYMOUS, 0, MIB), (9999, b""))],
            [0, 0, 10044])
    c.close()
    kept = Client4(t.d.port, "keeper", 2)
    kept.keeps = True
    kept.register()
    kept.reclaim_complete()
    before = t.spliced()
    ops = (n4.putfh(fh), n4.read(n4.ANONYMOUS, 0, LEAST))
    first = kept.compound(*ops)
    kept.seqid -= 1
    again = kept.compound(*ops)
    t.equal("a kept READ, and its replay", (first[-1].get("data", b"")[:10], first == again),
            (data[:10] if first[-1]["status"] == 0 else b"", True))
    t.equal("bytes of a reply to be kept that were not copied", t.spliced() - before, 0)
    kept.close()


def well_formed(res, data):
    """Are these bytes of the file, or the zeros of one that was cut and grows again?"""
    got = res["data"]
    if res["status"] or res["count"] != len(got):
        return False
    return got == data[:len(got)] or all(a in (0, b) for a, b in zip(got, data))


def test_truncation(t):
    """The file shrinks and grows while it is read: each reply is as long as it says."""
    data = bytes(b"0123456789abcdef") * (MIB // 16)
    fh = t.file("cut", data)
    stop = threading.Event()
    local = random.Random(SEED + 1)

    def cut():
        fd = os.open(t.path + "/cut", os.O_RDWR)
        while not stop.is_set():
            os.ftruncate(fd, 512 * local.randrange(2049))
            os.pwrite(fd, data, 0)
        os.close(fd)

    cutter = threading.Thread(target=cut)
    cutter.start()
    wrong, lengths = [], set()
    try:
        for _ in range(150):
            res = t.read(fh, 0, MIB)
            lengths.add(len(res["data"]))
            if not well_formed(res, data):
                wrong.append((res["status"], res["count"], len(res["data"])))
    finally:
        stop.set()
        cutter.join()
    t.equal("replies that are wrong", wrong, [])
    t.check("READs met the file at several lengths", len(lengths) > 1, lengths)


def test_pieces(t, fh, data):
    """A reader with a small window, that takes bytes in odd pieces, gets each reply whole."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * KIB)
        s.connect(("127.0.0.1", t.d.port))
        conn = r.Conn.__new__(r.Conn)
        conn.s = s
        s.settimeout(60)
        wants = [(rnd.randrange(SIZE // 4096) * 4096, rnd.choice([LEAST, MIB, 70000, 4096])) for _ in range(24)]
        for offset, count in wants:
            ask(conn, fh, offset, count)
        conn._take = lambda n: b"".join(pieces(s, n))
        good = 0
        for _ in wants:
            res = r.decode(r.READ, r.reply_body(conn.recv()))
            good += any(res["data"] == data[o:o + n] for o, n in wants)
        t.equal("whole replies", good, len(wants))


def pieces(s, n):
    while n:
        more = s.recv(min(n, rnd.randrange(1, 50000)))
        if not more:
            raise r.Closed()
        n -= len(more)
        yield more


def test_slow_readers(t, fh, data):
    """Connections that ask for much and read nothing hold a part of the pipes; others still get some."""
    slow = [t.d.connect() for _ in range(20)]
    for conn in slow:
        for i in range(8):
            ask(conn, fh, i % 2 * MIB, MIB)
    state = t.held.until(lambda s: s["requests"] >= 20)
    for conn in slow:
        conn.s.recv(1)
    state, gone = t.held.now(), False
    try:
        # Those that found no pipe may be the ones that are left, when the others' data are in the sockets: further ones find pipes.
        while state["pipes_in_use"] == 0:
            for conn in slow:
                ask(conn, fh, 0, MIB)
            state = t.held.now()
    except r.Closed:  # others needed the memory, and the machine is so busy that this was before
        gone = True
    t.check("pipes of readers that do not read", (0 if gone else 1) <= state["pipes_in_use"] <= (state["pipes"] + 1) // 2,
            (state["pipes_in_use"], state["pipes"]))
    before = t.spliced()
    other = r.Conn(t.d.port, source=("127.0.0.2", 0))
    for _ in range(20):
        t.check("data for another client", t.read(fh, 0, MIB, other)["data"] == data[:MIB])
    t.check("another client's data are not copied", t.spliced() - before >= 10 * MIB)
    other.close()
    for conn in slow[:10]:
        conn.close()
    for conn in slow[10:]:  # by a reset
        conn.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        conn.close()
    state = t.held.until(lambda s: s["pipes_in_use"] == 0)
    t.equal("pipes in use when they are gone", state["pipes_in_use"], 0)
    for i in range(state["pipes"] + 2):
        t.check("data by pipes that were not empty", t.read(fh, 4096 * i, MIB)["data"] == data[4096 * i:4096 * i + MIB])


def test_not_cached(t, data):
    """Data that are not in the page cache are read by copying, and are right."""
    fh = t.file("cold", data)
    fd = os.open(t.path + "/cold", os.O_RDWR)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    for offset in range(0, SIZE, MIB):
        t.check("data from the disk", t.read(fh, offset, MIB)["data"] == data[offset:offset + MIB])


def test_permission(t):
    data = rnd.randbytes(MIB)
    fh = t.file("secret", data)
    os.chmod(t.path + "/secret", 0o600)
    c = t.d.connect()
    args = r.read_args(fh, 0, MIB)
    t.equal("status for one who may not read", c.nfs(r.READ, args, r.auth_sys(1000, 1000))["status"], r.ACCES)
    t.check("data for one who may", c.nfs(r.READ, args)["data"] == data)
    t.equal("status for one who still may not", c.nfs(r.READ, args, r.auth_sys(1000, 1000))["status"], r.ACCES)
    c.close()


def main():
    print(f"READ_PAGES_SEED={SEED}")
    with Daemon({"rw": "rw,no_root_squash,insecure"}) as d:
        t = T(d)
        before = t.held.settled()
        data = rnd.randbytes(SIZE)
        fh = t.file("data", data)
        if not t.goes_by_pages(fh):
            harness.skip_all("data are copied here: the file system has no RWF_NOWAIT, or there are no pipes of 1 MiB")
        test_v3(t, fh, data)
        test_v4(t, data)
        test_truncation(t)
        test_pieces(t, fh, data)
        test_slow_readers(t, fh, data)
        test_not_cached(t, data)
        test_permission(t)
        t.equal("resources that were not given back", t.held.lost(before), {})
        t.c.close()
        harness.finish(t, d)
        harness.result(t)


signal.signal(signal.SIGPIPE, signal.SIG_IGN)
main()
