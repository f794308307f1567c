# SPDX-License-Identifier: BSD-2-Clause
"""A well-behaved client on a thread of its own, over whatever connection it is given, that stands still when asked to."""
import contextlib
import os
import threading
import time

import rpcclient as r

PATIENCE = 120  # seconds for a round: far above what a sanitizer on a busy machine needs


class Steady:
    def __init__(self, name, connect, root):
        """connect() makes a connection with .nfs() and .close()."""
        self.conn, self.root, self.name = connect(), root, f"steady-{name}"
        self.data = os.urandom(10000)
        self.fh = self.conn.nfs(r.CREATE, r.create_args(root, self.name))["fh"]
        self.conn.nfs(r.WRITE, r.write_args(self.fh, 0, self.data))
        self.rounds, self.error, self.stopped, self.pause = 0, None, False, False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _round(self):
        c = self.conn
        if c.nfs(r.LOOKUP, r.lookup_args(self.root, self.name))["fh"] != self.fh:
            raise ValueError("LOOKUP found another file")
        if c.nfs(r.READ, r.read_args(self.fh, 0, len(self.data)))["data"] != self.data:
            raise ValueError("READ gave other data")
        if self.name.encode() not in [e["name"] for e in c.nfs(r.READDIR, r.readdir_args(self.root, count=65536))["entries"]]:
            raise ValueError("READDIR has lost the file")
        self.data = os.urandom(len(self.data))
        w = c.nfs(r.WRITE, r.write_args(self.fh, 0, self.data))
        if w["status"] or w["count"] != len(self.data):
            raise ValueError(f"WRITE: {w}")

    def _run(self):
        try:
            while True:
                with self.changed:
                    self.idle = True
                    self.changed.notify_all()
                    self.changed.wait_for(lambda: self.stopped or not self.pause)
                    if self.stopped:
                        return
                    self.idle = False
                self._round()
                with self.changed:
                    self.rounds += 1
                    self.changed.notify_all()
                time.sleep(0.01)  # there is always one under way or soon; more would only keep the processors from the faults
        except Exception as e:  # whatever it is, the test shall say it
            with self.changed:
                self.error, self.idle = repr(e), True
                self.changed.notify_all()

    def works(self, rounds=2):
        """None after so many more rounds, or what is wrong."""
        with self.changed:
            want = self.rounds + rounds
            if not self.changed.wait_for(lambda: self.error or self.rounds >= want, PATIENCE):
                return "stands still"
            return self.error

    @contextlib.contextmanager
    def still(self):
        """With no call of it under way."""
        with self.changed:
            self.pause = True
            self.changed.wait_for(lambda: self.error or (self.pause and self.idle), PATIENCE)
        try:
            yield
        finally:
            with self.changed:
                self.pause = False
                self.changed.notify_all()

    def close(self):
        with self.changed:
            self.stopped = True
            self.changed.notify_all()
        self.thread.join(PATIENCE)
        self.conn.close()
