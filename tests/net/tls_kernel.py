#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""READs under kernel TLS (setting tls.ktls), whose data are spliced from the page cache: lengths, slow readers, files that change meanwhile.

Needs a kernel with the module tls, which tests/vm/t/tls.sh has. The library of this client takes each record, so that a wrong one
ends the connection."""
import os
import re
import shutil
import signal
import socket
import ssl
import tempfile
import time

import harness
import nfs4client as n4
import rpcclient as r
import tls
import tlsclient as t

MIB, KIB = 1 << 20, 1 << 10
SIZE = 16 * MIB + 12345


class Slow(t.TlsConn):
    """A connection that takes little at a time from the server's socket."""

    def __init__(self, port, ctx):
        super().__init__(port, ctx)
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * KIB)


def spliced(d):
    before = len(d.read_log())
    d.process.send_signal(signal.SIGUSR1)
    d.wait_log(r"bytes out, \d+ without a copy", before)
    return int(re.search(r"bytes out, (\d+) without a copy", d.read_log()[before:])[1])


def ask(c, fh, offset, count):
    xid = r.next_xid()
    c.send(r.call_message(r.NFS, 3, r.READ, r.read_args(fh, offset, count), xid=xid))
    return xid


def take(c, waiting):
    """(offset, what the READ returns) of the next reply."""
    data = c.recv()
    xid = int.from_bytes(data[:4], "big")
    return waiting.pop(xid), r.decode(r.READ, r.reply_body(data, xid))


def test_lengths(count, d, c, fh, data):
    before, wrong = spliced(d), []
    for offset in (0, 1, 4095, 4096, MIB - 1, 3 * MIB + 77):
        for n in (1, 100 * KIB, 100 * KIB + 1, 256 * KIB - 3, MIB - 1, MIB):
            if c.nfs(r.READ, r.read_args(fh, offset, n))["data"] != data[offset:offset + n]:
                wrong.append((offset, n))
    count.equal("READs of these offsets and lengths are wrong", wrong, [])
    end = SIZE - 200 * KIB
    count.check("READ over the end", c.nfs(r.READ, r.read_args(fh, end, MIB))["data"] == data[end:])
    count.check("data went to the kernel's TLS by pipes", spliced(d) > before + 5 * MIB)


def test_slow(count, d, ctx, fh, data):
    """The socket is full again and again, also in the middle of a record."""
    before, wrong = spliced(d), []
    with Slow(d.port, ctx) as c:
        for turn in range(3):
            waiting = {ask(c, fh, i * (MIB - 4096 * turn) + turn, MIB if i % 3 else 70 * KIB + i): i * (MIB - 4096 * turn) + turn
                       for i in range(15)}
            time.sleep(0.3)
            while waiting:
                offset, got = take(c, waiting)
                if got["data"] != data[offset:offset + got["count"]]:
                    wrong.append((turn, offset))
    count.equal("READs of a slow reader are wrong", wrong, [])
    count.check("its data went by pipes, too", spliced(d) > before)


def consists_of(got, *contents):
    """True if each byte is that of one of the contents: a write does not change a page at once."""
    return all(any(got[i:i + 4096] == a[i:i + 4096] for a in contents) or
               all(any(got[k] == a[k] for a in contents) for k in range(i, min(i + 4096, len(got)))) for i in range(0, len(got), 4096))


def test_changes(count, d, ctx, path, fh, data):
    """A file that is cut, or written to, while its pages wait in pipes. Each reply is whole, whatever its data are then."""
    new = os.urandom(SIZE)
    for what in ("cut", "written to"):
        with open(path, "r+b") as f:
            f.write(data)
        with Slow(d.port, ctx) as c:
            waiting = {ask(c, fh, i * MIB, MIB): i * MIB for i in range(12)}
            time.sleep(0.3)
            with open(path, "r+b") as f:
                if what == "cut":
                    f.truncate(5 * MIB + 100)
                else:
                    f.write(new)
            good, ended = 0, ""
            try:
                while waiting:
                    offset, got = take(c, waiting)
                    n = len(got["data"])
                    good += n == got["count"] and consists_of(got["data"], data[offset:offset + n],
                                                              bytes(n) if what == "cut" else new[offset:offset + n])
                count.equal(f"a file is {what}: replies that are whole", good, 12)
                count.equal("the connection goes on", c.nfs(r.GETATTR, r.getattr_args(fh))["status"], r.OK)
            except ssl.SSLError as e:
                ended = str(e)
            count.equal("no record is wrong", ended, "")
    with open(path, "r+b") as f:
        f.write(data)


def test_leaves(count, d, ctx, fh):
    """Connections that go while their pages wait."""
    for _ in range(10):
        c = Slow(d.port, ctx)
        for i in range(8):
            ask(c, fh, i * MIB, MIB)
        time.sleep(0.02)
        c.s.close()
    count.check("the server lives", d.alive())


class Client4(t.TlsClient4):
    longest = 4 * MIB
    keeps = False


def test_compound(count, d, ctx, data):
    before, c = spliced(d), Client4(d.port, ctx, "kernel")
    c.register(), c.reclaim_complete()
    opened, fh = c.open(c.path(d.exports["x"]), "big")
    got = c.compound(n4.putfh(fh), *(n4.read(opened["stateid"], i * 300001, 200001) for i in range(4)))[1:]
    count.check("four READs in one COMPOUND", [x.get("data") for x in got] == [data[i * 300001:i * 300001 + 200001] for i in range(4)])
    count.check("they went by pipes", spliced(d) > before)
    c.close()


def main():
    if tls.kernel_sessions() is None:
        harness.skip_all("this kernel has no module tls")
    count, folder = harness.Count(), tempfile.mkdtemp(prefix="ringnfs-tls-")
    try:
        ca = t.Authority(folder, "ca")
        crt, key = ca.issue("server")
        ctx = t.context(ca.path("crt"))
        with harness.Daemon({"x": "rw,no_root_squash,insecure"}, {"tls.certificate": crt, "tls.key": key, "tls.ktls": "yes"}) as d:
            path, data = os.path.join(d.exports["x"], "big"), os.urandom(SIZE)
            with open(path, "wb") as f:
                f.write(data)
            before = tls.kernel_sessions()
            with t.TlsConn(d.port, ctx) as c:
                fh = c.nfs(r.LOOKUP, r.diropargs(d.root(c, "x"), "big"))["fh"]
                count.equal("the kernel encrypts", tls.kernel_sessions(), before + 1)
                test_lengths(count, d, c, fh, data)
            test_slow(count, d, ctx, fh, data)
            test_compound(count, d, ctx, data)
            test_changes(count, d, ctx, path, fh, data)
            test_leaves(count, d, ctx, fh)
            harness.finish(count, d)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    harness.result(count)


if __name__ == "__main__":
    main()
