/* SPDX-License-Identifier: BSD-2-Clause */
/* GETXATTR, SETXATTR, LISTXATTRS and REMOVEXATTR of minor version 2 (RFC 8276). */
#include <sys/xattr.h>

#include "lib/util.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_attrs.h"

#define EITHER 0u
#define CREATE 1u
#define REPLACE 2u
#define SIZE_MAX_OF_VALUE 65536u
#define NAME_MAX_LEN 250u
#define LIST_SIZE 16u /* cookie, count, eof */

static struct fix4_session session;
static struct vfs_fh file;

NFS3_SUITE(nfs4_xattr);

static void start(void)
{
	cr_assert_eq(fix4_session_new(f, &session, 2, "xattr", true), NFS4_OK);
	make_file("x", "text", 0644);
	if (setxattr(fix_path(f, "x"), "user.probe", "", 0, 0) != 0)
		cr_skip_test("no extended attributes of users on this file system");
	removexattr(fix_path(f, "x"), "user.probe");
	cr_assert_eq(fix4_handle(f, &session, &f->root, "x", &file), NFS4_OK);
}

static void begin(const struct vfs_fh *fh, uint32_t op)
{
	fix4_begin(f, &session);
	fix4_putfh(f, fh);
	fix4_op(f, op);
}

static uint32_t outcome(uint32_t op)
{
	uint32_t status = fix4_send(f);

	cr_assert_eq(f->answers, 1);
	if (status == FIX4_NO_STATUS)
		return status;
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, op), status);
	return status;
}

struct blob {
	const void *p;
	uint32_t len;
};
#define TEXT(s)                                                                                    \
	(struct blob)                                                                              \
	{                                                                                          \
		s, (uint32_t)strlen(s)                                                             \
	}

static void put(struct blob b)
{
	xdr_put_opaque(&f->out, b.p, b.len);
}

static uint32_t set(const struct vfs_fh *fh, uint32_t option, struct blob name, struct blob value)
{
	begin(fh, OP_SETXATTR);
	xdr_put_u32(&f->out, option);
	put(name);
	put(value);
	return outcome(OP_SETXATTR);
}

static uint32_t set_text(const struct vfs_fh *fh, const char *name, const char *value)
{
	return set(fh, EITHER, TEXT(name), TEXT(value));
}

static uint32_t get(const struct vfs_fh *fh, struct blob name)
{
	begin(fh, OP_GETXATTR);
	put(name);
	return outcome(OP_GETXATTR);
}

static uint32_t take(const struct vfs_fh *fh, struct blob name)
{
	begin(fh, OP_REMOVEXATTR);
	put(name);
	return outcome(OP_REMOVEXATTR);
}

static uint32_t list(const struct vfs_fh *fh, uint64_t cookie, uint32_t maxcount)
{
	begin(fh, OP_LISTXATTRS);
	xdr_put_u64(&f->out, cookie);
	xdr_put_u32(&f->out, maxcount);
	return outcome(OP_LISTXATTRS);
}

static void gets(const struct vfs_fh *fh, const char *name, const char *value)
{
	const uint8_t *p;
	uint32_t len;

	cr_assert_eq(get(fh, TEXT(name)), NFS4_OK);
	p = xdr_get_opaque(&f->in, UINT32_MAX, &len);
	cr_assert_not_null(p);
	cr_expect_eq(len, strlen(value));
	cr_expect_eq(memcmp(p, value, rn_min(len, strlen(value))), 0);
	whole();
}

Test(nfs4_xattr, values_are_those_on_disk)
{
	char value[16];

	NEED_FIXTURE();
	start();
	cr_assert_eq(set_text(&file, "key", "value"), NFS4_OK);
	cr_expect_eq(getxattr(fix_path(f, "x"), "user.key", value, sizeof(value)), 5);
	gets(&file, "key", "value");
	cr_assert_eq(set_text(&file, "key", ""), NFS4_OK);
	gets(&file, "key", "");
	cr_assert_eq(setxattr(fix_path(f, "x"), "user.local", "mine", 4, 0), 0);
	gets(&file, "local", "mine");
	cr_assert_eq(set_text(&f->root, "key", "of a directory"), NFS4_OK);
	gets(&f->root, "key", "of a directory");
	cr_assert_eq(take(&file, TEXT("key")), NFS4_OK);
	cr_expect_eq(getxattr(fix_path(f, "x"), "user.key", value, sizeof(value)), -1);
	cr_expect_eq(get(&file, TEXT("key")), NFS4ERR_NOXATTR);
	cr_expect_eq(take(&file, TEXT("key")), NFS4ERR_NOXATTR);
}

Test(nfs4_xattr, options)
{
	NEED_FIXTURE();
	start();
	cr_expect_eq(set(&file, REPLACE, TEXT("k"), TEXT("1")), NFS4ERR_NOXATTR);
	cr_expect_eq(set(&file, CREATE, TEXT("k"), TEXT("2")), NFS4_OK);
	cr_expect_eq(set(&file, CREATE, TEXT("k"), TEXT("3")), NFS4ERR_EXIST);
	gets(&file, "k", "2");
	cr_expect_eq(set(&file, REPLACE, TEXT("k"), TEXT("4")), NFS4_OK);
	gets(&file, "k", "4");
	cr_expect_eq(set(&file, 3, TEXT("k"), TEXT("5")), NFS4ERR_INVAL);
	cr_expect_eq(set(&file, UINT32_MAX, TEXT("k"), TEXT("5")), NFS4ERR_INVAL);
	gets(&file, "k", "4");
}

Test(nfs4_xattr, names)
{
	static char longest[2000];
	const struct blob nul = { "nu\0l", 4 };

	NEED_FIXTURE();
	start();
	memset(longest, 'n', sizeof(longest));
	cr_expect_eq(set(&file, EITHER, (struct blob){ longest, NAME_MAX_LEN }, TEXT("v")),
		     NFS4_OK);
	cr_expect_eq(get(&file, (struct blob){ longest, NAME_MAX_LEN }), NFS4_OK);
	for (uint32_t len = NAME_MAX_LEN + 1; len <= sizeof(longest); len = len * 2 - 245) {
		const struct blob name = { longest, len };

		cr_expect_eq(set(&file, EITHER, name, TEXT("v")), NFS4ERR_NAMETOOLONG, "%u", len);
		cr_expect_eq(get(&file, name), NFS4ERR_NAMETOOLONG, "%u", len);
		cr_expect_eq(take(&file, name), NFS4ERR_NAMETOOLONG, "%u", len);
	}
	cr_expect_eq(set_text(&file, "", "v"), NFS4ERR_INVAL);
	cr_expect_eq(get(&file, TEXT("")), NFS4ERR_INVAL);
	cr_expect_eq(take(&file, TEXT("")), NFS4ERR_INVAL);
	cr_expect_eq(set(&file, EITHER, nul, TEXT("v")), NFS4ERR_BADCHAR);
	cr_expect_eq(get(&file, nul), NFS4ERR_INVAL);
	cr_expect_eq(take(&file, nul), NFS4ERR_BADCHAR);
	cr_expect_eq(set_text(&file, "with/slash", "v"), NFS4_OK);
	cr_expect_eq(set_text(&file, "..", "v"), NFS4_OK);
	cr_expect_eq(set_text(&file, "\xff\xfe", "v"), NFS4_OK);
	gets(&file, "\xff\xfe", "v");
}

Test(nfs4_xattr, no_other_namespace)
{
	NEED_FIXTURE();
	start();
	cr_assert_eq(setxattr(fix_path(f, "x"), "trusted.t", "secret", 6, 0), 0);
	cr_expect_eq(get(&file, TEXT("trusted.t")), NFS4ERR_NOXATTR);
	cr_expect_eq(get(&file, TEXT("user.trusted.t")), NFS4ERR_NOXATTR);
	cr_expect_eq(take(&file, TEXT("trusted.t")), NFS4ERR_NOXATTR);
	cr_assert_eq(list(&file, 0, 1000), NFS4_OK);
	cr_expect_eq(xdr_get_u64(&f->in), 0);
	cr_expect_eq(xdr_get_u32(&f->in), 0);
	cr_expect(xdr_get_bool(&f->in));
	whole();
}

Test(nfs4_xattr, sizes)
{
	static char big[SIZE_MAX_OF_VALUE + 1], on_disk[SIZE_MAX_OF_VALUE];
	uint32_t status;

	NEED_FIXTURE();
	start();
	memset(big, 'b', sizeof(big));
	cr_expect_eq(set(&file, EITHER, TEXT("k"), (struct blob){ big, sizeof(big) }),
		     NFS4ERR_XATTR2BIG);
	cr_expect_eq(get(&file, TEXT("k")), NFS4ERR_NOXATTR);
	status = set(&file, EITHER, TEXT("k"), (struct blob){ big, SIZE_MAX_OF_VALUE });
	if (status == NFS4ERR_NOSPC) /* ext4 */
		cr_skip_test("values are small on this file system");
	cr_assert_eq(status, NFS4_OK);
	cr_expect_eq(getxattr(fix_path(f, "x"), "user.k", on_disk, sizeof(on_disk)),
		     SIZE_MAX_OF_VALUE);
	cr_expect_eq(get(&file, TEXT("k")), NFS4_OK);
	cr_expect_eq(xdr_get_u32(&f->in), SIZE_MAX_OF_VALUE);
	cr_expect_eq(f->in.left, SIZE_MAX_OF_VALUE);
}

/* A call in up to eight pieces; a value that is cut is put together. */
Test(nfs4_xattr, in_pieces)
{
	static char value[3001];

	NEED_FIXTURE();
	start();
	for (f->split = 1; f->split <= 8; f->split++) {
		memset(value, 'a' + (int)f->split, sizeof(value) - 1);
		cr_assert_eq(set_text(&file, "key", value), NFS4_OK, "%u segments", f->split);
		gets(&file, "key", value);
	}
}

/* Neither a name nor a value may come by a Read chunk of its own, nor go by a Write chunk. */
Test(nfs4_xattr, not_eligible_for_chunks)
{
	size_t at;

	NEED_FIXTURE();
	start();
	begin(&file, OP_SETXATTR);
	xdr_put_u32(&f->out, EITHER);
	put(TEXT("key"));
	at = xdr_out_pos(&f->out) + 4;
	put(TEXT("placed"));
	f->reduced[0].at = at;
	f->reduced[0].len = 6;
	f->nreduced = 1;
	cr_expect_eq(outcome(OP_SETXATTR), NFS4ERR_BADXDR);
	cr_expect_eq(get(&file, TEXT("key")), NFS4ERR_NOXATTR);
	cr_assert_eq(set_text(&file, "key", "value"), NFS4_OK);
	f->nbulk_spaces = 1;
	f->bulk_space[0] = 1000;
	gets(&file, "key", "value");
	cr_expect_not(f->had_bulk);
	f->nbulk_spaces = 0;
}

#define NAMES 20u

static void make_names(void)
{
	char name[16];

	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "user.n%u", i);
		cr_assert_eq(setxattr(fix_path(f, "x"), name, "", 0, 0), 0);
		snprintf(name, sizeof(name), "trusted.t%u", i);
		cr_assert_eq(setxattr(fix_path(f, "x"), name, "", 0, 0), 0);
	}
}

/* Reads a list, and counts each name. Returns the cookie; *n is the number of names. */
static uint64_t read_list(unsigned *counts, uint32_t *n, bool *eof)
{
	const uint64_t cookie = xdr_get_u64(&f->in);
	char *name;
	uint32_t len;
	unsigned i;

	*n = xdr_get_u32(&f->in);
	for (uint32_t k = 0; k < *n; k++) {
		name = xdr_get_string(&f->in, 255, &len);
		cr_assert_not_null(name);
		cr_assert_eq(sscanf(name, "n%u", &i), 1, "%s", name);
		cr_assert_lt(i, NAMES);
		counts[i]++;
	}
	*eof = xdr_get_bool(&f->in);
	whole();
	return cookie;
}

/* All names, each once, with maxcount bytes in each reply. */
static void lists_all(uint32_t maxcount)
{
	unsigned counts[NAMES] = { 0 };
	uint64_t cookie = 0;
	bool eof = false;
	uint32_t n;

	while (!eof) {
		cr_assert_eq(list(&file, cookie, maxcount), NFS4_OK, "%u", maxcount);
		cr_expect_leq(f->in.left, maxcount, "%u: %zu", maxcount, f->in.left);
		cookie = read_list(counts, &n, &eof);
		cr_assert(n > 0 || eof, "%u: nothing", maxcount);
	}
	cr_expect_eq(cookie, NAMES);
	for (unsigned i = 0; i < NAMES; i++)
		cr_expect_eq(counts[i], 1, "maxcount %u: n%u came %u times", maxcount, i,
			     counts[i]);
}

Test(nfs4_xattr, lists)
{
	static const uint32_t sizes[] = { LIST_SIZE + 8, LIST_SIZE + 12, 40,	    100,
					  177,		 4096,		 UINT32_MAX };
	unsigned counts[NAMES] = { 0 };
	uint32_t n;
	bool eof;

	NEED_FIXTURE();
	start();
	make_names();
	for (unsigned i = 0; i < rn_array_size(sizes); i++)
		lists_all(sizes[i]);
	cr_expect_eq(list(&file, NAMES, 1000), NFS4_OK);
	read_list(counts, &n, &eof);
	cr_expect(n == 0 && eof);
	cr_expect_eq(list(&file, NAMES + 1, 1000), NFS4ERR_BAD_COOKIE);
	cr_expect_eq(list(&file, UINT64_MAX, 1000), NFS4ERR_BAD_COOKIE);
	cr_expect_eq(list(&file, 0, LIST_SIZE + 7), NFS4ERR_TOOSMALL);
	cr_expect_eq(list(&file, 0, 8), NFS4ERR_TOOSMALL);
	cr_expect_eq(list(&file, 0, 7), NFS4ERR_INVAL);
	cr_expect_eq(list(&file, 0, 0), NFS4ERR_INVAL);
}

/* The reply's room limits a list as maxcount does; a value that does not fit is an error. */
Test(nfs4_xattr, little_room)
{
	static char value[1001];
	unsigned counts[NAMES] = { 0 };
	const size_t most = f ? f->reply_max : 0;
	uint32_t n;
	bool eof;

	NEED_FIXTURE();
	start();
	make_names();
	memset(value, 'v', sizeof(value) - 1);
	cr_assert_eq(set_text(&file, "long", value), NFS4_OK);
	f->reply_max = 600;
	session.cache_this = false;
	cr_expect_eq(get(&file, TEXT("long")), NFS4ERR_REP_TOO_BIG);
	cr_assert_eq(take(&file, TEXT("long")), NFS4_OK);
	f->reply_max = 180;
	cr_assert_eq(list(&file, 0, 1000), NFS4_OK);
	read_list(counts, &n, &eof);
	cr_expect(n > 0 && n < NAMES && !eof, "%u", n);
	f->reply_max = most;
}

/* Files are made first: later the thread acts as the last caller. */
Test(nfs4_xattr, permission)
{
	struct vfs_fh secret, dir;

	NEED_FIXTURE();
	start();
	cr_assert_eq(chmod(f->dir[0], 0755), 0);
	make_file("secret", "", 0600);
	cr_assert_eq(mkdir(fix_path(f, "sticky"), 0777), 0);
	cr_assert_eq(chmod(fix_path(f, "sticky"), 01777), 0);
	cr_assert_eq(fix4_handle(f, &session, &f->root, "secret", &secret), NFS4_OK);
	cr_assert_eq(fix4_handle(f, &session, &f->root, "sticky", &dir), NFS4_OK);
	cr_assert_eq(set_text(&file, "k", "v"), NFS4_OK);
	cr_assert_eq(set_text(&secret, "k", "v"), NFS4_OK);
	f->uid = f->gid = 1001;
	for (int squashed = 0; squashed < 2; squashed++) {
		gets(&file, "k", "v");
		cr_expect_eq(list(&file, 0, 1000), NFS4_OK);
		cr_expect_eq(set_text(&file, "k", "w"), NFS4ERR_ACCESS);
		cr_expect_eq(take(&file, TEXT("k")), NFS4ERR_ACCESS);
		cr_expect_eq(get(&secret, TEXT("k")), NFS4ERR_ACCESS);
		cr_expect_eq(list(&secret, 0, 1000), NFS4ERR_ACCESS);
		cr_expect_eq(set_text(&dir, "k", "w"), NFS4ERR_PERM);
		f->uid = f->gid = 0;
		f->access.flags |= VFS_ROOT_SQUASH;
		f->access.anonuid = f->access.anongid = 1001;
	}
	f->access.flags &= ~(unsigned)VFS_ROOT_SQUASH;
	cr_expect_eq(set_text(&dir, "k", "w"), NFS4_OK);
	f->access.flags |= VFS_RO;
	cr_expect_eq(set_text(&file, "k", "w"), NFS4ERR_ROFS);
	cr_expect_eq(take(&file, TEXT("k")), NFS4ERR_ROFS);
	gets(&file, "k", "v");
	f->access.flags &= ~(unsigned)VFS_RO;
}

Test(nfs4_xattr, other_objects)
{
	struct vfs_fh link, pseudo;

	NEED_FIXTURE();
	start();
	cr_assert_eq(symlink("x", fix_path(f, "link")), 0);
	cr_assert_eq(fix4_handle(f, &session, &f->root, "link", &link), NFS4_OK);
	cr_expect_eq(set_text(&link, "k", "v"), NFS4ERR_PERM);
	cr_expect_eq(take(&link, TEXT("k")), NFS4ERR_PERM);
	cr_expect_eq(get(&link, TEXT("k")), NFS4ERR_NOXATTR);
	cr_expect_eq(list(&link, 0, 1000), NFS4_OK);
	fix4_begin(f, &session);
	fix4_op(f, OP_PUTROOTFH);
	fix4_op(f, OP_GETFH);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTROOTFH);
	fix4_result(f, OP_GETFH);
	fix4_get_fh(f, &pseudo);
	cr_expect_eq(set_text(&pseudo, "k", "v"), NFS4ERR_NOTSUPP);
	cr_expect_eq(take(&pseudo, TEXT("k")), NFS4ERR_NOTSUPP);
	cr_expect_eq(get(&pseudo, TEXT("k")), NFS4ERR_NOTSUPP);
	cr_expect_eq(list(&pseudo, 0, 1000), NFS4ERR_NOTSUPP);
}

static uint64_t change_of(const struct vfs_fh *fh)
{
	struct fix4_attrs a;

	cr_assert_eq(fix4_getattr(f, &session, fh, &a), NFS4_OK);
	return a.change;
}

/* The result of SETXATTR or REMOVEXATTR; the attribute grows by the change. */
static bool atomic_change(const struct vfs_fh *fh, uint64_t *last)
{
	uint64_t before, after;
	bool atomic;

	fix4_get_cinfo(f, &atomic, &before, &after);
	whole();
	cr_expect_leq(*last, before);
	cr_expect_lt(before, after);
	*last = change_of(fh);
	cr_expect_leq(after, *last);
	return atomic;
}

Test(nfs4_xattr, change_info)
{
	uint64_t last;

	NEED_FIXTURE();
	start();
	last = change_of(&file);
	cr_assert_eq(set_text(&file, "k", "v"), NFS4_OK);
	cr_expect_not(atomic_change(&file, &last));
	cr_assert_eq(set_text(&file, "k", "w"), NFS4_OK);
	cr_expect_not(atomic_change(&file, &last));
	cr_assert_eq(take(&file, TEXT("k")), NFS4_OK);
	cr_expect_not(atomic_change(&file, &last));
	vfs_export_set_nfs_only(f->exp[0], true);
	last = change_of(&f->root);
	cr_assert_eq(set_text(&f->root, "k", "v"), NFS4_OK);
	cr_expect(atomic_change(&f->root, &last));
	cr_assert_eq(take(&f->root, TEXT("k")), NFS4_OK);
	cr_expect(atomic_change(&f->root, &last));
}
