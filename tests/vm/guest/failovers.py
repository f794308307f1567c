#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""In the guest: work on mounts of member nfs1 by NFSv3 and 4.2 over RDMA, and failovers of it (t/cluster_failover.sh).

Another client, of member nfs2, wants the locks all the time. What was acknowledged must be there afterwards, as CephFS itself shows it to this machine."""
import fcntl
import json
import os
import re
import subprocess
import sys
import threading
import time

sys.path.append(os.environ["SOURCE"] + "/tests/net")
import busy  # noqa: E402

PATIENCE = 300  # seconds: a bound for waits that end with what they wait for
SETTLED = 10  # calls of each thread between failovers
MACHINES = 1, 2
LIB = '. "$VMDIR/guest/lib.sh"; . "$VMDIR/guest/clients.sh"; '
MACHINE = f"{os.environ['VMDIR']}/guest/cluster_machine.sh"
CEPH = ["ceph", "-c", os.environ["CEPH"], "-n", "client.admin"]
RINGNFSCTL = os.environ["BUILDDIR"] + "/ringnfsctl"
VERSIONS = {"v3": "3", "v4.2": "4.2"}


def bash(text):
    return subprocess.run(["bash", "-c", LIB + text], check=True, stdout=subprocess.PIPE, text=True).stdout


def on(machine, *words):
    """Output of a command there, whatever its status."""
    program = [os.environ["VMPROG"] + "/vmcall", f"10.9.2{machine}.2", "4444", f"/run/vm-server/peer.{machine}.dead"]
    return subprocess.run([*program, "CEPH=" + os.environ["CEPH"], *words], stdout=subprocess.PIPE, text=True).stdout.strip()


def unit(machine, member):
    return on(machine, "cat", f"/run/unit.{member}.state")


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE
    while not (got := condition()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.3)
    return got


class Cluster:
    def __init__(self):
        self.up = set()

    def boot(self, *machines):
        bash("peer_boot " + " ".join(map(str, machines)))
        said = {}
        threads = [threading.Thread(target=lambda m=m: said.update({m: on(m, "sh", "-c", MACHINE + " setup 2>&1 && echo set up")})) for m in machines]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for m, text in said.items():
            if "set up" not in text:
                raise OSError(f"machine {m}: {text}")
        self.up |= set(machines)

    def runs(self, member, machines=MACHINES):
        """The machine that runs the member, of these."""
        return next((m for m in machines if m in self.up and unit(m, member) == "active"), None)

    def await_member(self, member, *machines):
        return wait_for(f"{member} at {machines}", lambda: self.runs(member, machines or MACHINES))

    def move(self, member):
        here = self.await_member(member)
        on(here, RINGNFSCTL, "--socket", f"/run/ringnfs-{member}/control", "cluster", "move")
        self.await_member(member, 3 - here)

    # ---- how a member ends

    def daemon_killed(self):
        here = self.await_member("nfs1")
        pid = on(here, "cat", "/run/unit.nfs1.pid")
        on(here, "kill", "-9", pid)
        wait_for("a new run", lambda: on(here, "cat", "/run/unit.nfs1.pid") not in ("", pid))
        self.await_member("nfs1", here)

    def machine_dies(self):
        here = self.await_member("nfs1")
        self.up.remove(here)
        bash(f"touch $STATE/peer.{here}.dead; ask_runner {here} cut")
        self.await_member("nfs1", 3 - here)

    def moved(self):
        self.move("nfs1")

    def daemon_hangs(self):
        here = self.await_member("nfs1")
        on(here, "kill", "-STOP", on(here, "cat", "/run/unit.nfs1.pid"))
        self.await_member("nfs1", 3 - here)

    def evicted(self):
        here = self.await_member("nfs1")
        ended = on(here, "grep", "-c", "status 75", "/share/units")
        client = on(here, "python3", "-c", "import os; print(os.getxattr('/mnt/nfs1', 'ceph.client_id').decode())")
        subprocess.run([*CEPH, "tell", "mds.0", "client", "evict", "id=" + client.removeprefix("client")], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("the end of the member", lambda: on(here, "grep", "-c", "status 75", "/share/units") != ended)
        wait_for("the reason why it does not start again", lambda: on(here, "grep", "state directory.*was evicted; unmount and mount it again", "/share/units"))
        self.await_member("nfs1", 3 - here)


def intrude(path):
    """In a process of its own: wants a lock, by the other member. Says how often it asked before somebody ends its input, and whether it got the lock."""
    fd, asked, over = os.open(path, os.O_RDWR), 0, threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    while not over.wait(0.05):
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            print(f"got it after {asked}", flush=True)
            return
        except BlockingIOError:
            asked += 1
    print(asked, flush=True)


def work(at):
    """In a process of its own, as each process that another starts flushes that one's files when it closes them."""
    worker = busy.Busy(at)
    for line in sys.stdin:
        if line == "reset\n":
            worker.slowest = {}
        if line == "finish\n":
            worker.finish()
        print(json.dumps([worker.acknowledged, worker.failed, worker.slowest, worker.again]), flush=True)


class Process:
    def __init__(self, *words):
        self.process = subprocess.Popen([sys.executable, "-B", __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, what="progress"):
        """(calls acknowledged, errors, the longest calls, names that were made again) of a worker."""
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        return self.process.communicate(timeout=PATIENCE)[0].strip()


class Result:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, good, detail=""):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        print(f"ok {what}" + (f" ({detail})" if detail else "") if good else f"FAIL {what}: {detail}", flush=True)

    def equal(self, what, got, want):
        self.check(what, got == want, "" if got == want else f"{got!r}, not {want!r}")


def await_work(workers):
    """Each thread has made so many calls more."""
    def worked():
        now = [w.ask() for w in workers]
        return any(failed for _, failed, *_ in now) or all(done.get(k, 0) >= was.get(k, 0) + SETTLED for (done, *_), was in zip(now, before) for k in busy.KINDS)
    before = [w.ask()[0] for w in workers]
    wait_for("work", worked)


def status(c):
    return on(c.await_member("nfs2"), RINGNFSCTL, "--socket", "/run/ringnfs-nfs2/control", "cluster", "status")


def failover(t, what, c, end, workers):
    wait_for("the end of the grace period before", lambda: "no grace period" in status(c))
    for w in workers.values():
        w.ask("reset")
    since = time.monotonic()
    end()
    served = time.monotonic() - since
    await_work(workers.values())
    now = {v: w.ask() for v, w in workers.items()}
    failed = [f for _, failed, *_ in now.values() for f in failed]
    t.check(what, not failed, failed or f"the member answers after {served:.1f} s at most; longest calls: " + "; ".join(
        f"{v} " + ", ".join(f"{k} {s:.1f} s" for k, s in slowest.items()) for v, (_, _, slowest, _) in now.items()))


def loss(t, c, workers):
    """CephFS lets the locks of a client go that somebody evicts, before the members know of it. So nobody may reclaim them."""
    wait_for("the end of the grace period before", lambda: "no grace period" in status(c))
    intruders = {v: Process("intrude", f"/mnt/other/{v}/locked") for v in VERSIONS}
    c.evicted()
    for v, i in intruders.items():
        said = i.process.stdout.readline()
        t.check(f"{v}: another client gets the lock of the evicted member's", "got it after" in said, said)
        i.end()
    log = on(c.await_member("nfs1"), "grep", "-h", "clients lose their locks.*the file system has dropped them", "/share/units")
    t.check("its log says that clients lose their locks", log, log)
    await_work([workers["v3"]])
    # NFSv3 has no way to tell a program. Linux's client says it in its log.
    wait_for("the program by NFSv4.2 to learn of it", lambda: any(f.startswith("count ") for f in workers["v4.2"].ask()[1]))


def forgive(path, acknowledged, failed):
    """Failures other than that of the program that has lost its lock. Its last change may have been made."""
    with open(path, "rb") as f:
        counted = int.from_bytes(f.read(8), "big")
    acknowledged["count"] += counted == acknowledged["count"] + 1
    return [f for f in failed if not re.fullmatch(r"count \d+: OSError\(5, .*", f)]


def mount_all():
    bash("""
        mount -t tmpfs t /var/lib/nfs; mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak; chown -R statd /var/lib/nfs
        rpcbind -w; rpc.statd --no-notify; mkdir -p /mnt/cephfs
        mount -t ceph :/ /mnt/cephfs -o conf=$CEPH,name=mount,fs=cephfs""")
    # A client that only waits for answers learns by that time alone that its server has gone: nothing answers for a queue pair that is not there.
    for v, vers in VERSIONS.items():
        bash(f"NFS_LOCK=lock NFS_HOST=$LAN.101 nfs_mount {vers} rdma /srv/cluster/data /mnt/{v} timeo=100")
    bash("NFS_HOST=$LAN.102 nfs_mount 4.2 rdma /srv/cluster/data /mnt/other")


def test(t):
    c = Cluster()
    c.boot(*MACHINES)
    for member in ("nfs1", "nfs2"):
        print(f"# {member} runs at machine {c.await_member(member)}", flush=True)
    if c.await_member("nfs1") == c.await_member("nfs2"):
        c.move("nfs2")
    mount_all()
    with open("/proc/mounts") as f:
        t.equal("mounts by RDMA", len(re.findall(r"^10\.9\.30\..*,proto=rdma,", f.read(), re.M)), 3)
    workers = {v: Process("work", f"/mnt/{v}/{v}") for v in VERSIONS}
    await_work(workers.values())
    intruders = {v: Process("intrude", f"/mnt/other/{v}/locked") for v in VERSIONS}
    failover(t, "the daemon is killed, and started again", c, c.daemon_killed, workers)
    failover(t, "its machine dies, and the other one takes over", c, c.machine_dies, workers)
    c.boot(*set(MACHINES) - c.up)
    failover(t, "it is moved back", c, c.moved, workers)
    failover(t, "the daemon hangs, and the other machine takes over", c, c.daemon_hangs, workers)
    for v, i in intruders.items():
        asked = i.end()
        t.check(f"{v}: its lock is nobody else's", asked.isdigit() and asked != "0", f"{asked} tries")
    loss(t, c, workers)
    for v, w in workers.items():
        acknowledged, failed, _, again = w.ask("finish")
        if v == "v4.2":
            failed = forgive(f"/mnt/cephfs/data/{v}/locked", acknowledged, failed)
        t.equal(f"{v}: calls that failed", failed, [])
        print(f"# {v}: acknowledged " + ", ".join(f"{k} {n}" for k, n in acknowledged.items()) + f"; {again} names were made again", flush=True)
        busy.check_files(t, f"/mnt/cephfs/data/{v}", v, acknowledged)


def main():
    t = Result()
    try:
        test(t)
    except Exception as e:
        t.check("it goes on", False, repr(e))
    print(f"{t.passed} passed, {t.failed} failed, 0 skipped")
    sys.exit(t.failed > 0)


if __name__ == "__main__":
    {"work": work, "intrude": intrude}[sys.argv[1]](sys.argv[2]) if sys.argv[1:] else main()
