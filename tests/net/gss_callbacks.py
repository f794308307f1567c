#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Callbacks of NFSv4.1 under RPCSEC_GSS, by the contexts that a session offers (RFC 8881 section 18.36.3)."""
import os
import time

import gss
import gss_machine
import gssclient as g
import harness
import kdc
import nfs4client as n4
import rpcclient as r
from rpcclient import opaque, u32, u64

SETTINGS = {"nfs4.lease_time": 10, "nfs4.grace_time": 10}  # a callback is given up after a second
BACK = b"the client's handle"
BACKCHANNEL_CTL, NOENT = 40, 2
DOWN = n4.CB_PATH_DOWN | n4.CB_PATH_DOWN_SESSION


def offer(session, service, back=BACK, handle=None):
    return u32(g.GSS) + u32(service) + opaque(session.handle if handle is None else handle) + opaque(back)


class Called(gss_machine.Machine):
    """A client that takes callbacks under a context. offers: what CREATE_SESSION offers; bend: spoils its answers."""
    back = True
    protect = u32(0)
    offers = ()
    bend = None

    def create_session(self, seqid):
        self.seen, self.by = [], self.gss[0]
        channel = b"".join(map(u32, (0, self.longest, self.longest, 4096, 16, 8, 0)))
        res = self.bare((n4.CREATE_SESSION, u64(self.clientid) + u32(seqid) + u32(2) + channel * 2 + u32(0x40000000) +
                         u32(len(self.offers)) + b"".join(self.offers)))[0]
        if not res["status"]:
            self.session, self.seqid = res["session"], 0
        return res

    def _connect(self):
        super()._connect()
        self.conn.on_call = self._on_call

    def _on_call(self, data):
        plain, seq, service, handle = self.by.take_call(data)
        self.seen.append((seq, service, handle))
        reply = super()._on_call(plain)
        if self.bend == "denied":
            return data[:4] + u32(1) + u32(1) + u32(1) + u32(g.CREDPROBLEM)
        return reply and self.by.answer(reply, seq, service, *([self.bend] if self.bend else []))


def new(d, session, owner, *offers):
    c = Called(d.port, session, g.INTEGRITY, owner)
    c.offers = offers
    return c


def writes(d, name):
    c = n4.Client(d.port, f"writer of {name}")
    c.register(), c.reclaim_complete()
    return c


def test_recall(t, d, session, flavor, service):
    c = new(d, session, flavor, offer(session, service))
    t.equal(f"{flavor}: CREATE_SESSION", c.register()["status"], n4.OK)
    c.reclaim_complete()
    probe = c.await_callback()
    t.equal(f"{flavor}: the probe", (probe["prog"], c.seen[0][1:]), (0x40000000, (service, BACK)))
    name = f"file.{flavor}"
    with open(os.path.join(d.exports["all"], name), "w") as f:
        f.write("data")
    os.chmod(f.name, 0o666)
    root = c.path(d.exports["all"])
    opened, fh = c.open(root, name, access=n4.SHARE_READ)
    t.equal(f"{flavor}: a delegation", opened["delegation"], n4.DELEGATE_READ)
    w = writes(d, name)
    t.equal(f"{flavor}: another's OPEN", w.open(w.path(d.exports["all"]), name)[0]["status"], n4.DELAY)
    recall = c.await_callback(n4.CB_RECALL)
    t.equal(f"{flavor}: the recall", (recall["stateid"], recall["fh"], c.seen[-1][1:]), (opened["deleg"], fh, (service, BACK)))
    t.equal(f"{flavor}: DELEGRETURN", c.delegreturn(fh, opened["deleg"]), n4.OK)
    t.equal(f"{flavor}: another's OPEN then", w.open(w.path(d.exports["all"]), name)[0]["status"], n4.OK)
    seqs = [s[0] for s in c.seen]
    t.check(f"{flavor}: sequence numbers are new ones", seqs == sorted(set(seqs)), seqs)
    t.equal(f"{flavor}: flags", (c.compound((n4.PUTROOTFH, b"")), c.flags)[1], 0)
    w.close()
    c.close()


def test_offers(t, d, alice, bob):
    """Offers of which the caller has no context, alone, and before others."""
    wrong = {"no such handle": offer(alice, 1, handle=bytes(16)), "a handle of another length": offer(alice, 1, handle=alice.handle[:15]),
             "another user's": offer(bob, 1), "service 0": offer(alice, 0), "service 4": offer(alice, 4),
             "a handle that no credential can have": offer(alice, 1, back=bytes(400))}
    for what, one in wrong.items():
        c = new(d, alice, what, one)
        t.equal(f"{what}, alone", c.register()["status"], NOENT)
        c.close()
        c = new(d, alice, f"{what} first", one, offer(alice, g.PRIVACY))
        t.equal(f"{what}, before another", c.register()["status"], n4.OK)
        c.reclaim_complete(), c.await_callback()
        t.equal(f"{what}: the other is used", c.seen[0][1:], (g.PRIVACY, BACK))
        t.equal(f"{what}, by BACKCHANNEL_CTL", c.last((BACKCHANNEL_CTL, u32(0x40000000) + u32(1) + one))["status"], NOENT)
        c.close()
    c = new(d, alice, "many", *[wrong["no such handle"]] * 1000)
    t.equal("a thousand offers", c.register()["status"], NOENT)
    c.close()


def flags_after(c, flags):
    """SEQUENCE until its flags are these, for up to a minute: the last ones."""
    for _ in range(600):
        c.compound((n4.PUTROOTFH, b""))
        if c.flags == flags:
            break
        time.sleep(0.1)
    return c.flags


def flip(want):
    return lambda field, value: value[:-1] + bytes([value[-1] ^ 1]) if field == want else value


BAD = {
    "a wrong verifier": (g.NONE, flip("mic")),
    "a MIC cut short": (g.NONE, lambda field, value: value[:-1] if field == "mic" else value),
    "no MIC": (g.NONE, lambda field, value: b"" if field == "mic" else value),
    "an AUTH_NONE verifier": (g.PRIVACY, lambda field, value: bytes(8) if field == "verf" else value),
    "results with a wrong MIC": (g.INTEGRITY, flip("args mic")),
    "results of another number": (g.INTEGRITY, lambda field, value: r.u32(9999) + value[4:] if field == "plain" else value),
    "plain results": (g.PRIVACY, lambda field, value: bytes(40) if field == "body" else value),
    "a bent token": (g.PRIVACY, flip("token")),
    "an empty token": (g.PRIVACY, lambda field, value: b"" if field == "token" else value),
    "a token of 3 octets": (g.PRIVACY, lambda field, value: value[:3] if field == "token" else value),
    "a denial": (g.INTEGRITY, "denied"),
}


def test_bad_answers(t, d, session, realm):
    """A client whose answers are not its own gets no delegation, and is told; a new context repairs that."""
    for what, (service, bend) in BAD.items():
        c = new(d, session, what, offer(session, service))
        c.bend = bend
        c.register(), c.reclaim_complete(), c.await_callback()
        t.equal(f"{what}: flags", flags_after(c, DOWN), DOWN)
        opened, fh = c.open(c.path(d.exports["all"]), "plain", create=True, access=n4.SHARE_READ)
        t.check(f"{what}: no delegation", opened["delegation"] not in (n4.DELEGATE_READ, n4.DELEGATE_WRITE), opened)
        c.close_file(fh, opened["stateid"])
        c.bend = None
        with gss.connect(d) as other:
            c.by = g.Session(other, realm.login(gss.ALICE), vers=4)
        t.equal(f"{what}: BACKCHANNEL_CTL", c.last((BACKCHANNEL_CTL, u32(0x40000000) + u32(1) + offer(c.by, service, b"new")))["status"], n4.OK)
        t.equal(f"{what}: flags then", flags_after(c, 0), 0)
        t.equal(f"{what}: the new context is used", c.seen[-1][1:], (service, b"new"))
        c.close()


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        with harness.Daemon({"all": "sec=krb5:krb5i:krb5p:sys,rw,insecure"}, {**gss.settings(realm), **SETTINGS}, env={**os.environ}) as d:
            with gss.connect(d) as c:
                alice, bob = (g.Session(c, realm.login(p), vers=4) for p in (gss.ALICE, gss.BOB))
            for flavor, service in gss.SERVICES.items():
                test_recall(t, d, alice, flavor, service)
            test_offers(t, d, alice, bob)
            test_bad_answers(t, d, alice, realm)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
