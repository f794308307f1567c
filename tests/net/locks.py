#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Byte-range locks of NFSv4 on event threads: no worker wakes up for them while nothing has to wait, and local processes see them."""
import fcntl
import glob
import os
import struct
import subprocess
import time

import harness
import nfs4client as n4
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

ROUNDS = 100  # of four calls
FEW = 40  # wake-ups of workers for something else
LOCAL = {"ext2/ext3", "xfs", "btrfs", "f2fs", "tmpfs"}  # as stat(1) names file systems whose calls begin on event threads


class Locker(n4.Client):
    """A client with one lock-owner."""

    lock_seqid = 0

    def next_lock(self):
        self.lock_seqid += 1
        return u32(self.lock_seqid)

    def first(self, fh, stateid, offset, length):
        owner = u32(1) + self._next() + stateid + self.next_lock() + u64(self.clientid) + opaque(b"locker")
        return self.last(n4.putfh(fh), (n4.LOCK, u32(n4.WRITE_LT) + u32(0) + u64(offset) + u64(length) + owner))

    def again(self, fh, stateid, offset, length):
        owner = u32(0) + stateid + self.next_lock()
        return self.last(n4.putfh(fh), (n4.LOCK, u32(n4.WRITE_LT) + u32(0) + u64(offset) + u64(length) + owner))

    def unlock(self, fh, stateid, offset, length):
        return self.last(n4.putfh(fh), (n4.LOCKU, u32(n4.WRITE_LT) + self.next_lock() + stateid + u64(offset) + u64(length)))

    def test(self, fh, offset, length):
        return self.last(n4.putfh(fh), (n4.LOCKT, u32(n4.WRITE_LT) + u64(offset) + u64(length) + u64(self.clientid) + opaque(b"locker")))


def new_client(d, owner, minor):
    c = Locker(d.port, owner, minor)
    if c.register()["status"] or c.reclaim_complete():
        raise SystemExit(f"{owner} cannot register\n{d.read_log()}")
    return c


def wake_ups(d):
    """How often the daemon's workers have gone to sleep."""
    total = 0
    for task in glob.glob(f"/proc/{d.process.pid}/task/*"):
        with open(task + "/status") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        if status["Name"].startswith("worker"):
            total += int(status["voluntary_ctxt_switches"])
    return total


def is_locked(path, offset):
    """Does a local process find the byte locked?"""
    with open(path, "rb+") as f:
        lock = fcntl.fcntl(f, fcntl.F_OFD_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0))
        return struct.unpack("hhqqi4x", lock)[0] != fcntl.F_UNLCK


def test_rounds(t, d, minor, is_local):
    name = f"file{minor}"
    path = os.path.join(d.exports["one"], name)
    c, other = (new_client(d, f"{who}{minor}", minor) for who in ("one", "other"))
    root = c.path(d.exports["one"])
    res, fh = c.open(root, name.encode(), create=True)
    t.equal(f"4.{minor} OPEN", res["status"], n4.OK)
    theirs, _ = other.open(root, name.encode())
    lock = c.first(fh, res["stateid"], 0, 10)
    t.equal(f"4.{minor} the first LOCK", lock["status"], n4.OK)
    t.check(f"4.{minor} a local process sees it", is_locked(path, 5) and not is_locked(path, 10))
    before = wake_ups(d)
    refused = []
    for i in range(ROUNDS):
        lock = c.again(fh, lock["stateid"], 100 + i, 10)
        refused.append(other.test(fh, 100 + i, 1))
        got = lock["status"] == n4.OK
        lock = c.unlock(fh, lock["stateid"], 100 + i, 10) if got else lock
        if not got or lock["status"] != n4.OK or other.test(fh, 100 + i, 1)["status"] != n4.OK:
            t.check(f"4.{minor} LOCK and LOCKU {i}", False, lock)
            return
    woken = wake_ups(d) - before
    t.check(f"4.{minor} others were refused", all(x["status"] == n4.DENIED and x["clientid"] == c.clientid for x in refused))
    t.equal(f"4.{minor} another's LOCK", other.first(fh, theirs["stateid"], 5, 1)["status"], n4.DENIED)
    if is_local:
        t.check(f"4.{minor} no worker woke up for {4 * ROUNDS} calls", woken < FEW, woken)
    t.equal(f"4.{minor} the last LOCKU", c.unlock(fh, lock["stateid"], 0, n4.ALL)["status"], n4.OK)
    t.check(f"4.{minor} nothing is left for local processes", not is_locked(path, 5) and not is_locked(path, 100))
    t.equal(f"4.{minor} CLOSE", c.close_file(fh, res["stateid"])["status"], n4.OK)
    c.close()
    other.close()


def main():
    t = Count()
    with Daemon({"one": "rw,insecure,no_root_squash"}) as d:
        kind = subprocess.run(["stat", "-f", "-c", "%T", d.exports["one"]], capture_output=True, text=True).stdout.strip()
        for minor in (0, 1, 2):
            start = time.monotonic()
            test_rounds(t, d, minor, kind in LOCAL)
            print(f"NFSv4.{minor}: {time.monotonic() - start:.2f} s")
        if kind not in LOCAL:
            t.skip("no worker wakes up", f"{kind} is not known to be local")
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
