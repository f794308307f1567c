/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of NFSv4.1 that the load generator uses (RFC 5662). */
#ifndef BENCH_NFS4_NUMBERS_H
#define BENCH_NFS4_NUMBERS_H

enum {
	OP_ACCESS = 3,
	OP_CLOSE = 4,
	OP_COMMIT = 5,
	OP_GETATTR = 9,
	OP_GETFH = 10,
	OP_LOOKUP = 15,
	OP_OPEN = 18,
	OP_PUTFH = 22,
	OP_PUTROOTFH = 24,
	OP_READ = 25,
	OP_READDIR = 26,
	OP_REMOVE = 28,
	OP_WRITE = 38,
	OP_EXCHANGE_ID = 42,
	OP_CREATE_SESSION = 43,
	OP_DESTROY_SESSION = 44,
	OP_SEQUENCE = 53,
	OP_DESTROY_CLIENTID = 57,
	OP_RECLAIM_COMPLETE = 58,
};

enum { NFS4ERR_DELAY = 10008, NFS4ERR_GRACE = 10013 };

/* Attributes that Linux asks for: type, change, size, fsid, fileid | mode, links, owner, group, device, space, times, mounted-on. */
#define ATTRS_0 (1u << 1 | 1u << 3 | 1u << 4 | 1u << 8 | 1u << 20)
#define ATTRS_1                                                                                    \
	(1u << 1 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 9 | 1u << 13 | 1u << 15 | 1u << 20 |        \
	 1u << 21 | 1u << 23)
/* READDIR wants errors of single entries and handles, too. */
#define ATTRS_READDIR_0 (ATTRS_0 | 1u << 11 | 1u << 19)

#endif
