#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""NFSv4.1 clients that wait for a lock are told (CB_NOTIFY_LOCK) when it ends by something else than an NFSv4 unlock: by NLM, and
by the end of a lease."""
import time

import callbacks
import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

NLM = 100021
NLM_LOCK, NLM_UNLOCK, NLM_FREE_ALL = 2, 4, 23
HOST = b"client of NLM"
LEASE = 12
SETTINGS = {"nfs4.lease_time": LEASE, "nfs4.grace_time": 10}


def nlm(conn, proc, fh, offset, length):
    """The status that NLM4_LOCK or NLM4_UNLOCK returns."""
    range_ = opaque(HOST) + opaque(fh) + opaque(b"owner") + u32(7) + u64(offset) + u64(length)
    args = opaque(b"") + (u32(0) + u32(1) + range_ + u32(0) + u32(1) if proc == NLM_LOCK else range_)
    x = conn.call(NLM, 4, proc, args)
    x.opaque()
    return x.u32()


def new_waiter(d, owner):
    c = callbacks.new_client(d, owner, 1, callbacks.Called)
    c.await_callback()
    return c


def make_file(d, name):
    """Its NFSv3 handle."""
    with d.connect() as c:
        root = d.root(c, "one")
        x = c.call(r.NFS, 3, 8, r.create_args(root, name))
        if x.u32() or not x.flag():
            raise SystemExit(f"{name} cannot be made")
        return x.opaque()


def waits(t, d, c, name, what):
    """The client's open file, for whose first ten bytes it waits."""
    opened, fh = c.open(c.path(d.exports["one"]), name.encode())
    t.equal(f"{what}: LOCK", c.lock(fh, opened["stateid"], n4.WRITEW_LT, 0, 10)["status"], n4.DENIED)
    return opened, fh, b"lock" + u32(c.owner_seqid)


def test_nlm(t, d):
    c = new_waiter(d, "waits for NLM")
    for n, what in enumerate(("an unlock by NLM", "NLM4_FREE_ALL"), 1):
        name = f"nlm{n}"
        fh3 = make_file(d, name)
        with d.connect() as other:
            t.equal(f"{what}: NLM4_LOCK", nlm(other, NLM_LOCK, fh3, 0, 100), 0)
            opened, fh, owner = waits(t, d, c, name, what)
            t.equal(f"{what}: of other bytes", nlm(other, NLM_UNLOCK, fh3, 50, 50), 0)
            c.compound((n4.PUTROOTFH, b""))
            t.equal(f"{what}: not told before", len([x for x in c.called if x["op"] == n4.CB_NOTIFY_LOCK]), n - 1)
            if n == 1:
                t.equal(f"{what}: NLM4_UNLOCK", nlm(other, NLM_UNLOCK, fh3, 0, 10), 0)
            else:
                other.call(NLM, 4, NLM_FREE_ALL, opaque(HOST) + u32(3))
        told = c.await_callback(n4.CB_NOTIFY_LOCK, n)
        t.equal(f"{what}: told", (told["fh"], told["clientid"], told["owner"]), (fh, c.clientid, owner))
        t.equal(f"{what}: the lock is free", c.lock(fh, opened["stateid"], n4.WRITEW_LT, 0, 10)["status"], n4.OK)
    c.close()


def test_expiry(t, d):
    """The holder is not heard of again. The waiter asks late in the holder's lease, as it is remembered for a lease itself."""
    c = new_waiter(d, "waits for a lease")
    holder = callbacks.new_client(d, "goes away", 1, n4.Client)
    held, fh = holder.open(holder.path(d.exports["one"]), b"expires", create=True)
    t.equal("the holder's LOCK", holder.lock(fh, held["stateid"])["status"], n4.OK)
    holder.close()
    end = time.monotonic() + LEASE / 2
    while time.monotonic() < end:
        c.compound((n4.PUTROOTFH, b""))
        time.sleep(0.5)
    opened, fh, owner = waits(t, d, c, "expires", "a lease that ends")
    told, status = 0, n4.DENIED
    for _ in range(20 * LEASE):
        c.compound((n4.PUTROOTFH, b""))
        notices = [(x["fh"], x["clientid"], x["owner"]) for x in c.called if x["op"] == n4.CB_NOTIFY_LOCK]
        # Whoever waits is told when any lease ends, as that of the client of test_nlm() does a moment before.
        if len(notices) > told:
            told = len(notices)
            t.equal("a lease that ends: told", notices[-1], (fh, c.clientid, owner))
            status = c.lock(fh, opened["stateid"], n4.WRITEW_LT, 0, 10)["status"]
            owner = b"lock" + u32(c.owner_seqid)
        if status != n4.DENIED:
            break
        time.sleep(0.1)
    t.equal("a lease that ends: the lock is free", status, n4.OK)
    c.close()


def main():
    t = Count()
    with Daemon({"one": "rw,insecure,no_root_squash"}, SETTINGS) as d:
        test_nlm(t, d)
        test_expiry(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
