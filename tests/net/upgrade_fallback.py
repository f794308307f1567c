#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The next program cannot go on from the one before: another version that does not read its images, an image that is damaged, a program that ends at once.
It is an ordinary restart then, and nothing is lost: clients reclaim what they had, nobody gets it meanwhile, and the log says why."""
import os
import shutil
import signal
import sys

import nfs4client as n
from harness import Count, Daemon, finish, result
from upgrade import is_locked, restart, wait_ready

# Takes the place of the program's file, as a package's upgrade does.
NEXT = """#!%(python)s -B
import fcntl, os, sys
if "--image-formats" in sys.argv:
    %(formats)s
if "--check-config" in sys.argv:
    sys.exit(0)
%(before)s
os.execv("%(real)s", sys.argv)
"""
READS_THEM = """print("1 1000"); sys.exit(0)"""
DAMAGE = """
image = int(os.environ["RINGNFS_IMAGE"])
bytes = bytearray(os.pread(image, os.fstat(image).st_size, 0))
bytes[len(bytes) // 2] ^= 1
fd = os.memfd_create("damaged", os.MFD_ALLOW_SEALING)
os.write(fd, bytes)
fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
os.set_inheritable(fd, True)
os.environ["RINGNFS_IMAGE"] = str(fd)
"""
CUT = DAMAGE.replace("bytes[len(bytes) // 2] ^= 1", "del bytes[len(bytes) // 2:]")

# By case: Python for --image-formats, Python that the next program runs first, text in the log.
CASES = {
    "a version that reads newer ones only": ("print('7 9'); sys.exit(0)", "", "cannot be handed over: the next program cannot read it"),
    "a version that hands nothing over": ("sys.exit(64)", "", "cannot be handed over: the next program cannot read it"),
    "a damaged image": (READS_THEM, DAMAGE, "cannot go on from the program before: this is an ordinary start"),
    "an image that is cut short": (READS_THEM, CUT, "cannot go on from the program before: this is an ordinary start"),
    "no image behind the number": (READS_THEM, "os.environ['RINGNFS_IMAGE'] = '900'", "cannot go on from the program before: this is an ordinary start"),
    "a program that ends at once": (READS_THEM, "sys.exit(1)", None),
    "a part that is not served any more": (READS_THEM, "open('%(config)s', 'a').write('[nfs3]\\nenabled = no\\n')", "which is not served any more"),
}


class Replaced(Daemon):
    """A server whose program's file is its own, so that it can be replaced."""

    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.real = os.path.join(self.top, "real")
        shutil.copy(self.binary, self.real)
        self.binary = shutil.copy(self.real, os.path.join(self.top, "ringnfsd"))

    def replace(self, formats, before):
        new = self.binary + ".new"
        with open(new, "w") as f:
            f.write(NEXT % {"python": sys.executable, "formats": formats, "before": before % {"config": self.config}, "real": self.real})
        os.chmod(new, 0o755)
        os.rename(new, self.binary)


def restarted(t, d, what, says):
    """Restarts the server; if the program ends, the test starts it again as a service manager does."""
    since = len(wait_ready(d))
    d.process.send_signal(signal.SIGUSR2)
    if says:
        t.check(f"{what}: the log says why", d.wait_log(says, since, 60), d.read_log()[since:])
        t.check(f"{what}: it serves", d.wait_log(r"\bready\b", since, 60), d.read_log()[since:])
    elif not d.wait_log(r"\bready\b", since, 5):
        t.check(f"{what}: the process has ended", d.process.wait(60) != 0)
        shutil.copy(d.real, d.binary + ".new")
        os.rename(d.binary + ".new", d.binary)
        d.start()


def one_case(t, what, formats, before, says):
    with Replaced({"one": "rw,insecure,no_root_squash"}, {"nfs4.lease_time": 10, "nfs4.grace_time": 20, "nfs4.delegations": "no"}) as d:
        path = os.path.join(d.exports["one"], "file")
        holder, other = n.Client(d.port, "holder"), n.Client(d.port, "other")
        for c in (holder, other):
            t.equal("registered", c.register()["status"], n.OK)
            t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
        opened, fh = holder.open(holder.path(d.exports["one"]), "file", create=True)
        t.equal("LOCK", holder.lock(fh, opened["stateid"], offset=100, length=50)["status"], n.OK)
        t.check(f"{what}: the kernel has it locked", is_locked(path))
        d.replace(formats, before)
        restarted(t, d, what, says)
        for c in (other, holder):
            c.again()
            t.equal(f"{what}: registered again", c.register()["status"], n.OK)
        theirs = other.open(other.path(d.exports["one"]), "file")[0]
        t.equal(f"{what}: a new OPEN", theirs["status"], n.GRACE)
        t.check(f"{what}: nothing of the program before has it locked", not is_locked(path))
        again = holder.reclaim_open(fh)
        t.equal(f"{what}: OPEN, reclaimed", again["status"], n.OK)
        t.equal(f"{what}: LOCK, reclaimed", holder.lock(fh, again["stateid"], offset=100, length=50, reclaim=True)["status"], n.OK)
        t.check(f"{what}: the kernel has it locked again", is_locked(path))
        for c in (holder, other):
            t.equal(f"{what}: RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
        t.check(f"{what}: grace ends", d.wait_log("grace period is over"))
        theirs = other.open(other.path(d.exports["one"]), "file")[0]
        t.equal(f"{what}: LOCK by the other client", other.lock(fh, theirs["stateid"], offset=120, length=1)["status"], n.DENIED)
        t.check(f"{what}: from here it goes on whole", "goes on from" in restart(t, d, what))
        t.equal(f"{what}: LOCK by the other client, then", other.lock(fh, theirs["stateid"], offset=120, length=1)["status"], n.DENIED)
        for c in (holder, other):
            c.close()
        finish(t, d)


def main():
    t = Count()
    for what, case in CASES.items():
        one_case(t, what, *case)
    result(t)


if __name__ == "__main__":
    main()
