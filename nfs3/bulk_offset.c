/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the data of an NFSv3 WRITE call starts, found without decoding the call. A wrong answer
 * costs alignment, never correctness: the call is decoded properly later. All fields are big-endian
 * words; every length is bounded before it moves the position.
 */
#include <endian.h>
#include <string.h>

#include "lib/checked.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/proto.h"
#include "rpc/message.h"

struct peek {
	const uint8_t *head;
	size_t len, pos;
	bool failed;
};

static uint32_t word(struct peek *p)
{
	uint32_t v;

	if (p->failed || p->len - p->pos < sizeof(v)) {
		p->failed = true;
		return 0;
	}
	memcpy(&v, p->head + p->pos, sizeof(v));
	p->pos += sizeof(v);
	return be32toh(v);
}

static void skip(struct peek *p, size_t n)
{
	if (p->failed || p->len - p->pos < n)
		p->failed = true;
	else
		p->pos += n;
}

/* Counted opaque data of at most max bytes. */
static void skip_opaque(struct peek *p, uint32_t max)
{
	uint32_t len = word(p);

	if (len > max)
		p->failed = true;
	else
		skip(p, len + rn_xdr_pad(len));
}

static bool is_write_call(struct peek *p)
{
	skip(p, 4); /* xid */
	return word(p) == RPC_CALL && word(p) == RPC_VERSION && word(p) == NFS_PROGRAM &&
	       word(p) == NFS3_VERSION && word(p) == NFSPROC3_WRITE && !p->failed;
}

size_t nfs3_bulk_offset(const uint8_t *head, size_t len)
{
	struct peek p = { .head = head, .len = len };

	if (!is_write_call(&p))
		return 0;
	for (int i = 0; i < 2; i++) { /* credential and verifier */
		word(&p);
		skip_opaque(&p, RPC_AUTH_BYTES_MAX);
	}
	skip_opaque(&p, NFS3_FHSIZE);
	skip(&p, 8 + 4 + 4); /* offset, count, stable */
	word(&p);	     /* length of the data */
	return p.failed ? 0 : p.pos;
}
