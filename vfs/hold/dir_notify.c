/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/deleg_table.h"

#include <stdlib.h>

static struct vfs_dir_notifier *notifier_of(struct vfs_file *f)
{
	return atomic_load(&f->delegs.notifier);
}

static struct vfs_dir_notifier *notifier_make(struct vfs_file *f)
{
	struct vfs_dir_notifier *notifier = notifier_of(f);

	if (notifier)
		return notifier;
	notifier = calloc(1, sizeof(*notifier));
	if (notifier) {
		pthread_mutex_init(&notifier->order, NULL);
		atomic_store(&f->delegs.notifier, notifier);
	}
	return notifier;
}

void vfs_notify_admit(struct vfs_file *f, struct vfs_deleg *d)
{
	struct vfs_dir_notifier *notifier;

	d->notifies = false;
	if (atomic_load(&d->notify_kinds) == 0)
		return;
	notifier = f->is_dir ? notifier_make(f) : NULL;
	if (!notifier || notifier->holders >= VFS_NOTIFY_HOLDERS) {
		atomic_store(&d->notify_kinds, 0);
		return;
	}
	d->notifies = true;
	notifier->holders++;
}

void vfs_notify_leave(struct vfs_file *f, struct vfs_deleg *d)
{
	if (d->notifies)
		notifier_of(f)->holders--;
}

void vfs_notify_free(struct vfs_dir_notifier *notifier)
{
	if (notifier)
		pthread_mutex_destroy(&notifier->order);
	free(notifier);
}

unsigned vfs_notify_asked(struct vfs_file *f)
{
	const struct vfs_deleg *d;
	unsigned asked = 0;

	if (!f || !notifier_of(f))
		return 0;
	pthread_mutex_lock(&f->lock);
	if (notifier_of(f)->holders > 0) {
		LIST_FOREACH (d, &f->delegs.given, link)
			asked |= atomic_load(&d->notify_kinds);
	}
	pthread_mutex_unlock(&f->lock);
	return asked;
}

void vfs_notify_begin(struct vfs_file *a, struct vfs_file *b)
{
	struct vfs_file *first = !b || (uintptr_t)a < (uintptr_t)b ? a : b;

	pthread_mutex_lock(&notifier_of(first)->order);
	if (b)
		pthread_mutex_lock(&notifier_of(first == a ? b : a)->order);
}

void vfs_notify_end(struct vfs_file *a, struct vfs_file *b)
{
	pthread_mutex_unlock(&notifier_of(a)->order);
	if (b)
		pthread_mutex_unlock(&notifier_of(b)->order);
}

/* Attributes that a client has set itself are not told to it. */
static bool is_told(const struct vfs_deleg *d, const struct vfs_dir_notification *notification)
{
	return (atomic_load(&d->notify_kinds) & notification->what) &&
	       (notification->what != VFS_NOTIFY_ATTRS || d->client != notification->client);
}

/* Under f->lock: a holder that has yet to be told, or NULL. */
static struct vfs_deleg *notify_next_holder(const struct vfs_file *f,
					    const struct vfs_dir_notification *notification,
					    uint64_t number)
{
	struct vfs_deleg *d;

	LIST_FOREACH (d, &f->delegs.given, link) {
		if (d->told != number && is_told(d, notification))
			break;
	}
	return d;
}

void vfs_notify_tell(struct vfs_file *f, const struct vfs_dir_notification *notification)
{
	struct vfs_deleg *d;
	uint64_t number;

	pthread_mutex_lock(&f->lock);
	number = ++notifier_of(f)->number;
	while ((d = notify_next_holder(f, notification, number)) != NULL) {
		d->told = number;
		d->calling++;
		pthread_mutex_unlock(&f->lock);
		d->ops->tell(d, notification);
		pthread_mutex_lock(&f->lock);
		d->calling--;
		pthread_cond_broadcast(&f->delegs.called);
	}
	pthread_mutex_unlock(&f->lock);
}
