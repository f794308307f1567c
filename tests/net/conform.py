#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""rpcrdma-conform against ringnfsd, both over the software fabric: no case may fail, and its reports agree.

The cases about Kerberos run where a KDC is installed: over RoCE by a ticket cache, over iWARP by a keytab. CONFORM_ONLY chooses cases.
"""
import collections
import json
import os
import re
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import gss
import harness
import kdc

TOOL = os.path.abspath("./rpcrdma-conform")
TIMEOUT = "120"  # of each case: a machine may be slow, nothing that works takes as long
LONG = 1200
ONLY = ["--only", os.environ["CONFORM_ONLY"]] if os.environ.get("CONFORM_ONLY") else []
# Every case that can run does; fewer means that the tool or the fabric gave up.
AT_LEAST = 0 if ONLY else 560 if kdc.missing() else 680
OPTIONS = "rw,insecure,no_root_squash"


def read_json(count, what, out):
    try:
        report = json.loads(out)
    except ValueError as e:
        return count.check(f"{what}: JSON", False, f"{e}: {out[-1000:]}") and None
    sums = [sum(c["result"] == r for c in report["cases"]) for r in ("pass", "fail", "warn", "skip")]
    count.equal(f"{what}: the sums", [report[k] for k in ("passed", "failed", "warned", "skipped")], sums)
    return [(c["id"], c["result"], c.get("reason") or str(c)) for c in report["cases"]]


def read_tap(count, what, out):
    plan = re.search(r"^1\.\.(\d+)$", out, re.M)
    lines = re.findall(r"^((?:not )?ok) (\d+) - \d+ (\S+) (.*)$", out, re.M)
    count.check(f"{what}: TAP's plan", plan and int(plan[1]) == len(lines), f"{plan and plan[1]}, {len(lines)} lines")
    count.equal(f"{what}: TAP's numbers", [int(n) for _, n, _, _ in lines], list(range(1, len(lines) + 1)))
    return [(name, "fail" if word != "ok" else "skip" if "# SKIP" in rest else "pass", rest.partition("# SKIP ")[2] or rest)
            for word, _, name, rest in lines]


def show_skipped(count, what, cases):
    """One line for each reason: most of the cases that are skipped have the same."""
    reasons = collections.Counter(detail for _, result, detail in cases if result == "skip")
    for reason, number in reasons.items():
        count.skipped += number
        print(f"SKIP: {what}: {number} cases: {reason}", flush=True)


class Kerberos:
    """Users of a realm for the tool; none where no KDC is installed."""

    def __init__(self, realm=None):
        self.env, self.settings, self.options, self.by_cache, self.by_keytab = {}, {}, OPTIONS, [], []
        if realm:
            arguments = ["--gss", "krb5:krb5i:krb5p", "--principal", "nfs@localhost"]
            self.env = {**realm.env, "KRB5CCNAME": realm.login(gss.ALICE)}
            self.settings = {k: v for k, v in gss.settings(realm).items() if k != "server.control_socket"}
            self.options += ",sec=sys:krb5:krb5i:krb5p"
            self.by_cache = arguments
            realm.login(gss.BOB)
            self.by_keytab = [*arguments, "--client-keytab", realm.path(f"keytab.{gss.BOB}")]


def run(count, what, form, read, kerberos, user, devices=None, only=None):
    settings = {"rdma.enabled": "yes", "rdma.port": 20049, "nfs2.enabled": "yes", "nfs4.lease_time": 30, "nfs4.grace_time": 30}  # callbacks: 3 seconds
    with fabric.Fabric(devices, **kerberos.env) as f:
        with harness.Daemon({"e": kerberos.options}, {**settings, **kerberos.settings}, before=f.command("server"),
                            env=f.environment()) as daemon:
            tool = f.start("client", TOOL, form, "--timeout", TIMEOUT, *user, *(ONLY or only or []), "127.0.0.1", daemon.exports["e"])
            status, out = f.finish(tool, LONG)
            cases = read(count, what, out) or []
            for name, result, detail in cases:
                if result in ("fail", "warn"):  # ringnfsd does what RFCs say that it should, too
                    at = out.find(f" {name} ")  # TAP has the reason on the lines behind
                    count.check(f"{what}: {name}", False, out[at:at + 600] if at >= 0 else detail)
                else:
                    count.passed += result == "pass"
            show_skipped(count, what, cases)
            count.equal(f"{what}: callbacks are made", [name for name, result, _ in cases if result == "skip" and name.startswith("back")], [])
            if user:
                count.equal(f"{what}: Kerberos is tried", [name for name, result, _ in cases if result == "skip" and name.startswith("gss")], [])
            passed = sum(result == "pass" for _, result, _ in cases)
            count.check(f"{what}: enough cases ran", passed >= (AT_LEAST if ONLY or not only else 35), f"{passed}: {out[-1000:]}")
            count.equal(f"{what}: exit status", status, 1 if any(r == "fail" for _, r, _ in cases) else 0)
            count.equal(f"{what}: nothing is left behind", os.listdir(daemon.exports["e"]), [])
            harness.finish(count, daemon)


def run_all(kerberos):
    counts = [harness.Count() for _ in range(3)]
    jobs = [threading.Thread(target=run, args=(counts[0], "RoCE", "--json", read_json, kerberos, kerberos.by_cache)),
            threading.Thread(target=run, args=(counts[1], "iWARP", "--tap", read_tap, kerberos, kerberos.by_keytab, "iw0=127.0.0.1:iwarp")),
            # Some devices do not report why the peer has ended the stream.
            threading.Thread(target=run, args=(counts[2], "siw", "--json", read_json, kerberos, [], "siw0=127.0.0.1:siw", ["--only", "lists"]))]
    for j in jobs:
        j.start()
    for j in jobs:
        j.join()
    total = harness.Count()
    for c in counts:
        total.passed, total.failed, total.skipped = (getattr(total, k) + getattr(c, k) for k in ("passed", "failed", "skipped"))
    total.check("all ran", all(c.passed + c.failed for c in counts))
    harness.result(total)


def main():
    if kdc.missing():
        print(f"no cases about Kerberos: not installed: {', '.join(kdc.missing())}")
        run_all(Kerberos())
        return
    with kdc.Realm() as realm:
        run_all(Kerberos(realm))


if __name__ == "__main__":
    main()
