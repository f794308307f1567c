/* SPDX-License-Identifier: BSD-2-Clause */
/* Building calls: RPC header (RFC 5531), chunks, the message. */
#include "tools/conform/conform_call.h"

#include <string.h>

#include "lib/util.h"

#define RPC_ROOM 65536u

static struct cf_call *new_call(struct cf_test *t, uint32_t prog, uint32_t vers, uint32_t proc)
{
	struct cf_call *c = cf_alloc(t, sizeof(*c));

	c->xid = cf_xid(t);
	c->vers = CF_VERSION;
	c->credits = 32;
	c->proc = CF_MSG;
	xdr_out_init(&c->rpc, cf_alloc_raw(t, RPC_ROOM), RPC_ROOM);
	xdr_put_u32(&c->rpc, c->xid);
	xdr_put_u32(&c->rpc, 0); /* CALL */
	xdr_put_u32(&c->rpc, 2);
	xdr_put_u32(&c->rpc, prog);
	xdr_put_u32(&c->rpc, vers);
	xdr_put_u32(&c->rpc, proc);
	return c;
}

static void put_none(struct xdr_out *x)
{
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 0);
}

struct cf_call *cf_call_new_none(struct cf_test *t, uint32_t prog, uint32_t vers, uint32_t proc)
{
	struct cf_call *c = new_call(t, prog, vers, proc);

	put_none(&c->rpc);
	put_none(&c->rpc);
	c->head = xdr_out_pos(&c->rpc);
	return c;
}

struct cf_call *cf_call_new(struct cf_test *t, uint32_t prog, uint32_t vers, uint32_t proc)
{
	static const char machine[] = "rpcrdma-conform";
	struct cf_call *c = new_call(t, prog, vers, proc);

	xdr_put_u32(&c->rpc, 1); /* AUTH_SYS: stamp, machine, uid, gid, no further groups */
	xdr_put_u32(&c->rpc, 4 + 4 + 16 + 4 + 4 + 4);
	xdr_put_u32(&c->rpc, 0);
	xdr_put_opaque(&c->rpc, machine, strlen(machine));
	xdr_put_u32(&c->rpc, t->run->uid);
	xdr_put_u32(&c->rpc, t->run->gid);
	xdr_put_u32(&c->rpc, 0);
	put_none(&c->rpc);
	c->head = xdr_out_pos(&c->rpc);
	return c;
}

void cf_call_room(struct cf_test *t, struct cf_call *c, uint32_t more)
{
	size_t need = xdr_out_pos(&c->rpc) + (size_t)more + RPC_ROOM;
	uint8_t *room = cf_alloc_raw(t, need);

	memcpy(room, c->rpc.base, xdr_out_pos(&c->rpc));
	c->rpc.base = room;
	c->rpc.size = need;
}

uint32_t cf_position(const struct cf_call *c)
{
	return xdr_out_pos(&c->rpc) + c->reduced;
}

/* Bytes of part i of len bytes in n parts: none is empty if len >= n. */
static uint32_t cf_call_part_len(uint32_t len, unsigned n, unsigned i)
{
	return (uint64_t)len * (i + 1) / n - (uint64_t)len * i / n;
}

/* Read segments of one position that hold data. */
static bool offer_data(struct cf_test *t, struct cf_lists *l, uint32_t position,
		       const uint8_t *data, uint32_t len, unsigned nsegs)
{
	for (unsigned i = 0; i < nsegs; i++) {
		uint32_t n = cf_call_part_len(len, nsegs, i);
		struct cf_window *w = cf_window_new(t->conn, n);

		if (!w)
			return cf_skip(t, "this machine's device registers no more memory");
		memcpy(w->data, data, n);
		data += n;
		cf_add_read(l, position, cf_window_seg(w, 0, n));
	}
	return true;
}

bool cf_reduce(struct cf_test *t, struct cf_call *c, const void *data, uint32_t len, unsigned nsegs)
{
	if (!offer_data(t, &c->lists, cf_position(c), data, len, nsegs))
		return false;
	c->reduced += len + rn_xdr_pad(len);
	return true;
}

bool cf_make_long(struct cf_test *t, struct cf_call *c, unsigned nsegs)
{
	struct cf_lists *l = cf_alloc(t, sizeof(*l));

	if (!offer_data(t, l, 0, c->rpc.base, xdr_out_pos(&c->rpc), nsegs))
		return false;
	for (unsigned i = 0; i < c->lists.nreads; i++)
		cf_add_read(l, c->lists.read[i].position, c->lists.read[i].seg);
	c->lists.nreads = l->nreads;
	memcpy(c->lists.read, l->read, sizeof(l->read));
	c->proc = CF_NOMSG;
	return true;
}

static struct cf_window *offer_room(struct cf_test *t, struct cf_chunk *chunk, uint32_t len,
				    unsigned nsegs)
{
	struct cf_window *w = cf_window_new(t->conn, len);
	uint32_t off = 0;

	if (!w) {
		cf_skip(t, "this machine's device registers no more memory");
		return NULL;
	}
	for (unsigned i = 0; i < nsegs; i++) {
		uint32_t n = cf_call_part_len(len, nsegs, i);
		cf_add_seg(chunk, cf_window_seg(w, off, n));
		off += n;
	}
	return w;
}

struct cf_window *cf_offer_write(struct cf_test *t, struct cf_call *c, uint32_t len, unsigned nsegs)
{
	return offer_room(t, cf_add_write(&c->lists), len, nsegs);
}

struct cf_window *cf_offer_reply(struct cf_test *t, struct cf_call *c, uint32_t len, unsigned nsegs)
{
	return offer_room(t, cf_add_reply(&c->lists), len, nsegs);
}

size_t cf_call_encode(const struct cf_call *c, uint8_t *out)
{
	struct xdr_out x;

	xdr_out_init(&x, out, CF_INLINE_MAX);
	cf_put_fixed(&x, c->xid, c->vers, c->credits, c->proc);
	cf_put_lists(&x, &c->lists);
	if (c->proc != CF_NOMSG)
		xdr_put_fixed(&x, c->rpc.base, xdr_out_pos(&c->rpc));
	return xdr_out_pos(&x);
}
