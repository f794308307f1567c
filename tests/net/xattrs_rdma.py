#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Extended attributes over RDMA: RFC 8267 makes neither names nor values eligible for chunks of their own, so long ones go by
long calls and long replies."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import mounts
import rpcclient as r
from nfs4client import putfh
from rdmaclient import CREDITS, ERROR, INLINE, MSG, NOMSG, REPLY_AT, Peer, RdmaError
from rpcclient import opaque, u32
from xattrs import EITHER, GETXATTR, NOXATTR, OPTIONS, SETXATTR, VALUE_MAX, Client, make

PORT = 20049
HEADER = 200  # bytes of a message before the call, at most
BADXDR = 10036


class Wire:
    """In the place of a connection over TCP. reply_size: of the Reply chunk; write_size: of a Write chunk; placed: bytes of the call
    that go by a Read chunk of their own."""

    def __init__(self, peer):
        self.peer, self.reply_size, self.write_size, self.placed = peer, 1 << 20, 0, b""

    def message(self, rpc):
        kind, reads, p = MSG, b"", self.peer
        if self.placed:
            at = rpc.index(self.placed)
            p.put(self.placed)
            reads = struct.pack(">II", 1, at) + p.segment(0, len(self.placed))
            rpc = rpc[:at] + rpc[at + len(self.placed) + -len(self.placed) % 4:]
        elif len(rpc) + HEADER > INLINE:
            p.put(rpc)
            reads, kind, rpc = struct.pack(">II", 1, 0) + p.segment(0, len(rpc)), NOMSG, b""
        writes = struct.pack(">II", 1, 1) + p.segment(1 << 20, self.write_size) if self.write_size else b""
        reply = struct.pack(">II", 1, 1) + p.segment(REPLY_AT, self.reply_size) if self.reply_size else u32(0)
        return struct.pack(">II", CREDITS, kind) + reads + u32(0) + writes + u32(0) + reply + rpc

    def call(self, prog, vers, proc, args=b"", cred=r.ROOT):
        xid = r.next_xid()
        self.peer.send(struct.pack(">II", xid, 1) + self.message(r.call_message(prog, vers, proc, args, cred, xid)))
        raw = self.peer.receive()
        x = r.In(raw)
        if (x.u32(), x.u32()) != (xid, 1):
            raise ValueError(f"not the reply: {raw[:16].hex()}")
        x.u32()
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
        return r.reply_body(self.peer.get(self.long, REPLY_AT) if kind == NOMSG else raw[x.at:], xid)

    def close(self):
        self.peer.close()


def test(t, c, path):
    fh, whole, wire = c.path(path), os.urandom(VALUE_MAX), c.conn
    t.equal("a long value", c.set(fh, "k", whole)["status"], 0)
    t.check("on disk", os.getxattr(path, "user.k") == whole)
    c.keeps = False
    t.check("back by a long reply", c.get(fh, "k").get("value") == whole)
    t.check("it was one", wire.long > VALUE_MAX, wire.long)
    wire.write_size = VALUE_MAX
    t.check("beside a Write chunk", c.get(fh, "k").get("value") == whole)
    t.equal("which has nothing in it", wire.written, 0)
    wire.write_size, wire.reply_size = 0, 5000
    try:
        t.check("a Reply chunk that is too short", False, c.get(fh, "k"))
    except RdmaError as e:
        t.equal("the transport says that a Reply chunk is too short", str(e), "00000002")
    c.seqid += 1  # SEQUENCE was done
    wire.reply_size = 1 << 20
    t.check("the connection and the session go on", c.get(fh, "k").get("value") == whole)
    wire.placed = b"placed by itself"
    t.equal("a value with a Read chunk of its own", c.last(putfh(fh), (SETXATTR, u32(EITHER) + r.name("other") + opaque(wire.placed)))
            ["status"], BADXDR)
    t.equal("a name with one", c.last(putfh(fh), (GETXATTR, opaque(wire.placed)))["status"], BADXDR)
    wire.placed = b""
    t.equal("nothing was set", c.get(fh, "other")["status"], NOXATTR)


def main():
    mounts.own_namespace()
    t = harness.Count()
    with fabric.Fabric() as f:
        d = harness.Daemon({"xfs": OPTIONS["xfs"]}, {"rdma.enabled": "yes", "rdma.port": PORT}, before=f.command("server"),
                           env=f.environment())
        image = f"{d.top}/xfs.img"
        if why := mounts.make_image(image, "xfs") or mounts.mount_image(image, d.exports["xfs"]):
            harness.skip_all(why)
        with d:
            c = Client(d, "rdma")
            c.conn.close()
            c.conn = Wire(Peer(f.environment(), before=f.command("client")).connect("127.0.0.1", PORT))
            test(t, c, make(d, "xfs", "file"))
            c.close()
            harness.finish(t, d)
            mounts.umount(d.exports["xfs"])
    harness.result(t)


if __name__ == "__main__":
    main()
