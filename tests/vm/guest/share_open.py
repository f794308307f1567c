#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A client of NFSv4.0 that opens a file with a share reservation, which Linux's client never asks for.

share_open.py HOST PORT PATH ACCESS DENY STATE: ACCESS and DENY are 0 none, 1 read, 2 write, 3 both. Writes the
status of OPEN to the file STATE, and if it is 0 holds the file open until STATE is removed."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "net"))
from rpcclient import Conn, call_message, name, opaque, reply_body, u32, u64  # noqa: E402

PUTROOTFH, LOOKUP, GETFH, PUTFH, OPEN, OPEN_CONFIRM, CLOSE = 24, 15, 10, 22, 18, 20, 4
SETCLIENTID, SETCLIENTID_CONFIRM, RENEW = 35, 36, 30
DELAY = 10008


class Failed(Exception):
    """.args: the operation's number and its status"""


class Client:
    def __init__(self, host, port):
        self.conn = Conn(port, host)
        verf = os.urandom(8)
        x = self.compound([(SETCLIENTID, verf + name("share_open %d" % os.getpid()) + u32(0) + name("tcp") + name("0.0.0.0.0.0") + u32(0))])
        self.id, confirm = x.u64(), x.take(8)
        self.compound([(SETCLIENTID_CONFIRM, u64(self.id) + confirm)])
        self.seq = 0

    def compound(self, ops):
        """The results of the last operation; those before have none but GETFH."""
        args = name("") + u32(0) + u32(len(ops)) + b"".join(u32(op) + arg for op, arg in ops)
        x = reply_body(self.conn.exchange(call_message(100003, 4, 1, args)))
        x.u32(), x.opaque()
        for _ in range(x.u32()):
            op, status = x.u32(), x.u32()
            if status:
                raise Failed(op, status)
        return x

    def path(self, path):
        return [(PUTROOTFH, b"")] + [(LOOKUP, name(n)) for n in path.split("/") if n]

    def open(self, path, access, deny):
        folder, last = os.path.split(path)
        args = u32(self.seq) + u32(access) + u32(deny) + u64(self.id) + name("owner") + u32(0) + u32(0) + name(last)
        self.seq += 1
        x = self.compound(self.path(folder) + [(OPEN, args)])
        self.stateid = x.take(16)
        x.take(20)  # cinfo
        flags = x.u32()
        self.fh = self.compound(self.path(path) + [(GETFH, b"")]).opaque()
        if flags & 2:
            x = self.compound([(PUTFH, opaque(self.fh)), (OPEN_CONFIRM, self.stateid + u32(self.seq))])
            self.seq += 1
            self.stateid = x.take(16)

    def close(self):
        self.compound([(PUTFH, opaque(self.fh)), (CLOSE, u32(self.seq) + self.stateid)])

    def renew(self):
        self.compound([(RENEW, u64(self.id))])


def main():
    host, port, path, access, deny, state = sys.argv[1:]
    client = Client(host, int(port))
    # Whoever holds a delegation in the place of an open is asked for it first.
    for _ in range(600):
        status = 0
        try:
            client.open(path, int(access), int(deny))
        except Failed as e:
            status = e.args[1]
            if e.args == (OPEN, DELAY):
                time.sleep(0.1)
                continue
        break
    with open(state + ".new", "w", encoding="ascii") as f:
        f.write(f"{status}\n")
    os.rename(state + ".new", state)
    if status:
        return
    for i in range(10000):
        if not os.path.exists(state):
            break
        time.sleep(0.1)
        if i % 20 == 19:
            client.renew()
    client.close()
    with open(state + ".closed", "w", encoding="ascii"):
        pass


main()
