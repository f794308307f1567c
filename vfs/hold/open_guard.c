/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/open_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "vfs/base/instance.h"
#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/lease.h"
#include "vfs/node/cache.h"

#define EVENTS 16u	 /* read at once: each has a descriptor */
#define PART_OPENERS 16u /* part of the budget of descriptors that waiting opens may have */

/* A local open that waits. */
struct vfs_opener {
	struct vfs_file *file; /* its guard keeps it: openers leave before the guard ends */
	int fd;		       /* of its event */
	uint64_t until_s;      /* by rn_now_coarse_seconds() */
	LIST_ENTRY(vfs_opener) file_link;
	TAILQ_ENTRY(vfs_opener) link;
};

struct vfs_guards *vfs_guards_new(void)
{
	struct vfs_guards *gs = calloc(1, sizeof(*gs));

	if (!gs)
		return NULL;
	pthread_mutex_init(&gs->lock, NULL);
	pthread_mutex_init(&gs->probing, NULL);
	TAILQ_INIT(&gs->openers);
	gs->group = gs->stop = -1;
	gs->self = getpid();
	return gs;
}

void vfs_guards_free(struct vfs_guards *gs)
{
	if (!gs)
		return;
	pthread_mutex_destroy(&gs->probing);
	pthread_mutex_destroy(&gs->lock);
	free(gs);
}

/* Answers an event, and closes its descriptor. */
static void guard_answer(const struct vfs_guards *gs, int fd, uint32_t response)
{
	const struct fanotify_response r = { .fd = fd, .response = response };

	/* The write fails if the waiting process has been killed meanwhile. */
	(void)!write(gs->group, &r, sizeof(r));
	close(fd);
}

/* Under gs->lock: the opener is on no list afterwards. */
static void guard_remove_opener(struct vfs_guards *gs, struct vfs_opener *o)
{
	TAILQ_REMOVE(&gs->openers, o, link);
	LIST_REMOVE(o, file_link);
	o->file->nopeners--;
	gs->nopeners--;
}

static void guard_allow_opener(struct vfs *vfs, struct vfs_opener *o)
{
	guard_answer(vfs->guards, o->fd, FAN_ALLOW);
	atomic_fetch_sub(&vfs->fds, 1);
	free(o);
}

/* Allows all opens of the file that wait. */
static void vfs_guards_allow(struct vfs_file *f)
{
	struct vfs_guards *gs = f->vfs->guards;
	struct vfs_opener *o;

	pthread_mutex_lock(&gs->lock);
	while ((o = LIST_FIRST(&f->openers)) != NULL) {
		guard_remove_opener(gs, o);
		guard_allow_opener(f->vfs, o);
	}
	pthread_mutex_unlock(&gs->lock);
}

/* Allows what has waited long enough. Milliseconds until the next one has; -1: there is none. */
static int allow_late(struct vfs *vfs)
{
	const uint64_t now = (uint64_t)rn_now_coarse_seconds();
	struct vfs_guards *gs = vfs->guards;
	struct vfs_opener *o;

	pthread_mutex_lock(&gs->lock);
	while ((o = TAILQ_FIRST(&gs->openers)) != NULL && o->until_s <= now) {
		guard_remove_opener(gs, o);
		guard_allow_opener(vfs, o);
	}
	pthread_mutex_unlock(&gs->lock);
	return o ? 1000 : -1;
}

/* The file of an event, with a reference; *out is NULL if nobody has a delegation of it. -errno: that
 * cannot be told. */
static int file_of(struct vfs *vfs, int fd, struct vfs_file **out)
{
	struct vfs_handle h = { .export_id = 0 };
	struct vfs_fh fh;
	struct stat st;
	uint64_t mnt_id;
	int rc;

	*out = NULL;
	if (fstat(fd, &st) != 0)
		return -errno;
	rc = vfs_handle_of(fd, "", &h, &mnt_id);
	if (rc == 0)
		rc = vfs_handle_encode(&h, NULL, &fh);
	if (rc == 0)
		*out = vfs_file_find_fh(vfs, vfs_device_number(st.st_dev), &fh);
	return rc;
}

/*
 * The answer for a file that cannot be told. Only files with guards are marked, so it is behind one,
 * or was when it was opened. To let it be opened would show data that the holder has changed, and
 * without a file there is nothing to recall or wait for. ENOMEM and EIO may pass, and the process may
 * try again. EOVERFLOW and EOPNOTSUPP (no handle, or a longer one than those of delegated files) mean
 * another way to the file, and EBADF a fault of this server: neither shows that the file is free.
 *
 * An open guard is counted before its mark is there. So with none the file's guard is gone; a new one fails
 * while this open waits.
 */
static uint32_t response_without_file(const struct vfs *vfs)
{
	return atomic_load(&vfs->files->guards) > 0 ? FAN_DENY : FAN_ALLOW;
}

/* Under gs->lock. A file may have as many waiting opens as it leaves places for others, so one file
 * alone has half of them. */
static bool has_place(const struct vfs_file *f)
{
	const uint32_t most = f->vfs->cfg.max_fds / PART_OPENERS, used = f->vfs->guards->nopeners;

	return used < most && f->nopeners < most - used;
}

/* Under f->lock, which is there while the file has an open guard. False: too many wait. */
static bool guard_enlist_opener(struct vfs_file *f, int fd)
{
	struct vfs_guards *gs = f->vfs->guards;
	struct vfs_opener *o = calloc(1, sizeof(*o));
	bool fits;

	if (!o)
		return false;
	o->file = f;
	o->fd = fd;
	o->until_s = (uint64_t)rn_now_coarse_seconds() + gs->patience_s;
	pthread_mutex_lock(&gs->lock);
	fits = has_place(f);
	if (fits) {
		TAILQ_INSERT_TAIL(&gs->openers, o, link);
		LIST_INSERT_HEAD(&f->openers, o, file_link);
		f->nopeners++;
		gs->nopeners++;
		atomic_fetch_add(&f->vfs->fds, 1);
	}
	pthread_mutex_unlock(&gs->lock);
	if (!fits)
		free(o);
	return fits;
}

/* The end of the delegation answers; it may have come when this returns. */
static void guard_wait_for_deleg_end(struct vfs_file *f, int fd)
{
	const struct vfs_guards *gs = f->vfs->guards;
	const struct vfs_file_use u = { .use = VFS_USE_WRITE, .within_s = gs->within_s };
	uint32_t response = FAN_ALLOW;

	pthread_mutex_lock(&f->lock);
	if (f->guarded && guard_enlist_opener(f, fd)) {
		vfs_deleg_recall(f, &u);
		pthread_mutex_unlock(&f->lock);
		return;
	}
	if (f->guarded)
		response = FAN_DENY;
	pthread_mutex_unlock(&f->lock);
	guard_answer(gs, fd, response);
}

static void guard_look_at_event(struct vfs *vfs, const struct fanotify_event_metadata *e)
{
	struct vfs_guards *gs = vfs->guards;
	struct vfs_file *f = NULL;
	int rc = 0;

	if (e->vers != FANOTIFY_METADATA_VERSION || e->fd < 0)
		return;
	if (e->pid != gs->self)
		rc = file_of(vfs, e->fd, &f);
	if (!f) {
		guard_answer(gs, e->fd, rc == 0 ? FAN_ALLOW : response_without_file(vfs));
		return;
	}
	/* The answer names the descriptor's number. The file behind it is closed here, since it would
	 * count as one that has the file open. */
	(void)dup3(gs->stop, e->fd, O_CLOEXEC);
	guard_wait_for_deleg_end(f, e->fd);
	vfs_file_put(f);
}

static void read_events(struct vfs *vfs)
{
	struct fanotify_event_metadata events[EVENTS];
	const struct fanotify_event_metadata *e = events;
	ssize_t len;

	pthread_mutex_lock(&vfs->guards->probing);
	len = read(vfs->guards->group, events, sizeof(events));
	pthread_mutex_unlock(&vfs->guards->probing);

	for (; len > 0 && FAN_EVENT_OK(e, len); e = FAN_EVENT_NEXT(e, len))
		guard_look_at_event(vfs, e);
}

static void *guard_thread_main(void *arg)
{
	struct vfs *vfs = arg;
	struct vfs_guards *gs = vfs->guards;
	struct pollfd fds[] = { { .fd = gs->stop, .events = POLLIN },
				{ .fd = gs->group, .events = POLLIN } };
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	while (!(fds[0].revents & POLLIN)) {
		if (poll(fds, 2, allow_late(vfs)) > 0 && fds[1].revents)
			read_events(vfs);
	}
	return NULL;
}

static void guards_close_fds(struct vfs_guards *gs)
{
	if (gs->group >= 0)
		close(gs->group); /* the kernel allows all that wait */
	if (gs->stop >= 0)
		close(gs->stop);
	gs->group = gs->stop = -1;
}

int vfs_guards_start(struct vfs *vfs, unsigned within_s, unsigned patience_s)
{
	struct vfs_guards *gs = vfs->guards;
	int rc;

	gs->within_s = within_s;
	gs->patience_s = patience_s;
	/* The files of events: opening them must not wait for the lease of a local process. */
	if (gs->group < 0) /* else it is that of the program before */
		gs->group = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK |
						  FAN_UNLIMITED_QUEUE | FAN_UNLIMITED_MARKS,
					  O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NONBLOCK);
	if (gs->group < 0)
		return 0;
	gs->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = gs->stop < 0 ? -errno : -pthread_create(&gs->thread, NULL, guard_thread_main, vfs);
	gs->runs = rc == 0;
	if (rc == 0)
		pthread_setname_np(gs->thread, "open-guard");
	else
		guards_close_fds(gs);
	return rc;
}

void vfs_guards_rest(struct vfs_guards *gs)
{
	if (!gs->runs)
		return;
	eventfd_write(gs->stop, 1);
	pthread_join(gs->thread, NULL);
	gs->runs = false;
}

void vfs_guards_stop(struct vfs *vfs)
{
	struct vfs_guards *gs = vfs->guards;
	struct vfs_opener *o;

	if (gs->group < 0)
		return;
	vfs_guards_rest(gs);
	pthread_mutex_lock(&gs->lock);
	while ((o = TAILQ_FIRST(&gs->openers)) != NULL) {
		guard_remove_opener(gs, o);
		guard_allow_opener(vfs, o);
	}
	pthread_mutex_unlock(&gs->lock);
	guards_close_fds(gs);
}

bool vfs_guard_possible(const struct vfs *vfs)
{
	return vfs->guards->group >= 0;
}

/* The kinds of data descriptors that are open, as bits. */
static unsigned open_kinds(const struct vfs_node *n)
{
	unsigned kinds = 0;

	for (unsigned i = 0; i < VFS_FD_KINDS; i++)
		kinds |= atomic_load(&n->data_fd[i]) >= 0 ? 1u << i : 0;
	return kinds;
}

/* One descriptor may stay: that of the holder's WRITEs, if it is there. */
static void close_others(struct vfs_node *n)
{
	const unsigned open = open_kinds(n), write = 1u << VFS_FD_WRITE;

	vfs_cache_close_data(n, open & write ? ~write : ~(1u << VFS_FD_READ));
}

void vfs_guard_probe_close(struct vfs *vfs, const struct vfs_guard_probe *p)
{
	if (!p->is_data_fd)
		vfs_fd_close(vfs, p->fd);
}

int vfs_guard_probe_open(struct vfs_node *n, struct vfs_guard_probe *out)
{
	unsigned open, kind = 0;
	int rc;

	close_others(n);
	open = open_kinds(n);
	if (open & (open - 1))
		return -RN_ENOTNOW;
	*out = (struct vfs_guard_probe){ .is_data_fd = open != 0 };
	while (open >> kind > 1)
		kind++;
	/* The node keeps it open while the caller has a reference. */
	out->fd = open ? atomic_load(&n->data_fd[kind])
		       : vfs_fd_reopen_data(n->vfs, n->path_fd, O_RDONLY);
	if (out->fd < 0)
		return out->fd == -RN_ELEASE ? -RN_ENOTNOW : out->fd;
	rc = vfs_leases_own(n->vfs->leases, out->fd);
	if (rc != 0)
		vfs_guard_probe_close(n->vfs, out);
	return rc;
}

static int guard_mark(const struct vfs_file *f, unsigned how)
{
	return fanotify_mark(f->vfs->guards->group, how, FAN_OPEN_PERM, AT_FDCWD,
			     vfs_proc_path(f->lease_fd).s);
}

/* F_WRLCK: true if nobody else has the file open or mapped, at this moment. F_RDLCK: if nobody has it open to write.
 * There is no lease by fd then. */
static bool guard_is_alone(const struct vfs_file *f, int fd, int type)
{
	struct vfs_guards *gs = f->vfs->guards;

	pthread_mutex_lock(&gs->probing);
	const bool alone = fcntl(fd, F_SETLEASE, type) == 0;
	const int error = errno;

	if (alone)
		(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	pthread_mutex_unlock(&gs->probing);
	errno = error;
	return alone;
}

static void guard_count(struct vfs_file *f, uint32_t by)
{
	atomic_fetch_add(vfs_guarded_slot(f->vfs, f->key, f->key_len), by);
	atomic_fetch_add(&f->vfs->files->guards, (uint64_t)(int32_t)by);
	f->guarded = by == 1;
}

/* Takes the guard if the lease of that type could be had by fd. */
static int guard_take_lease_type(struct vfs_file *f, int fd, int type)
{
	int rc;

	guard_count(f, 1);
	if (guard_mark(f, FAN_MARK_ADD) != 0) {
		rc = errno == ENOSPC || errno == ENOMEM ? -RN_ENOTNOW : -EOPNOTSUPP;
		guard_count(f, (uint32_t)-1);
		return rc;
	}
	if ((type == F_WRLCK || fcntl(fd, F_GETLEASE) == type) && guard_is_alone(f, fd, type))
		return 0;
	rc = errno == EINVAL || errno == EACCES ? -EOPNOTSUPP : -RN_ENOTNOW;
	vfs_guard_drop(f);
	return rc;
}

void vfs_guard_load(struct vfs_file *f)
{
	guard_count(f, 1);
}

int vfs_guard_take(struct vfs_file *f, int probe)
{
	return guard_take_lease_type(f, probe, F_WRLCK);
}

bool vfs_guard_replace_lease(struct vfs_file *f)
{
	return vfs_guard_possible(f->vfs) && guard_take_lease_type(f, f->lease_fd, F_RDLCK) == 0;
}

void vfs_guard_drop(struct vfs_file *f)
{
	(void)guard_mark(f, FAN_MARK_REMOVE);
	guard_count(f, (uint32_t)-1);
	vfs_guards_allow(f);
}
