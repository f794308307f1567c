/* SPDX-License-Identifier: BSD-2-Clause */
/* Effect of an export's options: read-only, ports, flavours, squashing, refusal. */
#include <netinet/in.h>

#include "tests/unit/nfs3_suite.h"

NFS3_SUITE(nfs3_export);

static uint32_t getattr(const struct vfs_fh *fh)
{
	fix_put_fh(call(NFSPROC3_GETATTR), fh);
	return status();
}

static uint32_t create(const char *name)
{
	struct xdr_out *c = call_name(NFSPROC3_CREATE, name);

	xdr_put_u32(c, NFS3_UNCHECKED);
	fix_put_sattr_mode(c, 0600);
	return status();
}

Test(nfs3_export, read_only)
{
	static const uint32_t by_name[] = { NFSPROC3_REMOVE, NFSPROC3_RMDIR };
	struct xdr_out *c;
	struct vfs_fh x;

	NEED_FIXTURE();
	make_file("x", "abc", 0666);
	x = handle("x");
	f->access.flags |= VFS_RO;
	cr_expect_eq(create("y"), NFS3ERR_ROFS);
	cr_expect(fix_get_wcc(&f->in, NULL));
	for (int i = 0; i < 2; i++) {
		call_name(by_name[i], "x");
		cr_expect_eq(status(), NFS3ERR_ROFS);
	}
	c = call(NFSPROC3_WRITE);
	fix_put_fh(c, &x);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 1);
	xdr_put_u32(c, 0);
	xdr_put_opaque(c, "z", 1);
	cr_expect_eq(status(), NFS3ERR_ROFS);
	c = call(NFSPROC3_SETATTR);
	fix_put_fh(c, &x);
	fix_put_sattr_mode(c, 0600);
	xdr_put_bool(c, false);
	cr_expect_eq(status(), NFS3ERR_ROFS);
	c = call(NFSPROC3_COMMIT);
	fix_put_fh(c, &x);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 0);
	cr_expect_eq(status(), NFS3ERR_ROFS);
	c = call(NFSPROC3_ACCESS);
	fix_put_fh(c, &x);
	xdr_put_u32(c, 0x3f);
	cr_expect_eq(status(), NFS3_OK);
	fix_get_post_attr(&f->in, NULL);
	cr_expect_eq(xdr_get_u32(&f->in), ACCESS3_READ);
	cr_expect_eq(getattr(&x), NFS3_OK);
}

Test(nfs3_export, refused_client_and_stale_export)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	f->deny = true;
	cr_expect_eq(getattr(&f->root), NFS3ERR_ACCES);
	f->deny = false;
	fh = f->root;
	fh.len = 0;
	cr_expect_eq(getattr(&fh), NFS3ERR_BADHANDLE);
}

Test(nfs3_export, secure_port)
{
	struct sockaddr_in *peer;

	NEED_FIXTURE();
	peer = (struct sockaddr_in *)&f->conn.peer;
	f->access.flags |= VFS_SECURE;
	cr_expect_eq(getattr(&f->root), NFS3_OK);
	peer->sin_port = htons(1023);
	cr_expect_eq(getattr(&f->root), NFS3_OK);
	peer->sin_port = htons(1024);
	cr_expect_eq(getattr(&f->root), NFS3ERR_ACCES);
	f->access.flags &= ~(uint32_t)VFS_SECURE;
	cr_expect_eq(getattr(&f->root), NFS3_OK);
}

Test(nfs3_export, auth_none)
{
	struct vfs_fh x;

	NEED_FIXTURE();
	make_file("x", "abc", 0600);
	x = handle("x");
	f->flavor = RPC_AUTH_NONE;
	/* Only the procedures that a client needs to mount (RFC 2623 section 2.3.2). */
	fix_put_fh(call(NFSPROC3_FSINFO), &f->root);
	cr_expect_eq(status(), NFS3_OK);
	cr_expect_eq(getattr(&f->root), NFS3_OK);
	getattr(&x);
	cr_expect_eq(f->auth_stat, RPC_AUTH_TOOWEAK);
	call_name(NFSPROC3_LOOKUP, "x");
	status();
	cr_expect_eq(f->auth_stat, RPC_AUTH_TOOWEAK);
	create("y");
	cr_expect_eq(f->auth_stat, RPC_AUTH_TOOWEAK);
	cr_expect_not(exists("y"));

	vfs_access_accept(&f->access, VFS_SEC_NONE, 0);
	cr_expect_eq(getattr(&x), NFS3_OK);
	f->access.secs[1].flags |= VFS_RO;
	cr_expect_eq(create("y"), NFS3ERR_ROFS);
}

Test(nfs3_export, auth_none_acts_as_anonymous)
{
	struct stat st;

	NEED_FIXTURE();
	cr_assert_eq(chmod(f->dir[0], 0777), 0);
	f->flavor = RPC_AUTH_NONE;
	fix_accept(&f->access, VFS_SEC_NONE);
	f->access.anonuid = 4321;
	f->access.anongid = 4322;
	cr_assert_eq(create("y"), NFS3_OK);
	cr_assert_eq(stat(fix_path(f, "y"), &st), 0);
	cr_expect_eq(st.st_uid, 4321);
	cr_expect_eq(st.st_gid, 4322);
}

Test(nfs3_export, squash)
{
	struct stat st;

	NEED_FIXTURE();
	cr_assert_eq(chmod(f->dir[0], 0777), 0);
	f->access.flags |= VFS_ROOT_SQUASH;
	cr_assert_eq(create("root"), NFS3_OK);
	cr_assert_eq(stat(fix_path(f, "root"), &st), 0);
	cr_expect_eq(st.st_uid, 65534);
	f->uid = f->gid = 4000;
	cr_assert_eq(create("user"), NFS3_OK);
	cr_assert_eq(stat(fix_path(f, "user"), &st), 0);
	cr_expect_eq(st.st_uid, 4000);
	f->access.flags |= VFS_ALL_SQUASH;
	cr_assert_eq(create("all"), NFS3_OK);
	cr_assert_eq(stat(fix_path(f, "all"), &st), 0);
	cr_expect_eq(st.st_uid, 65534);
	cr_expect_eq(st.st_gid, 65534);
}

Test(nfs3_export, handles_forged_bit_by_bit)
{
	NEED_FIXTURE();
	for (unsigned i = 0; i < f->root.len * 8; i++) {
		struct vfs_fh fh = f->root;
		uint32_t st;

		fh.data[i / 8] ^= (uint8_t)(1u << i % 8);
		st = getattr(&fh);
		cr_expect(st == NFS3ERR_BADHANDLE || st == NFS3ERR_STALE, "bit %u: status %u", i,
			  st);
	}
	for (uint32_t len = 0; len < f->root.len; len++) {
		struct vfs_fh fh = f->root;

		fh.len = len;
		cr_expect_eq(getattr(&fh), NFS3ERR_BADHANDLE, "length %u", len);
	}
}
