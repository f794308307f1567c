#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Members of a cluster on a CephFS, with the object in RADOS: a daemon dies, a machine dies with its mount, metadata servers are replaced, the file
system is full, a member stands still or is evicted while it runs.

`cephfs.py long [SEED] [ACTS]` counts under locks (cluster_counter.py) meanwhile, with as many deaths at random. It needs Ceph's packages."""
import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import cluster_counter
import nfs4client as n
import rpcclient as r
from cluster import ENDED, Holder, Member, await_status, children, end_grace, no_lock, open_at, stop_all
from harness import Count, result
from tinyceph import Ceph

DEAD = 10  # seconds
PATIENCE = 60


class CephMember(Member):
    """Each machine that it runs on has a mount of its own, at the same path."""

    def __init__(self, name, ceph, common):
        super().__init__(name, common, {
            "cluster.backend": "rados", "cluster.pool": "nfs", "cluster.ceph_conf": ceph.conf, "cluster.dead_time": DEAD,
            "server.state_dir": f"{common}/state.{name}"}, "rw,no_root_squash,insecure,fsid=7")
        self.ceph, self.common, self.mount = ceph, common, None

    def start(self):
        if not self.mount:
            self.mount = self.ceph.mount()
        self.before = self.words()
        super().start()

    def words(self):
        """Of a command that sees the mount of this machine."""
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", f'mount --bind {self.mount.path} {self.common} && exec "$@"', "sh"]

    def processes(self):
        return [self.process.pid, *children(self.process.pid)]

    def machine_dies(self):
        """The daemon, its keeper and its mount."""
        pids = self.processes()
        self.mount.process.kill()
        for p in pids:
            os.kill(p, signal.SIGKILL)
        self.process.wait()
        dead, self.mount = self.mount, None
        dead.kill()
        return dead


@contextlib.contextmanager
def ceph_members(t, size=1 << 30):
    with Ceph(size=size) as ceph:
        common, admin = ceph.top + "/fs", ceph.mount()
        os.mkdir(common)
        for d, mode in (("one", 0o777), ("cluster", 0o700), ("state.a", 0o700), ("state.b", 0o700)):
            os.mkdir(f"{admin.path}/{d}")
            os.chmod(f"{admin.path}/{d}", mode)
        with CephMember("a", ceph, common) as a, CephMember("b", ceph, common) as b:
            try:
                yield a, b, ceph, admin
            except BaseException as e:
                t.check("it goes on", False, repr(e))
                raise
            finally:
                if t.failed:
                    print(a.read_log()[-8000:], b.read_log()[-8000:], sep="\n-- b --\n")


def granted_elsewhere(other, held, until):
    """Statuses that the other member's client gets for the lock until the function is true."""
    seen = set()
    while not until():
        seen.add(no_lock(other, *held)["status"])
        time.sleep(0.02)
    return seen


def dies(t, a, holder, other, how):
    """a ends in some way; meanwhile the other's client never gets the lock."""
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    since = time.monotonic()
    how()
    seen = granted_elsewhere(other, held, lambda: no_lock(other, *free)["status"] == n.GRACE or time.monotonic() > since + PATIENCE)
    t.check("the lock is not granted before the grace", n.OK not in seen, seen)
    print(f"# the other granted no locks {time.monotonic() - since:.1f} s later")
    return free, held


def test_daemon_killed(t, a, b, holder, other):
    print("# a daemon is killed; its machine and mount live")
    client = a.mount.client
    free, held = dies(t, a, holder, other, a.killed)
    t.check("the keeper lets the locks go", a.wait_log("files are released after"))
    t.equal("LOCK at the other", no_lock(other, *held)["status"], n.GRACE)
    a.start()
    t.equal("the mount is the same", a.mount.client, client)
    holder.back()
    end_grace(t, holder, other, free, held)
    t.check("its client was not evicted", not a.ceph.evicted(client))


def test_machine_dies(t, a, b, holder, other):
    print("# a machine dies: daemon, keeper and mount")
    dead = []
    free, held = dies(t, a, holder, other, lambda: dead.append(a.machine_dies()))
    since = time.monotonic()
    while not a.ceph.evicted(dead[0].client) and time.monotonic() < since + PATIENCE:
        t.check("LOCK at the other meanwhile", no_lock(other, *held)["status"] == n.GRACE)
        time.sleep(0.2)
    print(f"# its client was evicted {time.monotonic() - since:.1f} s after that")
    t.check("its client is evicted", a.ceph.evicted(dead[0].client))
    a.start()
    t.equal("LOCK at the other", no_lock(other, *held)["status"], n.GRACE)
    holder.back()
    end_grace(t, holder, other, free, held)


def refused(m, mount):
    """Starts the member by that mount, which it may not use: its log."""
    m.mount = mount
    m.before = m.words()
    res = subprocess.run([*m.before, m.binary, "--foreground", "--config", m.config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return res.returncode, res.stdout


def test_evicted(t, a, b, holder, other):
    print("# a member is evicted by hand while it runs")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    fh, stateid = open_at(t, holder, "read")
    t.equal("WRITE", holder.c.last(n.putfh(fh), n.write(stateid, 0, b"old"))["status"], n.OK)
    conn = a.connect(timeout=60)
    root = a.root(conn, "one")
    mount = a.mount
    a.ceph.evict(mount.client)
    answers = []
    for ask in (lambda: holder.c.last(n.putfh(fh), n.read(stateid, 0, 3)), lambda: holder.c.lock(fh, stateid), lambda: conn.nfs(r.GETATTR, r.getattr_args(root))):
        try:
            while True:
                answers.append(ask()["status"])
        except (r.Closed, OSError):
            pass
    t.check("nobody is told of an error", not set(answers) - {n.OK, n.GRACE}, set(answers))
    t.equal("it ends", a.process.wait(PATIENCE), ENDED)
    t.check("the log says what to do", a.wait_log("has given this machine's client up: member a ends.*unmount and mount it again", a.since))
    status, log = refused(a, mount)
    t.check("it does not start by that mount", status and "unmount and mount it again" in log, (status, log))
    t.equal("the other grants no locks", await_status(lambda: no_lock(other, *free), n.OK)["status"], n.GRACE)
    mount.kill()
    a.mount = None
    a.start()
    holder.back()
    end_grace(t, holder, other, free, held)


def test_one_mount(t, a, b):
    print("# two members want one mount")
    t.equal("exit status", a.stop()[0], 0)
    mount = a.mount
    status, log = refused(a, b.mount)
    t.check("refused", status and "each member needs a mount of its own" in log, (status, log))
    a.mount = mount
    a.start()


def main_short(t):
    with ceph_members(t) as (a, b, ceph, _):
        holder, other = Holder(t, a, "holder", "locked"), Holder(t, b, "other", "others")
        test_daemon_killed(t, a, b, holder, other)
        test_machine_dies(t, a, b, holder, other)
        test_evicted(t, a, b, holder, other)
        test_one_mount(t, a, b)
        stop_all(t, a, b)


def main():
    t = Count()
    main_short(t)
    result(t)


if __name__ == "__main__":
    main()
