/* SPDX-License-Identifier: BSD-2-Clause */
/* One call of each operation, with the shortest arguments that decode. Tables of error cases start
 * from these. */
#ifndef RN_TESTS_NFS4_SAMPLES_H
#define RN_TESTS_NFS4_SAMPLES_H

#include "nfs4/op_table.h"
#include "tests/unit/nfs4_fixture.h"

enum sample_what {
	SAMPLE_NO_FH,
	SAMPLE_DIR,  /* f->root */
	SAMPLE_FILE, /* "file" in f->root */
	SAMPLE_LINK, /* "link" in f->root */
};

struct sample {
	uint32_t num;
	enum sample_what current, saved;
	void (*put)(struct fixture *f); /* encodes the arguments; NULL: none */
};
void sample_put_owner(struct fixture *f);
extern const struct sample samples[];
extern const unsigned nsamples;

#define EACH_SAMPLE(s) for (const struct sample *s = samples; s < samples + nsamples; s++)

/* Row of the operation in the server's table; NULL in minor versions without it. */
const struct nfs4_op *sample_row(const struct sample *s, uint32_t minor);
/* Client id in operations of minor version 0; by default that of no client. Each sample uses a new
 * owner. */
extern uint64_t sample_clientid;
/* True if the minor version has the operation and the server implements it. */
bool sample_runs(const struct sample *s, uint32_t minor);

/* Creates "file", "link" and "dir", and gets their handles. */
void sample_make(struct fixture *f);
/* Puts the operations that set the filehandles which the sample needs. */
void sample_put_places(struct fixture *f, const struct sample *s);
/* Puts the operation itself. */
void sample_put(struct fixture *f, const struct sample *s);

#endif
