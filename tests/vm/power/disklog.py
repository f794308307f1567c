# SPDX-License-Identifier: BSD-2-Clause
"""The log of a disk that forgets what was not flushed: its format, and which contents a power cut may leave.

The log is a sequence of records, each a header (kind, length of the data, offset) and the data:
  WRITE   data written at an offset, lost by a power cut unless a FLUSH follows
  FUA     data written at an offset, on the medium at once
  FLUSH   everything written before is on the medium
  ACKS    the offset field is the length of the workload's journal (journal.py) at that moment, in lines
  CUT     power was cut: pairs of 32-bit numbers, index of a pending WRITE and how many of its bytes survived

A cut leaves what was flushed, and of each later write all, nothing or its first blocks: disks write what they
hold in any order.
"""
import os
import struct

WRITE, FUA, FLUSH, ACKS, CUT = 1, 2, 3, 4, 5
HEADER = struct.Struct("<BxxxIQ")
SURVIVOR = struct.Struct("<II")
# The disk writes blocks of this size as a whole. XFS does not mount after a cut within one of its metadata blocks: it
# takes the half that was written for the whole, does not replay it from the log, and finds a wrong checksum.
ATOMIC = 4096


class Writer:
    def __init__(self, path):
        self.file = open(path, "ab", buffering=1 << 20)

    def append(self, kind, offset=0, data=b""):
        self.file.write(HEADER.pack(kind, len(data), offset))
        self.file.write(data)

    def flush(self):
        self.file.flush()


def read(path):
    """Yields (kind, offset, data). A record that was cut off at the end of the file is left out."""
    with open(path, "rb") as f:
        while True:
            header = f.read(HEADER.size)
            if len(header) < HEADER.size:
                return
            kind, length, offset = HEADER.unpack(header)
            data = f.read(length)
            if len(data) < length:
                return
            yield kind, offset, data


class Medium:
    """The durable contents of a disk, in a file, and the writes that a power cut may still take away."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self.pending = []

    def write(self, offset, data):
        self.pending.append((offset, data))

    def flush(self):
        for offset, data in self.pending:
            os.pwrite(self.fd, data, offset)
        self.pending.clear()

    def write_through(self, offset, data):
        """Older pending writes to the same place must not come after it."""
        end = offset + len(data)
        if any(o < end and offset < o + len(d) for o, d in self.pending):
            self.flush()
        os.pwrite(self.fd, data, offset)

    def torn(self, i, rng):
        """Length of pending write i that reaches the disk if power fails in the middle of it."""
        offset, data = self.pending[i]
        first = (offset // ATOMIC + 1) * ATOMIC
        return rng.choice([0] + [b - offset for b in range(first, offset + len(data), ATOMIC)])

    def survivors(self, rng):
        """Pending writes that survive a cut: [(index, bytes)]."""
        how = rng.random()
        if how < 0.3:
            return []
        if how < 0.4:
            return [(i, len(d)) for i, (_, d) in enumerate(self.pending)]
        share, kept = rng.random(), []
        for i, (_, data) in enumerate(self.pending):
            if rng.random() < share:
                kept.append((i, self.torn(i, rng) if rng.random() < 0.1 else len(data)))
        return kept

    def cut(self, survivors):
        for i, length in survivors:
            offset, data = self.pending[i]
            os.pwrite(self.fd, data[:length], offset)
        self.pending.clear()

    def close(self):
        os.close(self.fd)


def pack_survivors(survivors):
    return b"".join(SURVIVOR.pack(*s) for s in survivors)


def unpack_survivors(data):
    return list(SURVIVOR.iter_unpack(data))
