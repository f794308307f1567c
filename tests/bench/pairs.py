# SPDX-License-Identifier: BSD-2-Clause
"""Measurements in alternating pairs.

Two servers are measured one right after the other, and each is first every other time, so that what changes slowly (clocks,
temperature, neighbours) changes both. A measurement during which others took more than 5 % of the machine is made again, three
times in all; then the quietest one counts, with a mark."""
import subprocess

import host


def load_of(result):
    return max(result["steal"], result["others"])


def nfsload(server, job, path, options):
    """The line of results as a dictionary of numbers (and words)."""
    command = [*server.client, host.program("tests/bench/nfsload"), *server.arguments, *options, job, path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{server.name}: {' '.join(command)}: {done.stderr.strip()}")
    return parse(done.stdout)


def parse(line):
    out = {}
    for word in line.split():
        name, _, value = word.partition("=")
        try:
            out[name] = float(value)
        except ValueError:
            out[name] = value
    return out


def quiet(measure, tries=3):
    """(result, loaded) of the first measurement on a quiet host, or of the quietest."""
    best = None
    for _ in range(tries):
        result = measure()
        if best is None or load_of(result) < load_of(best):
            best = result
        if load_of(best) <= host.BUSY:
            break
    return best, load_of(best) > host.BUSY


def alternate(ours, theirs, count=5, tries=3):
    """ours, theirs: functions that measure once. A list of (result of ours, of theirs, loaded)."""
    out = []
    for i in range(count):
        order = (ours, theirs) if i % 2 == 0 else (theirs, ours)
        results = {}
        for measure in order:
            results[measure] = quiet(measure, tries)
        out.append((results[ours][0], results[theirs][0], results[ours][1] or results[theirs][1]))
    return out


def of(pairs, name):
    """The pairs of one quantity."""
    return [(a[name], b[name], loaded) for a, b, loaded in pairs]
