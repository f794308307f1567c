#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Peers from many addresses that send a byte a second, and what is left for a polite client beside them: memory, and connections."""
import concurrent.futures
import os
import resource
import select
import socket
import threading
import time

import harness
import rpcclient as r
from harness import Count, Daemon

MIB = 1 << 20
POLITE = "127.0.0.2"
FEW_CONNECTIONS = 300


class Trickle:
    """Sockets from many addresses, each of which sends `first` and then one byte a second of `rest`. Those that the server closes are
    connected again if `stubborn`."""

    def __init__(self, port, hosts, each, first, rest, stubborn=True):
        self.port, self.first, self.rest, self.stubborn, self.going, self.lost = port, first, rest, stubborn, True, 0
        self.conns = [[host, self.connect(host), 0] for host in hosts for _ in range(each)]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def connect(self, host):
        s = socket.socket()
        s.bind((host, 0))
        s.settimeout(10)
        try:
            s.connect(("127.0.0.1", self.port))
            s.setblocking(False)
            s.send(self.first)  # what does not fit is left out: the record is the longer on its way
        except OSError:
            pass
        return s

    def gone(self, s):
        try:
            return select.select([s], [], [], 0)[0] and s.recv(65536) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def run(self):
        while self.going:
            for conn in self.conns:
                host, s, at = conn
                if self.gone(s):
                    s.close()
                    self.lost += 1
                    conn[1:] = [self.connect(host) if self.stubborn else s, 0]
                    continue
                try:
                    s.send(self.rest[at:at + 1] or b"\0")
                except OSError:
                    pass
                conn[2] += 1
            time.sleep(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.going = False
        self.thread.join()
        for _, s, _ in self.conns:
            s.close()


def record(message):
    return r.u32(len(message) | 0x80000000) + message


def hosts(net, n):
    return [f"127.0.{net}.{i + 1}" for i in range(n)]


def rounds(d, fh, seconds):
    """Number of WRITEs of 1 MiB that a polite client completes, one after the other; the longest time of one."""
    data, done, worst = os.urandom(MIB), 0, 0.0
    with d.connect(source=(POLITE, 0)) as c:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            start = time.monotonic()
            if c.nfs(r.WRITE, r.write_args(fh, 0, data, r.UNSTABLE))["status"] == 0:
                done += 1
            worst = max(worst, time.monotonic() - start)
    return done, worst


def check_memory(t, d, fh, what, first, seconds, longest):
    """120 connections from 60 addresses begin WRITEs of 1 MiB, of which they send `first` bytes, and then a byte a second."""
    write = record(r.call_message(r.NFS, 3, r.WRITE, r.write_args(fh, 0, bytes(MIB))))
    with Trickle(d.port, hosts(1, 60), 2, write[:first], write[first:]):
        time.sleep(0.5)
        done, worst = rounds(d, fh, seconds)
        print(f"# beside 120 that sent {what}: {done} WRITEs, the longest {worst:.1f} s")
        t.check(f"a polite client beside 120 that sent {what} and trickle", done >= 10 and worst < longest, (done, worst))


def test_memory_of_little(t, d, fh):
    check_memory(t, d, fh, "4 KiB", 4096, 2, 3)


def test_memory_of_much(t, d, fh):
    check_memory(t, d, fh, "200 KiB", 200 << 10, 7, 12)


def newcomer(d, seconds):
    """Time until a new client's first answer; None: longer than that."""
    start = time.monotonic()
    try:
        with d.connect(source=(POLITE, 0), timeout=seconds) as c:
            c.nfs(r.NULL)
    except (OSError, r.Closed):
        return None
    return time.monotonic() - start


def test_connections(t, d):
    """All connections taken by tricklers: of one address, of a few, of one each; they come back when they are closed."""
    null = record(r.call_message(r.NFS, 3, r.NULL))
    for what, who, each in (("1 address", hosts(2, 1), 320), ("6 addresses", hosts(3, 6), 53), ("250 addresses", hosts(4, 250), 1),
                            ("5 strangers", hosts(9, 5), 64)):
        with Trickle(d.port, who, each, null[:4], null[4:]):
            time.sleep(2.5 if each == 1 else 0.5)
            others = []
            if each == 1:  # the places that are left
                others = [d.connect(source=("127.0.5.1", 0)) for _ in range(FEW_CONNECTIONS - len(who))]
            waits = [newcomer(d, 5) for _ in range(5)]
            t.check(f"newcomers beside {what}", all(w is not None and w < 3 for w in waits), waits)
            for c in others:
                c.close()
        time.sleep(0.2)


def test_busy(t, d):
    """All connections taken by one client that makes good use of them; newcomers have a share all the same."""
    null = record(r.call_message(r.NFS, 3, r.NULL))
    with Trickle(d.port, hosts(6, 1), 320, null, null * 2) as crowd:
        stop = threading.Event()

        def use():
            while not stop.wait(0.3):
                for _, s, _ in crowd.conns:
                    try:
                        s.send(null)
                    except OSError:
                        pass

        worker = threading.Thread(target=use)
        worker.start()
        waits = [newcomer(d, 5) for _ in range(5)]
        t.check("newcomers beside 300 busy connections", all(w is not None and w < 3 for w in waits), waits)
        stop.set(), worker.join()


def test_strangers(t, d, fh):
    """Limits of a host without an export: no long record, few connections, few calls at a time."""
    write = record(r.call_message(r.NFS, 3, r.WRITE, r.write_args(fh, 0, bytes(MIB))))
    with d.connect(source=("127.0.9.1", 0)) as c:
        try:
            c.send_raw(write)
            c.recv()
            got = "an answer"
        except (r.Closed, OSError):
            got = "closed"
        t.equal("a long record of a stranger", got, "closed")
    conns = [d.connect(source=("127.0.9.2", 0)) for _ in range(60)]
    time.sleep(0.3)
    live = 0
    for c in conns:
        try:
            c.nfs(r.NULL)
            live += 1
        except (r.Closed, OSError):
            pass
        c.close()
    t.check("connections of one stranger", 1 <= live <= 16, live)
    with d.connect(source=("127.0.9.3", 0)) as c:
        for _ in range(50):
            c.send(r.call_message(r.NFS, 3, r.NULL))
        for _ in range(50):
            r.reply_body(c.recv())
        t.equal("its calls are answered in turn", c.nfs(r.NULL), None)


def with_file(test):
    def run(t, d):
        with d.connect() as c:
            fh = c.nfs(r.CREATE, r.create_args(d.root(c, "x"), "f"))["fh"]
        test(t, d, fh)

    return run


def serve(tests):
    """Tests one after the other with a daemon of their own: what they counted."""
    t = Count()
    settings = {"tcp.max_connections": FEW_CONNECTIONS, "server.memory_max": "64M"}
    with Daemon({"x": "rw,insecure,no_root_squash"}, settings) as d:
        d.write_exports([f"{d.exports['x']} 127.0.0.0/21(rw,insecure,no_root_squash)"])
        d.reload()
        for test in tests:
            test(t, d)
        t.check("it is served still", newcomer(d, 5) is not None)
        harness.finish(t, d)
    return t


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    t = Count()
    # Side by side, since most of the time is waiting for the server's patience to end.
    lanes = ([with_file(test_memory_of_much)], [with_file(test_memory_of_little), test_busy, with_file(test_strangers)],
             [test_connections])
    with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
        for one in pool.map(serve, lanes):
            t.passed, t.failed, t.skipped = t.passed + one.passed, t.failed + one.failed, t.skipped + one.skipped
    harness.result(t)


if __name__ == "__main__":
    main()
