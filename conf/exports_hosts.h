/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of the host names in an export table, looked up when first needed and kept for a time.
 * Internal to the matcher. Lock order: none; the lock is never held over a look-up.
 */
#ifndef RINGNFS_CONF_EXPORTS_HOSTS_H
#define RINGNFS_CONF_EXPORTS_HOSTS_H

#include "conf/exports_match.h"

/* One round of look-ups for one question, and what its answer is worth. */
struct exp_round {
	const struct exp_resolver *resolver;
	unsigned ttl_ms;
	unsigned fail_ttl_ms;
	uint64_t start;
	uint64_t until; /* the answer holds until then */
	bool uncertain; /* some look-up failed for now */
	bool alone;	/* what another thread asks just now is not waited for */
};

/* A round that goes on for long asks no further servers: false then. */
bool exp_round_may_ask(struct exp_round *round);
/* A look-up failed for now. */
void exp_round_failed(struct exp_round *round, uint64_t now);
void exp_round_until(struct exp_round *round, uint64_t until);

struct exp_hosts;

int exp_hosts_new(const struct exp_table *table, struct exp_hosts **hosts);
void exp_hosts_free(struct exp_hosts *hosts);

/* Is addr one of the name's? 1, 0, or -EAGAIN: not known now. The name is one of the table's. */
int exp_hosts_has(struct exp_hosts *hosts, const char *name, const struct exp_addr *addr,
		  struct exp_round *round);

#endif
