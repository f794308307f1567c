#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's RDMA programs, unchanged, over the fabric: rdmacm-utils, perftest, ibverbs-utils."""
import os
import re
import signal
import sys

import fabric
from fabric import Fabric, free_port, have, tcp_listens, wait_for

import harness

count = harness.Count()


def ended_well(program, status, out):
    """rping destroys its event channel while a thread of its own still asks it for events. If that thread comes late, it
    finds the closed descriptor and ends the process: after all work is done, and on any device."""
    late = "rdma_get_cm_event: Bad file descriptor"
    return status == 0 or (program == "rping" and status == 255 and late in out)


NOISY = "Correlation coefficient"  # perftest could not measure the rate of the processor's clock, and has no result


def pair(what, server, client, port, check=None, devices=None, tcp=False):
    """The client is started when the server listens. Both must end with status 0. On a busy machine most tries may be noisy."""
    if not (have(server[0]) and have(client[0])):
        count.skip(what, f"{server[0]} is not installed")
        return
    tries = 1
    while not try_pair(what, server, client, port, check, devices, tcp, tries < 30):
        tries += 1


def try_pair(what, server, client, port, check, devices, tcp, again):
    """False if it is to be tried again."""
    # perftest's server listens twice, the second time while its client is already connecting.
    with Fabric(devices, SOFTVERBS_LISTEN_WAIT_MS="60000") as f:
        s = f.start("server", *server)
        wait_for(lambda: s.poll() is not None or (tcp_listens(port) if tcp else f.listens(port)))
        status, out = f.run("client", *client)
        if NOISY in out and again:
            s.kill()
            f.finish(s)
            return False
        good = count.check(f"{what}: client", ended_well(client[0], status, out), f"{status}: {out}")
        if not good:
            s.kill()
        s_status, s_out = f.finish(s)
        if good:
            count.check(f"{what}: server", ended_well(server[0], s_status, s_out), f"{s_status}: {s_out}")
            if check:
                check(what, out, s_out)
    return True


def devices():
    for program, want in (("ibv_devices", r"sv0"), ("ibv_devinfo", r"hca_id:\s+sv0[\s\S]*PORT_ACTIVE")):
        if not have(program):
            count.skip(program, "not installed")
            continue
        with Fabric() as f:
            status, out = f.run("one", program)
            count.check(program, status == 0 and re.search(want, out), f"{status}: {out}")
    if have("ibv_devices"):
        with Fabric("ib0=127.0.0.1,::1 iw0=127.0.0.2:iwarp") as f:
            _, out = f.run("one", "ibv_devices")
            count.check("several devices by configuration", "ib0" in out and "iw0" in out, out)


def rping():
    for what, addr, more in (("rping IPv4", "127.0.0.1", []), ("rping IPv6", "::1", []),
                             ("rping with its own queue pair", "127.0.0.1", ["-q"]),
                             ("rping large", "127.0.0.3", ["-S", 60000])):
        port = free_port()
        common = ["-a", addr, "-p", port, "-C", 20, "-V", *more]
        pair(what, ["rping", "-s", *common], ["rping", "-c", "-v", *common], port,
             lambda what, out, _: count.equal(f"{what}: pings", out.count("ping data"), 20))
    port = free_port()
    pair("rping over iWARP", ["rping", "-s", "-a", "127.0.0.1", "-p", port, "-C", 20, "-V"],
         ["rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", 20, "-V"], port, devices="iw0=127.0.0.1:iwarp")


def endpoints():
    port = free_port()
    pair("rdma_server and rdma_client", ["rdma_server", "-p", port], ["rdma_client", "-s", "127.0.0.1", "-p", port], port,
         lambda what, out, s_out: count.check(f"{what}: both end well", "end 0" in out and "end 0" in s_out, out + s_out))


def bandwidth(what, out, _):
    """The table has a line that begins with the size and has a figure that is not zero."""
    rows = re.findall(r"^ (\d+) +(\d+) +([\d.]+) +([\d.]+)", out, re.M)
    if count.check(f"{what}: a result", rows and float(rows[-1][3]) > 0, out):
        print(f"{what}: {' '.join(rows[-1])}", flush=True)


def perftest():
    for program, more in (("ib_write_bw", ["-s", 65536]), ("ib_read_lat", ["-s", 64]), ("ib_send_bw", ["-s", 4096])):
        for how, flags in (("", []), (" -R", ["-R"])):
            port = free_port()
            common = [program, "-d", "sv0", "-p", port, "-n", 200, "-F", *more, *flags]
            pair(program + how, common, common + ["127.0.0.1"], port, bandwidth, tcp=not flags)


def killed(what, victim):
    """One side of an endless rping is killed: the other must be told, and end."""
    if not have("rping"):
        count.skip(what, "rping is not installed")
        return
    port = free_port()
    with Fabric() as f:
        ends = {"server": f.start("server", "rping", "-s", "-d", "-a", "127.0.0.1", "-p", port)}
        wait_for(lambda: f.listens(port))
        ends["client"] = f.start("client", "rping", "-c", "-d", "-a", "127.0.0.1", "-p", port)
        count.check(f"{what}: both are at work", wait_for(lambda: pinging(ends["client"])))
        ends[victim].send_signal(signal.SIGKILL)
        other = "client" if victim == "server" else "server"
        status, out = f.finish(ends[other])
        # It may end by a failed completion before it has come to print the event.
        noticed = "DISCONNECT" in out or status not in (None, 0)
        count.check(what, status is not None and noticed, f"{status}: {out[-2000:]}")


def pinging(p):
    """Has it said that a message was sent?"""
    return b"send completion" in os.pread(p.out.fileno(), 65536, 0)


def cost():
    program = "tools/softverbs/cost"
    with Fabric() as f:
        status, out = f.run("both", os.path.abspath(program))
        print(out, flush=True)
        count.check("cost", status == 0 and "MB/s" in out, status)


def main():
    if not os.path.exists(fabric.LIB):
        raise SystemExit(f"{fabric.LIB} is not there: build it, or set SOFTVERBS_LIB")
    devices()
    rping()
    endpoints()
    perftest()
    killed("a client that is killed", "client")
    killed("a server that is killed", "server")
    cost()
    harness.result(count)


if __name__ == "__main__":
    sys.exit(main())
