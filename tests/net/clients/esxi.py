#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""VMware ESXi 6.5 to 8, as a datastore by NFSv3 and by NFSv4.1, two hosts. Sources: VMware's storage guide (NFSv3: lock files .lck-ID, no NLM;
4.1: share reservations; root, or Kerberos), nfs-ganesha issues 108 and 177, winnfsd issue 73 (handles of up to 56 bytes), govmomi issue 993 (a
lock file's name and its 84 bytes), Broadcom article 341164 (a server that changes its major id crashes the host), FreeBSD's commit 17a56f3fabdf
and nfs_nfsdstate.c (a wrong csa_sequence must get SEQ_MISORDERED; RECLAIM_COMPLETE of one file system comes behind that of all and more than
once). The content of lock files is made up."""
import signal
import struct
import time

import base
import nfs4client as n4
import rpcclient as r
from base import FILEID, MODE, SIZE, STAT, Three, getattr_op, statuses
from nfs4client import putfh
from rpcclient import opaque, u32, u64

ROOT = r.auth_sys(0, 0, machine="esxi")
ONE, TWO = "127.0.0.2", "127.0.0.3"
SHARE_DENIED, SEQ_MISORDERED, COMPLETE_ALREADY = 10015, 10063, 10054
LEASE_TIME, LOCK_SIZE = 30, 84
DISK, BLOCK = 1 << 30, 65536
DENY_BOTH, CLAIM_NULL = 3, u32(0)


class Datastore(Three):
    """NFSv3 of one host."""

    def __init__(self, t, d, address):
        super().__init__(t, d.connect(source=(address, 0)), ROOT)
        self.id, self.root = address.encode(), self.mount(d.exports["one"])
        for proc, args in ((r.FSINFO, r.fsinfo_args), (r.FSSTAT, r.fsstat_args), (r.PATHCONF, r.pathconf_args), (r.GETATTR, r.getattr_args)):
            self.call(proc, args(self.root))

    def lock(self, folder, file):
        """The lock file of a file is made by one host only; (its handle or None, its name)."""
        name = ".lck-%016x" % self.call(r.GETATTR, r.getattr_args(file))["attr"]["fileid"]
        res = self.conn.nfs(r.CREATE, r.create_args(folder, name, r.EXCLUSIVE, verf=self.id[-8:].rjust(8)), ROOT)
        if res["status"]:
            self.t.equal("CREATE of a lock file that is there", res["status"], r.EXIST)
            return None, name
        self.call(r.SETATTR, r.setattr_args(res["fh"], r.sattr(mode=0o644)))
        return res["fh"], name

    def beat(self, lock, n):
        data = (self.id + struct.pack(">Q", n)).ljust(LOCK_SIZE, b"\0")
        after = self.call(r.WRITE, r.write_args(lock, 0, data, r.FILE_SYNC))
        self.t.equal("a heartbeat is on disk", after["stable"], r.FILE_SYNC)


def test_three(t, d):
    one, two = Datastore(t, d, ONE), Datastore(t, d, TWO)
    vm = one.call(r.MKDIR, r.mkdir_args(one.root, "vm"))["fh"]
    disk = one.call(r.CREATE, r.create_args(vm, "vm-flat.vmdk", r.GUARDED, r.sattr(mode=0o600, size=DISK)))["fh"]
    t.check("handles of up to 56 bytes", max(map(len, (one.root, vm, disk))) <= 56, (one.root, vm, disk))
    t.equal("a thin disk", one.call(r.GETATTR, r.getattr_args(disk))["attr"]["used"] < DISK, True)
    lock, name = one.lock(vm, disk)
    t.equal("another host does not get the lock", two.lock(vm, disk)[0], None)
    found = two.lookup(vm, name)
    for n in range(3):
        one.beat(lock, n)
        got = two.call(r.READ, r.read_args(found, 0, 512))
        t.equal("the other host sees each heartbeat at once", (got["count"], got["eof"], got["data"][9:17]), (LOCK_SIZE, True, struct.pack(">Q", n)))
    for i in range(8):
        res = one.call(r.WRITE, r.write_args(disk, i * BLOCK * 16, bytes([i]) * BLOCK, r.FILE_SYNC))
        t.equal("a guest's write is on disk", (res["count"], res["stable"]), (BLOCK, r.FILE_SYNC))
    got = one.call(r.READ, r.read_args(disk, 7 * BLOCK * 16, BLOCK))
    t.check("read back", got["data"] == bytes([7]) * BLOCK, len(got["data"]))
    d.stop(signal.SIGKILL)
    d.start()
    one, two = Datastore(t, d, ONE), Datastore(t, d, TWO)
    one.beat(lock, 9)
    t.equal("handles and the lock outlive a restart", two.lock(vm, disk)[0], None)
    one.call(r.RENAME, r.rename_args(vm, "vm-flat.vmdk", vm, "vm_1-flat.vmdk"))
    one.call(r.REMOVE, r.remove_args(vm, name))
    t.check("the other host gets the lock then", two.lock(vm, disk)[0])
    names = {e["name"] for e in two.listing(vm, 4096, 8192)}
    t.equal("READDIRPLUS", names, {b".", b"..", b"vm_1-flat.vmdk", name.encode()})
    for n in ("vm_1-flat.vmdk", name):
        two.call(r.REMOVE, r.remove_args(vm, n))
    two.call(r.RMDIR, r.rmdir_args(two.root, "vm"))
    for c in (one, two):
        c.unmount(d.exports["one"])
        c.conn.close()


class Host(n4.Client):
    cred, back = ROOT, True

    def __init__(self, d, address):
        self.source = (address, 0)
        super().__init__(d.port, "ESXi " + address, 1)

    def _exchange(self):
        return self.bare((n4.EXCHANGE_ID, self.verifier + opaque(self.owner) + u32(0) + u32(0) + u32(0)))[0]

    def create_session(self, sequence):
        fore = struct.pack(">7I", 0, 1 << 20, 1 << 20, 8192, 16, 128, 0)
        back = struct.pack(">7I", 0, 4096, 4096, 1024, 4, 2, 0)
        return self.bare((n4.CREATE_SESSION, u64(self.clientid) + u32(sequence) + u32(2) + fore + back + u32(0x40000000) + u32(1) + u32(0)))[0]

    def register(self):
        res = self._exchange()
        self.server = [res[k] for k in ("minor_id", "major_id", "scope")]
        self.clientid = res["clientid"]
        made = self.create_session(res["sequenceid"])
        if made["status"] == 0:
            self.session, self.seqid = made["session"], 0
        return made

    def open_denying(self, fh, name, create=False):
        how = u32(1) + u32(1) + base.fattr({SIZE: u64(DISK), MODE: u32(0o600)}) if create else u32(0)
        op = n4.OPEN, u32(0) + u32(n4.SHARE_BOTH) + u32(DENY_BOTH) + u64(self.clientid) + opaque(b"world 1234") + how + CLAIM_NULL + r.name(name)
        return self.compound(putfh(fh), op, (n4.GETFH, b""), getattr_op(*STAT))


def mount(t, d, address):
    c = Host(d, address)
    t.equal("EXCHANGE_ID and CREATE_SESSION", c.register()["status"], 0)
    t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), 0)
    fh = c.path(d.exports["one"])
    for _ in range(2):
        t.equal("RECLAIM_COMPLETE of one file system", c.last(putfh(fh), (n4.RECLAIM_COMPLETE, u32(1)))["status"], 0)
    t.equal("of all, again", c.reclaim_complete(), COMPLETE_ALREADY)
    return c, fh


def test_sequence(t, d):
    c = Host(d, ONE)
    c.owner = b"ESXi that counts wrongly"
    res = c._exchange()
    c.clientid = res["clientid"]
    t.equal("CREATE_SESSION with another csa_sequence", c.create_session(res["sequenceid"] + 7)["status"], SEQ_MISORDERED)
    t.equal("with the right one, after it", c.create_session(res["sequenceid"])["status"], 0)
    c.close()


def paths(t, c, fh):
    """A second connection of the same session, from another port: session trunking. Both work, each with a slot."""
    other = r.Conn(c.port, source=c.source)
    args = opaque(b"") + u32(1) + u32(1) + u32(n4.BIND_CONN_TO_SESSION) + c.session + u32(3) + u32(0)
    t.equal("BIND_CONN_TO_SESSION of a second connection", other.call(r.NFS, 4, 1, args, ROOT).u32(), 0)
    seq = u32(n4.SEQUENCE) + c.session + u32(1) + u32(1) + u32(1) + u32(0)
    args = opaque(b"") + u32(1) + u32(3) + seq + u32(n4.PUTFH) + opaque(fh) + u32(n4.GETATTR) + n4.bitmap(FILEID)
    t.equal("it carries calls", other.call(r.NFS, 4, 1, args, ROOT).u32(), 0)
    t.equal("and the first one does", c.last(putfh(fh), getattr_op(*STAT))["status"], 0)
    other.close()


def test_four(t, d):
    one, fh = mount(t, d, ONE)
    two, fh2 = mount(t, d, TWO)
    paths(t, one, fh)
    results = one.open_denying(fh, "vm-flat.vmdk", create=True)
    t.equal("a disk is made and held", (statuses(results), results[-1]["attrs"][SIZE]), ([0] * 4, u64(DISK)))
    disk, stateid = results[2]["fh"], results[1]["stateid"]
    t.equal("another host cannot open it", two.open_denying(fh2, "vm-flat.vmdk")[-1]["status"], SHARE_DENIED)
    t.equal("WRITE", one.last(putfh(disk), n4.write(stateid, BLOCK, b"x" * BLOCK, 2))["count"], BLOCK)
    one.keeps = False  # a reply that is to be kept has room for less
    got = one.last(putfh(disk), n4.read(stateid, BLOCK, BLOCK))
    one.keeps = True
    t.check("READ", got["status"] == 0 and got["data"] == b"x" * BLOCK, (got["status"], len(got["data"])))
    server = one.server
    d.stop(signal.SIGKILL)
    d.start()
    for c in (one, two):
        c.again()
        t.equal("SEQUENCE after a restart", c.last(putfh(fh))["status"], n4.BADSESSION)
    t.equal("CREATE_SESSION with the old client id", one.create_session(2)["status"], n4.STALE_CLIENTID)
    for c in (one, two):
        t.equal("registers again", c.register()["status"], 0)
        t.equal("the server is the one that it was", c.server, server)
    two.reclaim_complete()
    t.equal("the other host has to wait", two.open_denying(fh2, "vm-flat.vmdk")[-1]["status"], n4.GRACE)
    op = n4.OPEN, u32(0) + u32(n4.SHARE_BOTH) + u32(DENY_BOTH) + u64(one.clientid) + opaque(b"world 1234") + u32(0) + u32(n4.CLAIM_PREVIOUS) + u32(0)
    res = one.last(putfh(disk), op)
    t.equal("the disk is reclaimed", res["status"], 0)
    one.reclaim_complete()
    t.equal("RECLAIM_COMPLETE of one file system", one.last(putfh(fh), (n4.RECLAIM_COMPLETE, u32(1)))["status"], 0)
    end = time.monotonic() + 6 * LEASE_TIME
    while (status := two.open_denying(fh2, "vm-flat.vmdk")[-1]["status"]) == n4.GRACE and time.monotonic() < end:
        time.sleep(0.1)
    t.equal("and is held", status, SHARE_DENIED)
    t.equal("CLOSE", one.last(putfh(disk), (n4.CLOSE, u32(0) + res["stateid"]))["status"], 0)
    results = two.open_denying(fh2, "vm-flat.vmdk")
    t.equal("the other host has it then", statuses(results), [0] * 4)
    two.last(putfh(disk), (n4.CLOSE, u32(0) + results[1]["stateid"]))
    t.equal("REMOVE", statuses(two.compound(putfh(fh2), (n4.REMOVE, r.name("vm-flat.vmdk")), getattr_op(*STAT))), [0] * 3)
    for c in (one, two):
        t.equal("DESTROY_SESSION", c.bare((n4.DESTROY_SESSION, c.session))[0]["status"], 0)
        t.equal("DESTROY_CLIENTID", c.bare((n4.DESTROY_CLIENTID, u64(c.clientid)))[0]["status"], 0)
        c.close()


if __name__ == "__main__":
    base.main(test_three, test_sequence, test_four, settings={"nfs4.lease_time": LEASE_TIME, "nfs4.grace_time": LEASE_TIME})
