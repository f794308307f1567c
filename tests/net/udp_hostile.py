#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Datagrams of senders that mean harm: the port of a TCP client, other flavours, very many addresses, and hosts that a reload refuses."""
import socket
import struct

import harness
import rpcclient as r
from control import Control
from rpcclient import opaque, u32
from scrape import await_value
from udpclient import Datagrams

OPTIONS = "rw,insecure,no_root_squash"
HOSTS = ("127.0.0.0/29",)
ADMITTED, STRANGER = "127.0.0.2", "127.0.0.9"
ADDRESSES = 1500
AUTH_TLS, GSS = u32(7) + u32(0), 6


def refusal(c, *call, **kw):
    try:
        c.call(*call, **kw)
    except r.Refused as e:
        return e.why
    return "served"


def test_same_port(t, d):
    """A UDP port is another client's than the TCP port of that number, though all of the call is the same."""
    with d.connect(source=(ADMITTED, 0)) as s:
        port = s.s.getsockname()[1]
        with Datagrams(d.port, source=(ADMITTED, port)) as c:
            root = d.root(s, "x")
            for n, (first, second) in enumerate(((s, c), (c, s))):
                xid = r.next_xid()
                message = r.call_message(r.NFS, 3, r.CREATE, r.create_args(root, f"file-{n}", r.GUARDED), xid=xid)
                status = [r.decode(r.CREATE, r.reply_body(x.exchange(message), xid))["status"] for x in (first, second, first, second)]
                t.equal(f"CREATE over both, {n}", status, [r.OK, r.EXIST, r.OK, r.EXIST])


def test_flavours(t, d):
    init = struct.pack(">IIII", 1, 1, 0, 1) + opaque(b"")
    gss = u32(GSS) + opaque(init)
    with Datagrams(d.port, source=(ADMITTED, 0)) as c:
        reply = c.exchange(r.call_message(r.MOUNT, 3, 0, cred=AUTH_TLS))
        t.equal("a question for TLS gets no STARTTLS", (reply[12:20], len(reply)), (r.auth_none(), 24))
        t.equal("nor is it a credential", refusal(c, r.MOUNT, 3, r.EXPORT, cred=AUTH_TLS), "AUTH_ERROR")
    with Datagrams(d.port, source=(STRANGER, 0), tries=1, wait=0.2) as c:
        for args in (b"", opaque(b""), opaque(bytes(500)), opaque(bytes(9000))):
            message = r.call_message(r.MOUNT, 3, 0, args, gss)
            c.send(message)
            replies = c.replies(0.2)
            t.check(f"a Kerberos token of {len(args)} bytes", all(len(x) <= len(message) for x in replies), [len(x) for x in replies])


def test_addresses(t, d):
    """Calls in the name of very many hosts that no export admits, beside one that is admitted."""
    with d.connect(source=(ADMITTED, 0)) as s:
        root = d.root(s, "x")
    call = r.call_message(r.NFS, 3, r.GETATTR, opaque(root))
    with Datagrams(d.port, source=(ADMITTED, 0)) as c:
        for i in range(ADDRESSES):
            with socket.socket(type=socket.SOCK_DGRAM) as s:
                s.bind((f"127.{1 + i % 200}.{i // 200}.7", 0))
                s.sendto(call, ("127.0.0.1", d.port))
            if i % 50 == 0:
                t.equal(f"GETATTR beside {i} addresses", c.nfs(r.GETATTR, opaque(root))["status"], r.OK)
    t.equal("nothing is kept of them", await_value(d, "ringnfs_requests", lambda v: v == 0, transport="udp"), 0)


def test_reload(t, d):
    path = d.exports["x"]
    with Datagrams(d.port, source=(ADMITTED, 0)) as c:
        t.equal("MNT", c.mnt(path)[0], r.OK)
        d.write_exports([f"{path} 127.0.0.1({OPTIONS})"])
        d.reload()
        t.equal("MNT after a reload without the host", c.mnt(path)[0], r.ACCES)
        t.equal("EXPORT", refusal(c, r.MOUNT, 3, r.EXPORT), "AUTH_ERROR")
        d.write_exports([f"{path} {ADMITTED}({OPTIONS})"])
        d.reload()
        t.equal("MNT after one with it", c.mnt(path)[0], r.OK)


def main():
    t = harness.Count()
    with Control({"udp.nfs": "yes"}, exports={"x": OPTIONS}, hosts=HOSTS) as d:
        test_same_port(t, d)
        test_flavours(t, d)
        test_addresses(t, d)
        test_reload(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
