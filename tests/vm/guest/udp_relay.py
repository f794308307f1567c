#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Relays calls of one RPC program from UDP to a TCP port of this machine: quota(1) asks by UDP only.
    udp_relay.py PROGRAM VERSION[,VERSION] UDP-PORT TCP-PORT
It registers itself with rpcbind, and says "ready" then."""
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "net"))
import rpcclient as r

PMAP, SET, UNSET, UDP = 100000, 1, 2, 17


def register(prog, vers, port):
    source = socket.getaddrinfo("127.0.0.1", 700, type=socket.SOCK_STREAM)[0][4]  # rpcbind wants a privileged port
    with r.Conn(111, source=source) as c:
        for proc in (UNSET, SET):
            c.call(PMAP, 2, proc, r.u32(prog) + r.u32(vers) + r.u32(UDP) + r.u32(port))
        c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # the port is free at once


def main():
    prog, port, tcp = (int(sys.argv[i]) for i in (1, 3, 4))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", port))
    for vers in sys.argv[2].split(","):
        register(prog, int(vers), port)
    print("ready", flush=True)
    with r.Conn(tcp) as c:
        while True:
            call, peer = s.recvfrom(65536)
            s.sendto(c.exchange(call), peer)


if __name__ == "__main__":
    main()
