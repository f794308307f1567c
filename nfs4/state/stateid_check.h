/* SPDX-License-Identifier: BSD-2-Clause */
/* Lookup of the state that a stateid names, and the checks of its use. */
#ifndef RN_NFS4_STATE_STATEID_CHECK_H
#define RN_NFS4_STATE_STATEID_CHECK_H

#include <stdbool.h>

#include "nfs4/state/state.h"
#include "nfs4/stateid.h"

struct nfs4_compound;
struct nfs4_object;
struct nfs4_state;

/*
 * Sets c->client, which holds the reference, to the client that the operation acts for: that of the
 * session, or in minor version 0 the one with that id, whose lease is renewed. NFS4_OK,
 * NFS4ERR_STALE_CLIENTID or NFS4ERR_EXPIRED.
 */
int nfs4_caller(struct nfs4_compound *c, uint64_t clientid, struct nfs4_client **out);

/*
 * The state that a stateid names, with a reference, even if it was closed or revoked, or the seqid
 * is old. Special stateids are NFS4ERR_BAD_STATEID. Renews the lease in minor version 0. NFS4_OK,
 * NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID or NFS4ERR_EXPIRED.
 */
int nfs4_state_lookup(struct nfs4_compound *c, const struct nfs4_stateid *sid,
		      struct nfs4_state **out);

/* Checks that the state may be used and that the seqid is current. kinds: bits of enum
 * nfs4_state_kind. Takes the client's lock. */
int nfs4_state_check(const struct nfs4_compound *c, struct nfs4_state *st,
		     const struct nfs4_stateid *sid, unsigned kinds);

/* Lookup and check, for operations without a sequence number. The state must be one of p's file. */
int nfs4_state_get(struct nfs4_compound *c, struct nfs4_object *p, const struct nfs4_stateid *sid,
		   unsigned kinds, struct nfs4_state **out);

/*
 * As nfs4_state_get, for operations with a sequence number in minor version 0, which is checked
 * before the stateid's seqid. *replayed: the return value is that of the stored reply, *out is
 * NULL.
 */
int nfs4_state_get_seq(struct nfs4_compound *c, const struct nfs4_stateid *sid, uint32_t seqid,
		       unsigned kinds, struct nfs4_state **out, bool *replayed);

/*
 * True if the caller may end or change what that client has opened, or has been delegated. Minor version 0 has
 * no session whose id identifies the client. So there it is for the user who opened the file, of whom opener is the
 * squashed uid (or NFS4_OPENER_*), and for the client itself.
 */
bool nfs4_may_end(const struct nfs4_compound *c, const struct nfs4_client *cl, uint64_t opener);

/* The stateid of a state that is in the tables. Under the client's lock. */
void nfs4_state_stateid(const struct nfs4_state *st, struct nfs4_stateid *out);
/* Gives the new stateid of st after a change and makes it the current stateid. */
void nfs4_state_changed(struct nfs4_compound *c, struct nfs4_state *st, struct nfs4_stateid *out);
void nfs4_set_current_stateid(struct nfs4_compound *c, const struct nfs4_stateid *sid);

/*
 * Tries to remove a conflicting client, and waits until that is on disk. NFS4_YIELDED: it is gone, or has begun to
 * go and others may be in the way. NFS4ERR_DELAY: the caller's own client has gone meanwhile. Else the status otherwise. What is
 * left of the conflict's reference stays the caller's. No lock is held.
 */
int nfs4_conflict(struct nfs4_compound *c, struct vfs_conflict *cf, int otherwise);

/*
 * Checks of the stateid of operations on a file's data: READ, WRITE, SETATTR of the size, ALLOCATE,
 * DEALLOCATE, SEEK, IO_ADVISE, COPY, CLONE (RFC 7530 sections 9.1.4.5 and 9.1.6, RFC 8881 sections
 * 8.2.3 to 8.2.5 and 9.1.2). Byte-range locks are advisory.
 */

enum nfs4_io_access { NFS4_IO_READ = 1, NFS4_IO_WRITE = 2 };

struct nfs4_io_right {
	/* For vfs_io.opened: true if the caller's permission was checked at the open. False for
	 * special stateids and those of other users: permission is then checked as for NFSv3. */
	bool opened;
	struct nfs4_state *state; /* a reference, or NULL */
	/* Place that stands in for the state's client until the end; or NULL. */
	struct nfs4_object *lent;
	const void *own; /* its client before */
};

/*
 * Checks whether sid, which may be the current stateid, allows this access to the current
 * filehandle, a regular file (NFS4_NEED_REG and _FILE have been checked). NFS4_OK, or
 * NFS4ERR_BAD_STATEID, OLD_STATEID, STALE_STATEID (minor version 0), EXPIRED, ADMIN_REVOKED,
 * OPENMODE, LOCKED (the share of another open denies the access), GRACE, DELAY. Renews the lease in
 * minor version 0. After NFS4_OK nfs4_io_end() follows when the operation has ended, on any thread.
 */
int nfs4_io_begin(struct nfs4_compound *c, const struct nfs4_stateid *sid, unsigned access,
		  struct nfs4_io_right *r);
/* The same for the file of either filehandle. The current stateid is the same for both. */
int nfs4_io_begin_at(struct nfs4_compound *c, struct nfs4_object *p, const struct nfs4_stateid *sid,
		     unsigned access, struct nfs4_io_right *r);
/* Idempotent; a zeroed right has ended already. */
void nfs4_io_end(struct nfs4_io_right *r);

/* Status of an operation on data whose vfs/ call returned rc, 0 or -errno. The loop replaces it if the
 * operation may not return it (nfs4_status_for). */
int nfs4_data_status(const struct nfs4_compound *c, int rc);

#endif
