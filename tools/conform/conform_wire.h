/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words of RFC 8166 section 4, written and read independently of the server of this project.
 * Pure: no verbs. All numbers are in host order; lengths and offsets are bytes.
 */
#ifndef RN_CONFORM_CONFORM_WIRE_H
#define RN_CONFORM_CONFORM_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/xdr_out.h"
#include "tools/conform/conform_conn.h"

#define CF_VERSION 1u
enum { CF_MSG = 0, CF_NOMSG = 1, CF_MSGP = 2, CF_DONE = 3, CF_ERROR = 4 };
enum { CF_ERR_VERS = 1, CF_ERR_CHUNK = 2 };

#define CF_READS_MAX 64u
#define CF_SEGS_MAX 32u /* segments of one chunk */
#define CF_WRITES_MAX 16u

struct cf_chunk {
	unsigned nsegs;
	struct cf_seg seg[CF_SEGS_MAX];
};

struct cf_read {
	uint32_t position;
	struct cf_seg seg;
};

/* The lists that a call offers, or that a reply returns. */
struct cf_lists {
	unsigned nreads;
	struct cf_read read[CF_READS_MAX];
	unsigned nwrites;
	struct cf_chunk write[CF_WRITES_MAX];
	bool has_reply;
	struct cf_chunk reply;
};

void cf_add_read(struct cf_lists *l, uint32_t position, struct cf_seg seg);
/* A new, empty Write chunk at the end of the Write list; the Reply chunk, made if need be. */
struct cf_chunk *cf_add_write(struct cf_lists *l);
struct cf_chunk *cf_add_reply(struct cf_lists *l);
void cf_add_seg(struct cf_chunk *c, struct cf_seg seg);
uint64_t cf_chunk_len(const struct cf_chunk *c);

/* The four fixed words; the three lists. */
void cf_put_fixed(struct xdr_out *x, uint32_t xid, uint32_t vers, uint32_t credits, uint32_t proc);
void cf_put_seg(struct xdr_out *x, const struct cf_seg *s);
void cf_put_lists(struct xdr_out *x, const struct cf_lists *l);

/* A received message. */
struct cf_header {
	uint32_t xid, vers, credits, proc;
	struct cf_lists lists;		   /* MSG and NOMSG */
	uint32_t err, vers_low, vers_high; /* ERROR */
	size_t size;			   /* bytes of the header: the payload stream follows */
};
/* NULL, or the fault of the message as text. */
const char *cf_header_decode(const uint8_t *msg, size_t len, struct cf_header *h);

/* Checks a reply's lists against its call's, by RFC 8166 sections 3.4.6, 4.3.1, 4.3.2 and 4.3.3.
 * NULL, or the fault. */
const char *cf_lists_answer(const struct cf_lists *call, const struct cf_header *reply);

static inline uint32_t cf_word(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

#endif
