#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""An RDMA peer, its network or the device that goes wrong at each stage of READ, WRITE and READDIR: over the software verbs fabric.

For each cell of the table: clients over RDMA and TCP work on while it lasts, everything that the daemon held comes back, the
fabric's own count of verbs objects too, the client that comes again is served, and what was acknowledged as stable is in the
file, read behind the daemon's back. At the end the daemon is killed in the middle of work. FAULTS_IWARP=1 makes the devices
iWARP's; FAULTS_SEED repeats a run's chances.

    faults_rdma.py              every operation, with a daemon for each, at once, since most of the time is spent waiting
    faults_rdma.py READ         one operation
"""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import harness
import rpcclient as r
from faultbench import DONE, MAYBE, NOTHING, OPS, Bench, kill_amid_work
from harness import Count, Daemon
from held import unix_sockets
from rdmaclient import PROGRAM, Peer
from storm import storm

LIBRARY = os.path.abspath(os.environ.get("SOFTVERBS_LIB", "tools/softverbs/libsoftverbs.so"))
STEADY, FAULTY = "127.0.0.1", "127.0.0.2"  # each of a device of its own
IWARP = bool(os.environ.get("FAULTS_IWARP"))
SPARE = 18  # devices that are taken away one after another

# Points in the server where the fabric's rules apply, on the tested connection. The Receive's completion is the first; a
# WRITE's Read or a READ's Send the second. The Send of a WRITE's reply is quiet: it makes no completion.
MOVE = {"READ": "write 1", "WRITE": "read 1", "READDIR": "write 1"}


def points(op):
    """{stage: (point of the rule, what a WRITE that got no answer may have done)}"""
    rows = {
        "as the call arrives": ("request 1", NOTHING),
        "with the call there": ("completion 1", NOTHING),
        "as its data move": (MOVE[op], NOTHING),
        "before the reply": ("send 1", MAYBE),
    }
    if op == "WRITE":
        rows["with its data there"] = ("completion 2", MAYBE)
    else:
        rows["after the reply"] = ("completion 2", MAYBE)
    return rows


ANSWERED, CLOSED, EITHER = "answered", "closed", "either"
# Actions of the fabric, the points at which each is possible, and the result that the client sees.
POSTS, ARRIVALS, COMPLETIONS = ("send", "write", "read"), ("request",), ("completion",)
ACTIONS = {
    "drop-connection": (POSTS + ARRIVALS + COMPLETIONS, CLOSED),
    "device-removed": (POSTS + ARRIVALS + COMPLETIONS, EITHER),
    "stop-reading": (POSTS + ARRIVALS + COMPLETIONS, EITHER),
    "full-sq": (POSTS, CLOSED),
    "fail 5": (POSTS, CLOSED),
    "delay 100ms": (POSTS + COMPLETIONS, ANSWERED),
    "reorder": (COMPLETIONS, ANSWERED),
    "rnr": (ARRIVALS, EITHER),
}
PATIENCE = 60


class Fabric:
    """A directory of its own, and one device for each address."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="softverbs.", dir="/tmp")  # TMPDIR may be too long for a socket's path
        self.addresses = [STEADY, FAULTY] + [f"127.0.1.{i + 1}" for i in range(SPARE)]
        kind = ":iwarp" if IWARP else ""
        self.devices = " ".join(f"sv{i}={a}{kind}" for i, a in enumerate(self.addresses))
        self.spare = self.addresses[2:]
        self.answers = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.answers.settimeout(PATIENCE)
        self.answers.bind("")  # an abstract address

    def env(self, program):
        return dict(os.environ, LD_PRELOAD=harness.preload(program, LIBRARY), SOFTVERBS_DIR=self.dir, SOFTVERBS_DEVICES=self.devices)

    def tell(self, slot, text):
        """A command to a process of the fabric; its answer."""
        self.answers.sendto(text.encode(), f"{self.dir}/ctl.{slot}")
        return self.answers.recv(4096).decode().strip()

    def status(self, slot):
        words = self.tell(slot, "status").split()
        return dict(zip(words[::2], map(int, words[1::2])))

    def rule(self, slot, text):
        if (answer := self.tell(slot, text)) != "ok":
            raise ValueError(f"{text}: {answer}")

    def fires(self, slot, before):
        """Does a rule take hold, if not already then soon?"""
        end = time.monotonic() + PATIENCE
        while self.status(slot)["fired"] == before:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def close(self):
        self.answers.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class RdmaBench(Bench):
    def __init__(self, t, d, fabric, port):
        super().__init__(t, d, "rdma")
        self.fabric, self.port = fabric, port
        self.env, self.idle = fabric.env(PROGRAM), []
        self.held.discount = unix_sockets  # the fabric's links to processes, not to connections
        # Each device once: librdmacm keeps it open from then on.
        for address in fabric.addresses:
            with self.peer(address) as p:
                self.slot = p.servers_qp >> 16
                p.disconnect()
        self.watch(self.client, d.connect)
        with self.still():
            self.objects = self.verbs_objects()

    def client(self):
        """A well-behaved one."""
        return Peer(self.env).connect(STEADY, self.port)

    @contextlib.contextmanager
    def peer(self, host=FAULTY, **kw):
        """A connected one. Its process serves again, unless it was killed."""
        p = self.idle.pop() if self.idle else Peer(self.env)
        try:
            yield p.connect(host, self.port, **kw)
        finally:
            if p.alive():
                with contextlib.suppress(r.Closed):
                    p.drop()
                self.idle.append(p)

    def close(self):
        for p in self.idle:
            p.kill()

    def verbs_objects(self):
        s = self.fabric.status(self.slot)
        return {k: s[k] for k in ("qps", "mrs")}

    def next_connection(self):
        """The number by which rules know the connection that comes next."""
        return self.fabric.status(self.slot)["connected"] + 1

    def rule(self, point, action):
        """A rule for the next connection."""
        self.fabric.rule(self.slot, f"on {point} qp {self.next_connection()} : {action}")

    def cell(self, name, go, *args):
        def and_fabric(b, *more):
            wrong, new, effect = go(b, *more)
            with self.still():
                lost = self.held.lost(self.before)
                now = self.verbs_objects()
                # Slabs of the steady client's device are registered as they are met.
                now["mrs"] -= self.held.now()["slab_regions"] - self.before["slab_regions"]
            if not wrong and not lost and now != self.objects:
                wrong = f"the fabric has {now}, not {self.objects}"
            return wrong, new, effect

        good = super().cell(name, and_fabric, *args)
        self.fabric.tell(self.slot, "clear")
        return good


def receive(p, op, xid):
    """The results, or None when the server closed, or "silence"."""
    try:
        while True:
            raw = p.receive(PATIENCE)
            if raw is None:
                return "silence"
            if raw[:4] == r.u32(xid):
                return p.reply(OPS[op], raw)
    except r.Closed:
        return None


def come_again(b, op, args, xid):
    """The client that lost its connection sends the call again, as Linux does: what is wrong, or None."""
    with b.peer(STEADY) as p:
        p.send(p.call_for(OPS[op], args, xid=xid))
        got = receive(p, op, xid)
        if not isinstance(got, dict):
            return f"the call that is sent again: {got}"
        p.disconnect()
        return b.bad_results(op, got)


def judge(b, op, args, xid, expected, got):
    """(what is wrong, whether the call is known to have been done)."""
    if isinstance(got, dict):
        return (b.bad_results(op, got) or (expected == CLOSED and "answered, where the connection was to go")) or None, True
    if expected == ANSWERED or (got == "silence" and expected == CLOSED):
        return f"{got or 'closed'}, not {expected}", False
    return None, False


def finish_cell(b, op, args, new, xid, expected, got, effect):
    wrong, done = judge(b, op, args, xid, expected, got)
    if not done:
        # Effects of the lost call, before the client repeats it.
        with b.still():
            lost = b.held.lost(b.before)
            early = b.bad_file(new, effect)
        wrong = wrong or early or (lost and f"not given back: {lost}")
        wrong = wrong or come_again(b, op, args, xid)
    return wrong, new, DONE


def by_rule(b, op, stage, action):
    """The fabric goes wrong in the server."""
    point, effect = points(op)[stage]
    expected = ACTIONS[action][1]
    if point.split()[0] not in POSTS or action in ("device-removed", "stop-reading"):
        # The fabric does these a little later, or they stop one direction only: the daemon may be quicker.
        effect = MAYBE
        expected = EITHER if expected == CLOSED else expected
    args, new = b.args(op)
    xid = r.next_xid()
    host = b.fabric.spare.pop() if action == "device-removed" else FAULTY
    b.rule(point, action)
    fired = b.fabric.status(b.slot)["fired"]
    with b.peer(host) as p:
        p.send(p.call_for(OPS[op], args, xid=xid))
        b.meanwhile()
        got = receive(p, op, xid) if action != "stop-reading" else None
        reached = b.fabric.fires(b.slot, fired)
    if not reached:
        return "the rule did not take hold: the stage was not reached", new, MAYBE
    return finish_cell(b, op, args, new, xid, expected, got, effect)


# The same at the client's end: points at which the server's work requests arrive, and their effects as above.
ARRIVES = {"as its data move": ("request 1", MAYBE), "as the reply arrives": ("request 2", MAYBE)}
AT_CLIENT = ("drop-connection", "device-removed", "stop-reading", "rnr")


def by_client_rule(b, op, stage, action):
    """The fabric goes wrong in the client."""
    point, effect = ARRIVES[stage]
    args, new = b.args(op)
    xid = r.next_xid()
    with b.peer() as p:
        slot = p.qp >> 16
        before = b.fabric.status(slot)
        b.fabric.rule(slot, f"on {point} qp {before['connected']} : {action}")
        p.send(p.call_for(OPS[op], args, xid=xid))
        b.meanwhile()
        got = receive(p, op, xid) if action != "stop-reading" else None
        reached = b.fabric.fires(slot, before["fired"])
        b.fabric.tell(slot, "clear")
        if action == "device-removed":
            p.kill()
    if not reached:
        return "the rule did not take hold: the stage was not reached", new, MAYBE
    return finish_cell(b, op, args, new, xid, EITHER, got, effect)


def leaves(p):
    p.drop()


def is_killed(p):
    p.kill()


def reads_late(p):
    p.ask("receives")


def after_call(b, op, end):
    """The client is gone as soon as the call is out."""
    args, new = b.args(op)
    xid = r.next_xid()
    with b.peer() as p:
        p.send(p.call_for(OPS[op], args, xid=xid))
        end(p)
        b.meanwhile()
    return finish_cell(b, op, args, new, xid, EITHER, None, MAYBE)


def stopped(b, op, end):
    """The client's process stands still in the middle, then ends."""
    args, new = b.args(op)
    xid = r.next_xid()
    with b.peer() as p:
        p.send(p.call_for(OPS[op], args, xid=xid))
        p.process.send_signal(signal.SIGSTOP)
        b.meanwhile()
        end(p)
    return finish_cell(b, op, args, new, xid, EITHER, None, MAYBE)


def no_receives(b, op, end):
    """The client has posted no Receives, and asked the server to repeat the reply for ever."""
    args, new = b.args(op)
    xid = r.next_xid()
    with b.peer(recv_size=0, rnr_retry=7) as p:
        p.send(p.call_for(OPS[op], args, xid=xid))
        b.meanwhile()
        end(p)
        got = receive(p, op, xid) if end is reads_late else None
    return finish_cell(b, op, args, new, xid, ANSWERED if end is reads_late else EITHER, got, MAYBE)


def no_receives_no_retry(b, op, _):
    """The same, and that it does not: the Send ends with an error."""
    args, new = b.args(op)
    xid = r.next_xid()
    with b.peer(recv_size=0) as p:
        p.send(p.call_for(OPS[op], args, xid=xid))
        b.meanwhile()
        got = receive(p, op, xid)
    return finish_cell(b, op, args, new, xid, CLOSED, got, MAYBE)


def short_receives(b, op, _):
    """The reply does not fit the Receive: its Send ends with an error on both sides."""
    args, new = b.args(op)
    xid = r.next_xid()
    with b.peer(recv_size=16) as p:
        p.send(p.call_for(OPS[op], args, xid=xid))
        b.meanwhile()
        got = receive(p, op, xid)
    return finish_cell(b, op, args, new, xid, CLOSED, got, MAYBE)


def wrong_key(b, op, _):
    """The memory that the client offers is not the server's to move."""
    args, new = b.args(op)
    xid = r.next_xid()
    with b.peer() as p:
        p.rkey ^= 0x5a5a00
        p.send(p.call_for(OPS[op], args, xid=xid))
        b.meanwhile()
        got = receive(p, op, xid)
    return finish_cell(b, op, args, new, xid, CLOSED, got, NOTHING)


def after_reply(b, op, end):
    args, new = b.args(op)
    with b.peer() as p:
        wrong = b.bad_results(op, p.nfs(OPS[op], args))
        end(p)
        b.meanwhile()
    return wrong, new, DONE


def many_then(b, op, end):
    """As many calls as there are credits, most of them unanswered when the client ends."""
    args, new = b.args(op)
    with b.peer(recv_size=0, rnr_retry=7) as p:
        for _ in range(32):
            p.send(p.call_for(OPS[op], args))
        b.meanwhile()
        end(p)
    return None, new, MAYBE


def no_registration(b, nth):
    """The server cannot register memory: 1 and 2 are the connection's own, 3 is the first slab's, or over iWARP the transfer's."""
    args, new = b.args("WRITE")
    xid = r.next_xid()
    fired = b.fabric.status(b.slot)["fired"]
    with contextlib.ExitStack() as others:
        if IWARP:  # each transfer is a registration there, the steady clients' too
            others.enter_context(b.still())
        b.fabric.rule(b.slot, f"on reg-mr {nth} : fail 12")
        try:
            with b.peer() as p:
                p.send(p.call_for(r.WRITE, args, xid=xid))
                b.fabric.fires(b.slot, fired)
                others.close()
                b.meanwhile()
                got = receive(p, "WRITE", xid)
                connected = True
        except r.Closed:
            got, connected = None, False
    if connected != (nth > 2):
        return "connected" if connected else "refused", new, NOTHING
    return finish_cell(b, "WRITE", args, new, xid, CLOSED, got, NOTHING)


PEERS = [
    ("after the call", after_call, (leaves, is_killed)),
    ("while the process stands still", stopped, (is_killed,)),
    ("without Receives", no_receives, (leaves, is_killed, reads_late)),
    ("without Receives or patience", no_receives_no_retry, (None,)),
    ("with Receives that are too short", short_receives, (None,)),
    ("with a wrong key", wrong_key, (None,)),
    ("after the reply", after_reply, (leaves, is_killed)),
    ("with 32 calls and no Receives", many_then, (leaves, is_killed)),
]


def cells(b, op):
    for stage, go, ends in PEERS:
        for end in ends:
            b.cell(f"{op} {stage}" + (f": the client {end.__name__.replace('_', ' ')}" if end else ""), go, op, end)
    for stage, (point, _) in points(op).items():
        for action, (where, _) in ACTIONS.items():
            if point.split()[0] in where:
                b.cell(f"{op} {stage}: {action}", by_rule, op, stage, action)
    for stage in ARRIVES:
        for action in AT_CLIENT:
            b.cell(f"{op} {stage}, at the client: {action}", by_client_rule, op, stage, action)
    for nth in (1, 2, 3) if op == "WRITE" else ():
        b.cell(f"memory registration {nth} fails", no_registration, nth)


def disturb(b):
    end = b.random.choice((leaves, is_killed))
    with contextlib.suppress(r.Closed), b.peer(STEADY, recv_size=b.random.choice((0, 16, 4096))) as p:
        p.send(p.call_for(r.READ, b.args("READ")[0]))
        end(p)


def one(op):
    t, fabric, port = Count(), Fabric(), harness.free_port()
    settings = {"rdma.enabled": "yes", "rdma.port": port, "server.memory_max": "64M"}  # so little that calls wait for it
    try:
        with Daemon({"x": "rw,no_root_squash,insecure"}, settings, env=fabric.env(os.environ.get("RINGNFSD", "./ringnfsd"))) as d:
            b = RdmaBench(t, d, fabric, port)
            start = b.memory()
            cells(b, op)
            b.end_steady()
            b.watch(d.connect)  # rules by chance meet every client over RDMA
            b.objects = b.verbs_objects()
            b.cell("storm", lambda b: (storm(b), None, NOTHING))
            b.check_memory(start)
            b.end_steady()
            if t.check("the daemon lives", d.alive()):
                kill_amid_work(b, b.client, disturb)
            b.close()
            harness.finish(t, d)
    finally:
        fabric.close()
    harness.result(t)


def main():
    if not os.path.exists(LIBRARY):
        harness.skip_all(f"{LIBRARY} is not built")
    if len(sys.argv) > 1:
        one(sys.argv[1])
    t, parts = Count(), []
    try:
        for op in OPS:
            parts.append(subprocess.Popen([sys.executable, "-B", __file__, op], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        for p in parts:
            *lines, last = p.communicate()[0].splitlines()
            print("\n".join(lines))
            counts = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped", last)
            if t.check(f"{p.args[-1]} ends with its counts", counts, last):
                t.passed, t.failed, t.skipped = (have + int(more) for have, more in zip((t.passed, t.failed, t.skipped), counts.groups()))
    finally:
        for p in parts:
            p.terminate()
    harness.result(t)


if __name__ == "__main__":
    main()
