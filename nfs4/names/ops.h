/* SPDX-License-Identifier: BSD-2-Clause */
/* Filehandles, names and directories that change: the operations of this folder, for the table
 * (nfs4/op_table.h). */
#ifndef RN_NFS4_NAMES_OPS_H
#define RN_NFS4_NAMES_OPS_H

#include "nfs4/compound.h"

struct nfs4_create_args {
	uint32_t todo;
};
void nfs4_decode_create(struct nfs4_compound *c, void *args);
int nfs4_create(struct nfs4_compound *c, void *args);

int nfs4_getfh(struct nfs4_compound *c, void *args);

struct nfs4_link_args {
	uint32_t todo;
};
void nfs4_decode_link(struct nfs4_compound *c, void *args);
int nfs4_link(struct nfs4_compound *c, void *args);

struct nfs4_lookup_args {
	uint32_t todo;
};
void nfs4_decode_lookup(struct nfs4_compound *c, void *args);
int nfs4_lookup(struct nfs4_compound *c, void *args);

int nfs4_lookupp(struct nfs4_compound *c, void *args);

struct nfs4_openattr_args {
	uint32_t todo;
};
void nfs4_decode_openattr(struct nfs4_compound *c, void *args);
int nfs4_openattr(struct nfs4_compound *c, void *args);

struct nfs4_putfh_args {
	uint32_t todo;
};
void nfs4_decode_putfh(struct nfs4_compound *c, void *args);
int nfs4_putfh(struct nfs4_compound *c, void *args);

int nfs4_putpubfh(struct nfs4_compound *c, void *args);

int nfs4_putrootfh(struct nfs4_compound *c, void *args);

struct nfs4_remove_args {
	uint32_t todo;
};
void nfs4_decode_remove(struct nfs4_compound *c, void *args);
int nfs4_remove(struct nfs4_compound *c, void *args);

struct nfs4_rename_args {
	uint32_t todo;
};
void nfs4_decode_rename(struct nfs4_compound *c, void *args);
int nfs4_rename(struct nfs4_compound *c, void *args);

int nfs4_restorefh(struct nfs4_compound *c, void *args);

int nfs4_savefh(struct nfs4_compound *c, void *args);

struct nfs4_secinfo_args {
	uint32_t todo;
};
void nfs4_decode_secinfo(struct nfs4_compound *c, void *args);
int nfs4_secinfo(struct nfs4_compound *c, void *args);

struct nfs4_secinfo_no_name_args {
	uint32_t todo;
};
void nfs4_decode_secinfo_no_name(struct nfs4_compound *c, void *args);
int nfs4_secinfo_no_name(struct nfs4_compound *c, void *args);

#endif
