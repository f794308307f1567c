# SPDX-License-Identifier: BSD-2-Clause
"""The machine that measures: what it is, a name space and a file system of its own, and cores that do not sleep."""
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUSY = 5.0  # percent of the machine that others may take; more, and a measurement counts as loaded


def build_dir():
    return os.environ.get("BUILDDIR") or os.getcwd()


def program(path):
    """A program of the build, which is the current folder or $BUILDDIR."""
    full = os.path.join(build_dir(), path)
    if not os.access(full, os.X_OK):
        raise SystemExit(f"{full} is not there: run `make check TESTS=` in the build folder, or name it by BUILDDIR")
    return full


def commit():
    git = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True)
    return git.stdout.strip() or "no repository"


def describe(conditions=""):
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    return (f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC, commit {commit()}, Linux {platform.release()}, "
            f"{os.cpu_count()} processors ({model}), load {os.getloadavg()[0]:.1f}" + (f", {conditions}" if conditions else ""))


def alone(argv):
    """Starts this script again in name spaces of its own for mounts and the network, in which only loopback is."""
    if os.geteuid() != 0:
        raise SystemExit("the benchmarks need root: they mount file systems and start servers")
    if "BENCH_ALONE" not in os.environ:
        os.environ["BENCH_ALONE"] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, *argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # Sockets of this machine's rpcbind and D-Bus would still be reached by their paths.
    subprocess.run(["mount", "-t", "tmpfs", "bench", "/run"], check=True)


class Scratch:
    """A folder with a fresh ext4 image mounted at .data, as everybody's."""

    def __init__(self, mib=3072):
        self.mib = mib

    def __enter__(self):
        self.top = tempfile.mkdtemp(prefix="ringnfs-bench-", dir=os.environ.get("TMPDIR", "/var/tmp"))
        os.chmod(self.top, 0o755)
        self.data = os.path.join(self.top, "data")
        os.mkdir(self.data)
        image = os.path.join(self.top, "ext4.img")
        with open(image, "wb") as f:
            f.truncate(self.mib << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image], check=True)
        subprocess.run(["mount", "-o", "loop,noatime", image, self.data], check=True)
        os.chmod(self.data, 0o777)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.data], check=False)
        shutil.rmtree(self.top, ignore_errors=True)

    def folder(self, name):
        path = os.path.join(self.data, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o777)
        return path


class Spinner:
    """One process of the idle class on each processor, so that none of them halts: waking up one that sleeps costs more than
    most calls. In machines without virtualization of their own it is the host that would be asked."""

    def __init__(self, wanted):
        self.wanted, self.processes = wanted, []

    def __enter__(self):
        for cpu in range(os.cpu_count() if self.wanted else 0):
            code = ("import os\nos.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\n"
                    f"os.sched_setaffinity(0, [{cpu}])\nparent = {os.getpid()}\nwhile True:\n"
                    "    if os.getppid() != parent: break\n    for _ in range(1000000): pass\n")
            self.processes.append(subprocess.Popen([sys.executable, "-c", code]))
        return self

    def __exit__(self, *_):
        for p in self.processes:
            p.kill()
            p.wait()

    def words(self):
        """Arguments of nfsload: the time of these is nobody's."""
        return [word for p in self.processes for word in ("--idle-pid", str(p.pid))]


def accelerator():
    """How tests/vm/run gets its machine here."""
    with open("/proc/cpuinfo") as f:
        flags = f.read().split()
    kvm = os.access("/dev/kvm", os.W_OK) and ("vmx" in flags or "svm" in flags)
    wanted = os.environ.get("RINGNFS_VM_ACCEL", "auto")
    return {"kvm": "KVM", "tcg": "emulated in software"}.get(wanted, "KVM" if kvm else "emulated in software")


class Watch:
    """Percent of this machine that others took since the last look: all but the descendants of one process and the kernel's threads."""

    def __init__(self, pid):
        self.pid = pid
        self.last = self._look()

    def _ours(self, parents):
        """The process and what it has started."""
        ours, new = {os.getpid()}, {self.pid}
        while new:
            ours |= new
            new = {p for p, parent in parents.items() if parent in ours} - ours
        return ours

    def _look(self):
        parents, ticks = {}, {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as f:
                    word = f.read().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(word[6]) & 0x00200000:  # PF_KTHREAD
                continue
            parents[int(name)] = int(word[1])
            ticks[int(name)] = sum(int(w) for w in word[11:15])  # a process that ends leaves its time to its parent
        ours = self._ours(parents)
        with open("/proc/stat") as f:
            machine = [int(w) for w in f.readline().split()[1:9]]
        return sum(t for p, t in ticks.items() if p not in ours), machine[7], sum(machine)

    def load(self):
        before, self.last = self.last, self._look()
        others, steal, total = (b - a for a, b in zip(before, self.last))
        return 100 * max(others, steal, 0) / total if total else 0.0
