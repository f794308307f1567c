/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/meta/dir_change.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/meta/attr.h"
#include "vfs/vfs_worker.h"

#define SLOTS 8192u
/* A slot: changes that have begun so far, and how many of them are under way. */
#define BEGUN ((uint64_t)1 << 16)
#define UNDER_WAY (BEGUN - 1)

struct vfs_dir_changes {
	_Atomic uint64_t slot[SLOTS];
};

struct vfs_dir_changes *vfs_dir_changes_new(void)
{
	return calloc(1, sizeof(struct vfs_dir_changes));
}

void vfs_dir_changes_free(struct vfs_dir_changes *t)
{
	free(t);
}

static _Atomic uint64_t *dir_change_slot_of(struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino ^ dev << 32 ^ dev) * 0x9e3779b97f4a7c15u;

	return &vfs->dir_changes->slot[(h >> 40) % SLOTS];
}

_Atomic uint64_t *vfs_dir_count_begin(struct vfs *vfs, uint64_t dev, uint64_t ino)
{
	_Atomic uint64_t *slot = dir_change_slot_of(vfs, dev, ino);

	atomic_fetch_add(slot, BEGUN + 1);
	return slot;
}

void vfs_dir_count_end(_Atomic uint64_t *slot)
{
	atomic_fetch_sub(slot, 1);
}

static struct vfs_dir_events events_of(const struct vfs_dir_changing *c)
{
	return vfs_dir_events(c->dir->mnt->watch, &c->dir->fh);
}

/* vfs_look.others */
static uint64_t others_of(const struct vfs_dir_changing *c)
{
	return c->watched ? events_of(c).others + 1 : 0;
}

static bool dir_change_watch(struct vfs_node *dir)
{
	struct vfs_dir_watch *w = dir->mnt->watch;

	if (!w || dir->type != S_IFDIR)
		return false;
	if (!atomic_load(&dir->watched) && vfs_dir_watch_mark(w, dir->path_fd, &dir->fh))
		atomic_store(&dir->watched, true);
	return atomic_load(&dir->watched);
}

/* Reads the events of all changes that were visible when this is called. name: of any entry of the
 * directory. */
static bool catch_up(const struct vfs_node *dir, const char *name)
{
	if (!vfs_dir_lock_passed(dir->path_fd, name))
		return false;
	vfs_dir_watch_read(dir->mnt->watch);
	return true;
}

/* A client that has made the last change may have the value from when the ctime was fresh. It stays
 * as it is, if no process has made a further change with that ctime. others: the result of
 * vfs_change_asks. */
static void dir_change_keep_value(const struct vfs_node *dir, const char *name, uint64_t others)
{
	if (others != 0 && catch_up(dir, name) &&
	    vfs_dir_events(dir->mnt->watch, &dir->fh).others + 1 == others)
		vfs_change_stays(dir->mnt->dir_changes, dir->dev, dir->ino, others);
}

void vfs_dir_keep_change(struct vfs_ctx *ctx, struct vfs_node *n)
{
	uint64_t others;

	if (n->type != S_IFDIR || !atomic_load(&n->watched) || atomic_load(&n->exp->nfs_only))
		return;
	others = vfs_change_asks(n->mnt->dir_changes, n->dev, n->ino);
	if (others != 0)
		rn_fiber_move(ctx->fiber);
	dir_change_keep_value(n, "a name", others);
}

/* clock: vfs_change_clock(), before the look. */
static bool dir_change_look(const struct vfs_dir_changing *c, int64_t clock, struct vfs_attr *out)
{
	const struct vfs_mount *mnt = c->dir->mnt;
	const struct vfs_look look = { .clock = clock,
				       .counted = c->promised,
				       .others = others_of(c) };
	struct statx sx;

	if (vfs_node_stat(c->dir, &sx) != 0)
		return false;
	vfs_attr_from_look(mnt, &c->dir->fh, &sx, &look, out);
	return true;
}

/* Judges if the state before, as a client remembers it, can have been another one with the same ctime. */
static void judge_before(struct vfs_dir_changing *c)
{
	const struct vfs_node *dir = c->dir;
	struct vfs_changes *t = dir->mnt->dir_changes;
	const struct timespec *ctime = &c->out->before.ctime;
	const uint64_t others = others_of(c);

	c->exact = c->promised || vfs_change_is_exact(t, dir->dev, dir->ino, ctime, others);
	c->out->ctime_tells =
		vfs_change_ctime_tells(t, dir->dev, dir->ino, ctime, c->ctx->caller, others);
}

void vfs_dir_change_begin(struct vfs_dir_changing *c, struct vfs_ctx *ctx, struct vfs_node *dir,
			  const char *name, struct vfs_dir_change *out)
{
	/* Read before vfs_change_asks() reads it: a ctime that is fresh for that is fresh for the look, however long this thread waits for a
	 * processor in between. Otherwise a value that should have stayed would settle. */
	const int64_t clock = vfs_change_clock(dir->mnt->dir_changes);
	uint64_t before;

	*c = (struct vfs_dir_changing){ .ctx = ctx, .dir = dir, .name = name, .out = out };
	c->slot = dir_change_slot_of(ctx->vfs, dir->dev, dir->ino);
	before = atomic_fetch_add(c->slot, BEGUN + 1);
	c->number = before / BEGUN + 1;
	c->alone = (before & UNDER_WAY) == 0;
	if (!out)
		return;
	out->known = false;
	c->promised = atomic_load(&dir->exp->nfs_only);
	c->watched = !c->promised && dir_change_watch(dir);
	if (c->watched) {
		dir_change_keep_value(dir, name,
				      vfs_change_asks(dir->mnt->dir_changes, dir->dev, dir->ino));
		c->events = events_of(c);
	}
	c->looked = dir_change_look(c, clock, &out->before);
	if (c->looked)
		judge_before(c);
}

/* True if no other change through us was under way at any time since this one began. */
static bool still_alone(const struct vfs_dir_changing *c)
{
	return c->alone && atomic_load(c->slot) / BEGUN == c->number;
}

/* True if no process has changed the directory since before the first look. */
static bool nobody_else(const struct vfs_dir_changing *c)
{
	struct vfs_dir_events now;

	if (c->promised)
		return true;
	if (!c->watched || !c->exact || !catch_up(c->dir, c->name))
		return false;
	now = events_of(c);
	if (now.ours == c->events.ours) {
		atomic_store(&c->dir->watched, false); /* the mark is gone */
		return false;
	}
	return now.others == c->events.others;
}

void vfs_dir_change_end(struct vfs_dir_changing *c, bool made)
{
	struct vfs_dir_change *out = c->out;
	struct vfs_node *dir = c->dir;

	if (made)
		vfs_change_made(dir->mnt->dir_changes, dir->dev, dir->ino, c->ctx->caller);
	if (made && out && c->looked) {
		out->known =
			dir_change_look(c, vfs_change_clock(dir->mnt->dir_changes), &out->after);
		out->atomic = out->known && still_alone(c) && nobody_else(c);
	}
	vfs_dir_count_end(c->slot);
}
