#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""libnfs 4.0.0 and 5.0.2 (Debian's; the library of Kodi, VLC and QEMU), by NFSv3 and 4.0. Its calls were recorded with its own nfs-ls,
nfs-cp and nfs-cat, which run here too if they are installed (package libnfs-utils). It makes a client id for each process, lets nobody
call it back, and looks a path up in one COMPOUND with what it wants there. By NFSv4, 4.0.0 cannot send a WRITE of some kilobytes, so
these are short."""
import os
import shutil
import subprocess

import base
import nfs4client as n4
import rpcclient as r
from base import (MODE, NUMLINKS, OWNER, OWNER_GROUP, SIZE, SPACE_USED, TIME_ACCESS, TIME_METADATA, TIME_MODIFY, TYPE, FILEID, Three,
                  getattr_op, statuses)
from nfs4client import putfh
from rpcclient import opaque, u32, u64

USER = r.auth_sys(0, 0, machine="libnfs")
SOME = b"hello\n" * 100
ATTRS = (TYPE, SIZE, FILEID, MODE, NUMLINKS, OWNER, OWNER_GROUP, SPACE_USED, TIME_ACCESS, TIME_METADATA, TIME_MODIFY)
XIDS = (0, 0xffffffff, 0x80000000)


def test_three(t, d):
    c = Three(t, d.connect(), USER)
    c.null(r.MOUNT, 3)
    fh = c.mount(d.exports["one"] + "/")  # with the slash of its URL
    exports = c.conn.call(r.MOUNT, 3, r.EXPORT, b"", USER)
    t.check("EXPORT names it", d.exports["one"].encode() in exports.data)
    c.null(r.NFS, 3)
    c.call(r.FSINFO, r.fsinfo_args(fh))
    for _ in range(2):
        c.call(r.GETATTR, r.getattr_args(fh))
    made = c.call(r.CREATE, r.create_args(fh, "three", r.GUARDED, r.sattr(mode=0o660)))
    t.equal("LOOKUP finds it", c.lookup(fh, "three"), made["fh"])
    c.call(r.SETATTR, r.setattr_args(made["fh"], r.sattr(size=0)))
    c.call(r.WRITE, r.write_args(made["fh"], 0, SOME, r.UNSTABLE))
    c.call(r.COMMIT, r.commit_args(made["fh"]))
    t.equal("ACCESS", c.call(r.ACCESS, r.access_args(made["fh"], 1))["access"], 1)
    t.equal("READ", c.call(r.READ, r.read_args(made["fh"], 0, len(SOME)))["data"], SOME)
    names = [e["name"] for e in c.listing(fh, 8192, 8192)]
    t.check("READDIRPLUS of 8 KiB", b"three" in names, names)
    for xid in XIDS:
        t.equal(f"xid {xid:#x}", c.conn.nfs(r.GETATTR, r.getattr_args(fh), USER, xid)["status"], r.OK)
    c.conn.close()


def owner(c):
    return u64(c.clientid) + opaque(c.owner)


def test_four(t, d):
    c = n4.Client.__new__(n4.Client)
    c.callback = (0, b"tcp", b"0.0.0.0.0.0", 1)
    c.__init__(d.port, "Libnfs pid:1749 1795877921", 0)
    c.cred = USER
    t.equal("SETCLIENTID without an address to call", c.register()["status"], 0)
    walk = [(n4.PUTROOTFH, b""), *(n4.lookup(n) for n in d.exports["one"].strip("/").split("/"))]
    results = c.compound(*walk, getattr_op(*ATTRS), (n4.GETFH, b""))
    t.equal("a path in one COMPOUND", statuses(results), [0] * (len(walk) + 2))
    fh = results[-1]["fh"]
    how = u32(1) + u32(0) + u32(0) + opaque(b"")
    results = c.compound(putfh(fh), getattr_op(*ATTRS), (base.ACCESS, u32(4)),
                         (n4.OPEN, u32(0) + u32(2) + u32(0) + owner(c) + how + u32(0) + r.name("four")), (n4.GETFH, b""))
    t.equal("OPEN that makes a file without a mode", statuses(results), [0] * 5)
    file, opened = results[-1]["fh"], results[3]
    t.check("is to be confirmed", opened["rflags"] & 2, opened)
    results = c.compound(putfh(file), (n4.OPEN_CONFIRM, opened["stateid"] + u32(1)))
    t.equal("OPEN_CONFIRM", statuses(results), [0, 0])
    stateid = results[-1]["stateid"]
    t.equal("SETATTR of the mode with the open", c.last(putfh(file), (n4.SETATTR, stateid + base.fattr({MODE: u32(0o660)})))["status"], 0)
    t.equal("it has it", os.stat(base.path(d, "four")).st_mode & 0o777, 0o660)
    t.equal("WRITE", c.last(putfh(file), n4.write(stateid, 0, SOME, 0))["count"], len(SOME))
    lock = u32(n4.WRITE_LT) + u32(0) + u64(0) + u64(10) + u32(1) + u32(2) + stateid + u32(0) + owner(c)
    locked = c.last(putfh(file), (n4.LOCK, lock))
    t.equal("LOCK by an owner of the same name", locked["status"], 0)
    res = c.last(putfh(file), (n4.LOCKU, u32(n4.WRITE_LT) + u32(1) + locked["stateid"] + u64(0) + u64(10)))
    t.equal("LOCKU", res["status"], 0)
    results = c.compound(putfh(file), (base.COMMIT, u64(0) + u32(0)), (n4.CLOSE, u32(3) + stateid))
    t.equal("COMMIT and CLOSE", statuses(results), [0] * 3)
    entries, _ = base.readdir(c, fh, 8192, 8192, *ATTRS)
    t.equal("READDIR", {n for _, n, _ in entries}, {b"three", b"four"})
    os.mkdir(base.path(d, "folder"))
    os.symlink("folder", base.path(d, "link"))
    results = c.compound(putfh(fh), n4.lookup("link"), n4.lookup("x"), getattr_op(*ATTRS))
    t.equal("LOOKUP through a symbolic link", results[-1]["status"], 10029)  # SYMLINK: the client resolves it
    results = c.compound(putfh(fh), n4.lookup("link"), (n4.CREATE, u32(2) + r.name("x") + base.fattr({MODE: u32(0o755)})))
    t.equal("CREATE below one", results[-1]["status"], 10029)
    c.close()


def run(t, what, *command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    t.check(what, done.returncode == 0, f"{done.returncode} {done.stderr}")
    return done.stdout


def test_programs(t, d):
    if not shutil.which("nfs-ls"):
        t.skip("libnfs's programs", "libnfs-utils is not installed")
        return
    for version in (3, 4):
        local = os.path.join(d.top, "local")
        with open(local, "wb") as f:
            f.write(SOME)

        def url(name, version=version):
            return f"nfs://127.0.0.1{d.exports['one']}/{name}?version={version}&nfsport={d.port}&mountport={d.port}"

        run(t, "nfs-cp to the server", "nfs-cp", local, url(f"copy{version}"))
        t.check("nfs-ls", f"copy{version}" in run(t, "nfs-ls", "nfs-ls", url("")))
        t.equal("nfs-cat", run(t, "nfs-cat", "nfs-cat", url(f"copy{version}")), SOME.decode())
        run(t, "nfs-cp from the server", "nfs-cp", url(f"copy{version}"), local + f".{version}")
        with open(local + f".{version}", "rb") as f:
            t.equal("comes back", f.read(), SOME)


if __name__ == "__main__":
    base.main(test_three, test_four, test_programs)
