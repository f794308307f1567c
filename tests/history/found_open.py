#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""OPEN that creates (UNCHECKED4), and finds an empty file whose create nobody has brought to disk: a power cut behind its answer leaves the file."""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "net"), os.path.join(HERE, "..", "..", "tools", "softverbs")]
import harness
import nfs4client as n4
import server

TRIES = 3  # the file system may write its log at any moment, so the file that nobody has opened may stay


def kept(d):
    """Files of local processes, three of which are found by an OPEN each, that are there after a power cut."""
    clients = [n4.Client(d.port, f"client {minor}", minor) for minor in (0, 1, 2)]
    for c in clients:
        c.register(), c.reclaim_complete()
    root = clients[0].path(d.export)
    for name, c in [*((f"4.{c.minor}", c) for c in clients), ("left", None)]:
        os.close(os.open(f"{d.export}/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        while c and c.open(root, name, create=True)[0]["status"] == n4.GRACE:
            time.sleep(0.1)
    d.pull_plug()
    return set(os.listdir(d.export)) & {"4.0", "4.1", "4.2", "left"}


def main():
    t = harness.Count()
    os.umask(0)
    server.own_mounts()
    for fs in ("ext4", "xfs"):
        with server.Server(fs, "rw,no_root_squash,insecure,sync", {}) as d:
            if d.fs != fs:
                t.skip(fs, "no file system of one's own")
                continue
            d.start()
            for _ in range(TRIES):
                there = kept(d)
                for name in there:
                    os.unlink(f"{d.export}/{name}")
                if "left" not in there:
                    break
            t.equal(f"{fs}: files that are kept", there, {"4.0", "4.1", "4.2"})
    harness.result(t)


if __name__ == "__main__":
    main()
