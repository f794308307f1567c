#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""A file system that does not answer (frozen by fsfreeze), beside one that does: whose calls wait for it.

The frozen one is ext4 in a file, by a loop device. It is thawed whatever happens: a process that waits for it cannot be killed.
"""
import os
import re
import select
import signal
import struct
import subprocess
import sys
import threading
import time

import delegations
import harness
import nfs4client as n4
import rpcclient as r
from control import Control, ask, ctl, status_of
from harness import Count
from rpcclient import opaque, u32, u64
from scrape import connect_tcp, parse, value

METRICS = harness.free_port()
OPTIONS = "rw,insecure,no_root_squash"
USUAL = 2  # seconds: a call takes less on a busy machine, too; workers that are stuck are told within some tenths
BLOCKED = 6  # after so long the server knows that the file system does not answer


def run(*words):
    return subprocess.run(words, capture_output=True, text=True)


class Loop:
    """An ext4 file system of its own, mounted on a folder."""

    def __init__(self, folder, image):
        self.folder, self.frozen = folder, False
        with open(image, "wb") as f:
            f.truncate(64 << 20)
        for words in (["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, folder]):
            p = run(*words)
            if p.returncode:
                harness.skip_all(f"{words[0]}: {p.stderr.strip()}")
        os.chmod(folder, 0o777)

    def freeze(self):
        p = run("fsfreeze", "-f", self.folder)
        if p.returncode:
            harness.skip_all(f"fsfreeze: {p.stderr.strip()}")
        self.frozen = True

    def thaw(self):
        if self.frozen:
            run("fsfreeze", "-u", self.folder)
        self.frozen = False

    def close(self):
        self.thaw()
        for _ in range(100):
            if not os.path.ismount(self.folder) or not run("umount", self.folder).returncode:
                return
            time.sleep(0.1)


def make(conn, root, name):
    made = conn.nfs(r.CREATE, r.create_args(root, name, attrs=r.sattr(mode=0o666)))
    return made["fh"]


def answered(conn, seconds=0):
    return bool(select.select([conn.s], [], [], seconds)[0])


class Worker(threading.Thread):
    """Uses the healthy export without a pause, as its clients do, until told to stop."""

    def __init__(self, d, root, address, large):
        super().__init__(daemon=True)
        self.d, self.root, self.address, self.large = d, root, address, large
        self.stop, self.longest, self.calls, self.failed = False, 0.0, 0, []
        self.start()

    def call(self, conn, proc, args):
        start = time.monotonic()
        res = conn.nfs(proc, args)
        self.longest = max(self.longest, time.monotonic() - start)
        self.calls += 1
        if res["status"]:
            self.failed.append((proc, res["status"]))
        return res

    def run(self):
        data = b"x" * (65536 if self.large else 100)
        try:
            with self.d.connect(source=(self.address, 0), timeout=30) as c:
                n = 0
                while not self.stop:
                    name = f"{self.address}-{n % 50}".encode()
                    fh = self.call(c, r.CREATE, r.create_args(self.root, name, attrs=r.sattr(mode=0o644)))["fh"]
                    self.call(c, r.WRITE, r.write_args(fh, 0, data, stable=0))
                    self.call(c, r.COMMIT, r.commit_args(fh))
                    self.call(c, r.READ, r.read_args(fh, 0, len(data)))
                    self.call(c, r.GETATTR, r.getattr_args(self.root))
                    n += 1
        except Exception as e:  # told by the thread that looks
            self.failed.append(repr(e))


def burst(d, bad, fh, conns):
    """Calls of all kinds that wait for the frozen file system; their number."""
    n = 0
    for i, c in enumerate(conns):
        for k in range(4):
            c.send(r.call_message(r.NFS, 3, r.CREATE, r.create_args(bad, f"n{i}-{k}".encode(), attrs=r.sattr(mode=0o644))))
            c.send(r.call_message(r.NFS, 3, r.WRITE, r.write_args(fh, 4096 * (4 * i + k), b"y" * 4096, stable=r.FILE_SYNC)))
            c.send(r.call_message(r.NFS, 3, r.REMOVE, r.diropargs(bad, f"none{k}".encode())))
            n += 3
        c.send(r.call_message(r.NFS, 3, r.COMMIT, r.commit_args(fh)))
        n += 1
    return n


def log_grows(d, sig, word):
    before = d.read_log().count(word)
    d.process.send_signal(sig)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if d.read_log().count(word) > before:
            return True
        time.sleep(0.05)
    return False


def look():
    with connect_tcp(METRICS) as s:
        return parse(ask(s, path="/metrics")[2].decode())


def check_queue(t):
    """Calls that wait are counted, and the memory that holds what they write."""
    end = time.monotonic() + BLOCKED / 2
    while not (value(v := look(), "ringnfs_queued_calls") and value(v, "ringnfs_requests", transport="tcp") >= 20
               and value(v, "ringnfs_memory_bytes", account="payload") >= 4096) and time.monotonic() < end:
        time.sleep(0.05)
    shown = [value(v, "ringnfs_" + name, **labels) for name, labels in (("queued_calls", {}), ("requests", {}), ("memory_bytes", {"account": "payload"}))]
    t.check("calls wait for workers", shown[0] >= 1, shown)
    t.check("calls are under way", shown[1] >= 20, shown)
    t.check("memory holds what is to be written", shown[2] >= 4096, shown)


def check_metrics(t):
    """They are answered, too, and tell that threads are stuck."""
    v = look()
    t.check("workers are stuck", value(v, "ringnfs_workers", state="stuck") >= 4, v)
    t.check("and are counted among all threads that are", value(v, "ringnfs_stuck_threads") >= value(v, "ringnfs_workers", state="stuck"))


def check_status(t, d):
    """So does the tool."""
    stuck = status_of(d)["threads"]["stuck"]
    t.check("threads are stuck", stuck >= 4, stuck)
    text = ctl("--socket", d.path, "status").stdout
    t.check("which people are told", re.search(r"threads +\d+ event threads, \d+ workers; \d+ WAIT for a file system", text), text)


def check_workers(t, workers, what):
    for w in workers:
        t.check(f"{what}: calls of the other export succeed", not w.failed, w.failed[:3])
        t.check(f"{what}: {w.calls} calls of the other export, in the usual time", w.calls > 20 and w.longest < USUAL,
                f"{w.longest:.1f} s")


NAMES = 1500  # names that share a lock by their hash would meet


def check_names(t, d, good):
    """Changes of many names of the other export, while changes on the frozen file system wait."""
    with d.connect(source=("127.0.4.2", 0), timeout=20) as c:
        made = 0
        try:
            for i in range(NAMES):
                name = f"many{i}".encode()
                made += not c.nfs(r.CREATE, r.create_args(good, name, attrs=r.sattr(mode=0o644)))["status"]
                c.nfs(r.REMOVE, r.diropargs(good, name))
        except TimeoutError:
            pass
    t.equal("names made beside a frozen file system", made, NAMES)


def test_frozen(t, d, loop):
    with d.connect() as c:
        good, bad = d.root(c, "good"), d.root(c, "bad")
        fh = make(c, bad, b"file")
    workers = [Worker(d, good, f"127.0.2.{1 + i}", i % 2) for i in range(4)]
    time.sleep(0.5)
    conns = [d.connect(source=(f"127.0.3.{1 + i % 2}", 0)) for i in range(6)]
    loop.freeze()
    sent, began = burst(d, bad, fh, conns), time.monotonic()
    check_queue(t)
    time.sleep(max(0, began + BLOCKED - time.monotonic()))
    with d.connect(source=("127.0.4.1", 0), timeout=20) as late:
        start = time.monotonic()
        t.equal("MNT of the other export", late.mnt(d.exports["good"])[0], 0)
        t.equal("GETATTR of the other export", late.nfs(r.GETATTR, r.getattr_args(good))["status"], 0)
        t.equal("a new call to the frozen one is told to come again",
                late.nfs(r.CREATE, r.create_args(bad, b"late", attrs=r.sattr(mode=0o644)))["status"], r.JUKEBOX)
        took = time.monotonic() - start
        t.check("these are answered in the usual time", took < USUAL, f"{took:.1f} s")
    check_names(t, d, good)
    check_metrics(t)
    check_status(t, d)
    t.check("SIGUSR1 is answered", log_grows(d, signal.SIGUSR1, "held:"))
    t.check("SIGHUP is answered", "serving" in d.reload())
    time.sleep(0.5)
    for w in workers:
        w.stop = True
    for w in workers:
        w.join(40)
    check_workers(t, workers, "beside a frozen file system")
    loop.thaw()
    statuses = []
    for c in conns:
        c.s.settimeout(30)
        for _ in range(13):
            statuses.append(r.reply_body(c.recv()).u32())
    t.equal("all calls to the frozen file system are answered", len(statuses), sent)
    t.check("with what happened, or come again", set(statuses) <= {0, r.NOENT, r.JUKEBOX}, set(statuses))
    with d.connect() as c:
        end = time.monotonic() + 10
        while (res := c.nfs(r.CREATE, r.create_args(bad, b"late", attrs=r.sattr(mode=0o644)))["status"]) and time.monotonic() < end:
            time.sleep(0.1)
        t.equal("a call to the thawed file system", res, 0)
        while status_of(d)["threads"]["stuck"] and time.monotonic() < end:
            time.sleep(0.1)
        t.equal("threads that are stuck afterwards", status_of(d)["threads"]["stuck"], 0)
    t.check("nor are people told of any", "WAIT" not in ctl("--socket", d.path, "status").stdout)
    for c in conns:
        c.close()
    log = d.read_log()
    where = r"the file system of export \S*/bad on device \d+:\d+ "
    t.check("the log says which file system and export, and since when",
            re.search(where + "does not answer: a call has waited for it for 2 seconds", log) and re.search(where + r"answers again, after \d+ seconds", log), log[-2000:])


def test_slow(t, d, loop):
    """A disk that takes a second is slow, and not dead."""
    with d.connect(timeout=30) as c:
        bad = d.root(c, "bad")
        loop.freeze()
        began = time.monotonic()
        c.send(r.call_message(r.NFS, 3, r.CREATE, r.create_args(bad, b"slow", attrs=r.sattr(mode=0o644))))
        told = 0
        while time.monotonic() - began < 1:
            told = max(told, status_of(d)["threads"]["stuck"])
            time.sleep(0.05)
        loop.thaw()
        took = time.monotonic() - began
        t.equal("the call", r.reply_body(c.recv()).u32(), 0)
    if took > 1.9:
        t.skip("a slow disk", f"this machine took {took:.1f} s")
        return
    t.equal("threads that are said to be stuck", told, 0)
    t.check("nor does the log say so", "does not answer" not in d.read_log())


def test_event_thread(t, d, loop):
    """Short calls run on event threads, and a write into memory waits there for the frozen file system. What came behind it on its
    connection, what waits on other connections, and what comes later is answered meanwhile; so it goes again and again."""
    with d.connect() as c:
        good, bad = d.root(c, "good"), d.root(c, "bad")
        fh = make(c, bad, b"written")
        for stable in (r.FILE_SYNC, r.UNSTABLE):  # afterwards the file is open, and the write runs on the event thread
            t.equal("a write before", c.nfs(r.WRITE, r.write_args(fh, 0, b"z" * 512, stable=stable))["status"], 0)
    conns = [d.connect(timeout=20) for _ in range(8)]
    loop.freeze()
    written = []
    longest = 0.0
    for c in conns:
        written.append(r.next_xid())
        c.send(r.call_message(r.NFS, 3, r.WRITE, r.write_args(fh, 512, b"y" * 512, stable=r.UNSTABLE), xid=written[-1]))
        start = time.monotonic()
        for other in conns:
            other.send(r.call_message(r.NFS, 3, r.GETATTR, r.getattr_args(good)))
        for other in conns:
            t.equal("GETATTR beside a write that waits", r.reply_body(other.recv()).u32(), 0)
        longest = max(longest, time.monotonic() - start)
    t.check("all are answered in the usual time", longest < USUAL, f"{longest:.2f} s")
    print(f"beside a write that waits on the event thread, 8 GETATTRs took {longest * 1000:.0f} ms at most")
    t.check("no write is answered before the file system answers", not any(answered(c) for c in conns))
    loop.thaw()
    for c, xid in zip(conns, written):
        t.equal("the write that waited", r.reply_body(c.recv(), xid).u32(), 0)
        c.close()


def event_threads(d):
    names = []
    for task in os.listdir(f"/proc/{d.process.pid}/task"):
        with open(f"/proc/{d.process.pid}/task/{task}/comm") as f:
            names.append(f.read())
    return sum(n.startswith("event-") for n in names)


def stuck_in_batch(t, d, loop, c, fh):
    """Writes that come together to a frozen file system; the number of event threads that get stuck."""
    before = event_threads(d)
    loop.freeze()
    messages = [r.call_message(r.NFS, 3, r.WRITE, r.write_args(fh, 512 * i, b"y" * 512, stable=r.UNSTABLE)) for i in range(16)]
    c.s.sendall(b"".join(struct.pack(">I", 0x80000000 | len(m)) + m for m in messages))
    end = time.monotonic() + BLOCKED
    while not status_of(d)["threads"]["stuck"] and time.monotonic() < end:
        time.sleep(0.05)
    n = event_threads(d) - before
    loop.thaw()
    statuses = [r.reply_body(c.recv()).u32() for _ in messages]
    t.check("all writes are answered", set(statuses) <= {0, r.JUKEBOX}, statuses)
    return n


def test_batch(t, d, loop):
    """Of calls that come together the event thread gets stuck in the first; the next one, which takes over, leaves the others to workers."""
    with d.connect(timeout=20) as c:
        bad = d.root(c, "bad")
        fh = make(c, bad, b"batch")
        for _ in range(10):  # after a slow call they go to workers for a second
            for stable in (r.FILE_SYNC, r.UNSTABLE):
                t.equal("a write before", c.nfs(r.WRITE, r.write_args(fh, 0, b"z" * 512, stable=stable))["status"], 0)
            if n := stuck_in_batch(t, d, loop, c, fh):
                break
            time.sleep(1.5)
    t.equal("event threads that are stuck", n, 1)


def test_opens(t, d, loop):
    """OPENs that have found the file system on the event thread, and block in it on workers: few of them do."""
    clients = [delegations.new_client(d, f"opener {i}", 1, n4.Client) for i in range(16)]
    root = clients[0].path(d.exports["bad"])
    loop.freeze()
    openers = [threading.Thread(target=c.open, args=(root, f"opened {i}", True), daemon=True) for i, c in enumerate(clients)]
    for o in openers:
        o.start()
    time.sleep(BLOCKED)
    stuck = status_of(d)["threads"]["stuck"]
    t.check("some of the workers are stuck", 1 <= stuck <= 10, stuck)
    with d.connect(timeout=20) as c:
        t.equal("a call of the other export", c.nfs(r.CREATE, r.create_args(d.root(c, "one"), b"beside", attrs=r.sattr(mode=0o644)))["status"], 0)
    loop.thaw()
    for o in openers:
        o.join(20)
    t.check("all are answered in the end", not any(o.is_alive() for o in openers))
    for c in clients:
        c.close()


def test_shared(t):
    """The only worker of a file system gets stuck in another one, in the second half of a COMPOUND. A call that waits there for a
    delegation goes on when that is returned, and so do those behind it."""
    d = Control({"server.threads": 1}, exports={"one": OPTIONS, "bad": OPTIONS})
    loop = Loop(d.exports["bad"], d.top + "/image")
    try:
        with d, d.connect(timeout=20) as c:
            owner, mixed = delegations.new_client(d, "owner"), delegations.new_client(d, "mixed", 1, n4.Client)
            _, fh, _, deleg = delegations.delegated(t, d, owner, "kept")
            one, roots = d.root(c, "one"), [mixed.path(d.exports[n]) for n in ("one", "bad")]
            behind = [d.connect(timeout=20) for _ in range(4)]
            c.send(r.call_message(r.NFS, 3, r.REMOVE, r.diropargs(one, b"kept")))
            owner.await_callback(n4.CB_RECALL)
            loop.freeze()
            ops = (n4.putfh(roots[0]), (n4.READDIR, u64(0) + bytes(8) + u32(4096) + u32(4096) + u32(0)),
                   n4.putfh(roots[1]), (n4.CREATE, u32(2) + opaque(b"second") + u32(0) + opaque(b"")))
            stuck = threading.Thread(target=mixed.compound, args=ops, daemon=True)
            stuck.start()
            time.sleep(0.05)  # less than after which the worker gets no more calls
            for b in behind:
                b.send(r.call_message(r.NFS, 3, r.READDIR, r.readdir_args(one)))
            t.check("calls behind the worker that is stuck", all(answered(b, BLOCKED) for b in behind))
            t.equal("the return of the delegation", owner.delegreturn(fh, deleg), 0)
            t.check("the call that waited for it goes on", answered(c, BLOCKED))
            t.check("the COMPOUND does not", stuck.is_alive())
            loop.thaw()
            t.equal("the removal", r.reply_body(c.recv()).u32(), 0)
            stuck.join(20)
            t.check("the COMPOUND is answered in the end", not stuck.is_alive())
            test_opens(t, d, loop)
            for x in (*behind, owner, mixed):
                x.close()
    finally:
        loop.close()


def test_stop(t, d, loop):
    """The end does not wait for ever."""
    with d.connect() as c:
        bad = d.root(c, "bad")
        loop.freeze()
        for i in range(8):
            c.send(r.call_message(r.NFS, 3, r.CREATE, r.create_args(bad, f"end{i}".encode(), attrs=r.sattr(mode=0o644))))
        time.sleep(0.5)
        d.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 30
        while time.monotonic() < end and "exiting without" not in d.read_log():
            time.sleep(0.1)
        t.check("it says what it does not wait for", "exiting without" in d.read_log(), d.read_log()[-500:])
        loop.thaw()  # until then the kernel keeps the process
        t.equal("exit status", d.process.wait(30), 0)
        d.process = None


def main():
    if os.geteuid() != 0:
        harness.skip_all("mounting needs root")
    t = Count()
    d = Control({"metrics.listen": f"127.0.0.1:{METRICS}"}, exports={"good": OPTIONS, "bad": OPTIONS})
    loop = Loop(d.exports["bad"], d.top + "/image")
    try:
        with d:
            try:
                test_slow(t, d, loop)
                test_event_thread(t, d, loop)
                test_batch(t, d, loop)
                test_frozen(t, d, loop)
                test_stop(t, d, loop)
            finally:
                loop.thaw()
                if d.process:
                    d.stop()
                loop.close()
    finally:
        loop.close()
    test_shared(t)
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
