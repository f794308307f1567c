#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A small CephFS for guests, and the time (guest/set_clock.py), until it is ended: ceph.py DEVICE ADDRESS FILE. It is at that address of the device, and writes
its configuration's name to FILE when it is up."""
import ctypes
import fcntl
import os
import socket
import struct
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "net"))
from tinyceph import Ceph  # noqa: E402

TIME_PORT = 123
SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17


def complete_checksums(device):
    """Guests do not know of packets whose checksum the device is to compute."""
    command = bytearray(struct.pack("II", ETHTOOL_STXCSUM, 0))
    address = (ctypes.c_char * len(command)).from_buffer(command)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCETHTOOL, struct.pack("16sP16x", device.encode(), ctypes.addressof(address)))


complete_checksums(sys.argv[1])
with Ceph(mds=1, address=sys.argv[2], more=()) as ceph:
    with open(sys.argv[3] + ".new", "w") as f:
        f.write(ceph.conf)
    os.rename(sys.argv[3] + ".new", sys.argv[3])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as clock:
        clock.bind((sys.argv[2], TIME_PORT))
        while True:
            who = clock.recvfrom(16)[1]
            clock.sendto(struct.pack("d", time.time()), who)
