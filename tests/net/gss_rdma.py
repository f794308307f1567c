#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""RPCSEC_GSS over RDMA (RFC 8166 section 8.2.2): data are placed with the service none only; else calls and replies go whole."""
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
from rdmaclient import ERROR, NOMSG, REPLY_AT, Peer, RdmaError
from xattrs_rdma import PORT, Wire

SIZE = 512 << 10


class GssWire(Wire):
    """Calls under a session."""
    session, service = None, g.NONE

    def exchange(self, rpc, seconds=None):
        """The reply to a call; written and long tell what went by chunks. None: nothing came in that time."""
        self.peer.send(rpc[:4] + r.u32(1) + self.message(rpc))
        raw = self.peer.receive(seconds)
        if raw is None:
            return None
        x = r.In(raw)
        if x.take(4) != rpc[:4]:
            raise ValueError(f"not the reply: {raw[:16].hex()}")
        x.take(8)
        kind = x.u32()
        if kind == ERROR:
            raise RdmaError(raw[16:].hex())
        self.written = self.long = 0
        if x.u32():
            raise ValueError("a Read list in a reply")
        while x.u32():
            self.written += sum(struct.unpack(">IIQ", x.take(16))[1] for _ in range(x.u32()))
        if x.u32():
            self.long = sum(struct.unpack(">IIQ", x.take(16))[1] for _ in range(x.u32()))
        return self.peer.get(self.long, REPLY_AT) if kind == NOMSG else raw[x.at:]

    def nfs(self, proc, args, xid=None):
        xid, seq = r.next_xid() if xid is None else xid, self.session.number()
        data = self.exchange(self.session.call(r.NFS, 3, proc, args, self.service, xid, seq))
        return self.session.results(data, xid, seq, self.service)


def test_none(t, wire, fh, data):
    """As under AUTH_SYS: WRITE's data by a Read chunk, READ's by a Write chunk."""
    wire.service, wire.placed = g.NONE, data
    t.equal("krb5: WRITE by a Read chunk", r.decode(r.WRITE, wire.nfs(r.WRITE, r.write_args(fh, 0, data)))["status"], r.OK)
    wire.placed, wire.write_size = b"", len(data)
    x = wire.nfs(r.READ, r.read_args(fh, 0, len(data)))
    t.equal("krb5: READ", x.u32(), r.OK)
    t.equal("krb5: by the Write chunk", wire.written, len(data))
    t.check("krb5: the data", wire.peer.get(len(data), 1 << 20) == data)
    wire.write_size = 0


def test_whole(t, wire, fh, flavor, service):
    data = os.urandom(SIZE)
    wire.service = service
    t.equal(f"{flavor}: WRITE by a Long Call", r.decode(r.WRITE, wire.nfs(r.WRITE, r.write_args(fh, 0, data)))["status"], r.OK)
    for offered in (0, SIZE):
        wire.write_size = offered
        got = r.decode(r.READ, wire.nfs(r.READ, r.read_args(fh, 0, SIZE)))
        t.check(f"{flavor}: READ by a Long Reply, {offered} offered", got["data"] == data)
        t.equal(f"{flavor}: the Write chunk returns empty, {offered} offered", wire.written, 0)
        t.check(f"{flavor}: it was a Long Reply", wire.long > SIZE, wire.long)
        got = r.decode(r.READ, wire.nfs(r.READ, r.read_args(fh, 0, 100)))
        t.check(f"{flavor}: a short READ, {offered} offered", got["data"] == data[:100])
        t.equal(f"{flavor}: its Write chunk returns empty, {offered} offered", wire.written, 0)
    wire.write_size = 0


def test_chunks(t, d, wire, fh):
    """A Read chunk within protected arguments is refused, and nothing is written."""
    path = os.path.join(d.exports["all"], "file")
    before, data = os.stat(path).st_mtime_ns, b"placed by itself" * 64
    wire.service = g.INTEGRITY
    xid, seq = r.next_xid(), wire.session.number()
    message = wire.session.call(r.NFS, 3, r.WRITE, r.write_args(fh, 0, data), g.INTEGRITY, xid, seq)
    wire.placed = data
    try:
        r.reply_body(wire.exchange(message), xid)
        answer = "answered"
    except r.Refused as e:
        answer = e.why
    wire.placed = b""
    t.equal("krb5i: a Read chunk within the arguments", answer, "GARBAGE_ARGS")
    t.equal("nothing was written", os.stat(path).st_mtime_ns, before)


def test_room(t, d, wire, root):
    """A reply that does not fit is refused before anything is changed."""
    wire.service, wire.reply_size = g.PRIVACY, 0
    try:
        wire.nfs(r.READ, r.read_args(wire.file, 0, 20000))
        t.check("krb5p: a READ without room for its reply", False, "answered")
    except RdmaError:
        t.check("krb5p: a READ without room for its reply", True)
    made = r.decode(r.CREATE, wire.nfs(r.CREATE, r.create_args(root, "inline")))
    t.equal("krb5p: a CREATE inline", made["status"], r.OK)
    wire.reply_size = 1 << 20


def test_replays(t, wire, fh):
    """Calls that are discarded cost no credits."""
    wire.service = g.NONE
    xid, seq = r.next_xid(), wire.session.number()
    message = wire.session.call(r.NFS, 3, r.GETATTR, r.getattr_args(fh), g.NONE, xid, seq)
    r.reply_body(wire.exchange(message), xid)
    for _ in range(100):
        wire.peer.send(message[:4] + r.u32(1) + wire.message(message))
    t.equal("100 replays are discarded", wire.peer.receive(0.5), None)
    t.equal("and the connection goes on", r.decode(r.GETATTR, wire.nfs(r.GETATTR, r.getattr_args(fh)))["status"], r.OK)


def run(t, d, f, realm):
    with gss.connect(d) as c:
        root = c.mnt(d.exports["all"])[1]
    wire = GssWire(Peer({**f.environment(), **realm.env}, before=f.command("client")).connect("127.0.0.1", PORT))
    wire.session = g.Session(wire, realm.login(gss.ALICE))
    made = r.decode(r.CREATE, wire.nfs(r.CREATE, r.create_args(root, "file", attrs=r.sattr(mode=0o600))))
    t.equal("CREATE", made["status"], r.OK)
    t.equal("by the user", os.stat(os.path.join(d.exports["all"], "file")).st_uid, gss.UIDS[gss.ALICE])
    wire.file = made["fh"]
    test_none(t, wire, wire.file, os.urandom(SIZE))
    for flavor, service in (("krb5i", g.INTEGRITY), ("krb5p", g.PRIVACY)):
        test_whole(t, wire, wire.file, flavor, service)
    test_chunks(t, d, wire, wire.file)
    test_room(t, d, wire, root)
    test_replays(t, wire, wire.file)
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
