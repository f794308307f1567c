# SPDX-License-Identifier: BSD-2-Clause
"""A small NFSv3 and MOUNT client over TCP (RFC 5531, RFC 1813) for tests.

Encoders return bytes, so that a test can cut and bend what they make; decoders return dictionaries with a
"status". Nothing here is clever on purpose: a call is a record, an answer is a record.
"""
import itertools
import os
import socket
import struct

NFS, MOUNT = 100003, 100005
(NULL, GETATTR, SETATTR, LOOKUP, ACCESS, READLINK, READ, WRITE, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK,
 READDIR, READDIRPLUS, FSSTAT, FSINFO, PATHCONF, COMMIT) = range(22)
NAMES = ("NULL GETATTR SETATTR LOOKUP ACCESS READLINK READ WRITE CREATE MKDIR SYMLINK MKNOD REMOVE RMDIR RENAME LINK READDIR "
         "READDIRPLUS FSSTAT FSINFO PATHCONF COMMIT").split()
MNT, DUMP, UMNT, UMNTALL, EXPORT = 1, 2, 3, 4, 5
MNT_NAMES = "NULL MNT DUMP UMNT UMNTALL EXPORT".split()

OK, PERM, NOENT, IO, NXIO, ACCES, EXIST, XDEV, NODEV, NOTDIR, ISDIR, INVAL, FBIG, NOSPC, ROFS, MLINK, NAMETOOLONG, NOTEMPTY, \
    DQUOT, STALE, REMOTE = 0, 1, 2, 5, 6, 13, 17, 18, 19, 20, 21, 22, 27, 28, 30, 31, 63, 66, 69, 70, 71
BADHANDLE, NOT_SYNC, BAD_COOKIE, NOTSUPP, TOOSMALL, SERVERFAULT, BADTYPE, JUKEBOX = range(10001, 10009)
REG, DIR, BLK, CHR, LNK, SOCK, FIFO = range(1, 8)
UNSTABLE, DATA_SYNC, FILE_SYNC = range(3)
UNCHECKED, GUARDED, EXCLUSIVE = range(3)

ACCEPT = ["SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"]

_xids = itertools.count(int.from_bytes(os.urandom(3), "big") << 6)


def next_xid():
    return next(_xids) & 0xffffffff


class Refused(Exception):
    """An RPC reply that is no success; .why is a word, .data what came with it."""

    def __init__(self, why, *data):
        super().__init__(why, *data)
        self.why, self.data = why, data


class Closed(Exception):
    """The server closed the connection."""


# --- encoding ---

def u32(v):
    return struct.pack(">I", v & 0xffffffff)


def u64(v):
    return struct.pack(">Q", v & 0xffffffffffffffff)


def opaque(b):
    return u32(len(b)) + b + bytes(-len(b) % 4)


def name(n):
    return opaque(n.encode() if isinstance(n, str) else n)


def sattr(mode=None, uid=None, gid=None, size=None, atime=None, mtime=None):
    """Times: None, "server", or (seconds, nanoseconds)."""
    out = b""
    for value, put in ((mode, u32), (uid, u32), (gid, u32), (size, u64)):
        out += u32(0) if value is None else u32(1) + put(value)
    for t in (atime, mtime):
        out += u32(0) if t is None else u32(1) if t == "server" else u32(2) + u32(t[0]) + u32(t[1])
    return out


def auth_none():
    return u32(0) + u32(0)


def auth_sys(uid=0, gid=0, gids=(), machine="client"):
    body = u32(0x1234) + name(machine) + u32(uid) + u32(gid) + u32(len(gids)) + b"".join(map(u32, gids))
    return u32(1) + opaque(body)


ROOT = auth_sys()


def call_message(prog, vers, proc, args=b"", cred=ROOT, xid=None, verf=b"\0" * 8, rpcvers=2):
    return struct.pack(">IIIIII", next_xid() if xid is None else xid, 0, rpcvers, prog, vers, proc) + cred + verf + args


def diropargs(fh, n):
    return opaque(fh) + name(n)


def getattr_args(fh):
    return opaque(fh)


readlink_args = fsstat_args = fsinfo_args = pathconf_args = getattr_args
lookup_args = remove_args = rmdir_args = diropargs


def setattr_args(fh, attrs, guard=None):
    return opaque(fh) + attrs + (u32(0) if guard is None else u32(1) + u32(guard[0]) + u32(guard[1]))


def access_args(fh, bits):
    return opaque(fh) + u32(bits)


def read_args(fh, offset, count):
    return opaque(fh) + u64(offset) + u32(count)


def write_args(fh, offset, data, stable=FILE_SYNC, count=None):
    return opaque(fh) + u64(offset) + u32(len(data) if count is None else count) + u32(stable) + opaque(data)


def create_args(fh, n, how=UNCHECKED, attrs=None, verf=b"\0" * 8):
    return diropargs(fh, n) + u32(how) + (verf if how == EXCLUSIVE else sattr(mode=0o644) if attrs is None else attrs)


def mkdir_args(fh, n, attrs=None):
    return diropargs(fh, n) + (sattr(mode=0o755) if attrs is None else attrs)


def symlink_args(fh, n, target, attrs=None):
    return diropargs(fh, n) + (sattr() if attrs is None else attrs) + name(target)


def mknod_args(fh, n, kind, attrs=None, dev=(0, 0)):
    out = diropargs(fh, n) + u32(kind)
    if kind in (BLK, CHR, SOCK, FIFO):
        out += sattr(mode=0o600) if attrs is None else attrs
    if kind in (BLK, CHR):
        out += u32(dev[0]) + u32(dev[1])
    return out


def rename_args(fh1, n1, fh2, n2):
    return diropargs(fh1, n1) + diropargs(fh2, n2)


def link_args(fh, dirfh, n):
    return opaque(fh) + diropargs(dirfh, n)


def readdir_args(fh, cookie=0, verf=b"\0" * 8, count=8192):
    return opaque(fh) + u64(cookie) + verf + u32(count)


def readdirplus_args(fh, cookie=0, verf=b"\0" * 8, dircount=8192, maxcount=32768):
    return opaque(fh) + u64(cookie) + verf + u32(dircount) + u32(maxcount)


def commit_args(fh, offset=0, count=0):
    return opaque(fh) + u64(offset) + u32(count)


# --- decoding ---

class In:
    """A cursor over one reply; reading past its end is an error of the server."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if self.at + n > len(self.data):
            raise ValueError(f"the reply is cut short: {n} bytes wanted at {self.at} of {len(self.data)}")
        out = self.data[self.at:self.at + n]
        self.at += n
        return out

    def u32(self):
        return struct.unpack(">I", self.take(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.take(8))[0]

    def flag(self):
        v = self.u32()
        if v > 1:
            raise ValueError(f"a boolean of {v}")
        return v == 1

    def opaque(self):
        n = self.u32()
        out = self.take(n)
        if self.take(-n % 4).strip(b"\0"):
            raise ValueError("padding that is not zero")
        return out

    def end(self):
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes too many in the reply")


FATTR = "type mode nlink uid gid size used rdev1 rdev2 fsid fileid".split()


def get_fattr(x):
    a = dict(zip(FATTR, struct.unpack(">IIIIIQQIIQQ", x.take(60))))
    for t in ("atime", "mtime", "ctime"):
        a[t] = (x.u32(), x.u32())
    return a


def get_post(x):
    return get_fattr(x) if x.flag() else None


def get_wcc(x):
    before = (x.u64(), (x.u32(), x.u32()), (x.u32(), x.u32())) if x.flag() else None
    return {"before": before, "after": get_post(x)}


def get_post_fh(x):
    return x.opaque() if x.flag() else None


def _dirlist(x, r, plus):
    r["verf"], r["entries"] = x.take(8), []
    while x.flag():
        e = {"fileid": x.u64(), "name": x.opaque(), "cookie": x.u64()}
        if plus:
            e["attr"], e["fh"] = get_post(x), get_post_fh(x)
        r["entries"].append(e)
    r["eof"] = x.flag()


def _post(x, r):
    r["attr"] = get_post(x)


def _wcc(x, r):
    r["wcc"] = get_wcc(x)


def _made(x, r):
    r["fh"], r["attr"] = get_post_fh(x), get_post(x)
    _wcc(x, r)


def _getattr(x, r):
    r["attr"] = get_fattr(x)


def _lookup(x, r):
    r["fh"], r["attr"], r["dir"] = x.opaque(), get_post(x), get_post(x)


def _access(x, r):
    r["attr"], r["access"] = get_post(x), x.u32()


def _readlink(x, r):
    r["attr"], r["target"] = get_post(x), x.opaque()


def _read(x, r):
    r["attr"], r["count"], r["eof"], r["data"] = get_post(x), x.u32(), x.flag(), x.opaque()


def _write(x, r):
    r["wcc"], r["count"], r["stable"], r["verf"] = get_wcc(x), x.u32(), x.u32(), x.take(8)


def _rename(x, r):
    r["from"], r["to"] = get_wcc(x), get_wcc(x)


def _link(x, r):
    r["attr"] = get_post(x)
    _wcc(x, r)


def _readdir(x, r):
    _post(x, r)
    _dirlist(x, r, False)


def _readdirplus(x, r):
    _post(x, r)
    _dirlist(x, r, True)


def _fsstat(x, r):
    _post(x, r)
    r.update(zip("tbytes fbytes abytes tfiles ffiles afiles".split(), struct.unpack(">6Q", x.take(48))), invarsec=x.u32())


def _fsinfo(x, r):
    _post(x, r)
    r.update(zip("rtmax rtpref rtmult wtmax wtpref wtmult dtpref".split(), struct.unpack(">7I", x.take(28))),
             maxfilesize=x.u64(), time_delta=(x.u32(), x.u32()), properties=x.u32())


def _pathconf(x, r):
    _post(x, r)
    r.update(linkmax=x.u32(), name_max=x.u32(), no_trunc=x.flag(), chown_restricted=x.flag(), case_insensitive=x.flag(),
             case_preserving=x.flag())


def _commit(x, r):
    _wcc(x, r)
    r["verf"] = x.take(8)


def _nothing(x, r):
    pass


# For each procedure: the results when it succeeds, and when it fails.
RESULTS = {
    GETATTR: (_getattr, _nothing), SETATTR: (_wcc, _wcc), LOOKUP: (_lookup, _post), ACCESS: (_access, _post),
    READLINK: (_readlink, _post), READ: (_read, _post), WRITE: (_write, _wcc), CREATE: (_made, _wcc), MKDIR: (_made, _wcc),
    SYMLINK: (_made, _wcc), MKNOD: (_made, _wcc), REMOVE: (_wcc, _wcc), RMDIR: (_wcc, _wcc), RENAME: (_rename, _rename),
    LINK: (_link, _link), READDIR: (_readdir, _post), READDIRPLUS: (_readdirplus, _post), FSSTAT: (_fsstat, _post),
    FSINFO: (_fsinfo, _post), PATHCONF: (_pathconf, _post), COMMIT: (_commit, _wcc),
}


def decode(proc, x):
    r = {"status": x.u32()}
    RESULTS[proc][0 if r["status"] == OK else 1](x, r)
    x.end()
    return r


def reply_body(data, xid=None):
    """The cursor at a successful reply's results; Refused for any other."""
    x = In(data)
    got, kind = x.u32(), x.u32()
    if kind != 1 or (xid is not None and got != xid):
        raise ValueError(f"not the reply to {xid}: {data[:16].hex()}")
    if x.u32() == 1:  # MSG_DENIED
        if x.u32() == 0:
            raise Refused("RPC_MISMATCH", x.u32(), x.u32())
        raise Refused("AUTH_ERROR", x.u32())
    x.u32()
    x.opaque()
    stat = x.u32()
    if stat == 0:
        return x
    if stat == 2:
        raise Refused("PROG_MISMATCH", x.u32(), x.u32())
    raise Refused(ACCEPT[stat] if stat < len(ACCEPT) else f"accept_stat {stat}")


# --- connections ---

class Conn:
    on_call = None  # takes a call of the server, as bytes, and returns the reply to send, or None

    def __init__(self, port, host="127.0.0.1", timeout=60, source=None):
        # A port that connect() picks may be another program's too, with another peer. One that was bound is nobody else's,
        # so again() can have it once more.
        ipv6 = ":" in host
        self.s = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET)
        try:
            self.s.settimeout(timeout)
            if source and source[1]:
                self.s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.s.bind(source or ("::" if ipv6 else "", 0))
            self.s.connect((host, port))
            if self.s.getsockname() == self.s.getpeername():  # nobody listens, and it has met itself
                raise ConnectionRefusedError(f"no server at port {port}")
        except BaseException:
            self.s.close()
            raise
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        self.s.close()

    def again(self):
        """A new connection from the same port, as Linux's client makes it when it has lost one. The old one is reset."""
        where, timeout, source = self.s.getpeername(), self.s.gettimeout(), self.s.getsockname()
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with socket.socket(self.s.family) as held:  # keeps other programs off the port until the new connection has it
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(source)
            self.s.close()
            return Conn(where[1], where[0], timeout, source)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send_raw(self, data):
        try:
            self.s.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed() from None

    def send(self, message, fragment=None):
        step = fragment or max(len(message), 1)
        parts = [message[i:i + step] for i in range(0, len(message), step)] or [b""]
        self.send_raw(b"".join(u32(len(p) | (0x80000000 if i == len(parts) - 1 else 0)) + p for i, p in enumerate(parts)))

    def _take(self, n):
        out = bytearray()
        while len(out) < n:
            try:
                more = self.s.recv(min(n - len(out), 1 << 20))
            except ConnectionResetError:
                raise Closed() from None
            if not more:
                raise Closed()
            out += more
        return bytes(out)

    def recv(self):
        out, last = b"", False
        while not last:
            mark = struct.unpack(">I", self._take(4))[0]
            last = bool(mark & 0x80000000)
            out += self._take(mark & 0x7fffffff)
        return out

    def take_call(self):
        """Reads a message; True if it was a call of the server, which on_call has taken. Else False, and the message."""
        data = self.recv()
        if self.on_call is None or data[4:8] != bytes(4):
            return False, data
        answer = self.on_call(data)
        if answer is not None:
            self.reply(answer)
        return True, None

    def reply(self, message):
        """Sends a reply to a call of the server."""
        self.send(message)

    def exchange(self, message, fragment=None):
        """The raw reply to a raw message."""
        self.send(message, fragment)
        while True:
            was_call, data = self.take_call()
            if not was_call:
                return data

    def call(self, prog, vers, proc, args=b"", cred=ROOT, xid=None):
        xid = next_xid() if xid is None else xid
        return reply_body(self.exchange(call_message(prog, vers, proc, args, cred, xid)), xid)

    def nfs(self, proc, args=b"", cred=ROOT, xid=None):
        """A decoded NFS reply."""
        x = self.call(NFS, 3, proc, args, cred, xid)
        if proc == NULL:
            return x.end()
        return decode(proc, x)

    def mnt(self, path, vers=3, cred=ROOT):
        """(status, handle, flavours)."""
        x = self.call(MOUNT, vers, MNT, name(path), cred)
        status = x.u32()
        if status:
            x.end()
            return status, None, []
        if vers < 3:
            fh, flavours = x.take(32), []
        else:
            fh, flavours = x.opaque(), [x.u32() for _ in range(x.u32())]
        x.end()
        return status, fh, flavours
