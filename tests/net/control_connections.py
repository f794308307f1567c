#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Connections and sessions, by ringnfsctl: over TCP and over RDMA, idle and with calls that a frozen file system holds."""
import json
import os
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import callbacks
import harness
import nfs4client as n4
import rpcclient as r
from callbacks_rdma import Wire
from control import GROUP, OTHERS, USER, Control, ask, connect_as, ctl
from control_state import Called, api, client_id, new_client, tool
from harness import Count
from rdmaclient import CREDITS, INLINE, MSG, Peer, RdmaError
from rpcclient import opaque, u32
from stuck import Loop

EXPORTS = {"one": "rw,insecure,no_root_squash", "two": "rw,insecure,no_root_squash"}
SETTINGS = {"nfs4.lease_time": 10, "nfs4.grace_time": 10}  # a callback is given up after a second
RDMA_PORT = 20049
RDMA_CREDITS = 20
MANY = 700
NO_CHUNKS = u32(0) * 3


class Mute(Called):
    answers = False


def eventually(get, wanted):
    end = time.monotonic() + 60
    while not wanted(got := get()) and time.monotonic() < end:
        time.sleep(0.02)
    return got


def rows(d, **query):
    return api(d, "/v1/connections", **query)[1]["connections"]


def row_of(d, conn):
    """That of a connection over TCP, or None."""
    port = conn.s.getsockname()[1]
    return next((row for row in rows(d) if row["transport"] == "tcp" and row["port"] == port), None)


def sessions(d, c):
    return api(d, "/v1/sessions", client=client_id(c))[1]["sessions"]


def session_of(d, c):
    return sessions(d, c)[0]


def limits(channel):
    """Of channel_attrs4 (RFC 8881 section 18.36): of requests, replies and operations, and slots."""
    _, request, reply, _, operations, requests = channel
    return request, reply, operations, requests


def root_of(d, conn, export):
    return d.root(conn, export)


def test_tcp(t, d):
    with d.connect() as conn:
        root = root_of(d, conn, "one")
        row = row_of(d, conn)
        want = {"transport": "tcp", "address": "127.0.0.1", "local_address": "127.0.0.1", "local_port": d.port, "dialed": False,
                "closing": False, "callbacks": False, "under_way": 0, "errors": {"rpc": 0, "dropped": 0}}
        t.equal("it says", {k: row.get(k) for k in want}, want)
        t.check("no call is under way, no session bound, no RDMA", not {"oldest_ms", "client", "device", "credits"} & set(row), row)
        t.check("its age", 0 <= row["age"] < 60 and 0 <= row["idle"] <= row["age"], row)
        before = row
        fh = conn.nfs(r.CREATE, r.create_args(root, "counted", attrs=r.sattr(mode=0o666)))["fh"]
        conn.nfs(r.WRITE, r.write_args(fh, 0, bytes(100_000)))
        conn.nfs(r.READ, r.read_args(fh, 0, 50_000))
        # What a send has taken is counted behind it.
        row = eventually(lambda: row_of(d, conn), lambda x: x["bytes_out"] - before["bytes_out"] > 50_000)
        t.equal("three calls, all answered", (row["calls"] - before["calls"], row["answered"] - before["answered"]), (3, 3))
        came, went = row["bytes_in"] - before["bytes_in"], row["bytes_out"] - before["bytes_out"]
        t.check("bytes of a WRITE and a READ", 100_000 < came < 102_000 and 50_000 < went < 52_000, (came, went))
        for program in (99999, 100003):
            try:
                conn.call(program, 77, 0)
            except Exception:  # refused, in whatever words
                pass
        t.equal("calls that RPC refuses", row_of(d, conn)["errors"], {"rpc": 2, "dropped": 0})
        time.sleep(1.1)
        row = row_of(d, conn)
        t.check("it is idle", row["idle"] >= 1 and row["age"] >= 1, row)
        conn.nfs(r.NULL)
        t.equal("and is not", row_of(d, conn)["idle"], 0)
        with d.connect() as other:
            other.nfs(r.NULL)
            t.check("each has an id of its own", row_of(d, other)["id"] > row["id"])
            port = other.s.getsockname()[1]
        t.equal("one that has ended is gone", eventually(lambda: [x for x in rows(d) if x["port"] == port], lambda x: not x), [])


def test_bound(t, d):
    """Of a session, and what of it the connections tell."""
    for minor in (1, 2):
        began = time.monotonic()
        c = Called(d.port, f"bound by 4.{minor}", minor)
        granted = c.register()
        c.reclaim_complete()
        c.await_callback()
        row = row_of(d, c.conn)
        t.equal(f"4.{minor}: whose session, and callbacks", (row.get("client"), row["callbacks"]), (client_id(c), True))
        s = session_of(d, c)
        want = {"id": c.session.hex(), "serial": int.from_bytes(c.session[8:12], "big"), "client": client_id(c),
                "client_name": f"bound by 4.{minor}", "version": f"4.{minor}", "flags": []}
        t.equal(f"4.{minor}: the session", {k: s.get(k) for k in want}, want)
        t.equal(f"4.{minor}: its connection", s["connections"], [{"id": row["id"], "transport": "tcp", "address": "127.0.0.1", "port":
                                                                  row["port"], "direction": "both"}])
        t.check(f"4.{minor}: its age", 0 <= s["age"] <= time.monotonic() - began, s["age"])
        for way in ("fore", "back"):
            t.equal(f"4.{minor}: limits of the {way} channel, as CREATE_SESSION gave them",
                    tuple(s[way][k] for k in ("max_request", "max_reply", "max_operations", "slots")), limits(granted[way]))
        t.equal(f"4.{minor}: nothing waits for a slot of the back channel", s["back"]["waiting"], 0)
        t.equal(f"4.{minor}: its callbacks", eventually(lambda: session_of(d, c)["back"]["state"], lambda x: x == "up"), "up")
        c.bare((n4.DESTROY_SESSION, c.session))
        t.equal(f"4.{minor}: destroyed", (sessions(d, c), row_of(d, c.conn).get("client")), ([], None))
        c.close()
    c = new_client(d, "without sessions", 0)
    t.equal("4.0", (sessions(d, c), row_of(d, c.conn).get("client")), ([], None))
    c.close()


def test_slots(t, d):
    c = new_client(d, "slots")
    s = session_of(d, c)
    t.equal("limits", {k: s["fore"][k] for k in ("slots", "busy", "used", "target", "max_request", "max_operations")},
            {"slots": 8, "busy": 0, "used": 1, "target": 8, "max_request": 1 << 20, "max_operations": 16})
    t.check("of replies", 0 < s["fore"]["max_cached"] <= 4096 and 0 < s["fore"]["max_reply"] <= 1 << 20 and s["fore"]["cached"] == 1, s)
    t.equal("no back channel", (s["back"]["state"], s["connections"][0]["direction"]), ("none", "fore"))
    for slot in (5, 2):
        t.equal(f"slot {slot}", c.bare((n4.SEQUENCE, c.session + u32(1) + u32(slot) + u32(5) + u32(1)), (n4.PUTROOTFH, b""))[-1]["status"], n4.OK)
    later = session_of(d, c)
    t.equal("slots up to 5 were used, and keep three replies", (later["fore"]["used"], later["fore"]["cached"]), (6, 3))
    t.check("which take memory", later["memory"] > s["memory"] > 0, (s["memory"], later["memory"]))
    other = r.Conn(d.port)
    first, c.conn = c.conn, other
    t.equal("SEQUENCE over another connection", c.last((n4.PUTROOTFH, b""))["status"], n4.OK)
    want = [("fore", first.s.getsockname()[1]), ("fore", other.s.getsockname()[1])]
    t.equal("both are bound", [(x["direction"], x["port"]) for x in session_of(d, c)["connections"]], want)
    first.close()
    t.equal("the first has ended", eventually(lambda: [x["port"] for x in session_of(d, c)["connections"]], lambda x: len(x) == 1),
            [other.s.getsockname()[1]])
    c.close()
    t.equal("no connection is left", eventually(lambda: session_of(d, c)["connections"], lambda x: not x), [])
    t.check("the session is, and ages", eventually(lambda: session_of(d, c)["age"], lambda x: x >= 1) >= 1)


def test_down(t, d):
    """A client that does not answer its callbacks."""
    c = new_client(d, "mute", 1, Mute)
    t.equal("untried or tried", session_of(d, c)["back"]["state"], "untried")
    t.equal("a slot of the back channel is busy", session_of(d, c)["back"]["busy"], 1)
    s = eventually(lambda: session_of(d, c), lambda s: s["back"]["state"] == "down")
    t.equal("down", (s["back"]["state"], s["flags"], s["back"]["busy"]), ("down", ["cb_path_down", "cb_path_down_session"], 0))
    t.equal("SEQUENCE says the same", callbacks.flags_after(c, callbacks.DOWN), callbacks.DOWN)
    c.answers = True
    c.bind(callbacks.BOTH)
    c.compound((n4.PUTROOTFH, b""))
    c.await_callback(n=2)
    s = eventually(lambda: session_of(d, c), lambda s: s["back"]["state"] == "up")
    t.equal("up again", (s["back"]["state"], s["flags"]), ("up", []))
    c.close()


def test_tool(t, d):
    c = new_client(d, "for people", 1, Called)
    t.equal("connections", [x["port"] for x in tool(d, "connections") if x.get("client") == client_id(c)], [c.conn.s.getsockname()[1]])
    t.equal("sessions", [x["id"] for x in tool(d, "sessions", client_id(c))], [c.session.hex()])
    lines = ctl("--socket", d.path, "connections", "127.0.0.1").stdout.splitlines()
    port = c.conn.s.getsockname()[1]
    line = next(x for x in lines if f"127.0.0.1:{port} " in x)
    t.check("a line of it", lines[0].startswith("PEER ") and f"127.0.0.1:{d.port}" in line and client_id(c) in line and " tcp " in line, lines)
    t.equal("an address in another form", ctl("--socket", d.path, "connections", "::ffff:127.0.0.1").stdout.count("PEER"), 1)
    res = ctl("--socket", d.path, "connections", "127.0.0.9")
    t.equal("of another address", (res.returncode, res.stdout, res.stderr), (1, "", "ringnfsctl: there is no connection of 127.0.0.9\n"))
    text = ctl("--socket", d.path, "sessions").stdout
    for words in (c.session.hex(), client_id(c), "for people", f"127.0.0.1:{port} tcp both", "0, 1 of 8", "1.0 MiB"):
        t.check(f"sessions: {words}", words in text, text)
    for what in ("connections", "sessions"):
        t.equal(f"{what}: too many words", ctl("--socket", d.path, what, "1", "2").returncode, 2)
        t.equal(f"{what}: a wrong place", api(d, f"/v1/{what}", after="x")[0], 400)
        t.equal(f"{what}: a place that nothing is behind", api(d, f"/v1/{what}", after=(1 << 32) - 1)[1], {what: []})
    t.equal("a wrong client", api(d, "/v1/sessions", client="nobody")[0], 400)
    for absent in ("0x1234", "0"):
        t.equal(f"a client that is not there: {absent}", api(d, "/v1/sessions", client=absent)[0], 404)
    t.equal("a wrong address", api(d, "/v1/connections", address="nobody")[0], 400)
    c.close()


def test_readers(t, d):
    """Who may only read does not learn the ids by which sessions are used."""
    c = new_client(d, "secret")
    end = time.monotonic() + 20
    while os.stat(d.path).st_gid != GROUP and time.monotonic() < end:
        time.sleep(0.05)
    with connect_as(d.path, USER, OTHERS, (GROUP,)) as s:
        status, _, body = ask(s, path=f"/v1/sessions?client={client_id(c)}")
        row = json.loads(body)["sessions"][0]
        t.equal("a reader", (status, "id" in row, row["serial"]), (200, False, int.from_bytes(c.session[8:12], "big")))
        t.check("no part of it", c.session.hex()[:16] not in body.decode() and c.session.hex()[24:] not in body.decode())
        t.equal("connections", ask(s, path="/v1/connections")[0], 200)
    c.close()


def test_pages(t, d):
    """More connections and sessions than fit into a page."""
    conns = [d.connect() for _ in range(MANY)]
    for conn in conns:
        conn.nfs(r.NULL)
    t.check("there is more than a page", "after" in api(d, "/v1/connections")[1])
    ports = {conn.s.getsockname()[1] for conn in conns}
    got = [x["port"] for x in tool(d, "connections") if x["port"] in ports]
    t.equal("each is there once", sorted(got), sorted(ports))
    for conn in conns:
        conn.close()
    c = n4.Client(d.port, "many", 1)
    names = {f"many {i}" for i in range(MANY)}
    for name in names:
        c.owner = name.encode()
        if c.register()["status"]:
            raise SystemExit(f"{name} cannot register\n{d.read_log()}")
    t.check("there is more than a page of sessions", "after" in api(d, "/v1/sessions")[1])
    got = [x["client_name"] for x in tool(d, "sessions") if x["client_name"].startswith("many ")]
    t.equal("each session is there once", sorted(got), sorted(names))
    c.close()


class Frozen(threading.Thread):
    """A call that does not end before the file system is thawed."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self.call = call
        self.start()

    def run(self):
        self.result = self.call()


def test_under_way(t, d, loop):
    """The file system of an export does not answer."""
    try:
        with d.connect() as conn:
            c = new_client(d, "waits")
            root, root4 = root_of(d, conn, "two"), c.path(d.exports["two"])
            loop.freeze()
            calls = [Frozen(lambda: conn.nfs(r.CREATE, r.create_args(root, "late", attrs=r.sattr(mode=0o666))))]
            row = eventually(lambda: row_of(d, conn), lambda x: x["under_way"] == 1 and x["oldest_ms"] > 100)
            t.check("under way", row["under_way"] == 1 and row["oldest_ms"] > 100 and row["idle"] == 0, row)
            t.equal("and not answered", row["calls"] - row["answered"], 1)
            calls.append(Frozen(lambda: c.open(root4, b"later", create=True)))
            s = eventually(lambda: session_of(d, c), lambda x: x["fore"]["busy"] == 1)
            t.equal("its slot is busy", s["fore"]["busy"], 1)
            client = eventually(lambda: api(d, "/v1/clients", id=client_id(c))[1]["clients"][0], lambda x: x.get("oldest_ms", 0) > 20)
            t.check("its client's oldest call", client["under_way"] == 1 and client["oldest_ms"] > 20, client)
            older = row_of(d, conn)["oldest_ms"]
            t.check("the oldest call counts", older > row_of(d, c.conn)["oldest_ms"] and older >= row["oldest_ms"])
            loop.thaw()
            for call in calls:
                call.join(60)
            row = row_of(d, conn)
            t.equal("when it is answered", (row["under_way"], "oldest_ms" in row, row["calls"] - row["answered"]), (0, False, 0))
            t.equal("the slot is free", eventually(lambda: session_of(d, c)["fore"]["busy"], lambda x: x == 0), 0)
            c.close()
    finally:
        loop.thaw()


def over_rdma(d):
    return [x for x in rows(d) if x["transport"] == "rdma"]


def rdma_row(d):
    return over_rdma(d)[0]


def refused(peer, message):
    """How the server's transport refuses a message."""
    peer.send(message)
    raw = peer.receive()
    return raw[12:20] == u32(4) + u32(1), raw[12:20] == u32(4) + u32(2)


def test_rdma(t, d, f):
    t.equal("none yet", over_rdma(d), [])
    with d.connect() as conn:
        root = root_of(d, conn, "one")
    p = Peer(f.environment(), before=f.command("client")).connect("127.0.0.1", RDMA_PORT)
    p.nfs(r.GETATTR, opaque(root))
    row = rdma_row(d)
    want = {"transport": "rdma", "address": "127.0.0.1", "local_address": "127.0.0.1", "local_port": RDMA_PORT, "credits": RDMA_CREDITS,
            "credits_used": 0, "inline_in": INLINE, "calls": 1, "answered": 1, "under_way": 0, "dialed": False, "callbacks": False,
            "errors": {"rpc": 0, "dropped": 0, "err_chunk": 0, "err_vers": 0}}
    t.equal("it says", {k: row.get(k) for k in want}, want)
    t.check("a device, and a threshold for replies", row["device"] and 1024 <= row["inline_out"] <= INLINE, row)
    fh = p.nfs(r.CREATE, r.create_args(root, "by rdma", attrs=r.sattr(mode=0o666)))["fh"]
    before = rdma_row(d)
    p.nfs(r.WRITE, r.write_args(fh, 0, bytes(100_000)))
    p.nfs(r.READ, r.read_args(fh, 0, 50_000))
    row = rdma_row(d)
    came, went = row["bytes_in"] - before["bytes_in"], row["bytes_out"] - before["bytes_out"]
    t.check("bytes of Reads and Writes", 100_000 < came < 102_000 and 50_000 < went < 52_000, (came, went))
    call = r.call_message(r.NFS, 3, 0, b"")
    t.equal("another version", refused(p, call[:4] + struct.pack(">III", 9, CREDITS, MSG) + NO_CHUNKS + call), (True, False))
    t.equal("ERR_VERS is counted", rdma_row(d)["errors"]["err_vers"], 1)
    t.equal("chunks of nothing", refused(p, call[:4] + struct.pack(">III", 1, CREDITS, MSG) + u32(7) + NO_CHUNKS + call), (False, True))
    t.equal("ERR_CHUNK is counted", rdma_row(d)["errors"], {"rpc": 0, "dropped": 0, "err_chunk": 1, "err_vers": 1})
    text = ctl("--socket", d.path, "connections").stdout
    for words in (f"rdma {row['device']}", f"0/{RDMA_CREDITS}", "4.0 KiB/4.0 KiB"):
        t.check(f"for people: {words}", words in text, text)
    p.close()
    t.equal("ended", eventually(lambda: over_rdma(d), lambda x: not x), [])


def test_rdma_session(t, d, f):
    class Client(n4.Client):
        back = True

        def _connect(self):
            self.conn = Wire(Peer(f.environment(), before=f.command("client")).connect("127.0.0.1", RDMA_PORT))
            self.conn.on_call = self._on_call

    c = new_client(d, "by rdma", 1, Client)
    row = rdma_row(d)
    t.equal("whose session, and callbacks", (row.get("client"), row["callbacks"]), (client_id(c), True))
    s = session_of(d, c)
    t.equal("the session's connection", [(x["id"], x["transport"], x.get("device"), x["direction"]) for x in s["connections"]],
            [(row["id"], "rdma", row["device"], "both")])
    client = api(d, "/v1/clients", id=client_id(c))[1]["clients"][0]
    t.equal("the client's", {k: client.get(k) for k in ("transport", "device", "inline_in", "inline_out", "credits", "connections")},
            {**{k: row[k] for k in ("transport", "device", "inline_in", "inline_out", "credits")}, "connections": 1})
    c.close()
    t.equal("ended", eventually(lambda: session_of(d, c)["connections"], lambda x: not x), [])


def test_rdma_under_way(t, d, f, loop):
    """As many credits are in use as calls wait."""
    with d.connect() as conn:
        root = root_of(d, conn, "two")
    p = Peer(f.environment(), before=f.command("client")).connect("127.0.0.1", RDMA_PORT)
    loop.freeze()
    try:
        for i in range(3):
            p.send(p.call_for(r.CREATE, r.create_args(root, f"late {i}", attrs=r.sattr(mode=0o666))))
        row = eventually(lambda: rdma_row(d), lambda x: x["credits_used"] == 3 and x["oldest_ms"] > 50)
        t.check("credits in use", row["credits_used"] == row["under_way"] == 3 and row["oldest_ms"] > 50, row)
        p.drop()
        row = eventually(lambda: (over_rdma(d) or [{}])[0], lambda x: x.get("closing"))
        t.check("a connection that has ended, whose calls go on", row.get("closing") and row["under_way"] == 3, row)
    finally:
        loop.thaw()
    t.equal("when they have ended", eventually(lambda: over_rdma(d), lambda x: not x), [])
    p.kill()


def main():
    t = Count()
    settings = {**SETTINGS, "rdma.enabled": "yes", "rdma.port": RDMA_PORT, "rdma.credits": RDMA_CREDITS}
    with fabric.Fabric() as f:
        d = Control(settings, exports=EXPORTS, env=f.environment())
        d.before += f.command("server")
        loop = Loop(d.exports["two"], os.path.join(d.top, "image"))  # in the name space that the daemon is a copy of
        try:
            with d:
                for test in (test_tcp, test_bound, test_slots, test_down, test_tool, test_readers, test_pages):
                    test(t, d)
                test_rdma(t, d, f)
                test_rdma_session(t, d, f)
                test_under_way(t, d, loop)
                test_rdma_under_way(t, d, f, loop)
                harness.finish(t, d)
                loop.close()
        finally:
            if os.path.ismount(loop.folder):
                loop.close()
    harness.result(t)


if __name__ == "__main__":
    main()
