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

#include "lib/log.h"
#include "nfs4/callback/cb_ops.h"
#include "nfs4/state/state.h"
#include "vfs/deleg.h"

struct nfs4_query;

struct nfs4_deleg {
	struct nfs4_state st;
	struct vfs_deleg vfs;
	struct nfs4_dir_notify
		*dir_notify; /* changes that the client is told of; NULL: none ever */
	/* Squashed uid whose permission to read was checked when the file was opened; READs of
	 * others are checked. */
	uint64_t opener;
	uint32_t export_id;
	/* The request whose reply has given it; callbacks about it refer to that. Constant. */
	struct nfs4_cb_referring giver;

	/* Under the client's lock. */
	bool given;	      /* vfs/ has given it, and it has not ended there */
	bool recalled;	      /* somebody waits for it */
	bool queued;	      /* in nfs4_recall_queue.all */
	bool due;	      /* in nfs4_recall_queue.due */
	uint64_t recalled_at; /* seconds of nfs4_clients_now(), as the next */
	uint64_t call_at;     /* the earliest time of the next CB_RECALL */
	TAILQ_ENTRY(nfs4_deleg) recall_link, due_link;
	struct nfs4_recall call; /* CB_RECALL under way holds a reference of the state */
	bool ordered;		 /* in nfs4_deleg_account.order */
	bool recalling;		 /* in nfs4_deleg_holders.recalling */
	TAILQ_ENTRY(nfs4_deleg) order_link;

	_Atomic bool used; /* by the client, since it was last looked at */
	uint8_t type;	   /* bit NFS4_ANY_*; constant */

	/* For CB_GETATTR to the holder of a write delegation (nfs4/attr/held_attrs.c); under the client's lock. */
	uint64_t change; /* attribute of the file when it was given */
	bool modified;	 /* the holder has said that it has changed the file */
	/* nfs4/attr/held_attrs.c, under its lock. */
	struct nfs4_query *query, *next_query; /* under way; to be sent after it */
	bool silent;			       /* a query was not answered: none is sent any more */

	uint8_t fh_len;
	uint8_t fh[];
};

/* Clients with recalls (srv->recalls). */
struct nfs4_recall_list {
	pthread_mutex_t lock; /* a leaf; taken under the locks of clients */
	TAILQ_HEAD(, nfs4_recall_queue) clients;
	uint32_t round;
	struct rn_log_limit revoked; /* one host may have many clients */
};

/* Clients that have delegations. */
struct nfs4_deleg_holders {
	pthread_mutex_t lock; /* a leaf; taken under the locks of clients */
	TAILQ_HEAD(, nfs4_deleg_account) clients;
	uint32_t max, max_of_client; /* the bounds, which tests lower */
	_Atomic uint64_t given;	     /* delegations; those that were revoked are not counted */
	_Atomic uint64_t recalling;  /* of these, those that were recalled */
	_Atomic bool crowded;	     /* a client is near its own bound, or was refused memory */
	struct rn_log_limit told;    /* of messages about clients that are asked */
};

/* Changes of a delegated directory that the client is told of (nfs4/deleg/dir_deleg.c). */
#define NFS4_DIR_NOTIFY_QUEUE 16384u /* bytes of changes that wait for one delegation */

struct nfs4_dir_notify {
	/* Constant. */
	struct nfs4_notify_attrs attrs;
	uint32_t delay; /* seconds that attributes of the directory may wait */

	/* Under the client's lock. */
	uint8_t *
		queue; /* changes as they go by wire, NFS4_DIR_NOTIFY_QUEUE bytes; NULL: none yet */
	uint32_t used;
	bool has_dir; /* attributes of the directory that have not been sent */
	struct vfs_attr dir;
	uint64_t dir_at; /* time for them: seconds of nfs4_clients_now(), as again_at */
	bool over;	 /* the client is told nothing more */
	bool calling;	 /* CB_NOTIFY is under way, with a reference of the delegation */
	bool with_dir;	 /* the notification has attributes of the directory */
	unsigned tries;	 /* of the same changes so far, without success */
	uint64_t again_at;
	uint32_t room;	 /* bytes of changes that the client and the connection take at once */
	uint32_t queued; /* bytes of the call that came from the queue */
	struct nfs4_notify call;

	/* Under the list's lock: it waits for the time, with a reference of the delegation. */
	bool listed;
	struct nfs4_deleg *deleg;
	TAILQ_ENTRY(nfs4_dir_notify) link;
};

static inline struct nfs4_deleg *nfs4_as_deleg(struct nfs4_state *st)
{
	return rn_container_of(st, struct nfs4_deleg, st);
}

/* Type of the delegation of the file that the client has; 0: it has none. */
unsigned nfs4_deleg_type(struct nfs4_client *cl, const struct vfs_file *f);

/* Ends it: removes it from the tables and from vfs/. Nothing for one that has gone. The caller holds
 * a reference and no lock. */
void nfs4_deleg_end(struct nfs4_deleg *d);

/* Takes it from the client: its stateid is answered with status from now on, and those who wait for
 * it go on. False: it has gone, or was revoked before. Locks as above. */
bool nfs4_deleg_revoke(struct nfs4_deleg *d, int status);

/* The client has used the delegation. Any thread. */
void nfs4_deleg_used(struct nfs4_deleg *d);

/* For holdings.c and state_object.c. */
void nfs4_recalls_init(struct nfs4_recall_queue *rs);
void nfs4_deleg_account_init(struct nfs4_deleg_account *a);
void nfs4_dir_notify_free(struct nfs4_deleg *d);

/* Count a delegation that was given, and one that is being recalled; and queue it for its CB_RECALL. Under the
 * client's lock. */
void nfs4_deleg_count(struct nfs4_deleg *d);
void nfs4_deleg_count_recalled(struct nfs4_deleg *d);
void nfs4_recall_enqueue(struct nfs4_deleg *d);

#endif
