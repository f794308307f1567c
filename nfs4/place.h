/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a filehandle of a COMPOUND names: nothing yet, a directory of the pseudo file system, or an
 * object of an export, together with who acts there. Two of them make the current and the saved
 * filehandle. A place of an export holds a reference of the export and one of the node.
 */
#ifndef RN_NFS4_PLACE_H
#define RN_NFS4_PLACE_H

#include "vfs/vfs.h"

struct nfs4_compound;

enum nfs4_place_kind { NFS4_NOWHERE, NFS4_PSEUDO, NFS4_FILE };

struct nfs4_place {
	enum nfs4_place_kind kind;
	struct vfs_fh fh;
	/* NFS4_PSEUDO: number of the directory, meaningful to nfs4/pseudo/pseudo.h only. */
	uint64_t pseudo_id;
	/* NFS4_FILE */
	uint32_t export_id;
	uint32_t type;	    /* S_IFMT bits */
	struct vfs_ctx ctx; /* exp is ours; cred is squashed for it */
	struct vfs_node *node;
	/* The client calls from a port that the export does not take: NFS4ERR_ACCESS. PUTFH and
	 * PUTROOTFH have no status for that, so it is what uses the place that answers. */
	bool refused;
	bool weak; /* the call's flavour does not do here: only what needs no credentials is allowed
		    * (NFS4ERR_WRONGSEC, RFC 8881 section 2.6.3.1) */
};

/* Gives back what it holds. */
void nfs4_place_clear(struct nfs4_place *p);
/* to becomes from, with references of its own; nothing fails. */
void nfs4_place_copy(struct nfs4_place *to, const struct nfs4_place *from);
/* The same, but from's references move with it. */
void nfs4_place_take(struct nfs4_place *to, struct nfs4_place *from);

/* out becomes the root of an export for this caller, perhaps weak or refused. NFS4ERR_STALE: there
 * is none of that id for this client. A failure leaves out as it was. */
int nfs4_place_of_export(struct nfs4_compound *c, uint32_t id, struct nfs4_place *out);

/* p becomes what fh names for this caller (PUTFH), perhaps weak or refused: BADHANDLE, STALE... A
 * failure leaves p as it was. */
int nfs4_place_by_fh(struct nfs4_compound *c, struct nfs4_place *p, const struct vfs_fh *fh);

/* NFS4_OK; NFS4ERR_WRONGSEC: it is weak; NFS4ERR_ACCESS: it is refused. */
int nfs4_place_usable(const struct nfs4_place *p);

/* p, an object of an export, becomes another of the same export: takes over the reference of n. */
void nfs4_place_move(struct nfs4_place *p, struct vfs_node *n);

/* What an operation asks of the current filehandle before it does anything. */
enum nfs4_need {
	NFS4_NEED_DIR = 1, /* else what nfs4_no_dir says */
	NFS4_NEED_REG = 2, /* else NFS4ERR_ISDIR, NFS4ERR_SYMLINK, NFS4ERR_INVAL or WRONG_TYPE */
	/* Not of a read-only export or the pseudo file system: NFS4ERR_ROFS. */
	NFS4_NEED_WRITABLE = 4,
	/* An object of an export; of the pseudo file system, which operations without this flag
	 * handle themselves: NFS4ERR_ROFS or what another need says. */
	NFS4_NEED_FILE = 8,
};
/* The status where a directory is needed and p is none: NFS4ERR_NOTDIR, or NFS4ERR_SYMLINK
 * (NFS4_OP_FOLLOWS). */
int nfs4_no_dir(const struct nfs4_compound *c, const struct nfs4_place *p);
/* Besides: NFS4ERR_NOFILEHANDLE, and what nfs4_place_usable says. (Of weak places only LOOKUP,
 * LOOKUPP, OPEN and SECINFO come to see one, since putting a handle before others fails.) */
int nfs4_need(const struct nfs4_compound *c, const struct nfs4_place *p, unsigned need);

#endif
