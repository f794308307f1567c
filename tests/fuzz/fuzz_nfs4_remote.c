/* SPDX-License-Identifier: BSD-2-Clause */
/* Results that another server sends for a copy (nfs4/remote/). The first byte chooses the call, the
 * second where the message is split; a success must be within what was asked for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/remote/remote_wire.h"

#define ROOM 256u

static void get_read(struct xdr_in *x)
{
	struct nfs4_remote_session s = { .seqid = 1 };
	uint8_t *to = malloc(ROOM);
	bool eof = false;
	uint32_t got;

	if (!to)
		abort();
	if (nfs4_remote_get_read(x, &s, to, ROOM, &got, &eof) == NFS4_OK) {
		if (got > ROOM || (got == 0 && !eof))
			abort();
	} else if (got != 0) {
		abort();
	}
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nfs4_remote_session s = { .seqid = 1 };
	struct rpc_seg seg[2];
	struct xdr_in x;
	uint8_t *copy;
	size_t split;

	if (size < 2 || size > 4096)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	split = data[1] < size - 2 ? data[1] : size - 2;
	seg[0] = (struct rpc_seg){ .base = copy + 2, .len = (uint32_t)split };
	seg[1] = (struct rpc_seg){ .base = copy + 2 + split, .len = (uint32_t)(size - 2 - split) };
	xdr_in_init(&x, seg, 2, NULL);
	if (data[0] % 3 == 0)
		get_read(&x);
	else if (data[0] % 3 == 1)
		(void)nfs4_remote_get_exchange_id(&x, &s);
	else if (nfs4_remote_get_create_session(&x, &s) == NFS4_OK &&
		 s.max_response <= NFS4_REMOTE_HEAD)
		abort();
	free(copy);
	return 0;
}
