# SPDX-License-Identifier: BSD-2-Clause
"""Clients in processes of their own that take all they can get: many calls on many connections, and replies never read."""
import os
import select
import signal
import socket
import struct

import rpcclient as r

BLOCK = 200  # calls in one piece of output


def record(message):
    return r.u32(0x80000000 | len(message)) + message



class Flood:
    """Calls as fast as the server takes them, on `conns` connections from `source`; counts the bytes of replies."""

    def __init__(self, d, message, conns, source):
        self.rd, self.wr = os.pipe()
        with d.connect(source=(source, 0)) as c:
            self.reply_size = len(c.exchange(message)) + 4
        ready, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.rd)
            os.close(ready)
            signal.signal(signal.SIGUSR2, lambda *_: os.write(self.wr, struct.pack("Q", self.got)))
            try:
                self._run(d, record(message) * BLOCK, conns, source, tell)
            finally:
                os._exit(1)
        os.close(tell)
        os.close(self.wr)
        os.read(ready, 1)
        os.close(ready)

    def _run(self, d, block, conns, source, tell):
        self.got, sockets, left, poll, into = 0, {}, {}, select.poll(), bytearray(1 << 18)
        for _ in range(conns):
            s = d.connect(source=(source, 0)).s
            s.setblocking(False)
            sockets[s.fileno()], left[s.fileno()] = s, memoryview(block)
            poll.register(s, select.POLLIN | select.POLLOUT)
        while sockets:
            for fd, what in poll.poll():
                try:
                    if what & select.POLLIN:
                        n = sockets[fd].recv_into(into)
                        self.got += n
                    if what & select.POLLOUT:
                        left[fd] = left[fd][sockets[fd].send(left[fd]):] or memoryview(block)
                    elif what & select.POLLIN and n == 0 or what & (select.POLLHUP | select.POLLERR):
                        raise ConnectionResetError
                except BlockingIOError:
                    pass
                except ConnectionError:
                    poll.unregister(fd)
                    sockets.pop(fd).close()
            if tell is not None and self.got:
                os.write(tell, b"\n")
                os.close(tell)
                tell = None

    def replies(self):
        """Whole replies received so far."""
        os.kill(self.pid, signal.SIGUSR2)
        answer = os.read(self.rd, 8)
        if not answer:
            raise SystemExit("the flood has ended: the server closed its connections")
        return struct.unpack("Q", answer)[0] // self.reply_size

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.rd)


def deaf(d, message, conns, source):
    """Connections that ask until the server reads no more, and take nothing."""
    out = []
    for _ in range(conns):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.bind((source, 0))
        s.connect(("127.0.0.1", d.port))
        s.setblocking(False)
        try:
            while True:
                s.send(record(message) * BLOCK)
        except BlockingIOError:
            pass
        out.append(s)
    return out
