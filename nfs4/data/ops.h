/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data of files: the operations of this folder, for the table (nfs4/op_table.h). What an operation
 * needs while it waits lies with its arguments.
 */
#ifndef RN_NFS4_DATA_OPS_H
#define RN_NFS4_DATA_OPS_H

#include "nfs4/compound.h"
#include "nfs4/state/io.h"
#include "vfs/space.h"

/* From -errno of vfs/; nfs4_status_for makes of it what the operation may answer. */
int nfs4_data_status(const struct nfs4_compound *c, int rc);

struct nfs4_commit_args {
	uint64_t offset;
	uint32_t count; /* 0: to the end */
};
void nfs4_decode_commit(struct nfs4_compound *c, void *args);
int nfs4_commit(struct nfs4_compound *c, void *args);

struct nfs4_read_args {
	struct nfs4_stateid stateid;
	uint64_t offset;
	uint32_t count;
	struct nfs4_io_right right;
};
void nfs4_decode_read(struct nfs4_compound *c, void *args);
int nfs4_read(struct nfs4_compound *c, void *args);

int nfs4_readlink(struct nfs4_compound *c, void *args);

struct nfs4_write_args {
	struct nfs4_stateid stateid;
	uint64_t offset;
	uint32_t stable; /* enum vfs_stable has the same values */
	struct xdr_bulk data;
	struct nfs4_io_right right;
	uint64_t verifier; /* from before the data were written */
};
void nfs4_decode_write(struct nfs4_compound *c, void *args);
int nfs4_write(struct nfs4_compound *c, void *args);

/* ALLOCATE and DEALLOCATE */
struct nfs4_space_args {
	struct nfs4_stateid stateid;
	struct vfs_space space;
	struct nfs4_io_right right;
};
#define nfs4_allocate_args nfs4_space_args
#define nfs4_deallocate_args nfs4_space_args
void nfs4_decode_allocate(struct nfs4_compound *c, void *args);
int nfs4_allocate(struct nfs4_compound *c, void *args);
void nfs4_decode_deallocate(struct nfs4_compound *c, void *args);
int nfs4_deallocate(struct nfs4_compound *c, void *args);

struct nfs4_io_advise_args {
	struct nfs4_stateid stateid;
	uint64_t offset, count; /* count 0: to the end */
	uint32_t hints;		/* word 0 of the bitmap: bits IO_ADVISE4_* */
};
void nfs4_decode_io_advise(struct nfs4_compound *c, void *args);
int nfs4_io_advise(struct nfs4_compound *c, void *args);

struct nfs4_seek_args {
	struct nfs4_stateid stateid;
	uint64_t offset;
	uint32_t what;
};
void nfs4_decode_seek(struct nfs4_compound *c, void *args);
int nfs4_seek(struct nfs4_compound *c, void *args);

#endif
