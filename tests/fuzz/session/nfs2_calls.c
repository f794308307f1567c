/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/nfs2_calls.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "nfs2/nfs2_server.h"
#include "nfs3/acl/nfsacl.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/template.h"

#define MNT 1u
#define UMNT 3u
#define DATA_100 6u   /* in ss_sizes */
#define DATA_MOST 18u /* 8192 octets */

static void put_mark(struct xdr_out *x, char letter, uint8_t k)
{
	const uint8_t mark[4] = { 0xf1, 'F', (uint8_t)letter, k };

	xdr_put_fixed(x, mark, sizeof(mark));
}

static void put_name(struct xdr_out *x, const char *name)
{
	xdr_put_opaque(x, name, (uint32_t)strlen(name));
}

static void put_dirop(struct xdr_out *x, const char *name)
{
	put_mark(x, 'P', SS_FH_ROOT);
	put_name(x, name);
}

/* Mode, owners, size, and two times of seconds and microseconds. */
static void put_sattr(struct xdr_out *x, uint32_t mode, uint32_t size)
{
	const uint32_t words[] = { mode,      NFS2_KEEP, NFS2_KEEP, size,
				   NFS2_KEEP, NFS2_KEEP, 1234567,   1000000 };

	for (unsigned i = 0; i < rn_array_size(words); i++)
		xdr_put_u32(x, words[i]);
}

/* Each takes what nfs3_sample_put() gives. */
#define ARGS(name) static void name(struct xdr_out *x, const struct sample_world *w)

ARGS(root)
{
	(void)w;
	put_mark(x, 'P', SS_FH_ROOT);
}

ARGS(file)
{
	(void)w;
	put_mark(x, 'P', SS_FH_FILE);
}

ARGS(setattr)
{
	file(x, w);
	put_sattr(x, 0640, 100);
}

ARGS(lookup)
{
	(void)w;
	put_dirop(x, "dir");
}

ARGS(readlink)
{
	(void)w;
	put_mark(x, 'P', SS_FH_LINK);
}

static void put_read(struct xdr_out *x, uint8_t handle)
{
	put_mark(x, 'P', handle);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, NFS2_MAX_IO);
	xdr_put_u32(x, 0); /* totalcount */
}

ARGS(read_big)
{
	(void)w;
	put_read(x, SS_FH_BIG);
}

ARGS(read_secret)
{
	(void)w;
	put_read(x, SS_FH_SECRET);
}

static void put_write(struct xdr_out *x, uint8_t handle, uint32_t offset, uint8_t size)
{
	put_mark(x, 'P', handle);
	xdr_put_u32(x, 0); /* beginoffset */
	xdr_put_u32(x, offset);
	xdr_put_u32(x, 0); /* totalcount */
	put_mark(x, 'B', size);
}

ARGS(write_some)
{
	(void)w;
	put_write(x, SS_FH_FILE, 50, DATA_100);
}

ARGS(write_most)
{
	(void)w;
	put_write(x, SS_FH_FILE, NFS2_SIZE_MAX - 8192, DATA_MOST);
}

ARGS(write_read_only)
{
	(void)w;
	put_write(x, SS_FH_RO_FILE, 0, DATA_100);
}

ARGS(create)
{
	(void)w;
	put_dirop(x, "made");
	put_sattr(x, 0644, 0);
}

ARGS(create_fifo)
{
	(void)w;
	put_dirop(x, "made");
	put_sattr(x, S_IFCHR | 0644, NFS2_KEEP);
}

ARGS(create_there)
{
	(void)w;
	put_dirop(x, "fifo");
	put_sattr(x, 0644, NFS2_KEEP);
}

ARGS(remove_file)
{
	(void)w;
	put_dirop(x, "file");
}

ARGS(rename_file)
{
	(void)w;
	put_dirop(x, "file");
	put_mark(x, 'P', SS_FH_DIR);
	put_name(x, "inner");
}

ARGS(link_file)
{
	file(x, w);
	put_dirop(x, "made");
}

ARGS(symlink_)
{
	(void)w;
	put_dirop(x, "made");
	put_name(x, "dir/inner");
	put_sattr(x, NFS2_KEEP, NFS2_KEEP);
}

ARGS(make_dir)
{
	(void)w;
	put_dirop(x, "made");
	put_sattr(x, 0755, NFS2_KEEP);
}

ARGS(remove_dir)
{
	(void)w;
	put_dirop(x, "dir");
}

ARGS(readdir_many)
{
	(void)w;
	put_mark(x, 'P', SS_FH_RO_MANY);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 1000);
}

ARGS(readdir_next)
{
	(void)w;
	put_mark(x, 'P', SS_FH_RO_MANY);
	put_mark(x, 'c', 0);
	xdr_put_u32(x, NFS2_MAX_IO);
}

ARGS(mount_path)
{
	put_name(x, w->path);
}

ARGS(getacl)
{
	file(x, w);
	xdr_put_u32(x, NA_MASK);
}

ARGS(setacl)
{
	static const uint32_t entries[][3] = {
		{ 1, 0, 6 }, { 4, 0, 4 }, { 16, 0, 4 }, { 32, 0, 4 }
	};

	file(x, w);
	xdr_put_u32(x, NA_ACL | NA_ACLCNT);
	xdr_put_u32(x, rn_array_size(entries));
	xdr_put_u32(x, rn_array_size(entries));
	for (unsigned i = 0; i < rn_array_size(entries); i++)
		for (unsigned k = 0; k < 3; k++)
			xdr_put_u32(x, entries[i][k]);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 0);
}

ARGS(access_all)
{
	(void)w;
	put_mark(x, 'P', SS_FH_DIR);
	xdr_put_u32(x, 0x3f);
}

/* NLM version 1 with a handle of NFSv2: cookie, whether to wait, exclusive, the lock, reclaim, state. */
ARGS(lock)
{
	(void)w;
	put_name(x, "cook");
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 1);
	put_name(x, "host");
	put_mark(x, 'p', SS_FH_FILE);
	put_name(x, "owner");
	for (unsigned i = 0; i < 5; i++) /* svid, offset, length, reclaim, state */
		xdr_put_u32(x, 0);
}

#define NFS2(name, NAME, args)                                                                     \
	{                                                                                          \
		"v2-" name, NFS_PROGRAM, NFS2_VERSION, NFSPROC2_##NAME, args                       \
	}
#define ACL2(name, NAME, args)                                                                     \
	{                                                                                          \
		"v2-" name, NFSACL_PROGRAM, NFS2_VERSION, NFSACLPROC2_##NAME, args                 \
	}

/* clang-format off */
const struct sample ss_nfs2_calls[] = {
	NFS2("null", NULL, NULL),
	NFS2("getattr", GETATTR, file),
	NFS2("setattr", SETATTR, setattr),
	NFS2("root", ROOT, NULL),
	NFS2("lookup", LOOKUP, lookup),
	NFS2("readlink", READLINK, readlink),
	NFS2("read", READ, read_big),
	NFS2("read-secret", READ, read_secret),
	NFS2("write", WRITE, write_some),
	NFS2("write-most", WRITE, write_most),
	NFS2("write-ro", WRITE, write_read_only),
	NFS2("create", CREATE, create),
	NFS2("create-fifo", CREATE, create_fifo),
	NFS2("create-there", CREATE, create_there),
	NFS2("remove", REMOVE, remove_file),
	NFS2("rename", RENAME, rename_file),
	NFS2("link", LINK, link_file),
	NFS2("symlink", SYMLINK, symlink_),
	NFS2("mkdir", MKDIR, make_dir),
	NFS2("rmdir", RMDIR, remove_dir),
	NFS2("readdir", READDIR, readdir_many),
	NFS2("readdir-next", READDIR, readdir_next),
	NFS2("statfs", STATFS, root),
	ACL2("getacl", GETACL, getacl),
	ACL2("setacl", SETACL, setacl),
	ACL2("acl-getattr", GETATTR, file),
	ACL2("access", ACCESS, access_all),
	{ "v2-mnt1", MOUNT_PROGRAM, 1, MNT, mount_path },
	{ "v2-mnt2", MOUNT_PROGRAM, 2, MNT, mount_path },
	{ "v2-umnt", MOUNT_PROGRAM, 1, UMNT, mount_path },
	{ "v2-lock", NLM_PROGRAM, 1, NLMPROC4_LOCK, lock },
};
/* clang-format on */
const unsigned ss_nfs2_call_count = rn_array_size(ss_nfs2_calls);
