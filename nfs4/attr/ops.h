/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes and directories: the operations of this folder, for the table (nfs4/op_table.h). */
#ifndef RN_NFS4_ATTR_OPS_H
#define RN_NFS4_ATTR_OPS_H

#include "nfs4/attr/attr.h"
#include "nfs4/compound.h"

struct nfs4_access_args {
	uint32_t want; /* ACCESS4_* */
};
void nfs4_decode_access(struct nfs4_compound *c, void *args);
int nfs4_access(struct nfs4_compound *c, void *args);

struct nfs4_getattr_args {
	struct nfs4_bitmap want;
};
void nfs4_decode_getattr(struct nfs4_compound *c, void *args);
int nfs4_getattr(struct nfs4_compound *c, void *args);

struct nfs4_verify_args {
	struct nfs4_bitmap given;
	bool unknown; /* attributes beyond the bitmap are given, too */
	const uint8_t *values;
	uint32_t len;
};
void nfs4_decode_verify(struct nfs4_compound *c, void *args);
int nfs4_verify(struct nfs4_compound *c, void *args);

struct nfs4_nverify_args {
	struct nfs4_verify_args as_verify;
};
void nfs4_decode_nverify(struct nfs4_compound *c, void *args);
int nfs4_nverify(struct nfs4_compound *c, void *args);

struct nfs4_readdir_args {
	uint64_t cookie, verifier;
	uint32_t dircount, maxcount; /* bytes of XDR */
	struct nfs4_bitmap want;
};
void nfs4_decode_readdir(struct nfs4_compound *c, void *args);
int nfs4_readdir(struct nfs4_compound *c, void *args);

struct nfs4_setattr_args {
	struct nfs4_stateid sid;
	struct nfs4_sattr attrs;
};
void nfs4_decode_setattr(struct nfs4_compound *c, void *args);
int nfs4_setattr(struct nfs4_compound *c, void *args);

#endif
