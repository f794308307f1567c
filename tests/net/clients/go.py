#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The NFSv3 client in Go (package go-nfs-client of VMware, and its forks, as of 2024): MNT and FSINFO on connections of their own, by
AUTH_NONE or AUTH_SYS, READDIRPLUS of 512 bytes in 4 KiB, and trees that are removed by the handles of a listing. Source: nfs/mount.go,
nfs/target.go and nfs/file.go of the fork sile16/go-nfs-client. It follows what a listing says of each entry, so one without attributes
or a handle is removed wrongly."""
import os

import base
import rpcclient as r
from base import Three

FILES = 120
TOO_WEAK = 5
USER = r.auth_sys(1000, 1000, machine="go")


def mount(t, d, cred, export):
    with d.connect() as conn:
        fh = Three(t, conn, cred).mount(d.exports[export])
    c = Three(t, d.connect(), cred)
    info = c.call(r.FSINFO, r.fsinfo_args(fh))
    t.check("sizes that it reads and writes by", info["rtpref"] and info["wtpref"], info)
    return c, fh, info


def test_files(t, d, cred, export):
    c, fh, info = mount(t, d, cred, export)
    c.lookup(fh, "file", r.NOENT)
    file = c.call(r.CREATE, r.create_args(fh, "file", r.UNCHECKED, r.sattr(mode=0o644, size=0)))["fh"]
    t.check("CREATE gives a handle", file)
    data = bytes(range(256)) * (info["wtpref"] // 256)
    t.equal("all of wtpref", c.call(r.WRITE, r.write_args(file, 0, data, r.FILE_SYNC))["count"], len(data))
    c.call(r.COMMIT, r.commit_args(file))
    got = c.call(r.READ, r.read_args(c.lookup(fh, "file"), 0, info["rtpref"]))
    t.equal("read back", (got["data"] == data[:info["rtpref"]], got["count"]), (True, min(len(data), info["rtpref"])))
    c.call(r.REMOVE, r.remove_args(fh, "file"))
    c.unmount(d.exports[export])
    c.conn.close()


def test_tree(t, d, cred, export):
    """RemoveAll: the directory first, then what a listing has."""
    c, fh, _ = mount(t, d, cred, export)
    tree = c.call(r.MKDIR, r.mkdir_args(fh, "tree", r.sattr(mode=0o755)))["fh"]
    sub = c.call(r.MKDIR, r.mkdir_args(tree, "sub", r.sattr(mode=0o755)))["fh"]
    for i in range(FILES):
        c.call(r.CREATE, r.create_args(sub if i % 2 else tree, f"file {i:04}", r.UNCHECKED, r.sattr(mode=0o644)))
    c.call(r.RMDIR, r.rmdir_args(fh, "tree"), r.NOTEMPTY)

    def remove(folder):
        entries = c.listing(folder, 512, 4096)
        t.check("each entry has attributes and a handle", all(e["attr"] and e["fh"] for e in entries), entries[:3])
        for e in entries:
            if e["name"] in (b".", b".."):
                continue
            if e["attr"]["type"] == r.DIR:
                remove(e["fh"])
                c.call(r.RMDIR, r.rmdir_args(folder, e["name"]))
            else:
                c.call(r.REMOVE, r.remove_args(folder, e["name"]))
        return entries

    entries = remove(c.lookup(fh, "tree"))
    t.equal("the whole tree was listed", len(entries), FILES // 2 + 3)
    c.call(r.RMDIR, r.rmdir_args(fh, "tree"))
    t.equal("it is gone", os.listdir(d.exports[export]), [])
    c.conn.close()


def test_without_credential(t, d):
    """AUTH_NONE is enough to mount an export of sec=sys, and for nothing else."""
    c, fh, _ = mount(t, d, r.auth_none(), "one")
    try:
        c.lookup(fh, "file")
        t.check("LOOKUP by AUTH_NONE", False)
    except r.Refused as e:
        t.equal("LOOKUP by AUTH_NONE", (e.why, e.data), ("AUTH_ERROR", (TOO_WEAK,)))
    c.conn.close()


def test(t, d):
    for cred, export in ((r.auth_none(), "public"), (USER, "one"), (r.ROOT, "one")):
        test_files(t, d, cred, export)
        test_tree(t, d, cred, export)


if __name__ == "__main__":
    base.main(test, test_without_credential, exports={"public": base.OPTIONS + ",sec=none:sys"})
