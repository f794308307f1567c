/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of users and groups (RFC 7530 and RFC 8881, section 5.9). A name is a decimal number
 * without leading zeros if the call uses AUTH_SYS, which trusts numbers anyway, or if no name is
 * known. Else it is "user@domain" from the daemon's mapping. Both forms are accepted.
 */
#ifndef RN_NFS4_ATTR_OWNER_NAME_H
#define RN_NFS4_ATTR_OWNER_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "nfs4/attr/nfs4_attr.h"

struct nfs4_owner_name {
	uint32_t len;
	char s[NFS4_OWNER_MAX + 1];
};

void nfs4_user_name(struct nfs4_compound *c, uint32_t uid, struct nfs4_owner_name *out);
void nfs4_group_name(struct nfs4_compound *c, uint32_t gid, struct nfs4_owner_name *out);

/* NFS4_OK, NFS4ERR_BADOWNER, NFS4ERR_INVAL (the empty name) or NFS4ERR_DELAY (the name service is
 * busy). */
int nfs4_user_id(struct nfs4_compound *c, const char *name, uint32_t len, uint32_t *uid);
int nfs4_group_id(struct nfs4_compound *c, const char *name, uint32_t len, uint32_t *gid);

/* UTF-8 (RFC 3629), which RFC 8881 section 14 requires of strings. */

/* True if s is well-formed: shortest forms, no surrogates, nothing beyond U+10FFFF. */
bool nfs4_utf8_valid(const char *s, uint32_t len);

#endif
