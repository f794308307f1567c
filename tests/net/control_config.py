#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""ringnfsctl config show: every setting with the place that it comes from, and what the server has made of it."""
import json
import subprocess

import harness
from control import GROUP, USER, Control, ask, connect_as, ctl
from harness import Count


def settings(d):
    return {row["key"]: row for row in json.loads(ctl("--socket", d.path, "--json", "config", "show").stdout)["settings"]}


def line_of(d, key):
    section = ""
    with open(d.config) as f:
        for n, line in enumerate(f, 1):
            if line.startswith("["):
                section = line.strip()[1:-1]
            elif f"{section}.{line.split('=')[0].strip()}" == key:
                return n
    return 0


def test_origins(t, d):
    rows = settings(d)
    t.equal("a default", rows["nfs4.idmap"], {"key": "nfs4.idmap", "value": "auto", "from": "default"})
    t.equal("of the file", rows["tcp.port"],
            {"key": "tcp.port", "value": str(d.port), "from": "file", "file": d.config, "line": line_of(d, "tcp.port")})
    t.equal("of the command line", rows["nfs4.enabled"] and rows["server.strict_exports"],
            {"key": "server.strict_exports", "value": "yes", "from": "command line", "option": "--strict"})
    t.check("memory that is given is no other", "in_force" not in rows["server.memory_max"], rows["server.memory_max"])
    t.check("the number of threads is found", int(rows["server.threads"]["in_force"]) >= 4, rows["server.threads"])
    printed = subprocess.run([d.binary, "--config", d.config, "--strict", "--print-config"], capture_output=True, text=True, timeout=60).stdout
    t.check("--print-config says the same", f"# {d.config}:{line_of(d, 'tcp.port')}\nport = {d.port}\n" in printed
            and "# --strict\nstrict_exports = yes\n" in printed, printed)
    keys = {f"{k.split('.')[1]} =" for k in rows}
    t.check("of every key", keys <= {line.split("=")[0] + "=" for line in printed.splitlines() if "=" in line}, keys)


def test_log_level(t, d):
    t.check("the level as configured", "in_force" not in settings(d)["server.log_level"])
    ctl("--socket", d.path, "log", "debug", "tcp")
    t.equal("one that was set since", settings(d)["server.log_level"].get("in_force"), "tcp: debug")
    ctl("--socket", d.path, "log", "warning")
    t.equal("all of them", settings(d)["server.log_level"].get("in_force"), "warning")
    ctl("--socket", d.path, "log", "info")
    t.check("and back", "in_force" not in settings(d)["server.log_level"])


def test_tool(t, d):
    res = ctl("--socket", d.path, "config", "show")
    lines = {line.split()[0]: line for line in res.stdout.splitlines()}
    t.check("for people", res.returncode == 0 and lines["SETTING"].split() == ["SETTING", "VALUE", "FROM"], res)
    t.check("a file's line", lines["tcp.port"].endswith(f"  {d.config}:{line_of(d, 'tcp.port')}"), lines["tcp.port"])
    t.check("an option", lines["server.strict_exports"].endswith("  --strict"), lines["server.strict_exports"])
    t.check("what is in force", "0 (in force: " in lines["server.threads"] and lines["server.threads"].endswith("default"), lines)
    for args in (("config",), ("config", "set"), ("config", "show", "all")):
        t.equal(f"wrong use {args}", ctl("--socket", d.path, *args).returncode, 2)
    d.wait_readers()
    with connect_as(d.path, USER, GROUP) as s:
        t.equal("a reader may ask", ask(s, path="/v1/config")[0], 200)


def main():
    t = Count()
    with Control(args=("--strict",)) as d:
        for test in (test_origins, test_log_level, test_tool):
            test(t, d)
        harness.finish(t, d)
    harness.result(t)


if __name__ == "__main__":
    main()
