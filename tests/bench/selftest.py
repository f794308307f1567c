#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The benchmarks themselves: nfsload does each job with each version, leaves nothing open, and notices wrong answers; savejob and vmbench do
what they say; rows, tables and plots say what was measured. No speed is judged."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import types
import xml.dom.minidom

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "net"))

import guest
import harness
import pairs
import plot
import results
import servers

LOAD = os.path.join(os.environ.get("BUILDDIR", "."), "tests/bench/nfsload")
SAVEJOB = os.path.join(os.environ.get("BUILDDIR", "."), "tests/bench/savejob")
JOBS = ("null", "getattr", "lookup", "access", "read", "write", "create", "readdir")
VERSIONS = ("3", "4.1", "4.2")


def load(d, job, *options):
    """(exit status, numbers of the line, what it complains of)"""
    done = subprocess.run([LOAD, "--port", str(d.port), "--count", "300", "--warmup", "0.05", "--server-pid", str(d.process.pid),
                           *options, job, d.exports["e"]], capture_output=True, text=True)
    return done.returncode, pairs.parse(done.stdout), done.stderr


def each_job(count, d):
    for vers in VERSIONS:
        for job in JOBS:
            status, got, wrong = load(d, job, "--vers", vers, "--conns", "3", "--calls", "70")
            count.check(f"{job} by NFSv{vers}", status == 0 and got.get("n", 0) >= 300, wrong)
    left = [n for n in os.listdir(d.exports["e"]) if n.startswith("new.")]
    count.equal("files that create has left", left, [])
    status, got, wrong = load(d, "getattr", "--conns", "40", "--in-flight", "8")
    count.check("connections take turns", status == 0 and got["in_flight"] == 8, wrong)
    status, got, wrong = load(d, "read", "--size", "1048576", "--uid", "1000", "--gid", "1000")
    count.check("READ of 1 MiB as a user", status == 0 and got["size"] == 1 << 20, wrong)


def wrong_answers(count, d):
    """A file that changes under a reader, and a folder that has other entries."""
    path = os.path.join(d.exports["e"], "data.0")
    for vers in VERSIONS[::2]:
        process = subprocess.Popen([LOAD, "--port", str(d.port), "--vers", vers, "--warmup", "300", "read", d.exports["e"]],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # The generator fills the file first, so the wrong byte is written until it is seen.
        while process.poll() is None:
            with open(path, "r+b") as f:
                f.seek(5000)
                f.write(b"wrong")
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                pass
        wrong = process.communicate()[1]
        count.check(f"NFSv{vers}: a wrong byte is noticed", process.returncode == 1 and "other data" in wrong, wrong)
        status, _, wrong = load(d, "readdir", "--vers", vers, "--entries", "3")
        count.check(f"NFSv{vers}: missing entries are noticed", status == 1 and "number of entries" in wrong, wrong)


def rows(count):
    row = results.row_of_pairs("p", "t", "calls/s", "higher", "other", [(8, 2, False), (9, 3, False), (2, 1, False)], ">= 4")
    count.equal("median and range of the ratios", (row.ratio, row.low, row.high), (3, 2, 4))
    count.equal("a goal is missed", row.met(), False)
    loaded = results.row_of_pairs("p", "l", "CPU us", "lower", "other", [(1, 4, True), (1, 4, False), (1, 5, False)], "<= 0.3")
    count.equal("a goal is reached", loaded.met(), True)
    lines = results.table([row, loaded]).splitlines()
    count.check("the table says that a goal was missed", "missed" in lines[2], lines[2])
    count.check("a loaded row has no verdict", "loaded 1/3" in lines[3] and "reached" not in lines[3], lines[3])
    with tempfile.NamedTemporaryFile(suffix=".csv") as f:
        results.write(f.name, [row, loaded])
        count.equal("rows come back from CSV", results.read(f.name), [row, loaded])
    none = results.row_of_pairs("p", "n", "calls", "lower", "other", [(0, 4, False)])
    text = plot.svg("title <1>", "here & now", [row, loaded, none])
    count.equal("points in the plot", len(xml.dom.minidom.parseString(text).getElementsByTagName("circle")), 3)


def retries(count):
    seen = iter([90, 2, 50, 70, 60])
    measure = lambda: {"steal": 0, "others": next(seen)}
    count.equal("a measurement on a loaded host is made again", pairs.quiet(measure), ({"steal": 0, "others": 2}, False))
    count.equal("after three tries the quietest counts, with a mark", pairs.quiet(measure), ({"steal": 0, "others": 50}, True))
    order = []
    pairs.alternate(lambda: order.append("a") or {"steal": 0, "others": 0}, lambda: order.append("b") or {"steal": 9, "others": 0},
                    2, tries=1)
    count.equal("each is first every other time", order, ["a", "b", "b", "a"])


def script(name):
    """A part of `make bench` as a module."""
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(HERE, name))
    spec = importlib.util.spec_from_loader(name, loader)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def saves(count):
    """What `saves` makes of the lines of the guest: 10 files in a round, half as many microseconds as knfsd, no calls."""
    part = script("saves")
    got = {}
    for number, load in ((1, 2), (2, 50)):
        for server, way, us, calls in (("ringnfsd", "with", 100, ""), ("knfsd", "with", 200, ""),
                                       ("ringnfsd", "without", 1000, "GETATTR=10 bytes=2048"), ("knfsd", "without", 500, "GETATTR=5")):
            key, said = part.measurement(f"save {number} {server} {way} stat times=10 us={us} GETATTR.ms=7 {calls}", load)
            got[key] = said
    count.equal("other lines are passed over", part.measurement("ok nothing", 0), None)
    one = got[1, "ringnfsd", "without", "stat"]
    count.equal("numbers of one file", (one["us"], one["calls"], one["KiB"], one["each"], one["loaded"]), (100, 1, 0.2, {"GETATTR": 1}, False))
    made = {(r.test, r.quantity, r.other): r for r in part.rows_of(got, "stat", "t")}
    count.equal("ratios", [made[key].ratio for key in (
        ("t", "us each", "knfsd"), ("t", "us each", "without"), ("t, without", "us each", "knfsd"),
        ("t", "calls each", "knfsd"), ("t", "calls each", "without"), ("t, without", "calls each", "knfsd"))], [0.5, 0.1, 2, 1, 0.01, 2])
    count.equal("pairs on a loaded host", {r.loaded for r in made.values()}, {1})
    runs = iter([[1, 1, 0], [1, 0, 0], [1, 1, 1]])
    count.equal("of three loaded runs the quietest counts", guest.quietest(lambda: next(runs), sum, 3), [1, 0, 0])
    count.equal("a quiet run is not made again", guest.quietest(iter([[0], [1]]).__next__, sum, 3), [0])


def rates(count):
    """What `client` makes of the lines of the guest: half nfs-ganesha's rate, twice with async, a quarter of the bare loop's, fewer calls."""
    part, said = script("client"), [(line, load) for number, load in ((1, 2), (2, 50)) for line in (
        f"rate 3 tcp {number} ringnfsd create 50.0 90", f"rate 3 tcp {number} async create 200 90", f"rate 3 tcp {number} ganesha create 100 180",
        f"rate 3 tcp {number} bare create 200", f"fails 3 tcp {number} ganesha untar", f"rate 3 tcp {number} ringnfsd untar 7 1", "ok nothing")]
    guest_lines, guest.lines = guest.lines, lambda *_: iter(said)
    try:
        got = guest.rate_rounds("script", [], {})
    finally:
        guest.lines = guest_lines
    count.equal("pairs of calls", guest.rate_pairs(got["3", "tcp", "create"], "ringnfsd", "ganesha", "calls"), [(90, 180, False), (90, 180, True)])
    count.equal("rates on a loaded host", guest.loaded_rates(got), 5)
    made = {(r.test, r.quantity, r.other): (r.ratio, r.loaded) for r in part.rows_of(got)}
    test = "v3 create, write 1 KiB, close"
    count.equal("rows", made, {(test, "a second", "ganesha"): (0.5, 1), (test, "calls", "ganesha"): (0.5, 1),
                               (test + ", async", "a second", "ganesha"): (2, 1), (test, "a second", "bare"): (0.25, 1)})
    medians, ratios = (table.splitlines() for table in part.tables(got))
    count.equal("medians side by side", medians[0::2] + medians[3:], [
        "| a second | v3 ringnfsd | v3 async | v3 ganesha | v3 bare | v3 ringnfsd: calls | v3 async: calls | v3 ganesha: calls |",
        "| create, write 1 KiB, close | 50 | 200 | 100 | 200 | 90 | 90 | 180 |", "| untar a source tree, files | 7 |  |  |  | 1 |  |  |"])
    count.equal("ratios side by side", ratios[0::2], ["| by nfs-ganesha | v3 sync | v3 async | v3 by bare | v3 calls |",
                                                      "| create, write 1 KiB, close | 0.5 | 2 | 0.25 | 0.5 |"])
    chosen = part.metrics(types.SimpleNamespace(only=["rename", "cold disk"]))
    count.equal("metrics with those that make their files", chosen, "create rename seqwrite cold.1 cold.4 cold.32")


def ganesha(count):
    """nfs-ganesha of another release runs with that release's libraries."""
    class Other(servers.Ganesha):
        root = "/r"

    lib = "/r/usr/lib/x86_64-linux-gnu"
    count.equal("command of another release", Other.command(), [f"{lib}/ld-linux-x86-64.so.2", "--library-path", f"{lib}:/r/usr/lib/ganesha",
                                                                "/r/usr/bin/ganesha.nfsd"])
    count.check("what is not there is missing", "nfs-ganesha" in Other.missing())
    count.equal("this machine's own", servers.Ganesha.command(), ["/usr/bin/ganesha.nfsd"])
    count.check("the second ringnfsd is asynchronous", ",async," in servers.RingnfsdAsync.options and ",sync," in servers.RingnfsdForAll.options)


def vmbenches(count):
    """Each job of vmbench, which the guests' images have from the source, and its loop that syncs."""
    with tempfile.TemporaryDirectory(dir=".") as top:
        program, data = os.path.join(top, "vmbench"), os.path.join(top, "data")
        subprocess.run([os.environ.get("CC", "cc").split()[-1], "-O2", "-o", program, os.path.join(HERE, "..", "vm", "prog", "vmbench.c")], check=True)

        def run(*words, **env):
            done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, env={**os.environ, **env})
            return done.returncode == 0 and float(done.stdout) > 0

        for env in {}, {"VMBENCH_SYNC": "1"}:
            for job in ("create", "stat", "look", "read", "rename"):
                count.check(f"vmbench {job} {env}", run(job, 3, top, **env))
            left = sorted(n for n in os.listdir(top) if n.startswith("small"))
            count.equal("renamed files have their names again", left, ["small.0", "small.1", "small.2"])
            count.check(f"vmbench unlink {env}", run("unlink", 3, top, **env) and os.listdir(top) == ["vmbench"])
        for job in ("fsync", "commit"):
            count.check(f"vmbench {job}", run(job, 3, data) and os.path.getsize(data) == 3 * 4096)
        count.check("vmbench seqwrite", run("seqwrite", 3, data) and os.path.getsize(data) == 3 << 20)
        for job, depth in (("seqread", ()), ("dirread", (32,)), ("randread", ()), ("randread", (1,)), ("randwrite", (32,)), ("dirwrite", (2,))):
            count.check(f"vmbench {job} {depth}", run(job, 3, data, *depth) and os.path.getsize(data) == 3 << 20)
        count.check("more blocks than there are", not run("dirread", 4, data))
        count.check("a job that there is not", not run("sleep", 3, data))


def savejobs(count):
    def run(*words):
        done = subprocess.run([SAVEJOB, *map(str, words)], capture_output=True, text=True)
        return done.returncode == 0 and done.stdout.strip().isdigit()

    with tempfile.TemporaryDirectory() as top:
        count.check("files are made", run("make", 3, top) and sorted(os.listdir(top)) == ["file.0", "file.1", "file.2"])
        for job, where in (("reread", "file.0"), ("rewrite", "file.0"), ("overwrite", "file.0"), ("hold", ""), ("stat", "")):
            count.check(f"savejob {job}", run(job, 3, os.path.join(top, where)))
        big, to = os.path.join(top, "big"), os.path.join(top, "to")
        count.check("a large file", run("fill", 3, big) and os.path.getsize(big) == 3 << 20)
        with open(big, "rb") as f:
            data = f.read()
        for n, job in enumerate(("copy", "through")):
            ran = run(job, n + 1, big, f"{to}.{job}")
            with open(f"{to}.{job}.{n}", "rb") as f:
                count.check(f"savejob {job}", ran and f.read() == data)
        os.truncate(os.path.join(top, "file.1"), 5)
        count.check("a wrong size is noticed", not run("stat", 3, top))
        count.check("a job that there is not", not run("sleep", 3, top))


def main():
    count = harness.Count()
    rows(count)
    saves(count)
    rates(count)
    ganesha(count)
    vmbenches(count)
    savejobs(count)
    retries(count)
    with harness.Daemon({"e": "rw,no_root_squash,insecure"}) as d:
        each_job(count, d)
        wrong_answers(count, d)
        harness.finish(count, d)
    harness.result(count)


main()
