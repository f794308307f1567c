/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sequence of gets on a message cut in pieces. The first bytes give the number of gets, the
 * segments' lengths and which segments came by a Read chunk; then come the gets, then the message.
 * The cursor's count must stay right, and after a failure the cursor must give zeros and NULLs
 * only.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/xdr_in.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t sink;

static void touch(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sink = (uint8_t)(sink ^ p[i]);
}

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void get_counted(struct xdr_in *x, uint32_t max, bool string)
{
	uint32_t len;
	const uint8_t *p = string ? (const uint8_t *)xdr_get_string(x, max, &len)
				  : xdr_get_opaque(x, max, &len);

	must((p == NULL) == x->err && len <= max && (p != NULL || len == 0));
	if (p != NULL)
		touch(p, len + (string ? 1u : 0u));
}

static void get_bulk(struct xdr_in *x, uint32_t max)
{
	struct xdr_bulk b;
	size_t total = 0;

	xdr_get_bulk(x, max, &b);
	for (unsigned i = 0; i < b.npieces; i++) {
		touch(b.piece[i].iov_base, b.piece[i].iov_len);
		total += b.piece[i].iov_len;
	}
	must(total == b.len && b.len <= max && (!x->err || b.len == 0));
}

static void one_get(struct xdr_in *x, uint8_t op)
{
	const uint32_t arg = (uint32_t)(op >> 3) * 9;
	uint8_t fixed[31 * 9] = { 1 };
	uint64_t v = 0;

	switch (op & 7) {
	case 0:
		v = xdr_get_u32(x);
		break;
	case 1:
		v = xdr_get_u64(x);
		break;
	case 2:
		v = xdr_get_bool(x);
		break;
	case 3:
		xdr_get_fixed(x, fixed, arg);
		v = arg > 0 ? fixed[0] : 0;
		break;
	case 4:
		get_counted(x, op >= 0xf0 ? UINT32_MAX : arg, false);
		break;
	case 5:
		get_counted(x, op >= 0xf0 ? UINT32_MAX : arg, true);
		break;
	case 6:
		get_bulk(x, op >= 0xf0 ? UINT32_MAX : arg);
		break;
	default:
		xdr_skip(x, arg);
		break;
	}
	must(!x->err || v == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(16) char mem[1024];
	struct rpc_seg seg[RPC_SEGS_MAX] = { 0 };
	struct rn_arena arena;
	struct xdr_in x;
	unsigned nseg = 0;

	if (size < 3 || size - 3 < data[0])
		return 0;
	const size_t nops = data[0], step = (size_t)data[1] + 1;
	const uint8_t *ops = data + 3, *msg = ops + nops;
	const size_t total = size - 3 - nops;
	for (size_t at = 0; at < total; nseg++) {
		const size_t left = total - at;
		const size_t n = left < step || nseg == RPC_SEGS_MAX - 1 ? left : step;

		seg[nseg].base = malloc(n);
		must(seg[nseg].base != NULL);
		memcpy(seg[nseg].base, msg + at, n);
		seg[nseg].len = (uint32_t)n;
		at += n;
	}
	if (data[2] < nseg)
		seg[data[2]].placed = true;
	rn_arena_init(&arena, mem, sizeof(mem));
	xdr_in_init(&x, seg, nseg, &arena);
	for (size_t i = 0; i < nops; i++) {
		const bool failed = x.err;

		one_get(&x, ops[i]);
		must(x.err || !failed);
		must(x.err ? x.left == 0 : xdr_in_pos(&x) + x.left == total);
	}
	for (unsigned i = 0; i < nseg; i++)
		free(seg[i].base);
	return 0;
}
