# SPDX-License-Identifier: BSD-2-Clause
"""Acts of clients on files and names. A client draws one act after another, and writes each down as facts of the history (record.py). Acts with
locks, opens and delegations are in acts_state.py.

Shared objects are few, so that clients meet: files of SLOTS registers each, and six NAMES in two directories. A value says who has written it, and an
object's owner says who has made it. Caching clients keep data, names and listings under a validator (change attribute, or size and times), as a real client does. As long as
the server shows the same validator they believe what they have, and a belief is written down as a read.
"""
import collections
import contextlib
import os
import threading
import time
import traceback

import clients
from by_path import Local
from linear import DIR, LNK, MAYBE, REG
from linux_client import Linux
from record import DEAD, now
from wire import Lost, RdmaWire, Restarted, Short, Stop

NAMES = [("A", "a"), ("A", "b"), ("A", "c"), ("A", "d"), ("B", "a"), ("B", "b")]
SLOTS, SIZE = 3, 16  # registers of a file, and bytes of each
BLOCK = 4096
COPIED = 17 << 20  # bytes of a COPY: the server makes those of more than 16 MiB in the background
EMPTY = ""  # of a register that holds no value
REFUSED = ("LOCKED", "ACCES", *clients.GONE)  # I/O that an open, a lock or a delegation of others keeps out


def value(data):
    return data.hex() if data and data.strip(b"\0") else EMPTY


def values(data):
    return [value(data[s * SIZE:(s + 1) * SIZE]) for s in range(SLOTS)]


def reg(f, slot):
    return f"{f}.{slot}"


def created(i, tag, mode, status, owner=None, *_):
    """The operation of such an answer. If the object was gone before its attributes were read, nobody knows whose it was."""
    return "create", i, tag, mode, tag if status != "ok" else -1 if owner is None else owner, status


def unanswered(e):
    """Of an operation that ended by Restarted or Lost: the run of the server that had it, and until when it may take effect."""
    return {"ret": e.bound, "run": e.run, "must": False} if isinstance(e, Restarted) else {"ret": now(), "must": False}


def timed(act, *args, **more):
    """(called, answered, *results) of act."""
    inv = now()
    results = act(*args, **more)
    return inv, now(), *results


class World:
    """Shared by all clients of a history. where: {key: (handle, path)} of directories and shared files."""

    def __init__(self, where, history, profile):
        self.where, self.history, self.profile = where, history, profile
        self.n, self.lock = 0, threading.Lock()
        self.handles = {}  # of objects, by tag
        self.made_twice = set()  # tags of exclusive creates that were sent again as new calls
        self.delegated = []  # files and directories that somebody holds now

    def number(self):
        with self.lock:
            self.n += 1
            return self.n

    @contextlib.contextmanager
    def holding(self, f):
        """Tells the other clients that f is delegated, so that they rather act on it."""
        self.delegated.append(f)
        try:
            yield
        finally:
            self.delegated.remove(f)

    def tag(self, kind):
        return 100000 + 4 * self.number() + kind

    def links(self, n):
        """Tags of n recent objects that can have several names."""
        return [t for t in list(self.handles)[-n:] if t & 3 != DIR and t not in self.made_twice]


class Worker(threading.Thread):
    """One client: acts by the profile's weights until the end."""

    share = lock = held = None

    def __init__(self, world, client, rng, end, name):
        super().__init__(daemon=True)
        self.world, self.c, self.rng, self.end, self.who = world, client, rng, end, name
        self.h, self.where = world.history.seen_by(client.wire, world.profile["dies"]), world.where
        self.v3, self.v4, self.linux = (isinstance(client, x) for x in (clients.V3, clients.V4, Linux))
        self.by_path = self.linux or isinstance(client, Local)
        self.acted = collections.defaultdict(lambda: collections.deque(maxlen=40))  # when, by object
        self.mine = []  # facts of names that are used once
        self.forget()

    def forget(self):
        self.files, self.dirs, self.found, self.unstable = {}, {}, {}, {}

    def wrong(self, what, status, **more):
        """An answer that nothing explains; None."""
        self.h.trouble(what, who=self.who, status=status, **more)

    def run(self):
        try:
            self.recover()
            acts, weights = zip(*self.world.profile["acts"].items())
            while time.monotonic() < self.end:
                self.guard(getattr(self, self.rng.choices(acts, weights)[0]))
                if self.held:
                    self.guard(self.release)
                time.sleep(self.rng.random() * self.world.profile.get("pace", 0.002 if self.by_path else 0))
        except Stop:
            pass
        except Exception as e:
            self.h.trouble("exception", who=self.who, text=repr(e), trace=traceback.format_exc()[-1500:])

    def guard(self, act):
        """act(); False if the server or the client's session has gone meanwhile."""
        try:
            act()
            return True
        except (Restarted, Lost) as e:
            self.h.count("restarted" if isinstance(e, Restarted) else f"lost: {e}")
            self.recover()
            return False

    def recover(self):
        """A new client id and session, and what the client held."""
        while self.v4:
            try:
                self.c.register()
                self.reclaim_all()
                self.c.reclaim_complete()
                return
            except (Restarted, Lost):
                time.sleep(0.01)

    def crash(self):
        """The client's machine goes without a word and comes again."""
        if self.linux:
            self.h.count("guests that crash")
            self.c.boot()
        if self.by_path:
            return
        self.h.count("client crashes")
        self.c.wire.forget()
        self.lose("crash")
        self.lock = self.share = None
        self.forget()
        if self.v4:
            self.c.verifier, self.c.session = os.urandom(8), None
            self.recover()

    def nap(self):
        time.sleep(self.rng.random() * 0.3)

    def longnap(self):
        """Beyond the lease."""
        time.sleep(5.2 + self.rng.random() * 2)

    def attempt(self, obj, describe, act, again=False, unsure=(), what=""):
        """Writes down an operation: describe(answer of act), if there is something to say. (status, inv, ret, further results), or None if there was no answer.
        unsure: errors of Linux's client that say nothing, as it found something, and something else a call later; such are ENOENT of O_CREAT and ESTALE."""
        inv = now()
        try:
            status, *more = act()
        except (Restarted, Lost) as e:
            self.h.op(obj, inv, op=describe(MAYBE), who=self.who, **unanswered(e))
            self.h.count("no answer")
            self.recover()
            return self.attempt(obj, describe, act, unsure=unsure, what=what) if again and not isinstance(e, Short) and time.monotonic() < self.end else None
        ret = now()
        if status in ("NOSPC", "DQUOT"):
            self.h.count(status)
            return None
        if status in DEAD and self.world.profile["dies"]:  # nobody knows what is on the disk
            self.h.op(obj, inv, ret, describe(MAYBE), self.who, must=False)
            return self.h.count("answers of a dead disk")
        for bound in self.c.beside(inv, what):
            self.h.op(obj, inv, bound, describe(MAYBE, *more), self.who, must=False)
        self.acted[obj].append((inv, ret))
        known = not (self.linux and status in ("STALE", *unsure))
        self.h.op(obj, inv, ret, describe(status if known else MAYBE, *more), self.who, must=known)
        return status, inv, ret, more

    def changed(self, key, inv, ret):
        self.h.add("change", obj=key, inv=inv, ret=ret)

    def getattr(self, key):
        """(validator, inv, ret), or None"""
        inv, ret, status, a = timed(self.c.getattr, self.where[key][0])
        if status != "ok":
            return self.wrong("GETATTR fails", status, f=key)
        self.h.add("attr", obj=key, inv=inv, ret=ret, change=a["change"], ctime=a["ctime"], mtime=a["mtime"])
        if key.startswith("sz"):
            self.h.op(key, inv, ret, ("read", a["size"]), self.who)
        return self.c.validator(a), inv, ret

    # --- registers: parts of shared files ---

    def some_file(self):
        return f"f{self.rng.randrange(self.world.profile['files'])}"

    def how(self):
        """The stability that a write asks for. A power cut may take a value that others have seen, unless it is on the disk before; or its time,
        if only the data are (DATA_SYNC)."""
        return 2 if self.world.profile["cuts power"] else self.rng.choice((0, 0, 1, 2))

    def new_value(self):
        return b"%8.8s" % self.who.encode() + self.world.number().to_bytes(8, "big")

    def set_registers(self, f, wanted, act, changes=True, partly=("NOSPC",)):
        """act sets registers, {slot: value}. changes: the file's attributes tell of it in any case. partly: errors with which it may have set some."""
        inv, lost = now(), None
        try:
            status, stable = act()
        except (Restarted, Lost) as e:
            status, stable, lost = None, None, unanswered(e)
        ret = now()
        self.acted[f].append((inv, ret))
        if status in (None, "ok", *partly) or (status in DEAD and self.world.profile["dies"]):  # a full or dying disk may take a part
            for s, v in wanted.items():
                for bound in self.c.beside(inv, "write"):
                    self.h.op(reg(f, s), inv, bound, ("write", v), self.who, must=False)
                self.h.op(reg(f, s), inv, op=("write", v), who=self.who, **lost or {"ret": ret, "must": status == "ok"})
        elif status in REFUSED:
            self.h.count("write " + status)
        else:
            self.wrong("write fails", status, f=f)
        if status == "ok" and changes:
            self.changed(f, inv, ret)
        if stable:
            self.h.add("verifier", run=self.c.wire.run, verifier=stable[0].hex())
            if stable[1] == 0:
                self.unstable[f] = True
        if lost:
            self.recover()
        return status

    def write(self, f=None):
        f, s, data = f or self.some_file(), self.rng.randrange(SLOTS), self.new_value()
        how = self.how()
        if self.v4 and self.c.minor == 2 and self.rng.random() < 0.15:
            return self.set_registers(f, {s: EMPTY}, lambda: self.c.deallocate(f, s * SIZE, SIZE), changes=False)
        if not self.v4 or self.rng.random() < 0.5:
            return self.set_registers(f, {s: value(data)}, lambda: self.c.write(f, s * SIZE, data, how))
        opened = []

        def act():
            inv, ret, status, _, fh, _, state = timed(self.c.open, "root", f, self.rng.choice((2, 3)))
            if status != "ok":
                return status, None
            opened.append((fh, state))
            self.h.add("open", f=f, who=self.who, inv=inv, ret=ret)
            return self.c.write(f, s * SIZE, data, how, state[0])
        self.set_registers(f, {s: value(data)}, act)
        for fh, state in opened:
            self.guard(lambda: self.c.close(fh, state))

    def block(self):
        """All registers by one call."""
        f, data = self.some_file(), [self.new_value() for _ in range(SLOTS)]
        whole = b"".join(data).ljust(BLOCK, b"\0")
        if self.rng.random() < 0.5 or isinstance(self.c.wire, RdmaWire):  # whose calls are inline only
            return self.read(f, len(whole))
        self.set_registers(f, dict(enumerate(map(value, data))), lambda: self.c.write(f, 0, whole, self.how()))

    def truncate(self, f=None):
        f = f or self.some_file()
        self.set_registers(f, dict.fromkeys(range(SLOTS), EMPTY), lambda: (self.c.truncate(f), None))

    def copy(self):
        """All registers by a COPY that is long enough to be made in the background, amid which the export may be taken away. Another one would be on no disk."""
        if not self.v4 or self.c.minor < 2 or not self.c.back or self.world.profile["cuts power"]:
            return self.read()
        f, source, data = self.some_file(), f"src{self.who[0]}", [self.new_value() for _ in range(SLOTS)]
        status, _ = self.c.write(source, 0, b"".join(data), 2)
        if status != "ok":
            return self.h.count("no copy: " + status)
        self.c.called.clear()
        self.set_registers(f, dict(enumerate(map(value, data))), lambda: (self.c.copy(source, f, COPIED), None), partly=("NOSPC", "STALE"))
        return self.h.count("copies in the background", sum(c["op"] == clients.n4.CB_OFFLOAD for c in self.c.called))

    def commit(self):
        if self.unstable:
            f, _ = self.unstable.popitem()
            status, verifier = self.c.commit(f)
            if status != "ok":
                return self.wrong("COMMIT fails", status)
            self.h.add("verifier", run=self.c.wire.run, verifier=verifier.hex())

    def read(self, f=None, size=SLOTS * SIZE):
        """Returns the values and the validator that came with them, or None."""
        f = f or self.some_file()
        plus = {"plus": True} if self.v4 and self.c.minor == 2 and self.rng.random() < 0.4 else {}
        inv, ret, status, data, validator = timed(self.c.read, f, 0, size, **plus)
        if status == "ok":
            got = values(data)
            for s in range(SLOTS):
                self.h.op(reg(f, s), inv, ret, ("read", got[s]), self.who, **self.cached(f, reg(f, s), got[s], inv, ret))
            self.acted[f].append((inv, ret))
            return got, validator
        if status in REFUSED:
            return self.h.count("read " + status)
        return self.wrong("read fails", status, f=f)

    def cached(self, obj, key, answer, inv, ret):
        """Linux's client may have what it answers of an object from its cache: by any of its acts since it has last answered something else. O_DIRECT
        passes the cache by."""
        if not self.linux or (self.c.looks_up if obj == "ns" else self.c.direct):
            return {}
        known, since, last = self.found.get(key, (None, 0, 0))
        self.found[key] = answer, since if known == answer else last, ret
        return {"fetches": [w for w in (*self.acted[obj], (inv, ret)) if w[1] > self.found[key][1]]}

    def cached_read(self):
        if self.by_path:
            return self.read()
        f = self.some_file()
        if not (seen := self.getattr(f)):
            return None
        validator, inv, ret = seen
        kept = self.files.get(f)
        if kept and kept[0] == validator:
            self.h.count("cached reads")
            for s in range(SLOTS):
                self.h.op(reg(f, s), inv, ret, ("read", kept[1][s]), self.who + " cached", fetch=kept[2])
            return None
        if (got := self.read(f)) and got[1] == validator:
            self.files[f] = validator, got[0], (inv, now())
        return None

    # --- names; each object knows its maker ---

    def edit(self, d, change, edit):
        """A change of the client's own: it keeps a listing if the server says that nobody else has changed the directory."""
        if d in self.dirs and change and change[0] == self.dirs[d][0]:
            edit(self.dirs[d][1])
            self.dirs[d] = change[1], self.dirs[d][1]
            self.h.count("listings kept over a change")
        else:
            self.dirs.pop(d, None)

    def some_name(self):
        i = self.rng.randrange(len(NAMES))
        return i, *NAMES[i]

    def create(self):
        i, d, name = self.some_name()
        kind = self.rng.choice((REG, REG, REG, DIR, LNK))
        mode = self.rng.choice(("exclusive" if self.linux else "guarded", "exclusive", "unchecked")) if kind == REG else "guarded"
        tag, verifier = self.world.tag(kind), os.urandom(8)
        if mode == "exclusive" or self.linux:
            self.world.made_twice.add(tag)

        def describe(status, owner=None, fh=None, change=None):
            if status == "ok" and fh and owner:
                self.world.handles[owner] = fh
            return created(i, tag, mode, status, owner)
        got = self.attempt("ns", describe, lambda: self.c.create(d, name, kind, mode, tag, verifier), mode == "exclusive", ("NOENT",), "new")
        if got and got[0] == "ok" and got[3][0] == tag:
            self.changed(d, *got[1:3])
            self.edit(d, got[3][2], lambda names: names.update({name: tag}))

    def remove(self):
        i, d, name = self.some_name()
        kind = "any" if self.v4 else self.rng.choice(("file", "file", "dir"))
        taken = "any" if self.linux and self.c.v4 else kind  # the client looks what it is, and then REMOVE takes what it is by then
        got = self.attempt("ns", lambda status, *_: ("remove", i, taken if status in ("ok", MAYBE) else kind, status), lambda: self.c.remove(d, name, kind), True)
        if got and got[0] == "ok":
            self.changed(d, *got[1:3])
            self.edit(d, got[3][0], lambda names: names.pop(name, None))

    def rename(self):
        (i, d, name), (j, e, other) = self.some_name(), self.some_name()
        got = self.attempt("ns", lambda status, *_: ("rename", i, j, status), lambda: self.c.rename(d, name, e, other), True, ("EXIST", "ISDIR", "NOTDIR", "NOTEMPTY"))
        if not got or got[0] != "ok":
            return
        changes, kept = got[3][0] or (None, None), (self.dirs.get(d), self.dirs.get(e))
        if not all(kept) or not all(c and c[0] == k[0] for c, k in zip(changes, kept)):
            self.dirs.pop(d, None), self.dirs.pop(e, None)
        else:
            if kept[0][1].get(name) != kept[1][1].get(other):
                kept[1][1][other] = kept[0][1].pop(name, 0)
            self.dirs[d], self.dirs[e] = (changes[0][1], kept[0][1]), (changes[1][1], kept[1][1])

    def link(self):
        j, d, name = self.some_name()
        tags = self.world.links(12)
        if self.linux:
            _, e, other = self.some_name()
            self.attempt("ns", lambda status, tag: None if tag is None or tag & 3 == DIR else ("link", tag, j, status), lambda: self.c.link(e, other, d, name), what="new")
        if self.by_path or not tags:
            return
        tag = self.rng.choice(tags)
        got = self.attempt("ns", lambda status, *_: ("link", tag, j, status), lambda: self.c.link(self.world.handles[tag], d, name), True)
        if got and got[0] == "ok":
            self.edit(d, got[3][0], lambda names: names.update({name: tag}))

    def lookup(self):
        """(index of the name, tag or 0, inv, ret), or None"""
        i, d, name = self.some_name()
        inv, ret, status, tag, fh = timed(self.c.lookup, d, name)
        if self.linux and status == "STALE":
            return self.h.count("STALE")
        if status not in ("ok", "NOENT"):
            return self.wrong("LOOKUP fails", status)
        tag = tag if status == "ok" else 0
        if tag > 0 and fh:
            self.world.handles[tag] = fh
        self.h.op("ns", inv, ret, ("lookup", i, tag), self.who, **self.cached("ns", i, tag, inv, ret))
        self.acted["ns"].append((inv, ret))
        return i, tag, inv, ret

    def cached_lookup(self):
        """Names that are not there are kept, too."""
        if self.by_path or not self.found or self.rng.random() < 0.3:
            d = self.rng.choice("AB")
            before = None if self.by_path else self.getattr(d)
            found = self.lookup()
            if before and found and found[1] >= 0 and NAMES[found[0]][0] == d and (after := self.getattr(d)) and after[0] == before[0]:
                self.found[found[0]] = before[0], found[1], (before[1], after[2])
            return
        i = self.rng.choice(list(self.found))
        validator, tag, fetch = self.found[i]
        if seen := self.getattr(NAMES[i][0]):
            if seen[0] != validator:
                del self.found[i]
            else:
                self.h.count("cached names" if tag else "cached names that are not there")
                self.h.op("ns", seen[1], seen[2], ("lookup", i, tag), self.who + " cached", fetch=fetch)

    def nlink(self):
        tags = self.world.links(8)
        if self.by_path or not tags:
            return
        tag = self.rng.choice(tags)
        inv, ret, status, a = timed(self.c.getattr, self.world.handles[tag])
        if status not in ("ok", "STALE"):
            self.wrong("GETATTR fails", status)
        elif status == "ok" and a["uid"] != tag:
            self.h.trouble("a handle names another file", who=self.who, tag=tag, uid=a["uid"])
        else:
            self.h.op("ns", inv, ret, ("nlink", tag, a["nlink"] if status == "ok" else 0), self.who)

    def listed(self, obj, inv, ret, names, what, d=None, **more):
        """Writes down each name of a listing as a lookup."""
        for i, (in_dir, name) in enumerate(NAMES) if d else enumerate((None, f"n{i}") for i in range(3)):
            if in_dir == d:
                self.h.op(obj, inv, ret, ("lookup", i, names.get(name, 0)), self.who + " " + what, **more)

    def list(self):
        d = self.rng.choice("AB")
        inv, ret, status, entries, validator = timed(self.c.list, d)
        if status != "ok":
            return self.wrong("listing fails", status)
        names = dict(entries)
        self.acted["ns"].append((inv, ret))
        if len(names) != len(entries):
            self.h.trouble("a name twice in one reply", who=self.who, names=entries)
        self.listed("ns", inv, ret, names, "list", d)
        if validator and -1 not in names.values():
            self.dirs[d] = validator, names

    def cached_list(self):
        if self.by_path or not self.dirs:
            return self.list()
        d = self.rng.choice(list(self.dirs))
        if not (seen := self.getattr(d)):
            return None
        if self.dirs[d][0] != seen[0]:
            del self.dirs[d]
            return None
        self.h.count("cached listings")
        self.listed("ns", seen[1], seen[2], self.dirs[d][1], "cached", d)

    # --- a large directory of names that are used once ---

    def once(self):
        """Makes such a name, or removes one of its own."""
        mine = [f for f in self.mine if f["gone_inv"] is None]
        if mine and self.rng.random() < (0.5 if len(mine) < 60 else 0.9):
            f = self.rng.choice(mine)
            f["gone_inv"] = now()
            status, _ = self.c.remove("big", f["name"], "file")
            if status != "ok" and not (status == "NOENT" and self.c.beside(f["gone_inv"])):
                return self.wrong("a name of one's own cannot be removed", status, name=f["name"])
            f["gone_ret"] = now()
            return None
        name = f"v{self.world.number():06d}"
        f = self.h.add("name", name=name, who=self.who, inv=now(), ret=None, gone_inv=None, gone_ret=None)
        status, *_ = self.c.create("big", name, LNK, "guarded", 0, None)
        if status == "ok" or (status == "EXIST" and self.c.beside(f["inv"])):
            f["ret"] = now()
            self.mine.append(f)
        elif status == "NOSPC":
            f["gone_ret"] = now()
        else:
            self.wrong("a new name cannot be made", status, name=name)

    def list_big(self):
        inv, ret, status, entries, _ = timed(self.c.list, "big", self.rng)
        if status == "ok":
            self.h.add("listing", who=self.who, inv=inv, ret=ret, names=[name for name, _ in entries])
        elif status in ("BAD_COOKIE", "NOT_SAME"):
            self.h.count(status)
        else:
            self.wrong("listing fails", status)
