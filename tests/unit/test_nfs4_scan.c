/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about a COMPOUND that are found without running it: the position of WRITE's data, and
 * whether the call is idempotent. */
#include <criterion/criterion.h>
#include <string.h>

#include "nfs4/nfs4_server.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/scan.h"
#include "rpc/message.h"

#define DATA "some data"

static uint8_t msg[2048];
static struct xdr_out x;

static void put_words(unsigned n, const uint32_t *words)
{
	for (unsigned i = 0; i < n; i++)
		xdr_put_u32(&x, words[i]);
}

#define WORDS(...)                                                                                 \
	put_words(sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t),                          \
		  (uint32_t[]){ __VA_ARGS__ })

static void zeros(uint32_t len)
{
	uint8_t *p = xdr_reserve(&x, len);

	cr_assert_not_null(p);
	memset(p, 0, len);
}

/* Puts a call up to the number of operations. */
static void start(const char *tag, uint32_t minor, uint32_t nops)
{
	xdr_out_init(&x, msg, sizeof(msg));
	WORDS(7, RPC_CALL, RPC_VERSION, NFS4_PROGRAM, NFS4_VERSION, NFSPROC4_COMPOUND);
	WORDS(1, 8, 1, 2, 0, 0); /* a credential of 8 bytes, an empty verifier */
	xdr_put_opaque(&x, tag, (uint32_t)strlen(tag));
	WORDS(minor, nops);
}

static void put_sequence(void)
{
	WORDS(OP_SEQUENCE);
	zeros(NFS4_SESSIONID_SIZE + 16);
}

static void put_putfh(uint32_t len)
{
	static const uint8_t fh[NFS4_FHSIZE];

	WORDS(OP_PUTFH);
	xdr_put_opaque(&x, fh, len);
}

static void put_write(void)
{
	WORDS(OP_WRITE);
	zeros(16 + 8 + 4);
	xdr_put_opaque(&x, DATA, strlen(DATA));
}

/* WRITE's data and their padding must be found at the end of the message. */
static void found_at_the_end(void)
{
	const size_t at = x.used - 12;

	cr_assert_not(x.overflow);
	cr_expect_eq(nfs4_bulk_offset(msg, x.used), at);
	cr_expect_eq(memcmp(msg + at, DATA, strlen(DATA)), 0);
	for (size_t n = 0; n < x.used; n++)
		cr_expect_eq(nfs4_bulk_offset(msg, n), n < at ? 0 : at);
}

Test(nfs4_scan, bulk_offset_behind_the_usual_operations)
{
	start("", 0, 2);
	put_putfh(29);
	put_write();
	found_at_the_end();

	start("write", 2, 3);
	put_sequence();
	put_putfh(NFS4_FHSIZE);
	put_write();
	found_at_the_end();

	start("", 1, 8);
	put_sequence();
	WORDS(OP_PUTROOTFH, OP_LOOKUP);
	xdr_put_opaque(&x, "name", 4);
	WORDS(OP_GETFH, OP_GETATTR, 2, 1, 2, OP_SAVEFH, OP_ACCESS, 63);
	put_write();
	found_at_the_end();
}

Test(nfs4_scan, bulk_offset_of_nothing_else)
{
	static const uint32_t bent[] = { 1, 2, 3, 4, 5 }; /* indexes of header words to change */

	start("", 0, 1);
	put_putfh(29);
	cr_expect_eq(nfs4_bulk_offset(msg, x.used), 0, "no WRITE");

	start("", 0, 3);
	put_putfh(29);
	WORDS(OP_REMOVE);
	xdr_put_opaque(&x, "name", 4);
	put_write();
	cr_expect_eq(nfs4_bulk_offset(msg, x.used), 0, "an operation that is not passed over");

	start("", 0, 17);
	for (int i = 0; i < 16; i++)
		WORDS(OP_SAVEFH);
	put_write();
	cr_expect_eq(nfs4_bulk_offset(msg, x.used), 0, "too many before it");

	for (unsigned i = 0; i < sizeof(bent) / sizeof(*bent); i++) {
		start("", 0, 1);
		put_write();
		xdr_patch_u32(&x, 4 * (size_t)bent[i], 77);
		cr_expect_eq(nfs4_bulk_offset(msg, x.used), 0, "word %u", bent[i]);
	}
}

Test(nfs4_scan, bulk_offset_stays_within_the_message)
{
	start("tag", 1, 4);
	put_sequence();
	put_putfh(16);
	WORDS(OP_GETATTR, 2, 1, 2);
	put_write();
	const size_t len = x.used;
	for (size_t at = 0; at + 4 <= len; at += 4) {
		static uint8_t bent[sizeof(msg)];

		memcpy(bent, msg, len);
		memset(bent + at, 0xff, 4);
		cr_expect_leq(nfs4_bulk_offset(bent, len), len);
	}
}

/* True if the operations that were put from `from` on are idempotent. */
static bool idempotent(size_t from, uint32_t nops)
{
	const struct rpc_seg seg = { .base = msg + from, .len = (uint32_t)(x.used - from) };
	struct xdr_in in;

	xdr_in_init(&in, &seg, 1, NULL);
	return nfs4_scan_idempotent(&in, nops);
}

Test(nfs4_scan, what_changes_something_is_told_from_what_does_not)
{
	start("", 0, 0);
	const size_t from = x.used;

	cr_expect(idempotent(from, 0));
	put_putfh(29);
	WORDS(OP_GETATTR, 1, 5, OP_READ);
	zeros(28);
	WORDS(OP_READDIR);
	zeros(24);
	WORDS(2, 1, 2, OP_COMMIT, 0, 0, 0, OP_LOCKT);
	zeros(28);
	xdr_put_opaque(&x, "owner", 5);
	WORDS(OP_NVERIFY, 1, 2);
	xdr_put_opaque(&x, "values", 6);
	WORDS(OP_RENEW, 0, 0, OP_LOOKUPP);
	cr_expect(idempotent(from, 9));
	cr_expect_not(idempotent(from, 10), "the last one is not there");
	WORDS(OP_REMOVE);
	xdr_put_opaque(&x, "name", 4);
	cr_expect(idempotent(from, 9));
	cr_expect_not(idempotent(from, 10));
	cr_expect_not(idempotent(from, UINT32_MAX));
}
