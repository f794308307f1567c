#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""A client that waits for a dead machine, whose TCP has acknowledged its calls: where the member is started next, it learns at once that its connection
is gone. The file of connections, which somebody else has written: one packet for each line at most, and to no host that many.

The machines are networks of their own, and a local file system stands for the cluster's."""
import array
import fcntl
import os
import select
import shutil
import signal
import socket

import cluster
import harness
import mounts
import nlm_recovery as nlm
import rpcclient as r
from cluster import children
from cluster_pair import CLIENT, HOSTS, OTHER, PORT, Machine
from harness import Count, result, scratch

PATIENCE = 60
SIOCOUTQ = 0x5411
MOST_OF_HOST = 16
SYN, ACK = 2, 16
GETATTR = 1


class Member(cluster.Member):
    def __init__(self, common):
        self.host = HOSTS["a"]
        super().__init__("a", common, {"tcp.port": PORT, "tcp.listen": self.host, "cluster.address": self.host, "server.log_level": "info"})
        self.port = PORT
        self.write_exports([f"{self.exports['one']} 10.77.0.0/16(rw,no_root_squash,insecure)"])

    def noted(self):
        """Lines of the file of connections."""
        try:
            with open(self.top + "/state/connections") as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []


class Wire:
    """SYNs without ACK that the client's device gets: (address, port) of each."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, socket.htons(0x0800))
        self.socket.bind(("client", 0x0800))

    def syns(self):
        found = []
        while True:
            try:
                p = self.socket.recv(200)
            except BlockingIOError:
                return found
            tcp = p[(p[0] & 15) * 4:]
            if p[9] == socket.IPPROTO_TCP and tcp[13] & (SYN | ACK) == SYN and int.from_bytes(tcp[:2], "big") == PORT:
                found.append((socket.inet_ntoa(p[16:20]), int.from_bytes(tcp[2:4], "big")))


def unsent(conn):
    n = array.array("i", [0])
    fcntl.ioctl(conn.s, SIOCOUTQ, n)
    return n[0]


def dies(d, machine):
    """Ends the machine without a packet to its clients."""
    mounts.must("ip", "link", "del", "client")
    for pid in (*children(d.process.pid), d.process.pid):
        os.kill(pid, signal.SIGKILL)
    d.process.wait()
    machine.end()


machines = []


def starts(d, watch=None):
    machine = Machine()
    machines.append(machine)
    watched = watch and watch()
    d.before = machine.enter
    d.start()
    return (machine, watched) if watch else machine


def ended(conn):
    """What recv() returns or raises when the connection ends; None: it goes on."""
    if not select.select([conn.s], [], [], PATIENCE)[0]:
        return None
    try:
        return conn.s.recv(1)
    except OSError as e:
        return e


def test_waits(t, d, machine):
    print("# calls that a dead machine has acknowledged")
    conns = [r.Conn(PORT, d.host, source=(host, 0)) for host in (CLIENT, OTHER)]
    roots = [d.root(c, "one") for c in conns]
    lines = {f"{d.host} %s %d" % c.s.getsockname() for c in conns}
    t.check("the connections are noted", nlm.wait_for(lambda: lines <= set(d.noted())), d.noted()[:3])
    d.stand_still()
    for c, root in zip(conns, roots):
        c.send(r.call_message(r.NFS, 3, GETATTR, r.getattr_args(root)))
    t.check("the calls are acknowledged", nlm.wait_for(lambda: not any(unsent(c) for c in conns)))
    dies(d, machine)
    machine = starts(d)
    for c in conns:
        how = ended(c)
        t.check("the client learns that its connection is gone", isinstance(how, ConnectionResetError), how)
        c.close()
    t.check("the log tells", d.wait_log("connections of the run before are ended", d.since))
    return machine


def test_forged(t, d, machine):
    print("# a file that somebody else has written")
    dies(d, machine)
    mine, port = d.host, 1000
    good = [f"{mine} {OTHER} {port + i}" for i in range(MOST_OF_HOST)]
    bad = ["", " ", "x", f"{mine} {CLIENT}", f"{mine} {CLIENT} 0", f"{mine} {CLIENT} 65536", f"{mine} {CLIENT} 7x", f"{mine} {CLIENT} 7 7", f"{mine} {CLIENT} -7",
           f"{CLIENT} {OTHER} 7", f"{mine} 255.255.255.255 7", f"{mine} 224.0.0.1 7", f"{mine} 0.0.0.0 7", f"{mine} name 7", f"{mine} fe80::1 7", "x" * 5000]
    with open(d.top + "/state/connections", "w") as f:
        f.write("\n".join(good[:1] + bad[1:] + good[1:] + [f"{mine} {OTHER} {2000 + i}" for i in range(3000)] + bad[:1]))
    machine, wire = starts(d, Wire)
    t.check("the log tells", d.wait_log("lines are no connections of this member's clients, or too many of one client", d.since))
    t.check("it was sent to the client", d.wait_log(f"{MOST_OF_HOST} connections of the run before are ended", d.since))
    t.equal("one packet for each good line", sorted(wire.syns()), [(OTHER, port + i) for i in range(MOST_OF_HOST)])
    t.check("it is written anew", nlm.wait_for(lambda: not any(OTHER in line for line in d.noted())), d.noted()[:3])
    return machine


def test_alive(t, d, machine):
    """The same machine starts the member again: clients have connected from the same ports by then, or not."""
    print("# the daemon is killed")
    c = r.Conn(PORT, d.host, source=(CLIENT, 0))
    d.root(c, "one")
    here = c.s.getsockname()
    t.check("the connection is noted", nlm.wait_for(lambda: f"{d.host} %s %d" % here in d.noted()), d.noted()[:3])
    d.killed()
    t.check("its connection ends", ended(c) is not None)
    c.close()
    d.start()
    again = r.Conn(PORT, d.host, source=(CLIENT, 0))
    t.check("it serves", d.root(again, "one"))
    again.close()
    t.equal("exit status", d.stop()[0], 0)
    d.process = None


def main():
    mounts.own_namespace()
    if mounts.libc.unshare(0x40000000):
        harness.skip_all("no network name space")
    mounts.must("ip", "link", "set", "lo", "up")
    t, common = Count(), scratch()
    os.chmod(common, 0o755)
    for name, mode in (("one", 0o777), ("cluster", 0o700)):
        os.mkdir(f"{common}/{name}")
        os.chmod(f"{common}/{name}", mode)
    d = Member(common)
    try:
        machine = starts(d)
        machine = test_waits(t, d, machine)
        machine = test_forged(t, d, machine)
        test_alive(t, d, machine)
        if t.failed:
            print(d.read_log()[-8000:])
    finally:
        d.__exit__()
        for m in machines:
            m.end()
        shutil.rmtree(common, ignore_errors=True)
    result(t)


if __name__ == "__main__":
    main()
