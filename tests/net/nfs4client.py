# SPDX-License-Identifier: BSD-2-Clause
"""A small NFSv4 client over TCP (RFC 7531, RFC 5662) for tests: COMPOUNDs of operations, as bytes, and what comes back.

An operation is (number, arguments); a result is a dictionary with "op" and "status". One client has one connection and, from
minor version 1 on, one session of one slot.
"""
import struct

import rpcclient as r
from rpcclient import opaque, u32, u64

(CLOSE, GETFH, LOCK, LOCKT, LOCKU, LOOKUP, OPEN, OPEN_CONFIRM, PUTFH, PUTROOTFH, READ, RENEW, SETCLIENTID, SETCLIENTID_CONFIRM, WRITE,
 EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION, SEQUENCE, DESTROY_CLIENTID, RECLAIM_COMPLETE) = (
    4, 10, 12, 13, 14, 15, 18, 20, 22, 24, 25, 30, 35, 36, 38, 42, 43, 44, 53, 57, 58)
DELEGPURGE, DELEGRETURN, REMOVE, RENAME, SAVEFH, SETATTR, BIND_CONN_TO_SESSION, FREE_STATEID, TEST_STATEID, WANT_DELEGATION = (
    7, 8, 28, 29, 32, 34, 41, 45, 55, 56)
CREATE, LINK, GETATTR, NVERIFY, VERIFY, GET_DIR_DELEGATION = 6, 11, 9, 17, 37, 46
WANT_NO_DELEG = 0x400  # in the share access of OPEN
CB_GETATTR = 3
CB_RECALL, CB_NOTIFY, CB_SEQUENCE, CB_NOTIFY_LOCK, CB_OFFLOAD = 4, 6, 11, 13, 15
CB_RECALL_ANY, CB_RECALL_SLOT = 8, 10
CHILD_ATTRS, DIR_ATTRS, REMOVED, ADDED, RENAMED, VERIFIER = range(6)  # notify_type4
CB_PATH_DOWN, CB_PATH_DOWN_SESSION, BACKCHANNEL_FAULT = 0x1, 0x200, 0x400  # flags of SEQUENCE
RECALLABLE_REVOKED = 0x40
ERR_CB_PATH_DOWN = 10048
OK, DELAY, DENIED, EXPIRED, GRACE, MINOR_VERS_MISMATCH, STALE_CLIENTID, STALE_STATEID, NO_GRACE, RECLAIM_BAD, RECLAIM_CONFLICT, BADSESSION = (
    0, 10008, 10010, 10011, 10013, 10021, 10022, 10023, 10033, 10034, 10035, 10052)
READ_LT, WRITE_LT, READW_LT, WRITEW_LT = 1, 2, 3, 4
MAY_NOTIFY_LOCK = 0x20  # flag of OPEN
SHARE_READ, SHARE_WRITE, SHARE_BOTH = 1, 2, 3
COPY, OFFLOAD_NO_REQS = 60, 10094
ALLOCATE, SETXATTR = 59, 73
OPEN_DOWNGRADE, READDIR, SECINFO, SECINFO_NO_NAME = 21, 26, 33, 52
SHARE_DENIED, BAD_STATEID, LOCKS_HELD, OPENMODE, DELEG_REVOKED, CLIENTID_BUSY = 10015, 10025, 10037, 10038, 10087, 10074
CLAIM_NULL, CLAIM_PREVIOUS, CLAIM_DELEGATE_CUR, CLAIM_FH, CLAIM_DELEG_CUR_FH = 0, 1, 2, 4, 5
DELEGATE_NONE, DELEGATE_READ, DELEGATE_WRITE, DELEGATE_NONE_EXT = 0, 1, 2, 3
CHANGE, SIZE, TIME_METADATA, TIME_MODIFY = 3, 4, 52, 53
ALL = 0xffffffffffffffff
ANONYMOUS = bytes(16)


def putfh(fh):
    return PUTFH, opaque(fh)


def lookup(name):
    return LOOKUP, r.name(name)


def read(stateid, offset, count):
    return READ, stateid + u64(offset) + u32(count)


def write(stateid, offset, data, stable=2):
    return WRITE, stateid + u64(offset) + u32(stable) + opaque(data)


def _bitmap(x):
    return [x.u32() for _ in range(x.u32())]


def _denied(x, res):
    res.update(offset=x.u64(), length=x.u64(), type=x.u32(), clientid=x.u64(), owner=x.opaque())


def _open(x, res):
    res.update(stateid=x.take(16), cinfo=x.take(20), rflags=x.u32(), attrset=_bitmap(x))
    _delegation(x, res)


def _delegation(x, res):
    res["delegation"] = x.u32()
    if res["delegation"] in (DELEGATE_READ, DELEGATE_WRITE):
        res.update(deleg=x.take(16), recalled=x.flag())
        if res["delegation"] == DELEGATE_WRITE:
            res["limit"] = (x.u32(), x.u64())
        res["ace"] = (x.u32(), x.u32(), x.u32(), x.opaque())
    elif res["delegation"] == DELEGATE_NONE_EXT:
        res["why"] = x.u32()
        if res["why"] in (1, 2):
            res["later"] = x.flag()


def _dir_delegation(x, res):
    res["gdd"] = x.u32()
    if res["gdd"]:
        res["later"] = x.flag()
    else:
        res.update(verf=x.take(8), deleg=x.take(16), notifications=[_bitmap(x) for _ in range(3)])


def _exchange_id(x, res):
    res.update(clientid=x.u64(), sequenceid=x.u32(), flags=x.u32(), protect=x.u32())
    if res["protect"] == 1:
        res.update(enforce=_bitmap(x), allow=_bitmap(x))
    res.update(minor_id=x.u64(), major_id=x.opaque(), scope=x.opaque())
    for _ in range(x.u32()):
        x.opaque(), x.opaque(), x.take(12)


def _channel(x):
    v = struct.unpack(">6I", x.take(24))
    for _ in range(x.u32()):
        x.u32()
    return v


def _create_session(x, res):
    res.update(session=x.take(16), sequenceid=x.u32(), flags=x.u32(), fore=_channel(x), back=_channel(x))


def _bind_conn(x, res):
    res.update(session=x.take(16), dir=x.u32(), rdma=x.flag())


def _referring(x):
    """[(session, [(sequence id, slot)])]"""
    return [(x.take(16), [(x.u32(), x.u32()) for _ in range(x.u32())]) for _ in range(x.u32())]


def _notify_entry(x):
    """(name, attributes: words of the bitmap, values)"""
    return x.opaque(), _bitmap(x), x.opaque()


def _notify_remove(x):
    return {"entry": _notify_entry(x), "cookie": x.u64()}


def _notify_add(x):
    return {"old": [_notify_remove(x) for _ in range(x.u32())], "entry": _notify_entry(x),
            "cookies": [x.u64() for _ in range(x.u32())], "previous": [(_notify_entry(x), x.u64()) for _ in range(x.u32())],
            "last": x.flag()}


NOTICES = {
    DIR_ATTRS: lambda x: {"entry": _notify_entry(x)},
    REMOVED: _notify_remove,
    ADDED: _notify_add,
    RENAMED: lambda x: {"from": _notify_remove(x), "to": _notify_add(x)},
}


def _notify(x):
    """A notify4: (type, what its values say)."""
    mask = _bitmap(x)
    if len(mask) != 1 or mask[0] not in [1 << n for n in NOTICES]:
        raise ValueError(f"notify_mask {mask}")
    kind = mask[0].bit_length() - 1
    values = r.In(x.opaque())
    what = NOTICES[kind](values)
    values.end()
    return kind, what


def get_callback(data):
    """A CB_COMPOUND call, taken apart."""
    x = r.In(data)
    c = {"xid": x.u32(), "type": x.u32(), "rpcvers": x.u32(), "prog": x.u32(), "vers": x.u32(), "proc": x.u32(),
         "flavor": x.u32(), "cred": x.opaque(), "verf": (x.u32(), x.opaque()), "tag": x.opaque(), "minor": x.u32(), "ident": x.u32(),
         "nops": x.u32(), "op": None}
    if c["minor"] == 0:
        c["op"] = x.u32()
    elif x.u32() != CB_SEQUENCE:
        raise ValueError("a callback without CB_SEQUENCE")
    else:
        c.update(session=x.take(16), seqid=x.u32(), slot=x.u32(), highest=x.u32(), cache=x.flag(), referring=_referring(x))
    if c["minor"] and c["nops"] > 1:
        c["op"] = x.u32()
    if c["op"] == CB_GETATTR:
        c.update(fh=x.opaque(), wants=_bitmap(x))
    if c["op"] == CB_RECALL:
        c.update(stateid=x.take(16), truncate=x.flag(), fh=x.opaque())
    if c["op"] == CB_RECALL_ANY:
        c.update(keep=x.u32(), types=_bitmap(x))
    elif c["op"] == CB_RECALL_SLOT:
        c["target"] = x.u32()
    if c["op"] == CB_NOTIFY:
        c.update(stateid=x.take(16), fh=x.opaque(), changes=[_notify(x) for _ in range(x.u32())])
    elif c["op"] == CB_NOTIFY_LOCK:
        c.update(fh=x.opaque(), clientid=x.u64(), owner=x.opaque())
    elif c["op"] == CB_OFFLOAD:
        c.update(fh=x.opaque(), stateid=x.take(16), status=x.u32())
        if c["status"] == OK:
            c["callbacks"] = [x.take(16) for _ in range(x.u32())]
        c["count"] = x.u64()
        if c["status"] == OK:
            c.update(committed=x.u32(), verf=x.take(8))
    x.end()
    return c


def put_callback_reply(c, status=OK, body=b""):
    """The reply to such a call; status, and body if that is OK: of the operation behind CB_SEQUENCE."""
    res = u32(CB_SEQUENCE) + u32(OK) + c["session"] + u32(c["seqid"]) + u32(c["slot"]) + u32(15) + u32(15) if c["minor"] else b""
    if c["op"] is not None:
        res += u32(c["op"]) + u32(status) + (body if status == OK else b"")
    last = OK if c["op"] is None else status
    return u32(c["xid"]) + u32(1) + u32(0) + u32(0) + u32(0) + u32(0) + u32(last) + opaque(b"") + u32(c["nops"]) + res


def bitmap(*numbers):
    words = [0] * (max(numbers) // 32 + 1)
    for n in numbers:
        words[n // 32] |= 1 << n % 32
    return u32(len(words)) + b"".join(u32(w) for w in words)


def _getattr(x, res):
    """Attributes that getattr_op() asks for: change, size, times of the metadata and of the data."""
    res["bitmap"] = _bitmap(x)
    values = r.In(x.opaque())
    res.update(change=values.u64(), size=values.u64(), ctime=(values.u64(), values.u32()), mtime=(values.u64(), values.u32()))


def getattr_op():
    return GETATTR, bitmap(CHANGE, SIZE, TIME_METADATA, TIME_MODIFY)


def held_attrs(change, size):
    """The fattr4 that answers CB_GETATTR."""
    return bitmap(CHANGE, SIZE) + opaque(u64(change) + u64(size))


def _secinfo(x, res):
    res["flavors"] = []
    for _ in range(x.u32()):
        flavor = x.u32()
        res["flavors"].append((flavor, x.opaque(), x.u32(), x.u32()) if flavor == 6 else (flavor,))


def _readdir(x, res):
    res.update(verf=x.take(8), names=[])
    while x.flag():
        x.u64()
        res["names"].append(x.opaque())
        _bitmap(x)
        x.opaque()
    res["eof"] = x.flag()


RESULTS = {
    READDIR: _readdir,
    **{op: _secinfo for op in (SECINFO, SECINFO_NO_NAME)},
    GETATTR: _getattr,
    OPEN: _open,
    BIND_CONN_TO_SESSION: _bind_conn,
    WANT_DELEGATION: _delegation,
    TEST_STATEID: lambda x, res: res.update(each=[x.u32() for _ in range(x.u32())]),
    GET_DIR_DELEGATION: _dir_delegation,
    CREATE: lambda x, res: res.update(cinfo=x.take(20), attrset=_bitmap(x)),
    **{op: lambda x, res: res.update(cinfo=x.take(20)) for op in (LINK, REMOVE, SETXATTR)},
    RENAME: lambda x, res: res.update(cinfo=x.take(40)),
    EXCHANGE_ID: _exchange_id,
    CREATE_SESSION: _create_session,
    GETFH: lambda x, res: res.update(fh=x.opaque()),
    READ: lambda x, res: res.update(eof=x.flag(), data=x.opaque()),
    WRITE: lambda x, res: res.update(count=x.u32(), committed=x.u32(), verf=x.take(8)),
    SEQUENCE: lambda x, res: res.update(session=x.take(16), seqid=x.u32(), slot=x.u32(), highest=x.u32(), target=x.u32(),
                                        flags=x.u32()),
    SETCLIENTID: lambda x, res: res.update(clientid=x.u64(), confirm=x.take(8)),
    **{op: lambda x, res: res.update(stateid=x.take(16)) for op in (CLOSE, LOCK, LOCKU, OPEN_CONFIRM, OPEN_DOWNGRADE)},
}


def get_results(x, status, decoders=RESULTS):
    """The results of a COMPOUND with that status."""
    results = []
    for _ in range(x.u32()):
        res = {"op": x.u32(), "status": x.u32()}
        if res["op"] == SETATTR:
            res["set"] = _bitmap(x)
        elif res["status"] == OK:
            decoders.get(res["op"], lambda *_: None)(x, res)
        elif res["op"] in (LOCK, LOCKT) and res["status"] == DENIED:
            _denied(x, res)
        elif (res["op"], res["status"]) == (COPY, OFFLOAD_NO_REQS):
            res.update(consecutive=x.flag(), synchronous=x.flag())
        results.append(res)
    x.end()
    if not results:
        return [{"op": 0, "status": status}]
    if results[-1]["status"] != status:
        raise ValueError(f"the COMPOUND says {status}, its last result {results[-1]}")
    return results


class Client:
    longest = 1 << 20  # message of the session
    keeps = True  # replies in the slot
    operations = 16  # of a COMPOUND of the session
    cred = r.ROOT  # of the calls
    back = False  # asks for a back channel
    answers = True  # callbacks, in the way of a client that does as it is told
    cb_status = OK  # of its answers
    cb_attrs = b""  # body of its answers to CB_GETATTR
    # Minor version 0: program, netid, universal address, ident. Nobody can be called at this one.
    callback = (0x40000000, b"tcp", b"127.0.0.1.0.0", 0)
    host = "127.0.0.1"  # that it calls
    source = None  # (address, port) that it calls from
    tag = b""  # of its COMPOUNDs

    def __init__(self, port, owner, minor=1, verifier=b"verifier"):
        self.port, self.owner, self.minor, self.verifier = port, owner.encode(), minor, verifier
        self.session, self.clientid, self.flags = None, 0, 0  # flags: of the last SEQUENCE
        self.seqid = self.owner_seqid = 0  # of the slot; of the open-owner (minor version 0)
        self.called = []  # callbacks so far
        self._connect()

    def _connect(self):
        self.conn = r.Conn(self.port, self.host, source=self.source)
        if self.back:
            self.conn.on_call = self._on_call

    def _on_call(self, data):
        self.called.append(get_callback(data))
        body = self.cb_attrs if self.called[-1]["op"] == CB_GETATTR else b""
        return put_callback_reply(self.called[-1], self.cb_status, body) if self.answers else None

    def await_callback(self, op=None, n=1):
        """Waits until n callbacks of that operation have come (None: of CB_SEQUENCE alone); returns the last."""
        while len(found := [c for c in self.called if c["op"] == op]) < n:
            was_call, data = self.conn.take_call()
            if not was_call:
                raise ValueError(f"a reply to nothing: {data[:16].hex()}")
        return found[-1]

    def bind(self, direction):
        return self.bare((BIND_CONN_TO_SESSION, self.session + u32(direction) + u32(0)))[0]

    def close(self):
        self.conn.close()

    def again(self):
        """A new connection, to the server that has restarted."""
        self.conn.close()
        self._connect()

    def bare(self, *ops):
        """The results of a COMPOUND as it stands."""
        body = b"".join(u32(op) + args for op, args in ops)
        x = self.conn.call(r.NFS, 4, 1, opaque(self.tag) + u32(self.minor) + u32(len(ops)) + body, self.cred)
        status = x.u32()
        if x.opaque() != self.tag:
            raise ValueError("the reply has another tag")
        return get_results(x, status)

    def compound(self, *ops):
        """The results behind SEQUENCE's, where there is one; SEQUENCE's own, if it fails."""
        if self.minor == 0:
            return self.bare(*ops)
        args = self.session + u32(self.seqid + 1) + u32(0) + u32(0) + u32(self.keeps)
        results = self.bare((SEQUENCE, args), *ops)
        if results[0]["status"] == OK:
            self.seqid += 1
            self.flags = results[0]["flags"]
        return results[1:] or results

    def last(self, *ops):
        return self.compound(*ops)[-1]

    def register(self):
        """A confirmed client id, and a session. The first result that is no success, or the last."""
        return self._setclientid() if self.minor == 0 else self._exchange_id()

    def _setclientid(self):
        program, netid, address, ident = self.callback
        cb = u32(program) + opaque(netid) + opaque(address) + u32(ident)
        res = self.bare((SETCLIENTID, self.verifier + opaque(self.owner) + cb))[0]
        if res["status"] == OK:
            self.clientid = res["clientid"]
            res = self.bare((SETCLIENTID_CONFIRM, u64(self.clientid) + res["confirm"]))[0]
        return res

    def _exchange_id(self):
        res = self.bare((EXCHANGE_ID, self.verifier + opaque(self.owner) + u32(0) + u32(0) + u32(0)))[0]
        if res["status"] != OK:
            return res
        self.clientid = res["clientid"]
        channel = struct.pack(">6I", 0, self.longest, self.longest, 4096, self.operations, 8) + u32(0)
        res = self.bare((CREATE_SESSION, u64(self.clientid) + u32(res["sequenceid"]) + u32(2 if self.back else 0) + channel + channel +
                         u32(0x40000000) + u32(1) + u32(0)))[0]
        if res["status"] == OK:
            self.session, self.seqid = res["session"], 0
        return res

    def reclaim_complete(self):
        return self.last((RECLAIM_COMPLETE, u32(0)))["status"] if self.minor else OK

    def path(self, path):
        """Its handle."""
        ops = [(PUTROOTFH, b""), *(lookup(n) for n in path.strip("/").split("/")), (GETFH, b"")]
        return self.last(*ops)["fh"]

    def _next(self):
        self.owner_seqid += 1
        return u32(self.owner_seqid)

    def _open_owner(self, access, deny):
        return self._next() + u32(access) + u32(deny) + u64(self.clientid) + opaque(b"owner")

    def _opened(self, results):
        """OPEN's result, confirmed where the server wants that."""
        res = next((x for x in results if x["op"] == OPEN), results[-1])
        if res["status"] == OK and res["rflags"] & 2:
            fh = results[-1]["fh"]
            res["stateid"] = self.last(putfh(fh), (OPEN_CONFIRM, res["stateid"] + self._next()))["stateid"]
        return res

    def open(self, dirfh, name, create=False, access=SHARE_BOTH, deny=0):
        """(result of OPEN, handle)."""
        how = u32(1) + u32(0) + u32(2) + u32(0) + u32(2) + opaque(u32(0o666)) if create else u32(0)
        results = self.compound(putfh(dirfh), (OPEN, self._open_owner(access, deny) + how + u32(CLAIM_NULL) + r.name(name)),
                                (GETFH, b""))
        return self._opened(results), results[-1].get("fh")

    def reclaim_open(self, fh, access=SHARE_BOTH, deny=0, delegation=DELEGATE_NONE):
        return self._opened(self.compound(putfh(fh), (OPEN, self._open_owner(access, deny) + u32(0) + u32(CLAIM_PREVIOUS) +
                                                      u32(delegation)), (GETFH, b"")))

    def claim_open(self, fh, deleg, access=SHARE_READ):
        """Of a file of which the client has a delegation."""
        return self._opened(self.compound(putfh(fh), (OPEN, self._open_owner(access, 0) + u32(0) + u32(CLAIM_DELEG_CUR_FH) + deleg),
                                          (GETFH, b"")))

    def claim_open_by_name(self, dirfh, name, deleg, access=SHARE_READ):
        return self._opened(self.compound(putfh(dirfh), (OPEN, self._open_owner(access, 0) + u32(0) + u32(CLAIM_DELEGATE_CUR) + deleg +
                                                         r.name(name)), (GETFH, b"")))

    def getattr(self, fh):
        return self.last(putfh(fh), getattr_op())

    def delegreturn(self, fh, deleg):
        return self.last(putfh(fh), (DELEGRETURN, deleg))["status"]

    def dir_delegation(self, fh, signal=False, nanoseconds=0, notices=(), delay=0, entry=(), directory=()):
        """notices: types to be told of; entry, directory: words of the bitmaps of attributes; delay in seconds."""
        types = [sum(1 << n for n in notices)] if notices else []
        bitmaps = [u32(len(b)) + b"".join(map(u32, b)) for b in (types, entry, directory)]
        args = u32(signal) + bitmaps[0] + (u64(delay) + u32(nanoseconds)) * 2 + bitmaps[1] + bitmaps[2]
        return self.last(putfh(fh), (GET_DIR_DELEGATION, args))

    def test_stateid(self, *stateids):
        return self.last((TEST_STATEID, u32(len(stateids)) + b"".join(stateids)))["each"]

    def free_stateid(self, stateid):
        return self.last((FREE_STATEID, stateid))["status"]

    def unlock(self, fh, stateid, offset=0, length=ALL):
        return self.last(putfh(fh), (LOCKU, u32(WRITE_LT) + self._next() + stateid + u64(offset) + u64(length)))

    def lock(self, fh, stateid, kind=WRITE_LT, offset=0, length=ALL, reclaim=False):
        """By a new lock-owner."""
        locker = u32(1) + self._next() + stateid + u32(0) + u64(self.clientid) + opaque(b"lock" + u32(self.owner_seqid))
        return self.last(putfh(fh), (LOCK, u32(kind) + u32(reclaim) + u64(offset) + u64(length) + locker))

    def close_file(self, fh, stateid):
        return self.last(putfh(fh), (CLOSE, self._next() + stateid))
