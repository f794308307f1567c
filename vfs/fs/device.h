/* SPDX-License-Identifier: BSD-2-Clause */
/* One number for the device that a file is on. */
#ifndef RN_VFS_DEVICE_H
#define RN_VFS_DEVICE_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static inline uint64_t vfs_device_of(const struct statx *sx)
{
	return (uint64_t)sx->stx_dev_major << 32 | sx->stx_dev_minor;
}

static inline uint64_t vfs_device_number(dev_t dev)
{
	return (uint64_t)major(dev) << 32 | minor(dev);
}

#endif
