/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/cluster_takeover.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/cluster_store.h"
#include "daemon/cluster_part.h"
#include "daemon/cluster_runs.h"
#include "daemon/daemon_instance.h"
#include "daemon/process.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "vfs/export.h"
#include "vfs/mount_table.h"

#define LOOK_MS 200u	       /* between looks */
#define INSTANCE_WAIT_MS 3000u /* time limit for a keeper to release the state directory */
#define ANSWER_MS 3000u	       /* time limit for the file system to answer */
#define LOCKS_MS 10000u	       /* time limit for it to tell of a dead run's locks */
#define RELEASE_MS 60000u      /* time limit for a grace to be enforced, and for evictions */

/* A run's heartbeat, and when it was first seen with that count. */
struct pulse {
	struct cluster_self run;
	uint64_t count, since; /* since: rn_now_ms() after the look that saw the count */
	bool moved;
};

/* A look for the locks of a run, on a thread of its own. */
struct takeover_locks {
	int fd; /* cluster_runs_open() */
	uint64_t run;
	int stands; /* 1, 0 or -errno */
	atomic_bool done;
};

struct takeover {
	struct cluster_store *store;
	const char *dir;  /* the cluster's directory */
	_Atomic int runs; /* result of cluster_runs_open(); -EINPROGRESS: it has not returned */
	bool no_answer;	  /* the file system has not told of locks in time */
	const char *name; /* this member's name */
	struct cluster_object o;
	uint64_t version;
	struct pulse pulse[CLUSTER_MEMBERS];
	uint64_t evicted
		[CLUSTER_MEMBERS]; /* by rows of the object: incarnations of dead members whose clients are evicted */
	bool undecided; /* it is not known yet whether a member lives */
	const struct rn_logger *log;
};

static struct pulse *takeover_pulse(struct takeover *t, const struct cluster_member *row)
{
	struct pulse *free_one = NULL;

	for (unsigned i = 0; i < CLUSTER_MEMBERS; i++) {
		struct pulse *p = &t->pulse[i];

		if (strcmp(p->run.name, row->name) == 0) {
			if (p->run.incarnation != row->incarnation)
				*p = (struct pulse){ .run = p->run };
			p->run.incarnation = row->incarnation;
			return p;
		}
		if (!*p->run.name || !cluster_look(&t->o, p->run.name))
			free_one = p;
	}
	*free_one = (struct pulse){ .run.incarnation = row->incarnation };
	memcpy(free_one->run.name, row->name, sizeof(free_one->run.name));
	return free_one;
}

/* 1: the heartbeat has stood still for longer than a lease lasts; 0: it has moved, or may yet; or -errno. Times are counted as in cluster/member.c. */
static int takeover_is_silent(struct takeover *t, const struct cluster_member *row)
{
	struct pulse *p = takeover_pulse(t, row);
	const uint64_t before = rn_now_ms();
	struct cluster_beat beat = { .count = 0 };
	const int rc = t->store->ops->look(t->store, row->name, &beat);

	if (rc && rc != -ENOENT && rc != -EBADMSG)
		return rc;
	if (p->since != 0 && (rc || beat.incarnation != row->incarnation || beat.count == p->count))
		return before >= p->since + t->o.dead_ms;
	p->moved = p->since != 0;
	if (p->moved && strcmp(row->name, t->name) == 0)
		return -EBUSY;
	p->count = rc || beat.incarnation != row->incarnation ? 0 : beat.count;
	p->since = rn_now_ms();
	return 0;
}

static void *takeover_locks_main(void *arg)
{
	struct takeover_locks *l = arg;

	l->stands = cluster_runs_stand(l->fd, l->run);
	atomic_store(&l->done, true);
	return NULL;
}

static void *takeover_open_main(void *arg)
{
	struct takeover *t = arg;

	atomic_store(&t->runs, cluster_runs_open(t->dir));
	return NULL;
}

/* Waits until that time for the file "runs" to be opened. */
static bool takeover_has_runs(const struct takeover *t, uint64_t until)
{
	while (atomic_load(&t->runs) == -EINPROGRESS && rn_now_ms() < until)
		rn_sleep_ms(5);
	return atomic_load(&t->runs) >= 0;
}

/* Opens the file "runs" before any other look-up in its directory: in FUSE, a look-up waits for one under way in the same directory. */
static void takeover_open_runs(struct takeover *t)
{
	pthread_t thread;

	atomic_store(&t->runs, -EINPROGRESS);
	if (pthread_create(&thread, NULL, takeover_open_main, t) != 0)
		atomic_store(&t->runs, -ENOMEM);
	else
		pthread_detach(thread);
	takeover_has_runs(t, rn_now_ms() + ANSWER_MS);
}

/* 0: the locks of that run are gone, or the file system does not tell, so that others may have been granted them; else 1. */
static int takeover_stands(void *ctx, uint64_t run, uint64_t since)
{
	const uint64_t until = rn_now_ms() + LOCKS_MS;
	struct takeover *t = ctx;
	struct takeover_locks *l;
	pthread_t thread;
	int stands = 0;

	(void)since;
	t->no_answer |= !takeover_has_runs(t, until);
	l = t->no_answer ? NULL : calloc(1, sizeof(*l));
	if (!l)
		return 0;
	l->fd = t->runs;
	l->run = run;
	if (pthread_create(&thread, NULL, takeover_locks_main, l) != 0) {
		free(l);
		return 0;
	}
	pthread_detach(thread);
	while (!atomic_load(&l->done) && rn_now_ms() < until)
		rn_sleep_ms(5);
	if (atomic_load(&l->done)) {
		stands = l->stands == 1;
		free(l);
	} else {
		t->no_answer = true; /* the thread uses the memory until the process ends */
	}
	rn_log(t->log, stands ? RN_INFO : RN_WARNING,
	       "cluster: the locks of run %" PRIu64 " of a member %s", run,
	       stands	      ? "are in the file system"
	       : t->no_answer ? "may be gone: the file system does not tell"
			      : "are gone from the file system: its clients may not reclaim");
	return stands;
}

/* True: the object has changed. */
static bool takeover_end_run(struct takeover *t, const struct cluster_member *row)
{
	static const struct member_calls calls = { .stands = takeover_stands };
	const struct member_cfg cfg = { .calls = &calls, .ctx = t };
	struct cluster_self run = { .incarnation = row->incarnation };

	memcpy(run.name, row->name, sizeof(run.name));
	return member_end_run(&cfg, &t->o, NULL, &run, 0) == 0;
}

/* Declares silent members dead, including this one's last run: if all machines have died, no running member does it. 0 or -errno. */
static int takeover_declare_dead(struct takeover *t)
{
	bool changed = false;

	t->undecided = false;
	for (unsigned i = 0; i < t->o.nmembers; i++) {
		const struct cluster_member *row = &t->o.member[i];
		const int silent = row->state == CLUSTER_RUNNING ? takeover_is_silent(t, row) : 0;

		if (silent < 0)
			return silent;
		t->undecided |= row->state == CLUSTER_RUNNING && !takeover_pulse(t, row)->moved;
		if (silent)
			changed |= takeover_end_run(t, row);
	}
	return changed ? cluster_store_swap(t->store, t->version, &t->o) : 0;
}

/* Has the file system clients of the next dead member evicted. 0: no dead member has any; or -errno. */
static int takeover_evict(struct takeover *t)
{
	for (unsigned i = 0; i < t->o.nmembers; i++) {
		const struct cluster_member *row = &t->o.member[i];
		struct cluster_self run = { .incarnation = row->incarnation };
		int rc;

		memcpy(run.name, row->name, sizeof(run.name));
		if (row->state == CLUSTER_RUNNING || t->evicted[i] == row->incarnation)
			continue;
		rc = cluster_may_release(&t->o, &run)
			     ? t->store->ops->evict(t->store, run.name, run.incarnation)
			     : -EINPROGRESS;
		if (rc)
			return rc;
		t->evicted[i] = row->incarnation;
	}
	return 0;
}

/* One look. 0: the clients of all dead members are evicted, and all others live; -EINPROGRESS: not yet; or -errno. */
static int takeover_step(struct takeover *t)
{
	int rc = cluster_store_read(t->store, &t->o, &t->version);

	if (!rc)
		rc = takeover_declare_dead(t);
	if (!rc)
		rc = takeover_evict(t);
	if (!rc)
		rc = t->undecided ? -EINPROGRESS : 0;
	return rc == -RN_ECHANGED ? -EINPROGRESS : rc;
}

static int takeover_run(struct takeover *t)
{
	const uint64_t began = rn_now_ms();
	int rc;

	for (;;) {
		rc = takeover_step(t);
		if (!rc || rc == -EBUSY || rc == -EOPNOTSUPP ||
		    rn_now_ms() >= began + t->o.dead_ms + RELEASE_MS)
			return rc;
		rn_sleep_ms(LOOK_MS);
	}
}

/* Number of the CephFS client that mounts the path. Asks the mount's root, as the directory itself may not answer. */
static uint64_t takeover_own_client(const char *path)
{
	struct vfs_mount_table table;
	const char *best = "/";
	uint64_t client = 0;

	if (vfs_mount_table_load(&table) != 0)
		return 0;
	for (size_t i = 0; i < table.n; i++) {
		const char *at = table.entry[i].path;

		if (strlen(at) >= strlen(best) && (vfs_path_below(path, at) || !strcmp(path, at)))
			best = at;
	}
	if (cluster_cephfs_client(best, &client) != 0)
		client = 0;
	vfs_mount_table_free(&table);
	return client;
}

/* Does all that may hang in the file system. */
static int takeover_try_state_dir(const struct cfg_settings *settings, const struct rn_logger *log)
{
	struct instance *inst;
	int rc = state_dir_make(settings->server.state_dir, NULL);

	(void)log;
	if (!rc)
		rc = instance_take(settings->server.state_dir, INSTANCE_WAIT_MS, NULL, &inst);
	return rc == -EBUSY ? rc : 0;
}

/* Runs the function in a child process, with a time limit: 0 or -EBUSY. */
static int takeover_beside(const struct cfg_settings *settings, const struct rn_logger *log,
			   int (*run)(const struct cfg_settings *, const struct rn_logger *),
			   uint64_t ms)
{
	const uint64_t until = rn_now_ms() + ms;
	const pid_t parent = getpid(), pid = fork();
	int status = 1;

	if (pid < 0)
		return -EBUSY;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			status = run(settings, log) != 0;
		process_leave(status);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (rn_now_ms() >= until) {
			kill(pid, SIGKILL);
			return -EBUSY;
		}
		rn_sleep_ms(5);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}

static int takeover_main(const struct cfg_settings *settings, const struct rn_logger *log)
{
	static struct takeover t; /* static: threads may use it until the process ends */
	struct cluster_store_cfg cfg = cluster_part_store_cfg(settings);
	int rc;

	t = (struct takeover){ .log = log,
			       .name = settings->cluster.instance,
			       .dir = settings->cluster.path };
	takeover_open_runs(&t);
	if (takeover_beside(settings, log, takeover_try_state_dir, INSTANCE_WAIT_MS + ANSWER_MS) ==
	    0)
		return 0;
	rn_notice(log,
		  "cluster: the state directory of member %s is locked, or does not answer: looks "
		  "for "
		  "members that have died, and has their clients of the file system evicted",
		  t.name);
	cfg.own_client = takeover_own_client(settings->server.state_dir);
	rc = cluster_store_open(&cfg, log, &t.store);
	if (!rc)
		rc = takeover_run(&t);
	if (rc)
		rn_err(log, "cluster: member %s cannot take over from its last run: %s", t.name,
		       rc == -EBUSY	    ? "it lives, on another machine perhaps"
		       : rc == -EINPROGRESS ? "other members still grant locks"
					    : cluster_store_error_text(rc));
	return rc;
}

void cluster_await_state_dir(const struct cfg_settings *settings, const struct rn_logger *log)
{
	if (settings->cluster.backend == CFG_BACKEND_RADOS)
		takeover_beside(settings, log, takeover_main,
				settings->cluster.dead_time * 1000 + 2 * RELEASE_MS);
}
