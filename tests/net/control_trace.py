#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Calls as they are answered, by ringnfsctl trace: what it tells of each, its filters, calls that come too fast, and its end."""
import contextlib
import json
import os
import subprocess
import time

import harness
import nfs4client as n4
import rpcclient as rpc
from control import BINARY, GROUP, USER, Control, ask, connect_as, ctl
from control_state import api, client_id, new_client
from harness import Count

ROOM = 512  # calls that one thread of the server keeps for a trace
FLOOD = 3000


@contextlib.contextmanager
def tracing(d, *args, json_lines=True):
    """A trace that runs; the list that is given has its lines at the end of the block."""
    since, lines = len(d.read_log()), []
    p = subprocess.Popen([BINARY, "--socket", d.path, *(["--json"] if json_lines else []), "trace", *args], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    try:
        if not d.wait_log(r"user 0 \(process \d+\): POST /v1/trace: 200", since):
            raise SystemExit(f"no trace: {p.communicate(timeout=10)}\n{d.read_log()[since:]}")
        yield lines
        out, err = p.communicate(timeout=60)
        lines += [json.loads(line) if json_lines else line for line in out.splitlines()]
        if p.returncode or err:
            raise SystemExit(f"the trace ends with {p.returncode}: {err}")
    finally:
        p.kill()
        p.wait()


@contextlib.contextmanager
def traced(d, **query):
    """The same without the tool. A call is there before its reply is sent, so nothing is waited for."""
    calls = []
    status, answer = api(d, "/v1/trace", "POST", **query)
    if status != 200:
        raise SystemExit(f"no trace: {answer}")
    yield calls
    calls += api(d, "/v1/trace", id=answer["id"])[1]["calls"]
    api(d, "/v1/trace/stop", "POST", id=answer["id"])


def test_nfs3(t, d):
    root = d.exports["one"]
    with d.connect() as c:
        fh = d.root(c, "one")
        with tracing(d, "--count", "4") as calls:
            began, xid = time.monotonic_ns(), rpc.next_xid()
            c.nfs(rpc.NULL)
            c.nfs(rpc.GETATTR, rpc.getattr_args(fh))
            c.nfs(rpc.LOOKUP, rpc.diropargs(fh, b"none"))
            c.mnt(d.top + "/nowhere")
            took = time.monotonic_ns() - began
        port = c.s.getsockname()[1]
    t.equal("procedures", [c["procedure"] for c in calls], ["NULL", "GETATTR", "LOOKUP", "MNT"])
    t.equal("programs", [(c["program"], c["version"]) for c in calls], [("nfs", "3")] * 3 + [("mount", "3")])
    t.equal("results", [(c["status"], c["failed"]) for c in calls],
            [("OK", False), ("NFS3_OK", False), ("NFS3ERR_NOENT", True), ("MNT3ERR_NOENT", True)])
    t.check("the client", all((c["client"], c["port"], c["transport"]) == ("127.0.0.1", port, "tcp") for c in calls), calls)
    t.equal("its users", [c.get("uid") for c in calls], [0] * 4)
    got = calls[1]
    t.equal("the file", (got["export"], got["path"]), (root, root))
    t.check("its handle", len(got["handle"]) > 8 and got["handle"] in fh.hex(), got)
    t.equal("sizes", (got["bytes_in"], got["bytes_out"]), (len(rpc.call_message(rpc.NFS, 3, rpc.GETATTR, rpc.getattr_args(fh))), 24 + 4 + 84))
    t.check("times", all(c["duration_ns"] > 0 for c in calls) and sum(c["duration_ns"] for c in calls) < took, calls)
    t.equal("transaction ids", [c["xid"] for c in calls], [xid + 1 + i for i in range(4)])
    t.check("no COMPOUND has run", not any("operations" in c for c in calls))


def test_nfs4(t, d):
    for minor in (0, 1, 2):
        c = new_client(d, f"traced 4.{minor}", minor)
        root = c.path(d.exports["one"])
        with traced(d, client="127.0.0.1") as calls:
            res, fh = c.open(root, b"file", create=True)
            c.last(n4.putfh(root), n4.lookup(b"none"), n4.getattr_op())
        first = ["SEQUENCE"] if minor else []
        t.equal(f"4.{minor}: operations of OPEN", calls[0]["operations"], [*first, "PUTFH", "OPEN", "GETFH"])
        last = calls[-1]
        t.equal(f"4.{minor}: those that ran", (last["operations"], last["operations_total"]), ([*first, "PUTFH", "LOOKUP"], len(first) + 2))
        t.equal(f"4.{minor}: its result", (last["version"], last["status"], last["failed"]), (f"4.{minor}", "NFS4ERR_NOENT", True))
        t.equal(f"4.{minor}: the client's id", calls[0].get("clientid"), client_id(c))
        t.equal(f"4.{minor}: the file", calls[0]["path"], d.exports["one"] + "/file")
        c.close_file(fh, res["stateid"])
        c.close()


def test_filters(t, d):
    """Each leaves out one of the calls that are made."""
    c = new_client(d, "filtered", 1)
    other = new_client(d, "another", 1)
    root = c.path(d.exports["one"])
    two = c.path(d.exports["two"])

    def shown(trace):
        with trace as calls, d.connect(source=("127.0.0.3", 0)) as v3:
            c.getattr(root)
            c.last(n4.putfh(root), n4.lookup(b"none"))
            other.getattr(two)
            v3.nfs(rpc.GETATTR, rpc.getattr_args(root))
        return sorted((x["client"][-1] + x["version"], x["export"][-3:], x["failed"]) for x in calls)

    v4, v3 = "14.1", "33"
    mine, failed, others, old = (v4, "one", False), (v4, "one", True), (v4, "two", False), (v3, "one", False)
    for query, want in (({}, [mine, failed, others, old]), ({"errors": 1}, [failed]), ({"export": d.exports["two"]}, [others]),
                        ({"client": client_id(c)}, [mine, failed]), ({"client": "127.0.0.3"}, [old]),
                        ({"client": "::ffff:127.0.0.3"}, [old]), ({"operation": "getattr"}, [mine, others, old]),
                        ({"operation": "LOOKUP"}, [failed]), ({"slower_ns": 10**12}, []), ({"slower_ns": 1}, [mine, failed, others, old])):
        t.equal(f"{query}", shown(traced(d, **query)), sorted(want))
    t.equal("the tool's options", shown(tracing(d, "--operation", "GETATTR", "--export", d.exports["one"], "--client", "127.0.0.1",
                                                "--slower-than", "0.001us", "--seconds", "1")), [mine])
    t.equal("the tool's errors", shown(tracing(d, "--error", "--count", "1")), [failed])
    c.close()
    other.close()


def test_flood(t, d):
    """A trace that nobody reads keeps as much as it has room for, and counts the rest; the server goes on."""
    status, answer = api(d, "/v1/trace", "POST", operation="GETATTR")
    t.equal("it begins", status, 200)
    with d.connect() as c:
        fh = d.root(c, "one")
        for _ in range(FLOOD // 100):
            for _ in range(100):
                c.send(rpc.call_message(rpc.NFS, 3, rpc.GETATTR, rpc.getattr_args(fh)))
            for _ in range(100):
                c.recv()
    shown = lost = 0
    while True:
        status, got = api(d, "/v1/trace", id=answer["id"])
        shown, lost = shown + len(got["calls"]), lost + got["lost"]
        t.check("in the order of time", got["calls"] == sorted(got["calls"], key=lambda x: x["time"]))
        if not got["more"]:
            break
    t.equal("each call is shown or counted", shown + lost, FLOOD)
    t.check("some of each", shown >= ROOM and lost > 0, (shown, lost))
    t.equal("stopped", api(d, "/v1/trace/stop", "POST", id=answer["id"]), (200, {"result": "stopped"}))
    t.equal("twice", api(d, "/v1/trace/stop", "POST", id=answer["id"])[0], 404)
    t.equal("nobody reads a trace that has ended", api(d, "/v1/trace", id=answer["id"])[0], 404)


def test_end(t, d):
    """A trace that nobody asks ends; there are four at a time."""
    ids = [api(d, "/v1/trace", "POST")[1]["id"] for _ in range(4)]
    t.equal("the fifth is refused", api(d, "/v1/trace", "POST")[0], 503)
    end = time.monotonic() + 30
    while api(d, "/v1/trace", id=ids[0])[0] == 200 and time.monotonic() < end:
        with d.connect() as c:
            c.nfs(rpc.NULL)
        if api(d, "/v1/trace", "POST")[0] == 200:  # another has made room
            break
        time.sleep(0.2)
    t.equal("the one that is asked goes on", api(d, "/v1/trace", id=ids[0])[0], 200)
    t.check("another has ended", 404 in [api(d, "/v1/trace", id=i)[0] for i in ids[1:]])


def test_wrong(t, d):
    t.equal("no id", api(d, "/v1/trace")[0], 400)
    for query, status in (({"operation": "NONSENSE"}, 400), ({"operation": "x" * 100}, 400), ({"client": "host"}, 400),
                          ({"client": "0xzz"}, 400), ({"export": "/none"}, 404), ({"slower_ns": "-1"}, 400), ({"errors": "2"}, 400)):
        t.equal(f"{query}", api(d, "/v1/trace", "POST", **query)[0], status)
    for args, status in ((("now",), 2), (("--count", "0"), 2), (("--count", "x"), 2), (("--seconds", "-1"), 2), (("--slower-than", "10"), 2),
                         (("--slower-than", "xms"), 2), (("--operation", "NONSENSE"), 1), (("--errors",), 2)):
        res = ctl("--socket", d.path, "trace", *args)
        t.check(f"{args} is refused", res.returncode == status and res.stderr and not res.stdout, res)
    d.wait_readers()
    with connect_as(d.path, USER, GROUP) as s:
        t.equal("a reader may not begin one", ask(s, "POST", "/v1/trace")[0], 403)
        t.equal("nor see one", ask(s, path="/v1/trace?id=1")[0], 403)


def test_people(t, d):
    with open(os.path.join(d.exports["one"], "a\tb"), "w"):
        pass
    c = new_client(d, "for people", 2)
    root = c.path(d.exports["one"])
    with tracing(d, "--count", "2", json_lines=False) as lines:
        c.open(root, b"a\tb")
        c.last(n4.putfh(root), n4.lookup(b"none"))
    words = lines[0].split()
    t.check("a time and who", len(words[0]) == 15 and words[1:4] == ["127.0.0.1", "4.2", "ok"], lines)
    t.check("what and where", lines[0].partition("  (waited ")[0].endswith(f"  SEQUENCE PUTFH OPEN GETFH  {d.exports['one']}/a\\x09b"), lines)
    t.check("an error", " NFS4ERR_NOENT " in lines[1], lines)
    c.close()


def main():
    t = Count()
    with Control({"nfs4.delegations": "no"}, exports={"one": "rw,insecure,no_root_squash", "two": "rw,insecure,no_root_squash"}) as d:
        for test in (test_nfs3, test_nfs4, test_filters, test_people, test_flood, test_wrong, test_end):
            test(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
