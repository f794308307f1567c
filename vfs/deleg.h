/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delegations of regular files (RFC 8881 section 10.4, RFC 7530 section 10.4) and of directories (RFC
 * 8881 section 10.9): who has one, and whose use of a file stands against it. A read delegation says
 * that nobody else changes the file, a write delegation that nobody else uses it. Directories have read
 * delegations only: nobody else changes entries or attributes of the directory itself.
 *
 * vfs/'s own operations look for delegations of others before they do anything, and so cover callers
 * of all protocols. They fail with -RN_EDELEG, after the holders have been asked to return them. A
 * delegation is never given while an operation that would change the file is under way, and none
 * begins while somebody else has one: nothing has to be repaired afterwards.
 *
 * The holder of a directory's delegation may be told of changes afterwards instead (section 10.9.2):
 * struct vfs_dir_notification. A change passes if all others' delegations take notifications of its kind.
 *
 * All functions are thread-safe; none waits for a client.
 */
#ifndef RN_VFS_DELEG_H
#define RN_VFS_DELEG_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "vfs/file_state.h"

enum vfs_deleg_type { VFS_DELEG_READ = 1, VFS_DELEG_WRITE = 2 };

/* Kinds of changes of a directory that its holders may be told of, and what they are told with them. */
enum vfs_notification {
	VFS_NOTIFY_ADD =
		1, /* an entry was made: a new file, a link, or one from another directory */
	VFS_NOTIFY_REMOVE = 2, /* an entry has gone, perhaps to another directory */
	VFS_NOTIFY_RENAME = 4, /* an entry has another name */
	VFS_NOTIFY_ATTRS =
		8, /* attributes of the directory, but none that decides who may read it */
	VFS_NOTIFY_ENTRY = 16, /* not a kind: handle and attributes of new entries are told, too */
};
#define VFS_NOTIFY_ENTRIES (VFS_NOTIFY_ADD | VFS_NOTIFY_REMOVE | VFS_NOTIFY_RENAME)

/* Holders of one directory's delegations that are told; further ones get delegations without. */
#define VFS_NOTIFY_HOLDERS 64u

/* A change of a directory, which has been made. */
struct vfs_dir_notification {
	enum vfs_notification what;
	const void *client; /* vfs_ctx.client of the one who has made it */
	const char *name;   /* of the entry, NUL-terminated; VFS_NOTIFY_RENAME: before */
	const char *to;	    /* the new name of what was renamed (RENAME, ADD); else NULL */
	bool replaced;	    /* another entry of the new name has gone with it (ADD, RENAME) */
	/* Handle of the new entry, which is below export_id, and its attributes; NULL: not known. */
	const struct vfs_fh *fh;
	const struct vfs_attr *attr;
	uint32_t export_id;
	const struct vfs_attr *dir; /* attributes of the directory; NULL: not known */
};

struct vfs_deleg;
struct vfs_deleg_ops {
	/*
	 * Somebody else wants to use the file. Called at most once for each time that the delegation
	 * is given, without locks of vfs/, on any thread that calls into vfs/ and perhaps before
	 * vfs_deleg_give has returned. Must not wait, nor call vfs_deleg_end, nor take a lock that is
	 * held when vfs_deleg_end is called or around other calls of vfs/.
	 */
	void (*recall)(struct vfs_deleg *d);
	/*
	 * A change of a kind in d->dir_notify has been made. Called in the order of the changes, by the
	 * holder's own too (but not of attributes), on the thread that has made it. Like recall(); other
	 * changes of the directory wait meanwhile. May be NULL if no delegation takes notifications.
	 */
	void (*tell)(struct vfs_deleg *d, const struct vfs_dir_notification *notification);
};

/* Lies in the protocol's object, and must not move from give to end. */
struct vfs_deleg {
	/* Set before vfs_deleg_give: */
	const struct vfs_deleg_ops *ops;
	const void *client; /* its holder: compared with vfs_ctx.client, never followed; not NULL */
	enum vfs_deleg_type type;
	/* Kinds of enum vfs_notification that the holder is told of. vfs_deleg_give may clear it; the holder
	 * may clear it at any time: from then on, changes recall the delegation. */
	_Atomic unsigned notify_kinds;
	/* Set by vfs/: */
	struct vfs_file *file; /* with a reference while it is given; NULL before and after */
	bool recalled;	       /* recall() was called, or is about to be */
	int64_t recalled_at;   /* before recall(), by rn_now_coarse_seconds() */
	/* Before recall(), or later if a local process comes: seconds since the recall after which the other
	 * one goes on in any case, so that the delegation should have been revoked by then. 0: it
	 * waits until the delegation ends. */
	_Atomic unsigned within_s;
	bool late; /* recalled after a local process had changed the file, which waited for nothing */
	bool leased;	  /* its file has a lease of the kernel, and with it a descriptor */
	unsigned calling; /* calls of ops that are running */
	bool notifies;	  /* given with notifications */
	uint64_t told;	  /* number of the last change that tell() was called for */
	LIST_ENTRY(vfs_deleg) link;
};

/*
 * Gives d->client a delegation of n's file. Nothing is durable. 0, or
 * -RN_ENOTNOW: not now. Something of somebody else stands against it: a share, a lock, a delegation, a
 *	change under way; or the client has one already, or the last one that was recalled has
 *	ended less than vfs_config.deleg_quiet_seconds ago.
 * -EOPNOTSUPP: never for this file. It is neither a regular file nor a directory, or local processes
 *	may change it (a write delegation: use it) and the kernel would not tell.
 * -ENOMEM.
 * Where local processes may use the file, data descriptors of n are closed, if only the caller has a
 * reference of n. A write delegation is not given while more than one is open.
 */
int vfs_deleg_give(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_deleg *d);
/* False if vfs_deleg_give would fail now for ctx->client, as far as that can be told without a wait.
 * For calls that must move to another thread if a delegation is to be given. */
bool vfs_deleg_possible(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_deleg_type type);
/* The delegation was returned or revoked: those who wait may go on. Nothing happens to one that is
 * not given. When it returns, recall() is not running and will not be called. */
void vfs_deleg_end(struct vfs_deleg *d);

/* Has the delegation of f recalled although nobody is waiting for the file. Nothing happens to one that is not
 * given any more, or is being recalled. The caller keeps f and d, and holds no lock. */
void vfs_deleg_ask_back(struct vfs_file *f, struct vfs_deleg *d);

/* Descriptors that the kernel's leases of delegated files take, and may take. */
struct vfs_lease_usage {
	unsigned used, most;
};
struct vfs_lease_usage vfs_lease_usage(const struct vfs *vfs);

/*
 * Calls found(arg, d) if another client than ctx->client has a write delegation of n's file, recalled or
 * not: its attributes may be those of before the holder's last changes. found() runs under a lock of
 * vfs/: it may count a reference of the object that d lies in, and nothing more. One atomic load while
 * nobody has any.
 */
void vfs_deleg_writer(struct vfs_ctx *ctx, struct vfs_node *n,
		      void (*found)(void *arg, struct vfs_deleg *d), void *arg);

/* True if ctx->client has a delegation of n that was recalled after a local process had changed the file. One atomic load while
 * nobody has such a one. */
bool vfs_deleg_is_late(struct vfs_ctx *ctx, const struct vfs_node *n);

/*
* reclaiming is true while clients may have delegations of an earlier run that they have not reclaimed yet, nobody knows
 * of which files. Until then each change of a regular file is refused with -RN_EDELEG, except of
 * files that somebody has open to write: nobody else had a delegation of those. Opens are the
 * protocol's business. Callable under locks.
 */
void vfs_deleg_reclaiming(struct vfs *vfs, bool reclaiming);

/* nfs_only was taken from an export (vfs/export.h): recalls all delegations that were given without
 * regard to local processes, below whichever export. */
void vfs_deleg_recall_unguarded(struct vfs *vfs);

enum vfs_deleg_use {
	VFS_USE_READ,  /* data */
	VFS_USE_WRITE, /* data, size, attributes, links, names, entries */
};
/* May ctx->client use the file like that? 0, or -RN_EDELEG: others have delegations in the way, and
 * have been asked to return them. One atomic load while nobody has any. */
int vfs_deleg_check(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_deleg_use use);

#endif
