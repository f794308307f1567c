/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of one READDIR while it grows: each entry has its attributes, or an error in their
 * place. */
#ifndef RN_NFS4_ATTR_LISTING_H
#define RN_NFS4_ATTR_LISTING_H

#include "nfs4/attr/source.h"
#include "nfs4/pseudo/pseudo.h"

struct nfs4_listing {
	struct nfs4_compound *c; /* its current filehandle is the directory */
	struct nfs4_bitmap want;
	bool wants_error; /* true if rdattr_error is requested */
	bool wants_file;  /* true if an attribute is requested that the directory does not hold */
	bool wants_fs;
	bool wants_node;   /* true if an attribute needs more than handle and struct vfs_attr */
	size_t start, end; /* positions in c->out where entries begin, and that they may reach */
	uint32_t dircount, dir_left; /* bytes of dircount, and those left of it */
	uint32_t entries;
	int status; /* error that ends the list early; NFS4_OK if it ended for lack of room */
	bool fs_known;
	uint64_t fs_of; /* fsid of the file system that fs describes */
	struct vfs_statfs fs;
};

/* The caller sets start, end, dircount and dir_left. */
void nfs4_listing_init(struct nfs4_listing *l, struct nfs4_compound *c,
		       const struct nfs4_bitmap *want);

/* Entries of average size that there is room for. */
unsigned nfs4_list_expect(const struct nfs4_listing *l);
/* False: there was no room, or status has the error. cookie goes to the client. */
bool nfs4_list_dirent(struct nfs4_listing *l, const struct vfs_dirent *de, uint64_t cookie);
bool nfs4_list_pseudo(struct nfs4_listing *l, const struct nfs4_pseudo_entry *e);

#endif
