# SPDX-License-Identifier: BSD-2-Clause
"""RPCSEC_GSS (RFC 2203) over rpcclient's connections: a Session is a context with a server, and a GssConn calls under one.

Session.bend is called with each field of a call before it is sent, so that tests can send wrong ones.
"""
import struct

import gssapi
import rpcclient as r

NONE, INTEGRITY, PRIVACY = 1, 2, 3
DATA, INIT, CONTINUE, DESTROY = range(4)
CREDPROBLEM, CTXPROBLEM = 13, 14
GSS = 6


class Session:
    """A context for a user's credentials. Made over a connection, usable on others."""

    def __init__(self, conn, cache, service="nfs@localhost", prog=r.NFS, vers=3, **context):
        self.context, self.handle, self.seq = gssapi.Context(cache, service, **context), b"", 0
        self.prog, self.vers = prog, vers
        token, proc = self.context.step(), INIT
        while True:
            x, verf = self._establish(conn, proc, token)
            self.handle, self.major, self.minor, self.window = x.opaque(), x.u32(), x.u32(), x.u32()
            token = x.opaque()
            if self.major & 0xffff0000:
                raise r.Refused("GSS", self.major, self.minor)
            if token:
                token = self.context.step(token)
            if not self.major:
                break
            proc = CONTINUE
        if not self.context.complete:
            raise ValueError("the server thinks that the context is complete")
        self.context.verify(struct.pack(">I", self.window), verf)

    def _establish(self, conn, proc, token):
        xid = r.next_xid()
        cred = r.u32(GSS) + r.opaque(credential(proc, 0, NONE, self.handle))
        data = conn.exchange(r.call_message(self.prog, self.vers, 0, r.opaque(token), cred, xid))
        return accepted(data, xid)

    def number(self):
        self.seq += 1
        return self.seq

    def call(self, prog, vers, proc, args, service, xid, seq=None, gss_proc=DATA, bend=None):
        """The message of a call; bend(field, value) may replace each field: header parts, mic, body."""
        bend = bend or (lambda field, value: value)
        seq = self.number() if seq is None else seq
        cred = bend("cred", credential(gss_proc, seq, service, self.handle))
        head = struct.pack(">IIIIII", xid, 0, 2, prog, vers, proc) + r.u32(GSS) + r.opaque(cred)
        verf = r.u32(GSS) + r.opaque(bend("mic", self.context.sign(head)))
        return head + bend("verf", verf) + bend("body", self.protect(args, service if gss_proc == DATA else NONE, seq, bend))

    def protect(self, args, service, seq, bend=lambda field, value: value):
        if service == NONE:
            return args
        plain = bend("plain", r.u32(seq) + args)
        if service == INTEGRITY:
            return r.opaque(plain) + r.opaque(bend("args mic", self.context.sign(plain)))
        return r.opaque(bend("token", self.context.wrap(plain)))

    def results(self, data, xid, seq, service):
        """A cursor at the results of a reply, whose verifier is checked."""
        x, verf = accepted(data, xid)
        self.context.verify(r.u32(seq), verf)
        if service == NONE:
            return x
        if service == INTEGRITY:
            plain, mic = x.opaque(), x.opaque()
            self.context.verify(plain, mic)
        else:
            plain = self.context.unwrap(x.opaque())
        x.end()
        if plain[:4] != r.u32(seq):
            raise ValueError("the results have another sequence number")
        return r.In(plain[4:])


    def take_call(self, data):
        """(the message with AUTH_NONE, number, service, handle) of a call that the server has made under the context."""
        x = r.In(data)
        x.take(24)
        if x.u32() != GSS:
            raise ValueError("a call without RPCSEC_GSS")
        cred = r.In(x.opaque())
        if (cred.u32(), cred.u32()) != (1, DATA):
            raise ValueError("another version or procedure")
        seq, service, handle = cred.u32(), cred.u32(), cred.opaque()
        cred.end()
        signed = data[:x.at]
        if x.u32() != GSS:
            raise ValueError("a verifier without RPCSEC_GSS")
        self.context.verify(signed, x.opaque())
        args = data[x.at:]
        if service != NONE:
            x = r.In(args)
            plain = x.opaque()
            if service == INTEGRITY:
                self.context.verify(plain, x.opaque())
            else:
                plain = self.context.unwrap(plain)
            x.end()
            if plain[:4] != r.u32(seq):
                raise ValueError("the arguments have another sequence number")
            args = plain[4:]
        return data[:24] + bytes(16) + args, seq, service, handle

    def answer(self, reply, seq, service, bend=lambda field, value: value):
        """The reply to such a call, from one with an AUTH_NONE verifier. bend: as for call()."""
        verf = r.u32(GSS) + r.opaque(bend("mic", self.context.sign(r.u32(seq))))
        return reply[:12] + bend("verf", verf) + reply[20:24] + bend("body", self.protect(reply[24:], service, seq, bend))


def credential(proc, seq, service, handle, version=1):
    return r.u32(version) + r.u32(proc) + r.u32(seq) + r.u32(service) + r.opaque(handle)


def accepted(data, xid):
    """(cursor at the results, the verifier) of an accepted, successful reply."""
    x = r.In(data)
    if x.u32() != xid or x.u32() != 1 or x.u32() != 0:
        return r.reply_body(data, xid), b""
    flavor, verf = x.u32(), x.opaque()
    if x.u32() != 0:
        return r.reply_body(data, xid), b""
    return x, verf if flavor == GSS else b""


class GssConn(r.Conn):
    """A connection whose calls go under a session; session None: as r.Conn."""
    session, service = None, NONE

    def call(self, prog, vers, proc, args=b"", cred=r.ROOT, xid=None, seq=None, bend=None):
        if not self.session:
            return super().call(prog, vers, proc, args, cred, xid)
        xid = r.next_xid() if xid is None else xid
        seq = self.session.number() if seq is None else seq
        data = self.exchange(self.session.call(prog, vers, proc, args, self.service, xid, seq, bend=bend))
        return self.session.results(data, xid, seq, self.service)

    def nfs(self, proc, args=b"", cred=r.ROOT, xid=None):
        if not self.session:
            return super().nfs(proc, args, cred, xid)
        return r.decode(proc, self.call(r.NFS, 3, proc, args, xid=xid))

    def destroy(self):
        xid, seq = r.next_xid(), self.session.number()
        data = self.exchange(self.session.call(r.NFS, 3, 0, b"", NONE, xid, seq, DESTROY))
        self.session.results(data, xid, seq, NONE).end()
