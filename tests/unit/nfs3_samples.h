/* SPDX-License-Identifier: BSD-2-Clause */
/* One valid call for each procedure of NFSv3, MOUNT, NLM, NFSACL and RQUOTA, for tests that cut and change
 * them, and as seeds of the fuzz target. */
#ifndef RN_TESTS_NFS3_SAMPLES_H
#define RN_TESTS_NFS3_SAMPLES_H

#include "rpc/xdr_out.h"

/* Objects that the samples name; the caller creates them in an export's root. */
enum sample_object { SAMPLE_ROOT, SAMPLE_FILE, SAMPLE_LINK, SAMPLE_DIR, SAMPLE_OBJECTS };
#define SAMPLE_FILE_NAME "file"
#define SAMPLE_LINK_NAME "link"
#define SAMPLE_DIR_NAME "dir"

/* Gives the samples the handles of objects and the export's path. */
struct sample_world {
	void (*put_fh)(void *ctx, struct xdr_out *c, enum sample_object object);
	const char *path;
	void *ctx;
};

struct sample {
	const char *name;
	uint32_t prog, vers, proc;
	/* encodes the arguments; NULL: none */
	void (*args)(struct xdr_out *c, const struct sample_world *w);
};

extern const struct sample nfs3_samples[];
extern const unsigned nfs3_sample_count;

/* Encodes the whole call; returns the offset of its arguments. */
size_t nfs3_sample_put(const struct sample *s, struct xdr_out *c, const struct sample_world *w);

#endif
