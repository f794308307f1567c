#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""CB_NOTIFY over TCP: holders of directory delegations are told of changes by others and of their own, in order, instead of a recall;
what is not told recalls; holders that are slow, answer with errors or not at all; a flood of changes."""
import os
import struct
import threading
import time

import harness
import nfs4client as n4
import rpcclient as r
from delegations import Other, new_client
from dir_delegations import PROMISED, SETTINGS, WATCHED, chmod4, contenders, link4, make, mkdir4, remove4, rename4
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

LEASE = SETTINGS["nfs4.lease_time"]
ENTRIES = (n4.ADDED, n4.REMOVED, n4.RENAMED)
FLOOD = 10000
CHANGE, SIZE, TYPE, FSID, FILEHANDLE, FILEID, MODE, TIME_MODIFY = 3, 4, 1, 8, 19, 20, 33, 53
GETATTR = 9
SERVERFAULT, BADHANDLE = 10006, 10001


def words(*attributes):
    out = [0, 0, 0]
    for a in attributes:
        out[a // 32] |= 1 << a % 32
    return out


class Holder:
    """A fresh directory, and a client that has a delegation of it with notifications."""

    def __init__(self, t, d, c, name, export="one", **asked):
        self.t, self.c, self.path = t, c, make(d, name, export)
        self.fh = c.path(self.path)
        end = time.monotonic() + 4 * LEASE
        asked = {"notices": ENTRIES, **asked}
        self.res = c.dir_delegation(self.fh, **asked)
        while self.res.get("gdd") != 0 and time.monotonic() < end:  # the memory of recalls is shared
            time.sleep(0.5)
            self.res = c.dir_delegation(self.fh, **asked)
        if not t.equal(f"{name} is delegated", (self.res["status"], self.res.get("gdd")), (n4.OK, 0)):
            raise SystemExit(f"{self.res}\n{d.read_log()}")
        self.deleg = self.res["deleg"]
        self.before = len(c.called)
        self.taken = 0

    def calls(self, op):
        return [x for x in self.c.called[self.before:] if x["op"] == op and x["stateid"] == self.deleg]

    def all_notifications(self):
        return [change for x in self.calls(n4.CB_NOTIFY) for change in x["changes"]]

    def notifications(self, n=1):
        """The next n changes."""
        while len(self.all_notifications()) < self.taken + n:
            was_call, data = self.c.conn.take_call()
            if not was_call:
                raise ValueError(f"a reply to nothing: {data[:16].hex()}")
        self.taken += n
        return self.all_notifications()[self.taken - n:self.taken]

    def names(self, n=1):
        return [named(x) for x in self.notifications(n)]

    def await_recall(self):
        while not self.calls(n4.CB_RECALL):
            self.c.conn.take_call()
        return self.calls(n4.CB_RECALL)[-1]

    def give_back(self):
        return self.c.delegreturn(self.fh, self.deleg)

    def is_kept(self, what):
        return self.t.equal(what, (self.calls(n4.CB_RECALL), self.c.test_stateid(self.deleg)), ([], [n4.OK]))


def named(change):
    """(kind, names) of a change."""
    kind, x = change
    if kind == n4.RENAMED:
        return kind, x["from"]["entry"][0].decode(), x["to"]["entry"][0].decode()
    return kind, x["entry"][0].decode()


def test_granted(t, d):
    c = new_client(d, "asking")
    everything = [0xffffffff] * 4
    for what, asked, want in (
            ("nothing", {"notices": ()}, [[], [], []]),
            ("entries", {}, [[0x1c], [], []]),
            ("one kind", {"notices": (n4.ADDED,)}, [[8], [], []]),
            ("what is not told", {"notices": (n4.CHILD_ATTRS, n4.VERIFIER)}, [[], [], []]),
            ("attributes of the directory without change", {"notices": (n4.DIR_ATTRS,), "directory": words(SIZE)}, [[], [], []]),
            ("attributes of entries that go only", {"notices": (n4.REMOVED,), "entry": words(FILEID)}, [[4], [], []]),
            ("everything", {"notices": range(32), "entry": everything, "directory": everything},
             [[0x1e], [0x180102], [0x18, 0x302008]])):
        h = Holder(t, d, c, "ask " + what, **asked)
        t.equal(what, h.res["notifications"], want)
        t.equal("DELEGRETURN", h.give_back(), n4.OK)
    c.close()


# What contenders() do, as it is told.
TOLD = {"OPEN that creates": [(n4.ADDED, "new")], "OPEN that creates, by 4.0": [(n4.ADDED, "new")], "CREATE": [(n4.ADDED, "new")],
        "LINK": [(n4.ADDED, "new")], "REMOVE": [(n4.REMOVED, "file")], "REMOVE of a directory": [(n4.REMOVED, "sub")],
        "RENAME": [(n4.RENAMED, "file", "new")], "RENAME into it": [(n4.ADDED, "new")], "RENAME out of it": [(n4.REMOVED, "file")],
        "NFSv3 CREATE": [(n4.ADDED, "new")], "NFSv3 MKDIR": [(n4.ADDED, "new")], "NFSv3 REMOVE": [(n4.REMOVED, "file")],
        "NFSv3 RENAME": [(n4.ADDED, "new")]}


def test_told(t, d):
    """By each kind of request of others, who wait for nobody."""
    c = new_client(d, "told")
    for i, (what, request) in enumerate(contenders(d)):
        if what not in TOLD:
            continue
        h = Holder(t, d, c, f"told{i}")
        by = c.path(h.path + ".beside")
        t.equal(what, request(f"told{i}", h.fh, by)["status"], n4.OK)
        t.equal(f"{what} is told", h.names(), TOLD[what])
        t.equal("of this directory", h.calls(n4.CB_NOTIFY)[0]["fh"], h.fh)
        t.equal("it refers to GET_DIR_DELEGATION", [session for session, _ in h.calls(n4.CB_NOTIFY)[0]["referring"]], [c.session])
        h.is_kept(f"{what} recalls nothing")
        h.give_back()
    c.close()


def test_wire(t, d):
    """Cookies and neighbours are not known; entries that are replaced are told with the new one."""
    c, other = new_client(d, "reads all"), new_client(d, "replaces", 1, n4.Client)
    h = Holder(t, d, c, "wire")
    by = c.path(h.path + ".beside")
    none = ([], b"")
    gone = {"entry": (b"old", *none), "cookie": 0}
    plain = {"old": [], "cookies": [], "previous": [], "last": False}
    mkdir4(other, h.fh, "new")
    rename4(other, h.fh, "file", h.fh, "old")
    rename4(other, by, "file", h.fh, "old")
    rename4(other, h.fh, "new", h.fh, "\u00fc" * 127)
    rename4(other, h.fh, "\u00fc" * 127, h.fh, "sub")
    remove4(other, h.fh, "old")
    long = ("\u00fc" * 127).encode()
    t.equal("changes", h.notifications(6), [
        (n4.ADDED, {**plain, "entry": (b"new", *none)}),
        (n4.RENAMED, {"from": {"entry": (b"file", *none), "cookie": 0}, "to": {**plain, "entry": (b"old", *none)}}),
        (n4.ADDED, {**plain, "old": [gone], "entry": (b"old", *none)}),
        (n4.RENAMED, {"from": {"entry": (b"new", *none), "cookie": 0}, "to": {**plain, "entry": (long, *none)}}),
        (n4.RENAMED, {"from": {"entry": (long, *none), "cookie": 0},
                      "to": {**plain, "old": [{"entry": (b"sub", *none), "cookie": 0}], "entry": (b"sub", *none)}}),
        (n4.REMOVED, gone)])
    link4(other, other.path(h.path + ".beside"), h.fh, "never")  # a directory has no links
    os.mkdir(h.path + ".beside/dir")
    file = other.open(h.fh, "a", create=True)[1]
    link4(other, file, h.fh, "b")
    t.equal("a RENAME between links of one file", rename4(other, h.fh, "a", h.fh, "b")["status"], n4.OK)
    remove4(other, h.fh, "b")
    t.equal("does nothing and tells nothing", h.names(3), [(n4.ADDED, "a"), (n4.ADDED, "b"), (n4.REMOVED, "b")])
    h.is_kept("it is kept")
    for x in (c, other):
        x.close()


def test_own(t, d):
    """The holder is told of entries that it changes itself, but not of attributes."""
    c = new_client(d, "own")
    h = Holder(t, d, c, "own", notices=(*ENTRIES, n4.DIR_ATTRS), directory=words(CHANGE), delay=60)
    for got in (mkdir4(c, h.fh, "a"), rename4(c, h.fh, "a", h.fh, "b"), chmod4(c, h.fh), remove4(c, h.fh, "b")):
        t.equal("a change by the holder", got["status"], n4.OK)
    while named(h.notifications()[0]) != (n4.REMOVED, "b"):
        pass
    told = [named(x) for x in h.all_notifications()]
    t.equal("entries", [x for x in told if x[0] != n4.DIR_ATTRS],
            [(n4.ADDED, "a"), (n4.RENAMED, "a", "b"), (n4.REMOVED, "b")])
    h.is_kept("it is kept")
    c.close()


def test_not_told(t, d):
    """Changes of a kind that the holder has not asked for recall, and so do changes of permissions."""
    c, other = new_client(d, "some"), new_client(d, "does others", 1, n4.Client)
    all_of_it = {"notices": (*ENTRIES, n4.DIR_ATTRS), "directory": words(CHANGE)}
    for what, asked, request in (
            ("REMOVE", {"notices": (n4.ADDED,)}, lambda h: remove4(other, h.fh, "file")),
            ("RENAME", {"notices": (n4.ADDED, n4.REMOVED)}, lambda h: rename4(other, h.fh, "file", h.fh, "new")),
            ("RENAME out of it", {"notices": (n4.ADDED, n4.RENAMED)},
             lambda h: rename4(other, h.fh, "file", other.path(h.path + ".beside"), "new")),
            ("SETATTR", {}, lambda h: chmod4(other, h.fh)),
            ("SETATTR of the mode", all_of_it, lambda h: chmod4(other, h.fh)),
            ("RENAME of it", all_of_it, lambda h: rename4(other, other.path(os.path.dirname(h.path)), os.path.basename(h.path),
                                                          other.path(h.path + ".beside"), "new"))):
        h = Holder(t, d, c, "not told " + what, **asked)
        waiting = Other(lambda: request(h))
        h.await_recall()
        t.check(f"{what} waits", waiting.is_waiting(), waiting.result)
        t.equal("DELEGRETURN", h.give_back(), n4.OK)
        t.equal(f"{what} goes on", waiting.end(), n4.OK)
        t.equal("nothing is told", h.all_notifications(), [])
    for x in (c, other):
        x.close()


def getattr4(c, fh, bitmap):
    x = c.conn.call(r.NFS, 4, 1, opaque(b"") + u32(1) + u32(3) + u32(n4.SEQUENCE) + c.session + u32(c.seqid + 1) + u32(0) + u32(0) +
                    u32(1) + u32(n4.PUTFH) + opaque(fh) + u32(GETATTR) + u32(len(bitmap)) + b"".join(map(u32, bitmap)))
    c.seqid += 1
    return x.data[-(len(x.data) - x.data.rindex(u32(GETATTR) + u32(0)) - 8):]


def test_attributes(t, d):
    """Handles of new entries are those of a LOOKUP; attributes of the directory are those of a GETATTR."""
    c, other = new_client(d, "attributes"), new_client(d, "changes attributes", 1, n4.Client)
    mask, of_dir = words(TYPE, FSID, FILEHANDLE, FILEID, MODE), words(CHANGE, SIZE, TIME_MODIFY)
    h = Holder(t, d, c, "attributes", notices=(*ENTRIES, n4.DIR_ATTRS), entry=mask, directory=of_dir)
    t.equal("granted", h.res["notifications"], [[0x1e], words(TYPE, FSID, FILEHANDLE, FILEID)[:1], of_dir[:2]])
    mkdir4(other, h.fh, "made")
    made, of = h.notifications(2)
    name, bitmap, values = made[1]["entry"]
    fh = c.path(h.path + "/made")
    x = r.In(values)
    t.equal("the new entry", (name, bitmap, x.u32(), (x.u64(), x.u64())[1], x.opaque(), x.u64()),
            (b"made", words(TYPE, FSID, FILEHANDLE, FILEID)[:1], 2, 0, fh, os.stat(h.path + "/made").st_ino))
    x.end()

    def as_getattr(change):
        n, b, v = change[1]["entry"]
        return n, u32(len(b)) + b"".join(map(u32, b)) + opaque(v)

    t.equal("the directory", (of[0], as_getattr(of)), (n4.DIR_ATTRS, (b"", getattr4(c, h.fh, of_dir))))
    now = u32(2) + u32(0) + u32(1 << 54 - 32) + opaque(u32(0))  # time_modify_set: the server's time
    t.equal("SETATTR of the time", other.last(n4.putfh(h.fh), (n4.SETATTR, n4.ANONYMOUS + now))["status"], n4.OK)
    of, = h.notifications()
    t.equal("is told", (of[0], as_getattr(of)), (n4.DIR_ATTRS, (b"", getattr4(c, h.fh, of_dir))))
    rename4(other, h.fh, "made", h.fh, "moved")
    moved, _ = h.notifications(2)
    t.equal("a directory that is moved has none", moved[1]["to"]["entry"], (b"moved", [], b""))
    rename4(other, h.fh, "file", h.fh, "renamed")
    moved, _ = h.notifications(2)
    t.check("a file has", c.path(h.path + "/renamed") in moved[1]["to"]["entry"][2], moved)
    h.is_kept("it is kept")
    for x in (c, other):
        x.close()


def test_delay(t, d):
    """Attributes wait for as long as the client says: of many changes the last is told, with the next change of an entry at the latest."""
    c, other = new_client(d, "patient"), new_client(d, "sets the time", 1, n4.Client)
    h = Holder(t, d, c, "delay", notices=(*ENTRIES, n4.DIR_ATTRS), directory=words(CHANGE), delay=3600)
    now = u32(2) + u32(0) + u32(1 << 54 - 32) + opaque(u32(0))
    for _ in range(20):
        other.last(n4.putfh(h.fh), (n4.SETATTR, n4.ANONYMOUS + now))
    mkdir4(other, h.fh, "a")
    t.equal("told once", [named(x) for x in h.notifications(2)], [(n4.ADDED, "a"), (n4.DIR_ATTRS, "")])
    h.give_back()
    h = Holder(t, d, c, "delay of a second", notices=(*ENTRIES, n4.DIR_ATTRS), directory=words(CHANGE), delay=1)
    other.last(n4.putfh(h.fh), (n4.SETATTR, n4.ANONYMOUS + now))
    t.equal("told by itself", h.names(), [(n4.DIR_ATTRS, "")])
    h.is_kept("it is kept")
    for x in (c, other):
        x.close()


class Reader(threading.Thread):
    """Reads what comes for a client until it is told to end."""

    def __init__(self, c):
        super().__init__(daemon=True)
        self.c, self.ended = c, False
        self.start()

    def run(self):
        self.c.conn.s.settimeout(0.1)
        while not self.ended:
            try:
                self.c.conn.take_call()
            except TimeoutError:
                pass

    def end(self, until):
        end = time.monotonic() + 60
        while not until() and time.monotonic() < end:
            time.sleep(0.05)
        self.ended = True
        self.join()
        self.c.conn.s.settimeout(60)


def apply(names, notifications):
    """A listing of names after the changes. KeyError: they are not in order."""
    names = set(names)
    for kind, name, *to in map(named, notifications):
        if kind == n4.ADDED:
            if name in names:
                raise KeyError(f"{name} is added twice")
            names.add(name)
        else:
            names.remove(name)
            names.update(to)
    return sorted(names)


def test_order(t, d):
    """Several clients make and remove the same names at the same time: the listing that the holder keeps is the directory's."""
    c = new_client(d, "keeps a listing")
    h = Holder(t, d, c, "order")
    others = [new_client(d, f"contends {i}", 1, n4.Client) for i in range(4)]
    before = os.listdir(h.path)
    reader = Reader(c)

    def change(other):
        for _ in range(100):
            other.compound(n4.putfh(h.fh), (n4.CREATE, u32(2) + r.name("x") + u32(0) + u32(0)))
            other.compound(n4.putfh(h.fh), (n4.SAVEFH, b""), (n4.RENAME, r.name("x") + r.name("y")))
            other.compound(n4.putfh(h.fh), (n4.REMOVE, r.name("y")))

    threads = [threading.Thread(target=change, args=(x,)) for x in others]
    for x in threads:
        x.start()
    for x in threads:
        x.join()
    mkdir4(others[0], h.fh, "the end")
    reader.end(lambda: h.calls(n4.CB_RECALL) or (n4.ADDED, "the end") in map(named, h.all_notifications()))
    if not h.calls(n4.CB_RECALL):
        t.equal("the listing", apply(before, h.all_notifications()), sorted(os.listdir(h.path)))
    t.check(f"{len(h.all_notifications())} changes in order", apply(before, h.all_notifications()) and len(h.all_notifications()) >= 20)
    for x in (c, *others):
        x.close()


def rename_many(c, fh, first, n):
    """RENAMEs from one number to the next, twelve to a COMPOUND: the number reached."""
    while first < n:
        upto = min(n, first + 12)
        ops = [(n4.RENAME, r.name(str(i)) + r.name(str(i + 1))) for i in range(first, upto)]
        results = c.compound(n4.putfh(fh), (n4.SAVEFH, b""), *ops)
        done = [x for x in results if x["op"] == n4.RENAME and x["status"] == n4.OK]
        first += len(done)
        if len(done) < len(ops):
            break
    return first


def test_flood(t, d):
    """Changes in order without a gap; those that are too many recall the delegation, and what is told until then is in order, too."""
    c, other = new_client(d, "flooded"), new_client(d, "floods", 1, n4.Client)
    h = Holder(t, d, c, "flood", "three")
    os.rename(h.path + ".beside/file", h.path + ".beside/0")
    rename4(other, c.path(h.path + ".beside"), "0", h.fh, "0")
    h.notifications()
    reader = Reader(c)
    at = 0
    end = time.monotonic() + 120
    while at < FLOOD and time.monotonic() < end and not h.calls(n4.CB_RECALL):
        at = rename_many(other, h.fh, at, FLOOD)
    reader.end(lambda: h.calls(n4.CB_RECALL) or len(h.all_notifications()) > at)
    told = [named(x) for x in h.all_notifications()[1:]]
    t.equal("in order", told, [(n4.RENAMED, str(i), str(i + 1)) for i in range(len(told))])
    print(f"# {len(told)} of {at} changes were told in {len(h.calls(n4.CB_NOTIFY))} calls,"
          f" {'then it was recalled' if h.calls(n4.CB_RECALL) else 'all of them'}", flush=True)
    if h.calls(n4.CB_RECALL):
        t.equal("DELEGRETURN", h.give_back(), n4.OK)
        at = rename_many(other, h.fh, at, FLOOD)
    else:
        t.equal("all of them", len(told), FLOOD)
        h.is_kept("it is kept")
    t.equal("all were made", (at, os.path.exists(f"{h.path}/{FLOOD}")), (FLOOD, True))
    for x in (c, other):
        x.close()


def test_errors(t, d):
    """A holder that is busy is told again; one that cannot be told gets a recall, and nobody waits longer than for that."""
    other = new_client(d, "does not care", 1, n4.Client)
    for status, again in ((n4.DELAY, True), (n4.BAD_STATEID, True), (SERVERFAULT, False), (10004, False)):
        c = new_client(d, f"answers {status}")
        h = Holder(t, d, c, f"answer {status}")
        c.cb_status = status
        t.equal("CREATE", mkdir4(other, h.fh, "a")["status"], n4.OK)
        t.equal("told", h.names(), [(n4.ADDED, "a")])
        c.cb_status = n4.OK
        if again:
            t.equal("CREATE", mkdir4(other, h.fh, "b")["status"], n4.OK)
            t.equal(f"told again after {status}, with what has happened since", h.names(2), [(n4.ADDED, "a"), (n4.ADDED, "b")])
            h.is_kept("it is kept")
        else:
            h.await_recall()
            waiting = Other(lambda: mkdir4(other, h.fh, "b"))
            t.check("a further change waits", waiting.is_waiting(), waiting.result)
            t.equal("DELEGRETURN", h.give_back(), n4.OK)
            t.equal("and goes on", waiting.end(), n4.OK)
        c.close()
    other.close()


def test_silent(t, d):
    """A holder that never answers loses the delegation; the change is made, and others go on after a lease."""
    c, other = new_client(d, "silent"), new_client(d, "in a hurry")
    h = Holder(t, d, c, "silent")
    c.answers = False
    t.equal("CREATE", mkdir4(other, h.fh, "a")["status"], n4.OK)
    t.equal("told", h.names(), [(n4.ADDED, "a")])
    end = time.monotonic() + 60
    while not c.flags & n4.RECALLABLE_REVOKED and time.monotonic() < end:
        c.compound((n4.PUTROOTFH, b""))
        other.compound((n4.PUTROOTFH, b""))
        time.sleep(0.1)
    t.check("it is revoked", c.flags & n4.RECALLABLE_REVOKED, hex(c.flags))
    t.equal("TEST_STATEID", c.test_stateid(h.deleg), [n4.DELEG_REVOKED])
    t.equal("CREATE", Other(lambda: mkdir4(other, h.fh, "b")).end(), n4.OK)
    t.equal("nothing more is told", h.all_notifications()[1:], [])
    for x in (c, other):
        x.close()


def test_several(t, d):
    """Each holder is told what it has asked for; one that does not want to know is recalled first."""
    a, b, third = (new_client(d, f"holder {x}") for x in "abc")
    h = Holder(t, d, a, "several")
    second = b.dir_delegation(h.fh, notices=(n4.ADDED,))
    t.equal("a second holder", (second.get("gdd"), second.get("notifications")), (0, [[8], [], []]))
    t.equal("CREATE by a holder", mkdir4(b, h.fh, "a")["status"], n4.OK)
    t.equal("told to one", h.names(), [(n4.ADDED, "a")])
    t.equal("and to the one who has made it", named(b.await_callback(n4.CB_NOTIFY)["changes"][0]), (n4.ADDED, "a"))
    waiting = Other(lambda: remove4(third, h.fh, "a"))
    t.equal("the second is recalled", b.await_callback(n4.CB_RECALL)["stateid"], second["deleg"])
    t.equal("DELEGRETURN", b.delegreturn(h.fh, second["deleg"]), n4.OK)
    t.equal("REMOVE", waiting.end(), n4.OK)
    t.equal("told to the first", h.names(), [(n4.REMOVED, "a")])
    h.is_kept("it is kept")
    for x in (a, b, third):
        x.close()


def test_local(t, d):
    """Changes by clients are told where local processes may change the directory, too; theirs recall."""
    c, other = new_client(d, "local"), new_client(d, "remote", 1, n4.Client)
    for what, change in (("create", lambda h: os.mkdir(h.path + "/new")), ("unlink", lambda h: os.unlink(h.path + "/file")),
                         ("rename", lambda h: os.rename(h.path + "/file", h.path + "/new")), ("chmod", lambda h: os.chmod(h.path, 0o700))):
        h = Holder(t, d, c, f"local {what}", "two", notices=(*ENTRIES, n4.DIR_ATTRS), directory=words(CHANGE))
        t.equal("CREATE", mkdir4(other, h.fh, "remote")["status"], n4.OK)
        t.equal("is told", [x for x in h.names(2) if x[0] == n4.ADDED], [(n4.ADDED, "remote")])
        h.is_kept("it is kept")
        change(h)
        t.equal(f"local {what}", h.await_recall()["stateid"], h.deleg)
        t.equal("DELEGRETURN", h.give_back(), n4.OK)
    for x in (c, other):
        x.close()


def main():
    t = Count()
    with Daemon({"one": PROMISED, "two": WATCHED, "three": PROMISED + ",async"}, SETTINGS) as d:
        for test in (test_granted, test_told, test_wire, test_own, test_not_told, test_attributes, test_delay, test_order, test_flood,
                     test_errors, test_silent, test_several, test_local):
            print(f"# {test.__name__}", flush=True)
            test(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
