# SPDX-License-Identifier: BSD-2-Clause
"""A program in a terminal of a kind of our own, and what its screen shows.

The kind has few abilities, so that the screen is easily kept. It is described to ncurses by a file that tic makes.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

KIND = r"""ringnfs-test|terminal of tests,
	am, cols#80, lines#24, cr=\r, ind=\n, bel=^G, cud1=\n, cub1=^H,
	clear=\E[H\E[J, cup=\E[%i%p1%d;%p2%dH, el=\E[K, ed=\E[J,
	bold=\E[1m, rev=\E[7m, smul=\E[4m, sgr0=\E[m, kcuu1=\E[A, kcud1=\E[B,
"""
SEQUENCE = re.compile(r"\x1b\[([\d;]*)([A-Za-z])")


class Terminal:
    def __init__(self, words, lines=24, columns=80, env=None):
        if not shutil.which("tic"):
            raise FileNotFoundError("tic")
        self.folder = tempfile.mkdtemp(prefix="ringnfs-terminal-")
        subprocess.run(["tic", "-o", self.folder, "-"], input=KIND, text=True, check=True)
        self.waiting, self.status = "", None
        self.set_size(lines, columns)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="ringnfs-test", TERMINFO=self.folder, LC_ALL="C.UTF-8", **(env or {}))
            for name in ("LINES", "COLUMNS"):
                os.environ.pop(name, None)
            os.read(0, 1)  # until the terminal has its size
            os.execvp(words[0], words)
        self.resize(lines, columns)
        os.write(self.fd, b"\n")

    def set_size(self, lines, columns):
        self.lines, self.columns, self.at = lines, columns, [0, 0]
        self.cells = [[" "] * columns for _ in range(lines)]
        self.underlined, self.underlines = set(), False

    def resize(self, lines, columns):
        self.set_size(lines, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
        shutil.rmtree(self.folder, ignore_errors=True)

    def erase(self, line, column, whole):
        self.cells[line][column:] = [" "] * (self.columns - column)
        for rest in range(line + 1, self.lines if whole else 0):
            self.cells[rest] = [" "] * self.columns

    def control(self, numbers, letter):
        n = [int(x) for x in numbers.split(";") if x]
        if letter == "H":
            self.at = [min(n[0] if n else 1, self.lines) - 1, min(n[1] if len(n) > 1 else 1, self.columns) - 1]
        elif letter in "JK":
            self.erase(*self.at, letter == "J")
        elif letter == "m":
            self.underlines = 4 in n or (self.underlines and 0 not in n and bool(n))

    def put(self, c):
        line, column = self.at
        if c == "\r":
            self.at[1] = 0
        elif c == "\n":
            self.at[0] = min(line + 1, self.lines - 1)
        elif c == "\b":
            self.at[1] = max(column - 1, 0)
        elif c >= " ":
            self.cells[line][column] = c
            (self.underlined.add if self.underlines else self.underlined.discard)((line, column))
            self.at = [line, column + 1] if column + 1 < self.columns else [min(line + 1, self.lines - 1), 0]

    def take(self, text):
        self.waiting += text
        while self.waiting:
            found = SEQUENCE.match(self.waiting)
            if found:
                self.control(*found.groups())
                self.waiting = self.waiting[found.end():]
            elif self.waiting[0] == "\x1b" and len(self.waiting) < 16:
                return  # the rest has not come
            else:
                self.put(self.waiting[0])
                self.waiting = self.waiting[1:]

    def read(self, seconds):
        """False: nothing came in that time, or the program has ended."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.take(data.decode("utf-8", "replace"))
        return bool(data)

    def screen(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)

    def underlined_text(self):
        return "".join(self.cells[line][column] for line, column in sorted(self.underlined) if line < self.lines and column < self.columns)

    def until(self, wanted, seconds=30):
        """Reads until the screen is as wanted: was it?"""
        end = time.monotonic() + seconds
        while not (good := wanted(self.screen())) and time.monotonic() < end:
            self.read(0.1)
        return good

    def ended(self, seconds=30):
        """The exit status once it has ended, or None."""
        end = time.monotonic() + seconds
        while self.status is None and time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status
