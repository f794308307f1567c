/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of users and groups by libnfsidmap, as this machine is configured. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <nfsidmap.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/names/names.h"
#include "lib/error.h"

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
		cr_assert(rc == -ENOENT || rc == -RN_EUNNAMED);
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

static atomic_bool silent;  /* the name service does not answer for names that begin with "slow" */
static atomic_uint waiting; /* questions that it has not answered */

/* In place of libc's, for libnfsidmap's plug-in as well. */
int getpwnam_r(const char *name, struct passwd *pw, char *buf, size_t size, struct passwd **out)
{
	int (*real)(const char *, struct passwd *, char *, size_t, struct passwd **);

	*(void **)&real = dlsym(RTLD_NEXT, "getpwnam_r");
	if (strncmp(name, "slow", 4) == 0) {
		atomic_fetch_add(&waiting, 1);
		while (atomic_load(&silent))
			usleep(1000);
		atomic_fetch_sub(&waiting, 1);
	}
	return real(name, pw, buf, size, out);
}

static atomic_bool unread;   /* the library's configuration is not read yet */
static atomic_uint readings; /* attempts to read it */

/* In place of the library's. */
int nfs4_init_name_mapping(char *file)
{
	int (*real)(char *);

	*(void **)&real = dlsym(RTLD_NEXT, "nfs4_init_name_mapping");
	atomic_fetch_add(&readings, 1);
	while (atomic_load(&unread))
		usleep(1000);
	return real(file);
}

static int principal(struct idmap *map, const char *name, uint32_t *uid)
{
	uint32_t gid;

	return idmap_principal(map, NULL, name, strlen(name), uid, &gid);
}

/* Asks again until there is an answer. */
static int await(struct idmap *map, const char *name, uint32_t *uid)
{
	int rc;

	while ((rc = principal(map, name, uid)) == -RN_EUNNAMED)
		usleep(1000);
	return rc;
}

/* A map of its own that asks on threads, with a configuration in a file. */
struct asking {
	struct askers *askers;
	char file[32];
	struct idmap *map;
};

static void begin_asking(struct asking *a)
{
	const struct askers_config cfg = { .log = NULL };
	int fd;

	strcpy(a->file, "/tmp/test_idmap.XXXXXX");
	fd = mkstemp(a->file);
	a->askers = askers_new(&cfg);
	cr_assert(fd >= 0 && a->askers);
	dprintf(fd, "[General]\nDomain = test.ringnfs\nLocal-Realms = TEST\n"
		    "[Translation]\nMethod = nsswitch\n");
	close(fd);
	a->map = idmap_new(a->askers, a->file);
}

static void end_asking(struct asking *a)
{
	askers_close(a->askers);
	cr_expect(askers_free(a->askers));
	idmap_free(a->map);
	unlink(a->file);
}

/* A name for which the name service is silent keeps out nobody else, not even of the same network. */
Test(idmap, a_silent_name_service)
{
	struct asking a;
	uint32_t uid;

	begin_asking(&a);
	struct idmap *map = a.map;

	cr_assert_eq(idmap_start(map), 0);
	atomic_store(&silent, true);
	cr_expect_eq(principal(map, "slow@TEST", &uid), -RN_EUNNAMED);
	while (atomic_load(&waiting) == 0)
		usleep(1000);
	uid = 77;
	cr_expect_eq(await(map, "root@TEST", &uid), 0);
	cr_expect_eq(uid, 0);
	cr_expect_eq(await(map, "nobody-like-this@TEST", &uid), -ENOENT);
	cr_expect_eq(atomic_load(&waiting), 1);
	cr_expect_eq(principal(map, "slow@TEST", &uid), -RN_EUNNAMED);
	atomic_store(&silent, false);
	cr_expect_eq(await(map, "slow@TEST", &uid), -ENOENT);
	end_asking(&a);
}

/* The same for those who came while the first question was still reading the configuration. */
Test(idmap, a_silent_name_service_from_the_first_question)
{
	struct asking a;
	uint32_t uid = 77;

	begin_asking(&a);
	atomic_store(&unread, true);
	atomic_store(&silent, true);
	cr_expect_eq(principal(a.map, "slow@TEST", &uid), -RN_EUNNAMED);
	while (atomic_load(&readings) == 0)
		usleep(1000);
	cr_expect_eq(principal(a.map, "root@TEST", &uid), -RN_EUNNAMED);
	usleep(200000); /* until its thread waits for its turn */
	atomic_store(&unread, false);
	cr_expect_eq(await(a.map, "root@TEST", &uid), 0);
	cr_expect_eq(uid, 0);
	atomic_store(&silent, false);
	cr_expect_eq(await(a.map, "slow@TEST", &uid), -ENOENT);
	end_asking(&a);
}
