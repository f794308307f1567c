#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The program is run anew beneath clients under Kerberos: contexts go on with their numbers, and so do callbacks under one."""
import os
import subprocess

import gss
import gss_callbacks
import gssclient as g
import harness
import kdc
import nfs4client as n4
import rpcclient as r
from upgrade import restart

SETTINGS = {"nfs4.lease_time": 10, "nfs4.grace_time": 10}
ENCTYPES = ("aes256-cts-hmac-sha1-96", "camellia256-cts-cmac")  # tokens of the server's own code, and of the library


def goes_on(t, said, what):
    t.check(f"{what}: the state goes along", "goes on from" in said and "did not go on" not in said, said)


def dropped(session, d, seq, service, root):
    """True if a call with a number that was used is dropped: the next call is answered first."""
    with gss.connect(d) as c:
        xid, other = r.next_xid(), r.next_xid()
        c.send(session.call(r.NFS, 3, r.GETATTR, r.getattr_args(root), service, xid, seq))
        number = session.number()
        c.send(session.call(r.NFS, 3, r.GETATTR, r.getattr_args(root), service, other, number))
        return c.recv()[:4] == r.u32(other)


def calls(t, d, realm, flavor, service):
    """One context is used before and after the restart. Used numbers are refused, and one that was left out is taken."""
    with gss.connect(d) as c:
        session = g.Session(c, realm.login(gss.ALICE))
        root = c.mnt(d.exports["all"])[1]
        c.session, c.service = session, service
        for _ in range(5):
            t.equal(f"{flavor}: GETATTR", c.nfs(r.GETATTR, r.getattr_args(root))["status"], 0)
        late, used = session.number(), session.seq - 1
        t.equal(f"{flavor}: GETATTR behind a gap", c.nfs(r.GETATTR, r.getattr_args(root))["status"], 0)
        for i in range(2):
            goes_on(t, restart(t, d, f"{flavor} {i}"), flavor)
            t.equal(f"{flavor}: the same context", c.nfs(r.GETATTR, r.getattr_args(root))["status"], 0)
            t.check(f"{flavor}: a number that was used", dropped(session, d, used, service, root))
        xid = r.next_xid()
        data = c.exchange(session.call(r.NFS, 3, r.GETATTR, r.getattr_args(root), service, xid, late))
        t.equal(f"{flavor}: the one that was left out", r.decode(r.GETATTR, session.results(data, xid, late, service))["status"], 0)
        t.check(f"{flavor}: and once only", dropped(session, d, late, service, root))
        c.destroy()
        try:
            c.nfs(r.GETATTR, r.getattr_args(root))
            t.check(f"{flavor}: a context that has ended", False)
        except r.Refused:
            t.check(f"{flavor}: a context that has ended", True)


def called(t, d, session, flavor, service):
    """A delegation from before the restart is recalled after it, by the context that the session has offered."""
    c = gss_callbacks.new(d, session, f"upgrade {flavor}", gss_callbacks.offer(session, service))
    t.equal(f"{flavor}: CREATE_SESSION", c.register()["status"], n4.OK)
    c.reclaim_complete(), c.await_callback()
    name = f"deleg.{flavor}"
    with open(os.path.join(d.exports["all"], name), "w") as f:
        f.write("data")
    os.chmod(f.name, 0o666)
    opened, fh = c.open(c.path(d.exports["all"]), name, access=n4.SHARE_READ)
    t.equal(f"{flavor}: a delegation", opened["delegation"], n4.DELEGATE_READ)
    goes_on(t, restart(t, d, f"{flavor}, called"), flavor)
    t.equal(f"{flavor}: the session", (c.last((n4.PUTROOTFH, b""))["status"], c.flags), (n4.OK, 0))
    w = gss_callbacks.writes(d, name)
    t.equal(f"{flavor}: another's OPEN", w.open(w.path(d.exports["all"]), name)[0]["status"], n4.DELAY)
    recall = c.await_callback(n4.CB_RECALL)
    t.equal(f"{flavor}: the recall", (recall["stateid"][4:], recall["fh"], c.seen[-1][1:]),
            (opened["deleg"][4:], fh, (service, gss_callbacks.BACK)))
    t.equal(f"{flavor}: DELEGRETURN", c.delegreturn(fh, opened["deleg"]), n4.OK)
    seqs = [s[0] for s in c.seen]
    t.check(f"{flavor}: sequence numbers are new ones", seqs == sorted(set(seqs)), seqs)
    t.equal(f"{flavor}: flags", (c.compound((n4.PUTROOTFH, b"")), c.flags)[1], 0)
    w.close()
    c.close()


def image_is_gone(t, d):
    """The sealed file with the keys is gone after the restart."""
    held = subprocess.run(["ls", "-l", f"/proc/{d.process.pid}/fd"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    t.check("the image is not open any more", "socket:" in held and "ringnfs-state" not in held, held)


def without_kerberos(t, d, realm):
    """The next program's settings have no Kerberos: contexts end, and the rest goes on."""
    with gss.connect(d) as c, gss.connect(d) as plain:
        c.session = g.Session(c, realm.login(gss.ALICE))
        root = plain.mnt(d.exports["all"])[1]
        with open(d.config) as f:
            text = f.read()
        with open(d.config, "w") as f:
            f.write(text.replace("[gss]\nenabled = yes", "[gss]\nenabled = no"))
        said = restart(t, d, "without Kerberos")
        t.check("the state goes along", "goes on from" in said, said)
        t.equal("AUTH_SYS", plain.nfs(r.GETATTR, r.getattr_args(root))["status"], 0)
        try:
            c.nfs(r.GETATTR, r.getattr_args(root))
            t.check("no Kerberos", False)
        except r.Refused:
            t.check("no Kerberos", True)


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    for enctype in ENCTYPES:
        with kdc.Realm(enctypes=f"{enctype}:normal") as realm:
            os.environ.update(realm.env)
            with harness.Daemon({"all": "sec=krb5:krb5i:krb5p:sys,rw,insecure"}, {**gss.settings(realm), **SETTINGS}, env={**os.environ}) as d:
                for flavor, service in gss.SERVICES.items():
                    calls(t, d, realm, f"{enctype} {flavor}", service)
                with gss.connect(d) as c:
                    alice = g.Session(c, realm.login(gss.ALICE), vers=4)
                for flavor, service in gss.SERVICES.items():
                    called(t, d, alice, f"{enctype} {flavor}", service)
                image_is_gone(t, d)
                without_kerberos(t, d, realm)
                harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
