#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""READ_PLUS of NFSv4.2: holes of sparse files on each file system, what is told while others write, cut and punch the file, who may
read, and arguments that make no sense."""
import ctypes
import fcntl
import os
import random
import re
import signal
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

READ_PLUS, DATA, HOLE = 68, 0, 1
ACCESS, ISDIR, DELAY, LOCKED, BAD_STATEID, BADXDR, REP_TOO_BIG, WRONG_TYPE = 13, 21, 10008, 10012, 10025, 10036, 10066, 10083
KIB, MIB = 1 << 10, 1 << 20
LEAST = 32 * KIB  # a shorter hole is told as data
ELEMENTS = 8
OPTIONS = "rw,insecure,no_root_squash"
KINDS = ("ext4", "xfs", "btrfs", "tmpfs")
SEED = int(os.environ.get("READ_PLUS_SEED", time.time_ns() & 0xffffffff))
rnd = random.Random(SEED)
libc = ctypes.CDLL(None, use_errno=True)


def _elements(x, res):
    res.update(eof=x.flag(), elements=[])
    for _ in range(x.u32()):
        kind, offset = x.u32(), x.u64()
        res["elements"].append((kind, offset, x.opaque() if kind == DATA else x.u64()))


n.RESULTS[READ_PLUS] = _elements


def plus(offset, count, stateid=n.ANONYMOUS):
    return READ_PLUS, stateid + u64(offset) + u32(count)


def length(element):
    return len(element[2]) if element[0] == DATA else element[2]


def joined(elements):
    """The bytes that they stand for."""
    return b"".join(e[2] if e[0] == DATA else bytes(e[2]) for e in elements)


def wrong(res, offset, count, most=ELEMENTS):
    """What is wrong with the elements of a result, or None."""
    at = offset
    for e in res["elements"]:
        if e[0] not in (DATA, HOLE) or e[1] != at or length(e) == 0:
            return f"element {e[:2]} of {length(e)} at {at}"
        if e[0] == HOLE and e[2] < LEAST:
            return f"a hole of {e[2]} bytes"
        at += length(e)
    if at > offset + count or len(res["elements"]) > most:
        return f"{len(res['elements'])} elements up to {at}"
    return None


class Client(n.Client):
    keeps = False

    def __init__(self, d, owner, uid=0):
        super().__init__(d.port, owner, minor=2)
        self.cred = r.auth_sys(uid, uid)
        if self.register()["status"] or self.reclaim_complete():
            raise SystemExit(f"no session for {owner}")

    def leave(self):
        self.bare((n.DESTROY_SESSION, self.session))
        self.bare((n.DESTROY_CLIENTID, u64(self.clientid)))
        self.close()

    def plus(self, fh, offset, count, stateid=n.ANONYMOUS):
        return self.last(n.putfh(fh), plus(offset, count, stateid))

    def whole(self, fh, count=MIB, offset=0):
        """As a client reads a file: (its elements, the first mistake or None)."""
        elements = []
        while True:
            res = self.plus(fh, offset, count)
            bad = f"status {res['status']}" if res["status"] else wrong(res, offset, count)
            if bad:
                return elements, bad
            elements += res["elements"]
            offset += sum(map(length, res["elements"]))
            if res["eof"]:
                return elements, None
            if not res["elements"]:
                return elements, "neither an element nor the end"


def sparse(path, size, data):
    """A file with random bytes in those ranges."""
    with open(path, "wb") as f:
        f.truncate(size)
        for at, count in data:
            f.seek(at)
            f.write(rnd.randbytes(count))
    os.chmod(path, 0o644)
    return path


def remove(path):
    """With its blocks: the server may have it open."""
    os.truncate(path, 0)
    os.unlink(path)


def content(path):
    with open(path, "rb") as f:
        return f.read()


def fallocate(path, mode, offset, count):
    fd = os.open(path, os.O_RDWR)
    try:
        return libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(count))
    finally:
        os.close(fd)


def test_files(t, d, c, kind):
    at, top = d.exports[kind], 3 * MIB + 17
    data = [(0, 64 * KIB), (MIB, 300 * KIB), (2 * MIB - 5, 10), (3 * MIB, 17)]
    files = {
        "sparse": sparse(f"{at}/sparse", top, data),
        "hole": sparse(f"{at}/hole", 5 * MIB, []),
        "full": sparse(f"{at}/full", 2 * MIB + 1, [(0, 2 * MIB + 1)]),
        "tail": sparse(f"{at}/tail", 4 * MIB, [(0, 100 * KIB)]),
        "empty": sparse(f"{at}/empty", 0, []),
        "short": sparse(f"{at}/short", 10 * KIB, [(0, 10)]),
        "comb": sparse(f"{at}/comb", 2 * MIB, [(k, 4 * KIB) for k in range(0, 2 * MIB, 8 * KIB)]),
        "teeth": sparse(f"{at}/teeth", 2 * MIB, [(k, 4 * KIB) for k in range(0, 2 * MIB, 64 * KIB)]),
    }
    with open(files["sparse"], "rb") as f:
        knows_holes = os.lseek(f.fileno(), 0, os.SEEK_HOLE) < top
    for when in ("not yet on disk", "on disk", "read from the disk"):
        for name, path in files.items():
            for count in (MIB, 100 * KIB + 3, 40 * KIB):
                elements, bad = c.whole(c.path(path), count)
                t.equal(f"{kind}: {name}, {when}, {count} at a time", bad, None)
                t.check(f"{kind}: {name}, {when}: its bytes", joined(elements) == content(path))
        if knows_holes:
            sent = {name: sum(len(e[2]) for e in c.whole(c.path(files[name]))[0] if e[0] == DATA) for name in files}
            t.check(f"{kind}: the holes are not sent, {when}", sent["hole"] == 0 and sent["tail"] < 200 * KIB and
                    sent["sparse"] < 600 * KIB, sent)
            t.check(f"{kind}: small ones are, {when}", sent["comb"] == 2 * MIB and sent["full"] == 2 * MIB + 1, sent)
        else:
            t.skip(f"{kind}: holes", "the file system has none")
        for path in files.values():
            write_back(path, drop=when == "on disk")
    # One call, exactly.
    if knows_holes:
        res = c.plus(c.path(files["tail"]), 0, MIB)
        t.equal(f"{kind}: a hole ends where the range does", [(e[0], e[1]) for e in res["elements"]][-1][0], HOLE)
        t.equal(f"{kind}: all of the range", (sum(map(length, res["elements"])), res["eof"]), (MIB, False))
        res = c.plus(c.path(files["hole"]), 5 * MIB - LEAST, MIB)
        t.equal(f"{kind}: never beyond the end", (res["elements"], res["eof"]), ([(HOLE, 5 * MIB - LEAST, LEAST)], True))
    for path in files.values():
        remove(path)
    return knows_holes


def write_back(path, drop):
    """To the disk, and out of memory."""
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    if drop:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def test_changes(t, d, c, kind):
    """ALLOCATE, and holes that are punched."""
    path = sparse(f"{d.exports[kind]}/punched", 2 * MIB, [(0, 2 * MIB)])
    fh = c.path(path)
    if fallocate(path, 3, 512 * KIB, 256 * KIB):  # PUNCH_HOLE | KEEP_SIZE
        return t.skip(f"{kind}: punching holes", os.strerror(ctypes.get_errno()))
    elements, bad = c.whole(fh)
    t.equal(f"{kind}: a punched hole", (bad, [(e[1], e[2]) for e in elements if e[0] == HOLE]), (None, [(512 * KIB, 256 * KIB)]))
    t.check(f"{kind}: the bytes around it", joined(elements) == content(path))
    remove(path)
    path = sparse(f"{d.exports[kind]}/reserved", 2 * MIB, [])
    if fallocate(path, 0, 0, 2 * MIB):
        return t.skip(f"{kind}: reserving space", os.strerror(ctypes.get_errno()))
    t.check(f"{kind}: reserved space", joined(c.whole(c.path(path))[0]) == bytes(2 * MIB))
    remove(path)
    return None


def test_random(t, d, c, kind):
    for i in range(15):
        size = rnd.randrange(3 * MIB)
        data = [(a := rnd.randrange(size + 1), min(rnd.randrange(200 * KIB), size - a)) for _ in range(rnd.randrange(12))]
        path = sparse(f"{d.exports[kind]}/random", size, data)
        fh, want = c.path(path), content(path)
        for _ in range(10):
            offset, count = rnd.randrange(size + MIB), rnd.randrange(2 * MIB)
            res = c.plus(fh, offset, count)
            got, most = joined(res["elements"]), min(count, MIB)
            bad = wrong(res, offset, count)
            t.check(f"{kind}: file {i}, {count} bytes at {offset}", not bad and want[offset:offset + len(got)] == got, bad)
            t.equal(f"{kind}: file {i}, end of file", res["eof"], offset + len(got) >= size)
            t.check(f"{kind}: file {i}, little", len(got) >= min(most, max(0, size - offset)) - 300, (len(got), most))
        remove(path)


def test_writers(t, d, c, kind):
    """Local processes write, punch and cut while the file is read. Its first and third part never change, and have no zeros: whatever
    is told of them must be their bytes. What they write is 0xaa, so there is nothing else but zeros."""
    part, path = 256 * KIB, f"{d.exports[kind]}/changing"
    fixed = bytes(1 + i % 250 for i in range(part))
    with open(path, "wb") as f:
        f.write(fixed + bytes(part) + fixed)
    fh, until, stop, wrongs, seen = c.path(path), time.monotonic() + 1.5, threading.Event(), [], {"hole": 0, "data": 0}

    def change(seed):
        mine, fd = random.Random(seed), os.open(path, os.O_RDWR)
        while not stop.is_set():
            what = mine.randrange(4)
            if what == 0:
                libc.fallocate(fd, 3, ctypes.c_long(part), ctypes.c_long(part))
            elif what == 1:
                os.pwrite(fd, b"\xaa" * part, part)
            elif what == 2:
                os.truncate(path, 3 * part)
            else:
                os.pwrite(fd, b"\xaa" * mine.randrange(1, 2 * part), 3 * part + mine.randrange(part))
        os.close(fd)

    threads = [threading.Thread(target=change, args=(rnd.random(),)) for _ in range(2)]
    for th in threads:
        th.start()
    while time.monotonic() < until and not wrongs:
        res = c.plus(fh, 0, MIB)
        got = joined(res["elements"]) if not res["status"] else b""
        for e in res.get("elements", []):
            seen["hole" if e[0] == HOLE else "data"] += 1
        if res["status"] or wrong(res, 0, MIB) or (len(got) < 3 * part and res["eof"]):
            wrongs.append((res["status"], len(got)))
        elif got[:part] != fixed[:len(got)] or not fixed.startswith(got[2 * part:3 * part]):
            wrongs.append("what nobody changes")
        elif set(got[part:2 * part] + got[3 * part:]) - {0, 0xaa}:
            wrongs.append("bytes that nobody wrote")
    stop.set()
    for th in threads:
        th.join()
    t.equal(f"{kind}: while others write, punch and cut", wrongs, [])
    t.check(f"{kind}: there was something to read", seen["data"] > 0, seen)
    remove(path)


def test_pages(t, d, c, held):
    """Long data elements go as READ's data do: without a copy, where the machine can do that."""
    def spliced():
        before = len(d.read_log())
        held.now()
        return int(re.search(r"bytes out, (\d+) without a copy", d.read_log()[before:])[1])

    for kind in ("xfs", "ext4"):
        path = sparse(f"{d.exports[kind]}/pages", MIB, [(0, 200 * KIB), (700 * KIB, 100 * KIB), (900 * KIB, 10 * KIB)])
        fh, before = c.path(path), spliced()
        c.last(n.putfh(fh), n.read(n.ANONYMOUS, 0, 200 * KIB))
        if spliced() == before:
            t.skip(f"{kind}: data that are not copied", "READ copies here, too")
            continue
        before, want = spliced(), content(path)
        res = c.plus(fh, 0, MIB - 4 * KIB)
        t.equal(f"{kind}: bytes that were not copied", spliced() - before, 300 * KIB)
        t.check(f"{kind}: they are right", joined(res["elements"]) == want[:MIB - 4 * KIB])
        c.keeps = True
        before = spliced()
        c.plus(fh, 0, MIB)
        t.equal(f"{kind}: bytes of a reply to be kept that were not copied", spliced() - before, 0)
        c.keeps = False
        remove(path)


def test_users(t, d, c):
    secret = sparse(f"{d.exports['own']}/secret", 2 * MIB, [(MIB, 10)])
    os.chmod(secret, 0o600)
    fh, user = c.path(secret), Client(d, "user", 1000)
    for offset, count in ((0, MIB), (0, 10), (3 * MIB, MIB), (0, 0)):
        t.equal(f"{count} bytes at {offset} of what a user may not read", user.plus(fh, offset, count)["status"], ACCESS)
    opened, _ = c.open(c.path(d.exports["own"]), "secret")
    t.equal("with the stateid of root's open", user.plus(fh, 0, MIB, opened["stateid"])["status"], BAD_STATEID)
    t.equal("root with it", c.plus(fh, 0, MIB, opened["stateid"])["status"], 0)
    t.equal("with one that nobody has", c.plus(fh, 0, MIB, b"\1" * 16)["status"], BAD_STATEID)
    c.close_file(fh, opened["stateid"])
    denied, _ = user.open(user.path(d.exports["own"]), sparse_for(d, "denied"), deny=1)
    t.equal("while another client denies reading", c.plus(c.path(d.exports["own"] + "/denied"), 0, MIB)["status"], LOCKED)
    user.close_file(user.path(d.exports["own"] + "/denied"), denied["stateid"])
    t.equal("of a directory", c.plus(c.path(d.exports["own"]), 0, MIB)["status"], ISDIR)
    os.mkfifo(d.exports["own"] + "/fifo")
    t.equal("of a FIFO", c.plus(c.path(d.exports["own"] + "/fifo"), 0, MIB)["status"], WRONG_TYPE)
    user.leave()


def sparse_for(d, name):
    os.chown(sparse(f"{d.exports['own']}/{name}", 2 * MIB, [(0, 10)]), 1000, 1000)
    return name


def test_lease(t, d, c):
    """A local process that has the file leased is asked to give it up; the server waits for nobody."""
    path = sparse(f"{d.exports['own']}/leased", 2 * MIB, [(0, 10)])
    fh, fd, asked = c.path(path), os.open(path, os.O_RDWR), threading.Event()
    signal.signal(signal.SIGIO, lambda *_: asked.set())
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as e:
        os.close(fd)
        return t.skip("a lease of a local process", e)
    t.equal("while a local process has a lease", c.plus(fh, 0, MIB)["status"], DELAY)
    t.check("it is told to give it up", asked.wait(10))
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    os.close(fd)
    t.equal("then", c.plus(fh, 0, MIB)["status"], 0)
    return None


def test_hostile(t, d, c):
    path = sparse(f"{d.exports['own']}/hostile", 4 * MIB, [(0, 100 * KIB), (MIB, 100 * KIB)])
    fh, top = c.path(path), (1 << 64) - 1
    for offset in (0, 1, MIB - 1, 4 * MIB - 1, 4 * MIB, 1 << 62, (1 << 63) - 1, 1 << 63, top):
        for count in (0, 1, LEAST - 1, LEAST, MIB, 1 << 31, (1 << 32) - 1):
            res = c.plus(fh, offset, count)
            bad = res["status"] or wrong(res, offset, count)
            t.check(f"{count} bytes at {offset}", not bad, bad)
            if offset >= 4 * MIB:
                t.equal(f"{count} bytes at {offset}: the end", (res["elements"], res["eof"]), ([], True))
    for cut in range(0, 28, 4):
        t.equal(f"arguments of {cut} bytes", c.last(n.putfh(fh), (READ_PLUS, plus(0, MIB)[1][:cut]))["status"], BADXDR)
    results = c.compound(n.putfh(fh), *[plus(i, 1000 + i) for i in range(6)])
    t.equal("six in one COMPOUND", [len(joined(x["elements"])) for x in results[1:]], [1000 + i for i in range(6)])
    results = c.compound(n.putfh(fh), *[plus(0, MIB)] * 6)
    t.check("six long ones: as much as the session allows", all(x["status"] in (0, REP_TOO_BIG) for x in results),
            [x["status"] for x in results])
    # A slot that keeps the reply: at most 4 KiB.
    c.keeps = True
    res = c.plus(fh, 0, MIB)
    t.check("a reply that is kept", not wrong(res, 0, MIB) and 0 < len(joined(res["elements"])) < 4096 and not res["eof"], res["status"])
    res = c.plus(fh, 2 * MIB, 2 * MIB)
    t.check("a hole in a reply that is kept", len(res["elements"]) == 1 and res["elements"][0][0] == HOLE, res["elements"][:1])
    c.keeps = False


def test_many(t, d, _root):
    """Clients that read at once, with calls in flight that want all memory."""
    path = sparse(f"{d.exports['own']}/many", 8 * MIB, [(k * MIB, 700 * KIB) for k in range(0, 8, 2)])
    want, wrongs, until = content(path), [], time.monotonic() + 3
    clients = [Client(d, f"many {i}") for i in range(5)]

    def work(c):
        fh = c.path(path)
        while time.monotonic() < until:
            elements, bad = c.whole(fh)
            if bad and bad != f"status {DELAY}":
                wrongs.append(bad)
            elif not bad and joined(elements) != want:
                wrongs.append("other bytes")

    threads = [threading.Thread(target=work, args=(c,)) for c in clients]
    for th in threads:
        th.start()
    for th in threads:
        th.join()
    t.equal("five clients at once", wrongs, [])
    for c in clients:
        c.leave()


def mount(d, kind):
    """Why the export has no file system of that kind."""
    if kind == "tmpfs":
        res = mounts.run("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", d.exports[kind])
        why = res.stderr.strip() if res.returncode else None
    else:
        image = f"{d.top}/{kind}.img"
        why = mounts.make_image(image, kind) or mounts.mount_image(image, d.exports[kind])
    if not why:
        os.chmod(d.exports[kind], 0o777)
        why = harness.handles_work(d.exports[kind])
    return why


def main():
    mounts.own_namespace()
    t = Count()
    d = Daemon({"own": OPTIONS, **{kind: OPTIONS for kind in KINDS}})
    reasons = {kind: mount(d, kind) for kind in KINDS}
    with d:
        with d.connect() as conn:
            root = d.root(conn, "own")
        held = Held(d)
        before = held.settled()
        c = Client(d, "reader")
        for kind in KINDS:
            if reasons[kind]:
                t.skip(kind, reasons[kind])
                continue
            knows = test_files(t, d, c, kind)
            t.check(f"{kind} has holes", knows)
            test_changes(t, d, c, kind)
            test_random(t, d, c, kind)
            test_writers(t, d, c, kind)
        if not reasons["xfs"] and not reasons["ext4"]:
            test_pages(t, d, c, held)
        test_users(t, d, c)
        test_lease(t, d, c)
        test_hostile(t, d, c)
        c.leave()
        watched(t, d, root, test_many)
        t.equal("what was not given back", held.lost(before), {})
        harness.finish(t, d)
        for kind in KINDS:
            mounts.umount(d.exports[kind])
    with Daemon({"own": OPTIONS}, {"vfs.io_mode": "direct"}) as past:
        c = Client(past, "past the page cache")
        test_files(t, past, c, "own")
        test_random(t, past, c, "own")
        c.leave()
        harness.finish(t, past)
    if t.failed:
        print(f"READ_PLUS_SEED={SEED}")
    harness.result(t)


if __name__ == "__main__":
    main()
