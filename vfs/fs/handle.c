/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <time.h>

#include "lib/secret.h"
#include "lib/util.h"
#include "vfs/vfs.h"

#define HEAD 16u
#define MAC crypto_shorthash_BYTES
#define VERSION 1u
#define VERSION_MAC 0x81u
#define VERSION_PACKED 2u /* vfs/fs/handle.h; its export id is at the same place */
#define VERSION_PACKED_MAC 0x82u
#define TYPE_MAX                                                                                   \
	254 /* 255 is the kernel's "no handle"; what is above are flags and not for clients */

_Static_assert(HEAD + VFS_KERNEL_FH_MAX == VFS_FH_MAX, "a handle without a MAC fills it");

int vfs_handle_encode(const struct vfs_handle *h, vfs_handle_key key, struct vfs_fh *out)
{
	uint32_t mac = key ? MAC : 0;

	if (h->len == 0 || h->len > VFS_FH_MAX - HEAD - mac || h->type < 1 || h->type > TYPE_MAX)
		return -EOPNOTSUPP;
	memset(out, 0, sizeof(*out));
	out->data[0] = key ? VERSION_MAC : VERSION;
	out->data[1] = (uint8_t)h->len;
	rn_put32(out->data + 4, h->export_id);
	rn_put32(out->data + 8, h->submount_id);
	rn_put32(out->data + 12, (uint32_t)h->type);
	memcpy(out->data + HEAD, h->bytes, h->len);
	out->len = HEAD + h->len;
	if (key)
		crypto_shorthash(out->data + out->len, out->data, out->len, key);
	out->len += mac;
	return 0;
}

int vfs_handle_check(const struct vfs_fh *fh, vfs_handle_key key)
{
	uint8_t mac[MAC];

	if (!key)
		return 0;
	if (fh->len <= HEAD + MAC || fh->len > VFS_FH_MAX)
		return -ESTALE;
	crypto_shorthash(mac, fh->data, fh->len - MAC, key);
	return rn_same_secret(mac, fh->data + fh->len - MAC, MAC / sizeof(uint64_t)) ? 0 : -ESTALE;
}

int vfs_handle_parse(const struct vfs_fh *fh, bool has_mac, struct vfs_handle *out)
{
	uint32_t mac = has_mac ? MAC : 0;
	uint32_t type;

	if (fh->len <= HEAD + mac || fh->len > VFS_FH_MAX ||
	    fh->data[0] != (has_mac ? VERSION_MAC : VERSION))
		return -EBADF;
	out->len = fh->len - HEAD - mac;
	type = rn_get32(fh->data + 12);
	if (fh->data[1] != out->len || fh->data[2] != 0 || fh->data[3] != 0 || type < 1 ||
	    type > TYPE_MAX)
		return -EBADF;
	out->export_id = rn_get32(fh->data + 4);
	out->submount_id = rn_get32(fh->data + 8);
	out->type = (int32_t)type;
	memcpy(out->bytes, fh->data + HEAD, out->len);
	return 0;
}

bool vfs_handle_peek(uint64_t head, uint32_t *export_id)
{
	const uint8_t version = (uint8_t)(head >> 56);

	*export_id = (uint32_t)head;
	return version == VERSION || version == VERSION_MAC || version == VERSION_PACKED ||
	       version == VERSION_PACKED_MAC;
}

const uint8_t *vfs_handle_file_part(const struct vfs_fh *fh, uint32_t *len)
{
	*len = HEAD - 12 + fh->data[1];
	return fh->data + 12;
}

/* FNV-1a */
uint64_t vfs_handle_part_hash(const uint8_t *part, uint32_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ part[i]) * 0x100000001b3u;
	return h ^ h >> 32;
}

/* struct file_handle with room for the longest that we take. */
union kernel_handle {
	struct file_handle h;
	uint8_t room[sizeof(struct file_handle) + VFS_KERNEL_FH_MAX];
};

int vfs_handle_of(int dirfd, const char *name, struct vfs_handle *out, uint64_t *mnt_id)
{
	union kernel_handle k;
	int id;

	k.h.handle_bytes = VFS_KERNEL_FH_MAX;
	if (name_to_handle_at(dirfd, name, &k.h, &id, *name ? 0 : AT_EMPTY_PATH) != 0)
		return errno == EOVERFLOW ? -EOPNOTSUPP : -errno;
	if (k.h.handle_bytes > VFS_KERNEL_FH_MAX)
		return -EOPNOTSUPP;
	out->type = k.h.handle_type;
	out->len = k.h.handle_bytes;
	memcpy(out->bytes, k.h.f_handle, out->len);
	*mnt_id = (uint64_t)(uint32_t)id;
	return 0;
}

bool vfs_handle_shows_inode(const struct vfs_handle *h, uint64_t ino)
{
	uint32_t small;
	uint64_t large;

	if (h->type == FILEID_INO32_GEN && h->len == 2 * sizeof(small)) {
		memcpy(&small, h->bytes, sizeof(small));
		return small == ino;
	}
	if (h->type == FILEID_XFS_INO64_GEN && h->len == sizeof(large) + sizeof(small)) {
		memcpy(&large, h->bytes, sizeof(large));
		return large == ino;
	}
	return false;
}

bool vfs_handle_subvolume(const struct vfs_handle *h, uint64_t *ino, uint64_t *subvolume)
{
	if (h->type != FILEID_BTRFS || h->len < sizeof(*ino) + sizeof(*subvolume))
		return false;
	memcpy(ino, h->bytes, sizeof(*ino));
	memcpy(subvolume, h->bytes + sizeof(*ino), sizeof(*subvolume));
	return true;
}

bool vfs_fh_subvolume(const struct vfs_fh *fh, uint64_t *ino, uint64_t *subvolume)
{
	struct vfs_handle h = { .type = (int32_t)rn_get32(fh->data + 12), .len = fh->data[1] };

	if (h.len > fh->len - HEAD || h.len > sizeof(h.bytes))
		return false;
	memcpy(h.bytes, fh->data + HEAD, h.len);
	return vfs_handle_subvolume(&h, ino, subvolume);
}

/*
 * A handle whose file is gone is ENOMEM to ext4 and others for the moment in which another file is
 * being made with the inode number: the kernel's iget_locked has one answer for both.
 */
#define TRIES 50
#define PAUSE_NS (100 * 1000) /* the moment lasts microseconds; free memory may take longer */

int vfs_handle_open(int mount_fd, const struct vfs_handle *h)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	union kernel_handle k;
	int fd = -1;

	k.h.handle_bytes = h->len;
	k.h.handle_type = h->type;
	memcpy(k.h.f_handle, h->bytes, h->len);
	for (unsigned i = 0; i < TRIES; i++) {
		fd = open_by_handle_at(mount_fd, &k.h, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 || errno != ENOMEM)
			break;
		nanosleep(&pause, NULL);
	}
	return fd < 0 ? -errno : fd;
}

#define PACKED_HEAD 12u
#define PACKED_ROOM 12u
#define PACKED_MAC_AT (PACKED_HEAD + PACKED_ROOM)
#define PACKED_MAC (VFS_PACKED_FH - PACKED_MAC_AT)

_Static_assert(PACKED_MAC == crypto_shorthash_BYTES, "the whole PACKED_MAC");

int vfs_packed_encode(const struct vfs_handle *h, vfs_handle_key key, struct vfs_packed_fh *out)
{
	uint8_t *p = out->data;

	memset(out, 0, sizeof(*out));
	if (h->len == 0 || h->len > PACKED_ROOM || h->type < 1 || h->type > TYPE_MAX)
		return -EOPNOTSUPP;
	p[0] = key ? VERSION_PACKED_MAC : VERSION_PACKED;
	p[1] = (uint8_t)h->len;
	p[2] = (uint8_t)h->type;
	rn_put32(p + 4, h->export_id);
	rn_put32(p + 8, h->submount_id);
	memcpy(p + PACKED_HEAD, h->bytes, h->len);
	if (key)
		crypto_shorthash(p + PACKED_MAC_AT, p, PACKED_MAC_AT, key);
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

	if (p[0] != (has_mac ? VERSION_PACKED_MAC : VERSION_PACKED) || p[1] < 1 ||
	    p[1] > PACKED_ROOM || p[2] < 1 || p[2] > TYPE_MAX || p[3] != 0)
		return -EBADF;
	if (!is_zero(p + PACKED_HEAD + p[1], PACKED_ROOM - p[1]) ||
	    (!has_mac && !is_zero(p + PACKED_MAC_AT, PACKED_MAC)))
		return -EBADF;
	out->len = p[1];
	out->type = p[2];
	out->export_id = rn_get32(p + 4);
	out->submount_id = rn_get32(p + 8);
	memcpy(out->bytes, p + PACKED_HEAD, out->len);
	return 0;
}

int vfs_packed_check(const struct vfs_packed_fh *fh, vfs_handle_key key)
{
	uint8_t mac[PACKED_MAC];

	if (!key)
		return 0;
	crypto_shorthash(mac, fh->data, PACKED_MAC_AT, key);
	return rn_same_secret(mac, fh->data + PACKED_MAC_AT, PACKED_MAC / sizeof(uint64_t))
		       ? 0
		       : -ESTALE;
}

static void inode_handle_put(struct vfs_handle *h, const void *part, uint32_t size)
{
	memcpy(h->bytes + h->len, part, size);
	h->len += size;
}

void vfs_handle_join(const struct vfs_inode_handle *in, struct vfs_handle *out)
{
	const uint32_t small = (uint32_t)in->ino;
	const uint64_t volume = in->volume;

	out->type = in->type;
	out->len = 0;
	if (in->type == FILEID_INO32_GEN)
		inode_handle_put(out, &small, sizeof(small));
	else
		inode_handle_put(out, &in->ino, sizeof(in->ino));
	if (in->type == FILEID_BTRFS)
		inode_handle_put(out, &volume, sizeof(volume));
	inode_handle_put(out, &in->generation, sizeof(in->generation));
}

/* Cuts the handle up by its type. False: it has no such length. */
static bool inode_handle_cut(const struct vfs_handle *h, struct vfs_inode_handle *out,
			     uint64_t *volume)
{
	const uint32_t ino_size = h->type == FILEID_INO32_GEN ? sizeof(uint32_t) : sizeof(uint64_t);
	const uint32_t volume_size = h->type == FILEID_BTRFS ? sizeof(*volume) : 0;
	const uint8_t *p = h->bytes;
	uint32_t small;

	if (h->len != ino_size + volume_size + sizeof(out->generation))
		return false;
	if (h->type == FILEID_INO32_GEN) {
		memcpy(&small, p, sizeof(small));
		out->ino = small;
	} else {
		memcpy(&out->ino, p, sizeof(out->ino));
	}
	memcpy(volume, p + ino_size, volume_size);
	memcpy(&out->generation, p + ino_size + volume_size, sizeof(out->generation));
	return true;
}

bool vfs_handle_split(const struct vfs_handle *h, struct vfs_inode_handle *out)
{
	uint64_t volume = 0;

	if (h->type != FILEID_INO32_GEN && h->type != FILEID_XFS_INO64_GEN &&
	    h->type != FILEID_BTRFS)
		return false;
	if (!inode_handle_cut(h, out, &volume) || volume > UINT32_MAX)
		return false;
	out->volume = (uint32_t)volume;
	out->type = h->type;
	return true;
}
