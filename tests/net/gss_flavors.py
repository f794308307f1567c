#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An export's flavours hold wherever a call touches it: COMPOUNDs over exports of several flavours, and calls with two handles."""
import os
import time

import gss
import gssclient as g
import harness
import kdc
import nfs4client as n4
import rpcclient as r
from rpcclient import opaque, u32, u64

ALL, SECRET = "sec=krb5:krb5i:krb5p:sys,rw,insecure", "sec=krb5p,rw,insecure"
OK, WRONGSEC, XDEV, ROFS = 0, 10016, 18, 30
TOOWEAK = ("AUTH_ERROR", 5)
OID = bytes.fromhex("2a864886f712010202")
KRB5, KRB5I, KRB5P = ((6, OID, 0, service) for service in (g.NONE, g.INTEGRITY, g.PRIVACY))
SAVEFH, RESTOREFH, ACCESS, READDIR, COMMIT = (n4.SAVEFH, b""), (31, b""), 3, 26, 5
ALLOCATE, DEALLOCATE, READ_PLUS, SEEK, CLONE, GETXATTR, SETXATTR, LISTXATTRS = 59, 62, 68, 69, 71, 72, 73, 74
NO_ATTRS = u32(0) + opaque(b"")


class Client(gss.Client4):
    def compound(self, *ops):
        """Asked again while the name service is asked for the caller."""
        for _ in range(300):
            results = super().compound(*ops)
            if results[-1]["status"] != n4.DELAY:
                break
            time.sleep(0.05)
        return results


def directory_ops(c):
    """Operations on a directory, by name."""
    ops = {
        "GETFH": (n4.GETFH, b""), "GETATTR": n4.getattr_op(), "LOOKUP": n4.lookup("file"), "REMOVE": (n4.REMOVE, r.name("file")),
        "READDIR": (READDIR, u64(0) + bytes(8) + u32(4096) + u32(4096) + u32(0)), "ACCESS": (ACCESS, u32(63)),
        "CREATE": (n4.CREATE, u32(2) + r.name("evil") + NO_ATTRS), "VERIFY": (n4.VERIFY, n4.bitmap(1) + opaque(u32(2))),
        "NVERIFY": (n4.NVERIFY, n4.bitmap(1) + opaque(u32(1))),
        "OPEN": (n4.OPEN, u32(9) + u32(1) + u32(0) + u64(c.clientid) + opaque(b"evil") + u32(0) + u32(n4.CLAIM_NULL) + r.name("file")),
    }
    return ops


def file_ops(c, stateid):
    """Operations on a file, by the client's own stateid and by the anonymous one."""
    at, owner = u64(0) + u64(1), u64(c.clientid) + opaque(b"evil")
    ops = {"COMMIT": (COMMIT, u64(0) + u32(0)), "LOCKT": (n4.LOCKT, u32(2) + at + owner), "CLOSE": (n4.CLOSE, u32(9) + stateid),
           "LOCK": (n4.LOCK, u32(2) + u32(0) + at + u32(1) + u32(5) + stateid + u32(0) + owner),
           "LOCKU": (n4.LOCKU, u32(2) + u32(1) + stateid + at)}
    for what, sid in (("its stateid", stateid), ("no stateid", n4.ANONYMOUS)):
        ops[f"READ by {what}"], ops[f"WRITE by {what}"] = n4.read(sid, 0, 10), n4.write(sid, 0, b"evil")
        ops[f"SETATTR by {what}"] = (n4.SETATTR, sid + n4.bitmap(4) + opaque(u64(0)))
    if c.minor > 0:
        ops["OPEN of the handle"] = (n4.OPEN, u32(9) + u32(1) + u32(0) + owner + u32(0) + u32(n4.CLAIM_FH))
    if c.minor == 2:
        anonymous = n4.ANONYMOUS + u64(0)
        ops.update({"ALLOCATE": (ALLOCATE, anonymous + u64(9)), "DEALLOCATE": (DEALLOCATE, anonymous + u64(9)),
                    "SEEK": (SEEK, anonymous + u32(0)), "READ_PLUS": (READ_PLUS, anonymous + u32(9)),
                    "GETXATTR": (GETXATTR, r.name("user.x")), "LISTXATTRS": (LISTXATTRS, u64(0) + u32(1000)),
                    "SETXATTR": (SETXATTR, u32(0) + r.name("user.x") + opaque(b"v"))})
    return ops


def pairs(c, handle, file):
    """Operations with a saved handle: what, the saved and the current one, the operation."""
    link, rename = (n4.LINK, r.name("stolen")), (n4.RENAME, r.name("file") + r.name("stolen"))
    out = []
    for e in ("secret", "below"):
        for what, one, two in ((f"{e} to all", e, "all"), (f"all to {e}", "all", e), (f"{e} to itself", e, e)):
            out += [(f"LINK {what}", file[one], handle[two], link), (f"RENAME {what}", handle[one], handle[two], rename)]
            if c.minor == 2:
                both = n4.ANONYMOUS * 2 + u64(0) * 2
                out += [(f"COPY {what}", file[one], file[two], (n4.COPY, both + u64(5) + u32(1) + u32(1) + u32(0))),
                        (f"CLONE {what}", file[one], file[two], (CLONE, both + u64(0)))]
    return out


def test_compounds(t, d, session, minor):
    c = Client(d.port, session, g.PRIVACY, f"flavours{minor}", minor)
    c.register(), c.reclaim_complete()
    handle = {e: c.path(path) for e, path in d.exports.items()}
    file = {e: c.path(path + "/file") for e, path in d.exports.items()}
    opened, _ = c.open(handle["secret"], "file")
    c.conn.service = g.NONE
    for e in ("secret", "below"):
        for kind, fh, ops in (("directory", handle[e], directory_ops(c)), ("file", file[e], file_ops(c, opened["stateid"]))):
            for what, op in ops.items():
                t.equal(f"4.{minor}: {what} of a {kind} in {e}", c.last(n4.putfh(fh), op)["status"], WRONGSEC)
        t.equal(f"4.{minor}: READ of {e} behind RESTOREFH",
                c.last(n4.putfh(file[e]), SAVEFH, n4.putfh(file["all"]), RESTOREFH, n4.read(n4.ANONYMOUS, 0, 9))["status"], WRONGSEC)
    t.equal(f"4.{minor}: LOOKUP into the export below", c.last(n4.putfh(handle["all"]), n4.lookup("sub"), n4.lookup("file"))["status"], WRONGSEC)
    for what, saved, current, op in pairs(c, handle, file):
        got = c.last(n4.putfh(saved), SAVEFH, n4.putfh(current), op)["status"]
        t.check(f"4.{minor}: {what}", got in (WRONGSEC, XDEV), got)
    t.equal(f"4.{minor}: WRITE where krb5 has ro", c.last(n4.putfh(file["mixed"]), n4.write(n4.ANONYMOUS, 0, b"evil"))["status"], ROFS)
    t.equal(f"4.{minor}: READ there", c.last(n4.putfh(file["mixed"]), n4.read(n4.ANONYMOUS, 0, 9))["status"], OK)
    test_secinfo(t, d, c, handle)
    test_splices(t, c, handle, file)
    c.close()


def test_secinfo(t, d, c, handle):
    want = {"all": [KRB5, KRB5I, KRB5P, (1,)], "secret": [KRB5P], "below": [KRB5P], "mixed": [KRB5P, KRB5, KRB5I]}
    for e, flavors in want.items():
        parent, name = os.path.split(d.exports[e])
        ops = [n4.lookup(part) for part in parent.strip("/").split("/")]
        t.equal(f"4.{c.minor}: SECINFO of {e}", c.last((n4.PUTROOTFH, b""), *ops, (n4.SECINFO, r.name(name))).get("flavors"), flavors)
        if c.minor > 0:
            got = c.last(n4.putfh(handle[e]), (n4.SECINFO_NO_NAME, u32(0)))
            t.equal(f"4.{c.minor}: SECINFO_NO_NAME of {e}", got.get("flavors"), flavors)
    first = d.exports["all"].strip("/").split("/")[0]
    t.equal(f"4.{c.minor}: SECINFO above them", c.last((n4.PUTROOTFH, b""), (n4.SECINFO, r.name(first))).get("flavors"), [(1,), KRB5, KRB5I, KRB5P])


def test_splices(t, c, handle, file):
    """The head of one export's handle before the tail of another's."""
    theirs, read = file["below"], []
    for head in (file["all"], handle["all"], file["mixed"]):
        for n in range(1, len(theirs)):
            forged = head[:n] + theirs[n:]
            if forged not in file.values() and c.last(n4.putfh(forged), n4.read(n4.ANONYMOUS, 0, 9))["status"] == OK:
                read.append(forged.hex())
    t.equal(f"4.{c.minor}: spliced handles that can be read", read, [])


def test_nfs3(t, d, c):
    c.service = g.PRIVACY
    root = {e: c.mnt(path)[1] for e, path in d.exports.items()}
    file = {e: c.nfs(r.LOOKUP, r.lookup_args(fh, "file"))["fh"] for e, fh in root.items()}
    c.service = g.NONE
    for e in ("secret", "below"):
        for what, proc, args in (("READ", r.READ, r.read_args(file[e], 0, 9)), ("LOOKUP", r.LOOKUP, r.lookup_args(root[e], "file")),
                                 ("LINK out of it", r.LINK, r.link_args(file[e], root["all"], "stolen")),
                                 ("RENAME out of it", r.RENAME, r.rename_args(root[e], "file", root["all"], "stolen"))):
            t.equal(f"NFSv3: {what}, {e}", gss.refusal(c.nfs, proc, args), TOOWEAK)
        for what, proc, args in (("LINK", r.LINK, r.link_args(file["all"], root[e], "stolen")),
                                 ("RENAME", r.RENAME, r.rename_args(root["all"], "file", root[e], "stolen"))):
            t.equal(f"NFSv3: {what} into {e}", c.nfs(proc, args)["status"], XDEV)


def fill(d):
    """A file in each export, and the export below another, which starts with a reload."""
    d.exports["below"] = d.exports["all"] + "/sub"
    os.mkdir(d.exports["below"])
    lines = []
    for e, path in d.exports.items():
        options = {"all": ALL, "mixed": "insecure,sec=krb5p,rw,sec=krb5:krb5i,ro"}.get(e, SECRET)
        lines.append(f"{path} 127.0.0.0/8({options})")
        os.chmod(path, 0o777)
        with open(path + "/file", "w") as f:
            f.write("mine, in " + e)
        os.chmod(path + "/file", 0o666)
    d.write_exports(lines)
    d.reload()


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        with harness.Daemon({"all": ALL, "secret": SECRET, "mixed": SECRET}, gss.settings(realm), env={**os.environ}) as d:
            fill(d)
            with gss.connect(d) as c:
                session = c.session = g.Session(c, realm.login(gss.ALICE))
                test_nfs3(t, d, c)
            for minor in (0, 1, 2):
                test_compounds(t, d, session, minor)
            for e, path in d.exports.items():
                with open(path + "/file") as f:
                    t.equal(f"the file in {e}", f.read(), "mine, in " + e)
                t.equal(f"names in {e}", sorted(os.listdir(path)), sorted(["file"] + (["sub"] if e == "all" else [])))
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
