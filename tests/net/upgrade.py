#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The program is run anew in the same process while clients are connected: connections, replies and what was read of a call go on."""
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time

import delegations
import dir_notify
import nfs4client as n
import rpcclient as r
import scrape
from control import Control
from harness import Count, result

ROUNDS = 3
KILLS, SPAN = 12, 0.25  # seconds after the signal
GAP = 4  # seconds
READY = re.compile(r"\bready\b")


def wait_ready(d):
    """Waits until the first program serves; returns its log."""
    for _ in range(6000):
        if READY.search(log := d.read_log()):
            break
        time.sleep(0.005)
    return log


def restart(t, d, what):
    """Has the program run anew, and waits until it serves; returns its log of the restart."""
    pid, before = d.process.pid, wait_ready(d)
    d.process.send_signal(signal.SIGUSR2)
    for _ in range(6000):
        said = d.read_log()[len(before):]
        if READY.search(said) or "no restart" in said:
            break
        time.sleep(0.005)
    print(f"# {what}:", *re.findall(r"calls waited for \d+ ms", said), flush=True)
    t.check(f"{what}: it serves", READY.search(said), said)
    t.check(f"{what}: the same process", d.process.poll() is None and d.process.pid == pid)
    return said


def calls_by_tcp(t, d, name):
    with r.Conn(d.port) as c, r.Conn(d.port) as part:
        root = c.mnt(d.exports["one"])[1]
        xid = r.next_xid()
        args = r.mkdir_args(root, name)
        first = c.nfs(r.MKDIR, args, xid=xid)
        t.equal("MKDIR", first["status"], 0)
        # A call of which the first bytes only have come, with a whole one before it.
        message = r.call_message(r.NFS, 3, r.GETATTR, r.getattr_args(root))
        record = r.u32(0x80000000 | len(message)) + message
        part.send_raw(record[:7])
        said = restart(t, d, "NFSv3")
        t.check("the state goes along", "goes on from" in said, said)
        part.send_raw(record[7:])
        t.equal("a call that had come in part", part.recv()[4:8], r.u32(1))
        t.equal("the same call again", c.nfs(r.MKDIR, args, xid=xid), first)
        t.check("a further call", c.nfs(r.MKDIR, args)["status"] == 17)
        t.equal("GETATTR", c.nfs(r.GETATTR, r.getattr_args(root))["status"], 0)


def slow_clients(t, d):
    """One that sends a call byte by byte, and one that takes no replies, hold up nobody, and only their connections end."""
    with r.Conn(d.port) as c, r.Conn(d.port) as sends, r.Conn(d.port) as takes:
        root = c.mnt(d.exports["one"])[1]
        message = r.call_message(r.NFS, 3, r.WRITE, r.write_args(root, 0, b"x" * 100000))
        sends.send_raw(r.u32(0x80000000 | len(message)) + message[:70000])
        with open(os.path.join(d.exports["one"], "long"), "wb") as f:
            f.write(bytes(1 << 20))
        fh = c.nfs(r.LOOKUP, r.diropargs(root, "long"))["fh"]
        for _ in range(64):
            takes.send(r.call_message(r.NFS, 3, r.READ, r.read_args(fh, 0, 1 << 20)))
        said = restart(t, d, "slow clients")
        t.check("the state goes along", "goes on from" in said, said)
        t.equal("another client goes on", c.nfs(r.GETATTR, r.getattr_args(root))["status"], 0)
        try:
            sends.s.settimeout(20)
            t.equal("the connection of who sends slowly", sends.s.recv(1), b"")
        except ConnectionResetError:
            pass


def is_locked(path):
    """True if the kernel has a byte of the file locked."""
    with open(path, "r+b") as f:
        try:
            fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 100)
        except OSError:
            return True
        fcntl.lockf(f, fcntl.LOCK_UN, 1, 100)
        return False


def holder_goes_on(t, d, minor):
    """A client with an open, locks and a slot goes on; another client asks for the lock."""
    path = os.path.join(d.exports["one"], f"file {minor}")
    one, other = (n.Client(d.port, f"{who} {minor}", minor) for who in ("holder", "other"))
    for c in (one, other):
        t.equal("registered", c.register()["status"], n.OK)
        t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
    root = one.path(d.exports["one"])
    opened, fh = one.open(root, f"file {minor}", create=True)
    t.equal("OPEN", opened["status"], n.OK)
    locked = one.lock(fh, opened["stateid"], offset=100, length=50)
    t.equal("LOCK", locked["status"], n.OK)
    theirs = other.open(root, f"file {minor}")[0]
    closed, _ = one.open(root, "closed", create=True)
    t.equal("CLOSE", one.close_file(_, closed["stateid"])["status"], n.OK)
    for i in range(ROUNDS):
        t.equal("WRITE", one.last(n.putfh(fh), n.write(opened["stateid"], 0, b"round %d" % i))["status"], n.OK)
        said = restart(t, d, f"NFSv4.{minor}")
        t.check("the state goes along", "goes on from" in said, said)
        t.check("a local process does not get the lock", is_locked(path))
        t.equal("READ by the same open", one.last(n.putfh(fh), n.read(opened["stateid"], 0, 100)).get("data"), b"round %d" % i)
        res = other.lock(fh, theirs["stateid"], offset=120, length=1)
        t.equal("LOCK by another client", res["status"], n.DENIED)
        t.equal("one that is in nobody's way", other.lock(fh, theirs["stateid"], offset=300 + i, length=1)["status"], n.OK)
        res = one.last(n.putfh(fh), n.read(closed["stateid"], 0, 10))
        t.check("a stateid that was closed before", res["status"] == n.BAD_STATEID, res)
        fresh, f2 = one.open(root, f"fresh {minor}.{i}", create=True)
        t.equal("a new OPEN", fresh["status"], n.OK)
        t.equal("and its CLOSE", one.close_file(f2, fresh["stateid"])["status"], n.OK)
    unlock = r.u32(n.WRITE_LT) + r.u32(1) + locked["stateid"] + r.u64(100) + r.u64(50)  # the lock-owner's second operation
    t.equal("LOCKU", one.last(n.putfh(fh), (n.LOCKU, unlock))["status"], n.OK)
    t.check("the kernel has it unlocked", not is_locked(path))
    t.equal("LOCK by the other client", other.lock(fh, theirs["stateid"], offset=120, length=1)["status"], n.OK)
    t.equal("CLOSE", one.close_file(fh, opened["stateid"])["status"], n.OK)
    for c in (one, other):
        c.close()


class Called(n.Client):
    back = True


def two_clients(t, d, name, minor, kind=n.Client):
    """Makes a client that locks a new file, and a client that has the file open: (holder, its stateid of locks, waiter, its open, handle)."""
    holder, waiter = n.Client(d.port, f"holder of {name}", minor), kind(d.port, f"waiter for {name}", minor)
    for c in (holder, waiter):
        t.equal("registered", c.register()["status"], n.OK)
        t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
    root = holder.path(d.exports["one"])
    held, fh = holder.open(root, name, create=True, access=n.SHARE_BOTH | (n.WANT_NO_DELEG if minor else 0))
    locked = holder.lock(fh, held["stateid"])
    t.equal("LOCK", locked["status"], n.OK)
    return holder, locked["stateid"], waiter, waiter.open(root, name)[0]["stateid"], fh


def unlock(holder, fh, stateid):
    """Unlocks by the second operation of the lock-owner."""
    return holder.last(n.putfh(fh), (n.LOCKU, r.u32(n.WRITE_LT) + r.u32(1) + stateid + r.u64(0) + r.u64(n.ALL)))["status"]


def waiter_is_told(t, d, minor):
    """CB_NOTIFY_LOCK comes when a lock is released after the restart, and again if it was not answered before."""
    for answered in True, False:
        name = f"waits {minor} {answered}"
        holder, locked, waiter, opened, fh = two_clients(t, d, name, minor, Called)
        waiter.await_callback()  # the back channel is tried
        t.equal("it waits", waiter.lock(fh, opened, n.WRITEW_LT)["status"], n.DENIED)
        owner = b"lock" + r.u32(waiter.owner_seqid)
        if not answered:
            waiter.answers = False
            t.equal("LOCKU", unlock(holder, fh, locked), n.OK)
            waiter.await_callback(n.CB_NOTIFY_LOCK)
        said = restart(t, d, f"NFSv4.{minor}, a waiter")
        t.check("the state goes along", "goes on from" in said, said)
        waiter.answers, told = True, len([x for x in waiter.called if x["op"] == n.CB_NOTIFY_LOCK])
        t.equal("the waiter is there", waiter.getattr(fh)["status"], n.OK)  # its connection is bound again
        if answered:
            t.equal("LOCKU", unlock(holder, fh, locked), n.OK)
        call = waiter.await_callback(n.CB_NOTIFY_LOCK, told + 1)
        t.equal("it is told", (call["fh"], call["clientid"], call["owner"]), (fh, waiter.clientid, owner))
        t.equal("it is in nobody's way", waiter.lock(fh, opened, n.WRITEW_LT)["status"], n.OK)
        holder.close()
        waiter.close()


def waiter_has_its_place(t, d, minor):
    """A client that asks for a lock again and again keeps its place before others, also after the restart."""
    holder, locked, waiter, opened, fh = two_clients(t, d, f"place {minor}", minor)
    asks = (lambda seqid: waiter.last(n.putfh(fh), (n.LOCK, r.u32(n.WRITEW_LT) + r.u32(0) + r.u64(0) + r.u64(n.ALL) + r.u32(1) +
            waiter._next() + opened + r.u32(seqid) + r.u64(waiter.clientid) + r.opaque(b"waits")))["status"])
    for i in range(3):
        time.sleep(GAP * (i == 2))  # so long it may take to ask again
        t.equal(f"it waits, {i}", asks(i), n.DENIED)
    said = restart(t, d, f"NFSv4.{minor}, a place")
    t.check("the state goes along", "goes on from" in said, said)
    t.equal("LOCKU", unlock(holder, fh, locked), n.OK)
    holder_opened = holder.open(holder.path(d.exports["one"]), f"place {minor}")[0]["stateid"]
    t.equal("another is refused", holder.lock(fh, holder_opened)["status"], n.DENIED)
    t.equal("it is its turn", asks(3), n.OK)
    holder.close()
    waiter.close()


def delegated(t, d, c, name, want):
    """Makes a file and a delegation of it for the client: (handle, its stateid)."""
    with open(os.path.join(d.exports["one"], name), "wb") as f:
        f.write(b"before")
    for _ in range(200):  # until the back channel has been tried
        res, fh = c.open(c.path(d.exports["one"]), name, access=n.SHARE_READ | want)
        if res.get("delegation"):
            break
        t.equal("CLOSE", c.close_file(fh, res["stateid"])["status"], n.OK)
        time.sleep(0.02)
    t.check(f"{name} is delegated", res.get("delegation"), res)
    return fh, res["deleg"]


def local_open(d, name, mode):
    """Starts a local process that opens the file and ends."""
    return subprocess.Popen([sys.executable, "-c", f"open({os.path.join(d.exports['one'], name)!r}, {mode!r})"])


def delegation_goes_on(t, d, kind, want, mode):
    """A local process waits for the delegation of the program before, which its client is told to return."""
    c = Called(d.port, f"{kind} delegation")
    t.equal("registered", c.register()["status"], n.OK)
    t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
    for begins in "before", "after":
        name = f"{kind} {begins}"
        fh, deleg = delegated(t, d, c, name, want)
        if begins == "before" and kind == "read":
            process = local_open(d, name, mode)
            c.await_callback(n.CB_RECALL)
        said = restart(t, d, f"{kind} delegation")
        t.check("the state goes along", "goes on from" in said, said)
        if begins == "after" or kind == "write":
            process = local_open(d, name, mode)
        recalls = len([x for x in c.called if x["op"] == n.CB_RECALL])
        t.equal("the client is there", c.getattr(fh)["status"], n.OK)  # its connection is bound again
        call = c.await_callback(n.CB_RECALL, recalls + 1)
        t.equal("it is told of the delegation", call["stateid"][4:], deleg[4:])
        t.check("the local process waits", process.poll() is None)
        t.equal("DELEGRETURN", c.delegreturn(fh, deleg), n.OK)
        t.equal("the local process goes on", process.wait(30), 0)
    c.close()


def holder_is_told(t, d):
    """The holder of a directory's delegation is told after the restart of changes that were made before, and of later ones."""
    c, other = delegations.new_client(d, "watcher"), delegations.new_client(d, "changes", 1, n.Client)
    h = dir_notify.Holder(t, d, c, "watched")
    t.equal("MKDIR", dir_notify.mkdir4(other, h.fh, "first")["status"], n.OK)
    t.equal("told before", h.names(), [(n.ADDED, "first")])
    c.cb_status = n.DELAY  # it has no time for what comes next
    t.equal("MKDIR", dir_notify.mkdir4(other, h.fh, "second")["status"], n.OK)
    h.notifications()
    said = restart(t, d, "notifications")
    t.check("the state goes along", "goes on from" in said, said)
    t.equal("MKDIR", dir_notify.mkdir4(other, h.fh, "third")["status"], n.OK)
    c.cb_status = n.OK
    t.equal("the holder is there", c.getattr(h.fh)["status"], n.OK)  # its connection is bound again
    while (named := [dir_notify.named(x) for x in h.calls(n.CB_NOTIFY)[-1]["changes"]]) == [(n.ADDED, "second")]:
        h.taken = len(h.all_notifications())
        h.notifications()
    t.equal("told after", named, [(n.ADDED, "second"), (n.ADDED, "third")])
    h.taken = len(h.all_notifications())
    t.equal("REMOVE", dir_notify.remove4(other, h.fh, "third")["status"], n.OK)
    t.equal("told then", h.names(), [(n.REMOVED, "third")])
    h.is_kept("nothing is recalled")
    t.equal("DELEGRETURN", h.give_back(), n.OK)
    for x in (c, other):
        x.close()


def killed_meanwhile(t, d):
    """The process is killed at moments of the hand-over: what its client had can be reclaimed, as after any crash."""
    c = n.Client(d.port, "survivor")
    t.equal("registered", c.register()["status"], n.OK)
    t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
    res, fh = c.open(c.path(d.exports["one"]), "survives", create=True)
    t.equal("LOCK", c.lock(fh, res["stateid"])["status"], n.OK)
    for i in range(KILLS):
        wait_ready(d)
        d.process.send_signal(signal.SIGUSR2)
        time.sleep(SPAN * i / KILLS)  # from the first step to after the last
        d.process.kill()
        d.process.wait()
        d.start()
        c.again()
        t.equal(f"{i}: registered again", c.register()["status"], n.OK)
        res = c.reclaim_open(fh)
        t.equal(f"{i}: OPEN, reclaimed", res["status"], n.OK)
        t.equal(f"{i}: LOCK, reclaimed", c.lock(fh, res["stateid"], reclaim=True)["status"], n.OK)
        t.equal(f"{i}: RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
    c.close()


def counters_go_on(t, d):
    """No counter begins anew but those of waits for workers; what is counted before and after is added up."""
    with r.Conn(d.port) as c:
        root = c.mnt(d.exports["one"])[1]
        fh = c.nfs(r.CREATE, r.create_args(root, "counted"))["fh"]
        for _ in range(20):
            c.nfs(r.WRITE, r.write_args(fh, 0, b"x" * 1000))
            c.nfs(r.LOOKUP, r.diropargs(root, "none"))
        one = n.Client(d.port, "counted", 2)
        t.equal("registered", one.register()["status"], n.OK)
        for _ in range(3):
            one.path(d.exports["one"])
        before = scrape.scrape(d)
        said = restart(t, d, "counters")
        t.check("the state goes along", "goes on from" in said, said)
        c.nfs(r.LOOKUP, r.diropargs(root, "none"))
        after = scrape.scrape(d)
    counters = {key: v for key, v in before.items() if key[0].endswith(("_total", "_bucket", "_sum", "_count"))}
    fell = {key: (v, after.get(key)) for key, v in counters.items() if v > after.get(key, 0) and "queue_wait" not in key[0]}
    t.equal("those that have become less", fell, {})
    for metric, labels, more in (("ringnfs_calls_total", {"version": "3", "operation": "WRITE"}, 0),
                                 ("ringnfs_calls_total", {"version": "3", "operation": "LOOKUP", "status": "NOENT"}, 1),
                                 ("ringnfs_call_duration_seconds_count", {"version": "3", "operation": "LOOKUP"}, 1),
                                 ("ringnfs_calls_total", {"version": "4.2", "operation": "PUTROOTFH"}, 0),
                                 ("ringnfs_written_bytes_total", {}, 0)):
        was = scrape.value(before, metric, **labels)
        t.check(f"{metric} {labels} was counted", was > 0)
        t.equal(f"{metric} {labels}", scrape.value(after, metric, **labels), was + more)
    one.close()


def by_ringnfsctl(t, d):
    """`ringnfsctl restart` waits for the end and prints the result. With bad settings the server goes on as it was."""
    ctl = [os.environ.get("RINGNFSCTL", "./ringnfsctl"), "--socket", d.path]
    done = subprocess.run([*ctl, "restart"], capture_output=True, text=True, timeout=60)
    t.check("ringnfsctl restart", done.returncode == 0 and done.stdout.startswith("restarted: calls waited for"), done)
    status = json.loads(subprocess.run([*ctl, "--json", "status"], capture_output=True, text=True, check=True).stdout)["restart"]
    t.check("how it went", status["how"] == "whole" and status["count"] > 0 and status["refused"] == 0, status)
    with open(d.config) as f:
        good = f.read()
    with open(d.config, "a") as f:
        f.write("[tcp]\nport = none\n")
    done = subprocess.run([*ctl, "restart"], capture_output=True, text=True, timeout=60)
    t.check("with bad settings", done.returncode == 1 and "goes on as it was" in done.stderr, done)
    with r.Conn(d.port) as c:
        t.equal("it serves", c.nfs(r.NULL), None)
    with open(d.config, "w") as f:
        f.write(good)
    done = subprocess.run([*ctl, "restart", "now"], capture_output=True, text=True)
    t.equal("an argument too many", done.returncode, 2)


def main():
    t = Count()
    with Control({"nfs4.lease_time": 10}, exports={"one": "rw,no_root_squash,insecure"}) as d:
        for i in range(ROUNDS):
            calls_by_tcp(t, d, f"once {i}")
        slow_clients(t, d)
        for minor in (1, 2, 0):
            holder_goes_on(t, d, minor)
        for minor in (1, 2):
            waiter_is_told(t, d, minor)
        for minor in (0, 1):
            waiter_has_its_place(t, d, minor)
        delegation_goes_on(t, d, "read", 0x100, "r+b")
        delegation_goes_on(t, d, "write", 0x200, "rb")
        holder_is_told(t, d)
        counters_go_on(t, d)
        by_ringnfsctl(t, d)
        killed_meanwhile(t, d)
        t.check("the daemon ends well", d.stop(), d.read_log())
    result(t)


if __name__ == "__main__":
    main()
