/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clients of one export in nfs-ganesha's order, of which the first that fits counts. Here the kind of a client counts
 * first: machines, networks, patterns, netgroups, all; and nobody is excluded by a line.
 */
#ifndef RN_GANESHA_CLIENTS_H
#define RN_GANESHA_CLIENTS_H

#include "tools/ganesha/ganesha_rights.h"

/* In order of precedence, as exports(5) has it. */
enum ganesha_kind { GANESHA_HOST, GANESHA_NETWORK, GANESHA_PATTERN, GANESHA_NETGROUP, GANESHA_ANY };

struct ganesha_client {
	const char *spec; /* as exports(5) has it; borrowed */
	unsigned line;
	enum ganesha_kind kind;
	bool has_address;
	uint8_t address[16]; /* IPv4 is mapped */
	unsigned prefix;     /* bits */
	struct ganesha_rights rights;
	bool never; /* nfs-ganesha never comes to it */
};

struct ganesha_clients {
	struct ganesha_client *client;
	size_t n, room;
};

/* Adds a client at the end. 0; -EINVAL: it is none, which was said; -ENOMEM. */
int ganesha_clients_add(struct ganesha_said *said, struct ganesha_clients *all, const char *spec,
			unsigned line, const struct ganesha_rights *rights);
void ganesha_clients_free(struct ganesha_clients *all);

/*
 * Marks those that are never come to. False: somebody whom nfs-ganesha keeps out would be let in here, or would get other
 * rights, which was said.
 */
bool ganesha_clients_check(struct ganesha_said *said, struct ganesha_clients *all);

#endif
