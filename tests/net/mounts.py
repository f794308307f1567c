# SPDX-License-Identifier: BSD-2-Clause
"""Mounts for tests: made in a mount namespace of the test's own, so that they end with it, whatever happens."""
import contextlib
import ctypes
import os
import subprocess

import harness

CLONE_NEWNS = 0x00020000
MS_REC, MS_PRIVATE, MS_SHARED = 0x4000, 1 << 18, 1 << 20
SIZES = {"ext4": 16 << 20, "xfs": 320 << 20, "btrfs": 128 << 20}
libc = ctypes.CDLL(None, use_errno=True)


def own_namespace(propagation=MS_PRIVATE):
    """Exits with 77 where mounting is not possible."""
    if os.geteuid() != 0:
        harness.skip_all("mounting needs root")
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(None, b"/", None, MS_REC | propagation, None) != 0:
        harness.skip_all("no mount namespace of its own: " + os.strerror(ctypes.get_errno()))


def run(*args):
    return subprocess.run(args, capture_output=True, text=True)


def must(*args):
    res = run(*args)
    if res.returncode:
        raise SystemExit(f"{' '.join(args)}: {res.stderr}")
    return res.stdout


def make_image(path, kind="ext4", *options):
    """An image with a file system (options: of its mkfs), or the reason why there cannot be one."""
    with open(path, "wb") as f:
        f.truncate(SIZES[kind])
    try:
        res = run("mkfs." + kind, "-q", *options, path)
    except FileNotFoundError:
        return f"there is no mkfs.{kind}"
    return res.stderr if res.returncode else None


def mount_image(path, at, options="loop"):
    """Why it cannot be mounted, or None."""
    res = run("mount", "-o", options, path, at)
    return res.stderr.strip() if res.returncode else None


def umount(at, *options):
    return run("umount", *options, at)


@contextlib.contextmanager
def mounted_elsewhere(image, at, before):
    """Mounts an image on a loop device of another number than `before`, whatever other tests attach and detach meanwhile."""
    # Of two devices that are there at the same time, one at least is another.
    devices = [must("losetup", "--find", "--show", image).strip() for _ in range(2)]
    try:
        must("mount", next(d for d in devices if os.stat(d).st_rdev != before), at)
        yield
    finally:
        run("umount", "-l", at)
        for d in devices:
            run("losetup", "--detach", d)
