/* SPDX-License-Identifier: BSD-2-Clause */
/* One answer of GET /metrics: the figures that ringnfsctl top shows. */
#ifndef RN_CTL_TOP_READING_H
#define RN_CTL_TOP_READING_H

#include <stdbool.h>

enum {
	TOP_OPERATIONS_MAX = 256, /* further ones are left out */
	TOP_BOUNDS_MAX = 64,	  /* buckets of a histogram; further ones are left out */
	TOP_NAME_MAX = 32,
};

/* Counted since the server has started. */
struct top_operation {
	char version[TOP_NAME_MAX], name[TOP_NAME_MAX]; /* printable ASCII */
	double calls, errors;
	double within
		[TOP_BOUNDS_MAX]; /* calls that took at most that bound; the bounds are not in order */
};

struct top_reading {
	double seconds; /* when it was read, by a clock that does not jump */
	char version[TOP_NAME_MAX];
	double started; /* time of day; 0: not known */

	struct top_operation operations[TOP_OPERATIONS_MAX];
	unsigned noperations;
	double bounds[TOP_BOUNDS_MAX]; /* seconds; may have infinity */
	unsigned nbounds;

	double read, written; /* bytes, of all exports */
	double tcp, rdma;     /* connections */
	double clients, clients_idle;
	double opens, locks, delegations;
	double exports, descriptors, memory, memory_limit;
	double workers, workers_busy, stuck;
	bool grace;
};

/* Reads the text, which is changed. False: it has nothing of ringnfsd. */
bool top_read(struct top_reading *r, char *text, double seconds);

/* True for operations of NFSv4 within a COMPOUND, which is the call. */
bool top_is_part(const struct top_operation *op);
bool top_is_compound(const struct top_operation *op);

#endif
