# SPDX-License-Identifier: BSD-2-Clause
"""A CephFS of Debian's packages on this machine, small and in memory: a monitor, an object store, metadata servers, and mounts by ceph-fuse.

All is in a folder and at ports of its own. Users are asked for their keys (cephx), so that capabilities count."""
import errno
import json
import os
import shutil
import subprocess
import time
import uuid

from harness import scratch, skip_all
from ports import free_port

PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "ceph-mds", "ceph-authtool", "monmaptool")
CAPS = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "osd": "allow *", "mds": "allow *", "mgr": "allow *"},
    "client.mount": {"mon": "allow r", "osd": "allow rw tag cephfs data=cephfs", "mds": "allow rw"},
    "client.ringnfs": {"mon": "allow r", "osd": "allow rw pool=nfs", "mds": "allow *"},
    "osd.0": {"mon": "allow profile osd", "osd": "allow *"},
}

CONF = """[global]
fsid = {fsid}
mon_host = [v2:{address}:{mon},v1:{address}:{mon1}]
public_network = {address}/32
cluster_network = {address}/32
auth_cluster_required = cephx
auth_service_required = cephx
auth_client_required = cephx
auth_allow_insecure_global_id_reclaim = false
keyring = {top}/keyring
run_dir = {top}/run
admin_socket = {top}/run/$name.$pid.asok
log_file = {top}/log/$name.log
pid_file =
log_to_stderr = false
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
[mon]
mon_data = {top}/mon
mon_initial_members = a
mon_data_avail_warn = 1
mon_data_avail_crit = 0
mon_cluster_log_file = {top}/log/cluster.log
[osd]
osd_data = {top}/osd
osd_objectstore = memstore
memstore_device_bytes = {bytes}
osd_memory_target = 939524096
osd_op_num_shards = 2
osd_op_num_threads_per_shard = 1
osd_class_load_list = *
osd_class_default_list = *
[mds]
mds_data = {top}/mds.$id
mds_cache_memory_limit = 134217728
mds_reconnect_timeout = 10
[client]
client_mount_timeout = 30
client_acl_type = posix_acl
fuse_default_permissions = false
fuse_disable_pagecache = true
"""


def lacking(*more):
    """Reason for which no such cluster can run here, or None. more: further programs that are needed."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [p for p in (*PROGRAMS, *more) if not shutil.which(p, path=path)]
    if missing:
        return f"{', '.join(missing)} not installed (ceph-mon ceph-osd ceph-mds ceph-fuse ceph-common)"
    if os.geteuid() != 0 or "ceph-fuse" in more and not os.path.exists("/dev/fuse"):
        return "it needs root, and /dev/fuse for ceph-fuse"
    return None


class Mount:
    """A CephFS client of its own, as a machine has one."""

    def __init__(self, ceph, number):
        self.path = f"{ceph.top}/mnt.{number}"
        os.mkdir(self.path)
        self.process = subprocess.Popen(["ceph-fuse", "-f", "-c", ceph.conf, "-n", "client.mount", self.path], stdin=subprocess.DEVNULL,
                                        stdout=ceph.output, stderr=ceph.output)
        end = time.monotonic() + 40
        while not os.path.ismount(self.path):
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit("ceph-fuse does not mount\n" + ceph.messages())
            time.sleep(0.05)
        self.client = os.getxattr(self.path, "ceph.client_id").decode()[len("client"):]

    def is_given_up(self):
        try:
            os.listdir(self.path)
            return False
        except OSError as e:
            return e.errno == errno.ESHUTDOWN

    def kill(self):
        """Ends the client as if its machine had lost power."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        subprocess.run(["umount", "-l", self.path], check=False, stderr=subprocess.DEVNULL)


class Ceph:
    def __init__(self, mds=2, size=1 << 30, address="127.0.0.1", more=("ceph-fuse",)):
        if why := lacking(*more):
            skip_all(why)
        os.environ["PATH"] += ":/usr/sbin:/sbin"
        self.top = scratch()
        os.chmod(self.top, 0o755)
        self.conf = self.top + "/ceph.conf"
        self.output = open(self.top + "/output", "ab")
        self.processes, self.mounts, self.numbers = {}, [], 0
        for d in ("run", "log", "mon", "osd"):
            os.mkdir(f"{self.top}/{d}")
        self.fsid, self.mds_names = str(uuid.uuid4()), [f"m{i}" for i in range(mds)]
        with open(self.conf, "w") as f:
            f.write(CONF.format(fsid=self.fsid, mon=free_port(), mon1=free_port(), top=self.top, bytes=size, address=address))

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for m in self.mounts:
            m.kill()
        for p in self.processes.values():
            p.kill()
            p.wait()
        self.output.close()
        shutil.rmtree(self.top, ignore_errors=True)

    def messages(self):
        with open(self.top + "/output", errors="replace") as f:
            return f.read()[-4000:]

    def run(self, *args):
        res = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        if res.returncode:
            raise SystemExit(f"{' '.join(args)}: {res.stdout}{res.stderr}")
        return res.stdout

    def ceph(self, *args):
        return self.run("ceph", "-c", self.conf, "-n", "client.admin", "--connect-timeout", "20", *args)

    def daemon(self, kind, name):
        self.processes[f"{kind}.{name}"] = subprocess.Popen([f"ceph-{kind}", "-f", "-c", self.conf, "-i", name], stdin=subprocess.DEVNULL,
                                                            stdout=self.output, stderr=self.output)

    def start(self):
        keyring, monmap = self.top + "/keyring", self.top + "/monmap"
        caps = dict(CAPS)
        for m in self.mds_names:
            caps[f"mds.{m}"] = {"mon": "allow profile mds", "osd": "allow *", "mds": "allow *"}
        self.run("ceph-authtool", "--create-keyring", keyring)
        for name, c in caps.items():
            self.run("ceph-authtool", keyring, "--gen-key", "-n", name, *[w for s, text in c.items() for w in ("--cap", s, text)])
        with open(self.conf) as f:
            mon = next(line for line in f if line.startswith("mon_host")).split(" = ")[1].strip()
        self.run("monmaptool", "--create", "--fsid", self.fsid, "--addv", "a", mon, monmap)
        self.run("ceph-mon", "-c", self.conf, "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", keyring)
        self.daemon("mon", "a")
        disk = str(uuid.uuid4())
        self.ceph("osd", "new", disk)
        self.run("ceph-osd", "-c", self.conf, "-i", "0", "--mkfs", "--osd-uuid", disk)
        self.daemon("osd", "0")
        for pool in ("meta", "data", "nfs"):
            self.ceph("osd", "pool", "create", pool, "8")
        self.ceph("fs", "new", "cephfs", "meta", "data")
        for m in self.mds_names:
            os.mkdir(f"{self.top}/mds.{m}")
            self.daemon("mds", m)
        self.await_active()

    def active(self):
        """Name of the active metadata server, or None."""
        for info in json.loads(self.ceph("fs", "get", "cephfs", "--format", "json"))["mdsmap"]["info"].values():
            if info["state"] == "up:active":
                return info["name"]
        return None

    def await_active(self, but=None):
        end = time.monotonic() + 90
        while (name := self.active()) in (None, but):
            if time.monotonic() > end:
                raise SystemExit("no metadata server becomes active\n" + self.messages())
            time.sleep(0.3)
        return name

    def mount(self):
        self.numbers += 1
        self.mounts.append(Mount(self, self.numbers))
        return self.mounts[-1]

    def evicted(self, client):
        """True if no metadata server knows the client any more."""
        return all(str(s["id"]) != client for s in json.loads(self.ceph("tell", "mds." + self.await_active(), "client", "ls")))

    def evict(self, client):
        self.ceph("tell", "mds." + self.await_active(), "client", "evict", f"id={client}")

    def fail_mds(self, seconds=0):
        """Kills the active metadata server, tells the monitors after that time, so that the other one takes over, and starts it again."""
        name = self.active()
        p = self.processes[f"mds.{name}"]
        p.kill()
        p.wait()
        time.sleep(seconds)
        self.ceph("mds", "fail", name)
        self.await_active(name)
        self.daemon("mds", name)
