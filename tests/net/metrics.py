#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Metrics: each is seen to change by what it counts. Who may read them, and peers over TCP that are slow, wrong or many."""
import json
import os
import resource
import socket
import subprocess
import threading
import time

import harness
import nfs4client as n4
import rpcclient as r
from control import GROUP, OTHERS, USER, Control, ask, connect, connect_as, has_ended, status_of
from harness import Count
from scrape import Growth, await_value, connect_tcp, get, parse, scrape, value

PORT = harness.free_port()
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
MARK = "a-name-that-nobody-else-has"
SEATS = 128


def by_operation(g, version, operation, status="OK"):
    return g.of("ringnfs_calls_total", version=version, operation=operation, status=status)


def test_calls(t, d):
    c = n4.Client(d.port, MARK, 1)
    c.register()
    c.reclaim_complete()
    root = c.path(d.exports["one"])
    with d.connect() as conn, Growth(d) as g:
        fh = d.root(conn, "one")
        for _ in range(3):
            conn.nfs(r.GETATTR, r.opaque(fh))
        conn.nfs(r.LOOKUP, r.diropargs(fh, "none"))
        conn.nfs(r.GETATTR, r.opaque(b"\1" * 20))
        for _ in range(5):
            c.getattr(root)
        c.last(n4.putfh(root), n4.lookup("none"))
        c.bare((9999, b""))
        conn.exchange(r.call_message(r.NFS, 3, 99))
        conn.mnt(d.exports["one"] + "/none")
    t.equal("GETATTR of version 3", by_operation(g, "3", "GETATTR"), 3)
    t.equal("GETATTR of no handle", by_operation(g, "3", "GETATTR", "BADHANDLE"), 1)
    t.equal("LOOKUP of no name", by_operation(g, "3", "LOOKUP", "NOENT"), 1)
    t.equal("a procedure that is none", by_operation(g, "3", "unknown", "REFUSED"), 1)
    t.equal("MNT", (by_operation(g, "mount", "MNT"), by_operation(g, "mount", "MNT", "NOENT")), (1, 1))
    t.equal("GETATTR of 4.1", by_operation(g, "4.1", "GETATTR"), 5)
    t.equal("and none of 4.2", by_operation(g, "4.2", "GETATTR"), 0)
    t.equal("LOOKUP of no name in 4.1", by_operation(g, "4.1", "LOOKUP", "NOENT"), 1)
    t.equal("an operation that is none", by_operation(g, "4.1", "ILLEGAL", "OP_ILLEGAL"), 1)
    t.equal("times of GETATTR", g.of("ringnfs_call_duration_seconds_count", version="4.1", operation="GETATTR"), 5)
    t.equal("SEQUENCEs, whose time is that of what follows", by_operation(g, "4.1", "SEQUENCE"), 6)
    t.equal("which are not in the times", g.of("ringnfs_call_duration_seconds_count", version="4.1", operation="SEQUENCE"), 0)
    t.equal("in the last bucket", g.of("ringnfs_call_duration_seconds_bucket", version="4.1", operation="GETATTR", le="+Inf"), 5)
    t.check("which took time", 0 < g.of("ringnfs_call_duration_seconds_sum", version="4.1", operation="GETATTR") < 5)
    t.equal("COMPOUNDs", [g.of("ringnfs_compound_duration_seconds_" + name, version="4.1", **labels)
                          for name, labels in (("count", {}), ("bucket", {"le": "+Inf"}))], [7, 7])
    t.check("which took time, too", 0 < g.of("ringnfs_compound_duration_seconds_sum", version="4.1") < 5)
    with Growth(d) as g:
        other = n4.Client(d.port, "by 4.2", 2)
        other.register()
        other.close()
    t.equal("an operation of 4.2", by_operation(g, "4.2", "EXCHANGE_ID"), 1)
    c.close()


def test_bytes(t, d):
    c = n4.Client(d.port, "bytes", 2)
    c.keeps = False  # kept replies are short
    c.register()
    c.reclaim_complete()
    ids = {row["path"]: str(row["id"]) for row in exports_of(d)}
    one, two = ids[d.exports["one"]], ids[d.exports["two"]]
    t.equal("exports without use have zeros", value(scrape(d), "ringnfs_read_bytes_total", export=two), 0)
    t.check("and are there", ("ringnfs_read_bytes_total", (("export", two), ("path", d.exports["two"]))) in scrape(d))
    res, fh = c.open(c.path(d.exports["one"]), b"data", create=True)
    with d.connect() as conn, Growth(d) as g:
        fh3 = conn.nfs(r.LOOKUP, r.diropargs(d.root(conn, "one"), "data"))["fh"]
        c.last(n4.putfh(fh), n4.write(res["stateid"], 0, b"x" * 70000))  # written to disk at once
        c.last(n4.putfh(fh), n4.write(res["stateid"], 0, b"x" * 1000, stable=0))
        conn.nfs(r.WRITE, r.write_args(fh3, 0, b"y" * 3))
        c.last(n4.putfh(fh), n4.read(res["stateid"], 0, 100000))  # to the end
        c.last(n4.putfh(fh), n4.read(res["stateid"], 69990, 5))
        conn.nfs(r.READ, r.read_args(fh3, 0, 65536))
        c.last(n4.putfh(fh), n4.read(res["stateid"], 1 << 20, 5))  # behind the end
    t.equal("bytes written", g.of("ringnfs_written_bytes_total", export=one, path=d.exports["one"]), 71003)
    t.equal("bytes read", g.of("ringnfs_read_bytes_total", export=one, path=d.exports["one"]), 70000 + 5 + 65536)
    t.equal("of the other export", (g.of("ringnfs_written_bytes_total", export=two), g.of("ringnfs_read_bytes_total", export=two)), (0, 0))
    t.check("bytes received", 71003 < g.of("ringnfs_received_bytes_total", transport="tcp") < 80000)
    t.check("bytes sent", 135541 < g.of("ringnfs_sent_bytes_total", transport="tcp") < 145000)
    c.close()


def exports_of(d):
    with connect(d.path) as s:
        return json.loads(ask(s, path="/v1/exports")[2])["exports"]


def test_connections(t, d):
    before = scrape(d)
    with d.connect() as a, d.connect() as b:
        d.root(a, "one"), d.root(b, "one")
        now = scrape(d)
        t.equal("connections", value(now, "ringnfs_connections", transport="tcp") - value(before, "ringnfs_connections", transport="tcp"), 2)
        t.equal("accepted", value(now, "ringnfs_connections_accepted_total") - value(before, "ringnfs_connections_accepted_total"), 2)
        t.check("calls received", value(now, "ringnfs_received_calls_total") - value(before, "ringnfs_received_calls_total") >= 2)
        t.equal("one client", value(now, "ringnfs_clients"), 1)
        t.check("requests", value(now, "ringnfs_requests", transport="tcp") >= 0)
    t.equal("connections that are gone", await_value(d, "ringnfs_connections", lambda v: v == 0, transport="tcp"), 0)
    t.equal("a client that is gone", value(scrape(d), "ringnfs_clients"), 0)


def test_state(t, d):
    c = n4.Client(d.port, "state", 1)
    with Growth(d) as g:
        c.register()
        c.reclaim_complete()
        root = c.path(d.exports["one"])
        res, fh = c.open(root, b"state", create=True)
        c.lock(fh, res["stateid"])
    for kind, n in (("open", 1), ("lock", 1), ("session", 1), ("delegation", 0)):
        t.equal(f"{kind}s", g.of("ringnfs_nfs4_state", kind=kind), n)
    t.check("clients", value(g.after, "ringnfs_nfs4_clients", state="active") >= 1)  # those of tests before may have ended meanwhile
    t.check("memory of state", g.of("ringnfs_memory_bytes", account="nfs4_state") > 0)
    t.check("descriptors of files", g.of("ringnfs_file_descriptors", kind="files") >= 1)
    t.equal("lease time", value(g.after, "ringnfs_lease_seconds"), 5)
    c.conn.close()
    t.equal("a client that is silent", await_value(d, "ringnfs_nfs4_clients", lambda v: v >= 1, state="courtesy") >= 1, True)


def test_caches(t, d):
    with open(os.path.join(d.exports["one"], "fresh"), "w") as f:
        f.write("x")
    with d.connect() as conn:
        root = d.root(conn, "one")
        with Growth(d) as g:
            fh = conn.nfs(r.LOOKUP, r.diropargs(root, "fresh"))["fh"]
            for _ in range(4):
                conn.nfs(r.GETATTR, r.opaque(fh))
        t.check("hits of nodes", g.of("ringnfs_cache_hits_total", cache="nodes") >= 4)
        t.check("a miss", g.of("ringnfs_cache_misses_total", cache="nodes") >= 1)
        t.check("entries", value(g.after, "ringnfs_cache_entries", cache="nodes") >= 1)
        t.check("their descriptors", value(g.after, "ringnfs_file_descriptors", kind="cache") >= 1)
        with Growth(d) as g:
            message = r.call_message(r.NFS, 3, r.MKDIR, r.mkdir_args(root, "made"))
            conn.exchange(message)
            conn.exchange(message)  # the same call again
            conn.nfs(r.READDIR, r.readdir_args(root))
        t.equal("kept replies", g.of("ringnfs_cache_entries", cache="replies"), 1)
        t.equal("a reply that was kept", g.of("ringnfs_cache_hits_total", cache="replies"), 1)
        t.check("their memory", g.of("ringnfs_memory_bytes", account="replies") > 0)
        os.unlink(os.path.join(d.exports["one"], "fresh"))
        with Growth(d) as g:
            conn.nfs(r.GETATTR, r.opaque(fh))
        t.equal("a file that is gone", by_operation(g, "3", "GETATTR", "STALE"), 1)


def test_threads(t, d):
    """What changes a directory under another identity is for a worker."""
    with d.connect() as conn, Growth(d) as g:
        root = d.root(conn, "one")
        for i in range(7):
            conn.nfs(r.MKDIR, r.mkdir_args(root, f"dir{i}"))
    t.check("waits for workers", 7 <= g.of("ringnfs_queue_wait_seconds_count") <= 20, g.of("ringnfs_queue_wait_seconds_count"))
    t.check("which took time", 0 < g.of("ringnfs_queue_wait_seconds_sum") < 5)
    t.equal("workers are idle", (value(g.after, "ringnfs_workers", state="busy"), value(g.after, "ringnfs_workers", state="stuck")), (0, 0))
    t.check("there are some", value(g.after, "ringnfs_workers", state="idle") >= 4)
    t.equal("no call waits, no thread is stuck", (value(g.after, "ringnfs_queued_calls"), value(g.after, "ringnfs_stuck_threads")), (0, 0))
    t.check("descriptors of workers", value(g.after, "ringnfs_file_descriptors", kind="workers") >= 4)


def test_process(t, d):
    fds, threads = d.fds(), len(os.listdir(f"/proc/{d.process.pid}/task"))
    v = scrape(d)
    t.check("descriptors", abs(value(v, "ringnfs_process_open_fds") - fds) <= 4, (value(v, "ringnfs_process_open_fds"), fds))
    t.equal("descriptors that may be", value(v, "ringnfs_process_max_fds"), resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)[0])
    t.equal("threads", value(v, "ringnfs_process_threads"), threads)
    t.check("resident memory", 0.5 < value(v, "ringnfs_process_resident_memory_bytes") / d.rss() < 2)
    t.check("virtual memory", value(v, "ringnfs_process_virtual_memory_bytes") > value(v, "ringnfs_process_resident_memory_bytes"))
    t.check("processor time", abs(value(v, "ringnfs_process_cpu_seconds_total") - d.cpu()) < 1)
    t.check("start", 0 <= time.time() - value(v, "ringnfs_start_time_seconds") < 300)
    t.equal("information", [(pairs, n) for (name, pairs), n in v.items() if name == "ringnfs_build_info"], [((("version", status_of(d)["version"]),), 1)])
    t.equal("memory_max", value(v, "ringnfs_memory_limit_bytes"), 256 << 20)
    t.check("memory in use", 0 < value(v, "ringnfs_memory_used_bytes") < 256 << 20)
    parts = {account: value(v, "ringnfs_memory_bytes", account=account) for account in (
        "payload", "payload_unused", "nfs4_state", "nfs4_state_reserved", "rdma_connections", "other")}
    t.equal("accounts add up to the memory in use", sum(parts.values()), value(v, "ringnfs_memory_used_bytes"))
    t.equal("and none is forgotten", {dict(pairs)["account"] for (name, pairs) in v if name == "ringnfs_memory_bytes"}, {*parts, "replies"})
    t.equal("exports", value(v, "ringnfs_exports"), 2)


def test_reload(t, d):
    with open(os.path.join(d.top, "exports")) as f:
        lines = f.read().splitlines()
    d.write_exports(lines[:1])
    d.reload()
    v = scrape(d)
    t.equal("exports after a reload", value(v, "ringnfs_exports"), 1)
    t.check("the sums of those that are gone stay", any(pairs and dict(pairs).get("path") == "" for (name, pairs) in v
                                                       if name == "ringnfs_read_bytes_total") or value(v, "ringnfs_read_bytes_total") > 0)
    d.write_exports(lines)
    d.reload()
    t.equal("and after another", value(scrape(d), "ringnfs_exports"), 2)


def promtool():
    """Its path, or None and the reason."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "promtool")
    p = subprocess.run([script], capture_output=True, text=True, timeout=300)
    return (p.stdout.strip(), "") if p.returncode == 0 else (None, p.stderr.strip())


def check_format(t, what, text, tool):
    p = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    t.equal(f"promtool check metrics, {what}", (p.returncode, p.stdout + p.stderr), (0, ""))


def test_formats(t, d):
    status, headers, plain = get(d)
    t.equal("Prometheus' text", (status, headers["content-type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
    t.check("without an end mark", "# EOF" not in plain and plain.endswith("\n"))
    t.check("type of a counter", "# TYPE ringnfs_calls_total counter\n" in plain)
    status, headers, text = get(d, f"{OPENMETRICS};q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
    t.equal("OpenMetrics", (status, headers["content-type"]), (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
    t.check("with an end mark", text.endswith("\n# EOF\n") and text.count("# EOF") == 1)
    t.check("type and unit of a counter", "# TYPE ringnfs_read_bytes counter\n# UNIT ringnfs_read_bytes bytes\n" in text)
    t.check("information", "# TYPE ringnfs_build info\n" in text and "\nringnfs_build_info{" in text)
    t.equal("the same metrics", set(k for k in parse(text)), set(k for k in parse(plain)))
    tool, why = promtool()
    if not tool:
        t.skip("promtool", why)
        return
    check_format(t, "socket", plain, tool)
    with connect_tcp(PORT) as s:
        check_format(t, "TCP", ask(s, path="/metrics")[2].decode(), tool)


def test_rights(t, d):
    with connect_as(d.path, USER, OTHERS, (GROUP,)) as s:
        t.equal("a member of the group may read", ask(s, path="/metrics")[0], 200)
        t.equal("and not change", ask(s, "POST", "/metrics")[0], 403)
    try:
        connect_as(d.path, USER, OTHERS).close()
        t.check("a stranger cannot connect", False)
    except PermissionError:
        t.check("a stranger cannot connect", True)


def test_tcp(t, d):
    with connect_tcp(PORT) as s:
        status, headers, body = ask(s, path="/metrics")
        text = body.decode()
        t.equal("over TCP", (status, headers["content-type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        t.check("without paths and names", d.top not in text and "path=" not in text and MARK not in text and "/one" not in text)
        t.check("and addresses", "127.0.0" not in text)
        t.equal("the same metrics otherwise", {name for name, _ in parse(text)}, {name for name, _ in scrape(d)})
        t.equal("no interface", ask(s, path="/v1/status")[0], 404)
        t.equal("no change", ask(s, "POST", "/metrics")[0], 403)
        t.equal("OpenMetrics", ask(s, path="/metrics", extra=f"Accept: {OPENMETRICS}\r\n")[1]["content-type"].split(";")[0],
                "application/openmetrics-text")
    with connect_tcp(PORT, "::1", "::1") as s:
        t.equal("over IPv6", ask(s, path="/metrics")[0], 200)
    cases = (("no HTTP", b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
             ("a header of 20 KiB", b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 20000 + b"\r\n\r\n", 400),
             ("a body of 5,000 bytes", b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n" + b"b" * 5000, 413),
             ("an Accept that is none", b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: ;;,=\xff;q=,\r\n\r\n", 200))
    for what, data, want in cases:
        with connect_tcp(PORT) as s:
            try:
                s.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            t.check(what, s.recv(4096).startswith(f"HTTP/1.1 {want} ".encode()))
    t.check("the server lives", d.alive())


def scrapers(n, results, each):
    def run(source):
        try:
            with connect_tcp(PORT, source) as s:
                for _ in range(each):
                    results.append(ask(s, path="/metrics")[0])
        except OSError as e:
            results.append(e)

    threads = [threading.Thread(target=run, args=(f"127.0.0.{1 + i % 50}",)) for i in range(n)]
    for thread in threads:
        thread.start()
    return threads


def test_many(t, d):
    """A hundred scrapers at once beside a client of NFS, whose calls are all answered."""
    results, calls = [], 0
    with d.connect() as conn:
        root = d.root(conn, "one")
        threads = scrapers(100, results, 5)
        while calls < 100 or any(thread.is_alive() for thread in threads):
            if conn.nfs(r.GETATTR, r.opaque(root))["status"] == 0:
                calls += 1
    for thread in threads:
        thread.join()
    t.equal("each of a hundred scrapers gets all its answers", (len(results), [x for x in results if x != 200]), (500, []))
    t.check("the client is served beside them", calls >= 100)


def test_crowd(t, d):
    """One host takes all connections: those of others stay."""
    with connect_tcp(PORT) as s:
        t.equal("first", ask(s, path="/metrics")[0], 200)
        crowd = [connect_tcp(PORT, "127.0.0.2") for _ in range(SEATS + 60)]
        t.equal("after the crowd has come", ask(s, path="/metrics")[0], 200)
    with connect_tcp(PORT, "127.0.0.3") as s:
        t.equal("one who comes then", ask(s, path="/metrics")[0], 200)
    ended = 0
    for c in crowd:
        c.settimeout(0.01)
        try:
            ended += has_ended(c)
        except TimeoutError:
            pass
        c.close()
    t.check("the first of the crowd were closed", 60 <= ended <= SEATS, ended)


class Slow:
    """Peers that send a byte a second, and one that takes none of its answers."""

    def __init__(self):
        self.began = time.monotonic()
        self.peers = [connect_tcp(PORT, "127.0.0.9") for _ in range(20)]
        for s in self.peers:
            s.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        self.lazy = socket.socket()
        self.lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.lazy.settimeout(30)
        self.lazy.connect(("127.0.0.1", PORT))
        for _ in range(50):
            self.lazy.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.stop = threading.Event()
        self.thread.start()

    def run(self):
        while not self.stop.wait(1):
            for s in self.peers:
                try:
                    s.sendall(b"a")
                except OSError:
                    pass  # it has been closed

    def finish(self, t):
        closed = 0
        for s in self.peers:
            try:
                closed += has_ended(s)
            except TimeoutError:
                pass
        t.equal("those who send a byte a second are closed", closed, len(self.peers))
        t.check("after ten seconds", time.monotonic() - self.began >= 10)
        end = time.monotonic() + 30
        try:  # what is sent to a closed connection is reset
            while time.monotonic() < end:
                self.lazy.sendall(b"x")
                time.sleep(0.1)
            t.check("one that takes no answers is closed", False)
        except OSError:
            t.check("one that takes no answers is closed", True)
        self.stop.set()
        self.thread.join()
        for s in (*self.peers, self.lazy):
            s.close()


def test_grace(t, d):
    c = n4.Client(d.port, "away", 1)
    c.register()
    c.reclaim_complete()
    c.open(c.path(d.exports["one"]), b"held", create=True)
    t.equal("no grace period", value(scrape(d), "ringnfs_grace_active"), 0)
    d.process.kill()
    d.process.wait()
    d.start()
    v = scrape(d)
    t.equal("a grace period", value(v, "ringnfs_grace_active"), 1)
    t.check("clients that it waits for", value(v, "ringnfs_grace_clients_waiting") >= 1)
    t.check("time left", 0 < value(v, "ringnfs_grace_left_seconds") <= 90)
    c.close()


def test_places(t, d):
    with socket.create_server(("127.0.0.1", 0)) as s:
        config = os.path.join(d.top, "other.conf")
        with open(config, "w") as f:
            f.write(f"[server]\nstate_dir = {d.top}/state2\ncontrol_socket =\nrpcbind = no\n[rdma]\nenabled = no\n"
                    f"[metrics]\nlisten = 127.0.0.1:{s.getsockname()[1]}\n")
        res = subprocess.run([d.binary, "--config", config, "--port", str(harness.free_port())], capture_output=True, text=True,
                             timeout=60, env=harness.sanitizer_env(None))
    t.check("an address in use", res.returncode == 69 and "correct metrics.listen" in res.stderr, (res.returncode, res.stderr[-300:]))


def main():
    t = Count()
    settings = {"metrics.listen": f"127.0.0.1:{PORT}, [::1]:{PORT}", "nfs4.lease_time": 5}
    options = "rw,insecure,no_root_squash"
    with Control(settings, exports={"one": options, "two": options}) as d:
        slow = Slow()
        for test in (test_calls, test_bytes, test_connections, test_caches, test_threads, test_process, test_reload, test_formats,
                     test_rights, test_tcp, test_many, test_crowd, test_state):
            test(t, d)
        slow.finish(t)
        test_grace(t, d)
        test_places(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
