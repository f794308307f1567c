/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/message.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/util.h"

#define MARK_SIZE 4u

const uint32_t ss_sizes[32] = {
	0,     1,     2,      3,      4,      5,       100,	512,	 1000,	  1023,	   1024,
	1025,  2048,  4000,   4095,   4096,   4097,    8191,	8192,	 16384,	  32768,   65535,
	65536, 65537, 131072, 262144, 524288, 1048575, 1048576, 1048577, 1114112, 1200000,
};

struct out {
	uint8_t *base;
	size_t used;
};

static void put_bytes(struct out *o, const void *p, size_t n)
{
	n = rn_min(n, SS_MESSAGE_MAX - o->used);
	memcpy(o->base + o->used, p, n);
	o->used += n;
}

static void put_word(struct out *o, uint32_t v)
{
	uint8_t b[4];

	ss_set_word(b, v);
	put_bytes(o, b, sizeof(b));
}

static void put_long(struct out *o, uint64_t v)
{
	put_word(o, (uint32_t)(v >> 32));
	put_word(o, (uint32_t)v);
}

static void put_fill(struct out *o, uint32_t n)
{
	n = (uint32_t)rn_min(n, SS_MESSAGE_MAX - o->used);
	for (uint32_t i = 0; i < n; i++)
		o->base[o->used + i] = (uint8_t)(i * 7 + (i >> 8));
	o->used += n;
}

static void put_pad(struct out *o, uint32_t len)
{
	put_bytes(o, "\0\0\0", rn_xdr_pad(len));
}

static void put_segment(struct out *o, const struct ss_values *v, uint32_t len)
{
	put_word(o, v->rkey);
	put_word(o, len);
	put_long(o, v->address);
}

static void put_sequence(struct out *o, struct ss_values *v, uint32_t slot)
{
	put_bytes(o, v->session, sizeof(v->session));
	put_word(o, ++v->slot_seqid[slot]);
	put_word(o, slot);
	put_word(o, SS_SLOTS - 1);
}

static void put_stateid(struct out *o, const struct ss_values *v, uint8_t k)
{
	const struct ss_values *of = (k & SS_OTHERS) && v->other ? v->other : v;

	put_bytes(o, of->stateid[k % SS_STATEIDS], sizeof(of->stateid[0]));
}

/* The driver's address of its admitted connections (tcp_client.c), and its port for callbacks. */
static void put_address(struct out *o, const struct ss_values *v)
{
	char text[32];
	int len =
		snprintf(text, sizeof(text), "127.0.1.0.%u.%u", v->cb_port >> 8, v->cb_port & 255);

	put_word(o, (uint32_t)len);
	put_bytes(o, text, (size_t)len);
	put_pad(o, (uint32_t)len);
}

/* Puts the value of a mark for NFSv4; false: the letter is none. */
static bool put_nfs4_mark(struct out *o, struct ss_values *v, uint8_t letter, uint8_t k)
{
	switch (letter) {
	case 'Q':
		put_sequence(o, v, k % SS_SLOTS);
		return true;
	case 'Y':
		put_bytes(o, v->session, sizeof(v->session));
		return true;
	case 'K':
		put_long(o, v->clientid[k & 1]);
		return true;
	case 'T':
		put_bytes(o, v->confirm, sizeof(v->confirm));
		return true;
	case 'N':
		put_word(o, v->create_seqid);
		return true;
	case 'I':
		put_stateid(o, v, k);
		return true;
	case 'W':
		put_word(o, v->client);
		return true;
	case 'A':
		put_address(o, v);
		return true;
	case 'O':
		put_word(o, ++v->owner_seqid);
		return true;
	default:
		return false;
	}
}

/* Puts the value of a mark for NFSv2; false: the letter is none. */
static bool put_nfs2_mark(struct out *o, const struct ss_values *v, uint8_t letter, uint8_t k)
{
	const uint8_t *packed = v->packed[k % SS_FH_COUNT];

	switch (letter) {
	case 'p':
		put_word(o, SS_PACKED_SIZE);
		put_bytes(o, packed, SS_PACKED_SIZE);
		return true;
	case 'P':
		put_bytes(o, packed, SS_PACKED_SIZE);
		return true;
	case 'c':
		put_word(o, v->cookie2);
		return true;
	default:
		return false;
	}
}

/* Puts the value of a mark; false: the letter is none. */
static bool put_mark(struct out *o, struct ss_values *v, uint8_t letter, uint8_t k)
{
	uint32_t size = ss_sizes[k % rn_array_size(ss_sizes)];
	const struct ss_fh *fh = &v->fh[k % SS_FH_COUNT];

	switch (letter) {
	case 'H':
		put_word(o, fh->len);
		put_bytes(o, fh->bytes, fh->len);
		put_pad(o, fh->len);
		return true;
	case 'C':
		put_long(o, v->cookie);
		return true;
	case 'V':
		put_long(o, v->cookieverf);
		return true;
	case 'X':
		put_long(o, k & 3 ? (uint64_t)(k & 3) << 32 | 1 : v->exclusive);
		return true;
	case 'B':
		put_word(o, size);
		put_fill(o, size);
		put_pad(o, size);
		return true;
	case 'D':
		put_fill(o, size);
		return true;
	case 'S':
		put_segment(o, v, size);
		return true;
	default:
		return put_nfs2_mark(o, v, letter, k) || put_nfs4_mark(o, v, letter, k);
	}
}

size_t ss_expand(const uint8_t *data, size_t len, struct ss_values *v, uint8_t *out)
{
	struct out o = { .base = out };

	for (size_t i = 0; i < len;) {
		if (len - i >= MARK_SIZE && data[i] == 0xf1 && data[i + 1] == 'F' &&
		    put_mark(&o, v, data[i + 2], data[i + 3])) {
			i += MARK_SIZE;
		} else {
			put_bytes(&o, &data[i], 1);
			i++;
		}
	}
	return o.used;
}

void ss_learn_handle(struct ss_values *v, const uint8_t *bytes, uint32_t len)
{
	struct ss_fh *fh = &v->fh[SS_FH_NEW + v->next_new++ % (SS_FH_NEW_END - SS_FH_NEW)];

	if (len > SS_HANDLE_MAX)
		return;
	fh->len = len;
	memcpy(fh->bytes, bytes, len);
}

void ss_learn_packed(struct ss_values *v, const uint8_t bytes[SS_PACKED_SIZE])
{
	const unsigned k = SS_FH_NEW + v->next_packed++ % (SS_FH_NEW_END - SS_FH_NEW);

	memcpy(v->packed[k], bytes, SS_PACKED_SIZE);
}
