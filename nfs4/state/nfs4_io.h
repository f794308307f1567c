/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of the stateid of operations on a file's data: READ, WRITE, SETATTR of the size, ALLOCATE,
 * DEALLOCATE, SEEK, IO_ADVISE, COPY, CLONE (RFC 7530 sections 9.1.4.5 and 9.1.6, RFC 8881 sections
 * 8.2.3 to 8.2.5 and 9.1.2). Byte-range locks are advisory.
 */
#ifndef RN_NFS4_STATE_NFS4_IO_H
#define RN_NFS4_STATE_NFS4_IO_H

#include <stdbool.h>

#include "nfs4/stateid.h"

struct nfs4_compound;
struct nfs4_place;
struct nfs4_state;

enum nfs4_io_access { NFS4_IO_READ = 1, NFS4_IO_WRITE = 2 };

struct nfs4_io_right {
	/* For vfs_io.opened: true if the caller's permission was checked at the open. False for
	 * special stateids and those of other users: permission is then checked as for NFSv3. */
	bool opened;
	struct nfs4_state *state; /* a reference, or NULL */
	/* Place that stands in for the state's client until the end; or NULL. */
	struct nfs4_place *lent;
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
int nfs4_io_begin_at(struct nfs4_compound *c, struct nfs4_place *p, const struct nfs4_stateid *sid,
		     unsigned access, struct nfs4_io_right *r);
/* Idempotent; a zeroed right has ended already. */
void nfs4_io_end(struct nfs4_io_right *r);

#endif
