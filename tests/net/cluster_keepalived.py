#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""keepalived moves a member of a cluster between two machines, while clients of NFSv3, 4.0 and 4.1 write: the daemon is killed, its machine dies,
the member is moved back by a command, and the daemon hangs. Nothing that was acknowledged is lost, no client sees an error, and the outage of each is printed.

The machines are name spaces with processes, a /run and a network each; a script stands in for systemd. One file system is the cluster's."""
import contextlib
import os
import shutil
import signal
import struct
import subprocess
import threading
import time

import cluster
import harness
import mounts
import nfs4client as n
import rpcclient as r
from cluster_counter import Restarted, ask
from harness import Count, result, scratch
from nlm_recovery import wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "..", "systemd")
PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
ADDRESS, CLIENT, NODES = "10.88.0.1", "10.88.0.9", ("10.88.0.11", "10.88.0.12")
PORT, RECORD = 2049, 64
SOON = 120  # seconds; a bound for waits that end with what they wait for
CALL = 3  # seconds without an answer, after which a client takes its connection for dead; clients come back within the grace period
BINARIES = {"ringnfsd": os.path.abspath(os.environ.get("RINGNFSD", "./ringnfsd")), "ringnfsctl": os.path.abspath("./ringnfsctl")}

KEEPALIVED = """
global_defs {{
	router_id {node}
	vrrp_version 3
	script_user root
}}
vrrp_script nfs1 {{
	script "{top}/libexec/keepalived-check nfs1"
	interval 1
	timeout 3
	fall 2
	rise 1
}}
vrrp_instance nfs1 {{
	state BACKUP
	nopreempt
	interface lan
	virtual_router_id 51
	priority {priority}
	advert_int 1
	virtual_ipaddress {{
		{address}/24
	}}
	track_script {{
		nfs1
	}}
	notify "{top}/libexec/keepalived-notify"
}}
"""


class Machine:
    def __init__(self, top, number):
        self.top, self.number, self.keepalived = top, number, None

    def boot(self):
        words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "--mount-proc", "sleep", "infinity"]
        self.process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        self.init = wait_for(lambda: self._init(children))
        if not self.init:
            raise SystemExit("no name spaces of its own")
        self.enter = ["nsenter", "--target", self.init, "--net", "--mount", "--pid"]
        name = f"node{self.number}"
        mounts.must("ip", "link", "add", name, "type", "veth", "peer", "name", "lan", "netns", self.init)
        mounts.must("ip", "link", "set", name, "master", "lan", "up")
        self.run("ip", "address", "add", NODES[self.number] + "/24", "dev", "lan")
        for device in ("lo", "lan"):
            self.run("ip", "link", "set", device, "up")
        self.run("mount", "-t", "tmpfs", "ringnfs-test", "/run")
        config = f"{self.top}/keepalived{self.number}.conf"
        with open(config, "w") as f:
            f.write(KEEPALIVED.format(node=name, top=self.top, priority=100 - self.number, address=ADDRESS))
        env = harness.sanitizer_env({**os.environ, "PATH": f"{self.top}/bin:{PATH}", "SETTINGS": self.top + "/etc/ringnfs", "LOG": self.top + "/units",
                                     "RINGNFSD": BINARIES["ringnfsd"], "RINGNFSCTL": BINARIES["ringnfsctl"]})
        with open(f"{self.top}/log{self.number}", "ab") as log:
            self.keepalived = subprocess.Popen([*self.enter, "keepalived", "--dont-fork", "--log-console", "--use-file", config, "--vrrp"], env=env,
                                               stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _init(self, children):
        """The first process of the name spaces, when it has become sleep."""
        with open(children) as f:
            pid = f.read().strip()
        if pid:
            with open(f"/proc/{pid}/comm") as f:
                return pid if f.read() == "sleep\n" else None
        return None

    def run(self, *words):
        return mounts.must(*self.enter, *words)

    def read(self, path):
        return subprocess.run([*self.enter, "cat", path], capture_output=True, text=True).stdout.strip()

    def serves(self):
        return self.read("/run/unit.nfs1.state") == "active" and ADDRESS in self.run("ip", "-o", "address")

    def die(self):
        """Ends all processes of the machine, and its network."""
        os.kill(int(self.init), signal.SIGKILL)
        self.process.wait()
        self.keepalived.wait()

    def log(self):
        with open(f"{self.top}/log{self.number}", errors="replace") as f:
            return f.read()


def connected():
    conn = r.Conn(PORT, ADDRESS, timeout=1)
    conn.s.settimeout(CALL)
    return conn


class Far(n.Client):
    def _connect(self):
        self.conn = connected()


class Writer(threading.Thread):
    """Writes one numbered record after another, each until it is acknowledged."""

    def __init__(self, name, export):
        super().__init__(name=name, daemon=True)
        self.export, self.ends = export, threading.Event()
        self.written, self.errors, self.restarts = 0, [], 0
        self.acknowledged = time.monotonic()
        self.outage = 0.0  # the longest time between two acknowledgements since it was reset
        while not self.connect():
            time.sleep(0.05)
        self.create()

    def record(self, number):
        return struct.pack(">Q", number).ljust(RECORD, b".")

    def run(self):
        try:
            while not self.ends.is_set():
                self.write_next()
        except Exception as e:  # pylint: disable=broad-except
            self.errors.append(repr(e))

    def write_next(self):
        try:
            status = ask(lambda: self.write(self.written * RECORD, self.record(self.written)))["status"]
        except Restarted:
            self.restarts += 1
            while not self.recover():
                time.sleep(0.05)
            return
        if status:
            self.errors.append(f"WRITE: {status}")
            self.ends.set()
            return
        now = time.monotonic()
        self.outage = max(self.outage, now - self.acknowledged)
        self.acknowledged = now
        self.written += 1

    def recover(self):
        try:
            return self.connect() and self.reclaim()
        except Restarted:
            return False


class Three(Writer):
    conn = None

    def connect(self):
        try:
            if self.conn:
                self.conn.close()
            self.conn = connected()
            return True
        except OSError:
            return False

    def create(self):
        self.fh = self.conn.nfs(r.CREATE, r.create_args(self.conn.mnt(self.export)[1], self.name, attrs=r.sattr(mode=0o666)))["fh"]

    def write(self, offset, data):
        return self.conn.nfs(r.WRITE, r.write_args(self.fh, offset, data))

    def reclaim(self):
        return True


class Four(Writer):
    """A writer of NFSv4 that has its file locked, too."""
    c = None
    has_all = None  # the client id by which it has what it had

    def connect(self):
        try:
            if self.c:
                self.c.again()
            else:
                self.c = Far(PORT, self.name, int(self.name[-1]))
            return self.c.register()["status"] == n.OK
        except (r.Closed, r.Refused, OSError):
            return False

    def create(self):
        self.c.reclaim_complete()
        res, self.fh = self.c.open(self.c.path(self.export), self.name, create=True)
        self.stateid = res["stateid"]
        if self.c.lock(self.fh, self.stateid)["status"]:
            raise SystemExit(f"{self.name}: no lock")
        self.has_all = self.c.clientid

    def write(self, offset, data):
        return self.c.last(n.putfh(self.fh), n.write(self.stateid, offset, data))

    def reclaim(self):
        """Under the same client id all that it has is there still: an answer was late, or the state has moved. Its own lock would be in the way of
        another reclaim, which is by a new lock-owner."""
        if self.c.clientid == self.has_all:
            return True
        res = ask(lambda: self.c.reclaim_open(self.fh))
        if res["status"] == n.OK:
            self.stateid, self.has_all = res["stateid"], self.c.clientid
            res = ask(lambda: self.c.lock(self.fh, self.stateid, reclaim=True))
        if res["status"] != n.OK:
            self.errors.append(f"reclaim: {res['status']}")
            self.ends.set()
        ask(lambda: {"status": self.c.reclaim_complete()})
        return True


def await_member(t, what, machine):
    t.check(f"{what}: machine {machine.number} serves", wait_for(machine.serves, SOON), machine.log()[-3000:])


def await_writers(t, what, writers, since):
    """Waits until each writer was cut off and writes again."""
    for w in writers:
        t.check(f"{what}: {w.name} was cut off", wait_for(lambda w=w: w.restarts > since[w] or w.errors, SOON), w.errors)
        goes_on = w.written + 20
        t.check(f"{what}: {w.name} writes again", wait_for(lambda w=w, at=goes_on: w.written > at or w.errors, SOON), w.errors)
    print(f"# {what}: outage of " + ", ".join(f"{w.name} {w.outage:.1f} s" for w in writers), flush=True)


@contextlib.contextmanager
def disturbed(t, what, writers):
    since = {w: w.restarts for w in writers}
    for w in writers:
        w.outage = 0.0
    yield
    await_writers(t, what, writers, since)


def prepare(top):
    for folder in ("bin", "libexec", "etc", "etc/ringnfs", "one", "cluster", "state"):
        os.mkdir(f"{top}/{folder}")
    os.chmod(top, 0o755)
    os.chmod(top + "/one", 0o777)
    os.chmod(top + "/cluster", 0o700)
    shutil.copy(HERE + "/systemctl", top + "/bin/systemctl")
    for name in ("keepalived-check", "keepalived-notify"):
        with open(f"{SOURCES}/{name}.in") as f, open(f"{top}/libexec/{name}", "w") as out:
            out.write(f.read().replace("@sysconfdir@", top + "/etc").replace("@sbindir@/ringnfsd", BINARIES["ringnfsd"])
                      .replace("@bindir@/ringnfsctl", BINARIES["ringnfsctl"]))
    for script in ("keepalived-check", "keepalived-notify"):
        os.chmod(f"{top}/libexec/{script}", 0o755)
    with open(top + "/exports", "w") as f:
        f.write(f"{top}/one 10.88.0.0/24(rw,no_root_squash,insecure)\n")
    settings = {"server": {"state_dir": top + "/state", "exports_file": top + "/exports", "exports_dir": top + "/none", "rpcbind": "no", "threads": 4, "memory_max": "256M"},
                "tcp": {"port": PORT, "listen": ADDRESS, "mount_port": 0}, "rdma": {"enabled": "no"}, "nfs3": {"manage_gids": "no"},
                "nfs4": {"manage_gids": "no", "lease_time": 5, "grace_time": 10},
                "cluster": {"name": "lab", "instance": "nfs1", "path": top + "/cluster", "address": ADDRESS, "dead_time": cluster.DEAD}}
    with open(top + "/etc/ringnfs/nfs1.conf", "w") as f:
        for section, keys in settings.items():
            f.write(f"[{section}]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items()))


def check_records(t, w, path):
    with open(path, "rb") as f:
        data = f.read()
    lost = [i for i in range(w.written) if data[i * RECORD:(i + 1) * RECORD] != w.record(i)]
    t.check(f"{w.name}: what was acknowledged is there", not lost, f"{len(lost)} of {w.written}, from {lost[:3]}")
    t.equal(f"{w.name}: no error", w.errors, [])
    print(f"# {w.name}: {w.written} records acknowledged, {len(lost)} lost, {w.restarts} times cut off")


def test_all(t, top, machines):
    one, two = machines
    one.boot()
    await_member(t, "the first start", one)
    two.boot()
    writers = [Three("v3", top + "/one"), Four("v4.0", top + "/one"), Four("v4.1", top + "/one")]
    for w in writers:
        w.start()
    t.check("all write", wait_for(lambda: all(w.written > 20 for w in writers), SOON), [w.errors for w in writers])

    with disturbed(t, "the daemon is killed", writers):
        one.run("sh", "-c", "kill -9 $(cat /run/unit.nfs1.pid)")
    await_member(t, "the daemon is killed", one)

    with disturbed(t, "the machine dies", writers):
        one.die()
    await_member(t, "the machine dies", two)

    one.boot()
    t.check("a machine that returns does not take the address", wait_for(lambda: "BACKUP" in one.read("/run/ringnfs-nfs1.vrrp") or "Entering BACKUP" in one.log(), SOON))
    t.check("it stays where it is", two.serves() and not one.serves())

    ctl = BINARIES["ringnfsctl"], "--socket", "/run/ringnfs-nfs1/control", "cluster"
    t.check("its grace period ends", wait_for(lambda: "no grace period" in two.run(*ctl, "status"), SOON))
    with disturbed(t, "it is moved back", writers):
        out = two.run(*ctl, "move")
        t.check("cluster move", "member nfs1 has left with its clients' state, and its server has ended" in out, out)
    await_member(t, "it is moved back", one)
    t.check("and nowhere else", not two.serves())

    with disturbed(t, "the daemon hangs", writers):
        one.run("sh", "-c", "kill -STOP $(cat /run/unit.nfs1.pid)")
    await_member(t, "the daemon hangs", two)

    for w in writers:
        w.ends.set()
    for w in writers:
        w.join()
        check_records(t, w, f"{top}/one/{w.name}")
    with open(top + "/units", errors="replace") as f:
        t.check("no sanitizer report", "Sanitizer" not in f.read())


def main():
    if not shutil.which("keepalived", path=PATH):
        harness.skip_all("there is no keepalived")
    mounts.own_namespace()
    if mounts.libc.unshare(0x40000000):
        harness.skip_all("no network name space")
    mounts.must("ip", "link", "set", "lo", "up")
    mounts.must("ip", "link", "add", "lan", "type", "bridge")
    mounts.must("ip", "address", "add", CLIENT + "/24", "dev", "lan")
    mounts.must("ip", "link", "set", "lan", "up")
    t, top = Count(), scratch()
    machines = [Machine(top, number) for number in range(2)]
    try:
        prepare(top)
        test_all(t, top, machines)
    finally:
        if t.failed:
            print(*(m.log()[-4000:] for m in machines), open(top + "/units", errors="replace").read()[-6000:], sep="\n--\n")
        for m in machines:
            with contextlib.suppress(AttributeError, ProcessLookupError):
                m.die()
        shutil.rmtree(top, ignore_errors=True)
    result(t)


if __name__ == "__main__":
    main()
