#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several threads use one user's context at once: by copies that end with it. A client that looks at its tokens' numbers gets none."""
import os
import time

import gss
import gssapi
import gssclient as g
import harness
import kdc
import rpcclient as r
import scrape

SIZE, CALLS, CONNECTIONS = 256 << 10, 12, 4
DATA = os.urandom(SIZE)
DEADLINE = 60
TICKET = 15  # seconds; enough for the context to get copies


def copied(d):
    return scrape.parse(scrape.get(d)[2])["ringnfs_gss_contexts_copied", ()]


def burst(d, session, service, handles):
    """READs and WRITEs on several connections under one context, with all calls sent before an answer is read. True: all are right."""
    conns = [gss.connect(d, session, service) for _ in range(CONNECTIONS)]
    sent, right = [], True
    for c, fh in zip(conns, handles):
        for i in range(CALLS):
            proc, args = (r.READ, r.read_args(fh, 0, SIZE)) if i % 3 else (r.WRITE, r.write_args(fh, 0, DATA))
            xid, seq = r.next_xid(), session.number()
            c.send(session.call(r.NFS, 3, proc, args, service, xid, seq))
            sent.append((c, xid, seq, proc))
    waiting = {(c, xid): (seq, proc) for c, xid, seq, proc in sent}
    while waiting:
        c = next(iter(waiting))[0]
        data = c.recv()
        xid = int.from_bytes(data[:4], "big")
        seq, proc = waiting.pop((c, xid))
        result = r.decode(proc, session.results(data, xid, seq, service))
        right &= result["status"] == r.OK and (proc == r.WRITE or result["data"] == DATA)
    for c in conns:
        c.close()
    return right


def make_files(t, d, session, name):
    with gss.connect(d, session, g.INTEGRITY) as c:
        root = c.mnt(d.exports["all"])[1]
        made = [c.nfs(r.CREATE, r.create_args(root, f"{name}{i}"))["fh"] for i in range(CONNECTIONS)]
        for fh in made:
            t.equal("WRITE", c.nfs(r.WRITE, r.write_args(fh, 0, DATA))["status"], r.OK)
    return made


def refusals(c, n):
    return {gss.refusal(c.call, r.NFS, 3, 0) for _ in range(n)}


def test_copies(t, d, realm):
    with gss.connect(d) as c:
        session = g.Session(c, realm.login(gss.ALICE), flags=gssapi.MUTUAL)
    files = make_files(t, d, session, "alice")
    several = len(os.sched_getaffinity(0)) > 1
    for name, service in (("krb5p", g.PRIVACY), ("krb5i", g.INTEGRITY), ("krb5p again", g.PRIVACY)):
        t.check(f"{name}: data of all calls at once are right", burst(d, session, service, files))
    until = time.monotonic() + DEADLINE
    while several and copied(d) == 0 and time.monotonic() < until:
        burst(d, session, g.PRIVACY, files)
    t.equal("the context has copies", copied(d), 1 if several else 0)
    t.check("with copies, data are right", burst(d, session, g.PRIVACY, files))
    with gss.connect(d, session, g.PRIVACY) as c, gss.connect(d, session, g.PRIVACY) as other:
        again = session.call(r.NFS, 3, 0, b"", g.PRIVACY, r.next_xid())
        for _ in range(8):  # whichever copy looks at it
            c.send(again)
        c.recv()
        t.equal("one of them is answered", refusals(c, 1), {None})
        c.destroy()
        t.equal("DESTROY ends all copies", refusals(c, 8) | refusals(other, 8), {("AUTH_ERROR", g.CREDPROBLEM)})
    while copied(d) and time.monotonic() < until + DEADLINE:  # a page of metrics is kept for a second
        time.sleep(0.1)
    t.equal("and none is left", copied(d), 0)


def test_numbered(t, d, realm):
    """With copies the server's tokens would have the same numbers twice."""
    with gss.connect(d) as c:
        session = g.Session(c, realm.login(gss.BOB))
    files = make_files(t, d, session, "bob")
    for name, service in (("krb5i", g.INTEGRITY), ("krb5p", g.PRIVACY), ("krb5p again", g.PRIVACY)):
        t.check(f"{name}: a client that counts tokens has its data", burst(d, session, service, files))
    t.equal("from one copy", copied(d), 0)


def outcomes(d, session, n):
    """Refusals of n calls on each of several connections, all sent before an answer is read; None for one that was served."""
    conns = [gss.connect(d, session, g.INTEGRITY) for _ in range(CONNECTIONS)]
    found = set()
    for c in conns:
        for _ in range(n):
            c.send(session.call(r.NFS, 3, 0, b"", g.INTEGRITY, r.next_xid()))
    for c in conns:
        for _ in range(n):
            data = c.recv()
            # A reply that was denied by its auth_stat (RFC 5531 section 9), or an accepted one.
            found.add(int.from_bytes(data[16:20], "big") if data[8:12] == r.u32(1) else None)
        c.close()
    return found


def test_expiry(t, d, realm):
    """Copies end with the ticket: whichever of them looks at a call, and on whichever thread."""
    with gss.connect(d) as c:
        session = g.Session(c, realm.login(gss.ALICE, f"{TICKET}s"), flags=gssapi.MUTUAL)
    files = make_files(t, d, session, "short")
    until = time.monotonic() + DEADLINE
    several, seen = len(os.sched_getaffinity(0)) > 1, set()
    while several and copied(d) == 0 and time.monotonic() < until:
        burst(d, session, g.PRIVACY, files)
    while g.CTXPROBLEM not in seen and time.monotonic() < until + DEADLINE:
        seen |= outcomes(d, session, CALLS)
    t.equal("calls are served until the ticket ends", seen, {None, g.CTXPROBLEM})
    t.equal("and none of any connection behind it", outcomes(d, session, 8 * CALLS), {g.CTXPROBLEM})


def with_server(t, realm, *tests):
    os.environ.update(realm.env)
    settings = {**gss.settings(realm), "server.control_socket": realm.path("control")}
    with harness.Daemon({"all": "sec=krb5:krb5i:krb5p:sys,rw,insecure"}, settings, env={**os.environ}) as d:
        d.path = settings["server.control_socket"]
        for test in tests:
            test(t, d, realm)
        harness.finish(t, d)


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    with kdc.Realm() as realm:
        with_server(t, realm, test_copies, test_numbered)
    with kdc.Realm(clockskew=2) as realm:  # a server takes a ticket for that much longer
        with_server(t, realm, test_expiry)
    harness.result(t)


if __name__ == "__main__":
    main()
