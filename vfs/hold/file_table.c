/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of files that clients hold something of: their descriptors, the life of those without a link, and views of them. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/file_state.h"
#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/unlinked.h"

void vfs_conflict_put(struct vfs_conflict *c)
{
	if (c->holder)
		c->holder->ops->put(c->holder);
	c->holder = NULL;
}

bool vfs_holder_is_yielding(const struct vfs_holder *h)
{
	return h && atomic_load_explicit(&h->yielding, memory_order_relaxed);
}

enum vfs_yield vfs_conflict_yield(struct vfs_conflict *c)
{
	struct vfs_holder *h = c->holder;
	enum vfs_yield yield = h && h->ops->yield ? h->ops->yield(h) : VFS_HOLDS;

	if (yield == VFS_YIELDING && !atomic_exchange(&h->yielding, true))
		yield = VFS_BEGUN;
	if (yield != VFS_HOLDS)
		vfs_conflict_put(c);
	return yield;
}

bool vfs_file_may_hold(struct vfs *vfs, unsigned part)
{
	return atomic_load_explicit(&vfs->files->held, memory_order_relaxed) <
	       vfs->cfg.max_fds / part;
}

int vfs_file_hold(struct vfs_file *f, enum vfs_held held, int fd)
{
	int before = f->fd;

	if (before < 0 && fd >= 0)
		atomic_fetch_add(&f->vfs->files->held, 1);
	else if (before >= 0 && fd < 0)
		atomic_fetch_sub(&f->vfs->files->held, 1);
	f->fd = fd;
	f->held = held;
	if (held < VFS_HELD_READ)
		vfs_file_set_surplus(f, false); /* the locks have gone with the descriptor */
	return before;
}

void vfs_file_set_surplus(struct vfs_file *f, bool surplus)
{
	if (atomic_exchange(&f->surplus, surplus) != surplus)
		atomic_fetch_add(&f->vfs->files->surplus, surplus ? 1 : (uint64_t)-1);
}

int vfs_file_release(struct vfs_file *f)
{
	/* After the last lock an open file keeps it: there will be other locks, and it pins. */
	if (f->fd < 0 || vfs_file_is_kept(f) || f->ranges.count > 0 || f->mirroring)
		return -1;
	return vfs_file_hold(f, VFS_HELD_NONE, -1);
}

/* The identity of a file: its device, and the part of its handle that is the kernel's. */
struct identity {
	uint64_t dev;
	uint64_t hash;
	const uint8_t *key;
	uint32_t len;
};

static struct identity identity_of_key(const struct vfs *vfs, uint64_t dev, const uint8_t *key,
				       uint32_t len)
{
	struct identity id = { .dev = dev, .key = key, .len = len };

	crypto_shorthash((uint8_t *)&id.hash, id.key, id.len, vfs->hash_key);
	id.hash ^= id.dev * 0x9e3779b97f4a7c15u;
	return id;
}

static struct identity identity_of(const struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh)
{
	uint32_t len;
	const uint8_t *key = vfs_handle_file_part(fh, &len);

	return identity_of_key(vfs, dev, key, len);
}

static bool same(const struct vfs_file *f, const struct identity *id)
{
	return f->hash == id->hash && f->dev == id->dev && f->key_len == id->len &&
	       memcmp(f->key, id->key, id->len) == 0;
}

static struct vfs_file_shard *file_shard_of(struct vfs *vfs, uint64_t hash)
{
	return &vfs->files->shard[hash % VFS_FILE_SHARDS];
}

static struct vfs_file_list *file_bucket_of(struct vfs_file_shard *s, uint64_t hash)
{
	return &s->bucket[hash / VFS_FILE_SHARDS % VFS_FILE_BUCKETS];
}

struct vfs_files *vfs_files_new(void)
{
	struct vfs_files *files = calloc(1, sizeof(*files));

	for (unsigned i = 0; files && i < VFS_FILE_SHARDS; i++)
		pthread_mutex_init(&files->shard[i].lock, NULL);
	return files;
}

void vfs_files_free(struct vfs_files *files)
{
	for (unsigned i = 0; files && i < VFS_FILE_SHARDS; i++)
		pthread_mutex_destroy(&files->shard[i].lock);
	free(files);
}

/* Under the shard's lock. */
static struct vfs_file *file_find_locked(struct vfs_file_shard *s, const struct identity *id)
{
	struct vfs_file *f;

	LIST_FOREACH (f, file_bucket_of(s, id->hash), link) {
		if (same(f, id))
			break;
	}
	if (f)
		f->refs++;
	return f;
}

static struct vfs_file *file_find(struct vfs *vfs, const struct identity *id)
{
	struct vfs_file_shard *s = file_shard_of(vfs, id->hash);
	struct vfs_file *f;

	if (atomic_load_explicit(&vfs->files->files, memory_order_relaxed) == 0)
		return NULL;
	pthread_mutex_lock(&s->lock);
	f = file_find_locked(s, id);
	pthread_mutex_unlock(&s->lock);
	return f;
}

struct vfs_file *vfs_file_find_fh(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh)
{
	struct identity id = identity_of(vfs, dev, fh);

	return file_find(vfs, &id);
}

struct vfs_file *vfs_file_find(const struct vfs_node *n)
{
	return vfs_file_find_fh(n->vfs, n->dev, &n->fh);
}

bool vfs_file_is(const struct vfs_file *f, const struct vfs_node *n)
{
	uint32_t len;
	const uint8_t *key = vfs_handle_file_part(&n->fh, &len);

	return f->dev == n->dev && f->key_len == len && memcmp(f->key, key, len) == 0;
}

static struct vfs_file *file_new(struct vfs *vfs, const struct identity *id)
{
	struct vfs_file *f = calloc(1, sizeof(*f) + id->len);

	if (!f)
		return NULL;
	f->vfs = vfs;
	f->refs = 1;
	f->hash = id->hash;
	f->dev = id->dev;
	f->slot = (unsigned)(vfs_handle_part_hash(id->key, id->len) % VFS_CHANGE_SLOTS);
	f->key_len = (uint8_t)id->len;
	memcpy(f->key, id->key, id->len);
	f->fd = -1;
	f->lease_fd = -1;
	f->ranges.random = id->hash | 1;
	LIST_INIT(&f->shares);
	LIST_INIT(&f->openers);
	LIST_INIT(&f->delegs.given);
	LIST_INIT(&f->delegs.recalled);
	pthread_cond_init(&f->delegs.called, NULL);
	rn_lock_init(&f->mirror_turn);
	pthread_mutex_init(&f->lock, NULL);
	atomic_fetch_add(&vfs->files->files, 1);
	return f;
}

/* Nobody refers to it, and it is not in the table. */
static void file_free(struct vfs_file *f)
{
	int fd = vfs_file_hold(f, VFS_HELD_NONE, -1);

	pthread_mutex_lock(&f->lock);
	vfs_wait_forget_all(f);
	vfs_wait_unlock(f);
	vfs_fd_close(f->vfs, fd);
	vfs_notify_free(atomic_load(&f->delegs.notifier));
	pthread_cond_destroy(&f->delegs.called);
	pthread_mutex_destroy(&f->lock);
	rn_lock_fini(&f->mirror_turn);
	atomic_fetch_sub(&f->vfs->files->files, 1);
	free(f);
}

/* Enters a new file; if there is one of its identity, frees it, and returns that. With a reference. */
static struct vfs_file *file_enter(struct vfs_file *fresh, const struct identity *id)
{
	struct vfs_file_shard *s = file_shard_of(fresh->vfs, id->hash);
	struct vfs_file *f;

	pthread_mutex_lock(&s->lock);
	f = file_find_locked(s, id);
	if (!f)
		LIST_INSERT_HEAD(file_bucket_of(s, id->hash), fresh, link);
	pthread_mutex_unlock(&s->lock);
	if (!f)
		return fresh;
	file_free(fresh);
	return f;
}

int vfs_file_get(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file **out)
{
	struct identity id = identity_of(n->vfs, n->dev, &n->fh);
	struct vfs_file *fresh;

	(void)ctx;
	*out = file_find(n->vfs, &id);
	if (*out)
		return 0;
	fresh = file_new(n->vfs, &id);
	if (!fresh)
		return -ENOMEM;
	fresh->is_dir = n->type == S_IFDIR;
	fresh->remote = !n->mnt->fs.local;
	fresh->export_id = n->mnt->exp->id;
	fresh->submount_id = n->mnt->id;
	*out = file_enter(fresh, &id);
	return 0;
}

struct vfs_file *vfs_file_make(struct vfs *vfs, uint64_t dev, const uint8_t *key, uint32_t len)
{
	const struct identity id = identity_of_key(vfs, dev, key, len);
	struct vfs_file *f, *fresh = file_new(vfs, &id);

	if (!fresh)
		return NULL;
	f = file_enter(fresh, &id);
	if (f == fresh)
		return f;
	vfs_file_put(f);
	return NULL;
}

void vfs_file_ref(struct vfs_file *f)
{
	struct vfs_file_shard *s = file_shard_of(f->vfs, f->hash);

	pthread_mutex_lock(&s->lock);
	f->refs++;
	pthread_mutex_unlock(&s->lock);
}

void vfs_file_put(struct vfs_file *f)
{
	struct vfs_file_shard *s;
	bool last;

	if (!f)
		return;
	s = file_shard_of(f->vfs, f->hash);
	pthread_mutex_lock(&s->lock);
	last = --f->refs == 0;
	if (last)
		LIST_REMOVE(f, link);
	pthread_mutex_unlock(&s->lock);
	if (last)
		file_free(f);
}

void vfs_file_sweep_begin(struct vfs_file_sweep *s, struct vfs *vfs)
{
	*s = (struct vfs_file_sweep){ .vfs = vfs,
				      .number = atomic_fetch_add(&vfs->files->sweeps, 1) + 1 };
}

/* A file that a later sweep has met is left to that. */
static struct vfs_file *file_sweep_next_of_bucket(const struct vfs_file_sweep *s)
{
	struct vfs_file_shard *shard = &s->vfs->files->shard[s->at % VFS_FILE_SHARDS];
	struct vfs_file *f;

	pthread_mutex_lock(&shard->lock);
	LIST_FOREACH (f, &shard->bucket[s->at / VFS_FILE_SHARDS], link) {
		if (f->sweep < s->number)
			break;
	}
	if (f) {
		f->sweep = s->number;
		f->refs++;
	}
	pthread_mutex_unlock(&shard->lock);
	return f;
}

struct vfs_file *vfs_file_sweep_next(struct vfs_file_sweep *s)
{
	struct vfs_file *f = NULL;

	while (s->at < VFS_FILE_SHARDS * VFS_FILE_BUCKETS && !(f = file_sweep_next_of_bucket(s)))
		s->at++;
	return f;
}

struct vfs_file *vfs_file_next_surplus(struct vfs *vfs, unsigned *at, unsigned round)
{
	for (; *at < VFS_FILE_SHARDS * VFS_FILE_BUCKETS; (*at)++) {
		struct vfs_file_shard *shard = &vfs->files->shard[*at % VFS_FILE_SHARDS];
		struct vfs_file *f;

		pthread_mutex_lock(&shard->lock);
		LIST_FOREACH (f, &shard->bucket[*at / VFS_FILE_SHARDS], link) {
			if (atomic_load(&f->surplus) && f->mend_round != round)
				break;
		}
		if (f) {
			f->mend_round = round;
			f->refs++;
		}
		pthread_mutex_unlock(&shard->lock);
		if (f)
			return f;
	}
	return NULL;
}

bool vfs_file_any_kept(struct vfs *vfs)
{
	return atomic_load_explicit(&vfs->files->shares, memory_order_relaxed) > 0 ||
	       atomic_load_explicit(&vfs->files->delegs, memory_order_relaxed) > 0;
}

bool vfs_file_keeps_inode(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh)
{
	struct vfs_file *f = vfs_file_find_fh(vfs, dev, fh);
	bool kept = false;

	if (f) {
		pthread_mutex_lock(&f->lock);
		kept = vfs_file_is_kept(f);
		pthread_mutex_unlock(&f->lock);
		vfs_file_put(f);
	}
	return kept;
}

bool vfs_file_is_open_to_write(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh)
{
	struct vfs_file *f = vfs_file_find_fh(vfs, dev, fh);
	bool writing = false;

	if (f) {
		pthread_mutex_lock(&f->lock);
		writing = f->accessing[1] > 0 || f->delegs.writing;
		pthread_mutex_unlock(&f->lock);
		vfs_file_put(f);
	}
	return writing;
}

void vfs_file_stats(struct vfs *vfs, struct vfs_file_stats *out)
{
	const struct vfs_files *t = vfs->files;

	*out = (struct vfs_file_stats){
		.files = atomic_load(&t->files),
		.shares = atomic_load(&t->shares),
		.locks = atomic_load(&t->locks),
		.waiters = atomic_load(&t->waiters),
		.held = atomic_load(&t->held),
		.unheld = atomic_load(&t->unheld),
		.surplus = atomic_load(&t->surplus),
	};
}

/* Gives a file that clients hold something of a descriptor unless it has one; false: nobody does. */
static bool pin(struct vfs_file *f, struct vfs_node *n)
{
	int fd = vfs_fd_dup(f->vfs, n->path_fd);
	bool kept;

	pthread_mutex_lock(&f->lock);
	kept = vfs_file_is_kept(f);
	if (kept && fd >= 0 && f->fd < 0) {
		vfs_file_hold(f, VFS_HELD_PIN, fd);
		fd = -1;
	}
	pthread_mutex_unlock(&f->lock);
	vfs_fd_close(f->vfs, fd);
	return kept;
}

bool vfs_unlinked_link_lost(struct vfs_node *n)
{
	struct vfs_file *f = vfs_file_find(n);
	enum vfs_link_state linked = VFS_LINKED;
	bool kept;

	if (!f)
		return false;
	kept = pin(f, n);
	if (kept)
		atomic_compare_exchange_strong(&n->link, &linked, VFS_UNLINKED_OPEN);
	vfs_file_put(f);
	return kept;
}

static bool may_inherit(struct vfs *vfs)
{
	return vfs_file_may_hold(vfs, VFS_PART_PRECAUTION);
}

bool vfs_unlinked_leave_fd(struct vfs_node *n)
{
	struct vfs_file *f = NULL;
	bool taken = false;

	if ((n->type == S_IFREG || n->type == S_IFDIR) && vfs_file_any_kept(n->vfs) &&
	    may_inherit(n->vfs))
		f = vfs_file_find(n);
	if (!f)
		return false;
	pthread_mutex_lock(&f->lock);
	if (vfs_file_is_kept(f) && f->fd < 0) {
		vfs_file_hold(f, VFS_HELD_PIN, n->path_fd);
		taken = true;
	}
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
	return taken;
}

enum vfs_link_state vfs_unlinked_found(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh,
				       uint32_t nlink)
{
	if (nlink > 0)
		return VFS_LINKED;
	return vfs_file_keeps_inode(vfs, dev, fh) ? VFS_UNLINKED_OPEN : VFS_GONE;
}

bool vfs_unlinked_needs_node(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh)
{
	return vfs_file_keeps_inode(vfs, dev, fh);
}

void vfs_unlinked_share_made(struct vfs_node *n)
{
	struct statx sx;

	/* The file takes over the node's descriptor in time. Where it could not, vfs_node_stat() opens one, which keeps the inode. */
	if (!may_inherit(n->vfs))
		vfs_node_stat(n, &sx);
}

#define ATTEMPTS 20u
#define PAUSE_NS 50000

/* For views of a file (vfs/view.h): the file system may hold its lock up, so it is not waited for. */
static bool file_lock_soon(struct vfs_file *f)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (pthread_mutex_trylock(&f->lock) == 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

void vfs_view_file_fd(struct vfs_file *f, void (*each)(void *arg, int fd), void *arg)
{
	if (!file_lock_soon(f))
		return;
	if (f->fd >= 0)
		each(arg, f->fd);
	pthread_mutex_unlock(&f->lock);
}

/* Device and key of a file never change. */
bool vfs_view_is_file(const struct vfs_file *f, uint32_t dev_major, uint32_t dev_minor,
		      const uint8_t *part, uint32_t len)
{
	const struct statx sx = { .stx_dev_major = dev_major, .stx_dev_minor = dev_minor };

	return f && f->dev == vfs_device_of(&sx) && f->key_len == len &&
	       memcmp(f->key, part, len) == 0;
}

bool vfs_view_share(struct vfs_file *f, const struct vfs_share *s, struct vfs_share_request *out)
{
	if (!file_lock_soon(f))
		return false;
	*out = (struct vfs_share_request){ .access = s->access, .deny = s->deny };
	pthread_mutex_unlock(&f->lock);
	return true;
}

bool vfs_view_ranges(struct vfs_file *f, const struct vfs_lock_owner *o,
		     struct vfs_view_ranges *out)
{
	struct vfs_range *r;

	out->n = 0;
	if (!file_lock_soon(f))
		return false;
	out->total = o->count;
	for (r = vfs_range_own(o, 0); r && out->n < VFS_VIEW_RANGES; r = vfs_range_own_next(r)) {
		const struct vfs_span span = { .start = r->start, .end = r->end };

		out->range[out->n++] = (struct vfs_view_range){
			.type = (enum vfs_lock_type)r->type,
			.offset = r->start,
			.length = vfs_span_length(&span),
		};
	}
	pthread_mutex_unlock(&f->lock);
	return true;
}
