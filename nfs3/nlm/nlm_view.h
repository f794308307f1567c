/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks of NLM's clients, for administrators. A walk has pauses as in nfs4/nfs4_view.h. */
#ifndef RN_NFS3_NLM_NLM_VIEW_H
#define RN_NFS3_NLM_NLM_VIEW_H

#include "vfs/view.h"

struct nfs3_server;

/* The locks that one owner has of a file, or its share. Valid during the call that shows it. */
struct nlm_view_owner {
	uint64_t id; /* unique in this run of the server */
	const uint8_t *addr;
	/* Bytes that the client has chosen: its name, and that of the owner. */
	const uint8_t *caller, *oh;
	uint32_t caller_len, oh_len;
	int32_t svid; /* process of the client, mostly */
	uint32_t export_id;
	struct vfs_fh fh;
	struct vfs_file *file;
	bool ranges_known; /* false: another thread is changing them */
	const struct vfs_view_ranges *ranges;
	/* Bits of a share (VFS_SHARE_*), which has no ranges. Both are 0 for locks. */
	uint8_t access, deny;
};

/* Position of a walk: zeroed at its beginning. Any values are safe. */
struct nlm_view_cursor {
	uint32_t bucket;
	uint64_t id; /* of the last owner shown in that bucket */
};

/* Goes on with a walk, for so many steps at most. show() returns false to end the call behind that owner. True: the
 * walk has come to its end. */
bool nlm_view(struct nfs3_server *s, struct nlm_view_cursor *at, unsigned steps,
	      bool (*show)(void *arg, const struct nlm_view_owner *o), void *arg);

/* Releases the locks of the owner with that id. Its client is not told. 0; -ENOENT; -EBUSY: a call of the owner does
 * not end, perhaps because of its file system. */
int nlm_release(struct nfs3_server *s, uint64_t id);

#endif
