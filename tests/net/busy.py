# SPDX-License-Identifier: BSD-2-Clause
"""Work on a mount of Linux's client that must outlive failovers: records by O_SYNC and by fsync(2), names that are made, changed and removed, and a counter
under a lock that is held all the time."""
import fcntl
import os
import struct
import threading
import time

RECORD, BATCH = 4096, 8
KINDS = "sync", "fsync", "names", "count"


def record(number):
    return struct.pack(">Q", number) * (RECORD // 8)


class Busy:
    """Threads that work in a new folder until finish()."""

    def __init__(self, at):
        self.over, self.acknowledged, self.failed, self.slowest, self.again, self.at = False, {}, [], {}, 0, at
        os.mkdir(at)
        self.fd = os.open(self.at + "/locked", os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.lockf(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.threads = [threading.Thread(target=self.work, args=(what,)) for what in (self.sync, self.fsync, self.names, self.count)]
        for t in self.threads:
            t.start()

    def work(self, what):
        """One call after the other, numbered from 0 on."""
        number, name = 0, what.__name__
        step = what()
        while not self.over:
            began = time.monotonic()
            try:
                next(step)
            except Exception as e:
                self.failed.append(f"{name} {number}: {e!r}")
                return
            self.slowest[name] = max(self.slowest.get(name, 0), time.monotonic() - began)
            number += 1
            self.acknowledged[name] = number
            time.sleep(0.002)

    def sync(self):
        fd = os.open(self.at + "/sync", os.O_WRONLY | os.O_CREAT | os.O_SYNC, 0o666)
        number = 0
        while True:
            os.pwrite(fd, record(number), number * RECORD)
            number += 1
            yield

    def fsync(self):
        fd = os.open(self.at + "/fsync", os.O_WRONLY | os.O_CREAT, 0o666)
        number = 0
        while True:
            for _ in range(BATCH):
                os.pwrite(fd, record(number), number * RECORD)
                number += 1
            os.fsync(fd)
            yield

    def once(self, act, has_done):
        """act(), or its effect: a call whose answer was lost with the server is made again, and the next server does not know it."""
        try:
            act()
        except OSError:
            if not has_done():
                raise
            self.again += 1

    def names(self):
        number = 0
        while True:
            a, b = f"{self.at}/a{number}", f"{self.at}/b{number}"
            self.once(lambda: os.close(os.open(a, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)), lambda: os.path.exists(a))
            self.once(lambda: os.rename(a, b), lambda: os.path.exists(b) and not os.path.exists(a))
            if number % 2:
                self.once(lambda: os.unlink(b), lambda: not os.path.exists(b))
            number += 1
            yield

    def count(self):
        """Under the lock. Linux's client fails what it does after its lock was lost."""
        number = 0
        while True:
            found = os.pread(self.fd, 8, 0)
            if struct.unpack(">Q", found.ljust(8, b"\0"))[0] != number:
                raise ValueError(f"the counter is {found.hex()}, not {number}")
            number += 1
            os.pwrite(self.fd, struct.pack(">Q", number), 0)
            os.fsync(self.fd)
            yield

    def progress(self):
        return dict(self.acknowledged), self.failed

    def finish(self):
        self.over = True
        for t in self.threads:
            t.join()
        os.close(self.fd)
        return dict(self.acknowledged), self.failed, dict(self.slowest), self.again


def check_files(t, at, name, acknowledged):
    for what, each in (("sync", 1), ("fsync", BATCH)):
        with open(f"{at}/{what}", "rb") as f:
            wrong = sum(f.read(RECORD) != record(i) for i in range(acknowledged[what] * each))
        t.equal(f"{name}: records acknowledged by {what} that are not there, of {acknowledged[what] * each}", wrong, 0)
    there = {f for f in os.listdir(at) if f[0] in "ab"}
    want = {f"b{i}" for i in range(0, acknowledged["names"], 2)}
    t.equal(f"{name}: names that are not as they were left", sorted(want ^ there)[:5], [])
    with open(at + "/locked", "rb") as f:
        t.equal(f"{name}: the counter", struct.unpack(">Q", f.read(8))[0], acknowledged["count"])
