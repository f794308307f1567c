/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait for name services, so that no worker does. Questions of one network (an IPv4
 * /24, an IPv6 /64) take turns with those of others, and have a quarter of the threads at most: a
 * reverse zone that is silent delays nobody else. Threads are started when they are needed.
 * Thread-safe.
 */
#ifndef RN_DAEMON_ASKERS_H
#define RN_DAEMON_ASKERS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "lib/log.h"

enum asker_kind {
	ASK_HOSTS,  /* names of hosts and netgroups, for exports(5) */
	ASK_GROUPS, /* users' groups */
	ASK_OWNERS, /* names of users and groups: by one thread, the library knows of no more */
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
/* Has run(job, false) called by a thread that may wait; for the peer's sake, NULL: the server's
 * own. False: too many wait already; run is not called. */
bool askers_ask(struct askers *a, enum asker_kind kind, const struct sockaddr *peer,
		void (*run)(void *job, bool cancelled), void *job);
/* Takes no more questions; those that wait are run as cancelled. */
void askers_close(struct askers *a);
/* Waits until no thread asks any more, some seconds at most. False: a name service is still silent,
 * and its threads live on with what they use. Else all is freed. */
bool askers_free(struct askers *a);

#endif
