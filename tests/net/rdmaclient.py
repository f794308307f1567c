# SPDX-License-Identifier: BSD-2-Clause
"""NFS calls over RPC-over-RDMA version 1 (RFC 8166, 8267), with chunks where the Linux client has them.

The verbs are those of tests/rdma/peer_pipe, a process for each client; here the messages are made and read.
"""
import os
import struct
import subprocess

import rpcclient as r

PROGRAM = os.environ.get("PEER_PIPE", "tests/rdma/peer_pipe")
INLINE = 4096
MSG, NOMSG, ERROR = 0, 1, 4
CREDITS = 32
DATA = 3 << 20  # of a client: what READ, WRITE and READDIR move is at its start
REPLY_AT = 2 << 20  # and a Reply chunk here
REPLY_SIZE = 1 << 20


class RdmaError(Exception):
    """An RDMA_ERROR reply; its words."""


class Peer:
    """One process; one connection at a time."""

    def __init__(self, env=None, timeout=120, before=()):
        self.timeout = timeout
        self.process = subprocess.Popen([*before, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def connect(self, host, port, recv_size=INLINE, rnr_retry=0, invalidate=False):
        answer = self.ask(f"connect {host} {port} {DATA} {recv_size} {rnr_retry} {int(invalidate)}")
        self.rkey, self.address, self.qp, self.servers_qp = map(int, answer.split()[1:])
        return self

    def alive(self):
        return self.process.poll() is None

    def ask(self, line, data=b""):
        """The answer's line: "ok ...", "closed", "timeout"; raises Closed for an error."""
        try:
            self.process.stdin.write(line.encode() + b"\n" + data)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise r.Closed("the peer's process has ended") from None
        answer = self.process.stdout.readline().decode().strip()
        if not answer or answer.startswith("error"):
            raise r.Closed(answer or "the peer's process has ended")
        return answer

    def put(self, data, at=0):
        self.ask(f"put {at} {len(data)}", data)

    def _bytes(self, answer):
        return self.process.stdout.read(int(answer.split()[1]))

    def get(self, size, at=0):
        return self._bytes(self.ask(f"get {at} {size}"))

    def sinks(self):
        """Memory of the server's that its last RDMA Reads over iWARP have named: [(key, address, length, queue pair)], newest first."""
        n = int(self.ask("sinks").split()[1])
        return [tuple(map(int, self.process.stdout.readline().split())) for _ in range(n)]

    def write(self, key, address, size):
        """RDMA-Writes the first bytes of the data to the server's memory: does it take them?"""
        try:
            self.ask(f"write {key} {address} {size}")
            return True
        except r.Closed:
            return False

    def send(self, message):
        self.ask(f"send {len(message)}", message)

    def receive(self, seconds=None):
        """A message, None after so many seconds without one, or Closed."""
        answer = self.ask(f"wait {int((seconds or self.timeout) * 1000)}")
        if answer == "closed":
            raise r.Closed()
        return None if answer == "timeout" else self._bytes(answer)

    def closed(self, seconds=None):
        """Does the server close the connection?"""
        try:
            while self.receive(seconds) is not None:
                pass
            return False
        except r.Closed:
            return True

    def drop(self):
        self.ask("drop")

    def disconnect(self):
        self.ask("disconnect")

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def close(self):
        """Disconnects, and ends the process."""
        try:
            self.ask("disconnect")
        except r.Closed:
            pass
        self.process.communicate()

    # --- messages ---

    def segment(self, at, size):
        return struct.pack(">IIQ", self.rkey, size, self.address + at)

    def message(self, proc, args, data=b"", xid=None, read_size=0, long_reply=False):
        """A call. data: the end of args, which goes by a Read chunk; read_size: of a Write chunk."""
        xid = r.next_xid() if xid is None else xid
        rpc = r.call_message(r.NFS, 3, proc, args, xid=xid)
        lists = b""
        if data:
            head = len(rpc) - len(data) - (-len(data) % 4)
            lists += struct.pack(">II", 1, head) + self.segment(0, len(data))
            rpc = rpc[:head]
        lists += r.u32(0)
        if read_size:
            lists += struct.pack(">II", 1, 1) + self.segment(0, read_size)
        lists += r.u32(0)
        if long_reply:
            lists += struct.pack(">II", 1, 1) + self.segment(REPLY_AT, REPLY_SIZE)
        else:
            lists += r.u32(0)
        return struct.pack(">IIII", xid, 1, CREDITS, MSG) + lists + rpc

    def call_for(self, proc, args, xid=None):
        """The call as the Linux client sends it; a WRITE's data is put in its place."""
        if proc == r.WRITE:
            count = struct.unpack(">I", args[4 + (n := struct.unpack(">I", args[:4])[0]) + (-n % 4) + 8:][:4])[0]
            start = len(args) - count - (-count % 4)
            if count:
                self.put(args[start:start + count])
            return self.message(proc, args, data=args[start:start + count], xid=xid)
        if proc == r.READ:
            return self.message(proc, args, read_size=struct.unpack(">I", args[-4:])[0], xid=xid)
        return self.message(proc, args, long_reply=proc in (r.READDIR, r.READDIRPLUS, r.READLINK), xid=xid)

    def unwrap(self, raw):
        """A reply's xid, its RPC message, and how many bytes came by Write chunks."""
        x = r.In(raw)
        xid, vers, credits, kind = x.u32(), x.u32(), x.u32(), x.u32()
        if vers != 1 or not credits:
            raise ValueError(f"version {vers}, {credits} credits")
        if kind == ERROR:
            raise RdmaError(raw[16:].hex())
        if x.u32():
            raise ValueError("a Read list in a reply")
        written = 0
        while x.u32():
            for _ in range(x.u32()):
                written += struct.unpack(">IIQ", x.take(16))[1]
        long_size = 0
        if x.u32():
            for _ in range(x.u32()):
                long_size += struct.unpack(">IIQ", x.take(16))[1]
        return xid, self.get(long_size, REPLY_AT) if kind == NOMSG else raw[x.at:], written

    def reply(self, proc, raw):
        """The decoded results of a reply."""
        xid, rpc, written = self.unwrap(raw)
        if written and proc == r.READ:
            rpc += self.get(written) + bytes(-written % 4)
        return r.decode(proc, r.reply_body(rpc, xid))

    def nfs(self, proc, args=b""):
        message = self.call_for(proc, args)
        self.send(message)
        while True:
            raw = self.receive()
            if raw is None:
                raise TimeoutError(f"{r.NAMES[proc]} is not answered")
            if raw[:4] == message[:4]:
                return self.reply(proc, raw)
