#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""NLM versions 1, 3 and 4 by messages: procedures that end in _MSG are answered by a call of the server to the sender's address, whose
port its rpcbind tells. Locks are granted by the transport and the procedure that the client uses. Silent and lying hosts."""
import collections
import select
import socket
import struct
import subprocess
import threading
import time

import harness
import nlm_recovery as base
import rpcclient as r
from harness import Count, Daemon
from nlm_recovery import BLOCKED, DENIED, GRANTED, NLM, ONE, PMAP, SERVER, TWO, Client, make_file, wait_for
from rpcclient import In, opaque, u32, u64

THREE, FOUR = "127.0.0.4", "127.0.0.5"
SERVER6, SIX, SILENT6 = "fd00::1", "fd00::2", "fd00::3"
TEST, LOCK, CANCEL, UNLOCK, GRANT = range(1, 6)
MSG, RES = 5, 10  # added to these
NM_LOCK, FREE_ALL = 22, 23
NOLOCKS, GRACE, STALE, FBIG, FAILED = 2, 4, 7, 8, 9
TCP, UDP = 6, 17
HUGE = (1 << 31) - 1
CROWD = 60
TOO_LONG = 4000  # bytes of a reply

Heard = collections.namedtuple("Heard", "proto vers proc args peer")


class Host:
    """A client's rpcbind and lock manager at an address, by UDP and TCP. heard: calls of the lock manager.

    protocols: those that rpcbind says the lock manager has. silent: rpcbind's transports that answer nothing. verdict: of GRANTED.
    point: address and port are those of somebody else in rpcbind's answers. tcp_reply: what becomes of a reply by TCP."""

    def __init__(self, address, protocols=(TCP, UDP), silent=()):
        self.address, self.protocols, self.silent = address, protocols, silent
        self.heard, self.questions, self.verdict, self.tcp_reply, self.port_told = [], [], GRANTED, lambda b: [b], None
        self.ipv6 = ":" in address
        family = socket.AF_INET6 if self.ipv6 else socket.AF_INET
        self.udp, self.binder = (socket.socket(family, socket.SOCK_DGRAM) for _ in range(2))
        self.tcp, self.tcp_binder = (socket.socket(family) for _ in range(2))
        for s, port in ((self.binder, 111), (self.tcp_binder, 111), (self.udp, 0), (self.tcp, 0)):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((address, port))
        self.tcp.listen(16)
        self.tcp_binder.listen(16)
        self.conns, self.ended = {}, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def close(self):
        self.ended = True
        self.thread.join()
        for s in (self.udp, self.binder, self.tcp, self.tcp_binder, *self.conns):
            s.close()

    def run(self):
        while not self.ended:
            for s in select.select([self.udp, self.binder, self.tcp, self.tcp_binder, *self.conns], [], [], 0.05)[0]:
                if s in (self.tcp, self.tcp_binder):
                    c, peer = s.accept()
                    self.conns[c] = (s is self.tcp_binder, peer)
                elif s in self.conns:
                    self.stream(s)
                else:
                    data, peer = s.recvfrom(9000)
                    reply = self.answer(data, peer, UDP, s is self.binder)
                    if reply:
                        s.sendto(reply, peer)

    def stream(self, s):
        try:
            data = s.recv(9000)
        except OSError:
            data = b""
        if not data:
            del self.conns[s]
            s.close()
            return
        is_binder, peer = self.conns[s]
        reply = self.answer(data[4:], peer, TCP, is_binder)
        if reply:
            for piece in ([struct.pack(">I", 1 << 31 | len(reply)) + reply] if is_binder else
                          self.tcp_reply(struct.pack(">I", 1 << 31 | len(reply)) + reply)):
                try:
                    s.sendall(piece)
                except OSError:
                    return
                time.sleep(0.005)

    def answer(self, data, peer, proto, is_binder):
        x = In(data)
        xid, _, _, prog, vers, proc = (x.u32() for _ in range(6))
        x.u32(), x.opaque(), x.u32(), x.opaque()
        x.args_at = x.at
        head = struct.pack(">IIIIII", xid, 1, 0, 0, 0, 0)
        if is_binder and proc == 0:  # is the host there?
            return head
        if is_binder:
            x.u32(), x.u32()
            asked = {b"tcp6": TCP, b"udp6": UDP}.get(x.opaque()) if self.ipv6 else x.u32()
            self.questions.append((proto, asked))
            if (prog, vers, proc) != (PMAP, 3 if self.ipv6 else 2, 3) or proto in self.silent:
                return None
            port = (self.tcp if asked == TCP else self.udp).getsockname()[1] if asked in self.protocols else 0
            port = self.port_told or port
            # The address in a universal address is somebody else's: it does not count.
            return head + (opaque(b"fd00::9.%d.%d" % (port >> 8, port & 255) if port else b"") if self.ipv6 else u32(port))
        self.heard.append(Heard(proto, vers, proc, x, peer))
        if proc != GRANT:
            return head
        cookie = x.opaque()
        return None if self.verdict is None else head + opaque(cookie) + u32(self.verdict)


def message(c, vers, proc, fh, offset=0, length=10, svid=7, block=False, reclaim=False):
    put = u64 if vers == 4 else u32
    form = proc - MSG if MSG < proc <= RES else proc
    args = opaque(b"cookie")
    if form in (LOCK, CANCEL, NM_LOCK):
        args += u32(int(block)) + u32(1)
    elif form in (TEST, GRANT):
        args += u32(1)
    args += opaque(c.name) + opaque(fh) + opaque(b"%d@here" % svid) + u32(svid) + put(offset) + put(length)
    if form in (LOCK, NM_LOCK):
        args += u32(int(reclaim)) + u32(c.state)
    return c.conn.call(NLM, vers, proc, args)


def ask(c, vers, proc, fh, **kw):
    """The status that a procedure answers in its reply."""
    x = message(c, vers, proc, fh, **kw)
    x.opaque()
    return x.u32()


def post(host, c, vers, proc, fh, **kw):
    """Sends a message: the answer, or None. The cursor of its arguments is behind the status."""
    n = len(host.heard)
    message(c, vers, proc + MSG, fh, **kw)
    if not wait_for(lambda: len(host.heard) > n):
        return None
    h = host.heard[n]
    if (h.vers, h.proc) != (vers, proc + RES) or h.args.opaque() != b"cookie":
        return h
    return h.args.u32()


def test_messages(t, d, one, two, host):
    """Each procedure, in each version."""
    for vers in (1, 3, 4):
        fh = make_file(d, one, f"messages {vers}")
        t.equal(f"version {vers}: LOCK_MSG", post(host, two, vers, LOCK, fh, offset=5), GRANTED)
        t.equal(f"version {vers}: from the address that is called, and a privileged port",
                (host.heard[-1].peer[0], host.heard[-1].peer[1] < 1024), (SERVER, True))
        t.equal(f"version {vers}: and by the transport of the call", host.heard[-1].proto, TCP)
        t.equal(f"version {vers}: TEST_MSG", post(host, two, vers, TEST, fh, svid=8), DENIED)
        x = host.heard[-1].args
        get = x.u64 if vers == 4 else x.u32
        t.equal(f"version {vers}: says who holds it", (x.u32(), x.u32(), x.opaque(), get(), get()), (1, 7, b"7@here", 5, 10))
        t.equal(f"version {vers}: another", post(host, two, vers, LOCK, fh, svid=8), DENIED)
        t.equal(f"version {vers}: UNLOCK_MSG", post(host, two, vers, UNLOCK, fh, offset=5), GRANTED)
        t.equal(f"version {vers}: TEST_MSG then", post(host, two, vers, TEST, fh, svid=8), GRANTED)
        t.equal(f"version {vers}: CANCEL_MSG", post(host, two, vers, CANCEL, fh), GRANTED)
        t.equal(f"version {vers}: GRANTED_MSG is for a client", post(host, two, vers, GRANT, fh), DENIED)
        t.equal(f"version {vers}: GRANTED, too", ask(two, vers, GRANT, fh), DENIED)
        for proc in range(TEST + RES, GRANT + RES + 1):
            two.conn.call(NLM, vers, proc, opaque(b"12345678") + u32(GRANTED))


def test_old(t, d, one):
    """Offsets of 32 bits."""
    fh = make_file(d, one, "old")
    for vers in (1, 3):
        t.equal(f"version {vers}: LOCK", ask(one, vers, LOCK, fh, offset=10), GRANTED)
        t.equal("version 4 meets it", ask(one, 4, LOCK, fh, svid=8, offset=19, length=1), DENIED)
        t.equal("but not behind it", ask(one, 4, LOCK, fh, svid=8, offset=20, length=1), GRANTED)
        t.equal("unlocked by version 4", ask(one, 4, UNLOCK, fh, length=0), GRANTED)
        t.equal("to the end", ask(one, vers, LOCK, fh, offset=HUGE, length=1), GRANTED)
        t.equal("is one byte", ask(one, 4, LOCK, fh, svid=8, offset=HUGE + 1, length=1), GRANTED)
        t.equal("what ends beyond has no end", ask(one, vers, LOCK, fh, offset=HUGE, length=2), DENIED)
        ask(one, 4, UNLOCK, fh, svid=8, length=0)
        t.equal("and so", ask(one, vers, LOCK, fh, offset=HUGE, length=2), GRANTED)
        t.equal("is in the way of all", ask(one, 4, LOCK, fh, svid=8, offset=1 << 40, length=1), DENIED)
        t.equal("what begins beyond", ask(one, vers, LOCK, fh, offset=HUGE + 1), NOLOCKS)
        t.equal("an UNLOCK there", ask(one, vers, UNLOCK, fh, offset=HUGE + 1), NOLOCKS)
        ask(one, 4, UNLOCK, fh, length=0)
        ask(one, 4, LOCK, fh, svid=8, offset=1 << 40, length=1 << 33)
        x = message(one, vers, TEST, fh, length=0)
        x.opaque()
        t.equal("a holder far beyond", (x.u32(), x.u32(), x.u32(), x.opaque(), x.u32(), x.u32()),
                (DENIED, 1, 8, b"8@here", HUGE, HUGE))
        ask(one, 4, UNLOCK, fh, svid=8, length=0)
        t.equal("a handle of nobody", ask(one, vers, LOCK, b"x" * 32), NOLOCKS)
        t.equal("and in version 4", ask(one, 4, LOCK, b"x" * 32), STALE)
    t.equal("version 3: NM_LOCK", ask(one, 3, NM_LOCK, fh), GRANTED)
    one.conn.call(NLM, 3, FREE_ALL, opaque(one.name) + u32(1))
    t.equal("version 3: FREE_ALL", ask(one, 3, LOCK, fh, svid=8), GRANTED)
    ask(one, 3, UNLOCK, fh, svid=8)
    for vers, proc in ((1, 20), (1, 22), (1, 23), (3, 16), (4, 17), (4, 24)):
        try:
            one.conn.call(NLM, vers, proc, b"")
            t.check(f"version {vers} has no procedure {proc}", False)
        except r.Refused as e:
            t.equal(f"version {vers} has no procedure {proc}", e.why, "PROC_UNAVAIL")
    try:
        one.conn.call(NLM, 2, 0, b"")
        t.check("version 2 does not exist", False)
    except r.Refused as e:
        t.equal("version 2 does not exist", e.why, "PROG_MISMATCH")


def waiting(d, one, two, vers, proc, name):
    """two waits for one's lock by that procedure."""
    fh = make_file(d, one, name)
    one.lock(fh)
    message(two, vers, proc, fh, block=True)
    return fh


def granted(host, n, proc):
    """The n-th call that the host has heard and after, if it is of that procedure."""
    wait_for(lambda: any(h.proc == proc for h in host.heard[n:]))
    return next((h for h in host.heard[n:] if h.proc == proc), None)


def answer(c, vers, cookie, stat):
    c.conn.call(NLM, vers, GRANT + RES, opaque(cookie) + u32(stat))


def test_granted_messages(t, d, one, two, host, stranger):
    """Who asks by LOCK_MSG is told by GRANTED_MSG, and answers by GRANTED_RES."""
    for vers in (1, 3, 4):
        n = len(host.heard)
        fh = waiting(d, one, two, vers, LOCK + MSG, f"granted {vers}")
        t.equal(f"version {vers}: BLOCKED", (granted(host, n, LOCK + RES).args.opaque(), host.heard[-1].args.u32()), (b"cookie", BLOCKED))
        one.unlock(fh)
        h = granted(host, n, GRANT + MSG)
        t.check(f"version {vers}: GRANTED_MSG", h and h.vers == vers, h)
        cookie = h.args.opaque()
        x = h.args
        get = x.u64 if vers == 4 else x.u32
        t.equal(f"version {vers}: what", (x.u32(), x.opaque(), x.opaque(), x.opaque(), x.u32(), get(), get()),
                (1, two.name, fh, b"7@here", 7, 0, 10))
        answer(two, vers, bytes(len(cookie)), DENIED)
        answer(two, vers, cookie[:-1], DENIED)
        answer(stranger, vers, cookie, DENIED)
        answer(two, vers, cookie, GRACE)
        t.equal(f"version {vers}: another's answer, or with another cookie, takes nothing", one.lock(fh), DENIED)
        answer(two, vers, cookie, DENIED)
        t.check(f"version {vers}: its own does", wait_for(lambda f=fh: one.lock(f) == GRANTED))
        answer(two, vers, cookie, DENIED)
        two.lock(fh, block=True)
        one.unlock(fh)
        wait_for(lambda: any(h.proc == GRANT for h in host.heard[n:]))
        answer(two, vers, cookie, DENIED)
        t.equal(f"version {vers}: and once only", one.lock(fh), DENIED)
        two.unlock(fh)
        n = len(host.heard)
        fh = waiting(d, one, two, vers, LOCK + MSG, f"kept {vers}")
        one.unlock(fh)
        answer(two, vers, granted(host, n, GRANT + MSG).args.opaque(), GRANTED)
        t.equal(f"version {vers}: it is kept", one.lock(fh), DENIED)
        two.unlock(fh)


def test_transports(t, d, one, two, host):
    """The call goes where rpcbind says that the lock manager is."""
    for what, protocols, want in (("both", (TCP, UDP), TCP), ("UDP only", (UDP,), UDP), ("TCP only", (TCP,), TCP)):
        host.protocols, n = protocols, len(host.heard)
        fh = waiting(d, one, two, 4, LOCK, what)
        one.unlock(fh)
        h = granted(host, n, GRANT)
        t.check(f"{what}: called", h and h.proto == want, h)
        t.equal(f"{what}: its lock", one.lock(fh), DENIED)
        two.unlock(fh)
    host.protocols = (TCP, UDP)


def test_binder_by_tcp(t, one, fh, four, host):
    """rpcbind answers by TCP only. That it is silent by UDP takes some seconds, in which another test runs."""
    h = granted(host, 0, GRANT)
    t.check("rpcbind by TCP only: called", h and h.proto == TCP, host.questions)
    t.equal("by UDP first", [q[0] for q in host.questions][:1] + [q[0] for q in host.questions][-1:], [UDP, TCP])
    t.equal("its lock", one.lock(fh), DENIED)
    four.unlock(fh)
    host.silent = ()


def test_streams(t, d, one, two, host):
    """Replies by TCP in pieces, and replies that are none."""
    def fragments(b):
        return [struct.pack(">I", 3) + b[4:7], struct.pack(">I", 0), struct.pack(">I", 1 << 31 | len(b) - 7) + b[7:]]

    pieces = {"byte by byte": lambda b: [b[i:i + 1] for i in range(len(b))], "in fragments": fragments}
    for what, how in pieces.items():
        host.tcp_reply, host.verdict, n = how, DENIED, len(host.heard)
        fh = waiting(d, one, two, 4, LOCK, what)
        one.unlock(fh)
        t.check(f"a reply {what} is read", wait_for(lambda f=fh: one.lock(f) == GRANTED), what)
        one.unlock(fh)
        t.equal(f"a reply {what}: one call", len([h for h in host.heard[n:] if h.proc == GRANT]), 1)
    none = {"too long": lambda b: [struct.pack(">I", TOO_LONG) + bytes(TOO_LONG)], "empty": lambda b: [struct.pack(">I", 1 << 31)],
            "of another call": lambda b: [b[:4] + bytes(4) + b[8:]], "cut short": lambda b: [b[:10]]}
    waits, start = [], len(host.heard)
    for what, how in none.items():
        host.tcp_reply = how
        fh = waiting(d, one, two, 4, LOCK, what)
        n = len(host.heard)
        one.unlock(fh)
        granted(host, n, GRANT)
        waits.append((what, fh))
    host.tcp_reply = lambda b: [b]
    calls = wait_for(lambda: len([h for h in host.heard[start:] if h.proc == GRANT]) >= 2 * len(waits))
    t.check("such replies are none: each call comes again", calls, [h.proc for h in host.heard[start:]])
    for what, fh in waits:
        t.equal(f"a reply that is {what}: the lock is the waiter's", one.lock(fh), DENIED)
        t.equal("which gives it up", two.unlock(fh), GRANTED)
        one.unlock(fh)
    host.verdict = GRANTED


def test_ipv6(t, d, one, six, host):
    """A client at an IPv6 address, by both transports, beside one of its network that is silent."""
    dead = Client(d, SILENT6, b"silent six", server=SERVER6)
    fh = make_file(d, one, "silent six")
    for svid in range(30):
        message(dead, 4, TEST + MSG, fh, svid=svid)
    begun = time.monotonic()
    for protocols in ((TCP,), (UDP,)):
        host.protocols, n = protocols, len(host.heard)
        fh = waiting(d, one, six, 4, LOCK, f"ipv6 {protocols}")
        one.unlock(fh)
        h = granted(host, n, GRANT)
        t.check(f"IPv6, protocol {protocols[0]}: called", h and h.proto == protocols[0], host.questions)
        t.equal("from the address that it calls, and a privileged port", h and (h.peer[0], h.peer[1] < 1024), (SERVER6, True))
        t.equal("its lock", one.lock(fh), DENIED)
        six.unlock(fh)
    # A silent address is given up after more than 12 seconds.
    t.check("the silent one holds it up not", time.monotonic() - begun < 12, time.monotonic() - begun)


def test_silent(t, d, one, two, host, dead, dead_host):
    """A host whose rpcbind never answers holds up nobody, and gets few packets."""
    fh = make_file(d, one, "silent")
    held = make_file(d, one, "silent and held")
    one.lock(held)
    begun = time.monotonic()
    for i in range(200):
        message(dead, 4, TEST + MSG, fh, svid=i)
        message(dead, 4, LOCK, held, svid=i, block=True)
    t.check("its calls are answered at once", time.monotonic() - begun < 60, time.monotonic() - begun)
    n = len(host.heard)
    fh2 = waiting(d, one, two, 4, LOCK, "not silent")
    begun = time.monotonic()
    one.unlock(fh2)
    t.check("another's lock is granted", granted(host, n, GRANT))
    t.check("before the silent one is given up", time.monotonic() - begun < 12, time.monotonic() - begun)
    two.unlock(fh2)
    t.check("it is asked four things at a time", len(dead_host.questions) <= 4 * 4, len(dead_host.questions))
    one.unlock(held)


def test_crowd(t, d, one, two, host):
    """More hosts that are silent than calls can be under way. Each has more to be told than may wait."""
    crowd = [Client(d, "127.0.1.%d" % i, b"crowd %d" % i) for i in range(1, CROWD + 1)]
    fh, held = make_file(d, one, "crowd"), make_file(d, one, "crowd and held")
    for c in crowd:
        for svid in range(30):
            message(c, 4, TEST + MSG, fh, svid=svid)
    n = len(host.heard)
    one.lock(held)
    message(two, 4, LOCK, held, block=True)
    begun = time.monotonic()
    one.unlock(held)
    t.check("another's lock is granted", granted(host, n, GRANT))
    # A silent host is given up after more than 12 seconds; 128 calls are under way.
    t.check("though all calls are taken", time.monotonic() - begun < 12, time.monotonic() - begun)
    two.unlock(held)


def test_liar(t, d, one, liar, liar_host, others):
    """rpcbind tells the port of another program: the address stays the sender's, whatever it says of itself."""
    liar_host.port_told = others[0].udp.getsockname()[1]
    before = [len(h.heard) + len(h.questions) for h in others]
    fh = make_file(d, one, "liar")
    liar.name = others[0].address.encode()
    for vers in (1, 3, 4):
        message(liar, vers, LOCK + MSG, fh)
    wait_for(lambda: len(liar_host.questions) >= 3)
    time.sleep(0.5)
    t.equal("nobody else is called", [len(h.heard) + len(h.questions) for h in others], before)


def inside():
    t = Count()
    base.network_up()
    for address in (SERVER6, SIX, SILENT6):
        subprocess.run(["ip", "addr", "add", address + "/128", "dev", "lo", "nodad"], check=True)
    hosts = [Host(ONE), Host(TWO), Host(THREE, silent=(UDP, TCP)), Host(FOUR, silent=(UDP,)), Host(SIX)]
    try:
        settings = {"nlm.statd_port": base.MONITOR_PORT, "tcp.listen": ""}
        with Daemon({"one": "rw,insecure,no_root_squash"}, settings, hosts=("127.0.0.0/8", "fd00::/64")) as d:
            one, two, three, four = (Client(d, a, n) for a, n in ((ONE, b"one"), (TWO, b"two"), (THREE, b"three"), (FOUR, b"four")))
            test_messages(t, d, one, two, hosts[1])
            test_old(t, d, one)
            test_granted_messages(t, d, one, two, hosts[1], four)
            test_transports(t, d, one, two, hosts[1])
            late = waiting(d, one, four, 4, LOCK, "rpcbind by TCP")
            one.unlock(late)
            test_streams(t, d, one, two, hosts[1])
            test_binder_by_tcp(t, one, late, four, hosts[3])
            test_ipv6(t, d, one, Client(d, SIX, b"six", server=SERVER6), hosts[4])
            test_liar(t, d, one, four, hosts[3], hosts[:2])
            test_silent(t, d, one, two, hosts[1], three, hosts[2])
            test_crowd(t, d, one, two, hosts[1])
            harness.finish(t, d)
    finally:
        for h in hosts:
            h.close()
    harness.result(t)


if __name__ == "__main__":
    base.main(__file__, inside)
