/* SPDX-License-Identifier: BSD-2-Clause */
/* The boundaries between exports. A nested export takes the place of the directory (or file) that
 * it covers, for callers who may use it. ".." of its root leads back. */
#ifndef RN_NFS4_PSEUDO_CROSS_H
#define RN_NFS4_PSEUDO_CROSS_H

#include "nfs/nested.h"
#include "nfs4/compound.h"

/*
 * True if the entry of the current directory leads to the root of another export for this caller, or is not for him. *status is then NFS4_OK and
 * out (an initialized place) that root, perhaps weak; or *status says why it cannot be reached.
 * False, nearly always at the cost of comparing the name: the name leads to e->found.
 */
bool nfs4_cross_down(struct nfs4_compound *c, const struct nfs_entry *e, struct nfs4_place *out,
		     int *status);

/* The parent of an export's root: in the export that contains it, or a pseudo directory. */
int nfs4_cross_up(struct nfs4_compound *c, struct nfs4_place *root, struct nfs4_place *out);

/* mounted_on_fileid of an object of an export with that fileid. The two differ at the root of
 * exports and of mounts. (An entry of READDIR has it as vfs_dirent.fileid.) */
uint64_t nfs4_mounted_on(struct nfs4_compound *c, const struct nfs4_place *p, uint64_t fileid);

#endif
