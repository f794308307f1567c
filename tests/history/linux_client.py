# SPDX-License-Identifier: BSD-2-Clause
"""The Linux client as a client of a history: user-mode Linux, which tests/vm/prepare has built, mounts the export and acts there (by_path.py).

The guest reaches the server through a relay, over a link of this process's network name space. The relay passes its connections on from an address of
the loopback and from the guest's own ports, cuts them by seed, and holds them while no server is there: a client that is refused would not try again for
seconds. A mount is hard, so each act is answered sooner or later, perhaps by the next server after the last one has done it, too (restarts()).
"""
import contextlib
import ctypes
import functools
import glob
import os
import pickle
import select
import shutil
import socket
import subprocess
import tempfile
import time

import rpcclient as r
from by_path import Client
from wire import Silent, Stop, accept_all, reset, serve_calls

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = (os.environ.get("RINGNFS_CACHE", HERE + "/../../.cache/vm") + "/uml/linux", os.environ.get("RINGNFS_UML_CACHE", os.path.expanduser("~/.cache/ringnfs")) + "/uml-*/linux")
KINDS = {"linux3": "3", "linux40": "4.0", "linux41": "4.1", "linux42": "4.2"}
PATIENCE, BOOT_PATIENCE = 120, 60  # seconds
RPCBIND, GETADDR = 111, 3
CLONE_NEWNET = 0x40000000
# Linux 7.2 enters a directory's delegation before it sees, in attributes of the same reply, that the directory has changed, and then takes the change for its
# own: names that were not there before are not looked up again.
NO_DIRECTORIES = ["nfsv4.directory_delegations=0"]
FRESH = ",actimeo=0", ",noac", ",lookupcache=none,actimeo=0"  # options with which names are looked up anew, and attributes asked for


def kernel():
    """The newest one that is there, or None."""
    return max((k for pattern in KERNELS for k in glob.glob(pattern)), key=os.path.getmtime, default=None)


@functools.cache
def missing():
    """The reason why no guest can run, or None. The first call takes this process into a network name space of its own, in which guests have their links."""
    if not kernel():
        return "no kernel of user-mode Linux: tests/vm/prepare uml builds it"
    if not shutil.which("ip") or ctypes.CDLL(None).unshare(CLONE_NEWNET):
        return "no network name space of this process's own"
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return None


def link(i):
    """(this machine's address, the guest's, the guest's device) of the i-th guest's network."""
    near, far, mac = f"lx{i}h", f"lx{i}g", f"52:54:00:02:{i:02x}:"
    if not os.path.exists("/proc/sys/net/ipv4/conf/" + near):
        for words in (f"link add {near} address {mac}01 mtu 9000 type veth peer name {far} mtu 9000", f"link set {near} gso_max_segs 1 up", f"link set {far} up",
                      f"addr add 10.77.{i}.1/24 dev {near}"):
            subprocess.run(["ip", *words.split()], check=True)
    return f"10.77.{i}.1", f"10.77.{i}.2", f"vec0:transport=raw,ifname={far},depth=64,mtu=9000,mac={mac}02"


def say_where(call, address, port):
    """The answer of an rpcbind to a call: every program is at that port."""
    x = r.In(call)
    xid, _, _, _, version, proc = (x.u32() for _ in range(6))
    where = f"{address}.{port >> 8}.{port & 255}".encode()
    return r.u32(xid) + r.u32(1) + bytes(16) + (b"" if proc != GETADDR else r.u32(port) if version == 2 else r.opaque(where))


class Relay:
    """Stands for the server before the guest. source: the address that the server sees."""

    fresh_port = False  # as in wire.Wire

    def __init__(self, server, rng, address, source, faults, count):
        self.server, self.rng, self.source, self.faults, self.count, self.cuts, self.near = server, rng, source, faults, count, [], set()
        self.listener, self.rpcbind = socket.create_server((address, 0)), socket.create_server((address, RPCBIND))
        self.port = self.listener.getsockname()[1]
        accept_all(self.listener, self.relay)
        accept_all(self.rpcbind, lambda conn: serve_calls(conn, lambda call: say_where(call, address, self.port)))

    def end(self):
        for s in (self.listener, self.rpcbind):
            s.shutdown(socket.SHUT_RDWR)
            s.close()

    def drop(self):
        """The guest is gone, so its ports are another's."""
        for s in list(self.near):
            with contextlib.suppress(OSError):  # closed meanwhile
                s.shutdown(socket.SHUT_RDWR)
        while self.near:
            time.sleep(0.001)

    def connect(self, port):
        while not self.server.over:
            try:
                if self.server.up.wait(0.5):
                    return r.Conn(self.server.port, source=(self.source, 0 if self.fresh_port else port)).s
            except OSError:
                time.sleep(0.01)
        raise r.Closed()

    def relay(self, near):
        self.near.add(near)
        far = None
        try:
            far = self.connect(near.getpeername()[1])
            far.settimeout(None)
            self.pass_on(near, far)
        finally:
            self.near.remove(near)
            if far:
                reset(far)

    def pass_on(self, near, far):
        """Passes data on from either side to the other, until one closes or a fault cuts both."""
        while not self.server.over:
            for s in select.select((near, far), (), (), 0.5)[0]:
                if not (data := s.recv(1 << 18)):
                    return
                fault = self.rng.choice(("half", "unread", "late")) if self.rng.random() < self.faults else None
                if fault:
                    self.count("cut " + fault)
                    self.cuts.append(time.monotonic_ns())
                (far if s is near else near).sendall(data[:self.rng.randrange(1, len(data) + 1)] if fault == "half" else data)
                if fault:
                    time.sleep(self.rng.choice((0.0005, 0.003, 0.05)) if fault == "late" else 0)
                    return


class Guest:
    """A machine of user-mode Linux. Its first process is a script that calls by_path.main(), whose object's methods ask() calls."""

    def __init__(self, i, link, init, *options):
        """link: as link() has it."""
        self.host, self.own, device = link
        self.process, self.top = None, tempfile.mkdtemp(prefix="ringnfs-guest-")
        self.command = [
            kernel(), "mem=128M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}", "con=null", "con0=null,fd:1", f"uml_dir={self.top}",
            "umid=guest", "seccomp=on", "quiet", "loglevel=4", "panic=-1", "norandmaps", "dummy.numdummies=0", f"hostname=guest{i}", device, *options]

    def boot(self):
        with socket.create_server((self.host, 0)) as listener, open(self.top + "/console", "ab") as console:
            self.process = subprocess.Popen([*self.command, f"GUEST={self.own},{self.host},{listener.getsockname()[1]}"], stdin=subprocess.DEVNULL, stdout=console,
                                            stderr=console, env={**os.environ, "TMPDIR": "/dev/shm"})
            listener.settimeout(BOOT_PATIENCE)
            self.conn = listener.accept()[0]
        self.guest = self.conn.makefile("rwb")

    def is_over(self):
        """True if nobody waits for the answer."""
        return False

    def ask(self, name, *args):
        pickle.dump((name, args), self.guest)
        self.guest.flush()
        end = time.monotonic() + PATIENCE
        while not select.select([self.conn], [], [], 0.5)[0]:
            if self.is_over():
                raise Stop()
            if time.monotonic() > end:
                raise Silent(f"no answer to {name} in {PATIENCE} s")
        answer = pickle.load(self.guest)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        if self.process:
            self.kill()
        shutil.rmtree(self.top, ignore_errors=True)


class Linux(Guest, Client):
    """A guest of its own. Its calls are by_path.Mounted's. names: what is judged are names, too, so the client must not keep them for a time."""

    def __init__(self, i, kind, server, rng, faults, names, where, count):
        super().__init__(i, link(i), f"{HERE}/by_path.py", *NO_DIRECTORIES[:names])
        options = rng.choice(FRESH if names else ("", "", ",actimeo=1", *FRESH))
        self.server, self.rng, host = server, rng, self.host
        self.looks_up = "lookupcache=none" in options
        self.sessions = kind in ("linux41", "linux42")
        self.v4 = kind != "linux3"  # it reclaims locks after a restart; its REMOVE takes files and directories
        self.relay = Relay(server, rng, host, f"127.{rng.randrange(1, 250)}.77.{i + 1}", faults, count)
        options = (f"vers={KINDS[kind]},addr={host},clientaddr={self.own},proto=tcp,port={self.relay.port},hard{options}" +
                   (f",mountaddr={host},mountproto=tcp,mountport={self.relay.port}" if kind == "linux3" else ""))
        self.mount = f"{host}:{server.export}", options, {key: os.path.relpath(path, server.export) for key, (_, path) in where.items()}
        self.boot()

    def boot(self):
        """Starts the guest, whose machine goes without a word if it is there, and mounts."""
        if self.process:
            self.kill()
            self.relay.drop()
        super().boot()
        self.ask("mount", *self.mount)

    def is_over(self):
        return self.server.over

    def __getattr__(self, name):
        return lambda *args: self.ask(name, *args)

    def beside(self, inv, what=""):
        """A server that has begun to answer since then may have done again what the one before has done. Over a cut, a WRITE is done again that came by a
        session, as the client takes it for idempotent and has its reply not kept. A new name is made again if the object is gone before the client has its
        attributes (ESTALE)."""
        more = sum(t > inv for t in self.relay.cuts) if what == "write" and self.sessions else int(what == "new")
        return [t for t in self.server.ready if t > inv] + [time.monotonic_ns()] * more

    def read(self, key, offset, size):
        self.direct = self.rng.random() < 0.3
        return self.ask("read", key, offset, size, self.direct)

    def end(self):
        super().end()
        self.relay.end()
