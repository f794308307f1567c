#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""A client that has delegations is not in its own way: no operation of its own is answered NFS4ERR_DELAY, recalls what only it holds, or
costs it that, by any minor version. Another client's operation waits a moment for a delegation that is returned at once."""
import os

import callbacks_40
import delegations
import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

ACE = u32(0) + u32(0) + u32(0x1601bf) + opaque(b"OWNER@")


def sattr(number, value):
    return n4.bitmap(number) + opaque(value)


def setattr_of(number, value):
    return lambda c, root, fh, name, sid: c.last(n4.putfh(fh), (n4.SETATTR, n4.ANONYMOUS + sattr(number, value)))


def rename(c, root, fh, name, sid):
    return c.last(n4.putfh(root), (n4.SAVEFH, b""), (n4.RENAME, r.name(name) + r.name(name + " moved")))


def rename_over(c, root, fh, name, sid):
    made, other = c.open(root, name + " new", create=True)
    c.close_file(other, made["stateid"])
    return c.last(n4.putfh(root), (n4.SAVEFH, b""), (n4.RENAME, r.name(name + " new") + r.name(name)))


def truncating(c, root, fh, name, sid):
    how = u32(1) + u32(0) + sattr(4, u64(0))
    res = c.compound(n4.putfh(root), (n4.OPEN, c._open_owner(n4.SHARE_BOTH, 0) + how + u32(n4.CLAIM_NULL) + r.name(name)), (n4.GETFH, b""))
    return c._opened(res)


def write_lock(c, root, fh, name, sid):
    """The open, to write, is what has the delegation in its way; the lock needs a descriptor to write as well."""
    res, _ = c.open(root, name, access=n4.SHARE_BOTH)
    return c.lock(fh, res["stateid"]) if res["status"] == n4.OK else res


def write_opened(c, root, fh, name, sid):
    res, _ = c.open(root, name, access=n4.SHARE_BOTH)
    return c.last(n4.putfh(fh), n4.write(res["stateid"], 0, b"after")) if res["status"] == n4.OK else res


# (operation, the first minor version that has it, request)
ON_FILES = (
    ("OPEN to write", 0, lambda c, root, fh, name, sid: c.open(root, name, access=n4.SHARE_WRITE)[0]),
    ("OPEN to write and deny", 0, lambda c, root, fh, name, sid: c.open(root, name, access=n4.SHARE_BOTH, deny=2)[0]),
    ("OPEN that truncates", 0, truncating),
    ("WRITE by an open", 0, write_opened),
    ("WRITE by no open", 0, lambda c, root, fh, name, sid: c.last(n4.putfh(fh), n4.write(n4.ANONYMOUS, 0, b"after"))),
    ("LOCK to write", 0, write_lock),
    ("SETATTR of the size", 0, setattr_of(4, u64(3))),
    ("SETATTR of the mode", 0, setattr_of(33, u32(0o600))),
    ("SETATTR of the owner", 0, setattr_of(36, opaque(b"1234"))),
    ("SETATTR of the times", 0, setattr_of(54, u32(0))),
    ("SETATTR of the ACL", 0, setattr_of(12, u32(1) + ACE)),
    ("LINK", 0, lambda c, root, fh, name, sid: c.last(n4.putfh(fh), (n4.SAVEFH, b""), n4.putfh(root), (n4.LINK, r.name(name + " too")))),
    ("RENAME", 0, rename),
    ("RENAME over it", 0, rename_over),
    ("REMOVE", 0, lambda c, root, fh, name, sid: c.last(n4.putfh(root), (n4.REMOVE, r.name(name)))),
    ("ALLOCATE", 2, lambda c, root, fh, name, sid: c.last(n4.putfh(fh), (n4.ALLOCATE, n4.ANONYMOUS + u64(0) + u64(4096)))),
    ("SETXATTR", 2, lambda c, root, fh, name, sid: c.last(n4.putfh(fh), (n4.SETXATTR, u32(0) + r.name("mine") + opaque(b"value")))),
)




ON_DIRECTORIES = (
    ("OPEN that creates", lambda c, root, fh, name: c.open(fh, "made", create=True)[0]),
    ("CREATE", lambda c, root, fh, name: c.last(n4.putfh(fh), (n4.CREATE, u32(2) + r.name("sub") + u32(0) + u32(0)))),
    ("REMOVE", lambda c, root, fh, name: c.last(n4.putfh(fh), (n4.REMOVE, r.name("f")))),
    ("RENAME", lambda c, root, fh, name: c.last(n4.putfh(fh), (n4.SAVEFH, b""), (n4.RENAME, r.name("f") + r.name("g")))),
    ("RENAME out of it", lambda c, root, fh, name: c.last(n4.putfh(fh), (n4.SAVEFH, b""), n4.putfh(root),
                                                          (n4.RENAME, r.name("f") + r.name(name + " f")))),
    ("SETATTR", lambda c, root, fh, name: c.last(n4.putfh(fh), (n4.SETATTR, n4.ANONYMOUS + sattr(33, u32(0o700))))),
    ("RENAME of itself", lambda c, root, fh, name: c.last(n4.putfh(root), (n4.SAVEFH, b""), (n4.RENAME, r.name(name) + r.name(name + "2")))),
)


class Sole:
    """A client of a minor version, and what it was told."""

    def __init__(self, d, minor, what):
        if minor > 0:
            self.c = delegations.new_client(d, f"sole {what} 4.{minor}", minor)
            return
        self.listener = callbacks_40.Listener()

        class Called40(n4.Client):
            callback = (callbacks_40.PROGRAM, b"tcp", self.listener.uaddr(), 7)

        self.c = delegations.new_client(d, f"sole {what} 4.0", 0, Called40)
        self.listener.await_calls(1)

    def recalled(self):
        if self.c.minor == 0:
            return self.listener.recalls
        self.c.compound((n4.PUTROOTFH, b""))  # reads what has come
        return [x for x in self.c.called if x["op"] == n4.CB_RECALL]


def test_files(t, d, minor):
    s = Sole(d, minor, "files")
    for what, first, request in ON_FILES:
        if minor < first:
            continue
        name = f"4.{minor} {what}"
        root, fh, sid, deleg = delegations.delegated(t, d, s.c, name)
        t.equal(name, request(s.c, root, fh, name, sid)["status"], n4.OK)
        t.equal(f"{name}: recalled", len([x for x in s.recalled() if x["fh"] == fh]), 0)
        if what not in ("REMOVE", "RENAME over it"):
            t.equal(f"{name}: READ by the delegation", s.c.last(n4.putfh(fh), n4.read(deleg, 0, 1))["status"], n4.OK)
        s.c.delegreturn(fh, deleg)
    s.c.close()


def test_directories(t, d, minor):
    s = Sole(d, minor, "directories")
    root = s.c.path(d.exports["one"])
    for what, request in ON_DIRECTORIES:
        name = f"directory 4.{minor} {what}"
        os.mkdir(os.path.join(d.exports["one"], name))
        delegations.make(d, os.path.join(name, "f"))
        fh = s.c.path(os.path.join(d.exports["one"], name))
        res = s.c.dir_delegation(fh)
        if not t.check(f"{name} is delegated", "deleg" in res, res):
            continue
        t.equal(name, request(s.c, root, fh, name)["status"], n4.OK)
        t.equal(f"{name}: recalled", len([x for x in s.recalled() if x["fh"] == fh]), 0)
        t.equal(f"{name}: DELEGRETURN", s.c.delegreturn(fh, res["deleg"]), n4.OK)
    s.c.close()


def test_shared_connection(t, d):
    """Two clients of 4.0 by one connection: which of them sends a SETATTR is not known, so the delegation is recalled."""
    s = Sole(d, 0, "shared")
    delegations.make(d, "of two")
    _, fh, _, deleg = delegations.delegated(t, d, s.c, "of two")
    second = n4.Client(d.port, "second of two", 0)
    second.close()
    second.conn = s.c.conn
    t.equal("registered", second.register()["status"], n4.OK)
    t.equal("SETATTR", second.last(n4.putfh(fh), (n4.SETATTR, n4.ANONYMOUS + sattr(33, u32(0o600))))["status"], n4.DELAY)
    t.check("recalled", s.listener.await_recalls())
    s.c.delegreturn(fh, deleg)
    s.c.close()


def test_local(t, d):
    """The holder writes; a local process waits all the same until the delegation has been returned, and sees what was written."""
    s = Sole(d, 1, "and a local process")
    root, fh, _, deleg = delegations.delegated(t, d, s.c, "written by its reader")
    res, _ = s.c.open(root, "written by its reader", access=n4.SHARE_BOTH)
    t.equal("OPEN to write", res["status"], n4.OK)

    def read():
        with open(os.path.join(d.exports["one"], "written by its reader"), "rb") as f:
            return {"status": n4.OK, "data": f.read()}

    other = delegations.Other(read)
    t.equal("recalled by a local process", s.c.await_callback(n4.CB_RECALL)["stateid"], deleg)
    t.equal("WRITE", s.c.last(n4.putfh(fh), n4.write(res["stateid"], 0, b"after!"))["status"], n4.OK)
    t.check("the local process waits", other.is_waiting())
    t.equal("DELEGRETURN", s.c.delegreturn(fh, deleg), n4.OK)
    t.equal("it goes on", other.end(), n4.OK)
    t.equal("and reads", other.result["data"], b"after!")
    s.c.close()


def main():
    t = Count()
    for options in (delegations.SHARED, delegations.OPTIONS):
        with Daemon({"one": options}, delegations.SETTINGS) as d:
            test_shared_connection(t, d)
            for minor in (0, 1, 2):
                print(f"# 4.{minor}, {options}", flush=True)
                test_files(t, d, minor)
                if minor > 0:
                    test_directories(t, d, minor)
            if options == delegations.SHARED:
                test_local(t, d)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
