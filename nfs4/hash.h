/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash for values that clients cannot choose; for those that they can, see nfs4_client_hash. */
#ifndef RN_NFS4_HASH_H
#define RN_NFS4_HASH_H

#include <stdint.h>

static inline uint64_t nfs4_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15u;
	h ^= h >> 29;
	return h;
}

#endif
