/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "transport/rdma/rdma_header.h"

/* The Linux client's private message: R bit, 4096 both ways. */
static const uint8_t linux_msg[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3 };

Test(private_msg, reads_the_linux_client)
{
	struct rr_private_msg m;
	cr_assert(rr_private_find(linux_msg, 8, &m));
	cr_assert(m.remote_invalidate);
	cr_assert_eq(m.send_size, 4096u);
	cr_assert_eq(m.recv_size, 4096u);
}

Test(private_msg, encodes_what_it_reads)
{
	struct rr_private_msg m = { true, 4096, 4096 }, back;
	uint8_t out[8];
	rr_private_encode(&m, out);
	cr_assert(!memcmp(out, linux_msg, 8));
	for (uint32_t k = 1; k <= 256; k++) {
		m = (struct rr_private_msg){ k & 1, k * 1024, (257 - k) * 1024 };
		rr_private_encode(&m, out);
		cr_assert(rr_private_find(out, 8, &back));
		cr_assert_eq(back.remote_invalidate, m.remote_invalidate);
		cr_assert_eq(back.send_size, m.send_size);
		cr_assert_eq(back.recv_size, m.recv_size);
	}
}

Test(private_msg, clamps_sizes_that_have_no_encoding)
{
	struct rr_private_msg m = { false, 0, UINT32_MAX }, back;
	uint8_t out[8];
	rr_private_encode(&m, out);
	cr_assert(rr_private_find(out, 8, &back));
	cr_assert_eq(back.send_size, RR_INLINE_MIN);
	cr_assert_eq(back.recv_size, RR_INLINE_MAX);
	m = (struct rr_private_msg){ false, 5119, 4095 };
	rr_private_encode(&m, out);
	cr_assert(rr_private_find(out, 8, &back));
	cr_assert_eq(back.send_size, 4096u);
	cr_assert_eq(back.recv_size, 3072u);
}

Test(private_msg, is_found_at_any_offset)
{
	for (size_t at = 0; at <= 248; at++) {
		uint8_t *buf = calloc(1, at + 8);
		struct rr_private_msg m;
		memcpy(buf + at, linux_msg, 8);
		cr_assert(rr_private_find(buf, at + 8, &m), "offset %zu", at);
		cr_assert_eq(m.recv_size, 4096u);
		free(buf);
	}
}

Test(private_msg, cut_short_is_absent)
{
	for (size_t len = 0; len < 8; len++) {
		uint8_t *buf = malloc(len ? len : 1);
		struct rr_private_msg m = { true, 1, 1 };
		memcpy(buf, linux_msg, len);
		cr_assert(!rr_private_find(buf, len, &m), "length %zu", len);
		cr_assert(!m.remote_invalidate);
		cr_assert_eq(m.send_size, 1024u);
		cr_assert_eq(m.recv_size, 1024u);
		free(buf);
	}
	struct rr_private_msg m;
	cr_assert(!rr_private_find(NULL, 0, &m));
	cr_assert_eq(m.recv_size, 1024u);
}

Test(private_msg, another_version_is_passed_over)
{
	uint8_t buf[16];
	struct rr_private_msg m;
	memcpy(buf, linux_msg, 8);
	buf[4] = 2;
	cr_assert(!rr_private_find(buf, 8, &m));
	memcpy(buf + 8, linux_msg, 8);
	cr_assert(rr_private_find(buf, 16, &m));
	cr_assert(m.remote_invalidate);
}

Test(private_msg, reserved_bits_are_ignored)
{
	uint8_t buf[8];
	struct rr_private_msg m;
	memcpy(buf, linux_msg, 8);
	buf[5] = 0xfe;
	cr_assert(rr_private_find(buf, 8, &m));
	cr_assert(!m.remote_invalidate);
	buf[5] = 0xff;
	cr_assert(rr_private_find(buf, 8, &m));
	cr_assert(m.remote_invalidate);
}
