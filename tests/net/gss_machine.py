#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""SP4_MACH_CRED (RFC 8881 section 18.35): the operations that are for the machine's principal, and those that it may send for users."""
import json
import os
import time

import control
import gss
import gssclient as g
import harness
import kdc
import nfs4client as n4
from rpcclient import opaque, u32, u64

MACHINE = "host/client.test"
BACKCHANNEL_CTL, COMMIT, DELEGPURGE, LAYOUTRETURN = 40, 5, 7, 51
# Linux's client asks for all of ASKED. Data are written and made durable as their user.
ENFORCED = {n4.BIND_CONN_TO_SESSION, n4.EXCHANGE_ID, n4.CREATE_SESSION, n4.DESTROY_SESSION, n4.DESTROY_CLIENTID}
ALLOWED = {n4.CLOSE, n4.DELEGRETURN, n4.LOCKU, n4.OPEN_DOWNGRADE, n4.SECINFO, n4.SECINFO_NO_NAME, n4.FREE_STATEID, n4.TEST_STATEID,
           LAYOUTRETURN}
PERM, INVAL, ACCESS, NOENT = 1, 22, 13, 2
CLID_INUSE, WRONGSEC, WRONG_CRED, NOT_BOUND, ENCR_ALG = 10017, 10016, 10082, 10055, 10079
UPDATE = 0x40000000
MACH_CRED = u32(1)
ASKED = n4.bitmap(*ENFORCED) + n4.bitmap(*ALLOWED, COMMIT, n4.WRITE, LAYOUTRETURN)


def ops(words):
    return {32 * i + bit for i, word in enumerate(words) for bit in range(32) if word >> bit & 1}


def exchange_id(c, protect=MACH_CRED + ASKED, verifier=b"verifier", flags=0):
    return c.bare((n4.EXCHANGE_ID, verifier + opaque(c.owner) + u32(flags) + protect + u32(0)))[0]


class Machine(gss.Client4):
    """A client whose state the machine's credential protects; as_user() is the credential of the calls in its sessions."""
    protect = MACH_CRED + ASKED

    def _exchange_id(self):
        self.granted = exchange_id(self, self.protect)
        if self.granted["status"]:
            return self.granted
        self.clientid = self.granted["clientid"]
        return self.create_session(self.granted["sequenceid"])

    def create_session(self, seqid):
        channel = b"".join(map(u32, (0, self.longest, self.longest, 4096, 16, 8, 0)))
        res = self.bare((n4.CREATE_SESSION, u64(self.clientid) + u32(seqid) + u32(0) + channel * 2 + u32(0x40000000) + u32(1) + u32(0)))[0]
        if not res["status"]:
            self.session, self.seqid = res["session"], 0
        return res

    def compound(self, *ops):
        """Asked again while the name service is asked for the caller."""
        for _ in range(300):
            results = super().compound(*ops)
            if results[-1]["status"] != n4.DELAY:
                break
            time.sleep(0.05)
        return results

    def use(self, session, service):
        self.conn.session, self.conn.service = self.gss = session, service


class Who:
    """Contexts of the machine and of two others."""

    def __init__(self, d, realm):
        with gss.connect(d) as c:
            self.machine, self.alice, self.other = (g.Session(c, realm.login(p), vers=4) for p in (MACHINE, gss.ALICE, "host/other.test"))


def new(d, who, owner, protect=Machine.protect):
    c = Machine(d.port, who.machine, g.INTEGRITY, owner)
    c.protect = protect
    return c


def test_agreement(t, d, who):
    c = new(d, who, "agreement")
    t.equal("CREATE_SESSION", c.register()["status"], n4.OK)
    t.equal("SP4_MACH_CRED", c.granted["protect"], 1)
    t.equal("spo_must_enforce", ops(c.granted["enforce"]), ENFORCED)
    t.equal("spo_must_allow", ops(c.granted["allow"]), ALLOWED)
    again = exchange_id(c, u32(0))
    t.equal("a retry that asks for nothing is told of the protection", (again["clientid"], again["protect"]), (c.clientid, 1))
    c.close()
    c = new(d, who, "more", MACH_CRED + n4.bitmap(BACKCHANNEL_CTL, DELEGPURGE, n4.READ) + u32(0))
    c.register()
    t.equal("more is enforced where it is asked for", ops(c.granted["enforce"]), ENFORCED | {BACKCHANNEL_CTL, DELEGPURGE})
    t.equal("and nothing allowed that was not", ops(c.granted["allow"]), set())
    ctl = (BACKCHANNEL_CTL, u32(0x40000000) + u32(1) + u32(0))
    c.use(who.alice, g.PRIVACY)
    t.equal("BACKCHANNEL_CTL by a user", c.last(ctl)["status"], NOENT)
    c.use(who.machine, g.PRIVACY)
    t.equal("BACKCHANNEL_CTL by the machine", c.last(ctl)["status"], n4.OK)
    c.close()
    for what, session, service in (("krb5 alone", who.machine, g.NONE), ("AUTH_SYS", None, g.NONE)):
        c = gss.Client4(d.port, session, service, "weak")
        t.equal(f"SP4_MACH_CRED by {what}", exchange_id(c)["status"], INVAL)
        c.close()
    c = new(d, who, "long")
    words = u32(70) + u32(0xffffffff) * 70
    t.equal("bitmaps of all operations, and more", ops(exchange_id(c, MACH_CRED + words * 2)["allow"]), ALLOWED)
    ssv = u32(2) + ASKED + (u32(1) + opaque(b"oid")) * 2 + u32(1) + u32(1)
    t.equal("SP4_SSV", exchange_id(c, ssv)["status"], ENCR_ALG)
    c.close()


def test_others(t, d, who):
    """Each operation that is protected, by each who may not."""
    c = new(d, who, "protected")
    c.register(), c.reclaim_complete()
    mine = c.granted
    for what, session, service in (("a user", who.alice, g.PRIVACY), ("another machine", who.other, g.INTEGRITY),
                                   ("the machine without integrity", who.machine, g.NONE), ("AUTH_SYS", None, g.NONE)):
        o = Machine(d.port, session, service, "protected")
        o.clientid = c.clientid
        inuse = WRONG_CRED if session is who.machine else CLID_INUSE
        t.equal(f"EXCHANGE_ID by {what}", exchange_id(o, u32(0))["status"], CLID_INUSE)
        t.equal(f"EXCHANGE_ID with another verifier by {what}", exchange_id(o, u32(0), b"another!")["status"], CLID_INUSE)
        t.equal(f"an update by {what}", exchange_id(o, u32(0), flags=UPDATE)["status"], PERM)
        t.equal(f"CREATE_SESSION by {what}", o.create_session(mine["sequenceid"] + 1)["status"], inuse)
        o.session = c.session
        t.equal(f"BIND_CONN_TO_SESSION by {what}", o.bind(1)["status"], n4.BADSESSION)
        t.equal(f"SEQUENCE over a connection of {what}", o.last((n4.PUTROOTFH, b""))["status"], NOT_BOUND)
        t.equal(f"DESTROY_CLIENTID by {what}", o.bare((n4.DESTROY_CLIENTID, u64(c.clientid)))[0]["status"], WRONG_CRED)
        o.close()
        c.use(session, service)
        t.equal(f"DESTROY_SESSION by {what}", c.bare((n4.DESTROY_SESSION, c.session))[0]["status"], WRONG_CRED)
        c.use(who.machine, g.INTEGRITY)
    t.equal("SEQUENCE by the machine", c.last((n4.PUTROOTFH, b""))["status"], n4.OK)
    t.equal("an update by the machine", exchange_id(c, flags=UPDATE)["clientid"], c.clientid)
    c.again()
    t.equal("SEQUENCE over a new connection", c.last((n4.PUTROOTFH, b""))["status"], NOT_BOUND)
    t.equal("BIND_CONN_TO_SESSION by the machine", c.bind(1)["status"], n4.OK)
    t.equal("SEQUENCE then", c.last((n4.PUTROOTFH, b""))["status"], n4.OK)
    t.equal("CREATE_SESSION by the machine", c.create_session(mine["sequenceid"] + 1)["status"], n4.OK)
    t.equal("DESTROY_SESSION by the machine", c.bare((n4.DESTROY_SESSION, c.session))[0]["status"], n4.OK)
    c.close()


def test_cases(t, d, who):
    """RFC 8881 section 18.35.4 by others, for a client id that is not confirmed yet, and one without state."""
    for what, session, service in (("a user", who.alice, g.PRIVACY), ("another machine", who.other, g.INTEGRITY), ("AUTH_SYS", None, g.NONE)):
        for kind, protect in (("SP4_MACH_CRED", Machine.protect), ("SP4_NONE", u32(0))):
            name = f"{kind} {what}"
            c, o = new(d, who, name, protect), Machine(d.port, session, service, name)
            first = exchange_id(c, protect)
            t.equal(f"an update before the id is confirmed, by {name}", exchange_id(o, u32(0), flags=UPDATE)["status"], NOENT)
            o.clientid = first["clientid"]
            t.equal(f"CREATE_SESSION of it, by {name}", o.create_session(first["sequenceid"])["status"], CLID_INUSE)
            got = exchange_id(o, u32(0))
            t.check(f"the name, by {name}, is another client", got["status"] == n4.OK and got["clientid"] != first["clientid"], got)
            t.equal(f"the first one's id is gone, {name}", c.create_session(first["sequenceid"])["status"], n4.STALE_CLIENTID)
            # Case 3: who has no state loses the name, unless its principal protects it.
            t.equal(f"the client registers again, {name}", (c.register()["status"], c.reclaim_complete()), (n4.OK, n4.OK))
            taken = exchange_id(o, u32(0))["status"]
            t.equal(f"the name of a client without state, by {name}", taken, CLID_INUSE if c.granted["protect"] else n4.OK)
            t.equal(f"the client then, {name}", c.last((n4.PUTROOTFH, b""))["status"], n4.OK if taken else n4.BADSESSION)
            o.close(), c.close()


def test_for_users(t, d, who):
    """State of a user of an export with sec=krb5p, who is gone, is given back by the machine with integrity only."""
    c = new(d, who, "for users")
    c.register(), c.reclaim_complete()
    c.use(who.alice, g.PRIVACY)
    root = c.path(d.exports["p"])
    opened, fh = c.open(root, "file", create=True, access=n4.SHARE_BOTH | n4.WANT_NO_DELEG)
    t.equal("the user writes", c.last(n4.putfh(fh), n4.write(opened["stateid"], 0, b"data", 0))["status"], n4.OK)
    lock = c.lock(fh, opened["stateid"])
    os.chmod(os.path.join(d.exports["p"], "file"), 0o600)
    c.use(who.machine, g.INTEGRITY)
    t.equal("TEST_STATEID", c.test_stateid(opened["stateid"]), [n4.OK])
    for what, args in (("READ", n4.read(opened["stateid"], 0, 4)), ("WRITE", n4.write(opened["stateid"], 0, b"evil")), ("GETATTR", n4.getattr_op())):
        t.equal(f"{what} by the machine", c.last(n4.putfh(fh), args)["status"], WRONGSEC)
    t.equal("COMMIT by the machine", c.last(n4.putfh(fh), (COMMIT, u64(0) + u32(0)))["status"], WRONGSEC)
    secinfo = (n4.SECINFO_NO_NAME, u32(0))
    t.equal("READ before SECINFO_NO_NAME", c.last(n4.putfh(fh), n4.read(opened["stateid"], 0, 4), secinfo)["status"], WRONGSEC)
    t.equal("READ before CLOSE", c.last(n4.putfh(fh), n4.getattr_op(), n4.read(opened["stateid"], 0, 4), (n4.CLOSE, u32(0) + opened["stateid"]))["status"], WRONGSEC)
    t.equal("WRITE behind OPEN_DOWNGRADE", [r["status"] for r in c.compound(n4.putfh(fh), (n4.OPEN_DOWNGRADE, opened["stateid"] + u32(0) + u32(3) + u32(0)),
                                                                        n4.write(n4.ANONYMOUS, 0, b"evil"))][-1], WRONGSEC)
    for what, session, service in (("another machine", who.other, g.INTEGRITY), ("the machine without integrity", who.machine, g.NONE)):
        c.use(session, service)
        t.equal(f"LOCKU by {what}", c.unlock(fh, lock["stateid"])["status"], WRONGSEC)
    c.use(who.machine, g.INTEGRITY)
    lock = c.unlock(fh, lock["stateid"])
    t.equal("LOCKU", lock["status"], n4.OK)
    t.equal("FREE_STATEID", c.free_stateid(lock["stateid"]), n4.OK)
    down = c.last(n4.putfh(fh), (n4.OPEN_DOWNGRADE, u32(0) + opened["stateid"][4:] + c._next() + u32(n4.SHARE_BOTH) + u32(0)))
    t.equal("OPEN_DOWNGRADE", down["status"], n4.OK)
    closed = c.compound(n4.putfh(fh), n4.getattr_op(), (n4.CLOSE, c._next() + down["stateid"]))
    t.equal("attributes and CLOSE", [r["status"] for r in closed], [n4.OK] * 3)
    t.equal("SECINFO_NO_NAME", c.last(n4.putfh(root), secinfo)["status"], n4.OK)
    c.close()


def test_not_allowed(t, d, who):
    """The same without spo_must_allow, and without protection."""
    for what, protect in (("nothing allowed", MACH_CRED + u32(0) * 2), ("SP4_NONE", u32(0))):
        c = new(d, who, what, protect)
        c.register(), c.reclaim_complete()
        c.use(who.alice, g.PRIVACY)
        opened, fh = c.open(c.path(d.exports["p"]), "other", create=True, access=n4.SHARE_BOTH | n4.WANT_NO_DELEG)
        c.use(who.machine, g.INTEGRITY)
        t.equal(f"CLOSE by the machine, {what}", c.close_file(fh, opened["stateid"])["status"], WRONGSEC)
        c.close()


def test_restart(t, d, realm, who):
    """Only the principal reclaims after a restart, from the same address."""
    c = new(d, who, "reclaims")
    c.register(), c.reclaim_complete()
    c.use(who.alice, g.PRIVACY)
    opened, fh = c.open(c.path(d.exports["p"]), "kept", create=True, access=n4.SHARE_BOTH | n4.WANT_NO_DELEG)
    t.equal("OPEN", opened["status"], n4.OK)
    with control.connect(realm.path("control")) as s:
        shown = json.loads(control.ask(s, path="/v1/clients")[2])["clients"]
    t.equal("the protection in the list of clients", [x.get("state_protection") for x in shown if x["name"] == "reclaims"], ["machine"])
    old, session_id, seqid = c.clientid, c.session, c.granted["sequenceid"]
    c.close()
    d.stop()
    d.start()
    now = Who(d, realm)
    for what, session in (("another machine", now.other), ("a user", now.alice)):
        o = Machine(d.port, session, g.INTEGRITY, "reclaims")
        t.check(f"EXCHANGE_ID by {what} in the grace period", exchange_id(o)["status"] != n4.OK)
        t.check(f"without protection by {what}", exchange_id(o, u32(0))["status"] != n4.OK)
        t.equal(f"an update by {what}", exchange_id(o, u32(0), flags=UPDATE)["status"], NOENT)
        o.clientid = old
        t.equal(f"CREATE_SESSION of the old id by {what}", o.create_session(seqid + 1)["status"], n4.STALE_CLIENTID)
        t.equal(f"DESTROY_CLIENTID of it by {what}", o.bare((n4.DESTROY_CLIENTID, u64(old)))[0]["status"], n4.STALE_CLIENTID)
        t.equal(f"DESTROY_SESSION by {what}", o.bare((n4.DESTROY_SESSION, session_id))[0]["status"], n4.BADSESSION)
        o.close()
    c = new(d, now, "reclaims")
    t.equal("by the machine", c.register()["status"], n4.OK)
    c.use(now.alice, g.PRIVACY)
    t.equal("reclaims", c.reclaim_open(fh)["status"], n4.OK)
    c.close()


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        with harness.Daemon({"all": "sec=krb5:krb5i:krb5p:sys,rw,insecure", "p": "sec=krb5p,rw,insecure"}, gss.settings(realm), env={**os.environ}) as d:
            who = Who(d, realm)
            test_agreement(t, d, who)
            test_others(t, d, who)
            test_cases(t, d, who)
            test_for_users(t, d, who)
            test_not_allowed(t, d, who)
            test_restart(t, d, realm, who)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
