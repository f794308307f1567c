#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsctl support-bundle: what the archive has, what it must not have, and who may read it."""
import json
import os
import stat
import subprocess
import tarfile
import tempfile

import harness
import tlsclient
from control import BINARY, Control, ctl
from control_state import api, client_id, new_client
from harness import Count

NAME = b"secret-name.txt"


def bundle(d, name, *args, env=None):
    """(the tool's result, {file of the archive: its text})"""
    path = os.path.join(d.top, name)
    res = subprocess.run([BINARY, "--socket", d.path, "support-bundle", "--output", path, *args], capture_output=True, text=True, timeout=60,
                         env=env)
    with tarfile.open(path) as tar:
        members = tar.getmembers()
        texts = {m.name.split("/", 1)[1]: tar.extractfile(m).read() for m in members}
    return res, members, texts


def keys_of(d):
    """What must not leave the state directory: texts of 16 bytes of its small files."""
    found = []
    for name in os.listdir(os.path.join(d.top, "state")):
        path = os.path.join(d.top, "state", name)
        if os.path.isfile(path) and ("key" in name or "secret" in name):
            with open(path, "rb") as f:
                data = f.read()
            found += [data, data.hex().encode()]
    return found


def test_contents(t, d):
    c = new_client(d, "bundled", 1)
    c.open(c.path(d.exports["one"]), NAME, create=True)
    res, members, texts = bundle(d, "plain.tar")
    t.equal("it tells where it is", (res.returncode, res.stdout), (0, d.top + "/plain.tar\n"))
    t.equal("nobody else may read it", stat.S_IMODE(os.stat(d.top + "/plain.tar").st_mode), 0o600)
    t.check("one folder of plain files", all(m.isfile() and m.mode == 0o600 and m.name.startswith("ringnfs-support-") for m in members), members)
    t.equal("status", json.loads(texts["status.json"])["pid"], d.process.pid)
    t.check("settings", b'"server.state_dir"' in texts["config.json"])
    t.check("exports", d.exports["one"].encode() in texts["exports.json"])
    t.equal("clients, with how much they hold", [(x["id"], x["opens"]) for x in json.loads(texts["clients.json"])["clients"]], [(client_id(c), 1)])
    t.check("connections and sessions", '"connections"' in texts["connections.json"].decode() and '"sessions"' in texts["sessions.json"].decode())
    t.check("metrics and statistics", b"# TYPE ringnfs_" in texts["metrics.txt"] and json.loads(texts["stats.json"]), texts["metrics.txt"][:200])
    t.check("kernel", os.uname().release.encode() in texts["machine.txt"], texts["machine.txt"])
    t.check("the mount of the export", any(b" - " in line for line in texts["mounts.txt"].splitlines()), texts["mounts.txt"])
    t.check("the process", b"Max open files" in texts["process-limits.txt"] and b"VmRSS" in texts["process-status.txt"])
    t.check("the log", b"notice: ready" in texts["log.txt"], texts["log.txt"][:300])
    t.check("what is left out", b"What is left out" in texts["README.txt"])
    keys = keys_of(d)
    t.check("there are keys", keys)
    t.check("no key is there", not [n for n, text in texts.items() for k in keys if k in text])
    ids = [s["id"].encode() for s in api(d, "/v1/sessions")[1]["sessions"]]
    t.check("root sees ids of sessions", ids)
    t.check("no id of a session is there", not [n for n, text in texts.items() for i in ids if i in text])
    t.equal("though its session is", len(json.loads(texts["sessions.json"])["sessions"]), len(ids))
    t.check("no name of a file is there", not [n for n, text in texts.items() if NAME in text])
    res, _, texts = bundle(d, "paths.tar", "--with-paths")
    t.check("but if that is wanted", NAME in texts["opens.json"] and "locks.json" in texts and "delegations.json" in texts, sorted(texts))
    c.close()


def private_texts():
    """Things about this machine that nobody needs who helps: the kernel's command line, and values of variables."""
    with open("/proc/cmdline") as f:
        line = f.read().strip()
    return {"the kernel's command line": line if " " in line else None, "a variable of the server": "private-of-server",
            "a variable of the tool": "private-of-tool"}


def test_secrets(t):
    """A server with a keytab, a TLS key and a password in the source of a mount."""
    with tempfile.TemporaryDirectory() as folder:
        ca = tlsclient.Authority(folder, "ca")
        certificate, key = ca.issue("server")
        keytab = os.path.join(folder, "keytab")
        with open(keytab, "w") as f:
            f.write("private-key-of-kerberos\n" * 4)
        settings = {"tls.certificate": certificate, "tls.key": key, "gss.keytab": keytab}
        with Control(settings, env={**os.environ, "SERVER_VARIABLE": "private-of-server"}) as d:
            below = os.path.join(d.exports["one"], "below")
            os.mkdir(below)
            subprocess.run(["nsenter", "-t", str(d.process.pid), "-m", "mount", "-t", "tmpfs", "https://me:private@host/dav", below], check=True)
            res, _, texts = bundle(d, "secrets.tar", env={**os.environ, "TOOL_VARIABLE": "private-of-tool"})
            t.equal("with secrets about", res.returncode, 0)
            t.check("the mount is there", b"https://<hidden>@host/dav" in texts["mounts.txt"], texts["mounts.txt"])
            t.check("where the key and the keytab are", all(p.encode() in texts["config.json"] for p in (key, keytab)), texts["config.json"])
            with open(key) as f:
                lines = [line.strip() for line in f if "-----" not in line]
            t.check("there is a key", lines)
            secrets = {**private_texts(), "the mount's password": "me:private", "the keytab": "private-key-of-kerberos",
                       **{f"line {n} of the TLS key": line for n, line in enumerate(lines)}}
            for what, secret in secrets.items():
                t.check(f"not in the bundle: {what}", not secret or not [n for n, text in texts.items() if secret.encode() in text])


def test_wrong(t, d):
    victim = os.path.join(d.top, "victim")
    with open(victim, "w") as f:
        f.write("mine")
    os.symlink(victim, os.path.join(d.top, "link"))
    for path in (victim, os.path.join(d.top, "link"), os.path.join(d.top, "none/file")):
        res = ctl("--socket", d.path, "support-bundle", "--output", path)
        t.check(f"{path} is refused", res.returncode == 1 and path in res.stderr, res)
    with open(victim) as f:
        t.equal("nothing is overwritten", f.read(), "mine")
    t.equal("wrong use", ctl("--socket", d.path, "support-bundle", "x").returncode, 2)
    res = subprocess.run([BINARY, "--socket", d.path, "support-bundle", "--output", "/dev/full"], capture_output=True, text=True, timeout=60)
    t.check("a device is refused", res.returncode == 1, res)


def test_without_server(t, d):
    """The journal is asked where the log is in no file."""
    tools = os.path.join(d.top, "bin")
    os.mkdir(tools)
    with open(os.path.join(tools, "journalctl"), "w") as f:
        f.write('#!/bin/sh\necho "journal: $*"\n')
    os.chmod(os.path.join(tools, "journalctl"), 0o755)
    d.stop()
    res, _, texts = bundle(d, "without.tar", env={**os.environ, "PATH": tools + ":" + os.environ["PATH"]})
    t.check("it is made all the same", res.returncode == 0 and "status.json: " in res.stderr, res)
    if not os.path.isdir("/sys/class/infiniband"):
        t.equal("a machine without RDMA is none that lacks a file", (texts.get("rdma.txt"), b"rdma.txt: /sys" in texts["README.txt"]),
                (b"This machine has no RDMA device.\n", False))
    t.check("and says what is missing", b"What could not be had\nstatus.json: " in texts["README.txt"], texts["README.txt"])
    t.check("the journal of the unit", b"_SYSTEMD_UNIT=ringnfsd.service" in texts["log.txt"], texts.get("log.txt"))
    t.check("and of no other process", b"_PID=" not in texts["log.txt"], texts.get("log.txt"))
    t.check("and the machine", b"kernel: Linux" in texts["machine.txt"])


def main():
    t = Count()
    with Control() as d:
        for test in (test_contents, test_wrong, test_without_server):
            test(t, d)
    test_secrets(t)
    harness.result(t)


if __name__ == "__main__":
    main()
