#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""YANFS, Sun's NFS client in Java (Debian's package libyanfs-java), by NFSv3. Its calls were recorded from a program that lists, writes, reads,
renames and removes. It is a client of WebNFS (RFC 2054), so it first looks a whole path up below the public handle, which is empty, on one
connection with NFS. Only when that is refused, and not closed, does it ask for MNT and go on."""
import base
import rpcclient as r
from base import Three

USER = r.auth_sys(0, 0, machine="java")
DATA = b"y" * 100000


def test(t, d):
    c = Three(t, d.connect(), USER)
    for n in (d.exports["one"], d.exports["one"].strip("/"), "/", ""):
        c.call(r.LOOKUP, r.lookup_args(b"", n), r.BADHANDLE)
    c.call(r.GETATTR, r.getattr_args(b""), r.BADHANDLE)
    with d.connect() as mount:
        fh = Three(t, mount, USER).mount(d.exports["one"])
        try:
            mount.mnt(d.exports["one"].strip("/"), 3, USER)
        except r.Refused as e:
            t.check("a path that does not begin with a slash gets a status", False, e)
    c.call(r.GETATTR, r.getattr_args(fh))
    c.listing(fh, 1024, 8192)
    how = r.sattr(mode=0o666, uid=0, gid=0, size=0, atime="server", mtime="server")
    file = c.call(r.CREATE, r.create_args(fh, "file", r.UNCHECKED, how))["fh"]
    info = c.call(r.FSINFO, r.fsinfo_args(file))
    t.check("FSINFO of a file", info["wtpref"] >= len(DATA), info)
    t.equal("WRITE", c.call(r.WRITE, r.write_args(file, 0, DATA, r.FILE_SYNC))["count"], len(DATA))
    t.check("READ", c.call(r.READ, r.read_args(c.lookup(fh, "file"), 0, len(DATA)))["data"] == DATA)
    c.call(r.MKDIR, r.mkdir_args(fh, "sub", how))
    c.call(r.RENAME, r.rename_args(fh, "file", fh, "renamed"))
    c.call(r.REMOVE, r.remove_args(fh, "renamed"))
    c.call(r.RMDIR, r.rmdir_args(fh, "sub"))
    c.conn.close()


if __name__ == "__main__":
    base.main(test)
