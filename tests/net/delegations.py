#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Delegations of files over TCP: given, refused with the reason, recalled, returned, never returned, claimed, reclaimed after a restart;
clients that use what is not theirs."""
import os
import signal
import threading
import time

import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from held import Held
from rpcclient import opaque, u32, u64

LEASE = 5
# The grace period ends when all have come back, which takes long on a busy machine.
SETTINGS = {"nfs4.lease_time": LEASE, "nfs4.grace_time": 6 * LEASE}
SHARED = "rw,insecure,no_root_squash"  # local processes may change files, too
OPTIONS = SHARED + ",nfs_only"
WANT_READ, WANT_WRITE, WANT_ANY, WANT_NO, WANT_CANCEL, SIGNAL, PUSH = 0x100, 0x200, 0x300, 0x400, 0x500, 0x10000, 0x20000
NOT_WANTED, CONTENTION, RESOURCE, NOT_SUPP, WRITE_NOT_SUPP, CANCELLED, IS_DIR = 0, 1, 2, 3, 4, 7, 8
NOT_SUPP_UPGRADE, NOT_SUPP_DOWNGRADE = 5, 6
MANY = 10000
RETURNED = 20  # delegations that are returned at once


class Called(n4.Client):
    back = True


def new_client(d, owner, minor=1, kind=Called):
    c = kind(d.port, owner, minor)
    if c.register()["status"] or c.reclaim_complete():
        raise SystemExit(f"{owner} cannot register\n{d.read_log()}")
    if c.back:
        c.await_callback()  # the probe of its path
    return c


def make(d, name, data=b"before"):
    with open(os.path.join(d.exports["one"], name), "wb") as f:
        f.write(data)


def delegated(t, d, c, name):
    """A fresh file that the client has a delegation of: (directory, handle, stateid of the open, of the delegation). A file whose
    delegation was recalled has none for a while, and with it a few others."""
    root = c.path(d.exports["one"])
    end = time.monotonic() + 4 * LEASE
    make(d, name)
    res, fh = c.open(root, name, access=n4.SHARE_READ)
    while not res.get("delegation") and time.monotonic() < end:
        c.close_file(fh, res["stateid"])
        time.sleep(0.5)
        res, fh = c.open(root, name, access=n4.SHARE_READ)
    if not t.equal(f"{name} is delegated", res.get("delegation"), n4.DELEGATE_READ):
        raise SystemExit(f"{res}\n{d.read_log()}")
    return root, fh, res["stateid"], res["deleg"]


class Other:
    """Somebody else's request, repeated while it is answered NFS4ERR_DELAY (or JUKEBOX), beside the test."""

    def __init__(self, request):
        self.result = None
        self.asked = 0
        self.request = request
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while True:
            res = self.request()
            self.asked += 1
            if res["status"] not in (n4.DELAY, r.JUKEBOX):
                break
            time.sleep(0.05)
        self.result = res

    def is_waiting(self):
        self.thread.join(0.3)
        return self.thread.is_alive()

    def end(self):
        self.thread.join(60)
        return self.result and self.result["status"]


def test_given(t, d):
    for minor in (1, 2):
        c = new_client(d, f"reader{minor}", minor)
        root, fh, stateid, deleg = delegated(t, d, c, f"given{minor}")
        res = c.last(n4.putfh(fh), n4.read(deleg, 0, 100))
        t.equal(f"4.{minor} READ by the delegation", res.get("data"), b"before")
        t.equal("WRITE by it", c.last(n4.putfh(fh), n4.write(deleg, 0, b"x"))["status"], n4.OPENMODE)
        t.equal("CLOSE of it", c.close_file(fh, deleg)["status"], n4.BAD_STATEID)
        t.equal("LOCK by it", c.lock(fh, deleg)["status"], n4.BAD_STATEID)
        t.equal("FREE_STATEID", c.free_stateid(deleg), n4.LOCKS_HELD)
        t.equal("TEST_STATEID", c.test_stateid(deleg, stateid), [n4.OK, n4.OK])
        res, _ = c.open(root, f"given{minor}", access=n4.SHARE_READ)
        t.equal("a second one", res["delegation"], n4.DELEGATE_NONE)
        t.equal("CLOSE", c.close_file(fh, res["stateid"])["status"], n4.OK)
        t.equal("DELEGRETURN", c.delegreturn(fh, deleg), n4.OK)
        t.equal("DELEGRETURN again", c.delegreturn(fh, deleg), n4.BAD_STATEID)
        t.equal("READ after it", c.last(n4.putfh(fh), n4.read(deleg, 0, 100))["status"], n4.BAD_STATEID)
        t.equal("no callback", [x for x in c.called if x["op"] is not None], [])
        c.close()
    c = new_client(d, "ace")
    make(d, "ace")
    res, fh = c.open(c.path(d.exports["one"]), "ace", access=n4.SHARE_READ)
    t.equal("the ace allows nothing", (res["recalled"], res["ace"]), (False, (0, 0, 0, b"EVERYONE@")))
    t.equal("DELEGPURGE", c.last((n4.DELEGPURGE, u64(0)))["status"], 10004)
    t.equal("DESTROY_SESSION", c.bare((n4.DESTROY_SESSION, c.session))[0]["status"], n4.OK)
    t.equal("DESTROY_CLIENTID", c.bare((n4.DESTROY_CLIENTID, u64(c.clientid)))[0]["status"], n4.CLIENTID_BUSY)
    c.close()


def test_reasons(t, d):
    c, other = new_client(d, "wanting"), new_client(d, "in the way")
    root = c.path(d.exports["one"])
    for name in ("free", "taken", "mine"):
        make(d, name)
    for what, name, access, want in (
            ("not wanted", "free", n4.SHARE_READ, (WANT_NO, NOT_WANTED)),
            ("cancelled", "free", n4.SHARE_READ, (WANT_CANCEL, CANCELLED)),
            ("a signal", "taken", n4.SHARE_READ, (WANT_READ | SIGNAL | PUSH, CONTENTION)),
            ("an open for writing is in the way", "taken", n4.SHARE_READ, (WANT_ANY, CONTENTION))):
        if name == "taken":
            held, fh = other.open(root, name, access=n4.SHARE_WRITE | WANT_NO)
        res, _ = c.open(root, name, access=access | want[0])
        t.equal(what, (res["status"], res.get("delegation"), res.get("why"), res.get("later", False)),
                (n4.OK, n4.DELEGATE_NONE_EXT, want[1], False))
        if name == "taken":
            other.close_file(fh, held["stateid"])
    res, _ = c.open(root, "free", access=n4.SHARE_READ | 0x600)
    t.equal("a wish that is none", res["status"], r.INVAL)
    res, fh = c.open(root, "mine", access=n4.SHARE_BOTH | WANT_READ)
    t.equal("to read, by an open that writes, too", res.get("delegation"), n4.DELEGATE_READ)
    c.delegreturn(fh, res["deleg"])
    res, _ = c.open(root, "made", create=True, access=n4.SHARE_READ)
    t.equal("a file that it has made", res["delegation"], n4.DELEGATE_READ)
    for minor in (0, 1):
        plain = new_client(d, f"cannot be called{minor}", minor, n4.Client)
        res, _ = plain.open(root, "free", access=n4.SHARE_READ)
        t.equal(f"4.{minor} without a back channel", res["delegation"], n4.DELEGATE_NONE)
        if minor:
            res, _ = plain.open(root, "free", access=n4.SHARE_READ | WANT_READ)
            t.equal("the reason", (res["delegation"], res.get("why")), (n4.DELEGATE_NONE_EXT, RESOURCE))
        plain.close()
    for x in (c, other):
        x.close()


def test_want(t, d):
    c = new_client(d, "want")
    root = c.path(d.exports["one"])
    make(d, "want")
    _, fh = c.open(root, "want", access=n4.SHARE_WRITE | WANT_NO)

    def want(fh, bits, claim=u32(n4.CLAIM_FH)):
        res = c.last(n4.putfh(fh), (n4.WANT_DELEGATION, u32(bits) + claim))
        return res["status"], res.get("delegation"), res.get("why"), res.get("deleg")

    for bits in (0, 1, WANT_NO, 0x600, 1 << 20):
        t.equal(f"WANT_DELEGATION of {bits:#x}", want(fh, bits)[0], r.INVAL)
    t.equal("of a directory", want(root, WANT_READ), (n4.OK, n4.DELEGATE_NONE_EXT, IS_DIR, None))
    t.equal("cancelled", want(fh, WANT_CANCEL), (n4.OK, n4.DELEGATE_NONE_EXT, CANCELLED, None))
    t.equal("reclaimed", want(fh, WANT_READ, u32(n4.CLAIM_PREVIOUS) + u32(1))[0], n4.NO_GRACE)
    t.equal("of a client before", want(fh, WANT_READ, u32(6))[0], 10004)
    make(d, "want read")
    _, fh2 = c.open(root, "want read", access=n4.SHARE_READ | WANT_NO)
    status, kind, _, deleg = want(fh2, WANT_READ)
    t.equal("to read", (status, kind), (n4.OK, n4.DELEGATE_READ))
    t.equal("again", want(fh2, WANT_READ), (n4.OK, n4.DELEGATE_NONE_EXT, CONTENTION, None))
    t.equal("DELEGRETURN", c.delegreturn(fh2, deleg), n4.OK)
    c.close()


def contenders(d):
    """What others do that is in conflict with a delegation to read: (what, request of a directory, handle and name)."""
    v4, v3, old = new_client(d, "contender", 1, n4.Client), d.connect(), new_client(d, "contender0", 0, n4.Client)
    root3 = d.root(v3, "one")
    size = u32(1) + u32(1 << 4) + opaque(u64(3))

    def fh3(name):
        return v3.nfs(r.LOOKUP, r.lookup_args(root3, name))["fh"]

    def rename(root, fh, name):
        return v4.last(n4.putfh(root), (n4.SAVEFH, b""), (n4.RENAME, r.name(name) + r.name(name + "2")))

    return (
        ("OPEN to write", lambda root, fh, name: v4.open(root, name, access=n4.SHARE_WRITE)[0]),
        ("OPEN by 4.0", lambda root, fh, name: old.open(root, name, access=n4.SHARE_BOTH)[0]),
        ("WRITE without an open", lambda root, fh, name: v4.last(n4.putfh(fh), n4.write(n4.ANONYMOUS, 0, b"x"))),
        ("SETATTR", lambda root, fh, name: v4.last(n4.putfh(fh), (n4.SETATTR, n4.ANONYMOUS + size))),
        ("NFSv3 WRITE", lambda root, fh, name: v3.nfs(r.WRITE, r.write_args(fh3(name), 0, b"x"))),
        ("NFSv3 SETATTR", lambda root, fh, name: v3.nfs(r.SETATTR, r.setattr_args(fh3(name), r.sattr(mode=0o600)))),
        ("RENAME", rename),
        ("REMOVE", lambda root, fh, name: v4.last(n4.putfh(root), (n4.REMOVE, r.name(name)))))


def test_recalled(t, d):
    """By each kind of request: the other waits until the delegation has been returned."""
    reader = new_client(d, "recalled")
    for i, (what, request) in enumerate(contenders(d)):
        name = f"recall{i}"
        root, fh, stateid, deleg = delegated(t, d, reader, name)
        opened_at = reader.seqid
        other = Other(lambda: request(root, fh, name))
        told = reader.await_callback(n4.CB_RECALL, i + 1)
        t.equal(f"recalled by {what}", (told["stateid"], told["fh"], told["truncate"]), (deleg, fh, False))
        t.equal(f"{what}: OPEN whose reply the client is to have read", told["referring"], [(reader.session, [(opened_at, 0)])])
        t.check(f"{what} waits", other.is_waiting(), other.result)
        t.equal("READ meanwhile", reader.last(n4.putfh(fh), n4.read(deleg, 0, 9)).get("data"), b"before")
        t.equal("CLOSE", reader.close_file(fh, stateid)["status"], n4.OK)
        t.equal("DELEGRETURN", reader.delegreturn(fh, deleg), n4.OK)
        t.equal(f"{what} goes on", other.end(), n4.OK)
        if what.startswith("NFSv3"):
            t.equal(f"{what} waits meanwhile", other.asked, 1)
    reader.close()


def return_all(c):
    """As Linux does, at once."""
    for i in range(RETURNED):
        told = c.await_callback(n4.CB_RECALL, i + 1)
        c.delegreturn(told["fh"], told["stateid"])


def test_returned(t, d):
    """At once: the other's request waits for that and is not told to come again. On a machine that is busy elsewhere, some may be."""
    mode = n4.bitmap(33) + opaque(u32(0o600))
    for minor in (0, 1, 2):
        holder, other = new_client(d, f"returns {minor}"), new_client(d, f"meets 4.{minor}", minor, n4.Client)
        files = [delegated(t, d, holder, f"returned {minor} {i}") for i in range(RETURNED)]
        thread = threading.Thread(target=return_all, args=(holder,), daemon=True)
        thread.start()
        told = 0
        for _, fh, _, _ in files:
            while (res := other.last(n4.putfh(fh), (n4.SETATTR, n4.ANONYMOUS + mode)))["status"] == n4.DELAY:
                told += 1
            t.equal("SETATTR", res["status"], n4.OK)
        thread.join(60)
        t.check(f"4.{minor}: some have waited", told < RETURNED, told)
        holder.close()
        other.close()


def test_claimed(t, d):
    """Opens that the holder has not sent are claimed in the recall."""
    reader, writer = new_client(d, "claiming"), new_client(d, "in need")
    root, fh, stateid, deleg = delegated(t, d, reader, "claimed")
    reader.close_file(fh, stateid)
    other = Other(lambda: writer.open(root, "claimed", access=n4.SHARE_WRITE)[0])
    reader.await_callback(n4.CB_RECALL)
    first = reader.claim_open(fh, deleg)
    t.equal("CLAIM_DELEG_CUR_FH", (first["status"], first.get("delegation")), (n4.OK, n4.DELEGATE_NONE))
    again = reader.claim_open_by_name(root, "claimed", deleg)
    t.equal("CLAIM_DELEGATE_CUR", (again["status"], again.get("delegation")), (n4.OK, n4.DELEGATE_NONE))
    t.check("the other waits", other.is_waiting(), other.result)
    t.equal("DELEGRETURN", reader.delegreturn(fh, deleg), n4.OK)
    t.equal("the other goes on", other.end(), n4.OK)
    t.equal("a claim after it", reader.claim_open(fh, deleg)["status"], n4.BAD_STATEID)
    t.equal("READ by the open", reader.last(n4.putfh(fh), n4.read(again["stateid"], 0, 9)).get("data"), b"before")
    for x in (reader, writer):
        x.close()


def test_told_again(t, d):
    """A client that does not know the delegation yet, or is busy, is told again."""
    reader, writer = new_client(d, "slow"), new_client(d, "patient")
    root, fh, _, deleg = delegated(t, d, reader, "told again")
    reader.cb_status = n4.BAD_STATEID
    other = Other(lambda: writer.open(root, "told again", access=n4.SHARE_WRITE)[0])
    reader.await_callback(n4.CB_RECALL)
    reader.cb_status = n4.DELAY
    reader.await_callback(n4.CB_RECALL, 2)
    reader.cb_status = n4.OK
    reader.await_callback(n4.CB_RECALL, 3)
    t.equal("DELEGRETURN", reader.delegreturn(fh, deleg), n4.OK)
    t.equal("the other goes on", other.end(), n4.OK)
    for x in (reader, writer):
        x.close()


def lose(t, d, reader, writer, name):
    """The reader keeps its lease, and does not return the delegation: (handle, delegation) of what it loses."""
    root, fh, stateid, deleg = delegated(t, d, reader, name)
    other = Other(lambda: writer.open(root, name, access=n4.SHARE_WRITE)[0])
    reader.await_callback(n4.CB_RECALL)
    end = time.monotonic() + 60
    while not reader.flags & n4.RECALLABLE_REVOKED and time.monotonic() < end:
        reader.compound((n4.PUTROOTFH, b""))
        time.sleep(0.1)
    t.equal(f"{name}: SEQUENCE says so", reader.flags, n4.RECALLABLE_REVOKED)
    t.equal("the other goes on", other.end(), n4.OK)
    t.equal("the open stays", reader.last(n4.putfh(fh), n4.read(stateid, 0, 9)).get("data"), b"before")
    return fh, deleg


def test_not_returned(t, d):
    reader, writer = new_client(d, "keeps it"), new_client(d, "waits")
    fh, deleg = lose(t, d, reader, writer, "kept")
    t.check("the log says so", d.wait_log("has not returned 1 delegations in time"))
    t.equal("TEST_STATEID", reader.test_stateid(deleg), [n4.DELEG_REVOKED])
    t.equal("READ", reader.last(n4.putfh(fh), n4.read(deleg, 0, 9))["status"], n4.DELEG_REVOKED)
    t.equal("DELEGRETURN", reader.delegreturn(fh, deleg), n4.DELEG_REVOKED)
    t.equal("a claim", reader.claim_open(fh, deleg)["status"], n4.DELEG_REVOKED)
    t.equal("the flag stays", reader.flags, n4.RECALLABLE_REVOKED)
    t.equal("FREE_STATEID", reader.free_stateid(deleg), n4.OK)
    reader.compound((n4.PUTROOTFH, b""))
    t.equal("the flag after it", reader.flags, 0)
    t.equal("TEST_STATEID after it", reader.test_stateid(deleg), [n4.BAD_STATEID])
    for x in (reader, writer):
        x.close()


def test_away(t, d):
    """A client whose lease has run out: its delegation goes as soon as somebody wants it."""
    reader, writer = new_client(d, "away"), new_client(d, "present")
    root, _, _, _ = delegated(t, d, reader, "away")
    reader.close()
    end = time.monotonic() + LEASE + 2
    while time.monotonic() < end:
        writer.compound((n4.PUTROOTFH, b""))
        time.sleep(0.5)
    other = Other(lambda: writer.open(root, "away", access=n4.SHARE_WRITE)[0])
    t.equal("OPEN", other.end(), n4.OK)
    writer.close()


def test_restart(t, d):
    """What was held is reclaimed, what was revoked is not."""
    reader, writer = new_client(d, "reclaims"), new_client(d, "writes")
    _, fh, _, _ = delegated(t, d, reader, "over a restart")
    loser = new_client(d, "has lost one")
    lost, _ = lose(t, d, loser, writer, "lost before a restart")
    reader.compound((n4.PUTROOTFH, b""))
    d.stop(signal.SIGKILL)
    d.start()
    writer.again()
    t.equal("the writer is back first", (writer.register()["status"], writer.reclaim_complete()), (n4.OK, n4.OK))
    root = writer.path(d.exports["one"])
    v3 = d.connect()
    mode = r.setattr_args(v3.nfs(r.LOOKUP, r.lookup_args(d.root(v3, "one"), "over a restart"))["fh"], r.sattr(mode=0o600))
    for what, got, want in (
            ("OPEN to write", writer.open(root, "over a restart", access=n4.SHARE_WRITE)[0]["status"], n4.GRACE),
            ("OPEN to read", writer.open(root, "over a restart", access=n4.SHARE_READ)[0]["status"], n4.OK),
            ("WRITE without an open", writer.last(n4.putfh(fh), n4.write(n4.ANONYMOUS, 0, b"x"))["status"], n4.DELAY),
            ("REMOVE", writer.last(n4.putfh(root), (n4.REMOVE, r.name("over a restart")))["status"], n4.DELAY)):
        t.equal(f"{what}, of a file whose delegation is not reclaimed yet", got, want)
    other = Other(lambda: v3.nfs(r.SETATTR, mode))
    t.check("NFSv3 SETATTR waits", other.is_waiting(), other.result)
    for c in (reader, loser):
        c.again()
        t.equal("registered again", c.register()["status"], n4.OK)
    res = reader.reclaim_open(fh, access=n4.SHARE_READ, delegation=n4.DELEGATE_READ)
    t.equal("reclaimed", (res["status"], res.get("delegation"), res.get("recalled")), (n4.OK, n4.DELEGATE_READ, False))
    t.equal("READ by it", reader.last(n4.putfh(fh), n4.read(res["deleg"], 0, 9)).get("data"), b"before")
    none = loser.reclaim_open(lost, access=n4.SHARE_READ, delegation=n4.DELEGATE_READ)
    t.equal("not what was revoked", (none["status"], none.get("delegation")), (n4.OK, n4.DELEGATE_NONE))
    for c in (reader, loser):
        t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n4.OK)
    t.equal("then it is recalled", reader.await_callback(n4.CB_RECALL)["stateid"], res["deleg"])
    t.equal("DELEGRETURN", reader.delegreturn(fh, res["deleg"]), n4.OK)
    t.equal("NFSv3 goes on", other.end(), r.OK)
    for c in (reader, loser, writer, v3):
        c.close()


def test_hostile(t, d):
    owner, thief = new_client(d, "owner"), new_client(d, "thief")
    root, fh, _, deleg = delegated(t, d, owner, "precious")
    _, fh2, _, deleg2 = delegated(t, d, owner, "another")
    for what, got in (
            ("another client's", thief.delegreturn(fh, deleg)),
            ("another client's READ", thief.last(n4.putfh(fh), n4.read(deleg, 0, 9))["status"]),
            ("another client's claim", thief.claim_open(fh, deleg)["status"]),
            ("another client's FREE_STATEID", thief.free_stateid(deleg)),
            ("wrong file", owner.delegreturn(fh2, deleg)),
            ("a claim of the wrong file", owner.claim_open(fh2, deleg)["status"]),
            ("a seqid to come", owner.delegreturn(fh, u32(2) + deleg[4:])),
            ("a forged one", owner.delegreturn(fh, deleg[:-1] + bytes([deleg[-1] ^ 1])))):
        t.equal(what, got, n4.BAD_STATEID)
    t.equal("an old seqid", owner.delegreturn(fh, u32(0xfffffff0) + deleg[4:]), 10024)
    t.equal("none of that has harmed it", owner.test_stateid(deleg, deleg2), [n4.OK, n4.OK])
    t.equal("DELEGRETURN, any seqid", owner.delegreturn(fh, bytes(4) + deleg[4:]), n4.OK)
    for x in (owner, thief):
        x.close()


def test_many(t, d):
    """Many delegations, recalled at once, half of them returned, the rest gone with the client."""
    many = MANY // 20 if d.sanitized() else MANY
    held = Held(d)
    time.sleep(LEASE + 1)  # until no file is remembered as recalled
    before = held.now()
    reader = new_client(d, "many")
    folder = os.path.join(d.exports["one"], "many")
    os.mkdir(folder)
    for i in range(many):
        with open(f"{folder}/{i}", "wb"):
            pass
    root = reader.path(folder)
    got = {}
    for i in range(many):
        res, fh = reader.open(root, str(i), access=n4.SHARE_READ)
        if res.get("delegation") == n4.DELEGATE_READ:
            got[res["deleg"]] = fh
            reader.close_file(fh, res["stateid"])
    t.equal("delegations", len(got), many)
    t.equal("the server's count", held.now()["nfs4_delegations"], before["nfs4_delegations"] + many)
    writer = d.connect()
    root3 = d.root(writer, "one")
    folder3 = writer.nfs(r.LOOKUP, r.lookup_args(root3, "many"))["fh"]
    some = min(many, 500)

    def change(i):
        fh3 = writer.nfs(r.LOOKUP, r.lookup_args(folder3, str(i)))["fh"]
        return writer.nfs(r.SETATTR, r.setattr_args(fh3, r.sattr(mode=0o600)))

    def change_some():
        """All are asked for once, in a row, and so recalled while others are: then each until it is done."""
        for i in range(some):
            while change(i)["status"] == r.JUKEBOX:
                time.sleep(0.01)
        return {"status": r.OK}

    other = Other(change_some)
    for i in range(1, some + 1):
        told = reader.await_callback(n4.CB_RECALL, i)
        if reader.delegreturn(got[told["stateid"]], told["stateid"]) != n4.OK:
            t.check("DELEGRETURN", False, i)
            break
    t.equal("those who waited go on", other.end(), r.OK)
    again = Called(d.port, "many", 1, b"restarte")
    t.equal("the client restarts", again.register()["status"], n4.OK)
    after = held.until(lambda s: s["nfs4_delegations"] <= before["nfs4_delegations"])
    t.equal("delegations at the end", after["nfs4_delegations"], before["nfs4_delegations"])
    for x in (reader, again, writer):
        x.close()


def test_local(t, d):
    """A local process that opens the file to write waits until the delegation has been returned."""
    reader = new_client(d, "beside local processes")
    _, fh, _, deleg = delegated(t, d, reader, "local")
    path = os.path.join(d.exports["one"], "local")
    with open(path, "rb") as f:
        t.equal("a local reader", f.read(), b"before")

    def change():
        with open(path, "wb") as f:
            f.write(b"after")
        return {"status": n4.OK}

    other = Other(change)
    t.equal("recalled by a local process", reader.await_callback(n4.CB_RECALL)["stateid"], deleg)
    t.check("it waits", other.is_waiting())
    t.equal("READ meanwhile", reader.last(n4.putfh(fh), n4.read(deleg, 0, 9)).get("data"), b"before")
    t.equal("DELEGRETURN", reader.delegreturn(fh, deleg), n4.OK)
    t.equal("it goes on", other.end(), n4.OK)
    with open(path, "ab"):
        res, _ = reader.open(reader.path(d.exports["one"]), "local", access=n4.SHARE_READ | WANT_READ)
        t.check("none while it has the file open", (res["delegation"], res.get("why")) == (n4.DELEGATE_NONE_EXT, CONTENTION), res)
    reader.close()


def test_local_restart(t, d):
    """While the server is away local processes may change what they like: what is reclaimed is to be returned at once."""
    reader = new_client(d, "beside local processes, too")
    _, fh, _, _ = delegated(t, d, reader, "changed meanwhile")
    d.stop(signal.SIGKILL)
    make(d, "changed meanwhile", b"after")
    d.start()
    reader.again()
    t.equal("registered again", reader.register()["status"], n4.OK)
    res = reader.reclaim_open(fh, access=n4.SHARE_READ, delegation=n4.DELEGATE_READ)
    t.equal("reclaimed, and recalled", (res["status"], res.get("delegation"), res.get("recalled")), (n4.OK, n4.DELEGATE_READ, True))
    t.equal("DELEGRETURN", reader.delegreturn(fh, res["deleg"]), n4.OK)
    t.equal("RECLAIM_COMPLETE", reader.reclaim_complete(), n4.OK)
    reader.close()


def test_shared():
    """Where local processes may change files: the kernel's leases."""
    t = Count()
    with Daemon({"one": SHARED}, SETTINGS) as d:
        for test in (test_given, test_recalled, test_claimed, test_local, test_local_restart):
            print(f"# {test.__name__}, shared with local processes", flush=True)
            test(t, d)
        harness.finish(t, d)
    return t


def test_restarted():
    """A daemon of its own: after a restart clients that had delegations to write keep others from reading, too."""
    t = Count()
    with Daemon({"one": OPTIONS}, SETTINGS) as d:
        print("# test_restart", flush=True)
        test_restart(t, d)
        harness.finish(t, d)
    return t


def test_off():
    t = Count()
    with Daemon({"one": OPTIONS}, {**SETTINGS, "nfs4.delegations": "no"}) as d:
        c = new_client(d, "reader")
        make(d, "file")
        root = c.path(d.exports["one"])
        res, _ = c.open(root, "file", access=n4.SHARE_READ | WANT_READ)
        t.equal("delegations = no", (res["delegation"], res.get("why")), (n4.DELEGATE_NONE_EXT, NOT_SUPP))
        res, _ = c.open(root, "file", access=n4.SHARE_READ)
        t.equal("and none", res["delegation"], n4.DELEGATE_NONE)
        c.close()
        harness.finish(t, d)
    return t


def main():
    t = Count()
    with Daemon({"one": OPTIONS}, SETTINGS) as d:
        for test in (test_given, test_reasons, test_want, test_recalled, test_returned, test_claimed, test_told_again, test_not_returned, test_away,
                     test_hostile, test_many):
            print(f"# {test.__name__}", flush=True)
            test(t, d)
        harness.finish(t, d)
    for more in (test_restarted(), test_shared(), test_off()):
        t.passed, t.failed = t.passed + more.passed, t.failed + more.failed
    harness.result(t)


if __name__ == "__main__":
    main()
