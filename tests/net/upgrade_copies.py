#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Copies in the background go on in the next program: within the server, between servers, and their results."""
import os
import subprocess

import copies_async as within
import copies_between as between
import harness
import nfs4client as n
from harness import Daemon
from rpcclient import u32
from upgrade import restart

MIB = 1 << 20
ENDS = 48 * MIB  # bytes at either end of a long file that are not zero
SETTINGS = {"nfs4.lease_time": 10, "nfs4.grace_time": 10, "nfs4.delegations": "no"}


class T(harness.Count):
    def __init__(self):
        super().__init__()
        self.d = Daemon({"rw": "rw,insecure,no_root_squash"}, SETTINGS)

    def restart(self, d, what):
        said = restart(self, d, what)
        self.check(f"{what}: the state goes along", "goes on from" in said, said)

    @staticmethod
    def remove(c):
        for path in (c.src_path, c.dst_path):
            os.unlink(path)


def begin(t, name):
    """Starts a copy in the background: (client, COPY's result)."""
    c = within.Client(t, name)
    c.prepare(t, within.LONG, within.rnd.randbytes(ENDS), name)
    with open(c.src_path, "r+b") as f:
        f.seek(-ENDS, os.SEEK_END)
        f.write(within.rnd.randbytes(ENDS))
    res = c.copy()
    t.equal("COPY", res["status"], n.OK)
    c.until_copied(res["sid"])
    return c, res


def caught(t, what):
    """Starts copies until a restart has met one in its middle, as files are copied fast; returns as begin()."""
    for i in range(10):
        c, res = begin(t, f"{what} {i}")
        t.restart(t.d, what)
        is_at = c.status(res["sid"])
        if is_at["status"] != n.OK or (is_at["complete"] == [] and is_at["count"] < within.LONG):
            break
        c.leave(t)
    t.check(f"{what}: it goes on", is_at["status"] == n.OK and is_at["complete"] == [] and 0 < is_at["count"] < within.LONG, is_at)
    return c, res


def goes_on(t):
    """All is copied, and is on disk: the sync covers what the program before has copied."""
    for times in 1, 3:
        c, res = caught(t, "a copy")
        t.equal("TEST_STATEID", c.last((within.TEST_STATEID, u32(1) + res["sid"])).get("codes"), [n.OK])
        for i in range(1, times):
            t.restart(t.d, f"a copy, {i + 1} of {times}")
            t.equal("OFFLOAD_STATUS", c.status(res["sid"])["status"], n.OK)
        told = c.await_callback(n.CB_OFFLOAD)
        t.equal("CB_OFFLOAD", {k: told[k] for k in ("fh", "stateid", "status", "count", "committed", "verf")},
                {"fh": c.dst, "stateid": res["sid"], "status": n.OK, "count": within.LONG, "committed": within.FILE_SYNC, "verf": res["verf"]})
        t.equal("the copy", subprocess.run(["cmp", c.src_path, c.dst_path], check=False).returncode, 0)
        c.leave(t)


def is_cancelled(t):
    c, res = caught(t, "a copy that is cancelled")
    t.equal("OFFLOAD_CANCEL", c.offload(within.OFFLOAD_CANCEL, res["sid"])["status"], n.OK)
    size = os.stat(c.dst_path).st_size
    t.equal("its stateid then", c.status(res["sid"])["status"], within.BAD_STATEID)
    t.equal("nothing is written after the answer", os.stat(c.dst_path).st_size, size)
    fresh = c.copy()
    t.check("a new copy has another stateid", fresh["status"] == n.OK and fresh["sid"] not in (None, res["sid"]), fresh)
    t.equal("OFFLOAD_CANCEL", c.offload(within.OFFLOAD_CANCEL, fresh["sid"])["status"], n.OK)
    c.leave(t)


def is_closed(t):
    """Each piece of the copy is checked as before the restart: with the file closed, the copy fails."""
    c, res = caught(t, "a copy whose source is closed")
    t.equal("CLOSE", c.close_file(c.src, c.src_sid)["status"], n.OK)
    told = c.await_callback(n.CB_OFFLOAD)
    t.equal("CB_OFFLOAD", (told["status"], told["stateid"]), (within.BAD_STATEID, res["sid"]))
    c.leave(t)


def copied(t, name):
    """A client that was told of its copy's result, and has answered unless the name says otherwise: (client, COPY's result, bytes)."""
    c = within.Client(t, name)
    data = within.rnd.randbytes(40 * MIB)
    c.prepare(t, len(data), data, name)
    c.answers = "silent" not in name
    res = c.copy()
    c.await_callback(n.CB_OFFLOAD)
    return c, res, len(data)


def has_result(t, c, res, count):
    end = c.status(res["sid"])
    t.equal("OFFLOAD_STATUS", (end["status"], end.get("count"), end.get("complete")), (n.OK, count, [n.OK]))


def is_told(t):
    """A client that was told may still ask."""
    c, res, count = copied(t, "told")
    while not within.Held(t.d).until(lambda s: not s["nfs4_copies"]):
        pass
    t.restart(t.d, "a result")
    has_result(t, c, res, count)
    c.leave(t)


def is_told_again(t):
    """A client that has not answered is told once more, unless the program before has given up by then."""
    for i in range(10):
        c, res, count = copied(t, f"silent {i}")
        t.restart(t.d, "a result that is not answered")
        c.answers = True
        has_result(t, c, res, count)
        told = lambda: [x for x in c.called if x["op"] == n.CB_OFFLOAD]
        while len(told()) < 2 and within.Held(t.d).until(lambda s: s["nfs4_copies"]):
            c.compound((n.PUTROOTFH, b""))
        again = told()[1:]
        c.leave(t)
        if again:
            break
    t.equal("told again", [(x["stateid"], x["count"], x["committed"]) for x in again], [(res["sid"], count, within.FILE_SYNC)])


def from_elsewhere(t, which):
    """The destination, or the source, is run anew in the middle of a copy between servers."""
    p = t.pair(6 * MIB)
    t.relay.passed = 0
    t.relay.what = lambda _, conn, passed: "hold" if passed > 2 * MIB + MIB // 2 else "pass"
    sid = p.copy(t.relay.port)["sid"]
    p.until_copied(sid)
    said = restart(t, which, "between servers")
    t.check("the state goes along", "goes on from" in said, said)
    is_at = p.b.offload(between.OFFLOAD_STATUS, sid, p.to[0])
    t.equal("OFFLOAD_STATUS", (is_at["status"], is_at.get("complete")), (n.OK, []))
    t.relay.what = lambda *_: "pass"
    t.equal("CB_OFFLOAD", p.end(), (n.OK, p.size))
    t.check("the copy", p.copied() == p.data)
    t.equal("OFFLOAD_CANCEL at the source", p.a.offload(between.OFFLOAD_CANCEL, p.told["sid"], p.from_fh)["status"], n.OK)
    p.leave()


def main():
    t = T()
    with t.d:
        for test in goes_on, is_cancelled, is_closed, is_told, is_told_again:
            test(t)
        harness.finish(t, t.d)
    pairs = between.T()
    with pairs.src, pairs.dst:
        for which in pairs.dst, pairs.src:
            from_elsewhere(pairs, which)
        for d in pairs.src, pairs.dst:
            harness.finish(pairs, d)
    t.failed += pairs.failed
    harness.result(t)


if __name__ == "__main__":
    main()
