/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte-range locks (RFC 7530 section 9, RFC 8881 section 9; NLM's are the same). A struct
 * vfs_lock_owner lies in the caller's lock state, one for each {lock-owner, file}: ranges of one
 * never conflict with each other, they replace, split and merge as POSIX has it. Each call costs
 * O(log n) in the number of ranges of the file, and what it changes of the owner's own.
 *
 * The union over all owners is mirrored to open-file-description locks of the kernel, so that local
 * processes (and other servers of the same files) see clients' locks, and theirs are in the way of
 * clients'. On a local file system (struct vfs_fs_traits) all servers' clients are this one's, so a lock that the kernel cannot have is
 * granted all the same. What lies beyond the kernel's largest offset (2^63 - 1) is not mirrored there. A file that
 * cannot be opened for writing (a read-only mount, a program that runs) has write locks mirrored as
 * read locks. Files for whose mirror there is no descriptor left in the budget are not mirrored.
 *
 * On any other file system another server may grant the same lock. So nothing is granted there
 * without the kernel's lock of that type and range.
 *
 * A range is offset and length; length UINT64_MAX is to the largest offset there is, whatever the
 * file's size. -EINVAL: length 0, or offset + length - 1 beyond UINT64_MAX. -EFBIG, of a file that is not on a local file
 * system: beyond 2^63 - 1, unless it is to the largest offset.
 *
 * Calls with one owner must not run at the same time. Calls for files with very many ranges, and those for
 * which a descriptor has to be opened, move from a thread that must not block.
 */
#ifndef RN_VFS_LOCK_H
#define RN_VFS_LOCK_H

#include "vfs/file_state.h"

struct vfs_treap;

struct vfs_lock_owner {
	struct vfs_file *file; /* with a reference from init to end */
	struct vfs_holder *holder;
	/* private to vfs/ */
	struct vfs_treap *ranges; /* in order of offset (vfs/hold/range.h) */
	uint32_t count;
};

/*
 * Word for a client that waits: its lock may be free. A notice belongs to the file's list from
 * vfs_lock_remember_waiter until exactly one of its calls, which takes it over. They are made without
 * locks of vfs/, on any thread that unlocks, perhaps under the protocol's locks around that call of
 * vfs/; they must not wait, nor call vfs/ but to put a file.
 */
struct vfs_lock_notice;
struct vfs_lock_notice_ops {
	/* Nobody holds a lock in the way any more. */
	void (*tell)(struct vfs_lock_notice *n);
	/* The client waits no more, or has asked again with another notice. */
	void (*end)(struct vfs_lock_notice *n);
};
struct vfs_lock_notice {
	const struct vfs_lock_notice_ops *ops;
	/* Owner of the request, whose own locks are not in the way; compared, never followed. */
	const struct vfs_lock_owner *owner;
	/* False: the request was refused for something whose end vfs/ does not see, such as a local
	 * process's lock. */
	bool held_by_client;
	/* True if the protocol takes the lock itself when it is told: a moment long the range is kept from
	 * those who came later, so that waiters have it in their order. */
	bool in_order;
	struct vfs_lock_notice *next; /* private to vfs/ */
};

/* A request for a lock. */
struct vfs_lock_request {
	enum vfs_lock_type type;
	uint64_t offset, length;
	/*
	 * Nonzero if the client will ask again until it gets the lock (READW_LT, WRITEW_LT, a blocking
	 * NLM_LOCK), under this number, which stands for owner and client (a hash of both, say).
	 * Those that wait are remembered in order of arrival (vfs_lock_remember_waiter), and one
	 * that has asked in vain a few times has the range kept free for its next call: others that
	 * would get in its way are refused, with no holder in the conflict. It is forgotten when it
	 * gets the lock, when it has not asked for vfs_config.lock_wait_seconds, or by
	 * vfs_lock_forget_waiter.
	 */
	uint64_t waiter;
	bool reclaim; /* the client had it before a restart */
};

/* Takes a reference of f. */
void vfs_lock_owner_init(struct vfs_lock_owner *o, struct vfs_file *f, struct vfs_holder *holder);
/* Unlocks all that is left, and puts the file. */
void vfs_lock_owner_end(struct vfs_lock_owner *o);
/* Unlocks all; the owner may go on. */
void vfs_lock_drop_all(struct vfs_lock_owner *o);
/* True if the owner has a range locked (LOCKS_HELD). */
bool vfs_lock_held(const struct vfs_lock_owner *o);

/*
 * Locks a range, or changes the type of what the owner has of it. n is a node of the owner's file
 * (whence the mirror's descriptor). -RN_EDENIED: c (may be NULL) has a conflicting range, the one
 * with the lowest offset whose holder does not give way (or of all, if all do). -RN_EDELEG: others have delegations in the way. -ENOLCK: too many locks altogether, or the kernel's.
 * -RN_EFULL: no descriptor for it. -RN_EGRACE: vfs_config.may_lock forbids it. -RN_EYIELDS: a reclaim is refused for a lock of the
 * kernel's, which may be one that the run before has left behind. Nothing has changed on failure.
 */
int vfs_lock(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_lock_owner *o,
	     const struct vfs_lock_request *r, struct vfs_conflict *c);
/* Waits until no call of vfs_lock() is under way that vfs_config.may_lock has permitted, with reclaim or without. Whoever forbids
 * locks calls it afterwards, and then knows that none is about to be granted. It takes as long as the file systems' lock calls do. */
void vfs_lock_settle(struct vfs *vfs, bool reclaim);
/* Unlocks what the owner has of a range, which may be nothing. -ENOMEM: a split found no
 * memory, and nothing has changed. Where the kernel does not unlock it, the owner has lost it all the same. The kernel is asked again
 * every second, and until then the range is free to this server's clients only. */
int vfs_unlock(struct vfs_ctx *ctx, struct vfs_lock_owner *o, uint64_t offset, uint64_t length);

/* Tests if vfs_lock would succeed. o may be NULL: an owner that has no locks of this file. 0,
 * -RN_EDENIED with c filled, or -ENOLCK: the kernel's. Whoever waits is not in the way of a test. */
int vfs_lock_test(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_lock_owner *o,
		  const struct vfs_lock_request *r, struct vfs_conflict *c);

/* Records that the request r is answered by a refusal, if its client waits. Apart from vfs_lock,
 * since a caller may try it several times before it answers. n (may be NULL) is taken over; it is
 * told at once if the lock has become free since. */
void vfs_lock_remember_waiter(struct vfs_file *f, const struct vfs_lock_request *r,
			      struct vfs_lock_notice *n);
/* Tells a waiter, if it has a notice, whatever is locked. */
void vfs_lock_tell_waiter(struct vfs_file *f, uint64_t waiter);
/* The client gave up (NLM_CANCEL), or its owner is gone. f may have no such waiter. */
void vfs_lock_forget_waiter(struct vfs_file *f, uint64_t waiter);

#endif
