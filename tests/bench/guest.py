# SPDX-License-Identifier: BSD-2-Clause
"""Runs a script of this folder in the virtual machine (tests/vm/run), with programs of the build."""
import collections
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


def rate_pairs(script, options, settings, other):
    """{(version, protocol, metric): [(ours, theirs, loaded)]} of a script's lines "rate VERSION PROTOCOL ROUND SERVER METRIC VALUE"."""
    rounds = collections.defaultdict(dict)
    for line, load in lines(script, options, settings):
        word = line.split()
        if len(word) == 7 and word[0] == "rate":
            vers, proto, number, server, metric, rate = word[1:]
            rounds[vers, proto, metric, number][server] = float(rate), load
            print(f"# {line}, load {load:.0f} %", flush=True)
        elif word[:1] in (["cost"], ["fails"]):
            print(f"# {line}", flush=True)
    out = collections.defaultdict(list)
    for (vers, proto, metric, _), by in rounds.items():
        if len(by) == 2:
            (a, load_a), (b, load_b) = by["ringnfsd"], by[other]
            out[vers, proto, metric].append((a, b, max(load_a, load_b) > host.BUSY))
    return out


def loaded_pairs(got):
    return sum(loaded for pairs in got.values() for _, _, loaded in pairs)


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
