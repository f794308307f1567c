# SPDX-License-Identifier: BSD-2-Clause
"""What the parts have in common: options, conditions, and what becomes of the rows."""
import argparse
import os

import host
import pairs
import results

# Quantities of nfsload's line: how they are called, and which way is better.
QUANTITIES = {"rate": ("calls/s", "higher"), "server_us": ("CPU us each", "lower"), "entries_rate": ("names/s", "higher"),
              "entry_us": ("CPU us each", "lower")}


def options(doc, seconds=1.0):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pairs", type=int, default=5, help="alternating pairs of each test (default: %(default)s)")
    p.add_argument("--tries", type=int, default=3, help="times that a measurement on a loaded host is made (default: %(default)s)")
    p.add_argument("--seconds", type=float, default=seconds, help="of a measurement (default: %(default)s)")
    p.add_argument("--only", action="append", help="tests whose name has these words; may be repeated")
    p.add_argument("--vers", default="3", help="version of NFS (default: 3; tcp-native and vm-rdma: 3 4.2)")
    p.add_argument("--csv", help="file for the rows")
    p.add_argument("--pin", action="store_true", help="servers on all processors but the last, nfsload on the last")
    p.add_argument("--spinner", action="store_true", help="keep idle processors from halting")
    return p


def wanted(args, test):
    return not args.only or any(words in test for words in args.only)


def cpus(args):
    """(processors of the servers or None, arguments of nfsload)"""
    n = os.cpu_count()
    if not args.pin or n < 2:
        return None, []
    return list(range(n - 1)), ["--cpu", str(n - 1)]


def compare(args, ours, theirs):
    """Pairs of two measurements, each of which is the arguments of pairs.nfsload."""
    return pairs.alternate(lambda: pairs.nfsload(*ours), lambda: pairs.nfsload(*theirs), args.pairs, args.tries)


def rows(part, test, other, got, goals):
    """A row for each quantity that goals names; a goal may be empty. They are shown as they come."""
    out = []
    for name, goal in goals.items():
        row = results.row_of_pairs(part, test, *QUANTITIES[name], other, pairs.of(got, name), goal)
        print(f"# {test}, {row.quantity}: {row.ratio:.2f} ({row.low:.2f} .. {row.high:.2f})", flush=True)
        out.append(row)
    return out


def conditions(args):
    return f"{'pinned' if args.pin else 'not pinned'}, {'a spinner on each processor' if args.spinner else 'idle processors halt'}"


def finish(args, table, more=""):
    print(host.describe(conditions(args) + (f", {more}" if more else "")))
    print(results.table(table))
    if args.csv:
        results.write(args.csv, table)
