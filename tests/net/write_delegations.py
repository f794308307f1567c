#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Write delegations over TCP: given, refused with the reason, written by, asked for attributes (CB_GETATTR), recalled, returned, never
returned, claimed, reclaimed after a restart; holders whose answers are none."""
import os
import signal
import time

import harness
import nfs4client as n4
import rpcclient as r
from delegations import (CONTENTION, IS_DIR, LEASE, NOT_SUPP_DOWNGRADE, NOT_SUPP_UPGRADE, OPTIONS, RESOURCE, SETTINGS, SHARED,
                         WANT_ANY, WANT_NO, WANT_READ, WANT_WRITE, WRITE_NOT_SUPP, Called, Other, make, new_client)
from harness import Count, Daemon
from rpcclient import opaque, u32, u64

XOR, NO_OPEN = 0x200000, 0x10  # want of OPEN, and flag of its result (RFC 9754)
SIZE_3 = u32(1) + u32(1 << n4.SIZE) + opaque(u64(3))  # fattr4


def path_of(d, name):
    return os.path.join(d.exports["one"], name)


def delegated(t, d, c, name, access=n4.SHARE_BOTH, create=False):
    """A file that the client has a write delegation of: (directory, handle, stateid of the open, of the delegation, change). A file
    may share the memory of recalls with others, and gets none for a while."""
    root = c.path(d.exports["one"])
    end = time.monotonic() + 4 * LEASE
    while True:
        if create:
            if os.path.exists(path_of(d, name)):
                os.remove(path_of(d, name))
        else:
            make(d, name)
        res, fh = c.open(root, name, create=create, access=access)
        if res.get("delegation") or time.monotonic() > end:
            break
        c.close_file(fh, res["stateid"])
        time.sleep(0.5)
    if not t.equal(f"{name} is delegated", res.get("delegation"), n4.DELEGATE_WRITE):
        raise SystemExit(f"{res}\n{d.read_log()}")
    return root, fh, res["stateid"], res["deleg"], c.getattr(fh)["change"]


def asked(c, n=1):
    return c.await_callback(n4.CB_GETATTR, n)


def test_given(t, d):
    for minor in (1, 2):
        c = new_client(d, f"writer{minor}", minor)
        root, fh, stateid, deleg, _ = delegated(t, d, c, f"given{minor}")
        t.equal("CLOSE", c.close_file(fh, stateid)["status"], n4.OK)
        t.equal(f"4.{minor} READ by the delegation", c.last(n4.putfh(fh), n4.read(deleg, 0, 100)).get("data"), b"before")
        t.equal("WRITE by it", c.last(n4.putfh(fh), n4.write(deleg, 0, b"AFTER!!")).get("count"), 7)
        t.equal("SETATTR of the size by it", c.last(n4.putfh(fh), (n4.SETATTR, deleg + SIZE_3))["status"], n4.OK)
        with open(path_of(d, f"given{minor}"), "rb") as f:
            t.equal("the file", f.read(), b"AFT")
        res, fh2 = c.open(root, f"given{minor}", access=n4.SHARE_BOTH | WANT_ANY)
        t.equal("a second one", (res["delegation"], res["why"]), (n4.DELEGATE_NONE_EXT, CONTENTION))
        t.equal("CLOSE of that", c.close_file(fh2, res["stateid"])["status"], n4.OK)
        t.equal("its own LOOKUP and GETATTR", c.last(n4.putfh(root), n4.lookup(f"given{minor}"), n4.getattr_op())["size"], 3)
        t.equal("DELEGRETURN", c.delegreturn(fh, deleg), n4.OK)
        t.equal("WRITE after it", c.last(n4.putfh(fh), n4.write(deleg, 0, b"x"))["status"], n4.BAD_STATEID)
        t.equal("no callback", [x for x in c.called if x["op"] is not None], [])
        c.close()


def test_rules(t, d):
    c, other = new_client(d, "rules"), new_client(d, "in the way")
    root = c.path(d.exports["one"])
    for name in ("rules", "read", "write", "taken", "set-id"):
        make(d, name)

    def get(name, access, **kw):
        res, fh = c.open(root, name, access=access, **kw)
        return fh, res["stateid"], res.get("deleg"), (res["delegation"], res.get("why"))

    def check(what, name, access, want, **kw):
        fh, stateid, deleg, got = get(name, access, **kw)
        t.equal(what, got, want)
        if deleg:
            c.delegreturn(fh, deleg)
        c.close_file(fh, stateid)

    res, fh = c.open(root, "rules", access=n4.SHARE_BOTH)
    t.equal("space and rights", (res["limit"], res["recalled"], res["ace"]), ((1, 0), False, (0, 0, 0, b"EVERYONE@")))
    c.delegreturn(fh, res["deleg"])
    c.close_file(fh, res["stateid"])
    given = (n4.DELEGATE_WRITE, None)
    check("an OPEN that only writes", "rules", n4.SHARE_WRITE, given)
    check("one that reads, and wants to write", "rules", n4.SHARE_READ | WANT_WRITE, given)
    check("any, by one that writes", "rules", n4.SHARE_BOTH | WANT_ANY, given)
    check("any, by one that reads", "rules", n4.SHARE_READ | WANT_ANY, (n4.DELEGATE_READ, None))
    check("to read, by one that writes", "rules", n4.SHARE_BOTH | WANT_READ, (n4.DELEGATE_READ, None))
    check("not wanted", "rules", n4.SHARE_BOTH | WANT_NO, (n4.DELEGATE_NONE_EXT, 0))
    check("a file that it makes", "made", n4.SHARE_BOTH, given, create=True)
    os.chmod(path_of(d, "set-id"), 0o4755)
    check("a file with set-id bits", "set-id", n4.SHARE_BOTH | WANT_ANY, (n4.DELEGATE_NONE_EXT, CONTENTION))

    theirs, their_fh = other.open(root, "taken", access=n4.SHARE_READ | WANT_NO)
    check("somebody reads it", "taken", n4.SHARE_BOTH | WANT_ANY, (n4.DELEGATE_NONE_EXT, CONTENTION))
    other.close_file(their_fh, theirs["stateid"])

    fh, _, deleg, got = get("read", n4.SHARE_READ)
    t.equal("a read delegation", got, (n4.DELEGATE_READ, None))
    t.equal("does not become one to write", get("read", n4.SHARE_BOTH | WANT_WRITE)[3], (n4.DELEGATE_NONE_EXT, NOT_SUPP_UPGRADE))
    t.equal("and stays", c.delegreturn(fh, deleg), n4.OK)
    fh, _, deleg, got = get("write", n4.SHARE_BOTH)
    t.equal("a write delegation", got, given)
    t.equal("does not become one to read", get("write", n4.SHARE_READ | WANT_READ)[3], (n4.DELEGATE_NONE_EXT, NOT_SUPP_DOWNGRADE))
    t.equal("and stays, too", c.delegreturn(fh, deleg), n4.OK)

    old = new_client(d, "minor 0", 0, n4.Client)
    res, _ = old.open(root, "rules", access=n4.SHARE_BOTH)
    t.equal("4.0", res["delegation"], n4.DELEGATE_NONE)
    for x in (c, other, old):
        x.close()


def test_of_another_user(t, d):
    """The right to read does not come with an open to write; nor the right to write with one to read."""
    c = new_client(d, "a user's")
    root = c.path(d.exports["one"])
    c.cred = r.auth_sys(uid=1000, gid=1000)
    for name, mode, access, want in (("may write", 0o622, n4.SHARE_WRITE, n4.DELEGATE_NONE_EXT),
                                     ("may read", 0o644, n4.SHARE_READ, n4.DELEGATE_NONE_EXT),
                                     ("may both", 0o666, n4.SHARE_WRITE, n4.DELEGATE_WRITE)):
        make(d, name)
        os.chmod(path_of(d, name), mode & 0o662 if name == "may write" else mode)
        res, _ = c.open(root, name, access=access | WANT_WRITE)
        t.equal(name, (res["status"], res.get("delegation")), (n4.OK, want))
        if want == n4.DELEGATE_NONE_EXT:
            t.equal("the reason", res["why"], RESOURCE)
    c.close()


def test_want(t, d):
    c = new_client(d, "want")
    root = c.path(d.exports["one"])
    make(d, "want")
    _, fh = c.open(root, "want", access=n4.SHARE_READ | WANT_NO)

    def want(fh, bits, claim=u32(n4.CLAIM_FH)):
        res = c.last(n4.putfh(fh), (n4.WANT_DELEGATION, u32(bits) + claim))
        return res["status"], res.get("delegation"), res.get("why"), res.get("deleg")

    t.equal("of a directory", want(root, WANT_WRITE), (n4.OK, n4.DELEGATE_NONE_EXT, IS_DIR, None))
    status, kind, _, deleg = want(fh, WANT_WRITE)
    t.equal("to write", (status, kind), (n4.OK, n4.DELEGATE_WRITE))
    t.equal("WRITE by it", c.last(n4.putfh(fh), n4.write(deleg, 0, b"x")).get("count"), 1)
    t.equal("again", want(fh, WANT_WRITE), (n4.OK, n4.DELEGATE_NONE_EXT, CONTENTION, None))
    t.equal("DELEGRETURN", c.delegreturn(fh, deleg), n4.OK)
    status, kind, _, deleg = want(fh, WANT_ANY)
    t.equal("any", (status, kind), (n4.OK, n4.DELEGATE_READ))
    t.equal("DELEGRETURN of that", c.delegreturn(fh, deleg), n4.OK)
    c.cred = r.auth_sys(uid=1000, gid=1000)
    os.chmod(path_of(d, "want"), 0o644)
    t.equal("a user who may not write", want(fh, WANT_WRITE), (n4.OK, n4.DELEGATE_NONE_EXT, RESOURCE, None))
    c.close()


def test_attributes(t, d):
    """Others see the size that the holder has, and that it has changed the file."""
    holder, other, old, v3 = new_client(d, "holder"), new_client(d, "other"), new_client(d, "other0", 0, n4.Client), d.connect()
    root, fh, _, deleg, change = delegated(t, d, holder, "attributes")
    before = os.stat(path_of(d, "attributes"))

    holder.cb_attrs = n4.held_attrs(change, 6)
    got = Other(lambda: other.getattr(fh))
    told = asked(holder)
    t.equal("CB_GETATTR", (told["fh"], told["wants"]), (fh, [1 << n4.CHANGE | 1 << n4.SIZE]))
    t.equal("it refers to the OPEN", [session for session, _ in told["referring"]], [holder.session])
    t.equal("GETATTR", got.end(), n4.OK)
    t.equal("an unchanged file", (got.result["change"], got.result["size"], got.asked), (change, 6, 1))

    last = change
    for i, (what, attrs) in enumerate((("data", (change + 1, 6)), ("data, again", (change + 1, 6)), ("size", (change, 4711)))):
        holder.cb_attrs = n4.held_attrs(*attrs)
        got = Other(lambda: other.getattr(fh))
        asked(holder, 2 + i)
        t.equal(f"changed {what}", (got.end(), got.result["size"]), (n4.OK, attrs[1]))
        t.check("another change attribute", got.result["change"] > last, (got.result["change"], last))
        mtime = got.result["mtime"]
        t.check("a later time", mtime[0] * 10**9 + mtime[1] > before.st_mtime_ns, (mtime, before.st_mtime_ns))
        last = got.result["change"]
    with open(path_of(d, "attributes"), "rb") as f:
        t.equal("the file itself", f.read(), b"before")

    got = Other(lambda: old.getattr(fh))
    asked(holder, 5)
    t.equal("4.0", (got.end(), got.result["size"]), (n4.OK, 4711))
    same = (n4.VERIFY, n4.bitmap(n4.SIZE) + opaque(u64(4711)))
    got = Other(lambda: other.last(n4.putfh(fh), same))
    asked(holder, 6)
    t.equal("VERIFY", got.end(), n4.OK)
    got = Other(lambda: other.last(n4.putfh(root), n4.lookup("attributes"), n4.getattr_op()))
    asked(holder, 7)
    t.equal("behind LOOKUP", (got.end(), got.result["size"]), (n4.OK, 4711))
    t.equal("NFSv3 sees the server's", v3.nfs(r.GETATTR, opaque(fh3(v3, d, "attributes")))["status"], r.OK)
    t.equal("the holder's own", holder.getattr(fh)["size"], 6)
    t.equal("WRITE", holder.last(n4.putfh(fh), n4.write(deleg, 6, b" and after")).get("count"), 10)
    t.equal("DELEGRETURN", holder.delegreturn(fh, deleg), n4.OK)
    res = other.getattr(fh)
    t.equal("after it", (res["size"], len(holder.called) - 1), (16, 7))
    t.check("the change attribute does not go back", res["change"] > last, (res["change"], last))
    for x in (holder, other, old, v3):
        x.close()


def fh3(v3, d, name):
    return v3.nfs(r.LOOKUP, r.lookup_args(d.root(v3, "one"), name))["fh"]


def test_many_ask(t, d):
    """Those who ask at the same time: each answer is of a question that was sent after its GETATTR had come."""
    holder = new_client(d, "asked by many")
    others = [new_client(d, f"asks{i}", 1, n4.Client) for i in range(8)]
    _, fh, _, deleg, change = delegated(t, d, holder, "many ask")
    holder.cb_attrs = n4.held_attrs(change + 1, 99)
    got = [Other(lambda c=c: c.getattr(fh)) for c in others]
    end = time.monotonic() + 60
    while any(x.thread.is_alive() for x in got) and time.monotonic() < end:
        holder.compound((n4.PUTROOTFH, b""))  # answers what has come
        time.sleep(0.01)
    t.equal("sizes", [x.end() == n4.OK and x.result["size"] for x in got], [99] * 8)
    calls = [x for x in holder.called if x["op"] == n4.CB_GETATTR]
    t.check("callbacks", 1 <= len(calls) <= 8, len(calls))
    t.equal("DELEGRETURN", holder.delegreturn(fh, deleg), n4.OK)
    for x in (holder, *others):
        x.close()


def test_bad_answers(t, d):
    """A holder that refuses or answers nonsense returns the delegation; others wait for that."""
    both = n4.bitmap(n4.CHANGE, n4.SIZE)
    for i, (what, status, body) in enumerate((
            ("BADHANDLE", r.BADHANDLE, b""), ("SERVERFAULT", 10006, b""), ("no attributes", n4.OK, u32(0) + opaque(b"")),
            ("size alone", n4.OK, n4.bitmap(n4.SIZE) + opaque(u64(1))), ("a short value", n4.OK, both + opaque(u64(1) + u32(0))),
            ("a long value", n4.OK, both + opaque(u64(1) + u64(1) + u32(0))), ("other attributes", n4.OK, n4.bitmap(1, 3, 4) + opaque(bytes(20))),
            ("a huge size", n4.OK, both + opaque(u64(1) + u64(1 << 63))), ("a cut bitmap", n4.OK, u32(0xffffffff)),
            ("bytes behind it", n4.OK, both + opaque(u64(1) + u64(1)) + u32(0)))):
        holder, other = new_client(d, f"bad{i}"), new_client(d, f"other{i}", 1, n4.Client)
        _, fh, _, deleg, _ = delegated(t, d, holder, f"bad{i}")
        holder.cb_status, holder.cb_attrs = status, body
        got = Other(lambda: other.getattr(fh))
        asked(holder)
        holder.cb_status = n4.OK
        t.equal(f"{what}: it is recalled", holder.await_callback(n4.CB_RECALL)["stateid"], deleg)
        t.equal("DELEGRETURN", holder.delegreturn(fh, deleg), n4.OK)
        t.equal("GETATTR", (got.end(), got.result["size"]), (n4.OK, 6))
        t.equal("one question", len([x for x in holder.called if x["op"] == n4.CB_GETATTR]), 1)
        for x in (holder, other):
            x.close()


def test_no_answer(t, d):
    """A holder that is silent, and one whose connection is lost while it is asked."""
    other = new_client(d, "asks", 1, n4.Client)
    holder = new_client(d, "silent")
    _, fh, _, deleg, _ = delegated(t, d, holder, "silent")
    holder.answers = False
    got = Other(lambda: other.getattr(fh))
    told = asked(holder)
    end = time.monotonic() + 30
    while not holder.flags & n4.CB_PATH_DOWN_SESSION and time.monotonic() < end:
        holder.compound((n4.PUTROOTFH, b""))
        time.sleep(0.05)
    holder.answers = True
    holder.conn.reply(n4.put_callback_reply(told, n4.OK, n4.held_attrs(1, 1)))  # too late
    t.equal("the path is mended", holder.bind(3)["status"], n4.OK)
    holder.compound((n4.PUTROOTFH, b""))
    t.equal("it is recalled", holder.await_callback(n4.CB_RECALL)["stateid"], deleg)
    t.equal("DELEGRETURN", holder.delegreturn(fh, deleg), n4.OK)
    t.equal("GETATTR", (got.end(), got.result["size"]), (n4.OK, 6))
    holder.close()

    holder = new_client(d, "lost")
    _, fh, _, _, _ = delegated(t, d, holder, "lost")
    holder.answers = False
    got = Other(lambda: other.getattr(fh))
    asked(holder)
    holder.close()  # and does not come back: the delegation goes with its lease
    t.equal("GETATTR, in the end", (got.end(), got.result["size"]), (n4.OK, 6))
    other.close()


def test_asker_goes(t, d):
    """Who asks loses his connection before the answer."""
    holder, other = new_client(d, "slow holder"), new_client(d, "impatient", 1, n4.Client)
    _, fh, _, deleg, change = delegated(t, d, holder, "asker goes")
    holder.answers = False
    args = other.session + u32(other.seqid + 1) + u32(0) + u32(0) + u32(0)
    ops = ((n4.SEQUENCE, args), n4.putfh(fh), n4.getattr_op())
    body = opaque(b"") + u32(1) + u32(len(ops)) + b"".join(u32(op) + a for op, a in ops)
    other.conn.send(r.call_message(r.NFS, 4, 1, body, r.ROOT, 4711))
    told = asked(holder)
    other.close()
    holder.conn.reply(n4.put_callback_reply(told, n4.OK, n4.held_attrs(change, 6)))
    t.equal("the holder goes on", holder.delegreturn(fh, deleg), n4.OK)
    holder.close()


def test_recalled(t, d):
    """By each kind of use of the data: the other waits until the delegation was returned, and finds what was written."""
    holder, other, v3 = new_client(d, "recalled"), new_client(d, "contender", 1, n4.Client), d.connect()
    for i, (what, request, data) in enumerate((
            ("OPEN to read", lambda root, fh, name: other.open(root, name, access=n4.SHARE_READ)[0], None),
            ("OPEN to write", lambda root, fh, name: other.open(root, name, access=n4.SHARE_WRITE)[0], None),
            ("READ without an open", lambda root, fh, name: other.last(n4.putfh(fh), n4.read(n4.ANONYMOUS, 0, 99)), b"written"),
            ("WRITE without an open", lambda root, fh, name: other.last(n4.putfh(fh), n4.write(n4.ANONYMOUS, 0, b"x")), None),
            ("SETATTR", lambda root, fh, name: other.last(n4.putfh(fh), (n4.SETATTR, n4.ANONYMOUS + SIZE_3)), None),
            ("REMOVE", lambda root, fh, name: other.last(n4.putfh(root), (n4.REMOVE, r.name(name))), None),
            ("NFSv3 READ", lambda root, fh, name: v3.nfs(r.READ, r.read_args(fh3(v3, d, name), 0, 99)), b"written"))):
        name = f"recall{i}"
        root, fh, stateid, deleg, _ = delegated(t, d, holder, name)
        got = Other(lambda: request(root, fh, name))
        t.equal(f"recalled by {what}", holder.await_callback(n4.CB_RECALL, i + 1)["stateid"], deleg)
        t.check(f"{what} waits", got.is_waiting(), got.result)
        t.equal("WRITE meanwhile", holder.last(n4.putfh(fh), n4.write(deleg, 0, b"written")).get("count"), 7)
        t.equal("CLOSE", holder.close_file(fh, stateid)["status"], n4.OK)
        t.equal("DELEGRETURN", holder.delegreturn(fh, deleg), n4.OK)
        t.equal(f"{what} goes on", got.end(), n4.OK)
        if data:
            t.equal("what it finds", got.result.get("data"), data)
    for x in (holder, other, v3):
        x.close()


def test_claimed(t, d):
    """Opens and locks that the holder has not sent go with the recall."""
    holder, other = new_client(d, "claims"), new_client(d, "in need")
    root, fh, stateid, deleg, _ = delegated(t, d, holder, "claimed", create=True)
    holder.close_file(fh, stateid)
    holder.last(n4.putfh(fh), n4.write(deleg, 0, b"claimed"))
    got = Other(lambda: other.open(root, "claimed", access=n4.SHARE_READ)[0])
    holder.await_callback(n4.CB_RECALL)
    mine = holder.claim_open(fh, deleg, access=n4.SHARE_BOTH)
    t.equal("CLAIM_DELEG_CUR_FH to write", (mine["status"], mine.get("delegation")), (n4.OK, n4.DELEGATE_NONE))
    again = holder.claim_open_by_name(root, "claimed", deleg, access=n4.SHARE_WRITE)
    t.equal("CLAIM_DELEGATE_CUR to write", again["status"], n4.OK)
    t.equal("LOCK", holder.lock(fh, again["stateid"])["status"], n4.OK)
    t.equal("DELEGRETURN", holder.delegreturn(fh, deleg), n4.OK)
    t.equal("the other goes on", got.end(), n4.OK)
    t.equal("and meets the lock", other.lock(fh, got.result["stateid"], n4.READ_LT)["status"], n4.DENIED)
    t.equal("WRITE by the open", holder.last(n4.putfh(fh), n4.write(again["stateid"], 0, b"x")).get("count"), 1)
    for x in (holder, other):
        x.close()


def test_claimed_by_owner(t, d):
    """The owner may go on to write what it has open, whatever the mode is."""
    holder, other = new_client(d, "owner"), new_client(d, "reads it")
    root = holder.path(d.exports["one"])
    os.chmod(d.exports["one"], 0o777)
    holder.cred = r.auth_sys(uid=1000, gid=1000)
    res, fh = holder.open(root, "owned", create=True)
    t.equal("delegated", res["delegation"], n4.DELEGATE_WRITE)
    mode = u32(2) + u32(0) + u32(2) + opaque(u32(0o444))
    t.equal("chmod by the holder", holder.last(n4.putfh(fh), (n4.SETATTR, n4.ANONYMOUS + mode))["status"], n4.OK)
    got = Other(lambda: other.open(root, "owned", access=n4.SHARE_READ)[0])
    holder.await_callback(n4.CB_RECALL)
    t.equal("an OPEN to write", holder.open(root, "owned", access=n4.SHARE_WRITE)[0]["status"], r.ACCES)
    t.equal("a claim to write", holder.claim_open(fh, res["deleg"], access=n4.SHARE_BOTH)["status"], n4.OK)
    t.equal("DELEGRETURN", holder.delegreturn(fh, res["deleg"]), n4.OK)
    t.equal("the other goes on", got.end(), n4.OK)
    for x in (holder, other):
        x.close()


def test_instead_of_open(t, d):
    """OPEN_XOR_DELEGATION: the delegation stands for the open."""
    c, other = new_client(d, "xor", 2), new_client(d, "needs what xor has", 2, n4.Client)
    for i, (access, kind) in enumerate(((n4.SHARE_BOTH, n4.DELEGATE_WRITE), (n4.SHARE_READ, n4.DELEGATE_READ))):
        name = f"xor{i}"
        make(d, name)
        root = c.path(d.exports["one"])
        res, fh = c.open(root, name, access=access | XOR)
        t.equal(f"{name}: no open", (res["status"], res["rflags"] & NO_OPEN, res["stateid"], res["delegation"]),
                (n4.OK, NO_OPEN, n4.ANONYMOUS, kind))
        deleg = res["deleg"]
        t.equal("READ", c.last(n4.putfh(fh), n4.read(deleg, 0, 9)).get("data"), b"before")
        again, _ = c.open(root, name, access=access | XOR)
        t.equal("a second one is an open", (again["rflags"] & NO_OPEN, again["delegation"]), (0, n4.DELEGATE_NONE))
        t.equal("CLOSE of that", c.close_file(fh, again["stateid"])["status"], n4.OK)
        got = Other(lambda: other.open(root, name, access=n4.SHARE_BOTH)[0])
        t.equal("it is recalled", c.await_callback(n4.CB_RECALL, i + 1)["stateid"], deleg)
        mine = c.claim_open(fh, deleg, access=access | XOR)
        t.equal("and claimed", (mine["status"], mine["rflags"] & NO_OPEN, mine["delegation"]), (n4.OK, 0, n4.DELEGATE_NONE))
        t.equal("DELEGRETURN", c.delegreturn(fh, deleg), n4.OK)
        t.equal("the other goes on", got.end(), n4.OK)
        t.equal("READ by what was claimed", c.last(n4.putfh(fh), n4.read(mine["stateid"], 0, 9)).get("data"), b"before")
        res, _ = c.open(root, name, access=n4.SHARE_READ | XOR)
        t.equal("none is given: an open", (res["rflags"] & NO_OPEN, res["delegation"]), (0, n4.DELEGATE_NONE))
    make(d, "xor kept")
    first, fh = c.open(root, "xor kept", access=n4.SHARE_READ | WANT_NO)
    res, _ = c.open(root, "xor kept", access=n4.SHARE_BOTH | XOR)
    t.equal("an open from before stays", (res["rflags"] & NO_OPEN, res["stateid"][4:], res["delegation"]),
            (0, first["stateid"][4:], n4.DELEGATE_WRITE))
    t.equal("its CLOSE", c.close_file(fh, res["stateid"])["status"], n4.OK)
    t.equal("DELEGRETURN of the other", c.delegreturn(fh, res["deleg"]), n4.OK)
    old = new_client(d, "xor1", 1)
    t.equal("4.1 knows it not", old.open(root, "xor kept", access=n4.SHARE_READ | XOR)[0]["status"], r.INVAL)
    for x in (c, other, old):
        x.close()


def test_not_returned(t, d):
    """A holder with data that it has not written: they are refused once others have gone on."""
    holder, other = new_client(d, "dirty"), new_client(d, "waits")
    root, fh, stateid, deleg, _ = delegated(t, d, holder, "dirty")
    got = Other(lambda: other.open(root, "dirty", access=n4.SHARE_READ)[0])
    holder.await_callback(n4.CB_RECALL)
    end = time.monotonic() + 60
    while not holder.flags & n4.RECALLABLE_REVOKED and time.monotonic() < end:
        holder.compound((n4.PUTROOTFH, b""))
        time.sleep(0.1)
    t.equal("SEQUENCE says so", holder.flags, n4.RECALLABLE_REVOKED)
    t.equal("the other goes on", got.end(), n4.OK)
    for what, op in (("WRITE", n4.write(deleg, 0, b"late")), ("READ", n4.read(deleg, 0, 9)), ("SETATTR", (n4.SETATTR, deleg + SIZE_3))):
        t.equal(f"{what} by it", holder.last(n4.putfh(fh), op)["status"], n4.DELEG_REVOKED)
    t.equal("a claim", holder.claim_open(fh, deleg, access=n4.SHARE_BOTH)["status"], n4.DELEG_REVOKED)
    t.equal("the file", other.last(n4.putfh(fh), n4.read(got.result["stateid"], 0, 99)).get("data"), b"before")
    t.equal("FREE_STATEID", holder.free_stateid(deleg), n4.OK)
    t.equal("WRITE by the open, which stays", holder.last(n4.putfh(fh), n4.write(stateid, 0, b"x")).get("count"), 1)
    for x in (holder, other):
        x.close()


def test_restart(t, d):
    holder, other = new_client(d, "reclaims"), new_client(d, "comes back")
    _, fh, _, _, _ = delegated(t, d, holder, "over a restart")
    make(d, "by NFSv3")
    d.stop(signal.SIGKILL)
    d.start()
    v3, answers, sent = d.connect(), [], time.monotonic()
    write = r.write_args(fh3(v3, d, "by NFSv3"), 0, b"after")
    waits = Other(lambda: answers.append(v3.nfs(r.WRITE, write)) or answers[-1])
    for c in (holder, other):
        c.again()
        t.equal("registered again", c.register()["status"], n4.OK)
    other.reclaim_complete()
    res = holder.reclaim_open(fh, delegation=n4.DELEGATE_WRITE)
    t.equal("reclaimed", (res["status"], res.get("delegation"), res.get("recalled")), (n4.OK, n4.DELEGATE_WRITE, False))
    deleg = res["deleg"]
    t.equal("WRITE by it", holder.last(n4.putfh(fh), n4.write(deleg, 0, b"AFTER")).get("count"), 5)
    t.equal("RECLAIM_COMPLETE", holder.reclaim_complete(), n4.OK)
    holder.compound((n4.PUTROOTFH, b""))
    t.equal("WRITE by NFSv3 of another file", waits.end(), 0)
    # NFS3ERR_JUKEBOX would cost its client five seconds more.
    t.check("it has waited for that", len(answers) == 1 or time.monotonic() - sent > 10, answers)
    change = holder.getattr(fh)["change"]
    holder.cb_attrs = n4.held_attrs(change + 1, 77)
    got = Other(lambda: other.getattr(fh))
    asked(holder)
    t.equal("asked after it", (got.end(), got.result["size"]), (n4.OK, 77))
    t.equal("DELEGRETURN", holder.delegreturn(fh, deleg), n4.OK)
    for x in (holder, other, v3):
        x.close()


def read_locally(d, c, fh, stateid, deleg, name, t):
    """A local process that opens the file waits, and reads what the holder has written last."""
    def read():
        with open(path_of(d, name), "rb") as f:
            return {"status": n4.OK, "data": f.read()}

    other = Other(read)
    t.equal(f"{name}: recalled by a local process", c.await_callback(n4.CB_RECALL)["stateid"], deleg)
    t.check("it waits", other.is_waiting())
    t.equal("READ by the open meanwhile", c.last(n4.putfh(fh), n4.read(stateid, 0, 9)).get("data"), b"before")
    t.equal("WRITE by the delegation", c.last(n4.putfh(fh), n4.write(deleg, 0, b"after!")).get("count"), 6)
    t.equal("DELEGRETURN", c.delegreturn(fh, deleg), n4.OK)
    t.equal("it goes on", other.end(), n4.OK)
    t.equal("and reads", other.result.get("data"), b"after!")


def test_local(t):
    """Where local processes use the file, too: whoever opens it waits, if the kernel asks this process."""
    with Daemon({"one": SHARED}, SETTINGS) as d:
        c = new_client(d, "shared")
        root = c.path(d.exports["one"])
        make(d, "shared")
        res, fh = c.open(root, "shared", access=n4.SHARE_BOTH | WANT_WRITE)
        t.check("shared with local processes", (res["delegation"], res.get("why")) in (
            (n4.DELEGATE_NONE_EXT, WRITE_NOT_SUPP), (n4.DELEGATE_WRITE, None)), res)
        if res.get("deleg"):
            read_locally(d, c, fh, res["stateid"], res["deleg"], "shared", t)
        c.close()
        harness.finish(t, d)


def main():
    t = Count()
    with Daemon({"one": OPTIONS}, SETTINGS) as d:
        for test in (test_given, test_rules, test_of_another_user, test_want, test_attributes, test_many_ask, test_bad_answers,
                     test_no_answer, test_asker_goes, test_recalled, test_claimed, test_claimed_by_owner, test_instead_of_open,
                     test_not_returned, test_restart):
            print(f"# {test.__name__}", flush=True)
            test(t, d)
        harness.finish(t, d)
    test_local(t)
    harness.result(t)


if __name__ == "__main__":
    main()
