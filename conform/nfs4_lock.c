/* SPDX-License-Identifier: BSD-2-Clause */
#include "conform/nfs4_lock.h"

#include <string.h>

#include "conform/check.h"

#define SHARE_BOTH 3u
#define CLAIM_FH 4u
#define OWNER "rpcrdma-conform"

bool cf4_open_file(struct cf_test *t, struct cf4_session *s, const struct cf_fh *fh,
		   struct cf4_open *o)
{
	struct cf_call *c = cf4_new(t, s, NULL);

	cf4_putfh(c, fh);
	cf4_op(c, CF4_OPEN);
	xdr_put_u32(&c->rpc, 0); /* seqid */
	xdr_put_u32(&c->rpc, SHARE_BOTH);
	xdr_put_u32(&c->rpc, 0); /* denies nothing */
	xdr_put_u64(&c->rpc, s->client);
	xdr_put_opaque(&c->rpc, OWNER, strlen(OWNER));
	xdr_put_u32(&c->rpc, 0); /* OPEN4_NOCREATE */
	xdr_put_u32(&c->rpc, CLAIM_FH);
	struct cf_reply *r = cf_ask(t, c);
	if (!r)
		return false;
	if (cf_peek_status(r) == CF4ERR_GRACE)
		return cf_skip(t, "the server is in its grace period");
	if (!cf4_results(t, s, r, CF4_OK) || !cf4_op_done(t, r, CF4_PUTFH, CF4_OK) ||
	    !cf4_op_done(t, r, CF4_OPEN, CF4_OK))
		return false;
	o->fh = *fh;
	xdr_get_fixed(&r->x, o->stateid, CF4_STATEID);
	xdr_skip(&r->x, 4 + 8 + 8); /* change_info4 */
	o->rflags = xdr_get_u32(&r->x);
	return !r->x.err || cf_fail(t, "OPEN's result", "it is too short");
}

void cf4_close_file(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o)
{
	struct cf_call *c = cf4_new(t, s, NULL);

	cf4_putfh(c, &o->fh);
	cf4_op(c, CF4_CLOSE);
	xdr_put_u32(&c->rpc, 0); /* seqid */
	xdr_put_fixed(&c->rpc, o->stateid, CF4_STATEID);
	cf_ask_any(t, c);
}

static struct cf_reply *ask_lock(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o,
				 const struct cf4_lock *l, uint32_t want)
{
	struct cf_call *c = cf4_new(t, s, NULL);

	cf4_putfh(c, &o->fh);
	cf4_op(c, CF4_LOCK);
	xdr_put_u32(&c->rpc, l->type);
	xdr_put_bool(&c->rpc, false); /* no reclaim */
	xdr_put_u64(&c->rpc, l->offset);
	xdr_put_u64(&c->rpc, l->length);
	xdr_put_bool(&c->rpc, true); /* a new lock-owner, who begins with the open's stateid */
	xdr_put_u32(&c->rpc, 0);
	xdr_put_fixed(&c->rpc, o->stateid, CF4_STATEID);
	xdr_put_u32(&c->rpc, 0);
	xdr_put_u64(&c->rpc, s->client);
	xdr_put_opaque(&c->rpc, l->owner, l->owner_len);
	struct cf_reply *r = cf_ask(t, c);
	return r && cf4_results(t, s, r, want) && cf4_op_done(t, r, CF4_PUTFH, CF4_OK) &&
			       cf4_op_done(t, r, CF4_LOCK, want)
		       ? r
		       : NULL;
}

bool cf4_lock(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o,
	      const struct cf4_lock *l, uint8_t stateid[CF4_STATEID])
{
	struct cf_reply *r = ask_lock(t, s, o, l, CF4_OK);

	if (!r)
		return false;
	xdr_get_fixed(&r->x, stateid, CF4_STATEID);
	return !r->x.err || cf_fail(t, "LOCK's result", "it is too short");
}

bool cf4_lock_denied(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o,
		     const struct cf4_lock *l)
{
	return ask_lock(t, s, o, l, CF4ERR_DENIED) != NULL;
}

bool cf4_unlock(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o,
		const struct cf4_lock *l, const uint8_t stateid[CF4_STATEID])
{
	struct cf_call *c = cf4_new(t, s, NULL);

	cf4_putfh(c, &o->fh);
	cf4_op(c, CF4_LOCKU);
	xdr_put_u32(&c->rpc, l->type);
	xdr_put_u32(&c->rpc, 0); /* seqid */
	xdr_put_fixed(&c->rpc, stateid, CF4_STATEID);
	xdr_put_u64(&c->rpc, l->offset);
	xdr_put_u64(&c->rpc, l->length);
	struct cf_reply *r = cf4_ask(t, s, c);
	return r && cf4_op_done(t, r, CF4_PUTFH, CF4_OK) && cf4_op_done(t, r, CF4_LOCKU, CF4_OK);
}
