/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait for name services, so that no worker does. Questions of one network (an IPv4
 * /24, an IPv6 /64) take turns with those of other networks, and use a quarter of the threads at
 * most: a silent reverse zone delays no other network. Threads are started on demand. Thread-safe.
 */
#ifndef RN_DAEMON_ASKERS_H
#define RN_DAEMON_ASKERS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "lib/log.h"

enum asker_kind {
	ASK_HOSTS,  /* names of hosts and netgroups, for exports(5) */
	ASK_GROUPS, /* users' groups */
	ASK_OWNERS, /* names of users and groups; they take turns (daemon/idmap.c) */
	ASK_KINDS
};

struct askers;

struct askers_config {
	/* Called on an asker's thread after each answer; may be NULL. */
	void (*answered)(void *ctx);
	void *ctx;
	const struct rn_logger *log;
};

struct askers *askers_new(const struct askers_config *cfg); /* NULL: no memory */
/* Has run(job, false) called by a thread that may wait, on behalf of the peer; NULL: the server
 * itself. False: too many of its network wait already; run is not called. */
bool askers_ask(struct askers *a, enum asker_kind kind, const struct sockaddr *peer,
		void (*run)(void *job, bool cancelled), void *job);
/* Takes no more questions; waiting ones are run as cancelled. */
void askers_close(struct askers *a);
/* Waits some seconds at most until no thread asks any more. True: all memory is freed. False: a
 * name service is still silent, and its threads live on with their memory. */
bool askers_free(struct askers *a);

#endif
