/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/mutate.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/template.h"

struct session {
	struct ss_step step[SS_STEPS_MAX];
	uint8_t data[SS_STEPS_MAX][SS_DATA_MAX];
	unsigned n;
	uint64_t rng;
	ss_mutate_bytes *bytes;
};

uint32_t ss_random(uint64_t *state, uint32_t n)
{
	/* splitmix64 */
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) >> 16) % n;
}

static uint32_t pick(struct session *s, uint32_t n)
{
	return ss_random(&s->rng, n);
}

/* A word at a limit: of a size, a count, an enumeration, a program number, or near the step's
 * length. */
static uint32_t telling_word(struct session *s, const struct ss_step *of)
{
	static const uint32_t words[] = {
		0,	    1,		2,	    3,		4,	    5,		6,
		7,	    8,		15,	    16,		17,	    31,		32,
		33,	    63,		64,	    65,		127,	    128,	255,
		256,	    400,	401,	    1023,	1024,	    4096,	0xffff,
		0x10000,    0xfffff,	0x100000,   0x100001,	0x110000,   0x7ffffffc, 0x7fffffff,
		0x80000000, 0x80000001, 0xfffffffc, 0xfffffffd, 0xffffffff, 100003,	100005,
		100021,	    100227,	100011,
	};
	uint32_t i = pick(s, rn_array_size(words) + 3);

	if (i < rn_array_size(words))
		return words[i];
	return (uint32_t)of->len + pick(s, 9) - 4;
}

static void change_word(struct session *s, struct ss_step *st, uint8_t *data)
{
	if (st->len < 4)
		return;
	uint8_t *p = data + 4 * pick(s, st->len / 4);
	switch (pick(s, 4)) {
	case 0:
		ss_set_word(p, ss_word(p) + pick(s, 9) - 4);
		break;
	case 1:
		ss_set_word(p, ss_word(p) ^ 1u << pick(s, 32));
		break;
	default:
		ss_set_word(p, telling_word(s, st));
	}
}

/* Replaces the handle, size or segment of a mark, or puts a mark where there was none. */
static void change_mark(struct session *s, struct ss_step *st, uint8_t *data)
{
	static const char letters[] = "HHPPpcCVBDSSQYKIIIOXWA";
	unsigned found = 0, at[64];

	for (unsigned i = 0; i + 4 <= st->len && found < rn_array_size(at); i++)
		if (data[i] == 0xf1 && data[i + 1] == 'F')
			at[found++] = i;
	if (found && pick(s, 8)) {
		data[at[pick(s, found)] + 3] = (uint8_t)pick(s, 32);
	} else if (st->len >= 4) {
		uint8_t *p = data + 4 * pick(s, st->len / 4);

		p[0] = 0xf1;
		p[1] = 'F';
		p[2] = (uint8_t)letters[pick(s, sizeof(letters) - 1)];
		p[3] = (uint8_t)pick(s, 32);
	}
}

/* Inserts or removes words. */
static void change_length(struct session *s, struct ss_step *st, uint8_t *data)
{
	unsigned words = 1 + pick(s, 8), at = 4 * pick(s, st->len / 4 + 1);

	if (pick(s, 2)) {
		unsigned n = (unsigned)rn_min(words * 4, st->len - at);
		memmove(data + at, data + at + n, st->len - at - n);
		st->len = (uint16_t)(st->len - n);
	} else if (st->len + words * 4 <= SS_DATA_MAX) {
		memmove(data + at + words * 4, data + at, st->len - at);
		for (unsigned i = 0; i < words; i++)
			ss_set_word(data + at + 4 * i, telling_word(s, st));
		st->len = (uint16_t)(st->len + words * 4);
	}
}

static size_t havoc(struct session *s, uint8_t *data, size_t size)
{
	if (!size)
		data[size++] = 0;
	for (unsigned n = 1 + pick(s, 4); n; n--)
		data[pick(s, (uint32_t)size)] ^= (uint8_t)(1 + pick(s, 255));
	if (!pick(s, 4) && size < SS_DATA_MAX)
		data[size++] = (uint8_t)pick(s, 256);
	return size;
}

static void change_data(struct session *s, unsigned i)
{
	struct ss_step *st = &s->step[i];
	uint8_t *data = s->data[i];

	switch (pick(s, 8)) {
	case 0:
	case 1:
	case 2:
		change_word(s, st, data);
		break;
	case 3:
	case 4:
		change_mark(s, st, data);
		break;
	case 5:
		change_length(s, st, data);
		break;
	default:
		st->len = (uint16_t)(s->bytes ? s->bytes(data, st->len, SS_DATA_MAX)
					      : havoc(s, data, st->len));
	}
}

static void copy_step(struct session *s, unsigned to, unsigned from)
{
	s->step[to] = s->step[from];
	memcpy(s->data[to], s->data[from], s->step[from].len);
	s->step[to].data = s->data[to];
}

static void make_room(struct session *s, unsigned at)
{
	for (unsigned i = s->n; i > at; i--)
		copy_step(s, i, i - 1);
	s->n++;
}

static size_t some_message(struct session *s, uint8_t *out)
{
	unsigned k = pick(s, ss_template_count() + 16);

	if (k < ss_template_count())
		return ss_template(k, out);
	if (k >= ss_template_count() + 12)
		return ss_template_exclusive(out, k & 1, (uint8_t)pick(s, 4));
	if (k & 1)
		return ss_template_read(out, pick(s, SS_FH_COUNT), pick(s, 5000),
					ss_sizes[pick(s, 32)]);
	if (k & 2)
		return ss_template_write(out, pick(s, SS_FH_COUNT), pick(s, 5000), pick(s, 3),
					 (uint8_t)pick(s, 32));
	return ss_template_readdir(out, pick(s, SS_FH_COUNT), pick(s, 2), pick(s, 2),
				   ss_sizes[pick(s, 24)]);
}

static size_t some_rdma_message(struct session *s, uint8_t *out)
{
	uint8_t msg[SS_TEMPLATE_MAX];
	size_t len = some_message(s, msg);
	struct ss_chunks c = {
		.read = pick(s, 3) ? 0 : (uint8_t)pick(s, 32),
		.write = pick(s, 2) ? 0 : (uint8_t)pick(s, 32),
		.reply = pick(s, 2) ? 0 : (uint8_t)pick(s, 32),
		.read_position = 4 * pick(s, 40),
		.long_call = !pick(s, 8),
	};

	return ss_template_rdma(&c, msg, rn_min(len, SS_TEMPLATE_MAX - 128), out);
}

/* What a client says of a file that is delegated to it (held.h). */
static size_t some_claim(struct session *s, uint8_t *out)
{
	for (unsigned i = 0; i < 3; i++)
		out[i] = (uint8_t)pick(s, 256);
	return 3;
}

static void insert_step(struct session *s)
{
	unsigned at = pick(s, s->n + 1);

	if (s->n == SS_STEPS_MAX)
		return;
	make_room(s, at);
	struct ss_step *st = &s->step[at];
	uint8_t *data = s->data[at];
	unsigned near = at ? at - 1 : at + 1;
	*st = (struct ss_step){
		.op = (uint8_t)(pick(s, 2) ? SS_RECORD : pick(s, SS_OPS)),
		.conn = s->n > 1 && pick(s, 4) ? s->step[near].conn : (uint8_t)pick(s, SS_CONNS),
		.how = (uint8_t)(pick(s, 2) ? 0 : pick(s, 256)),
		.data = data,
	};
	if (st->conn >= SS_TCP_CONNS && st->op == SS_RECORD && pick(s, 4))
		st->op = SS_RAW;
	if (st->op == SS_RECORD || st->op == SS_FLOOD)
		st->len = (uint16_t)some_message(s, data);
	else if (st->op == SS_RAW)
		st->len = (uint16_t)some_rdma_message(s, data);
	else if (st->op == SS_ANSWER || st->op == SS_GSS || st->op == SS_SEAL)
		st->len = (uint16_t)some_claim(s, data);
	else if (st->op == SS_TLS || st->op == SS_DATAGRAM)
		st->len = (uint16_t)some_message(s, data);
	if (st->op == SS_SEAL) {
		st->how = (uint8_t)pick(s, 256);
		data[2] = pick(s, 3) ? 0 : (uint8_t)pick(s, 16);
	}
}

static void remove_step(struct session *s)
{
	unsigned at = pick(s, s->n);

	for (unsigned i = at; i + 1 < s->n; i++)
		copy_step(s, i, i + 1);
	s->n--;
}

static void repeat_step(struct session *s)
{
	unsigned from = pick(s, s->n), at = pick(s, s->n + 1);

	if (s->n == SS_STEPS_MAX)
		return;
	make_room(s, at);
	copy_step(s, at, from >= at ? from + 1 : from);
}

static void change_step(struct session *s)
{
	struct ss_step *st = &s->step[pick(s, s->n)];

	switch (pick(s, 4)) {
	case 0:
		st->op = (uint8_t)pick(s, SS_OPS);
		break;
	case 1:
		st->conn = (uint8_t)pick(s, SS_CONNS);
		break;
	default:
		st->how = (uint8_t)pick(s, 256);
	}
}

static void mutate_once(struct session *s)
{
	uint32_t what = s->n ? pick(s, 16) : 0;

	if (what < 3)
		insert_step(s);
	else if (what < 4)
		remove_step(s);
	else if (what < 5)
		repeat_step(s);
	else if (what < 7)
		change_step(s);
	else
		change_data(s, pick(s, s->n));
}

static void load(struct session *s, const uint8_t *data, size_t size)
{
	s->n = ss_decode(data, size, s->step);
	for (unsigned i = 0; i < s->n; i++) {
		memcpy(s->data[i], s->step[i].data, s->step[i].len);
		s->step[i].data = s->data[i];
	}
}

size_t ss_mutate(uint8_t *data, size_t size, size_t max, uint64_t seed, ss_mutate_bytes *bytes)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return size;
	s->rng = seed;
	s->bytes = bytes;
	load(s, data, size);
	for (unsigned n = 1 + pick(s, 4); n; n--)
		mutate_once(s);
	size = ss_encode(s->step, s->n, data, max);
	free(s);
	return size;
}

size_t ss_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
		size_t max, uint64_t seed)
{
	struct ss_step sa[SS_STEPS_MAX], sb[SS_STEPS_MAX];
	unsigned na = ss_decode(a, a_size, sa), nb = ss_decode(b, b_size, sb);
	unsigned keep = ss_random(&seed, na + 1), skip = ss_random(&seed, nb + 1);
	size_t size = ss_encode(sa, keep, out, max);

	nb = (unsigned)rn_min(nb - skip, SS_STEPS_MAX - keep);
	return size + ss_encode(sb + skip, nb, out + size, max - size);
}
