#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Few descriptors: the daemon says how many it needs, or it serves files and newcomers alike with what it has."""
import contextlib
import io
import re
import shutil
import sys
import threading
import time

import harness
import rpcclient as r
from harness import Count, Daemon

EXPORTS = {"x": "rw,no_root_squash,insecure"}
# Root may raise the hard limit otherwise.
WITHOUT = ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource"]
SETTINGS = {"server.threads": 4}
NEEDED = re.compile(r"(\d+) descriptors are allowed, and at least (\d+) are needed")
FILES, WRITERS = 80, 3


def try_start(limit):
    """The daemon if it starts with that limit, or (None, what its log says)."""
    d = Daemon(EXPORTS, SETTINGS, nofile=limit, before=WITHOUT)
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            d.start()
        return d, ""
    except SystemExit:
        log = d.read_log()
        d.__exit__()
        return None, log


def test_too_few(t):
    needed = 0
    for limit in (20, 30, 60):
        d, log = try_start(limit)
        if not t.check(f"{limit} descriptors: it does not start", d is None):
            d.__exit__()
            continue
        found = NEEDED.search(log)
        if t.check(f"{limit} descriptors: it says how many are needed", found, log):
            t.equal("allowed", int(found[1]), limit)
            needed = int(found[2])
    return needed


def start_with_least(needed):
    """With what it said; what exports take is known only when they are open."""
    for _ in range(5):
        d, log = try_start(needed)
        if d:
            return d, needed
        found = NEEDED.search(log)
        if not found or int(found[2]) <= needed:
            raise SystemExit(log)
        needed = int(found[2])
    raise SystemExit("the number that is needed grows and grows")


def until_done(call):
    """Comes again as long as it is told to."""
    end = time.monotonic() + 60
    while (res := call())["status"] == r.JUKEBOX and time.monotonic() < end:
        time.sleep(0.02)
    return res


def work(d, who, errors):
    """Files that are written, not committed, and read again."""
    try:
        with d.connect() as c:
            root, fhs = d.root(c, "x"), []
            for i in range(FILES):
                made = until_done(lambda: c.nfs(r.CREATE, r.create_args(root, b"%d-%d" % (who, i), attrs=r.sattr(mode=0o644))))
                if made["status"]:
                    errors.append(("CREATE", made["status"]))
                    return
                fhs.append(made["fh"])
                res = until_done(lambda: c.nfs(r.WRITE, r.write_args(fhs[-1], 0, b"%d" % i, r.UNSTABLE)))
                if res["status"]:
                    errors.append(("WRITE", res["status"]))
            for i, fh in enumerate(fhs):
                res = until_done(lambda: c.nfs(r.READ, r.read_args(fh, 0, 100)))
                if res["status"] or bytes(res["data"]) != b"%d" % i:
                    errors.append(("READ", res["status"]))
    except Exception as e:  # whatever it is
        errors.append(repr(e))


def newcomers(d, done):
    """Connects again and again: (served, turned away)."""
    served, away = 0, []
    while not done():
        try:
            with d.connect(timeout=20) as c:
                d.root(c, "x")
                c.nfs(r.NULL)
                served += 1
        except (OSError, r.Closed) as e:
            away.append(repr(e))
        time.sleep(0.02)
    return served, away


def test_least(t, needed):
    d, limit = start_with_least(needed)
    errors = []
    try:
        threads = [threading.Thread(target=work, args=(d, i, errors)) for i in range(WRITERS)]
        for th in threads:
            th.start()
        served, away = newcomers(d, lambda: not any(th.is_alive() for th in threads))
        t.check(f"{limit} descriptors: writers", not errors, errors[:5])
        t.check(f"{limit} descriptors: newcomers", served > 0 and not away, (served, away[:5]))
        with d.connect() as c:
            t.equal("a newcomer after that", len(d.root(c, "x")) > 0, True)
        t.check("within the limit", d.fds() <= limit, d.fds())
        status, _ = d.stop()
        t.equal("exit status", status, 0)
    finally:
        d.__exit__()


def main():
    if not shutil.which("setpriv"):
        harness.skip_all("no setpriv(1)")
    t = Count()
    needed = test_too_few(t)
    if needed:
        test_least(t, needed)
        test_least(t, needed * 2)
    print(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
    sys.exit(1 if t.failed else 0)


main()
