#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A disk for a virtual machine that loses what was not flushed when its machine is cut off.

cutdisk.py SOCKET IMAGE LOG JOURNAL SEED: serves IMAGE by the NBD protocol on a Unix socket, one machine at a time.
The end of a connection is a power cut: what was written since the last flush survives by chance (disklog.py), and
the next connection finds that. LOG gets all writes, flushes and cuts, and between them how many lines JOURNAL had,
so that each line stands before any request that came after it was written.
NBD: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md (fixed newstyle, simple replies).
"""
import os
import random
import shutil
import socket
import struct
import sys

import disklog

NBD_MAGIC, OPTION_MAGIC, REPLY_MAGIC = 0x4E42444D41474943, 0x49484156454F5054, 0x3E889045565A9
REQUEST_MAGIC, SIMPLE_REPLY_MAGIC = 0x25609513, 0x67446698
OPT_EXPORT_NAME, OPT_ABORT, OPT_INFO, OPT_GO = 1, 2, 6, 7
REP_ACK, REP_INFO, REP_ERR_UNSUP = 1, 3, (1 << 31) + 1
CMD_READ, CMD_WRITE, CMD_DISC, CMD_FLUSH = 0, 1, 2, 3
CMD_FLAG_FUA = 1
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
EIO, EINVAL, ENOTSUP = 5, 22, 95
REQUEST = struct.Struct(">IHHQQI")


class Gone(Exception):
    """The machine has no power any more."""


def receive(sock, n):
    buf = bytearray()
    while len(buf) < n:
        try:
            part = sock.recv(n - len(buf))
        except ConnectionError:
            part = b""
        if not part:
            raise Gone
        buf += part
    return bytes(buf)


class Journal:
    """Counts the lines of the workload's journal as it grows."""

    def __init__(self, path):
        self.path, self.lines, self.size = path, 0, 0

    def grown(self):
        try:
            if os.stat(self.path).st_size == self.size:
                return False
        except FileNotFoundError:
            return False
        with open(self.path, "rb") as f:
            f.seek(self.size)
            new = f.read()
        self.size += len(new)
        self.lines += new.count(b"\n")
        return True


class Disk:
    def __init__(self, image, log, journal, seed):
        self.durable = image + ".durable"
        shutil.copyfile(image, self.durable)
        self.size = os.stat(image).st_size
        self.fd = os.open(image, os.O_RDWR | os.O_CLOEXEC)
        self.medium = disklog.Medium(self.durable)
        self.log, self.journal = disklog.Writer(log), Journal(journal)
        self.rng = random.Random(seed)

    def note_journal(self):
        if self.journal.grown():
            self.log.append(disklog.ACKS, self.journal.lines)

    def read(self, offset, length):
        return os.pread(self.fd, length, offset)

    def write(self, offset, data, fua):
        os.pwrite(self.fd, data, offset)
        if fua:
            self.medium.write_through(offset, data)
        else:
            self.medium.write(offset, data)
        self.log.append(disklog.FUA if fua else disklog.WRITE, offset, data)

    def flush(self):
        self.medium.flush()
        self.log.append(disklog.FLUSH)
        self.log.flush()

    def cut(self):
        """Power is off: the machine's next look finds what the medium has."""
        self.note_journal()
        pending = [(o, len(d)) for o, d in self.medium.pending]
        survivors = self.medium.survivors(self.rng)
        self.log.append(disklog.CUT, 0, disklog.pack_survivors(survivors))
        self.log.flush()
        self.medium.cut(survivors)
        for offset, length in pending:
            os.pwrite(self.fd, os.pread(self.medium.fd, length, offset), offset)
        print(f"cut: {len(pending)} writes were not flushed, {len(survivors)} survived", flush=True)


def negotiate(sock, size):
    """False: the client only asked."""
    flags = HAS_FLAGS | SEND_FLUSH | SEND_FUA
    sock.sendall(struct.pack(">QQH", NBD_MAGIC, OPTION_MAGIC, 3))
    receive(sock, 4)
    while True:
        _, option, length = struct.unpack(">QII", receive(sock, 16))
        receive(sock, length)

        def reply(kind, data=b"", option=option):
            sock.sendall(struct.pack(">QIII", REPLY_MAGIC, option, kind, len(data)) + data)

        if option == OPT_EXPORT_NAME:
            sock.sendall(struct.pack(">QH", size, flags))
            return True
        if option in (OPT_INFO, OPT_GO):
            reply(REP_INFO, struct.pack(">HQH", 0, size, flags))
            reply(REP_ACK)
            if option == OPT_GO:
                return True
        elif option == OPT_ABORT:
            reply(REP_ACK)
            return False
        else:
            reply(REP_ERR_UNSUP)


def serve_one(sock, disk):
    def answer(cookie, error=0, data=b""):
        sock.sendall(struct.pack(">IIQ", SIMPLE_REPLY_MAGIC, error, cookie) + data)

    while True:
        _, flags, kind, cookie, offset, length = REQUEST.unpack(receive(sock, REQUEST.size))
        data = receive(sock, length) if kind == CMD_WRITE else b""
        disk.note_journal()
        if kind == CMD_DISC:
            raise Gone
        if kind == CMD_FLUSH:
            disk.flush()
            answer(cookie)
        elif offset + length > disk.size:
            answer(cookie, EINVAL)
        elif kind == CMD_READ:
            answer(cookie, 0, disk.read(offset, length))
        elif kind == CMD_WRITE:
            disk.write(offset, data, flags & CMD_FLAG_FUA)
            answer(cookie)
        else:
            answer(cookie, ENOTSUP)


def main():
    path, image, log, journal, seed = sys.argv[1:]
    disk = Disk(image, log, journal, int(seed))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    while True:
        sock, _ = listener.accept()
        try:
            if negotiate(sock, disk.size):
                serve_one(sock, disk)
        except (Gone, ConnectionError):
            pass
        sock.close()
        disk.cut()


main()
