#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""btrfs: subvolumes have inode numbers of their own, on one file system and one mount. Clients tell files apart by fsid and
fileid, so each subvolume has an fsid."""
import ctypes
import os
import struct

import harness
import mounts
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon

OPTIONS = "rw,insecure,no_root_squash"
GETATTR4, READDIR4 = 9, 26
FSID, FILEID, MOUNTED_ON = 8, 20, 55
WANTED = r.u32(2) + r.u32(1 << FSID | 1 << FILEID) + r.u32(1 << (MOUNTED_ON - 32))
XDEV = 18


def fill(top):
    """Two subvolumes and a snapshot, with files of the same numbers."""
    for name in ("a", "b"):
        mounts.must("btrfs", "subvolume", "create", f"{top}/{name}")
        os.mkdir(f"{top}/{name}/dir")
        with open(f"{top}/{name}/dir/f", "w") as f:
            f.write(name)
    mounts.must("btrfs", "subvolume", "snapshot", f"{top}/a", f"{top}/snap")
    os.mkdir(top + "/dir")
    with open(top + "/dir/f", "w") as f:
        f.write("top")


def lookup(c, fh, *names):
    for name in names:
        res = c.nfs(r.LOOKUP, r.diropargs(fh, name))
        if res["status"]:
            raise SystemExit(f"LOOKUP {name}: {res}")
        fh = res["fh"]
    return fh


def identity(c, fh):
    a = c.nfs(r.GETATTR, r.opaque(fh))["attr"]
    return a["fsid"], a["fileid"]


PLACES = [(), (b"dir",), (b"dir", b"f")] + [(s, *rest) for s in (b"a", b"b", b"snap") for rest in ((), (b"dir",), (b"dir", b"f"))]


def identities(d):
    with d.connect() as c:
        root = d.root(c, "e")
        return {place: identity(c, lookup(c, root, *place)) for place in PLACES}


def test_identities(t, d):
    ids = identities(d)
    t.equal("the server's numbers repeat", len({os.stat(os.path.join(d.exports["e"], *(p.decode() for p in place))).st_ino
                                                for place in PLACES}) < len(PLACES), True)
    t.equal("no two files have one fsid and fileid", len(set(ids.values())), len(PLACES))
    for s in (b"a", b"b", b"snap"):
        t.equal(f"{s} has one fsid", len({ids[p][0] for p in PLACES if p[:1] == (s,)}), 1)
    t.equal("no two files have one fileid where a client sees them with one fsid",
            len({ids[p][1] for p in PLACES if len(p) < 2}), len([p for p in PLACES if len(p) < 2]))
    t.equal("so there are", len({fsid for fsid, _ in ids.values()}), 4)
    return ids


def test_readdir(t, d, ids):
    top = d.exports["e"]
    with d.connect() as c:
        root = d.root(c, "e")
        shown = {}
        for e in c.nfs(r.READDIRPLUS, r.readdirplus_args(root))["entries"]:
            place = () if e["name"] == b"." else (e["name"],)
            if place not in ids:
                continue
            got = (e["attr"]["fsid"], e["attr"]["fileid"])
            t.equal(f"READDIRPLUS shows {e['name']} as GETATTR does", got, ids[place])
            shown[e["name"]] = e["fileid"]
    t.equal("no two entries have one fileid", len(set(shown.values())), len(shown))
    four = n4.Client(d.port, "btrfs")
    four.register()
    fh = four.path(top)
    for place, want in ids.items():
        at = four.last(n4.putfh(fh), *(n4.lookup(n) for n in place), (n4.GETFH, b""))["fh"]
        major, minor, fileid, mounted_on = getattr4(four, at)
        t.equal(f"NFSv4 shows {place} like NFSv3", (major or minor, fileid), want)
        if len(place) == 1:
            t.equal(f"{place}: mounted_on_fileid is that of the entry above", mounted_on, shown[place[0]])
        elif place:
            t.equal(f"{place}: mounted_on_fileid is its fileid", mounted_on, fileid)
    four.close()


def getattr4(four, fh):
    res = four.last(n4.putfh(fh), (GETATTR4, WANTED))
    return struct.unpack(">QQQQ", res["attrs"])


def test_between(t, d):
    with d.connect() as c:
        root = d.root(c, "e")
        a, b = lookup(c, root, b"a"), lookup(c, root, b"b")
        t.equal("RENAME between subvolumes", c.nfs(r.RENAME, r.rename_args(lookup(c, a, b"dir"), b"f", b, b"f"))["status"], XDEV)
        t.equal("LINK between subvolumes", c.nfs(r.LINK, r.link_args(lookup(c, a, b"dir", b"f"), b, b"f"))["status"], XDEV)
        up = c.nfs(r.LOOKUP, r.diropargs(a, b".."))
        t.equal("'..' of a subvolume", up["fh"], root)


def kernel_handle(path):
    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_char * 128)]

    h, mount_id = Handle(128, 0), ctypes.c_int()
    if mounts.libc.name_to_handle_at(harness.AT_FDCWD, path.encode(), ctypes.byref(h), ctypes.byref(mount_id), 0):
        raise SystemExit("name_to_handle_at")
    return h.type, bytes(ctypes.string_at(ctypes.addressof(h) + 8, h.bytes))


def test_boundary(t, top):
    """Without a MAC, a handle of another subvolume's directory that was made up. The roots of all have the same number."""
    for crossmnt in ("", ",crossmnt"):
        with Daemon({"x": OPTIONS}, {"vfs.handle_mac": "no"}) as d:
            d.write_exports([f"{top}/a 127.0.0.1({OPTIONS}{crossmnt})"])
            d.reload()
            with d.connect() as c:
                status, fh, _ = c.mnt(top + "/a")
                t.equal("MNT of a subvolume", status, 0)
                for path, want in ((top + "/a/dir", 0), (top + "/b/dir", r.STALE), (top + "/b", r.STALE), (top, r.STALE)):
                    kind, raw = kernel_handle(path)
                    made = fh[:1] + bytes([len(raw)]) + fh[2:12] + r.u32(kind) + raw
                    t.equal(f"a handle of {path[len(top):] or '/'} through /a{crossmnt}",
                            c.nfs(r.GETATTR, r.opaque(made))["status"], want)


def test_new_names(t, d):
    """A READDIR that goes on where another ended has the names that were made meanwhile."""
    path = d.exports["e"] + "/growing"
    os.mkdir(path)
    for i in range(40):
        with open(f"{path}/old{i}", "w"):
            pass
    with d.connect() as c:
        fh = lookup(c, d.root(c, "e"), b"growing")
        missed = []
        for size in range(300, 1500, 10):  # some end where the server has read to
            first = c.nfs(r.READDIR, r.readdir_args(fh, 0, bytes(8), size))
            new = f"new{size}"
            with open(f"{path}/{new}", "w"):
                pass
            rest = c.nfs(r.READDIR, r.readdir_args(fh, first["entries"][-1]["cookie"], first["verf"], 8192))
            if new.encode() not in [e["name"] for e in rest["entries"]]:
                missed.append(size)
        t.equal("sizes at which a name made between two READDIRs is missed", missed, [])


def test(t, d):
    test_new_names(t, d)
    ids = test_identities(t, d)
    test_readdir(t, d, ids)
    test_between(t, d)
    d.stop()
    mounts.must("umount", d.exports["e"])
    mounts.mount_image(d.top + "/btrfs.img", d.exports["e"])
    d.start()
    t.equal("fsids and fileids after a remount and a restart", identities(d), ids)
    test_boundary(t, d.exports["e"])


def main():
    mounts.own_namespace()
    n4.RESULTS[GETATTR4] = lambda x, res: res.update(mask=n4._bitmap(x), attrs=x.opaque())
    t = Count()
    d = Daemon({"e": OPTIONS})
    why = mounts.make_image(d.top + "/btrfs.img", "btrfs") or mounts.mount_image(d.top + "/btrfs.img", d.exports["e"])
    if why:
        d.__exit__()
        harness.skip_all(why)
    fill(d.exports["e"])
    with d:
        test(t, d)
        t.equal("it stops", d.stop()[0], 0)
        mounts.umount(d.exports["e"])
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    return 1 if t.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
