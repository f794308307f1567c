#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""A member of a cluster is moved with its state: clients go on with sessions, opens, locks and replies, and nobody reclaims; nobody else gets at any time what
is locked. Where the state cannot be used, clients reclaim as after a stop. A local file system stands in for the cluster's."""
import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import threading
import time

import cluster
import control
import mounts
import nfs4client as n
import nlm_recovery as nlm
import rpcclient as r
import stuck
from cluster import Holder, await_status, no_lock, open_at, two_members
from harness import Count, free_port, result, sanitizer_env, scratch

STATE = "/state/moved-state"
STALE = 70
KILLS, SPAN = 12, 0.6  # seconds
GOES_ON = r"goes on as the member that was moved here: nobody has to reclaim; clients waited for (\d+) ms"


class Taker:
    """Another member's client, which asks for a locked range all the time."""

    def __init__(self, t, other, fh, stateid):
        self.t, self.seen, self.ends = t, set(), threading.Event()
        self.ask = lambda: no_lock(other, fh, stateid)["status"]

    def run(self):
        while not self.ends.is_set():
            self.seen.add(self.ask())

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()
        self.t.check("nobody else gets the lock at any time", n.OK not in self.seen, self.seen)


class Zero:
    """A client of version 4.0 with an open and a lock."""

    def __init__(self, t, d, name):
        self.t, self.c = t, n.Client(d.port, "client 4.0", 0)
        t.equal("4.0: it registers", self.c.register()["status"], n.OK)
        res, self.fh = self.c.open(self.c.path(d.exports["one"]), name, create=True)
        self.stateid = res["stateid"]
        res = self.c.lock(self.fh, self.stateid, offset=10, length=10)
        t.equal("4.0: LOCK", res["status"], n.OK)
        self.locks = res["stateid"]

    def goes_on(self):
        self.c.again()
        self.t.equal("4.0: WRITE by the open of before", self.c.last(n.putfh(self.fh), n.write(self.stateid, 0, b"4.0"))["status"], n.OK)
        unlock = r.u32(n.WRITE_LT) + r.u32(1) + self.locks + r.u64(10) + r.u64(5)
        res = self.c.last(n.putfh(self.fh), (n.LOCKU, unlock))
        self.t.equal("4.0: LOCKU, the next operation of the owner", res["status"], n.OK)
        self.t.equal("4.0: the same again", self.c.last(n.putfh(self.fh), (n.LOCKU, unlock)), res)


class Three:
    """A client of NFSv3 with a lock, and a call whose reply may be lost."""

    def __init__(self, t, d, name):
        self.t, self.d, self.c = t, d, nlm.Client(d, "127.0.0.1", b"three.example")
        self.source = "127.0.0.1", free_port()  # Linux's client keeps its port
        self.c.conn = r.Conn(d.port, source=self.source)
        self.root = d.root(self.c.conn, "one")
        self.fh = nlm.make_file(d, self.c, name)
        t.equal("NFSv3: lock", self.c.lock(self.fh, proc=nlm.NLM_NM_LOCK), nlm.GRANTED)
        t.equal("NFSv3: a lock on record", self.c.lock(self.fh, 100), nlm.GRANTED)
        self.state = nlm.records(d)
        self.xid, self.args = r.next_xid(), r.mkdir_args(self.root, name + ".dir")
        self.reply = self.c.conn.nfs(r.MKDIR, self.args, xid=self.xid)
        t.equal("NFSv3: MKDIR", self.reply["status"], 0)

    def goes_on(self):
        self.c.conn.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.c.conn.close()
        self.c.conn = r.Conn(self.d.port, source=self.source)
        self.t.equal("NFSv3: MKDIR again", self.c.conn.nfs(r.MKDIR, self.args, xid=self.xid), self.reply)
        self.t.equal("NFSv3: and as another call", self.c.conn.nfs(r.MKDIR, self.args)["status"], 17)
        self.t.equal("NFSv3: another has no lock there", self.c.lock(self.fh, svid=99, proc=nlm.NLM_NM_LOCK), nlm.DENIED)
        self.t.equal("NFSv3: the state number, and who is on record", nlm.records(self.d), self.state)
        self.t.equal("NFSv3: unlock what is on record", self.c.unlock(self.fh, 100), nlm.GRANTED)
        self.t.equal("NFSv3: unlock", self.c.unlock(self.fh), nlm.GRANTED)


def start(a):
    """Until the log says how it has started."""
    a.start()
    a.wait_log(r"\bready\b", a.since)


def move(t, a, words="has left with its clients' state, and its server has ended"):
    res = control.ctl("--socket", a.path, "cluster", "move")
    t.equal("cluster move", res.returncode, 0)
    t.check(f"the command says so: {words}", words in res.stdout, res)
    t.equal("exit status", a.process.wait(20), 0)
    return res


def locked_again(t, a, other, free):
    """How long others wait for new locks, from the start on."""
    res = await_status(lambda: no_lock(other, *free), n.GRACE)
    t.equal("a new lock at the other member", res["status"], n.OK)


def test_moved(t, a, b):
    holder, other, taker = Holder(t, a, "holder", "locked"), Holder(t, b, "other", "others"), Holder(t, b, "taker", "takers")
    free, held = open_at(t, other, "free"), open_at(t, taker, "locked")
    zero, three = Zero(t, a, "zero"), Three(t, a, "three")
    held0, held3 = open_at(t, other, "zero"), open_at(t, other, "three")
    waiter = cluster.new_client(a, "waiter")
    root = waiter.path(a.exports["one"])
    mine = waiter.open(root, "locked")
    asked = lambda: waiter.lock(mine[1], mine[0]["stateid"], kind=n.WRITEW_LT)["status"]
    t.equal("who waits for the lock", asked(), n.DENIED)
    for turn in range(3):
        made = holder.c.open(holder.root, f"made {turn}", create=True)
        with Taker(t, taker, *held):
            began = time.monotonic()
            move(t, a)
            t.check("the state is there, for root alone", os.stat(a.top + STATE).st_mode & 0o777 == 0o600)
            t.equal("a new lock meanwhile", no_lock(other, *free)["status"], n.GRACE)
            start(a)
            up = time.monotonic()
            t.check("the state goes along", a.wait_log(GOES_ON, a.since), a.read_log()[a.since:])
            locked_again(t, a, other, free)
            print(f"# moved in {up - began:.2f} s; clients waited for {re.search(GOES_ON, a.read_log()[a.since:])[1]} ms; new locks elsewhere {time.monotonic() - up:.2f} s after it served")
            # The same COMPOUND, as if its reply were lost: from the slot.
            holder.c.again()
            holder.c.seqid -= 1
            holder.c.owner_seqid -= 1
            again = holder.c.open(holder.root, f"made {turn}", create=True)
            t.equal("OPEN, sent again, is answered from the slot", again, made)
            t.equal("a WRITE by the open of before", holder.c.last(n.putfh(holder.fh), n.write(holder.stateid, 0, b"turn %d" % turn))["status"], n.OK)
            res = holder.c.reclaim_open(holder.fh)
            t.check("nothing is to be reclaimed", res["status"] != n.OK, res)
            waiter.again()
            t.equal("who waits goes on waiting", asked(), n.DENIED)
            zero.goes_on() if turn == 0 else zero.c.again()
            if turn == 0:
                t.equal("another member's client has a lock of what 4.0 has unlocked", other.c.lock(*held0, offset=10, length=5)["status"], n.OK)
                t.equal("and none of what it has", other.c.lock(*held0, offset=15, length=5)["status"], n.DENIED)
                t.equal("nor of NFSv3's", no_lock(other, *held3)["status"], n.DENIED)
                three.goes_on()
                t.equal("NFSv3's, unlocked", no_lock(other, *held3)["status"], n.OK)
        t.check("the state is used once", not os.path.exists(a.top + STATE))
        status = json.loads(control.ctl("--socket", a.path, "--json", "status").stdout)
        t.equal("status", status["restart"]["how"], "moved")


def goes_on(t, a, holder, what):
    t.check(f"{what}: the state goes along", a.wait_log(GOES_ON, a.since), a.read_log()[a.since:])
    holder.c.again()
    t.equal(f"{what}: a WRITE by the open of before", holder.c.last(n.putfh(holder.fh), n.write(holder.stateid, 0, b"on"))["status"], n.OK)


def reclaims(t, a, holder, parties, what, words):
    """The member has started without the state."""
    other, _, free, held, _ = parties
    t.check(f"{what}: the log says why", not words or a.wait_log(words, a.since), a.read_log()[a.since:])
    t.check(f"{what}: the state is not used", not re.search(GOES_ON, a.read_log()[a.since:]))
    holder.back()
    cluster.end_grace(t, holder, other, free, held)


def damage(path, at):
    with open(path, "r+b") as f:
        f.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 1]))


def test_unusable(t, a, holder, parties, common):
    taker, held = parties[1], parties[4]
    path, kept = a.top + STATE, common + "/kept"
    nothing = lambda: None
    fd = os.open(a.exports["one"] + "/locked", os.O_RDWR)

    def link():
        os.rename(path, kept)
        os.symlink(kept, path)

    def directory():
        os.unlink(path)
        os.mkdir(path)

    def lock():
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))

    def unlock():
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0))

    damaged, first = "it is damaged; clients reclaim", [True]
    for what, do, undo, words in (
            ("its magic", lambda: damage(path, 0), nothing, damaged),
            ("its nonce", lambda: damage(path, 30), nothing, damaged),
            ("its first byte", lambda: damage(path, 48), nothing, damaged),
            ("its last byte", lambda: damage(path, -1), nothing, damaged),
            ("cut short", lambda: os.truncate(path, 1000), nothing, damaged),
            ("empty", lambda: os.truncate(path, 0), nothing, damaged),
            ("for all to read", lambda: os.chmod(path, 0o644), nothing, "cannot be used: "),
            ("a link", link, nothing, "cannot be used: "),
            ("a directory", directory, lambda: os.rmdir(path), "cannot be used: "),
            ("removed", lambda: os.unlink(path), nothing, None),
            ("that of another run", lambda: shutil.copy(kept, path), nothing, "it is not that of the last run; clients reclaim"),
            ("somebody else has the lock", lock, unlock, "cannot be used: locks of the run before: .*clients reclaim")):
        print(f"# the state is not of use: {what}", flush=True)
        with Taker(t, taker, *held):
            move(t, a)
            do()
            start(a)
            undo()
        reclaims(t, a, holder, parties, what, words)
        t.check(f"{what}: the file is gone", not os.path.isfile(path) and not os.path.islink(path))
    os.close(fd)


def test_gone(t, a, holder):
    """A file that a client has open and locked is removed while the member does not run: the rest of the state goes along."""
    print("# a file is gone")
    fh, stateid = open_at(t, holder, "gone")
    t.equal("its LOCK", await_status(lambda: holder.c.lock(fh, stateid), n.GRACE)["status"], n.OK)
    move(t, a)
    os.unlink(a.exports["one"] + "/gone")
    start(a)
    goes_on(t, a, holder, "a file is gone")
    t.equal("a WRITE to it", holder.c.last(n.putfh(fh), n.write(stateid, 0, b"x"))["status"], STALE)


def start_and_kill(a, seconds):
    """Starts the member, which is killed after that time, whatever it does then."""
    a.since = len(a.read_log())
    with open(a.top + "/log", "ab") as log:
        p = subprocess.Popen([a.binary, "--foreground", "--config", a.config], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=sanitizer_env(a.env))
    time.sleep(seconds)
    p.kill()
    p.wait()


def came_back(t, a, holder, parties, what):
    """The holder goes on or reclaims, as the last start says."""
    if re.search(GOES_ON, a.read_log()[a.since:]):
        goes_on(t, a, holder, what)
        t.equal(f"{what}: a new lock at the other", await_status(lambda: no_lock(parties[0], *parties[2]), n.GRACE)["status"], n.OK)
        return "went on"
    reclaims(t, a, holder, parties, what, None)
    return "reclaimed"


def test_killed(t, a, holder, parties):
    """The next run is killed at some moment of its start; the run that is moved, at some moment of its end."""
    ends = []
    for i in range(KILLS):
        with Taker(t, parties[1], *parties[4]):
            move(t, a)
            start_and_kill(a, SPAN * i / KILLS)
            before = len(re.findall(GOES_ON, a.read_log()[a.since:]))
            there = os.path.exists(a.top + STATE)
            start(a)
        used = re.search(GOES_ON, a.read_log()[a.since:])
        t.check("what was taken is not used again", not (used and before) and bool(used) == there, (before, there, used))
        ends.append((f"{SPAN * i / KILLS:.2f} s", came_back(t, a, holder, parties, "killed as it starts")))
    print("# killed as it starts:", *ends, flush=True)
    ends.clear()
    for i in range(KILLS):
        with Taker(t, parties[1], *parties[4]):
            command = subprocess.Popen([control.BINARY, "--socket", a.path, "cluster", "move"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(SPAN * i / KILLS)
            a.process.kill()
            a.process.wait()
            command.wait()
            start(a)
        ends.append((f"{SPAN * i / KILLS:.2f} s", came_back(t, a, holder, parties, "killed as it leaves")))
    print("# killed as it leaves:", *ends, flush=True)


def test_device(t):
    """The file system has another device number on the next machine."""
    print("# another device", flush=True)
    common = scratch()
    one, image = common + "/one", common + "/image"
    os.chmod(common, 0o755)
    os.mkdir(one)
    os.mkdir(common + "/cluster", 0o700)
    loop = stuck.Loop(one, image)
    try:
        with cluster.Member("a", common) as a:
            holder, before = Holder(t, a, "holder", "locked"), os.stat(one).st_dev
            move(t, a)
            loop.close()
            with mounts.mounted_elsewhere(image, one, before):
                t.check("it is another one", os.stat(one).st_dev != before)
                start(a)
                goes_on(t, a, holder, "another device")
                mine = holder.c.open(holder.root, "locked")
                t.equal("LOCK by another owner", await_status(lambda: holder.c.lock(mine[1], mine[0]["stateid"]), n.GRACE)["status"], n.DENIED)
                with open(one + "/locked", "r+b") as f:
                    try:
                        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        t.check("a local process does not get the lock", False)
                    except OSError:
                        pass
    finally:
        loop.close()
        shutil.rmtree(common, ignore_errors=True)


def main():
    t = Count()
    test_device(t)
    with two_members(t) as (a, b, common):
        test_moved(t, a, b)
        cluster.stop_all(t, a, b)
    with two_members(t) as (a, b, common):
        holder, other, taker = Holder(t, a, "holder", "locked"), Holder(t, b, "other", "others"), Holder(t, b, "taker", "takers")
        parties = other, taker, open_at(t, other, "free"), open_at(t, other, "locked"), open_at(t, taker, "locked")
        test_unusable(t, a, holder, parties, common)
        test_gone(t, a, holder)
        test_killed(t, a, holder, parties)
        cluster.stop_all(t, a, b)
    result(t)


if __name__ == "__main__":
    main()
