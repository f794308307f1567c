# SPDX-License-Identifier: BSD-2-Clause
"""The client's side of libgssapi_krb5 (RFC 2744), by ctypes: contexts to a service, MICs, encrypted messages."""
import ctypes
import ctypes.util
import struct

CONTINUE_NEEDED = 1
PRIVACY = 1
REPLAY, SEQUENCE, MUTUAL = 4, 8, 2


class Buffer(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_void_p)]

    @classmethod
    def of(cls, data):
        b = cls(len(data), ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p))
        b.keep = data
        return b

    def take(self):
        data = ctypes.string_at(self.value, self.length) if self.length else b""
        _lib().gss_release_buffer(ctypes.byref(ctypes.c_uint32()), ctypes.byref(self))
        return data


class Oid(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint32), ("elements", ctypes.c_void_p)]


class Pair(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class Store(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint32), ("elements", ctypes.POINTER(Pair))]


def oid(data):
    o = Oid(len(data), ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p))
    o.keep = data
    return o


HOSTBASED = oid(bytes.fromhex("2a864886f71201020104"))
KRB5 = oid(bytes.fromhex("2a864886f712010202"))
_loaded = []


def _lib():
    if not _loaded:
        _loaded.append(ctypes.CDLL(ctypes.util.find_library("gssapi_krb5") or "libgssapi_krb5.so.2"))
    return _loaded[0]


class Failed(Exception):
    pass


def _check(what, major, minor):
    if not major & 0xffff0000:
        return major
    words = []
    for code, kind in ((major, 1), (minor, 2)):
        text, more, ignored = Buffer(), ctypes.c_uint32(), ctypes.c_uint32()
        _lib().gss_display_status(ctypes.byref(ignored), ctypes.c_uint32(code), kind, None, ctypes.byref(more), ctypes.byref(text))
        words.append(text.take().decode(errors="replace"))
    raise Failed(f"{what}: {': '.join(words)}")


class Context:
    """An initiator's context; cache: path of the user's credentials. Feed step() with the acceptor's tokens."""

    def __init__(self, cache, service="nfs@localhost", flags=MUTUAL | REPLAY | SEQUENCE):
        self.flags = flags
        self.ctx, self.cred, self.name = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.complete = False
        minor = ctypes.c_uint32()
        pair = Pair(b"ccache", cache.encode())
        store = Store(1, ctypes.pointer(pair))
        _check("gss_acquire_cred_from", _lib().gss_acquire_cred_from(
            ctypes.byref(minor), None, 0xffffffff, None, 1, ctypes.byref(store), ctypes.byref(self.cred), None, None), minor.value)
        target = Buffer.of(service.encode())
        _check("gss_import_name", _lib().gss_import_name(
            ctypes.byref(minor), ctypes.byref(target), ctypes.byref(HOSTBASED), ctypes.byref(self.name)), minor.value)

    def step(self, token=b""):
        minor, out, given = ctypes.c_uint32(), Buffer(), Buffer.of(token)
        major = _check("gss_init_sec_context", _lib().gss_init_sec_context(
            ctypes.byref(minor), self.cred, ctypes.byref(self.ctx), self.name, ctypes.byref(KRB5),
            ctypes.c_uint32(self.flags), 0, None, ctypes.byref(given), None, ctypes.byref(out), None, None), minor.value)
        self.complete = not major & CONTINUE_NEEDED
        return out.take()

    def sign(self, data):
        minor, out, given = ctypes.c_uint32(), Buffer(), Buffer.of(data)
        _check("gss_get_mic", _lib().gss_get_mic(ctypes.byref(minor), self.ctx, 0, ctypes.byref(given), ctypes.byref(out)), minor.value)
        return out.take()

    def verify(self, data, mic):
        minor, given, m = ctypes.c_uint32(), Buffer.of(data), Buffer.of(mic)
        _check("gss_verify_mic", _lib().gss_verify_mic(ctypes.byref(minor), self.ctx, ctypes.byref(given), ctypes.byref(m), None), minor.value)

    def wrap(self, data):
        minor, out, given = ctypes.c_uint32(), Buffer(), Buffer.of(data)
        _check("gss_wrap", _lib().gss_wrap(ctypes.byref(minor), self.ctx, PRIVACY, 0, ctypes.byref(given), None, ctypes.byref(out)), minor.value)
        return out.take()

    def unwrap(self, token):
        minor, out, given, secret = ctypes.c_uint32(), Buffer(), Buffer.of(token), ctypes.c_int()
        _check("gss_unwrap", _lib().gss_unwrap(
            ctypes.byref(minor), self.ctx, ctypes.byref(given), ctypes.byref(out), ctypes.byref(secret), None), minor.value)
        if not secret.value:
            raise Failed("gss_unwrap: the message was not encrypted")
        return out.take()


def word(n):
    return struct.pack(">I", n)


class Acceptor(Context):
    """An acceptor's context, by the keys of a keytab."""

    def __init__(self, keytab):
        self.ctx, self.cred, self.complete = ctypes.c_void_p(), ctypes.c_void_p(), False
        minor = ctypes.c_uint32()
        pair = Pair(b"keytab", keytab.encode())
        store = Store(1, ctypes.pointer(pair))
        _check("gss_acquire_cred_from", _lib().gss_acquire_cred_from(
            ctypes.byref(minor), None, 0xffffffff, None, 2, ctypes.byref(store), ctypes.byref(self.cred), None, None), minor.value)

    def step(self, token=b""):
        minor, out, given = ctypes.c_uint32(), Buffer(), Buffer.of(token)
        major = _check("gss_accept_sec_context", _lib().gss_accept_sec_context(
            ctypes.byref(minor), ctypes.byref(self.ctx), self.cred, ctypes.byref(given), None, None, None, ctypes.byref(out), None, None,
            None), minor.value)
        self.complete = not major & CONTINUE_NEEDED
        return out.take()
