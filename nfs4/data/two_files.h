/* SPDX-License-Identifier: BSD-2-Clause */
/* The beginning and the end of operations that read the file of the saved filehandle and write that
 * of the current one: COPY and CLONE. */
#ifndef RN_NFS4_DATA_TWO_FILES_H
#define RN_NFS4_DATA_TWO_FILES_H

#include "nfs4/compound.h"
#include "nfs4/state/stateid_check.h"
#include "vfs/copy.h"

struct nfs4_two_files {
	struct nfs4_stateid from_sid, to_sid;
	struct vfs_copy copy; /* offsets and count are decoded */
	struct nfs4_io_right from, to;
};

/* Decodes two stateids, two offsets and the count, which begin the arguments of both operations. */
void nfs4_get_two_files(struct xdr_in *in, struct nfs4_two_files *t);

/* Checks both filehandles and both stateids, and fills in the rest of t->copy, but done. After
 * NFS4_OK nfs4_two_files_end() follows. */
int nfs4_two_files_begin(struct nfs4_compound *c, struct nfs4_two_files *t);
/* The same for the destination alone, of a copy from another server. */
int nfs4_destination_begin(struct nfs4_compound *c, struct nfs4_two_files *t);
void nfs4_two_files_end(struct nfs4_two_files *t);

#endif
