#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Locks of NFSv3 clients that are asked for by datagrams, whose senders anybody can make up, and by very many names: who is put on record,
whom that costs a lock, and that clients by UDP get theirs. In a network name space, where a whole network is this machine's."""
import os
import socket
import time

import control
import harness
import nlm_recovery as base
import rpcclient as r
from nlm_recovery import BLOCKED, DENIED, GRANTED, NLM, NLM_LOCK, ONE, ONE_NAME, TWO, TWO_NAME, Client, FakeHost, make_file, records, restart, wait_for
from rpcclient import opaque, u32, u64
from scrape import scrape
from udpclient import Datagrams

NOLOCKS = 2
FORGED = 8448  # more than there is room for on record
NETWORK = "10.66"
THREE = "127.0.0.4"
NAMES = 70  # more than an address has


class ByUdp(Client):
    def again(self):
        self.conn = Datagrams(self.d.port, self.server, source=(self.address, 0))


def message(fh, name, offset, reclaim=False):
    return r.call_message(NLM, 4, NLM_LOCK, opaque(b"cookie") + u32(0) + u32(1) + opaque(name) + opaque(fh) + opaque(b"owner") + u32(7) + u64(offset) +
                          u64(1) + u32(int(reclaim)) + u32(3))


def figure(d, name, **labels):
    """The sum of a metric's values."""
    return sum(v for (family, pairs), v in scrape(d).items() if family == name and labels.items() <= dict(pairs).items())


def flood(d, fh):
    """Locks in the names of as many hosts, none of which is there."""
    for i in range(FORGED):
        if i % 16 == 0:
            time.sleep(0.005)  # the socket has room for so many
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind((f"{NETWORK}.{i // 256}.{i % 256}", 0))
            s.sendto(message(fh, b"forged%d" % i, 1000 + i), ("127.0.0.1", d.port))


def test_flood(t, d, fh):
    begin = time.monotonic()
    flood(d, fh)
    print(f"{FORGED} forged datagrams in {time.monotonic() - begin:.1f} s, {figure(d, 'ringnfs_received_calls_total', transport='udp'):.0f} taken")
    two = Client(d, TWO, TWO_NAME)
    t.equal("a client by TCP gets its lock", two.lock(fh, 10, 1), GRANTED)
    one = ByUdp(d, ONE, ONE_NAME)
    # So many wait for an answer that it may be told to come again.
    t.check("a client by UDP gets its lock", wait_for(lambda: one.lock(fh, 20, 1) == GRANTED, 60))
    on_record = {name for _, _, name in records(d)[1]}
    t.check("who is on record", on_record == {ONE_NAME, TWO_NAME}, len(on_record))
    t.equal("in the metrics", figure(d, "ringnfs_nfs3_client_records"), 2)
    return one, two


def test_silent(t, d, fh):
    """A host by UDP whose rpcbind does not answer gets no lock."""
    three = ByUdp(d, THREE, b"three")
    t.check("a host that does not answer", wait_for(lambda: three.lock(fh, 30, 1) == NOLOCKS, 60))
    t.check("the log says so", d.wait_log(f"locks are refused to {THREE}: it asks by UDP"), d.read_log())
    t.check("and the metrics", figure(d, "ringnfs_nfs3_client_records_refused_total", reason="silent") > 0)
    t.check("it is not on record", b"three" not in {name for _, _, name in records(d)[1]})
    c = Client(d, THREE, b"three")
    t.equal("it gets one by TCP", c.lock(fh, 30, 1), GRANTED)
    t.equal("and then one by UDP", three.lock(fh, 31, 1), GRANTED)
    t.equal("as under another name", ByUdp(d, THREE, b"another").lock(fh, 32, 1), GRANTED)


def test_names(t, d, fh):
    """Names of a client's address that somebody else makes up."""
    for i in range(NAMES):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind((TWO, 0))
            s.settimeout(10)
            s.sendto(message(fh, b"not two %d" % i, 200 + i), ("127.0.0.1", d.port))
            s.recv(9000)
    t.equal("a further name by TCP", Client(d, TWO, b"two itself").lock(fh, 40, 1), GRANTED)
    t.check("refusals are counted", figure(d, "ringnfs_nfs3_client_records_refused_total", reason="room") > 0)
    t.check("and in the log", d.wait_log(f"records of NFSv3 clients with locks: no room for all: {TWO}"), d.read_log())


def test_refused(t, d, fh):
    """On record is who has a lock, or waits for one."""
    four = Client(d, "127.0.0.5", b"four")

    def on_record():
        return b"four" in {name for _, _, name in records(d)[1]}

    def written():
        st = os.stat(os.path.join(d.top, "state", "nlm-hosts"))
        return st.st_ino, st.st_mtime_ns

    def causes_writes():
        before = written()
        t.equal("a lock that another has", four.lock(fh, 10, 1), DENIED)
        time.sleep(0.5)
        return written() != before

    # Records of before may end at the same time.
    t.check("who was refused was not on record", any(not causes_writes() for _ in range(5)))
    t.check("and is not", not on_record())
    t.equal("who waits", four.lock(fh, 10, 1, block=True), BLOCKED)
    t.equal("is on record", on_record(), True)
    four.cancel(fh, 10, 1)
    t.check("until it does not", wait_for(lambda: not on_record(), 20))


def test_restart(t, d, one, fh):
    """A reclaim by UDP is not asked about."""
    restart(d)
    one.again()
    t.equal("a reclaim by UDP", one.lock(fh, 20, 1, reclaim=True), GRANTED)
    three = ByUdp(d, "127.0.0.6", b"three")
    t.equal("of who was not on record", three.lock(fh, 50, 1, reclaim=True), DENIED)
    t.check("who is not afterwards", b"three" not in {n for a, _, n in records(d)[1] if a.endswith(".6")})


def inside():
    t = harness.Count()
    base.network_up()
    base.subprocess.run(f"ip route add local {NETWORK}.0.0/16 dev lo".split(), check=True)
    host = FakeHost(ONE)
    try:
        settings = {"nlm.statd_port": base.MONITOR_PORT, "tcp.listen": "", "nfs4.lease_time": 5, "nfs4.grace_time": 5}
        with control.Control(settings, exports={"one": "rw,insecure,no_root_squash"}, hosts=("127.0.0.0/8", NETWORK + ".0.0/16")) as d:
            maker = Client(d, TWO, b"maker")
            fh = make_file(d, maker, "x")
            maker.conn.close()
            one, _ = test_flood(t, d, fh)
            test_silent(t, d, fh)
            test_names(t, d, fh)
            test_refused(t, d, fh)
            test_restart(t, d, one, fh)
            harness.finish(t, d)
    finally:
        host.close()
    harness.result(t)


if __name__ == "__main__":
    base.main(__file__, inside)
