/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call's bytes through header decoding and dispatch to the small program of the unit tests. Three
 * bytes come first: the segments' lengths, which of them came by a Read chunk, and the space that
 * the client offers for the reply. Every call must end in exactly one answer and give all memory
 * back.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/rpc_fake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cut(struct rpc_request *req, const uint8_t *data, size_t size, size_t step)
{
	for (req->nseg = 0; size > 0; req->nseg++) {
		const size_t n = size < step || req->nseg == RPC_SEGS_MAX - 1 ? size : step;
		struct rpc_seg *s = &req->seg[req->nseg];

		/* A separate allocation, so that AddressSanitizer sees a read past the end. */
		s->base = malloc(n);
		if (s->base == NULL)
			abort();
		memcpy(s->base, data, n);
		s->len = (uint32_t)n;
		data += n;
		size -= n;
	}
}

static unsigned answers(const struct fake_conn *c)
{
	return c->replies + c->drops + c->too_longs + c->garbage;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake f;
	static struct fake_conn conn;
	uint8_t *mem[RPC_SEGS_MAX];

	if (size < 3)
		return 0;
	if (f.pool == NULL) {
		fake_init(&f, 256);
		fake_conn_init(&conn, 1, 1, 700);
	}
	struct rpc_request *req = fake_request(&f, &conn, &(struct xdr_out){ 0 });
	cut(req, data + 3, size - 3, (size_t)data[0] + 1);
	const unsigned nseg = req->nseg;
	for (unsigned i = 0; i < nseg; i++)
		mem[i] = req->seg[i].base;
	if (data[1] < nseg)
		req->seg[data[1]].placed = true;
	req->reply_max = data[2] < 128 ? data[2] : sizeof(conn.reply);
	req->nbulk_spaces = data[2] & 1;
	req->bulk_space[0] = 1;
	const unsigned before = answers(&conn);
	f.pending = NULL;
	fake_begin(&f, req);
	fake_run_inbox(&f); /* starts calls that the duplicate request cache deferred */
	if (f.pending != NULL)
		fake_complete(&f, f.pending, RPC_RUN_DONE);
	if (answers(&conn) != before + 1 || fake_leaks(&f) != 0 || conn.base.refs != 1)
		abort();
	for (unsigned i = 0; i < nseg; i++)
		free(mem[i]);
	return 0;
}
