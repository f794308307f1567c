#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Certificates that stand for users (tls.user_map): whose files are made, who stays out, and reloads of the map."""
import hashlib
import json
import os
import pwd
import shutil
import ssl
import subprocess
import tempfile

import control
import harness
import nfs4client as n4
import rpcclient as r
import tlsclient as t

NOBODY = 65534
EXPORTS = {"any": "rw,no_root_squash,insecure", "squash": "rw,root_squash,insecure"}


class World:
    def __init__(self, d, ca, certs, sock):
        self.d, self.certs, self.socket = d, certs, sock
        self.contexts = {n: t.context(ca.path("crt"), c) for n, c in certs.items()}
        self.contexts[None] = t.context(ca.path("crt"))
        self.made = 0

    def owner(self, who, cred=r.ROOT, export="any", conn=None):
        """(uid, gid) of a file that the client of that certificate makes, or the error."""
        c = conn or t.TlsConn(self.d.port, self.contexts[who])
        try:
            self.made += 1
            n = f"f{self.made}"
            status = c.nfs(r.CREATE, r.create_args(self.d.root(c, export), n), cred=cred)["status"]
            if status != r.OK:
                return status
            st = os.stat(os.path.join(self.d.exports[export], n))
            return st.st_uid, st.st_gid
        finally:
            if not conn:
                c.close()


def fingerprint(crt):
    with open(crt, encoding="ascii") as f:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(f.read())).hexdigest()


def write_map(path, *lines):
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


def users(count, w, name):
    sys = r.auth_sys(7777, 8888, (0, 5))
    count.equal("the host name of a certificate", w.owner("alice", sys), (1001, 2001))
    count.equal("AUTH_NONE acts for the user as well", w.owner("alice", r.auth_none()), (1001, 2001))
    count.equal("root of the call is the user, too", w.owner("alice", r.ROOT), (1001, 2001))
    count.equal("a fingerprint and a user's name", w.owner("bob", sys), (name.pw_uid, name.pw_gid))
    count.equal("@call: users of the calls", w.owner("many", sys), (7777, 8888))
    count.equal("root, where it is allowed", w.owner("boss", sys), (0, 0))
    count.equal("and squashed where the export says so", w.owner("boss", sys, "squash"), (NOBODY, NOBODY))
    count.equal("a certificate that no line names is nobody's", w.owner("other", r.ROOT), (NOBODY, NOBODY))
    count.equal("a user that is not known is nobody", w.owner("ghost", r.ROOT), (NOBODY, NOBODY))
    count.equal("a name of root without the word root is nobody", w.owner("toor", r.ROOT), (NOBODY, NOBODY))
    count.equal("TLS without a certificate: users of the calls", w.owner(None, sys), (7777, 8888))
    with w.d.connect() as c:
        count.equal("plain TCP: users of the calls", w.owner(None, sys, conn=c), (7777, 8888))


def groups(count, w):
    """The call's own groups must not count."""
    folder = os.path.join(w.d.exports["any"], "grouped")
    os.mkdir(folder)
    os.chown(folder, 0, 4242)
    os.chmod(folder, 0o070)
    with t.TlsConn(w.d.port, w.contexts["alice"]) as c, t.TlsConn(w.d.port, w.contexts["many"]) as m:
        fh = m.nfs(r.LOOKUP, r.diropargs(w.d.root(m, "any"), "grouped"))["fh"]
        cred = r.auth_sys(1001, 2001, (4242,))
        count.equal("a group of the call", m.nfs(r.CREATE, r.create_args(fh, "a"), cred=cred)["status"], r.OK)
        count.equal("which a mapped user has not", c.nfs(r.CREATE, r.create_args(fh, "b"), cred=cred)["status"], r.ACCES)


def version4(count, w):
    for minor in (0, 1, 2):
        c = t.TlsClient4(w.d.port, w.contexts["alice"], f"map-{minor}", minor)
        count.equal(f"a mapped client of 4.{minor} registers", (c.register()["status"], c.reclaim_complete()), (n4.OK, n4.OK))
        path = [n4.lookup(p) for p in w.d.exports["any"].strip("/").split("/")]
        made = c.last((n4.PUTROOTFH, b""), *path, (n4.CREATE, r.u32(2) + r.name(f"dir{minor}") + r.u32(0) + r.u32(0)))
        count.equal(f"4.{minor} makes a folder", made["status"], n4.OK)
        st = os.stat(os.path.join(w.d.exports["any"], f"dir{minor}"))
        count.equal("which is the mapped user's", (st.st_uid, st.st_gid), (1001, 2001))
        c.close()


def ctl(w, *words):
    return subprocess.run([control.BINARY, "--socket", w.socket, *words], capture_output=True, text=True, check=True, timeout=60).stdout


def shown(count, w, name):
    """The user of each certificate, in the lists of connections and clients."""
    want = {"alice": "1001:2001", "bob": name.pw_name, "many": "@call", "other": "@nobody", None: None}
    conns = {who: t.TlsConn(w.d.port, w.contexts[who]) for who in want}
    for who, c in conns.items():
        w.owner(who, r.auth_sys(7777, 8888), conn=c)
    c4 = t.TlsClient4(w.d.port, w.contexts["alice"], "shown", 1)
    c4.register()
    rows = {row["port"]: row for row in json.loads(ctl(w, "--json", "connections"))["connections"]}
    got = {who: rows[c.s.getsockname()[1]] for who, c in conns.items()}
    count.equal("connections: users of certificates", {who: row.get("user") for who, row in got.items()}, want)
    count.equal("connections: flavours", {tuple(row["security"]) for row in got.values()}, {("sys",)})
    text = ctl(w, "connections")
    count.check("connections as text", " 1001:2001 " in text and " @nobody " in text and " SEC " in text, text)
    row = next(row for row in json.loads(ctl(w, "--json", "clients"))["clients"] if row["name"] == "shown")
    count.equal("clients: TLS, certificate and user", [row.get(k) for k in ("tls", "subject", "user", "security")],
                ["mtls", "CN=alice", "1001:2001", ["sys"]])
    text = ctl(w, "clients", row["id"])
    for words in ("tcp mtls", "security     sys\n", "tls          TLSv1.3 ", "certificate  CN=alice, user 1001:2001\n"):
        count.check(f"a client as text: {words.strip()}", words in text, text)
    for c in (*conns.values(), c4):
        c.close()


def reload(count, w, path):
    with t.TlsConn(w.d.port, w.contexts["alice"]) as c:
        count.equal("before the reload", w.owner("alice", conn=c), (1001, 2001))
        write_map(path, "dns:alice.example 1002:2002", "nonsense")
        log = w.d.reload()
        count.check("a wrong map is refused at a reload", "the old map of certificates to users stays in force" in log, log)
        count.check("with its place, and what would be right", f"{path}:2:1: error: 'nonsense' is no identity: write dns:NAME" in log, log)
        count.equal("the old map is used", w.owner("alice", conn=c), (1001, 2001))
        write_map(path, "dns:alice.example 1002:2002")
        w.d.reload()
        count.equal("a connection that is there has the new map", w.owner("alice", conn=c), (1002, 2002))
        write_map(path, "# nobody")
        w.d.reload()
        count.equal("a line that is taken out ends the user", w.owner("alice", conn=c), (NOBODY, NOBODY))
        os.unlink(path)
        log = w.d.reload()
        count.check("a map that has gone is refused", "cannot be read: No such file or directory" in log, log)
        count.equal("and nobody gains by it", w.owner("alice", conn=c), (NOBODY, NOBODY))


def start_with_error(count, settings, path):
    write_map(path, "dns:alice.example root")
    d = harness.Daemon({"any": "rw"}, settings)
    try:
        d.start()
        count.check("a start with a wrong map fails", False)
    except SystemExit:
        pass
    log = d.read_log()
    count.check("the message has file, line, fault and remedy", f"{path}:1:19: error: 'root' is root, or root's group: give another user" in log, log)
    count.check("and the setting", "tls.user_map" in log, log)
    d.__exit__()


def run(count, folder):
    ca = t.Authority(folder, "ca")
    names = {"alice": "DNS:localhost,DNS:alice.example", "bob": "email:bob@example", "many": "URI:urn:many", "boss": "DNS:boss.example",
             "other": "DNS:localhost", "ghost": "email:ghost@example", "toor": "DNS:toor.example"}
    certs = {n: ca.issue(n, names=names[n], algorithm=("ec", "-pkeyopt", "ec_paramgen_curve:P-256")) for n in names}
    crt, key = ca.issue("server")
    user = next((u for u in pwd.getpwall() if u.pw_uid and u.pw_gid), None)
    root = next((u.pw_name for u in pwd.getpwall() if not u.pw_gid and u.pw_name != "root"), "no-such-user")
    path = os.path.join(folder, "map")
    settings = {"tls.certificate": crt, "tls.key": key, "tls.ca": ca.path("crt"), "tls.user_map": path,
                "server.control_socket": os.path.join(folder, "control")}
    start_with_error(count, settings, path)
    write_map(path, "# users", "dns:ALICE.example 1001:2001", f"sha256:{fingerprint(certs['bob'][0])} {user.pw_name}", "uri:urn:many @call",
              "dns:boss.example root root", "email:ghost@example no-such-user", f"dns:toor.example {root}")
    with harness.Daemon(EXPORTS, settings) as d:
        w = World(d, ca, certs, settings["server.control_socket"])
        users(count, w, user)
        groups(count, w)
        version4(count, w)
        shown(count, w, user)
        reload(count, w, path)
        harness.finish(count, d)


def main():
    count = harness.Count()
    folder = tempfile.mkdtemp(prefix="ringnfs-tls-users-")
    try:
        run(count, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    harness.result(count)


if __name__ == "__main__":
    main()
