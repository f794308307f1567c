/* SPDX-License-Identifier: BSD-2-Clause */
/* The check of a call's first bytes, and the walk over a COMPOUND's operations (nfs4/scan.h), on
 * any bytes. Neither may read beyond the call. The first byte cuts the rest into two segments. */
#include <stdlib.h>

#include "lib/util.h"
#include "nfs4/nfs4_server.h"
#include "nfs4/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpc_seg seg[2];
	struct xdr_in x;
	size_t cut;

	if (nfs4_bulk_offset(data, size) > size)
		abort();
	if (size < 2)
		return 0;
	cut = rn_min((data[0] & 0x7f) * 4, size - 2);
	seg[0] = (struct rpc_seg){ .base = (uint8_t *)data + 2, .len = (uint32_t)cut };
	seg[1] = (struct rpc_seg){ .base = (uint8_t *)data + 2 + cut,
				   .len = (uint32_t)(size - 2 - cut),
				   .placed = data[0] & 0x80 };
	xdr_in_init(&x, seg, 2, NULL);
	nfs4_scan_idempotent(&x, data[1]);
	return 0;
}
