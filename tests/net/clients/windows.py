#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Clients on Windows. Microsoft's Client for NFS (NFSv3 and 2), as reports tell of it: NetAppDocs/ontap issue 868 (an unprivileged port also for
MNT), sahlberg/libnfs issue 181 and nfsserve issues 18 and 24 (uid -2 without a mapping, names of mounts, options of mount.exe: UDP or TCP, 128 KiB
down to 1 KiB, names in the code page). It looks names up in other cases, holds open files by NLM_SHARE, and removes what it has renamed. The open
NFSv4.1 client: kofemann/ms-nfs41-client, daemon/nfs41_session.c, nfs41_ops.c and open.c: a persistent session is asked for, each open has an
owner of its own and denies, and OPEN, CLOSE and REMOVE carry the attributes of file and folder."""
import os
import struct

import base
import harness
import nfs4client as n4
import nlm_recovery as nlm
import nlm_shares as shares
import rpcclient as r
import udpclient
from base import CHANGE, FILEID, MODE, SIZE, STAT, TIME_CREATE, Three, getattr_op, statuses
from nfs4client import putfh
from rpcclient import opaque, u32, u64

NOBODY = r.auth_sys(0xfffffffe, 0xfffffffe, machine="WIN-2A3B4C")
MAPPED = r.auth_sys(1000, 1000, machine="WIN-2A3B4C")
NAMES = ["Übergröße.txt".encode("cp1252"), "ファイル.txt".encode("cp932"), "日本語 file.txt".encode(), b"con.aux", b"trailing. ", b"a" * 255]
FILES, SHARE_DENIED, PERSIST = 300, 10015, 1
READ, WRITE, BOTH = 1, 2, 3


def test_three(t, d, connect, cred, kind):
    """mount, dir, copy, ren, attrib, del, umount."""
    c = Three(t, connect(), cred)
    for vers in (1, 3):
        c.null(r.MOUNT, vers)
    if cred is NOBODY:
        t.check("MNT of version 1 gives a handle", c.mount(d.exports["one"], 1))
    fh = c.mount(d.exports["one"])
    for proc, args in ((r.FSINFO, r.fsinfo_args), (r.FSSTAT, r.fsstat_args), (r.GETATTR, r.getattr_args)):
        c.call(proc, args(fh))
    conf = c.call(r.PATHCONF, r.pathconf_args(fh))
    t.equal("case counts, and is kept", (conf["case_insensitive"], conf["case_preserving"]), (False, True))
    c.call(r.ACCESS, r.access_args(fh, 0x3f))
    top = c.call(r.MKDIR, r.mkdir_args(fh, f"New folder {kind}", r.sattr(mode=0o755)))["fh"]
    for name in ("Readme.TXT", "README.TXT", "readme.txt"):  # a search for a name of another case
        c.lookup(top, name, r.NOENT)
    for name in NAMES:
        file = c.call(r.CREATE, r.create_args(top, name, r.GUARDED, r.sattr(mode=0o755)))["fh"]
        t.equal("the name leads to the file", c.lookup(top, name), file)
    names = sorted(e["name"] for e in c.listing(top, 1024, 8192))
    t.equal("READDIRPLUS has each name as it was given", names, sorted([b".", b"..", *NAMES]))
    file = c.lookup(top, NAMES[0])
    for i, size in enumerate((1024, 4096, 8192, 32768)):
        c.call(r.WRITE, r.write_args(file, 0, bytes([i]) * size, (r.UNSTABLE, r.FILE_SYNC)[i % 2]))
        t.equal(f"READ of {size} bytes", c.call(r.READ, r.read_args(file, 0, size))["data"], bytes([i]) * size)
    c.call(r.COMMIT, r.commit_args(file))
    attr = c.call(r.GETATTR, r.getattr_args(file))["attr"]
    c.call(r.SETATTR, r.setattr_args(file, r.sattr(mtime=(1, 0)), guard=(attr["ctime"][0] + 1, 0)), r.NOT_SYNC)
    c.call(r.SETATTR, r.setattr_args(file, r.sattr(atime=(1000000000, 0), mtime=(11644473600 & 0xffffffff, 999999900)), guard=attr["ctime"]))
    c.call(r.SETATTR, r.setattr_args(file, r.sattr(mode=0o444)))  # attrib +r
    c.call(r.RENAME, r.rename_args(top, NAMES[0], top, b"renamed"))
    t.equal("a handle outlives the name", c.call(r.GETATTR, r.getattr_args(file))["attr"]["fileid"], attr["fileid"])
    c.call(r.RMDIR, r.rmdir_args(fh, f"New folder {kind}"), r.NOTEMPTY)
    for name in (b"renamed", *NAMES[1:]):
        c.call(r.REMOVE, r.remove_args(top, name))
    c.call(r.RMDIR, r.rmdir_args(fh, f"New folder {kind}"))
    c.unmount(d.exports["one"])
    c.conn.close()


def test_listing(t, d, connect):
    """Cookies stay good while the files of the first calls are removed: del of all files."""
    folder = base.path(d, "many")
    os.mkdir(folder, 0o777)
    os.chmod(folder, 0o777)
    for i in range(FILES):
        with open(f"{folder}/file {i}", "w", encoding="ascii"):
            pass
    c = Three(t, connect(), NOBODY)
    at = c.lookup(c.mount(d.exports["one"]), "many")
    cookie, verf, seen = 0, bytes(8), []
    while True:
        res = c.call(r.READDIRPLUS, r.readdirplus_args(at, cookie, verf, 512, 4096))
        for e in res["entries"]:
            if e["name"] not in (b".", b".."):
                seen.append(e["name"])
                c.call(r.REMOVE, r.remove_args(at, e["name"]))
        if res["status"] or res["eof"]:
            break
        cookie, verf = res["entries"][-1]["cookie"], res["verf"]
    t.equal("each file was listed once, though the directory changed", (len(seen), len(set(seen))), (FILES, FILES))
    t.equal("nothing is left", os.listdir(folder), [])
    c.conn.close()


def test_shares(t, d):
    """CreateFile with a share mode."""
    one, two = nlm.Client(d, nlm.ONE, b"WIN-ONE"), nlm.Client(d, nlm.TWO, b"WIN-TWO")
    fh = nlm.make_file(d, one, "book.xlsx")
    t.equal("opened, others may read", shares.share(one, fh, WRITE, BOTH, b"\1\0\0\0\0\0\0\0"), nlm.GRANTED)
    t.equal("the same again", shares.share(one, fh, WRITE, BOTH, b"\1\0\0\0\0\0\0\0"), nlm.GRANTED)
    t.equal("another reads", shares.share(two, fh, 0, READ, b"\2\0\0\0\0\0\0\0"), nlm.GRANTED)
    t.equal("and may not write", shares.share(two, fh, 0, WRITE, b"\3\0\0\0\0\0\0\0"), nlm.DENIED)
    t.equal("LOCK", one.lock(fh, 0x7fffffff00000000, 1), nlm.GRANTED)
    t.equal("of another", two.lock(fh, 0x7fffffff00000000, 1), nlm.DENIED)
    t.equal("UNLOCK", one.unlock(fh, 0x7fffffff00000000, 1), nlm.GRANTED)
    t.equal("closed", shares.unshare(one, fh, b"\1\0\0\0\0\0\0\0"), nlm.GRANTED)
    t.equal("and may write then", shares.share(two, fh, 0, WRITE, b"\3\0\0\0\0\0\0\0"), nlm.GRANTED)
    shares.unshare(two, fh, b"\2\0\0\0\0\0\0\0")
    shares.unshare(two, fh, b"\3\0\0\0\0\0\0\0")


class Cygwin(n4.Client):
    cred, back = MAPPED, True
    opens = 0

    def _exchange_id(self):
        res = self.bare((n4.EXCHANGE_ID, self.verifier + opaque(self.owner) + u32(0x20000) + u32(0) + u32(0)))[0]
        self.clientid = res["clientid"]
        channel = struct.pack(">7I", 0, 1 << 20, 1 << 20, 8192, 32, 32, 0)
        res = self.bare((n4.CREATE_SESSION, u64(self.clientid) + u32(res["sequenceid"]) + u32(PERSIST | 2) + channel + channel +
                         u32(0x2358) + u32(1) + u32(0)))[0]
        if res["status"] == 0:
            self.session, self.seqid, self.made = res["session"], 0, res
        return res

    def create_file(self, fh, name, access, deny, how=None):
        """OPEN by an owner of its own, and the attributes of file and folder."""
        self.opens += 1
        owner = u64(self.clientid) + opaque(b"%d" % self.opens * 4)
        op = n4.OPEN, u32(0) + u32(access) + u32(deny) + owner + (u32(1) + how if how else u32(0)) + u32(0) + r.name(name)
        return self.compound(putfh(fh), (n4.SAVEFH, b""), op, (n4.GETFH, b""), getattr_op(*STAT), (base.RESTOREFH, b""), getattr_op(*STAT))


def test_four(t, d):
    c, other = Cygwin(d.port, "NFS41 client for Windows"), Cygwin(d.port, "another")
    for each in (c, other):
        t.equal("registers", (each.register()["status"], each.reclaim_complete()), (0, 0))
        t.equal("the session is not persistent", each.made["flags"] & PERSIST, 0)
    names = d.exports["one"].strip("/").split("/")
    walk = [op for n in names for op in (n4.lookup(n), (n4.GETFH, b""), getattr_op(CHANGE, FILEID, MODE))]
    results = c.compound((n4.PUTROOTFH, b""), (n4.GETFH, b""), *walk)
    t.equal("a path with the attributes of each component", statuses(results), [0] * (2 + len(walk)))
    fh = [x for x in results if x["op"] == n4.GETFH][-1]["fh"]
    t.equal("SECINFO_NO_NAME", c.last(putfh(fh), (n4.SECINFO_NO_NAME, u32(0)))["status"], 0)
    results = c.create_file(fh, "four", BOTH, WRITE, u32(3) + b"\1\2\3\4\5\6\7\x08" + base.fattr({MODE: u32(0o644)}))
    t.equal("a file is made and opened", statuses(results), [0] * 7)
    file, stateid = results[3]["fh"], results[2]["stateid"]
    t.equal("opened again by another owner, to write", c.create_file(fh, "four", BOTH, 0)[-1]["status"], SHARE_DENIED)
    second = c.create_file(fh, "four", READ, 0)
    t.equal("and to read", statuses(second), [0] * 7)
    t.equal("another host writes", other.create_file(fh, "four", WRITE, 0)[-1]["status"], SHARE_DENIED)
    written = c.compound(putfh(file), n4.write(stateid, 0, b"data", 0), getattr_op(SIZE, CHANGE))
    t.equal("WRITE", statuses(written), [0] * 3)
    born = base.fattr({SIZE: u64(100), TIME_CREATE: u64(1000000000) + u32(0)})
    t.equal("SETATTR with a time of creation", c.last(putfh(file), (n4.SETATTR, stateid + born))["status"], 0)
    for s in (stateid, second[2]["stateid"]):
        t.equal("CLOSE with the attributes", statuses(c.compound(putfh(file), (n4.CLOSE, u32(0) + s), getattr_op(*STAT))), [0] * 3)
    for opened in (results[2], second[2]):
        t.equal("DELEGRETURN", c.delegreturn(file, opened["deleg"]) if "deleg" in opened else 0, 0)
    rename = (putfh(fh), getattr_op(CHANGE), (n4.SAVEFH, b""), putfh(fh), (n4.RENAME, r.name("four") + r.name("FOUR")), getattr_op(CHANGE),
              (base.RESTOREFH, b""), getattr_op(CHANGE))
    t.equal("RENAME in case only", statuses(c.compound(*rename)), [0] * 8)
    t.equal("REMOVE", statuses(c.compound(putfh(fh), (n4.REMOVE, r.name("FOUR")), getattr_op(CHANGE))), [0] * 3)
    for each in (c, other):
        t.equal("DESTROY_SESSION", each.bare((n4.DESTROY_SESSION, each.session))[0]["status"], 0)
        t.equal("DESTROY_CLIENTID", each.bare((n4.DESTROY_CLIENTID, u64(each.clientid)))[0]["status"], 0)
        each.close()


def inside():
    t = harness.Count()
    nlm.network_up()
    hosts = [nlm.FakeHost(nlm.ONE), nlm.FakeHost(nlm.TWO)]
    n4.RESULTS.update(base.DECODERS)
    try:
        with harness.Daemon({"one": base.OPTIONS}, {"nlm.statd_port": nlm.MONITOR_PORT, "tcp.listen": "", "udp.nfs": "yes", "nfs2.enabled": "yes"}) as d:
            def tcp():
                return d.connect(source=(nlm.ONE, 0))

            def udp():
                return udpclient.Datagrams(d.port, nlm.SERVER, (nlm.ONE, 0))

            for kind, connect in (("TCP", tcp), ("UDP", udp)):
                for cred in (NOBODY, MAPPED):
                    test_three(t, d, connect, cred, kind)
            test_listing(t, d, tcp)
            test_shares(t, d)
            test_four(t, d)
            harness.finish(t, d)
    finally:
        for h in hosts:
            h.close()
    harness.result(t)


if __name__ == "__main__":
    nlm.main(__file__, inside)
