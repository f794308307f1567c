#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Names that change hands between two system calls of the server: what a call made is the caller's, what it sets it sets on that alone, and
a name that some object has at every moment is found."""
import os
import threading

import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon, finish, result

USER, GIVEN = 1005, 1006
CALLS = 1500
EXIST = 17


class Swapper(threading.Thread):
    """Renames on the server, over and over."""

    def __init__(self, step):
        super().__init__(daemon=True)
        self.step, self.over = step, threading.Event()

    def run(self):
        while not self.over.is_set():
            self.step()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def quietly(call, *args):
    try:
        call(*args)
    except OSError:
        pass


def put_in_place(top):
    """A user's directory takes the name that root's MKDIR has just made, and goes back."""
    def step():
        quietly(os.rename, top + "/new", top + "/aside")
        quietly(os.rename, top + "/victim", top + "/new")
        quietly(os.rename, top + "/new", top + "/victim")
        quietly(os.rmdir, top + "/aside")
    return step


def make3(c, root):
    res = c.nfs(r.MKDIR, r.mkdir_args(root, b"new", r.sattr(mode=0o755, uid=GIVEN, gid=GIVEN)))
    return res["status"]


def make4(four, root):
    owner = r.opaque(str(GIVEN).encode())
    attrs = n4.bitmap(33, 36) + r.opaque(r.u32(0o755) + owner)
    return four.last(n4.putfh(root), (n4.CREATE, r.u32(2) + r.name(b"new") + attrs))["status"]


def test_made(t, d, make):
    top = d.exports["e"]
    os.mkdir(top + "/victim", 0o700)
    os.chown(top + "/victim", USER, USER)
    fd = os.open(top + "/victim", os.O_PATH)
    seen = set()
    with Swapper(put_in_place(top)):
        for _ in range(CALLS):
            seen.add(make())
            quietly(os.rmdir, top + "/new")
    st = os.fstat(fd)
    os.close(fd)
    t.equal("the user's directory is as it was", (st.st_uid, st.st_gid, st.st_mode & 0o777), (USER, USER, 0o700))
    t.check("made, another's name, or to be tried again", seen <= {0, EXIST, n4.DELAY}, seen)
    for name in os.listdir(top):
        quietly(os.rmdir, f"{top}/{name}")


def replace(top):
    def step():
        with open(top + "/.next", "w"):
            pass
        os.rename(top + "/.next", top + "/name")
    return step


def test_replaced(t, d, c, four, root):
    top = d.exports["e"]
    replace(top)()
    seen = {"LOOKUP": set(), "NFSv4 LOOKUP": set(), "CREATE UNCHECKED": set()}
    with Swapper(replace(top)):
        for _ in range(CALLS):
            seen["LOOKUP"].add(c.nfs(r.LOOKUP, r.diropargs(root, b"name"))["status"])
            seen["NFSv4 LOOKUP"].add(four.last(n4.putfh(root), n4.lookup(b"name"))["status"])
            seen["CREATE UNCHECKED"].add(c.nfs(r.CREATE, r.create_args(root, b"name"))["status"])
    for what, statuses in seen.items():
        t.equal(f"{what} of a name that is replaced", statuses, {0})


def main():
    t = Count()
    with Daemon({"e": "rw,insecure,no_root_squash"}) as d:
        four = n4.Client(d.port, "raced")
        four.register()
        four.reclaim_complete()
        with d.connect() as c:
            root, root4 = d.root(c, "e"), four.path(d.exports["e"])
            test_made(t, d, lambda: make3(c, root))
            test_made(t, d, lambda: make4(four, root4))
            test_replaced(t, d, c, four, root)
        four.close()
        finish(t, d)
    result(t)


if __name__ == "__main__":
    main()
