#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""What clients hold, by ringnfsctl: opens, locks and delegations with their paths, in pages, of files that are renamed, removed and idle."""
import json
import os
import pty
import socket
import subprocess
import time
import urllib.parse

import harness
import nfs4client as n4
from control import BINARY, Control, ctl
from harness import Count
from rpcclient import opaque, u32, u64

LEASE = 60
SETTINGS = {"nfs4.lease_time": LEASE}
NLM, NLM_LOCK = 100021, 2
WANT_READ = 0x100
MANY = 2500


class Called(n4.Client):
    back = True


def new_client(d, owner, minor=1, kind=n4.Client):
    c = kind(d.port, owner, minor)
    if c.register()["status"] or c.reclaim_complete():
        raise SystemExit(f"{owner} cannot register\n{d.read_log()}")
    if c.back:
        c.await_callback()  # the probe of its path
    return c


def api(d, path, method="GET", **query):
    """(status, answer)"""
    uri = path + ("?" + urllib.parse.urlencode(query) if query else "")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(d.path)
        s.settimeout(120)
        s.sendall(f"{method} {uri} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
        head, _, body = b"".join(iter(lambda: s.recv(1 << 16), b"")).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def tool(d, *args):
    """The rows that the tool gives for programs."""
    res = ctl("--socket", d.path, "--json", *args)
    if res.returncode:
        raise SystemExit(f"{args}: {res.returncode} {res.stderr}")
    return json.loads(res.stdout)[args[0]]


def nlm_lock(conn, fh, offset, length, host=b"host.example"):
    lock = opaque(host) + opaque(fh) + opaque(b"7@host") + u32(7) + u64(offset) + u64(length)
    x = conn.call(NLM, 4, NLM_LOCK, opaque(b"") + u32(0) + u32(1) + lock + u32(0) + u32(1))
    x.opaque()
    return x.u32()


def client_id(c):
    return f"0x{c.clientid:016x}"


def test_opens(t, d):
    path = os.path.join(d.exports["one"], "file")
    for minor in (0, 1, 2):
        c = new_client(d, f"opens by 4.{minor}", minor)
        root = c.path(d.exports["one"])
        res, fh = c.open(root, b"file", create=True, access=n4.SHARE_READ, deny=0)
        rows = tool(d, "opens", "--client", client_id(c))
        t.equal(f"4.{minor}: one open", len(rows), 1)
        row = rows[0]
        want = {"path": path, "removed": False, "export": d.exports["one"], "client": client_id(c), "client_name": f"opens by 4.{minor}",
                "owner": "owner", "access": "read", "deny": "none", "revoked": False, "version": "4.1" if minor else "4.0"}
        t.equal(f"4.{minor}: it says", {k: row.get(k) for k in want}, want)
        t.equal(f"4.{minor}: its id is the end of the stateid", row["id"], "0x" + res["stateid"][-8:].hex())
        t.check(f"4.{minor}: its age", 0 <= row["age"] < 600, row)
        c.close_file(fh, res["stateid"])
        t.equal(f"4.{minor}: closed", tool(d, "opens", "--client", client_id(c)), [])
        c.close()


def test_paths(t, d):
    """The names that files have now, whoever has changed them."""
    c = new_client(d, "paths")
    one = d.exports["one"]
    root = c.path(one)
    os.makedirs(os.path.join(one, "dir"), exist_ok=True)
    sub = c.path(one + "/dir")
    res, fh = c.open(sub, "na\u00efve".encode(), create=True)
    c.open(sub, b"b\xff\x1b[31m", create=True)

    def paths():
        return sorted((os.path.relpath(r["path"], one), r["removed"]) for r in tool(d, "opens", "--client", client_id(c)))

    t.equal("below a directory, any bytes", paths(), [("dir/b\\xff\\x1b[31m", False), ("dir/na\u00efve", False)])
    res = ctl("-s", d.path, "opens", "--client", client_id(c))
    t.check("a terminal gets no control characters", "\\x1b" in res.stdout and "\x1b" not in res.stdout, res.stdout)
    os.rename(os.path.join(one, "dir"), os.path.join(one, "moved"))
    t.equal("renamed by a local process", paths(), [("moved/b\\xff\\x1b[31m", False), ("moved/na\u00efve", False)])
    os.rename(os.path.join(one, "moved", "na\u00efve"), os.path.join(one, "plain"))
    t.check("by a file's path", len(tool(d, "opens", "--file", os.path.join(one, "plain"))) == 1)
    t.equal("not by its old one", ctl("--socket", d.path, "opens", "--file", os.path.join(one, "moved", "na\u00efve")).returncode, 1)
    c.last(n4.putfh(root), (n4.REMOVE, opaque(b"plain")))
    t.equal("removed by its client", paths(), [("moved/b\\xff\\x1b[31m", False), ("plain", True)])
    t.check("for people", "plain (removed)" in ctl("-s", d.path, "opens").stdout)
    t.equal("its data are there", c.last(n4.putfh(fh), n4.getattr_op())["status"], n4.OK)
    # Nodes that nobody uses are closed after ten seconds, and open files get their descriptors.
    end = time.monotonic() + 60
    while api(d, "/v1/status")[1]["held"]["file_fds"] < 2 and time.monotonic() < end:
        time.sleep(0.2)
    t.equal("when nodes are closed", (api(d, "/v1/status")[1]["held"]["file_fds"], paths()),
            (2, [("moved/b\\xff\\x1b[31m", False), ("plain", True)]))
    c.close()


def on_terminal(d, *args):
    """The bytes that the tool writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([BINARY, "-s", d.path, *args], stdout=theirs) as p:
        os.close(theirs)
        data = b""
        try:
            while piece := os.read(ours, 1 << 16):
                data += piece
        except OSError:  # EIO: nobody has the other end any more
            pass
    os.close(ours)
    return p.returncode, data


def test_terminal(t, d):
    """Names of files are the clients'. U+009B begins a command of the terminal, as ESC [ does."""
    c = new_client(d, "terminal")
    c.open(c.path(d.exports["one"]), b"c\xc2\x9b31m", create=True)
    for args in (["opens"], ["--json", "opens"]):
        rc, text = on_terminal(d, *args, "--client", client_id(c))
        t.check(f"{args} to a terminal", rc == 0 and b"31m" in text and not any(b in text for b in (b"\x1b", b"\xc2\x9b")), (rc, text))
    rows = json.loads(on_terminal(d, "--json", "opens", "--client", client_id(c))[1])["opens"]
    t.equal("the name is the same", os.path.basename(rows[0]["path"]), "c\x9b31m")
    c.close()


def common(d, rows):
    """What locks and delegations have in common with opens, and whether their ages are some."""
    names = ("client", "client_name", "version", "path", "removed", "export", "export_id", "handle", "revoked")
    return [[r.get(k) for k in names] for r in rows], all(0 <= r["age"] < 600 for r in rows if r["version"] != "3")


def told(d, c, export, name, fh):
    """The same as it should be, of a 4.1 client."""
    number = next(e["id"] for e in api(d, "/v1/exports")[1]["exports"] if e["path"] == d.exports[export])
    handle = next(r["handle"] for r in tool(d, "opens", "--client", client_id(c)))
    return [client_id(c), c.owner.decode(), "4.1", os.path.join(d.exports[export], name), False, d.exports[export], number,
            handle if handle in fh.hex() else "no part of the file's", False]


def test_locks(t, d):
    path = os.path.join(d.exports["one"], "locked")
    c = new_client(d, "locks")
    res, fh = c.open(c.path(d.exports["one"]), b"locked", create=True)
    t.equal("LOCK", c.lock(fh, res["stateid"], offset=5, length=10)["status"], n4.OK)
    t.equal("LOCK to the end", c.lock(fh, res["stateid"], kind=1, offset=(1 << 63) + 5)["status"], n4.OK)
    with d.connect() as other:
        t.equal("NLM4_LOCK", nlm_lock(other, fh, 100, 50), 0)
        rows = tool(d, "locks", "--file", path)
        t.equal("versions", sorted(r["version"] for r in rows), ["3", "4.1", "4.1"])
        both = [g for r in rows if r["version"] != "3" for g in r["ranges"]]
        t.equal("whose, and where", common(d, [r for r in rows if r["version"] != "3"]), ([told(d, c, "one", "locked", fh)] * 2, True))
        t.equal("numbers of ranges", [r["ranges_total"] for r in rows], [len(r["ranges"]) for r in rows])
        t.check("of NFSv4", {"type": "write", "offset": 5, "length": 10} in both and
                {"type": "read", "offset": str((1 << 63) + 5), "length": None} in both, both)
        nlm = tool(d, "locks", "--client", "127.0.0.1")
        t.equal("by an address: those of NFSv3", [(r["client_name"], r["owner"], r["process"], r["path"], r["ranges"]) for r in nlm],
                [("host.example", "7@host", 7, path, [{"type": "write", "offset": 100, "length": 50}])])
        text = ctl("-s", d.path, "locks").stdout
        for words in ("5-14", f"{(1 << 63) + 5}-", "100-149", "host.example", "write", path):
            t.check(f"for people: {words}", words in text, text)
    t.equal("locks are no opens", len(tool(d, "opens", "--file", path)), 1)
    c.close()


def test_delegations(t, d):
    c = new_client(d, "delegations", kind=Called)
    root = c.path(d.exports["two"])
    with open(os.path.join(d.exports["two"], "given"), "wb") as f:
        f.write(b"data")
    res, fh = c.open(root, b"given", access=n4.SHARE_READ | WANT_READ)
    t.equal("it has one", res.get("delegation"), n4.DELEGATE_READ)
    rows = tool(d, "delegations", "--export", d.exports["two"])
    t.equal("it is shown", [(r["path"], r["kind"], r["recalled"], r["id"]) for r in rows],
            [(os.path.join(d.exports["two"], "given"), "read", False, "0x" + res["deleg"][-8:].hex())])
    t.equal("whose, and where", common(d, rows), ([told(d, c, "two", "given", fh)], True))
    t.equal("other exports have none", tool(d, "delegations", "--export", d.exports["one"]), [])
    c.close_file(fh, res["stateid"])
    t.equal("the open has gone", tool(d, "opens", "--client", client_id(c)), [])
    t.equal("DELEGRETURN", c.delegreturn(fh, res["deleg"]), n4.OK)
    t.equal("returned", tool(d, "delegations"), [])
    c.close()


def test_pages(t, d):
    """Many opens, while a client goes on."""
    clients = [new_client(d, f"many {n}") for n in range(2)]
    for c in clients:
        root = c.path(d.exports["two"])
        for n in range(MANY):
            c.open(root, f"many{n}".encode(), create=True)
    rows = tool(d, "opens", "--export", d.exports["two"])
    t.equal("the tool asks for all pages", len(rows), 2 * MANY)
    t.equal("each open once", len({r["id"] for r in rows}), 2 * MANY)
    status, page = api(d, "/v1/opens")
    t.check("a page", status == 200 and len(page["opens"]) == 1000 and page["after"], (status, len(page["opens"])))
    seen, after = [], {}
    while True:
        page = api(d, "/v1/opens", limit=700, client=client_id(clients[1]), **after)[1]
        seen += page["opens"]
        clients[0].getattr(root)
        if "after" not in page:
            break
        after = {"after": page["after"]}
    t.equal("pages of one client", (len(seen), {r["client"] for r in seen}), (MANY, {client_id(clients[1])}))
    t.equal("one file of many", len(tool(d, "opens", "--file", os.path.join(d.exports["two"], "many77"))), 2)
    for c in clients:
        c.close()


def test_wrong(t, d):
    for query, status in (({"limit": "0"}, 400), ({"limit": "5001"}, 400), ({"limit": "x"}, 400), ({"after": "x"}, 400),
                          ({"after": "1.2.3"}, 400), ({"after": "n1"}, 400), ({"file": "relative"}, 400), ({"file": "/" + "a" * 4500}, 400),
                          ({"client": ""}, 400), ({"client": "0xyz"}, 400), ({"client": "nobody"}, 400), ({"client": "0"}, 400),
                          ({"client": "1.2.3"}, 400), ({"client": "0x1"}, 404), ({"client": "1"}, 404), ({"client": "192.0.2.1"}, 404), ({"export": "/nowhere"}, 404)):
        for what in ("opens", "locks", "delegations"):
            got, answer = api(d, f"/v1/{what}", **query)
            t.check(f"{what} {query}", got == status and answer["error"], (got, answer))
    for query in ({"after": "ffffffff.ffffffff"}, {"after": "nffffffff.ffffffffffffffff"}, {"file": "/nowhere"}):
        t.equal(f"nothing: {query}", api(d, "/v1/opens", **query), (200, {"opens": []}))
    for args in (("opens", "word"), ("opens", "--file"), ("opens", "--none"), ("locks", "--file=a", "--file=b")):
        res = ctl("-s", d.path, *args)
        t.check(f"wrong use {args}", res.returncode == 2 and res.stderr and not res.stdout, (res.returncode, res.stderr))


def main():
    t = Count()
    with Control(SETTINGS, exports={"one": "rw,insecure,no_root_squash", "two": "rw,insecure,no_root_squash,nfs_only"}) as d:
        for test in (test_opens, test_paths, test_terminal, test_locks, test_delegations, test_pages, test_wrong):
            test(t, d)
        t.equal("the daemon ends well", d.stop()[0], 0)
    harness.result(t)


if __name__ == "__main__":
    main()
