/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of users and groups by libnfsidmap, as this machine is configured. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "daemon/idmap.h"

static struct idmap *m;
static struct nfs4_idmap view;

static void start(void)
{
	m = idmap_new(NULL, NULL);
	idmap_view(m, &view);
}

static void stop(void)
{
	idmap_free(m);
}

TestSuite(idmap, .init = start, .fini = stop, .timeout = 60);

/* Without a domain in its configuration and without a name service, libnfsidmap maps no name. */
#define NEED_MAPPING()                                                                             \
	do {                                                                                       \
		if (idmap_start(m) < 0)                                                            \
			cr_skip_test("libnfsidmap has no domain here");                            \
	} while (0)

Test(idmap, root_there_and_back)
{
	char name[256], again[256];
	uint32_t id = 77;

	NEED_MAPPING();
	cr_assert_eq(view.uid_to_name(m, NULL, 0, name, sizeof(name)), 0);
	cr_expect_eq(strncmp(name, "root@", 5), 0, "%s", name);
	for (int i = 0; i < 2; i++) { /* the second look-up is answered from the cache */
		id = 77;
		cr_expect_eq(view.name_to_uid(m, NULL, name, (uint32_t)strlen(name), &id), 0);
		cr_expect_eq(id, 0);
		cr_expect_eq(view.uid_to_name(m, NULL, 0, again, sizeof(again)), 0);
		cr_expect_str_eq(again, name);
		cr_expect_eq(view.gid_to_name(m, NULL, 0, again, sizeof(again)), 0);
		id = 77;
		cr_expect_eq(view.name_to_gid(m, NULL, again, (uint32_t)strlen(again), &id), 0);
		cr_expect_eq(id, 0);
	}
}

Test(idmap, what_nobody_is_called)
{
	static const char *const names[] = { "", "@", "nobody-like-this@nowhere.invalid", "a\nb" };
	char name[256], small[4];
	uint32_t id;

	cr_expect_lt(view.uid_to_name(m, NULL, 3999999999u, name, sizeof(name)), 0);
	cr_expect_lt(view.gid_to_name(m, NULL, 3999999999u, name, sizeof(name)), 0);
	for (unsigned i = 0; i < 2 * sizeof(names) / sizeof(names[0]); i++) {
		const char *s = names[i / 2];

		cr_expect_lt(view.name_to_uid(m, NULL, s, (uint32_t)strlen(s), &id), 0, "%s", s);
		cr_expect_lt(view.name_to_gid(m, NULL, s, (uint32_t)strlen(s), &id), 0, "%s", s);
	}
	cr_expect_eq(view.name_to_uid(m, NULL, "a\0b", 3, &id), -ENOENT);
	memset(name, 'a', sizeof(name));
	cr_expect_eq(view.name_to_uid(m, NULL, name, 256, &id), -ENOENT);
	cr_expect_lt(view.name_to_uid(m, NULL, name, 255, &id), 0);
	NEED_MAPPING();
	cr_expect_eq(view.uid_to_name(m, NULL, 0, small, sizeof(small)), -ENAMETOOLONG);
}

static void *many(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < 2000; i++) {
		char name[64];
		uint32_t id;
		int rc, len;

		view.uid_to_name(m, NULL, i % 7, name, sizeof(name));
		len = snprintf(name, sizeof(name), "user%u@nowhere.invalid", i % 11);
		rc = view.name_to_uid(m, NULL, name, (uint32_t)len, &id);
		cr_assert(rc == -ENOENT || rc == -EAGAIN);
	}
	return NULL;
}

Test(idmap, by_several_threads)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, many, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}
