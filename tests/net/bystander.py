# SPDX-License-Identifier: BSD-2-Clause
"""A well-behaved client in a process of its own, that goes on while others misbehave, and measures how long it waits.

It has an address of its own: what one client does to its own share is its own affair.
"""
import json
import os
import signal
import time

import rpcclient as r

SOURCE = ("127.0.0.2", 0)


def _work(d, conn, root, fh, data, n):
    """A little of everything; raises when an answer is wrong."""
    if conn.nfs(r.LOOKUP, r.lookup_args(root, "bystander"))["fh"] != fh:
        raise ValueError("LOOKUP found another file")
    got = conn.nfs(r.READ, r.read_args(fh, 0, len(data)))
    if got["data"] != data:
        raise ValueError("READ gave other data")
    w = conn.nfs(r.WRITE, r.write_args(fh, 0, data, r.UNSTABLE))
    if w["status"] or w["count"] != len(data):
        raise ValueError(f"WRITE: {w}")
    if n % 20 == 0:  # a new connection gets in as well
        with d.connect(source=SOURCE) as new:
            new.nfs(r.GETATTR, r.getattr_args(root))


def _loop(d, root, out):
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    waits, error, n, data = [], None, 0, os.urandom(10000)
    try:
        conn = d.connect(source=SOURCE)
        fh = conn.nfs(r.CREATE, r.create_args(root, "bystander"))["fh"]
        conn.nfs(r.WRITE, r.write_args(fh, 0, data))
        os.write(out, b"\n")
        while not stop:
            start = time.monotonic()
            _work(d, conn, root, fh, data, n)
            waits.append(time.monotonic() - start)
            n += 1
            time.sleep(0.01)
    except Exception as e:  # whatever it is, the parent shall say it
        error = repr(e)
    os.write(out, json.dumps({"rounds": len(waits), "max": max(waits, default=0), "error": error}).encode())


class Bystander:
    def __init__(self, d, root):
        self.rd, wr = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.rd)
            _loop(d, root, wr)
            os._exit(0)
        os.close(wr)
        os.read(self.rd, 1)

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        out = b""
        while more := os.read(self.rd, 4096):
            out += more
        os.waitpid(self.pid, 0)
        os.close(self.rd)
        return json.loads(out)


def watched(t, d, root, test, *args):
    """Runs test(t, d, root, *args) while a bystander works; no round of its three calls may take long."""
    b = Bystander(d, root)
    start = time.monotonic()
    try:
        test(t, d, root, *args)
    finally:
        seen = b.stop()
    name = test.__name__.removeprefix("test_")
    print(f"{name}: {time.monotonic() - start:.1f} s; bystander: {seen['rounds']} rounds, slowest {seen['max'] * 1000:.0f} ms", flush=True)
    t.check(f"bystander during {name}", seen["error"] is None and seen["rounds"] > 0, seen)
    t.check(f"bystander's waits during {name}", seen["max"] < 10, seen)  # 4 s until those who do not read are closed; the rest is a busy machine's
