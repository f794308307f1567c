#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""RQUOTA, by a client of our own: quotas as setquota(8) sets them and as clients use them up, and who may ask. Kernels without quotas
have the second part only; tests/vm/t/v3_acl.sh runs this in the virtual machine."""
import os
import struct

import harness
import mounts
import rpcclient as r
from harness import Daemon
from rpcclient import name, u32

RQUOTA, GETQUOTA, GETACTIVE, SET = 100011, 1, 2, 3
OK, NOQUOTA, EPERM = 1, 2, 3
USER, GROUP = 0, 1
KIB = 1024
WEEK = 7 * 86400
WORDS = "block active hard soft used files_hard files_soft files left files_left".split()
OPTIONS = "rw,insecure,no_root_squash"


def get(conn, path, ident, kind=None, proc=GETQUOTA, cred=r.ROOT):
    """The status, or the quota as a dictionary. kind: of version 2; None: by version 1."""
    args = name(path) + (b"" if kind is None else u32(kind)) + u32(ident)
    x = conn.call(RQUOTA, 1 if kind is None else 2, proc, args, cred)
    status = x.u32()
    row = dict(zip(WORDS, struct.unpack(">8Iii", x.take(40)))) if status == OK else status
    x.end()
    return row


def refusal(conn, vers, proc, args, cred=r.ROOT):
    try:
        conn.call(RQUOTA, vers, proc, args, cred)
    except r.Refused as e:
        return e.why
    return None


def test_manners(t, d, c):
    path, user = d.exports["plain"], r.auth_sys(1005, 100, (2005,))
    there = (OK, NOQUOTA)  # as the file system has quotas or not

    def allowed(answer):
        return isinstance(answer, dict) or answer in there

    t.check("a user about himself", allowed(get(c, path, 1005, cred=user)) and allowed(get(c, path, 1005, USER, cred=user)))
    t.equal("about another", [get(c, path, 1006, kind, cred=user) for kind in (None, USER)], [EPERM] * 2)
    t.check("about his groups", allowed(get(c, path, 100, GROUP, cred=user)) and allowed(get(c, path, 2005, GROUP, cred=user)))
    t.equal("about another's group", get(c, path, 2006, GROUP, cred=user), EPERM)
    t.check("root about anybody", allowed(get(c, path, 1006)) and allowed(get(c, path, 2006, GROUP)))
    t.equal("a path that is not exported", get(c, "/etc", 1005), NOQUOTA)
    t.equal("a path that is not there", get(c, path + "/no", 1005), NOQUOTA)
    t.equal("SETQUOTA", c.call(RQUOTA, 1, SET, u32(0x800006) + name(path) + 9 * u32(0)).u32(), EPERM)
    t.equal("SETQUOTA of version 2", c.call(RQUOTA, 2, SET, u32(0x800006) + name(path) + 10 * u32(0)).u32(), EPERM)
    t.equal("without an identity", refusal(c, 1, GETQUOTA, name(path) + u32(0), r.auth_none()), "AUTH_ERROR")
    for vers, args in ((1, name(path) + u32(1)), (2, name(path) + u32(0) + u32(1))):
        cut = {refusal(c, vers, GETACTIVE, args[:n]) for n in range(0, len(args), 4)}
        t.equal(f"version {vers}, cut short", cut, {"GARBAGE_ARGS"})
    t.equal("a path of 1025 bytes", refusal(c, 1, GETQUOTA, name("/" * 1025) + u32(0)), "GARBAGE_ARGS")


def test_quotas(t, d, c):
    path = d.exports["quota"]
    mounts.must("setquota", "-u", "1005", "64", "128", "3", "5", path)
    mounts.must("setquota", "-g", "2005", "0", "4096", "0", "0", path)
    user = r.auth_sys(1005, 2005)
    empty = {"block": KIB, "active": 1, "hard": 128, "soft": 64, "used": 0, "files_hard": 5, "files_soft": 3, "files": 0, "left": 0,
             "files_left": 0}
    t.equal("limits as set", get(c, path, 1005, cred=user), empty)
    t.equal("by each procedure", [get(c, path, 1005, kind, proc) for kind in (None, USER) for proc in (GETQUOTA, GETACTIVE)], [empty] * 4)
    group = get(c, path, 2005, GROUP, cred=user)
    t.equal("those of a group", (group["hard"], group["soft"], group["files_hard"]), (4096, 0, 0))
    nobody = get(c, path, 1234567)
    t.equal("of somebody without limits", (nobody["hard"], nobody["soft"], nobody["used"]), (0, 0, 0))
    root = d.root(c, "quota")
    for i in range(4):
        fh = c.nfs(r.CREATE, r.create_args(root, f"file{i}"), cred=user)["fh"]
    status = c.nfs(r.WRITE, r.write_args(fh, 0, bytes(96 * KIB)), cred=user)["status"]
    t.equal("a WRITE above the soft limit", status, r.OK)
    row = get(c, path, 1005, cred=user)
    t.check("is counted", 96 <= row["used"] <= 120 and row["files"] == 4, row)
    t.check("and has a week", WEEK - 600 < row["left"] <= WEEK and WEEK - 600 < row["files_left"] <= WEEK, row)
    t.check("it counts for the group", get(c, path, 2005, GROUP)["used"] >= 96)
    res = c.nfs(r.WRITE, r.write_args(fh, 96 * KIB, bytes(96 * KIB)), cred=user)
    t.check("a WRITE ends at the hard limit", res["status"] == r.DQUOT or res["count"] <= 32 * KIB, res)
    status = c.nfs(r.WRITE, r.write_args(fh, 128 * KIB, bytes(96 * KIB)), cred=user)["status"]
    t.equal("and one above it is refused", status, r.DQUOT)
    t.check("no more is used than may be", get(c, path, 1005, cred=user)["used"] <= 128)
    big = 1 << 42
    mounts.must("setquota", "-u", "1006", "0", str(big >> 10 << 3), "0", "0", path)
    row = get(c, path, 1006)
    t.check("a limit of more than 32 bits", row["block"] > KIB and row["block"] * row["hard"] == big << 3, row)


def test_ports(t):
    other = harness.free_port()
    with Daemon({"plain": OPTIONS}, {"tcp.rquota_port": other}) as d:
        t.check("the port is logged", d.wait_log(f"RQUOTA on TCP port {other}"))
        with d.connect() as c, r.Conn(other) as further:
            t.equal("both ports answer", get(c, d.exports["plain"], 5), get(further, d.exports["plain"], 5))
        d.stop()
    with Daemon({"plain": OPTIONS}, {"nfs3.rquota": "no"}) as d:
        with d.connect() as c:
            t.equal("nfs3.rquota=no", refusal(c, 1, 0, b""), "PROG_UNAVAIL")
        d.stop()


def with_quotas(d):
    """Why there can be no file system with quotas, or None."""
    image = f"{d.top}/quota.img"
    with open(image, "wb") as f:
        f.truncate(64 << 20)
    mounts.must("mkfs.ext4", "-q", "-O", "quota", "-E", "quotatype=usrquota:grpquota,root_owner", image)
    if why := mounts.mount_image(image, d.exports["quota"], "loop,usrquota,grpquota"):
        return why
    os.chmod(d.exports["quota"], 0o777)
    return None


def main():
    mounts.own_namespace()
    t = harness.Count()
    test_ports(t)
    d = Daemon({"plain": OPTIONS, "quota": OPTIONS})
    why = with_quotas(d)
    with d:
        with d.connect() as c:
            test_manners(t, d, c)
            if why:
                t.skip("quotas", why.splitlines()[0])
                t.equal("no quotas there", get(c, d.exports["quota"], 5), NOQUOTA)
            else:
                test_quotas(t, d, c)
        harness.finish(t, d)
        mounts.umount(d.exports["quota"])
    harness.result(t)


if __name__ == "__main__":
    main()
