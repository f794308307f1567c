# SPDX-License-Identifier: BSD-2-Clause
"""Runs a script of this folder in the virtual machine (tests/vm/run), with programs of the build."""
import collections
import dataclasses
import os
import subprocess

import host


def lines(script, options, settings):
    """Lines of the script's output as they come, each with the percent of this machine that others took since the one before.
    options: of tests/vm/run; settings: environment of the script. A script that fails ends this program with what it has said."""
    command = [os.path.join(host.HERE, "..", "vm", "run"), *options]
    for name, value in settings.items():
        command += ["--env", f"{name}={value}"]
    process = subprocess.Popen([*command, os.path.join(host.HERE, script)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               text=True, env=dict(os.environ, BUILDDIR=host.build_dir()))
    watch, said = host.Watch(process.pid), []
    for line in process.stdout:
        said.append(line)
        yield line.strip(), watch.load()
    if process.wait():
        print("".join(said))
        raise SystemExit(f"the virtual machine ended with status {process.returncode}")


@dataclasses.dataclass
class Rate:
    rate: float
    loaded: bool = False
    calls: int = None  # that the client has sent for the job, where the script counts them


def rate_rounds(script, options, settings):
    """{(version, protocol, metric): [{server: Rate}]} of a script's lines "rate VERSION PROTOCOL ROUND SERVER METRIC VALUE [CALLS]"."""
    rounds = collections.defaultdict(lambda: collections.defaultdict(dict))
    for line, load in lines(script, options, settings):
        word = line.split()
        if len(word) in (7, 8) and word[0] == "rate":
            vers, proto, number, server, metric, rate = word[1:7]
            rounds[vers, proto, metric][number][server] = Rate(float(rate), load > host.BUSY, int(word[7]) if word[7:] else None)
            print(f"# {line}, load {load:.0f} %", flush=True)
        elif word[:1] in (["cost"], ["fails"]):
            print(f"# {line}", flush=True)
    return {key: list(by_number.values()) for key, by_number in rounds.items()}


def rate_pairs(rounds, ours, theirs, quantity="rate"):
    """(ours, theirs, loaded) of the rounds that have both; quantity: "rate" or "calls"."""
    both = [(by[ours], by[theirs]) for by in rounds if ours in by and theirs in by]
    return [(getattr(a, quantity), getattr(b, quantity), a.loaded or b.loaded) for a, b in both]


def loaded_rates(got):
    return sum(rate.loaded for rounds in got.values() for by in rounds for rate in by.values())


def quietest(measure, loaded, tries):
    """What measure() gives, of at most so many runs that with the fewest measurements on a loaded host, as loaded() counts them."""
    best, fewest = None, None
    for _ in range(tries):
        got = measure()
        n = loaded(got)
        if fewest is None or n < fewest:
            best, fewest = got, n
        if not fewest:
            break
    return best
