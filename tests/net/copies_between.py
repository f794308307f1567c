#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Copies between two servers (COPY_NOTIFY, COPY with a source server): the bytes; who may read by the stateid, what, and how long;
addresses that the settings do not name; and sources that are cut off, silent, restarted, or hostile."""
import os
import random
import signal
import socket
import struct
import threading
import time

import harness
import nfs4client as n
import rpcclient as r
from harness import Count, Daemon
from held import Held
from rpcclient import opaque, u32, u64

COMMIT, COPY, COPY_NOTIFY, OFFLOAD_CANCEL, OFFLOAD_STATUS, RESTOREFH = 5, 60, 61, 66, 67, 31
ACCESS, ISDIR, INVAL, NOTSUPP, BADXDR = 13, 21, 22, 10004, 10036
DENIED, NO_REQS = 10091, n.OFFLOAD_NO_REQS
NL4_NAME, NL4_URL, NL4_NETADDR = 1, 2, 3
MIB = 1 << 20
LEASE = 6  # a source has a third of it to answer
BASE = {"nfs4.lease_time": LEASE, "nfs4.grace_time": LEASE}
OPTIONS = {"rw": "rw,insecure,no_root_squash"}
SEED = int(os.environ.get("COPIES_SEED", time.time_ns() & 0xffffffff))
rnd = random.Random(SEED)


def netaddr(port, host="127.0.0.1", netid=b"tcp"):
    return u32(NL4_NETADDR) + opaque(netid) + opaque(f"{host}.{port >> 8}.{port & 255}".encode())


def _netloc(x):
    kind = x.u32()
    return (kind, x.opaque(), x.opaque()) if kind == NL4_NETADDR else (kind, x.opaque())


def _copied(x, res):
    res.update(callbacks=[x.take(16) for _ in range(x.u32())], count=x.u64(), committed=x.u32(), verf=x.take(8),
               consecutive=x.flag(), synchronous=x.flag())


n.RESULTS[COPY] = _copied
n.RESULTS[COMMIT] = lambda x, res: res.update(verf=x.take(8))
n.RESULTS[COPY_NOTIFY] = lambda x, res: res.update(lease=(x.u64(), x.u32()), sid=x.take(16), servers=[_netloc(x) for _ in range(x.u32())])
n.RESULTS[OFFLOAD_STATUS] = lambda x, res: res.update(count=x.u64(), complete=[x.u32() for _ in range(x.u32())])


class Client(n.Client):
    """A client of one server; host: that it calls from."""
    back = True

    def __init__(self, t, d, name, host="127.0.0.1"):
        self.source = (host, 0)
        super().__init__(d.port, name, 2)
        t.equal(f"{name} has a session", self.register()["status"], n.OK)
        t.equal(f"{name} has nothing to reclaim", self.reclaim_complete(), n.OK)
        self.await_callback()
        self.root = self.path(d.exports["rw"])

    def opened(self, name, access, create=False):
        """(handle, stateid) of an open file."""
        while (res := self.open(self.root, name, create=create, access=access))[0]["status"] == n.GRACE:
            time.sleep(0.1)
        return res[1], res[0]["stateid"]

    def notify(self, fh, sid, to):
        return self.last(n.putfh(fh), (COPY_NOTIFY, sid + to))

    def copy(self, src, dst, servers, synchronous=False, count=0, at=(0, 0)):
        args = src[1] + dst[1] + u64(at[0]) + u64(at[1]) + u64(count) + u32(1) + u32(synchronous) + u32(len(servers))
        res = self.last(n.putfh(src[0]), (n.SAVEFH, b""), n.putfh(dst[0]), (COPY, args + b"".join(servers)))
        res["sid"] = res["callbacks"][0] if res.get("callbacks") else None
        return res

    def offload(self, op, sid, fh):
        return self.last(n.putfh(fh), (op, sid))

    def read(self, fh, sid, count=10):
        return self.last(n.putfh(fh), n.read(sid, 0, count))

    def leave(self):
        self.bare((n.DESTROY_SESSION, self.session))
        self.bare((n.DESTROY_CLIENTID, u64(self.clientid)))
        self.close()


class Relay:
    """Between the two servers. what(relay, conn number, bytes passed so far to the destination): "pass", "cut" or "hold"."""

    def __init__(self, to):
        self.to, self.what, self.passed, self.conns = to, lambda *_: "pass", 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            a, _ = self.listener.accept()
            self.conns += 1
            try:
                b = socket.create_connection(("127.0.0.1", self.to), source_address=("127.0.0.1", 0))
            except OSError:
                a.close()
                continue
            for args in ((a, b, None), (b, a, self.conns)):
                threading.Thread(target=self._pass, args=args, daemon=True).start()

    def _pass(self, a, b, conn):
        try:
            while data := a.recv(65536):
                if conn:
                    self.passed += len(data)
                    while (do := self.what(self, conn, self.passed)) == "hold":
                        time.sleep(0.02)
                    if do == "cut":
                        break
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Hostile:
    """A source that answers EXCHANGE_ID and CREATE_SESSION, and then READ by answer(message): bytes to send, or None to say nothing."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.answer, self.asked, self.conns = self.listener.getsockname()[1], None, 0, 0
        self.creds = set()  # credentials that calls came with: flavor and body
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            s, _ = self.listener.accept()
            self.conns += 1
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        try:
            while True:
                mark = struct.unpack(">I", self._take(s, 4))[0]
                data = self._take(s, mark & 0x7fffffff)
                if (out := self._reply(data)) is None:
                    continue
                s.sendall(out)
        except OSError:
            pass

    @staticmethod
    def _take(s, size):
        out = b""
        while len(out) < size:
            if not (more := s.recv(size - len(out))):
                raise OSError
            out += more
        return out

    def _reply(self, data):
        self.creds.add((struct.unpack(">I", data[24:28])[0], data[32:52]))
        ops = data[4 * 6 + 8 + 20 + 8 + 12:]  # behind the RPC header, the tag, the minor version and the number of operations
        op = struct.unpack(">I", ops[:4])[0]
        if op == n.EXCHANGE_ID:
            return self.record(data, self.results((op, u64(7) + u32(1) + u32(0x10000) + u32(0) + u64(0) + opaque(b"x") * 2 + u32(0))))
        if op == n.CREATE_SESSION:
            channel = struct.pack(">7I", 0, 4096, MIB + 4096, 4096, 8, 1, 0)
            return self.record(data, self.results((op, b"s" * 16 + u32(1) + u32(0) + channel * 2)))
        if op != n.SEQUENCE:
            return self.record(data, self.results((op, b"")))
        self.asked += 1
        return self.answer(data, ops)

    @staticmethod
    def results(*ops, status=0, tag=b""):
        return u32(status) + opaque(tag) + u32(len(ops)) + b"".join(u32(op) + u32(0) + body for op, body in ops)

    @staticmethod
    def record(data, body, more=0):
        msg = data[:4] + u32(1) + u32(0) + u64(0) + u32(0) + body
        return u32(0x80000000 | (len(msg) + more)) + msg

    def read(self, data, ops, result, seq=None):
        """A reply to READ with that result."""
        seq = seq or b"s" * 16 + ops[20:24] + bytes(16)
        return self.record(data, self.results((n.SEQUENCE, seq), (n.PUTFH, b""), (n.READ, result)))


class T(Count):
    def __init__(self):
        super().__init__()
        self.src = Daemon(OPTIONS, {**BASE, "nfs4.copy_servers": "127.0.0.1"})
        self.relay, self.hostile, self.bystander = Relay(self.src.port), Hostile(), socket.create_server(("127.0.0.1", 0))
        self.bystander.setblocking(False)
        ports = (self.src.port, self.relay.port, self.hostile.port)
        self.dst = Daemon(OPTIONS, {**BASE, "nfs4.copy_servers": ", ".join(f"127.0.0.1:{p}" for p in ports)})
        self.number = 0

    def pair(self, size, random=True):
        return Pair(self, size, random)

    def copies_gone(self, what, held):
        self.equal(f"{what}: copies that are left", held.until(lambda s: not s["nfs4_copies"])["nfs4_copies"], 0)


class Pair:
    """A client of both servers, with a file of that size open at the source, an empty one at the destination, and a COPY_NOTIFY."""

    def __init__(self, t, size, random):
        t.number += 1
        self.t, self.name, self.size = t, f"f{t.number}", size
        self.src_path, self.dst_path = (os.path.join(d.exports["rw"], self.name) for d in (t.src, t.dst))
        self.data = rnd.randbytes(size) if random else None
        with open(self.src_path, "wb") as f:
            if random:
                f.write(self.data)
            f.truncate(size)
        os.chmod(self.src_path, 0o600)
        with open(self.dst_path, "wb"):
            pass
        self.a, self.b = Client(t, t.src, self.name), Client(t, t.dst, self.name)
        self.from_fh, self.from_sid = self.a.opened(self.name, n.SHARE_READ)
        self.to = self.b.opened(self.name, n.SHARE_WRITE | n.WANT_NO_DELEG)  # the test reads the file locally
        self.notify()

    def notify(self):
        self.told = self.a.notify(self.from_fh, self.from_sid, netaddr(self.t.dst.port))
        self.t.equal("COPY_NOTIFY", self.told["status"], n.OK)
        self.source = self.from_fh, self.told["sid"]

    def copy(self, port, **kw):
        res = self.b.copy(self.source, self.to, [netaddr(port)], **kw)
        self.t.equal("COPY", (res["status"], res.get("synchronous"), res["sid"] is not None), (n.OK, False, True))
        return res

    def end(self, n_th=1):
        """What CB_OFFLOAD tells: (status, bytes)."""
        told = self.b.await_callback(n.CB_OFFLOAD, n_th)
        return told["status"], told["count"]

    def copied(self):
        with open(self.dst_path, "rb") as f:
            return f.read()

    def until_copied(self, sid):
        while not (res := self.b.offload(OFFLOAD_STATUS, sid, self.to[0])).get("count", 1):
            time.sleep(0.01)
        return res

    def leave(self):
        for c, fh, sid in ((self.a, self.from_fh, self.from_sid), (self.b, *self.to)):
            try:
                c.close_file(fh, sid)
                c.leave()
            except (r.Closed, OSError):
                c.close()
        os.unlink(self.src_path)
        os.unlink(self.dst_path)


def test_copy(t, at_source, _at_destination):
    p = t.pair(5 * MIB + 123)
    t.equal("cnr_lease_time", p.told["lease"], (LEASE, 0))
    t.equal("cnr_source_server", p.told["servers"], [(NL4_NETADDR, b"tcp", netaddr(t.src.port)[16:].rstrip(b"\0"))])
    t.equal("copy sources", at_source.now()["nfs4_copy_sources"], 1)
    res = p.copy(t.src.port)
    t.equal("CB_OFFLOAD", p.end(), (n.OK, p.size))
    t.check("the copy", p.copied() == p.data)
    t.equal("COMMIT's verifier", p.b.last(n.putfh(p.to[0]), (COMMIT, u64(0) + u32(0))).get("verf"), res["verf"])
    p.b.called.clear()
    p.copy(t.src.port, at=(MIB + 1, 77), count=3 * MIB)
    t.equal("CB_OFFLOAD of a range", p.end(), (n.OK, 3 * MIB))
    t.check("the range", p.copied()[77:77 + 3 * MIB] == p.data[MIB + 1:4 * MIB + 1])
    p.b.called.clear()
    p.copy(t.src.port, at=(p.size - 10, 0), count=MIB)
    t.equal("CB_OFFLOAD of a range that the source ends in", p.end(), (n.OK, 10))
    t.equal("OFFLOAD_CANCEL of another user", _as_user(p.a, lambda: p.a.offload(OFFLOAD_CANCEL, p.told["sid"], p.from_fh)["status"]),
            n.BAD_STATEID)
    t.equal("OFFLOAD_CANCEL", p.a.offload(OFFLOAD_CANCEL, p.told["sid"], p.from_fh)["status"], n.OK)
    t.equal("OFFLOAD_CANCEL again", p.a.offload(OFFLOAD_CANCEL, p.told["sid"], p.from_fh)["status"], n.BAD_STATEID)
    t.equal("copy sources", at_source.now()["nfs4_copy_sources"], 0)
    p.b.called.clear()
    p.copy(t.src.port)
    t.equal("CB_OFFLOAD of one that is not allowed any more", p.end(), (DENIED, 0))
    t.check("the stateid was another", res["sid"] != p.told["sid"])
    p.leave()


def _as_user(c, call):
    c.cred = r.auth_sys(1000, 1000)
    out = call()
    c.cred = r.ROOT
    return out


def test_reader(t, _at_source, _at_destination):
    """Who may read by the stateid, and what."""
    p = t.pair(100)
    sid = p.told["sid"]
    t.equal("TEST_STATEID", p.a.test_stateid(sid), [n.OK])
    there, elsewhere = Client(t, t.src, "reader"), Client(t, t.src, "eavesdropper", "127.0.0.9")
    t.equal("READ by the destination", there.read(p.from_fh, sid).get("data"), p.data[:10])
    t.equal("READ by its user", _as_user(there, lambda: there.read(p.from_fh, sid).get("data")), p.data[:10])
    t.equal("READ from another address", elsewhere.read(p.from_fh, sid)["status"], n.BAD_STATEID)
    t.equal("TEST_STATEID by another client", there.test_stateid(sid), [n.BAD_STATEID])
    other = there.opened("other", n.SHARE_BOTH, create=True)
    t.equal("READ of another file", there.read(other[0], sid)["status"], n.BAD_STATEID)
    t.equal("WRITE", there.last(n.putfh(p.from_fh), n.write(sid, 0, b"x"))["status"], n.BAD_STATEID)
    t.equal("SETATTR", there.last(n.putfh(p.from_fh), (n.SETATTR, sid + u32(1) + u32(1 << 4) + opaque(u64(0))))["status"], n.BAD_STATEID)
    t.equal("OFFLOAD_CANCEL by another client", there.offload(OFFLOAD_CANCEL, sid, p.from_fh)["status"], n.BAD_STATEID)
    for bit in (0, 31, 32, 127):
        guess = bytearray(sid)
        guess[bit // 8] ^= 1 << bit % 8
        t.equal(f"READ with bit {bit} wrong", there.read(p.from_fh, bytes(guess))["status"], n.BAD_STATEID)
    t.check("two are different", p.a.notify(p.from_fh, p.from_sid, netaddr(1))["sid"] != sid)
    t.equal("CLOSE", p.a.close_file(p.from_fh, p.from_sid)["status"], n.OK)
    t.equal("READ after CLOSE", there.read(p.from_fh, sid)["status"], n.BAD_STATEID)
    there.close_file(*other)
    for c in (there, elsewhere):
        c.leave()
    p.leave()


def test_lease(t, at_source, _at_destination):
    """It ends a lease after the last use."""
    p = t.pair(100)
    reader = Client(t, t.src, "late reader")
    end = time.monotonic() + LEASE + 2
    while time.monotonic() < end:
        t.equal("READ within the lease", reader.read(p.from_fh, p.told["sid"])["status"], n.OK)
        p.a.compound()
        time.sleep(1)
    while at_source.now()["nfs4_copy_sources"]:
        p.a.compound()
        reader.compound()
        time.sleep(0.2)
    t.equal("READ after it", reader.read(p.from_fh, p.told["sid"])["status"], n.BAD_STATEID)
    p.b.compound()
    p.copy(t.src.port)
    t.equal("CB_OFFLOAD of a copy that came too late", p.end(), (DENIED, 0))
    reader.leave()
    p.leave()


def test_refused(t, _at_source, _at_destination):
    p = t.pair(100)
    a, b, port = p.a, p.b, t.src.port
    for what, fh, sid, to, want in (
            ("another server", p.from_fh, p.from_sid, netaddr(port, "127.0.0.2"), ACCESS),
            ("a name", p.from_fh, p.from_sid, u32(NL4_NAME) + opaque(b"localhost"), ACCESS),
            ("a URL", p.from_fh, p.from_sid, u32(NL4_URL) + opaque(b"nfs://127.0.0.1/"), ACCESS),
            ("a transport that is not known", p.from_fh, p.from_sid, netaddr(port, netid=b"udp"), ACCESS),
            ("RDMA", p.from_fh, p.from_sid, netaddr(20049, netid=b"rdma"), n.OK),
            ("an anonymous stateid", p.from_fh, n.ANONYMOUS, netaddr(port), n.BAD_STATEID),
            ("a directory", a.root, p.from_sid, netaddr(port), ISDIR),
            ("no location", p.from_fh, p.from_sid, u32(4) + opaque(b"x"), BADXDR)):
        t.equal(f"COPY_NOTIFY for {what}", a.notify(fh, sid, to)["status"], want)
    stranger = t.bystander.getsockname()[1]
    for what, servers, want in (
            ("another port", [netaddr(stranger)], DENIED),
            ("another address", [netaddr(port, "127.0.0.2")], DENIED),
            ("a name", [u32(NL4_NAME) + opaque(b"localhost")], DENIED),
            ("a URL", [u32(NL4_URL) + opaque(b"nfs://127.0.0.1:%d/" % port)], DENIED),
            ("RDMA", [netaddr(port, netid=b"rdma")], DENIED),
            ("a mapped address", [netaddr(port, "::ffff:127.0.0.1", b"tcp6")], DENIED),
            ("no location", [u32(9) + opaque(b"x")], BADXDR)):
        # The handle is the other server's, and means nothing here.
        res = p.b.last(n.putfh(p.to[0]), (n.SAVEFH, b""), n.putfh(p.to[0]),
                       (COPY, p.told["sid"] + p.to[1] + u64(0) * 3 + u32(1) + u32(0) + u32(len(servers)) + b"".join(servers)))
        t.equal(f"COPY from {what}", res["status"], want)
    good = [netaddr(port)]
    t.equal("a synchronous COPY", b.copy(p.source, p.to, good, synchronous=True)["status"], NO_REQS)
    conns = t.relay.conns
    for what, sid in (("an anonymous", n.ANONYMOUS), ("a READ bypass", b"\xff" * 16), ("a current", u32(1) + bytes(12)),
                      ("an invalid", b"\xff" * 4 + bytes(12)), ("an undefined special", u32(7) + bytes(12)),
                      ("a seqid of 0 and all ones in the", u32(0) + b"\xff" * 12), ("a seqid of 0 in the", u32(0) + p.told["sid"][4:])):
        res = b.copy((p.from_fh, sid), p.to, [netaddr(t.relay.port)])
        t.equal(f"a COPY with {what} stateid of the source", res["status"], n.BAD_STATEID)
    t.equal("connections to the source for them", t.relay.conns, conns)
    t.equal("bytes copied by them", p.copied(), b"")
    t.equal("a COPY beyond all files", b.copy(p.source, p.to, good, at=(1 << 63, 0))["status"], INVAL)
    t.equal("a COPY with a stateid of no open", b.copy(p.source, (p.to[0], n.ANONYMOUS), good)["status"], DENIED)
    fh = p.source[0]
    for what, ops in (("alone", ()), ("and SAVEFH", ((n.SAVEFH, b""),)),
                      ("and another operation", ((n.SAVEFH, b""), n.putfh(p.to[0]), (n.CLOSE, u32(1) + p.to[1])))):
        t.check(f"PUTFH of the other's handle {what} fails", b.compound(n.putfh(fh), *ops)[0]["status"] != n.OK)
    res = b.compound(n.putfh(fh), (n.SAVEFH, b""), n.putfh(p.to[0]),
                     (COPY, p.told["sid"] + p.to[1] + u64(0) * 3 + u32(1) + u32(0) + u32(1) + good[0]), (RESTOREFH, b""))
    t.check("RESTOREFH behind COPY fails", res[-2]["status"] == n.OK and res[-1]["op"] == RESTOREFH and res[-1]["status"] != n.OK, res)
    t.equal("CB_OFFLOAD", p.end(), (n.OK, 100))
    try:
        t.bystander.accept()
        t.check("nobody else was called", False)
    except BlockingIOError:
        t.check("nobody else was called", True)
    p.leave()


def test_cut(t, _at_source, _at_destination):
    """The connection is lost in the middle: another one goes on."""
    p = t.pair(6 * MIB)
    relay = t.relay
    relay.passed = 0
    first = relay.conns + 1
    relay.what = lambda _, conn, passed: "cut" if conn == first and passed > 2 * MIB + MIB // 2 else "pass"
    p.copy(relay.port)
    t.equal("CB_OFFLOAD", p.end(), (n.OK, p.size))
    t.check("the copy", p.copied() == p.data)
    t.equal("connections", relay.conns, first + 1)
    p.leave()


def test_silence(t, _at_source, at_destination):
    p = t.pair(6 * MIB)
    t.relay.passed = 0
    t.relay.what = lambda _, conn, passed: "hold" if passed > 2 * MIB + MIB // 2 else "pass"
    p.copy(t.relay.port)
    t.equal("CB_OFFLOAD of a source that has become silent", p.end(), (n.OK, 2 * MIB))
    p.b.called.clear()
    t.relay.passed = 100 * MIB  # silent from the start
    res = p.copy(t.relay.port)
    t.equal("OFFLOAD_CANCEL", p.b.offload(OFFLOAD_CANCEL, res["sid"], p.to[0])["status"], n.OK)
    t.copies_gone("cancelled", at_destination)
    t.equal("no callback", [c for c in p.b.called if c["op"]], [])
    p.copy(t.relay.port)
    t.equal("CB_OFFLOAD of a silent source", p.end(), (DENIED, 0))
    t.check("the first bytes", p.copied() == p.data[:2 * MIB])
    t.relay.what = lambda *_: "pass"
    p.leave()


def test_hostile(t, _at_source, at_destination):
    h = t.hostile
    whole = u32(1) + opaque(b"x" * 100)
    for what, answer in (
            ("garbage", lambda d, o: rnd.randbytes(2000)),
            ("a call", lambda d, o: u32(0x80000000 | 40) + d[:40]),
            ("another xid", lambda d, o: h.read(b"\1\2\3\4" + d[4:], o, whole)),
            ("a long reply to another xid", lambda d, o: h.read(b"\1\2\3\4" + d[4:], o, u32(1) + opaque(bytes(5000)))),
            ("a refusal", lambda d, o: u32(0x80000000 | 20) + d[:4] + u32(1) + u32(1) + u32(1) + u32(1)),
            ("half a reply", lambda d, o: h.read(d, o, whole)[:60]),
            ("a longer one than announced", lambda d, o: h.record(d, h.results((n.SEQUENCE, b"s" * 16 + o[20:24] + bytes(16)),
                                                                              (n.PUTFH, b""), (n.READ, u32(1) + u32(100) + bytes(50))))),
            ("more data than asked for", lambda d, o: h.read(d, o, u32(0) + opaque(bytes(101)))),
            ("no data and no end", lambda d, o: h.read(d, o, u32(0) + opaque(b""))),
            ("a wrong bool", lambda d, o: h.read(d, o, u32(2) + opaque(b"x"))),
            ("another session", lambda d, o: h.read(d, o, whole, b"t" * 16 + o[20:24] + bytes(16))),
            ("another sequence id", lambda d, o: h.read(d, o, whole, b"s" * 16 + u32(99) + bytes(16))),
            ("results missing", lambda d, o: h.record(d, h.results((n.SEQUENCE, b"s" * 16 + o[20:24] + bytes(16))))),
            ("other operations", lambda d, o: h.record(d, h.results((n.READ, whole), (n.PUTFH, b""), (n.SEQUENCE, bytes(36))))),
            ("an error", lambda d, o: h.record(d, u32(70) + opaque(b"") + u32(0))),
            ("a long tag", lambda d, o: h.record(d, h.results(tag=bytes(1100)))),
            ("an endless record", lambda d, o: u32(0xffffffff) + d[:4] + u32(1) + bytes(3000)),
            ("a record of many fragments", lambda d, o: u32(4) + d[:4] + u32(4) + u32(1) + u32(4) * 2 * 400)):
        p = t.pair(100)
        h.answer = answer
        p.copy(h.port, count=100)
        t.equal(f"CB_OFFLOAD after {what}", p.end(), (DENIED, 0))
        t.equal(f"the destination after {what}", p.copied(), b"")
        p.leave()
    p = t.pair(100)
    data = rnd.randbytes(100)
    h.answer = lambda d, o: h.read(d, o, u32(0) + opaque(data[struct.unpack(">Q", o[-12:-4])[0]:][:7]))
    p.copy(h.port, count=100)
    t.equal("CB_OFFLOAD after short reads", p.end(), (n.OK, 100))
    t.equal("the destination after short reads", p.copied(), data)
    p.b.called.clear()
    replies = [lambda d, o: h.record(d, u32(n.DELAY) + opaque(b"") + u32(1) + u32(n.SEQUENCE) + u32(n.DELAY)),
               lambda d, o: h.read(d, o, u32(0) + opaque(data[:50])),
               lambda d, o: h.read(d, o, u32(1) + opaque(b""))]
    h.answer = lambda d, o: replies.pop(0)(d, o)
    p.copy(h.port, count=100)
    t.equal("CB_OFFLOAD after a delay and an early end", p.end(), (n.OK, 50))
    p.leave()
    nobody = u32(0) + opaque(b"") + u32(65534) * 2 + u32(0)
    t.equal("credentials that sources were called with", h.creds, {(1, nobody)})
    t.copies_gone("hostile sources", at_destination)


def test_cancel(t, _at_source, at_destination):
    p = t.pair(1024 * MIB, random=False)
    sid = p.copy(t.src.port)["sid"]
    p.until_copied(sid)
    t.equal("OFFLOAD_CANCEL", p.b.offload(OFFLOAD_CANCEL, sid, p.to[0])["status"], n.OK)
    size = os.stat(p.dst_path).st_size
    t.check("it was in the middle", 0 < size < p.size, size)
    t.copies_gone("cancelled", at_destination)
    t.equal("nothing is written after the answer", os.stat(p.dst_path).st_size, size)
    p.leave()


def test_restart(t, which, sig):
    p = t.pair(1024 * MIB, random=False)
    sid = p.copy(t.src.port)["sid"]
    p.until_copied(sid)
    t.equal(f"exit status after {sig!r}", which.stop(sig)[0], -sig if sig == signal.SIGKILL else 0)
    which.start()
    if which is t.src:
        status, count = p.end()
        t.check("what was copied is told", status == n.OK and 0 < count < p.size, (status, count))
        t.equal("so many bytes are there", os.stat(p.dst_path).st_size, count)
    else:
        p.b.again()
        t.check("it ended in the middle", 0 < os.stat(p.dst_path).st_size < p.size)
        again = Client(t, which, f"again {sig}")
        t.equal("OFFLOAD_STATUS after a restart", again.offload(OFFLOAD_STATUS, sid, p.to[0])["status"], n.BAD_STATEID)
        again.leave()
    p.leave()


def test_off(t):
    with Daemon(OPTIONS, BASE) as d:
        c = Client(t, d, "off")
        fh, sid = c.opened("f", n.SHARE_BOTH, create=True)
        t.equal("COPY_NOTIFY without the setting", c.notify(fh, sid, netaddr(d.port))["status"], NOTSUPP)
        other = c.opened("g", n.SHARE_BOTH, create=True)
        t.equal("COPY without the setting", c.copy((fh, sid), other, [netaddr(t.src.port)])["status"], DENIED)
        c.close()


def main():
    t = T()
    with t.src, t.dst:
        held = Held(t.src), Held(t.dst)
        before = [h.settled() for h in held]
        for test in (test_copy, test_reader, test_lease, test_refused, test_cut, test_silence, test_hostile, test_cancel):
            test(t, *held)
        for h, b in zip(held, before):
            t.equal("what was not given back", h.lost(b), {})
        test_off(t)
        test_restart(t, t.src, signal.SIGKILL)
        test_restart(t, t.dst, signal.SIGTERM)
        for d in (t.src, t.dst):
            harness.finish(t, d)
    if t.failed:
        print(f"COPIES_SEED={SEED}")
    harness.result(t)


if __name__ == "__main__":
    main()
