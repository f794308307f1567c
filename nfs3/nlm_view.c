/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/nlm_view.h"

#include <string.h>

#include "nfs3/nlm_owners.h"
#include "nfs3/server.h"

/* The owner of that bucket with the least serial number above the last one, with a reference to it and to its file; or
 * NULL. An owner in the table has its file. */
static struct nlm_owner *above(struct nlm_owners *t, const struct nlm_view_place *at,
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

static bool show_one(const struct nlm_owner *o, struct vfs_file *file,
		     bool (*show)(void *arg, const struct nlm_view_owner *o), void *arg)
{
	struct vfs_view_ranges ranges = { 0 };
	struct nlm_view_owner v = {
		.id = o->serial,
		.addr = o->addr,
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

	memcpy(v.fh.data, o->bytes + o->oh_len + o->caller_len, o->fh_len);
	v.ranges_known = vfs_view_ranges(file, &o->locks, &ranges);
	/* An owner without locks is about to get its first, or to go. */
	return (v.ranges_known && ranges.total == 0) || show(arg, &v);
}

bool nlm_view(struct nfs3_server *s, struct nlm_view_place *at, unsigned steps,
	      bool (*show)(void *arg, const struct nlm_view_owner *o), void *arg)
{
	struct nlm_owners *t = s->nlm;
	struct vfs_file *file;
	bool more = true;

	for (; at->bucket < NLM_BUCKETS && steps > 0 && more; steps--) {
		struct nlm_owner *o = above(t, at, &file);

		if (!o) {
			*at = (struct nlm_view_place){ .bucket = at->bucket + 1 };
			continue;
		}
		at->id = o->serial;
		more = show_one(o, file, show, arg);
		vfs_file_put(file);
		nlm_owner_put(o);
	}
	return at->bucket >= NLM_BUCKETS;
}
