/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open-owners and lock-owners (RFC 7530 section 9.1.5, RFC 8881 section 8.6). In minor version 0
 * their sequence numbers order what changes locks, and the last answer is kept for a replay
 * (RFC 7530 sections 9.1.7 and 9.1.8).
 */
#ifndef RN_NFS4_STATE_OWNER_H
#define RN_NFS4_STATE_OWNER_H

struct nfs4_compound;

/*
 * For the compound's loop: an operation that has set c->seq_owner ends with that status. Its result
 * lies in c->out from c->status_at on (status, then what it has put): the bytes are kept as the
 * answer to a replay, the owner is free for the next operation, c->seq_owner is NULL. To be called
 * before anything else is put into c->out. Does nothing if c->seq_owner is NULL.
 */
void nfs4_owner_done(struct nfs4_compound *c, int status);

/* The same for an operation that is to be called again: its sequence number has not come yet. */
void nfs4_owner_undo(struct nfs4_compound *c);

#endif
