/* SPDX-License-Identifier: BSD-2-Clause */
/* The source of a copy that is a file of another server; private to nfs4/data/. */
#ifndef RN_NFS4_DATA_COPY_REMOTE_H
#define RN_NFS4_DATA_COPY_REMOTE_H

#include "nfs4/remote/remote.h"

struct nfs4_compound;
struct nfs4_copy;
struct rn_payload;
struct rpc_request;

struct nfs4_copy_remote {
	struct nfs4_remote *file; /* NULL: the source is a file of this server */
	/* The data of the next piece, once fetched; then the piece writes them. */
	struct nfs4_remote_read read;
	struct rn_payload *payload; /* NULL: none */
	bool fetched;
	int rc; /* of the fetch */
};

/* Makes what is needed to read the file for the copy; c is the COPY. 0 or -ENOMEM. */
int nfs4_copy_remote_new(struct nfs4_copy *copy, const struct nfs4_compound *c,
			 const struct nfs4_remote_file *file);
void nfs4_copy_remote_free(struct nfs4_copy *copy); /* idempotent */

/* Fetches the next piece's data; nfs4_copy_work() follows, on any thread. */
void nfs4_copy_fetch(struct nfs4_copy *copy);
/* Writes them: the piece, on a worker. */
void nfs4_copy_store(struct rpc_request *req);

/* Status to tell if the source cannot be read, and no further attempt is made. */
int nfs4_copy_given_up(const struct nfs4_copy *copy);

#endif
