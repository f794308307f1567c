/* SPDX-License-Identifier: BSD-2-Clause */
/* A criterion suite with a fresh fixture for each test, and short forms of frequent calls. */
#ifndef RN_TESTS_NFS3_SUITE_H
#define RN_TESTS_NFS3_SUITE_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/nfs3_fixture.h"

static struct fixture *f;
static const char *why_not;

static void suite_start(void)
{
	why_not = fix_start(&f);
}

static void suite_stop(void)
{
	if (f)
		fix_stop(f);
	f = NULL;
}

#define NFS3_SUITE(name) TestSuite(name, .init = suite_start, .fini = suite_stop, .timeout = 60)

/* First statement of each test. */
#define NEED_FIXTURE()                                                                             \
	do {                                                                                       \
		if (!f)                                                                            \
			cr_skip_test("%s", why_not);                                               \
	} while (0)

static inline struct xdr_out *call(uint32_t proc)
{
	return fix_call(f, NFS_PROGRAM, NFS3_VERSION, proc);
}

/* Sends the call. Returns the first word of an accepted reply's results, or UINT32_MAX. */
static inline uint32_t status(void)
{
	struct xdr_in *r = fix_send(f);

	cr_assert_eq(f->answers, 1, "answered %u times", f->answers);
	return f->outcome == FIX_REPLY && f->accept_stat == RPC_SUCCESS ? xdr_get_u32(r)
									: UINT32_MAX;
}

/* Asserts that the reply was decoded to its last byte. */
static inline void whole(void)
{
	cr_expect_not(f->in.err, "result cut short");
	cr_expect_eq(f->in.left, 0, "%zu bytes behind the result", f->in.left);
}

static inline void make_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(fix_path(f, name), O_CREAT | O_TRUNC | O_WRONLY, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
}

/* Handle of a name below the root, which must exist. */
static inline struct vfs_fh handle(const char *name)
{
	struct vfs_fh fh = { 0 };

	cr_assert_eq(fix_lookup(f, &f->root, name, &fh), NFS3_OK, "LOOKUP %s", name);
	return fh;
}

static inline bool exists(const char *name)
{
	struct stat st;

	return lstat(fix_path(f, name), &st) == 0;
}

/* Begins a call whose arguments are a directory's handle and a name. */
static inline struct xdr_out *call_name(uint32_t proc, const char *name)
{
	struct xdr_out *c = call(proc);

	fix_put_fh(c, &f->root);
	fix_put_name(c, name);
	return c;
}

#endif
