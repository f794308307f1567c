/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/inode_handle.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "vfs/fs/fid.h"

bool vfs_handles_by_inode(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC ||
	       fs.f_type == BTRFS_SUPER_MAGIC;
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
