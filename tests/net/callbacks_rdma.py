#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Callbacks over RDMA (RFC 8167): as over TCP, and never more at once than the client has granted credits for."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import callbacks
import harness
import nfs4client as n4
import rpcclient as r
from rdmaclient import CREDITS, MSG, Peer
from rpcclient import u32

PORT = 20049
MOST = 4  # calls that the server has under way on one connection
ABSENT = 0.3  # seconds to wait for a message that must not come
NO_CHUNKS = u32(0) * 3


class Wire:
    """In the place of a connection over TCP."""

    on_call = None
    grants = 8  # credits of the reverse direction

    def __init__(self, peer):
        self.peer = peer

    def reply(self, rpc, lists=NO_CHUNKS, grants=None):
        head = rpc[:4] + struct.pack(">III", 1, self.grants if grants is None else grants, MSG)
        self.peer.send(head + lists + rpc)

    def take_call(self, seconds=None):
        raw = self.peer.receive(seconds)
        if raw is None:
            return None, None
        xid, vers, credits, kind = struct.unpack(">IIII", raw[:16])
        if vers != 1 or not credits or kind != MSG or raw[16:28] != NO_CHUNKS or raw[28:32] != raw[:4]:
            raise ValueError(f"not a message without chunks: {raw[:64].hex()}")
        rpc = raw[28:]
        if self.on_call is None or rpc[4:8] != bytes(4):
            return False, rpc
        answer = self.on_call(rpc)
        if answer is not None:
            self.reply(answer)
        return True, None

    def call(self, prog, vers, proc, args=b"", cred=r.ROOT):
        xid = r.next_xid()
        self.peer.send(struct.pack(">IIII", xid, 1, CREDITS, MSG) + NO_CHUNKS + r.call_message(prog, vers, proc, args, cred, xid))
        while True:
            was_call, rpc = self.take_call()
            if not was_call:
                return r.reply_body(rpc, xid)

    def close(self):
        self.peer.close()


def kinds(f):
    """Clients on the fabric: one that answers, one that does not, and both again that take one call at a time."""

    class Called(n4.Client):
        back = True

        def _connect(self):
            self.conn = Wire(Peer(f.environment(), before=f.command("client")).connect("127.0.0.1", PORT))
            self.conn.on_call = self._on_call

    class Mute(Called):
        answers = False

    class One(Called):
        def _connect(self):
            super()._connect()
            self.conn.grants = 1

    class MuteOne(One):
        answers = False

    return Called, Mute, One, MuteOne


def arrived(c, n):
    """Waits for n callbacks that are not answered; were there no more?"""
    while len(c.called) < n:
        c.conn.take_call()
    return c.conn.take_call(ABSENT)[0] is None and len(c.called) == n


def test_credits(t, d, one):
    """As many callbacks at once as the client has granted."""
    holder, waiter = (callbacks.new_client(d, f"{who} of credits", 1, one) for who in ("holder", "waiter"))
    waiter.await_callback()
    root = holder.path(d.exports["one"])
    held, fh = holder.open(root, b"credits", create=True, access=n4.SHARE_BOTH | n4.WANT_NO_DELEG)
    wanted, _ = waiter.open(root, b"credits")
    grants = (1, 2, 100, 0, 1)
    for grant in grants:
        lock = holder.lock(fh, held["stateid"])
        for _ in range(6):
            waiter.lock(fh, wanted["stateid"], n4.WRITEW_LT)
        may, waiter.answers, waiter.called = min(max(waiter.conn.grants, 1), MOST), False, []
        holder.unlock(fh, lock["stateid"])
        t.check(f"{waiter.conn.grants} granted: {may} at once", arrived(waiter, may), len(waiter.called))
        waiter.conn.reply(n4.put_callback_reply(waiter.called[0]), grants=grant)
        waiter.conn.grants = grant
        more = min(max(grant, 1), MOST) - (may - 1)
        t.check(f"{grant} granted then: {more} more", arrived(waiter, may + max(more, 0)), len(waiter.called))
        waiter.answers = True
        for c in waiter.called[1:]:
            waiter.conn.reply(n4.put_callback_reply(c))
        waiter.await_callback(n4.CB_NOTIFY_LOCK, 6)
        t.equal("each is told once", len({c["owner"] for c in waiter.called}), 6)
    t.equal("flags", (waiter.last((n4.PUTROOTFH, b""))["status"], waiter.flags), (n4.OK, 0))
    holder.close()
    waiter.close()


def test_hostile(t, d, called, mute):
    """Replies that answer nothing, and such as grant what they cannot."""
    victim, other = callbacks.new_client(d, "victim", 1, mute), callbacks.new_client(d, "other", 1, called)
    xid = victim.await_callback()["xid"]
    reply = n4.put_callback_reply(victim.called[0])
    p = other.conn.peer
    chunks = u32(0) + struct.pack(">II", 1, 1) + p.segment(0, 4) + u32(0) * 2
    for i in range(20):
        other.conn.reply(u32(xid + i) + reply[4:], grants=1000)
        other.conn.reply(reply, grants=0xffffffff)
    other.conn.reply(reply, lists=chunks)
    other.conn.reply(reply + bytes(2000))
    t.equal("the other client", other.last((n4.PUTROOTFH, b""))["status"], n4.OK)
    victim.conn.reply(reply, lists=chunks)
    victim.conn.reply(reply)
    victim.conn.reply(reply)
    victim.answers = True
    t.equal("the victim's path is its own", callbacks.flags_after(victim, 0), 0)
    stranger = Wire(other.conn.peer)
    t.equal("a NULL call", stranger.call(r.NFS, 4, 0).data[24:], b"")
    gone = callbacks.new_client(d, "gone", 1, mute)
    gone.await_callback()
    gone.conn.peer.drop()
    gone.conn.peer.close()
    t.equal("the victim at the end", victim.last((n4.PUTROOTFH, b""))["status"], n4.OK)
    victim.close()
    other.close()


def test_refused(t, d, mute_one):
    """The client's transport refuses a call: its credit comes back, and the path is down."""
    for name, err in (("ERR_VERS", u32(1) + u32(1) * 2), ("ERR_CHUNK", u32(2))):
        c = callbacks.new_client(d, name, 1, mute_one)
        xid = c.await_callback()["xid"]
        c.conn.peer.send(struct.pack(">IIII", xid, 1, 1, 4) + u32(3) * 3)  # no error that is known
        c.conn.peer.send(struct.pack(">IIII", xid, 1, 1, 4) + err)
        t.equal(f"flags after {name}", callbacks.flags_after(c, callbacks.DOWN), callbacks.DOWN)
        c.answers = True
        c.bind(callbacks.BOTH)
        c.compound((n4.PUTROOTFH, b""))
        t.equal("the slot is used again", (c.await_callback(n=2)["slot"], c.called[1]["seqid"]), (0, 1))
        t.equal(f"flags of the path after {name}", callbacks.flags_after(c, 0), 0)
        c.close()


def test_given_up(t, d, mute_one):
    """A call that waited for a credit until it was given up is not sent."""
    c = callbacks.new_client(d, "slow", 1, mute_one)
    c.await_callback()
    for _ in range(2):
        t.equal("flags without an answer", callbacks.flags_after(c, callbacks.DOWN), callbacks.DOWN)
        c.bind(callbacks.BOTH)
        c.compound((n4.PUTROOTFH, b""))
    t.equal("flags at the third", callbacks.flags_after(c, callbacks.DOWN), callbacks.DOWN)
    c.conn.reply(n4.put_callback_reply(c.called[0]))
    t.check("calls that were given up", arrived(c, 1), len(c.called))
    c.answers = True
    c.bind(callbacks.BOTH)
    c.compound((n4.PUTROOTFH, b""))
    t.equal("the next one", c.await_callback(n=2)["slot"], 3)
    c.close()


def main():
    t = harness.Count()
    with fabric.Fabric() as f:
        called, mute, one, mute_one = kinds(f)
        settings = dict(callbacks.SETTINGS, **{"rdma.enabled": "yes", "rdma.port": PORT})
        with harness.Daemon({"one": "rw,insecure,no_root_squash"}, settings, before=f.command("server"), env=f.environment()) as d:
            for minor in (1, 2):
                callbacks.test_notify(t, d, minor, called)
            callbacks.test_no_answer(t, d, mute)
            callbacks.test_lost(t, d, called)
            test_credits(t, d, one)
            test_refused(t, d, mute_one)
            test_given_up(t, d, mute_one)
            test_hostile(t, d, called, mute)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
