/* SPDX-License-Identifier: BSD-2-Clause */
/* NFS version 2 (RFC 1094). NFSv3's server gives what both share: settings, MOUNT and locks. */
#ifndef RN_NFS2_SERVER_H
#define RN_NFS2_SERVER_H

#include "rpc/program.h"

struct nfs3_server;
struct rn_logger;

/* The version, to be put into the NFS program. s was made with packed_handles. */
void nfs2_version(struct nfs3_server *s, struct rpc_version *out);

/* NFSACL version 2, to be put into that program. */
void nfsacl2_version(struct nfs3_server *s, struct rpc_version *out);

/* Logs a line for each export that NFSv2 cannot serve, as its files have no handles of 32 bytes. */
void nfs2_log_unserved(const struct nfs3_server *s, const struct rn_logger *log);

/* The constants of NFS version 2 (RFC 1094 section 2). */

#define NFS2_VERSION 2u
#define NFS2_MAX_IO 8192u   /* MAXDATA */
#define NFS2_PATH_MAX 1024u /* MAXPATHLEN */
#define NFS2_SIZE_MAX 0xffffffffu
#define NFS2_KEEP 0xffffffffu /* a field of sattr that is not to be set */

enum nfs2_procedure {
	NFSPROC2_NULL = 0,
	NFSPROC2_GETATTR = 1,
	NFSPROC2_SETATTR = 2,
	NFSPROC2_ROOT = 3, /* obsolete */
	NFSPROC2_LOOKUP = 4,
	NFSPROC2_READLINK = 5,
	NFSPROC2_READ = 6,
	NFSPROC2_WRITECACHE = 7, /* never specified */
	NFSPROC2_WRITE = 8,
	NFSPROC2_CREATE = 9,
	NFSPROC2_REMOVE = 10,
	NFSPROC2_RENAME = 11,
	NFSPROC2_LINK = 12,
	NFSPROC2_SYMLINK = 13,
	NFSPROC2_MKDIR = 14,
	NFSPROC2_RMDIR = 15,
	NFSPROC2_READDIR = 16,
	NFSPROC2_STATFS = 17,
	NFSPROC2_COUNT = 18,
};

enum nfsstat2 {
	NFS2_OK = 0,
	NFS2ERR_PERM = 1,
	NFS2ERR_NOENT = 2,
	NFS2ERR_IO = 5,
	NFS2ERR_NXIO = 6,
	NFS2ERR_ACCES = 13,
	NFS2ERR_EXIST = 17,
	NFS2ERR_NODEV = 19,
	NFS2ERR_NOTDIR = 20,
	NFS2ERR_ISDIR = 21,
	NFS2ERR_INVAL = 22, /* of NFSACL only */
	NFS2ERR_FBIG = 27,
	NFS2ERR_NOSPC = 28,
	NFS2ERR_ROFS = 30,
	NFS2ERR_NAMETOOLONG = 63,
	NFS2ERR_NOTEMPTY = 66,
	NFS2ERR_DQUOT = 69,
	NFS2ERR_STALE = 70,
	NFS2ERR_NOTSUPP = 10004, /* of NFSACL only */
};

/* SOCK is not in the RFC, and is what all servers send. A FIFO is a CHR with this device number. */
enum ftype2 { NF2NON = 0, NF2REG, NF2DIR, NF2BLK, NF2CHR, NF2LNK, NF2SOCK };
#define NFS2_FIFO_DEV 0xffffffffu

/* Encoded sizes in bytes. */
#define NFS2_FATTR_SIZE 68u
#define NFS2_FH_SIZE 32u
#define NFS2_DIROPRES_SIZE (4u + NFS2_FH_SIZE + NFS2_FATTR_SIZE)

#endif
