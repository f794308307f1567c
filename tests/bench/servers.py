# SPDX-License-Identifier: BSD-2-Clause
"""The servers that are measured, on loopback, in the name spaces that host.alone() makes.

Each is a context, and has .name, .pid, and .arguments: how nfsload finds it.

    servers.py TOP FOLDER NAME...    those of FOR_ALL, for clients of all hosts, with their files in TOP; prints "ready", and ends them with
                                     its input"""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import types

import host

LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def wait_for(ready, process, log):
    """Waits until ready() is true; shows the log of a process that ends before."""
    for _ in range(1200):
        if process.poll() is not None:
            break
        if ready():
            return
        time.sleep(0.05)
    with open(log, errors="replace") as f:
        print(f.read()[-4000:])
    raise SystemExit(f"{' '.join(process.args)} does not start")


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Server:
    name, port, mount_port = "", 0, 0
    client = ()  # words of a command that becomes nfsload

    def __init__(self, scratch, folders, cpu=None):
        """folders: paths to be exported; cpu: list of processors, None: all."""
        self.top, self.folders, self.cpu, self.process = os.path.join(scratch.top, self.name), folders, cpu, None

    def __enter__(self):
        os.mkdir(self.top)
        self.log = os.path.join(self.top, "log")
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def spawn(self, command, env=None):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                                            preexec_fn=lambda: self.cpu and os.sched_setaffinity(0, self.cpu))
        wait_for(self.ready, self.process, self.log)

    def ready(self):
        return listens(self.port)

    def write(self, name, text):
        path = os.path.join(self.top, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    @property
    def pid(self):
        return self.process.pid

    @property
    def arguments(self):
        return ["--port", str(self.port), "--mount-port", str(self.mount_port), "--server-pid", str(self.pid)]


class Ringnfsd(Server):
    name, port, mount_port = "ringnfsd", 12049, 12049
    settings = {"rdma": {"enabled": "no"}}
    options = "rw,sync,no_root_squash,no_subtree_check,insecure"  # of the exports
    hosts, listen = "127.0.0.0/8", "127.0.0.1"
    before = ()  # words of a command that becomes the server

    def start(self):
        exports = self.write("exports", "".join(f"{f} {self.hosts}({self.options})\n" for f in self.folders))
        os.mkdir(os.path.join(self.top, "state"))
        keys = {"server": {"state_dir": self.top + "/state", "exports_file": exports, "exports_dir": self.top + "/none",
                           "rpcbind": "no", "control_socket": ""},
                "tcp": {"port": self.port, "listen": self.listen, "mount_port": 0}, **self.settings}
        config = self.write("ringnfs.conf", "".join(
            f"[{section}]\n" + "".join(f"{k} = {v}\n" for k, v in words.items()) for section, words in keys.items()))
        binary = os.environ.get("RINGNFSD") or host.program("ringnfsd")
        self.spawn([*self.before, binary, "--foreground", "--config", config])


class Ganesha(Server):
    """nfs-ganesha as Debian has it, with FSAL VFS. It does not serve NFSv3 without a port mapper, so it has one of its own.

    Newer ones end if they may not keep off the kernel's writing back (PR_SET_IO_FLUSHER), which containers forbid, unless told otherwise.
    Beside what it needs, three settings differ from the defaults: no grace period, a cache that has room for 100,000 names, and
    no names of users from anywhere."""
    name, port, mount_port = "ganesha", 13049, 13048
    root = os.environ.get("BENCH_GANESHA", "")  # folder with its files and all its libraries, if it is not this machine's own

    @classmethod
    def command(cls):
        program, lib = f"{cls.root}/usr/bin/ganesha.nfsd", cls.root + LIBRARIES
        return [f"{lib}/ld-linux-x86-64.so.2", "--library-path", f"{lib}:{cls.root}/usr/lib/ganesha", program] if cls.root else [program]

    @classmethod
    def plugins(cls):
        return f"{cls.root}{LIBRARIES}/ganesha"

    @classmethod
    def missing(cls):
        """What is not installed, or None."""
        if not os.access(cls.command()[-1], os.X_OK) or not os.path.isdir(cls.plugins()):
            return "packages nfs-ganesha and nfs-ganesha-vfs"
        return None if shutil.which("rpcbind") else "package rpcbind"

    @classmethod
    def version(cls):
        done = subprocess.run([*cls.command(), "-v"], capture_output=True, text=True)
        found = re.search(r"V(\d[\d.]*)", done.stdout + done.stderr)
        return f"nfs-ganesha {found.group(1) if found else '?'}"

    def start(self):
        os.makedirs("/run/rpcbind", exist_ok=True)
        self.mapper = subprocess.Popen(["rpcbind", "-f"], stdin=subprocess.DEVNULL)
        wait_for(lambda: listens(111), self.mapper, os.devnull)
        os.mkdir(os.path.join(self.top, "recovery"))
        exports = "".join(f"EXPORT {{ Export_Id = {i + 1}; Path = {f}; Pseudo = {f}; Access_Type = RW; Squash = No_Root_Squash; "
                          f"SecType = sys; FSAL {{ Name = VFS; }} }}\n" for i, f in enumerate(self.folders))
        config = self.write("ganesha.conf", f"""
NFS_CORE_PARAM {{
	NFS_Port = {self.port}; MNT_Port = {self.mount_port}; Rquota_Port = 13050;
	Protocols = 3, 4; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
	Plugins_Dir = {self.plugins()};
	{"Allow_Set_Io_Flusher_Fail = true;" if self.root else ""}
}}
NFSv4 {{ Graceless = true; RecoveryRoot = {self.top}/recovery; Only_Numeric_Owners = true; }}
MDCACHE {{ Entries_HWMark = 500000; }}
LOG {{ Default_Log_Level = WARN; }}
{exports}""")
        self.spawn([*self.command(), "-F", "-f", config, "-L", self.log, "-p", os.path.join(self.top, "pid")])

    def __exit__(self, *_):
        super().__exit__()
        self.mapper.terminate()
        self.mapper.wait()


class RingnfsdForAll(Ringnfsd):
    hosts, listen = "*", ""
    options = os.environ.get("BENCH_OPTIONS", Ringnfsd.options)


class RingnfsdAsync(RingnfsdForAll):
    name, port, mount_port = "async", 14049, 14049
    options = RingnfsdForAll.options.replace("sync", "async", 1)


FOR_ALL = {server.name: server for server in (RingnfsdForAll, RingnfsdAsync, Ganesha)}


def main():
    top, folder, *names = sys.argv[1:]
    with contextlib.ExitStack() as running:
        for name in names:
            running.enter_context(FOR_ALL[name](types.SimpleNamespace(top=top), [folder]))
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
