/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_text.h"

#include <stdio.h>

#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_view.h"
#include "nfs4/op_table.h"

/* Decimal text of a number without a name. Four static buffers, enough for one message. */
static const char *number(uint32_t n)
{
	static char text[4][16];
	static unsigned next;
	char *t = text[next++ % 4];

	snprintf(t, sizeof(text[0]), "%u", n);
	return t;
}

const char *nfs4_op_text(uint32_t opnum)
{
	const struct nfs4_op *op = nfs4_op_find(opnum, NFS4_MINOR_MAX);

	if (opnum == OP_ILLEGAL)
		return "ILLEGAL";
	return op ? op->name : number(opnum);
}

const char *nfs4_status_text(uint32_t status)
{
	const char *name = nfs4_status_name(status);

	return name ? name : number(status);
}
