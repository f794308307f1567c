/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/real_dirs.h"

#include <stdio.h>
#include <stdlib.h>

#define INPUTS_PER_DIRECTORY 300

static struct fixture *fixture;

static void stop(void)
{
	if (fixture)
		fix_stop(fixture);
	fixture = NULL;
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
