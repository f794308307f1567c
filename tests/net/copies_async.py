#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Asynchronous COPY of NFSv4.2: the callback, the polls, the ends of a copy in its middle, and how many there may be."""
import os
import random
import signal
import time

import harness
import nfs4client as n
import rpcclient as r
from bystander import watched
from harness import Count, Daemon
from held import Held
from rpcclient import u32, u64

COMMIT, SAVEFH, COPY, OFFLOAD_CANCEL, OFFLOAD_STATUS = 5, 32, 60, 66, 67
FREE_STATEID, TEST_STATEID = 45, 55
BAD_STATEID = 10025
FILE_SYNC, MIB = 2, 1 << 20
LONG = 1024 * MIB  # takes longer than many calls
OF_HOST = 16
# Without delegations, which its clients would have to return before they leave.
SETTINGS = {"nfs4.lease_time": 5, "nfs4.grace_time": 5, "nfs4.delegations": "no"}  # a callback is given up after a second
SEED = int(os.environ.get("COPIES_SEED", time.time_ns() & 0xffffffff))
rnd = random.Random(SEED)


def _copied(x, res):
    res.update(callbacks=[x.take(16) for _ in range(x.u32())], count=x.u64(), committed=x.u32(), verf=x.take(8),
               consecutive=x.flag(), synchronous=x.flag())


n.RESULTS[COPY] = _copied
n.RESULTS[COMMIT] = lambda x, res: res.update(verf=x.take(8))
n.RESULTS[OFFLOAD_STATUS] = lambda x, res: res.update(count=x.u64(), complete=[x.u32() for _ in range(x.u32())])
n.RESULTS[TEST_STATEID] = lambda x, res: res.update(codes=[x.u32() for _ in range(x.u32())])


class Client(n.Client):
    back = True

    def __init__(self, t, name):
        super().__init__(t.d.port, name, 2)
        t.equal(f"{name} has a session", self.register()["status"], n.OK)
        t.equal(f"{name} has nothing to reclaim", self.reclaim_complete(), n.OK)
        self.await_callback()
        self.files = []

    def prepare(self, t, size, data=b"", name="big"):
        """Opens a source of that size, which begins with data, and an empty destination."""
        self.src_path, self.dst_path = (os.path.join(t.d.exports["rw"], f"{name}.{end}") for end in ("src", "dst"))
        with open(self.src_path, "wb") as f:
            f.write(data)
            f.truncate(size)
        with open(self.dst_path, "wb"):
            pass
        os.chmod(self.dst_path, 0o666)
        root = self.path(t.d.exports["rw"])
        src, self.src = self.open(root, f"{name}.src", access=n.SHARE_READ)
        while (dst := self.open(root, f"{name}.dst", access=n.SHARE_WRITE))[0]["status"] == n.GRACE:
            time.sleep(0.2)
        dst, self.dst = dst
        t.equal("OPEN of both files", (src["status"], dst["status"]), (n.OK, n.OK))
        self.src_sid, self.dst_sid = src["stateid"], dst["stateid"]

    def copy(self, synchronous=False, count=0):
        res = self.last(n.putfh(self.src), (SAVEFH, b""), n.putfh(self.dst),
                        (COPY, self.src_sid + self.dst_sid + u64(0) + u64(0) + u64(count) + u32(1) + u32(synchronous) + u32(0)))
        res["sid"] = res["callbacks"][0] if res.get("callbacks") else None
        return res

    def offload(self, op, sid, fh=None):
        return self.last(n.putfh(fh or self.dst), (op, sid))

    def status(self, sid):
        return self.offload(OFFLOAD_STATUS, sid)

    def until_copied(self, sid):
        """Polls until something is copied."""
        while not (res := self.status(sid)).get("count", 1):
            pass
        return res

    def leave(self, t):
        for fh, sid in ((self.src, self.src_sid), (self.dst, self.dst_sid)):
            self.close_file(fh, sid)
        self.bare((n.DESTROY_SESSION, self.session))
        self.bare((n.DESTROY_CLIENTID, u64(self.clientid)))
        self.close()
        t.remove(self)


class T(Count):
    def __init__(self):
        super().__init__()
        self.d = Daemon({"rw": "rw,insecure,no_root_squash"}, SETTINGS)

    @staticmethod
    def remove(c):
        for path in (c.src_path, c.dst_path):
            os.unlink(path)

    def gone(self, what, held):
        self.equal(f"{what}: copies that are left", held.until(lambda s: not s["nfs4_copies"])["nfs4_copies"], 0)


def test_result(t, _held):
    c = Client(t, "result")
    data = rnd.randbytes(40 * MIB + 123)
    c.prepare(t, len(data), data)
    at = c.seqid + 1
    res = c.copy()
    t.equal("COPY", {k: res[k] for k in ("status", "count", "committed", "consecutive", "synchronous")},
            {"status": n.OK, "count": 0, "committed": 0, "consecutive": True, "synchronous": False})
    told = c.await_callback(n.CB_OFFLOAD)
    t.equal("CB_OFFLOAD", {k: told[k] for k in ("fh", "stateid", "status", "callbacks", "count", "committed", "verf", "referring")},
            {"fh": c.dst, "stateid": res["sid"], "status": n.OK, "callbacks": [], "count": len(data), "committed": FILE_SYNC,
             "verf": res["verf"], "referring": [(c.session, [(at, 0)])]})
    with open(c.dst_path, "rb") as f:
        t.check("the copy", f.read() == data)
    t.equal("COMMIT's verifier", c.last(n.putfh(c.dst), (COMMIT, u64(0) + u32(0))).get("verf"), res["verf"])
    # A client may ask while the callback is under way. Linux's copies the file by itself after an error.
    end = c.status(res["sid"])
    t.equal("OFFLOAD_STATUS after the callback", (end["status"], end.get("count"), end.get("complete")), (n.OK, len(data), [n.OK]))
    t.equal("of another file", c.offload(OFFLOAD_STATUS, res["sid"], c.src)["status"], BAD_STATEID)
    t.equal("OFFLOAD_CANCEL after the callback", c.offload(OFFLOAD_CANCEL, res["sid"])["status"], BAD_STATEID)
    for what, res in (("synchronous", c.copy(synchronous=True)), ("short", c.copy(count=16 * MIB))):
        t.equal(f"a {what} COPY", (res["sid"], res["count"], res["synchronous"]), (None, 16 * MIB, True))
    c.leave(t)


def leave_copying(t):
    """A client that does not come back, in the middle of a copy."""
    c = Client(t, "leaver")
    c.prepare(t, LONG, name="left")
    c.until_copied(c.copy()["sid"])
    c.conn.close()
    return c


def await_end(t, c):
    """Waits until the lease of c has run out."""
    other = Client(t, "heir")
    root = other.path(t.d.exports["rw"])
    while (res := other.open(root, "left.dst", deny=3)[0])["status"] != n.OK:
        time.sleep(0.2)
    other.close_file(c.dst, res["stateid"])
    other.bare((n.DESTROY_SESSION, other.session))
    other.bare((n.DESTROY_CLIENTID, u64(other.clientid)))
    other.close()
    t.remove(c)


def test_leases(t, held):
    """A client that does not answer finds the result by asking, for a lease. One that does not come back loses its copy after one."""
    gone = leave_copying(t)
    c = Client(t, "poll")
    c.prepare(t, 64 * MIB)
    c.answers = False
    sid = c.copy()["sid"]
    t.equal("TEST_STATEID", c.last((TEST_STATEID, u32(1) + sid)).get("codes"), [n.OK])
    t.equal("FREE_STATEID", c.last((FREE_STATEID, sid))["status"], BAD_STATEID)
    seen = [0]
    while not (res := c.status(sid)).get("complete", True):
        seen.append(res["count"])
    t.check("the bytes so far grow", seen == sorted(seen), seen)
    t.equal("the end", (res["status"], res.get("count"), res.get("complete")), (n.OK, 64 * MIB, [n.OK]))
    c.await_callback(n.CB_OFFLOAD)
    while c.status(sid)["status"] == n.OK:
        time.sleep(0.1)
    c.leave(t)
    await_end(t, gone)
    t.gone("after a lease", held)


def test_cancel(t, held):
    c, other = Client(t, "cancel"), Client(t, "other")
    c.prepare(t, LONG)
    sid = c.copy()["sid"]
    for op in (OFFLOAD_STATUS, OFFLOAD_CANCEL):
        t.equal(f"operation {op} by another client", other.offload(op, sid, c.dst)["status"], BAD_STATEID)
        t.equal(f"operation {op} of another file", c.offload(op, sid, c.src)["status"], BAD_STATEID)
        c.cred = r.auth_sys(1000, 1000)
        t.equal(f"operation {op} by another user", c.offload(op, sid)["status"], BAD_STATEID)
        c.cred = r.ROOT
    t.equal("TEST_STATEID by another client", other.last((TEST_STATEID, u32(1) + sid)).get("codes"), [BAD_STATEID])
    t.equal("it goes on", c.until_copied(sid).get("complete"), [])
    t.equal("OFFLOAD_CANCEL", c.offload(OFFLOAD_CANCEL, sid)["status"], n.OK)
    size = os.stat(c.dst_path).st_size
    t.check("it was in the middle", 0 < size < LONG, size)
    t.equal("its stateid then", c.status(sid)["status"], BAD_STATEID)
    t.gone("after OFFLOAD_CANCEL", held)
    t.equal("nothing is written after the answer", os.stat(c.dst_path).st_size, size)
    t.equal("callbacks", [x for x in c.called if x["op"]], [])
    other.close()
    c.leave(t)


def test_closed(t, _held):
    """The source is closed in the middle."""
    c = Client(t, "closer")
    c.prepare(t, LONG)
    sid = c.copy()["sid"]
    c.until_copied(sid)
    t.equal("CLOSE", c.close_file(c.src, c.src_sid)["status"], n.OK)
    told = c.await_callback(n.CB_OFFLOAD)
    t.equal("CB_OFFLOAD", (told["status"], told["stateid"]), (BAD_STATEID, sid))
    t.check("what was copied is told", 0 < told["count"] < LONG and told["count"] == os.stat(c.dst_path).st_size, told["count"])
    c.leave(t)


def test_many(t, held):
    """As many as a host may have; more are synchronous."""
    c = Client(t, "many")
    c.prepare(t, LONG)
    sids = []
    for _ in range(4 * OF_HOST):
        res = c.copy()
        t.equal("COPY", res["status"], n.OK)
        sids.append(res["sid"])
        if not res["sid"]:
            break
    t.equal("asynchronous ones, and then a synchronous one", (len([s for s in sids if s]), sids[-1]), (OF_HOST, None))
    for sid in sids[:-1]:
        t.equal("OFFLOAD_CANCEL", c.offload(OFFLOAD_CANCEL, sid)["status"], n.OK)
    t.gone("many", held)
    c.leave(t)


def test_export_gone(t, held):
    c = Client(t, "exported")
    c.prepare(t, LONG)
    sid = c.copy()["sid"]
    c.until_copied(sid)
    with open(t.d.top + "/exports") as f:
        was = f.read().splitlines()
    t.d.write_exports([line.replace("127.0.0.0/8", "192.0.2.0/24") for line in was])
    t.d.reload()
    c.await_callback(n.CB_OFFLOAD)
    t.gone("the export is gone", held)
    t.check("it ended in the middle", os.stat(c.dst_path).st_size < LONG)
    t.d.write_exports(was)
    t.d.reload()
    c.close()
    t.remove(c)


def test_restart(t, sig):
    c = Client(t, f"restarted {sig}")
    c.prepare(t, LONG)
    res = c.copy()
    c.until_copied(res["sid"])
    t.equal(f"exit status after {sig!r}", t.d.stop(sig)[0], -sig if sig == signal.SIGKILL else 0)
    t.d.start()
    c.close()
    again = Client(t, f"restarted {sig}")  # the same client, so that nobody waits for it in grace
    t.equal("OFFLOAD_STATUS after a restart", again.offload(OFFLOAD_STATUS, res["sid"], c.dst)["status"], BAD_STATEID)
    t.equal("OFFLOAD_CANCEL after a restart", again.offload(OFFLOAD_CANCEL, res["sid"], c.dst)["status"], BAD_STATEID)
    t.check("the verifier is another", again.last(n.putfh(c.dst), (COMMIT, u64(0) + u32(0)))["verf"] != res["verf"])
    again.close()
    t.remove(c)


def test_bystander(t, _daemon, _root):
    """Others have their turn while copies are under way."""
    c = Client(t, "busy")
    c.prepare(t, LONG)
    sids = [c.copy()["sid"] for _ in range(4)]
    c.until_copied(sids[-1])
    time.sleep(1)
    for sid in sids:
        c.offload(OFFLOAD_CANCEL, sid)
    c.leave(t)


def main():
    t = T()
    with t.d:
        with t.d.connect() as conn:
            root = t.d.root(conn, "rw")
        held = Held(t.d)
        before = held.settled()
        for test in (test_result, test_leases, test_cancel, test_closed, test_many):
            test(t, held)
        watched(t, t.d, root, test_bystander)
        t.equal("what was not given back", held.lost(before), {})
        for sig in (signal.SIGTERM, signal.SIGKILL):
            test_restart(t, sig)
        test_export_gone(t, held)  # a restart would wait for its client
        harness.finish(t, t.d)
    if t.failed:
        print(f"COPIES_SEED={SEED}")
    harness.result(t)


if __name__ == "__main__":
    main()
