/* SPDX-License-Identifier: BSD-2-Clause */
/* From the credential of a call to the identity that it acts under on one export. */
#ifndef RN_NFS3_CALLER_H
#define RN_NFS3_CALLER_H

#include "nfs3/server.h"
#include "rpc/request.h"

/* 0, or -EACCES: the export wants a reserved port and the client has another. RDMA has no such
 * ports: queue pairs are made by privileged processes, and every client counts as secure. */
int nfs3_check_port(const struct vfs_access *access, const struct rpc_conn *conn);

/* Does the export take calls of this flavour? */
bool nfs3_flavor_allowed(const struct rpc_cred *cred, const struct vfs_access *access);

/* The squashed identity; supplementary groups by the server's own databases if it is configured so.
 */
void nfs3_caller(struct nfs3_server *s, const struct rpc_cred *cred,
		 const struct vfs_access *access, struct vfs_cred *out);

#endif
