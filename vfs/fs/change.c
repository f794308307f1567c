/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table is a cache of four entries a bucket; the one with the oldest ctime makes room. An entry
 * is needed until its ctime has settled, for a few milliseconds: it would take five inodes of one
 * bucket that change within these to lose one.
 */
#include "vfs/fs/change.h"

#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>

#include "lib/clock.h"
#include "vfs/fs/device.h"

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
	uint32_t n; /* 0: a free entry */
};

struct vfs_changes {
	pthread_mutex_t lock[LOCKS];
	struct entry entry[BUCKETS][WAYS];
};

struct vfs_changes *vfs_changes_new(void)
{
	struct vfs_changes *t = calloc(1, sizeof(*t));

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

static bool kernel_is_fine(void)
{
	struct utsname u;
	unsigned major, minor;

	if (uname(&u) != 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 6 || (major == 6 && minor >= 13);
}

bool vfs_change_is_coarse(int fd)
{
	struct statfs fs;
	struct stat st;

	if (!kernel_is_fine() || fstatfs(fd, &fs) != 0 || fstat(fd, &st) != 0)
		return true;
	switch (fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		/* An ext4 with small inodes has whole seconds. */
		return st.st_ctim.tv_nsec == 0;
	default:
		return true;
	}
}

int64_t vfs_change_clock(const struct vfs_changes *t)
{
	return t ? (int64_t)rn_wall_coarse_ns() : 0;
}

static unsigned bucket_of(uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino ^ dev << 32 ^ dev) * 0x9e3779b97f4a7c15u;

	return (unsigned)(h >> 50) % BUCKETS;
}

/* The entry of an inode, or NULL. */
static struct entry *find(struct entry *e, uint64_t dev, uint64_t ino)
{
	for (unsigned i = 0; i < WAYS; i++) {
		if (e[i].n && e[i].ino == ino && e[i].dev == dev)
			return &e[i];
	}
	return NULL;
}

static struct entry *make_room(struct entry *e)
{
	struct entry *oldest = e;

	for (unsigned i = 0; i < WAYS; i++) {
		if (e[i].n == 0)
			return &e[i];
		if (e[i].ctime < oldest->ctime)
			oldest = &e[i];
	}
	return oldest;
}

static bool is_fresh(int64_t ctime, int64_t clock)
{
	return clock - ctime < (ctime % SECOND ? FRESH_NS : FRESH_SECONDS_NS);
}

/* Under the bucket's lock. */
static uint32_t number_of(struct entry *bucket, const struct entry *now, int64_t clock)
{
	struct entry *e = find(bucket, now->dev, now->ino);

	if (!is_fresh(now->ctime, clock)) {
		if (e)
			e->n = 0;
		return VFS_CHANGE_SETTLED;
	}
	if (e && e->ctime == now->ctime)
		return e->n;
	if (!e)
		e = make_room(bucket);
	*e = *now;
	return e->n;
}

uint64_t vfs_change_of(struct vfs_changes *t, const struct statx *sx, int64_t clock)
{
	int64_t ctime = sx->stx_ctime.tv_sec * SECOND + sx->stx_ctime.tv_nsec;
	struct entry now = { .dev = vfs_device_of(sx), .ino = sx->stx_ino, .ctime = ctime, .n = 1 };
	unsigned b = bucket_of(now.dev, now.ino);
	uint32_t n;

	if (!t)
		return (uint64_t)ctime;
	pthread_mutex_lock(&t->lock[b % LOCKS]);
	n = number_of(t->entry[b], &now, clock);
	pthread_mutex_unlock(&t->lock[b % LOCKS]);
	return (uint64_t)ctime + n;
}

void vfs_change_made(struct vfs_changes *t, uint64_t dev, uint64_t ino)
{
	unsigned b = bucket_of(dev, ino);
	struct entry *e;

	if (!t)
		return;
	/* One that is not there was not looked at since its ctime was fresh: there is nothing to
	 * tell it apart from. */
	pthread_mutex_lock(&t->lock[b % LOCKS]);
	e = find(t->entry[b], dev, ino);
	if (e && e->n < VFS_CHANGE_SETTLED - 1)
		e->n++;
	pthread_mutex_unlock(&t->lock[b % LOCKS]);
}
