# SPDX-License-Identifier: BSD-2-Clause
"""RPC with TLS (RFC 9289) as a client: certificates by the openssl command, and connections by Python's ssl."""
import os
import select
import socket
import ssl
import struct
import subprocess
import tempfile

import nfs4client as n4
import rpcclient as r

AUTH_TLS = r.u32(7) + r.u32(0)


class Authority:
    """A CA in a folder of its own."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                      f"/CN={name}", "-keyout", self.path("key"), "-out", self.path("crt"))

    def path(self, kind, of=None):
        return os.path.join(self.folder, f"{of or self.name}.{kind}")

    @staticmethod
    def _openssl(*words):
        subprocess.run(["openssl", *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def issue(self, name, expired=False, algorithm=("rsa:2048",), names="DNS:localhost"):
        """(certificate, key) with those alternative names."""
        crt, key, csr = (self.path(k, name) for k in ("crt", "key", "csr"))
        self._openssl("req", "-newkey", *algorithm, "-nodes", "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}",
                      "-keyout", key, "-out", csr)
        if expired:  # "openssl x509" has no dates in this version
            self._ca(csr, crt)
        else:
            self._openssl("x509", "-req", "-in", csr, "-CA", self.path("crt"), "-CAkey", self.path("key"), "-CAcreateserial", "-days", "2",
                          "-copy_extensions", "copy", "-out", crt)
        os.chmod(key, 0o600)
        return crt, key

    @staticmethod
    def _configure(d):
        open(f"{d}/index", "w").close()
        with open(f"{d}/conf", "w") as f:
            f.write(f"[ca]\ndefault_ca=d\n[d]\nnew_certs_dir={d}\ndatabase={d}/index\nserial={d}/serial\ndefault_md=sha256\n"
                    "policy=p\nunique_subject=no\n[p]\ncommonName=supplied\n")

    def revoke(self, name, *certificates):
        """The path of a list that revokes them."""
        path = os.path.join(self.folder, name)
        with tempfile.TemporaryDirectory(dir=self.folder) as d:
            self._configure(d)
            by = ("-config", f"{d}/conf", "-cert", self.path("crt"), "-keyfile", self.path("key"))
            for crt in certificates:
                self._openssl("ca", *by, "-revoke", crt)
            self._openssl("ca", *by, "-gencrl", "-crldays", "2", "-out", path)
        return path

    def _ca(self, csr, crt):
        with tempfile.TemporaryDirectory(dir=self.folder) as d:
            self._configure(d)
            self._openssl("ca", "-batch", "-config", f"{d}/conf", "-rand_serial", "-in", csr, "-out", crt, "-cert", self.path("crt"),
                          "-keyfile", self.path("key"), "-startdate", "20200101000000Z", "-enddate", "20200102000000Z", "-notext")


def context(ca=None, cert=None, alpn=("sunrpc",), highest=ssl.TLSVersion.TLSv1_3):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.minimum_version, c.maximum_version = ssl.TLSVersion.TLSv1_2, highest
    if ca:
        c.load_verify_locations(ca)
    else:
        c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    if cert:
        c.load_cert_chain(*cert)
    if alpn:
        c.set_alpn_protocols(list(alpn))
    return c


def probe(conn, proc=0, cred=AUTH_TLS):
    """The verifier of the answer to a question for TLS."""
    xid = r.next_xid()
    conn.send(r.call_message(r.NFS, 3, proc, cred=cred, xid=xid))
    reply = conn.recv()
    r.reply_body(reply, xid)
    flavor, size = struct.unpack(">II", reply[12:20])
    return flavor, reply[20:20 + size]


class TlsConn(r.Conn):
    def __init__(self, port, ctx, timeout=60):
        super().__init__(port, timeout=timeout)
        try:
            if probe(self) != (0, b"STARTTLS"):
                raise r.Closed()
            self.s = ctx.wrap_socket(self.s, server_hostname="localhost")
        except BaseException:
            self.s.close()
            raise

    def _take(self, n):
        try:
            return super()._take(n)
        except ssl.SSLError:
            raise r.Closed() from None


class TlsClient4(n4.Client):
    def __init__(self, port, ctx, owner, minor=1):
        self.ctx = ctx
        super().__init__(port, owner, minor)

    def _connect(self):
        self.conn = TlsConn(self.port, self.ctx)
        if self.back:
            self.conn.on_call = self._on_call


class Relay:
    """A port that leads to the server behind a question for TLS, for programs that know only TLS. Takes one connection."""

    def __init__(self, port):
        self.server = r.Conn(port)
        if probe(self.server) != (0, b"STARTTLS"):
            raise r.Closed()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        peer, _ = self.listener.accept()
        pairs = {peer: self.server.s, self.server.s: peer}
        while True:
            for s in select.select(list(pairs), [], [], 30)[0] or [None]:
                data = s.recv(65536) if s else b""
                if not data:
                    peer.close()
                    self.server.close()
                    self.listener.close()
                    return
                pairs[s].sendall(data)
