/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/names/entry_change.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/attr.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

/*
 * Names of a device share an order by hash: a change may wait for that of another name, which lasts only if the file system does not
 * answer. So each device has orders of its own, for as many devices as there is room.
 */
#define ORDERS 256u
#define DEVICES 128u

struct device_orders {
	_Atomic uint64_t key; /* its number and 1; 0: free. Never changes again */
	pthread_mutex_t of[ORDERS];
};

struct vfs_entry_orders {
	pthread_mutex_t lock; /* a leaf: guards the taking of a free one */
	struct device_orders device[DEVICES];
};

struct vfs_entry_orders *vfs_entry_orders_new(void)
{
	/* The orders of devices that are not used are never touched, so they cost address space but no memory. */
	struct vfs_entry_orders *o = calloc(1, sizeof(*o));

	if (o)
		pthread_mutex_init(&o->lock, NULL);
	return o;
}

void vfs_entry_orders_free(struct vfs_entry_orders *o)
{
	for (unsigned i = 0; o && i < DEVICES; i++) {
		for (unsigned k = 0; atomic_load(&o->device[i].key) != 0 && k < ORDERS; k++)
			pthread_mutex_destroy(&o->device[i].of[k]);
	}
	if (o)
		pthread_mutex_destroy(&o->lock);
	free(o);
}

/* Gives it to the device, if it is free. */
static void take_orders(struct vfs_entry_orders *o, struct device_orders *d, uint64_t key)
{
	pthread_mutex_lock(&o->lock);
	if (atomic_load(&d->key) == 0) {
		for (unsigned i = 0; i < ORDERS; i++)
			pthread_mutex_init(&d->of[i], NULL);
		atomic_store_explicit(&d->key, key, memory_order_release);
	}
	pthread_mutex_unlock(&o->lock);
}

static struct device_orders *orders_of(struct vfs_entry_orders *o, uint64_t dev)
{
	const uint64_t key = dev + 1;
	const unsigned first = (unsigned)(key * 0x9e3779b97f4a7c15u >> 32) % DEVICES;

	for (unsigned i = 0; i < DEVICES; i++) {
		struct device_orders *d = &o->device[(first + i) % DEVICES];

		if (atomic_load_explicit(&d->key, memory_order_acquire) == 0)
			take_orders(o, d, key);
		if (atomic_load_explicit(&d->key, memory_order_acquire) == key)
			return d;
	}
	return &o->device[first]; /* shared with another one */
}

static pthread_mutex_t *order_of(const struct vfs_entry_change *c)
{
	const struct vfs_node *dir = c->dir;
	struct device_orders *d = orders_of(dir->vfs->entry_orders, dir->dev);
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)c->name->s, strlen(c->name->s),
			 dir->vfs->hash_key);
	return &d->of[(hash + dir->ino) % ORDERS];
}

static void order_names(struct vfs_entry_change *a, struct vfs_entry_change *b)
{
	pthread_mutex_t *first = order_of(a), *second = b ? order_of(b) : NULL;

	if (second == first)
		second = NULL;
	a->order = first;
	if (b)
		b->order = second;
	if (second && second < first)
		pthread_mutex_lock(second);
	pthread_mutex_lock(first);
	if (second && second > first)
		pthread_mutex_lock(second);
}

static bool conflicts(struct vfs_file *f, const struct vfs_file_use *u)
{
	bool found;

	pthread_mutex_lock(&f->lock);
	found = vfs_deleg_conflicts(f, u);
	pthread_mutex_unlock(&f->lock);
	return found;
}

/* Would the change fail, as far as can be seen beforehand? */
static int entry_change_foresee(struct vfs_ctx *ctx, const struct vfs_entry_wish *w)
{
	int rc = vfs_access_check(ctx, w->dir, W_OK | X_OK);
	struct stat st;
	bool there;

	if (rc == 0)
		rc = vfs_act_as_caller(ctx);
	if (rc != 0 || w->entry == VFS_ENTRY_ANY)
		return rc;
	there = fstatat(w->dir->path_fd, w->name->s, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) ==
		0;
	if (w->entry == VFS_ENTRY_NEW)
		return there ? -EEXIST : 0;
	return there ? 0 : -errno;
}

/* Keeps a reference of the directory's file in out->told, if somebody is to be told. */
static int entry_change_check(struct vfs_ctx *ctx, const struct vfs_entry_wish *w,
			      struct vfs_entry_change *out)
{
	const struct vfs_file_use u = { .client = ctx->client,
					.use = VFS_USE_WRITE,
					.notify_kinds = w->kind };
	struct vfs_file *f = vfs_deleg_any(ctx->vfs) ? vfs_file_find(w->dir) : NULL;
	int rc = 0;

	if (f && conflicts(f, &u)) {
		rc = entry_change_foresee(ctx, w);
		if (rc == 0)
			rc = vfs_deleg_ask(f, &u);
	}
	out->asked = rc == 0 ? vfs_notify_asked(f) : 0;
	if (out->asked)
		out->told = f;
	else
		vfs_file_put(f);
	return rc;
}

int vfs_entry_change_begin(struct vfs_ctx *ctx, const struct vfs_entry_wish *w,
			   struct vfs_entry_change *out)
{
	int rc;

	*out = (struct vfs_entry_change){ .dir = w->dir, .name = w->name };
	rc = vfs_file_change_count(ctx->vfs, &w->dir->fh, &out->count);
	if (rc == 0)
		rc = entry_change_check(ctx, w, out);
	if (rc != 0)
		vfs_file_change_end(&out->count);
	return rc;
}

void vfs_entry_change_end(struct vfs_entry_change *c)
{
	if (c->ordered)
		vfs_notify_end(c->told, NULL);
	if (c->order)
		pthread_mutex_unlock(c->order);
	c->order = NULL;
	vfs_file_change_end(&c->count);
	vfs_file_put(c->told);
	c->told = NULL;
}

void vfs_entry_order(struct vfs_entry_change *a, struct vfs_entry_change *b)
{
	struct vfs_file *first = a->told, *second = b ? b->told : NULL;

	order_names(a, b);
	if (second == first)
		second = NULL;
	if (!first && !second)
		return;
	vfs_notify_begin(first ? first : second, first ? second : NULL);
	a->ordered = first;
	if (b)
		b->ordered = second;
}

/*
 * Only a local process can put something else in the place of the entry at this moment, and for its changes
 * the delegation is recalled. A directory that was moved may be another export's, whose handle a
 * LOOKUP would give.
 */
static bool look_at_entry(struct vfs_ctx *ctx, struct vfs_node *dir,
			  const struct vfs_dir_notification *notification, struct vfs_fh *fh,
			  struct vfs_attr *attr)
{
	const char *name = notification->to ? notification->to : notification->name;

	if (notification->what == VFS_NOTIFY_REMOVE ||
	    vfs_peek(ctx, dir, name, (uint32_t)strlen(name), fh, attr) != 0)
		return false;
	return !notification->to || !S_ISDIR(attr->mode);
}

void vfs_entry_tell(struct vfs_ctx *ctx, struct vfs_entry_change *c,
		    struct vfs_dir_notification *notification)
{
	struct vfs_attr attr, dir;
	struct vfs_fh fh;

	if (!c->told)
		return;
	notification->client = ctx->client;
	notification->export_id = vfs_export_id(ctx->exp);
	if ((c->asked & VFS_NOTIFY_ENTRY) && look_at_entry(ctx, c->dir, notification, &fh, &attr)) {
		notification->fh = &fh;
		notification->attr = &attr;
	}
	if ((c->asked & VFS_NOTIFY_ATTRS) && vfs_getattr(ctx, c->dir, &dir) == 0)
		notification->dir = &dir;
	vfs_notify_tell(c->told, notification);
	notification->fh = NULL;
	notification->attr = notification->dir = NULL;
}

void vfs_entry_tell_made(struct vfs_ctx *ctx, struct vfs_entry_change *c,
			 const struct vfs_name *name)
{
	struct vfs_dir_notification notification = { .what = VFS_NOTIFY_ADD, .name = name->s };

	vfs_entry_tell(ctx, c, &notification);
}
