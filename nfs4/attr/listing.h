/* SPDX-License-Identifier: BSD-2-Clause */
/* One READDIR's list while it grows: an entry with its attributes, or with why it has none. */
#ifndef RN_NFS4_ATTR_LISTING_H
#define RN_NFS4_ATTR_LISTING_H

#include "nfs4/attr/source.h"
#include "nfs4/pseudo/pseudo.h"

struct nfs4_listing {
	struct nfs4_compound *c; /* whose current filehandle is listed */
	struct nfs4_bitmap want;
	bool wants_error; /* rdattr_error is asked for */
	bool wants_file;  /* something is asked for that the directory itself does not know */
	bool wants_fs;
	bool wants_node;   /* something that takes more than handle and attributes */
	size_t end;	   /* position in c->out that entries may reach */
	uint32_t dir_left; /* of dircount */
	uint32_t entries;
	int status; /* why the list ends early, if not for want of room */
	bool fs_known;
	uint64_t fs_of; /* the fsid that fs is of */
	struct vfs_statfs fs;
};

/* end and dir_left are the caller's to set. */
void nfs4_listing_init(struct nfs4_listing *l, struct nfs4_compound *c,
		       const struct nfs4_bitmap *want);

/* False: there was no room, or status says what else. cookie is what the client is told. */
bool nfs4_list_dirent(struct nfs4_listing *l, const struct vfs_dirent *de, uint64_t cookie);
bool nfs4_list_pseudo(struct nfs4_listing *l, const struct nfs4_pseudo_entry *e);

#endif
