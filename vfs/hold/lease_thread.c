/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/lease_thread.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/hold/deleg_table.h"

#define BUCKETS 1024u
#define SIGNALS 32u	  /* read at once */
#define MARGIN_SECONDS 5u /* a delegation is revoked so long before the kernel loses patience */

LIST_HEAD(lease_list, vfs_file);

struct vfs_leases {
	pthread_mutex_t lock;
	struct lease_list bucket[BUCKETS]; /* by descriptor */
	uint64_t sweep;			   /* number of the last look at all leases */
	unsigned within_s;		   /* seconds in which a delegation must end */
	_Atomic pid_t tid;
	pthread_t thread;
	sem_t started;
	int stop;    /* eventfd; -1: there is no thread */
	int signals; /* signalfd */
};

struct vfs_leases *vfs_leases_new(void)
{
	struct vfs_leases *ls = calloc(1, sizeof(*ls));

	if (!ls)
		return NULL;
	pthread_mutex_init(&ls->lock, NULL);
	ls->stop = -1;
	return ls;
}

void vfs_leases_free(struct vfs_leases *ls)
{
	if (ls)
		pthread_mutex_destroy(&ls->lock);
	free(ls);
}

pid_t vfs_leases_thread(const struct vfs_leases *ls)
{
	return atomic_load(&ls->tid);
}

static struct lease_list *bucket_of(struct vfs_leases *ls, int fd)
{
	return &ls->bucket[(unsigned)fd % BUCKETS];
}

void vfs_leases_add(struct vfs_leases *ls, struct vfs_file *f)
{
	pthread_mutex_lock(&ls->lock);
	f->lease_sweep = ls->sweep;
	LIST_INSERT_HEAD(bucket_of(ls, f->lease_fd), f, lease_link);
	pthread_mutex_unlock(&ls->lock);
}

void vfs_leases_remove(struct vfs_leases *ls, struct vfs_file *f)
{
	pthread_mutex_lock(&ls->lock);
	LIST_REMOVE(f, lease_link);
	pthread_mutex_unlock(&ls->lock);
}

/* A signal may be late: another file may have a lease by that descriptor now. */
static void look_at(const struct vfs_leases *ls, struct vfs_file *f)
{
	const struct vfs_file_use u = { .use = VFS_USE_WRITE, .within_s = ls->within_s };

	pthread_mutex_lock(&f->lock);
	if (f->lease_fd >= 0 && !vfs_lease_holds(f))
		vfs_deleg_recall(f, &u);
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
}

static void broken(struct vfs_leases *ls, int fd)
{
	struct vfs_file *f;

	pthread_mutex_lock(&ls->lock);
	LIST_FOREACH (f, bucket_of(ls, fd), lease_link) {
		if (f->lease_fd == fd)
			break;
	}
	if (f)
		vfs_file_ref(f);
	pthread_mutex_unlock(&ls->lock);
	if (f)
		look_at(ls, f);
}

/* A file of the bucket that this sweep has not looked at, with a reference. */
static struct vfs_file *next_of_sweep(struct vfs_leases *ls, struct lease_list *bucket)
{
	struct vfs_file *f;

	pthread_mutex_lock(&ls->lock);
	LIST_FOREACH (f, bucket, lease_link) {
		if (f->lease_sweep != ls->sweep)
			break;
	}
	if (f) {
		f->lease_sweep = ls->sweep;
		vfs_file_ref(f);
	}
	pthread_mutex_unlock(&ls->lock);
	return f;
}

static void look_at_all(struct vfs_leases *ls)
{
	struct vfs_file *f;

	pthread_mutex_lock(&ls->lock);
	ls->sweep++;
	pthread_mutex_unlock(&ls->lock);
	for (unsigned i = 0; i < BUCKETS; i++) {
		while ((f = next_of_sweep(ls, &ls->bucket[i])) != NULL)
			look_at(ls, f);
	}
}

static void read_signals(struct vfs_leases *ls)
{
	struct signalfd_siginfo info[SIGNALS];
	ssize_t len = read(ls->signals, info, sizeof(info));

	for (size_t i = 0; len > 0 && i < (size_t)len / sizeof(info[0]); i++) {
		if (info[i].ssi_signo == SIGIO)
			look_at_all(ls);
		else
			broken(ls, info[i].ssi_fd);
	}
}

/* Signals are sent to this thread alone, where they are blocked. */
static void *thread_main(void *arg)
{
	struct vfs_leases *ls = arg;
	struct pollfd fds[] = { { .fd = ls->stop, .events = POLLIN }, { .events = POLLIN } };
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
	fds[1].fd = ls->signals;
	while (ls->signals >= 0 && !(fds[0].revents & POLLIN)) {
		if (poll(fds, 2, -1) > 0 && fds[1].revents)
			read_signals(ls);
	}
	atomic_store(&ls->tid, 0);
	if (ls->signals >= 0)
		close(ls->signals);
	return NULL;
}

/* Seconds that the kernel lets local processes wait, less a margin; 0: not long enough. */
static unsigned read_patience(void)
{
	FILE *file = fopen("/proc/sys/fs/lease-break-time", "re");
	unsigned seconds = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%u", &seconds) != 1)
		seconds = 0;
	fclose(file);
	return seconds > MARGIN_SECONDS ? seconds - MARGIN_SECONDS : seconds / 2;
}

int vfs_leases_start(struct vfs *vfs)
{
	struct vfs_leases *ls = vfs->leases;
	int rc;

	ls->within_s = read_patience();
	if (ls->within_s == 0)
		return 0; /* without leases */
	ls->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ls->stop < 0)
		return -errno;
	sem_init(&ls->started, 0, 0);
	rc = -pthread_create(&ls->thread, NULL, thread_main, ls);
	if (rc == 0) {
		pthread_setname_np(ls->thread, "local opens");
		while (sem_wait(&ls->started) != 0) {
		}
	} else {
		close(ls->stop);
		ls->stop = -1;
	}
	sem_destroy(&ls->started);
	return rc;
}

void vfs_leases_stop(struct vfs *vfs)
{
	struct vfs_leases *ls = vfs->leases;

	if (ls->stop < 0)
		return;
	eventfd_write(ls->stop, 1);
	pthread_join(ls->thread, NULL);
	close(ls->stop);
	ls->stop = -1;
}
