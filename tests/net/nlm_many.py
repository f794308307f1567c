#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""10,000 locks of one client: taken, reclaimed after a crash of the server, met by another client and by a local process, and given back."""
import fcntl
import os
import struct

import harness
import nlm_recovery as base
import rpcclient as r
from harness import Count, Daemon
from nlm_recovery import DENIED, GRACE_PERIOD, GRANTED, NLM, NLM_FREE_ALL, NLM_LOCK, ONE, TWO, Client, FakeHost, make_file, restart, wait_for
from rpcclient import opaque, u32, u64

FILES, OWNERS, RANGES = 100, 10, 10  # 10,000 in all; an owner's ranges do not touch
LEASE = 8  # and grace: reclaiming must not take as long
WINDOW = 64  # calls that are sent before the first answer is read
EVERY = 97


def ranges():
    for f in range(FILES):
        for i in range(OWNERS * RANGES):
            yield f, i % OWNERS, 10 * i


def lock_args(c, fh, svid, offset, reclaim):
    return (opaque(b"cookie") + u32(0) + u32(1) + opaque(c.name) + opaque(fh) + opaque(b"%d@here" % svid) + u32(svid) + u64(offset) + u64(5) +
            u32(int(reclaim)) + u32(c.state))


def lock_all(c, handles, reclaim=False):
    """The statuses of LOCK, each with its number."""
    stats = {}

    def read():
        data = c.conn.recv()
        x = r.reply_body(data, int.from_bytes(data[:4], "big"))
        x.opaque()
        stat = x.u32()
        stats[stat] = stats.get(stat, 0) + 1

    under_way = 0
    for f, svid, offset in ranges():
        c.conn.send(r.call_message(NLM, 4, NLM_LOCK, lock_args(c, handles[f], svid, offset, reclaim)))
        under_way += 1
        if under_way == WINDOW:
            read()
            under_way -= 1
    for _ in range(under_way):
        read()
    return stats


def met(t, d, two, handles):
    """Some of them, as another client and a local process meet them."""
    some = list(ranges())[::EVERY]
    t.equal("in another's way", {two.lock(handles[f], offset, 5) for f, _, offset in some}, {DENIED})
    free = 0
    for f, _, offset in some:
        with open(os.path.join(d.exports["one"], f"many {f}"), "r+b") as file:
            try:
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, offset, 5, 0))
                free += 1
            except BlockingIOError:
                pass
    t.equal("in a local process's way", free, 0)
    t.equal("and what is between them is free", {two.lock(handles[f], offset + 5, 5) for f, _, offset in some}, {GRANTED})
    for f, _, offset in some:
        two.unlock(handles[f], offset + 5, 5)


def inside():
    t = Count()
    base.network_up()
    hosts = [FakeHost(ONE), FakeHost(TWO)]
    try:
        settings = {"nlm.statd_port": base.MONITOR_PORT, "tcp.listen": "", "nfs4.lease_time": LEASE, "nfs4.grace_time": LEASE}
        with Daemon({"one": "rw,insecure,no_root_squash"}, settings) as d:
            one, two = Client(d, ONE, b"one"), Client(d, TWO, b"two")
            handles = [make_file(d, one, f"many {f}") for f in range(FILES)]
            number = FILES * OWNERS * RANGES
            # Those that come while the host is being recorded may be told to come again.
            t.equal("the first", one.lock(handles[0], 1 << 41), GRANTED)
            t.equal("taken", lock_all(one, handles), {GRANTED: number})
            met(t, d, two, handles)
            restart(d)
            one.again(), two.again()
            t.equal("reclaimed within grace", lock_all(one, handles, True), {GRANTED: number})
            t.equal("others wait", two.lock(handles[0], 1 << 40), GRACE_PERIOD)
            t.check("until it is over", wait_for(lambda: two.lock(handles[0], 1 << 40) == GRANTED, 4 * LEASE))
            met(t, d, two, handles)
            one.conn.call(NLM, 4, NLM_FREE_ALL, opaque(one.name) + u32(3))
            t.equal("given back", lock_all(two, handles), {GRANTED: number})
            harness.finish(t, d)
    finally:
        for h in hosts:
            h.close()
    harness.result(t)


if __name__ == "__main__":
    base.main(__file__, inside)
