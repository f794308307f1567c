/* SPDX-License-Identifier: BSD-2-Clause */
/* component4: a name from the wire. Names are stored as bytes, UTF-8 or not, as all local processes
 * do. fs_charset_cap reports that names which are not UTF-8 exist. */
#ifndef RN_NFS4_NAMES_NFS4_NAME_H
#define RN_NFS4_NAMES_NFS4_NAME_H

#include "nfs4/compound.h"
#include "nfs4/nfs4_proto.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"
#include "vfs/vfs.h"

struct nfs4_name {
	uint32_t len;	   /* length on the wire; bytes is unset if over NFS4_NAME_MAX */
	const char *bytes; /* in the message or the arena; not NUL-terminated */
};

void nfs4_get_name(struct xdr_in *x, struct nfs4_name *out);

/* NFS4_OK; NFS4ERR_INVAL: empty; NFS4ERR_NAMETOOLONG; NFS4ERR_BADCHAR: NUL or '/' inside;
 * NFS4ERR_BADNAME: "." or "..". */
int nfs4_name_check(const struct nfs4_name *name);
/* nfs_check_boundary() for a name of dir, in the current export: 0 or -errno. */
int nfs4_name_check_boundary(struct nfs4_compound *c, struct vfs_node *dir,
			     const struct nfs4_name *name);
/*
 * Around a change in ctx that takes a name away, in a loop until no courtesy client's share keeps the name. cf lives as long as
 * the loop. nfs4_take_again: rc is the change's result; true: it is to be made again. *status: NFS4_OK: the change has ended
 * with rc; NFS4ERR_FILE_OPEN: another client's share keeps the name (RFC 8881 section 18.25.4); NFS4ERR_DELAY.
 */
void nfs4_take_begin(struct vfs_ctx *ctx, struct vfs_conflict *cf);
bool nfs4_take_again(struct nfs4_compound *c, struct vfs_ctx *ctx, int rc, int *status);

/* change_info4: a directory's change attribute before and after an operation. A client that is told
 * the two as atomic, and has the first one cached, keeps what it knows of the directory. */
#define NFS4_CINFO_SIZE (4u + 8u + 8u) /* bytes */

/* Zeroes if the attributes could not be read. */
static inline void nfs4_put_cinfo(struct xdr_out *x, const struct vfs_dir_change *change)
{
	xdr_put_bool(x, change->known && change->atomic);
	xdr_put_u64(x, change->known ? change->before.change : 0);
	xdr_put_u64(x, change->known ? change->after.change : 0);
}

#endif
