#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The client of Solaris 10 and 11 and illumos, by NFSv3 with NFSACL and by NFSv4.0. Source: illumos-gate, usr/src/uts/common/fs/nfs:
nfs3_vnops.c, nfs_acl_vnops.c, nfs4_vfsops.c, nfs4_client.c, nfs4_vnops.c, nfs4_recovery.c. SETCLIENTID stands behind PUTROOTFH and
GETATTR of the lease time; OPEN has six operations around it; owners' sequence numbers begin where they like; listings go by 1 KiB;
SETATTR of NFSv3 is guarded by ctime; an unsupported ACL procedure must be refused by RPC, as it then goes on without."""
import os
import signal
import time

import base
import callbacks_40
import nfs4client as n4
import nfsacl
import rpcclient as r
from base import ACL, ACLSUPPORT, LEASE, MODE, RDATTR_ERROR, STAT, SUPPORTED, TYPE, FSID, FILEHANDLE, MOUNTED_ON, Three, getattr_op, statuses
from nfs4client import putfh
from rpcclient import opaque, u32, u64

USER = r.auth_sys(0, 1, (1, 2, 3), machine="solaris")
GETXATTRDIR = 3
FILES, LEASE_TIME = 150, 30


class Solaris(n4.Client):
    tag, cred = b"Solaris", USER
    sequence = 0x7ffffffe  # of the open-owner: near the change of its sign

    def register(self):
        program, netid, address, ident = self.callback
        cb = u32(program) + opaque(netid) + opaque(address) + u32(ident)
        results = self.bare((n4.PUTROOTFH, b""), getattr_op(LEASE), (n4.SETCLIENTID, self.verifier + opaque(self.owner) + cb))
        if results[-1]["status"] == 0:
            self.clientid = results[-1]["clientid"]
            return self.bare((n4.SETCLIENTID_CONFIRM, u64(self.clientid) + results[-1]["confirm"]))[0]
        return results[-1]

    def next(self):
        self.sequence += 1
        return u32(self.sequence)

    def _who(self, name):
        return u64(self.clientid) + opaque(name)

    def open_file(self, fh, name, how, access=n4.SHARE_BOTH):
        """PUTFH, SAVEFH, OPEN, GETFH, GETATTR, RESTOREFH, GETATTR, and OPEN_CONFIRM where it is wanted."""
        op = n4.OPEN, self.next() + u32(access) + u32(0) + self._who(b"open owner 1") + how + u32(0) + r.name(name)
        results = self.compound(putfh(fh), (n4.SAVEFH, b""), op, (n4.GETFH, b""), getattr_op(*STAT), (base.RESTOREFH, b""), getattr_op(*STAT))
        if results[-1]["status"]:
            return results, None, None
        file, stateid = results[3]["fh"], results[2]["stateid"]
        if results[2]["rflags"] & 2:
            stateid = self.last(putfh(file), (n4.OPEN_CONFIRM, stateid + self.next()))["stateid"]
        return results, file, stateid


def test_three(t, d):
    c = Three(t, d.connect(), USER)
    c.null(r.MOUNT, 3)
    fh = c.mount(d.exports["one"])
    c.null(r.NFS, 3)
    c.null(nfsacl.NFSACL, 3)
    c.call(r.FSINFO, r.fsinfo_args(fh))
    c.call(r.PATHCONF, r.pathconf_args(fh))
    t.equal("GETACL of the root", nfsacl.getacl(c.conn, fh, nfsacl.ALL, USER)[0], 0)
    try:
        c.conn.call(nfsacl.NFSACL, 3, GETXATTRDIR, opaque(fh) + u32(0), USER)
        t.check("extended attributes of Solaris", False)
    except r.Refused as e:
        t.equal("extended attributes of Solaris", e.why, "PROC_UNAVAIL")
    c.lookup(fh, "three", r.NOENT)
    made = c.call(r.CREATE, r.create_args(fh, "three", r.EXCLUSIVE, verf=b"\0\0\0\1solr"))
    again = c.call(r.CREATE, r.create_args(fh, "three", r.EXCLUSIVE, verf=b"\0\0\0\1solr"))
    t.equal("EXCLUSIVE again by the same verifier", again["fh"], made["fh"])
    c.call(r.CREATE, r.create_args(fh, "three", r.EXCLUSIVE, verf=b"\0\0\0\2solr"), r.EXIST)
    after = c.call(r.SETATTR, r.setattr_args(made["fh"], r.sattr(mode=0o644, uid=0, gid=1, atime="server", mtime="server")))["wcc"]["after"]
    t.equal("the attributes that an exclusive file has not", (after["mode"] & 0o777, after["gid"]), (0o644, 1))
    after = c.call(r.WRITE, r.write_args(made["fh"], 0, b"x" * 32768, r.UNSTABLE))["wcc"]["after"]
    c.call(r.SETATTR, r.setattr_args(made["fh"], r.sattr(size=5), guard=(after["ctime"][0] - 1, 0)), r.NOT_SYNC)
    after = c.call(r.GETATTR, r.getattr_args(made["fh"]))["attr"]
    c.call(r.SETATTR, r.setattr_args(made["fh"], r.sattr(size=5), guard=after["ctime"]))
    c.call(r.COMMIT, r.commit_args(made["fh"]))
    acl = [(nfsacl.USER_OBJ, 0, 6), (nfsacl.USER, 1005, 4), (nfsacl.GROUP_OBJ, 1, 4), (nfsacl.MASK, 0, 4), (nfsacl.OTHER, 0, 0)]
    t.equal("SETACL", nfsacl.setacl(c.conn, made["fh"], nfsacl.ACL | nfsacl.ACLCNT, acl, cred=USER), 0)
    t.equal("GETACL", nfsacl.getacl(c.conn, made["fh"], nfsacl.ACL | nfsacl.ACLCNT, USER)[1], acl)
    folder = c.call(r.MKDIR, r.mkdir_args(fh, "folder"))["fh"]
    for i in range(FILES):
        c.call(r.LINK, r.link_args(made["fh"], folder, f"link {i}"))
    names, cookie, verf = [], 0, bytes(8)
    while True:  # READDIR of 1 KiB, as in getdents with a small buffer
        res = c.call(r.READDIR, r.readdir_args(folder, cookie, verf, 1024))
        names += [e["name"] for e in res["entries"]]
        if res["status"] or res["eof"]:
            break
        cookie, verf = res["entries"][-1]["cookie"], res["verf"]
    t.equal("READDIR of 1 KiB at a time", sorted(names), sorted([b".", b".."] + [b"link %d" % i for i in range(FILES)]))
    c.call(r.RENAME, r.rename_args(fh, "three", fh, ".nfs4321"))  # removed while it is open
    c.call(r.REMOVE, r.remove_args(fh, ".nfs4321"))
    c.unmount(d.exports["one"])
    c.conn.close()


def mount(t, d, listener):
    c = Solaris.__new__(Solaris)
    c.callback = (0x40000000, b"tcp", listener.uaddr(), 1)
    c.__init__(d.port, "solaris zone 1", 0, b"\1\2\3\4\5\6\7\x08")
    t.equal("SETCLIENTID behind GETATTR of the lease", c.register()["status"], 0)
    t.check("the server tries the callback", listener.await_calls())
    names = d.exports["one"].strip("/").split("/")
    fh = c.last((n4.PUTROOTFH, b""), (n4.GETFH, b""))["fh"]
    for name in names:  # one component at a time, each with its attributes
        results = c.compound(putfh(fh), n4.lookup(name), (n4.GETFH, b""), getattr_op(SUPPORTED, TYPE, FSID, LEASE, ACLSUPPORT))
        t.equal(f"LOOKUP of {name}", statuses(results), [0] * 4)
        parent, fh = fh, results[2]["fh"]
    res = c.last(putfh(parent), (n4.SECINFO, r.name(names[-1])))
    t.check("SECINFO has AUTH_SYS", (1,) in res["flavors"], res)
    return c, fh


def test_four(t, c, fh, d):
    how = u32(1) + u32(1) + base.fattr({MODE: u32(0o644)})
    results, file, stateid = c.open_file(fh, "four", how)
    t.equal("OPEN that makes a file", (statuses(results), results[4]["attrs"][MODE]), ([0] * 7, u32(0o644)))
    taken, _, _ = c.open_file(fh, "four", how)
    t.equal("GUARDED again", taken[-1]["status"], r.EXIST)
    for _ in range(3):
        _, _, stateid = c.open_file(fh, "four", u32(0))
    t.equal("WRITE", c.last(putfh(file), n4.write(stateid, 0, b"x" * 32768, 0))["count"], 32768)
    lock = u32(n4.WRITE_LT) + u32(0) + u64(0) + u64(n4.ALL) + u32(1) + c.next() + stateid + u32(0x80000000) + c._who(b"lock owner 1")
    locked = c.last(putfh(file), (n4.LOCK, lock))
    t.equal("LOCK of a lock-owner that begins at 2^31", locked["status"], 0)
    res = c.last(putfh(file), (n4.LOCKU, u32(n4.WRITE_LT) + u32(0x80000001) + locked["stateid"] + u64(0) + u64(n4.ALL)))
    t.equal("LOCKU", res["status"], 0)
    t.equal("RELEASE_LOCKOWNER", c.last((base.RELEASE_LOCKOWNER, c._who(b"lock owner 1")))["status"], 0)
    results = c.compound(putfh(file), getattr_op(*STAT, ACL))
    acl = results[-1]["attrs"][ACL]
    t.check("the ACL begins with an entry for the owner", acl and acl[0][3] == b"OWNER@", acl)
    value = u32(len(acl)) + b"".join(u32(a) + u32(b) + u32(m) + opaque(who) for a, b, m, who in acl)
    t.equal("SETATTR of the ACL that it was told", c.last(putfh(file), (n4.SETATTR, n4.ANONYMOUS + base.fattr({ACL: value})))["status"], 0)
    t.equal("the mode is the same", os.stat(base.path(d, "four")).st_mode & 0o777, 0o644)
    entries, calls = base.readdir(c, c.last(putfh(fh), n4.lookup("folder"), (n4.GETFH, b""))["fh"], 1024, 1024, RDATTR_ERROR, MOUNTED_ON)
    t.check("READDIR of 1 KiB at a time", isinstance(entries, list) and len({n for _, n, _ in entries}) == FILES and calls > 3, (entries, calls))
    entries, _ = base.readdir(c, fh, 8192, 32768, *STAT, RDATTR_ERROR, FILEHANDLE, MOUNTED_ON)
    t.check("READDIR with handles", all(a[FILEHANDLE] for _, _, a in entries), entries)
    results = c.compound(putfh(fh), (n4.SAVEFH, b""), putfh(fh), (n4.RENAME, r.name("four") + r.name("renamed")), getattr_op(*STAT),
                         (base.RESTOREFH, b""), getattr_op(*STAT))
    t.equal("RENAME", statuses(results), [0] * 7)
    t.equal("OPENATTR says that there are none", c.last(putfh(file), (base.OPENATTR, u32(0)))["status"], 10004)
    t.equal("CLOSE and the attributes", statuses(c.compound(putfh(file), getattr_op(*STAT), (n4.CLOSE, c.next() + stateid))), [0] * 3)


def test_restart(t, c, fh, d):
    _, file, stateid = c.open_file(fh, "kept", u32(1) + u32(0) + base.fattr({MODE: u32(0o600)}))
    lock = u32(n4.WRITE_LT) + u32(0) + u64(0) + u64(10) + u32(1) + c.next() + stateid + u32(0) + c._who(b"lock owner 2")
    c.last(putfh(file), (n4.LOCK, lock))
    d.stop(signal.SIGKILL)
    d.start()
    c.again()
    t.equal("RENEW", c.last((n4.RENEW, u64(c.clientid)))["status"], n4.STALE_CLIENTID)
    t.equal("READ", c.last(putfh(file), n4.read(stateid, 0, 10))["status"], n4.STALE_STATEID)
    t.equal("SETCLIENTID again, by the same verifier", c.register()["status"], 0)
    op = n4.OPEN, c.next() + u32(n4.SHARE_BOTH) + u32(0) + c._who(b"open owner 1") + u32(0) + u32(n4.CLAIM_PREVIOUS) + u32(0)
    results = c.compound(putfh(file), op, (n4.GETFH, b""), getattr_op(*STAT))
    t.equal("OPEN is reclaimed", statuses(results), [0] * 4)
    stateid = results[1]["stateid"]
    if results[1]["rflags"] & 2:
        stateid = c.last(putfh(file), (n4.OPEN_CONFIRM, stateid + c.next()))["stateid"]
    lock = u32(n4.WRITE_LT) + u32(1) + u64(0) + u64(10) + u32(1) + c.next() + stateid + u32(0) + c._who(b"lock owner 2")
    t.equal("LOCK is reclaimed", c.last(putfh(file), (n4.LOCK, lock))["status"], 0)
    end = time.monotonic() + 6 * LEASE_TIME
    other = u32(n4.WRITE_LT) + u64(100) + u64(10) + c._who(b"another")
    while (status := c.last(putfh(file), (n4.LOCKT, other))["status"]) == n4.GRACE and time.monotonic() < end:
        c.last((n4.RENEW, u64(c.clientid)))
        time.sleep(0.2)
    t.equal("LOCKT, in the end", status, 0)
    t.equal("CLOSE", c.last(putfh(file), (n4.CLOSE, c.next() + stateid))["status"], 0)


def test(t, d):
    test_three(t, d)
    listener = callbacks_40.Listener()
    c, fh = mount(t, d, listener)
    test_four(t, c, fh, d)
    test_restart(t, c, fh, d)
    c.close()
    listener.stop()


if __name__ == "__main__":
    base.main(test, settings={"nfs4.lease_time": LEASE_TIME, "nfs4.grace_time": LEASE_TIME})
