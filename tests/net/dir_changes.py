#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""What clients are told of a directory before and after their own changes (change_info4 of NFSv4, wcc_data of NFSv3): atomic
if nobody else changed it in between, and then each change begins where the one before ended."""
import mmap
import os
import random
import signal
import struct
import time

import mounts
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from rpcclient import opaque, u32

OPTIONS = "rw,insecure,no_root_squash"
KINDS = ("xfs", "btrfs")  # beside ext4
CREATE4, GETATTR4, LINK4, REMOVE4, RENAME4, SAVEFH, SETATTR4 = 6, 9, 11, 28, 29, 32, 34
NF4DIR = 2
# Whether ctimes tell all states apart that were looked at; else they settle within this time.
FINE = tuple(int(x) for x in os.uname().release.split(".")[:2]) >= (6, 13)
SETTLE = 0.001 if FINE else 0.03
GET_CHANGE = (GETATTR4, u32(1) + u32(1 << 3))
NO_ATTRS = u32(0) + opaque(b"")


def cinfo(x):
    return {"atomic": x.flag(), "before": x.u64(), "after": x.u64()}


def decode_results():
    def changed(x, res):
        res.update(changes=[cinfo(x)])

    def created(x, res):
        res.update(changes=[cinfo(x)])
        n4._bitmap(x)

    n4.RESULTS[REMOVE4] = n4.RESULTS[LINK4] = changed
    n4.RESULTS[CREATE4] = created
    n4.RESULTS[RENAME4] = lambda x, res: res.update(changes=[cinfo(x), cinfo(x)])
    n4.RESULTS[GETATTR4] = lambda x, res: res.update(mask=n4._bitmap(x), attrs=x.opaque())
    n4.RESULTS[SETATTR4] = lambda x, res: n4._bitmap(x)


class V4:
    """Each call returns the states of the directory, or of the two directories, before and after."""

    def __init__(self, d, owner, export):
        self.c = n4.Client(d.port, owner)
        if self.c.register()["status"] or self.c.reclaim_complete():
            raise SystemExit(f"no session for {owner}")
        self.root = self.c.path(d.exports[export])

    def close(self):
        self.c.close()

    def last(self, *ops):
        res = self.c.last(*ops)
        if res["status"]:
            raise SystemExit(f"operation {res['op']}: {res['status']}")
        return res

    def handle(self, *names):
        return self.last(n4.putfh(self.root), *(n4.lookup(n) for n in names), (n4.GETFH, b""))["fh"]

    def look(self, fh):
        return int.from_bytes(self.last(n4.putfh(fh), GET_CHANGE)["attrs"], "big")

    def create(self, fh, name):
        res, file = self.c.open(fh, name, create=True)
        self.c.close_file(file, res["stateid"])
        return [cinfo(r.In(res["cinfo"]))]

    def mkdir(self, fh, name):
        return self.last(n4.putfh(fh), (CREATE4, u32(NF4DIR) + r.name(name) + NO_ATTRS))["changes"]

    def remove(self, fh, name):
        return self.last(n4.putfh(fh), (REMOVE4, r.name(name)))["changes"]

    rmdir = remove

    def rename(self, fh, name, to, to_name):
        return self.last(n4.putfh(fh), (SAVEFH, b""), n4.putfh(to), (RENAME4, r.name(name) + r.name(to_name)))["changes"]

    def link(self, file, fh, name):
        return self.last(n4.putfh(file), (SAVEFH, b""), n4.putfh(fh), (LINK4, r.name(name)))["changes"]

    def chmod(self, fh, mode=0o700):
        self.last(n4.putfh(fh), (SETATTR4, n4.ANONYMOUS + u32(2) + u32(0) + u32(1 << 1) + opaque(u32(mode))))


class V3:
    """The same by NFSv3, where the state is the ctime."""

    def __init__(self, d, export):
        self.c = d.connect()
        self.root = d.root(self.c, export)

    def close(self):
        self.c.close()

    def nfs(self, *args):
        res = self.c.nfs(*args)
        if res["status"]:
            raise SystemExit(f"procedure {args[0]}: {res}")
        return res

    def handle(self, *names):
        fh = self.root
        for name in names:
            fh = self.nfs(r.LOOKUP, r.diropargs(fh, name))["fh"]
        return fh

    def look(self, fh):
        return self.nfs(r.GETATTR, opaque(fh))["attr"]["ctime"]

    @staticmethod
    def changes(*wccs):
        return [{"atomic": w["before"] is not None, "before": w["before"][2] if w["before"] else None,
                 "after": w["after"]["ctime"]} for w in wccs]

    def create(self, fh, name):
        return self.changes(self.nfs(r.CREATE, r.create_args(fh, name))["wcc"])

    def mkdir(self, fh, name):
        return self.changes(self.nfs(r.MKDIR, r.mkdir_args(fh, name))["wcc"])

    def remove(self, fh, name):
        return self.changes(self.nfs(r.REMOVE, r.diropargs(fh, name))["wcc"])

    def rmdir(self, fh, name):
        return self.changes(self.nfs(r.RMDIR, r.diropargs(fh, name))["wcc"])

    def rename(self, fh, name, to, to_name):
        res = self.nfs(r.RENAME, r.rename_args(fh, name, to, to_name))
        return self.changes(res["from"], res["to"])

    def link(self, file, fh, name):
        return self.changes(self.nfs(r.LINK, r.link_args(file, fh, name))["wcc"])

    def chmod(self, fh, mode=0o700):
        self.nfs(r.SETATTR, r.setattr_args(fh, r.sattr(mode=mode)))


def work(c, a, b, tag):
    """Changes of all kinds in the directories a and b: (directory, its change) one after the other."""
    n = [b"%s-%d" % (tag, i) for i in range(4)]
    yield a, c.create(a, n[0])[0]
    yield a, c.mkdir(a, n[1])[0]
    yield from zip((a, a), c.rename(a, n[0], a, n[2])[:1])
    yield from zip((a, b), c.rename(a, n[2], b, n[0]))
    yield b, c.create(b, n[3])[0]
    yield b, c.remove(b, n[3])[0]
    yield a, c.rmdir(a, n[1])[0]
    yield b, c.remove(b, n[0])[0]


def chain(t, what, c, a, b, seen, rounds):
    """All of it atomic, and each change begins at the state that the client has from the one before."""
    broken = []
    for i in range(rounds):
        for fh, change in work(c, a, b, b"chain"):
            if not change["atomic"] or change["before"] != seen[fh]:
                broken.append((i, change, seen[fh]))
            seen[fh] = change["after"]
    t.equal(what, broken[:3], [])


def test_promised(t, d):
    """Nobody but clients changes the export: all of it is known, and stays known when ctimes are no longer fresh."""
    for i, c in enumerate((V4(d, "promised", "own"), V3(d, "own"))):
        name = type(c).__name__
        for sub in (b"a%d" % i, b"b%d" % i):
            c.mkdir(c.root, sub)
        a, b = c.handle(b"a%d" % i), c.handle(b"b%d" % i)
        # Where ctimes are coarse, NFSv3 cannot know whether somebody else has seen an earlier state with this one.
        list(work(c, a, b, b"first"))
        seen = {fh: c.look(fh) for fh in (a, b)}
        chain(t, f"{name}: changes in a row", c, a, b, seen, 30)
        time.sleep(0.1)
        for fh in (a, b):
            t.equal(f"{name}: the state after the last change is still there", c.look(fh), seen[fh])
        chain(t, f"{name}: changes in a row, later", c, a, b, seen, 5)
        c.close()


def test_others(t, d):
    """Changes by another client are seen, and end the chain."""
    c, other = V4(d, "one", "own"), V4(d, "other", "own")
    c.mkdir(c.root, b"shared")
    a = c.handle(b"shared")
    for what, change in (("create", lambda: other.create(a, b"x")), ("chmod", lambda: other.chmod(a)),
                         ("remove", lambda: other.remove(a, b"x"))):
        seen = c.create(a, b"mine")[0]["after"]
        change()
        mine = c.remove(a, b"mine")[0]
        t.check(f"another client's {what} is not taken for the client's own", not mine["atomic"] or mine["before"] != seen, mine)
        t.check(f"the state after another client's {what} is new", c.look(a) != seen)
    c.close(), other.close()


def test_events(t, d, export):
    """Nothing is promised, but the kernel's events tell that there is nobody else."""
    for i, c in enumerate((V4(d, "events" + export, export), V3(d, export))):
        name = f"{export}, {type(c).__name__}"
        for sub in (b"a%d" % i, b"b%d" % i):
            c.mkdir(c.root, sub)
        a, b = c.handle(b"a%d" % i), c.handle(b"b%d" % i)
        list(work(c, a, b, b"first"))
        seen = {fh: c.look(fh) for fh in (a, b)}
        list(work(c, a, b, b"second"))
        seen = {fh: c.remove(fh, n)[0]["after"] for fh, n in ((a, b"x"), (b, b"x")) if c.create(fh, n)}
        chain(t, f"{name}: changes in a row, known by events", c, a, b, seen, 30)
        c.close()


def test_unknown(t, d):
    """A file system that others may change without an event. The promise is made, and taken back, by a reload."""
    def lines(options):
        return [f"{d.exports['e']} 127.0.0.0/8({OPTIONS},async)", f"{d.exports['ovl']} 127.0.0.0/8({OPTIONS},fsid=77{options})"]

    c = V4(d, "unknown", "ovl")
    c.create(c.root, b"r0")
    t.check("not atomic", not c.create(c.root, b"r1")[0]["atomic"])
    d.write_exports(lines(",nfs_only"))
    d.reload()
    t.check("atomic by a promise", c.create(c.root, b"r2")[0]["atomic"])
    d.write_exports(lines(""))
    d.reload()
    t.check("not after it is taken back", not c.create(c.root, b"r3")[0]["atomic"])
    c.close()


class Local:
    """A process that changes the directory in bursts at random moments, until it is stopped for a while."""

    def __init__(self, top, seed):
        self.count = mmap.mmap(-1, 8)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.run(top, random.Random(seed))
            finally:
                os._exit(1)

    def run(self, top, rnd):
        os.chdir(top)
        n = 0
        while True:
            for _ in range(rnd.choice((1, 1, 2, 3, 60))):
                end = time.perf_counter() + rnd.random() ** 3 * 1e-3
                n += 1
                self.act(rnd, n)
                self.count[:] = struct.pack("Q", n)
                while time.perf_counter() < end:
                    pass
            time.sleep(rnd.random() * 15e-3)

    @staticmethod
    def act(rnd, n):
        name = f"local-{n % 50}"
        try:
            kind = rnd.choice(("create", "mkdir", "link", "symlink", "remove", "remove", "rename", "chmod"))
            if kind == "create":
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            elif kind == "mkdir":
                os.mkdir(name)
            elif kind == "link":
                os.link("anchor", name)
            elif kind == "symlink":
                os.symlink("anchor", name)
            elif kind == "rename":
                os.rename(name, f"local-{rnd.randrange(50)}")
            elif kind == "chmod":
                os.chmod(".", 0o700 | rnd.randrange(8))
            elif os.path.isdir(name) and not os.path.islink(name):
                os.rmdir(name)
            else:
                os.unlink(name)
        except OSError:
            pass

    def changes(self):
        return struct.unpack("Q", self.count[:])[0]

    def wait_for_change(self):
        before = self.changes()
        while self.changes() == before:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                raise SystemExit("the other has ended")
            time.sleep(1e-4)

    def pause(self):
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class OtherClient(Local):
    """Another NFS client at work in the directory."""

    def __init__(self, make, fh, seed):
        self.make, self.fh = make, fh
        self.asked = mmap.mmap(-1, 2)
        super().__init__("/", seed)

    def run(self, top, rnd):
        self.c, self.there = self.make(), set()
        while True:
            for _ in range(rnd.choice((1, 1, 2, 3, 20))):
                while self.asked[0]:
                    self.asked[1] = 1
                    time.sleep(1e-4)
                self.asked[1] = 0
                self.act(rnd, rnd.randrange(20))
                self.count[:] = struct.pack("Q", self.changes() + 1)
            time.sleep(rnd.random() * 50e-3)

    def act(self, rnd, n):
        name = b"other-%d" % n
        if name not in self.there:
            self.c.create(self.fh, name)
        elif rnd.random() < 0.2:
            self.c.chmod(self.fh, 0o700 | rnd.randrange(8))
            return
        elif rnd.random() < 0.5:
            self.c.rename(self.fh, name, self.fh, b"moved-%d" % n)
            self.c.remove(self.fh, b"moved-%d" % n)
        else:
            self.c.remove(self.fh, name)
        self.there ^= {name}

    def pause(self):
        """Between two calls."""
        self.asked[0] = 1
        while not self.asked[1]:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                raise SystemExit("the other client has ended")
            time.sleep(1e-4)

    def go_on(self):
        self.asked[:] = b"\0\0"


class Cache:
    """What a client that trusts the server keeps of a directory: its state, its names and its mode."""

    def __init__(self, c, fh, top):
        self.c, self.fh, self.top = c, fh, top
        self.kept = self.dropped = self.wrong = 0
        self.fill()

    def truth(self):
        return set(os.listdir(self.top)), os.stat(self.top).st_mode

    def fill(self):
        """While nobody else is at work."""
        self.state, (self.names, self.mode), self.good = self.c.look(self.fh), self.truth(), True

    def changed(self, change, gone=None, come=None):
        self.good = self.good and change["atomic"] and change["before"] == self.state
        self.state = change["after"]
        self.kept, self.dropped = self.kept + self.good, self.dropped + (not self.good)
        self.names -= {gone}
        self.names |= {come} - {None}

    def check(self):
        """While nobody else is at work: what is thought to be known must be so."""
        if self.good and self.c.look(self.fh) == self.state and (self.names, self.mode) != self.truth():
            self.wrong += 1
            print(f"kept: {sorted(self.names)} {self.mode:o}; in truth: {self.truth()}")


def race(c, cache, rnd, n):
    """Some changes by the client, which the local process may run into."""
    fh, name = cache.fh, f"mine-{n}"
    for i in range(rnd.randrange(1, 4)):
        b = f"{name}-{i}".encode()
        cache.changed(c.create(fh, b)[0], come=b.decode())
        if rnd.random() < 0.5:
            cache.changed(c.rename(fh, b, fh, b + b"r")[0], gone=b.decode(), come=b.decode() + "r")
            b += b"r"
        if rnd.random() < 0.7:
            cache.changed(c.remove(fh, b)[0], gone=b.decode())
    if rnd.random() < 0.3:
        d = f"dir-{n}".encode()
        cache.changed(c.mkdir(fh, d)[0], come=d.decode())
        cache.changed(c.rmdir(fh, d)[0], gone=d.decode())


def test_race(t, d, c, export, other=None, changes=5000):
    """Changes by others between, before and within the client's: what the client keeps is always right. The others are a
    local process, or another client, which other makes."""
    what, seed = type(c).__name__, int(os.environ.get("RACE_SEED", random.randrange(1 << 30)))
    what += " beside another client" if other else ""
    sub = what.replace(" ", "-")
    rnd, top = random.Random(seed), os.path.join(d.exports[export], sub)
    os.mkdir(top, 0o777)
    open(os.path.join(top, "anchor"), "w").close()
    fh, n = c.handle(sub.encode()), 0
    cache, local = Cache(c, fh, top), OtherClient(other, fh, seed) if other else Local(top, seed)
    try:
        while local.changes() < changes:
            # Every eighth round nobody else is there, and every eighth somebody surely comes: by chance alone either may be rare.
            alone = n % 8 == 0
            if alone:
                local.pause()
                cache.fill()
            elif n % 8 == 4:
                local.wait_for_change()
            else:
                time.sleep(rnd.random() * 2e-3)
            race(c, cache, rnd, n)
            n += 1
            if not alone:
                local.pause()
            time.sleep(SETTLE)
            cache.check()
            cache.fill()
            local.go_on()
            if rnd.random() < 0.5:
                time.sleep(rnd.random() * 5e-3)
                local.pause()
                cache.fill()
                local.go_on()
    finally:
        local.end()
    print(f"{what}: seed {seed}, {local.changes()} changes by the other, {n} rounds, {cache.kept} of {cache.kept + cache.dropped} "
          "changes kept")
    t.equal(f"{what}: a client keeps what is not so (RACE_SEED={seed})", cache.wrong, 0)
    t.check(f"{what}: some changes were alone", cache.kept > 5, cache.kept)
    t.check(f"{what}: some were not", cache.dropped > 5, cache.dropped)
    c.close()


def mount_all(d):
    """File systems of their own, and an overlay: why not, where they cannot be."""
    def mount(kind, at):
        image = f"{d.top}/{kind}.img"
        return mounts.make_image(image, kind) or mounts.mount_image(image, d.exports[at])

    why = mount("ext4", "e")
    others = {kind: reason for kind in KINDS if (reason := mount(kind, kind))}
    for sub in ("lower", "upper", "work"):
        os.mkdir(os.path.join(d.top, sub))
    res = mounts.run("mount", "-t", "overlay", "-o", f"lowerdir={d.top}/lower,upperdir={d.top}/upper,workdir={d.top}/work,"
                     "index=on,nfs_export=on", "none", d.exports["ovl"])
    return why, others, res.stderr.strip() if res.returncode else None


def main():
    mounts.own_namespace()
    decode_results()
    t = Count()
    with Daemon({"own": OPTIONS + ",nfs_only"}) as d:
        test_promised(t, d)
        test_others(t, d)
        test_race(t, d, V4(d, "race", "own"), "own", lambda: V4(d, "beside", "own"), 1000)
        if FINE:  # else a ctime may stand for several states, and NFSv3 has nothing else
            test_race(t, d, V3(d, "own"), "own", lambda: V3(d, "own"), 1000)
        t.equal("it stops", d.stop()[0], 0)
    d = Daemon({"e": OPTIONS + ",async", "ovl": OPTIONS + ",fsid=77", **{kind: OPTIONS for kind in KINDS}})
    no_ext4, without, no_overlay = mount_all(d)
    with d:
        if no_ext4:
            t.skip("events", no_ext4)
        else:
            test_events(t, d, "e")
            test_race(t, d, V4(d, "race", "e"), "e")
            if FINE:
                test_race(t, d, V3(d, "e"), "e")
        for kind in KINDS:
            if kind in without:
                t.skip(f"events of {kind}", without[kind])
            else:
                test_events(t, d, kind)
        if no_overlay:
            t.skip("a file system that others may change", no_overlay)
        else:
            test_unknown(t, d)
        t.equal("it stops", d.stop()[0], 0)
        for name in d.exports:
            mounts.umount(d.exports[name])
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    return 1 if t.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
