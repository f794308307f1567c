#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Bounded tables that somebody fills: one host, many hosts, hosts that no export admits. Beside them a polite host asks for little.

A row is a table, a column is who fills it. Each cell says how long the polite host waited, and asserts that it is served. Where the log
has a line about that, it asserts that there is one. Times depend on the machine, and are printed only. CROWDED_TABLES: some rows only.
"""
import os
import shutil
import socket
import tempfile
import time

import delegations as dg
import harness
import nfs4client as n
import nlm_recovery as nlm
import rpcclient as r
import tlsclient as tls
from copies_between import netaddr, COPY_NOTIFY
from harness import Count, Daemon

POLITE = "127.0.0.2"
ADMITTED = "127.0.0.0/22"
FILLERS = {
    "one host": ["127.0.1.1"],
    "16 hosts": [f"127.0.1.{i}" for i in range(1, 17)],
    "200 hosts": [f"127.0.1.{i}" for i in range(1, 201)],
    "strangers": [f"127.0.9.{i}" for i in range(1, 201)],
}
OPTIONS = "rw,insecure,no_root_squash,nfs_only"


def conn(d, host, timeout=60):
    return r.Conn(d.port, source=(host, 0), timeout=timeout)


class Table:
    """settings: of its daemon; fill(hosts): fills the table, and keeps it full until end(); polite(): what the polite host asks for,
    false if it is not served."""
    settings = {}
    told = None  # what the log calls the items
    columns = tuple(FILLERS)

    def __init__(self, d):
        self.d, self.held = d, []

    def spread(self, hosts, total):
        """Hosts one after the other, as often as it takes."""
        return [hosts[i % len(hosts)] for i in range(total)]

    def begin(self):
        """Before anybody fills it."""

    def end(self):
        for c in self.held:
            c.close()
        self.held = []


class Connections(Table):
    MOST = 200
    settings = {"tcp.max_connections": MOST}

    def fill(self, hosts):
        for host in self.spread(hosts, self.MOST + 50):
            try:
                c = conn(self.d, host)
                c.s.setblocking(False)
                c.send_raw(b"\x80\x00\x01\x00half a call")
                self.held.append(c)
            except OSError:
                pass

    def polite(self):
        with conn(self.d, POLITE) as c:
            return self.d.root(c, "x")


class Replies(Table):
    """The polite host's change is answered from the table though others changed a lot meanwhile."""
    MOST = 16384
    settings = {"nfs3.drc_size": MOST}
    columns = ("one host", "16 hosts", "200 hosts")  # strangers change nothing

    def begin(self):
        self.mine = conn(self.d, POLITE)
        self.held.append(self.mine)
        root = self.d.root(self.mine, "x")
        self.message = r.call_message(r.NFS, 3, r.REMOVE, r.remove_args(root, "nothing"))
        self.answer = self.mine.exchange(self.message)
        os.close(os.open(os.path.join(self.d.exports["x"], "nothing"), os.O_CREAT))
        self.root = root

    def fill(self, hosts):
        conns = {host: conn(self.d, host) for host in hosts}
        self.held += conns.values()
        for i, host in enumerate(self.spread(hosts, self.MOST * 3 // 2)):
            conns[host].nfs(r.REMOVE, r.remove_args(self.root, f"no{i}"))

    def polite(self):
        # Run again, it would remove what is there now.
        return self.mine.exchange(self.message) == self.answer


class Handshakes(Table):
    MOST = 2048
    told = "TLS handshakes"
    settings = {"tcp.max_connections": 6000, "server.memory_max": "1G"}

    def fill(self, hosts):
        # Half of what is left by each, so that also a rule that leaves half to others has nothing to give in the end. A stranger has few
        # connections.
        shares = [max(16, self.MOST >> i + 1) for i in range(len(hosts))] if hosts[1:] else [self.MOST + 100]
        for host in (h for h, share in zip(hosts, shares) for _ in range(share)):
            c = conn(self.d, host, timeout=20)
            self.held.append(c)
            try:
                tls.probe(c)
                c.send_raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            except (OSError, r.Closed):
                pass

    def polite(self):
        class Mine(tls.TlsConn):
            def __init__(self, port):
                r.Conn.__init__(self, port, source=(POLITE, 0))
                if tls.probe(self) != (0, b"STARTTLS"):
                    raise r.Closed()
                self.s = tls.context(Handshakes.ca).wrap_socket(self.s, server_hostname="localhost")
        with Mine(self.d.port) as c:
            return self.d.root(c, "x")


class Copied(n.Client):
    def __init__(self, d, name, host):
        self.source = (host, 0)
        super().__init__(d.port, name, 2)
        if self.register()["status"] or self.reclaim_complete():
            raise SystemExit(f"{name} cannot register\n{d.read_log()}")
        res, self.fh = self.open(self.path(d.exports["x"]), "file", create=True)
        self.sid = res["stateid"]

    def notify(self):
        return self.last(n.putfh(self.fh), (COPY_NOTIFY, self.sid + netaddr(2049)))["status"] == n.OK


class CopySources(Table):
    MOST = 1024
    told = "files that another server may copy"
    settings = {"nfs4.copy_servers": "127.0.0.1", "nfs4.lease_time": 90, "nfs4.grace_time": 90}
    columns = ("one host", "16 hosts", "200 hosts")  # strangers have nothing that could be copied

    def fill(self, hosts):
        clients = {host: Copied(self.d, f"copies from {host}", host) for host in hosts}
        self.held += clients.values()
        for host in self.spread(hosts, self.MOST + 10):
            clients[host].notify()

    def polite(self):
        c = Copied(self.d, "polite", POLITE)
        self.held.append(c)
        return c.notify() and c.notify()


class Held(Table):
    """Calls that wait for the return of a delegation: the polite host's is served once that comes."""
    told = "calls that wait for an answer"
    settings = {"nfs4.lease_time": 60, "nfs4.grace_time": 60}
    columns = ("one host", "16 hosts", "200 hosts")  # of strangers no call gets so far

    def begin(self):
        self.holder = Holder(self.d.port, "holder", 1)
        self.holder.register(), self.holder.reclaim_complete()
        self.holder.await_callback()
        self.held.append(self.holder)
        root = self.holder.path(self.d.exports["x"])
        self.files = {}
        for name in ("theirs", "mine"):
            with open(os.path.join(self.d.exports["x"], name), "wb") as f:
                f.write(b"before")
            res, fh = self.holder.open(root, name, access=n.SHARE_READ)
            self.files[name] = fh, res.get("deleg")

    def write(self, name):
        with conn(self.d, POLITE) as c:
            fh = c.nfs(r.LOOKUP, r.lookup_args(self.d.root(c, "x"), name))["fh"]
        return r.call_message(r.NFS, 3, r.WRITE, r.write_args(fh, 0, b"after"))

    def fill(self, hosts):
        message = self.write("theirs")
        for host in self.spread(hosts, 300):
            c = conn(self.d, host)
            c.send(message)
            self.held.append(c)
        self.mine = self.write("mine")
        self.asked = conn(self.d, POLITE)
        self.held.append(self.asked)
        self.asked.send(self.mine)
        time.sleep(1)  # it must wait now, as the delegation is still held

    def polite(self):
        fh, deleg = self.files["mine"]
        self.holder.await_callback(n.CB_RECALL, 1)
        status = self.holder.delegreturn(fh, deleg)
        return status == n.OK and r.reply_body(self.asked.recv()).u32() == r.OK


class Holder(n.Client):
    back = True


class Scrapes(Table):
    """Connections to the metrics' port, which anybody may read."""
    MOST = 128

    def fill(self, hosts):
        for host in self.spread(hosts, self.MOST + 50):
            c = socket.create_connection(("127.0.0.1", self.d.metrics), timeout=30, source_address=(host, 0))
            c.sendall(b"GET /metrics HTTP/1.1\r\n")
            self.held.append(c)

    def scrape(self):
        with socket.create_connection(("127.0.0.1", self.d.metrics), timeout=30, source_address=(POLITE, 0)) as c:
            c.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            answer = c.recv(15)
        if not answer.startswith(b"HTTP/1."):
            print(f"# a scrape was answered {answer!r}")
        return answer.startswith(b"HTTP/1.")

    def polite(self):
        """As scrapers do, it comes again: one in many hundred connections was closed before its answer."""
        return any(self.scrape() for _ in range(3))


class Clients(Table):
    """Memory for the state of NFSv4's clients."""
    settings = {"server.memory_max": "64M"}

    def register(self, host, name):
        c = n.Client.__new__(n.Client)
        c.source = (host, 0)
        n.Client.__init__(c, self.d.port, name, 1)
        return c, c.register()["status"]

    def fill(self, hosts):
        for i, host in enumerate(self.spread(hosts, 600)):
            try:
                c, _ = self.register(host, f"{host} {i}")
                self.held.append(c)
            except (OSError, r.Closed, r.Refused):
                pass

    def polite(self):
        c, status = self.register(POLITE, "polite")
        self.held.append(c)
        return status == n.OK and n.OK == c.reclaim_complete()


class Records(Table):
    """Records of NFSv3 clients with locks, each of which has as many names as it is given."""
    NAMES = 70  # more than an address has
    AT_ONCE = 16  # calls that wait for the disk, of a host
    told = "records of NFSv3 clients with locks"
    columns = ("one host", "16 hosts", "200 hosts")  # strangers get no lock

    def begin(self):
        with conn(self.d, POLITE) as c:
            self.fh = c.nfs(r.CREATE, r.create_args(self.d.root(c, "x"), "locked"))["fh"]
        self.offset = 0

    def lock(self, name):
        self.offset += 2
        return r.call_message(nlm.NLM, 4, nlm.NLM_LOCK, r.opaque(b"cookie") + r.u32(0) + r.u32(1) + r.opaque(name) + r.opaque(self.fh) +
                              r.opaque(b"owner") + r.u32(7) + r.u64(self.offset) + r.u64(1) + r.u32(0) + r.u32(3))

    @staticmethod
    def status(data):
        x = r.reply_body(data)
        x.opaque()
        return x.u32()

    def fill(self, hosts):
        for some in (hosts[i:i + 16] for i in range(0, len(hosts), 16)):
            conns = {host: conn(self.d, host) for host in some}
            self.held += conns.values()
            for host, c in conns.items():
                c.left = [b"%s %d" % (host.encode(), i) for i in range(self.NAMES)]
            while any(c.left for c in conns.values()):
                under_way = [(c, name) for c in conns.values() for name in c.left[:self.AT_ONCE]]
                for c, name in under_way:
                    c.send(self.lock(name))
                for c, name in under_way:  # replies may come in another order
                    c.left.remove(name)
                    if self.status(c.recv()) == nlm.GRACE_PERIOD:
                        c.left.append(name + b" again")

    def polite(self):
        with conn(self.d, POLITE) as c:
            return all(self.status(c.exchange(self.lock(b"polite %d" % i))) == nlm.GRANTED for i in range(8))


TABLES = (Connections, Replies, Handshakes, CopySources, Held, Scrapes, Clients, Records)


def cell(t, kind, column, base):
    settings = {**base, **kind.settings}
    with Daemon({"x": OPTIONS}, settings, nofile=16384, hosts=(ADMITTED,)) as d:
        d.metrics = base["metrics.listen"].rpartition(":")[2]
        table = kind(d)
        table.begin()
        table.fill(FILLERS[column])
        begin = time.monotonic()
        try:
            served = bool(table.polite())
        except (OSError, r.Closed, r.Refused) as e:
            served, column = False, f"{column}: {e!r}"
        took = time.monotonic() - begin
        print(f"{kind.__name__:12} filled by {column:10} a polite host is served in {took * 1000:7.1f} ms", flush=True)
        if not t.check(f"{kind.__name__} filled by {column}: a polite host is served", served):
            print(d.read_log()[-3000:])
        if kind.told:
            t.check(f"{kind.__name__} filled by {column}: the log says so", d.wait_log(f"warning: {kind.told}: no room for all: 127", seconds=5))
        table.end()
        t.check(f"{kind.__name__} filled by {column}: the server lives", d.alive())


def main():
    t = Count()
    folder = tempfile.mkdtemp(prefix="ringnfs-crowded-")
    try:
        ca = tls.Authority(folder, "ca")
        crt, key = ca.issue("server")
        Handshakes.ca = ca.path("crt")
        base = {"tls.certificate": crt, "tls.key": key, "metrics.listen": f"127.0.0.1:{harness.free_port()}", "nfs4.grace_time": 10}
        for kind in (k for k in TABLES if k.__name__ in os.environ.get("CROWDED_TABLES", k.__name__)):
            for column in kind.columns:
                cell(t, kind, column, base)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    harness.result(t)


if __name__ == "__main__":
    main()
