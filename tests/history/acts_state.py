# SPDX-License-Identifier: BSD-2-Clause
"""Acts of clients on state: locks, opens that deny, and delegations of files and directories, over restarts and lost leases.

Under a lock for writing a client adds one to counters, each step by the lock's stateid: what a client does that has lost its lock must not
count. Under a delegation it believes what it has read, without asking, and writes each belief down as a read.
"""
import time

import clients
import nfs4client as n4
from acts import SIZE, SLOTS, Worker, created, reg, timed, value, values
from linear import LNK
from record import NEVER, now
from wire import KerberosWire, Lost, RdmaWire, Restarted, UdpWire

RANGE, RANGES = 64, 3  # bytes that one counter's lock covers; counters
FILES = DIRS = SIZES = 100  # for delegations


class StateWorker(Worker):
    run_of_state = None

    def reclaim_all(self):
        """After register(): what the client held comes back only from a server that has restarted."""
        lock, share = self.lock, self.share
        restarted, self.run_of_state = self.run_of_state != self.c.run, self.c.run
        if not restarted:
            self.lose("lease")
            self.lock = self.share = None
            return
        if share:
            status, _, _, _, state = self.c.reclaim(share["fh"], share["fact"]["access"], share["fact"]["deny"])
            self.h.count("share reclaimed: " + status)
            if status == "ok":
                share["state"], share["fact"]["end"] = state, now()
            else:
                self.share = None
        if lock:
            status, _, _, _, lock["state"] = self.c.reclaim(lock["fh"], 3)
            if status == "ok" and self.held:
                f = self.held["fact"]
                status, _, self.held["state"] = self.c.lock(lock["fh"], lock["state"], f["kind"], f["offset"], f["size"], True)
                if status == "ok":
                    f["end"] = now()
                else:
                    self.lose("reclaim " + status)
            elif status != "ok":
                self.lose("reclaim " + status)
                self.lock = None
            self.h.count("lock reclaimed: " + status)

    def hold(self, seconds):
        """Keeps what the client has for a while, and its lease."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and (self.held or self.share):
            time.sleep(0.01)
            if self.guard(self.c.renew) and not (self.c.minor and self.c.flags & 0x38):
                for x in filter(None, (self.held, self.share)):
                    x["fact"]["end"] = now()

    # --- locks ---

    def lose(self, why):
        if self.held:
            self.h.count("lock lost: " + why)
            self.held = None

    def can_lock(self):
        """Locks of NFSv3 and of local processes are not claimed back here. NLM goes neither over the fabric nor with Kerberos."""
        if self.v4 or (self.linux and self.c.v4):
            return True
        return self.world.profile["local_locks"] and not isinstance(self.c.wire, (RdmaWire, KerberosWire))

    def take(self, asked):
        """(status, state of the lock) of the bytes that are asked for."""
        what = asked["kind"], asked["offset"], asked["size"]
        if not self.v4:
            return self.c.lock("lock", *what)
        try:
            status, _, state = self.c.lock(self.lock["fh"], self.lock["state"], *what)
            return status, state
        except (Restarted, Lost):  # nobody knows whether it was given
            self.h.add("lock", start=NEVER, end=NEVER, rel=NEVER, **asked)
            raise

    def critical(self):
        """Adds one to the counters under a lock, or holds a lock to read."""
        if not self.can_lock():
            return None
        wide, k = self.rng.random() < 0.2, self.rng.randrange(RANGES)
        offset, size, counters = (0, RANGE * RANGES, range(RANGES)) if wide else (RANGE * k, RANGE, [k])
        kind = self.rng.choice((n4.WRITE_LT, n4.WRITE_LT, n4.READ_LT))
        if self.v4 and not self.lock:
            status, _, fh, _, state = self.c.open("root", "lock", 3)
            if status != "ok":
                return self.wrong("the lock file cannot be opened", status)
            self.lock = {"fh": fh, "state": state}
        fact = dict(who=f"{self.who} {self.c.state}" if self.v3 else self.who, offset=offset, size=size, kind=kind, inv=now())
        status, state = self.take(fact)
        ret = now()
        if status == "DENIED":
            return self.h.add("denied", ret=ret, **fact)
        if status in clients.GONE:
            self.lock = None
            return self.h.count("lock " + status)
        if status != "ok":
            return self.wrong("LOCK fails", status)
        self.h.count("locks")
        fact = self.h.add("lock", start=ret, end=ret, rel=NEVER, **fact)
        counters = counters if kind == n4.WRITE_LT else ()
        return self.critical_v4(fact, state, counters) if self.v4 else self.critical_plain(fact, state, counters)

    def critical_v4(self, fact, state, counters):
        """A lock of NFSv4, which goes with its lease. run() releases it."""
        self.held = {"state": state, "fact": fact}
        for c in counters:
            if self.held:
                self.add_one(c)
        if self.held and self.world.profile.get("grace") and self.rng.random() < 0.3:
            self.hold(self.rng.choice((0.05, 0.3, 1.5)))

    def critical_plain(self, fact, state, counters):
        """A lock of NFSv3 or of a local process, which is not taken away; not by a second notice of a reboot either."""
        monitored = self.v3 and not isinstance(self.c.wire, UdpWire)
        if monitored and self.rng.random() < 0.1:
            self.c.notify()
        for c in counters:
            if not self.add_plain(fact, c):
                break
        if not self.linux:
            fact["end"] = now()
        if self.by_path:
            self.c.unlock(state)
        elif monitored and self.rng.random() < 0.1:
            self.h.count("NLM clients that reboot")
            self.c.state += 2
            self.c.wire.forget()
            self.c.notify()
            fact["told"] = now()
            return
        elif (status := self.c.unlock("lock", fact["kind"], fact["offset"], fact["size"])) != "ok":
            self.wrong("NLM's UNLOCK fails", status)
        fact["rel"] = now()

    def add_plain(self, fact, k):
        """False if Linux's client has lost the lock, which it says by EIO."""
        status, data, _ = self.c.read("lock", RANGE * k, 8)
        if read := status == "ok":
            time.sleep(self.rng.random() * 0.01)
            asked = now()
            status, _ = self.c.write("lock", RANGE * k, (int.from_bytes(data, "big") + 1).to_bytes(8, "big"), self.how())
        if status == "ok":
            fact["end"] = asked  # what is answered later was done at some time from then on: a server may stop in between
        elif self.linux and status == "IO":
            self.h.count("lock lost: IO")
        else:
            self.wrong("I/O under a lock fails", status)
        if read:
            self.h.add("added", counter=k, sure=status == "ok")
        return status == "ok"

    def under_lock(self, act):
        """act(stateid) of the lock; its answer, or None if the lock is gone."""
        held, asked = self.held, now()
        status, answer, *_ = act(held["state"][0])
        if status == "ok":
            if held is self.held:
                held["fact"]["end"] = asked  # as in add_plain()
            return answer
        if status not in clients.GONE:
            self.wrong("I/O by a lock fails", status)
        self.lock = None
        return self.lose(status)

    def add_one(self, k):
        data = self.under_lock(lambda stateid: self.c.read("lock", RANGE * k, 8, stateid))
        if data is None:
            return
        if self.rng.random() < 0.4:
            time.sleep(self.rng.random() * 0.01)
        elif self.rng.random() < self.world.profile.get("sleepy", 0):
            self.h.count("slept beyond the lease with a lock")
            time.sleep(5.5 + self.rng.random() * 2)
        after, unsure = (int.from_bytes(data, "big") + 1).to_bytes(8, "big"), False
        while self.held:
            try:
                if self.under_lock(lambda stateid: self.c.write("lock", RANGE * k, after, self.how(), stateid)):
                    self.h.add("added", counter=k, sure=True)
                    return
            except (Restarted, Lost):
                unsure = True
                self.recover()
        if unsure:
            self.h.add("added", counter=k, sure=False)

    def release(self):
        held, self.held = self.held, None
        fact, end = held["fact"], now()
        status = self.c.unlock(self.where["lock"][0], held["state"], fact["kind"], fact["offset"], fact["size"])
        if status == "ok":
            fact.update(end=end, rel=now())
        elif status in clients.GONE:
            self.lock = None
        else:
            self.wrong("LOCKU fails", status)

    # --- opens that deny ---

    def share_open(self):
        if self.v3:
            access = self.rng.choice((1, 2))
            inv, ret, status, *_ = timed(self.c.write, "share", 0, b"y" * 8, 2) if access == 2 else timed(self.c.read, "share", 0, 8)
            if status not in ("ok", "ACCES"):
                self.wrong("I/O fails", status)
            self.h.add("io", inv=inv, ret=ret, access=access, status=status, who=self.who)
        if not self.v4:
            return None
        access, deny, inv = self.rng.choice((1, 2, 3)), self.rng.choice((0, 0, 1, 2, 3)), now()
        fact = dict(inv=inv, access=access, deny=deny, who=self.who)
        try:
            status, _, fh, _, state = self.c.open("root", "share", access, deny)
        except (Restarted, Lost):
            self.h.add("share", start=NEVER, end=NEVER, rel=NEVER, **fact)
            raise
        if status == "SHARE_DENIED":
            self.h.add("share denied", ret=now(), **fact)
        if status != "ok":
            return status == "SHARE_DENIED" or self.wrong("OPEN fails", status)
        ret = now()
        fact = self.h.add("share", start=ret, end=ret, rel=NEVER, **fact)
        self.share = {"fh": fh, "state": state, "fact": fact}
        self.h.count("opens that may deny")
        if self.world.profile.get("grace"):
            self.hold(self.rng.choice((0.01, 0.05, 0.3, 1.5)))
        else:
            time.sleep(self.rng.random() * 0.01)
        if self.share and access & 2 and self.rng.random() < 0.5:
            def use():
                if self.c.write("share", 0, b"x" * 8, 2, self.share["state"][0])[0] == "ok":
                    fact["end"] = now()
            self.guard(use)
        if self.share:
            share, self.share, end = self.share, None, now()
            if self.c.close(fh, share["state"]) == "ok":
                fact.update(end=end, rel=now())

    # --- delegations ---

    def some(self, prefix, count):
        """A file or directory of that kind, rather one that somebody has delegated now."""
        held = [f for f in self.world.delegated if f.startswith(prefix)]
        return self.rng.choice(held) if held and self.rng.random() < 0.6 else f"{prefix}{self.rng.randrange(count)}"

    def poll(self, seconds):
        """Answers a call of the server's if one comes in time; False if there is no connection for it."""
        try:
            self.c.wire.poll_call(seconds)
            return True
        except (clients.r.Closed, OSError):
            return False

    def believe(self, f, data, fact, t):
        """Writes down as read at t whatever the holder knows."""
        for s in range(SLOTS):
            self.h.op(reg(f, s), t, t, ("read", data[s]), self.who + " delegated")
        fact["end"] = t
        self.h.count("reads under a delegation")

    def serving(self, run):
        return self.c.wire.server.run == run and self.c.wire.server.up.is_set()

    def delegation(self):
        f = self.some("dg", FILES)
        if not self.c.back:
            if not self.world.delegated and self.rng.random() < 0.7:
                return time.sleep(0.003)
            return self.rng.choices((self.write, self.truncate, self.read), (4, 1, 15))[0](f)
        if self.rng.random() < 0.1:
            return self.write(f)
        self.c.called.clear()
        status, op, fh, _, state = self.c.open("root", f, 3 if self.rng.random() < 0.35 else 1, want=0)
        if status != "ok":
            return self.wrong("OPEN fails", status)
        if op["delegation"] not in (n4.DELEGATE_READ, n4.DELEGATE_WRITE):
            return self.c.close(fh, state)
        t = now()
        fact = self.h.add("delegation", who=self.who, kind=op["delegation"], f=f, start=t, end=t, restarted=False)
        with self.world.holding(f):
            return self.hold_delegation(f, fh, op["deleg"], state, fact)

    def hold_delegation(self, f, fh, stateid, state, fact):
        status, data, _ = self.c.read(f, 0, SLOTS * SIZE, stateid)
        if status != "ok":
            return self.h.count("read by a delegation: " + status)
        data, run = values(data), self.c.wire.run
        end = time.monotonic() + self.rng.choice((0.005, 0.03, 0.1))
        while time.monotonic() < end and not self.c.recalled():
            self.poll(0.002)
            if not self.serving(run):
                if not (again := self.outlive(f, fh, data, fact)):
                    return None
                stateid, state, run = again
                end = time.monotonic() + 0.2
                continue
            if self.c.recalled():
                break
            if fact["kind"] == n4.DELEGATE_WRITE and self.rng.random() < 0.3:
                if not self.write_delegated(f, stateid, data):
                    break
            # A server that was stopped beyond the lease may have revoked the delegation.
            t = now()
            if self.serving(run) and not self.world.profile["stops"]:
                self.believe(f, data, fact, t)
        if self.c.recalled():
            self.h.count("recalled")
        self.h.count("DELEGRETURN " + self.c.delegreturn(fh, stateid))
        return self.c.close(fh, state)

    def write_delegated(self, f, stateid, data):
        s, new = self.rng.randrange(SLOTS), self.new_value()
        status = self.set_registers(f, {s: value(new)}, lambda: self.c.write(f, s * SIZE, new, self.how(), stateid))
        if status == "ok":
            data[s] = value(new)
        return status == "ok"

    def outlive(self, f, fh, data, fact):
        """The server is gone. The client believes what it has until it notices, and claims the delegation back: (stateid, open, run)."""
        if not self.world.profile["reclaim"]:
            return self.recover()
        fact["restarted"], end = True, time.monotonic() + self.rng.choice((0.02, 0.2, 0.6, 1.5))
        while time.monotonic() < end:
            time.sleep(0.01)
            self.believe(f, data, fact, now())
        while True:
            try:
                self.c.wire.connect()
                self.c.register()
                status, op, _, _, state = self.c.reclaim(fh, 3 if fact["kind"] == n4.DELEGATE_WRITE else 1, 0, fact["kind"], want=0)
                kept = status == "ok" and op["delegation"] == fact["kind"]
                self.h.count("delegation reclaimed: " + (status if status != "ok" or kept else "not given"))
                if kept:
                    self.believe(f, data, fact, now())
                self.c.reclaim_complete()
                return (op["deleg"], state, self.c.run) if kept else None
            except (Restarted, Lost):
                if time.monotonic() > self.end:
                    return None

    # --- sizes of files, which a client changes by itself while it has the file delegated to write ---

    def delegated_size(self):
        """NFSv3's clients see the server's size, so they have no part in this."""
        f, size = self.some("sz", SIZES), self.world.number()
        if not self.v4:
            return time.sleep(0.003)
        if self.c.back and f not in self.world.delegated:
            return self.hold_size(f)
        if self.rng.random() < 0.9:
            return self.getattr(f)
        got = self.attempt(f, lambda *_: ("write", size), lambda: (self.c.truncate(f, size),))
        if got and got[0] != "ok":
            self.wrong("SETATTR fails", got[0], f=f)
        return got and self.changed(f, *got[1:3])

    def hold_size(self, f):
        self.c.called.clear()
        status, op, fh, attrs, state = self.c.open("root", f, 3, want=0)
        if status != "ok" or op["delegation"] != n4.DELEGATE_WRITE or not attrs:
            self.h.count("no delegation to change a size: " + status)
            time.sleep(0.002)
            return status == "ok" and self.c.close(fh, state)
        with self.world.holding(f):
            return self.change_size(f, fh, op["deleg"], attrs, state)

    def change_size(self, f, fh, stateid, attrs, state):
        """Changes the size by itself. The server asks for it (CB_GETATTR); the file itself has it when the delegation is returned."""
        began, writes, end = now(), [], time.monotonic() + self.rng.choice((0.01, 0.05, 0.2))
        self.c.held[fh] = attrs["change"], attrs["size"]
        try:
            while time.monotonic() < end and not self.c.recalled() and self.poll(0.002):
                if self.rng.random() < 0.3:
                    inv, size = now(), self.world.number()
                    self.c.held[fh] = attrs["change"] + 1, size
                    writes.append((inv, now()))
                    self.h.op(f, *writes[-1], ("write", size), self.who + " delegated")
            self.h.count("CB_GETATTR", sum(c["op"] == n4.CB_GETATTR for c in self.c.called))
            if writes and (status := self.c.truncate(f, size, stateid)) != "ok":
                raise Lost("SETATTR by a delegation: " + status)
            while writes:
                self.changed(f, *writes.pop())
            self.h.count("DELEGRETURN " + self.c.delegreturn(fh, stateid))
            return self.c.close(fh, state)
        finally:
            if writes:  # they are lost, or not
                self.h.op(f, began, NEVER, ("write", attrs["size"]), self.who, must=False)
            self.c.held.pop(fh, None)

    # --- directories of three names, many of them ---

    def dir_delegation(self):
        d = self.some("dd", DIRS)
        if self.c.back and self.c.minor and self.rng.random() < 0.7:
            with self.world.holding(d):
                return self.hold_dir(d)
        i, j, act = self.rng.randrange(3), self.rng.randrange(3), self.rng.choice(("create", "remove", "lookup", "rename"))
        name = f"n{i}"
        if act == "create":
            tag = self.world.tag(LNK)
            return self.attempt(d, lambda *answer: created(i, tag, "guarded", *answer), lambda: self.c.create(d, name, LNK, "guarded", tag, None), what="new")
        if act == "remove":
            return self.attempt(d, lambda status, *_: ("remove", i, "any", status), lambda: self.c.remove(d, name, "file"))
        if act == "rename":
            return self.attempt(d, lambda status, *_: ("rename", i, j, status), lambda: self.c.rename(d, name, d, f"n{j}"))
        inv, ret, status, tag, _ = timed(self.c.lookup, d, name)
        return self.h.op(d, inv, ret, ("lookup", i, tag if status == "ok" else 0), self.who)

    def hold_dir(self, d):
        self.c.called.clear()
        stateid, run = self.c.dir_delegation(d), self.c.wire.run
        if not stateid:
            return self.h.count("no delegation of the directory")
        inv, ret, status, entries, _ = timed(self.c.list, d)
        names = dict(entries)
        if status == "ok":
            self.listed(d, inv, ret, names, "list")
            end = time.monotonic() + self.rng.choice((0.003, 0.02, 0.1))
            while time.monotonic() < end and not self.c.recalled():
                if not self.poll(0.001):
                    break
                t = now()
                if not self.serving(run) or self.c.recalled():
                    break
                self.listed(d, t, t, names, "delegated")
                self.h.count("listings under a delegation")
        return self.h.count("DELEGRETURN " + self.c.delegreturn(self.where[d][0], stateid))
