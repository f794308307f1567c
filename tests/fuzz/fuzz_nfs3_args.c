/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The argument decoders of every procedure. The first byte chooses the decoder. The second says
 * where the message is cut into two segments, and whether the second segment came by a Read chunk.
 * The arguments follow.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs3/nfs3_args.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm.h"
#include "nfs3/nfs3_procs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One procedure for each decoder: tests/fuzz/make_nfs3_seeds.c has their indices. */
static const struct rpc_proc *const procs[] = {
	&nfs3_proc_getattr.rpc, &nfs3_proc_setattr.rpc,
	&nfs3_proc_lookup.rpc,	&nfs3_proc_access.rpc,
	&nfs3_proc_read.rpc,	&nfs3_proc_write.rpc,
	&nfs3_proc_create.rpc,	&nfs3_proc_mkdir.rpc,
	&nfs3_proc_symlink.rpc, &nfs3_proc_mknod.rpc,
	&nfs3_proc_rename.rpc,	&nfs3_proc_link.rpc,
	&nfs3_proc_readdir.rpc, &nfs3_proc_readdirplus.rpc,
	&nfs3_proc_commit.rpc,	&mnt_proc_umnt,
	&nlm_proc_test,		&nlm_proc_lock,
	&nlm_proc_cancel,	&nlm_proc_unlock,
	&nlm_proc_free_all,	&nfsacl_proc_setacl.rpc,
	&rquota_proc_get_v1,	&rquota_proc_get_v2,
	&rquota_proc_set_v1,	&rquota_proc_set_v2,
	&nlm_proc_test_old,	&nlm_proc_lock_old,
	&nlm_proc_cancel_old,	&nlm_proc_unlock_old,
	&nlm_proc_share,	&nlm_proc_granted_res,
};

static volatile uint8_t sink;

static void touch_bytes(const struct nlm_bytes *b)
{
	for (uint32_t i = 0; i < b->len; i++)
		sink = b->data[i];
}

/* Reads what a decoded call points to. (fuzz_xdr_in does so for bulk data, of WRITE and SYMLINK.) */
static void touch(const struct rpc_proc *proc, const void *args)
{
	if (proc->decode == nlm_decode_lock || proc->decode == nlm_decode_lock_old) {
		const struct nlm_lock_args *a = args;

		touch_bytes(&a->oh);
		touch_bytes(&a->caller);
	}
	if (proc == &nlm_proc_share)
		touch_bytes(&((const struct nlm_share_args *)args)->lock.oh);
	if (proc == &nlm_proc_granted_res)
		touch_bytes(&((const struct nlm_res_args *)args)->cookie);
	if (proc == &nfs3_proc_lookup.rpc)
		nfs3_name_check(&((const struct nfs3_dirop_args *)args)->name);
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

	nfs3_bulk_offset(data, size);
	if (size < 2)
		return 0;
	proc = procs[data[0] % rn_array_size(procs)];
	cut = rn_min((data[1] & 0x7f) * 4, size - 2);
	seg[0] = (struct rpc_seg){ .base = (uint8_t *)data + 2, .len = (uint32_t)cut };
	seg[1] = (struct rpc_seg){ .base = (uint8_t *)data + 2 + cut,
				   .len = (uint32_t)(size - 2 - cut),
				   .placed = data[1] & 0x80 };
	rn_arena_init(&arena, mem, sizeof(mem));
	xdr_in_init(&x, seg, 2, &arena);
	args = calloc(1, proc->args_size);
	if (args && proc->decode(&x, args))
		touch(proc, args);
	free(args);
	return 0;
}
