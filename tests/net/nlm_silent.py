#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Many NFSv3 hosts on record that are silent after a restart of the server: the others are told of it all the same, while they may still
reclaim their locks. In a network name space, where hosts have addresses of their own."""
import harness
from harness import Count, Daemon
from nlm_recovery import GRANTED, MONITOR_PORT, NFS4_CLIENT, Client, FakeHost, main, make_file, network_up, records, restart, wait_for

SILENT = 400
LIVE = [f"127.0.1.{i}" for i in range(2, 8)]


def hold(d, address, fh, offset):
    c = Client(d, address, address.encode())
    got = c.lock(fh, offset)
    c.conn.close()
    return got


def inside():
    t = Count()
    network_up()
    hosts = [FakeHost(a) for a in LIVE]
    try:
        settings = {**NFS4_CLIENT, "nlm.statd_port": MONITOR_PORT, "tcp.listen": ""}
        with Daemon({"one": "rw,insecure,no_root_squash"}, settings) as d:
            first = Client(d, "127.0.0.2", b"first")
            fh = make_file(d, first, b"file")
            addresses = [f"127.2.{i // 250}.{i % 250 + 1}" for i in range(SILENT)]
            addresses[SILENT // 2:SILENT // 2] = LIVE
            answers = {hold(d, a, fh, 100 * i) for i, a in enumerate(addresses)}
            t.equal("each host has a lock", answers, {GRANTED})
            t.check("and is on record", wait_for(lambda: len(records(d)[1]) == SILENT + len(LIVE)))
            restart(d)
            t.check("each live host is told", wait_for(lambda: all(h.notices for h in hosts)), [len(h.notices) for h in hosts])
            again = [Client(d, a, a.encode()).lock(fh, 100 * addresses.index(a), reclaim=True) for a in LIVE]
            t.equal("and reclaims its lock", again, [GRANTED] * len(LIVE))
            harness.finish(t, d)
    finally:
        for h in hosts:
            h.close()
    harness.result(t)


if __name__ == "__main__":
    main(__file__, inside)
