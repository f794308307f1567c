/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delegations of files (RFC 8881 section 10.4) as states of a client. A client has at most one of a
 * file. nfs4/deleg/ gives them, vfs/deleg.h tells when one is in somebody's way.
 *
 * Life. Made, given by vfs/, and only then added to the tables, from which moment the client may be
 * told of it. A recall that comes in between keeps it out of them. It ends by DELEGRETURN, with the
 * client's state, or is revoked: vfs/ has it back then, and its stateid is answered with the reason
 * until the client frees it.
 *
 * vfs_deleg_end() waits for a recall() under way, which takes the client's lock. So nobody calls it
 * with that lock; the thread that clears `given` under the lock calls it.
 */
#ifndef RN_NFS4_STATE_NFS4_DELEG_H
#define RN_NFS4_STATE_NFS4_DELEG_H

#include "nfs4/callback/cb_recall.h"
#include "nfs4/state/state.h"
#include "vfs/deleg.h"

struct nfs4_query;
struct nfs4_news;

struct nfs4_deleg {
	struct nfs4_state st;
	struct vfs_deleg vfs;
	struct nfs4_news *news; /* changes that the client is told of; NULL: none ever */
	/* Squashed uid whose permission to read was checked when the file was opened; READs of
	 * others are checked. */
	uint64_t opener;
	uint32_t export_id;
	/* The request whose reply has given it; callbacks about it refer to that. Constant. */
	struct nfs4_cb_referring giver;

	/* Under the client's lock. */
	bool given;	      /* vfs/ has given it, and it has not ended there */
	bool recalled;	      /* somebody waits for it */
	bool queued;	      /* in nfs4_recalls.all */
	bool due;	      /* in nfs4_recalls.due */
	uint64_t recalled_at; /* seconds of nfs4_clients_now(), as the next */
	uint64_t call_at;     /* the earliest time of the next CB_RECALL */
	TAILQ_ENTRY(nfs4_deleg) recall_link, due_link;
	struct nfs4_recall call; /* CB_RECALL under way holds a reference of the state */
	bool ordered;		 /* in nfs4_deleg_account.order */
	bool recalling;		 /* in nfs4_deleg_holders.recalling */
	TAILQ_ENTRY(nfs4_deleg) order_link;

	_Atomic bool used; /* by the client, since it was last looked at */
	uint8_t type;	   /* bit NFS4_ANY_*; constant */

	/* For CB_GETATTR to the holder of a write delegation (nfs4/deleg/held_attrs.h); under the client's lock. */
	uint64_t change; /* attribute of the file when it was given */
	bool modified;	 /* the holder has said that it has changed the file */
	/* nfs4/deleg/held_attrs.c, under its lock. */
	struct nfs4_query *query, *next_query; /* under way; to be sent after it */
	bool silent;			       /* a query was not answered: none is sent any more */

	uint8_t fh_len;
	uint8_t fh[];
};

static inline struct nfs4_deleg *nfs4_as_deleg(struct nfs4_state *st)
{
	return rn_container_of(st, struct nfs4_deleg, st);
}

/* Makes a delegation in no table, with a reference for the caller; type and ops of d->vfs are set.
 * NULL: no memory. */
struct nfs4_deleg *nfs4_deleg_new(struct nfs4_client *cl, struct vfs_file *f,
				  const struct nfs4_place *p, enum vfs_deleg_type type);

/* Type of the delegation of the file that the client has; 0: it has none. */
unsigned nfs4_deleg_type(struct nfs4_client *cl, const struct vfs_file *f);

/* Adds one that vfs/ has given to the tables, and gives its stateid. Otherwise it has ended towards
 * vfs/: -RN_ENOTNOW: it was recalled meanwhile, or the client has another of the file; -ESTALE: the
 * client's state is being dropped; -ENOMEM, -ENOSPC. */
int nfs4_deleg_add(struct nfs4_deleg *d, struct nfs4_stateid *sid);

/* Ends it: removes it from the tables and from vfs/. Nothing for one that has gone. The caller holds
 * a reference and no lock. */
void nfs4_deleg_end(struct nfs4_deleg *d);

/* Takes it from the client: its stateid is answered with status from now on, and those who wait for
 * it go on. False: it has gone, or was revoked before. Locks as above. */
bool nfs4_deleg_revoke(struct nfs4_deleg *d, int status);

#endif
