/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/attr/owner_name.h"

#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "nfs4/nfs4_private.h"

/* Length in bytes of the character that starts with b; 0: no character does. */
static uint32_t char_len(uint8_t b)
{
	if (b < 0x80)
		return 1;
	if (b >= 0xc2 && b <= 0xdf) /* 0xc0 and 0xc1 would not be the shortest form */
		return 2;
	if (b >= 0xe0 && b <= 0xef)
		return 3;
	return b >= 0xf0 && b <= 0xf4 ? 4 : 0;
}

/* True if the second byte fits the first: no overlong forms, surrogates or code points over the
 * maximum. */
static bool second_valid(uint8_t first, uint8_t second)
{
	uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

	return second >= low && second <= high;
}

bool nfs4_utf8_valid(const char *s, uint32_t len)
{
	const uint8_t *p = (const uint8_t *)s, *end = p + len;

	while (p < end) {
		uint32_t n = char_len(*p);

		if (n == 0 || n > (uint32_t)(end - p) || (n > 1 && !second_valid(p[0], p[1])))
			return false;
		for (uint32_t i = 2; i < n; i++) {
			if ((p[i] & 0xc0) != 0x80)
				return false;
		}
		p += n;
	}
	return true;
}

#define NO_ID UINT32_MAX /* the kernel's value for "no id" */

static uint32_t put_decimal(uint32_t id, char *out)
{
	char digits[10];
	uint32_t n = 0;

	do
		digits[n++] = (char)('0' + id % 10);
	while (id /= 10);
	for (uint32_t i = 0; i < n; i++)
		out[i] = digits[n - 1 - i];
	return n;
}

/* Parses a decimal id. False: not a decimal number without leading zeros, or out of range. */
static bool get_decimal(const char *s, uint32_t len, uint32_t *id)
{
	uint64_t v = 0;

	if (len == 0 || len > 10 || (s[0] == '0' && len > 1))
		return false;
	for (uint32_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	*id = (uint32_t)v;
	return v < NO_ID;
}

/* The caller's address, on whose behalf a name service is asked; NULL: none. */
static const struct sockaddr *peer_of(const struct nfs4_compound *c)
{
	const struct rpc_conn *conn = c->req->conn;

	return conn ? (const struct sockaddr *)&conn->peer : NULL;
}

static void nfs4_owner_from_id(struct nfs4_compound *c, uint32_t id,
			       int (*map)(void *ctx, const struct sockaddr *peer, uint32_t id,
					  char *name, size_t size),
			       struct nfs4_owner_name *out)
{
	const struct nfs4_idmap *idmap = &c->server->cfg.idmap;
	int rc = -ENOENT;

	if (map && (idmap->names_always || c->req->call.cred.flavor != RPC_AUTH_SYS))
		do
			rc = map(idmap->ctx, peer_of(c), id, out->s, sizeof(out->s));
		while (nfs4_await(c, rc));
	if (rc == -RN_EUNNAMED)
		c->names_unknown++;
	if (rc == 0)
		out->len = (uint32_t)strnlen(out->s, NFS4_OWNER_MAX);
	else
		out->len = put_decimal(id, out->s);
}

void nfs4_user_name(struct nfs4_compound *c, uint32_t uid, struct nfs4_owner_name *out)
{
	nfs4_owner_from_id(c, uid, c->server->cfg.idmap.uid_to_name, out);
}

void nfs4_group_name(struct nfs4_compound *c, uint32_t gid, struct nfs4_owner_name *out)
{
	nfs4_owner_from_id(c, gid, c->server->cfg.idmap.gid_to_name, out);
}

static int nfs4_owner_to_id(struct nfs4_compound *c, const char *name, uint32_t len,
			    int (*map)(void *ctx, const struct sockaddr *peer, const char *name,
				       uint32_t len, uint32_t *id),
			    uint32_t *id)
{
	int rc;

	if (len == 0)
		return NFS4ERR_INVAL;
	if (get_decimal(name, len, id))
		return NFS4_OK;
	do
		rc = map ? map(c->server->cfg.idmap.ctx, peer_of(c), name, len, id) : -ENOENT;
	while (nfs4_await(c, rc));
	if (rc == 0 && *id != NO_ID)
		return NFS4_OK;
	return rc == -RN_EUNNAMED ? NFS4ERR_DELAY : NFS4ERR_BADOWNER;
}

int nfs4_user_id(struct nfs4_compound *c, const char *name, uint32_t len, uint32_t *uid)
{
	return nfs4_owner_to_id(c, name, len, c->server->cfg.idmap.name_to_uid, uid);
}

int nfs4_group_id(struct nfs4_compound *c, const char *name, uint32_t len, uint32_t *gid)
{
	return nfs4_owner_to_id(c, name, len, c->server->cfg.idmap.name_to_gid, gid);
}
