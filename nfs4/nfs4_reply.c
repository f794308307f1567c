/* SPDX-License-Identifier: BSD-2-Clause */
/* Room and data in a COMPOUND's reply, and what the caller is told of it. */
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/told.h"

bool nfs4_told_begin(struct nfs4_compound *c, enum rn_level level, struct nfs4_told *t)
{
	const struct sockaddr_storage *peer = &c->req->conn->peer;
	struct rn_host host;

	if (!rn_log_wants(c->server->cfg.log, level))
		return false;
	rn_host_of((const struct sockaddr *)peer, &host);
	if (!rn_log_hosts_pass(&c->server->told, &host, c->req->arrived_ns, &t->left_out))
		return false;
	rpc_address_text(peer, t->client);
	return true;
}

void nfs4_told_end(struct nfs4_compound *c, const struct nfs4_told *t)
{
	if (t->left_out)
		rn_notice(c->server->cfg.log, "%s: %u more messages about NFSv4 are not shown",
			  t->client, t->left_out);
}

/* Services of a COMPOUND to its operations: space in the reply, waits, and making changes durable. */

/* Number and status of an operation, and the empty bitmap of a failed SETATTR. */
#define FAILURE_SIZE 12u

static size_t nfs4_reply_left_of(size_t limit, size_t used)
{
	return limit > used ? limit - used : 0;
}

/* The session's limit, which counts data as if there were no Write chunks. */
static size_t session_space(const struct nfs4_compound *c)
{
	size_t total = xdr_out_total(c->out);
	size_t room = nfs4_reply_left_of(c->reply_limit, total);

	return c->cache_this ? rn_min(room, nfs4_reply_left_of(c->cached_limit, total)) : room;
}

/* The part of the space that is reserved for the operations behind this one. */
static size_t kept_back(const struct nfs4_compound *c)
{
	return c->index + 1 < c->nops ? FAILURE_SIZE : 0;
}

size_t nfs4_reply_space(const struct nfs4_compound *c)
{
	return nfs4_reply_left_of(rn_min(rpc_reply_space(c->req), session_space(c)), kept_back(c));
}

size_t nfs4_reply_space_now(const struct nfs4_compound *c)
{
	return nfs4_reply_left_of(c->out->size, c->out->used + FAILURE_SIZE);
}

uint32_t nfs4_bulk_space(const struct nfs4_compound *c, size_t head)
{
	uint32_t chunk = rpc_reply_bulk_chunk(c->req);
	size_t room = session_space(c);

	if (chunk == 0)
		room = rn_min(room, rpc_reply_space(c->req));
	room = nfs4_reply_left_of(room, head + kept_back(c)) & ~(size_t)3; /* padding counts, too */
	if (chunk > 0)
		room = rn_min(room, chunk);
	return (uint32_t)rn_min(room, UINT32_MAX);
}

int nfs4_reply_too_big(const struct nfs4_compound *c, size_t need)
{
	if (c->req->conn->ops->says_too_long && need + kept_back(c) <= session_space(c))
		return NFS4_NO_ROOM;
	if (c->minor == 0)
		return NFS4ERR_RESOURCE;
	if (c->cache_this &&
	    need + kept_back(c) <= nfs4_reply_left_of(c->reply_limit, xdr_out_total(c->out)))
		return NFS4ERR_REP_TOO_BIG_TO_CACHE;
	return NFS4ERR_REP_TOO_BIG;
}

int nfs4_grow_reply(struct nfs4_compound *c, size_t size)
{
	size_t want = size + FAILURE_SIZE; /* the next operation's failure must fit, too */

	if (want > c->out->size - c->out->used && rpc_reply_grow(c->req, want) < 0)
		return NFS4ERR_DELAY;
	return NFS4_OK;
}

int nfs4_reserve_reply(struct nfs4_compound *c, size_t size)
{
	size_t room = rn_min(rpc_reply_space(c->req), session_space(c));

	/* Not nfs4_reply_space(): with no room left, an empty result would seem to fit, though the
	 * next status does not. */
	if (size + kept_back(c) > room)
		return nfs4_reply_too_big(c, size);
	return nfs4_grow_reply(c, size);
}

bool nfs4_reply_is_too_big(const struct nfs4_compound *c)
{
	size_t total = xdr_out_total(c->out) + kept_back(c);

	if (total > c->reply_limit || (c->cache_this && total > c->cached_limit))
		return true;
	return !rpc_reply_fits(c->req, kept_back(c), 0);
}

bool nfs4_forget_call(struct nfs4_compound *c)
{
	struct xdr_in *in = c->in;
	size_t left = in->left & ~(size_t)3; /* XDR items are multiples of 4 bytes */
	uint8_t *copy;

	if (c->out->nbulks > 0 || xdr_in_placed_left(in))
		return false;
	copy = rn_arena_alloc(&c->req->arena, left > 0 ? left : 1);
	if (!copy)
		return false;
	xdr_get_fixed(in, copy, (uint32_t)left);
	c->rest = (struct rpc_seg){ .base = copy, .len = (uint32_t)left };
	rpc_request_forget_call(c->req);
	xdr_in_init(in, &c->rest, 1, &c->req->arena);
	c->arena_at = c->req->arena.used;
	return true;
}

int nfs4_settle(struct nfs4_compound *c, struct vfs_sync *sync, int rc)
{
	sync->ctx = &c->current.ctx;
	return rc < 0 || (c->current.ctx.access.flags & VFS_ASYNC) ? rc : vfs_sync(sync);
}
