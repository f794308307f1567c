#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Locks of a killed daemon that the kernel has not freed yet when its clients, of NFSv3, 4.0 and 4.1, reclaim them: they get them as soon as they are
free, and are refused after a time if they are not. In a network name space, as clients of NLM are on record.

This process has a descriptor of each locked open file of the daemon, as the kernel's threads have for some 0.1 s after a kill with I/O under way."""
import contextlib
import ctypes
import fcntl
import os
import signal
import struct
import threading
import time

import harness
import nfs4client as n
from harness import Count, Daemon
from nlm_recovery import DENIED, GRANTED, MONITOR_PORT, ONE, ONE_NAME, Client, FakeHost, main, make_file, network_up, wait_for

F_OFD_SETLK = 37
PIDFD_GETFD = 438
PATIENCE = 60  # seconds; a bound for waits that end with what they wait for


def locked(pid):
    """The daemon's descriptors of open files with locks."""
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/fdinfo/{fd}") as f:
            if "OFDLCK" in f.read():
                yield int(fd)


def take(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        fds = [libc.syscall(PIDFD_GETFD, pidfd, fd, 0) for fd in locked(pid)]
    finally:
        os.close(pidfd)
    if -1 in fds:
        harness.skip_all("another process's descriptors cannot be had: " + os.strerror(ctypes.get_errno()))
    return fds


def is_locked(path):
    with open(path, "r+b") as f:
        try:
            fcntl.fcntl(f, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        except BlockingIOError:
            return True
    return False


class Three:
    name = "v3"

    def __init__(self, d):
        self.c = Client(d, ONE, ONE_NAME)
        self.fh = make_file(d, self.c, self.name)

    def lock(self):
        return self.c.lock(self.fh) == GRANTED

    def come_back(self):
        self.c.again()
        return True

    def reclaim(self):
        """True, False, or None: not yet."""
        return {GRANTED: True, DENIED: False}.get(self.c.lock(self.fh, reclaim=True))


class Four:
    def __init__(self, d, minor):
        self.name = f"v4.{minor}"
        self.c = n.Client(d.port, self.name, minor)
        self.c.register()
        self.c.reclaim_complete()
        res, self.fh = self.c.open(self.c.path(d.exports["one"]), self.name, create=True)
        self.open = res["stateid"]

    def lock(self):
        return self.c.lock(self.fh, self.open)["status"] == n.OK

    def come_back(self):
        self.c.again()
        if self.c.register()["status"]:
            return False
        res = self.c.reclaim_open(self.fh)
        self.open = res.get("stateid")
        return res["status"] == n.OK

    def reclaim(self):
        status = self.c.lock(self.fh, self.open, reclaim=True)["status"]
        return {n.OK: True, n.RECLAIM_CONFLICT: False}.get(status, None if status == n.DELAY else status)


class Reclaim(threading.Thread):
    """Asks until it has an answer. asked: how often it was told to come again, or 1 as soon as it has asked."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.asked, self.got = client, 0, None
        self.start()

    def run(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.asked += 1
            self.got = self.client.reclaim()
            if self.got is not None:
                return
            time.sleep(0.05)


def reclaim_behind(t, what, gives_up, want):
    """gives_up: the locks go while the clients ask."""
    settings = {"nfs4.lease_time": 5, "nfs4.grace_time": 30, "nlm.statd_port": MONITOR_PORT, "tcp.listen": ""}
    with Daemon({"one": "rw,insecure,no_root_squash"}, settings) as d:
        clients = [Three(d), Four(d, 0), Four(d, 1)]
        paths = [f"{d.exports['one']}/{c.name}" for c in clients]
        for c in clients:
            t.check(f"{what}: {c.name} has a lock", c.lock())
        fds = take(d.process.pid)
        d.stop(signal.SIGKILL)
        t.equal(f"{what}: the locks are there without the daemon", [is_locked(p) for p in paths], [True] * 3)
        d.start()
        for c in clients:
            t.check(f"{what}: {c.name} comes back", c.come_back())
        asks = [Reclaim(c) for c in clients]
        t.check(f"{what}: all have asked", wait_for(lambda: asks[0].asked and all(a.asked > 2 for a in asks[1:]), PATIENCE))
        t.equal(f"{what}: nobody has an answer", [a.got for a in asks], [None] * 3)
        if gives_up:
            for fd in fds:
                os.close(fd)
        for a in asks:
            a.join(PATIENCE)
        t.equal(f"{what}: the answers", [a.got for a in asks], [want] * 3)
        if not gives_up:
            for fd in fds:
                os.close(fd)
        t.equal(f"{what}: locked in the end", [is_locked(p) for p in paths], [want] * 3)
        harness.finish(t, d)


def inside():
    t = Count()
    network_up()
    host = FakeHost(ONE)
    try:
        reclaim_behind(t, "locks that go late", True, True)
        reclaim_behind(t, "locks that stay", False, False)
    finally:
        host.close()
    harness.result(t)


if __name__ == "__main__":
    main(__file__, inside)
