#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""NFSv4 clients that hold locks while the daemon is stopped or killed, and started again: who gets them back, and how soon."""
import os
import re
import signal
import time

import harness
import nfs4client as n
from harness import Count, Daemon

LEASE = 5
AT_ONCE = 1.5  # seconds: far below the grace period, far above what anything here takes
SHORT = 6  # seconds of grace for clients of 4.0, who are waited for until it is over


def new_client(d, owner, minor=1):
    c = n.Client(d.port, owner, minor)
    res = c.register()
    if res["status"] or c.reclaim_complete():
        raise SystemExit(f"{owner} cannot register: {res}\n{d.read_log()}")
    return c


def hold(t, c, root, name):
    """Opens, writes and locks: (handle, stateid of the open)."""
    res, fh = c.open(root, name, create=True)
    t.equal(f"OPEN of {name}", res["status"], n.OK)
    t.equal("WRITE", c.last(n.putfh(fh), n.write(res["stateid"], 0, b"written before"))["status"], n.OK)
    t.equal("LOCK", c.lock(fh, res["stateid"])["status"], n.OK)
    return fh, res["stateid"]


def restart(d, sig):
    d.stop(sig)
    d.start()
    return time.monotonic()


def reclaim(t, c, fh):
    """All that hold() got."""
    res = c.reclaim_open(fh)
    t.equal("OPEN, reclaimed", res["status"], n.OK)
    t.equal("LOCK, reclaimed", c.lock(fh, res["stateid"], reclaim=True)["status"], n.OK)
    got = c.last(n.putfh(fh), n.read(res["stateid"], 0, 100))
    t.equal("READ within grace, by what was reclaimed", got.get("data"), b"written before")
    return res["stateid"]


def test_reclaim(t, d, sig, minors):
    print(f"# {sig.name}, holders of minor versions {minors}")
    holders = [new_client(d, f"holder {i}", m) for i, m in enumerate(minors)]
    root = holders[0].path(d.exports["one"])
    held = [hold(t, c, root, f"file {i}") for i, c in enumerate(holders)]
    since = restart(d, sig)
    for c in holders:
        c.again()
    other = new_client(d, "other")
    files = []
    for i, (fh, _) in enumerate(held):
        res, _ = other.open(root, f"file {i}")
        t.equal("OPEN by another within grace, where nobody denies anything", res["status"], n.OK)
        files.append((fh, res["stateid"]))
        t.equal("LOCK by another within grace", other.lock(fh, res["stateid"])["status"], n.GRACE)
    back = []
    for c, (fh, stateid) in zip(holders, held):
        res = c.last(n.putfh(fh), n.read(stateid, 0, 10))
        t.equal("a holder learns of the restart", res["status"], n.BADSESSION if c.minor else n.STALE_STATEID)
        t.equal("it registers again", c.register()["status"], n.OK)
        stateid = reclaim(t, c, fh)
        back.append((c, fh, stateid))
        t.equal("LOCK by another while there is something to reclaim", other.lock(*files[0])["status"], n.GRACE)
        if c.minor:
            t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
            t.equal("a reclaim after it", c.reclaim_open(fh)["status"], n.NO_GRACE)
        else:
            t.equal("WRITE", c.last(n.putfh(fh), n.write(stateid, 0, b"written before"))["status"], n.OK)
    limit = AT_ONCE if all(minors) else 2 * SHORT + AT_ONCE  # clients of 4.0 do not say that they are done
    res = {"status": n.GRACE}
    while res["status"] == n.GRACE and time.monotonic() < since + 60:
        time.sleep(0.01 if all(minors) else 0.5)
        for c, fh, stateid in back:  # whose leases are no longer than grace
            c.last(n.putfh(fh), n.read(stateid, 0, 10))
        res = other.lock(*files[0])
    took = time.monotonic() - since
    print(f"# grace ended {took:.2f} s after the start")
    t.equal("LOCK by another after grace meets the lock that was reclaimed", res["status"], n.DENIED)
    t.check(f"grace ends within {limit} s of the start, when all have reclaimed", took < limit, took)
    t.check("the log says who came back", f"{len(minors)} of {len(minors)} clients came back" in d.read_log())
    for c in [*holders, other]:
        c.close()
    clear(d)


def clear(d):
    """No clients: as new."""
    d.stop()
    for name in os.listdir(d.top + "/state"):
        if name.startswith("nfs4-clients"):
            os.unlink(f"{d.top}/state/{name}")
    d.start()


def test_nothing_held(t, d):
    c = new_client(d, "holder")
    root = c.path(d.exports["one"])
    restart(d, signal.SIGKILL)
    c.again()
    t.equal("it registers again", c.register()["status"], n.OK)
    t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
    hold(t, c, root, "file")
    c.close()
    clear(d)


def test_all_closed(t, d):
    """Clients that have nothing open any more are not waited for, though they are still there."""
    c, other = new_client(d, "has closed", 0), new_client(d, "other")
    root = c.path(d.exports["one"])
    res, fh = c.open(root, "file", create=True)
    t.equal("CLOSE", c.close_file(fh, res["stateid"])["status"], n.OK)
    time.sleep(LEASE / 2)
    restart(d, signal.SIGKILL)
    other.again()
    other.register()
    other.reclaim_complete()
    hold(t, other, root, "file")
    c.close()
    other.close()
    clear(d)


def test_pauses(t, d):
    """A client of 4.0 that takes its time between two reclaims, in which it does other things, loses nothing."""
    slow, other = new_client(d, "slow", 0), new_client(d, "other")
    root = slow.path(d.exports["one"])
    held = [hold(t, slow, root, f"file {i}")[0] for i in range(2)]
    hold(t, other, root, "its own")
    restart(d, signal.SIGKILL)
    for c in (slow, other):
        c.again()
        c.register()
    stateid = reclaim(t, slow, held[0])
    other.reclaim_complete()
    opened = other.open(root, "file 1")[0]["stateid"]
    end = time.monotonic() + 3.5
    got = []
    while time.monotonic() < end:
        t.equal("WRITE by what was reclaimed", slow.last(n.putfh(held[0]), n.write(stateid, 0, b"written before"))["status"], n.OK)
        got.append(other.lock(held[1], opened)["status"])
        time.sleep(0.1)
    t.equal("LOCK by another meanwhile", set(got), {n.GRACE})
    reclaim(t, slow, held[1])
    for c in (slow, other):
        c.close()
    clear(d)


def test_killed_within_grace(t, d):
    holders = [new_client(d, f"holder {i}") for i in range(2)]
    root = holders[0].path(d.exports["one"])
    held = [hold(t, c, root, f"file {i}") for i, c in enumerate(holders)]
    restart(d, signal.SIGKILL)
    holders[0].again()
    holders[0].register()
    reclaim(t, holders[0], held[0][0])
    holders[0].reclaim_complete()
    restart(d, signal.SIGKILL)
    for c, (fh, _) in zip(holders, held):
        c.again()
        t.equal("it registers again", c.register()["status"], n.OK)
        reclaim(t, c, fh)
        t.equal("RECLAIM_COMPLETE", c.reclaim_complete(), n.OK)
        c.close()
    clear(d)


def test_given_away(t, d):
    """The first edge condition of RFC 7530 section 9.6.3.4: a holder that cannot be heard of, whose lock another gets."""
    gone, other = new_client(d, "gone"), new_client(d, "other")
    root = gone.path(d.exports["one"])
    fh, _ = hold(t, gone, root, "file")
    opened, _ = other.open(root, "file")
    t.equal("LOCK while the lease is good", other.lock(fh, opened["stateid"])["status"], n.DENIED)
    end = time.monotonic() + LEASE + 3
    while time.monotonic() < end and (res := other.lock(fh, opened["stateid"]))["status"] == n.DENIED:
        time.sleep(0.2)
    t.equal("LOCK when it has run out", res["status"], n.OK)
    restart(d, signal.SIGKILL)
    gone.again()
    t.equal("it registers again", gone.register()["status"], n.OK)
    t.equal("it may not reclaim", gone.reclaim_open(fh)["status"], n.NO_GRACE)
    other.again()
    other.register()
    reclaim(t, other, fh)
    for c in (gone, other):
        c.close()
    clear(d)


def test_damaged(t, d):
    c = new_client(d, "holder")
    fh, _ = hold(t, c, c.path(d.exports["one"]), "file")
    d.stop()
    with open(d.top + "/state/nfs4-clients.db", "r+b") as f:
        f.write(b"no database")
    d.start()
    c.again()
    t.equal("it registers again", c.register()["status"], n.OK)
    t.equal("without records nobody reclaims", c.reclaim_open(fh)["status"], n.NO_GRACE)
    t.check("the log says what is wrong", re.search(r"nfs4-clients\.db is damaged.*nfs4-clients\.db\.damaged", d.read_log()))
    c.close()
    clear(d)


def main():
    t = Count()
    settings = {"nfs4.lease_time": LEASE, "nfs4.grace_time": 30}
    with Daemon({"one": "rw,insecure,no_root_squash"}, settings) as d:
        test_nothing_held(t, d)
        test_all_closed(t, d)
        for sig in (signal.SIGTERM, signal.SIGKILL):
            test_reclaim(t, d, sig, (1, 2))
        test_killed_within_grace(t, d)
        test_given_away(t, d)
        test_damaged(t, d)
        harness.finish(t, d)
    settings["nfs4.grace_time"] = SHORT
    with Daemon({"one": "rw,insecure,no_root_squash"}, settings) as d:
        test_reclaim(t, d, signal.SIGKILL, (0, 1))
        test_pauses(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
