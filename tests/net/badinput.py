#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Input that no proper client sends: truncated, changed and random messages, forged handles, connections that are left or not read.

The server answers with an error or closes the connection; it neither dies nor leaks, and a second client goes on
all the while. $BADINPUT_SEED repeats a run's random bytes; $BADINPUT_CONNECTIONS is 10000 by default, and
$BADINPUT_RANDOM, the number of random messages, 4000.
"""
import os
import random
import resource
import struct
import time

import harness
import rpcclient as r
from bystander import watched
from harness import Count, Daemon

CONNECTIONS = int(os.environ.get("BADINPUT_CONNECTIONS", 10000))
SEED = int(os.environ.get("BADINPUT_SEED", int.from_bytes(os.urandom(4), "big")))
RANDOM = int(os.environ.get("BADINPUT_RANDOM", 4000))
ANSWERED = "SUCCESS"


def nfs_messages(root, fh):
    """A valid call of each procedure: (name, procedure, arguments)."""
    wcc = r.sattr(mode=0o644, uid=0, gid=0, size=10, atime=(1, 2), mtime="server")
    rows = {
        r.NULL: b"", r.GETATTR: r.getattr_args(fh), r.SETATTR: r.setattr_args(fh, wcc, guard=(1, 1)),
        r.LOOKUP: r.lookup_args(root, "file"), r.ACCESS: r.access_args(fh, 63), r.READLINK: r.readlink_args(fh),
        r.READ: r.read_args(fh, 0, 4096), r.WRITE: r.write_args(fh, 0, b"data of nineteen b."),
        r.CREATE: r.create_args(root, "created", r.UNCHECKED, r.sattr(mode=0o644)),
        r.MKDIR: r.mkdir_args(root, "made"), r.SYMLINK: r.symlink_args(root, "symlink", "target"),
        r.MKNOD: r.mknod_args(root, "fifo", r.FIFO), r.REMOVE: r.remove_args(root, "no such"),
        r.RMDIR: r.rmdir_args(root, "no such"), r.RENAME: r.rename_args(root, "no such", root, "other"),
        r.LINK: r.link_args(fh, root, "hard"), r.READDIR: r.readdir_args(root), r.READDIRPLUS: r.readdirplus_args(root),
        r.FSSTAT: r.fsstat_args(root), r.FSINFO: r.fsinfo_args(root), r.PATHCONF: r.pathconf_args(root),
        r.COMMIT: r.commit_args(fh, 0, 100),
    }
    return [(r.NAMES[p], r.NFS, 3, p, a) for p, a in rows.items()]


def mount_messages(path):
    return [(f"{r.MNT_NAMES[p]} v{v}", r.MOUNT, v, p, r.name(path) if p in (r.MNT, r.UMNT) else b"")
            for v in (1, 2, 3) for p in range(6)]


def messages(d, root):
    with d.connect() as c:
        fh = c.nfs(r.CREATE, r.create_args(root, "file"))["fh"]
    return nfs_messages(root, fh) + mount_messages(d.exports["x"])


class Prober:
    """Sends records on one connection, and opens another when the server closes it."""

    def __init__(self, d):
        self.d, self.c = d, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.c:
            self.c.close()

    def outcome(self, message):
        """SUCCESS, the word of a refusal, "closed", or "wrong: ..." for what is no reply at all."""
        if not self.c:
            self.c = self.d.connect()
        try:
            raw = self.c.exchange(message)
            r.reply_body(raw, struct.unpack(">I", message[:4])[0])
            return ANSWERED
        except r.Refused as e:
            return e.why
        except r.Closed:
            self.c.close()
            self.c = None
            return "closed"
        except (ValueError, OSError, struct.error) as e:
            self.c.close()
            self.c = None
            return f"wrong: {e!r}"


def test_truncations(t, d, root):
    rows = messages(d, root)
    total = 0
    with Prober(d) as p:
        for what, prog, vers, proc, args in rows:
            whole = r.call_message(prog, vers, proc, args)
            t.equal(f"{what} whole", p.outcome(whole), ANSWERED)
            bad = {}
            for n in range(len(whole)):
                out = p.outcome(r.u32(r.next_xid()) + whole[4:n] if n >= 4 else whole[:n])
                if out == ANSWERED or out.startswith("wrong"):
                    bad[n] = out
                total += 1
            t.check(f"{what}: every truncation is refused", not bad, dict(list(bad.items())[:5]))
    print(f"{total} truncated messages")


def test_lengths(t, d, root):
    """Every word of every message in turn is what lengths are not."""
    values = [0, 1, 3, 5, 0x40, 0x41, 0x3ff, 0x401, 0xffff, 0x100001, 0x7ffffffc, 0x7fffffff, 0x80000000, 0xfffffff8, 0xfffffffc, 0xffffffff]
    total = 0
    with Prober(d) as p:
        for what, prog, vers, proc, args in messages(d, root):
            whole = r.call_message(prog, vers, proc, args)
            bad = []
            for at in range(4, len(whole) - 3, 4):
                for v in values:
                    out = p.outcome(r.u32(r.next_xid()) + whole[4:at] + r.u32(v) + whole[at + 4:])
                    total += 1
                    if out.startswith("wrong"):
                        bad.append((at, v, out))
            t.check(f"{what}: any word may be anything", not bad, bad[:3])
            t.check(f"{what}: bytes after the arguments", not p.outcome(r.u32(r.next_xid()) + whole[4:] + bytes(64)).startswith("wrong"))
    print(f"{total} messages with a wrong word")


def test_random_bodies(t, d, root):
    """Valid headers, random arguments; valid arguments with random bits turned."""
    rnd, bad = random.Random(SEED), []
    rows = messages(d, root)
    with Prober(d) as p:
        for i in range(RANDOM):
            what, prog, vers, proc, args = rnd.choice(rows)
            if i % 2:
                body = rnd.randbytes(rnd.choice((4, 40, 100, 400, 5000)))
            else:
                body = bytearray(args)
                for _ in range(rnd.randint(1, 8)):
                    if body:
                        body[rnd.randrange(len(body))] ^= 1 << rnd.randrange(8)
            out = p.outcome(r.call_message(prog, vers, proc, bytes(body)))
            if out.startswith("wrong"):
                bad.append((what, bytes(body).hex()[:80], out))
    t.check("random arguments", not bad, bad[:3])


def closes(conn, seconds=20):
    """Does the server close?"""
    conn.s.settimeout(seconds)
    try:
        while conn.s.recv(65536):
            pass
        return True
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_random_streams(t, d, root):
    rnd = random.Random(SEED)
    for i in range(300):
        with d.connect() as c:
            try:
                c.send_raw(rnd.randbytes(rnd.choice((1, 3, 4, 5, 100, 4096, 100000))))
                c.s.shutdown(1)
            except (r.Closed, OSError):
                continue
            if not closes(c):
                t.check(f"random stream {i} is closed", False)
                return
    t.check("random streams are closed", True)


def test_marks(t, d, root):
    good = r.call_message(r.NFS, 3, r.GETATTR, r.getattr_args(root))
    with d.connect() as c:
        for frag in (1, 2, 3, 4, 7, 40, 1000):
            t.check(f"fragments of {frag}", r.reply_body(c.exchange(good, frag)) is not None)
        c.send_raw(r.u32(0) * 10)
        t.check("ten empty fragments before a record", r.reply_body(c.exchange(good)) is not None)
    big = r.call_message(r.NFS, 3, r.NULL) + bytes(1 << 20)
    with d.connect() as c:
        try:
            c.exchange(big, 70000)
            answer = "answered"
        except r.Refused as e:
            answer = e.why
        except r.Closed:
            answer = "closed"
        t.check("a NULL of 1 MiB in fragments", answer in ("answered", "GARBAGE_ARGS", "closed"), answer)
    for what, data in (("2 GiB announced", b"\xff\xff\xff\xff"), ("2 GiB announced in a fragment that is not the last", b"\x7f\xff\xff\xff"),
                       ("one above the limit", r.u32(0x80000000 | (1088 * 1024 + 65536 * 4))), ("an empty record", b"\x80\0\0\0"),
                       ("endless empty fragments", bytes(4000)), ("endless fragments", (r.u32(1000) + bytes(1000)) * 3000),
                       ("a record of 7 bytes", b"\x80\0\0\7" + bytes(7)), ("a reply", r.u32(0x80000018) + r.u32(1) + r.u32(1) + bytes(16)),
                       ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ("TLS", bytes.fromhex("16030100c8010000c40303") + bytes(300))):
        with d.connect() as c:
            try:
                c.send_raw(data)
            except r.Closed:
                pass
            t.check(f"{what}: closed", closes(c))
    for cut in range(1, len(good) + 4):
        with d.connect() as c:
            c.send_raw((r.u32(0x80000000 | len(good)) + good)[:cut])
            c.s.shutdown(1)
            if not closes(c):
                t.check(f"stream cut at {cut} is closed", False)
    t.check("streams cut anywhere are closed", True)


def test_handles(t, d, root):
    with d.connect() as c:
        sub = c.nfs(r.MKDIR, r.mkdir_args(root, "forge"))["fh"]
        files = [c.nfs(r.CREATE, r.create_args(sub, f"f{i}"))["fh"] for i in range(8)]
        other = d.root(c, "y")
        forged = set()
        for fh in (root, other, files[0]):
            for bit in range(len(fh) * 8):
                b = bytearray(fh)
                b[bit // 8] ^= 1 << bit % 8
                forged.add(bytes(b))
            forged |= {fh[:n] for n in range(len(fh))} | {fh + bytes(n) for n in range(1, 65 - len(fh))}
        valid = [root, other, sub, *files]
        for a in valid[:4]:
            for b in valid:
                forged |= {a[:n] + b[n:] for n in range(len(a))} | {b[:n] + a[n:] for n in range(len(a))}
        forged |= {bytes(n) for n in range(65)} | {b"\xff" * n for n in range(65)} | {random.Random(SEED + i).randbytes(len(root)) for i in range(500)}
        forged -= set(valid)
        taken, statuses = [], {}
        for fh in sorted(forged):
            for proc, args in ((r.GETATTR, r.getattr_args(fh)), (r.LOOKUP, r.lookup_args(fh, "f1")), (r.READ, r.read_args(fh, 0, 10)),
                               (r.REMOVE, r.remove_args(fh, "f2")), (r.SETATTR, r.setattr_args(fh, r.sattr(mode=0)))):
                try:
                    s = c.nfs(proc, args)["status"]
                except r.Refused as e:
                    s = e.why
                statuses[s] = statuses.get(s, 0) + 1
                if s == r.OK:
                    taken.append((proc, fh.hex()))
        print(f"{len(forged)} forged handles, answers: {statuses}")
        t.check("no forged handle is taken", not taken, taken[:5])
        t.check("they are BADHANDLE, STALE or garbage", set(statuses) <= {r.BADHANDLE, r.STALE, "GARBAGE_ARGS"}, statuses)
        t.equal("the files are all there", [c.nfs(r.LOOKUP, r.lookup_args(sub, f"f{i}"))["fh"] for i in range(8)], files)


def settled(d):
    """Sockets, when those of earlier rounds have gone."""
    last, same = d.sockets(), 0
    for _ in range(100):
        time.sleep(0.2)
        now = d.sockets()
        same = same + 1 if now == last else 0
        if same == 10:
            break
        last = now
    return last


def test_abandoned(t, d, root):
    """Connections that are opened and left: silent, in a mark, in a record, after a call."""
    n = CONNECTIONS
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    want = n + 1000
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(want, limit[0]), max(want, limit[1])))
    except (ValueError, OSError) as e:
        n = limit[1] - 1000
        t.skip(f"{CONNECTIONS} connections, {n} instead", f"RLIMIT_NOFILE is {limit[1]}: {e}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    call = r.call_message(r.NFS, 3, r.GETATTR, r.getattr_args(root))
    record = r.u32(0x80000000 | len(call)) + call
    starts = (b"", b"", record[:2], record[:50], record)
    sockets, rss = settled(d), d.rss()
    conns = []
    for i in range(n):
        c = d.connect()
        c.send_raw(starts[i % len(starts)])
        conns.append(c)
    for _ in range(100):
        if d.sockets() >= sockets + n:
            break
        time.sleep(0.1)
    most, held = d.rss(), d.sockets() - sockets
    cpu = d.cpu()
    time.sleep(2)
    cpu = d.cpu() - cpu
    print(f"{n} connections: {held} sockets, {(most - rss) >> 10} KiB more, {cpu / 2:.0%} of a processor while nothing happens")
    t.check("all are held", held >= n, f"{held} of {n}")
    bound = 16384 if d.sanitized() else 4096
    t.check("memory for a connection", (most - rss) / n < bound, f"{(most - rss) // n} bytes")
    with d.connect() as c:
        t.equal("another client gets in", c.nfs(r.GETATTR, r.getattr_args(root))["status"], r.OK)
    for c in conns[4::5]:  # those that made a whole call are answered
        r.reply_body(c.recv())
    for c in conns:
        c.close()
    for _ in range(300):
        if d.sockets() <= sockets + 5:
            break
        time.sleep(0.1)
    t.check("the sockets are closed again", d.sockets() <= sockets + 5, f"{d.sockets()} after {sockets}")


def test_slow_readers(t, d, root):
    """Clients that ask for much and read nothing, then one that reads late and finds everything."""
    with d.connect() as c:
        fh = c.nfs(r.CREATE, r.create_args(root, "slow"))["fh"]
        data = os.urandom(1 << 20)
        c.nfs(r.WRITE, r.write_args(fh, 0, data))
    conns = [d.connect() for _ in range(10)]
    xids = list(range(64))
    for c in conns:
        for xid in xids:
            c.send(r.call_message(r.NFS, 3, r.READ, r.read_args(fh, 0, 1 << 20), xid=xid))
    time.sleep(3)
    got = []
    for _ in xids:
        raw = conns[0].recv()
        got.append(struct.unpack(">I", raw[:4])[0])
        x = r.decode(r.READ, r.reply_body(raw))
        if x["status"] or x["data"] != data:
            t.check("a slow reader's data", False, x["status"])
            break
    t.equal("a slow reader gets every reply once", sorted(got), xids)
    for c in conns:
        c.close()


def test_gone(t, d, root):
    """Clients that go away in the middle of everything, half of them by reset."""
    with d.connect() as c:
        fh = c.nfs(r.CREATE, r.create_args(root, "gone"))["fh"]
    read = r.call_message(r.NFS, 3, r.READ, r.read_args(fh, 0, 1 << 20))
    write = r.call_message(r.NFS, 3, r.WRITE, r.write_args(fh, 0, bytes(1 << 20)))
    for i in range(100):
        c = d.connect()
        try:
            c.send(write)
            for _ in range(10):
                c.send(read)
            c.send_raw((r.u32(0x80000000 | len(write)) + write)[:i * 10000])
        except r.Closed:
            pass
        if i % 2:
            c.s.setsockopt(r.socket.SOL_SOCKET, r.socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
    with d.connect() as c:
        t.equal("the server goes on", c.nfs(r.READ, r.read_args(fh, 0, 10))["status"], r.OK)


def main():
    t = Count()
    print(f"BADINPUT_SEED={SEED}")
    exports = {"x": "rw,no_root_squash,insecure", "y": "rw,no_root_squash,insecure"}
    with Daemon(exports, {"nfs2.enabled": "yes"}, nofile=CONNECTIONS * 2 + 2000) as d:
        with d.connect() as c:
            root = d.root(c, "x")
        fds = d.fds()
        for test in (test_truncations, test_lengths, test_random_bodies, test_random_streams, test_marks, test_handles, test_slow_readers,
                     test_gone, test_abandoned):
            watched(t, d, root, test)
            if not t.check(f"the daemon lives after {test.__name__}", d.alive()):
                break
        if d.alive():
            time.sleep(1)
            print(f"descriptors: {fds} at the start, {d.fds()} at the end; memory {d.rss() >> 20} MiB")
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
