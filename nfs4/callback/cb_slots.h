/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of the back channel, and the connections that calls go over. */
#ifndef RN_NFS4_CALLBACK_CB_SLOTS_H
#define RN_NFS4_CALLBACK_CB_SLOTS_H

#include "nfs4/callback/callback.h"

/* All of these take the lock of the session. */

/* Queues cb for a slot. False: too many wait. */
bool nfs4_cb_queue(struct nfs4_cb *cb);
/* Takes the first callback out that has a slot and a connection now (*rc is 0), or cannot have them
 * any more (*rc is -ENOTCONN). NULL: none. */
struct nfs4_cb *nfs4_cb_next(struct nfs4_session *s, int *rc);
/* Replaces the connection of cb, which is lost. False: there is no other. */
bool nfs4_cb_next_conn(struct nfs4_cb *cb);

/* Fate of a slot whose call has ended: whether its sequence id was used. */
enum nfs4_cb_fate {
	NFS4_CB_UNTOUCHED, /* the client has not accepted the sequence id */
	NFS4_CB_ACCEPTED,
	NFS4_CB_LOST, /* unknown: the slot is not used any more */
};
/* News that the end of a call brings of the path. */
enum nfs4_cb_news {
	NFS4_CB_NO_NEWS,
	NFS4_CB_ANSWERED,
	NFS4_CB_FAILED, /* the path is down */
	NFS4_CB_BROKEN, /* the session's back channel cannot be used any more */
};
void nfs4_cb_give_slot(struct nfs4_cb *cb, enum nfs4_cb_fate fate, enum nfs4_cb_news news);
/* The client accepts slots up to this one. */
void nfs4_cb_limit_slots(struct nfs4_session *s, uint32_t highest);

#endif
