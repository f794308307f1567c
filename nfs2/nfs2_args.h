/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoding of NFSv2 into the arguments of nfs3/nfs3_args.h, by the rules there; its results; and its procedures. */
#ifndef RN_NFS2_NFS2_ARGS_H
#define RN_NFS2_NFS2_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "nfs2/nfs2_server.h"
#include "nfs3/nfs3_args.h"
#include "nfs3/op.h"
#include "rpc/program.h"
#include "vfs/packed.h"

void nfs2_get_fh(struct xdr_in *x, struct vfs_fh *fh);
void nfs2_get_dirop(struct xdr_in *x, struct nfs3_dirop_args *a);
void nfs2_get_sattr(struct xdr_in *x, struct nfs3_sattr *a);

bool nfs2_decode_fh_args(struct xdr_in *x, void *args);
bool nfs2_decode_word(struct xdr_in *x, void *args);
bool nfs2_decode_dirop(struct xdr_in *x, void *args);

/* The status that tells of rc, 0 or negative, in the RFC's list; IO for what it has no word for. */
enum nfsstat2 nfs2_status(int rc);
/* Encoding by NFSv3's handlers. NFSACL's has two statuses more. */
extern const struct nfs3_dialect nfs2_dialect, nfsacl2_dialect;
/* A number of 64 bits in 32: small ones stay what they are. For inode numbers and ids of file systems. */
uint32_t nfs2_fold(uint64_t number);

/*
 * Directory cookies in NFSv2's 32 bits. Most file systems' cookies are small numbers, and stay as they are. Those
 * of ext4's hashed directories have 31 bits of the name's hash above 32 more of it: the upper ones remain, with
 * the top bit as a mark. doc/design/nfs2.md says why no entry is lost or listed twice for it.
 */
#define NFS2_COOKIE_HIGH 0x80000000u

/* False: it has no such form. */
static inline bool nfs2_cookie_of(uint64_t cookie, uint32_t *out)
{
	*out = cookie >> 31 == 0 ? (uint32_t)cookie : NFS2_COOKIE_HIGH | (uint32_t)(cookie >> 32);
	return cookie >> 31 != 1 && cookie >> 63 == 0;
}

static inline uint64_t nfs2_cookie_from(uint32_t cookie)
{
	return cookie & NFS2_COOKIE_HIGH ? (uint64_t)(cookie & ~NFS2_COOKIE_HIGH) << 32 : cookie;
}

/*
 * Procedures of NFSv2 and of NFSACL beside it: one row for each, at the foot of the file that decodes and runs it. ROOT and WRITECACHE,
 * which the RFC leaves empty, have none and are answered PROC_UNAVAIL.
 */

/* Each number but NULL's in enum nfs2_procedure (nfs2/nfs2_server.h) with its row. */
/* clang-format off */
#define NFS2_PROC_LIST(ROW) \
	ROW(GETATTR, getattr) \
	ROW(SETATTR, setattr) \
	ROW(LOOKUP, lookup) \
	ROW(READLINK, readlink) \
	ROW(READ, read) \
	ROW(WRITE, write) \
	ROW(CREATE, create) \
	ROW(REMOVE, remove) \
	ROW(RENAME, rename) \
	ROW(LINK, link) \
	ROW(SYMLINK, symlink) \
	ROW(MKDIR, mkdir) \
	ROW(RMDIR, rmdir) \
	ROW(READDIR, readdir) \
	ROW(STATFS, statfs)
/* clang-format on */

#define NFS2_DECLARE_PROC(NAME, name) extern const struct rpc_proc nfs2_proc_##name;
NFS2_PROC_LIST(NFS2_DECLARE_PROC)
#undef NFS2_DECLARE_PROC

/* NFSACL version 2; nfs3/acl/nfsacl.h has the numbers. */
extern const struct rpc_proc nfsacl2_proc_getacl, nfsacl2_proc_setacl, nfsacl2_proc_access;

#endif
