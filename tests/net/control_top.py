#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsctl top in a terminal: its screen over known answers, its keys, and over a running server."""
import http.server
import os
import re
import shutil
import socketserver
import subprocess
import tempfile
import threading
import time

import harness
import nfs4client as n4
from control import BINARY, Control, ctl
from harness import Count
from terminal import Terminal

UP = 93784  # 1 d 2 h
COMPOUNDS = 4000  # a second
READ, WRITTEN = 3 << 19, 300 << 10  # bytes a second
OPERATIONS = (("4.2", "READ", 3000, 100, 0.0004), ("3", "GETATTR", 1000, 0, 0.00002),
              ("4.2", "LOOKUP", 50, 50, 0.02), ("mount", "MNT", 1, 0, 2.5))
SCREEN = """\
read N MiB/s, written N KiB/s, N calls/s (p99 T), N errors/s
connections: 3 TCP, 2 RDMA; NFSv4: 5 clients, 7 opens, 8 locks, 9 delegations
workers: 2 of 6 busy; descriptors: 77; exports: 4; memory: 3.0 MiB of 64.0 MiB

OPERATION                    CALLS/S       P50       P95       P99  ERRORS/S
v4.2 READ                          N         T         T         T         N
v3 GETATTR                         N         T         T         T         0
v4.2 LOOKUP                        N         T         T         T         N
mount MNT                          N         T         T         T         0
"""


class Answers:
    """A server of known figures, each of which has grown by as much as a second makes."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="ringnfs-top-")
        self.path = os.path.join(self.folder, "control")
        self.extra, self.status, self.raw, self.started = "", 200, None, time.time() - UP
        self.begun = time.monotonic()
        answers = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                answers.asked = self.path
                body = (answers.text() if answers.raw is None else answers.raw).encode()
                self.send_response(answers.status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = True

            def log_message(self, *_):
                pass

            def address_string(self):
                return "a client"

        self.handler = Handler
        self.start()

    def start(self):
        self.server = socketserver.ThreadingUnixStreamServer(self.path, self.handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        os.unlink(self.path)

    def text(self):
        t = time.monotonic() - self.begun
        lines = ['ringnfs_build_info{version="1.2.3"} 1', f"ringnfs_start_time_seconds {self.started}", f'ringnfs_read_bytes_total{{export="1"}} {t * READ}',
                 f'ringnfs_written_bytes_total{{export="1"}} {t * WRITTEN}']
        for version, name, rate, errors, seconds in OPERATIONS:
            labels = f'version="{version}",operation="{name}"'
            lines += [f'ringnfs_calls_total{{{labels},status="OK"}} {t * (rate - errors)}', f'ringnfs_calls_total{{{labels},status="NOENT"}} {t * errors}']
            for bound in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, float("inf")):
                le = "+Inf" if bound == float("inf") else bound
                lines.append(f'ringnfs_call_duration_seconds_bucket{{{labels},le="{le}"}} {t * rate * (seconds <= bound)}')
        for bound in ("0.001", "+Inf"):
            lines.append(f'ringnfs_compound_duration_seconds_bucket{{version="4.2",le="{bound}"}} {t * COMPOUNDS}')
        lines.append(f'ringnfs_compound_duration_seconds_count{{version="4.2"}} {t * COMPOUNDS}')
        gauges = {'connections{transport="tcp"}': 3, 'connections{transport="rdma"}': 2, 'nfs4_clients{state="active"}': 5, 'nfs4_state{kind="open"}': 7,
                  'nfs4_state{kind="lock"}': 8, 'nfs4_state{kind="delegation"}': 9, 'workers{state="busy"}': 2, 'workers{state="idle"}': 4,
                  "process_open_fds": 77, "exports": 4, "memory_used_bytes": 3 << 20, "memory_limit_bytes": 64 << 20}
        return "\n".join(lines + [f"ringnfs_{k} {v}" for k, v in gauges.items()]) + "\n" + self.extra


def top(path, *more, **kw):
    return Terminal([BINARY, "--socket", path, "top", *more], **kw)


def rows(screen):
    """The table, without titles."""
    lines = screen.split("\n")
    return [line.split() for line in lines[6:-1] if line]


def numbers_out(screen):
    """Rates and times differ from reading to reading, and their places do not."""
    out = []
    for line in screen.split("\n")[1:10]:
        if line.startswith("read "):
            line = re.sub(r"[\d.]+(?= (KiB|MiB|calls|errors)/s)", "N", re.sub(r"p99 [\d.]+ .s", "p99 T", line))
        elif len(words := line.split()) > 5 and words[-1].replace(".", "").isdigit():
            cells = [line[26 + 10 * i:36 + 10 * i] for i in range(5)]
            cells = [f"{'N' if c.replace('.', '').strip().isdigit() else 'T':>10}" for c in cells[:4]] + [f"{'0' if cells[4].strip() == '0' else 'N':>10}"]
            line = line[:26] + "".join(cells)
        out.append(line)
    return "\n".join(out) + "\n"


def near(text, wanted):
    return abs(float(text) - wanted) <= 0.2 * wanted


def rates_are_right(screen):
    """Calls are COMPOUNDs, and what is no part of one."""
    traffic, table = screen.split("\n")[1].split(), rows(screen)
    if len(traffic) < 8 or len(table) < 4:
        return False
    read, getattr_, lookup, _ = table
    return (near(traffic[1], READ / (1 << 20)) and near(traffic[4], WRITTEN / 1024) and near(traffic[6], COMPOUNDS + 1001) and
            near(read[2], 3000) and near(read[-1], 100) and near(getattr_[2], 1000) and near(lookup[-1], 50))


def test_screen(t, a):
    with top(a.path, "--interval", "1") as term:
        # The screen may be half drawn when it is looked at.
        t.check("the table comes", term.until(lambda s: numbers_out(s) == SCREEN), term.screen())
        screen = term.screen()
        t.check("the title", screen.startswith("ringnfsd 1.2.3, running for 1 d 2 h") and screen.split("\n")[0].count(":") == 2, screen)
        t.equal("the screen", numbers_out(screen), SCREEN)
        t.equal("what was asked for", a.asked, "/metrics")
        read, getattr_, lookup, _ = rows(screen)
        t.check("times, linear in their buckets", read[3:5] == ["550", "us"] and getattr_[3:5] == ["55.0", "us"] and lookup[3:5] == ["55.0", "ms"], screen)
        t.check("no errors", getattr_[-1] == "0", screen)
        # An answer that was held up makes one reading wrong, and not the next.
        t.check("rates", term.until(rates_are_right), term.screen())
        t.check("keys are named", "q quit" in screen.split("\n")[-1], screen)
        test_keys(t, term)
        test_sizes(t, term)
        term.press("q")
        t.equal("q ends it", term.ended(), 0)


def test_keys(t, term):
    for key, title, first in (("n", "OPERATION", "GETATTR"), ("e", "ERRORS/S", "READ"), ("p", "P99", "MNT"), ("5", "P50", "MNT"), ("9", "P95", "MNT"),
                              ("c", "CALLS/S", "READ")):
        term.press(key)
        t.check(f"{key} sorts by {title}", term.until(lambda s: rows(s) and rows(s)[0][1] == first and term.underlined_text() == title),
                (term.underlined_text(), term.screen()))
    term.press("h")
    t.check("h helps", term.until(lambda s: "sort by errors" in s and "quit" in s), term.screen())
    term.press("h")
    t.check("and goes back", term.until(lambda s: "sort by errors" not in s and len(rows(s)) == 4), term.screen())


def test_sizes(t, term):
    for lines, columns, shown in ((9, 60, 2), (30, 120, 4)):
        term.resize(lines, columns)
        t.check(f"{columns} times {lines}", term.until(lambda s: len(rows(s)) == shown and s.split("\n")[-1].startswith("q quit")), term.screen())
    term.resize(9, 80)
    t.check("few lines", term.until(lambda s: len(rows(s)) == 2 and rows(s)[0][1] == "READ"), term.screen())
    term.press("\x1b[B")
    t.check("down scrolls", term.until(lambda s: rows(s) and rows(s)[0][1] == "GETATTR"), term.screen())
    term.press("\x1b[A")
    t.check("up scrolls back", term.until(lambda s: rows(s) and rows(s)[0][1] == "READ"), term.screen())
    for lines, columns in ((1, 20), (3, 5), (24, 80)):
        term.resize(lines, columns)
        term.press(" ")
    t.check("tiny sizes do no harm", term.until(lambda s: len(rows(s)) == 4), term.screen())


def test_notices(t, a):
    with top(a.path, "--interval", "1") as term:
        term.until(lambda s: len(rows(s)) == 4)
        a.extra = "ringnfs_grace_active 1\n"
        term.press(" ")
        t.check("grace", term.until(lambda s: "GRACE PERIOD" in s), term.screen())
        a.extra = "ringnfs_grace_active 1\nringnfs_stuck_threads 2\n"
        t.check("stuck threads", term.until(lambda s: "2 THREADS wait for a file system" in s), term.screen())
        a.stop()
        t.check("no server", term.until(lambda s: "NO ANSWER (No such file or directory)" in s and len(rows(s)) == 4), term.screen())
        a.extra, a.status = "", 503
        a.start()
        t.check("a server that refuses", term.until(lambda s: "NO ANSWER (status 503)" in s), term.screen())
        a.status, a.raw = 200, "no figures\n\x1b[2J{{{\n"
        t.check("an answer that is none", term.until(lambda s: "NO ANSWER (Protocol error)" in s), term.screen())
        a.raw, a.started = None, a.started + 1000
        t.check("another run of the server", term.until(lambda s: "waiting for a second reading" in s and not rows(s)), term.screen())
        t.check("goes on", term.until(lambda s: "NO ANSWER" not in s and len(rows(s)) == 4), term.screen())
        a.extra = 'ringnfs_calls_total{version="\\n\x1b]0;x\x07",operation="' + 300 * "A" + '\x9b1m",status="OK"} 1e300\n'
        t.check("labels that would move the cursor", term.until(lambda s: "???]0;x?" in s.replace(" ", "") or "??]0;x?" in s), term.screen())
        a.extra = ""
        term.press("\x03")
        t.equal("Ctrl-C ends it", term.ended(), 0)


def test_refusals(t, a):
    res = ctl("--socket", a.path, "top")
    t.check("no terminal", res.returncode == 2 and "needs a terminal" in res.stderr, res)
    for words, text in ((("--interval", "0"), "from 1 to 3600"), (("--interval", "1x"), "from 1 to 3600"), (("now",), "no argument"), (("--json",), "--json")):
        res = ctl("--socket", a.path, "top", *words)
        t.check(f"top {words}", res.returncode == 2 and text in res.stderr, res)
    with top(a.path + "-none") as term:
        t.equal("no server: exit status", term.ended(), 3)
        t.check("no server: why", "does ringnfsd run" in term.screen().replace("\n", ""), term.screen())
    a.status, a.raw = 403, '{"error": "only root", "code": "forbidden"}'
    with top(a.path) as term:
        t.equal("refused: exit status", term.ended(), 1)
        t.check("refused: why", "refused: only root" in term.screen(), term.screen())
    a.status, a.raw = 200, None
    # ncurses does not free what it had begun with.
    leaks = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    with Terminal(["sh", "-c", f'TERM=none-such exec "{BINARY}" --socket "{a.path}" top'], env=leaks) as term:
        t.equal("unknown terminal: exit status", term.ended(), 2)
        t.check("unknown terminal: why", "TERM=none-such" in term.screen(), term.screen())


def test_server(t, d):
    """What clients do is there."""
    c = n4.Client(d.port, "top", 1)
    c.register()
    c.reclaim_complete()
    root = c.path(d.exports["one"])
    res, fh = c.open(root, b"file", create=True)
    with top(d.path, "--interval", "1") as term:
        def works(screen):
            c.last(n4.putfh(fh), n4.write(res["stateid"], 0, bytes(4096)))
            c.compound(n4.putfh(root), n4.lookup(b"none"))
            found = {tuple(r[:2]): r for r in rows(screen)}
            return ("v4.1", "WRITE") in found and found.get(("v4.1", "LOOKUP"), ["0"])[-1] not in ("0", "-")

        t.check("operations, and their errors", term.until(works), term.screen())
        t.check("the state", "connections: 1 TCP, 0 RDMA; NFSv4: 1 clients, 1 opens" in term.screen(), term.screen())
        t.check("bytes", "written 0 B/s" not in term.screen(), term.screen())
        term.press("q")
        t.equal("its end", term.ended(), 0)
    c.close()


def main():
    t = Count()
    if not shutil.which("tic"):
        harness.skip_all("there is no tic (package ncurses-bin)")
    a = Answers()
    try:
        test_screen(t, a)
        test_notices(t, a)
        test_refusals(t, a)
    finally:
        a.stop()
        shutil.rmtree(a.folder)
    with Control() as d:
        test_server(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
