#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Clients of every version and a nemesis, which breaks the server, write histories; a judge looks for an order of all operations that explains all
answers.

    histories.py                      the histories of ./check: one of each profile, one with Linux's client and one drawn, and the quick controls.
                                      HISTORIES_MINUTES adds all controls, and drawn histories for so long, as ./check full does; HISTORIES_HALF=0
                                      or 1 has one of every second profile, one drawn, and no controls
    histories.py many MINUTES [SEED]  the controls, and histories of all profiles, from a seed on
    histories.py controls             the controls alone: histories that the judge must find wrong
    histories.py one SEED PROFILE     one history; --seconds, --fs, --clients, --nemesis, --options change it, and those of many
    histories.py judge FILE           judges a kept history again, and tells the story of each anomaly

A history is drawn from a seed (plan), runs for some seconds (Run), and is judged (judge.py). One that fails is kept in $HISTORIES (default:
./histories), with the server's log. doc/design/proof.md says what is promised and what was found.
"""
import argparse
import collections
import contextlib
import os
import random
import re
import shutil
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "net"), os.path.join(HERE, "..", "..", "tools", "softverbs")]
import acts
import by_path
import clients
import harness
import judge
import kdc
import linux_client
import rpcclient as r
import server
from acts_state import DIRS, FILES, RANGE, RANGES, SIZES, StateWorker
from record import History, now
from wire import WIRES, Wire

KEPT = os.environ.get("HISTORIES", "histories")
SECONDS = 5
PATIENCE = 60
REGISTERS = {"write": 4, "read": 4, "cached_read": 4, "block": 1.5, "truncate": .4, "copy": .3, "commit": .6}
NAMES = {"create": 4, "remove": 3, "rename": 3, "link": 2, "lookup": 4, "nlink": 2, "list": 1, "cached_list": 3, "cached_lookup": 3}
ANY = ("v3", "v3", "v3r", "v3u", "v3t", "v3k", "v40", "v41", "v42", "v42b", "v42r", "v41r", "v42t", "v42k", "local")
BACK = tuple({"v40": "v40b", "v41": "v41b", "v42": "v42b"}.get(k, k) for k in ANY if k != "local")  # clients that can be called get delegations
LINUX = 0.3  # of the histories in which Linux's client can take part have it: a guest boots in a second
# Faults under which it is not known well enough what the Linux client has told a process. Under "jump" the kernel's clock is not the server's, which then does not
# know again what it has made, and says so by ESTALE behind CREATE; the client makes it again and finds it there.
NOT_LINUX = {"power", "die", "errors", "hungry", "unexport", "jump"}
NEMESIS = ("kill", "freezekill", "stop", "none", "freeze", "reload", "unexport", "fill", "errors", "jump", "hungry", "power", "die", "anew")
KILLS = ("kill", "freezekill", *judge.CUTS)
# For each profile: acts and their weights; clients; those that are there in any case; what the nemesis may do.
PROFILES = {
    "registers": dict(acts=REGISTERS, clients=ANY, nemesis=NEMESIS),
    "names": dict(acts=NAMES, clients=ANY, nemesis=NEMESIS),
    "listings": dict(acts={"once": 8, "list_big": 2}, clients=ANY, nemesis=("kill", "none", "reload", "unexport", "fill", "errors", "jump", "hungry", "power", "die")),
    "locks": dict(acts={"critical": 5, "nap": .1}, clients=ANY, nemesis=("kill", "none", "stop", "reload", "jump")),
    "shares": dict(acts={"share_open": 5}, clients=ANY, first=("v41", "v40"), nemesis=("none", "stop", "reload"), pace=0.006),
    "delegations": dict(acts={"delegation": 4}, clients=BACK, first=("v41b", "v42b"), nemesis=("kill", "none", "reload", "longstop", "jump")),
    "directories": dict(acts={"dir_delegation": 5, "delegated_size": 3}, clients=BACK, first=("v41b", "v42b"), nemesis=("none", "kill", "reload", "stop")),
    "mixed": dict(acts={**REGISTERS, **NAMES, "once": 2, "list_big": .4, "critical": 4, "share_open": 2, "delegation": 2}, clients=ANY,
                  nemesis=("kill", "freezekill", "none", "stop", "freeze", "reload", "fill", "power")),
    "crashes": dict(acts={**REGISTERS, **NAMES, "critical": 5, "share_open": 2, "crash": .15}, clients=ANY, nemesis=("none", "kill")),
    "grace": dict(acts={"critical": 5, "share_open": 5}, clients=ANY, first=("v41", "v40"), nemesis=("kill",), grace=True, pace=0.01, seconds=9),
    "leases": dict(acts={"critical": 6, "share_open": 1, "read": 1, "write": 1, "longnap": .05}, clients=ANY, nemesis=("none", "longstop", "kill"), sleepy=0.02,
                   seconds=14),
    # Two servers of one export, whose clients are each at one. Those that do not say when they have reclaimed all take no locks, so that a grace period is short.
    "members": dict(acts={**REGISTERS, **NAMES, "once": 2, "list_big": .4, "critical": 5}, clients=("v3", "v41", "v42"), first=("v41", "v42"), guests=("linux41", "linux42"),
                    nemesis=("kill", "none", "stop", "reload"), members=2, seconds=9),
}
FAULTS = ("on send 20 times 1000 chance 80 : drop-connection", "on completion 20 times 1000 chance 150 : drop-connection", "on request 20 times 1000 chance 60 : drop-connection",
          "on send 20 times 1000 chance 60 : delay 20ms", "on completion 20 times 1000 chance 60 : reorder", "on request 20 times 1000 chance 200 : rnr")
# Each must be found wrong, or the judge is blind: nothing can recognise a retransmission from another port; a local process changes what
# the option says that only NFS clients change; a server that waits for no flush loses what it has acknowledged.
CONTROLS = {
    "retransmissions from other ports": dict(profile="names", clients=["v3"] * 4, nemesis=["none"], cuts=0.1, fs="host", options="", settings={}, fresh_port=True),
    "retransmissions of the Linux client from other ports": dict(profile="names", clients=["linux3"] * 4, nemesis=["none"], cuts=0.1, fs="host", options="", settings={},
                                                                  fresh_port=True),
    "nfs_only with a local writer": dict(profile="delegations", clients=["v41b", "v42b", "v42b", "local", "local", "local"], nemesis=["none"], cuts=0, fs="host", options=",nfs_only",
                                         settings={}),
    "servers of one export that are no cluster": dict(profile="members", clients=["v41", "v42"] * 3, nemesis=["kill"], cuts=0, fs="host", options="", settings={}, joins=False),
    "power cuts of an export that may lose what it has acknowledged": dict(profile="names", clients=["v3", "v3", "v41", "v42"], nemesis=["power"], cuts=0, fs="ext4",
                                                                           options=",async", settings={}),
}
CONTROL_TRIES = 5
FIRST = 1812  # the seeds of ./check from here on draw clients of every kind
# Faults of ./check, whatever is drawn; its history with Linux's client; and the histories that ./check full has beside these.
CHECKED = {"registers": ["errors"], "names": ["power"], "listings": ["die"]}
GUESTS = dict(profile="mixed", clients=["linux42", "linux3", "v3", "v41b"], nemesis=["kill", "stop", "reload"], fs="ext4", cuts=0.03)
BESIDE = (("registers", ["power"]), ("listings", ["power"]), ("registers", ["die"]), ("names", ["die"]), ("names", ["errors"]),
             ("names", ["hungry"]), ("registers", ["jump", "kill"]), ("mixed", ["anew"]), ("names", ["anew"]), ("delegations", ["anew"]), ("locks", ["anew"]))


def plan(seed, profile, **fixed):
    """All that is drawn for a history, but for what is fixed."""
    rng, p = random.Random(f"{seed} {profile}"), PROFILES[profile]
    first = p.get("first", ())
    kinds = [*first, *(rng.choice(p["clients"]) for _ in range(rng.randint(3, 7) - len(first)))]
    nemesis = fixed.get("nemesis") or rng.sample(p["nemesis"], min(len(p["nemesis"]), rng.choice((1, 1, 2))))
    cuts_power = any(k in judge.CUTS for k in nemesis)
    if cuts_power:  # what a local process does is not on the disk when it returns
        kinds = ["v42" if k == "local" else k for k in kinds]
    if {"errors", "jump", "hungry"} & set(nemesis):  # preloaded libraries, as the fabric's is
        kinds = [k.removesuffix("r") for k in kinds]
    if "jump" in nemesis:  # tickets would not be valid
        kinds = [k.removesuffix("k") for k in kinds]
    cuts = (0, 0.01, 0.03, 0.1)
    if "hungry" in nemesis:  # the reply cache has no memory either, so nothing must be sent again, nor a context be lost
        kinds, cuts = [k.removesuffix("u").removesuffix("k") for k in kinds], (0,)
    if {"create", "dir_delegation"} & set(p["acts"]) or kdc.missing():  # who makes a name acts as a user of its own
        kinds = [k.removesuffix("k") for k in kinds]
    draw = random.Random(f"{seed} {profile} linux")
    if profile != "shares" and not NOT_LINUX & set(nemesis) and not linux_client.missing() and draw.random() < LINUX:
        kinds[-1] = draw.choice(p.get("guests") or list(linux_client.KINDS))
    options = ("" if cuts_power else rng.choice(("", "", "", ",async"))) + (rng.choice(("", "", ",nfs_only")) if "local" not in kinds and "members" not in p else "")
    settings = rng.choice(({}, {}, {"server.threads": rng.choice((1, 2, 8))}, {"vfs.io_mode": "direct"}, {"server.memory_max": "88M"}))
    if "local" in kinds and "vfs.io_mode" in settings:  # Linux fails direct writes into pages that a local process changes, with EIO
        settings = {}
    faults = "; ".join(f"in server {f}".replace(" :", f" seed {seed + 1} :") for f in rng.sample(FAULTS, 3)) if rng.random() < .5 else None
    systems = ("ext4",) if "die" in nemesis else ("ext4", "xfs") if cuts_power else ("ext4", "ext4", "xfs", "btrfs", "host")
    drawn = dict(seed=seed, profile=profile, fs=rng.choice(systems), clients=kinds, nemesis=nemesis,
                 cuts=rng.choice(cuts), options=options, settings=settings, faults=faults, files=rng.choice((1, 2, 3)), fresh_port=False,
                 seconds=max(p.get("seconds", SECONDS), 12 if "longstop" in nemesis else 0))
    return {**drawn, **{k: v for k, v in fixed.items() if v is not None}}


def behaviour(head):
    """The profile, with what follows from the history's clients and nemesis."""
    nemesis = set(head["nemesis"])
    kills = bool(nemesis & set(KILLS))
    return {
        "local_locks": not kills,  # those of NFSv3 and of local processes are not claimed back after a restart here
        "cuts power": bool(nemesis & set(judge.CUTS)),
        "dies": bool(nemesis & {"die", "errors", "hungry"}),
        "files": head["files"],
        "stops": "longstop" in nemesis,
        "reclaim": kills and "local" not in head["clients"],  # a local process may change a file meanwhile
        **PROFILES[head["profile"]],
    }


class Run:
    """One history, from an empty file system to the look behind the server's back."""

    def __init__(self, head):
        self.h, self.head, self.rng = History(**head), head, random.Random(f"{head['seed']} run")
        self.profile = behaviour(head)
        options = "rw,no_root_squash,insecure" + ("" if "async" in head["options"] else ",sync") + head["options"]
        how = head["fs"], options, head["settings"], {k[-1] for k in head["clients"]}, head["faults"], head["nemesis"]
        self.servers = []
        for i in range(self.profile.get("members", 0)):
            self.servers.append(server.Member("abc"[i], self.servers[0] if i else None, head.get("joins", True), "host" if i else how[0], *how[1:]))
        self.servers = self.servers or [server.Server(*how)]
        self.server = self.servers[0]
        self.h.head["fs"] = head["fs"] = self.server.fs
        self.h.head["kernel"] = os.uname().release

    def prepare(self):
        """The shared files and directories: {key: (handle, path)}."""
        d, top = self.server, self.server.export
        folders = ["A", "B", "big", *(f"dd{i}" for i in range(DIRS if "dir_delegation" in self.profile["acts"] else 0))]
        files = ["f0", "f1", "f2", "lock", "share", *(f"dg{i}" for i in range(FILES if "delegation" in self.profile["acts"] else 0)),
                 *(f"sz{i}" for i in range(SIZES if "delegated_size" in self.profile["acts"] else 0)), *(f"src{i}" for i, _ in enumerate(self.head["clients"]))]
        for name in folders:
            os.mkdir(f"{top}/{name}")
            os.chmod(f"{top}/{name}", 0o777)
        for name in files:
            with open(f"{top}/{name}", "w") as f:
                os.fchmod(f.fileno(), 0o666)
                f.write("\0" * acts.BLOCK if name in ("lock", "share") else "")
                f.truncate(acts.COPIED if name.startswith("src") else None)
        if "list_big" in self.profile["acts"]:
            stable = [f"s{i:05d}" + "x" * self.rng.choice((0, 0, 30, 100)) for i in range(self.rng.choice((30, 300, 1500)))]
            for name in stable:
                os.symlink("x", f"{top}/big/{name}")
            self.h.add("stable", names=stable)
        server.command("sync", "-f", top)
        for each in self.servers:
            each.start()
        with d.connect() as c:
            root = d.root(c, "x")
            handles = {name: c.nfs(r.LOOKUP, r.diropargs(root, name))["fh"] for name in folders + files}
        return {"root": (root, top), **{name: (fh, f"{top}/{name}") for name, fh in handles.items()}}

    def client(self, i, kind, where):
        if kind == "local":
            return by_path.Local(where)
        rng, back, d = random.Random(f"{self.head['seed']} wire {i}"), kind.endswith("b"), self.servers[i % len(self.servers)]
        if kind in linux_client.KINDS:
            names = {*NAMES, "once", "list_big", "dir_delegation"} & set(self.profile["acts"])
            guest = linux_client.Linux(i, kind, d, rng, self.head["cuts"] / 4, bool(names), where, self.h.count)
            guest.relay.fresh_port = self.head["fresh_port"]
            return guest
        faults = 0 if back and rng.random() < 0.7 else self.head["cuts"]
        v3, v40 = kind.startswith("v3"), kind.startswith("v40")
        address = f"127.{self.head['seed'] % 250 + 1}.7.{i + 1}"
        wire = WIRES.get(kind[-1], Wire)(d, rng, address, faults, v3 or v40, self.h.count)
        wire.fresh_port = self.head["fresh_port"]
        name = f"{i}{kind}"
        return clients.V3(name, wire, where) if v3 else clients.V4(f"{name} {self.head['seed']}", wire, where, int(kind[2]), back)

    def work(self, where):
        self.clients = []
        try:
            for i, kind in enumerate(self.head["clients"]):
                self.clients.append(self.client(i, kind, where))
            self.act(where)
        finally:
            for d in self.servers:
                d.over = True
            for c in self.clients:
                c.end()

    def act(self, where):
        end = time.monotonic() + self.head["seconds"]
        world = acts.World(where, self.h, self.profile)
        workers = [StateWorker(world, self.clients[i], random.Random(f"{self.head['seed']} client {i}"), end, f"{i}{kind}")
                   for i, kind in enumerate(self.head["clients"])]
        slow = self.head["profile"] in ("grace", "leases", "locks")
        nemesis = server.Nemesis(self.servers, self.head["nemesis"], self.rng, end, 3 if slow else 1,
                                 lambda inv, ret, what, run: (self.h.count("nemesis " + what), self.h.add("nemesis", inv=inv, ret=ret, what=what, run=run)))
        for t in (*workers, nemesis):
            t.start()
        for t in (*workers, nemesis):
            t.join(max(1, end + PATIENCE - time.monotonic()))
            if t.is_alive():
                self.h.trouble("a client hangs", who=getattr(t, "who", "nemesis"))
        if nemesis.failed:
            self.h.trouble("the nemesis failed", text=nemesis.failed)

    def look(self):
        """Writes down the state of the file system, behind the server's back."""
        top, t = self.server.export, now()
        for f in (f for f in os.listdir(top) if f[0] == "f" and f[1:].isdigit() or f.startswith("dg")):
            with open(f"{top}/{f}", "rb") as x:
                data = x.read()
            for s, v in enumerate(acts.values(data)):
                self.h.op(acts.reg(f, s), t, t + 1, ("read", v), "end")
        for f in (f for f in os.listdir(top) if f.startswith("sz")):
            self.h.op(f, t, t + 1, ("read", os.path.getsize(f"{top}/{f}")), "end")
        for i, (d, name) in enumerate(acts.NAMES):
            path = f"{top}/{d}/{name}"
            self.h.op("ns", t, t + 1, ("lookup", i, os.lstat(path).st_uid if os.path.lexists(path) else 0), "end")
        with open(f"{top}/lock", "rb") as x:
            data = x.read().ljust(RANGE * RANGES, b"\0")
        self.h.add("end", big=os.listdir(f"{top}/big"), counters=[int.from_bytes(data[RANGE * k:RANGE * k + 8], "big") for k in range(RANGES)])

    def run(self):
        with contextlib.ExitStack() as stack:
            for d in self.servers:
                stack.enter_context(d)
            try:
                self.work(self.prepare())
                self.look()
                for d in self.servers:
                    if not d.alive():
                        self.h.trouble("the server has ended", status=d.process.returncode)
                    elif (status := d.stop()[0]) != 0:
                        self.h.trouble("the server's exit status", status=status)
            except (Exception, SystemExit) as e:
                if isinstance(e, SystemExit) and e.code == 1:  # this process was told to end
                    raise
                self.h.trouble("the history failed", text=repr(e), trace=traceback.format_exc()[-1500:])
            self.h.count("starts", sum(d.run + 1 - d.first for d in self.servers))
            os.makedirs(KEPT, exist_ok=True)
            with open(self.path(".log"), "wb") as log:
                for d in self.servers:
                    with open(d.top + "/log", "rb") as f:
                        shutil.copyfileobj(f, log)
        return self.h

    def path(self, suffix):
        return f"{KEPT}/{self.head['profile']}-{self.head['seed']}{suffix}"


def judged(h, path=None):
    """The judge of a history, which has printed what it found; the history is kept at path if it fails."""
    j = judge.Judge(h)
    j.run()
    if j.anomalies and path:
        h.save(path)
        print(f"kept: {path}")
    return j


class Totals:
    def __init__(self):
        self.count, self.sums, self.permitted, self.undecided, self.profiles = harness.Count(), collections.Counter(), collections.Counter(), 0, collections.Counter()

    def one(self, seed, profile, **fixed):
        head = plan(seed, profile, **fixed)
        run = Run(head)
        h = run.run()
        what = f"{profile} {seed} ({h.head['fs']}{head['options']}; {' '.join(head['clients'])}; {' '.join(head['nemesis'])}; cuts {head['cuts']})"
        with open(run.path(".log"), errors="replace") as f:  # clients take a hand-over for none, so an ordinary restart says nothing of it
            if "anew" in head["nemesis"] and (why := re.search("could not be handed over: (.*)", f.read())):
                os.unlink(run.path(".log"))
                return self.count.skip(what, f"an ordinary restart: {why[1]}")
        j = judged(h, run.path(".jsonl"))
        ops = len(h.of("op"))
        self.sums.update(h.counts)
        self.sums.update(operations=ops, facts=len(h.facts))
        self.permitted.update(j.permitted)
        self.undecided += j.undecided
        self.profiles[profile] += 1
        if self.count.check(what, not j.anomalies, f"{len(j.anomalies)} anomalies"):
            os.unlink(run.path(".log"))
            print(f"{what}: {ops} operations, {len(h.facts)} facts", flush=True)
        for what, details in j.anomalies[:3]:
            print("\n".join(line[:1000] for line in judge.tell(h, what, details)), flush=True)

    def control(self, name):
        """Fails if the judge finds nothing wrong."""
        if "linux3" in CONTROLS[name]["clients"] and (why := linux_client.missing()):
            return self.count.skip(name, why)
        for seed in range(CONTROL_TRIES):
            run = Run(plan(seed, **{"seconds": 4, **CONTROLS[name]}))
            j = judged(run.run())
            os.unlink(run.path(".log"))
            if run.head["fs"] != CONTROLS[name]["fs"]:
                return self.count.skip(name, "no file system of one's own")
            if j.anomalies:
                break
        else:
            return self.count.check(f"the control fails: {name}", False, "the judge finds nothing wrong")
        return self.count.check(f"the control fails: {name}", True)

    def show(self):
        print(f"{sum(self.profiles.values())} histories: " + ", ".join(f"{k} {v}" for k, v in sorted(self.profiles.items())))
        print("; ".join(f"{k}: {v}" for k, v in sorted(self.sums.items())))
        print(f"permitted anomalies: {dict(self.permitted)}; undecided objects: {self.undecided}")
        harness.result(self.count)


def controls(totals, every=True):
    """every: also those that need a power cut, or a guest."""
    for name, control in CONTROLS.items():
        if every or (control["nemesis"] == ["none"] and "linux3" not in control["clients"]):
            totals.control(name)


def check(totals, drawn, full):
    half = os.environ.get("HISTORIES_HALF")
    if not half:
        controls(totals, full)
    for seed, profile in list(enumerate(PROFILES, FIRST))[int(half or 0)::2 if half else 1]:
        totals.one(seed, profile, nemesis=CHECKED.get(profile))
    if not half:
        if why := linux_client.missing():
            totals.count.skip("Linux's client", why)
        else:
            totals.one(FIRST - 1, **GUESTS)
    for seed, (profile, nemesis) in enumerate(BESIDE if full else (), FIRST + len(PROFILES)):
        totals.one(seed, profile, nemesis=nemesis)
    totals.one(drawn, random.Random(drawn).choice(list(PROFILES)))


def judge_again(path):
    h = History.load(path)
    j = judged(h)
    for what, details in j.anomalies:
        print("\n".join(judge.tell(h, what, details)))
    print(f"{len(j.anomalies)} anomalies; permitted: {j.permitted}; undecided objects: {j.undecided}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", nargs="?", default="check", choices=("check", "many", "one", "judge", "controls"))
    p.add_argument("args", nargs="*")
    p.add_argument("--seconds", type=float)
    p.add_argument("--fs")
    p.add_argument("--clients", type=lambda s: s.split(","))
    p.add_argument("--nemesis", type=lambda s: s.split(","))
    p.add_argument("--options")
    a = p.parse_args()
    fixed = {k: getattr(a, k) for k in ("seconds", "fs", "clients", "nemesis", "options")}
    if a.what == "judge":
        return judge_again(a.args[0])
    os.umask(0)
    server.own_mounts()
    linux_client.missing()
    sys.setswitchinterval(0.0003)
    totals, seed, minutes = Totals(), int.from_bytes(os.urandom(3), "big"), 0
    if a.what == "one":
        totals.one(int(a.args[0]), a.args[1], **fixed)
    elif a.what == "check":
        minutes = float(os.environ.get("HISTORIES_MINUTES") or 0)
        check(totals, seed, minutes > 0)
    else:
        controls(totals)
    if a.what == "many":
        minutes, seed = float(a.args[0]), int(a.args[1]) if a.args[1:] else seed
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        totals.one(seed, list(PROFILES)[seed % len(PROFILES)], **fixed)
        seed += 1
    return totals.show()


if __name__ == "__main__":
    main()
