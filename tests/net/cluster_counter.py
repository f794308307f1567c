#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Clients of two members of a cluster count in one file under a lock, while members are killed, stopped and made slow at random.

Each reads the number, writes the next one and reads it again, across restarts if it gets its lock back. If a lock is granted while another client
has it, or may still reclaim it, a number is counted twice. `cluster_counter.py SEED ACTS` repeats a run, but not its timing."""
import os
import random
import signal
import struct
import sys
import threading
import time

import nfs4client as n
import rpcclient as r
from cluster import DEAD, stop_all, two_members
from harness import Count, result

ACTS = 5
PATIENCE = 60  # seconds
GONE = (n.BADSESSION, n.STALE_CLIENTID)  # statuses by which a client learns of a restart


class Restarted(Exception):
    pass


class Counter(threading.Thread):
    def __init__(self, t, d, name, ended):
        super().__init__()
        self.t, self.d, self.owner, self.ended, self.c = t, d, name, ended, None
        self.counted = self.reclaimed = self.lost = 0

    def ask(self, what):
        """The result of a call."""
        while True:
            try:
                res = what()
            except (r.Closed, r.Refused, OSError) as e:
                raise Restarted from e
            if res["status"] in GONE:
                raise Restarted
            if res["status"] != n.DELAY:
                return res
            time.sleep(0.02)

    def register(self):
        while True:
            try:
                if self.c:
                    self.c.again()
                else:
                    self.c = n.Client(self.d.port, self.owner)
                if self.c.register()["status"] == n.OK:
                    return
            except (r.Closed, r.Refused, OSError):
                pass
            time.sleep(0.05)

    def recover(self, locked):
        """Registers again after a restart; false: what it had is lost."""
        while True:
            try:
                self.register()
                res = self.ask(lambda: self.c.reclaim_open(self.fh))
                if has := res["status"] == n.OK:
                    self.open = res["stateid"]
                if has and locked:
                    res = self.ask(lambda: self.c.lock(self.fh, self.open, reclaim=True))
                    if has := res["status"] == n.OK:
                        self.lock = res["stateid"]
                self.ask(lambda: {"status": self.c.reclaim_complete()})
                if not has:
                    self.open = self.ask(lambda: self.c.open(self.root, "number", create=True)[0])["stateid"]
                return has
            except Restarted:
                continue

    def get_lock(self):
        """A lock whose answer is lost is not reclaimed."""
        while not self.ended.is_set():
            try:
                res = self.ask(lambda: self.c.lock(self.fh, self.open))
                if res["status"] == n.OK:
                    self.lock = res["stateid"]
                    return True
                if res["status"] not in (n.DENIED, n.GRACE):
                    self.t.check(f"{self.owner}: LOCK", False, res)
                time.sleep(0.01)
            except Restarted:
                self.recover(False)
        return False

    def read(self):
        return struct.unpack(">Q", self.ask(lambda: self.c.last(n.putfh(self.fh), n.read(self.open, 0, 8)))["data"].ljust(8, b"\0"))[0]

    def count(self):
        """Under the lock."""
        was = None
        while True:
            try:
                now = self.read()
                if was is None:
                    was = now
                self.t.check(f"{self.owner}: nobody else has counted", now in (was, was + 1), (was, now))
                if now == was + 1:
                    break
                time.sleep(random.random() * random.choice((0.01, 0.4)))
                self.ask(lambda: self.c.last(n.putfh(self.fh), n.write(self.open, 0, struct.pack(">Q", was + 1))))
            except Restarted:
                if not self.recover(True):
                    self.lost += 1
                    return
                self.reclaimed += 1
        self.counted += 1
        try:
            self.ask(lambda: self.c.unlock(self.fh, self.lock))
        except Restarted:
            self.recover(False)

    def run(self):
        self.register()
        self.c.reclaim_complete()
        self.root = self.c.path(self.d.exports["one"])
        res, self.fh = self.c.open(self.root, "number", create=True)
        self.open = res["stateid"]
        while self.get_lock():
            self.count()
        self.c.close()


def disturb(d):
    """Ends a member in some way, and starts it again."""
    how = random.choice(("killed", "killed", "stopped", "made slow"))
    if how == "killed":
        d.killed()
    elif how == "stopped":
        d.stop()
    else:
        d.process.send_signal(signal.SIGSTOP)
        time.sleep(random.choice((0.5, 1.5)) * DEAD)
        d.process.send_signal(signal.SIGCONT)
        end = time.monotonic() + 1
        while d.alive() and time.monotonic() < end:
            time.sleep(0.01)
        if d.alive():
            return "slow, but not too slow"
    time.sleep(random.choice((0, 0.3, DEAD + 1)))
    d.start()
    return how


def test(t, a, b, acts):
    ended = threading.Event()
    counters = [Counter(t, d, name, ended) for d, name in ((a, "one"), (b, "two"), (b, "three"))]
    for c in counters:
        c.start()
    for _ in range(acts):
        d, before = random.choice((a, b)), sum(c.counted for c in counters)
        print(f"# member {d.name} is {disturb(d)}; {before} so far", flush=True)
        since = time.monotonic()
        while sum(c.counted for c in counters) < before + 10 and time.monotonic() < since + PATIENCE:
            time.sleep(0.05)
        t.check("it is counted on", time.monotonic() < since + PATIENCE)
    ended.set()
    for c in counters:
        c.join(PATIENCE)
    with open(a.exports["one"] + "/number", "rb") as f:
        number = struct.unpack(">Q", f.read())[0]
    print(f"# {number} counted, {sum(c.reclaimed for c in counters)} locks reclaimed meanwhile")
    t.equal("the number is what was counted", number, sum(c.counted for c in counters))
    t.equal("locks that were not given back", sum(c.lost for c in counters), 0)


def main():
    t = Count()
    seed, acts = int((sys.argv[1:] or [time.time_ns() % 100000])[0]), int((sys.argv[2:] or [ACTS])[0])
    print(f"# seed {seed}")
    random.seed(seed)
    with two_members(t) as (a, b, _):
        test(t, a, b, acts)
        stop_all(t, a, b)
    result(t)


if __name__ == "__main__":
    main()
