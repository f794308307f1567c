/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's delegations in the image of the state. A delegation that was recalled is recalled again by the next program. A directory's goes with the
 * changes that its holder has not been told yet. One whose CB_NOTIFY is not answered is recalled, as nobody will know whether the client has got it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/deleg/deleg_pressure.h"
#include "nfs4/deleg/delegations.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/holdings.h"
#include "vfs/vfs_image.h"

/* The CB_NOTIFYs of a directory's delegation: the kinds of changes that its holder has asked for, and the changes that were not sent yet. */
struct saved_notify {
	bool there, has_dir;
	uint32_t kinds, delay, room;
	struct nfs4_notify_attrs attrs;
	struct image_bytes queue;
	struct vfs_attr dir; /* only attributes that the holder may be told */
	uint64_t dir_wait;   /* seconds */
};
#define NOTIFY_FIELDS(tag, member)                                                                 \
	IMAGE_NUMBER((tag) + 0, struct saved_deleg, member.there),                                 \
		IMAGE_NUMBER((tag) + 1, struct saved_deleg, member.has_dir),                       \
		IMAGE_NUMBER((tag) + 2, struct saved_deleg, member.kinds),                         \
		IMAGE_NUMBER((tag) + 3, struct saved_deleg, member.delay),                         \
		IMAGE_NUMBER((tag) + 4, struct saved_deleg, member.room),                          \
		IMAGE_FIXED((tag) + 5, struct saved_deleg, member.attrs),                          \
		IMAGE_BYTES((tag) + 6, struct saved_deleg, member.queue),                          \
		IMAGE_NUMBER((tag) + 7, struct saved_deleg, member.dir_wait),                      \
		IMAGE_NUMBER((tag) + 8, struct saved_deleg, member.dir.change),                    \
		IMAGE_NUMBER((tag) + 9, struct saved_deleg, member.dir.size),                      \
		IMAGE_NUMBER((tag) + 10, struct saved_deleg, member.dir.nlink),                    \
		IMAGE_NUMBER((tag) + 11, struct saved_deleg, member.dir.used),                     \
		IMAGE_NUMBER((tag) + 12, struct saved_deleg, member.dir.ctime.tv_sec),             \
		IMAGE_NUMBER((tag) + 13, struct saved_deleg, member.dir.ctime.tv_nsec),            \
		IMAGE_NUMBER((tag) + 14, struct saved_deleg, member.dir.mtime.tv_sec),             \
		IMAGE_NUMBER((tag) + 15, struct saved_deleg, member.dir.mtime.tv_nsec)

struct saved_deleg {
	uint32_t id, seqid, revoked;
	uint64_t age, recalled_age; /* seconds */
	uint32_t file;		    /* vfs_file_number() */
	uint8_t type, any_type;
	bool recalled, late, untold, modified, silent;
	uint32_t within_s, export_id;
	uint64_t opener, change;
	struct nfs4_cb_referring giver;
	struct image_bytes fh;
	struct saved_notify notify;
};
static const struct image_field saved_deleg_fields[] = {
	IMAGE_NUMBER(1, struct saved_deleg, id),
	IMAGE_NUMBER(2, struct saved_deleg, seqid),
	IMAGE_NUMBER(3, struct saved_deleg, revoked),
	IMAGE_NUMBER(4, struct saved_deleg, age),
	IMAGE_NUMBER(5, struct saved_deleg, recalled_age),
	IMAGE_NUMBER(6, struct saved_deleg, file),
	IMAGE_NUMBER(8, struct saved_deleg, type),
	IMAGE_NUMBER(9, struct saved_deleg, any_type),
	IMAGE_NUMBER(10, struct saved_deleg, recalled),
	IMAGE_NUMBER(11, struct saved_deleg, late),
	IMAGE_NUMBER(12, struct saved_deleg, untold),
	IMAGE_NUMBER(13, struct saved_deleg, modified),
	IMAGE_NUMBER(14, struct saved_deleg, silent),
	IMAGE_NUMBER(15, struct saved_deleg, within_s),
	IMAGE_NUMBER(16, struct saved_deleg, export_id),
	IMAGE_NUMBER(17, struct saved_deleg, opener),
	IMAGE_NUMBER(18, struct saved_deleg, change),
	IMAGE_FIXED(19, struct saved_deleg, giver),
	IMAGE_BYTES(20, struct saved_deleg, fh),
	NOTIFY_FIELDS(30, notify),
};
static const struct image_kind saved_deleg_kind = { NFS4_IMAGE_DELEG,
						    rn_array_size(saved_deleg_fields),
						    saved_deleg_fields };

static void save_notify(const struct nfs4_deleg *d, struct saved_notify *out)
{
	const uint64_t now = nfs4_clients_now(d->st.client->srv);
	const struct nfs4_dir_notify *n = d->dir_notify;

	if (!n || n->over || n->calling)
		return;
	*out = (struct saved_notify){
		.there = true,
		.has_dir = n->has_dir,
		.kinds = atomic_load(&d->vfs.notify_kinds),
		.delay = n->delay,
		.room = n->room,
		.attrs = n->attrs,
		.queue = { n->queue, n->used },
		.dir_wait = n->has_dir && n->dir_at > now ? n->dir_at - now : 0,
	};
	if (n->has_dir)
		out->dir = n->dir;
}

static void save_deleg(struct image_writer *w, struct nfs4_deleg *d)
{
	const uint64_t now = nfs4_clients_now(d->st.client->srv);
	const struct nfs4_dir_notify *n = d->dir_notify;
	struct saved_deleg s = {
		.id = d->st.id,
		.seqid = d->st.seqid,
		.revoked = d->st.revoked,
		.age = (uint32_t)now - d->st.since,
		.recalled_age = d->recalled ? now - d->recalled_at : 0,
		.file = vfs_file_number(d->st.file),
		.type = (uint8_t)d->vfs.type,
		.any_type = d->type,
		.recalled = d->recalled,
		.late = d->vfs.late,
		.untold = n && n->calling,
		.modified = d->modified,
		.silent = d->silent,
		.within_s = atomic_load(&d->vfs.within_s),
		.export_id = d->export_id,
		.opener = d->opener,
		.change = d->change,
		.giver = d->giver,
		.fh = { d->fh, d->fh_len },
	};

	save_notify(d, &s.notify);
	image_put(w, &saved_deleg_kind, &s);
}

void nfs4_delegs_save(struct nfs4_client *cl, struct image_writer *w)
{
	struct nfs4_state *st;

	if (cl->holdings->dropped)
		return;
	TAILQ_FOREACH (st, &cl->holdings->states, link)
		if (st->kind == NFS4_STATE_DELEG)
			save_deleg(w, nfs4_as_deleg(st));
}

static bool notify_is_good(const struct saved_notify *s)
{
	const uint8_t *at = s->queue.at;
	uint32_t left = s->queue.len;

	if (left > NFS4_DIR_NOTIFY_QUEUE || s->room == 0 || s->room > NFS4_NOTIFY_BATCH ||
	    s->dir.ctime.tv_nsec < 0 || s->dir.ctime.tv_nsec >= (long)RN_NS_PER_SECOND ||
	    s->dir.mtime.tv_nsec < 0 || s->dir.mtime.tv_nsec >= (long)RN_NS_PER_SECOND)
		return false;
	while (left > 0) { /* each change has its length */
		const uint32_t size = left < 12 ? 0 : nfs4_dir_notify_size(at);

		if (size < 12 || size > left || size > NFS4_NOTIFY_BATCH)
			return false;
		at += size;
		left -= size;
	}
	return true;
}

/* Has the holder of a directory's delegation told of changes as before. */
static int load_notify(struct nfs4_deleg *d, const struct saved_notify *s)
{
	const struct nfs4_dir_notify_wish wish = { s->kinds, s->attrs, s->delay };

	if (!notify_is_good(s))
		return -EPROTO;
	return nfs4_dir_notify_new(d, &wish) &&
			       nfs4_dir_notify_resume(d, s->queue.at, s->queue.len, s->room)
		       ? 0
		       : -ENOMEM;
}

/* A delegation in no table, with a reference; NULL: no memory. */
static struct nfs4_deleg *make_deleg(struct nfs4_client *cl, struct vfs_file *f,
				     const struct saved_deleg *s)
{
	struct nfs4_deleg *d = calloc(1, sizeof(*d) + s->fh.len);

	if (!d)
		return NULL;
	nfs4_state_init(&d->st, NFS4_STATE_DELEG, cl, NULL, f);
	d->st.seqid = s->seqid;
	d->st.since = (uint32_t)(nfs4_clients_now(cl->srv) - s->age);
	d->vfs.ops = &nfs4_recall_ops;
	d->vfs.client = cl;
	d->vfs.type = (enum vfs_deleg_type)s->type;
	d->vfs.recalled = s->recalled;
	d->vfs.late = s->late;
	atomic_init(&d->vfs.within_s, s->within_s);
	d->type = s->any_type;
	d->opener = s->opener;
	d->export_id = s->export_id;
	d->giver = s->giver;
	d->change = s->change;
	d->modified = s->modified;
	d->silent = s->silent;
	d->fh_len = (uint8_t)s->fh.len;
	memcpy(d->fh, s->fh.at, s->fh.len);
	return d;
}

/* Under the client's lock; vfs/ has given it. */
static void count_deleg(struct nfs4_deleg *d, const struct saved_deleg *s)
{
	struct nfs4_client *cl = d->st.client;

	d->given = true;
	nfs4_deleg_count(d);
	nfs4_deleg_one_more(cl);
	if (!s->recalled)
		return;
	d->recalled = true;
	nfs4_deleg_count_recalled(d);
	nfs4_recall_enqueue(d);
	d->recalled_at -= rn_min(d->recalled_at, s->recalled_age);
}

static int enter_deleg(struct nfs4_deleg *d, const struct saved_deleg *s)
{
	struct nfs4_client *cl = d->st.client;
	int rc;

	if (!s->revoked)
		vfs_deleg_load(d->st.file, &d->vfs);
	pthread_mutex_lock(&cl->lock);
	rc = nfs4_state_return(cl, &d->st, s->id);
	if (rc == 0 && s->revoked)
		nfs4_state_revoke(cl, &d->st, (int)s->revoked);
	else if (rc == 0)
		count_deleg(d, s);
	pthread_mutex_unlock(&cl->lock);
	if (rc == 0 && s->notify.there)
		nfs4_dir_notify_go(d, s->notify.has_dir ? &s->notify.dir : NULL,
				   s->notify.dir_wait);
	if (rc != 0)
		vfs_deleg_end(&d->vfs);
	else if (s->untold && !s->revoked)
		nfs4_recall_own(d);
	nfs4_state_unref(&d->st);
	return rc;
}

int nfs4_deleg_load(struct nfs4_client *cl, struct image_at *at)
{
	struct saved_deleg s = { 0 };
	struct nfs4_deleg *d;
	struct vfs_file *f;
	int rc = image_get(at, &saved_deleg_kind, &s);

	if (rc != 0 || !s.fh.at || s.fh.len > sizeof(((struct vfs_fh *)0)->data) ||
	    (s.type != VFS_DELEG_READ && s.type != VFS_DELEG_WRITE))
		return -EPROTO;
	f = vfs_file_by_number(cl->srv->cfg.vfs, s.file);
	if (!f)
		return -EPROTO;
	d = make_deleg(cl, f, &s);
	vfs_file_put(f);
	if (!d)
		return -ENOMEM;
	if (s.notify.there)
		rc = load_notify(d, &s.notify);
	if (rc == 0)
		return enter_deleg(d, &s);
	nfs4_state_unref(&d->st);
	return rc;
}
