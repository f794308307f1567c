/* SPDX-License-Identifier: BSD-2-Clause */
/* Hashing for the tables of one client, by what it has not chosen; for what it has see
 * nfs4_client_hash. */
#ifndef RN_NFS4_STATE_HASH_H
#define RN_NFS4_STATE_HASH_H

#include <stdint.h>

static inline uint64_t nfs4_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15u;
	h ^= h >> 29;
	return h;
}

#endif
