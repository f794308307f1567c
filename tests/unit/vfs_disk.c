/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/vfs_disk.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "vfs/worker/worker_state.h"

void disk_open(struct disk *d, const char *fs, const char *mkfs_options)
{
	fx_need_root();
	d->fs = fs;
	fx_temp_dir(d->base);
	fx_mount_tmpfs(d->base, "size=700m");
	snprintf(d->mnt, sizeof(d->mnt), "%s/mnt", d->base);
	snprintf(d->copy, sizeof(d->copy), "%s/copy", d->base);
	if (fx_command(
		    "mkdir %s %s && truncate -s 320M %s/img && mkfs.%s -q %s %s/img >/dev/null && "
		    "mount -o loop %s/img %s",
		    d->mnt, d->copy, d->base, fs, mkfs_options, d->base, d->base, d->mnt) != 0) {
		fx_command("umount %s; rmdir %s", d->base, d->base);
		cr_skip_test("no loop mount of %s here", fs);
	}
	fx_open(&d->f, FX_PLAIN, VFS_IO_BUFFERED, d->mnt);
}

void disk_close(struct disk *d)
{
	fx_close(&d->f);
	cr_assert(fx_unmount_image(d->mnt, d->base));
}

void disk_copy_open(struct disk *d)
{
	const char *options = strcmp(d->fs, "xfs") == 0 ? "loop,nouuid" : "loop";

	cr_assert_eq(vfs_identity_root(&d->f.w->identity), 0);
	cr_assert_eq(fx_command("cp --sparse=always %s/img %s/img2", d->base, d->base), 0);
	if (fx_command("mount -o %s %s/img2 %s", options, d->base, d->copy) != 0)
		cr_skip_test("a copy of %s cannot be mounted beside it here", d->fs);
}

void disk_copy_close(struct disk *d)
{
	cr_assert_eq(fx_command("umount %s", d->copy), 0);
}

void disk_after_power_failure(struct disk *d, const char *name, struct stat *st)
{
	char path[128];

	disk_copy_open(d);
	snprintf(path, sizeof(path), "%s/%s", d->copy, name);
	if (lstat(path, st) != 0)
		memset(st, 0, sizeof(*st));
	disk_copy_close(d);
}

void disk_settle(struct disk *d)
{
	cr_assert_eq(fx_command("sync -f %s", d->mnt), 0);
}
