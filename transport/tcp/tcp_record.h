/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Record marking (RFC 5531 section 11): a record is a sequence of fragments, each behind a
 * four-octet mark of 31 bits of length and one bit that says "last". A pure parser: it consumes
 * marks and reports what the next bytes are; the caller places the data.
 */
#ifndef RN_TRANSPORT_TCP_RECORD_H
#define RN_TRANSPORT_TCP_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most fragments without data in one record: they cost work and carry nothing. */
#define TCP_RECORD_EMPTY_MAX 16

struct tcp_record {
	uint32_t max;	    /* longest record, bytes */
	uint32_t total;	    /* bytes of this record's fragments announced so far; <= max */
	uint32_t frag_left; /* bytes of this fragment still to come */
	uint8_t mark[4];
	uint8_t mark_len; /* bytes of the mark received so far */
	uint8_t empties;
	bool in_frag; /* a mark was read, and its fragment has not ended */
	bool last;    /* the fragment is the record's last */
};

enum tcp_record_state {
	TCP_RECORD_MARK,      /* bytes of a mark are missing */
	TCP_RECORD_DATA,      /* frag_left bytes of data come next, at least one */
	TCP_RECORD_END,	      /* the record is whole */
	TCP_RECORD_TOO_LONG,  /* over max: the stream cannot be parsed further */
	TCP_RECORD_TOO_EMPTY, /* over TCP_RECORD_EMPTY_MAX */
};

/* Ready for a record's first mark. */
void tcp_record_start(struct tcp_record *r, uint32_t max);

/* Consumes the bytes of marks at *p (n bytes there), and moves both past them. After END, start
 * again before the next call. */
enum tcp_record_state tcp_record_feed(struct tcp_record *r, const uint8_t **p, size_t *n);

/* The caller has taken len bytes of data; len <= frag_left. */
void tcp_record_took(struct tcp_record *r, uint32_t len);

/* True if no byte of the record has come yet. */
bool tcp_record_idle(const struct tcp_record *r);

#endif
