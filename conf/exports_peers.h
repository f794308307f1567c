/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Known facts about peers: for each address its name, and for each export the client line that
 * applies to it.
 *
 * A set-associative cache: an address belongs to one set of a few slots, and a new one takes the
 * place of the least recently used of its set. One thread at a time works on one address; the
 * others use the older answer, or wait if there is none. Internal to the matcher. Each lock guards
 * a group of sets and is never held during a look-up. Times are milliseconds of the matcher's
 * clock.
 */
#ifndef RINGNFS_CONF_EXPORTS_PEERS_H
#define RINGNFS_CONF_EXPORTS_PEERS_H

#include "conf/exports_match.h"

enum {
	EXP_CLIENT_NONE = -1,
	EXP_CLIENT_UNKNOWN =
		-2, /* some line could not be decided, and a wider one must not be used instead */
};

struct exp_peer_name {
	bool known;
	bool failed; /* the last look-up failed; name is from the one before it */
	uint64_t until;
	char name[EXP_NAME_MAX]; /* confirmed by a look-up of its addresses; "" if there is none */
};

enum exp_peers_state {
	EXP_PEERS_HIT, /* ticket->client is the answer */
	/* The caller finds the answer, then calls exp_peers_end() or _give_up() */
	EXP_PEERS_RESOLVE,
	EXP_PEERS_UNCACHED, /* the caller finds the answer, which the cache has no room to keep */
	EXP_PEERS_BUSY,	    /* another thread is finding the answer, and there is no older one */
};

struct exp_peers_ticket {
	enum exp_peers_state state;
	/* Index of the client line, or EXP_CLIENT_*; with RESOLVE the older answer */
	int client;
	bool has_client; /* true if there is an older answer that may still be used */
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

/* Fills the ticket. If another thread works on the address and there is no older answer: waits for
 * that thread if wait is true, else the state is EXP_PEERS_BUSY. */
void exp_peers_begin(struct exp_peers *peers, const struct exp_addr *addr, unsigned export_index,
		     uint64_t now, bool wait, struct exp_peers_ticket *ticket);
/* Keeps ticket->client and ticket->name. The answer is fresh before `until`, and may be used before
 * old_until while it cannot be renewed. */
void exp_peers_end(struct exp_peers_ticket *ticket, uint64_t until, uint64_t old_until);
/* Ends an attempt without a result. The older answer, or "unknown" if there is none, stays in use
 * before `until`; then the next call tries again. */
void exp_peers_give_up(struct exp_peers_ticket *ticket, uint64_t until);

#endif
