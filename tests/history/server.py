# SPDX-License-Identifier: BSD-2-Clause
"""The daemon under test, on a file system of its own, and the nemesis, which breaks both by seed."""
import os
import shutil
import signal
import subprocess
import threading
import time

import fabric
import harness

LEASE = 5
# What is not done to a file system: the scratch folder's is others', too, and a full btrfs refuses to write in place.
NOT_THERE = {"freeze": ("host",), "freezekill": ("host",), "fill": ("host", "btrfs")}
SIZES = {"ext4": 48, "xfs": 320, "btrfs": 128}  # MiB


def command(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


class Server(harness.Daemon):
    """up is set while it answers; run counts its starts; ready says when each began to answer."""

    def __init__(self, fs, options, settings, rdma=False, faults=None):
        self.options, self.up, self.over = options, threading.Event(), False
        self.run, self.ready, self.fs, self.fabric, before, env = -1, [], "host", None, (), None
        self.rdma_port = harness.free_port()
        settings = {"nfs4.lease_time": LEASE, "nfs4.grace_time": LEASE, "server.memory_max": "128M", **settings}
        if rdma:
            self.fabric = fabric.Fabric("sv0=127.0.0.1")
            before, env = self.fabric.command("server", faults), self.fabric.environment()
            settings.update({"rdma.enabled": "yes", "rdma.port": self.rdma_port, "rdma.listen": "127.0.0.1"})
        super().__init__({"x": options}, settings, before=before, env=env)
        self.export = self.exports["x"]
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
            command("mount", "-o", "loop", image, self.export)
            self.fs = fs
        except (OSError, subprocess.CalledProcessError) as e:
            print(f"SKIP: {fs}: {getattr(e, 'stderr', '') or e}".strip())

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
            for _ in range(100):
                if not os.path.ismount(self.export) or subprocess.run(["umount", self.export], capture_output=True).returncode == 0:
                    break
                time.sleep(0.1)
        finally:
            if self.fabric:
                self.fabric.__exit__()
            shutil.rmtree(self.top, ignore_errors=True)


class Frozen:
    """The file system, frozen: who writes waits."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        command("fsfreeze", "-f", self.path)

    def __exit__(self, *_):
        command("fsfreeze", "-u", self.path)


class Nemesis(threading.Thread):
    """Does one thing after another of those named until the end; note(inv, ret, what) writes it into the history."""

    def __init__(self, server, kinds, rng, end, pace, note):
        super().__init__(daemon=True)
        self.server, self.kinds, self.rng, self.end, self.pace, self.note = server, kinds, rng, end, pace, note
        self.failed = None

    def run(self):
        try:
            while True:
                kind = self.rng.choice(self.kinds)
                time.sleep((0.2 + self.rng.random() * 1.2) * self.pace)
                if time.monotonic() > self.end - 0.4:
                    return
                if self.server.fs in NOT_THERE.get(kind, ()):
                    kind = "none"
                inv = time.monotonic_ns()
                getattr(self, kind)()
                self.note(inv, time.monotonic_ns(), kind)
        except Exception as e:  # the history says that its nemesis failed
            self.failed = repr(e)

    def none(self):
        pass

    def kill(self):
        self.server.restart(signal.SIGKILL if self.rng.random() < 0.7 else signal.SIGTERM)
        time.sleep(self.rng.random() * 0.1)
        self.server.start()

    def freezekill(self):
        with Frozen(self.server.export):
            time.sleep(self.rng.choice((0.05, 0.3)))
            self.server.up.clear()
            self.server.process.kill()
            time.sleep(0.1)
        self.kill()

    def freeze(self):
        with Frozen(self.server.export):
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
        self.server.write_exports([f"{self.server.export} 127.0.0.0/8({self.server.options}{extra})"])
        self.server.process.send_signal(signal.SIGHUP)

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
