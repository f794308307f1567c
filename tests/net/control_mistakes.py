#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsctl asked about what is not there, or with words that are mistyped: each command says so, and does not end with 0."""
import os

import harness
from control import Control, ctl
from control_state import client_id, new_client
from harness import Count

# Words, exit status, and what standard error says.
CASES = (
    ("clients 0", 1, "there is no client 0"),
    ("clients 7", 1, "there is no client 7"),
    ("clients nobody", 1, "a client's id is expected"),
    ("clients 192.0.2.1", 1, "there is no client 192.0.2.1"),
    ("connections nobody", 1, "an IP address is expected"),
    ("connections 192.0.2.1", 1, "there is no connection of 192.0.2.1"),
    ("--json connections 192.0.2.1", 1, "there is no connection of 192.0.2.1"),
    ("sessions 0", 1, "there is no NFSv4 client 0x0000000000000000"),
    ("sessions 7", 1, "there is no NFSv4 client 0x0000000000000007"),
    ("opens --client 0", 1, "an id or address"),
    ("opens --client 7", 1, "there is no NFSv4 client 0x0000000000000007"),
    ("opens --client 0x7", 1, "there is no NFSv4 client 0x0000000000000007"),
    ("opens --client nobody", 1, "an id or address"),
    ("opens --client 192.0.2.1", 1, "there is no NFSv3 client 192.0.2.1"),
    ("--json opens --client 7", 1, "there is no NFSv4 client"),
    ("locks --client 7", 1, "there is no NFSv4 client"),
    ("locks --client 192.0.2.1", 1, "there is no NFSv3 client 192.0.2.1"),
    ("delegations --client 7", 1, "there is no NFSv4 client"),
    ("opens --file ONE/none", 1, "ONE/none: No such file or directory"),
    ("locks --file ONE/none", 1, "ONE/none: No such file or directory"),
    ("delegations --file ONE/none", 1, "ONE/none: No such file or directory"),
    ("open close 1 --yes", 1, "no opens are chosen by that"),
    ("open close word --yes", 1, "no opens are chosen by that"),
    ("open close --client 7 --yes", 1, "there is no NFSv4 client"),
    ("open close --file ONE/none --yes", 1, "ONE/none: No such file or directory"),
    ("open close --file ONE/empty --yes", 1, "no opens are chosen by that"),
    ("lock release nlm-7 --yes", 1, "no locks are chosen by that"),
    ("delegation recall word --yes", 1, "no delegations are chosen by that"),
    ("delegation recall word --revoke --yes", 1, "no delegations are chosen by that"),
    ("client evict 7 --yes", 1, "there is no NFSv4 client"),
    ("trace --client 7 --seconds 1", 1, "there is no NFSv4 client"),
    ("trace --client nobody --seconds 1", 1, "an id or address"),
    ("log info nfs5", 1, "admin, daemon, gss, nfs2, nfs3, nfs4, rdma, tcp or vfs"),
    ("help nobody", 2, "'nobody' is no command"),
    ("help opens locks", 2, "usage: ringnfsctl help"),
    ("nobody", 2, "'nobody' is no command"),
)


def test_mistakes(t, d):
    one = d.exports["one"]
    for words, status, said in CASES:
        res = ctl("--socket", d.path, *words.replace("ONE", one).split())
        t.check(words, res.returncode == status and said.replace("ONE", one) in res.stderr, (res.returncode, res.stdout, res.stderr))


def test_there(t, d, c):
    """The same about what is there is no mistake, though nothing is held."""
    for words in (f"sessions {client_id(c)}", f"opens --client {client_id(c)}", f"locks --client {c.clientid}", "locks --client 127.0.0.1",
                  f"opens --client {client_id(c)} --file ONE/empty", "delegations --file ONE/empty", "connections 127.0.0.1",
                  f"trace --client {client_id(c)} --seconds 1", "trace --client 192.0.2.1 --seconds 1"):
        res = ctl("--socket", d.path, *words.replace("ONE", d.exports["one"]).split())
        t.equal(words, (res.returncode, res.stderr), (0, ""))


def test_help(t):
    """No server is asked."""
    whole = ctl("--help").stdout
    res = ctl("--socket", "/none", "help")
    t.equal("help is --help", (res.returncode, res.stdout), (0, whole))
    for line in whole.split("\n\n")[2].splitlines():
        command = line.split()[0]
        res = ctl("help", command)
        t.check(f"help {command}", res.returncode == 0 and f"ringnfsctl {command}" in res.stdout, res)
    res = ctl("help", "exports")
    t.check("the commands of exports", "  explain " in res.stdout, res)


def main():
    t = Count()
    with Control() as d:
        with open(os.path.join(d.exports["one"], "empty"), "w"):
            pass
        c = new_client(d, "a client")
        with d.connect() as conn:
            d.root(conn, "one")
            test_mistakes(t, d)
            test_there(t, d, c)
        c.close()
        test_help(t)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
