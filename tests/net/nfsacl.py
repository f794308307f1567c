#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""NFSACL beside NFSv3, over TCP and over RDMA: ACLs of any size, as the file system has them. RFC 8267 section 5.2 makes no item
eligible for a chunk of its own, so long ones go by long calls and long replies."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import mounts
import rpcclient as r
from rdmaclient import Peer, RdmaError
from rpcclient import opaque, u32
from xattrs_rdma import Wire

PORT = 20049
NFSACL, GETACL, SETACL = 100227, 1, 2
ACL, ACLCNT, DFACL, DFACLCNT = 1, 2, 4, 8
ALL = ACL | ACLCNT | DFACL | DFACLCNT
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
DEFAULT = 0x1000
MOST = 1024
ACCESS_NAME, DEFAULT_NAME = "system.posix_acl_access", "system.posix_acl_default"
NAMED = [(USER_OBJ, 0, 6), (USER, 1005, 6), (GROUP_OBJ, 0, 4), (GROUP, 2005, 4), (MASK, 0, 6), (OTHER, 0, 0)]
PLAIN = [(USER_OBJ, 0, 6), (GROUP_OBJ, 0, 4), (MASK, 0, 4), (OTHER, 0, 0)]
MANY = [(USER_OBJ, 0, 7)] + [(USER, 3000 + i, i % 8) for i in range(MOST - 4)] + [(GROUP_OBJ, 0, 5), (MASK, 0, 7), (OTHER, 0, 0)]
OPTIONS = "insecure,no_root_squash"


def array(acl, flag=0):
    return u32(len(acl)) * 2 + b"".join(struct.pack(">III", tag | flag, ident, perm) for tag, ident, perm in acl)


def setacl_args(fh, mask, access=(), default=()):
    return opaque(fh) + u32(mask) + array(access) + array(default, DEFAULT)


def setacl(conn, fh, mask, access=(), default=(), cred=r.ROOT, **kw):
    x = conn.call(NFSACL, 3, SETACL, setacl_args(fh, mask, access, default), cred, **kw)
    status = x.u32()
    r.get_post(x)
    x.end()
    return status


def get_array(x, flag):
    count, n = x.u32(), x.u32()
    acl = [struct.unpack(">III", x.take(12)) for _ in range(n)]
    if any((tag & DEFAULT) != flag for tag, _, _ in acl):
        raise ValueError(f"flags of {acl}")
    return count, [(tag & ~DEFAULT, ident, perm) for tag, ident, perm in acl]


def getacl(conn, fh, mask=ALL, cred=r.ROOT):
    """(status, access ACL, default ACL)."""
    x = conn.call(NFSACL, 3, GETACL, opaque(fh) + u32(mask), cred)
    status, attr = x.u32(), r.get_post(x)
    if status or not attr or x.u32() != mask:
        return status, None, None
    lists = get_array(x, 0), get_array(x, DEFAULT)
    x.end()
    if any(count != len(acl) for count, acl in lists):
        raise ValueError(f"counts of {lists}")
    return status, lists[0][1], lists[1][1]


def on_disk(path, name=ACCESS_NAME):
    """The kernel's ACL in the protocol's form; None: there is none."""
    try:
        raw = os.getxattr(path, name)
    except OSError:
        return None
    acl = [struct.unpack_from("<HHI", raw, at) for at in range(4, len(raw), 8)]
    return [(tag, ident if tag in (USER, GROUP) else 0, perm) for tag, perm, ident in acl]


def make(d, export, name, folder=False):
    path = os.path.join(d.exports[export], name)
    os.mkdir(path) if folder else open(path, "w").close()
    os.chmod(path, 0o755 if folder else 0o640)
    os.chown(path, 0, 0)
    return path


def find(conn, d, export, name):
    return conn.nfs(r.LOOKUP, r.lookup_args(d.root(conn, export), name))["fh"]


def refusal(conn, args):
    """Why RPC refuses a call of SETACL."""
    try:
        return conn.call(NFSACL, 3, SETACL, args).u32()
    except r.Refused as e:
        return e.why


def test_program(t, c):
    try:
        c.call(NFSACL, 2, 0)
        t.check("version 2 is not there", False)
    except r.Refused as e:
        t.equal("version 2 is not there", (e.why, e.data), ("PROG_MISMATCH", (3, 3)))
    c.call(NFSACL, 3, 0).end()


def test_acls(t, d, c):
    path = make(d, "rw", "file")
    fh = find(c, d, "rw", "file")
    t.equal("mode bits are a minimal ACL", getacl(c, fh), (0, PLAIN, []))
    t.equal("SETACL", setacl(c, fh, ACL, NAMED), 0)
    t.equal("on disk", on_disk(path), NAMED)
    t.equal("mode", os.stat(path).st_mode & 0o777, 0o660)
    os.chmod(path, 0o640)
    t.equal("a local chmod changes the mask", getacl(c, fh)[1][4], (MASK, 0, 4))
    t.equal("a minimal ACL", setacl(c, fh, ACL, PLAIN), 0)
    t.equal("takes the one on disk away", on_disk(path), None)
    t.equal("another user's", setacl(c, fh, ACL, NAMED, cred=r.auth_sys(1005, 1005)), r.PERM)
    folder = make(d, "rw", "folder", True)
    fh = find(c, d, "rw", "folder")
    t.equal("both", setacl(c, fh, ACL | DFACL, NAMED, NAMED), 0)
    t.equal("both on disk", (on_disk(folder), on_disk(folder, DEFAULT_NAME)), (NAMED, NAMED))
    made = c.nfs(r.CREATE, r.create_args(fh, "heir", attrs=r.sattr(mode=0o666)))["fh"]
    t.equal("what is made there inherits", getacl(c, made)[1], NAMED)
    t.equal("a default ACL of no entries", setacl(c, fh, DFACL), 0)
    t.equal("is removed", on_disk(folder, DEFAULT_NAME), None)


def test_again(t, d):
    """A call that comes again is answered from the cache, and sets nothing."""
    c, path = d.connect(), make(d, "rw", "again")
    fh, xid = find(c, d, "rw", "again"), r.next_xid()
    t.equal("SETACL", setacl(c, fh, ACL, NAMED, xid=xid), 0)
    t.equal("another", setacl(c, fh, ACL, PLAIN), 0)
    c = c.again()
    t.equal("the first once more", setacl(c, fh, ACL, NAMED, xid=xid), 0)
    t.equal("sets nothing", on_disk(path), None)
    c.close()


def test_exports(t, d, c):
    path = make(d, "hidden", "file")
    fh = find(c, d, "hidden", "file")
    os.setxattr(path, ACCESS_NAME, os.getxattr(d.named, ACCESS_NAME))
    t.equal("no_acl: GETACL", getacl(c, fh)[0], r.NOTSUPP)
    t.equal("no_acl: SETACL", setacl(c, fh, ACL, PLAIN), r.NOTSUPP)
    t.equal("no_acl: the ACL stays", on_disk(path), NAMED)
    t.equal("no_acl: and lets its user in", c.nfs(r.WRITE, r.write_args(fh, 0, b"x"), cred=r.auth_sys(1005, 1005))["status"], 0)
    make(d, "ro", "file")
    fh = find(c, d, "ro", "file")
    t.equal("ro: GETACL", getacl(c, fh)[0], 0)
    t.equal("ro: SETACL", setacl(c, fh, ACL, NAMED), r.ROFS)


def test_many(t, d, c, export):
    """The most entries of both ACLs: 24 KiB of arguments and of results."""
    path = make(d, export, "many", True)
    fh = find(c, d, export, "many")
    status = setacl(c, fh, ACL | DFACL, list(reversed(MANY)), MANY)
    t.equal("the most entries", status, 0)
    t.check("on disk", on_disk(path) == MANY and on_disk(path, DEFAULT_NAME) == MANY)
    t.check("and back", getacl(c, fh) == (0, MANY, MANY))
    t.equal("one more", refusal(c, setacl_args(fh, ACL, MANY + [(USER, 5, 5)])), "GARBAGE_ARGS")
    return fh


def test_rdma(t, d, wire, fh):
    small = setacl_args(fh, ACL | DFACL, NAMED, NAMED)
    wire.write_size = 4096
    t.check("beside a Write chunk", getacl(wire, fh) == (0, MANY, MANY))
    t.equal("which has nothing in it", wire.written, 0)
    t.check("a long reply", wire.long > 24 * MOST, wire.long)
    wire.write_size, wire.reply_size = 0, 5000
    try:
        t.check("a Reply chunk that is too short", False, getacl(wire, fh)[0])
    except RdmaError as e:
        t.equal("a Reply chunk that is too short: ERR_CHUNK", str(e), "00000002")
    wire.reply_size = 0
    t.equal("numbers alone go inline", wire.call(NFSACL, 3, GETACL, opaque(fh) + u32(ACLCNT | DFACLCNT)).u32(), 0)
    wire.placed = array(NAMED)
    t.equal("an ACL with a Read chunk of its own", refusal(wire, small), "GARBAGE_ARGS")
    wire.placed, wire.reply_size = b"", 1 << 20
    t.check("nothing was set, and the connection goes on", getacl(wire, fh) == (0, MANY, MANY))


def run(t, d, f):
    with d.connect() as c:
        d.named = make(d, "rw", "named")
        setacl(c, find(c, d, "rw", "named"), ACL, NAMED)
        test_program(t, c)
        test_acls(t, d, c)
        test_again(t, d)
        test_exports(t, d, c)
        test_many(t, d, c, "rw")
        wire = Wire(Peer(f.environment(), before=f.command("client")).connect("127.0.0.1", PORT))
        wire.mnt, wire.nfs = c.mnt, c.nfs  # MOUNT and LOOKUP go by TCP
        test_rdma(t, d, wire, test_many(t, d, wire, "other"))
        wire.close()


def main():
    mounts.own_namespace()
    t = harness.Count()
    with fabric.Fabric() as f:
        exports = {"rw": "rw," + OPTIONS, "other": "rw," + OPTIONS, "hidden": "rw,no_acl," + OPTIONS, "ro": "ro," + OPTIONS}
        d = harness.Daemon(exports, {"rdma.enabled": "yes", "rdma.port": PORT}, before=f.command("server"), env=f.environment())
        for folder in d.exports.values():  # ext4 has room for half of the entries
            mounts.must("mount", "-t", "tmpfs", "none", folder)
        with d:
            run(t, d, f)
            harness.finish(t, d)
        for folder in d.exports.values():
            mounts.umount(folder)
    harness.result(t)


if __name__ == "__main__":
    main()
