/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations that clients have: recalls, and what holders of directories are told. */
#ifndef RN_NFS4_DELEG_DELEGATIONS_H
#define RN_NFS4_DELEG_DELEGATIONS_H

#include "nfs4/callback/cb_ops.h"
#include "nfs4/compound.h"
#include "nfs4/state/nfs4_deleg.h"

struct nfs4_dir_notify_list;
struct nfs4_server;

/*
 * Recalls of delegations. The client is told by CB_RECALL, again and again until it says that it
 * knows, and has a lease's time to return the delegation. Then it is revoked (RFC 8881 section
 * 10.4.5). The state of a client whose own lease has run out goes at once.
 *
 * Nobody waits: recall() of vfs/deleg.h queues the delegation and sends what can be sent, the end of
 * each CB_RECALL sends the next, and a clock of seconds does the rest. A client is sent as many at a
 * time as its session may have slots.
 */

/* For struct vfs_deleg. */
extern const struct vfs_deleg_ops nfs4_recall_ops;

/* Sets srv->recalls, the list of clients with recalls. 0 or -ENOMEM. */
int nfs4_recalls_new(struct nfs4_server *srv);
/* All clients must have been dropped. NULL is allowed. */
void nfs4_recalls_free(struct nfs4_recall_list *list);
/* From nfs4_tick. */
void nfs4_recalls_tick(struct nfs4_server *srv);

/* Recalls d by the server's own decision, unless it is recalled already or has gone. vfs/ does not know, and
 * calls recall() when somebody waits. The caller holds a reference and no lock. */
void nfs4_recall_own(struct nfs4_deleg *d);

/* Delegations in the image of the state (nfs4/deleg/deleg_image.c). load: takes a record of kind NFS4_IMAGE_DELEG; 0, -EPROTO, -ENOMEM. */
void nfs4_delegs_save(struct nfs4_client *cl, struct image_writer *w);
int nfs4_deleg_load(struct nfs4_client *cl, struct image_at *at);

/* Recalls delegations of exports that are drained, a part of them at each call; about once a second. */
void nfs4_drain_tick(struct nfs4_server *srv);

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
#define NFS4_DIR_NOTIFY_TRIES 5u /* CB_NOTIFYs with the same changes, a second apart */

/* Bits of enum vfs_notification, and what is told with them. */
struct nfs4_dir_notify_wish {
	unsigned kinds;
	struct nfs4_notify_attrs attrs;
	uint32_t delay; /* seconds */
};

/* For a delegation that has not been given: it will be told of changes. False: no memory. */
bool nfs4_dir_notify_new(struct nfs4_deleg *d, const struct nfs4_dir_notify_wish *wish);

/* Changes of the program before, behind nfs4_dir_notify_new(): as they go by wire, and how much of them goes at once. False: no memory. */
bool nfs4_dir_notify_resume(struct nfs4_deleg *d, const uint8_t *changes, uint32_t len,
			    uint32_t room);
/* They are told, with the directory's attributes after so many seconds (NULL: none). vfs/ has given the delegation. */
void nfs4_dir_notify_go(struct nfs4_deleg *d, const struct vfs_attr *dir, uint64_t seconds);

/* vfs_deleg_ops.tell */
void nfs4_dir_notify_told(struct vfs_deleg *v, const struct vfs_dir_notification *notification);

/* Sets srv->dir_notifies, the list of those that wait for a time. 0 or -ENOMEM. */
int nfs4_dir_notify_list_new(struct nfs4_server *srv);
/* All clients must have been dropped. NULL is allowed. */
void nfs4_dir_notify_list_free(struct nfs4_dir_notify_list *list);
/* From nfs4_tick. */
void nfs4_dir_notify_tick(struct nfs4_server *srv);

/* Puts a notify4 for a change of an entry. The attributes are those of notification->attr, none if that is NULL. */
void nfs4_put_entry_notification(const struct nfs4_notify_attrs *attrs,
				 const struct vfs_dir_notification *notification,
				 struct xdr_out *x);
/* Puts a notify4 of the directory's own attributes. */
void nfs4_put_dir_notification(const struct nfs4_notify_attrs *attrs, const struct vfs_attr *dir,
			       struct xdr_out *x);
/* Bytes of the first of the changes at p, as put above. */
uint32_t nfs4_dir_notify_size(const uint8_t *p);

#endif
