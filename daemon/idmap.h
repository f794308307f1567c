/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of users and groups for NFSv4, "user@domain", by libnfsidmap and its idmapd.conf(5).
 * Answers, negative ones included, are kept for some minutes, for a bounded number of names.
 * Thread-safe.
 */
#ifndef RN_DAEMON_IDMAP_H
#define RN_DAEMON_IDMAP_H

#include <stdbool.h>

#include "nfs4/nfs4_server.h"

struct askers;
struct idmap;

/* askers: threads that wait for the library; NULL: each caller waits. file: its configuration, borrowed; NULL: idmapd.conf(5).
 * NULL: no memory. */
struct idmap *idmap_new(struct askers *askers, const char *file);
/* No question may be under way. */
void idmap_free(struct idmap *m);

/* Reads the library's configuration, which may ask the name service for this machine's domain.
 * Without this call the first question does so. 0, or -ENOENT: nothing will be mapped. */
int idmap_start(struct idmap *m);

/* The user that a Kerberos principal stands for, by idmapd.conf(5), and his group. 0; -ENOENT: it is nobody's; -RN_EUNNAMED: not known
 * yet, asked on behalf of the peer. Does not wait. */
int idmap_principal(struct idmap *m, const struct sockaddr *peer, const char *name, size_t len,
		    uint32_t *uid, uint32_t *gid);

/* A user of the name service by name, without libnfsidmap, and his group. As idmap_principal. */
int idmap_user(struct idmap *m, const struct sockaddr *peer, const char *name, uint32_t *uid,
	       uint32_t *gid);

/* Fills in the functions and their context. */
void idmap_view(struct idmap *m, struct nfs4_idmap *out);

#endif
