/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/op_table.h"

#include "lib/util.h"
#include "nfs4/nfs4_proto.h"

#define POINTER(NAME, name) [OP_##NAME] = &nfs4_op_##name,
static const struct nfs4_op *const ops[NFS4_OPS] = { NFS4_OP_LIST(POINTER) };

const struct nfs4_op *nfs4_op_find(uint32_t opnum, uint32_t minor)
{
	const struct nfs4_op *op = opnum < rn_array_size(ops) ? ops[opnum] : NULL;

	if (!op || minor < op->minors.first || minor > op->minors.last)
		return NULL;
	return op;
}
