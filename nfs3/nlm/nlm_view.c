/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/nlm/nlm_view.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "nfs3/nlm/owners.h"
#include "nfs3/nfs3_state.h"

/* Attempts to get an owner that a call has, and the pause between two of them. */
#define ATTEMPTS 200u
#define PAUSE_NS 5000000

/* The owner of that bucket with the least serial number above the last one, with a reference to it and to its file; or
 * NULL. An owner in the table has its file. */
static struct nlm_owner *nlm_view_next_owner(struct nlm_owners *t, const struct nlm_view_cursor *at,
					     struct vfs_file **file)
{
	struct nlm_owner *o, *least = NULL;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (o, &t->bucket[at->bucket], link) {
		if (o->serial > at->id && (!least || o->serial < least->serial))
			least = o;
	}
	if (least) {
		atomic_fetch_add(&least->refs, 1);
		*file = least->locks.file;
		vfs_file_ref(*file);
	}
	pthread_mutex_unlock(&t->lock);
	return least;
}

static bool nlm_view_show_owner(struct nlm_owner *o, struct vfs_file *file,
				bool (*show)(void *arg, const struct nlm_view_owner *o), void *arg)
{
	struct vfs_view_ranges ranges = { 0 };
	struct nlm_view_owner v = {
		.id = o->serial,
		.addr = o->addr.bytes,
		.oh = o->bytes,
		.oh_len = o->oh_len,
		.caller = o->bytes + o->oh_len,
		.caller_len = o->caller_len,
		.svid = o->svid,
		.export_id = o->export_id,
		.fh = { .len = o->fh_len },
		.file = file,
		.ranges = &ranges,
	};

	/* One that a call has is about to change. */
	if (o->shares && rn_lock_try(&o->busy)) {
		v.access = o->share.access;
		v.deny = o->share.deny;
		rn_lock_give(&o->busy);
	}
	memcpy(v.fh.data, o->bytes + o->oh_len + o->caller_len, o->fh_len);
	v.ranges_known = vfs_view_ranges(file, &o->locks, &ranges);
	/* An owner without locks and share is about to get its first, or to go. */
	return (v.ranges_known && ranges.total == 0 && !v.access && !v.deny) || show(arg, &v);
}

bool nlm_view(struct nfs3_server *s, struct nlm_view_cursor *at, unsigned steps,
	      bool (*show)(void *arg, const struct nlm_view_owner *o), void *arg)
{
	struct nlm_owners *t = s->nlm;
	struct vfs_file *file;
	bool more = true;

	for (; at->bucket < NLM_BUCKETS && steps > 0 && more; steps--) {
		struct nlm_owner *o = nlm_view_next_owner(t, at, &file);

		if (!o) {
			*at = (struct nlm_view_cursor){ .bucket = at->bucket + 1 };
			continue;
		}
		at->id = o->serial;
		more = nlm_view_show_owner(o, file, show, arg);
		vfs_file_put(file);
		nlm_owner_put(o);
	}
	return at->bucket >= NLM_BUCKETS;
}

static bool nlm_view_enter_soon(struct nlm_owner *o)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (rn_lock_try(&o->busy))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* The owner with that serial number, with a reference; or NULL. */
static struct nlm_owner *nlm_view_owner_by_id(struct nlm_owners *t, uint64_t id)
{
	struct nlm_owner *o;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (o, &t->bucket[id % NLM_BUCKETS], link) {
		if (o->serial == id)
			break;
	}
	if (o)
		atomic_fetch_add(&o->refs, 1);
	pthread_mutex_unlock(&t->lock);
	return o;
}

int nlm_release(struct nfs3_server *s, uint64_t id)
{
	struct nlm_owner *o = nlm_view_owner_by_id(s->nlm, id);

	if (!o)
		return -ENOENT;
	if (!nlm_view_enter_soon(o)) {
		nlm_owner_put(o);
		return -EBUSY;
	}
	if (o->linked)
		nlm_owner_drop(o);
	nlm_owner_leave(s->nlm, o);
	return 0;
}
