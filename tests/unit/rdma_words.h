/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds RPC-over-RDMA messages word by word for the tests. */
#ifndef RN_TESTS_UNIT_RDMA_WORDS_H
#define RN_TESTS_UNIT_RDMA_WORDS_H

#include <stddef.h>
#include <stdint.h>

struct msg {
	uint8_t b[16384];
	size_t len;
};

static inline void put(struct msg *m, uint32_t v)
{
	m->b[m->len++] = v >> 24;
	m->b[m->len++] = v >> 16;
	m->b[m->len++] = v >> 8;
	m->b[m->len++] = v;
}

static inline uint32_t word(const uint8_t *p, unsigned i)
{
	p += 4 * i;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void put_fixed(struct msg *m, uint32_t vers, uint32_t proc)
{
	m->len = 0;
	put(m, 0x11223344);
	put(m, vers);
	put(m, 32);
	put(m, proc);
}

static inline void put_seg(struct msg *m, uint32_t handle, uint32_t len, uint64_t off)
{
	put(m, handle);
	put(m, len);
	put(m, off >> 32);
	put(m, (uint32_t)off);
}

static inline void put_read(struct msg *m, uint32_t pos, uint32_t handle, uint32_t len)
{
	put(m, 1);
	put(m, pos);
	put_seg(m, handle, len, 0x100000000ull + pos);
}

#endif
