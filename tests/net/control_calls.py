#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsctl calls: a call that waits for another client's delegation is shown with what it waits for, and is gone when it is answered. The trace tells
of the wait then."""
import time

import delegations as de
import harness
import nfs4client as n4
import rpcclient as r
from control import Control, ctl
from control_state import api
from control_trace import tracing
from harness import Count

HELD = "what another client holds"


def rows(d):
    return api(d, "/v1/calls")[1]["calls"]


def waiting(d):
    """The rows of calls that wait, when there are some, for up to 5 s."""
    end = time.monotonic() + 5
    while not (found := [c for c in rows(d) if "waits_for" in c]) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def test_delegation(t, d):
    holder = de.new_client(d, "holder")
    root, fh, stateid, deleg = de.delegated(t, d, holder, "held")
    v3 = d.connect()
    fh3 = v3.nfs(r.LOOKUP, r.diropargs(d.root(v3, "one"), "held"))["fh"]
    other = de.Other(lambda: v3.nfs(r.SETATTR, r.setattr_args(fh3, r.sattr(mode=0o600))))
    holder.await_callback(n4.CB_RECALL, 1)
    found = waiting(d)
    t.equal("one call waits", [(c["program"], c["version"], c["procedure"], c["waits_for"]) for c in found], [("nfs", 3, "SETATTR", HELD)])
    for c in found:
        t.equal("its client", c["address"], "127.0.0.1")
        t.check("its age", 0 <= c["waits_ms"] <= c["age_ms"] + 20 <= 12020, c)
        t.check("and how long it may wait", 11000 < c["waits_most_ms"] <= 12100, c)
        conns = api(d, "/v1/connections")[1]["connections"]
        t.check("its connection", any(x["id"] == c["connection"] and x["port"] == c["port"] for x in conns), conns)
    text = ctl("--socket", d.path, "calls").stdout
    t.check("the table", "SETATTR" in text and HELD in text, text)
    with tracing(d, "--operation", "SETATTR", "--count", "1") as traced:
        holder.close_file(fh, stateid)
        holder.delegreturn(fh, deleg)
        t.equal("it goes on", other.end(), n4.OK)
    t.equal("the trace tells what it has waited for", [c["waited_for"] for c in traced], [HELD])
    t.check("and for how long", 0 < traced[0]["waited_ms"] <= traced[0]["duration_ns"] / 1e6 + 20, traced)
    t.equal("nothing waits", [c for c in rows(d) if "waits_for" in c], [])
    holder.close()
    v3.close()


def test_gone(t, d):
    """The wait of a call ends when its client has closed the connection, long before the twelve seconds, and the call has changed nothing."""
    holder = de.new_client(d, "keeper")
    _, fh, stateid, deleg = de.delegated(t, d, holder, "kept")
    v3 = d.connect()
    other = d.connect()
    fh3 = other.nfs(r.LOOKUP, r.diropargs(d.root(other, "one"), "kept"))["fh"]
    mode = other.nfs(r.GETATTR, r.getattr_args(fh3))["attr"]["mode"]
    xid, args = r.next_xid(), r.setattr_args(fh3, r.sattr(mode=0o600))
    v3.send(r.call_message(r.NFS, 3, r.SETATTR, args, xid=xid))
    holder.await_callback(n4.CB_RECALL, 1)
    t.equal("one call waits", len(waiting(d)), 1)
    v3.close()
    end = time.monotonic() + 3
    while (left := [c for c in rows(d) if "waits_for" in c]) and time.monotonic() < end:
        time.sleep(0.05)
    t.equal("it waits no longer", left, [])
    t.equal("nothing was changed", other.nfs(r.GETATTR, r.getattr_args(fh3))["attr"]["mode"], mode)
    retransmission = de.Other(lambda: other.nfs(r.SETATTR, args, xid=xid))
    t.equal("its retransmission waits anew", len(waiting(d)), 1)
    holder.close_file(fh, stateid)
    holder.delegreturn(fh, deleg)
    t.equal("and runs", retransmission.end(), n4.OK)
    holder.close()
    other.close()


def test_mistakes(t, d):
    wrong = ctl("--socket", d.path, "calls", "all")
    t.equal("an argument", (wrong.returncode, wrong.stderr), (2, "ringnfsctl: calls takes no 'all'\n"))


def main():
    t = Count()
    with Control(de.SETTINGS, exports={"one": de.OPTIONS}) as d:
        test_delegation(t, d)
        test_gone(t, d)
        test_mistakes(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
