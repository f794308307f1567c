#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""macOS' client (10.15 and later), by NFSv3 with locks and by NFSv4.0. Source: apple/darwin-xnu, bsd/nfs/nfs4_subs.c, nfs4_vnops.c and
nfs_vnops.c, and rpc.lockd. dCache/nfs4j issues 43 and 174 and marmos91/dittofs issues 254 and 841 tell what macOS cannot bear: a file number
of 0 makes the machine panic, and a listing that is refused as its folder has changed stops Finder's copies. It calls from an unprivileged
port, looks for the name behind "._" while a creation is under way, sets the time of birth after an exclusive creation (EBADRPC for the
application if that fails), gives its uid as open-owner and, without callbacks, an empty netid; it tries OPENATTR; its lock manager asks
by messages."""
import os
import signal
import struct
import time

import base
import harness
import nfs4client as n4
import nlm_messages as messages
import nlm_recovery as nlm
import rpcclient as r
import udpclient
from base import (CHANGE, FILEHANDLE, FILEID, LEASE, MODE, MOUNTED_ON, NAMED_ATTR, OWNER, OWNER_GROUP, RDATTR_ERROR, STAT, SUPPORTED, TIME_CREATE, Three,
                  getattr_op, statuses)
from nfs4client import putfh
from rpcclient import opaque, u32, u64

USER = r.auth_sys(501, 20, (20, 12, 61, 79, 80, 81, 98, 702, 701, 33, 100, 204, 250, 395, 398, 399), machine="mac.local")
FILES, LEASE_TIME, DIRECTORY = 400, 30, 32768
NFD, NFC = "Cafe\u0301.txt", "Caf\u00e9.txt"
NOTSUPP = 10004


def both(c, first, second):
    """Two calls on one connection before the reply to either: both results, in this order."""
    calls = {r.next_xid(): call for call in (first, second)}
    for xid, (proc, args) in calls.items():
        c.conn.send(r.call_message(r.NFS, 3, proc, args, USER, xid))
    got = {}
    for _ in calls:
        data = c.conn.recv()
        xid = int.from_bytes(data[:4], "big")
        got[xid] = r.decode(calls[xid][0], r.reply_body(data, xid))
    return [got[xid] for xid in calls]


def test_three(t, d):
    c = Three(t, d.connect(source=(nlm.ONE, 0)), USER)
    fh = c.mount(d.exports["one"])
    for proc, args in ((r.FSINFO, r.fsinfo_args), (r.PATHCONF, r.pathconf_args), (r.FSSTAT, r.fsstat_args), (r.GETATTR, r.getattr_args)):
        c.call(proc, args(fh))
    t.equal("ACCESS of all kinds", c.call(r.ACCESS, r.access_args(fh, 0x3f))["access"], 0x1f)
    made, beside = both(c, (r.CREATE, r.create_args(fh, "doc", r.EXCLUSIVE, verf=b"\0\0\0\5\0\0\0\5")), (r.LOOKUP, r.lookup_args(fh, "._doc")))
    t.equal("a creation, and the lookup beside it", (made["status"], beside["status"]), (r.OK, r.NOENT))
    c.call(r.SETATTR, r.setattr_args(made["fh"], r.sattr(mode=0o644, uid=501, gid=20, atime="server", mtime="server")))
    for name in ("._doc", ".DS_Store", NFD, NFC):
        file = c.call(r.CREATE, r.create_args(fh, name, r.UNCHECKED, r.sattr(mode=0o644)))["fh"]
        c.call(r.WRITE, r.write_args(file, 0, struct.pack(">II16x", 0x51607, 0x20000) + bytes(4072), r.UNSTABLE))
        c.call(r.COMMIT, r.commit_args(file))
    t.equal("both forms of a name are names", [os.path.exists(base.path(d, n)) for n in (NFD, NFC)], [True, True])
    c.call(r.RENAME, r.rename_args(fh, "doc", fh, "doc.pages"))
    c.call(r.RENAME, r.rename_args(fh, "._doc", fh, "._doc.pages"))
    for i in range(FILES):
        with open(base.path(d, f"._{i:04}"), "wb"):
            pass
    names = [e["name"] for e in c.listing(fh, DIRECTORY, DIRECTORY)]
    t.equal("READDIRPLUS of 32 KiB", len([n for n in names if n.startswith(b"._")]), FILES + 1)
    for i in range(FILES):
        os.unlink(base.path(d, f"._{i:04}"))
    first = c.call(r.READDIRPLUS, r.readdirplus_args(fh, 0, bytes(8), 512, 4096))
    c.call(r.CREATE, r.create_args(fh, "._between", r.UNCHECKED, r.sattr(mode=0o644)))
    rest = c.call(r.READDIRPLUS, r.readdirplus_args(fh, first["entries"][0]["cookie"], first["verf"], DIRECTORY, DIRECTORY))
    t.check("a listing goes on by the verifier of its first reply though the folder has changed", rest["status"] == 0 and rest["eof"])
    c.call(r.RENAME, r.rename_args(fh, ".DS_Store", fh, ".nfs.20051234.0aF4"))
    c.call(r.REMOVE, r.remove_args(fh, ".nfs.20051234.0aF4"))
    c.unmount(d.exports["one"])
    c.conn.close()


def test_locks(t, d, one, two, hosts):
    """rpc.lockd: messages by UDP, and GRANTED_MSG for who waits."""
    fh = nlm.make_file(d, one, "locked")
    for c in (one, two):
        c.conn.close()
        c.conn = udpclient.Datagrams(d.port, nlm.SERVER, (c.address, 0))
    t.equal("TEST_MSG", messages.post(hosts[0], one, 4, messages.TEST, fh), nlm.GRANTED)
    t.equal("LOCK_MSG", messages.post(hosts[0], one, 4, messages.LOCK, fh, length=0), nlm.GRANTED)
    t.equal("LOCK_MSG of another that waits", messages.post(hosts[1], two, 4, messages.LOCK, fh, length=0, block=True), nlm.BLOCKED)
    n = len(hosts[1].heard)
    t.equal("UNLOCK_MSG", messages.post(hosts[0], one, 4, messages.UNLOCK, fh, length=0), nlm.GRANTED)
    h = messages.granted(hosts[1], n, messages.GRANT + messages.MSG)
    if t.check("GRANTED_MSG", h, hosts[1].heard[n:]):
        messages.answer(two, 4, h.args.opaque(), nlm.GRANTED)
    t.equal("it has the lock", messages.post(hosts[0], one, 4, messages.TEST, fh), nlm.DENIED)
    t.equal("UNLOCK_MSG of it", messages.post(hosts[1], two, 4, messages.UNLOCK, fh, length=0), nlm.GRANTED)


class Mac(n4.Client):
    cred, sequence = USER, 0
    uid = u32(501)

    def next(self):
        self.sequence += 1
        return u32(self.sequence - 1)

    def _open(self, fh, tag, how, claim, access=n4.SHARE_BOTH):
        self.tag = tag
        op = n4.OPEN, self.next() + u32(access) + u32(0) + u64(self.clientid) + opaque(self.uid) + how + claim
        results = self.compound(putfh(fh), (n4.SAVEFH, b""), op, getattr_op(*STAT, FILEHANDLE), (base.RESTOREFH, b""), getattr_op(*STAT))
        if results[-1]["status"]:
            return results, None, None
        file, stateid = results[3]["attrs"][FILEHANDLE], results[2]["stateid"]
        if results[2]["rflags"] & 2:
            self.tag = b"open_confirm"
            stateid = self.compound(putfh(file), (n4.OPEN_CONFIRM, stateid + self.next()), getattr_op(*STAT))[1]["stateid"]
        return results, file, stateid

    def create(self, fh, name):
        return self._open(fh, b"create", u32(1) + u32(2) + u32(1) + u32(1), u32(0) + r.name(name))

    def locker(self, stateid):
        return u32(1) + self.next() + stateid + u32(0) + u64(self.clientid) + opaque(u32(0) + u32(4711) + u64(1756000000))


def mount(t, d, callback, mounted=0):
    c = Mac.__new__(Mac)
    c.callback, c.tag = callback, b"setclid"
    # A collision number, the address of en0, the server's address, and two mount names.
    c.__init__(d.port, "", 0, struct.pack(">II", 1756000000 + mounted, 5))
    c.owner = u32(0) + b"\xac\xde\x48\0\x11\x22" + b"\x10\2\x08\1\x7f\0\0\1" + bytes(8) + b"server:/one\0/Volumes/one\0"
    t.equal("SETCLIENTID", c.register()["status"], 0)
    names = d.exports["one"].strip("/").split("/")
    c.tag = b"mount"
    top = c.last((n4.PUTROOTFH, b""), getattr_op(*STAT, FILEHANDLE, MOUNTED_ON))["attrs"]
    fh, numbers = top[FILEHANDLE], [top[FILEID], top[MOUNTED_ON]]
    for name in names:
        results = c.compound(putfh(fh), n4.lookup(name), (n4.GETFH, b""), getattr_op(*STAT, FILEHANDLE, MOUNTED_ON))
        t.equal(f"LOOKUP of {name}", statuses(results), [0] * 4)
        numbers += [results[3]["attrs"][FILEID], results[3]["attrs"][MOUNTED_ON]]
        parent, fh = fh, results[2]["fh"]
    t.check("no file number is 0", bytes(8) not in numbers, numbers)
    t.check("SECINFO", c.last(putfh(parent), (n4.SECINFO, r.name(names[-1])))["flavors"])
    results = c.compound(putfh(fh), getattr_op(*STAT, SUPPORTED, NAMED_ATTR, LEASE), (base.OPENATTR, u32(0)))
    t.equal("there are no named attributes", (statuses(results), results[1]["attrs"][NAMED_ATTR]), ([0, 0, NOTSUPP], u32(0)))
    return c, fh, results[1]["attrs"][SUPPORTED]


def test_four(t, c, fh, supported, d):
    results, file, stateid = c.create(fh, "four")
    t.equal("an exclusive creation", statuses(results), [0] * 6)
    values = {MODE: u32(0o644), OWNER: opaque(b"501"), OWNER_GROUP: opaque(b"20")}
    if supported[TIME_CREATE // 32] >> TIME_CREATE % 32 & 1:
        values[TIME_CREATE] = u64(1000000000) + u32(0)
    results = c.compound(putfh(file), (n4.SETATTR, stateid + base.fattr(values)), getattr_op(*STAT))
    t.equal("the attributes after it, with the time of birth", statuses(results), [0] * 3)
    t.equal("the mode", results[-1]["attrs"][MODE], u32(0o644))
    results = c.compound(putfh(file), n4.write(stateid, 0, b"x" * 32768, 0), getattr_op(*STAT))
    t.equal("WRITE", statuses(results), [0] * 3)
    results = c.compound(putfh(file), (base.ACCESS, u32(0x3f)), getattr_op(*STAT))
    t.equal("ACCESS", (statuses(results), results[1]["access"]), ([0] * 3, 0xd))
    args = u32(n4.WRITE_LT) + u32(0) + u64(0) + u64(n4.ALL) + c.locker(stateid)
    locked = c.last(putfh(file), (n4.LOCK, args))
    t.equal("LOCK", locked["status"], 0)
    res = c.last(putfh(file), (n4.LOCKU, u32(n4.WRITE_LT) + u32(1) + locked["stateid"] + u64(0) + u64(n4.ALL)))
    t.equal("LOCKU", res["status"], 0)
    entries, _ = base.readdir(c, fh, DIRECTORY, DIRECTORY, *STAT, RDATTR_ERROR, FILEHANDLE, MOUNTED_ON)
    t.check("READDIR with handles", {n: a[FILEHANDLE] for _, n, a in entries}.get(b"four") == file, entries)
    t.check("each entry has the number of its file", all(a[MOUNTED_ON] == a[FILEID] for _, _, a in entries))
    rename = (putfh(fh), (n4.SAVEFH, b""), putfh(fh), (n4.RENAME, r.name("four") + r.name("quatre")), getattr_op(CHANGE), (base.RESTOREFH, b""),
              getattr_op(CHANGE))
    t.equal("RENAME", statuses(c.compound(*rename)), [0] * 7)
    t.equal("CLOSE behind GETATTR", statuses(c.compound(putfh(file), getattr_op(*STAT), (n4.CLOSE, c.next() + stateid))), [0] * 3)
    _, _, stateid = c._open(fh, b"open", u32(0), u32(0) + r.name("quatre"))
    known = u32(0) + locked["stateid"] + u32(2)  # of the open that was closed
    res = c.last(putfh(file), (n4.LOCK, u32(n4.WRITE_LT) + u32(0) + u64(0) + u64(n4.ALL) + known))
    t.equal("LOCK by the stateid of locks before CLOSE: recovery, as with Linux's server", res["status"], n4.BAD_STATEID)
    locked = c.last(putfh(file), (n4.LOCK, u32(n4.WRITE_LT) + u32(0) + u64(0) + u64(n4.ALL) + c.locker(stateid)))
    t.equal("LOCK by the same lock-owner, as a new one", locked["status"], 0)
    c.last(putfh(file), (n4.LOCKU, u32(n4.WRITE_LT) + u32(1) + locked["stateid"] + u64(0) + u64(n4.ALL)))
    t.equal("CLOSE again", c.last(putfh(file), (n4.CLOSE, c.next() + stateid))["status"], 0)
    t.equal("RELEASE_LOCKOWNER", c.last((base.RELEASE_LOCKOWNER, u64(c.clientid) + opaque(u32(0) + u32(4711) + u64(1756000000))))["status"], 0)


def test_restart(t, c, fh, d):
    _, file, stateid = c.create(fh, "kept")
    c.last(putfh(file), (n4.LOCK, u32(n4.WRITE_LT) + u32(0) + u64(0) + u64(10) + c.locker(stateid)))
    d.stop(signal.SIGKILL)
    d.start()
    c.again()
    t.equal("RENEW", c.last((n4.RENEW, u64(c.clientid)))["status"], n4.STALE_CLIENTID)
    t.equal("SETCLIENTID", c.register()["status"], 0)
    op = n4.OPEN, c.next() + u32(n4.SHARE_BOTH) + u32(0) + u64(c.clientid) + opaque(c.uid) + u32(0) + u32(n4.CLAIM_PREVIOUS) + u32(0)
    results = c.compound(putfh(file), op, getattr_op(*STAT, FILEHANDLE))
    t.equal("OPEN is reclaimed", statuses(results), [0] * 3)
    stateid = results[1]["stateid"]
    if results[1]["rflags"] & 2:
        stateid = c.last(putfh(file), (n4.OPEN_CONFIRM, stateid + c.next()))["stateid"]
    locked = c.last(putfh(file), (n4.LOCK, u32(n4.WRITE_LT) + u32(1) + u64(0) + u64(10) + c.locker(stateid)))
    t.equal("LOCK is reclaimed", locked["status"], 0)
    end, begun = time.monotonic() + 6 * LEASE_TIME, c.sequence
    while (results := c.create(fh, f"new{begun}"))[0][-1]["status"] == n4.GRACE and time.monotonic() < end:
        time.sleep(0.2)
    t.equal("a creation, in the end", statuses(results[0]), [0] * 6)
    t.equal("CLOSE", c.last(putfh(file), (n4.CLOSE, c.next() + stateid))["status"], 0)


def inside():
    t = harness.Count()
    nlm.network_up()
    hosts = [messages.Host(nlm.ONE), messages.Host(nlm.TWO)]
    n4.RESULTS.update(base.DECODERS)
    settings = {"nfs4.lease_time": LEASE_TIME, "nfs4.grace_time": LEASE_TIME, "nlm.statd_port": nlm.MONITOR_PORT, "tcp.listen": ""}
    try:
        with harness.Daemon({"one": base.OPTIONS}, settings) as d:
            test_three(t, d)
            test_locks(t, d, nlm.Client(d, nlm.ONE, b"mac1.local"), nlm.Client(d, nlm.TWO, b"mac2.local"), hosts)
            for n, callback in enumerate(((0, b"", b"", 0), (0x40000000, b"tcp", b"127.0.0.1.3.9", 1))):
                c, fh, supported = mount(t, d, callback, n)
                test_four(t, c, fh, supported, d)
                c.close()
                os.unlink(base.path(d, "quatre"))
            c, fh, _ = mount(t, d, (0, b"", b"", 0), 2)
            test_restart(t, c, fh, d)
            c.close()
            harness.finish(t, d)
    finally:
        for h in hosts:
            h.close()
    harness.result(t)


if __name__ == "__main__":
    nlm.main(__file__, inside)
