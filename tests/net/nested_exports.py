#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Exports within exports: which line governs a child, for each kind of child, option, version of NFS and way to its handle.

The parent is read-write, the child's line read-only. So a file made in what a client reaches tells by whose line it got there, and
what is on the server's disk tells whether it was made beneath a mount. What is expected is written from exports(5): a child with a
line for the host is governed by that line. NFSv2 and 3 enter a child that is mounted if the parent has crossmnt or the child has
nohide, NFSv4 always. A host without a line for the child has what the parent gives: the directory itself, with crossmnt what is
mounted there, else the covered directory, in which nothing is made.
"""
import itertools
import os

import mounts
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon, finish, result
from nfs2 import Client as Client2

US, OTHER = "127.0.0.1", "192.0.2.1"
ACCES, ROFS, STALE = 13, 30, 70
KINDS = ("plain", "bind", "tmpfs")
names = (f"made{i}".encode() for i in itertools.count())


class Place:
    """A child directory of one kind, and who has which line."""

    def __init__(self, d, kind, crossmnt, child):
        self.d, self.kind, self.crossmnt, self.child = d, kind, crossmnt, child
        self.parent = d.exports["e"]
        self.path = f"{self.parent}/{kind}"

    def lines(self):
        options = "rw,insecure,no_root_squash" + (",crossmnt" if self.crossmnt else "")
        yield f"{self.parent} {US}({options})"
        if self.child:
            host, nohide = self.child
            yield f"{self.path} {host}(ro,insecure,no_root_squash{',nohide' if nohide else ''},fsid=77)"

    def expected(self, version, by_mnt=False):
        mounted = self.kind != "plain"
        if self.child and self.child[0] == US:
            enters = version == 4 or by_mnt or not mounted or self.crossmnt or self.child[1]
            return "child" if enters else "covered"
        if mounted and not self.crossmnt:
            return "refused" if by_mnt else "covered"
        return "parent"

    def __str__(self):
        child = f"{'our' if self.child[0] == US else 'another host'}'s{', nohide' if self.child[1] else ''}" if self.child else "none"
        return f"{self.kind}, parent{' crossmnt' if self.crossmnt else ''}, child's line {child}"


def verdict(place, status, name):
    """Whose line let a file be made, by the answer and by what is on the disk."""
    there = os.path.exists(os.path.join(place.path.encode(), name))
    if status == 0:
        return "parent" if there else "beneath the mount"
    return {ROFS: "child", ACCES: "covered"}.get(status, f"status {status}")


def by_lookup3(place, c):
    root = c.mnt(place.parent)[1]
    res = c.nfs(r.LOOKUP, r.diropargs(root, place.kind.encode()))
    return make3(place, c, res["fh"]) if res["status"] == 0 else f"LOOKUP {res['status']}"


def make3(place, c, fh):
    name = next(names)
    return verdict(place, c.nfs(r.CREATE, r.create_args(fh, name, attrs=r.sattr(mode=0o644)))["status"], name)


def by_listing3(place, c):
    """A listing shows no handle of what LOOKUP would exchange for another."""
    root = c.mnt(place.parent)[1]
    entries = c.nfs(r.READDIRPLUS, r.readdirplus_args(root))["entries"]
    fh = next(e["fh"] for e in entries if e["name"] == place.kind.encode())
    return make3(place, c, fh) if fh else None


def by_mnt3(place, c):
    status, fh, _ = c.mnt(place.path)
    return make3(place, c, fh) if status == 0 else {ACCES: "refused"}.get(status, f"MNT {status}")


def by_lookup2(place, c):
    two = Client2(c)
    root = c.mnt(place.parent, vers=1)[1]
    fh, _ = two.lookup(root, place.kind.encode())
    if isinstance(fh, int):
        return f"LOOKUP {fh}"
    name = next(names)
    made, _ = two.create(fh, name)
    return verdict(place, made if isinstance(made, int) else 0, name)


def by_lookup4(place, four):
    name = next(names)
    ops = [n4.lookup(n) for n in place.path.strip("/").split("/")]
    res = four.last((n4.PUTROOTFH, b""), *ops, (n4.CREATE, r.u32(2) + r.name(name) + r.u32(0) + r.u32(0)))
    if res["op"] != n4.CREATE:
        return f"op {res['op']} {res['status']}"
    return verdict(place, res["status"], name)


def renamed_away(place, c):
    """The root of a child cannot be renamed out of its line."""
    root = c.mnt(place.parent)[1]
    status = c.nfs(r.RENAME, r.rename_args(root, place.kind.encode(), root, b"elsewhere"))["status"]
    if status == 0:
        os.rename(place.parent + "/elsewhere", place.path)
    return status == 0


def check_place(t, place, c, four):
    ours = place.child and place.child[0] == US
    t.equal(f"NFSv3 LOOKUP: {place}", by_lookup3(place, c), place.expected(3))
    t.equal(f"NFSv2 LOOKUP: {place}", by_lookup2(place, c), place.expected(2))
    t.equal(f"NFSv4 LOOKUP: {place}", by_lookup4(place, four), place.expected(4))
    t.equal(f"NFSv3 MNT: {place}", by_mnt3(place, c), place.expected(3, by_mnt=True))
    listed = by_listing3(place, c)
    t.check(f"NFSv3 READDIRPLUS: {place}", listed in (None, place.expected(3)), listed)
    if ours:
        t.check(f"NFSv3 RENAME: {place}", not renamed_away(place, c))


def check_kept(t, d, kind, four):
    """A handle from before the child had a line. That of a plain directory goes on with the parent's options, as with the kernel's
    server, whose handles name the file system."""
    before, after = Place(d, kind, True, None), Place(d, kind, True, (US, False))
    d.write_exports(before.lines())
    d.reload()
    with d.connect() as c:
        root = c.mnt(before.parent)[1]
        fh = c.nfs(r.LOOKUP, r.diropargs(root, kind.encode()))["fh"]
        t.equal(f"{kind}: without a line the parent's counts", make3(before, c, fh), "parent")
        t.equal(f"{kind}: NFSv4 likewise", by_lookup4(before, four), "parent")
        fh4 = four.path(before.path)
        d.write_exports(after.lines())
        d.reload()
        want = "parent" if kind == "plain" else f"status {STALE}"
        t.equal(f"{kind}: NFSv3 handle from before", make3(after, c, fh), want)
        want = n4.OK if kind == "plain" else STALE
        t.equal(f"{kind}: NFSv4 handle from before", four.last(n4.putfh(fh4), n4.getattr_op())["status"], want)


def main():
    mounts.own_namespace()
    t = Count()
    d = Daemon({"e": "rw,insecure,no_root_squash"}, {"nfs2.enabled": "yes"}, hosts=(US,))
    for kind in KINDS:
        os.makedirs(f"{d.exports['e']}/{kind}", exist_ok=True)
    os.mkdir(d.top + "/elsewhere")
    mounts.must("mount", "--bind", d.top + "/elsewhere", d.exports["e"] + "/bind")
    mounts.must("mount", "-t", "tmpfs", "-o", "size=4m", "ringnfs-test", d.exports["e"] + "/tmpfs")
    with d:
        four = n4.Client(d.port, "nested")
        four.register()
        four.reclaim_complete()
        children = [(host, nohide) for host in (US, OTHER) for nohide in (False, True)] + [None]
        for kind, crossmnt, child in itertools.product(KINDS, (False, True), children):
            place = Place(d, kind, crossmnt, child)
            d.write_exports(place.lines())
            t.check(f"reload: {place}", "reload failed" not in d.reload())
            with d.connect() as c:
                check_place(t, place, c, four)
        for kind in KINDS:
            check_kept(t, d, kind, four)
        four.close()
        finish(t, d)
    result(t)


if __name__ == "__main__":
    main()
