/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of the host names in an export table, looked up when first needed and kept for a time.
 * Internal to the matcher. Lock order: none; the lock is never held over a look-up.
 */
#ifndef RINGNFS_CONF_EXPORTS_HOSTS_H
#define RINGNFS_CONF_EXPORTS_HOSTS_H

#include "conf/exports_match.h"

/* One round of look-ups for one question, and how long its answer is valid. */
struct exp_round {
	const struct exp_resolver *resolver;
	unsigned ttl_ms;
	unsigned fail_ttl_ms;
	uint64_t start;
	uint64_t until; /* end of the answer's validity */
	bool uncertain; /* a look-up failed temporarily */
	bool alone;	/* do not wait for look-ups of other threads */
};

/* False if the round has taken so long that no further server may be asked. */
bool exp_round_may_ask(struct exp_round *round);
/* A look-up has failed temporarily. */
void exp_round_failed(struct exp_round *round, uint64_t now);
void exp_round_until(struct exp_round *round, uint64_t until);

struct exp_hosts;

int exp_hosts_new(const struct exp_table *table, struct exp_hosts **hosts);
void exp_hosts_free(struct exp_hosts *hosts);

/* 1 if addr is one of the name's, 0 if not, -RN_EUNNAMED if that is not known now. The name is one of
 * the table's. */
int exp_hosts_has(struct exp_hosts *hosts, const char *name, const struct exp_addr *addr,
		  struct exp_round *round);

#endif
