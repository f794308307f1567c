#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""RPC with TLS (RFC 9289): calls of every version, certificates, xprtsec=, and what peers must not get away with."""
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import harness
import nfs4client as n4
import rpcclient as r
import scrape
import tlsclient as t

MIB = 1 << 20
BADCRED, TOOWEAK, WRONGSEC = 1, 5, 10016
EXPORTS = {"any": "rw,no_root_squash,insecure", "enc": "rw,no_root_squash,insecure,xprtsec=tls:mtls",
           "own": "rw,no_root_squash,insecure,xprtsec=mtls", "clear": "rw,no_root_squash,insecure,xprtsec=none"}


def outcome(call, *args, **kw):
    """The result, or what came instead."""
    try:
        return call(*args, **kw)
    except r.Refused as e:
        return (e.why, *e.data)
    except (r.Closed, ConnectionError, ssl.SSLError):
        return "closed"


def works(port, ctx):
    """Handshake and a call."""
    with t.TlsConn(port, ctx) as c:
        c.nfs(r.NULL)
        return "works"


def calls(count, d, ctx):
    data = os.urandom(MIB)
    with t.TlsConn(d.port, ctx) as c:
        count.equal("TLS 1.3 is spoken", c.s.version(), "TLSv1.3")
        count.equal("the protocol sunrpc is answered", c.s.selected_alpn_protocol(), "sunrpc")
        root = d.root(c, "enc")
        fh = c.nfs(r.CREATE, r.create_args(root, "big"))["fh"]
        count.equal("WRITE of 1 MiB", c.nfs(r.WRITE, r.write_args(fh, 0, data))["status"], r.OK)
        count.check("READ of 1 MiB gives it back", c.nfs(r.READ, r.read_args(fh, 0, MIB))["data"] == data)
        for i in range(20):  # many at once, in one stream
            c.send(r.call_message(r.NFS, 3, r.READ, r.read_args(fh, 0, 256 << 10)))
        sizes = {len(c.recv()) for _ in range(20)}
        count.check("20 READs at once are all answered", len(sizes) == 1 and min(sizes) > 256 << 10, sizes)
        count.equal("a question for TLS within TLS", outcome(t.probe, c), ("AUTH_ERROR", BADCRED))
        count.equal("the connection goes on", outcome(c.nfs, r.NULL), None)


def minor_versions(count, d, ctx):
    for minor in (0, 1, 2):
        c = t.TlsClient4(d.port, ctx, f"tls-{minor}", minor)
        count.equal(f"a client of 4.{minor} registers over TLS", (c.register()["status"], c.reclaim_complete()), (n4.OK, n4.OK))
        path = [n4.lookup(p) for p in d.exports["enc"].strip("/").split("/")]
        count.equal(f"4.{minor} reaches the export", c.last((n4.PUTROOTFH, b""), *path)["status"], n4.OK)
        c.close()


def callbacks(count, d, ctx):
    class Called(t.TlsClient4):
        back = True

    c = Called(d.port, ctx, "called")
    count.equal("a client with a back channel registers", (c.register()["status"], c.reclaim_complete()), (n4.OK, n4.OK))
    count.check("the server calls it within TLS", c.await_callback() is not None)
    c.close()


def plain(count, d):
    with d.connect() as c:
        # Linux sends MNT without TLS. A handle is of no use without it.
        os.makedirs(d.exports["enc"] + "/sub", exist_ok=True)
        count.equal("plain MNT of xprtsec=tls:mtls", c.mnt(d.exports["enc"])[0], r.OK)
        count.equal("plain MNT of a folder in it, as nobody", c.mnt(d.exports["enc"] + "/sub")[0], r.OK)
        os.makedirs(d.exports["enc"] + "/closed/sub", exist_ok=True)
        os.chmod(d.exports["enc"] + "/closed", 0o700)
        answers = [c.mnt(d.exports["enc"] + "/closed/" + n)[0] for n in ("sub", "none")]
        count.equal("plain MNT below a closed folder tells nothing", answers, [r.ACCES] * 2)
        root = d.root(c, "any")
        count.equal("plain calls to another export", c.nfs(r.GETATTR, r.getattr_args(root))["status"], r.OK)
        count.equal("plain MNT of xprtsec=none", c.mnt(d.exports["clear"])[0], r.OK)
        count.equal("AUTH_TLS on another procedure", outcome(t.probe, c, r.GETATTR), ("AUTH_ERROR", BADCRED))


def kernel_sessions():
    """Connections whose sending the kernel has taken over, since it was started; None: it cannot."""
    try:
        with open("/proc/net/tls_stat") as f:
            stat = dict(line.split() for line in f)
    except FileNotFoundError:
        return None
    return int(stat["TlsTxSw"]) + int(stat["TlsTxDevice"])


def metrics(count, d, ca):
    """Handshakes with and without a certificate, one that fails, and those after which the kernel encrypts."""
    ctx, mutual = t.context(ca.path("crt")), t.context(ca.path("crt"), ca.issue("counted"))
    before = kernel_sessions()
    with scrape.Growth(d) as grown:
        for use, n in ((ctx, 2), (mutual, 3)):
            for _ in range(n):
                works(d.port, use)
        outcome(works, d.port, t.context(ca.path("crt"), alpn=("http/1.1",)))
    for result, n in (("tls", 2), ("mtls", 3), ("failed", 1), ("refused", 0)):
        count.equal(f"handshakes in the metrics: {result}", grown.of("ringnfs_tls_handshakes_total", result=result), n)
    kernel = 0 if before is None else kernel_sessions() - before  # with those of other programs
    counted = grown.of("ringnfs_tls_kernel_sessions_total")
    count.check("and those after which the kernel encrypts", counted <= kernel and counted in (0, 5), (counted, kernel))


def refusals(count, d, ctx, mutual):
    with t.TlsConn(d.port, ctx) as c, t.TlsConn(d.port, mutual) as m, d.connect() as p:
        enc, own = d.root(c, "enc"), d.root(m, "own")
        for what, fh in (("tls:mtls", enc), ("mtls", own)):
            got = outcome(p.nfs, r.GETATTR, r.getattr_args(fh))
            count.equal(f"a plain call with a handle of xprtsec={what}", got, ("AUTH_ERROR", TOOWEAK))
            got = outcome(p.nfs, r.FSINFO, r.fsinfo_args(fh))
            count.equal(f"a plain FSINFO of xprtsec={what}", got, ("AUTH_ERROR", TOOWEAK))
        count.equal("TLS without a certificate, xprtsec=mtls", outcome(c.nfs, r.GETATTR, r.getattr_args(own)), ("AUTH_ERROR", TOOWEAK))
        clear = d.root(c, "clear")
        count.equal("xprtsec=none within TLS", outcome(c.nfs, r.GETATTR, r.getattr_args(clear)), ("AUTH_ERROR", TOOWEAK))
        count.equal("with a certificate", m.nfs(r.GETATTR, r.getattr_args(own))["status"], r.OK)
    c = n4.Client(d.port, "plain", 1)
    c.register()
    c.reclaim_complete()
    path = [n4.lookup(p) for p in d.exports["enc"].strip("/").split("/")]
    count.equal("NFSv4 without TLS", c.last((n4.PUTROOTFH, b""), *path)["status"], WRONGSEC)
    os.makedirs(d.exports["enc"] + "/there", exist_ok=True)
    for name in ("there", "not-there"):  # MNT has given the root's handle
        count.equal(f"a plain LOOKUP of {name}", c.last(n4.putfh(enc), n4.lookup(name))["status"], WRONGSEC)
        count.equal(f"a plain SECINFO of {name}", c.last(n4.putfh(enc), (n4.SECINFO, r.name(name)))["status"], n4.OK)
    c.close()


def certificates(count, d, ca, other):
    good, old, stranger = ca.issue("client"), ca.issue("old", expired=True), other.issue("stranger")
    for what, cert, want in (("good", good, "works"), ("expired", old, "closed"), ("unknown", stranger, "closed")):
        count.equal(f"a client's certificate: {what}", outcome(works, d.port, t.context(ca.path("crt"), cert)), want)
    count.equal("another protocol", outcome(works, d.port, t.context(ca.path("crt"), alpn=("http/1.1",))), "closed")
    count.equal("no protocol", outcome(works, d.port, t.context(ca.path("crt"), alpn=())), "works")
    count.equal("TLS 1.2", outcome(works, d.port, t.context(ca.path("crt"), highest=ssl.TLSVersion.TLSv1_2)), "closed")
    return t.context(ca.path("crt"), good)


def closed(s, seconds=5):
    """True if the server closes; what it sends before is passed over."""
    s.settimeout(seconds)
    try:
        while s.recv(65536):
            pass
        return True
    except socket.timeout:
        return False
    except ConnectionError:
        return True


def half_close(s):
    try:
        s.shutdown(socket.SHUT_WR)
    except OSError:  # the server has closed already
        pass


def hostile(count, d, ctx):
    null = r.call_message(r.NFS, 3, r.NULL)
    with d.connect() as c:
        c.send_raw(b"".join(r.u32(0x80000000 | len(m)) + m for m in (r.call_message(r.NFS, 3, r.NULL, cred=t.AUTH_TLS), null)))
        count.check("a call behind the question ends the connection", closed(c.s))
    for what, junk in (("a plain call", null), ("junk", b"\x16\x03\x01\xff\xff" + bytes(100)), ("an HTTP request", b"GET / HTTP/1.1\r\n\r\n")):
        with d.connect() as c:
            t.probe(c)
            c.send(junk) if junk == null else c.send_raw(junk)
            half_close(c.s)
            count.check(f"{what} instead of a handshake ends the connection", closed(c.s))
    c = t.TlsConn(d.port, ctx)
    raw = socket.socket(fileno=os.dup(c.s.fileno()))
    raw.sendall(r.u32(0x80000000 | len(null)) + null)
    count.check("a plain call behind the handshake ends the connection", closed(raw))
    raw.close()
    c.close()
    with d.connect() as c:  # calls under way when TLS is asked for are answered first
        root = d.root(c, "any")
        messages = [r.call_message(r.NFS, 3, r.READDIRPLUS, r.readdirplus_args(root), xid=i) for i in range(5)]
        messages.append(r.call_message(r.NFS, 3, r.NULL, cred=t.AUTH_TLS, xid=99))
        c.send_raw(b"".join(r.u32(0x80000000 | len(m)) + m for m in messages))
        answers = [int.from_bytes(c.recv()[:4], "big") for _ in messages]
        count.equal("calls before the question are answered", {*answers}, {*range(5), 99})
        count.equal("and the question behind them", answers[-1], 99)
        c.s = ctx.wrap_socket(c.s, server_hostname="localhost")
        count.equal("and TLS begins", outcome(c.nfs, r.NULL), None)


def shake(c, ctx):
    """A session over memory, so that what is sent can be put together."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    s = ctx.wrap_bio(incoming, outgoing, server_hostname="localhost")
    while True:
        try:
            s.do_handshake()
            c.s.sendall(outgoing.read())
            return s, outgoing
        except ssl.SSLWantReadError:
            c.s.sendall(outgoing.read())
            incoming.write(c.s.recv(65536))


def ended(count, d, ctx):
    """The end of the session in one piece with a call, from a client that keeps its socket open."""
    null = r.call_message(r.NFS, 3, r.NULL)
    for what, calls in (("alone", 0), ("with a call", 1), ("with three calls", 3)):
        with d.connect() as c:
            t.probe(c)
            s, outgoing = shake(c, ctx)
            time.sleep(0.1)
            for _ in range(calls):
                s.write(r.u32(0x80000000 | len(null)) + null)
            try:
                s.unwrap()
            except ssl.SSLWantReadError:
                pass
            c.s.sendall(outgoing.read())
            count.check(f"the end of the session {what} ends the connection", closed(c.s))


def client_hello(ctx):
    outgoing = ssl.MemoryBIO()
    try:
        ctx.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()


def fragments(count, d, ctx):
    """The question for TLS in records of several fragments, and what comes with it."""
    question, null = r.call_message(r.NFS, 3, r.NULL, cred=t.AUTH_TLS), r.call_message(r.NFS, 3, r.NULL)
    hello = client_hello(ctx)

    def fragment(data, last):
        return r.u32((0x80000000 if last else 0) | len(data)) + data

    words = [question[i:i + 4] for i in range(0, len(question), 4)]
    pieces = [fragment(w, False) for w in words[:-1]] + [fragment(words[-1], True)]
    for what, parts in (("of a word each", pieces), ("of which the last is empty", [fragment(question, False), fragment(b"", True)])):
        with d.connect() as c:
            for part in parts:
                c.send_raw(part)
                time.sleep(0.005)
            count.check(f"a question in fragments {what} is answered", b"STARTTLS" in c.recv())
            c.s = ctx.wrap_socket(c.s, server_hostname="localhost")
            count.equal("and TLS begins", outcome(c.nfs, r.NULL), None)
    with d.connect() as c:
        c.send_raw(fragment(question, False))
        time.sleep(0.1)
        c.send_raw(hello)
        half_close(c.s)
        data = b""
        try:
            while some := c.s.recv(65536):
                data += some
        except ConnectionError:
            pass
        count.equal("a handshake in place of the last fragment is not answered", data, b"")
    for what, behind in (("an empty last fragment and a handshake", fragment(b"", True) + hello), ("the head of another record", r.u32(0x80000000 | len(null))),
                         ("one octet", b"\x80"), ("an empty record", fragment(b"", True)), ("a handshake", hello), ("the question again", fragment(question, True))):
        with d.connect() as c:
            c.send_raw(fragment(question, not what.startswith("an empty last")) + behind)
            count.check(f"the question with {what} in one piece ends the connection", closed(c.s))
    with d.connect() as c:
        c.send_raw(fragment(null[:20], False) + fragment(question, True))
        count.check("the question as the second fragment of another call is none", b"STARTTLS" not in c.recv())


def rekey(count, d):
    """openssl s_client changes its key (k), and asks the server to do so, too (K)."""
    relay = t.Relay(d.port)
    thread = threading.Thread(target=relay.run)
    thread.start()
    p = subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{relay.port}", "-brief"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.set_blocking(p.stdout.fileno(), False)
    null = r.call_message(r.NFS, 3, r.NULL, xid=0x51515151)
    time.sleep(0.5)
    for data in (b"k\n", b"K\n", r.u32(0x80000000 | len(null)) + null):
        p.stdin.write(data)
        p.stdin.flush()
        time.sleep(0.3)
    got = b""
    end = time.monotonic() + 5
    while b"QQQQ" not in got and time.monotonic() < end:
        got += p.stdout.read() or b""
        time.sleep(0.05)
    count.check("a call behind two changes of the key is answered", b"QQQQ" in got, got[-80:])
    p.kill()
    p.wait()
    thread.join()


def crowd(count, d, ctx, n):
    """Many handshakes at once, beside a plain client."""
    questions = [d.connect() for _ in range(n)]
    for c in questions:
        t.probe(c)
    worst, stop, done = [0.0], threading.Event(), []

    def steady():
        with d.connect() as c:
            while not stop.is_set():
                begin = time.monotonic()
                c.nfs(r.NULL)
                worst[0] = max(worst[0], time.monotonic() - begin)
                time.sleep(0.005)

    bystander = threading.Thread(target=steady)
    bystander.start()
    begin = time.monotonic()
    streams, late = [], []
    for c in questions:  # every client sends its first message, then all answers are read
        c.s.setblocking(False)
        s = ctx.wrap_socket(c.s, server_hostname="localhost", do_handshake_on_connect=False)
        try:
            s.do_handshake()
        except ssl.SSLWantReadError:
            pass
        streams.append(s)
    for s in streams:
        s.settimeout(20)
        try:
            s.do_handshake()
            done.append(s)
        except (ssl.SSLError, OSError):
            # Ten seconds may be too short for the last of them on a busy machine. Whoever is cut off comes again.
            late.append(t.TlsConn(d.port, ctx))
    took = time.monotonic() - begin
    stop.set()
    bystander.join()
    for s in [*streams, *late]:
        s.close()
    count.equal(f"{n} handshakes at once", len(done) + len(late), n)
    print(f"{n} handshakes took {took:.1f} s; a plain client waited {worst[0] * 1e3:.0f} ms at most")
    count.check("the plain client is served meanwhile", worst[0] < (5 if d.sanitized() else 1), worst[0])


def reload(count, d, ca):
    crt, key = d.tls

    def serial():
        with t.TlsConn(d.port, t.context(ca.path("crt"))) as c:
            return c.s.getpeercert()["serialNumber"]

    first = serial()
    new_crt, new_key = ca.issue("server2")
    with open(crt, "w") as f:
        f.write("no certificate\n")
    log = d.reload()
    count.check("a bad certificate is refused at a reload", "the old TLS certificate stays in use" in log, log)
    count.equal("the old one is still used", serial(), first)
    shutil.copy(new_crt, crt)
    shutil.copy(new_key, key)
    d.reload()
    count.check("a new certificate is used after a reload", serial() != first)


def slow(port, result):
    """A byte a second of a handshake, and of 30 addresses five each of which half has come. The other tests run beside them."""
    drip, *halves = [r.Conn(port), *(r.Conn(port, source=(f"127.0.1.{n}", 0)) for n in range(1, 31) for _ in range(5))]
    begin = time.monotonic()
    for c in (drip, *halves):
        t.probe(c)
    for c in halves:
        c.send_raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200))
    drip.s.settimeout(1)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200)
    for i in range(25):
        try:
            drip.s.sendall(hello[i:i + 1])
            if not drip.s.recv(1):
                break
        except socket.timeout:
            continue
        except ConnectionError:
            break
    result["drip"] = time.monotonic() - begin
    result["half"] = sum(closed(c.s, 10) for c in halves)


def main():
    count = harness.Count()
    folder = tempfile.mkdtemp(prefix="ringnfs-tls-")
    try:
        ca, other = t.Authority(folder, "ca"), t.Authority(folder, "other")
        run(count, ca, other)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    harness.result(count)


def run(count, ca, other):
    crt, key = ca.issue("server")
    with harness.Daemon({"any": "rw"}) as d, d.connect() as c:
        count.equal("without a certificate TLS is not offered", outcome(t.probe, c), (0, b""))
    control = ca.path("control")
    with harness.Daemon(EXPORTS, {"tls.certificate": crt, "tls.key": key, "tls.ca": ca.path("crt"), "server.control_socket": control}) as d:
        d.tls, d.path = (crt, key), control
        metrics(count, d, ca)
        late = {}
        thread = threading.Thread(target=slow, args=(d.port, late), daemon=True)
        thread.start()
        ctx = t.context(ca.path("crt"))
        calls(count, d, ctx)
        minor_versions(count, d, ctx)
        callbacks(count, d, ctx)
        plain(count, d)
        mutual = certificates(count, d, ca, other)
        refusals(count, d, ctx, mutual)
        hostile(count, d, ctx)
        ended(count, d, ctx)
        fragments(count, d, ctx)
        rekey(count, d)
        reload(count, d, ca)
        thread.join()
        count.check("a handshake of a byte a second ends in time", 9 < late["drip"] < 15, late)
        count.equal("half handshakes of 30 addresses end, too", late["half"], 150)
        # Not before: half of what the others leave is one address's share.
        crowd(count, d, ctx, 200 if d.sanitized() else 1000)
        harness.finish(count, d)


if __name__ == "__main__":
    main()
