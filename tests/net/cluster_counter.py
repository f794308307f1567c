#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Clients of two members of a cluster, of NFSv3, 4.0 and 4.1, count in one file under a lock, while members are killed, stopped, made slow
and run anew at random, and their keepers, too.

Each reads the number, writes the next one and reads it again, across restarts if it gets its lock back. If a lock is granted while another client
has it, or may still reclaim it, a number is counted twice. `cluster_counter.py SEED ACTS` repeats a run, but not its timing; without ACTS it has
as many as the environment's CLUSTER_ACTS says."""
import collections
import os
import random
import signal
import struct
import sys
import threading
import time

import nfs4client as n
import nlm_recovery as nlm
import rpcclient as r
from cluster import DEAD, children, two_members
from harness import Count, result
from rpcclient import u32, u64

ACTS = 4
PATIENCE = 60  # seconds
GRACE = 5  # seconds: clients of NFSv3 and 4.0 do not say when they have reclaimed all
# Statuses by which a client learns of a restart, or that its lease is over: a file system that hangs for long holds up what renews it.
GONE = (n.BADSESSION, n.STALE_CLIENTID, n.STALE_STATEID, n.EXPIRED)
GRANTED, WAITS, LOST = "granted", "waits", "lost"


class Restarted(Exception):
    """The server has ended: what the client has is to be reclaimed."""


def ask(what):
    """The result of a call."""
    while True:
        try:
            res = what()
        except (r.Closed, r.Refused, OSError) as e:
            raise Restarted from e
        if res["status"] in GONE:
            raise Restarted
        if res["status"] not in (n.DELAY, r.JUKEBOX):
            return res
        time.sleep(0.02)


class Four:
    """A client of NFSv4. Its calls raise Restarted."""

    def __init__(self, d, owner, minor):
        self.d, self.c = d, None
        self.owner, self.minor = owner, minor

    def start(self):
        self.connect()
        self.c.reclaim_complete()
        self.root = self.c.path(self.d.exports["one"])
        res, self.fh = self.c.open(self.root, "number", create=True)
        self.open = res["stateid"]

    def connect(self):
        """Registers. False: the caller tries again."""
        try:
            if self.c:
                self.c.again()
            else:
                self.c = n.Client(self.d.port, self.owner, self.minor)
            return self.c.register()["status"] == n.OK
        except (r.Closed, r.Refused, OSError):
            return False

    def recover(self, locked):
        """After connect(): reclaims, and opens anew what it could not. False: its lock is lost."""
        res = ask(lambda: self.c.reclaim_open(self.fh))
        if has := res["status"] == n.OK:
            self.open = res["stateid"]
        if has and locked:
            has = self.lock(reclaim=True) == GRANTED
        ask(lambda: {"status": self.c.reclaim_complete()})
        if not has:
            self.open = ask(lambda: self.c.open(self.root, "number", create=True)[0])["stateid"]
        return has

    def lock(self, reclaim=False):
        res = ask(lambda: self.c.lock(self.fh, self.open, reclaim=reclaim))
        if res["status"] == n.OK:
            self.locked = res["stateid"]
            return GRANTED
        return WAITS if res["status"] in (n.DENIED, n.GRACE) else res["status"]

    def unlock(self):
        return ask(lambda: self.c.last(n.putfh(self.fh), (n.LOCKU, u32(n.WRITE_LT) + u32(1) + self.locked + u64(0) + u64(n.ALL))))["status"]

    def read(self):
        return ask(lambda: self.c.last(n.putfh(self.fh), n.read(self.open, 0, 8)))["data"]

    def write(self, data):
        ask(lambda: self.c.last(n.putfh(self.fh), n.write(self.open, 0, data)))


class Three:
    """A client of NFSv3 and NLM. It has a record of the status monitor, and takes a lost connection for a restart."""

    def __init__(self, d, owner):
        self.d, self.owner, self.c = d, owner, None

    def start(self):
        self.connect()
        status, root, _ = self.c.conn.mnt(self.d.exports["one"])
        self.fh = self.c.conn.nfs(r.CREATE, r.create_args(root, "number", attrs=r.sattr(mode=0o666)))["fh"]

    def connect(self):
        try:
            if self.c:
                self.c.again()
            else:
                self.c = nlm.Client(self.d, nlm.SERVER, self.owner.encode() + b".example")
            return True
        except OSError:
            return False

    def nlm(self, *args, **options):
        return ask(lambda: {"status": self.c.lock(self.fh, *args, length=0, **options)})["status"]

    def recover(self, locked):
        """A reclaim is refused outside of grace as a lock is within: it asks for as long as a grace period may take to begin."""
        end = time.monotonic() + PATIENCE
        while locked and (res := self.nlm(reclaim=True)) != nlm.GRANTED:
            if res != nlm.GRACE_PERIOD or time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def lock(self):
        res = self.nlm()
        return {nlm.GRANTED: GRANTED, nlm.DENIED: WAITS, nlm.GRACE_PERIOD: WAITS}.get(res, res)

    def unlock(self):
        return self.nlm(proc=nlm.NLM_UNLOCK)

    def read(self):
        return ask(lambda: self.c.conn.nfs(r.READ, r.read_args(self.fh, 0, 8)))["data"]

    def write(self, data):
        ask(lambda: self.c.conn.nfs(r.WRITE, r.write_args(self.fh, 0, data)))


class Counter(threading.Thread):
    def __init__(self, t, name, client, ended):
        super().__init__(name=name, daemon=True)
        self.t, self.c, self.ended = t, client, ended
        self.counted = self.reclaimed = self.lost = 0

    def recover(self, locked):
        """Connects again after a restart; false: its lock is lost."""
        while True:
            try:
                if self.c.connect():
                    return self.c.recover(locked)
            except Restarted:
                pass
            time.sleep(0.05)

    def get_lock(self):
        """Asks for the lock. If the answer is lost, the lock is not reclaimed."""
        while not self.ended.is_set():
            try:
                res = self.c.lock()
                if res == GRANTED:
                    return True
                self.t.check(f"{self.name}: LOCK", res == WAITS, res)
                time.sleep(0.01)
            except Restarted:
                self.recover(False)
        return False

    def read(self):
        return struct.unpack(">Q", self.c.read().ljust(8, b"\0"))[0]

    def count(self):
        """Reads the number, writes the next one and reads it again, under the lock."""
        was = None
        while True:
            try:
                now = self.read()
                if was is None:
                    was = now
                self.t.check(f"{self.name}: nobody else has counted", now in (was, was + 1), (was, now))
                if now == was + 1:
                    break
                time.sleep(random.random() * random.choice((0.01, 0.4)))
                self.c.write(struct.pack(">Q", was + 1))
            except Restarted:
                if not self.recover(True):
                    self.lost += 1
                    return
                self.reclaimed += 1
        self.counted += 1
        try:
            self.c.unlock()
        except Restarted:
            self.recover(False)

    def run(self):
        try:
            while self.get_lock():
                self.count()
        except Exception as e:
            self.t.check(f"{self.name} goes on", False, repr(e))
            raise


def is_over(d):
    """True if the daemon ends within a second."""
    end = time.monotonic() + 1
    while d.alive() and time.monotonic() < end:
        time.sleep(0.01)
    return not d.alive()


ANEW = ("run anew", "killed while it is run anew")


def run_anew(d, how):
    """Has the member's program run anew. False: it is killed meanwhile, or soon after."""
    d.process.send_signal(signal.SIGUSR2)
    time.sleep(random.uniform(0, 0.5))
    if how == "run anew":
        return True
    d.killed()
    return False


def disturb(d):
    """Ends a member in some way, and starts it again."""
    how = random.choice(("killed", "killed", "stopped", "made slow", "killed beside a keeper that is slow", "left by its keeper", *ANEW))
    keeper = children(d.process.pid)[0]
    if how in ANEW:
        if run_anew(d, how):
            return how
    elif how.startswith("killed"):
        if how != "killed":
            os.kill(keeper, signal.SIGSTOP)
        d.killed()
    elif how == "stopped":
        d.stop()
    elif how == "left by its keeper":
        os.kill(keeper, signal.SIGKILL)
        d.process.wait(PATIENCE)
    else:
        d.stand_still()
        time.sleep(random.choice((0.5, 1.5)) * DEAD)
        d.process.send_signal(signal.SIGCONT)
        if not is_over(d):
            return "slow, but not too slow"
    time.sleep(random.choice((0, 0.3, DEAD + 1)))
    if how == "killed beside a keeper that is slow":
        os.kill(keeper, signal.SIGCONT)
    d.start()
    return how


def supervise(*members):
    """Starts those again that have ended by themselves, as on a busy machine a heartbeat may come too late; systemd does it otherwise."""
    for d in members:
        if not d.alive():
            print(f"# member {d.name} has ended by itself", flush=True)
            d.process.wait()
            d.start()


def counters_of(t, a, b, ended):
    return [Counter(t, name, client, ended) for name, client in (
        ("one", Four(a, "one", 1)), ("two", Three(a, "two")), ("three", Four(b, "three", 1)), ("four", Four(b, "four", 0)), ("five", Three(b, "five")))]


def test(t, a, b, acts, act=None, folder=None):
    """act: ends a member in some way, and starts it again; folder: where the number is for this process."""
    act = act or disturb
    ended = threading.Event()
    counters = counters_of(t, a, b, ended)
    done = collections.Counter()
    for c in counters:
        c.c.start()
    for c in counters:
        c.start()
    for _ in range(acts):
        d, before = random.choice((a, b)), sum(c.counted for c in counters)
        how = act(d)
        done[how] += 1
        print(f"# member {d.name} is {how}; {before} so far", flush=True)
        since = time.monotonic()
        while sum(c.counted for c in counters) < before + 10 and time.monotonic() < since + PATIENCE:
            time.sleep(0.05)
            supervise(a, b)
        t.check("it is counted on", time.monotonic() < since + PATIENCE)
    ended.set()
    for c in counters:
        c.join(PATIENCE)
    with open((folder or a.exports["one"]) + "/number", "rb") as f:
        number = struct.unpack(">Q", f.read())[0]
    print("# members " + ", ".join(f"{how}: {times}" for how, times in sorted(done.items())))
    print(f"# {number} counted, {sum(c.reclaimed for c in counters)} locks reclaimed meanwhile: " +
          ", ".join(f"{c.name} {c.counted}, {c.reclaimed}" for c in counters))
    t.equal("the number is what was counted", number, sum(c.counted for c in counters))
    t.equal("locks that were not given back", sum(c.lost for c in counters), 0)


def main():
    t = Count()
    seed = int((sys.argv[1:] or [time.time_ns() % 100000])[0])
    acts = int((sys.argv[2:] or [os.environ.get("CLUSTER_ACTS", ACTS)])[0])
    print(f"# seed {seed}")
    random.seed(seed)
    with two_members(t, {"nfs4.grace_time": GRACE}) as (a, b, _):
        test(t, a, b, acts)
        for d in (a, b):
            status, log = d.stop()
            # One that was too slow for the others ends by itself, as supervise() has it, perhaps just now.
            t.check(f"{d.name}: exit status", status == 0 or (status == 75 and "was too slow for the others" in log), status)
    result(t)


if __name__ == "__main__":
    main()
