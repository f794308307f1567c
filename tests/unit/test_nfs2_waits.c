/* SPDX-License-Identifier: BSD-2-Clause */
/* NFSv2 has no status for "come again": while opens may be reclaimed, READ, WRITE and SETATTR wait in the server. */
#include <string.h>

#include "nfs2/nfs2_server.h"
#include "nfs3/nfs3_state.h"
#include "rpc/client.h"
#include "tests/unit/nfs3_suite.h"
#include "vfs/packed.h"

NFS3_SUITE(nfs2_waits);

static struct rpc_version versions[3];
static struct rpc_client client; /* who may wait */
static unsigned asked;

/* True for the first question. */
static bool io_waits(void *ctx, enum nfs3_grace what)
{
	(void)ctx;
	return what == NFS3_IO_WAITS && ++asked == 1;
}

/* Serves NFSv2 too. False: it cannot name files here. */
static bool serve_nfs2(void)
{
	if (!vfs_export_packs(f->exp[0]))
		return false;
	f->server->cfg.packed_handles = true;
	nfs2_version(f->server, &versions[0]);
	memcpy(&versions[1], f->versions, sizeof(f->versions));
	f->rpc.programs[0].versions = versions;
	f->rpc.programs[0].nversions = 3;
	return true;
}

static uint32_t packed_status(uint8_t *fh)
{
	struct xdr_in *r = fix_send(f);
	uint32_t status = f->outcome == FIX_REPLY ? xdr_get_u32(r) : UINT32_MAX;

	if (status == NFS2_OK && fh)
		xdr_get_fixed(r, fh, VFS_PACKED_FH);
	return status;
}

static void find_file(const char *name, uint8_t fh[VFS_PACKED_FH])
{
	struct xdr_out *c = fix_call(f, MOUNT_PROGRAM, 1, 1);

	fix_put_name(c, f->dir[0]);
	cr_assert_eq(packed_status(fh), NFS2_OK);
	c = fix_call(f, NFS_PROGRAM, NFS2_VERSION, NFSPROC2_LOOKUP);
	xdr_put_fixed(c, fh, VFS_PACKED_FH);
	fix_put_name(c, name);
	cr_assert_eq(packed_status(fh), NFS2_OK);
}

/* The status of a call with a handle and that many words of zeros. */
static uint32_t with_zeros(uint32_t proc, const uint8_t *fh, unsigned words)
{
	struct xdr_out *c = fix_call(f, NFS_PROGRAM, NFS2_VERSION, proc);

	xdr_put_fixed(c, fh, VFS_PACKED_FH);
	for (unsigned i = 0; i < words; i++)
		xdr_put_u32(c, 0);
	asked = 0;
	return packed_status(NULL);
}

/* A sattr of a size of 4 and nothing else. */
static uint32_t set_size(const uint8_t *fh)
{
	struct xdr_out *c = fix_call(f, NFS_PROGRAM, NFS2_VERSION, NFSPROC2_SETATTR);

	xdr_put_fixed(c, fh, VFS_PACKED_FH);
	for (unsigned i = 0; i < 8; i++)
		xdr_put_u32(c, i == 3 ? 4 : NFS2_KEEP);
	asked = 0;
	return packed_status(NULL);
}

Test(nfs2_waits, until_opens_are_reclaimed)
{
	uint8_t fh[VFS_PACKED_FH];

	NEED_FIXTURE();
	if (!serve_nfs2())
		cr_skip_test("handles do not fit");
	make_file("x", "0123456789", 0600);
	find_file("x", fh);
	f->server->cfg.in_grace = io_waits;
	for (unsigned may_wait = 0; may_wait <= 1; may_wait++) {
		const uint32_t want = may_wait ? NFS2_OK : NFS2ERR_IO;

		f->conn.client = may_wait ? &client : NULL;
		cr_expect_eq(with_zeros(NFSPROC2_READ, fh, 3), want, "READ");
		cr_expect_eq(asked, 1 + may_wait);
		cr_expect_eq(with_zeros(NFSPROC2_WRITE, fh, 4), want, "WRITE");
		cr_expect_eq(asked, 1 + may_wait);
		cr_expect_eq(set_size(fh), want, "SETATTR");
		cr_expect_eq(asked, 1 + may_wait);
	}
}
