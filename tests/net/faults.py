#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""A TCP peer that goes wrong at each stage of READ, WRITE and READDIR, in each way that a stream has.

For each: another client works on while it lasts, everything that the daemon held comes back, a record that was not whole has
no effect, and what was acknowledged as stable is in the file, read behind the daemon's back. At the end the daemon is killed
in the middle of work and every acknowledged byte looked for.
"""
import socket
import struct

import harness
import rpcclient as r
from faultbench import DONE, MAYBE, NOTHING, OPS, SIZE, Bench, kill_amid_work
from harness import Count, Daemon

# Places where a call's record is cut, in bytes sent; negative numbers count from its end.
CUTS = {"in the mark": 2, "after the mark": 4, "in the RPC header": 30, "in the handle": 90, "before the last byte": -1,
        "after the call": 0}
DATA_CUTS = {"at the data": -SIZE, "in the data": -SIZE // 2 - 3}
REPLY = ("in the reply", "after the reply")
PIPELINED = 48  # calls whose replies are more than what sockets take
FAULTS = ("end", "half-close", "reset", "silence")


def stages(op):
    return [*CUTS, *(DATA_CUTS if op == "WRITE" else ()), *REPLY]


def whole(stage):
    return stage in ("after the call", *REPLY)


def send_up_to(c, stage, message):
    record = r.u32(0x80000000 | len(message)) + message
    cut = {**CUTS, **DATA_CUTS}.get(stage, 0)
    c.send_raw(record[:cut if cut else len(record)])


def leave(c, fault):
    """Ends the peer's connection."""
    if fault in ("reset", "silence"):
        c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.close()


def rest_of_stream(c):
    """Whole replies until the server closes."""
    replies = []
    try:
        while True:
            replies.append(c.recv())
    except r.Closed:
        return replies


def small_window(d):
    """A connection whose socket takes little."""
    c = r.Conn.__new__(r.Conn)
    c.s = socket.socket()
    c.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    c.s.settimeout(120)
    c.s.connect(("127.0.0.1", d.port))
    return c


def call(b, op):
    args, new = b.args(op)
    return r.call_message(r.NFS, 3, OPS[op], args), new


def is_held(state):
    """Replies' data wait in buffers, or READ's in pipes."""
    return state["payload_buffers"] or state["pipes_in_use"]


def go_wrong(b, op, stage, fault):
    """Drives one peer to its stage and through its fault."""
    message, new = call(b, op)
    stuck = stage == "in the reply"
    c = small_window(b.d) if stuck and op != "WRITE" else b.d.connect()
    wrong, acknowledged = None, False
    send_up_to(c, stage, message)
    if stage == "in the reply":
        if op != "WRITE":
            for _ in range(PIPELINED - 1):
                send_up_to(c, stage, call(b, op)[0])
        c._take(30)
    elif stage == "after the reply":
        wrong = b.bad_reply(op, message, c.recv())
        acknowledged = wrong is None
    if fault == "half-close":
        c.s.shutdown(socket.SHUT_WR)
    if stuck and op != "WRITE":
        with b.still():
            if not is_held(b.held.until(is_held)) or not is_held(b.held.settled()):
                wrong = "the replies were to be stuck"
    elif fault == "silence" and not whole(stage):
        if b.held.until(lambda s: s["tcp_connections"] > 1)["tcp_connections"] < 2:
            wrong = "the connection was not kept"
    b.meanwhile()
    if fault == "half-close" and stage == "after the call":
        replies = rest_of_stream(c)
        wrong = b.bad_reply(op, message, replies[0]) if len(replies) == 1 else f"{len(replies)} replies after a half-close"
        acknowledged = wrong is None
    leave(c, fault)
    return wrong, new, DONE if acknowledged else MAYBE if whole(stage) else NOTHING


def disturb(b):
    rnd = b.random
    c = b.d.connect()
    send_up_to(c, rnd.choice([*CUTS]), call(b, "READ")[0])
    leave(c, rnd.choice(FAULTS))


def main():
    t = Count()
    with Daemon({"x": "rw,no_root_squash,insecure"}) as d:
        b = Bench(t, d, "tcp")
        b.watch(d.connect)
        for op in OPS:  # buffers and descriptors that stay are made now
            b.cell(f"{op} in the reply: silence, first", go_wrong, op, "in the reply", "silence")
        start = b.memory()
        for op in OPS:
            for stage in stages(op):
                for fault in FAULTS:
                    b.cell(f"{op} {stage}: {fault}", go_wrong, op, stage, fault)
        b.check_memory(start)
        b.end_steady()
        if t.check("the daemon lives", d.alive()):
            kill_amid_work(b, d.connect, disturb)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
