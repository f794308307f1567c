#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Hosts that no export admits, and one that is admitted no more: what each procedure and operation answers them."""
import os
import time

import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon

STRANGER = "127.0.9.9"
VICTIM = "127.0.0.1"
LEASE = 5
BADCRED, TOO_WEAK = 1, 5
NLM, NSM = 100021, 100024
MNT3ERR_ACCES = 13
ADMIN_REVOKED, STALE = 10047, 70
NOBODY = u"\u00e9".encode() + b"\n\x1b[31m"  # bytes that have no place in a log
BACKCHANNEL_CTL, SET_SSV, TEST_STATEID, FREE_STATEID, BIND_CONN_TO_SESSION = 40, 54, 55, 45, 41


def write_exports(d, who):
    with open(os.path.join(d.top, "exports"), "w") as f:
        f.writelines(f"{path} {who}(rw,insecure,no_root_squash)\n" for path in d.exports.values())


def refused(conn, prog, vers, proc, args=b""):
    """The auth_stat of a denied call; None: it was answered."""
    try:
        conn.call(prog, vers, proc, args)
    except r.Refused as e:
        return e.data[0] if e.why == "AUTH_ERROR" else e.why
    return None


def client(d, owner, host, minor=1, verifier=b"verifier"):
    c = n4.Client(d.port, owner, minor, verifier)
    c.conn.close()
    c.conn = d.connect(source=(host, 0))
    return c


def compound(minor, *ops):
    return r.opaque(b"") + r.u32(minor) + r.u32(len(ops)) + b"".join(r.u32(op) + args for op, args in ops)


def test_procedures(t, d, host, answered, what):
    """Every procedure of every program: NULL and those of `answered` run, the others are denied."""
    versions = [(r.NFS, 3, 22), (r.NFS, 4, 2), (r.MOUNT, 1, 7), (r.MOUNT, 2, 8), (r.MOUNT, 3, 6), (NLM, 1, 16), (NLM, 3, 24), (NLM, 4, 24),
                (NSM, 1, 7)]
    with d.connect(source=(host, 0)) as c:
        for prog, vers, procs in versions:
            for proc in range(procs):
                got = refused(c, prog, vers, proc, r.name("/nowhere") if prog == r.MOUNT and proc else b"")
                if got == "PROC_UNAVAIL":
                    continue
                # The monitor's first five are for root of the server's machine, whoever is admitted.
                usual = TOO_WEAK if prog == NSM and proc < 6 else BADCRED
                want = None if proc == 0 else answered.get((prog, vers, proc), usual)
                t.equal(f"{what}: program {prog} version {vers} procedure {proc}", got, want)


def test_mnt(t, d, host, what):
    """The same answer for a path that is exported, one that is there, and one that is not."""
    with d.connect(source=(host, 0)) as c:
        for path in (d.exports["x"], d.exports["x"] + "/sub", d.top, "/no/such/path", "relative", ""):
            t.equal(f"{what}: MNT of {path!r}", c.mnt(path)[0], MNT3ERR_ACCES)


def state_of_victim(d, owner):
    v = client(d, owner, VICTIM)
    v.register(), v.reclaim_complete()
    root = v.path(d.exports["x"])
    opened, fh = v.open(root, "held", create=True)
    return v, opened["stateid"], fh


def test_steal(t, d):
    """A stranger with the victim's owner string, session and client id, as root."""
    v, sid, fh = state_of_victim(d, "victim")
    ops = [(n4.EXCHANGE_ID, b"another!" + r.opaque(v.owner) + r.u32(0) * 3), (n4.DESTROY_SESSION, v.session),
           (n4.DESTROY_CLIENTID, r.u64(v.clientid)), (n4.SEQUENCE, v.session + r.u32(v.seqid + 1) + r.u32(0) * 2 + r.u32(1)),
           (BIND_CONN_TO_SESSION, v.session + r.u32(3) + r.u32(0)), (n4.PUTROOTFH, b"")]
    with d.connect(source=(STRANGER, 0)) as c:
        for op, args in ops:
            t.equal(f"a stranger's operation {op}", refused(c, r.NFS, 4, 1, compound(1, (op, args))), BADCRED)
        t.equal("a replay of the victim's slot",
                refused(c, r.NFS, 4, 1, compound(1, (n4.SEQUENCE, v.session + r.u32(v.seqid) + r.u32(0) * 2 + r.u32(1)))), BADCRED)
        t.equal("SETCLIENTID", refused(c, r.NFS, 4, 1, compound(0, (n4.SETCLIENTID, bytes(60)))), BADCRED)
        t.equal("a minor version that is none", refused(c, r.NFS, 4, 1, compound(9)), BADCRED)
    t.equal("the victim reads what it has open", v.last(n4.putfh(fh), n4.read(sid, 0, 1))["status"], n4.OK)
    v.close()


def test_log(t, d):
    before = d.read_log()
    with d.connect(source=(STRANGER, 0)) as c:
        for i in range(200):
            c.call(r.MOUNT, 3, 1, r.opaque(b"/x" + NOBODY + str(i).encode()))
    said = d.read_log()[len(before):]
    lines = [line for line in (before + said).splitlines() if "MNT of" in line]
    t.check("a refusal has client, path and reason", any(f"{STRANGER}: MNT of {d.exports['x']} refused: no export" in line for line in lines),
            lines[:2])
    t.check("what a stranger logs is bounded", len(said.splitlines()) < 30, len(said.splitlines()))
    t.check("and cannot begin a line of its own", "\x1b" not in said and all("notice" in line for line in said.splitlines()), said[-300:])


def test_former(t, d):
    """The export's line is taken away under a client."""
    v, sid, fh = state_of_victim(d, "former")
    with d.connect(source=(VICTIM, 0)) as c:
        t.equal("MNT while admitted", c.mnt(d.exports["x"])[0], 0)
        write_exports(d, "192.0.2.1")
        d.reload()
        lost = time.monotonic()
        t.equal("NFSv3 on its connection", refused(c, r.NFS, 3, r.GETATTR, r.opaque(fh)), BADCRED)
    test_mnt(t, d, VICTIM, "formerly admitted")
    test_procedures(t, d, VICTIM, {**{(r.MOUNT, v, p): None for v in (1, 2, 3) for p in (1, 3, 4)},
                                   **{(NLM, v, p): "GARBAGE_ARGS" for v in (1, 3, 4) for p in (3, 4, 8, 9, 15, 21, 23)},
                                   **{k: "GARBAGE_ARGS" for k in ((r.NFS, 4, 1), (NSM, 1, 6))}},
                    "formerly admitted")
    with d.connect(source=(VICTIM, 0)) as c:
        for op, args in ((n4.EXCHANGE_ID, b"another!" + r.opaque(v.owner) + r.u32(0) * 3), (n4.PUTROOTFH, b""),
                         (n4.CREATE_SESSION, bytes(100))):
            t.equal(f"a new client's operation {op}", refused(c, r.NFS, 4, 1, compound(1, (op, args))), BADCRED)
        for op in ((n4.SETCLIENTID, v.verifier + r.opaque(v.owner) + r.u32(0x40000000) + r.opaque(b"tcp") + r.opaque(b"1") + r.u32(0)),):
            t.equal("SETCLIENTID", refused(c, r.NFS, 4, 1, compound(0, op)), BADCRED)
            x = c.call(r.NFS, 4, 1, compound(0, (n4.RENEW, r.u64(1)), op))
            t.check("SETCLIENTID behind another operation", x.u32() != n4.OK)
    t.check("SEQUENCE and PUTFH: the handle is stale", v.last(n4.putfh(fh))["status"] == STALE)
    t.equal("what creates state in a session", v.last((SET_SSV, r.opaque(b"") * 2))["status"] != n4.OK, True)
    n4.RESULTS[TEST_STATEID] = lambda x, res: res.update(statuses=[x.u32() for _ in range(x.u32())])
    t.equal("TEST_STATEID", v.last((TEST_STATEID, r.u32(1) + sid)).get("statuses"), [ADMIN_REVOKED])
    t.equal("FREE_STATEID", v.last((FREE_STATEID, sid))["status"], n4.OK)
    t.equal("DESTROY_SESSION", v.bare((n4.DESTROY_SESSION, v.session))[0]["status"], n4.OK)
    t.equal("DESTROY_CLIENTID", v.bare((n4.DESTROY_CLIENTID, r.u64(v.clientid)))[0]["status"], n4.OK)
    time.sleep(max(0.0, lost + LEASE + 3 - time.monotonic()))
    t.equal("a lease later it is a stranger", refused(v.conn, r.NFS, 4, 1, compound(1, (n4.SEQUENCE, v.session + bytes(16)))), BADCRED)
    write_exports(d, "127.0.0.0/24")
    d.reload()
    t.equal("admitted again", v.register()["status"], n4.OK)
    v.close()


def main():
    t = Count()
    with Daemon({"x": "rw,insecure", "y": "ro,insecure"}, {"nfs4.lease_time": LEASE, "nfs4.grace_time": LEASE, "nfs2.enabled": "yes"}) as d:
        os.mkdir(os.path.join(d.exports["x"], "sub"))
        write_exports(d, "127.0.0.0/24")
        d.reload()
        test_mnt(t, d, STRANGER, "a stranger")
        test_log(t, d)
        test_procedures(t, d, STRANGER, {(r.MOUNT, v, 1): None for v in (1, 2, 3)}, "a stranger")
        test_steal(t, d)
        test_former(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
