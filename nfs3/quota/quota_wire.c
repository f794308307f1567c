/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/quota/quota_wire.h"

#include "lib/util.h"

#define BLOCK 1024u	     /* bytes: the least unit */
#define BLOCK_MAX (1u << 30) /* the largest, which a client may still read as a signed number */

static uint64_t rquota_largest(const struct vfs_quota_row *row)
{
	return rn_max(row->bytes.used, rn_max(row->bytes.hard, row->bytes.soft));
}

static uint32_t clamp(uint64_t v)
{
	return (uint32_t)rn_min(v, (uint64_t)UINT32_MAX);
}

/* Whole units, rounded up: a limit must not become 0, which means that there is none. */
static uint32_t in_blocks(uint64_t bytes, uint32_t block)
{
	return clamp(bytes / block + (bytes % block != 0));
}

/* Seconds until the soft limit counts as the hard one, negative since then; 0: not over it. */
static uint32_t time_left(const struct vfs_quota_limit *l, int64_t now)
{
	int64_t left;

	if (l->soft == 0 || l->used <= l->soft || l->until == 0)
		return 0;
	if (l->until > now)
		left = rn_min(l->until - now, (int64_t)INT32_MAX);
	else
		left = l->until < now - INT32_MAX ? -INT32_MAX : l->until - now;
	return (uint32_t)(int32_t)(left == 0 ? -1 : left);
}

void rquota_put(struct xdr_out *x, const struct vfs_quota_row *row, int64_t now)
{
	uint32_t block = BLOCK;

	while (block < BLOCK_MAX && rquota_largest(row) / block >= UINT32_MAX)
		block *= 2;
	xdr_put_u32(x, block);
	xdr_put_bool(x, true); /* rq_active */
	xdr_put_u32(x, in_blocks(row->bytes.hard, block));
	xdr_put_u32(x, in_blocks(row->bytes.soft, block));
	xdr_put_u32(x, in_blocks(row->bytes.used, block));
	xdr_put_u32(x, clamp(row->files.hard));
	xdr_put_u32(x, clamp(row->files.soft));
	xdr_put_u32(x, clamp(row->files.used));
	xdr_put_u32(x, time_left(&row->bytes, now));
	xdr_put_u32(x, time_left(&row->files, now));
}
