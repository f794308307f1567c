#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The control socket and ringnfsctl: what they tell, who may ask, and peers that are slow, wrong or too many."""
import json
import os
import re
import signal
import socket
import stat
import subprocess
import time

import harness
import nfs4client as n4
from harness import Count, Daemon

USER, GROUP, OTHERS = 54321, 54322, 54323
BINARY = os.environ.get("RINGNFSCTL", "./ringnfsctl")


class Control(Daemon):
    """With a control socket in a folder of its own, and a table of groups that only the daemon sees."""

    def __init__(self, settings=None, silent=False, env=None, exports=None, args=(), hosts=("127.0.0.0/8",)):
        super().__init__(exports or {"one": "rw,insecure,no_root_squash"}, {"rdma.enabled": "no", **(settings or {})},
                         env=env, hosts=hosts, before=("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/group && exec "$@"'))
        self.args = args
        self.path = os.path.join(self.top, "run", "control")
        groups = os.path.join(self.top, "group")
        if silent:
            os.mkfifo(groups)  # who opens it waits for a writer
        else:
            with open(groups, "w") as f:
                f.write(f"root:x:0:\nringnfs:x:{GROUP}:\n")
        self.before.append(groups)
        self._configure({"rdma.enabled": "no", "server.control_socket": self.path, **(settings or {})})

    def wait_readers(self):
        """Until the group may connect: it is looked up beside the start."""
        end = time.monotonic() + 20
        while os.stat(self.path).st_gid != GROUP and time.monotonic() < end:
            time.sleep(0.05)


def connect(path):
    """Waits for room in the queue of the socket, where a connect with a time limit fails at once."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.settimeout(30)
    return s


def connect_as(path, uid, gid, groups=()):
    """A connection that a process of that user has made. It is the kernel that tells the server whose it is."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            with connect(path) as s:
                socket.send_fds(theirs, [b"y"], [s.fileno()])
        except OSError as e:
            theirs.send(b"n" + str(e.errno).encode())
        finally:
            os._exit(0)
    data, fds, _, _ = socket.recv_fds(ours, 16, 1)
    os.waitpid(pid, 0)
    ours.close()
    theirs.close()
    if data[:1] != b"y":
        raise OSError(int(data[1:]), os.strerror(int(data[1:])))
    s = socket.socket(fileno=fds[0])
    s.settimeout(30)
    return s


def read_reply(s):
    """(status, headers, body)"""
    f = s.makefile("rb")
    status = int(f.readline().split()[1])
    headers = {}
    while line := f.readline().strip():
        name, value = line.split(b":", 1)
        headers[name.decode().lower()] = value.strip().decode()
    return status, headers, f.read(int(headers.get("content-length", 0)))


def has_ended(s):
    """True once the server has closed the connection: a reset, if it had not read all."""
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True


def ask(s, method="GET", path="/v1/status", extra="", body=b""):
    s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode() + body)
    return read_reply(s)


def status_of(d):
    with connect(d.path) as s:
        return json.loads(ask(s)[2])


def at_rest(d):
    """The status once the server has seen the end of the connections that were closed."""
    end = time.monotonic() + 20
    while (st := status_of(d))["connections"]["tcp"] and time.monotonic() < end:
        time.sleep(0.05)
    return st


def ctl(*args):
    return subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=60)


def logged_names(d):
    """Names of the resources in the line that SIGUSR1 has logged."""
    since = len(d.read_log())
    d.process.send_signal(signal.SIGUSR1)
    d.wait_log("held: ", since)
    return set(re.findall(r" (\w+)=\d", re.search(r"held:.*", d.read_log()[since:]).group()))


def test_status(t, d):
    st = status_of(d)
    t.equal("process", st["pid"], d.process.pid)
    t.check("version", re.match(r"\d+\.\d+\.\d+", st["version"]), st["version"])
    t.check("listeners", {"address": "127.0.0.1", "port": d.port, "transport": "tcp", "service": "nfs"} in st["listeners"],
            st["listeners"])
    t.check("it has just started", 0 <= st["uptime"] < 300 and re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", st["started"]), st)
    t.check("threads", st["threads"]["event"] >= 1 and st["threads"]["workers"] >= 1, st["threads"])
    t.check("memory", 0 < st["memory"]["used"] < st["memory"]["limit"] == 256 << 20, st["memory"])
    t.equal("no grace period", st["grace"], {"active": False, "seconds_left": 0, "expected": 0, "waiting": 0})
    st = at_rest(d)
    t.equal("nobody is there", (st["connections"], st["clients"]["nfs4"]), ({"tcp": 0, "rdma": 0}, 0))
    c = n4.Client(d.port, "controlled")
    c.register()
    c.reclaim_complete()
    c.open(c.path(d.exports["one"]), b"file", create=True)
    with d.connect() as other:
        d.root(other, "one")  # so the server has accepted it
        st = status_of(d)
    t.equal("connections", st["connections"], {"tcp": 2, "rdma": 0})
    t.equal("clients", st["clients"], {"connected": 1, "nfs4": 1, "nfs4_courtesy": 0})
    t.equal("what they hold", (st["held"]["nfs4_opens"], st["held"]["nfs4_sessions"]), (1, 1))
    t.equal("names of what is held", set(st["held"]), logged_names(d) - {"fds", "threads"})
    c.close()


def test_grace(t, d):
    """A client that holds a file, and a server that was killed."""
    c = n4.Client(d.port, "away")
    c.register()
    c.reclaim_complete()
    c.open(c.path(d.exports["one"]), b"held", create=True)
    d.process.kill()
    d.process.wait()
    d.start()
    grace = status_of(d)["grace"]
    t.check("a grace period", grace["active"] and 0 < grace["seconds_left"] <= 90 and grace["expected"] == grace["waiting"] > 0, grace)
    n = grace["expected"]
    t.check("for people", f"{n} of {n} clients have not reclaimed" in ctl("--socket", d.path, "status").stdout)


def test_tool(t, d):
    at_rest(d)
    res = ctl("-s", d.path, "status")
    t.equal("exit status", res.returncode, 0)
    for words in (f"process {d.process.pid}", f"127.0.0.1:{d.port} tcp nfs", "connections  0 TCP, 0 RDMA", "of 256.0 MiB", "grace        over"):
        t.check(f"it says: {words}", words in res.stdout, res.stdout)
    res = ctl("status", "--json", "--socket", d.path)
    t.equal("--json is the answer", json.loads(res.stdout)["pid"], d.process.pid)
    t.check("--version", re.match(r"ringnfsctl \(ringnfs [\d.]+\)$", ctl("--version").stdout.strip()))
    t.check("--help", "status" in ctl("--help").stdout and ctl("-h").returncode == 0)
    for args in ((), ("stat",), ("--sockets",), ("-s", d.path, "status", "now")):
        res = ctl(*args)
        t.check(f"wrong use {args}", res.returncode == 2 and res.stderr and not res.stdout, (res.returncode, res.stderr))
    res = ctl("-s", d.top + "/none", "status")
    t.check("no server", res.returncode == 3 and "does ringnfsd run" in res.stderr, (res.returncode, res.stderr))
    for word in ("status", "check", "move"):
        res = ctl("-s", d.path, "cluster", word)
        t.check(f"cluster {word} of a server that is alone", res.returncode == 1 and "no member of a cluster" in res.stderr, res)
    with open("/dev/full", "w") as full:
        res = subprocess.run([BINARY, "-s", d.path, "status"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    t.check("an answer that cannot be written", res.returncode == 3 and "No space left" in res.stderr, (res.returncode, res.stderr))


def test_rights(t, d):
    end = time.monotonic() + 20
    while (mode := os.stat(d.path)).st_gid != GROUP and time.monotonic() < end:
        time.sleep(0.05)  # the group is looked up beside the start
    t.equal("mode of the socket", (stat.S_IMODE(mode.st_mode), mode.st_uid, mode.st_gid), (0o660, 0, GROUP))
    for what, uid, gid, groups in (("a member", USER, OTHERS, (GROUP,)), ("one whose first group it is", USER, GROUP, ())):
        with connect_as(d.path, uid, gid, groups) as s:
            t.equal(f"{what} may read", ask(s)[0], 200)
            code, _, body = ask(s, "POST")
            t.equal(f"{what} may not change", (code, json.loads(body)["code"]), (403, "forbidden"))
    many = tuple(range(60000, 60100)) + (GROUP,)
    with connect_as(d.path, USER, OTHERS, many) as s:
        t.equal("a member of a hundred groups may read", ask(s)[0], 200)
    try:
        connect_as(d.path, USER, OTHERS).close()
        t.check("a stranger cannot connect", False)
    except PermissionError:
        t.check("a stranger cannot connect", True)
    os.chmod(d.path, 0o666)  # and if he could
    with connect_as(d.path, USER, OTHERS, (0,)) as s:
        for method in ("GET", "POST"):
            code, headers, body = ask(s, method)
            t.equal(f"a stranger's {method}", (code, headers["content-type"], json.loads(body)["code"]),
                    (403, "application/json", "forbidden"))
    os.chmod(d.path, 0o660)
    t.check("refusals are logged", d.wait_log(rf"by user {USER} \(process \d+\) refused"), d.read_log()[-300:])


def test_errors(t, d):
    cases = (("an unknown path", b"GET /v1/none HTTP/1.1\r\nHost: x\r\n\r\n", 404, "not_found"),
             ("the root", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404, "not_found"),
             ("a path that climbs", b"GET /v1/../v1/status HTTP/1.1\r\nHost: x\r\n\r\n", 404, "not_found"),
             ("another method", b"DELETE /v1/status HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method_not_allowed"),
             ("no HTTP", b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400, "bad_request"),
             ("a header of 20 KiB", b"GET /v1/status HTTP/1.1\r\nX: " + b"a" * 20000 + b"\r\n\r\n", 400, "bad_request"),
             ("a body of 600,000 bytes", b"POST /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 600000\r\n\r\n" + b"b" * 600000, 413, "too_large"),
             ("a length of no number", b"POST /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 400, "bad_request"))
    for what, data, want, code in cases:
        with connect(d.path) as s:
            try:
                s.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the answer has come before all was sent
            try:
                got, _, body = read_reply(s)
                t.equal(what, (got, json.loads(body)["code"]), (want, code))
            except (ConnectionResetError, IndexError, ValueError) as e:
                t.check(what, False, repr(e))
    with connect(d.path) as s:
        t.equal("Allow", ask(s, "PUT")[1].get("allow"), "GET")
        t.equal("the same connection goes on", ask(s)[0], 200)
        t.equal("a query is allowed", ask(s, path="/v1/status?a=b%00")[0], 200)
    t.check("the daemon lives", d.alive())


def test_slow(t, d):
    """Members of the group take all connections, and send a byte now and then."""
    slow = []
    for _ in range(80):
        s = connect_as(d.path, USER, GROUP)
        s.sendall(b"GET /v1/st")
        slow.append(s)
    for _ in range(5):
        t.equal("root is answered beside them", status_of(d)["pid"], d.process.pid)
        for s in slow:
            try:
                s.sendall(b"a")
            except OSError:
                pass  # closed, as the least recently used
    with d.connect() as c:
        d.root(c, "one")
        t.check("NFS is served beside them", True)
    closed = 0
    for s in slow:
        s.settimeout(0.02)
        try:
            closed += s.recv(1) == b""
        except TimeoutError:
            pass
        except OSError:
            closed += 1
    t.check("those beyond 48 were closed", closed >= 32, closed)
    t.equal("and the others, without a request after ten seconds", await_ends(slow), 0)
    for s in slow:
        s.close()
    # A connection without a byte ends by itself.
    with connect(d.path) as s:
        t.equal("an idle connection ends, after ten seconds", s.recv(1), b"")


def await_ends(peers, seconds=60):
    """The number of those that the server has not closed. What is sent to a closed connection fails."""
    end = time.monotonic() + seconds
    while peers and time.monotonic() < end:
        peers = [s for s in peers if not fails(s)]
        time.sleep(0.2)
    return len(peers)


def fails(s):
    try:
        s.send(b"a", socket.MSG_DONTWAIT)
        return False
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_lazy(t, d):
    """Members of the group ask for all there is again and again, and take no answers."""
    lazy = []
    for i in range(48):
        s = connect_as(d.path, USER + i % 2, GROUP)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.setblocking(False)
        try:
            for _ in range(100):
                s.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/config HTTP/1.1\r\nHost: x\r\n\r\n")
        except BlockingIOError:
            pass
        lazy.append(s)
    for _ in range(10):
        t.equal("root is answered beside those who take no answers", status_of(d)["pid"], d.process.pid)
    with connect_as(d.path, USER + 5, GROUP) as s:
        t.equal("and so is another member", ask(s)[0], 200)
    t.equal("those who take none are closed", await_ends(lazy), 0)
    for s in lazy:
        s.close()


def run_second(d, path, state):
    os.makedirs(os.path.join(d.top, state), exist_ok=True)
    return subprocess.run([d.binary, "--config", d.config, "--control-socket", path, "--state-dir", os.path.join(d.top, state),
                           "--port", str(harness.free_port())], capture_output=True, text=True, timeout=60, env=harness.sanitizer_env(None))


def test_places(t, d):
    res = run_second(d, d.path, "state2")
    t.check("a second server is told who has the socket", res.returncode == 69 and f"another process (process {d.process.pid}) serves it"
            in res.stderr, (res.returncode, res.stderr[-300:]))
    t.equal("and leaves it alone", status_of(d)["pid"], d.process.pid)
    plain = os.path.join(d.top, "plain")
    with open(plain, "w") as f:
        f.write("mine")
    res = run_second(d, plain, "state2")
    t.check("a file that is no socket is refused", res.returncode == 69 and "no socket" in res.stderr, res.stderr[-300:])
    with open(plain) as f:
        t.equal("and kept", f.read(), "mine")
    for mode in (0o777, 0o770, 0o1777):
        folder = os.path.join(d.top, f"mode{mode:o}")
        os.mkdir(folder)
        os.chmod(folder, mode)
        res = run_second(d, folder + "/control", "state2")
        t.check(f"a folder of mode {mode:o} is refused", res.returncode == 69 and "chmod go-w" in res.stderr, res.stderr[-300:])
        t.equal("and left empty", os.listdir(folder), [])
    res = run_second(d, "/" + "x" * 120, "state2")
    t.check("a path that is too long", res.returncode == 78 and "107" in res.stderr, (res.returncode, res.stderr[-300:]))


def test_left_behind(t, d):
    d.process.kill()
    d.process.wait()
    t.check("a server that was killed leaves its socket", stat.S_ISSOCK(os.stat(d.path).st_mode))
    t.equal("which nobody serves", ctl("-s", d.path, "status").returncode, 3)
    d.start()
    t.equal("and the next one replaces", status_of(d)["pid"], d.process.pid)


def test_stop(t, d):
    with connect(d.path) as idle, connect(d.path) as half:
        half.sendall(b"GET /v1/")
        t.equal("exit status with peers there", d.stop()[0], 0)
        t.check("who see the end", has_ended(idle) and has_ended(half))
    t.check("the socket is removed", not os.path.exists(d.path))


def test_silent_names(t):
    """The name service does not say who is in the group: root, NFS and the stop do not wait."""
    # What the thread that still waits uses is left to the end of the process.
    leaks = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    with Control(silent=True, env={**os.environ, "ASAN_OPTIONS": leaks}) as d:
        t.equal("root is answered without the group", status_of(d)["pid"], d.process.pid)
        t.equal("and nobody else may connect", stat.S_IMODE(os.stat(d.path).st_mode), 0o600)
        with d.connect() as c:
            d.root(c, "one")
        t.equal("exit status while the service is silent", d.stop()[0], 0)


def main():
    t = Count()
    if not os.access(BINARY, os.X_OK):
        raise SystemExit(f"{BINARY} is not there: build it, or set RINGNFSCTL")
    with Control() as d:
        for test in (test_status, test_tool, test_rights, test_errors, test_slow, test_lazy, test_places, test_left_behind, test_grace, test_stop):
            test(t, d)
    test_silent_names(t)
    harness.result(t)


if __name__ == "__main__":
    main()
