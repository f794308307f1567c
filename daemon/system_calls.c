/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/system_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"

/* By number: where the kernel refuses some of them, glibc emulates them, and not as they are needed. */
static const struct needed {
	const char *name;
	long number;
	bool spared; /* true: glibc does without where the kernel has none, but not where it is refused */
	long args[5];
} calls[] = {
	{ "clone3", SYS_clone3, true, { 0 } },
	{ "faccessat2", SYS_faccessat2, false, { -1, (long)"", F_OK, AT_EMPTY_PATH } },
	{ "fcntl(F_OFD_SETLK)", SYS_fcntl, false, { -1, F_OFD_SETLK, 0 } },
	{ "getrandom", SYS_getrandom, false, { 0 } },
	{ "name_to_handle_at",
	  SYS_name_to_handle_at,
	  false,
	  { -1, (long)"", 0, 0, AT_EMPTY_PATH } },
	{ "preadv2", SYS_preadv2, true, { -1 } },
	{ "pwritev2", SYS_pwritev2, true, { -1 } },
#ifdef SYS_sync_file_range /* some processors have another one */
	{ "sync_file_range", SYS_sync_file_range, false, { -1 } },
#endif
	{ "statx", SYS_statx, false, { -1, (long)"", AT_EMPTY_PATH } },
};

/* The arguments are such that the kernel does nothing. */
static int try_call(const struct needed *c)
{
	const long *a = c->args;
	const int error = syscall(c->number, a[0], a[1], a[2], a[3], a[4], 0L) < 0 ? errno : 0;

	if (error == EPERM)
		return -EPERM;
	return error == ENOSYS && !c->spared ? -ENOSYS : 0;
}

int system_calls_check(const struct rn_logger *log)
{
	int rc = 0;

	for (size_t i = 0; i < rn_array_size(calls); i++) {
		const int missing = try_call(&calls[i]);

		if (missing == 0)
			continue;
		rn_err(log,
		       "the system call %s is missing (%s): the server needs Linux 5.8 or newer, "
		       "and a "
		       "seccomp filter that allows the call",
		       calls[i].name, strerror(-missing));
		rc = -ENOSYS;
	}
	return rc;
}
