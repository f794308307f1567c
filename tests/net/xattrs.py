#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Extended attributes (RFC 8276) by NFSv4.2: values are those on disk and the other way round, and who may do what; the namespaces
of the kernel that clients must not get at; long names and values, and lists in pieces."""
import os
import stat
import time

import mounts
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from held import Held
from nfs4client import putfh
from rpcclient import opaque, u32, u64

ACCESS, GETATTR, GETXATTR, SETXATTR, LISTXATTRS, REMOVEXATTR = 3, 9, 72, 73, 74, 75
EITHER, CREATE, REPLACE = 0, 1, 2
BAD_COOKIE, NOTSUPP, TOOSMALL, REQ_TOO_BIG, REP_TOO_BIG, REP_TOO_BIG_TO_CACHE, NOXATTR, XATTR2BIG = (
    10003, 10004, 10005, 10065, 10066, 10067, 10095, 10096)
XAREAD, XAWRITE, XALIST = 0x40, 0x80, 0x100
XATTR_SUPPORT = 82
VALUE_MAX, NAME_MAX, LIST_HEAD = 65536, 250, 16
OWNER, STRANGER = 1000, 1001
OPTIONS = {"own": "rw,insecure,no_root_squash", "sq": "rw,insecure", "ro": "ro,insecure,no_root_squash",
           "ext4": "rw,insecure,no_root_squash", "xfs": "rw,insecure,no_root_squash"}


def changed(x, res):
    res.update(atomic=x.flag(), before=x.u64(), after=x.u64())


def listed(x, res):
    res.update(cookie=x.u64(), names=[x.opaque() for _ in range(x.u32())], eof=x.flag(), end=x.at)


n4.RESULTS.update({
    ACCESS: lambda x, res: res.update(supported=x.u32(), granted=x.u32()),
    GETATTR: lambda x, res: res.update(mask=n4._bitmap(x), attrs=x.opaque()),
    GETXATTR: lambda x, res: res.update(value=x.opaque()),
    SETXATTR: changed, REMOVEXATTR: changed, LISTXATTRS: listed,
})


class Client(n4.Client):
    """One user's."""

    def __init__(self, d, owner, uid=0, longest=1 << 20):
        super().__init__(d.port, owner, minor=2)
        self.longest = longest
        self.cred = r.auth_sys(uid, uid)
        if self.register()["status"] or self.reclaim_complete():
            raise SystemExit(f"no session for {owner}")

    def get(self, fh, name):
        return self.last(putfh(fh), (GETXATTR, r.name(name)))

    def set(self, fh, name, value, how=EITHER):
        return self.last(putfh(fh), (SETXATTR, u32(how) + r.name(name) + opaque(value)))

    def remove(self, fh, name):
        return self.last(putfh(fh), (REMOVEXATTR, r.name(name)))

    def list(self, fh, cookie=0, maxcount=100000):
        return self.last(putfh(fh), (LISTXATTRS, u64(cookie) + u32(maxcount)))

    def access(self, fh, bits=XAREAD | XAWRITE | XALIST):
        res = self.last(putfh(fh), (ACCESS, u32(bits)))
        return res["supported"], res["granted"]

    def attr(self, fh, number):
        words = [0, 0, 0]
        words[number // 32] = 1 << number % 32
        return self.last(putfh(fh), (GETATTR, u32(3) + b"".join(map(u32, words))))

    def change(self, fh):
        return int.from_bytes(self.attr(fh, 3)["attrs"], "big")


def make(d, export, name, mode=0o644, uid=0):
    path = os.path.join(d.exports[export], name)
    with open(path, "w"):
        pass
    os.chown(path, uid, uid)
    os.chmod(path, mode)
    return path


def test_support(t, d, c):
    fh, root = c.path(d.exports["own"]), c.last((n4.PUTROOTFH, b""), (n4.GETFH, b""))["fh"]
    mask = c.attr(fh, 0)["attrs"]
    t.check("supported_attrs lists xattr_support", len(mask) >= 16 and mask[13] & 4, mask.hex())
    t.equal("xattr_support", c.attr(fh, XATTR_SUPPORT)["attrs"], u32(1))
    t.equal("xattr_support of the pseudo file system", c.attr(root, XATTR_SUPPORT)["attrs"], u32(0))
    t.equal("a pseudo directory has none", [c.get(root, "a")["status"], c.set(root, "a", b"")["status"], c.list(root)["status"],
                                            c.remove(root, "a")["status"]], [NOTSUPP] * 4)
    t.equal("ACCESS in the pseudo file system", c.access(root), (0, 0))


def test_values(t, d, c):
    path = make(d, "own", "values")
    fh = c.path(path)
    for what, at, h in (("a file", path, fh), ("a directory", d.exports["own"], c.path(d.exports["own"]))):
        for value in (b"value", b"", b"\0\xff\0", bytes(range(256)) * 4):
            t.equal(f"SETXATTR on {what}", c.set(h, "key", value)["status"], 0)
            t.equal(f"on disk, of {what}", os.getxattr(at, "user.key"), value)
            t.equal(f"GETXATTR of {what}", c.get(h, "key").get("value"), value)
        os.setxattr(at, "user.local", b"by a local process")
        t.equal(f"a local process's, of {what}", c.get(h, "local").get("value"), b"by a local process")
        t.equal(f"LISTXATTRS of {what}", sorted(c.list(h)["names"]), [b"key", b"local"])
        t.equal(f"REMOVEXATTR on {what}", [c.remove(h, n)["status"] for n in ("key", "local", "key")], [0, 0, NOXATTR])
        t.equal(f"gone from the disk, of {what}", os.listxattr(at), [])
        t.equal(f"GETXATTR of none, of {what}", c.get(h, "key")["status"], NOXATTR)
        t.equal(f"an empty list of {what}", (c.list(h)["names"], c.list(h)["eof"]), ([], True))
    t.equal("REPLACE of none", c.set(fh, "k", b"1", REPLACE)["status"], NOXATTR)
    t.equal("CREATE", c.set(fh, "k", b"2", CREATE)["status"], 0)
    t.equal("CREATE of what is there", c.set(fh, "k", b"3", CREATE)["status"], r.EXIST)
    t.equal("it stays", os.getxattr(path, "user.k"), b"2")
    t.equal("REPLACE", c.set(fh, "k", b"4", REPLACE)["status"], 0)
    t.equal("no such option", c.set(fh, "k", b"5", 3)["status"], r.INVAL)
    t.equal("after all", os.getxattr(path, "user.k"), b"4")


def test_change(t, d, c):
    """The change attribute grows with each change, and the next one begins where it was, or later."""
    path = make(d, "own", "change")
    for h in (c.path(path), c.path(d.exports["own"])):
        last = c.change(h)
        for i in range(20):
            res = c.set(h, "k", b"%d" % i) if i % 5 else c.set(h, "other", b"x") if i % 2 else c.remove(h, "other")
            if res["status"] == NOXATTR:
                continue
            now = c.change(h)
            t.check("the change attribute grows", last <= res["before"] < res["after"] <= now, (last, res, now))
            last = now
    t.check("a file's change is not told as atomic", not c.set(c.path(path), "k", b"")["atomic"])


def test_atomic(t, d, c):
    """The kernel's events tell of a directory that nobody else changes it."""
    os.mkdir(os.path.join(d.exports["ext4"], "quiet"))
    fh = c.path(d.exports["ext4"] + "/quiet")
    results = [c.set(fh, "k", b"%d" % i) for i in range(10)]
    t.check("changes of a directory are atomic", all(x["atomic"] for x in results[2:]), results)
    t.check("each begins where the last ended", all(a["after"] == b["before"] for a, b in zip(results[2:], results[3:])), results)
    os.setxattr(d.exports["ext4"] + "/quiet", "user.k", b"local")
    res = c.set(fh, "k", b"mine")
    t.check("a local process's change is not taken for the client's", not res["atomic"] or res["before"] != results[-1]["after"], res)


def test_names(t, d, c):
    path = make(d, "own", "names")
    fh = c.path(path)
    longest = "n" * NAME_MAX
    t.equal("a name of 250 bytes", c.set(fh, longest, b"v")["status"], 0)
    t.equal("255 with the prefix", os.getxattr(path, "user." + longest), b"v")
    t.equal("listed", c.list(fh)["names"], [longest.encode()])
    for n in (NAME_MAX + 1, 255, 256, 5000):
        t.equal(f"a name of {n} bytes", [c.set(fh, "n" * n, b"")["status"], c.get(fh, "n" * n)["status"],
                                         c.remove(fh, "n" * n)["status"]], [r.NAMETOOLONG] * 3)
    t.equal("an empty name", [c.set(fh, "", b"")["status"], c.get(fh, "")["status"], c.remove(fh, "")["status"]], [r.INVAL] * 3)
    for name in (b"with/slash", b"..", b"\xff\xfe", "Grüße".encode()):
        t.equal(f"the name {name}", [c.set(fh, name, name)["status"], c.get(fh, name).get("value")], [0, name])


def test_namespaces(t, d, c):
    """Root's client, too, names none but the user's."""
    path = make(d, "own", "spaces")
    fh = c.path(path)
    os.setxattr(path, "trusted.secret", b"secret")
    os.setxattr(path, "security.secret", b"secret")
    acl = bytes.fromhex("02000000010006000000000002000400e803000004000000000000001000040000000000" "2000000000000000")
    try:
        os.setxattr(path, "system.posix_acl_access", acl)
    except OSError:
        pass
    before = {n: os.getxattr(path, n) for n in os.listxattr(path)}
    t.equal("none is listed", c.list(fh)["names"], [])
    for name in [*before, "trusted.new", "security.capability", "user.mine"]:
        t.equal(f"GETXATTR {name}", c.get(fh, name)["status"], NOXATTR)
        t.equal(f"REMOVEXATTR {name}", c.remove(fh, name)["status"], NOXATTR)
        t.equal(f"SETXATTR {name}", c.set(fh, name, b"mine")["status"], 0)
        t.equal(f"{name} is one of the user's", os.getxattr(path, "user." + name), b"mine")
        os.removexattr(path, "user." + name)
    t.equal("the others are as they were", {n: os.getxattr(path, n) for n in os.listxattr(path)}, before)


def test_users(t, d, c):
    root_path = make(d, "own", "roots", 0o600)
    path = make(d, "own", "private", 0o600, OWNER)
    shown = make(d, "own", "shown", 0o644, OWNER)
    sticky = os.path.join(d.exports["own"], "sticky")
    os.mkdir(sticky)
    os.chmod(sticky, 0o1777)
    mine, other = Client(d, "mine", OWNER), Client(d, "other", STRANGER)
    all_ = XAREAD | XAWRITE | XALIST
    fh = c.path(path)
    t.equal("the owner sets", mine.set(fh, "k", b"secret")["status"], 0)
    t.equal("the owner gets", mine.get(fh, "k").get("value"), b"secret")
    t.equal("a stranger", [other.get(fh, "k")["status"], other.list(fh)["status"], other.set(fh, "k", b"")["status"],
                           other.remove(fh, "k")["status"]], [r.ACCES] * 4)
    t.equal("ACCESS", [mine.access(fh), other.access(fh)], [(all_, all_), (all_, 0)])
    fh = c.path(shown)
    mine.set(fh, "k", b"public")
    t.equal("what others may read", [other.get(fh, "k").get("value"), other.list(fh).get("names")], [b"public", [b"k"]])
    t.equal("they may not write", [other.set(fh, "k", b"")["status"], other.remove(fh, "k")["status"]], [r.ACCES] * 2)
    t.equal("ACCESS of others", other.access(fh), (all_, XAREAD | XALIST))
    os.chmod(shown, 0)
    t.equal("without permission the owner has none either", mine.get(fh, "k")["status"], r.ACCES)
    t.equal("a sticky directory is its owner's", [mine.set(c.path(sticky), "k", b"")["status"], mine.access(c.path(sticky))],
            [r.PERM, (all_, XAREAD | XALIST)])
    fh = c.path(root_path)
    t.equal("root sets", c.set(fh, "k", b"v")["status"], 0)
    t.equal("another does not", mine.get(fh, "k")["status"], r.ACCES)
    mine.close(), other.close()


def test_squashed(t, d, c):
    path = make(d, "sq", "roots", 0o644)
    secret = make(d, "sq", "secret", 0o600)
    os.setxattr(path, "user.k", b"v")
    os.setxattr(secret, "user.k", b"v")
    fh = c.path(path)
    t.equal("root who is squashed reads what all may", c.get(fh, "k").get("value"), b"v")
    t.equal("and changes nothing", [c.set(fh, "k", b"w")["status"], c.remove(fh, "k")["status"]], [r.ACCES] * 2)
    fh = c.path(secret)
    t.equal("and reads nothing else", [c.get(fh, "k")["status"], c.list(fh)["status"]], [r.ACCES] * 2)
    path = make(d, "ro", "file")
    os.setxattr(path, "user.k", b"v")
    fh = c.path(path)
    t.equal("a read-only export", [c.set(fh, "k", b"w")["status"], c.remove(fh, "k")["status"], c.get(fh, "k").get("value")],
            [r.ROFS, r.ROFS, b"v"])
    t.equal("ACCESS there", c.access(fh), (XAREAD | XAWRITE | XALIST, XAREAD | XALIST))


def test_types(t, d, c):
    top = d.exports["own"]
    os.symlink("values", top + "/link")
    os.mkfifo(top + "/fifo")
    os.mknod(top + "/device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    for name in ("link", "fifo", "device"):
        fh = c.path(f"{top}/{name}")
        t.equal(f"{name} has none", [c.set(fh, "k", b"")["status"], c.remove(fh, "k")["status"], c.get(fh, "k")["status"],
                                     c.list(fh).get("names"), c.access(fh)], [r.PERM, r.PERM, NOXATTR, [], (0, 0)])


def pieces(c, fh, maxcount):
    """All names of a list read by pieces, and whether each was short enough."""
    names, cookie, short, res = [], 0, True, {"eof": False}
    while not res["eof"]:
        res = c.list(fh, cookie, maxcount)
        if res["status"] or not (res["names"] or res["eof"]):
            return names, res
        size = LIST_HEAD + sum(4 + len(n) + -len(n) % 4 for n in res["names"])
        names, cookie, short = names + res["names"], res["cookie"], short and size <= maxcount
    return names, short


def test_lists(t, d, c, export, count):
    path = make(d, export, "many")
    want = [b"name-%d" % i + b"x" * (i % 17) for i in range(count)]
    for n in want:
        os.setxattr(path, b"user." + n, b"")
    os.setxattr(path, "trusted.between", b"")
    fh = c.path(path)
    for maxcount in (LIST_HEAD + 32, 100, 1000, 4096, 1 << 20, 0xffffffff):
        names, short = pieces(c, fh, maxcount)
        t.equal(f"{export}: all names, {maxcount} bytes at a time", sorted(names), sorted(want))
        t.check(f"{export}: no reply is longer than {maxcount}", short is True, short)
    t.equal("at the end", [c.list(fh, count)[k] for k in ("names", "eof")], [[], True])
    t.equal("cookies beyond it", [c.list(fh, k)["status"] for k in (count + 1, 10000, n4.ALL)], [BAD_COOKIE] * 3)
    t.equal("room for no name", [c.list(fh, 0, k)["status"] for k in (8, LIST_HEAD, LIST_HEAD + 8)], [TOOSMALL] * 3)
    t.equal("room for nothing", [c.list(fh, 0, k)["status"] for k in (0, 7)], [r.INVAL] * 2)


def test_unlistable(t, d, c):
    """XFS holds more names than the kernel lists: as nfsd, TOOSMALL."""
    path = make(d, "xfs", "too-many")
    fh = c.path(path)
    for i in range(256):
        os.setxattr(path, f"user.{i:0250}", b"")
    names, short = pieces(c, fh, 5000)
    t.equal("64 KiB of names", len(set(names)), 256)
    os.setxattr(path, "user.more", b"")
    t.equal("more than that", c.list(fh)["status"], TOOSMALL)


def test_sizes(t, d, c):
    path = make(d, "xfs", "big")
    fh = c.path(path)
    whole = os.urandom(VALUE_MAX)
    t.equal("64 KiB on XFS", c.set(fh, "k", whole)["status"], 0)
    t.check("on disk", os.getxattr(path, "user.k") == whole)
    t.equal("one byte more", c.set(fh, "k", whole + b"x")["status"], XATTR2BIG)
    t.equal("a reply that the slot cannot keep", c.get(fh, "k")["status"], REP_TOO_BIG_TO_CACHE)
    c.keeps = False
    t.check("64 KiB back", c.get(fh, "k").get("value") == whole)
    res = c.compound(putfh(fh), *[(GETXATTR, r.name("k"))] * 5, (LISTXATTRS, u64(0) + u32(100)))
    t.check("five of them in one reply", [x.get("value") for x in res[1:6]] == [whole] * 5)
    t.equal("and a list", res[6].get("names"), [b"k"])
    small = Client(d, "small", longest=300000)
    small.keeps = False
    res = small.compound(putfh(fh), *[(GETXATTR, r.name("k"))] * 5)
    t.equal("as many as a smaller reply has room for", [x["status"] for x in res], [0, 0, 0, 0, 0, REP_TOO_BIG])
    t.equal("a call that is too long", small.compound(putfh(fh), *[(SETXATTR, u32(0) + r.name("k") + opaque(whole))] * 5)[-1]["status"],
            REQ_TOO_BIG)
    small.close()
    exchange = c.conn.exchange
    for step in (1 << 10, 5000, 40000):
        c.conn.exchange = lambda m, step=step: exchange(m, step)
        value = os.urandom(VALUE_MAX - step % 7)
        t.equal(f"a call in fragments of {step}", c.set(fh, "k", value)["status"], 0)
        t.check(f"its value is whole, {step}", os.getxattr(path, "user.k") == value)
    c.conn.exchange, c.keeps = exchange, True
    path = make(d, "ext4", "big")
    fh = c.path(path)
    t.equal("64 KiB on ext4", c.set(fh, "k", whole)["status"], r.NOSPC)
    t.equal("what fits a small block", c.set(fh, "k", whole[:700])["status"], 0)
    t.check("on ext4's disk", os.getxattr(path, "user.k") == whole[:700])


def main():
    mounts.own_namespace()
    t = Count()
    d = Daemon(OPTIONS, settings={"server.memory_max": "256M"})
    without = {}
    for kind in ("ext4", "xfs"):
        image = f"{d.top}/{kind}.img"
        if why := mounts.make_image(image, kind) or mounts.mount_image(image, d.exports[kind]):
            without[kind] = why
    with d:
        try:
            os.setxattr(d.exports["own"], "user.probe", b"")
            os.removexattr(d.exports["own"], "user.probe")
        except OSError as e:
            raise SystemExit(f"no extended attributes here: {e}")
        c = Client(d, "root")
        held = Held(d)
        test_support(t, d, c)
        for test in (test_values, test_change, test_names, test_namespaces, test_users, test_squashed, test_types):
            test(t, d, c)
        test_lists(t, d, c, "own", 60)
        for kind, tests in (("ext4", [test_atomic]), ("xfs", [test_unlistable])):
            for test in tests:
                if kind in without:
                    t.skip(test.__name__, without[kind])
                else:
                    test(t, d, c)
        if without:
            t.skip("long values", without)
        else:
            test_lists(t, d, c, "xfs", 1500)
            test_sizes(t, d, c)
        kinds = ("payload_buffers", "payload_bytes", "requests")
        end = time.monotonic() + 20
        while any((now := held.now())[k] for k in kinds) and time.monotonic() < end:
            time.sleep(0.1)  # a request is given back after its reply has left
        t.equal("payload is given back", {k: now[k] for k in kinds if now[k]}, {})
        c.close()
        t.equal("it stops", d.stop()[0], 0)
        for kind in ("ext4", "xfs"):
            mounts.umount(d.exports[kind])
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    return 1 if t.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
