#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Attributes and small operations of NFSv4.2: security labels against those on disk, the time of birth, what OPEN accepts,
advice as seen in the page cache, and operations that this server does not have."""
import ctypes
import os
import subprocess
import time

import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from nfs4client import SETATTR, putfh
from rpcclient import opaque, u32, u64

CREATE, GETATTR, OPENATTR, VERIFY, SET_SSV, IO_ADVISE = 6, 9, 19, 37, 54, 63
(SUPPORTED, CHANGE, SIZE, TIME_CREATE, EXCLCREAT, SPACE_FREED, CHANGE_TYPE, SEC_LABEL, OPEN_ARGUMENTS) = (
    0, 3, 4, 50, 75, 78, 79, 80, 86)
ARCHIVE, HIDDEN, SYSTEM = 14, 25, 46
NOTSUPP, NOFILEHANDLE, ATTRNOTSUPP, OP_ILLEGAL, WRONG_LFS, BADLABEL = 10004, 10020, 10032, 10044, 10092, 10093
UNDEFINED = 4  # change_attr_type
SELINUX = "security.selinux"
ETC, TMP = b"system_u:object_r:etc_t:s0\0", b"system_u:object_r:tmp_t:s0\0"
OWNER, STRANGER = 1000, 1001
SEQUENTIAL, RANDOM, WILLNEED, DONTNEED = 1 << 1, 1 << 3, 1 << 4, 1 << 6
PAGE, MIB = 4096, 1 << 20
OPTIONS = {"plain": "rw,insecure,no_root_squash", "labels": "rw,insecure,no_root_squash,security_label"}
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def bits(*numbers):
    words = [sum(1 << n % 32 for n in numbers if n // 32 == w) for w in range(3)]
    return u32(3) + b"".join(map(u32, words))


def has(words, number):
    return len(words) > number // 32 and bool(words[number // 32] & 1 << number % 32)


def words_of(attrs):
    return n4._bitmap(r.In(attrs))


def label(text, lfs=0, pi=0):
    return u32(lfs) + u32(pi) + opaque(text)


def fattr(number, value):
    return bits(number) + opaque(value)


n4.RESULTS.update({
    GETATTR: lambda x, res: res.update(mask=n4._bitmap(x), attrs=x.opaque()),
    CREATE: lambda x, res: res.update(cinfo=x.take(20), mask=n4._bitmap(x)),
    IO_ADVISE: lambda x, res: res.update(hints=n4._bitmap(x)),
})


class Client(n4.Client):
    def __init__(self, d, owner, uid=0, minor=2):
        super().__init__(d.port, owner, minor=minor)
        self.cred = r.auth_sys(uid, uid)
        if self.register()["status"] or self.reclaim_complete():
            raise SystemExit(f"no session for {owner}")

    def attrs(self, fh, *numbers):
        return self.last(putfh(fh), (GETATTR, bits(*numbers)))

    def value(self, fh, number):
        """None: the attribute is not there."""
        res = self.attrs(fh, number)
        return res["attrs"] if res["status"] == 0 and has(res["mask"], number) else None

    def label(self, fh):
        v = self.value(fh, SEC_LABEL)
        return v and (v[:8], v[12:12 + int.from_bytes(v[8:12], "big")])

    def set(self, fh, number, value):
        return self.last(putfh(fh), (SETATTR, n4.ANONYMOUS + fattr(number, value)))

    def advise(self, fh, hints, offset=0, count=0, stateid=n4.ANONYMOUS):
        return self.last(putfh(fh), (IO_ADVISE, stateid + u64(offset) + u64(count) + u32(1) + u32(hints)))


def birth(path):
    return int(subprocess.run(["stat", "-c", "%W", path], capture_output=True, text=True, check=True).stdout)


def make(d, export, name, uid=0, size=0):
    path = os.path.join(d.exports[export], name)
    with open(path, "wb") as f:
        f.write(os.urandom(size))
        os.fsync(f.fileno())
    os.chown(path, uid, uid)
    return path


def test_birth(t, d, c):
    path = make(d, "plain", "birth")
    fh, born = c.path(path), birth(path)
    if not born:
        t.skip("the time of birth", "this file system does not keep it")
        return
    time_create = u64(born)
    t.equal("time_create", c.value(fh, TIME_CREATE)[:8], time_create)
    res = c.set(fh, TIME_CREATE, u64(1000) + u32(0))
    t.equal("SETATTR of it is passed over", (res["status"], has(res["set"], TIME_CREATE)), (0, False))
    res = c.last(putfh(fh), (SETATTR, n4.ANONYMOUS + bits(SIZE, TIME_CREATE) + opaque(u64(5) + u64(1000) + u32(0))))
    t.equal("what comes with it is done", (res["status"], has(res["set"], SIZE), has(res["set"], TIME_CREATE)), (0, True, False))
    t.equal("afterwards", (os.stat(path).st_size, c.value(fh, TIME_CREATE)[:8]), (5, time_create))


def test_absent(t, d, c):
    """What no file system of Linux has."""
    fh = c.path(make(d, "plain", "absent"))
    supported = words_of(c.value(fh, SUPPORTED))
    for number in (ARCHIVE, HIDDEN, SYSTEM):
        t.equal(f"attribute {number}", (has(supported, number), c.value(fh, number)), (False, None))
        t.equal(f"attribute {number} cannot be set", c.set(fh, number, u32(1))["status"], ATTRNOTSUPP)
    t.equal("change_attr_type", c.value(fh, CHANGE_TYPE), u32(UNDEFINED))


def test_space_freed(t, d, c):
    path = make(d, "plain", "freed", size=MIB)
    fh, used = c.path(path), os.stat(path).st_blocks * 512
    t.equal("space_freed", c.value(fh, SPACE_FREED), u64(used))
    os.link(path, path + ".2")
    t.equal("with another name", c.value(fh, SPACE_FREED), u64(0))
    os.unlink(path)
    t.equal("without it", c.value(c.path(path + ".2"), SPACE_FREED), u64(used))
    t.equal("it cannot be set", c.set(fh, SPACE_FREED, u64(0))["status"], r.INVAL)


def test_open_arguments(t, d, c):
    fh = c.path(d.exports["plain"])
    v = c.value(fh, OPEN_ARGUMENTS)
    t.check("open_arguments is supported", has(words_of(c.value(fh, SUPPORTED)), OPEN_ARGUMENTS) and v is not None, v)
    maps = [int.from_bytes(v[8 * i + 4:8 * i + 8], "big") for i in range(5)]
    t.equal("five bitmaps of one word", [v[8 * i:8 * i + 4] for i in range(6)], [u32(1)] * 5 + [b""])
    t.equal("access, deny, create modes", [maps[0], maps[1], maps[4]], [0xe, 0xf, 0xf])
    for deny in range(6):
        status = c.open(fh, f"deny{deny}", create=True, deny=deny)[0]["status"]
        t.equal(f"deny {deny}", status, 0 if maps[1] >> deny & 1 else r.INVAL)
    for bit, flag in ((3, 0x300), (4, 0x400), (5, 0x500), (20, 0x100000), (21, 0x200000)):
        status = c.open(fh, f"want{bit}", create=True, access=n4.SHARE_READ | flag)[0]["status"]
        t.equal(f"want {flag:#x}", status, 0 if maps[2] >> bit & 1 else r.INVAL)
    t.equal("VERIFY takes it as it is", c.last(putfh(fh), (VERIFY, fattr(OPEN_ARGUMENTS, v)))["status"], 0)


def test_labels(t, d, c):
    path = make(d, "labels", "file")
    try:
        os.setxattr(path, SELINUX, ETC)
    except OSError as e:
        t.skip("labels", f"no labels here: {e}")
        return
    fh = c.path(path)
    supported = words_of(c.value(fh, SUPPORTED)), words_of(c.value(fh, EXCLCREAT))
    t.equal("supported, also at exclusive creation", [has(w, SEC_LABEL) for w in supported], [True, True])
    t.equal("the label on disk", c.label(fh), (u64(0), ETC))
    change = c.value(fh, CHANGE)
    t.equal("SETATTR", c.set(fh, SEC_LABEL, label(TMP))["status"], 0)
    t.equal("on disk", os.getxattr(path, SELINUX), TMP)
    t.check("it is a change", c.value(fh, CHANGE) != change)
    change = c.value(fh, CHANGE)
    time.sleep(0.02)  # a tick of the clock that ctime goes by
    os.setxattr(path, SELINUX, ETC)
    t.equal("a local process's label", c.label(fh), (u64(0), ETC))
    t.check("it is a change, too", c.value(fh, CHANGE) != change)
    for what, value, status in (("no label", label(b""), BADLABEL), ("a long one", label(b"l" * 4097), BADLABEL),
                                ("another format", label(TMP, lfs=1), WRONG_LFS), ("another policy", label(TMP, pi=1), WRONG_LFS)):
        t.equal(what, c.set(fh, SEC_LABEL, value)["status"], status)
    t.equal("it stays", os.getxattr(path, SELINUX), ETC)
    unlabelled = c.path(make(d, "labels", "none"))
    t.equal("an object without a label", c.label(unlabelled), None)
    plain = make(d, "plain", "labelled")
    os.setxattr(plain, SELINUX, ETC)
    fh = c.path(plain)
    t.equal("without the option", (c.label(fh), has(words_of(c.value(fh, SUPPORTED)), SEC_LABEL),
                                   c.set(fh, SEC_LABEL, label(TMP))["status"]), (None, False, ATTRNOTSUPP))
    t.equal("the pseudo file system has none", c.label(c.last((n4.PUTROOTFH, b""), (n4.GETFH, b""))["fh"]), None)


def test_labels_of_users(t, d, c):
    path = make(d, "labels", "owned", OWNER)
    try:
        os.setxattr(path, SELINUX, ETC)
    except OSError:
        return
    os.chmod(path, 0o666)
    mine, other, fh = Client(d, "mine", OWNER), Client(d, "other", STRANGER), c.path(path)
    t.equal("the owner labels", (mine.set(fh, SEC_LABEL, label(TMP))["status"], os.getxattr(path, SELINUX)), (0, TMP))
    t.equal("another does not", (other.set(fh, SEC_LABEL, label(ETC))["status"], os.getxattr(path, SELINUX)), (r.PERM, TMP))
    t.equal("but sees", other.label(fh), (u64(0), TMP))
    top = c.path(d.exports["labels"])
    for name, kind, arg in (("dir", 2, b""), ("link", 5, opaque(b"target")), ("fifo", 7, b"")):
        res = mine.last(putfh(top), (CREATE, u32(kind) + arg + r.name(name) + fattr(SEC_LABEL, label(TMP))))
        t.equal(f"CREATE of a {name}", (res["status"], has(res.get("mask", []), SEC_LABEL)), (0, True))
        t.equal(f"the {name}'s label", os.getxattr(d.exports["labels"] + "/" + name, SELINUX, follow_symlinks=False), TMP)
    how = {0: b"", 1: b"", 3: b"verifier"}
    for mode, verifier in how.items():
        args = (mine._open_owner(n4.SHARE_BOTH, 0) + u32(1) + u32(mode) + verifier + fattr(SEC_LABEL, label(TMP)) + u32(0) +
                r.name(f"open{mode}"))
        res = mine.last(putfh(top), (n4.OPEN, args))
        t.equal(f"OPEN by createmode {mode}", (res["status"], has(res.get("attrset", []), SEC_LABEL)), (0, True))
        t.equal(f"its label, {mode}", os.getxattr(d.exports["labels"] + f"/open{mode}", SELINUX), TMP)
    mine.close(), other.close()


def cached(path):
    """Pages of the file in the page cache."""
    size = os.stat(path).st_size
    fd = os.open(path, os.O_RDONLY)
    vec = ctypes.create_string_buffer((size + PAGE - 1) // PAGE)
    at = libc.mmap(None, size, 1, 1, fd, 0)
    os.close(fd)
    libc.mincore(at, size, vec)
    libc.munmap(at, size)
    return sum(b & 1 for b in vec.raw)


def drop(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    return cached(path)


def first_page(c, path, fh):
    """Pages in memory after c has read one."""
    drop(path)
    c.last(putfh(fh), n4.read(n4.ANONYMOUS, 0, PAGE))
    return cached(path)


def test_advice(t, d, c):
    path = make(d, "plain", "advised", size=4 * MIB)
    fh, other = c.path(path), Client(d, "other reader")
    if drop(path):
        t.skip("advice", "pages cannot be dropped here")
        return
    t.equal("WILLNEED", c.advise(fh, WILLNEED, 0, MIB).get("hints"), [WILLNEED])
    end = time.monotonic() + 20
    while cached(path) < MIB // PAGE and time.monotonic() < end:
        time.sleep(0.01)  # the disk is not waited for
    t.check("the range is read", cached(path) >= MIB // PAGE, cached(path))
    opened, _ = other.open(c.path(d.exports["plain"]), "advised", access=n4.SHARE_READ)
    t.equal("DONTNEED while another has it open", (c.advise(fh, DONTNEED).get("hints"), cached(path) > 0), ([1], True))
    t.equal("DONTNEED by who has it open", (other.advise(fh, DONTNEED, stateid=opened["stateid"]).get("hints"), cached(path)),
            ([DONTNEED], 0))
    other.close_file(fh, opened["stateid"])
    if first_page(c, path, fh) < 2:
        t.skip("patterns", "nothing is read ahead here")
        return
    t.equal("RANDOM", c.advise(fh, RANDOM).get("hints"), [RANDOM])
    t.equal("nothing is read ahead", first_page(c, path, fh), 1)
    t.check("for another it is", first_page(other, path, fh) > 1)
    t.check("and then for all", first_page(c, path, fh) > 1)
    t.equal("SEQUENTIAL", c.advise(fh, SEQUENTIAL).get("hints"), [SEQUENTIAL])
    t.equal("contradictions", [c.advise(fh, h).get("hints") for h in (SEQUENTIAL | RANDOM, WILLNEED | DONTNEED, 0x7ff)], [[1]] * 3)
    t.equal("hints that mean nothing here", c.advise(fh, 1 << 2 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10).get("hints"), [1])
    other.close()


def test_absent_operations(t, d):
    """Without layouts (layouts.py has those) and named attributes."""
    since = {OPENATTR: 0, **{op: 1 for op in (47, 48, 49, 50, 51)},  # GETDEVICEINFO, GETDEVICELIST, LAYOUTCOMMIT, LAYOUTGET, LAYOUTRETURN
             **{op: 2 for op in (64, 65)}}  # LAYOUTERROR, LAYOUTSTATS
    arguments = {OPENATTR: bytes(4), 47: bytes(28), 49: bytes(52), 50: bytes(56), 51: bytes(12) + u32(3), 64: bytes(36), 65: bytes(88)}
    for minor in (0, 1, 2):
        c = Client(d, f"minor {minor}", minor=minor)
        fh = c.path(d.exports["plain"])
        for op, first in since.items():
            res = c.last(putfh(fh), (op, arguments.get(op, b"")))
            t.equal(f"operation {op} of 4.{minor}", (res["op"], res["status"]),
                    (op, NOTSUPP) if minor >= first else (10044, OP_ILLEGAL))
        t.equal(f"OPENATTR of 4.{minor} without a filehandle", c.last((OPENATTR, u32(0)))["status"], NOFILEHANDLE)
        res = c.last((SET_SSV, opaque(b"ssv") + opaque(b"digest")))
        t.equal(f"SET_SSV of 4.{minor}", res["status"], r.INVAL if minor else OP_ILLEGAL)
        c.close()


def main():
    t = Count()
    with Daemon(OPTIONS) as d:
        c = Client(d, "root")
        for test in (test_birth, test_absent, test_space_freed, test_open_arguments, test_labels, test_labels_of_users, test_advice):
            test(t, d, c)
        test_absent_operations(t, d)
        c.close()
        t.equal("it stops", d.stop()[0], 0)
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    return 1 if t.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
