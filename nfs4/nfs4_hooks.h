/* SPDX-License-Identifier: BSD-2-Clause */
/* A call of callbacks to attributes, a part above them; nfs4/nfs4_program.c, which knows all parts, sets it on the server. */
#ifndef RN_NFS4_NFS4_HOOKS_H
#define RN_NFS4_NFS4_HOOKS_H

#include <stdint.h>

#include "nfs4/nfs4_proto.h"

struct vfs_attr;
struct vfs_fh;
struct xdr_out;

/* Calls set on the server. */
struct nfs4_hooks {
	/* Puts a fattr4 of the attributes in mask (words of a bitmap4), which fh and attr tell. fh may be
	 * NULL if filehandle is not among them. */
	void (*put_attrs)(struct xdr_out *x, const uint32_t mask[NFS4_ATTR_WORDS],
			  const struct vfs_fh *fh, const struct vfs_attr *attr);
};

#endif
