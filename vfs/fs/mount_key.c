/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/mount_key.h"

#include <endian.h>
#include <sodium.h>
#include <string.h>

_Static_assert(VFS_HANDLE_KEY_LEN == crypto_shorthash_KEYBYTES, "the MAC's");
_Static_assert(VFS_HANDLE_KEY_LEN >= crypto_generichash_KEYBYTES_MIN &&
		       VFS_HANDLE_KEY_LEN >= crypto_generichash_BYTES_MIN,
	       "the hash's");

/* Each field with its length before it: two different inputs are never the same bytes. */
static void mount_key_add(crypto_generichash_state *st, const void *data, uint32_t len)
{
	uint32_t be = htobe32(len);

	crypto_generichash_update(st, (const uint8_t *)&be, sizeof(be));
	crypto_generichash_update(st, data, len);
}

void vfs_mount_key(const uint8_t above[VFS_HANDLE_KEY_LEN], uint32_t id, const struct vfs_fs_id *fs,
		   const struct vfs_handle *root, uint8_t key[VFS_HANDLE_KEY_LEN])
{
	static const char use[] = "ringnfs file handles of a mount";
	uint32_t numbers[] = { htobe32(id), htobe32(fs->kind), htobe32((uint32_t)root->type) };
	crypto_generichash_state st;

	crypto_generichash_init(&st, above, VFS_HANDLE_KEY_LEN, VFS_HANDLE_KEY_LEN);
	mount_key_add(&st, use, sizeof(use));
	mount_key_add(&st, numbers, sizeof(numbers));
	mount_key_add(&st, fs->bytes, fs->len);
	mount_key_add(&st, root->bytes, root->len);
	crypto_generichash_final(&st, key, VFS_HANDLE_KEY_LEN);
	sodium_memzero(&st, sizeof(st));
}
