#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""NFSv4 clients that hoard, guess and exaggerate, beside one that does not: over TCP, and at last over the software fabric.

Each is answered as the RFCs say, what it makes stays within the memory that there is for NFSv4, the others go on, and when its
clients are gone so is what they held.
"""
import os
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import nfs4client as n
import rpcclient as r
from harness import Count, Daemon
from held import Held
from nfs4client import ALL, DELAY, OK, putfh
from rdmaclient import MSG, Peer
from rpcclient import opaque, u32, u64

GETATTR, LOOKUPP, READDIR, REMOVE, SAVEFH, BIND_CONN, FREE_STATEID = 9, 16, 26, 28, 32, 41, 45
ACCES, INVAL, BAD_COOKIE, TOOSMALL, SHARE_DENIED, RESOURCE, BAD_STATEID, BADXDR, BAD_RANGE = (
    13, 22, 10003, 10005, 10015, 10018, 10025, 10036, 10042)
BADSLOT, SEQ_MISORDERED, SEQUENCE_POS, REP_TOO_BIG, REP_TOO_BIG_TO_CACHE, TOO_MANY_OPS, CLIENTID_BUSY, NOT_ONLY_OP = (
    10053, 10063, 10064, 10066, 10067, 10070, 10074, 10081)
EVERY = u32(3) + u32(0xffffffff) * 3  # some can only be set
READABLE = u32(3) + u32(0xffffffff) + u32(0xffffffff & ~(1 << 16 | 1 << 22)) + u32(0xffffffff & ~(1 << 10 | 1 << 17))


def _fattr(x, res):
    n._bitmap(x)
    res.update(attrs=x.opaque())


def _entries(x, res):
    x.take(8)
    res["names"] = []
    while x.flag():
        res["cookie"] = x.u64()
        res["names"].append(x.opaque())
        _fattr(x, {})
    res["eof"] = x.flag()


n.RESULTS.update({GETATTR: _fattr, READDIR: _entries, REMOVE: lambda x, res: x.take(20), BIND_CONN: lambda x, res: x.take(24)})
PORT = 20049
MEMORY = 64  # MiB of memory_max: an eighth is for what NFSv4 clients hold
LEASE = int(os.environ.get("LEASE", 5))
WAIT_MOST = 10  # seconds that the polite client may wait for one of its rounds, on a busy machine
HOST = "127.0.0.9"  # of the hostile ones


class Client(n.Client):
    """A hostile one: from an address of its own, and with channels as it likes them."""

    def __init__(self, port, owner, minor=1, slots=16, cached=4096, ops=8, host=HOST):
        super().__init__(port, owner, minor)
        self.conn.close()
        self.conn = r.Conn(port, source=(host, 0))
        self.channel = struct.pack(">6I", 0, 1 << 20, 1 << 20, cached, ops, slots) + u32(0)
        self.cs_seqid = 0

    def exchange(self):
        res = self.bare((n.EXCHANGE_ID, self.verifier + opaque(self.owner) + u32(0) * 3))[0]
        if res["status"] == OK:
            self.clientid, self.cs_seqid = res["clientid"], res["sequenceid"]
        return res

    def another_session(self):
        res = self.bare((n.CREATE_SESSION, u64(self.clientid) + u32(self.cs_seqid) + u32(0) + self.channel * 2 + u32(1) * 2 + u32(0)))[0]
        if res["status"] == OK:
            self.session, self.seqid = res["session"], 0
            self.cs_seqid += 1
        return res

    def _exchange_id(self):
        res = self.exchange()
        return self.another_session() if res["status"] == OK else res

    def sequence(self, slot=0, seqid=None, keep=0, highest=None):
        return n.SEQUENCE, self.session + u32(self.seqid + 1 if seqid is None else seqid) + u32(slot) + u32(highest or slot) + u32(keep)

    def leave(self):
        """With all that it has: another one takes the owner's place and goes."""
        self.verifier = b"anew" + os.urandom(4)
        self.register()
        if self.minor:
            self.bare((n.DESTROY_SESSION, self.session))
            self.bare((n.DESTROY_CLIENTID, u64(self.clientid)))
        self.close()


class Polite(threading.Thread):
    """Makes, writes, locks, renames and removes a file, as Linux does it, and measures each round."""

    def __init__(self, d, path):
        super().__init__(daemon=True)
        self.c = n.Client(d.port, "polite", 1)
        self.c.register()
        self.c.reclaim_complete()
        self.dir = self.c.path(path)
        self.worst = self.rounds = 0
        self.wrong, self.over = [], False

    def ask(self, what, *ops):
        """The last result; a reply that is to be kept, and asked for again while the server says so."""
        end = time.monotonic() + WAIT_MOST
        while True:
            args = self.c.session + u32(self.c.seqid + 1) + u32(0) * 2 + u32(1)
            results = self.c.bare((n.SEQUENCE, args), *ops)
            if results[0]["status"] == OK:
                self.c.seqid += 1
            if results[-1]["status"] != DELAY or time.monotonic() > end:
                break
            time.sleep(0.01)
        if results[-1]["status"] != OK:
            self.wrong.append((what, results[-1]["status"]))
        return results

    def round(self):
        how = u32(1) + u32(0) + u32(2) + u32(0) + u32(2) + opaque(u32(0o666))
        res = self.ask("OPEN", putfh(self.dir), (n.OPEN, self.c._open_owner(3, 0) + how + u32(0) + r.name("polite")), (n.GETFH, b""))
        if res[-1]["status"] != OK:
            return
        fh, sid = res[-1]["fh"], res[-2]["stateid"]
        self.ask("WRITE", putfh(fh), n.write(sid, 0, b"data"))
        lock = u32(2) + u32(0) + u64(0) + u64(ALL) + u32(1) + u32(0) + sid + u32(0) + u64(self.c.clientid) + opaque(b"lock")
        self.ask("LOCK", putfh(fh), (n.LOCK, lock))
        self.ask("CLOSE", putfh(fh), (n.CLOSE, u32(0) + bytes(4) + sid[4:]))
        self.ask("REMOVE", putfh(self.dir), (REMOVE, r.name("polite")))

    def run(self):
        try:
            while not self.over:
                start = time.monotonic()
                self.round()
                self.worst = max(self.worst, time.monotonic() - start)
                self.rounds += 1
                time.sleep(0.01)
        except Exception as e:  # the main thread tells
            self.wrong.append(repr(e))


class Hostile:
    """State that the tests share."""

    def __init__(self, t, d, polite):
        self.t, self.d, self.polite, self.held = t, d, polite, Held(d)
        self.name = d.exports["x"]
        self.most = (MEMORY << 20) // 8
        self.clients = 0

    def client(self, minor=1, **kw):
        self.clients += 1
        c = Client(self.d.port, f"hostile {self.clients}", minor, **kw)
        self.t.equal("a client registers", c.register()["status"], OK)
        c.reclaim_complete()
        return c

    def within(self, what):
        used = self.held.now()["nfs4_memory"]
        self.t.check(f"{what}: within NFSv4's memory", used <= self.most, f"{used} of {self.most}")

    def newcomer(self, what):
        """Somebody new gets in, at the latest after a lease."""
        end, c = time.monotonic() + 3 * LEASE, n.Client(self.d.port, f"newcomer {what}", 1)
        start = time.monotonic()
        while (status := c.register()["status"]) == DELAY and time.monotonic() < end:
            time.sleep(0.05)
        self.t.equal(f"{what}: somebody new gets in", status, OK)
        c.bare((n.DESTROY_SESSION, c.session or bytes(16)))
        c.bare((n.DESTROY_CLIENTID, u64(c.clientid)))
        c.close()
        return time.monotonic() - start


# --- what is too long, too many, too large ---

def test_long_compounds(h):
    """10,000 operations; as many LOOKUPs as fit; what the session has not agreed on."""
    t, c = h.t, h.client(ops=1000)
    t.equal("10,000 operations", c.bare(c.sequence(), *[(n.PUTROOTFH, b"")] * 9999)[-1]["status"], TOO_MANY_OPS)
    deep = [(n.PUTROOTFH, b""), *(n.lookup(p) for p in h.name.strip("/").split("/")), *[n.lookup("deep")] * 90, (n.GETFH, b"")]
    fh = c.path(h.name)
    os.makedirs(h.name + "/deep" * 90)
    res = c.compound(*deep)
    t.equal("90 LOOKUPs deep", (res[-1]["status"], len(res)), (OK, len(deep)))
    res = c.compound(putfh(res[-1]["fh"]), *[(LOOKUPP, b"")] * 90, (n.GETFH, b""))
    t.equal("and back", res[-1].get("fh"), fh)
    res = c.bare(c.sequence(), putfh(fh), *[(GETATTR, READABLE)] * 100)
    c.seqid += 1
    t.equal("GETATTR of all 100 times", (res[-1]["status"], len(res)), (OK, 102))
    t.equal("and as a reply to keep", c.last(putfh(fh), *[(GETATTR, READABLE)] * 100)["status"], REP_TOO_BIG_TO_CACHE)
    t.equal("GETATTR of what can only be set", c.last(putfh(fh), (GETATTR, EVERY))["status"], INVAL)
    res = c.compound(putfh(fh), *[(SAVEFH, b"")] * 120)
    t.equal("SAVEFH 120 times", res[-1]["status"], OK)
    zero = n.Client(h.d.port, "old", 0)
    t.equal("10,000 operations of minor version 0", zero.bare(*[(n.PUTROOTFH, b"")] * 10000)[-1]["status"], RESOURCE)
    t.equal("no operation", zero.bare()[-1]["status"], OK)
    # Counts that are a lie.
    for minor, count in ((0, 5), (1, 5), (1, 0xffffffff), (2, 0x80000000), (0, 0xffffffff)):
        x = zero.conn.call(r.NFS, 4, 1, opaque(b"") + u32(minor) + u32(count) + u32(n.PUTROOTFH))
        t.check(f"{count} operations of which one is there, minor version {minor}", x.u32() != OK)
    zero.close()
    c.leave()


def readdir(cookie=0, dircount=0, maxcount=4096, attrs=READABLE):
    return READDIR, u64(cookie) + bytes(8) + u32(dircount) + u32(maxcount) + attrs


def test_listings(h):
    t, c = h.t, h.client()
    fh = c.path(h.name)
    many = h.name + "/many"
    os.mkdir(many)
    for i in range(2000):
        open(f"{many}/{'n' * 200}{i}", "w").close()
    fh = c.last(putfh(fh), n.lookup("many"), (n.GETFH, b""))["fh"]
    for maxcount, want in ((0, TOOSMALL), (1, TOOSMALL), (15, TOOSMALL), (16, TOOSMALL), (2000, OK), (0xffffffff, OK), (0x7fffffff, OK)):
        for dircount in (0, 1, 0xffffffff):
            res = c.last(putfh(fh), readdir(dircount=dircount, maxcount=maxcount))
            t.equal(f"READDIR of at most {maxcount} ({dircount})", res["status"], want)
    for cookie in (1, 2):
        t.equal(f"cookie {cookie}", c.last(putfh(fh), readdir(cookie))["status"], BAD_COOKIE)
    for cookie in (ALL, 1 << 63, 12345678901234567890):
        res = c.last(putfh(fh), readdir(cookie))
        t.check(f"cookie {cookie:x}", res["status"] in (OK, BAD_COOKIE), res)
    twice = c.last(putfh(fh), readdir(maxcount=0xffffffff), readdir(maxcount=0xffffffff))["status"]
    t.check("READDIR twice of all there is", twice in (OK, REP_TOO_BIG, REP_TOO_BIG_TO_CACHE), twice)
    for words in (0, 1, 2, 3, 8, 64):  # bitmaps that are longer than any attribute
        res = c.last(putfh(fh), (GETATTR, u32(words) + u32(0xffffffff) * words))
        t.equal(f"GETATTR with {words} words", res["status"], OK if words < 2 else INVAL)
        res = c.last(putfh(fh), (GETATTR, u32(words + 3) + READABLE[4:] + u32(0xffffffff) * words))
        t.equal(f"GETATTR with {words} words too many", res["status"], OK)
    res = c.last(putfh(fh), (GETATTR, u32(0xffffffff) + u32(0xffffffff) * 100))
    t.equal("GETATTR with 2^32-1 words", res["status"], BADXDR)
    c.leave()


def test_ranges(h):
    """Byte-range locks at the ends of the numbers; many on one file."""
    t = h.t
    for minor in (0, 1):
        c = h.client(minor)
        res, fh = c.open(c.path(h.name), f"ranges{minor}", create=True)
        sid = res["stateid"]
        top = (1 << 64) - 1
        for offset, length, want in ((0, 0, INVAL), (top, top, OK), (top, 1, INVAL), (top - 1, 1, OK), (top - 1, 3, INVAL), (1, top, OK),
                                     (2, top - 1, INVAL), (1 << 63, 1 << 63, INVAL), (1 << 63, (1 << 63) - 1, OK), (top, 0, INVAL)):
            res = c.lock(fh, sid, n.READ_LT, offset, length)
            # A server of 63 bits may say so (RFC 7530 section 16.10.4, RFC 8881 section 18.10.3).
            t.check(f"LOCK of {length} at {offset}, minor version {minor}", res["status"] in ((want, BAD_RANGE) if want == OK else (want,)), res)
        c.close_file(fh, bytes(4) + sid[4:] if minor else sid)
        c.leave()


def test_many_locks(h):
    """One owner's ranges on one file without end: refused when its share of memory is used up, and all of them gone by a CLOSE."""
    t, c, before = h.t, h.client(ops=120), h.held.now()
    res, fh = c.open(c.path(h.name), "locked", create=True)
    res = c.lock(fh, res["stateid"], n.WRITE_LT, 0, 1)
    sid, opened, at, status = bytes(4) + res["stateid"][4:], None, 0, OK
    start = time.monotonic()
    while status == OK and at < 100000:
        ops = []
        for _ in range(110):
            at += 1
            ops.append((n.LOCK, u32(2) + u32(0) + u64(2 * at) + u64(1) + u32(0) + sid + u32(0)))
        status = c.compound(putfh(fh), *ops)[-1]["status"]
    took = time.monotonic() - start
    print(f"{at} byte-range locks on one file: {took:.1f} s, then {status}")
    t.check("locks until there are enough", status in (OK, DELAY, RESOURCE), status)
    t.check("at least thousands", at > 5000, at)
    h.within("locks")
    c.leave()
    lost = h.held.until(lambda s: s["nfs4_locks"] <= before["nfs4_locks"] + 1 and s["nfs4_memory"] < h.most // 4)
    t.check("they are gone with their client", lost["nfs4_memory"] < h.most // 4, lost)


# --- without end ---

def test_unconfirmed(h):
    """Names that never come back: EXCHANGE_ID, SETCLIENTID and nothing else."""
    t, c = h.t, Client(h.d.port, "never", 1)
    before = h.held.now()["nfs4_memory"]
    for i in range(6000):
        c.owner = b"never confirms %d" % i + bytes(900 if i % 8 == 0 else 0)
        status = c.exchange()["status"]
        if status not in (OK, DELAY):
            t.check("EXCHANGE_ID without end", False, status)
            break
    h.within("unconfirmed clients")
    print(f"unconfirmed: {h.held.now()['nfs4_memory'] - before} bytes more after 6000 EXCHANGE_IDs")
    h.newcomer("unconfirmed clients")
    c.close()


def test_clients(h):
    """Clients with a session each until there is no more memory, from three machines, that are never heard of again."""
    t, made, tag = h.t, 0, os.urandom(4).hex()
    for host in (HOST, "127.0.0.10", "127.0.0.11"):
        c, status = Client(h.d.port, "many", 1, slots=64, host=host), OK
        while status == OK and made < 20000:
            c.owner = f"one of many {tag} {made}".encode()
            status = c.register()["status"]
            made += status == OK
        c.close()
        t.check(f"clients at {host} until there are enough", status in (OK, DELAY), status)
    h.within("clients")
    used = h.held.now()
    took = h.newcomer("clients")
    print(f"{made} clients, {used['nfs4_memory']} bytes; somebody new gets in after {took:.1f} s")
    t.check("somebody new gets in at once", took < LEASE - 1, took)


def test_slots(h):
    """65,536 slots asked for, each used as far as it is granted, each with a reply to keep; of many sessions."""
    t, status, kept = h.t, OK, 0
    clients = []
    for _ in range(3):
        c = h.client(slots=65536, cached=1 << 20)
        clients.append(c)
        status = OK
        for _ in range(16):
            if status == OK:
                status = c.another_session()["status"]
            highest, slot = 0, 0
            while status == OK and slot <= highest:
                res = c.bare(c.sequence(slot, 1, keep=1), (n.PUTROOTFH, b""), *[(GETATTR, READABLE)] * 4)
                status = res[0]["status"]
                highest = max(highest, res[0].get("highest", 0))
                kept += status == OK
                slot += 1
        t.equal("a slot beyond", c.bare(c.sequence(70000, 1))[0]["status"], BADSLOT)
    t.check("slots and replies until there are enough", status in (OK, DELAY, BADSLOT), status)
    h.within("slots")
    print(f"{kept} replies kept, {h.held.now()['nfs4_memory']} bytes")
    h.newcomer("slots")
    for c in clients:
        c.leave()


def test_opens(h):
    """Owners and opens without end, by both kinds of clients, that vanish."""
    t = h.t
    for minor in (0, 1):
        c, status, opened = h.client(minor, ops=32), OK, 0
        fh = c.path(h.name)
        while status == OK and opened < 30000:
            ops = [putfh(fh)]
            for _ in range(12 if minor else 1):
                opened += 1
                owner = u32(1) + u32(1) + u32(0) + u64(c.clientid) + opaque(b"%d" % opened + bytes(1000))
                ops += [putfh(fh), (n.OPEN, owner + u32(0) + u32(0) + r.name("everybody's"))]
            status = c.compound(*ops)[-1]["status"]
        t.check(f"opens until there are enough, minor version {minor}", status in (OK, DELAY, RESOURCE), status)
        h.within(f"opens, minor version {minor}")
        print(f"{opened} opens, {h.held.now()['nfs4_memory']} bytes")
        h.newcomer(f"opens {minor}")
        c.leave()


# --- what is somebody else's ---

def test_guesses(h):
    """Ids of others: near misses, and what is known of them used without being them."""
    t, mine, victim = h.t, h.client(), h.client()
    fh = victim.path(h.name)
    res, file = victim.open(fh, "secret", create=True)
    os.chmod(h.name + "/secret", 0o600)
    sid = res["stateid"]
    # Sessions.
    t.check("two sessions have little in common", sum(a == b for a, b in zip(mine.session, victim.session)) <= 6,
            (mine.session.hex(), victim.session.hex()))
    found = 0
    for i in range(2000):
        at, bit = i % 16, 1 << i // 16 % 8
        guess = bytes(b ^ (bit if k == at else 0) for k, b in enumerate(victim.session))
        if i >= 128:
            guess = victim.session[:12] + os.urandom(4)
        for op in (n.DESTROY_SESSION, BIND_CONN, n.SEQUENCE):
            args = {BIND_CONN: u32(3) + u32(0), n.SEQUENCE: u32(1) + u32(0) * 3}.get(op, b"")
            if i % 8 == 0 or op == n.DESTROY_SESSION:
                found += mine.bare((op, guess + args))[0]["status"] != n.BADSESSION
    t.equal("sessions that were guessed", found, 0)
    # Client ids are no secret, and no use.
    number = victim.clientid
    t.equal("DESTROY_CLIENTID of another", mine.bare((n.DESTROY_CLIENTID, u64(number)))[0]["status"], CLIENTID_BUSY)
    res = mine.bare((n.CREATE_SESSION, u64(number) + u32(7) + u32(0) + mine.channel * 2 + u32(1) + u32(1) + u32(0)))[0]
    t.equal("CREATE_SESSION of another", res["status"], SEQ_MISORDERED)
    t.equal("RENEW of another kind", n.Client(h.d.port, "x", 0).bare((n.RENEW, u64(number)))[0]["status"], n.STALE_CLIENTID)
    confirm = n.Client(h.d.port, "x", 0).bare((n.SETCLIENTID_CONFIRM, u64(number) + bytes(8)))[0]
    t.equal("SETCLIENTID_CONFIRM of another", confirm["status"], n.STALE_CLIENTID)
    # Stateids of others.
    for op in ((n.CLOSE, u32(0) + sid), n.read(sid, 0, 10), n.write(sid, 0, b"mine"), (FREE_STATEID, sid),
               (n.LOCKU, u32(1) + u32(1) + sid + u64(0) + u64(ALL))):
        t.equal(f"operation {op[0]} by another's stateid", mine.last(putfh(file), op)["status"], BAD_STATEID)
    for i in range(300):
        guess = bytes(b ^ (1 << i // 16 % 8 if k == i % 16 else 0) for k, b in enumerate(sid))
        res = mine.last(putfh(file), n.read(guess, 0, 10))
        t.check("a stateid near another's", res["status"] == BAD_STATEID, res) if res["status"] != BAD_STATEID else None
    # Minor version 0 has no session that says who it is: the stateid alone is no right to the data.
    old = h.client(0)
    res, _ = old.open(fh, "secret")
    stranger = n.Client(h.d.port, "stranger", 0)
    stranger.cred = r.auth_sys(1000, 1000)
    got = stranger.last(putfh(file), n.read(res["stateid"], 0, 10))
    t.equal("READ by a stateid that a stranger knows", got["status"], ACCES)
    t.equal("and by whom it was given to", old.last(putfh(file), n.read(res["stateid"], 0, 10))["status"], OK)
    t.equal("the victim's is as it was", victim.last(putfh(file), n.read(sid, 0, 10))["status"], OK)
    for c in (mine, victim, old):
        c.leave()
    stranger.close()


def test_sequences(h):
    """SEQUENCE and nothing else, again and again, in wrong places and with wrong numbers; BIND_CONN_TO_SESSION on many connections."""
    t, c = h.t, h.client()
    wrong = []
    for i in range(3000):
        res = c.bare(c.sequence())
        c.seqid += 1
        if res[0]["status"] != OK:
            wrong.append(res)
    t.equal("SEQUENCE 3000 times", wrong[:1], [])
    for seqid in (0, 1, c.seqid - 1, c.seqid + 2, 0xffffffff, 0x80000000):
        t.equal(f"sequence number {seqid}", c.bare(c.sequence(seqid=seqid))[0]["status"], SEQ_MISORDERED)
    res = c.bare(c.sequence(), c.sequence())
    c.seqid += 1
    t.equal("SEQUENCE twice", res[-1]["status"], SEQUENCE_POS)
    for _ in range(200):
        with r.Conn(h.d.port, source=(HOST, 0)) as conn:
            c.conn, keep = conn, c.conn
            res = c.bare((BIND_CONN, c.session + u32(3) + u32(0)))
            c.conn = keep
            if res[0]["status"] != OK:
                wrong.append(res)
    t.equal("BIND_CONN_TO_SESSION on 200 connections", wrong[:1], [])
    other = h.client()
    t.equal("DESTROY_SESSION among others", c.last((n.DESTROY_SESSION, c.session), (n.PUTROOTFH, b""))["status"], NOT_ONLY_OP)
    t.equal("the session is there", c.compound((n.PUTROOTFH, b""))[-1]["status"], OK)
    c.leave()
    other.leave()


def rdma_call(peer, body):
    """A COMPOUND by RDMA: the results' cursor."""
    message = r.call_message(r.NFS, 4, 1, body)
    chunks = u32(0) * 2 + struct.pack(">II", 1, 1) + peer.segment(2 << 20, 1 << 20)
    peer.send(message[:4] + u32(1) + u32(32) + u32(MSG) + chunks + message)
    while (raw := peer.receive()) is not None and raw[:4] != message[:4]:
        pass
    x = r.In(raw)
    x.take(12)
    kind = x.u32()
    if x.u32():
        raise ValueError("a Read list in a reply")
    while x.u32():
        for _ in range(x.u32()):
            x.take(16)
    size = 0
    if x.u32():
        size = sum(struct.unpack(">IIQ", x.take(16))[1] for _ in range(x.u32()))
    return r.reply_body(peer.get(size, 2 << 20) if kind == 1 else raw[x.at:])


def test_rdma(h, f):
    """The longest of them once more over RDMA, where a reply goes by what the client offers."""
    t, peer = h.t, Peer(f.environment(), before=f.command("hostile")).connect("127.0.0.1", PORT)
    for count, minor, op, want in ((10000, 0, u32(n.PUTROOTFH), RESOURCE), (20, 0, u32(n.PUTROOTFH) + u32(GETATTR) + READABLE, OK),
                                   (0xffffffff, 0, u32(n.PUTROOTFH), RESOURCE), (128, 0, u32(n.PUTROOTFH), OK)):
        per = 2 if len(op) > 4 else 1
        body = opaque(b"") + u32(minor) + u32(count) + op * min(count // per, 700)
        t.equal(f"{count} operations over RDMA", rdma_call(peer, body).u32(), want)
    c = h.client()
    many = opaque(c.last(putfh(c.path(h.name)), n.lookup("many"), (n.GETFH, b""))["fh"])
    for maxcount, want in ((0, TOOSMALL), (1, TOOSMALL), (2000, OK), (0xffffffff, OK)):
        body = opaque(b"") + u32(0) + u32(2) + u32(n.PUTFH) + many + u32(READDIR) + readdir(maxcount=maxcount)[1]
        t.equal(f"READDIR of at most {maxcount} over RDMA", rdma_call(peer, body).u32(), want)
    c.leave()
    peer.close()


class Vanished:
    """Has a file open so that nobody else may, and a lock on another, and is gone without a word."""

    def __init__(self, h):
        c = h.client()
        self.fh = c.path(h.name)
        res, _ = c.open(self.fh, "denied", create=True, deny=3)
        h.t.equal("OPEN that denies all", res["status"], OK)
        res, fh = c.open(self.fh, "everybody's")
        h.t.equal("LOCK by one who vanishes", c.lock(fh, res["stateid"])["status"], OK)
        c.conn.s.setsockopt(r.socket.SOL_SOCKET, r.socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
        self.since = time.monotonic()

    def check(self, h):
        """Other clients get the denied access when the lease is over."""
        c, end = n.Client(h.d.port, "heir", 1), self.since + 4 * LEASE
        h.t.equal("an heir registers", (c.register()["status"], c.reclaim_complete()), (OK, OK))
        while (res := c.open(self.fh, "denied", deny=3)[0])["status"] in (SHARE_DENIED, DELAY) and time.monotonic() < end:
            time.sleep(0.1)
        h.t.equal("what one had open who has vanished", res["status"], OK)
        while (opened := c.open(self.fh, "everybody's"))[0]["status"] == DELAY and time.monotonic() < end:
            time.sleep(0.1)
        res, fh = opened
        h.t.equal("an heir opens what everybody may", res["status"], OK)
        h.t.equal("what one had locked who has vanished", c.lock(fh, res["stateid"])["status"], OK)
        c.bare((n.DESTROY_SESSION, c.session))
        c.verifier = b"heirless"
        c.register()  # so that nothing stays open
        c.close()


# The last ones leave clients behind, who have what they have until their leases are over.
TESTS = (test_long_compounds, test_listings, test_ranges, test_sequences, test_guesses, test_rdma, test_many_locks, test_opens, test_slots,
         test_unconfirmed, test_clients)


def run(t, d, f):
    only = sys.argv[1:]
    open(d.exports["x"] + "/everybody's", "w").close()
    Peer(f.environment(), before=f.command("first")).connect("127.0.0.1", PORT).close()  # the device stays open
    before = Held(d).settled()
    polite = Polite(d, d.exports["x"])
    polite.start()
    h = Hostile(t, d, polite)
    vanished = Vanished(h)
    for test in TESTS:
        if only and test.__name__.removeprefix("test_") not in only:
            continue
        polite.worst, rounds, start = 0, polite.rounds, time.monotonic()
        test(h, *([f] if test is test_rdma else []))
        name = test.__name__.removeprefix("test_")
        print(f"{name}: {time.monotonic() - start:.1f} s; polite: {polite.rounds - rounds} rounds, slowest {polite.worst * 1000:.0f} ms, "
              f"wrong {polite.wrong[:3]}", flush=True)
        t.equal(f"the polite client during {name}", polite.wrong, [])
        t.check(f"its waits during {name}", polite.worst < WAIT_MOST, polite.worst)
        polite.wrong = []
        if not d.alive():
            break
    if d.alive() and not only:
        vanished.check(h)
    polite.over = True
    polite.join(30)
    polite.c.close()
    if d.alive() and not only:
        t.equal("everything that was held has come back", h.held.lost(before), {})
        now = h.held.now()
        t.equal("opens and locks", (now["nfs4_opens"], now["nfs4_locks"]), (0, 0))


def main():
    t = Count()
    settings = {"server.memory_max": f"{MEMORY}M", "nfs4.lease_time": LEASE, "nfs4.grace_time": 5, "rdma.enabled": "yes", "rdma.port": PORT}
    with fabric.Fabric() as f, Daemon({"x": "rw,insecure,no_root_squash"}, settings, before=f.command("server"), env=f.environment()) as d:
        run(t, d, f)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
