#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Many recalls through the back channel of one session, over TCP and over RDMA, there also with one credit: each delegation is recalled
once, and the connection and the path stay. RECALLS says how many (200); ./check full has 10,000."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import callbacks_rdma
import delegations
import harness
import nfs4client as n4
from rpcclient import opaque, u32, u64

RECALLS = int(os.environ.get("RECALLS") or (10000 if os.environ.get("RINGNFS_VM_FULL") else 200))
BATCH = 100  # delegations at a time: they are to be returned within a lease
SETTINGS = {"nfs4.lease_time": 20, "nfs4.grace_time": 5}
SIZE_3 = u32(1) + u32(1 << 4) + opaque(u64(3))


def held_now(reader, root, names):
    """{stateid: handle} of the delegations that the reader gets."""
    got = {}
    for name in names:
        res, fh = reader.open(root, name, access=n4.SHARE_READ)
        if res.get("delegation") == n4.DELEGATE_READ:
            got[res["deleg"]] = fh
        reader.close_file(fh, res["stateid"])
    return got


def one_batch(t, reader, writer, got):
    """The writer wants all files; the reader is told of each delegation once, and returns it."""
    told, before = set(), len(reader.called)
    for fh in got.values():
        res = writer.last(n4.putfh(fh), (n4.SETATTR, n4.ANONYMOUS + SIZE_3))
        if res["status"] != n4.DELAY:
            t.check("SETATTR waits", False, res)
        # Each waits 30 ms for the reader, who answers what has come meanwhile, and keeps its lease.
        reader.compound((n4.PUTROOTFH, b""))
    while len(told) < len(got):
        reader.await_callback(n4.CB_RECALL, len(told) + 1)
        for c in reader.called[before + len(told):]:
            if c["op"] != n4.CB_RECALL or c["stateid"] in told or c["stateid"] not in got:
                return t.check("a recall of what is held, once", False, c)
            told.add(c["stateid"])
    for deleg, fh in got.items():
        if (status := reader.delegreturn(fh, deleg)) != n4.OK:
            return t.check("DELEGRETURN", False, status)
    return True


def test(t, d, kind, what):
    reader, writer = delegations.new_client(d, f"reader by {what}", 1, kind), delegations.new_client(d, f"writer by {what}", 1, n4.Client)
    names = [f"{what}{i}" for i in range(min(RECALLS, BATCH))]
    for name in names:
        delegations.make(d, name)
    root, done, seconds = reader.path(d.exports["one"]), 0, 0.0
    while done < RECALLS:
        reader.called.clear()
        got = held_now(reader, root, names)
        start = time.monotonic()
        if not one_batch(t, reader, writer, got):
            break
        seconds += time.monotonic() - start
        done += len(got)
        writer.compound((n4.PUTROOTFH, b""))
        if not got:
            time.sleep(0.2)  # files that were recalled have none for a while
    t.check(f"{what}: {RECALLS} recalls", done >= RECALLS, done)
    t.equal(f"{what}: flags of the path", (reader.last((n4.PUTROOTFH, b""))["status"], reader.flags), (n4.OK, 0))
    print(f"# {what}: {done} recalls, {done / max(seconds, 0.001):.0f} in a second", flush=True)
    reader.close()
    writer.close()


def main():
    t = harness.Count()
    with fabric.Fabric() as f:
        over_rdma, _, one_credit, _ = callbacks_rdma.kinds(f)
        settings = dict(SETTINGS, **{"rdma.enabled": "yes", "rdma.port": callbacks_rdma.PORT})
        with harness.Daemon({"one": delegations.OPTIONS}, settings, before=f.command("server"), env=f.environment()) as d:
            test(t, d, delegations.Called, "TCP")
            test(t, d, over_rdma, "RDMA")
            test(t, d, one_credit, "RDMA with one credit")
            t.equal("the log", [line for line in d.read_log().splitlines() if "not returned" in line or "RNR" in line], [])
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
