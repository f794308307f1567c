#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Callbacks over TCP: a client whose LOCK was denied is told of the unlock; clients that do not answer, or answer wrongly, harm
nobody but themselves."""
import struct
import time

import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from rpcclient import u32

SETTINGS = {"nfs4.lease_time": 10, "nfs4.grace_time": 10}  # a callback is given up after a second
DOWN = n4.CB_PATH_DOWN | n4.CB_PATH_DOWN_SESSION
BOTH = 3  # CDFC4_FORE_OR_BOTH, CDFS4_BOTH


class Called(n4.Client):
    back = True


class Mute(Called):
    answers = False


def new_client(d, owner, minor, kind):
    c = kind(d.port, owner, minor)
    if c.register()["status"] or c.reclaim_complete():
        raise SystemExit(f"{owner} cannot register\n{d.read_log()}")
    return c


def test_notify(t, d, minor, kind):
    """The holder's unlock, and its close, are told to those who wait."""
    holder, waiter = (new_client(d, f"{who}{minor}", minor, kind) for who in ("holder", "waiter"))
    probe = waiter.await_callback()
    t.equal(f"4.{minor} the probe", (probe["prog"], probe["vers"], probe["proc"], probe["minor"], probe["nops"], probe["session"]),
            (0x40000000, 1, 1, minor, 1, waiter.session))
    root = holder.path(d.exports["one"])
    # A delegation of the holder would be in the waiter's way.
    held, fh = holder.open(root, f"file{minor}".encode(), create=True, access=n4.SHARE_BOTH | n4.WANT_NO_DELEG)
    wanted, _ = waiter.open(root, f"file{minor}".encode())
    t.check(f"4.{minor} OPEN says so", wanted["rflags"] & n4.MAY_NOTIFY_LOCK, wanted)
    for i, by in enumerate(("LOCKU", "CLOSE"), 1):
        lock = holder.lock(fh, held["stateid"])
        t.equal(f"4.{minor} LOCK", lock["status"], n4.OK)
        t.equal(f"4.{minor} another's LOCK", waiter.lock(fh, wanted["stateid"], n4.WRITEW_LT, 5, 1)["status"], n4.DENIED)
        owner = b"lock" + u32(waiter.owner_seqid)
        ended = holder.unlock(fh, lock["stateid"]) if by == "LOCKU" else holder.close_file(fh, held["stateid"])
        t.equal(f"4.{minor} {by}", ended["status"], n4.OK)
        told = waiter.await_callback(n4.CB_NOTIFY_LOCK, i)
        t.equal(f"4.{minor} told of {by}", (told["fh"], told["clientid"], told["owner"]), (fh, waiter.clientid, owner))
    t.equal(f"4.{minor} the waiter's LOCK", waiter.lock(fh, wanted["stateid"], n4.WRITEW_LT, 5, 1)["status"], n4.OK)
    t.equal(f"4.{minor} flags", (holder.flags, waiter.flags), (0, 0))
    holder.close()
    waiter.close()


def flags_after(c, flags):
    """SEQUENCE until its flags are these, for up to a minute: the last ones."""
    for _ in range(6000):
        c.compound((n4.PUTROOTFH, b""))
        if c.flags == flags:
            break
        time.sleep(0.01)
    return c.flags


def test_no_answer(t, d, mute):
    """A client that does not answer is told, binds its connection again, and is told when it answers."""
    c = new_client(d, "mute", 1, mute)
    c.await_callback()
    t.equal("flags without an answer", flags_after(c, DOWN), DOWN)
    c.answers = True
    c.conn.reply(n4.put_callback_reply(c.called[0]))  # too late
    t.equal("flags after a late answer", flags_after(c, DOWN), DOWN)
    t.equal("BIND_CONN_TO_SESSION", c.bind(BOTH)["dir"], BOTH)
    c.compound((n4.PUTROOTFH, b""))
    t.check("another slot", c.await_callback(n=2)["slot"] != c.called[0]["slot"])
    t.equal("flags with an answer", flags_after(c, 0), 0)
    c.close()


def test_lost(t, d, kind):
    """The path goes with its connection."""
    c = new_client(d, "lost", 1, kind)
    c.await_callback()
    c.again()
    t.equal("flags on a new connection", flags_after(c, DOWN), DOWN)
    t.equal("BIND_CONN_TO_SESSION", c.bind(BOTH)["dir"], BOTH)
    t.equal("flags after it", flags_after(c, 0), 0)
    c.close()


def test_cut_short(t, d):
    c = new_client(d, "in the middle", 1, Mute)
    c.await_callback()
    c.conn.send_raw(struct.pack(">I", 0x80000040) + n4.put_callback_reply(c.called[0])[:20])
    c.again()
    t.equal("flags after a reply cut short", flags_after(c, DOWN), DOWN)
    c.close()


def closed(conn, message):
    """Sends it: does the server close the connection?"""
    try:
        conn.send(message)
        while True:
            conn.recv()
    except r.Closed:
        return True


def test_hostile(t, d):
    """Replies that answer nothing."""
    victim, other = new_client(d, "victim", 1, Mute), new_client(d, "other", 1, Called)
    xid = victim.await_callback()["xid"]
    other.await_callback()
    reply = n4.put_callback_reply(victim.called[0])
    other.conn.send(reply)
    for i in range(100):
        other.conn.send(u32(xid + i) + reply[4:])
    t.equal("the other client", other.last((n4.PUTROOTFH, b""))["status"], n4.OK)
    victim.conn.send(reply)
    victim.conn.send(reply)
    victim.answers = True
    t.equal("the victim's path is its own", flags_after(victim, 0), 0)
    stranger = d.connect()
    t.check("a reply of a client that was never called ends its connection", closed(stranger, reply))
    for name, words in (("garbage", u32(xid) + u32(1) + u32(9)), ("a denial", u32(xid) + u32(1) + u32(1) + u32(1) + u32(1))):
        c = new_client(d, name, 1, Mute)
        c.conn.send(u32(c.await_callback()["xid"]) + words[4:])
        t.equal(f"flags after {name}", flags_after(c, DOWN), DOWN)
        c.close()
    c = new_client(d, "long", 1, Mute)
    xid = c.await_callback()["xid"]
    t.check("a long reply ends its connection", closed(c.conn, u32(xid) + u32(1) + bytes(100000)))
    t.equal("the victim at the end", victim.last((n4.PUTROOTFH, b""))["status"], n4.OK)
    for c in (victim, other):
        c.close()


def main():
    t = Count()
    with Daemon({"one": "rw,insecure,no_root_squash"}, SETTINGS) as d:
        for minor in (1, 2):
            test_notify(t, d, minor, Called)
        test_no_answer(t, d, Mute)
        test_lost(t, d, Called)
        test_cut_short(t, d)
        test_hostile(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
