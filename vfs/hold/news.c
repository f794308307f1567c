/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/deleg_table.h"

#include <stdlib.h>

static struct vfs_newsroom *room_of(struct vfs_file *f)
{
	return atomic_load(&f->delegs.news);
}

static struct vfs_newsroom *newsroom_make(struct vfs_file *f)
{
	struct vfs_newsroom *room = room_of(f);

	if (room)
		return room;
	room = calloc(1, sizeof(*room));
	if (room) {
		pthread_mutex_init(&room->order, NULL);
		atomic_store(&f->delegs.news, room);
	}
	return room;
}

void vfs_news_admit(struct vfs_file *f, struct vfs_deleg *d)
{
	struct vfs_newsroom *room;

	d->has_news = false;
	if (atomic_load(&d->news) == 0)
		return;
	room = f->is_dir ? newsroom_make(f) : NULL;
	if (!room || room->holders >= VFS_NEWS_HOLDERS) {
		atomic_store(&d->news, 0);
		return;
	}
	d->has_news = true;
	room->holders++;
}

void vfs_news_leave(struct vfs_file *f, struct vfs_deleg *d)
{
	if (d->has_news)
		room_of(f)->holders--;
}

void vfs_news_free(struct vfs_newsroom *room)
{
	if (room)
		pthread_mutex_destroy(&room->order);
	free(room);
}

unsigned vfs_news_asked(struct vfs_file *f)
{
	const struct vfs_deleg *d;
	unsigned asked = 0;

	if (!f || !room_of(f))
		return 0;
	pthread_mutex_lock(&f->lock);
	if (room_of(f)->holders > 0) {
		LIST_FOREACH (d, &f->delegs.given, link)
			asked |= atomic_load(&d->news);
	}
	pthread_mutex_unlock(&f->lock);
	return asked;
}

void vfs_news_begin(struct vfs_file *a, struct vfs_file *b)
{
	struct vfs_file *first = !b || (uintptr_t)a < (uintptr_t)b ? a : b;

	pthread_mutex_lock(&room_of(first)->order);
	if (b)
		pthread_mutex_lock(&room_of(first == a ? b : a)->order);
}

void vfs_news_end(struct vfs_file *a, struct vfs_file *b)
{
	pthread_mutex_unlock(&room_of(a)->order);
	if (b)
		pthread_mutex_unlock(&room_of(b)->order);
}

/* Attributes that a client has set itself are no news to it. */
static bool is_told(const struct vfs_deleg *d, const struct vfs_dir_news *news)
{
	return (atomic_load(&d->news) & news->what) &&
	       (news->what != VFS_NEWS_ATTRS || d->client != news->client);
}

/* Under f->lock: a holder that has yet to be told, or NULL. */
static struct vfs_deleg *news_next_holder(const struct vfs_file *f, const struct vfs_dir_news *news,
					  uint64_t number)
{
	struct vfs_deleg *d;

	LIST_FOREACH (d, &f->delegs.given, link) {
		if (d->told != number && is_told(d, news))
			break;
	}
	return d;
}

void vfs_news_tell(struct vfs_file *f, const struct vfs_dir_news *news)
{
	struct vfs_deleg *d;
	uint64_t number;

	pthread_mutex_lock(&f->lock);
	number = ++room_of(f)->number;
	while ((d = news_next_holder(f, news, number)) != NULL) {
		d->told = number;
		d->calling++;
		pthread_mutex_unlock(&f->lock);
		d->ops->tell(d, news);
		pthread_mutex_lock(&f->lock);
		d->calling--;
		pthread_cond_broadcast(&f->delegs.called);
	}
	pthread_mutex_unlock(&f->lock);
}
