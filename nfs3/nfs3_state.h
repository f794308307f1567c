/* SPDX-License-Identifier: BSD-2-Clause */
/* State shared by the procedures of all programs: settings, the list of mounts, and the resolution of MOUNT's paths. */
#ifndef RN_NFS3_NFS3_STATE_H
#define RN_NFS3_NFS3_STATE_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "lib/log.h"
#include "nfs3/nfs3_proto.h"
#include "nfs3/nfs3_server.h"
#include "rpc/request.h"

/*
 * The list of mounts for MOUNT's DUMP: clients and the directories they have asked for. It is
 * information for administrators, nothing depends on it, so it is kept in memory and bounded: the
 * oldest row is dropped when it is full, or that of a client which has too many. A client is an address without its port. Thread-safe.
 */
#define MNT_LIST_ROWS 4096u
#define MNT_HOST_ROWS 256u /* of one client, so that it does not push others out */
#define MNT_HOST_SIZE INET6_ADDRSTRLEN

struct mnt_row {
	TAILQ_ENTRY(mnt_row) link;
	char host[MNT_HOST_SIZE];
	char path[]; /* without trailing slashes */
};

struct mnt_list {
	pthread_mutex_t lock;	    /* a leaf: no other lock is taken under it */
	TAILQ_HEAD(, mnt_row) rows; /* oldest first */
	unsigned nrows;
};

void mnt_list_init(struct mnt_list *l);
void mnt_list_fini(struct mnt_list *l);

/* path is a NUL-terminated string of at most MNT_PATH_MAX bytes. A row that exists becomes the
 * youngest. */
void mnt_list_add(struct mnt_list *l, const struct sockaddr *client, const char *path);
void mnt_list_remove(struct mnt_list *l, const struct sockaddr *client, const char *path);
void mnt_list_remove_all(struct mnt_list *l, const struct sockaddr *client);

/* Calls each for every row, oldest first, under the lock; false stops. */
void mnt_list_walk(struct mnt_list *l, bool (*each)(void *arg, const struct mnt_row *row),
		   void *arg);

struct nfs3_server {
	struct nfs3_config cfg;
	struct mnt_list mounts; /* rows for DUMP, added by MNT */
	struct nlm_owners *nlm;
	struct nlm_grants *grants;
	struct rn_log_hosts told; /* limit of messages that clients bring about */
};

/* MOUNT's argument. */
struct mnt_path {
	/* true length of the path; one longer than MNT_PATH_MAX has no bytes here */
	uint32_t len;
	char bytes[MNT_PATH_MAX + 1]; /* NUL-terminated */
};

/*
 * Finds the node for a path that a client wants to mount: the export with the longest matching
 * path, then the rest of the path name by name, as the caller, following symbolic links within the
 * exports. 0: *node has a reference, and so has ctx->exp; it is a directory, or the exported object
 * itself. -errno: both are NULL.
 */
int mnt_resolve(struct rpc_request *req, const struct mnt_path *path, struct vfs_ctx *ctx,
		struct vfs_node **node);

#endif
