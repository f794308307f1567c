/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes that a call sets (fattr4 of SETATTR, CREATE and OPEN). Use:
 *
 * decode: nfs4_get_sattr(c, &a->attrs);
 *
 * run, after the filehandle was checked: rc = nfs4_sattr_check(c, &a->attrs, NFS4_SATTR_OPEN); then
 * vfs_create(...) with .sa = &a->attrs.set; then nfs4_put_bitmap(c->out, &a->attrs.given) for
 * attrsset, the attributes that were requested and set.
 */
#ifndef RN_NFS4_ATTR_NFS4_ATTR_H
#define RN_NFS4_ATTR_NFS4_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "nfs4/compound.h"
#include "nfs4/nfs4_proto.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"
#include "vfs/types.h"

/* bitmap4 of attribute numbers (RFC 8881 section 3.3.7), limited to known attributes. */

struct nfs4_bitmap {
	uint32_t word[NFS4_ATTR_WORDS];
};

static inline bool nfs4_bitmap_has(const struct nfs4_bitmap *b, unsigned bit)
{
	return b->word[bit / 32] >> (bit % 32) & 1;
}

static inline void nfs4_bitmap_add(struct nfs4_bitmap *b, unsigned bit)
{
	b->word[bit / 32] |= 1u << (bit % 32);
}

static inline void nfs4_bitmap_remove(struct nfs4_bitmap *b, unsigned bit)
{
	b->word[bit / 32] &= ~(1u << (bit % 32));
}

bool nfs4_bitmap_empty(const struct nfs4_bitmap *b);

/* False: bits beyond NFS4_ATTR_WORDS were set; they are dropped. Bad XDR sets x->err. */
bool nfs4_get_bitmap(struct xdr_in *x, struct nfs4_bitmap *out);

/* Marks x as failed: the input is no valid XDR. */
static inline void nfs4_bad_xdr(struct xdr_in *x)
{
	xdr_skip(x, SIZE_MAX);
}

/* Largest XDR size in bytes. */
#define NFS4_BITMAP_SIZE (4u + 4u * NFS4_ATTR_WORDS)

/* Encodes b without the words behind the last bit that is set. */
void nfs4_put_bitmap(struct xdr_out *x, const struct nfs4_bitmap *b);
uint32_t nfs4_bitmap_size(const struct nfs4_bitmap *b); /* bytes of XDR */

#define NFS4_OWNER_MAX 255u /* longest name of an owner, in bytes */
#define NFS4_MODE_BITS 07777u

struct nfs4_sattr {
	/* Attributes that the client asks to set, without time_create, which is passed over. */
	struct nfs4_bitmap given;
	struct vfs_setattr set; /* ids are filled in by nfs4_sattr_check */
	/* mode_set_masked (SETATTR only, minor versions 1 and 2): bits of set.mode to change. */
	uint32_t mode_mask;
	bool has_acl;
	struct xdr_in acl; /* at the well-formed nfsace4<>; nfs4_sattr_check parses it */
	/* At the well-formed posixace4<>, if given. */
	struct xdr_in posix_default, posix_access;
	int status; /* error found while decoding, which nfs4_sattr_check returns */
	/* The names as sent, in the message or the arena; NULL: not given. */
	const char *owner, *group;
	uint32_t owner_len, group_len;
};

/* Decodes a fattr4 from c->in. Only bad XDR sets c->in->err; unsupported attributes and impossible
 * values are left to nfs4_sattr_check. */
void nfs4_get_sattr(struct nfs4_compound *c, struct nfs4_sattr *out);

enum nfs4_sattr_use {
	NFS4_SATTR_SETATTR,
	NFS4_SATTR_CREATE, /* CREATE of anything but a regular file: no size */
	NFS4_SATTR_OPEN,   /* createattrs of UNCHECKED4 and GUARDED4 */
	/* cva_attrs of EXCLUSIVE4_1: not the times, which hold the verifier */
	NFS4_SATTR_EXCLUSIVE,
	NFS4_SATTR_MKDIR,   /* CREATE of a directory */
	NFS4_SATTR_SYMLINK, /* CREATE of a symbolic link, which has no ACL */
};

/*
 * Checks the attributes for the current filehandle: the object of SETATTR, or the directory of a
 * new object. NFS4_OK, and names are mapped to ids (a name service may be asked); or
 * NFS4ERR_ATTRNOTSUPP, NFS4ERR_INVAL, NFS4ERR_BADOWNER, NFS4ERR_DELAY (the name service is busy),
 * NFS4ERR_RESOURCE, NFS4ERR_REQ_TOO_BIG or NFS4ERR_NOSPC (an ACL), NFS4ERR_WRONG_LFS or NFS4ERR_BADLABEL. Call it
 * before the operation waits for anything.
 */
int nfs4_sattr_check(struct nfs4_compound *c, struct nfs4_sattr *sa, enum nfs4_sattr_use use);

/* Adds to b the attributes that hold the verifier of an exclusive create (vfs_create). attrset in
 * the result has them, which tells the client to set them afterwards. */
void nfs4_add_verifier_attrs(struct nfs4_bitmap *b);

#endif
