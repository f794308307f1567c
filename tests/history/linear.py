# SPDX-License-Identifier: BSD-2-Clause
"""The search for an order of operations that explains all answers: just-in-time linearization (Lowe, 2017), and the models of what is ordered.

An operation is a dictionary: "inv" and "ret", when it was called and answered; "op", what it was, its result last; "must", false if
nobody knows whether it had an effect. A model is a function of a state and an operation: the state behind it, or None where the answer
could not be.
"""
MAYBE = "?"  # result of an operation that was not answered
REG, DIR, LNK = range(3)  # a tag's last two bits: the type of the object
TWIN = 1 << 40  # above the tag of a second object: an exclusive create that is sent again finds nothing if its first file has moved meanwhile
LIMIT = 150000  # steps until a history counts as undecided


class Undecided(Exception):
    pass


class Failure:
    """op cannot be explained. Before it the last moment with nothing under way was start, in one of states."""

    def __init__(self, op, start, states):
        self.op, self.start, self.states = op, start, states


def reads_only(op):
    """True if the operation changes nothing in any state, so it may take effect as soon as it can."""
    return op[0] in ("read", "lookup", "nlink") or (op[0] != "write" and op[-1] not in ("ok", MAYBE))


def check(ops, states, model):
    """The first Failure, or None."""
    return _order(ops, states, model)[0]


def survivors(ops, states, model):
    """The states that a power cut may leave: what was acknowledged stays; what was not may be gone, though others may have seen it."""
    failure, after = _order([o for o in ops if not reads_only(o["op"])], states, model)
    return states if failure else after


def _order(ops, states, model):
    """(the first Failure or None, possible states at the end). Configurations are pairs: a state, and the operations under way that have
    taken effect."""
    events = sorted(e for i, o in enumerate(ops) for e in ((o["inv"], 0, i), (o["ret"], 1, i)))
    pending, configs, work = {}, {(s, frozenset()) for s in states}, 0
    start, quiet = 0, list(states)

    def absorb(state, done):
        while more := [p for p, o in pending.items() if p not in done and reads_only(o["op"]) and o["must"] and model(state, o["op"]) is not None]:
            done = done | frozenset(more)
        return done

    for at, answered, i in events:
        if not answered:
            if not pending:
                start, quiet = at, [s for s, _ in configs]
            pending[i] = ops[i]
            continue
        new, seen, todo = set(), set(), []
        for state, done in configs:
            if i in done:
                new.add((state, done - {i}))
                continue
            if not ops[i]["must"]:
                new.add((state, done))
            todo.append((state, done))
        while todo:
            c = todo.pop()
            if c in seen:
                continue
            seen.add(c)
            work += 1
            if work > LIMIT:
                raise Undecided()
            state, done = c[0], absorb(*c)
            if i in done:
                new.add((state, done - {i}))
                continue
            for p, o in pending.items():
                after = None if p in done else model(state, o["op"])
                if after is None or (after == state and not o["must"]):
                    continue
                if p == i:
                    new.add((after, done))
                else:
                    todo.append((after, done | {p}))
        del pending[i]
        if not new:
            return Failure(ops[i], start, quiet), ()
        configs = new
    return None, list({s for s, _ in configs})


def register(state, op):
    """("write", value), ("read", value)"""
    if op[0] == "write":
        return op[1]
    return state if op[1] == state else None


def names(state, op):
    """The state is a tag for each name, or 0. An object's tag is the user who made it, so each maker knows its own again."""
    return NAMES[op[0]](state, *op[1:])


def _put(state, i, tag):
    return state[:i] + (tag,) + state[i + 1:]


def _kind(tag):
    return tag & 3


def _create(state, i, tag, mode, got, res):
    """got: whose object the answer showed; -1 if it was gone before it could be seen whose it was."""
    here = state[i] % TWIN
    if here == 0:
        return _put(state, i, tag + TWIN * (tag in state)) if res == MAYBE or (res == "ok" and got in (tag, -1)) else None
    open_it = mode == "unchecked" and _kind(here) == REG
    good = (res == "ok" and got in (here, -1) and (open_it or (mode == "exclusive" and here == tag)) or
            res == "EXIST" and not open_it and not (mode == "exclusive" and here == tag) or res == "ACCES" and mode == "unchecked" or
            res in ("ISDIR", "SYMLINK", "INVAL", "NOTDIR") and _kind(here) != REG)
    return state if good else None


def _remove(state, i, how, res):
    """how: "file", "dir", or "any" where the operation takes both."""
    here = state[i]
    wrong = here and how != "any" and (how == "dir") != (_kind(here) == DIR)
    if res in (MAYBE, "ok"):
        return _put(state, i, 0) if here and not wrong else None
    good = here == 0 if res == "NOENT" else wrong and res in (("NOTDIR",) if how == "dir" else ("ISDIR", "NOTEMPTY", "EXIST", "PERM"))
    return state if good else None


def _rename(state, i, j, res):
    a, b = state[i], state[j]
    mixed = a and b and (_kind(a) == DIR) != (_kind(b) == DIR)
    if res in (MAYBE, "ok"):
        if not a or (mixed and i != j):
            return None
        return state if i == j or a == b else _put(_put(state, j, a), i, 0)
    good = a == 0 if res == "NOENT" else mixed and res in ("EXIST", "ISDIR", "NOTDIR", "INVAL")
    return state if good else None


def _link(state, tag, j, res):
    there = any(t % TWIN == tag for t in state)
    if res in (MAYBE, "ok"):
        return _put(state, j, tag) if there and not state[j] else None
    good = state[j] if res == "EXIST" else not there and res in ("STALE", "NOENT")
    return state if good else None


def _lookup(state, i, tag):
    """tag: -1 if something is there, nobody knows whose."""
    return state if state[i] % TWIN == tag or (tag == -1 and state[i]) else None


def _nlink(state, tag, n):
    return state if state.count(tag) == n else None


NAMES = {"create": _create, "remove": _remove, "rename": _rename, "link": _link, "lookup": _lookup, "nlink": _nlink}
