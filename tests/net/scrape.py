# SPDX-License-Identifier: BSD-2-Clause
"""Reads metrics: over the control socket or TCP, as a table from a name and its labels to a value."""
import re
import socket
import time

from control import ask, connect

LINE = re.compile(r'([a-z0-9_]+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"(?:,|$)')


def parse(text):
    """{(name, ((label, value), ...)): number}. A line that is none, or that is there twice, is an error."""
    values = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = LINE.match(line)
        if not found:
            raise ValueError(f"no metric: {line!r}")
        name, labels, value = found.groups()
        pairs = tuple(sorted(LABEL.findall(labels or "")))
        if (name, pairs) in values:
            raise ValueError(f"twice: {line!r}")
        values[name, pairs] = float(value)
    return values


def get(d, accept=""):
    """(status, headers, text), over the socket."""
    with connect(d.path) as s:
        status, headers, body = ask(s, path="/metrics", extra=f"Accept: {accept}\r\n" if accept else "")
        return status, headers, body.decode()


def connect_tcp(port, source="127.0.0.1", host="127.0.0.1"):
    return socket.create_connection((host, port), timeout=30, source_address=(source, 0))


def scrape(d):
    """The values now: older than they may be kept."""
    time.sleep(0.25)
    return parse(get(d)[2])


def value(values, metric, **labels):
    """The sum of those that have the labels; 0 if there are none."""
    wanted = set(labels.items())
    return sum(v for (name, pairs), v in values.items() if name == metric and wanted <= set(pairs))


def await_value(d, metric, good, seconds=30, **labels):
    """Its value once it is good, or in the end."""
    end = time.monotonic() + seconds
    while not good(v := value(scrape(d), metric, **labels)) and time.monotonic() < end:
        pass
    return v


class Growth:
    """What has grown between two looks, in a with statement."""

    def __init__(self, d):
        self.d = d

    def __enter__(self):
        self.before = scrape(self.d)
        return self

    def __exit__(self, *_):
        self.after = scrape(self.d)

    def of(self, metric, **labels):
        return value(self.after, metric, **labels) - value(self.before, metric, **labels)
