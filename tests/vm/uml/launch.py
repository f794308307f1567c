#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs user-mode Linux: launch.py PROGRAM ARGUMENT...

Opens the packet sockets of its network devices ("vec0:transport=raw,ifname=..."), which its driver would open with the usual receive buffer.
That has room for some 40 packets of RoCE. An RDMA Read of 1 MiB is 256 at once; what is lost then is sent again and again, for up to a minute."""
import os
import re
import socket
import sys

ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 3, 263, 23, 33
BUFFER = 32 << 20


def packet_socket(device):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    s.bind((device, 0))
    os.set_inheritable(s.fileno(), True)
    return s.detach()


args = [re.sub(r"transport=raw,ifname=([^,]+)", lambda m: f"transport=fd,fd={packet_socket(m[1])}", a) for a in sys.argv[1:]]
os.execv(args[0], args)
