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


def op(inv, ret, *what, must=True):
    return {"inv": inv, "ret": ret, "op": what, "must": must, "who": "0v3"}


def maybe(inv, ret, *what):
    return op(inv, ret, *what, must=False)


# --- orders of operations: what it is, model, operations, whether there is an order ---

ORDERS = (
    ("a value is read after its write", "reg", [op(0, 1, "write", "a"), op(2, 3, "read", "a")], True),
    ("an old value after a write", "reg", [op(0, 1, "write", "a"), op(2, 3, "read", "")], False),
    ("either value amid a write", "reg", [op(0, 9, "write", "a"), op(1, 2, "read", ""), op(3, 4, "read", "a")], True),
    ("the new value, then the old one", "reg", [op(0, 9, "write", "a"), op(1, 2, "read", "a"), op(3, 4, "read", "")], False),
    ("two writes in one order for two readers", "reg", [op(0, 9, "write", "a"), op(0, 9, "write", "b"), op(10, 11, "read", "a"), op(12, 13, "read", "a")], True),
    ("two writes in two orders", "reg", [op(0, 9, "write", "a"), op(0, 9, "write", "b"), op(10, 11, "read", "a"), op(12, 13, "read", "b")], False),
    ("a write without an answer had no effect", "reg", [maybe(0, 5, "write", "a"), op(6, 7, "read", "")], True),
    ("a write without an answer had one", "reg", [maybe(0, 5, "write", "a"), op(6, 7, "read", "a")], True),
    ("a write without an answer has its effect too late", "reg", [maybe(0, 5, "write", "a"), op(6, 7, "read", ""), op(8, 9, "read", "a")], False),
    ("a write without an answer has it twice", "reg",
     [maybe(0, 9, "write", "a"), op(1, 2, "read", "a"), op(3, 4, "write", "b"), op(5, 6, "read", "a")], False),
    ("create, look up, remove", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "lookup", 0, ONE), op(4, 5, "remove", 0, "file", "ok"), op(6, 7, "lookup", 0, 0)], True),
    ("removed twice", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "remove", 0, "file", "ok"), op(4, 5, "remove", 0, "file", "ok")], False),
    ("made twice", "names", [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "create", 0, TWO, "guarded", TWO, "ok")], False),
    ("made, removed, and there once more", "names",
     [op(0, 9, "create", 0, ONE, "guarded", ONE, "ok"), op(1, 2, "remove", 0, "file", "ok"), op(10, 11, "lookup", 0, ONE)], False),
    ("EXIST for nothing", "names", [op(0, 1, "create", 0, ONE, "guarded", ONE, "EXIST")], False),
    ("EXIST for what is there", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "create", 0, TWO, "guarded", TWO, "EXIST")], True),
    ("opened by another's CREATE", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "create", 0, TWO, "unchecked", ONE, "ok")], True),
    ("opened by another's CREATE, which takes it for its own", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "create", 0, TWO, "unchecked", TWO, "ok")], False),
    ("made and gone before it was seen", "names", [op(0, 9, "create", 0, ONE, "guarded", -1, "ok"), op(1, 2, "remove", 0, "any", "ok")], True),
    ("made and gone, and nobody took it", "names", [op(0, 9, "create", 0, ONE, "guarded", -1, "ok"), op(10, 11, "lookup", 0, 0)], False),
    ("a name moves", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "rename", 0, 1, "ok"), op(4, 5, "lookup", 0, 0), op(6, 7, "lookup", 1, ONE)], True),
    ("a name moves and stays", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "rename", 0, 1, "ok"), op(4, 5, "lookup", 0, ONE)], False),
    ("a name that is nowhere moves", "names", [op(0, 1, "rename", 0, 1, "ok")], False),
    ("a file over a directory", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "create", 1, FOLDER, "guarded", FOLDER, "ok"), op(4, 5, "rename", 0, 1, "ok")], False),
    ("two names of one file", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "link", ONE, 1, "ok"), op(4, 5, "nlink", ONE, 2)], True),
    ("a link too many", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "link", ONE, 1, "ok"), op(4, 5, "nlink", ONE, 3)], False),
    ("a rename between two names of one file changes nothing", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "link", ONE, 1, "ok"), op(4, 5, "rename", 0, 1, "ok"), op(6, 7, "lookup", 0, ONE)], True),
    ("a link over a name", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "create", 1, TWO, "guarded", TWO, "ok"), op(4, 5, "link", ONE, 1, "ok")], False),
    ("NOENT for what is there", "names", [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "remove", 0, "file", "NOENT")], False),
    ("RMDIR of a file", "names", [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "remove", 0, "dir", "ok")], False),
    ("an exclusive create that is sent again finds its own file", "names",
     [op(0, 1, "create", 0, ONE, "exclusive", ONE, "ok"), op(2, 3, "create", 0, ONE, "exclusive", ONE, "ok")], True),
    ("an exclusive create that is sent again does not know its own file", "names",
     [op(0, 1, "create", 0, ONE, "exclusive", ONE, "ok"), op(2, 3, "create", 0, ONE, "exclusive", ONE, "EXIST")], False),
    ("one exclusive create that made two files, one of which replaces the other", "names",
     [op(0, 1, "create", 0, ONE, "exclusive", ONE, "ok"), op(2, 3, "rename", 0, 1, "ok"), op(4, 5, "create", 0, ONE, "exclusive", ONE, "ok"),
      op(6, 7, "rename", 0, 1, "ok"), op(8, 9, "lookup", 0, 0), op(10, 11, "lookup", 1, ONE)], True),
    ("one exclusive create whose two files are one", "names",
     [op(0, 1, "create", 0, ONE, "exclusive", ONE, "ok"), op(2, 3, "rename", 0, 1, "ok"), op(4, 5, "create", 0, ONE, "exclusive", ONE, "ok"),
      op(6, 7, "rename", 0, 1, "ok"), op(8, 9, "lookup", 0, ONE)], False),
    ("a link to what is gone", "names",
     [op(0, 1, "create", 0, ONE, "guarded", ONE, "ok"), op(2, 3, "remove", 0, "file", "ok"), op(4, 5, "link", ONE, 1, "ok")], False),
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
        if failure and linear.check(judge.shrink(ops, failure, step), failure.states, step) is None:
            t.check(f"drawn history {i}", False, f"nothing is wrong with its shortest form: {ops}")
            return
    t.check("drawn histories of both kinds", min(good.values()) > DRAWN / 10, good)


# --- power cuts: what was acknowledged stays; what was not may go, though it was seen ---

POWER = ("nemesis", dict(inv=50, ret=60, what="power", run=1))


def before(inv, ret, *what, must=True, obj="f0.0"):
    return "op", dict(obj=obj, who="0v3", inv=inv, ret=ret, op=what, must=must, run=0)


def after(inv, *what, obj="f0.0"):
    return "op", dict(obj=obj, who="0v3", inv=inv, ret=inv + 1, op=what, must=True, run=1)


FOUND = (before(0, 60, "create", 0, ONE, "guarded", ONE, MAYBE, must=False, obj="ns"), before(2, 3, "create", 0, TWO, "unchecked", ONE, "ok", obj="ns"))
CUTS = (
    ("an acknowledged write", [before(0, 1, "write", "a"), after(70, "read", "a")], [before(0, 1, "write", "a"), after(70, "read", "")]),
    ("a write under way, which was seen", [before(0, 60, "write", "a", must=False), before(2, 3, "read", "a"), after(70, "read", "")],
     [before(0, 60, "write", "a", must=False), before(2, 3, "read", "a"), after(70, "read", "b")]),
    ("a write under way, which was kept", [before(0, 60, "write", "a", must=False), after(70, "read", "a")],
     [before(0, 60, "write", "a", must=False), after(70, "read", "a"), after(80, "read", "")]),
    ("a write above one under way", [before(0, 60, "write", "a", must=False), before(2, 3, "write", "b"), after(70, "read", "b")],
     [before(0, 60, "write", "a", must=False), before(2, 3, "write", "b"), after(70, "read", "")]),
    ("a file that an open has found whose create was under way", [*FOUND, after(70, "lookup", 0, ONE, obj="ns")], [*FOUND, after(70, "lookup", 0, 0, obj="ns")]),
    ("a later write", [before(0, 1, "write", "a"), after(70, "write", "b"), after(80, "read", "b")], [before(0, 1, "write", "a"), after(70, "write", "b"), after(80, "read", "a")]),
)


def test_cuts(t):
    for what, good, bad in CUTS:
        t.equal(f"after a power cut: {what}", judged([POWER, *good]), set())
        t.equal(f"not after a power cut: {what}", judged([POWER, *bad]), {"no order explains the answers"})


# --- the judge's other rules: facts that are in order, and a change that is none; what it is called ---

def lock(who, start, end, rel=None, kind=2, offset=0, size=8):
    return "lock", dict(who=who, kind=kind, offset=offset, size=size, inv=start - 1, start=start, end=end, rel=rel or end + 1)


def share(who, start, end, access, deny):
    return "share", dict(who=who, access=access, deny=deny, inv=start - 1, start=start, end=end, rel=end + 1)


def attr(inv, change, run=0):
    return "attr", dict(obj="f0", inv=inv, ret=inv + 1, run=run, change=change, ctime=None, mtime=None)


def name(n, inv, gone=None):
    return "name", dict(name=n, who="0", inv=inv, ret=inv + 1, gone_inv=gone, gone_ret=gone and gone + 1)


def listing(inv, *names):
    return "listing", dict(who="1", inv=inv, ret=inv + 5, names=names)


def longstop(seconds):
    return "nemesis", dict(what="longstop", inv=10, ret=seconds * 10**9)


REBOOTED = ("lock", dict(lock("0v3", 1, 5, NEVER)[1], told=7))
DENIED_LATE = ("denied", dict(who="1local", kind=2, offset=0, size=8, inv=6 * 10**9, ret=6 * 10**9 + 1))
CHANGE = ("change", dict(obj="f0", inv=2, ret=3))
DELEGATION = ("delegation", dict(who="0v41b", kind=2, f="dg0", start=10, end=20, restarted=False))
END, COUNTED = ("end", dict(big=("a",), counters=())), ("end", dict(big=(), counters=(2,)))


def register(inv, who, *what, **more):
    return "op", dict({"obj": "dg0.0", "inv": inv, "ret": inv + 1, "op": what, "who": who, "must": True}, **more)


def size(inv, ret, *what, must=True):
    return "op", dict(obj="sz0", inv=inv, ret=ret, op=what, who="0v41b", must=must)


ORDER = "no order explains the answers"
RULES = (
    # The holder of a delegation changes a size, which others see by CB_GETATTR; it dies, and the file has the old one.
    (ORDER, [size(0, 1, "write", 7), size(2, 3, "read", 7)], [size(0, 1, "write", 7), size(2, 3, "read", 0)]),
    (ORDER, [size(0, 1, "write", 7), size(0, NEVER, "write", 0, must=False), size(4, 5, "read", 7), size(6, 7, "read", 0)],
     [size(0, 1, "write", 7), size(0, NEVER, "write", 0, must=False), size(4, 5, "read", 7), size(6, 7, "read", 0), size(8, 9, "read", 7)]),
    # A COPY in the background.
    (ORDER, [register(0, "0v42b", "write", "a", ret=9), register(1, "1v3", "read", ""), register(3, "1v3", "read", "a")],
     [register(0, "0v42b", "write", "a", ret=9), register(1, "1v3", "read", "a"), register(3, "1v3", "read", "")]),
    # The last holder's machine has come again, which its status monitor says between 5 and 7.
    ("a lock is held by two", [lock("0v3", 1, 5, 7), lock("0v3", 9, 12), lock("1v3", 6, 8)], [lock("0v3", 1, 5, 7), lock("0v3", 9, 12), lock("1v3", 6, 10)]),
    ("a lock is denied though nobody holds it", [lock("0v3", 1, 5, 7), ("denied", dict(who="1v3", kind=2, offset=0, size=8, inv=6, ret=9))],
     [lock("0v3", 1, 5, 7), ("denied", dict(who="1v3", kind=2, offset=0, size=8, inv=8, ret=9))]),
    # The server frees its locks within two seconds, in which it is stopped for five, or for one.
    ("a lock is denied though nobody holds it", [REBOOTED, longstop(5), DENIED_LATE], [REBOOTED, longstop(1), DENIED_LATE]),
    ("change goes back", [attr(0, 5), attr(2, 6), attr(4, 6)], [attr(0, 5), attr(2, 6), attr(4, 5)]),
    ("change is the same before and after a change", [attr(0, 5), CHANGE, attr(4, 6)], [attr(0, 5), CHANGE, attr(4, 5)]),
    # A power cut takes a change that was not flushed.
    ("change is the same before and after a change", [attr(0, 5), CHANGE, POWER, attr(70, 5, run=1)], [attr(0, 5), CHANGE, attr(4, 5), POWER, attr(70, 5, run=1)]),
    ("a lock is held by two", [lock("0", 1, 5), lock("1", 6, 9)], [lock("0", 1, 5), lock("1", 4, 9)]),
    ("a lock is held by two", [lock("0", 1, 5, kind=1), lock("1", 4, 9, kind=1)], [lock("0", 1, 5, kind=1), lock("1", 4, 9)]),
    ("a lock is held by two", [lock("0", 1, 5), lock("1", 4, 9, offset=8)], [lock("0", 1, 5), lock("1", 4, 9, offset=7)]),
    ("a lock is denied though nobody holds it", [lock("0", 1, 5), ("denied", dict(who="1", kind=2, offset=0, size=8, inv=3, ret=4))],
     [lock("0", 1, 5), ("denied", dict(who="1", kind=2, offset=0, size=8, inv=8, ret=9))]),
    ("two opens deny each other", [share("0", 1, 5, 1, 0), share("1", 3, 9, 1, 2)], [share("0", 1, 5, 1, 0), share("1", 3, 9, 2, 1)]),
    ("an open is denied though nobody denies it", [share("0", 1, 5, 1, 2), ("share denied", dict(who="1", access=2, deny=0, inv=3, ret=4))],
     [share("0", 1, 5, 1, 2), ("share denied", dict(who="1", access=1, deny=0, inv=3, ret=4))]),
    ("I/O passes an open that denies it", [share("0", 1, 9, 1, 2), ("io", dict(who="1", access=1, status="ok", inv=3, ret=4))],
     [share("0", 1, 9, 1, 2), ("io", dict(who="1", access=2, status="ok", inv=3, ret=4))]),
    ("I/O is denied though nobody denies it", [share("0", 1, 9, 1, 2), ("io", dict(who="1", access=2, status="ACCES", inv=3, ret=4))],
     [share("0", 1, 9, 1, 2), ("io", dict(who="1", access=2, status="ACCES", inv=12, ret=13))]),
    ("a file is used against another's delegation", [DELEGATION, register(12, "0v41b", "read", ""), register(22, "1v3", "read", "")],
     [DELEGATION, register(12, "1v3", "read", "")]),
    ("a listing has names twice", [name("a", 0), listing(5, "a")], [name("a", 0), listing(5, "a", "a")]),
    ("a listing has not all names", [("stable", dict(names=("s",))), listing(5, "s")], [("stable", dict(names=("s",))), listing(5)]),
    ("a listing has not all names", [name("a", 0, 7), listing(5)], [name("a", 0, 11), listing(5)]),
    ("a listing has names of nobody", [listing(5)], [listing(5, "x")]),
    ("a listing has names of another time", [name("a", 0, 4), listing(5, "a")], [name("a", 0, 2), listing(5, "a")]),
    ("an acknowledged name is lost", [name("a", 0), END], [name("a", 0), name("b", 0), END]),
    ("a removed name is there", [name("b", 0, 2), END], [name("a", 0, 2), END]),
    ("a write verifier of two runs, or two of one", [("verifier", dict(run=0, verifier="x")), ("verifier", dict(run=1, verifier="y"))],
     [("verifier", dict(run=0, verifier="x")), ("verifier", dict(run=1, verifier="x"))]),
    ("a counter under locks is wrong", [("added", dict(counter=0, sure=True)), ("added", dict(counter=0, sure=False)), COUNTED],
     [("added", dict(counter=0, sure=True)), COUNTED]),
    ("WRITE fails", [], [("trouble", dict(what="WRITE fails", inv=0))]),
)


def judged(facts):
    h = History(fs="ext4")
    for kind, fact in facts:
        h.add(kind, **fact)
    return {what for what, _ in judge.Judge(h).run()}


def test_rules(t):
    for what, good, bad in RULES:
        t.equal(f"accepted: {what}", judged(good), set())
        t.equal(f"refused: {what}", judged(bad), {what})


# --- permitted anomalies: only where the table says so ---

def test_permitted(t):
    write = ("op", dict(obj="f0.0", inv=10, ret=30, op=("write", "a"), who="0v3", must=True))
    late = ("op", dict(obj="f0.0", inv=40, ret=41, op=("read", ""), who="1v42 cached", must=True, fetch=(15, 16)))
    t.equal("data fetched amid a write are believed under its validator", judged([write, late]), set())
    early = (late[0], {**late[1], "fetch": (1, 2)})
    t.equal("data fetched before it are not", judged([write, early]), {"no order explains the answers"})
    put = ("op", dict(obj="ns", inv=1, ret=2, op=("create", 0, ONE, "guarded", ONE, "ok"), who="0v3", must=True))
    taken = ("op", dict(obj="ns", inv=10, ret=30, op=("remove", 0, "file", "ok"), who="0v3", must=True))
    late = ("op", dict(obj="ns", inv=40, ret=41, op=("lookup", 0, ONE), who="1v42 cached", must=True, fetch=(15, 16)))
    t.equal("a name found amid its removal is believed", judged([put, taken, late]), set())
    early = (late[0], {**late[1], "fetch": (5, 6)})
    t.equal("a name found before it is not", judged([put, taken, early]), {"no order explains the answers"})
    died, late = ("nemesis", dict(what="die", inv=20, ret=35, run=1)), (late[0], dict(late[1], op=("read", ""), obj="f0.0", who="1v3 cached", fetch=(5, 6), run=1))
    t.equal("data fetched before the disk died amid a write are believed under an older time", judged([write, died, late]), set())
    t.equal("those are not that were fetched behind it", judged([write, died, (late[0], dict(late[1], fetch=(36, 37)))]), {"no order explains the answers"})
    t.equal("nor over a death without a write", judged([(write[0], dict(write[1], ret=15)), died, late]), {"no order explains the answers"})
    tried = ("op", dict(obj="ns", inv=19, ret=22, op=("create", 0, ONE, "guarded", ONE, MAYBE), who="0v3", must=False))
    seen = [("op", dict(obj="ns", inv=at, ret=at + 1, op=("lookup", i, -1 * (at == 24)), who="1v3 list", must=True)) for at, i in ((24, 0), (26, 0))]
    t.equal("a name half made as the disk dies is listed, and not found", judged([died, tried, *seen]), set())
    t.equal("not on a disk that lives", judged([tried, *seen]), {"no order explains the answers"})
    t.equal("nor without such a change", judged([died, (tried[0], dict(tried[1], op=("create", 1, ONE, "guarded", ONE, MAYBE))), *seen]), {"no order explains the answers"})
    t.check("each permitted anomaly has a reason", all(len(row[-1]) > 40 for row in judge.PERMITTED.values()))


def main():
    t = harness.Count()
    for test in (test_orders, test_drawn, test_cuts, test_rules, test_permitted):
        test(t)
    harness.result(t)


if __name__ == "__main__":
    main()
