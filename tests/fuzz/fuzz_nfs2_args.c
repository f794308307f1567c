/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The argument decoders of NFSv2 and of NFSACL beside it, and the form of their handles. The first byte chooses the
 * decoder. The second says where the message is cut into two segments, and whether the second segment came by a Read
 * chunk. The arguments follow; their first bytes are taken for a handle, too.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs2/nfs2_args.h"
#include "vfs/fs/handle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define POINTER(NAME, row) &nfs2_proc_##row,
/* clang-format off */
static const struct rpc_proc *const procs[] = {
	NFS2_PROC_LIST(POINTER)
	&nfsacl2_proc_getacl, &nfsacl2_proc_setacl, &nfsacl2_proc_access,
};
/* clang-format on */

static const uint8_t key[VFS_HANDLE_KEY_LEN] = "fuzz";

/* A handle that has the form is made of its parts again, byte for byte. No one has the MAC but by our own making. */
static void check_handle(const uint8_t *data, size_t size)
{
	struct vfs_packed_fh fh, again;
	struct vfs_handle h;

	if (size < sizeof(fh.data))
		return;
	memcpy(fh.data, data, sizeof(fh.data));
	if (vfs_packed_parse(&fh, false, &h) == 0 &&
	    (vfs_packed_encode(&h, NULL, &again) != 0 || memcmp(&fh, &again, sizeof(fh)) != 0))
		abort();
	if (vfs_packed_parse(&fh, true, &h) != 0)
		return;
	if (vfs_packed_encode(&h, key, &again) != 0 || vfs_packed_check(&again, key) != 0 ||
	    (memcmp(&fh, &again, sizeof(fh)) != 0) != (vfs_packed_check(&fh, key) != 0))
		abort();
}

/* Cookies that a listing may have lead to no later place. */
static void check_cookie(const uint8_t *data, size_t size)
{
	uint64_t cookie;
	uint32_t small;

	if (size < sizeof(cookie))
		return;
	memcpy(&cookie, data, sizeof(cookie));
	if (nfs2_cookie_of(cookie, &small) && nfs2_cookie_from(small) > cookie)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char mem[8192];
	struct rn_arena arena;
	struct rpc_seg seg[2];
	struct xdr_in x;
	const struct rpc_proc *proc;
	size_t cut;
	void *args;

	if (size < 2)
		return 0;
	check_handle(data + 2, size - 2);
	check_cookie(data + 2, size - 2);
	proc = procs[data[0] % rn_array_size(procs)];
	cut = rn_min((data[1] & 0x7f) * 4, size - 2);
	seg[0] = (struct rpc_seg){ .base = (uint8_t *)data + 2, .len = (uint32_t)cut };
	seg[1] = (struct rpc_seg){ .base = (uint8_t *)data + 2 + cut,
				   .len = (uint32_t)(size - 2 - cut),
				   .placed = data[1] & 0x80 };
	rn_arena_init(&arena, mem, sizeof(mem));
	xdr_in_init(&x, seg, 2, &arena);
	args = calloc(1, proc->args_size);
	if (args && proc->decode(&x, args) && proc->decode == nfs2_decode_dirop)
		nfs3_name_check(&((const struct nfs3_dirop_args *)args)->name);
	free(args);
	return 0;
}
