#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Callbacks of NFSv4.0: the server connects to the address that SETCLIENTID gave, if it is the caller's own, probes it, and recalls
delegations over it. Clients that do not answer, or answer wrongly, harm nobody."""
import os
import socket
import struct
import threading
import time

import harness
import held
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

# A callback is given up after a second, and a path that is down is probed again after five.
SETTINGS = {"nfs4.lease_time": 10, "nfs4.grace_time": 10, "server.log_level": "debug"}
PROGRAM = 0x40001234
PATIENCE = 60  # seconds, on a busy machine
NULL_REPLY = u32(1) + bytes(16)  # accepted, success; behind the xid


def null_reply(conn, xid):
    conn.sendall(u32(0x80000000 | 24) + u32(xid) + NULL_REPLY)


def recall_reply(conn, xid):
    body = NULL_REPLY + u32(n4.OK) + opaque(b"") + u32(1) + u32(n4.CB_RECALL) + u32(n4.OK)
    conn.sendall(u32(0x80000000 | (4 + len(body))) + u32(xid) + body)


def get_recall(x):
    x.u32(), x.opaque()  # verifier
    c = {"tag": x.opaque(), "minor": x.u32(), "ident": x.u32(), "nops": x.u32(), "op": x.u32(), "stateid": x.take(16), "truncate": x.flag(),
         "fh": x.opaque()}
    x.end()
    return c


def silent(_conn, _xid):
    pass


def close(conn, _xid):
    conn.close()


def half_close(conn, _xid):
    conn.shutdown(socket.SHUT_WR)


def reset(conn, _xid):
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def garbage(conn, _xid):
    conn.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100)


def a_call(conn, _xid):
    message = r.call_message(r.NFS, 3, r.NULL)
    conn.sendall((u32(0x80000000 | len(message)) + message) * 3)


def huge(conn, xid):
    conn.sendall(u32(0xffffffff) + u32(xid) + NULL_REPLY + bytes(200000))


def long(conn, xid):
    conn.sendall(u32(0x80000000 | 1028) + u32(xid) + NULL_REPLY + bytes(1004))


def byte_by_byte(conn, _xid):
    for _ in range(100):
        conn.sendall(b"\0")
        time.sleep(0.05)


def denied(conn, xid):
    conn.sendall(u32(0x80000000 | 20) + u32(xid) + u32(1) + u32(1) + u32(1) + u32(1))


def no_program(conn, xid):
    conn.sendall(u32(0x80000000 | 24) + u32(xid) + u32(1) + bytes(12) + u32(1))


class Listener:
    """The client's side: takes connections, and answers each call by how(connection, xid)."""

    def __init__(self, how=null_reply, host="127.0.0.1", port=0):
        self.s = socket.create_server((host, port), backlog=256)
        self.how, self.port = how, self.s.getsockname()[1]
        self.calls, self.conns = [], []  # calls: (source, local address, words of the header, credential)
        self.recalls = []  # CB_RECALLs, taken apart
        self.ended = self.most = 0  # connections that have ended, and most at a time
        self.changed = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        try:
            while True:
                conn, source = self.s.accept()
                with self.changed:
                    self.conns.append(conn)
                    self.most = max(self.most, len(self.conns) - self.ended)
                threading.Thread(target=self._serve, args=(conn, source), daemon=True).start()
        except OSError:
            pass

    def _take(self, conn, n):
        data = b""
        while len(data) < n:
            more = conn.recv(n - len(data))
            if not more:
                raise OSError
            data += more
        return data

    def _serve(self, conn, source):
        try:
            local = conn.getsockname()[0]
            while True:
                mark = struct.unpack(">I", self._take(conn, 4))[0]
                x = r.In(self._take(conn, mark & 0x7fffffff))
                words = [x.u32() for _ in range(6)]
                cred = (x.u32(), x.opaque())
                with self.changed:
                    self.calls.append((source, local, words, cred))
                    if words[5] == 1:
                        self.recalls.append(get_recall(x))
                    self.changed.notify_all()
                how = recall_reply if words[5] == 1 and self.how == null_reply else self.how
                how(conn, words[0])
        except OSError:
            pass
        with self.changed:
            self.ended += 1
            self.changed.notify_all()

    def uaddr(self, host="127.0.0.1"):
        return f"{host}.{self.port >> 8}.{self.port & 255}".encode()

    def await_calls(self, n=1):
        """True if n calls have come."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.calls) >= n, PATIENCE)

    def await_recalls(self, n=1):
        """True if n recalls have come."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self.recalls) >= n, PATIENCE)

    def await_end(self, n=1):
        """True if n connections have ended."""
        with self.changed:
            return self.changed.wait_for(lambda: self.ended >= n, PATIENCE)

    def stop(self):
        self.s.shutdown(socket.SHUT_RDWR)
        self.s.close()
        for conn in self.conns:
            try:
                conn.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def register(d, owner, uaddr, source=None, netid=b"tcp", program=PROGRAM, ident=7, verifier=b"verifier"):
    c = n4.Client.__new__(n4.Client)
    c.source = (source, 0) if source else None
    c.callback = (program, netid, uaddr, ident)
    c.__init__(d.port, owner, 0, verifier)
    if c.register()["status"]:
        raise SystemExit(f"{owner} cannot register\n{d.read_log()}")
    return c


def says(d, c, what):
    """The log tells how a probe of this client has ended."""
    return d.wait_log(f"the probe to client {c.clientid:x}: {what}", 0, PATIENCE)


def renew(c):
    return c.last((n4.RENEW, u64(c.clientid)))["status"]


def test_probe(t, d):
    a = Listener()
    c = register(d, "probed", a.uaddr())
    t.check("the probe comes", a.await_calls())
    (host, port), _, words, cred = a.calls[0]
    t.equal("its header: call, RPC version, program, version, procedure", words[1:], [0, 2, PROGRAM, 1, 0])
    t.equal("its credential: root by AUTH_SYS", cred, (1, bytes(20)))
    t.equal("it comes from the address that the client calls", host, "127.0.0.1")
    t.check("and from no privileged port", port >= 1024, port)
    t.check("the path works", says(d, c, "answered"))
    t.equal("RENEW", renew(c), n4.OK)
    t.equal("one probe is enough", len(a.calls), 1)
    c.close()
    a.stop()


def test_others(t, d):
    """Nobody but the caller is called, whatever address it gives."""
    a, other = Listener(), Listener(host="127.0.0.2")
    gave = [(other.uaddr("127.0.0.2"), b"tcp", PROGRAM), (a.uaddr(), b"tcp6", PROGRAM), (a.uaddr(), b"udp", PROGRAM), (a.uaddr(), b"rdma", PROGRAM),
            (a.uaddr(), b"tcp", 100005), (a.uaddr("127.1"), b"tcp", PROGRAM), (a.uaddr("::ffff:127.0.0.1"), b"tcp6", PROGRAM),
            (a.uaddr() + b"\0", b"tcp", PROGRAM), (b"127.0.0.1", b"tcp", PROGRAM), (b"", b"", PROGRAM)]
    clients = [register(d, f"liar {i}", uaddr, netid=netid, program=program) for i, (uaddr, netid, program) in enumerate(gave)]
    # One after them is probed, so that theirs would have come by then.
    last = Listener()
    clients.append(register(d, "honest", last.uaddr()))
    t.check("an honest client is called", last.await_calls() and says(d, clients[-1], "answered"))
    t.equal("liars are not", (a.calls, other.calls, a.conns, other.conns), ([], [], [], []))
    clients.append(register(d, "the other", other.uaddr("127.0.0.2"), source="127.0.0.2"))
    t.check("another host is called at its own address", other.await_calls() and says(d, clients[-1], "answered"))
    for c in clients:
        c.close()
    for x in (a, other, last):
        x.stop()


def test_hostile(t, d):
    """What answers wrongly has no path; the server and others go on."""
    h = held.Held(d)
    before = h.now()["tcp_connections"]
    steady = register(d, "steady", b"127.0.0.1.0.0")
    for how, why in ((silent, "Connection timed out"), (close, "."), (half_close, "."), (reset, "."), (garbage, "."), (a_call, "."), (huge, "."),
                     (long, "."), (byte_by_byte, "."), (denied, "Permission denied"), (no_program, "Operation not supported")):
        a = Listener(how)
        c = register(d, how.__name__, a.uaddr())
        t.check(f"{how.__name__}: called", a.await_calls())
        t.check(f"{how.__name__}: has no path", says(d, c, f"(?!answered){why}"))
        t.check(f"{how.__name__}: its connection is closed", a.await_end())
        t.equal(f"{how.__name__}: RENEW", renew(c), n4.OK)
        t.equal(f"{how.__name__}: others", renew(steady), n4.OK)
        c.close()
        a.stop()
    steady.close()
    t.check("connections are given back", await_connections(h, before), h.now()["tcp_connections"])


def await_connections(h, n):
    end = time.monotonic() + PATIENCE
    while h.now()["tcp_connections"] > n:
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_change(t, d):
    """SETCLIENTID with the same verifier changes the callback, and gives up the old connection."""
    a, b = Listener(), Listener()
    c = register(d, "changing", a.uaddr())
    t.check("called", a.await_calls() and says(d, c, "answered"))
    again = register(d, "changing", b.uaddr(), program=PROGRAM + 1)
    t.equal("the same client id", again.clientid, c.clientid)
    t.check("called at the new address", b.await_calls())
    t.equal("by the new program", b.calls[0][2][3], PROGRAM + 1)
    t.check("the old connection is closed", a.await_end())
    restarted = register(d, "changing", a.uaddr(), verifier=b"another.")
    t.check("another client id", restarted.clientid != c.clientid)
    t.check("its connection goes with the client", b.await_end())
    t.check("the client that has restarted is called", a.await_calls(2))
    for x in (c, again, restarted, a, b):
        x.stop() if isinstance(x, Listener) else x.close()


def test_restart(t, d):
    """A path that is down is probed again when the client renews."""
    a = Listener()
    a.stop()
    c = register(d, "restarting", a.uaddr())
    t.check("nobody listens", says(d, c, "(?!answered)."))
    t.equal("RENEW", renew(c), n4.OK)
    a = Listener(port=a.port)
    end = time.monotonic() + PATIENCE
    while not a.calls and time.monotonic() < end:
        renew(c)
        time.sleep(0.2)
    t.check("probed again", a.calls and says(d, c, "answered"))
    c.close()
    a.stop()


def make(d, name):
    with open(os.path.join(d.exports["two"], name), "wb") as f:
        f.write(b"before")


def open_twice(d, c, name):
    """The second OPEN, by a confirmed owner: (result of the first one, of the second, handle)."""
    make(d, name)
    root = c.path(d.exports["two"])
    first, _ = c.open(root, name, access=n4.SHARE_READ)
    return (first, *c.open(root, name, access=n4.SHARE_READ))


def open_to_write(d, other, name):
    return other.open(other.path(d.exports["two"]), name, access=n4.SHARE_WRITE)[0]["status"]


def opens_in_the_end(d, other, name):
    end = time.monotonic() + PATIENCE
    while (status := open_to_write(d, other, name)) == n4.DELAY and time.monotonic() < end:
        time.sleep(0.1)
    return status


def test_delegation(t, d):
    """A delegation is given to a client that was reached, recalled over its connection, and returned."""
    a = Listener()
    c = register(d, "delegated", a.uaddr(), ident=99)
    t.check("reached", says(d, c, "answered"))
    other = n4.Client(d.port, "other", 1)
    t.equal("another client", (other.register()["status"], other.reclaim_complete()), (n4.OK, n4.OK))
    first, res, fh = open_twice(d, c, "file")
    t.equal("an open that is to be confirmed brings none", first.get("delegation"), n4.DELEGATE_NONE)
    t.equal("the next one does", res.get("delegation"), n4.DELEGATE_READ)
    t.equal("READ by it", c.last(n4.putfh(fh), n4.read(res["deleg"], 0, 100)).get("data"), b"before")
    t.equal("RENEW", renew(c), n4.OK)
    t.equal("somebody else's OPEN", open_to_write(d, other, "file"), n4.DELAY)
    t.check("recalled", a.await_recalls())
    t.equal("CB_RECALL", a.recalls[0], {"tag": b"", "minor": 0, "ident": 99, "nops": 1, "op": n4.CB_RECALL, "stateid": res["deleg"],
                                        "truncate": False, "fh": fh})
    t.equal("OPEN by the delegation", c.claim_open_by_name(c.path(d.exports["two"]), "file", res["deleg"])["status"], n4.OK)
    t.equal("DELEGRETURN", c.delegreturn(fh, res["deleg"]), n4.OK)
    t.equal("and again", c.delegreturn(fh, res["deleg"]), n4.BAD_STATEID)
    t.equal("somebody else's OPEN then", opens_in_the_end(d, other, "file"), n4.OK)
    for x in (c, other):
        x.close()
    a.stop()


def test_path_down(t, d):
    """RENEW tells of a path that is down. When it works again, the recall is repeated."""
    a = Listener()
    c = register(d, "down", a.uaddr())
    t.check("reached", says(d, c, "answered"))
    other = n4.Client(d.port, "the other", 1)
    t.equal("another client", (other.register()["status"], other.reclaim_complete()), (n4.OK, n4.OK))
    _, res, fh = open_twice(d, c, "down")
    t.equal("delegated", res.get("delegation"), n4.DELEGATE_READ)
    a.how = silent
    t.equal("somebody else's OPEN", open_to_write(d, other, "down"), n4.DELAY)
    t.check("recalled", a.await_recalls())
    end = time.monotonic() + PATIENCE
    while (status := renew(c)) == n4.OK and time.monotonic() < end:
        time.sleep(0.1)
    t.equal("RENEW", status, n4.ERR_CB_PATH_DOWN)
    a.how = null_reply
    n = len(a.recalls)
    while len(a.recalls) == n and time.monotonic() < end:
        renew(c)
        time.sleep(0.1)
    if t.check("recalled again", len(a.recalls) > n):
        t.equal("DELEGRETURN", c.delegreturn(fh, res["deleg"]), n4.OK)
        t.equal("RENEW then", renew(c), n4.OK)
    t.equal("somebody else's OPEN then", opens_in_the_end(d, other, "down"), n4.OK)
    # Without a path there are none.
    lost = register(d, "unreached", b"127.0.0.1.0.0")
    t.equal("a client that cannot be called", open_twice(d, lost, "unreached")[1].get("delegation"), n4.DELEGATE_NONE)
    for x in (c, other, lost):
        x.close()
    a.stop()


def test_never_returned(t, d):
    """After a lease the delegation is taken away."""
    a = Listener()
    c = register(d, "keeper", a.uaddr())
    t.check("reached", says(d, c, "answered"))
    other = n4.Client(d.port, "waiter", 1)
    t.equal("another client", (other.register()["status"], other.reclaim_complete()), (n4.OK, n4.OK))
    _, res, fh = open_twice(d, c, "kept")
    t.equal("delegated", res.get("delegation"), n4.DELEGATE_READ)
    end = time.monotonic() + PATIENCE
    while (status := open_to_write(d, other, "kept")) == n4.DELAY and time.monotonic() < end:
        t.equal("RENEW", renew(c), n4.OK)
        time.sleep(0.5)
    t.equal("somebody else's OPEN", status, n4.OK)
    t.check("recalled", len(a.recalls) > 0)
    t.equal("the stateid is gone", c.last(n4.putfh(fh), n4.read(res["deleg"], 0, 100))["status"], n4.BAD_STATEID)
    for x in (c, other):
        x.close()
    a.stop()


def test_many(t, d):
    """Each client is called at its own address. One host with very many does not take the connections of others."""
    a = Listener(host="0.0.0.0")
    clients = []
    for i in range(60):
        host = f"127.0.1.{i + 1}"
        clients.append(register(d, f"many {i}", a.uaddr(host), source=host))
    t.check("all are called", a.await_calls(60), len(a.calls))
    t.equal("each at its address", sorted(call[1] for call in a.calls), sorted(f"127.0.1.{i + 1}" for i in range(60)))
    t.check("all are reached", all(says(d, c, "answered") for c in clients))
    for c in clients:
        c.close()
    crowd = Listener(silent)
    clients = [register(d, f"crowd {i}", crowd.uaddr(), source="127.0.0.1") for i in range(100)]
    t.check("some of a crowd are called", crowd.await_calls(10), len(crowd.calls))
    t.check("and few at a time", crowd.most < 60, crowd.most)
    late = register(d, "late", a.uaddr("127.0.2.1"), source="127.0.2.1")
    t.check("another host is called all the same", a.await_calls(61) and says(d, late, "answered"))
    for c in clients:
        c.close()
    late.close()
    crowd.stop()
    a.stop()


def main():
    t = Count()
    exports = {"one": "rw,insecure,no_root_squash", "two": "rw,insecure,no_root_squash,nfs_only"}
    with Daemon(exports, {**SETTINGS, "tcp.max_connections": 400}) as d:
        for test in (test_probe, test_others, test_hostile, test_change, test_restart, test_delegation, test_path_down, test_never_returned,
                     test_many):
            test(t, d)
        # Something is under way when the server stops.
        a = Listener(silent)
        c = register(d, "at the end", a.uaddr())
        t.check("called at the end", a.await_calls())
        c.close()
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
