#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""READ_PLUS over RDMA by a client of our own, as Linux's does not send it there. RFC 8267 section 6.1 does not make its data eligible
for a Write chunk: they come inline or by a Reply chunk, in at most two elements, and a Write chunk is left to the next READ."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import mounts
import nfs4client as n
from rdmaclient import Peer
from read_plus import DATA, HOLE, KIB, MIB, Client, content, joined, length, plus, sparse, wrong
from write_same import NONE, WRITE_SAME, block, same
from xattrs_rdma import Wire

PORT = 20049
OPTIONS = "rw,insecure,no_root_squash"
BADXDR = 10036
MOST = 2  # elements


def kinds(res):
    return [e[0] for e in res["elements"]]


def test_sizes(t, c, path):
    fh, want, wire = c.path(path), content(path), c.conn
    size = len(want)
    # Without chunks: what an inline reply has room for, and holes of any length.
    wire.reply_size = wire.write_size = 0
    res = c.plus(fh, 0, 1000)
    t.equal("inline", (joined(res["elements"]), res["eof"], kinds(res)), (want[:1000], False, [DATA]))
    res = c.plus(fh, 0, MIB)
    got = joined(res["elements"])
    t.check("inline, as much as has room", not wrong(res, 0, MIB, MOST) and 3000 < len(got) < 4096 and want.startswith(got) and
            not res["eof"], len(got))
    res = c.plus(fh, 64 * KIB, MIB - 64 * KIB)
    t.check("a hole needs no room", kinds(res)[:1] == [HOLE] and length(res["elements"][0]) > 500 * KIB, res["elements"][:1])
    # By a Reply chunk.
    wire.reply_size = MIB
    for offset, count, what in ((0, 750 * KIB, "data and holes"), (64 * KIB, 800 * KIB, "a hole, then data"),
                                (2 * MIB, MIB, "data, then a hole"), (3 * MIB, MIB, "a hole at the end")):
        res = c.plus(fh, offset, count)
        bad, got = wrong(res, offset, count, MOST), joined(res["elements"])
        t.check(f"{what}: two elements at most", not bad, bad)
        t.check(f"{what}: all of the range", got == want[offset:offset + count], len(got))
        t.equal(f"{what}: the end", res["eof"], offset + count >= size)
    t.equal("a hole, then data", kinds(c.plus(fh, 64 * KIB, 800 * KIB)), [HOLE, DATA])
    t.equal("data, then a hole", kinds(c.plus(fh, 2 * MIB, MIB)), [DATA, HOLE])
    c.plus(fh, 0, 750 * KIB)
    t.check("by the Reply chunk", wire.long > 750 * KIB, wire.long)
    wire.reply_size = 10000
    res = c.plus(fh, 0, MIB)
    got = joined(res["elements"])
    t.check("a short Reply chunk: as much as has room", not wrong(res, 0, MIB, MOST) and 9000 < len(got) < 10000 and want.startswith(got),
            len(got))
    wire.reply_size = MIB


def test_chunks(t, c, path):
    fh, want, wire = c.path(path), content(path), c.conn
    for reply_size in (0, MIB):
        wire.reply_size, wire.write_size = reply_size, MIB
        for offset, count in ((0, 1000), (0, MIB), (3 * MIB, MIB), (4 * MIB, MIB)):
            res = c.plus(fh, offset, count)
            got = joined(res["elements"])
            t.check(f"{count} bytes at {offset} beside a Write chunk", not wrong(res, offset, count, MOST) and
                    want[offset:offset + len(got)] == got and (got or res["eof"]), len(got))
            t.equal(f"{count} bytes at {offset}: nothing is in the chunk", wire.written, 0)
    wire.reply_size = MIB
    # In one COMPOUND with a READ, the chunk is the READ's wherever it stands.
    decoder = n.RESULTS[n.READ]
    n.RESULTS[n.READ] = lambda x, res: res.update(eof=x.flag(), length=x.u32())
    read = n.read(n.ANONYMOUS, 10, 3000)
    for ops in ([plus(0, 100 * KIB), read], [read, plus(0, 100 * KIB)], [plus(5, 1000), read, plus(2 * MIB, MIB)]):
        results = c.compound(n.putfh(fh), *ops)[1:]
        t.equal("each succeeds", [x["status"] for x in results], [0] * len(ops))
        t.equal("READ's data are in the chunk", (wire.written, wire.peer.get(3000, MIB)), (3000, want[10:3010]))
        for (op, args), res in zip(ops, results):
            if op != n.READ:
                offset = int.from_bytes(args[16:24], "big")
                got = joined(res["elements"])
                t.check("READ_PLUS's are not", got and want[offset:offset + len(got)] == got, len(got))
    n.RESULTS[n.READ] = decoder
    wire.write_size = 0


def test_write_same(t, c, path):
    """Its pattern is not eligible either: by a long call, but not by a Read chunk of its own."""
    fh, wire, pattern = c.path(path), c.conn, os.urandom(50000)
    t.equal("a pattern in a long call", c.last(n.putfh(fh), same(0, 65536, 3, 0, 7, 4096, pattern)).get("count"), 3 * 65536)
    t.check("on disk", content(path) == b"".join(block(65536, 0, 7 + i, 4096, pattern) for i in range(3)))
    wire.placed = b"placed by itself"
    t.equal("a pattern with a Read chunk of its own",
            c.last(n.putfh(fh), same(0, 64, 1, NONE, 0, 0, wire.placed))["status"], BADXDR)
    wire.placed = b""
    t.equal("the connection goes on", c.last(n.putfh(fh), same(0, 64, 1, NONE, 0, 0, b"x"))["op"], WRITE_SAME)


def main():
    mounts.own_namespace()
    t = harness.Count()
    with fabric.Fabric() as f:
        d = harness.Daemon({"xfs": OPTIONS}, {"rdma.enabled": "yes", "rdma.port": PORT}, before=f.command("server"),
                           env=f.environment())
        image = f"{d.top}/xfs.img"
        if why := mounts.make_image(image, "xfs") or mounts.mount_image(image, d.exports["xfs"]):
            harness.skip_all(why)
        with d:
            c = Client(d, "rdma")
            c.conn.close()
            c.conn = Wire(Peer(f.environment(), before=f.command("client")).connect("127.0.0.1", PORT))
            path = sparse(d.exports["xfs"] + "/file", 4 * MIB, [(0, 64 * KIB), (700 * KIB, 100 * KIB), (2 * MIB, 64 * KIB + 1)])
            test_sizes(t, c, path)
            test_chunks(t, c, path)
            test_write_same(t, c, sparse(d.exports["xfs"] + "/same", 0, []))
            c.close()
            harness.finish(t, d)
            mounts.umount(d.exports["xfs"])
    harness.result(t)


if __name__ == "__main__":
    main()
