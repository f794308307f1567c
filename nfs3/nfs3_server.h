/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFS version 3 and MOUNT (RFC 1813), and the protocols beside them, as RPC programs.
 */
#ifndef RN_NFS3_SERVER_H
#define RN_NFS3_SERVER_H

#include "lib/image.h"
#include "lib/log.h"
#include "rpc/program.h"
#include "vfs/vfs.h"

#define NFS_PROGRAM 100003u
#define MOUNT_PROGRAM 100005u
#define NLM_PROGRAM 100021u
#define NLM_VERSION 4u
#define NFSACL_PROGRAM 100227u
#define NFSACL_VERSION 3u
#define RQUOTA_PROGRAM 100011u

struct nfs3_server;
struct nsm;
struct nsm_reboot;

enum nfs3_grace {
	NFS3_RECLAIMING,
	NFS3_RECLAIMS_LATER, /* true while other servers may grant what clients will reclaim here */
	NFS3_LOCKS_WAIT,     /* true while new locks must wait for reclaims */
	NFS3_IO_WAITS,	     /* true for an open that may be reclaimed and denies access */
};

struct nfs3_config {
	struct vfs *vfs;
	struct vfs_exports exports;
	const struct rn_logger *log;
	struct rn_payload_pool *pool; /* for locks that are granted later */
	uint32_t max_io;	      /* rtmax, wtmax: bytes, a multiple of 4096, at most 1 MiB */
	/*
	 * Supplementary groups of a uid in the server's own databases (exports(5) manage-gids), or
	 * NULL to use those of the call. Fills at most VFS_GROUPS_MAX; thread-safe, caches;
	 * -RN_EUNNAMED: not known yet.
	 */
	int (*lookup_groups)(void *ctx, const struct sockaddr *peer, struct vfs_cred *cred);
	void *lookup_ctx;
	bool packed_handles; /* NFSv2 is served, too: MOUNT 1 and 2 give its handles, and NLM takes them */
	bool manage_gids; /* false: groups are looked up for users of RPCSEC_GSS only */
	/* Asks whether clients are reclaiming state from before a restart. NULL: never. */
	bool (*in_grace)(void *ctx, enum nfs3_grace what);
	void *grace_ctx;
	/* Keeps clients with locks on record; NULL: nobody does, and any client may reclaim. Must outlive
	 * the server. */
	struct nsm *nsm;
	/* A blocked lock from the image is granted as if its LOCK call had come by these. */
	struct rpc_server *rpc;
	struct rpc_clients *clients;
};

int nfs3_server_new(const struct nfs3_config *cfg, struct nfs3_server **out);
void nfs3_server_free(struct nfs3_server *s);
/* The two programs, to be put into an rpc_server; they refer to s. */
void nfs3_program(struct nfs3_server *s, struct rpc_program *nfs, struct rpc_program *mount);
/* The RFC's name of a procedure of NFS version 3; NULL: none has that number. */
const char *nfs3_proc_name(uint32_t proc);

/* The lock manager (RFC 1813 appendix II). */
void nlm_program(struct nfs3_server *s, struct rpc_program *nlm);
/* Moves x from the arguments of a call of NLM to its file handle. False: that procedure has none, or
 * the call is cut off. */
bool nlm_skip_to_fh(struct xdr_in *x, uint32_t proc);

/* POSIX ACLs (nfs3/acl/nfsacl.h). The arguments of its procedures but NULL begin with a handle. */
void nfsacl_program(struct nfs3_server *s, struct rpc_program *acl);

/* Quotas of users and groups (nfs3/quota/rquota.h), versions 1 and 2. */
void rquota_program(struct nfs3_server *s, struct rpc_program *quota);

/* The RFC's name of a status of NFS version 3, or of NLM; NULL: none has that number. MOUNT's numbers are those of
 * NFS. */
const char *nfs3_status_name(uint32_t status);
const char *nlm_status_name(uint32_t status);

/* Waits for locks that are being granted to clients that wait; none is granted any more. Before the workers
 * end, and before nsm_stop(). */
void nlm_stop_grants(struct nfs3_server *s);
/* Clients that have been told of a lock, and not answered yet. */
unsigned nlm_grants_under_way(struct nfs3_server *s);

/* About once a second: tries locks again for which clients wait because of local processes. Does not wait. */
void nlm_retry_grants(struct nfs3_server *s);

/* Releases the locks that a host took before it has restarted. False: a call that does not end has some
 * of them; to be called again. Any thread. */
bool nlm_host_rebooted(struct nfs3_server *s, const struct nsm_reboot *r);

/* Releases every lock below exports that its client has lost; returns the number of clients that
 * held some. The new exports are in force already. Any thread. */
uint64_t nlm_revoke_exports(struct nfs3_server *s, const struct vfs_exports_lost *lost);
/* Number of lock owners that this would find. Not at the same time as the other. */
/* Hand locks, shares and who waits for a lock to the next program, and take them (lib/image.h); no call is under way, and nsm_stop() was
 * called. load: before any call; 0, -EPROTO, -ENOMEM. */
void nlm_save(struct nfs3_server *s, struct image_writer *w);
int nlm_load(struct nfs3_server *s, struct image_reader *image);
uint64_t nlm_count_exports(struct nfs3_server *s, const struct vfs_exports_lost *lost);

/* tcp_config.bulk_offset for calls of this program: where WRITE's data starts; 0: nowhere, or not
 * found. A wrong answer costs alignment: the call is decoded properly later. Pure. */
size_t nfs3_bulk_offset(const uint8_t *head, size_t len);

#endif
