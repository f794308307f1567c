#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Exports that are at other servers, too (replicas=) or only (refer=): fs_locations, NFS4ERR_MOVED, and who learns of them."""
import os

import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon, result
from nfs4client import bitmap, lookup, putfh
from rpcclient import opaque, u32, u64

MOVED, WRONGSEC, INVAL, STALE, TOOSMALL, ADMIN_REVOKED = 10019, 10016, 22, 70, 10005, 10047
SUPPORTED, TYPE, FSID, RDATTR_ERROR, FILEID, FS_LOCATIONS, MOUNTED_ON = 0, 1, 8, 11, 20, 24, 55
ACCESS, COMMIT, LOOKUPP, PUTPUBFH, READDIR, READLINK, RESTOREFH, SECINFO, SECINFO_NO_NAME = 3, 5, 16, 23, 26, 27, 31, 33, 52
OPTIONS = "rw,insecure,no_root_squash,no_subtree_check"
REFER = "refer=/srv/a@host.example+192.0.2.1+[2001:db8::1]:/b@192.0.2.2.8.1"
LOCATIONS = [([b"host.example", b"192.0.2.1", b"2001:db8::1"], [b"srv", b"a"]), ([b"192.0.2.2.8.1"], [b"b"])]
STRANGER, OTHER = "127.0.9.9", "127.0.0.2"
MANY = 200


def strings(x):
    return [x.opaque() for _ in range(x.u32())]


VALUES = {SUPPORTED: n4._bitmap, TYPE: lambda x: x.u32(), FSID: lambda x: (x.u64(), x.u64()), RDATTR_ERROR: lambda x: x.u32(),
          FILEID: lambda x: x.u64(), MOUNTED_ON: lambda x: x.u64(),
          FS_LOCATIONS: lambda x: (strings(x), [(strings(x), strings(x)) for _ in range(x.u32())])}


def attributes(x):
    """{number: value} of a fattr4."""
    words = n4._bitmap(x)
    numbers = [n for n in range(32 * len(words)) if words[n // 32] >> n % 32 & 1]
    values = r.In(x.opaque())
    got = {n: VALUES[n](values) for n in numbers}
    values.end()
    return got


def put_entries(x, res):
    res.update(verf=x.take(8), entries={})
    while x.flag():
        x.u64()
        name = x.opaque()
        res["entries"][name] = attributes(x)
    res["eof"] = x.flag()


n4.RESULTS[n4.GETATTR] = lambda x, res: res.update(attrs=attributes(x))
n4.RESULTS[READDIR] = put_entries


def getattr_of(*numbers):
    return n4.GETATTR, bitmap(*numbers)


def readdir(*numbers, room=65536):
    return READDIR, u64(0) + bytes(8) + u32(room) + u32(room) + bitmap(*numbers)


def client(d, minor, host="127.0.0.1", owner="referrals"):
    c = n4.Client(d.port, owner + host, minor)
    c.conn.close()
    c.conn = d.connect(source=(host, 0))
    c.keeps = False  # in the slot: locations are longer than it
    c.register()
    c.reclaim_complete()
    return c


def parts(path):
    return path.strip("/").encode().split(b"/")


def test_absent(t, d, minor):
    c = client(d, minor)
    outer, at = c.path(d.exports["e"]), f"4.{minor}: "
    into = (putfh(outer), lookup(b"moved"))
    t.equal(at + "LOOKUP leads into it", c.last(*into)["status"], n4.OK)
    # GETFH must fail, as Linux's client looks for the locations then.
    for what, op in (("GETFH", (n4.GETFH, b"")), ("ACCESS", (ACCESS, u32(63))), ("LOOKUP", lookup(b"f")), ("LOOKUPP", (LOOKUPP, b"")),
                     ("READDIR", readdir(FILEID)), ("SAVEFH", (n4.SAVEFH, b"")), ("SECINFO", (SECINFO, opaque(b"f"))),
                     ("REMOVE", (n4.REMOVE, opaque(b"f"))), ("READ", n4.read(bytes(16), 0, 10)),
                     ("SETATTR", (n4.SETATTR, bytes(16) + bitmap(33) + opaque(u32(0o700)))),
                     ("VERIFY", (n4.VERIFY, bitmap(TYPE) + opaque(u32(2)))), ("COMMIT", (COMMIT, u64(0) + u32(0))),
                     ("GETATTR of type", getattr_of(TYPE)), ("GETATTR of fsid and fileid", getattr_of(FSID, FILEID))):
        t.equal(f"{at}{what} at an absent file system", c.last(*into, op)["status"], MOVED)
    t.equal(f"{at}a name is not made there", c.last(*into, (n4.CREATE, u32(2) + opaque(b"x") + u32(0) + u32(0)))["status"], MOVED)
    got = c.last(*into, getattr_of(FSID, FS_LOCATIONS, TYPE, RDATTR_ERROR, FILEID, MOUNTED_ON))["attrs"]
    t.equal(at + "attributes of an absent file system", sorted(got), [FSID, RDATTR_ERROR, FS_LOCATIONS, MOUNTED_ON])
    t.equal(at + "rdattr_error", got.get(RDATTR_ERROR), MOVED)
    t.equal(at + "fs_locations", got.get(FS_LOCATIONS), (parts(d.exports["e/moved"]), LOCATIONS))
    own = c.last(putfh(outer), getattr_of(FSID, MOUNTED_ON, FS_LOCATIONS))["attrs"]
    t.check(at + "its fsid is another", own[FSID] != got.get(FSID), (own, got))
    t.equal(at + "fs_locations of an export without", own[FS_LOCATIONS], (parts(d.exports["e"]), []))
    only = c.last(*into, getattr_of(FSID, MOUNTED_ON))["attrs"]
    t.equal(at + "fsid and mounted_on_fileid alone", only, {FSID: got.get(FSID), MOUNTED_ON: got.get(MOUNTED_ON)})
    t.equal(at + "rdattr_error without an error", c.last(*into, getattr_of(RDATTR_ERROR))["attrs"], {RDATTR_ERROR: 0})
    t.equal(at + "SECINFO of its name", c.last(putfh(outer), (SECINFO, opaque(b"moved")))["flavors"], [(1,)])
    t.equal(at + "RESTOREFH goes on", c.last(putfh(outer), (n4.SAVEFH, b""), lookup(b"moved"), (RESTOREFH, b""), (n4.GETFH, b""))["fh"],
            outer)
    t.equal(at + "VERIFY of fs_locations", c.last(putfh(outer), (n4.VERIFY, bitmap(FS_LOCATIONS) + opaque(u32(0) * 2)))["status"], INVAL)
    supported = c.last(putfh(outer), getattr_of(SUPPORTED))["attrs"][SUPPORTED]
    t.check(at + "fs_locations is supported", supported[0] >> FS_LOCATIONS & 1, supported)
    root = c.last((n4.PUTROOTFH, b""), getattr_of(FS_LOCATIONS))["attrs"]
    t.equal(at + "fs_locations of the pseudo file system", root, {FS_LOCATIONS: ([], [])})
    test_listing(t, d, c, outer, at)
    c.close()


def test_listing(t, d, c, outer, at):
    res = c.last(putfh(outer), readdir(FSID, RDATTR_ERROR, FILEID, FS_LOCATIONS, MOUNTED_ON))
    got = res["entries"]
    t.equal(at + "READDIR: names", sorted(got), [b"file", b"moved"])
    t.equal(at + "READDIR: the entry's locations", got[b"moved"].get(FS_LOCATIONS), (parts(d.exports["e/moved"]), LOCATIONS))
    t.equal(at + "READDIR: the entry's error", got[b"moved"].get(RDATTR_ERROR), MOVED)
    t.check(at + "READDIR: no more of it", FILEID not in got[b"moved"] and MOUNTED_ON in got[b"moved"], got)
    t.equal(at + "READDIR: another entry", (got[b"file"].get(RDATTR_ERROR), got[b"file"][FS_LOCATIONS]), (0, (parts(d.exports["e"]), [])))
    got = c.last(putfh(outer), readdir(RDATTR_ERROR, FILEID))["entries"]
    t.equal(at + "READDIR with rdattr_error only", got[b"moved"], {RDATTR_ERROR: MOVED})
    res = c.last(putfh(outer), readdir(FILEID))
    t.check(at + "READDIR without rdattr_error ends before it", res["status"] == MOVED or (b"moved" not in res["entries"] and not res["eof"]),
            res)
    got = c.last(putfh(outer), readdir(MOUNTED_ON))["entries"]
    t.check(at + "READDIR of mounted_on_fileid does not look", sorted(got) == [b"file", b"moved"] and MOUNTED_ON in got[b"moved"], got)


def test_replicas(t, d):
    c = client(d, 1)
    fh = c.path(d.exports["r"])
    got = c.last(putfh(fh), getattr_of(FS_LOCATIONS, TYPE))["attrs"]
    t.equal("replicas: attributes", got, {TYPE: 2, FS_LOCATIONS: (parts(d.exports["r"]), [([b"192.0.2.7"], [])])})
    below = c.last(putfh(fh), lookup(b"file"), getattr_of(FS_LOCATIONS, TYPE))["attrs"]
    t.equal("replicas: of a file below", below, {TYPE: 1, FS_LOCATIONS: got[FS_LOCATIONS]})
    c.close()


def test_others(t, d):
    """Who has no line of the export learns no location."""
    c = client(d, 1, OTHER)
    outer = c.path(d.exports["e"])
    got = c.last(putfh(outer), lookup(b"moved"), getattr_of(FS_LOCATIONS, TYPE))["attrs"]
    t.equal("a host without a line has what the outer line gives", got, {TYPE: 2, FS_LOCATIONS: (parts(d.exports["e"]), [])})
    entries = c.last(putfh(outer), readdir(FS_LOCATIONS, RDATTR_ERROR))["entries"]
    t.check("nor does READDIR tell", all(e[FS_LOCATIONS][1] == [] for e in entries.values()), entries)
    c.close()
    stranger = d.connect(source=(STRANGER, 0))
    try:
        stranger.call(r.NFS, 4, 1, opaque(b"") + u32(0) + u32(2) + u32(n4.PUTROOTFH) + u32(n4.GETATTR) + bitmap(FS_LOCATIONS))
        told = "an answer"
    except r.Refused as e:
        told = e.why
    t.equal("a stranger is refused", told, "AUTH_ERROR")
    stranger.close()


def test_v3(t, d):
    with d.connect() as c:
        fh = d.root(c, "e/moved")
        t.check("NFSv3 has the directory that is here", c.nfs(r.LOOKUP, opaque(fh) + opaque(b"f"))["status"] == 0)


def test_many(t, d, minor):
    """Long lists, in every operation and every entry."""
    c = client(d, minor, owner="many")
    outer = c.path(d.exports["m"])
    into, want = (putfh(outer), lookup(b"moved")), getattr_of(FS_LOCATIONS)
    got = c.last(*into, want)["attrs"][FS_LOCATIONS][1]
    t.equal(f"4.{minor}: all hosts", got, [([b"h%d.example.org" % i for i in range(MANY)], [b"p" * 200, b"q"])])
    results = c.compound(*into, *[want] * 13)
    t.check(f"4.{minor}: in each operation", all(x["status"] == n4.OK for x in results), [x["status"] for x in results])
    res = c.last(putfh(outer), readdir(FS_LOCATIONS, RDATTR_ERROR, room=2000))
    t.check(f"4.{minor}: a listing with no room for it", res["status"] == TOOSMALL or (res["status"] == n4.OK and not res["eof"]), res)
    res = c.last(putfh(outer), readdir(FS_LOCATIONS, RDATTR_ERROR))
    t.equal(f"4.{minor}: a listing with room", len(res["entries"][b"moved"][FS_LOCATIONS][1][0][0]), MANY)
    c.close()


def lines(d, moved):
    who = f"127.0.0.1({OPTIONS},{{}})"
    many = "refer=/" + "p" * 200 + "/q@" + "+".join(f"h{i}.example.org" for i in range(MANY))
    d.write_exports([f"{d.exports['e']} 127.0.0.1({OPTIONS}) {OTHER}({OPTIONS})", f"{d.exports['e/moved']} " + who.format(moved),
                     f"{d.exports['r']} " + who.format("replicas=/@192.0.2.7"), f"{d.exports['m']} " + who.format("crossmnt"),
                     f"{d.exports['m/moved']} " + who.format(many)])


def test_reload(t, d):
    """State below an export that is moved goes, since no client could give it back."""
    lines(d, "crossmnt")
    d.reload()
    c = client(d, 1, owner="mover")
    fh = c.path(d.exports["e/moved"])
    res, file = c.open(fh, b"f")
    t.equal("OPEN before the move", res["status"], n4.OK)
    lines(d, REFER)
    d.reload()
    t.equal("READ after the move", c.last(putfh(file), n4.read(res["stateid"], 0, 10))["status"], MOVED)
    t.equal("the handle from before leads to the locations", c.last(putfh(file), getattr_of(FS_LOCATIONS))["attrs"][FS_LOCATIONS][1], LOCATIONS)
    t.equal("the stateid is revoked", c.test_stateid(res["stateid"]), [ADMIN_REVOKED])
    lines(d, "crossmnt")
    d.reload()
    t.equal("after the way back", c.last(putfh(file), getattr_of(TYPE))["attrs"], {TYPE: 1})
    c.close()


def main():
    t = Count()
    d = Daemon({"e": OPTIONS, "e/moved": OPTIONS, "r": OPTIONS, "m": OPTIONS, "m/moved": OPTIONS}, {"nfs4.grace_time": 5, "nfs4.lease_time": 5})
    for file in ("e/file", "e/moved/f", "r/file"):
        with open(os.path.join(d.top, file), "w") as f:
            f.write("here\n")
    lines(d, REFER)
    with d:
        for minor in (0, 1, 2):
            test_absent(t, d, minor)
            test_many(t, d, minor)
        test_replicas(t, d)
        test_others(t, d)
        test_v3(t, d)
        test_reload(t, d)
        t.check("the daemon lives", d.alive())
        d.stop()
    result(t)


if __name__ == "__main__":
    main()
