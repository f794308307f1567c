/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What NFSv4 clients hold, for administrators. Tables are walked in pieces of some hundred entries, and
 * no lock is held while a state is shown. A walk may pause, and goes on behind the last state that it has shown:
 * what is held from its beginning to its end is shown once, and what comes or goes meanwhile at most once.
 */
#ifndef RN_NFS4_NFS4_VIEW_H
#define RN_NFS4_NFS4_VIEW_H

#include "vfs/view.h"

struct nfs4_server;

enum nfs4_view_kind { NFS4_VIEW_OPENS, NFS4_VIEW_LOCKS, NFS4_VIEW_DELEGATIONS };

/* An open, a delegation, or the locks that one lock-owner has of a file. Valid during the call that shows it. */
struct nfs4_view_state {
	uint64_t id; /* unique in this run of the server: the last 8 bytes of its stateid */
	uint64_t clientid;
	bool sessions; /* a client of minor version 1 or 2 */
	/* Bytes that the client has chosen: its name, and that of the owner (no delegation has one). */
	const uint8_t *client, *owner;
	uint32_t client_len, owner_len;
	uint32_t export_id; /* export that it was got through */
	struct vfs_fh fh;
	struct vfs_file *file;
	uint64_t age_s;
	bool revoked; /* the client has not freed its stateid yet, and has nothing else of it */
	/* Opens: bits of VFS_SHARE_*. False: another thread is changing them. */
	bool share_known;
	uint8_t access, deny;
	/* Locks. False: as above. */
	bool ranges_known;
	const struct vfs_view_ranges *ranges;
	/* Delegations. */
	bool directory, writing;
	bool recalled;
	uint64_t recalled_s; /* seconds since the recall */
};

struct nfs4_view_query {
	enum nfs4_view_kind kind;
	uint64_t clientid; /* 0: of all clients */
	/* Shows a state. False ends the call behind it. */
	bool (*show)(void *arg, const struct nfs4_view_state *st);
	void *arg;
};

/* Where a walk is: zeroed at its beginning. Any values are safe. */
struct nfs4_view_place {
	uint32_t client; /* number of the client under way, or of the last one */
	uint32_t entry;	 /* the first entry of its table that was not looked at */
};

/* Goes on with a walk, for so many pieces at most. True: it has come to its end. */
bool nfs4_view(struct nfs4_server *s, const struct nfs4_view_query *q, struct nfs4_view_place *at,
	       unsigned pieces);

#endif
