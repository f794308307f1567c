#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsctl exports check, diff and reload: what they find, what a change revokes, and who is not disturbed by it."""
import json
import os
import signal
import subprocess
import threading
import time
import urllib.parse

import harness
import mounts
import nfs4client as n4
import rpcclient as r
from control import GROUP, USER, Control, ask, connect, connect_as, ctl, status_of
from control_exports import exports_of
from harness import Count
from scrape import parse, value
from steady import Steady

OPTIONS = "rw,insecure,no_root_squash"

MANY = 1000
RW = "rw,insecure,no_root_squash"


def post(d, path, body=b"", sock=None):
    with sock or connect(d.path) as s:
        s.settimeout(120)
        status, _, answer = ask(s, "POST", path, body=body)
    return status, json.loads(answer)


def diff(d, text=None, sock=None):
    if text is None:
        return post(d, "/v1/exports/diff", sock=sock)
    return post(d, "/v1/exports/diff?name=" + urllib.parse.quote("new exports"), text.encode(), sock)


def changes_of(answer):
    return {c["path"]: c for c in answer["changes"]}


def test_diff(t, d):
    one, two = d.exports["one"], d.exports["two"]
    want = {one: {"path": one, "change": "changed", "clients": [
                {"client": "127.0.0.0/8", "change": "changed", "gained": ["secure", "ro"], "lost": ["insecure", "rw"]},
                {"client": "10.0.0.1", "change": "added", "options": "sync,wdelay,hide,no_subtree_check,secure,anonuid=65534,"
                 "anongid=65534,sec=sys,ro,root_squash,no_all_squash"}]},
            two: {"path": two, "change": "removed"}}
    text = f"{one} 127.0.0.0/8(no_root_squash) 10.0.0.1\n"
    status, answer = diff(d, text)
    got = changes_of(answer)
    t.equal("status and number of exports", (status, answer["exports"]), (200, 1))
    t.equal("what changes", got[one], want[one])
    t.equal("what goes", (got[two]["change"], [c["change"] for c in got[two]["clients"]], len(got)), ("removed", ["removed"], 2))
    t.equal("nothing is in force", sorted(exports_of(d)), [one, two])
    t.equal("the server's own files", diff(d)[1]["changes"], [])
    with open(d.top + "/new", "w") as f:
        f.write(text)
    res = ctl("-s", d.path, "exports", "diff", d.top + "/new")
    for words in (f"~ {one}\n", "    ~ 127.0.0.0/8 gains secure,ro loses insecure,rw\n", "    + 10.0.0.1(", f"- {two}\n", "would revoke: 0 opens"):
        t.check(f"for people: {words.strip()}", words in res.stdout, res.stdout)
    t.equal("exit status", res.returncode, 0)
    res = ctl("-s", d.path, "exports", "diff")
    t.check("no difference", "no client gains or loses anything" in res.stdout and res.returncode == 0, res.stdout)


def test_check(t, d):
    one = d.exports["one"]
    with open(d.top + "/new", "w") as f:
        f.write(f"# wrong\n{one} 127.0.0.1(rv)\n{d.top}/none *(ro)\n/proc *(ro)\n")
    res = ctl("-s", d.path, "exports", "check", d.top + "/new")
    t.equal("exit status", (res.returncode, res.stdout), (1, ""))
    t.check("nothing was to be changed, so nothing stays", "this would be refused" in res.stderr and "stay" not in res.stderr, res.stderr)
    t.check("an option", f'{d.top}/new:2:' in res.stderr and 'did you mean "ro"' in res.stderr, res.stderr)
    t.check("a path", f"{d.top}/new:3:1: error: {d.top}/none: No such file" in res.stderr, res.stderr)
    res = ctl("-s", d.path, "-j", "exports", "check", d.top + "/new")
    t.equal("--json", (res.returncode, json.loads(res.stdout)["code"]), (1, "exports_refused"))
    with open(d.top + "/new", "w") as f:
        f.write(f"{one} *(ro)\n/proc *(ro)\n")
    res = ctl("-s", d.path, "exports", "check", d.top + "/new")
    t.check("one that cannot be opened", res.returncode == 1 and f"{d.top}/new:2: error: export /proc: " in res.stderr, res.stderr)
    t.check("which the log does not have", "/proc" not in d.read_log())
    res = subprocess.run([os.environ.get("RINGNFSCTL", "./ringnfsctl"), "-s", d.path, "exports", "check", "-"], input=f"{one} *(ro)\n",
                         capture_output=True, text=True, timeout=60)
    t.equal("standard input", (res.returncode, res.stdout), (0, "1 exports are right\n"))
    t.equal("the server's own", ctl("-s", d.path, "exports", "check").stdout, "2 exports are right\n")
    for args, want in (((d.top + "/absent",), 2), (("a", "b"), 2)):
        t.equal(f"wrong use {args}", ctl("-s", d.path, "exports", "check", *args).returncode, want)


def test_rights(t, d):
    end = time.monotonic() + 20
    while os.stat(d.path).st_gid != GROUP and time.monotonic() < end:
        time.sleep(0.05)
    d.write_exports([f"{d.exports['one']} *(ro)"])
    status, answer = diff(d, sock=connect_as(d.path, USER, GROUP))
    t.equal("a reader may ask", (status, len(answer["changes"])), (200, 2))
    d.write_exports([f"{p} 127.0.0.0/8({RW})" for p in d.exports.values()])
    for path in (d.exports["one"], d.top + "/none"):
        status, answer = diff(d, f"{path} *(ro)\n", connect_as(d.path, USER, GROUP))
        t.equal("but have the server look at no path of his choice", (status, answer.get("code")), (403, "forbidden"))
    status, answer = post(d, "/v1/exports/reload", sock=connect_as(d.path, USER, GROUP))
    t.equal("and not reload", (status, answer["code"]), (403, "forbidden"))
    status, answer = post(d, "/v1/exports/diff", b"/ *\n")
    t.equal("a text without a name", (status, answer["code"]), (400, "bad_request"))
    t.check("a question is not logged as a change", "/v1/exports/diff" not in d.read_log())


def test_revoked(t, d):
    """A client with two opens and a lock below an export that goes."""
    one, two = d.exports["one"], d.exports["two"]
    c = n4.Client(d.port, "loser")
    c.register()
    c.reclaim_complete()
    root = c.path(two)
    opened, fh = c.open(root, b"a", create=True)
    c.open(root, b"b", create=True)
    c.open(c.path(one), b"kept", create=True)
    c.lock(fh, opened["stateid"])
    would = diff(d, f"{one} 127.0.0.0/8({RW})\n")[1]["revoked"]
    t.equal("what would be lost", (would["opens"], would["locks"], would["nlm_owners"]), (2, 1, 0))
    t.equal("by whom", [(x["address"], x["opens"], x["locks"]) for x in would["clients"]], [("127.0.0.1", 2, 1)])
    t.equal("nothing is lost", status_of(d)["held"]["nfs4_opens"], 3)
    d.write_exports([f"{one} 127.0.0.0/8({RW})"])
    res = ctl("-s", d.path, "exports", "reload")
    t.check("what was lost", res.returncode == 0 and "revoked: 2 opens, 1 locks" in res.stdout and "127.0.0.1: 2 opens" in res.stdout,
            res.stdout + res.stderr)
    t.check("and what is left", res.stdout.startswith("1 exports are in force\n"), res.stdout)
    t.check("who did it", d.wait_log(r"control socket: user 0 \(process \d+\): POST /v1/exports/reload: 200"))
    t.equal("in force", list(exports_of(d)), [one])
    c.close()
    d.write_exports([f"{p} 127.0.0.0/8({RW})" for p in (one, two)])
    status, answer = post(d, "/v1/exports/reload")
    t.equal("it comes back", (status, changes_of(answer)[two]["change"]), (200, "added"))


def test_refused(t, d):
    one = d.exports["one"]
    before = exports_of(d)
    d.write_exports([f"{one} 127.0.0.1(ro", "relative *(ro)"])
    res = ctl("-s", d.path, "exports", "reload")
    t.check("a reload that is refused", res.returncode == 1 and f"{d.top}/exports:2:1: error: " in res.stderr
            and "exports_refused" in res.stderr and not res.stdout, res.stderr + res.stdout)
    t.equal("leaves the old ones in force", exports_of(d), before)
    t.check("and is in the log", d.wait_log("reload failed") and d.wait_log("POST /v1/exports/reload: 409"))
    d.write_exports([f"{p} 127.0.0.0/8({RW})" for p in d.exports.values()])
    t.equal("corrected", post(d, "/v1/exports/reload")[0], 200)


def test_together(t, d):
    """Reloads by the socket, by SIGHUP and by ringnfsd --reload at the same time, and peers that leave."""
    results = []

    def by_socket():
        results.append(post(d, "/v1/exports/reload")[0] == 200)

    def by_daemon():
        res = subprocess.run([d.binary, "--config", d.config, "--reload"], capture_output=True, timeout=120,
                             env=harness.sanitizer_env(None))
        results.append(res.returncode == 0)

    threads = [threading.Thread(target=f) for f in (by_socket, by_daemon) * 4]
    for th in threads:
        th.start()
    for _ in range(4):
        with connect(d.path) as s:  # does not wait for its answer
            s.sendall(b"POST /v1/exports/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    d.reload()
    for th in threads:
        th.join(120)
    t.equal("all are answered", (len(results), all(results)), (8, True))
    t.equal("the server is there", status_of(d)["pid"], d.process.pid)


class Silent:
    """File systems that never answer."""

    def __init__(self, folders):
        self.folders, self.fds = folders, []
        for f in folders:
            fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
            options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
            if mounts.libc.mount(b"silent", os.fsencode(f), b"fuse", 0, options):
                raise OSError("no FUSE")
            self.fds.append(fd)

    def close(self):
        for fd in self.fds:
            os.close(fd)
        for f in self.folders:
            mounts.umount(f, "-l")


def test_silent(t):
    """While a reload waits for a file system that is silent, others are served on the socket and by NFS."""
    try:
        with Control(exports={"one": OPTIONS, "two": OPTIONS, "quiet": OPTIONS, "dead": OPTIONS}) as d:
            d.stop()
            silent = Silent([d.exports["quiet"], d.exports["dead"]])
            try:
                d.write_exports([f"{d.exports['one']} *({RW})"])
                d.start()
                check_silent(t, d)
            finally:
                silent.close()
    except (FileNotFoundError, PermissionError, OSError) as e:
        t.skip("a silent file system", repr(e))


def check_silent(t, d):
    answers = []
    d.write_exports([f"{d.exports[n]} *({RW})" for n in ("one", "quiet", "dead")])
    waits = threading.Thread(target=lambda: answers.append(post(d, "/v1/exports/reload")))
    waits.start()
    served = failed = 0
    with d.connect() as c:
        while waits.is_alive():
            failed += c.nfs(r.GETATTR, r.getattr_args(d.root(c, "one")))["status"] != 0
            status_of(d)
            served += not answers
    t.equal("NFS is served", failed, 0)
    t.check("others are answered meanwhile", served > 3, served)
    status, answer = answers[0]
    t.equal("the reload is refused", (status, answer["code"]), (409, "exports_refused"))
    t.check("and says why", any("does not answer" in m["text"] for m in answer["messages"]), answer["messages"])
    with connect(d.path) as s:  # and one whose answer comes after the end
        s.sendall(b"POST /v1/exports/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        t.equal("it stops", d.stop()[0], 0)


def test_load(t):
    """A reload of 1,000 exports while clients call all the time: no call is lost or refused."""
    with Control(exports={"one": OPTIONS}) as d:
        folders = [f"{d.top}/many/{n}" for n in range(MANY)]
        for f in folders:
            os.makedirs(f)
        one = d.exports["one"]

        def write(odd):
            d.write_exports([f"{one} *({RW})"] + [f"{f} 127.0.0.1(ro) 10.0.0.0/8({'rw' if odd else 'ro'})" for f in folders])

        write(0)
        t.equal("1,001 exports", post(d, "/v1/exports/reload")[1]["exports"], MANY + 1)
        with d.connect() as c:
            root = d.root(c, "one")
        clients = [Steady(n, d.connect, root) for n in range(4)]
        v4 = n4.Client(d.port, "beside")
        v4.register()
        v4.reclaim_complete()
        v4.open(v4.path(one), b"held", create=True)
        for n in range(1, 4):
            write(n % 2)
            before = [c.rounds for c in clients]
            status, answer = post(d, "/v1/exports/reload")
            t.equal("the reload", (status, len(answer["changes"]), answer["revoked"]["opens"]), (200, MANY, 0))
            t.check("clients called on", all(c.error is None for c in clients) and sum(c.rounds for c in clients) > sum(before),
                    [c.error for c in clients])
        for c in clients:
            t.equal("a client works after it", c.works(), None)
            c.close()
        t.equal("the open is there", status_of(d)["held"]["nfs4_opens"], 1)
        v4.close()
        harness.finish(t, d)


def health_of(d):
    """What the status and the metrics say of the exports, and the lines for people. The metrics may be those of a second ago."""
    said, end = status_of(d)["exports"], time.monotonic() + 10
    while True:
        with connect(d.path) as s:
            v = parse(ask(s, path="/metrics")[2].decode())
        shown = {reason: value(v, "ringnfs_exports_not_served", reason=reason) for reason in ("in_error", "failed", "unmounted", "removed", "waiting")}
        shown |= {"served": value(v, "ringnfs_exports"), "reload_refused": bool(value(v, "ringnfs_exports_reload_refused"))}
        if shown == said or time.monotonic() > end:
            return said, shown, ctl("-s", d.path, "status").stdout
        time.sleep(0.1)


def test_left_out(t):
    """Exports that are left out, and a reload that is refused, are told of until they are mended."""
    good = {"served": 1, "in_error": 0, "failed": 0, "unmounted": 0, "removed": 0, "waiting": 0, "reload_refused": False}
    with Control(exports={"one": OPTIONS}) as d:
        one = f"{d.exports['one']} *({RW})"
        said, shown, text = health_of(d)
        t.equal("all is well", (said, shown), (good, good))
        t.check("for people", "exports      1 served\n" in text and "REFUSED" not in text, text)
        bad = [one, f"{d.top}/none *({RW})", f"{d.top} *(rw,nonsense)", f"{d.top} *(ro,colour)", f"{d.exports['one']} *(mp={d.top})"]
        d.write_exports(bad[:4])
        t.equal("a reload is refused", post(d, "/v1/exports/reload")[0], 409)
        said, shown, text = health_of(d)
        t.equal("which is told", (said, shown), (good | {"reload_refused": True},) * 2)
        t.check("and people", "reload       the last one was REFUSED" in text, text)
        d.stop()
        d.start()
        said, shown, text = health_of(d)
        t.equal("exports that are left out", (said, shown), (good | {"in_error": 2},) * 2)
        t.check("for people", "1 served; NOT served: 2 in error (ringnfsctl exports list)" in text, text)
        d.write_exports(bad[4:])
        t.equal("a reload", post(d, "/v1/exports/reload")[0], 200)
        t.equal("an export that waits", health_of(d)[0], good | {"served": 0, "waiting": 1})
        d.write_exports(bad[:1])
        t.equal("another", post(d, "/v1/exports/reload")[0], 200)
        t.equal("all is well again", health_of(d)[:2], (good, good))
        os.rename(d.exports["one"], d.top + "/kept")
        t.check("the log says that it was moved", d.wait_log("its directory was moved"))
        end = time.monotonic() + 10
        while exports_of(d)[d.exports["one"]]["state"] != "moved" and time.monotonic() < end:
            time.sleep(0.05)
        text = ctl("-s", d.path, "exports", "list").stdout
        t.check("the list, too", " moved " in text and f"{d.exports['one']}: its directory was moved, and is served" in text, text)
        os.mkdir(d.exports["one"])
        t.equal("a reload would serve another directory", diff(d)[1]["replaced"], [d.exports["one"]])
        text = ctl("-s", d.path, "exports", "diff").stdout
        t.check("as people are told", f"! {d.exports['one']}: another directory is there: file handles from before would be stale" in text, text)
        os.rmdir(d.exports["one"])
        os.rmdir(d.top + "/kept")
        t.check("the log says that it was removed", d.wait_log("its directory was removed: not served"))
        while exports_of(d)[d.exports["one"]]["state"] != "removed" and time.monotonic() < end:
            time.sleep(0.05)
        t.equal("the status, too", health_of(d)[:2], (good | {"served": 0, "removed": 1},) * 2)
        text = ctl("-s", d.path, "exports", "list").stdout
        t.check("and the list", f"{d.exports['one']}: not served: its directory was removed" in text, text)
        os.mkdir(d.exports["one"])
        t.check("a new one is served", d.wait_log("removed and made again"))
        harness.finish(t, d)


class Crowd:
    """Members of the group that ask again and again, each over a connection of its own."""

    def __init__(self, d, n):
        self.ended, self.codes = False, {}
        self.threads = [threading.Thread(target=self._ask, args=(connect_as(d.path, USER, GROUP),)) for _ in range(n)]
        for th in self.threads:
            th.start()

    def _ask(self, s):
        with s:
            while not self.ended:
                try:
                    code = ask(s, "POST", "/v1/exports/diff")[0]
                except (OSError, IndexError, ValueError):
                    return  # the server has ended
                self.codes[code] = self.codes.get(code, 0) + 1

    def wait_full(self):
        """Until some were answered and some refused, so all places are taken again and again."""
        end = time.monotonic() + 60
        while not (self.codes.get(503, 0) > len(self.threads) and self.codes.get(200, 0)) and time.monotonic() < end:
            time.sleep(0.02)

    def close(self):
        self.ended = True
        for th in self.threads:
            th.join(120)


def test_crowd(t):
    """Readers keep the main thread busy with questions: root's changes are done and signals taken."""
    with Control(exports={"one": OPTIONS}) as d:
        folders = [f"{d.top}/many/{n}" for n in range(MANY)]
        for f in folders:
            os.makedirs(f)
        d.write_exports([f"{d.exports['one']} *({RW})"] + [f"{f} 127.0.0.1(ro)" for f in folders])
        d.wait_readers()
        crowd = Crowd(d, 30)
        crowd.wait_full()
        t.check("questions are answered, and those beyond the places refused", crowd.codes.get(503, 0) > 30 and crowd.codes.get(200, 0) > 0,
                crowd.codes)
        t.equal("root's reloads", [post(d, "/v1/exports/reload")[0] for _ in range(8)], [200] * 8)
        since = len(d.read_log())
        d.process.send_signal(signal.SIGUSR1)
        t.check("a signal", d.wait_log("held: ", since))
        since = len(d.read_log())
        d.process.send_signal(signal.SIGHUP)
        t.check("a reload by signal", d.wait_log("serving ", since), d.read_log()[since:][-300:])
        asked = sum(crowd.codes.values())
        t.equal("the end", d.stop()[0], 0)
        t.check("questions came until then", sum(crowd.codes.values()) >= asked > 0, crowd.codes)
        crowd.close()


def main():
    t = Count()
    mounts.own_namespace()
    with Control(exports={"one": OPTIONS, "two": OPTIONS}) as d:
        for test in (test_diff, test_check, test_rights, test_revoked, test_refused, test_together):
            test(t, d)
        harness.finish(t, d)
    test_silent(t)
    test_left_out(t)
    test_load(t)
    test_crowd(t)
    harness.result(t)


if __name__ == "__main__":
    main()
