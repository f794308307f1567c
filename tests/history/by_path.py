#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Calls of clients.py by path: of a process of the server's machine, and in a guest, whose first process this file is (linux_client.py).

The guest is user-mode Linux with this machine's root file system, read-only. It mounts the export and does what comes over a connection: pairs of a
method's name and its arguments, each answered by what the method returns.
"""
import ctypes
import errno
import fcntl
import os
import pickle
import socket
import struct
import subprocess

from linear import DIR, LNK

READ, WRITE = 1, 2  # kinds of locks, as in NFSv4
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000
libc = ctypes.CDLL(None, use_errno=True)


def as_user(uid, act):
    """act() of this thread as another user of the file system."""
    libc.setfsgid(uid)
    libc.setfsuid(uid)
    try:
        return act()
    finally:
        libc.setfsuid(0)
        libc.setfsgid(0)


class Client:
    """back: it has a back channel, so it gets delegations. minor is None below NFSv4, and where the calls are by path."""

    minor, back, wire = None, False, None

    def register(self):
        pass

    def end(self):
        pass

    def beside(self, *_):
        """Times until which calls since then may have had one effect more each than the answered one."""
        return ()


class Local(Client):
    """A process of the server's machine."""

    def __init__(self, where):
        self.where = where

    def path(self, key, name=""):
        return self.where[key][1] + ("/" + name if name else "")

    def try_(self, act):
        try:
            return "ok", act()
        except OSError as e:
            return errno.errorcode.get(e.errno, "E?")[1:] if e.errno != errno.ELOOP else "SYMLINK", None

    def with_file(self, key, flags, act):
        def run():
            fd = os.open(self.path(key), flags)
            try:
                return act(fd)
            finally:
                os.close(fd)
        return self.try_(run)

    def read(self, key, offset, size):
        return (*self.with_file(key, os.O_RDONLY, lambda fd: os.pread(fd, size, offset)), None)

    def write(self, key, offset, data, how):
        return self.with_file(key, os.O_WRONLY, lambda fd: os.pwrite(fd, data, offset))[0], None

    def truncate(self, key):
        return self.with_file(key, os.O_WRONLY, lambda fd: os.ftruncate(fd, 0))[0]

    def create(self, d, name, kind, mode, uid, verifier):
        def make():
            path = self.path(d, name)
            if kind == DIR:
                os.mkdir(path, 0o777)
            elif kind == LNK:
                os.symlink("x", path)
            else:
                fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | (0 if mode == "unchecked" else os.O_EXCL), 0o666)
                try:
                    return os.fstat(fd).st_uid
                finally:
                    os.close(fd)
            return uid
        status, owner = self.try_(lambda: as_user(uid, make))
        return status, owner, None, None

    def remove(self, d, name, kind):
        return self.try_(lambda: (os.rmdir if kind == "dir" else os.unlink)(self.path(d, name)))[0], None

    def rename(self, d, name, e, other):
        return self.try_(lambda: os.rename(self.path(d, name), self.path(e, other)))[0], None

    def lookup(self, d, name):
        status, owner = self.try_(lambda: os.lstat(self.path(d, name)).st_uid)
        return status, owner, None

    def list(self, d, rng=None):
        status, names = self.try_(lambda: os.listdir(self.path(d)))
        return status, [(name, -1) for name in names or ()], None

    @staticmethod
    def set_lock(fd, kind, offset=0, size=0):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, 0, offset, size, 0))

    def lock(self, key, kind, offset, size):
        """(status, descriptor): a lock of the open file description."""
        fd = os.open(self.path(key), os.O_RDWR)
        try:
            self.set_lock(fd, fcntl.F_WRLCK if kind == WRITE else fcntl.F_RDLCK, offset, size)
            return "ok", fd
        except OSError:
            os.close(fd)
            return "DENIED", None

    def unlock(self, fd):
        """To close is not enough: a child of this process (kinit) has the descriptor, too, from its fork until it executes."""
        self.set_lock(fd, fcntl.F_UNLCK)
        os.close(fd)


class Mounted(Local):
    """A process of a client's machine. I/O is on the server when it ends, and touches no other bytes: a client that has a page and no lock may write it as a
    whole, unless it writes by O_DSYNC or O_DIRECT."""

    top, locked = "/run/mnt", None

    def __init__(self):
        super().__init__({})

    def mount(self, source, options, keys):
        """The export. keys: {key: path in it}"""
        self.where = {key: (None, f"{self.top}/{path}") for key, path in keys.items()}
        if "vers=3" in options:  # locks
            os.makedirs("/var/lib/nfs/sm"), os.mkdir("/var/lib/nfs/sm.bak")
            subprocess.run(["rpcbind", "-w"], check=True)
            subprocess.run(["rpc.statd", "--no-notify"], check=True)
        os.mkdir(self.top)
        must_mount(source, self.top, "nfs" if "vers=3" in options else "nfs4", options)

    def with_file(self, key, flags, act):
        """By the descriptor that has the file locked, if one has."""
        return self.try_(lambda: act(self.locked)) if key == "lock" and self.locked else super().with_file(key, flags, act)

    def read(self, key, offset, size, direct=False):
        return (*self.with_file(key, os.O_RDONLY | direct * os.O_DIRECT, lambda fd: os.pread(fd, size, offset)), None)

    def write(self, key, offset, data, how):
        def put(fd):
            os.pwrite(fd, data, offset)
            os.fsync(fd)
        return self.with_file(key, os.O_WRONLY | (os.O_DSYNC, os.O_DIRECT, os.O_SYNC)[how], put)[0], None

    def link(self, d, name, e, other):
        """(status, owner of the object) of a link to what the first name is at first; no owner if it is nothing."""
        def make():
            fd = os.open(self.path(d, name), os.O_PATH | os.O_NOFOLLOW)
            try:
                owner = os.fstat(fd).st_uid
                done = libc.linkat(fd, b"", AT_FDCWD, self.path(e, other).encode(), AT_EMPTY_PATH) == 0
                return "ok" if done else errno.errorcode[ctypes.get_errno()][1:], owner
            finally:
                os.close(fd)
        status, made = self.try_(make)
        return made or (status, None)

    def lock(self, key, kind, offset, size):
        status, self.locked = super().lock(key, kind, offset, size)
        return status, None

    def unlock(self, _):
        fd, self.locked = self.locked, None
        return self.try_(lambda: Local.unlock(self, fd))[0]


def must_mount(source, at, kind, options=""):
    if libc.mount(source.encode(), at.encode(), kind.encode(), 0, options.encode()):
        e = ctypes.get_errno()
        raise OSError(e, f"mount {source} {options}: {os.strerror(e)}")


def main(of=Mounted):
    """As the first process of a guest, whose own address and its host's are in $GUEST. of: what has the calls."""
    own, host, port = os.environ["GUEST"].split(",")
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    for at, kind in (("/proc", "proc"), ("/run", "tmpfs"), ("/var/lib/nfs", "tmpfs")):
        must_mount("none", at, kind, "mode=755" if kind == "tmpfs" else "")
    subprocess.run(["ip", "-batch", "-"], check=True, input=f"link set lo up\nlink set vec0 up\naddr add {own}/24 dev vec0\n".encode())
    os.umask(0)
    mounted = of()
    with socket.create_connection((host, int(port))) as s, s.makefile("rwb") as f:
        while True:
            name, args = pickle.load(f)
            try:
                answer = getattr(mounted, name)(*args)
            except Exception as e:
                answer = e
            pickle.dump(answer, f)
            f.flush()


if __name__ == "__main__":
    main()
