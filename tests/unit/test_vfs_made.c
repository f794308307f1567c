/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that lose their name as soon as they are made: each call makes one object, and says so. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs_fixture.h"

static struct fixture f;
static void (*meanwhile)(const char *name); /* called once, after a system call has made a name */
static unsigned makings;		    /* such system calls */

static void made(const char *name)
{
	void (*call)(const char *) = meanwhile;

	makings++;
	meanwhile = NULL;
	if (call)
		call(name);
}

/* In place of libc's. */
int mkdirat(int dirfd, const char *name, mode_t mode)
{
	int (*real)(int, const char *, mode_t), rc;

	*(void **)&real = dlsym(RTLD_NEXT, "mkdirat");
	rc = real(dirfd, name, mode);
	if (rc == 0)
		made(name);
	return rc;
}

/* In place of libc's. */
int linkat(int from, const char *old, int to, const char *name, int flags)
{
	int (*real)(int, const char *, int, const char *, int), rc;

	*(void **)&real = dlsym(RTLD_NEXT, "linkat");
	rc = real(from, old, to, name, flags);
	if (rc == 0)
		made(name);
	return rc;
}

/* In place of libc's. */
int openat(int dirfd, const char *name, int flags, ...)
{
	int (*real)(int, const char *, int, ...), fd;
	mode_t mode = 0;
	va_list ap;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	*(void **)&real = dlsym(RTLD_NEXT, "openat64");
	fd = real(dirfd, name, flags, mode);
	if (fd >= 0 && (flags & O_CREAT))
		made(name);
	return fd;
}

static void remove_locally(const char *name)
{
	cr_expect_eq(remove(in_export(&f, name)), 0);
}

static void replace_locally(const char *name)
{
	remove_locally(name);
	put_file(in_export(&f, name), "another's");
}

static pthread_t remover;
static atomic_bool removed;

static void *remove_by_server(void *arg)
{
	struct rn_fiber fiber;
	struct vfs_ctx ctx = f.ctx;
	struct vfs_worker *w;

	(void)arg;
	cr_assert_eq(vfs_worker_new(f.vfs, 0, &w), 0);
	rn_fiber_of_thread(&fiber, w);
	ctx.fiber = &fiber;
	cr_expect_eq(vfs_rmdir(&ctx, f.root, "x", 1, NULL), 0);
	atomic_store(&removed, true);
	vfs_worker_free(w);
	return NULL;
}

/* Gives the other thread the time to be there first, if nothing keeps it. */
static void remove_beside(const char *name)
{
	(void)name;
	cr_assert_eq(pthread_create(&remover, NULL, remove_by_server, NULL), 0);
	for (int i = 0; i < 100 && !atomic_load(&removed); i++)
		usleep(1000);
}

static int make_dir(struct vfs_node **out, struct vfs_attr *attr)
{
	static const struct vfs_setattr none;
	const struct vfs_make m = {
		.dir = f.root, .name = "x", .len = 1, .sa = &none, .attr = attr
	};

	makings = 0;
	return vfs_mkdir(&f.ctx, &m, out);
}

static int make_file(enum vfs_create_how how, struct vfs_node **out, struct vfs_attr *attr)
{
	static const struct vfs_setattr none;
	struct vfs_create cr = {
		.how = how, .sa = &none, .verf = (const uint8_t *)"verifier", .attr = attr
	};

	makings = 0;
	return vfs_create(&f.ctx, f.root, "x", 1, &cr, out);
}

Test(vfs_made, another_client_removes_a_directory_when_its_maker_knows_it)
{
	struct vfs_node *n = NULL;
	struct vfs_attr attr;

	fixture_open(&f, FIX_MAC);
	meanwhile = remove_beside;
	cr_expect_eq(make_dir(&n, &attr), 0);
	cr_expect(n, "the removal came between the making and the look");
	cr_expect_eq(makings, 1);
	cr_expect(S_ISDIR(attr.mode));
	pthread_join(remover, NULL);
	vfs_node_put(n);
	fixture_close(&f);
}

/* Nobody can find out the handle of what has gone. */
Test(vfs_made, a_local_process_removes_a_directory_at_once)
{
	struct vfs_node *n = f.root;
	struct vfs_attr attr;

	fixture_open(&f, FIX_MAC);
	meanwhile = remove_locally;
	cr_expect_eq(make_dir(&n, &attr), 0);
	cr_expect_null(n);
	cr_expect_eq(makings, 1);
	cr_expect_eq(access(in_export(&f, "x"), F_OK), -1);
	fixture_close(&f);
}

Test(vfs_made, a_local_process_puts_another_object_in_its_place)
{
	struct vfs_node *n = f.root;
	struct vfs_attr attr;

	fixture_open(&f, FIX_MAC);
	meanwhile = replace_locally;
	cr_expect_eq(make_dir(&n, &attr), 0);
	cr_expect_null(n);
	cr_expect_eq(makings, 1);
	cr_expect_eq(try_lookup(&f.ctx, f.root, "x"), 0);
	fixture_close(&f);
}

/* A file is known by the descriptor that made it. */
Test(vfs_made, a_file_that_is_removed_at_once_has_a_handle)
{
	static const enum vfs_create_how ways[] = { VFS_UNCHECKED, VFS_GUARDED, VFS_EXCLUSIVE };
	struct vfs_node *n;
	struct vfs_attr attr;
	struct vfs_fh fh;

	fixture_open(&f, FIX_MAC);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		n = NULL;
		meanwhile = remove_locally;
		cr_assert_eq(make_file(ways[i], &n, &attr), 0, "way %zu", i);
		cr_assert(n);
		cr_expect_eq(makings, 1, "way %zu: made %u times", i, makings);
		cr_expect(S_ISREG(attr.mode));
		cr_expect_eq(attr.nlink, 0);
		fh = *vfs_node_fh(n);
		cr_expect_eq(access(in_export(&f, "x"), F_OK), -1);
		vfs_node_put(n);
		cr_expect_eq(try_open(&f.ctx, &fh), -ESTALE);
	}
	fixture_close(&f);
}
