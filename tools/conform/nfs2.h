/* SPDX-License-Identifier: BSD-2-Clause */
/* NFSv2 (RFC 1094) and MOUNT version 1, as far as cases need them; files are made by NFSv3. */
#ifndef RN_CONFORM_NFS2_H
#define RN_CONFORM_NFS2_H

#include "tools/conform/conform_call.h"

#define CF2_FH 32u
#define CF2_FATTR 68u

struct cf2_fh {
	uint8_t data[CF2_FH];
};

enum {
	CF2_GETATTR = 1,
	CF2_SETATTR = 2,
	CF2_LOOKUP = 4,
	CF2_READLINK = 5,
	CF2_READ = 6,
	CF2_WRITE = 8,
	CF2_CREATE = 9,
	CF2_REMOVE = 10,
	CF2_RENAME = 11,
	CF2_LINK = 12,
	CF2_SYMLINK = 13,
	CF2_MKDIR = 14,
	CF2_RMDIR = 15,
	CF2_READDIR = 16,
	CF2_STATFS = 17
};

/* A call that begins with the handle. */
struct cf_call *cf2_new(struct cf_test *t, uint32_t proc, const struct cf2_fh *fh);
void cf2_put_name(struct cf_call *c, const char *name);
/* sattr: nothing but a mode. */
void cf2_put_sattr(struct cf_call *c, uint32_t mode);

/* Handle of the scratch directory. False: verdict; skipped where NFSv2 is not served over RDMA. */
bool cf2_scratch(struct cf_test *t, struct cf2_fh *fh);
/* LOOKUP in dir, which must succeed. */
bool cf2_lookup(struct cf_test *t, const struct cf2_fh *dir, const char *name, struct cf2_fh *fh);

#endif
