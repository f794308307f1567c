#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsd itself over the fabric, as built, spoken to by tests/rdma/rr_probe: good messages and bad ones."""
import os
import re
import sys

import fabric
from fabric import Fabric

import harness

count = harness.Count()
PORT = 20049
CONNECTIONS, MESSAGES = 100, 300


def probe(what, host, devices=None):
    program = os.path.abspath("tests/rdma/rr_probe")
    settings = {"rdma.enabled": "yes", "rdma.port": PORT}
    with Fabric(devices) as f:
        with harness.Daemon({"e": "rw,insecure,no_root_squash"}, settings, before=f.command("server"),
                            env=f.environment(), hosts=("127.0.0.0/8", "::1")) as d:
            status, out = f.run("client", program, host, PORT, CONNECTIONS, MESSAGES)
            for result, name in re.findall(r"^(ok|FAIL)\s+(.*)$", out, re.M):
                count.check(f"{what}: {name}", result == "ok")
            count.check(f"{what}: the probe comes to its end", " passed, " in out, f"{status}: {out[-2000:]}")
            held = f.status(d.process.pid)
            count.equal(f"{what}: queue pairs left", held["qps"], 0)
            harness.finish(count, d)


def main():
    if not os.path.exists(fabric.LIB):
        raise SystemExit(f"{fabric.LIB} is not there: build it, or set SOFTVERBS_LIB")
    probe("IPv4", "127.0.0.1")
    probe("IPv6", "::1")
    probe("iWARP", "127.0.0.1", "iw0=127.0.0.1:iwarp")
    harness.result(count)


if __name__ == "__main__":
    sys.exit(main())
