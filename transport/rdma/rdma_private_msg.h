/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RPC-over-RDMA private message of connection establishment (RFC 8797). Pure: no verbs. Sizes
 * are in bytes, multiples of 1024 from RR_INLINE_MIN to RR_INLINE_MAX.
 */
#ifndef RN_TRANSPORT_RDMA_PRIVATE_MSG_H
#define RN_TRANSPORT_RDMA_PRIVATE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RR_PRIVATE_MSG_SIZE 8u
#define RR_INLINE_MIN 1024u
#define RR_INLINE_MAX 262144u

struct rr_private_msg {
	bool remote_invalidate;
	uint32_t send_size; /* longest Send the sender of this message will make */
	uint32_t recv_size; /* longest Send it can receive */
};

/* Sizes out of range are clamped, others rounded down to 1024. */
void rr_private_encode(const struct rr_private_msg *m, uint8_t out[RR_PRIVATE_MSG_SIZE]);

/*
 * Searches the peer's private data for the message at any offset, since iWARP may have put its own
 * data in front. False: there is no whole message of version 1; *m then holds the defaults of RFC
 * 8797 section 5.1.
 */
bool rr_private_find(const void *data, size_t len, struct rr_private_msg *m);

#endif
