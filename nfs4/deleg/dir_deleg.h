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
#ifndef RN_NFS4_DELEG_DIR_DELEG_H
#define RN_NFS4_DELEG_DIR_DELEG_H

#include "nfs4/callback/cb_notify.h"
#include "nfs4/state/nfs4_deleg.h"

#define NFS4_NEWS_TRIES 5u /* CB_NOTIFYs with the same changes, a second apart */

struct nfs4_news_list;

/* Bits of enum vfs_news, and what is told with them. */
struct nfs4_news_wish {
	unsigned kinds;
	struct nfs4_notify_attrs attrs;
	uint32_t delay; /* seconds */
};

/* For a delegation that has not been given: it will have news. False: no memory. */
bool nfs4_news_new(struct nfs4_deleg *d, const struct nfs4_news_wish *wish);

/* vfs_deleg_ops.tell */
void nfs4_news_told(struct vfs_deleg *v, const struct vfs_dir_news *news);

/* Sets srv->news, the list of those that wait for a time. 0 or -ENOMEM. */
int nfs4_news_list_new(struct nfs4_server *srv);
/* All clients must have been dropped. NULL is allowed. */
void nfs4_news_list_free(struct nfs4_news_list *list);
/* From nfs4_tick. */
void nfs4_news_tick(struct nfs4_server *srv);

#endif
