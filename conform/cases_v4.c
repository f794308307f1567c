/* SPDX-License-Identifier: BSD-2-Clause */
/* Read chunks in NFSv4 COMPOUNDs: RFC 8267 section 6. t->arg is the minor version. */
#include <string.h>

#include "conform/nfs3.h"
#include "conform/nfs4.h"
#include "lib/checked.h"

#define NAME "compound"

/* PUTFH WRITE(chunk) GETATTR: operations behind the one with the chunk. */
static void write_in_the_middle(struct cf_test *t)
{
	struct cf4_session *s = cf4_begin(t, t->arg);
	struct cf_fh fh3, fh;
	uint8_t data[5000];

	if (!s || !cf3_make_file(t, NAME, 10, &fh3) || !cf4_handle(t, s, NAME, &fh))
		return;
	cf_fill_pattern(data, 99, sizeof(data));
	struct cf_call *c = cf4_new(t, s, "middle");
	cf4_putfh(c, &fh);
	cf4_write(c, 0, sizeof(data), NULL);
	if (!cf_reduce(t, c, data, sizeof(data), 3))
		return;
	cf4_getattr(c);
	struct cf_reply *r = cf4_ask(t, s, c);
	if (!r || !cf4_op_done(t, r, CF4_PUTFH, CF4_OK) || !cf4_op_done(t, r, CF4_WRITE, CF4_OK))
		return;
	if (xdr_get_u32(&r->x) != sizeof(data))
		cf_fail(t, "WRITE of all bytes", "fewer");
	xdr_skip(&r->x, 4 + 8);
	if (cf4_op_done(t, r, CF4_GETATTR, CF4_OK))
		cf3_file_is(t, &fh3, data, sizeof(data));
}

static const struct cf_case cases[] = {
	{ "v40-write-middle", "RFC 8267 6.4.1", "NFSv4.0: a Read chunk in the middle of a COMPOUND",
	  write_in_the_middle, 0, CF_NFS4 },
	{ "v41-write-middle", "RFC 8267 6.4.1", "NFSv4.1: a Read chunk in the middle of a COMPOUND",
	  write_in_the_middle, 1, CF_NFS4 },
	{ "v42-write-middle", "RFC 8267 6.4.1", "NFSv4.2: a Read chunk in the middle of a COMPOUND",
	  write_in_the_middle, 2, CF_NFS4 },
};

const struct cf_group cf_group_v4 = { "v4", 701, cases, rn_array_size(cases) };
