#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Datagrams: MOUNT, locks, quotas and NFS over UDP; calls that are sent again; what is no call; strangers; floods; and that nobody is
sent more than was asked for in his name."""
import os
import struct
import socket
import time

import harness
import rpcclient as r
from control import Control
from rpcclient import opaque, u32, u64
from scrape import Growth, await_value, scrape, value
from udpclient import Datagrams

NLM, NSM, NFSACL, RQUOTA = 100021, 100024, 100227, 100011
DATA, RATION = 32 << 10, 64 << 10
EXPORTS = 40
OPTIONS = "rw,insecure,no_root_squash"
HOSTS = ("127.0.0.0/29", "::1")  # 127.0.0.9 is a stranger
STRANGER = "127.0.0.9"
REASONS = ("no_call", "too_long", "busy", "memory", "rationed", "not_sent", "duplicate")


def refusal(c, *call, **kw):
    try:
        c.call(*call, **kw)
    except r.Refused as e:
        return (e.why, *e.data)
    return "served"


def dropped(g, reason):
    return g.of("ringnfs_udp_dropped_total", reason=reason)


def awaited(d, g, reason):
    """True if that many more datagrams are dropped, soon."""
    def has(n):
        return await_value(d, "ringnfs_udp_dropped_total", lambda v: v >= value(g.before, "ringnfs_udp_dropped_total", reason=reason) + n,
                           reason=reason) == value(g.before, "ringnfs_udp_dropped_total", reason=reason) + n
    return has


def test_programs(t, d):
    """What is served without udp.nfs."""
    path = d.exports["x"]
    with Datagrams(d.port) as c:
        t.equal("MNT of version 3", c.mnt(path)[0], r.OK)
        t.equal("MNT of version 1", c.mnt(path, vers=1)[0], r.OK)
        t.equal("UMNT", c.call(r.MOUNT, 3, r.UMNT, r.name(path)).end(), None)
        fh = c.mnt(path)[1]
        t.equal("NFSv3", refusal(c, r.NFS, 3, r.GETATTR, opaque(fh)), ("PROG_UNAVAIL",))
        t.equal("NFSv4", refusal(c, r.NFS, 4, 1, b"\0" * 12), ("PROG_UNAVAIL",))
        t.equal("NFSACL", refusal(c, NFSACL, 3, 1, opaque(fh) + u32(0)), ("PROG_UNAVAIL",))
        t.equal("the status monitor, which has a port of its own", refusal(c, NSM, 1, 0), ("PROG_UNAVAIL",))
        t.equal("another version of MOUNT", refusal(c, r.MOUNT, 9, 0), ("PROG_MISMATCH", 1, 3))
        t.equal("NLM", c.call(NLM, 4, 0).end(), None)
        t.equal("RQUOTA", c.call(RQUOTA, 1, 0).end(), None)


def lock(c, fh, proc, svid, block=False):
    args = opaque(b"cookie")
    if proc == 2:
        args += u32(int(block)) + u32(1)
    args += opaque(b"client") + opaque(fh) + opaque(b"%d" % svid) + u32(svid) + u64(0) + u64(10)
    if proc == 2:
        args += u32(0) + u32(0)
    x = c.call(NLM, 4, proc, args)
    x.opaque()
    return x.u32()


def test_locks(t, d):
    """A lock that is taken over UDP stands against one over TCP, and the other way round."""
    with Datagrams(d.port) as c, d.connect() as s:
        fh = s.nfs(r.CREATE, r.create_args(d.root(s, "x"), "locked"))["fh"]
        t.equal("LOCK over UDP", lock(c, fh, 2, 1), 0)
        t.equal("the same lock over TCP", lock(s, fh, 2, 2), 1)
        t.equal("UNLOCK over UDP", lock(c, fh, 4, 1), 0)
        t.equal("LOCK over TCP", lock(s, fh, 2, 2), 0)
        t.equal("the same lock over UDP", lock(c, fh, 2, 1), 1)
        # Nobody's locks go because somebody says so in his name.
        t.equal("FREE_ALL over UDP", c.call(NLM, 4, 23, opaque(b"client") + u32(0)).end(), None)
        t.equal("frees nothing", lock(c, fh, 2, 1), 1)
        t.equal("UNLOCK over TCP", lock(s, fh, 4, 2), 0)


def test_nfs(t, d):
    with Datagrams(d.port) as c:
        root = c.mnt(d.exports["x"])[1]
        t.equal("NFSv4", refusal(c, r.NFS, 4, 1, b"\0" * 12), ("PROG_MISMATCH", 3, 3))
        info = c.nfs(r.FSINFO, r.fsinfo_args(root))
        t.equal("sizes", (info["rtmax"], info["wtmax"]), (DATA, DATA))
        fh = c.nfs(r.CREATE, r.create_args(root, "file"))["fh"]
        data = os.urandom(DATA)
        t.equal("WRITE", c.nfs(r.WRITE, r.write_args(fh, 0, data))["count"], DATA)
        t.equal("WRITE of an odd length", c.nfs(r.WRITE, r.write_args(fh, DATA, b"abc"))["count"], 3)
        t.equal("READ", c.nfs(r.READ, r.read_args(fh, 0, DATA))["data"], data)
        t.equal("READ of more", len(c.nfs(r.READ, r.read_args(fh, 1, 1 << 20))["data"]), DATA)
        t.equal("READ of an odd length", c.nfs(r.READ, r.read_args(fh, DATA, 100))["data"], b"abc")
        for i in range(300):
            open(os.path.join(d.exports["x"], f"some-file-with-a-name-{i}"), "w").close()
        got = c.nfs(r.READDIRPLUS, r.readdirplus_args(root, dircount=1 << 20, maxcount=1 << 20))
        t.check("READDIRPLUS", got["status"] == r.OK and len(got["entries"]) > 50, len(got["entries"]))
    with open(os.path.join(d.exports["x"], "file"), "rb") as f:
        t.equal("the file", f.read(), data + b"abc")


def test_again(t, d):
    """Calls that are sent again run once, and each gets the first one's reply."""
    with Datagrams(d.port) as c:
        root = c.mnt(d.exports["x"])[1]
        for proc, args in ((r.CREATE, r.create_args(root, "once", r.GUARDED)), (r.MKDIR, r.mkdir_args(root, "dir")),
                           (r.RENAME, r.rename_args(root, "once", root, "twice")), (r.REMOVE, r.remove_args(root, "twice"))):
            xid = r.next_xid()
            first = c.exchange(r.call_message(r.NFS, 3, proc, args, xid=xid))
            t.equal(f"{r.NAMES[proc]}", r.decode(proc, r.reply_body(first, xid))["status"], r.OK)
            c.replies(0.05)
            for _ in range(5):
                t.equal(f"{r.NAMES[proc]} again", c.exchange(r.call_message(r.NFS, 3, proc, args, xid=xid)), first)
                c.replies(0.05)
        # All at once, as after a network that stood still.
        xid = r.next_xid()
        for _ in range(20):
            c.send(r.call_message(r.NFS, 3, r.CREATE, r.create_args(root, "burst", r.GUARDED), xid=xid))
        replies = c.replies(1)
        t.check("CREATE 20 times at once", replies and len(set(replies)) == 1, len(set(replies)))
        t.equal("its status", r.decode(r.CREATE, r.reply_body(replies[0], xid))["status"], r.OK)
        # Another sender's call with the same xid is another call.
    with Datagrams(d.port) as c:
        got = c.exchange(r.call_message(r.NFS, 3, r.CREATE, r.create_args(root, "burst", r.GUARDED), xid=xid))
        t.equal("of another port", r.decode(r.CREATE, r.reply_body(got, xid))["status"], r.EXIST)


def test_wrong(t, d):
    call = r.call_message(r.MOUNT, 3, 0)
    with Datagrams(d.port) as c:
        with Growth(d) as g:
            for data in (b"", b"x", call[:39], struct.pack(">II", 7, 1) + call[8:], struct.pack(">II", 7, 2) + call[8:]):
                c.send(data)
            is_dropped = awaited(d, g, "no_call")
            t.check("what is no call", is_dropped(5))
        with Growth(d) as g:
            c.send(call + bytes(40000))
            c.send(call + bytes(60000))
            t.check("what is too long", awaited(d, g, "too_long")(2))
        t.equal("no answer to any", c.replies(0.2), [])
        t.equal("garbage", refusal(c, r.MOUNT, 3, r.MNT, u32(5)), ("GARBAGE_ARGS",))
        t.equal("another version of RPC", refusal_of(c, r.call_message(r.MOUNT, 3, 0, rpcvers=3)), ("RPC_MISMATCH", 2, 2))
        for n in range(40, len(call)):  # cut anywhere, and as long as that
            c.send(call[:n])
        t.equal("then", c.call(r.MOUNT, 3, 0).end(), None)


def refusal_of(c, message):
    try:
        r.reply_body(c.exchange(message))
    except r.Refused as e:
        return (e.why, *e.data)
    return "served"


def test_stranger(t, d):
    """Nothing that a stranger sends is answered by more than came."""
    path = d.exports["x"]
    worst = 0
    with Datagrams(d.port) as c:
        fh = c.mnt(path)[1]
    with Datagrams(d.port, source=(STRANGER, 0)) as c:
        for cred in (r.ROOT, r.auth_none()):
            for prog, versions, procs in ((r.MOUNT, (1, 2, 3, 4), 7), (NLM, (1, 3, 4), 24), (r.NFS, (2, 3, 4), 23), (RQUOTA, (1, 2), 6), (NFSACL, (2, 3), 5),
                                          (NSM, (1,), 7), (100000, (2, 3, 4), 5)):
                for vers in versions:
                    for proc in range(procs):
                        for args in (b"", opaque(fh) + u64(0) + u32(DATA), r.name(path)):
                            message = r.call_message(prog, vers, proc, args, cred)
                            worst = max(worst, len(c.exchange(message)) - len(message))
        t.check("replies are no longer than calls", worst <= 0, worst)
        t.equal("EXPORT", refusal(c, r.MOUNT, 3, r.EXPORT), ("AUTH_ERROR", 1))


def test_ration(t, d):
    """Somebody else's calls in the name of a host that is admitted."""
    call = r.call_message(r.MOUNT, 3, r.EXPORT, cred=r.auth_none())
    with Datagrams(d.port, source=("127.0.0.3", 0)) as c:
        size = len(c.exchange(call))
        t.check("the list of exports is long", size > 20 * len(call), size)
        with Growth(d) as g:
            begin = time.monotonic()
            for _ in range(1000):
                c.send(call)
            got = sum(map(len, c.replies(1)))
        seconds = time.monotonic() - begin
        t.check("no more than the ration", got <= (seconds + 2) * RATION + 1000 * len(call), f"{got} bytes in {seconds} s")
        t.check("some were left out", dropped(g, "rationed") >= 1)
        time.sleep(1)
        t.equal("later it is there again", len(c.exchange(call)), size)


def test_flood(t, d, fh):
    """A flood from many ports of one host beside another, whose datagrams may be lost in the full socket meanwhile."""
    call = r.call_message(r.NFS, 3, r.READ, r.read_args(fh, 0, DATA))
    crowd = [Datagrams(d.port, source=("127.0.0.4", 0)) for _ in range(200)]
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                for c in crowd:
                    try:
                        c.send(call)
                    except OSError:
                        pass
        finally:
            os._exit(0)
    try:
        with d.connect(source=("127.0.0.2", 0)) as s:
            for i in range(50):
                t.equal(f"over TCP, {i}", s.nfs(r.GETATTR, opaque(fh))["status"], r.OK)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        for c in crowd:
            c.close()
    with Datagrams(d.port, source=("127.0.0.2", 0)) as c:
        t.equal("over UDP afterwards", c.nfs(r.GETATTR, opaque(fh))["status"], r.OK)


def test_addresses(t, d):
    """Replies come from the address that the call went to."""
    for address in ("127.0.0.1", "127.0.0.5", "127.77.0.1", "::1"):
        with Datagrams(d.port, host=address, source=None if ":" in address else ("127.0.0.1", 0)) as c:
            t.equal(f"a call to {address}", c.call(r.MOUNT, 3, 0).end(), None)
            t.equal(f"MNT at {address}", c.mnt(d.exports["x"])[0], r.OK)


def settled(t, d):
    t.equal("no call is under way", await_value(d, "ringnfs_requests", lambda v: v == 0, transport="udp"), 0)
    t.equal("nobody is connected", await_value(d, "ringnfs_clients", lambda v: v == 0), 0)


def test_metrics(t, d):
    with Growth(d) as g, Datagrams(d.port) as c:
        for _ in range(10):
            c.call(r.MOUNT, 3, 0)
    t.check("calls", g.of("ringnfs_received_calls_total", transport="udp") >= 10)
    t.check("bytes in", g.of("ringnfs_received_bytes_total", transport="udp") >= 400)
    t.check("bytes out", g.of("ringnfs_sent_bytes_total", transport="udp") >= 240)
    values = scrape(d)
    t.equal("reasons", sorted(dict(pairs)["reason"] for name, pairs in values if name == "ringnfs_udp_dropped_total"), sorted(REASONS))
    t.check("UDP has no connections", not any(dict(pairs).get("transport") == "udp" for name, pairs in values if name == "ringnfs_connections"))


def companions(t):
    """The settings as they are by default."""
    names = {"x": OPTIONS} | {f"export-{i}": OPTIONS for i in range(EXPORTS)}
    with Control({"tcp.listen": "", "server.memory_max": "64M", "nfs2.enabled": "yes"}, exports=names, hosts=HOSTS) as d:
        test_programs(t, d)
        test_locks(t, d)
        test_wrong(t, d)
        test_stranger(t, d)
        test_ration(t, d)
        test_addresses(t, d)
        test_metrics(t, d)
        settled(t, d)
        harness.finish(t, d)


def whole(t):
    with Control({"tcp.listen": "", "udp.nfs": "yes"}, exports={"x": OPTIONS}, hosts=HOSTS) as d:
        test_nfs(t, d)
        test_again(t, d)
        test_stranger(t, d)
        with d.connect() as c:
            fh = c.nfs(r.LOOKUP, r.diropargs(d.root(c, "x"), "file"))["fh"]
        test_flood(t, d, fh)
        settled(t, d)
        with Datagrams(d.port) as c:  # calls are under way when it stops
            for _ in range(200):
                c.send(r.call_message(r.NFS, 3, r.READ, r.read_args(fh, 0, DATA)))
            harness.finish(t, d)


def off(t):
    with harness.Daemon({"x": OPTIONS}, {"udp.enabled": "no"}) as d, Datagrams(d.port, tries=2, wait=0.2) as c:
        try:
            c.call(r.MOUNT, 3, 0)
            t.check("udp.enabled=no", False, "it answers")
        except TimeoutError:
            t.check("udp.enabled=no", True)


def taken(t):
    """Another program has the port over IPv6."""
    d = harness.Daemon({"x": OPTIONS}, {"tcp.listen": ""})
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as other:
        other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        other.bind(("::", d.port))
        with d, Datagrams(d.port, tries=2, wait=0.2) as c:
            d.wait_log("cannot receive on UDP port")  # until then it may have the port over IPv4
            try:
                c.call(r.MOUNT, 3, 0)
                t.check("a port that is taken over IPv6", False, "UDP is served over IPv4")
            except (TimeoutError, ConnectionRefusedError):
                t.check("a port that is taken over IPv6", True)
            with d.connect() as s:
                t.equal("TCP is served", s.call(r.MOUNT, 3, 0).end(), None)


def main():
    t = harness.Count()
    companions(t)
    whole(t)
    off(t)
    taken(t)
    harness.result(t)


if __name__ == "__main__":
    main()
