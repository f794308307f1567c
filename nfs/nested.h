/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exports within exports, for all versions of NFS. The innermost export that has a line for a host governs an object, however the
 * host came to its handle: by MNT, a lookup, a listing or a handle from before a reload (exports(5), nohide and crossmnt).
 *
 * A nested export is looked for where its name is met: the object that its path covers in the outer export is looked up as root and
 * compared. So nothing must be updated when local processes rename directories.
 */
#ifndef RN_NFS_NESTED_H
#define RN_NFS_NESTED_H

#include "vfs/export.h"
#include "vfs/vfs.h"

/* A name of a directory, and the handle that it leads to within that directory's export. */
struct nfs_entry {
	const char *name;
	uint32_t len;
	const struct vfs_fh *found;
};

/*
 * Calls take(arg, n) with each export that begins at an entry of a directory of ctx->exp and is served, until it
 * returns true; n is valid during the call. Returns 1 if one call did, else 0; -ESTALE if an export with a line for the peer, or with a line in error,
 * begins there and is not served, or -errno if that cannot be found out: then the entry must not be shown. Costs a comparison if no
 * nested export has that name. The identity of ctx does not matter.
 */
int nfs_nested_at(const struct vfs_exports *exports, const struct vfs_ctx *ctx,
		  const struct sockaddr *peer, const struct nfs_entry *e,
		  bool (*take)(void *arg, const struct vfs_nested *n), void *arg);

/* Checks that a name of dir, in ctx->exp, does not lead to the root of an export that is the peer's: such a name is neither renamed,
 * which would take the export's options from what it holds, nor opened as part of the outer export. 0, or -EACCES, or -RN_EUNNAMED: not
 * known now. */
int nfs_check_boundary(const struct vfs_exports *exports, const struct vfs_ctx *ctx,
		       struct vfs_node *dir, const struct nfs_entry *e,
		       const struct sockaddr *peer);

/* Finds the node at the first len bytes of a path below the root of ctx->exp, as root and without following symbolic links. 0 and a
 * reference, or -errno. */
int nfs_walk_down(const struct vfs_ctx *ctx, const char *rel, size_t len, struct vfs_node **out);

/*
 * Checks that ctx->exp governs the object of a handle for that host. 0; -ESTALE: another export does, or the object lies on a mount
 * below the export, whose line for the host has no crossmnt; -RN_EUNNAMED: not known now. Costs nothing for what lies on the export's own
 * mount.
 */
int nfs_governed(const struct vfs_exports *exports, const struct vfs_ctx *ctx,
		 const struct sockaddr *peer, const struct vfs_fh *fh);

#endif
