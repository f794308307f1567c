/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Procedures of NFSv3, MOUNT, NLM, NFSACL and RQUOTA: one row for each, at the foot of the file that decodes and
 * runs the procedure. nfs3/nfs3_procedures.c and nfs3/nlm/nlm_ops_lock.c list the rows by number; for NFSv3's,
 * NFS3_PROC_LIST below is the list.
 */
#ifndef RN_NFS3_NFS3_PROCS_H
#define RN_NFS3_NFS3_PROCS_H

#include <stdint.h>

#include "lib/error.h"
#include "nfs3/nfs3_proto.h"
#include "rpc/program.h"

/*
 * Statuses that a procedure may answer: those of its ERRORS section in RFC 1813, and those few that
 * the RFC forgot and clients know what to do with (they are named at the rows). nfs3_status()
 * answers IO for others.
 */
enum nfs3_proc_error {
	/*
	 * Set by NFS3_ERRORS, for all: IO, STALE, BADHANDLE, SERVERFAULT; ACCES, as the RFC has no
	 * other word for a client that the export does not admit; JUKEBOX, which no procedure lists
	 * and section 2.6 means for every one of them.
	 */
	NFS3_E_ANY = 1 << 0,
	NFS3_E_PERM = 1 << 1,
	NFS3_E_NOENT = 1 << 2,
	NFS3_E_NXIO = 1 << 3,
	NFS3_E_EXIST = 1 << 4,
	NFS3_E_XDEV = 1 << 5,
	NFS3_E_NOTDIR = 1 << 6,
	NFS3_E_ISDIR = 1 << 7,
	NFS3_E_INVAL = 1 << 8,
	NFS3_E_FBIG = 1 << 9,
	NFS3_E_SPACE = 1 << 10, /* NOSPC and DQUOT */
	NFS3_E_ROFS = 1 << 11,
	NFS3_E_MLINK = 1 << 12,
	NFS3_E_NAMETOOLONG = 1 << 13,
	NFS3_E_NOTEMPTY = 1 << 14,
	NFS3_E_NOT_SYNC = 1 << 15,
	NFS3_E_BAD_COOKIE = 1 << 16,
	NFS3_E_NOTSUPP = 1 << 17,
	NFS3_E_TOOSMALL = 1 << 18,
	NFS3_E_BADTYPE = 1 << 19,
};
#define NFS3_ERRORS(listed) (NFS3_E_ANY | (listed))

struct nfs3_proc {
	struct rpc_proc rpc;
	uint32_t errors; /* enum nfs3_proc_error */
};

/* Each number but NULL's in enum nfs3_procedure (nfs3/nfs3_proto.h) with its row. */
/* clang-format off */
#define NFS3_PROC_LIST(ROW) \
	ROW(GETATTR, getattr) \
	ROW(SETATTR, setattr) \
	ROW(LOOKUP, lookup) \
	ROW(ACCESS, access) \
	ROW(READLINK, readlink) \
	ROW(READ, read) \
	ROW(WRITE, write) \
	ROW(CREATE, create) \
	ROW(MKDIR, mkdir) \
	ROW(SYMLINK, symlink) \
	ROW(MKNOD, mknod) \
	ROW(REMOVE, remove) \
	ROW(RMDIR, rmdir) \
	ROW(RENAME, rename) \
	ROW(LINK, link) \
	ROW(READDIR, readdir) \
	ROW(READDIRPLUS, readdirplus) \
	ROW(FSSTAT, fsstat) \
	ROW(FSINFO, fsinfo) \
	ROW(PATHCONF, pathconf) \
	ROW(COMMIT, commit)
/* clang-format on */

#define NFS3_DECLARE_PROC(NAME, name) extern const struct nfs3_proc nfs3_proc_##name;
NFS3_PROC_LIST(NFS3_DECLARE_PROC)
#undef NFS3_DECLARE_PROC

extern const struct nfs3_proc nfsacl_proc_getacl, nfsacl_proc_setacl;

extern const struct rpc_proc rquota_proc_get_v1, rquota_proc_getactive_v1, rquota_proc_set_v1,
	rquota_proc_setactive_v1;
extern const struct rpc_proc rquota_proc_get_v2, rquota_proc_getactive_v2, rquota_proc_set_v2,
	rquota_proc_setactive_v2;

extern const struct rpc_proc mnt_proc_mnt, mnt_proc_umnt, mnt_proc_umntall, mnt_proc_dump,
	mnt_proc_export;
extern const struct rpc_proc mnt_proc_mnt_v1;	 /* versions 1 and 2 */
extern const struct rpc_proc mnt_proc_exportall; /* versions 1 and 2 */
extern const struct rpc_proc mnt_proc_pathconf;	 /* version 2 */

extern const struct rpc_proc rpc_proc_null; /* of all programs */

/* NLM. _old: with offsets of 32 bits; _msg: answered by a call of the server. */
extern const struct rpc_proc nlm_proc_test, nlm_proc_test_old, nlm_proc_test_msg,
	nlm_proc_test_msg_old;
extern const struct rpc_proc nlm_proc_lock, nlm_proc_lock_old, nlm_proc_lock_msg,
	nlm_proc_lock_msg_old;
extern const struct rpc_proc nlm_proc_cancel, nlm_proc_cancel_old, nlm_proc_cancel_msg,
	nlm_proc_cancel_msg_old;
extern const struct rpc_proc nlm_proc_unlock, nlm_proc_unlock_old, nlm_proc_unlock_msg,
	nlm_proc_unlock_msg_old;
extern const struct rpc_proc nlm_proc_granted, nlm_proc_granted_old, nlm_proc_granted_msg,
	nlm_proc_granted_msg_old;
extern const struct rpc_proc nlm_proc_test_res, nlm_proc_lock_res, nlm_proc_cancel_res,
	nlm_proc_unlock_res, nlm_proc_granted_res;
extern const struct rpc_proc nlm_proc_share, nlm_proc_unshare;
extern const struct rpc_proc nlm_proc_nm_lock, nlm_proc_nm_lock_old, nlm_proc_free_all;

/*
 * From -errno to nfsstat3, for each procedure.
 */

/* Failures of these protocols alone, beside those of lib/error.h. */
enum nfs3_error {
	NFS3_ETOOSMALL = RN_ERRORS_END, /* READDIR: not even one entry fits */
	NFS3_EBADCOOKIE,
	NFS3_EBADTYPE,
	NFS3_EWEAKAUTH, /* refused at the RPC level: AUTH_TOOWEAK */
	NFS3_ETOOLONG, /* refused at the RPC level: the reply does not fit what the client offered */
};

/* rc is 0 or negative. Never a status that proc may not answer. */
enum nfsstat3 nfs3_status(const struct nfs3_proc *proc, int rc);

#endif
