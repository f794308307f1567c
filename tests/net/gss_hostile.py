#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""RPCSEC_GSS against callers that misbehave (doc/design/gss.md has the table of attacks)."""
import os
import socket
import struct
import time

import gss
import gssclient as g
import harness
import kdc
import rpcclient as r
import scrape

BADCRED, REJECTEDCRED, BADVERF = 1, 2, 3
SEQ_MAX = 0x80000000
SERVICES = gss.SERVICES
CONTEXTS = 64  # the least that gss.max_contexts may be


def answered(conn, message, seconds=0.4):
    """The reply, or None if there is none in that time: the call was discarded."""
    conn.send(message)
    conn.s.settimeout(seconds)
    try:
        return conn.recv()
    except socket.timeout:
        return None
    finally:
        conn.s.settimeout(60)


def verdict(conn, message, xid):
    """How a call ended, in words: ok, discarded, closed, or the refusal."""
    try:
        data = answered(conn, message)
    except r.Closed:
        return ("closed",)
    if data is None:
        return ("discarded",)
    try:
        r.reply_body(data, xid)
    except r.Refused as e:
        return (e.why, *e.data)
    return ("ok",)


class Attack:
    proc = r.GETATTR

    def __init__(self, t, d, session, service, args):
        self.t, self.d, self.session, self.service, self.args = t, d, session, service, args

    def say(self, what, want, conn=None, **kw):
        """Sends one call, bent as kw says, and compares how it ended."""
        xid = r.next_xid()
        message = self.session.call(r.NFS, 3, self.proc, self.args, self.service, xid, **kw)
        if conn:
            got = verdict(conn, message, xid)
        else:
            with gss.connect(self.d) as c:
                got = verdict(c, message, xid)
        self.t.check(f"service {self.service}: {what}", got in want if isinstance(want, list) else got == want, f"{got}, not {want}")
        return message


def bending(field, change):
    return lambda name, value: change(value) if name == field else value


def test_fields(t, d, session, args):
    """Each field of the credential, the verifier and the body, wrong or cut."""
    bad, problem = ("AUTH_ERROR", BADCRED), ("AUTH_ERROR", g.CREDPROBLEM)
    for service in SERVICES.values():
        a = Attack(t, d, session, service, args)
        a.say("as it should be", ("ok",))
        for version in (0, 2, 3, 0xffffffff):
            a.say(f"version {version}", bad, bend=bending("cred", lambda v, n=version: r.u32(n) + v[4:]))
        a.say("procedure 4", bad, gss_proc=4)
        a.say("a control procedure in a call that is not NULL", bad, gss_proc=g.DESTROY)
        for n in (0, 4, 0xffffffff):
            a.say(f"service {n}", bad, bend=bending("cred", lambda v, n=n: v[:12] + r.u32(n) + v[16:]))
        a.say("a handle that nobody has", problem, bend=bending("cred", lambda v: v[:-4] + b"none"))
        a.say("a handle of no length", problem, bend=bending("cred", lambda v: v[:16] + r.u32(0)))
        a.say("bytes behind the handle", bad, bend=bending("cred", lambda v: v + b"more"))
        a.say("another MIC", problem, bend=bending("mic", lambda v: v[:-1] + bytes([v[-1] ^ 1])))
        for n in range(1, 28):
            a.say(f"a MIC of {n} bytes", problem, bend=bending("mic", lambda v, n=n: v[:n]))
        for n in range(100, 400, 50):
            a.say(f"a MIC with {n} bytes behind it", problem, bend=bending("mic", lambda v, n=n: (v + bytes(n))[:400]))
        a.say("an empty MIC", problem, bend=bending("mic", lambda v: b""))
        a.say("an AUTH_NONE verifier", ("AUTH_ERROR", BADVERF), bend=bending("verf", lambda v: bytes(8)))
        cred = g.credential(g.DATA, 1, service, session.handle)
        for n in range(len(cred)):
            a.say(f"a credential of {n} bytes", bad, bend=bending("cred", lambda v, n=n: v[:n]))


def test_bodies(t, d, session, args):
    garbage = ("GARBAGE_ARGS",)
    whole = Attack(t, d, session, g.INTEGRITY, args)
    whole.say("another MIC of the arguments", garbage, bend=bending("args mic", lambda v: v[:-1] + bytes([v[-1] ^ 1])))
    whole.say("another sequence number in the body", garbage, bend=bending("plain", lambda v: r.u32(7777) + v[4:]))
    secret = Attack(t, d, session, g.PRIVACY, args)
    secret.say("another sequence number in the secret", garbage, bend=bending("plain", lambda v: r.u32(7777) + v[4:]))
    secret.say("a bit of the secret", garbage, bend=bending("token", lambda v: v[:-1] + bytes([v[-1] ^ 1])))
    secret.say("a MIC for a secret", garbage, bend=bending("token", lambda v: session.context.sign(v)))
    secret.say("an empty secret", garbage, bend=bending("token", lambda v: b""))
    secret.say("a secret without a number", garbage, bend=bending("token", lambda v: session.context.wrap(b"no")))
    for n in range(1, 120):
        secret.say(f"a secret of {n} bytes", garbage, bend=bending("token", lambda v, n=n: v[:n] if n < len(v) else v[:-1]))
    for at in range(16):
        secret.say(f"octet {at} of the secret's head", garbage, bend=bending("token", lambda v, at=at: v[:at] + bytes([v[at] ^ 0xff]) + v[at + 1:]))
    large = Attack(t, d, session, g.INTEGRITY, r.write_args(args[4:], 0, bytes(200000)))
    large.proc = r.WRITE
    for n in range(1, 28):
        large.say(f"a MIC of {n} bytes behind 200,000", garbage, bend=bending("args mic", lambda v, n=n: v[:n]))
    for a in (whole, secret):
        body = session.protect(args, a.service, 1)
        for n in range(len(body)):
            a.say(f"a body of {n} bytes", garbage, bend=bending("body", lambda v, n=n: v[:n]))
        for n in (0xffffffff, 0x7fffffff, 1 << 20, len(body) + 1):
            a.say(f"a body that claims {n} bytes", garbage, bend=bending("body", lambda v, n=n: r.u32(n) + v[4:]))


def test_sequence(t, d, realm, args):
    """RFC 2203 section 5.3.3.1: what was used, or lies below the window, is discarded."""
    with gss.connect(d) as c:
        session = g.Session(c, realm.login(gss.ALICE))
        a = Attack(t, d, session, g.NONE, args)
        message = a.say("the first", ("ok",), c, seq=5000)
        xid = struct.unpack(">I", message[:4])[0]
        t.equal("the same call once more", verdict(c, message, xid), ("discarded",))
        with gss.connect(d) as other:
            t.equal("the same call by another connection", verdict(other, message, xid), ("discarded",))
        a.say("the number in another call", ("discarded",), c, seq=5000)
        a.say("one before", ("ok",), c, seq=4999)
        a.say("the last of the window", ("ok",), c, seq=5000 - session.window + 1)
        a.say("one below the window", ("discarded",), c, seq=5000 - session.window)
        a.say("far ahead", ("ok",), c, seq=1000000)
        a.say("what was right before that", ("discarded",), c, seq=5001)
        a.say("the highest", ("ok",), c, seq=SEQ_MAX - 1)
        a.say("one more", ("AUTH_ERROR", g.CTXPROBLEM), c, seq=SEQ_MAX)
        a.say("the last that 32 bits have", ("AUTH_ERROR", g.CTXPROBLEM), c, seq=0xffffffff)
        # A wrong MIC must not use a number up.
        fresh = g.Session(c, realm.login(gss.ALICE))
        b = Attack(t, d, fresh, g.NONE, args)
        b.say("a forged call", ("AUTH_ERROR", g.CREDPROBLEM), c, seq=9000, bend=bending("mic", lambda v: v[:-1] + bytes([v[-1] ^ 1])))
        b.say("a low number after it", ("ok",), c, seq=3)


def test_others(t, d, realm, args):
    """Another user's context, and a MIC of another call."""
    with gss.connect(d) as c:
        alice, bob = (g.Session(c, realm.login(u)) for u in (gss.ALICE, gss.BOB))
        a = Attack(t, d, bob, g.NONE, args)
        a.say("the handle of alice with bob's MIC", ("AUTH_ERROR", g.CREDPROBLEM), c,
              bend=bending("cred", lambda v: v[:16] + r.opaque(alice.handle)))
        xid, seq = r.next_xid(), alice.number()
        message = alice.call(r.NFS, 3, r.GETATTR, args, g.NONE, xid, seq)
        changed = message[:20] + r.u32(r.FSINFO) + message[24:]
        t.equal("another procedure under the MIC", verdict(c, changed, xid), ("AUTH_ERROR", g.CREDPROBLEM))
        changed = r.u32(xid + 1) + message[4:]
        t.equal("another xid under the MIC", verdict(c, changed, xid + 1), ("AUTH_ERROR", g.CREDPROBLEM))
        cred = g.credential(g.DATA, alice.number(), g.NONE, alice.handle)
        changed = message[:28] + r.opaque(cred) + message[32 + len(cred):]
        t.equal("another number under the MIC", verdict(c, changed, xid), ("AUTH_ERROR", g.CREDPROBLEM))
        t.equal("the call itself", verdict(c, message, xid), ("ok",))


def test_destroy(t, d, realm, args):
    """A context ends by a call of its own and by no other."""
    problem, bent = ("AUTH_ERROR", g.CREDPROBLEM), bending("mic", lambda v: v[:-1] + bytes([v[-1] ^ 1]))
    with gss.connect(d) as c:
        alice, bob = (g.Session(c, realm.login(u)) for u in (gss.ALICE, gss.BOB))

        def destroy(what, want, session, prog=r.NFS, proc=0, seq=None, bend=None):
            xid = r.next_xid()
            t.equal(f"DESTROY {what}", verdict(c, session.call(prog, 3, proc, b"", g.NONE, xid, seq, g.DESTROY, bend), xid), want)

        destroy("with another MIC", problem, alice, bend=bent)
        destroy("with an empty MIC", problem, alice, bend=bending("mic", lambda v: b""))
        destroy("with an AUTH_NONE verifier", ("AUTH_ERROR", BADVERF), alice, bend=bending("verf", lambda v: bytes(8)))
        destroy("of alice's context under bob's key", problem, bob, bend=bending("cred", lambda v: v[:16] + r.opaque(alice.handle)))
        destroy("in a call that is not NULL", ("AUTH_ERROR", BADCRED), alice, proc=r.GETATTR)
        destroy("with another MIC to no program", problem, alice, prog=400000, bend=bent)
        a = Attack(t, d, alice, g.NONE, args)
        a.say("a call", ("ok",), c, seq=500)
        destroy("with a number that was used", ("discarded",), alice, seq=500)
        a.say("the context is there", ("ok",), c, seq=501)
        destroy("by the client", ("ok",), alice, seq=502)
        a.say("the context is not", problem, c, seq=503)
        Attack(t, d, bob, g.NONE, args).say("another context", ("ok",), c)


def test_creation(t, d, realm):
    """Tokens that are none; and one whose service is another."""
    with scrape.Growth(d) as grown:
        make_bad(t, d, realm)
    t.equal("refused contexts in the metrics", grown.of("ringnfs_gss_context_requests_total", result="refused"), 5)


def make_bad(t, d, realm):
    for token in (b"", b"x", b"\x60" + os.urandom(2000), os.urandom(60000)):
        with gss.connect(d) as c:
            xid = r.next_xid()
            cred = r.u32(g.GSS) + r.opaque(g.credential(g.INIT, 0, g.NONE, b""))
            x, verf = g.accepted(c.exchange(r.call_message(r.NFS, 3, 0, r.opaque(token), cred, xid)), xid)
            handle, major = x.opaque(), x.u32()
            t.check(f"a token of {len(token)} bytes makes no context", major >> 16 and not handle and not verf, (major, handle, verf))
    with gss.connect(d) as c:
        for proc, want in ((g.INIT, "GARBAGE_ARGS"), (g.CONTINUE, "GARBAGE_ARGS")):
            for args in (b"", r.u32(0xffffffff), r.u32(70000) + bytes(70000), r.u32(8) + b"cut!"):
                xid = r.next_xid()
                cred = r.u32(g.GSS) + r.opaque(g.credential(proc, 0, g.NONE, os.urandom(16)))
                t.equal(f"procedure {proc} with {len(args)} bytes", verdict(c, r.call_message(r.NFS, 3, 0, args, cred, xid), xid), (want,))
        xid = r.next_xid()
        cred = r.u32(g.GSS) + r.opaque(g.credential(g.INIT, 0, g.NONE, b""))
        t.equal("a token in a call that is not NULL", verdict(c, r.call_message(r.NFS, 3, 1, r.opaque(b"x"), cred, xid), xid),
                ("AUTH_ERROR", BADCRED))
        realm.admin("addprinc -randkey host/localhost")
        t.equal("a ticket for another service", gss.refusal(g.Session, c, realm.login(gss.ALICE), "host@localhost")[0], "GSS")


def test_flood(t, d, realm, args):
    """Tokens of no use by the hundred, from one address; somebody else's context is made meanwhile."""
    token = r.opaque(b"\x60" + os.urandom(3000))
    cred = r.u32(g.GSS) + r.opaque(g.credential(g.INIT, 0, g.NONE, b""))
    flood = [g.GssConn(d.port, source=("127.0.9.1", 0)) for _ in range(40)]
    for c in flood:
        for _ in range(20):
            c.send(r.call_message(r.NFS, 3, 0, token, cred))
    since = time.monotonic()
    with gss.connect(d) as c:
        session = g.Session(c, realm.login(gss.ALICE))
        waited = time.monotonic() - since
        a = Attack(t, d, session, g.PRIVACY, args)
        a.say("beside a flood", ("ok",), c)
    print(f"a context beside 800 useless tokens: {waited * 1000:.0f} ms")
    t.check("each of the flood is answered or closed", all(drained(c, 20) for c in flood))


def test_evictions(t, d, realm, args):
    """More contexts than there may be: the least used of them go, and the newest are good."""
    with scrape.Growth(d) as grown, gss.connect(d) as c:
        sessions = [g.Session(c, realm.login(gss.ALICE)) for _ in range(CONTEXTS + 3)]
        Attack(t, d, sessions[-1], g.PRIVACY, args).say("the newest context", ("ok",), c)
    evicted = grown.of("ringnfs_gss_contexts_evicted_total")
    t.check("contexts that made room in the metrics", evicted >= 3, evicted)
    t.equal("contexts that are left", scrape.value(grown.after, "ringnfs_gss_contexts", state="established"), CONTEXTS)


def drained(c, n):
    c.s.settimeout(30)
    try:
        for _ in range(n):
            c.recv()
    except r.Closed:
        pass
    except socket.timeout:
        return False
    finally:
        c.close()
    return True


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        settings = {**gss.settings(realm), "server.control_socket": realm.path("control"), "gss.max_contexts": CONTEXTS}
        with harness.Daemon({"all": "sec=krb5:krb5i:krb5p:sys,rw,insecure"}, settings, env={**os.environ}) as d:
            d.path = settings["server.control_socket"]
            with gss.connect(d) as c:
                session = g.Session(c, realm.login(gss.ALICE))
                args = r.getattr_args(c.mnt(d.exports["all"])[1])
            test_fields(t, d, session, args)
            test_bodies(t, d, session, args)
            with scrape.Growth(d) as grown:
                test_sequence(t, d, realm, args)
            t.equal("replays in the metrics", grown.of("ringnfs_gss_rejected_calls_total", reason="replay"), 5)
            t.equal("wrong calls in the metrics", grown.of("ringnfs_gss_rejected_calls_total", reason="bad"), 1)
            t.equal("contexts in the metrics", grown.of("ringnfs_gss_contexts", state="established"), 2)
            test_others(t, d, realm, args)
            test_destroy(t, d, realm, args)
            test_creation(t, d, realm)
            test_flood(t, d, realm, args)
            test_evictions(t, d, realm, args)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
