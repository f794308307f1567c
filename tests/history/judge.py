# SPDX-License-Identifier: BSD-2-Clause
"""Judges a history: whatever no single file system could have answered is an anomaly. PERMITTED lists those that are known and explained.

The judge reads the facts alone, so a kept history can be judged again, cut down to the shortest one that still fails, and told as a story.
"""
import bisect
import itertools

import linear
from acts import EMPTY, NAMES, SLOTS, reg
from linear import Undecided, check
from record import NEVER, RUNS


CUTS = ("power", "die")  # what the nemesis does that takes from the disk what was not flushed
FREED = 2 * 10**9  # nanoseconds that a server has, while it runs, to free the locks of a client that it was told has rebooted
REACH = 10**9  # nanoseconds before the last quiet moment in which the cause of a failure is looked for


def overlap(a, b):
    return a["inv"] < b["ret"] and b["inv"] < a["ret"]


def fetches(op):
    """Times at which the client may have fetched its answer, if that is from its cache."""
    return [{"inv": inv, "ret": ret} for inv, ret in op.get("fetches", (op["fetch"],) if "fetch" in op else ())]


def fetched_amid_write(op, ops, _):
    """The client fetched the data, or believed in them, while a write was under way."""
    kept = fetches(op)
    return op["op"][0] == "read" and kept and any(w["op"][0] == "write" and any(overlap(w, f) for f in (*kept, op)) for w in ops)


def found_amid_change(op, ops, _):
    """The client found the name, under a validator that was the same before and after, while the name was under way."""
    return op["op"][0] == "lookup" and any(not linear.reads_only(o["op"]) and overlap(o, f) for f in fetches(op) for o in ops)


def counted_amid_change(op, ops, _):
    return op["op"][0] == "nlink" and any(not linear.reads_only(o["op"]) and overlap(o, op) for o in ops)


def missed_amid_rename(op, ops, _):
    return op["op"][0] == "lookup" and op["op"][2] == 0 and op["who"].endswith(" list") and any(
        o["op"][0] == "rename" and o["op"][2] == op["op"][1] and overlap(o, op) for o in ops)


def fetched_before_death(op, ops, deaths):
    """The client fetched the data before the disk died, and a write of the file was under way as it did."""
    return "fetch" in op and op["op"][0] == "read" and any(
        op["fetch"][1] < d["ret"] and d["inv"] < op["inv"] and any(w["op"][0] == "write" and overlap(w, d) for w in ops) for d in deaths)


def touched(op):
    """Names that an operation changes."""
    return {"rename": op[1:3], "link": op[2:3]}.get(op[0], op[1:2])


def found_half_made(op, ops, deaths):
    """The disk has died, the machine has not gone yet, and a change of the name was not acknowledged meanwhile."""
    return op["op"][0] == "lookup" and any(
        overlap(op, d) and any(not o["must"] and overlap(o, d) and op["op"][1] in touched(o["op"]) for o in ops) for d in deaths)


def found_by_delegation(op, ops, _):
    """Linux's client found the name of a file that is delegated to it, and a local process had changed the name a moment before."""
    what = op["op"]
    opened = what[0] == "create" and what[3] == "unchecked" and what[-1] == "ok"
    found = opened or what[0] == "lookup" and what[2] > 0 or what[-1] in ("EXIST", "ISDIR", "NOTDIR")
    return "linux4" in op["who"] and found and any(
        o["who"].endswith("local") and not linear.reads_only(o["op"]) and set(touched(what)) & set(touched(o["op"])) and
        o["inv"] < op["ret"] and op["inv"] < o["ret"] + REACH for o in ops)


# Anomaly: (which operation it is, file systems, kernels, reason). Where a history fails, an operation of such a shape before the failure is
# left out, and is counted.
PERMITTED = {
    "validator newer than the data": (fetched_amid_write, "all", "all", "Linux changes a file's times before its data (file_update_time, then the pages; "
                                      "truncation the other way round), so a reader between sees the new times and the old data, or the reverse."),
    "validator newer than the name": (found_amid_change, "all", "all", "Linux changes a directory's times within rename() and unlink(), and the name in its cache of "
                                      "names behind that; a lookup that finds the name there does not wait for the directory's lock."),
    "name found by a delegation": (found_by_delegation, "all", "all", "The kernel lets local processes remove and rename files that are delegated. The server recalls the "
                                   "delegation after the fact, and until then Linux's client takes the file's name for valid (doc/design/delegations.md)."),
    "link counted before its name": (counted_amid_change, "all", "all", "link() and unlink() change the link count and the directory in two steps; stat() of the "
                                     "object does not wait for the directory's lock."),
    "listing misses a name being replaced": (missed_amid_rename, "btrfs", "all", "rename() over an existing name removes the entry before it enters the new one, and readdir "
                                             "does not wait; local processes see it, too."),
    "data outlive their time": (fetched_before_death, "ext4", "all", "The disk has data in their place before the log has their time. A write that is under way as the disk "
                                "dies may leave data alone, so the file shows the older time again. fsync() that has begun before may even succeed: it finds that "
                                "its transaction is gone, and not that the log was aborted. Local processes see it, too."),
    "name half made as the disk died": (found_half_made, "ext4", "all", "A change that was under way may have its entry in the directory's block and fail behind that, so "
                                        "that the cache of names does not have it: listings show the name, without attributes, and lookups do not find it."),
}


def is_among(name, row):
    """True if a row's list of beginnings of names, or "all", has that name."""
    return row == "all" or name.startswith(tuple(row.split(", ")))


class Judge:
    """Facts that are judged (beside "op", see linear.py): "attr" of an object; "change", acknowledged; "lock", "denied"; "share", "share denied", "io" of
    files that deny; "delegation", "open" to write; "name" of the large directory and "listing" of it; "verifier" of unstable writes; "added"
    to a counter; "end", what was found behind the server's back; "trouble", wrong by itself."""

    def __init__(self, history):
        self.h, self.anomalies, self.permitted, self.undecided = history, [], {}, 0

    def run(self):
        """[(what, details)]. The details of an order that is missing have "failure"."""
        for f in self.h.of("trouble"):
            self.wrong(f["what"], **{k: v for k, v in f.items() if k not in ("k", "what")})
        for part in (self.orders, self.attributes, self.locks, self.shares, self.delegations, self.listings, self.verifiers, self.counters):
            part()
        return self.anomalies

    def wrong(self, what, **details):
        self.anomalies.append((what, details))

    # --- operations ---

    def objects(self):
        ops = {}
        for f in self.h.of("op"):
            ops.setdefault(f["obj"], []).append(f)
        return ops

    def model(self, obj):
        if obj == "ns":
            return (0,) * len(NAMES), linear.names
        return ((0,) * 3, linear.names) if obj.startswith("dd") else (0 if obj.startswith("sz") else EMPTY, linear.register)

    def orders(self):
        ops = self.objects()
        for obj in sorted(ops):
            try:
                self.order(obj, ops[obj], ops)
            except Undecided:
                self.undecided += 1

    def eras(self, facts):
        """The facts between two power cuts each, by the run of the server that answered; the last look has none."""
        cuts = [f["run"] for f in self.h.of("nemesis") if f["what"] in CUTS]
        eras = [[] for _ in range(len(cuts) + 1)]
        for f in facts:
            eras[-1 if f.get("run") is None else sum(run <= f["run"] for run in cuts)].append(f)
        return eras

    def members(self, facts):
        """The facts by the member of a cluster that answered: each has change attributes of its own."""
        by_member = {}
        for f in facts:
            by_member.setdefault((f.get("run") or 0) // RUNS, []).append(f)
        return by_member.values()

    def order(self, obj, ops, by_object):
        initial, model = self.model(obj)
        file, states = obj.split(".")[0], [initial]
        context = [o for s in range(SLOTS) for o in by_object.get(reg(file, s), ())] if "." in obj else ops
        for era in self.eras(ops):
            if not self.explain(obj, era, context, states, model):
                return
            states = linear.survivors(era, states, model)

    def explain(self, obj, ops, context, states, model):
        """Leaves out what permitted anomalies explain, until there is an order or nothing more to leave out. True if there is one."""
        while failure := check(ops, states, model):
            deaths = [f for f in self.h.of("nemesis") if f["what"] == "die" and f["inv"] < failure.op["ret"]]
            since = min([failure.start - 2 * REACH, *(d["inv"] for d in deaths)])
            near = [o for o in context if o["ret"] >= since and o["inv"] <= failure.op["ret"] + REACH]
            for reach in (0, REACH):
                suspects = [failure.op] + [o for o in ops if o["ret"] >= failure.start - reach and o["inv"] <= failure.op["ret"] and o is not failure.op]
                rows = [(row, [o for o in suspects if self.is_permitted(row, o, near, deaths)]) for row in PERMITTED]
                row, out = next((r for r in rows if r[1] and r[1][0] is failure.op), None) or next((r for r in rows if r[1]), (None, None))
                if out:
                    break
            if not out:
                self.wrong("no order explains the answers", obj=obj, failure=failure, ops=ops, model=model, inv=failure.op["inv"])
                return False
            if out[0] is failure.op:
                out = out[:1]
            self.permitted[row] = self.permitted.get(row, 0) + 1
            ops = [o for o in ops if not any(o is x for x in out)]
        return True

    def is_permitted(self, row, op, near, deaths):
        shape, systems, kernels, _ = PERMITTED[row]
        return is_among(self.h.head["fs"], systems) and is_among(self.h.head.get("kernel", ""), kernels) and shape(op, near, deaths)

    # --- attributes ---

    def attributes(self):
        seen, changes = {}, {}
        for f in self.h.of("attr"):
            seen.setdefault(f["obj"], []).append(f)
        for f in self.h.of("change"):
            changes.setdefault(f["obj"], []).append((f["inv"], f["ret"]))
        for obj, facts in seen.items():
            for era in (part for whole in self.eras(facts) for part in self.members(whole)):
                for what in ("change", "ctime", "mtime"):
                    self.forward(obj, what, [f for f in era if f[what] is not None])
                for what in ("change", "ctime"):
                    self.distinct(obj, what, [f for f in era if f[what] is not None], sorted(changes.get(obj, ())))

    def is_mark(self, value, best):
        """True if that is how a member of a cluster tells that a change is under way: one nanosecond less (vfs/fs/change.h). Other servers do where ctimes go by
        the tick, which those of the histories' file systems do not."""
        ns = [v[0] * 10**9 + v[1] if isinstance(v, tuple) else v for v in (value, best)]
        return self.h.head.get("profile") == "members" and ns[1] - ns[0] == 1

    def forward(self, obj, what, facts):
        answered, i, best = sorted(facts, key=lambda f: f["ret"]), 0, None
        for f in sorted(facts, key=lambda f: f["inv"]):
            while i < len(answered) and answered[i]["ret"] < f["inv"]:
                best = max(best or answered[i][what], answered[i][what])
                i += 1
            if best is not None and f[what] < best and not self.is_mark(f[what], best):
                return self.wrong(what + " goes back", obj=obj, was=best, is_now=f[what], inv=f["inv"], who=obj)
        return None

    def distinct(self, obj, what, facts, changes):
        first, last, invs = {}, {}, [c[0] for c in changes]
        for f in facts:
            first[f[what]] = min(first.get(f[what], NEVER), f["ret"])
            last[f[what]] = max(last.get(f[what], 0), f["inv"])
        for v in first:
            for c in itertools.takewhile(lambda c: c[0] <= last[v], changes[bisect.bisect_right(invs, first[v]):]):
                if c[1] < last[v]:
                    return self.wrong(what + " is the same before and after a change", obj=obj, value=v, change=c, seen=(first[v], last[v]), inv=c[0])
        return None

    # --- state ---

    def released(self, f, stops):
        """The time at which a lock is surely gone. "told" is the answer to SM_NOTIFY: its locks are freed behind that, unless the server is stopped."""
        if "told" not in f:
            return f["rel"]
        end = f["told"] + FREED
        for stop in stops:
            if stop["ret"] > f["told"] and stop["inv"] < end:
                end += stop["ret"] - max(stop["inv"], f["told"])
        return end

    def held_by_two(self, what, facts, meet):
        """No two facts that conflict are surely held at one time."""
        facts = sorted(facts, key=lambda f: f["start"])
        for i, a in enumerate(facts):
            for b in itertools.takewhile(lambda b: b["start"] < a["end"], facts[i + 1:]):
                if b["end"] > b["start"] and meet(a, b):
                    self.wrong(what, a=a, b=b, inv=b["inv"])

    def denied_by_nobody(self, what, denials, facts, meet, gone=lambda f: f["rel"]):
        """Each denial conflicts with a fact that may have been held then. gone: when a fact's lock or open surely was no more."""
        for d in denials:
            if not any(meet(d, f) and f["inv"] < d["ret"] and gone(f) > d["inv"] for f in facts):
                self.wrong(what, denied=d, inv=d["inv"])

    def locks(self):
        locks, stops = self.h.of("lock"), sorted((f for f in self.h.of("nemesis") if f["what"] in ("stop", "longstop")), key=lambda f: f["inv"])

        def meet(a, b):
            return a["who"] != b["who"] and a["offset"] < b["offset"] + b["size"] and b["offset"] < a["offset"] + a["size"] and 2 in (a["kind"], b["kind"])
        self.held_by_two("a lock is held by two", locks, meet)
        self.denied_by_nobody("a lock is denied though nobody holds it", self.h.of("denied"), locks, meet, lambda f: self.released(f, stops))

    def shares(self):
        shares, io = self.h.of("share"), self.h.of("io")

        def meet(a, b):
            return a["who"] != b["who"] and (a["access"] & b["deny"] or b["access"] & a["deny"])
        self.held_by_two("two opens deny each other", shares, meet)
        self.denied_by_nobody("an open is denied though nobody denies it", self.h.of("share denied"), shares, meet)
        self.denied_by_nobody("I/O is denied though nobody denies it", [f for f in io if f["status"] != "ok"], shares, lambda d, f: d["access"] & f["deny"])
        for f in io:
            if f["status"] == "ok" and any(s["deny"] & f["access"] and s["start"] < f["inv"] and s["end"] > f["ret"] for s in shares):
                self.wrong("I/O passes an open that denies it", io=f, inv=f["inv"])

    def delegations(self):
        opens, ops = self.h.of("open"), self.objects()
        for d in self.h.of("delegation"):
            def within(o):
                return o["who"].split()[0] != d["who"] and d["start"] < o["inv"] and o["ret"] < d["end"]
            # A reader in the grace period may pass a write delegation: the holder has been promised no space, so it has no data either.
            exclusive = d["kind"] == 2 and not d["restarted"]
            # Linux's client reads by NFSv3 without READ what it has, and nothing of an empty file.
            used = [o for s in range(SLOTS) for o in ops.get(reg(d["f"], s), ()) if within(o) and o["must"] and (exclusive and "fetches" not in o or o["op"][0] == "write")]
            used += [o for o in opens if o["f"] == d["f"] and within(o)]
            if used:
                self.wrong("a file is used against another's delegation", delegation=d, used=used[0], inv=used[0]["inv"])

    # --- names of the large directory ---

    def listings(self):
        names = {f["name"]: {k: NEVER if v is None else v for k, v in f.items()} for f in self.h.of("name")}
        stable = {n for f in self.h.of("stable") for n in f["names"]}
        for listing in self.h.of("listing"):
            seen = set(listing["names"])

            def bad(what, some):
                if some:
                    self.wrong("a listing has " + what, who=listing["who"], names=sorted(some)[:5], inv=listing["inv"], ret=listing["ret"])
            bad("names twice", seen if len(seen) != len(listing["names"]) else ())
            bad("not all names", [n for n in stable - seen] + [n for n, f in names.items() if n not in seen and f["ret"] < listing["inv"] and f["gone_inv"] > listing["ret"]])
            bad("names of nobody", seen - stable - set(names))
            bad("names of another time", [n for n in seen & set(names) if names[n]["inv"] > listing["ret"] or names[n]["gone_ret"] < listing["inv"]])
        for end in self.h.of("end"):
            left = set(end["big"])
            for n, f in names.items():
                if f["ret"] < NEVER and f["gone_inv"] == NEVER and n not in left:
                    self.wrong("an acknowledged name is lost", name=n, inv=f["inv"])
                if f["gone_inv"] < NEVER and f["gone_ret"] < NEVER and n in left:
                    self.wrong("a removed name is there", name=n, inv=f["gone_inv"])

    def verifiers(self):
        # A flush that fails ends a verifier, and so does a program that is run anew in its process.
        run_of, of_run, fails = {}, {}, {"errors", "anew"} & set(self.h.head.get("nemesis", ()))
        for f in self.h.of("verifier"):
            if run_of.setdefault(f["verifier"], f["run"]) != f["run"] or (of_run.setdefault(f["run"], f["verifier"]) != f["verifier"] and not fails):
                return self.wrong("a write verifier of two runs, or two of one", inv=f.get("inv", 0), fact=f)
        return None

    def counters(self):
        for end in self.h.of("end"):
            for k, v in enumerate(end["counters"]):
                steps = [f["sure"] for f in self.h.of("added") if f["counter"] == k]
                if not sum(steps) <= v <= len(steps):
                    self.wrong("a counter under locks is wrong", counter=k, value=v, acknowledged=sum(steps), unknown=len(steps) - sum(steps), inv=0)


# --- the shortest history that fails, and its story ---

def shrink(ops, failure, model):
    """From the last quiet moment on, without the reads that the failure does not need. Only answers are left out, so what is left cannot be
    explained either. An answer behind the failure is none, as what explains it may have begun behind the failure, too."""
    ops = [o if o["ret"] <= failure.op["ret"] else {**o, "must": False} for o in ops if o["ret"] >= failure.start and o["inv"] <= failure.op["ret"]]
    size = len(ops)
    while size:
        at = 0
        while at < len(ops):
            fewer = ops[:at] + [o for o in ops[at:at + size] if not linear.reads_only(o["op"])] + ops[at + size:]
            if len(fewer) < len(ops) and check(fewer, failure.states, model):
                ops = fewer
            else:
                at += size
        size //= 2
    return ops


def when(t, zero):
    return f"{(t - zero) / 1e6:10.3f}" if t < NEVER else "     never"


def tell(h, what, details):
    """The lines of one anomaly: times in milliseconds, called and answered."""
    if "failure" not in details:
        return [f"{what}: " + ", ".join(f"{k} {v}" for k, v in details.items())]
    failure, ops = details["failure"], shrink(details["ops"], details["failure"], details["model"])
    zero = min((o["inv"] for o in ops), default=0)
    lines = [f"{what}: {details['obj']}, which was {' or '.join(map(repr, failure.states[:4]))} before"]
    rows = [(o["inv"], f"{when(o['inv'], zero)} {when(o['ret'], zero)}  {o['who']:16} {' '.join(map(str, o['op']))}"
             f"{'' if o['must'] else '  (no answer)'}{'  <-- cannot be' if o['op'] == failure.op['op'] and o['inv'] == failure.op['inv'] else ''}") for o in ops]
    rows += [(f["inv"], f"{when(f['inv'], zero)} {when(f['ret'], zero)}  nemesis: {f['what']}") for f in h.of("nemesis")
             if f["ret"] >= zero - 10**9 and f["inv"] <= failure.op["ret"]]
    return lines + [text for _, text in sorted(rows)]
