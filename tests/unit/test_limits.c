/* SPDX-License-Identifier: BSD-2-Clause */
/* How descriptors are shared out: what may be open at a time is within what is allowed. */
#include <criterion/criterion.h>
#include <dirent.h>

#include "daemon/limits.h"
#include "daemon/workers/workers.h"

#define OF_WORKER                                                                                  \
	4u /* a worker that is started on demand: its inbox, its ring, two while it works */
#define THREADS 4u

static const struct cfg_settings settings = { .tcp = { .enabled = true, .max_connections = 4096 } };

static bool divide(unsigned files, struct limits *l)
{
	*l = (struct limits){ .files = files, .threads = THREADS, .loops = 1, .ram_mib = 8192 };
	return limits_divide(&settings, NULL, l) == 0;
}

/* The fewest with which the daemon starts. */
static unsigned least_files(void)
{
	struct limits l;
	unsigned n = 1;

	while (!divide(n, &l))
		n++;
	return n;
}

static unsigned open_now(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

Test(limits, all_that_may_be_open_is_within_the_limit)
{
	const unsigned least = least_files();
	struct limits l;

	for (unsigned files = least; files < 200000; files += files < 1000 ? 1 : 997) {
		cr_assert(divide(files, &l));
		cr_assert_leq(open_now() + l.connections + l.cache_fds_most + l.leases +
				      l.more_workers * OF_WORKER + l.spare,
			      files);
		cr_assert_leq(l.more_workers, WORKERS_MORE);
		cr_assert_geq(l.connections, 4u);
		cr_assert_geq(l.cache_fds, 24u);
	}
}

Test(limits, few_descriptors_leave_few_further_workers)
{
	struct limits l;

	cr_assert(divide(least_files(), &l));
	cr_expect_eq(l.more_workers, 0u);
	cr_assert(divide(4096, &l));
	cr_expect_eq(l.more_workers, WORKERS_MORE);
	cr_expect_gt(l.spare, 100u);
}

/* Leases are bounded by the descriptors left and by the memory, four for each MiB. */
Test(limits, leases_of_delegated_files)
{
	struct cfg_settings few = settings;
	struct limits l;

	cr_assert(divide(least_files(), &l));
	cr_expect_leq(l.leases, 1u);
	cr_assert(divide(20000, &l));
	cr_expect_gt(l.leases, 2000u);
	cr_expect_lt(l.leases, l.cache_fds);
	cr_assert(divide(1048576, &l));
	cr_expect_eq(l.leases, 4 * 8192u);
	l.ram_mib = 1u << 20;
	cr_assert_eq(limits_divide(&settings, NULL, &l), 0);
	cr_expect_eq(l.leases, 131072u);
	few.server.max_fds = 128;
	cr_assert_eq(limits_divide(&few, NULL, &l), 0);
	cr_expect_eq(l.leases, 32u);
	cr_expect_eq(l.cache_fds, 128u);
}
