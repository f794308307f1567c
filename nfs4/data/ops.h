/* SPDX-License-Identifier: BSD-2-Clause */
/* Data of files: the operations of this folder, for the table (nfs4/op_table.h). */
#ifndef RN_NFS4_DATA_OPS_H
#define RN_NFS4_DATA_OPS_H

#include "nfs4/compound.h"

struct nfs4_commit_args {
	uint32_t todo;
};
void nfs4_decode_commit(struct nfs4_compound *c, void *args);
int nfs4_commit(struct nfs4_compound *c, void *args);

struct nfs4_read_args {
	uint32_t todo;
};
void nfs4_decode_read(struct nfs4_compound *c, void *args);
int nfs4_read(struct nfs4_compound *c, void *args);

int nfs4_readlink(struct nfs4_compound *c, void *args);

struct nfs4_write_args {
	uint32_t todo;
};
void nfs4_decode_write(struct nfs4_compound *c, void *args);
int nfs4_write(struct nfs4_compound *c, void *args);

struct nfs4_allocate_args {
	uint32_t todo;
};
void nfs4_decode_allocate(struct nfs4_compound *c, void *args);
int nfs4_allocate(struct nfs4_compound *c, void *args);

struct nfs4_deallocate_args {
	uint32_t todo;
};
void nfs4_decode_deallocate(struct nfs4_compound *c, void *args);
int nfs4_deallocate(struct nfs4_compound *c, void *args);

struct nfs4_io_advise_args {
	uint32_t todo;
};
void nfs4_decode_io_advise(struct nfs4_compound *c, void *args);
int nfs4_io_advise(struct nfs4_compound *c, void *args);

struct nfs4_seek_args {
	uint32_t todo;
};
void nfs4_decode_seek(struct nfs4_compound *c, void *args);
int nfs4_seek(struct nfs4_compound *c, void *args);

#endif
