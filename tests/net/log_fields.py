#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The log: fields in the journal, of which a stand-in is there; plain text elsewhere; and clients that would fill it."""
import os
import re
import socket
import struct

import harness
import nfs4client as n4
import rpcclient as rpc
from harness import Count, Daemon

# The daemon's /run has nothing but the folder of the journal's socket.
LOST = "messages were lost"
UNSHARE = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && mkdir /run/systemd && ln -s "$0" /run/systemd/journal && exec "$@"')


def ids():
    """{name: MESSAGE_ID}"""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "../../lib/log_ids.h")) as f:
        return dict(re.findall(r'#define RN_ID_(\w+) "([0-9a-f]{32})"', f.read()))


def parse(data):
    """{field: value} of a datagram of the journal's protocol."""
    fields = {}
    while data:
        name, mark, rest = re.match(rb"([A-Z_]+)([=\n])(.*)", data, re.S).groups()
        if mark == b"=":
            value, _, data = rest.partition(b"\n")
        else:
            n = struct.unpack("<Q", rest[:8])[0]
            value, data = rest[8:8 + n], rest[9 + n:]
        fields[name.decode()] = value.decode()
    return fields


class Journaled(Daemon):
    """Whose standard error is said to be the journal's."""

    def __init__(self, settings=None, stream=None):
        super().__init__({"one": "rw,insecure,no_root_squash", "secure": "rw,secure"}, settings)
        folder = os.path.join(self.top, "journal")
        os.mkdir(folder)
        self.path = os.path.join(folder, "socket")
        self.journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.journal.bind(self.path)
        self.journal.settimeout(20)
        with open(os.path.join(self.top, "log"), "w") as f:
            st = os.fstat(f.fileno())
        self.env = {**os.environ, "JOURNAL_STREAM": stream or f"{st.st_dev}:{st.st_ino}"}
        self.before = [*UNSHARE, folder]

    def await_message(self, pattern):
        """The fields of the next message with that text."""
        while True:
            fields = parse(self.journal.recv(1 << 16))
            if re.search(pattern, fields["MESSAGE"]):
                return fields


def test_fields(t):
    known = ids()
    with Journaled() as d:
        got = d.await_message("^ready$")
        t.equal("a message with an id", {k: got.get(k) for k in ("MESSAGE_ID", "PRIORITY", "SYSLOG_IDENTIFIER", "RINGNFS_MODULE", "CLIENT")},
                {"MESSAGE_ID": known["READY"], "PRIORITY": "5", "SYSLOG_IDENTIFIER": "ringnfsd", "RINGNFS_MODULE": "daemon", "CLIENT": None})
        with d.connect() as c:
            d.root(c, "one")
            got = d.await_message("MNT of .* granted")
            t.equal("a mount", {k: got.get(k) for k in ("MESSAGE_ID", "PRIORITY", "RINGNFS_MODULE", "CLIENT", "EXPORT", "OPERATION")},
                    {"MESSAGE_ID": known["MOUNT_GRANTED"], "PRIORITY": "6", "RINGNFS_MODULE": "nfs3", "CLIENT": "127.0.0.1",
                     "EXPORT": d.exports["one"], "OPERATION": "MNT"})
            t.check("with its line", f"the line for 127.0.0.0/8 ({d.top}/exports:1)" in got["MESSAGE"], got)
            c.mnt(d.exports["secure"])
            got = d.await_message("MNT of .* refused")
            t.equal("one that is refused", {k: got.get(k) for k in ("MESSAGE_ID", "PRIORITY", "CLIENT")},
                    {"MESSAGE_ID": known["MOUNT_REFUSED"], "PRIORITY": "5", "CLIENT": "127.0.0.1"})
            t.check("with reason and line", "its port is not below 1024" in got["MESSAGE"] and f"{d.top}/exports:2" in got["MESSAGE"], got)
            v4 = n4.Client(d.port, "logged", 1)
            v4.register()
            got = d.await_message("has registered")
            t.equal("a client of NFSv4", {k: got.get(k) for k in ("MESSAGE_ID", "PRIORITY", "RINGNFS_MODULE", "CLIENT", "OPERATION")},
                    {"MESSAGE_ID": known["CLIENT_REGISTERED"], "PRIORITY": "6", "RINGNFS_MODULE": "nfs4", "CLIENT": "127.0.0.1",
                     "OPERATION": "CREATE_SESSION"})
            t.check("with its name", f'client 0x{v4.clientid:016x} ("logged") has registered' in got["MESSAGE"], got)
            v4.path(d.exports["one"])
            t.check("it may not use what is not for its port", v4.last((n4.PUTROOTFH, b""), *(n4.lookup(n) for n in d.exports["secure"].strip("/").split("/")),
                                                                       n4.getattr_op())["status"] != n4.OK)
            got = d.await_message("use of .* by NFSv4 refused")
            t.equal("and the log says so", (got["MESSAGE_ID"], got["EXPORT"], got["CLIENT"]),
                    (known["MOUNT_REFUSED"], d.exports["secure"], "127.0.0.1"))
            t.check("with the line", "its port is not below 1024" in got["MESSAGE"] and f"{d.top}/exports:2" in got["MESSAGE"], got)
            v4.close()
            c.mnt("/a\nb")
            t.check("a path is on one line", "MNT of /a?b refused" in d.await_message("MNT of /a")["MESSAGE"])
        with open(os.path.join(d.top, "exports"), "a") as f:
            f.write("/none *(nonsense)\n")
        d.process.send_signal(harness.signal.SIGHUP)
        t.equal("a reload that is refused", d.await_message("reload failed").get("MESSAGE_ID"), known["RELOAD_REFUSED"])
        t.equal("nothing is in standard error", d.read_log(), "")
        d.journal.close()
        os.unlink(d.path)
        with d.connect() as c:
            c.mnt("/gone")
        t.check("without the journal it has the text, and the level", d.wait_log(r"^<5>127.0.0.1: MNT of /gone refused"), d.read_log())
        harness.finish(t, d)


def test_full(t):
    """A journal that takes nothing holds nobody up."""
    with Journaled({"server.log_level": "debug"}) as d:
        for _ in range(100):
            with d.connect() as c:
                c.nfs(rpc.NULL)
        # The server may still be at the last calls, and tell meanwhile.
        d.journal.settimeout(0)
        got = None
        try:
            while True:
                fields = parse(d.journal.recv(1 << 16))
                got = fields if LOST in fields["MESSAGE"] else got
        except BlockingIOError:
            pass
        d.journal.settimeout(20)
        with d.connect() as c:
            c.nfs(rpc.NULL)
        got = got or d.await_message(LOST)
        t.check("their number is told", re.match(r"[1-9]\d* messages were lost, as the journal took none", got["MESSAGE"]), got)
        d.journal.close()
        harness.finish(t, d)


def test_text(t):
    """A stream that is somebody else's: a daemon that the service itself has started, for example."""
    with Journaled(stream="1:2") as d:
        t.check("plain text, with the time", d.wait_log(r"(?m)^\d{4}-\d\d-\d\dT[\d:.]+ notice: ready$"), d.read_log())
        harness.finish(t, d)


def test_flood(t):
    """One client's refusals are limited, and another's are seen all the same."""
    with Daemon({"one": "rw,insecure"}) as d:
        since = len(d.read_log())
        with d.connect(source=("127.0.0.2", 0)) as c:
            for i in range(300):
                c.mnt(f"/none{i}")
        with d.connect(source=("127.0.0.3", 0)) as c:
            c.mnt("/none")
            t.check("another client's", d.wait_log(r"127\.0\.0\.3: MNT of /none refused", since))
            for _ in range(300):
                d.root(c, "one")
        lines = d.read_log()[since:].splitlines()
        refused = [line for line in lines if re.search(r"127\.0\.0\.2: MNT of .* refused", line)]
        granted = [line for line in lines if re.search(r"127\.0\.0\.3: MNT of .* granted", line)]
        t.check("at most ten in ten seconds", 1 <= len(refused) <= 30 and len(granted) <= 30, (len(refused), len(granted)))
        harness.finish(t, d)


def main():
    t = Count()
    for test in (test_fields, test_full, test_text, test_flood):
        test(t)
    harness.result(t)


if __name__ == "__main__":
    main()
