#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Metrics of what runs short, of NFSv4's delegations and copies, and of busy threads: each is seen to change by what it counts."""
import os
import resource
import time

import copies_async
import delegations
import harness
import nfs4client as n4
import rpcclient as r
from control import Control, ask, connect
from flood import Flood
from harness import Count
from listing import settle
from scrape import Growth, await_value, parse, scrape, value

CONNECTIONS, REPLIES, DESCRIPTORS = 12, 64, 128
FILES = 3 * DESCRIPTORS
MIB = 1 << 20


def test_evictions(t, d):
    for i in range(FILES):
        with open(os.path.join(d.exports["rw"], f"file{i}"), "w"):
            pass
    with d.connect() as conn:
        root = d.root(conn, "rw")
        with Growth(d) as g:
            for i in range(FILES):
                conn.nfs(r.LOOKUP, r.diropargs(root, f"file{i}"))
        t.check("nodes that had to make room", FILES - DESCRIPTORS <= g.of("ringnfs_cache_evictions_total", cache="nodes") <= FILES,
                g.of("ringnfs_cache_evictions_total", cache="nodes"))
        t.check("nodes that are left", 0 < value(g.after, "ringnfs_cache_entries", cache="nodes") <= 2 * DESCRIPTORS)
        with Growth(d) as g:
            for i in range(3 * REPLIES):
                conn.nfs(r.MKDIR, r.mkdir_args(root, f"dir{i}"))
        t.equal("kept replies that had to make room", g.of("ringnfs_cache_evictions_total", cache="replies"), 2 * REPLIES)
        t.equal("kept replies", value(g.after, "ringnfs_cache_entries", cache="replies"), REPLIES)


def list_all(conn, root):
    """The number of names."""
    n = cookie = 0
    while True:
        res = conn.nfs(r.READDIRPLUS, r.readdirplus_args(root, cookie))
        n, cookie = n + len(res["entries"]), res["entries"][-1]["cookie"]
        if res["eof"]:
            return n


def test_listed_handles(t, d):
    """They are read once, and known afterwards, on file systems whose handles the server knows how to make."""
    settle()
    with d.connect() as conn:
        root = d.root(conn, "rw")
        with Growth(d) as g:
            names = list_all(conn, root)
        looks = sum(g.of(f"ringnfs_cache_{x}_total", cache="listed_handles") for x in ("hits", "misses"))
        with Growth(d) as g:
            list_all(conn, root)
    known, again = (g.of(f"ringnfs_cache_{x}_total", cache="listed_handles") for x in ("hits", "misses"))
    if not known and not again:
        t.skip("handles of listings", "the server does not know those of this file system")
        return
    t.check("names", names >= FILES, names)
    t.check("handles of the first listing", looks >= FILES, looks)
    t.check("handles known to the second", known >= FILES, (known, again))


def test_handles(t, d):
    path = os.path.join(d.exports["rw"], "gone")
    with open(path, "w"):
        pass
    with d.connect() as conn, Growth(d) as g:
        fh = conn.nfs(r.LOOKUP, r.diropargs(d.root(conn, "rw"), "gone"))["fh"]
        os.unlink(path)
        for _ in range(2):
            t.equal("GETATTR of a file that is gone", conn.nfs(r.GETATTR, r.opaque(fh))["status"], r.STALE)
        for size in (20, 40, 60):
            conn.nfs(r.GETATTR, r.opaque(b"\1" * size))
    t.equal("stale handles", g.of("ringnfs_stale_handles_total"), 2)
    t.equal("handles that are not the server's", g.of("ringnfs_bad_handles_total"), 3)


def test_connections(t, d):
    """At max_connections, others are closed for those who come. Those are refused for whom there is no descriptor."""
    await_value(d, "ringnfs_connections", lambda v: v == 0, transport="tcp")
    with Growth(d) as g:
        conns = [d.connect() for _ in range(CONNECTIONS + 3)]
        for conn in conns[-3:]:
            conn.nfs(r.NULL)
    t.equal("connections accepted", g.of("ringnfs_connections_accepted_total", transport="tcp"), CONNECTIONS + 3)
    t.check("connections that are left", 3 <= value(g.after, "ringnfs_connections", transport="tcp") <= CONNECTIONS)
    t.equal("none is refused", g.of("ringnfs_connections_refused_total"), 0)
    closed = g.of("ringnfs_connections_closed_for_room_total", transport="tcp")
    t.check("connections closed to make room", closed >= 3, closed)
    for conn in conns:
        conn.close()
    await_value(d, "ringnfs_connections", lambda v: v == 0, transport="tcp")
    with connect(d.path) as s:
        before = look(s)
        limit = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (first_free(d), limit[1]))
        try:
            for _ in range(2):
                t.check("without a descriptor a connection is closed", is_closed(d))
        finally:
            resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, limit)
        t.equal("connections refused", value(look(s), "ringnfs_connections_refused_total", transport="tcp")
                - value(before, "ringnfs_connections_refused_total", transport="tcp"), 2)


def first_free(d):
    """The least number of a descriptor that is free: none is, if it is the limit."""
    used = {int(fd) for fd in os.listdir(f"/proc/{d.process.pid}/fd")}
    return min(set(range(len(used) + 1)) - used)


def look(s):
    """Over a connection that there is already."""
    time.sleep(0.25)
    return parse(ask(s, path="/metrics")[2].decode())


def is_closed(d):
    with d.connect(timeout=20) as conn:
        try:
            conn.nfs(r.NULL)
        except (r.Closed, ConnectionError):
            return True
    return False


def test_refused_compounds(t, d):
    with d.connect() as conn, Growth(d) as g:
        for _ in range(2):
            conn.exchange(r.call_message(r.NFS, 4, 1, b"\xff" * 8))  # a tag that is longer than the call
        conn.nfs(r.NULL)
    t.equal("COMPOUNDs that RPC refuses", g.of("ringnfs_compounds_refused_total"), 2)


def test_delegations(t, d):
    c = delegations.new_client(d, "reader")
    with Growth(d) as g:
        _, fh, _, deleg = delegations.delegated(t, d, c, "delegated")
    t.equal("delegations", g.of("ringnfs_nfs4_state", kind="delegation"), 1)
    with Growth(d) as g:
        t.equal("DELEGRETURN", c.delegreturn(fh, deleg), n4.OK)
    t.equal("delegations after the return", g.of("ringnfs_nfs4_state", kind="delegation"), -1)
    c.close()


def test_copies(t, d):
    t.d = d
    c = copies_async.Client(t, "copier")
    size = 20 * MIB + 123
    c.prepare(t, size, b"x" * size)
    with Growth(d) as g:
        t.equal("COPY", c.copy()["status"], n4.OK)
        t.equal("bytes that the client is told of", c.await_callback(n4.CB_OFFLOAD)["count"], size)
    t.equal("copies", g.of("ringnfs_nfs4_copies_total"), 1)
    t.equal("bytes copied", g.of("ringnfs_nfs4_copied_bytes_total"), size)
    c.prepare(t, copies_async.LONG, name="long")
    sid = c.copy()["sid"]
    c.until_copied(sid)
    t.equal("a copy that is under way", value(scrape(d), "ringnfs_nfs4_state", kind="copy"), 1)
    t.equal("OFFLOAD_CANCEL", c.offload(copies_async.OFFLOAD_CANCEL, sid)["status"], n4.OK)
    t.equal("copies that are left", await_value(d, "ringnfs_nfs4_state", lambda v: v == 0, kind="copy"), 0)
    c.close()


def busiest(d):
    return max(v for (name, _), v in scrape(d).items() if name == "ringnfs_event_thread_busy_ratio")


def test_busy(t, d):
    """A client that takes all it can get."""
    with d.connect() as conn:
        message = r.call_message(r.NFS, 3, r.GETATTR, r.opaque(d.root(conn, "rw")))
    flood = Flood(d, message, 2, "127.0.0.1")
    try:
        v = scrape(d)
        t.check("each event thread has a ratio", len([1 for name, _ in v if name == "ringnfs_event_thread_busy_ratio"]) >= 1)
        t.check("a busy event thread", becomes(lambda: busiest(d) > 0.2))
    finally:
        flood.stop()
    t.check("which is idle afterwards", becomes(lambda: busiest(d) < 0.1))


def becomes(true, looks=100):
    return any(true() for _ in range(looks))


def main():
    t = Count()
    settings = {"tcp.max_connections": CONNECTIONS, "nfs3.drc_size": REPLIES, "server.max_fds": DESCRIPTORS, "nfs4.lease_time": 60}
    with Control(settings, exports={"rw": "rw,insecure,no_root_squash", "one": delegations.OPTIONS}) as d:
        for test in (test_evictions, test_listed_handles, test_handles, test_connections, test_refused_compounds, test_busy, test_delegations,
                     test_copies):
            test(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
