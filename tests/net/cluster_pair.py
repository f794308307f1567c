#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Two members of a cluster on one machine, as after a failure: each at its own address, with the same ports, beside one rpcbind; and locks of
NFSv3 clients that go with a member to another machine: its name, its address, and its state number. In name spaces of its own."""
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess

import cluster
import control
import harness
import mounts
import nlm_recovery as nlm
import registration
import rpcclient as r
from harness import Count, result, scratch
from rpcclient import opaque, u32

HOSTS = {"a": "10.77.0.1", "b": "10.77.0.2"}
CLIENT, OTHER, NAME = "10.77.0.9", "10.77.0.8", b"client.example"
PORT, MOUNT_PORT, STATD_PORT = 2049, 20048, 662
CLONE_NEWUTS = 0x04000000
WANT = [(registration.NFS, 3, "tcp"), (registration.NFS, 4, "tcp"), (registration.NLM, 4, "tcp"), (registration.MOUNT, 3, "tcp"), (registration.NSM, 1, "udp")]


class Machine:
    """A network of its own with the servers' addresses; the clients' are here."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.enter = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net"]
        here = os.readlink("/proc/self/ns/net")
        if not nlm.wait_for(lambda: os.readlink(f"/proc/{self.process.pid}/ns/net") != here):
            raise SystemExit("no network of its own")
        mounts.must("ip", "link", "add", "client", "type", "veth", "peer", "name", "server", "netns", str(self.process.pid))
        for before, device, hosts in (([], "client", (CLIENT, OTHER)), (self.enter, "server", HOSTS.values())):
            for host in hosts:
                mounts.must(*before, "ip", "address", "add", host + "/16", "dev", device)
            for name in ("lo", device):
                mounts.must(*before, "ip", "link", "set", name, "up")

    def end(self):
        self.process.kill()
        self.process.wait()


class Member(cluster.Member):
    def __init__(self, name, common, machine):
        self.host = HOSTS[name]
        super().__init__(name, common, {"tcp.port": PORT, "tcp.listen": self.host, "tcp.mount_port": MOUNT_PORT, "cluster.address": self.host,
                                        "nlm.statd_port": STATD_PORT, "server.rpcbind": "yes", "server.log_level": "info"})
        self.port, self.before = PORT, machine.enter
        self.write_exports([f"{self.exports['one']} 10.77.0.0/16(rw,no_root_squash,insecure)"])


@contextlib.contextmanager
def two_members(t, machine):
    common = scratch()
    os.chmod(common, 0o755)
    for name, mode in (("one", 0o777), ("cluster", 0o700)):
        os.mkdir(f"{common}/{name}")
        os.chmod(f"{common}/{name}", mode)
    try:
        with Member("a", common, machine) as a, Member("b", common, machine) as b:
            yield a, b
            if t.failed:
                print(a.read_log()[-8000:], b.read_log()[-8000:], sep="\n-- b --\n")
    finally:
        shutil.rmtree(common, ignore_errors=True)


def name_machine(name):
    if ctypes.CDLL(None, use_errno=True).sethostname(name.encode(), len(name)):
        raise SystemExit("the machine cannot be named")


def registered():
    """Registrations by root of the wanted programs with rpcbind: {(program, version, netid): port}."""
    got = registration.registered()
    return {key: got[key][0] for key in WANT if key in got and got[key][1] == "superuser"}


RIGHT = dict(zip(WANT, (PORT, PORT, PORT, MOUNT_PORT, STATD_PORT)))


def test_side_by_side(t, a, b):
    print("# side by side")
    for d in (a, b):
        t.equal(f"{d.name} is the one at its control socket", control.status_of(d)["cluster"]["instance"], d.name)
        with r.Conn(MOUNT_PORT, d.host) as c:
            t.equal(f"{d.name}: MNT at MOUNT's port", c.mnt(d.exports["one"])[0], 0)
    t.equal("rpcbind knows the ports of both", nlm.wait_for(lambda: registered() == RIGHT and RIGHT), RIGHT)


def reboot_notice(host):
    """A client's SM_NOTIFY to the monitor at that address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((CLIENT, 900))
        s.settimeout(10)
        s.sendto(r.call_message(nlm.NSM, 1, nlm.SM_NOTIFY, opaque(NAME) + u32(5)), (host, STATD_PORT))
        reply, peer = s.recvfrom(9000)
        return reply[8:] == nlm.ACCEPTED and peer == (host, STATD_PORT)


def lock_at(d, name):
    c = nlm.Client(d, CLIENT, NAME, server=d.host)
    fh = nlm.make_file(d, c, name)
    if c.lock(fh) != nlm.GRANTED:
        raise SystemExit(f"no lock at {d.name}")
    return c, fh


def test_monitors(t, a, b):
    """A client that has restarted tells each server, and each frees what is its own."""
    print("# status monitors")
    held = {d.name: lock_at(d, "of-" + d.name) for d in (a, b)}
    free = {d.name: nlm.Client(d, OTHER, b"other.example", server=d.host) for d in (a, b)}
    t.check("b's monitor answers", reboot_notice(b.host))
    t.check("b's lock is free", nlm.wait_for(lambda: free["b"].lock(held["b"][1], proc=nlm.NLM_NM_LOCK) == nlm.GRANTED))
    t.equal("a's is not", free["a"].lock(held["a"][1], proc=nlm.NLM_NM_LOCK), nlm.DENIED)
    return held["a"]


def state_number(d):
    with open(d.top + "/state/nlm-hosts") as f:
        return int(f.read().splitlines()[1].split()[1])


def test_elsewhere(t, a, held, host):
    """a's machine dies, and a is started on one of another name: in the same state directory, at the same address."""
    print("# on another machine")
    client, fh = held
    before = state_number(a)
    a.stop(signal.SIGKILL)
    name_machine("machine2")
    host.notices.clear()
    host.left[1] = 2  # both datagrams of the first notice are lost
    a.start()
    t.check("the client is told", nlm.wait_for(lambda: host.notices, 30))
    name, state, peer = host.notices[0]
    t.equal("by the address that it knows, as the name was lost", name, a.host.encode())
    t.equal("of the next state number", state, before + 2)
    t.check("from its address, by a privileged port", peer[0] == a.host and peer[1] < nlm.PRIVILEGED, peer)
    client.again()
    t.equal("it reclaims", nlm.wait_for(lambda: client.lock(fh, reclaim=True) == nlm.GRANTED), True)
    a.stop(signal.SIGKILL)
    host.notices.clear()
    a.start()
    t.check("it is told again", nlm.wait_for(lambda: host.notices, 30))
    t.equal("by the member's name, not the machine's", host.notices[0][:2], (b"a", before + 4))
    client.again()
    t.equal("it reclaims again", nlm.wait_for(lambda: client.lock(fh, reclaim=True) == nlm.GRANTED), True)


def test_one_stops(t, a, b):
    print("# one stops")
    t.equal("exit status", a.stop()[0], 0)
    b.reload()
    t.equal("the other is registered", nlm.wait_for(lambda: registered() == RIGHT and RIGHT), RIGHT)
    with b.connect() as c:
        t.equal("and serves", c.mnt(b.exports["one"])[0], 0)


def main():
    if not shutil.which("rpcbind", path="/usr/sbin:/sbin:/usr/bin"):
        harness.skip_all("there is no rpcbind")
    registration.name_spaces()
    if mounts.libc.unshare(CLONE_NEWUTS):
        harness.skip_all("no name space for the name of the machine")
    name_machine("machine1")
    t, machine = Count(), Machine()
    rpcbind, host = registration.Rpcbind(machine.enter), nlm.FakeHost(CLIENT)
    try:
        rpcbind.start()
        with two_members(t, machine) as (a, b):
            test_side_by_side(t, a, b)
            held = test_monitors(t, a, b)
            test_elsewhere(t, a, held, host)
            test_one_stops(t, a, b)
            cluster.stop_all(t, b)
    finally:
        host.close()
        rpcbind.stop()
        machine.end()
    result(t)


if __name__ == "__main__":
    main()
