#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""READs of a file system whose reads wait for a process, as FUSE's do: many wait at once, and no worker within a submission.

The process is this script. It answers no read before it has got all of them."""
import ctypes
import os
import struct
import threading

import harness
import mounts
import rpcclient as r
from harness import Count, Daemon

READS, SIZE = 48, 8192
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR = 1, 2, 3, 14, 15, 17, 18, 25, 26, 27, 29
INTERRUPT, DESTROY, BATCH_FORGET = 36, 38, 42
SILENT = (FORGET, INTERRUPT, DESTROY, BATCH_FORGET)
EXPORT_SUPPORT = 1 << 4  # without FUSE_ASYNC_READ, whose reads the kernel sends twelve at a time
IN, OUT = struct.Struct("IIQQIIIHH"), struct.Struct("IiQ")
NOENT, NOSYS = 2, 38
MS_NOSUID, MS_NODEV, MNT_DETACH = 2, 4, 2


class FileSystem:
    """A directory (node 1) with files f0, f1, ... (nodes 2, 3, ...), by the protocol of /dev/fuse, version 7.31."""

    def __init__(self):
        self.fd, self.held, self.holds, self.lock = os.open("/dev/fuse", os.O_RDWR), {}, True, threading.Condition()

    def mount(self, path):
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        if mounts.libc.mount(b"waiting_reads", path.encode(), b"fuse", MS_NOSUID | MS_NODEV, options.encode()) != 0:
            harness.skip_all(f"no FUSE: {os.strerror(ctypes.get_errno())}")
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                data = os.read(self.fd, 1 << 18)
            except OSError:  # unmounted
                return
            _, op, unique, node, *_ = IN.unpack_from(data)
            if op == READ:
                self.read(unique, node, *struct.unpack_from("QI", data, IN.size + 8))
            elif op not in SILENT:
                answer = self.answer(op, node, data[IN.size:])
                self.reply(unique, *((0, answer) if isinstance(answer, bytes) else (-answer, b"")))

    def reply(self, unique, error, data):
        os.write(self.fd, OUT.pack(OUT.size + len(data), error, unique) + data)

    def read(self, unique, node, offset, size):
        with self.lock:
            if self.holds:
                self.held.setdefault(node, []).append((unique, offset, size))
                self.lock.notify()
                return
        self.reply(unique, 0, (b"x" * SIZE)[offset:offset + size])

    def release(self, n, seconds):
        """Answers once n files are read, or what there is in the end. How many there were."""
        with self.lock:
            self.lock.wait_for(lambda: len(self.held) >= n, seconds)
            self.holds = False
        for node, reads in self.held.items():
            for read in reads:
                self.read(read[0], node, *read[1:])
        return len(self.held)

    def attributes(self, node):
        mode, size = (0o40755, 4096) if node == 1 else (0o100644, SIZE)
        return struct.pack("6Q10I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, op, node, args):
        if op == INIT:
            return struct.pack("IIIIHHIIHH8I", 7, 31, 0, EXPORT_SUPPORT, 12, 9, 1 << 16, 1, 0, 0, *[0] * 8)
        if op == LOOKUP:
            name = args.rstrip(b"\0").decode()
            node = {".": node, "..": 1}.get(name) or (2 + int(name[1:]) if name[1:].isdigit() else 0)
            return struct.pack("4Q2I", node, 0, 3600, 3600, 0, 0) + self.attributes(node) if node else NOENT
        if op == GETATTR:
            return struct.pack("QII", 3600, 0, 0) + self.attributes(node)
        if op in (OPEN, OPENDIR):
            return struct.pack("QII", 0, 0, 0)
        if op == STATFS:
            return struct.pack("5Q4I6I", 1000, 500, 500, 1000, 500, 4096, 255, 4096, 0, *[0] * 6)
        return b"" if op in (RELEASE, RELEASEDIR, FLUSH) else NOSYS


def main():
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        harness.skip_all("there is no /dev/fuse")
    mounts.own_namespace()
    t, fs = Count(), FileSystem()
    d = Daemon({"a": "rw,insecure,no_root_squash,fsid=7"})
    fs.mount(d.exports["a"])
    try:
        with d:
            with d.connect() as c:
                root = d.root(c, "a")
                handles = [c.nfs(r.LOOKUP, r.diropargs(root, f"f{i}"))["fh"] for i in range(READS)]
            conns = [d.connect(timeout=60) for _ in handles]
            for c, fh in zip(conns, handles):
                c.send(r.call_message(r.NFS, 3, r.READ, r.opaque(fh) + r.u64(0) + r.u32(SIZE)))
            t.equal("files that are read at once", fs.release(READS, 30), READS)
            t.equal("answers", {r.reply_body(c.recv()).u32() for c in conns}, {0})
    finally:
        mounts.libc.umount2(d.exports["a"].encode(), MNT_DETACH)
        os.close(fs.fd)  # whatever waits for it gets an error
    harness.result(t)


if __name__ == "__main__":
    main()
