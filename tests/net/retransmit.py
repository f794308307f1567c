#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Calls sent twice: one that changes something is done once, and both times answered with the same bytes."""
import os
import select

import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon


HOST = ("127.0.3.7", 0)  # nobody else's: its ports are free to be taken again


def replay_rows(root):
    """(name, what comes before, procedure, arguments, what the same call says when it is a new one)."""
    create = (r.CREATE, r.create_args(root, "f"))
    mkdir = (r.MKDIR, r.mkdir_args(root, "d"))
    return [
        ("CREATE GUARDED", [], r.CREATE, r.create_args(root, "new", r.GUARDED), r.EXIST),
        ("MKDIR", [], r.MKDIR, r.mkdir_args(root, "newdir"), r.EXIST),
        ("SYMLINK", [], r.SYMLINK, r.symlink_args(root, "newlink", "target"), r.EXIST),
        ("MKNOD", [], r.MKNOD, r.mknod_args(root, "newfifo", r.FIFO), r.EXIST),
        ("REMOVE", [create], r.REMOVE, r.remove_args(root, "f"), r.NOENT),
        ("RMDIR", [mkdir], r.RMDIR, r.rmdir_args(root, "d"), r.NOENT),
        ("RENAME", [create], r.RENAME, r.rename_args(root, "f", root, "g"), r.NOENT),
        ("REMOVE that fails", [], r.REMOVE, r.remove_args(root, "nothing"), r.NOENT),
    ]


def status(raw, proc):
    return r.decode(proc, r.reply_body(raw))["status"]


def test_replay(t, d, root):
    for what, before, proc, args, fresh in replay_rows(root):
        message = r.call_message(r.NFS, 3, proc, args)
        with d.connect(source=HOST) as one:
            for p, a in before:
                t.equal(f"{what}: preparation", one.nfs(p, a)["status"], r.OK)
            first = one.exchange(message)
            t.equal(f"{what}: the same again on one connection", one.exchange(message), first)
            with one.again() as two:
                t.equal(f"{what}: the same again on a new connection", two.exchange(message), first)
                t.equal(f"{what}: a new call", two.nfs(proc, args)["status"], fresh)
                t.equal(f"{what}: once more", two.exchange(message), first)
                with d.connect(source=HOST) as three:
                    t.equal(f"{what}: the same from another port is a new call", status(three.exchange(message), proc), fresh)
        if what != "REMOVE that fails":
            t.equal(f"{what}: status", status(first, proc), r.OK)


def test_link(t, d, root):
    with d.connect() as c:
        fh = c.nfs(r.CREATE, r.create_args(root, "linked"))["fh"]
        message = r.call_message(r.NFS, 3, r.LINK, r.link_args(fh, root, "link"))
        first = c.exchange(message)
        t.equal("LINK", status(first, r.LINK), r.OK)
        t.equal("LINK again", c.exchange(message), first)


def test_guarded_setattr(t, d, root):
    """The guard no longer holds the second time: only the cache can say OK."""
    with d.connect() as c:
        made = c.nfs(r.CREATE, r.create_args(root, "guarded"))
        message = r.call_message(r.NFS, 3, r.SETATTR, r.setattr_args(made["fh"], r.sattr(mode=0o600), made["attr"]["ctime"]))
        first = c.exchange(message)
        t.equal("SETATTR with guard", status(first, r.SETATTR), r.OK)
        t.equal("SETATTR with guard again", c.exchange(message), first)


def test_same_xid_other_call(t, d, root):
    """An xid that comes round again with other arguments, or another user, is another call."""
    with d.connect() as c:
        for n in ("one", "two", "three"):
            raw = c.exchange(r.call_message(r.NFS, 3, r.CREATE, r.create_args(root, n, r.GUARDED), xid=77))
            t.equal(f"CREATE {n} under one xid", status(raw, r.CREATE), r.OK)
        raw = c.exchange(r.call_message(r.NFS, 3, r.CREATE, r.create_args(root, "one", r.GUARDED), r.auth_sys(5, 5), xid=77))
        t.equal("the same by another user", status(raw, r.CREATE), r.EXIST)
        raw = c.exchange(r.call_message(r.NFS, 3, r.MKDIR, r.mkdir_args(root, "four"), xid=77))
        t.equal("another procedure", status(raw, r.MKDIR), r.OK)


def test_write_tail(t, d, root):
    """Two WRITEs under one xid that differ only far behind their beginning are both done."""
    with d.connect() as c:
        fh = c.nfs(r.CREATE, r.create_args(root, "tail"))["fh"]
        data = os.urandom(1 << 20)
        for body in (data, data[:-1] + bytes([data[-1] ^ 1])):
            message = r.call_message(r.NFS, 3, r.WRITE, r.write_args(fh, 0, body, r.FILE_SYNC), xid=88)
            t.equal("WRITE", status(c.exchange(message), r.WRITE), r.OK)
            with open(os.path.join(d.exports["x"], "tail"), "rb") as f:
                t.check("what was written last is there", f.read() == body)


def answers(conn, message, seconds, first=0):
    """The replies to a message until nothing has come for so long; the first may take its time, and late ones to others are none of it."""
    out = []
    while select.select([conn.s], [], [], seconds if out else max(first, seconds))[0]:
        try:
            raw = conn.recv()
            out += [raw] if raw[:4] == message[:4] else []
        except r.Closed:
            break
    return out


def test_in_flight(t, d, root):
    """The copies arrive while the first is still at work, or just after: done once, one answer or equal ones."""
    with d.connect() as c:
        fh = c.nfs(r.CREATE, r.create_args(root, "big"))["fh"]
        data = os.urandom(1 << 20)
        c.nfs(r.WRITE, r.write_args(fh, 0, data))
        for i in range(20):
            message = r.call_message(r.NFS, 3, r.RENAME, r.rename_args(root, "big" if i % 2 == 0 else "gib", root, "gib" if i % 2 == 0 else "big"))
            record = r.u32(len(message) | 0x80000000) + message
            c.send_raw(record * 4)
            got = answers(c, message, 0.05, 20)
            t.check("RENAME sent four times at once", got and len(set(got)) == 1 and status(got[0], r.RENAME) == r.OK,
                    [status(g, r.RENAME) for g in got])
        for i in range(3):
            message = r.call_message(r.NFS, 3, r.CREATE, r.create_args(root, f"flight{i}", r.GUARDED))
            with d.connect(source=HOST) as lost:
                lost.send(message)
                with lost.again() as other:
                    other.send(message)
                    other.send(message)
                    got = answers(other, message, 0.3, 20)
            t.check("CREATE sent again as its connection breaks", got and len(set(got)) == 1 and status(got[0], r.CREATE) == r.OK,
                    [status(g, r.CREATE) for g in got])


def test_slot_in_flight(t, d, root):
    """A session's request on four connections at once: done once, and all that are answered at all are told the same. Of the copies
    that wait for the first, the last is answered; those before it are told to come again."""
    del root
    client = n4.Client(d.port, "in flight")
    client.register(), client.reclaim_complete()
    fh = client.path(d.exports["x"])
    conns = [d.connect() for _ in range(4)]
    delayed = 0
    for i in range(50):
        client.seqid += 1
        body = r.opaque(b"") + r.u32(1) + r.u32(3)
        body += r.u32(n4.SEQUENCE) + client.session + r.u32(client.seqid) + r.u32(0) + r.u32(0) + r.u32(1)
        body += r.u32(n4.PUTFH) + r.opaque(fh) + r.u32(6) + r.u32(2) + r.name(f"slot{i}") + r.u32(0) + r.u32(0)
        message = r.call_message(r.NFS, 4, 1, body)
        for conn in conns:
            conn.send(message)
        got = [conn.recv() for conn in conns]
        done = [raw for raw in got if r.reply_body(raw).u32() == n4.OK]
        late = [raw for raw in got if r.reply_body(raw).u32() == n4.DELAY]
        delayed += len(late)
        t.check("CREATE on four connections", len(done) >= 2 and len(set(done)) == 1 and len(done) + len(late) == 4,
                [r.reply_body(raw).u32() for raw in got])
    print(f"# {delayed} of 200 were told to come again")
    for conn in [*conns, client]:
        conn.close()


def test_slot_replay(t, d, root):
    """A session's request that is answered by what was kept, though it moves between threads: it begins in no export, and ends in one."""
    del root
    client = n4.Client(d.port, "replayed")
    client.register(), client.reclaim_complete()
    names = d.exports["x"].strip("/").split("/")
    walk = [r.u32(n4.PUTROOTFH), *(r.u32(op) + args for op, args in map(n4.lookup, names))]
    create = r.u32(6) + r.u32(2) + r.name("replayed") + r.u32(0) + r.u32(0)
    save = r.u32(n4.SAVEFH)
    for what, ops in (("LOOKUP", walk), ("GETFH", [*walk, r.u32(n4.GETFH)]), ("CREATE", [*walk, save, create]), ("nothing", [])):
        client.seqid += 1
        sequence = r.u32(n4.SEQUENCE) + client.session + r.u32(client.seqid) + r.u32(0) * 2 + r.u32(1)
        message = r.call_message(r.NFS, 4, 1, r.opaque(b"") + r.u32(1) + r.u32(1 + len(ops)) + sequence + b"".join(ops))
        with d.connect() as one, d.connect() as two:
            first = one.exchange(message)
            t.equal(f"{what} behind PUTROOTFH", r.reply_body(first).u32(), n4.OK)
            for i in range(3):
                t.equal(f"{what} behind PUTROOTFH again, {i}", (one if i % 2 else two).exchange(message), first)
    client.close()


def test_bounded(t, d, root):
    """Far more calls than the cache has entries: memory stays, and the newest are still remembered."""
    with d.connect() as c:
        before = d.rss()
        for i in range(20000):
            last = r.call_message(r.NFS, 3, r.REMOVE, r.remove_args(root, f"no{i}"))
            raw = c.exchange(last)
        t.equal("the newest is remembered", c.exchange(last), raw)
        grown = d.rss() - before
        t.check("memory for 20,000 calls", grown < 64 << 20, f"{grown >> 10} KiB")


def main():
    t = Count()
    with Daemon({"x": "rw,no_root_squash,insecure"}, {"nfs3.drc_size": 1024, "nfs3.drc_memory": "1M"}) as d:
        with d.connect() as c:
            root = d.root(c, "x")
        for test in (test_replay, test_link, test_guarded_setattr, test_same_xid_other_call, test_write_tail, test_in_flight, test_slot_in_flight, test_slot_replay,
                     test_bounded):
            test(t, d, root)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
