# SPDX-License-Identifier: BSD-2-Clause
"""Starts ringnfsd on loopback over directories of its own, counts what passes, and ends what it started.

The daemon is $RINGNFSD, or ./ringnfsd of the current folder. A test that cannot run here exits 77 with the reason.
"""
import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import rpcclient as rpc
from ports import free_port  # noqa: F401

SKIP = 77
AT_FDCWD = -100

# A test that is told to end takes along what it started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, what, good, detail=""):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAIL: {what}" + (f": {detail}" if detail != "" else ""), flush=True)
        return good

    def equal(self, what, got, want):
        return self.check(what, got == want, f"{got!r}, not {want!r}")

    def skip(self, what, why):
        self.skipped += 1
        print(f"SKIP: {what}: {why}", flush=True)


def skip_all(why):
    print(f"SKIP: {why}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(SKIP)


def handles_work(folder):
    """Does the file system under folder give and take handles?"""
    libc = ctypes.CDLL(None, use_errno=True)

    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_char * 128)]

    h, mount_id = Handle(128, 0), ctypes.c_int()
    if libc.name_to_handle_at(AT_FDCWD, folder.encode(), ctypes.byref(h), ctypes.byref(mount_id), 0) < 0:
        return os.strerror(ctypes.get_errno())
    at = os.open(folder, os.O_RDONLY)
    fd = libc.open_by_handle_at(at, ctypes.byref(h), os.O_RDONLY)
    why = os.strerror(ctypes.get_errno())
    os.close(at)
    if fd < 0:
        return why
    os.close(fd)
    return None


def scratch():
    """A fresh folder on a file system that can be exported."""
    reasons = []
    for base in [os.environ.get("TMPDIR"), "/var/tmp", "/tmp", "/dev/shm"]:
        if not base or not os.path.isdir(base):
            continue
        folder = tempfile.mkdtemp(prefix="ringnfs-net-", dir=base)
        why = handles_work(folder)
        if not why:
            return folder
        os.rmdir(folder)
        reasons.append(f"{base}: {why}")
    skip_all("no file system here can be exported (" + "; ".join(reasons) + ")")


def sanitizer_env(env):
    """env (None: this process's) with the list of reports that ThreadSanitizer leaves out."""
    env = dict(os.environ if env is None else env)
    known = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tsan.suppressions")
    env.setdefault("TSAN_OPTIONS", f"suppressions={known}")
    return env


def sanitized(program):
    with open(program, "rb") as f:
        program = f.read()
    return b"__asan_init" in program or b"__tsan_init" in program


def preload(program, library):
    """LD_PRELOAD of a library for a program, the runtime of whose sanitizer must come first."""
    libraries = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return " ".join([*re.findall(r"^\s*lib[at]san\.so\S* => (/\S+)", libraries, re.M), library])


class Daemon:
    """ringnfsd over exports: {sub-folder: options}. Use as a context; .stop() says how it ended.

    before: words of a command that becomes the daemon; env: its environment; hosts: to which it exports; pass_fds: descriptors
    that it gets."""

    host = "127.0.0.1"  # where it answers
    pass_fds = ()
    args = ()  # further options of its command line
    host = "127.0.0.1"  # that it listens at

    def __init__(self, exports, settings=None, nofile=None, before=(), env=None, hosts=("127.0.0.0/8",)):
        self.binary = os.environ.get("RINGNFSD", "./ringnfsd")
        if not os.access(self.binary, os.X_OK):
            raise SystemExit(f"{self.binary} is not there: build it, or set RINGNFSD")
        if os.geteuid() != 0:
            skip_all("file handles and identities need root")
        self.top = scratch()
        self.port = free_port()
        self.nofile, self.before, self.env = nofile, list(before), env
        self.process = None
        self.exports = {n: os.path.join(self.top, n) for n in exports}
        with open(os.path.join(self.top, "exports"), "w") as f:
            for n, options in exports.items():
                os.mkdir(self.exports[n])
                os.chmod(self.exports[n], 0o777)
                f.write(" ".join([self.exports[n]] + [f"{h}({options})" for h in hosts]) + "\n")
        os.chmod(self.top, 0o755)
        os.mkdir(os.path.join(self.top, "state"))
        self._configure(settings or {})

    def _configure(self, settings):
        keys = {"server.state_dir": self.top + "/state", "server.exports_file": self.top + "/exports",
                "server.exports_dir": self.top + "/none", "server.rpcbind": "no", "tcp.port": self.port,
                "tcp.listen": "127.0.0.1", "tcp.mount_port": 0, "nfs3.manage_gids": "no", "nfs4.manage_gids": "no", "server.control_socket": "", "rdma.enabled": "no", "server.memory_max": "256M"}
        keys.update(settings)
        self.config = os.path.join(self.top, "ringnfs.conf")
        with open(self.config, "w") as f:
            for section in sorted({k.split(".")[0] for k in keys}):
                f.write(f"[{section}]\n")
                f.writelines(f"{k.split('.')[1]} = {v}\n" for k, v in keys.items() if k.split(".")[0] == section)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.stop()
        shutil.rmtree(self.top, ignore_errors=True)

    def start(self):
        limit = self.nofile

        def raise_limit():
            if not limit:
                return
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            except (ValueError, OSError):  # without CAP_SYS_RESOURCE: as far as it goes
                hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
                resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

        self.log = open(os.path.join(self.top, "log"), "ab")
        self.process = subprocess.Popen([*self.before, self.binary, "--foreground", "--config", self.config, *self.args],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=raise_limit,
                                        env=sanitizer_env(self.env), pass_fds=self.pass_fds)
        for _ in range(3000):
            if self.process.poll() is not None:
                break
            try:
                with rpc.Conn(self.port, self.host, timeout=30) as c:
                    c.nfs(rpc.NULL)
                return
            except rpc.Refused:  # there is no NFSv3
                return
            except (OSError, rpc.Closed):
                time.sleep(0.01)
        print(self.read_log())
        raise SystemExit("ringnfsd does not start")

    def write_exports(self, lines):
        with open(os.path.join(self.top, "exports"), "w") as f:
            f.write("".join(line + "\n" for line in lines))

    def reloads(self):
        """(reloads that have ended, verdict of the last one)."""
        with open(os.path.join(self.top, "state", "instance")) as f:
            return tuple(int(x) for x in f.read().split()[2:4])

    def reload(self):
        """SIGHUP, and what the log says then. The log alone cannot tell when a reload has ended: lines of the one before, or of the
        start, may come late."""
        before, ended = len(self.read_log()), self.reloads()[0]
        self.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 60
        while self.reloads()[0] == ended and self.alive() and time.monotonic() < end:
            time.sleep(0.01)
        self.wait_log("reload failed" if self.reloads()[1] else "serving |no directory is exported", before)
        return self.read_log()[before:]

    def wait_log(self, pattern, since=0, seconds=20):
        """Waits until the log behind since has the pattern: is it there?"""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.read_log()[since:])) and time.monotonic() < end:
            time.sleep(0.01)
        return bool(found)

    def read_log(self):
        with open(os.path.join(self.top, "log"), errors="replace") as f:
            return f.read()

    def alive(self):
        return self.process.poll() is None

    def stand_still(self):
        """Stops all its threads until SIGCONT: the signal is one thread's, which stops the others when it gets to run."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def stop(self, sig=signal.SIGTERM):
        """Ends it: (exit status, log)."""
        self.process.send_signal(sig)
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(60)
            status = "did not stop in a minute"
        self.process = None
        self.log.close()
        log = self.read_log()
        report = re.search(r"^.*(?:WARNING: ThreadSanitizer|ERROR: AddressSanitizer|ERROR: LeakSanitizer|runtime error:)[\s\S]{0,4000}", log, re.M)
        if report:
            print(report.group(0))
            raise SystemExit("a sanitizer has reported")
        return status, log

    def connect(self, **kw):
        return rpc.Conn(self.port, self.host, **kw)

    def root(self, conn, export):
        status, fh, _ = conn.mnt(self.exports[export])
        if status:
            raise SystemExit(f"MNT {self.exports[export]}: {status}\n{self.read_log()}")
        return fh

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def sockets(self):
        """Connections and listeners."""
        folder, n = f"/proc/{self.process.pid}/fd/", 0
        for fd in os.listdir(folder):
            try:
                n += os.readlink(folder + fd).startswith("socket:")
            except FileNotFoundError:
                pass
        return n

    def sanitized(self):
        return sanitized(self.binary)

    def cpu(self):
        """Processor seconds used."""
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def finish(count, daemon):
    """The daemon must still be there, stop when asked, and have nothing to report."""
    if count.check("the daemon is alive at the end", daemon.alive(), f"exit status {daemon.process.returncode}"):
        status, log = daemon.stop()
        count.equal("exit status after SIGTERM", status, 0)
    else:
        log = daemon.read_log()
        daemon.process = None
    bad = [line for line in log.splitlines() if "Sanitizer" in line or "runtime error" in line]
    if not count.check("no sanitizer report", not bad, bad[:3]) or count.failed:
        print(log[-20000:])


def result(count):
    print(f"{count.passed} passed, {count.failed} failed, {count.skipped} skipped")
    sys.exit(1 if count.failed else 0)
