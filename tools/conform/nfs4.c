/* SPDX-License-Identifier: BSD-2-Clause */
/* COMPOUND: operations and results. */
#include "tools/conform/nfs4.h"

#include <stdio.h>
#include <string.h>

void cf4_op(struct cf_call *c, uint32_t op)
{
	xdr_put_u32(&c->rpc, op);
	xdr_patch_u32(&c->rpc, c->nops_at, ++c->nops);
}

struct cf_call *cf4_new(struct cf_test *t, struct cf4_session *s, const char *tag)
{
	struct cf_call *c = cf_call_new(t, CF_PROG_NFS, 4, 1);

	xdr_put_opaque(&c->rpc, tag ? tag : "", tag ? strlen(tag) : 0);
	xdr_put_u32(&c->rpc, s->minor);
	c->nops_at = xdr_out_pos(&c->rpc);
	xdr_put_u32(&c->rpc, 0);
	if (s->sequence) {
		cf4_op(c, CF4_SEQUENCE);
		xdr_put_fixed(&c->rpc, s->id, sizeof(s->id));
		xdr_put_u32(&c->rpc, s->sequence++);
		xdr_put_u32(&c->rpc, 0); /* slot */
		xdr_put_u32(&c->rpc, 0); /* highest slot */
		xdr_put_bool(&c->rpc, false);
	}
	return c;
}

struct cf_call *cf4_new_on(struct cf_test *t, struct cf4_session *s, uint32_t slot,
			   uint32_t sequence)
{
	struct cf4_session with = *s;

	with.sequence = sequence;
	struct cf_call *c = cf4_new(t, &with, NULL);
	xdr_patch_u32(&c->rpc, xdr_out_pos(&c->rpc) - 12, slot);
	xdr_patch_u32(&c->rpc, xdr_out_pos(&c->rpc) - 8, slot); /* the highest */
	return c;
}

void cf4_putrootfh(struct cf_call *c)
{
	cf4_op(c, CF4_PUTROOTFH);
}

void cf4_putfh(struct cf_call *c, const struct cf_fh *fh)
{
	cf4_op(c, CF4_PUTFH);
	xdr_put_opaque(&c->rpc, fh->data, fh->len);
}

void cf4_lookup(struct cf_call *c, const char *name)
{
	cf4_op(c, CF4_LOOKUP);
	xdr_put_opaque(&c->rpc, name, strlen(name));
}

void cf4_getfh(struct cf_call *c)
{
	cf4_op(c, CF4_GETFH);
}

void cf4_getattr(struct cf_call *c)
{
	cf4_op(c, CF4_GETATTR);
	xdr_put_u32(&c->rpc, 1);
	xdr_put_u32(&c->rpc, 1u << 1 | 1u << 4 | 1u << 20); /* type, size, fileid */
}

static void put_anonymous(struct xdr_out *x)
{
	for (int i = 0; i < 4; i++)
		xdr_put_u32(x, 0);
}

void cf4_read(struct cf_call *c, uint64_t off, uint32_t count)
{
	cf4_op(c, CF4_READ);
	put_anonymous(&c->rpc);
	xdr_put_u64(&c->rpc, off);
	xdr_put_u32(&c->rpc, count);
}

void cf4_read_plus(struct cf_call *c, uint64_t off, uint32_t count)
{
	cf4_op(c, CF4_READ_PLUS);
	put_anonymous(&c->rpc);
	xdr_put_u64(&c->rpc, off);
	xdr_put_u32(&c->rpc, count);
}

void cf4_write(struct cf_call *c, uint64_t off, uint32_t len, const void *data)
{
	cf4_op(c, CF4_WRITE);
	put_anonymous(&c->rpc);
	xdr_put_u64(&c->rpc, off);
	xdr_put_u32(&c->rpc, 2); /* FILE_SYNC4 */
	xdr_put_u32(&c->rpc, len);
	if (data)
		xdr_put_fixed(&c->rpc, data, len);
}

void cf4_readlink(struct cf_call *c)
{
	cf4_op(c, CF4_READLINK);
}

void cf4_readdir(struct cf_call *c, uint32_t maxcount)
{
	cf4_op(c, CF4_READDIR);
	xdr_put_u64(&c->rpc, 0); /* cookie */
	xdr_put_u64(&c->rpc, 0); /* verifier */
	xdr_put_u32(&c->rpc, maxcount);
	xdr_put_u32(&c->rpc, maxcount);
	xdr_put_u32(&c->rpc, 1);
	xdr_put_u32(&c->rpc, 1u << 20);
}

void cf4_remove(struct cf_call *c, const char *name)
{
	cf4_op(c, CF4_REMOVE);
	xdr_put_opaque(&c->rpc, name, strlen(name));
}

void cf4_create_link(struct cf_call *c, uint32_t text_len)
{
	cf4_op(c, CF4_CREATE);
	xdr_put_u32(&c->rpc, 5); /* NF4LNK */
	xdr_put_u32(&c->rpc, text_len);
}

void cf4_create_link_end(struct cf_call *c, const char *name)
{
	xdr_put_opaque(&c->rpc, name, strlen(name));
	xdr_put_u32(&c->rpc, 0); /* no attributes: an empty bitmap, an empty list */
	xdr_put_u32(&c->rpc, 0);
}

/* Calls put for each component of the scratch directory's path; their number. */
static unsigned each_component(const struct cf_run *run, struct cf_call *c)
{
	const char *p = run->v4_path;
	unsigned n = 0;

	for (;;) {
		char name[256];
		p += strspn(p, "/");
		size_t len = strcspn(p, "/");
		if (!len)
			break;
		snprintf(name, sizeof(name), "%.*s", (int)len, p);
		if (c)
			cf4_lookup(c, name);
		p += len;
		n++;
	}
	return n;
}

void cf4_put_scratch(struct cf_test *t, struct cf_call *c)
{
	cf4_putrootfh(c);
	each_component(t->run, c);
	cf4_lookup(c, t->run->scratch_name);
}

/* ---- results ----------------------------------------------------------------------------------
 */

static bool bad_status(struct cf_test *t, const char *what, uint32_t want, uint32_t got)
{
	char expected[96];

	snprintf(expected, sizeof(expected), "%s with status %u", what, want);
	return cf_fail(t, expected, "status %u", got);
}

bool cf4_op_done(struct cf_test *t, struct cf_reply *r, uint32_t op, uint32_t want)
{
	uint32_t got_op = xdr_get_u32(&r->x), status = xdr_get_u32(&r->x);
	char what[32];

	if (r->x.err)
		return cf_fail(t, "a result for each operation", "the results end early");
	if (got_op != op)
		return cf_fail(t, "results in the order of the operations", "operation %u, not %u",
			       got_op, op);
	snprintf(what, sizeof(what), "operation %u", op);
	return status == want || bad_status(t, what, want, status);
}

bool cf4_results(struct cf_test *t, struct cf4_session *s, struct cf_reply *r, uint32_t want)
{
	uint32_t status = xdr_get_u32(&r->x), len;

	xdr_get_opaque(&r->x, 1024, &len); /* tag */
	xdr_get_u32(&r->x);		   /* count */
	if (r->x.err)
		return cf_fail(t, "a COMPOUND reply", "it is too short");
	if (status != want)
		return bad_status(t, "a COMPOUND reply", want, status);
	if (!s->sequence)
		return true;
	if (!cf4_op_done(t, r, CF4_SEQUENCE, CF4_OK))
		return false;
	xdr_skip(&r->x, 16 + 4 * 4);
	s->flags = xdr_get_u32(&r->x);
	return !r->x.err || cf_fail(t, "SEQUENCE's result", "it is too short");
}

bool cf4_scratch_done(struct cf_test *t, struct cf_reply *r)
{
	unsigned n = each_component(t->run, NULL) + 1;

	if (!cf4_op_done(t, r, CF4_PUTROOTFH, CF4_OK))
		return false;
	while (n--)
		if (!cf4_op_done(t, r, CF4_LOOKUP, CF4_OK))
			return false;
	return true;
}

void cf4_skip_getattr(struct xdr_in *x)
{
	uint32_t len;

	for (uint32_t n = xdr_get_u32(x); n && !x->err; n--)
		xdr_get_u32(x);
	xdr_get_opaque(x, 4096, &len);
}

bool cf4_read_result(struct cf_test *t, struct cf_reply *r, bool reduced,
		     struct cf4_read_result *out)
{
	*out = (struct cf4_read_result){ .eof = xdr_get_bool(&r->x) };
	if (reduced)
		out->len = xdr_get_u32(&r->x);
	else
		out->data = xdr_get_opaque(&r->x, UINT32_MAX, &out->len);
	return !r->x.err || cf_fail(t, "READ's result", "it is too short");
}

struct cf_reply *cf4_ask(struct cf_test *t, struct cf4_session *s, struct cf_call *c)
{
	struct cf_reply *r = cf_ask(t, c);

	return r && cf4_results(t, s, r, CF4_OK) ? r : NULL;
}

bool cf4_handle(struct cf_test *t, struct cf4_session *s, const char *name, struct cf_fh *fh)
{
	struct cf_call *c = cf4_new(t, s, NULL);
	uint32_t len;

	cf4_put_scratch(t, c);
	if (name)
		cf4_lookup(c, name);
	cf4_getfh(c);
	struct cf_reply *r = cf4_ask(t, s, c);
	if (!r || !cf4_scratch_done(t, r) || (name && !cf4_op_done(t, r, CF4_LOOKUP, CF4_OK)) ||
	    !cf4_op_done(t, r, CF4_GETFH, CF4_OK))
		return false;
	const uint8_t *p = xdr_get_opaque(&r->x, CF_FH_MAX, &len);
	if (!p)
		return cf_fail(t, "a file handle", "none");
	fh->len = len;
	memcpy(fh->data, p, len);
	return true;
}
