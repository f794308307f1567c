#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Registration with rpcbind: what a local user has registered before, or registers after a restart of rpcbind, does not stay, and what the
restart has lost comes back, at a reload or by itself. Root's own status monitor stays. In name spaces of its own."""
import ctypes
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import mounts
import rpcclient as r
from harness import Count, Daemon, finish, result, skip_all

NSM, NFS, MOUNT, NLM = 100024, 100003, 100005, 100021
SOCKET = "/run/rpcbind.sock"
CLONE_NEWNET = 0x40000000
USER = 12345
SET = 1


def name_spaces():
    mounts.own_namespace()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        skip_all("no network name space")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    mounts.must("mount", "-t", "tmpfs", "ringnfs-test", "/run")


class Rpcbind:
    def __init__(self, before=()):
        self.before = before
        self.process = None

    def start(self):
        self.process = subprocess.Popen([*self.before, shutil.which("rpcbind", path="/usr/sbin:/sbin:/usr/bin"), "-f"], stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(SOCKET)
                return
            except OSError:
                time.sleep(0.02)
        raise SystemExit("rpcbind does not start")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


def set_as(uid, prog, vers, netid, port):
    """Registers as that user, over the local socket: rpcbind's answer."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgid(uid)
        os.setuid(uid)
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(SOCKET)
            address = f"0.0.0.0.{port >> 8}.{port & 255}".encode()
            args = r.u32(prog) + r.u32(vers) + r.opaque(netid.encode()) + r.opaque(address) + r.opaque(b"")
            call = struct.pack(">10I", 7, 0, 2, 100000, 4, SET, 0, 0, 0, 0) + args
            s.sendall(struct.pack(">I", 0x80000000 | len(call)) + call)
            os.write(writer, s.recv(1000)[-4:])
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    answer = os.read(reader, 4)
    os.close(reader)
    return struct.unpack(">I", answer)[0] if len(answer) == 4 else None


def registered():
    """{(program, version, netid): (port, owner)}"""
    out = subprocess.run(["rpcinfo"], capture_output=True, text=True, timeout=30, env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"}).stdout
    found = {}
    for words in (line.split() for line in out.splitlines()[1:]):
        numbers = words[3].split(".")
        if len(words) >= 6 and len(numbers) >= 2 and numbers[-1].isdigit():
            found[int(words[0]), int(words[1]), words[2]] = int(numbers[-2]) << 8 | int(numbers[-1]), words[-1]
    return found


def wait_for(d, want, seconds=20):
    """Waits until all of those programs are registered, by root; what there is."""
    end = time.monotonic() + seconds
    while not (is_ours(d, got := registered(), want)) and time.monotonic() < end:
        time.sleep(0.1)
    return got


def is_ours(d, got, want):
    return all(got.get(key, (0, ""))[1] == "superuser" and (key[0] == NSM or got[key][0] == d.port) for key in want)


OURS = [(NFS, 3, "tcp"), (NFS, 4, "tcp"), (NLM, 4, "tcp"), (MOUNT, 3, "tcp"), (NSM, 1, "udp")]


class Monitor:
    """A program that answers NULL by UDP, as rpc.statd would."""

    def __init__(self):
        self.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.s.bind(("127.0.0.1", 0))
        self.port = self.s.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                data, peer = self.s.recvfrom(1000)
                self.s.sendto(data[:4] + struct.pack(">5I", 1, 0, 0, 0, 0), peer)
            except OSError:
                return


def test_users_programs(t, d, rpcbind):
    """A user was there before the server, with programs that answer."""
    monitor = Monitor()
    for prog, vers, netid in OURS:
        t.equal(f"a user registers {prog}", set_as(USER, prog, vers, netid, monitor.port), 1)
    t.equal("it is the user's", registered()[NSM, 1, "udp"], (monitor.port, str(USER)))
    d.start()
    got = wait_for(d, OURS)
    t.check("all are the server's", is_ours(d, got, OURS), got)
    t.equal("a user replaces nothing", set_as(USER, NSM, 1, "udp", monitor.port), 0)
    rpcbind.stop()
    rpcbind.start()
    t.equal("after a restart of rpcbind a user is first", set_as(USER, MOUNT, 3, "tcp", monitor.port), 1)
    since = len(d.read_log())
    d.reload()
    got = wait_for(d, OURS)
    t.check("a reload brings all back", is_ours(d, got, OURS), got)
    t.check("the log says so", d.wait_log("registered with rpcbind again", since))


def test_by_itself(t, d, rpcbind):
    """Nobody reloads."""
    rpcbind.stop()
    rpcbind.start()
    set_as(USER, NFS, 3, "tcp", 1)
    got = wait_for(d, OURS, 60)
    t.check("a restart of rpcbind is noticed", is_ours(d, got, OURS), got)
    d.stop()
    left = [key for key in registered() if key[0] != 100000]
    t.equal("nothing is left at the end", left, [])


def test_roots_monitor(t, d):
    """rpc.statd, which root has started."""
    monitor = Monitor()
    t.equal("root registers a monitor", set_as(0, NSM, 1, "udp", monitor.port), 1)
    d.start()
    wait_for(d, OURS[:-1])
    t.check("the log names it", d.wait_log(f"another status monitor .* at UDP port {monitor.port}"))
    t.equal("it stays", registered()[NSM, 1, "udp"], (monitor.port, "superuser"))
    d.reload()
    t.equal("also at a reload", registered()[NSM, 1, "udp"], (monitor.port, "superuser"))
    monitor.s.close()
    d.reload()
    got = wait_for(d, OURS)
    t.check("until it is gone", is_ours(d, got, OURS), got)
    d.stop()


def main():
    if not shutil.which("rpcbind", path="/usr/sbin:/sbin:/usr/bin"):
        skip_all("there is no rpcbind")
    name_spaces()
    t, rpcbind = Count(), Rpcbind()
    d = Daemon({"one": "rw,insecure"}, {"server.rpcbind": "yes", "tcp.mount_port": "0", "server.log_level": "info"})
    try:
        rpcbind.start()
        test_users_programs(t, d, rpcbind)
        test_by_itself(t, d, rpcbind)
        test_roots_monitor(t, d)
        d.start()
        finish(t, d)
    finally:
        d.__exit__()
        rpcbind.stop()
    result(t)


if __name__ == "__main__":
    main()
