/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Procedures of NFSv2 and of NFSACL beside it: one row for each, at the foot of the file that decodes and runs it. ROOT and WRITECACHE,
 * which the RFC leaves empty, have none and are answered PROC_UNAVAIL.
 */
#ifndef RN_NFS2_NFS2_PROCS_H
#define RN_NFS2_NFS2_PROCS_H

#include "rpc/program.h"

/* Each number but NULL's in enum nfs2_procedure (nfs2/nfs2_proto.h) with its row. */
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
