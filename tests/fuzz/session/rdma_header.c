/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/rdma_header.h"

#include "tests/fuzz/session/message.h"

struct words {
	const uint8_t *p;
	size_t left;
	bool bad; /* stays true after the first error */
};

static uint32_t get(struct words *w)
{
	if (w->left < 4) {
		w->bad = true;
		return 0;
	}
	uint32_t v = ss_word(w->p);
	w->p += 4;
	w->left -= 4;
	return v;
}

static bool get_mark(struct words *w)
{
	uint32_t v = get(w);

	w->bad |= v > 1;
	return v == 1 && !w->bad;
}

static void get_segment(struct words *w, struct ss_rdma_header *h)
{
	if (h->nsegs == SS_RDMA_SEGS || w->bad) {
		w->bad = true;
		return;
	}
	struct cf_seg *s = &h->seg[h->nsegs++];
	s->handle = get(w);
	s->length = get(w);
	uint64_t high = get(w);
	s->offset = high << 32 | get(w);
}

static void get_chunk(struct words *w, struct ss_rdma_header *h, struct ss_chunk *c)
{
	c->first = h->nsegs;
	c->n = get(w);
	for (unsigned i = 0; i < c->n && !w->bad; i++)
		get_segment(w, h);
}

static void get_lists(struct words *w, struct ss_rdma_header *h)
{
	while (get_mark(w)) {
		get(w); /* the position, not checked */
		get_segment(w, h);
		h->nreads++;
	}
	while (get_mark(w)) {
		if (h->nwrites == SS_RDMA_SEGS) {
			w->bad = true;
			return;
		}
		get_chunk(w, h, &h->write[h->nwrites++]);
	}
	h->has_reply = get_mark(w);
	if (h->has_reply)
		get_chunk(w, h, &h->reply);
}

void ss_rdma_parse(const uint8_t *msg, size_t len, struct ss_rdma_header *h)
{
	struct words w = { .p = msg, .left = len };

	h->xid = get(&w);
	h->vers = get(&w);
	h->credits = get(&w);
	h->proc = get(&w);
	h->fixed = !w.bad;
	h->nreads = h->nwrites = h->nsegs = 0;
	h->has_reply = false;
	h->reply = (struct ss_chunk){ 0 };
	h->whole = false;
	if (w.bad || h->vers != 1 || (h->proc != SS_RDMA_MSG && h->proc != SS_RDMA_NOMSG))
		return;
	get_lists(&w, h);
	h->whole = !w.bad;
	h->size = len - w.left;
}

uint64_t ss_chunk_length(const struct ss_rdma_header *h, const struct ss_chunk *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < c->n; i++)
		sum += h->seg[c->first + i].length;
	return sum;
}
