#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""All RDMA connections that may be are taken: who gets in all the same, and how many a host gets that no export is for."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import rpcclient as r
from rdma_quotas import Crowd, PORT
from rdmaclient import Peer

MOST = 24


def newcomer(f, name, fh):
    """Seconds until a new client has its first answer; None: it has none after ten."""
    start = time.monotonic()
    while time.monotonic() < start + 10:
        peer = Peer(f.environment(), before=f.command(name))
        try:
            peer.connect("127.0.0.1", PORT)
            peer.nfs(r.GETATTR, r.getattr_args(fh)) if hasattr(peer, "nfs") else None
            return time.monotonic() - start
        except Exception as e:  # refused: it tries again, as clients do
            print(f"# {name}: {e!r}")
            time.sleep(0.2)
        finally:
            peer.kill()
    return None


def main():
    t = harness.Count()
    settings = {"rdma.enabled": "yes", "rdma.port": PORT, "rdma.max_connections": MOST}
    with fabric.Fabric() as f, harness.Daemon({"x": "rw,insecure,no_root_squash"}, settings, before=f.command("server"),
                                              env=f.environment()) as d:
        with open(os.path.join(d.top, "exports"), "w") as e:
            e.write(f"{d.exports['x']} 127.0.0.0/24(rw,insecure,no_root_squash)\n")
        d.reload()
        with d.connect() as c:
            fh = c.nfs(r.CREATE, r.create_args(d.root(c, "x"), "f"))["fh"]
        call, null = r.call_message(r.NFS, 3, r.GETATTR, r.getattr_args(fh)), r.call_message(r.NFS, 3, r.NULL)
        crowd = Crowd(f, "127.0.0.3", MOST, 4, call)
        t.equal("connections of one client", crowd.opened, MOST)
        crowd.flood()
        waits = [newcomer(f, f"new{i}", fh) for i in range(3)]
        t.check("newcomers beside a client that has all connections and uses them", all(w is not None and w < 5 for w in waits), waits)
        crowd.end()
        time.sleep(0.5)
        strangers = Crowd(f, "127.0.9.3", MOST, 1, null)
        t.check("connections of a host that no export is for", 1 <= strangers.opened <= 16, strangers.opened)
        strangers.end()
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
