/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The argument decoders of every procedure. The first byte chooses the decoder. The second says
 * where the message is cut into two segments, and whether the second segment came by a Read chunk.
 * The arguments follow.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/checked.h"
#include "nfs3/args.h"
#include "nfs3/mount_ops.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm.h"
#include "nfs3/procs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
	bool (*decode)(struct xdr_in *x, void *args);
	size_t size;
} decoders[] = {
	{ nfs3_decode_fh_args, sizeof(struct nfs3_fh_args) },
	{ nfs3_decode_setattr, sizeof(struct nfs3_setattr_args) },
	{ nfs3_decode_dirop, sizeof(struct nfs3_dirop_args) },
	{ nfs3_decode_access, sizeof(struct nfs3_access_args) },
	{ nfs3_decode_read, sizeof(struct nfs3_read_args) },
	{ nfs3_decode_write, sizeof(struct nfs3_write_args) },
	{ nfs3_decode_create, sizeof(struct nfs3_create_args) },
	{ nfs3_decode_mkdir, sizeof(struct nfs3_mkdir_args) },
	{ nfs3_decode_symlink, sizeof(struct nfs3_symlink_args) },
	{ nfs3_decode_mknod, sizeof(struct nfs3_mknod_args) },
	{ nfs3_decode_rename, sizeof(struct nfs3_rename_args) },
	{ nfs3_decode_link, sizeof(struct nfs3_link_args) },
	{ nfs3_decode_readdir, sizeof(struct nfs3_readdir_args) },
	{ nfs3_decode_readdirplus, sizeof(struct nfs3_readdir_args) },
	{ nfs3_decode_commit, sizeof(struct nfs3_commit_args) },
	{ mnt_decode_path, sizeof(struct mnt_path) },
	{ nlm_decode_test, sizeof(struct nlm_lock_args) },
	{ nlm_decode_lock, sizeof(struct nlm_lock_args) },
	{ nlm_decode_cancel, sizeof(struct nlm_lock_args) },
	{ nlm_decode_unlock, sizeof(struct nlm_lock_args) },
	{ nlm_decode_free_all, sizeof(struct nlm_bytes) },
};

static volatile uint8_t sink;

/* Reads all memory that the decoded arguments point to. */
static void touch(unsigned which, const void *args)
{
	const struct xdr_bulk *bulk = NULL;

	if (decoders[which].decode == nfs3_decode_write)
		bulk = &((const struct nfs3_write_args *)args)->data;
	else if (decoders[which].decode == nfs3_decode_symlink)
		bulk = &((const struct nfs3_symlink_args *)args)->target;
	for (unsigned i = 0; bulk && i < bulk->npieces; i++)
		for (size_t j = 0; j < bulk->piece[i].iov_len; j++)
			sink = ((const uint8_t *)bulk->piece[i].iov_base)[j];
	if (decoders[which].decode == nlm_decode_lock) {
		const struct nlm_lock_args *a = args;

		for (uint32_t j = 0; j < a->oh.len; j++)
			sink = a->oh.data[j];
		for (uint32_t j = 0; j < a->caller.len; j++)
			sink = a->caller.data[j];
	}
	if (decoders[which].decode == nfs3_decode_dirop)
		nfs3_name_check(&((const struct nfs3_dirop_args *)args)->name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char mem[8192];
	struct rn_arena arena;
	struct rpc_seg seg[2];
	struct xdr_in x;
	unsigned which;
	size_t cut;
	void *args;

	nfs3_bulk_offset(data, size);
	if (size < 2)
		return 0;
	which = data[0] % rn_array_size(decoders);
	cut = rn_min((data[1] & 0x7f) * 4, size - 2);
	seg[0] = (struct rpc_seg){ .base = (uint8_t *)data + 2, .len = (uint32_t)cut };
	seg[1] = (struct rpc_seg){ .base = (uint8_t *)data + 2 + cut,
				   .len = (uint32_t)(size - 2 - cut),
				   .placed = data[1] & 0x80 };
	rn_arena_init(&arena, mem, sizeof(mem));
	xdr_in_init(&x, seg, 2, &arena);
	args = calloc(1, decoders[which].size);
	if (args && decoders[which].decode(&x, args))
		touch(which, args);
	free(args);
	return 0;
}
