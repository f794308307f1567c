#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""An administrator's work on a running ringnfsd: reloads, restarts, queries, mistakes; and its registrations with rpcbind."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon
from rdmaclient import Peer

# The registration test runs this script once more within namespaces of its own.
INSIDE = "--inside-namespace"
RDMA_PORT = 20049
MONITOR_PORT = 801


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def write_exports(d, lines):
    with open(os.path.join(d.top, "exports"), "w") as f:
        f.write("\n".join(lines) + "\n")


def reload(d, word):
    """SIGHUP: does the log say word then?"""
    return word in d.reload()


def can_mount(d, conn, name):
    return conn.mnt(d.exports[name])[0] == 0


def test_reload(t, d):
    with d.connect() as c:
        root = d.root(c, "one")
        created = c.nfs(r.CREATE, r.create_args(root, b"f", attrs=r.sattr(mode=0o644)))
        t.equal("CREATE before the reload", created["status"], 0)

        write_exports(d, [f"{d.exports['one']} 127.0.0.1(rw,insecure,no_root_squash)",
                          f"{d.exports['two']} 127.0.0.1(rw,insecure,no_root_squash)"])
        t.check("a second export is served after SIGHUP", reload(d, "serving") and can_mount(d, c, "two"))
        t.equal("a handle from before the reload", c.nfs(r.GETATTR, r.opaque(created["fh"]))["status"], 0)

        write_exports(d, [f"{d.exports['two']} 127.0.0.1(rw,insecure,nosuchoption)"])
        t.check("a bad file is refused", reload(d, "reload failed"))
        t.check("the message has file, line and column", "exports:1:" in d.read_log())
        t.check("and leaves the old exports in force", can_mount(d, c, "one") and can_mount(d, c, "two"))

        write_exports(d, [f"{d.exports['one']} 127.0.0.1(ro,insecure,no_root_squash)"])
        t.check("a reload to read-only", reload(d, "serving"))
        res = c.nfs(r.CREATE, r.create_args(root, b"g", attrs=r.sattr(mode=0o644)))
        t.equal("CREATE on what is read-only now", res["status"], r.ROFS)
        t.check("an export that is gone cannot be mounted", not can_mount(d, c, "two"))

        write_exports(d, [f"{d.exports['one']} 192.0.2.1(rw,insecure)"])
        t.check("a reload that takes this client's access away", reload(d, "serving"))
        try:
            res = c.nfs(r.GETATTR, r.opaque(root))
        except r.Refused as e:
            res = e
        t.check("it is refused as a stranger", isinstance(res, r.Refused) and res.why == "AUTH_ERROR", res)

        write_exports(d, [f"{d.exports['one']} 127.0.0.1(rw,insecure,no_root_squash)"])
        t.check("and given back", reload(d, "serving"))
        t.equal("GETATTR again", c.nfs(r.GETATTR, r.opaque(root))["status"], 0)
    return root, created["fh"]


def test_restart(t, d, root, fh):
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with d.connect() as c:
            c.nfs(r.WRITE, r.write_args(fh, 0, b"before the end"))
        d.stop(sig)
        os.rename(os.path.join(d.exports["one"], "f"), os.path.join(d.exports["one"], "renamed"))
        d.start()
        with d.connect() as c:
            res = c.nfs(r.READ, r.read_args(fh, 0, 100))
            t.equal(f"a handle after {sig.name}, a restart and a rename", (res["status"], res.get("data")),
                    (0, b"before the end"))
        os.rename(os.path.join(d.exports["one"], "renamed"), os.path.join(d.exports["one"], "f"))
    os.unlink(os.path.join(d.exports["one"], "f"))
    with d.connect() as c:
        t.equal("a handle of a deleted file", c.nfs(r.GETATTR, r.opaque(fh))["status"], r.STALE)
    with open(os.path.join(d.top, "state", "handle.key"), "rb") as f:
        key = f.read()
    t.check("the key is root's alone", os.stat(os.path.join(d.top, "state", "handle.key")).st_mode & 0o777 == 0o600)
    t.check("the key is not in the log", key.hex() not in d.read_log() and repr(key)[2:-1] not in d.read_log())


def test_counters(t, d):
    with d.connect() as c:
        d.root(c, "one")
    four = n4.Client(d.port, "counted")
    four.register()
    four.path(d.exports["one"])
    four.close()
    d.process.send_signal(signal.SIGUSR1)
    words = ("tcp: ", "mount MNT: ", "nfs4 COMPOUND: 3 calls, 0 errors", "nfs4 SEQUENCE: 1 calls", "nfs4 LOOKUP: ",
             "nfs4_clients=1 ", "nfs4_sessions=1 ")
    t.check("SIGUSR1 logs counters", wait_for(lambda: all(w in d.read_log() for w in words)), d.read_log())


def mismatch(d, prog, vers):
    """Reply to calls of a version that is not served."""
    with d.connect() as c:
        try:
            c.call(prog, vers, 0)
            return None
        except r.Refused as e:
            return (e.why, *e.data)


def test_versions(t):
    with Daemon({"one": "rw,insecure"}, {"nfs3.enabled": "no", "nfs4.minor_min": 1, "nfs4.minor_max": 1}) as d:
        t.equal("NFSv3 when there is only NFSv4", mismatch(d, r.NFS, 3), ("PROG_MISMATCH", 4, 4))
        t.equal("MOUNT then", mismatch(d, r.MOUNT, 3), ("PROG_UNAVAIL",))
        t.check("no port for it is named", "MOUNT" not in d.read_log())
        for minor, want in ((0, n4.MINOR_VERS_MISMATCH), (1, n4.OK), (2, n4.MINOR_VERS_MISMATCH)):
            c = n4.Client(d.port, f"minor {minor}", minor)
            t.equal(f"minor version {minor}, when there is 1 only", c.register()["status"], want)
            c.close()
    with Daemon({"one": "rw,insecure"}, {"nfs4.enabled": "no"}) as d:
        t.equal("NFSv4 when there is only NFSv3", mismatch(d, r.NFS, 4), ("PROG_MISMATCH", 3, 3))
        t.check("nothing is kept of NFSv4's clients", not os.path.exists(d.top + "/state/nfs4-clients.db"))


def run(d, *args):
    return subprocess.run([d.binary, *args], capture_output=True, text=True, timeout=60)


def test_command_line(t, d):
    res = run(d, "--config", d.config, "--check-config")
    t.check("--check-config accepts what runs", res.returncode == 0, res.stderr)
    res = run(d, "--config", d.config, "--print-config")
    t.check("--print-config prints it", f"port = {d.port}" in res.stdout, res.stdout[:200])
    bad = os.path.join(d.top, "bad.conf")
    with open(bad, "w") as f:
        f.write("[tcp]\nprot = 2049\n")
    res = run(d, "--config", bad, "--check-config")
    t.check("an unknown key is an error with its place and the nearest name",
            res.returncode != 0 and "bad.conf:2" in res.stderr and "port" in res.stderr, res.stderr)
    res = run(d, "--config", os.path.join(d.top, "absent.conf"), "--check-config")
    t.check("a named file that is not there is an error", res.returncode != 0 and "absent.conf" in res.stderr, res.stderr)
    res = run(d, "--config", d.config, "--port", "0x")
    t.check("a bad option names itself", res.returncode != 0 and "--port" in res.stderr, res.stderr)
    own = ("--state-dir", os.path.join(d.top, "state2"))
    res = run(d, "--config", d.config, *own)
    t.check("a port in use ends the start with a word of help", res.returncode != 0 and "in use" in res.stderr.lower(),
            res.stderr[-300:])
    strict = os.path.join(d.top, "strict.exports")
    with open(strict, "w") as f:
        f.write(f"{d.exports['one']} 127.0.0.1(rw)\n/no/such/folder *(rw)\n")
    res = run(d, "--config", d.config, "--port", str(harness.free_port()), "--exports", strict, "--strict", *own)
    t.check("--strict refuses to start on one bad export", res.returncode != 0 and "strict.exports:2" in res.stderr, res.stderr[-300:])


def test_refused_mounts(t, d):
    """A line for each: who, which path, why; nothing of the path can forge another line."""
    with d.connect() as c:
        for path, shown, why in ((d.exports["two"], d.exports["two"], "Permission denied; export .* which has no line for this host"),
                                 (d.exports["one"] + "/none", d.exports["one"] + "/none", "No such file or directory"),
                                 ("/a\n<3>b\x1b[1m", "/a?<3>b?[1m", "No such file or directory")):
            t.check(f"MNT of {shown} is refused", c.mnt(path)[0] != 0)
            t.check("and the log says so", d.wait_log(f"127.0.0.1: MNT of {shown} refused: {why}".replace("?", ".").replace("[", ".")),
                    d.read_log()[-400:])


def test_options(t, d):
    for option, want in (("-h", "usage: ringnfsd"), ("--help", "-F, --foreground"), ("-V", "ringnfs "), ("--version", "ringnfs ")):
        res = run(d, option)
        t.check(f"{option} is answered", res.returncode == 0 and want in res.stdout, (res.stdout[:80], res.stderr))
    res = subprocess.run([os.path.abspath(d.binary), "--config", d.config, "--exports", "some.exports", "--print-config"], cwd=d.top,
                         capture_output=True, text=True, timeout=60)
    t.check("a path of the command line is relative to where it is given",
            f"exports_file = {os.path.realpath(d.top)}/some.exports" in res.stdout, res.stdout[:300] + res.stderr)


def test_state_dir(t, d):
    res = run(d, "--config", d.config, "--port", str(harness.free_port()))
    t.check("a second instance on one state directory is refused, and the first one named",
            res.returncode == 69 and f"another ringnfsd (process {d.process.pid})" in res.stderr, res.stderr[-300:])
    t.check("which lives on", d.alive() and can_mount(d, d.connect(), "one"))
    for mode in (0o770, 0o702):
        folder = os.path.join(d.top, f"open{mode:o}")
        os.mkdir(folder)
        os.chmod(folder, mode)
        res = run(d, "--config", d.config, "--port", str(harness.free_port()), "--state-dir", folder)
        t.check(f"a state directory of mode {mode:o} is refused", res.returncode == 69 and "others may write" in res.stderr,
                res.stderr[-300:])
        t.equal("and nothing is put into it", os.listdir(folder), [])
        res = run(d, "--config", d.config, "--state-dir", folder, "--check-config")
        t.check("which --check-config foretells", res.returncode == 78 and "others may write" in res.stderr, res.stderr)
    missing = os.path.join(d.top, "no", "such")
    res = run(d, "--config", d.config, "--port", str(harness.free_port()), "--state-dir", missing)
    t.check("a state directory whose parent is missing is an error", res.returncode == 69 and "above it does not exist" in res.stderr,
            res.stderr[-300:])
    t.check("and is not made", not os.path.exists(os.path.dirname(missing)))


def test_verdict(t, d):
    """--check-config predicts the messages of --reload, and the exports that are then in force."""
    good = f"{d.exports['one']} 127.0.0.1(rw,insecure,no_root_squash)"
    cases = (("a good table", [good], True),
             ("an unknown option", [good, f"{d.exports['two']} 127.0.0.1(rww)"], False),
             ("a path that is not there", [good, f"{d.top}/absent 127.0.0.1(rw)"], False),
             ("a file system without handles", [good, "/proc 127.0.0.1(rw)"], False),
             ("an empty table", [], True),
             ("a good table again", [good], True))
    for what, lines, right in cases:
        write_exports(d, lines)
        check = run(d, "--config", d.config, "--check-config")
        t.check(f"{what}: --check-config", (check.returncode == 0) == right, (check.returncode, check.stdout, check.stderr))
        res = run(d, "--config", d.config, "--reload")
        t.check(f"{what}: --reload says the same", (res.returncode == 0) == right, (res.returncode, res.stderr))
        t.check("and why", right or "refused" in res.stderr, res.stderr)
    with d.connect() as c:
        t.check("the last one is in force", can_mount(d, c, "one"))
    res = run(d, "--config", d.config, "--state-dir", os.path.join(d.top, "nobody"), "--reload")
    t.check("--reload without a server fails", res.returncode == 69 and "none is running" in res.stderr, res.stderr)


PROGRAMS = ("100003", "100005", "100011", "100021", "100024", "100227")


def rpcinfo():
    """{(program, version, netid, port)} of NFS and the programs beside it."""
    res = subprocess.run(["rpcinfo"], capture_output=True, text=True, timeout=30)
    rows = [line.split() for line in res.stdout.splitlines()[1:]]
    return {(row[0], row[1], row[2], port_of(row[3])) for row in rows if row and row[0] in PROGRAMS}


def port_of(uaddr):
    high, low = uaddr.split(".")[-2:]
    return int(high) * 256 + int(low)


def registrations(nfs, ports, rquota=None):
    """Expected result of rpcinfo(): nfs: versions; ports: {netid: port}; rquota: those of RQUOTA where they differ."""
    if not os.path.exists("/proc/net/if_inet6"):
        ports = {k: p for k, p in ports.items() if not k.endswith("6")}
    want = {("100003", v, n, p) for v in nfs for n, p in ports.items()}
    if "3" in nfs:
        udp = {n.replace("tcp", "udp"): p for n, p in ports.items() if n.startswith("tcp")}
        want |= {("100021", v, n, p) for v in "134" for n, p in {**ports, **udp}.items()}
        want |= {(prog, vers, n, p) for prog, vers in (("100227", "3"), ("100024", "1")) for n, p in ports.items()}
        want |= {("100227", "2", n, p) for n, p in ports.items() if "2" in nfs}
        want |= {("100024", "1", n, MONITOR_PORT) for n in ("udp", "udp6")}
        want |= {("100005", v, n, p) for v in ("123" if "2" in nfs else "3") for n, p in {**ports, **udp}.items()}
        want |= {("100011", v, n, p) for v in "12" for n, p in {**ports, **udp, **(rquota or {})}.items()}
    return want


def check_registered(t, what, d, want):
    wait_for(lambda: rpcinfo() >= want)
    t.equal(f"registered: {what}", rpcinfo(), want)
    t.equal(f"exit status: {what}", d.stop()[0], 0)
    t.equal(f"gone after the stop: {what}", rpcinfo(), set())


def test_registered(t):
    """Each program by each transport on which it answers, and nothing else."""
    settings = {"server.rpcbind": "yes", "tcp.listen": "", "nlm.statd_port": MONITOR_PORT}
    rdma = {**settings, "rdma.enabled": "yes", "rdma.port": RDMA_PORT}
    other = harness.free_port()
    with Daemon({"one": "rw,insecure"}, {**settings, "tcp.rquota_port": other}) as d:
        want = registrations("34", {"tcp": d.port, "tcp6": d.port}, rquota=dict.fromkeys(("tcp", "tcp6", "udp", "udp6"), other))
        check_registered(t, "TCP", d, want)
    if not os.path.exists(fabric.LIB):
        t.skip("registration of RDMA", "no software fabric is built")
        return
    for versions, more in (("34", {}), ("234", {"nfs2.enabled": "yes"}), ("4", {"nfs3.enabled": "no"}), ("3", {"nfs4.enabled": "no"})):
        with fabric.Fabric("sv0=127.0.0.1,::1") as f:
            with Daemon({"one": "rw,insecure"}, {**rdma, **more}, before=f.command("server"), env=f.environment()) as d:
                ports = {"tcp": d.port, "tcp6": d.port, "rdma": RDMA_PORT, "rdma6": RDMA_PORT}
                if "3" in versions:
                    answers_by_rdma(t, f)
                check_registered(t, f"RDMA, NFSv{' and v'.join(versions)}", d, registrations(versions, ports))


def binder_call(proc, netid, uaddr):
    """RPCBPROC_SET (1) or UNSET (2) of the status monitor, as this machine's root."""
    args = r.u32(100024) + r.u32(1) + r.opaque(netid) + r.opaque(uaddr) + r.opaque(b"")
    message = r.call_message(100000, 4, proc, args, cred=r.u32(0) + r.u32(0))
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect("/run/rpcbind.sock")
        s.sendall(r.u32(0x80000000 | len(message)) + message)
        reply = s.recv(4096)
    return reply[-4:] == r.u32(1)


def test_other_monitor(t):
    """An rpc.statd that answers keeps its place with rpcbind; one that does not has none."""
    settings = {"server.rpcbind": "yes", "tcp.listen": "", "nlm.statd_port": MONITOR_PORT, "server.log_level": "info"}
    for alive in (True, False):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
            t.check("rpc.statd is registered", binder_call(1, b"udp", b"0.0.0.0.%d.%d" % (port >> 8, port & 255)))
            ended = threading.Event()
            thread = threading.Thread(target=answer_pings, args=(s, ended, alive))
            thread.start()
            with Daemon({"one": "rw,insecure"}, settings) as d:
                want = ("100024", "1", "udp", port if alive else MONITOR_PORT)
                d.wait_log("registered with rpcbind")
                t.equal(f"registered, rpc.statd being {alive}", [x for x in rpcinfo() if x[0] == "100024" and (alive or x[2] == "udp")], [want])
                t.equal("the log says so", "another status monitor" in d.read_log(), alive)
                t.equal("exit status", d.stop()[0], 0)
            t.equal("still registered after the stop", want in rpcinfo(), alive)
            ended.set()
            thread.join()
            binder_call(2, b"udp", b"")


def answer_pings(s, ended, alive):
    s.settimeout(0.1)
    while not ended.is_set():
        try:
            data, peer = s.recvfrom(9000)
        except socket.timeout:
            continue
        if alive:
            s.sendto(data[:4] + r.u32(1) + r.u32(0) * 4, peer)


def test_registered_late(t):
    """An RDMA device that comes after the start is registered when it is served."""
    if not os.path.exists(fabric.LIB):
        t.skip("registration of a late RDMA device", "no software fabric is built")
        return
    settings = {"server.rpcbind": "yes", "tcp.listen": "", "rdma.enabled": "auto", "rdma.port": RDMA_PORT, "nlm.statd_port": MONITOR_PORT}
    with fabric.Fabric("sv0=127.0.0.1,::1", SOFTVERBS_LATE="1") as f:
        with Daemon({"one": "rw,insecure"}, settings, before=f.command("server"), env=f.environment()) as d:
            ports = {"tcp": d.port, "tcp6": d.port}
            want = registrations("34", ports)
            wait_for(lambda: rpcinfo() >= want)
            t.equal("registered: without a device", rpcinfo(), want)
            t.equal("a device is plugged in", f.control(d.process.pid, "plug"), "ok")
            check_registered(t, "a late device", d, registrations("34", {**ports, "rdma": RDMA_PORT, "rdma6": RDMA_PORT}))


def answers_by_rdma(t, f):
    """MOUNT, NLM, NSM, NFSACL and RQUOTA are there."""
    p = Peer(f.environment(), before=f.command("client")).connect("127.0.0.1", RDMA_PORT)
    for prog, vers in ((r.MOUNT, 3), (100021, 1), (100021, 3), (100021, 4), (100024, 1), (100227, 3), (100011, 1), (100011, 2)):
        xid = r.next_xid()
        p.send(r.u32(xid) + r.u32(1) + r.u32(1) + 4 * r.u32(0) + r.call_message(prog, vers, 0, xid=xid))
        raw = p.receive()
        t.equal(f"program {prog} version {vers} by RDMA", raw and raw[28:], r.u32(xid) + r.u32(1) + 4 * r.u32(0))
    p.close()


def showmount(option):
    res = subprocess.run(["showmount", "--no-headers", option, "127.0.0.1"], capture_output=True, text=True, timeout=60)
    return sorted(res.stdout.split()) if res.returncode == 0 else res


def test_showmount(t):
    """Who has mounted what, as the administrator of a client sees it."""
    if not shutil.which("showmount"):
        t.skip("DUMP and EXPORT", "showmount (nfs-common) is not installed")
        return
    with Daemon({"one": "rw,insecure", "two": "rw,insecure"}, {"server.rpcbind": "yes", "tcp.listen": ""}) as d:
        wait_for(lambda: ("100005", "3", "tcp", d.port) in rpcinfo())
        for name, source in (("one", "127.0.0.1"), ("one", "127.0.0.2"), ("two", "127.0.0.2")):
            with r.Conn(d.port, source=(source, 0)) as c:
                can_mount(d, c, name)
        one, two = d.exports["one"], d.exports["two"]
        t.equal("showmount -a", showmount("-a"), [f"127.0.0.1:{one}", f"127.0.0.2:{one}", f"127.0.0.2:{two}"])
        t.equal("showmount -d", showmount("-d"), [one, two])
        t.equal("showmount -e", showmount("-e"), sorted([one, "127.0.0.0/8", two, "127.0.0.0/8"]))
        with r.Conn(d.port, source=("127.0.0.2", 0)) as c:
            c.call(r.MOUNT, 3, r.UMNT, r.name(two))
        t.equal("after UMNT", showmount("-a"), [f"127.0.0.1:{one}", f"127.0.0.2:{one}"])
        with r.Conn(d.port, source=("127.0.0.3", 0)) as c:
            c.call(r.MOUNT, 3, r.UMNTALL, b"")
        t.equal("another's UMNTALL", showmount("-a"), [f"127.0.0.1:{one}", f"127.0.0.2:{one}"])
        with r.Conn(d.port, source=("127.0.0.2", 0)) as c:
            c.call(r.MOUNT, 3, r.UMNTALL, b"")
        t.equal("its own", showmount("-a"), [f"127.0.0.1:{one}"])
        t.equal("exit status", d.stop()[0], 0)


def inside_namespace():
    """In fresh mount and network namespaces: an rpcbind of our own, and the daemon that registers with it."""
    t = Count()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    os.makedirs("/run/rpcbind", exist_ok=True)
    binder = subprocess.Popen(["rpcbind", "-f", "-w"], stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: os.path.exists("/run/rpcbind.sock"))
        test_showmount(t)
        test_registered(t)
        test_registered_late(t)
        test_other_monitor(t)
    finally:
        binder.terminate()
        binder.wait(20)
    harness.result(t)


def test_rpcbind(t):
    if not shutil.which("rpcbind") or not shutil.which("rpcinfo"):
        t.skip("registration with rpcbind", "rpcbind is not installed")
        return
    if subprocess.run(["unshare", "-m", "-n", "true"], capture_output=True).returncode:
        t.skip("registration with rpcbind", "no namespaces may be made here")
        return
    res = subprocess.run(["unshare", "-m", "-n", sys.executable, "-B", __file__, INSIDE], capture_output=True, text=True,
                         timeout=120)
    t.check("registration with rpcbind", res.returncode == 0, res.stdout + res.stderr)


def test_no_rpcbind(t):
    with Daemon({"one": "rw,insecure"}, {"server.rpcbind": "yes"}) as d:
        with socket.socket(socket.AF_UNIX) as s:
            if s.connect_ex("/run/rpcbind.sock") == 0:
                t.skip("without rpcbind", "there is one here")
                return
        t.check("no rpcbind is a warning", wait_for(lambda: "warning: no rpcbind" in d.read_log()), d.read_log())
        t.check("and no failure", d.alive())


def main():
    if INSIDE in sys.argv:
        inside_namespace()
    t = Count()
    with Daemon({"one": "rw,insecure,no_root_squash", "two": "rw,insecure,no_root_squash"}) as d:
        write_exports(d, [f"{d.exports['one']} 127.0.0.1(rw,insecure,no_root_squash)"])
        t.check("the first reload", reload(d, "serving"))
        test_restart(t, d, *test_reload(t, d))
        test_counters(t, d)
        test_command_line(t, d)
        write_exports(d, [f"{d.exports['one']} 127.0.0.1(rw,insecure,no_root_squash)",
                          f"{d.exports['two']} 192.0.2.1(rw,insecure)"])
        t.check("an export for another host", reload(d, "serving"))
        test_refused_mounts(t, d)
        test_options(t, d)
        test_state_dir(t, d)
        test_verdict(t, d)
        harness.finish(t, d)
    test_versions(t)
    test_no_rpcbind(t)
    test_rpcbind(t)
    harness.result(t)


main()
