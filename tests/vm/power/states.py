#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many power cuts of one run: contents that the disk may have been left with at any moment, each compared.

states.py FS LOG IMAGE JOURNAL COUNT SEED WORKER=FOLDER...: LOG is that of power/cutdisk.py, IMAGE the disk's first
contents, FOLDER a worker's below the file system's root. A worker whose name begins with "async" is the negative
control: its export does not wait for the disk, and at least one state must lack something of it. At COUNT moments of the log, spread over it and each with
writes that survive by chance, a copy of the disk is mounted by a loop device (which makes the file system recover
as after a power cut) and compared with what the journal said was acknowledged at that moment. Also looked at: the
client records of the server, in state/, once a worker of NFSv4 holds a lock. Prints "N states, ..."; 77 where
nothing can be mounted.
"""
import ctypes
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import disklog
import journal


def mount(fs, image, where):
    options = "loop,noatime" + (",nouuid" if fs == "xfs" else "")
    return subprocess.run(["mount", "-t", fs, "-o", options, image, where], capture_output=True, text=True, check=False)


def can_mount():
    return os.geteuid() == 0 and os.path.exists("/dev/loop-control")


def hide_mounts():
    """Mounts of this process are seen by no other: one that copied its name space meanwhile would keep them mounted."""
    clone_newns = 0x20000
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(clone_newns) < 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


class Checker:
    def __init__(self, fs, work, lines, folders):
        self.fs, self.lines = fs, lines
        self.folders = dict(f.split("=", 1) for f in folders)
        self.control = {n: self.folders.pop(n) for n in list(self.folders) if n.startswith("async")}
        self.control_lost = 0
        self.work, self.where = work, os.path.join(work, "mnt")
        os.mkdir(self.where)
        self.acked = self.states = self.replayed = 0
        self.workers = {}

    def check(self, medium_path, pending, survivors, journal_lines):
        """Problems of one state."""
        # A file of its own for each: mount would take the loop device of a file that is still in use.
        self.states += 1
        image = os.path.join(self.work, f"state{self.states}.img")
        subprocess.run(["cp", "--sparse=always", medium_path, image], check=True)
        state = disklog.Medium(image)
        state.pending = list(pending)
        state.cut(survivors)
        state.close()
        got = mount(self.fs, image, self.where)
        os.unlink(image)
        if got.returncode:
            return [f"it cannot be mounted: {got.stderr.strip()}"]
        try:
            return self.compare(journal_lines)
        finally:
            subprocess.run(["umount", self.where], check=True)

    def compare(self, journal_lines):
        workers = journal.replay(self.lines[self.replayed:journal_lines], self.workers)
        self.replayed = max(self.replayed, journal_lines)
        problems = []
        for name, folder in self.folders.items():
            worker = workers.get(name, journal.Worker())
            self.acked += worker.acked
            where = os.path.join(self.where, folder)
            problems += [f"{name}: {p}" for p in journal.check(where, worker)]
        self.control_lost += any(not p.endswith("should not be there") for name, folder in self.control.items()
                                 for p in journal.check(os.path.join(self.where, folder), workers.get(name, journal.Worker())))
        # At the journal's end the workers let go of their locks; the server removes the record of a client that holds nothing.
        ended = journal_lines >= len(self.lines)
        if any(w.locked for w in workers.values()) and not ended and os.path.isdir(self.where + "/state"):
            problems += self.records()
        return problems

    def records(self):
        """Checks that every client with a lock is on record; otherwise it could not reclaim the lock."""
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(self.where + "/state", copy + "/state")
            db = sqlite3.connect(copy + "/state/nfs4-clients.db")
            try:
                whole = db.execute("PRAGMA integrity_check").fetchone()[0]
                count = db.execute("SELECT count(*) FROM client").fetchone()[0]
            except sqlite3.Error as e:
                return [f"client records: {e}"]
            finally:
                db.close()
        if whole != "ok":
            return [f"client records: {whole}"]
        return [] if count else ["client records: there are none"]


def moments(log, count, rng):
    """Numbers of records of the log, before which power is cut. None before the workload's first record."""
    first = total = 0
    for kind, _, _ in disklog.read(log):
        total += 1
        if not first and kind == disklog.ACKS:
            first = total
    return sorted(rng.sample(range(first, total), min(count, total - first)))


def run(fs, log, image, lines, count, seed, folders):
    rng = random.Random(seed)
    at = moments(log, count, rng)
    bad, lost, lines_then = 0, 0, 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as work:
        base = os.path.join(work, "disk.img")
        subprocess.run(["cp", "--sparse=always", image, base], check=True)
        medium, checker, done = disklog.Medium(base), Checker(fs, work, lines, folders), 0
        for number, (kind, offset, data) in enumerate(disklog.read(log)):
            while done < len(at) and at[done] == number:
                survivors = medium.survivors(rng)
                lost += len(medium.pending) - len(survivors)
                problems = checker.check(base, medium.pending, survivors, lines_then)
                bad += bool(problems)
                for p in problems[:5]:
                    print(f"cut before record {number}, journal line {lines_then}: {p}", flush=True)
                done += 1
            if kind == disklog.WRITE:
                medium.write(offset, data)
            elif kind == disklog.FUA:
                medium.write_through(offset, data)
            elif kind == disklog.FLUSH:
                medium.flush()
            elif kind == disklog.CUT:
                medium.cut(disklog.unpack_survivors(data))
            elif kind == disklog.ACKS:
                lines_then = offset
        print(f"{len(at)} states, {checker.acked} acknowledged operations compared, {lost} writes lost, "
              f"{bad} states with differences; without fsync: {checker.control_lost} states with differences")
    return bad == 0 and len(at) > 0 and (checker.control_lost > 0 or not checker.control)


def main():
    fs, log, image, path, count, seed, *folders = sys.argv[1:]
    if not can_mount():
        print("skip: no loop devices here")
        sys.exit(77)
    hide_mounts()
    with open(path, encoding="ascii") as f:
        lines = f.read().splitlines()
    sys.exit(not run(fs, log, image, lines, int(count), seed, folders))


main()
