# SPDX-License-Identifier: BSD-2-Clause
"""The client of rpcclient.py over UDP: a datagram a call."""
import socket
import time

import rpcclient as r


class Datagrams(r.Conn):
    """tries: times that a call is sent, as a datagram or its reply may be lost; wait: seconds after each."""

    def __init__(self, port, host="127.0.0.1", source=None, tries=60, wait=0.5):
        self.tries, self.wait = tries, wait
        self.s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            self.s.settimeout(wait)
            if source:
                self.s.bind(source)
            self.s.connect((host, port))  # replies from another address are not taken
        except BaseException:
            self.s.close()
            raise

    def send(self, message, fragment=None):
        self.s.send(message)

    def recv(self):
        return self.s.recv(1 << 16)

    def exchange(self, message, fragment=None):
        for _ in range(self.tries):
            self.send(message)
            end = time.monotonic() + self.wait
            while time.monotonic() < end:
                try:
                    data = self.recv()
                except TimeoutError:
                    break
                except ConnectionRefusedError:  # a server that has just begun may not have its UDP port yet
                    time.sleep(max(0, end - time.monotonic()))
                    break
                if data[:4] == message[:4]:  # else it is a second reply to an earlier call
                    return data
        raise TimeoutError(f"no reply to {self.tries} datagrams")

    def replies(self, seconds):
        """All that come until nothing has come for so long."""
        out = []
        self.s.settimeout(seconds)
        try:
            while True:
                out.append(self.recv())
        except TimeoutError:
            return out
        finally:
            self.s.settimeout(self.wait)
