/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/log.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/file.h"
#include "vfs/hold/open_guard.h"
#include "vfs/node/cache.h"
#include "vfs/worker/worker_state.h"

/* A sweep meets each file once that is in the table all the time. */
struct vfs_lease_sweep {
	struct vfs_lease_table *table;
	const struct vfs_watch_event
		*event; /* only its files, which are in one bucket; NULL: all */
	unsigned bucket;
};

static void vfs_lease_table_init(struct vfs_lease_table *t)
{
	pthread_mutex_init(&t->lock, NULL);
}

static void vfs_lease_table_fini(struct vfs_lease_table *t)
{
	pthread_mutex_destroy(&t->lock);
}

static struct vfs_lease_list *lease_bucket_of(struct vfs_lease_table *t, int fd)
{
	return &t->by_fd[(unsigned)fd % VFS_LEASE_BUCKETS];
}

static unsigned bucket_of_file(const uint8_t *key, uint32_t len)
{
	return (unsigned)(vfs_handle_part_hash(key, len) % VFS_LEASE_BUCKETS);
}

/* Under f->lock, while f->lease_fd is set. */
static void vfs_lease_table_add(struct vfs_lease_table *t, struct vfs_file *f)
{
	pthread_mutex_lock(&t->lock);
	f->lease_sweep = t->sweep;
	LIST_INSERT_HEAD(lease_bucket_of(t, f->lease_fd), f, lease_link);
	LIST_INSERT_HEAD(&t->by_file[bucket_of_file(f->key, f->key_len)], f, watch_link);
	pthread_mutex_unlock(&t->lock);
}

static void vfs_lease_table_remove(struct vfs_lease_table *t, struct vfs_file *f)
{
	pthread_mutex_lock(&t->lock);
	LIST_REMOVE(f, lease_link);
	LIST_REMOVE(f, watch_link);
	pthread_mutex_unlock(&t->lock);
}

/* Finds the file whose lease has that descriptor, with a reference; NULL: none. */
static struct vfs_file *vfs_lease_table_find(struct vfs_lease_table *t, int fd)
{
	struct vfs_file *f;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (f, lease_bucket_of(t, fd), lease_link) {
		if (f->lease_fd == fd)
			break;
	}
	if (f)
		vfs_file_ref(f);
	pthread_mutex_unlock(&t->lock);
	return f;
}

static void vfs_lease_sweep_begin(struct vfs_lease_sweep *s, struct vfs_lease_table *t,
				  const struct vfs_watch_event *event)
{
	*s = (struct vfs_lease_sweep){ .table = t, .event = event };
	if (event)
		s->bucket = bucket_of_file(event->part, event->len);
	pthread_mutex_lock(&t->lock);
	t->sweep++;
	pthread_mutex_unlock(&t->lock);
}

/* Files of several file systems may have the same handle. */
static bool lease_sweep_is_meant(const struct vfs_lease_sweep *s, const struct vfs_file *f)
{
	const struct vfs_watch_event *e = s->event;

	return f->lease_sweep != s->table->sweep &&
	       (!e || (e->len == f->key_len && memcmp(e->part, f->key, e->len) == 0));
}

static struct vfs_file *lease_sweep_next_of_bucket(struct vfs_lease_sweep *s)
{
	struct vfs_lease_table *t = s->table;
	struct vfs_file *f;

	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (f, &t->by_file[s->bucket], watch_link) {
		if (lease_sweep_is_meant(s, f))
			break;
	}
	if (f) {
		f->lease_sweep = t->sweep;
		vfs_file_ref(f);
	}
	pthread_mutex_unlock(&t->lock);
	return f;
}

/* The next file, with a reference; NULL: that was all. */
static struct vfs_file *vfs_lease_sweep_next(struct vfs_lease_sweep *s)
{
	struct vfs_file *f = lease_sweep_next_of_bucket(s);

	while (!f && !s->event && ++s->bucket < VFS_LEASE_BUCKETS)
		f = lease_sweep_next_of_bucket(s);
	return f;
}

#define SIGNALS 32u /* read at once */
#define ROOM 8192u  /* bytes of events read at once */
#define CHANGES (FAN_ATTRIB | FAN_MOVE_SELF)
/* A directory's entries and attributes; with FAN_REPORT_FID the events name the directory. */
#define DIR_CHANGES (CHANGES | FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_ONDIR)
#define REST_MS 20
#define MARGIN_SECONDS 5u /* a delegation is revoked so long before the kernel loses patience */

struct vfs_leases *vfs_leases_new(void)
{
	struct vfs_leases *ls = calloc(1, sizeof(*ls));

	if (!ls)
		return NULL;
	vfs_lease_table_init(&ls->table);
	ls->stop = ls->changes = -1;
	ls->self = getpid();
	return ls;
}

void vfs_leases_free(struct vfs_leases *ls)
{
	if (ls)
		vfs_lease_table_fini(&ls->table);
	free(ls);
}

int vfs_leases_own(const struct vfs_leases *ls, int fd)
{
	const struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = atomic_load(&ls->tid) };

	if (fcntl(fd, F_SETOWN_EX, &owner) != 0 || fcntl(fd, F_SETSIG, VFS_LEASE_SIGNAL) != 0)
		return -errno;
	return 0;
}

/* Under f->lock: events of the file, by a descriptor of it that stays open. data: of changes of its data,
 * too. False: there are none. */
static bool vfs_leases_watch(struct vfs_leases *ls, const struct vfs_file *f, int fd, bool data)
{
	const uint64_t events = (f->is_dir ? DIR_CHANGES : CHANGES) | (data ? FAN_MODIFY : 0);

	return fanotify_mark(ls->changes, FAN_MARK_ADD, events, AT_FDCWD, vfs_proc_path(fd).s) == 0;
}

/* Ends what data has added. */
static void vfs_leases_watch_data_no_more(struct vfs_leases *ls, int fd)
{
	fanotify_mark(ls->changes, FAN_MARK_REMOVE, FAN_MODIFY, AT_FDCWD, vfs_proc_path(fd).s);
}

static void vfs_leases_unwatch(struct vfs_leases *ls, const struct vfs_file *f, int fd)
{
	const uint64_t events = f->is_dir ? DIR_CHANGES : CHANGES | FAN_MODIFY;

	fanotify_mark(ls->changes, FAN_MARK_REMOVE, events, AT_FDCWD, vfs_proc_path(fd).s);
}

/* Puts f. changed: somebody has changed the file already, and waits for nothing. Otherwise its lease may be
 * broken; a signal may be late, and another file have a lease by that descriptor now. */
static void lease_look_at_file(const struct vfs_leases *ls, struct vfs_file *f, bool changed)
{
	const struct vfs_file_use u = { .use = VFS_USE_WRITE,
					.made = changed,
					.within_s = changed ? 0 : ls->within_s };

	pthread_mutex_lock(&f->lock);
	if (f->lease_fd >= 0 && (changed || !vfs_lease_holds(f)))
		vfs_deleg_recall(f, &u);
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
}

/* event: the file that was changed; NULL: any may have been. */
static void lease_look_at_all(struct vfs_leases *ls, const struct vfs_watch_event *event,
			      bool changed)
{
	struct vfs_lease_sweep sweep;
	struct vfs_file *f;

	vfs_lease_sweep_begin(&sweep, &ls->table, event);
	while ((f = vfs_lease_sweep_next(&sweep)) != NULL)
		lease_look_at_file(ls, f, changed);
}

/* False: all were this process's own. */
static bool read_changes(struct vfs_leases *ls)
{
	char room[ROOM];
	ssize_t len = read(ls->changes, room, sizeof(room));
	size_t at = 0, one = 1;
	bool others = false;

	while (len > 0 && one > 0) {
		struct vfs_watch_event e;

		one = vfs_watch_event_parse(room + at, (size_t)len - at, FAN_EVENT_INFO_TYPE_FID,
					    &e);
		at += one;
		others |= e.lost || (one > 0 && e.pid != ls->self);
		if (e.lost)
			lease_look_at_all(ls, NULL, true);
		else if (one > 0 && e.pid != ls->self)
			lease_look_at_all(ls, &e, true);
	}
	return others;
}

static void read_signals(struct vfs_leases *ls)
{
	struct signalfd_siginfo info[SIGNALS];
	ssize_t len = read(ls->signals, info, sizeof(info));

	for (size_t i = 0; len > 0 && i < (size_t)len / sizeof(info[0]); i++) {
		struct vfs_file *f = NULL;

		if (info[i].ssi_signo == SIGIO)
			lease_look_at_all(ls, NULL, false);
		else
			f = vfs_lease_table_find(&ls->table, info[i].ssi_fd);
		if (f)
			lease_look_at_file(ls, f, false);
	}
}

enum { STOP, SIGNALLED, CHANGED, SOURCES };

/* The next turn of the thread. resting: changes are not looked for; returns whether they should not be
 * in the next turn. */
static bool lease_thread_poll(struct vfs_leases *ls, struct pollfd fds[SOURCES], bool resting)
{
	/* A source that is left out must not seem to have events of the turn before. */
	fds[CHANGED].revents = 0;
	if (poll(fds, resting ? CHANGED : SOURCES, resting ? REST_MS : -1) <= 0)
		return false;
	if (fds[SIGNALLED].revents)
		read_signals(ls);
	return fds[CHANGED].revents && !read_changes(ls);
}

/* Signals are sent to this thread alone, where they are blocked. */
static void *lease_thread_main(void *arg)
{
	struct vfs_leases *ls = arg;
	struct pollfd fds[SOURCES] = { [STOP] = { .fd = ls->stop, .events = POLLIN },
				       [SIGNALLED] = { .events = POLLIN },
				       [CHANGED] = { .fd = ls->changes, .events = POLLIN } };
	bool resting = false;
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigaddset(&set, VFS_LEASE_SIGNAL);
	ls->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (ls->signals >= 0)
		atomic_store(&ls->tid, gettid());
	sem_post(&ls->started);
	fds[SIGNALLED].fd = ls->signals;
	while (ls->signals >= 0 && !(fds[STOP].revents & POLLIN))
		resting = lease_thread_poll(ls, fds, resting);
	atomic_store(&ls->tid, 0);
	if (ls->signals >= 0)
		close(ls->signals);
	return NULL;
}

/* Seconds that the kernel lets local processes wait. */
static unsigned read_patience(void)
{
	FILE *file = fopen("/proc/sys/fs/lease-break-time", "re");
	unsigned seconds = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%u", &seconds) != 1)
		seconds = 0;
	fclose(file);
	return seconds;
}

/* 0 or -errno. */
static int lease_start_thread(struct vfs_leases *ls)
{
	int rc;

	sem_init(&ls->started, 0, 0);
	rc = -pthread_create(&ls->thread, NULL, lease_thread_main, ls);
	if (rc == 0) {
		ls->runs = true;
		pthread_setname_np(ls->thread, "local opens");
		while (sem_wait(&ls->started) != 0) {
		}
	}
	sem_destroy(&ls->started);
	return rc;
}

static void leases_close_fds(struct vfs_leases *ls)
{
	close(ls->changes);
	if (ls->stop >= 0)
		close(ls->stop);
	ls->changes = ls->stop = -1;
}

/* Leases of the program before are this thread's from here. Those that were broken meanwhile have told nobody. */
static void lease_own_loaded(struct vfs *vfs)
{
	struct vfs_lease_sweep sweep;
	struct vfs_file *f;

	if (atomic_load(&vfs->files->leases) == 0)
		return;
	vfs_lease_sweep_begin(&sweep, &vfs->leases->table, NULL);
	while ((f = vfs_lease_sweep_next(&sweep)) != NULL) {
		if (!f->is_dir && !f->guarded)
			(void)vfs_leases_own(vfs->leases, f->lease_fd);
		vfs_file_put(f);
	}
	lease_look_at_all(vfs->leases, NULL, false);
}

int vfs_leases_start(struct vfs *vfs)
{
	struct vfs_leases *ls = vfs->leases;
	const unsigned patience = read_patience();
	int rc;

	ls->within_s = patience > MARGIN_SECONDS ? patience - MARGIN_SECONDS : patience / 2;
	if (ls->within_s == 0)
		return 0;    /* without leases */
	if (ls->changes < 0) /* else it is that of the program before */
		ls->changes = fanotify_init(
			FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID, O_RDONLY);
	if (ls->changes < 0) {
		if (errno == EMFILE && vfs->cfg.log)
			rn_warn(vfs->cfg.log, "this user's processes watch as much as they may: "
					      "nothing is delegated but under nfs_only; "
					      "raise fs.fanotify.max_user_groups (sysctl)");
		return 0; /* likewise */
	}
	ls->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = ls->stop < 0 ? -errno : lease_start_thread(ls);
	if (rc != 0)
		leases_close_fds(ls);
	else
		lease_own_loaded(vfs);
	return rc == 0 ? vfs_guards_start(vfs, ls->within_s, patience) : rc;
}

void vfs_leases_rest(struct vfs *vfs)
{
	struct vfs_leases *ls = vfs->leases;

	vfs_guards_rest(vfs->guards);
	if (!ls->runs)
		return;
	eventfd_write(ls->stop, 1);
	pthread_join(ls->thread, NULL);
	ls->runs = false;
}

void vfs_leases_stop(struct vfs *vfs)
{
	vfs_leases_rest(vfs);
	vfs_guards_stop(vfs);
	if (vfs->leases->changes >= 0)
		leases_close_fds(vfs->leases);
}

bool vfs_lease_possible(const struct vfs_node *n, enum vfs_deleg_type type)
{
	/* Other machines may open files of other file systems without a word to this kernel. */
	return n->mnt->watch && atomic_load(&n->vfs->leases->tid) != 0 &&
	       (type == VFS_DELEG_READ || vfs_guard_possible(n->vfs));
}

static int open_for_lease(struct vfs_node *n)
{
	struct vfs *vfs = n->vfs;
	int fd, rc;

	vfs_cache_close_written(n);
	fd = vfs_fd_reopen_data(vfs, n->path_fd, O_RDONLY);
	if (fd < 0)
		return fd == -RN_ELEASE ? -RN_ENOTNOW : fd;
	rc = vfs_leases_own(vfs->leases, fd);
	if (rc == 0)
		return fd;
	vfs_fd_close(vfs, fd);
	return rc;
}

struct vfs_lease_usage vfs_lease_usage(const struct vfs *vfs)
{
	const uint64_t used = atomic_load_explicit(&vfs->files->leases, memory_order_relaxed);

	return (struct vfs_lease_usage){ .used = (unsigned)used, .most = vfs->cfg.max_leases };
}

static int open_for_guard(struct vfs_node *n, struct vfs_lease_fds *out)
{
	int rc = vfs_guard_probe_open(n, &out->probe);

	if (rc != 0)
		return rc;
	out->guard = true;
	out->fd = vfs_fd_reopen(n->vfs, n->path_fd, O_PATH);
	if (out->fd >= 0)
		return 0;
	vfs_guard_probe_close(n->vfs, &out->probe);
	return out->fd;
}

int vfs_lease_open(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_deleg_type type,
		   struct vfs_lease_fds *out)
{
	struct vfs *vfs = n->vfs;
	const struct vfs_lease_usage room = vfs_lease_usage(vfs);
	int rc = vfs_act_as_root(ctx);

	*out = VFS_LEASE_NO_FDS;
	if (rc != 0)
		return rc;
	if (room.used >= room.most)
		return -RN_ENOTNOW;
	if (type == VFS_DELEG_WRITE)
		return open_for_guard(n, out);
	out->fd = n->type == S_IFDIR ? vfs_fd_reopen(vfs, n->path_fd, O_PATH) : open_for_lease(n);
	return out->fd < 0 ? out->fd : 0;
}

void vfs_lease_close(struct vfs *vfs, const struct vfs_lease_fds *fds)
{
	vfs_fd_close(vfs, fds->fd);
	if (fds->guard)
		vfs_guard_probe_close(vfs, &fds->probe);
}

static int set_lease(struct vfs_file *f, const struct vfs_lease_fds *fds)
{
	if (fds->guard)
		return vfs_guard_take(f, fds->probe.fd);
	if (f->is_dir || fcntl(f->lease_fd, F_SETLEASE, F_RDLCK) == 0)
		return 0;
	return errno == EINVAL || errno == EACCES ? -EOPNOTSUPP : -RN_ENOTNOW;
}

int vfs_lease_take(struct vfs_file *f, struct vfs_lease_fds *fds)
{
	struct vfs_leases *ls = f->vfs->leases;
	int rc;

	if (!vfs_leases_watch(ls, f, fds->fd, fds->guard))
		return errno == ENOSPC || errno == ENOMEM ? -RN_ENOTNOW : -EOPNOTSUPP;
	/* From the lease on it may be broken, and the thread that is told so looks for the file in the table. */
	f->lease_fd = fds->fd;
	vfs_lease_table_add(&ls->table, f);
	atomic_fetch_add(&f->vfs->files->leases, 1);
	vfs_fd_set_aside(f->vfs, 1);
	rc = set_lease(f, fds);
	if (rc == 0)
		fds->fd = -1;
	else
		vfs_lease_drop(f);
	return rc;
}

void vfs_lease_load(struct vfs_file *f, int fd, bool guarded)
{
	f->lease_fd = fd;
	vfs_lease_table_add(&f->vfs->leases->table, f);
	atomic_fetch_add(&f->vfs->files->leases, 1);
	if (guarded)
		vfs_guard_load(f);
}

void vfs_lease_let_holder_write(struct vfs_file *f)
{
	struct vfs_leases *ls = f->vfs->leases;

	if (f->lease_fd < 0 || f->guarded || f->is_dir ||
	    !vfs_leases_watch(ls, f, f->lease_fd, true))
		return;
	if (!vfs_guard_replace_lease(f))
		vfs_leases_watch_data_no_more(ls, f->lease_fd);
}

bool vfs_lease_holds(const struct vfs_file *f)
{
	return f->lease_fd >= 0 &&
	       (f->is_dir || f->guarded || fcntl(f->lease_fd, F_GETLEASE) == F_RDLCK);
}

int vfs_lease_drop(struct vfs_file *f)
{
	int fd = f->lease_fd;

	if (fd < 0)
		return -1;
	vfs_lease_table_remove(&f->vfs->leases->table, f);
	vfs_leases_unwatch(f->vfs->leases, f, fd);
	if (f->guarded)
		vfs_guard_drop(f);
	atomic_fetch_sub(&f->vfs->files->leases, 1);
	vfs_fd_set_aside(f->vfs, -1);
	f->lease_fd = -1;
	/* By itself it would go with the last copy of the descriptor, which a child may have. A
	 * directory and an open guard have none. */
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return fd;
}
