/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of the monitor's program, by UDP. A reply is never longer than its call. */
#include <stdlib.h>
#include <string.h>

#include "nsm/nsm_private.h"
#include "nsm/serve.h"
#include "rpc/message.h"

#define WAITING_MAX 32u /* calls that wait for a record; further ones come again */

/* A call that waits until a record is on disk. */
struct nsm_waiting {
	TAILQ_ENTRY(nsm_waiting) link;
	struct nsm_datagram d;
	uint8_t bytes[];
};

/* The procedure has put its result, or it is replaced. */
static void conclude(enum rpc_run how, const struct rpc_call *call, struct xdr_out *x)
{
	if (how == RPC_RUN_DONE)
		return;
	xdr_out_rewind(x, 0);
	if (how == RPC_RUN_AUTH_TOOWEAK)
		rpc_put_auth_error(x, call->xid, RPC_AUTH_TOOWEAK);
	else
		rpc_put_accepted(x, call->xid, RPC_GARBAGE_ARGS);
}

/* False: the call is to be run again when a record is on disk. */
static bool nsm_answer_run(struct nsm *n, const struct nsm_datagram *d, const struct rpc_call *call,
			   struct xdr_in *in, struct xdr_out *x)
{
	struct nsm_caller from = { .addr = d->peer, .port = d->port };

	if (call->prog != NSM_PROGRAM) {
		rpc_put_accepted(x, call->xid, RPC_PROG_UNAVAIL);
		return true;
	}
	if (call->vers != NSM_VERSION) {
		rpc_put_prog_mismatch(x, call->xid, NSM_VERSION, NSM_VERSION);
		return true;
	}
	if (call->proc >= SM_PROCS) {
		rpc_put_accepted(x, call->xid, RPC_PROC_UNAVAIL);
		return true;
	}
	rpc_put_accepted(x, call->xid, RPC_SUCCESS);
	conclude(nsm_serve(n, &from, call->proc, in, x), call, x);
	return !from.again;
}

static void nsm_answer_keep(struct nsm *n, const struct nsm_datagram *d)
{
	struct nsm_waiting *w = n->nwaiting < WAITING_MAX ? malloc(sizeof(*w) + d->len) : NULL;

	if (!w)
		return;
	w->d = *d;
	w->d.data = w->bytes;
	memcpy(w->bytes, d->data, d->len);
	TAILQ_INSERT_TAIL(&n->waiting, w, link);
	n->nwaiting++;
}

size_t nsm_answer(struct nsm *n, const struct nsm_datagram *d, uint8_t *out, size_t size)
{
	struct rpc_seg seg = { .base = (uint8_t *)d->data, .len = (uint32_t)d->len };
	enum rpc_auth_stat stat = RPC_AUTH_OK;
	struct rpc_call call;
	struct rn_arena none;
	struct xdr_in in;
	struct xdr_out x;

	rn_arena_init(&none, NULL, 0);
	xdr_in_init(&in, &seg, 1, &none);
	xdr_out_init(&x, out, size);
	switch (rpc_decode_call(&in, &call, &stat)) {
	case RPC_HEADER_OK:
		if (!nsm_answer_run(n, d, &call, &in, &x)) {
			nsm_answer_keep(n, d);
			return 0;
		}
		break;
	case RPC_HEADER_MISMATCH:
		rpc_put_rpc_mismatch(&x, call.xid);
		break;
	case RPC_HEADER_AUTH:
		rpc_put_auth_error(&x, call.xid, stat);
		break;
	default: /* no call, or cut short: nothing to be said to a datagram */
		return 0;
	}
	return x.overflow || x.used > d->len ? 0 : x.used;
}

void nsm_answer_waiting(struct nsm *n)
{
	struct nsm_waiting_list all = TAILQ_HEAD_INITIALIZER(all);
	struct nsm_waiting *w;
	uint8_t out[256];

	TAILQ_CONCAT(&all, &n->waiting, link);
	n->nwaiting = 0;
	while ((w = TAILQ_FIRST(&all)) != NULL) {
		struct nsm_datagram reply = w->d;

		TAILQ_REMOVE(&all, w, link);
		reply.len = nsm_answer(n, &w->d, out, sizeof(out));
		reply.data = out;
		if (reply.len > 0)
			nsm_send(&n->calls, &reply);
		free(w);
	}
}

void nsm_answer_free(struct nsm *n)
{
	struct nsm_waiting *w;

	while ((w = TAILQ_FIRST(&n->waiting)) != NULL) {
		TAILQ_REMOVE(&n->waiting, w, link);
		free(w);
	}
}
