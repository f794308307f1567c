/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoded arguments of every NFSv3 procedure, and their decoders. A decoder checks the rules of XDR
 * (lengths, discriminants, booleans) and returns false for garbage. Faults of a well-formed message
 * (a name that is too long, say) are kept for the handler, which answers them with an NFS status.
 * Nothing points into the message but WRITE's data and SYMLINK's text.
 */
#ifndef RN_NFS3_ARGS_H
#define RN_NFS3_ARGS_H

#include "nfs3/proto.h"
#include "rpc/xdr_in.h"
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
};

struct nfs3_fh_args {
	struct vfs_fh fh;
};

struct nfs3_setattr_args {
	struct vfs_fh fh;
	struct nfs3_sattr attr;
	bool guard;
	struct timespec guard_ctime;
};

struct nfs3_access_args {
	struct vfs_fh fh;
	uint32_t want;
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
	uint32_t stable;
	struct xdr_bulk data; /* at least count bytes */
};

struct nfs3_create_args {
	struct nfs3_dirop_args where;
	uint32_t how; /* enum createmode3 */
	struct nfs3_sattr attr;
	uint8_t verf[8];
};

struct nfs3_mkdir_args {
	struct nfs3_dirop_args where;
	struct nfs3_sattr attr;
};

struct nfs3_symlink_args {
	struct nfs3_dirop_args where;
	struct nfs3_sattr attr;
	struct xdr_bulk target; /* more than VFS_PATH_MAX bytes: -ENAMETOOLONG */
};

struct nfs3_mknod_args {
	struct nfs3_dirop_args where;
	uint32_t type; /* any value; only devices have numbers, and some types no attributes */
	struct nfs3_sattr attr;
	uint32_t major, minor;
};

struct nfs3_rename_args {
	struct nfs3_dirop_args from, to;
};

struct nfs3_link_args {
	struct vfs_fh file;
	struct nfs3_dirop_args where;
};

struct nfs3_readdir_args {
	struct vfs_fh dir;
	uint64_t cookie, cookieverf;
	uint32_t dircount; /* READDIRPLUS only */
	uint32_t maxcount; /* READDIR's count */
};

struct nfs3_commit_args {
	struct vfs_fh fh;
	uint64_t offset;
	uint32_t count;
};

bool nfs3_decode_fh_args(struct xdr_in *x, void *args);
bool nfs3_decode_setattr(struct xdr_in *x, void *args);
bool nfs3_decode_dirop(struct xdr_in *x, void *args);
bool nfs3_decode_access(struct xdr_in *x, void *args);
bool nfs3_decode_read(struct xdr_in *x, void *args);
bool nfs3_decode_write(struct xdr_in *x, void *args);
bool nfs3_decode_create(struct xdr_in *x, void *args);
bool nfs3_decode_mkdir(struct xdr_in *x, void *args);
bool nfs3_decode_symlink(struct xdr_in *x, void *args);
bool nfs3_decode_mknod(struct xdr_in *x, void *args);
bool nfs3_decode_rename(struct xdr_in *x, void *args);
bool nfs3_decode_link(struct xdr_in *x, void *args);
bool nfs3_decode_readdir(struct xdr_in *x, void *args);
bool nfs3_decode_readdirplus(struct xdr_in *x, void *args);
bool nfs3_decode_commit(struct xdr_in *x, void *args);

#endif
