/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts of one client's operations. Any thread adds to them. In minor version 0 a COMPOUND's client is
 * known from the first operation on that names it, by its id or by a stateid; those before are not counted.
 */
#ifndef RN_NFS4_COUNTS_H
#define RN_NFS4_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "nfs4/nfs4_proto.h"

struct nfs4_counts {
	_Atomic uint64_t calls;	 /* COMPOUNDs of minor version 0; others begin with a SEQUENCE */
	_Atomic uint64_t errors; /* operations that failed */
	_Atomic uint64_t bytes_read, bytes_written;
	_Atomic uint64_t op[NFS4_OPS]; /* by number; those that there are not: 0 */
};

static inline void nfs4_count(_Atomic uint64_t *n, uint64_t add)
{
	atomic_fetch_add_explicit(n, add, memory_order_relaxed);
}

#endif
