/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/daemon_instance.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"

#define NAME "instance"
#define STATUS_SIZE 64 /* room for "PID BEGUN ENDED VERDICT\n" */

struct status {
	int pid;
	unsigned begun, ended; /* reloads */
	int verdict;	       /* verdict of the last reload that ended */
};

struct instance {
	int fd;
	struct status status;
	const struct rn_logger *log;
};

/* Writes the status in one call and at a fixed size, so that a reader never sees a part of it. */
static int instance_put_status(int fd, const struct status *st)
{
	char text[STATUS_SIZE + 1];
	int n = snprintf(text, sizeof(text), "%d %u %u %d", st->pid, st->begun, st->ended,
			 st->verdict);

	memset(text + n, ' ', STATUS_SIZE - (size_t)n);
	text[STATUS_SIZE - 1] = '\n';
	ssize_t done = pwrite(fd, text, STATUS_SIZE, 0);

	return done == STATUS_SIZE ? 0 : done < 0 ? -errno : -EIO;
}

static int instance_get_status(int fd, struct status *st)
{
	char text[STATUS_SIZE + 1] = "";
	ssize_t n = pread(fd, text, STATUS_SIZE, 0);

	if (n < 0)
		return -errno;
	return sscanf(text, "%d %u %u %d", &st->pid, &st->begun, &st->ended, &st->verdict) == 4
		       ? 0
		       : -EIO;
}

static int instance_open_file(const char *state_dir, int flags)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%s/" NAME, state_dir) >= sizeof(path))
		return -ENAMETOOLONG;
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? -errno : fd;
}

/* -EWOULDBLOCK: another has it, and so much later still. */
static int instance_await_lock(int fd, unsigned wait_ms)
{
	const struct timespec pause = { .tv_nsec = 10 * (long)RN_NS_PER_MS };
	const uint64_t until = rn_now_ms() + wait_ms;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || rn_now_ms() >= until)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int instance_lock_file(int fd, const char *state_dir, unsigned wait_ms,
			      const struct rn_logger *log)
{
	struct status other;
	const int rc = instance_await_lock(fd, wait_ms);

	if (rc != -EWOULDBLOCK)
		return rc;
	if (instance_get_status(fd, &other) < 0)
		other.pid = 0;
	rn_err(log,
	       "state directory %s: another ringnfsd (process %d) uses it: stop that one, or give "
	       "this one a directory of its own (server.state_dir)",
	       state_dir, other.pid);
	return -EBUSY;
}

int instance_take(const char *state_dir, unsigned wait_ms, const struct rn_logger *log,
		  struct instance **out)
{
	struct instance *inst = calloc(1, sizeof(*inst));
	int rc = 0;

	if (!inst)
		return -ENOMEM;
	inst->log = log;
	inst->status.pid = getpid();
	inst->fd = instance_open_file(state_dir, O_RDWR | O_CREAT);
	if (inst->fd < 0)
		rc = inst->fd;
	else
		rc = instance_lock_file(inst->fd, state_dir, wait_ms, log);
	if (!rc)
		rc = instance_put_status(inst->fd, &inst->status);
	if (rc && rc != -EBUSY)
		rn_err(log, "state directory %s: cannot write %s: %s", state_dir, NAME,
		       strerror(-rc));
	if (rc) {
		instance_release(inst);
		return rc;
	}
	*out = inst;
	return 0;
}

int instance_adopt(int fd, const struct rn_logger *log, struct instance **out)
{
	struct instance *inst = calloc(1, sizeof(*inst));

	if (!inst) {
		close(fd);
		return -ENOMEM;
	}
	inst->fd = fd;
	inst->log = log;
	if (instance_get_status(fd, &inst->status) < 0)
		inst->status = (struct status){ 0 };
	inst->status.pid = getpid();
	*out = inst;
	return instance_put_status(fd, &inst->status);
}

int instance_fd(const struct instance *inst)
{
	return inst->fd;
}

void instance_release(struct instance *inst)
{
	if (!inst)
		return;
	if (inst->fd >= 0)
		/* also unlocks. The file stays, or two daemons could lock two files of that name */
		close(inst->fd);
	free(inst);
}

static void publish(struct instance *inst)
{
	int rc = instance_put_status(inst->fd, &inst->status);

	if (rc)
		rn_warn(inst->log, "cannot write the state of the reload: %s", strerror(-rc));
}

void instance_reload_begins(struct instance *inst)
{
	inst->status.begun++;
	publish(inst);
}

void instance_reload_ended(struct instance *inst, int verdict)
{
	inst->status.ended = inst->status.begun;
	inst->status.verdict = verdict;
	publish(inst);
}

/* Reads the running daemon's status; -ESRCH if no process holds the lock. */
static int running(int fd, struct status *st)
{
	if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
		flock(fd, LOCK_UN);
		return -ESRCH;
	}
	return errno == EWOULDBLOCK ? instance_get_status(fd, st) : -errno;
}

/*
 * Waits for a verdict. The exports were written before this process started, so every reload that
 * begins after the first look has read them, and its verdict counts. SIGHUP is pending once however
 * often it is sent, so one reload may answer several callers.
 */
static int wait_for_verdict(int fd, unsigned begun_before, unsigned seconds)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	struct status st;

	for (unsigned i = 0; i < seconds * 50; i++) {
		int rc = running(fd, &st);

		if (rc)
			return rc;
		if ((int)(st.ended - begun_before) > 0)
			return st.verdict ? -EINVAL : 0;
		nanosleep(&pause, NULL);
	}
	return -ETIME;
}

int instance_ask_reload(const char *state_dir, unsigned seconds)
{
	struct status st;
	int fd = instance_open_file(state_dir, O_RDONLY);
	int rc = fd < 0 ? fd : running(fd, &st);

	if (!rc && kill(st.pid, SIGHUP) < 0)
		rc = -errno;
	if (!rc)
		rc = wait_for_verdict(fd, st.begun, seconds);
	if (fd >= 0)
		close(fd);
	if (rc == -ESRCH || rc == -ENOENT)
		fprintf(stderr, "ringnfsd: none is running with the state directory %s\n",
			state_dir);
	else if (rc == -EINVAL)
		fprintf(stderr, "ringnfsd: the reload was refused, the old exports stay in force: "
				"the log says why, as does ringnfsd --check-config\n");
	else if (rc == -ETIME)
		fprintf(stderr, "ringnfsd: no answer to the reload after %u seconds\n", seconds);
	else if (rc)
		fprintf(stderr, "ringnfsd: %s: %s\n", state_dir, strerror(-rc));
	return rc;
}
