/* SPDX-License-Identifier: BSD-2-Clause */
/* One call of each operation, with the shortest arguments that decode: what tables of error cases
 * start from. */
#ifndef RN_TESTS_NFS4_SAMPLES_H
#define RN_TESTS_NFS4_SAMPLES_H

#include "nfs4/op_table.h"
#include "tests/unit/nfs4_fixture.h"

enum sample_what {
	SAMPLE_NO_FH,
	SAMPLE_DIR,  /* f->root */
	SAMPLE_FILE, /* "file" there */
	SAMPLE_LINK, /* "link" there */
};

struct sample {
	uint32_t num;
	enum sample_what current, saved;
	void (*put)(struct fixture *f); /* NULL: no arguments */
};
void sample_put_owner(struct fixture *f);
extern const struct sample samples[];
extern const unsigned nsamples;

#define EACH_SAMPLE(s) for (const struct sample *s = samples; s < samples + nsamples; s++)

/* Its row of the server's table: NULL in minor versions without it. */
const struct nfs4_op *sample_row(const struct sample *s, uint32_t minor);
/* Whom operations of minor version 0 are from: nobody, unless a test says so. Owners are new ones
 * each time. */
extern uint64_t sample_clientid;
/* Is there anything to be tested: known, not gone again, and done here? */
bool sample_runs(const struct sample *s, uint32_t minor);

/* Makes "file", "link" and "dir", and their handles. */
void sample_make(struct fixture *f);
/* Puts what the operation needs to have before it: filehandles, as many operations as that takes.
 */
void sample_put_places(struct fixture *f, const struct sample *s);
/* Puts the operation. */
void sample_put(struct fixture *f, const struct sample *s);

#endif
