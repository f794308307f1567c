/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An asynchronous copy; private to nfs4/data/. nfs4/data/nfs4_copies.c has the table, which decides where a
 * copy goes next, too; copy_work.c runs its pieces, those of another server's file, and the sync after the last one;
 * copies_image.c hands copies to the next program.
 *
 * Ownership follows the phase. A copy that works belongs to the worker that has its request, one
 * that is being told to its callback, others to the table. Whoever has it changes the phase, under
 * the lock of the table. Others may only mark it as cancelled.
 */
#ifndef RN_NFS4_DATA_NFS4_COPY_H
#define RN_NFS4_DATA_NFS4_COPY_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "nfs4/callback/cb_ops.h"
#include "nfs4/compound.h"
#include "nfs4/data/nfs4_copies.h"
#include "nfs4/remote/remote.h"
#include "nfs4/state/stateid_check.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"
#include "vfs/space.h"

struct rn_payload;

/* The beginning and the end of operations that read the file of the saved filehandle and write that
 * of the current one: COPY and CLONE. */
struct nfs4_two_files {
	struct nfs4_stateid from_sid, to_sid;
	struct vfs_copy copy; /* offsets and count are decoded */
	struct nfs4_io_right from, to;
};

/* Checks both filehandles and both stateids, and fills in the rest of t->copy, but done. After
 * NFS4_OK nfs4_two_files_end() follows. */
int nfs4_two_files_begin(struct nfs4_compound *c, struct nfs4_two_files *t);
/* Like nfs4_two_files_begin(), for the destination alone, of a copy from another server. */
int nfs4_destination_begin(struct nfs4_compound *c, struct nfs4_two_files *t);
void nfs4_two_files_end(struct nfs4_two_files *t);

/* The source of a copy that is a file of another server. */
struct nfs4_copy_remote {
	struct nfs4_remote *file; /* NULL: the source is a file of this server */
	/* The data of the next piece, once fetched; then the piece writes them. */
	struct nfs4_remote_read read;
	struct rn_payload *payload; /* NULL: none */
	bool fetched;
	int rc; /* of the fetch */
};

enum nfs4_copy_phase {
	NFS4_COPY_WORKING, /* a piece is under way, or waits for a worker */
	NFS4_COPY_PAUSED,  /* goes on with the next tick */
	NFS4_COPY_TELLING, /* CB_OFFLOAD is under way */
	NFS4_COPY_KEPT,	   /* the client could not be told */
};

/* Result of a copy whose client has answered CB_OFFLOAD, for an OFFLOAD_STATUS that was on its way. */
struct nfs4_copy_told {
	struct nfs4_stateid sid;
	uint64_t clientid; /* 0: none */
	uint32_t uid;
	struct vfs_fh to_fh;
	uint64_t copied;
	uint32_t status;
	uint64_t at; /* nfs4_clients_now() */
};

/* The members are under lock, a leaf but for nfs4_remote_abort(). */
struct nfs4_copies {
	struct nfs4_server *srv;
	pthread_mutex_t lock;
	pthread_cond_t rested; /* no copy works any more */
	LIST_HEAD(, nfs4_copy) list;
	unsigned n;	  /* in the list */
	unsigned working; /* in phase NFS4_COPY_WORKING */
	uint32_t last_id;
	bool resting;  /* pieces end, and none begins: the state is about to be handed over */
	bool stopping; /* and copies end with their pieces */
	uint64_t begun, cancelled, bytes;
	struct nfs4_copy_told told[NFS4_COPIES_MAX]; /* a new one takes the place of the oldest */
	unsigned next_told;
};

struct nfs4_copy {
	struct nfs4_copies *all;
	struct nfs4_client *client; /* a reference */
	struct nfs4_stateid sid;
	uint32_t uid; /* of the caller at the destination, squashed */
	uint32_t export_id;
	struct vfs_fh from_fh, to_fh;
	/* Stateids of COPY with a seqid of 0: other changes of the opens do not matter. */
	struct nfs4_stateid from_sid, to_sid;
	bool delegated;			/* one of them is of a delegation */
	struct nfs4_copy_remote remote; /* file NULL: the source is here */
	uint64_t from_at, to_at, count; /* bytes */
	struct nfs4_cb_referring referring;
	char netid[8]; /* of the connection that COPY came over */

	/* The members below belong to whoever runs a piece: they tell whether written data were lost before the sync. */
	uint64_t expects;	   /* verifier of this run, before its first piece */
	bool expecting;		   /* expects is set */
	bool lost;		   /* perhaps, of what a program before this one has written */
	int errors, errors_before; /* vfs_errors_open() in this run, and in one before; -1: none */

	/* Under the lock of the table. */
	LIST_ENTRY(nfs4_copy) link;
	struct nfs4_copy *next; /* in a list of one thread's */
	enum nfs4_copy_phase phase;
	bool cancelled;	 /* its stateid finds it no more */
	uint64_t copied; /* bytes */
	uint64_t since;	 /* end of the copying, or start of the pause: nfs4_clients_now() */
	bool waits;	 /* since is the start of a pause */
	bool again;	 /* KEPT: the client has not got the callback, as far as is known */
	bool charged;	 /* to the client */

	/* The work; NULL when it has ended. The request and its connection are no transport's. */
	struct rpc_request *req;
	struct rpc_conn conn;
	struct rpc_conn_ops conn_ops;

	bool syncing;		     /* all is copied; the work is to sync the destination */
	struct nfs4_offload offload; /* also has the result */
};

/*
 * Begins to copy count bytes for the caller of c, whose right to that nfs4_two_files_begin() has
 * checked. False: it cannot be done asynchronously now.
 */
struct nfs4_copy_order {
	const struct nfs4_two_files *files;
	uint64_t count;
	uint64_t verifier;		       /* read before anything is copied */
	const struct nfs4_remote_file *remote; /* the source; NULL: a file of this server */
};
bool nfs4_copy_start(struct nfs4_compound *c, const struct nfs4_copy_order *order,
		     struct nfs4_stateid *out);

/* OFFLOAD_CANCEL of the caller's copy to the current filehandle: waits until the piece under way has
 * ended. NFS4_OK or NFS4ERR_BAD_STATEID. */
int nfs4_copy_cancel(struct nfs4_compound *c, const struct nfs4_stateid *sid);

struct nfs4_copy_state {
	uint64_t copied; /* bytes */
	bool ended;
	uint32_t status; /* nfsstat4, if it has ended */
};
/* OFFLOAD_STATUS: NFS4_OK or NFS4ERR_BAD_STATEID. */
int nfs4_copy_look(struct nfs4_compound *c, const struct nfs4_stateid *sid,
		   struct nfs4_copy_state *out);

/* The caller of COPY: each piece is checked and done with its credential and addresses. */
struct nfs4_copy_caller {
	const struct rpc_conn *conn; /* that COPY came over */
	const struct rpc_cred *cred;
	struct rpc_server *server;
	struct rpc_clients *clients; /* that conn's client is one of; NULL: it has none */
};
/* nfs4/data/copy_work.c. Makes what the pieces need, with the caller's identity. 0 or -ENOMEM. */
int nfs4_copy_work_new(struct nfs4_copy *copy, const struct nfs4_copy_caller *caller);
/* Has the next piece run on a worker, after its data have been fetched if they are another server's;
 * nfs4_copy_piece_ended() follows. */
void nfs4_copy_work(struct nfs4_copy *copy);
void nfs4_copy_work_free(struct nfs4_copy *copy); /* idempotent */

/* Makes what is needed to read the file for the copy. 0 or -ENOMEM. */
int nfs4_copy_remote_new(struct nfs4_copy *copy, const struct nfs4_remote_file *file);

/* Status to tell if the source cannot be read, and no further attempt is made. */
int nfs4_copy_given_up(const struct nfs4_copy *copy);

/* Charges the copy to its client. False: no memory. */
bool nfs4_copy_charge(struct nfs4_copy *copy);
/* Frees a copy that is in no list. */
void nfs4_copy_free(struct nfs4_copy *copy);

/* False: the next piece is not to be run. */
bool nfs4_copy_goes_on(struct nfs4_copy *copy);
/* End of a piece of that many bytes, for nfs4/data/copy_work.c. NFS4_OK and no bytes: the source has
 * ended. */
void nfs4_copy_piece_ended(struct nfs4_copy *copy, int status, uint32_t bytes);

#endif
