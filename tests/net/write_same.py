#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""WRITE_SAME of NFSv4.2: the blocks on disk, long calls, full file systems, who may write, and arguments that make no sense."""
import os
import threading
import time

import harness
import mounts
import nfs4client as n
from bystander import watched
from harness import Count, Daemon
from held import Held
from read_plus import ACCESS, BADXDR, ISDIR, LOCKED, MIB, Client, content, joined, sparse
from rpcclient import opaque, u32, u64

COMMIT, WRITE_SAME = 5, 70
INVAL, FBIG, NOSPC, ROFS, DELAY = 22, 27, 28, 30, 10008
NONE = (1 << 64) - 1
CALL_MAX = 16 * MIB
OPTIONS = "rw,insecure,no_root_squash"


def _written(x, res):
    res.update(callbacks=[x.take(16) for _ in range(x.u32())], count=x.u64(), committed=x.u32(), verf=x.take(8))


n.RESULTS[WRITE_SAME] = _written
n.RESULTS[COMMIT] = lambda x, res: res.update(verf=x.take(8))


def same(offset, size, count, number_at=NONE, number=0, pattern_at=NONE, pattern=b"", stable=0, stateid=n.ANONYMOUS):
    return WRITE_SAME, (stateid + u32(stable) + u64(offset) + u64(size) + u64(count) + u64(number_at) + u32(number) +
                        u64(pattern_at) + opaque(pattern))


def block(size, number_at=NONE, number=0, pattern_at=NONE, pattern=b""):
    """One of them, as RFC 7862 sections 8.1 and 8.3 describe it."""
    b = bytearray(size)
    if pattern_at != NONE:
        b[pattern_at:pattern_at + len(pattern)] = pattern
    if number_at != NONE:
        b[number_at:number_at + 4] = u32(number)
    return bytes(b)


def write(c, fh, *args, **kw):
    return c.last(n.putfh(fh), same(*args, **kw))


def test_blocks(t, d, c):
    path = sparse(d.exports["own"] + "/blocks", 0, [])
    fh = c.path(path)
    for size, count, number_at, number, pattern_at, pattern in (
            (4096, 100, 0, 0, 8, b"\xfe\xed\xfa\xce"), (1024, 10000, NONE, 0, NONE, b""), (512, 5000, 508, 7, 0, b"p" * 508),
            (3, 100000, NONE, 0, 1, b"x"), (5000, 700, 4996, 1 << 31, 1, b"odd"), (MIB, 5, 0, 1, MIB - 1, b"!")):
        os.truncate(path, 0)
        for stable in (0, 1, 2):
            res = write(c, fh, 13, size, count, number_at, number, pattern_at, pattern, stable)
            t.equal(f"{count} blocks of {size}, stable {stable}", (res["status"], res.get("callbacks"), res.get("count"),
                                                                   res.get("committed")), (0, [], size * count, stable))
        want = b"".join(block(size, number_at, number + i, pattern_at, pattern) for i in range(count))
        t.check(f"{count} blocks of {size}: on disk", content(path) == bytes(13) + want)
        t.equal(f"{count} blocks of {size}: the verifier is COMMIT's",
                c.last(n.putfh(fh), (COMMIT, u64(0) + u32(0)))["verf"], res["verf"])
        t.check("READ_PLUS has the blocks, too", joined(c.whole(fh)[0]) == bytes(13) + want)


def test_long(t, d, c):
    """A client goes on where a long call has ended."""
    path = sparse(d.exports["own"] + "/long", 0, [])
    fh, size, count, done, calls = c.path(path), 3000, 16000, 0, 0
    while done < count:
        res = write(c, fh, done * size, size, count - done, 0, done, 100, b"long")
        if res["status"] or res["count"] % size or not 0 < res["count"] <= CALL_MAX:
            t.check("a piece of a long call", False, res)
            break
        done, calls = done + res["count"] // size, calls + 1
    t.equal("three calls", calls, 3)
    t.check("all blocks", content(path) == b"".join(block(size, 0, i, 100, b"long") for i in range(count)))
    os.unlink(path)


def test_full(t, d, c, why):
    """A file system that fills up: what was written is told, and then the error."""
    if why:
        return t.skip("ext4", why)
    path = sparse(d.exports["small"] + "/full", 0, [])
    fh, size, done, res = c.path(path), 4096, 0, {}
    while done < 64 * MIB:
        res = write(c, fh, done, size, 1 << 20, 0, done // size, 8, b"full")
        done += res.get("count", 0)
        if res["status"] or done % size:
            break
    end = done
    while not res["status"] and end < 64 * MIB:  # what is left where a block had no room
        res = write(c, fh, end, 1, 100000)
        end += res.get("count", 0)
    t.equal("the file system is full", res["status"], NOSPC)
    got = content(path)
    t.check("what was told is there", MIB < done <= len(got), (done, len(got)))
    whole = done // size
    t.check("in order", got[:whole * size] == b"".join(block(size, 0, i, 8, b"full") for i in range(whole)))
    os.unlink(path)
    return None


def test_users(t, d, c):
    path = sparse(d.exports["own"] + "/theirs", 100, [(0, 100)])
    fh, user, before = c.path(path), Client(d, "writer", 1000), content(path)
    t.equal("what a user may not write", write(user, fh, 0, 10, 1)["status"], ACCESS)
    os.chmod(path, 0o6777)
    t.equal("root's", write(c, fh, 0, 10, 1)["status"], 0)
    t.equal("leaves the mode", os.stat(path).st_mode & 0o7777, 0o6777)
    t.equal("a user's", write(user, fh, 0, 10, 1)["status"], 0)
    t.equal("clears the set-uid bits", os.stat(path).st_mode & 0o7777, 0o777)
    t.check("the rest stays", content(path) == bytes(10) + before[10:])
    denied, _ = user.open(user.path(d.exports["own"]), "theirs", deny=2)
    t.equal("while another client denies writing", write(c, fh, 0, 10, 1)["status"], LOCKED)
    user.close_file(fh, denied["stateid"])
    opened, _ = c.open(c.path(d.exports["own"]), "theirs", access=n.SHARE_READ)
    t.equal("by an open that is for reading", write(c, fh, 0, 10, 1, stateid=opened["stateid"])["status"], 10038)
    c.close_file(fh, opened["stateid"])
    t.equal("of a directory", write(c, c.path(d.exports["own"]), 0, 10, 1)["status"], ISDIR)
    with open(d.exports["ro"] + "/file", "w"):
        pass
    t.equal("in a read-only export", write(c, c.path(d.exports["ro"] + "/file"), 0, 10, 1)["status"], ROFS)
    user.leave()


def test_hostile(t, d, c):
    path = sparse(d.exports["own"] + "/hostile", 100, [(0, 100)])
    fh, before, big = c.path(path), content(path), (1 << 63) - 1
    for what, args, status in (
            ("no size", (0, 0, 1), INVAL), ("a long block", (0, MIB + 1, 1), INVAL), ("the longest block", (0, NONE, 1), INVAL),
            ("a number that is cut", (0, 512, 1, 509, 0), INVAL), ("a number beyond", (0, 512, 1, NONE - 1, 0), INVAL),
            ("a number in too little", (0, 3, 1, 0, 0), INVAL), ("a pattern that is cut", (0, 4, 1, NONE, 0, 1, b"1234"), INVAL),
            ("a pattern beyond", (0, 4, 1, NONE, 0, NONE - 1, b"1"), INVAL), ("one over the other", (0, 9, 1, 0, 0, 3, b"1"), INVAL),
            ("numbers that wrap", (0, 8, 2, 0, 0xffffffff), INVAL), ("a product that overflows", (0, MIB, 1 << 44), FBIG),
            ("one that wraps to little", (0, 1 << 20, (1 << 44) + 1), FBIG), ("all blocks", (0, 1, NONE), FBIG),
            ("a far offset", (NONE, 1, 1), FBIG), ("the last offset", (big, 1, 1), FBIG), ("beyond the largest", (big - 5, 3, 2), FBIG)):
        t.equal(what, write(c, fh, *args)["status"], status)
    t.equal("no stability", write(c, fh, 0, 1, 1, stable=3)["status"], BADXDR)
    args = same(0, 512, 1, 0, 0, 8, b"pattern")[1]
    for cut in range(0, len(args), 4):
        t.equal(f"arguments of {cut} bytes", c.last(n.putfh(fh), (WRITE_SAME, args[:cut]))["status"], BADXDR)
    for length in (8, 1 << 16, (1 << 32) - 1):
        t.equal(f"a pattern that claims {length} bytes",
                c.last(n.putfh(fh), (WRITE_SAME, args[:-12] + u32(length) + b"pattern"))["status"], BADXDR)
    t.check("nothing was written", content(path) == before)
    t.equal("nothing to write", (write(c, fh, 0, 512, 0).get("count"), os.stat(path).st_size), (0, 100))
    long = os.urandom(900000)
    t.equal("a long pattern", write(c, fh, 0, MIB, 2, NONE, 0, 5, long).get("count"), 2 * MIB)
    t.check("it is there twice", content(path) == block(MIB, pattern_at=5, pattern=long) * 2)
    t.equal("at the largest offset", write(c, fh, big - 512, 512, 1)["status"] in (0, FBIG), True)
    os.unlink(path)


def test_many(t, d, _root):
    """Clients that write blocks into a file of their own, each at once."""
    clients, wrongs, until = [Client(d, f"many {i}") for i in range(4)], [], time.monotonic() + 3
    paths = [sparse(f"{d.exports['own']}/many{i}", 0, []) for i in range(4)]

    def work(c, path, i):
        fh, k = c.path(path), 0
        while time.monotonic() < until:
            k += 1
            res = write(c, fh, 0, 4096, 1500, 0, k, 4, b"many%d" % i)
            if res["status"] != DELAY and res.get("count") != 1500 * 4096:
                wrongs.append(res)
            elif not res["status"] and content(path) != b"".join(block(4096, 0, k + j, 4, b"many%d" % i) for j in range(1500)):
                wrongs.append("other bytes")

    threads = [threading.Thread(target=work, args=(c, p, i)) for i, (c, p) in enumerate(zip(clients, paths))]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    t.equal("four clients at once", wrongs, [])
    for c in clients:
        c.leave()


def main():
    mounts.own_namespace()
    t = Count()
    d = Daemon({"own": OPTIONS, "small": OPTIONS, "ro": "ro,insecure,no_root_squash"})
    image = f"{d.top}/small.img"
    why = mounts.make_image(image, "ext4") or mounts.mount_image(image, d.exports["small"])
    with d:
        with d.connect() as conn:
            root = d.root(conn, "own")
        held = Held(d)
        before = held.settled()
        c = Client(d, "writes")
        test_blocks(t, d, c)
        test_long(t, d, c)
        test_full(t, d, c, why)
        test_users(t, d, c)
        test_hostile(t, d, c)
        c.leave()
        watched(t, d, root, test_many)
        t.equal("what was not given back", held.lost(before), {})
        harness.finish(t, d)
        mounts.umount(d.exports["small"])
    with Daemon({"own": OPTIONS}, {"vfs.io_mode": "direct"}) as past:
        c = Client(past, "past the page cache")
        test_blocks(t, past, c)
        c.leave()
        harness.finish(t, past)
    harness.result(t)


if __name__ == "__main__":
    main()
