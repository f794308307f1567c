/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of delegated directories that clients are told of by CB_NOTIFY, instead of a recall (RFC 8881
 * section 10.9.2).
 *
 * A delegation has a queue of changes in the order in which they were made. One CB_NOTIFY at a time is under
 * way, with as many as fit; its answer sends the next. New attributes of the directory replace those that
 * have not been sent yet, and may wait for as long as the client has said.
 *
 * The delegation is recalled, and the client told nothing more, when the queue is full, memory is short, or the
 * client does not take a CB_NOTIFY. So a client either learns of all changes in order, or that it must
 * not believe what it has.
 */
#ifndef RN_NFS4_STATE_NFS4_NEWS_H
#define RN_NFS4_STATE_NFS4_NEWS_H

#include "nfs4/callback/cb_notify.h"
#include "nfs4/state/nfs4_deleg.h"

#define NFS4_NEWS_QUEUE 16384u /* bytes of changes that wait for one delegation */
#define NFS4_NEWS_TRIES 5u     /* CB_NOTIFYs with the same changes, a second apart */

struct nfs4_news_list;

struct nfs4_news {
	/* Constant. */
	struct nfs4_notify_attrs attrs;
	uint32_t delay; /* seconds that attributes of the directory may wait */

	/* Under the client's lock. */
	uint8_t *queue; /* changes as they go by wire, NFS4_NEWS_QUEUE bytes; NULL: none yet */
	uint32_t used;
	bool has_dir; /* attributes of the directory that have not been sent */
	struct vfs_attr dir;
	uint64_t dir_at; /* time for them: seconds of nfs4_clients_now(), as again_at */
	bool over;	 /* the client is told nothing more */
	bool calling;	 /* CB_NOTIFY is under way, with a reference of the delegation */
	bool with_dir;	 /* it has attributes of the directory */
	unsigned tries;	 /* of the same changes so far, without success */
	uint64_t again_at;
	uint32_t room;	 /* bytes of changes that the client and the connection take at once */
	uint32_t queued; /* bytes of the call that came from the queue */
	struct nfs4_notify call;

	/* Under the list's lock: it waits for the time, with a reference of the delegation. */
	bool listed;
	struct nfs4_deleg *deleg;
	TAILQ_ENTRY(nfs4_news) link;
};

/* Bits of enum vfs_news, and what is told with them. */
struct nfs4_news_wish {
	unsigned kinds;
	struct nfs4_notify_attrs attrs;
	uint32_t delay; /* seconds */
};

/* For a delegation that has not been given: it will have news. False: no memory. */
bool nfs4_news_new(struct nfs4_deleg *d, const struct nfs4_news_wish *wish);
/* For the end of d. */
void nfs4_news_free(struct nfs4_deleg *d);

/* vfs_deleg_ops.tell */
void nfs4_news_told(struct vfs_deleg *v, const struct vfs_dir_news *news);

/* Sets srv->news, the list of those that wait for a time. 0 or -ENOMEM. */
int nfs4_news_list_new(struct nfs4_server *srv);
/* All clients must have been dropped. NULL is allowed. */
void nfs4_news_list_free(struct nfs4_news_list *list);
/* From nfs4_tick. */
void nfs4_news_tick(struct nfs4_server *srv);

#endif
