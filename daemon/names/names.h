/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait for name services, so that no worker does. Questions of one network (an IPv4
 * /24, an IPv6 /64) take turns with those of other networks, and use a quarter of the threads at
 * most: a silent reverse zone delays no other network. When too many wait, those of the network with most are cancelled.
 * Threads are started on demand. Thread-safe.
 */
#ifndef RN_DAEMON_NAMES_NAMES_H
#define RN_DAEMON_NAMES_NAMES_H

#include <stdbool.h>
#include <sys/socket.h>

#include "lib/log.h"
#include "nfs4/nfs4_server.h"
#include "rpc/program.h"
#include "vfs/types.h"

enum asker_kind {
	ASK_HOSTS,  /* names of hosts and netgroups, for exports(5) */
	ASK_GROUPS, /* users' groups */
	ASK_OWNERS, /* names of users and groups; they take turns (daemon/names/idmap.c) */
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
 * itself. False: too many of its network wait already; run is not called. run(job, true): it made room for another,
 * or the server stops. */
bool askers_ask(struct askers *a, enum asker_kind kind, const struct sockaddr *peer,
		void (*run)(void *job, bool cancelled), void *job);
/* Takes no more questions; waiting ones are run as cancelled. */
void askers_close(struct askers *a);
/* Waits some seconds at most until no thread asks any more. True: all memory is freed. False: a
 * name service is still silent, and its threads live on with their memory. */
bool askers_free(struct askers *a);

/*
 * Names of users and groups for NFSv4, "user@domain", by libnfsidmap and its idmapd.conf(5).
 * Answers, negative ones included, are kept for some minutes, for a bounded number of names.
 * Thread-safe.
 */

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

/*
 * Supplementary groups by the server's own databases (the setting nfs3.manage_gids): AUTH_SYS
 * carries only 16. Answers are kept for five minutes, for a bounded number of users; past that they
 * are used for an hour more, while a new answer is fetched. Thread-safe; no caller waits.
 */

struct askers;
struct groups;

struct groups *groups_new(struct askers *askers); /* NULL: no memory */
/* No question may be under way. */
void groups_free(struct groups *g);
/* Replaces cred's groups (and only those) by the server's groups of cred->uid; an unknown user has
 * none. -RN_EUNNAMED: not known yet, asked on behalf of the peer. ctx is a struct groups. */
int groups_lookup(void *ctx, const struct sockaddr *peer, struct vfs_cred *cred);

/* From a Kerberos principal or a certificate to the user that a call acts for: rpc_server.identify. */

struct idmap;
struct tls_users;

struct principals {
	struct idmap *idmap;	 /* NULL: there is no Kerberos */
	struct tls_users *users; /* NULL: certificates stand for no users */
};

/*
 * Fills in uid and gid of the call's credential; ctx is a struct principals. A principal that idmapd.conf(5) maps to nobody
 * gets the id -1, which every export makes anonymous, as in the kernel's server. Groups are looked up later, by
 * struct nfs_groups. Waits for the name service. A call that has waited as long as it may has an unknown
 * user, where its program can tell the client to come again.
 */
enum rpc_run principals_identify(void *ctx, struct rpc_request *req);

#endif
