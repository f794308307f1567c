#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""NFSv2 (RFC 1094) over TCP and, with chunks, over RDMA: each procedure, forged handles, and what 32 bits cannot hold."""
import errno
import os
import signal
import stat
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import mounts
import rpcclient as r
from rdmaclient import MSG, CREDITS, Peer
from rpcclient import name, opaque, u32

(NULL, GETATTR, SETATTR, ROOT, LOOKUP, READLINK, READ, WRITECACHE, WRITE, CREATE, REMOVE, RENAME, LINK, SYMLINK, MKDIR, RMDIR, READDIR,
 STATFS) = range(18)
KEEP = 0xffffffff
FH, MAX = 32, 8192
OPTIONS = "rw,insecure,no_root_squash"
PORT = 20049
ATTR = "type mode nlink uid gid size blocksize rdev blocks fsid fileid".split()
USER = r.auth_sys(1005, 100)
TEST, LOCK, UNLOCK = 1, 2, 4  # of NLM
GRANTED, DENIED = 0, 1


def sattr(mode=KEEP, uid=KEEP, gid=KEEP, size=KEEP, atime=(KEEP, KEEP), mtime=(KEEP, KEEP)):
    return struct.pack(">8I", mode, uid, gid, size, *atime, *mtime)


def dirop(fh, n):
    return fh + name(n)


def attr(x):
    a = dict(zip(ATTR, struct.unpack(">11I", x.take(44))))
    a["atime"], a["mtime"], a["ctime"] = (struct.unpack(">2I", x.take(8)) for _ in range(3))
    return a


class Client:
    def __init__(self, conn, cred=r.ROOT):
        self.conn, self.cred = conn, cred

    def call(self, proc, args):
        return self.conn.call(r.NFS, 2, proc, args, self.cred)

    def status(self, proc, args):
        x = self.call(proc, args)
        status = x.u32()
        if status:
            x.end()
        return status

    def _attr(self, proc, args):
        x = self.call(proc, args)
        if status := x.u32():
            x.end()
            return status
        a = attr(x)
        x.end()
        return a

    def getattr(self, fh):
        return self._attr(GETATTR, fh)

    def setattr(self, fh, **kw):
        return self._attr(SETATTR, fh + sattr(**kw))

    def write(self, fh, offset, data):
        return self._attr(WRITE, fh + u32(0) + u32(offset) + u32(0) + opaque(data))

    def _made(self, proc, args):
        x = self.call(proc, args)
        if status := x.u32():
            x.end()
            return status, None
        fh, a = x.take(FH), attr(x)
        x.end()
        return fh, a

    def lookup(self, fh, n):
        return self._made(LOOKUP, dirop(fh, n))

    def create(self, fh, n, **kw):
        return self._made(CREATE, dirop(fh, n) + sattr(**({"mode": 0o644} | kw)))

    def mkdir(self, fh, n, **kw):
        return self._made(MKDIR, dirop(fh, n) + sattr(**({"mode": 0o755} | kw)))

    def read(self, fh, offset, count):
        x = self.call(READ, fh + u32(offset) + u32(count) + u32(0))
        if status := x.u32():
            x.end()
            return status
        attr(x)
        data = x.opaque()
        x.end()
        return data

    def readlink(self, fh):
        x = self.call(READLINK, fh)
        status = x.u32()
        text = status or x.opaque()
        x.end()
        return text

    def page(self, fh, cookie, count=MAX):
        """(entries, eof), or the status."""
        x = self.call(READDIR, fh + u32(cookie) + u32(count))
        if status := x.u32():
            x.end()
            return status, None
        rows = []
        while x.u32():
            rows.append((x.u32(), x.opaque(), x.u32()))
        eof = bool(x.u32())
        x.end()
        return rows, eof

    def names(self, fh, count=MAX):
        cookie, out = 0, []
        for _ in range(100000):
            rows, eof = self.page(fh, cookie, count)
            if not isinstance(rows, list):
                return rows
            out += [n for _, n, _ in rows]
            if eof:
                return out
            cookie = rows[-1][2]
        return "endless"


def mount(d, conn, export, vers=1):
    return conn.mnt(d.exports[export], vers=vers)[:2]


def refusal(conn, proc, args, vers=2):
    try:
        conn.call(r.NFS, vers, proc, args)
    except r.Refused as e:
        return e.why
    return None


def test_procedures(t, c, root, path):
    a = c.getattr(root)
    t.equal("the root", (a["type"], stat.S_ISDIR(a["mode"]), a["fileid"]), (2, True, os.stat(path).st_ino))
    fh, a = c.create(root, "f")
    t.equal("CREATE", (a["type"], a["mode"], a["size"]), (1, stat.S_IFREG | 0o644, 0))
    a = c.write(fh, 0, b"hello")
    t.equal("WRITE", (a["size"], open(path + "/f", "rb").read()), (5, b"hello"))
    t.equal("READ", [c.read(fh, 0, 100), c.read(fh, 3, 1), c.read(fh, 100, 5)], [b"hello", b"l", b""])
    t.equal("LOOKUP", c.lookup(root, "f")[0], fh)
    t.equal("CREATE again truncates", c.create(root, "f", size=0)[1]["size"], 0)
    t.equal("CREATE again keeps the mode", c.create(root, "f", mode=0o600, size=0)[1]["mode"], stat.S_IFREG | 0o644)
    big = os.urandom(MAX)
    t.equal("WRITE of 8192 bytes", c.write(fh, 100, big)["size"], 100 + MAX)
    t.equal("READ gives no more than 8192", c.read(fh, 100, 100000), big)
    t.equal("more is no call", refusal(c.conn, WRITE, fh + bytes(12) + opaque(bytes(MAX + 1))), "GARBAGE_ARGS")
    a = c.setattr(fh, mode=0o600, size=3, atime=(5, 7), mtime=(9, 999999))
    t.equal("SETATTR", (a["mode"] & 0o7777, a["size"], a["atime"], a["mtime"]), (0o600, 3, (5, 7), (9, 999999)))
    t.equal("SETATTR of nothing", c.setattr(fh)["mtime"], (9, 999999))
    t.equal("a mode of Sun's that means nothing", c.setattr(fh, mode=0xffff)["mode"] & 0o7777, 0o600)
    a = c.setattr(fh, atime=(1, 0), mtime=(1, 1000000))
    t.check("the server's time", abs(a["mtime"][0] - time.time()) < 100 and abs(a["atime"][0] - time.time()) < 100, a)
    t.equal("microseconds that no second has", c.setattr(fh, atime=(1, 1000001)), r.IO)
    t.equal("LINK", (c.status(LINK, fh + dirop(root, "l")), c.getattr(fh)["nlink"]), (0, 2))
    t.equal("RENAME", (c.status(RENAME, dirop(root, "l") + dirop(root, "m")), c.lookup(root, "l")[0]), (0, r.NOENT))
    t.equal("REMOVE", (c.status(REMOVE, dirop(root, "m")), c.getattr(fh)["nlink"]), (0, 1))
    t.equal("REMOVE again", c.status(REMOVE, dirop(root, "m")), r.NOENT)
    d, a = c.mkdir(root, "d")
    t.equal("MKDIR", (a["type"], a["mode"] & 0o7777), (2, 0o755))
    c.create(d, "x")
    t.equal("RMDIR of a full one", c.status(RMDIR, dirop(root, "d")), r.NOTEMPTY)
    c.status(REMOVE, dirop(d, "x"))
    t.equal("RMDIR", c.status(RMDIR, dirop(root, "d")), 0)
    t.equal("the handle of a removed directory", c.getattr(d), r.STALE)
    t.equal("SYMLINK", c.status(SYMLINK, dirop(root, "s") + name("to/there") + sattr(mode=0o777)), 0)
    link, a = c.lookup(root, "s")
    t.equal("a symbolic link", (a["type"], a["size"], c.readlink(link)), (5, 8, b"to/there"))
    t.equal("READLINK of a file", c.readlink(fh), r.IO)
    t.equal("a target of 1025 bytes", c.status(SYMLINK, dirop(root, "t") + name("x" * 1025) + sattr()), r.NAMETOOLONG)
    t.equal("an empty one", c.status(SYMLINK, dirop(root, "t") + name("") + sattr()), r.NOENT)
    try:
        os.symlink("y" * 2000, path + "/long")
    except OSError as e:  # XFS has none of more than 1,024 bytes
        t.equal("a longer link", e.errno, errno.ENAMETOOLONG)
    else:
        t.equal("a longer one of the server's", c.readlink(c.lookup(root, "long")[0]), r.NAMETOOLONG)
    x = c.call(STATFS, root)
    st, v = [x.u32() for _ in range(6)], os.statvfs(path)
    t.equal("STATFS", (st[:2], st[2] * st[3] // v.f_frsize == v.f_blocks), ([0, MAX], True))
    t.equal("ROOT and WRITECACHE", [refusal(c.conn, p, root) for p in (ROOT, WRITECACHE, 18)], ["PROC_UNAVAIL"] * 3)


def test_special(t, c, root, path):
    for n, mode, size, kind, rdev in (("fifo", stat.S_IFIFO, KEEP, stat.S_IFIFO, KEEP), ("fifo2", stat.S_IFCHR, KEEP, stat.S_IFIFO, KEEP),
                                      ("sock", stat.S_IFSOCK, KEEP, stat.S_IFSOCK, KEEP), ("chr", stat.S_IFCHR, 0x103, stat.S_IFCHR, 0x103)):
        a = c.create(root, n, mode=mode | 0o600, size=size)[1]
        if n == "chr" and a is None:
            t.skip("a device", "the kernel does not make any here")
            continue
        t.equal(f"CREATE of {n}", (stat.S_IFMT(os.lstat(f"{path}/{n}").st_mode), a["rdev"]), (kind, rdev))
    t.equal("its type", c.lookup(root, "fifo")[1]["type"], 4)
    t.equal("CREATE on a FIFO asks for permission", c.create(root, "fifo")[0], c.lookup(root, "fifo")[0])
    t.equal("which another has not", Client(c.conn, USER).create(root, "fifo")[0], r.ACCES)
    t.equal("CREATE on a directory", (c.mkdir(root, "dir")[1]["type"], c.create(root, "dir")[0]), (2, r.ISDIR))
    t.equal("CREATE of a type that is none", c.create(root, "odd", mode=stat.S_IFDIR | 0o700)[0], r.IO)
    t.check("makes nothing", not os.path.exists(path + "/odd"))


def test_names(t, c, root):
    for what, n, want in (("a slash", "a/b", r.ACCES), ("NUL", b"a\0b", r.ACCES), ("none", "", r.ACCES), ("256 bytes", "n" * 256, r.NAMETOOLONG),
                          ("5000 bytes", "n" * 5000, r.NAMETOOLONG)):
        got = [c.lookup(root, n)[0], c.create(root, n)[0], c.mkdir(root, n)[0], c.status(REMOVE, dirop(root, n)), c.status(RMDIR, dirop(root, n)),
               c.status(RENAME, dirop(root, "f") + dirop(root, n)), c.status(RENAME, dirop(root, n) + dirop(root, "z")),
               c.status(SYMLINK, dirop(root, n) + name("t") + sattr())]
        t.equal(f"names: {what}", set(got), {want})
    t.equal("255 bytes", c.create(root, "n" * 255)[1]["type"], 1)
    t.equal(".. of the root", c.lookup(root, "..")[0], root)
    t.check("changes of . and ..", all(c.status(p, dirop(root, n)) != 0 for p in (REMOVE, RMDIR) for n in (".", "..")))


def test_sizes(t, c, root, path):
    with open(path + "/huge", "wb") as f:
        f.truncate(5 << 30)
    fh, a = c.lookup(root, "huge")
    t.equal("a size of 5 GiB", a["size"], 0xffffffff)
    t.equal("READ at the end of what has an offset", len(c.read(fh, 0xfffffff0, MAX)), MAX)
    t.equal("WRITE beyond it", c.write(fh, 0xfffffff0, bytes(100)), r.FBIG)
    t.equal("WRITE up to it", c.write(fh, 0xffffff00, bytes(0xff))["size"], 0xffffffff)
    fh = c.create(root, "three")[0]
    t.equal("WRITE at 3 GiB", c.write(fh, 3 << 30, b"x")["size"], (3 << 30) + 1)
    for n in ("huge", "three"):
        os.unlink(f"{path}/{n}")


def test_readdir(t, c, root, path):
    os.mkdir(path + "/many")
    want = {f"name-{i}-{'x' * (i % 50)}".encode() for i in range(3000)}
    for n in want:
        os.close(os.open(os.fsencode(path + "/many/") + n, os.O_CREAT | os.O_WRONLY))
    fh = c.lookup(root, "many")[0]
    for count in (MAX, 1000, 300):
        got = c.names(fh, count)
        t.check(f"READDIR by {count}: each name once", sorted(got) == sorted(want | {b".", b".."}), len(got))
    rows, eof = c.page(fh, 0)
    t.equal("inode numbers", {n: i for i, n, _ in rows if n in want}, {n: os.stat(os.fsencode(path + "/many/") + n).st_ino for _, n, _ in rows if n in want})
    middle = len(rows) // 2
    t.equal("from any cookie on", c.page(fh, rows[middle][2])[0][:50], rows[middle + 1:middle + 51])
    for cookie in (1, 2, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0xdeadbeef):
        rows, _ = c.page(fh, cookie)
        t.check(f"a made-up cookie {cookie:#x}", isinstance(rows, int) or {n for _, n, _ in rows} <= want | {b".", b".."}, rows)
    t.equal("no room for an entry", [c.page(fh, 0, n)[0] for n in (0, 8, 20)], [r.IO] * 3)
    t.equal("READDIR of a file", c.page(c.create(root, "file")[0], 0)[0], r.NOTDIR)


def test_handles(t, d, c, conn, root):
    other = mount(d, conn, "two")[1]
    v3 = d.root(conn, "one")
    fh = c.create(root, "target")[0]
    wrong = []
    for i in range(8 * FH):
        bad = bytearray(fh)
        bad[i // 8] ^= 1 << i % 8
        if c.getattr(bytes(bad)) != r.STALE:
            wrong.append(i)
    t.equal("each bit changed", wrong, [])
    forms = [(v3 + bytes(FH))[:FH], v3[:24] + root[24:], bytes([v3[0]]) + root[1:], root[:24] + other[24:], other[:24] + root[24:], bytes(FH),
             b"\xff" * FH]
    t.equal("NFSv3's and mixed ones", {c.getattr(f) for f in forms}, {r.STALE})
    t.equal("NFSv2's for NFSv3", {conn.nfs(r.GETATTR, opaque(f))["status"] for f in (root, fh, root + bytes(4))}, {r.BADHANDLE})
    t.equal("between exports", c.status(RENAME, dirop(root, "target") + dirop(other, "x")), r.ACCES)
    t.equal("and LINK", c.status(LINK, fh + dirop(other, "x")), r.ACCES)
    os.unlink(d.exports["one"] + "/target")
    t.equal("a removed file", c.getattr(fh), r.STALE)


def test_rights(t, d, conn, root):
    user = Client(conn, USER)
    os.chmod(d.exports["one"], 0o755)
    t.equal("a user in root's directory", user.create(root, "u")[0], r.ACCES)
    os.chmod(d.exports["one"], 0o777)
    fh, a = user.create(root, "u", mode=0o666)
    t.equal("his file", (a["uid"], a["gid"]), (1005, 100))
    t.equal("is not to be given away", user.setattr(fh, uid=7), r.PERM)
    a = Client(conn, r.auth_sys(1006, 100)).setattr(fh, atime=(int(time.time()), 0), mtime=(int(time.time()), 0))
    t.check("touch by somebody who may write", isinstance(a, dict), a)
    t.equal("but not to another time", Client(conn, r.auth_sys(1006, 100)).setattr(fh, atime=(5, 0), mtime=(5, 0)), r.PERM)
    ro = mount(d, conn, "ro")[1]
    c = Client(conn)
    t.equal("a read-only export", {c.create(ro, "x")[0], c.mkdir(ro, "x")[0], c.status(REMOVE, dirop(ro, "x")), c.setattr(ro, mode=0o700)}, {r.ROFS})
    squashed = mount(d, conn, "squash")[1]
    t.equal("root is squashed", c.create(squashed, "x")[1]["uid"], 65534)


def nlm(conn, fh, proc, owner, exclusive=1):
    """Status of a call of NLM 1 about the first 10 bytes."""
    lock = name(owner) + opaque(fh) + name(owner) + u32(7) + u32(0) + u32(10)
    args = {LOCK: u32(0) + u32(exclusive) + lock + u32(0) + u32(3), TEST: u32(exclusive) + lock, UNLOCK: lock}[proc]
    x = conn.call(100021, 1, proc, opaque(b"c") + args)
    x.opaque()
    return x.u32()


def test_locks(t, c, conn, root):
    fh = c.create(root, "locked")[0]
    t.equal("NLM 1 with NFSv2's handle", [nlm(conn, fh, LOCK, "one"), nlm(conn, fh, TEST, "two"), nlm(conn, fh, LOCK, "two")], [GRANTED, DENIED, DENIED])
    v3 = conn.nfs(r.LOOKUP, r.lookup_args(c.v3, "locked"))["fh"]
    t.equal("the same file by NFSv3's", nlm(conn, v3, TEST, "two"), DENIED)
    t.equal("UNLOCK", [nlm(conn, fh, UNLOCK, "one"), nlm(conn, v3, LOCK, "two"), nlm(conn, v3, UNLOCK, "two")], [GRANTED] * 3)
    forged = bytearray(fh)
    forged[-1] ^= 1
    t.check("with a forged one", nlm(conn, bytes(forged), LOCK, "one") not in (GRANTED, DENIED))


def test_retransmission(t, d, root):
    for what, proc, args in (("CREATE", CREATE, dirop(root, "again") + sattr(mode=0o600)), ("MKDIR", MKDIR, dirop(root, "againdir") + sattr(mode=0o700)),
                             ("REMOVE", REMOVE, dirop(root, "again")), ("RMDIR", RMDIR, dirop(root, "againdir"))):
        message = r.call_message(r.NFS, 2, proc, args)
        with d.connect() as conn:
            first = conn.exchange(message)
            t.equal(f"{what} sent twice: done once", (r.reply_body(first).u32(), conn.exchange(message)), (0, first))


def test_cut(t, conn, root):
    rows = ((GETATTR, root), (SETATTR, root + sattr()), (LOOKUP, dirop(root, "f")), (READ, root + bytes(12)), (WRITE, root + bytes(12) + opaque(b"abc")),
            (CREATE, dirop(root, "f") + sattr()), (RENAME, dirop(root, "f") + dirop(root, "f")), (LINK, root + dirop(root, "f")),
            (SYMLINK, dirop(root, "f") + name("t") + sattr()), (READDIR, root + bytes(8)), (STATFS, root))
    for proc, args in rows:
        t.equal(f"procedure {proc}, cut short", {refusal(conn, proc, args[:n]) for n in range(0, len(args), 4)}, {"GARBAGE_ARGS"})
    for length in (0x7fffffff, 0xffffffff, 0xfffffffd):
        t.equal(f"a name of {length:#x} bytes", refusal(conn, LOOKUP, root + u32(length) + b"f" * 8), "GARBAGE_ARGS")
        t.equal(f"data of {length:#x} bytes", refusal(conn, WRITE, root + bytes(12) + u32(length) + b"f" * 8), "GARBAGE_ARGS")


def test_reload(t, d, conn, c):
    two = mount(d, conn, "two")[1]
    t.check("before", isinstance(c.getattr(two), dict))
    lines = [f"{p} 127.0.0.0/8({OPTIONS})" for n, p in d.exports.items() if n != "two"]
    d.write_exports(lines + [f"{d.exports['two']} 10.1.1.1({OPTIONS})"])
    d.reload()
    t.equal("an export that is another client's now", c.getattr(two), r.ACCES)
    t.equal("MNT of it", mount(d, conn, "two")[0], r.ACCES)
    d.write_exports(lines)
    d.reload()
    t.equal("one that is gone", c.getattr(two), r.STALE)


def test_off(t):
    with harness.Daemon({"one": OPTIONS}) as d:
        with d.connect() as conn:
            t.equal("off unless enabled", refusal(conn, NULL, b""), "PROG_MISMATCH")
            try:
                answer = mount(d, conn, "one")[0]
            except r.Refused as e:
                answer = (e.why, *e.data)
            t.equal("MOUNT 1 is off then", answer, ("PROG_MISMATCH", 3, 3))
        d.stop()


class Rdma:
    """A connection whose calls take chunks."""

    def __init__(self, peer):
        self.peer, self.read, self.write = peer, None, 0

    def call(self, prog, vers, proc, args, cred=r.ROOT):
        """read: (position in args, bytes) of what goes by a Read chunk; write: bytes of the Write chunk."""
        xid = r.next_xid()
        rpc = r.call_message(prog, vers, proc, args, cred, xid)
        lists = b""
        if self.read:
            at, size = len(rpc) - len(args) + self.read[0], self.read[1]
            self.peer.put(rpc[at:at + size])
            lists += struct.pack(">II", 1, at) + self.peer.segment(0, size)
            rpc = rpc[:at] + rpc[at + size + (-size % 4):]
        lists += u32(0)
        if self.write:
            lists += struct.pack(">II", 1, 1) + self.peer.segment(0, self.write)
        self.peer.send(struct.pack(">IIII", xid, 1, CREDITS, MSG) + lists + u32(0) + u32(0) + rpc)
        x = r.In(self.peer.receive())
        x.take(20)
        self.written = None
        while x.u32():
            self.written = sum(struct.unpack(">IIQ", x.take(16))[1] for _ in range(x.u32()))
        x.u32()
        return r.reply_body(x.data[x.at:], xid)


def test_rdma(t, d, peer):
    w = Rdma(peer)
    c = Client(w)
    with d.connect() as conn:
        root = mount(d, conn, "one")[1]
    fh = c.create(root, "rdma")[0]
    data = os.urandom(5001)
    w.read = (FH + 16, len(data))
    t.equal("WRITE by a Read chunk", (c.write(fh, 0, data)["size"], open(d.exports["one"] + "/rdma", "rb").read() == data), (5001, True))
    head = dirop(root, "rdmalink")
    w.read = (len(head) + 4, 999)
    t.equal("SYMLINK's path by a Read chunk", c.status(SYMLINK, head + name("p" * 999) + sattr()), 0)
    w.read = None
    t.equal("is the link's", os.readlink(d.exports["one"] + "/rdmalink"), "p" * 999)
    w.write = MAX
    x = c.call(READ, fh + u32(0) + u32(MAX) + u32(0))
    t.equal("READ into a Write chunk", (x.u32(), attr(x)["size"], x.u32(), w.written, peer.get(5001)), (0, 5001, 5001, 5001, data))
    x = c.call(READLINK, c.lookup(root, "rdmalink")[0])
    t.equal("READLINK into a Write chunk", (x.u32(), x.u32(), w.written, peer.get(999)), (0, 999, 999, b"p" * 999))
    c.getattr(root)
    t.check("nothing else is eligible", not w.written, w.written)
    w.write = 0
    t.equal("READ without one", c.read(fh, 10, 2000), data[10:2010])


def test_unserved(t, d, conn):
    """An overlay's handles are longer than NFSv2's."""
    layers = f"lowerdir={d.top}/lower,upperdir={d.top}/upper,workdir={d.top}/work,nfs_export=on,index=on"
    for n in ("lower", "upper", "work"):
        os.makedirs(f"{d.top}/{n}", exist_ok=True)
    res = mounts.run("mount", "-t", "overlay", "-o", layers, "overlay", d.exports["overlay"])
    if res.returncode:
        t.skip("an export that NFSv2 cannot serve", res.stderr.strip())
        return
    d.write_exports([f"{p} 127.0.0.0/8({OPTIONS},fsid={i + 40})" for i, p in enumerate(d.exports.values())])
    log = d.reload()
    t.check("is named in the log", d.wait_log(f"export {d.exports['overlay']}: not served by NFSv2"), log)
    t.equal("MNT of it", mount(d, conn, "overlay")[0], r.ACCES)
    t.equal("by NFSv3", mount(d, conn, "overlay", 3)[0], 0)


def on_image(t, d, kind):
    """Why the export "one" is not a file system of that kind, or None."""
    image = f"{d.top}/{kind}.img"
    if why := mounts.make_image(image, kind, *["-b", "4096"] * (kind == "ext4")) or mounts.mount_image(image, d.exports["one"]):
        return why
    os.chmod(d.exports["one"], 0o777)
    return None


def run(t, d):
    with d.connect() as conn:
        c, path = Client(conn), d.exports["one"]
        t.equal("NULL", conn.call(r.NFS, 2, NULL).end(), None)
        status, root = mount(d, conn, "one")
        t.equal("MNT 1 and 2", (status, mount(d, conn, "one", 2)), (0, (0, root)))
        test_procedures(t, c, root, path)
        test_special(t, c, root, path)
        test_names(t, c, root)
        test_sizes(t, c, root, path)
        test_readdir(t, c, root, path)
        test_handles(t, d, c, conn, root)
        test_rights(t, d, conn, root)
        c.v3 = d.root(conn, "one")
        test_locks(t, c, conn, root)
        test_retransmission(t, d, root)
        test_cut(t, conn, root)


EXPORTS = {"one": OPTIONS, "two": OPTIONS, "ro": "ro,insecure,no_root_squash", "squash": "rw,insecure", "overlay": OPTIONS}


def image_rows(t, kind):
    """The same on a file system of that kind, whose handles survive a restart."""
    d = harness.Daemon(EXPORTS, {"nfs2.enabled": "yes"})
    if why := on_image(t, d, kind):
        t.skip(f"on {kind}", why)
        d.__exit__()
        return
    with d:
        run(t, d)
        with d.connect() as conn:
            fh = Client(conn).create(mount(d, conn, "one")[1], "stays")[0]
        d.stop()
        d.start()
        with d.connect() as conn:
            t.equal(f"{kind}: a handle after a restart", Client(conn).getattr(fh)["size"], 0)
            test_reload(t, d, conn, Client(conn))
            test_unserved(t, d, conn)
        since = len(d.read_log())
        d.process.send_signal(signal.SIGUSR1)
        t.check("its calls are counted apart", d.wait_log(r"nfs2 GETATTR: \d+ calls, [1-9]\d* errors", since))
        harness.finish(t, d)
        mounts.umount(d.exports["overlay"])
        mounts.umount(d.exports["one"])


def over_rdma(t):
    with fabric.Fabric() as f:
        settings = {"nfs2.enabled": "yes", "rdma.enabled": "yes", "rdma.port": PORT}
        with harness.Daemon({"one": OPTIONS}, settings, before=f.command("server"), env=f.environment()) as d:
            peer = Peer(f.environment(), before=f.command("client")).connect("127.0.0.1", PORT)
            test_rdma(t, d, peer)
            peer.close()
            harness.finish(t, d)


def main():
    mounts.own_namespace()
    t = harness.Count()
    test_off(t)
    for kind in sys.argv[1:] or ["ext4", "xfs"]:
        image_rows(t, kind)
    over_rdma(t)
    harness.result(t)


if __name__ == "__main__":
    main()
