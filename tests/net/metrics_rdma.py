#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Metrics of RDMA: each is seen to grow by what it counts."""
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import rpcclient as r
from control import Control
from rdmaclient import MSG, NOMSG, Peer, RdmaError
from scrape import Growth, await_value, scrape, value

PORT, HOST, CREDITS, PARTS = 20049, "127.0.0.1", 32, 32
SIZE, LARGE, MEMORY, CONNECTIONS = 100000, 1 << 20, 64 << 20, 8
NOT_READY = "ringnfs_rdma_receive_not_ready_total"


def errors(g, error, reason):
    return g.of("ringnfs_rdma_errors_total", error=error, reason=reason)


def test_connections(t, f, d):
    before = scrape(d)
    with Growth(d) as g:
        p = Peer(f.environment(), before=f.command("client")).connect(HOST, PORT)
        p.send(p.message(r.NULL, b""))
        p.receive(30)
    t.equal("connections", value(g.after, "ringnfs_connections", transport="rdma"), 1)
    t.equal("accepted", g.of("ringnfs_connections_accepted_total", transport="rdma"), 1)
    t.equal("credits", value(g.after, "ringnfs_rdma_credits_granted"), CREDITS)
    t.equal("devices", value(g.after, "ringnfs_rdma_devices"), 1)
    t.check("memory of connections", value(g.after, "ringnfs_memory_bytes", account="rdma_connections") > 100000)
    t.equal("calls", g.of("ringnfs_received_calls_total", transport="rdma"), 1)
    t.check("posts", g.of("ringnfs_rdma_posts_total") >= 1)
    t.check("a device without the counter is left out", not any(name == NOT_READY for name, _ in before))
    return p


def test_not_ready(t, d, devices):
    """The device counts Receives that were missing, under one of three names; here a file is in its place."""
    for name in ("rnr_nak_sent", "send_rnr_err", "out_of_buffer"):  # the later is preferred
        path = os.path.join(devices, "infiniband", "sv0", "ports", "1", "hw_counters", name)
        with open(path, "w") as f:
            f.write("1005\n")
        with Growth(d) as g:
            with open(path, "w") as f:
                f.write("1009\n")
        t.equal(f"Receives that were missing, by {name}", g.of(NOT_READY, device="sv0"), 4)
    with open(path, "w") as f:
        f.write("none\n")
    t.check("a counter that is no number is left out", not any(name == NOT_READY for name, _ in scrape(d)))


def test_invalidations(t, f, d, fh):
    """A client that lets the server invalidate its key, which one reply can do, and one that does not."""
    for invalidate in (False, True):
        p = Peer(f.environment(), before=f.command(f"invalidate{invalidate}")).connect(HOST, PORT, invalidate=invalidate)
        with Growth(d) as g:
            t.equal("READ", len(p.nfs(r.READ, r.read_args(fh, 0, SIZE))["data"]), SIZE)
        t.equal("keys that were invalidated", g.of("ringnfs_rdma_invalidations_total"), int(invalidate))
        p.kill()


def test_room(t, f, d):
    """One client with more connections than there may be."""
    peers = []
    with Growth(d) as g:
        for i in range(CONNECTIONS + 3):
            peers.append(Peer(f.environment(), before=f.command(f"crowd{i}")))
            t.check("a connection beyond those that may be", becomes(lambda: connects(peers[-1])))
    closed = g.of("ringnfs_connections_closed_for_room_total", transport="rdma")
    t.check("connections closed to make room", closed >= 3, closed)
    t.equal("and none over TCP", g.of("ringnfs_connections_closed_for_room_total", transport="tcp"), 0)
    for p in peers:
        p.kill()


def becomes(true, looks=100):
    """A connection is refused for a moment while another leaves."""
    for _ in range(looks):
        if true():
            return True
        time.sleep(0.1)
    return False


def test_data(t, d, p, fh):
    with Growth(d) as g:
        t.equal("WRITE", p.nfs(r.WRITE, r.write_args(fh, 0, b"x" * SIZE))["status"], 0)
    t.equal("Read chunks", (g.of("ringnfs_rdma_chunks_total", kind="read"), g.of("ringnfs_rdma_chunks_total", kind="call")), (1, 0))
    t.equal("their segments", g.of("ringnfs_rdma_segments_total", kind="read"), 1)
    t.equal("RDMA Reads", g.of("ringnfs_rdma_reads_total"), 1)
    t.equal("their bytes", g.of("ringnfs_rdma_read_bytes_total"), SIZE)
    t.equal("bytes written", g.of("ringnfs_written_bytes_total"), SIZE)
    with Growth(d) as g:
        t.equal("READ", len(p.nfs(r.READ, r.read_args(fh, 0, SIZE))["data"]), SIZE)
    t.equal("Write chunks", g.of("ringnfs_rdma_chunks_total", kind="write"), 1)
    t.equal("their segments", g.of("ringnfs_rdma_segments_total", kind="write"), 1)
    t.check("RDMA Writes", g.of("ringnfs_rdma_writes_total") >= 1)
    t.equal("their bytes", g.of("ringnfs_rdma_written_bytes_total"), SIZE)
    t.equal("bytes read", g.of("ringnfs_read_bytes_total"), SIZE)


def test_long(t, d, p, root):
    for i in range(200):
        with open(os.path.join(d.exports["x"], f"a-long-name-of-a-file-{i}"), "w"):
            pass
    with Growth(d) as g:
        t.equal("READDIR", p.nfs(r.READDIR, r.readdir_args(root, count=32768))["status"], 0)
    t.equal("Reply chunks", g.of("ringnfs_rdma_chunks_total", kind="reply"), 1)
    t.equal("their segments", g.of("ringnfs_rdma_segments_total", kind="reply"), 1)
    xid = r.next_xid()
    call = r.call_message(r.NFS, 3, r.GETATTR, r.opaque(root), xid=xid)
    with Growth(d) as g:
        p.put(call)
        p.send(struct.pack(">IIII", xid, 1, 8, NOMSG) + struct.pack(">II", 1, 0) + p.segment(0, len(call)) + r.u32(0) * 3)
        t.equal("a call in a chunk", p.receive()[:4], struct.pack(">I", xid))
    t.equal("chunks with calls", (g.of("ringnfs_rdma_chunks_total", kind="call"), g.of("ringnfs_rdma_chunks_total", kind="read")), (1, 0))


def test_errors(t, d, p, fh):
    call = r.call_message(r.NFS, 3, r.GETATTR, r.opaque(fh))
    head = call[:4]
    cases = (("ERR_VERS", "version", head + struct.pack(">III", 2, 8, MSG) + r.u32(0) * 3 + call),
             ("ERR_CHUNK", "header", head + struct.pack(">III", 1, 8, MSG) + r.u32(7) * 3 + call),
             ("ERR_CHUNK", "chunks", head + struct.pack(">III", 1, 8, MSG) + struct.pack(">II", 1, 2) + p.segment(0, 8) + r.u32(0) * 3 + call),
             ("ERR_CHUNK", "message", head + struct.pack(">III", 1, 8, MSG) + r.u32(0) * 3 + b"\0" * 40))
    for error, reason, message in cases:
        with Growth(d) as g:
            p.send(message)
            t.check(f"{error}: {reason}: an answer", p.receive(30) is not None)
        t.equal(f"{error}: {reason}", errors(g, error, reason), 1)
        t.equal(f"{error}: {reason} and no other", g.of("ringnfs_rdma_errors_total"), 1)
    with Growth(d) as g:
        try:  # a Write chunk that is too short
            p.send(p.message(r.READ, r.read_args(fh, 0, SIZE)))
            p.reply(r.READ, p.receive(30))
            t.check("a reply without room", False)
        except RdmaError:
            t.check("a reply without room", True)
        except ValueError as e:
            t.check("a reply without room", False, e)
    t.equal("ERR_CHUNK: reply_room", errors(g, "ERR_CHUNK", "reply_room"), 1)


def test_waits(t, f, d, p, fh):
    """Replies of so many parts that the send queue, which the device holds up for a while, has no room for all."""
    xids = [r.next_xid() for _ in range(CREDITS)]
    rpc = r.read_args(fh, 0, PARTS * 16)
    with Growth(d) as g:
        f.control(d.process.pid, "on write 1 : delay 1s")
        for xid in xids:
            chunk = struct.pack(">II", 1, PARTS) + b"".join(p.segment(16 * i, 16) for i in range(PARTS))
            p.send(struct.pack(">IIII", xid, 1, CREDITS, MSG) + r.u32(0) + chunk + r.u32(0) * 2 + r.call_message(r.NFS, 3, r.READ, rpc, xid=xid))
        answered = {struct.unpack(">I", p.receive(30)[:4])[0] for _ in xids}
    t.equal("READs into many segments", answered, set(xids))
    t.check("waits for the send queue", 1 <= g.of("ringnfs_rdma_send_queue_waits_total") <= CREDITS, g.of("ringnfs_rdma_send_queue_waits_total"))
    t.equal("RDMA Writes", g.of("ringnfs_rdma_writes_total"), PARTS * CREDITS)


def test_memory(t, f, d):
    """Calls of several clients that move more than memory_max at a time, while the device holds up the data."""
    with open(os.path.join(d.exports["x"], "large"), "wb") as file:
        file.truncate(LARGE)
    with d.connect() as c:
        fh = c.nfs(r.LOOKUP, r.diropargs(d.root(c, "x"), "large"))["fh"]
    peers = [Peer(f.environment(), before=f.command(f"reader{i}")).connect(HOST, PORT) for i in range(MEMORY // LARGE // CREDITS + 2)]
    with Growth(d) as g:
        f.control(d.process.pid, f"on write 1 times {len(peers) * CREDITS} every 1 : delay 60ms")
        for p in peers:
            for _ in range(CREDITS):
                p.send(p.message(r.READ, r.read_args(fh, 0, LARGE), read_size=LARGE))
        answers = [p.receive(60) for p in peers for _ in range(CREDITS)]
    t.check("all READs are answered", all(answers))
    t.equal("and have read", g.of("ringnfs_read_bytes_total"), LARGE * CREDITS * len(peers))
    t.check("calls have waited for memory", g.of("ringnfs_memory_waits_total") >= 1)
    t.check("the bound holds", value(g.after, "ringnfs_memory_used_bytes") <= MEMORY)
    f.control(d.process.pid, "clear")
    for p in peers:
        p.close()


def test_broken(t, f, d, fh):
    """A client that names memory which it has not, and one for whom there is no room."""
    failed = 0
    for _ in range(5):
        with Growth(d) as g:
            p = Peer(f.environment(), before=f.command("wrong")).connect(HOST, PORT)
            p.rkey ^= 0x5a5a5a
            p.send(p.message(r.READ, r.read_args(fh, 0, SIZE), read_size=SIZE))
            t.check("a Write chunk in no memory ends the connection", p.closed(30))
            p.kill()
        # The client may hear of the end before the server does; and if the client's end comes first, no work has failed.
        failed = await_value(d, "ringnfs_rdma_completion_errors_total", lambda v: v > 0)
        if failed:
            break
    t.equal("work that failed", failed, 1)
    with Growth(d) as g:
        f.control(d.process.pid, "on reg-mr 1 : fail 12")
        p = Peer(f.environment(), before=f.command("late"))
        t.check("a connection for which no memory can be registered", not connects(p))
        p.kill()
    t.equal("connections refused", g.of("ringnfs_connections_refused_total", transport="rdma"), 1)
    t.equal("and accepted", g.of("ringnfs_connections_accepted_total", transport="rdma"), 0)


def connects(p):
    try:
        p.connect(HOST, PORT)
        return True
    except r.Closed:
        return False


def main():
    t = harness.Count()
    settings = {"rdma.enabled": "yes", "rdma.port": PORT, "rdma.credits": CREDITS, "server.memory_max": MEMORY, "rdma.max_connections": CONNECTIONS}
    with fabric.Fabric(f"sv0={HOST}") as f:
        d = Control(settings, exports={"x": "rw,insecure,no_root_squash"}, env=f.environment())
        devices = os.path.join(d.top, "class")
        os.makedirs(os.path.join(devices, "infiniband", "sv0", "ports", "1", "hw_counters"))
        d.before += ["sh", "-c", 'mount --bind "$0" /sys/class && exec "$@"', devices, *f.command("server")]
        with d:
            p = test_connections(t, f, d)
            with open(os.path.join(d.exports["x"], "file"), "wb"):
                pass
            with d.connect() as c:
                root = d.root(c, "x")
                fh = c.nfs(r.LOOKUP, r.diropargs(root, "file"))["fh"]
            test_not_ready(t, d, devices)
            test_data(t, d, p, fh)
            test_invalidations(t, f, d, fh)
            test_long(t, d, p, root)
            test_errors(t, d, p, fh)
            test_waits(t, f, d, p, fh)
            test_memory(t, f, d)
            test_broken(t, f, d, fh)
            test_room(t, f, d)
            p.kill()
            t.equal("credits of connections that are gone", await_value(d, "ringnfs_rdma_credits_granted", lambda v: v == 0), 0)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
