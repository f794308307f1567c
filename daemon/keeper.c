/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper: its start, its life beside the daemon, and what it does when the daemon has died (doc/design/keeper.md).
 *
 * It is made by clone(), with CLONE_FILES and without CLONE_VM: as by fork(), but with one table of descriptors. So it closes nothing while
 * the daemon lives. clone3() would be refused under RestrictNamespaces= of systemd.
 */
#include "daemon/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/cluster_store.h"
#include "daemon/cluster_runs.h"
#include "daemon/logs.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"

#define KEEPER_NAME "ringnfs-keeper" /* in ps; 15 bytes at most */
#define KEEPER_LOOK_MS 200u	     /* between looks at the object */
#define KEEPER_TELL_MS 60000u	     /* between log lines about a wait */
#define KEEPER_FDS_MAX (1u << 20)    /* if /proc does not tell the size of the table */
#define KEEPER_ENDS_MS 1000	     /* that a keeper which is dismissed has to end */
#define KEEPER_LOCK "keeper"	     /* file in the state directory; each run has it locked */

/* A directory as its files show in descriptors. Exports are opened by mounts of their own, in which other files can have the same path. */
struct keeper_dir {
	char path[PATH_MAX];
	uint64_t mount; /* STATX_MNT_ID */
};

/* Memory that the daemon and its keeper share. */
struct keeper_page {
	_Atomic uint64_t incarnation; /* 0: the daemon has not joined; the rest is set before it */
	_Atomic int started; /* by the keeper, before it says that it is ready: 0 or -errno */
	int lock;	     /* descriptor of KEEPER_LOCK */
	int runs; /* descriptor with the byte of this run locked (daemon/cluster_runs.h) */
	struct keeper_dir own_dirs[2]; /* state directory, store */
};

struct keeper {
	struct keeper_page *page;
	char member[CLUSTER_NAME_SIZE];
	struct cluster_store_cfg
		store; /* its strings are the caller's; the keeper has a copy of them */
	char state_dir[PATH_MAX];
	const struct rn_logger *log; /* of the daemon */
	pid_t daemon, pid;
	int pidfd; /* of the keeper */
	int wake;  /* eventfd: readable when the daemon dismisses the keeper */
	int ready; /* eventfd: readable when the keeper has started */

	/* In the keeper's copy only. */
	int daemon_pidfd;
	bool in_journal;    /* true if standard error leads to systemd's journal */
	dev_t store_dev;    /* file system of the store */
	dev_t never_dev[3]; /* /proc, /sys, and that of memfds; 0: none */
	unsigned kept;
	bool elsewhere; /* true if a kept file is on another file system than the store */
};

/* A log line of the keeper itself, to standard error: the daemon's socket to the journal is closed. */
static void keeper_say(const struct keeper *k, enum rn_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void keeper_say(const struct keeper *k, enum rn_level level, const char *fmt, ...)
{
	char text[512], prefix[8] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (k->in_journal)
		snprintf(prefix, sizeof(prefix), "<%d>", (int)level);
	/* A pipe that nobody reads must not hold it up. */
	if (poll(&(struct pollfd){ .fd = STDERR_FILENO, .events = POLLOUT }, 1, 0) == 1)
		dprintf(STDERR_FILENO, "%s" KEEPER_NAME ": member %s: %s\n", prefix, k->member,
			text);
}

static void keeper_set_name(void)
{
	const size_t room = strlen(program_invocation_name);

	prctl(PR_SET_NAME, KEEPER_NAME);
	/* The command line, too, for commands that end processes by it. */
	memset(program_invocation_name, 0, room);
	snprintf(program_invocation_name, room + 1, "%s", KEEPER_NAME);
}

/* The out-of-memory killer takes the daemon, not its keeper. Needs CAP_SYS_RESOURCE, which the daemon has put aside if it has it. */
static void keeper_shun_oom(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct all[_LINUX_CAPABILITY_U32S_3];
	const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (syscall(SYS_capget, &h, all) == 0) {
		for (size_t i = 0; i < rn_array_size(all); i++)
			all[i].effective = all[i].permitted;
		syscall(SYS_capset, &h, all);
	}
	if (fd >= 0 && write(fd, "-1000", 5) < 0)
		errno = 0; /* the keeper stays as likely a victim as the daemon */
	if (fd >= 0)
		close(fd);
}

/* Reading the object and closing descriptors need no capabilities. */
static int keeper_drop_rights(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    syscall(SYS_capset, &h, none) < 0)
		return -errno;
	return 0;
}

/* 1: the files may be released; 0: not yet; -errno: the object cannot be read. The store is opened again after an error. */
static int keeper_look(struct keeper *k, struct cluster_store **store, const struct rn_logger *log)
{
	struct cluster_self run = { .incarnation = atomic_load(&k->page->incarnation) };
	struct cluster_object o;
	uint64_t version = 0;
	int rc = *store ? 0 : cluster_store_open(&k->store, log, store);

	if (!rc)
		rc = cluster_store_read(*store, &o, &version);
	/* An empty store is not this cluster's: this run had joined. */
	if (!rc && version == 0)
		rc = -ENOENT;
	if (rc && *store) {
		(*store)->ops->close(*store);
		*store = NULL;
	}
	if (rc)
		return rc;
	memcpy(run.name, k->member, sizeof(run.name));
	return cluster_may_release(&o, &run);
}

/* Fails now rather than after a crash if the rights do not suffice to read the object. */
static int keeper_try_store(struct keeper *k)
{
	struct cluster_store *store = NULL;
	struct stat st;
	const int rc = keeper_look(k, &store, k->log);

	if (store)
		store->ops->close(store);
	if (stat(k->store.path, &st) < 0)
		return -errno;
	k->store_dev = st.st_dev;
	/* A damaged object is told of when the member joins. */
	return rc == -ENOENT || rc == -EBADMSG || rc > 0 ? 0 : rc;
}

static void keeper_note_devices(struct keeper *k)
{
	const int memory = memfd_create(KEEPER_NAME, MFD_CLOEXEC);
	struct stat st;

	if (stat("/proc", &st) == 0)
		k->never_dev[0] = st.st_dev;
	if (stat("/sys", &st) == 0)
		k->never_dev[1] = st.st_dev;
	if (memory >= 0 && fstat(memory, &st) == 0)
		k->never_dev[2] = st.st_dev;
	if (memory >= 0)
		close(memory);
}

static int keeper_begin(struct keeper *k)
{
	int rc;

	k->daemon_pidfd = (int)syscall(SYS_pidfd_open, k->daemon, 0);
	if (k->daemon_pidfd < 0)
		return -errno;
	keeper_set_name();
	keeper_shun_oom();
	setsid(); /* so that signals to the daemon's process group do not end the keeper */
	k->in_journal = journal_is_stderr();
	keeper_note_devices(k);
	rc = keeper_drop_rights();
	return rc ? rc : keeper_try_store(k);
}

/* True if the daemon has died; false: it has dismissed the keeper, or lost the descriptors that this waits for. */
static bool keeper_wait(const struct keeper *k)
{
	struct pollfd p[] = { { .fd = k->daemon_pidfd, .events = POLLIN },
			      { .fd = k->wake, .events = POLLIN } };

	/* Another process may have got the daemon's number if the daemon died before the descriptor was made. */
	if (getppid() != k->daemon)
		return true;
	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	return p[0].revents & POLLIN && !(p[1].revents & POLLIN);
}

static unsigned keeper_table_size(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned n = KEEPER_FDS_MAX;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "FDSize: %u", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* True if the descriptor is that of a regular file. Asks no server: a silent one must not delay the closing of sockets. */
static bool keeper_is_file(int fd, struct statx *stx)
{
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, stx) == 0)
		return S_ISREG(stx->stx_mode);
	return errno != EBADF; /* only a file system fails otherwise, one that has gone away */
}

/* True if the file is in the directory itself. */
static bool keeper_file_is_in(const struct keeper_dir *dir, const char *path, uint64_t mount)
{
	const size_t len = strlen(dir->path);

	return mount == dir->mount && strncmp(path, dir->path, len) == 0 && path[len] == '/' &&
	       !strchr(path + len + 1, '/');
}

/* True if the file has a lock by flock(2), as the control socket's has. Clients' locks are of another kind. */
static bool keeper_has_flock(int fd)
{
	char path[40], line[256];
	bool found = false;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	FILE *f = fopen(path, "re");

	while (f && !found && fgets(line, sizeof(line), f))
		found = strncmp(line, "lock:", 5) == 0 && strstr(line, " FLOCK ");
	if (f)
		fclose(f);
	return found;
}

/*
 * True if a client may have locked the regular file. In doubt it is kept: a file too many does no harm. Not kept is what the next run of
 * the member needs: the instance lock and the database in the state directory, the lock of the store, and that of the control socket.
 */
static bool keeper_keeps(const struct keeper *k, int fd, const struct statx *stx)
{
	const dev_t dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);
	char link[32], path[PATH_MAX];
	const int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || flags & O_PATH)
		return false;
	for (size_t i = 0; i < rn_array_size(k->never_dev); i++)
		if (dev != 0 && dev == k->never_dev[i])
			return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	const ssize_t n = readlink(link, path, sizeof(path) - 1);

	if (n < 0)
		return true;
	path[n] = '\0';
	return !keeper_file_is_in(&k->page->own_dirs[0], path, stx->stx_mnt_id) &&
	       !keeper_file_is_in(&k->page->own_dirs[1], path, stx->stx_mnt_id) &&
	       !keeper_has_flock(fd);
}

/* True if the descriptor tells others, by a lock, that clients' locks are kept: it is closed after all else. */
static bool keeper_is_own(const struct keeper *k, int fd)
{
	return fd == k->page->lock || fd == k->page->runs;
}

/* Descriptors 0 and 1 must be taken, or a file becomes somebody's standard output. 2 is for log lines. */
static void keeper_close_stdio(void)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd < STDERR_FILENO; fd++)
		if (fd != null)
			dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
}

/*
 * Closes all but the files. First everything that is no regular file, without a call that waits for a file system: peers see the
 * end of their connections, addresses are free for the next run, RDMA devices and rings give their memory back, and
 * processes that wait for an answer on a fanotify descriptor go on.
 */
static void keeper_close_others(struct keeper *k)
{
	const int size = (int)keeper_table_size();
	struct statx stx;

	for (int fd = 0; fd < size; fd++)
		if (fd != STDERR_FILENO && !keeper_is_file(fd, &stx))
			close(fd);
	keeper_close_stdio();
	for (int fd = STDERR_FILENO + 1; fd < size; fd++) {
		stx = (struct statx){ 0 };
		if (keeper_is_own(k, fd) || !keeper_is_file(fd, &stx))
			continue;
		if (!keeper_keeps(k, fd, &stx)) {
			close(fd);
			continue;
		}
		k->kept++;
		k->elsewhere |= makedev(stx.stx_dev_major, stx.stx_dev_minor) != k->store_dev;
	}
}

/* True if the file system has given this machine's client up, and all locks with it, so that nothing is left to keep. */
static bool keeper_session_is_gone(const struct keeper *k, int rc)
{
	/* The store's own client is not that of the files, if it is in RADOS. */
	return (rc == -ESHUTDOWN || rc == -ENOTCONN) && !k->elsewhere && !k->store.is_rados;
}

/* Waits until the files may be released. There is no limit: without the object nobody knows what others have been granted. */
static void keeper_hold(struct keeper *k, struct cluster_store **store)
{
	const struct timespec pause = { .tv_nsec = KEEPER_LOOK_MS * (long)RN_NS_PER_MS };
	const uint64_t since = rn_now_ms();
	uint64_t told = since;
	int rc;

	keeper_say(k, RN_NOTICE,
		   "ringnfsd (process %d) has died: %u of its files stay open, with their locks, "
		   "until all members of the cluster enforce the grace period",
		   (int)k->daemon, k->kept);
	while ((rc = keeper_look(k, store, NULL)) != 1 && !keeper_session_is_gone(k, rc)) {
		if (rn_now_ms() - told >= KEEPER_TELL_MS) {
			told = rn_now_ms();
			keeper_say(k, RN_WARNING,
				   "%u files are kept open with their locks, as %s%s; if nobody "
				   "else has been granted what this member's clients had locked, "
				   "kill -9 %d releases them",
				   k->kept,
				   rc ? "the cluster's object cannot be read: "
				      : "not all members enforce the grace period",
				   rc ? cluster_store_error_text(rc) : "", (int)getpid());
		}
		nanosleep(&pause, NULL);
	}
	keeper_say(k, RN_NOTICE, "%u files are released after %llu ms: %s", k->kept,
		   (unsigned long long)(rn_now_ms() - since),
		   rc == 1 ? "the cluster allows it"
			   : "this machine's client of the file system has been evicted");
}

/*
 * Unlocks and closes all files, and only then, by the process's end, those of keeper_is_own(): the next run takes reclaims when KEEPER_LOCK is free. Unlocking is
 * not left to the closing, which FUSE does later.
 */
static void keeper_release(const struct keeper *k)
{
	const int size = (int)keeper_table_size();
	struct statx stx;

	/* The store may have other descriptors, and threads that use them. */
	for (int fd = STDERR_FILENO + 1; fd < size; fd++) {
		if (keeper_is_own(k, fd) || !keeper_is_file(fd, &stx))
			continue;
		fcntl(fd, F_OFD_SETLK, &(struct flock){ .l_type = F_UNLCK, .l_whence = SEEK_SET });
		close(fd);
	}
}

/* Nothing is left to be evicted of this run. */
static void keeper_drop_clients(struct keeper *k, struct cluster_store *store)
{
	struct cluster_self run = { .incarnation = atomic_load(&k->page->incarnation) };
	int rc = store ? 0 : cluster_store_open(&k->store, NULL, &store);

	memcpy(run.name, k->member, sizeof(run.name));
	if (!rc)
		rc = store->ops->use(store, &run, NULL, 0);
	if (rc)
		keeper_say(k, RN_WARNING,
			   "this machine's client of the file system may be evicted: the store "
			   "cannot be told that all is released: %s",
			   rn_error_text(rc));
}

/* Does not return. */
static void keeper_main(struct keeper *k)
{
	const int rc = keeper_begin(k);

	atomic_store(&k->page->started, rc);
	eventfd_write(k->ready, 1);
	if (rc || !keeper_wait(k)) {
		close(k->daemon_pidfd);
		_exit(0);
	}
	/* A run that has not joined has granted nothing. */
	if (atomic_load(&k->page->incarnation) != 0) {
		struct cluster_store *store = NULL;

		keeper_close_others(k);
		if (k->kept)
			keeper_hold(k, &store);
		keeper_release(k);
		keeper_drop_clients(k, store);
	}
	_exit(0);
}

/* Returns twice, as fork() does. No signal tells of the keeper's end, so that no other wait for children takes it. */
static pid_t keeper_clone(int *pidfd)
{
	const unsigned long flags = CLONE_FILES | CLONE_PIDFD, stack = 0;
#ifdef __s390__
	const unsigned long first = stack, second = flags;
#else
	const unsigned long first = flags, second = stack;
#endif

	return (pid_t)syscall(SYS_clone, first, second, pidfd, 0ul, 0ul);
}

static int keeper_spawn(struct keeper *k)
{
	sigset_t all, before;
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	k->pid = keeper_clone(&k->pidfd);
	if (k->pid == 0)
		keeper_main(k);
	if (k->pid < 0)
		rc = -errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* Frees what the daemon has of a keeper that has ended. */
static void keeper_free(struct keeper *k)
{
	while (k->pid > 0 && waitpid(k->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	if (k->page) {
		if (k->page->lock >= 0)
			close(k->page->lock);
		if (k->page->runs >= 0)
			close(k->page->runs);
		munmap(k->page, sizeof(*k->page));
	}
	for (size_t i = 0; i < 3; i++) {
		const int fd = (const int[]){ k->pidfd, k->wake, k->ready }[i];

		if (fd >= 0)
			close(fd);
	}
	free(k);
}

static int keeper_prepare(struct keeper *k, const struct keeper_cfg *cfg)
{
	if (!cluster_name_is_valid(cfg->member))
		return -EINVAL;
	if (strlen(cfg->state_dir) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(k->member, cfg->member, strlen(cfg->member) + 1);
	k->store = cfg->store;
	memcpy(k->state_dir, cfg->state_dir, strlen(cfg->state_dir) + 1);
	struct keeper_page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -errno;
	k->page = page;
	page->lock = page->runs = -1;
	k->wake = eventfd(0, EFD_CLOEXEC);
	k->ready = eventfd(0, EFD_CLOEXEC);
	return k->wake < 0 || k->ready < 0 ? -errno : 0;
}

/* 0, or why the keeper has ended. */
static int keeper_await_start(struct keeper *k)
{
	struct pollfd p[] = { { .fd = k->ready, .events = POLLIN },
			      { .fd = k->pidfd, .events = POLLIN } };

	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	return p[0].revents ? atomic_load(&k->page->started) : -ECHILD;
}

int keeper_start(const struct keeper_cfg *cfg, struct keeper **out)
{
	struct keeper *k;
	int rc;

	/* The end of a container's first process ends all others of it. */
	if (getpid() == 1) {
		rn_err(cfg->log, "a member of a cluster cannot be the first process of a "
				 "container: nothing could keep its clients' locks if it died");
		return -EPERM;
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->log = cfg->log;
	k->daemon = getpid();
	k->pidfd = k->wake = k->ready = -1;
	rc = keeper_prepare(k, cfg);
	if (!rc)
		rc = keeper_spawn(k);
	if (!rc)
		rc = keeper_await_start(k);
	if (rc) {
		rn_err(cfg->log,
		       "the process that keeps locks over a crash cannot start, or cannot read the "
		       "cluster's object (%s) as user %u without capabilities: %s",
		       cfg->store.is_rados ? cfg->store.ceph_conf : cfg->store.path,
		       (unsigned)geteuid(), cluster_store_error_text(rc));
		keeper_free(k);
		return rc;
	}
	*out = k;
	return 0;
}

static int keeper_own_dir(const char *name, struct keeper_dir *dir)
{
	const int fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statx stx;
	char link[32];
	int rc = 0;

	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	const ssize_t n = readlink(link, dir->path, sizeof(dir->path) - 1);

	if (n < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) < 0)
		rc = -errno;
	else if (!(stx.stx_mask & STATX_MNT_ID))
		rc = -ENOTSUP;
	if (!rc) {
		dir->path[n] = '\0';
		dir->mount = stx.stx_mnt_id;
	}
	close(fd);
	return rc;
}

static int keeper_lock(struct keeper *k)
{
	struct flock fl = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char path[PATH_MAX + sizeof(KEEPER_LOCK)];

	snprintf(path, sizeof(path), "%s/" KEEPER_LOCK, k->state_dir);
	k->page->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (k->page->lock < 0 || fcntl(k->page->lock, F_OFD_SETLK, &fl) < 0)
		return -errno;
	return 0;
}

static int keeper_lock_run(struct keeper *k, uint64_t incarnation)
{
	const int fd = cluster_runs_open(k->store.path);

	if (fd < 0)
		return fd;
	k->page->runs = fd;
	return cluster_runs_hold(fd, incarnation);
}

int keeper_run_is(struct keeper *k, uint64_t incarnation)
{
	int rc = keeper_own_dir(k->state_dir, &k->page->own_dirs[0]);

	if (!rc)
		rc = keeper_own_dir(k->store.path, &k->page->own_dirs[1]);
	if (!rc)
		rc = keeper_lock(k);
	if (rc) {
		rn_err(k->log, "state directory %s: cannot lock %s: %s", k->state_dir, KEEPER_LOCK,
		       strerror(-rc));
		return rc;
	}
	rc = keeper_lock_run(k, incarnation);
	if (rc)
		rn_err(k->log, "cluster.path %s: cannot lock a byte of the file runs: %s",
		       k->store.path, strerror(-rc));
	else
		atomic_store(&k->page->incarnation, incarnation);
	return rc;
}

void keeper_run_has_lost(const struct keeper *k)
{
	cluster_runs_drop(k->page->runs);
}

int keeper_of_earlier_run(const struct keeper *k)
{
	/* Runs share the lock, and a run's own is not in its way. */
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(k->page->lock, F_OFD_GETLK, &fl) < 0)
		return -errno;
	return fl.l_type != F_UNLCK;
}

int keeper_fd(const struct keeper *k)
{
	return k->pidfd;
}

bool keeper_lives(const struct keeper *k)
{
	struct pollfd p = { .fd = k->pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

void keeper_dismiss(struct keeper *k)
{
	if (!k)
		return;
	eventfd_write(k->wake, 1);
	keeper_free(k);
}

struct keeper_earlier keeper_for_next(const struct keeper *k)
{
	return (struct keeper_earlier){ k->wake, k->pidfd };
}

void keeper_end_earlier(const struct keeper_earlier *e)
{
	struct pollfd p = { .fd = e->pidfd, .events = POLLIN };
	siginfo_t info;

	eventfd_write(e->wake, 1);
	/* One that was stopped (SIGSTOP) ends when it goes on; nobody waits for that. */
	if (poll(&p, 1, KEEPER_ENDS_MS) == 1)
		(void)waitid(P_PIDFD, (id_t)e->pidfd, &info, WEXITED | WNOHANG | __WALL);
	close(e->wake);
	close(e->pidfd);
}
