#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""FreeBSD's client (stable/13 to 15), by NFSv4.1 and 4.2, with nfscbd running and the mount options oneopenown and pnfs. Source:
sys/fs/nfsclient/nfs_clrpcops.c and nfs_clstate.c. It asks for pNFS and a persistent session of 64 slots with a back channel whose calls
are by AUTH_SYS, sends RECLAIM_COMPLETE and ignores COMPLETE_ALREADY, opens all by one owner, asks for layouts at the first open until
it is told that there are none, and binds each new connection with BIND_CONN_TO_SESSION before anything else."""
import os
import signal
import struct
import time

import base
import nfs4client as n4
import rpcclient as r
from base import (ACL, ACLSUPPORT, CHANGE, FSID, FILEID, LEASE, MAXREAD, MODE, MOUNTED_ON, RDATTR_ERROR, SIZE, STAT, SUPPORTED, TYPE, getattr_op,
                  statuses)
from nfs4client import putfh
from rpcclient import opaque, u32, u64

USE_NON_PNFS, USE_PNFS_MDS, USE_PNFS_DS = 0x10000, 0x20000, 0x40000
PERSIST, BACK_CHANNEL = 1, 2
FORE_OR_BOTH = 3
CALLBACKS = 0x40000000
FILES_LAYOUT = 1
COMPLETE_ALREADY, LAYOUTUNAVAILABLE, NOTSUPP = 10054, 10059, 10004
BOOTED = 1756000000
FILES = 200
LEASE_TIME = 30


class FreeBSD(n4.Client):
    tag, back = b"Tag", True
    cred = r.auth_sys(0, 0, machine="freebsd")

    def register(self):
        impl = u32(1) + opaque(b"freebsd.org") + opaque(b"FreeBSD 15.0-RELEASE GENERIC") + u64(1293840000) + u32(0)
        res = self.bare((n4.EXCHANGE_ID, u32(BOOTED) + u32(0) + opaque(self.owner) + u32(USE_NON_PNFS | USE_PNFS_MDS) + u32(0) + impl))[0]
        if res["status"]:
            return res
        self.clientid, self.roles = res["clientid"], res["flags"] & (USE_NON_PNFS | USE_PNFS_MDS | USE_PNFS_DS)
        fore = struct.pack(">7I", 0, 1 << 20, 1 << 20, 4096, 20, 64, 0)
        back = struct.pack(">7I", 0, 10000, 10000, 4096, 4, 4, 0)
        sec = u32(1) + u32(1) + u32(BOOTED) + opaque(b"") + u32(0) + u32(0) + u32(0)
        res = self.bare((n4.CREATE_SESSION, u64(self.clientid) + u32(res["sequenceid"]) + u32(PERSIST | BACK_CHANNEL) + fore + back +
                         u32(CALLBACKS) + sec))[0]
        if res["status"] == 0:
            self.session, self.seqid, self.created = res["session"], 0, res
        return res

    def _open_owner(self, access, deny):
        return u32(0) + u32(access) + u32(deny) + u64(self.clientid) + opaque(b"one owner for all")


def mount(t, d, minor):
    c = FreeBSD(d.port, f"freebsd-{minor}", minor)
    t.equal("EXCHANGE_ID and CREATE_SESSION", c.register()["status"], 0)
    t.equal("it is told that there is no pNFS", c.roles, USE_NON_PNFS)
    t.check("a back channel, no persistent session", c.created["flags"] == BACK_CHANNEL, c.created)
    t.check("slots", c.created["fore"][5] >= 16, c.created)
    t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), 0)
    t.equal("once more", c.reclaim_complete(), COMPLETE_ALREADY)
    fh = c.path(d.exports["one"])
    res = c.last(putfh(fh), getattr_op(SUPPORTED, TYPE, FSID, LEASE, ACLSUPPORT, MAXREAD))
    t.equal("attributes of the mount", res["attrs"][FSID], c.last(putfh(fh), getattr_op(FSID))["attrs"][FSID])
    return c, fh


def create(c, fh, name, access=n4.SHARE_BOTH):
    """OPEN by an exclusive creation with attributes; (result, handle, attributes)."""
    how = u32(1) + u32(3) + os.urandom(8) + base.fattr({MODE: u32(0o644)})
    results = c.compound(putfh(fh), (n4.OPEN, c._open_owner(access, 0) + how + u32(0) + r.name(name)), (n4.GETFH, b""), getattr_op(*STAT))
    return results[1], results[2]["fh"], results[3]["attrs"]


def by_name(c, fh, name, access):
    results = c.compound(putfh(fh), (n4.OPEN, c._open_owner(access, 0) + u32(0) + u32(0) + r.name(name)), getattr_op(*STAT), (n4.GETFH, b""))
    return results[1]


def test_files(t, c, fh, d):
    opened, file, attrs = create(c, fh, "file")
    t.equal("created exclusively, with its mode", (opened["status"], attrs[MODE]), (0, u32(0o644)))
    layout = u32(0) + u32(FILES_LAYOUT) + u32(2) + u64(0) + u64(n4.ALL) + u64(0) + opened["stateid"] + u32(10000)
    t.check("LAYOUTGET is refused, not waited for", c.last(putfh(file), (base.LAYOUTGET, layout))["status"] in (LAYOUTUNAVAILABLE, NOTSUPP))
    again = by_name(c, fh, "file", n4.SHARE_READ)
    t.equal("the same owner's second open has its first stateid", (again["stateid"][4:], again["stateid"][:4]),
            (opened["stateid"][4:], u32(2)))
    now = u32(0) + opened["stateid"][4:]  # sequence id 0: the newest
    results = c.compound(putfh(file), n4.write(now, 0, b"x" * 65536, 0), getattr_op(SIZE, CHANGE))
    t.equal("WRITE and the size after it", (statuses(results), results[-1]["attrs"][SIZE]), ([0] * 3, u64(65536)))
    t.equal("COMMIT", c.last(putfh(file), (base.COMMIT, u64(0) + u32(65536)))["verf"], results[1]["verf"])
    locker = u32(1) + u32(0) + now + u32(0) + u64(c.clientid) + opaque(b"lock owner of a process")
    locked = c.last(putfh(file), (n4.LOCK, u32(n4.WRITE_LT) + u32(0) + u64(0) + u64(100) + locker))
    t.equal("LOCK with the newest stateid", locked["status"], 0)
    t.equal("LOCKU", c.last(putfh(file), (n4.LOCKU, u32(n4.WRITE_LT) + u32(0) + u32(0) + locked["stateid"][4:] + u64(0) + u64(100)))["status"], 0)
    t.equal("FREE_STATEID", c.free_stateid(u32(0) + locked["stateid"][4:]), 0)
    results = c.compound(putfh(file), (base.ACCESS, u32(0x3f)), getattr_op(*STAT))
    t.equal("ACCESS with all attributes", statuses(results), [0] * 3)
    t.equal("the ACL", statuses(c.compound(putfh(file), getattr_op(ACL))), [0, 0])
    rename = (putfh(fh), getattr_op(CHANGE), (n4.SAVEFH, b""), putfh(fh), getattr_op(CHANGE), (n4.RENAME, r.name("file") + r.name("renamed")))
    t.equal("RENAME between two GETATTRs", statuses(c.compound(*rename)), [0] * 6)
    t.equal("CLOSE", c.last(putfh(file), (n4.CLOSE, u32(0) + now))["status"], 0)
    t.equal("the delegation is returned", c.delegreturn(file, opened["deleg"]) if "deleg" in opened else 0, 0)


def test_listing(t, c, fh, d):
    folder = base.path(d, f"many{c.minor}")
    os.mkdir(folder)
    for i in range(FILES):
        with open(f"{folder}/file{i:04}", "w", encoding="ascii"):
            pass
    at = c.last(putfh(fh), n4.lookup(f"many{c.minor}"), (n4.GETFH, b""))["fh"]
    entries, _ = base.readdir(c, at, 8192, 32768, *STAT, RDATTR_ERROR, MOUNTED_ON)
    t.equal("READDIR with attributes", sorted(n for _, n, _ in entries), [b"file%04d" % i for i in range(FILES)])
    t.check("the number of the file is the one of its mount", all(a[MOUNTED_ON] == a[FILEID] for _, _, a in entries))
    results = c.compound(putfh(at), (base.LOOKUPP, b""), (n4.GETFH, b""), getattr_op(*STAT))
    t.equal("LOOKUPP", (statuses(results), results[2]["fh"]), ([0] * 4, fh))


def test_reconnect(t, c, fh, d):
    """A new connection is bound first, then used."""
    c.again()
    t.equal("BIND_CONN_TO_SESSION", (res := c.bind(FORE_OR_BOTH))["status"], 0)
    t.check("for both channels", res["dir"] in (FORE_OR_BOTH, 1), res)
    t.equal("and used", c.last(putfh(fh), getattr_op(*STAT))["status"], 0)


def test_restart(t, c, fh, d):
    """BADSESSION, EXCHANGE_ID, CREATE_SESSION, reclaims by handle, RECLAIM_COMPLETE."""
    opened, file, _ = create(c, fh, f"kept{c.minor}")
    locker = u32(1) + u32(0) + opened["stateid"] + u32(0) + u64(c.clientid) + opaque(b"lock")
    c.last(putfh(file), (n4.LOCK, u32(n4.WRITE_LT) + u32(0) + u64(0) + u64(100) + locker))
    d.stop(signal.SIGKILL)
    d.start()
    c.again()
    t.equal("BIND_CONN_TO_SESSION of a session that is gone", c.bind(FORE_OR_BOTH)["status"], n4.BADSESSION)
    t.equal("SEQUENCE", c.last(putfh(fh))["status"], n4.BADSESSION)
    t.equal("registers again", c.register()["status"], 0)
    res = c.reclaim_open(file, n4.SHARE_BOTH, 0, n4.DELEGATE_NONE)
    t.equal("OPEN is reclaimed", res["status"], 0)
    locker = u32(1) + u32(0) + res["stateid"] + u32(0) + u64(c.clientid) + opaque(b"lock")
    t.equal("LOCK is reclaimed", c.last(putfh(file), (n4.LOCK, u32(n4.WRITE_LT) + u32(1) + u64(0) + u64(100) + locker))["status"], 0)
    t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), 0)
    end = time.monotonic() + 4 * LEASE_TIME
    while (new := by_name(c, fh, f"kept{c.minor}", n4.SHARE_READ))["status"] == n4.GRACE and time.monotonic() < end:
        time.sleep(0.1)
    t.equal("a new OPEN, in the end", new["status"], 0)
    c.last(putfh(file), (n4.CLOSE, u32(0) + u32(0) + res["stateid"][4:]))


def unmount(t, c):
    t.equal("DESTROY_SESSION", c.bare((n4.DESTROY_SESSION, c.session))[0]["status"], 0)
    t.equal("DESTROY_CLIENTID", c.bare((n4.DESTROY_CLIENTID, u64(c.clientid)))[0]["status"], 0)
    c.close()


def test(t, d):
    for minor in (1, 2):
        c, fh = mount(t, d, minor)
        for part in (test_files, test_listing, test_reconnect, test_restart):
            part(t, c, fh, d)
        unmount(t, c)


if __name__ == "__main__":
    base.main(test, settings={"nfs4.lease_time": LEASE_TIME, "nfs4.grace_time": LEASE_TIME})
