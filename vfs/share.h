/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Share reservations (RFC 7530 section 9.9, RFC 8881 section 9.7): what a client opened a file for,
 * and what it denies others meanwhile. A struct vfs_share lies in the caller's open state, one for
 * each {open-owner, file}; between open and close it belongs to the table and must not move. The
 * cost of each call does not depend on how many shares a file has; only to name the one that is in
 * the way, on a refusal, may some be walked.
 *
 * As long as a file has a share, its data survives the removal of its last link, and its handles
 * resolve: the last link's removal by this server pins the inode with a descriptor. Against removal
 * by others (a local process), as many open files are pinned beforehand as the budget of
 * descriptors (vfs_config.max_fds) has room for.
 *
 * Calls with one share must not run at the same time: they are its owner's to order.
 */
#ifndef RN_VFS_SHARE_H
#define RN_VFS_SHARE_H

#include <sys/queue.h>

#include "vfs/file_state.h"

/* Bits of access and deny: as OPEN4_SHARE_ACCESS_* and _DENY_* have them. */
enum vfs_share_bits {
	VFS_SHARE_NONE = 0,
	VFS_SHARE_READ = 1,
	VFS_SHARE_WRITE = 2,
	VFS_SHARE_BOTH = 3
};

struct vfs_share {
	struct vfs_file *file; /* with a reference while it is open, else NULL */
	struct vfs_holder *holder;
	uint8_t access, deny;
	bool advisory; /* deny is for opens, not for reads and writes */
	/* vfs/'s own */
	const void *client; /* vfs_ctx.client of the call that opened it */
	LIST_ENTRY(vfs_share) link;
};

/* Access and deny bits of a share to be opened, and its holder (may be NULL). */
struct vfs_share_request {
	struct vfs_holder *holder;
	uint8_t access, deny;
};

/*
 * True if a share may deny that. Where other servers have the same files (vfs_config.shared), none may deny anything: their clients
 * would read and write meanwhile.
 */
bool vfs_share_may_deny(const struct vfs *vfs, uint8_t deny);

/*
 * Opens: access is not 0. The permission of the file's mode is not checked here: see
 * vfs_open_check, which (or vfs_getattr) has also just said that the file is there: one whose last
 * link goes meanwhile was opened before. -RN_ESHARE: c (may be NULL) says whose share is in the
 * way; nobody's, if none may deny that. -RN_EDELEG: another client's delegation is. -EISDIR, -EINVAL: no regular file.
 */
int vfs_share_open(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_share *s,
		   const struct vfs_share_request *r, struct vfs_conflict *c);
/* Would a share with these bits be refused because of others, those of the same owner included? 0 or
 * -RN_ESHARE, with c as above. Recalls nothing. */
int vfs_share_check(struct vfs_file *f, uint8_t access, uint8_t deny, struct vfs_conflict *c);
/* Sets the bits of an open share to others: an upgrade (a further OPEN of the same owner: the union
 * of both), which may fail as an open does and changes nothing then, or a downgrade, which cannot.
 * access may be 0 here: nothing is allowed then, but the file is still open. */
int vfs_share_change(struct vfs_share *s, uint8_t access, uint8_t deny, struct vfs_conflict *c);
/* Makes an open share advisory; it denies nothing so far. */
void vfs_share_advise(struct vfs_share *s);
/* Ends the share; the node's data goes with the last one if it has no link. Does nothing to one
 * that is not open. */
void vfs_share_close(struct vfs_share *s);
/* True if the end of the open share s closes a descriptor of its file now: the disk may be waited
 * for, if the file has no link left. */
bool vfs_share_pins(const struct vfs_share *s);

/* True if the end of the open share s, of node n, lets its descriptors for writing go. */
bool vfs_share_ends_writing(const struct vfs_share *s, const struct vfs_node *n);
/* Closes the node's descriptors for writing after such an end, so that the server can run a program that a client
 * has stored. Data that are not on disk are flushed first, by a thread. They stay if somebody else uses the node. */
void vfs_share_end_writing(struct vfs_node *n);

/*
 * May somebody read or write (bits as above) who has no share for it: special stateids (RFC 8881
 * section 8.2.3), NFSv3's READ, WRITE and SETATTR of the size? -RN_ESHARE: a share of somebody
 * else than self (NULL: nobody) denies it. One atomic load as long as no client denies anything
 * anywhere.
 */
int vfs_share_check_io(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_share *self,
		       uint8_t access, struct vfs_conflict *c);

/* True if any client denies others anything. */
bool vfs_share_any_denying(const struct vfs *vfs);
/*
 * May a name of that file, which may be NULL, be removed or replaced? -RN_ESHARE, with ctx->in_way: another client has the file open and
 * denies others to write it (RFC 8881 section 18.25.4). Shares of NLM and of the caller's own keep no name.
 */
int vfs_share_check_name(const struct vfs_ctx *ctx, struct vfs_file *f);

/* True if nobody has the file open beside the caller, who has own shares of it. */
bool vfs_share_is_only(struct vfs_ctx *ctx, struct vfs_node *n, unsigned own);

#endif
