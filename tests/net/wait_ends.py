#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""What ends the wait of a call, whatever it waits for: a client that goes, a reload, the end of the daemon. And whom a COMPOUND that goes
on in a file system that does not answer holds up.

The file systems that do not answer are ext4 by loop devices, frozen by fsfreeze, as in stuck.py.
"""
import os
import signal
import struct
import sys
import threading
import time

import copies_async  # noqa: F401 - knows COPY's results
import delegations as de
import harness
import nfs4client as n4
import rpcclient as r
from control import Control
from control_calls import rows
from harness import Count
from rpcclient import opaque, u32, u64
from stuck import OPTIONS, Loop, answered

SAVEFH, RESTOREFH, COPY, OFFLOAD_CANCEL = 32, 31, 60, 66
HOST = ("127.0.3.9", 0)  # nobody else's: its ports are free to be taken again
CALL, COPIED, ATTRIBUTES, RECORD, HELD = ("the same call's first transmission", "the end of a copy", "a delegation's holder",
                                          "a client's record on disk", "what another client holds")
SOON = 1.5  # seconds: a wait whose client has gone ends within a quarter of one, and holders have two to answer
MIB = 1 << 20


def waits(d):
    return [c["waits_for"] for c in rows(d) if "waits_for" in c]


def begins(d, what, n=1, seconds=5):
    end = time.monotonic() + seconds
    while waits(d).count(what) < n and time.monotonic() < end:
        time.sleep(0.01)
    return waits(d).count(what)


def ends(d, what, seconds=SOON):
    end = time.monotonic() + seconds
    while (left := waits(d)).count(what) and time.monotonic() < end:
        time.sleep(0.02)
    return left.count(what)


def reset(conn):
    """Closes it as a host that has restarted does."""
    conn.s.setsockopt(r.socket.SOL_SOCKET, r.socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def send_compound(c, conn, *ops, seqid=None):
    """Sends a COMPOUND of the client's next, or of that, sequence number over conn."""
    seqid = c.seqid + 1 if seqid is None else seqid
    head = (n4.SEQUENCE, c.session + u32(seqid) + u32(0) + u32(0) + u32(1))
    body = b"".join(u32(op) + args for op, args in (head, *ops))
    xid = r.next_xid()
    conn.send(r.call_message(r.NFS, 4, 1, opaque(b"") + u32(c.minor) + u32(1 + len(ops)) + body, xid=xid))
    return xid


def made(name):
    return n4.CREATE, u32(2) + opaque(name.encode()) + u32(0) + opaque(b"")


def test_first_transmission(t, d, loop):
    """Retransmissions over a new connection wait for the first transmission, which is stuck."""
    with d.connect() as c:
        bad = d.root(c, "bad")
    one = d.connect(source=HOST)
    loop.freeze()
    message = r.call_message(r.NFS, 3, r.MKDIR, r.mkdir_args(bad, "first", r.sattr(mode=0o755)))
    one.send(message)
    time.sleep(0.3)
    two = one.again()
    two.send(message)
    t.equal("a retransmission waits", begins(d, CALL), 1)
    three = two.again()
    three.send(message)
    end = time.monotonic() + SOON
    while waits(d).count(CALL) != 1 and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.5)
    t.equal("after that has gone, one still does", waits(d).count(CALL), 1)
    loop.thaw()
    three.s.settimeout(30)
    t.equal("which gets the answer of the first", r.decode(r.MKDIR, r.reply_body(three.recv()))["status"], 0)
    three.close()


def test_slot(t, d, loop):
    """Retries of a slot's request over other connections."""
    c = de.new_client(d, "slot", 1, n4.Client)
    bad = c.path(d.exports["bad"])
    loop.freeze()
    request = (n4.putfh(bad), made("slotted"))
    first = send_compound(c, c.conn, *request)
    time.sleep(0.3)
    two = d.connect()
    send_compound(c, two, *request)
    t.equal("a retry waits", begins(d, CALL), 1)
    reset(two)
    t.equal("until its client has gone", ends(d, CALL), 0)
    three = d.connect(timeout=30)
    send_compound(c, three, *request)
    t.equal("another waits", begins(d, CALL), 1)
    loop.thaw()
    x = r.reply_body(three.recv())
    t.equal("and is answered", x.u32(), n4.OK)
    t.equal("as the first is", r.reply_body(c.conn.recv(), first).u32(), n4.OK)
    three.close()
    c.close()


def test_copy(t, d, loop):
    """OFFLOAD_CANCEL waits for the piece that is being copied."""
    c = de.new_client(d, "copies", 2, de.Called)
    with open(os.path.join(d.exports["bad"], "from"), "wb") as f:
        f.write(b"x" * (32 * MIB))
    root = c.path(d.exports["bad"])
    src, from_fh = c.open(root, "from", access=n4.SHARE_READ)
    dst, to_fh = c.open(root, "to", True, access=n4.SHARE_BOTH)
    res = c.last(n4.putfh(from_fh), (SAVEFH, b""), n4.putfh(to_fh),
                 (COPY, src["stateid"] + dst["stateid"] + u64(0) + u64(0) + u64(0) + u32(1) + u32(0) + u32(0)))
    loop.freeze()
    if not t.equal("the copy is asynchronous", res.get("synchronous"), False):
        return
    time.sleep(0.3)
    sid = res["callbacks"][0]
    send_compound(c, c.conn, n4.putfh(to_fh), (OFFLOAD_CANCEL, sid))
    if begins(d, COPIED) != 1:
        t.skip("OFFLOAD_CANCEL", "the copy had ended")
    reset(c.conn)
    t.equal("its wait ends", ends(d, COPIED), 0)
    again = d.connect(timeout=30)
    send_compound(c, again, n4.putfh(to_fh), (OFFLOAD_CANCEL, sid))
    time.sleep(0.2)
    t.check("its retry is not told that the copy has ended, while it has not", not answered(again) or r.reply_body(again.recv()).u32() == n4.DELAY)
    loop.thaw()
    again.close()


def test_attributes(t, d):
    """GETATTR waits for the answer of a delegation's holder."""
    holder = de.new_client(d, "asked")
    holder.answers = False
    root = holder.path(d.exports["one"])
    made_, fh = holder.open(root, "asked", True, access=n4.SHARE_BOTH)
    if made_.get("delegation") != n4.DELEGATE_WRITE:
        t.skip("CB_GETATTR", f"no write delegation: {made_}")
        holder.close()
        return
    c = de.new_client(d, "asks", 1, n4.Client)
    send_compound(c, c.conn, n4.putfh(fh), n4.getattr_op())
    t.equal("GETATTR waits", begins(d, ATTRIBUTES), 1)
    began = time.monotonic()
    reset(c.conn)
    t.equal("its wait ends", ends(d, ATTRIBUTES), 0)
    t.check("before the holder's time is over", time.monotonic() - began < SOON, time.monotonic() - began)
    again = d.connect(timeout=30)
    xid = send_compound(c, again, n4.putfh(fh), n4.getattr_op(), seqid=c.seqid + 2)
    holder.answers = True
    other = de.Other(lambda: {"status": 0})
    other.end()
    holder.close()
    r.reply_body(again.recv(), xid)
    again.close()


def test_record(t):
    """The first OPEN of a client waits for its record on disk."""
    d = Control({"nfs4.grace_time": 5}, exports={"one": OPTIONS})
    loop = Loop(d.top + "/state", d.top + "/image")
    try:
        os.chmod(d.top + "/state", 0o700)
        with d:
            clients = [de.new_client(d, f"records {i}", 1, n4.Client) for i in range(2)]
            root = clients[0].path(d.exports["one"])
            while clients[0].open(root, "warm", True)[0]["status"] == n4.GRACE:
                time.sleep(0.2)
            loop.freeze()
            c = clients[1]
            how = u32(1) + u32(0) + u32(2) + u32(0) + u32(2) + opaque(u32(0o666))
            send_compound(c, c.conn, n4.putfh(root), (n4.OPEN, c._open_owner(n4.SHARE_BOTH, 0) + how + u32(n4.CLAIM_NULL) + r.name("recorded")))
            t.equal("OPEN waits", begins(d, RECORD), 1)
            reset(c.conn)
            t.equal("its wait ends", ends(d, RECORD), 0)
            loop.thaw()
            again = d.connect(timeout=30)
            send_compound(c, again, n4.putfh(root), (n4.OPEN, c._open_owner(n4.SHARE_BOTH, 0) + how + u32(n4.CLAIM_NULL) + r.name("recorded")))
            t.check("a retry is answered", r.reply_body(again.recv()).u32() in (n4.OK, n4.DELAY, 10076))
            again.close()
            clients[0].close()
            harness.finish(t, d)
    finally:
        loop.close()


def held_call(t, d, name):
    """A holder, and a call of NFSv3 that waits for its delegation."""
    holder = de.new_client(d, name)
    _, fh, stateid, deleg = de.delegated(t, d, holder, name)
    v3 = d.connect(timeout=30)
    fh3 = v3.nfs(r.LOOKUP, r.diropargs(d.root(v3, "one"), name))["fh"]
    v3.send(r.call_message(r.NFS, 3, r.SETATTR, r.setattr_args(fh3, r.sattr(mode=0o600))))
    holder.await_callback(n4.CB_RECALL, 1)
    t.equal(f"{name}: a call waits", begins(d, HELD), 1)
    return holder, v3


def test_reload(t, d):
    """A reload that takes the export away."""
    holder, v3 = held_call(t, d, "reloaded")
    began = time.monotonic()
    d.write_exports([f"{d.exports['bad']} 127.0.0.0/8({OPTIONS})"])
    d.reload()
    t.equal("its wait ends", ends(d, HELD), 0)
    t.check("soon", time.monotonic() - began < 30, time.monotonic() - began)
    status = r.decode(r.SETATTR, r.reply_body(v3.recv()))["status"]
    t.check("it is answered", status in (r.JUKEBOX, r.STALE), status)
    d.write_exports([f"{d.exports[n]} 127.0.0.0/8({OPTIONS})" for n in ("one", "bad", "good")])
    d.reload()
    v3.close()
    holder.close()


def test_two(t):
    """A COMPOUND begins in one file system and gets stuck in another. An operation that its worker had under way in the first is answered
    all the same."""
    d = Control({"server.threads": 1}, exports={"good": OPTIONS, "bad": OPTIONS})
    loops = [Loop(d.exports[n], f"{d.top}/{n}.image") for n in ("good", "bad")]
    try:
        with d, d.connect(timeout=20) as c:
            good, bad = loops
            mixed = de.new_client(d, "mixed", 1, n4.Client)
            roots = [mixed.path(d.exports[n]) for n in ("good", "bad")]
            root = d.root(c, "good")
            fh = c.nfs(r.CREATE, r.create_args(root, b"written", attrs=r.sattr(mode=0o666)))["fh"]
            good.freeze()
            c.send(r.call_message(r.NFS, 3, r.WRITE, r.write_args(fh, 0, b"x" * 4096, stable=r.FILE_SYNC)))
            time.sleep(0.3)
            bad.freeze()
            ops = (n4.putfh(roots[0]), (n4.READDIR, u64(0) + bytes(8) + u32(4096) + u32(4096) + u32(0)), n4.putfh(roots[1]), made("second"))
            stuck = threading.Thread(target=mixed.compound, args=ops, daemon=True)
            stuck.start()
            time.sleep(0.5)
            good.thaw()
            t.check("the operation that waited for the first file system is answered", answered(c, 5))
            t.check("the COMPOUND is not", stuck.is_alive())
            bad.thaw()
            stuck.join(20)
            t.check("it is in the end", not stuck.is_alive())
            c.recv()
            mixed.close()
            harness.finish(t, d)
    finally:
        for loop in loops:
            loop.close()


def test_back(t, d, loop):
    """RESTOREFH to a file system that does not answer is told to come again, when that is known."""
    c = de.new_client(d, "restores", 1, n4.Client)
    good, bad = c.path(d.exports["good"]), c.path(d.exports["bad"])
    ops = (n4.putfh(bad), (SAVEFH, b""), n4.putfh(good), n4.getattr_op(), (RESTOREFH, b""), n4.getattr_op())
    res = c.compound(*ops)
    t.equal("there and back", [x["status"] for x in res], [n4.OK] * 6)
    loop.freeze()
    fillers = [d.connect(timeout=40) for _ in range(8)]
    root = d.root(fillers[0], "bad")
    for i, f in enumerate(fillers):
        f.send(r.call_message(r.NFS, 3, r.MKDIR, r.mkdir_args(root, f"fill{i}", r.sattr(mode=0o755))))
    time.sleep(4)
    res = c.compound(*ops)
    t.check("DELAY where the file system is entered", res[-1]["status"] == n4.DELAY, res)
    res = c.compound(n4.putfh(good), n4.getattr_op(), made("beside"))
    t.equal("the other file system", res[-1]["status"], n4.OK)
    loop.thaw()
    for f in fillers:
        r.reply_body(f.recv())
        f.close()
    end = time.monotonic() + 10
    while (res := c.compound(*ops))[-1]["status"] == n4.DELAY and time.monotonic() < end:
        time.sleep(0.1)
    t.equal("and again", [x["status"] for x in res], [n4.OK] * 6)
    c.close()


def test_stop(t, d):
    """The end of the daemon."""
    holder, v3 = held_call(t, d, "stopped")
    began = time.monotonic()
    d.process.send_signal(signal.SIGTERM)
    status = r.decode(r.SETATTR, r.reply_body(v3.recv()))["status"]
    t.check("the call is answered", status == r.JUKEBOX, status)
    t.equal("exit status", d.process.wait(30), 0)
    t.check("soon", time.monotonic() - began < 30, time.monotonic() - began)
    d.process = None
    holder.close()
    v3.close()


def main():
    if os.geteuid() != 0:
        harness.skip_all("mounting needs root")
    t = Count()
    wanted = sys.argv[1:]
    d = Control({**de.SETTINGS, "nfs4.lease_time": 60}, exports={"one": de.OPTIONS, "good": OPTIONS, "bad": OPTIONS})
    loop = Loop(d.exports["bad"], d.top + "/image")
    try:
        with d:
            try:
                for test, args in ((test_first_transmission, (d, loop)), (test_slot, (d, loop)), (test_copy, (d, loop)), (test_attributes, (d,)),
                                   (test_back, (d, loop)), (test_reload, (d,)), (test_stop, (d,))):
                    if not wanted or test.__name__ in wanted:
                        test(t, *args)
                        loop.thaw()
            finally:
                loop.thaw()
                if d.process:
                    d.stop()
                loop.close()
    finally:
        loop.close()
    for test in (test_record, test_two):
        if not wanted or test.__name__ in wanted:
            test(t)
    harness.result(t)


if __name__ == "__main__":
    main()
