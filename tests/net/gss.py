#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""RPCSEC_GSS (RFC 2203): every flavour by NFSv3 and NFSv4, two users, retransmissions, the end of contexts."""
import json
import os

import control
import gssclient as g
import harness
import kdc
import nfs4client as n4
import rpcclient as r

# Users of every system. (libnfsidmap's static maps would do for others, but it does not free them.)
ALICE, BOB = "daemon", "bin"
UIDS = {ALICE: 1, BOB: 2}
IDMAP = f"""[General]
Domain = test.ringnfs
Local-Realms = {kdc.REALM}
[Translation]
Method = nsswitch
"""
SERVICES = {"krb5": g.NONE, "krb5i": g.INTEGRITY, "krb5p": g.PRIVACY}
FLAVORS = {"krb5": 390003, "krb5i": 390004, "krb5p": 390005}
TOOWEAK = 5


def settings(realm):
    with open(realm.path("idmapd.conf"), "w") as f:
        f.write(IDMAP)
    return {"gss.enabled": "yes", "server.control_socket": realm.path("control"), "gss.keytab": realm.keytab("keytab.nfs", "nfs/localhost"), "nfs4.idmap_file": realm.path("idmapd.conf")}


def connect(d, session=None, service=g.NONE):
    c = g.GssConn(d.port)
    c.session, c.service = session, service
    return c


class Client4(n4.Client):
    """NFSv4 under a session."""

    def __init__(self, port, session, service, owner, minor=1):
        self.gss = session, service
        super().__init__(port, owner, minor)

    def _connect(self):
        self.conn = g.GssConn(self.port)
        self.conn.session, self.conn.service = self.gss


def refusal(call, *args, **kw):
    try:
        call(*args, **kw)
    except r.Refused as e:
        return (e.why, *e.data)
    except r.Closed:
        return ("closed",)
    return None


def test_flavors(t, d, realm, user):
    """All procedures that carry data, under each service, by NFSv3."""
    name, uid = user, UIDS[user]
    with connect(d) as c:
        session = g.Session(c, realm.login(name))
        status, root, flavors = c.mnt(d.exports["all"])
        t.equal("MNT lists the flavours in their order", (status, flavors), (0, [*FLAVORS.values(), 1]))
        for flavor, service in SERVICES.items():
            c.session, c.service = session, service
            t.equal(f"{flavor}: NULL", c.call(r.NFS, 3, 0).end(), None)
            made = c.nfs(r.CREATE, r.create_args(root, f"{flavor}.{name}", attrs=r.sattr(mode=0o600)))
            t.equal(f"{flavor}: CREATE", made["status"], r.OK)
            path = os.path.join(d.exports["all"], f"{flavor}.{name}")
            t.equal(f"{flavor}: the file is the user's", os.stat(path).st_uid, uid)
            for size in (0, 1, 5000, 70000, 1 << 20):
                data = os.urandom(size)
                t.equal(f"{flavor}: WRITE of {size}", c.nfs(r.WRITE, r.write_args(made["fh"], 0, data))["status"], r.OK)
                t.check(f"{flavor}: READ of {size}", c.nfs(r.READ, r.read_args(made["fh"], 0, max(size, 1)))["data"][:size] == data)
            t.equal(f"{flavor}: READDIRPLUS", c.nfs(r.READDIRPLUS, r.readdirplus_args(root))["status"], r.OK)
            t.equal(f"{flavor}: an unknown procedure", refusal(c.call, r.NFS, 3, 99)[0], "PROC_UNAVAIL")


def test_users(t, d, realm):
    """Two users of one connection have rights of their own."""
    with connect(d) as c:
        alice, bob = (g.Session(c, realm.login(u)) for u in (ALICE, BOB))
        root = c.mnt(d.exports["all"])[1]
        c.session, c.service = alice, g.INTEGRITY
        made = c.nfs(r.CREATE, r.create_args(root, "private", attrs=r.sattr(mode=0o600)))
        t.equal("alice makes a file", made["status"], r.OK)
        c.session = bob
        t.equal("bob may not read it", c.nfs(r.READ, r.read_args(made["fh"], 0, 10))["status"], r.ACCES)
        c.session = alice
        t.equal("alice may", c.nfs(r.READ, r.read_args(made["fh"], 0, 10))["status"], r.OK)
        stranger = g.Session(c, realm.login("stranger"))
        c.session = stranger
        made = c.nfs(r.CREATE, r.create_args(root, "anonymous"))
        t.equal("a principal that is nobody's", made["status"], r.OK)
        t.equal("is anonymous", os.stat(os.path.join(d.exports["all"], "anonymous")).st_uid, 65534)


def test_exports(t, d, realm):
    """An export takes the flavours that it lists, each with its own rights."""
    with connect(d) as c:
        session = g.Session(c, realm.login(ALICE))
        roots = {e: c.mnt(d.exports[e])[1] for e in ("all", "p", "mixed")}
        t.equal("AUTH_SYS on sec=krb5p", refusal(c.nfs, r.ACCESS, r.access_args(roots["p"], 1)), ("AUTH_ERROR", TOOWEAK))
        t.equal("FSINFO of its root, before credentials", c.nfs(r.FSINFO, r.getattr_args(roots["p"]))["status"], r.OK)
        for flavor, service in SERVICES.items():
            c.session, c.service = session, service
            want = None if flavor == "krb5p" else ("AUTH_ERROR", TOOWEAK)
            t.equal(f"{flavor} on sec=krb5p", refusal(c.nfs, r.ACCESS, r.access_args(roots["p"], 1)), want)
            got = c.nfs(r.CREATE, r.create_args(roots["mixed"], flavor))["status"]
            t.equal(f"{flavor} on sec=krb5p,rw,sec=krb5:krb5i,ro", got, r.OK if flavor == "krb5p" else r.ROFS)


def test_nfs4(t, d, realm):
    for minor in (0, 1, 2):
        for flavor, service in SERVICES.items():
            with connect(d) as c:
                session = g.Session(c, realm.login(ALICE), vers=4)
            client = Client4(d.port, session, service, f"{flavor}.{minor}", minor)
            client.keeps = False
            client.register(), client.reclaim_complete()
            root = client.path(d.exports["p" if flavor == "krb5p" else "all"])
            opened, fh = client.open(root, f"v4.{flavor}.{minor}", create=True)
            data = os.urandom(100000)
            what = f"4.{minor} {flavor}"
            t.equal(f"{what}: WRITE", client.last(n4.putfh(fh), n4.write(opened["stateid"], 0, data))["status"], n4.OK)
            read = client.last(n4.putfh(fh), n4.read(opened["stateid"], 0, len(data)))
            t.check(f"{what}: READ", read.get("data") == data, str(read)[:200])
            with control.connect(realm.path("control")) as s:
                shown = json.loads(control.ask(s, path="/v1/clients")[2])["clients"]
            t.equal(f"{what}: the principal in the list of clients", {c.get("principal") for c in shown}, {f"{ALICE}@{kdc.REALM}"})
            t.check(f"{what}: the flavour in the list of clients", any(flavor in c["security"] for c in shown), shown)
            t.equal(f"{what}: CLOSE", client.close_file(fh, opened["stateid"])["status"], n4.OK)
            client.close()


def test_again(t, d, realm):
    """A retransmission has another sequence number, and is answered from the cache under it."""
    with connect(d) as c:
        c.session = g.Session(c, realm.login(ALICE))
        root = c.mnt(d.exports["all"])[1]
        for flavor, c.service in SERVICES.items():
            xid, args = r.next_xid(), r.create_args(root, f"again.{flavor}", how=r.GUARDED)
            first = c.call(r.NFS, 3, r.CREATE, args, xid=xid)
            second = c.call(r.NFS, 3, r.CREATE, args, xid=xid)
            t.equal(f"{flavor}: the same answer", r.decode(r.CREATE, second), r.decode(r.CREATE, first))
            xid = r.next_xid()
            c.call(r.NFS, 3, r.REMOVE, r.diropargs(root, f"again.{flavor}"), xid=xid)
            c.session, alice = g.Session(c, realm.login(BOB)), c.session
            other = r.decode(r.REMOVE, c.call(r.NFS, 3, r.REMOVE, r.diropargs(root, f"again.{flavor}"), xid=xid))
            t.equal(f"{flavor}: another user's call with the same xid runs", other["status"], r.NOENT)
            c.session = alice


def test_keytab(t, d, realm, path):
    """The keys are replaced by others, by junk and by nothing, while a context lives, which does not need them."""
    with connect(d) as c:
        cache = realm.login(ALICE)
        c.session, c.service = g.Session(c, cache), g.PRIVACY
        root = c.mnt(d.exports["all"])[1]

        def replace(what, want, write, ticket=None):
            os.unlink(path)
            write()
            with connect(d) as other:
                got = refusal(g.Session, other, ticket or realm.login(ALICE))
            t.equal(f"a new context with {what}", got and got[0], want)
            t.equal(f"the living context with {what}", c.nfs(r.GETATTR, r.getattr_args(root))["status"], r.OK)

        def junk():
            with open(path, "wb") as f:
                f.write(os.urandom(300))

        def other_key():
            realm.admin(f"ktadd -k {path} nfs/localhost")

        replace("another key and a ticket of the old one", "GSS", other_key, cache)
        replace("another key and its ticket", None, other_key)
        replace("junk for keys", "GSS", junk)
        d.reload()
        t.equal("the living context after a reload", c.nfs(r.GETATTR, r.getattr_args(root))["status"], r.OK)
        replace("no keytab", "GSS", lambda: None)
        other_key()
        with connect(d) as other:
            t.equal("put right without a reload", refusal(g.Session, other, realm.login(ALICE)), None)


def test_end(t, d, realm):
    with connect(d) as c:
        c.session = session = g.Session(c, realm.login(ALICE))
        root = c.mnt(d.exports["all"])[1]
        with connect(d, session, g.PRIVACY) as other:
            t.equal("on another connection", other.nfs(r.GETATTR, r.getattr_args(root))["status"], r.OK)
        c.destroy()
        t.equal("after DESTROY", refusal(c.nfs, r.GETATTR, r.getattr_args(root)), ("AUTH_ERROR", g.CREDPROBLEM))
        c.session = None
        c.session = g.Session(c, realm.login(ALICE))
        t.equal("a new context", c.nfs(r.GETATTR, r.getattr_args(root))["status"], r.OK)
        d.reload()
        t.equal("after a reload", c.nfs(r.GETATTR, r.getattr_args(root))["status"], r.OK)
        session = c.session
    d.stop()
    d.start()
    with connect(d, session) as c:
        t.equal("after a restart", refusal(c.nfs, r.GETATTR, r.getattr_args(root)), ("AUTH_ERROR", g.CREDPROBLEM))


def skew(cache, seconds):
    """Has the client believe that its clock is off by so many seconds: the file of a cache begins with that offset."""
    with open(cache, "r+b") as f:
        head = f.read(16)
        if head[:8] != bytes.fromhex("0504000c00010008"):
            raise ValueError(f"a cache in another form: {head.hex()}")
        f.seek(8)
        f.write(seconds.to_bytes(4, "big", signed=True))


def test_skew(t, d, realm):
    cache = realm.login(ALICE)
    with connect(d) as c:
        g.Session(c, cache)  # the ticket, which the KDC would not give to such a clock either
    skew(cache, 600)
    with connect(d) as c:
        t.equal("a clock that is ten minutes ahead", (refusal(g.Session, c, cache) or ["nothing"])[0], "GSS")
    with open(os.path.join(d.top, "log"), errors="replace") as f:
        told = [line for line in f if "Clock skew too great" in line]
    t.check("the log says it, and what to do", told and "127.0.0.1: " in told[0] and "set the clocks" in told[0], str(told))
    skew(cache, 0)
    with connect(d) as c:
        c.session, c.service = g.Session(c, cache), g.PRIVACY
        t.equal("put right", c.nfs(r.GETATTR, r.getattr_args(c.mnt(d.exports["all"])[1]))["status"], r.OK)


def plant_replay_cache(realm):
    """A user of the server makes a file by the name of the library's default replay cache, in place of /var/tmp."""
    file = realm.path("krb5_0.rcache2")
    with open(file, "wb"):
        os.chown(file, UIDS[ALICE], UIDS[ALICE])


def test_replay_cache(t, d):
    """Contexts were accepted all the same: the server's replay cache is where no user can make a file."""
    info = os.stat(os.path.join(d.top, "state", "krb5-replays"))
    t.equal("owner and mode of the replay cache", (info.st_uid, info.st_mode & 0o777, info.st_size > 0), (0, 0o600, True))


def main():
    if kdc.missing():
        harness.skip_all(f"not installed: {', '.join(kdc.missing())}")
    t = harness.Count()
    every = "sec=krb5:krb5i:krb5p:sys,rw,insecure"
    with kdc.Realm() as realm:
        os.environ.update(realm.env)
        configured = settings(realm)
        plant_replay_cache(realm)
        with harness.Daemon({"all": every, "p": "sec=krb5p,rw,insecure", "mixed": "insecure,sec=krb5p,rw,sec=krb5:krb5i,ro"},
                            configured, env={**os.environ}) as d:
            for user in (ALICE, BOB):
                test_flavors(t, d, realm, user)
            test_users(t, d, realm)
            test_exports(t, d, realm)
            test_nfs4(t, d, realm)
            test_again(t, d, realm)
            test_skew(t, d, realm)
            test_keytab(t, d, realm, configured["gss.keytab"])
            test_end(t, d, realm)
            test_replay_cache(t, d)
            harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
