/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs/caller.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

int nfs_check_port(const struct vfs_access *access, const struct rpc_conn *conn)
{
	const struct sockaddr *peer = (const struct sockaddr *)&conn->peer;
	uint16_t port;

	if (!(access->flags & VFS_SECURE) || strncmp(conn->ops->netid, "rdma", 4) == 0)
		return 0;
	if (peer->sa_family == AF_INET)
		port = ntohs(((const struct sockaddr_in *)peer)->sin_port);
	else if (peer->sa_family == AF_INET6)
		port = ntohs(((const struct sockaddr_in6 *)peer)->sin6_port);
	else
		return -EACCES;
	return port < IPPORT_RESERVED ? 0 : -EACCES;
}

bool nfs_flavor_allowed(const struct rpc_cred *cred, const struct vfs_access *access)
{
	switch (cred->flavor) {
	case RPC_AUTH_NONE:
		return access->flags & VFS_SEC_NONE;
	case RPC_AUTH_SYS:
		return access->flags & VFS_SEC_SYS;
	default:
		return false;
	}
}

bool nfs_still_served(const struct vfs_exports *exports, uint32_t export_id,
		      const struct rpc_conn *conn)
{
	const struct sockaddr *peer = (const struct sockaddr *)&conn->peer;
	struct vfs_access access;
	struct vfs_export *exp;
	const int rc = exports->by_id(exports->ctx, export_id, peer, &exp, &access);

	if (rc == 0)
		vfs_export_put(exp);
	return rc == 0 || rc == -EAGAIN || rc == -ETIMEDOUT;
}

int nfs_caller(const struct nfs_groups *groups, const struct rpc_cred *cred,
	       const struct vfs_access *access, struct vfs_cred *out)
{
	int rc = 0;

	out->uid = cred->uid;
	out->gid = cred->gid;
	out->ngroups = cred->ngids;
	memcpy(out->groups, cred->gids, cred->ngids * sizeof(cred->gids[0]));
	if (cred->flavor == RPC_AUTH_SYS && groups->lookup && !(access->flags & VFS_ALL_SQUASH))
		rc = groups->lookup(groups->ctx, groups->peer, out);
	/* Any flavour but AUTH_SYS carries no identity to believe in. */
	vfs_cred_squash(out, access, cred->flavor != RPC_AUTH_SYS);
	return rc;
}
