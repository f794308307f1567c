/* SPDX-License-Identifier: BSD-2-Clause */
/* From the credential of a call to the identity that it acts under on one export, for all versions
 * of NFS. */
#ifndef RN_NFS_CALLER_H
#define RN_NFS_CALLER_H

#include "rpc/request.h"
#include "vfs/export.h"

/*
 * Finds supplementary groups in the server's own databases (exports(5) manage-gids): fills at most
 * VFS_GROUPS_MAX, is thread-safe and caches. -RN_EUNNAMED: not known yet, asked on behalf of the peer.
 * If lookup is NULL, the call's own groups are used.
 */
struct nfs_groups {
	int (*lookup)(void *ctx, const struct sockaddr *peer, struct vfs_cred *cred);
	void *ctx;
	const struct sockaddr *peer;
	/* True if calls under AUTH_SYS keep their own groups, and only users of RPCSEC_GSS and of certificates are looked up. */
	bool gss_only;
};

/* 0, or -EACCES: the export wants a reserved port and the client has another. RDMA has no such
 * ports: queue pairs are made by privileged processes, and every client counts as secure. */
int nfs_check_port(const struct vfs_access *access, const struct rpc_conn *conn);

/* The flavour of a credential, as exports name it. */
enum vfs_sec nfs_sec(const struct rpc_cred *cred);
/* Number of a flavour on the wire, as MOUNT lists it (RFC 2623 section 2.7). */
enum rpc_sec nfs_sec_number(enum vfs_sec sec);

/* True if the export accepts calls over such a connection (xprtsec=). */
bool nfs_transport_allowed(const struct rpc_cred *cred, const struct vfs_access *access);
/* Puts the rights of the call's flavour in force, by vfs_access_use(). False: the export accepts neither the flavour nor, for
 * lack of TLS, the connection; the caller is then anonymous and may only read. */
bool nfs_access_use(const struct rpc_cred *cred, struct vfs_access *access);
/* True if the export accepts calls of this flavour over such a connection. */
bool nfs_flavor_allowed(const struct rpc_cred *cred, const struct vfs_access *access);

/* False if a reload has taken the export from the caller's host. A reload revokes opens and locks
 * that it finds. A call that began before the reload and has made one since must check by itself,
 * and undo it. True also while it is not known whether the host is still admitted. */
bool nfs_still_served(const struct vfs_exports *exports, uint32_t export_id,
		      const struct rpc_conn *conn);

/* The squashed identity, after vfs_access_use() for the credential's flavour. 0, or -RN_EUNNAMED: its groups are not known yet, and it must not be used. */
int nfs_caller(const struct nfs_groups *groups, const struct rpc_cred *cred,
	       const struct vfs_access *access, struct vfs_cred *out);

#endif
