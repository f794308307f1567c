/* SPDX-License-Identifier: BSD-2-Clause */
/* NFSv2: the tables of its procedures and of NFSACL's, packed handles, cookies, statuses. Calls as a whole: tests/net/nfs2.py. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/util.h"
#include "nfs2/nfs2_args.h"
#include "nfs2/nfs2_server.h"
#include "nfs3/acl/nfsacl.h"
#include "vfs/fs/handle.h"

#define REPLY_MAX 2048u

Test(nfs2, table)
{
	struct rpc_version v;

	nfs2_version(NULL, &v);
	cr_assert_eq(v.nprocs, NFSPROC2_COUNT);
	cr_expect_null(v.procs[NFSPROC2_ROOT]);
	cr_expect_null(v.procs[NFSPROC2_WRITECACHE]);
	cr_expect_str_eq(v.procs[NFSPROC2_NULL]->name, "NULL");
#define NAMED(NAME, row) cr_expect_str_eq(v.procs[NFSPROC2_##NAME]->name, #NAME);
	NFS2_PROC_LIST(NAMED)
	for (uint32_t i = 1; i < v.nprocs; i++) {
		const struct rpc_proc *p = v.procs[i];

		if (!p)
			continue;
		cr_expect(p->decode && p->run && p->args_size > 0, "%s", p->name);
		cr_expect_eq((p->flags & RPC_NONIDEMPOTENT) != 0, p->reply_size > 0, "%s", p->name);
		cr_expect(p->reply_size % 4 == 0 && p->reply_size <= REPLY_MAX, "%s", p->name);
	}
}

Test(nfs2, table_of_nfsacl)
{
	static const char *const names[] = { "NULL", "GETACL", "SETACL", "GETATTR", "ACCESS" };
	struct rpc_version v;

	nfsacl2_version(NULL, &v);
	cr_assert_eq(v.vers, 2);
	cr_assert_eq(v.nprocs, rn_array_size(names));
	for (uint32_t i = 0; i < v.nprocs; i++) {
		const struct rpc_proc *p = v.procs[i];

		cr_expect_str_eq(p->name, names[i]);
		cr_expect_eq(p->decode != NULL, i > 0, "%s", p->name);
		cr_expect_eq((p->flags & RPC_NONIDEMPOTENT) != 0, i == NFSACLPROC2_SETACL, "%s",
			     p->name);
		cr_expect_eq(p->reply_size, i == NFSACLPROC2_SETACL ? 72 : 0, "%s", p->name);
	}
}

static const uint8_t key[VFS_HANDLE_KEY_LEN] = "0123456789abcde";

static struct vfs_handle sample(uint32_t len)
{
	struct vfs_handle h = { .export_id = 7, .submount_id = 9, .type = 0x81, .len = len };

	for (uint32_t i = 0; i < len; i++)
		h.bytes[i] = (uint8_t)(i + 1);
	return h;
}

Test(nfs2, handles_come_back)
{
	for (unsigned mac = 0; mac < 2; mac++) {
		for (uint32_t len = 1; len <= 12; len++) {
			struct vfs_handle h = sample(len), got = { .len = 0 };
			struct vfs_packed_fh fh;
			uint32_t id;
			uint64_t head;

			cr_assert_eq(vfs_packed_encode(&h, mac ? key : NULL, &fh), 0);
			cr_assert_eq(vfs_packed_parse(&fh, mac, &got), 0);
			cr_expect_eq(vfs_packed_check(&fh, mac ? key : NULL), 0);
			cr_expect(got.export_id == 7 && got.submount_id == 9 && got.type == 0x81);
			cr_expect(got.len == len && !memcmp(got.bytes, h.bytes, len));
			cr_expect_eq(vfs_packed_parse(&fh, !mac, &got), -EBADF);
			memcpy(&head, fh.data, sizeof(head));
			cr_expect(vfs_handle_peek(__builtin_bswap64(head), &id) && id == 7);
		}
	}
}

Test(nfs2, handles_that_do_not_fit)
{
	struct vfs_handle h = sample(13);
	struct vfs_packed_fh fh;

	cr_expect_eq(vfs_packed_encode(&h, key, &fh), -EOPNOTSUPP);
	h = sample(0);
	cr_expect_eq(vfs_packed_encode(&h, key, &fh), -EOPNOTSUPP);
	h = sample(8);
	h.type = 255;
	cr_expect_eq(vfs_packed_encode(&h, key, &fh), -EOPNOTSUPP);
}

/* Each changed bit is refused, by its place in the form or by the MAC. */
Test(nfs2, forged_handles)
{
	struct vfs_handle h = sample(8), got;
	struct vfs_packed_fh fh, bad;

	cr_assert_eq(vfs_packed_encode(&h, key, &fh), 0);
	for (unsigned i = 0; i < 8 * VFS_PACKED_FH; i++) {
		bad = fh;
		bad.data[i / 8] ^= (uint8_t)(1 << i % 8);
		cr_expect(vfs_packed_parse(&bad, true, &got) == -EBADF ||
				  vfs_packed_check(&bad, key) == -ESTALE,
			  "bit %u", i);
	}
	/* Without a MAC no byte is left to chance either. */
	cr_assert_eq(vfs_packed_encode(&h, NULL, &fh), 0);
	for (unsigned at = 20; at < VFS_PACKED_FH; at++) {
		bad = fh;
		bad.data[at] = 1;
		cr_expect_eq(vfs_packed_parse(&bad, false, &got), -EBADF, "byte %u", at);
	}
}

/* A handle of 32 bytes in the longer form, as ext4's have, is not taken for a packed one, and the reverse. */
Test(nfs2, forms_are_not_mixed_up)
{
	struct vfs_handle h = sample(8), got;
	struct vfs_packed_fh packed;
	struct vfs_fh fh;

	h.type = 1;
	cr_assert_eq(vfs_handle_encode(&h, key, &fh), 0);
	cr_assert_eq(fh.len, VFS_PACKED_FH);
	memcpy(packed.data, fh.data, VFS_PACKED_FH);
	cr_expect_eq(vfs_packed_parse(&packed, true, &got), -EBADF);
	packed.data[0] = 0x82;
	cr_expect_eq(vfs_packed_check(&packed, key), -ESTALE);
	cr_assert_eq(vfs_packed_encode(&h, key, &packed), 0);
	memcpy(fh.data, packed.data, VFS_PACKED_FH);
	cr_expect_eq(vfs_handle_parse(&fh, true, &got), -EBADF);
	fh.data[0] = 0x81;
	cr_expect_eq(vfs_handle_check(&fh, key), -ESTALE);
}

Test(nfs2, cookies)
{
	static const uint64_t small[] = { 0, 1, 512, 0x7fffffff };
	static const uint64_t none[] = { 0x80000000, 0xffffffff, (uint64_t)1 << 63, UINT64_MAX };
	uint32_t c;

	for (unsigned i = 0; i < rn_array_size(small); i++) {
		cr_expect(nfs2_cookie_of(small[i], &c) && c == small[i]);
		cr_expect_eq(nfs2_cookie_from(c), small[i]);
	}
	for (unsigned i = 0; i < rn_array_size(none); i++)
		cr_expect_not(nfs2_cookie_of(none[i], &c), "%u", i);
	cr_expect(nfs2_cookie_of(0x1234567800000000, &c) && c == 0x92345678);
	cr_expect_eq(nfs2_cookie_from(c), 0x1234567800000000);
	cr_expect(nfs2_cookie_of(0x12345678deadbeef, &c) && c == 0x92345678);
	cr_expect(nfs2_cookie_of(INT64_MAX, &c) && c == 0xffffffff);
	cr_expect_eq(nfs2_cookie_from(c), 0x7fffffff00000000);
}

Test(nfs2, statuses)
{
	cr_expect_eq(nfs2_status(0), NFS2_OK);
	cr_expect_eq(nfs2_status(-EBADF), NFS2ERR_STALE);
	cr_expect_eq(nfs2_status(-EXDEV), NFS2ERR_ACCES);
	cr_expect_eq(nfs2_status(-EINVAL), NFS2ERR_IO);
	cr_expect_eq(nfs2_status(-EAGAIN), NFS2ERR_IO);
	cr_expect_eq(nfs2_status(-NFS3_ETOOSMALL), NFS2ERR_IO);
	cr_expect_eq(nfs2_fold(5), 5);
	cr_expect_eq(nfs2_fold((uint64_t)3 << 32 | 1), 2);
}
