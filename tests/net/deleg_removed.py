#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Files and directories that are removed, or renamed over, while a client has a delegation of them: it gives the delegation back by the
COMPOUND that Linux sends (SEQUENCE PUTFH GETATTR DELEGRETURN), nothing is revoked, no flag of SEQUENCE stays, and the space is free then.
What a client itself has a delegation of is not in the way of its own removal."""
import itertools
import os
import threading
import time

import dir_delegations
import nfs4client as n4
import rpcclient as r
from delegations import LEASE, SETTINGS, delegated, new_client
from harness import Count, Daemon, finish, result

EXPORTS = {"one": "rw,insecure,no_root_squash", "two": "rw,insecure,no_root_squash,nfs_only"}
names = (f"n{i}" for i in itertools.count())
STALE = 70


class Removers:
    """Who removes: a local process, and other clients of each version."""

    def __init__(self, d, conn):
        self.d, self.conn, self.status = d, conn, None
        self.other = new_client(d, "another", kind=n4.Client)
        self.other40 = new_client(d, "another of 4.0", minor=0, kind=n4.Client)

    def local(self, path, directory):
        (os.rmdir if directory else os.unlink)(path)

    def local_over(self, path, directory):
        if directory:
            os.mkdir(path + ".new")
        else:
            open(path + ".new", "w").close()
        os.rename(path + ".new", path)

    def _by4(self, client, path):
        top, name = os.path.split(path)
        fh = client.path(top)
        return lambda: client.last(n4.putfh(fh), (n4.REMOVE, r.name(name)))["status"]

    def other_41(self, path, _):
        self.patiently(self._by4(self.other, path), n4.DELAY)

    def other_40(self, path, _):
        self.patiently(self._by4(self.other40, path), n4.DELAY)

    def version_3(self, path, directory):
        top, name = os.path.split(path)
        root = self.conn.mnt(top)[1]
        proc = r.RMDIR if directory else r.REMOVE
        # The call waits on the server until the delegation is given back.
        self.call = threading.Thread(target=lambda: setattr(self, "status", self.conn.nfs(proc, r.diropargs(root, name.encode()))["status"]))
        self.call.start()

    def patiently(self, step, later):
        self.step, self.later = step, later
        self.over()

    def over(self):
        """Tries again what had to wait for the delegation."""
        step, call = getattr(self, "step", None), self.__dict__.pop("call", None)
        if call:
            call.join()
        if step:
            self.status = step()
            if self.status != self.later:
                self.step = None


def take(t, d, c, directory, export):
    if directory:
        return dir_delegations.delegated(t, d, c, next(names), export, empty=True)
    name = next(names)
    _, fh, stateid, deleg = delegated(t, d, c, name)
    c.close_file(fh, stateid)
    return os.path.join(d.exports["one"], name), fh, deleg


def answer_recall(c, fh, deleg):
    """What Linux answers a recall with."""
    res = c.compound(n4.putfh(fh), n4.getattr_op(), (n4.DELEGRETURN, deleg))
    return [x["status"] for x in res]


def settled(c):
    """SEQUENCE's flags once nothing is under way any more."""
    end = time.monotonic() + 3 * LEASE
    while time.monotonic() < end:
        c.compound((n4.PUTROOTFH, b""))
        if not c.flags:
            break
        time.sleep(0.2)
    return c.flags


def test_removed(t, d, c, removers, how, directory):
    what = f"{'directory' if directory else 'file'}, removed by {how}"
    path, fh, deleg = take(t, d, c, directory, "one")
    getattr(removers, how)(path, directory)
    t.equal(f"{what}: given back", answer_recall(c, fh, deleg), [0, 0, 0])
    removers.over()
    t.check(f"{what}: it is removed", how == "local_over" or not os.path.exists(path), removers.status)
    t.equal(f"{what}: no flag", settled(c), 0)
    t.equal(f"{what}: the handle leads nowhere then", c.last(n4.putfh(fh), n4.getattr_op())["status"], STALE)


def test_own(t, d, c, directory):
    """The holder removes it, with the delegation in its hands."""
    what = f"own {'directory' if directory else 'file'}"
    path, fh, deleg = take(t, d, c, directory, "one")
    top, name = os.path.split(path)
    called = len(c.called)
    res = c.last(n4.putfh(c.path(top)), (n4.REMOVE, r.name(name)))
    t.equal(f"{what}: removed at once", res["status"], 0)
    t.equal(f"{what}: nothing was recalled", len(c.called) - called, 0)
    t.equal(f"{what}: given back", answer_recall(c, fh, deleg), [0, 0, 0])
    t.equal(f"{what}: no flag", settled(c), 0)


def main():
    t = Count()
    with Daemon(EXPORTS, SETTINGS) as d, d.connect() as conn:
        c = new_client(d, "holder")
        removers = Removers(d, conn)
        for how in ("local", "local_over", "other_41", "other_40", "version_3"):
            for directory in (False, True):
                test_removed(t, d, c, removers, how, directory)
        for directory in (False, True):
            test_own(t, d, c, directory)
        finish(t, d)
    result(t)


if __name__ == "__main__":
    main()
