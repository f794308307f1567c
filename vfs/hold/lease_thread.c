/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/lease_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/fs/file_system.h"
#include "vfs/hold/deleg_table.h"
#include "vfs/hold/gate_thread.h"
#include "vfs/hold/lease.h"

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

bool vfs_leases_watch(struct vfs_leases *ls, const struct vfs_file *f, int fd, bool data)
{
	const uint64_t events = (f->is_dir ? DIR_CHANGES : CHANGES) | (data ? FAN_MODIFY : 0);

	return fanotify_mark(ls->changes, FAN_MARK_ADD, events, AT_FDCWD, vfs_proc_path(fd).s) == 0;
}

void vfs_leases_watch_data_no_more(struct vfs_leases *ls, int fd)
{
	fanotify_mark(ls->changes, FAN_MARK_REMOVE, FAN_MODIFY, AT_FDCWD, vfs_proc_path(fd).s);
}

void vfs_leases_unwatch(struct vfs_leases *ls, const struct vfs_file *f, int fd)
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

int vfs_leases_start(struct vfs *vfs)
{
	struct vfs_leases *ls = vfs->leases;
	const unsigned patience = read_patience();
	int rc;

	ls->within_s = patience > MARGIN_SECONDS ? patience - MARGIN_SECONDS : patience / 2;
	if (ls->within_s == 0)
		return 0; /* without leases */
	ls->changes = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID,
				    O_RDONLY);
	if (ls->changes < 0)
		return 0; /* likewise */
	ls->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = ls->stop < 0 ? -errno : lease_start_thread(ls);
	if (rc != 0)
		leases_close_fds(ls);
	return rc == 0 ? vfs_gates_start(vfs, ls->within_s, patience) : rc;
}

void vfs_leases_stop(struct vfs *vfs)
{
	struct vfs_leases *ls = vfs->leases;

	vfs_gates_stop(vfs);
	if (ls->stop < 0)
		return;
	eventfd_write(ls->stop, 1);
	pthread_join(ls->thread, NULL);
	leases_close_fds(ls);
}
