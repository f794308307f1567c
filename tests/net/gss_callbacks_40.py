#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Callbacks of NFSv4.0 under Kerberos: the server makes a context to the client's principal, and gives no delegation without one. Clients
that refuse it, answer it wrongly or not at all, and a KDC that is silent, hold up nobody."""
import os
import socket
import struct
import time

import callbacks_40 as cb40
import gss
import gssapi
import gss_callbacks
import gssclient as g
import harness
import kdc
import nfs4client as n4
import rpcclient as r
from rpcclient import opaque, u32, u64

CLIENT = "host/client.test"
PROGRAM = cb40.PROGRAM
SETTINGS = {"nfs4.lease_time": 10, "nfs4.grace_time": 10, "server.log_level": "debug"}
HANDLE = b"a handle of the client"
COMPLETE, FAILURE = 0, 13 << 16


def reply(conn, message):
    conn.sendall(u32(0x80000000 | len(message)) + message)


class Listener(cb40.Listener):
    """A client's callback service under RPCSEC_GSS. bend: spoils its answers to INIT; silent: does not answer it."""

    def __init__(self, keytab, bend=lambda field, value: value, silent=False):
        self.keytab, self.bend, self.silent = keytab, bend, silent
        self.contexts, self.services, self.inits, self.refused = {}, [], 0, 0
        super().__init__()

    def _serve(self, conn, source):
        try:
            while True:
                mark = struct.unpack(">I", self._take(conn, 4))[0]
                data = self._take(conn, mark & 0x7fffffff)
                x = r.In(data)
                words = [x.u32() for _ in range(6)]
                flavor, cred = x.u32(), r.In(x.opaque())
                with self.changed:
                    self.calls.append((source, None, words, flavor))
                    self.changed.notify_all()
                if flavor == g.GSS and (cred.u32(), cred.u32()) == (1, g.INIT):
                    self._init(conn, words[0], x)
                else:
                    self._data(conn, data)
        except OSError:
            pass
        with self.changed:
            self.ended += 1
            self.changed.notify_all()

    def _init(self, conn, xid, x):
        self.inits += 1
        x.u32(), x.opaque()
        if self.silent:
            return
        session = g.Session.__new__(g.Session)
        session.context, session.seq = gssapi.Acceptor(self.keytab), 0
        token = session.context.step(x.opaque())
        handle = HANDLE + bytes([self.inits])
        self.contexts[handle] = session
        window = u32(128)
        verf = u32(g.GSS) + opaque(self.bend("mic", session.context.sign(window)))
        results = self.bend("results", opaque(handle) + u32(COMPLETE) + u32(0) + window + opaque(self.bend("token", token)))
        reply(conn, u32(xid) + u32(1) + u32(0) + self.bend("verf", verf) + u32(0) + results)

    def _data(self, conn, data):
        handle = next((h for h in self.contexts if h in data), None)
        if handle is None:  # a client that has started anew
            with self.changed:
                self.refused += 1
                self.changed.notify_all()
            reply(conn, data[:4] + u32(1) + u32(1) + u32(1) + u32(g.CREDPROBLEM))
            return
        session = self.contexts[handle]
        plain, seq, service, _ = session.take_call(data)
        x = r.In(plain)
        proc = [x.u32() for _ in range(6)][5]
        x.u32(), x.opaque()
        with self.changed:
            self.services.append((proc, service))
            if proc == 1:
                self.recalls.append(cb40.get_recall(x))
            self.changed.notify_all()
        results = u32(n4.OK) + opaque(b"") + u32(1) + u32(n4.CB_RECALL) + u32(n4.OK) if proc == 1 else b""
        reply(conn, session.answer(plain[:4] + cb40.NULL_REPLY + results, seq, service))


class Client(gss.Client4):
    def __init__(self, d, session, service, owner, listener):
        self.callback = (PROGRAM, b"tcp", listener.uaddr(), 7)
        super().__init__(d.port, session, service, owner, 0)

    def compound(self, *ops):
        """Asked again while the name service is asked for the caller."""
        for _ in range(300):
            results = super().compound(*ops)
            if results[-1]["status"] != n4.DELAY:
                break
            time.sleep(0.05)
        return results


def new(t, d, session, service, owner, listener):
    c = Client(d, session, service, owner, listener)
    t.equal(f"{owner}: SETCLIENTID", c.register()["status"], n4.OK)
    return c


def opened(c, d, name):
    """The delegation that an OPEN to read gets."""
    path = os.path.join(d.exports["all"], name)
    with open(path, "w") as f:
        f.write("data")
    os.chmod(path, 0o666)
    root = c.path(d.exports["all"])
    # No delegation is given to an owner that must confirm its first OPEN.
    c.open(root, "confirms", create=True)
    return c.open(root, name, access=n4.SHARE_READ)


def test_recall(t, d, realm, machine, flavor, service):
    a = Listener(realm.path("keytab.host_client.test"))
    c = new(t, d, machine, service, flavor, a)
    if not t.check(f"{flavor}: the path works", cb40.says(d, c, "answered")):
        raise SystemExit(d.read_log())
    res, fh = opened(c, d, f"file.{flavor}")
    t.equal(f"{flavor}: a delegation", res["delegation"], n4.DELEGATE_READ)
    w = gss_callbacks.writes(d, f"file.{flavor}")
    t.equal(f"{flavor}: another's OPEN", w.open(w.path(d.exports["all"]), f"file.{flavor}")[0]["status"], n4.DELAY)
    t.check(f"{flavor}: the recall comes", a.await_recalls())
    t.equal(f"{flavor}: what is recalled", (a.recalls[0]["stateid"], a.recalls[0]["fh"]), (res["deleg"], fh))
    t.equal(f"{flavor}: services", set(s for _, s in a.services), {service})
    t.equal(f"{flavor}: DELEGRETURN", c.delegreturn(fh, res["deleg"]), n4.OK)
    t.equal(f"{flavor}: contexts that were made", a.inits, 1)
    t.equal(f"{flavor}: RENEW", cb40.renew(c), n4.OK)
    w.close(), c.close(), a.stop()


def test_lost(t, d, realm, machine):
    """A client that has lost the context gets another one when it renews, and is told again of what was recalled meanwhile."""
    a = Listener(realm.path("keytab.host_client.test"))
    c = new(t, d, machine, g.INTEGRITY, "loser", a)
    t.check("loser: the path works", cb40.says(d, c, "answered"))
    res, fh = opened(c, d, "lost")
    t.equal("loser: a delegation", res["delegation"], n4.DELEGATE_READ)
    a.contexts.clear()
    w = gss_callbacks.writes(d, "lost")
    t.equal("loser: another's OPEN", w.open(w.path(d.exports["all"]), "lost")[0]["status"], n4.DELAY)
    with a.changed:
        t.check("loser: the recall is refused", a.changed.wait_for(lambda: a.refused, cb40.PATIENCE))
    # Over 4.0 only RENEW tells of the path, and has the server try again.
    until = time.monotonic() + cb40.PATIENCE
    while a.inits < 2 and time.monotonic() < until:
        cb40.renew(c)
        time.sleep(0.1)
    t.check("loser: another context is made", a.inits >= 2)
    t.check("loser: the recall comes again", a.await_recalls())
    t.equal("loser: what is recalled", (a.recalls[0]["stateid"], a.recalls[0]["fh"]), (res["deleg"], fh))
    t.equal("loser: DELEGRETURN", c.delegreturn(fh, res["deleg"]), n4.OK)
    w.close(), c.close(), a.stop()


BAD = {
    "a wrong verifier": gss_callbacks.flip("mic"),
    "a verifier cut short": lambda field, value: value[:5] if field == "mic" else value,
    "an AUTH_NONE verifier": lambda field, value: bytes(8) if field == "verf" else value,
    "a wrong token": gss_callbacks.flip("token"),
    "no token": lambda field, value: b"" if field == "token" else value,
    "a failure": lambda field, value: opaque(b"") + u32(FAILURE) + u32(0) * 2 + opaque(b"") if field == "results" else value,
    "results cut short": lambda field, value: value[:20] if field == "results" else value,
    "a handle that no credential can have": lambda field, value: opaque(bytes(400)) + value[-400:] if field == "results" else value,
}


def test_bad(t, d, realm, machine):
    """Without a context there is no delegation; with one, later, there is."""
    for what, bend in BAD.items():
        a = Listener(realm.path("keytab.host_client.test"), bend)
        c = new(t, d, machine, g.INTEGRITY, what, a)
        t.check(f"{what}: INIT comes", a.await_calls())
        t.check(f"{what}: the probe fails", cb40.says(d, c, ""))
        res, fh = opened(c, d, "bad")
        t.equal(f"{what}: no delegation", res["delegation"], n4.DELEGATE_NONE)
        t.equal(f"{what}: nothing else was called", a.services, [])
        c.close(), a.stop()


def test_refused(t, d, realm, machine, alice):
    a = Listener(realm.path("keytab.host_client.test"), silent=True)
    c = new(t, d, machine, g.PRIVACY, "silent", a)
    t.check("a silent client: INIT comes", a.await_calls())
    t.equal("a silent client: no delegation", opened(c, d, "silent")[0]["delegation"], n4.DELEGATE_NONE)
    c.close(), a.stop()
    a = Listener(realm.path("keytab.host_client.test"))
    c = new(t, d, alice, g.PRIVACY, "a user", a)
    t.equal("a user's client: no delegation", opened(c, d, "user")[0]["delegation"], n4.DELEGATE_NONE)
    t.equal("a user's client is not called", a.calls, [])
    c.close(), a.stop()


def test_silent_kdc(t, d, realm):
    """In the KDC's place there is a listener that says nothing. Nothing waits but the contexts to clients."""
    kept = realm.login(gss.BOB)
    with gss.connect(d) as c:
        g.Session(c, kept, vers=4)  # its cache has a ticket for the server now
        machine = g.Session(c, realm.login("host/second.test"), vers=4)  # the server has no ticket for this one
    realm.stop()
    with socket.create_server(("127.0.0.1", realm.port), backlog=64):
        a = Listener(realm.path("keytab.host_client.test"))
        late = [new(t, d, machine, g.NONE, f"late {i}", a) for i in range(8)]
        began = time.monotonic()
        with gss.connect(d) as c:
            t.check("a context is accepted meanwhile", g.Session(c, kept, vers=4).handle)
        t.equal("no delegation meanwhile", opened(late[0], d, "late")[0]["delegation"], n4.DELEGATE_NONE)
        t.check("nobody waited for the KDC", time.monotonic() - began < 30)
        for c in late:
            c.close()
        d.stop()
        t.check("nor does the stop", time.monotonic() - began < 60)
        a.stop()
    d.start()


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        with harness.Daemon({"all": "sec=krb5:krb5i:krb5p:sys,rw,insecure"}, {**gss.settings(realm), **SETTINGS}, env={**os.environ}) as d:
            with gss.connect(d) as c:
                machine, alice = (g.Session(c, realm.login(p), vers=4) for p in (CLIENT, gss.ALICE))
            for flavor, service in gss.SERVICES.items():
                test_recall(t, d, realm, machine, flavor, service)
            test_lost(t, d, realm, machine)
            test_bad(t, d, realm, machine)
            test_refused(t, d, realm, machine, alice)
            test_silent_kdc(t, d, realm)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
