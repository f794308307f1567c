#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Writes to an open file of a mount again and again, and appends the time of each WRITE that was answered to LOG, and the ms that it took:
beat.py FILE LOG.

A write is as long as a block and stable (O_SYNC), so that each one is a call. Ends with an error as soon as one fails.
"""
import os
import sys
import time

fd = os.open(sys.argv[1], os.O_WRONLY | os.O_SYNC)
block = b"beat" * 1024
with open(sys.argv[2], "w") as log:
    while True:
        begun = time.time()
        assert os.pwrite(fd, block, 0) == len(block)
        answered = time.time()
        print(f"{answered:.3f} {(answered - begun) * 1000:.0f}", file=log, flush=True)
        time.sleep(0.02)
