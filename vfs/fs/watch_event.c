/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/watch_event.h"

#include <fcntl.h>
#include <string.h>
#include <sys/fanotify.h>

/* The handle out of what follows the metadata. False: it cannot be told. */
static bool watch_event_take_handle(const char *at, size_t room, uint8_t info_type,
				    struct vfs_watch_event *out)
{
	struct fanotify_event_info_fid info;
	struct file_handle h;
	uint32_t type;

	if (room < sizeof(info) + sizeof(h))
		return false;
	memcpy(&info, at, sizeof(info));
	memcpy(&h, at + sizeof(info), sizeof(h));
	room -= sizeof(info) + sizeof(h);
	if (info.hdr.info_type != info_type || h.handle_bytes > room ||
	    h.handle_bytes > VFS_KERNEL_FH_MAX)
		return false;
	type = (uint32_t)h.handle_type;
	out->part[0] = (uint8_t)(type >> 24);
	out->part[1] = (uint8_t)(type >> 16);
	out->part[2] = (uint8_t)(type >> 8);
	out->part[3] = (uint8_t)type;
	memcpy(out->part + 4, at + sizeof(info) + sizeof(h), h.handle_bytes);
	out->len = 4 + h.handle_bytes;
	return true;
}

size_t vfs_watch_event_parse(const char *at, size_t len, uint8_t info_type,
			     struct vfs_watch_event *out)
{
	struct fanotify_event_metadata e; /* in the buffer it is not aligned */

	out->lost = false;
	if (len < sizeof(e))
		return 0;
	memcpy(&e, at, sizeof(e));
	out->pid = e.pid;
	if (e.vers != FANOTIFY_METADATA_VERSION || e.metadata_len != sizeof(e) ||
	    e.event_len < sizeof(e) || e.event_len > len) {
		out->lost = true;
		return 0;
	}
	out->lost =
		(e.mask & FAN_Q_OVERFLOW) ||
		!watch_event_take_handle(at + sizeof(e), e.event_len - sizeof(e), info_type, out);
	return e.event_len;
}
