#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""A state directory on a disk that is full: the records that are there are read after a crash, clients reclaim within a grace period, what
cannot be written is told and written when there is room, and a reserve is kept that others cannot fill."""
import os
import signal
import subprocess
import tempfile
import time

import control
import harness
import mounts
import nfs4client as n
import nlm_recovery as nlm
import rpcclient as r

MIB = 1 << 20
SETTINGS = {"nfs4.lease_time": 10, "nfs4.grace_time": 10}
ROOM = 100  # seconds, far beyond what anything here takes


class Disk:
    """A file system of that size in memory, in the test's own namespace."""

    def __init__(self, size):
        self.path = tempfile.mkdtemp(prefix="ringnfs-full-")
        mounts.must("mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", self.path)

    def fill(self):
        with open(self.path + "/ballast", "ab", buffering=0) as f:
            try:
                while f.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def free(self):
        os.unlink(self.path + "/ballast")

    def close(self):
        subprocess.run(["umount", "-l", self.path], check=False)
        os.rmdir(self.path)


def client(t, d, owner):
    c = n.Client(d.port, owner)
    t.equal(f"{owner} registers", c.register()["status"], n.OK)
    return c


def hold(t, d, owner):
    """A client with a lock of a file of its own."""
    c = client(t, d, owner)
    c.reclaim_complete()
    res, fh = c.open(c.path(d.exports["x"]), owner, create=True)
    t.equal(f"{owner}: OPEN", res["status"], n.OK)
    t.equal(f"{owner}: LOCK", c.lock(fh, res["stateid"])["status"], n.OK)
    return c, fh


def crash(d):
    d.stop(signal.SIGKILL)
    d.start()


def reclaim(t, d, c, fh, owner):
    """Reclaims, while another client wants the same lock."""
    rival = client(t, d, "rival of " + owner)
    rival.reclaim_complete()
    opened = rival.open(rival.path(d.exports["x"]), owner)[0]
    t.equal(f"{owner}: the LOCK of another in grace", rival.lock(fh, opened["stateid"])["status"], n.GRACE)
    c.again()
    t.equal(f"{owner}: comes back", c.register()["status"], n.OK)
    res = c.reclaim_open(fh)
    t.equal(f"{owner}: OPEN, reclaimed", res["status"], n.OK)
    t.equal(f"{owner}: LOCK, reclaimed", c.lock(fh, res["stateid"], reclaim=True)["status"], n.OK)
    t.equal(f"{owner}: RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
    afterwards = rival.lock(fh, opened["stateid"])["status"]
    t.check(f"{owner}: the LOCK of another afterwards", afterwards in (n.DENIED, n.GRACE), afterwards)
    rival.close_file(fh, opened["stateid"])
    rival.close()


def await_failing(d, failing):
    end = time.monotonic() + ROOM
    while (is_failing := control.status_of(d)["records"]["failing"]) != failing and time.monotonic() < end:
        time.sleep(0.1)
    return is_failing


def test_no_reserve(t):
    """The disk is too small for a reserve, and then full."""
    disk = Disk(MIB)
    with control.Control({**SETTINGS, "server.state_dir": disk.path}, exports={"x": "rw,insecure,no_root_squash"}) as d:
        one, fh = hold(t, d, "one")
        t.equal("records are written", control.status_of(d)["records"], {"failing": False})
        disk.fill()
        crash(d)
        t.equal("full: it is told", await_failing(d, True), True)
        t.check("full: for people", "records      of clients cannot be written" in control.ctl("--socket", d.path, "status").stdout)
        reclaim(t, d, one, fh, "one")
        two, other = hold(t, d, "two")
        disk.free()
        t.equal("room again: it is told", await_failing(d, False), False)
        crash(d)
        reclaim(t, d, two, other, "two")
        one.close(), two.close()
        harness.finish(t, d)
    disk.close()


def test_reserve(t):
    """What was reserved is enough when others have filled the disk."""
    disk = Disk(32 * MIB)
    with control.Control({**SETTINGS, "server.state_dir": disk.path}, exports={"x": "rw,insecure,no_root_squash"}) as d:
        one, fh = hold(t, d, "one")
        disk.fill()
        two, other = hold(t, d, "two")
        three = nlm.Client(d, "127.0.0.2", b"three")
        locked = three.conn.nfs(r.CREATE, r.create_args(d.root(three.conn, "x"), "three"))["fh"]
        t.equal("a full disk: a lock of NFSv3", three.lock(locked), nlm.GRANTED)
        with open(disk.path + "/nlm-hosts", encoding="ascii") as f:
            t.check("a full disk: its host is on record", b"three".hex() in f.read())
        t.equal("a full disk: records are written", control.status_of(d)["records"], {"failing": False})
        crash(d)
        reclaim(t, d, one, fh, "one")
        two.again()
        t.equal("two comes back", two.register()["status"], n.OK)
        t.equal("two: OPEN, reclaimed", two.reclaim_open(other)["status"], n.OK)
        two.reclaim_complete()
        t.equal("after a crash: records are written", control.status_of(d)["records"], {"failing": False})
        one.close(), two.close()
        harness.finish(t, d)
    disk.close()


def main():
    mounts.own_namespace()
    t = harness.Count()
    test_no_reserve(t)
    test_reserve(t)
    harness.result(t)


if __name__ == "__main__":
    main()
