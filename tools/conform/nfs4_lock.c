/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/conform/nfs4_lock.h"

#include <string.h>
#include <time.h>

#include "tools/conform/conform_check.h"

#define SHARE_BOTH 3u
#define WANT_NO_DELEG 0x400u
#define PAUSE_NS 200000000
#define CLAIM_FH 4u
#define OWNER "rpcrdma-conform"

/* Waits a little if the server gives out no new state yet. False: it is not that, or verdict. */
static bool is_in_grace(struct cf_test *t, const struct cf_reply *r)
{
	static const struct timespec pause = { 0, PAUSE_NS };
	const uint32_t status = cf_peek_status(r);

	if (status != CF4ERR_GRACE && status != CF4ERR_DELAY)
		return false;
	nanosleep(&pause, NULL);
	return cf_now_ms() < t->deadline ||
	       cf_skip(t, "the server is in its grace period (status %u)", status);
}

static struct cf_reply *ask_open(struct cf_test *t, struct cf4_session *s, const struct cf_fh *fh)
{
	struct cf_call *c = cf4_new(t, s, NULL);

	cf4_putfh(c, fh);
	cf4_op(c, CF4_OPEN);
	xdr_put_u32(&c->rpc, 0); /* seqid */
	xdr_put_u32(&c->rpc, SHARE_BOTH | WANT_NO_DELEG);
	xdr_put_u32(&c->rpc, 0); /* denies nothing */
	xdr_put_u64(&c->rpc, s->client);
	xdr_put_opaque(&c->rpc, OWNER, strlen(OWNER));
	xdr_put_u32(&c->rpc, 0); /* OPEN4_NOCREATE */
	xdr_put_u32(&c->rpc, CLAIM_FH);
	return cf_ask(t, c);
}

bool cf4_open_file(struct cf_test *t, struct cf4_session *s, const struct cf_fh *fh,
		   struct cf4_open *o)
{
	struct cf_reply *r = ask_open(t, s, fh);

	while (r && is_in_grace(t, r))
		r = ask_open(t, s, fh);
	if (!r || t->verdict != CF_PASS || !cf4_results(t, s, r, CF4_OK) ||
	    !cf4_op_done(t, r, CF4_PUTFH, CF4_OK) || !cf4_op_done(t, r, CF4_OPEN, CF4_OK))
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

static struct cf_call *lock_call(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o,
				 const struct cf4_lock *l)
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
	return c;
}

static struct cf_reply *ask_lock(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o,
				 const struct cf4_lock *l, uint32_t want)
{
	struct cf_reply *r = cf_ask(t, lock_call(t, s, o, l));

	while (r && is_in_grace(t, r))
		r = cf_ask(t, lock_call(t, s, o, l));
	return r && t->verdict == CF_PASS && cf4_results(t, s, r, want) &&
			       cf4_op_done(t, r, CF4_PUTFH, CF4_OK) &&
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
