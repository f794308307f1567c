#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""File systems that are mounted and unmounted under exports while the daemon serves them."""
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import mounts
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon

OPTIONS = "rw,insecure,no_root_squash"
SOON = 60  # seconds: it takes a tenth; on a busy machine under a sanitizer it has taken more than five
SLAVE = "--in-slave-namespace"
ROFS = 30


def until(what, seconds=SOON):
    """Seconds until what() is true, or None."""
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        if what():
            return time.monotonic() - begin
        time.sleep(0.01)
    return None


def status(c, fh):
    return c.nfs(r.GETATTR, r.opaque(fh))["status"]


def create(c, fh, name):
    return c.nfs(r.CREATE, r.create_args(fh, name, attrs=r.sattr(mode=0o644)))


def line(d, options="", name="e"):
    return f"{d.exports[name]} 127.0.0.1({OPTIONS}{options})"


def can_mount(c, d):
    return c.mnt(d.exports["e"])[0] == 0


def client4(d, owner):
    c = n4.Client(d.port, owner)
    c.register()
    c.reclaim_complete()
    return c


def tmpfs(at):
    mounts.must("mount", "-t", "tmpfs", "-o", "size=4m", "ringnfs-test", at)


def test_late_mount(t, d, c):
    top = d.exports["e"]
    old = d.root(c, "e")
    below = os.open(top, os.O_PATH)
    names = iter(f"f{i}".encode() for i in range(10 ** 6))
    tmpfs(top)
    with open(top + "/within", "w") as f:
        f.write("x")
    took = until(lambda: create(c, old, next(names))["status"] == r.STALE)
    t.check("a mount over the export ends the old root's handle", took is not None)
    print(f"# nothing was written underneath any more after {took} s")
    made = len(os.listdir(f"/proc/self/fd/{below}"))
    t.equal("later CREATEs", [create(c, old, next(names))["status"] for _ in range(20)], [r.STALE] * 20)
    t.equal("make nothing underneath", len(os.listdir(f"/proc/self/fd/{below}")), made)
    new = d.root(c, "e")
    t.equal("what is mounted is served", c.nfs(r.LOOKUP, r.diropargs(new, b"within"))["status"], 0)
    four = client4(d, "late")
    fh = four.path(top)
    t.equal("and by NFSv4", four.last(n4.putfh(fh), n4.lookup(b"within"))["status"], 0)
    four.close()
    t.check("the log says so", "another file system is mounted there" in d.read_log())
    busy = mounts.umount(top)
    t.check("umount is refused", busy.returncode != 0 and "busy" in busy.stderr, busy)
    t.equal("and changes nothing", status(c, new), 0)
    os.close(below)
    return new


def test_lazy_umount(t, d, c, root):
    top = d.exports["e"]
    mounts.must("umount", "-l", top)
    t.check("umount -l ends the service", until(lambda: status(c, root) == r.STALE) is not None)
    t.check("what was covered is not served for it", not can_mount(c, d))
    t.check("the log says so", d.wait_log("was unmounted: not served"))
    tmpfs(top)
    t.check("another mount is served", until(lambda: can_mount(c, d)) is not None)
    t.check("the log says so", d.wait_log("mounted, served from now on"))
    t.equal("the old handle", status(c, root), r.STALE)
    d.write_exports([line(d, name="other")])
    d.reload()
    t.equal("without the line umount is free", mounts.umount(top).returncode, 0)
    tmpfs(top)
    d.write_exports([line(d)])
    d.reload()
    mounts.must("umount", "-l", top)
    t.check("umount -l once more", until(lambda: not can_mount(c, d)) is not None)
    d.reload()
    t.check("a reload takes the directory as it is", can_mount(c, d))


def holders(d, root4):
    """A client that has a file open and locked."""
    four = client4(d, "holder")
    res, fh = four.open(root4, "held", create=True)
    four.lock(fh, res["stateid"])
    return four, fh, res["stateid"]


def test_let_go(t, d, c, image):
    """umount -l closes the files that clients have open, so that the disk can be removed."""
    top = d.exports["e"]
    if why := mounts.mount_image(image, top):
        t.skip("a disk", why)
        return
    t.check("a disk is served", until(lambda: d.root(c, "e") and "lost+found" in os.listdir(top)) is not None)
    until(lambda: c.nfs(r.LOOKUP, r.diropargs(d.root(c, "e"), b"lost+found"))["status"] == 0)
    root = d.root(c, "e")
    four, fh, stateid = holders(d, client4(d, "path").path(top))
    mounts.must("umount", "-l", top)
    t.check("its service ends", until(lambda: status(c, root) == r.STALE) is not None)
    t.check("the disk is let go of", until(lambda: image not in mounts.must("losetup", "-l")) is not None)
    t.equal("the holder's handle", four.last(n4.putfh(fh), n4.read(stateid, 0, 10))["status"], r.STALE)
    t.check("the log says what was taken away", "revoked" in d.read_log())
    mounts.mount_image(image, top)
    t.check("mounted again, its handles are good again", until(lambda: status(c, root) == 0) is not None)
    mounts.must("umount", "-l", top)
    until(lambda: status(c, root) == r.STALE)
    four.close()


def test_mp(t, d, c, image):
    top = d.exports["e"]
    d.write_exports([line(d, ",mp"), line(d, name="other")])
    d.reload()
    t.check("mp, not mounted: MNT is refused", not can_mount(c, d))
    t.check("the log says so", d.wait_log("not mounted .option mp."))
    t.equal("the other export", c.mnt(d.exports["other"])[0], 0)
    if why := mounts.mount_image(image, top):
        t.skip("a disk", why)
        return
    t.check("mp, mounted: it is served", until(lambda: can_mount(c, d)) is not None)
    root = d.root(c, "e")
    t.equal("what is mounted, not what is below", c.nfs(r.LOOKUP, r.diropargs(root, b"lost+found"))["status"], 0)
    busy = mounts.umount(top)
    t.check("umount is refused", busy.returncode != 0 and "busy" in busy.stderr, busy)
    four = client4(d, "mp")
    fh = four.path(top)
    mounts.must("umount", "-l", top)
    t.check("mp, its mount is gone: clients wait", until(lambda: status(c, root) == r.JUKEBOX) is not None)
    t.equal("those of NFSv4, too", four.last(n4.putfh(fh))["status"], n4.DELAY)
    t.equal("a write goes nowhere", create(c, root, b"new")["status"], r.JUKEBOX)
    t.check("MNT is refused", not can_mount(c, d))
    t.equal("nothing is underneath", [n for n in os.listdir(top) if n == "new"], [])
    t.check("the disk is let go of", until(lambda: image not in mounts.must("losetup", "-l")) is not None)
    mounts.mount_image(image, top)
    t.check("mounted again: clients go on", until(lambda: status(c, root) == 0) is not None)
    t.equal("those of NFSv4, too", four.last(n4.putfh(fh))["status"], 0)
    t.equal("the write that waited", create(c, root, b"new")["status"], 0)
    four.close()
    d.write_exports([line(d, name="other")])
    d.reload()
    t.equal("without the line umount is free", mounts.umount(top).returncode, 0)


def test_mp_without_path(t, d, c):
    """The exported directory lies within the missing file system."""
    top = d.exports["e"]
    inner = f"{top}/inner 127.0.0.1({OPTIONS}{{}})"
    d.write_exports([inner.format("")])
    t.check("without mp a path that is not there is an error", "reload failed" in d.reload())
    d.write_exports([inner.format(",mp=" + top), line(d, name="other")])
    t.check("with mp it is waited for", "reload failed" not in d.reload())
    d.stop()
    d.start()
    with d.connect() as c:
        t.check("also after a restart", c.mnt(top + "/inner")[0] != 0)
        t.equal("the other export", c.mnt(d.exports["other"])[0], 0)
        os.makedirs(d.top + "/elsewhere/inner", exist_ok=True)
        mounts.must("mount", "--bind", d.top + "/elsewhere", top)
        t.check("it is served when it is there", until(lambda: c.mnt(top + "/inner")[0] == 0) is not None)
        t.check("umount is refused", mounts.umount(top).returncode != 0)
        mounts.must("umount", "-l", top)
        t.check("and waited for again", until(lambda: c.mnt(top + "/inner")[0] != 0) is not None)


def test_submount(t, d, c):
    d.write_exports([line(d, ",crossmnt")])
    d.reload()
    sub = d.exports["e"] + "/sub"
    os.mkdir(sub)
    root = d.root(c, "e")

    def find():
        return c.nfs(r.LOOKUP, r.diropargs(root, b"sub"))["fh"]

    tmpfs(sub)
    first = find()
    t.equal("a submount", status(c, first), 0)
    tmpfs(sub)
    t.check("one mounted over it ends its handles", until(lambda: status(c, first) == r.STALE) is not None)
    second = find()
    t.equal("and is served", status(c, second), 0)
    mounts.must("umount", "-l", sub)
    t.check("umount -l of a submount", until(lambda: status(c, second) == r.STALE) is not None)
    t.equal("what it covered is back", status(c, first), 0)
    mounts.must("umount", "-l", sub)
    t.check("and goes", until(lambda: status(c, first) == r.STALE) is not None)
    os.rmdir(sub)


def test_remount(t, d, c):
    """Flags of the mount: the export's clone of it does not have them by itself."""
    top = d.exports["e"]
    d.write_exports([line(d, name="other")])
    d.reload()
    tmpfs(top)
    d.write_exports([line(d)])
    d.reload()
    names = iter(f"r{i}".encode() for i in range(10 ** 6))
    root = d.root(c, "e")
    four, fh, stateid = holders(d, client4(d, "remount").path(top))

    def write():
        return four.last(n4.putfh(fh), n4.write(stateid, 0, b"x"))["status"]

    def make():
        return create(c, d.root(c, "e"), next(names))["status"]

    t.equal("a write by an open file", write(), 0)
    mounts.must("mount", "-o", "remount,bind,ro", top)
    t.check("remount,bind,ro: CREATE is refused", until(lambda: make() == ROFS) is not None)
    t.equal("and a write by the file that is open", write(), ROFS)
    t.equal("GETATTR is not", status(c, root), 0)
    mounts.must("mount", "-o", "remount,bind,rw", top)
    t.check("remount,bind,rw", until(lambda: make() == 0) is not None)
    t.equal("the file that is open", write(), 0)
    mounts.must("mount", "-o", "remount,bind,ro", top)
    d.write_exports([])
    d.reload()
    d.write_exports([line(d)])
    d.reload()
    t.equal("what is opened on a read-only mount", make(), ROFS)
    mounts.must("mount", "-o", "remount,bind,rw", top)
    t.check("becomes writable", until(lambda: make() == 0) is not None)
    t.equal("its handles stay good", status(c, root), 0)
    four.close()
    d.write_exports([line(d, name="other")])
    d.reload()
    t.equal("umount", mounts.umount(top).returncode, 0)


class Silent:
    """A file system of FUSE at that path that never answers, until close()."""

    def __init__(self, at):
        self.at, self.fd, self.why = at, -1, None
        try:
            self.fd = os.open("/dev/fuse", os.O_RDWR)
        except OSError as e:
            self.why = str(e)
            return
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0"
        if mounts.libc.mount(b"ringnfs-silent", at.encode(), b"fuse", 0, options.encode()):
            self.why = "FUSE cannot be mounted"

    def close(self):
        """All who wait are told that it is gone."""
        if self.fd >= 0:
            os.close(self.fd)
            mounts.umount(self.at, "-l")


def test_silent(t, d, c):
    """A file system that does not answer is left alone: mounts and reloads go on beside it."""
    top, other = d.exports["e"], d.exports["other"]
    d.write_exports([line(d), line(d, name="other")])
    d.reload()
    old, there = d.root(c, "e"), d.root(c, "other")
    silent = Silent(other)
    if silent.why:
        t.skip("a silent file system", silent.why)
        silent.close()
        return
    try:
        tmpfs(top)
        t.check("a mount beside a silent one is followed", until(lambda: status(c, old) == r.STALE) is not None)
        d.write_exports([line(d, ",no_subtree_check"), line(d, name="other")])
        t.check("a reload is done", "reload failed" not in d.reload())
        t.equal("the silent one's export is as it was", status(c, there), 0)
        d.write_exports([line(d), f"{other}/new 127.0.0.1({OPTIONS})"])
        t.check("a new export there is refused", "reload failed" in d.reload())
        t.check("the log says why", "other: its file system does not answer" in d.read_log())
        d.write_exports([line(d), line(d, name="other"), *(f"{other}/{i} 127.0.0.1({OPTIONS})" for i in range(20))])
        d.stop()
        began = time.monotonic()
        d.start()
        took = time.monotonic() - began
        t.check("a start waits for all exports of a silent file system at once", took < 20, f"{took:.1f} s")
        with d.connect() as again:
            t.equal("a start goes without it", again.mnt(top)[0], 0)
            t.check("which is not served", again.mnt(other)[0] != 0)
    finally:
        silent.close()
    with d.connect() as again:
        t.check("it is served when it is gone", until(lambda: again.mnt(other)[0] == 0) is not None)
    d.write_exports([line(d, name="other")])
    d.reload()
    t.equal("umount", mounts.umount(top).returncode, 0)


def test_silent_nested(t, d, c):
    """An export whose path leads over a file system that does not answer: the same name in another directory is found."""
    top = d.exports["e"]
    for name in ("silent", "near/g"):
        os.makedirs(f"{top}/{name}", exist_ok=True)
    tmpfs(top + "/silent")
    os.mkdir(top + "/silent/g")
    d.write_exports([line(d, ",crossmnt"), f"{top}/silent/g 127.0.0.1({OPTIONS})"])
    d.reload()
    near = c.nfs(r.LOOKUP, r.diropargs(d.root(c, "e"), b"near"))["fh"]
    silent = Silent(top + "/silent")
    if silent.why:
        t.skip("an export beyond a silent mount", silent.why)
    else:
        with d.connect(timeout=20) as goes_on:
            for _ in range(5):
                try:
                    got = goes_on.nfs(r.LOOKUP, r.diropargs(near, b"g"))["status"]
                except TimeoutError:
                    got = "no answer"
                    break
                time.sleep(0.1)
            t.equal("LOOKUP of the nested export's name elsewhere", got, 0)
    silent.close()
    mounts.umount(top + "/silent", "-l")


def test_silent_submount(t, d, c):
    """While a mount below an export is looked for that does not answer, calls beside it go on."""
    top = d.exports["e"]
    d.write_exports([line(d, ",crossmnt")])
    d.reload()
    root = d.root(c, "e")
    for name in ("silent", "sub", "beside"):
        os.makedirs(f"{top}/{name}", exist_ok=True)
    tmpfs(top + "/sub")
    beside = c.nfs(r.LOOKUP, r.diropargs(root, b"beside"))["fh"]
    create(c, beside, b"f")
    silent = Silent(top + "/silent")
    if silent.why:
        t.skip("a silent submount", silent.why)
    else:
        with d.connect() as waits, d.connect(timeout=20) as goes_on:
            thread = threading.Thread(target=waits.nfs, args=(r.LOOKUP, r.diropargs(root, b"silent")))
            thread.start()
            for _ in range(5):
                try:
                    status3 = goes_on.nfs(r.LOOKUP, r.diropargs(beside, b"f"))["status"]
                except TimeoutError:
                    status3 = "no answer"
                    break
                time.sleep(0.1)
            t.equal("LOOKUP beside a submount that does not answer", status3, 0)
            silent.close()
            thread.join()
    mounts.umount(top + "/sub", "-l")


def beneath(top):
    """A directory and a file, each with something mounted over it: descriptors of what is beneath."""
    os.mkdir(top + "/dir")
    with open(top + "/dir/under", "w"):
        pass
    for path, text in ((top + "/file", b"beneath"), (top + "/../over", b"above")):
        with open(path, "wb") as f:
            f.write(text)
    fds = os.open(top + "/dir", os.O_RDONLY), os.open(top + "/file", os.O_RDONLY)
    tmpfs(top + "/dir")
    mounts.must("mount", "--bind", top + "/../over", top + "/file")
    return fds


def test_beneath(t, d, c):
    """Without crossmnt a place where something is mounted is empty, and nothing about it is changed."""
    top = d.exports["e"]
    d.write_exports([line(d)])
    d.reload()
    root = d.root(c, "e")
    held = must_lookup(c, root, b"beside")
    directory, file = beneath(top)
    mode = os.fstat(directory).st_mode
    t.check("mounts are noticed", until(lambda: create(c, must_lookup(c, root, b"dir"), b"new")["status"] == r.ACCES))
    fh = must_lookup(c, root, b"dir")
    t.equal("names beneath are not listed", [e["name"] for e in c.nfs(r.READDIR, r.readdir_args(fh))["entries"]], [])
    t.equal("nor by READDIRPLUS", [e["name"] for e in c.nfs(r.READDIRPLUS, r.readdirplus_args(fh))["entries"]], [])
    t.equal("LOOKUP", c.nfs(r.LOOKUP, r.diropargs(fh, b"under"))["status"], r.ACCES)
    t.equal("REMOVE", c.nfs(r.REMOVE, r.diropargs(fh, b"under"))["status"], r.ACCES)
    t.equal("SETATTR", c.nfs(r.SETATTR, r.setattr_args(fh, r.sattr(mode=0o700)))["status"], r.ACCES)
    t.equal("ACCESS grants no change", c.nfs(r.ACCESS, r.access_args(fh, 0x1c))["access"], 0)
    t.equal("what is beneath the directory", (os.listdir(f"/proc/self/fd/{directory}"), os.fstat(directory).st_mode), (["under"], mode))
    fh = must_lookup(c, root, b"file")
    t.equal("READ of a file beneath", c.nfs(r.READ, r.read_args(fh, 0, 10))["status"], r.ACCES)
    t.equal("WRITE", c.nfs(r.WRITE, r.write_args(fh, 0, b"x"))["status"], r.ACCES)
    t.equal("CREATE that truncates", c.nfs(r.CREATE, r.create_args(root, b"file", attrs=r.sattr(size=0)))["status"], r.ACCES)
    four = client4(d, "beneath")
    res, _ = four.open(four.path(top), b"file")
    t.equal("OPEN", res["status"], r.ACCES)
    four.close()
    t.equal("what is beneath the file", os.pread(file, 10, 0), b"beneath")
    t.equal("RENAME into it, and a handle from before", [c.nfs(r.RENAME, r.rename_args(root, b"beside", must_lookup(c, root, b"dir"), b"x"))["status"],
                                        c.nfs(r.GETATTR, r.opaque(held))["status"]], [r.ACCES, 0])
    for path in ("/dir", "/file"):
        mounts.umount(top + path, "-l")
    t.check("unmounted: it is there again", until(lambda: c.nfs(r.LOOKUP, r.diropargs(must_lookup(c, root, b"dir"), b"under"))["status"] == 0))
    os.close(directory)
    os.close(file)


def must_lookup(c, fh, name):
    return c.nfs(r.LOOKUP, r.diropargs(fh, name))["fh"]


def test_storm(t, d, c):
    """Mounts elsewhere, as where containers start: calls go on, and nothing is reopened."""
    d.write_exports([line(d)])
    d.reload()
    root = d.root(c, "e")
    before = d.read_log()
    at = d.top + "/elsewhere"
    os.mkdir(at)
    stop = threading.Event()

    def mount_and_unmount():
        while not stop.is_set():
            tmpfs(at)
            mounts.must("umount", at)

    thread = threading.Thread(target=mount_and_unmount)
    thread.start()
    end = time.monotonic() + 1
    bad = calls = 0
    while time.monotonic() < end:
        bad += status(c, root) != 0
        calls += 1
    stop.set()
    thread.join()
    print(f"# {calls} calls beside mounts elsewhere")
    t.equal("calls that failed", bad, 0)
    t.equal("the log has nothing to say", d.read_log(), before)


def test_moved(t, d, c):
    """A directory that is renamed is served where it is until a reload, and the log says so."""
    top = d.exports["e"]
    root = d.root(c, "e")
    os.rename(top, top + ".old")
    os.mkdir(top)
    t.check("the log says so", d.wait_log(f"export {top}: its directory was moved, and is served where it is now"))
    at = d.top + "/elsewhere"
    tmpfs(at)
    mounts.must("umount", at)
    time.sleep(0.5)
    t.equal("it is served", status(c, root), 0)
    os.rmdir(top)
    os.rename(top + ".old", top)
    t.check("back again", d.wait_log(f"export {top}: its directory is at its path again"))
    os.rename(top, top + ".old")
    os.mkdir(top)
    d.reload()
    t.equal("a reload serves what is at the path", status(c, root), r.STALE)
    shutil.rmtree(top + ".old")


def within(c, d, name):
    """True if the export has that entry."""
    status, root = c.mnt(d.exports["e"])[:2]
    return status == 0 and c.nfs(r.LOOKUP, r.diropargs(root, name))["status"] == 0


def remake(path, name):
    """As by rsync --delete, or when a snapshot is put in the place of another: a new directory has the path."""
    shutil.rmtree(path)
    os.mkdir(path)
    with open(os.path.join(path, name), "w") as f:
        f.write("x")


def test_removed(t, d, c):
    """A directory that was removed and made again is served, without a reload; nothing but that by another way."""
    top = d.exports["e"]
    d.reload()
    for name in ("first", "second", "third"):  # its inode number may be that of the former
        root = d.root(c, "e")
        remake(top, name)
        t.check(f"{name}: the new directory is served", until(lambda: within(c, d, name)) is not None, d.read_log()[-600:])
        t.equal("and handles of the former are stale", status(c, root), r.STALE)
    t.check("the log says so", f"export {top}: its directory was removed and made again" in d.read_log())
    with open(d.top + "/secret", "w") as f:
        f.write("x")
    since = len(d.read_log())  # the server may have looked between a removal and a creation above
    shutil.rmtree(top)
    t.check("the log says that it is not there", d.wait_log(f"export {top}: its directory was removed: not served", since))
    t.check("nor is it to be mounted", until(lambda: not can_mount(c, d)) is not None)
    before = d.read_log()
    os.symlink(d.top, top)
    t.check("a link in its place is not followed", d.wait_log(f"export {top}: its directory was removed, and its path leads over another link"))
    t.check("whatever happens to mounts", mount_events(d) and not can_mount(c, d))
    t.equal("which is said once", d.read_log().count("leads over another link"), before.count("leads over another link") + 1)
    os.unlink(top)
    os.mkdir(top)
    d.reload()
    t.check("a reload serves it again", can_mount(c, d))
    shutil.rmtree(top)
    until(lambda: not can_mount(c, d))
    os.mkdir(top)
    t.check("made again later, too", until(lambda: can_mount(c, d)) is not None)


def test_replaced_file(t, d, c):
    """A file that is exported, and over which another one is renamed, as an image of a host that boots from the net."""
    image = d.top + "/image"

    def write(path, text):
        with open(path, "w") as f:
            f.write(text)

    def text():
        code, root = c.mnt(image)[:2]
        return c.nfs(r.READ, r.read_args(root, 0, 100)).get("data") if code == 0 else None

    write(image, "old")
    d.write_exports([line(d), f"{image} 127.0.0.1({OPTIONS})"])
    d.reload()
    t.equal("an exported file", text(), b"old")
    write(image + ".new", "new")
    os.rename(image + ".new", image)
    t.check("the one that was renamed over it is served", until(lambda: text() == b"new") is not None, text())
    d.write_exports([line(d), line(d, name="other")])
    d.reload()


def mount_events(d):
    at = d.top + "/elsewhere"
    for _ in range(2):
        tmpfs(at)
        mounts.must("umount", at)
        time.sleep(0.3)
    return True


def test_chroot(t):
    """In a chroot that is no mount, the table lacks the mount that exports are on. They stay as they are whatever is mounted."""
    with tempfile.TemporaryDirectory(prefix="ringnfs-chroot-") as jail:
        binds = [p for p in ("usr", "bin", "sbin", "lib", "lib64", "etc", "proc", "dev", "tmp", "run", "var", "sys")
                 if os.path.isdir("/" + p)]
        daemon = Daemon({"e": OPTIONS}, before=["chroot", jail])
        daemon.binary = os.path.realpath(daemon.binary)
        # The program, what ThreadSanitizer reads, and its folder, which may be elsewhere than in /tmp.
        binds += [os.path.dirname(daemon.binary)[1:], os.path.dirname(os.path.abspath(__file__))[1:], tempfile.gettempdir()[1:]]
        bound = []
        try:
            for p in binds:
                os.makedirs(f"{jail}/{p}", exist_ok=True)
                mounts.must("mount", "--rbind", "/" + p, f"{jail}/{p}")
                bound.append(f"{jail}/{p}")
            os.makedirs(f"{jail}/srv/e")
            with daemon as d:
                d.write_exports([f"/srv/e 127.0.0.1({OPTIONS})"])
                d.reload()
                with d.connect() as c:
                    code, root = c.mnt("/srv/e")[:2]
                    t.equal("an export in a chroot", code, 0)
                    os.mkdir(d.top + "/elsewhere")
                    before = d.read_log()
                    mount_events(d)
                    t.equal("the log has nothing to say", d.read_log(), before)
                    t.equal("its root", status(c, root), 0)
                d.stop()
        finally:
            for p in reversed(bound):
                mounts.must("umount", "-l", p)


def everything(t, d):
    image = os.path.join(d.top, "disk.img")
    why = mounts.make_image(image)
    with d.connect() as c:
        d.write_exports([line(d), line(d, name="other")])
        d.reload()
        root = test_late_mount(t, d, c)
        test_lazy_umount(t, d, c, root)
        if why:
            t.skip("disks", why)
        else:
            test_let_go(t, d, c, image)
            test_mp(t, d, c, image)
        test_submount(t, d, c)
        if SLAVE not in sys.argv:  # flags of a mount do not propagate
            test_remount(t, d, c)
        test_storm(t, d, c)
        test_moved(t, d, c)
        test_removed(t, d, c)
        test_replaced_file(t, d, c)
        test_mp_without_path(t, d, c)
    with d.connect() as c:
        test_silent(t, d, c)
    with d.connect() as c:
        test_silent_submount(t, d, c)
        test_silent_nested(t, d, c)
        test_beneath(t, d, c)
    t.equal("it stops", d.stop()[0], 0)


def main():
    slave = SLAVE in sys.argv
    mounts.own_namespace(mounts.MS_SHARED if slave else mounts.MS_PRIVATE)
    t = Count()
    # A mount namespace as with systemd's ProtectKernelTunables=: mounts propagate in and not out.
    before = ["unshare", "-m", "--propagation", "slave"] if slave else []
    with Daemon({"e": OPTIONS, "other": OPTIONS}, before=before) as d:
        everything(t, d)
    if not slave:
        test_chroot(t)
        res = subprocess.run([sys.argv[0], SLAVE], capture_output=True, text=True)
        print("# in a slave namespace\n" + res.stdout + res.stderr)
        t.equal("the same in a slave namespace", res.returncode, 0)
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    return 1 if t.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
