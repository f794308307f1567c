/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of fanotify(7) groups that report file handles. */
#ifndef RN_VFS_WATCH_EVENT_H
#define RN_VFS_WATCH_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "vfs/fs/handle.h"

#define VFS_WATCH_EVENT_MAX 512u /* bytes of the longest event */

struct vfs_watch_event {
	bool lost; /* events were lost, or this one cannot be understood: it may be about any file */
	pid_t pid; /* process that has caused it */
	/* The file's handle as vfs_handle_file_part has it. */
	uint32_t len;
	uint8_t part[4 + VFS_KERNEL_FH_MAX];
};

/* Parses the first of len bytes of events, which need not be aligned. info_type: the kind of handle
 * that tells the file (FAN_EVENT_INFO_TYPE_*). Returns the event's size; 0: there is none, or what
 * follows cannot be found (out->lost). */
size_t vfs_watch_event_parse(const char *at, size_t len, uint8_t info_type,
			     struct vfs_watch_event *out);

#endif
