# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts of other systems' clients share: a daemon with one export, calls of NFSv3 that must succeed, and attributes of NFSv4.

A script sends the calls that its client sends, in the client's order and with its habits. Its head names the client and the public
source that tells them."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

ACCESS, COMMIT, LOOKUPP, OPENATTR, RESTOREFH, RELEASE_LOCKOWNER, LAYOUTGET = 3, 5, 16, 19, 31, 39, 50
# Attributes, and the sizes of those that have one.
(SUPPORTED, TYPE, CHANGE, SIZE, NAMED_ATTR, FSID, LEASE, RDATTR_ERROR, ACL, ACLSUPPORT, FILEHANDLE, FILEID, MAXREAD, MODE, NUMLINKS, OWNER,
 OWNER_GROUP, SPACE_USED, TIME_ACCESS, TIME_CREATE, TIME_METADATA, TIME_MODIFY, MOUNTED_ON) = (
     0, 1, 3, 4, 7, 8, 10, 11, 12, 13, 19, 20, 30, 33, 35, 36, 37, 45, 47, 50, 52, 53, 55)
SIZES = {TYPE: 4, CHANGE: 8, SIZE: 8, NAMED_ATTR: 4, FSID: 16, LEASE: 4, RDATTR_ERROR: 4, ACLSUPPORT: 4, FILEID: 8, MAXREAD: 8, MODE: 4,
         NUMLINKS: 4, SPACE_USED: 8, TIME_ACCESS: 12, TIME_CREATE: 12, TIME_METADATA: 12, TIME_MODIFY: 12, MOUNTED_ON: 8}
OPTIONS = "rw,insecure,no_root_squash"
STAT = (TYPE, CHANGE, SIZE, FSID, FILEID, MODE, NUMLINKS, OWNER, OWNER_GROUP, SPACE_USED, TIME_ACCESS, TIME_METADATA, TIME_MODIFY)


def _acl(x):
    return [(x.u32(), x.u32(), x.u32(), x.opaque()) for _ in range(x.u32())]


def _fattr(x):
    """{number: value}: bytes, the words of a bitmap, or the entries of an ACL."""
    words, values = n4._bitmap(x), r.In(x.opaque())
    out = {}
    for number in (n for n in range(32 * len(words)) if words[n // 32] >> n % 32 & 1):
        if number == SUPPORTED:
            out[number] = n4._bitmap(values)
        elif number == ACL:
            out[number] = _acl(values)
        elif number in (FILEHANDLE, OWNER, OWNER_GROUP):
            out[number] = values.opaque()
        else:
            out[number] = values.take(SIZES[number])
    values.end()
    return out


def _readdir(x, res):
    res.update(verf=x.take(8), entries=[])
    while x.flag():
        res["entries"].append((x.u64(), x.opaque(), _fattr(x)))
    res["eof"] = x.flag()


DECODERS = {
    n4.GETATTR: lambda x, res: res.update(attrs=_fattr(x)),
    n4.READDIR: _readdir,
    ACCESS: lambda x, res: res.update(supported=x.u32(), access=x.u32()),
    COMMIT: lambda x, res: res.update(verf=x.take(8)),
}


def getattr_op(*numbers):
    return n4.GETATTR, n4.bitmap(*numbers)


def fattr(values):
    """{number: encoded value} as the protocol has it."""
    return n4.bitmap(*values) + opaque(b"".join(values[n] for n in sorted(values))) if values else u32(0) + opaque(b"")


def readdir_op(cookie, verf, dircount, maxcount, *numbers):
    return n4.READDIR, u64(cookie) + verf + u32(dircount) + u32(maxcount) + n4.bitmap(*numbers)


def readdir(c, fh, dircount, maxcount, *numbers):
    """All entries of a directory, and the number of calls that they took; the failed result otherwise."""
    entries, cookie, verf, calls = [], 0, bytes(8), 0
    while True:
        res = c.last(n4.putfh(fh), readdir_op(cookie, verf, dircount, maxcount, *numbers))
        if res["status"]:
            return res, calls
        calls += 1
        entries += res["entries"]
        if res["eof"]:
            return entries, calls
        cookie, verf = res["entries"][-1][0], res["verf"]


def statuses(results):
    return [x["status"] for x in results]


class Three:
    """NFSv3 and MOUNT over one connection, each call by the client's credential. A call that fails is a failure of the test."""

    def __init__(self, t, conn, cred):
        self.t, self.conn, self.cred = t, conn, cred

    def call(self, proc, args, status=r.OK):
        res = self.conn.nfs(proc, args, self.cred)
        self.t.equal(r.NAMES[proc], res["status"], status)
        return res

    def null(self, prog, vers):
        self.conn.call(prog, vers, r.NULL, b"", self.cred).end()

    def mount(self, path, vers=3):
        status, fh, flavours = self.conn.mnt(path, vers, self.cred)
        self.t.equal("MNT", status, r.OK)
        self.t.check("its flavours have AUTH_SYS", vers < 3 or 1 in flavours, flavours)
        return fh

    def unmount(self, path, vers=3):
        self.conn.call(r.MOUNT, vers, r.UMNT, r.name(path), self.cred).end()

    def lookup(self, fh, name, status=r.OK):
        return self.call(r.LOOKUP, r.lookup_args(fh, name), status).get("fh")

    def listing(self, fh, dircount, maxcount):
        """All entries, by READDIRPLUS."""
        entries, cookie, verf = [], 0, bytes(8)
        while True:
            res = self.call(r.READDIRPLUS, r.readdirplus_args(fh, cookie, verf, dircount, maxcount))
            if res["status"]:
                return entries
            entries += res["entries"]
            if res["eof"]:
                return entries
            cookie, verf = res["entries"][-1]["cookie"], res["verf"]


def path(d, *names):
    return os.path.join(d.exports["one"], *names)


def main(*tests, settings=None, exports=None):
    t = Count()
    n4.RESULTS.update(DECODERS)  # here: other modules have decoders of their own
    with Daemon({"one": OPTIONS, **(exports or {})}, settings) as d:
        for test in tests:
            test(t, d)
        harness.finish(t, d)
    harness.result(t)
