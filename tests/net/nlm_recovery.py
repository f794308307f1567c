#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Locks of NFSv3 clients that survive the server (the status monitor, NSM), and go with a client that restarts: records, notices, the
grace period, and notices that somebody else makes up. In a network name space, where hosts have addresses of their own."""
import binascii
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from rpcclient import In, opaque, u32, u64

INSIDE = "--inside"
HOST_NAME = "server.example"
SERVER, ONE, TWO, THREE, OUTSIDE = "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "10.99.0.1"
PMAP, NLM, NSM = 100000, 100021, 100024
NLM_LOCK, NLM_CANCEL, NLM_UNLOCK, NLM_GRANTED, NLM_NM_LOCK, NLM_FREE_ALL = 2, 3, 4, 5, 22, 23
GRANTED, DENIED, BLOCKED, GRACE_PERIOD = 0, 1, 3, 4
SM_NULL, SM_STAT, SM_MON, SM_UNMON, SM_UNMON_ALL, SM_CRASH, SM_NOTIFY = range(7)
MONITOR_PORT = 789
PRIVILEGED = 1024
LEASE = 5  # and grace
NFS4_CLIENT = {"nfs4.lease_time": LEASE, "nfs4.grace_time": LEASE}
ONE_NAME, TWO_NAME = b"one.example", b"two.example"


class FakeHost:
    """A client's rpcbind, status monitor and lock manager at an address. It drops the first datagrams to each.

    verdict: what the lock manager says to NLM4_GRANTED; None: nothing. programs: those that rpcbind knows."""

    def __init__(self, address, drop=0):
        self.notices, self.grants, self.strangers, self.left = [], [], [], [drop, drop]
        self.verdict, self.programs = GRANTED, {(NSM, 1, 17), (NLM, 4, 17)}
        self.binder, self.monitor = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self.binder.bind((address, 111))
        self.monitor.bind((address, 0))
        self.ended = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def close(self):
        self.ended = True
        self.thread.join()
        self.binder.close()
        self.monitor.close()

    def run(self):
        while not self.ended:
            for s in select.select([self.binder, self.monitor], [], [], 0.05)[0]:
                self.answer(s)

    def answer(self, s):
        data, peer = s.recvfrom(9000)
        x = In(data)
        xid, kind, rpcvers, prog, vers, proc = (x.u32() for _ in range(6))
        x.u32(), x.opaque(), x.u32(), x.opaque()
        which = 0 if s is self.binder else 1
        if self.left[which]:
            self.left[which] -= 1
            return
        if which == 0 and (prog, vers, proc) == (PMAP, 2, 0):  # is the host there?
            result = b""
        elif which == 0 and (prog, vers, proc) == (PMAP, 2, 3):
            asked = tuple(x.u32() for _ in range(3))
            result = u32(self.monitor.getsockname()[1] if asked in self.programs else 0)
        elif which == 1 and (prog, vers, proc) == (NSM, 1, SM_NOTIFY):
            self.notices.append((x.opaque(), x.u32(), peer))
            result = b""
        elif which == 1 and (prog, vers, proc) == (NLM, 4, NLM_GRANTED):
            cookie = x.opaque()
            self.grants.append((cookie, x.flag(), x.opaque(), x.opaque(), x.opaque(), x.u32(), x.u64(), x.u64(), peer))
            if self.verdict is None:
                return
            result = opaque(cookie) + u32(self.verdict)
        else:
            self.strangers.append((prog, vers, proc))
            return
        s.sendto(struct.pack(">IIIIII", xid, 1, 0, 0, 0, 0) + result, peer)


def monitor(proc, args, source, port=None, to=SERVER):
    """One call of the server's monitor: the reply behind the xid, or None. port None: any privileged one."""
    message = r.call_message(NSM, 1, proc, args)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for p in [port] if port is not None else range(600, 1000):
            try:
                s.bind((source, p))
                break
            except OSError:
                continue
        s.settimeout(10)
        s.sendto(message, (to, MONITOR_PORT))
        reply = s.recv(9000)
    assert reply[:8] == message[:4] + u32(1) and len(reply) <= len(message)
    return reply[8:]


ACCEPTED = u32(0) * 4
TOO_WEAK = u32(1) + u32(1) + u32(5)


def notify(name, state, source, port=None):
    return monitor(SM_NOTIFY, opaque(name) + u32(state), source, port)


class Client:
    """An NFSv3 client at an address. state: its own state number."""

    def __init__(self, d, address, name, state=3, server=SERVER):
        self.d, self.address, self.name, self.state, self.server = d, address, name, state, server
        self.again()

    def again(self):
        self.conn = r.Conn(self.d.port, self.server, source=(self.address, 0))

    def lock(self, fh, offset=0, length=10, svid=7, reclaim=False, proc=NLM_LOCK, block=False):
        args = opaque(self.name) + opaque(fh) + opaque(b"%d@here" % svid) + u32(svid) + u64(offset) + u64(length)
        if proc in (NLM_LOCK, NLM_NM_LOCK, NLM_CANCEL):
            args = u32(int(block)) + u32(1) + args
        if proc in (NLM_LOCK, NLM_NM_LOCK):
            args += u32(int(reclaim)) + u32(self.state)
        x = self.conn.call(NLM, 4, proc, opaque(b"cookie") + args)
        x.opaque()
        return x.u32()

    def cancel(self, fh, offset=0, length=10, svid=7):
        return self.lock(fh, offset, length, svid, proc=NLM_CANCEL, block=True)

    def unlock(self, fh, offset=0, length=10, svid=7):
        return self.lock(fh, offset, length, svid, proc=NLM_UNLOCK)


def make_file(d, c, name):
    x = c.conn.call(r.NFS, 3, 8, r.create_args(d.root(c.conn, "one"), name))
    if x.u32() or not x.flag():
        raise SystemExit(f"{name} cannot be made")
    return x.opaque()


def records(d):
    """(state number, {(address, address of the server, name)})."""
    with open(os.path.join(d.top, "state", "nlm-hosts")) as f:
        lines = f.read().splitlines()
    hosts = {(a.split("%")[0], b.split("%")[0], binascii.unhexlify(name[1:]))
             for _, a, b, name in (line.split() for line in lines[2:-1])}
    return int(lines[1].split()[1]), hosts


def record(address, name):
    return "::ffff:" + address, "::ffff:" + SERVER, name


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not (got := what()) and time.monotonic() < end:
        time.sleep(0.02)
    return got


def restart(d):
    d.stop(signal.SIGKILL)
    d.start()


def test_records(t, d):
    one = Client(d, ONE, ONE_NAME)
    fh = make_file(d, one, "kept")
    t.equal("the first state number", records(d), (1, set()))
    t.equal("a lock without a record", one.lock(fh, 100, svid=9, proc=NLM_NM_LOCK), GRANTED)
    t.equal("on record then", records(d)[1], set())
    t.equal("the first lock", one.lock(fh), GRANTED)
    t.equal("on record when it is answered", records(d)[1], {record(ONE, ONE_NAME)})
    hostile = Client(d, ONE, b"../../\n\0etc")
    t.equal("a name that is no name", hostile.lock(fh, 200), GRANTED)
    t.equal("is on record", record(ONE, hostile.name) in records(d)[1], True)
    t.equal("and no path", sorted(f for f in os.listdir(d.top + "/state") if "nlm" in f), ["nlm-hosts", "nlm-hosts.new"])
    t.equal("its unlock", hostile.unlock(fh, 200), GRANTED)
    return one, fh


def test_restart(t, d, one, fh, host, bystander):
    """Its locks are reclaimed, and nobody else gets anything meanwhile."""
    restart(d)
    before = time.monotonic()
    t.equal("the next state number", records(d)[0], 3)
    two = Client(d, TWO, TWO_NAME)
    one.again()
    t.equal("a new lock has to wait", two.lock(fh, 1000), GRACE_PERIOD)
    t.equal("a reclaim by who is not on record", two.lock(fh, reclaim=True), DENIED)
    four = n4.Client(d.port, "beside NLM", 1)
    if four.register()["status"] or four.reclaim_complete():
        raise SystemExit("NFSv4 does not register")
    res, fh4 = four.open(four.path(d.exports["one"]), b"kept")
    t.equal("OPEN", res["status"], n4.OK)
    t.equal("NFSv4's locks wait, too", four.lock(fh4, res["stateid"], n4.WRITE_LT, 2000, 1)["status"], n4.GRACE)
    t.equal("its reclaim", one.lock(fh, reclaim=True), GRANTED)
    wait_for(lambda: host.notices)
    # By two names, one host: both are on record.
    name, state, peer = host.notices[0]
    t.equal("the host is told, by name", (name, state), (HOST_NAME.encode(), 3))
    t.check("from the address that it calls, by a privileged port", peer[0] == SERVER and peer[1] < PRIVILEGED, peer)
    end = time.monotonic() + 4 * LEASE
    while (status := two.lock(fh, 1000)) == GRACE_PERIOD and time.monotonic() < end:
        time.sleep(0.1)
    t.equal("when grace is over", status, GRANTED)
    t.check("which was not before its time", time.monotonic() - before >= LEASE - 1)
    t.equal("what was reclaimed is in the way", two.lock(fh), DENIED)
    t.equal("a reclaim is too late", one.lock(fh, 500, reclaim=True), GRACE_PERIOD)
    t.equal("nobody else is called", (bystander.notices, bystander.strangers, host.strangers), ([], [], []))
    return two


def test_forged(t, d, one, two, fh):
    """The record's address, a privileged port and the name, or nothing is freed."""
    t.equal("another's address", notify(ONE_NAME, 5, TWO), ACCEPTED)
    t.equal("an unprivileged port", notify(ONE_NAME, 5, ONE, 0), ACCEPTED)
    t.equal("another name", notify(b"won.example", 5, ONE), ACCEPTED)
    t.equal("a name that begins alike", notify(b"one.example.org", 5, ONE), ACCEPTED)
    t.check("the log names the port", d.wait_log("says from the unprivileged port"), d.read_log())
    t.equal("the locks are still there", two.lock(fh), DENIED)


def test_reboot(t, d, one, two, fh):
    one.lock(fh, 300, svid=12)
    one.state = 5  # its new life begins before word of it
    t.equal("a lock of the new life", one.lock(fh, 400, svid=10), GRANTED)
    t.equal("the short name, in capitals", notify(b"ONE", 5, ONE), ACCEPTED)
    t.check("its lock is free at once", wait_for(lambda: two.lock(fh) == GRANTED, 5))
    t.check("and the other one", wait_for(lambda: two.lock(fh, 300) == GRANTED, 5))
    t.equal("that of the new life is not", two.lock(fh, 400), DENIED)
    t.equal("what it has since", one.lock(fh, 600), GRANTED)
    one.state = 3  # as a client that gives no number
    t.equal("and without the number", one.lock(fh, 700, svid=11), GRANTED)
    t.equal("the same word again", notify(ONE_NAME, 5, ONE), ACCEPTED)
    t.equal("changes nothing", (two.lock(fh, 600), two.lock(fh, 700)), (DENIED, DENIED))
    t.equal("nor is a lock without a record freed", two.lock(fh, 400), DENIED)


def test_reboot_by_tcp(t, d, fh):
    """A notice over a connection frees the locks at once, too. The messenger looks by itself once a second, so one notice right behind
    another waits nearly that long unless the messenger is woken."""
    client, waits = Client(d, THREE, b"three.example"), []
    for state in range(3, 17, 2):
        client.state = state
        t.equal("a lock of this life", client.lock(fh, 900), GRANTED)
        conn = r.Conn(d.port, SERVER, source=(THREE, 900 + state))
        conn.call(NSM, 1, SM_NOTIFY, opaque(client.name) + u32(state + 2))
        told = time.monotonic()
        t.check("is gone with the next", wait_for(lambda: client.lock(fh, 900, svid=8, proc=NLM_NM_LOCK) == GRANTED, 5))
        waits.append(time.monotonic() - told)
        conn.close()
        client.unlock(fh, 900, svid=8)
    t.check("at once", sorted(waits)[len(waits) // 2] < 0.4, waits)


def test_local(t):
    """What is for this machine alone."""
    state = u32(3)
    mon_id = opaque(b"10.1.2.3") + opaque(b"me") + u32(NLM) + u32(3) + u32(16)
    calls = ((SM_STAT, opaque(b"10.1.2.3"), u32(0) + state), (SM_MON, mon_id + bytes(16), u32(0) + state),
             (SM_UNMON, mon_id, state), (SM_UNMON_ALL, mon_id[12:], state), (SM_CRASH, b"", b""))
    for proc, args, want in calls:
        t.equal(f"procedure {proc}", monitor(proc, args, SERVER), ACCEPTED + want)
        t.equal(f"procedure {proc} by an unprivileged port", monitor(proc, args, SERVER, 0), TOO_WEAK)
        t.equal(f"procedure {proc} of another host", monitor(proc, args, OUTSIDE, to=OUTSIDE), TOO_WEAK)
    t.equal("another procedure", monitor(7, b"", SERVER), u32(0) * 3 + u32(3))
    t.equal("NULL", monitor(SM_NULL, b"", OUTSIDE, 0, OUTSIDE), ACCEPTED)
    t.equal("SM_NOTIFY cut short", monitor(SM_NOTIFY, u32(500), ONE), u32(0) * 3 + u32(4))
    t.equal("SM_NOTIFY with a name that is too long", monitor(SM_NOTIFY, opaque(bytes(1025)) + u32(1), ONE), u32(0) * 3 + u32(4))


def test_damaged(t, d):
    """A file that is no record file is set aside, and the server starts."""
    path = os.path.join(d.top, "state", "nlm-hosts")
    d.stop(signal.SIGKILL)
    with open(path, "r+") as f:
        whole = f.read()
        f.truncate(len(whole) - 3)
    d.start()
    t.check("the log says so", "nlm-hosts cannot be used" in d.read_log(), d.read_log())
    t.equal("it was set aside", os.path.exists(path + ".damaged"), True)
    state, hosts = records(d)
    t.check("another state number", hosts == set() and state % 2 == 1 and state > 1000, (state, hosts))


def test_off(t):
    with Daemon({"one": "rw,insecure,no_root_squash"}, {"nlm.statd": "off", "tcp.listen": ""}) as d:
        c = Client(d, ONE, ONE_NAME)
        t.equal("off: a lock", c.lock(make_file(d, c, "x")), GRANTED)
        t.equal("off: no records", os.path.exists(d.top + "/state/nlm-hosts"), False)
        harness.finish(t, d)


def test_alone(t, host):
    """Without NFSv4."""
    settings = {"nlm.statd_port": MONITOR_PORT, "tcp.listen": "", "nfs4.enabled": "no", "nfs4.grace_time": LEASE, "nfs4.lease_time": LEASE}
    with Daemon({"one": "rw,insecure,no_root_squash"}, settings) as d:
        c = Client(d, ONE, ONE_NAME)
        fh = make_file(d, c, "x")
        t.equal("alone: no grace at first", c.lock(fh), GRANTED)
        count = len(host.notices)
        restart(d)
        c.again()
        t.equal("alone: a new lock", c.lock(fh, 50), GRACE_PERIOD)
        t.equal("alone: a reclaim", c.lock(fh, reclaim=True), GRANTED)
        t.check("alone: told", wait_for(lambda: len(host.notices) > count))
        t.check("alone: grace ends", wait_for(lambda: c.lock(fh, 50) == GRANTED))
        harness.finish(t, d)


def network_up():
    for command in ("ip link set lo up", f"ip addr add {OUTSIDE}/32 dev lo", f"hostname {HOST_NAME}"):
        subprocess.run(command.split(), check=True)


def inside():
    t = Count()
    network_up()
    host, bystander = FakeHost(ONE, drop=1), FakeHost(TWO)
    try:
        settings = {**NFS4_CLIENT, "nlm.statd_port": MONITOR_PORT, "tcp.listen": ""}
        with Daemon({"one": "rw,insecure,no_root_squash"}, settings) as d:
            one, fh = test_records(t, d)
            two = test_restart(t, d, one, fh, host, bystander)
            test_local(t)
            test_forged(t, d, one, two, fh)
            test_reboot(t, d, one, two, fh)
            test_reboot_by_tcp(t, d, fh)
            test_damaged(t, d)
            harness.finish(t, d)
        test_off(t)
        test_alone(t, host)
    finally:
        host.close()
        bystander.close()
    harness.result(t)


def main(script=__file__, inner=inside):
    if INSIDE in sys.argv:
        inner()
    if subprocess.run(["unshare", "-n", "-u", "true"], capture_output=True).returncode:
        harness.skip_all("no namespaces may be made here")
    os.execvp("unshare", ["unshare", "-n", "-u", sys.executable, "-B", script, INSIDE])


if __name__ == "__main__":
    main()
