#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Members of a cluster on a CephFS, with the object in RADOS: a daemon dies, a machine dies with its mount, metadata servers are replaced, the file
system is full, a member stands still or is evicted while it runs.

`cephfs.py SEED ACTS` has so many deaths at random instead, while clients count under locks (cluster_counter.py); the environment's CEPHFS_ACTS
adds as many. It needs Ceph's packages."""
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
from cluster import ENDED, Holder, Member, await_status, children, end_grace, no_lock, open_at, status_tells_loss, stop_all
from harness import Count, result, sanitized
from tinyceph import Ceph

DEAD = 10  # seconds
PATIENCE = 60
MKDIR = 9
NOSPC = 28


class CephMember(Member):
    """Each machine that it runs on has a mount of its own, at the same path."""

    def __init__(self, name, ceph, common, dead, settings):
        super().__init__(name, common, {
            "cluster.backend": "rados", "cluster.pool": "nfs", "cluster.ceph_conf": ceph.conf, "cluster.dead_time": dead,
            "server.state_dir": f"{common}/state.{name}", **(settings or {})}, "rw,no_root_squash,insecure,fsid=7")
        self.ceph, self.common, self.dead, self.mount = ceph, common, dead, None

    def start(self):
        if self.mount and self.mount.is_given_up():
            self.mount.kill()
            self.mount = None
        if not self.mount:
            self.mount = self.ceph.mount()
        self.before = self.words()
        try:
            super().start()
        except SystemExit:
            print(f"-- {self.name} --\n{self.read_log()[-4000:]}")
            raise

    def close(self):
        self.__exit__()

    def words(self):
        """Arguments of a command that sees the mount of this machine."""
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", f'mount --bind {self.mount.path} {self.common} && exec "$@"', "sh"]

    def processes(self):
        return [self.process.pid, *children(self.process.pid)]

    def machine_dies(self):
        """Kills the daemon, its keeper and its mount, as when their machine dies."""
        pids = self.processes()
        self.mount.process.kill()
        for p in pids:
            os.kill(p, signal.SIGKILL)
        self.process.wait()
        dead, self.mount = self.mount, None
        dead.kill()
        return dead


@contextlib.contextmanager
def ceph_members(t, size=1 << 30, dead=DEAD, settings=None):
    with Ceph(size=size) as ceph:
        common, admin = ceph.top + "/fs", ceph.mount()
        os.mkdir(common)
        for d, mode in (("one", 0o777), ("cluster", 0o700), ("state.a", 0o700), ("state.b", 0o700)):
            os.mkdir(f"{admin.path}/{d}")
            os.chmod(f"{admin.path}/{d}", mode)
        with CephMember("a", ceph, common, dead, settings) as a, CephMember("b", ceph, common, dead, settings) as b:
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
    """Member a ends in some way. The other member's client must not get the lock meanwhile."""
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
    """Starts the member on a mount that it may not use; returns its log."""
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
    t.check("nobody is told of an error", not set(answers) - {n.OK, n.GRACE, n.DELAY}, set(answers))
    t.equal("it ends", a.process.wait(PATIENCE), ENDED)
    t.check("the log says what to do", a.wait_log("has given this machine's client up: member a ends.*unmount and mount it again", a.since))
    got = await_status(lambda: other.c.lock(*held), n.DENIED, seconds=PATIENCE)
    t.equal("the other gets the lock", got["status"], n.OK)
    status, log = refused(a, mount)
    t.check("it does not start by that mount", status and "unmount and mount it again" in log, (status, log))
    status_tells_loss(t, b)
    t.equal("new locks wait for nobody", no_lock(other, *free)["status"], n.OK)
    mount.kill()
    a.mount = None
    a.start()
    t.check("the log says what is lost", a.wait_log("clients lose their locks.* the file system has dropped them", a.since))
    holder.c.again()
    t.equal("it registers again", holder.c.register()["status"], n.OK)
    t.equal("it may not reclaim", holder.c.reclaim_open(holder.fh)["status"], n.NO_GRACE)
    t.equal("RECLAIM_COMPLETE", holder.c.reclaim_complete(), n.OK)
    t.equal("LOCK of what it had", no_lock(holder, *open_at(t, holder, "locked"))["status"], n.DENIED)
    t.equal("LOCKU at the other", other.c.unlock(held[0], got["stateid"])["status"], n.OK)
    holder.stateid = open_at(t, holder, "locked")[1]
    t.equal("LOCK after that", holder.c.lock(holder.fh, holder.stateid)["status"], n.OK)


def test_one_mount(t, a, b):
    print("# two members want one mount")
    t.equal("exit status", a.stop()[0], 0)
    mount = a.mount
    status, log = refused(a, b.mount)
    t.check("refused", status and "each member needs a mount of its own" in log, (status, log))
    a.mount = mount
    a.start()


def test_all_die(t, a, b, holder, other):
    print("# all machines die at once")
    for d in (a, b):
        d.machine_dies()
    since = time.monotonic()
    for d in (a, b):
        d.start()
    print(f"# both serve again {time.monotonic() - since:.1f} s later")
    for h in (holder, other):
        h.back()
    t.equal("RECLAIM_COMPLETE of the other", other.c.reclaim_complete(), n.OK)
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    end_grace(t, holder, other, free, held)


def test_mds_fails(t, a, b, holder, other, seconds):
    print(f"# the metadata server fails, and is missed for {seconds} s")
    held = open_at(t, other, "locked")
    fh, stateid = open_at(t, holder, "read")
    since = time.monotonic()
    a.ceph.fail_mds(seconds)
    t.check("LOCK at the other", no_lock(other, *held)["status"] == n.DENIED)
    t.equal("WRITE", holder.c.last(n.putfh(fh), n.write(stateid, 0, b"new"))["status"], n.OK)
    print(f"# it went on {time.monotonic() - since:.1f} s later")
    t.check("both members live", a.alive() and b.alive())


def test_stands_still(t, a, b, holder, other, admin):
    """Returns the member that takes its place."""
    print("# a member stands still until it is started elsewhere, and goes on then")
    free, held = open_at(t, other, "free"), open_at(t, other, "locked")
    conn = a.connect(timeout=PATIENCE)
    root = a.root(conn, "one")
    a.stand_still()
    conn.send(r.call_message(r.NFS, 3, MKDIR, r.diropargs(root, "late") + r.u32(0) * 6))
    t.equal("the other grants no locks", await_status(lambda: no_lock(other, *free), n.OK, seconds=PATIENCE)["status"], n.GRACE)
    next_a = CephMember("a", a.ceph, a.common, a.dead, None)
    next_a.start()
    t.check("the client of the first is evicted", a.ceph.evicted(a.mount.client))
    holder.c.port = next_a.port
    holder.back()
    a.process.send_signal(signal.SIGCONT)
    answered = True
    try:
        conn.recv()
    except (r.Closed, OSError):
        answered = False
    t.check("a call that it finds is not answered", not answered)
    t.equal("it ends", a.process.wait(PATIENCE), ENDED)
    a.process = None
    t.check("nor was it run", not os.path.exists(admin.path + "/one/late"))
    end_grace(t, holder, other, free, held)
    return next_a


def test_no_library(t, a):
    print("# the library is not there, or the object")
    t.equal("exit status", a.stop()[0], 0)
    for library in ("librados.so.2", "libcephfs.so.2"):
        path = next(f"{d}/{library}" for d in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib") if os.path.exists(f"{d}/{library}"))
        words = a.words()
        words[-2] = f"mount --bind /dev/null {path} && " + words[-2]
        res = subprocess.run([*words, a.binary, "--foreground", "--config", a.config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        t.check(f"without {library}", res.returncode and f"the library {library} cannot be loaded" in res.stdout, res.stdout)
    a.ceph.run("rados", "-c", a.ceph.conf, "-n", "client.admin", "-p", "nfs", "rm", "ringnfs.lab")
    status, log = refused(a, a.mount)
    t.check("without the object", status and "the cluster's object is gone: stop all members, remove it by: rados -p nfs rm ringnfs.lab" in log, log)


def test_few_rights(t):
    print("# the user of Ceph may not evict")
    with ceph_members(t, dead=4) as (a, b, ceph, _):
        ceph.ceph("auth", "caps", "client.ringnfs", "mon", "allow r", "osd", "allow rw pool=nfs", "mds", "allow rw")
        Holder(t, a, "holder", "locked")
        dead = a.machine_dies()
        t.check("the log says what it lacks", b.wait_log("metadata servers evict nobody for client.ringnfs: give it the capability mds 'allow \\*'", seconds=PATIENCE))
        ceph.ceph("auth", "caps", "client.ringnfs", "mon", "allow r", "osd", "allow rw pool=nfs", "mds", "allow *")
        end = time.monotonic() + PATIENCE
        while not ceph.evicted(dead.client) and time.monotonic() < end:
            time.sleep(0.2)
        t.check("it is evicted once that is there", ceph.evicted(dead.client))
        a.start()
        stop_all(t, a, b)


def test_store(t, ceph):
    """The unit tests of the store, on this one."""
    program = "tests/unit/test_cluster_store"
    print(f"# {program}")
    if not os.access(program, os.X_OK):
        t.skip(program, "it is not built")
        return
    if sanitized(program):
        t.skip(program, "it stood still in librados once, with a sanitizer's allocator")
        return
    res = subprocess.run([program, "-j1"], env={**os.environ, "CLUSTER_STORE_CEPH_CONF": ceph.conf}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    t.check("it passes", res.returncode == 0, res.stdout[-3000:])


def fill(path):
    """Writes until there is no space; returns the bytes written."""
    piece, n_bytes = os.urandom(1 << 20), 0
    with open(path, "wb", buffering=0) as f:
        try:
            while n_bytes < 1 << 30:
                f.write(piece)
                os.fsync(f.fileno())
                n_bytes += len(piece)
                time.sleep(0.03)  # Ceph sees late that it is full
        except OSError as e:
            print(f"# {e.strerror} after {n_bytes >> 20} MiB")
    return n_bytes


def await_space(path):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            with open(path, "wb", buffering=0) as f:
                f.write(b"x")
                os.fsync(f.fileno())
            return
        except OSError:
            time.sleep(0.2)


def test_full(t):
    print("# the file system is full")
    with ceph_members(t, size=1 << 30) as (a, b, ceph, admin):
        for ratio, value in (("nearfull", 0.2), ("backfillfull", 0.25), ("full", 0.3)):
            ceph.ceph("osd", f"set-{ratio}-ratio", str(value))
        holder, other = Holder(t, a, "holder", "locked"), Holder(t, b, "other", "others")
        fh, stateid = open_at(t, holder, "written")
        open_at(t, other, "free")
        fill(admin.path + "/one/filler")
        t.equal("WRITE", await_status(lambda: holder.c.last(n.putfh(fh), n.write(stateid, 0, b"x" * 65536)), n.OK)["status"], NOSPC)
        free, held = dies(t, a, holder, other, a.machine_dies)
        status, log = refused(a, ceph.mount())
        t.check("it does not start", status and "No space left on device" in log, (status, log))
        t.check("the other goes on", b.alive() and no_lock(other, *held)["status"] == n.GRACE)
        os.unlink(admin.path + "/one/filler")
        await_space(admin.path + "/one/probe")
        a.start()
        holder.back()
        end_grace(t, holder, other, free, held)
        fh, stateid = open_at(t, holder, "written")
        t.equal("WRITE, once there is space", await_status(lambda: holder.c.last(n.putfh(fh), n.write(stateid, 0, b"x" * 65536)), NOSPC, seconds=PATIENCE)["status"], n.OK)
        stop_all(t, a, b)


def main_short(t):
    with ceph_members(t) as (a, b, ceph, admin):
        holder, other = Holder(t, a, "holder", "locked"), Holder(t, b, "other", "others")
        test_daemon_killed(t, a, b, holder, other)
        test_machine_dies(t, a, b, holder, other)
        test_mds_fails(t, a, b, holder, other, 0)
        test_evicted(t, a, b, holder, other)
        with contextlib.closing(test_stands_still(t, a, b, holder, other, admin)) as a:
            test_mds_fails(t, a, b, holder, other, DEAD + 3)
            test_all_die(t, a, b, holder, other)
            test_one_mount(t, a, b)
            stop_all(t, b)
            test_no_library(t, a)
        test_store(t, ceph)
    test_few_rights(t)
    test_full(t)


def disturb(d):
    """Ends a member, its machine or a metadata server in some way, and starts it again."""
    how = random.choice(("killed", "killed", "killed", "killed with its machine", "killed with its machine", "stopped", "made slow", "served by another metadata server",
                         *cluster_counter.ANEW))
    if how == "killed":
        d.killed()
    elif how in cluster_counter.ANEW:
        if cluster_counter.run_anew(d, how):
            return how
    elif how == "killed with its machine":
        d.machine_dies()
    elif how == "stopped":
        d.stop()
    elif how == "made slow":
        d.stand_still()
        time.sleep(random.choice((0.5, 1.5)) * d.dead)
        d.process.send_signal(signal.SIGCONT)
        if not cluster_counter.is_over(d):
            return "slow, but not too slow"
    else:
        d.ceph.fail_mds()
        return how
    time.sleep(random.choice((0, 0, 0.3, d.dead + 1)))
    d.start()
    return how


def main_long(t, acts):
    with ceph_members(t, dead=4, settings={"nfs4.grace_time": cluster_counter.GRACE}) as (a, b, ceph, admin):
        cluster_counter.test(t, a, b, acts, disturb, admin.path + "/one")
        print(f"# clients of CephFS used: {ceph.numbers}")
        for d in (a, b):
            t.check(f"{d.name}: each program had its records", "in use by another process" not in d.read_log())
        stop_all(t, a, b)


def main():
    t = Count()
    seed = int((sys.argv[1:] or [time.time_ns() % 100000])[0])
    acts = int((sys.argv[2:] or [os.environ.get("CEPHFS_ACTS", 0)])[0])
    if len(sys.argv) < 2:
        main_short(t)
    if acts:
        print(f"# seed {seed}")
        random.seed(seed)
        main_long(t, acts)
    result(t)


if __name__ == "__main__":
    main()
