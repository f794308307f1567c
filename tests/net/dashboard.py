#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""The dashboard for Grafana and the alert rules for Prometheus, in doc/samples: they name metrics, labels and values that a running server
shows, and the dashboard has all of its metrics."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "softverbs"))
import fabric  # adds this folder to the path
import harness
import nfs4client as n4
import promql
from control import Control, ask
from metrics import promtool
from scrape import connect_tcp, parse
from tlsclient import Authority

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = os.path.join(HERE, "..", "..", "doc", "samples")
DASHBOARD, RULES = (os.path.join(SAMPLES, name) for name in ("grafana-ringnfs.json", "prometheus-ringnfs.rules.yml"))
PORT = harness.free_port()
PROMETHEUS = {"job", "instance"}  # labels that Prometheus adds
GROWING = {"rate", "increase"}
# The device of these tests does not count it.
WITHOUT_SAMPLES = {"ringnfs_rdma_receive_not_ready_total": {"device"}}
BUILT_IN = {"row", "stat", "timeseries", "heatmap", "table", "gauge", "bargauge"}


class Shown:
    """What a server shows: families by their types, and the values of each label."""

    def __init__(self, text):
        self.types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        self.values = {}
        for name, pairs in parse(text):
            labels = self.values.setdefault(name, {})
            for label, value in pairs:
                labels.setdefault(label, set()).add(value)

    def family(self, name):
        base = re.sub("_(bucket|sum|count)$", "", name)
        return base if self.types.get(base) == "histogram" else name

    def grows(self, name):
        return self.types[self.family(name)] in ("counter", "histogram")

    def labels(self, name):
        return set(self.values.get(name, WITHOUT_SAMPLES.get(name, ())))


def use(d):
    """Calls of each kind that the samples name."""
    c = n4.Client(d.port, "seen", 2)
    c.register()
    c.reclaim_complete()
    res, fh = c.open(c.path(d.exports["x"]), b"file", create=True)
    c.last(n4.putfh(fh), n4.write(res["stateid"], 0, b"x"))
    c.last(n4.putfh(fh), n4.read(res["stateid"], 0, 1))
    c.getattr(fh)
    c.close()
    with d.connect() as conn:
        d.root(conn, "x")


def shown():
    with fabric.Fabric("sv0=127.0.0.1") as f, tempfile.TemporaryDirectory() as folder:
        crt, key = Authority(folder, "ca").issue("server")
        cluster = folder + "/cluster"
        os.mkdir(cluster, 0o700)
        d = Control({"cluster.name": "lab", "cluster.instance": "a", "cluster.path": cluster, "rdma.enabled": "yes", "metrics.listen": f"127.0.0.1:{PORT}", "tls.certificate": crt, "tls.key": key}, exports={"x": "rw,insecure,no_root_squash"}, env=f.environment())
        d.before += f.command("server")
        with d:
            use(d)
            with connect_tcp(PORT) as s:
                return Shown(ask(s, path="/metrics")[2].decode())


def faults(s, u):
    """What is wrong with the use of a metric."""
    if u.name == "up":  # Prometheus' own
        return
    if s.family(u.name) not in s.types or u.name == s.family(u.name) and s.types[u.name] == "histogram":
        yield f"{u.name} is no metric"
        return
    known = s.labels(u.name) | PROMETHEUS
    for label in {label for label, _, _ in u.matchers} | {label for group in u.groups for label in group}:
        if label not in known:
            yield f"{u.name} has no label {label}"
    for label, op, value in u.matchers:
        if op == "=" and "$" not in value and label in s.labels(u.name) and value not in s.values[u.name][label]:
            yield f"{u.name} has no {label}={value!r}"
    if u.name.endswith("_bucket") and not any("le" in group for group in u.groups):
        yield f"{u.name} is not grouped by le"


def check_expression(t, s, what, text):
    """The metrics that it uses."""
    try:
        found = promql.uses(text)
    except ValueError as e:
        t.check(what, False, e)
        return []
    wrong = [fault for u in found for fault in faults(s, u)]
    t.check(f"{what}: {text}", found and not wrong, wrong)
    return found


def check_variables(t, s, board):
    """Their names."""
    variables = board["templating"]["list"]
    t.equal("the source of data is a variable", [v["query"] for v in variables if v["type"] == "datasource"], ["prometheus"])
    for v in variables:
        if v["type"] != "query":
            continue
        text, label = re.fullmatch(r"label_values\((.*), (\w+)\)", v["query"]["query"]).groups()
        used = check_expression(t, s, f"variable {v['name']}", text)
        t.check(f"variable {v['name']}: its label", all(label in s.labels(u.name) | PROMETHEUS for u in used), label)
    return {v["name"] for v in variables}


def check_target(t, s, what, target, variables):
    """The metrics that it uses."""
    expression = target["expr"]
    used = check_expression(t, s, what, expression)
    for u in used:
        t.equal(f"{what}: {u.name} is shown by its growth", bool(GROWING & set(u.functions)), s.grows(u.name))
    unknown = set(re.findall(r"\$(\w+)", expression)) - variables - {"__rate_interval"}
    t.check(f"{what}: variables", not unknown, unknown)
    t.check(f"{what}: of the chosen server", all({("job", "=", "$job"), ("instance", "=", "$instance")} <= set(u.matchers) for u in used))
    left = [set(u.groups[0]) if u.groups else s.labels(u.name) for u in used]
    missing = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) - set.intersection(*left)
    t.check(f"{what}: labels of the legend", not missing, missing)
    return used


def check_panel(t, s, p, variables):
    """The metrics that it uses."""
    what, source = f"panel {p['title']!r}", {"type": "prometheus", "uid": "${datasource}"}
    t.check(f"{what}: of Grafana's own, with something to show", p["type"] in BUILT_IN and p["targets"], p["type"])
    t.equal(f"{what}: each expression has a letter", len({x["refId"] for x in p["targets"]}), len(p["targets"]))
    t.check(f"{what}: source", all(x["datasource"] == source for x in (p, *p["targets"])))
    return [u for x in p["targets"] for u in check_target(t, s, what, x, variables)]


def check_places(t, panels):
    taken = {}
    for p in panels:
        g = p["gridPos"]
        t.check(f"panel {p['title']!r} is on the board", 0 <= g["x"] and g["x"] + g["w"] <= 24, g)
        for cell in ((x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])):
            other = taken.setdefault(cell, p["title"])
            if other != p["title"]:
                t.check(f"panel {p['title']!r} is not on another", False, other)
                break


def test_dashboard(t, s, board):
    panels = board["panels"]
    t.check("for Grafana 9 or later", board["schemaVersion"] >= 36, board["schemaVersion"])
    t.check("no plugins", not {"__inputs", "__requires"} & set(board))
    t.equal("identities of panels", len({p["id"] for p in panels}), len(panels))
    check_places(t, panels)
    variables = check_variables(t, s, board)
    used = [u for p in panels if p["type"] != "row" for u in check_panel(t, s, p, variables)]
    t.equal("metrics that it does not show", set(s.types) - {s.family(u.name) for u in used}, set())


def expressions(rules):
    """Those of a file of rules, whose long ones go over several lines."""
    return [" ".join(e.removeprefix(">-").split()) for e in re.findall(r"^        expr: (.*\n(?: {10}.*\n)*)", rules, re.M)]


def test_rules(t, s, rules):
    found = expressions(rules)
    t.equal("each alert has an expression", len(found), rules.count("- alert: "))
    for e in found:
        check_expression(t, s, "alert", e)


def test_guide(t, s):
    """The table of metrics is complete, and has no others."""
    with open(os.path.join(SAMPLES, "..", "guide", "monitoring.md")) as f:
        table = re.search(r"^\| subject \|.*?\n(.*?)\n\n", f.read(), re.M | re.S).group(1)
    named = {"ringnfs_" + name for name in re.findall(r"`(\w+)(?:\{[\w,]+\})?`", table)} - {"ringnfs_path"}
    t.equal("metrics that the guide does not name", set(s.types) - named, set())
    # Those of Kerberos are there with a keytab only: gss_hostile.py reads them.
    absent = {name for name in named if name.startswith("ringnfs_gss_")}
    t.equal("metrics that the guide alone names", named - absent - set(s.types), set())


def run_promtool(t, what, tool, *words):
    p = subprocess.run([tool, *words], capture_output=True, text=True, timeout=60)
    t.check(f"promtool {what}", p.returncode == 0, p.stdout + p.stderr)


def test_promtool(t, board):
    tool, why = promtool()
    if not tool:
        t.skip("promtool", why)
        return
    run_promtool(t, "check rules", tool, "check", "rules", RULES)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "file.yml")
        with open(os.path.join(HERE, "alerts.yml")) as f, open(file, "w") as out:
            out.write(f.read().replace("RULES", RULES))
        run_promtool(t, "test rules", tool, "test", "rules", file)
        texts = [x["expr"].replace("$__rate_interval", "5m") for p in board["panels"] for x in p.get("targets", ())]
        with open(file, "w") as out:  # JSON is YAML
            json.dump({"groups": [{"name": "panels", "rules": [{"record": f"panel:{i}", "expr": e} for i, e in enumerate(texts)]}]}, out)
        run_promtool(t, "check rules, of the dashboard's expressions", tool, "check", "rules", file)


def test_reader(t):
    """The reader of expressions finds what is wrong."""
    s = Shown('# TYPE ringnfs_a_total counter\nringnfs_a_total{x="1"} 5\n# TYPE ringnfs_h histogram\nringnfs_h_bucket{le="1"} 1\n')
    for text in ("sum(rate(ringnfs_a_total[5m])", "ringnfs_a_total{x=\"1\"", "sum)ringnfs_a_total(", "ringnfs_a_total{x=1}", "a{x=\"1}"):
        try:
            promql.uses(text)
            t.check(f"refused: {text}", False)
        except ValueError:
            t.check(f"refused: {text}", True)
    for text in ("rate(ringnfs_b_total[5m])", "rate(ringnfs_a[5m])", "rate(ringnfs_h[5m])", 'ringnfs_a_total{y="1"}', 'ringnfs_a_total{x="2"}',
                 "sum by (y) (ringnfs_a_total)", "histogram_quantile(1, sum(rate(ringnfs_h_bucket[5m])))"):
        t.equal(f"one fault: {text}", len([fault for u in promql.uses(text) for fault in faults(s, u)]), 1)
    for text in ('sum by (x) (rate(ringnfs_a_total{x="1",job="$job"}[5m]))', "histogram_quantile(1, sum by (le) (rate(ringnfs_h_bucket[5m]))) > 0"):
        t.equal(f"no fault: {text}", [fault for u in promql.uses(text) for fault in faults(s, u)], [])


def main():
    t = harness.Count()
    with open(DASHBOARD) as f:
        board = json.load(f)
    with open(RULES) as f:
        rules = f.read()
    test_reader(t)
    s = shown()
    test_dashboard(t, s, board)
    test_rules(t, s, rules)
    test_guide(t, s)
    test_promtool(t, board)
    harness.result(t)


if __name__ == "__main__":
    main()
