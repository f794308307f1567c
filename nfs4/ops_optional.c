/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Optional operations that this server does not support (RFC 8881 section 17, RFC 7862 section 13):
 * NFS4ERR_NOTSUPP in the minor versions that define them. An operation that is added moves its row
 * from here to its own file.
 */
#include "nfs4/op_table.h"

#define OPTIONAL(NAME, name_, first_minor, needs_)                                                 \
	const struct nfs4_op nfs4_op_##name_ = {                                                   \
		.name = #NAME,                                                                     \
		.minors = { first_minor, 2 },                                                      \
		.needs = needs_,                                                                   \
		.errors = NFS4_ERRORS_OWN,                                                         \
	}

OPTIONAL(GETDEVICEINFO, getdeviceinfo, 1, 0);
OPTIONAL(GETDEVICELIST, getdevicelist, 1, NFS4_NEEDS_FH);
OPTIONAL(LAYOUTCOMMIT, layoutcommit, 1, NFS4_NEEDS_FH);
OPTIONAL(LAYOUTERROR, layouterror, 2, NFS4_NEEDS_FH);
OPTIONAL(LAYOUTGET, layoutget, 1, NFS4_NEEDS_FH);
OPTIONAL(LAYOUTRETURN, layoutreturn, 1, NFS4_NEEDS_FH);
OPTIONAL(LAYOUTSTATS, layoutstats, 2, NFS4_NEEDS_FH);
