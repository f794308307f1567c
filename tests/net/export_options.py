#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""Options of exports(5): each that nfs-utils' manual has is known here, by the parser, ringnfs-exports(5) and the guide's table.

$EXPORTS_MANUAL is another manual to read, such as that of a newer package; it may be packed by gzip."""
import gzip
import os
import re
import subprocess

import harness
from harness import Count, Daemon, result

# Of nfs-utils 3.1.1 (Debian sid, 28 November 2026), the manual's own and those that its text has as their opposites, and their values.
KNOWN = {
    **dict.fromkeys(("secure insecure rw ro async sync no_wdelay wdelay nohide hide crossmnt nocrossmnt subtree_check no_subtree_check "
                     "sign_fh insecure_locks no_auth_nlm auth_nlm secure_locks mp nordirplus rdirplus pnfs no_pnfs security_label "
                     "no_security_label root_squash no_root_squash all_squash no_all_squash acl no_acl").split(), ""),
    "anonuid": "=1", "anongid": "=1", "fsid": "=1", "mountpoint": "", "sec": "=sys", "xprtsec": "=none", "refer": "=/a@b",
    "replicas": "=/a@b", "reexport": "=auto-fsidnum",
}
REFUSED = ("reexport",)  # with a message of their own
SRC = os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def names_in(manual):
    """Names of the options that a manual describes: the heads of its lists."""
    with open(manual, "rb") as f:
        text = f.read()
    text = (gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text).decode()
    lists = text[text.index(".SS General Options"):text.index(".SH EXAMPLE")]
    return {name for head in re.findall(r"^\.TP\n\.\w+ (.*)$", lists, re.M) for name in re.findall(r"\b([a-z]\w+)\b", head.split("=")[0])
            if name not in ("and", "or", "option")}


def told(d, option):
    """What --check-config says of an export with the option."""
    d.write_exports([f"{d.exports['e']} 127.0.0.1({option})"])
    end = subprocess.run([d.binary, "--check-config", "--config", d.config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env=harness.sanitizer_env(None), timeout=60)
    return end.returncode, end.stdout


def test_option(t, d, name, value):
    status, text = told(d, name + value)
    t.check(f"{name} is known", "unknown option" not in text, text)
    t.equal(f"{name}: exit status", status == 0, name not in REFUSED)
    t.check(f"{name}: what is refused is told why", (f"{name}=" in text and "not supported" in text) == (name in REFUSED), text)


def test_documents(t):
    for path in ("man/ringnfs-exports.5", "doc/guide/from-nfsd.md"):
        with open(os.path.join(SRC, path)) as f:
            words = set(re.findall(r"\w+", f.read()))
        missing = sorted(name for name in KNOWN if name not in words)
        t.equal(f"options that {path} does not tell of", missing, [])


def test_unsigned(t):
    with Daemon({"e": "rw,sign_fh"}, {"vfs.handle_mac": "no"}) as d:
        t.check("sign_fh is not obeyed without handle_mac: a warning", d.wait_log("warning: export .*sign_fh is not obeyed"), d.read_log())
        d.stop()
    with Daemon({"e": "rw,sign_fh"}) as d:
        t.check("sign_fh needs no warning", "sign_fh" not in d.read_log(), d.read_log())
        d.stop()


def main():
    t = Count()
    d = Daemon({"e": "rw"})
    try:
        for name, value in KNOWN.items():
            test_option(t, d, name, value)
        for manual in ("/usr/share/man/man5/exports.5.gz", os.environ.get("EXPORTS_MANUAL")):
            if manual and os.path.exists(manual):
                t.equal(f"options of {manual} that are not known here", sorted(names_in(manual) - set(KNOWN)), [])
    finally:
        d.__exit__()
    test_documents(t)
    test_unsigned(t)
    result(t)


if __name__ == "__main__":
    main()
