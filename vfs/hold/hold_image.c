/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/vfs_image.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "vfs/base/instance.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/lease.h"
#include "vfs/node/cache.h"

#define VFS_SECTION "files"

struct saved_file {
	uint64_t dev;
	struct image_bytes key;
	bool is_dir, remote, unheld, surplus;
	uint8_t held;
	int fd;
	uint8_t shift;
	uint32_t pieces, coarser_at;
	int lease_fd;
	bool guarded;
	uint32_t export_id, submount_id;
};
static const struct image_field saved_file_fields[] = {
	IMAGE_NUMBER(1, struct saved_file, dev),
	IMAGE_BYTES(2, struct saved_file, key),
	IMAGE_NUMBER(3, struct saved_file, is_dir),
	IMAGE_NUMBER(4, struct saved_file, remote),
	IMAGE_NUMBER(5, struct saved_file, unheld),
	IMAGE_NUMBER(6, struct saved_file, surplus),
	IMAGE_NUMBER(7, struct saved_file, held),
	IMAGE_FD(8, struct saved_file, fd),
	IMAGE_NUMBER(9, struct saved_file, shift),
	IMAGE_NUMBER(10, struct saved_file, pieces),
	IMAGE_NUMBER(11, struct saved_file, coarser_at),
	IMAGE_FD(12, struct saved_file, lease_fd),
	IMAGE_NUMBER(13, struct saved_file, guarded),
	IMAGE_NUMBER(14, struct saved_file, export_id),
	IMAGE_NUMBER(15, struct saved_file, submount_id),
};
static const struct image_kind saved_file_kind = { 1, rn_array_size(saved_file_fields),
						   saved_file_fields };

/* One that waits for a lock of the file before it. */
struct saved_waiter {
	uint64_t id, start, end;
	uint64_t asked_age, told_age; /* milliseconds */
	uint32_t gap, asked;
	uint8_t type;
	bool in_order, told;
};
static const struct image_field saved_waiter_fields[] = {
	IMAGE_NUMBER(1, struct saved_waiter, id),
	IMAGE_NUMBER(2, struct saved_waiter, start),
	IMAGE_NUMBER(3, struct saved_waiter, end),
	IMAGE_NUMBER(4, struct saved_waiter, asked_age),
	IMAGE_NUMBER(5, struct saved_waiter, told_age),
	IMAGE_NUMBER(6, struct saved_waiter, gap),
	IMAGE_NUMBER(7, struct saved_waiter, asked),
	IMAGE_NUMBER(8, struct saved_waiter, type),
	IMAGE_NUMBER(9, struct saved_waiter, in_order),
	IMAGE_NUMBER(10, struct saved_waiter, told),
};
static const struct image_kind saved_waiter_kind = { 3, rn_array_size(saved_waiter_fields),
						     saved_waiter_fields };

/* Groups of fanotify(7): while they are there, what happens to files with delegations waits, or is not forgotten. */
struct saved_groups {
	int changes, opens;
};
static const struct image_field saved_groups_fields[] = {
	IMAGE_FD(1, struct saved_groups, changes),
	IMAGE_FD(2, struct saved_groups, opens),
};
static const struct image_kind saved_groups_kind = { 2, rn_array_size(saved_groups_fields),
						     saved_groups_fields };

uint32_t vfs_file_number(const struct vfs_file *f)
{
	return f->number;
}

static void save_held_file(struct image_writer *w, const struct vfs_file *f)
{
	struct saved_file s = {
		.dev = f->dev,
		.key = { f->key, f->key_len },
		.is_dir = f->is_dir,
		.remote = f->remote,
		.unheld = f->unheld,
		.surplus = atomic_load(&f->surplus),
		.held = (uint8_t)f->held,
		.fd = f->fd,
		.shift = f->granularity.shift,
		.pieces = f->granularity.pieces,
		.coarser_at = f->granularity.coarser_at,
		.lease_fd = f->lease_fd,
		.guarded = f->guarded,
		.export_id = f->export_id,
		.submount_id = f->submount_id,
	};

	/* Nothing is held there before it is opened. */
	if (image_is_for_elsewhere(w)) {
		s.held = VFS_HELD_NONE;
		s.surplus = s.unheld = false;
	}
	image_put(w, &saved_file_kind, &s);
}

/* Saves the file's queue of waiters for locks, so that each keeps its place. Whom to tell when a lock is free, NFSv4 and NLM save. */
static void save_waiters(struct image_writer *w, const struct vfs_file *f)
{
	const int64_t now = (int64_t)rn_now_ms();

	for (const struct vfs_waiter *at = f->waiters.first; at; at = at->next) {
		const struct saved_waiter s = {
			.id = at->id,
			.start = at->span.start,
			.end = at->span.end,
			.asked_age = (uint64_t)(now - at->asked_at),
			.told_age = at->told_at ? (uint64_t)(now - at->told_at) : 0,
			.gap = at->gap,
			.asked = at->asked,
			.type = at->type,
			.in_order = at->in_order,
			.told = at->told_at != 0,
		};

		image_put(w, &saved_waiter_kind, &s);
	}
}

const char *vfs_save(struct vfs *vfs, struct image_writer *w)
{
	struct vfs_file_sweep sweep;
	uint32_t number = 0;
	struct vfs_file *f;

	vfs_leases_rest(vfs);
	if (vfs->guards->nopeners > 0)
		return "local processes wait for delegations to end";
	/* What is not on disk yet is the kernel's from here: the next program has other write verifiers, so clients write it again. */
	vfs->stopping = true;
	/* A node leaves its descriptor to the file, if clients have that open. */
	while (vfs_cache_evict(vfs))
		;
	image_begin(w, VFS_SECTION);
	if (!image_is_for_elsewhere(w))
		image_put(w, &saved_groups_kind,
			  &(struct saved_groups){ vfs->leases->changes, vfs->guards->group });
	vfs_file_sweep_begin(&sweep, vfs);
	while ((f = vfs_file_sweep_next(&sweep)) != NULL) {
		f->number = ++number;
		save_held_file(w, f);
		save_waiters(w, f);
		vfs_file_put(f);
	}
	return NULL;
}

/* Files that were loaded, until the protocols have taken theirs. */
struct vfs_loaded {
	size_t n, size;
	struct vfs_file *file[];
};

static struct vfs_loaded *loaded_room(struct vfs_loaded *all)
{
	const size_t size = all ? 2 * all->size : 64;

	if (all && all->n < all->size)
		return all;
	struct vfs_loaded *more = realloc(all, sizeof(*all) + size * sizeof(struct vfs_file *));

	if (more && !all)
		more->n = 0;
	if (more)
		more->size = size;
	return more;
}

struct vfs_file *vfs_file_by_number(struct vfs *vfs, uint32_t number)
{
	const struct vfs_loaded *all = vfs->loaded;

	if (!all || number == 0 || number > all->n)
		return NULL;
	vfs_file_ref(all->file[number - 1]);
	return all->file[number - 1];
}

static bool saved_file_is_good(const struct saved_file *s)
{
	return s->key.len > 0 && s->key.len <= UINT8_MAX && s->held <= VFS_HELD_WRITE &&
	       (s->fd >= 0) == (s->held != VFS_HELD_NONE);
}

/* Finds out what a file of another machine's server is here. */
static int find_moved(struct vfs *vfs, struct saved_file *s)
{
	struct vfs_moved_file m = {
		.export_id = s->export_id,
		.submount_id = s->submount_id,
		.key = s->key.at,
		.key_len = s->key.len,
	};
	const int rc = vfs_moved_find(vfs, &m);

	s->dev = m.dev;
	s->remote = m.remote;
	return rc;
}

/* Takes the descriptors. */
static int load_saved_file(struct vfs *vfs, struct saved_file *s, bool moved)
{
	struct vfs_loaded *room = loaded_room(vfs->loaded);
	struct vfs_file *f = NULL;
	int rc = !room ? -ENOMEM : saved_file_is_good(s) ? 0 : -EPROTO;

	if (room)
		vfs->loaded = room;
	if (rc == 0 && moved)
		rc = find_moved(vfs, s);
	if (rc == 0) {
		f = vfs_file_make(vfs, s->dev, s->key.at, s->key.len);
		rc = f ? 0 : -EPROTO;
	}
	if (rc != 0) {
		if (s->fd >= 0)
			close(s->fd);
		if (s->lease_fd >= 0)
			close(s->lease_fd);
		return rc;
	}
	room->file[room->n++] = f;
	f->export_id = s->export_id;
	f->submount_id = s->submount_id;
	f->is_dir = s->is_dir;
	f->remote = s->remote;
	f->unheld = s->unheld;
	f->granularity = (struct vfs_lock_granularity){ .shift = s->shift,
							.pieces = s->pieces,
							.coarser_at = s->coarser_at };
	if (s->unheld)
		atomic_fetch_add(&vfs->files->unheld, 1);
	if (s->fd >= 0) {
		atomic_fetch_add(&vfs->fds, 1);
		vfs_file_hold(f, (enum vfs_held)s->held, s->fd);
	}
	if (s->surplus && s->held >= VFS_HELD_READ)
		vfs_file_set_surplus(f, true);
	if (s->lease_fd >= 0)
		vfs_lease_load(f, s->lease_fd, s->guarded);
	return 0;
}

static bool waiter_is_good(struct vfs_file *f, const struct saved_waiter *s)
{
	return s->id != 0 && s->start <= s->end && !vfs_waiter_find(f, s->id) &&
	       (s->type == VFS_LOCK_READ || s->type == VFS_LOCK_WRITE);
}

/* Adds one to the file that was loaded last. */
static int load_waiter(const struct vfs_loaded *all, struct image_at *at)
{
	const uint64_t now = rn_now_ms();
	struct saved_waiter s = { .id = 0 };
	struct vfs_waiter *w = NULL;
	int rc = image_get(at, &saved_waiter_kind, &s);

	if (rc == 0 && (!all || all->n == 0 || !waiter_is_good(all->file[all->n - 1], &s)))
		rc = -EPROTO;
	if (rc == 0)
		w = vfs_waiter_add(all->file[all->n - 1], s.id,
				   (int64_t)(now - rn_min(now, s.asked_age)));
	if (!w)
		return rc ? rc : -ENOMEM;
	w->span = (struct vfs_span){ s.start, s.end };
	w->gap = s.gap;
	w->asked = s.asked;
	w->type = s.type;
	w->in_order = s.in_order;
	w->told_at = s.told ? (int64_t)(now - rn_min(now - 1, s.told_age)) : 0;
	return 0;
}

static int load_groups(struct vfs *vfs, struct image_at *at)
{
	struct saved_groups s;
	const int rc = image_get(at, &saved_groups_kind, &s);

	vfs->leases->changes = s.changes;
	vfs->guards->group = s.opens;
	return rc;
}

static int load_held_files(struct vfs *vfs, struct image_reader *image, bool moved)
{
	struct image_at at;
	int rc = 0;

	if (!image_enter(image, VFS_SECTION, &at))
		return 0;
	while (rc == 0 && image_next(&at)) {
		struct saved_file s = { .fd = -1, .lease_fd = -1 };

		if (image_next(&at) == saved_groups_kind.kind) {
			rc = load_groups(vfs, &at);
			continue;
		}
		if (image_next(&at) == saved_waiter_kind.kind) {
			rc = load_waiter(vfs->loaded, &at);
			continue;
		}
		rc = image_get(&at, &saved_file_kind, &s);
		if (rc == 0)
			rc = load_saved_file(vfs, &s, moved);
	}
	return rc;
}

int vfs_load(struct vfs *vfs, struct image_reader *image)
{
	return load_held_files(vfs, image, false);
}

int vfs_load_moved(struct vfs *vfs, struct image_reader *image)
{
	return load_held_files(vfs, image, true);
}

void vfs_load_end(struct vfs *vfs)
{
	struct vfs_loaded *all = vfs->loaded;

	vfs->loaded = NULL;
	for (size_t i = 0; all && i < all->n; i++) {
		struct vfs_file *f = all->file[i];

		pthread_mutex_lock(&f->lock);
		const int fd = vfs_file_release(f); /* nobody holds anything of it */
		const bool free = LIST_EMPTY(&f->delegs.given) && LIST_EMPTY(&f->delegs.recalled);
		const int lease = free ? vfs_lease_drop(f) : -1;

		pthread_mutex_unlock(&f->lock);
		vfs_fd_close(vfs, fd);
		vfs_fd_close(vfs, lease);
		vfs_file_put(f);
	}
	free(all);
}

void vfs_share_load(struct vfs_file *f, struct vfs_share *s, const struct vfs_share_request *r,
		    const void *client, bool advisory)
{
	*s = (struct vfs_share){ .file = f,
				 .holder = r->holder,
				 .access = r->access & VFS_SHARE_BOTH,
				 .deny = r->deny & VFS_SHARE_BOTH,
				 .advisory = advisory,
				 .client = client };
	vfs_file_ref(f);
	pthread_mutex_lock(&f->lock);
	vfs_share_insert(f, s);
	pthread_mutex_unlock(&f->lock);
}

void vfs_deleg_load(struct vfs_file *f, struct vfs_deleg *d)
{
	vfs_file_ref(f);
	pthread_mutex_lock(&f->lock);
	vfs_notify_admit(f, d);
	vfs_deleg_insert(f, d);
	pthread_mutex_unlock(&f->lock);
}

void vfs_lock_each(const struct vfs_lock_owner *o,
		   void (*each)(void *arg, const struct vfs_locked_range *r), void *arg)
{
	struct vfs_range *r;

	for (r = vfs_range_own(o, 0); r; r = vfs_range_own_next(r))
		each(arg, &(struct vfs_locked_range){ r->start, r->end, r->type });
}

int vfs_lock_load(struct vfs_lock_owner *o, const struct vfs_locked_range *range)
{
	const struct vfs_span span = { range->start, range->end };
	struct vfs_file *f = o->file;
	struct vfs_range *r, *own;
	int rc = -EPROTO;

	if (span.start > span.end ||
	    (range->type != VFS_LOCK_READ && range->type != VFS_LOCK_WRITE))
		return -EPROTO;
	r = malloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	pthread_mutex_lock(&f->lock);
	own = vfs_range_own(o, span.start);
	if ((!own || own->start > span.end) &&
	    !vfs_range_conflict(&f->ranges, o, (enum vfs_lock_type)range->type, &span)) {
		vfs_lock_insert(o, r, &span, range->type);
		rc = 0;
	}
	pthread_mutex_unlock(&f->lock);
	if (rc != 0)
		free(r);
	return rc;
}

int vfs_lock_load_notice(struct vfs_file *f, uint64_t waiter, struct vfs_lock_notice *n)
{
	struct vfs_waiter *w;
	int rc = -EPROTO;

	pthread_mutex_lock(&f->lock);
	w = vfs_waiter_find(f, waiter);
	if (w && !w->notice) {
		vfs_waiter_expect(f, w, n);
		rc = 0;
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}
