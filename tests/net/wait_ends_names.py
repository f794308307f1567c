#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""What ends the wait of a call for a service that does not answer, of names or of Kerberos: a client that goes, a reload, the end of the daemon."""
import fcntl
import os
import signal
import time

import gss
import gssapi
import gssclient as g
import harness
import kdc
import names
import rpcclient as r
from harness import Count
from wait_ends import begins, ends, reset

OPTIONS = "rw,insecure,no_root_squash"
SOON = 8  # seconds: five are waited for a thread that is in the name service


class Mount:
    """MNT of a host whose name decides."""
    settings, users, waits_for = {}, False, "a name service"

    def begin(self, d, address):
        self.conn = d.connect(source=(address, 0), timeout=30)
        self.conn.send(names.mnt_message(d, "a"))

    def refused(self):
        x = r.reply_body(self.conn.recv())
        return x.u32() != 0


class Groups:
    """A call of a user whose groups are looked up."""
    settings, users, waits_for = {"nfs3.manage_gids": "yes"}, True, "a name service"

    def begin(self, d, address):
        self.conn = d.connect(source=(address, 0), timeout=30)
        fh = d.root(self.conn, "b")
        self.conn.send(r.call_message(r.NFS, 3, r.GETATTR, r.getattr_args(fh), cred=r.auth_sys(uid=2000 + int(address.split(".")[3]))))

    def refused(self):
        return r.reply_body(self.conn.recv()).u32() in (r.STALE, r.JUKEBOX)


class Context:
    """A context of Kerberos."""
    users, waits_for, lock = False, "a Kerberos context", None

    def begin(self, d, address):
        if not self.lock:  # the library waits for it before it accepts a context
            Context.lock = open(d.top + "/state/krb5-replays", "a+b")
            fcntl.lockf(self.lock, fcntl.LOCK_EX)
        self.conn = d.connect(source=(address, 0), timeout=30)
        token = gssapi.Context(self.cache, "nfs@localhost").step()
        self.conn.send(r.call_message(r.NFS, 3, 0, r.opaque(token), r.u32(g.GSS) + r.opaque(g.credential(g.INIT, 0, g.NONE, b""))))

    def refused(self):
        return gss.refusal(lambda: r.reply_body(self.conn.recv())) is not None


def start(kind):
    d = names.daemon({"a": f"slow.lab({OPTIONS})", "b": f"127.0.0.0/8({OPTIONS})"}, databases=kind.users)
    d.path = os.path.join(d.top, "run", "control")
    d._configure({"rdma.enabled": "no", **kind.settings, "server.control_socket": d.path})
    return d


def test(t, kind):
    case = kind.__doc__.rstrip(".")
    with start(kind) as d:
        one, two, three = kind(), kind(), kind()
        one.begin(d, "127.0.8.1")
        t.equal(f"{case}: it waits", begins(d, kind.waits_for), 1)
        began = time.monotonic()
        reset(one.conn)
        t.equal(f"{case}: the client goes, the wait ends", ends(d, kind.waits_for), 0)
        if kind is not Context:  # which is not for an export
            two.begin(d, "127.0.9.2")
            t.equal(f"{case}: another waits", begins(d, kind.waits_for), 1)
            d.write_exports([f"{d.exports[n]} 192.0.2.1({OPTIONS})" for n in "ab"])
            d.reload()
            t.equal(f"{case}: a reload takes the exports away, the wait ends", ends(d, kind.waits_for), 0)
            t.check(f"{case}: it is refused", two.refused())
            d.write_exports([f"{d.exports['a']} slow.lab({OPTIONS})", f"{d.exports['b']} 127.0.0.0/8({OPTIONS})"])
            d.reload()
        three.begin(d, "127.0.10.3")
        t.equal(f"{case}: a third waits", begins(d, kind.waits_for), 1)
        began = time.monotonic()
        d.process.send_signal(signal.SIGTERM)
        t.check(f"{case}: the daemon ends, it is refused", three.refused())
        t.equal(f"{case}: exit status", d.process.wait(30), 0)
        t.check(f"{case}: the daemon ends soon", time.monotonic() - began < SOON, time.monotonic() - began)
        d.process = None


def main():
    if os.geteuid() != 0:
        harness.skip_all("a resolver of one's own needs root")
    t = Count()
    names.NameServer()
    for kind in (Mount, Groups):
        test(t, kind)
    if kdc.missing():
        t.skip(Context.__doc__, f"not installed: {', '.join(kdc.missing())}")
        harness.result(t)
        return
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        Context.settings, Context.cache = gss.settings(realm), realm.login("alice")
        test(t, Context)
    harness.result(t)


if __name__ == "__main__":
    main()
