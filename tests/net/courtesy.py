#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Clients whose lease has run out keep their opens and locks until somebody conflicts with them. However many are in the way of one call,
it waits until their records are gone from the disk, and is answered what a call without them is: never NFS4ERR_DELAY."""
import time

import harness
import nfs4client as n
import nlm_recovery as nlm
import rpcclient as r
from control import Control

LEASE, CLIENTS = 5, 20
SETTINGS = {"nfs4.lease_time": LEASE, "nfs4.grace_time": LEASE, "nfs4.delegations": "no"}
OPTIONS = "rw,insecure,no_root_squash"
DENY_READ, DENY_WRITE = 1, 2
REMOVE = 28


def hold(t, d, name, deny=0, kind=None):
    """Has many clients open the file, and lock it if kind is set."""
    clients, good = [], 0
    for i in range(CLIENTS):
        c = n.Client(d.port, f"{name} {i}")
        good += c.register()["status"] == n.OK
        c.reclaim_complete()
        res, fh = c.open(c.path(d.exports["x"]), name, create=i == 0, access=n.SHARE_READ, deny=deny)
        good += res["status"] == n.OK
        if kind is not None:
            good += c.lock(fh, res["stateid"], kind=kind)["status"] == n.OK
        clients.append(c)
    t.equal(f"{name}: clients hold it", good, CLIENTS * (2 if kind is None else 3))
    return clients, fh


def main():
    t = harness.Count()
    with Control(SETTINGS, exports={"x": OPTIONS}) as d:
        held = {
            "open": hold(t, d, "open"),
            "lock": hold(t, d, "lock", kind=n.READ_LT),
            "lockt": hold(t, d, "lockt", kind=n.READ_LT),
            "write": hold(t, d, "write", deny=DENY_WRITE),
            "remove": hold(t, d, "remove", deny=DENY_WRITE),
            "nlm": hold(t, d, "nlm", kind=n.READ_LT),
        }
        newcomer = n.Client(d.port, "newcomer")
        newcomer.register(), newcomer.reclaim_complete()
        root = newcomer.path(d.exports["x"])
        opened, fh = newcomer.open(root, "lock")
        t.equal("the newcomer opens what others have locked", opened["status"], n.OK)
        end = time.monotonic() + LEASE + 1.5
        while time.monotonic() < end:  # the newcomer's lease goes on
            newcomer.path(d.exports["x"])
            time.sleep(1)
        t.equal("OPEN that denies READ", newcomer.open(root, "open", access=n.SHARE_READ, deny=DENY_READ)[0]["status"], n.OK)
        t.equal("LOCK", newcomer.lock(fh, opened["stateid"])["status"], n.OK)
        tested = newcomer.compound(n.putfh(held["lockt"][1]), (n.LOCKT, r.u32(n.WRITE_LT) + r.u64(0) + r.u64(n.ALL) + r.u64(newcomer.clientid) +
                                                               r.opaque(b"tester")))
        t.equal("LOCKT", tested[-1]["status"], n.OK)
        with d.connect() as c:
            top = d.root(c, "x")
            t.equal("WRITE of NFSv3", c.nfs(r.WRITE, r.write_args(c.nfs(r.LOOKUP, r.diropargs(top, "write"))["fh"], 0, b"x"))["status"], 0)
        t.equal("REMOVE", newcomer.compound(n.putfh(root), (REMOVE, r.opaque(b"remove")))[-1]["status"], n.OK)
        three = nlm.Client(d, "127.0.0.2", b"three")
        fh = three.conn.nfs(r.LOOKUP, r.diropargs(d.root(three.conn, "x"), "nlm"))["fh"]
        t.equal("LOCK of NLM", three.lock(fh, proc=nlm.NLM_NM_LOCK), nlm.GRANTED)
        for clients, _fh in held.values():
            for c in clients:
                c.close()
        newcomer.close()
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
