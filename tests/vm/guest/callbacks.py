#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts the NFSv4 callbacks that go out by a network device, over TCP, by the flavour of their credential.

callbacks.py DEVICE FILE    creates FILE when it listens; at SIGTERM writes lines "FLAVOUR CALLS" there
A call counts if its record begins in a segment's first byte, as it does unless replies go out in the same segment."""
import collections
import signal
import socket
import struct
import sys

ETH_P_ALL, OUTGOING, TCP = 3, 4, 6
CALL, RPC_VERSION, CB_COMPOUND = 0, 2, 1
PROGRAMS = range(0x40000000, 0x60000000)


def flavor(frame):
    """The flavour if the frame begins with a callback, else None."""
    if len(frame) < 34 or frame[12:14] != b"\x08\x00" or frame[23] != TCP:
        return None
    tcp = 14 + (frame[14] & 15) * 4
    rpc = frame[tcp + (frame[tcp + 12] >> 4) * 4:14 + int.from_bytes(frame[16:18], "big")]
    if len(rpc) < 32:
        return None
    _, _, kind, version, program, _, procedure, by = struct.unpack_from(">8I", rpc)
    if (kind, version, procedure) != (CALL, RPC_VERSION, CB_COMPOUND) or program not in PROGRAMS:
        return None
    return by


def main():
    device, path = sys.argv[1:]
    counts = collections.Counter()

    def finish(*_):
        with open(path, "w", encoding="ascii") as f:
            f.writelines(f"{by} {n}\n" for by, n in sorted(counts.items()))
        sys.exit(0)

    signal.signal(signal.SIGTERM, finish)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as s:
        s.bind((device, 0))
        with open(path, "w", encoding="ascii"):
            pass
        while True:
            frame, where = s.recvfrom(65536)
            by = flavor(frame) if where[2] == OUTGOING else None
            if by is not None:
                counts[by] += 1


main()
