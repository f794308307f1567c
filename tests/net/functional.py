#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""All procedures of NFSv3 and MOUNT against a running ringnfsd over TCP, and what RFC 1813 says of their results."""
import os
import stat
import struct

import harness
import rpcclient as r
from harness import Count, Daemon

MIB = 1 << 20
USER = r.auth_sys(1000, 1000, [1000])
OTHER = r.auth_sys(1001, 1001, [1001])


class T(Count):
    """The tests' context: a connection, the exports' roots, and short forms of calls."""

    def __init__(self, daemon):
        super().__init__()
        self.d, self.c = daemon, daemon.connect()
        self.root = daemon.root(self.c, "rw")
        self.path = daemon.exports["rw"]

    def nfs(self, proc, args=b"", cred=r.ROOT):
        return self.c.nfs(proc, args, cred)

    def status(self, what, want, proc, args, cred=r.ROOT):
        res = self.nfs(proc, args, cred)
        self.equal(what, res["status"], want)
        return res

    def lookup(self, n, fh=None):
        return self.nfs(r.LOOKUP, r.lookup_args(fh or self.root, n))

    def make(self, n, data=b"", fh=None, mode=0o644, cred=r.ROOT):
        res = self.nfs(r.CREATE, r.create_args(fh or self.root, n, attrs=r.sattr(mode=mode)), cred)
        if data:
            self.nfs(r.WRITE, r.write_args(res["fh"], 0, data), cred)
        return res["fh"]

    def mkdir(self, n, fh=None, mode=0o755, cred=r.ROOT):
        return self.nfs(r.MKDIR, r.mkdir_args(fh or self.root, n, r.sattr(mode=mode)), cred)["fh"]

    def read(self, fh, offset, count, cred=r.ROOT):
        return self.nfs(r.READ, r.read_args(fh, offset, count), cred)

    def refused(self, what, want, prog, vers, proc, args=b"", cred=r.ROOT):
        try:
            self.c.call(prog, vers, proc, args, cred)
            self.check(what, False, "accepted")
        except r.Refused as e:
            self.equal(what, (e.why, *e.data), want)


def test_rpc(t):
    t.refused("unknown program", ("PROG_UNAVAIL",), 100099, 1, 0)
    for v in (0, 2, 5, 0xffffffff):
        t.refused(f"NFS version {v}", ("PROG_MISMATCH", 3, 4), r.NFS, v, 0)
    for v in (1, 2, 4):  # the first two go with NFSv2
        t.refused(f"MOUNT version {v}", ("PROG_MISMATCH", 3, 3), r.MOUNT, v, 0)
    t.refused("NFS procedure 22", ("PROC_UNAVAIL",), r.NFS, 3, 22)
    t.refused("NFS procedure 2 of version 4", ("PROC_UNAVAIL",), r.NFS, 4, 2)
    t.refused("MOUNT procedure 99", ("PROC_UNAVAIL",), r.MOUNT, 3, 99)
    t.refused("GETATTR without arguments", ("GARBAGE_ARGS",), r.NFS, 3, r.GETATTR)
    t.refused("GETATTR of a handle of 65 bytes", ("GARBAGE_ARGS",), r.NFS, 3, r.GETATTR, r.opaque(bytes(65)))
    t.refused("17 groups", ("AUTH_ERROR", 1), r.NFS, 3, r.GETATTR, r.opaque(t.root), r.auth_sys(0, 0, range(17)))
    t.refused("machine name of 256", ("AUTH_ERROR", 1), r.NFS, 3, r.GETATTR, r.opaque(t.root), r.auth_sys(machine="m" * 256))
    try:
        r.reply_body(t.c.exchange(r.call_message(r.NFS, 3, 0, rpcvers=3)))
        t.check("RPC version 3", False, "accepted")
    except r.Refused as e:
        t.equal("RPC version 3", (e.why, *e.data), ("RPC_MISMATCH", 2, 2))
    t.c.call(r.NFS, 3, 0, cred=r.auth_none()).end()
    t.check("NULL under AUTH_NONE", True)


def test_mount(t):
    t.c.call(r.MOUNT, 3, r.NULL).end()
    status, fh, flavours = t.c.mnt(t.path)
    t.equal("MNT", status, 0)
    t.check("MNT's flavours have AUTH_SYS", 1 in flavours, flavours)
    t.check("MNT's handle is no longer than 64", 0 < len(fh) <= 64)
    t.equal("MNT of what is no export", t.c.mnt("/nonexistent-export")[0] in (r.NOENT, r.ACCES), True)
    t.check("MNT above an export", t.c.mnt(t.d.top)[0] != 0)
    t.check("MNT of an empty path", t.c.mnt("")[0] != 0)
    x = t.c.call(r.MOUNT, 3, r.EXPORT)
    listed = []
    while x.flag():
        listed.append(x.opaque().decode())
        while x.flag():
            x.opaque()
    x.end()
    t.equal("EXPORT", sorted(listed), sorted(t.d.exports.values()))
    x = t.c.call(r.MOUNT, 3, r.DUMP)
    dumped = []
    while x.flag():
        dumped.append((x.opaque(), x.opaque().decode()))
    x.end()
    t.check("DUMP has our mount", any(d == t.path for _, d in dumped), dumped)
    t.c.call(r.MOUNT, 3, r.UMNT, r.name(t.path)).end()
    t.c.call(r.MOUNT, 3, r.UMNTALL).end()
    x = t.c.call(r.MOUNT, 3, r.DUMP)
    t.equal("DUMP after UMNTALL", x.flag(), False)


def test_attributes(t):
    fh = t.make("attr", b"x" * 100)
    a = t.nfs(r.GETATTR, r.getattr_args(fh))["attr"]
    st = os.stat(t.path + "/attr")
    t.equal("GETATTR", (a["type"], a["mode"], a["nlink"], a["size"], a["fileid"]), (r.REG, 0o644, 1, 100, st.st_ino))
    t.equal("mtime", a["mtime"], divmod(st.st_mtime_ns, 10**9))
    res = t.status("SETATTR", r.OK, r.SETATTR, r.setattr_args(fh, r.sattr(mode=0o600, uid=5, gid=6, size=50, atime=(7, 8), mtime=(9, 10))))
    a = res["wcc"]["after"]
    t.equal("what SETATTR set", (a["mode"], a["uid"], a["gid"], a["size"], a["atime"], a["mtime"]),
            (0o600, 5, 6, 50, (7, 8), (9, 10)))
    t.equal("no attributes from before, which would claim that nobody came between", res["wcc"]["before"], None)
    t.status("guard that is wrong", r.NOT_SYNC, r.SETATTR, r.setattr_args(fh, r.sattr(mode=0o644), guard=(1, 1)))
    t.status("guard that is right", r.OK, r.SETATTR, r.setattr_args(fh, r.sattr(mode=0o644), guard=a["ctime"]))
    res = t.status("times of the server", r.OK, r.SETATTR, r.setattr_args(fh, r.sattr(atime="server", mtime="server")))
    t.check("mtime is now", abs(res["wcc"]["after"]["mtime"][0] - os.stat(t.path + "/attr").st_ctime) <= 2)
    t.status("size grows", r.OK, r.SETATTR, r.setattr_args(fh, r.sattr(size=5 << 30)))
    t.equal("size over 4 GiB", os.stat(t.path + "/attr").st_size, 5 << 30)
    d = t.mkdir("attrdir")
    t.check("size of a directory", t.nfs(r.SETATTR, r.setattr_args(d, r.sattr(size=1)))["status"] in (r.INVAL, r.ISDIR))
    t.check("size over the largest", t.nfs(r.SETATTR, r.setattr_args(fh, r.sattr(size=1 << 63)))["status"] in (r.FBIG, r.INVAL))


def test_lookup(t):
    d = t.mkdir("look")
    fh = t.make("inside", fh=d)
    res = t.lookup("inside", d)
    t.equal("LOOKUP", (res["status"], res["fh"]), (r.OK, fh))
    t.check("LOOKUP's attributes", res["attr"] and res["dir"])
    t.equal("LOOKUP of nothing", t.lookup("nothing", d)["status"], r.NOENT)
    t.equal("LOOKUP in a file", t.lookup("x", fh)["status"], r.NOTDIR)
    t.equal("LOOKUP .", t.lookup(".", d)["fh"], d)
    t.equal("LOOKUP ..", t.lookup("..", d)["fh"], t.root)
    t.equal("LOOKUP .. at the root stays there", t.lookup("..")["fh"], t.root)
    t.check("LOOKUP of an empty name", t.lookup("", d)["status"] in (r.INVAL, r.ACCES, r.NOENT))
    t.check("LOOKUP of a path", t.lookup("look/inside")["status"] in (r.INVAL, r.ACCES, r.NOENT))
    t.check("LOOKUP of a name with NUL", t.lookup(b"look\0x")["status"] in (r.INVAL, r.ACCES, r.NOENT))
    t.equal("LOOKUP of 256 bytes", t.lookup("n" * 256)["status"], r.NAMETOOLONG)
    odd = bytes(b for b in range(1, 256) if b != 0x2f)[:255]
    t.make(odd)
    t.equal("a name of 254 odd bytes", t.lookup(odd)["status"], r.OK)
    t.make("m" * 255)
    t.equal("a name of 255 bytes", t.lookup("m" * 255)["status"], r.OK)


def test_access(t):
    fh = t.make("acc", mode=0o640)
    t.nfs(r.SETATTR, r.setattr_args(fh, r.sattr(uid=1000, gid=2000)))
    READ, LOOKUP, MODIFY, EXTEND, DELETE, EXECUTE = 1, 2, 4, 8, 16, 32
    t.equal("ACCESS of the owner", t.nfs(r.ACCESS, r.access_args(fh, 63), USER)["access"], READ | MODIFY | EXTEND)
    t.equal("ACCESS of others", t.nfs(r.ACCESS, r.access_args(fh, 63), OTHER)["access"], 0)
    group = r.auth_sys(1001, 1001, [3, 2000])
    t.equal("ACCESS by a further group", t.nfs(r.ACCESS, r.access_args(fh, 63), group)["access"], READ)
    t.equal("ACCESS answers only what is asked", t.nfs(r.ACCESS, r.access_args(fh, READ), USER)["access"], READ)
    d = t.mkdir("accd", mode=0o755)
    t.equal("ACCESS of a directory", t.nfs(r.ACCESS, r.access_args(d, 63), USER)["access"] & (READ | LOOKUP | MODIFY), READ | LOOKUP)


def test_permission(t):
    fh = t.make("priv", b"secret", mode=0o600)
    t.status("READ of another's file", r.ACCES, r.READ, r.read_args(fh, 0, 10), USER)
    t.status("WRITE of another's file", r.ACCES, r.WRITE, r.write_args(fh, 0, b"x"), USER)
    t.check("chmod of another's file", t.nfs(r.SETATTR, r.setattr_args(fh, r.sattr(mode=0o666)), USER)["status"] in (r.PERM, r.ACCES))
    t.check("chown by a user", t.nfs(r.SETATTR, r.setattr_args(t.make("mine", cred=USER), r.sattr(uid=0)), USER)["status"] == r.PERM)
    d = t.mkdir("closed", mode=0o700)
    t.make("in", fh=d)
    t.equal("LOOKUP in a closed directory", t.nfs(r.LOOKUP, r.lookup_args(d, "in"), USER)["status"], r.ACCES)
    t.status("CREATE in a closed directory", r.ACCES, r.CREATE, r.create_args(d, "x"), USER)
    t.status("READDIR of a closed directory", r.ACCES, r.READDIR, r.readdir_args(d), USER)
    mine = t.make("owner", b"abc", mode=0o000, cred=USER)
    t.equal("the owner reads whatever the mode", t.read(mine, 0, 3, USER).get("data"), b"abc")
    t.status("the owner writes whatever the mode", r.OK, r.WRITE, r.write_args(mine, 0, b"x"), USER)
    t.equal("a user's file is the user's", os.stat(t.path + "/owner").st_uid, 1000)
    suid = t.make("suid", b"abc", mode=0o6777, cred=USER)
    t.nfs(r.WRITE, r.write_args(suid, 0, b"x"), OTHER)
    t.equal("a write clears set-uid and set-gid", stat.S_IMODE(os.stat(t.path + "/suid").st_mode) & 0o6000, 0)


def test_squash(t):
    ro, sq = t.d.root(t.c, "ro"), t.d.root(t.c, "squash")
    os.mkdir(t.d.exports["ro"] + "/dir")
    with open(t.d.exports["ro"] + "/f", "wb") as f:
        f.write(b"readonly")
    fh = t.lookup("f", ro)["fh"]
    t.equal("READ of a read-only export", t.read(fh, 0, 100)["data"], b"readonly")
    for what, proc, args in (("WRITE", r.WRITE, r.write_args(fh, 0, b"x")), ("SETATTR", r.SETATTR, r.setattr_args(fh, r.sattr(mode=0))),
                             ("CREATE", r.CREATE, r.create_args(ro, "n")), ("MKDIR", r.MKDIR, r.mkdir_args(ro, "n")),
                             ("SYMLINK", r.SYMLINK, r.symlink_args(ro, "n", "t")), ("MKNOD", r.MKNOD, r.mknod_args(ro, "n", r.FIFO)),
                             ("REMOVE", r.REMOVE, r.remove_args(ro, "f")), ("RMDIR", r.RMDIR, r.rmdir_args(ro, "dir")),
                             ("RENAME", r.RENAME, r.rename_args(ro, "f", ro, "g")), ("LINK", r.LINK, r.link_args(fh, ro, "g"))):
        t.status(f"{what} on a read-only export", r.ROFS, proc, args)
    t.equal("ACCESS on a read-only export", t.nfs(r.ACCESS, r.access_args(fh, 4 | 8))["access"], 0)
    made = t.make("byroot", fh=sq)
    t.equal("root is nobody", os.stat(t.d.exports["squash"] + "/byroot").st_uid, 65534)
    t.check("nobody may not chown", t.nfs(r.SETATTR, r.setattr_args(made, r.sattr(uid=0)))["status"] in (r.PERM, r.ACCES))
    allsq = t.d.root(t.c, "all")
    t.make("byuser", fh=allsq, cred=USER)
    st = os.stat(t.d.exports["all"] + "/byuser")
    t.equal("all_squash with anonuid and anongid", (st.st_uid, st.st_gid), (77, 88))
    for what, proc, args in (("RENAME", r.RENAME, r.rename_args(t.root, "attr", sq, "x")),
                             ("LINK", r.LINK, r.link_args(t.make("xdev"), sq, "x"))):
        t.check(f"{what} to another export", t.nfs(proc, args)["status"] in (r.XDEV, r.INVAL, r.STALE, r.BADHANDLE))


def test_data(t):
    fh = t.make("data")
    for size in (0, 1, 1023, 1024, 1025, 4095, 4096, 4097, 65535, 65536, 65537, MIB - 1, MIB):
        data = os.urandom(size)
        t.nfs(r.SETATTR, r.setattr_args(fh, r.sattr(size=0)))
        w = t.nfs(r.WRITE, r.write_args(fh, 0, data))
        t.equal(f"WRITE of {size}", (w["status"], w.get("count"), w.get("stable")), (r.OK, size, r.FILE_SYNC))
        x = t.read(fh, 0, MIB)
        t.check(f"READ of {size}", (x["count"], x["eof"], x["data"]) == (size, True, data), (x["count"], x["eof"]))
        with open(t.path + "/data", "rb") as f:
            t.check(f"the file of {size}", f.read() == data)
    data = os.urandom(100000)
    t.nfs(r.SETATTR, r.setattr_args(fh, r.sattr(size=0)))
    for at in range(0, len(data), 997):
        t.nfs(r.WRITE, r.write_args(fh, at, data[at:at + 997], r.UNSTABLE))
    x = t.read(fh, 333, 50001)
    t.check("reads at odd offsets", x["data"] == data[333:50334] and not x["eof"])
    x = t.read(fh, len(data), 10)
    t.equal("READ at the end", (x["status"], x["count"], x["eof"]), (r.OK, 0, True))
    x = t.read(fh, 1 << 40, 10)
    t.equal("READ far behind the end", (x["status"], x["count"], x["eof"]), (r.OK, 0, True))
    x = t.read(fh, 99990, 20)
    t.equal("READ over the end", (x["count"], x["eof"]), (10, True))
    t.equal("READ of nothing", t.read(fh, 0, 0)["count"], 0)
    t.check("READ of more than rtmax is cut", t.read(fh, 0, 0xffffffff)["count"] == len(data))
    t.check("count below the data's length", t.nfs(r.WRITE, r.write_args(fh, 0, b"abcdef", count=3)).get("count", 3) <= 3)
    d = t.mkdir("datadir")
    t.check("READ of a directory", t.read(d, 0, 10)["status"] in (r.ISDIR, r.INVAL))
    t.check("WRITE of a directory", t.nfs(r.WRITE, r.write_args(d, 0, b"x"))["status"] in (r.ISDIR, r.INVAL))
    t.check("WRITE over the largest offset", t.nfs(r.WRITE, r.write_args(fh, (1 << 63) - 1, b"xx"))["status"] in (r.FBIG, r.INVAL))
    t.check("WRITE at a negative offset", t.nfs(r.WRITE, r.write_args(fh, 1 << 63, b"x"))["status"] in (r.FBIG, r.INVAL))
    t.check("READ at a negative offset", t.read(fh, 1 << 63, 10)["status"] in (r.OK, r.INVAL, r.FBIG))
    big = t.make("sparse")
    t.status("WRITE above 4 GiB", r.OK, r.WRITE, r.write_args(big, 5 << 30, b"far"))
    t.equal("READ above 4 GiB", t.read(big, 5 << 30, 10)["data"], b"far")
    t.equal("a hole reads as zeros", t.read(big, 1 << 30, 4096)["data"], bytes(4096))


def test_stability(t):
    fh = t.make("stable")
    verfs = set()
    for how in (r.UNSTABLE, r.DATA_SYNC, r.FILE_SYNC):
        w = t.nfs(r.WRITE, r.write_args(fh, 0, b"abc", how))
        t.check(f"WRITE stable {how} is at least that", w["stable"] >= how)
        verfs.add(w["verf"])
    c = t.status("COMMIT", r.OK, r.COMMIT, r.commit_args(fh))
    verfs.add(c["verf"])
    t.equal("one write verifier", len(verfs), 1)
    t.status("COMMIT of a range", r.OK, r.COMMIT, r.commit_args(fh, 1, 1))
    t.status("COMMIT far behind the end", r.OK, r.COMMIT, r.commit_args(fh, 1 << 40, 4096))


def test_create(t):
    res = t.status("CREATE UNCHECKED", r.OK, r.CREATE, r.create_args(t.root, "c1"))
    t.check("CREATE's results", res["fh"] and res["attr"] and res["wcc"]["after"])
    t.nfs(r.WRITE, r.write_args(res["fh"], 0, b"abc"))
    t.status("CREATE UNCHECKED over a file", r.OK, r.CREATE, r.create_args(t.root, "c1"))
    t.equal("it keeps the data", os.stat(t.path + "/c1").st_size, 3)
    t.status("CREATE UNCHECKED with size 0", r.OK, r.CREATE, r.create_args(t.root, "c1", attrs=r.sattr(size=0)))
    t.equal("it truncates", os.stat(t.path + "/c1").st_size, 0)
    t.status("CREATE GUARDED over a file", r.EXIST, r.CREATE, r.create_args(t.root, "c1", r.GUARDED))
    t.status("CREATE GUARDED", r.OK, r.CREATE, r.create_args(t.root, "c2", r.GUARDED))
    one = t.status("CREATE EXCLUSIVE", r.OK, r.CREATE, r.create_args(t.root, "c3", r.EXCLUSIVE, verf=b"verifier"))
    two = t.status("CREATE EXCLUSIVE again, same verifier", r.OK, r.CREATE, r.create_args(t.root, "c3", r.EXCLUSIVE, verf=b"verifier"))
    t.equal("the same file", two.get("fh"), one["fh"])
    t.status("CREATE EXCLUSIVE, other verifier", r.EXIST, r.CREATE, r.create_args(t.root, "c3", r.EXCLUSIVE, verf=b"other!!!"))
    t.mkdir("cdir")
    t.check("CREATE over a directory", t.nfs(r.CREATE, r.create_args(t.root, "cdir"))["status"] in (r.EXIST, r.ISDIR))
    t.status("CREATE GUARDED over a directory", r.EXIST, r.CREATE, r.create_args(t.root, "cdir", r.GUARDED))
    for n in (".", ".."):
        t.check(f"CREATE {n}", t.nfs(r.CREATE, r.create_args(t.root, n))["status"] in (r.EXIST, r.INVAL, r.ACCES, r.ISDIR))
    t.status("CREATE of 256 bytes", r.NAMETOOLONG, r.CREATE, r.create_args(t.root, "n" * 256))
    t.status("CREATE in a file", r.NOTDIR, r.CREATE, r.create_args(one["fh"], "x"))
    return one["fh"]


def test_make(t):
    res = t.status("MKDIR", r.OK, r.MKDIR, r.mkdir_args(t.root, "d1", r.sattr(mode=0o711)))
    t.equal("MKDIR's attributes", (res["attr"]["type"], res["attr"]["mode"]), (r.DIR, 0o711))
    t.status("MKDIR over a directory", r.EXIST, r.MKDIR, r.mkdir_args(t.root, "d1"))
    for target in ("t", "a/../b", "x" * 1023, "y" * 4095):
        n = f"l{len(target)}"
        res = t.status(f"SYMLINK of {len(target)}", r.OK, r.SYMLINK, r.symlink_args(t.root, n, target))
        got = t.status("READLINK", r.OK, r.READLINK, r.readlink_args(res["fh"]))
        t.equal(f"READLINK of {len(target)}", got["target"].decode(), target)
        t.equal("a symlink's type", t.lookup(n)["attr"]["type"], r.LNK)
    t.check("SYMLINK of 4096", t.nfs(r.SYMLINK, r.symlink_args(t.root, "long", "z" * 4096))["status"] in (r.NAMETOOLONG, r.INVAL))
    t.status("SYMLINK over a file", r.EXIST, r.SYMLINK, r.symlink_args(t.root, "l1", "t"))
    t.status("READLINK of a directory", r.INVAL, r.READLINK, r.readlink_args(t.root))
    for kind, n in ((r.FIFO, "fifo"), (r.SOCK, "sock"), (r.CHR, "chr"), (r.BLK, "blk")):
        res = t.nfs(r.MKNOD, r.mknod_args(t.root, n, kind, dev=(7, 300)))
        if res["status"] == r.PERM and kind in (r.CHR, r.BLK):
            t.skip(f"MKNOD of a device ({n})", "this machine forbids it")
            continue
        t.equal(f"MKNOD {n}", res["status"], r.OK)
        t.equal(f"type of {n}", res["attr"]["type"], kind)
        if kind in (r.CHR, r.BLK):
            t.equal(f"device of {n}", (res["attr"]["rdev1"], res["attr"]["rdev2"]), (7, 300))
            t.equal(f"device of {n} on the server", os.stat(t.path + "/" + n).st_rdev, os.makedev(7, 300))
    t.check("MKNOD of a device by a user", t.nfs(r.MKNOD, r.mknod_args(t.root, "udev", r.CHR, dev=(1, 3)), USER)["status"] in (r.PERM, r.ACCES))
    for kind in (r.REG, r.DIR, r.LNK):
        t.status(f"MKNOD of type {kind}", r.BADTYPE, r.MKNOD, r.mknod_args(t.root, "bad", kind))


def test_remove(t):
    fh = t.make("gone")
    res = t.status("REMOVE", r.OK, r.REMOVE, r.remove_args(t.root, "gone"))
    t.check("REMOVE's wcc", res["wcc"]["after"])
    t.status("REMOVE again", r.NOENT, r.REMOVE, r.remove_args(t.root, "gone"))
    t.status("GETATTR of what is gone", r.STALE, r.GETATTR, r.getattr_args(fh))
    t.status("READ of what is gone", r.STALE, r.READ, r.read_args(fh, 0, 1))
    d = t.mkdir("rd")
    t.check("REMOVE of a directory", t.nfs(r.REMOVE, r.remove_args(t.root, "rd"))["status"] in (r.ISDIR, r.PERM))
    t.make("f", fh=d)
    t.check("RMDIR of a full one", t.nfs(r.RMDIR, r.rmdir_args(t.root, "rd"))["status"] in (r.NOTEMPTY, r.EXIST))
    t.nfs(r.REMOVE, r.remove_args(d, "f"))
    t.status("RMDIR", r.OK, r.RMDIR, r.rmdir_args(t.root, "rd"))
    t.status("GETATTR of the directory", r.STALE, r.GETATTR, r.getattr_args(d))
    t.make("rf")
    t.status("RMDIR of a file", r.NOTDIR, r.RMDIR, r.rmdir_args(t.root, "rf"))
    t.check("RMDIR .", t.nfs(r.RMDIR, r.rmdir_args(t.root, "."))["status"] in (r.INVAL, r.ACCES))
    t.check("RMDIR ..", t.nfs(r.RMDIR, r.rmdir_args(t.root, ".."))["status"] in (r.INVAL, r.EXIST, r.NOTEMPTY, r.ACCES))


def test_rename_link(t):
    a, b = t.mkdir("ra"), t.mkdir("rb")
    fh = t.make("f", b"first", fh=a)
    res = t.status("RENAME to another directory", r.OK, r.RENAME, r.rename_args(a, "f", b, "g"))
    t.check("RENAME's wcc", all(res[k]["after"] for k in ("from", "to")))
    t.equal("the handle outlives it", t.read(fh, 0, 10)["data"], b"first")
    old = t.make("h", b"second", fh=b)
    t.status("RENAME over a file", r.OK, r.RENAME, r.rename_args(b, "g", b, "h"))
    t.equal("LOOKUP finds the moved one", t.lookup("h", b)["fh"], fh)
    t.status("the one below is stale", r.STALE, r.GETATTR, r.getattr_args(old))
    t.status("RENAME of nothing", r.NOENT, r.RENAME, r.rename_args(a, "no", b, "x"))
    t.mkdir("sub", fh=a)
    t.check("RENAME of a file over a directory", t.nfs(r.RENAME, r.rename_args(b, "h", a, "sub"))["status"] in (r.ISDIR, r.EXIST))
    t.check("RENAME of a directory over a file", t.nfs(r.RENAME, r.rename_args(a, "sub", b, "h"))["status"] in (r.NOTDIR, r.EXIST))
    t.check("RENAME into itself", t.nfs(r.RENAME, r.rename_args(t.root, "ra", t.lookup("sub", a)["fh"], "x"))["status"] == r.INVAL)
    t.status("RENAME to itself", r.OK, r.RENAME, r.rename_args(b, "h", b, "h"))
    for n in (".", ".."):
        t.check(f"RENAME of {n}", t.nfs(r.RENAME, r.rename_args(a, n, b, "x"))["status"] in (r.INVAL, r.ACCES, r.EXIST))
    res = t.status("LINK", r.OK, r.LINK, r.link_args(fh, a, "link"))
    t.equal("LINK's attributes", res["attr"]["nlink"], 2)
    t.equal("a link is the same file", t.lookup("link", a)["attr"]["fileid"], res["attr"]["fileid"])
    t.status("LINK over a file", r.EXIST, r.LINK, r.link_args(fh, a, "link"))
    t.check("LINK of a directory", t.nfs(r.LINK, r.link_args(b, a, "dl"))["status"] in (r.ISDIR, r.PERM, r.INVAL))
    t.status("LINK in a file", r.NOTDIR, r.LINK, r.link_args(fh, fh, "x"))


def list_all(t, d, plus, count):
    """All entries and the number of calls."""
    cookie, verf, entries, calls = 0, bytes(8), [], 0
    while True:
        if plus:
            res = t.nfs(r.READDIRPLUS, r.readdirplus_args(d, cookie, verf, count, 4 * count))
        else:
            res = t.nfs(r.READDIR, r.readdir_args(d, cookie, verf, count))
        calls += 1
        if res["status"] or (not res["entries"] and not res["eof"]) or calls > 20000:
            raise SystemExit(f"listing fails: {res}")
        entries += res["entries"]
        if res["eof"]:
            return entries, calls
        cookie, verf = entries[-1]["cookie"], res["verf"]


def test_readdir(t):
    d = t.mkdir("list")
    path = t.path + "/list/"
    names = {f"entry-{i:05}".encode() for i in range(2000)}
    for n in names:
        os.close(os.open(path + n.decode(), os.O_CREAT, 0o644))
    for plus in (False, True):
        what = "READDIRPLUS" if plus else "READDIR"
        for count in (512, 4096, 65536):
            entries, calls = list_all(t, d, plus, count)
            got = [e["name"] for e in entries]
            t.check(f"{what} by {count}", set(got) - {b".", b".."} == names and len(got) == len(set(got)),
                    f"{len(got)} names, {len(set(got))} different")
            t.check(f"{what} lists . and ..", b"." in got and b".." in got)
            t.check(f"{what} has no cookie 0", all(e["cookie"] for e in entries))
            t.check(f"{what} goes on by cookies", calls > 1 or count == 65536)
    e = next(e for e in entries if e["name"] == b"entry-00007")
    t.check("READDIRPLUS has handle and attributes", e["fh"] == t.lookup("entry-00007", d)["fh"] and
            e["attr"]["fileid"] == e["fileid"] == os.stat(path + "entry-00007").st_ino)
    # A reply is no longer than count (RFC 1813 section 3.3.16: of the results).
    for count in (512, 1000, 4096):
        raw = t.c.exchange(r.call_message(r.NFS, 3, r.READDIR, r.readdir_args(d, count=count)))
        t.check(f"READDIR keeps within {count}", len(raw) - 24 <= count + 4, len(raw) - 24)
        raw = t.c.exchange(r.call_message(r.NFS, 3, r.READDIRPLUS, r.readdirplus_args(d, dircount=count, maxcount=count)))
        t.check(f"READDIRPLUS keeps within {count}", len(raw) - 24 <= count + 4, len(raw) - 24)
    t.status("READDIR with too little room", r.TOOSMALL, r.READDIR, r.readdir_args(d, count=10))
    t.status("READDIRPLUS with too little room", r.TOOSMALL, r.READDIRPLUS, r.readdirplus_args(d, maxcount=10))
    t.status("READDIR of a file", r.NOTDIR, r.READDIR, r.readdir_args(t.make("nodir")))
    # Entries that are removed while we list do not hide others.
    res = t.nfs(r.READDIR, r.readdir_args(d, count=1024))
    first = {x["name"] for x in res["entries"]}
    for n in first - {b".", b".."}:
        os.unlink(path + n.decode())
    rest, cookie, verf = set(), res["entries"][-1]["cookie"], res["verf"]
    while not res["eof"]:
        res = t.nfs(r.READDIR, r.readdir_args(d, cookie, verf, 4096))
        rest |= {x["name"] for x in res["entries"]}
        if res["entries"]:
            cookie = res["entries"][-1]["cookie"]
    t.check("a listing goes on after removals", names - first <= rest)


def test_fs(t):
    x = t.status("FSSTAT", r.OK, r.FSSTAT, r.fsstat_args(t.root))
    t.check("FSSTAT's figures", x["tbytes"] >= x["fbytes"] >= 0 and x["tbytes"] > 0)
    x = t.status("FSINFO", r.OK, r.FSINFO, r.fsinfo_args(t.root))
    t.equal("FSINFO's sizes", (x["rtmax"], x["wtmax"]), (MIB, MIB))
    t.check("FSINFO's properties: links, symlinks, homogeneous, times", x["properties"] & 0x1b == 0x1b, hex(x["properties"]))
    t.check("FSINFO's largest file", x["maxfilesize"] > 1 << 40)
    x = t.status("PATHCONF", r.OK, r.PATHCONF, r.pathconf_args(t.root))
    t.equal("PATHCONF", (x["name_max"], x["no_trunc"], x["case_insensitive"], x["case_preserving"]), (255, True, False, True))


def test_restart(t, exclusive):
    """Handles, the verifier of an exclusive create and data outlive SIGKILL."""
    d = t.mkdir("keep")
    fh = t.make("f", b"kept", fh=d)
    verf = t.nfs(r.WRITE, r.write_args(fh, 4, b"!", r.UNSTABLE))["verf"]
    t.c.close()
    t.d.stop(9)
    t.d.start()
    t.c = t.d.connect()
    t.equal("a handle after a restart", t.read(fh, 0, 10).get("data"), b"kept!")
    t.equal("a directory's handle after a restart", t.lookup("f", d).get("fh"), fh)
    t.check("the write verifier changes", t.nfs(r.COMMIT, r.commit_args(fh))["verf"] != verf)
    res = t.nfs(r.CREATE, r.create_args(t.root, "c3", r.EXCLUSIVE, verf=b"verifier"))
    t.equal("CREATE EXCLUSIVE after a restart", (res["status"], res.get("fh")), (r.OK, exclusive))
    t.status("and with another verifier", r.EXIST, r.CREATE, r.create_args(t.root, "c3", r.EXCLUSIVE, verf=struct.pack(">Q", 5)))


def main():
    exports = {"rw": "rw,no_root_squash,insecure", "ro": "ro,no_root_squash,insecure", "squash": "rw,root_squash,insecure",
               "all": "rw,all_squash,anonuid=77,anongid=88,insecure"}
    with Daemon(exports) as d:
        t = T(d)
        for test in (test_rpc, test_mount, test_attributes, test_lookup, test_access, test_permission, test_squash, test_data,
                     test_stability, test_make, test_remove, test_rename_link, test_readdir, test_fs):
            test(t)
        test_restart(t, test_create(t))
        t.c.close()
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
