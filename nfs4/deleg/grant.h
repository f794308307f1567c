/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Giving delegations: whether a client gets one with an OPEN, by WANT_DELEGATION or
 * GET_DIR_DELEGATION, and open_delegation4 on the wire (RFC 8881 sections 10.4, 18.16 and 18.49).
 *
 * Clients whose callback path works get them, as far as vfs/ finds nobody in the way: a write
 * delegation with an OPEN that writes, else a read delegation.
 */
#ifndef RN_NFS4_DELEG_GRANT_H
#define RN_NFS4_DELEG_GRANT_H

#include "nfs4/compound.h"
#include "nfs4/deleg/delegations.h"

/* Bytes of XDR of an open_delegation4 at most: type, stateid, recall, space limit, and an ace for
 * EVERYONE@. */
#define NFS4_DELEGATION_SIZE (4u + NFS4_STATEID_SIZE + 4u + 12u + 12u + 4u + 12u)

/* Bits of share_access by which a client asks to be told later. */
#define NFS4_WANT_LATER                                                                            \
	(OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL |                                   \
	 OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED)

struct nfs4_deleg_request {
	struct nfs4_object *object; /* a file that the caller may read, if access says so */
	uint32_t want;		    /* OPEN4_SHARE_ACCESS_WANT_*, and NFS4_WANT_LATER */
	uint8_t access;		    /* of the OPEN; OPEN4_SHARE_ACCESS_READ for WANT_DELEGATION */
	/* A directory: kinds of changes to be told of instead of a recall; kinds becomes those that the
	 * client will be told of. NULL: none. */
	struct nfs4_dir_notify_wish *notify;
	bool reclaim;	    /* the client had it before a restart, and may reclaim opens */
	uint32_t reclaimed; /* enum open_delegation_type4 that it had: READ or WRITE */
	/* An OPEN by name: the directory, and the name that led to the file. NULL: by filehandle. */
	struct nfs4_object *dir;
	const char *name;
	uint32_t name_len;
};

struct nfs4_deleg_offer {
	uint32_t type; /* enum open_delegation_type4 */
	uint32_t why;  /* enum why_no_delegation4, for OPEN_DELEGATE_NONE_EXT */
	/* True if the client is to return it at once, without a CB_RECALL. */
	bool recalled;
	struct nfs4_stateid sid;
};

/* Bits that the client's record must have on disk before it is given a delegation of the request:
 * NFS4_RECORD_DELEG and its like, or 0 if it will get none. */
unsigned nfs4_deleg_record(struct nfs4_compound *c, const struct nfs4_deleg_request *r);
/* Gives the calling client, c->client, a delegation if it may have one. Otherwise the
 * reason is in the offer, if the client has asked for a delegation (want is not 0). An event thread's worker
 * gives none. */
void nfs4_deleg_offer(struct nfs4_compound *c, const struct nfs4_deleg_request *r,
		      struct nfs4_deleg_offer *out);
/* True if nfs4_deleg_offer() might give one, as far as can be seen without a wait, or has to find out
 * why not. For an event thread's worker, which leaves that to another. */
bool nfs4_deleg_is_possible(struct nfs4_compound *c, const struct nfs4_deleg_request *r);

/* True if the state of the server and of the calling client, which has a session, allows one more
 * delegation. */
bool nfs4_deleg_is_available(struct nfs4_compound *c);
/* Gives one of r->object, which may be a directory, where nothing but others' use of it can be in the way.
 * 0; -EALREADY: the client has one; or -errno of vfs_deleg_give() and nfs4_deleg_add(). Delegations
 * that can be reclaimed need NFS4_RECORD_DELEG on disk before. */
int nfs4_deleg_give(struct nfs4_compound *c, const struct nfs4_deleg_request *r,
		    struct nfs4_stateid *sid);

void nfs4_put_delegation(struct nfs4_compound *c, const struct nfs4_deleg_offer *offer);

#endif
