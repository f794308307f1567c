#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Delegations of directories over TCP: given, kept over the holder's own changes, recalled by others' and by local processes, returned,
never returned, lost with a restart; clients that use what is not theirs."""
import os
import signal
import time

import harness
import nfs4client as n4
import rpcclient as r
from delegations import Called, Other, new_client
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

LEASE = 5
SETTINGS = {"nfs4.lease_time": LEASE, "nfs4.grace_time": LEASE}
PROMISED = "rw,insecure,no_root_squash,nfs_only"  # no local process changes it
WATCHED = "rw,insecure,no_root_squash"
DIR_UNAVAIL, NOTDIR, ISDIR, SYMLINK, BADXDR, OLD_STATEID = 10084, 20, 21, 10029, 10036, 10024
MODE = u32(2) + u32(0) + u32(2) + opaque(u32(0o700))  # fattr4


def make(d, name, export="one"):
    """A directory with a file and a directory; beside it one to move things from and to."""
    path = os.path.join(d.exports[export], name)
    os.makedirs(os.path.join(path, "sub"))
    os.makedirs(path + ".beside")
    for p in (path + "/file", path + ".beside/file"):
        with open(p, "wb"):
            pass
    return path


def delegated(t, d, c, name, export="one", empty=False):
    """A fresh directory that the client has a delegation of: (path, handle, stateid). A directory may share the memory of recalls
    with others."""
    end = time.monotonic() + 4 * LEASE
    path = make(d, name, export)
    if empty:
        os.unlink(path + "/file")
        os.rmdir(path + "/sub")
    fh = c.path(path)
    res = c.dir_delegation(fh)
    while res.get("gdd") != 0 and time.monotonic() < end:
        time.sleep(0.5)
        res = c.dir_delegation(fh)
    if not t.equal(f"{name} is delegated", (res["status"], res.get("gdd")), (n4.OK, 0)):
        raise SystemExit(f"{res}\n{d.read_log()}")
    return path, fh, res["deleg"]


def mkdir4(c, fh, name):
    return c.last(n4.putfh(fh), (n4.CREATE, u32(2) + r.name(name) + MODE))


def rename4(c, fh, old, to, new):
    return c.last(n4.putfh(fh), (n4.SAVEFH, b""), n4.putfh(to), (n4.RENAME, r.name(old) + r.name(new)))


def link4(c, file, fh, name):
    return c.last(n4.putfh(file), (n4.SAVEFH, b""), n4.putfh(fh), (n4.LINK, r.name(name)))


def remove4(c, fh, name):
    return c.last(n4.putfh(fh), (n4.REMOVE, r.name(name)))


def chmod4(c, fh):
    return c.last(n4.putfh(fh), (n4.SETATTR, n4.ANONYMOUS + MODE))


def test_given(t, d):
    for minor in (1, 2):
        c, second = new_client(d, f"holder{minor}", minor), new_client(d, f"second{minor}", minor)
        path, fh, deleg = delegated(t, d, c, f"given{minor}")
        file = c.path(path + "/file")
        unavailable = (n4.OK, 1, False)
        for wish in (False, True):
            res = c.dir_delegation(fh, signal=wish)
            t.equal("another one", (res["status"], res.get("gdd"), res.get("later")), unavailable)
        res = second.dir_delegation(fh)
        t.equal("of another client", (res["status"], res.get("gdd"), res.get("verf"), res.get("notifications")),
                (n4.OK, 0, bytes(8), [[], [], []]))
        t.equal("DELEGRETURN of that", second.delegreturn(fh, res["deleg"]), n4.OK)
        for what, got in (
                ("OPEN that creates", c.open(fh, "made", create=True)[0]["status"]),
                ("CREATE", mkdir4(c, fh, "directory")["status"]),
                ("LINK", link4(c, file, fh, "link")["status"]),
                ("RENAME", rename4(c, fh, "file", fh, "renamed")["status"]),
                ("REMOVE", remove4(c, fh, "sub")["status"]),
                ("SETATTR", chmod4(c, fh)["status"])):
            t.equal(f"4.{minor} {what} by the holder", got, n4.OK)
        t.equal("TEST_STATEID", c.test_stateid(deleg), [n4.OK])
        t.equal("FREE_STATEID", c.free_stateid(deleg), n4.LOCKS_HELD)
        t.equal("no recall", [x for x in c.called if x["op"] is not None], [])
        t.equal("DELEGRETURN", c.delegreturn(fh, deleg), n4.OK)
        t.equal("DELEGRETURN again", c.delegreturn(fh, deleg), n4.BAD_STATEID)
        res = c.dir_delegation(fh)
        t.equal("given again", res.get("gdd"), 0)
        t.equal("by the current stateid", c.last(n4.putfh(fh), (n4.DELEGRETURN, u32(1) + bytes(12)))["status"], n4.BAD_STATEID)
        args = u32(0) + u32(0) + bytes(24) + u32(0) + u32(0)
        c.delegreturn(fh, res["deleg"])
        t.equal("which it is", c.last(n4.putfh(fh), (n4.GET_DIR_DELEGATION, args), (n4.DELEGRETURN, u32(1) + bytes(12)))["status"], n4.OK)
        for x in (c, second):
            x.close()


def test_refused(t, d):
    c, plain = new_client(d, "wanting"), new_client(d, "cannot be called", 1, n4.Client)
    path = make(d, "refused")
    fh, file = c.path(path), c.path(path + "/file")
    os.symlink("x", path + "/link")
    t.equal("a file", c.dir_delegation(file)["status"], NOTDIR)
    t.equal("a symbolic link", c.dir_delegation(c.path(path + "/link"))["status"], SYMLINK)
    t.equal("a time that is none", c.dir_delegation(fh, nanoseconds=10**9)["status"], r.INVAL)
    t.equal("no filehandle", c.last((n4.GET_DIR_DELEGATION, u32(0) * 11))["status"], 10020)
    for what, client, of in (("the pseudo file system", c, c.last((n4.PUTROOTFH, b""), (n4.GETFH, b""))["fh"]),
                             ("no back channel", plain, fh)):
        res = client.dir_delegation(of)
        t.equal(what, (res["status"], res.get("gdd"), res.get("later")), (n4.OK, 1, False))
        t.equal(f"{what}, and a wish", client.dir_delegation(of, signal=True)["status"], DIR_UNAVAIL)
    for what, args in (("no arguments", b""), ("a bool that is none", u32(2) + u32(0) * 10),
                       ("a bitmap of too many words", u32(0) + u32(0xffffffff) + u32(0) * 9),
                       ("half", u32(0) + u32(0) + bytes(12))):
        t.equal(what, c.last(n4.putfh(fh), (n4.GET_DIR_DELEGATION, args))["status"], BADXDR)
    os.chmod(path, 0o711)
    c.cred = r.auth_sys(4711, 4711)
    t.equal("one who may not read it", c.dir_delegation(fh)["status"], 13)
    c.cred = r.ROOT
    old = n4.Client(d.port, "old", 0)
    t.equal("4.0", (old.register()["status"], old.last(n4.putfh(fh), (n4.GET_DIR_DELEGATION, b""))["status"]), (n4.OK, 10044))
    for x in (c, plain, old):
        x.close()


def contenders(d):
    """What others do that changes a directory: (what, request of its path, its handle and that of the one beside it)."""
    v4, v3, old = new_client(d, "contender", 1, n4.Client), d.connect(), new_client(d, "contender0", 0, n4.Client)
    root3 = d.root(v3, "one")

    def fh3(*names):
        fh = root3
        for n in names:
            fh = v3.nfs(r.LOOKUP, r.lookup_args(fh, n))["fh"]
        return fh

    return (
        ("OPEN that creates", lambda name, fh, by: v4.open(fh, "new", create=True)[0]),
        ("OPEN that creates, by 4.0", lambda name, fh, by: old.open(fh, "new", create=True)[0]),
        ("CREATE", lambda name, fh, by: mkdir4(v4, fh, "new")),
        ("LINK", lambda name, fh, by: link4(v4, v4.path(d.exports["one"] + f"/{name}.beside/file"), fh, "new")),
        ("REMOVE", lambda name, fh, by: remove4(v4, fh, "file")),
        ("REMOVE of a directory", lambda name, fh, by: remove4(v4, fh, "sub")),
        ("RENAME", lambda name, fh, by: rename4(v4, fh, "file", fh, "new")),
        ("RENAME into it", lambda name, fh, by: rename4(v4, by, "file", fh, "new")),
        ("RENAME out of it", lambda name, fh, by: rename4(v4, fh, "file", by, "new")),
        ("RENAME of it", lambda name, fh, by: rename4(v4, v4.path(d.exports["one"]), name, by, "new")),
        ("SETATTR", lambda name, fh, by: chmod4(v4, fh)),
        ("NFSv3 CREATE", lambda name, fh, by: v3.nfs(r.CREATE, r.create_args(fh3(name), "new"))),
        ("NFSv3 MKDIR", lambda name, fh, by: v3.nfs(r.MKDIR, r.mkdir_args(fh3(name), "new"))),
        ("NFSv3 REMOVE", lambda name, fh, by: v3.nfs(r.REMOVE, r.diropargs(fh3(name), "file"))),
        ("NFSv3 RENAME", lambda name, fh, by: v3.nfs(r.RENAME, r.rename_args(fh3(name + ".beside"), "file", fh3(name), "new"))),
        ("NFSv3 SETATTR", lambda name, fh, by: v3.nfs(r.SETATTR, r.setattr_args(fh3(name), r.sattr(mode=0o700)))))


def test_recalled(t, d):
    """By each kind of request: the other waits until the delegation has been returned, and nothing has changed before."""
    holder = new_client(d, "recalled")
    for i, (what, request) in enumerate(contenders(d)):
        name = f"recall{i}"
        path, fh, deleg = delegated(t, d, holder, name)
        by = holder.path(path + ".beside")
        before = (sorted(os.listdir(path)), os.stat(path).st_ctime_ns)
        other = Other(lambda: request(name, fh, by))
        told = holder.await_callback(n4.CB_RECALL, i + 1)
        t.equal(f"recalled by {what}", (told["stateid"], told["fh"]), (deleg, fh))
        t.check(f"{what} waits", other.is_waiting(), other.result)
        t.equal("it is as it was", (sorted(os.listdir(path)), os.stat(path).st_ctime_ns), before)
        t.equal("another one meanwhile", holder.dir_delegation(fh).get("gdd"), 1)
        t.equal("DELEGRETURN", holder.delegreturn(fh, deleg), n4.OK)
        t.equal(f"{what} goes on", other.end(), n4.OK)
    holder.close()


def test_no_reason(t, d):
    """What does not change the directory recalls nothing; what fails does not either."""
    holder, other = new_client(d, "undisturbed"), new_client(d, "harmless", 1, n4.Client)
    path, fh, deleg = delegated(t, d, holder, "undisturbed")
    file = other.path(path + "/file")
    for what, got, want in (
            ("OPEN of what is there", other.open(fh, "file", create=True)[0]["status"], n4.OK),
            ("WRITE", other.last(n4.putfh(file), n4.write(n4.ANONYMOUS, 0, b"x"))["status"], n4.OK),
            ("SETATTR of an entry", chmod4(other, file)["status"], n4.OK),
            ("CREATE of what is there", mkdir4(other, fh, "sub")["status"], 17),
            ("REMOVE of nothing", remove4(other, fh, "nothing")["status"], 2),
            ("CREATE below it", mkdir4(other, other.path(path + "/sub"), "new")["status"], n4.OK)):
        t.equal(what, got, want)
    t.equal("no recall", [x for x in holder.called if x["op"] is not None], [])
    t.equal("TEST_STATEID", holder.test_stateid(deleg), [n4.OK])
    for x in (holder, other):
        x.close()


def test_several(t, d):
    """Of several holders one changes the directory: the others are told. Its removal is told to all."""
    a, b = new_client(d, "several a"), new_client(d, "several b")
    path, fh, mine = delegated(t, d, a, "several")
    theirs = b.dir_delegation(fh)["deleg"]
    other = Other(lambda: mkdir4(a, fh, "new"))
    t.equal("the other holder is told", b.await_callback(n4.CB_RECALL)["stateid"], theirs)
    t.check("the first waits", other.is_waiting(), other.result)
    t.equal("DELEGRETURN", b.delegreturn(fh, theirs), n4.OK)
    t.equal("it goes on", other.end(), n4.OK)
    t.equal("its own stays", ([x for x in a.called if x["op"] is not None], a.test_stateid(mine)), ([], [n4.OK]))
    path, fh, mine = delegated(t, d, a, "removed")
    for name in ("file", "sub"):
        t.equal(f"REMOVE of {name}", remove4(a, fh, name)["status"], n4.OK)
    root = a.path(d.exports["one"])
    t.equal("the holder removes it", remove4(a, root, "removed")["status"], n4.OK)
    t.equal("DELEGRETURN", a.delegreturn(fh, mine), n4.OK)
    for x in (a, b):
        x.close()


def test_not_returned(t, d):
    holder, other = new_client(d, "keeps it"), new_client(d, "waits")
    _, fh, deleg = delegated(t, d, holder, "kept")
    waiting = Other(lambda: mkdir4(other, fh, "new"))
    holder.await_callback(n4.CB_RECALL)
    end = time.monotonic() + 60
    while not holder.flags & n4.RECALLABLE_REVOKED and time.monotonic() < end:
        holder.compound((n4.PUTROOTFH, b""))
        time.sleep(0.1)
    t.equal("SEQUENCE says so", holder.flags, n4.RECALLABLE_REVOKED)
    t.equal("the other goes on", waiting.end(), n4.OK)
    t.equal("TEST_STATEID", holder.test_stateid(deleg), [n4.DELEG_REVOKED])
    t.equal("DELEGRETURN", holder.delegreturn(fh, deleg), n4.DELEG_REVOKED)
    t.equal("FREE_STATEID", holder.free_stateid(deleg), n4.OK)
    holder.compound((n4.PUTROOTFH, b""))
    t.equal("the flag after it", holder.flags, 0)
    for x in (holder, other):
        x.close()


def test_away(t, d):
    """A client whose lease has run out: its delegation goes as soon as somebody changes the directory."""
    holder, other = new_client(d, "away"), new_client(d, "present")
    _, fh, _ = delegated(t, d, holder, "away")
    holder.close()
    end = time.monotonic() + LEASE + 2
    while time.monotonic() < end:
        other.compound((n4.PUTROOTFH, b""))
        time.sleep(0.5)
    t.equal("CREATE", Other(lambda: mkdir4(other, fh, "new")).end(), n4.OK)
    other.close()


def test_hostile(t, d):
    owner, thief = new_client(d, "owner"), new_client(d, "thief")
    path, fh, deleg = delegated(t, d, owner, "precious")
    _, fh2, deleg2 = delegated(t, d, owner, "another")
    file = owner.path(path + "/file")
    for what, got, want in (
            ("another client's", thief.delegreturn(fh, deleg), n4.BAD_STATEID),
            ("another client's FREE_STATEID", thief.free_stateid(deleg), n4.BAD_STATEID),
            ("the wrong directory", owner.delegreturn(fh2, deleg), n4.BAD_STATEID),
            ("a file's handle", owner.delegreturn(file, deleg), n4.BAD_STATEID),
            ("a seqid to come", owner.delegreturn(fh, u32(2) + deleg[4:]), n4.BAD_STATEID),
            ("an old seqid", owner.delegreturn(fh, u32(0xfffffff0) + deleg[4:]), OLD_STATEID),
            ("a forged one", owner.delegreturn(fh, deleg[:-1] + bytes([deleg[-1] ^ 1])), n4.BAD_STATEID),
            ("READ of a file by it", owner.last(n4.putfh(file), n4.read(deleg, 0, 9))["status"], n4.BAD_STATEID),
            ("READ of the directory by it", owner.last(n4.putfh(fh), n4.read(deleg, 0, 9))["status"], ISDIR),
            ("WRITE of a file by it", owner.last(n4.putfh(file), n4.write(deleg, 0, b"x"))["status"], n4.BAD_STATEID),
            ("CLOSE", owner.close_file(fh, deleg)["status"], n4.BAD_STATEID),
            ("LOCK", owner.lock(fh, deleg)["status"], n4.BAD_STATEID),
            ("a claim of a file", owner.claim_open_by_name(fh, "file", deleg)["status"], n4.BAD_STATEID),
            ("a claim of the directory", owner.claim_open(fh, deleg)["status"], ISDIR)):
        t.equal(what, got, want)
    t.equal("none of that has harmed it", owner.test_stateid(deleg, deleg2), [n4.OK, n4.OK])
    t.equal("DELEGRETURN, any seqid", owner.delegreturn(fh, bytes(4) + deleg[4:]), n4.OK)
    for x in (owner, thief):
        x.close()


def test_local(t, d):
    """Local processes wait for nobody: the holder is told afterwards. It is told nothing of its own changes."""
    holder = new_client(d, "local")

    def touch(path):
        with open(path + "/new", "wb"):
            pass

    told = 0
    for what, change in (
            ("create", touch),
            ("mkdir", lambda path: os.mkdir(path + "/new")),
            ("unlink", lambda path: os.unlink(path + "/file")),
            ("rmdir", lambda path: os.rmdir(path + "/sub")),
            ("rename", lambda path: os.rename(path + "/file", path + "/new")),
            ("rename into it", lambda path: os.rename(path + ".beside/file", path + "/new")),
            ("rename of it", lambda path: os.rename(path, path + ".moved")),
            ("link", lambda path: os.link(path + ".beside/file", path + "/new")),
            ("chmod", lambda path: os.chmod(path, 0o700))):
        path, fh, deleg = delegated(t, d, holder, f"local {what}", "two")
        t.equal("CREATE by the holder", mkdir4(holder, fh, "mine")["status"], n4.OK)
        t.equal("SETATTR by the holder", chmod4(holder, fh)["status"], n4.OK)
        with open(path + "/file", "wb") as f:
            f.write(b"this does not change the directory")
        t.equal("nothing is recalled", (len([x for x in holder.called if x["op"] == n4.CB_RECALL]), holder.test_stateid(deleg)),
                (told, [n4.OK]))
        change(path)
        told += 1
        t.equal(f"local {what}", holder.await_callback(n4.CB_RECALL, told)["stateid"], deleg)
        t.equal("DELEGRETURN", holder.delegreturn(fh, deleg), n4.OK)
    holder.close()


def test_restart(t, d):
    """Nothing is reclaimed, and nobody waits for the holder."""
    holder, other = new_client(d, "before a restart"), new_client(d, "after it")
    _, fh, deleg = delegated(t, d, holder, "restart")
    d.stop(signal.SIGKILL)
    d.start()
    for c in (holder, other):
        c.again()
        t.equal("registered again", (c.register()["status"], c.reclaim_complete()), (n4.OK, n4.OK))
        if c.back:
            c.called.clear()
    t.equal("the stateid", holder.delegreturn(fh, deleg), n4.BAD_STATEID)
    t.equal("CREATE", mkdir4(other, fh, "new")["status"], n4.OK)
    end = time.monotonic() + 6 * LEASE
    res = holder.dir_delegation(fh)
    while res.get("gdd") != 0 and time.monotonic() < end:  # until grace is over
        time.sleep(0.5)
        res = holder.dir_delegation(fh)
    t.equal("asked for anew", res.get("gdd"), 0)
    for c in (holder, other):
        c.close()


def test_off():
    t = Count()
    with Daemon({"one": PROMISED}, {**SETTINGS, "nfs4.delegations": "no"}) as d:
        c = new_client(d, "holder")
        res = c.dir_delegation(c.path(make(d, "off")))
        t.equal("delegations = no", (res["status"], res.get("gdd")), (n4.OK, 1))
        c.close()
        harness.finish(t, d)
    return t


def main():
    t = Count()
    with Daemon({"one": PROMISED, "two": WATCHED}, SETTINGS) as d:
        for test in (test_given, test_refused, test_recalled, test_no_reason, test_several, test_not_returned, test_away, test_hostile,
                     test_local, test_restart):
            print(f"# {test.__name__}", flush=True)
            test(t, d)
        harness.finish(t, d)
    off = test_off()
    t.passed, t.failed = t.passed + off.passed, t.failed + off.failed
    harness.result(t)


if __name__ == "__main__":
    main()
