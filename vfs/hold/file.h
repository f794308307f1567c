/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct vfs_file, and the table of them. A file is found under its
 * shard's lock; all that clients hold of it is under its own.
 *
 * Lock order: vfs_file.lock and vfs_file_shard.lock are leaves, never held together with each other
 * or with a lock of vfs/base/instance.h. Under vfs_file.lock the kernel's calls for leases are made, and on local
 * file systems those for byte-range locks, which only touch memory; holders' ref is called, and
 * vfs_lease_table.lock (vfs/hold/lease.h) is taken. vfs_file.mirror_turn comes before it; fibers wait for that one.
 */
#ifndef RN_VFS_FILE_H
#define RN_VFS_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/fiber.h"
#include "vfs/deleg.h"
#include "vfs/file_state.h"
#include "vfs/hold/range.h"
#include "vfs/node/hooks.h"
#include "vfs/node/node.h"
#include "vfs/share.h"
#include "vfs/view.h"

/*
 * Files whose delegations were recalled lately, which are not to be delegated again for a while: a table of fixed
 * size, by the hash of the file. It remembers four files of a bucket by 32 bits of their hash. If more are
 * quiet at a time, all files of the bucket are. So a file that was never recalled is quiet only beside very many
 * that were, or by a chance of one in four thousand million.
 *
 * Times are seconds of rn_now_coarse_seconds(). Any number of threads may use it at the same time.
 */
#define VFS_QUIET_BUCKETS 1024u
#define VFS_QUIET_WAYS 4u

/* All zero at first. */
struct vfs_quiet {
	struct vfs_quiet_bucket {
		_Atomic uint64_t
			file[VFS_QUIET_WAYS]; /* part of the hash, and since when; 0: none */
		_Atomic uint32_t all_since;   /* 0: not all */
	} bucket[VFS_QUIET_BUCKETS];
};

/* A time that lies so many seconds back ends it; 0: nothing is ever quiet. */
struct vfs_quiet_time {
	uint32_t now, lasts;
};

/* The file is quiet from now on. */
void vfs_quiet_begin(struct vfs_quiet *q, uint64_t hash, struct vfs_quiet_time t);
bool vfs_quiet_is(const struct vfs_quiet *q, uint64_t hash, struct vfs_quiet_time t);

#define VFS_FILE_SHARDS 64u
#define VFS_FILE_BUCKETS 1024u /* per shard */
#define VFS_MAX_LOCKS 1000000u
#define VFS_LOCK_WAIT_SECONDS 90u
#define VFS_DELEG_QUIET_SECONDS 90u
#define VFS_CHANGE_SLOTS 4096u

/* Uses that a file's descriptor is good for. */
enum vfs_held {
	VFS_HELD_NONE,
	VFS_HELD_PIN,  /* O_PATH: keeps the inode */
	VFS_HELD_READ, /* carries the mirror of locks; read locks only */
	VFS_HELD_WRITE /* carries the mirror of all locks */
};

/*
 * The kernel keeps the locks of a file in a list, and walks it for each call. So when the mirror
 * has many pieces, it is made coarser: locks are widened to the next multiples of a size. The
 * pieces are counted as far as they are known.
 */
struct vfs_lock_granularity {
	uint8_t shift; /* log2 of the size; 0: exact */
	uint32_t pieces;
	uint32_t coarser_at; /* pieces in the kernel; 0: not yet determined */
};

LIST_HEAD(vfs_share_list, vfs_share);
LIST_HEAD(vfs_deleg_list, vfs_deleg);
LIST_HEAD(vfs_opener_list, vfs_opener);

/* Delegations of a file. A client has at most one, and if one is for writing there is no other. */
struct vfs_delegs {
	struct vfs_deleg_list given, recalled;
	bool writing;	       /* there is one for writing */
	pthread_cond_t called; /* a recall() or tell() has returned */
	/* Set once for a directory, when a holder is to be told of changes; stays with the file. */
	struct vfs_dir_notifier *_Atomic notifier;
};

struct vfs_dir_notifier; /* vfs/hold/deleg_table.h */

/* One that waits for a lock: vfs/hold/lock.c. */
struct vfs_waiter {
	struct vfs_waiter *next;
	uint64_t id; /* not 0 */
	struct vfs_span span;
	int64_t asked_at; /* rn_now_ms() */
	uint32_t gap;	  /* milliseconds between the last two times that it asked */
	uint32_t asked;
	uint8_t type;
	bool in_order;			/* of the last notice */
	int64_t told_at;		/* 0: not since it asked last */
	struct vfs_lock_notice *notice; /* or NULL */
};

struct vfs_waiters {
	struct vfs_waiter *first; /* the waiter that came first */
	uint32_t count;
	uint32_t notices; /* waiters with a notice */
	/* Notices whose calls are due when the file's lock is given up (vfs_wait_unlock). */
	struct vfs_lock_notice *told, *ended;
};

struct vfs_file {
	struct vfs *vfs;
	LIST_ENTRY(vfs_file) link; /* link in a bucket */
	unsigned refs;		   /* under the shard's lock */
	uint64_t sweep;		   /* the last that has met it; under the shard's lock */
	unsigned mend_round;	   /* the last of vfs_mirror_mend that has; the same */
	uint32_t number;	   /* vfs_file_number() */
	uint64_t hash;
	unsigned slot; /* vfs_file_slot */
	bool is_dir;
	bool remote;		    /* the file system is not local (struct vfs_fs_traits) */
	struct rn_lock mirror_turn; /* of a remote file: vfs_mirror_begin */

	pthread_mutex_t lock; /* protects the members below */
	struct vfs_share_list shares;
	uint32_t nshares;
	uint32_t accessing[2], denying[2]; /* shares that have the bit: read, write */
	uint32_t advising[2];		   /* advisory ones of those that deny */
	struct vfs_delegs delegs;
	int lease_fd; /* vfs/hold/lease.h; -1: none */
	bool guarded; /* lease_fd is that of an open guard (vfs/hold/open_guard.h) */
	struct vfs_opener_list openers; /* local opens that wait; under vfs_guards.lock */
	uint32_t nopeners;		/* guarded by the same */
	uint64_t lease_sweep;		/* guarded by vfs_lease_table.lock, as the links */
	LIST_ENTRY(vfs_file) lease_link, watch_link;
	struct vfs_ranges ranges;
	struct vfs_waiters waiters;
	enum vfs_held held;
	int fd;	     /* -1: held is NONE */
	bool unheld; /* locked, and not mirrored */
	_Atomic bool
		surplus; /* the kernel may have more locked than clients: unlocking has failed */
	struct vfs_lock_granularity granularity;
	bool mirroring; /* mirror_turn is taken: no descriptor of locks is closed, no delegation given */

	/* Ids of the export and of the mount below it (struct vfs_handle) through which clients came to it first */
	uint32_t export_id, submount_id;
	uint64_t dev;
	uint8_t key_len;
	uint8_t key[]; /* the kernel's handle and its type */
};

/* Under f->lock. True if a client may come back to the file by its handle: what it holds of it can be given up by that only. */
static inline bool vfs_file_is_kept(const struct vfs_file *f)
{
	return f->nshares > 0 || !LIST_EMPTY(&f->delegs.given) || !LIST_EMPTY(&f->delegs.recalled);
}

LIST_HEAD(vfs_file_list, vfs_file);

struct vfs_file_shard {
	pthread_mutex_t lock;
	struct vfs_file_list bucket[VFS_FILE_BUCKETS];
};

/* Times of a slot of changes (vfs/hold/file_change.h), in nanoseconds of ctimes. */
struct vfs_change_times {
	_Atomic int64_t since; /* no change under way has set an earlier ctime */
	_Atomic int64_t
		told; /* the latest ctime, of fine ones, that was told while no change was under way */
	_Atomic uint64_t final; /* the last such ctime, and whose: vfs/hold/file_change.c */
};

struct vfs_files {
	struct vfs_file_shard shard[VFS_FILE_SHARDS];
	_Atomic uint64_t files, shares, denying, locks, waiters, held, unheld, surplus;
	_Atomic uint64_t delegs, delegs_writing, delegs_late;
	_Atomic uint64_t leases, guards; /* an open guard counts as a lease, too */
	_Atomic uint64_t sweeps;	 /* number of the last sweep */
	unsigned mend_round;		 /* for the one thread of vfs_mirror_mend */
	_Atomic bool reclaiming;	 /* vfs_deleg_reclaiming() */
	/* rn_now_ms(); 0: no reclaim has met a lock of the kernel's yet */
	_Atomic uint64_t left_behind_until;
	/* Calls of vfs_lock() under way, by vfs_lock_request.reclaim; counted if there is vfs_config.may_lock */
	_Atomic uint32_t locking[2];
	_Atomic uint32_t
		changing[VFS_CHANGE_SLOTS]; /* changes under way (vfs/hold/file_change.h) */
	struct vfs_change_times change_times[VFS_CHANGE_SLOTS];
	struct vfs_quiet recalled; /* by vfs_file.hash */
};

struct vfs_files *vfs_files_new(void);	      /* NULL: no memory */
void vfs_files_free(struct vfs_files *files); /* NULL is allowed */

/* A reference to the node's file if it is in the table, or NULL. */
struct vfs_file *vfs_file_find(const struct vfs_node *n);
/* Like vfs_file_find(), for the file with that handle, on that device. */
struct vfs_file *vfs_file_find_fh(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);
/* A sweep meets each file that is in the table all the time. */
struct vfs_file_sweep {
	struct vfs *vfs;
	uint64_t number;
	unsigned at; /* bucket of all shards */
};
void vfs_file_sweep_begin(struct vfs_file_sweep *s, struct vfs *vfs);
/* The next file, with a reference; NULL: that was all. */
struct vfs_file *vfs_file_sweep_next(struct vfs_file_sweep *s);
/* A file that has something to unlock, and was not met in that round, with a reference; NULL: there is no other. *at: 0 at first. */
struct vfs_file *vfs_file_next_surplus(struct vfs *vfs, unsigned *at, unsigned round);
/* True if a client may hold a share or a delegation of any file. */
bool vfs_file_any_kept(struct vfs *vfs);

/*
 * The one descriptor of a file that clients have open or locked: it keeps the inode when the last
 * link goes (vfs/hold/unlinked.h), and carries the mirror of its locks (vfs/hold/lock_mirror.c). It
 * is counted in the budget of descriptors, which must remain one for nodes: precautions may have a
 * quarter of it, what is needed half.
 */
#define VFS_PART_LOCKS 2u
#define VFS_PART_PRECAUTION 4u

/* True if one more file may hold a descriptor, out of 1/part of the budget. */
bool vfs_file_may_hold(struct vfs *vfs, unsigned part);
/* Under f->lock: gives fd (counted, from vfs_fd_openat) to the file, and returns the file's former
 * one for the caller to close, or -1. */
int vfs_file_hold(struct vfs_file *f, enum vfs_held held, int fd);
/* Under f->lock: surplus as in struct vfs_file. */
void vfs_file_set_surplus(struct vfs_file *f, bool surplus);
/* Under f->lock: takes the descriptor away if it is no longer needed, for the caller to close; -1:
 * none. */
int vfs_file_release(struct vfs_file *f);

/* Calls each(arg, fd) with the descriptor that clients' state keeps of f, under its lock. Nothing happens if there is
 * none, or the lock is not had soon. */
void vfs_view_file_fd(struct vfs_file *f, void (*each)(void *arg, int fd), void *arg);

/*
 * The mirror of clients' locks in the kernel (vfs/lock.h).
 *
 * A remote file's locks may take as long as another machine or process likes. So the functions below give f->lock back
 * for each call of the kernel's, and one caller at a time is between begin and end. Only that one adds ranges, takes them
 * away, or replaces the descriptor. A range is in the table from the moment that the kernel has it locked, and is taken out
 * before the kernel unlocks it: what the kernel has locked is never less than what clients hold.
 * Nothing ends the kernel's call before its time, neither its client's end nor that of the export or the lease: who takes
 * state away waits for busy of that state or for the turn, finds the range, and unlocks it.
 */
void vfs_mirror_begin(struct vfs_file *f);
void vfs_mirror_end(struct vfs_file *f);
/* Gives the file the descriptor that a lock of that type needs, if possible; called before f->lock
 * is taken. 0, or -RN_ELEASE: possible as soon as a local process has given up its lease; of a remote file also
 * -RN_EFULL: there is no descriptor, or -errno. What has to be
 * opened is opened on a thread that may block. */
int vfs_mirror_prepare(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file *f,
		       enum vfs_lock_type type);
/* The functions below are called under f->lock. Locks span for all clients: 0, -RN_EDENIED with c
 * filled: a local lock conflicts, or -ENOLCK: the file system refuses for another reason. */
int vfs_mirror_lock(struct vfs_file *f, enum vfs_lock_type type, const struct vfs_span *span,
		    struct vfs_conflict *c);
/* Unlocks the parts of span, which an owner has given up, that no other owner has locked. What the kernel refuses to unlock
 * stays locked there, is tried again with the file's next lock, and by vfs_mirror_mend. */
void vfs_mirror_unlock(struct vfs_file *f, const struct vfs_span *span);
/* Called once a second: unlocks what could not be unlocked before. The first call of the kernel's may take long. */
void vfs_mirror_mend(struct vfs *vfs);
/* Tests for a local lock in the way: 0, -RN_EDENIED or -ENOLCK. fd: the file's own, or any of the same file. f: the file whose lock is
 * held, or NULL. */
int vfs_mirror_test(struct vfs_file *f, int fd, enum vfs_lock_type type,
		    const struct vfs_span *span, struct vfs_conflict *c);

/* Makes the file of that device and key, with a reference. NULL: no memory, or there is one. */
struct vfs_file *vfs_file_make(struct vfs *vfs, uint64_t dev, const uint8_t *key, uint32_t len);
/* The way by which clients came to a file that another machine's server has handed over, and what it is here (vfs/hold/hold_moved.c). */
struct vfs_moved_file {
	uint32_t export_id, submount_id; /* as in struct vfs_handle */
	const uint8_t *key;		 /* as in struct vfs_file */
	uint32_t key_len;
	uint64_t dev; /* that of the mount if the file is gone */
	bool remote;
};
/* Looks for it, and fills dev and remote. -ENOENT: no such export or mount; -ESHUTDOWN: the file system has given this machine up; -EPROTO: no
 * handle; or -errno. */
int vfs_moved_find(struct vfs *vfs, struct vfs_moved_file *m);
/*
 * Locks again in the kernel what clients have of such a file, by a descriptor of its own. path_fd: the file (O_PATH). -RN_EDENIED: somebody else has
 * it locked; -RN_EFULL: no descriptor; or -errno. Nothing is locked then.
 */
int vfs_mirror_again(struct vfs_file *f, int path_fd);
/* Under f->lock: add a share or a range, which nothing is in the way of. */
void vfs_share_insert(struct vfs_file *f, struct vfs_share *s);
void vfs_lock_insert(struct vfs_lock_owner *o, struct vfs_range *r, const struct vfs_span *span,
		     uint8_t type);

/* Waiters for locks (vfs/hold/lock.c), under f->lock: forgets all of them. */
void vfs_wait_forget_all(struct vfs_file *f);
struct vfs_waiter *vfs_waiter_find(struct vfs_file *f, uint64_t id);
/* Adds a waiter at the end of the list. NULL: there are too many, or there is no memory. */
struct vfs_waiter *vfs_waiter_add(struct vfs_file *f, uint64_t id, int64_t now);
/* Gives w, which has none, the notice. */
void vfs_waiter_expect(struct vfs_file *f, struct vfs_waiter *w, struct vfs_lock_notice *n);
/* Gives up the file's lock, and makes the calls that are due. */
void vfs_wait_unlock(struct vfs_file *f);

#endif
