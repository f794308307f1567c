/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/dir_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"

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

#define SLOTS 1024u
#define ROOM 8192u
#define READS 64u /* in a row: then the rest counts as lost */
#define EVENTS                                                                                     \
	(FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_ATTRIB | FAN_MOVE_SELF |    \
	 FAN_ONDIR)

struct vfs_dir_watch {
	struct vfs_dir_watches *all;
	LIST_ENTRY(vfs_dir_watch) link;
	dev_t dev;
	_Atomic unsigned refs;	 /* changed under vfs_dir_watches.lock */
	pthread_mutex_t marking; /* held while marks are made and removed */
	int fd;
	pid_t self;
	pthread_mutex_t lock; /* a leaf: held from reading events until they are counted */
	_Atomic uint64_t lost;
	_Atomic uint64_t ours[SLOTS], others[SLOTS];
};

void vfs_dir_watches_init(struct vfs_dir_watches *all)
{
	pthread_mutex_init(&all->lock, NULL);
	LIST_INIT(&all->all);
}

void vfs_dir_watches_fini(struct vfs_dir_watches *all)
{
	pthread_mutex_destroy(&all->lock);
}

static struct vfs_dir_watch *dir_watch_new(struct vfs_dir_watches *all, dev_t dev)
{
	struct vfs_dir_watch *w;
	int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_DIR_FID,
			       O_RDONLY);

	if (fd < 0)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w) {
		close(fd);
		return NULL;
	}
	w->all = all;
	w->dev = dev;
	w->fd = fd;
	w->self = getpid();
	pthread_mutex_init(&w->marking, NULL);
	pthread_mutex_init(&w->lock, NULL);
	return w;
}

struct vfs_dir_watch *vfs_dir_watch_get(struct vfs_dir_watches *all, int mount_fd, bool local)
{
	struct vfs_dir_watch *w;
	struct stat st;

	/* Other machines may change others without an event here. */
	if (!local || fstat(mount_fd, &st) != 0) {
		errno = 0;
		return NULL;
	}
	pthread_mutex_lock(&all->lock);
	LIST_FOREACH (w, &all->all, link) {
		if (w->dev == st.st_dev)
			break;
	}
	if (!w) {
		w = dir_watch_new(all, st.st_dev);
		if (w)
			LIST_INSERT_HEAD(&all->all, w, link);
	}
	if (w)
		atomic_fetch_add(&w->refs, 1);
	pthread_mutex_unlock(&all->lock);
	return w;
}

void vfs_dir_watch_put(struct vfs_dir_watch *w)
{
	bool last;

	if (!w)
		return;
	pthread_mutex_lock(&w->all->lock);
	last = atomic_fetch_sub(&w->refs, 1) == 1;
	if (last)
		LIST_REMOVE(w, link);
	pthread_mutex_unlock(&w->all->lock);
	if (!last)
		return;
	close(w->fd);
	pthread_mutex_destroy(&w->marking);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

void vfs_dir_watch_unmark(struct vfs_dir_watch *w, int dir_fd)
{
	pthread_mutex_lock(&w->marking);
	if (atomic_load(&w->refs) == 1)
		fanotify_mark(w->fd, FAN_MARK_REMOVE | FAN_MARK_ONLYDIR, EVENTS, AT_FDCWD,
			      vfs_proc_path(dir_fd).s);
	pthread_mutex_unlock(&w->marking);
}

/* By the kernel's handle, as vfs_handle_file_part has it. */
static unsigned dir_watch_slot_of(const uint8_t *part, uint32_t len)
{
	return (unsigned)(vfs_handle_part_hash(part, len) % SLOTS);
}

static unsigned slot_of_dir(const struct vfs_fh *dir)
{
	uint32_t len;
	const uint8_t *part = vfs_handle_file_part(dir, &len);

	return dir_watch_slot_of(part, len);
}

bool vfs_dir_watch_mark(struct vfs_dir_watch *w, int dir_fd, const struct vfs_fh *dir)
{
	bool marked;

	pthread_mutex_lock(&w->marking);
	marked = fanotify_mark(w->fd, FAN_MARK_ADD | FAN_MARK_ONLYDIR | FAN_MARK_EVICTABLE, EVENTS,
			       AT_FDCWD, vfs_proc_path(dir_fd).s) == 0;
	pthread_mutex_unlock(&w->marking);
	if (marked)
		atomic_fetch_add(&w->others[slot_of_dir(dir)], 1);
	return marked;
}

struct vfs_dir_events vfs_dir_events(struct vfs_dir_watch *w, const struct vfs_fh *dir)
{
	const unsigned slot = slot_of_dir(dir);

	return (struct vfs_dir_events){
		.ours = atomic_load(&w->ours[slot]),
		.others = atomic_load(&w->others[slot]) + atomic_load(&w->lost),
	};
}

/* Under the lock: counts the first of len bytes of events. Returns its size; 0: there is none. */
static size_t dir_watch_count_event(struct vfs_dir_watch *w, const char *at, size_t len)
{
	struct vfs_watch_event e;
	size_t size = vfs_watch_event_parse(at, len, FAN_EVENT_INFO_TYPE_DFID, &e);
	unsigned slot;

	if (e.lost) {
		atomic_fetch_add(&w->lost, 1);
	} else if (size > 0) {
		slot = dir_watch_slot_of(e.part, e.len);
		atomic_fetch_add(e.pid == w->self ? &w->ours[slot] : &w->others[slot], 1);
	}
	return size;
}

/* Under the lock. False: there is nothing more. */
static bool dir_watch_read_events(struct vfs_dir_watch *w)
{
	char room[ROOM];
	ssize_t len = read(w->fd, room, sizeof(room));
	size_t at = 0, one = 1;

	if (len < 0 && errno != EAGAIN)
		atomic_fetch_add(&w->lost, 1);
	while (len > 0 && one > 0) {
		one = dir_watch_count_event(w, room + at, (size_t)len - at);
		at += one;
	}
	return len > (ssize_t)(sizeof(room) - VFS_WATCH_EVENT_MAX);
}

void vfs_dir_watch_read(struct vfs_dir_watch *w)
{
	unsigned reads = 0;

	pthread_mutex_lock(&w->lock);
	while (dir_watch_read_events(w)) {
		if (++reads < READS)
			continue;
		atomic_fetch_add(&w->lost, 1);
		break;
	}
	pthread_mutex_unlock(&w->lock);
}

void vfs_dir_watches_read(struct vfs_dir_watches *all)
{
	struct vfs_dir_watch *w;

	pthread_mutex_lock(&all->lock);
	LIST_FOREACH (w, &all->all, link)
		vfs_dir_watch_read(w);
	pthread_mutex_unlock(&all->lock);
}

bool vfs_dir_lock_passed(int dir_fd, const char *name)
{
	return renameat2(dir_fd, name, dir_fd, name, RENAME_NOREPLACE) != 0 &&
	       (errno == EEXIST || errno == ENOENT);
}
