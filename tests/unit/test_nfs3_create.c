/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE, MKDIR, SYMLINK, MKNOD. */
#include <sys/sysmacros.h>

#include "tests/unit/nfs3_suite.h"

NFS3_SUITE(nfs3_create);

/* Reads the result of a procedure that creates an object; returns its handle. */
static struct vfs_fh made(struct fix_attr *attr)
{
	struct vfs_fh fh = { 0 };

	cr_expect(fix_get_post_fh(&f->in, &fh));
	cr_expect(fix_get_post_attr(&f->in, attr));
	cr_expect(fix_get_wcc(&f->in, NULL));
	whole();
	return fh;
}

static void not_made(void)
{
	cr_expect(fix_get_wcc(&f->in, NULL));
	whole();
}

static uint32_t create(const char *name, uint32_t how, uint32_t mode)
{
	struct xdr_out *c = call_name(NFSPROC3_CREATE, name);

	xdr_put_u32(c, how);
	fix_put_sattr_mode(c, mode);
	return status();
}

static uint32_t create_exclusive(const char *name, const char verf[8])
{
	struct xdr_out *c = call_name(NFSPROC3_CREATE, name);

	xdr_put_u32(c, NFS3_EXCLUSIVE);
	xdr_put_fixed(c, verf, 8);
	return status();
}

Test(nfs3_create, unchecked_and_guarded)
{
	struct fix_attr a;
	struct stat st;

	NEED_FIXTURE();
	cr_assert_eq(chmod(f->dir[0], 01777), 0);
	f->uid = 4000;
	f->gid = 4001;
	cr_assert_eq(create("x", NFS3_UNCHECKED, 0640), NFS3_OK);
	made(&a);
	cr_expect_eq(a.mode, 0640);
	cr_assert_eq(stat(fix_path(f, "x"), &st), 0);
	cr_expect_eq(st.st_uid, 4000);
	cr_expect_eq(st.st_gid, 4001);
	cr_expect_eq(create("x", NFS3_UNCHECKED, 0640), NFS3_OK);
	made(&a);
	cr_expect_eq(create("x", NFS3_GUARDED, 0640), NFS3ERR_EXIST);
	not_made();
	cr_expect_eq(create("y", NFS3_GUARDED, 0600), NFS3_OK);
}

Test(nfs3_create, unchecked_sets_the_size_that_it_asks_for)
{
	static const uint64_t sizes[] = { 5, 2, 0, 4096 };
	struct fix_attr a;

	NEED_FIXTURE();
	make_file("x", "abc", 0600);
	for (unsigned i = 0; i < 4; i++) {
		struct xdr_out *c = call_name(NFSPROC3_CREATE, "x");

		xdr_put_u32(c, NFS3_UNCHECKED);
		for (int k = 0; k < 3; k++)
			xdr_put_bool(c, false);
		xdr_put_bool(c, true);
		xdr_put_u64(c, sizes[i]);
		xdr_put_u32(c, 0);
		xdr_put_u32(c, 0);
		cr_assert_eq(status(), NFS3_OK);
		made(&a);
		cr_expect_eq(a.size, sizes[i]);
	}
}

Test(nfs3_create, exclusive_knows_its_verifier)
{
	struct vfs_fh first, again;

	NEED_FIXTURE();
	cr_assert_eq(create_exclusive("x", "\x01\x02\x03\x04\xf5\x06\xf7\x08"), NFS3_OK);
	first = made(NULL);
	cr_assert_eq(create_exclusive("x", "\x01\x02\x03\x04\xf5\x06\xf7\x08"), NFS3_OK);
	again = made(NULL);
	cr_expect_eq(first.len, again.len);
	cr_expect_eq(memcmp(first.data, again.data, first.len), 0);
	cr_expect_eq(create_exclusive("x", "\x01\x02\x03\x04\xf5\x06\xf7\x09"), NFS3ERR_EXIST);
	not_made();
}

Test(nfs3_create, bad_mode_of_creation_is_garbage)
{
	NEED_FIXTURE();
	create("x", 3, 0600);
	cr_expect_eq(f->accept_stat, RPC_GARBAGE_ARGS);
	cr_expect_not(exists("x"));
}

Test(nfs3_create, names_and_places)
{
	char name[300];
	struct vfs_fh fh;
	struct xdr_out *c;

	NEED_FIXTURE();
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	cr_expect_eq(create(name, NFS3_UNCHECKED, 0600), NFS3ERR_NAMETOOLONG);
	not_made();
	cr_expect_eq(create("a/b", NFS3_UNCHECKED, 0600), NFS3ERR_ACCES);
	cr_expect_eq(create("..", NFS3_GUARDED, 0600), NFS3ERR_EXIST);
	make_file("x", "", 0600);
	fh = handle("x");
	c = call(NFSPROC3_CREATE);
	fix_put_fh(c, &fh);
	fix_put_name(c, "y");
	xdr_put_u32(c, NFS3_UNCHECKED);
	fix_put_sattr_mode(c, 0600);
	cr_expect_eq(status(), NFS3ERR_NOTDIR);
	not_made();
	f->uid = f->gid = 4000;
	cr_expect_eq(create("z", NFS3_UNCHECKED, 0600), NFS3ERR_ACCES);
	not_made();
}

Test(nfs3_create, mkdir)
{
	struct xdr_out *c;
	struct fix_attr a;

	NEED_FIXTURE();
	c = call_name(NFSPROC3_MKDIR, "d");
	fix_put_sattr_mode(c, 0750);
	cr_assert_eq(status(), NFS3_OK);
	made(&a);
	cr_expect_eq(a.type, NF3DIR);
	cr_expect_eq(a.mode, 0750);
	c = call_name(NFSPROC3_MKDIR, "d");
	fix_put_sattr_mode(c, 0750);
	cr_expect_eq(status(), NFS3ERR_EXIST);
	not_made();
	c = call_name(NFSPROC3_MKDIR, ".");
	fix_put_sattr_mode(c, 0750);
	cr_expect_eq(status(), NFS3ERR_EXIST);
}

static uint32_t do_symlink(const char *name, const char *text, uint32_t len)
{
	struct xdr_out *c = call_name(NFSPROC3_SYMLINK, name);

	fix_put_sattr_mode(c, 0777);
	xdr_put_opaque(c, text, len);
	return status();
}

Test(nfs3_create, symlink)
{
	char text[5000], got[5000];
	struct fix_attr a;

	NEED_FIXTURE();
	memset(text, 't', sizeof(text));
	cr_assert_eq(do_symlink("l", text, 4095), NFS3_OK);
	made(&a);
	cr_expect_eq(a.type, NF3LNK);
	cr_expect_eq(a.size, 4095);
	cr_expect_eq(readlink(fix_path(f, "l"), got, sizeof(got)), 4095);
	cr_expect_eq(memcmp(got, text, 4095), 0);
	cr_expect_eq(do_symlink("m", text, 4096), NFS3ERR_NAMETOOLONG);
	not_made();
	cr_expect_eq(do_symlink("m", "a\0b", 3), NFS3ERR_INVAL);
	cr_expect_eq(do_symlink("m", "", 0), NFS3ERR_NOENT);
	cr_expect_eq(do_symlink("l", "x", 1), NFS3ERR_EXIST);
	cr_expect_not(exists("m"));
}

/* The link's text in a Read chunk: in its own segment, without padding. */
Test(nfs3_create, symlink_by_read_chunk)
{
	struct rpc_request *req;
	struct xdr_out *c;
	char got[16];

	NEED_FIXTURE();
	c = call_name(NFSPROC3_SYMLINK, "l");
	fix_put_sattr_mode(c, 0777);
	xdr_put_u32(c, 5);
	req = f->req;
	req->seg[0] = (struct rpc_seg){ .base = f->call, .len = (uint32_t)c->used };
	req->seg[1] = (struct rpc_seg){ .base = (uint8_t *)"abcde", .len = 5, .placed = true };
	req->nseg = 2;
	req->reply_max = 1000;
	f->answers = 0;
	fix_begin(f, req);
	for (int i = 0; i < 50 && f->answers == 0; i++)
		vfs_worker_wait(f->vw, 50);
	cr_assert_eq(f->outcome, FIX_REPLY);
	cr_assert_eq(readlink(fix_path(f, "l"), got, sizeof(got)), 5);
	cr_expect_eq(memcmp(got, "abcde", 5), 0);
}

Test(nfs3_create, mknod)
{
	struct xdr_out *c;
	struct fix_attr a;
	struct stat st;

	NEED_FIXTURE();
	c = call_name(NFSPROC3_MKNOD, "p");
	xdr_put_u32(c, NF3FIFO);
	fix_put_sattr_mode(c, 0622);
	cr_assert_eq(status(), NFS3_OK);
	made(&a);
	cr_expect_eq(a.type, NF3FIFO);
	cr_expect_eq(a.mode, 0622);

	c = call_name(NFSPROC3_MKNOD, "c");
	xdr_put_u32(c, NF3CHR);
	fix_put_sattr_mode(c, 0600);
	xdr_put_u32(c, 1);
	xdr_put_u32(c, 3);
	if (status() == NFS3_OK) { /* a container may forbid it */
		cr_assert_eq(stat(fix_path(f, "c"), &st), 0);
		cr_expect(S_ISCHR(st.st_mode));
		cr_expect_eq(st.st_rdev, makedev(1, 3));
	}

	c = call_name(NFSPROC3_MKNOD, "r");
	xdr_put_u32(c, NF3REG);
	cr_expect_eq(status(), NFS3ERR_BADTYPE);
	not_made();
	c = call_name(NFSPROC3_MKNOD, "r");
	xdr_put_u32(c, 99);
	cr_expect_eq(status(), NFS3ERR_BADTYPE);
	not_made();
	f->uid = f->gid = 4000;
	cr_assert_eq(chmod(f->dir[0], 0777), 0);
	c = call_name(NFSPROC3_MKNOD, "d");
	xdr_put_u32(c, NF3BLK);
	fix_put_sattr_mode(c, 0600);
	xdr_put_u64(c, 0);
	cr_expect_eq(status(), NFS3ERR_PERM);
	not_made();
}

/* A reply too long for the client must be noticed before anything changes. */
Test(nfs3_create, no_room_for_the_reply)
{
	const size_t worst = 24 + 4 + NFS3_POST_OP_FH_SIZE + NFS3_POST_OP_ATTR_SIZE + NFS3_WCC_SIZE;

	NEED_FIXTURE();
	f->reply_max = worst - 1;
	create("x", NFS3_UNCHECKED, 0600);
	cr_expect_eq(f->outcome, FIX_TOO_LONG);
	cr_expect_not(exists("x"));
	f->reply_max = worst;
	cr_expect_eq(create("x", NFS3_UNCHECKED, 0600), NFS3_OK);
}
