#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Asks a server on loopback as a client would: ask.py PORT [EXPORT].

NULL of NFSv3 and 4; with EXPORT also MNT, and a file that user 1000 makes, writes and reads. Exits 0 if all was answered.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "net"))
import rpcclient as r  # noqa: E402

USER = r.auth_sys(1000, 1000, [1000])


def write_and_read(c, export):
    status, root = c.mnt(export)[:2]
    assert status == 0, f"MNT: status {status}"
    made = c.nfs(r.CREATE, r.create_args(root, b"by-1000", attrs=r.sattr(mode=0o600)), USER)
    assert made["status"] == 0, f"CREATE: status {made['status']}"
    data = os.urandom(5000)
    assert c.nfs(r.WRITE, r.write_args(made["fh"], 0, data), USER)["status"] == 0, "WRITE"
    read = c.nfs(r.READ, r.read_args(made["fh"], 0, 8192), USER)
    assert read["data"] == data, "READ gave other data"


with r.Conn(int(sys.argv[1])) as conn:
    for version in (3, 4):
        conn.call(r.NFS, version, 0)
    if len(sys.argv) > 2:
        write_and_read(conn, sys.argv[2])
print("answered")
