/* SPDX-License-Identifier: BSD-2-Clause */
/* MOUNT's argument, and the resolution of its paths. */
#ifndef RN_NFS3_MOUNT_RESOLVE_H
#define RN_NFS3_MOUNT_RESOLVE_H

#include "nfs3/nfs3_proto.h"
#include "nfs3/nfs3_state.h"
#include "rpc/request.h"

struct mnt_path {
	/* true length of the path; one longer than MNT_PATH_MAX has no bytes here */
	uint32_t len;
	char bytes[MNT_PATH_MAX + 1]; /* NUL-terminated */
};

/*
 * Finds the node for a path that a client wants to mount: the export with the longest matching
 * path, then the rest of the path name by name, as the caller, following symbolic links within the
 * exports. 0: *node has a reference, and so has ctx->exp; it is a directory, or the exported object
 * itself. -errno: both are NULL.
 */
int mnt_resolve(struct rpc_request *req, const struct mnt_path *path, struct vfs_ctx *ctx,
		struct vfs_node **node);

#endif
