/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sinks that a peer learns: an RDMA Read Request of iWARP carries the key and the address of the
 * memory for the answer (RFC 5040 section 4.4). The peer that is read from could also write there,
 * if the key's rights and protection domain permit. A hostile test client finds this function by
 * dlsym().
 */
#ifndef SOFTVERBS_SINKS_H
#define SOFTVERBS_SINKS_H

#include <stdint.h>

struct softverbs_sink {
	uint32_t qp_num; /* local queue pair that was read from */
	uint32_t key;
	uint32_t length;
	uint64_t address;
};

/* Stores the last sinks, newest first, and returns their number: at most max and 64. */
unsigned softverbs_sinks(struct softverbs_sink *out, unsigned max);

#endif
