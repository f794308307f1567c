# SPDX-License-Identifier: BSD-2-Clause
"""Parts that the fault tests of both transports share: the daemon with steady clients beside the faulty peer, and the verdict on one
cell of the table of stages and faults."""
import contextlib
import os
import random
import signal
import struct
import threading

import rpcclient as r
from held import Held
from steady import Steady

SIZE = 1 << 20
ENTRIES = 3000
OPS = {"READ": r.READ, "WRITE": r.WRITE, "READDIR": r.READDIR}

BURST = 96 << 20  # what calls under way at once may need: slabs are kept
SEED = int(os.environ.get("FAULTS_SEED", int.from_bytes(os.urandom(4), "big")))

# Possible effects of a faulty WRITE on the file: none; none or all of it; all of it.
NOTHING, MAYBE, DONE = "nothing", "maybe", "done"


class Bench:
    """The file and folder that the faulty peer works on, and what the daemon held before it came."""

    def __init__(self, t, d, transport):
        self.t, self.d, self.held, self.transport = t, d, Held(d), transport
        self.dir = d.exports["x"]
        with d.connect() as c:
            self.root = d.root(c, "x")
            self.fh = c.nfs(r.CREATE, r.create_args(self.root, "file"))["fh"]
            self.old = os.urandom(SIZE)
            c.nfs(r.WRITE, r.write_args(self.fh, 0, self.old))
            self.many = c.nfs(r.MKDIR, r.mkdir_args(self.root, "many"))["fh"]
        for i in range(ENTRIES):
            open(f"{self.dir}/many/a-name-of-some-length-{i}", "w").close()
        self.steady, self.watched, self.trouble, self.before = [], 0, None, None
        self.random = random.Random(SEED)
        print(f"FAULTS_SEED={SEED}")

    def watch(self, *connects):
        """Steady clients from here on, one for each way to connect; what is held with them is what must come back."""
        for connect in connects:
            self.watched += 1
            self.steady.append(Steady(f"{self.transport}-{self.watched}", connect, self.root))
        with self.still():
            self.before = self.held.settled()

    def still(self):
        stack = contextlib.ExitStack()
        for s in self.steady:
            stack.enter_context(s.still())
        return stack

    def meanwhile(self):
        """The steady clients get on while the fault lasts."""
        for s in self.steady:
            self.trouble = self.trouble or s.works()

    def end_steady(self):
        for s in self.steady:
            s.close()
        self.steady = []

    def memory(self):
        return self.held.now()["memory"], self.d.rss()

    def check_memory(self, start):
        """Since memory() was start: slabs and requests that are kept for use, no more than one burst needs; nothing beside them."""
        (used, rss), (used_now, rss_now) = start, self.memory()
        print(f"memory: {used >> 10} KiB of the budget at first, {used_now >> 10} at the end; resident {rss >> 10} KiB, {rss_now >> 10}")
        self.t.check("the budget's use stays within what one burst needs", used_now - used <= BURST, f"{used_now - used} bytes more")
        if not self.d.sanitized():  # they keep freed memory
            more = rss_now - rss - (used_now - used)
            self.t.check("resident memory grows no more than the budget's use", more <= 32 << 20, f"{more} bytes more")

    def on_disk(self):
        with open(f"{self.dir}/file", "rb") as f:
            return f.read()

    def args(self, op):
        """(arguments of a call of op, the data that it would write)."""
        if op == "WRITE":
            new = os.urandom(SIZE)
            return r.write_args(self.fh, 0, new), new
        if op == "READ":
            return r.read_args(self.fh, 0, SIZE), None
        return r.readdir_args(self.many, count=SIZE), None

    def bad_results(self, op, x):
        """Error in a call's results, or None."""
        if x["status"]:
            return f"status {x['status']}"
        if op == "WRITE" and (x["count"], x["stable"]) != (SIZE, r.FILE_SYNC):
            return f"{x['count']} bytes, stable {x['stable']}"
        if op == "READ" and x["data"] != self.old:
            return "other data"
        if op == "READDIR" and len(x["entries"]) < 1000:
            return f"{len(x['entries'])} entries"
        return None

    def bad_reply(self, op, message, rpc):
        """The same for a whole RPC reply to message."""
        return self.bad_results(op, r.decode(OPS[op], r.reply_body(rpc, struct.unpack(">I", message[:4])[0])))

    def bad_file(self, new, effect):
        """Error in the file, which is read locally, or None."""
        now = self.on_disk()
        allowed = {NOTHING: [self.old], MAYBE: [self.old, new or self.old], DONE: [new or self.old]}[effect]
        self.old = now
        return None if now in allowed else "the file has other data"

    def cell(self, name, go, *args):
        """Runs go(self, *args), which gives (what is wrong or None, data of a WRITE, its effect), and judges what is left."""
        wrong, new, effect = go(self, *args)
        with self.still():
            lost = self.held.lost(self.before) if self.d.alive() else "the daemon is gone"
            wrong = wrong or self.bad_file(new, effect)
        problems = [p for p in (wrong, self.trouble and f"a steady client: {self.trouble}", lost and f"not given back: {lost}") if p]
        self.trouble = None
        print(f"{'FAIL' if problems else 'ok'}: {self.transport}: {name}" + (f": {problems}" if problems else ""), flush=True)
        if problems:
            self.t.failed += 1
        else:
            self.t.passed += 1
        return not problems


class Writer(threading.Thread):
    """Writes blocks of a file of its own, and remembers what was acknowledged as stable."""

    BLOCK, BLOCKS, ENOUGH = 40000, 50, 150

    def __init__(self, b, connect, name, unstable):
        super().__init__(daemon=True)
        self.conn, self.unstable, self.path = connect(), unstable, os.path.join(b.dir, name)
        self.fh = self.conn.nfs(r.CREATE, r.create_args(b.root, name))["fh"]
        self.stable, self.sent, self.enough = {}, 0, threading.Event()

    def run(self):
        verifier = None
        try:
            while True:
                i = self.sent
                self.sent += 1
                data = struct.pack(">I", i) * (self.BLOCK // 4)
                how = r.UNSTABLE if self.unstable else r.FILE_SYNC
                w = self.conn.nfs(r.WRITE, r.write_args(self.fh, i % self.BLOCKS * self.BLOCK, data, how))
                if self.unstable:
                    w = self.conn.nfs(r.COMMIT, r.commit_args(self.fh))
                if w["status"] or verifier not in (None, w["verf"]):
                    return
                verifier = w["verf"]
                self.stable[i % self.BLOCKS] = data
                if i == self.ENOUGH:
                    self.enough.set()
        except (r.Closed, OSError):
            pass

    def missing(self):
        """Blocks that were acknowledged and are not there. The one that was under way may be there without an answer."""
        with open(self.path, "rb") as f:
            content = f.read()
        under_way = (self.sent - 1) % self.BLOCKS
        return [i for i, data in self.stable.items()
                if i != under_way and content[i * self.BLOCK:(i + 1) * self.BLOCK] != data]


def kill_amid_work(b, connect, disturb):
    """kill -9 in the middle of work, with faulty peers beside it: disturb(b) is one."""
    t = b.t
    writers = [Writer(b, connect, f"stable-{b.transport}-{i}", i % 2) for i in range(4)]
    for w in writers:
        w.start()
    while any(w.is_alive() and not w.enough.is_set() for w in writers):
        disturb(b)
    b.d.stop(signal.SIGKILL)
    for w in writers:
        w.join(60)
        what = f"{b.transport}: {'UNSTABLE and COMMIT' if w.unstable else 'FILE_SYNC'}"
        t.check(f"{what}: enough was acknowledged before the kill", w.enough.is_set(), w.sent)
        if t.equal(f"{what}: acknowledged blocks that kill -9 lost", w.missing(), []):
            print(f"ok: {what}: kill -9 after {w.sent - 1} acknowledged blocks lost none")
        w.conn.close()
    b.d.start()
    with b.d.connect() as c:
        got = c.nfs(r.READ, r.read_args(b.fh, 0, SIZE))
        t.check("after the restart the handle is good and the data is there", got.get("data") == b.on_disk(), got["status"])
