#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""POSIX ACLs by NFSv4.2 (draft-ietf-nfsv4-posix-acls): what is shown is what getfacl(1) finds on the server and the other way round;
what is made with ACLs and what inherits them; what is refused, and that nothing has changed then; names, by Kerberos too."""
import os
import subprocess
import time

import attributes
import gss
import gssclient as g
import kdc
import mounts
import nfs4client as n4
import rpcclient as r
from attributes import bits, has, words_of
from harness import Count, Daemon, finish, result
from nfs4client import CREATE, GETATTR, OPEN, READDIR, SETATTR, VERIFY, NVERIFY, putfh
from nfsacl import ACCESS_NAME, DEFAULT_NAME
from rpcclient import opaque, u32, u64

ACL, MODE, SUPPORTED, EXCLCREAT, RDATTR_ERROR, MODE_UMASK = 12, 33, 0, 75, 11, 81
TRUEFORM, SCOPE, DEFAULT, ACCESS = NEW = 89, 90, 91, 92
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = range(1, 7)
POSIX, NONE, FILE_SYSTEM = 2, 3, 2
OK, PERM, INVAL, NOSPC, ROFS, ATTRNOTSUPP, BADXDR, BADOWNER = 0, 1, 22, 28, 30, 10032, 10036, 10039
REQ_TOO_BIG = 10065
NF4DIR, NF4FIFO = 2, 7
NAMED = [(USER_OBJ, 6, b""), (USER, 6, b"1005"), (GROUP_OBJ, 4, b""), (GROUP, 4, b"2005"), (MASK, 6, b""), (OTHER, 0, b"")]
SHOWN = ["user::rw-", "user:1005:rw-", "group::r--", "group:2005:r--", "mask::rw-", "other::---"]
PLAIN = [(USER_OBJ, 6, b""), (GROUP_OBJ, 4, b""), (OTHER, 0, b"")]
FOLDER = [(USER_OBJ, 7, b""), (USER, 7, b"1005"), (GROUP_OBJ, 5, b""), (MASK, 7, b""), (OTHER, 0, b"")]
MANY = [(USER_OBJ, 7, b"")] + [(USER, i % 8, b"%d" % (3000 + i)) for i in range(596)] + [(GROUP_OBJ, 5, b""), (MASK, 7, b""), (OTHER, 0, b"")]
OPTIONS = "insecure,no_root_squash"
EXPORTS = {"rw": "rw," + OPTIONS, "hidden": "rw,no_acl," + OPTIONS, "ro": "ro," + OPTIONS, "big": "rw," + OPTIONS}


def entry(tag, perm, who):
    return u32(tag) + u32(perm) + opaque(who)


def posix(acl):
    return u32(len(acl)) + b"".join(entry(*e) for e in acl)


def get_acl(x):
    return [(x.u32(), x.u32(), x.opaque()) for _ in range(x.u32())]


def fattr(values):
    """Of {attribute: value}."""
    return bits(*values) + opaque(b"".join(values[n] for n in sorted(values)))


class Calls:
    """Calls that this test makes, for a client of any flavour."""

    keeps = False  # long replies

    def compound(self, *ops):
        """Asked again while the name service is asked."""
        for _ in range(300):
            results = super().compound(*ops)
            if results[-1]["status"] != n4.DELAY:
                break
            time.sleep(0.05)
        return results

    def asked(self, fh, *numbers):
        return self.last(putfh(fh), (GETATTR, bits(*numbers)))

    def acl(self, fh, number=ACCESS):
        """None: the attribute is not there."""
        res = self.asked(fh, number)
        if not has(res["mask"], number):
            return None
        x = r.In(res["attrs"])
        acl = get_acl(x)
        x.end()
        return acl

    def number(self, fh, number):
        res = self.asked(fh, number)
        return int.from_bytes(res["attrs"], "big") if has(res["mask"], number) else None

    def change(self, fh, **values):
        """SETATTR of access, default, mode, acl: the status."""
        numbers = {"access": ACCESS, "default": DEFAULT, "mode": MODE, "acl": ACL}
        args = {numbers[k]: posix(v) if isinstance(v, list) else v for k, v in values.items()}
        res = self.last(putfh(fh), (SETATTR, n4.ANONYMOUS + fattr(args)))
        if not res["status"] and any(not has(res["set"], n) for n in args):
            raise ValueError(f"not set: {res}")
        return res["status"]

    def make(self, fh, name, values, kind=NF4DIR):
        return self.last(putfh(fh), (CREATE, u32(kind) + r.name(name) + fattr(values)))["status"]

    def make_file(self, fh, name, values, how=1, claim=None):
        """OPEN that creates: GUARDED4, or EXCLUSIVE4_1 (3)."""
        attrs = (b"verifier" if how == 3 else b"") + fattr(values)
        args = self._open_owner(n4.SHARE_BOTH | n4.WANT_NO_DELEG, 0) + u32(1) + u32(how) + attrs
        return self.last(putfh(fh), (OPEN, args + (u32(n4.CLAIM_NULL) + r.name(name) if claim is None else claim)))["status"]


class Client(Calls, attributes.Client):
    pass


class GssClient(Calls, gss.Client4):
    pass


def facl(path, *options):
    """Lines of getfacl(1)."""
    out = subprocess.run(["getfacl", "-ncpE", *options, path], capture_output=True, text=True, check=True).stdout
    return [line for line in out.splitlines() if line]


def setfacl(*args):
    subprocess.run(["setfacl", *args], check=True)


def raw(path):
    """Both ACLs and the mode as they are on disk."""
    def get(name):
        try:
            return os.getxattr(path, name)
        except OSError:
            return None
    return os.stat(path).st_mode, get(ACCESS_NAME), get(DEFAULT_NAME)


def place(d, export, name, folder=False, mode=None):
    path = os.path.join(d.exports[export], name)
    os.mkdir(path) if folder else open(path, "w").close()
    os.chmod(path, mode if mode is not None else 0o755 if folder else 0o640)
    return path


def test_absent(t, c, fh, what):
    """As attributes that nobody knows."""
    supported, exclusive = (words_of(c.value(fh, n)) for n in (SUPPORTED, EXCLCREAT if c.minor else SUPPORTED))
    t.equal(f"{what}: supported", [n for n in NEW if has(supported, n) or has(exclusive, n)], [])
    res = c.asked(fh, MODE, *NEW)
    t.equal(f"{what}: GETATTR", (res["status"], [n for n in (MODE, *NEW) if has(res["mask"], n)]), (0, [MODE]))
    t.equal(f"{what}: SETATTR", [c.change(fh, access=NAMED), c.change(fh, default=NAMED)], [ATTRNOTSUPP] * 2)
    values = {TRUEFORM: u32(POSIX), SCOPE: u32(FILE_SYSTEM), DEFAULT: posix(PLAIN), ACCESS: posix(PLAIN)}
    got = [c.last(putfh(fh), (op, fattr({n: v})))["status"] for op in (VERIFY, NVERIFY) for n, v in values.items()]
    t.equal(f"{what}: VERIFY and NVERIFY", got, [ATTRNOTSUPP] * 8)


def test_off(t, exports):
    with Daemon(exports) as d:
        c = Client(d, "off")
        test_absent(t, c, c.path(place(d, "rw", "file")), "off")
        t.equal("off: OPEN", c.make_file(c.path(d.exports["rw"]), "made", {ACCESS: posix(NAMED)}), ATTRNOTSUPP)
        c.close()
        finish(t, d)


def test_shown(t, d, c):
    fh = c.path(path := place(d, "rw", "shown"))
    supported, exclusive = (words_of(c.value(fh, n)) for n in (SUPPORTED, EXCLCREAT))
    t.equal("supported", [n for n in NEW if has(supported, n)], [*NEW])
    t.equal("with EXCLUSIVE4_1", [n for n in NEW if has(exclusive, n)], [DEFAULT, ACCESS])
    t.equal("the model, and where it holds", (c.number(fh, TRUEFORM), c.number(fh, SCOPE)), (POSIX, FILE_SYSTEM))
    t.equal("a mode is an ACL", c.acl(fh), PLAIN)
    t.equal("a file's default ACL", c.acl(fh, DEFAULT), [])
    setfacl("-m", "u:1005:rw,g:2005:r,o::-", path)
    t.equal("what setfacl has set", c.acl(fh), NAMED)
    os.chmod(path, 0o640)
    t.equal("a chmod changes the mask", c.acl(fh), [(tag, 4 if tag == MASK else p, w) for tag, p, w in NAMED])
    fh = c.path(path := place(d, "rw", "folder", True))
    t.equal("a directory without a default ACL", c.acl(fh, DEFAULT), [])
    setfacl("-m", "d:u::rwx,d:u:1005:rwx,d:g::rx,d:o::-", path)
    t.equal("a default ACL", c.acl(fh, DEFAULT), FOLDER)
    t.equal("beside which", c.acl(fh), [(USER_OBJ, 7, b""), (GROUP_OBJ, 5, b""), (OTHER, 5, b"")])
    os.symlink("shown", path + "/link")
    link = c.path(path + "/link")
    t.equal("a symbolic link's", (c.acl(link), c.acl(link, DEFAULT)), ([(tag, 7, b"") for tag in (USER_OBJ, GROUP_OBJ, OTHER)], []))
    t.equal("which cannot be set", c.change(link, access=PLAIN), ATTRNOTSUPP)
    root = c.last((n4.PUTROOTFH, b""), (GETATTR, bits(*NEW)))
    t.equal("the pseudo file system", (has(root["mask"], ACCESS), has(root["mask"], DEFAULT), root["attrs"]), (False, False, u32(NONE) + u32(FILE_SYSTEM)))


def test_set(t, d, c):
    fh = c.path(path := place(d, "rw", "set"))
    t.equal("SETATTR, in any order", c.change(fh, access=NAMED[::-1]), OK)
    t.equal("as getfacl sees it", (facl(path), c.acl(fh)), (SHOWN, NAMED))
    t.equal("a mode beside it", (c.change(fh, access=NAMED, mode=u32(0o1777)), oct(os.stat(path).st_mode & 0o7777)), (OK, "0o1660"))
    t.equal("as permission bits", (c.change(fh, access=PLAIN), raw(path)[1:]), (OK, (None, None)))
    t.equal("no entries", (c.change(fh, access=NAMED), c.change(fh, access=[]), raw(path)[1]), (OK, OK, None))
    t.equal("a file's default ACL of no entries", c.change(fh, default=[]), OK)
    wordy = [(tag, p, w or b"whatever") for tag, p, w in NAMED]
    t.equal("names where there are none", (c.change(fh, access=wordy), facl(path)), (OK, SHOWN))
    fh = c.path(path := place(d, "rw", "both", True))
    t.equal("both", c.change(fh, access=FOLDER, default=NAMED), OK)
    t.equal("as getfacl sees them", facl(path, "-d"), SHOWN)
    before = raw(path)
    t.equal("the access ACL alone", (c.change(fh, access=NAMED), raw(path)[2]), (OK, before[2]))
    before = raw(path)
    t.equal("the default ACL alone", (c.change(fh, default=FOLDER), raw(path)[:2], c.acl(fh, DEFAULT)), (OK, before[:2], FOLDER))
    t.equal("taken away", (c.change(fh, default=[]), raw(path)), (OK, before[:2] + (None,)))


def test_refused(t, d, c):
    fh = c.path(path := place(d, "rw", "refused", True))
    setfacl("-m", "u:1005:rw,d:g:2005:r", path)
    before = raw(path)
    swap = lambda i, e: NAMED[:i] + [e] + NAMED[i + 1:]  # noqa: E731
    for what, acl, want in (
            ("one entry", NAMED[:1], INVAL), ("two entries", PLAIN[:2], INVAL), ("no mask", NAMED[:4] + NAMED[5:], INVAL),
            ("no owner", NAMED[1:], INVAL), ("an entry twice", NAMED + NAMED[5:], INVAL), ("a user twice", NAMED + [(USER, 1, b"1005")], INVAL),
            ("a tag of 0", swap(0, (0, 6, b"")), BADXDR), ("a tag of 7", swap(0, (7, 6, b"")), BADXDR),
            ("a permission of 8", swap(1, (USER, 8, b"1005")), BADXDR), ("a user without a name", swap(1, (USER, 6, b"")), BADXDR),
            ("a group without a name", swap(3, (GROUP, 6, b"")), BADXDR), ("nobody's name", swap(1, (USER, 6, b"nobody@no.where")), BADOWNER),
            ("no group's", swap(3, (GROUP, 6, b"GROUP@")), BADOWNER), ("no id", swap(1, (USER, 6, b"4294967295")), BADOWNER),
            ("no UTF-8", swap(1, (USER, 6, b"\xff\xfe")), INVAL), ("a long name", swap(1, (USER, 6, b"x" * 300)), BADOWNER),
            ("1,025 entries", NAMED + [(USER, 4, b"%d" % (9000 + i)) for i in range(1019)], NOSPC)):
        t.equal(f"{what}: SETATTR", [c.change(fh, access=acl), c.change(fh, default=acl)], [want] * 2)
        made = [c.make_file(fh, "file", {ACCESS: posix(acl)}), c.make(fh, "sub", {DEFAULT: posix(acl), MODE: u32(0o700)})]
        t.equal(f"{what}: OPEN and CREATE", made, [want] * 2)
    for what, value in (("more entries than there are", u32(7) + posix(NAMED)[4:]), ("2^32 entries", u32(0xffffffff)), ("half an entry", posix(NAMED)[:-4]),
                        ("a long name that is not there", u32(3) + u32(2) + u32(6) + u32(0xfffffff0)), ("more than the array", posix(NAMED) + u32(0))):
        got = [c.change(fh, access=value), c.make_file(fh, "file", {ACCESS: value})]
        t.equal(f"{what}", got, [BADXDR] * 2)
    ace = u32(1) + u32(0) + u32(0) + u32(1) + opaque(b"OWNER@")
    t.equal("with attribute acl", [c.change(fh, acl=ace, access=NAMED), c.change(fh, acl=ace, default=NAMED)], [INVAL] * 2)
    t.equal("what can only be read", [c.last(putfh(fh), (SETATTR, n4.ANONYMOUS + fattr({n: u32(2)})))["status"] for n in NEW[:2]], [INVAL] * 2)
    t.equal("a FIFO's default ACL", c.make(fh, "fifo", {DEFAULT: posix(NAMED)}, NF4FIFO), INVAL)
    file = c.path(place(d, "rw", "nodefault"))
    t.equal("a file's default ACL", (c.change(file, default=NAMED), c.make_file(fh, "file", {DEFAULT: posix(NAMED)})), (INVAL, INVAL))
    for op, same in ((VERIFY, OK), (NVERIFY, 10009)):
        got = [c.last(putfh(fh), (op, fattr({n: posix(c.acl(fh, n))})))["status"] for n in (DEFAULT, ACCESS)]
        t.equal(f"operation {op} of ACLs", got, [INVAL] * 2)
        t.equal(f"operation {op} of the model", c.last(putfh(fh), (op, fattr({TRUEFORM: u32(POSIX), SCOPE: u32(FILE_SYSTEM)})))["status"], same)
    t.equal("a claim that is malformed behind an ACL", [c.make_file(fh, "file", {ACCESS: posix(NAMED)}, claim=u32(n)) for n in (0, 99)], [BADXDR] * 2)
    t.equal("nothing has changed", (raw(path), os.listdir(path)), (before, []))
    other = Client(d, "stranger", uid=1006)
    t.equal("another user's", (other.change(fh, access=PLAIN), other.change(fh, default=[])), (PERM, PERM))
    t.equal("who may look", other.acl(fh), c.acl(fh))
    other.close()


def test_made(t, d, c):
    fh = c.path(path := place(d, "rw", "plain", True))
    t.equal("OPEN with an ACL", c.make_file(fh, "file", {ACCESS: posix(NAMED), MODE: u32(0o4777)}), OK)
    t.equal("which has the last word", (facl(path + "/file"), oct(os.stat(path + "/file").st_mode & 0o7777)), (SHOWN, "0o4660"))
    t.equal("EXCLUSIVE4_1", (c.make_file(fh, "once", {ACCESS: posix(NAMED), MODE_UMASK: u32(0o666) + u32(0o77)}, how=3), facl(path + "/once")), (OK, SHOWN))
    t.equal("a FIFO", (c.make(fh, "fifo", {ACCESS: posix(NAMED)}, NF4FIFO), facl(path + "/fifo")), (OK, SHOWN))
    t.equal("a directory", c.make(fh, "sub", {ACCESS: posix(NAMED), DEFAULT: posix(FOLDER), MODE: u32(0o777)}), OK)
    sub = c.path(path + "/sub")
    t.equal("with both", (c.acl(sub), c.acl(sub, DEFAULT)), (NAMED, FOLDER))
    t.equal("a default ACL alone", c.make(fh, "half", {DEFAULT: posix(FOLDER), MODE_UMASK: u32(0o777) + u32(0o27)}), OK)
    half = c.path(path + "/half")
    t.equal("leaves the rest to mode and umask", (oct(os.stat(path + "/half").st_mode & 0o7777), raw(path + "/half")[1], c.acl(half, DEFAULT)), ("0o750", None, FOLDER))


def test_inherited(t, d, c):
    fh = c.path(path := place(d, "rw", "above", True))
    setfacl("-m", "d:u::rwx,d:u:1005:rwx,d:g::rx,d:o::-", path)
    umask = {MODE_UMASK: u32(0o666) + u32(0o77)}
    t.equal("a file inherits", (c.make_file(fh, "heir", umask), c.acl(c.path(path + "/heir"))),
            (OK, [(USER_OBJ, 6, b""), (USER, 7, b"1005"), (GROUP_OBJ, 5, b""), (MASK, 6, b""), (OTHER, 0, b"")]))
    t.equal("unless it has its own", (c.make_file(fh, "own", {ACCESS: posix(NAMED), **umask}), facl(path + "/own")), (OK, SHOWN))
    t.equal("or none", (c.make_file(fh, "bare", {ACCESS: posix([]), **umask}), raw(path + "/bare")[1], oct(os.stat(path + "/bare").st_mode & 0o777)), (OK, None, "0o600"))
    t.equal("a directory", (c.make(fh, "sub", {ACCESS: posix(NAMED)}), facl(path + "/sub")[:6]), (OK, SHOWN))
    t.equal("inherits what it is not given", c.acl(c.path(path + "/sub"), DEFAULT), FOLDER)
    t.equal("and not what it is given", (c.make(fh, "last", {DEFAULT: posix([]), MODE: u32(0o777)}), c.acl(c.path(path + "/last"), DEFAULT)), (OK, []))
    t.equal("but the other", c.acl(c.path(path + "/last")), FOLDER)


def test_decides(t, d, c):
    """The kernel enforces it."""
    fh = c.path(place(d, "rw", "kept", mode=0o600))
    c.change(fh, access=[(USER_OBJ, 6, b""), (USER, 4, b"1005"), (GROUP_OBJ, 0, b""), (MASK, 4, b""), (OTHER, 0, b"")])
    got = []
    for uid in (1005, 1006):
        who = Client(d, f"user {uid}", uid=uid)
        got.append([who.last(putfh(fh), op)["status"] for op in (n4.read(n4.ANONYMOUS, 0, 10), n4.write(n4.ANONYMOUS, 0, b"x"))])
        who.close()
    t.equal("who may read and write", got, [[OK, r.ACCES], [r.ACCES, r.ACCES]])


def test_listed(t, d, c):
    fh = c.path(path := place(d, "rw", "listed", True))
    for name in ("file", "named"):
        place(d, "rw", "listed/" + name)
    place(d, "rw", "listed/sub", True)
    os.symlink("file", path + "/link")
    setfacl("-m", "u:1005:rw,g:2005:r,o::-", path + "/named")
    setfacl("-m", "d:u::rwx,d:u:1005:rwx,d:g::rx,d:o::-", path + "/sub")
    listed = c.last(putfh(fh), (READDIR, u64(0) + bytes(8) + u32(100000) + u32(100000) + bits(RDATTR_ERROR, *NEW)))["entries"]
    got = {}
    for name, (mask, attrs) in listed.items():
        x = r.In(attrs)
        got[name] = x.u32(), x.u32(), x.u32(), get_acl(x), get_acl(x)
        x.end()
    want = {n.encode(): (OK, POSIX, FILE_SYSTEM, c.acl(f := c.path(f"{path}/{n}"), DEFAULT), c.acl(f)) for n in ("file", "named", "sub", "link")}
    t.equal("READDIR", got, want)
    t.equal("of which", (got[b"named"][4], got[b"sub"][3]), (NAMED, FOLDER))


def test_exports(t, d, c):
    fh = c.path(path := place(d, "hidden", "file"))
    setfacl("-m", "u:1005:rw", path)
    t.equal("no_acl: the model", (c.number(fh, TRUEFORM), c.acl(fh), c.acl(fh, DEFAULT)), (NONE, None, None))
    t.equal("no_acl: supported", [n for n in NEW if has(words_of(c.value(fh, SUPPORTED)), n)], [TRUEFORM, SCOPE])
    t.equal("no_acl: SETATTR and OPEN", (c.change(fh, access=PLAIN), c.make_file(c.path(d.exports["hidden"]), "x", {ACCESS: posix(PLAIN)})), (ATTRNOTSUPP,) * 2)
    t.equal("no_acl: the ACL stays", facl(path)[1], "user:1005:rw-")
    place(d, "ro", "file")
    fh = c.path(d.exports["ro"] + "/file")
    t.equal("ro", (c.acl(fh), c.change(fh, access=NAMED)), (PLAIN, ROFS))
    fh = c.path(path := place(d, "big", "many", True))
    t.equal("600 entries, from the last on", c.change(fh, access=MANY[::-1]), OK)
    t.equal("and back", (c.acl(fh) == MANY, len(facl(path))), (True, len(MANY)))
    t.equal("1,200 entries at once", (c.change(fh, access=MANY, default=MANY), raw(path)[2]), (REQ_TOO_BIG, None))
    t.equal("one after the other", (c.change(fh, default=MANY), c.acl(fh, DEFAULT) == MANY), (OK, True))


def test_minors(t, d):
    for minor in (0, 1):
        c = Client(d, f"minor {minor}", minor=minor)
        test_absent(t, c, c.path(place(d, "rw", f"minor{minor}")), f"4.{minor}")
        c.close()


def test_names(t, realm):
    """A client that knows users by name is shown names, and sets them."""
    with Daemon({"krb": "sec=krb5i,rw,insecure"}, {**gss.settings(realm), "nfs4.posix_acls": "yes"}, env={**os.environ}) as d:
        path = place(d, "krb", "file")
        os.chown(path, gss.UIDS[gss.ALICE], 0)
        with gss.connect(d) as conn:
            c = GssClient(d.port, g.Session(conn, realm.login(gss.ALICE)), g.INTEGRITY, "names", minor=2)
            c.register()
            c.reclaim_complete()
            fh = c.path(path)
            owner = r.In(c.asked(fh, 36)["attrs"]).opaque()
            domain = owner[owner.index(b"@"):]
            bob = [(tag, p, gss.BOB.encode() + domain if tag == USER else b"root" + domain if tag == GROUP else w) for tag, p, w in NAMED]
            t.equal("an ACL with names", c.change(fh, access=bob), OK)
            t.equal("on disk", (facl(path)[1], facl(path)[3]), (f"user:{gss.UIDS[gss.BOB]}:rw-", "group:0:r--"))
            t.equal("and back", c.acl(fh), bob)
            t.equal("one of nobody", c.change(fh, access=[(tag, p, b"nowhere" + domain if tag == USER else w) for tag, p, w in NAMED]), BADOWNER)
            t.equal("numbers", (c.change(fh, access=NAMED), facl(path)), (OK, SHOWN))
            c.close()
        finish(t, d)


def get_entries(x, res):
    res.update(verf=x.take(8), entries={})
    while x.flag():
        x.u64()
        name = x.opaque()
        res["entries"][name] = n4._bitmap(x), x.opaque()
    res["eof"] = x.flag()


def main():
    n4.RESULTS[READDIR] = get_entries
    mounts.own_namespace()
    t = Count()
    test_off(t, {"rw": EXPORTS["rw"]})
    d = Daemon(EXPORTS, {"nfs4.posix_acls": "yes"})
    mounts.must("mount", "-t", "tmpfs", "none", d.exports["big"])  # ext4 has room for half of the entries
    with d:
        c = Client(d, "owner")
        for test in (test_shown, test_set, test_refused, test_made, test_inherited, test_decides, test_listed, test_exports):
            test(t, d, c)
        c.close()
        test_minors(t, d)
        finish(t, d)
        mounts.umount(d.exports["big"])
    if kdc.missing():
        t.skip("names by Kerberos", f"not installed: {', '.join(kdc.missing())}")
    else:
        with kdc.Realm() as realm:
            os.environ.update(realm.env)
            test_names(t, realm)
    result(t)


if __name__ == "__main__":
    main()
