# SPDX-License-Identifier: BSD-2-Clause
"""Runs a script of this folder in the virtual machine (tests/vm/run), with programs of the build."""
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
