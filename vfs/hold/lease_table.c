/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/lease_table.h"

#include <string.h>

#include "vfs/fs/handle.h"

void vfs_lease_table_init(struct vfs_lease_table *t)
{
	pthread_mutex_init(&t->lock, NULL);
}

void vfs_lease_table_fini(struct vfs_lease_table *t)
{
	pthread_mutex_destroy(&t->lock);
}

static struct vfs_lease_list *lease_bucket_of(struct vfs_lease_table *t, int fd)
{
	return &t->by_fd[(unsigned)fd % VFS_LEASE_BUCKETS];
}

static unsigned bucket_of_file(const uint8_t *key, uint32_t len)
{
	return (unsigned)(vfs_handle_part_hash(key, len) % VFS_LEASE_BUCKETS);
}

void vfs_lease_table_add(struct vfs_lease_table *t, struct vfs_file *f)
{
	pthread_mutex_lock(&t->lock);
	f->lease_sweep = t->sweep;
	LIST_INSERT_HEAD(lease_bucket_of(t, f->lease_fd), f, lease_link);
	LIST_INSERT_HEAD(&t->by_file[bucket_of_file(f->key, f->key_len)], f, watch_link);
	pthread_mutex_unlock(&t->lock);
}

void vfs_lease_table_remove(struct vfs_lease_table *t, struct vfs_file *f)
{
	pthread_mutex_lock(&t->lock);
	LIST_REMOVE(f, lease_link);
	LIST_REMOVE(f, watch_link);
	pthread_mutex_unlock(&t->lock);
}

struct vfs_file *vfs_lease_table_find(struct vfs_lease_table *t, int fd)
{
	struct vfs_file *f;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (f, lease_bucket_of(t, fd), lease_link) {
		if (f->lease_fd == fd)
			break;
	}
	if (f)
		vfs_file_ref(f);
	pthread_mutex_unlock(&t->lock);
	return f;
}

void vfs_lease_sweep_begin(struct vfs_lease_sweep *s, struct vfs_lease_table *t,
			   const struct vfs_watch_event *event)
{
	*s = (struct vfs_lease_sweep){ .table = t, .event = event };
	if (event)
		s->bucket = bucket_of_file(event->part, event->len);
	pthread_mutex_lock(&t->lock);
	t->sweep++;
	pthread_mutex_unlock(&t->lock);
}

/* Files of several file systems may have the same handle. */
static bool lease_sweep_is_meant(const struct vfs_lease_sweep *s, const struct vfs_file *f)
{
	const struct vfs_watch_event *e = s->event;

	return f->lease_sweep != s->table->sweep &&
	       (!e || (e->len == f->key_len && memcmp(e->part, f->key, e->len) == 0));
}

static struct vfs_file *lease_sweep_next_of_bucket(struct vfs_lease_sweep *s)
{
	struct vfs_lease_table *t = s->table;
	struct vfs_file *f;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (f, &t->by_file[s->bucket], watch_link) {
		if (lease_sweep_is_meant(s, f))
			break;
	}
	if (f) {
		f->lease_sweep = t->sweep;
		vfs_file_ref(f);
	}
	pthread_mutex_unlock(&t->lock);
	return f;
}

struct vfs_file *vfs_lease_sweep_next(struct vfs_lease_sweep *s)
{
	struct vfs_file *f = lease_sweep_next_of_bucket(s);

	while (!f && !s->event && ++s->bucket < VFS_LEASE_BUCKETS)
		f = lease_sweep_next_of_bucket(s);
	return f;
}
