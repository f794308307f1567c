#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""COPY and CLONE of NFSv4.2: the same bytes within an export, across exports and across file systems; blocks that are shared on
XFS; who may do it, to which file; and what is answered when the file system is full, or cannot."""
import contextlib
import fcntl
import hashlib
import os
import random
import signal
import struct
import threading
import time

import harness
import mounts
import nfs4client as n
import rpcclient as r
from bystander import watched
from harness import Count, Daemon
from held import Held
from rpcclient import u32, u64

COMMIT, GETATTR, SAVEFH, COPY, CLONE = 5, 9, 32, 60, 71
ACCESS, XDEV, INVAL, FBIG, NOSPC, ROFS, NOTSUPP = 13, 18, 22, 27, 28, 30, 10004
DELAY, LOCKED, WRONG_TYPE = 10008, 10012, 10083
UNSTABLE, MIB, COPY_MAX = 0, 1 << 20, 16 << 20
CLONE_BLKSIZE = 77
OPTIONS = "rw,insecure,no_root_squash"
FS_IOC_FIEMAP, FIEMAP_SYNC, EXTENT_SHARED = 0xc020660b, 1, 0x2000
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, IMMUTABLE, APPEND = 0x80086601, 0x40086602, 0x10, 0x20
SEED = int(os.environ.get("COPIES_SEED", time.time_ns() & 0xffffffff))
rnd = random.Random(SEED)


def _copied(x, res):
    res.update(callbacks=[x.take(16) for _ in range(x.u32())], count=x.u64(), committed=x.u32(), verf=x.take(8),
               consecutive=x.flag(), synchronous=x.flag())


n.RESULTS[COPY] = _copied
n.RESULTS[COMMIT] = lambda x, res: res.update(verf=x.take(8))
n.RESULTS[GETATTR] = lambda x, res: res.update(mask=n._bitmap(x), attrs=x.opaque())


class Client(n.Client):
    def __init__(self, t, name, uid=0):
        super().__init__(t.d.port, name, 2)
        self.cred = r.auth_sys(uid, uid)
        t.equal(f"{name} has a session", self.register()["status"], n.OK)
        t.equal(f"{name} has nothing to reclaim", self.reclaim_complete(), n.OK)

    def leave(self):
        """Its state goes, so that no restart waits for it."""
        self.bare((n.DESTROY_SESSION, self.session))
        self.bare((n.DESTROY_CLIENTID, u64(self.clientid)))
        self.close()

    def two(self, op, src, dst, where=(0, 0, 0), sids=(n.ANONYMOUS, n.ANONYMOUS), more=b""):
        return self.last(n.putfh(src), (SAVEFH, b""), n.putfh(dst), (op, sids[0] + sids[1] + b"".join(map(u64, where)) + more))

    def copy(self, src, dst, src_at=0, dst_at=0, count=0, sids=(n.ANONYMOUS, n.ANONYMOUS), synchronous=True):
        return self.two(COPY, src, dst, (src_at, dst_at, count), sids, u32(1) + u32(synchronous) + u32(0))

    def clone(self, src, dst, src_at=0, dst_at=0, count=0, sids=(n.ANONYMOUS, n.ANONYMOUS)):
        return self.two(CLONE, src, dst, (src_at, dst_at, count), sids)["status"]

    def copy_all(self, src, dst, size):
        """As a client does it: what is left is asked for again. The results."""
        done, results = 0, []
        while done < size:
            results.append(self.copy(src, dst, done, done, size - done))
            if results[-1]["status"] or not results[-1]["count"]:
                break
            done += results[-1]["count"]
        return results

    def commit(self, fh):
        return self.last(n.putfh(fh), (COMMIT, u64(0) + u32(0)))


class T(Count):
    """The exports: rw, on the disk of this test; xa, xb and xro, on one XFS; small, an ext4; squash, beside rw."""

    def __init__(self):
        super().__init__()
        self.d = Daemon({"rw": OPTIONS, "squash": "rw,insecure", "small": OPTIONS})
        self.why_no_small = self.mount("ext4", self.d.exports["small"])
        os.mkdir(self.d.top + "/xfs")
        self.why_no_xfs = self.mount("xfs", self.d.top + "/xfs")
        for name, options in (("xa", OPTIONS), ("xb", OPTIONS), ("xro", "ro,insecure,no_root_squash")):
            self.d.exports[name] = f"{self.d.top}/xfs/{name}"
            os.mkdir(self.d.exports[name])
            with open(self.d.top + "/exports", "a") as f:
                f.write(f"{self.d.exports[name]} 127.0.0.0/8({options})\n")

    def mount(self, kind, at):
        image = f"{self.d.top}/{kind}.img"
        why = mounts.make_image(image, kind) or mounts.mount_image(image, at)
        if not why:
            os.chmod(at, 0o777)
        return why

    def umount(self):
        for at in (self.d.exports["small"], self.d.top + "/xfs"):
            mounts.umount(at)

    def path(self, export, name):
        return os.path.join(self.d.exports[export], name)

    def file(self, c, export, name, data=b"", mode=0o666):
        """Its handle."""
        with open(self.path(export, name), "wb") as f:
            f.write(data)
        os.chmod(f.name, mode)
        return c.path(f.name)

    def has(self, what, export, name, data):
        with open(self.path(export, name), "rb") as f:
            got = f.read()
        self.check(what, got == data, f"{len(got)} bytes {hashlib.md5(got).hexdigest()}, not {len(data)} {hashlib.md5(data).hexdigest()}")


def extents(path):
    """(Extents of a file, of them those that are shared)."""
    with open(path, "rb") as f:
        buf = bytearray(struct.pack("=QQIIII", 0, (1 << 64) - 1, FIEMAP_SYNC, 0, 256, 0) + bytes(56 * 256))
        fcntl.ioctl(f, FS_IOC_FIEMAP, buf)
    mapped = struct.unpack_from("=I", buf, 20)[0]
    flags = [struct.unpack_from("=I", buf, 32 + 56 * i + 40)[0] for i in range(mapped)]
    return mapped, sum(bool(fl & EXTENT_SHARED) for fl in flags)


def test_bytes(t, c):
    data = rnd.randbytes(COPY_MAX + 4 * MIB + 123)
    src, dst = t.file(c, "rw", "src", data), t.file(c, "rw", "dst")
    wrote = c.last(n.putfh(dst), n.write(n.ANONYMOUS, 0, b"x", UNSTABLE))
    first, rest = c.copy_all(src, dst, len(data))
    t.equal("a long COPY ends early", first, {"op": COPY, "status": n.OK, "callbacks": [], "count": COPY_MAX, "committed": UNSTABLE,
                                              "verf": wrote["verf"], "consecutive": True, "synchronous": True})
    t.equal("the rest", rest["count"], len(data) - COPY_MAX)
    t.has("the copy", "rw", "dst", data)
    t.equal("COMMIT's verifier", c.commit(dst).get("verf"), first["verf"])
    want = bytearray(data)
    for i in range(20):
        at, to, count = rnd.randrange(len(data)), rnd.randrange(len(data)), rnd.randrange(1, MIB)
        count = min(count, len(data) - at)
        res = c.copy(src, dst, at, to, count, synchronous=i % 2 == 0)
        t.equal(f"COPY {i} of {count} bytes from {at} to {to}", (res["status"], res.get("count"), res.get("synchronous")),
                (n.OK, count, True))
        want[to:to + count] = data[at:at + count]
    t.has("copies at odd places", "rw", "dst", bytes(want))
    res = c.copy(src, dst, len(data) - 5, 3, 0)
    t.equal("count 0: up to the end", res.get("count"), 5)
    far = t.file(c, "rw", "far")
    t.equal("far behind the end", c.copy(src, far, 0, 1 << 40, 10).get("count"), 10)
    t.equal("the size then", os.stat(t.path("rw", "far")).st_size, (1 << 40) + 10)
    os.unlink(t.path("rw", "far"))


def test_ranges(t, c):
    src, dst = t.file(c, "rw", "src", b"x" * 10000), t.file(c, "rw", "dst", b"y" * 10)
    top = (1 << 64) - 1
    for what, op in (("COPY", lambda *a: c.copy(*a)["status"]), ("CLONE", c.clone)):
        for where in ((0, 0, 10001), (10001, 0, 0), (10000, 0, 1), (top, 0, 2), (1, 0, top), (1 << 63, 0, 1 << 63)):
            t.equal(f"{what} of {where}: beyond the source's end", op(src, dst, *where), INVAL)
        for where in ((0, (1 << 63) - 1, 1), (0, top, 1), (0, top - 9999, 0)):
            t.equal(f"{what} of {where}: no file is that long", op(src, dst, *where), FBIG)
    t.equal("COPY within one file", c.copy(src, src, 0, 20000, 100)["status"], INVAL)
    t.equal("CLONE to an overlapping range", c.clone(src, src, 0, 4096, 8192), INVAL)
    t.equal("the destination's size", os.stat(t.path("rw", "dst")).st_size, 10)
    root = c.path(t.d.exports["rw"])
    for what, ends in (("from", (root, dst)), ("to", (src, root))):
        t.equal(f"COPY {what} a directory", c.copy(*ends)["status"], WRONG_TYPE)
        t.equal(f"CLONE {what} a directory", c.clone(*ends), WRONG_TYPE)


def test_users(t, c):
    user = Client(t, "user", 1000)
    secret, open_to_all = t.file(c, "rw", "secret", b"secret", 0o600), t.file(c, "rw", "all", b"")
    shown, theirs = t.file(c, "rw", "shown", b"shown"), t.file(c, "rw", "theirs", b"theirs", 0o644)
    t.equal("COPY of what a user may not read", user.copy(secret, open_to_all)["status"], ACCESS)
    t.equal("CLONE of what a user may not read", user.clone(secret, open_to_all), ACCESS)
    t.equal("COPY to what a user may not write", user.copy(shown, theirs)["status"], ACCESS)
    t.equal("CLONE to what a user may not write", user.clone(shown, theirs), ACCESS)
    # A stateid is no password.
    opened, fh = c.open(c.path(t.d.exports["rw"]), "secret")
    c.cred = user.cred
    t.equal("COPY with the stateid of root's open", c.copy(fh, open_to_all, sids=(opened["stateid"], n.ANONYMOUS))["status"], ACCESS)
    t.equal("CLONE with the stateid of root's open", c.clone(fh, open_to_all, sids=(opened["stateid"], n.ANONYMOUS)), ACCESS)
    c.cred = r.ROOT
    c.close_file(fh, opened["stateid"])
    os.chmod(t.path("rw", "all"), 0o6777)
    t.equal("root's COPY", c.copy(shown, open_to_all).get("count"), 5)
    t.equal("root's COPY leaves the mode", os.stat(t.path("rw", "all")).st_mode & 0o7777, 0o6777)
    t.equal("a user's COPY", user.copy(shown, open_to_all).get("count"), 5)
    t.equal("a user's COPY clears the set-uid bits", os.stat(t.path("rw", "all")).st_mode & 0o7777, 0o777)
    # Root is squashed in one export, and not in the other.
    hidden = t.file(c, "squash", "hidden", b"hidden", 0o600)
    t.equal("COPY from an export where root is nobody", c.copy(hidden, open_to_all)["status"], ACCESS)
    t.equal("COPY to an export where root is nobody", c.copy(secret, hidden)["status"], ACCESS)
    t.has("nothing has come of it", "squash", "hidden", b"hidden")
    t.has("nor of these", "rw", "all", b"shown")
    user.leave()


def test_shares(t, c):
    other = Client(t, "denier")
    src, dst = t.file(c, "rw", "src", b"0123456789"), t.file(c, "rw", "dst", b"")
    root = c.path(t.d.exports["rw"])
    for name, deny, want in (("src", 1, LOCKED), ("src", 2, n.OK), ("dst", 1, n.OK), ("dst", 2, LOCKED)):
        opened, fh = other.open(root, name, deny=deny)
        t.equal(f"COPY while {name} is denied ({deny})", c.copy(src, dst)["status"], want)
        if want:
            t.equal(f"CLONE while {name} is denied ({deny})", c.clone(src, dst), ACCESS)
        other.close_file(fh, opened["stateid"])
    opened, fh = other.open(root, "dst")
    t.equal("a lock of another client", other.lock(fh, opened["stateid"])["status"], n.OK)
    t.equal("COPY: byte-range locks are advisory", c.copy(src, dst)["status"], n.OK)
    other.close_file(fh, opened["stateid"])
    mine, _ = c.open(root, "src", access=n.SHARE_READ)
    to, _ = c.open(root, "dst", access=n.SHARE_WRITE)
    t.equal("COPY by opens of its own", c.copy(src, dst, sids=(mine["stateid"], to["stateid"])).get("count"), 10)
    t.equal("COPY to what was opened to read", c.copy(dst, src, sids=(to["stateid"], mine["stateid"]))["status"], 10038)
    for fh, opened in ((src, mine), (dst, to)):
        c.close_file(fh, opened["stateid"])
    other.leave()


def test_local_lease(t, c):
    """A local process that has a lease is asked to give it up, and the client to come again."""
    for name in ("leased-src", "leased-dst"):
        src, dst = t.file(c, "rw", "leased-src", b"0123456789"), t.file(c, "rw", "leased-dst")
        time.sleep(0.1)
        fd = os.open(t.path("rw", name), os.O_RDWR)
        asked = threading.Event()
        signal.signal(signal.SIGIO, lambda *_, e=asked: e.set())
        try:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as e:
            t.skip(f"COPY with a lease of {name}", e)
            os.close(fd)
            continue
        t.equal(f"COPY while a local process has a lease of {name}", c.copy(src, dst)["status"], DELAY)
        t.check("it is told to give it up", asked.wait(10))
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        os.close(fd)
        t.equal("COPY then", c.copy(src, dst).get("count"), 10)
        for leased in ("leased-src", "leased-dst"):
            os.unlink(t.path("rw", leased))


def test_xfs(t, c):
    if t.why_no_xfs:
        return t.skip("XFS", t.why_no_xfs)
    res = c.last(n.putfh(c.path(t.d.exports["xa"])), (GETATTR, u32(3) + u32(0) + u32(0) + u32(1 << (CLONE_BLKSIZE - 64))))
    block = struct.unpack(">I", res["attrs"])[0]
    t.equal("clone_blksize", block, os.statvfs(t.d.exports["xa"]).f_bsize)
    data = rnd.randbytes(8 * MIB + 77)
    src, dst = t.file(c, "xa", "src", data), t.file(c, "xb", "dst", b"hello")
    os.sync()
    before = os.statvfs(t.d.exports["xa"]).f_bfree
    t.equal("CLONE across exports of one file system", c.clone(src, dst), n.OK)
    t.has("the clone", "xb", "dst", data)
    mapped, shared = extents(t.path("xb", "dst"))
    t.check("its extents are shared", mapped > 0 and shared == mapped, (mapped, shared))
    t.check("it takes no space", before - os.statvfs(t.d.exports["xa"]).f_bfree < MIB // block, before)
    c.last(n.putfh(dst), n.write(n.ANONYMOUS, 4096, b"new"))
    t.has("the source after a WRITE to its clone", "xa", "src", data)
    for where in ((1, 0, block), (0, 1, block), (0, 0, block + 1), (block - 1, 0, 0)):
        t.equal(f"CLONE of {where}", c.clone(src, dst, *where), INVAL)
    t.equal("CLONE within one file", c.clone(src, src, 0, 16 * MIB, 2 * block), n.OK)
    t.equal("its size", os.stat(t.path("xa", "src")).st_size, 16 * MIB + 2 * block)
    copy = t.file(c, "xb", "copy")
    t.equal("COPY of blocks", c.copy(src, copy, 0, 0, 8 * MIB).get("count"), 8 * MIB)
    t.has("the copy", "xb", "copy", data[:8 * MIB])
    mapped, shared = extents(t.path("xb", "copy"))
    t.check("COPY shares extents, too", mapped > 0 and shared == mapped, (mapped, shared))
    os.chmod(t.path("xb", "dst"), 0o4777)
    user = Client(t, "cloner", 1000)
    t.equal("a user's CLONE", user.clone(src, dst), n.OK)
    t.equal("clears the set-uid bit", os.stat(t.path("xb", "dst")).st_mode & 0o7777, 0o777)
    user.leave()
    kept = t.file(c, "xro", "kept", b"kept")
    t.equal("COPY to a read-only export", c.copy(src, kept)["status"], ROFS)
    t.equal("CLONE to a read-only export", c.clone(src, kept), ROFS)
    t.equal("CLONE from a read-only export", c.clone(kept, t.file(c, "xb", "fresh")), n.OK)
    far = t.file(c, "rw", "from-xfs")
    t.equal("CLONE to another file system", c.clone(src, far), XDEV)
    results = c.copy_all(src, far, 16 * MIB)
    t.equal("COPY to another file system", sum(x.get("count", 0) for x in results), 16 * MIB)
    with open(t.path("xa", "src"), "rb") as f:
        t.has("the copy there", "rw", "from-xfs", f.read(16 * MIB))
    return None


@contextlib.contextmanager
def flags(path, new):
    fd = os.open(path, os.O_RDONLY)
    buf = bytearray(8)
    fcntl.ioctl(fd, FS_IOC_GETFLAGS, buf)
    old = struct.unpack("=i", buf[:4])[0]
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("=q", old | new))
    try:
        yield
    finally:
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("=q", old))
        os.close(fd)


def test_small(t, c):
    """An ext4 without shared blocks, that fills up."""
    if t.why_no_small:
        return t.skip("ext4", t.why_no_small)
    src, dst = t.file(c, "rw", "big", rnd.randbytes(20 * MIB)), t.file(c, "small", "dst")
    t.equal("CLONE on ext4", c.clone(t.file(c, "small", "a", b"a" * 5000), dst), NOTSUPP)
    with flags(t.path("small", "a"), IMMUTABLE):
        t.equal("COPY from an immutable file", c.copy(c.path(t.path("small", "a")), dst).get("count"), 5000)
        t.equal("COPY to an immutable file", c.copy(src, c.path(t.path("small", "a")))["status"], ACCESS)
    logged = t.file(c, "small", "logged", b"")
    with flags(t.path("small", "logged"), APPEND):
        t.equal("COPY to a file that is for appending", c.copy(src, logged)["status"], ACCESS)
    results = c.copy_all(src, dst, 20 * MIB)
    done = sum(x.get("count", 0) for x in results)
    t.equal("COPY to a file system that fills up ends so", results[-1]["status"], NOSPC)
    t.check("what had room was copied", MIB < done < 20 * MIB, done)
    with open(t.path("small", "dst"), "rb") as f, open(t.path("rw", "big"), "rb") as want:
        t.check("in order", f.read(done) == want.read(done))
    t.equal("it can be committed", c.commit(dst)["status"], n.OK)
    os.unlink(t.path("small", "dst"))
    return None


def test_many(t, _daemon, _root):
    """Copies of several clients at once."""
    size, wrong = 12 * MIB, []
    clients = [Client(t, f"many {i}") for i in range(6)]
    data = rnd.randbytes(size)
    files = [(t.file(c, "rw", f"src{i}", data), t.file(c, "rw", f"dst{i}")) for i, c in enumerate(clients)]

    until = time.monotonic() + 3

    def work(c, src, dst):
        while True:
            results = c.copy_all(src, dst, size)
            if sum(x.get("count", 0) for x in results) != size:
                wrong.append(results[-1])
            if time.monotonic() > until:
                break

    threads = [threading.Thread(target=work, args=(c, *f)) for c, f in zip(clients, files)]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    t.equal("copies that failed", wrong, [])
    for i, c in enumerate(clients):
        t.has(f"copy {i}", "rw", f"dst{i}", data)
        c.leave()


def test_restart(t, c):
    src, dst = t.file(c, "rw", "src", b"0123456789"), t.file(c, "rw", "dst")
    before = c.copy(src, dst)["verf"]
    t.equal("it stops", t.d.stop()[0], 0)
    t.d.start()
    again = Client(t, "restarted")
    t.equal("COPY after a restart", again.copy(src, dst).get("count"), 10)
    t.check("its verifier is another", again.copy(src, dst)["verf"] != before)
    again.leave()


def main():
    mounts.own_namespace()
    t = T()
    with t.d:
        try:
            run(t)
        finally:
            if t.d.process:
                harness.finish(t, t.d)
            t.umount()
    if t.failed:
        print(f"COPIES_SEED={SEED}")
    harness.result(t)


def run(t):
    with t.d.connect() as conn:
        root = t.d.root(conn, "rw")
    held = Held(t.d)
    before = held.settled()
    c = Client(t, "copies")
    test_bytes(t, c)
    test_ranges(t, c)
    test_users(t, c)
    test_shares(t, c)
    test_local_lease(t, c)
    test_xfs(t, c)
    test_small(t, c)
    c.leave()
    watched(t, t.d, root, test_many)
    t.equal("what was not given back", held.lost(before), {})
    c = Client(t, "restarts")
    test_restart(t, c)
    c.close()


if __name__ == "__main__":
    main()
