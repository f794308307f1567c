/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFS version 4 (RFC 7530, RFC 8881, RFC 7862) as an RPC program, as the daemon sees it.
 */
#ifndef RN_NFS4_NFS4_SERVER_H
#define RN_NFS4_NFS4_SERVER_H

#include "lib/log.h"
#include "rpc/program.h"
#include "vfs/vfs.h"

struct nfs4_server;

/* The server's name for a user or group, and back (RFC 8881 section 5.9). Thread-safe; none
 * waits for a name service. 0 or -errno; -EAGAIN: not known yet, asked for the peer's sake; names
 * are not NUL-terminated going in. */
struct nfs4_idmap {
	int (*uid_to_name)(void *ctx, const struct sockaddr *peer, uint32_t uid, char *name,
			   size_t size);
	int (*gid_to_name)(void *ctx, const struct sockaddr *peer, uint32_t gid, char *name,
			   size_t size);
	int (*name_to_uid)(void *ctx, const struct sockaddr *peer, const char *name, uint32_t len,
			   uint32_t *uid);
	int (*name_to_gid)(void *ctx, const struct sockaddr *peer, const char *name, uint32_t len,
			   uint32_t *gid);
	void *ctx;	   /* all NULL: decimal numbers only */
	bool names_always; /* clients that authenticate by numbers are told names, too */
};

struct nfs4_config {
	struct vfs *vfs;
	struct vfs_exports exports;
	struct rn_payload_pool *pool;
	struct rn_budget *budget; /* what state costs is taken from here */
	const struct rn_logger *log;
	struct nfs4_idmap idmap;
	uint32_t max_io;    /* maxread, maxwrite: bytes */
	unsigned minor_max; /* highest minor version served: 0..2 */
	unsigned minor_min;
	unsigned lease_seconds; /* default 90 */
	unsigned grace_seconds; /* at most; default 90 */
	unsigned max_sessions;	/* of all clients; 0: as memory allows */
	const char *state_dir;	/* where the client records live; NULL: nowhere (tests) */
	/* As nfs3_config: supplementary groups by the server's own databases, or NULL. */
	int (*lookup_groups)(void *ctx, const struct sockaddr *peer, struct vfs_cred *cred);
	void *lookup_ctx;
	/* Called at the end of each operation, on its worker; may be NULL. opnum is OP_ILLEGAL for
	 * what is none. */
	void (*observe_op)(void *ctx, const struct rpc_request *req, uint32_t opnum,
			   uint64_t elapsed_ns, bool error);
	void *observe_ctx;
};

/* 0 or -errno; what cannot be used in the state directory is logged. */
int nfs4_server_new(const struct nfs4_config *cfg, struct nfs4_server **out);
/* No request is running. */
void nfs4_server_free(struct nfs4_server *s);

/* Adds version 4 as one of the NFS program's versions. The program's admit and ctx are those of
 * version 3, so the handlers find s through version->ctx. */
void nfs4_version(struct nfs4_server *s, struct rpc_version *out);

/* As nfs3_bulk_offset, for COMPOUND: where the data of its first WRITE starts; 0: nowhere, or not
 * found. */
size_t nfs4_bulk_offset(const uint8_t *head, size_t len);

/* The exports have been reloaded: the pseudo file system follows. 0, or -ENOMEM: it stays as it
 * was. */
int nfs4_exports_changed(struct nfs4_server *s);
/*
 * Takes from every client what it has opened and locked below exports that are lost to the address
 * it registered from. Afterwards others may have it, no descriptor is left, and its stateids are
 * answered NFS4ERR_ADMIN_REVOKED until the client has freed them (minor version 0: for a lease).
 * The new exports are in force already, so that nothing comes after. The number of opens. From one
 * thread at a time, which may be none that serves requests; takes milliseconds for each 1000 opens.
 */
uint64_t nfs4_revoke_exports(struct nfs4_server *s, const struct vfs_exports_lost *lost);
/*
 * Forgets a client by the administrator's will: sessions, opens, locks, and its record on disk, so
 * that it can reclaim nothing. It has to register anew, which clients do by themselves. 0; -ENOENT:
 * there is no confirmed client with that id; -EAGAIN: it can do nothing any more, but what it had
 * is kept from others until its record is off the disk: call again in some milliseconds. Any
 * thread.
 */
int nfs4_forget_client(struct nfs4_server *s, uint64_t clientid);
/* About once a second, from one thread: leases, the end of grace. */
void nfs4_tick(struct nfs4_server *s);

/* For tests: the clock of leases goes on by that much. */
void nfs4_skip_lease_time(struct nfs4_server *s, uint64_t seconds);

/* Is it the grace period, in which clients reclaim what they had before a restart? Thread-safe. */
bool nfs4_reclaiming(struct nfs4_server *s);
/* Must others' new locks wait for that; and reads and writes without an open? */
bool nfs4_blocks_locks(struct nfs4_server *s);
bool nfs4_blocks_io(struct nfs4_server *s);

/* What is held now, for the daemon's counters. */
struct nfs4_held {
	uint64_t clients, courtesy_clients, sessions, slots;
	uint64_t owners, opens, locks, cached_replies;
};
void nfs4_held(struct nfs4_server *s, struct nfs4_held *out);

#endif
