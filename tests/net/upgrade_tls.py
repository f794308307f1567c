#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Connections under TLS end when the program is run anew; what their clients have goes on over other ones, without reclaims."""
import shutil
import tempfile

import harness
import nfs4client as n
import rpcclient as r
import tls
import tlsclient
from upgrade import restart

EXPORT = "rw,no_root_squash,insecure"


def goes_on(t, d, ctx, what):
    c, other = (tlsclient.TlsClient4(d.port, ctx, f"{who} {what}") for who in ("holder", "other"))
    for client in c, other:
        t.equal("registered", (client.register()["status"], client.reclaim_complete()), (n.OK, n.OK))
    root = c.path(d.exports["x"])
    opened, fh = c.open(root, f"file {what}", create=True)
    locked = c.lock(fh, opened["stateid"], offset=100, length=50)
    t.equal("OPEN and LOCK", (opened["status"], locked["status"]), (n.OK, n.OK))
    theirs = other.open(root, f"file {what}")[0]
    said = restart(t, d, what)
    t.check(f"{what}: the state goes along", "goes on from" in said, said)
    for client in c, other:
        try:
            got = client.conn.s.recv(1)
        except (r.Closed, OSError):
            got = b""
        t.equal(f"{what}: the connection has ended", got, b"")
        client.again()
    t.equal("WRITE by the same open", c.last(n.putfh(fh), n.write(opened["stateid"], 0, b"after"))["status"], n.OK)
    t.equal("LOCK by another client", other.lock(fh, theirs["stateid"], offset=120, length=1)["status"], n.DENIED)
    unlock = r.u32(n.WRITE_LT) + r.u32(1) + locked["stateid"] + r.u64(100) + r.u64(50)
    t.equal("LOCKU", c.last(n.putfh(fh), (n.LOCKU, unlock))["status"], n.OK)
    t.equal("LOCK by the other client", other.lock(fh, theirs["stateid"], offset=120, length=1)["status"], n.OK)
    for client in c, other:
        client.close()


def run(t, folder, kernel):
    ca = tlsclient.Authority(folder, "ca")
    crt, key = ca.issue("server")
    ctx = tlsclient.context(ca.path("crt"))
    settings = {"tls.certificate": crt, "tls.key": key, "tls.ktls": "yes" if kernel else "no", "nfs4.lease_time": 10}
    with harness.Daemon({"x": EXPORT}, settings) as d:
        before = tls.kernel_sessions()
        goes_on(t, d, ctx, "kernel" if kernel else "user space")
        if kernel:
            t.check("the kernel has encrypted", tls.kernel_sessions() > before)
        harness.finish(t, d)


def main():
    t, folder = harness.Count(), tempfile.mkdtemp(prefix="ringnfs-tls-")
    try:
        run(t, folder, False)
        if tls.kernel_sessions() is None:
            t.skip("by the kernel", "this kernel has no module tls")
        else:
            run(t, folder, True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    harness.result(t)


if __name__ == "__main__":
    main()
