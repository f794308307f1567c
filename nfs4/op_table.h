/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of operations: which minor versions have them, and what the loop must know of each. */
#ifndef RN_NFS4_OP_TABLE_H
#define RN_NFS4_OP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nfs4_compound;

enum nfs4_op_flags {
	NFS4_OP_CHANGES = 1,  /* changes something: its worst-case result must fit before it runs */
	NFS4_OP_ALONE = 2,    /* may be a COMPOUND's only operation, outside of a session */
	NFS4_OP_NEEDS_FH = 4, /* without a current filehandle: NFS4ERR_NOFILEHANDLE */
	/* Sets the current filehandle, so that the current stateid is no longer current (RFC 8881
	 * section 16.2.3.1.2). */
	NFS4_OP_SETS_FH = 8,
	NFS4_OP_NEEDS_SAVED_FH = 16,
	NFS4_OP_FAILS_WITH_BITMAP = 32, /* its result has a bitmap4 even on failure: SETATTR */
	/* Gives state back, or is what such operations begin with: for hosts, too, that were admitted
	 * until lately. What needs a current filehandle asks for the export anyway. */
	NFS4_OP_FOR_FORMER = 64,
};

struct nfs4_op {
	const char *name;		 /* without "OP_"; NULL: no operation has that number */
	uint8_t first_minor, last_minor; /* that know it: outside, NFS4ERR_OP_ILLEGAL */
	/* Minor versions in which RFC 8881 or 7862 made it mandatory not to implement:
	 * NFS4ERR_NOTSUPP from this one on; 0: none. */
	uint8_t gone_minor;
	uint8_t flags;
	uint16_t args_size; /* zeroed bytes for decode */
	/* Worst-case bytes of the result behind its status; of results without a bound (READ,
	 * READDIR, GETATTR with ACLs) what they need besides it. */
	uint16_t reply_size;
	/* Decodes from c->in; what is wrong sets c->in->err, which is answered NFS4ERR_BADXDR.
	 * NULL: no arguments. A value that is well-formed but not allowed is for run() to answer.
	 */
	void (*decode)(struct nfs4_compound *c, void *args);
	/* nfsstat4, NFS4_PENDING or NFS4_REPLAYED. NULL: NFS4ERR_NOTSUPP. */
	int (*run)(struct nfs4_compound *c, void *args);
};

/* NULL: no operation has that number in that minor version (NFS4ERR_OP_ILLEGAL). */
const struct nfs4_op *nfs4_op_find(uint32_t opnum, uint32_t minor);

#endif
