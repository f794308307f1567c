# SPDX-License-Identifier: BSD-2-Clause
"""NFSv3, NFSv4.0 to 4.2 and a local process behind one set of calls, so that what clients do is written once (acts.py).

Each call returns a status first, "ok" or an error's name. Directories and shared files are named by keys of a table that all clients
have: their handle, and their path. Calls that are told to come again do so here.
"""
import errno
import os
import struct
import time

import nfs4client as n4
import rpcclient as r
from by_path import Client
from linear import DIR, REG
from rpcclient import opaque, u32, u64
from wire import Callbacks, Lost, Restarted, Short, Silent, UdpWire

NAMES = {0: "ok", **{n: e[1:] for n, e in errno.errorcode.items()}, 66: "NOTEMPTY", 69: "DQUOT", 70: "STALE", 10001: "BADHANDLE", 10003: "BAD_COOKIE", 10006: "SERVERFAULT", 10008: "DELAY",
         10010: "DENIED", 10011: "EXPIRED", 10012: "LOCKED", 10013: "GRACE", 10015: "SHARE_DENIED", 10018: "RESOURCE", 10022: "STALE_CLIENTID", 10023: "STALE_STATEID",
         10024: "OLD_STATEID", 10025: "BAD_STATEID", 10027: "NOT_SAME", 10029: "SYMLINK", 10033: "NO_GRACE", 10034: "RECLAIM_BAD", 10038: "OPENMODE",
         10047: "ADMIN_REVOKED", 10052: "BADSESSION", 10063: "SEQ_MISORDERED", 10068: "RETRY_UNCACHED_REP", 10076: "SEQ_FALSE_RETRY", 10078: "DEADSESSION", 10087: "DELEG_REVOKED"}
AGAIN, STALE = (10008, 10013), 70
GONE = ("BAD_STATEID", "STALE_STATEID", "EXPIRED", "ADMIN_REVOKED", "OLD_STATEID", "DELEG_REVOKED")  # the state behind a stateid is
COMMIT, READ_PLUS, DEALLOCATE, RELEASE_LOCKOWNER, OFFLOAD_STATUS = 5, 68, 62, 39, 67
NLM, NLM_LOCK, NLM_UNLOCK, NLM_NM_LOCK = 100021, 2, 4, 22
NSM, SM_NOTIFY = 100024, 6


def word(status):
    """An error's name, without the E of errno's."""
    return NAMES.get(status, str(status))


class Remote(Client):
    """where: {key: (handle, path)}"""

    def end(self):
        self.wire.end()

    def come_back(self):
        """Calls go on after a restart of the server."""

    def list(self, d, rng=None):
        """(status, [(name, owner or -1)], validator): in one piece, or in pieces of sizes by rng. The validator is the directory's, if it was the same
        around one piece that has all."""
        out, at = [], (0, bytes(8))
        while True:
            try:
                status, entries, following, validator = self.piece(self.fh(d), *at, rng)
            except Restarted:
                if not rng:
                    raise
                self.come_back()  # a listing goes on after a restart
                continue
            out += entries
            if status != "ok" or not following:
                return status, out, validator if at[0] == 0 else None
            at = following

    def pause(self):
        """Before a call that is told to come again is sent again."""
        self.wire.check_over()
        if self.wire.server.is_short():
            raise Short("memory is short")
        time.sleep(0.02)


class V3(Remote):
    state = 1  # of its status monitor: another one after each reboot

    def __init__(self, name, wire, where):
        self.name, self.wire, self.where = name, wire, where

    def fh(self, key):
        return self.where[key][0]

    def call(self, proc, args, cred=r.ROOT):
        while True:
            xid = r.next_xid()
            res = r.decode(proc, r.reply_body(self.wire.call(r.call_message(r.NFS, 3, proc, args, cred, xid), xid), xid))
            if res["status"] != r.JUKEBOX and not (res["status"] == STALE and self.wire.server.is_hidden()):
                return word(res["status"]), res
            self.pause()

    @staticmethod
    def validator(a):
        return a and (a["size"], a["mtime"], a["ctime"])

    def change(self, wcc):
        """A directory's validators before and after a change, if nobody else can have been between."""
        return (wcc["before"], self.validator(wcc["after"])) if wcc["before"] and wcc["after"] else None

    def read(self, key, offset, size):
        status, x = self.call(r.READ, r.read_args(self.fh(key), offset, size))
        return status, x.get("data"), self.validator(x["attr"])

    def write(self, key, offset, data, how):
        status, x = self.call(r.WRITE, r.write_args(self.fh(key), offset, data, how))
        return status, (x["verf"], x["stable"]) if status == "ok" else None

    def commit(self, key):
        status, x = self.call(r.COMMIT, r.commit_args(self.fh(key)))
        return status, x.get("verf")

    def truncate(self, key):
        return self.call(r.SETATTR, r.setattr_args(self.fh(key), r.sattr(size=0)))[0]

    def getattr(self, fh):
        status, x = self.call(r.GETATTR, opaque(fh))
        return status, {**x["attr"], "change": None} if status == "ok" else None

    def create(self, d, name, kind, mode, uid, verifier):
        fh, cred = self.fh(d), r.auth_sys(uid, uid)
        if kind == REG:
            how = {"unchecked": r.UNCHECKED, "guarded": r.GUARDED, "exclusive": r.EXCLUSIVE}[mode]
            status, x = self.call(r.CREATE, r.create_args(fh, name, how, r.sattr(mode=0o666), verifier), cred)
        elif kind == DIR:
            status, x = self.call(r.MKDIR, r.mkdir_args(fh, name, r.sattr(mode=0o777)), cred)
        else:
            status, x = self.call(r.SYMLINK, r.symlink_args(fh, name, "x"), cred)
        a = x.get("attr")
        if status == "ok" and a is None and x["fh"]:
            a = self.getattr(x["fh"])[1]
        return status, a and a["uid"], x.get("fh"), self.change(x["wcc"])

    def remove(self, d, name, kind):
        status, x = self.call(r.RMDIR if kind == "dir" else r.REMOVE, r.diropargs(self.fh(d), name))
        return status, self.change(x["wcc"])

    def rename(self, d, name, e, other):
        return self.call(r.RENAME, r.rename_args(self.fh(d), name, self.fh(e), other))[0], None

    def link(self, fh, d, name):
        status, x = self.call(r.LINK, r.link_args(fh, self.fh(d), name))
        return status, self.change(x["wcc"])

    def lookup(self, d, name):
        status, x = self.call(r.LOOKUP, r.diropargs(self.fh(d), name))
        return status, (x["attr"]["uid"] if x["attr"] else -1) if status == "ok" else None, x.get("fh")

    def piece(self, fh, cookie, verf, rng):
        before, size, plus = None if rng else self.getattr(fh)[1], rng.choice((512, 700, 1500, 4096, 20000)) if rng else 32768, not rng or rng.random() < 0.5
        if plus:
            status, x = self.call(r.READDIRPLUS, r.readdirplus_args(fh, cookie, verf, size, max(size, 1024)))
        else:
            status, x = self.call(r.READDIR, r.readdir_args(fh, cookie, verf, size))
        if status != "ok":
            return status, [], None, None
        after = self.validator(before and self.getattr(fh)[1])
        entries = [(e["name"].decode(), e["attr"]["uid"] if plus and e["attr"] else -1) for e in x["entries"] if e["name"] not in (b".", b"..")]
        return "ok", entries, None if x["eof"] else (x["entries"][-1]["cookie"], x["verf"]), after if after == self.validator(before) else None

    def lock(self, key, kind, offset, size):
        """(status, None). The server monitors a client that can be asked; datagrams come from nobody who can."""
        return self.nlm(NLM_NM_LOCK if isinstance(self.wire, UdpWire) else NLM_LOCK, key, kind, offset, size), None

    def unlock(self, key, kind, offset, size):
        return self.nlm(NLM_UNLOCK, key, kind, offset, size)

    def notify(self):
        """Its status monitor tells the server that the machine has come again (SM_NOTIFY), with the state that it has now."""
        while True:
            try:
                conn = r.Conn(self.wire.server.port, source=(self.wire.source, self.wire.rng.randrange(600, 1024)))
            except OSError:
                self.wire.check_over()
                continue
            conn.call(NSM, 1, SM_NOTIFY, opaque(self.name.encode()) + u32(self.state))
            return conn.close()

    def nlm(self, proc, key, kind, offset, size):
        """A lock or its end by NLM version 4, of a process that lives as long as its machine: its status."""
        lock = opaque(self.name.encode()) + opaque(self.fh(key)) + opaque(b"%d@" % self.state + self.name.encode()) + u32(self.state) + u64(offset) + u64(size)
        args = opaque(b"cookie") + (u32(0) + u32(int(kind == n4.WRITE_LT)) + lock + u32(0) + u32(self.state) if proc != NLM_UNLOCK else lock)
        while True:
            xid = r.next_xid()
            x = r.reply_body(self.wire.call(r.call_message(NLM, 4, proc, args, xid=xid), xid), xid)
            x.opaque()
            status = x.u32()
            if status != 4:  # the grace period
                return {0: "ok", 1: "DENIED"}.get(status, str(status))
            self.wire.check_over()
            time.sleep(0.05)


def _uid(owner):
    """-1 for a name, which the server gives to who comes by Kerberos."""
    return int(owner) if owner.isdigit() else -1


ATTRS = {3: ("change", lambda v: v.u64()), 4: ("size", lambda v: v.u64()), 11: ("error", lambda v: v.u32()), 20: ("fileid", lambda v: v.u64()),
         35: ("nlink", lambda v: v.u32()), 36: ("uid", lambda v: _uid(v.opaque())), 52: ("ctime", lambda v: (v.u64(), v.u32())),
         53: ("mtime", lambda v: (v.u64(), v.u32()))}
GET = n4.GETATTR, n4.bitmap(*(b for b in ATTRS if b != 11))


def _attrs(x, res):
    words, v = n4._bitmap(x), r.In(x.opaque())
    for bit in (32 * w + b for w, bits in enumerate(words) for b in range(32) if bits >> b & 1):
        name, get = ATTRS[bit]
        res[name] = get(v)
    v.end()


def _entries(x, res):
    res["verf"], res["entries"] = x.take(8), []
    while x.flag():
        e = {"cookie": x.u64(), "name": x.opaque().decode()}
        _attrs(x, e)
        res["entries"].append(e)
    res["eof"] = x.flag()


def _read_plus(x, res):
    res["eof"], res["data"] = x.flag(), b""
    for _ in range(x.u32()):
        kind, _ = x.u32(), x.u64()
        res["data"] += x.opaque() if kind == 0 else bytes(x.u64())


def _copied(x, res):
    res.update(callbacks=[x.take(16) for _ in range(x.u32())], count=x.u64(), committed=x.u32(), verf=x.take(8), flags=x.take(8))


RESULTS = {**n4.RESULTS, n4.GETATTR: _attrs, n4.READDIR: _entries, READ_PLUS: _read_plus, COMMIT: lambda x, res: res.update(verf=x.take(8)),
           n4.COPY: _copied, OFFLOAD_STATUS: lambda x, res: res.update(count=x.u64(), complete=[x.u32() for _ in range(x.u32())])}


class V4(Remote):
    """Opens and locks have an owner each, so the sequence numbers of 4.0 are simple. A stateid travels with its owner: [stateid, owner, seqid]."""

    def __init__(self, name, wire, where, minor, back=False):
        self.name, self.wire, self.where, self.minor, self.back = name, wire, where, minor, back
        self.verifier, self.session, self.clientid, self.run, self.flags = os.urandom(8), None, 0, None, 0
        self.seqid = self.owners = 0
        self.called, self.binding, self.callbacks = [], False, None
        self.held = {}  # {handle: (change, size)} of files that it changes under a delegation
        if back and minor:
            wire.on_call = self.on_call
        elif back:
            self.callbacks = Callbacks(wire.source, self.on_call)

    fh = V3.fh

    @staticmethod
    def validator(a):
        return a and a["change"]

    def end(self):
        super().end()
        if self.callbacks:
            self.callbacks.socket.close()

    def on_call(self, data):
        if data[20:24] == u32(0):  # CB_NULL
            return data[:4] + u32(1) + bytes(16)
        c = n4.get_callback(data)
        self.called.append(c)
        if c["op"] != n4.CB_GETATTR:
            return n4.put_callback_reply(c)
        held = self.held.get(c["fh"])
        return n4.put_callback_reply(c, n4.OK if held else r.BADHANDLE, held and n4.held_attrs(*held))

    def recalled(self):
        return any(c["op"] == n4.CB_RECALL for c in self.called)

    def bare(self, ops, cred=r.ROOT):
        xid = r.next_xid()
        body = opaque(b"") + u32(self.minor) + u32(len(ops)) + b"".join(u32(op) + args for op, args in ops)
        x = r.reply_body(self.wire.call(r.call_message(r.NFS, 4, 1, body, cred, xid), xid), xid)
        status, _ = x.u32(), x.opaque()
        return n4.get_results(x, status, RESULTS)

    def again(self, status):
        """True if the call is to be sent once more, after a pause."""
        if status in AGAIN:
            self.pause()
        return status in AGAIN

    def once(self, *ops, cred=r.ROOT):
        """The results behind SEQUENCE's."""
        if self.minor == 0:
            return self.bare(ops, cred)
        if self.session is None:
            raise Lost("no session")
        while True:
            res = self.bare(((n4.SEQUENCE, self.session + u32(self.seqid + 1) + u32(0) + u32(0) + u32(1)), *ops), cred)
            if res[0]["status"] == 0:
                break
            if not self.again(res[0]["status"]):
                raise Lost(word(res[0]["status"]))
        self.seqid += 1
        self.flags = res[0]["flags"]
        if self.flags & 8 and res[-1]["status"]:  # all its state is revoked
            self.verifier = os.urandom(8)
            raise Lost("EXPIRED_ALL_STATE_REVOKED")
        if self.back and self.flags & (n4.CB_PATH_DOWN | n4.CB_PATH_DOWN_SESSION) and not self.binding:
            self.binding = True
            try:
                self.bare([(n4.BIND_CONN_TO_SESSION, self.session + u32(3) + u32(0))])
            finally:
                self.binding = False
        return res[1:] or res

    def compound(self, *ops, cred=r.ROOT):
        """The results. What has been made is not made again if its attributes are to be asked for again."""
        while True:
            res = self.once(*ops, cred=cred)
            made = any(x["op"] == n4.CREATE and x["status"] == 0 for x in res)
            if made or not (self.again(res[-1]["status"]) or self.hidden(res[-1])):
                return res

    def hidden(self, x):
        """True if the export was not there for the operation, so that it has done nothing: the call is to be sent once more."""
        if x["status"] != STALE or not self.wire.server.is_hidden():
            return False
        self.pause()
        return True

    def on(self, fh, *ops, cred=r.ROOT):
        """(status, last result) of operations on a handle."""
        x = self.compound(n4.putfh(fh), *ops, cred=cred)[-1]
        return word(x["status"]), x

    def settle(self, *op, good=(0,)):
        """A result of an operation that founds the client, which comes again until it is there."""
        while (x := self.bare([op])[0])["status"] not in good:
            if x["status"] not in (10008, 10022, 10063):
                raise Silent(f"operation {op[0]}: {word(x['status'])}")
            self.again(x["status"])
        return x

    def register(self):
        while True:
            if self.minor == 0:
                callback = u32(0x40000000) + opaque(b"tcp") + opaque(self.callbacks.address if self.callbacks else b"127.0.0.1.0.0") + u32(0)
                x = self.settle(n4.SETCLIENTID, self.verifier + opaque(self.name.encode()) + callback)
                second = n4.SETCLIENTID_CONFIRM, u64(x["clientid"]) + x["confirm"]
            else:
                x = self.settle(n4.EXCHANGE_ID, self.verifier + opaque(self.name.encode()) + u32(0) * 3)
                channel = struct.pack(">6I", 0, 1 << 20, 1 << 20, 8192, 16, 8) + u32(0)
                second = n4.CREATE_SESSION, (u64(x["clientid"]) + u32(x["sequenceid"]) + u32(2 if self.back else 0) + channel * 2 +
                                             u32(0x40000000) + u32(1) + u32(0))
            y = self.settle(*second, good=(0, 10022, 10063))
            if y["status"] == 0:
                break
        self.clientid, self.session, self.seqid = x["clientid"], y.get("session"), 0
        self.run, self.prefix = self.wire.run, os.urandom(4).hex().encode()

    def reclaim_complete(self):
        if self.minor:
            self.compound((n4.RECLAIM_COMPLETE, u32(0)))

    def renew(self):
        if self.minor:
            self.once()
        elif (status := self.bare([(n4.RENEW, u64(self.clientid))])[0]["status"]) not in (0, n4.ERR_CB_PATH_DOWN):
            raise Lost(word(status))

    def owner(self):
        self.owners += 1
        return self.prefix + u32(self.owners)

    def open(self, d, name, access, deny=0, how=u32(0), want=n4.WANT_NO_DELEG, cred=r.ROOT):
        """(status, result, handle, attributes, state)"""
        return self._open(self.fh(d), u32(n4.CLAIM_NULL) + r.name(name), access, deny, how, want, cred)

    def reclaim(self, fh, access, deny=0, delegation=0, want=n4.WANT_NO_DELEG):
        """Returns the same as open(). The grace period is no reason to wait here."""
        return self._open(fh, u32(n4.CLAIM_PREVIOUS) + u32(delegation), access, deny, u32(0), want, r.ROOT, again=(10008,))

    def _open(self, fh, claim, access, deny, how, want, cred, again=AGAIN):
        while True:
            owner, bits = self.owner(), access | (want if self.minor else 0)
            res = self.once(n4.putfh(fh), (n4.OPEN, u32(1) + u32(bits) + u32(deny) + u64(self.clientid) + opaque(owner) + how + claim),
                            (n4.GETFH, b""), GET, cred=cred)
            op = next((x for x in res if x["op"] == n4.OPEN), res[-1])
            if not self.hidden(op) and (op["status"] not in again or not self.again(op["status"])):
                break
        if op["op"] == n4.OPEN and op["status"] in (10011, 10022):
            raise Lost(word(op["status"]))
        if op["status"]:
            return word(op["status"]), op, None, None, None
        state = [op["stateid"], owner, 1]
        handle = next((x["fh"] for x in res if x["op"] == n4.GETFH and x["status"] == 0), None)
        if handle and op["rflags"] & 2 and self.minor == 0:
            state[2] = 2
            x = self.once(n4.putfh(handle), (n4.OPEN_CONFIRM, op["stateid"] + u32(2)), cred=cred)[-1]
            if x["status"]:
                raise Lost("OPEN_CONFIRM " + word(x["status"]))
            state[0] = x["stateid"]
        attrs = res[-1] if res[-1]["op"] == n4.GETATTR and res[-1]["status"] == 0 else None
        return "ok", op, handle, attrs, state

    def close(self, fh, state, cred=r.ROOT):
        state[2] += 1
        return self.on(fh, (n4.CLOSE, u32(state[2]) + state[0]), cred=cred)[0]

    def lock(self, fh, state, kind, offset, size, reclaim=False):
        """(status, result, state of the lock)"""
        again = (10008,) if reclaim else AGAIN
        while True:
            owner = self.owner()
            state[2] += 1
            locker = u32(1) + u32(state[2]) + state[0] + u32(1) + u64(self.clientid) + opaque(owner)
            x = self.once(n4.putfh(fh), (n4.LOCK, u32(kind) + u32(reclaim) + u64(offset) + u64(size) + locker))[-1]
            if x["status"] not in again or not self.again(x["status"]):
                return word(x["status"]), x, [x.get("stateid"), owner, 1]

    def unlock(self, fh, state, kind, offset, size):
        state[2] += 1
        status, x = self.on(fh, (n4.LOCKU, u32(kind) + u32(state[2]) + state[0] + u64(offset) + u64(size)))
        if status == "ok":
            self.compound((n4.FREE_STATEID, x["stateid"]) if self.minor else (RELEASE_LOCKOWNER, u64(self.clientid) + opaque(state[1])))
        return status

    def read(self, key, offset, size, stateid=n4.ANONYMOUS, plus=False):
        op, args = n4.read(stateid, offset, size)
        res = self.compound(n4.putfh(self.fh(key)), (READ_PLUS if plus else op, args), GET)
        return word(res[-1]["status"]), res[1].get("data") if len(res) > 1 else None, self.validator(res[-1] if len(res) > 2 and not res[-1]["status"] else None)

    def write(self, key, offset, data, how, stateid=n4.ANONYMOUS):
        status, x = self.on(self.fh(key), n4.write(stateid, offset, data, how))
        return status, (x["verf"], x["committed"]) if status == "ok" else None

    def deallocate(self, key, offset, size):
        return self.on(self.fh(key), (DEALLOCATE, n4.ANONYMOUS + u64(offset) + u64(size)))[0], None

    def commit(self, key):
        status, x = self.on(self.fh(key), (COMMIT, u64(0) + u32(0)))
        return status, x.get("verf")

    def truncate(self, key, size=0, stateid=n4.ANONYMOUS):
        return self.on(self.fh(key), (n4.SETATTR, stateid + n4.bitmap(n4.SIZE) + opaque(u64(size))))[0]

    def copy(self, source, key, size):
        """COPY from the beginning of a file to that of another, which may go on in the background: how it has ended."""
        opened = []
        for k, access in (source, n4.SHARE_READ), (key, n4.SHARE_WRITE):
            status, _, fh, _, state = self.open("root", k, access)
            if status != "ok":
                return status
            opened.append((fh, state))
        (src, reading), (dst, writing) = opened
        x = self.compound(n4.putfh(src), (n4.SAVEFH, b""), n4.putfh(dst), (n4.COPY, reading[0] + writing[0] + u64(0) * 2 + u64(size) + u32(1) + u32(0) * 2))[-1]
        status, ended = x["status"], not x.get("callbacks")
        while not ended:
            told = [c["status"] for c in self.called if c["op"] == n4.CB_OFFLOAD and c["stateid"] == x["callbacks"][0]]
            y = self.compound(n4.putfh(dst), (OFFLOAD_STATUS, x["callbacks"][0]))[-1]
            ended = told or y["status"] or y["complete"]
            status = told[0] if told else y["status"] or (y["complete"][0] if ended else 0)
            time.sleep(0.005)
        for fh, state in opened:
            self.close(fh, state)
        return word(status)

    def getattr(self, fh):
        status, x = self.on(fh, GET)
        return status, x if status == "ok" else None

    def change(self, info):
        atomic, before, after = struct.unpack(">IQQ", info)
        return (before, after) if atomic else None

    def create(self, d, name, kind, mode, uid, verifier):
        cred = r.auth_sys(uid, uid)
        if kind != REG:
            args = (u32(2) if kind == DIR else u32(5) + r.name("x")) + r.name(name) + u32(0) + opaque(b"")
            res = self.compound(n4.putfh(self.fh(d)), (n4.CREATE, args), (n4.GETFH, b""), GET, cred=cred)
            if res[-1]["status"]:
                return word(res[-1]["status"]) if res[-1]["op"] in (n4.PUTFH, n4.CREATE) else "ok", None, None, None
            return "ok", res[-1]["uid"], res[-2]["fh"], self.change(res[1]["cinfo"])
        attrs = n4.bitmap(33) + opaque(u32(0o666))
        how = {"unchecked": u32(0) + attrs, "guarded": u32(1) + attrs, "exclusive": u32(3) + verifier + attrs if self.minor else u32(2) + verifier}[mode]
        status, op, fh, a, state = self.open(d, name, access=2, how=u32(1) + how, cred=cred)
        if status == "ok" and fh:
            self.close(fh, state, cred)
        return status, a and a["uid"], fh, self.change(op["cinfo"]) if status == "ok" else None

    def remove(self, d, name, kind):
        status, x = self.on(self.fh(d), (n4.REMOVE, r.name(name)))
        return status, self.change(x["cinfo"]) if status == "ok" else None

    def rename(self, d, name, e, other):
        """Both directories' changes."""
        status, x = self.on(self.fh(d), (n4.SAVEFH, b""), n4.putfh(self.fh(e)), (n4.RENAME, r.name(name) + r.name(other)))
        return status, (self.change(x["cinfo"][:20]), self.change(x["cinfo"][20:])) if status == "ok" else None

    def link(self, fh, d, name):
        status, x = self.on(fh, (n4.SAVEFH, b""), n4.putfh(self.fh(d)), (n4.LINK, r.name(name)))
        return status, self.change(x["cinfo"]) if status == "ok" else None

    def lookup(self, d, name):
        res = self.compound(n4.putfh(self.fh(d)), n4.lookup(name), (n4.GETFH, b""), GET)
        if res[-1]["op"] == n4.GETATTR and res[-1]["status"] in (2, 70):  # gone between LOOKUP and GETATTR
            return "ok", -1, None
        return word(res[-1]["status"]), res[-1].get("uid"), res[-2].get("fh")

    def come_back(self):
        self.register()
        self.reclaim_complete()

    def piece(self, fh, cookie, verf, rng):
        size = rng.choice((600, 900, 1500, 4096, 7000)) if rng else 7000  # replies are kept
        args = u64(cookie) + verf + u32(size // 2) + u32(size) + n4.bitmap(11, 20, 36)
        res = self.compound(n4.putfh(fh), GET, (n4.READDIR, args), GET)
        if res[-1]["status"]:
            return word(res[-1]["status"]), [], None, None
        x, before, after = res[2], res[1]["change"], res[3]["change"]
        entries = [(e["name"], e.get("uid", -1)) for e in x["entries"]]
        return "ok", entries, None if x["eof"] else (x["entries"][-1]["cookie"], x["verf"]), after if after == before else None

    def dir_delegation(self, d):
        status, x = self.on(self.fh(d), (n4.GET_DIR_DELEGATION, u32(0) * 2 + (u64(0) + u32(0)) * 2 + u32(0) * 2))
        return x["deleg"] if status == "ok" and not x["gdd"] else None

    def delegreturn(self, fh, stateid):
        return self.on(fh, (n4.DELEGRETURN, stateid))[0]
