# SPDX-License-Identifier: BSD-2-Clause
"""Ports for servers that tests start, which no other test that runs at the same time gets.

They lie below those that the kernel gives to connecting sockets, so that no client takes one before its server listens, or while it
restarts. An abstract socket for each, held until the process ends, tells the other tests of the same network namespace."""
import random
import socket

FIRST, LAST = 21000, 31999  # above 20048 and 20049, which belong to MOUNT and to NFS over RDMA
_held = {}


def _unused(port):
    with socket.socket() as s, socket.socket(type=socket.SOCK_DGRAM) as u:
        # Connections that a server ended before keep no other from listening.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("", port))
            u.bind(("", port))
        except OSError:
            return False
    return True


def free_port():
    """A port that neither TCP nor UDP uses."""
    while True:
        port = random.SystemRandom().randint(FIRST, LAST)
        mark = socket.socket(socket.AF_UNIX)
        try:
            mark.bind(f"\0ringnfs-test-port-{port}")
        except OSError:
            mark.close()
            continue
        if _unused(port):
            _held[port] = mark
            return port
        mark.close()


def give_back(port):
    """Of a server that has ended, in a process that starts many."""
    _held.pop(port).close()
