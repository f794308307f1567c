# SPDX-License-Identifier: BSD-2-Clause
"""Connections that break by seed, over TCP, with TLS or Kerberos, UDP and the software fabric. A call is sent again, from the same port, until it is answered.

A cut comes after half a call, before the reply is read, or after the server may have sent it; some calls are sent twice. A caller
whose server was killed while it had the call hears Restarted: nobody knows then whether the call took effect.
"""
import select
import socket
import struct
import threading
import time

import gssapi
import gssclient
import rdmaclient
import rpcclient as r
import tlsclient

PATIENCE = 90  # seconds without an answer that are a failure
CONNECT_PATIENCE = 30
TICKET = "3s"  # lifetime of Kerberos tickets, and so of contexts


class Restarted(Exception):
    """The server that had the call is gone. run: its number; bound: when the next one was there."""

    def __init__(self, run, bound):
        super().__init__()
        self.run, self.bound = run, bound


class Stop(Exception):
    """The history is over."""


class Lost(Exception):
    """The client's session or lease is gone, so it comes anew."""


class Short(Lost):
    """The server has no memory. The call may have had a part of its effect."""


class Silent(Exception):
    """The server does not answer."""


def reset(s):
    """Closes a socket without a farewell, so that its port is free at once."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def frame(message):
    return r.u32(len(message) | 0x80000000) + message


def serve_calls(conn, answer):
    """Answers each call of a connection by answer(call), until it ends."""
    with conn.makefile("rb") as f:
        while len(mark := f.read(4)) == 4:
            conn.sendall(frame(answer(f.read(int.from_bytes(mark, "big") & 0x7fffffff))))


def accept_all(listener, serve):
    """Runs serve(connection) in a thread for each connection, until the listener is closed."""
    def guarded(conn):
        try:
            serve(conn)
        except (OSError, r.Closed):
            pass
        finally:
            reset(conn)

    def accept():
        try:
            while True:
                threading.Thread(target=guarded, args=(listener.accept()[0],), daemon=True).start()
        except OSError:  # closed
            pass
    threading.Thread(target=accept, daemon=True).start()


class Wire:
    """server: see server.py. faults: chance of a call to meet one. twice: calls may be sent twice, for the server has a reply cache."""

    kinds = ("half", "unread", "late", "late")
    fresh_port = False  # sends again from another port, so nothing can recognise the retransmission
    on_call = None  # takes the server's calls, as in rpcclient

    def __init__(self, server, rng, source, faults, twice, count):
        self.server, self.rng, self.source, self.faults, self.count = server, rng, source, faults, count
        self.twice, self.conn, self.run, self.port = twice, None, None, 0

    def connect(self):
        while True:
            while not self.server.up.wait(0.5):
                self.check_over()
            self.check_over()
            run = self.server.run
            try:
                self._connect()
            except (r.Closed, OSError, ValueError, IndexError):
                time.sleep(0.01)
                continue
            if self.server.up.is_set() and self.server.run == run:
                self.run = run
                return

    def check_over(self):
        if self.server.over:
            raise Stop()

    def _connect(self):
        self.cut()
        self.conn = r.Conn(self.server.port, timeout=PATIENCE, source=(self.source, 0 if self.fresh_port else self.port))
        self.port, self.conn.on_call = self.conn.s.getsockname()[1], self.on_call

    def cut(self):
        if self.conn:
            reset(self.conn.s)
            self.conn = None

    def forget(self):
        """The client's machine crashes: its next connection comes from another port."""
        self.cut()
        self.port = 0

    def end(self):
        self.cut()

    def call(self, message, xid):
        if not self.conn:
            self.connect()
        run, tries = self.run, 0
        while True:
            if self.run != run:
                raise Restarted(run, self.server.ready[self.run - self.server.first])
            fault = None
            if tries < 3 and self.rng.random() < self.faults:
                fault = self.rng.choice(self.kinds + (("twice",) if self.twice else ()))
                self.count("cut " + fault)
            tries += 1
            try:
                return self.attempt(message, xid, fault)
            except socket.timeout:
                raise Silent(f"no answer in {PATIENCE} s") from None
            except (r.Closed, OSError):
                self.check_over()
                self.cut()
                self.connect()

    def attempt(self, message, xid, fault):
        record = frame(message)
        if fault == "half":
            record = record[:self.rng.randrange(1, len(record))]
        self.conn.send_raw(record * (2 if fault == "twice" else 1))
        if fault == "late":
            select.select([self.conn.s], [], [], self.rng.choice((0.0005, 0.003, 0.05)))
        if fault in ("half", "unread", "late"):
            raise r.Closed()
        while True:
            was_call, data = self.conn.take_call()
            if not was_call and data[:4] == r.u32(xid):
                return data

    def poll_call(self, seconds):
        """Takes a call of the server's if one comes in time."""
        if not self.conn:
            raise r.Closed()
        if select.select([self.conn.s], [], [], seconds)[0]:
            self.conn.take_call()


class Callbacks:
    """The address that a client of 4.0 is called at: connections of the server, each call of which answer(call) answers."""

    def __init__(self, address, answer):
        self.socket = socket.create_server((address, 0))
        host, port = self.socket.getsockname()
        self.address = f"{host}.{port >> 8}.{port & 255}".encode()
        accept_all(self.socket, lambda conn: serve_calls(conn, answer))


class TlsWire(Wire):
    """TCP with TLS (RFC 9289)."""

    def _connect(self):
        super()._connect()
        conn, self.conn = self.conn, None
        try:
            if tlsclient.probe(conn) != (0, b"STARTTLS"):
                raise r.Closed()
            conn.s = tlsclient.context().wrap_socket(conn.s, server_hostname="localhost")
        except BaseException:
            conn.s.close()
            raise
        self.conn = conn


class KerberosWire(Wire):
    """TCP with Kerberos, under a service by seed. A context ends with its ticket, or with its server; calls go on under a new one."""

    def __init__(self, *args):
        super().__init__(*args)
        self.context, self.service = None, self.rng.choice((gssclient.NONE, gssclient.INTEGRITY, gssclient.PRIVACY))

    def attempt(self, message, xid, fault):
        x = r.In(message)
        x.take(12)
        called = x.u32(), x.u32(), x.u32()
        x.take(4), x.opaque(), x.take(4), x.opaque()
        data = None
        try:
            self.context = self.context or gssclient.Session(self.conn, self.server.realm.login(self.source, TICKET))
            seq = self.context.number()
            data = super().attempt(self.context.call(*called, message[x.at:], self.service, xid, seq), xid, fault)
            results = self.context.results(data, xid, seq, self.service)
            return r.u32(xid) + r.u32(1) + bytes(16) + results.data[results.at:]
        except (r.Refused, gssapi.Failed) as e:
            if data and isinstance(e, r.Refused) and e.why != "AUTH_ERROR":
                return data
            self.count("contexts that have ended")
            self.context = None
            raise r.Closed() from None  # what else comes over this connection is of the old context


class UdpWire(Wire):
    """Datagrams, sent again until one is answered; a cut loses one, or its answer."""

    kinds = ("half", "unread", "late")

    def _connect(self):
        self.cut()
        self.conn = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.conn.bind((self.source, self.port))
        self.conn.connect(("127.0.0.1", self.server.port))
        self.port = self.conn.getsockname()[1]

    def cut(self):
        if self.conn:
            self.conn.close()
            self.conn = None

    def attempt(self, message, xid, fault):
        run, end, wait = self.run, time.monotonic() + PATIENCE, 0.05
        while time.monotonic() < end:
            # The next server's must not be taken for this one's: that call may have had its effect before.
            if not self.server.up.is_set() or self.server.run != run:
                raise r.Closed()
            for _ in range({"half": 0, "twice": 2}.get(fault, 1)):
                self.conn.send(message)
            if fault == "unread":
                raise r.Closed()
            while select.select([self.conn], [], [], 0.002 if fault == "late" else wait)[0]:
                data = self.conn.recv(65536)
                if data[:4] == r.u32(xid):
                    return data
            self.count("datagrams sent again")
            fault, wait = None, min(2 * wait, 2)
        raise Silent(f"no answer in {PATIENCE} s (UDP)")


class RdmaWire(Wire):
    """Calls are inline; long replies come by a Reply chunk. The fabric's own faults cut the server's side."""

    kinds = ("unread", "late")

    def __init__(self, *args):
        super().__init__(*args)
        self.twice, self.peer = False, None

    def _connect(self):
        fabric = self.server.fabric
        if not self.peer or not self.peer.alive():
            self.peer = rdmaclient.Peer(env=fabric.environment(), timeout=PATIENCE, before=fabric.command("client"))
        else:
            self.cut()
        # The fabric waits for ever for a server that is killed before it answers.
        patience = threading.Timer(CONNECT_PATIENCE, self.peer.kill)
        patience.start()
        try:
            self.peer.connect("127.0.0.1", self.server.rdma_port)
        finally:
            patience.cancel()
        self.conn = self.peer

    def cut(self):
        self.conn = None
        if self.peer and self.peer.alive():
            try:
                self.peer.drop()
            except r.Closed:
                pass

    def attempt(self, message, xid, fault):
        p = self.peer
        reply = r.u32(1) + r.u32(1) + p.segment(rdmaclient.REPLY_AT, rdmaclient.REPLY_SIZE)
        p.send(struct.pack(">IIII", xid, 1, rdmaclient.CREDITS, rdmaclient.MSG) + r.u32(0) * 2 + reply + message)
        if fault == "late":
            p.receive(self.rng.choice((0.001, 0.003, 0.05)))
        if fault:
            raise r.Closed()
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            raw = p.receive(1)
            self.check_over()
            if raw is None and not self.server.up.is_set():
                raise r.Closed()
            if raw is None or raw[:4] != r.u32(xid):
                continue
            _, reply, written = p.unwrap(raw)
            if written:
                raise ValueError("a chunk in the reply that was not offered")
            return reply
        raise Silent(f"no answer in {PATIENCE} s (RDMA)")

    def end(self):
        if self.peer:
            self.peer.kill()


WIRES = {"r": RdmaWire, "t": TlsWire, "k": KerberosWire, "u": UdpWire}  # by the last letter of a kind of client; else TCP
