# SPDX-License-Identifier: BSD-2-Clause
"""The daemon under test, on a file system of its own, and the nemesis, which breaks both by seed."""
import contextlib
import errno
import fcntl
import mmap
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time

import fabric
import gss
import harness
import kdc
import mounts
import ports
import tlsclient
from record import RUNS

LEASE = 5
KEY = 16  # bytes
# Faults that a file system is spared: the scratch folder's is others', too, and a full btrfs refuses to write in place.
NOT_THERE = {"freeze": ("host",), "freezekill": ("host",), "fill": ("host", "btrfs"), "power": ("host", "btrfs"), "die": ("host", "btrfs", "xfs")}
SHUTDOWN, NO_FLUSH = 0x8004587d, 2  # ioctl: a file system does nothing more, and does not even write its log (ext4, XFS)
FAILING, WORLD = "tests/net/moments_shim.so", "tests/history/world_shim.so"  # preloaded into the daemon
SIZES = {"ext4": 96, "xfs": 320, "btrfs": 128}  # MiB


def own_mounts():
    """Mounts of a namespace of this process: who makes another one on this machine gets no copy, which would keep the file systems."""
    if mounts.libc.unshare(mounts.CLONE_NEWNS) == 0:
        mounts.libc.mount(None, b"/", None, mounts.MS_REC | mounts.MS_PRIVATE, None)


def command(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


class Server(harness.Daemon):
    """up is set while it answers; run counts its starts; ready says when each began to answer."""

    first = 0  # number of its first run

    def __init__(self, fs, options, settings, wires=(), faults=None, nemesis=()):
        """wires: letters of wire.WIRES that clients come by. faults: of the fabric. nemesis: what it may do."""
        rdma, tls, kerberos = (w in wires for w in "rtk")
        self.options, self.up, self.over = options, threading.Event(), False
        self.run, self.ready, self.fs, self.fabric, before, env = self.first - 1, [], "host", None, (), None
        self.rdma_port, self.realm = harness.free_port(), kdc.Realm(clockskew=1).__enter__() if kerberos else None
        settings = {"nfs4.lease_time": LEASE, "nfs4.grace_time": LEASE, "server.memory_max": "128M", **settings}
        if kerberos:
            os.environ.update(self.realm.env)
            settings.update(gss.settings(self.realm))
            self.options = options = options + ",sec=sys:krb5:krb5i:krb5p"
        if "u" in wires:
            settings["udp.nfs"] = "yes"
        if rdma:
            self.fabric = fabric.Fabric("sv0=127.0.0.1")
            before, env = self.fabric.command("server", faults), self.fabric.environment()
            settings.update({"rdma.enabled": "yes", "rdma.port": self.rdma_port, "rdma.listen": "127.0.0.1"})
        self.hidden_until, self.short_until, self.certificates = 0, 0, tempfile.mkdtemp() if tls else None
        if tls:
            crt, key = tlsclient.Authority(self.certificates, "ca").issue("server", algorithm=("ec", "-pkeyopt", "ec_paramgen_curve:P-256"))
            settings.update({"tls.certificate": crt, "tls.key": key})
        super().__init__({"x": options, "other": "ro"}, settings, before=before, env=env)
        self.export = self.exports["x"]
        self.errors = Errors(self) if "errors" in nemesis and not rdma and os.path.exists(FAILING) else None
        self.world = World(self) if {"jump", "hungry"} & set(nemesis) and not rdma and os.path.exists(WORLD) else None
        if fs in SIZES:
            self.mount(fs)
        os.chmod(self.export, 0o777)
        os.chmod(self.top + "/state", 0o700)

    def mount(self, fs):
        """A file system of its own, where this machine has loop devices; else the scratch folder's."""
        image = self.top + "/image"
        with open(image, "wb") as f:
            f.truncate(SIZES[fs] << 20)
        try:
            command("mkfs." + fs, "-q", image)
            self.attach()
            self.fs = fs  # from now on it is to be taken away
        except (OSError, subprocess.CalledProcessError) as e:
            print(f"SKIP: {fs}: {getattr(e, 'stderr', '') or e}".strip())

    def export_x(self, extra=""):
        """The line of the export; the other one is always there, so that hosts are admitted."""
        return [f"{self.export} 127.0.0.0/8({self.options}{extra})", f"{self.exports['other']} 127.0.0.0/8(ro)"]

    def serve(self, lines):
        """Returns when the server has read these lines."""
        self.write_exports(lines)
        self.reload()

    def is_hidden(self):
        """True if STALE may mean that the export is not there, or was not a moment ago."""
        return time.monotonic() < self.hidden_until

    def is_short(self):
        """True if a call may be told to come again for want of memory, which may be found when it has had its effect."""
        return time.monotonic() < self.short_until

    def attach(self):
        command("mount", "-o", "loop", self.top + "/image", self.export)

    def die(self):
        """From now on nothing reaches the disk, and reads and flushes fail."""
        fd = os.open(self.export, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", NO_FLUSH))
        finally:
            os.close(fd)

    def pull_plug(self):
        """The machine loses its power, and has it again: what no flush has brought to the disk is gone."""
        self.up.clear()
        self.process.send_signal(signal.SIGSTOP)
        while not all(_state(t) in "TtZX" for t in os.scandir(f"/proc/{self.process.pid}/task")):
            time.sleep(0.001)
        self.die()
        self.come_back()

    def come_back(self):
        self.restart(signal.SIGKILL)
        self.detach()
        self.attach()
        if os.path.exists(self.export + "/filler"):
            os.unlink(self.export + "/filler")
        self.start()

    def detach(self):
        """umount(8) looks at the path, which may fail. Rings that die slowly keep the file system, and so its loop device, for a moment more."""
        end = time.monotonic() + 30
        while self.fs in SIZES and (mounts.libc.umount2(self.export.encode(), 0) == 0 or self.looped()):
            if time.monotonic() > end:
                raise TimeoutError("somebody keeps the file system")
            time.sleep(0.01)

    def looped(self):
        return subprocess.run(["losetup", "-j", self.top + "/image"], capture_output=True).stdout != b""

    def __enter__(self):
        return self

    def start(self):
        super().start()
        self.ready.append(time.monotonic_ns())
        self.run += 1
        self.up.set()

    def restart(self, sig):
        self.up.clear()
        self.process.send_signal(sig)
        self.process.wait(60)
        self.log.close()

    def __exit__(self, *_):
        self.over = True
        try:
            if self.process:
                self.process.send_signal(signal.SIGCONT)
                self.process.kill()
                self.process.wait()
                self.process = None
            self.detach()
        finally:
            if self.fabric:
                self.fabric.__exit__()
            shutil.rmtree(self.top, ignore_errors=True)
            if self.realm:
                self.realm.__exit__()
            if self.certificates:
                shutil.rmtree(self.certificates, ignore_errors=True)
            for port in (self.port, self.rdma_port, *([self.realm.port] if self.realm else [])):
                ports.give_back(port)


class Member(Server):
    """One of several servers of the same export, in a cluster whose object is beside the first one's export."""
    dead_time = 3

    def __init__(self, name, beside, joins, *args):
        """beside: the first one, or None. joins: false for a control, in which the servers have the key of handles in common and no more."""
        self.first = RUNS * (ord(name) - ord("a"))
        super().__init__(*args)
        common = (beside or self).top + "/cluster"
        if beside:
            self.exports, self.export = beside.exports, beside.export
            self.write_exports(self.export_x())
        else:
            os.mkdir(common, 0o700)
        if not joins:
            os.chmod(self.top + "/state", 0o700)
            with open(self.top + "/state/handle.key", "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
                f.write(bytes(range(KEY)))
            return
        with open(self.config, "a") as f:
            f.write(f"[cluster]\nname = lab\ninstance = {name}\npath = {common}\ndead_time = {self.dead_time}\n")

    def __exit__(self, *args):
        """Leaves the cluster: its keeper would have the file system for ever."""
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        super().__exit__(*args)


def _state(task):
    """The letter of a thread's state: T is stopped."""
    try:
        with open(task.path + "/stat") as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


@contextlib.contextmanager
def frozen(path):
    """The file system, frozen: who writes waits."""
    command("fsfreeze", "-f", path)
    try:
        yield
    finally:
        command("fsfreeze", "-u", path)


def preload(server, library, variable, **env):
    """Makes the daemon preload a library. The result is a page, from which the library reads what it is to do."""
    path = f"{server.top}/{variable}"
    with open(path, "w+b") as f:
        f.truncate(mmap.PAGESIZE)
        at = mmap.mmap(f.fileno(), mmap.PAGESIZE)
    before = (server.env or {}).get("LD_PRELOAD")
    library = os.path.abspath(library)
    server.env = dict(server.env or os.environ, **{variable: path}, **env)
    server.env["LD_PRELOAD"] = f"{before} {library}" if before else harness.preload(server.binary, library)
    return at


class Errors:
    """Makes a file system call of an operation fail, by the shim of tests/net/moments.py. Not together with the software fabric."""

    def __init__(self, server):
        self.at = preload(server, FAILING, "MOMENTS", MOMENTS_FD="0")

    def arm(self, k):
        """The k-th call from now on fails; 0: none."""
        self.at[0:4] = bytes(4)
        self.at[4:12] = struct.pack("=II", 0, errno.EIO)
        self.at[0:4] = struct.pack("=I", k)


class World:
    """The daemon's wall clock and its memory, by world_shim.c. Not together with the software fabric."""

    def __init__(self, server):
        self.at = preload(server, WORLD, "WORLD")

    def jump(self, seconds):
        """The wall clock is that much ahead of the kernel's."""
        self.at[0:8] = struct.pack("=q", int(seconds * 10**9))

    def refuse(self, one_in):
        """One of so many allocations fails; 0: none."""
        self.at[8:12] = struct.pack("=I", one_in)


class Nemesis(threading.Thread):
    """Draws one fault after another of those named, until the end; note(inv, ret, what, run of the server behind it) writes it into the history."""

    def __init__(self, servers, kinds, rng, end, pace, note):
        super().__init__(daemon=True)
        self.servers, self.kinds, self.rng, self.end, self.pace, self.note = servers, kinds, rng, end, pace, note
        self.failed = None

    def run(self):
        try:
            while True:
                kind, self.server = self.rng.choice(self.kinds), self.rng.choice(self.servers)
                time.sleep((0.2 + self.rng.random() * 1.2) * self.pace)
                if time.monotonic() > self.end - 0.4:
                    return
                if self.server.fs in NOT_THERE.get(kind, ()):
                    kind = "none"
                inv = time.monotonic_ns()
                getattr(self, kind)()
                self.note(inv, time.monotonic_ns(), kind, self.server.run)
        except Exception as e:  # the history says that its nemesis failed
            self.failed = f"{e!r} {getattr(e, 'stderr', '')}"

    def none(self):
        pass

    def kill(self):
        self.server.restart(signal.SIGKILL if self.rng.random() < 0.7 else signal.SIGTERM)
        time.sleep(self.rng.random() * 0.1)
        self.server.start()

    def power(self):
        self.server.pull_plug()

    def die(self):
        """The disk goes before the machine does, so the server sees errors."""
        self.server.die()
        time.sleep(self.rng.choice((0.02, 0.1, 0.4)))
        self.server.come_back()

    def errors(self):
        """A disk that fails now and then."""
        for _ in range(100 if self.server.errors else 0):
            self.server.errors.arm(self.rng.randint(1, 60))
            time.sleep(0.004)
        if self.server.errors:
            self.server.errors.arm(0)

    def jump(self):
        """The daemon's clock is set. The kernel's is not, so files get other times than the server takes for now."""
        if self.server.world:
            self.server.world.jump(self.rng.choice((-10**7, -3600, -1, -0.01, 0, 0.01, 1, 3600, 10**8)))

    def hungry(self):
        """Memory is short."""
        if self.server.world:
            self.server.short_until = float("inf")
            self.server.world.refuse(self.rng.choice((10, 100, 1000)))
            time.sleep(self.rng.choice((0.05, 0.3)))
            self.server.world.refuse(0)
            self.server.short_until = time.monotonic() + 2

    def freezekill(self):
        with frozen(self.server.export):
            time.sleep(self.rng.choice((0.05, 0.3)))
            self.server.up.clear()
            self.server.process.kill()
            time.sleep(0.1)
        self.kill()

    def freeze(self):
        with frozen(self.server.export):
            time.sleep(self.rng.choice((0.05, 0.3, 1)))

    def stop(self, seconds=None):
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds or self.rng.choice((0.05, 0.3, 0.8)))
        self.server.process.send_signal(signal.SIGCONT)

    def longstop(self):
        """Beyond the lease."""
        self.stop(LEASE + 0.5 + self.rng.random())

    def reload(self):
        extra = self.rng.choice(("", ",nohide", ",no_subtree_check", ",wdelay"))
        self.server.write_exports(self.server.export_x(extra))
        self.server.process.send_signal(signal.SIGHUP)

    def anew(self):
        """Runs the program anew, with all that clients hold."""
        self.server.process.send_signal(signal.SIGUSR2)
        time.sleep(self.rng.choice((0, 0.1, 0.5)))

    def unexport(self):
        """Takes the export away, and gives it back: the same handles lead to the same files."""
        lines = self.server.export_x()
        self.server.hidden_until = float("inf")
        self.server.serve(lines[1:])
        time.sleep(self.rng.choice((0, 0.05, 0.5)))
        self.server.serve(lines)
        self.server.hidden_until = time.monotonic() + 2

    def fill(self):
        """Leaves no block of the disk, for a moment."""
        path = self.server.export + "/filler"
        with open(path, "wb", buffering=0) as f:
            for size in (1 << 20, 4096):
                try:
                    while True:
                        f.write(bytes(size))
                except OSError:
                    pass
        time.sleep(self.rng.random() * 0.5)
        os.unlink(path)
