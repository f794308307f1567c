/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users and groups by name (RFC 7530 and RFC 8881, section 5.9): decimal numbers without leading
 * zeros where the call is of AUTH_SYS, which believes numbers anyway, or where no name is known;
 * else what the daemon's mapping says ("user@domain"). Both are understood.
 */
#ifndef RN_NFS4_ATTR_OWNER_H
#define RN_NFS4_ATTR_OWNER_H

#include "nfs4/attr/attr.h"

struct nfs4_owner_name {
	uint32_t len;
	char s[NFS4_OWNER_MAX + 1];
};

void nfs4_user_name(struct nfs4_compound *c, uint32_t uid, struct nfs4_owner_name *out);
void nfs4_group_name(struct nfs4_compound *c, uint32_t gid, struct nfs4_owner_name *out);

/* NFS4_OK, NFS4ERR_BADOWNER, NFS4ERR_INVAL: the empty name; or NFS4ERR_DELAY: the name service is busy. */
int nfs4_user_id(struct nfs4_compound *c, const char *name, uint32_t len, uint32_t *uid);
int nfs4_group_id(struct nfs4_compound *c, const char *name, uint32_t len, uint32_t *gid);

#endif
