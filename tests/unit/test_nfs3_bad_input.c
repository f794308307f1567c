/* SPDX-License-Identifier: BSD-2-Clause */
/* Valid calls of every procedure, cut short at every byte and changed at every word. Each must get
 * one answer, GARBAGE_ARGS if the message ends too early, and the server must go on. */
#include <stdlib.h>

#include "lib/util.h"
#include "tests/unit/nfs3_samples.h"
#include "tests/unit/nfs3_suite.h"

NFS3_SUITE(nfs3_bad_input);

static struct vfs_fh objects[SAMPLE_OBJECTS];

static void put_object(void *ctx, struct xdr_out *c, enum sample_object object)
{
	(void)ctx;
	fix_put_fh(c, &objects[object]);
}

static void make_objects(void)
{
	make_file(SAMPLE_FILE_NAME, "0123456789", 0644);
	if (!exists(SAMPLE_LINK_NAME))
		cr_assert_eq(symlink("nowhere", fix_path(f, SAMPLE_LINK_NAME)), 0);
	if (!exists(SAMPLE_DIR_NAME))
		cr_assert_eq(mkdir(fix_path(f, SAMPLE_DIR_NAME), 0755), 0);
	objects[SAMPLE_ROOT] = f->root;
	objects[SAMPLE_FILE] = handle(SAMPLE_FILE_NAME);
	objects[SAMPLE_LINK] = handle(SAMPLE_LINK_NAME);
	objects[SAMPLE_DIR] = handle(SAMPLE_DIR_NAME);
}

static size_t build(unsigned i, uint8_t *msg, size_t size, size_t *args)
{
	struct sample_world w = { .put_fh = put_object, .path = f->dir[0] };
	struct xdr_out c;

	xdr_out_init(&c, msg, size);
	*args = nfs3_sample_put(&nfs3_samples[i], &c, &w);
	cr_assert_not(c.overflow);
	return c.used;
}

static uint32_t accept_word(void)
{
	uint32_t v = UINT32_MAX;

	if (f->outcome == FIX_REPLY && f->reply_len >= 24)
		memcpy(&v, f->reply + 20, 4);
	return __builtin_bswap32(v);
}

/* The samples must be valid calls. */
Test(nfs3_bad_input, samples_are_valid)
{
	uint8_t msg[2048];
	size_t args;

	NEED_FIXTURE();
	for (unsigned i = 0; i < nfs3_sample_count; i++) {
		make_objects();
		fix_send_raw(f, msg, build(i, msg, sizeof(msg), &args));
		cr_expect_eq(f->answers, 1);
		cr_expect_eq(accept_word(), RPC_SUCCESS, "%s", nfs3_samples[i].name);
	}
}

static void truncations(unsigned split)
{
	uint8_t msg[2048];

	f->split = split;
	make_objects();
	for (unsigned i = 0; i < nfs3_sample_count; i++) {
		size_t args, len = build(i, msg, sizeof(msg), &args);

		for (size_t n = 0; n < len; n++) {
			fix_send_raw(f, msg, n);
			cr_assert_eq(f->answers, 1);
			cr_expect(n < args || accept_word() == RPC_GARBAGE_ARGS,
				  "%s at %zu of %zu: %u", nfs3_samples[i].name, n, len,
				  accept_word());
			cr_expect(n >= args || f->outcome != FIX_REPLY ||
				  accept_word() != RPC_SUCCESS);
		}
	}
	cr_expect(exists(SAMPLE_FILE_NAME));
	cr_expect(exists(SAMPLE_DIR_NAME));
	cr_expect_not(exists("made"));
}

Test(nfs3_bad_input, every_truncation)
{
	NEED_FIXTURE();
	truncations(1);
}

Test(nfs3_bad_input, every_truncation_of_split_messages)
{
	NEED_FIXTURE();
	truncations(5);
}

Test(nfs3_bad_input, every_word_of_the_arguments_bent)
{
	static const uint32_t bent[] = { 0,	     1,		 3,	    64,	  65,
					 255,	     256,	 1024,	    1025, 0x7fffffff,
					 0x80000000, 0xfffffffc, 0xffffffff };
	uint8_t msg[2048], copy[2048];

	NEED_FIXTURE();
	for (unsigned i = 0; i < nfs3_sample_count; i++) {
		size_t args, len;

		make_objects();
		len = build(i, msg, sizeof(msg), &args);
		for (size_t at = args; at + 4 <= len; at += 4) {
			for (unsigned b = 0; b < rn_array_size(bent); b++) {
				uint32_t v = __builtin_bswap32(bent[b]);

				memcpy(copy, msg, len);
				memcpy(copy + at, &v, 4);
				fix_send_raw(f, copy, len);
				cr_assert_eq(f->answers, 1, "%s, word at %zu = %#x",
					     nfs3_samples[i].name, at, bent[b]);
				cr_assert_neq(f->outcome, FIX_DROP);
			}
		}
	}
	make_objects(); /* the server must still work */
}

Test(nfs3_bad_input, random_arguments)
{
	uint8_t msg[512];
	uint32_t seed = 1;

	NEED_FIXTURE();
	make_objects();
	for (int round = 0; round < 3000; round++) {
		size_t args;
		size_t len = build((unsigned)round % nfs3_sample_count, msg, sizeof(msg), &args);

		for (size_t i = args; i < sizeof(msg); i++) {
			seed = seed * 1103515245 + 12345;
			msg[i] = (uint8_t)(seed >> 16);
			if (i % 4 < 3 && (seed >> 28))
				msg[i] = 0; /* small lengths pass more of the checks */
		}
		(void)len;
		fix_send_raw(f, msg, sizeof(msg));
		cr_assert_eq(f->answers, 1);
	}
	make_objects();
}
