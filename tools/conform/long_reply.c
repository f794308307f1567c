/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/conform/long_reply.h"

#include <stdio.h>
#include <string.h>

#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

#define ENTRIES 8u
#define NAME_LEN 200u
#define READ_LEN 3001u
#define TEXT_LEN 1001u
#define COUNT 8192u

static void entry_name(char *name, unsigned i)
{
	int n = snprintf(name, NAME_LEN + 1, "entry-%u-", i);

	memset(name + n, 'n', NAME_LEN - n);
	name[NAME_LEN] = 0;
}

static void link_text(char *text)
{
	for (unsigned i = 0; i < TEXT_LEN; i++)
		text[i] = i % 50 == 49 ? '/' : (char)('a' + i % 26);
	text[TEXT_LEN] = 0;
}

static bool cf_long_look_up(struct cf_test *t, const struct cf_fh *dir, const char *name,
			    struct cf_fh *fh)
{
	struct cf_reply *r = cf_ask(t, cf3_lookup(t, dir, name));

	if (!r || !cf3_status(t, r, CF3_OK))
		return false;
	cf_get_fh(&r->x, fh);
	return !r->x.err || cf_fail(t, "a file handle", "none");
}

/* In the scratch directory, among files of other cases. */
static bool make_entries(struct cf_test *t)
{
	char name[NAME_LEN + 1];

	for (unsigned i = 0; i < ENTRIES; i++) {
		entry_name(name, i);
		struct cf_reply *r =
			cf_ask(t, cf3_create(t, &t->run->scratch, name, CF3_UNCHECKED));
		if (!r || !cf3_status(t, r, CF3_OK))
			return false;
	}
	return true;
}

/* The text, too long to be sent inline, goes by a Read chunk. */
static bool cf_long_make_link(struct cf_test *t, const char *text)
{
	if (!cf_ask(t, cf3_remove(t, &t->run->scratch, "long-link")))
		return false;
	struct cf_call *c = cf3_symlink(t, &t->run->scratch, "long-link", NULL, TEXT_LEN);
	if (!cf_reduce(t, c, text, TEXT_LEN, 1))
		return false;
	struct cf_reply *r = cf_ask(t, c);
	return r && cf3_status(t, r, CF3_OK);
}

struct cf_call *cf_long_again(struct cf_test *t, enum cf_long kind)
{
	const char *name = kind == CF_LONG_READ ? "long-file" : "long-link";
	const struct cf_fh *dir = &t->run->scratch;
	struct cf_fh fh;

	if ((kind == CF_LONG_READ || kind == CF_LONG_READLINK) &&
	    !cf_long_look_up(t, dir, name, &fh))
		return NULL;
	switch (kind) {
	case CF_LONG_READDIR:
		return cf3_readdir(t, dir, COUNT);
	case CF_LONG_READDIRPLUS:
		return cf3_readdirplus(t, dir, COUNT, COUNT);
	case CF_LONG_READ:
		return cf3_read(t, &fh, 0, READ_LEN);
	default:
		return cf3_readlink(t, &fh);
	}
}

struct cf_call *cf_long_call(struct cf_test *t, enum cf_long kind)
{
	char text[TEXT_LEN + 1];
	struct cf_fh fh;
	bool made;

	link_text(text);
	switch (kind) {
	case CF_LONG_READ:
		made = cf3_make_file(t, "long-file", READ_LEN, &fh);
		break;
	case CF_LONG_READLINK:
		made = cf_long_make_link(t, text);
		break;
	default:
		made = make_entries(t);
		break;
	}
	return made ? cf_long_again(t, kind) : NULL;
}

static bool names_are_right(struct cf_test *t, struct cf_reply *r, bool plus)
{
	unsigned seen = 0;

	cf3_skip_post_attr(&r->x);
	xdr_get_u64(&r->x); /* verifier */
	while (xdr_get_bool(&r->x)) {
		char name[NAME_LEN + 1];
		uint32_t len;

		xdr_get_u64(&r->x); /* file number */
		const uint8_t *p = xdr_get_opaque(&r->x, 255, &len);
		xdr_get_u64(&r->x); /* cookie */
		if (plus) {
			cf3_skip_post_attr(&r->x);
			if (xdr_get_bool(&r->x))
				xdr_get_opaque(&r->x, CF_FH_MAX, &(uint32_t){ 0 });
		}
		if (!p || len != NAME_LEN)
			continue;
		unsigned i = p[6] - '0';
		entry_name(name, i);
		if (i >= ENTRIES || memcmp(name, p, len) != 0 || seen & 1u << i)
			return cf_fail(t, "each name once, as it was made", "%.20s...", p);
		seen |= 1u << i;
	}
	bool eof = xdr_get_bool(&r->x);
	if (r->x.err || r->x.left)
		return cf_fail(t, "a directory listing that decodes to its end", "%s",
			       r->x.err ? "it is too short" : "bytes are left");
	if (eof && seen != (1u << ENTRIES) - 1)
		return cf_fail(t, "all names before the end of the listing", "mask %x", seen);
	return true;
}

static bool text_is_right(struct cf_test *t, struct cf_reply *r)
{
	char text[TEXT_LEN + 1];
	uint32_t len;

	link_text(text);
	cf3_skip_post_attr(&r->x);
	const uint8_t *p = xdr_get_opaque(&r->x, 4096, &len);
	if (!p || r->x.left || len != TEXT_LEN || memcmp(p, text, len) != 0)
		return cf_fail(t, "the link's text", "something else of %u bytes", len);
	return true;
}

static bool data_are_right(struct cf_test *t, struct cf_reply *r)
{
	struct cf3_read_result got;

	if (!cf3_read_result(t, r, false, &got))
		return false;
	if (got.count > READ_LEN)
		return cf_fail(t, "no more than asked for", "%u bytes", got.count);
	for (uint32_t i = 0; i < got.count; i++)
		if (got.data[i] != cf_pattern(i))
			return cf_fail(t, "the file's bytes", "byte %u is %02x", i, got.data[i]);
	return true;
}

bool cf_long_check(struct cf_test *t, enum cf_long kind, struct cf_reply *r)
{
	if (kind == CF_LONG_READ)
		return data_are_right(t, r); /* with the status */
	if (!cf3_status(t, r, CF3_OK))
		return false;
	if (kind == CF_LONG_READLINK)
		return text_is_right(t, r);
	return names_are_right(t, r, kind == CF_LONG_READDIRPLUS);
}
