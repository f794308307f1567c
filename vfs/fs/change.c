/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table is a cache of four entries a bucket; the one with the oldest ctime makes room. An entry
 * is needed until its ctime has settled, for a few milliseconds: it would take five inodes of one
 * bucket that change within these to lose one. What is lost then is known by its ctime, and nothing
 * is believed to be counted that may have been lost.
 */
#include "vfs/fs/change.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/clock.h"
#include "vfs/fs/file_system.h"

#define BUCKETS 16384u
#define WAYS 4u
#define LOCKS 64u
#define SECOND 1000000000
/* Longer than any tick (10 ms with the slowest kernel); and where times are whole seconds. */
#define FRESH_NS (20 * 1000 * 1000)
#define FRESH_SECONDS_NS (SECOND + FRESH_NS)

struct entry {
	uint64_t dev, ino;
	int64_t ctime;
	uint64_t others; /* vfs_look.others at the first look; 0: unknown, or more since */
	uint64_t by;	 /* caller that made all changes counted in n; NOBODY: none, 0: several */
	uint32_t n;	 /* 0: a free entry */
	bool uncounted;	 /* changes at this ctime may have been counted in an entry that is lost */
	bool stays;	 /* n has told all states apart */
	bool settled;	 /* a look has found the ctime too old for further changes */
};

#define NOBODY UINT64_MAX

struct bucket {
	struct entry entry[WAYS];
	int64_t lost; /* latest ctime of an entry that had to make room */
};

struct vfs_changes {
	int64_t born; /* no state with a later ctime was looked at before */
	bool shared;
	pthread_mutex_t lock[LOCKS];
	struct bucket bucket[BUCKETS];
};

struct vfs_changes *vfs_changes_new(bool shared)
{
	struct vfs_changes *t = calloc(1, sizeof(*t));

	if (t) {
		t->born = (int64_t)rn_wall_coarse_ns();
		t->shared = shared;
	}
	for (unsigned i = 0; t && i < LOCKS; i++)
		pthread_mutex_init(&t->lock[i], NULL);
	return t;
}

void vfs_changes_free(struct vfs_changes *t)
{
	for (unsigned i = 0; t && i < LOCKS; i++)
		pthread_mutex_destroy(&t->lock[i]);
	free(t);
}

int64_t vfs_change_clock(const struct vfs_changes *t)
{
	if (!t)
		return 0;
	return (int64_t)rn_wall_coarse_ns() - (t->shared ? VFS_CLOCKS_APART : 0);
}

static unsigned change_bucket_of(uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino ^ dev << 32 ^ dev) * 0x9e3779b97f4a7c15u;

	return (unsigned)(h >> 50) % BUCKETS;
}

/* The entry of an inode, or NULL. */
static struct entry *change_find_entry(struct entry *e, uint64_t dev, uint64_t ino)
{
	for (unsigned i = 0; i < WAYS; i++) {
		if (e[i].n && e[i].ino == ino && e[i].dev == dev)
			return &e[i];
	}
	return NULL;
}

static struct entry *change_make_room(struct bucket *b)
{
	struct entry *oldest = b->entry;

	for (unsigned i = 0; i < WAYS; i++) {
		struct entry *e = &b->entry[i];

		if (e->n == 0)
			return e;
		if (e->ctime < oldest->ctime)
			oldest = e;
	}
	if (oldest->ctime > b->lost)
		b->lost = oldest->ctime;
	return oldest;
}

static bool change_is_fresh(int64_t ctime, int64_t clock)
{
	return clock - ctime < (ctime % SECOND ? FRESH_NS : FRESH_SECONDS_NS);
}

/* Under the bucket's lock: the number of a state whose ctime no further change can get. */
static uint32_t number_of_old(struct entry *e, const struct entry *now, const struct vfs_look *look)
{
	const uint32_t settled = look->unfinished ? VFS_CHANGE_SETTLED - 1 : VFS_CHANGE_SETTLED;

	if (!e || e->ctime != now->ctime)
		return settled;
	if (!(look->counted || e->stays) || e->uncounted)
		e->settled = true;
	return e->settled ? settled : e->n;
}

static void change_next(struct entry *e)
{
	if (e->n < VFS_CHANGE_SETTLED - 2)
		e->n++;
}

/* Under the bucket's lock. */
static uint32_t change_number_of(struct vfs_changes *t, struct bucket *b, const struct entry *now,
				 const struct vfs_look *look)
{
	struct entry *e = change_find_entry(b->entry, now->dev, now->ino);

	if (!change_is_fresh(now->ctime, look->clock))
		return number_of_old(e, now, look);
	if (e && e->ctime == now->ctime) {
		if (look->others && e->others != look->others)
			e->others = 0;
		if (t->shared)
			change_next(e);
		return e->n;
	}
	if (!e)
		e = change_make_room(b);
	*e = *now;
	e->uncounted = now->ctime <= b->lost;
	return e->n;
}

static int64_t change_statx_ns(const struct statx_timestamp *t)
{
	return t->tv_sec * SECOND + t->tv_nsec;
}

uint64_t vfs_change_of(struct vfs_changes *t, const struct statx *sx, const struct vfs_look *look)
{
	struct entry now = { .dev = vfs_device_of(sx),
			     .ino = sx->stx_ino,
			     .ctime = change_statx_ns(&sx->stx_ctime),
			     .others = look->others,
			     .by = NOBODY,
			     .n = 1 };
	unsigned b = change_bucket_of(now.dev, now.ino);
	uint32_t n;

	if (!t)
		return (uint64_t)now.ctime - look->unfinished;
	pthread_mutex_lock(&t->lock[b % LOCKS]);
	n = change_number_of(t, &t->bucket[b], &now, look);
	pthread_mutex_unlock(&t->lock[b % LOCKS]);
	return (uint64_t)now.ctime + n;
}

void vfs_change_made(struct vfs_changes *t, uint64_t dev, uint64_t ino, uint64_t by)
{
	unsigned b = change_bucket_of(dev, ino);
	struct entry *e;

	if (!t)
		return;
	/* One that is not there was not looked at since its ctime was fresh: there is nothing to
	 * tell it apart from. */
	pthread_mutex_lock(&t->lock[b % LOCKS]);
	e = change_find_entry(t->bucket[b].entry, dev, ino);
	if (e)
		change_next(e);
	if (e)
		e->by = e->by == NOBODY || e->by == by ? by : 0;
	pthread_mutex_unlock(&t->lock[b % LOCKS]);
}

uint64_t vfs_change_asks(struct vfs_changes *t, uint64_t dev, uint64_t ino)
{
	const int64_t clock = vfs_change_clock(t);
	unsigned b = change_bucket_of(dev, ino);
	const struct entry *e;
	uint64_t others = 0;

	if (!t)
		return 0;
	pthread_mutex_lock(&t->lock[b % LOCKS]);
	e = change_find_entry(t->bucket[b].entry, dev, ino);
	if (e && !change_is_fresh(e->ctime, clock) && !e->settled && !e->stays && !e->uncounted)
		others = e->others;
	pthread_mutex_unlock(&t->lock[b % LOCKS]);
	return others;
}

void vfs_change_stays(struct vfs_changes *t, uint64_t dev, uint64_t ino, uint64_t others)
{
	unsigned b = change_bucket_of(dev, ino);
	struct entry *e;

	pthread_mutex_lock(&t->lock[b % LOCKS]);
	e = change_find_entry(t->bucket[b].entry, dev, ino);
	if (e && !change_is_fresh(e->ctime, vfs_change_clock(t)) && !e->settled &&
	    e->others == others)
		e->stays = true;
	pthread_mutex_unlock(&t->lock[b % LOCKS]);
}

/* Under the bucket's lock: an old ctime has one value for each state, or the value that it settles
 * to. */
static bool is_exact(struct bucket *b, const struct entry *now)
{
	const struct entry *e = change_find_entry(b->entry, now->dev, now->ino);

	if (!e || e->ctime < now->ctime)
		return now->ctime > b->lost;
	if (e->ctime != now->ctime || e->uncounted)
		return false;
	return e->settled || e->stays || (e->others != 0 && e->others == now->others);
}

bool vfs_change_is_exact(struct vfs_changes *t, uint64_t dev, uint64_t ino,
			 const struct timespec *ctime, uint64_t others)
{
	const struct entry now = { .dev = dev,
				   .ino = ino,
				   .ctime = ctime->tv_sec * SECOND + ctime->tv_nsec,
				   .others = others };
	unsigned b = change_bucket_of(dev, ino);
	bool exact;

	if (!t)
		return true;
	pthread_mutex_lock(&t->lock[b % LOCKS]);
	exact = is_exact(&t->bucket[b], &now);
	pthread_mutex_unlock(&t->lock[b % LOCKS]);
	return exact;
}

/* Under the bucket's lock. A look at a fresh ctime leaves an entry, and an old ctime has one state. */
static bool change_entry_tells(const struct vfs_changes *t, struct bucket *b,
			       const struct entry *now)
{
	const struct entry *e = change_find_entry(b->entry, now->dev, now->ino);

	if (!e || e->ctime < now->ctime)
		return now->ctime > b->lost && now->ctime > t->born;
	if (e->ctime != now->ctime || e->uncounted ||
	    (e->settled && (e->others == 0 || e->others != now->others)))
		return false;
	return e->by == NOBODY || (e->by == now->by && e->by != 0);
}

bool vfs_change_ctime_tells(struct vfs_changes *t, uint64_t dev, uint64_t ino,
			    const struct timespec *ctime, uint64_t who, uint64_t others)
{
	const struct entry now = { .dev = dev,
				   .ino = ino,
				   .ctime = ctime->tv_sec * SECOND + ctime->tv_nsec,
				   .others = others,
				   .by = who };
	unsigned b = change_bucket_of(dev, ino);
	bool yes;

	if (!t)
		return true;
	pthread_mutex_lock(&t->lock[b % LOCKS]);
	yes = change_entry_tells(t, &t->bucket[b], &now);
	pthread_mutex_unlock(&t->lock[b % LOCKS]);
	return yes;
}
