#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Protected calls and replies lie in several pieces of memory, and are signed and encrypted there: lengths around each border."""
import os

import gss
import gssclient as g
import harness
import kdc
import nfs4client as n4
import rpcclient as r

WRAPPED = {"krb5i": g.INTEGRITY, "krb5p": g.PRIVACY}
HEAD = 1024  # bytes of a record in its request's own memory; the rest lies in another buffer


def rotated(token, by):
    """The same token with its end in front, as RFC 4121 section 4.2.5 has it."""
    head, body = token[:16], token[16:]
    return head[:6] + by.to_bytes(2, "big") + head[8:] + body[-by:] + body[:-by]


def test_writes(t, d, session, flavor, service):
    """Data of each length by which the end of a call moves over the border."""
    with gss.connect(d, session, service) as c:
        root = c.mnt(d.exports["all"])[1]
        fh = c.nfs(r.CREATE, r.create_args(root, f"writes.{flavor}", attrs=r.sattr(mode=0o600)))["fh"]
        wrong = []
        for size in range(HEAD - 400, HEAD + 40):
            data = os.urandom(size)
            c.nfs(r.WRITE, r.write_args(fh, 0, data))
            if c.nfs(r.READ, r.read_args(fh, 0, size))["data"] != data:
                wrong.append(size)
        t.equal(f"{flavor}: WRITE of each length around the border", wrong, [])


def test_fragments(t, d, session, flavor, service):
    """A record in fragments lies in more buffers."""
    with gss.connect(d, session, service) as c:
        root = c.mnt(d.exports["all"])[1]
        fh = c.nfs(r.CREATE, r.create_args(root, f"fragments.{flavor}", attrs=r.sattr(mode=0o600)))["fh"]
        for size, step in ((3000, 7), (300000, 5000), (900000, 100001), (1 << 20, 700000)):
            data = os.urandom(size)
            xid, seq = r.next_xid(), session.number()
            message = session.call(r.NFS, 3, r.WRITE, r.write_args(fh, 0, data), service, xid, seq)
            session.results(c.exchange(message, step), xid, seq, service)
            got = c.nfs(r.READ, r.read_args(fh, 0, size))["data"]
            t.check(f"{flavor}: WRITE of {size} in fragments of {step}", got == data)


def test_again(t, d, session, flavor, service):
    """Nothing but the plain text counts when the reply cache compares a retransmission with its call."""
    with gss.connect(d, session, service) as c:
        root = c.mnt(d.exports["all"])[1]
        fh = c.nfs(r.CREATE, r.create_args(root, f"again.{flavor}", attrs=r.sattr(mode=0o600)))["fh"]
        xid, args = r.next_xid(), r.write_args(fh, 0, os.urandom(100001))
        first = r.decode(r.WRITE, c.call(r.NFS, 3, r.WRITE, args, xid=xid))
        c.nfs(r.WRITE, r.write_args(fh, 0, b"x" * 10))
        t.equal(f"{flavor}: a WRITE once more is answered from the cache", r.decode(r.WRITE, c.call(r.NFS, 3, r.WRITE, args, xid=xid)), first)
        t.equal(f"{flavor}: and does not run", c.nfs(r.READ, r.read_args(fh, 0, 10))["data"], b"x" * 10)


def test_rotated(t, d, session):
    t.equal("tokens of the library, which all other tests send, are not rotated", session.context.wrap(b"x")[4:8], bytes(4))
    with gss.connect(d, session, g.PRIVACY) as c:
        root = c.mnt(d.exports["all"])[1]
        fh = c.nfs(r.CREATE, r.create_args(root, "rotated", attrs=r.sattr(mode=0o600)))["fh"]
        for size in (10, 1000, 100000, 1 << 20):
            for by in (1, 28, 5000):
                data = os.urandom(size)
                if size < by:
                    continue
                c.call(r.NFS, 3, r.WRITE, r.write_args(fh, 0, data),
                       bend=lambda field, value, by=by: rotated(value, by) if field == "token" else value)
                t.check(f"a WRITE of {size} whose token is rotated by {by}", c.nfs(r.READ, r.read_args(fh, 0, size))["data"] == data)


def test_reads(t, d, session, flavor, service):
    with gss.connect(d, session, service) as c:
        root = c.mnt(d.exports["all"])[1]
        data = os.urandom(200000)
        with open(os.path.join(d.exports["all"], f"reads.{flavor}"), "wb") as f:
            f.write(data)
        fh = c.nfs(r.LOOKUP, r.diropargs(root, f"reads.{flavor}"))["fh"]
        sizes = [*range(1, 70), 4095, 4096, 4097, 16381, 16384, 65535, 65536, 131071, 199999]
        wrong = [n for n in sizes if c.nfs(r.READ, r.read_args(fh, 1, n))["data"] != data[1:n + 1]]
        t.equal(f"{flavor}: READ of odd lengths", wrong, [])
        link = "l" * 333
        os.symlink(link, os.path.join(d.exports["all"], f"link.{flavor}"))
        got = c.nfs(r.READLINK, r.getattr_args(c.nfs(r.LOOKUP, r.diropargs(root, f"link.{flavor}"))["fh"]))
        t.equal(f"{flavor}: READLINK", got["target"], link.encode())


def test_compound(t, d, realm, flavor, service):
    """Replies with many items, of lengths that end within a word and without."""
    with gss.connect(d) as c:
        session = g.Session(c, realm.login(gss.ALICE), vers=4)
    client = gss.Client4(d.port, session, service, f"pieces.{flavor}")
    client.keeps = False
    client.register(), client.reclaim_complete()
    opened, fh = client.open(client.path(d.exports["all"]), f"compound.{flavor}", create=True)
    data = os.urandom(200000)
    client.last(n4.putfh(fh), n4.write(opened["stateid"], 0, data))
    for n, size in ((1, 3), (2, 4), (2, 7), (4, 10001), (4, 20000), (7, 5), (12, 1)):
        wanted = [(i * 1000, size + i) for i in range(n)]
        got = client.compound(n4.putfh(fh), *(n4.read(opened["stateid"], at, length) for at, length in wanted))[-n:]
        t.check(f"{flavor}: {n} READs of {size} and more", [x.get("data") for x in got] == [data[at:at + length] for at, length in wanted], str(got)[:200])
    client.close_file(fh, opened["stateid"])
    client.close()


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        with harness.Daemon({"all": "sec=krb5:krb5i:krb5p:sys,rw,insecure"}, gss.settings(realm), env={**os.environ}) as d:
            with gss.connect(d) as c:
                session = g.Session(c, realm.login(gss.ALICE))
            for flavor, service in WRAPPED.items():
                test_writes(t, d, session, flavor, service)
                test_fragments(t, d, session, flavor, service)
                test_again(t, d, session, flavor, service)
                test_reads(t, d, session, flavor, service)
                test_compound(t, d, realm, flavor, service)
            test_rotated(t, d, session)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
