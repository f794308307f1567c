#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Each operation, disturbed before each of its file system calls: another process changes the name, the call fails, or the
server is killed. moments_shim.c stops the server there.

The answer must be that of before the change or of after it; what is answered as made must be the caller's; and what belongs
to others must stay as it was.
"""
import errno
import mmap
import os
import socket
import struct
import threading

import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

SHIM = "tests/net/moments_shim.so"
OLD, NEW, ME, OTHER, HEIR = 1001, 1002, 1003, 1004, 1005  # owners: of n, of what replaces it, the caller, of m, to whom root gives
WHO = {OLD: "old", NEW: "new", ME: "mine", OTHER: "other", HEIR: "heir's", 0: "root's"}
MOST = 80  # calls of one operation
E3 = {0: "ok", 1: "PERM", 2: "NOENT", 5: "IO", 13: "ACCES", 17: "EXIST", 20: "NOTDIR", 21: "ISDIR", 22: "INVAL", 28: "NOSPC", 66: "NOTEMPTY",
      70: "STALE", 10006: "SERVERFAULT", 10008: "DELAY"}
E4 = {**E3, 10029: "SYMLINK"}
OWNER = 36
GET_OWNER = (n4.GETATTR, n4.bitmap(OWNER))
FAULTS = {"IO", "NOSPC", "SERVERFAULT", "DELAY"}


def decode_owner(x, res):
    n4._bitmap(x)
    res["owner"] = r.In(x.opaque()).opaque().decode()


class Moments:
    """The shim's side of the test."""

    def __init__(self, folder):
        self.path = folder + "/moments"
        with open(self.path, "wb") as f:
            f.write(bytes(mmap.PAGESIZE))
        with open(self.path, "r+b") as f:
            self.at = mmap.mmap(f.fileno(), mmap.PAGESIZE)
        self.ours, self.theirs = socket.socketpair()
        self.act = None
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while self.ours.recv(1):
            if self.act() != "dead":
                self.ours.send(b"\0")

    def env(self, program):
        return dict(os.environ, LD_PRELOAD=harness.preload(program, os.path.abspath(SHIM)), MOMENTS=self.path,
                    MOMENTS_FD=str(self.theirs.fileno()))

    def arm(self, k, act=None, error=0, goes_on=False):
        self.act = act
        self.at[4:64] = bytes(60)
        self.at[8:12] = struct.pack("=I", error)
        self.at[48:52] = struct.pack("=I", goes_on)
        self.at[0:4] = struct.pack("=I", k)

    def disarm(self):
        """The name of the call before which it happened, or None."""
        self.at[0:4] = bytes(4)
        return self.at[12:48].rstrip(b"\0").decode() or None


def owner_and_mode(fd):
    st = os.fstat(fd)
    return st.st_uid, oct(st.st_mode)


class Bench:
    """Works in the only export of the daemon, which is not started yet."""

    def __init__(self, t, d):
        self.t, self.runs, self.d = t, 0, d
        self.moments = Moments(self.d.top)
        self.d.env, self.d.pass_fds = self.moments.env(self.d.binary), (self.moments.theirs.fileno(),)
        (self.export, path), = self.d.exports.items()
        self.dir, self.aside = path + "/d/", path + "/e/"
        for p in (self.dir, self.aside):
            os.mkdir(p)
            os.chmod(p, 0o777)
        self.verifiers = 0
        self.fh, self.foreign = None, []

    def start(self):
        self.d.start()
        self.c = self.d.connect()
        root = self.d.root(self.c, self.export)
        self.dfh, self.efh = (self.c.nfs(r.LOOKUP, r.diropargs(root, n))["fh"] for n in "de")
        self.v4 = {minor: self.client(minor) for minor in (0, 1)}

    def client(self, minor):
        c = n4.Client(self.d.port, f"moments {minor}", minor)
        if c.register()["status"] or c.reclaim_complete():
            raise SystemExit(f"no client: {self.d.read_log()}")
        c.cred = r.auth_sys(ME, ME)
        return c

    def kill(self):
        self.d.process.kill()
        return "dead"

    def restart(self):
        self.d.process.wait()
        self.d.log.close()
        for c in (self.c, *self.v4.values()):
            c.close()
        self.start()

    # The directory d has n, t that may replace it, and m.

    def make(self, name, kind, uid):
        p = self.dir + name
        if kind == "file":
            with open(p, "w"):
                pass
        elif kind == "dir":
            os.mkdir(p)
        else:
            os.symlink("x", p)
        os.chown(p, uid, uid, follow_symlinks=False)
        if kind != "link":
            os.chmod(p, 0o777 if kind == "dir" else 0o666)

    def reset(self, kind, other=None, handle=False):
        for fd, _ in self.foreign:
            os.close(fd)
        for folder in (self.dir, self.aside):
            for e in list(os.scandir(folder)):
                (os.rmdir if e.is_dir(follow_symlinks=False) else os.unlink)(e.path)
        if kind:
            self.make("n", kind, OLD)
        if other:
            self.make("t", other, NEW)
        self.make("m", "file", OTHER)
        self.took = False
        self.foreign = [(fd := os.open(e.path, os.O_PATH | os.O_NOFOLLOW), owner_and_mode(fd)) for e in os.scandir(self.dir)]
        self.mfh = self.c.nfs(r.LOOKUP, r.diropargs(self.dfh, "m"))["fh"]
        self.fh = self.c.nfs(r.LOOKUP, r.diropargs(self.dfh, "n"))["fh"] if handle else None

    def touched(self):
        """What belonged to others and was changed."""
        return [(was, now) for fd, was in self.foreign if (now := owner_and_mode(fd)) != was]

    def change(self, act):
        d = self.dir
        there = os.path.lexists(d + "n")
        self.took = there  # what the operation has made, if n was not there before
        if act == "remove" and there:
            (os.rmdir if os.path.isdir(d + "n") and not os.path.islink(d + "n") else os.unlink)(d + "n")
        elif act in ("away", "swap") and there:
            os.rename(d + "n", d + "away")
        if act in ("replace", "swap"):
            try:
                os.rename(d + "t", d + "n")
            except OSError:  # of another type than what was made
                pass

    # Operations: the answer as a word or two.

    def nfs3(self, proc, args, cred=ME):
        return self.c.nfs(proc, args, r.auth_sys(cred, cred))

    def made3(self, proc, args, cred=ME):
        x = self.nfs3(proc, args, cred)
        if x["status"]:
            return E3.get(x["status"], x["status"])
        if not x["fh"]:
            return "ok, no handle"
        return "ok " + (WHO.get(x["attr"]["uid"], "?") if x["attr"] else "no attributes")

    def status3(self, proc, args, cred=ME):
        return E3.get(s := self.nfs3(proc, args, cred)["status"], s)

    def lookup3(self):
        x = self.nfs3(r.LOOKUP, r.diropargs(self.dfh, "n"))
        return E3.get(x["status"], x["status"]) + (" " + WHO.get(x["attr"]["uid"], "?") if not x["status"] and x["attr"] else "")

    def listed3(self):
        x = self.nfs3(r.READDIRPLUS, r.readdirplus_args(self.dfh))
        if x["status"]:
            return E3.get(x["status"], x["status"])
        return "there" if b"n" in [e["name"] for e in x["entries"]] else "not there"

    def status4(self, *ops, cred=ME):
        """The first status that is no success, or whose the object is that GETATTR saw."""
        res = self.compound(ops, cred)[-1]
        if res["status"]:
            return E4.get(res["status"], res["status"])
        return "ok" + (" " + WHO.get(int(res["owner"]), "?") if "owner" in res else "")

    def compound(self, ops, cred):
        self.v4[1].cred = r.auth_sys(cred, cred)
        try:
            return self.v4[1].compound(*ops)
        finally:
            self.v4[1].cred = r.auth_sys(ME, ME)

    def create4(self, what, attrs=b"", cred=ME):
        make = n4.CREATE, what + r.name("n") + (attrs or u32(0) + opaque(b""))
        res = self.compound((n4.putfh(self.dfh), make, GET_OWNER), cred)[1:]
        if res[0]["status"]:
            return E4.get(res[0]["status"], res[0]["status"])
        # An object that is removed behind the CREATE has no attributes: that is the next operation's answer.
        return "ok " + (WHO.get(int(res[1]["owner"]), "?") if "owner" in res[1] else "gone")

    def open4(self, how=None, access=n4.SHARE_READ, minor=1, fh=None):
        c = self.v4[minor]
        access |= n4.WANT_NO_DELEG if minor else 0
        claim = u32(n4.CLAIM_FH) if fh else u32(n4.CLAIM_NULL) + r.name("n")
        results = c.compound(n4.putfh(fh or self.dfh), (n4.OPEN, c._open_owner(access, 0) + (how or u32(0)) + claim), (n4.GETFH, b""), GET_OWNER)
        res = next((x for x in results if x["op"] == n4.OPEN), results[-1])
        if res["status"]:
            return E4.get(res["status"], res["status"])
        file = results[2]["fh"]
        if res["rflags"] & 2:
            res["stateid"] = c.last(n4.putfh(file), (n4.OPEN_CONFIRM, res["stateid"] + c._next()))["stateid"]
        c.compound(n4.putfh(file), (n4.CLOSE, c._next() + res["stateid"]))
        owner = results[3] if len(results) > 3 else {}
        return "ok " + (WHO.get(int(owner["owner"]), "?") if "owner" in owner else "gone")

    def verifier(self):
        self.verifiers += 1
        return b"verf" + u32(self.verifiers)

    def by_name(self):
        d, e, dirop, mode = self.dfh, self.efh, r.diropargs, r.sattr(mode=0o666)
        given = r.sattr(mode=0o700, uid=HEIR, gid=HEIR)
        attrs = n4.bitmap(33) + opaque(u32(0o666))
        gift = n4.bitmap(33, OWNER) + opaque(u32(0o700) + opaque(str(HEIR).encode()))
        return {
            "v3 LOOKUP": self.lookup3,
            "v3 READDIRPLUS": self.listed3,
            "v3 CREATE UNCHECKED": lambda: self.made3(r.CREATE, r.create_args(d, "n", 0, mode)),
            "v3 CREATE UNCHECKED, size 0": lambda: self.made3(r.CREATE, r.create_args(d, "n", 0, r.sattr(mode=0o666, size=0))),
            "v3 CREATE GUARDED": lambda: self.made3(r.CREATE, r.create_args(d, "n", 1, mode)),
            "v3 CREATE GUARDED, root's gift": lambda: self.made3(r.CREATE, r.create_args(d, "n", 1, given), 0),
            "v3 CREATE EXCLUSIVE": lambda: self.made3(r.CREATE, r.create_args(d, "n", 2, verf=self.verifier())),
            "v3 MKDIR": lambda: self.made3(r.MKDIR, r.mkdir_args(d, "n")),
            "v3 MKDIR, root's gift": lambda: self.made3(r.MKDIR, r.mkdir_args(d, "n", given), 0),
            "v3 SYMLINK": lambda: self.made3(r.SYMLINK, r.symlink_args(d, "n", "x")),
            "v3 MKNOD": lambda: self.made3(r.MKNOD, r.mknod_args(d, "n", r.FIFO)),
            "v3 REMOVE": lambda: self.status3(r.REMOVE, dirop(d, "n"), 0),
            "v3 RMDIR": lambda: self.status3(r.RMDIR, dirop(d, "n"), 0),
            "v3 RENAME n to e/q": lambda: self.status3(r.RENAME, r.rename_args(d, "n", e, "q"), 0),
            "v3 RENAME m over n": lambda: self.status3(r.RENAME, r.rename_args(d, "m", d, "n"), 0),
            "v3 LINK m to n": lambda: self.status3(r.LINK, r.link_args(self.mfh, d, "n"), 0),
            "v4.1 LOOKUP": lambda: self.status4(n4.putfh(d), n4.lookup("n"), GET_OWNER),
            "v4.1 OPEN": self.open4,
            "v4.0 OPEN": lambda: self.open4(minor=0),
            "v4.1 OPEN UNCHECKED": lambda: self.open4(u32(1) + u32(0) + attrs, n4.SHARE_WRITE),
            "v4.1 OPEN GUARDED": lambda: self.open4(u32(1) + u32(1) + attrs, n4.SHARE_WRITE),
            "v4.1 OPEN EXCLUSIVE4_1": lambda: self.open4(u32(1) + u32(3) + self.verifier() + attrs, n4.SHARE_WRITE),
            "v4.0 OPEN EXCLUSIVE4": lambda: self.open4(u32(1) + u32(2) + self.verifier(), n4.SHARE_WRITE, 0),
            "v4.1 CREATE dir, root's gift": lambda: self.create4(u32(2), gift, 0),
            "v4.1 CREATE dir": lambda: self.create4(u32(2)),
            "v4.1 CREATE link": lambda: self.create4(u32(5) + r.name("x")),
            "v4.1 CREATE fifo": lambda: self.create4(u32(7)),
            "v4.1 REMOVE": lambda: self.status4(n4.putfh(d), (n4.REMOVE, r.name("n"))),
            "v4.1 LINK m to n": lambda: self.status4(n4.putfh(self.mfh), (n4.SAVEFH, b""), n4.putfh(d), (n4.LINK, r.name("n")), cred=0),
            "v4.1 RENAME m over n": lambda: self.status4(n4.putfh(d), (n4.SAVEFH, b""), n4.putfh(d), (n4.RENAME, r.name("m") + r.name("n"))),
        }

    def by_handle(self):
        f = lambda proc, args, cred=0: lambda: self.status3(proc, args(), cred)
        return {
            "v3 GETATTR": f(r.GETATTR, lambda: r.getattr_args(self.fh)),
            "v3 READ": f(r.READ, lambda: r.read_args(self.fh, 0, 10)),
            "v3 WRITE": f(r.WRITE, lambda: r.write_args(self.fh, 0, b"abc")),
            "v3 WRITE, unstable": f(r.WRITE, lambda: r.write_args(self.fh, 0, b"abc", 0)),
            "v3 SETATTR": f(r.SETATTR, lambda: r.setattr_args(self.fh, r.sattr(size=3, mtime="server"))),
            "v3 ACCESS": f(r.ACCESS, lambda: r.access_args(self.fh, 63)),
            "v3 COMMIT": f(r.COMMIT, lambda: r.commit_args(self.fh)),
            "v3 LINK n to e/q": f(r.LINK, lambda: r.link_args(self.fh, self.efh, "q")),
            "v4.1 READ": lambda: self.status4(n4.putfh(self.fh), n4.read(n4.ANONYMOUS, 0, 10)),
            "v4.1 WRITE": lambda: self.status4(n4.putfh(self.fh), n4.write(n4.ANONYMOUS, 0, b"abc")),
            "v4.1 SETATTR": lambda: self.status4(n4.putfh(self.fh), (n4.SETATTR, n4.ANONYMOUS + n4.bitmap(n4.SIZE) + opaque(u64(3))), cred=0),
            "v4.1 OPEN by handle": lambda: self.open4(fh=self.fh),
        }


# n before, the change, and what t is.
CHANGES = (
    ("file", "replace", "file"), ("file", "remove", None), ("file", "away", None), ("file", "swap", "dir"), ("dir", "remove", None),
    ("dir", "replace", "dir"), ("dir", "swap", "file"), ("link", "replace", "link"), (None, "replace", "file"), (None, "replace", "dir"),
    (None, "remove", None), (None, "away", None), (None, "swap", "dir"), (None, "swap", "link"), (None, "swap", "file"),
)


def moments_of(b, op, prepare, act=None, error=0):
    """Disturbs op before each of its calls: (number and name of the call, answer, what of others was touched)."""
    for k in range(1, MOST):
        prepare()
        b.runs += 1
        b.moments.arm(k, act, error)
        try:
            answer = op()
        finally:
            call = b.moments.disarm()
        if not call:
            return
        yield f"{k}:{call}", answer, b.touched()


def report(t, what, wrong):
    for answer in sorted({a for _, a in wrong}):
        calls = [c for c, a in wrong if a == answer]
        t.check(what, False, f"{answer}, before {', '.join(calls[:6])}{' ...' if len(calls) > 6 else ''}")
    if not wrong:
        t.passed += 1


def allowed_answers(b, op, prepare, act):
    """Those of before the change and after it."""
    prepare()
    answers = {op()}
    prepare()
    act()
    answers.add(op())
    if {"ok mine", "ok heir's"} & answers:
        answers |= {"ok, no handle", "ok no attributes", "ok gone"}  # it was made, and is not there any more
    return answers


def test_changes(b, ops, handle, known=""):
    """handle: the server has n in its cache."""
    for name, op in ops.items():
        for kind, what, other in CHANGES:
            if handle and kind != "file":
                continue
            prepare = lambda: b.reset(kind, other, handle)
            act = lambda: b.change(what)
            allowed = allowed_answers(b, op, prepare, act)
            if what == "swap" and kind:  # in between there is nothing of that name
                allowed |= {"NOENT", "not there"}
            wrong = []
            for call, answer, touched in moments_of(b, op, prepare, act):
                if answer not in allowed:
                    wrong.append((call, f"{answer} (not {' or '.join(sorted(allowed))})"))
                if touched:
                    wrong.append((call, f"{answer}, and another's object was changed: {touched}"))
                if not kind and what in ("remove", "away") and b.took and os.path.lexists(b.dir + "n"):
                    wrong.append((call, f"{answer}, and one call made two objects"))
            report(b.t, f"{name}, n is {kind or 'absent'}{known}, {what} {other or ''}", wrong)


def test_replaced(b):
    """Another client puts a file in the place of one that an OPEN has found: the name always leads to one."""
    other = b.d.connect()
    how = u32(0) + n4.bitmap(33) + opaque(u32(0o666))
    for minor in (0, 1):
        for what, args in (("", (None, n4.SHARE_READ)), (" UNCHECKED", (u32(1) + how, n4.SHARE_WRITE))):
            act = lambda: other.nfs(r.RENAME, r.rename_args(b.dfh, "t", b.dfh, "n"), r.auth_sys(0, 0))
            wrong = [(call, answer) for call, answer, _ in moments_of(b, lambda: b.open4(*args, minor), lambda: b.reset("file", "file"), act)
                     if answer not in ("ok old", "ok new", "ok gone")]
            report(b.t, f"v4.{minor} OPEN{what}, another client replaces n", wrong)
    other.close()


def test_errors(b, ops, handle):
    """A call that fails: the operation fails in the same way, or does what it should."""
    for name, op in ops.items():
        for kind in ("file",) if handle else (None, "file", "dir"):
            prepare = lambda: b.reset(kind, None, handle)
            prepare()
            allowed = {op(), "ok no attributes", "ok, no handle", "ok gone"} | FAULTS
            for error in (errno.EIO, errno.ENOSPC, errno.EINTR):
                wrong = [(call, f"{answer} {touched or ''}") for call, answer, touched in moments_of(b, op, prepare, error=error)
                         if answer not in allowed or touched]
                report(b.t, f"{name}, n is {kind or 'absent'}, {errno.errorcode[error]}", wrong)


def exclusive(b):
    mode = n4.bitmap(33) + opaque(u32(0o666))
    verf = b"verifier"
    return {"v3 CREATE EXCLUSIVE, same verifier": lambda: b.made3(r.CREATE, r.create_args(b.dfh, "n", 2, verf=verf)),
            "v4.1 OPEN EXCLUSIVE4_1, same verifier": lambda: b.open4(u32(1) + u32(3) + verf + mode, n4.SHARE_WRITE),
            "v4.0 OPEN EXCLUSIVE4, same verifier": lambda: b.open4(u32(1) + u32(2) + verf, n4.SHARE_WRITE, 0)}


def state_for(name):
    """What n is where the operation does something."""
    if "RMDIR" in name:
        return "dir"
    return None if any(w in name for w in ("CREATE", "MK", "SYMLINK", "LINK m", "UNCHECKED", "GUARDED", "EXCLUSIVE")) else "file"


def kill_at(b, op, k):
    """Kills the server before the k-th call of op: the call, or None if there is none; the server runs again."""
    b.runs += 1
    b.moments.arm(k, b.kill)
    try:
        op()
    except (OSError, r.Closed):
        pass
    call = b.moments.disarm()
    if call:
        b.restart()
    return call


def test_kills(b, ops):
    """The server is killed, and the same call comes again: it is answered as a first or a second one."""
    for name, op in ops.items():
        prepare = lambda: b.reset(state_for(name))
        prepare()
        allowed, wrong = {op(), op()}, []
        for k in range(1, MOST):
            prepare()
            if not (call := kill_at(b, op, k)):
                break
            left = set(os.listdir(b.dir) + os.listdir(b.aside)) - {"n", "m", "q"}
            answer = op()
            if answer not in allowed or left or b.touched():
                wrong.append((f"{k}:{call}", f"{answer} {left or ''} {b.touched() or ''}"))
        b.t.check(f"{name} was killed at some moment", k > 1)
        report(b.t, f"{name} after a kill", wrong)


def main():
    n4.RESULTS[n4.GETATTR] = decode_owner
    if not harness.handles_work("/dev/shm"):
        os.environ["TMPDIR"] = "/dev/shm"  # flushes take no time there
    t = Count()
    b = Bench(t, Daemon({"x": "rw,no_root_squash,insecure"}))
    try:
        b.start()
        for ops, handle in ((b.by_name(), False), (b.by_handle(), True)):
            test_changes(b, ops, handle)
            test_errors(b, ops, handle)
        test_changes(b, b.by_name(), True, " and known")
        test_replaced(b)
        changing = {name: op for name, op in b.by_name().items() if name.split()[-1] not in ("LOOKUP", "READDIRPLUS", "OPEN")}
        test_kills(b, {**changing, **exclusive(b)})
        harness.finish(t, b.d)
    finally:
        b.d.__exit__()
    print(f"{b.runs} runs")
    harness.result(t)


if __name__ == "__main__":
    main()
