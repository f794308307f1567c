/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests for attributes, and decoders of fattr4. */
#ifndef RN_TESTS_NFS4_ATTRS_H
#define RN_TESTS_NFS4_ATTRS_H

#include "nfs4/attr/nfs4_attr.h"
#include "tests/unit/nfs4_fixture.h"

/* Values of a fattr4; have: the attributes that it contains. */
struct fix4_attrs {
	struct nfs4_bitmap have, supported, exclusive;
	uint32_t type, mode, nlink, rdattr_error, maxlink, maxname, lease, aclsupport, fh_expire;
	uint32_t rawdev[2], charset, change_type, clone_size;
	bool links, symlinks, named_attr, unique, cansettime, case_insensitive, case_preserving;
	bool chown_restricted, homogeneous, no_trunc, xattrs;
	uint64_t change, size, fsid[2], fileid, mounted_on, used, freed, maxfilesize, maxread,
		maxwrite;
	uint64_t files[3], space[3]; /* avail, free, total */
	uint64_t quota[3];	     /* avail_hard, avail_soft, used */
	uint32_t open_args
		[NFS4_OPEN_ARGUMENTS]; /* the bitmaps of open_arguments, of one word each */
	size_t acl_at; /* offset of the nfsace4<> from the start of the reply; 0: none */
	size_t acl_size;
	struct vfs_fh fh;
	char owner[64], group[64];
	uint32_t label_format, label_policy, label_len;
	uint8_t label[64]; /* its beginning */
	struct timespec atime, mtime, ctime, btime, delta;
};

/* Encodes a bitmap4 of the attributes in the list, which ends with -1. */
void fix4_put_bits(struct fixture *f, const int *bits);
#define FIX4_BITS(f, ...) fix4_put_bits(f, (const int[]){ __VA_ARGS__, -1 })
/* Encodes a bitmap4 of all readable attributes of all minor versions. */
void fix4_put_all_bits(struct fixture *f);

/* Reads a fattr4. False if its values do not match its bitmap to the byte. */
bool fix4_get_attrs(struct xdr_in *r, struct fix4_attrs *a);

/* Sends PUTFH and GETATTR of all attributes; returns the COMPOUND's status. */
uint32_t fix4_getattr(struct fixture *f, struct fix4_session *s, const struct vfs_fh *fh,
		      struct fix4_attrs *a);

#endif
