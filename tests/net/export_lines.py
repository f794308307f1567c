#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Which line of exports(5) governs a directory, a bind mount or a file system below an exported directory.

The options of the parent's line and of the child's are crossed with the versions of NFS and the ways to get to the child. What
must come out is written down from exports(5) below, in expected(), and knows nothing of the server."""
import os

import mounts
import nfs2
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon, finish, result

HOST, OTHER = "127.0.0.1", "127.0.0.9"
COMMON = "insecure,no_subtree_check,no_root_squash"
SQUASHED = {"parent": 66, "child": 77}
KINDS = ("bind", "tmpfs", "plain")
VERSIONS = (2, 3, 4)
WAYS = ("mount", "lookup", "listing")
WRONGSEC, AUTH_TOOWEAK = 10016, 5

PARENTS = [("rw",), ("rw", "crossmnt"), ("ro", "crossmnt"), ("rw", "squash"), ("rw", "squash", "crossmnt"), ("rw", "nohide")]
CHILDREN = [None, "another host's"] + [(*rights, *hide) for rights in (("rw",), ("ro",), ("rw", "squash"), ("rw", "krb5p"))
                                       for hide in ((), ("nohide",))]

EMPTY, DENIED = "empty, read-only", "denied"


def expected(kind, parent, child, version, way):
    """From exports(5): "Normally, if a server exports two filesystems one of which is mounted on the other, then the client will have
    to mount both filesystems explicitly to get access to them. If it just mounts the parent, it will see an empty directory at the
    place where the other filesystem is mounted." Option nohide of the child shows it, and crossmnt of the parent all of them; a child
    "not explicitly exported ... will be implicitly exported with the same export options as the parent". NFSv4's clients see
    every file system that is exported to them."""
    has_line = isinstance(child, tuple)
    mounted = kind != "plain"
    if has_line:
        shown = not mounted or way == "mount" or version == 4 or "crossmnt" in parent or "nohide" in child
        who, options = "child", child
    else:
        shown = not mounted or "crossmnt" in parent
        who, options = "parent", parent
    if not shown:  # rpc.mountd: "request to export directory ... below nearest filesystem"
        return DENIED if way == "mount" and version < 4 else EMPTY
    if "krb5p" in options:
        return DENIED
    if "ro" in options:
        return "seen, read-only"
    return f"seen, made as {SQUASHED[who] if 'squash' in options else 0}"


def line(path, options, who, host=HOST):
    words = {"squash": f"all_squash,anonuid={SQUASHED[who]},anongid={SQUASHED[who]}", "krb5p": "sec=krb5p"}
    return f"{path} {host}({COMMON},{','.join(words.get(o, o) for o in options)})"


class Two:
    """NFSv2."""

    def __init__(self, d):
        self.conn = d.connect()
        self.c = nfs2.Client(self.conn)

    def mount(self, path):
        return self.conn.mnt(path, vers=2)[1]

    def lookup(self, fh, name):
        fh, _ = self.c.lookup(fh, name)
        return fh if isinstance(fh, bytes) else None

    def names(self, fh):
        return [n for n in self.c.names(fh) if n not in (b".", b"..")]

    def create(self, fh, name):
        fh, attr = self.c.create(fh, name)
        return 0 if attr else fh

    def close(self):
        self.conn.close()


class Three:
    def __init__(self, d):
        self.conn = d.connect()

    def mount(self, path):
        return self.conn.mnt(path)[1]

    def lookup(self, fh, name):
        return self.conn.nfs(r.LOOKUP, r.diropargs(fh, name)).get("fh")

    def names(self, fh):
        return [e["name"] for e in self.conn.nfs(r.READDIR, r.readdir_args(fh))["entries"] if e["name"] not in (b".", b"..")]

    def create(self, fh, name):
        return self.conn.nfs(r.CREATE, r.create_args(fh, name))["status"]

    def listing(self, fh, name):
        """The handle that READDIRPLUS gives, or LOOKUP if that gives none."""
        entries = self.conn.nfs(r.READDIRPLUS, r.readdirplus_args(fh)).get("entries", ())
        found = [e["fh"] for e in entries if e["name"] == name.encode()]
        return found[0] if found and found[0] else self.lookup(fh, name)

    def close(self):
        self.conn.close()


class Four:
    def __init__(self, d):
        self.c = n4.Client(d.port, f"lines {os.urandom(4).hex()}")
        self.c.register()
        self.c.reclaim_complete()

    def mount(self, path):
        ops = [(n4.PUTROOTFH, b""), *(n4.lookup(n.encode()) for n in path.strip("/").split("/")), (n4.GETFH, b"")]
        return self.c.last(*ops).get("fh")

    def lookup(self, fh, name):
        return self.c.last(n4.putfh(fh), n4.lookup(name.encode()), (n4.GETFH, b"")).get("fh")

    def names(self, fh):
        return self.c.last(n4.putfh(fh), (n4.READDIR, r.u64(0) + bytes(8) + r.u32(4096) + r.u32(4096) + r.u32(0)))["names"]

    def create(self, fh, name):
        res, file = self.c.open(fh, name, create=True)
        if res["status"] == 0:
            self.c.close_file(file, res["stateid"])
        return res["status"]

    def close(self):
        self.c.close()


class Places:
    """A directory with children of each kind, and descriptors of what lies beneath the mounts."""

    def __init__(self, d):
        self.parent = d.exports["p"]
        self.beneath, self.top = {}, {}
        source = os.path.join(d.top, "source")
        os.makedirs(source)
        for kind in KINDS:
            at = f"{self.parent}/{kind}"
            os.mkdir(at)
            os.chmod(at, 0o777)
            self.beneath[kind] = os.open(at, os.O_PATH | os.O_DIRECTORY)
            if kind != "plain":
                with open(at + "/under", "w"):
                    pass
            if kind == "bind":
                mounts.must("mount", "--bind", source, at)
            elif kind == "tmpfs":
                mounts.must("mount", "-t", "tmpfs", "-o", "size=4m", "ringnfs-test", at)
            os.chmod(at, 0o777)
            with open(at + "/top", "w"):
                pass
            self.top[kind] = at

    def made(self, kind):
        """Takes away what a client has made: (owner at the top, names beneath)."""
        owner = None
        if os.path.exists(self.top[kind] + "/new"):
            owner = os.stat(self.top[kind] + "/new").st_uid
            os.remove(self.top[kind] + "/new")
        beneath = os.listdir(f"/proc/self/fd/{self.beneath[kind]}") if kind != "plain" else []
        return owner, [n for n in beneath if n != "under"]


def observe(client, places, kind, fh):
    """What a client can do by that handle of the child."""
    if not fh:
        return DENIED
    try:
        if client.lookup(fh, "under"):
            return "what the mount covers"
        seen = bool(client.lookup(fh, "top"))
        status = client.create(fh, "new")
    except r.Refused as e:
        return DENIED if (e.why, e.data) == ("AUTH_ERROR", (AUTH_TOOWEAK,)) else str(e.args)
    owner, beneath = places.made(kind)
    if beneath:
        return f"made {beneath} beneath the mount"
    if status == 0:
        return f"seen, made as {owner}" if seen else f"made as {owner} and not seen"
    if status == r.ROFS and seen:
        return "seen, read-only"
    if status == r.ACCES and not seen and not client.names(fh):
        return EMPTY
    return DENIED if status in (WRONGSEC, r.STALE) else f"seen: {seen}, status {status}"


def reach(client, places, kind, way):
    path = places.top[kind]
    if way == "mount":
        return client.mount(path)
    root = client.mount(places.parent)
    return getattr(client, way)(root, kind)


def set_lines(d, places, kind, parent, child):
    lines = [line(places.parent, parent, "parent")]
    if child == "another host's":
        lines.append(line(places.top[kind], ("rw",), "child", OTHER))
    elif child:
        lines.append(line(places.top[kind], child, "child"))
    d.write_exports(lines)
    d.reload()


def clients(d):
    return {2: Two(d), 3: Three(d), 4: Four(d)}


def test_table(t, d, places):
    for kind in KINDS:
        for parent in PARENTS:
            for child in CHILDREN:
                set_lines(d, places, kind, parent, child)
                cs = clients(d)
                for version in VERSIONS:
                    for way in WAYS:
                        if not hasattr(cs[version], way):
                            continue
                        got = observe(cs[version], places, kind, reach(cs[version], places, kind, way))
                        t.equal(f"{kind} below {parent}, child {child}, NFSv{version} by {way}", got,
                                expected(kind, parent, child, version, way))
                for c in cs.values():
                    c.close()


def test_kept_handles(t, d, places):
    """Handles that were given while the child had no line give nothing but what its line allows."""
    parent = ("rw", "crossmnt")
    for kind in ("bind", "tmpfs"):
        set_lines(d, places, kind, parent, None)
        cs = clients(d)
        kept = {v: c.lookup(c.mount(places.parent), kind) for v, c in cs.items()}
        file = cs[3].lookup(kept[3], "top")
        t.equal(f"{kind}: handles of the child", [bool(fh) for fh in kept.values()], [True] * len(VERSIONS))
        for child in CHILDREN:
            set_lines(d, places, kind, parent, child)
            for v, c in cs.items():
                want = {expected(kind, parent, child, v, "lookup")} | ({DENIED} if isinstance(child, tuple) else set())
                got = observe(c, places, kind, kept[v])
                t.check(f"{kind}: a kept handle, child {child}, NFSv{v}", got in want, f"{got}, not one of {want}")
            status = cs[3].conn.nfs(r.WRITE, r.write_args(file, 0, b"x"))["status"]
            t.equal(f"{kind}: WRITE by a kept handle, child {child}", status, r.STALE if isinstance(child, tuple) else r.OK)
        for c in cs.values():
            c.close()


def test_plain_directory(t, d, places):
    """Its handles name no path: those from before it had a line go on. The child is not renamed out of its line."""
    set_lines(d, places, "plain", ("rw",), None)
    cs = clients(d)
    kept = {v: c.lookup(c.mount(places.parent), "plain") for v, c in cs.items()}
    set_lines(d, places, "plain", ("rw",), ("ro",))
    for v, c in cs.items():
        t.equal(f"a kept handle of a plain directory, NFSv{v}", observe(c, places, "plain", kept[v]), "seen, made as 0")
    root = cs[3].mount(places.parent)
    for a, b in (("plain", "elsewhere"), ("bind", "plain")):
        t.equal(f"RENAME of {a} to {b}", cs[3].conn.nfs(r.RENAME, r.rename_args(root, a.encode(), root, b.encode()))["status"], r.ACCES)
    for c in cs.values():
        c.close()


def test_links(t, d, places):
    """A symbolic link leads to the parent, whose child's line is written without it; and the other way round."""
    alias = d.top + "/alias"
    os.symlink(places.parent, alias)
    for parent, child in ((alias, places.parent), (places.parent, alias), (alias, alias)):
        for kind in KINDS:
            d.write_exports([line(parent, ("rw", "crossmnt"), "parent"), line(f"{child}/{kind}", ("ro",), "child")])
            d.reload()
            c = Three(d)
            for top in (alias, places.parent):
                t.equal(f"MNT of {top}/{kind}, parent {parent}, child {child}", observe(c, places, kind, c.mount(f"{top}/{kind}")),
                        "seen, read-only")
                root = c.mount(top)
                if parent == alias or top == parent:
                    t.equal(f"LOOKUP below {top}, parent {parent}, child {child}", observe(c, places, kind, c.lookup(root, kind)),
                            "seen, read-only")
                else:  # links outside of exports are not followed
                    t.equal(f"MNT of {top}, parent {parent}", root, None)
            c.close()
    os.remove(alias)


def test_same_directory_twice(t, d, places):
    """Lines for one directory by two paths: what lies on a mount below is either's, and no line deeper than the other."""
    alias = d.top + "/alias"
    os.symlink(places.parent, alias)
    d.write_exports([line(alias, ("rw", "crossmnt"), "parent"), line(places.parent, ("ro", "crossmnt"), "parent")])
    d.reload()
    for c in (Three(d), Four(d)):
        for path, want in ((alias, "seen, made as 0"), (places.parent, "seen, read-only")):
            t.equal(f"a mount below {path}, {type(c).__name__}", observe(c, places, "tmpfs", c.lookup(c.mount(path), "tmpfs")), want)
        c.close()
    os.remove(alias)


def test_child_that_waits(t, d, places):
    """A child that is not served now is not served by its parent's line in the meantime."""
    d.write_exports([line(places.parent, ("rw", "crossmnt"), "parent"),
                     line(places.top["tmpfs"], ("ro", f"mp={places.top['tmpfs']}/missing"), "child")])
    d.reload()
    for v, c in clients(d).items():
        got = observe(c, places, "tmpfs", c.lookup(c.mount(places.parent), "tmpfs"))
        t.equal(f"a child that waits for a mount, NFSv{v}", got, DENIED)
        c.close()


def restart(d, lines):
    d.stop()
    d.write_exports(lines)
    d.start()


def test_child_in_error(t, d, places):
    """A child whose line is left out at the start, for an option or a path that is wrong, is not given away by its parent's line."""
    errors = {"an unknown option": f"{{}} {HOST}(ro,secure_locsk)", "an unknown option for another host": f"{{}} {OTHER}(rw,nosuch) {HOST}(ro)",
              "a network that is none": f"{{}} 192.0.2.0/99(ro)"}
    for kind in KINDS:
        for what, wrong in errors.items():
            with_line = [line(places.parent, ("rw", "crossmnt"), "parent"), wrong.format(places.top[kind])]
            restart(d, with_line)
            for v, c in clients(d).items():
                for way in WAYS:
                    if hasattr(c, way):
                        got = observe(c, places, kind, reach(c, places, kind, way))
                        t.equal(f"{kind}, a line with {what}, NFSv{v} by {way}", got, DENIED)
                t.check(f"{kind}: the parent's own files are served, NFSv{v}", bool(c.lookup(c.mount(places.parent), "plain") or kind == "plain"))
                c.close()
    later = places.parent + "/later"
    restart(d, [line(places.parent, ("rw", "crossmnt"), "parent"), line(later, ("ro",), "child")])
    os.mkdir(later)
    os.chmod(later, 0o777)
    for v, c in clients(d).items():
        t.equal(f"a directory that was missing at the start, NFSv{v}", c.lookup(c.mount(places.parent), "later"), None)
        c.close()
    d.reload()
    for v, c in clients(d).items():
        t.check(f"and is there after a reload, NFSv{v}", c.lookup(c.mount(places.parent), "later"))
        c.close()
    os.rmdir(later)


def test_removed(t, d, places):
    """The root of a child is not removed by clients of the parent, so that nothing else takes its place."""
    at = places.parent + "/empty"
    os.mkdir(at)
    os.chmod(at, 0o777)
    d.write_exports([line(places.parent, ("rw",), "parent"), line(at, ("ro",), "child")])
    d.reload()
    cs = clients(d)
    t.equal("RMDIR by NFSv3", cs[3].conn.nfs(r.RMDIR, r.diropargs(cs[3].mount(places.parent), b"empty"))["status"], r.ACCES)
    t.equal("REMOVE by NFSv4", cs[4].c.last(n4.putfh(cs[4].mount(places.parent)), (n4.REMOVE, r.opaque(b"empty")))["status"], r.ACCES)
    t.equal("RMDIR by NFSv2", cs[2].c.status(nfs2.RMDIR, nfs2.dirop(cs[2].mount(places.parent), "empty")), r.ACCES)
    t.check("it is still there", os.path.isdir(at))
    for c in cs.values():
        c.close()
    os.rmdir(at)


def test_dots(t, d, places):
    """MNT of a path with "..": the child's line holds."""
    set_lines(d, places, "plain", ("rw",), ("ro",))
    c = Three(d)
    os.makedirs(places.parent + "/x", exist_ok=True)
    t.equal("MNT of x/../plain", observe(c, places, "plain", c.mount(places.parent + "/x/../plain")), "seen, read-only")
    c.close()


def test_file(t, d, places):
    """A regular file with a line of its own, as the swap of a host without a disk."""
    swap = places.parent + "/swap"
    with open(swap, "wb") as f:
        f.write(b"swap")
    d.write_exports([line(places.parent, ("ro",), "parent"), line(swap, ("rw",), "child")])
    t.check("a file can be exported", "reload failed" not in d.reload())
    with d.connect() as c:
        status, fh, _ = c.mnt(swap)
        t.equal("MNT of a file", status, 0)
        t.equal("READ and WRITE by its line", [c.nfs(r.READ, r.read_args(fh, 0, 9))["data"], c.nfs(r.WRITE, r.write_args(fh, 0, b"S"))["status"]],
                [b"swap", 0])
        found = c.nfs(r.LOOKUP, r.diropargs(c.mnt(places.parent)[1], b"swap"))["fh"]
        t.equal("and after LOOKUP in its directory", c.nfs(r.WRITE, r.write_args(found, 0, b"T"))["status"], 0)
    os.remove(swap)


def test_fsid(t, d, places):
    """Of two fsid= for a path the first counts; one that another path has before does not."""
    other = d.top + "/fsid"
    os.mkdir(other)
    with open(other + "/mark", "w"):
        pass
    d.write_exports([f"{places.parent} {HOST}({COMMON},rw,fsid=5) {OTHER}({COMMON},fsid=6)", f"{other} {HOST}({COMMON},rw,fsid=5)"])
    said = d.reload()
    t.check("both are exported", "reload failed" not in said)
    t.check("the log says what counts", "the first counts" in said and f"it does not count for {other}" in said, said)
    with d.connect() as c:
        a, b = c.mnt(places.parent)[1], c.mnt(other)[1]
        t.equal("each has its own root", [c.nfs(r.LOOKUP, r.diropargs(fh, b"mark"))["status"] for fh in (a, b)], [r.NOENT, 0])
        d.write_exports([f"{places.parent} {HOST}({COMMON},rw,fsid=5)", f"{other} {HOST}({COMMON},rw)"])
        d.reload()
        t.equal("handles are those of fsid=5, and of none", [c.nfs(r.GETATTR, r.opaque(fh))["status"] for fh in (a, b)], [0, 0])


def test_log(t, d, places):
    """The log names the line that grants, not one that is for others."""
    new = "127.0.0.3"  # messages about one host are few
    d.write_exports([line(places.parent, ("rw",), "parent", new), line(places.top["plain"], ("rw",), "child", OTHER)])
    d.reload()
    since = len(d.read_log())
    with d.connect(source=(new, 0)) as c:
        t.equal("MNT below a line for another host", c.mnt(places.top["plain"])[0], 0)
    t.check("the log names the parent's line", d.wait_log(f"MNT of {places.top['plain']} granted.*; export {places.parent}, the line for {new}", since))


def test_one_host_without_crossmnt(t, d, places):
    """Another host's option crossmnt is not this one's."""
    d.write_exports([f"{line(places.parent, ('rw', 'crossmnt'), 'parent', OTHER)} {HOST}({COMMON},rw)"])
    d.reload()
    for v, c in clients(d).items():
        fh = c.lookup(c.mount(places.parent), "tmpfs")
        got = observe(c, places, "tmpfs", fh)
        t.check(f"crossmnt of another host, NFSv{v}", got in (EMPTY, DENIED), got)
        c.close()


def main():
    mounts.own_namespace()
    t = Count()
    with Daemon({"p": f"rw,{COMMON}"}, {"nfs2.enabled": "yes", "server.log_level": "info"}, hosts=(HOST,)) as d:
        places = Places(d)
        test_table(t, d, places)
        test_kept_handles(t, d, places)
        test_plain_directory(t, d, places)
        test_links(t, d, places)
        test_same_directory_twice(t, d, places)
        test_child_that_waits(t, d, places)
        test_child_in_error(t, d, places)
        test_removed(t, d, places)
        test_dots(t, d, places)
        test_file(t, d, places)
        test_fsid(t, d, places)
        test_log(t, d, places)
        test_one_host_without_crossmnt(t, d, places)
        for kind in ("bind", "tmpfs"):
            os.close(places.beneath[kind])
            mounts.umount(places.top[kind], "-l")
        finish(t, d)
    result(t)


if __name__ == "__main__":
    main()
