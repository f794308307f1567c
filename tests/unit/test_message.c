/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

#include "rpc/message.h"

static uint8_t buf[1024];
static struct xdr_out out;
static struct rpc_call call;
static enum rpc_auth_stat stat;

static void put(const uint32_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		xdr_put_u32(&out, words[i]);
}
#define PUT(...)                                                                                   \
	put((const uint32_t[]){ __VA_ARGS__ },                                                     \
	    sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void start(void)
{
	xdr_out_init(&out, buf, sizeof(buf));
}

static enum rpc_header_result decode_first(size_t len)
{
	const struct rpc_seg seg = { .base = buf, .len = (uint32_t)len };
	struct xdr_in x;

	xdr_in_init(&x, &seg, 1, NULL);
	return rpc_decode_call(&x, &call, &stat);
}

static enum rpc_header_result decode(void)
{
	return decode_first(out.used);
}

static void check(const uint32_t *words, size_t n)
{
	cr_assert_eq(out.used, n * 4);
	for (size_t i = 0; i < n; i++) {
		const uint32_t be = htonl(words[i]);

		cr_assert_eq(memcmp(buf + i * 4, &be, 4), 0, "word %zu", i);
	}
}
#define CHECK(...)                                                                                 \
	check((const uint32_t[]){ __VA_ARGS__ },                                                   \
	      sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

Test(message, a_call_with_auth_sys)
{
	start();
	PUT(77, 0, 2, 100003, 3, 7, 1, 32, 5, 3, 0x61626300, 1000, 100, 2, 4, 24, 0, 0, 99);
	cr_assert_eq(decode(), RPC_HEADER_OK);
	cr_assert_eq(call.xid, 77);
	cr_assert_eq(call.prog, 100003);
	cr_assert_eq(call.vers, 3);
	cr_assert_eq(call.proc, 7);
	cr_assert_eq(call.cred.flavor, RPC_AUTH_SYS);
	cr_assert_eq(call.cred.sec, RPC_SEC_SYS);
	cr_assert_null(call.cred.principal);
	cr_assert_eq(call.cred.uid, 1000);
	cr_assert_eq(call.cred.gid, 100);
	cr_assert_eq(call.cred.ngids, 2);
	cr_assert_eq(call.cred.gids[1], 24);
	for (size_t n = 0; n < 8; n++)
		cr_assert_eq(decode_first(n), RPC_HEADER_NOT_A_CALL);
	for (size_t n = 8; n < out.used - 4; n++)
		cr_assert_eq(decode_first(n), RPC_HEADER_GARBAGE, "%zu bytes", n);
}

Test(message, a_reply_is_not_a_call)
{
	start();
	PUT(77, 1, 0, 0, 0, 0);
	cr_assert_eq(decode(), RPC_HEADER_NOT_A_CALL);
	start();
	PUT(77, 2, 2, 100003, 3, 0, 0, 0, 0, 0);
	cr_assert_eq(decode(), RPC_HEADER_NOT_A_CALL);
}

Test(message, other_rpc_versions_are_refused)
{
	start();
	PUT(77, 0, 3);
	cr_assert_eq(decode(), RPC_HEADER_MISMATCH);
	cr_assert_eq(call.xid, 77);
}

Test(message, auth_none_leaves_the_identity_zero)
{
	start();
	PUT(77, 0, 2, 100003, 3, 0, 0, 0, 0, 0);
	cr_assert_eq(decode(), RPC_HEADER_OK);
	cr_assert_eq(call.cred.flavor, RPC_AUTH_NONE);
	cr_assert_eq(call.cred.sec, RPC_SEC_NONE);
	cr_assert_eq(call.cred.ngids, 0);
}

Test(message, malformed_auth_sys_is_a_bad_credential)
{
	start(); /* 17 groups declared and present */
	PUT(77, 0, 2, 100003, 3, 1, 1, 20 + 68, 5, 0, 1, 1, 17);
	for (int i = 0; i < 17; i++)
		PUT(1);
	PUT(0, 0);
	cr_assert_eq(decode(), RPC_HEADER_AUTH);
	cr_assert_eq(stat, RPC_AUTH_BADCRED);
	cr_assert_eq(call.cred.ngids, 0);
	/* more groups than the body holds: bytes behind the body must not be read as groups */
	start();
	PUT(77, 0, 2, 100003, 3, 1, 1, 24, 5, 0, 1, 1, 2, 3, 0, 0, 0, 0);
	cr_assert_eq(decode(), RPC_HEADER_AUTH);
	cr_assert_eq(stat, RPC_AUTH_BADCRED);
	start(); /* a machine name of 256 bytes */
	PUT(77, 0, 2, 100003, 3, 1, 1, 20 + 256, 5, 256);
	for (int i = 0; i < 64; i++)
		PUT(0x61616161);
	PUT(1, 1, 0, 0, 0);
	cr_assert_eq(decode(), RPC_HEADER_AUTH);
	cr_assert_eq(stat, RPC_AUTH_BADCRED);
	start(); /* a body of one byte over 400 */
	PUT(77, 0, 2, 100003, 3, 1, 1, 401);
	cr_assert_eq(decode(), RPC_HEADER_AUTH);
	cr_assert_eq(stat, RPC_AUTH_BADCRED);
}

Test(message, sixteen_groups_and_the_longest_name_are_fine)
{
	start();
	PUT(77, 0, 2, 100003, 3, 1, 1, 20 + 256 + 64, 5, 255);
	for (int i = 0; i < 64; i++)
		PUT(0x61616161);
	PUT(1, 1, 16);
	for (uint32_t i = 0; i < 16; i++)
		PUT(i + 10);
	PUT(0, 0);
	cr_assert_eq(decode(), RPC_HEADER_OK);
	cr_assert_eq(call.cred.ngids, 16);
	cr_assert_eq(call.cred.gids[15], 25);
}

Test(message, unknown_flavors_are_rejected)
{
	for (uint32_t flavor = 2; flavor < 9; flavor++) {
		start();
		PUT(77, 0, 2, 100003, 3, 1, flavor, 4, 0, 0, 0);
		cr_assert_eq(decode(), RPC_HEADER_AUTH);
		/* RFC 9289 section 4.1 names the fault of a misplaced question for TLS. */
		cr_assert_eq(stat,
			     flavor == RPC_AUTH_TLS ? RPC_AUTH_BADCRED : RPC_AUTH_REJECTEDCRED);
		cr_assert_eq((uint32_t)call.cred.flavor, flavor);
	}
}

Test(message, a_verifier_must_be_auth_none)
{
	start();
	PUT(77, 0, 2, 100003, 3, 1, 0, 0, 6, 0);
	cr_assert_eq(decode(), RPC_HEADER_AUTH);
	cr_assert_eq(stat, RPC_AUTH_BADVERF);
	start();
	PUT(77, 0, 2, 100003, 3, 1, 0, 0, 0, 401);
	cr_assert_eq(decode(), RPC_HEADER_AUTH);
	cr_assert_eq(stat, RPC_AUTH_BADVERF);
}

Test(message, replies_word_for_word)
{
	start();
	rpc_put_accepted(&out, 77, RPC_SUCCESS);
	CHECK(77, 1, 0, 0, 0, 0);
	start();
	rpc_put_accepted(&out, 77, RPC_SYSTEM_ERR);
	CHECK(77, 1, 0, 0, 0, 5);
	start();
	rpc_put_prog_mismatch(&out, 77, 3, 4);
	CHECK(77, 1, 0, 0, 0, 2, 3, 4);
	start();
	rpc_put_rpc_mismatch(&out, 77);
	CHECK(77, 1, 1, 0, 2, 2);
	start();
	rpc_put_auth_error(&out, 77, RPC_AUTH_TOOWEAK);
	CHECK(77, 1, 1, 1, 5);
}
