#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares folders with what a workload's journal says was acknowledged.

verify.py JOURNAL [--lost] WORKER=FOLDER...: prints the differences and "N acknowledged, M differences"; status 1 if
there are any. With --lost, which is for an export that does not wait for the disk, status 1 if there are none.
"""
import sys

import journal


def main():
    args = sys.argv[1:]
    lost = "--lost" in args
    path, *folders = [a for a in args if a != "--lost"]
    with open(path, encoding="ascii") as f:
        workers = journal.replay(f.read().splitlines())
    acked, problems = 0, []
    for name, folder in (f.split("=", 1) for f in folders):
        worker = workers.get(name, journal.Worker())
        acked += worker.acked
        problems += [f"{name}: {p}" for p in journal.check(folder, worker)
                     if not (lost and p.endswith("should not be there"))]
    for p in problems[:5 if lost else 20]:
        print(p)
    print(f"{acked} acknowledged, {len(problems)} differences")
    sys.exit(bool(problems) != lost)


main()
