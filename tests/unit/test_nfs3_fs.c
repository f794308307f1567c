/* SPDX-License-Identifier: BSD-2-Clause */
/* FSSTAT, FSINFO, PATHCONF. */
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/unit/nfs3_suite.h"

NFS3_SUITE(nfs3_fs);

/* The largest offset that the file system accepts. */
static uint64_t largest_file(void)
{
	int fd = open(fix_path(f, "largest"), O_CREAT | O_RDWR, 0600);
	uint64_t size = 0;

	cr_assert_geq(fd, 0);
	for (uint64_t bit = 1ull << 62; bit; bit >>= 1) {
		if (lseek(fd, (off_t)(size | bit), SEEK_SET) >= 0)
			size |= bit;
	}
	close(fd);
	return size;
}

Test(nfs3_fs, fsinfo)
{
	struct xdr_in *r;

	NEED_FIXTURE();
	fix_put_fh(call(NFSPROC3_FSINFO), &f->root);
	cr_assert_eq(status(), NFS3_OK);
	r = &f->in;
	cr_expect(fix_get_post_attr(r, NULL));
	for (int i = 0; i < 2; i++) { /* read, write */
		cr_expect_eq(xdr_get_u32(r), 1u << 20);
		cr_expect_eq(xdr_get_u32(r), 1u << 20);
		cr_expect_eq(xdr_get_u32(r), 4096);
	}
	cr_expect_geq(xdr_get_u32(r), 65536);
	cr_expect_eq(xdr_get_u64(r), largest_file());
	cr_expect_eq(xdr_get_u64(r), 1);
	cr_expect_eq(xdr_get_u32(r), 0x1b);
	whole();
}

Test(nfs3_fs, fsstat)
{
	struct statvfs st;
	struct xdr_in *r;

	NEED_FIXTURE();
	cr_assert_eq(statvfs(f->dir[0], &st), 0);
	fix_put_fh(call(NFSPROC3_FSSTAT), &f->root);
	cr_assert_eq(status(), NFS3_OK);
	r = &f->in;
	cr_expect(fix_get_post_attr(r, NULL));
	cr_expect_eq(xdr_get_u64(r), (uint64_t)st.f_blocks * st.f_frsize);
	cr_expect_gt(xdr_get_u64(r), 0);
	cr_expect_gt(xdr_get_u64(r), 0);
	cr_expect_eq(xdr_get_u64(r), st.f_files);
	xdr_get_u64(r);
	xdr_get_u64(r);
	xdr_get_u32(r);
	whole();
}

Test(nfs3_fs, pathconf)
{
	struct xdr_in *r;

	NEED_FIXTURE();
	fix_put_fh(call(NFSPROC3_PATHCONF), &f->root);
	cr_assert_eq(status(), NFS3_OK);
	r = &f->in;
	cr_expect(fix_get_post_attr(r, NULL));
	cr_expect_gt(xdr_get_u32(r), 1);
	cr_expect_eq(xdr_get_u32(r), 255);
	cr_expect(xdr_get_bool(r));
	cr_expect(xdr_get_bool(r));
	cr_expect_not(xdr_get_bool(r));
	cr_expect(xdr_get_bool(r));
	whole();
}
