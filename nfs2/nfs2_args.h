/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of NFSv2's arguments and their decoding, by the rules of nfs3/nfs3_args.h. */
#ifndef RN_NFS2_NFS2_ARGS_H
#define RN_NFS2_NFS2_ARGS_H

#include "nfs2/nfs2_proto.h"
#include "nfs3/nfs3_args.h"
#include "vfs/packed.h"

struct nfs2_fh_args {
	struct vfs_packed_fh fh;
};

struct nfs2_dirop_args {
	struct vfs_packed_fh dir;
	struct nfs3_name name;
};

struct nfs2_sattr {
	struct vfs_setattr set;
	uint32_t type; /* S_IFMT bits of the mode; 0: none */
	bool bad;      /* -EINVAL for values that XDR allows and no file can have */
};

void nfs2_get_fh(struct xdr_in *x, struct vfs_packed_fh *fh);
void nfs2_get_dirop(struct xdr_in *x, struct nfs2_dirop_args *a);
void nfs2_get_sattr(struct xdr_in *x, struct nfs2_sattr *a);

bool nfs2_decode_fh_args(struct xdr_in *x, void *args);
bool nfs2_decode_dirop(struct xdr_in *x, void *args);

#endif
