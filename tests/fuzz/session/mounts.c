/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/session/ask.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/tree.h"

#define SHOWS "above"	  /* file in the mounted file system, absent from the covered one */
#define FOLLOWED_MS 20000 /* a second, with a margin for a loaded machine and a sanitizer */

static struct {
	bool late, sub, changed;
} mounted;

static bool mount_at(const char *path)
{
	char file[64];

	if (mount("none", path, "tmpfs", 0, "size=1m,nr_inodes=64,mode=0777") < 0)
		return false;
	snprintf(file, sizeof(file), "%s/" SHOWS, path);
	int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
	if (fd >= 0)
		close(fd);
	ss_count(SS_N_MOUNTED);
	mounted.changed = true;
	return true;
}

static void detach(const char *path)
{
	if (umount2(path, MNT_DETACH) == 0)
		ss_count(SS_N_UNMOUNTED);
}

/* True if MNT of the export, or LOOKUP of the submount's name, leads to the mounted file system.
 * *root: the handle. */
static bool shows(uint16_t port, const struct ss_values *v, bool late, struct ss_fh *root)
{
	struct ss_fh file;
	int64_t status = late ? ss_ask_mount(port, SS_LATE_DIR, root)
			      : ss_ask_look_up(port, &v->fh[SS_FH_CROSS], "sub", root);

	return status == 0 && ss_ask_look_up(port, root, SHOWS, &file) == 0;
}

/* True if MNT gives a handle of the covered directory, which lacks the file. That of the file system that was there, was, may be given for a moment
 * more; and a LOOKUP that fails for another reason tells nothing. */
static bool serves_covered(uint16_t port, const struct ss_fh *was)
{
	struct ss_fh root, file;

	return ss_ask_mount(port, SS_LATE_DIR, &root) == 0 &&
	       (root.len != was->len || memcmp(root.bytes, was->bytes, root.len) != 0) &&
	       ss_ask_look_up(port, &root, SHOWS, &file) == SS_ASK_NOENT;
}

static void wait_until(bool there, bool late, uint16_t port, struct ss_values *v)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	int64_t since = ss_now_ms();
	struct ss_fh root;

	while (shows(port, v, late, &root) != there) {
		if (ss_now_ms() - since > FOLLOWED_MS)
			ss_finding("%s: that it is %smounted is not followed",
				   late ? SS_LATE_DIR : SS_SUB_DIR, there ? "" : "not any more ");
		nanosleep(&pause, NULL);
	}
	if (there && late)
		v->fh[SS_FH_LATE] = root;
	else if (there)
		ss_learn_handle(v, root.bytes, root.len);
}

static void check_stale(uint16_t port, const struct ss_fh *fh)
{
	struct ss_fh out;
	int64_t status = ss_ask_look_up(port, fh, SHOWS, &out);

	if (status != SS_ASK_STALE)
		ss_finding("%s: a handle of what was there before is answered %lld", SS_LATE_DIR,
			   (long long)status);
}

static void mount_late(uint16_t port, struct ss_values *v)
{
	const struct ss_fh under = v->fh[SS_FH_LATE];

	if (mounted.late || !mount_at(SS_LATE_DIR))
		return;
	mounted.late = true;
	wait_until(true, true, port, v);
	check_stale(port, &under);
}

static void unmount_late(uint16_t port, struct ss_values *v)
{
	if (!mounted.late)
		return;
	if (umount2(SS_LATE_DIR, 0) == 0)
		ss_finding("%s: a file system that is exported can be unmounted", SS_LATE_DIR);
	detach(SS_LATE_DIR);
	mounted.late = false;
	wait_until(false, true, port, v);
	/* The covered directory must not be served after a lazy unmount. */
	if (serves_covered(port, &v->fh[SS_FH_LATE]))
		ss_finding("%s: what was covered is served", SS_LATE_DIR);
	check_stale(port, &v->fh[SS_FH_LATE]);
}

static void mount_sub(uint16_t port, struct ss_values *v)
{
	if (mounted.sub || !mount_at(SS_SUB_DIR))
		return;
	mounted.sub = true;
	wait_until(true, false, port, v);
}

static void unmount_sub(bool lazily, uint16_t port, struct ss_values *v)
{
	if (!mounted.sub)
		return;
	if (lazily)
		detach(SS_SUB_DIR);
	else if (umount2(SS_SUB_DIR, 0) < 0)
		return; /* the server has it open */
	else
		ss_count(SS_N_UNMOUNTED);
	mounted.sub = false;
	wait_until(false, false, port, v);
}

void ss_mounts_step(unsigned how, uint16_t port, struct ss_values *v)
{
	switch (how % 5) {
	case 0:
		mount_late(port, v);
		break;
	case 1:
		unmount_late(port, v);
		break;
	case 2:
		mount_sub(port, v);
		break;
	default:
		unmount_sub(how % 5 == 3, port, v);
	}
}

bool ss_mounts_end(void)
{
	bool changed = mounted.changed;

	if (mounted.late)
		detach(SS_LATE_DIR);
	if (mounted.sub)
		detach(SS_SUB_DIR);
	mounted.late = mounted.sub = mounted.changed = false;
	return changed;
}
