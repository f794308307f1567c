#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""A member of a cluster whose file system may have given its machine up: calls to it fail, and moments_shim.c makes them.

No client is told of an error that says so, while it is not certain; the member ends once it is. An error on one file ends nothing."""
import errno
import os
import shutil
import time

import harness
import nfs4client as n4
import nlm_recovery as nlm
import rpcclient as r
from cluster import ENDED, Member
from harness import Count, scratch
from moments import Bench, decode_owner, moments_of, report, state_for

CUT_OFF = (errno.ESHUTDOWN, errno.ENOTCONN, errno.ECONNABORTED)
PATIENCE = 120


class MemberBench(Bench):
    """A server whose file system looks like a network one, by the shim: a local one does not give machines up."""

    def __init__(self, t, d):
        super().__init__(t, d)
        d.env["MOMENTS_REMOTE"] = "1"

    def locked(self):
        """Locks and unlocks the file by NLM; returns the status that failed, or "ok"."""
        names = {nlm.GRANTED: "ok", nlm.GRACE_PERIOD: "DELAY"}
        answer = self.nlm.lock(self.fh)
        return names.get(answer if answer != nlm.GRANTED else self.nlm.unlock(self.fh), answer)

    def start(self):
        super().start()
        self.nlm = nlm.Client(self.d, nlm.SERVER, b"cut-off.example")

    def anew(self):
        self.kill()
        self.nlm.conn.close()
        self.restart()


def test_not_certain(b, ops, handle):
    """One call fails by such an error, and the file system's root has none when it is asked."""
    for i, (name, op) in enumerate(ops.items()):
        error = CUT_OFF[i % len(CUT_OFF)]
        prepare = lambda: b.reset("file" if handle else state_for(name), None, handle)
        b.anew()  # such errors are told when they have come for a while
        prepare()
        allowed = {op(), "ok no attributes", "ok, no handle", "ok gone", "DELAY"}
        wrong, answers = [], set()
        for call, answer, _ in moments_of(b, op, prepare, error=error):
            answers.add(answer)
            if answer not in allowed:
                wrong.append((call, answer))
        report(b.t, f"{name}, {errno.errorcode[error]}", wrong)
        b.t.check(f"{name}: a call failed", "DELAY" in answers, answers)
        b.t.check(f"{name}: the member lives", b.d.alive())


def read(b):
    return b.status3(r.READ, r.read_args(b.fh, 0, 10))


def test_one_file(b):
    """Errors that a file may have are told, and so are the others if the file system is well after all."""
    b.anew()
    b.reset("file", None, True)
    for error, told in ((errno.EIO, "IO"), (errno.ESTALE, "STALE"), (errno.EACCES, "ACCES")):
        answers = {answer for _, answer, _ in moments_of(b, lambda: read(b), lambda: None, error=error)}
        b.t.check(f"READ, {errno.errorcode[error]}", told in answers, answers)
    answers, end = [], time.monotonic() + PATIENCE
    while "IO" not in answers and time.monotonic() < end:
        answers += [answer for _, answer, _ in moments_of(b, lambda: read(b), lambda: time.sleep(0.1), error=errno.ENOTCONN)]
    b.t.check("an error that goes on is told", set(answers) >= {"DELAY", "IO"}, set(answers))
    b.t.check("the member lives", b.d.alive())


def test_certain(b):
    """The root has the error, too, so the member ends."""
    for error in CUT_OFF:
        b.anew()
        b.reset("file", None, True)
        b.moments.arm(1, error=error, goes_on=True)
        answers = set()
        try:
            while True:
                answers.add(read(b))
        except (r.Closed, OSError):
            pass
        b.moments.disarm()
        b.t.check(f"READ, {errno.errorcode[error]}: nobody is told", not answers, answers)
        b.t.equal("the member ends", b.d.process.wait(PATIENCE), ENDED)
        b.t.check("the log says what to do", b.d.wait_log("has given this machine's client up: member a ends.*unmount and mount it again", b.d.since))


def main():
    n4.RESULTS[n4.GETATTR] = decode_owner
    if not harness.handles_work("/dev/shm"):
        os.environ["TMPDIR"] = "/dev/shm"  # flushes take no time there
    t = Count()
    common = scratch()
    os.chmod(common, 0o755)
    os.mkdir(common + "/one")
    os.mkdir(common + "/cluster", 0o700)
    b = MemberBench(t, Member("a", common))
    try:
        b.start()
        test_not_certain(b, b.by_name(), False)
        test_not_certain(b, {**b.by_handle(), "NLM": b.locked}, True)
        test_one_file(b)
        test_certain(b)
        b.anew()
        harness.finish(t, b.d)
    finally:
        b.d.__exit__()
        shutil.rmtree(common, ignore_errors=True)
    harness.result(t)


if __name__ == "__main__":
    main()
