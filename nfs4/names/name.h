/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * component4: a name as it comes from the wire. Names are stored as the bytes that they are, UTF-8
 * or not, like every process on the server does (fs_charset_cap says so: names that are no UTF-8
 * exist).
 */
#ifndef RN_NFS4_NAME_H
#define RN_NFS4_NAME_H

#include "nfs4/proto.h"
#include "rpc/xdr_in.h"

struct nfs4_name {
	uint32_t len;	   /* the true length; longer than NFS4_NAME_MAX has no bytes */
	const char *bytes; /* in the message or the arena; not NUL-terminated */
};

void nfs4_get_name(struct xdr_in *x, struct nfs4_name *out);

/* NFS4_OK; NFS4ERR_INVAL: empty; NFS4ERR_NAMETOOLONG; NFS4ERR_BADCHAR: NUL or '/' inside;
 * NFS4ERR_BADNAME: "." or "..". */
int nfs4_name_check(const struct nfs4_name *name);

#endif
