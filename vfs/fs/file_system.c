/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about a file system from the kernel (vfs/fs/file_system.h). */
#include "vfs/fs/file_system.h"

#include <blkid.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * In the order of rpc.mountd, which many administrators know: the UUID that libblkid reads from the
 * device, else f_fsid of statfs(2), which for btrfs tells subvolumes apart. Newer kernels give the
 * UUID without the device (FS_IOC_GETFSUUID): asked second, as what is found must not depend on the
 * kernel's release.
 */

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

/* Not in the header files of Debian 12: asks whether there is a journal to checkpoint (-ENODEV:
 * none), without doing so. */
#define EXT4_CHECKPOINT _IOW('f', 43, uint32_t)
#define EXT4_CHECKPOINT_DRY_RUN 4u

static bool has_journal(int fd)
{
	uint32_t flags = EXT4_CHECKPOINT_DRY_RUN;

	return ioctl(fd, EXT4_CHECKPOINT, &flags) == 0;
}

/* Offsets in ext4's superblock, little-endian, and the bit of the feature fast_commit. */
#define EXT4_SUPERBLOCK 1024
#define EXT4_COMPAT 0x5c
#define EXT4_FAST_COMMIT 0x400u

/* The name that the kernel gives to a block device, for hosts without the links that udev makes. */
static bool ext4_device_path(dev_t dev, char *path, size_t size)
{
	static const char key[] = "DEVNAME=";
	char line[128];
	bool found = false;
	FILE *f;

	snprintf(path, size, "/sys/dev/block/%u:%u/uevent", major(dev), minor(dev));
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		found = strncmp(line, key, sizeof(key) - 1) == 0;
		line[strcspn(line, "\n")] = '\0';
	}
	if (f)
		fclose(f);
	if (found)
		snprintf(path, size, "/dev/%s", line + sizeof(key) - 1);
	return found;
}

static int ext4_device_open(dev_t dev)
{
	char path[128];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/dev/block/%u:%u", major(dev), minor(dev));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && ext4_device_path(dev, path, sizeof(path)))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_rdev != dev)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Reads the superblock of the device: nothing else shows the feature. */
static bool may_commit_fast(int fd)
{
	uint32_t compat = 0;
	struct stat st;
	ssize_t n;
	int dev;

	if (fstat(fd, &st) != 0)
		return true;
	dev = ext4_device_open(st.st_dev);
	if (dev < 0)
		return true;
	n = pread(dev, &compat, sizeof(compat), EXT4_SUPERBLOCK + EXT4_COMPAT);
	close(dev);
	return n != sizeof(compat) || (le32toh(compat) & EXT4_FAST_COMMIT);
}

/* True if the kernel gives a change that follows a look at the times a ctime of its own. */
static bool kernel_is_fine(void)
{
	struct utsname u;
	unsigned major, minor;

	if (uname(&u) != 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 6 || (major == 6 && minor >= 13);
}

/* An ext4 with small inodes has whole seconds, as has ext2, and neither knows when a file was made. */
static bool has_birth_time(int fd)
{
	struct statx sx;

	return statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &sx) == 0 && (sx.stx_mask & STATX_BTIME);
}

struct vfs_fs_traits vfs_fs_traits_of(int fd)
{
	struct vfs_fs_traits t = { .local = false };
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return t;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
		t.local = t.handles_by_inode = true;
		t.one_log = has_journal(fd);
		t.keeps_linked = !may_commit_fast(fd);
		t.fine_dirs = t.fine_files = kernel_is_fine() && has_birth_time(fd);
		break;
	case XFS_SUPER_MAGIC:
		t.local = t.handles_by_inode = t.one_log = t.keeps_linked = true;
		t.fine_dirs = t.fine_files = kernel_is_fine();
		break;
	case BTRFS_SUPER_MAGIC:
		t.local = t.handles_by_inode = t.keeps_linked = true;
		t.fine_dirs = t.fine_files = kernel_is_fine();
		break;
	case TMPFS_MAGIC:
		t.local = t.keeps_linked = true;
		t.fine_files = kernel_is_fine();
		break;
	case F2FS_SUPER_MAGIC:
		t.local = true;
		break;
	default:
		break;
	}
	return t;
}

struct vfs_fs_facts *vfs_fs_seen_find(struct vfs_fs_seen *seen, int fd)
{
	struct vfs_fs_facts is = { .has_id = false }, *slot = seen->fs;
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0)
		return NULL;
	is.dev = vfs_device_number(st.st_dev);
	is.type = (long)fs.f_type;
	memcpy(&is.fsid, &fs.f_fsid, sizeof(is.fsid));
	for (; slot < seen->fs + VFS_FS_SEEN && slot < seen->fs + seen->n; slot++)
		if (slot->dev == is.dev && slot->type == is.type && slot->fsid == is.fsid)
			return slot;
	is.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (is.fd < 0)
		return NULL;
	slot = &seen->fs[seen->n % VFS_FS_SEEN];
	if (seen->n++ >= VFS_FS_SEEN)
		close(slot->fd);
	*slot = is;
	return slot;
}

void vfs_fs_seen_close(struct vfs_fs_seen *seen)
{
	for (unsigned i = 0; i < VFS_FS_SEEN && i < seen->n; i++)
		close(seen->fs[i].fd);
	seen->n = 0;
}

/* cachestat(2), which older C libraries do not know. The number is that of all architectures. */
#define CACHESTAT_NUMBER 451
struct cache_range {
	uint64_t offset, len;
};
struct cache_pages {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

int64_t vfs_cached_pages(int fd, uint64_t offset, uint64_t len)
{
	struct cache_range range = { offset, len };
	struct cache_pages pages;

	return syscall(CACHESTAT_NUMBER, fd, &range, &pages, 0) == 0 ? (int64_t)pages.cached
								     : -errno;
}
