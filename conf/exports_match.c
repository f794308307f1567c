/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"
#include "conf/exports_private.h"
#include "lib/error.h"

enum {
	DEFAULT_TTL_MS = 300000,
	DEFAULT_FAIL_TTL_MS = 10000,
	DEFAULT_OLD_MS = 3600000,
	DEFAULT_MAX_PEERS = 4096,
	/* Longest access list of addresses that is walked rather than looked up in the cache. */
	SHORT_LIST = 32,
};

struct exp_matcher {
	_Atomic unsigned refs;
	struct exp_table *table;
	struct exp_resolver resolver;
	struct exp_match_conf conf;
	struct exp_hosts *hosts;
	struct exp_peers *peers;
};

int exp_matcher_new(struct exp_table *table, const struct exp_resolver *resolver,
		    const struct exp_match_conf *conf, struct exp_matcher **matcher)
{
	struct exp_matcher *made = calloc(1, sizeof(*made));
	int rc;

	if (!made)
		return -ENOMEM;
	atomic_init(&made->refs, 1);
	made->table = exp_table_ref(table);
	made->resolver = *resolver;
	if (conf)
		made->conf = *conf;
	if (!made->conf.ttl_ms)
		made->conf.ttl_ms = DEFAULT_TTL_MS;
	if (!made->conf.fail_ttl_ms)
		made->conf.fail_ttl_ms = DEFAULT_FAIL_TTL_MS;
	if (!made->conf.old_ms)
		made->conf.old_ms = DEFAULT_OLD_MS;
	if (!made->conf.max_peers)
		made->conf.max_peers = DEFAULT_MAX_PEERS;
	rc = exp_hosts_new(table, &made->hosts);
	if (!rc)
		rc = exp_peers_new(table->n_exports, made->conf.max_peers, &made->peers);
	if (rc) {
		exp_matcher_free(made);
		return rc;
	}
	*matcher = made;
	return 0;
}

void exp_matcher_free(struct exp_matcher *matcher)
{
	if (!matcher || atomic_fetch_sub(&matcher->refs, 1) != 1)
		return;
	exp_hosts_free(matcher->hosts);
	exp_peers_free(matcher->peers);
	exp_table_unref(matcher->table);
	free(matcher);
}

/* A question being worked on. */
struct question {
	struct exp_matcher *matcher;
	const struct exp_export *export;
	struct exp_addr addr;
	struct exp_round round;
	struct exp_peer_name *name;
};

/*
 * 0 if the name has the peer's address, -ENOENT if it has not, another -errno if that is not known.
 */
static int confirm_name(struct question *q, const char *name)
{
	const struct exp_resolver *resolver = &q->matcher->resolver;
	struct exp_addr addrs[EXP_MAX_ADDRS];
	struct exp_addr literal;
	int n;

	/* A reverse entry that reads as an address is not a name. */
	if (exp_addr_from_text(name, &literal))
		return -ENOENT;
	n = resolver->forward(resolver->arg, name, addrs, EXP_MAX_ADDRS);
	for (int i = 0; i < n; i++)
		if (exp_addr_equal(&addrs[i], &q->addr))
			return 0;
	return n < 0 ? n : -ENOENT;
}

static void normalize_name(char *name)
{
	size_t len = strlen(name);

	if (len && name[len - 1] == '.')
		name[len - 1] = '\0';
	for (; *name; name++)
		*name = (char)tolower((unsigned char)*name);
}

static void look_up_name(struct question *q)
{
	const struct exp_resolver *resolver = &q->matcher->resolver;
	struct exp_peer_name *known = q->name;
	char name[EXP_NAME_MAX] = "";
	int rc = resolver->reverse(resolver->arg, &q->addr, name);
	uint64_t now;

	if (!rc) {
		name[EXP_NAME_MAX - 1] = '\0';
		normalize_name(name);
		rc = confirm_name(q, name);
	}
	now = resolver->now(resolver->arg);
	known->failed = rc && rc != -ENOENT;
	known->until = now + (known->failed ? q->round.fail_ttl_ms : q->round.ttl_ms);
	if (!rc)
		memcpy(known->name, name, sizeof(name));
	else if (!known->failed || !known->known)
		known->name[0] = '\0';
	known->known = true;
}

/* The peer's confirmed name; "" if it has none; NULL if that is not known now. */
static const char *peer_name(struct question *q)
{
	const struct exp_resolver *resolver = &q->matcher->resolver;

	if (!q->name->known || resolver->now(resolver->arg) >= q->name->until) {
		if (!exp_round_may_ask(&q->round))
			return NULL;
		look_up_name(q);
	}
	exp_round_until(&q->round, q->name->until);
	if (!q->name->failed)
		return q->name->name;
	q->round.uncertain = true;
	return NULL;
}

/* 1 if the line covers the peer, 0 if not, or -RN_EUNNAMED. */
static int in_netgroup(struct question *q, const char *group)
{
	const struct exp_resolver *resolver = &q->matcher->resolver;
	const char *const full = peer_name(q);
	const char *names[3];
	char brief[EXP_NAME_MAX];
	char addr[EXP_ADDR_STRLEN];
	unsigned n = 0;
	int is;

	exp_addr_to_text(&q->addr, addr);
	names[n++] = addr;
	if (full && *full) {
		names[n++] = full;
		memcpy(brief, full, sizeof(brief));
		brief[strcspn(brief, ".")] = '\0';
		names[n++] = brief;
	}
	if (!exp_round_may_ask(&q->round))
		return -RN_EUNNAMED;
	is = resolver->in_netgroup(resolver->arg, group, names, n);
	if (is < 0)
		exp_round_failed(&q->round, resolver->now(resolver->arg));
	if (is > 0)
		return 1;
	return is < 0 || !full ? -RN_EUNNAMED : 0;
}

static int matches_wildcard(struct question *q, const char *pattern)
{
	const char *name = peer_name(q);

	if (!name)
		return -RN_EUNNAMED;
	return *name && !fnmatch(pattern, name, FNM_NOESCAPE | FNM_CASEFOLD);
}

/*
 * 1 if the line covers the peer, 0 if not, -RN_EUNNAMED if it depends on a name that is not known now.
 */
static int client_matches(struct question *q, const struct exp_client *client)
{
	switch (client->kind) {
	case EXP_CLIENT_HOST:
		if (client->name)
			return exp_hosts_has(q->matcher->hosts, client->name, &q->addr, &q->round);
		return exp_addr_equal(&client->addr, &q->addr);
	case EXP_CLIENT_NETWORK:
		return exp_addr_within(&q->addr, &client->addr, client->prefix);
	case EXP_CLIENT_WILDCARD:
		return matches_wildcard(q, client->name);
	case EXP_CLIENT_NETGROUP:
		return in_netgroup(q, client->name);
	case EXP_CLIENT_ANY:
		return 1;
	}
	return 0;
}

/*
 * The client line in force, by kind and then by order; EXP_CLIENT_NONE if there is none. A line
 * that cannot be decided may be a narrower one made for this very client. No line behind it may
 * stand in for it, so the answer is EXP_CLIENT_UNKNOWN.
 */
static int exp_match_resolve(struct question *q)
{
	for (int kind = EXP_CLIENT_HOST; kind <= EXP_CLIENT_ANY; kind++) {
		for (unsigned i = 0; i < q->export->n_clients; i++) {
			const struct exp_client *client = &q->export->clients[i];
			int is;

			if ((int)client->kind != kind)
				continue;
			is = client_matches(q, client);
			if (is != 0)
				return is > 0 ? (int)i : EXP_CLIENT_UNKNOWN;
		}
	}
	return EXP_CLIENT_NONE;
}

static bool needs_lookup(const struct exp_client *client)
{
	return client->name != NULL;
}

/* The client line in force, as exp_match_resolve() finds it, without look-ups. False: the answer depends on one. */
static bool match_by_address(const struct exp_export *export, const struct exp_addr *addr,
			     int *answer)
{
	struct question q = { .export = export, .addr = *addr };

	for (int kind = EXP_CLIENT_HOST; kind <= EXP_CLIENT_ANY; kind++) {
		for (unsigned i = 0; i < export->n_clients; i++) {
			const struct exp_client *client = &export->clients[i];

			if ((int)client->kind != kind)
				continue;
			if (needs_lookup(client))
				return false;
			if (client_matches(&q, client)) {
				*answer = (int)i;
				return true;
			}
		}
	}
	*answer = EXP_CLIENT_NONE;
	return true;
}

static uint64_t now_of(const struct exp_matcher *matcher)
{
	return matcher->resolver.now(matcher->resolver.arg);
}

static struct exp_round new_round(const struct exp_matcher *matcher, bool alone)
{
	return (struct exp_round){ .resolver = &matcher->resolver,
				   .ttl_ms = matcher->conf.ttl_ms,
				   .fail_ttl_ms = matcher->conf.fail_ttl_ms,
				   .start = now_of(matcher),
				   .until = UINT64_MAX,
				   .alone = alone };
}

/* Answers the ticket and keeps the answer in ticket->client, EXP_CLIENT_UNKNOWN included. alone:
 * may wait for the name service, but for no other thread. */
static void find_out(struct exp_matcher *matcher, const struct exp_export *export,
		     const struct exp_addr *addr, bool alone, struct exp_peers_ticket *ticket)
{
	struct question q = {
		.matcher = matcher,
		.export = export,
		.addr = *addr,
		.name = &ticket->name,
		.round = new_round(matcher, alone),
	};
	const int found = exp_match_resolve(&q);
	const uint64_t now = now_of(matcher);

	exp_round_until(&q.round, now + (q.round.uncertain ? q.round.fail_ttl_ms : q.round.ttl_ms));
	if (found == EXP_CLIENT_UNKNOWN) {
		exp_peers_give_up(ticket, q.round.until);
		return;
	}
	ticket->client = found;
	exp_peers_end(ticket, q.round.until, q.round.until + matcher->conf.old_ms);
}

/* A question that another thread answers. */
struct later {
	struct exp_matcher *matcher; /* a reference */
	const struct exp_export *export;
	struct exp_addr addr;
	struct exp_peers_ticket ticket;
};

static void run_later(void *arg, bool cancelled)
{
	struct later *l = arg;

	if (cancelled)
		exp_peers_give_up(&l->ticket, 0);
	else
		find_out(l->matcher, l->export, &l->addr, true, &l->ticket);
	exp_matcher_free(l->matcher);
	free(l);
}

static void exp_match_ask_later(struct exp_matcher *matcher, const struct exp_export *export,
				const struct exp_addr *addr, const struct exp_peers_ticket *ticket)
{
	const struct exp_match_conf *conf = &matcher->conf;
	struct later *l = malloc(sizeof(*l));

	if (!l) {
		struct exp_peers_ticket mine = *ticket;

		exp_peers_give_up(&mine, 0);
		return;
	}
	*l = (struct later){ matcher, export, *addr, *ticket };
	atomic_fetch_add(&matcher->refs, 1);
	if (!conf->later(conf->later_arg, addr, run_later, l))
		run_later(l, true);
}

static int match_cached(struct exp_matcher *matcher, const struct exp_export *export,
			const struct exp_addr *addr, bool wait)
{
	struct exp_peers_ticket ticket;

	exp_peers_begin(matcher->peers, addr, export->index, now_of(matcher), wait, &ticket);
	if (ticket.state == EXP_PEERS_RESOLVE && !wait) {
		exp_match_ask_later(matcher, export, addr, &ticket);
		return ticket.client;
	}
	if (ticket.state == EXP_PEERS_RESOLVE || (ticket.state == EXP_PEERS_UNCACHED && wait))
		find_out(matcher, export, addr, false, &ticket);
	return ticket.client;
}

static int match(struct exp_matcher *matcher, const struct exp_export *export,
		 const struct sockaddr *peer, bool wait, const struct exp_opts **opts)
{
	const struct exp_table *table = matcher->table;
	struct exp_addr addr;
	int client;

	*opts = NULL;
	if (export->index >= table->n_exports || &table->exports[export->index] != export)
		return -EACCES;
	if (!exp_addr_from_sockaddr(peer, &addr))
		return -EACCES;
	if (export->n_clients > SHORT_LIST || !match_by_address(export, &addr, &client))
		client = match_cached(matcher, export, &addr, wait);
	if (client < 0)
		return client == EXP_CLIENT_UNKNOWN ? -RN_EUNNAMED : -EACCES;
	*opts = &export->clients[client].opts;
	return 0;
}

int exp_match(struct exp_matcher *matcher, const struct exp_export *export,
	      const struct sockaddr *peer, const struct exp_opts **opts)
{
	return match(matcher, export, peer, !matcher->conf.later, opts);
}

int exp_match_wait(struct exp_matcher *matcher, const struct exp_export *export,
		   const struct sockaddr *peer, const struct exp_opts **opts)
{
	return match(matcher, export, peer, true, opts);
}

bool exp_match_explain(struct exp_matcher *matcher, const struct exp_export *export,
		       const struct sockaddr *peer,
		       void (*each)(void *ctx, const struct exp_client *client,
				    enum exp_verdict verdict, const char *name),
		       void *ctx)
{
	const struct exp_table *table = matcher->table;
	struct exp_peer_name name = { .known = false };
	struct question q = { .matcher = matcher, .export = export, .name = &name };
	bool decided = false;

	if (export->index >= table->n_exports || &table->exports[export->index] != export ||
	    !exp_addr_from_sockaddr(peer, &q.addr))
		return false;
	q.round = new_round(matcher, true);
	for (int kind = EXP_CLIENT_HOST; kind <= EXP_CLIENT_ANY; kind++) {
		for (unsigned i = 0; i < export->n_clients; i++) {
			const struct exp_client *client = &export->clients[i];

			if ((int)client->kind != kind)
				continue;
			const int is = decided ? 0 : client_matches(&q, client);
			const enum exp_verdict verdict = decided  ? EXP_NOT_ASKED
							 : is > 0 ? EXP_MATCH
							 : is < 0 ? EXP_UNDECIDED
								  : EXP_NO_MATCH;

			each(ctx, client, verdict,
			     name.known && !name.failed && name.name[0] ? name.name : NULL);
			decided |= is != 0;
		}
	}
	return true;
}
