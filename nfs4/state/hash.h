/* SPDX-License-Identifier: BSD-2-Clause */
/* Hashing for the tables of one client. Clients can choose names that collide: it is their own
 * table which is slow then. */
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

static inline uint64_t nfs4_hash_bytes(uint64_t h, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return nfs4_mix(h);
}

#endif
