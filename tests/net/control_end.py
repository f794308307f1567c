#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""An administrator ends what clients hold: opens, locks, delegations, whole clients. What the clients are answered, what others get, and
what is asked on the terminal before."""
import os
import pty
import select
import subprocess
import time

import harness
import nfs4client as n4
from control import BINARY, Control, ctl
from control_state import Called, WANT_READ, api, client_id, new_client, nlm_lock, tool
from harness import Count

SETTINGS = {"nfs4.lease_time": 60, "nfs4.grace_time": 60}
ADMIN_REVOKED, SHARE_DENIED, EXPIRED = 10047, 10015, 10011
ADMIN_STATE_REVOKED = 0x20
ENDED = ("lock", "release"), ("open", "close"), ("delegation", "recall")


def on_terminal(d, answer, *args):
    """(exit status, all that the tool says) with a terminal, on which the question is answered."""
    main, side = pty.openpty()
    with subprocess.Popen([BINARY, "-s", d.path, *args], stdin=side, stdout=side, stderr=side, start_new_session=True) as p:
        os.close(side)
        said, asked = b"", False
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if not select.select([main], [], [], 1)[0]:
                continue
            try:
                data = os.read(main, 4096)
            except OSError:
                break  # its side was closed
            if not data:
                break
            said += data
            if b"[y/N]" in said and not asked:
                os.write(main, answer.encode() + b"\n")
                asked = True
        status = p.wait(60)
    os.close(main)
    return status, said.decode(errors="replace").replace("\r\n", "\n")


def opened(c, d, name, **how):
    return c.open(c.path(d.exports["one"]), name, create=True, **how)


def flags(c):
    c.last((n4.PUTROOTFH, b""))
    return c.flags


def test_open_close(t, d):
    for minor in (0, 1, 2):
        name = f"close{minor}".encode()
        path = os.path.join(d.exports["one"], name.decode())
        c, other = new_client(d, f"loses {minor}", minor), new_client(d, f"gets {minor}", minor)
        res, fh = opened(c, d, name, deny=n4.SHARE_BOTH)
        lock = c.lock(fh, res["stateid"])
        res2, fh2 = opened(c, d, name + b".kept")
        t.equal(f"4.{minor}: others are denied", opened(other, d, name)[0]["status"], SHARE_DENIED)
        done = ctl("-s", d.path, "open", "close", "--file", path, "--yes")
        t.equal(f"4.{minor}: closed", (done.returncode, done.stdout), (0, "closed: 1 opens\n"))
        t.equal(f"4.{minor}: READ", c.last(n4.putfh(fh), n4.read(res["stateid"], 0, 10))["status"], ADMIN_REVOKED)
        t.equal(f"4.{minor}: READ by the lock", c.last(n4.putfh(fh), n4.read(lock["stateid"], 0, 10))["status"], ADMIN_REVOKED)
        t.equal(f"4.{minor}: another open stays", c.last(n4.putfh(fh2), n4.read(res2["stateid"], 0, 10))["status"], n4.OK)
        t.equal(f"4.{minor}: others may have it", opened(other, d, name, deny=n4.SHARE_BOTH)[0]["status"], n4.OK)
        rows = tool(d, "opens", "--client", client_id(c))
        t.equal(f"4.{minor}: it is shown as revoked", sorted(r["revoked"] for r in rows), [False, True])
        if minor:
            t.check(f"4.{minor}: SEQUENCE says so", flags(c) & ADMIN_STATE_REVOKED, c.flags)
            t.equal(f"4.{minor}: TEST_STATEID", c.test_stateid(res["stateid"], lock["stateid"]), [ADMIN_REVOKED] * 2)
            t.equal(f"4.{minor}: FREE_STATEID", c.free_stateid(res["stateid"]), n4.OK)
            t.equal(f"4.{minor}: and no more then", flags(c) & ADMIN_STATE_REVOKED, 0)
            t.equal(f"4.{minor}: nor is it shown", len(tool(d, "opens", "--client", client_id(c))), 1)
        again = ctl("-s", d.path, "open", "close", "--client", client_id(c), "--yes")
        t.equal(f"4.{minor}: the rest, by the client", (again.returncode, again.stdout), (0, "closed: 1 opens\n"))
        c.close()
        other.close()
    t.check("it is logged, with the user", d.wait_log(r"user 0: 1 states of clients closed, by the query file="), d.read_log()[-500:])


def test_lock_release(t, d):
    for minor in (0, 1):
        name = f"lock{minor}".encode()
        c, other = new_client(d, f"locks {minor}", minor), new_client(d, f"wants {minor}", minor)
        res, fh = opened(c, d, name)
        lock = c.lock(fh, res["stateid"], offset=0, length=10)
        res2, fh2 = opened(other, d, name)
        t.equal(f"4.{minor}: it is taken", other.lock(fh2, res2["stateid"])["status"], n4.DENIED)
        row = tool(d, "locks", "--client", client_id(c))[0]
        done = ctl("-s", d.path, "lock", "release", row["id"], "--yes")
        t.equal(f"4.{minor}: released", (done.returncode, done.stdout), (0, "released: 1 locks\n"))
        t.equal(f"4.{minor}: others get it", other.lock(fh2, res2["stateid"])["status"], n4.OK)
        t.equal(f"4.{minor}: WRITE by the lock", c.last(n4.putfh(fh), n4.write(lock["stateid"], 0, b"x"))["status"], ADMIN_REVOKED)
        t.equal(f"4.{minor}: WRITE by the open", c.last(n4.putfh(fh), n4.write(res["stateid"], 0, b"x"))["status"], n4.OK)
        if minor:
            t.check("SEQUENCE says so", flags(c) & ADMIN_STATE_REVOKED, c.flags)
            t.equal("FREE_STATEID", c.free_stateid(lock["stateid"]), n4.OK)
            t.equal("and no more then", flags(c) & ADMIN_STATE_REVOKED, 0)
        t.equal(f"4.{minor}: CLOSE", c.close_file(fh, res["stateid"])["status"], n4.OK)
        again = ctl("-s", d.path, "lock", "release", row["id"], "--yes")
        t.equal(f"4.{minor}: it has gone", (again.returncode, again.stdout), (1, "released: 0 locks\n"))
        c.close()
        other.close()
    c = new_client(d, "beside NLM")
    res, fh = opened(c, d, b"nlm")
    with d.connect() as conn:
        t.equal("NLM4_LOCK", nlm_lock(conn, fh, 0, 10), 0)
        t.equal("it is taken", c.lock(fh, res["stateid"], offset=5, length=1)["status"], n4.DENIED)
        done = ctl("-s", d.path, "lock", "release", "--client", "127.0.0.1", "--yes")
        t.equal("that of NFSv3 is released", (done.returncode, done.stdout), (0, "released: 1 locks\n"))
        t.equal("others get it", c.lock(fh, res["stateid"], offset=5, length=1)["status"], n4.OK)
    c.close()


def delegated(t, d, c, name):
    with open(os.path.join(d.exports["two"], name), "wb") as f:
        f.write(b"data")
    res, fh = c.open(c.path(d.exports["two"]), name.encode(), access=n4.SHARE_READ | WANT_READ)
    t.equal(f"{name} is delegated", res.get("delegation"), n4.DELEGATE_READ)
    return res, fh


def test_delegation(t, d):
    c = new_client(d, "delegations", kind=Called)
    res, fh = delegated(t, d, c, "recalled")
    done = ctl("-s", d.path, "delegation", "recall", "--file", os.path.join(d.exports["two"], "recalled"), "--yes")
    t.equal("recalled", (done.returncode, done.stdout), (0, "recalled: 1 delegations\n"))
    recalled = time.monotonic()
    t.check("CB_RECALL", c.await_callback(n4.CB_RECALL))
    row = tool(d, "delegations", "--client", client_id(c))[0]
    t.check("it is shown as recalled", row["recalled"] and not row["revoked"], row)
    time.sleep(1.1)
    waited = tool(d, "delegations", "--client", client_id(c))[0]["recalled_for"]
    t.check("and for how long", 1 <= waited <= time.monotonic() - recalled + 1, waited)
    t.equal("DELEGRETURN", c.delegreturn(fh, res["deleg"]), n4.OK)
    t.equal("and it has gone", tool(d, "delegations"), [])
    res, fh = delegated(t, d, c, "revoked")
    row = tool(d, "delegations", "--client", client_id(c))[0]
    done = ctl("-s", d.path, "delegation", "recall", row["id"], "--revoke", "--yes")
    t.equal("revoked", (done.returncode, done.stdout), (0, "revoked: 1 delegations\n"))
    t.check("SEQUENCE says so", flags(c) & ADMIN_STATE_REVOKED, c.flags)
    t.equal("TEST_STATEID", c.test_stateid(res["deleg"]), [ADMIN_REVOKED])
    t.equal("FREE_STATEID", c.free_stateid(res["deleg"]), n4.OK)
    t.equal("and no more then", flags(c) & ADMIN_STATE_REVOKED, 0)
    t.equal("the open stays", c.last(n4.putfh(fh), n4.read(res["stateid"], 0, 4))["status"], n4.OK)
    c.close()


def test_evict(t, d):
    for minor in (0, 1):
        c, other = new_client(d, f"evicted {minor}", minor), new_client(d, f"stays {minor}", minor)
        res, fh = opened(c, d, b"evicted", deny=n4.SHARE_BOTH)
        done = ctl("-s", d.path, "client", "evict", client_id(c), "--yes")
        t.equal(f"4.{minor}: evicted", (done.returncode, done.stdout), (0, f"evicted: client {client_id(c)}\n"))
        status = c.last(n4.putfh(fh), n4.read(res["stateid"], 0, 10))["status"]
        t.equal(f"4.{minor}: the client is unknown", status, n4.BADSESSION if minor else EXPIRED)
        res2, fh2 = opened(other, d, b"evicted", deny=n4.SHARE_BOTH)
        t.equal(f"4.{minor}: others may have the file", res2["status"], n4.OK)
        again = ctl("-s", d.path, "client", "evict", client_id(c), "--yes")
        t.check(f"4.{minor}: it has gone", again.returncode == 1 and "there is no NFSv4 client" in again.stderr, again)
        was = c.clientid
        t.equal(f"4.{minor}: it registers anew", c.register()["status"], n4.OK)
        t.check(f"4.{minor}: with another id", c.clientid != was)
        t.equal(f"4.{minor}: and goes on", c.reclaim_complete(), n4.OK)
        c.owner_seqid = 0
        t.equal(f"4.{minor}: like others", opened(c, d, b"evicted")[0]["status"], SHARE_DENIED)
        other.close_file(fh2, res2["stateid"])
        c.close()
        other.close()


def test_restart(t, d):
    """A client whose lock was released may not reclaim it, should it not have noticed; nor may one that was evicted."""
    c, gone = new_client(d, "did not notice"), new_client(d, "was evicted")
    res, fh = opened(c, d, b"reclaimed")
    c.lock(fh, res["stateid"], offset=0, length=10)
    opened(gone, d, b"reclaimed")
    t.equal("released", ctl("-s", d.path, "lock", "release", "--client", client_id(c), "--yes").returncode, 0)
    t.equal("evicted", ctl("-s", d.path, "client", "evict", client_id(gone), "--yes").returncode, 0)
    d.process.kill()
    d.process.wait()
    d.start()
    for client in (c, gone):
        client.again()
        client.register()
        t.equal(f"{client.owner.decode()}: a reclaim", client.reclaim_open(fh)["status"], n4.NO_GRACE)
        client.close()


def test_terminal(t, d):
    c = new_client(d, "asked about")
    res, fh = opened(c, d, b"asked")
    path = os.path.join(d.exports["one"], "asked")
    for what, verb in ENDED:
        res2 = subprocess.run([BINARY, "-s", d.path, what, verb, "--file", path], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60)
        t.check(f"{what} {verb} without a terminal", res2.returncode == 2 and "--yes" in res2.stderr, res2)
    res2 = subprocess.run([BINARY, "-s", d.path, "client", "evict", client_id(c)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    t.check("client evict without a terminal", res2.returncode == 2 and "--yes" in res2.stderr, res2)
    for answer in ("n", "", "yess"):
        status, said = on_terminal(d, answer, "open", "close", "--file", path)
        t.check(f"the answer {answer!r}", status == 1 and path in said and client_id(c) in said, (status, said))
    status, said = on_terminal(d, "n", "client", "evict", client_id(c))
    t.check("evict says what is lost", status == 1 and path in said and "opens: 1" in said, (status, said))
    t.equal("it is still there", c.last(n4.putfh(fh), n4.read(res["stateid"], 0, 10))["status"], n4.OK)
    status, said = on_terminal(d, "y", "lock", "release", "--file", path)
    t.check("nothing to release", status == 1 and "no locks" in said, (status, said))
    status, said = on_terminal(d, "y", "open", "close", "--file", path)
    t.check("the answer y", status == 0 and "closed: 1 opens" in said, (status, said))
    t.equal("READ", c.last(n4.putfh(fh), n4.read(res["stateid"], 0, 10))["status"], ADMIN_REVOKED)
    c.close()


def test_wrong(t, d):
    for path in ("/v1/opens/close", "/v1/locks/release", "/v1/delegations/recall"):
        for query, status in (({}, 400), ({"export": "/nowhere"}, 404), ({"id": ""}, 400)):
            got, answer = api(d, path, "POST", **query)
            t.check(f"{path} {query}", got == status and answer["error"], (got, answer))
        got, answer = api(d, path, "POST", id="0x1")
        t.equal(f"{path} of nothing", (got, list(answer.values())), (200, [[]]))
        t.equal(f"GET {path}", api(d, path)[0], 405)
    t.equal("revoke=2", api(d, "/v1/delegations/recall", "POST", revoke="2", id="0x1")[0], 400)
    for query, status in (({}, 400), ({"id": "x"}, 400), ({"id": "0x1234"}, 404)):
        t.equal(f"evict {query}", api(d, "/v1/clients/evict", "POST", **query)[0], status)
    for args in (("open",), ("open", "close"), ("open", "close", "--yes"), ("open", "closes", "0x1"), ("lock", "release", "a", "b"),
                 ("open", "close", "0x1", "--revoke", "--yes"), ("client",), ("client", "evict"), ("client", "evict", "a", "b")):
        res = ctl("-s", d.path, *args)
        t.check(f"wrong use {args}", res.returncode == 2 and res.stderr and not res.stdout, (res.returncode, res.stderr))


def main():
    t = Count()
    with Control(SETTINGS, exports={"one": "rw,insecure,no_root_squash", "two": "rw,insecure,no_root_squash,nfs_only"}) as d:
        for test in (test_open_close, test_lock_release, test_delegation, test_evict, test_terminal, test_wrong, test_restart):
            test(t, d)
        t.equal("the daemon ends well", d.stop()[0], 0)
    harness.result(t)


if __name__ == "__main__":
    main()
