#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files of TLS that are wrong, at a start and at a reload; revoked certificates, tls.require_alpn, and what status, connections and
metrics say."""
import datetime
import json
import os
import shutil
import ssl
import subprocess
import tempfile

import control
import harness
import rpcclient as r
import tls
import tlsclient as t
from scrape import scrape, value

EC = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")


class Place:
    """The files that the settings name. Each wrong one is put there by a function and taken away again."""

    def __init__(self, folder):
        self.folder = folder
        self.ca = t.Authority(folder, "ca")
        self.other = t.Authority(folder, "other")
        self.good = {"certificate": self.ca.issue("server", algorithm=EC)[0], "key": self.ca.path("key", "server"),
                     "ca": self.ca.path("crt"), "crl": self.ca.revoke("none.crl")}
        self.now = {what: os.path.join(folder, f"now-{what}") for what in self.good}
        self.restore()

    def restore(self):
        for what, path in self.good.items():
            shutil.copy(path, self.now[what])
            os.chmod(self.now[what], 0o600)

    def settings(self, **more):
        return {f"tls.{what}": path for what, path in self.now.items()} | {f"tls.{k}": v for k, v in more.items()}

    def write(self, what, text):
        with open(self.now[what], "w", encoding="ascii") as f:
            f.write(text)

    def copy(self, what, path):
        shutil.copy(path, self.now[what])
        os.chmod(self.now[what], 0o600)

    def encrypt(self):
        subprocess.run(["openssl", "pkey", "-in", self.good["key"], "-aes256", "-passout", "pass:secret", "-out", self.now["key"]], check=True)


def faults(p):
    """(name, function that makes it, setting, what is wrong, remedy)."""
    gone = "cannot be read: No such file or directory"
    return [
        ("no certificate's file", lambda: os.unlink(p.now["certificate"]), "tls.certificate", gone, "correct the path"),
        ("junk for a certificate", lambda: p.write("certificate", "junk\n"), "tls.certificate", "has no certificate", "give a PEM file"),
        ("no key's file", lambda: os.unlink(p.now["key"]), "tls.key", gone, "correct the path"),
        ("junk for a key", lambda: p.write("key", "junk\n"), "tls.key", "has no usable private key", "give a PEM file"),
        ("the key of another certificate", lambda: p.copy("key", p.other.issue("x", algorithm=EC)[1]), "tls.key", "the certificate",
         "that tls.certificate was made for"),
        ("a key with a password", p.encrypt, "tls.key", "has a password", "openssl pkey -in"),
        ("a key that others may read", lambda: os.chmod(p.now["key"], 0o604), "tls.key", "everybody may read or write", "chmod 600"),
        ("a key that others may write", lambda: os.chmod(p.now["key"], 0o602), "tls.key", "everybody may read or write", "chmod 600"),
        ("no CA's file", lambda: os.unlink(p.now["ca"]), "tls.ca", gone, "correct the path"),
        ("junk for a CA", lambda: p.write("ca", "junk\n"), "tls.ca", "has no certificate of a CA", "give a PEM file"),
        ("no list's file", lambda: os.unlink(p.now["crl"]), "tls.crl", gone, "correct the path"),
        ("junk for a list", lambda: p.write("crl", "junk\n"), "tls.crl", "has no certificate revocation list", "give a PEM file"),
    ]


def says(count, what, log, p, setting, wrong, remedy):
    line = next((one for one in log.splitlines() if setting + ":" in one), "")
    path = p.now[setting.split(".")[1]]
    count.check(f"{what}: the message names the setting, the file, the fault and the remedy", path in line and wrong in line and remedy in line, log[-600:])


def at_start(count, p):
    for what, make, setting, wrong, remedy in faults(p):
        make()
        d = harness.Daemon({"any": "rw"}, p.settings())
        try:
            d.start()
            count.check(f"a start with {what} fails", False)
        except SystemExit:
            pass
        says(count, f"start with {what}", d.read_log(), p, setting, wrong, remedy)
        d.__exit__()
        p.restore()
    with harness.Daemon({"any": "rw"}, {"tls.key": p.good["key"]}) as d:
        count.check("a key without a certificate: a warning", "TLS is not offered: tls.key or tls.ca is set" in d.read_log())
    os.chmod(p.now["key"], 0o640)
    with harness.Daemon({"any": "rw"}, p.settings()) as d:
        count.equal("a key for root and a group is taken", tls.outcome(tls.works, d.port, t.context(p.ca.path("crt"))), "works")
    p.restore()


def serial(d, ctx):
    with t.TlsConn(d.port, ctx) as c:
        return c.s.getpeercert()["serialNumber"]


def at_reload(count, d, p):
    ctx = t.context(p.ca.path("crt"), p.ca.issue("reader", algorithm=EC))
    first = serial(d, ctx)
    with t.TlsConn(d.port, ctx) as c:
        for what, make, setting, wrong, remedy in faults(p):
            make()
            log = d.reload()
            says(count, f"reload with {what}", log, p, setting, wrong, remedy)
            count.check(f"reload with {what}: the old one stays", "the old TLS certificate stays in use" in log and serial(d, ctx) == first)
            p.restore()
        count.equal("a connection lives through all that", tls.outcome(c.nfs, r.NULL), None)
    p.copy("certificate", p.ca.issue("next", algorithm=EC)[0])
    p.copy("key", p.ca.path("key", "next"))
    d.reload()
    count.check("the new certificate is used", serial(d, ctx) != first)
    count.check("and its end is told in time", d.wait_log("expires in 1 days: write a new one"))
    p.restore()
    d.reload()


def revoked(count, d, p):
    good, bad = p.ca.issue("kept", algorithm=EC), p.ca.issue("lost", algorithm=EC)
    contexts = [t.context(p.ca.path("crt"), c) for c in (good, bad)]
    with t.TlsConn(d.port, contexts[1]) as c:
        p.copy("crl", p.ca.revoke("lost.crl", bad[0]))
        before = value(scrape(d), "ringnfs_tls_handshakes_failed_total", reason="certificate")
        d.reload()
        count.equal("a certificate that is not revoked", tls.outcome(tls.works, d.port, contexts[0]), "works")
        count.equal("a revoked one", tls.outcome(tls.works, d.port, contexts[1]), "closed")
        count.equal("which is counted", value(scrape(d), "ringnfs_tls_handshakes_failed_total", reason="certificate"), before + 1)
        count.equal("its session of before goes on", tls.outcome(c.nfs, r.NULL), None)
    p.copy("crl", p.other.revoke("foreign.crl"))
    d.reload()
    count.equal("without a list of the CA nobody is let in", tls.outcome(tls.works, d.port, contexts[0]), "closed")
    count.equal("but those without a certificate", tls.outcome(tls.works, d.port, t.context(p.ca.path("crt"))), "works")
    p.restore()
    d.reload()


def counted(count, d, what, reason, go):
    """One more failure of that reason, and of no other."""
    def failures():
        values = scrape(d)
        return {k[1][0][1]: v for k, v in values.items() if k[0] == "ringnfs_tls_handshakes_failed_total"}

    before = failures()
    go()
    after = failures()
    for _ in range(100):
        if after != before:
            break
        after = failures()
    count.equal(f"counted for {what}", {k: v - before[k] for k, v in after.items() if v != before[k]}, {reason: 1})


def reasons(count, d, p):
    trusting = p.ca.path("crt")

    def tries(ctx):
        return lambda: count.equal("which fails", tls.outcome(tls.works, d.port, ctx), "closed")

    def junk(data):
        with d.connect() as c:
            t.probe(c)
            c.send_raw(data)
            tls.half_close(c.s)
            tls.closed(c.s)

    counted(count, d, "TLS 1.2", "version", tries(t.context(trusting, highest=ssl.TLSVersion.TLSv1_2)))
    counted(count, d, "another protocol", "protocol", tries(t.context(trusting, alpn=("http/1.1",))))
    counted(count, d, "a certificate of another CA", "certificate", tries(t.context(trusting, p.other.issue("alien", algorithm=EC))))
    counted(count, d, "a client that does not trust the server", "refused_by_client", tries(t.context(p.other.path("crt"))))
    counted(count, d, "a plain request", "message", lambda: junk(b"GET / HTTP/1.1\r\n\r\n"))
    counted(count, d, "a client that goes", "closed", lambda: junk(b""))


def ctl(d, *words):
    return subprocess.run([control.BINARY, "--socket", d.path, *words], capture_output=True, text=True, check=True, timeout=60).stdout


def shown(count, d, p):
    client = p.ca.issue("seen client", algorithm=EC)
    with open(p.good["certificate"], encoding="ascii") as f:
        expires = ssl.cert_time_to_seconds(ssl._ssl._test_decode_cert(f.name)["notAfter"])  # pylint: disable=protected-access
    with t.TlsConn(d.port, t.context(p.ca.path("crt"), client)) as c, t.TlsConn(d.port, t.context(p.ca.path("crt"), alpn=())) as n, d.connect() as plain:
        for one in (c, n, plain):
            one.nfs(r.NULL)
        rows = {row["port"]: row for row in json.loads(ctl(d, "--json", "connections"))["connections"]}
        row, bare, clear = (rows[one.s.getsockname()[1]] for one in (c, n, plain))
        count.equal("connections: mutual TLS", {k: row.get(k) for k in ("tls", "encrypted_by", "tls_version", "cipher", "alpn", "subject")},
                    {"tls": "mtls", "encrypted_by": "server", "tls_version": "TLSv1.3", "cipher": c.s.cipher()[0], "alpn": "sunrpc",
                     "subject": "CN=seen client"})
        count.equal("connections: TLS without a name", (bare["tls"], bare["alpn"], "subject" in bare), ("tls", None, False))
        count.check("connections: plain", not {"tls", "cipher", "subject"} & set(clear), clear)
        count.check("no map, no user; NULL calls have no flavour", row["security"] == [] and "user" not in row, row)
        text = ctl(d, "connections")
        count.check("the table has it", "TLSv1.3 " + c.s.cipher()[0] + " sunrpc" in text and "CN=seen client" in text and "no-alpn" in text, text)
    status = json.loads(ctl(d, "--json", "status"))["tls"]
    when = datetime.datetime.fromtimestamp(expires, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    count.equal("status: the certificate", [status[k] for k in ("subject", "expires", "days_left", "verifies_clients", "kernel")],
                ["CN=server", when, 1, True, False])
    count.check("status: handshakes", status["handshakes"]["mtls"] > 0 and status["handshakes"]["failed"]["certificate"] > 0, status)
    text = ctl(d, "status")
    count.check("status as text", f"CN=server, valid until {when}, 1 days" in text and "encrypted by the server" in text and "certificate " in text, text)
    count.equal("the metric of the date", value(scrape(d), "ringnfs_tls_certificate_expiry_timestamp_seconds"), expires)


def companions(count, d, ctx):
    """NLM and RQUOTA have xprtsec= as well, and NSM answers within TLS."""
    with t.TlsConn(d.port, ctx) as c, d.connect() as plain:
        fh = d.root(c, "enc")
        count.equal("a plain RQUOTA", plain.call(100011, 1, 1, r.name(d.exports["enc"]) + r.u32(0)).u32(), 3)
        made = c.nfs(r.CREATE, r.create_args(fh, "locked"))["fh"]
        lock = r.opaque(b"cookie") + r.u32(1) + r.u32(1) + r.name("client") + r.opaque(made) + r.opaque(b"owner") + r.u32(1) + r.u64(0) + r.u64(9)
        test = r.opaque(b"cookie") + r.u32(1) + r.name("client") + r.opaque(made) + r.opaque(b"other") + r.u32(2) + r.u64(0) + r.u64(9)
        unlock = r.opaque(b"cookie") + r.name("client") + r.opaque(made) + r.opaque(b"owner") + r.u32(1) + r.u64(0) + r.u64(9)

        def nlm(conn, proc, args):
            x = conn.call(100021, 4, proc, args)
            x.opaque()
            return x.u32()

        full = lock + r.u32(0) + r.u32(1)
        count.equal("NLM_LOCK within TLS", nlm(c, 2, full), 0)
        count.check("a plain NLM_TEST is not told of it", tls.outcome(nlm, plain, 1, test) != 1, tls.outcome(nlm, plain, 1, test))
        count.check("a plain NLM_UNLOCK does not take it", tls.outcome(nlm, plain, 4, unlock) != 0 or nlm(c, 1, test) == 1)
        count.equal("the lock is there for others within TLS", nlm(c, 1, test), 1)
        count.equal("NLM_UNLOCK within TLS", nlm(c, 4, unlock), 0)
        count.equal("NSM within TLS: NULL", tls.outcome(c.call, 100024, 1, 0).__class__.__name__, "In")


def recalled(count, d, ctx):
    """A delegation is called back within TLS, since the session's connection is the way to the client."""
    class Called(t.TlsClient4):
        back = True

    for minor in (1, 2):
        c = Called(d.port, ctx, f"holder-{minor}", minor)
        c.register()
        c.reclaim_complete()
        count.check(f"a 4.{minor} client with a back channel is called within TLS", c.await_callback() is not None)
        c.close()


def run(count, folder):
    p = Place(folder)
    at_start(count, p)
    with control.Control(p.settings(), exports={"any": "rw,insecure", "enc": "rw,insecure,no_root_squash,xprtsec=tls:mtls"}) as d:
        at_reload(count, d, p)
        revoked(count, d, p)
        reasons(count, d, p)
        shown(count, d, p)
        companions(count, d, t.context(p.ca.path("crt")))
        recalled(count, d, t.context(p.ca.path("crt")))
        harness.finish(count, d)
    with harness.Daemon({"any": "rw"}, p.settings(require_alpn="yes")) as d:
        for what, alpn, want in (("none", (), "closed"), ("another", ("http/1.1",), "closed"), ("sunrpc", ("sunrpc",), "works"),
                                 ("sunrpc among others", ("h2", "sunrpc"), "works")):
            count.equal(f"tls.require_alpn and {what}", tls.outcome(tls.works, d.port, t.context(p.ca.path("crt"), alpn=alpn)), want)


def main():
    count = harness.Count()
    folder = tempfile.mkdtemp(prefix="ringnfs-tls-files-")
    try:
        run(count, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    harness.result(count)


if __name__ == "__main__":
    main()
