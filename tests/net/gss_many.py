#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many contexts of many hosts: memory and time for each, and nobody's is lost to a stranger, nor a small host's to a large one.

10,000 contexts with RINGNFS_VM_FULL=1, as ./check full has it, or with their number as the argument; else 400."""
import os
import statistics
import sys
import time

import gss
import gssapi
import gssclient as g
import harness
import kdc
import rpcclient as r
import scrape

HOSTS = 100
COUNTED = 13312  # bytes that the server counts for a context: GSS_CONTEXT_BYTES
STRANGER, NEWCOMER = "127.9.0.1", "127.9.0.2"


def number():
    if len(sys.argv) > 1:
        return int(sys.argv[1])
    return 10000 if os.environ.get("RINGNFS_VM_FULL") else 400


def contexts(d):
    return scrape.parse(scrape.get(d)[2])["ringnfs_gss_contexts", (("state", "established"),)]


def settled(d, want):
    """The number of contexts once a page of metrics, which is kept for a second, shows it; or whatever is shown after a while."""
    until = time.monotonic() + 30
    while contexts(d) != want and time.monotonic() < until:
        time.sleep(0.2)
    return contexts(d)


def connect(d, host):
    c = g.GssConn(d.port, source=(host, 0))
    c.service = g.PRIVACY
    return c


class Timed(g.GssConn):
    """Notes how long the server takes for each context."""
    def exchange(self, message):
        began = time.perf_counter()
        data = super().exchange(message)
        self.took.append((time.perf_counter() - began) * 1e6)
        return data


def make(d, cache, host, n, took):
    """n contexts of a host, each of which has served a call under krb5p, so that all its keys are in use."""
    with Timed(d.port, source=(host, 0)) as c:
        c.took, c.service = took, g.PRIVACY
        sessions = []
        for _ in range(n):
            c.session = None
            sessions.append(g.Session(c, cache, flags=gssapi.MUTUAL))
        c.took = []
        for c.session in sessions:
            c.call(r.NFS, 3, 0)
    return sessions


def living(d, host, sessions):
    """How many of a host's contexts the server still knows."""
    with connect(d, host) as c:
        n = 0
        for c.session in sessions:
            n += gss.refusal(c.call, r.NFS, 3, 0) is None
    return n


def host_of(i):
    return f"127.1.{i // 200}.{i % 200 + 1}"


def test_memory(t, d, cache, count):
    """The first host has half of all contexts, which others share alike."""
    most = {host_of(i): count // 2 // (HOSTS - 1) for i in range(1, HOSTS)}
    most[host_of(0)] = count - sum(most.values())
    make(d, cache, NEWCOMER, 4, [])  # the library loads what it needs
    before, began, took = d.rss(), time.monotonic(), []
    have = {h: make(d, cache, h, n, took) for h, n in most.items()}
    each, seconds = (d.rss() - before) / count, time.monotonic() - began
    took.sort()
    print(f"# {count} contexts of {HOSTS} hosts in {seconds:.1f} s; for one, {each:.0f} bytes of resident memory, {COUNTED} counted; "
          f"its making takes {statistics.median(took):.0f} us at the median, {took[len(took) * 99 // 100]:.0f} at the 99th percentile")
    if not d.sanitized() and count >= 10000:  # with few, what the process takes once shows
        t.check("a context takes no more memory than is counted for it", each <= COUNTED, f"{each:.0f} bytes")
    t.equal("all contexts are there", settled(d, count + 4), count + 4)
    return have


def test_stranger(t, d, have, count):
    """Tokens of no use, as many as a host gets answered: no established context goes."""
    junk = [b"", b"\x60\x06\x06\x04\x2b\x06\x01\x05", os.urandom(4000), b"\x60\x82\x02\x00" + os.urandom(512)]
    with g.GssConn(d.port, source=(STRANGER, 0)) as c:
        for i in range(200):
            xid = r.next_xid()
            cred = r.u32(g.GSS) + r.opaque(g.credential(g.INIT, 0, g.NONE, b""))
            x, _ = g.accepted(c.exchange(r.call_message(r.NFS, 3, 0, r.opaque(junk[i % len(junk)]), cred, xid)), xid)
            x.opaque()
            if not x.u32() & 0xffff0000:
                t.check("a useless token makes no context", False, f"token {i % len(junk)}")
    t.equal("after a stranger's tokens, all are there", settled(d, count + 4), count + 4)
    t.equal("and each of a small host serves", living(d, host_of(1), have[host_of(1)]), len(have[host_of(1)]))


def test_full(t, d, cache, have):
    """The table is full: others' new contexts push out those of the host with most."""
    extra = max(8, len(have[host_of(0)]) // 8)
    fresh = make(d, cache, NEWCOMER, extra, [])
    t.equal("a newcomer's contexts serve", living(d, NEWCOMER, fresh), extra)
    small = [h for h in have if h != host_of(0)]
    t.equal("small hosts lose none", sum(living(d, h, have[h]) for h in small), sum(len(have[h]) for h in small))
    left = living(d, host_of(0), have[host_of(0)])
    t.check("the host with most gives way", left <= len(have[host_of(0)]) - extra, f"{left} of {len(have[host_of(0)])} left")


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    count = number()
    t = harness.Count()
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        settings = {**gss.settings(realm), "server.control_socket": realm.path("control"), "server.memory_max": "1G",
                    "gss.max_contexts": count + 4}
        with harness.Daemon({"all": "sec=krb5:krb5i:krb5p:sys,rw,insecure"}, settings, env={**os.environ}) as d:
            d.path = settings["server.control_socket"]
            cache = realm.login(gss.ALICE)
            have = test_memory(t, d, cache, count)
            test_stranger(t, d, have, count)
            test_full(t, d, cache, have)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
