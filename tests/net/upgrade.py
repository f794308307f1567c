#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The program is run anew in the same process while clients are connected: connections, replies and what was read of a call go on."""
import re
import signal
import time

import rpcclient as r
from harness import Count, Daemon, result


def restart(t, d, what):
    """Has the program run anew, and waits until it serves; what its log says of it."""
    pid, before = d.process.pid, len(d.read_log())
    d.process.send_signal(signal.SIGUSR2)
    for _ in range(6000):
        said = d.read_log()[before:]
        if re.search(r"\bready\b", said) or "no restart" in said:
            break
        time.sleep(0.005)
    t.check(f"{what}: it serves", re.search(r"\bready\b", said), said)
    t.check(f"{what}: the same process", d.process.poll() is None and d.process.pid == pid)
    return said


def calls_by_tcp(t, d):
    with r.Conn(d.port) as c, r.Conn(d.port) as part:
        root = c.mnt(d.exports["one"])[1]
        xid = r.next_xid()
        args = r.mkdir_args(root, "once")
        first = c.nfs(r.MKDIR, args, xid=xid)
        t.equal("MKDIR", first["status"], 0)
        # A call of which the first bytes only have come, with a whole one before it.
        message = r.call_message(r.NFS, 3, r.GETATTR, r.getattr_args(root))
        record = r.u32(0x80000000 | len(message)) + message
        part.send_raw(record[:7])
        said = restart(t, d, "NFSv3")
        t.check("the state goes along", "goes on from" in said, said)
        print("#", *re.findall(r"calls waited for \d+ ms", said))
        part.send_raw(record[7:])
        t.equal("a call that had come in part", part.recv()[4:8], r.u32(1))
        t.equal("the same call again", c.nfs(r.MKDIR, args, xid=xid), first)
        t.check("a further call", c.nfs(r.MKDIR, args)["status"] == 17)
        t.equal("GETATTR", c.nfs(r.GETATTR, r.getattr_args(root))["status"], 0)


def main():
    t = Count()
    with Daemon({"one": "rw,no_root_squash,insecure"}) as d:
        for _ in range(3):
            calls_by_tcp(t, d)
            import os
            os.rmdir(d.exports["one"] + "/once")
        t.check("the daemon ends well", d.stop(), d.read_log())
    result(t)


main()
