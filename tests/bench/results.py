# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the table of ratios: what they hold, how they are printed, kept as CSV, and read again.

A row compares one quantity of this server with that of another one, or of a floor. Quantities are better when higher
(rates) or when lower (times, calls); `better` says which, and the table shows a goal in the same terms."""
import csv
import dataclasses
import statistics


@dataclasses.dataclass
class Row:
    part: str
    test: str
    quantity: str  # with its unit
    better: str  # "higher" or "lower"
    other: str  # name of the server that ours is divided by
    ours: float
    theirs: float
    ratio: float  # median of the pairs, ours by theirs
    low: float
    high: float
    pairs: int
    loaded: int  # pairs of which a measurement had no quiet host in any of its tries
    goal: str = ""

    def met(self):
        """True or False against the goal, None without one."""
        if not self.goal:
            return None
        sign, value = self.goal.split()
        return self.ratio >= float(value) if sign == ">=" else self.ratio <= float(value)


FIELDS = [f.name for f in dataclasses.fields(Row)]


def row_of_pairs(part, test, quantity, better, other, pairs, goal=""):
    """pairs: (ours, theirs, loaded) of measurements made one after the other."""
    ratios = [a / b for a, b, _ in pairs if b]
    if not ratios:
        raise SystemExit(f"{part}, {test}: {other} has no {quantity}")
    return Row(part, test, quantity, better, other, statistics.median(a for a, _, _ in pairs),
               statistics.median(b for _, b, _ in pairs), statistics.median(ratios), min(ratios), max(ratios), len(pairs),
               sum(bool(l) for _, _, l in pairs), goal)


def write(path, rows):
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(FIELDS)
        for row in rows:
            values = dataclasses.asdict(row)
            out.writerow([f"{values[n]:.6g}" if isinstance(values[n], float) else values[n] for n in FIELDS])


def read(path):
    kinds = {f.name: f.type for f in dataclasses.fields(Row)}
    with open(path, newline="") as f:
        return [Row(**{n: kinds[n](v) for n, v in line.items()}) for line in csv.DictReader(f)]


def _number(v):
    return f"{v:,.0f}" if v >= 1000 else f"{v:.4g}"


def _ratio(v):
    return f"{v:.2f}" if v >= 0.1 else f"{v:.2g}"


def table(rows):
    """Markdown: it is read in a terminal, and is pasted into tests/bench/history/."""
    lines = ["| part | test | | ringnfsd | other | ratio | of n pairs | goal | |", "|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        # What was measured on a loaded host does not count.
        mark = f"loaded {r.loaded}/{r.pairs}" if r.loaded else {True: "reached", False: "missed", None: ""}[r.met()]
        lines.append(f"| {r.part} | {r.test} | {r.quantity} | {_number(r.ours)} | {_number(r.theirs)} {r.other} | {_ratio(r.ratio)} "
                     f"| {_ratio(r.low)} .. {_ratio(r.high)}, {r.pairs} | {r.goal} | {mark} |")
    return "\n".join(lines)
