/* SPDX-License-Identifier: BSD-2-Clause */
/* Filehandles, names and directories that change: the operations of this folder, for the table
 * (nfs4/op_table.h). */
#ifndef RN_NFS4_NAMES_OPS_H
#define RN_NFS4_NAMES_OPS_H

#include "nfs4/attr/attr.h"
#include "nfs4/compound.h"
#include "nfs4/names/name.h"

struct nfs4_create_args {
	uint32_t type; /* nfs_ftype4, or any other number */
	struct xdr_bulk text;
	uint32_t dev_major, dev_minor;
	struct nfs4_name name;
	struct nfs4_sattr attrs;
	/* Of the operation under way: a reference of each. */
	struct vfs_node *dir, *made;
	uint64_t change;
};
void nfs4_decode_create(struct nfs4_compound *c, void *args);
int nfs4_create(struct nfs4_compound *c, void *args);

int nfs4_getfh(struct nfs4_compound *c, void *args);

struct nfs4_link_args {
	struct nfs4_name name;
	uint64_t change; /* of the directory, before */
};
void nfs4_decode_link(struct nfs4_compound *c, void *args);
int nfs4_link(struct nfs4_compound *c, void *args);

struct nfs4_lookup_args {
	struct nfs4_name name;
};
void nfs4_decode_lookup(struct nfs4_compound *c, void *args);
int nfs4_lookup(struct nfs4_compound *c, void *args);

int nfs4_lookupp(struct nfs4_compound *c, void *args);

struct nfs4_openattr_args {
	bool create;
};
void nfs4_decode_openattr(struct nfs4_compound *c, void *args);
int nfs4_openattr(struct nfs4_compound *c, void *args);

struct nfs4_putfh_args {
	struct vfs_fh fh; /* len 0: one that cannot be ours */
};
void nfs4_decode_putfh(struct nfs4_compound *c, void *args);
int nfs4_putfh(struct nfs4_compound *c, void *args);

int nfs4_putpubfh(struct nfs4_compound *c, void *args);

int nfs4_putrootfh(struct nfs4_compound *c, void *args);

struct nfs4_remove_args {
	struct nfs4_name name;
	uint64_t change; /* of the directory, before */
};
void nfs4_decode_remove(struct nfs4_compound *c, void *args);
int nfs4_remove(struct nfs4_compound *c, void *args);

struct nfs4_rename_args {
	struct nfs4_name from, to;
	uint64_t from_change, to_change; /* of the directories, before */
};
void nfs4_decode_rename(struct nfs4_compound *c, void *args);
int nfs4_rename(struct nfs4_compound *c, void *args);

int nfs4_restorefh(struct nfs4_compound *c, void *args);

int nfs4_savefh(struct nfs4_compound *c, void *args);

struct nfs4_secinfo_args {
	struct nfs4_name name;
};
void nfs4_decode_secinfo(struct nfs4_compound *c, void *args);
int nfs4_secinfo(struct nfs4_compound *c, void *args);

struct nfs4_secinfo_no_name_args {
	bool parent; /* SECINFO_STYLE4_PARENT */
};
void nfs4_decode_secinfo_no_name(struct nfs4_compound *c, void *args);
int nfs4_secinfo_no_name(struct nfs4_compound *c, void *args);

#endif
