/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains and memory regions. A key is an index into the table of regions and, in its
 * low byte, a tag that changes with each registration, so that an old key is not taken for a new
 * one. Local and remote key of a region are equal. All with the fabric's lock held.
 */
#ifndef SV_MEMORY_H
#define SV_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/uio.h>

struct sv_pd {
	struct ibv_pd ibv; /* first */
	unsigned users;
};

struct sv_mr {
	struct ibv_mr ibv; /* first */
	uint64_t iova;
	unsigned access;
	bool invalid;	/* invalidated by a peer's Send with Invalidate */
	unsigned pulls; /* peers' Reads that are taking data from the region */
};

static inline struct sv_pd *sv_pd_of(struct ibv_pd *pd)
{
	return (struct sv_pd *)pd;
}

struct sv_range {
	uint64_t addr;
	uint64_t len;
	uint32_t key;
	unsigned access; /* rights that the access needs: IBV_ACCESS_* */
};

/* Address of the range in this process; NULL if key, domain, bounds or rights do not match. Sets
 * *mr, if not NULL, to its region. */
void *sv_mr_map(const struct ibv_pd *pd, const struct sv_range *r, struct sv_mr **mr);

/* The bytes [offset, offset + len) of a scatter or gather list. */
struct sv_sge_part {
	const struct ibv_sge *sge;
	int nsge;
	uint32_t offset, len;
};
/* Stores the part in iov, in at most nsge entries; -EFAULT if a key does not allow the access. */
int sv_sge_map(const struct ibv_pd *pd, const struct sv_sge_part *part, unsigned access,
	       struct iovec *iov);

/* Handles a peer's Send with Invalidate; false if the domain has no such key. */
bool sv_mr_invalidate(const struct ibv_pd *pd, uint32_t rkey);

/* Ends one pull: the peer has taken the region's data or never will. */
void sv_mr_unpull(uint32_t rkey);

#endif
