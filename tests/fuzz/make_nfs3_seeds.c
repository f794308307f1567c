/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the seeds of fuzz_nfs3_call and fuzz_nfs3_args: one valid call for each procedure.
 * make_nfs3_seeds CORPUS-DIRECTORY (tests/fuzz/corpus)
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nfs3/acl/nfsacl.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm.h"
#include "nfs3/nfs3_proto.h"
#include "nfs3/quota/rquota.h"
#include "tests/unit/nfs3_samples.h"

/* Marks that fuzz_nfs3_call replaces by handles. */
static void put_mark(void *ctx, struct xdr_out *c, enum sample_object object)
{
	const uint8_t mark[4] = { 0xf1, 'F', 'H', (uint8_t)('0' + object) };

	(void)ctx;
	xdr_put_fixed(c, mark, 4);
}

static void put_handle(void *ctx, struct xdr_out *c, enum sample_object object)
{
	(void)ctx;
	(void)object;
	xdr_put_opaque(c, "a handle of 24 bytes....", 24);
}

static int write_seed(const char *dir, const char *target, unsigned i, const struct xdr_out *c,
		      size_t from)
{
	char path[1024];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s/%02u-%s", dir, target, i, nfs3_samples[i].name);
	out = fopen(path, "wb");
	if (!out || fwrite(c->base + from, 1, c->used - from, out) != c->used - from ||
	    fclose(out)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	return 0;
}

/* Index of a procedure's decoder in fuzz_nfs3_args. */
static int decoder_of(const struct sample *s)
{
	static const int nfs[NFSPROC3_COUNT] = {
		-1, 0, 1, 2, 3, 0, 4, 5, 6, 7, 8, 9, 2, 2, 10, 11, 12, 13, 0, 0, 0, 14,
	};

	static const int nlm[NLMPROC4_COUNT] = {
		[NLMPROC4_TEST] = 16,	     [NLMPROC4_LOCK] = 17,    [NLMPROC4_CANCEL] = 18,
		[NLMPROC4_UNLOCK] = 19,	     [NLMPROC4_NM_LOCK] = 17, [NLMPROC4_FREE_ALL] = 20,
		[NLMPROC4_GRANTED] = 16,     [NLMPROC4_SHARE] = 30,   [NLMPROC4_UNSHARE] = 30,
		[NLMPROC4_GRANTED_RES] = 31,
	};

	/* From 16 to 19 those of version 4, from 26 to 29 the older ones. */
	const int old = s->prog == NLM_PROGRAM && s->vers < NLM_VERSION ? 10 : 0;

	if (!s->args)
		return -1;
	if (s->prog == RQUOTA_PROGRAM)
		return (s->proc < RQUOTAPROC_SETQUOTA ? 22 : 24) + (int)s->vers - 1;
	if (s->prog == NFSACL_PROGRAM)
		return s->proc == NFSACLPROC3_GETACL ? 3 : 21; /* GETACL's are ACCESS's */
	if (s->prog == NLM_PROGRAM)
		return nlm[s->proc] + (nlm[s->proc] < 20 ? old : 0);
	return s->prog == NFS_PROGRAM ? nfs[s->proc] : 15;
}

int main(int argc, char **argv)
{
	const struct sample_world marks = { .put_fh = put_mark, .path = "/tmp/ringnfs-test-/x" };
	const struct sample_world handles = { .put_fh = put_handle,
					      .path = "/tmp/ringnfs-test-/x" };
	uint8_t buf[2048];
	struct xdr_out c;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 2;
	}
	for (unsigned i = 0; i < nfs3_sample_count; i++) {
		size_t args;

		xdr_out_init(&c, buf, sizeof(buf));
		nfs3_sample_put(&nfs3_samples[i], &c, &marks);
		if (write_seed(argv[1], "fuzz_nfs3_call", i, &c, 0) < 0)
			return 1;
		xdr_out_init(&c, buf, sizeof(buf));
		args = nfs3_sample_put(&nfs3_samples[i], &c, &handles);
		if (decoder_of(&nfs3_samples[i]) < 0)
			continue;
		buf[args - 2] = (uint8_t)decoder_of(&nfs3_samples[i]);
		buf[args - 1] = 7;
		if (write_seed(argv[1], "fuzz_nfs3_args", i, &c, args - 2) < 0)
			return 1;
	}
	return 0;
}
