# SPDX-License-Identifier: BSD-2-Clause
"""Resources of a running daemon, from the line that it logs on SIGUSR1 (ringnfsd(8), RESOURCES), compared before and after."""
import os
import re
import signal
import time

# These come back to what they were when whoever caused them has gone. The others are caches, within their bounds.
EQUAL = ("tcp_connections rdma_connections requests payload_buffers payload_bytes pipes_in_use rdma_devices rdma_connection_bytes queue_pairs "
         "completion_queues memory_regions nodes_in_use drc_running descriptors threads").split()
PATIENCE = float(os.environ.get("FAULTS_PATIENCE", 60))  # seconds for what was let go to come back, on a busy machine


def thread_names(pid):
    """The daemon's own threads, but for those of the kernel's io_uring, which come and go, helpers of listings, which start with
    the first long one, and those that ask about exports' paths."""
    names = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm") as f:
                names.append(f.read().strip())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return sorted(n for n in names if not n.startswith(("iou-", "ahead", "paths")))


def differs(before, now):
    """Names of what is not as before. There may be fewer descriptors: libraries close theirs of a device that is gone."""
    return [k for k in EQUAL if now[k] > before[k] or (now[k] < before[k] and k != "descriptors")]


def unix_sockets(pid):
    """Number of a process's descriptors that are local sockets: the links of the software fabric."""
    with open("/proc/net/unix") as f:
        inodes = {line.split()[6] for line in f if line[:1] in "0f"}
    n = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            n += os.readlink(f"/proc/{pid}/fd/{fd}")[len("socket:["):-1] in inodes
        except FileNotFoundError:
            pass
    return n


class Held:
    def __init__(self, daemon):
        """discount: called with the process id, how many descriptors are none of the daemon's."""
        self.d, self.patience, self.discount = daemon, PATIENCE, lambda pid: 0
        self.path = os.path.join(daemon.top, "log")

    def now(self):
        """{name: number} of this moment."""
        with open(self.path, errors="replace") as log:
            log.seek(0, os.SEEK_END)
            self.d.process.send_signal(signal.SIGUSR1)
            end, text = time.monotonic() + PATIENCE, ""
            while time.monotonic() < end:
                text += log.read()
                if m := re.search(r"held:(.*)\n", text):
                    break
                time.sleep(0.002)
            else:
                raise TimeoutError("no answer to SIGUSR1: " + ("ended" if not self.d.alive() else text[-500:]))
        out = {k: int(v) for k, v in (pair.split("=") for pair in m[1].split())}
        out["descriptors"] = out["fds"] - out["node_fds"] - out["worker_fds"] - self.discount(self.d.process.pid)
        out["threads"] = len(thread_names(self.d.process.pid))
        return out

    def until(self, true):
        """The first state of which true(state) holds, or the last that was seen."""
        end = time.monotonic() + self.patience
        while True:
            state = self.now()
            if true(state) or time.monotonic() > end:
                return state
            time.sleep(0.02)

    def settled(self):
        """The state when it has stopped changing."""
        last = self.now()
        while True:
            time.sleep(0.1)
            state = self.now()
            if all(state[k] == last[k] for k in EQUAL):
                return state
            last = state

    def lost(self, before):
        """Resources that were not given back: {name: (before, now)}; empty if there are none."""
        state = self.until(lambda s: not differs(before, s))
        lost = {k: (before[k], state[k]) for k in differs(before, state)}
        before["descriptors"] = min(before["descriptors"], state["descriptors"])
        if lost:
            self.patience = 2  # it will not get better: the rest shall not take hours
        return lost
