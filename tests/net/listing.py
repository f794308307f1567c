#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Listings with handles and attributes, while local processes change the directory: whatever the server remembers of an inode, each
entry shows what a LOOKUP of its name shows. On the file systems whose handles the server knows how to make."""
import os
import re
import shutil
import signal
import subprocess
import time

import harness
import mounts
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon

OPTIONS = "rw,insecure,no_root_squash,no_subtree_check"
FILES = 120
READDIR4, GETATTR4 = 26, 9
FILEHANDLE, FILEID, RDATTR_ERROR = 19, 20, 11
WANTED = 1 << FILEHANDLE | 1 << FILEID | 1 << RDATTR_ERROR
USER = r.auth_sys(1000, 1000)


def settle():
    """Handles of inodes that have just changed are not remembered."""
    time.sleep(0.1)


def fill(top, numbers, text):
    for i in numbers:
        with open(f"{top}/f{i}", "w") as f:
            f.write(text)


def readdir4(x, res):
    res.update(verf=x.take(8), entries=[])
    while x.flag():
        e = {"cookie": x.u64(), "name": x.opaque(), "mask": n4._bitmap(x)}
        attrs = r.In(x.opaque())
        bits = e["mask"][0]
        e["error"] = attrs.u32() if bits >> RDATTR_ERROR & 1 else 0
        e["fh"] = attrs.opaque() if bits >> FILEHANDLE & 1 else None
        e["fileid"] = attrs.u64() if bits >> FILEID & 1 else None
        res["entries"].append(e)
    res["eof"] = x.flag()


class Lister:
    """One directory of the daemon, by both versions."""

    def __init__(self, d, path):
        self.d, self.path = d, path
        self.conn = d.connect()
        self.fh = d.root(self.conn, "e")
        self.four = n4.Client(d.port, "listing")
        self.four.register()
        self.fh4 = self.four.path(path)

    def close(self):
        self.conn.close()
        self.four.close()

    def plus(self, cred=r.ROOT, fh=None):
        got, cookie = {}, 0
        while True:
            res = self.conn.nfs(r.READDIRPLUS, r.readdirplus_args(fh or self.fh, cookie), cred=cred)
            if res["status"]:
                return res["status"]
            for e in res["entries"]:
                got[e["name"]] = e
                cookie = e["cookie"]
            if res["eof"]:
                return got

    def four_list(self):
        got, cookie = {}, 0
        while True:
            args = r.u64(cookie) + bytes(8) + r.u32(8192) + r.u32(32768) + r.u32(1) + r.u32(WANTED)
            res = self.four.last(n4.putfh(self.fh4), (READDIR4, args))
            if res["status"]:
                raise SystemExit(f"READDIR: {res}")
            for e in res["entries"]:
                got[e["name"]] = e
                cookie = e["cookie"]
            if res["eof"]:
                return got

    def counters(self):
        """Handles known, and handles read."""
        since = len(self.d.read_log())
        self.d.process.send_signal(signal.SIGUSR1)
        self.d.wait_log(r"listings: \d+ handles known, \d+ read", since)
        return [int(n) for n in re.search(r"listings: (\d+) handles known, (\d+) read", self.d.read_log()[since:]).groups()]


def same_attr(a, b):
    """Of two looks at one file; the access time may have been set between them."""
    return {k: v for k, v in a.items() if k != "atime"} == {k: v for k, v in b.items() if k != "atime"}


def compare(t, what, at):
    """Each entry against a LOOKUP of its name, and the handle against the local file. Writing back what is dirty changes the blocks that a file
    uses, so that is done before."""
    subprocess.run(["sync", "-f", at.path], check=True)
    plus, four = at.plus(), at.four_list()
    names = {n.encode() for n in os.listdir(at.path)}
    t.equal(f"{what}: names", set(plus) - {b".", b".."}, names)
    t.equal(f"{what}: names by NFSv4", set(four), names)
    wrong = []
    for name in names:
        found, e = at.conn.nfs(r.LOOKUP, r.diropargs(at.fh, name)), plus[name]
        if found["status"]:
            if e["fh"] is not None or e["attr"] is not None:
                wrong.append((name, "shown, but not found", found["status"]))
            continue
        local = os.lstat(os.path.join(at.path, name.decode()))
        if e["fh"] != found["fh"] or not same_attr(e["attr"], found["attr"]):
            wrong.append((name, e, found))
        elif (e["attr"]["fileid"], e["attr"]["size"]) != (local.st_ino, local.st_size):
            wrong.append((name, e, local))
        elif at.conn.nfs(r.GETATTR, r.opaque(e["fh"]))["status"]:
            wrong.append((name, "stale"))
        by_four = at.four.last(n4.putfh(at.fh4), n4.lookup(name), (n4.GETFH, b""))
        if four[name]["fh"] != by_four.get("fh") or four[name]["fileid"] != found["attr"]["fileid"]:
            wrong.append((name, "NFSv4", four[name], by_four))
    t.check(f"{what}: each entry is as LOOKUP shows it", not wrong, wrong[:2])


def change(top):
    """Names change hands, and files change."""
    os.rename(f"{top}/f0", f"{top}/aside")
    os.rename(f"{top}/f1", f"{top}/f0")
    os.rename(f"{top}/aside", f"{top}/f1")
    fill(top, [1000], "a longer text")
    os.rename(f"{top}/f1000", f"{top}/f2")
    os.unlink(f"{top}/f3")
    os.link(f"{top}/f4", f"{top}/f3")
    os.unlink(f"{top}/f5")
    os.mkdir(f"{top}/f5")
    os.unlink(f"{top}/f6")
    os.symlink("f7", f"{top}/f6")
    with open(f"{top}/f8", "a") as f:
        f.write("more")
    os.chmod(f"{top}/f9", 0o600)


def test_numbers_again(t, at):
    """Files get the inode numbers of files that the server has known. It has opened none of these, so they are gone at once."""
    os.mkdir(at.path + "/rest")
    fill(at.path, range(40), "text")
    fill(at.path + "/rest", range(os.statvfs(at.path).f_ffree - 5), "")
    before = {os.stat(f"{at.path}/f{i}").st_ino for i in range(40)}
    settle()
    at.plus(), at.four_list()
    for i in range(40):
        os.unlink(f"{at.path}/f{i}")
    fill(at.path, range(40), "of another file")
    used_again = len(before & {os.stat(f"{at.path}/f{i}").st_ino for i in range(40)})
    t.check("ext4 uses numbers again", used_again > 20, f"{used_again} of 40")
    compare(t, "numbers used again", at)
    shutil.rmtree(at.path + "/rest")
    for i in range(40):
        os.unlink(f"{at.path}/f{i}")


def test_changes(t, kind, at):
    fill(at.path, range(FILES), "text")
    settle()
    compare(t, f"{kind}, first", at)
    before = at.counters()
    compare(t, f"{kind}, warm", at)
    known, read = (b - a for a, b in zip(before, at.counters()))
    t.check(f"{kind}: handles are known", known >= 2 * FILES * 9 // 10, f"{known} known, {read} read")
    change(at.path)
    compare(t, f"{kind}, after changes", at)
    settle()
    compare(t, f"{kind}, later", at)
    compare(t, f"{kind}, later and warm", at)


def test_storm(t, kind, at):
    """A local process replaces files while both versions list. A handle may be stale by then, but no entry shows another file's."""
    script = ('import os, sys\nn = 0\nwhile True:\n    n += 1\n    p = "%s/s%%d" %% (n %% 20)\n    open(p + ".new", "w").close()\n'
              '    os.rename(p + ".new", p)\n    if n %% 3 == 0: os.unlink(p)\n') % at.path
    with subprocess.Popen(["python3", "-c", script]) as local:
        wrong = []
        for _ in range(40):
            for e in at.plus().values():
                if e["fh"] is None or e["name"] in (b".", b".."):
                    continue
                res = at.conn.nfs(r.GETATTR, r.opaque(e["fh"]))
                if res["status"] not in (0, r.STALE):
                    wrong.append((e["name"], res))
                elif res["status"] == 0 and res["attr"]["fileid"] != e["attr"]["fileid"]:
                    wrong.append((e, res))
        local.kill()
    t.check(f"{kind}: handle and attributes are of one file", not wrong, wrong[:2])
    settle()
    compare(t, f"{kind}, after the storm", at)


def test_users(t, kind, at):
    for mode, what in ((0o700, "closed"), (0o744, "readable only")):
        path = f"{at.path}/dir{mode:o}"
        os.mkdir(path)
        os.chmod(path, mode)
        fill(path, range(10), "secret")
        settle()
        fh = at.conn.nfs(r.LOOKUP, r.diropargs(at.fh, os.path.basename(path).encode()))["fh"]
        for _ in range(2):
            t.equal(f"{kind}, {what}: root sees all", sum(e["fh"] is not None for e in at.plus(fh=fh).values()), 12)
        got = at.plus(USER, fh)
        if mode == 0o700:
            t.equal(f"{kind}, {what}: a user sees", got, r.ACCES)
            continue
        shown = [n for n, e in got.items() if n not in (b".", b"..") and (e["fh"] or e["attr"])]
        t.equal(f"{kind}, {what}: a user sees the names alone", (len(got), shown), (12, []))


def test_mounted_over(t, kind, at):
    """A directory that was known has something mounted on it, which is not exported."""
    os.mkdir(f"{at.path}/over")
    settle()
    for _ in range(2):
        t.check(f"{kind}: a directory", at.plus()[b"over"]["fh"] is not None)
    mounts.must("mount", "-t", "tmpfs", "none", f"{at.path}/over")
    e = at.plus()[b"over"]
    found = at.conn.nfs(r.LOOKUP, r.diropargs(at.fh, b"over"))
    t.equal(f"{kind}: mounted over, as LOOKUP", e["fh"], None if found["status"] else found["fh"])
    mounts.umount(f"{at.path}/over")
    t.check(f"{kind}: and again", at.plus()[b"over"]["fh"] is not None)


def test_kind(t, kind):
    d = Daemon({"e": OPTIONS})
    top = d.exports["e"]
    why = mounts.make_image(d.top + "/image", kind) or mounts.mount_image(d.top + "/image", top)
    if why:
        t.skip(kind, why)
        d.__exit__()
        return
    with d:
        at = Lister(d, top)
        if kind == "ext4":
            test_numbers_again(t, at)
        test_changes(t, kind, at)
        test_storm(t, kind, at)
        test_users(t, kind, at)
        test_mounted_over(t, kind, at)
        at.close()
        status, log = d.stop()
        t.equal(f"{kind}: exit status", status, 0)
        t.check(f"{kind}: no sanitizer report", not re.search("Sanitizer|runtime error", log))
        mounts.umount(top)


def main():
    mounts.own_namespace()
    n4.RESULTS[READDIR4] = readdir4
    t = Count()
    for kind in ("ext4", "xfs", "btrfs"):
        test_kind(t, kind)
    harness.result(t)


if __name__ == "__main__":
    main()
