#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Layouts of flexible files (RFC 8435) that a member of a cluster gives: a client reads and writes at the other member, by NFSv3 and the same
handle. Which files, what stateids and reports are taken, and what is recalled when the data server dies.

A local file system stands in for the cluster's; both daemons serve it."""
import json
import os
import re
import signal
import struct
import time

import control
import nfs4client as n
import rpcclient as r
import upgrade
from cluster import await_status, stop_all, two_members
from harness import Count, result
from held import Held
from nlm_recovery import wait_for
from rpcclient import opaque, u32, u64

GETDEVICEINFO, GETDEVICELIST, LAYOUTCOMMIT, LAYOUTGET, LAYOUTRETURN, LAYOUTERROR, LAYOUTSTATS = 47, 48, 49, 50, 51, 64, 65
CB_LAYOUTRECALL, CB_NOTIFY_DEVICEID = 5, 14
FLEX_FILES, READ, RW, ANY = 4, 1, 2, 3
FILE, FSID, ALL = 1, 2, 3
NON_PNFS, MDS = 0x10000, 0x20000
(NOENT, NXIO, ACCESS, INVAL, NOTSUPP, TOOSMALL, WRONG_TYPE, BADXDR, BADIOMODE, BADLAYOUT, UNAVAILABLE, UNKNOWN_TYPE, RECALLCONFLICT,
 NOMATCHING, BAD_STATEID, OPENMODE) = (
    2, 6, 13, 22, 10004, 10005, 10083, 10036, 10049, 10050, 10059, 10062, 10061, 10060, 10025, 10038)
FS_LAYOUT_TYPES, LAYOUT_TYPES, LAYOUT_BLKSIZE = 62, 64, 65
U64 = 0xffffffffffffffff
LEASE = 5
LONG = 60  # another lease: none runs out meanwhile
PATIENCE = 60  # seconds; a bound for waits that end with what they wait for


def get_layout(x, res):
    res.update(return_on_close=x.flag(), stateid=x.take(16), layouts=[])
    for _ in range(x.u32()):
        lo = {"offset": x.u64(), "length": x.u64(), "iomode": x.u32(), "type": x.u32()}
        body = r.In(x.opaque())
        lo.update(stripe=body.u64(), mirrors=body.u32(), servers=body.u32(), device=body.take(16), efficiency=body.u32(),
                  anonymous=body.take(16), handles=[body.opaque() for _ in range(body.u32())], user=body.opaque(), group=body.opaque(),
                  flags=body.u32(), stats=body.u32())
        body.end()
        res["layouts"].append(lo)


def get_device(x, res):
    res["type"] = x.u32()
    body = x.opaque()
    res["notify"] = [x.u32() for _ in range(x.u32())]
    if body:
        b = r.In(body)
        res["addresses"] = [(b.opaque(), b.opaque()) for _ in range(b.u32())]
        res["versions"] = [struct.unpack(">5I", b.take(20)) for _ in range(b.u32())]
        b.end()


def get_return(x, res):
    res["stateid"] = x.take(16) if x.flag() else None


def get_commit(x, res):
    res["size"] = x.u64() if x.flag() else None


n.RESULTS.update({LAYOUTGET: get_layout, GETDEVICEINFO: get_device, LAYOUTRETURN: get_return, LAYOUTCOMMIT: get_commit})


def get_recall(data):
    """A CB_LAYOUTRECALL of a file, or what n.get_callback() makes of another call."""
    x = r.In(data)
    c = {"xid": x.u32(), "minor": 1}
    x.take(20), x.u32(), x.opaque(), x.u32(), x.opaque(), x.opaque()
    c.update(minor=x.u32(), ident=x.u32(), nops=x.u32())
    if c["nops"] != 2:
        return n.get_callback(data)
    x.u32()
    c.update(session=x.take(16), seqid=x.u32(), slot=x.u32(), highest=x.u32(), cache=x.flag(), referring=n._referring(x), op=x.u32())
    if c["op"] == CB_NOTIFY_DEVICEID:  # of the data server that left before
        return c
    if c["op"] != CB_LAYOUTRECALL:
        return n.get_callback(data)
    c.update(type=x.u32(), iomode=x.u32(), changed=x.flag(), what=x.u32(), fh=x.opaque(), offset=x.u64(), length=x.u64(), stateid=x.take(16))
    x.end()
    return c


class Client(n.Client):
    """With the operations on layouts."""
    cb_status = n.OK

    def _on_call(self, data):
        self.called.append(get_recall(data))
        return n.put_callback_reply(self.called[-1], self.cb_status) if self.answers else None

    def recalls(self):
        """So far."""
        return [c for c in self.called if c["op"] == CB_LAYOUTRECALL]

    def layoutget(self, fh, stateid, iomode=RW, kind=FLEX_FILES, offset=0, length=U64, least=0, most=4096):
        args = u32(0) + u32(kind) + u32(iomode) + u64(offset) + u64(length) + u64(least) + stateid + u32(most)
        return self.last(n.putfh(fh), (LAYOUTGET, args))

    def layoutreturn(self, fh, stateid, iomode=ANY, body=b"", offset=0, length=U64, reclaim=0, kind=FLEX_FILES):
        args = u32(reclaim) + u32(kind) + u32(iomode) + u32(FILE) + u64(offset) + u64(length) + stateid + opaque(body)
        return self.last(n.putfh(fh), (LAYOUTRETURN, args))

    def return_several(self, fh, what, iomode=ANY, reclaim=0):
        return self.last(n.putfh(fh), (LAYOUTRETURN, u32(reclaim) + u32(FLEX_FILES) + u32(iomode) + u32(what)))

    def layoutcommit(self, fh, stateid, last=None, offset=0, length=U64, body=b"", reclaim=0, kind=FLEX_FILES):
        where = u32(1) + u64(last) if last is not None else u32(0)
        args = u64(offset) + u64(length) + u32(reclaim) + stateid + where + u32(1) + u64(1) + u32(2) + u32(kind) + opaque(body)
        return self.last(n.putfh(fh), (LAYOUTCOMMIT, args))

    def device(self, device, kind=FLEX_FILES, most=4096):
        return self.last((GETDEVICEINFO, device + u32(kind) + u32(most) + u32(1) + u32(6)))

    def layouterror(self, fh, stateid, *errors):
        args = u64(0) + u64(U64) + stateid + u32(len(errors)) + b"".join(errors)
        return self.last(n.putfh(fh), (LAYOUTERROR, args))["status"]

    def layoutstats(self, fh, stateid, device, body):
        args = u64(0) + u64(U64) + stateid + u64(1) * 4 + device + u32(FLEX_FILES) + opaque(body)
        return self.last(n.putfh(fh), (LAYOUTSTATS, args))["status"]


def new_client(d, owner, minor=2, cred=None, back=False):
    c = Client(d.port, owner, minor)
    if cred:
        c.cred = cred
    if back:
        c.back = True
        c.conn.on_call = c._on_call
    res = c.register()
    if res["status"] or c.reclaim_complete():
        raise SystemExit(f"{owner} cannot register: {res}\n{d.read_log()}")
    return c


def tool(d, *args):
    return control.ctl("--socket", d.path, *args).stdout


def ask(d, *args):
    return json.loads(tool(d, *args, "--json"))


def seqid(stateid):
    return struct.unpack(">I", stateid[:4])[0]


def with_seqid(stateid, number):
    return u32(number) + stateid[4:]


def device_error(device, status=NXIO, op=38):
    return device + u32(status) + u32(op)


def io_error(device, status=NXIO):
    return u64(0) + u64(U64) + bytes(16) + u32(1) + device_error(device, status)


def latency():
    return u64(1) * 5 + (u64(0) + u32(1)) * 2


def statistics(device, fh=b"handle"):
    return (u64(0) + u64(U64) + bytes(16) + u64(1) * 4 + device + opaque(b"tcp") + opaque(b"127.0.0.1.8.1") + opaque(fh) + latency() * 2 +
            u64(1) + u32(0) + u32(0))


def report(errors=(), stats=()):
    return u32(len(errors)) + b"".join(errors) + u32(len(stats)) + b"".join(stats)


class Files:
    """Files of the export, as a client of member a opens them."""

    def __init__(self, t, c, d, path):
        self.t, self.c, self.path, self.n = t, c, path, 0
        self.root = c.path(d.exports["one"])

    def open(self, access=n.SHARE_BOTH, name=None):
        """(handle, stateid of the open)"""
        self.n += 1
        res, fh = self.c.open(self.root, name or f"file {self.c.owner.decode()} {self.n}", create=True, access=access)
        self.t.equal("OPEN", res["status"], n.OK)
        return fh, res["stateid"]

    def elsewhere(self, access=n.SHARE_BOTH, iomode=RW):
        """(handle, stateid of the open, result of LAYOUTGET) of a file whose data server is the other member."""
        for _ in range(200):
            fh, stateid = self.open(access)
            res = self.c.layoutget(fh, stateid, iomode)
            if res["status"] == n.OK:
                return fh, stateid, res
            self.t.equal("LAYOUTGET of a file that is this member's own", res["status"], UNAVAILABLE)
            self.c.close_file(fh, stateid)
        raise SystemExit("no file of 200 has the other member as data server")


def await_beside(clients, what):
    """Waits until it is true, while the clients renew their leases, and take callbacks: a layout is taken without a word from one whose lease is over."""
    def renewed():
        for c in clients:
            c.last((n.PUTROOTFH, b""))
        return what()
    return wait_for(renewed, PATIENCE)


def flags_of(d):
    c = n.Client(d.port, "flags")
    res = c.bare((n.EXCHANGE_ID, c.verifier + opaque(c.owner) + u32(0) + u32(0) + u32(0)))[0]
    c.close()
    return res["flags"]


def attributes(c, fh, *numbers):
    """(numbers of those that the server has, their bytes)"""
    n.RESULTS[n.GETATTR], was = (lambda x, res: res.update(words=n._bitmap(x), values=x.opaque())), n.RESULTS[n.GETATTR]
    res = c.last(n.putfh(fh), (n.GETATTR, n.bitmap(*numbers)))
    n.RESULTS[n.GETATTR] = was
    return [32 * w + b for w, word in enumerate(res["words"]) for b in range(32) if word >> b & 1], res["values"]


def test_off(t):
    print("# without cluster.pnfs")
    with two_members(t) as (a, b, common):
        t.equal("EXCHANGE_ID: flags", flags_of(a) & (NON_PNFS | MDS), NON_PNFS)
        c = new_client(a, "off")
        files = Files(t, c, a, common)
        fh, stateid = files.open()
        t.equal("LAYOUTGET", c.layoutget(fh, stateid)["status"], NOTSUPP)
        t.equal("LAYOUTRETURN", c.layoutreturn(fh, stateid)["status"], NOTSUPP)
        t.equal("LAYOUTCOMMIT", c.layoutcommit(fh, stateid)["status"], NOTSUPP)
        t.equal("GETDEVICEINFO", c.device(bytes(16))["status"], NOTSUPP)
        t.equal("LAYOUTERROR", c.layouterror(fh, stateid), NOTSUPP)
        t.equal("LAYOUTSTATS", c.layoutstats(fh, stateid, bytes(16), b""), NOTSUPP)
        t.equal("attributes", attributes(c, fh, FS_LAYOUT_TYPES, LAYOUT_TYPES, LAYOUT_BLKSIZE), ([], b""))
        stop_all(t, a, b)


def test_get(t, a, b, files):
    print("# what a layout says, and I/O by it")
    c = files.c
    t.equal("EXCHANGE_ID: flags", flags_of(a) & (NON_PNFS | MDS), MDS)
    fh, stateid, res = files.elsewhere()
    t.equal("attributes", attributes(c, fh, FS_LAYOUT_TYPES, LAYOUT_TYPES),
            ([FS_LAYOUT_TYPES, LAYOUT_TYPES], (u32(1) + u32(FLEX_FILES)) * 2))
    lo = res["layouts"][0]
    t.equal("layouts", len(res["layouts"]), 1)
    t.equal("range, iomode, type", (lo["offset"], lo["length"], lo["iomode"], lo["type"]), (0, U64, RW, FLEX_FILES))
    t.equal("stripes, mirrors, data servers", (lo["stripe"], lo["mirrors"], lo["servers"]), (0, 1, 1))
    t.equal("stateid for the data server", lo["anonymous"], bytes(16))
    t.equal("handle", lo["handles"], [fh])
    t.equal("user and group", (lo["user"], lo["group"]), (b"0", b"0"))
    t.equal("flags", lo["flags"], 0)
    t.check("to be returned on close", res["return_on_close"])
    t.equal("seqid of the first", seqid(res["stateid"]), 1)
    dev = c.device(lo["device"])
    t.equal("GETDEVICEINFO: addresses", dev["addresses"], [(b"tcp", b"127.0.0.1.%d.%d" % divmod(b.port, 256))])
    t.equal("GETDEVICEINFO: NFSv3, loosely coupled", [(v[0], v[1], v[4]) for v in dev["versions"]], [(3, 0, 0)])
    t.check("GETDEVICEINFO: rsize and wsize", dev["versions"][0][2] == dev["versions"][0][3] >= 65536, dev)
    t.equal("GETDEVICEINFO: notifications", dev["notify"], [6])
    with b.connect() as v3:
        t.equal("WRITE at b", v3.nfs(r.WRITE, r.write_args(fh, 0, b"by layout", stable=0))["status"], 0)
        t.equal("COMMIT at b", v3.nfs(r.COMMIT, r.commit_args(fh))["status"], 0)
    t.equal("LAYOUTCOMMIT", c.layoutcommit(fh, res["stateid"], last=8), {"op": LAYOUTCOMMIT, "status": n.OK, "size": None})
    t.equal("size at a", c.getattr(fh)["size"], 9)
    t.equal("READ at a", c.last(n.putfh(fh), n.read(stateid, 0, 20))["data"], b"by layout")
    t.equal("WRITE at a, with the layout", c.last(n.putfh(fh), n.write(stateid, 0, b"BY"))["status"], n.OK)
    with b.connect() as v3:
        t.equal("READ at b", v3.nfs(r.READ, r.read_args(fh, 0, 20))["data"], b"BY layout")
    row = ask(a, "layouts")["layouts"][0]
    t.equal("ringnfsctl layouts", (row["path"], row["kind"], row["data_server"], row["recalled"]),
            (f"{files.path}/one/file {c.owner.decode()} {files.n}", "write", "b", False))
    t.check("for people", "write  b" in tool(a, "layouts"), tool(a, "layouts"))
    t.equal("LAYOUTRETURN of all", c.layoutreturn(fh, res["stateid"])["stateid"], None)
    t.equal("ringnfsctl layouts afterwards", ask(a, "layouts")["layouts"], [])
    t.equal("CLOSE", c.close_file(fh, stateid)["status"], n.OK)


def test_agreement(t, a, b, files):
    print("# both members choose the same data server")
    ca, cb = files.c, new_client(b, "at b")
    got = {"a": 0, "b": 0}
    for i in range(24):
        opened = [c.open(files.root, f"agreed {i}", create=True) for c in (ca, cb)]
        by = [c.layoutget(o[1], o[0]["stateid"]) for c, o in zip((ca, cb), opened)]
        t.equal("one of the two gives a layout", sorted(x["status"] for x in by), [n.OK, UNAVAILABLE])
        got["b" if by[0]["status"] == n.OK else "a"] += 1
        for c, o, x in zip((ca, cb), opened, by):
            if x["status"] == n.OK:
                c.layoutreturn(o[1], x["stateid"])
            c.close_file(o[1], o[0]["stateid"])
    t.check("files are at both", min(got.values()) > 0, got)
    cb.close()


def test_stateids(t, files):
    print("# stateids and iomodes")
    c = files.c
    fh, opened, res = files.elsewhere()
    first = res["stateid"]
    res = c.layoutget(fh, first, READ)
    t.equal("another iomode", (res["status"], seqid(res["stateid"]), res["layouts"][0]["iomode"]), (n.OK, 2, READ))
    t.equal("the same state", res["stateid"][4:], first[4:])
    res = c.layoutget(fh, first)
    t.equal("an older seqid is good", (res["status"], seqid(res["stateid"])), (n.OK, 3))
    res = c.layoutget(fh, opened)
    t.equal("the open's stateid finds it", (res["status"], seqid(res["stateid"])), (n.OK, 4))
    t.equal("a seqid to come", c.layoutget(fh, with_seqid(first, 5))["status"], BAD_STATEID)
    t.equal("seqid 0", c.layoutget(fh, with_seqid(first, 0))["status"], BAD_STATEID)
    t.equal("TEST_STATEID", c.test_stateid(res["stateid"]), [n.OK])
    t.equal("FREE_STATEID", c.free_stateid(res["stateid"]), n.LOCKS_HELD)
    t.equal("READ by it here", c.last(n.putfh(fh), n.read(res["stateid"], 0, 1))["status"], BAD_STATEID)
    for what, sid in (("anonymous", bytes(16)), ("all ones", b"\xff" * 16), ("made up", u32(1) + b"x" * 12)):
        t.equal(f"LAYOUTGET by a stateid that is {what}", c.layoutget(fh, sid)["status"], BAD_STATEID)
        t.equal(f"LAYOUTRETURN by it ({what})", c.layoutreturn(fh, sid)["status"], BAD_STATEID)
        t.equal(f"LAYOUTCOMMIT by it ({what})", c.layoutcommit(fh, sid)["status"], BADLAYOUT)
    t.equal("LAYOUTRETURN by the open", c.layoutreturn(fh, opened)["status"], BAD_STATEID)
    other, other_open = files.open()
    t.equal("of another file", c.layoutget(other, first)["status"], BAD_STATEID)
    t.equal("LAYOUTRETURN of another file", c.layoutreturn(other, first)["status"], BAD_STATEID)
    c.close_file(other, other_open)
    part = c.layoutreturn(fh, first, RW, offset=4096)
    t.equal("LAYOUTRETURN of a part", (part["status"], seqid(part["stateid"])), (n.OK, 5))
    t.equal("LAYOUTCOMMIT afterwards", c.layoutcommit(fh, part["stateid"])["status"], n.OK)
    res = c.layoutreturn(fh, part["stateid"], RW)
    t.equal("LAYOUTRETURN of one iomode", (res["status"], seqid(res["stateid"])), (n.OK, 6))
    t.equal("LAYOUTCOMMIT with the other", c.layoutcommit(fh, res["stateid"])["status"], BADIOMODE)
    t.equal("LAYOUTRETURN of the last", c.layoutreturn(fh, res["stateid"], READ)["stateid"], None)
    t.equal("its stateid is gone", c.layoutget(fh, res["stateid"])["status"], BAD_STATEID)
    t.equal("TEST_STATEID", c.test_stateid(res["stateid"]), [BAD_STATEID])
    ops = c.compound(n.putfh(fh), (LAYOUTGET, u32(0) + u32(4) + u32(RW) + u64(0) + u64(U64) + u64(0) + opened + u32(4096)),
                     (LAYOUTGET, u32(0) + u32(4) + u32(READ) + u64(0) + u64(U64) + u64(0) + u32(1) + bytes(12) + u32(4096)),
                     (LAYOUTRETURN, u32(0) + u32(4) + u32(ANY) + u32(FILE) + u64(0) + u64(U64) + u32(1) + bytes(12) + opaque(b"")))
    t.equal("by the current stateid", [x["status"] for x in ops], [n.OK] * 4)
    t.equal("CLOSE", c.close_file(fh, opened)["status"], n.OK)


def test_rights(t, a, files, owner):
    print("# who gets a layout")
    c = files.c
    fh, opened, res = files.elsewhere(access=n.SHARE_READ, iomode=READ)
    t.equal("to write, of an open to read", c.layoutget(fh, opened)["status"], OPENMODE)
    c.layoutreturn(fh, res["stateid"])
    user = new_client(a, "user", cred=r.auth_sys(1000, 1000))
    name = f"file {c.owner.decode()} {files.n}"
    os.chmod(owner + "/one/" + name, 0o644)
    opened_by, same = user.open(files.root, name, access=n.SHARE_READ)
    t.equal("OPEN by another user", (opened_by["status"], same), (n.OK, fh))
    res = user.layoutget(fh, opened_by["stateid"], READ)
    t.equal("to read, by another user: ids of the owner", (res["status"], res["layouts"][0]["user"]), (n.OK, b"0"))
    t.equal("to write, by the layout's stateid", user.layoutget(fh, res["stateid"], RW)["status"], UNAVAILABLE)
    os.chown(owner + "/one/" + name, 1000, 1001)
    res = user.layoutget(fh, res["stateid"], RW)
    t.equal("to write, by the new owner", (res["status"], res["layouts"][0]["user"], res["layouts"][0]["group"]), (n.OK, b"1000", b"1001"))
    user.return_several(fh, ALL)
    t.equal("all were returned", user.layoutcommit(fh, res["stateid"])["status"], BADLAYOUT)
    user.close()
    c.close_file(fh, opened)


def test_arguments(t, files):
    print("# arguments that are wrong")
    c = files.c
    fh, opened, res = files.elsewhere()
    sid, device = res["stateid"], res["layouts"][0]["device"]
    for what, kw, status in (
            ("another type", {"kind": 1}, UNKNOWN_TYPE), ("iomode ANY", {"iomode": ANY}, BADIOMODE), ("iomode 0", {"iomode": 0}, BADIOMODE),
            ("length below the least", {"length": 1, "least": 2}, INVAL), ("a range too far", {"offset": 2, "length": U64 - 1}, INVAL),
            ("a least too far", {"offset": 2, "least": U64 - 1}, INVAL), ("no room", {"most": 8}, TOOSMALL)):
        t.equal(f"LAYOUTGET: {what}", c.layoutget(fh, sid, **kw)["status"], status)
    t.equal("LAYOUTGET: a part gives all", c.layoutget(fh, sid, offset=4096, length=1, least=1)["layouts"][0]["length"], U64)
    t.equal("LAYOUTGET of a directory", c.layoutget(files.root, sid)["status"], WRONG_TYPE)
    for what, kw, status in (
            ("another type", {"kind": 1}, UNKNOWN_TYPE), ("iomode 0", {"iomode": 0}, INVAL), ("iomode 4", {"iomode": 4}, INVAL),
            ("reclaim after grace", {"reclaim": 1}, n.NO_GRACE), ("a range too far", {"offset": 2, "length": U64 - 1}, INVAL)):
        t.equal(f"LAYOUTRETURN: {what}", c.layoutreturn(fh, sid, **kw)["status"], status)
    t.equal("LAYOUTRETURN: reclaim of all", c.return_several(fh, ALL, reclaim=1)["status"], INVAL)
    t.equal("LAYOUTRETURN: a kind that is none", c.return_several(fh, 4)["status"], BADXDR)
    for what, kw, status in (
            ("another type", {"kind": 1}, UNKNOWN_TYPE), ("a body", {"body": b"1234"}, INVAL), ("reclaim after grace", {"reclaim": 1}, n.NO_GRACE),
            ("a last byte before the range", {"offset": 8, "last": 7}, INVAL), ("a last byte behind it", {"length": 8, "last": 8}, INVAL),
            ("a last byte that no file has", {"last": 1 << 63}, INVAL), ("a range too far", {"offset": 2, "length": U64 - 1}, INVAL)):
        t.equal(f"LAYOUTCOMMIT: {what}", c.layoutcommit(fh, sid, **kw)["status"], status)
    t.equal("LAYOUTCOMMIT of a directory", c.layoutcommit(files.root, sid)["status"], 21)
    t.equal("GETDEVICEINFO: another type", c.device(device, kind=1)["status"], UNKNOWN_TYPE)
    t.equal("GETDEVICEINFO: unknown", c.device(b"x" * 16)["status"], NOENT)
    t.equal("GETDEVICEINFO: only whether it is there", c.device(device, most=0).get("addresses"), None)
    t.equal("GETDEVICELIST", c.last(n.putfh(fh), (GETDEVICELIST, u32(4) + u32(10) + u64(0) + bytes(8)))["status"], NOTSUPP)
    malformed = {
        "errors without end": u32(0xffffffff), "an error cut short": report([io_error(device)])[:-8], "more behind it": report() + u32(0),
        "device errors without end": u32(1) + u64(0) * 2 + bytes(16) + u32(0xffffffff) + device_error(device) + u32(0),
        "statistics without end": u32(0) + u32(0xffffffff) + statistics(device), "a handle that is too long": report([], [statistics(device, b"h" * 129)]),
        "a long netid": report([], [statistics(device).replace(opaque(b"tcp"), opaque(b"t" * 200))]), "four bytes": u32(1),
        "a bool that is 2": report([], [statistics(device)[:-4] + u32(2)])}
    for what, body in malformed.items():
        t.equal(f"LAYOUTRETURN with {what}", c.layoutreturn(fh, sid, body=body)["status"], BADXDR)
    t.equal("LAYOUTRETURN with a body of 40,000 bytes", c.layoutreturn(fh, sid, body=bytes(40000))["status"], BADXDR)
    t.equal("LAYOUTERROR with errors that are not there",
            c.last(n.putfh(fh), (LAYOUTERROR, u64(0) * 2 + sid + u32(0xffffffff)))["status"], BADXDR)
    t.equal("LAYOUTSTATS", c.layoutstats(fh, sid, device, statistics(device)[72 + 16:]), n.OK)
    t.equal("LAYOUTSTATS with a body that is none", c.layoutstats(fh, sid, device, b"anything"), n.OK)
    t.equal("LAYOUTSTATS with a body of 40,000 bytes", c.layoutstats(fh, sid, device, bytes(40000)), n.OK)
    t.equal("LAYOUTERROR by the open", c.layouterror(fh, opened, device_error(device)), BAD_STATEID)
    t.equal("the layout is still there", c.layoutcommit(fh, sid)["status"], n.OK)
    t.equal("LAYOUTRETURN with statistics", c.layoutreturn(fh, sid, body=report([], [statistics(device)] * 40))["status"], n.OK)
    c.close_file(fh, opened)


def test_errors(t, a, files):
    print("# errors that clients report")
    c = new_client(a, "unlucky")
    mine = Files(t, c, a, files.path)
    fh, opened, res = mine.elsewhere()
    device = res["layouts"][0]["device"]
    t.equal("LAYOUTERROR: a status that passes", c.layouterror(fh, res["stateid"], device_error(device, n.DELAY)), n.OK)
    t.equal("LAYOUTGET afterwards", c.layoutget(fh, res["stateid"])["status"], n.OK)
    t.equal("LAYOUTRETURN: access denied there", c.layoutreturn(fh, res["stateid"], body=report([io_error(device, ACCESS)]))["status"], n.OK)
    t.equal("LAYOUTGET of the file afterwards", c.layoutget(fh, opened)["status"], UNAVAILABLE)
    fh2, opened2, res2 = mine.elsewhere()
    t.equal("LAYOUTERROR: no connection", c.layouterror(fh2, res2["stateid"], *[device_error(b"y" * 16)] * 60, device_error(device)), n.OK)
    t.equal("LAYOUTRETURN", c.layoutreturn(fh2, res2["stateid"])["status"], n.OK)
    fh3, opened3, _ = files.elsewhere()  # others get layouts
    same, _ = c.open(mine.root, f"file {files.c.owner.decode()} {files.n}")
    t.equal("no file of that data server gets one", c.layoutget(fh3, same["stateid"])["status"], UNAVAILABLE)
    t.check("the log tells", a.wait_log("reports NFS4ERR_NXIO|reports NXIO"))
    files.c.return_several(fh3, ALL)
    files.c.close_file(fh3, opened3)
    c.close_file(fh2, opened2)
    c.close()


def run_anew(t, d, what):
    said = upgrade.restart(t, d, what)
    t.check(f"{what}: the state goes along", "goes on from" in said, said)


def test_anew(t, a, b, files):
    print("# layouts go on when a member's program is run anew")
    c = new_client(a, "lasts", back=True)
    mine = Files(t, c, a, files.path)
    fh, opened, res = mine.elsewhere()
    bad, opened_bad, res_bad = mine.elsewhere()
    device = res["layouts"][0]["device"]
    t.equal("LAYOUTRETURN: access denied there", c.layoutreturn(bad, res_bad["stateid"], body=report([io_error(device, ACCESS)]))["status"], n.OK)
    troubled, layouts = time.monotonic(), Held(a).now()["nfs4_layouts"]
    for d, what in ((a, "the server of metadata"), (b, "the data server")):
        run_anew(t, d, what)
        t.equal("GETDEVICEINFO", c.device(device)["status"], n.OK)
        more = c.layoutget(fh, res["stateid"])
        t.equal("LAYOUTGET by the layout", (more["status"], more["stateid"][4:], seqid(more["stateid"]), more["layouts"][0]["device"]),
                (n.OK, res["stateid"][4:], seqid(res["stateid"]) + 1, device))
        res = more
        t.equal("LAYOUTSTATS", c.layoutstats(fh, res["stateid"], device, statistics(device)), n.OK)
        refused = c.layoutget(bad, opened_bad)["status"] == UNAVAILABLE if d is a else True
        t.check("LAYOUTGET of what it had trouble with", refused or time.monotonic() - troubled >= LONG)
        t.equal("layouts", Held(a).now()["nfs4_layouts"], layouts)
    t.equal("nothing is recalled", [x for x in c.called if x["op"] == CB_LAYOUTRECALL], [])
    t.equal("LAYOUTRETURN", c.layoutreturn(fh, res["stateid"])["status"], n.OK)
    c.close_file(fh, opened)
    c.close_file(bad, opened_bad)
    c.close()


def test_recalled_anew(t, a, b, files):
    """The data server leaves, and the recall is not answered when the program is run anew."""
    fh, opened, res = files.elsewhere()
    c = files.c
    c.await_callback()  # the back channel is tried
    c.answers = False
    t.equal("the data server leaves", b.stop()[0], 0)
    c.await_callback(CB_LAYOUTRECALL)
    run_anew(t, a, "a recall")
    c.answers, before = True, len(c.recalls())
    t.equal("the client is there", c.getattr(fh)["status"], n.OK)  # its connection is bound again
    call = c.await_callback(CB_LAYOUTRECALL, before + 1)
    t.equal("CB_LAYOUTRECALL again", (call["fh"], call["stateid"]), (fh, with_seqid(res["stateid"], seqid(res["stateid"]) + 1)))
    t.equal("LAYOUTRETURN", c.layoutreturn(fh, call["stateid"])["status"], n.OK)
    c.close_file(fh, opened)
    b.start()
    c.close()


def test_ends(t, a, files):
    print("# layouts end with their client")
    c = new_client(a, "leaves")
    fh, opened, _ = Files(t, c, a, files.path).elsewhere()
    t.equal("CLOSE", c.close_file(fh, opened)["status"], n.OK)
    t.equal("DESTROY_SESSION", c.bare((n.DESTROY_SESSION, c.session))[0]["status"], n.OK)
    t.equal("DESTROY_CLIENTID with a layout", c.bare((n.DESTROY_CLIENTID, u64(c.clientid)))[0]["status"], n.CLIENTID_BUSY)
    c.close()
    c = new_client(a, "returns", minor=1)
    fh, opened, res = Files(t, c, a, files.path).elsewhere()
    c.close_file(fh, opened)
    t.equal("LAYOUTRETURN of the file system's", c.return_several(fh, FSID)["status"], n.OK)
    t.equal("none is left", c.layoutcommit(fh, res["stateid"])["status"], BADLAYOUT)
    t.equal("DESTROY_SESSION", c.bare((n.DESTROY_SESSION, c.session))[0]["status"], n.OK)
    t.equal("DESTROY_CLIENTID", c.bare((n.DESTROY_CLIENTID, u64(c.clientid)))[0]["status"], n.OK)
    c.close()


def test_silent(t, b, files, clients):
    print("# a data server that is too slow writes nothing")
    fh, opened, res = files.elsewhere()
    with b.connect() as v3:
        t.equal("WRITE", v3.nfs(r.WRITE, r.write_args(fh, 0, b"before"))["status"], 0)
        b.stand_still()
        dead = re.compile("member b .*dead|b is declared dead|declares? (member )?b")
        try:
            t.check("the others say that it is dead", await_beside(clients, lambda: dead.search(files.member.read_log())), files.member.read_log()[-2000:])
            v3.send(r.call_message(r.NFS, 3, r.WRITE, r.write_args(fh, 0, b"LATER!")))
        finally:
            b.process.send_signal(signal.SIGCONT)
        try:
            v3.recv()
            t.check("a WRITE that was sent meanwhile is not answered", False)
        except r.Closed:
            t.check("a WRITE that was sent meanwhile is not answered", True)
    t.check("it ends", await_beside(clients, lambda: b.process.poll() is not None))
    t.check("all are told", await_beside(clients, lambda: all(c.recalls() for c in clients)))
    t.equal("READ here", files.c.last(n.putfh(fh), n.read(opened, 0, 20))["data"], b"before")
    return fh, opened, res


def test_recall(t, a, files, held):
    """held: what a client had when the data server died, and does not return."""
    print("# layouts are recalled when the data server is gone")
    fh, opened, res = held
    c = files.c
    call = c.recalls()[-1]
    t.equal("CB_LAYOUTRECALL: type, iomode, changed", (call["type"], call["iomode"], call["changed"]), (FLEX_FILES, ANY, False))
    t.equal("CB_LAYOUTRECALL: of the file", (call["what"], call["fh"], call["offset"], call["length"]), (FILE, fh, 0, U64))
    t.equal("CB_LAYOUTRECALL: the stateid", (call["stateid"][4:], seqid(call["stateid"])), (res["stateid"][4:], seqid(res["stateid"]) + 1))
    t.equal("LAYOUTGET meanwhile", c.layoutget(fh, call["stateid"])["status"], UNAVAILABLE)
    t.equal("GETDEVICEINFO", c.device(res["layouts"][0]["device"])["status"], NOENT)
    t.equal("WRITE here", c.last(n.putfh(fh), n.write(opened, 0, b"here"))["status"], n.OK)
    t.equal("LAYOUTRETURN", c.layoutreturn(fh, call["stateid"])["stateid"], None)
    t.equal("LAYOUTGET afterwards", c.layoutget(fh, opened)["status"], UNAVAILABLE)
    c.close_file(fh, opened)


def test_taken(t, a, b, lazy, gone):
    print("# clients that do not return them")
    for files, why in ((lazy, "says that it will, and does not"), (gone, "has none any more")):
        fh, opened, res = files.held
        last = await_status(lambda: files.c.layoutcommit(fh, res["stateid"]), n.OK)
        t.equal(f"the layout of a client that {why}", last["status"], BADLAYOUT)
        t.equal("READ by the open here", files.c.last(n.putfh(fh), n.read(opened, 0, 1))["status"], n.OK)
    t.check("the log tells", a.wait_log("has not returned a layout in time"))
    b.start()
    fh, opened, _ = lazy.held
    t.equal("a new run is another device", await_status(lambda: lazy.c.layoutget(fh, opened), UNAVAILABLE)["status"], n.OK)
    res = lazy.c.layoutget(fh, opened)
    t.check("with another id", res["layouts"][0]["device"] != lazy.held[2]["layouts"][0]["device"])


def main():
    t = Count()
    test_off(t)
    with two_members(t, {"cluster.pnfs": "yes", "nfs4.lease_time": LEASE}) as (a, b, common):
        files = Files(t, new_client(a, "main", back=True), a, common)
        files.member = a
        test_get(t, a, b, files)
        test_agreement(t, a, b, files)
        test_stateids(t, files)
        test_rights(t, a, files, common)
        test_arguments(t, files)
        test_errors(t, a, files)
        test_ends(t, a, files)
        lazy, gone = (Files(t, new_client(a, name, back=True), a, common) for name in ("lazy", "forgetful"))
        gone.c.cb_status = NOMATCHING
        for f in (lazy, gone):
            f.held = f.elsewhere()
        held = test_silent(t, b, files, [files.c, lazy.c, gone.c])
        test_recall(t, a, files, held)
        test_taken(t, a, b, lazy, gone)
        stop_all(t, a, b)
    with two_members(t, {"cluster.pnfs": "yes", "nfs4.lease_time": LONG}) as (a, b, common):
        files = Files(t, new_client(a, "unheard", back=True), a, common)
        test_anew(t, a, b, files)
        test_recalled_anew(t, a, b, files)
        stop_all(t, a, b)
    result(t)


if __name__ == "__main__":
    main()
