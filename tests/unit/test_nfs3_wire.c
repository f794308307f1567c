/* SPDX-License-Identifier: BSD-2-Clause */
/* Position of WRITE's data in a call, and the statuses that each procedure may answer, without a
 * server. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_proto.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm.h"
#include "tests/unit/nfs3_samples.h"

static void put_fh(void *ctx, struct xdr_out *c, enum sample_object object)
{
	(void)object;
	xdr_put_opaque(c, "0123456789012345678901234567890123456789012345678901234567890123",
		       *(uint32_t *)ctx);
}

static size_t build(unsigned i, uint8_t *msg, size_t size, uint32_t fh_len)
{
	struct sample_world w = { .put_fh = put_fh, .path = "/p", .ctx = &fh_len };
	struct xdr_out c;

	xdr_out_init(&c, msg, size);
	nfs3_sample_put(&nfs3_samples[i], &c, &w);
	return c.used;
}

Test(nfs3_wire, bulk_offset_of_write_and_of_nothing_else)
{
	for (unsigned i = 0; i < nfs3_sample_count; i++) {
		uint8_t msg[1024];
		size_t len = build(i, msg, sizeof(msg), 29);
		size_t at = nfs3_bulk_offset(msg, len);

		if (strcmp(nfs3_samples[i].name, "WRITE")) {
			cr_expect_eq(at, 0, "%s", nfs3_samples[i].name);
			continue;
		}
		cr_assert_eq(at, len - 12); /* "some data" and its padding */
		cr_expect_eq(memcmp(msg + at, "some data", 9), 0);
		for (size_t n = 0; n < len; n++)
			cr_expect_eq(nfs3_bulk_offset(msg, n), n < at ? 0 : at);
	}
}

/* The handle of a call of NLM, which tells what file system it is for. FREE_ALL and GRANTED_RES have none. */
static void check_nlm_handle(unsigned i, uint32_t proc)
{
	const struct sample *s = &nfs3_samples[i];
	struct sample_world w;
	uint32_t len = 29, got;
	uint8_t msg[1024];
	struct rn_arena none;
	struct xdr_out c;
	struct xdr_in x;

	w = (struct sample_world){ .put_fh = put_fh, .path = "/p", .ctx = &len };
	xdr_out_init(&c, msg, sizeof(msg));

	const size_t args = nfs3_sample_put(s, &c, &w);
	struct rpc_seg seg = { .base = msg + args, .len = (uint32_t)(c.used - args) };

	rn_arena_init(&none, NULL, 0);
	xdr_in_init(&x, &seg, 1, &none);
	if (!s->args || s->proc == NLMPROC4_FREE_ALL || s->proc == NLMPROC4_GRANTED_RES ||
	    s->proc == NLMPROC4_GRANTED) {
		cr_expect_not(nlm_skip_to_fh(&x, proc), "%s", s->name);
		return;
	}
	cr_expect(nlm_skip_to_fh(&x, proc), "%s", s->name);
	cr_expect_eq(got = xdr_get_u32(&x), len, "%s: %u", s->name, got);
	for (seg.len = 0; seg.len < 20; seg.len++) {
		xdr_in_init(&x, &seg, 1, &none);
		cr_expect_not(nlm_skip_to_fh(&x, proc), "%s cut at %u", s->name, seg.len);
	}
}

Test(nfs3_wire, handle_of_lock_calls)
{
	for (unsigned i = 0; i < nfs3_sample_count; i++) {
		const uint32_t proc = nfs3_samples[i].proc;

		if (nfs3_samples[i].prog != NLM_PROGRAM)
			continue;
		check_nlm_handle(i, proc);
		if (proc >= NLMPROC4_TEST && proc <= NLMPROC4_UNLOCK)
			check_nlm_handle(i, proc - NLMPROC4_TEST + NLMPROC4_TEST_MSG);
	}
}

Test(nfs3_wire, bulk_offset_with_long_handles)
{
	uint8_t msg[1024];
	unsigned write = 0;
	size_t len;

	while (strcmp(nfs3_samples[write].name, "WRITE"))
		write++;
	len = build(write, msg, sizeof(msg), 64);
	cr_expect_eq(nfs3_bulk_offset(msg, len), len - 12);
	len = build(write, msg, sizeof(msg), 0);
	cr_expect_eq(nfs3_bulk_offset(msg, len), len - 12);
	for (size_t at = 24; at + 4 <= len; at += 4) {
		uint8_t bent[1024];

		memcpy(bent, msg, len);
		memset(bent + at, 0xff, 4);
		cr_expect_leq(nfs3_bulk_offset(bent, len), len);
	}
}

Test(nfs3_wire, statuses)
{
	cr_expect_eq(nfs3_status(&nfs3_proc_getattr, 0), NFS3_OK);
	cr_expect_eq(nfs3_status(&nfs3_proc_getattr, -EBADF), NFS3ERR_BADHANDLE);
	cr_expect_eq(nfs3_status(&nfs3_proc_getattr, -ESTALE), NFS3ERR_STALE);
	cr_expect_eq(nfs3_status(&nfs3_proc_getattr, -EINVAL), NFS3ERR_IO);
	cr_expect_eq(nfs3_status(&nfs3_proc_setattr, -EDOM), NFS3ERR_NOT_SYNC);
	cr_expect_eq(nfs3_status(&nfs3_proc_lookup, -EDOM), NFS3ERR_IO);
	cr_expect_eq(nfs3_status(&nfs3_proc_write, -EDQUOT), NFS3ERR_DQUOT);
	cr_expect_eq(nfs3_status(&nfs3_proc_write, -ENAMETOOLONG), NFS3ERR_IO);
	cr_expect_eq(nfs3_status(&nfs3_proc_readdir, -NFS3_EBADCOOKIE), NFS3ERR_BAD_COOKIE);
	cr_expect_eq(nfs3_status(&nfs3_proc_readdir, -NFS3_ETOOSMALL), NFS3ERR_TOOSMALL);
	cr_expect_eq(nfs3_status(&nfs3_proc_mknod, -NFS3_EBADTYPE), NFS3ERR_BADTYPE);
	cr_expect_eq(nfs3_status(&nfs3_proc_rename, -ENOTEMPTY), NFS3ERR_NOTEMPTY);
#define FOR_ALL(NAME, name)                                                                        \
	cr_expect_eq(nfs3_status(&nfs3_proc_##name, -EMFILE), NFS3ERR_JUKEBOX, #NAME);             \
	cr_expect_eq(nfs3_status(&nfs3_proc_##name, -EAGAIN), NFS3ERR_JUKEBOX, #NAME);             \
	cr_expect_eq(nfs3_status(&nfs3_proc_##name, -EUCLEAN), NFS3ERR_IO, #NAME);                 \
	cr_expect_eq(nfs3_status(&nfs3_proc_##name, INT32_MIN + 1), NFS3ERR_IO, #NAME);
	NFS3_PROC_LIST(FOR_ALL)
}
