/* SPDX-License-Identifier: BSD-2-Clause */
/* Files for the cases, by NFSv3 in the scratch directory. Small transfers, inline: set-up must not
 * depend on the features that the cases test. */
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "tools/conform/nfs3.h"

#define PIECE 512u /* fits any inline threshold */

uint8_t cf_pattern(uint32_t i)
{
	return (uint8_t)(i * 7 + (i >> 8) * 13 + (i >> 16) + 1);
}

void cf_fill_pattern(void *p, uint32_t from, uint32_t len)
{
	uint8_t *b = p;

	for (uint32_t i = 0; i < len; i++)
		b[i] = cf_pattern(from + i);
}

static bool cf3_remove_name(struct cf_test *t, const char *name)
{
	return cf_ask(t, cf3_remove(t, &t->run->scratch, name)) != NULL;
}

/* The handle in a CREATE, MKDIR or SYMLINK reply, or by LOOKUP if the server did not return it. */
static bool new_handle(struct cf_test *t, struct cf_reply *r, const char *name, struct cf_fh *fh)
{
	if (!r || !cf3_status(t, r, CF3_OK))
		return false;
	if (!xdr_get_bool(&r->x)) {
		r = cf_ask(t, cf3_lookup(t, &t->run->scratch, name));
		if (!r || !cf3_status(t, r, CF3_OK))
			return false;
	}
	cf_get_fh(&r->x, fh);
	return !r->x.err || cf_fail(t, "a file handle", "none");
}

static bool cf3_file_fill(struct cf_test *t, const struct cf_fh *fh, uint32_t size)
{
	uint8_t *data = cf_alloc(t, size + 1);
	uint32_t by = size > 16 * PIECE ? 65536 : PIECE;

	cf_fill_pattern(data, 0, size);
	for (uint32_t at = 0; at < size; at += by) {
		uint32_t n = rn_min(by, size - at);
		struct cf_call *c = cf3_write(t, fh, at, n, by == PIECE ? data + at : NULL);

		if (by != PIECE && !cf_reduce(t, c, data + at, n, 1))
			return false;
		struct cf_reply *r = cf_ask(t, c);
		if (!r || !cf3_status(t, r, CF3_OK))
			return false;
	}
	return true;
}

bool cf3_make_file(struct cf_test *t, const char *name, uint32_t size, struct cf_fh *fh)
{
	return cf3_remove_name(t, name) &&
	       new_handle(t, cf_ask(t, cf3_create(t, &t->run->scratch, name, CF3_UNCHECKED)), name,
			  fh) &&
	       cf3_file_fill(t, fh, size);
}

bool cf3_make_dir(struct cf_test *t, const char *name, struct cf_fh *fh)
{
	if (!cf_ask(t, cf3_rmdir(t, &t->run->scratch, name)))
		return false;
	return new_handle(t, cf_ask(t, cf3_mkdir(t, &t->run->scratch, name)), name, fh);
}

bool cf3_make_symlink(struct cf_test *t, const char *name, const char *text, struct cf_fh *fh)
{
	struct cf_call *c = cf3_symlink(t, &t->run->scratch, name, text, strlen(text));

	return cf3_remove_name(t, name) && new_handle(t, cf_ask(t, c), name, fh);
}

/* Reads up to len bytes from at on: inline, or where there are many by a Write chunk. NULL:
 * verdict. */
static const uint8_t *cf3_file_read(struct cf_test *t, const struct cf_fh *fh, uint32_t at,
				    uint32_t len, struct cf3_read_result *got)
{
	struct cf_call *c = cf3_read(t, fh, at, len);
	struct cf_window *w = NULL;

	if (len > PIECE && !(w = cf_offer_write(t, c, len, 1)))
		return NULL;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf3_read_result(t, r, w != NULL, got))
		return NULL;
	if (!got->count || got->count > len) {
		cf_fail(t, "the file holds what was written", "it ends at %u", at);
		return NULL;
	}
	return w ? w->data : got->data;
}

bool cf3_file_is(struct cf_test *t, const struct cf_fh *fh, const void *data, uint32_t size)
{
	const uint8_t *want = data;
	uint32_t by = size > 16 * PIECE ? 65536 : PIECE;

	for (uint32_t at = 0; at < size;) {
		struct cf3_read_result got;
		const uint8_t *p = cf3_file_read(t, fh, at, rn_min(by, size - at), &got);

		if (!p)
			return false;
		for (uint32_t i = 0; i < got.count; i++)
			if (p[i] != want[at + i])
				return cf_fail(t, "the file holds what was written",
					       "byte %u is %02x, not %02x", at + i, p[i],
					       want[at + i]);
		at += got.count;
	}
	return true;
}

bool cf3_file_size(struct cf_test *t, const struct cf_fh *fh, uint64_t *size)
{
	struct cf_reply *r = cf_ask(t, cf3_getattr(t, fh));

	if (!r || !cf3_status(t, r, CF3_OK))
		return false;
	xdr_skip(&r->x, 20); /* type, mode, nlink, uid, gid */
	*size = xdr_get_u64(&r->x);
	return !r->x.err || cf_fail(t, "attributes", "too few bytes");
}
