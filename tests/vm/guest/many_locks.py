#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""many_locks.py FILE N: takes N locks that do not touch, makes FILE.taken on this machine's /run, and holds them until that is removed.
many_locks.py FILE N check: prints how many of some hundred of them another has."""
import fcntl
import os
import sys
import time

path, n = sys.argv[1], int(sys.argv[2])
fd = os.open(path, os.O_RDWR)
if sys.argv[3:] == ["check"]:
    held = 0
    for i in range(0, n, max(n // 100, 1)):
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * i)
        except (BlockingIOError, PermissionError):
            held += 1
    print(held)
    sys.exit(0)
for i in range(n):
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * i)
mark = "/run/" + os.path.basename(path) + ".taken"
with open(mark, "w"):
    pass
while os.path.exists(mark):
    time.sleep(0.1)
