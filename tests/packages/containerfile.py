#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Does in a root what an engine would do by a Containerfile: containerfile.py FILE CONTEXT ROOT.

Runs COPY and RUN, and prints the words of ENTRYPOINT, or else of CMD, one a line. Instructions that it does not know are errors.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys


def instructions(text):
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M)
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip():
            yield line.split(None, 1)


def copy(words, context, root):
    *sources, to = words.split()
    found = [f for s in sources for f in glob.glob(os.path.join(context, s))]
    assert found, f"COPY {words}: nothing to copy"
    assert to.endswith("/"), f"COPY {words}: not into a folder"
    os.makedirs(root + to, exist_ok=True)
    for f in found:
        shutil.copy(f, root + to)


def run(command, root):
    script = 'mount -t proc proc "$0/proc" && exec chroot "$0" /bin/sh -c "$1"'
    subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c", script, root, command],
                   check=True, stdout=sys.stderr, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


file, context, root = sys.argv[1:]
entry = None
with open(file, encoding="utf-8") as f:
    for word, rest in instructions(f.read()):
        if word == "COPY":
            copy(rest, context, root)
        elif word == "RUN":
            run(rest, root)
        elif word == "ENTRYPOINT" or word == "CMD" and not entry:
            entry = json.loads(rest)
        else:
            assert word in ("ARG", "FROM", "EXPOSE", "VOLUME", "STOPSIGNAL", "WORKDIR"), f"unknown instruction {word}"
print("\n".join(entry))
