# SPDX-License-Identifier: BSD-2-Clause
"""The workload's journal, and the tree of files that it says must be there.

Each line is a list in JSON: ["begin", worker, number, operation, arguments...] before an operation is asked for,
["ack", worker, number] when the server has acknowledged it. A worker does one thing after the other, so at any
moment at most one of its operations is begun and not acknowledged. A power cut may have let that one happen or
not; everything acknowledged must be there.

Operations, on names in the worker's own folder:
  create NAME MODE, write NAME OFFSET LENGTH SEED, rename FROM TO, link FROM TO, unlink NAME, symlink NAME TARGET,
  mkdir NAME, rmdir NAME, mkfifo NAME MODE, chmod NAME MODE, truncate NAME SIZE, utime NAME SECONDS,
  lock NAME (held until the end; leaves no trace in the tree)
"""
import copy
import json
import os
import random
import stat


def pattern(seed, length):
    return random.Random(seed).randbytes(length)


class Node:
    def __init__(self, kind, mode=None, target=None):
        self.kind, self.mode, self.target = kind, mode, target
        self.data = bytearray()
        self.mtime = None  # known after utime only, until the next change

    def describe(self):
        return f"{self.kind} {self.mode} {len(self.data)} bytes mtime {self.mtime}"


class Tree:
    """Names of one worker's folder. Hard links are names of one Node."""

    def __init__(self):
        self.names = {}

    def apply(self, op, args):
        getattr(self, "do_" + op)(*args)

    def do_create(self, name, mode):
        self.names[name] = Node("file", mode)

    def do_write(self, name, offset, length, seed):
        node = self.names[name]
        if len(node.data) < offset + length:
            node.data.extend(bytes(offset + length - len(node.data)))
        node.data[offset:offset + length] = pattern(seed, length)
        node.mtime = None

    def do_rename(self, old, new):
        if self.names[old] is not self.names.get(new):
            self.names[new] = self.names.pop(old)

    def do_link(self, old, new):
        self.names[new] = self.names[old]

    def do_unlink(self, name):
        del self.names[name]

    do_rmdir = do_unlink

    def do_symlink(self, name, target):
        self.names[name] = Node("link", None, target)

    def do_mkdir(self, name):
        self.names[name] = Node("dir")

    def do_mkfifo(self, name, mode):
        self.names[name] = Node("fifo", mode)

    def do_chmod(self, name, mode):
        self.names[name].mode = mode

    def do_truncate(self, name, size):
        node = self.names[name]
        del node.data[size:]
        node.data.extend(bytes(size - len(node.data)))
        node.mtime = None

    def do_utime(self, name, seconds):
        self.names[name].mtime = seconds

    def do_lock(self, name):
        pass


class Worker:
    def __init__(self):
        self.tree, self.begun, self.acked, self.locked = Tree(), None, 0, False

    def begin(self, op, args):
        self.begun = (op, args)

    def ack(self):
        op, args = self.begun
        self.tree.apply(op, args)
        self.begun = None
        self.acked += 1
        self.locked |= op == "lock"


def replay(lines, workers=None):
    """The workers' state after these lines: {name: Worker}; `workers` is that before them."""
    workers = {} if workers is None else workers
    for line in lines:
        kind, who, *rest = json.loads(line)
        worker = workers.setdefault(who, Worker())
        if kind == "begin":
            worker.begin(rest[1], rest[2:])
        else:
            worker.ack()
    return workers


BLOCK = 4096  # of the file systems compared
KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo"}


def differs(path, node, unsure):
    """Why the object at path is not node; None when it is. unsure: (offset, length) of what is being changed."""
    st = os.lstat(path)
    kind = KINDS.get(stat.S_IFMT(st.st_mode))
    if kind != node.kind:
        return f"is a {kind}"
    if node.kind == "link":
        return None if os.readlink(path) == node.target else "another target"
    if node.mode is not None and stat.S_IMODE(st.st_mode) != node.mode:
        return f"mode {stat.S_IMODE(st.st_mode):o}, not {node.mode:o}"
    if node.mtime is not None and not unsure and int(st.st_mtime) != node.mtime:
        return f"mtime {int(st.st_mtime)}, not {node.mtime}"
    return differs_data(path, node, unsure) if kind == "file" else None


def differs_data(path, node, unsure):
    with open(path, "rb") as f:
        data = bytearray(f.read())
    want = bytearray(node.data)
    start, end = (unsure[0], unsure[0] + unsure[1]) if unsure else (0, 0)
    longest = max(len(want), end)
    if not len(want) <= len(data) <= longest:
        return f"{len(data)} bytes, not {len(want)}"
    for at in range(min(len(want), len(data))):
        if data[at] != want[at] and not start <= at < end:
            return f"byte {at} of {len(want)} is {data[at]}, not {want[at]}"
    return None


def compare(folder, tree, unsure=None):
    """Differences between a folder and a tree. unsure: (name, offset, length) of what is being changed."""
    found = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    problems = [f"{name}: is not there" for name in sorted(set(tree.names) - found)]
    problems += [f"{name}: should not be there" for name in sorted(found - set(tree.names))]
    loose = tree.names.get(unsure[0]) if unsure else None
    for name in sorted(found & set(tree.names)):
        node = tree.names[name]
        why = differs(os.path.join(folder, name), node, unsure[1:] if node is loose and loose else None)
        if why:
            problems.append(f"{name}: {why} (should be: {node.describe()})")
    return problems


def cleared(tree, args):
    """The part of a file that may be zeros while it is truncated: file systems clear the rest of its last block on the
    disk, and have the new size there only after that."""
    name, size = args
    end = min(-(-size // BLOCK) * BLOCK, len(tree.names[name].data))
    return (name, size, end - size) if end > size else None


def check(folder, worker):
    """Differences between a worker's folder and what must be there, the operation under way done or not."""
    if worker.begun is None:
        return compare(folder, worker.tree)
    op, args = worker.begun
    if op == "write":
        return compare(folder, worker.tree, (args[0], args[1], args[2]))
    after = copy.deepcopy(worker.tree)
    after.apply(op, args)
    if op == "create":
        after.names[args[0]].mode = None  # NFSv3's client sets it by a second call
    problems = compare(folder, worker.tree, cleared(worker.tree, args) if op == "truncate" else None)
    return problems if problems and compare(folder, after) else []
