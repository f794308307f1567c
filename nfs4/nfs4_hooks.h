/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the COMPOUND loop to the parts above it. The loop does not depend on clients, sessions,
 * owners and pseudo directories. nfs4/nfs4_program.c, which knows all parts, sets struct nfs4_hooks on
 * the server; operations set the other on their COMPOUND.
 */
#ifndef RN_NFS4_NFS4_HOOKS_H
#define RN_NFS4_NFS4_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "nfs4/nfs4_proto.h"

struct nfs4_compound;
struct nfs4_op;
struct nfs4_place;
struct nfs4_stateid;
struct vfs_attr;
struct vfs_fh;
struct xdr_out;

/* Calls set on the server. */
struct nfs4_hooks {
	/* The row of an operation. NULL: the minor version has no operation of that number
	 * (NFS4ERR_OP_ILLEGAL). */
	const struct nfs4_op *(*find_op)(uint32_t opnum, uint32_t minor);
	/* True if the handle is that of a directory of the pseudo file system, and not of vfs/. */
	bool (*is_pseudo_fh)(const struct vfs_fh *fh);
	/* Sets out to that directory. Returns an nfsstat4. */
	int (*pseudo_by_fh)(struct nfs4_compound *c, const struct vfs_fh *fh,
			    struct nfs4_place *out);
	/* Called at the end of a COMPOUND, with its whole result in c->out, before the reply goes.
	 * Puts c->session, c->slot and c->client, any of which may be NULL. */
	void (*leave)(struct nfs4_compound *c);
	/* True if the caller uses the machine credential of its client, and the operations that follow are such as
	 * may be sent with it in the place of any user's (RFC 8881 section 18.35.3). */
	bool (*machine_may)(const struct nfs4_compound *c);
	/* True if the stateid is that of an asynchronous copy of c's client. */
	bool (*is_copy)(struct nfs4_compound *c, const struct nfs4_stateid *sid);
	/* Puts a fattr4 of the attributes in mask (words of a bitmap4), which fh and attr tell. fh may be
	 * NULL if filehandle is not among them. */
	void (*put_attrs)(struct xdr_out *x, const uint32_t mask[NFS4_ATTR_WORDS],
			  const struct vfs_fh *fh, const struct vfs_attr *attr);
};

/* Calls for an operation of minor version 0 that has set c->seq_owner. */
struct nfs4_seq_hooks {
	/*
	 * Called when the operation has ended with that status. c->out holds the result from
	 * c->status_at on, and nothing behind it: the status, then the body. The bytes are stored
	 * for a retransmission, the owner is free for the next operation, and c->seq_owner is NULL.
	 */
	void (*done)(struct nfs4_compound *c, int status);
};

#endif
