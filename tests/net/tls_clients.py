#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""NFSv4 clients that registered by RPC with TLS, and callers at their address who are less protected: what those get of their state."""
import shutil
import signal
import tempfile

import harness
import nfs4client as n4
import tlsclient as t

DELAY, CLID_INUSE, BAD_SEQID, SEQ_FALSE_RETRY = 10008, 10017, 10026, 10076
EXPORTS = {"any": "rw,no_root_squash,insecure"}


class World:
    def __init__(self, d, ca):
        self.d = d
        self.contexts = {"tls": t.context(ca.path("crt")), "mtls": t.context(ca.path("crt"), ca.issue("client"))}

    def client(self, how, owner, minor):
        return t.TlsClient4(self.d.port, self.contexts[how], owner, minor) if how in self.contexts else n4.Client(self.d.port, owner, minor)


def name_is_kept(count, w, how, rivals, minor):
    owner = f"owner-{how}-{minor}"
    c = w.client(how, owner, minor)
    count.equal(f"a client of 4.{minor} registers by {how}", (c.register()["status"], c.reclaim_complete()), (n4.OK, n4.OK))
    opened, fh = c.open(c.path(w.d.exports["any"]), owner, create=True)
    for rival in rivals:
        other = w.client(rival, owner, minor)
        other.verifier = rival.encode().ljust(8, b"!")
        status = other.register()["status"]
        count.check(f"its name is not for a {rival} caller at its address", status in (DELAY, CLID_INUSE), status)
        other.close()
    count.equal("it still has its file", c.close_file(fh, opened["stateid"])["status"], n4.OK)
    c.open(c.path(w.d.exports["any"]), owner)
    booted = w.client(how, owner, minor)
    booted.verifier = b"booted!!"
    count.equal(f"after a boot it goes on at once by {how}", booted.register()["status"], n4.OK)
    booted.close()
    c.close()


def replies_stay_protected(count, w, minor):
    """A retry of a call whose reply is kept, by the same user with the session's id or the owner's number, over less protected connections."""
    c = w.client("mtls", f"kept-{minor}", minor)
    c.register()
    c.reclaim_complete()
    root = c.path(w.d.exports["any"])
    c.open(root, f"kept-{minor}", create=True)  # in 4.0 the owner's first OPEN has to be confirmed
    refused = SEQ_FALSE_RETRY if minor else BAD_SEQID
    seqid, owner_seqid = c.seqid, c.owner_seqid
    first = c.open(root, f"kept-{minor}")[0]
    for how, want in (("plain", refused), ("tls", refused), ("mtls", n4.OK)):
        other = w.client(how, f"kept-{minor}", minor)
        other.session, other.clientid, other.seqid, other.owner_seqid = c.session, c.clientid, seqid, owner_seqid
        again = other.open(root, f"kept-{minor}")[0]
        count.equal(f"4.{minor}: a reply kept for a client with a certificate, asked for again over {how}", again["status"], want)
        if want == n4.OK:
            count.equal("which is the first one", again["stateid"], first["stateid"])
        other.close()
    c.close()


def name_is_kept_over_restart(count, w, minor):
    owner = f"restart-{minor}"
    c = w.client("mtls", owner, minor)
    c.register()
    c.reclaim_complete()
    fh = c.open(c.path(w.d.exports["any"]), owner, create=True)[1]
    w.d.stop(signal.SIGKILL)
    w.d.start()
    for rival in ("plain", "tls"):
        other = w.client(rival, owner, minor)
        other.verifier = rival.encode().ljust(8, b"!")
        count.equal(f"4.{minor}: after a restart the name is not for a {rival} caller", other.register()["status"], DELAY)
        other.close()
    c.again()
    count.equal(f"4.{minor}: the client comes back", c.register()["status"], n4.OK)
    count.equal(f"4.{minor}: and reclaims its file", c.reclaim_open(fh)["status"], n4.OK)
    c.reclaim_complete()
    c.close()


def name_may_be_kept_better(count, w):
    """A client may come back with more protection than it had."""
    c = w.client("plain", "upgrade", 1)
    c.register()
    c.reclaim_complete()
    c.open(c.path(w.d.exports["any"]), "upgrade", create=True)
    booted = w.client("mtls", "upgrade", 1)
    booted.verifier = b"booted!!"
    count.equal("a plain client goes on at once by TLS after a boot", booted.register()["status"], n4.OK)
    booted.close()
    c.close()


def main():
    count = harness.Count()
    folder = tempfile.mkdtemp(prefix="ringnfs-tls-clients-")
    try:
        ca = t.Authority(folder, "ca")
        crt, key = ca.issue("server")
        with harness.Daemon(EXPORTS, {"tls.certificate": crt, "tls.key": key, "tls.ca": ca.path("crt")}) as d:
            w = World(d, ca)
            for minor in (0, 1, 2):
                name_is_kept(count, w, "tls", ("plain",), minor)
                name_is_kept(count, w, "mtls", ("plain", "tls"), minor)
                replies_stay_protected(count, w, minor)
            name_may_be_kept_better(count, w)
            for minor in (0, 1):
                name_is_kept_over_restart(count, w, minor)
            harness.finish(count, d)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    harness.result(count)


if __name__ == "__main__":
    main()
