#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The page at / of the metrics address, in a headless Chromium: its figures, its policy, and a server that is away.

RINGNFS_SHOTS=FOLDER keeps pictures of it.
"""
import http.client
import http.server
import json
import os
import re
import threading
import time

import devtools
import harness
import nfs4client as n4
from harness import Count, Daemon

PHONE = 360
BLOCK = 64 << 10
TIME = r"[\d.]+ (µs|ms|s)$|< 1 µs"
HOSTILE = '<img src=x onerror="document.title=1">'


class Watched(Daemon):
    def __init__(self):
        self.web = harness.free_port()
        super().__init__({"one": "rw,insecure,no_root_squash", "two": "rw,insecure"}, {"metrics.listen": f"127.0.0.1:{self.web}"})
        self.url = f"http://127.0.0.1:{self.web}/"


class Work(threading.Thread):
    """A client that writes, reads and looks for a file that is not there, until it is told to stop."""

    def __init__(self, d):
        super().__init__()
        self.client = n4.Client(d.port, "page", 1)
        self.client.register()
        self.client.reclaim_complete()
        self.root = self.client.path(d.exports["one"])
        self.res, self.fh = self.client.open(self.root, b"file", create=True)
        self.written = self.read = 0
        self.ends = threading.Event()

    def run(self):
        c, state = self.client, self.res["stateid"]
        while not self.ends.is_set():
            for i in range(8):
                c.last(n4.putfh(self.fh), n4.write(state, i * BLOCK, bytes(BLOCK), stable=0))
                self.written += BLOCK
            for i in range(20):
                res = c.last(n4.putfh(self.fh), n4.read(state, i % 8 * BLOCK, BLOCK))
                self.read += len(res["data"])
            c.compound(n4.putfh(self.root), n4.lookup(b"none"))
            time.sleep(0.02)

    def stop(self):
        self.ends.set()
        self.join()


def get(port, path="/", method="GET"):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request(method, path)
    r = c.getresponse()
    body = r.read()
    c.close()
    return r.status, r.headers, body


def tile(title):
    return f"""[...document.querySelectorAll('#tiles > div')].filter(d => d.querySelector('dt').textContent === {json.dumps(title)})
        .map(d => d.querySelector('.figure').textContent)[0] || ''"""


def rows(table):
    return f"[...document.querySelectorAll('#{table} tbody tr')].map(r => [...r.children].map(c => c.textContent))"


def listed(name):
    """The value behind a name in the lists of the cards."""
    return f"""[...document.querySelectorAll('.list > div')].filter(d => d.children[0].textContent === {json.dumps(name)})
        .map(d => d.children[1].textContent)[0] || ''"""


def shot(p, name):
    if folder := os.environ.get("RINGNFS_SHOTS"):
        p.shot(os.path.join(folder, name + ".png"))


def test_headers(t, d):
    status, headers, body = get(d.web)
    t.equal("status", status, 200)
    t.equal("type", headers["Content-Type"], "text/html; charset=utf-8")
    policy = headers["Content-Security-Policy"]
    for part in ("default-src 'none'", "connect-src 'self'", "script-src 'sha256-", "style-src 'sha256-", "frame-ancestors 'none'", "base-uri 'none'",
                 "form-action 'none'", "require-trusted-types-for 'script'"):
        t.check(f"the policy has {part}", part in policy, policy)
    t.check("and nothing that weakens it", "unsafe" not in policy and "*" not in policy, policy)
    t.equal("no guessing of types", headers["X-Content-Type-Options"], "nosniff")
    t.equal("no referrer", headers["Referrer-Policy"], "no-referrer")
    t.check("no cookie", "Set-Cookie" not in headers)
    urls = set(re.findall(rb"https?://[^'\" <]+", body)) - {b"http://www.w3.org/2000/svg"}
    t.check("no resource from elsewhere", not urls and not re.search(rb"\bsrc=|@import|url\(", body), urls)
    t.check("no text becomes markup", not re.search(rb"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", body))
    t.check("POST", get(d.web, method="POST")[0] in (403, 405))
    t.equal("a page that is not there", get(d.web, "/page.html")[0], 404)


def test_figures(t, d, p, work):
    p.open(d.url)
    t.check("what was written", re.match(r"[1-9][\d.,]* .iB/s$", p.until(f"/^[1-9].*iB/.test({tile('Written')}) && {tile('Written')}") or ""), p.value(tile("Written")))
    for title, pattern in (("Read", r"[1-9][\d.,]* .iB/s$"), ("Calls", r"[1-9][\d,]* /s$"), ("Latency, p99", r"[\d.]+ (µs|ms|s)$"), ("Connections", "1$"),
                           ("NFSv4 clients", "1$")):
        t.check(title, re.match(pattern, p.value(tile(title))), p.value(tile(title)))
    table = {r[0]: r[1:] for r in p.value(rows("operations"))}
    # The time of a SEQUENCE is in that of the next operation.
    for name, time_of in (("v4.1WRITE", TIME), ("v4.1READ", TIME), ("v4.1LOOKUP", TIME), ("v4.1SEQUENCE", "–$")):
        row = table.get(name, ["0"] * 5)
        t.check(f"{name}: rate and times", float(row[0].replace(",", "")) > 0 and all(re.match(time_of, x) for x in row[1:4]), table)
    t.check("errors of LOOKUP alone", table["v4.1LOOKUP"][4] not in ("0", "–") and table["v4.1READ"][4] == "0", table)
    t.check("COMPOUND is no operation", not any("COMPOUND" in name for name in table), table)
    t.equal("opens", p.value(listed("Opens")), "1")
    t.equal("grace", p.value(listed("Grace period")), "over")
    t.equal("stuck threads", p.value(listed("Stuck threads")), "none")
    t.equal("exports", p.value(listed("Exports served")), "2")
    t.check("memory", re.match(r"[\d.]+ .iB of 256 MiB$", p.value(listed("In use"))), p.value(listed("In use")))
    t.check("descriptors", re.match(r"[1-9]", p.value(listed("Descriptors"))), p.value(listed("Descriptors")))
    t.check("no RDMA", p.value("[...document.querySelectorAll('.note')].some(n => n.textContent.startsWith('RDMA is off'))"))
    t.check("the version", re.match(r"version [\d.]+ · running for \d+ (s|min)", p.value("document.getElementById('about').textContent")),
            p.value("document.getElementById('about').textContent"))
    t.equal("the link", p.value("document.getElementById('link').textContent.trim()"), "Live")
    t.check("lines in the plots", p.until("[...document.querySelectorAll('.plot')].every(e => e.querySelector('.series[d*=L]'))"))
    work.stop()
    totals = f"{rows('exports')}.map(r => r.slice(3)).filter(r => r[0] !== '0 B')[0] || []"
    want = [size(work.read), size(work.written)]
    p.until(f"JSON.stringify({totals}) === {json.dumps(json.dumps(want, separators=(',', ':')))}", 10)
    t.equal("all that was read and written", p.value(totals), want)


def size(n):
    units = ["B", "KiB", "MiB", "GiB"]
    while n >= 1000 and len(units) > 1:
        n /= 1024
        units.pop(0)
    return (f"{n:.0f}" if n >= 100 else f"{n:.1f}" if n >= 10 else f"{n:.2f}") + " " + units[0]


def test_controls(t, p):
    sort = "document.querySelector('#operations th[aria-sort]').textContent"
    t.equal("sorted by calls", p.value(sort), "Calls/s")
    p.value("[...document.querySelectorAll('#operations button')].find(b => b.textContent === 'Operation').click()")
    names = p.value("[...document.querySelectorAll('#operations tbody th')].map(h => h.lastChild.textContent)")
    t.check("sorted by name", p.value(sort) == "Operation" and names == sorted(names) and len(names) > 3, names)
    p.value("document.querySelector('.plot').focus()")
    p.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft", code="ArrowLeft")
    label = "document.querySelector('.plot').getAttribute('aria-label')"
    t.check("a key reads a plot", re.match(r"Throughput at \d\d:\d\d:\d\d: Read .*B/s, Written .*B/s\.", p.value(label)), p.value(label))
    t.check("and shows where", p.value("!!document.querySelector('.plot .cursor')"))
    p.call("Input.dispatchKeyEvent", type="keyDown", key="Escape", code="Escape")
    t.check("until it is told to stop", p.value("!document.querySelector('.plot .cursor')"))
    p.value("document.querySelectorAll('#range button')[1].click()")
    t.equal("a range is chosen", p.value("document.querySelector('#range [aria-pressed=true]').textContent"), "15 min")
    nodes = p.call("Accessibility.getFullAXTree")["nodes"]
    named = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
    nameless = [role for role, name in named if role in ("button", "image", "img", "link", "meter", "table", "region", "group", "columnheader") and not name]
    t.check("everything has a name", not nameless and ("button", "15 min") in named, nameless)
    p.value("document.querySelectorAll('#range button')[0].click()")


def test_looks(t, p):
    back = "getComputedStyle(document.body).backgroundColor"
    p.screen(1360, 1100)
    light = p.value(back)
    p.until("document.querySelector('.plot svg').viewBox.baseVal.width > 500", 5)
    shot(p, "light")
    p.screen(1360, 1100, dark=True)
    t.check("dark, if the reader's system is", p.value(back) != light, light)
    shot(p, "dark")
    for width in (PHONE, 800):
        p.screen(width, 800, phone=width == PHONE)
        t.check(f"{width} pixels are enough", p.until(f"document.documentElement.scrollWidth <= {width}", 5), p.value("document.documentElement.scrollWidth"))
        t.check("plots fit", p.until(f"[...document.querySelectorAll('.plot svg')].every(s => s.viewBox.baseVal.width < {width})", 5))
        if width == PHONE:
            t.check("no column is cut", p.until("[...document.querySelectorAll('.scroll')].every(s => s.scrollWidth <= s.clientWidth)", 5),
                    p.value("[...document.querySelectorAll('.scroll')].map(s => [s.scrollWidth, s.clientWidth])"))
            shot(p, "phone")
    p.screen(1360, 1100)


def test_away(t, d, p):
    t.equal("no complaint of the browser", p.complaints, [])
    d.process.kill()
    d.process.wait()
    notice = "document.querySelector('[role=alert]').textContent"
    t.check("it says that the server is away", p.until(f"/cannot be reached \\(no connection\\).*figures are those of \\d\\d:/.test({notice})"), p.value(notice))
    t.equal("the link", p.value("document.getElementById('link').textContent.trim()"), "Not reachable")
    t.check("and the title", "not reachable" in p.value("document.title"))
    t.check("figures stay", p.value(rows("operations")) and p.value("document.body.classList.contains('stale')"))
    shot(p, "away")
    d.start()
    t.check("it is there again, in its grace period", p.until(f"/^Grace period/.test({notice})"), p.value(notice))
    t.equal("the link is live", p.value("document.getElementById('link').textContent.trim()"), "Live")
    p.complaints.clear()  # of the refused connections


class Impostor(threading.Thread):
    """The server's page, over figures of our own."""

    def __init__(self, d):
        super().__init__()
        status, headers, body = get(d.web)
        page = (status, {k: v for k, v in headers.items() if k not in ("Content-Length", "Connection", "Date")}, body)
        self.port, self.answer = harness.free_port(), (200, b"")
        impostor = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                code, more, text = page if self.path == "/" else (impostor.answer[0], {"Content-Type": "text/plain"}, impostor.answer[1])
                self.send_response(code)
                for name, value in more.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)

    def run(self):
        self.server.serve_forever(0.05)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.join()


def hostile_text():
    text = HOSTILE.replace("\\", "\\\\").replace('"', '\\"')
    lines = [f'{name}{{{label}="{text}"}} 7' for name, label in (
        ("ringnfs_read_bytes_total", "export"), ("ringnfs_build_info", "version"), ("ringnfs_nfs4_state", "kind"), ("ringnfs_cache_entries", "cache"),
        ("ringnfs_workers", "state"), ("ringnfs_connections", "transport"), ("ringnfs_memory_bytes", "account"), ("ringnfs_rdma_chunks_total", "kind"))]
    lines.append(f'ringnfs_cluster_grace_waits{{member="{text}",reason="{text}"}} 1')
    lines.append(f'ringnfs_rdma_errors_total{{error="{text}",reason="{text}"}} 7')
    lines.append(f'ringnfs_calls_total{{version="3",operation="{text}",status="{text}"}} {int(time.monotonic() * 1000)}')
    lines += ["ringnfs_memory_limit_bytes 1e999", "ringnfs_process_open_fds -5", "ringnfs_exports NaN", "ringnfs_lease_seconds nonsense", "{}", '{x="', "\x1b[2J"]
    lines += [f'ringnfs_written_bytes_total{{export="{n}"}} {n}' for n in range(500)]
    return "\n".join(lines).encode()


def figures(more=()):
    """A server with calls of long names; more: metrics."""
    now = int(time.monotonic() * 1000)
    lines = [f'ringnfs_calls_total{{version="4.2",operation="{name}",status="{status}"}} {now * n}'
             for name in ("SECINFO_NO_NAME", "BACKCHANNEL_CTL", "GET_DIR_DELEGATION") for status, n in (("OK", 1000), ("DELAY", 100))]
    return "\n".join([*lines, "ringnfs_memory_used_bytes 3145728", "ringnfs_memory_limit_bytes 9e9", 'ringnfs_memory_bytes{account="payload"} 1048576',
                      'ringnfs_memory_bytes{account="other"} 2097152', 'ringnfs_memory_bytes{account="replies"} 4194304', *more]).encode()


def test_troubles(t, d, p):
    """What an administrator has to see at once, and on a phone."""
    notice = "document.querySelector('[role=alert]').textContent"
    imp = Impostor(d)
    imp.answer = (200, figures())
    imp.start()
    try:
        p.open(f"http://127.0.0.1:{imp.port}/")
        p.screen(PHONE, 800, phone=True)
        end = time.monotonic() + 20
        while not p.value(f"{rows('operations')}.length > 2") and time.monotonic() < end:
            imp.answer = (200, figures())
            time.sleep(0.2)
        wide = "[...document.querySelectorAll('.scroll')].filter(s => s.scrollWidth > s.clientWidth).map(s => [s.scrollWidth, s.clientWidth])"
        t.check("columns of long names are whole on a phone", p.until(f"{rows('operations')}.length === 3 && !{wide}.length"), p.value(wide))
        shot(p, "phone-long")
        p.screen(1360, 1100)
        t.equal("no trouble, no notice", p.value(notice), "")
        t.equal("memory, and what is beside it", [p.value(listed(n)) for n in ("In use", "Payload", "Other", "Beside it, kept replies")],
                ["3.00 MiB of 8.38 GiB", "1.00 MiB", "2.00 MiB", "4.00 MiB"])
        for metric, pattern in (('ringnfs_exports_not_served{reason="failed"} 2', "Exports are not served: 2 whose path cannot be opened"),
                                ("ringnfs_exports_reload_refused 1", "The last reload of the exports was refused"),
                                ("ringnfs_client_records_failing 1", "Records of clients cannot be written"),
                                ('ringnfs_cluster_grace_waits{member="b",reason="start"} 1',
                                 "Grace period of the cluster: new locks wait until member b, which does not run, is started or removed."),
                                ("ringnfs_stuck_threads 1", "1 thread waits for a file system that does not answer")):
            imp.answer = (200, figures([metric]))
            t.check(metric, p.until(f"{notice}.startsWith({json.dumps(pattern)})"), p.value(notice))
        imp.answer = (200, figures(['ringnfs_exports_not_served{reason="waiting"} 2']))
        t.check("one that waits for its mount is no trouble", p.until(f"{notice} === ''"), p.value(notice))
        t.equal("no complaint of the browser", p.complaints, [])
    finally:
        imp.stop()


def test_hostile(t, d, p):
    imp = Impostor(d)
    imp.answer = (200, hostile_text())
    imp.start()
    try:
        p.open(f"http://127.0.0.1:{imp.port}/")
        p.until("document.getElementById('about').textContent.includes('img')")
        imp.answer = (200, hostile_text())
        t.check("labels are text", p.until(f"{rows('operations')}.some(r => r[0].includes({json.dumps(HOSTILE)}))"), p.value(rows("operations")))
        t.check("in notices, too", p.until(f"document.querySelector('[role=alert]').textContent.includes({json.dumps('for member ' + HOSTILE)})"))
        t.check("and nothing else", p.value("document.images.length === 0 && document.title !== '1'"))
        t.equal("the rest of many rows is counted", p.value(f"{rows('exports')}.length"), 61)
        t.equal("no complaint of the browser", p.complaints, [])
        notice = "document.querySelector('[role=alert]').textContent"
        for answer, pattern in (((503, b"busy"), "status 503"), ((200, b""), "no figures"), ((200, b"<html>"), "no figures")):
            imp.answer = answer
            t.check(f"{answer}", p.until(f"/cannot be reached \\(.*{pattern}\\)/.test({notice})"), p.value(notice))
    finally:
        imp.stop()


def main():
    t = Count()
    if not devtools.browser():
        harness.skip_all("there is no Chromium (package chromium-headless-shell)")
    with Watched() as d, devtools.Page() as p:
        test_headers(t, d)
        work = Work(d)
        work.start()
        try:
            test_figures(t, d, p, work)
        finally:
            work.stop()
        test_controls(t, p)
        test_looks(t, p)
        test_away(t, d, p)
        test_troubles(t, d, p)
        test_hostile(t, d, p)
        work.client.close()
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
