/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The boundaries between exports: one that lies below another takes the place of the directory (or
 * file) that it covers there, for callers who may use it, and ".." of its root leads back.
 */
#ifndef RN_NFS4_PSEUDO_CROSS_H
#define RN_NFS4_PSEUDO_CROSS_H

#include "nfs4/compound.h"

/* A name of the current directory, and what it leads to within that directory's export. */
struct nfs4_step {
	const char *name;
	uint32_t len;
	const struct vfs_fh *found;
};

/*
 * Does the step lead to the root of another export for this caller? True: *status is NFS4_OK and out, which was a place before, that root (perhaps
 * weak), or *status says why it cannot be had. False, nearly always at the cost of comparing the
 * name: found it is.
 */
bool nfs4_cross_down(struct nfs4_compound *c, const struct nfs4_step *step, struct nfs4_place *out,
		     int *status);

/* The parent of an export's root: in the export that it is nested in, or a pseudo directory. */
int nfs4_cross_up(struct nfs4_compound *c, struct nfs4_place *root, struct nfs4_place *out);

/* mounted_on_fileid of an object of an export whose fileid is known: another than that at the root
 * of exports and of mounts. (An entry of READDIR has it as vfs_dirent.fileid.) */
uint64_t nfs4_mounted_on(struct nfs4_compound *c, const struct nfs4_place *p, uint64_t fileid);

#endif
