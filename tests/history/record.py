# SPDX-License-Identifier: BSD-2-Clause
"""A history: facts that clients and the nemesis write down, in a file of one JSON object a line, which can be judged again alone.

Each fact has a kind, "k", and times in nanoseconds of the monotonic clock: "inv" and "ret", called and answered; "start" and "end", surely
held between; "rel", surely gone behind. The kinds are described at the methods of judge.Judge that read them.
"""
import collections
import json
import time

NEVER = 1 << 62
RUNS = 1000  # of a server, at most; the next one of a cluster counts from here on
DEAD = ("IO", "ROFS", "SERVERFAULT", "RESOURCE", "RETRY_UNCACHED_REP")  # answers while the disk is dead (PUTFH has no NFS4ERR_IO) or memory is short
now = time.monotonic_ns


def _tuples(v):
    return tuple(map(_tuples, v)) if isinstance(v, list) else {k: _tuples(x) for k, x in v.items()} if isinstance(v, dict) else v


class History:
    def __init__(self, **head):
        self.head, self.facts, self.counts = head, [], collections.Counter()

    def add(self, k, **fact):
        """The fact, which may be changed until the history is judged."""
        self.facts.append({"k": k, **fact})
        return self.facts[-1]

    def op(self, obj, inv, ret, op, who, must=True, **more):
        """An operation on an object that has a model, or None. It had no effect if the server that had it was gone before."""
        if op and ret >= inv:
            self.add("op", obj=obj, inv=inv, ret=ret, op=op, who=who, must=must, **more)

    def trouble(self, what, **details):
        """An answer that is wrong by itself."""
        self.add("trouble", inv=now(), what=what, **{k: v if isinstance(v, (int, dict)) else str(v) for k, v in details.items()})

    def count(self, what, n=1):
        self.counts[what] += n

    def seen_by(self, wire, dies):
        """The same history for a client to write into: each fact has the run of the server that answered. dies: the disk does, so that IO is an
        answer to anything."""
        return _Seen(self, wire, dies)

    def of(self, kind):
        return [f for f in self.facts if f["k"] == kind]

    def save(self, path):
        with open(path, "w") as f:
            for line in ({**self.head, "counts": self.counts}, *self.facts):
                f.write(json.dumps(line) + "\n")

    @classmethod
    def load(cls, path):
        with open(path) as f:
            head, *facts = (_tuples(json.loads(line)) for line in f)
        h = cls(**head)
        h.facts, h.counts = facts, collections.Counter(h.head.pop("counts"))
        return h


class _Seen(History):
    def __init__(self, history, wire, dies):
        self.facts, self.counts, self.wire, self.dies = history.facts, history.counts, wire, dies

    def add(self, k, **fact):
        return super().add(k, **{"run": self.wire.run, **fact} if self.wire else fact)

    def trouble(self, what, **details):
        if self.dies and details.get("status") in DEAD:
            return self.count("answers of a dead disk")
        return super().trouble(what, **details)
