#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two ringnfsd on a file system that other machines share: no lock is granted by both, whatever the file system answers.

The file system is this script (FUSE): it keeps the locks, delays them, refuses them, and fails to unlock."""
import os
import struct
import tempfile
import threading
import time

import harness
import mounts
import nfs4client as n4
import rpcclient as r
import waiting_reads as fuse
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

GETLK, SETLK, WRITE, SETATTR, ACCESS, FSYNC = 31, 32, 16, 4, 34, 20
POSIX_LOCKS = 1 << 1
RDLCK, WRLCK, UNLCK = range(3)
LOCK_IN = struct.Struct("QQQQIIII")  # handle, owner, first and last byte, type, pid, flags, padding
MS_BIND = 4096
EINTR, EIO, EAGAIN, ENOLCK = 4, 5, 11, 37
BAD_RANGE = 10042
TOP = (1 << 63) - 1  # the kernel's last byte
NLM, NLM_TEST, NLM_LOCK, NLM_UNLOCK = 100021, 1, 2, 4
NLM_GRANTED, NLM_DENIED, NLM_FBIG = 0, 1, 8
HANG = 5


class SharedLocks(fuse.FileSystem):
    """Each open file has its handle; a lock belongs to a handle, as what is left of its locks ends with it."""

    def __init__(self):
        super().__init__()
        self.holds, self.handles, self.locks = False, 0, {}  # node: [(handle, owner, first, last, type)]
        self.hang, self.errors, self.unlock_errors = 0, [], []  # of the next calls

    def serve(self):
        while True:
            try:
                data = os.read(self.fd, 1 << 18)
            except OSError:
                return
            _, op, unique, node, *_ = fuse.IN.unpack_from(data)
            args = data[fuse.IN.size:]
            if op == fuse.READ:
                self.read(unique, node, *struct.unpack_from("QI", args, 8))
            elif op == SETLK and self.hang and node == 3:
                threading.Timer(self.hang, self.done, (op, unique, node, args)).start()
                self.hang = 0
            elif op not in fuse.SILENT:
                self.done(op, unique, node, args)

    def done(self, op, unique, node, args):
        answer = self.answer(op, node, args)
        self.reply(unique, *((0, answer) if isinstance(answer, bytes) else (-answer, b"")))

    def answer(self, op, node, args):
        if op == fuse.INIT:
            return struct.pack("IIIIHHIIHH8I", 7, 31, 0, fuse.EXPORT_SUPPORT | POSIX_LOCKS, 12, 9, 1 << 16, 1, 0, 0, *[0] * 8)
        if op == fuse.OPEN:
            self.handles += 1
            return struct.pack("QII", self.handles, 0, 0)
        if op == fuse.RELEASE:
            handle = struct.unpack_from("Q", args)[0]
            self.locks[node] = [x for x in self.locks.get(node, []) if x[0] != handle]
        if op == WRITE:
            return struct.pack("II", struct.unpack_from("QQI", args)[2], 0)
        if op == SETATTR:
            return struct.pack("QII", 3600, 0, 0) + self.attributes(node)
        if op in (GETLK, SETLK):
            return self.lock_call(op, node, *LOCK_IN.unpack_from(args)[:5])
        return b"" if op in (ACCESS, FSYNC) else super().answer(op, node, args)

    def conflict(self, node, owner, first, last, kind):
        return next((x for x in self.locks.get(node, []) if x[1] != owner and x[2] <= last and x[3] >= first and WRLCK in (x[4], kind)),
                    None)

    def lock_call(self, op, node, handle, owner, first, last, kind):
        errors = self.unlock_errors if kind == UNLCK else self.errors
        if errors and op == SETLK:
            return errors.pop(0)
        other = self.conflict(node, owner, first, last, kind) if kind != UNLCK else None
        if op == GETLK:
            return struct.pack("QQII", *other[2:], 0) if other else struct.pack("QQII", first, last, UNLCK, 0)
        if other:
            return EAGAIN
        kept = []
        for h, o, a, b, k in self.locks.get(node, []):
            if o != owner or a > last or b < first:
                kept.append((h, o, a, b, k))
                continue
            kept += [(h, o, *x, k) for x in ((a, first - 1), (last + 1, b)) if x[0] <= x[1]]
        self.locks[node] = kept + ([(handle, owner, first, last, kind)] if kind != UNLCK else [])
        return b""


class Server:
    """A daemon, a client, and the client's open files f1 and f2."""

    def __init__(self, daemon, name):
        self.d, self.c = daemon, n4.Client(daemon.port, name)
        self.c.register()
        self.c.reclaim_complete()
        self.dir = self.c.path(daemon.exports["a"])
        self.files = {i: self.c.open(self.dir, b"f%d" % i) for i in (1, 2)}

    def lock(self, offset, length, kind=n4.WRITE_LT, file=1, tries=1):
        """(status, stateid). A client comes again after NFS4ERR_DELAY and NFS4ERR_GRACE."""
        opened, fh = self.files[file]
        while True:
            res = self.c.lock(fh, opened["stateid"], kind, offset, length)
            tries -= 1
            if res["status"] not in (n4.DELAY, n4.GRACE) or not tries:
                return res["status"], res.get("stateid")
            time.sleep(0.1)

    def test(self, offset, length):
        owner = u64(self.c.clientid) + opaque(b"tests")
        return self.c.last(n4.putfh(self.files[1][1]), (n4.LOCKT, u32(n4.WRITE_LT) + u64(offset) + u64(length) + owner))["status"]

    def unlock(self, stateid, offset, length, file=1):
        return self.c.unlock(self.files[file][1], stateid, offset, length)["status"]


def held(fs, node=3):
    return sorted(x[2:] for x in fs.locks.get(node, []))


def test_ranges(t, fs, a, b):
    for offset, length, want in ((0, 10, n4.OK), (0, n4.ALL, n4.OK), (TOP, 1, n4.OK), (TOP, n4.ALL, n4.OK), (0, TOP + 1, n4.OK),
                                 (TOP + 1, 1, BAD_RANGE), (TOP + 1, n4.ALL, BAD_RANGE), (TOP, 2, BAD_RANGE), (0, TOP + 2, BAD_RANGE),
                                 (n4.ALL - 1, 1, BAD_RANGE), (n4.ALL, n4.ALL, BAD_RANGE)):
        what = f"{length} bytes at {offset}"
        status, sid = a.lock(offset, length)
        t.equal(f"{what}: LOCK by the first server", status, want)
        other = n4.DENIED if want == n4.OK else want
        t.equal(f"{what}: LOCK by the second server", b.lock(offset, length)[0], other)
        t.equal(f"{what}: LOCKT by the second server", b.test(offset, length), other)
        if want != n4.OK:
            continue
        t.equal(f"{what}: LOCKU", a.unlock(sid, offset, length), n4.OK)
        status, sid = b.lock(offset, length)
        t.equal(f"{what}: LOCK by the second server then", status, n4.OK)
        t.equal(f"{what}: its LOCKU", b.unlock(sid, offset, length), n4.OK)
    t.equal("locks of the file system in the end", held(fs), [])


def test_types(t, fs, a, b):
    locks = [s.lock(0, 10, n4.READ_LT) for s in (a, b)]
    t.equal("two LOCKs to read", [x[0] for x in locks], [n4.OK, n4.OK])
    t.equal("LOCK to write over the other server's", a.lock(0, 1)[0], n4.DENIED)
    t.equal("LOCKU", [s.unlock(x[1], 0, 10) for s, x in zip((a, b), locks)], [n4.OK, n4.OK])
    t.equal("locks of the file system", held(fs), [])


def test_many(t, fs, a, b):
    n, sids = 1300, []
    for i in range(n):
        status, sid = a.lock(2 * i, 1)
        if status != n4.OK:
            t.equal(f"LOCK {i}", status, n4.OK)
            return
        sids.append(sid)
    t.equal("pieces of the file system", len(held(fs)), n)
    t.equal("LOCKs of what is between them", {b.lock(2 * i + 1, 1)[0] for i in range(1, n, 50)}, {n4.OK})
    t.equal("LOCKs of what is locked", {b.lock(2 * i, 1)[0] for i in range(1, n, 50)}, {n4.DENIED})


def closed(t, fs, *servers):
    """All locks end, and files are opened anew."""
    for s in servers:
        opened, fh = s.files[1]
        t.equal("CLOSE", s.c.close_file(fh, bytes(4) + opened["stateid"][4:])["status"], n4.OK)
        s.files[1] = s.c.open(s.dir, b"f1")
    t.equal("locks of the file system behind CLOSE", held(fs), [])


def test_errors(t, fs, a, b):
    for error in (ENOLCK, EINTR, EIO):
        fs.errors = [error]
        t.equal(f"LOCK where the file system says {error}", a.lock(0, 10)[0], n4.DELAY)
        t.equal(f"LOCK by the other server behind {error}", b.lock(0, 10)[0], n4.OK)
        closed(t, fs, b)


def test_unlock_errors(t, fs, a, b):
    sid = a.lock(0, 10)[1]
    fs.unlock_errors = [EIO, ENOLCK]
    t.equal("LOCKU where the file system does not unlock", a.unlock(sid, 0, 10), n4.OK)
    t.equal("locks of the file system then", held(fs), [(0, 9, WRLCK)])
    t.equal("LOCK by the other server meanwhile", b.lock(0, 10)[0], n4.DENIED)
    end = time.monotonic() + 20
    while held(fs) and time.monotonic() < end:
        time.sleep(0.05)
    t.equal("LOCK by the other server when it has unlocked", b.lock(0, 10)[0], n4.OK)
    closed(t, fs, b)


def timed(what):
    start = time.monotonic()
    return what(), time.monotonic() - start


def use(t, fs, d, others):
    """What goes on while a lock of f1 hangs."""
    with d.connect() as c:
        root = d.root(c, "a")
        fh = c.nfs(r.LOOKUP, r.diropargs(root, "f1"))["fh"]
        for name, proc, args in (("GETATTR", r.GETATTR, r.getattr_args(fh)), ("READ", r.READ, r.read_args(fh, 0, 4096)),
                                 ("WRITE", r.WRITE, r.write_args(fh, 0, b"y" * 100))):
            res, took = timed(lambda proc=proc, args=args: c.nfs(proc, args)["status"])
            t.check(f"{name} of the file meanwhile", res == 0 and took < HANG / 2, (res, took))
    (opened, fh), took = timed(lambda: others.c.open(others.dir, b"f1"))
    t.check("OPEN of the file meanwhile", opened["status"] == n4.OK and took < HANG / 2, (opened["status"], took))
    (status, sid), took = timed(lambda: others.lock(0, 10, file=2))
    t.check("LOCK of another file meanwhile", status == n4.OK and took < HANG / 2, (status, took))
    res, took = timed(lambda: others.unlock(sid, 0, 10, file=2))
    t.check("LOCKU of another file meanwhile", res == n4.OK and took < HANG / 2, (res, took))


def test_hanging(t, fs, a, b, others):
    results = {}

    def run(name, what):
        thread = threading.Thread(target=lambda: results.update({name: timed(what)}))
        thread.start()
        return thread

    third = Server(a.d, "third")
    fs.hang = HANG
    threads = [run("first", lambda: a.lock(0, 10))]
    time.sleep(0.3)
    threads.append(run("same server", lambda: third.lock(5, 10, tries=100)))
    use(t, fs, a.d, others)
    t.equal("LOCK by the other server meanwhile", b.lock(20, 1)[0], n4.OK)
    for x in threads:
        x.join()
    (status, sid), took = results["first"]
    t.check("the LOCK that has hung", status == n4.OK and took > HANG - 1, (status, took))
    t.equal("LOCK of the same bytes that came behind it", results["same server"][0][0], n4.DENIED)
    t.equal("LOCK by the other server then", b.lock(9, 1)[0], n4.DENIED)

    fs.hang = HANG
    threads = [run("unlock", lambda: a.unlock(sid, 0, 10))]
    time.sleep(0.3)
    use(t, fs, a.d, others)
    t.equal("LOCK by the other server before it is unlocked", b.lock(9, 1)[0], n4.DENIED)
    threads[0].join()
    res, took = results["unlock"]
    t.check("the LOCKU that has hung", res == n4.OK and took > HANG - 1, (res, took))
    t.equal("LOCK by the other server behind it", b.lock(9, 1)[0], n4.OK)
    third.c.close()
    closed(t, fs, b)


def test_client_gone(t, fs, a, b):
    """The connection is closed while the lock hangs: the lock is the client's all the same, and ends with its open."""
    opened, fh = a.files[1]
    locker = u32(1) + a.c._next() + opened["stateid"] + u32(0) + u64(a.c.clientid) + opaque(b"goes")
    ops = ((n4.SEQUENCE, a.c.session + u32(a.c.seqid + 1) + u32(0) * 2 + u32(1)), n4.putfh(fh),
           (n4.LOCK, u32(n4.WRITE_LT) + u32(0) + u64(0) + u64(10) + locker))
    fs.hang = 2
    a.c.conn.send(r.call_message(r.NFS, 4, 1, opaque(b"") + u32(1) + u32(len(ops)) + b"".join(u32(o) + x for o, x in ops), r.ROOT))
    time.sleep(0.5)
    a.c.seqid += 1
    a.c.again()
    end = time.monotonic() + 20
    while not held(fs) and time.monotonic() < end:
        time.sleep(0.05)
    t.equal("the lock of a connection that was closed", held(fs), [(0, 9, WRLCK)])
    t.equal("LOCK by the other server", b.lock(0, 1)[0], n4.DENIED)
    closed(t, fs, a)


def test_revoked(t, fs, s, how):
    """The lock of a client hangs while its server takes the export away, or ends: it is gone behind that."""
    def lock():
        try:
            s.lock(0, 10)
        except (r.Closed, OSError):  # the server has ended
            pass

    fs.hang = 2
    threading.Thread(target=lock, daemon=True).start()
    time.sleep(0.5)
    t.check(f"{how.__name__}: the lock hangs", not fs.hang and not held(fs), held(fs))
    _, took = timed(how)
    t.check(f"{how.__name__} waits for the lock", took > 1, took)
    t.equal(f"locks of the file system behind {how.__name__}", held(fs), [])


def test_ends(t, fs, a, b):
    def reload():
        a.d.write_exports([])
        a.d.reload()

    def stop():
        t.equal("exit status", b.d.stop()[0], 0)

    test_revoked(t, fs, a, reload)
    test_revoked(t, fs, b, stop)


def nlm(c, proc, fh, offset, length):
    range_ = opaque(b"client") + opaque(fh) + opaque(b"owner") + u32(7) + u64(offset) + u64(length)
    head = {NLM_LOCK: u32(0) + u32(1), NLM_TEST: u32(1)}.get(proc, b"")
    x = c.call(NLM, 4, proc, opaque(b"") + head + range_ + (u32(0) * 2 if proc == NLM_LOCK else b""))
    x.opaque()
    return x.u32()


def test_nlm(t, fs, a, b):
    with a.d.connect() as c:
        fh = c.nfs(r.LOOKUP, r.diropargs(a.d.root(c, "a"), "f1"))["fh"]
        for offset, length, want in ((0, 10, NLM_GRANTED), (TOP, 0, NLM_GRANTED), (TOP + 1, 1, NLM_FBIG), (TOP, 2, NLM_FBIG)):
            t.equal(f"NLM4_LOCK of {length} bytes at {offset}", nlm(c, NLM_LOCK, fh, offset, length), want)
            t.equal(f"NLM4_TEST of {length} bytes at {offset}", nlm(c, NLM_TEST, fh, offset, length), want)
        t.equal("LOCK by the other server", [b.lock(x, 1)[0] for x in (0, TOP)], [n4.DENIED] * 2)
        fs.hang = 2
        res, took = timed(lambda: nlm(c, NLM_UNLOCK, fh, 0, 0))
        t.check("NLM4_UNLOCK that hangs", res == NLM_GRANTED and took > 1, (res, took))
        status, sid = b.lock(0, n4.ALL)
        t.equal("LOCK by the other server then", status, n4.OK)
        t.equal("NLM4_LOCK of that", nlm(c, NLM_LOCK, fh, 0, 10), NLM_DENIED)
        t.equal("LOCKU by the other server", b.unlock(sid, 0, n4.ALL), n4.OK)
    t.equal("locks of the file system in the end", held(fs), [])


def test_no_number(t, at):
    """The file system has no UUID: members of a cluster would give one file different handles."""
    with tempfile.TemporaryDirectory() as store:
        d = Daemon({"a": "rw,insecure"}, {"cluster.name": "lab", "cluster.instance": "a", "cluster.path": store})
        mounts.libc.mount(at.encode(), d.exports["a"].encode(), None, MS_BIND, None)
        with d:
            t.check("a member asks for a number", f"{d.exports['a']}: its file system has no UUID: members of a cluster" in d.read_log(), d.read_log())
        mounts.libc.umount2(d.exports["a"].encode(), fuse.MNT_DETACH)


def main():
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        harness.skip_all("there is no /dev/fuse")
    mounts.own_namespace()
    t, fs = Count(), SharedLocks()
    settings = {"nfs4.grace_time": 10, "nfs4.lease_time": 60}
    first, second = (Daemon({"a": "rw,insecure,no_root_squash,fsid=7"}, settings) for _ in range(2))
    fs.mount(first.exports["a"])
    if mounts.libc.mount(first.exports["a"].encode(), second.exports["a"].encode(), None, MS_BIND, None) != 0:
        harness.skip_all("no bind mount")
    try:
        with first, second:
            a, b, others = Server(first, "one"), Server(second, "two"), Server(first, "three")
            a.lock(0, 10, tries=200)  # until grace is over
            b.lock(20, 10, tries=200)
            closed(t, fs, a, b)
            test_ranges(t, fs, a, b)
            test_types(t, fs, a, b)
            test_many(t, fs, a, b)
            closed(t, fs, a, b)
            test_errors(t, fs, a, b)
            test_unlock_errors(t, fs, a, b)
            test_hanging(t, fs, a, b, others)
            test_client_gone(t, fs, a, b)
            test_nlm(t, fs, a, b)
            test_ends(t, fs, a, b)
        test_no_number(t, first.exports["a"])
    finally:
        for d in (second, first):
            mounts.libc.umount2(d.exports["a"].encode(), fuse.MNT_DETACH)
        os.close(fs.fd)
    harness.result(t)


if __name__ == "__main__":
    main()
