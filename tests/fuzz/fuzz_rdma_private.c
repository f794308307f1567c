/* SPDX-License-Identifier: BSD-2-Clause */
/* Private data of any bytes: decoded sizes stay in their range, and encode to the bytes that were
 * read. */
#include <stdint.h>
#include <stdlib.h>

#include "transport/rdma/rdma_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rr_private_msg m, back;
	uint8_t out[RR_PRIVATE_MSG_SIZE];

	rr_private_find(data, size, &m);
	if (m.send_size < RR_INLINE_MIN || m.send_size > RR_INLINE_MAX ||
	    m.recv_size < RR_INLINE_MIN || m.recv_size > RR_INLINE_MAX)
		abort();
	rr_private_encode(&m, out);
	if (!rr_private_find(out, sizeof(out), &back) || back.send_size != m.send_size ||
	    back.recv_size != m.recv_size || back.remote_invalidate != m.remote_invalidate)
		abort();
	return 0;
}
