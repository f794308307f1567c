#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The judge of histories is judged: hand-made histories that it must accept, and their counterparts with one answer wrong, which it must refuse;
and thousands of small drawn ones, for which all orders are tried."""
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "net")]
import harness
import judge
import linear
from linear import DIR, MAYBE, REG
from record import NEVER, History

DRAWN = 4000
ONE, TWO, FOLDER = 100 * 4 + REG, 101 * 4 + REG, 102 * 4 + DIR


def op(inv, ret, *what, obj="f0.0", who="0v3", must=True, **more):
    return dict(k="op", obj=obj, inv=inv, ret=ret, op=what, who=who, must=must, **more)


def maybe(inv, ret, *what, **more):
    return op(inv, ret, *what, must=False, **more)


def made(i, tag, mode="guarded", owner=None, status="ok"):
    """A create of the i-th name, whose answer showed an object of that owner."""
    return "create", i, tag, mode, tag if owner is None else owner, status


def gone(i, how="file", status="ok"):
    return "remove", i, how, status


def one_by_one(*steps):
    """Operations, each of which is called after the answer to the one before."""
    return [op(2 * i, 2 * i + 1, *step) for i, step in enumerate(steps)]


# --- orders of operations: what it is, model, operations, whether there is an order ---

MINE, OTHER, MOVED = made(0, ONE), made(1, TWO), ("rename", 0, 1, "ok")
AGAIN = made(0, ONE, "exclusive")
ORDERS = (
    ("a value is read after its write", "reg", one_by_one(("write", "a"), ("read", "a")), True),
    ("an old value after a write", "reg", one_by_one(("write", "a"), ("read", "")), False),
    ("either value amid a write", "reg", [op(0, 9, "write", "a"), op(1, 2, "read", ""), op(3, 4, "read", "a")], True),
    ("the new value, then the old one", "reg", [op(0, 9, "write", "a"), op(1, 2, "read", "a"), op(3, 4, "read", "")], False),
    ("two writes in one order for two readers", "reg", [op(0, 9, "write", "a"), op(0, 9, "write", "b"), op(10, 11, "read", "a"), op(12, 13, "read", "a")], True),
    ("two writes in two orders", "reg", [op(0, 9, "write", "a"), op(0, 9, "write", "b"), op(10, 11, "read", "a"), op(12, 13, "read", "b")], False),
    ("a write without an answer had no effect", "reg", [maybe(0, 5, "write", "a"), op(6, 7, "read", "")], True),
    ("a write without an answer had one", "reg", [maybe(0, 5, "write", "a"), op(6, 7, "read", "a")], True),
    ("a write without an answer has its effect too late", "reg", [maybe(0, 5, "write", "a"), op(6, 7, "read", ""), op(8, 9, "read", "a")], False),
    ("a write without an answer has it twice", "reg",
     [maybe(0, 9, "write", "a"), op(1, 2, "read", "a"), op(3, 4, "write", "b"), op(5, 6, "read", "a")], False),
    ("create, look up, remove", "names", one_by_one(MINE, ("lookup", 0, ONE), gone(0), ("lookup", 0, 0)), True),
    ("removed twice", "names", one_by_one(MINE, gone(0), gone(0)), False),
    ("made twice", "names", one_by_one(MINE, made(0, TWO)), False),
    ("made, removed, and there once more", "names", [op(0, 9, *MINE), op(1, 2, *gone(0)), op(10, 11, "lookup", 0, ONE)], False),
    ("EXIST for nothing", "names", one_by_one(made(0, ONE, status="EXIST")), False),
    ("EXIST for what is there", "names", one_by_one(MINE, made(0, TWO, status="EXIST")), True),
    ("opened by another's CREATE", "names", one_by_one(MINE, made(0, TWO, "unchecked", ONE)), True),
    ("opened by another's CREATE, which takes it for its own", "names", one_by_one(MINE, made(0, TWO, "unchecked")), False),
    ("made and gone before it was seen", "names", [op(0, 9, *made(0, ONE, owner=-1)), op(1, 2, *gone(0, "any"))], True),
    ("made and gone, and nobody took it", "names", [op(0, 9, *made(0, ONE, owner=-1)), op(10, 11, "lookup", 0, 0)], False),
    ("a name moves", "names", one_by_one(MINE, MOVED, ("lookup", 0, 0), ("lookup", 1, ONE)), True),
    ("a name moves and stays", "names", one_by_one(MINE, MOVED, ("lookup", 0, ONE)), False),
    ("a name that is nowhere moves", "names", one_by_one(MOVED), False),
    ("a file over a directory", "names", one_by_one(MINE, made(1, FOLDER), MOVED), False),
    ("two names of one file", "names", one_by_one(MINE, ("link", ONE, 1, "ok"), ("nlink", ONE, 2)), True),
    ("a link too many", "names", one_by_one(MINE, ("link", ONE, 1, "ok"), ("nlink", ONE, 3)), False),
    ("a rename between two names of one file changes nothing", "names", one_by_one(MINE, ("link", ONE, 1, "ok"), MOVED, ("lookup", 0, ONE)), True),
    ("a link over a name", "names", one_by_one(MINE, OTHER, ("link", ONE, 1, "ok")), False),
    ("NOENT for what is there", "names", one_by_one(MINE, gone(0, status="NOENT")), False),
    ("RMDIR of a file", "names", one_by_one(MINE, gone(0, "dir")), False),
    ("an exclusive create that is sent again finds its own file", "names", one_by_one(AGAIN, AGAIN), True),
    ("an exclusive create that is sent again does not know its own file", "names", one_by_one(AGAIN, made(0, ONE, "exclusive", status="EXIST")), False),
    ("one exclusive create that made two files, one of which replaces the other", "names",
     one_by_one(AGAIN, MOVED, AGAIN, MOVED, ("lookup", 0, 0), ("lookup", 1, ONE)), True),
    ("one exclusive create whose two files are one", "names", one_by_one(AGAIN, MOVED, AGAIN, MOVED, ("lookup", 0, ONE)), False),
    ("a link to what is gone", "names", one_by_one(MINE, gone(0), ("link", ONE, 1, "ok")), False),
)
MODELS = {"reg": ("", linear.register), "names": ((0, 0, 0), linear.names)}


def test_orders(t):
    for what, model, ops, good in ORDERS:
        initial, step = MODELS[model]
        t.equal(what, linear.check(ops, [initial], step) is None, good)


def any_order(ops, state, step):
    """Tries all orders: the meaning of linear.check, in the plainest words. What was not answered may be left out."""
    if not any(o["must"] for o in ops):
        return True
    for o in ops:
        rest = [x for x in ops if x is not o]
        if any(x["must"] and x["ret"] < o["inv"] for x in rest):
            continue
        after = step(state, o["op"])
        if after is not None and any_order([x for x in rest if x["ret"] >= o["inv"]], after, step):
            return True
    return False


def drawn(rng, model):
    """A small history: most answers are those of an order, a few are drawn."""
    times, ops = sorted(rng.sample(range(40), 12)), []
    rng.shuffle(times)
    for i in range(rng.randint(2, 6)):
        inv, ret = sorted((times[2 * i], times[2 * i + 1]))
        if model == "reg":
            what = rng.choice((("write", rng.choice("ab")), ("read", rng.choice(("", "a", "b")))))
        else:
            tag, name, other = 4 * i + 400, rng.randrange(2), rng.randrange(2)
            what = rng.choice((("create", name, tag, "guarded", tag, rng.choice(("ok", "EXIST"))), ("remove", name, "any", rng.choice(("ok", "NOENT"))),
                               ("rename", name, other, rng.choice(("ok", "NOENT"))), ("lookup", name, rng.choice((0, 400, 404, 408)))))
        must = what[0] in ("read", "lookup") or rng.random() < 0.8
        ops.append(op(inv, ret, *(what if must or what[0] == "write" else (*what[:-1], MAYBE)), must=must))
    return ops


def test_drawn(t):
    rng, good = random.Random(1), {True: 0, False: 0}
    for i in range(DRAWN):
        model = rng.choice(("reg", "names"))
        ops, (initial, step) = drawn(rng, model), MODELS[model]
        failure = linear.check(ops, [initial], step)
        want = any_order(ops, initial, step)
        good[want] += 1
        if (failure is None) != want:
            t.check(f"drawn history {i}", False, f"{'refused' if failure else 'accepted'}: {ops}")
            return
        if failure and not ((again := linear.check(judge.shrink(ops, failure, step), failure.states, step)) and again.op == failure.op):
            t.check(f"drawn history {i}", False, f"its shortest form is wrong elsewhere, or in order: {ops}")
            return
    t.check("drawn histories of both kinds", min(good.values()) > DRAWN / 10, good)


# --- power cuts: what was acknowledged stays; what was not may go, though it was seen ---

POWER = dict(k="nemesis", inv=50, ret=60, what="power", run=1)


def before(inv, ret, *what, **more):
    return op(inv, ret, *what, run=0, **more)


def after(inv, *what, **more):
    return op(inv, inv + 1, *what, run=1, **more)


UNDER_WAY = before(0, 60, "write", "a", must=False)
FOUND = [before(0, 60, *made(0, ONE, status=MAYBE), must=False, obj="ns"), before(2, 3, *made(0, TWO, "unchecked", ONE), obj="ns")]
CUTS = (  # what it is, a history that is in order, one that is not
    ("an acknowledged write", [before(0, 1, "write", "a"), after(70, "read", "a")], [before(0, 1, "write", "a"), after(70, "read", "")]),
    ("a write under way, which was seen", [UNDER_WAY, before(2, 3, "read", "a"), after(70, "read", "")], [UNDER_WAY, before(2, 3, "read", "a"), after(70, "read", "b")]),
    ("a write under way, which was kept", [UNDER_WAY, after(70, "read", "a")], [UNDER_WAY, after(70, "read", "a"), after(80, "read", "")]),
    ("a write above one under way", [UNDER_WAY, before(2, 3, "write", "b"), after(70, "read", "b")], [UNDER_WAY, before(2, 3, "write", "b"), after(70, "read", "")]),
    ("a file that an open has found whose create was under way", [*FOUND, after(70, "lookup", 0, ONE, obj="ns")], [*FOUND, after(70, "lookup", 0, 0, obj="ns")]),
    ("a later write", [before(0, 1, "write", "a"), after(70, "write", "b"), after(80, "read", "b")], [before(0, 1, "write", "a"), after(70, "write", "b"), after(80, "read", "a")]),
)
ORDER = "no order explains the answers"


def test_cuts(t):
    for what, good, bad in CUTS:
        t.equal(f"after a power cut: {what}", judged([POWER, *good]), set())
        t.equal(f"not after a power cut: {what}", judged([POWER, *bad]), {ORDER})


# --- the judge's other rules: facts that are in order, and a change that is none; what it is called ---

def lock(who, start, end, rel=None, kind=2, offset=0, size=8, **more):
    return dict(k="lock", who=who, kind=kind, offset=offset, size=size, inv=start - 1, start=start, end=end, rel=rel or end + 1, **more)


def denied(who, inv, ret):
    return dict(k="denied", who=who, kind=2, offset=0, size=8, inv=inv, ret=ret)


def share(who, start, end, access, deny):
    return dict(k="share", who=who, access=access, deny=deny, inv=start - 1, start=start, end=end, rel=end + 1)


def share_denied(access):
    return dict(k="share denied", who="1", access=access, deny=0, inv=3, ret=4)


def io(inv, access, status):
    return dict(k="io", who="1", access=access, status=status, inv=inv, ret=inv + 1)


def attr(inv, change, run=0):
    return dict(k="attr", obj="f0", inv=inv, ret=inv + 1, run=run, change=change, ctime=None, mtime=None)


def name(n, inv, gone=None):
    return dict(k="name", name=n, who="0", inv=inv, ret=inv + 1, gone_inv=gone, gone_ret=gone and gone + 1)


def listing(inv, *names):
    return dict(k="listing", who="1", inv=inv, ret=inv + 5, names=names)


def longstop(seconds):
    return dict(k="nemesis", what="longstop", inv=10, ret=seconds * 10**9)


def delegated(inv, who, *what, ret=None, **more):
    return op(inv, ret or inv + 1, *what, obj="dg0.0", who=who, **more)


def size(inv, ret, *what, **more):
    return op(inv, ret, *what, obj="sz0", who="0v41b", **more)


def verifier(run, v):
    return dict(k="verifier", run=run, verifier=v)


def added(sure):
    return dict(k="added", counter=0, sure=sure)


def end(*names, counters=()):
    return dict(k="end", big=names, counters=counters)


REBOOTED, DENIED_LATE = lock("0v3", 1, 5, NEVER, told=7), denied("1local", 6 * 10**9, 6 * 10**9 + 1)
CHANGE, STABLE = dict(k="change", obj="f0", inv=2, ret=3), dict(k="stable", names=("s",))
DELEGATION = dict(k="delegation", who="0v41b", kind=2, f="dg0", start=10, end=20, restarted=False)
LOST = [size(0, 1, "write", 7), size(0, NEVER, "write", 0, must=False), size(4, 5, "read", 7), size(6, 7, "read", 0)]
COPYING, HELD, OPENED = delegated(0, "0v42b", "write", "a", ret=9), lock("0", 1, 5), share("0", 1, 9, 1, 2)
RULES = (
    # The holder of a delegation changes a size, which others see by CB_GETATTR; it dies, and the file has the old one.
    (ORDER, [size(0, 1, "write", 7), size(2, 3, "read", 7)], [size(0, 1, "write", 7), size(2, 3, "read", 0)]),
    (ORDER, LOST, [*LOST, size(8, 9, "read", 7)]),
    # A COPY in the background.
    (ORDER, [COPYING, delegated(1, "1v3", "read", ""), delegated(3, "1v3", "read", "a")], [COPYING, delegated(1, "1v3", "read", "a"), delegated(3, "1v3", "read", "")]),
    # The last holder's machine has come again, which its status monitor says between 5 and 7.
    ("a lock is held by two", [lock("0v3", 1, 5, 7), lock("0v3", 9, 12), lock("1v3", 6, 8)], [lock("0v3", 1, 5, 7), lock("0v3", 9, 12), lock("1v3", 6, 10)]),
    ("a lock is denied though nobody holds it", [lock("0v3", 1, 5, 7), denied("1v3", 6, 9)], [lock("0v3", 1, 5, 7), denied("1v3", 8, 9)]),
    # The server frees its locks within two seconds, in which it is stopped for five, or for one.
    ("a lock is denied though nobody holds it", [REBOOTED, longstop(5), DENIED_LATE], [REBOOTED, longstop(1), DENIED_LATE]),
    ("change goes back", [attr(0, 5), attr(2, 6), attr(4, 6)], [attr(0, 5), attr(2, 6), attr(4, 5)]),
    ("change is the same before and after a change", [attr(0, 5), CHANGE, attr(4, 6)], [attr(0, 5), CHANGE, attr(4, 5)]),
    # A power cut takes a change that was not flushed.
    ("change is the same before and after a change", [attr(0, 5), CHANGE, POWER, attr(70, 5, run=1)], [attr(0, 5), CHANGE, attr(4, 5), POWER, attr(70, 5, run=1)]),
    ("a lock is held by two", [HELD, lock("1", 6, 9)], [HELD, lock("1", 4, 9)]),
    ("a lock is held by two", [lock("0", 1, 5, kind=1), lock("1", 4, 9, kind=1)], [lock("0", 1, 5, kind=1), lock("1", 4, 9)]),
    ("a lock is held by two", [HELD, lock("1", 4, 9, offset=8)], [HELD, lock("1", 4, 9, offset=7)]),
    ("a lock is denied though nobody holds it", [HELD, denied("1", 3, 4)], [HELD, denied("1", 8, 9)]),
    ("two opens deny each other", [share("0", 1, 5, 1, 0), share("1", 3, 9, 1, 2)], [share("0", 1, 5, 1, 0), share("1", 3, 9, 2, 1)]),
    ("an open is denied though nobody denies it", [share("0", 1, 5, 1, 2), share_denied(2)], [share("0", 1, 5, 1, 2), share_denied(1)]),
    ("I/O passes an open that denies it", [OPENED, io(3, 1, "ok")], [OPENED, io(3, 2, "ok")]),
    ("I/O is denied though nobody denies it", [OPENED, io(3, 2, "ACCES")], [OPENED, io(12, 2, "ACCES")]),
    ("a file is used against another's delegation", [DELEGATION, delegated(12, "0v41b", "read", ""), delegated(22, "1v3", "read", "")],
     [DELEGATION, delegated(12, "1v3", "read", "")]),
    ("a file is used against another's delegation", [DELEGATION, delegated(12, "1linux3", "read", "", fetches=((12, 13),))],
     [DELEGATION, delegated(12, "1linux3", "write", "")]),
    ("a listing has names twice", [name("a", 0), listing(5, "a")], [name("a", 0), listing(5, "a", "a")]),
    ("a listing has not all names", [STABLE, listing(5, "s")], [STABLE, listing(5)]),
    ("a listing has not all names", [name("a", 0, 7), listing(5)], [name("a", 0, 11), listing(5)]),
    ("a listing has names of nobody", [listing(5)], [listing(5, "x")]),
    ("a listing has names of another time", [name("a", 0, 4), listing(5, "a")], [name("a", 0, 2), listing(5, "a")]),
    ("an acknowledged name is lost", [name("a", 0), end("a")], [name("a", 0), name("b", 0), end("a")]),
    ("a removed name is there", [name("b", 0, 2), end("a")], [name("a", 0, 2), end("a")]),
    ("a write verifier of two runs, or two of one", [verifier(0, "x"), verifier(1, "y")], [verifier(0, "x"), verifier(1, "x")]),
    ("a counter under locks is wrong", [added(True), added(False), end(counters=(2,))], [added(True), end(counters=(2,))]),
    ("WRITE fails", [], [dict(k="trouble", what="WRITE fails", inv=0)]),
)


def judged(facts):
    h = History(fs="ext4")
    h.facts = facts
    return {what for what, _ in judge.Judge(h).run()}


def test_rules(t):
    for what, good, bad in RULES:
        t.equal(f"accepted: {what}", judged(good), set())
        t.equal(f"refused: {what}", judged(bad), {what})


# --- permitted anomalies: only where the table says so ---

def believed(obj, fetch, *what):
    """An answer from a client's cache, and when it was fetched."""
    return op(40, 41, *what, obj=obj, who="1v3 cached", fetch=fetch, run=1)


def fetched(*fetches):
    """An answer of Linux's client, and when it may have been fetched."""
    return op(40, 41, "read", "", who="1linux3", fetches=fetches)


def opened(who):
    return op(40, 41, *made(0, TWO, "unchecked", ONE), obj="ns", who=who)


DIED = dict(k="nemesis", what="die", inv=20, ret=35, run=1)
WRITTEN, PUT, TAKEN = op(10, 30, "write", "a"), op(1, 2, *MINE, obj="ns"), op(10, 30, *gone(0), obj="ns")
TRIED, ELSEWHERE = (maybe(19, 22, *made(i, ONE, status=MAYBE), obj="ns") for i in (0, 1))
SEEN = [op(at, at + 1, "lookup", 0, tag, obj="ns", who="1v3 list") for at, tag in ((24, -1), (26, 0))]
PERMITTED = (  # what it is, facts, whether they are explained
    ("data fetched amid a write are believed under its validator", [WRITTEN, believed("f0.0", (15, 16), "read", "")], True),
    ("data fetched before it are not", [WRITTEN, believed("f0.0", (1, 2), "read", "")], False),
    ("Linux's client may have fetched them amid a write", [WRITTEN, fetched((1, 2), (15, 16))], True),
    ("Linux's client has not fetched them amid a write", [WRITTEN, fetched((1, 2), (3, 4))], False),
    ("a name found amid its removal is believed", [PUT, TAKEN, believed("ns", (15, 16), "lookup", 0, ONE)], True),
    ("a name found before it is not", [PUT, TAKEN, believed("ns", (5, 6), "lookup", 0, ONE)], False),
    ("a name found by a delegation is believed that a local process has removed", [PUT, {**TAKEN, "who": "2local"}, opened("1linux41")], True),
    ("and is in the way of a link", [PUT, {**TAKEN, "who": "2local"}, op(40, 41, "link", ONE, 0, "EXIST", obj="ns", who="1linux42")], True),
    ("not by NFSv3", [PUT, {**TAKEN, "who": "2local"}, opened("1linux3")], False),
    ("nor if a client of NFS has removed it", [PUT, TAKEN, opened("1linux41")], False),
    ("data fetched before the disk died amid a write are believed under an older time", [WRITTEN, DIED, believed("f0.0", (5, 6), "read", "")], True),
    ("those are not that were fetched behind it", [WRITTEN, DIED, believed("f0.0", (36, 37), "read", "")], False),
    ("nor over a death without a write", [op(10, 15, "write", "a"), DIED, believed("f0.0", (5, 6), "read", "")], False),
    ("a name half made as the disk dies is listed, and not found", [DIED, TRIED, *SEEN], True),
    ("not on a disk that lives", [TRIED, *SEEN], False),
    ("nor without such a change", [DIED, ELSEWHERE, *SEEN], False),
)


def test_permitted(t):
    for what, facts, good in PERMITTED:
        t.equal(what, judged(facts), set() if good else {ORDER})
    t.equal("kernels of a row", [judge.is_among("6.18.44", row) for row in ("all", "6.12, 6.18", "6.1., 7.2")], [True, True, False])
    t.check("each permitted anomaly has a reason", all(len(row[-1]) > 40 for row in judge.PERMITTED.values()))


def main():
    t = harness.Count()
    for test in (test_orders, test_drawn, test_cuts, test_rules, test_permitted):
        test(t)
    harness.result(t)


if __name__ == "__main__":
    main()
