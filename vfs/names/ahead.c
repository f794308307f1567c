/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/names/ahead.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "vfs/names/name.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

#define HELPERS_MAX 3u
#define PIECES_OF(helpers) (2 * ((helpers) + 1)) /* a listing has two at a time */
#define PIECES_MAX PIECES_OF(HELPERS_MAX)
#define NAMES_MAX (VFS_AHEAD_BYTES / 24) /* the shortest entry of getdents64 has 24 bytes */

/* A slot belongs to whoever has changed it from FREE to TAKEN. DONE: a helper's look is in it.
 * OWN: helpers leave it to the worker. */
enum slot_state { FREE, TAKEN, DONE, OWN };

struct slot {
	_Atomic enum slot_state state;
	uint32_t at; /* offset of the entry in the buffer */
	struct vfs_shown shown;
};

struct vfs_ahead_piece {
	struct vfs_ahead_piece *next; /* in the list of free ones */
	struct vfs_node *dir;	      /* one reference while the piece is in use */
	struct vfs_cred cred;	      /* the caller's */
	unsigned users;		      /* worker and helpers; guarded by vfs_ahead.lock */
	_Atomic bool over;	      /* the worker has given it back */
	unsigned n;		      /* slots in use */
	_Atomic unsigned back;	      /* slots taken from the end */
	_Alignas(struct dirent64) char buf[VFS_AHEAD_BYTES];
	struct slot slot[NAMES_MAX];
};

struct vfs_ahead {
	pthread_mutex_t lock;
	pthread_cond_t offered;
	struct vfs_ahead_piece *open[PIECES_MAX]; /* those that helpers may join */
	struct vfs_ahead_piece *free;
	struct rn_budget *budget; /* NULL: pieces are not counted */
	unsigned npieces;	  /* pieces that were made */
	unsigned helpers, nthreads;
	bool stop;
	pthread_t thread[HELPERS_MAX];
};

struct vfs_ahead *vfs_ahead_new(unsigned helpers, struct rn_budget *budget)
{
	struct vfs_ahead *a = helpers > 0 ? calloc(1, sizeof(*a)) : NULL;

	if (!a)
		return NULL;
	a->helpers = helpers < HELPERS_MAX ? helpers : HELPERS_MAX;
	a->budget = budget;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->offered, NULL);
	return a;
}

void vfs_ahead_free(struct vfs_ahead *a)
{
	struct vfs_ahead_piece *p;

	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->offered);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < a->nthreads; i++)
		pthread_join(a->thread[i], NULL);
	while ((p = a->free) != NULL) {
		a->free = p->next;
		free(p);
		if (a->budget)
			rn_budget_give(a->budget, sizeof(*p));
	}
	pthread_cond_destroy(&a->offered);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* Drops one use of the piece. The last one frees it for the next listing. */
static void ahead_leave_piece(struct vfs_ahead *a, struct vfs_ahead_piece *p)
{
	struct vfs_node *dir = NULL;

	pthread_mutex_lock(&a->lock);
	if (--p->users == 0) {
		dir = p->dir;
		p->dir = NULL;
		p->next = a->free;
		a->free = p;
	}
	pthread_mutex_unlock(&a->lock);
	vfs_node_put(dir);
}

static const struct dirent64 *entry_of(const struct vfs_ahead_piece *p, const struct slot *s)
{
	return (const struct dirent64 *)(p->buf + s->at);
}

static bool ahead_take_slot(struct slot *s)
{
	enum slot_state expected = FREE;

	return atomic_compare_exchange_strong(&s->state, &expected, TAKEN);
}

static void ahead_stat_slot(const struct vfs_ahead_piece *p, struct slot *s)
{
	s->shown.clock = (int64_t)rn_wall_coarse_ns();
	if (vfs_statx_name(p->dir->path_fd, entry_of(p, s)->d_name, &s->shown.sx) == 0)
		atomic_store_explicit(&s->state, DONE, memory_order_release);
}

/* Looks at names from the end until it meets the worker. */
static void ahead_help(struct vfs_ahead_piece *p, struct vfs_identity *identity)
{
	unsigned back;

	if (vfs_identity_become(identity, &p->cred) != 0)
		return;
	while (!atomic_load_explicit(&p->over, memory_order_relaxed) &&
	       (back = atomic_fetch_add(&p->back, 1)) < p->n) {
		struct slot *s = &p->slot[p->n - 1 - back];

		if (ahead_take_slot(s))
			ahead_stat_slot(p, s);
		else if (atomic_load_explicit(&s->state, memory_order_relaxed) == TAKEN)
			break;
	}
}

/* Under the lock: a piece to join, which is closed to others when its helpers are enough. */
static struct vfs_ahead_piece *ahead_join_piece(struct vfs_ahead *a)
{
	for (unsigned i = 0; i < PIECES_MAX; i++) {
		struct vfs_ahead_piece *p = a->open[i];

		if (!p)
			continue;
		p->users++;
		if (p->users > a->helpers)
			a->open[i] = NULL;
		return p;
	}
	return NULL;
}

/* Under the lock: no further helper joins the piece. */
static void close_piece(struct vfs_ahead *a, const struct vfs_ahead_piece *p)
{
	for (unsigned i = 0; i < PIECES_MAX; i++) {
		if (a->open[i] == p)
			a->open[i] = NULL;
	}
}

static void *helper_main(void *arg)
{
	struct vfs_identity identity = { 0 };
	struct vfs_ahead *a = arg;
	struct vfs_ahead_piece *p;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		p = ahead_join_piece(a);
		if (!p) {
			pthread_cond_wait(&a->offered, &a->lock);
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		ahead_help(p, &identity);
		vfs_identity_root(&identity); /* a node may be closed */
		pthread_mutex_lock(&a->lock);
		close_piece(a, p); /* nothing is left in it */
		pthread_mutex_unlock(&a->lock);
		ahead_leave_piece(a, p);
		pthread_mutex_lock(&a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* Under the lock. */
static void ahead_start_threads(struct vfs_ahead *a)
{
	while (a->nthreads < a->helpers) {
		if (pthread_create(&a->thread[a->nthreads], NULL, helper_main, a) != 0) {
			a->helpers = a->nthreads;
			return;
		}
		pthread_setname_np(a->thread[a->nthreads++], "ahead");
	}
}

/* Under the lock: a free piece, or a new one. */
static struct vfs_ahead_piece *find_piece(struct vfs_ahead *a)
{
	struct vfs_ahead_piece *p = a->free;

	if (p) {
		a->free = p->next;
		return p;
	}
	if (a->npieces == PIECES_OF(a->helpers) ||
	    (a->budget && !rn_budget_take(a->budget, sizeof(*p))))
		return NULL;
	p = malloc(sizeof(*p));
	if (p)
		a->npieces++;
	else if (a->budget)
		rn_budget_give(a->budget, sizeof(*p));
	return p;
}

struct vfs_ahead_piece *vfs_ahead_take(struct vfs_ahead *a, const struct vfs_ctx *ctx,
				       struct vfs_node *dir)
{
	struct vfs_ahead_piece *p;

	if (!a)
		return NULL;
	pthread_mutex_lock(&a->lock);
	ahead_start_threads(a);
	p = a->helpers > 0 ? find_piece(a) : NULL;
	pthread_mutex_unlock(&a->lock);
	if (!p)
		return NULL;
	vfs_node_ref(dir);
	p->dir = dir;
	p->cred = ctx->cred;
	p->users = 1;
	p->n = 0;
	atomic_store(&p->over, false);
	atomic_store(&p->back, 0);
	return p;
}

char *vfs_ahead_buffer(struct vfs_ahead_piece *p)
{
	return p->buf;
}

/* "." and ".." are looked up in another way. */
static void fill_slots(struct vfs_ahead_piece *p, long bytes, unsigned n)
{
	uint32_t at = 0;

	while (p->n < n && p->n < NAMES_MAX && at < bytes) {
		struct slot *s = &p->slot[p->n++];
		const struct dirent64 *d = (const struct dirent64 *)(p->buf + at);

		s->at = at;
		atomic_store_explicit(&s->state, vfs_name_is_dots(d->d_name) ? OWN : FREE,
				      memory_order_relaxed);
		at += d->d_reclen;
	}
}

void vfs_ahead_offer(struct vfs_ahead *a, struct vfs_ahead_piece *p, long bytes, unsigned n)
{
	if (n < VFS_AHEAD_NAMES)
		return;
	fill_slots(p, bytes, n);
	if (p->n < VFS_AHEAD_NAMES)
		return;
	pthread_mutex_lock(&a->lock);
	for (unsigned i = 0; i < PIECES_MAX; i++) {
		if (!a->open[i]) {
			a->open[i] = p;
			break;
		}
	}
	pthread_cond_broadcast(&a->offered);
	pthread_mutex_unlock(&a->lock);
}

const struct vfs_shown *vfs_ahead_shown(struct vfs_ahead_piece *p, unsigned i)
{
	struct slot *s;

	if (i >= p->n)
		return NULL;
	s = &p->slot[i];
	if (ahead_take_slot(s))
		return NULL;
	return atomic_load_explicit(&s->state, memory_order_acquire) == DONE ? &s->shown : NULL;
}

void vfs_ahead_give(struct vfs_ahead *a, struct vfs_ahead_piece *p)
{
	atomic_store_explicit(&p->over, true, memory_order_relaxed);
	pthread_mutex_lock(&a->lock);
	close_piece(a, p);
	pthread_mutex_unlock(&a->lock);
	ahead_leave_piece(a, p);
}
