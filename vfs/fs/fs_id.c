/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the order of rpc.mountd, which many administrators know: the UUID that libblkid reads from the
 * device, else f_fsid of statfs(2), which for btrfs tells subvolumes apart. Newer kernels give the
 * UUID without the device (FS_IOC_GETFSUUID): asked second, as what is found must not depend on the
 * kernel's release.
 */
#include "vfs/fs/fs_id.h"

#include <blkid.h>
#include <ctype.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/* In linux/fs.h since Linux 6.9. */
struct fs_uuid {
	uint8_t len;
	uint8_t uuid[16];
};
#define GET_FS_UUID _IOR(0x15, 0, struct fs_uuid)

/* A UUID of zeros is none: images are made with it. */
static bool take_text(struct vfs_fs_id *out, const char *text, size_t len)
{
	if (len > VFS_FS_ID_MAX || strspn(text, "0-") >= len)
		return false;
	out->kind = VFS_FS_ID_UUID;
	out->len = (uint8_t)len;
	for (size_t i = 0; i < len; i++)
		out->bytes[i] = (uint8_t)tolower((unsigned char)text[i]);
	return true;
}

static bool fs_id_probe(blkid_probe pr, struct vfs_fs_id *out)
{
	const char *text;
	size_t len;

	blkid_probe_enable_partitions(pr, 0);
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_UUID);
	return blkid_do_safeprobe(pr) == 0 &&
	       blkid_probe_lookup_value(pr, "UUID", &text, &len) == 0 &&
	       take_text(out, text, strnlen(text, len));
}

static bool uuid_of_device(dev_t dev, struct vfs_fs_id *out)
{
	char *name = major(dev) ? blkid_devno_to_devname(dev) : NULL;
	blkid_probe pr = name ? blkid_new_probe_from_filename(name) : NULL;
	bool found = pr && fs_id_probe(pr, out);

	if (pr)
		blkid_free_probe(pr);
	free(name);
	return found;
}

static bool uuid_of_kernel(int fd, struct vfs_fs_id *out)
{
	struct fs_uuid u = { 0 };
	char text[37];
	size_t n = 0;

	if (ioctl(fd, GET_FS_UUID, &u) != 0 || u.len != sizeof(u.uuid))
		return false;
	for (unsigned i = 0; i < sizeof(u.uuid); i++) {
		bool dash = i == 4 || i == 6 || i == 8 || i == 10;

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%02x", dash ? "-" : "",
				      u.uuid[i]);
	}
	return take_text(out, text, n);
}

/* Some file systems have only their device number to say there, which the next boot changes. */
static bool is_device(uint64_t fsid, dev_t dev)
{
	uint64_t ma = major(dev), mi = minor(dev);

	return fsid == ((mi & 0xff) | ma << 8 | (mi & ~0xffull) << 12);
}

static void take_fsid(struct vfs_fs_id *out, const struct statfs *fs, dev_t dev)
{
	uint64_t word;

	_Static_assert(sizeof(fs->f_fsid) == sizeof(word), "two words of 32 bits");
	memcpy(&word, &fs->f_fsid, sizeof(word));
	out->kind = VFS_FS_ID_STATFS;
	if (word == 0 || is_device(word, dev)) {
		out->kind = VFS_FS_ID_DEVICE;
		word = dev;
	}
	memcpy(out->bytes, &word, sizeof(word));
	out->len = sizeof(word);
}

int vfs_fs_id_of(int fd, struct vfs_fs_id *out)
{
	struct statfs fs;
	struct stat st;
	bool subvolumes;

	memset(out, 0, sizeof(*out));
	if (fstatfs(fd, &fs) != 0 || fstat(fd, &st) != 0)
		return -errno;
	/* Subvolumes share one UUID, and have f_fsids of their own */
	subvolumes = fs.f_type == BTRFS_SUPER_MAGIC;
	if (subvolumes || (!uuid_of_device(st.st_dev, out) && !uuid_of_kernel(fd, out)))
		take_fsid(out, &fs, st.st_dev);
	return 0;
}
