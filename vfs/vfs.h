/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file system as the protocols use it: handles, nodes, metadata and directories. Every call
 * acts as ctx->cred: the kernel does the permission checks under that identity. Calls are
 * synchronous system calls on the worker's thread; the data path and durability are in vfs/io.h.
 * Results: 0 or -errno; a node returned through ** carries a reference. Names are byte strings
 * without NUL or '/' inside; vfs checks them (-EINVAL, -ENAMETOOLONG, and -EISDIR/-EEXIST/... as
 * the kernel answers for "." and ".." where they make no sense).
 */
#ifndef RN_VFS_VFS_H
#define RN_VFS_VFS_H

#include "lib/budget.h"
#include "lib/fiber.h"
#include "lib/log.h"
#include "lib/payload.h"
#include "vfs/export.h"
#include "vfs/types.h"

struct vfs_node;
struct vfs_worker;

struct vfs_config {
	struct rn_payload_pool *pool;
	struct rn_budget *budget;     /* for caches of memory; NULL: they are small */
	const struct rn_logger *log;  /* may be NULL */
	unsigned max_fds;	      /* descriptors that the node cache may hold */
	unsigned max_fds_most;	      /* with what requests hold beside that; 0: no bound */
	unsigned max_leases;	      /* and for the kernel's leases; 0: a quarter of max_fds */
	unsigned idle_seconds;	      /* a cached node unused so long is closed; 0: 10 */
	unsigned max_locks;	      /* byte ranges locked by all clients; 0: 1,000,000 */
	unsigned lock_wait_seconds;   /* a waiter that has not asked again is forgotten; 0: 90 */
	unsigned deleg_quiet_seconds; /* no delegation of a file after a recall; 0: 90 */
	/* Called when delegations of a file have ended that were in somebody's way: on any thread,
	 * without locks of vfs/. Must not wait. May be NULL. */
	void (*deleg_ended)(void *ctx);
	void *deleg_ended_ctx;
	/* Called when a READ or WRITE has moved bytes of a file in that export. Must not wait. May be NULL. */
	void (*moved)(void *ctx, uint32_t export_id, uint64_t read, uint64_t written);
	void *moved_ctx;
	/*
	 * Permission to lock a byte range now. False: the lock waits (-RN_EGRACE), as clients of another server may reclaim it; with
	 * reclaim: it can be reclaimed no more, or not yet. Thread-safe; must not wait. NULL: there are no other servers.
	 */
	bool (*may_lock)(void *ctx, bool reclaim);
	void *may_lock_ctx;
	/* Called when the file system of that export has given this machine up: no error of it may be answered. On a worker. NULL: nobody wants
	 * to know. */
	void (*lost)(void *ctx, const char *path);
	void *lost_ctx;
	/* Other servers on other machines have the same files, with clocks that are some milliseconds apart. What clients do there is not known here. */
	bool shared;
	bool handle_mac;
	unsigned helpers;	 /* threads that look ahead in listings, at most 3; 0: none */
	uint8_t secret[16];	 /* SipHash key of handles: from the state directory */
	uint64_t write_verifier; /* differs for each run of the daemon */
};

/* Bytes that the caches take out of a budget of `whole` bytes. */
size_t vfs_memory(size_t whole);
int vfs_new(const struct vfs_config *cfg, struct vfs **out);
/* max_fds, max_fds_most and max_leases, before there are requests. */
void vfs_set_fds(struct vfs *vfs, unsigned max_fds, unsigned most, unsigned leases);
void vfs_free(struct vfs *vfs); /* workers and exports are gone */
/* Closes what has been idle too long; the daemon calls it about once a second, from any one thread.
 */
void vfs_reap(struct vfs *vfs);
/* The thread that flushes what is to be closed (vfs/node/uncommitted.h), from vfs_new or later until the
 * workers have ended. */
int vfs_flusher_start(struct vfs *vfs);
void vfs_flusher_stop(struct vfs *vfs);
/* The thread that learns when local processes want to write a file that a client has a delegation of
 * (vfs/hold/lease.h). Without it such delegations are given only where the export promises that there
 * are no such processes. 0 or -errno. */
int vfs_leases_start(struct vfs *vfs);
void vfs_leases_stop(struct vfs *vfs);
/* Closes every cached descriptor below an export that is about to go. */
void vfs_forget_export(struct vfs *vfs, uint32_t export_id);

/* The mount table has become t: lets go of submounts that are not where they were. */
struct vfs_mount_table;
void vfs_mounts_changed(struct vfs *vfs, const struct vfs_mount_table *t);

struct vfs_stats {
	uint64_t nodes, fds, hits, misses, evictions, stale, bad_handles;
	uint64_t handles_known,
		handles_read;  /* handles of listings from the cache and the kernel */
	uint64_t nodes_in_use; /* of nodes: referenced now, not merely cached */
};
void vfs_stats(struct vfs *vfs, struct vfs_stats *out);

/* The caller of an operation, and its export. Lives in the request, which has the export's
 * reference. */
struct vfs_ctx {
	struct vfs *vfs;
	struct rn_fiber *fiber; /* that the operation runs in; its worker is a struct vfs_worker */
	struct vfs_export *exp;
	struct vfs_access access;
	struct vfs_cred cred;
	uint64_t caller; /* number of the connection; 0: unknown */
	/* The client, whose own delegations are not in its way (vfs/deleg.h): compared, never
	 * followed. NULL: NFSv3, NLM, or unknown. */
	const void *client;
	struct vfs_conflict
		*in_way; /* gets whose share keeps a name (vfs_share_check_name); or NULL */
	/* Gets the attributes of the directory that vfs_lookup() searches, from before the search, if they are looked at for it: mode is
	 * 0 otherwise. Or NULL. */
	struct vfs_attr *searched;
};

static inline struct vfs_worker *vfs_worker_of(const struct vfs_ctx *ctx)
{
	return ctx->fiber->worker;
}

/* A directory around the change that a call has made in it. A client that is told both states as
 * atomic takes all that differs between them for its own doing. */
struct vfs_dir_change {
	bool known;  /* the change was made, and both states are there */
	bool atomic; /* nobody else changed the directory in between */
	/* The caller knows all states with the ctime of before. False: a ctime that it remembers
	 * may stand for an earlier state. */
	bool ctime_tells;
	struct vfs_attr before, after;
};

/*
 * What to answer to an operation on ctx->exp that has ended so: rc, or -RN_ESOON if the file system has given this machine up, or seems to have.
 * Calls vfs_config.lost if it has. The thread may be root afterwards.
 */
int vfs_doubt(struct vfs_ctx *ctx, int rc);

/* Reads the export id out of a handle, which may have been made up: vfs_fh_open looks at its MAC.
 * 0; -EBADF (NFS3ERR_BADHANDLE): not of the form of ours. */
int vfs_fh_export_id(struct vfs *vfs, const struct vfs_fh *fh, uint32_t *id);
/* The export that a handle names whose first 8 bytes, big-endian, are head. Nothing is checked: of
 * use only where a lie does no harm. False: the handle is not one of this server's. */
bool vfs_handle_peek(uint64_t head, uint32_t *export_id);
/* The node of a handle of ctx->exp: -EBADF as above, -ESTALE: gone, outside the export,
 * from before the export had this root, or not ours. */
int vfs_fh_open(struct vfs_ctx *ctx, const struct vfs_fh *fh, struct vfs_node **out);
int vfs_root(struct vfs_ctx *ctx, struct vfs_node **out);
/* True if a mount lies over the node: nothing in it is shown or changed. The thread may be another one, or root, afterwards. */
bool vfs_node_is_covered(struct vfs_ctx *ctx, const struct vfs_node *n);
void vfs_node_put(struct vfs_node *n); /* NULL is allowed */
/* One more reference of a node that the caller has a reference of. */
void vfs_node_ref(struct vfs_node *n);
/* S_IFMT bits: an inode never changes them. */
uint32_t vfs_node_type(const struct vfs_node *n);
/* True if the node is the directory, or the file, that its export exports. */
bool vfs_node_is_root(const struct vfs_node *n);
/* The node's handle: the same after a rename and a restart. Points into the node. */
const struct vfs_fh *vfs_node_fh(const struct vfs_node *n);

/* -ESTALE when the last link is gone. */
int vfs_getattr(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_attr *out);
/* All or nothing as far as the kernel allows: checked for permission first, the size set first of
 * all. check_ctime, if not NULL: -EDOM when the node's ctime is another (sattrguard3; nfs3 maps it
 * to NOT_SYNC), and -RN_ESOON while another change of the node is under way: no change through us comes
 * between the comparison and what is set. */
int vfs_setattr(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa,
		const struct timespec *check_ctime);
/* Gives n the time of its last change, and with it another change attribute, on behalf of a client that
 * has changed its data under a write delegation and not yet written them. Needs no permission, recalls
 * nothing, and is not durable. 0 or -errno. */
int vfs_touch_delegated(struct vfs_ctx *ctx, struct vfs_node *n);
/* mounted_on_fileid (RFC 8881 section 5.8.2.23) of a node with that fileid: at the root of an
 * export or of a mount below it the number of what it covers, else fileid. */
uint64_t vfs_mounted_on(const struct vfs_node *n, uint64_t fileid);

/* "." is dir itself; ".." its parent, or itself at the export's root. Symbolic links are not
 * followed. attr may be NULL. */
int vfs_lookup(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	       struct vfs_node **out, struct vfs_attr *attr);
/* Like vfs_lookup(), in a directory whose attributes have just been had: -ENOENT is about the name, without
 * another look at the directory. */
int vfs_lookup_below(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
		     struct vfs_node **out, struct vfs_attr *attr);

/* As vfs_lookup, but only the handle and the attributes: nothing stays open for it. */
int vfs_peek(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	     struct vfs_fh *fh, struct vfs_attr *attr);
/* Like vfs_peek(), for an entry of vfs_readdir, while it is handed over. */
struct vfs_dirent;
int vfs_peek_entry(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_dirent *de,
		   struct vfs_fh *fh, struct vfs_attr *attr);

enum vfs_may { VFS_MAY_READ = 1, VFS_MAY_WRITE = 2, VFS_MAY_EXEC = 4, VFS_MAY_DELETE = 8 };
/* Finds the rights out of want that the caller has, as the kernel decides (ACLs too).
 * VFS_MAY_DELETE is about entries of a directory: write and search. *granted on success. A
 * read-only export grants no write. attr may be NULL: the node's attributes, which are looked at
 * anyway. */
int vfs_access(struct vfs_ctx *ctx, struct vfs_node *n, unsigned want, unsigned *granted,
	       struct vfs_attr *attr);

/* Checks that the caller may read or write a file's data. NFSv3 has no open, so a file's owner may
 * whatever the mode says (RFC 1813 section 4.4), and who may execute a file may read it; otherwise
 * the kernel decides under the caller's identity, ACLs included. 0; -EISDIR, -EINVAL: not a regular
 * file; -EACCES, -EROFS, -EPERM; -ESTALE: the last link is gone. */
int vfs_may_read(struct vfs_ctx *ctx, struct vfs_node *n);
int vfs_may_write(struct vfs_ctx *ctx, struct vfs_node *n);

/* Checks that the caller may open the file to read, write or both (VFS_MAY_READ, VFS_MAY_WRITE).
 * The kernel decides, under the caller's identity; the owner has no rights beyond the mode here,
 * and who may execute a file may open it to read. 0, -EISDIR, -EINVAL: no regular file; -EACCES,
 * -EROFS, -ESTALE. Not to be asked of a file that the same call has just created: its mode may
 * forbid what its maker does. */
int vfs_open_check(struct vfs_ctx *ctx, struct vfs_node *n, unsigned want);
/* Like vfs_open_check(), for a file that vfs_lookup has just found: it is there. */
int vfs_open_check_found(struct vfs_ctx *ctx, struct vfs_node *n, unsigned want);
/* -RN_ELEASE: a local process has a lease of the file, and is told to give it up, so that what follows
 * sees what it has kept to itself; the client may ask again. -RN_EDELEG: likewise a client with a
 * delegation. 0 else. After vfs_open_check. */
int vfs_open_breaks_leases(struct vfs_ctx *ctx, struct vfs_node *n, unsigned want);

/* Up to size bytes of the target, not NUL-terminated; returns its length or -errno (-EINVAL: no
 * link). */
int vfs_readlink(struct vfs_ctx *ctx, struct vfs_node *n, char *buf, uint32_t size);

enum vfs_create_how { VFS_UNCHECKED, VFS_GUARDED, VFS_EXCLUSIVE };
struct vfs_create {
	enum vfs_create_how how;
	const struct vfs_setattr *sa; /* may be NULL */
	const uint8_t *verf;	      /* EXCLUSIVE: 8 bytes */
	unsigned may; /* VFS_MAY_READ, VFS_MAY_WRITE: rights that a repeated EXCLUSIVE asks for */
	struct vfs_attr *attr;	       /* gets the file's attributes; may be NULL */
	struct vfs_dir_change *change; /* may be NULL */
	bool made; /* result: this call made the file, it was not there before */
};
/* A regular file. EXCLUSIVE: a keyed hash of verifier and caller is kept in atime and mtime, so
 * that the caller's repeated create is recognised, after a restart too; the times of sa are not
 * used. A file that is recognised is granted to its owner, and to others as if they opened it.
 * UNCHECKED on an existing file sets its size if sa says so, and nothing else; -RN_ESHARE
 * (vfs/share.h): somebody denies it. */
int vfs_create(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	       struct vfs_create *how, struct vfs_node **out);
/*
* An object to make that is no regular file: its directory, name and attributes. 0 and no node: it was made, and a local process
 * has removed it or given its name to another object before the server could see which it was.
 */
struct vfs_make {
	struct vfs_node *dir;
	const char *name;
	uint32_t len;
	const struct vfs_setattr *sa;
	struct vfs_attr *attr;	       /* gets the attributes of what was made; may be NULL */
	struct vfs_dir_change *change; /* may be NULL */
};
int vfs_mkdir(struct vfs_ctx *ctx, const struct vfs_make *m, struct vfs_node **out);
int vfs_symlink(struct vfs_ctx *ctx, const struct vfs_make *m, const char *target,
		struct vfs_node **out);
struct vfs_mknod {
	uint32_t type; /* S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK */
	uint32_t major, minor;
};
int vfs_mknod(struct vfs_ctx *ctx, const struct vfs_make *m, const struct vfs_mknod *what,
	      struct vfs_node **out);
/* True if an object made with these attributes needs a further step that sets more than its mode.
 */
bool vfs_set_after_making(const struct vfs_setattr *sa);
/* change may be NULL. -RN_ESHARE: somebody's share keeps the name (vfs_share_check_name), ctx->in_way says whose. */
int vfs_remove(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	       struct vfs_dir_change *change);
int vfs_rmdir(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
	      struct vfs_dir_change *change);
/* Both directories are in ctx->exp; -EXDEV across its file systems; -RN_ESHARE as of vfs_remove(), for what is replaced. */
struct vfs_rename {
	struct vfs_node *from_dir, *to_dir;
	const char *from, *to;
	uint32_t from_len, to_len;
	struct vfs_dir_change *from_change, *to_change; /* both, or both NULL */
};
int vfs_rename(struct vfs_ctx *ctx, const struct vfs_rename *r);
int vfs_link(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_node *dir, const char *name,
	     uint32_t len, struct vfs_dir_change *change);

/* One entry of a directory stream. cookie continues after it. */
struct vfs_shown;
struct vfs_dirent {
	const char *name; /* NUL-terminated */
	uint32_t len;
	uint64_t fileid;
	uint64_t cookie;
	uint32_t type;		       /* DT_* or DT_UNKNOWN */
	const struct vfs_shown *shown; /* for vfs_peek_entry; NULL: nobody has looked yet */
};
/* Receiver of a directory's entries. */
struct vfs_listing {
	/* Takes an entry. False: no room, and the entry comes again next time. */
	bool (*each)(void *arg, const struct vfs_dirent *de);
	/* Estimates how many entries more fit. 0 ends the listing: never before the
	 * first entry. NULL: unknown. */
	unsigned (*expect)(void *arg);
	void *arg;
	bool looks; /* each calls vfs_peek_entry for most entries */
};
/* Streams entries after cookie (0: from the start; "." and ".." come with cookies of their own, and
 * ".." of the root is the root). *eof: the end was reached. Costs what it returns. The cookie
 * verifier is the caller's business: cookies are the file system's own and stay good while the
 * directory changes. -EINVAL: a cookie that the file system does not take. */
int vfs_readdir(struct vfs_ctx *ctx, struct vfs_node *dir, uint64_t cookie,
		const struct vfs_listing *to, bool *eof);

int vfs_statfs(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_statfs *out);
/* True if two names in the directory n that differ in case only are one. case_insensitive of
 * vfs_statfs is what the type of file system says; here the directory is asked, too. */
bool vfs_folds_case(struct vfs_ctx *ctx, struct vfs_node *n);
/* Like vfs_folds_case(), for a directory that is open to be read. */
bool vfs_dir_folds_case(int fd);

#endif
