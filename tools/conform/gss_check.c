/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/conform/gss_check.h"

#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"

#define WIDE 513u

bool cf_gss_file(struct cf_test *t, uint32_t size, struct cf_fh *fh)
{
	if (!cf3_make_file(t, CF_GSS_NAME, size, fh))
		return false;
	struct cf_reply *r = cf_ask(t, cf3_setattr_mode(t, fh, 0666));
	return r && cf3_status(t, r, CF3_OK);
}

struct cf_call *cf_gss_write(struct cf_test *t, const struct cf_fh *fh, uint32_t from, uint32_t len,
			     enum cf_service s)
{
	uint8_t *data = cf_alloc_raw(t, len);

	cf_fill_pattern(data, from, len);
	struct cf_call *c = cf3_write(t, fh, 0, len, data);
	return cf_gss_protect(t, c, s) ? c : NULL;
}

struct cf_call *cf_gss_read(struct cf_test *t, const struct cf_fh *fh, uint32_t count,
			    enum cf_service s)
{
	struct cf_call *c = cf3_read(t, fh, 0, count);

	return cf_gss_protect(t, c, s) ? c : NULL;
}

struct cf_call *cf_gss_getattr(struct cf_test *t, enum cf_service s)
{
	struct cf_call *c = cf3_getattr(t, &t->run->scratch);

	return cf_gss_protect(t, c, s) ? c : NULL;
}

bool cf_gss_read_is(struct cf_test *t, struct cf_reply *r, uint32_t count)
{
	struct cf3_read_result got;

	if (!cf3_read_result(t, r, false, &got))
		return false;
	if (got.count != count)
		return cf_fail(t, "a whole READ", "%u bytes of %u", got.count, count);
	for (uint32_t i = 0; i < count; i++)
		if (got.data[i] != cf_pattern(i))
			return cf_fail(t, "the file's bytes", "byte %u is %02x", i, got.data[i]);
	return true;
}

bool cf_gss_file_is(struct cf_test *t, const struct cf_fh *fh, uint32_t from, uint32_t len)
{
	uint8_t *want = cf_alloc_raw(t, len);

	cf_fill_pattern(want, from, len);
	return cf3_file_is(t, fh, want, len);
}

bool cf_gss_cut(struct cf_test *t, struct cf_call *c, uint32_t at, uint32_t len)
{
	uint32_t whole = len + rn_xdr_pad(len), end = xdr_out_pos(&c->rpc);
	struct cf_window *w = cf_window_new(t->conn, len);

	if (at + whole > end)
		return cf_fail(t, "a part of the call", "a mistake in this tool");
	if (!w)
		return cf_skip(t, "this machine's device registers no more memory");
	memcpy(w->data, c->rpc.base + at, len);
	memmove(c->rpc.base + at, c->rpc.base + at + whole, end - at - whole);
	xdr_out_rewind(&c->rpc, end - whole);
	cf_add_read(&c->lists, at, cf_window_seg(w, 0, len));
	return true;
}

bool cf_gss_denied(struct cf_test *t, struct cf_call *c, uint32_t stat)
{
	char want[64];
	struct cf_reply *r = cf_ask_any(t, c);

	if (!r)
		return false;
	snprintf(want, sizeof(want), "MSG_DENIED, AUTH_ERROR, auth_stat %u", stat);
	if (r->h.proc == CF_ERROR)
		return cf_fail(t, want, "RDMA_ERROR");
	if (r->accepted)
		return cf_fail(t, want, "%s", cf_accept_name(r->accept));
	if (r->stat != stat)
		return cf_fail(t, want, "auth_stat %u", r->stat);
	return cf_alive(t);
}

bool cf_gss_works(struct cf_test *t, enum cf_service s)
{
	struct cf_call *c = cf_gss_getattr(t, s);
	struct cf_reply *r = c ? cf_gss_ask(t, c) : NULL;

	return r && cf3_status(t, r, CF3_OK);
}

bool cf_gss_open_wide(struct cf_test *t)
{
	struct cf_conn_options o = cf_default_options(t->run);

	o.recvs = WIDE;
	o.sends = WIDE;
	return cf_open(t, &o) != NULL;
}
