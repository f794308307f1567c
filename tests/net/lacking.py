#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""A kernel, an emulator or a container that lacks something: the server serves NFSv3 and NFSv4.2 all the same, or says what it misses.

lacking_shim.c takes the one away after the other."""
import errno
import os
import subprocess
import sys

import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon, result

SHIM = "tests/net/lacking_shim.so"
BTIME, MNT_ID = 0x800, 0x1000
EX_UNAVAILABLE, EX_CONFIG = 69, 78
NOSYS, PERM = errno.ENOSYS, errno.EPERM
DATA = bytes(range(256)) * 1024
NAMES = [b"name%03d" % i for i in range(40)]

RING = "io_uring is not available: file data goes by plain system calls"
SLOWER = ("cachestat", "close_range", "copy_file_range", "fadvise64", "fallocate", "fanotify_init", "fanotify_mark", "F_SETLEASE",
          "F_SETPIPE_SZ", "FICLONERANGE", "madvise", "membarrier", "memfd_create", "mlock", "open_tree", "openat2", "quotactl_fd",
          "renameat2", "sched_getaffinity", "sched_setaffinity", "setpriority", "splice", "syncfs", "sysinfo", "tee",
          "vmsplice")
# What is taken away, and what the log says of it (None: nothing, as the slower way is as good).
SERVED = [
    ("", None),
    *((f"{name}={error}", RING) for name in ("io_uring_setup", "io_uring_enter", "io_uring_register") for error in (NOSYS, PERM)),
    *((f"STATX={bits:#x}{more}", None) for bits in (BTIME, MNT_ID) for more in ("", f" open_tree={NOSYS}")),
    ("ZERO_MOUNT=1", None),
    *((f"{name}={PERM}", None) for name in SLOWER),
    (" ".join(f"{name}={NOSYS}" for name in (*SLOWER, "clone3", "io_uring_setup", "preadv2", "pwritev2")) + f" STATX={BTIME | MNT_ID:#x}", RING),
    (f"preadv2={NOSYS} pwritev2={NOSYS} io_uring_setup={NOSYS}", RING),
    (f"O_TMPFILE={errno.EOPNOTSUPP}", None), (f"RENAME_NOREPLACE={errno.EINVAL}", None),
]
# Without these nothing can be served rightly: the server does not start, and says why.
NEEDED = [(name, error) for name in ("faccessat2", "getrandom", "name_to_handle_at", "statx", "sync_file_range", "F_OFD_SETLK")
          for error in (NOSYS, PERM)] + [(name, PERM) for name in ("clone3", "preadv2", "pwritev2")]
# Without these no export is served, and the log says why.
HANDLES = [(f"open_by_handle_at={NOSYS}", "this kernel cannot open files by handle"),
           (f"open_by_handle_at={PERM}", "the daemon needs CAP_DAC_READ_SEARCH")]
OPTIONS = "rw,insecure,no_root_squash"
EXPORTS = {"e": OPTIONS, "cross": OPTIONS + ",crossmnt"}  # the tree of the first is a clone, which nothing is mounted on

n4.RESULTS[n4.COPY] = lambda x, res: res.update(callbacks=[x.take(16) for _ in range(x.u32())], count=x.u64(), committed=x.u32(),
                                                verf=x.take(8), consecutive=x.flag(), synchronous=x.flag())


def env(words):
    binary = os.environ.get("RINGNFSD", "./ringnfsd")
    return dict(os.environ, LD_PRELOAD=harness.preload(binary, os.path.abspath(SHIM)), LACKING=words)


def test_nfs3(c, root):
    """What went wrong, or None."""
    made = c.nfs(r.CREATE, r.create_args(root, b"three", r.EXCLUSIVE, verf=b"12345678"))
    again = c.nfs(r.CREATE, r.create_args(root, b"three", r.EXCLUSIVE, verf=b"12345678"))
    if made["status"] or again["status"] or made["fh"] != again["fh"]:
        return f"CREATE: {made} {again}"
    fh = made["fh"]
    steps = [(r.WRITE, r.write_args(fh, 0, DATA, r.FILE_SYNC)), (r.WRITE, r.write_args(fh, 0, DATA[:5000], r.DATA_SYNC)),
             (r.WRITE, r.write_args(fh, 0, DATA, r.UNSTABLE)), (r.COMMIT, r.commit_args(fh)),
             (r.MKDIR, r.mkdir_args(root, b"dir")), (r.SYMLINK, r.symlink_args(root, b"link", b"target")),
             (r.LINK, r.link_args(fh, root, b"second")), (r.RENAME, r.rename_args(root, b"second", root, b"third")),
             (r.REMOVE, r.diropargs(root, b"third")), (r.SETATTR, r.setattr_args(fh, r.sattr(mode=0o640, size=len(DATA) - 1))),
             (r.FSSTAT, r.opaque(root)), (r.FSINFO, r.opaque(root)), (r.PATHCONF, r.opaque(root)), (r.ACCESS, r.access_args(root, 63))]
    for proc, args in steps:
        res = c.nfs(proc, args)
        if res["status"]:
            return f"{r.NAMES[proc]}: {res}"
    read = c.nfs(r.READ, r.read_args(fh, 0, len(DATA)))
    if read.get("data") != DATA[:-1]:
        return f"READ: {read['status']}, {len(read.get('data', b''))} bytes"
    got = c.nfs(r.GETATTR, r.getattr_args(fh))
    if got["status"] or got["attr"]["size"] != len(DATA) - 1 or got["attr"]["mode"] & 0o777 != 0o640:
        return f"GETATTR: {got}"
    return list_names(c, root)


def list_names(c, root):
    dir_fh = c.nfs(r.LOOKUP, r.lookup_args(root, b"dir"))["fh"]
    for n in NAMES:
        res = c.nfs(r.CREATE, r.create_args(dir_fh, n))
        if res["status"]:
            return f"CREATE {n}: {res}"
    listed = c.nfs(r.READDIRPLUS, r.readdirplus_args(dir_fh))
    entries = {e["name"]: e for e in listed.get("entries", [])}
    if set(entries) - {b".", b".."} != set(NAMES):
        return f"READDIRPLUS: {listed}"
    for n in NAMES:
        if entries[n]["fh"] != c.nfs(r.LOOKUP, r.lookup_args(dir_fh, n))["fh"]:
            return f"LOOKUP {n} has another handle than READDIRPLUS"
        if c.nfs(r.REMOVE, r.diropargs(dir_fh, n))["status"]:
            return f"REMOVE {n}"
    return None if c.nfs(r.RMDIR, r.diropargs(root, b"dir"))["status"] == r.OK else "RMDIR"


def test_nfs4(d, export):
    c, other = (n4.Client(d.port, f"{owner} {export}", 2) for owner in ("one", "another"))
    for one in (c, other):
        one.keeps = False  # what is kept is short
        if one.register()["status"] or one.reclaim_complete():
            return "EXCHANGE_ID"
    root = c.path(d.exports[export])
    opened, fh = c.open(root, b"four", create=True)
    if opened["status"]:
        return f"OPEN: {opened}"
    source = opened["stateid"]
    wrote = c.last(n4.putfh(fh), n4.write(source, 0, DATA, 0))
    read = c.last(n4.putfh(fh), n4.read(source, 0, len(DATA)))
    if wrote["status"] or read.get("data") != DATA:
        return f"WRITE, READ: {wrote} {read['status']}"
    lock = c.lock(fh, source)
    theirs = other.open(root, b"four")[0]
    denied = other.lock(fh, theirs["stateid"])
    if lock["status"] or denied["status"] != n4.DENIED:
        return f"LOCK: {lock} {denied}"
    if c.unlock(fh, lock["stateid"])["status"]:
        return "LOCKU"
    return (copied(c, root, fh, source) or named(c, root) or
            next((f"CLOSE of {one.owner}" for one, s in ((c, source), (other, theirs["stateid"])) if one.close_file(fh, s)["status"]), None))


def copied(c, root, fh, source):
    target, copy_fh = c.open(root, b"copy", create=True)
    args = source + target["stateid"] + r.u64(0) + r.u64(0) + r.u64(len(DATA)) + r.u32(1) + r.u32(1) + r.u32(0)
    copy = c.compound(n4.putfh(fh), (n4.SAVEFH, b""), n4.putfh(copy_fh), (n4.COPY, args))[-1]
    read = c.last(n4.putfh(copy_fh), n4.read(target["stateid"], 0, len(DATA)))
    if copy["status"] or read.get("data") != DATA:
        return f"COPY: {copy}, {read['status']} {len(read.get('data', b''))} bytes"
    return None if c.close_file(copy_fh, target["stateid"])["status"] == n4.OK else "CLOSE of the copy"


def named(c, root):
    rename = c.last(n4.putfh(root), (n4.SAVEFH, b""), (n4.RENAME, r.name(b"copy") + r.name(b"moved")))
    remove = c.last(n4.putfh(root), (n4.REMOVE, r.name(b"moved")))
    gone = c.last(n4.putfh(root), n4.lookup("moved"))
    if rename["status"] or remove["status"] or gone["status"] != r.NOENT:
        return f"RENAME, REMOVE: {rename} {remove} {gone}"
    return None


def serve(d):
    """What went wrong, or None."""
    with d.connect() as c:
        for name, path in d.exports.items():
            status, root, _ = c.mnt(path)
            wrong = f"MNT: {status}" if status else test_nfs3(c, root) or test_nfs4(d, name)
            if wrong:
                return f"{name}: {wrong}"
    return None


def test_served(t, words, says):
    if harness.sanitized(os.environ.get("RINGNFSD", "./ringnfsd")):  # whose run-time library asks for the stack of each thread
        words = " ".join(w for w in words.split() if not w.startswith("sched_getaffinity="))
    what = words or "nothing is missing"
    try:
        with Daemon(EXPORTS, env=env(words)) as d:
            wrong = serve(d)
            log = d.read_log()
            if not t.check(what, not wrong, wrong):
                print(log)
            if says:
                t.check(f"{what}: the log says so", says in log, log)
            t.equal(f"{what}: exit status", d.stop()[0], 0)
    except (SystemExit, r.Closed, ConnectionError) as e:
        t.check(what, False, e)


def test_needed(t, name, error):
    d = Daemon(EXPORTS, env=env(f"{name}={error}"))
    said = name if not name.startswith("F_") else f"fcntl({name})"
    try:
        for args in ([], ["--check-config"]):
            end = subprocess.run([d.binary, "--foreground", "--config", d.config, *args], env=harness.sanitizer_env(d.env),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
            what = " ".join([f"{name}={error}", *args])
            t.check(f"{what}: exit status", end.returncode in (EX_UNAVAILABLE, EX_CONFIG), f"{end.returncode} {end.stdout}")
            t.check(f"{what}: says what is missing", f"the system call {said} is missing ({os.strerror(error)})" in end.stdout, end.stdout)
    except subprocess.TimeoutExpired as e:
        t.check(f"{name}={error}", False, e)
    finally:
        d.__exit__()


def test_handles(t, words, says):
    with Daemon(EXPORTS, env=env(words)) as d:
        with d.connect() as c:
            t.check(f"{words}: MNT", c.mnt(d.exports["e"])[0] != 0)
        for path in d.exports.values():
            t.check(f"{words}: why", f"export {path}: " in d.read_log() and says in d.read_log(), d.read_log())
        t.equal(f"{words}: exit status", d.stop()[0], 0)


def main():
    t = Count()
    if not os.path.exists(SHIM):
        harness.skip_all(f"{SHIM} is not built")
    for words, says in SERVED if len(sys.argv) < 2 else [(w, None) for w in sys.argv[1:]]:
        test_served(t, words, says)
    for name, error in NEEDED if len(sys.argv) < 2 else []:
        test_needed(t, name, error)
    for words, says in HANDLES if len(sys.argv) < 2 else []:
        test_handles(t, words, says)
    result(t)


if __name__ == "__main__":
    main()
