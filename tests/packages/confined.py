#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a command in a root as a container engine does: confined.py PROFILE CAPABILITIES ROOT COMMAND...

The command has the CAPABILITIES (DAC_READ_SEARCH,SETUID,...) and no other, no new privileges, and the system calls that the
seccomp PROFILE (JSON in the form of container engines) allows. Debian's Python has the module seccomp.
"""
import json
import os
import sys

import seccomp

ACTIONS = {"SCMP_ACT_ALLOW": lambda row: seccomp.ALLOW, "SCMP_ACT_ERRNO": lambda row: seccomp.ERRNO(row.get("errnoRet", 1))}

profile, capabilities, root, *command = sys.argv[1:]
with open(profile, encoding="utf-8") as f:
    rules = json.load(f)
filters = seccomp.SyscallFilter(ACTIONS[rules["defaultAction"]](rules))
for row in rules["syscalls"]:
    for name in row["names"]:
        filters.add_rule(ACTIONS[row["action"]](row), name)
os.chroot(root)
os.chdir("/")
filters.load()
wanted = "-all," + ",".join("+" + c.lower() for c in capabilities.split(","))
os.execv("/usr/bin/setpriv", ["setpriv", "--no-new-privs", "--bounding-set", wanted, "--inh-caps", "-all", *command])
