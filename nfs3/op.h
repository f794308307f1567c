/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every NFSv3 procedure needs while it runs: who calls, on which export, the nodes that it
 * holds, and one place that gives all of it back.
 *
 * A handler calls nfs3_op_begin, opens its handles, works, and ends by `return nfs3_op_end(op, rc)`
 * after it has encoded its result. The op lies in the request's arena.
 *
 * The steps below wait for name services, and for what other clients are about to give back. Two rules for what waits
 * (lib/fiber.h): no lock is held meanwhile; afterwards files and names may have changed, while nodes and export are held.
 */
#ifndef RN_NFS3_OP_H
#define RN_NFS3_OP_H

#include "nfs/nested.h"
#include "nfs3/nfs3_args.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_state.h"
#include "rpc/client.h"
#include "rpc/program.h"
#include "rpc/worker.h"
#include "vfs/io.h"
#include "vfs/packed.h"
#include "vfs/share.h"

#define NFS3_OP_NODES 4
#define NFS3_OP_DIRS 2 /* directories that an operation may change */

struct nfs3_op;

/*
 * NFSv2 is a dialect of NFSv3: its rows decode into NFSv3's arguments (nfs3/nfs3_args.h) and run its handlers, which encode by these. Its handles
 * are packed, and its failures are a status alone. A dialect knows neither the changes of directories nor attributes beside other results.
 */
struct nfs3_dialect {
	uint32_t max_io;     /* bytes of file data that one call may move */
	uint32_t path_max;   /* bytes of a symbolic link's target */
	uint64_t size_max;   /* end of the largest file that can be written */
	uint32_t fattr_size; /* encoded size of attributes */
	bool (*put_status)(struct nfs3_op *op, int rc); /* true: success */
	void (*put_fattr)(struct xdr_out *x, const struct vfs_attr *a);
	void (*put_found)(struct nfs3_op *op, int rc); /* node[1], with op->attr */
	/* node[0] with its present attributes. Returns the failure that it put, or 0. */
	int (*put_changed)(struct nfs3_op *op, int rc);
};

struct nfs3_op {
	struct rpc_request *req;
	const struct nfs3_dialect *dialect; /* NULL: NFSv3, or a protocol beside it */
	struct nfs3_server *server;
	struct vfs_ctx ctx; /* ctx.exp: a reference, from nfs3_op_open on */
	uint32_t export_id;
	struct vfs_node *node[NFS3_OP_NODES]; /* references; their meaning is the handler's */
	/* Changes of the directories node[0] and node[1]; NULL: none is known */
	struct vfs_dir_change *change[NFS3_OP_DIRS];
	struct vfs_attr attr; /* attributes of the object that was made or found */

	union {
		struct vfs_sync sync;
		struct vfs_io io;
	};
	uint64_t verifier; /* write verifier, WRITE and COMMIT */
};

/* NULL: the arena is exhausted, which means a decoder used it up (RPC_RUN_SYSTEM_ERR). */
struct nfs3_op *nfs3_op_begin(struct rpc_request *req);

/* Bytes of file data that one call may move, by the settings and by the transport that it came over. */
uint32_t nfs3_op_max_io(const struct nfs3_op *op);

enum nfs3_open_flags {
	NFS3_OPEN_CHANGES = 1, /* refused by a read-only export: -EROFS */
	/* Accepts any flavour if the handle is the export's root: clients need that before they
	 * have credentials (RFC 2623 section 2.3.2). */
	NFS3_OPEN_MOUNT = 2,
	NFS3_OPEN_LOCK = 4, /* in any flavour where the export says insecure_locks */
};

/* nfs_await() for a step of op, as long as clients bear. False also if its export is not the host's any more. */
bool nfs3_op_await(struct nfs3_op *op, int rc);

/* Opens the call's first handle into op->node[0]: finds the export, checks port and flavour,
 * squashes the identity. 0, -errno, -NFS3_EWEAKAUTH or -RN_EUNNAMED. */
int nfs3_op_open(struct nfs3_op *op, const struct vfs_fh *fh, unsigned flags);
/* Opens another handle of the call into op->node[i]; -EXDEV: of another export. */
int nfs3_op_open_other(struct nfs3_op *op, const struct vfs_fh *fh, unsigned i);

/*
 * Exchanges node[1], which a lookup in node[0] found as name, for the root of the export that begins there, if one does and admits
 * the caller; op->attr are then the root's. An export that is a mount of its own is entered if the outer one has crossmnt or it has
 * nohide, else the caller stays at what it covers, as with the kernel's server. 0, -errno (node[1] is put) or -RN_EUNNAMED.
 */
int nfs3_op_cross(struct nfs3_op *op, const struct nfs3_name *name);
/* nfs_check_boundary() for a name of node[i]: 0, -EACCES or -RN_EUNNAMED. */
int nfs3_op_check_boundary(struct nfs3_op *op, unsigned i, const struct nfs3_name *name);
/* True unless the entry certainly belongs to node[0]'s export for this caller: its handle may not be shown. */
bool nfs3_op_leads_away(struct nfs3_op *op, const struct nfs_entry *e);

/* vfs_remove() or vfs_rmdir() of a name of node[0]. Courtesy clients whose shares keep the name give way. */
int nfs3_op_remove(struct nfs3_op *op, const struct nfs3_name *name,
		   int (*remove)(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name,
				 uint32_t len, struct vfs_dir_change *change),
		   struct vfs_dir_change *change);
/* vfs_rename(), likewise. */
int nfs3_op_rename(struct nfs3_op *op, const struct vfs_rename *r);
/* 0 if others' shares allow node[0] to be read or written (VFS_SHARE_*). -RN_ESHARE, or
 * -RN_EYIELDS, or -RN_EGRACE: they may be about to be reclaimed, for which NFSv2 waits, as it has no status for "come again". */
int nfs3_op_check_shares(struct nfs3_op *op, uint8_t access);

/* vfs_write() of op->io. */
int64_t nfs3_op_write(struct nfs3_op *op);
/* vfs_setattr() of node[0]. */
int nfs3_op_setattr(struct nfs3_op *op, const struct vfs_setattr *set,
		    const struct timespec *guard);
/* vfs_create() of a name of node[0] into node[1], if the name does not lead to another export. */
int nfs3_op_create(struct nfs3_op *op, const struct nfs3_name *name, struct vfs_create *cr);
/* Something other than a regular file. */
struct nfs3_making {
	struct vfs_make make;
	const char *target;		 /* of a symbolic link, or NULL */
	const struct vfs_mknod *special; /* NULL, as with target: a directory */
};
/* vfs_symlink(), vfs_mknod() or vfs_mkdir() into node[1]. */
int nfs3_op_make(struct nfs3_op *op, const struct nfs3_making *m);
/* vfs_link() of node[0] as a name of node[1]. */
int nfs3_op_link(struct nfs3_op *op, const struct nfs3_name *name, struct vfs_dir_change *change);

/* Puts the status word of rc; true if it is that of success. */
bool nfs3_put_status(struct nfs3_op *op, int rc);
/* Puts attributes of a successful result: post_op_attr. */
void nfs3_put_attr(struct nfs3_op *op, const struct vfs_attr *a);
/* Encoded size of these. */
uint32_t nfs3_attr_size(const struct nfs3_op *op);
/* Puts the present attributes of a node as post_op_attr; NULL gives none. A dialect has none. */
void nfs3_put_attr_of(struct nfs3_op *op, struct vfs_node *n);
/* Where vfs/ puts what it finds of the change of directory node[i], for nfs3_put_wcc_of. NULL: no
 * room, or a dialect. */
struct vfs_dir_change *nfs3_op_change(struct nfs3_op *op, unsigned i);
/* Puts the wcc_data of op->node[i]. A dialect has none. */
void nfs3_put_wcc_of(struct nfs3_op *op, unsigned i);

/* Count what has been read or written for the client. */
static inline void nfs3_count_read(const struct nfs3_op *op, uint64_t bytes)
{
	if (op->req->conn->client)
		rpc_usage_add(&op->req->conn->client->usage.bytes_read, bytes);
}
static inline void nfs3_count_written(const struct nfs3_op *op, uint64_t bytes)
{
	if (op->req->conn->client)
		rpc_usage_add(&op->req->conn->client->usage.bytes_written, bytes);
}

/* Gives everything back. Returns the handler's result: RPC_RUN_DONE, or _UNDONE if the call has waited in vain, or the refusal for rc. */
enum rpc_run nfs3_op_end(struct nfs3_op *op, int rc);

/* READ of what op->io says, into a payload buffer: waits while there is no memory for one. Bytes, or -errno. io->payload is the caller's to put;
 * NULL: no bytes were read. */
int64_t nfs3_op_read(struct nfs3_op *op);

/* Ends a modifying procedure: makes the changed nodes durable if the change succeeded (rc 0) and
 * the export is not async, then lets encode put the result. op->sync.node names the nodes. */
enum rpc_run nfs3_op_settle(struct nfs3_op *op, int rc, void (*encode)(struct nfs3_op *op, int rc));

/* Handlers that serve both versions, in the files with NFSv3's rows. */
enum rpc_run nfs3_getattr(struct rpc_request *req, void *args);
enum rpc_run nfs3_setattr(struct rpc_request *req, void *args);
enum rpc_run nfs3_access(struct rpc_request *req, void *args);
enum rpc_run nfs3_lookup(struct rpc_request *req, void *args);
enum rpc_run nfs3_readlink(struct rpc_request *req, void *args);
enum rpc_run nfs3_read(struct rpc_request *req, void *args);
enum rpc_run nfs3_write(struct rpc_request *req, void *args);
enum rpc_run nfs3_mkdir(struct rpc_request *req, void *args);
enum rpc_run nfs3_symlink(struct rpc_request *req, void *args);
enum rpc_run nfs3_remove(struct rpc_request *req, void *args);
enum rpc_run nfs3_rmdir(struct rpc_request *req, void *args);
enum rpc_run nfs3_rename(struct rpc_request *req, void *args);
enum rpc_run nfs3_link(struct rpc_request *req, void *args);
enum rpc_run nfs3_getacl(struct rpc_request *req, void *args);
enum rpc_run nfs3_setacl(struct rpc_request *req, void *args);
/* Puts what the file system of a handle tells, behind the status. */
enum rpc_run nfs3_statfs(struct rpc_request *req, const struct nfs3_fh_args *a,
			 void (*put)(struct nfs3_op *op, const struct vfs_statfs *st));

/* Steps of procedures that make node[1] in directory node[0]. */
int nfs3_create_open_dir(struct nfs3_op *op, const struct nfs3_dirop_args *where,
			 const struct nfs3_sattr *attr);
struct vfs_make nfs3_vfs_make_of(struct nfs3_op *op, const struct nfs3_name *name,
				 const struct vfs_setattr *sa);
/* rc is the result of the vfs call, which sets node[1] on success only. how: VFS_SYNC_MADE, unless
 * the object was there before. */
enum rpc_run nfs3_create_finish(struct nfs3_op *op, const struct nfs3_sattr *attr,
				enum vfs_sync_how how, int rc);

#endif
