#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Names of files that an NFSv4 client has open and denies others to write: other clients of any version neither remove them nor put
something in their place (RFC 8881 section 18.25.4); the client itself does. A client whose lease has run out keeps no name."""
import itertools
import os
import time

import nfs2
import nfs4client as n4
import rpcclient as r
from delegations import LEASE, SETTINGS, new_client
from harness import Count, Daemon, finish, result

FILE_OPEN = 10046
names = (f"n{i}" for i in itertools.count())


class Changers:
    """Clients of each version, as (version, remove(name), rename(old, new)), and the status by which each is refused."""

    def __init__(self, d):
        self.three, self.two = d.connect(), d.connect()
        self.root3 = self.three.mnt(d.exports["one"])[1]
        self.c2 = nfs2.Client(self.two)
        self.root2 = self.two.mnt(d.exports["one"], vers=2)[1]
        self.fours = {minor: new_client(d, f"another of 4.{minor}", minor=minor, kind=n4.Client) for minor in (0, 1, 2)}
        self.roots = {minor: c.path(d.exports["one"]) for minor, c in self.fours.items()}

    def all(self):
        for minor in self.fours:
            yield f"NFSv4.{minor}", FILE_OPEN, lambda n, m=minor: self.remove4(m, n), lambda a, b, m=minor: self.rename4(m, a, b)
        yield "NFSv3", r.ACCES, self.remove3, self.rename3
        yield "NFSv2", r.ACCES, self.remove2, self.rename2

    def remove4(self, minor, name):
        return self.fours[minor].last(n4.putfh(self.roots[minor]), (n4.REMOVE, r.name(name)))["status"]

    def rename4(self, minor, a, b):
        fh = n4.putfh(self.roots[minor])
        return self.fours[minor].last(fh, (n4.SAVEFH, b""), fh, (n4.RENAME, r.name(a) + r.name(b)))["status"]

    def remove3(self, name):
        return self.three.nfs(r.REMOVE, r.diropargs(self.root3, name.encode()))["status"]

    def rename3(self, a, b):
        return self.three.nfs(r.RENAME, r.rename_args(self.root3, a.encode(), self.root3, b.encode()))["status"]

    def remove2(self, name):
        return self.c2.status(nfs2.REMOVE, nfs2.dirop(self.root2, name))

    def rename2(self, a, b):
        return self.c2.status(nfs2.RENAME, nfs2.dirop(self.root2, a) + nfs2.dirop(self.root2, b))


def test_denied(t, d, holder, changers):
    top = d.exports["one"]
    root = holder.path(top)
    for deny in range(4):
        for version, refused, remove, rename in changers.all():
            want = refused if deny & n4.SHARE_WRITE else 0
            what = f"open with deny {deny}, {version}"
            for change in ("remove", "rename over"):
                name, other = next(names), next(names)
                open(f"{top}/{other}", "w").close()
                res, file = holder.open(root, name.encode(), create=True, deny=deny)
                t.equal(f"OPEN with deny {deny}", res["status"], 0)
                inode = os.stat(f"{top}/{name}").st_ino
                t.equal(f"{change}, {what}", remove(name) if change == "remove" else rename(other, name), want)
                if want:
                    t.equal(f"{change}, {what}: the name is kept", os.stat(f"{top}/{name}").st_ino, inode)
                    t.equal(f"it is moved all the same, {version}", rename(name, name + "-moved"), 0)
                    t.equal(f"and moved back, {version}", rename(name + "-moved", name), 0)
                holder.close_file(file, res["stateid"])
                if want:
                    t.equal(f"{change}, after CLOSE, {version}", remove(name) if change == "remove" else rename(other, name), 0)


def test_own(t, d, holder):
    top = d.exports["one"]
    root, name = holder.path(top), next(names)
    res, file = holder.open(root, name.encode(), create=True, deny=n4.SHARE_BOTH)
    t.equal("REMOVE of a client's own", holder.last(n4.putfh(root), (n4.REMOVE, r.name(name)))["status"], 0)
    holder.close_file(file, res["stateid"])


def test_expired(t, d, changers):
    """Silent clients give way, all by one call."""
    top = d.exports["one"]
    silent = [new_client(d, f"silent {i}", kind=n4.Client) for i in range(3)]
    kept = {}
    for version, _, remove, rename in changers.all():
        for change in ("remove", "rename over"):
            kept[version, change] = name, other, remove, rename = next(names), next(names), remove, rename
            open(f"{top}/{other}", "w").close()
            for i, c in enumerate(silent):
                res, _ = c.open(c.path(top), name.encode(), create=i == 0, access=n4.SHARE_READ, deny=n4.SHARE_WRITE)
                t.equal("OPEN", res["status"], 0)
    time.sleep(LEASE + 1)
    for (version, change), (name, other, remove, rename) in kept.items():
        end = time.monotonic() + 20
        while (status := remove(name) if change == "remove" else rename(other, name)) == n4.DELAY and time.monotonic() < end:
            time.sleep(0.1)
        t.equal(f"{change} of what silent clients have open, {version}", status, 0)
    for c in silent:
        c.conn.close()


def main():
    t = Count()
    with Daemon({"one": "rw,insecure,no_root_squash"}, {**SETTINGS, "nfs2.enabled": "yes"}) as d:
        changers = Changers(d)
        holder = new_client(d, "holder", kind=n4.Client)
        test_denied(t, d, holder, changers)
        test_own(t, d, holder)
        test_expired(t, d, changers)
        finish(t, d)
    result(t)


if __name__ == "__main__":
    main()
