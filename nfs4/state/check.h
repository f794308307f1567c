/* SPDX-License-Identifier: BSD-2-Clause */
/* From a stateid of the wire to what it names, and whether it may be used so. */
#ifndef RN_NFS4_STATE_CHECK_H
#define RN_NFS4_STATE_CHECK_H

#include "nfs4/state/state.h"

/*
 * The client by whom the operation acts: that of the session, or in minor version 0 the one with
 * that id, whose lease is renewed. It becomes c->client, which holds the reference. NFS4_OK,
 * NFS4ERR_STALE_CLIENTID or NFS4ERR_EXPIRED.
 */
int nfs4_caller(struct nfs4_compound *c, uint64_t clientid, struct nfs4_client **out);

/* *sid, or the current stateid if it stands for that. NULL: it stands for one that there is not. */
const struct nfs4_stateid *nfs4_meant_stateid(const struct nfs4_compound *c,
					      const struct nfs4_stateid *sid);

/*
 * What a stateid names, with a reference: also if it has been closed, was revoked, or its seqid is
 * an old one. Special stateids are NFS4ERR_BAD_STATEID. Renews the lease in minor version 0.
 * NFS4_OK, NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID or NFS4ERR_EXPIRED.
 */
int nfs4_state_lookup(struct nfs4_compound *c, const struct nfs4_stateid *sid,
		      struct nfs4_state **out);

/* May it be used, and is the seqid the current one? kinds: of enum nfs4_state_kind. Takes the
 * client's lock. */
int nfs4_state_check(const struct nfs4_compound *c, struct nfs4_state *st,
		     const struct nfs4_stateid *sid, unsigned kinds);

/* Both, for operations without a sequence number; and it must be of the current filehandle. */
int nfs4_state_get(struct nfs4_compound *c, const struct nfs4_stateid *sid, unsigned kinds,
		   struct nfs4_state **out);

/*
 * As nfs4_state_get, for operations with a sequence number in minor version 0: that is looked at
 * before the stateid's seqid. *replayed: the return value is the old answer's, *out is NULL.
 */
int nfs4_state_get_seq(struct nfs4_compound *c, const struct nfs4_stateid *sid, uint32_t seqid,
		       unsigned kinds, struct nfs4_state **out, bool *replayed);

/* The stateid of st after it has changed: it is the current one from now on. put: and in c->out. */
void nfs4_state_changed(struct nfs4_compound *c, struct nfs4_state *st, struct nfs4_stateid *out);
void nfs4_set_current_stateid(struct nfs4_compound *c, const struct nfs4_stateid *sid);

/*
 * Somebody is in the way. NFS4_OK: not any more, try again; NFS4ERR_DELAY: not for long, and the
 * operation is repeated if it returns that (nfs4_repeat_after); else the status that was given. The
 * conflict's reference stays the caller's. No lock is held.
 */
int nfs4_conflict(struct nfs4_compound *c, const struct vfs_conflict *cf, int otherwise);
#define NFS4_CONFLICT_TRIES 100 /* clients that are put out of one operation's way */

#endif
