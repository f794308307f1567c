# SPDX-License-Identifier: BSD-2-Clause
"""A Kerberos realm for one test: a KDC of MIT's on a free port of loopback, with its files in a temporary folder.

Names are resolved without DNS. The processes of the realm get their configuration by the environment: Realm.env.
"""
import os
import shutil
import socket
import subprocess
import tempfile
import time

from ports import free_port

REALM = "TEST.RINGNFS"
NEEDED = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")

KRB5_CONF = """[libdefaults]
 default_realm = {realm}
 dns_lookup_realm = false
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 forwardable = false
 clockskew = {clockskew}
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {realm}
"""
KDC_CONF = """[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {top}/principal
  key_stash_file = {top}/stash
  acl_file = {top}/acl
  max_life = 1d
  supported_enctypes = {enctypes}
 }}
"""


def missing():
    """Programs that are not installed."""
    return [p for p in NEEDED if not find(p)]


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin")


class Realm:
    def __init__(self, enctypes="aes256-cts-hmac-sha1-96:normal", clockskew=300):
        self.top = tempfile.mkdtemp(prefix="ringnfs-kdc-", dir="/var/tmp")
        self.port, self.process = free_port(), None
        where = {"realm": REALM, "port": self.port, "top": self.top, "enctypes": enctypes,
                 "clockskew": clockskew}
        for file, text in (("krb5.conf", KRB5_CONF), ("kdc.conf", KDC_CONF)):
            with open(self.path(file), "w") as f:
                f.write(text.format(**where))
        self.env = {"KRB5_CONFIG": self.path("krb5.conf"), "KRB5_KDC_PROFILE": self.path("kdc.conf"),
                    "KRB5RCACHEDIR": self.top}

    def path(self, name):
        return os.path.join(self.top, name)

    def run(self, program, *args):
        done = subprocess.run([find(program), *args], env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        if done.returncode:
            raise SystemExit(f"{program} {' '.join(args)}: {done.stdout}")
        return done.stdout

    def admin(self, query):
        return self.run("kadmin.local", "-r", REALM, "-q", query)

    def __enter__(self):
        try:
            self.run("kdb5_util", "create", "-r", REALM, "-s", "-W", "-P", "a password of no use")
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.top, ignore_errors=True)

    def start(self):
        self.process = subprocess.Popen([find("krb5kdc"), "-n", "-r", REALM], env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("krb5kdc does not start")

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(20)
        self.process = None

    def keytab(self, name, *principals):
        """A keytab with new keys of those principals, which are made if they are not there."""
        path = self.path(name)
        for p in principals:
            self.admin(f"addprinc -randkey {p}")
            self.admin(f"ktadd -k {path} {p}")
        return path

    def login(self, user, lifetime="1h"):
        """A credentials cache with a ticket of that user."""
        cache = self.path(f"ccache.{user.replace('/', '_')}")
        keytab = self.path(f"keytab.{user.replace('/', '_')}")
        if not os.path.exists(keytab):
            self.keytab(os.path.basename(keytab), user)
        self.run("kinit", "-l", lifetime, "-c", cache, "-k", "-t", keytab, user)
        return cache
