#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A change of keys in a TLS session (KeyUpdate, RFC 8446 section 4.6.3) by openssl s_client, which asks a server at this machine's PORT.

rekey.py PORT k|K    k: the client changes its key; K: and asks the server to do so, too. Prints "answered" or "closed" for a call before
the change and one behind it. PYTHONPATH names tests/net."""
import os
import select
import subprocess
import sys
import threading
import time

import rpcclient as r
import tlsclient as t


def outcome(p, xid):
    """Of a NULL call: answered, closed, or silent for ten seconds."""
    message = r.call_message(r.NFS, 3, r.NULL, xid=xid)
    try:
        p.stdin.write(r.u32(0x80000000 | len(message)) + message)
    except BrokenPipeError:
        return "closed"
    got, end = b"", time.monotonic() + 10
    while select.select([p.stdout], [], [], max(0, end - time.monotonic()))[0]:
        data = os.read(p.stdout.fileno(), 65536)
        if not data:
            return "closed"
        got += data
        if xid.to_bytes(4, "big") in got:
            return "answered"
    return "silent"


def main():
    port, command = int(sys.argv[1]), sys.argv[2].encode()
    relay = t.Relay(port)
    thread = threading.Thread(target=relay.run)
    thread.start()
    p = subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{relay.port}", "-brief"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    results = [outcome(p, 0x51515151)]
    p.stdin.write(command + b"\n")
    time.sleep(1)  # s_client takes a command only if it is read alone
    results.append(outcome(p, 0x52525252))
    print(*results)
    p.kill()
    p.wait()
    thread.join()


main()
