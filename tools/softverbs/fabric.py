# SPDX-License-Identifier: BSD-2-Clause
"""A fabric for tests: a directory of its own, and the programs that run over it.

Everything started is ended when the fabric is left. Tests name their programs' ends ("server", "client"); fault
scripts can select by that name.
"""
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "net"))

LIB = os.path.abspath(os.environ.get("SOFTVERBS_LIB", "tools/softverbs/libsoftverbs.so"))
RUN = os.path.join(HERE, "run")
LONG = 120  # seconds; a machine may be slow, nothing that works takes as long


class Fabric:
    def __init__(self, devices=None, **env):
        # The socket's path must fit into sun_path, so TMPDIR is of no use here.
        self.dir = tempfile.mkdtemp(prefix="softverbs.", dir="/tmp")
        self.devices, self.env = devices, env
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.running:
            if p.poll() is None:
                p.kill()
            p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def command(self, name, faults=None):
        """What goes before a program and its arguments."""
        c = [RUN, "--dir", self.dir, "--name", name]
        if self.devices:
            c += ["--devices", self.devices]
        if faults:
            c += ["--faults", faults]
        return c

    def environment(self):
        return dict(os.environ, SOFTVERBS_LIB=LIB, **self.env)

    def start(self, name, *args, faults=None):
        """Starts a program; its output, both streams, is kept for finish()."""
        out = tempfile.TemporaryFile()
        p = subprocess.Popen(self.command(name, faults) + [str(a) for a in args], stdin=subprocess.DEVNULL, stdout=out,
                             stderr=subprocess.STDOUT, env=self.environment())
        p.out = out
        self.running.append(p)
        return p

    def finish(self, p, timeout=LONG):
        """Waits: (exit status, output). A program that does not end is killed, and its status is None."""
        try:
            status = p.wait(timeout)
        except subprocess.TimeoutExpired:
            p.send_signal(signal.SIGKILL)
            p.wait()
            status = None
        if p in self.running:
            self.running.remove(p)
        p.out.seek(0)
        return status, p.out.read().decode(errors="replace")

    def slot(self, pid):
        """The slot of a process, which it has as soon as it has opened the fabric; else None."""
        for name in os.listdir(self.dir):
            if name.startswith("slot.") and name.count(".") == 1:
                with open(os.path.join(self.dir, name)) as f:
                    owner = f.read().split()
                if owner and owner[0] == str(pid):
                    return int(name[5:])
        return None

    def control(self, pid, text):
        """Tells a running process a command (README.md), for instance a fault; its answer, without the newline."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind("")  # an address of the kernel's choice, for the answer
            s.settimeout(LONG)
            s.connect(os.path.join(self.dir, f"ctl.{self.slot(pid)}"))
            s.send(text.encode())
            return s.recv(4096).decode().rstrip("\n")

    def status(self, pid):
        """What a process holds: {"qps": 2, "mrs": 3, ...}."""
        words = self.control(pid, "status").split()
        return dict(zip(words[::2], map(int, words[1::2])))

    def listens(self, port):
        """Has a process of this fabric a listener on the port? (The file is described in cm_port.c.)"""
        try:
            with open(os.path.join(self.dir, "ports"), "rb") as f:
                table = f.read()
        except FileNotFoundError:
            return False
        head, heads, record = 16, 4 * 65536, 44
        if len(table) < head + heads:
            return False
        ref, = struct.unpack_from("=I", table, head + 4 * port)
        while ref:
            ref, _, _, _, flags = struct.unpack_from("=IIIHH", table, head + heads + (ref - 1) * record)
            if flags & 4:
                return True
        return False

    def run(self, name, *args, **kw):
        return self.finish(self.start(name, *args, **kw))


def have(program):
    return shutil.which(program) is not None


def free_port():
    """Of TCP and, in a fabric of its own, of RDMA; not one that a connection of somebody else may take meanwhile."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("0.0.0.0", port))
                return port
            except OSError:
                pass


def tcp_listens(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as f:
            for line in f:
                fields = line.split()
                if len(fields) > 3 and fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                    return True
    return False


def wait_for(condition, timeout=LONG):
    until = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
