/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/export/verifier.h"

#include <stdlib.h>

#include "vfs/base/instance.h"

static struct vfs_verifier *verifier_find_locked(struct vfs *vfs, uint32_t id)
{
	struct vfs_verifier *v;

	LIST_FOREACH (v, &vfs->verifiers, link) {
		if (v->id == id)
			break;
	}
	return v;
}

/* Begins with a value that the id cannot have had before a loss. */
static struct vfs_verifier *new_locked(struct vfs *vfs, uint32_t id, uint64_t dev)
{
	struct vfs_verifier *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->id = id;
	v->dev = dev;
	atomic_init(&v->value, vfs->cfg.write_verifier + vfs->losses);
	LIST_INSERT_HEAD(&vfs->verifiers, v, link);
	return v;
}

struct vfs_verifier *vfs_verifier_get(struct vfs *vfs, uint32_t id, uint64_t dev)
{
	struct vfs_verifier *v;

	pthread_mutex_lock(&vfs->verifiers_lock);
	v = verifier_find_locked(vfs, id);
	if (!v)
		v = new_locked(vfs, id, dev);
	if (v) {
		v->refs++;
		v->dev = dev;
	}
	pthread_mutex_unlock(&vfs->verifiers_lock);
	return v;
}

void vfs_verifier_put(struct vfs *vfs, struct vfs_verifier *v)
{
	bool last;

	if (!v)
		return;
	pthread_mutex_lock(&vfs->verifiers_lock);
	last = --v->refs == 0;
	if (last)
		LIST_REMOVE(v, link);
	pthread_mutex_unlock(&vfs->verifiers_lock);
	if (last)
		free(v);
}

/* Verifiers of different runs of the daemon (vfs_config) are far apart. */
static bool verifier_change_locked(struct vfs *vfs, struct vfs_verifier *v)
{
	if (atomic_load(&v->uncommitted) <= 0)
		return false;
	atomic_store(&v->value, vfs->cfg.write_verifier + ++vfs->losses);
	return true;
}

bool vfs_verifier_change(struct vfs *vfs, struct vfs_verifier *v)
{
	bool changed;

	pthread_mutex_lock(&vfs->verifiers_lock);
	changed = verifier_change_locked(vfs, v);
	pthread_mutex_unlock(&vfs->verifiers_lock);
	return changed;
}

bool vfs_verifier_device_failed(struct vfs *vfs, struct vfs_verifier *v, uint64_t dev)
{
	struct vfs_verifier *other;
	bool changed = false;

	pthread_mutex_lock(&vfs->verifiers_lock);
	LIST_FOREACH (other, &vfs->verifiers, link) {
		if (other == v || other->dev == dev)
			changed |= verifier_change_locked(vfs, other);
	}
	pthread_mutex_unlock(&vfs->verifiers_lock);
	return changed;
}
