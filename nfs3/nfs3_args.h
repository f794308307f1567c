/* SPDX-License-Identifier: BSD-2-Clause */
/*
* Parts that arguments of NFSv3 procedures are made of, and their decoders. A decoder checks the rules of XDR
 * (lengths, discriminants, booleans) and returns false for garbage. Faults of a well-formed message
 * (a name that is too long, say) are kept for the handler, which answers them with an NFS status.
 * Nothing points into the message but WRITE's data and SYMLINK's text.
 */
#ifndef RN_NFS3_NFS3_ARGS_H
#define RN_NFS3_NFS3_ARGS_H

#include "nfs3/nfs3_proto.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"
#include "vfs/types.h"

/* A name of at most NFS3_NAME_MAX bytes. For a longer one, len is the true length and there are no
 * bytes. */
struct nfs3_name {
	uint32_t len;
	char bytes[NFS3_NAME_MAX + 1]; /* NUL-terminated */
};

/* 0, or the handler's answer: -ENAMETOOLONG; -EACCES for an empty name and one with NUL or '/'
 * inside, as the kernel's own lookup of a single name does. */
int nfs3_name_check(const struct nfs3_name *n);

struct nfs3_dirop_args {
	struct vfs_fh dir;
	struct nfs3_name name;
};

struct nfs3_sattr {
	struct vfs_setattr set;
	bool bad; /* -EINVAL for values that XDR allows and no file can have */
	/* NFSv2 only. S_IFMT bits of the mode, 0: none; both times are about now */
	uint32_t type;
	bool is_now;
};

/* Arguments that NFSv2's decoders fill, too. */
struct nfs3_fh_args {
	struct vfs_fh fh;
};

struct nfs3_setattr_args {
	struct vfs_fh fh;
	struct nfs3_sattr attr;
	bool guard;
	struct timespec guard_ctime;
};

/* ACCESS, and GETACL, whose word is a mask. */
struct nfs3_word_args {
	struct vfs_fh fh;
	uint32_t word;
};

struct nfs3_read_args {
	struct vfs_fh fh;
	uint64_t offset;
	uint32_t count;
};

struct nfs3_write_args {
	struct vfs_fh fh;
	uint64_t offset;
	uint32_t count;
	uint32_t stable;      /* enum vfs_stable */
	struct xdr_bulk data; /* at least count bytes */
};

struct nfs3_mkdir_args {
	struct nfs3_dirop_args where;
	struct nfs3_sattr attr;
};

struct nfs3_symlink_args {
	struct nfs3_dirop_args where;
	struct nfs3_sattr attr;
	struct xdr_bulk target; /* longer than a path may be: -ENAMETOOLONG */
};
/* Longest SYMLINK text that is decoded. Longer than any target may be, so that the answer is
 * NAMETOOLONG. */
#define NFS3_SYMLINK_TEXT_MAX 65536u

struct nfs3_rename_args {
	struct nfs3_dirop_args from, to;
};

struct nfs3_link_args {
	struct vfs_fh file;
	struct nfs3_dirop_args where;
};

/* Each sets x->err where XDR is violated. */
void nfs3_get_fh(struct xdr_in *x, struct vfs_fh *fh);
void nfs3_get_name(struct xdr_in *x, struct nfs3_name *n);
void nfs3_get_dirop(struct xdr_in *x, struct nfs3_dirop_args *a);
void nfs3_get_sattr(struct xdr_in *x, struct nfs3_sattr *a);
/* *bad is set if the nanoseconds are more than a second has. */
struct timespec nfs3_get_time(struct xdr_in *x, bool *bad);

/* Decoders of procedures whose arguments are a handle, with or without a word, or a directory and a name. */
bool nfs3_decode_fh_args(struct xdr_in *x, void *args);
bool nfs3_decode_word(struct xdr_in *x, void *args);
bool nfs3_decode_dirop(struct xdr_in *x, void *args);

/*
 * Encoding of the attribute structures that nearly every NFSv3 result has (RFC 1813 section 2.5).
 */

void nfs3_put_fattr(struct xdr_out *x, const struct vfs_attr *a);
/* post_op_attr; NULL: none to give. */
void nfs3_put_post_op_attr(struct xdr_out *x, const struct vfs_attr *a);
void nfs3_put_post_op_fh(struct xdr_out *x, const struct vfs_fh *fh); /* NULL: none */
/*
 * wcc_data. A client takes what changed between the two for its own doing, and keeps what it has
 * cached. So before is NULL unless nobody else changed the object in between (RFC 1813,
 * "wcc_data").
 */
void nfs3_put_wcc(struct xdr_out *x, const struct vfs_attr *before, const struct vfs_attr *after);

#endif
