/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Known facts about peers: for each address its name, and for each export the client line that
 * applies to it.
 *
 * A set-associative cache: an address belongs to one set of a few slots, and a new one takes the
 * place of the least recently used of its set. One thread at a time works on one address; the
 * others use the older answer, or wait when there is none. Internal to the matcher. Locks: one for
 * a group of sets, never held over a look-up.
 */
#ifndef RINGNFS_CONF_EXPORTS_PEERS_H
#define RINGNFS_CONF_EXPORTS_PEERS_H

#include "conf/exports_match.h"

enum {
	EXP_CLIENT_NONE = -1,
	EXP_CLIENT_UNKNOWN =
		-2, /* some line could not be decided, and a wider one may not stand in */
};

struct exp_peer_name {
	bool known;
	bool failed; /* the last look-up failed; name is from the one before it */
	uint64_t until;
	char name[EXP_NAME_MAX]; /* confirmed; "" = none */
};

enum exp_peers_state {
	EXP_PEERS_HIT,	    /* ticket->client is the answer */
	EXP_PEERS_RESOLVE,  /* find it out, then exp_peers_end() */
	EXP_PEERS_UNCACHED, /* find it out; there is no room to keep it */
	EXP_PEERS_BUSY,	    /* another thread finds it out, and there is no older answer */
};

struct exp_peers_ticket {
	enum exp_peers_state state;
	int client;	 /* with RESOLVE: the older answer */
	bool has_client; /* there is an older answer, and it may still be used */
	struct exp_peer_name name;
	/* Private to the cache. */
	struct exp_peers *peers;
	unsigned set;
	void *slot;
	unsigned export_index;
};

struct exp_peers;

int exp_peers_new(unsigned n_exports, unsigned max_peers, struct exp_peers **peers);
void exp_peers_free(struct exp_peers *peers);

/* wait: for another thread that works on the address; without it the state is EXP_PEERS_BUSY. */
void exp_peers_begin(struct exp_peers *peers, const struct exp_addr *addr, unsigned export_index,
		     uint64_t now, bool wait, struct exp_peers_ticket *ticket);
/* Keep ticket->client and ticket->name. The answer is fresh until then, and may be used until
 * old_until while it cannot be renewed. */
void exp_peers_end(struct exp_peers_ticket *ticket, uint64_t until, uint64_t old_until);
/* Ends an attempt without a result: an older answer stays in use. */
void exp_peers_give_up(struct exp_peers_ticket *ticket, uint64_t until);

#endif
