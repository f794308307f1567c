#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsctl stats: calls, their times and bytes, by operation, export and client; since the start, and between two looks."""
import json
import subprocess
import time

import harness
import rpcclient as r
from control import BINARY, Control, ctl
from control_state import api, client_id, new_client
from harness import Count

SIZE = 100000


def rows(text):
    """The rows of a table, each as a list of its cells."""
    return [[cell for cell in line.split("  ") if cell.strip()] for line in text.splitlines()[1:] if line.strip()]


def cells(text, *first):
    """The cells of the row that begins so."""
    for row in rows(text):
        row = [cell.strip() for cell in row]
        if tuple(row[:len(first)]) == first:
            return row
    return None


def test_operations(t, d):
    began = time.monotonic_ns()
    first = api(d, "/v1/stats")[1]["time_ns"]
    with d.connect() as c:
        fh = d.root(c, "one")
        for _ in range(20):
            c.nfs(r.GETATTR, r.opaque(fh))
        c.nfs(r.LOOKUP, r.diropargs(fh, "none"))
    status, answer = api(d, "/v1/stats")
    op = next(o for o in answer["operations"] if (o["version"], o["operation"]) == ("3", "GETATTR"))
    took = time.monotonic_ns() - began
    t.check("the time of the answer goes on with the clock", 0 < answer["time_ns"] - first <= took, (first, answer["time_ns"], took))
    t.equal("calls", (status, op["calls"], op["errors"]), (200, 20, 0))
    t.check("calls one after the other took no longer than all", op["sum_ns"] <= took, (op["sum_ns"], took))
    t.check("times", 0 < op["p50_ns"] <= op["p95_ns"] <= op["p99_ns"] <= op["max_ns"] <= op["sum_ns"], op)
    t.equal("buckets have all calls", sum(n for _, n in op["buckets"]), 20)
    t.check("in the order of their ends", op["buckets"] == sorted(op["buckets"]) and op["buckets"][-1][0] >= op["p99_ns"], op["buckets"])
    op = next(o for o in answer["operations"] if (o["version"], o["operation"]) == ("3", "LOOKUP"))
    t.equal("errors", (op["calls"], op["errors"]), (1, 1))
    res = ctl("--socket", d.path, "stats")
    t.check("titles", res.returncode == 0 and res.stdout.split()[:4] == ["VERSION", "OPERATION", "CALLS", "CALLS/S"], res)
    row = cells(res.stdout, "3", "GETATTR")
    t.equal("for people", (row[2], row[4], len(row)), ("20", "0", 10))
    t.equal("most calls come first", cells(res.stdout), [cell.strip() for cell in rows(res.stdout)[0]])
    calls = [int(row[2]) for row in rows(res.stdout)]
    t.equal("and so on", calls, sorted(calls, reverse=True))
    res = ctl("--socket", d.path, "--json", "stats")
    t.check("--json is the answer", {"time_ns", "operations", "exports"} <= set(json.loads(res.stdout)), res.stdout[:200])


def test_exports(t, d):
    with d.connect() as c:
        fh = c.nfs(r.CREATE, r.create_args(d.root(c, "one"), "file"))["fh"]
        c.nfs(r.WRITE, r.write_args(fh, 0, b"x" * SIZE))
        for _ in range(2):
            c.nfs(r.READ, r.read_args(fh, 0, SIZE))
    answer = api(d, "/v1/stats")[1]
    row = next(e for e in answer["exports"] if e.get("path") == d.exports["one"])
    t.equal("bytes of an export", (row["bytes_read"], row["bytes_written"]), (2 * SIZE, SIZE))
    exports = {e["path"]: e["id"] for e in api(d, "/v1/exports")[1]["exports"]}
    t.equal("its number", row["id"], exports[d.exports["one"]])
    row = cells(ctl("--socket", d.path, "stats", "--by", "export").stdout, d.exports["one"])
    t.equal("for people", (row[1], row[3]), ("195.3 KiB", "97.6 KiB"))


def test_clients(t, d):
    c = new_client(d, "a client", 1)
    with d.connect() as conn:
        fh = conn.nfs(r.LOOKUP, r.diropargs(d.root(conn, "one"), "file"))["fh"]
        conn.nfs(r.READ, r.read_args(fh, 0, SIZE))
        res = ctl("--socket", d.path, "stats", "--by=client")
    row = cells(res.stdout, client_id(c), "127.0.0.1")
    t.check("an NFSv4 client", row and row[2] == "4.1" and int(row[3]) >= 2, res)
    row = cells(res.stdout, "-", "127.0.0.1")
    t.check("one of NFSv3", row and row[2] == "3" and int(row[3]) >= 3, res)
    c.close()


def test_watch(t, d):
    """Each table but the first is about the time since the one before."""
    p = subprocess.Popen([BINARY, "--socket", d.path, "stats", "--watch", "1"], stdout=subprocess.PIPE, text=True)
    try:
        first, then = [], []
        while (line := p.stdout.readline()).strip():
            first.append(line)
        with d.connect() as c:
            fh = d.root(c, "one")
            for _ in range(7):
                c.nfs(r.ACCESS, r.access_args(fh, 1))
        for _ in range(20):  # tables
            table = []
            while (line := p.stdout.readline()).strip():
                table.append(line)
            then.append("".join(table))
            if "ACCESS" in then[-1]:
                break
        t.check("the first has all", cells("".join(first), "3", "GETATTR")[2] == "20", first)
        row = cells(then[-1], "3", "ACCESS")
        t.check("another what was new", row and row[2] == "7" and 0.5 < float(row[3]) <= 7.5, then)
        t.check("and nothing else", "GETATTR" not in then[-1] and "WRITE" not in then[-1], then[-1])
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def test_untimed(t, d):
    """A SEQUENCE with operations behind it is counted, and its time is theirs: no time of its own is shown."""
    c = new_client(d, "timed", 1)
    for _ in range(3):
        c.path(d.exports["one"])
    op = next(o for o in api(d, "/v1/stats")[1]["operations"] if (o["version"], o["operation"]) == ("4.1", "SEQUENCE"))
    t.check("the API", op["calls"] >= 3 and op["timed"] == op["sum_ns"] == 0 and op["buckets"] == [], op)
    row = cells(ctl("--socket", d.path, "stats").stdout, "4.1", "SEQUENCE")
    t.equal("for people", (int(row[2]) >= 3, row[5:]), (True, ["-"] * 5))
    row = cells(ctl("--socket", d.path, "stats").stdout, "4.1", "LOOKUP")
    t.check("others have times", row and "-" not in row[5:], row)
    c.close()


def test_wrong_use(t, d):
    for args, word in ((("--by", "file"), "operation, export or client"), (("--watch", "0"), "1 to"), (("--watch", "x"), "1 to"),
                       (("5",), "for --watch"), (("--watch", "1", "2"), "one word too many"), (("--bye",), "option")):
        res = ctl("--socket", d.path, "stats", *args)
        t.check(f"wrong use {args}", res.returncode == 2 and word in res.stderr and not res.stdout, res)


def main():
    t = Count()
    with Control() as d:
        for test in (test_operations, test_exports, test_clients, test_untimed, test_watch, test_wrong_use):
            test(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
