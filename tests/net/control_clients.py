#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The NFSv4 clients, by ringnfsctl clients: who they are, their leases, and how much they hold."""
import json
import os
import time

import harness
import nfs4client as n4
from control import Control, ctl
from control_state import WANT_READ, Called, api, client_id, new_client
from harness import Count

LEASE = 10
MANY = 700


def row_of(d, c):
    status, answer = api(d, "/v1/clients", id=client_id(c))
    return answer["clients"][0] if status == 200 and answer["clients"] else None


def await_row(d, c, wanted):
    end = time.monotonic() + 60
    while (row := row_of(d, c)) and not wanted(row) and time.monotonic() < end:
        time.sleep(0.1)
    return row


def test_who(t, d):
    for minor in (0, 1, 2):
        name = f"who by 4.{minor}"
        c = new_client(d, name, minor)
        row = row_of(d, c)
        want = {"id": client_id(c), "name": name, "version": "4.1" if minor else "4.0", "address": "127.0.0.1", "state": "active",
                "sessions": int(minor > 0), "opens": 0, "locks": 0, "delegations": 0, "uid": 0}
        t.equal(f"4.{minor}", {k: row.get(k) for k in want}, want)
        t.check(f"4.{minor}: its transport", row["netid"].startswith("tcp"), row)
        t.check(f"4.{minor}: its lease", 0 < row["lease_left"] <= LEASE + 1, row)
        res, fh = c.open(c.path(d.exports["one"]), b"held", create=True)
        t.equal(f"4.{minor}: an open", row_of(d, c)["opens"], 1)
        c.close_file(fh, res["stateid"])
        t.equal(f"4.{minor}: none after its CLOSE", row_of(d, c)["opens"], 0)
        c.close()
    c = n4.Client(d.port, "odd", 1)
    c.owner = b"a\x1b[2Jb\xff"
    c.register()
    t.equal("a name of odd bytes", row_of(d, c)["name"], "a\\x1b[2Jb\\xff")
    c.close()


def holds(d, c):
    row = row_of(d, c)
    return row["opens"], row["locks"], row["delegations"]


def test_holds(t, d):
    """How much is counted follows what happens to it."""
    for minor in (1, 2):
        c = new_client(d, f"holds by 4.{minor}", minor)
        root = c.path(d.exports["one"])
        files = [c.open(root, f"holds{minor}{i}".encode(), create=True) for i in range(3)]
        (res, fh), (other, otherfh) = files[:2]
        t.equal(f"4.{minor}: three opens", holds(d, c), (3, 0, 0))
        lock = c.lock(fh, res["stateid"], offset=0, length=10)
        c.lock(otherfh, other["stateid"])
        t.equal(f"4.{minor}: two locks", holds(d, c), (3, 2, 0))
        lock = c.unlock(fh, lock["stateid"], 2, 3)
        t.equal(f"4.{minor}: one in two parts", holds(d, c), (3, 2, 0))
        c.unlock(fh, lock["stateid"])
        t.equal(f"4.{minor}: unlocked", holds(d, c), (3, 1, 0))
        c.close_file(fh, res["stateid"])
        t.equal(f"4.{minor}: closed", holds(d, c), (2, 1, 0))
        api(d, "/v1/locks/release", "POST", client=client_id(c))
        t.equal(f"4.{minor}: its lock is released", holds(d, c), (2, 0, 0))
        api(d, "/v1/opens/close", "POST", client=client_id(c))
        t.equal(f"4.{minor}: its opens are revoked", holds(d, c), (0, 0, 0))
        c.close()
    c = new_client(d, "delegations", kind=Called)
    with open(os.path.join(d.exports["one"], "delegated"), "wb") as f:
        f.write(b"data")
    res, fh = c.open(c.path(d.exports["one"]), b"delegated", access=n4.SHARE_READ | WANT_READ)
    t.equal("an open and a delegation", (res.get("delegation"), holds(d, c)), (n4.DELEGATE_READ, (1, 0, 1)))
    c.delegreturn(fh, res["deleg"])
    t.equal("returned", holds(d, c), (1, 0, 0))
    c.close()


def test_lease(t, d):
    """A client that is silent is kept as long as nobody wants what it holds."""
    c, other = new_client(d, "silent", 1), new_client(d, "wants it", 1)
    root = c.path(d.exports["one"])
    c.open(root, b"wanted", create=True, access=n4.SHARE_BOTH, deny=n4.SHARE_BOTH)
    t.check("it becomes a courtesy client", (row := await_row(d, c, lambda r: r["state"] == "courtesy"))["state"] == "courtesy", row)
    t.check("which has no lease, and its open", "lease_left" not in row and row["opens"] == 1, row)
    other = new_client(d, "wants it now", 1)
    t.check("somebody else opens the file", other.open(root, b"wanted", access=n4.SHARE_READ)[0]["status"] in (n4.OK, n4.DELAY))
    row = await_row(d, c, lambda r: r["state"] == "expired")
    t.check("it has lost what it held", row is None or (row["state"], row["opens"]) == ("expired", 0), row)
    c.close()
    other.close()


def test_tool(t, d):
    c = new_client(d, "for people", 1)
    res = ctl("--socket", d.path, "clients", client_id(c))
    lines = res.stdout.splitlines()
    t.check("a title and a row", res.returncode == 0 and len(lines) == 2 and lines[0].startswith("ID "), res)
    t.check("which has it all", all(w in lines[-1] for w in (client_id(c), "127.0.0.1", "4.1", "active, lease for ", "for people")), lines)
    res = ctl("--socket", d.path, "clients", "0x1234")
    t.check("a client that is not there", res.returncode == 1 and "no client 0x1234" in res.stderr, res)
    res = ctl("--socket", d.path, "clients", "nobody")
    t.check("no id", res.returncode == 1 and "a client's id is expected" in res.stderr, res)
    t.equal("too many words", ctl("--socket", d.path, "clients", "1", "2").returncode, 2)
    t.equal("a wrong place", api(d, "/v1/clients", after="x")[0], 400)
    c.close()


def test_pages(t, d):
    """More clients than fit into a page: one connection registers them."""
    c = n4.Client(d.port, "many", 0)
    names = {f"many {i}" for i in range(MANY)}
    for name in names:
        c.owner = name.encode()
        if c.register()["status"]:
            raise SystemExit(f"{name} cannot register\n{d.read_log()}")
    t.check("there is more than a page", "after" in api(d, "/v1/clients")[1])
    res = ctl("--socket", d.path, "--json", "clients")
    got = [row["name"] for row in json.loads(res.stdout)["clients"] if row["name"].startswith("many ")]
    t.equal("each is there once", sorted(got), sorted(names))
    c.close()


def main():
    t = Count()
    with Control({"nfs4.lease_time": LEASE}) as d:
        for test in (test_who, test_holds, test_lease, test_tool):
            test(t, d)
    with Control({"nfs4.lease_time": 90}) as d:
        test_pages(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
