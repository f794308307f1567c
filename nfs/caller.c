/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs/caller.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/error.h"

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

static const enum rpc_sec sec_numbers[VFS_SECS] = {
	[VFS_SEC_NONE] = RPC_SEC_NONE,	 [VFS_SEC_SYS] = RPC_SEC_SYS,
	[VFS_SEC_KRB5] = RPC_SEC_KRB5,	 [VFS_SEC_KRB5I] = RPC_SEC_KRB5I,
	[VFS_SEC_KRB5P] = RPC_SEC_KRB5P,
};

enum vfs_sec nfs_sec(const struct rpc_cred *cred)
{
	switch (cred->sec) {
	case RPC_SEC_SYS:
		return VFS_SEC_SYS;
	case RPC_SEC_KRB5:
		return VFS_SEC_KRB5;
	case RPC_SEC_KRB5I:
		return VFS_SEC_KRB5I;
	case RPC_SEC_KRB5P:
		return VFS_SEC_KRB5P;
	case RPC_SEC_NONE:
		break;
	}
	return VFS_SEC_NONE;
}

enum rpc_sec nfs_sec_number(enum vfs_sec sec)
{
	return sec_numbers[sec];
}

bool nfs_transport_allowed(const struct rpc_cred *cred, const struct vfs_access *access)
{
	static const uint32_t refused[] = {
		[RPC_PLAIN] = VFS_NO_PLAIN,
		[RPC_TLS] = VFS_NO_TLS,
		[RPC_MUTUAL_TLS] = VFS_NO_MTLS,
	};

	return !(access->flags & refused[cred->protection]);
}

bool nfs_flavor_allowed(const struct rpc_cred *cred, const struct vfs_access *access)
{
	return nfs_transport_allowed(cred, access) && vfs_access_accepts(access, nfs_sec(cred));
}

bool nfs_access_use(const struct rpc_cred *cred, struct vfs_access *access)
{
	const bool accepted = vfs_access_use(access, nfs_sec(cred));

	if (nfs_transport_allowed(cred, access))
		return accepted;
	access->flags |= VFS_RO | VFS_ALL_SQUASH;
	return false;
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
	return rc == 0 || rc == -RN_EUNNAMED || rc == -RN_ESILENT;
}

/* A principal or a certificate that is nobody's has no groups. */
static bool wants_lookup(const struct nfs_groups *groups, const struct rpc_cred *cred)
{
	if (!groups->lookup || cred->sec == RPC_SEC_NONE || cred->uid == (uint32_t)-1)
		return false;
	return cred->principal || cred->mapped || !groups->gss_only;
}

int nfs_caller(const struct nfs_groups *groups, const struct rpc_cred *cred,
	       const struct vfs_access *access, struct vfs_cred *out)
{
	int rc = 0;

	if (cred->unknown)
		return -RN_EUNNAMED;
	out->uid = cred->uid;
	out->gid = cred->gid;
	out->ngroups = cred->ngids;
	memcpy(out->groups, cred->gids, cred->ngids * sizeof(cred->gids[0]));
	if (wants_lookup(groups, cred) && !(access->flags & VFS_ALL_SQUASH))
		rc = groups->lookup(groups->ctx, groups->peer, out);
	vfs_cred_squash(out, access, cred->sec == RPC_SEC_NONE);
	return rc;
}
