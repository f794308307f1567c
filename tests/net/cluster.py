#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Daemons that are members of a cluster: what they have in common, their grace period when one dies, leaves or is too slow, and who is refused.

A local file system stands in for the cluster's; both daemons serve it."""
import contextlib
import os
import re
import shutil
import signal
import struct
import subprocess
import threading
import time

import control
import harness
import nfs4client as n
import nlm_recovery as nlm
import nlm_shares
import rpcclient as r
from harness import Count, Daemon, result, scratch
from rpcclient import opaque, u32

DEAD = 3  # seconds
SOON = 15  # seconds: far above what the members need to agree
MKDIR = 9
SHIM = "tests/history/world_shim.so"
ENDED = 75  # exit status of a member whose time is over


class Member(Daemon):
    def __init__(self, name, common, settings=None, options="rw,no_root_squash,insecure"):
        super().__init__({})
        self.name, self.path = name, self.top + "/control"
        self._configure({"cluster.name": "lab", "cluster.instance": name, "cluster.path": common + "/cluster", "cluster.dead_time": DEAD, "cluster.address": "127.0.0.1",
                         "nfs4.lease_time": 5, "nfs4.grace_time": 20, "server.threads": 4, "server.control_socket": self.path, **(settings or {})})
        self.exports["one"] = common + "/one"
        self.write_exports([f"{self.exports['one']} 127.0.0.0/8({options})"])

    def start(self):
        self.since = len(self.read_log()) if os.path.exists(self.top + "/log") else 0
        super().start()

    def killed(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def two_members(t, settings=None):
    """Yields members a and b, and the folder that they share. The caller stops the members."""
    common = scratch()
    os.chmod(common, 0o755)
    os.mkdir(common + "/one")
    os.chmod(common + "/one", 0o777)
    os.mkdir(common + "/cluster", 0o700)
    try:
        with Member("a", common, settings) as a, Member("b", common, settings) as b:
            yield a, b, common
            if t.failed:
                print(a.read_log()[-8000:], b.read_log()[-8000:], sep="\n-- b --\n")
    finally:
        shutil.rmtree(common, ignore_errors=True)


def stop_all(t, *members):
    for d in members:
        t.equal(f"{d.name}: exit status", d.stop()[0], 0)


def new_client(d, owner):
    c = n.Client(d.port, owner)
    res = c.register()
    if res["status"] or c.reclaim_complete():
        raise SystemExit(f"{owner} cannot register: {res}\n{d.read_log()}")
    return c


class Called(n.Client):
    """A client that can be called back."""
    back = True


class Holder:
    """A client that has a file open and locked."""

    def __init__(self, t, d, owner, name):
        self.t, self.c, self.name = t, new_client(d, owner), name
        self.root = self.c.path(d.exports["one"])
        res, self.fh = self.c.open(self.root, name, create=True)
        t.equal(f"{name}: OPEN", res["status"], n.OK)
        self.stateid = res["stateid"]
        t.equal(f"{name}: LOCK", self.c.lock(self.fh, self.stateid)["status"], n.OK)

    def back(self):
        """Registers again and reclaims all, when it may."""
        self.c.again()
        self.t.equal(f"{self.name}: it registers again", self.c.register()["status"], n.OK)
        res = await_status(lambda: self.c.reclaim_open(self.fh), n.DELAY)
        self.t.equal(f"{self.name}: OPEN, reclaimed", res["status"], n.OK)
        self.stateid = res["stateid"]
        res = await_status(lambda: self.c.lock(self.fh, self.stateid, reclaim=True), n.DELAY)
        self.t.equal(f"{self.name}: LOCK, reclaimed", res["status"], n.OK)


def await_status(ask, *others, seconds=20.0):
    """Calls until the status is none of these, or time is over; returns the last answer."""
    end = time.monotonic() + seconds
    while (res := ask())["status"] in others and time.monotonic() < end:
        time.sleep(0.02)
    return res


def no_lock(h, fh, stateid):
    """Tries to lock a range, and unlocks it at once if that succeeds; returns LOCK's answer."""
    res = h.c.lock(fh, stateid)
    if res["status"] == n.OK:
        h.c.unlock(fh, res["stateid"] if "stateid" in res else stateid)
    return res


def open_at(t, h, name):
    res, fh = h.c.open(h.root, name, create=True)
    t.equal(f"OPEN of {name}", res["status"], n.OK)
    return fh, res["stateid"]


def test_common(t, a, b, holder, other):
    print("# what members have in common")
    ids = {}
    for d in (a, b):
        c = n.Client(d.port, "who")
        ids[d.name] = c.bare((n.EXCHANGE_ID, c.verifier + opaque(c.owner) + u32(0) + u32(0) + u32(0)))[0]
        c.close()
    t.equal("scopes", [ids[m]["scope"] for m in "ab"], [b"lab", b"lab"])
    t.equal("major ids", [ids[m]["major_id"] for m in "ab"], [b"lab/a", b"lab/b"])
    t.check("client ids differ", ids["a"]["clientid"] != ids["b"]["clientid"], ids)
    fh, stateid = open_at(t, holder, "both")
    t.equal("WRITE at a", holder.c.last(n.putfh(fh), n.write(stateid, 0, b"by a"))["status"], n.OK)
    again, stateid = open_at(t, other, "both")
    t.equal("the handle is the same at both", again, fh)
    t.equal("READ at b", other.c.last(n.putfh(fh), n.read(stateid, 0, 10)).get("data"), b"by a")


def end_grace(t, holder, other, free, held):
    """The holder is the last that has reclaimed; free: a file that nobody has locked, held: the holder's."""
    t.equal("LOCK at the other before RECLAIM_COMPLETE", no_lock(other, *free)["status"], n.GRACE)
    t.equal("RECLAIM_COMPLETE", holder.c.reclaim_complete(), n.OK)
    since = time.monotonic()
    t.equal("LOCK at the other afterwards", await_status(lambda: no_lock(other, *free), n.GRACE)["status"], n.OK)
    took = time.monotonic() - since
    print(f"# grace ended {took:.2f} s after the last RECLAIM_COMPLETE")
    t.check("soon", took < SOON, took)
    t.equal("LOCK at the other of what was reclaimed", no_lock(other, *held)["status"], n.DENIED)
    fh, stateid = open_at(t, holder, "new")
    t.equal("a new LOCK at the member that was restarted", await_status(lambda: no_lock(holder, fh, stateid), n.GRACE)["status"], n.OK)


def delegated(c, path):
    """(True if the client gets a delegation of a file that nobody else has open, of the directory)."""
    root = c.path(path)
    with open(path + "/alone", "w"):
        pass
    os.chmod(path + "/alone", 0o666)
    res, _ = c.open(root, "alone", access=n.SHARE_READ)
    directory = c.dir_delegation(root)
    return res["delegation"] == n.DELEGATE_READ, directory["status"] == n.OK and directory["gdd"] == 0


def test_promises(t, a, b, holder, other):
    print("# what a member does not promise, as it cannot know of the others' clients")
    fh, _ = open_at(t, holder, "both")
    since = len(a.read_log())
    for deny in (1, 2, 3):
        t.equal(f"OPEN that denies {deny}", holder.c.open(holder.root, "both", access=n.SHARE_READ, deny=deny)[0]["status"], n.SHARE_DENIED)
    t.equal("OPEN that creates and denies", holder.c.open(holder.root, "denied", create=True, deny=3)[0]["status"], n.SHARE_DENIED)
    t.check("nothing is made", not os.path.exists(a.exports["one"] + "/denied"))
    t.check("the log says so", a.wait_log("127.0.0.1.* an open that denies others access is refused", since))
    zero = n.Client(a.port, "minor 0", 0)
    t.equal("of version 4.0: it registers", zero.register()["status"], n.OK)
    t.equal("of version 4.0: OPEN that denies", zero.open(holder.root, "both", deny=1)[0]["status"], n.SHARE_DENIED)
    zero.close()
    since = len(b.read_log())
    v3 = nlm.Client(b, nlm.SERVER, b"shares.example")
    for deny in (1, 2, 3):
        t.equal(f"SHARE of NFSv3 that denies {deny}", nlm_shares.share(v3, fh, deny, nlm_shares.READ), nlm.DENIED)
    t.check("the log says so, too", b.wait_log("127.0.0.1.* SHARE that denies others access is refused", since))
    t.equal("SHARE that denies nothing", nlm_shares.share(v3, fh, 0, nlm_shares.BOTH), nlm.GRANTED)
    t.equal("UNSHARE", nlm_shares.unshare(v3, fh), nlm.GRANTED)
    v3.conn.close()
    c = Called(b.port, "wants delegations")
    c.register(), c.reclaim_complete()
    given = delegated(c, b.exports["one"])
    t.check("no delegation of a file, nor of a directory", given == (False, False), given)
    c.close()


def test_killed(t, a, b, holder, other):
    print("# a member is killed")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    open_at(t, other, "read")
    kept = open_at(t, other, "kept")
    locked = other.c.lock(*kept)
    t.equal("LOCK at the other of what is locked", no_lock(other, *held)["status"], n.DENIED)
    a.killed()
    since = time.monotonic()
    seen = set()
    while no_lock(other, *free)["status"] == n.OK and time.monotonic() < since + 20:
        seen.add(no_lock(other, *held)["status"])
        time.sleep(0.02)
    t.check("LOCK at the other of what is locked, until then", n.DENIED in seen and seen <= {n.DENIED, n.GRACE}, seen)
    took = time.monotonic() - since
    print(f"# the other granted no locks {took:.2f} s later")
    t.check("within the time after which a member is dead", DEAD - 0.5 < took < DEAD + SOON, took)
    t.check("the log says whose clients are waited for", b.wait_log("member a is dead"))
    st = control.status_of(b)["cluster"]
    t.equal("status", {m["name"]: m["state"] for m in st["members"]}, {"a": "dead", "b": "running"})
    t.equal("status: addresses", {m["name"]: (m["addresses"], m["tcp_port"]) for m in st["members"]},
            {d.name: (["127.0.0.1"], d.port) for d in (a, b)})
    t.equal("status: who may reclaim, and who grants locks", ([m["name"] for m in st["members"] if m["reclaims"]], st["grace"], st["grants"]),
            (["a"], True, False))
    res = control.ctl("--socket", b.path, "status")
    t.check("ringnfsctl status", re.search(rf"lab, member b; running: b; DEAD: a; epoch {st['epoch']}\n             new locks wait, for \d+ s so far: "
                                           r"clients may reclaim at member a \(ringnfsctl cluster status\)\n", res.stdout), res.stdout + res.stderr)
    t.check("the keeper lets the locks go", a.wait_log("files are released after"))
    t.equal("LOCK at the other", no_lock(other, *held)["status"], n.GRACE)
    v3 = nlm.Client(b, "127.0.0.1", b"v3.example")
    fh3 = v3.conn.nfs(r.LOOKUP, opaque(b.root(v3.conn, "one")) + opaque(b"free"))
    t.equal("LOOKUP by NFSv3", fh3["status"], 0)
    fh3 = fh3["fh"]
    t.equal("LOCK of NFSv3 at the other", v3.lock(fh3, proc=nlm.NLM_NM_LOCK), nlm.GRACE_PERIOD)
    t.equal("READ goes on", other.c.last(n.putfh(free[0]), n.read(free[1], 0, 1))["status"], n.OK)
    t.equal("OPEN goes on", other.c.open(other.root, "read")[0]["status"], n.OK)
    t.equal("LOCKU goes on", other.c.unlock(kept[0], locked["stateid"])["status"], n.OK)
    a.start()
    t.equal("LOCK at the other after the restart", no_lock(other, *held)["status"], n.GRACE)
    holder.back()
    end_grace(t, holder, other, free, held)
    t.equal("LOCK of NFSv3 afterwards", v3.lock(fh3, proc=nlm.NLM_NM_LOCK), nlm.GRANTED)
    t.equal("UNLOCK of NFSv3", v3.unlock(fh3), nlm.GRANTED)
    v3.conn.close()


def test_stopped(t, a, holder, other):
    print("# a member does not run for a while")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    conn = r.Conn(a.port, timeout=20)
    root = conn.mnt(a.exports["one"])[1]
    a.stand_still()
    os.waitpid(a.process.pid, os.WUNTRACED)  # all of its threads stand still
    conn.send(r.call_message(r.NFS, 3, MKDIR, r.diropargs(root, "late") + u32(0) * 6))
    t.equal("the other grants no locks", await_status(lambda: no_lock(other, *free), n.OK)["status"], n.GRACE)
    a.process.send_signal(signal.SIGCONT)
    answered = True
    try:
        conn.recv()
    except (r.Closed, OSError):
        answered = False
    t.check("a call that it finds is not answered", not answered)
    t.equal("it ends", a.process.wait(20), ENDED)
    t.check("nor was it run", not os.path.exists(a.exports["one"] + "/late"))
    t.check("the log says why", a.wait_log("was too slow for the others|is fenced"))
    a.start()
    holder.back()
    end_grace(t, holder, other, free, held)


def test_leave(t, a, holder, other):
    print("# a member stops")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    since = time.monotonic()
    t.equal("exit status", a.stop()[0], 0)
    took = time.monotonic() - since
    print(f"# it took {took:.2f} s")
    t.check("it need not wait for long", took < 30, took)
    t.equal("LOCK at the other", no_lock(other, *held)["status"], n.GRACE)
    a.start()
    holder.back()
    end_grace(t, holder, other, free, held)


def children(pid):
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{p}/stat") as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(p))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def keepers_of(pid):
    """Processes that keep the locks of the daemon."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return f.read().split()


def anew(t, d, what):
    """Has the program run anew; returns its log until it serves."""
    since = len(d.read_log())
    d.process.send_signal(signal.SIGUSR2)
    t.check(f"{what}: it goes on", d.wait_log("goes on from ringnfsd .*: calls waited for|an ordinary start after|ends, and has to be", since))
    return d.read_log()[since:]


def test_anew(t, a, b, holder, other):
    print("# a member's program is run anew: clients of none notice")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    epoch = control.status_of(b)["cluster"]["epoch"]
    seen, stop = set(), threading.Event()

    def ask():
        while not stop.is_set():
            seen.add((no_lock(other, *free)["status"], no_lock(other, *held)["status"]))
            time.sleep(0.005)

    asks = threading.Thread(target=ask)
    asks.start()
    for i in range(3):
        log = anew(t, a, f"{i}")
        t.check(f"{i}: as the same run", "goes on as member a" in log, log)
        t.check(f"{i}: nothing is in use still", "in use" not in log, log)
        print("#", *re.findall(r"calls waited for \d+ ms", log), flush=True)
        t.equal(f"{i}: one keeper", len(keepers_of(a.process.pid)), 1)
        t.equal(f"{i}: LOCK by the same connection", no_lock(holder, *open_at(t, holder, "more"))["status"], n.OK)
    time.sleep(DEAD + 1)  # its heartbeat goes on
    stop.set()
    asks.join()
    t.equal("LOCK at the other all the time: of what is free, and of what is locked", seen, {(n.OK, n.DENIED)})
    st = control.status_of(b)["cluster"]
    t.equal("no grace", (st["epoch"], st["grace"]), (epoch, False))
    a.killed()
    t.equal("the next keeper has the locks when it is killed", no_lock(other, *held)["status"], n.DENIED)
    t.equal("LOCK at the other", await_status(lambda: no_lock(other, *free), n.OK)["status"], n.GRACE)
    t.check("the keeper lets the locks go", a.wait_log("files are released after"))
    a.start()
    holder.back()
    end_grace(t, holder, other, free, held)


def test_anew_otherwise(t, a, holder, other):
    print("# a member that cannot go on as before is started again")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    with open(a.config, encoding="ascii") as f:
        settings = f.read()
    with open(a.config, "w", encoding="ascii") as f:
        f.write(settings.replace("lease_time = 5", "lease_time = 6"))
    since = len(a.read_log())
    a.process.send_signal(signal.SIGUSR2)
    t.equal("exit status", a.process.wait(30), 69)
    said = a.read_log()[since:]
    t.check("the log says why", "settings that members have in common differ now" in said and "has to be started again" in said, said)
    t.check("its keeper has the lock", no_lock(other, *held)["status"] in (n.DENIED, n.GRACE))
    with open(a.config, "w", encoding="ascii") as f:
        f.write(settings)
    a.start()
    holder.back()
    end_grace(t, holder, other, free, held)


def test_move(t, a, holder, other):
    print("# a member is moved by a command")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    ctl = ("--socket", a.path, "cluster")
    t.equal("cluster check", control.ctl(*ctl, "check").returncode, 0)
    for args in (("check", "a"), ("check", "--yes"), ("move", "a"), ("move", "--yes")):
        t.equal(f"cluster {args} is wrong usage", control.ctl(*ctl, *args).returncode, 2)
    seen, ends = set(), threading.Event()

    def look():
        while not ends.is_set():
            seen.add(no_lock(other, *held)["status"])

    looker = threading.Thread(target=look)
    looker.start()
    res = control.ctl(*ctl, "move")
    t.equal("it has ended when the command returns", os.waitid(os.P_PID, a.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG).si_status, 0)
    ends.set()
    looker.join()
    t.check("cluster move", res.returncode == 0 and "member a has left with its clients' state, and its server has ended" in res.stdout, res)
    t.equal("exit status of the server", a.process.wait(20), 0)
    t.check("the log says who moves it, and that it stops in order",
            all(a.wait_log(word, a.since) for word in ("user 0: this member is to be moved", "member a has left", "stopped")))
    t.check("LOCK at the other of what is locked, at any time", n.OK not in seen, seen)
    t.equal("LOCK at the other", no_lock(other, *free)["status"], n.GRACE)
    t.equal("cluster check of a server that has ended", control.ctl(*ctl, "check").returncode, 3)
    a.start()
    holder.c.again()
    res = holder.c.last(n.putfh(holder.fh), n.write(holder.stateid, 0, b"moved"))
    t.equal("WRITE by the open of before, without a reclaim", res["status"], n.OK)
    t.equal("LOCK at the other, without one either", await_status(lambda: no_lock(other, *free), n.GRACE)["status"], n.OK)
    t.equal("LOCK at the other of what is locked", no_lock(other, *held)["status"], n.DENIED)


def test_no_keeper(t, a, holder, other):
    print("# a member whose keeper is killed")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    keepers = children(a.process.pid)
    t.equal("processes beside the daemon", len(keepers), 1)
    os.kill(keepers[0], signal.SIGKILL)
    t.equal("it ends", a.process.wait(20), ENDED)
    t.check("the log says why", a.wait_log("keeps the locks of member a over a crash has ended", a.since))
    t.equal("LOCK at the other", no_lock(other, *held)["status"], n.GRACE)
    a.start()
    holder.back()
    end_grace(t, holder, other, free, held)


def test_reloaded(t, a, b):
    print("# other exports by a reload")
    line = f"{a.exports['one']} 127.0.0.0/8"
    for options, word in (("ro,insecure", "cluster: differs from member a: exports"),
                          ("rw,no_root_squash,insecure", "member a has the same exports and settings again")):
        since = len(b.read_log())
        a.write_exports([f"{line}({options})"])
        a.reload()
        t.check(f"{options}: the other says so", b.wait_log(word, since))
    a.write_exports([f"{line}(rw,no_root_squash,insecure,nfs_only)"])
    log = a.reload()
    t.check("nfs_only is refused: where, and what is right", re.search(f"{a.top}/exports:1:.*nfs_only says.*remove the option", log), log)
    t.equal("the reload, too", a.reloads()[1] != 0, True)
    since = len(a.read_log())
    a.write_exports([f"{line}(rw,no_root_squash,insecure)", f"{os.path.dirname(a.exports['one'])}/cluster 127.0.0.1(ro,insecure)"])
    a.reload()
    t.check("the cluster's directory should not be exported", a.wait_log("is below the export", since))
    a.write_exports([f"{line}(rw,no_root_squash,insecure)"])
    a.reload()


def refused_to_join(t, common, settings, options="rw,no_root_squash,insecure"):
    """Starts a member that must not start; returns its log."""
    m = Member("d", common, settings, options)
    try:
        res = subprocess.run([m.binary, "--foreground", "--config", m.config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
    finally:
        shutil.rmtree(m.top)
    t.equal(f"refused with {settings}, {options}: exit status", res.returncode, 69)
    return res.stdout


def test_others(t, other, common):
    print("# members that come, and that may not")
    free = open_at(t, other, "free")
    with Member("c", common) as c:
        t.equal("LOCK while a member without clients is there", no_lock(other, *free)["status"], n.OK)
        t.equal("it stops", c.stop()[0], 0)
        c.process = None
    t.equal("LOCK after it has left", no_lock(other, *free)["status"], n.OK)
    usual = "rw,no_root_squash,insecure"
    for what, settings, options in (("exports", {}, "ro,insecure"), ("exports", {}, f"{usual},async"), ("settings", {"nfs4.lease_time": 7}, usual),
                                    ("settings", {"nfs4.grace_time": 21}, usual), ("settings", {"nfs4.minor_max": 1}, usual),
                                    ("settings", {"nlm.statd": "off"}, usual), ("settings", {"vfs.handle_mac": "no"}, usual)):
        log = refused_to_join(t, common, settings, options)
        t.check(f"other {what}: the log says what differs from whom", f"differs from member a, which runs: {what};" in log, log)
    key = common + "/cluster/handle.key"
    os.rename(key, key + ".old")
    log = refused_to_join(t, common, {})
    t.check("another key: the log says so", "differs from member a, which runs: handle key;" in log, log)
    os.replace(key + ".old", key)
    t.check("an address that is taken", "has one of the addresses" in refused_to_join(t, common, {"tcp.port": other.c.port}))
    t.equal("LOCK after that", no_lock(other, *free)["status"], n.OK)


def test_early(t):
    print("# a reclaim of NFSv3 before all members grant no locks")
    with two_members(t, {"nfs4.grace_time": 5}) as (a, b, _):
        v3 = nlm.Client(a, nlm.SERVER, b"early.example")
        fh = nlm.make_file(a, v3, "early")
        t.equal("LOCK", v3.lock(fh), nlm.GRANTED)
        a.killed()
        b.stand_still()
        os.waitpid(b.process.pid, os.WUNTRACED)
        a.start()
        v3.again()
        answers = []
        asks = threading.Thread(target=lambda: answers.append(v3.lock(fh, reclaim=True)))
        asks.start()
        asks.join(1)  # a refusal would come at once
        t.equal("it waits", answers, [])
        b.process.send_signal(signal.SIGCONT)
        asks.join(20)
        t.equal("and is granted", answers, [nlm.GRANTED])
        v3.conn.close()
        stop_all(t, a, b)


class Clock:
    """The time of day of a daemon, by the shim of tests/history/: so many seconds ahead of the others'."""

    def __init__(self, m):
        self.path = m.top + "/world"
        self.ahead(0)
        m.env = {**os.environ, "LD_PRELOAD": harness.preload(m.binary, os.path.abspath(SHIM)), "WORLD": self.path}

    def ahead(self, seconds):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as f:
            f.write(struct.pack("=qII", seconds * 1000000000, 0, 0))


def test_clocks(t, a, b, other, common):
    print("# members whose clock differs from the others'")
    if not os.path.exists(SHIM):
        return t.skip("clocks", f"{SHIM} is not there")
    free = open_at(t, other, "free")
    m = Member("e", common)
    clock = Clock(m)
    clock.ahead(-5)
    try:
        m.start()
    except SystemExit:
        t.equal("behind: exit status", m.process.wait(), 69)
    t.check("behind: it does not start, and says why", m.wait_log("clock of member a is at least 4.* ms ahead") and m.wait_log("its clock is behind"))
    for seconds in (5, -5):
        clock.ahead(max(seconds, 0))
        m.start()
        clock.ahead(seconds)
        t.equal(f"{seconds} s ahead: it ends", m.process.wait(30), ENDED)
        t.check(f"{seconds} s ahead: it says why", m.wait_log("the clock of member e is more than 10 ms apart from those of: a b; it leaves", m.since))
    shutil.rmtree(m.top)
    t.check("the others stay", a.alive() and b.alive())
    t.equal("LOCK after that", await_status(lambda: no_lock(other, *free), n.GRACE)["status"], n.OK)


def lost(t, a, holder):
    """The holder's member has left the cluster or was removed, so that others may have been granted the holder's locks."""
    holder.c.again()
    t.check("the log says what is lost", a.wait_log("clients lose their locks", a.since))
    t.equal("it registers again", holder.c.register()["status"], n.OK)
    t.equal("it may not reclaim", holder.c.reclaim_open(holder.fh)["status"], n.NO_GRACE)
    t.equal("RECLAIM_COMPLETE", holder.c.reclaim_complete(), n.OK)
    t.equal("LOCK of what it had, once a keeper has let it go", await_status(lambda: no_lock(holder, *open_at(t, holder, "locked")), n.GRACE, n.DENIED)["status"], n.OK)


def test_given_up(t, a, b, holder, other):
    print("# a member is removed")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    ctl = ("--socket", b.path, "cluster")
    res = control.ctl(*ctl, "remove", "a", "--yes")
    t.check("not as long as it runs", res.returncode == 1 and "stop it first" in res.stderr, res)
    t.check("nor one that is not there", control.ctl(*ctl, "remove", "x", "--yes").returncode == 1)
    for args in ((), ("remove",), ("status", "a"), ("status", "--yes"), ("remove", "a", "b", "--yes")):
        t.equal(f"cluster {args} is wrong usage", control.ctl(*ctl, *args).returncode, 2)
    a.killed()
    t.equal("LOCK at the other", await_status(lambda: no_lock(other, *free), n.OK)["status"], n.GRACE)
    want = (r"^cluster lab, seen by member b; epoch \d+; GRACE: new locks wait, for \d+ s so far\n"
            r"  for member a, which is dead: start it, on any machine, or give it up: ringnfsctl cluster remove a\n"
            r"MEMBER .*\na +dead +127.0.0.1 +its clients may reclaim\nb +running +\d.\d s ago +127.0.0.1 +grants no new locks\n")
    end = time.monotonic() + SOON
    while not re.search(want, (res := control.ctl(*ctl, "status")).stdout) and time.monotonic() < end:
        time.sleep(0.1)  # until it has told the others that it grants none
    t.check("cluster status", re.search(want, res.stdout), res)
    res = subprocess.run([control.BINARY, *ctl, "remove", "a"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    t.check("nobody can be asked", res.returncode == 2 and "--yes" in res.stderr, res)
    t.equal("cluster remove", control.ctl(*ctl, "remove", "a", "--yes").stdout, "member a is removed\n")
    t.equal("LOCK of what it had", await_status(lambda: no_lock(other, *held), n.GRACE, n.DENIED)["status"], n.OK)
    t.check("the log says who has removed it", b.wait_log("user 0: member a is removed"))
    a.start()
    lost(t, a, holder)


def status_tells_loss(t, b):
    """b says why a's clients may not reclaim, once it has declared a dead."""
    want = r"; no grace period\nLOST: member a's locks were dropped by the file system while others granted theirs; its clients may not reclaim.*\n(.*\n)*a +dead .* lost: "
    end = time.monotonic() + SOON
    while not re.search(want, (res := control.ctl("--socket", b.path, "cluster", "status")).stdout) and time.monotonic() < end:
        time.sleep(0.1)
    t.check("cluster status says what is lost", re.search(want, res.stdout), res)
    t.check("so does the log", b.wait_log("the file system had dropped the locks of member a before all members stopped granting"))


def test_dropped(t, a, b, other, seen_dead):
    print(f"# daemon and keeper are killed at once, and started again {'after the member was declared dead' if seen_dead else 'before anybody sees it'}")
    holder = Holder(t, a, f"dropped {seen_dead}", "locked")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    t.equal("LOCK at the other", no_lock(other, *held)["status"], n.DENIED)
    a.stand_still()
    for p in (*children(a.process.pid), a.process.pid):
        os.kill(p, signal.SIGKILL)
    a.process.wait()
    got = await_status(lambda: other.c.lock(*held), n.DENIED)
    t.equal("the other gets the lock", got["status"], n.OK)
    if seen_dead:
        status_tells_loss(t, b)
    a.start()
    t.equal("new locks wait for nobody", no_lock(other, *free)["status"], n.OK)
    holder.c.again()
    t.check("the log says what is lost", a.wait_log("clients lose their locks.* the file system has dropped them", a.since))
    t.equal("it registers again", holder.c.register()["status"], n.OK)
    t.equal("it may not reclaim", holder.c.reclaim_open(holder.fh)["status"], n.NO_GRACE)
    t.equal("RECLAIM_COMPLETE", holder.c.reclaim_complete(), n.OK)
    t.equal("LOCK of what it had", no_lock(holder, *open_at(t, holder, "locked"))["status"], n.DENIED)
    t.equal("LOCKU at the other", other.c.unlock(held[0], got["stateid"])["status"], n.OK)
    holder.c.close()


def starts_not(t, what, m, words):
    res = subprocess.run([m.binary, "--foreground", "--config", m.config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    t.check(f"{what}: it does not start, and says what to do", res.returncode and words in res.stdout and "stop all members, remove object and beat.* in" in res.stdout,
            (res.returncode, res.stdout))


def test_object_gone(t, a, holder, common):
    print("# the object is gone, or damaged")
    path = common + "/cluster/object"

    def now():
        with open(path, "rb") as f:
            return f.read()

    good = now()
    os.unlink(path)
    starts_not(t, "gone", a, "the cluster's object is gone")
    for what, bad in (("cut", good[:-9]), ("other bytes", good[:40] + bytes(b ^ 1 for b in good[40:])), ("empty", b"")):
        with open(path, "wb") as f:
            f.write(bad)
        starts_not(t, what, a, "the cluster's object is damaged")
    with open(path, "wb") as f:
        f.write(good)
    a.start()
    holder.back()
    t.equal("once it is back, RECLAIM_COMPLETE", holder.c.reclaim_complete(), n.OK)
    good = now()
    with open(path, "wb") as f:
        f.write(good[:-9])
    t.equal("damaged while the member runs: it ends", a.process.wait(20), ENDED)
    with open(path, "wb") as f:
        f.write(good)
    a.start()
    holder.back()
    os.unlink(path)
    t.equal("gone while the member runs: it ends", a.process.wait(20), ENDED)
    t.check("the log says why", a.wait_log("the cluster's object is gone", a.since))
    for name in os.listdir(common + "/cluster"):
        if name.startswith("beat."):
            os.unlink(f"{common}/cluster/{name}")
    a.start()
    lost(t, a, holder)


def main():
    t = Count()
    with two_members(t) as (a, b, common):
        holder, other = Holder(t, a, "holder", "locked"), Holder(t, b, "other", "others")
        test_common(t, a, b, holder, other)
        test_promises(t, a, b, holder, other)
        test_killed(t, a, b, holder, other)
        test_stopped(t, a, holder, other)
        test_leave(t, a, holder, other)
        test_anew(t, a, b, holder, other)
        test_anew_otherwise(t, a, holder, other)
        test_move(t, a, holder, other)
        test_no_keeper(t, a, holder, other)
        test_reloaded(t, a, b)
        test_others(t, other, common)
        test_clocks(t, a, b, other, common)
        test_given_up(t, a, b, holder, other)
        for seen_dead in (True, False):
            test_dropped(t, a, b, other, seen_dead)
        holder = Holder(t, a, "holder 2", "locked")
        stop_all(t, a, b)
        test_object_gone(t, a, holder, common)
        stop_all(t, a)
    test_early(t)
    result(t)


if __name__ == "__main__":
    main()
