/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs3_samples.h"

#include <string.h>

#include "lib/util.h"
#include "nfs3/acl/nfsacl.h"
#include "nfs3/nfs3_proto.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm.h"
#include "nfs3/quota/rquota.h"
#include "rpc/message.h"
#include "vfs/xattr.h"

static void put_fh(struct xdr_out *c, const struct sample_world *w, enum sample_object o)
{
	w->put_fh(w->ctx, c, o);
}

static void put_name(struct xdr_out *c, const char *name)
{
	xdr_put_opaque(c, name, (uint32_t)strlen(name));
}

/* Encodes a sattr3 with every attribute set. */
static void put_sattr(struct xdr_out *c)
{
	xdr_put_bool(c, true);
	xdr_put_u32(c, 0640);
	xdr_put_bool(c, true);
	xdr_put_u32(c, 0);
	xdr_put_bool(c, true);
	xdr_put_u32(c, 0);
	xdr_put_bool(c, true);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, NFS3_SET_TO_SERVER_TIME);
	xdr_put_u32(c, NFS3_SET_TO_CLIENT_TIME);
	xdr_put_u32(c, 1234567890);
	xdr_put_u32(c, 999999999);
}

static void root(struct xdr_out *c, const struct sample_world *w)
{
	put_fh(c, w, SAMPLE_ROOT);
}

static void file(struct xdr_out *c, const struct sample_world *w)
{
	put_fh(c, w, SAMPLE_FILE);
}

static void link_(struct xdr_out *c, const struct sample_world *w)
{
	put_fh(c, w, SAMPLE_LINK);
}

static void setattr(struct xdr_out *c, const struct sample_world *w)
{
	file(c, w);
	put_sattr(c);
	xdr_put_bool(c, true);
	xdr_put_u64(c, 0x0000000100000001);
}

static void file_name(struct xdr_out *c, const struct sample_world *w)
{
	root(c, w);
	put_name(c, SAMPLE_FILE_NAME);
}

static void new_name(struct xdr_out *c, const struct sample_world *w)
{
	root(c, w);
	put_name(c, "made");
}

static void dir_name(struct xdr_out *c, const struct sample_world *w)
{
	root(c, w);
	put_name(c, SAMPLE_DIR_NAME);
}

static void access_(struct xdr_out *c, const struct sample_world *w)
{
	file(c, w);
	xdr_put_u32(c, 0x3f);
}

static void read_(struct xdr_out *c, const struct sample_world *w)
{
	file(c, w);
	xdr_put_u64(c, 1);
	xdr_put_u32(c, 4096);
}

static void write_(struct xdr_out *c, const struct sample_world *w)
{
	file(c, w);
	xdr_put_u64(c, 3);
	xdr_put_u32(c, 9);
	xdr_put_u32(c, 2);
	put_name(c, "some data");
}

static void create_guarded(struct xdr_out *c, const struct sample_world *w)
{
	new_name(c, w);
	xdr_put_u32(c, NFS3_GUARDED);
	put_sattr(c);
}

static void create_exclusive(struct xdr_out *c, const struct sample_world *w)
{
	new_name(c, w);
	xdr_put_u32(c, NFS3_EXCLUSIVE);
	xdr_put_u64(c, 0x0102030405060708);
}

static void mkdir_(struct xdr_out *c, const struct sample_world *w)
{
	new_name(c, w);
	put_sattr(c);
}

static void symlink_(struct xdr_out *c, const struct sample_world *w)
{
	new_name(c, w);
	put_sattr(c);
	put_name(c, "../where/to");
}

static void mknod_device(struct xdr_out *c, const struct sample_world *w)
{
	new_name(c, w);
	xdr_put_u32(c, NF3CHR);
	put_sattr(c);
	xdr_put_u32(c, 1);
	xdr_put_u32(c, 3);
}

static void mknod_fifo(struct xdr_out *c, const struct sample_world *w)
{
	new_name(c, w);
	xdr_put_u32(c, NF3FIFO);
	put_sattr(c);
}

static void rename_(struct xdr_out *c, const struct sample_world *w)
{
	file_name(c, w);
	put_fh(c, w, SAMPLE_DIR);
	put_name(c, "moved");
}

static void link_to(struct xdr_out *c, const struct sample_world *w)
{
	file(c, w);
	put_fh(c, w, SAMPLE_DIR);
	put_name(c, "linked");
}

static void readdir_(struct xdr_out *c, const struct sample_world *w)
{
	root(c, w);
	xdr_put_u64(c, 0);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 4096);
}

static void readdirplus(struct xdr_out *c, const struct sample_world *w)
{
	root(c, w);
	xdr_put_u64(c, 0);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 512);
	xdr_put_u32(c, 4096);
}

static void commit(struct xdr_out *c, const struct sample_world *w)
{
	file(c, w);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 4096);
}

static void path(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, w->path);
}

#define NFS(name_, args_)                                                                          \
	{                                                                                          \
		.name = #name_, .prog = NFS_PROGRAM, .vers = NFS3_VERSION,                         \
		.proc = NFSPROC3_##name_, .args = args_                                            \
	}
#define NLM(name_, args_)                                                                          \
	{                                                                                          \
		.name = "NLM4_" #name_, .prog = NLM_PROGRAM, .vers = NLM_VERSION,                  \
		.proc = NLMPROC4_##name_, .args = args_                                            \
	}
#define MNT(name_, vers_, proc_, args_)                                                            \
	{                                                                                          \
		.name = name_, .prog = MOUNT_PROGRAM, .vers = vers_, .proc = proc_, .args = args_  \
	}

#define NLM_OF(vers_, name_, args_)                                                                \
	{                                                                                          \
		.name = "NLM" #vers_ "_" #name_, .prog = NLM_PROGRAM, .vers = vers_,               \
		.proc = NLMPROC4_##name_, .args = args_                                            \
	}

static void put_owner(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, "host");
	put_fh(c, w, SAMPLE_FILE);
	put_name(c, "owner");
}

/* nlm4_lock */
static void put_lock(struct xdr_out *c, const struct sample_world *w)
{
	put_owner(c, w);
	xdr_put_u32(c, 1); /* svid */
	xdr_put_u64(c, 10);
	xdr_put_u64(c, 100);
}

/* nlm_lock of versions 1 and 3 */
static void put_old_lock(struct xdr_out *c, const struct sample_world *w)
{
	put_owner(c, w);
	xdr_put_u32(c, 1);
	xdr_put_u32(c, 10);
	xdr_put_u32(c, 100);
}

static void nlm_old_test_(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, "cookie");
	xdr_put_bool(c, true);
	put_old_lock(c, w);
}

static void nlm_old_lock_(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, "cookie");
	xdr_put_bool(c, false);
	xdr_put_bool(c, true);
	put_old_lock(c, w);
	xdr_put_bool(c, false);
	xdr_put_u32(c, 1);
}

static void nlm_old_cancel_(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, "cookie");
	xdr_put_bool(c, false);
	xdr_put_bool(c, true);
	put_old_lock(c, w);
}

static void nlm_old_unlock_(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, "cookie");
	put_old_lock(c, w);
}

static void nlm_share_(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, "cookie");
	put_owner(c, w);
	xdr_put_u32(c, 2); /* deny write */
	xdr_put_u32(c, 1); /* read */
	xdr_put_bool(c, false);
}

static void nlm_res_(struct xdr_out *c, const struct sample_world *w)
{
	(void)w;
	put_name(c, "cookie");
	xdr_put_u32(c, 0);
}

static void nlm_test_(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, "cookie");
	xdr_put_bool(c, true);
	put_lock(c, w);
}

static void nlm_lock_(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, "cookie");
	xdr_put_bool(c, false);
	xdr_put_bool(c, true);
	put_lock(c, w);
	xdr_put_bool(c, false);
	xdr_put_u32(c, 1);
}

static void nlm_cancel_(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, "cookie");
	xdr_put_bool(c, false);
	xdr_put_bool(c, true);
	put_lock(c, w);
}

static void nlm_unlock_(struct xdr_out *c, const struct sample_world *w)
{
	put_name(c, "cookie");
	put_lock(c, w);
}

static void nlm_free_all_(struct xdr_out *c, const struct sample_world *w)
{
	(void)w;
	put_name(c, "host");
	xdr_put_u32(c, 1);
}

#define ACL(name_, args_)                                                                          \
	{                                                                                          \
		.name = "ACL3_" #name_, .prog = NFSACL_PROGRAM, .vers = NFSACL_VERSION,            \
		.proc = NFSACLPROC3_##name_, .args = args_                                         \
	}

static void getacl_(struct xdr_out *c, const struct sample_world *w)
{
	put_fh(c, w, SAMPLE_DIR);
	xdr_put_u32(c, NA_MASK);
}

/* An ACL with a named user, in an order that is not the kernel's. */
static void put_acl(struct xdr_out *c, uint32_t flag)
{
	static const uint32_t entry[][3] = { { VFS_ACL_OTHER, 0, 0 },
					     { VFS_ACL_MASK, 0, 7 },
					     { VFS_ACL_USER, 1005, 6 },
					     { VFS_ACL_GROUP_OBJ, 0, 5 },
					     { VFS_ACL_USER_OBJ, 0, 7 } };

	xdr_put_u32(c, rn_array_size(entry));
	xdr_put_u32(c, rn_array_size(entry));
	for (unsigned i = 0; i < rn_array_size(entry); i++) {
		xdr_put_u32(c, entry[i][0] | flag);
		xdr_put_u32(c, entry[i][1]);
		xdr_put_u32(c, entry[i][2]);
	}
}

static void setacl_(struct xdr_out *c, const struct sample_world *w)
{
	put_fh(c, w, SAMPLE_DIR);
	xdr_put_u32(c, NA_ACL | NA_DFACL);
	put_acl(c, 0);
	put_acl(c, NA_ACL_DEFAULT);
}

#define QUOTA(vers_, name_, args_)                                                                 \
	{                                                                                          \
		.name = "RQUOTA" #vers_ "_" #name_, .prog = RQUOTA_PROGRAM, .vers = vers_,         \
		.proc = RQUOTAPROC_##name_, .args = args_                                          \
	}

static void quota_v1(struct xdr_out *c, const struct sample_world *w)
{
	path(c, w);
	xdr_put_u32(c, 1005);
}

static void quota_v2(struct xdr_out *c, const struct sample_world *w)
{
	path(c, w);
	xdr_put_u32(c, RQUOTA_GROUP);
	xdr_put_u32(c, 1005);
}

/* words: those behind the path. */
static void put_setquota(struct xdr_out *c, const struct sample_world *w, unsigned words)
{
	xdr_put_u32(c, 0x800006);
	path(c, w);
	for (unsigned i = 0; i < words; i++)
		xdr_put_u32(c, 1000 + i);
}

static void setquota_v1(struct xdr_out *c, const struct sample_world *w)
{
	put_setquota(c, w, 9);
}

static void setquota_v2(struct xdr_out *c, const struct sample_world *w)
{
	put_setquota(c, w, 10);
}

const struct sample nfs3_samples[] = {
	NFS(NULL, NULL),
	NFS(GETATTR, file),
	NFS(SETATTR, setattr),
	NFS(LOOKUP, file_name),
	NFS(ACCESS, access_),
	NFS(READLINK, link_),
	NFS(READ, read_),
	NFS(WRITE, write_),
	NFS(CREATE, create_guarded),
	NFS(CREATE, create_exclusive),
	NFS(MKDIR, mkdir_),
	NFS(SYMLINK, symlink_),
	NFS(MKNOD, mknod_device),
	NFS(MKNOD, mknod_fifo),
	NFS(REMOVE, file_name),
	NFS(RMDIR, dir_name),
	NFS(RENAME, rename_),
	NFS(LINK, link_to),
	NFS(READDIR, readdir_),
	NFS(READDIRPLUS, readdirplus),
	NFS(FSSTAT, root),
	NFS(FSINFO, root),
	NFS(PATHCONF, root),
	NFS(COMMIT, commit),
	MNT("MNT3_NULL", 3, 0, NULL),
	MNT("MNT3_MNT", 3, 1, path),
	MNT("MNT3_DUMP", 3, 2, NULL),
	MNT("MNT3_UMNT", 3, 3, path),
	MNT("MNT3_UMNTALL", 3, 4, NULL),
	MNT("MNT3_EXPORT", 3, 5, NULL),
	MNT("MNT1_MNT", 1, 1, path),
	MNT("MNT1_UMNT", 1, 3, path),
	MNT("MNT2_PATHCONF", 2, 7, path),
	NLM(NULL, NULL),
	NLM(LOCK, nlm_lock_),
	NLM(TEST, nlm_test_),
	NLM(CANCEL, nlm_cancel_),
	NLM(UNLOCK, nlm_unlock_),
	NLM(NM_LOCK, nlm_lock_),
	NLM(FREE_ALL, nlm_free_all_),
	ACL(NULL, NULL),
	ACL(GETACL, getacl_),
	ACL(SETACL, setacl_),
	QUOTA(1, NULL, NULL),
	QUOTA(1, GETQUOTA, quota_v1),
	QUOTA(1, GETACTIVEQUOTA, quota_v1),
	QUOTA(1, SETQUOTA, setquota_v1),
	QUOTA(2, GETQUOTA, quota_v2),
	QUOTA(2, GETACTIVEQUOTA, quota_v2),
	QUOTA(2, SETQUOTA, setquota_v2),
	QUOTA(2, SETACTIVEQUOTA, setquota_v2),
	NLM_OF(1, LOCK, nlm_old_lock_),
	NLM_OF(1, TEST, nlm_old_test_),
	NLM_OF(1, CANCEL, nlm_old_cancel_),
	NLM_OF(1, UNLOCK, nlm_old_unlock_),
	NLM_OF(1, GRANTED, nlm_old_test_),
	NLM_OF(3, NM_LOCK, nlm_old_lock_),
	NLM_OF(3, SHARE, nlm_share_),
	NLM_OF(3, UNSHARE, nlm_share_),
	NLM_OF(3, FREE_ALL, nlm_free_all_),
	NLM(SHARE, nlm_share_),
	NLM(UNSHARE, nlm_share_),
	NLM(GRANTED, nlm_test_),
	NLM(GRANTED_RES, nlm_res_),
};
const unsigned nfs3_sample_count = rn_array_size(nfs3_samples);

size_t nfs3_sample_put(const struct sample *s, struct xdr_out *c, const struct sample_world *w)
{
	size_t args;

	xdr_put_u32(c, 0x12345678);
	xdr_put_u32(c, RPC_CALL);
	xdr_put_u32(c, RPC_VERSION);
	xdr_put_u32(c, s->prog);
	xdr_put_u32(c, s->vers);
	xdr_put_u32(c, s->proc);
	xdr_put_u32(c, RPC_AUTH_SYS);
	xdr_put_u32(c, 4 + 8 + 4 + 4 + 4);
	xdr_put_u32(c, 0);
	put_name(c, "host");
	xdr_put_u32(c, 0);
	xdr_put_u32(c, 0);
	xdr_put_u32(c, 0);
	xdr_put_u32(c, RPC_AUTH_NONE);
	xdr_put_u32(c, 0);
	args = xdr_out_pos(c);
	if (s->args)
		s->args(c, w);
	return args;
}
