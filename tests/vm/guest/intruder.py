#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tries to manage another client's NFSv4.1 state, under a ticket of its own. It knows all that is said in clear text.

intruder.py session DEVICE                      prints the id of the session by which calls with integrity go out or come in there
intruder.py try PORT SERVICE CACHE SESSION      reads a client of `ringnfsctl clients --json` from standard input, and prints
                                                lines "OPERATION STATUS"
"""
import json
import os
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests/net"))

import gssclient as g
import nfs4client as n4
import rpcclient as r

ETH_P_ALL, GSS = 3, 6
CALL = struct.pack(">IIIII", 0, 2, r.NFS, 4, 1)  # behind the xid: a COMPOUND
UPDATE = 0x40000000


def skip_opaque(data, at):
    return at + 4 + (int.from_bytes(data[at:at + 4], "big") + 3 & ~3)


def session_of(frame):
    """The session's id if the frame has a COMPOUND with integrity that begins with SEQUENCE, else None. The transport does not matter."""
    at = frame.find(CALL)
    if at < 0 or frame[at + 20:at + 24] != r.u32(GSS):
        return None
    service = frame[at + 40:at + 44]
    at = skip_opaque(frame, skip_opaque(frame, at + 24) + 4)  # credential, verifier
    at = skip_opaque(frame, at + 8)  # length of the body, number; tag
    if service != r.u32(g.INTEGRITY) or frame[at + 8:at + 12] != r.u32(n4.SEQUENCE):
        return None
    return frame[at + 12:at + 28]


def listen(device):
    signal.alarm(60)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as s:
        s.bind((device, 0))
        while not (found := session_of(s.recv(65536))):
            pass
    print(found.hex())


class Intruder(n4.Client):
    def __init__(self, port, service, cache, client):
        self.service, self.cache = service, cache
        super().__init__(port, client["name"], 2)
        self.clientid = int(client["id"], 16)

    def _connect(self):
        self.conn = g.GssConn(self.port)
        self.conn.session, self.conn.service = g.Session(self.conn, self.cache, self.service, vers=4), g.INTEGRITY

    def status(self, op):
        """Asked again while the name service is asked for the caller."""
        while (status := self.bare(op)[0]["status"]) == n4.DELAY:
            time.sleep(0.1)
        return status

    def exchange_id(self, verifier, flags=0):
        return n4.EXCHANGE_ID, verifier + r.opaque(self.owner) + r.u32(flags) + r.u32(0) * 2

    def create_session(self, seqid):
        channel = b"".join(map(r.u32, (0, 65536, 65536, 4096, 16, 8, 0)))
        return n4.CREATE_SESSION, r.u64(self.clientid) + r.u32(seqid) + r.u32(0) + channel * 2 + r.u32(0x40000000) + r.u32(1) + r.u32(0)


def tries(c, session):
    yield "EXCHANGE_ID", c.exchange_id(b"intruder")
    yield "update", c.exchange_id(b"intruder", UPDATE)
    for seqid in 1, 2, 3:
        yield "CREATE_SESSION", c.create_session(seqid)
    yield "BIND_CONN_TO_SESSION", (n4.BIND_CONN_TO_SESSION, session + r.u32(1) + r.u32(0))
    yield "SEQUENCE", (n4.SEQUENCE, session + r.u32(1) + r.u32(63) + r.u32(63) + r.u32(0))
    yield "DESTROY_SESSION", (n4.DESTROY_SESSION, session)
    yield "DESTROY_CLIENTID", (n4.DESTROY_CLIENTID, r.u64(c.clientid))


def main():
    if sys.argv[1] == "session":
        listen(sys.argv[2])
        return
    port, service, cache, session = sys.argv[2:]
    c = Intruder(int(port), service, cache, json.load(sys.stdin))
    for name, op in tries(c, bytes.fromhex(session)):
        print(name, c.status(op))
    c.close()


main()
