#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The clients, by ringnfsctl clients: who they are, their leases, how much they hold, and what they have done."""
import json
import os
import time

import harness
import nfs4client as n4
import rpcclient as r
from control import Control, ctl
from control_state import WANT_READ, Called, api, client_id, new_client
from harness import Count
from rpcclient import opaque

LEASE = 10
MANY = 700
ADDRESSES = 1500


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
        name, began = f"who by 4.{minor}", time.monotonic()
        c = new_client(d, name, minor)
        row = row_of(d, c)
        want = {"id": client_id(c), "name": name, "version": "4.1" if minor else "4.0", "address": "127.0.0.1", "state": "active",
                "sessions": int(minor > 0), "opens": 0, "locks": 0, "delegations": 0, "uid": 0}
        t.equal(f"4.{minor}", {k: row.get(k) for k in want}, want)
        t.check(f"4.{minor}: its transport", row["netid"].startswith("tcp"), row)
        t.check(f"4.{minor}: its lease", 0 < row["lease_left"] <= LEASE + 1, row)
        t.check(f"4.{minor}: since when", 0 <= row["since"] <= time.monotonic() - began, row["since"])
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


def difference(after, before):
    return {k: after[k] - before.get(k, 0) for k in after if after[k] != before.get(k, 0)}


def test_counts(t, d):
    """Operations, errors and bytes of a client."""
    for minor in (0, 1, 2):
        c = new_client(d, f"counts by 4.{minor}", minor)
        root = c.path(d.exports["one"])
        res, fh = c.open(root, f"counts{minor}".encode(), create=True)
        before = row_of(d, c)
        c.last(n4.putfh(fh), n4.write(res["stateid"], 0, bytes(10_000)))
        c.last(n4.putfh(fh), n4.read(res["stateid"], 1_000, 3_000))
        c.last(n4.putfh(fh), n4.read(res["stateid"], 9_000, 3_000))
        t.check(f"4.{minor}: a READ fails", c.last(n4.putfh(fh), n4.read(bytes(12) + res["stateid"][:4], 0, 1))["status"] != n4.OK)
        row = row_of(d, c)
        t.equal(f"4.{minor}: bytes", [row[k] - before[k] for k in ("bytes_read", "bytes_written")], [3_000 + 1_000, 10_000])
        # 4.0's client is not known before its operation with a stateid, and that of the last call is nobody's.
        want = {"SEQUENCE": 4, "PUTFH": 4, "READ": 3, "WRITE": 1} if minor else {"READ": 2, "WRITE": 1}
        t.equal(f"4.{minor}: operations", difference(row["by_operation"], before["by_operation"]), want)
        t.equal(f"4.{minor}: their sum", row["operations"] - before["operations"], sum(want.values()))
        t.equal(f"4.{minor}: calls, errors", (row["calls"] - before["calls"], row["errors"] - before["errors"]), (4, 1) if minor else (3, 0))
        port = c.conn.s.getsockname()[1]
        t.equal(f"4.{minor}: its connection", (row["connections"], row["transport"], [(e["address"], e["port"]) for e in row["endpoints"]],
                                                row["under_way"]), (1, "tcp", [("127.0.0.1", port)], 0))
        numbers = {x["port"]: x["id"] for x in api(d, "/v1/connections", address="127.0.0.1")[1]["connections"]}
        t.equal(f"4.{minor}: the connection's number", row["endpoints"][0]["id"], numbers.get(port))
        text = ctl("--socket", d.path, "clients", client_id(c)).stdout
        for words in (f"127.0.0.1:{port} tcp", f"{row['by_operation']['READ']} READ", "0 under way", "9.7 KiB", "3.9 KiB"):
            t.check(f"4.{minor}: for people: {words}", words in text, text)
        c.close()
    t.check("in the list, without numbers by operation", "by_operation" not in api(d, "/v1/clients")[1]["clients"][0])


def row_of_nfs3(d, address="127.0.0.1"):
    rows = api(d, "/v1/nfs3_clients", address=address)[1]["nfs3_clients"]
    return rows[0] if rows else None


def test_nfs3(t, d):
    """A client of NFSv3 is an address."""
    address = "127.0.0.7"
    t.equal("nobody yet", row_of_nfs3(d, address), None)
    t.equal("as the tool says", ctl("--socket", d.path, "clients", address).returncode, 1)
    with d.connect(source=(address, 0)) as conn:
        root = d.root(conn, "one")
        t.equal("MNT is not counted", row_of_nfs3(d, address), None)
        fh = conn.nfs(r.CREATE, r.create_args(root, "by nfsv3", attrs=r.sattr(mode=0o666)))["fh"]
        conn.nfs(r.WRITE, r.write_args(fh, 0, bytes(30_000)))
        conn.nfs(r.READ, r.read_args(fh, 10_000, 50_000))
        conn.nfs(r.LOOKUP, opaque(root) + r.name(b"nothing"))
        conn.nfs(r.NULL)
        row = row_of_nfs3(d, address)
        want = {"address": address, "network": False, "connections": 1, "calls": 5, "errors": 1, "bytes_read": 20_000, "bytes_written": 30_000,
                "by_operation": {"NULL": 1, "CREATE": 1, "WRITE": 1, "READ": 1, "LOOKUP": 1}}
        t.equal("what it did", {k: row.get(k) for k in want}, want)
        t.check("just now", row["idle"] < 60, row)
    end = time.monotonic() + 60
    while (row := row_of_nfs3(d, address))["connections"] and time.monotonic() < end:
        time.sleep(0.02)
    t.equal("kept without connections", (row["connections"], row["calls"]), (0, 5))
    with d.connect(source=(address, 0)) as conn:
        conn.nfs(r.NULL)
        t.equal("goes on when it comes again", (row_of_nfs3(d, address)["calls"], row_of_nfs3(d, address)["connections"]), (6, 1))
        text = ctl("--socket", d.path, "clients").stdout
        line = next(x for x in text.splitlines() if x.startswith(address + " "))
        t.check("for people", "29.2 KiB" in line and "19.5 KiB" in line and "NFSV3 CLIENT" in text, text)
        text = ctl("--socket", d.path, "clients", address).stdout
        t.check("with its procedures", "1 LOOKUP" in text and "2 NULL" in text, text)
    rows = json.loads(ctl("--socket", d.path, "--json", "clients").stdout)
    t.check("--json has both kinds", address in [x["address"] for x in rows["nfs3_clients"]] and rows["clients"], rows.keys())
    for query in ({"address": "nobody"}, {"address": "1.2.3"}, {"after": "x"}, {"after": "00" * 19}, {"after": "00" * 21}):
        t.equal(f"wrong: {query}", api(d, "/v1/nfs3_clients", **query)[0], 400)


def sums_of(answer):
    """Over all addresses, those without a row of their own among them."""
    return {k: sum(x[k] for x in [*answer["nfs3_clients"], answer["others"]]) for k in ("calls", "errors", "bytes_read", "bytes_written")}


def test_many_nfs3(t, d):
    """More addresses than are kept: no call is lost in the sum."""
    first = api(d, "/v1/nfs3_clients")[1]
    before = sums_of(first)
    with open(os.path.join(d.exports["one"], "read by many"), "wb") as f:
        f.write(bytes(100))
    with d.connect() as conn:
        fh = conn.nfs(r.LOOKUP, r.diropargs(d.root(conn, "one"), "read by many"))["fh"]
    for i in range(ADDRESSES):
        with d.connect(source=(f"127.1.{i // 250}.{i % 250 + 1}", 0)) as conn:
            conn.nfs(r.NULL)
            if i % 10 == 0:
                conn.nfs(r.READ, r.read_args(fh, 0, 100))
                conn.nfs(r.WRITE, r.write_args(fh, 0, bytes(50)))
                conn.nfs(r.GETATTR, opaque(b"no handle"))
    end = time.monotonic() + 60
    while True:
        all3 = json.loads(ctl("--socket", d.path, "--json", "clients").stdout)
        rows = [x for x in all3["nfs3_clients"] if x["address"].startswith("127.1.")]
        if not any(x["connections"] for x in rows) or time.monotonic() > end:
            break
        time.sleep(0.1)
    t.equal("each address once", len({x["address"] for x in rows}), len(rows))
    t.check("more than a page, and not all", 500 < len(rows) < ADDRESSES, len(rows))
    others = all3["others"]
    t.check("the others", others["clients"] > 0 and others["calls"] >= others["clients"], others)
    some, after = ADDRESSES // 10, sums_of(all3)
    want = {"calls": ADDRESSES + 3 * some + 1, "errors": some, "bytes_read": 100 * some, "bytes_written": 50 * some}
    t.equal("all calls, errors and bytes", {k: after[k] - before[k] for k in want}, want)
    errors, came, went = (others[k] - first["others"][k] for k in ("errors", "bytes_written", "bytes_read"))
    t.check("of which the others have theirs", 0 < errors < some and came > 0 and went > 0, others)
    t.check("for people", "others of NFSv3, without connections: " in ctl("--socket", d.path, "clients").stdout)


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
    t.check("a title and a row", res.returncode == 0 and len(lines) > 2 and lines[0].startswith("ID "), res)
    t.check("which has it all", all(w in lines[1] for w in (client_id(c), "127.0.0.1", "4.1", "active, lease for ", "for people")), lines)
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
        for test in (test_who, test_holds, test_counts, test_lease, test_tool):
            test(t, d)
    with Control({"nfs4.lease_time": 90}) as d:
        test_pages(t, d)
        test_nfs3(t, d)
        test_many_nfs3(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
