#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""File handles after the root of their export, or its file system, was replaced by another."""
import os
import time

import mounts
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon

OPTIONS = "rw,insecure,no_root_squash"
STALE4 = 70


def status(c, fh):
    return c.nfs(r.GETATTR, r.opaque(fh))["status"]


def create(c, fh, name):
    return c.nfs(r.CREATE, r.create_args(fh, name, attrs=r.sattr(mode=0o644)))


def must_create(c, fh, name):
    res = create(c, fh, name)
    if res["status"]:
        raise SystemExit(f"CREATE {name}: {res}")
    return res["fh"]


def export(d, path, options=""):
    """The only export from now on."""
    d.write_exports([f"{path} 127.0.0.1({OPTIONS}{options})"])
    d.reload()


def gone(t, d, c, what, root, others):
    """None of the old handles does anything any more."""
    for name, fh in {"root": root, **others}.items():
        t.equal(f"{what}: the old {name}", status(c, fh), r.STALE)
        four = n4.Client(d.port, "old handles")
        four.register()
        t.equal(f"{what}: PUTFH of the old {name}", four.last(n4.putfh(fh))["status"], STALE4)
        four.close()
    t.equal(f"{what}: CREATE in the old root", create(c, root, b"new")["status"], r.STALE)
    for name, fh in others.items():
        t.equal(f"{what}: WRITE to the old {name}", c.nfs(r.WRITE, r.write_args(fh, 0, b"x"))["status"], r.STALE)


def test_narrowed(t, d, c):
    top = d.exports["e"]
    os.mkdir(top + "/public")
    export(d, top, ",fsid=7")
    root = d.root(c, "e")
    secret = must_create(c, root, b"secret")
    export(d, top + "/public", ",fsid=7")
    gone(t, d, c, "narrowed", root, {"file": secret})
    t.equal("nothing was made", sorted(os.listdir(top + "/public")), [])
    export(d, top, ",fsid=7")
    t.equal("and widened again", (status(c, root), status(c, secret)), (0, 0))


def test_replaced_directory(t, d, c):
    top = d.exports["e"]
    for options in ("", ",fsid=7"):
        export(d, top, options)
        root = d.root(c, "e")
        f = must_create(c, root, b"f")
        os.rename(top, top + ".old")
        os.mkdir(top)
        export(d, top, options)
        gone(t, d, c, "replaced directory" + options, root, {"file": f})
        t.equal("the new one is served", status(c, d.root(c, "e")), 0)
        os.rmdir(top)
        os.rename(top + ".old", top)
        export(d, top, options)
        t.equal("the old one is back", (status(c, root), status(c, f)), (0, 0))
        os.rename(top, top + ".new")
        export(d, top + ".new", options)
        want = 0 if options else r.STALE
        t.equal("the same root by another path" + options, (status(c, root), status(c, f)), (want, want))
        os.rename(top + ".new", top)


class Images:
    """Two file systems that take each other's place at one path."""

    def __init__(self, d, kind):
        self.at = None
        self.paths = [os.path.join(d.top, f"{kind}-{i}.img") for i in (0, 1)]
        self.why = None
        for path in self.paths:
            self.why = self.why or mounts.make_image(path, kind)

    def mount(self, i, at):
        if self.at:
            mounts.must("umount", "-l", self.at)
        self.at = None
        why = mounts.mount_image(self.paths[i], at)
        if not why:
            self.at = at
        return why

    def end(self):
        if self.at:
            mounts.must("umount", "-l", self.at)
        self.at = None


def test_replaced_file_system(t, d, c, kind, images):
    top = d.exports["e"]
    export(d, top)
    root = d.root(c, "e")
    f = must_create(c, root, b"f")
    inode = os.stat(top).st_ino
    images.mount(1, top)
    export(d, top)
    t.equal(f"{kind}: the roots have one number, so that it is the file systems that differ", os.stat(top).st_ino, inode)
    gone(t, d, c, f"{kind}: replaced file system", root, {"file": f})
    t.equal(f"{kind}: nothing was made", [n for n in os.listdir(top) if n != "lost+found"], [])
    images.mount(0, top)
    export(d, top)
    t.equal(f"{kind}: the old one is back", (status(c, root), status(c, f)), (0, 0))
    if kind == "ext4":
        export(d, top, ",fsid=9")
        root = d.root(c, "e")
        images.mount(1, top)
        export(d, top, ",fsid=9")
        t.equal("fsid= stands for the file system: the same root of another", status(c, root), 0)
        images.mount(0, top)
    return root, f


def test_remounted(t, d, kind, images):
    """The device has another number: what tells file systems apart has not."""
    top = d.exports["e"]
    with d.connect() as c:
        export(d, top)
        root = d.root(c, "e")
        f = must_create(c, root, b"g")
        d.stop()
    before = os.stat(top).st_dev
    images.end()
    with mounts.mounted_elsewhere(images.paths[0], top, before):
        t.check(f"{kind}: it is another device", kind == "btrfs" or os.stat(top).st_dev != before)
        d.start()
        with d.connect() as c:
            t.equal(f"{kind}: handles after a remount and a restart", (status(c, root), status(c, f)), (0, 0))
        d.stop()
    images.mount(0, top)
    d.start()


def test_submount(t, d, c, images):
    top = d.exports["e"]
    sub = top + "/sub"
    os.mkdir(sub)
    images.mount(0, sub)
    export(d, top, ",crossmnt")
    root = d.root(c, "e")
    at = c.nfs(r.LOOKUP, r.diropargs(root, b"sub"))["fh"]
    f = must_create(c, at, b"f")
    images.mount(1, sub)
    export(d, top, ",crossmnt")
    gone(t, d, c, "replaced submount", at, {"file": f})
    t.equal("the export itself goes on", status(c, root), 0)
    images.mount(0, sub)
    export(d, top, ",crossmnt")
    t.equal("submount: the old one is back", (status(c, at), status(c, f)), (0, 0))
    images.end()
    export(d, top)
    t.equal("a submount of what shows none", status(c, at), r.STALE)
    os.rmdir(sub)


def test_made_up(t, d, c):
    export(d, d.exports["e"], ",crossmnt")
    root = bytearray(d.root(c, "e"))
    for byte in (4, 8, 16, len(root) - 1):
        bad = bytearray(root)
        bad[byte] ^= 1
        t.equal(f"byte {byte} is another", status(c, bytes(bad)), r.STALE)
    t.equal("another version", status(c, bytes([1]) + bytes(root[1:])), r.BADHANDLE)


def main():
    mounts.own_namespace()
    t = Count()
    with Daemon({"e": OPTIONS}) as d:
        with d.connect() as c:
            test_narrowed(t, d, c)
            test_replaced_directory(t, d, c)
            test_made_up(t, d, c)
        for kind in ("ext4", "xfs", "btrfs"):
            images = Images(d, kind)
            why = images.why or images.mount(0, d.exports["e"])
            if why:
                t.skip(kind, why)
                continue
            with d.connect() as c:
                test_replaced_file_system(t, d, c, kind, images)
            test_remounted(t, d, kind, images)
            images.end()
            if kind == "ext4":
                with d.connect() as c:
                    test_submount(t, d, c, images)
        t.equal("it stops", d.stop()[0], 0)
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    return 1 if t.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
