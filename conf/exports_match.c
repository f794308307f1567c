/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/exports_match.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports_addr.h"
#include "conf/exports_hosts.h"
#include "conf/exports_peers.h"

enum {
	DEFAULT_TTL_MS = 300000,
	DEFAULT_FAIL_TTL_MS = 10000,
	DEFAULT_MAX_PEERS = 4096,
	/* An access list of up to this many addresses is faster walked than looked up. */
	SHORT_LIST = 32,
};

struct exp_matcher {
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
	int err;

	if (!made)
		return -ENOMEM;
	made->table = exp_table_ref(table);
	made->resolver = *resolver;
	if (conf)
		made->conf = *conf;
	if (!made->conf.ttl_ms)
		made->conf.ttl_ms = DEFAULT_TTL_MS;
	if (!made->conf.fail_ttl_ms)
		made->conf.fail_ttl_ms = DEFAULT_FAIL_TTL_MS;
	if (!made->conf.max_peers)
		made->conf.max_peers = DEFAULT_MAX_PEERS;
	err = exp_hosts_new(table, &made->hosts);
	if (!err)
		err = exp_peers_new(table->n_exports, made->conf.max_peers, &made->peers);
	if (err) {
		exp_matcher_free(made);
		return err;
	}
	*matcher = made;
	return 0;
}

void exp_matcher_free(struct exp_matcher *matcher)
{
	if (!matcher)
		return;
	exp_hosts_free(matcher->hosts);
	exp_peers_free(matcher->peers);
	exp_table_unref(matcher->table);
	free(matcher);
}

/* One question on its way. */
struct question {
	struct exp_matcher *matcher;
	const struct exp_export *export;
	struct exp_addr addr;
	struct exp_round round;
	struct exp_peer_name *name;
};

/* 0 when the name has the peer's address, -ENOENT when it has not, or why that is not known. */
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
	int err = resolver->reverse(resolver->arg, &q->addr, name);
	uint64_t now;

	if (!err) {
		name[EXP_NAME_MAX - 1] = '\0';
		normalize_name(name);
		err = confirm_name(q, name);
	}
	now = resolver->now(resolver->arg);
	known->failed = err && err != -ENOENT;
	known->until = now + (known->failed ? q->round.fail_ttl_ms : q->round.ttl_ms);
	if (!err)
		memcpy(known->name, name, sizeof(name));
	else if (!known->failed || !known->known)
		known->name[0] = '\0';
	known->known = true;
}

/* The peer's confirmed name, or "". */
static const char *peer_name(struct question *q)
{
	uint64_t now = q->matcher->resolver.now(q->matcher->resolver.arg);

	if (!q->name->known || now >= q->name->until) {
		if (exp_round_may_ask(&q->round))
			look_up_name(q);
	}
	if (!q->name->known)
		return "";
	if (q->name->failed)
		q->round.uncertain = true;
	exp_round_until(&q->round, q->name->until);
	return q->name->name;
}

static bool in_netgroup(struct question *q, const char *group)
{
	const struct exp_resolver *resolver = &q->matcher->resolver;
	const char *names[3];
	char brief[EXP_NAME_MAX];
	char addr[EXP_ADDR_STRLEN];
	unsigned n = 0;
	int is;

	exp_addr_to_text(&q->addr, addr);
	names[n++] = addr;
	if (*peer_name(q)) {
		names[n++] = q->name->name;
		memcpy(brief, q->name->name, sizeof(brief));
		brief[strcspn(brief, ".")] = '\0';
		names[n++] = brief;
	}
	if (!exp_round_may_ask(&q->round))
		return false;
	is = resolver->in_netgroup(resolver->arg, group, names, n);
	if (is < 0)
		exp_round_failed(&q->round, resolver->now(resolver->arg));
	return is > 0;
}

static bool client_matches(struct question *q, const struct exp_client *client)
{
	switch (client->kind) {
	case EXP_CLIENT_HOST:
		if (client->name)
			return exp_hosts_has(q->matcher->hosts, client->name, &q->addr, &q->round);
		return exp_addr_equal(&client->addr, &q->addr);
	case EXP_CLIENT_NETWORK:
		return exp_addr_within(&q->addr, &client->addr, client->prefix);
	case EXP_CLIENT_WILDCARD:
		return *peer_name(q) &&
		       !fnmatch(client->name, q->name->name, FNM_NOESCAPE | FNM_CASEFOLD);
	case EXP_CLIENT_NETGROUP:
		return in_netgroup(q, client->name);
	case EXP_CLIENT_ANY:
		return true;
	}
	return false;
}

/* The client line in force, by kind and then by order; EXP_CLIENT_NONE. */
static int resolve(struct question *q)
{
	for (int kind = EXP_CLIENT_HOST; kind <= EXP_CLIENT_ANY; kind++) {
		for (unsigned i = 0; i < q->export->n_clients; i++) {
			const struct exp_client *client = &q->export->clients[i];

			if ((int)client->kind == kind && client_matches(q, client))
				return (int)i;
		}
	}
	return EXP_CLIENT_NONE;
}

static bool needs_lookup(const struct exp_client *client)
{
	return client->name != NULL;
}

/* The same without look-ups; false when the answer depends on one. */
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

static int match_cached(struct exp_matcher *matcher, const struct exp_export *export,
			const struct exp_addr *addr)
{
	struct exp_peers_ticket ticket;
	struct question q = { .matcher = matcher, .export = export, .addr = *addr };
	uint64_t now = matcher->resolver.now(matcher->resolver.arg);
	int found;

	exp_peers_begin(matcher->peers, addr, export->index, now, &ticket);
	if (ticket.state == EXP_PEERS_HIT)
		return ticket.client;
	q.name = &ticket.name;
	q.round = (struct exp_round){
		.resolver = &matcher->resolver,
		.ttl_ms = matcher->conf.ttl_ms,
		.fail_ttl_ms = matcher->conf.fail_ttl_ms,
		.start = now,
		.until = UINT64_MAX,
	};
	found = resolve(&q);
	exp_round_until(&q.round,
			matcher->resolver.now(matcher->resolver.arg) +
				(q.round.uncertain ? q.round.fail_ttl_ms : q.round.ttl_ms));
	/* An answer of before beats a guess made while a name server is silent. */
	if (!q.round.uncertain || !ticket.has_client)
		ticket.client = found;
	exp_peers_end(&ticket, q.round.until);
	return ticket.client;
}

const struct exp_opts *exp_match(struct exp_matcher *matcher, const struct exp_export *export,
				 const struct sockaddr *peer)
{
	const struct exp_table *table = matcher->table;
	struct exp_addr addr;
	int client;

	if (export->index >= table->n_exports || &table->exports[export->index] != export)
		return NULL;
	if (!exp_addr_from_sockaddr(peer, &addr))
		return NULL;
	if (export->n_clients > SHORT_LIST || !match_by_address(export, &addr, &client))
		client = match_cached(matcher, export, &addr);
	return client == EXP_CLIENT_NONE ? NULL : &export->clients[client].opts;
}
