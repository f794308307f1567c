/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "tools/conform/conform_conn.h"

struct cf_window *cf_window_new(struct cf_conn *c, size_t len)
{
	struct cf_window *w = calloc(1, sizeof(*w));
	size_t size = (len + 2 * CF_GUARD + 4095) / 4096 * 4096;

	if (!w)
		return NULL;
	w->block = aligned_alloc(4096, size);
	if (w->block)
		w->mr = ibv_reg_mr(c->pd, w->block, size,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					   IBV_ACCESS_REMOTE_WRITE);
	if (!w->mr) {
		free(w->block);
		free(w);
		return NULL;
	}
	memset(w->block, CF_GUARD_BYTE, size);
	w->handle = w->mr->rkey;
	w->data = w->block + CF_GUARD;
	w->len = len;
	memset(w->data, CF_FILL_BYTE, len);
	w->next = c->windows;
	c->windows = w;
	return w;
}

struct cf_seg cf_window_seg(const struct cf_window *w, uint32_t off, uint32_t len)
{
	return (struct cf_seg){ w->handle, len, (uintptr_t)w->data + off };
}

static bool all_are(const uint8_t *p, size_t len, uint8_t byte)
{
	while (len--)
		if (*p++ != byte)
			return false;
	return true;
}

bool cf_window_guards_intact(const struct cf_window *w)
{
	return all_are(w->block, CF_GUARD, CF_GUARD_BYTE) &&
	       all_are(w->data + w->len, CF_GUARD, CF_GUARD_BYTE);
}

bool cf_conn_guards_intact(const struct cf_conn *c)
{
	for (const struct cf_window *w = c->windows; w; w = w->next)
		if (!cf_window_guards_intact(w))
			return false;
	return true;
}

bool cf_window_untouched(const struct cf_window *w, size_t off, size_t len)
{
	return off <= w->len && len <= w->len - off && all_are(w->data + off, len, CF_FILL_BYTE);
}

uint8_t *cf_conn_segment_data(const struct cf_conn *c, const struct cf_seg *s)
{
	for (const struct cf_window *w = c->windows; w; w = w->next) {
		uint64_t start = (uintptr_t)w->data;
		if (s->handle == w->handle && s->offset >= start && s->offset - start <= w->len &&
		    s->length <= w->len - (s->offset - start))
			return w->data + (s->offset - start);
	}
	return NULL;
}
