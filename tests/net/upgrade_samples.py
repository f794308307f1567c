#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The images of a server's state that released versions have written (tests/net/samples) are read by this one: clients go on with what they had.

Without arguments it starts a server from each sample. `upgrade_samples.py make NAME` makes one, by the server that RINGNFSD names
(doc/RELEASING.md says when). A sample is an image and NAME.json, which says what its descriptors are and what clients know. The files are not the
sample's own, so their handles are stale.
"""
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import sys
import time

import nfs4client as n
import nlm_recovery as nlm
import rpcclient as r
from harness import Count, Daemon, finish, result

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples")
SETTINGS = {"nfs4.lease_time": 3600, "nfs4.grace_time": 10, "nfs3.drc_size": 64}
EXPORTS = {"one": "rw,insecure,no_root_squash"}
HELD = ("nfs4_clients", "nfs4_sessions", "nfs4_opens", "nfs4_locks", "nfs4_delegations", "nfs4_owners", "nfs4_cached_replies", "drc_entries")
FIRST = 500  # descriptors from here on are this test's own

# Takes the place of the server's program, and keeps the image instead of going on.
KEEPER = """#!%s -B
import fcntl, json, os, socket, sys
if "--check-config" in sys.argv:
    sys.exit(0)
if "--image-formats" in sys.argv:
    print("1 1000")
    sys.exit(0)
image = int(os.environ["RINGNFS_IMAGE"])
with open("%s", "wb") as f:
    f.write(os.pread(image, os.fstat(image).st_size, 0))
fds = {}
for fd in sorted(int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2 and int(name) != image):
    try:
        link = os.readlink("/proc/self/fd/%%d" %% fd)
    except OSError:
        continue
    if link.startswith("socket:"):
        s = socket.socket(fileno=fd)
        fds[fd] = "listener" if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) else s.getpeername()[1]
        s.detach()
    elif link.endswith("/instance"):
        fds[fd] = "instance"
    elif link.startswith("/"):
        path = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_PATH
        fds[fd] = "path" if path else "file" if fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_UNLCK else "lease"
    elif "fanotify" in link:
        fds[fd] = "fanotify"
with open("%s.new", "w") as f:
    json.dump(fds, f)
os.rename("%s.new", "%s")
"""


# Takes descriptors to their numbers, and becomes the server.
LAUNCHER = """import json, os, sys
for source, fd in json.loads(sys.argv[1]):
    os.dup2(source, fd, True)
    os.close(source)
os.execv(sys.argv[2], sys.argv[2:])
"""


def held_of(d):
    """Resources that the server logs as held: {kind: number}."""
    before = len(d.read_log())
    d.process.send_signal(signal.SIGUSR1)
    d.wait_log(r"held:.*\n", before)
    found = dict(re.findall(r" (\w+)=(\d+)", re.search(r"held:(.*)", d.read_log()[before:]).group(1)))
    files = re.search(r"opened and locked files: \d+ descriptors, (.*)", d.read_log()[before:]).group(1)
    return {"files": files, **{name: int(found[name]) for name in HELD}}


def port_of(c):
    return c.s.getsockname()[1]


class Called(n.Client):
    back = True


def delegated(d, c, root):
    with open(os.path.join(d.exports["one"], "delegated"), "w") as f:
        f.write("data")
    while True:  # until the back channel has been tried
        res, fh = c.open(root, "delegated", access=n.SHARE_READ | 0x100)
        if res.get("delegation"):
            return res
        c.close_file(fh, res["stateid"])
        time.sleep(0.02)


def fill(d, one, old, three):
    """Has clients make state of each kind; returns the facts that they know."""
    for c in one, old:
        assert c.register()["status"] == n.OK
    one.reclaim_complete()
    root = one.path(d.exports["one"])
    opened, fh = one.open(root, "file", create=True)
    locked = one.lock(fh, opened["stateid"], offset=100, length=50)
    delegation = delegated(d, one, root)
    assert old.open(old.path(d.exports["one"]), "other", create=True)[0]["status"] == n.OK
    fh3 = nlm.make_file(d, three, "third")
    assert three.lock(fh3, proc=nlm.NLM_NM_LOCK) == nlm.GRANTED
    mkdir = r.call_message(r.NFS, 3, r.MKDIR, r.mkdir_args(d.root(three.conn, "one"), "folder"), r.ROOT, r.next_xid())
    made = three.conn.exchange(mkdir)
    stateids = [opened["stateid"], locked["stateid"], delegation["deleg"]]
    assert one.test_stateid(*stateids) == [n.OK] * 3
    return {"mkdir": mkdir.hex(), "made": made.hex(), "stateids": [x.hex() for x in stateids], "session": one.session.hex(), "seqid": one.seqid,
            "one": one.clientid, "old": old.clientid, "ports": {"one": port_of(one.conn), "old": port_of(old.conn), "three": port_of(three.conn)}}


def make(name):
    image = os.path.join(HERE, name)
    d = Daemon(EXPORTS, SETTINGS)
    binary, there = os.path.join(d.top, "ringnfsd"), os.path.join(d.top, "fds")
    shutil.copy(d.binary, binary)
    d.binary = binary
    with d:
        one, old, three = Called(d.port, "one"), n.Client(d.port, "old", 0), nlm.Client(d, "127.0.0.2", b"three", server="127.0.0.1")
        facts = fill(d, one, old, three)
        facts["held"] = held_of(d)
        with open(binary + ".new", "w") as f:
            f.write(KEEPER % (sys.executable, image, there, there, there))
        os.chmod(binary + ".new", 0o755)
        os.rename(binary + ".new", binary)
        d.process.send_signal(signal.SIGUSR2)
        d.process.wait(60)
        if not os.path.exists(there):
            raise SystemExit(d.read_log())
        names = {port: who for who, port in facts.pop("ports").items()}
        with open(there) as f:
            facts["fds"] = {fd: names.get(what, what) for fd, what in json.load(f).items()}
    with open(image + ".json", "w") as f:
        json.dump(facts, f, indent=1)
        f.write("\n")
    print(image, os.path.getsize(image), facts["fds"])


def high(fd):
    """Moves a descriptor to a number above those of the image."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD, FIRST)
    os.close(fd)
    return moved


def open_file(d, number, kind):
    path = os.path.join(d.exports["one"], f"file {number}")
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT, 0o644))
    fd = os.open(path, {"lease": os.O_RDONLY, "file": os.O_RDWR, "path": os.O_PATH}[kind])
    if kind == "lease":
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    return fd


def descriptors(d, what, meeting):
    """[(descriptor here, number in the image)], and clients' ends: {name: the server's port, for them}."""
    ends, out = {}, []
    for number, kind in ((int(number), kind) for number, kind in what.items()):
        if kind in CLIENTS:
            ends[kind] = CLIENTS[kind](meeting.getsockname()[1])
            s = meeting.accept()[0]
            s.setblocking(False)
            fd = s.detach()
        elif kind == "listener":
            s = socket.create_server(("127.0.0.1", d.port))
            s.setblocking(False)
            fd = s.detach()
        elif kind == "instance":
            fd = os.open(os.path.join(d.top, "state", "instance"), os.O_RDWR | os.O_CREAT, 0o600)
        elif kind == "fanotify":
            fd = ctypes.CDLL(None, use_errno=True).fanotify_init(4 | 2, os.O_RDWR)  # FAN_CLASS_CONTENT, FAN_NONBLOCK
        else:
            fd = open_file(d, number, kind)
        out.append((high(fd), number))
    return out, ends


CLIENTS = {"one": lambda port: Called(port, "one"), "old": lambda port: n.Client(port, "old", 0), "three": r.Conn}


def sealed(path):
    fd = high(os.memfd_create("sample", os.MFD_ALLOW_SEALING))
    with open(path, "rb") as f:
        os.write(fd, f.read())
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return fd


def goes_on(t, d, name, facts, ends):
    t.check(f"{name}: it is read", d.wait_log("goes on from ringnfsd"), d.read_log())
    one, old, three = (ends[who] for who in ("one", "old", "three"))
    t.equal(f"{name}: what is held", held_of(d), facts["held"])
    one.session, one.clientid, one.seqid, old.clientid = bytes.fromhex(facts["session"]), facts["one"], facts["seqid"], facts["old"]
    t.equal(f"{name}: an open, a lock, a delegation", one.test_stateid(*map(bytes.fromhex, facts["stateids"])), [n.OK] * 3)
    t.equal(f"{name}: RENEW", old.bare((n.RENEW, r.u64(old.clientid)))[0]["status"], n.OK)
    t.equal(f"{name}: a call once more", three.exchange(bytes.fromhex(facts["mkdir"])).hex(), facts["made"])


def load(t, name):
    with open(os.path.join(HERE, name + ".json")) as f:
        facts = json.load(f)
    d = Daemon(EXPORTS, SETTINGS)
    with socket.create_server(("127.0.0.1", 0)) as meeting:
        pairs, ends = descriptors(d, facts["fds"], meeting)
        image = sealed(os.path.join(HERE, name))
        d.before = [sys.executable, "-c", LAUNCHER, json.dumps(pairs)]
        d.pass_fds = [fd for fd, _ in pairs] + [image]
        d.env = {**os.environ, "RINGNFS_IMAGE": str(image)}
        with d:
            for fd in d.pass_fds:
                os.close(fd)
            goes_on(t, d, name, facts, ends)
            for c in ends.values():
                c.close()
            finish(t, d)


def main():
    t = Count()
    if sys.argv[1:2] == ["make"]:
        make(sys.argv[2])
        return
    for name in sorted(name[:-5] for name in os.listdir(HERE) if name.endswith(".json")):
        load(t, name)
    result(t)


if __name__ == "__main__":
    main()
