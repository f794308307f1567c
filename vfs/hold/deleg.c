/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations of files: which of them a use meets, their recall, giving and ending them (vfs/deleg.h). */
#include <errno.h>
#include <sys/stat.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "vfs/base/instance.h"
#include "vfs/deleg.h"
#include "vfs/export/mounts.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/lease.h"

static bool quiet_is_over(uint32_t since, struct vfs_quiet_time t)
{
	return since == 0 || t.now - since >= t.lasts;
}

static uint32_t since_of(uint64_t file)
{
	return (uint32_t)file;
}

static bool quiet_is_same_file(uint64_t file, uint64_t hash)
{
	return file >> 32 == hash >> 32;
}

void vfs_quiet_begin(struct vfs_quiet *q, uint64_t hash, struct vfs_quiet_time t)
{
	struct vfs_quiet_bucket *b = &q->bucket[hash % VFS_QUIET_BUCKETS];
	const uint32_t now = t.now ? t.now : 1;
	const uint64_t file = hash >> 32 << 32 | now;

	for (unsigned i = 0; i < VFS_QUIET_WAYS; i++) {
		uint64_t old = atomic_load(&b->file[i]);

		if ((quiet_is_same_file(old, hash) || quiet_is_over(since_of(old), t)) &&
		    atomic_compare_exchange_strong(&b->file[i], &old, file))
			return;
	}
	atomic_store(&b->all_since, now);
}

bool vfs_quiet_is(const struct vfs_quiet *q, uint64_t hash, struct vfs_quiet_time t)
{
	const struct vfs_quiet_bucket *b = &q->bucket[hash % VFS_QUIET_BUCKETS];

	for (unsigned i = 0; i < VFS_QUIET_WAYS; i++) {
		const uint64_t file = atomic_load(&b->file[i]);

		if (quiet_is_same_file(file, hash) && !quiet_is_over(since_of(file), t))
			return true;
	}
	return !quiet_is_over(atomic_load(&b->all_since), t);
}

/*
 * A client has at most one delegation of a file, so of the first two of a list one is another
 * client's: nothing here walks a list for a client, however many clients have one. Only those that take notifications are
 * passed over, and they are few (VFS_NOTIFY_HOLDERS).
 */

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
	return u->notify_kinds == 0 || d->recalled ||
	       (u->notify_kinds & ~atomic_load(&d->notify_kinds)) != 0;
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

static struct vfs_quiet_time vfs_deleg_quiet_time(const struct vfs *vfs)
{
	return (struct vfs_quiet_time){ .now = (uint32_t)rn_now_coarse_seconds(),
					.lasts = vfs->cfg.deleg_quiet_seconds };
}

/* Nobody gets a delegation of the file from now on, for vfs_config.deleg_quiet_seconds. */
static void vfs_deleg_quiet(struct vfs_file *f)
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

/* A delegation that is to be given. */
struct wish {
	const void *client;
	enum vfs_deleg_type type;
};

static void deleg_count(struct vfs_files *t, const struct vfs_deleg *d, uint64_t by)
{
	atomic_fetch_add(&t->delegs, by);
	if (d->type == VFS_DELEG_WRITE)
		atomic_fetch_add(&t->delegs_writing, by);
}

void vfs_deleg_insert(struct vfs_file *f, struct vfs_deleg *d)
{
	deleg_count(f->vfs->files, d, 1);
	d->leased = f->lease_fd >= 0;
	d->recalled_at = rn_now_coarse_seconds();
	if (d->recalled)
		LIST_INSERT_HEAD(&f->delegs.recalled, d, link);
	else
		LIST_INSERT_HEAD(&f->delegs.given, d, link);
	if (d->late)
		atomic_fetch_add(&f->vfs->files->delegs_late, 1);
	f->delegs.writing |= d->type == VFS_DELEG_WRITE;
	d->file = f;
}

#define SHARES_LOOKED_AT 32u

/* True if a share of another client stands against the delegation, or keeps the holder itself from
 * the opens that it allows. With very many shares one is assumed to. */
static bool shares_refuse(const struct vfs_file *f, const struct wish *d)
{
	const bool writing = d->type == VFS_DELEG_WRITE;
	unsigned left = SHARES_LOOKED_AT;
	const struct vfs_share *s;

	if (f->denying[0] || (writing && f->denying[1]))
		return true;
	if (!writing && f->accessing[1] == 0)
		return false;
	LIST_FOREACH (s, &f->shares, link) {
		if (left-- == 0 ||
		    (s->client != d->client && (writing || (s->access & VFS_SHARE_WRITE))))
			break;
	}
	return s;
}

static bool has_one(const struct vfs_file *f, const void *client)
{
	const struct vfs_deleg *d;

	LIST_FOREACH (d, &f->delegs.given, link) {
		if (d->client == client)
			break;
	}
	return d;
}

static bool deleg_is_quiet(const struct vfs_file *f)
{
	return vfs_quiet_is(&f->vfs->files->recalled, f->hash, vfs_deleg_quiet_time(f->vfs));
}

/* Under f->lock. Locks may be anybody's: a file that is locked is not worth a search for theirs. */
static bool may_give(const struct vfs_file *f, const struct wish *d)
{
	const struct vfs_file_use u = { .client = d->client,
					.use = d->type == VFS_DELEG_WRITE ? VFS_USE_WRITE
									  : VFS_USE_READ };

	return LIST_EMPTY(&f->delegs.recalled) && !deleg_is_quiet(f) &&
	       !vfs_deleg_conflicts(f, &u) && !has_one(f, d->client) && f->ranges.count == 0 &&
	       !f->mirroring && !shares_refuse(f, d);
}

/* Local processes may use the file. */
static bool needs_lease(const struct vfs_node *n)
{
	return !atomic_load(&n->exp->nfs_only);
}

/* Under f->lock. fds: for a lease, if the file has none. */
static int lease_locked(struct vfs_file *f, enum vfs_deleg_type type, struct vfs_lease_fds *fds)
{
	if (f->lease_fd >= 0)
		return vfs_lease_holds(f) && f->guarded == (type == VFS_DELEG_WRITE) ? 0
										     : -RN_ENOTNOW;
	return fds->fd < 0 ? -RN_ENOTNOW : vfs_lease_take(f, fds);
}

/* Under f->lock, when it is counted (vfs/hold/file_change.h). */
static int give_locked(struct vfs_file *f, const struct vfs_node *n, struct vfs_deleg *d,
		       struct vfs_lease_fds *fds)
{
	const struct wish w = { .client = d->client, .type = d->type };
	int rc;

	if (!may_give(f, &w) || atomic_load(&f->vfs->files->changing[f->slot]) != 0)
		return -RN_ENOTNOW;
	rc = needs_lease(n) ? lease_locked(f, d->type, fds) : 0;
	if (rc != 0)
		return rc;
	d->leased = f->lease_fd >= 0;
	vfs_notify_admit(f, d);
	LIST_INSERT_HEAD(&f->delegs.given, d, link);
	f->delegs.writing = d->type == VFS_DELEG_WRITE;
	d->file = f;
	return 0;
}

/* 0, or -EOPNOTSUPP. */
static int check_node(const struct vfs_node *n, enum vfs_deleg_type type)
{
	if (n->type != S_IFREG && (n->type != S_IFDIR || type != VFS_DELEG_READ))
		return -EOPNOTSUPP;
	if (!needs_lease(n))
		return 0;
	return vfs_lease_possible(n, type) ? 0 : -EOPNOTSUPP;
}

static bool has_lease(struct vfs_file *f)
{
	bool has;

	pthread_mutex_lock(&f->lock);
	has = f->lease_fd >= 0;
	pthread_mutex_unlock(&f->lock);
	return has;
}

static int deleg_give(struct vfs_file *f, const struct vfs_node *n, struct vfs_deleg *d,
		      struct vfs_lease_fds *fds)
{
	int rc;

	deleg_count(f->vfs->files, d, 1);
	pthread_mutex_lock(&f->lock);
	rc = give_locked(f, n, d, fds);
	pthread_mutex_unlock(&f->lock);
	if (rc != 0)
		deleg_count(f->vfs->files, d, (uint64_t)-1);
	return rc;
}

static int open_and_give(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file *f,
			 struct vfs_deleg *d)
{
	struct vfs_lease_fds fds = VFS_LEASE_NO_FDS;
	int rc = 0;

	if (needs_lease(n) && !has_lease(f))
		rc = vfs_lease_open(ctx, n, d->type, &fds);
	if (rc != 0)
		return rc;
	rc = deleg_give(f, n, d, &fds);
	vfs_lease_close(f->vfs, &fds);
	return rc;
}

bool vfs_deleg_possible(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_deleg_type type)
{
	const struct wish w = { .client = ctx->client, .type = type };
	bool possible = check_node(n, type) == 0;
	struct vfs_file *f = possible ? vfs_file_find(n) : NULL;

	if (!f)
		return possible;
	pthread_mutex_lock(&f->lock);
	possible = may_give(f, &w);
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
	return possible;
}

int vfs_deleg_give(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_deleg *d)
{
	int rc = check_node(n, d->type);
	struct vfs_file *f;

	d->file = NULL;
	d->recalled = d->late = false;
	d->calling = 0;
	d->told = 0;
	if (rc == 0)
		rc = vfs_file_get(ctx, n, &f);
	if (rc != 0)
		return rc;
	rc = open_and_give(ctx, n, f, d);
	if (rc != 0)
		vfs_file_put(f);
	return rc;
}

void vfs_deleg_end(struct vfs_deleg *d)
{
	struct vfs_file *f = d->file;
	const struct vfs_config *cfg;
	bool freed;
	int fd = -1, pin;

	if (!f)
		return;
	cfg = &f->vfs->cfg;
	pthread_mutex_lock(&f->lock);
	while (d->calling > 0)
		pthread_cond_wait(&f->delegs.called, &f->lock);
	LIST_REMOVE(d, link);
	vfs_notify_leave(f, d);
	if (d->type == VFS_DELEG_WRITE)
		f->delegs.writing = false;
	if (LIST_EMPTY(&f->delegs.given) && LIST_EMPTY(&f->delegs.recalled))
		fd = vfs_lease_drop(f);
	if (d->recalled)
		vfs_deleg_quiet(f);
	if (d->late)
		atomic_fetch_sub(&f->vfs->files->delegs_late, 1);
	freed = d->recalled && LIST_EMPTY(&f->delegs.recalled);
	pin = vfs_file_release(f);
	d->file = NULL;
	pthread_mutex_unlock(&f->lock);
	vfs_fd_close(f->vfs, fd); /* a local process that has waited goes on */
	vfs_fd_close(f->vfs, pin);
	deleg_count(f->vfs->files, d, (uint64_t)-1);
	vfs_file_put(f);
	if (freed && cfg->deleg_ended)
		cfg->deleg_ended(cfg->deleg_ended_ctx);
}

int vfs_deleg_ask(struct vfs_file *f, const struct vfs_file_use *u)
{
	bool conflict;

	if (!f)
		return 0;
	pthread_mutex_lock(&f->lock);
	conflict = vfs_deleg_conflicts(f, u);
	if (conflict)
		vfs_deleg_recall(f, u);
	else if (u->use == VFS_USE_WRITE)
		vfs_lease_let_holder_write(f);
	pthread_mutex_unlock(&f->lock);
	return conflict ? -RN_EDELEG : 0;
}

int vfs_deleg_check_file(struct vfs_ctx *ctx, struct vfs_file *f, enum vfs_deleg_use use)
{
	const struct vfs_file_use u = { .client = ctx->client, .use = use };

	return vfs_deleg_ask(f, &u);
}

void vfs_deleg_recall_unguarded(struct vfs *vfs)
{
	const struct vfs_file_use u = { .use = VFS_USE_WRITE };
	struct vfs_file_sweep sweep;
	struct vfs_file *f;

	if (atomic_load(&vfs->files->delegs) == 0)
		return;
	vfs_file_sweep_begin(&sweep, vfs);
	while ((f = vfs_file_sweep_next(&sweep)) != NULL) {
		pthread_mutex_lock(&f->lock);
		if (f->lease_fd < 0)
			vfs_deleg_recall(f, &u);
		pthread_mutex_unlock(&f->lock);
		vfs_file_put(f);
	}
}

/* Sequentially consistent: see vfs/hold/file_change.h. */
bool vfs_deleg_any(struct vfs *vfs)
{
	return atomic_load(&vfs->files->delegs) != 0 || atomic_load(&vfs->files->reclaiming);
}

bool vfs_deleg_is_late(struct vfs_ctx *ctx, const struct vfs_node *n)
{
	const struct vfs_deleg *d;
	struct vfs_file *f;
	bool late = false;

	f = atomic_load(&ctx->vfs->files->delegs_late) ? vfs_file_find(n) : NULL;
	if (!f)
		return false;
	pthread_mutex_lock(&f->lock);
	LIST_FOREACH (d, &f->delegs.recalled, link)
		late |= d->client == ctx->client && d->late;
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
	return late;
}

void vfs_deleg_reclaiming(struct vfs *vfs, bool reclaiming)
{
	atomic_store(&vfs->files->reclaiming, reclaiming);
}

/* True if somebody has the file open to write. f may be NULL. */
static bool deleg_file_is_written(struct vfs_file *f)
{
	bool written;

	if (!f)
		return false;
	pthread_mutex_lock(&f->lock);
	written = f->accessing[1] > 0;
	pthread_mutex_unlock(&f->lock);
	return written;
}

int vfs_deleg_check_unknown(struct vfs *vfs, struct vfs_file *f)
{
	return atomic_load(&vfs->files->reclaiming) && !deleg_file_is_written(f) ? -RN_EDELEG : 0;
}

int vfs_deleg_check(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_deleg_use use)
{
	struct vfs_file *f;
	int rc;

	if (use != VFS_USE_READ ? !vfs_deleg_any(ctx->vfs)
				: atomic_load(&ctx->vfs->files->delegs_writing) == 0)
		return 0;
	f = n->type == S_IFREG ? vfs_file_find(n) : NULL;
	rc = vfs_deleg_check_file(ctx, f, use);
	vfs_file_put(f);
	return rc;
}

/* Under the file's lock. */
static struct vfs_deleg *deleg_find_writer(const struct vfs_deleg_list *list, const void *client)
{
	struct vfs_deleg *d;

	LIST_FOREACH (d, list, link) {
		if (d->type == VFS_DELEG_WRITE && d->client != client)
			break;
	}
	return d;
}

void vfs_deleg_writer(struct vfs_ctx *ctx, struct vfs_node *n,
		      void (*found)(void *arg, struct vfs_deleg *d), void *arg)
{
	struct vfs_deleg *d = NULL;
	struct vfs_file *f;

	if (n->type != S_IFREG || atomic_load(&ctx->vfs->files->delegs_writing) == 0)
		return;
	f = vfs_file_find(n);
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	/* While there is one to write there is no other, so the lists are short. */
	if (f->delegs.writing) {
		d = deleg_find_writer(&f->delegs.given, ctx->client);
		d = d ? d : deleg_find_writer(&f->delegs.recalled, ctx->client);
	}
	if (d)
		found(arg, d);
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
}
