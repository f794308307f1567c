/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options that a peer has on an export.
 *
 * Precedence is that of exports(5): single hosts, networks, wildcards, netgroups, then everybody;
 * within one kind the first in the file. Peers are compared by address; a name is looked up only
 * when an export's answer depends on it. Answers are kept for each address up to a time to live, in
 * a bounded cache, so that a busy client costs at most one round of look-ups in that time. An
 * expired answer is renewed. While the name service is silent the old one is used, for old_ms at
 * most.
 *
 * A line that cannot be decided because the name service has not answered is never passed over: a
 * client that was to be restricted must not fall through to a wider line. The answer then is "not
 * known now", which gives no access.
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
	/* Addresses of a name; returns their number, at most max. */
	int (*forward)(void *arg, const char *name, struct exp_addr *addrs, unsigned max);
	/* 1 when one of the names is a host of the netgroup by its own entry, else 0. */
	int (*in_netgroup)(void *arg, const char *group, const char *const *names, unsigned n);
	/* Milliseconds of a clock that never goes back. */
	uint64_t (*now)(void *arg);
	void *arg;
	/* 1 if there is such a netgroup, else 0. May be NULL: not known. */
	int (*has_netgroup)(void *arg, const char *group);
};

struct exp_match_conf {
	unsigned ttl_ms;      /* 0: five minutes */
	unsigned fail_ttl_ms; /* time to live after a failed look-up; 0: ten seconds */
	unsigned max_peers;   /* addresses kept; 0: 4096 */
	unsigned old_ms;      /* longest use of an expired answer; 0: an hour */
	/*
	 * Has run(job, false) called soon by a thread that may wait for a name service, on behalf
	 * of the peer; or run(job, true), when nothing is to be asked any more. False: too many
	 * wait, and run is not called. NULL: exp_match asks on its caller's thread.
	 */
	bool (*later)(void *arg, const struct exp_addr *peer,
		      void (*run)(void *job, bool cancelled), void *job);
	void *later_arg;
};

struct exp_matcher;

/* The system's resolver: getaddrinfo, getnameinfo, netgroups. Nothing to free. */
void exp_resolver_system(struct exp_resolver *resolver);

/* conf may be NULL. The resolver is copied; its arg must outlive the matcher. */
int exp_matcher_new(struct exp_table *table, const struct exp_resolver *resolver,
		    const struct exp_match_conf *conf, struct exp_matcher **matcher);
/* Questions handed to conf.later keep the matcher alive until they have run. */
void exp_matcher_free(struct exp_matcher *matcher);

/*
 * Options of the peer on an export of the matcher's own table. 0; -EACCES: no access; -RN_EUNNAMED: not
 * known now, ask again. A peer that is neither IPv4 nor IPv6 has no access. With conf.later it
 * never waits for a name service.
 */
int exp_match(struct exp_matcher *matcher, const struct exp_export *export,
	      const struct sockaddr *peer, const struct exp_opts **opts);
/* As exp_match, for a thread that may wait some seconds. */
int exp_match_wait(struct exp_matcher *matcher, const struct exp_export *export,
		   const struct sockaddr *peer, const struct exp_opts **opts);

/* How a line compares with a peer. */
enum exp_verdict {
	EXP_NO_MATCH,
	EXP_MATCH,
	EXP_UNDECIDED, /* the name service does not answer: nothing behind the line counts */
	EXP_NOT_ASKED, /* a line before it has decided */
};

/*
 * Compares the peer with the lines in their order of precedence, and calls each for every one of them. name is
 * the peer's confirmed name, or NULL if no line depends on it or it is not known. The answer is what exp_match()
 * gives without its cache. Waits for name services, some seconds at most. False: the peer has no address, or
 * the export is not of the matcher's table.
 */
bool exp_match_explain(struct exp_matcher *matcher, const struct exp_export *export,
		       const struct sockaddr *peer,
		       void (*each)(void *ctx, const struct exp_client *client,
				    enum exp_verdict verdict, const char *name),
		       void *ctx);

#endif
