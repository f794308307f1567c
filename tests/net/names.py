#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""A name service that does not answer: who is waited for, and who else waits then.

The daemon runs in a mount namespace of its own with a resolver that asks a name server of this test, silent until it is told
to speak, and with FIFOs instead of the databases of users and groups, which block whoever opens them until somebody writes.
"""
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

import harness
import nfs4client as n4
import rpcclient as r
from harness import Count, Daemon

NAME_SERVER = "127.0.0.53"
SOON = 3  # seconds: less than any name service here takes, and much more than a call
PATIENCE = 12  # seconds that the daemon lets a call wait for a name
GREEDY = 16  # calls of one host that may wait
SILENT = 24  # hosts that ask, each of a network of its own


class NameServer:
    """Answers nothing, or the names that it was given; what it does not know does not exist."""

    def __init__(self):
        self.names, self.speaks, self.asked = {}, False, 0
        self.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self.s.bind((NAME_SERVER, 53))
        except OSError as e:
            harness.skip_all(f"no name server can listen here: {e}")
        threading.Thread(target=self.run, daemon=True).start()

    def answer(self, query):
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        name = ".".join(labels).lower()
        data = self.names.get((name, kind))
        exists = any(n == name for n, _ in self.names)
        head = query[:2] + struct.pack(">HHHHH", 0x8180 if exists else 0x8183, 1, 1 if data else 0, 0, 0)
        more = b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(data)) + data if data else b""
        return head + query[12:at + 5] + more

    def run(self):
        while True:
            query, who = self.s.recvfrom(512)
            self.asked += 1
            if self.speaks:
                self.s.sendto(self.answer(query), who)

    def add(self, address, name):
        wire = b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0"
        self.names[".".join(reversed(address.split("."))) + ".in-addr.arpa", 12] = wire
        self.names[name, 1] = socket.inet_aton(address)


def daemon(lines, settings=None, databases=False):
    """A daemon with that name server, over the exports a and b with these lines of clients."""
    d = Daemon({n: "rw" for n in lines}, settings)
    with open(d.top + "/exports", "w") as f:
        f.writelines(f"{d.exports[n]} {clients}\n" for n, clients in lines.items())
    files = {"resolv.conf": f"nameserver {NAME_SERVER}\noptions timeout:3 attempts:2\n",
             "nsswitch.conf": "hosts: files dns\npasswd: files\ngroup: files\nnetgroup: files\n",
             "hosts": "127.0.0.1 localhost\n"}
    binds = []
    for n, text in files.items():
        with open(f"{d.top}/{n}", "w") as f:
            f.write(text)
        binds.append(f"mount --bind {d.top}/{n} /etc/{n}")
    if databases:
        os.mkfifo(d.top + "/passwd")
        binds.append(f"mount --bind {d.top}/passwd /etc/passwd")
    d.before = ["unshare", "--mount", "sh", "-c", " && ".join([*binds, 'exec "$0" "$@"'])]
    return d


def mnt_message(d, name, xid=None):
    return r.call_message(r.MOUNT, 3, 1, r.opaque(d.exports[name].encode()), xid=xid)


def mnt_status(data):
    return r.reply_body(data).u32()


def timed(what):
    start = time.monotonic()
    what()
    return time.monotonic() - start


def answers_within(conn, seconds):
    return bool(select.select([conn.s], [], [], seconds)[0])


def mnt_when_known(d, conn, sent):
    """The status of the MNT that waits since then. On a busy machine it may have waited too long: then it is sent again."""
    while True:
        status = mnt_status(conn.recv())
        if status != 13 or not PATIENCE <= time.monotonic() - sent < 5 * PATIENCE:
            return status
        conn.send(mnt_message(d, "a"))


def ended_or_refused(conn):
    """Has the connection been closed, or its MNT been refused?"""
    try:
        return mnt_status(conn.recv()) == 13
    except (OSError, r.Closed):
        return True


def greedy_host(t, d, address):
    """One call of each connection of an unknown host waits; connections beyond a few are closed at once."""
    conns = []
    for _ in range(40):
        try:
            conns.append(d.connect(source=(address, 0)))
            conns[-1].send(mnt_message(d, "a"))
        except OSError:
            pass
    end = time.monotonic() + PATIENCE / 2
    waiting = conns
    while len(waiting) > GREEDY and time.monotonic() < end:
        waiting = [c for c in waiting if not (answers_within(c, 0.01) and ended_or_refused(c))]
    t.check("a host that is not known has no more calls waiting than it may", len(waiting) <= GREEDY, f"{len(waiting)}")
    for c in conns:
        c.close()


def others_are_served(t, d, fh, what):
    def work():
        with d.connect(source=("127.0.0.1", 0)) as c:
            t.equal(f"MNT {what}", c.mnt(d.exports["b"])[0], 0)
            for _ in range(50):
                t.equal(f"GETATTR {what}", c.nfs(r.GETATTR, r.getattr_args(fh))["status"], 0)

    took = timed(work)
    t.check(f"calls of others {what} are served in the usual time", took < SOON, f"{took:.1f} s")


def test_silent_hosts(t, ns):
    """Hosts whose reverse zone is silent ask MNT: they wait, and nobody else does."""
    # A name that is only a host's of the narrow line's, and everybody.
    with daemon({"a": "*.narrow.test(ro,insecure) *(rw,insecure,no_root_squash)", "b": "127.0.0.1(rw,insecure)"}) as d:
        with d.connect() as c:
            fh = d.root(c, "b")
        silent = [d.connect(source=(f"127.0.{10 + i}.1", 0)) for i in range(SILENT)]
        sent = time.monotonic()
        for c in silent:
            c.send(mnt_message(d, "a"))
        time.sleep(0.3)
        others_are_served(t, d, fh, "beside silent hosts")
        t.check("hosts that are not known yet are told nothing", not any(answers_within(c, 0) for c in silent))
        # The ones that wait are not forgotten for that.
        greedy_host(t, d, "127.0.10.1")
        others_are_served(t, d, fh, "beside a greedy one")
        ns.add("127.0.10.1", "one.narrow.test")
        ns.speaks = True
        for i, c in enumerate(silent):
            c.s.settimeout(60)
            t.equal(f"MNT of host {i} when the service speaks", mnt_when_known(d, c, sent), 0)
        test_narrow_line(t, d, silent[0], silent[1])
        for c in silent:
            c.close()
        status, log = d.stop()
        t.equal("exit status", status, 0)
        t.check("the log tells of the slow service", "a name service took" in log, log)


def test_narrow_line(t, d, narrow, wide):
    for conn, want in ((narrow, r.ROFS), (wide, 0)):
        root = d.root(conn, "a")
        made = conn.nfs(r.CREATE, r.create_args(root, b"f", attrs=r.sattr(mode=0o644)))
        t.equal("CREATE by a host of the " + ("narrow" if want else "wide") + " line", made["status"], want)


def test_silence_widens_nothing(t, ns):
    """While the service is silent, a host that may be one of the narrow line's cannot write."""
    ns.speaks = False
    with daemon({"a": "*.narrow.test(ro,insecure) 127.0.0.1(rw,insecure,no_root_squash) *(rw,insecure,no_root_squash)",
                 "b": "127.0.0.1(rw,insecure)"}) as d:
        with d.connect() as known:
            root = d.root(known, "a")
        with d.connect(source=("127.0.10.1", 0)) as c:
            start = time.monotonic()
            made = c.nfs(r.CREATE, r.create_args(root, b"g", attrs=r.sattr(mode=0o644)))
            took = time.monotonic() - start
            t.equal("CREATE by a host that is not known", made["status"], r.JUKEBOX)
            t.check("after a while", SOON < took < 40, f"{took:.1f} s")
        t.check("nothing was made", not os.path.exists(d.exports["a"] + "/g"))
        took = timed(lambda: t.equal("exit status while the service is silent", d.stop()[0], 0))
        t.check("it ends soon", took < 20, f"{took:.1f} s")


def first_calls(d, minor, address):
    """What a client that takes no NFS4ERR_DELAY sends first for a mount: its statuses, and how long the first took."""
    class At(n4.Client):
        source = (address, 0)

    c, start = At(d.port, f"first {address}", minor), time.monotonic()
    statuses = [c.bare((n4.PUTROOTFH, b""), (n4.GETFH, b""))[-1]["status"]] if minor == 0 else []
    took = time.monotonic() - start
    if not any(statuses):
        statuses.append(c.register()["status"])
    if minor > 0:
        took = time.monotonic() - start
        statuses += [c.reclaim_complete(), c.last((n4.PUTROOTFH, b""), (n4.GETFH, b""))["status"]]
    c.close()
    return statuses, took


def test_first_mount(t, ns):
    """A host of which nothing is known mounts by NFSv4: its first calls wait for the name service, as MNT does."""
    ns.speaks = False
    lines = {"a": "*.narrow.test(ro,insecure,fsid=0) *(rw,insecure,fsid=0)", "b": "*.narrow.test(ro,insecure)"}
    with daemon(lines) as d:
        for minor, address in ((0, "127.0.20.1"), (1, "127.0.21.1"), (2, "127.0.22.1")):
            ns.speaks = False
            ns.add(address, f"host{minor}.narrow.test")
            threading.Timer(1, setattr, (ns, "speaks", True)).start()
            statuses, took = first_calls(d, minor, address)
            t.equal(f"the first calls by 4.{minor}", set(statuses), {0})
            t.check(f"have waited, 4.{minor}", took > 0.5, f"{took:.1f} s")
        ns.speaks = False
        statuses, took = first_calls(d, 0, "127.0.23.1")
        t.equal("while the service stays silent: the client comes again", statuses[0], n4.DELAY)
        t.check("after a while, once", SOON < took < 40, f"{took:.1f} s")


def test_own_root(t, ns):
    """PUTROOTFH of an admitted host whose line of the root depends on its name."""
    ns.speaks = False
    with daemon({"a": "*.narrow.test(ro,insecure,fsid=0)", "b": "127.0.0.0/8(rw,insecure)"}) as d:
        ns.add("127.0.24.1", "root.narrow.test")
        threading.Timer(1, setattr, (ns, "speaks", True)).start()
        statuses, _ = first_calls(d, 1, "127.0.24.1")
        t.equal("all at once", set(statuses), {0})


def test_boundary(t, ns):
    """Hosts that an export is for, and whose line of one within it depends on their names, enter that at their first LOOKUP, by its filehandle
    and by the parent: each waits for the service, which answers at once."""
    ns.speaks = True
    hosts = [f"127.0.25.{i + 1}" for i in range(12)]
    with daemon({"a": "127.0.0.0/8(rw,insecure)"}) as d:
        inner = d.exports["a"] + "/inner"
        os.makedirs(inner + "/below")
        d.write_exports([f"{d.exports['a']} 127.0.0.0/8(rw,insecure)", f"{inner} *.narrow.test(ro,insecure)"])
        d.reload()
        entered = []
        for i, address in enumerate(hosts):
            ns.add(address, f"inner{i}.narrow.test")

            class At(n4.Client):
                source = (address, 0)

            c = At(d.port, address)
            c.register()
            c.reclaim_complete()
            a = c.path(d.exports["a"])
            entered.append(c.last(n4.putfh(a), n4.lookup("inner"))["status"])
            c.close()
        t.check("LOOKUPs that entered at once", entered.count(0) > len(hosts) / 2, entered)
        t.check("others are told to come again", set(entered) <= {0, n4.DELAY}, entered)


def test_groups(t):
    """The database of users blocks: who is not known yet waits, who needs none does not."""
    with daemon({"a": "*(rw,insecure,all_squash)", "b": "127.0.0.0/8(rw,insecure,no_root_squash)"},
                {"nfs3.manage_gids": "yes"}, databases=True) as d:
        with d.connect() as c, d.connect(source=("127.0.9.1", 0)) as other:
            a, b = d.root(c, "a"), d.root(c, "b")
            for uid in range(2000, 2012):
                c.send(r.call_message(r.NFS, 3, r.GETATTR, r.getattr_args(b), cred=r.auth_sys(uid=uid)))
            time.sleep(0.3)
            took = timed(lambda: [other.nfs(r.GETATTR, r.getattr_args(a)) for _ in range(50)])
            t.check("calls that need no groups are served in the usual time", took < SOON, f"{took:.1f} s")
            t.check("users that are not known yet wait", not answers_within(c, 0))
            subprocess.run(["nsenter", "-t", str(d.process.pid), "-m", "umount", "-l", "/etc/passwd"], check=True)
            # Readers that wait for the FIFO go on when it is opened for writing, and find no database in it.
            feed_until(d.top + "/passwd", lambda: answers_within(c, 0.05))
            c.s.settimeout(60)
            for _ in range(12):
                t.equal("GETATTR when the database answers", r.reply_body(c.recv()).u32(), 0)
        t.equal("exit status", d.stop()[0], 0)


def feed_until(path, done, seconds=30):
    """Answers each reader of the FIFO with an empty file, also some time after it is done."""
    end = time.monotonic() + seconds
    stop = threading.Event()

    def feed():
        while not stop.is_set():
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                pass
            time.sleep(0.01)

    threading.Thread(target=feed, daemon=True).start()
    while not done() and time.monotonic() < end:
        pass
    threading.Timer(20, stop.set).start()


def main():
    if os.geteuid() != 0:
        harness.skip_all("ports and namespaces need root")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        harness.skip_all("no mount namespaces here")
    t, ns = Count(), NameServer()
    test_silent_hosts(t, ns)
    test_first_mount(t, ns)
    test_own_root(t, ns)
    test_boundary(t, ns)
    test_silence_widens_nothing(t, ns)
    test_groups(t)
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
