/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues: calls of all versions with the handle of one export are found to be of that export. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/workers/admission.h"
#include "lib/util.h"
#include "nfs2/nfs2_server.h"
#include "nfs3/acl/nfsacl.h"
#include "nfs3/nfs3_proto.h"
#include "rpc/message.h"
#include "vfs/fs/handle.h"

#define EXPORT 0x1234u
#define MESSAGE 512u

static const uint8_t key[VFS_HANDLE_KEY_LEN] = "0123456789abcde";

/* A call whose arguments begin with a handle. */
struct call {
	const char *name;
	uint32_t prog, vers, proc;
	bool packed;
};

static size_t put_u32(uint8_t *to, uint32_t v)
{
	const uint8_t word[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
				  (uint8_t)v };

	memcpy(to, word, sizeof(word));
	return sizeof(word);
}

static struct vfs_handle sample(void)
{
	return (struct vfs_handle){
		.export_id = EXPORT, .type = 0x81, .len = 8, .bytes = "inode 1"
	};
}

/* The handle as the version has it. */
static size_t put_handle(uint8_t *to, bool packed)
{
	const struct vfs_handle h = sample();
	struct vfs_packed_fh small;
	struct vfs_fh fh;
	size_t n = 0;

	if (packed) {
		cr_assert_eq(vfs_packed_encode(&h, key, &small), 0);
		memcpy(to, small.data, sizeof(small.data));
		return sizeof(small.data);
	}
	cr_assert_eq(vfs_handle_encode(&h, key, &fh), 0);
	n = put_u32(to, fh.len);
	memcpy(to + n, fh.data, fh.len);
	return n + fh.len;
}

static size_t put_call(uint8_t message[MESSAGE], const struct call *c)
{
	const uint32_t head[] = { 1, 0, 2, c->prog, c->vers, c->proc, 0, 0, 0, 0 };
	size_t n = 0;

	memset(message, 0, MESSAGE);
	for (size_t i = 0; i < rn_array_size(head); i++)
		n += put_u32(message + n, head[i]);
	return n + put_handle(message + n, c->packed);
}

static bool look(const struct call *c, size_t cut, uint32_t *id)
{
	uint8_t message[MESSAGE];
	const size_t n = put_call(message, c);
	struct rpc_request req = { .nseg = 1, .call.vers = c->vers };

	req.seg[0] = (struct rpc_seg){ .base = message, .len = (uint32_t)(n - cut) };
	return first_handle_export(&req, id);
}

Test(first_handle, each_version_has_the_queue_of_the_handles_file_system)
{
	static const struct call calls[] = {
		{ "GETATTR of NFSv3", NFS_PROGRAM, 3, 1, false },
		{ "GETACL of NFSACL 3", NFSACL_PROGRAM, 3, 1, false },
		{ "GETATTR of NFSv2", NFS_PROGRAM, 2, 1, true },
		{ "GETACL of NFSACL 2", NFSACL_PROGRAM, 2, 1, true },
		{ "SETACL of NFSACL 2", NFSACL_PROGRAM, 2, 2, true },
		{ "ACCESS of NFSACL 2", NFSACL_PROGRAM, 2, 4, true },
	};

	for (size_t i = 0; i < rn_array_size(calls); i++) {
		uint32_t id = 0;

		cr_expect(look(&calls[i], 0, &id), "%s", calls[i].name);
		cr_expect_eq(id, EXPORT, "%s: %u", calls[i].name, id);
		cr_expect_not(look(&calls[i], 40, &id), "%s: cut off", calls[i].name);
	}
}

Test(first_handle, calls_without_one_have_none)
{
	static const struct call calls[] = {
		{ "NULL of NFSv2", NFS_PROGRAM, 2, 0, true },
		{ "NULL of NFSACL 2", NFSACL_PROGRAM, 2, 0, true },
		{ "NULL of NFSACL 3", NFSACL_PROGRAM, 3, 0, false },
		{ "MNT", MOUNT_PROGRAM, 3, 1, false },
	};

	for (size_t i = 0; i < rn_array_size(calls); i++) {
		uint32_t id;

		cr_expect_not(look(&calls[i], 0, &id), "%s", calls[i].name);
	}
}
