# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium, driven over a pair of pipes by its DevTools protocol: JSON messages that end with a zero byte."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

BROWSERS = ("chromium-headless-shell", "chromium", "chrome", "google-chrome")
PATIENCE = 60


def browser():
    """The program, or None."""
    return os.environ.get("CHROMIUM") or next((found for b in BROWSERS if (found := shutil.which(b))), None)


class Page:
    """One page of a browser of its own. complaints: errors and warnings of the console, exceptions, breaches of the policy."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="ringnfs-page-")
        self.number, self.complaints, self.waiting = 0, [], b""
        to_read, self.to = os.pipe()
        self.of, to_write = os.pipe()

        def give():
            # The browser reads descriptor 3 and writes to 4. The first copies are out of the way of both.
            read, write = os.dup(to_read), os.dup(to_write)
            read, write = (os.dup(read) if read in (3, 4) else read), (os.dup(write) if write in (3, 4) else write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--hide-scrollbars", "--no-proxy-server", f"--user-data-dir={self.folder}/profile", "--remote-debugging-pipe",
             "about:blank"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=give, close_fds=False,
            env={**os.environ, "HOME": self.folder, "TMPDIR": self.folder})
        os.close(to_read)
        os.close(to_write)
        self.session = None
        try:
            page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
            self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
                self.call(domain + ".enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.close(self.to)  # the browser ends itself
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.of)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self, seconds):
        """The next message, or None after that time."""
        end = time.monotonic() + seconds
        while b"\0" not in self.waiting:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.of], [], [], left)[0]:
                return None
            data = os.read(self.of, 1 << 16)
            if not data:
                raise SystemExit(f"the browser has ended: {self.process.poll()}")
            self.waiting += data
        text, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(text)

    def note(self, m):
        """Keeps what an event complains of."""
        p = m.get("params", {})
        if m.get("method") == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{p['entry']['source']}: {p['entry']['text']} {p['entry'].get('url', '')}")
        elif m.get("method") == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.complaints.append("exception: " + d.get("exception", {}).get("description", d["text"]))
        elif m.get("method") == "Runtime.consoleAPICalled":
            self.complaints.append("console: " + " ".join(str(a.get("value")) for a in p["args"]))
        elif m.get("method") == "Audits.issueAdded":
            self.complaints.append("issue: " + json.dumps(p["issue"]))

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while m := self.message(PATIENCE):
            if m.get("id") == self.number:
                if "error" in m:
                    raise SystemExit(f"{method}: {m['error']}")
                return m["result"]
            self.note(m)
        raise SystemExit(f"{method}: the browser does not answer")

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def value(self, expression):
        """What an expression of JavaScript gives. It runs beside the page's policy."""
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in r:
            raise SystemExit(f"{expression}: {r['exceptionDetails']}")
        return r["result"].get("value")

    def until(self, expression, seconds=30):
        """Asks until it gives something true, which is returned; or the last answer."""
        end = time.monotonic() + seconds
        while not (got := self.value(expression)) and time.monotonic() < end:
            m = self.message(0.1)
            if m:
                self.note(m)
        return got

    def screen(self, width, height, dark=False, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def shot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)["data"]))
