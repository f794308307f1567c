#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Linux's client over failovers: guests of user-mode Linux, by NFSv3 and 4.2, work at a member of a cluster, which is killed and started again, and which is
taken over by another machine, with its address and state directory.

Network name spaces stand for the machines. In each guest, threads write records by O_SYNC and by fsync(2), make, rename and remove files, and one holds a lock
and counts under it. What was acknowledged must be there afterwards, no call may fail, and no client of the other member may get what is locked. The longest
time that a call took is printed. Each kind of failover comes once, or as often as the first argument or the environment's CLUSTER_ROUNDS says."""
import ctypes
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "history"))
import by_path  # noqa: E402
import busy  # noqa: E402

NETWORK, HOST, SERVER = "10.78.0", "10.78.0.254", "10.78.0.1"


class Worker(by_path.Mounted):
    """Work in the guest."""

    def begin(self, name):
        self.busy = busy.Busy(f"{self.top}/{name}")

    def progress(self):
        return self.busy.progress()

    def finish(self):
        return self.busy.finish()


if os.getpid() == 1:
    by_path.main(Worker)

import linux_client  # noqa: E402
import nfs4client as n  # noqa: E402
from cluster import ENDED, Member, await_status, new_client, stop_all  # noqa: E402
from harness import Count, result, scratch, skip_all  # noqa: E402
from wire import accept_all, serve_calls  # noqa: E402

PATIENCE = 90  # seconds
GRACE = 20  # seconds: Linux takes three and more to connect again, and NFSv3 must reclaim its locks in time
DEAD = 3
SETTLED = 30  # calls of each thread between failovers
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000


def ip(*lines):
    subprocess.run(["ip", "-batch", "-"], input="".join(line + "\n" for line in lines), check=True, text=True)


class Machine:
    """A network name space with a device on the common network, kept by a process that sleeps."""

    def __init__(self, name):
        self.name = name
        self.keeper = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
        self.keeper.stdout.read(1)
        ip(f"link add {name}h mtu 9000 type veth peer name {name} mtu 9000 netns {self.keeper.pid}", f"link set {name}h master br0 up")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "link", "set", name, "gso_max_segs", "1", "up")

    def command(self):
        return ["nsenter", f"--net=/proc/{self.keeper.pid}/ns/net"]

    def run(self, *words):
        subprocess.run([*self.command(), *words], check=True)

    def sockets(self, make):
        """make() with the sockets of this machine."""
        got = []

        def inside():
            with open(f"/proc/{self.keeper.pid}/ns/net") as f:
                if libc.setns(f.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            got.append(make())
        t = threading.Thread(target=inside)
        t.start()
        t.join()
        return got[0]

    def take_address(self):
        """As keepalived does: adds it, and tells the network where it is now, again and again for a while, as such a packet may be lost."""
        self.run("ip", "addr", "add", f"{SERVER}/24", "dev", self.name)
        s = self.sockets(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        self.sockets(lambda: s.bind((self.name, 0)))
        mac, address = s.getsockname()[4], socket.inet_aton(SERVER)
        told = b"\xff" * 6 + mac + struct.pack(">HHHBBH", 0x806, 1, 0x800, 6, 4, 1) + mac + address + bytes(6) + address
        self.given = threading.Event()

        def tell(given, times=10):
            with s:
                while not given.wait(0.5 if times < 10 else 0) and times:
                    s.send(told)
                    times -= 1
        threading.Thread(target=tell, args=(self.given,), daemon=True).start()

    def give_address(self):
        self.given.set()
        self.run("ip", "addr", "del", f"{SERVER}/24", "dev", self.name)

    def end(self):
        self.keeper.kill()
        self.keeper.wait()


class Moving(Member):
    """A member with an address of its own, which one of the machines has."""
    host = SERVER

    def __init__(self, common, machines):
        super().__init__("a", common, {"nfs4.grace_time": GRACE, "tcp.listen": SERVER, "cluster.address": SERVER})
        self.machines = machines
        for m in machines:  # each has an rpcbind
            accept_all(m.sockets(lambda: socket.create_server(("", linux_client.RPCBIND))),
                       lambda conn: serve_calls(conn, lambda call: linux_client.say_where(call, SERVER, self.port)))
        self.before = machines[0].command()
        machines[0].take_address()

    def move(self):
        """Moves the member to the other machine."""
        self.machines[0].give_address()
        self.machines.reverse()
        self.machines[0].take_address()
        self.before = self.machines[0].command()


def link(i):
    """As linux_client.link(), on the common network."""
    near, far, mac = f"lx{i}h", f"lx{i}g", f"52:54:00:03:{i:02x}:02"
    ip(f"link add {near} mtu 9000 type veth peer name {far} mtu 9000", f"link set {near} master br0 gso_max_segs 1 up", f"link set {far} up")
    return HOST, f"{NETWORK}.{i + 10}", f"vec0:transport=raw,ifname={far},depth=64,mtu=9000,mac={mac}"


class Guest(linux_client.Guest):
    def __init__(self, i, vers, a):
        super().__init__(i, link(i), os.path.abspath(__file__))
        self.name = "v" + vers
        self.boot()
        more = f",mountaddr={SERVER},mountproto=tcp,mountport={a.port}" if vers == "3" else f",clientaddr={self.own}"
        self.ask("mount", f"{SERVER}:{a.exports['one']}", f"vers={vers},addr={SERVER},proto=tcp,port={a.port},hard{more}", {})
        self.ask("begin", self.name)


class Intruder(threading.Thread):
    """A client of the other member, who wants what is locked all the time."""

    def __init__(self, b, names):
        super().__init__(daemon=True)
        self.c, self.over, self.got, self.asked = new_client(b, "intruder"), False, [], 0
        root = self.c.path(b.exports["one"])
        self.files = [(name, *self.c.open(self.c.path(b.exports["one"] + "/" + name), "locked")[::-1]) for name in names]
        self.root = root

    def run(self):
        while not self.over:
            for name, fh, res in self.files:
                if self.c.lock(fh, res["stateid"])["status"] == n.OK:
                    self.got.append(name)
                    return
                self.asked += 1
            time.sleep(0.005)


def await_work(t, guests, calls):
    """Waits until each thread has made so many further calls."""
    before = [g.ask("progress")[0] for g in guests]
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        now = [g.ask("progress") for g in guests]
        if any(failed for _, failed in now) or all(done.get(what, 0) >= was.get(what, 0) + calls for (done, _), was in zip(now, before)
                                                   for what in busy.KINDS):
            break
        time.sleep(0.1)
    else:
        t.check("all go on", False, (before, now))


def killed(a):
    a.killed()
    a.start()


def moved(a):
    a.killed()
    a.move()
    a.start()


def moved_late(a):
    """The member moves after the others have declared it dead."""
    a.killed()
    time.sleep(DEAD + 1)
    a.move()
    a.start()


def moved_by_plan(a):
    a.stop()
    a.move()
    a.start()


def hung(a):
    """The member hangs for longer than its lease."""
    a.stand_still()
    time.sleep(DEAD + 1)
    a.process.send_signal(signal.SIGCONT)
    if a.process.wait(PATIENCE) != ENDED:
        raise SystemExit("it goes on after its lease")
    a.start()


FAILOVERS = killed, moved, moved_late, moved_by_plan, hung


def work(t, a, b, guests, rounds):
    await_work(t, guests, SETTLED)
    intruder = Intruder(b, [g.name for g in guests])
    intruder.start()
    for _ in range(rounds):
        for failover in FAILOVERS:
            since = time.monotonic()
            failover(a)
            started = time.monotonic() - since
            await_work(t, guests, SETTLED)
            print(f"# {failover.__name__}: it answered after {started:.1f} s, all went on after {time.monotonic() - since:.1f} s", flush=True)
    for g in guests:
        acknowledged, failed, slowest, again = g.ask("finish")
        t.equal(f"{g.name}: calls that failed", failed, [])
        t.check(f"{g.name}: calls made again that found their work done: one for each server that ended, at most", again <= rounds * len(FAILOVERS), again)
        print(f"# {g.name}: acknowledged " + ", ".join(f"{what} {k}" for what, k in acknowledged.items()) + "; longest " +
              ", ".join(f"{what} {s:.1f} s" for what, s in slowest.items()) + f"; {again} names were made again")
        busy.check_files(t, f"{a.exports['one']}/{g.name}", g.name, acknowledged)
        g.acknowledged = acknowledged
        if g is guests[0]:
            intruder.over = True
            intruder.join()
    t.equal(f"locks that the other member's client got, of {intruder.asked} tries", intruder.got, [])
    fh, res = next((fh, res) for name, fh, res in intruder.files if name == guests[0].name)
    t.equal("it gets what is not locked any more", await_status(lambda: intruder.c.lock(fh, res["stateid"]), n.GRACE, n.DENIED, seconds=PATIENCE)["status"], n.OK)


def main():
    if why := linux_client.missing():
        skip_all(why)
    ip("link add br0 mtu 9000 type bridge", "link set br0 up", f"addr add {HOST}/24 dev br0")
    t, common, machines, guests = Count(), scratch(), [], []
    os.chmod(common, 0o755)
    for name, mode in (("one", 0o777), ("cluster", 0o700)):
        os.mkdir(f"{common}/{name}")
        os.chmod(f"{common}/{name}", mode)
    try:
        machines += [Machine("lan0"), Machine("lan1")]
        a, b = Moving(common, list(machines)), Member("b", common, {"nfs4.grace_time": GRACE})
        for m in (a, b):
            m.write_exports([f"{m.exports['one']} 127.0.0.0/8(rw,no_root_squash,insecure) {NETWORK}.0/24(rw,no_root_squash,insecure)"])
        with a, b:
            guests += [Guest(i, vers, a) for i, vers in enumerate(("3", "4.2"))]
            work(t, a, b, guests, int((sys.argv[1:] or [os.environ.get("CLUSTER_ROUNDS", 1)])[0]))
            stop_all(t, a, b)
            if t.failed:
                print(a.read_log()[-8000:], b.read_log()[-8000:], sep="\n-- b --\n")
    finally:
        for g in guests:
            g.end()
        for m in machines:
            m.end()
        shutil.rmtree(common, ignore_errors=True)
    result(t)


if __name__ == "__main__":
    main()
