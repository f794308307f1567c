/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which options has this peer on this export?
 *
 * Precedence is that of exports(5): single hosts, networks, wildcards, netgroups, then everybody;
 * within one kind the first in the file. Peers are compared by address; a name is looked up only
 * when an export's answer depends on it. Answers are kept for each address up to a time to live, in
 * a bounded cache, so that a busy client costs at most one round of look-ups in that time. A
 * look-up blocks its caller; other callers with an older answer for the address go on with that
 * one.
 *
 * A name from the peer's reverse entry counts only if it resolves to the peer's address again.
 *
 * Thread-safe: one matcher is shared by all workers. It holds a reference to its table; answers
 * (exp_opts pointers) live as long as the caller keeps the table.
 */
#ifndef RINGNFS_CONF_EXPORTS_MATCH_H
#define RINGNFS_CONF_EXPORTS_MATCH_H

#include <sys/socket.h>

#include "conf/exports.h"

enum { EXP_NAME_MAX = 256, EXP_MAX_ADDRS = 16 };

/*
 * Name look-ups, replaceable for tests. Each returns 0 or more, -ENOENT when there is no such name,
 * or another -errno when the answer is not known now (an older answer is then kept). They may be
 * called from several threads at once.
 */
struct exp_resolver {
	/* Name of an address, from the reverse map. */
	int (*reverse)(void *arg, const struct exp_addr *addr, char name[EXP_NAME_MAX]);
	/* Addresses of a name: their number, at most max. */
	int (*forward)(void *arg, const char *name, struct exp_addr *addrs, unsigned max);
	/* 1 when one of the names is a host of the netgroup by its own entry, else 0. */
	int (*in_netgroup)(void *arg, const char *group, const char *const *names, unsigned n);
	/* Milliseconds of a clock that never goes back. */
	uint64_t (*now)(void *arg);
	void *arg;
};

struct exp_match_conf {
	unsigned ttl_ms;      /* 0: five minutes */
	unsigned fail_ttl_ms; /* after a failed look-up; 0: ten seconds */
	unsigned max_peers;   /* addresses kept; 0: 4096 */
};

struct exp_matcher;

/* The system's resolver: getaddrinfo, getnameinfo, netgroups. Nothing to free. */
void exp_resolver_system(struct exp_resolver *resolver);

/* conf may be NULL. The resolver is copied; its arg must outlive the matcher. */
int exp_matcher_new(struct exp_table *table, const struct exp_resolver *resolver,
		    const struct exp_match_conf *conf, struct exp_matcher **matcher);
void exp_matcher_free(struct exp_matcher *matcher);

/*
 * Options of the peer on an export of the matcher's own table, or NULL: no access. A peer that is
 * neither IPv4 nor IPv6 has none.
 */
const struct exp_opts *exp_match(struct exp_matcher *matcher, const struct exp_export *export,
				 const struct sockaddr *peer);

#endif
