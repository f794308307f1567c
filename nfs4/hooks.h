/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the COMPOUND loop to the parts above it. The loop knows no client, session, owner or
 * pseudo directory: nfs4/program.c, which knows all parts, hangs struct nfs4_hooks on the server;
 * operations hang the other two on their COMPOUND.
 */
#ifndef RN_NFS4_HOOKS_H
#define RN_NFS4_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

struct nfs4_compound;
struct nfs4_op;
struct nfs4_place;
struct vfs_fh;

/* Calls that hang on the server. */
struct nfs4_hooks {
	/* NULL: no operation has that number in that minor version (NFS4ERR_OP_ILLEGAL). */
	const struct nfs4_op *(*find_op)(uint32_t opnum, uint32_t minor);
	/* True if the handle is none of vfs/ but of a directory of the pseudo file system. */
	bool (*is_pseudo_fh)(const struct vfs_fh *fh);
	/* out becomes that directory: an nfsstat4. */
	int (*pseudo_by_fh)(struct nfs4_compound *c, const struct vfs_fh *fh,
			    struct nfs4_place *out);
	/* A COMPOUND has ended: its whole result is in c->out, and the reply has not gone. Gives
	 * back c->session, c->slot and c->client, any of which may be NULL. */
	void (*leave)(struct nfs4_compound *c);
};

/* Calls of an operation of minor version 0 that has set c->seq_owner. */
struct nfs4_seq_hooks {
	/*
	 * The operation ends with that status. Its result lies in c->out from c->status_at on:
	 * status, then what it has put; nothing else has been put yet. The bytes are kept as the
	 * answer to a replay, the owner is free for the next operation, c->seq_owner is NULL.
	 */
	void (*done)(struct nfs4_compound *c, int status);
	/* The operation will be run again: its sequence number has not come yet. c->seq_owner is
	 * NULL. */
	void (*undo)(struct nfs4_compound *c);
};

/* Calls for an obstacle that an operation has run into, and that will be gone soon. */
struct nfs4_obstacle_hooks {
	/* NFS4_PENDING: again(c, rc) runs on c's worker when the obstacle is gone, or if it cannot
	 * go (rc is -errno). NFS4_OK: it is gone. NFS4ERR_DELAY: no memory. */
	int (*await)(struct nfs4_compound *c, void *obstacle,
		     int (*again)(struct nfs4_compound *c, int rc));
	void (*put)(void *obstacle); /* gives back the COMPOUND's reference */
};

#endif
