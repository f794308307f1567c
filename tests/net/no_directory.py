#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Operations that need a directory, given what is none: each kind of file, by NFSv2, 3, 4.0, 4.1 and 4.2 (doc/design/nfs4-choices.md).

    no_directory.py PORT MOUNTPORT FOLDER [PATH]

asks a server of this machine that exports FOLDER, whose name by NFSv4 is PATH: prints what it answers otherwise.
"""
import os
import shutil
import socket
import stat
import sys

import nfs2
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon, finish, result
from rpcclient import opaque, u32, u64

NOTDIR, SYMLINK = 20, 10029
LOOKUPP = 16
PARENT = 1  # style of SECINFO_NO_NAME
NO_ATTRS = u32(0) + opaque(b"")
MAKERS = {
    "a file": lambda p: os.close(os.open(p, os.O_CREAT | os.O_WRONLY, 0o666)),
    "a symbolic link": lambda p: os.symlink("folder", p),
    "a FIFO": os.mkfifo,
    "a socket": lambda p: socket.socket(socket.AF_UNIX).bind(p),
    "a character device": lambda p: os.mknod(p, stat.S_IFCHR | 0o666, os.makedev(1, 3)),
    "a block device": lambda p: os.mknod(p, stat.S_IFBLK | 0o666, os.makedev(7, 0)),
}


def make(folder):
    """One of each kind in FOLDER/no_directory, beside a folder that the link leads to: {kind: name}."""
    os.makedirs(os.path.join(folder, "no_directory", "folder"))
    names = {}
    for i, (kind, maker) in enumerate(MAKERS.items()):
        names[kind] = f"kind{i}"
        maker(os.path.join(folder, "no_directory", names[kind]))
    return names


def ops2(fh, good, file):
    name = r.name("x")
    attrs = nfs2.sattr(mode=0o644)
    return {
        "LOOKUP": (nfs2.LOOKUP, fh + name), "CREATE": (nfs2.CREATE, fh + name + attrs), "MKDIR": (nfs2.MKDIR, fh + name + attrs),
        "SYMLINK": (nfs2.SYMLINK, fh + name + r.name("to") + attrs), "REMOVE": (nfs2.REMOVE, fh + name), "RMDIR": (nfs2.RMDIR, fh + name),
        "RENAME from it": (nfs2.RENAME, fh + name + good + name), "RENAME into it": (nfs2.RENAME, good + r.name("kind0") + fh + name),
        "LINK": (nfs2.LINK, file + fh + name), "READDIR": (nfs2.READDIR, fh + u32(0) + u32(1024)),
    }


def ops3(fh, good, file):
    return {
        "LOOKUP": (r.LOOKUP, r.lookup_args(fh, "x")), "CREATE": (r.CREATE, r.create_args(fh, "x")),
        "CREATE, exclusive": (r.CREATE, r.create_args(fh, "x", r.EXCLUSIVE)), "MKDIR": (r.MKDIR, r.mkdir_args(fh, "x")),
        "SYMLINK": (r.SYMLINK, r.symlink_args(fh, "x", "to")), "MKNOD": (r.MKNOD, r.mknod_args(fh, "x", r.FIFO)),
        "REMOVE": (r.REMOVE, r.remove_args(fh, "x")), "RMDIR": (r.RMDIR, r.rmdir_args(fh, "x")),
        "RENAME from it": (r.RENAME, r.rename_args(fh, "x", good, "x")), "RENAME into it": (r.RENAME, r.rename_args(good, "kind0", fh, "x")),
        "LINK": (r.LINK, r.link_args(file, fh, "x")), "READDIR": (r.READDIR, r.readdir_args(fh)),
        "READDIRPLUS": (r.READDIRPLUS, r.readdirplus_args(fh)),
    }


def ops4(c, fh, good, file):
    """What one COMPOUND does for each operation. An owner of OPEN has its numbers anew, so that a failure does not shift them."""
    here, name = n4.putfh(fh), r.name("x")

    def saved(handle):
        return n4.putfh(handle), (n4.SAVEFH, b"")

    def owner(n):
        return u32(0) + u32(n4.SHARE_READ) + u32(0) + u64(c.clientid) + opaque(fh + bytes([n]))

    def create(kind, data=b""):
        return here, (n4.CREATE, u32(kind) + data + name + NO_ATTRS)

    ops = {
        "LOOKUP": (here, n4.lookup("x")), "LOOKUPP": (here, (LOOKUPP, b"")),
        "CREATE of a folder": create(2), "CREATE of a link": create(5, r.name("to")), "CREATE of a FIFO": create(7),
        "OPEN": (here, (n4.OPEN, owner(1) + u32(0) + u32(n4.CLAIM_NULL) + name)),
        "OPEN that creates": (here, (n4.OPEN, owner(2) + u32(1) + u32(0) + NO_ATTRS + u32(n4.CLAIM_NULL) + name)),
        "OPEN that creates exclusively": (here, (n4.OPEN, owner(3) + u32(1) + u32(2) + bytes(8) + u32(n4.CLAIM_NULL) + name)),
        "READDIR": (here, (n4.READDIR, u64(0) + bytes(8) + u32(1024) + u32(1024) + u32(0))),
        "REMOVE": (here, (n4.REMOVE, name)),
        "RENAME from it": (*saved(fh), n4.putfh(good), (n4.RENAME, name + name)),
        "RENAME into it": (*saved(good), here, (n4.RENAME, r.name("kind0") + name)),
        "LINK": (*saved(file), here, (n4.LINK, name)),
        "SECINFO": (here, (n4.SECINFO, name)),
    }
    if c.minor > 0:
        ops["SECINFO_NO_NAME of the parent"] = (here, (n4.SECINFO_NO_NAME, u32(PARENT)))
        ops["GET_DIR_DELEGATION"] = (here, (n4.GET_DIR_DELEGATION, u32(0) + u32(0) + (u64(0) + u32(0)) * 2 + u32(0) + u32(0)))
    return ops


def differs(t, version, ops, ask, kind, want):
    for op, how in ops.items():
        t.equal(f"NFSv{version}, {op}: {kind}", ask(*how), want)


def test_2(t, conn, root, names):
    c = nfs2.Client(conn)
    top = c.lookup(root, "no_directory")[0]
    for kind, name in names.items():
        differs(t, 2, ops2(c.lookup(top, name)[0], top, c.lookup(top, "kind0")[0]), c.status, kind, NOTDIR)


def test_3(t, conn, root, names):
    def lookup(fh, name):
        return conn.nfs(r.LOOKUP, r.lookup_args(fh, name))["fh"]

    top = lookup(root, "no_directory")
    for kind, name in names.items():
        differs(t, 3, ops3(lookup(top, name), top, lookup(top, "kind0")), lambda proc, args: conn.nfs(proc, args)["status"], kind, NOTDIR)


def test_4(t, port, minor, path, names):
    c = n4.Client(port, f"no directory {minor}", minor)
    t.equal(f"a client of 4.{minor}", c.register()["status"], n4.OK)
    t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n4.OK)
    top = c.path(path + "/no_directory")
    file = c.path(path + "/no_directory/kind0")
    for kind, name in names.items():
        ops = ops4(c, c.path(f"{path}/no_directory/{name}"), top, file)
        differs(t, f"4.{minor}", ops, lambda *how: c.last(*how)["status"], kind, SYMLINK if kind == "a symbolic link" else NOTDIR)
    c.close()


def test_none_changed(t, folder, names):
    t.equal("nothing was made or taken away", sorted(os.listdir(os.path.join(folder, "no_directory"))), sorted([*names.values(), "folder"]))
    t.equal("nor behind the link", os.listdir(os.path.join(folder, "no_directory", "folder")), [])


def test_of_other(t, port, mount_port, folder, path):
    """NFSv3 and 4 of a server that is there."""
    names = make(folder)
    try:
        with r.Conn(mount_port) as m:
            root = m.mnt(folder)[1]
        with r.Conn(port) as conn:
            test_3(t, conn, root, names)
        for minor in (0, 1, 2):
            test_4(t, port, minor, path, names)
        test_none_changed(t, folder, names)
    finally:
        shutil.rmtree(os.path.join(folder, "no_directory"))


def main():
    t = Count()
    if len(sys.argv) > 3:
        test_of_other(t, int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[-1])
        result(t)
    with Daemon({"one": "rw,insecure,no_root_squash"}, {"nfs2.enabled": "yes", "nfs4.grace_time": 5, "nfs4.lease_time": 5}) as d:
        names = make(d.exports["one"])
        with d.connect() as conn:
            test_2(t, conn, conn.mnt(d.exports["one"], 1)[1], names)
            test_3(t, conn, d.root(conn, "one"), names)
        for minor in (0, 1, 2):
            test_4(t, d.port, minor, d.exports["one"], names)
        test_none_changed(t, d.exports["one"], names)
        finish(t, d)
    result(t)


main()
