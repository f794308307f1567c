#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Opens, locks and closes of the same owners and files at once: by the slots of one session on connections of their own, beside
clients of their own. What is refused must be refused for a reason, and nothing may be left. For a daemon built with
ThreadSanitizer, too: SECONDS=10 RINGNFSD=_build-tsan/ringnfsd tests/net/nfs4_parallel.py"""
import os
import random
import threading
import time

import harness
import nfs4client as n
import rpcclient as r
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

SLOTS, OTHERS, FILES = 4, 3, 2
SECONDS = float(os.environ.get("SECONDS", 2))
OLD_STATEID, BAD_STATEID, SHARE_DENIED, OPENMODE, LOCKS_HELD, LOCKED = 10024, 10025, 10015, 10038, 10037, 10012
FREE_STATEID = 45


class Slot(n.Client):
    """One slot of another client's session, on a connection of its own."""

    def __init__(self, of, slot):
        self.__dict__.update(of.__dict__)
        self.slot, self.seqid, self.conn = slot, 0, r.Conn(of.port)

    def compound(self, *ops):
        args = self.session + u32(self.seqid + 1) + u32(self.slot) + u32(SLOTS - 1) + u32(0)
        results = self.bare((n.SEQUENCE, args), *ops)
        if results[0]["status"] == n.OK:
            self.seqid += 1
        return results[1:] or results


def latest(stateid):
    """The stateid with the number that stands for the current one."""
    return bytes(4) + stateid[4:]


class Worker(threading.Thread):
    def __init__(self, client, root, seed, until):
        super().__init__()
        self.c, self.root, self.until, self.rand = client, root, until, random.Random(seed)
        self.opened, self.locked, self.unexpected, self.calls, self.granted = {}, {}, [], 0, 0

    def expect(self, what, res, *allowed):
        self.calls += 1
        self.granted += res["status"] == n.OK
        if res["status"] not in (n.OK, n.DELAY, *allowed):
            self.unexpected.append((what, res["status"]))
        return res["status"] == n.OK

    def open(self, name):
        access, deny = self.rand.choice((1, 2, 3, 3)), self.rand.choice((0, 0, 0, 0, 1, 2))
        res, fh = self.c.open(self.root, name, create=True, access=access, deny=deny)
        if self.expect("OPEN", res, SHARE_DENIED):
            self.opened[name] = fh, res["stateid"]

    def close(self, name):
        fh, sid = self.opened.pop(name)
        if self.c.minor:
            sid = latest(sid)
        self.expect("CLOSE", self.c.close_file(fh, sid), BAD_STATEID, OLD_STATEID)
        self.locked.pop(name, None)

    def lock(self, name):
        fh, sid = self.opened[name]
        sid = latest(sid) if self.c.minor else sid
        first, length = self.rand.randrange(20), 1 + self.rand.randrange(10)
        res = self.c.lock(fh, sid, self.rand.choice((1, 2)), first, length)
        if self.expect("LOCK", res, n.DENIED, OPENMODE, BAD_STATEID, OLD_STATEID):
            self.locked[name] = fh, res["stateid"]

    def unlock(self, name):
        fh, sid = self.locked.pop(name)
        args = u32(1) + u32(1) + sid + u64(0) + u64(n.ALL)
        if self.expect("LOCKU", self.c.last(n.putfh(fh), (n.LOCKU, args)), BAD_STATEID, OLD_STATEID) and self.c.minor:
            self.expect("FREE_STATEID", self.c.last((FREE_STATEID, latest(sid))), BAD_STATEID, LOCKS_HELD)

    def data(self, name):
        fh, sid = self.opened[name]
        sid = latest(sid) if self.c.minor else sid
        op = self.rand.choice((n.read(sid, 0, 100), n.write(sid, 0, b"data", stable=0)))
        self.expect("data", self.c.last(n.putfh(fh), op), OPENMODE, BAD_STATEID, OLD_STATEID, LOCKED)

    def test(self, name):
        fh, _ = self.opened[name]
        args = u32(2) + u64(0) + u64(n.ALL) + u64(self.c.clientid) + opaque(b"nobody")
        self.expect("LOCKT", self.c.last(n.putfh(fh), (n.LOCKT, args)), n.DENIED)

    def step(self):
        name = f"file{self.rand.randrange(FILES)}"
        what = self.rand.choice((self.open, self.close, self.lock, self.lock, self.unlock, self.data, self.test))
        if what == self.open or (name in self.locked if what == self.unlock else name in self.opened):
            what(name)

    def run(self):
        try:
            while time.monotonic() < self.until:
                self.step()
            for name in list(self.opened):
                self.close(name)
        except Exception as e:  # the main thread tells
            self.unexpected.append(("exception", repr(e)))


def new_client(d, owner, minor):
    c = n.Client(d.port, owner, minor)
    if c.register()["status"] or c.reclaim_complete():
        raise SystemExit(f"{owner} cannot register\n{d.read_log()}")
    return c


def main():
    t = Count()
    with Daemon({"one": "rw,insecure,no_root_squash"}, {"nfs4.lease_time": 30}) as d:
        shared = new_client(d, "shared", 1)
        others = [new_client(d, f"other{i}", (0, 1, 2)[i]) for i in range(OTHERS)]
        root = shared.path(d.exports["one"])
        shared.conn.close()
        seed = int(os.environ.get("SEED", time.time()))
        print(f"SEED={seed}")
        until = time.monotonic() + SECONDS
        # Slot 0 has been used by the client itself.
        clients = [Slot(shared, i) for i in range(1, SLOTS + 1)] + others
        workers = [Worker(c, root, seed + i, until) for i, c in enumerate(clients)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        print(f"{sum(w.calls for w in workers)} calls, {sum(w.granted for w in workers)} of them granted")
        t.equal("what was not to be expected", [w.unexpected[:3] for w in workers if w.unexpected], [])
        for c in clients:
            c.conn.close()
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
