/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the programs' versions and procedures: decoder, function, and what a changing
 * procedure may answer at most. */
#include "lib/checked.h"
#include "nfs3/args.h"
#include "nfs3/mount_ops.h"
#include "nfs3/nlm.h"
#include "nfs3/procs.h"
#include "nfs3/server.h"

/* Results of changing procedures: a status, and what follows it. */
#define WCC_RESULT (4 + NFS3_WCC_SIZE)
#define MADE_RESULT (WCC_RESULT + NFS3_POST_OP_FH_SIZE + NFS3_POST_OP_ATTR_SIZE)
#define WRITE_RESULT (WCC_RESULT + 4 + 4 + 8)
#define RENAME_RESULT (WCC_RESULT + NFS3_WCC_SIZE)
#define LINK_RESULT (WCC_RESULT + NFS3_POST_OP_ATTR_SIZE)

#define ASK(name_, decode_, args_, run_)                                                           \
	{                                                                                          \
		.name = name_, .decode = decode_, .args_size = sizeof(args_), .run = run_          \
	}
#define CHANGE(name_, decode_, args_, run_, result_)                                               \
	{                                                                                          \
		.name = name_, .decode = decode_, .args_size = sizeof(args_), .run = run_,         \
		.flags = RPC_NONIDEMPOTENT, .reply_size = result_                                  \
	}

static const struct rpc_proc nfs3_procs[NFSPROC3_COUNT] = {
	[NFSPROC3_NULL] = { .name = "NULL", .run = nfs3_null },
	[NFSPROC3_GETATTR] = ASK("GETATTR", nfs3_decode_fh_args, struct nfs3_fh_args, nfs3_getattr),
	[NFSPROC3_SETATTR] = CHANGE("SETATTR", nfs3_decode_setattr, struct nfs3_setattr_args,
				    nfs3_setattr, WCC_RESULT),
	[NFSPROC3_LOOKUP] = ASK("LOOKUP", nfs3_decode_dirop, struct nfs3_dirop_args, nfs3_lookup),
	[NFSPROC3_ACCESS] = ASK("ACCESS", nfs3_decode_access, struct nfs3_access_args, nfs3_access),
	[NFSPROC3_READLINK] =
		ASK("READLINK", nfs3_decode_fh_args, struct nfs3_fh_args, nfs3_readlink),
	[NFSPROC3_READ] = ASK("READ", nfs3_decode_read, struct nfs3_read_args, nfs3_read),
	[NFSPROC3_WRITE] = CHANGE("WRITE", nfs3_decode_write, struct nfs3_write_args, nfs3_write,
				  WRITE_RESULT),
	[NFSPROC3_CREATE] = CHANGE("CREATE", nfs3_decode_create, struct nfs3_create_args,
				   nfs3_create, MADE_RESULT),
	[NFSPROC3_MKDIR] =
		CHANGE("MKDIR", nfs3_decode_mkdir, struct nfs3_mkdir_args, nfs3_mkdir, MADE_RESULT),
	[NFSPROC3_SYMLINK] = CHANGE("SYMLINK", nfs3_decode_symlink, struct nfs3_symlink_args,
				    nfs3_symlink, MADE_RESULT),
	[NFSPROC3_MKNOD] =
		CHANGE("MKNOD", nfs3_decode_mknod, struct nfs3_mknod_args, nfs3_mknod, MADE_RESULT),
	[NFSPROC3_REMOVE] = CHANGE("REMOVE", nfs3_decode_dirop, struct nfs3_dirop_args, nfs3_remove,
				   WCC_RESULT),
	[NFSPROC3_RMDIR] =
		CHANGE("RMDIR", nfs3_decode_dirop, struct nfs3_dirop_args, nfs3_rmdir, WCC_RESULT),
	[NFSPROC3_RENAME] = CHANGE("RENAME", nfs3_decode_rename, struct nfs3_rename_args,
				   nfs3_rename, RENAME_RESULT),
	[NFSPROC3_LINK] =
		CHANGE("LINK", nfs3_decode_link, struct nfs3_link_args, nfs3_link, LINK_RESULT),
	[NFSPROC3_READDIR] =
		ASK("READDIR", nfs3_decode_readdir, struct nfs3_readdir_args, nfs3_readdir),
	[NFSPROC3_READDIRPLUS] = ASK("READDIRPLUS", nfs3_decode_readdirplus,
				     struct nfs3_readdir_args, nfs3_readdirplus),
	[NFSPROC3_FSSTAT] = ASK("FSSTAT", nfs3_decode_fh_args, struct nfs3_fh_args, nfs3_fsstat),
	[NFSPROC3_FSINFO] = ASK("FSINFO", nfs3_decode_fh_args, struct nfs3_fh_args, nfs3_fsinfo),
	[NFSPROC3_PATHCONF] =
		ASK("PATHCONF", nfs3_decode_fh_args, struct nfs3_fh_args, nfs3_pathconf),
	[NFSPROC3_COMMIT] = ASK("COMMIT", nfs3_decode_commit, struct nfs3_commit_args, nfs3_commit),
};

/* Strangers get one answer of MOUNT: MNT says that they are refused. rpc.mountd lists exports and
 * mounts to anybody; here they are for hosts that some export admits. */
#define MOUNT(name_, decode_, args_, run_, flags_)                                                 \
	{                                                                                          \
		.name = name_, .decode = decode_, .args_size = args_, .run = run_, .flags = flags_ \
	}

#define MNT_PROCS(mnt_run)                                                                         \
	{ .name = "NULL", .run = nfs3_null },                                                      \
		MOUNT("MNT", mnt_decode_path, sizeof(struct mnt_path), mnt_run, RPC_FOR_ALL),      \
		MOUNT("DUMP", NULL, 0, mnt_dump, RPC_NO_EXPORT),                                   \
		MOUNT("UMNT", mnt_decode_path, sizeof(struct mnt_path), mnt_umnt, RPC_FOR_FORMER), \
		MOUNT("UMNTALL", NULL, 0, mnt_umntall, RPC_FOR_FORMER),                            \
		MOUNT("EXPORT", NULL, 0, mnt_export, RPC_NO_EXPORT)

static const struct rpc_proc mount_v1_procs[] = {
	MNT_PROCS(mnt_mnt_v1),
	MOUNT("EXPORTALL", NULL, 0, mnt_export, RPC_NO_EXPORT),
};

static const struct rpc_proc mount_v2_procs[] = {
	MNT_PROCS(mnt_mnt_v1),
	MOUNT("EXPORTALL", NULL, 0, mnt_export, RPC_NO_EXPORT),
	MOUNT("PATHCONF", mnt_decode_path, sizeof(struct mnt_path), mnt_pathconf_v2, 0),
};

static const struct rpc_proc mount_v3_procs[] = {
	MNT_PROCS(mnt_mnt_v3),
};

static const struct rpc_version nfs_versions[] = {
	{ .vers = NFS3_VERSION, .procs = nfs3_procs, .nprocs = NFSPROC3_COUNT },
};

static const struct rpc_version mount_versions[] = {
	{ .vers = 1, .procs = mount_v1_procs, .nprocs = rn_array_size(mount_v1_procs) },
	{ .vers = 2, .procs = mount_v2_procs, .nprocs = rn_array_size(mount_v2_procs) },
	{ .vers = 3, .procs = mount_v3_procs, .nprocs = rn_array_size(mount_v3_procs) },
};

void nfs3_program(struct nfs3_server *s, struct rpc_program *nfs, struct rpc_program *mount)
{
	*nfs = (struct rpc_program){
		.prog = NFS_PROGRAM,
		.name = "nfs",
		.versions = nfs_versions,
		.nversions = rn_array_size(nfs_versions),
		.ctx = s,
	};
	*mount = (struct rpc_program){
		.prog = MOUNT_PROGRAM,
		.name = "mount",
		.versions = mount_versions,
		.nversions = rn_array_size(mount_versions),
		.ctx = s,
	};
}

/* Through the reply cache: a LOCK that comes again after the UNLOCK would stay for ever. */
#define NLM_RESULT (4 + NLM_OPAQUE_MAX + 4)
#define GIVE_BACK(name_, decode_, args_, run_)                                                     \
	{                                                                                          \
		.name = name_, .decode = decode_, .args_size = sizeof(args_), .run = run_,         \
		.flags = RPC_NONIDEMPOTENT | RPC_FOR_FORMER, .reply_size = NLM_RESULT              \
	}

static const struct rpc_proc nlm_procs[NLMPROC4_COUNT] = {
	[NLMPROC4_NULL] = { .name = "NULL", .run = nfs3_null },
	[NLMPROC4_TEST] = ASK("TEST", nlm_decode_test, struct nlm_lock_args, nlm_test),
	[NLMPROC4_LOCK] =
		CHANGE("LOCK", nlm_decode_lock, struct nlm_lock_args, nlm_lock, NLM_RESULT),
	[NLMPROC4_CANCEL] =
		GIVE_BACK("CANCEL", nlm_decode_cancel, struct nlm_lock_args, nlm_cancel),
	[NLMPROC4_UNLOCK] =
		GIVE_BACK("UNLOCK", nlm_decode_unlock, struct nlm_lock_args, nlm_unlock),
	[NLMPROC4_NM_LOCK] =
		CHANGE("NM_LOCK", nlm_decode_lock, struct nlm_lock_args, nlm_lock, NLM_RESULT),
	[NLMPROC4_FREE_ALL] = { .name = "FREE_ALL",
				.decode = nlm_decode_free_all,
				.args_size = sizeof(struct nlm_bytes),
				.run = nlm_free_all,
				.flags = RPC_FOR_FORMER },
};

static const struct rpc_version nlm_versions[] = {
	{ .vers = NLM_VERSION, .procs = nlm_procs, .nprocs = NLMPROC4_COUNT },
};

void nlm_program(struct nfs3_server *s, struct rpc_program *nlm)
{
	*nlm = (struct rpc_program){
		.prog = NLM_PROGRAM,
		.name = "nlm",
		.versions = nlm_versions,
		.nversions = rn_array_size(nlm_versions),
		.ctx = s,
	};
}
