/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/stream.h"

#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/session/back.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/sealed.h"

#define EMPTY_MAX 16 /* empty fragments that the server accepts in one record */
#define PROBE_SIZE 40u
#define CALL_MIN 8u /* xid and message type; shorter records cannot be answered */

bool ss_call_parse(const uint8_t *head, size_t len, struct ss_call *call)
{
	if (len < CALL_MIN || ss_word(head + 4) != 0)
		return false;
	*call = (struct ss_call){ .xid = ss_word(head) };
	if (len >= SS_CALL_HEAD && ss_word(head + 8) == 2) {
		call->known = true;
		call->prog = ss_word(head + 12);
		call->vers = ss_word(head + 16);
		call->proc = ss_word(head + 20);
		call->who = ss_who_of(head, len);
		call->sealed =
			len >= SS_CALL_HEAD + 4 && ss_word(head + SS_CALL_HEAD) == SS_FLAVOUR_GSS;
		if (call->sealed)
			call->who = ss_gss_who(call->xid);
	}
	return true;
}

void ss_stream_init(struct ss_stream *s, uint32_t max_record,
		    void (*on_call)(void *ctx, const struct ss_call *call), void *ctx)
{
	*s = (struct ss_stream){ .max_record = max_record, .on_call = on_call, .ctx = ctx };
}

/* A NULL call with the credential AUTH_TLS, and nothing else. */
static bool asks_tls(const uint8_t *head, uint64_t len)
{
	static const uint32_t behind[] = { 0, 7, 0, 0, 0 };

	if (len != PROBE_SIZE || ss_word(head + 8) != 2)
		return false;
	for (unsigned i = 0; i < rn_array_size(behind); i++)
		if (ss_word(head + 20 + (size_t)4 * i) != behind[i])
			return false;
	return true;
}

static void end_record(struct ss_stream *s)
{
	struct ss_call call;

	const bool reply =
		s->total >= CALL_MIN && s->total <= SS_ANSWER_FAIR && ss_word(s->head + 4) == 1;

	if (ss_call_parse(s->head, rn_min(s->total, SS_HEAD_MAX), &call)) {
		call.asks_tls = !s->secure && asks_tls(s->head, s->total);
		s->stopped = call.asks_tls;
		s->on_call(s->ctx, &call);
	} else if (!reply)
		s->doomed = true;
	else if (!s->called)
		s->stray = true;
	s->total = 0;
	s->empties = 0;
	s->in_record = false;
}

static void begin_fragment(struct ss_stream *s)
{
	uint32_t mark = ss_word(s->mark);

	s->mark_len = 0;
	s->in_record = true;
	s->last = mark >> 31;
	s->frag_left = mark & 0x7fffffff;
	if (s->total + s->frag_left > s->max_record || (!s->frag_left && ++s->empties > EMPTY_MAX))
		s->doomed = true;
	else if (!s->frag_left && s->last)
		end_record(s);
}

static void take_data(struct ss_stream *s, const uint8_t *p, size_t n)
{
	if (s->total < SS_HEAD_MAX)
		memcpy(s->head + s->total, p, rn_min(n, SS_HEAD_MAX - s->total));
	s->total += n;
	s->frag_left -= (uint32_t)n;
	if (!s->frag_left && s->last)
		end_record(s);
}

void ss_stream_feed(struct ss_stream *s, const uint8_t *p, size_t n)
{
	while (n && !s->doomed && !s->stopped) {
		size_t used = 1;

		if (s->frag_left) {
			used = rn_min(n, s->frag_left);
			take_data(s, p, used);
		} else {
			s->mark[s->mark_len++] = *p;
			if (s->mark_len == sizeof(s->mark))
				begin_fragment(s);
		}
		p += used;
		n -= used;
	}
	s->behind |= n > 0 && s->stopped;
}

bool ss_stream_partial(const struct ss_stream *s)
{
	return s->in_record || s->mark_len;
}
