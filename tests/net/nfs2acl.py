#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""NFSACL version 2, beside NFSv2, over TCP and RDMA: each procedure with its errors, and its ACLs beside those of NFSv3's and NFSv4's clients."""
import os
import signal
import stat
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import attributes
import harness
import mounts
import rpcclient as r
from nfs2 import FH, PORT, USER, Client, attr, mount
from nfsacl import (ACCESS_NAME, ACL, ACLCNT, ALL, DEFAULT_NAME, DFACL, DFACLCNT, GROUP_OBJ, MANY, NAMED, NFSACL, OTHER, PLAIN, USER as USER_TAG,
                    USER_OBJ, array, get_array, on_disk)
from nfsacl import getacl as getacl3
from rdmaclient import Peer, RdmaError
from rpcclient import opaque, u32
from xattrs_rdma import Wire

NULL, GETACL, SETACL, GETATTR, ACCESS = range(5)
MAY_READ, MAY_LOOKUP, MAY_MODIFY, MAY_EXTEND, MAY_DELETE, MAY_EXECUTE = (1 << i for i in range(6))
OPTIONS = "rw,insecure,no_root_squash"
INVAL, NOTSUPP = 22, 10004  # which RFC 1094 does not have
FATTR4_ACL, READ_DATA = 12, 1
EXPORTS = {"one": OPTIONS, "ro": "ro,insecure,no_root_squash", "hidden": OPTIONS + ",no_acl", "squash": "rw,insecure", "low": "rw,no_root_squash", "big": OPTIONS,
           "krb": OPTIONS + ",sec=krb5"}
NO_OWNER = [(GROUP_OBJ, 0, 5), (OTHER, 0, 0)]
TWICE = [(USER_OBJ, 0, 7), (USER_OBJ, 0, 7), (GROUP_OBJ, 0, 5), (OTHER, 0, 0)]


def setacl_args(fh, mask, access=(), default=()):
    return fh + u32(mask) + array(access) + array(default, 0x1000)


class Acl:
    """Calls of NFSACL version 2. Each returns a status that is no success alone, after nothing but it came."""

    def __init__(self, conn, cred=r.ROOT):
        self.conn, self.cred = conn, cred

    def call(self, proc, args, rest):
        x = self.conn.call(NFSACL, 2, proc, args, self.cred)
        status = x.u32()
        got = status or (attr(x), rest(x))
        x.end()
        return got

    def getacl(self, fh, mask=ALL):
        return self.call(GETACL, fh + u32(mask), lambda x: (x.u32(), get_array(x, 0), get_array(x, 0x1000)))

    def setacl(self, fh, mask, access=(), default=()):
        return self.call(SETACL, setacl_args(fh, mask, access, default), lambda x: None)

    def getattr(self, fh):
        return self.call(GETATTR, fh, lambda x: None)

    def access(self, fh, want=0x3f):
        return self.call(ACCESS, fh + u32(want), lambda x: x.u32())

    def shown(self, fh):
        """Both ACLs."""
        got = self.getacl(fh)
        return got if isinstance(got, int) else (got[1][1][1], got[1][2][1])


def refusal(conn, proc, args, vers=2, cred=r.ROOT):
    try:
        conn.call(NFSACL, vers, proc, args, cred)
    except r.Refused as e:
        return e.why, e.data
    return None


def test_program(t, conn, root):
    t.equal("NULL", [conn.call(NFSACL, v, NULL).end() for v in (2, 3)], [None, None])
    t.equal("version 1 and 4", [refusal(conn, NULL, b"", v) for v in (1, 4)], [("PROG_MISMATCH", (2, 3))] * 2)
    t.equal("procedure 5", refusal(conn, 5, root)[0], "PROC_UNAVAIL")


def test_round_trip(t, d, conn, root):
    """What one version sets, the others and the disk show."""
    c, path = Acl(conn), d.exports["one"]
    fh = Client(conn).create(root, "file", mode=0o640)[0]
    v3 = conn.nfs(r.LOOKUP, r.lookup_args(d.root(conn, "one"), "file"))["fh"]
    a, (mask, *lists) = c.getacl(fh)
    t.equal("mode bits are a minimal ACL", (mask, lists), (ALL, [(4, PLAIN), (0, [])]))
    t.equal("with the attributes of NFSv2", a, Client(conn).getattr(fh))
    got = c.setacl(fh, ACL, list(reversed(NAMED)))
    t.equal("SETACL gives the new attributes", stat.S_IMODE(got[0]["mode"]), 0o660)
    t.equal("on disk", on_disk(path + "/file"), NAMED)
    t.equal("by version 2 and 3", (c.shown(fh), getacl3(conn, v3)[1:]), ((NAMED, []), (NAMED, [])))
    t.equal("a minimal ACL", isinstance(c.setacl(fh, ACL, PLAIN), tuple), True)
    t.equal("takes the one on disk away", (on_disk(path + "/file"), c.shown(fh)[0]), (None, PLAIN))
    fh = Client(conn).mkdir(root, "folder")[0]
    c.setacl(fh, ACL | DFACL, NAMED, NAMED)
    t.equal("both of a directory", (on_disk(path + "/folder"), on_disk(path + "/folder", DEFAULT_NAME)), (NAMED, NAMED))
    t.equal("by version 3", getacl3(conn, conn.nfs(r.LOOKUP, r.lookup_args(d.root(conn, "one"), "folder"))["fh"])[1:], (NAMED, NAMED))
    t.equal("what is made there by NFSv2 inherits", c.shown(Client(conn).create(fh, "heir", mode=0o666)[0]), (NAMED, []))
    masks = {m: c.getacl(fh, m)[1] for m in range(ALL + 1)}
    want = {m: (m, (6 if m & (ACL | ACLCNT) else 0, NAMED if m & ACL else []), (6 if m & (DFACL | DFACLCNT) else 0, NAMED if m & DFACL else []))
            for m in masks}
    t.equal("each mask gives what it names", masks, want)
    c.setacl(fh, DFACL)
    t.equal("a default ACL of no entries", (on_disk(path + "/folder"), on_disk(path + "/folder", DEFAULT_NAME)), (NAMED, None))


def test_access(t, d, conn, root):
    """ACCESS tells what READ and WRITE then allow; the ACL decides."""
    fh = Client(conn).create(root, "asked", mode=0o600)[0]
    user, v3 = Acl(conn, USER), conn.nfs(r.LOOKUP, r.lookup_args(d.root(conn, "one"), "asked"))["fh"]
    t.equal("a stranger's file", user.access(fh)[1], 0)
    Acl(conn).setacl(fh, ACL, NAMED)
    a, granted = user.access(fh)
    t.equal("one of whose ACL names him", granted, MAY_READ | MAY_MODIFY | MAY_EXTEND)
    t.equal("the attributes", a, Client(conn).getattr(fh))
    t.equal("by NFSv3", conn.nfs(r.ACCESS, r.access_args(v3, 0x3f), cred=USER)["access"], granted)
    t.equal("only bits that were asked for", user.access(fh, MAY_READ | 0xffffff00)[1], MAY_READ)
    t.equal("he may write", isinstance(Client(conn, USER).write(fh, 0, b"x"), dict), True)
    os.chmod(d.exports["one"], 0o755)
    t.equal("root's directory", user.access(root)[1] & (MAY_LOOKUP | MAY_MODIFY), MAY_LOOKUP)
    t.equal("GETATTR", user.getattr(fh), (Client(conn).getattr(fh), None))


def test_nfs4_view(t, d, conn, root):
    """ACLs that NFSv4's client sees and sets are those of version 2."""
    fh = Client(conn).create(root, "four", mode=0o600)[0]
    Acl(conn).setacl(fh, ACL, NAMED)
    c4 = attributes.Client(d, "four")
    fh4 = c4.path(d.exports["one"] + "/four")
    x = r.In(c4.value(fh4, FATTR4_ACL))
    whos = [(x.take(12), x.opaque())[1] for _ in range(x.u32())]
    t.check("NFSv4 shows the named user and group", {b"1005", b"2005", b"OWNER@", b"GROUP@"} <= set(whos), whos)
    ace = u32(0) + u32(0) + u32(READ_DATA) + opaque(b"1006")
    t.equal("an ACL set by NFSv4", c4.set(fh4, FATTR4_ACL, u32(1) + ace)["status"], 0)
    t.check("is seen by version 2", (USER_TAG, 1006, 4) in Acl(conn).shown(fh)[0], Acl(conn).shown(fh))
    c4.close()


def wrong_handles(root):
    return {"a stale one": (bytes(FH), r.STALE), "a forged one": (root[:-1] + bytes([root[-1] ^ 1]), r.STALE)}


def each(acl, fh):
    """Statuses of the four procedures, all of which would succeed for root on a directory."""
    return [got if isinstance(got, int) else 0
            for got in (acl.getacl(fh), acl.setacl(fh, ACL, PLAIN), acl.getattr(fh), acl.access(fh))]


def test_errors(t, d, conn, root):
    """Procedure by procedure; a failed result is a status and nothing else (Acl.call)."""
    acl = Acl(conn)
    for what, (fh, want) in wrong_handles(root).items():
        t.equal(f"handle: {what}", each(acl, fh), [want] * 4)
    gone = Client(conn).create(root, "gone")[0]
    os.unlink(d.exports["one"] + "/gone")
    t.equal("of a removed file", each(acl, gone), [r.STALE] * 4)
    v3 = d.root(conn, "one")
    t.equal("NFSv3's", each(acl, (v3 + bytes(FH))[:FH]), [r.STALE] * 4)
    t.equal("NFSv2's in version 3", getacl3(conn, root)[0], r.BADHANDLE)
    low = mount_low(d, conn)
    t.equal("a port that is not privileged, as for NFSv2", each(acl, low), [Client(conn).getattr(low)] * 4)
    t.check("which is refused", Client(conn).getattr(low) in (r.PERM, r.ACCES))
    ro = mount(d, conn, "ro")[1]
    t.equal("a read-only export", each(acl, ro), [0, r.ROFS, 0, 0])
    t.equal("ACCESS there", acl.access(ro)[1] & (MAY_MODIFY | MAY_EXTEND | MAY_DELETE), 0)
    fh = Client(conn).create(root, "owned", mode=0o640)[0]
    t.equal("another user's file", each(Acl(conn, USER), fh), [0, r.PERM, 0, 0])
    squashed = mount(d, conn, "squash")[1]
    t.equal("root that is squashed", each(acl, squashed), [0, r.PERM, 0, 0])
    t.equal("unknown bits of GETACL's mask", [acl.getacl(fh, m) for m in (0x10, 0xffffffff)], [INVAL] * 2)
    t.equal("ACLs that the kernel refuses", [acl.setacl(fh, ACL, a) for a in (NO_OWNER, TWICE)], [INVAL] * 2)
    t.equal("a default ACL for a file", acl.setacl(fh, DFACL, (), NAMED), r.ACCES)
    t.equal("the file has none", on_disk(d.exports["one"] + "/owned"), None)
    os.symlink("owned", d.exports["one"] + "/link")
    link = Client(conn).lookup(root, "link")[0]
    t.equal("a symbolic link", each(acl, link), [0, NOTSUPP, 0, 0])


def mount_low(d, conn):
    """A handle of the export "low". MNT refuses this port there, so the export takes it for a moment."""
    d.write_exports([f"{p} 127.0.0.0/8({OPTIONS})" for p in d.exports.values()])
    d.reload()
    fh = mount(d, conn, "low")[1]
    d.write_exports([f"{p} 127.0.0.0/8({EXPORTS[n]})" for n, p in d.exports.items()])
    d.reload()
    return fh


def test_flavours(t, d, conn):
    """An export of Kerberos alone: AUTH_SYS may see the root's attributes, as with NFSv2, and nothing else."""
    weak = mount(d, conn, "krb")[1]
    t.equal("GETATTR of its root", Acl(conn).getattr(weak), (Client(conn).getattr(weak), None))
    calls = {GETACL: weak + u32(ALL), SETACL: setacl_args(weak, ACL, PLAIN), ACCESS: weak + u32(1)}
    t.equal("anything else is AUTH_TOOWEAK", [refusal(conn, p, args) for p, args in calls.items()], [("AUTH_ERROR", (5,))] * 3)


def test_no_acl(t, d, conn):
    hidden = mount(d, conn, "hidden")[1]
    fh, path = Client(conn).create(hidden, "file", mode=0o640)[0], d.exports["hidden"] + "/file"
    os.setxattr(path, ACCESS_NAME, os.getxattr(d.exports["one"] + "/four-kept", ACCESS_NAME))
    t.equal("no_acl: GETACL, SETACL, GETATTR, ACCESS", each(Acl(conn), fh), [NOTSUPP, NOTSUPP, 0, 0])
    t.equal("no_acl: the ACL stays, and decides", (on_disk(path), Acl(conn, USER).access(fh)[1]), (NAMED, MAY_READ | MAY_MODIFY | MAY_EXTEND))


def test_garbage(t, conn, root):
    good = {GETACL: root + u32(ALL), SETACL: setacl_args(root, ACL | DFACL, NAMED, NAMED), GETATTR: root, ACCESS: root + u32(1)}
    for proc, args in good.items():
        t.equal(f"procedure {proc}, cut short", {refusal(conn, proc, args[:n])[0] for n in range(0, len(args), 4)}, {"GARBAGE_ARGS"})
    entry = struct.pack(">III", USER_OBJ, 0, 6)
    rows = {"a mask that is none": root + u32(0x10) + u32(0) * 4,
            "more than 1024 entries": root + u32(ACLCNT) + u32(1025) + u32(0) + u32(0) * 2,
            "fewer entries than announced": root + u32(ACL) + u32(2) + u32(1) + entry + u32(0) * 2,
            "entries that are not meant": root + u32(ACLCNT) + u32(1) + u32(1) + entry + u32(0) * 2,
            "an endless array": root + u32(ACL) + u32(0xffffffff) * 2 + entry,
            "a tag of no kind": root + u32(ACL) + u32(1) * 2 + struct.pack(">III", 0x40, 0, 6) + u32(0) * 2,
            "a user that cannot be": root + u32(ACL) + u32(1) * 2 + struct.pack(">III", USER_TAG, 0xffffffff, 6) + u32(0) * 2,
            "NFSv3's form of a handle": opaque(root) + u32(ACL) + array(PLAIN) + array([])}
    t.equal("SETACL", {what: refusal(conn, SETACL, args)[0] for what, args in rows.items()}, dict.fromkeys(rows, "GARBAGE_ARGS"))


def test_again(t, d, conn, root):
    """A call that comes again is answered from the cache, and sets nothing."""
    fh = Client(conn).create(root, "again", mode=0o640)[0]
    message = r.call_message(NFSACL, 2, SETACL, setacl_args(fh, ACL, NAMED))
    with d.connect() as c:
        first = c.exchange(message)
        Acl(conn).setacl(fh, ACL, PLAIN)
        t.equal("SETACL sent twice: done once", (r.reply_body(first).u32(), c.exchange(message), on_disk(d.exports["one"] + "/again")), (0, first, None))


def test_rdma(t, d, peer):
    """Long ACLs by Long Calls and Long Replies; no item is eligible for a chunk."""
    wire = Wire(peer)
    with d.connect() as conn:
        root = mount(d, conn, "big")[1]
        fh = Client(conn).mkdir(root, "many")[0]
    acl = Acl(wire)
    t.check("the most entries by a Long Call", isinstance(acl.setacl(fh, ACL | DFACL, list(reversed(MANY)), MANY), tuple))
    t.check("on disk", on_disk(d.exports["big"] + "/many") == MANY and on_disk(d.exports["big"] + "/many", DEFAULT_NAME) == MANY)
    wire.write_size = 4096
    t.check("back by a Long Reply, beside a Write chunk", acl.shown(fh) == (MANY, MANY))
    t.equal("which has nothing in it", (wire.written, wire.long > 24 * len(MANY)), (0, True))
    wire.write_size, wire.reply_size = 0, 5000
    try:
        t.check("a Reply chunk that is too short", False, acl.shown(fh))
    except RdmaError as e:
        t.equal("a Reply chunk that is too short: ERR_CHUNK", str(e), "00000002")
    wire.reply_size, wire.placed = 0, array(NAMED)
    t.equal("an ACL with a Read chunk of its own", refusal(wire, SETACL, setacl_args(fh, ACL, NAMED))[0], "GARBAGE_ARGS")
    wire.placed = fh
    t.equal("a handle with one", [refusal(wire, p, fh + u32(1))[0] for p in (GETACL, ACCESS)], ["GARBAGE_ARGS"] * 2)
    wire.placed, wire.reply_size = b"", 1 << 20
    t.check("nothing was set, and the connection goes on", acl.shown(fh) == (MANY, MANY))


def test_off(t):
    with harness.Daemon({"one": OPTIONS}) as d:
        with d.connect() as conn:
            t.equal("off without NFSv2", refusal(conn, NULL, b""), ("PROG_MISMATCH", (3, 3)))
        d.stop()


def run(t, d):
    with d.connect() as conn:
        root = mount(d, conn, "one")[1]
        test_program(t, conn, root)
        test_round_trip(t, d, conn, root)
        test_access(t, d, conn, root)
        test_nfs4_view(t, d, conn, root)
        Acl(conn).setacl(Client(conn).create(root, "four-kept", mode=0o640)[0], ACL, NAMED)
        test_errors(t, d, conn, root)
        test_no_acl(t, d, conn)
        test_flavours(t, d, conn)
        test_garbage(t, conn, root)
        test_again(t, d, conn, root)
    since = len(d.read_log())
    d.process.send_signal(signal.SIGUSR1)
    t.check("its calls are counted", d.wait_log(r"nfsacl ACCESS: \d+ calls, [1-9]\d* errors", since))


def main():
    mounts.own_namespace()
    t = harness.Count()
    test_off(t)
    with fabric.Fabric() as f:
        settings = {"nfs2.enabled": "yes", "rdma.enabled": "yes", "rdma.port": PORT}
        d = harness.Daemon(EXPORTS, settings, before=f.command("server"), env=f.environment())
        for folder in d.exports.values():  # ext4 has room for half of the entries
            mounts.must("mount", "-t", "tmpfs", "none", folder)
        with d:
            run(t, d)
            peer = Peer(f.environment(), before=f.command("client")).connect("127.0.0.1", PORT)
            test_rdma(t, d, peer)
            peer.close()
            harness.finish(t, d)
        for folder in d.exports.values():
            mounts.umount(folder)
    harness.result(t)


if __name__ == "__main__":
    main()
