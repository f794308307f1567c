# SPDX-License-Identifier: BSD-2-Clause
"""Many RDMA clients at once while the fabric goes wrong by chance: what single faults do not meet is how they overlap.

Each client has a file of its own and sends a call again, on a new connection, until it is answered, as Linux does.
"""
import os
import random
import threading

import rpcclient as r
from rdmaclient import Peer

CLIENTS, CALLS = 6, int(os.environ.get("STORM_CALLS", 60))
BLOCK, BLOCKS = 50000, 8
WAIT = 3  # seconds without an answer, after which a client tries a new connection
RULES = """on post chance 60 seed {0} : drop-connection
on completion chance 80 seed {1} : drop-connection
on completion chance 10 seed {2} : delay 3ms
on completion chance 40 seed {3} : reorder
on request chance 30 seed {4} : rnr
on post chance 90 seed {5} : full-sq
on request chance 150 seed {6} : stop-reading
on reg-mr chance 12 seed {7} : fail 12"""


class Client(threading.Thread):
    def __init__(self, b, n, seed):
        super().__init__(daemon=True)
        self.b, self.random, self.name = b, random.Random(seed), f"storm-{n}"
        self.host = "127.0.0.2"
        with b.d.connect() as c:
            self.fh = c.nfs(r.CREATE, r.create_args(b.root, self.name))["fh"]
        self.content = bytearray(BLOCK * BLOCKS)
        with open(self.path(), "wb") as f:
            f.write(self.content)
        self.peer, self.connected = Peer(b.env), False
        self.done = self.again = self.long_listings = 0
        self.wrong = None

    def path(self):
        return os.path.join(self.b.dir, self.name)

    def attempt(self, proc, args, xid):
        """The results, or None: on this connection there are none to be had."""
        try:
            if not self.connected:
                self.peer.connect(self.host, self.b.port)
                self.connected = True
            self.peer.send(self.peer.call_for(proc, args, xid=xid))
            while (raw := self.peer.receive(WAIT)) is not None:
                if raw[:4] == r.u32(xid):
                    return self.peer.reply(proc, raw)
        except r.Closed:
            pass
        if self.connected:
            self.peer.drop()
        self.connected = False
        return None

    def call(self, proc, args):
        xid = r.next_xid()
        while (x := self.attempt(proc, args, xid)) is None:
            self.again += 1
        self.done += 1
        if x["status"]:
            raise ValueError(f"{r.NAMES[proc]}: status {x['status']}")
        return x

    def step(self):
        at = self.random.randrange(BLOCKS) * BLOCK
        what = self.random.choice((r.READ, r.READ, r.WRITE, r.WRITE, r.READDIR))
        if what == r.WRITE:
            data = self.random.randbytes(BLOCK)
            self.call(what, r.write_args(self.fh, at, data))
            self.content[at:at + BLOCK] = data
        elif what == r.READ:
            if self.call(what, r.read_args(self.fh, at, BLOCK))["data"] != self.content[at:at + BLOCK]:
                raise ValueError("READ gave other data")
        else:
            n = len(self.call(what, r.readdir_args(self.b.many, count=1 << 19))["entries"])
            if not n:
                raise ValueError("READDIR gave no entries")
            # Without memory for a long reply the server lists what a short one takes.
            self.long_listings += n >= 1000

    def run(self):
        try:
            for _ in range(CALLS):
                self.step()
        except Exception as e:  # whatever it is, the test shall say it
            self.wrong = repr(e)

    def end(self):
        self.peer.kill()
        with open(self.path(), "rb") as f:
            return self.wrong or (None if f.read() == self.content else "acknowledged data are not in the file")


def storm(b):
    """Errors, as a cell of the table: (wrong, data, effect)."""
    rnd = b.random
    clients = [Client(b, n, rnd.random()) for n in range(CLIENTS)]
    fired = b.fabric.status(b.slot)["fired"]
    b.fabric.rule(b.slot, RULES.format(*(rnd.randrange(1, 1 << 31) for _ in range(8))))
    for c in clients:
        c.start()
    b.meanwhile()
    for c in clients:
        c.join(600)
    b.meanwhile()
    fired = b.fabric.status(b.slot)["fired"] - fired
    b.fabric.tell(b.slot, "clear")
    wrong = [w for c in clients if (w := "not finished" if c.is_alive() else c.end())]
    calls, again = sum(c.done for c in clients), sum(c.again for c in clients)
    print(f"storm: {calls} calls of {CLIENTS} clients, {again} sent again, {fired} faults")
    if not wrong and (calls != CLIENTS * CALLS or fired < calls // 10):
        wrong = ["too little has gone wrong to mean anything"]
    if not wrong and not any(c.long_listings for c in clients):
        wrong = ["no READDIR gave many entries"]
    return wrong or None
