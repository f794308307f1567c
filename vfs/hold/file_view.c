/* SPDX-License-Identifier: BSD-2-Clause */
/* Shares and locks of a file, read under its lock. The file system may hold that up, so none is waited for. */
#include "vfs/hold/file_view.h"

#include <string.h>
#include <time.h>

#include "vfs/fs/file_system.h"
#include "vfs/hold/file.h"

#define ATTEMPTS 20u
#define PAUSE_NS 50000

static bool file_lock_soon(struct vfs_file *f)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (pthread_mutex_trylock(&f->lock) == 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

void vfs_view_file_fd(struct vfs_file *f, void (*each)(void *arg, int fd), void *arg)
{
	if (!file_lock_soon(f))
		return;
	if (f->fd >= 0)
		each(arg, f->fd);
	pthread_mutex_unlock(&f->lock);
}

/* Device and key of a file never change. */
bool vfs_view_is_file(const struct vfs_file *f, uint32_t dev_major, uint32_t dev_minor,
		      const uint8_t *part, uint32_t len)
{
	const struct statx sx = { .stx_dev_major = dev_major, .stx_dev_minor = dev_minor };

	return f && f->dev == vfs_device_of(&sx) && f->key_len == len &&
	       memcmp(f->key, part, len) == 0;
}

bool vfs_view_share(struct vfs_file *f, const struct vfs_share *s, struct vfs_share_request *out)
{
	if (!file_lock_soon(f))
		return false;
	*out = (struct vfs_share_request){ .access = s->access, .deny = s->deny };
	pthread_mutex_unlock(&f->lock);
	return true;
}

bool vfs_view_ranges(struct vfs_file *f, const struct vfs_lock_owner *o,
		     struct vfs_view_ranges *out)
{
	struct vfs_range *r;

	out->n = 0;
	if (!file_lock_soon(f))
		return false;
	out->total = o->count;
	for (r = vfs_range_own(o, 0); r && out->n < VFS_VIEW_RANGES; r = vfs_range_own_next(r)) {
		const struct vfs_span span = { .start = r->start, .end = r->end };

		out->range[out->n++] = (struct vfs_view_range){
			.type = (enum vfs_lock_type)r->type,
			.offset = r->start,
			.length = vfs_span_length(&span),
		};
	}
	pthread_mutex_unlock(&f->lock);
	return true;
}
