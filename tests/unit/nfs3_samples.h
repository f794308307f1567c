/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One valid call for each procedure of NFSv3, of MOUNT and of NLM: for the tests that cut and bend
 * them, and as seeds of the fuzz target.
 */
#ifndef RN_TESTS_NFS3_SAMPLES_H
#define RN_TESTS_NFS3_SAMPLES_H

#include "rpc/xdr_out.h"

/* Objects that calls are about; whoever runs them makes these in an export's root. */
enum sample_object { SAMPLE_ROOT, SAMPLE_FILE, SAMPLE_LINK, SAMPLE_DIR, SAMPLE_OBJECTS };
#define SAMPLE_FILE_NAME "file"
#define SAMPLE_LINK_NAME "link"
#define SAMPLE_DIR_NAME "dir"

/* How to put the handle of an object, and the path of the export. */
struct sample_world {
	void (*put_fh)(void *ctx, struct xdr_out *c, enum sample_object object);
	const char *path;
	void *ctx;
};

struct sample {
	const char *name;
	uint32_t prog, vers, proc;
	void (*args)(struct xdr_out *c, const struct sample_world *w); /* NULL: none */
};

extern const struct sample nfs3_samples[];
extern const unsigned nfs3_sample_count;

/* Puts the whole call; returns the offset of its arguments. */
size_t nfs3_sample_put(const struct sample *s, struct xdr_out *c, const struct sample_world *w);

#endif
