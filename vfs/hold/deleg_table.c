/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client has at most one delegation of a file, so of the first two of a list one is another
 * client's: nothing here walks a list for a client, however many clients have one. Only those that take news are
 * passed over, and they are few (VFS_NEWS_HOLDERS).
 */
#include "vfs/hold/deleg_table.h"

#include "lib/clock.h"
#include "vfs/base/instance.h"

enum vfs_deleg_use vfs_deleg_use_of_share(uint8_t access, uint8_t deny)
{
	/* The holder of a read delegation opens the file to read without a call. */
	return (access & VFS_SHARE_WRITE) || (deny & VFS_SHARE_READ) ? VFS_USE_WRITE : VFS_USE_READ;
}

static bool is_in_way(const struct vfs_deleg *d, const struct vfs_file_use *u)
{
	if (d->client == u->client)
		return false;
	/* A recalled one is in the way of everything: its holder is told no more. */
	return u->news == 0 || d->recalled || (u->news & ~atomic_load(&d->news)) != 0;
}

/* A delegation of the list that is in the way, or NULL. */
static struct vfs_deleg *deleg_find_in_way(const struct vfs_file *f,
					   const struct vfs_deleg_list *list,
					   const struct vfs_file_use *u)
{
	struct vfs_deleg *d;

	if (u->use == VFS_USE_READ && !f->delegs.writing)
		return NULL;
	LIST_FOREACH (d, list, link) {
		if (is_in_way(d, u))
			break;
	}
	return d;
}

bool vfs_deleg_conflicts(const struct vfs_file *f, const struct vfs_file_use *u)
{
	return deleg_find_in_way(f, &f->delegs.given, u) ||
	       deleg_find_in_way(f, &f->delegs.recalled, u);
}

struct vfs_quiet_time vfs_deleg_quiet_time(const struct vfs *vfs)
{
	return (struct vfs_quiet_time){ .now = (uint32_t)rn_now_coarse_seconds(),
					.lasts = vfs->cfg.deleg_quiet_seconds };
}

void vfs_deleg_quiet(struct vfs_file *f)
{
	vfs_quiet_begin(&f->vfs->files->recalled, f->hash, vfs_deleg_quiet_time(f->vfs));
}

/* Under f->lock, which is given up in between. */
static void recall_one(struct vfs_file *f, struct vfs_deleg *d, unsigned within_s, bool late)
{
	LIST_REMOVE(d, link);
	LIST_INSERT_HEAD(&f->delegs.recalled, d, link);
	d->recalled = true;
	d->late = late;
	if (late)
		atomic_fetch_add(&f->vfs->files->delegs_late, 1);
	d->calling++;
	d->recalled_at = rn_now_coarse_seconds();
	atomic_store(&d->within_s, within_s);
	vfs_deleg_quiet(f);
	pthread_mutex_unlock(&f->lock);
	d->ops->recall(d);
	pthread_mutex_lock(&f->lock);
	d->calling--;
	pthread_cond_broadcast(&f->delegs.called);
}

/* Some may have been recalled before, and have had more time. */
static void hasten(struct vfs_file *f, unsigned within_s)
{
	struct vfs_deleg *d;

	LIST_FOREACH (d, &f->delegs.recalled, link) {
		const unsigned since = (unsigned)(rn_now_coarse_seconds() - d->recalled_at);
		const unsigned now = atomic_load(&d->within_s);

		if (now == 0 || now > since + within_s)
			atomic_store(&d->within_s, since + within_s);
	}
}

void vfs_deleg_recall(struct vfs_file *f, const struct vfs_file_use *u)
{
	struct vfs_deleg *d;

	while ((d = deleg_find_in_way(f, &f->delegs.given, u)) != NULL)
		recall_one(f, d, u->within_s, u->made);
	if (u->within_s > 0)
		hasten(f, u->within_s);
}

void vfs_deleg_ask_back(struct vfs_file *f, struct vfs_deleg *d)
{
	pthread_mutex_lock(&f->lock);
	if (d->file == f && !d->recalled)
		recall_one(f, d, 0, false);
	pthread_mutex_unlock(&f->lock);
}
