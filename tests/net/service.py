#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""What a service manager sees: status, signs of life, and sockets that it has opened. This script plays systemd."""
import ctypes
import os
import queue
import re
import signal
import socket
import threading
import time

import harness
import rpcclient as r
from harness import Count, Daemon
from stuck import Loop

OPTIONS = "rw,insecure,no_root_squash"
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
WAIT_ALL = 0x40000000  # __WALL
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


class Manager(Daemon):
    """A daemon with a socket for its messages, and perhaps a watchdog and listening sockets."""

    def __init__(self, seconds=0, listeners=(), settings=None):
        super().__init__({"one": OPTIONS, "two": OPTIONS}, settings)
        self.path = os.path.join(self.top, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.env = {**os.environ, "NOTIFY_SOCKET": self.path}
        words = []
        if seconds:
            self.env["WATCHDOG_USEC"] = str(seconds * 1000000)
        if listeners:
            self.pass_fds = tuple(s.fileno() for s in listeners)
            self.env["LISTEN_FDS"] = str(len(listeners))
            # First out of the way, as one may have another's number.
            high = range(50, 50 + len(listeners))
            words = [f"{h}<&{s.fileno()}" for h, s in zip(high, listeners)]
            words += [f"{3 + i}<&{h}" for i, h in enumerate(high)]
        self.before = ["bash", "-c", " ".join(["exec", *words, ";", "LISTEN_PID=$$ WATCHDOG_PID=$$", "exec", '"$@"']), "bash"]

        self.queue = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        """The kernel keeps a few messages only, and whoever sends more waits."""
        while True:
            for m in self.socket.recv(65536).decode().split("\n"):
                if m == "end of the test":
                    return
                self.queue.put(m)

    def messages(self, seconds=0):
        """The messages that are there, and come within that time."""
        time.sleep(seconds)
        got = []
        while not self.queue.empty():
            got.append(self.queue.get())
        return got

    def await_message(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                if found := re.fullmatch(pattern, self.queue.get(timeout=left)):
                    return found
            except queue.Empty:
                break
        return None

    def __exit__(self, *_):
        if self.process:
            self.stop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b"end of the test", self.path)
        super().__exit__()


def threads(d, name):
    found = []
    for tid in os.listdir(f"/proc/{d.process.pid}/task"):
        with open(f"/proc/{d.process.pid}/task/{tid}/comm") as f:
            if re.fullmatch(name, f.read().strip()):
                found.append(int(tid))
    return found


class Stopped:
    """One thread of the daemon, which does not run meanwhile."""

    def __init__(self, tid):
        self.tid = tid

    def __enter__(self):
        if libc.ptrace(PTRACE_ATTACH, self.tid, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
        os.waitpid(self.tid, WAIT_ALL)
        return self

    def __exit__(self, *_):
        libc.ptrace(PTRACE_DETACH, self.tid, None, None)


def can_trace():
    """The reason why a thread cannot be stopped here, or None."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        with Stopped(pid):
            return None
    except OSError as e:
        return f"ptrace: {os.strerror(e.errno)}"
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_status(t):
    with Manager() as d:
        t.check("READY", d.await_message("READY=1"))
        with d.connect() as c:
            d.root(c, "one")
            m = d.await_message(r"STATUS=(\d+) clients, (\d+) connections; (\d+) calls/s, [\d.]+ MiB/s in, [\d.]+ MiB/s out")
            while m and m.group(1, 2) != ("1", "1"):  # the harness has looked whether it answers
                m = d.await_message(r"STATUS=(\d+) clients, (\d+) connections; .*")
            t.check("a client is in the status", m)
            for _ in range(2000):
                c.nfs(r.NULL)
            m = d.await_message(r"STATUS=.*; ([1-9]\d*) calls/s, .*")
            t.check("its calls are in the status", m)
        t.check("no sign of life is given where none is wanted", not [m for m in d.messages(2) if m.startswith("WATCHDOG")])
        d.process.send_signal(signal.SIGHUP)
        t.check("a reload is told", d.await_message("RELOADING=1"))
        t.check("and its end", d.await_message("READY=1"))
        d.stop()
        t.check("the stop is told", "STOPPING=1" in d.messages(1))


def test_watchdog(t):
    with Manager(4) as d:
        t.check("signs of life", all(d.await_message("WATCHDOG=1") for _ in range(3)))
        why = can_trace()
        if why:
            t.skip("an event thread that does not turn", why)
            return
        for tid in threads(d, r"event-\d"):
            since = len(d.read_log())
            with Stopped(tid):
                t.check("it is logged", d.wait_log(r"event thread \d has not turned for \d+ seconds", since, 60))
                d.messages(0.1)
                t.equal("no sign of life while an event thread stands still", [m for m in d.messages(3) if m == "WATCHDOG=1"], [])
            t.check("signs of life afterwards", d.await_message("WATCHDOG=1"))
            t.check("which is logged, too", d.wait_log(r"event thread \d turns again", since, 60))
        since = len(d.read_log())
        d.stand_still()
        time.sleep(5)
        d.process.send_signal(signal.SIGCONT)
        d.messages()
        t.check("signs of life after all threads were stopped", d.await_message("WATCHDOG=1"))
        t.check("no thread is blamed for that", "has not turned" not in d.read_log()[since:])


def test_file_system(t):
    """Calls wait for a file system that does not answer: the server lives."""
    with Manager(4) as d:
        loop = Loop(d.exports["two"], os.path.join(d.top, "image"))
        try:
            d.reload()
            with d.connect() as c:
                root = d.root(c, "two")
                loop.freeze()
                for i in range(8):
                    c.send(r.call_message(r.NFS, 3, r.CREATE, r.create_args(root, f"n{i}".encode(), attrs=r.sattr(mode=0o644))))
                t.check("workers that wait are in the status", d.await_message(r"STATUS=.*; [1-9]\d* workers wait for a file system"))
                d.messages()
                t.check("signs of life go on", all(d.await_message("WATCHDOG=1") for _ in range(8)))
                t.check("no event thread is blamed", "has not turned" not in d.read_log())
                loop.thaw()
                for _ in range(8):
                    c.recv()
            d.stop()  # it keeps the file system mounted
        finally:
            loop.close()


def listener(family, address, port=0, v6only=True):
    s = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6only)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(64)
    return s


def test_sockets(t):
    """Sockets that are passed stay while the server is away: whoever connects then is served by the next one."""
    with listener(socket.AF_INET, "127.0.0.1") as nfs, listener(socket.AF_INET, "127.0.0.1") as mount, \
            listener(socket.AF_INET, "127.0.0.1") as other:
        port, mount_port = nfs.getsockname()[1], mount.getsockname()[1]
        manager = Manager(listeners=(other, mount, nfs), settings={"tcp.port": port, "tcp.mount_port": mount_port})
        manager.port = port
        with manager as d:
            t.check("a socket that the settings do not name is told",
                    d.wait_log(rf"has a socket at 127.0.0.1:{other.getsockname()[1]}, which \[tcp\] does not name"))
            t.check("NFS and MOUNT are served by them", d.wait_log(f"NFS on TCP port {port}, MOUNT on TCP port {mount_port}"))
            with d.connect() as c:
                d.root(c, "one")
            for _ in range(3):
                t.equal("the end of a server", d.stop()[0], 0)
                with r.Conn(port, timeout=60) as early:
                    early.send(r.call_message(r.NFS, 3, r.NULL, b""))
                    d.start()
                    t.check("a connection made meanwhile is served", early.recv())


def refused(t, what, s, words):
    d = Manager(listeners=(s,))
    try:
        d.start()
        t.check(what, False, "it was taken")
    except SystemExit:
        t.check(what, re.search(words, d.read_log()), d.read_log()[-400:])
    finally:
        d.__exit__()


def test_wrong_sockets(t):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        refused(t, "a UDP socket", s, "no listening TCP socket")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        refused(t, "a TCP socket that does not listen", s, "no listening TCP socket")
    with listener(socket.AF_INET6, "::", v6only=False) as s:
        refused(t, "one that takes both", s, "BindIPv6Only=ipv6-only")


def main():
    t = Count()
    for test in (test_status, test_watchdog, test_file_system, test_sockets, test_wrong_sockets):
        print(f"# {test.__name__}", flush=True)
        test(t)
    harness.result(t)


if __name__ == "__main__":
    main()
