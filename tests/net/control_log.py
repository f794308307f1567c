#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The levels of the log, by ringnfsctl log: what is logged afterwards, and who may change it."""
import json

import harness
from control import GROUP, OTHERS, USER, Control, ask, connect_as, ctl
from harness import Count

MODULES = ("admin", "daemon", "gss", "nfs2", "nfs3", "nfs4", "rdma", "tcp", "vfs")


def levels(d):
    res = ctl("--socket", d.path, "--json", "log")
    return {row["module"]: row["level"] for row in json.loads(res.stdout)["modules"]}


def close_one(d):
    """A connection that comes and goes, which the transport logs at debug level."""
    since = len(d.read_log())
    with d.connect() as c:
        d.root(c, "one")
    return since


def test_levels(t, d):
    t.equal("the configured level", levels(d), dict.fromkeys(MODULES, "notice"))
    res = ctl("--socket", d.path, "log", "debug", "tcp")
    t.check("for people", res.returncode == 0 and res.stdout.split()[:2] == ["MODULE", "LEVEL"] and len(res.stdout.splitlines()) == 10, res)
    t.equal("one module", levels(d), {**dict.fromkeys(MODULES, "notice"), "tcp": "debug"})
    since = close_one(d)
    t.check("which logs more now", d.wait_log(r"tcp: connection \d+ closed", since), d.read_log()[since:])
    t.check("the log tells who", d.wait_log(r"user 0 \(process \d+\): the log level of tcp is debug now"), d.read_log()[-400:])
    ctl("--socket", d.path, "log", "error")
    t.equal("all modules", levels(d), dict.fromkeys(MODULES, "error"))
    t.check("and who, though notices are not logged", d.wait_log(r"the log level of all modules is error now"), d.read_log()[-400:])
    since = close_one(d)
    ctl("--socket", d.path, "log", "debug", "nfs4")
    d.wait_log("the log level of nfs4 is debug now", since)
    t.check("the others are quiet", "closed" not in d.read_log()[since:], d.read_log()[since:])


def test_wrong(t, d):
    before = levels(d)
    for args, status in ((("verbose",), 1), (("debug", "nfs5"), 1), (("debug", ""), 1), (("debug", "tcp", "more"), 2)):
        res = ctl("--socket", d.path, "log", *args)
        t.check(f"{args} is refused", res.returncode == status and res.stderr, res)
    t.equal("nothing has changed", levels(d), before)


def test_rights(t, d):
    before = levels(d)
    d.wait_readers()
    with connect_as(d.path, USER, OTHERS, (GROUP,)) as s:
        t.equal("a reader may ask", ask(s, path="/v1/log")[0], 200)
        t.equal("and change nothing", ask(s, "POST", "/v1/log?level=debug")[0], 403)
    t.equal("as before", levels(d), before)


def main():
    t = Count()
    with Control({"server.log_level": "notice"}) as d:
        for test in (test_levels, test_wrong, test_rights):
            test(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
