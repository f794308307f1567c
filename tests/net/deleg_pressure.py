#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""More delegations than there are descriptors for: a client is asked for some (CB_RECALL_ANY), and if it keeps them single ones are
recalled."""
import time

import delegations
import harness
import nfs4client as n4

LEASES = 32  # a quarter of server.max_fds
READ = [1]  # RCA4_TYPE_MASK_RDATA_DLG


def hold(d, c, first, n):
    """{stateid: handle} of the delegations that the client gets of n new files. Before the first one the server may have to come to the
    answer to its probe."""
    root, got, end = c.path(d.exports["one"]), {}, time.monotonic() + 60
    for i in range(first, first + n):
        delegations.make(d, f"f{i}")
        res, fh = c.open(root, f"f{i}", access=n4.SHARE_READ)
        while not got and not res.get("delegation") and time.monotonic() < end:
            c.close_file(fh, res["stateid"])
            time.sleep(0.1)
            res, fh = c.open(root, f"f{i}", access=n4.SHARE_READ)
        if res.get("delegation") == n4.DELEGATE_READ:
            got[res["deleg"]] = fh
        c.close_file(fh, res["stateid"])
    return got


def test_returned(t, d):
    """By a client that does as it is asked, with what it wants to give."""
    c = delegations.new_client(d, "obliging")
    got = hold(d, c, 0, LEASES - 1)
    t.equal("delegations", len(got), LEASES - 1)
    asked = c.await_callback(n4.CB_RECALL_ANY)
    t.equal("asked", (asked["keep"], asked["types"]), (LEASES * 3 // 4, READ))
    for deleg in sorted(got)[:len(got) - asked["keep"]]:
        t.equal("DELEGRETURN", c.delegreturn(got.pop(deleg), deleg), n4.OK)
    t.equal("there is room again", len(more := hold(d, c, 100, 3)), 3)
    for deleg, fh in {**got, **more}.items():
        c.delegreturn(fh, deleg)
    t.equal("single ones", [x for x in c.called if x["op"] == n4.CB_RECALL], [])
    c.close()


def test_kept(t, d):
    """A client that answers and returns nothing."""
    c = delegations.new_client(d, "mean")
    got = hold(d, c, 200, LEASES - 1)
    keep, told, end = c.await_callback(n4.CB_RECALL_ANY)["keep"], set(), time.monotonic() + 60
    while len(told) < len(got) - keep and time.monotonic() < end:
        c.compound((n4.PUTROOTFH, b""))  # it renews its lease, and reads what comes
        told |= {x["stateid"] for x in c.called if x["op"] == n4.CB_RECALL}
        time.sleep(0.1)
    t.equal("recalled one by one", (len(told), told <= set(got)), (len(got) - keep, True))
    for deleg in told:
        t.equal("DELEGRETURN", c.delegreturn(got[deleg], deleg), n4.OK)
    c.close()


def main():
    t = harness.Count()
    settings = {**delegations.SETTINGS, "server.max_fds": 4 * LEASES}
    with harness.Daemon({"one": delegations.SHARED}, settings) as d:
        test_returned(t, d)
        test_kept(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
