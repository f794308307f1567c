/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Established contexts on their way to the next program, keys included, so that clients need no new ones. Half-made ones stay behind.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gss/gss_private.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/principal.h"

#define GSS_SECTION "gss"

/* A call to the client that is under way while the context is saved may use up a number more. */
#define CALLS_UNDER_WAY 64u

struct saved_context {
	uint8_t handle[GSS_HANDLE_SIZE];
	struct image_bytes keys, principal, called;
	bool numbered;
	uint64_t left_ns, idle_ns; /* until the ticket's end, and since its last use */
	uint32_t mic_len, wrap_len, calls, highest;
	uint64_t used[GSS_WINDOW / 64];
	uint32_t late[GSS_LATE];
	struct rn_host from;
};
static const struct image_field saved_context_fields[] = {
	IMAGE_FIXED(1, struct saved_context, handle),
	IMAGE_BYTES(2, struct saved_context, keys),
	IMAGE_BYTES(3, struct saved_context, principal),
	IMAGE_BYTES(4, struct saved_context, called),
	IMAGE_NUMBER(5, struct saved_context, numbered),
	IMAGE_NUMBER(6, struct saved_context, left_ns),
	IMAGE_NUMBER(7, struct saved_context, idle_ns),
	IMAGE_NUMBER(8, struct saved_context, mic_len),
	IMAGE_NUMBER(9, struct saved_context, wrap_len),
	IMAGE_NUMBER(10, struct saved_context, calls),
	IMAGE_NUMBER(11, struct saved_context, highest),
	IMAGE_FIXED(12, struct saved_context, used),
	IMAGE_FIXED(13, struct saved_context, late),
	IMAGE_FIXED(14, struct saved_context, from),
};
static const struct image_kind saved_context_kind = { 1, rn_array_size(saved_context_fields),
						      saved_context_fields };

static struct image_bytes bytes_of_name(const struct rpc_principal *p)
{
	return p ? (struct image_bytes){ (const uint8_t *)p->name, (uint32_t)p->len }
		 : (struct image_bytes){ NULL, 0 };
}

struct gss_saving {
	struct image_writer *w;
	uint64_t now;
};

static void save_context(void *arg, struct gss_context *c)
{
	const struct gss_saving *to = arg;
	struct gss_mech_ctx *mech = gss_copies_take(&c->copies);
	struct gss_mech_saved keys;
	struct saved_context s = {
		.principal = bytes_of_name(c->principal),
		.called = bytes_of_name(c->called),
		.left_ns = c->ends_ns > to->now ? c->ends_ns - to->now : 0,
		.idle_ns = to->now - c->used_ns,
		.mic_len = c->mic_len,
		.wrap_len = (uint32_t)c->wrap_len,
		.calls = atomic_load(&c->calls),
		.from = c->from,
	};

	if (gss_mech_save(mech, &keys)) {
		memcpy(s.handle, c->handle, sizeof(s.handle));
		pthread_mutex_lock(&c->lock);
		s.highest = c->window.highest;
		memcpy(s.used, c->window.used, sizeof(s.used));
		memcpy(s.late, c->window.late, sizeof(s.late));
		pthread_mutex_unlock(&c->lock);
		s.numbered = keys.numbered;
		s.keys = (struct image_bytes){ keys.bytes, (uint32_t)keys.len };
		image_put(to->w, &saved_context_kind, &s);
		gss_mech_saved_clear(&keys);
	}
	gss_copies_give(&c->copies, mech);
}

void gss_save(struct gss *g, struct image_writer *w)
{
	struct gss_saving to = { w, gss_contexts_now(g->contexts) };

	image_begin(w, GSS_SECTION);
	gss_contexts_each(g->contexts, save_context, &to);
}

/* The next program. */

static const struct rpc_principal *load_name(const struct image_bytes *b)
{
	return b->at ? rpc_principal_new((const char *)b->at, b->len) : NULL;
}

/* A reference, in no table. NULL: no memory, or the library does not know such keys any more. */
static struct gss_context *make_context(const struct gss *g, const struct saved_context *s)
{
	const struct gss_mech_saved keys = { (uint8_t *)(uintptr_t)s->keys.at, s->keys.len,
					     s->numbered };
	struct gss_mech_ctx *mech = gss_mech_load(&keys, s->mic_len);
	struct gss_context *c = mech ? gss_context_new(mech) : NULL;

	if (!c)
		return NULL;
	memcpy(c->handle, s->handle, sizeof(c->handle));
	c->established = true;
	c->may_copy = !s->numbered;
	c->principal = load_name(&s->principal);
	c->called = load_name(&s->called);
	c->ends_ns = gss_contexts_now(g->contexts) + s->left_ns;
	c->mic_len = s->mic_len;
	c->wrap_len = s->wrap_len;
	atomic_init(&c->calls, s->calls + CALLS_UNDER_WAY);
	c->window.highest = s->highest;
	memcpy(c->window.used, s->used, sizeof(c->window.used));
	memcpy(c->window.late, s->late, sizeof(c->window.late));
	if (c->principal)
		return c;
	gss_context_put(c);
	return NULL;
}

int gss_load(struct gss *g, struct image_reader *image)
{
	unsigned loaded = 0, lost = 0;
	struct image_at at;

	if (!image_enter(image, GSS_SECTION, &at) || !g)
		return 0;
	while (image_next(&at)) {
		struct saved_context s = { .highest = UINT32_MAX };

		if (image_get(&at, &saved_context_kind, &s) < 0 || !s.keys.at ||
		    s.mic_len > GSS_MECH_MIC_MAX)
			return -EPROTO;
		struct gss_context *c = make_context(g, &s);
		const bool kept = c && gss_contexts_restore(g->contexts, c, &s.from, s.idle_ns);

		gss_context_put(c);
		loaded += kept;
		lost += !kept;
	}
	if (lost)
		rn_notice(g->cfg.log,
			  "%u Kerberos contexts of %u did not go on: their clients make new ones",
			  lost, loaded + lost);
	return 0;
}
