/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/packed_handle.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "lib/secret.h"
#include "lib/util.h"

#define VERSION 2u
#define VERSION_MAC 0x82u
#define HEAD 12u
#define ROOM 12u
#define MAC_AT (HEAD + ROOM)
#define MAC (VFS_PACKED_FH - MAC_AT)
#define TYPE_MAX 254

_Static_assert(MAC == crypto_shorthash_BYTES, "the whole MAC");

int vfs_packed_encode(const struct vfs_handle *h, vfs_handle_key key, struct vfs_packed_fh *out)
{
	uint8_t *p = out->data;

	memset(out, 0, sizeof(*out));
	if (h->len == 0 || h->len > ROOM || h->type < 1 || h->type > TYPE_MAX)
		return -EOPNOTSUPP;
	p[0] = key ? VERSION_MAC : VERSION;
	p[1] = (uint8_t)h->len;
	p[2] = (uint8_t)h->type;
	rn_put32(p + 4, h->export_id);
	rn_put32(p + 8, h->submount_id);
	memcpy(p + HEAD, h->bytes, h->len);
	if (key)
		crypto_shorthash(p + MAC_AT, p, MAC_AT, key);
	return 0;
}

static bool is_zero(const uint8_t *p, size_t len)
{
	uint8_t any = 0;

	for (size_t i = 0; i < len; i++)
		any |= p[i];
	return any == 0;
}

int vfs_packed_parse(const struct vfs_packed_fh *fh, bool has_mac, struct vfs_handle *out)
{
	const uint8_t *p = fh->data;

	if (p[0] != (has_mac ? VERSION_MAC : VERSION) || p[1] < 1 || p[1] > ROOM || p[2] < 1 ||
	    p[2] > TYPE_MAX || p[3] != 0)
		return -EBADF;
	if (!is_zero(p + HEAD + p[1], ROOM - p[1]) || (!has_mac && !is_zero(p + MAC_AT, MAC)))
		return -EBADF;
	out->len = p[1];
	out->type = p[2];
	out->export_id = rn_get32(p + 4);
	out->submount_id = rn_get32(p + 8);
	memcpy(out->bytes, p + HEAD, out->len);
	return 0;
}

int vfs_packed_check(const struct vfs_packed_fh *fh, vfs_handle_key key)
{
	uint8_t mac[MAC];

	if (!key)
		return 0;
	crypto_shorthash(mac, fh->data, MAC_AT, key);
	return rn_same_secret(mac, fh->data + MAC_AT, MAC / sizeof(uint64_t)) ? 0 : -ESTALE;
}
