#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""COMPOUNDs of NFSv4.1 and 4.2 with the operations, flags and attributes that the client of Linux 7.2 sends, as wholes, in the order in
which it puts them (doc/design/newest.md)."""
import struct

import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from nfs4client import ALLOCATE, CREATE, GETATTR, GETFH, LINK, OPEN, PUTROOTFH, SAVEFH, SECINFO_NO_NAME, SETATTR, SETXATTR, putfh
from rpcclient import opaque, u32, u64

ACCESS, COMMIT, COPY, RESTOREFH, DEALLOCATE, CLONE, REMOVEXATTR, NOTSUPP = 3, 5, 60, 31, 62, 71, 75, 10004
SUPP_MOVED_REFER, BIND_PRINC_STATEID, PERSIST, CONN_BACK_CHAN = 0x1, 0x100, 1, 2
# bitmap4s: of LOOKUP, of a GETATTR that looks again, behind a change, of ACCESS; what a file system has.
ALL_OF = (0x0010011a, 0x00b4a23a)
AGAIN = (0x0010010a, 0x00b0a03a)
CHANGED = (0x00000018, 0x0034a03a)
FS = ((0x00000400,), (0x0000011a,), (0x00032065, 0, 0x00400800), (0x30000000,), (0x00e00000, 0x00001c00), (0xc8000400, 0x00080000, 0x0004a000))

n4.RESULTS.update({
    GETATTR: lambda x, res: res.update(mask=n4._bitmap(x), attrs=x.opaque()),
    ACCESS: lambda x, res: res.update(supported=x.u32(), access=x.u32()),
    COMMIT: lambda x, res: res.update(verf=x.take(8)),
    COPY: lambda x, res: res.update(ids=[x.take(16) for _ in range(x.u32())], count=x.u64(), committed=x.u32(), verf=x.take(8), rest=x.take(8)),
    REMOVEXATTR: lambda x, res: res.update(cinfo=x.take(20)),
})


class Linux(n4.Client):
    back = True

    def _exchange_id(self):
        ask = self.verifier + opaque(self.owner) + u32(SUPP_MOVED_REFER | BIND_PRINC_STATEID) + u32(0)
        impl = u32(1) + opaque(b"kernel.org") + opaque(b"Linux 7.2.13") + u64(0) + u32(0)
        res = self.bare((n4.EXCHANGE_ID, ask + impl))[0]
        if res["status"] != n4.OK:
            return res
        self.clientid = res["clientid"]
        fore = struct.pack(">6I", 0, 1 << 20, 1 << 20, 8192, 8, 64) + u32(0)
        back = struct.pack(">6I", 0, 4096, 4096, 0, 2, 16) + u32(0)
        res = self.bare((n4.CREATE_SESSION, u64(self.clientid) + u32(res["sequenceid"]) + u32(PERSIST | CONN_BACK_CHAN) + fore + back +
                         u32(0x40000000) + u32(1) + u32(0)))[0]
        if res["status"] == n4.OK:
            self.session, self.seqid, self.agreed = res["session"], 0, res
        return res


def getattr_of(words):
    return GETATTR, u32(len(words)) + b"".join(map(u32, words))


def check(t, what, results, n):
    """All of the n operations have succeeded."""
    t.equal(what, [(x["op"], x["status"]) for x in results if x["status"] != n4.OK] or len(results), n)
    return results


def test_mount(t, d, c):
    root = check(t, "root", c.compound((PUTROOTFH, b""), (GETFH, b""), getattr_of(ALL_OF)), 3)[1]["fh"]
    check(t, "flavours of the root", c.compound((PUTROOTFH, b""), (SECINFO_NO_NAME, u32(0))), 2)
    for words in FS:
        got = check(t, f"GETATTR {words}", c.compound(putfh(root), getattr_of(words)), 2)[-1]
        t.check("no attribute that was not asked for", all(not got["mask"][i] & ~words[i] for i in range(len(got["mask"]))), got)
    fh = root
    for name in d.exports["one"].strip("/").split("/"):
        fh = check(t, f"LOOKUP {name}", c.compound(putfh(fh), n4.lookup(name), (GETFH, b""), getattr_of(ALL_OF)), 4)[2]["fh"]
    return fh


def test_files(t, c, top):
    again, access = getattr_of(AGAIN), (ACCESS, u32(0x3f if c.minor < 2 else 0x1ff))
    mode = u32(2) + u32(0) + u32(2) + opaque(u32(0o755))
    made = check(t, "CREATE", c.compound(putfh(top), (CREATE, u32(2) + r.name(f"dir{c.minor}") + mode), (GETFH, b""), getattr_of(ALL_OF)), 4)
    top = made[2]["fh"]
    check(t, "ACCESS", c.compound(putfh(top), access, again), 3)
    got = check(t, "GET_DIR_DELEGATION", c.compound(putfh(top), (n4.GET_DIR_DELEGATION, u32(0) + u32(1) + u32(0) + bytes(24) + (u32(1) + u32(0)) * 2), again), 3)
    t.check("granted or not, without an error", got[1].get("gdd") in (0, 1), got)

    exclusive = u32(1) + u32(3) + b"exclusiv" + u32(2) + u32(0) + u32(2) + opaque(u32(0o644))  # EXCLUSIVE4_1 with a mode
    opened = check(t, "OPEN that creates", c.compound(
        putfh(top), (OPEN, c._open_owner(n4.SHARE_BOTH | 0x200000 * (c.minor == 2), 0) + exclusive + u32(n4.CLAIM_NULL) + r.name("file")),
        (GETFH, b""), access, getattr_of(ALL_OF)), 5)
    fh = opened[2]["fh"]
    instead = opened[1]["rflags"] & 0x10  # OPEN4_RESULT_NO_OPEN_STATEID
    t.equal("a delegation in the place of an open, in 4.2", bool(instead), c.minor == 2)
    plain = check(t, "OPEN by handle", c.compound(
        putfh(fh), (OPEN, c._open_owner(n4.SHARE_BOTH | n4.WANT_NO_DELEG, 0) + u32(0) + u32(n4.CLAIM_FH)), access, again), 4)
    stateid = opened[1]["deleg"] if instead else plain[1]["stateid"]
    check(t, "SETATTR", c.compound(putfh(fh), (SETATTR, bytes(16) + u32(2) + u32(0) + u32(2) + opaque(u32(0o600))), getattr_of(ALL_OF)), 3)
    check(t, "WRITE", c.compound(putfh(fh), n4.write(stateid, 0, b"data"), getattr_of(CHANGED)), 3)
    check(t, "LINK", c.compound(putfh(fh), (SAVEFH, b""), putfh(top), (LINK, r.name("link")), (RESTOREFH, b""), getattr_of(ALL_OF)), 6)
    if c.minor == 2:
        test_ranges(t, c, top, fh, stateid)
    check(t, "CLOSE behind GETATTR", c.compound(putfh(fh), getattr_of(CHANGED), (n4.CLOSE, u32(0) + plain[1]["stateid"])), 3)
    if instead:
        check(t, "DELEGRETURN behind GETATTR", c.compound(putfh(fh), getattr_of(CHANGED), (n4.DELEGRETURN, stateid)), 3)


def test_ranges(t, c, top, fh, stateid):
    changed, where = getattr_of(CHANGED), stateid + u64(0) + u64(8192)
    check(t, "ALLOCATE", c.compound(putfh(fh), (ALLOCATE, where), changed), 3)
    check(t, "DEALLOCATE", c.compound(putfh(fh), (DEALLOCATE, where), changed), 3)
    check(t, "both: zeros", c.compound(putfh(fh), (DEALLOCATE, where), (ALLOCATE, where), changed), 4)
    to = c.open(top, "copy", create=True)
    ranges = stateid + to[0]["stateid"] + u64(0) + u64(0) + u64(8192)
    check(t, "COPY and COMMIT", c.compound(
        putfh(fh), (SAVEFH, b""), putfh(to[1]), (COPY, ranges + u32(1) + u32(1) + u32(0)), (COMMIT, u64(0) + u32(0))), 5)
    got = c.compound(putfh(fh), (SAVEFH, b""), putfh(to[1]), (CLONE, ranges), changed)
    t.check("CLONE, or there is none here", got[3]["status"] in (n4.OK, NOTSUPP), got)
    c.close_file(to[1], to[0]["stateid"])
    check(t, "SETXATTR", c.compound(putfh(fh), (SETXATTR, u32(0) + opaque(b"name") + opaque(b"value")), changed), 3)
    check(t, "REMOVEXATTR", c.compound(putfh(fh), (REMOVEXATTR, opaque(b"name")), changed), 3)


def main():
    t = Count()
    with Daemon({"one": "rw,insecure,no_root_squash,nfs_only"}, {"nfs4.lease_time": 5, "nfs4.grace_time": 5}) as d:
        for minor in (1, 2):
            c = Linux(d.port, f"linux{minor}", minor)
            t.equal("client and session", c.register()["status"], n4.OK)
            t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n4.OK)
            c.await_callback()  # the probe of its path
            test_files(t, c, test_mount(t, d, c))
            c.close()
        t.equal("it stops", d.stop()[0], 0)
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    return 1 if t.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
