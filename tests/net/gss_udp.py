#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Kerberos over datagrams, whose senders' addresses prove nothing: contexts made in the name of another host do not push out its own."""
import os

import gss
import gssclient as g
import harness
import kdc
import rpcclient as r
import udpclient

PLACES = 64  # for contexts, as few as there can be


def lives(d, session):
    try:
        with gss.connect(d, session) as c:
            c.call(r.NFS, 3, r.NULL)
        return True
    except r.Refused:
        return False


def test_contexts(t, d, cache):
    """The sender has the address of a client over TCP, and tickets of his own."""
    with gss.connect(d) as c:
        mine = [g.Session(c, cache) for _ in range(PLACES // 2)]
    with udpclient.Datagrams(d.port) as c:
        theirs = [g.Session(c, cache, prog=r.MOUNT) for _ in range(2 * PLACES)]
        x = c.exchange(theirs[-1].call(r.MOUNT, 3, 0, b"", g.NONE, 1))
        t.check("a context that is made by datagrams is of use", x[:12] == r.u32(1) + r.u32(1) + r.u32(0), x[:16])
    t.equal("contexts over TCP that live on", [lives(d, s) for s in mine], [True] * len(mine))


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        settings = {**gss.settings(realm), "gss.max_contexts": PLACES}
        with harness.Daemon({"all": "sec=krb5:sys,rw,insecure"}, settings, env={**os.environ}) as d:
            cache = realm.login(gss.ALICE)
            test_contexts(t, d, cache)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
