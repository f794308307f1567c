#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""RPCSEC_GSS over RDMA against callers that misbehave: each attack goes inline and as a Long Call (doc/design/gss.md has the table)."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import gss
import gssclient as g
import harness
import kdc
import rpcclient as r
from gss_hostile import BADCRED, BADVERF, SEQ_MAX, SERVICES, bending
from gss_rdma import GssWire
from rdmaclient import NOMSG, Peer, RdmaError
from xattrs_rdma import CREDITS, PORT, REPLY_AT

GARBAGE, OK, DISCARDED = ("GARBAGE_ARGS",), ("ok",), ("discarded",)
CRED, VERF = ("AUTH_ERROR", BADCRED), ("AUTH_ERROR", BADVERF)
PROBLEM, CONTEXT = ("AUTH_ERROR", g.CREDPROBLEM), ("AUTH_ERROR", g.CTXPROBLEM)


class HostileWire(GssWire):
    """long: calls go by a position-zero Read chunk. part: these octets of the call go by a Read chunk."""
    long_call, part = False, None

    def message(self, rpc):
        p, reads, kind = self.peer, b"", 0
        if self.part:
            at, end = self.part
            p.put(rpc[at:end])
            reads, rpc = struct.pack(">II", 1, at) + p.segment(0, end - at), rpc[:at] + rpc[end:]
        elif self.long_call:
            p.put(rpc)
            reads, kind, rpc = struct.pack(">II", 1, 0) + p.segment(0, len(rpc)), NOMSG, b""
        reply = struct.pack(">II", 1, 1) + p.segment(REPLY_AT, self.reply_size)
        return struct.pack(">II", CREDITS, kind) + reads + r.u32(0) + r.u32(0) + reply + rpc

    def verdict(self, message, xid, wait=None):
        """How a call ended, in words."""
        try:
            data = self.exchange(message, wait)
            if data is None:
                return DISCARDED
            r.reply_body(data, xid)
        except r.Refused as e:
            return (e.why, *e.data)
        except RdmaError:
            return ("rdma error",)
        return OK


class Attack:
    def __init__(self, t, wire, session, service, args):
        self.t, self.wire, self.session, self.service, self.args = t, wire, session, service, args

    def say(self, what, want, **kw):
        xid = r.next_xid()
        message = self.session.call(r.NFS, 3, r.GETATTR, self.args, self.service, xid, **kw)
        # A call that is answered may take long on a busy machine; one that is discarded never is.
        got = self.wire.verdict(message, xid, 0.5 if want == DISCARDED else None)
        how = "long" if self.wire.long_call else "inline"
        self.t.check(f"{how}, service {self.service}: {what}", got in want if isinstance(want, list) else got == want, f"{got}, not {want}")
        return message, xid


def test_header(a):
    """The credential and the verifier, cut at each word and octet."""
    a.say("as it should be", OK)
    for n in range(0, 36, 4):
        a.say(f"a credential of {n} bytes", CRED, bend=bending("cred", lambda v, n=n: v[:n]))
    for n in range(28):
        a.say(f"a MIC of {n} bytes", PROBLEM, bend=bending("mic", lambda v, n=n: v[:n]))
    a.say("an AUTH_NONE verifier", VERF, bend=bending("verf", lambda v: bytes(8)))
    a.say("a handle that nobody has", PROBLEM, bend=bending("cred", lambda v: v[:-4] + b"none"))


def test_body(a):
    body = len(a.session.protect(a.args, a.service, 1))
    for n in range(0, body, 4):
        a.say(f"a body of {n} bytes", GARBAGE, bend=bending("body", lambda v, n=n: v[:n]))
    for n in (0xffffffff, 0x7fffffff, 1 << 20, body + 1):
        a.say(f"a body that claims {n} bytes", GARBAGE, bend=bending("body", lambda v, n=n: r.u32(n) + v[4:]))
    field = "plain" if a.service == g.INTEGRITY else "token"
    a.say("another sequence number inside", GARBAGE, bend=bending("plain", lambda v: r.u32(7777) + v[4:]))
    for at in (0, 3, 7, 15, -1):
        spoil = bending("args mic" if field == "plain" else field, lambda v, at=at: flipped(v, at))
        a.say(f"octet {at} of what protects it", GARBAGE, bend=spoil)


def flipped(v, at):
    v = bytearray(v)
    v[at] ^= 0xff
    return bytes(v)


def test_numbers(t, wire, realm, args):
    """Backwards, far ahead, at the maximum; a discarded call leaves the connection and its credits."""
    for wire.long_call in (False, True):
        session = g.Session(wire, realm.login(gss.ALICE))
        a = Attack(t, wire, session, g.PRIVACY, args)
        message, xid = a.say("the first number", OK, seq=5000)
        t.equal("the same call once more", wire.verdict(message, xid, 0.5), DISCARDED)
        a.say("the number in another call", DISCARDED, seq=5000)
        a.say("the last of the window", OK, seq=5000 - session.window + 1)
        a.say("one below the window", DISCARDED, seq=5000 - session.window)
        a.say("far ahead", OK, seq=10000000)
        a.say("a number from before that", DISCARDED, seq=5001)
        a.say("the highest", OK, seq=SEQ_MAX - 1)
        a.say("one more", CONTEXT, seq=SEQ_MAX)
        a.say("the last that 32 bits have", CONTEXT, seq=0xffffffff)
    wire.long_call = False


def test_parts(t, wire, session, args):
    """A Read chunk in the place of a part of the header: nothing of it has data that may be placed (RFC 8166 section 6.1)."""
    for service in SERVICES.values():
        whole = session.call(r.NFS, 3, r.GETATTR, args, service, r.next_xid())
        for at in range(4, len(whole), 8):
            xid = r.next_xid()
            message = session.call(r.NFS, 3, r.GETATTR, args, service, xid)
            wire.part = (at, min(at + 4, len(message)))
            got = wire.verdict(message, xid)
            wire.part = None
            t.check(f"service {service}: octets {at} to {at + 4} by a Read chunk", got not in (OK, DISCARDED), got)
    Attack(t, wire, session, g.NONE, args).say("a call after these", OK)


def run(t, d, f, realm):
    with gss.connect(d) as c:
        root = c.mnt(d.exports["all"])[1]
        alice = g.Session(c, realm.login(gss.ALICE))
    wire = HostileWire(Peer({**f.environment(), **realm.env}, before=f.command("client")).connect("127.0.0.1", PORT))
    bob, args = g.Session(wire, realm.login(gss.BOB)), r.getattr_args(root)
    for wire.long_call in (False, True):
        for service in SERVICES.values():
            a = Attack(t, wire, bob, service, args)
            test_header(a)
            a.say("the handle of alice, got by TCP, with bob's MIC", PROBLEM,
                  bend=bending("cred", lambda v: v[:16] + r.opaque(alice.handle)))
            if service != g.NONE:
                test_body(a)
    wire.long_call = False
    test_numbers(t, wire, realm, args)
    test_parts(t, wire, bob, args)
    wire.close()


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    with fabric.Fabric() as f, kdc.Realm() as realm:
        os.environ.update(realm.env)
        settings = {**gss.settings(realm), "rdma.enabled": "yes", "rdma.port": PORT}
        with harness.Daemon({"all": "sec=krb5:krb5i:krb5p:sys,rw,insecure"}, settings, before=f.command("server"),
                            env={**f.environment(), **realm.env}) as d:
            run(t, d, f, realm)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
