#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Works on NFS mounts and keeps a journal of what was begun and what was acknowledged (journal.py).

load.py JOURNAL STOP SEED WORKER=FOLDER...: each worker works in its own folder until the file STOP is there. A
worker whose name begins with "v4" takes a lock first and holds it. One whose name begins with "async" works on an
export that may lose what it acknowledged: it uses each file once and goes on after errors. Prints what went wrong,
and ends with 1 then.
"""
import errno
import fcntl
import json
import os
import random
import sys
import threading
import time

import journal

RETRIED = 1.0  # seconds after which an operation has been sent again, so that an error may mean: done before


class Journal:
    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.lock = threading.Lock()

    def line(self, *what):
        with self.lock:
            os.write(self.fd, (json.dumps(what) + "\n").encode())


class Worker(threading.Thread):
    def __init__(self, name, folder, seed, log, stop):
        super().__init__()
        self.who, self.folder, self.log, self.stop = name, folder, log, stop
        self.rng = random.Random(f"{seed} {name}")
        self.tree, self.number, self.made, self.error = journal.Tree(), 0, 0, None

    def path(self, name):
        return os.path.join(self.folder, name)

    def fresh(self):
        self.made += 1
        return f"n{self.made}"

    def pick(self, *kinds):
        names = [n for n, node in self.tree.names.items() if node.kind in kinds and n != "lock"]
        return self.rng.choice(sorted(names)) if names else None

    def choose_once(self):
        """A new file and its data, for a worker whose files may vanish."""
        if self.made == 0 or f"n{self.made}" not in self.tree.names or self.tree.names[f"n{self.made}"].data:
            return "create", [self.fresh(), 0o600]
        return "write", [f"n{self.made}", 0, 4096, self.rng.randrange(1 << 30)]

    def choose(self):
        """The next operation and its arguments."""
        if self.who.startswith("async"):
            return self.choose_once()
        rng, f = self.rng, self.pick("file")
        if f is None or rng.random() < 0.15:
            return "create", [self.fresh(), rng.choice([0o600, 0o644, 0o755])]
        what = rng.random()
        if what < 0.35:
            return "write", [f, rng.choice([0, 4096, rng.randrange(20000)]), rng.choice([1, 100, 4096, 30000]),
                             rng.randrange(1 << 30)]
        if what < 0.50:
            return self.choose_name(f)
        if what < 0.60:
            return "unlink", [self.pick("file", "link", "fifo")]
        if what < 0.75:
            return self.choose_attribute(f)
        return self.choose_other()

    def choose_name(self, f):
        other = self.pick("file")
        if self.rng.random() < 0.3:
            return "link", [f, self.fresh()]
        if self.rng.random() < 0.4 and self.tree.names[other] is not self.tree.names[f]:
            return "rename", [f, other]
        return "rename", [f, self.fresh()]

    def choose_attribute(self, f):
        which = self.rng.randrange(4)
        if which == 0:
            return "chmod", [self.pick("file", "fifo"), self.rng.choice([0o600, 0o640, 0o666])]
        if which == 1:
            return "truncate", [f, self.rng.choice([0, 10, 5000, 50000])]
        return "utime", [self.pick("file", "fifo"), self.rng.randrange(1 << 30)]

    def choose_other(self):
        which, d = self.rng.randrange(4), self.pick("dir")
        if which == 0 and d:
            return "rmdir", [d]
        if which == 1:
            return "symlink", [self.fresh(), "to/" + "x" * self.rng.randrange(100)]
        if which == 2:
            return "mkfifo", [self.fresh(), 0o600]
        return "mkdir", [self.fresh()]

    def do_write(self, name, offset, length, seed):
        """By turns stable writes, and unstable ones with a COMMIT."""
        data = journal.pattern(seed, length)
        fd = os.open(self.path(name), os.O_WRONLY | (os.O_SYNC if seed % 2 else 0))
        try:
            for at in range(0, length, 8192):
                os.pwrite(fd, data[at:at + 8192], offset + at)
            os.fsync(fd)
        finally:
            os.close(fd)

    def perform(self, op, args):
        p = [self.path(a) if isinstance(a, str) else a for a in args]
        if op == "create":
            os.close(os.open(p[0], os.O_WRONLY | os.O_CREAT | os.O_EXCL, p[1]))
        elif op == "write":
            self.do_write(*args)
        elif op == "symlink":
            os.symlink(args[1], p[0])
        elif op == "utime":
            os.utime(p[0], (p[1], p[1]))
        elif op == "lock":
            self.held = os.open(p[0], os.O_RDWR)
            fcntl.lockf(self.held, fcntl.LOCK_EX)
        else:
            getattr(os, op)(*p)

    def happened(self, op, args):
        """True if the operation was done although its second sending failed, as after a restart of the server."""
        names = set(os.listdir(self.folder))
        after = journal.copy.deepcopy(self.tree)
        after.apply(op, args)
        return names == set(after.names)

    def one(self, op, args):
        self.number += 1
        self.log.line("begin", self.who, self.number, op, *args)
        start = time.monotonic()
        try:
            self.perform(op, args)
        except OSError as e:
            if self.who.startswith("async"):
                return
            retried = time.monotonic() - start > RETRIED
            if e.errno not in (errno.ENOENT, errno.EEXIST) or not retried or not self.happened(op, args):
                raise
        self.tree.apply(op, args)
        self.log.line("ack", self.who, self.number)

    def run(self):
        op, args = "start", []
        try:
            if self.who.startswith("v4"):
                op, args = "create", ["lock", 0o600]
                self.one(op, args)
                op, args = "lock", ["lock"]
                self.one(op, args)
            while not os.path.exists(self.stop):
                op, args = self.choose()
                self.one(op, args)
        except Exception as e:  # pylint: disable=broad-except
            self.error = f"{self.who}: {op} {args}: {e}"
            print(self.error, flush=True)


def main():
    path, stop, seed, *workers = sys.argv[1:]
    os.umask(0)
    log = Journal(path)
    threads = [Worker(*w.split("=", 1), seed, log, stop) for w in workers]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.exit(any(t.error for t in threads))


main()
