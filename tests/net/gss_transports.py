#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A context is good over every transport, and proves nothing about one: plain TCP, TLS with and without a certificate, datagrams."""
import os

import gss
import gssclient as g
import harness
import kdc
import rpcclient as r
import tlsclient
import udpclient
from gss_hostile import bending

SEC = "sec=krb5:krb5i:krb5p:sys,rw,insecure"
EXPORTS = {"any": SEC, "enc": SEC + ",xprtsec=tls:mtls", "own": SEC + ",xprtsec=mtls"}
TOOWEAK, CREDPROBLEM = ("AUTH_ERROR", 5), ("AUTH_ERROR", g.CREDPROBLEM)


class TlsGssConn(tlsclient.TlsConn, g.GssConn):
    """Calls under a session, within TLS."""


class Ways:
    """Connections of the three kinds."""

    def __init__(self, d, ca):
        self.d = d
        self.ctx = {"tls": tlsclient.context(ca.path("crt")), "mtls": tlsclient.context(ca.path("crt"), ca.issue("client"))}

    def connect(self, way, session=None, service=g.NONE):
        c = TlsGssConn(self.d.port, self.ctx[way]) if way in self.ctx else g.GssConn(self.d.port)
        c.session, c.service = session, service
        return c


KINDS = ("plain", "tls", "mtls")
ADMITS = {"any": KINDS, "enc": ("tls", "mtls"), "own": ("mtls",)}


def test_streams(t, ways, roots, realm):
    for made in KINDS:
        with ways.connect(made) as c:
            session = g.Session(c, realm.login(gss.ALICE))
        for flavor, service in gss.SERVICES.items():
            for used in KINDS:
                with ways.connect(used, session, service) as c:
                    for e, root in roots.items():
                        got = gss.refusal(c.nfs, r.GETATTR, r.getattr_args(root))
                        t.equal(f"{flavor} context made over {made}, used over {used}, export {e}", got, None if used in ADMITS[e] else TOOWEAK)


def test_datagrams(t, d, realm):
    with gss.connect(d) as c:
        alice, bob = (g.Session(c, realm.login(u)) for u in (gss.ALICE, gss.BOB))
    os.mkdir(d.exports["enc"] + "/sub")
    with udpclient.Datagrams(d.port) as c:
        for flavor, service in gss.SERVICES.items():
            for what, path, want in (("a plain export", d.exports["any"], r.OK), ("a folder that needs TLS, as nobody", d.exports["enc"] + "/sub", r.OK)):
                xid, seq = r.next_xid(), alice.number()
                message = alice.call(r.MOUNT, 3, r.MNT, r.name(path), service, xid, seq)
                got = alice.results(c.exchange(message), xid, seq, service).u32()
                t.equal(f"{flavor}: MNT of {what} by a datagram under a context of TCP", got, want)
                c.send(message)
                t.equal(f"{flavor}: the same datagram again", [x for x in c.replies(0.5) if x[:4] == message[:4]], [])
            xid = r.next_xid()
            message = bob.call(r.MOUNT, 3, r.MNT, r.name(d.exports["any"]), service, xid, bend=bending("cred", lambda v: v[:16] + r.opaque(alice.handle)))
            t.equal(f"{flavor}: alice's handle under bob's key by a datagram", gss.refusal(r.reply_body, c.exchange(message), xid), CREDPROBLEM)


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        ca = tlsclient.Authority(realm.top, "ca")
        crt, key = ca.issue("server")
        settings = {**gss.settings(realm), "tls.certificate": crt, "tls.key": key, "tls.ca": ca.path("crt")}
        with harness.Daemon(EXPORTS, settings, env={**os.environ}) as d:
            with gss.connect(d) as c:
                roots = {e: c.mnt(path)[1] for e, path in d.exports.items()}
            test_streams(t, Ways(d, ca), roots, realm)
            test_datagrams(t, d, realm)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
