/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/real_dirs.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#define INPUTS_PER_DIRECTORY 300
#define DISK "/mnt"

static struct fixture *fixture;

static void stop(void)
{
	if (fixture)
		fix_stop(fixture);
	fixture = NULL;
}

/* A small file system that only this process sees: an ALLOCATE of any length would fill the machine's disk. */
static const char *mount_disk(void)
{
	if (geteuid() != 0)
		return NULL; /* fix_start() says so */
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", DISK, "tmpfs", 0, "size=64m,nr_inodes=65536,mode=0755") < 0)
		return "a mount namespace and a tmpfs in it cannot be had";
	return setenv("TMPDIR", DISK, 1) < 0 ? "no memory" : NULL;
}

struct fixture *fuzz_real_dirs(bool *fresh)
{
	static unsigned inputs;
	static const char *why;

	if (why)
		return NULL;
	*fresh = inputs % INPUTS_PER_DIRECTORY == 0;
	if (*fresh) {
		stop();
		if (inputs == 0)
			why = mount_disk();
		if (!why)
			why = fix_start(&fixture);
		if (why)
			fprintf(stderr, "inputs are ignored: %s\n", why);
		if (inputs == 0)
			atexit(stop);
	}
	inputs++;
	return why ? NULL : fixture;
}

void fuzz_must_be_answered(const struct fixture *f)
{
	if (f->answers != 1 ||
	    (f->outcome == FIX_REPLY && f->reply_len > f->reply_max && !f->had_bulk))
		abort();
}
