/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OPEN, which goes in steps: nfs4/open/ops_open.c says which; open_file.c finds or makes the file,
 * open_share.c gets the share. struct nfs4_opening is what they hand on, in the arena.
 */
#ifndef RN_NFS4_OPEN_OPENING_H
#define RN_NFS4_OPEN_OPENING_H

#include "nfs4/attr/attr.h"
#include "nfs4/names/name.h"
#include "nfs4/state/state.h"
#include "nfs4/state/wire.h"

enum nfs4_create_how { NFS4_UNCHECKED, NFS4_GUARDED, NFS4_EXCLUSIVE, NFS4_EXCLUSIVE_1 };
enum nfs4_claim {
	NFS4_CLAIM_NULL,
	NFS4_CLAIM_PREVIOUS,
	NFS4_CLAIM_DELEGATE_CUR,
	NFS4_CLAIM_DELEGATE_PREV,
	NFS4_CLAIM_FH,
	NFS4_CLAIM_DELEG_CUR_FH,
	NFS4_CLAIM_DELEG_PREV_FH,
};

struct nfs4_open_args {
	uint32_t seqid;
	uint32_t access, deny;
	struct nfs4_wire_owner owner;
	bool create;
	uint32_t how;		 /* enum nfs4_create_how */
	struct nfs4_sattr attrs; /* UNCHECKED4, GUARDED4, EXCLUSIVE4_1 */
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	uint32_t claim; /* enum nfs4_claim */
	uint32_t delegate_type;
	struct nfs4_stateid delegate_sid;
	struct nfs4_name name;
	struct nfs4_opening *work; /* from run on, until it ends */
};
void nfs4_decode_open(struct nfs4_compound *c, void *args);

struct nfs4_opening {
	struct nfs4_open_args *args;
	struct nfs4_client *client;
	struct nfs4_owner *owner; /* used until nfs4_owner_release */
	uint8_t access, deny;

	/* open_file.c */
	bool by_name;		/* the current filehandle is the directory, and becomes the file */
	bool found;		/* by its name in the export: it is there */
	struct nfs4_place file; /* by_name; else the current filehandle is it */
	/* Four facts about a file that vfs_create has given; none of them for one that was found.
	 */
	bool made;			/* by this call: the directory has changed */
	bool granted;			/* the access asked for was decided on */
	bool attrs_set;			/* by this call, or by the one that it repeats */
	bool sync_name;			/* the file and its name may not be on disk yet */
	bool truncate;			/* once it is open */
	uint64_t dir_before, dir_after; /* its change attribute */
	struct nfs4_bitmap attrset;

	/* open_share.c */
	struct nfs4_open *open; /* a reference; pending counts us */
	struct nfs4_stateid sid;
	uint8_t old_access, old_deny; /* 0: it is a new open */
	bool new_combination;
	bool confirm; /* the client must confirm it */
};

static inline struct nfs4_place *nfs4_opened_place(struct nfs4_compound *c, struct nfs4_opening *w)
{
	return w->by_name ? &w->file : &c->current;
}

/* Finds or makes the file, and checks that the caller may open it so. */
int nfs4_open_file(struct nfs4_compound *c, struct nfs4_opening *w);

/* Gets the share of the owner's open of that file, made if there is none. */
int nfs4_open_share(struct nfs4_compound *c, struct nfs4_opening *w);
/* Takes it back, as far as nobody else has come to rely on it. */
void nfs4_open_unshare(struct nfs4_opening *w);
/* The reply says so. */
void nfs4_open_shared(struct nfs4_opening *w);

#endif
