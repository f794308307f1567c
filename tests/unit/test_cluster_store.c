/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stores: versions, several processes at once, processes that are killed, files that are damaged. With CLUSTER_STORE_CEPH_CONF in the
 * environment the store is one in RADOS, pool "nfs", user "ringnfs", as tests/net/cephfs.py starts it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/member.h"
#include "lib/clock.h"
#include "lib/error.h"

static char dir[] = "/tmp/ringnfs-cluster-XXXXXX";
static struct cluster_store *store;

static bool is_rados(void)
{
	return getenv("CLUSTER_STORE_CEPH_CONF") != NULL;
}

static struct cluster_store *open_store(void)
{
	struct cluster_store_cfg cfg = {
		.path = dir,
		.cluster = dir + sizeof("/tmp/ringnfs-cluster-") - 1, /* differs for each test */
		.pool = "nfs",
		.ceph_conf = getenv("CLUSTER_STORE_CEPH_CONF"),
		.ceph_user = "ringnfs",
		.ceph_fs = "",
		.dead_ms = 10000,
		.is_rados = is_rados(),
	};
	struct cluster_store *s = NULL;

	cr_assert_eq(cluster_store_open(&cfg, NULL, &s), 0);
	return s;
}

static void make_store(void)
{
	cr_assert_not_null(mkdtemp(dir));
	store = open_store();
}

static void close_store(void)
{
	if (store)
		store->ops->close(store);
	store = NULL;
}

static void remove_store(void)
{
	char command[64];

	close_store();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_expect_eq(system(command), 0);
}

#define FILES_ONLY()                                                                               \
	do {                                                                                       \
		if (is_rados()) {                                                                  \
			close_store(); /* librados's threads must not outlive the test */          \
			cr_skip_test("for files only");                                            \
		}                                                                                  \
	} while (0)

TestSuite(cluster_store, .init = make_store, .fini = remove_store);

static enum cluster_refusal join(struct cluster_object *o, const char *name,
				 struct cluster_self *self)
{
	const struct cluster_starter starter = { .name = name, .dead_ms = 10000 };

	return cluster_join(o, &starter, self);
}

static const char *path_of(const char *file)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return path;
}

Test(cluster_store, versions)
{
	struct cluster_object o, back;
	struct cluster_self self;
	uint64_t version;

	cr_assert_eq(cluster_store_read(store, &o, &version), 0);
	cr_expect_eq(version, 0);
	cr_expect_eq(o.nmembers, 0);
	cr_assert_eq(join(&o, "a", &self), CLUSTER_OK);
	cr_expect_eq(cluster_store_swap(store, 1, &o), -RN_ECHANGED);
	cr_assert_eq(cluster_store_read(store, &back, &version), 0);
	cr_expect_eq(version, 0, "there is none yet");
	cr_assert_eq(cluster_store_swap(store, 0, &o), 0);
	cr_expect_eq(cluster_store_swap(store, 0, &o), -RN_ECHANGED);
	cr_assert_eq(cluster_store_read(store, &back, &version), 0);
	cr_expect_neq(version, 0);
	cr_expect(memcmp(&back, &o, sizeof(o)) == 0);
	cr_expect_eq(cluster_store_swap(store, version + 1, &o), -RN_ECHANGED);
	cr_expect_eq(cluster_store_swap(store, version, &o), 0);
	cr_expect_eq(store->ops->evict(store, "a", 1), is_rados() ? 0 : -EOPNOTSUPP);
}

Test(cluster_store, no_directory)
{
	FILES_ONLY();
	struct cluster_store *s;

	cr_expect_eq(cluster_store_file_open("/nonexistent/cluster", &s), -ENOENT);
	cr_expect_eq(cluster_store_file_open("/etc/passwd", &s), -ENOTDIR);
}

Test(cluster_store, heartbeats)
{
	const struct cluster_beat beat = { "a", 7, 8, 9 };
	struct cluster_beat back;
	char other[128];

	cr_expect_eq(store->ops->look(store, "a", &back), -ENOENT);
	cr_assert_eq(store->ops->beat(store, &beat), 0);
	cr_assert_eq(store->ops->look(store, "a", &back), 0);
	cr_expect(memcmp(&back, &beat, sizeof(beat)) == 0);
	if (is_rados())
		return;
	/* A file of another name is no heartbeat of this one. */
	snprintf(other, sizeof(other), "%s", path_of("beat.c"));
	cr_assert_eq(link(path_of("beat.a"), other), 0);
	cr_expect_eq(store->ops->look(store, "c", &back), -EBADMSG);
	cr_assert_eq(truncate(path_of("beat.a"), 20), 0);
	cr_expect_eq(store->ops->look(store, "a", &back), -EBADMSG);
	cr_assert_eq(store->ops->beat(store, &beat), 0);
	cr_expect_eq(store->ops->look(store, "a", &back), 0, "the next heartbeat mends it");
	cr_assert_eq(truncate(path_of("beat.a"), 5000), 0);
	cr_expect_eq(store->ops->look(store, "a", &back), -EBADMSG);
	cr_assert_eq(mkfifo(path_of("beat.b"), 0600), 0);
	cr_expect_lt(store->ops->look(store, "b", &back), 0, "a pipe does not make it wait");
}

Test(cluster_store, waiting)
{
	struct cluster_object o;
	uint64_t version, start = rn_now_ms();

	cr_assert_eq(cluster_store_read(store, &o, &version), 0);
	cr_expect_eq(cluster_store_wait(store, version, 120), 0);
	cr_expect_geq(rn_now_ms() - start, 120);
	cr_assert_eq(cluster_store_swap(store, version, &o), 0);
	start = rn_now_ms();
	cr_expect_eq(cluster_store_wait(store, version, 60000), 0);
	cr_expect_lt(rn_now_ms() - start, 30000);
}

/* Each damage is told, and a damaged object is not replaced as if there were none. */
Test(cluster_store, damage)
{
	FILES_ONLY();
	struct cluster_object o;
	uint64_t version;
	struct stat st;
	uint8_t byte;
	int fd;

	cluster_init(&o);
	cr_assert_eq(cluster_store_swap(store, 0, &o), 0);
	fd = open(path_of("object"), O_RDWR);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		cr_assert_eq(pread(fd, &byte, 1, at), 1);
		cr_assert_eq(pwrite(fd, &(uint8_t){ (uint8_t)(byte ^ 0x10) }, 1, at), 1);
		cr_expect_eq(cluster_store_read(store, &o, &version), -EBADMSG, "byte %d", (int)at);
		cr_expect_eq(cluster_store_swap(store, 1, &o), -EBADMSG);
		cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
	}
	cr_expect_eq(cluster_store_read(store, &o, &version), 0);
	cr_assert_eq(ftruncate(fd, 1 << 20), 0);
	cr_expect_eq(cluster_store_read(store, &o, &version), -EBADMSG);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_expect_eq(cluster_store_read(store, &o, &version), -EBADMSG);
	close(fd);
}

/* A process that holds the lock and does not let go: a swap gives up. */
Test(cluster_store, lock_of_a_dead_machine)
{
	FILES_ONLY();
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const int fd = open(path_of("lock"), O_RDWR);
	struct cluster_object o;
	uint64_t version;

	cluster_init(&o);
	cr_assert_eq(fcntl(fd, F_OFD_SETLK, &fl), 0);
	cr_expect_eq(cluster_store_swap(store, 0, &o), -ETIMEDOUT);
	cr_expect_eq(cluster_store_read(store, &o, &version), 0, "reading needs no lock");
	close(fd);
	cr_expect_eq(cluster_store_swap(store, 0, &o), 0);
}

/* Restarts member `name` n times; each is one change. */
static void restart_often(const char *name, unsigned n)
{
	struct cluster_store *s = open_store();
	struct cluster_object o;
	struct cluster_self self;
	uint64_t version;

	while (n > 0) {
		if (cluster_store_read(s, &o, &version) != 0 || join(&o, name, &self) != CLUSTER_OK)
			_exit(1);
		const int rc = cluster_store_swap(s, version, &o);

		if (rc == 0)
			n--;
		else if (rc != -RN_ECHANGED && rc != -ETIMEDOUT)
			_exit(2);
	}
	s->ops->close(s);
	_exit(0);
}

#define PROCESSES 4u
#define CHANGES 100u

Test(cluster_store, several_processes, .timeout = 300)
{
	static const char *const names[PROCESSES] = { "a", "b", "c", "d" };
	struct cluster_object o;
	uint64_t version;
	int status;

	for (unsigned i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			restart_often(names[i], CHANGES);
	for (unsigned i = 0; i < PROCESSES; i++) {
		cr_assert_gt(wait(&status), 0);
		cr_expect_eq(status, 0);
	}
	cr_assert_eq(cluster_store_read(store, &o, &version), 0);
	cr_expect_eq(o.last_incarnation, PROCESSES * CHANGES, "no change was lost");
	if (!is_rados())
		cr_expect_eq(version, PROCESSES * CHANGES);
}

/* Writers are killed at any step: the object is whole, its version only grows, and others go on. */
Test(cluster_store, killed_processes, .timeout = 300)
{
	struct cluster_object o;
	uint64_t version, last = 0, before, until;
	int status;

	srandom(1);
	for (unsigned round = 0; round < 60; round++) {
		const pid_t pid = fork();

		before = last;
		until = 0;
		if (pid == 0)
			restart_often("a", UINT32_MAX);
		do {
			cr_assert_eq(cluster_store_read(store, &o, &version), 0);
			cr_assert_geq(version, last);
			cr_assert(is_rados() || o.last_incarnation == version);
			last = version;
			/* Some time after the first change, which is late on a busy machine. */
			if (last > before && until == 0)
				until = rn_now_ns() + (uint64_t)random() % 30000000u;
		} while (last == before || rn_now_ns() < until);
		cr_assert_eq(kill(pid, SIGKILL), 0);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert(WIFSIGNALED(status), "the writer ended by itself: %x", (unsigned)status);
	}
	cr_assert_eq(cluster_store_read(store, &o, &version), 0);
	cr_expect_eq(cluster_store_swap(store, version, &o), 0);
}

/* Clients of CephFS that do not exist, so that none is evicted. */
Test(cluster_store, clients)
{
	const struct cluster_self a = { "a", 7 }, again = { "a", 9 }, b = { "b", 8 };
	const uint64_t clients[] = { 1, 2 };

	if (!is_rados())
		cr_skip_test("for RADOS only");
	cr_assert_eq(store->ops->use(store, &a, clients, 2), 0);
	cr_expect_eq(store->ops->use(store, &b, clients, 1), -EBUSY, "another member has it");
	cr_expect_eq(store->ops->use(store, &again, clients, 1), 0, "the same machine");
	/* 1 is this process's, 2 was its last run's. Its keeper has some time. */
	cr_expect_eq(store->ops->evict(store, "a", 7), -EINPROGRESS);
	cr_expect_eq(store->ops->use(store, &a, NULL, 0), 0, "the keeper has released it");
	cr_expect_eq(store->ops->evict(store, "a", 7), 0);
	cr_expect_eq(store->ops->use(store, &b, clients + 1, 1), 0);
}

/* ---- members as processes ---- */

#define SHORT_DEAD_MS 4000u

struct process {
	bool enforcing, fenced;
};

static void on_enforce(void *ctx, bool on)
{
	((struct process *)ctx)->enforcing = on;
}

static void on_reclaim(void *ctx, uint64_t epoch)
{
	(void)ctx;
	(void)epoch;
}

static void on_fenced(void *ctx, const char *reason)
{
	(void)reason;
	((struct process *)ctx)->fenced = true;
}

static const struct member_calls calls = { .enforce = on_enforce,
					   .reclaim_allowed = on_reclaim,
					   .fenced = on_fenced };

static struct member *start_member(const char *name, struct cluster_store *s, struct process *p)
{
	const struct member_cfg cfg = {
		{ .name = name, .dead_ms = SHORT_DEAD_MS }, s, &calls, p, NULL
	};
	enum cluster_refusal refusal;
	struct member *m = NULL;

	cr_assert_eq(member_start(&cfg, &m, &refusal), 0);
	return m;
}

/* A member that serves until it is fenced. */
static void be_member(const char *name)
{
	struct process p = { .enforcing = true };
	struct member *m = start_member(name, open_store(), &p);

	while (!p.fenced)
		member_wait(m, member_step(m));
	_exit(member_may_answer(m) ? 1 : 42);
}

static enum cluster_state state_of(const char *name)
{
	const struct cluster_member *row;
	struct cluster_object o;
	uint64_t version;

	cr_assert_eq(cluster_store_read(store, &o, &version), 0);
	row = cluster_look(&o, name);
	return row ? row->state : 0;
}

/* True if the member has joined, and has given back the lock under which it did: a process that is stopped with that lock keeps others from any change. */
static bool has_beaten(const char *name)
{
	struct cluster_beat beat;

	return store->ops->look(store, name, &beat) == 0;
}

/* A process is stopped for longer than its lease: the other declares it dead and enforces; once it goes on, it falls silent. */
Test(cluster_store, slow_process, .timeout = 120)
{
	struct process p = { .enforcing = true };
	struct member *m = start_member("a", store, &p);
	const pid_t pid = fork();
	uint64_t stopped = 0;
	int status;

	if (pid == 0)
		be_member("b");
	while (state_of("b") != CLUSTER_DEAD && !p.fenced) {
		if (stopped == 0 && has_beaten("b") && !p.enforcing) {
			cr_assert_eq(kill(pid, SIGSTOP), 0);
			stopped = rn_now_ms();
		}
		member_wait(m, member_step(m));
	}
	cr_assert_not(p.fenced, "this machine is too slow for the test");
	cr_expect_geq(rn_now_ms() - stopped, SHORT_DEAD_MS * 4 / 5);
	cr_expect(p.enforcing);
	cr_assert_eq(kill(pid, SIGCONT), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 42, "%x", (unsigned)status);
	member_free(m);
}
