/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper of a cluster member. A child process stands for the daemon: it has locks, sockets and the state directory's files, and is
 * killed. The test itself is another member, the daemon's peer and whoever wants what it had.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/cluster_store.h"
#include "daemon/keeper.h"
#include "lib/clock.h"
#include "tests/unit/kernel_can.h"

#define MEMORY (64u << 20) /* bytes that the daemon uses after it has started its keeper */
#define SOON_MS 5000u	   /* something is to happen until then; machines may be slow */
#define LONG_MS 600u	   /* three looks of the keeper at the object */

static char dir[] = "/tmp/ringnfs-keeper-XXXXXX";
static struct cluster_store *store;
static struct cluster_self other; /* the test as a member */

/* Values that the child process, which stands for the daemon, passes to the test. */
struct told {
	int start, run, earlier, lives;
	struct cluster_self self;
	in_port_t port;
};

struct daemon {
	pid_t pid, keeper;
	int commands, answers;
	struct told told;
	struct rlimit files; /* rlim_cur: it has the exported file open so many times more */
	bool idle;	     /* true: it does not join */
	bool no_files;	     /* true: it has no exported file open */
	bool swaps;	     /* true: it is about to change the object */
	bool clones; /* true: it has files open whose paths look like others', by a mount of the export */
};

static char *path_of(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void rest_ms(unsigned ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

static enum cluster_refusal act_join(struct cluster_object *o, struct cluster_self *self)
{
	const struct cluster_starter starter = { .name = self->name,
						 .dead_ms = 10000,
						 .has_records = true };
	struct cluster_self joined;
	const enum cluster_refusal r = cluster_join(o, &starter, &joined);

	*self = joined;
	return r;
}

static enum cluster_refusal act_declare_dead(struct cluster_object *o, struct cluster_self *dead)
{
	return cluster_declare_dead(o, &other, dead->name, dead->incarnation);
}

static enum cluster_refusal act_enforce(struct cluster_object *o, struct cluster_self *self)
{
	return cluster_enforcing(o, self, o->epoch);
}

static enum cluster_refusal change_object(struct cluster_store *s,
					  enum cluster_refusal (*act)(struct cluster_object *,
								      struct cluster_self *),
					  struct cluster_self *self)
{
	struct cluster_object o;
	uint64_t version;

	if (cluster_store_read(s, &o, &version) != 0)
		return CLUSTER_FULL;
	const enum cluster_refusal r = act(&o, self);

	return r == CLUSTER_OK && cluster_store_swap(s, version, &o) ? CLUSTER_FULL : r;
}

static void make_world(void)
{
	NEED_KERNEL_CAN(share_descriptors);
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphaned keepers can be waited for */
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(mkdir(path_of("export"), 0700), 0);
	cr_assert_eq(mkdir(path_of("state"), 0700), 0);
	cr_assert_eq(mkdir(path_of("store"), 0700), 0);
	cr_assert_eq(cluster_store_file_open(path_of("store"), &store), 0);
	memcpy(other.name, "other", sizeof("other"));
	cr_assert_eq(change_object(store, act_join, &other), CLUSTER_OK);
}

static void remove_world(void)
{
	char command[64];

	if (!store)
		return;
	store->ops->close(store);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_expect_eq(system(command), 0);
}

TestSuite(keeper, .init = make_world, .fini = remove_world);

static void daemon_log(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	(void)ctx;
	(void)level;
	vdprintf(STDERR_FILENO, fmt, ap);
	dprintf(STDERR_FILENO, "\n");
}

static int lock_file(int fd, int cmd, short type)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(fd, cmd, &fl) < 0 ? -errno : 0;
}

static void daemon_opens_files(const struct daemon *d)
{
	const int file = open(path_of("export/file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (lock_file(file, F_OFD_SETLK, F_WRLCK) != 0)
		abort();
	for (rlim_t i = 0; i < d->files.rlim_cur; i++)
		if (open(path_of("export/file"), O_RDWR | O_CLOEXEC) < 0)
			abort();
}

/* Paths within the export, which its own mount shows as if they were the machine's. */
static const char *alias_of(unsigned i)
{
	static char path[2][256];

	snprintf(path[0], sizeof(path[0]), "/proc/file");
	snprintf(path[1], sizeof(path[1]), "%s/file", path_of("state"));
	return path[i];
}

static void daemon_opens_aliases(void)
{
	const int tree = (int)syscall(SYS_open_tree, AT_FDCWD, path_of("export"),
				      1 /* OPEN_TREE_CLONE */ | O_CLOEXEC);

	for (unsigned i = 0; i < 2; i++)
		if (lock_file(openat(tree, alias_of(i) + 1, O_RDWR | O_CLOEXEC), F_OFD_SETLK,
			      F_WRLCK) != 0)
			abort();
}

/* The keeper's lock gets a number above those of that many files, so that an end of the process which closes all would free it first. */
static int daemon_joins(const struct daemon *d, struct keeper *k, uint64_t incarnation)
{
	const int first = dup(STDERR_FILENO);
	int rc;

	for (rlim_t i = 0; i < d->files.rlim_cur; i++)
		if (dup(STDERR_FILENO) < 0)
			abort();
	rc = keeper_run_is(k, incarnation);
	close_range((unsigned)first, (unsigned)(first + (int)d->files.rlim_cur), 0);
	return rc;
}

/* Opens descriptors that a daemon has beside those of its exports: the keeper must close them. */
static void daemon_opens_others(const struct daemon *d, struct told *told)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	const int instance = open(path_of("state/instance"), O_RDWR | O_CREAT, 0600);
	const int db = open(path_of("state/db"), O_RDWR | O_CREAT, 0600);
	const int swap = open(path_of("store/lock"), O_RDWR | O_CREAT, 0600);
	const int memory = memfd_create("payload", 0);

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&a, &(socklen_t){ sizeof(a) }) < 0 ||
	    flock(instance, LOCK_EX | LOCK_NB) < 0 || lock_file(db, F_SETLK, F_WRLCK) != 0 ||
	    (d->swaps && lock_file(swap, F_OFD_SETLK, F_WRLCK) != 0) ||
	    ftruncate(memory, MEMORY) < 0 || epoll_create1(0) < 0 ||
	    open(path_of("export"), O_RDONLY | O_DIRECTORY) < 0 ||
	    open(path_of("export/file"), O_PATH) < 0)
		abort();
	const int control = open(path_of("control"), O_RDWR | O_CREAT, 0600);

	if (flock(control, LOCK_EX | LOCK_NB) < 0)
		abort();
	/* Where the kernel gives them. */
	syscall(SYS_io_uring_setup, 8, &(struct io_uring_params){ 0 });
	fanotify_init(FAN_CLASS_CONTENT, O_RDONLY);
	told->port = a.sin_port;
}

static void daemon_takes_commands(struct keeper *k, struct told *told, int commands, int answers)
{
	char c;

	while (read(commands, &c, 1) == 1) {
		if (c == 'd')
			keeper_dismiss(k);
		if (c != '?')
			_exit(0);
		told->earlier = keeper_of_earlier_run(k);
		told->lives = keeper_lives(k);
		if (write(answers, told, sizeof(*told)) < 0)
			abort();
	}
	_exit(1);
}

static void daemon_main(const struct daemon *d, int commands, int answers)
{
	const struct rn_logger log = { .level = RN_DEBUG, .write = daemon_log };
	const struct keeper_cfg cfg = { .member = "member",
					.store.path = path_of("store"),
					.state_dir = path_of("state"),
					.log = &log };
	struct told told = { .self.name = "member" };
	struct keeper *k = NULL;
	struct cluster_store *own;
	char *memory;

	close(STDERR_FILENO);
	if (open(path_of("log"), O_WRONLY | O_CREAT | O_APPEND, 0600) != STDERR_FILENO)
		abort();
	told.start = keeper_start(&cfg, &k);
	if (told.start == 0 && !d->idle) {
		if (cluster_store_file_open(path_of("store"), &own) != 0 ||
		    change_object(own, act_join, &told.self) != CLUSTER_OK)
			abort();
		told.run = daemon_joins(d, k, told.self.incarnation);
		told.earlier = keeper_of_earlier_run(k);
		told.lives = keeper_lives(k);
	}
	if (told.earlier == 0 && !d->no_files)
		daemon_opens_files(d);
	if (d->clones)
		daemon_opens_aliases();
	memory = malloc(MEMORY);
	memset(memory, 1, MEMORY);
	daemon_opens_others(d, &told);
	if (write(answers, &told, sizeof(told)) < 0)
		abort();
	daemon_takes_commands(k, &told, commands, answers);
}

/* The child of that process which is a keeper; 0: it has none. */
static pid_t find_keeper(pid_t parent)
{
	DIR *proc = opendir("/proc");
	const struct dirent *e;
	pid_t found = 0;

	while (!found && (e = readdir(proc))) {
		char path[300], comm[32];
		int pid, ppid;

		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		FILE *f = fopen(path, "re");

		if (!f)
			continue;
		if (fscanf(f, "%d (%31[^)]) %*c %d", &pid, comm, &ppid) == 3 && ppid == parent &&
		    strcmp(comm, "ringnfs-keeper") == 0)
			found = pid;
		fclose(f);
	}
	closedir(proc);
	return found;
}

static void hear(struct daemon *d)
{
	cr_assert_eq(read(d->answers, &d->told, sizeof(d->told)), (ssize_t)sizeof(d->told));
}

static void command(struct daemon *d, char c)
{
	cr_assert_eq(write(d->commands, &c, 1), 1);
	if (c == '?')
		hear(d);
}

static void start(struct daemon *d)
{
	int to[2], from[2];

	cr_assert_eq(pipe2(to, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(from, O_CLOEXEC), 0);
	d->pid = fork();
	if (d->pid == 0) {
		/* The child has no descriptors of the test, which would hold locks. */
		if (dup2(to[0], 3) < 0 || dup2(from[1], 4) < 0 || close_range(5, ~0u, 0) < 0)
			abort();
		daemon_main(d, 3, 4);
	}
	close(to[0]);
	close(from[1]);
	d->commands = to[1];
	d->answers = from[0];
	hear(d);
	cr_assert_eq(d->told.start, 0);
	cr_assert_eq(d->told.run, 0);
	d->keeper = find_keeper(d->pid);
	cr_assert_gt(d->keeper, 0);
}

static void kill_daemon(struct daemon *d)
{
	kill(d->pid, SIGKILL);
	cr_assert_eq(waitpid(d->pid, NULL, 0), d->pid);
}

/* True if the process, an orphan, ends within that time. */
static bool ends_within(pid_t pid, unsigned ms)
{
	const uint64_t until = rn_now_ms() + ms;

	do {
		if (waitpid(pid, NULL, WNOHANG | __WALL) == pid)
			return true;
		rest_ms(5);
	} while (rn_now_ms() < until);
	return false;
}

/* Another's try to lock a file. */
static int try_lock_of(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	const int rc = lock_file(fd, F_OFD_SETLK, F_WRLCK);

	close(fd);
	return rc;
}

static int try_lock(void)
{
	return try_lock_of(path_of("export/file"));
}

/* True if the file stays locked for some looks of the keeper. */
static bool stays_locked(void)
{
	const uint64_t until = rn_now_ms() + LONG_MS;

	while (try_lock() == -EAGAIN && rn_now_ms() < until)
		rest_ms(2);
	return try_lock() == -EAGAIN;
}

static void finish(struct daemon *d)
{
	const bool ended = ends_within(d->keeper, SOON_MS);

	cr_expect(ended);
	if (!ended)
		kill(d->keeper, SIGKILL);
	cr_expect_eq(try_lock(), 0);
	close(d->commands);
	close(d->answers);
}

/* True if the log has that text. */
static bool logged(const char *text)
{
	char log[4096];
	const int fd = open(path_of("log"), O_RDONLY);
	const ssize_t n = read(fd, log, sizeof(log) - 1);

	close(fd);
	log[n < 0 ? 0 : n] = '\0';
	return strstr(log, text) != NULL;
}

Test(keeper, locks_stay_until_all_enforce)
{
	struct daemon d = { 0 };

	start(&d);
	cr_expect_eq(try_lock(), -EAGAIN);
	kill_daemon(&d);
	cr_expect(stays_locked());
	cr_assert_eq(change_object(store, act_declare_dead, &d.told.self), CLUSTER_OK);
	cr_expect(stays_locked());
	cr_assert_eq(change_object(store, act_enforce, &other), CLUSTER_OK);
	finish(&d);
	cr_expect(logged("has died: 1 of its files stay open"));
	cr_expect(logged("the cluster allows it"));
}

/* The daemon has mounts of its exports to itself, and descriptors have paths in them. */
Test(keeper, paths_in_exports_are_no_others)
{
	struct daemon d = { .clones = true };
	char command[3400], path[2][800];

	NEED_KERNEL_CAN(clone_mounts);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "%s%s", path_of("export"), alias_of(i));
		snprintf(command, sizeof(command), "mkdir -p $(dirname %s) && touch %s", path[i],
			 path[i]);
		cr_assert_eq(system(command), 0);
	}
	start(&d);
	kill_daemon(&d);
	cr_expect(stays_locked());
	cr_expect_eq(try_lock_of(path[0]), -EAGAIN);
	cr_expect_eq(try_lock_of(path[1]), -EAGAIN);
	kill(d.keeper, SIGKILL);
	finish(&d);
}

static int connect_to(in_port_t port)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = port,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void expect_port_is_free(in_port_t port)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = port,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	cr_expect_eq(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	cr_expect_eq(listen(fd, 1), 0);
	close(fd);
}

/* The next run needs these. */
static void expect_state_is_free(void)
{
	const int instance = open(path_of("state/instance"), O_RDWR);
	const int db = open(path_of("state/db"), O_RDWR);
	const int swap = open(path_of("store/lock"), O_RDWR);
	const int control = open(path_of("control"), O_RDWR);

	cr_expect_eq(flock(instance, LOCK_EX | LOCK_NB), 0);
	cr_expect_eq(flock(control, LOCK_EX | LOCK_NB), 0);
	cr_expect_eq(lock_file(db, F_SETLK, F_WRLCK), 0);
	cr_expect_eq(lock_file(swap, F_OFD_SETLK, F_WRLCK), 0);
	close(instance);
	close(db);
	close(swap);
	close(control);
}

/* Descriptors of the keeper: the locked file, its own of the store, its lock, the log; nothing else. */
static void expect_few_descriptors(pid_t keeper)
{
	char path[320], link[256];
	unsigned files = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", keeper);
	DIR *fds = opendir(path);
	const struct dirent *e;

	cr_assert_not_null(fds);
	while ((e = readdir(fds))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", keeper, e->d_name);
		const ssize_t n = readlink(path, link, sizeof(link) - 1);

		link[n < 0 ? 0 : n] = '\0';
		files += strcmp(link, path_of("export/file")) == 0;
		cr_expect(n < 0 || strcmp(link, "/dev/null") == 0 ||
				  strncmp(link, dir, strlen(dir)) == 0,
			  "%s is open", link);
		cr_expect_neq(strcmp(link, path_of("export")), 0);
		cr_expect_neq(strcmp(link, path_of("state/db")), 0);
	}
	closedir(fds);
	cr_expect_eq(files, 1);
}

/* KiB. */
static unsigned long memory_of(pid_t pid)
{
	char path[64], line[128];
	unsigned long kib = 0;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	FILE *f = fopen(path, "re");

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Rss: %lu", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

Test(keeper, all_but_files_is_closed)
{
	struct daemon d = { .swaps = true };
	struct pollfd p = { .events = POLLIN };
	uint64_t ns;

	start(&d);
	p.fd = connect_to(d.told.port);
	kill(d.pid, SIGKILL);
	ns = rn_now_ns();
	cr_expect_eq(poll(&p, 1, SOON_MS), 1);
	ns = rn_now_ns() - ns;
	cr_expect_leq(recv(p.fd, &(char){ 0 }, 1, 0), 0);
	cr_log_info("the peer saw the end after %llu us", (unsigned long long)ns / 1000);
	waitpid(d.pid, NULL, 0);
	/* Its end of the pipe, too. */
	cr_expect_eq(read(d.answers, &(char){ 0 }, 1), 0);
	for (uint64_t end = rn_now_ms() + SOON_MS; !logged("has died") && rn_now_ms() < end;)
		rest_ms(2);
	expect_port_is_free(d.told.port);
	expect_state_is_free();
	cr_expect(stays_locked());
	if (geteuid() == 0) {
		expect_few_descriptors(d.keeper);
		cr_log_info("the keeper has %lu KiB", memory_of(d.keeper));
		cr_expect_lt(memory_of(d.keeper), MEMORY / 1024 / 2);
	}
	kill(d.keeper, SIGKILL);
	close(p.fd);
	finish(&d);
}

Test(keeper, ends_with_the_daemon)
{
	struct daemon d = { 0 };

	start(&d);
	cr_expect(d.told.lives);
	command(&d, 'd');
	cr_assert_eq(waitpid(d.pid, NULL, 0), d.pid);
	cr_expect_eq(kill(d.keeper, 0), -1); /* the daemon has waited for it */
	cr_expect_eq(try_lock(), 0);
	expect_port_is_free(d.told.port);
	cr_expect_not(logged("has died"));
}

/* An end without keeper_dismiss(), as that of a fenced daemon, is a crash. */
Test(keeper, exit_is_a_crash)
{
	struct daemon d = { 0 };

	start(&d);
	command(&d, 'x');
	cr_assert_eq(waitpid(d.pid, NULL, 0), d.pid);
	cr_expect(stays_locked());
	kill(d.keeper, SIGKILL);
	finish(&d);
}

Test(keeper, the_daemon_sees_its_keeper_die)
{
	struct daemon d = { 0 };

	start(&d);
	kill(d.keeper, SIGKILL);
	for (uint64_t end = rn_now_ms() + SOON_MS; d.told.lives && rn_now_ms() < end;)
		command(&d, '?');
	cr_expect_not(d.told.lives);
	cr_expect_eq(try_lock(), -EAGAIN); /* the daemon has it still */
	command(&d, 'd');
	cr_assert_eq(waitpid(d.pid, NULL, 0), d.pid);
}

Test(keeper, a_run_that_has_not_joined_leaves_nothing)
{
	struct daemon d = { .idle = true };

	start(&d);
	kill_daemon(&d);
	finish(&d);
	cr_expect_not(logged("has died"));
}

Test(keeper, nothing_to_keep)
{
	struct daemon d = { .no_files = true };

	fclose(fopen(path_of("export/file"), "w"));
	start(&d);
	kill_daemon(&d);
	finish(&d);
}

/* The member is started again while the keeper of its last run holds the locks: clients may reclaim when that has ended. */
Test(keeper, the_next_run_knows_of_it)
{
	struct daemon first = { 0 }, second = { .files = { 0 } };

	start(&first);
	cr_expect_eq(first.told.earlier, 0);
	kill_daemon(&first);
	for (uint64_t end = rn_now_ms() + SOON_MS; !logged("has died") && rn_now_ms() < end;)
		rest_ms(2);
	start(&second);
	cr_expect_eq(second.told.earlier, 1);
	cr_expect_neq(second.told.self.incarnation, first.told.self.incarnation);
	cr_expect(stays_locked()); /* the new run enforces from the start, the other one does not */
	command(&second, '?');
	cr_expect_eq(second.told.earlier, 1);
	cr_assert_eq(change_object(store, act_enforce, &other), CLUSTER_OK);
	finish(&first);
	command(&second, '?');
	cr_expect_eq(second.told.earlier, 0);
	command(&second, 'd');
	waitpid(second.pid, NULL, 0);
}

static unsigned long long status_of(pid_t pid, const char *field)
{
	char path[64], line[256];
	unsigned long long value = ~0ull;
	const size_t len = strlen(field);

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, field, len) == 0 && line[len] == ':')
			value = strtoull(line + len + 1, NULL, 16);
	fclose(f);
	return value;
}

/* The command line is not the daemon's either. */
static void expect_name(pid_t pid)
{
	char path[64], name[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_expect_gt(read(fd, name, sizeof(name) - 1), 0);
	close(fd);
	cr_expect_str_eq(name, "ringnfs-keeper");
}

Test(keeper, has_no_rights_and_heeds_no_signals)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGABRT };
	struct daemon d = { 0 };

	start(&d);
	cr_expect_eq(status_of(d.keeper, "CapEff"), 0);
	cr_expect_eq(status_of(d.keeper, "CapPrm"), 0);
	cr_expect_eq(status_of(d.keeper, "NoNewPrivs"), 1);
	expect_name(d.keeper);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		kill(d.keeper, signals[i]);
	kill_daemon(&d);
	cr_expect(stays_locked());
	kill(d.keeper, SIGKILL);
	finish(&d);
}

/* Nobody knows what others were granted. */
Test(keeper, without_the_object_nothing_is_released)
{
	struct daemon d = { 0 };

	start(&d);
	cr_assert_eq(change_object(store, act_declare_dead, &d.told.self), CLUSTER_OK);
	cr_assert_eq(rename(path_of("store"), path_of("away")), 0);
	kill_daemon(&d);
	cr_expect(stays_locked());
	/* Another directory of that name says nothing of this cluster. */
	cr_assert_eq(mkdir(path_of("store"), 0700), 0);
	cr_expect(stays_locked());
	cr_expect_eq(unlink(path_of("store/lock")), 0);
	cr_assert_eq(rmdir(path_of("store")), 0);
	cr_assert_eq(rename(path_of("away"), path_of("store")), 0);
	cr_expect(stays_locked());
	cr_assert_eq(change_object(store, act_enforce, &other), CLUSTER_OK);
	finish(&d);
}

/* A FUSE file system whose server has gone answers as one whose client was evicted. */
static bool lay_dead_mount(const char *path)
{
	char options[64];
	const int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	const bool done = mount("none", path, "fuse", 0, options) == 0;

	close(fd);
	return done;
}

Test(keeper, leaves_when_the_file_system_is_gone)
{
	struct daemon d = { 0 };

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		cr_skip_test("no mounts: %s", strerror(errno));
	start(&d);
	if (!lay_dead_mount(path_of("store"))) {
		command(&d, 'd');
		waitpid(d.pid, NULL, 0);
		cr_skip_test("no FUSE: %s", strerror(errno));
	}
	kill_daemon(&d);
	cr_expect(ends_within(d.keeper, SOON_MS));
	kill(d.keeper, SIGKILL);
	cr_expect_eq(umount(path_of("store")), 0);
	cr_expect(logged("has been evicted"));
}

/* Returns when no keeper has its lock. */
static void await_earlier_run(void)
{
	const int fd = open(path_of("state/keeper"), O_RDWR | O_CLOEXEC);
	const uint64_t until = rn_now_ms() + SOON_MS;

	while (lock_file(fd, F_OFD_SETLK, F_WRLCK) != 0 && rn_now_ms() < until)
		;
	close(fd);
}

Test(keeper, many_files)
{
	struct daemon d = { 0 };
	struct pollfd p = { .events = POLLIN };
	uint64_t ns;

	getrlimit(RLIMIT_NOFILE, &d.files);
	d.files.rlim_cur = d.files.rlim_max < 70000 ? d.files.rlim_max - 100 : 65536;
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ d.files.rlim_max, d.files.rlim_max });
	start(&d);
	p.fd = connect_to(d.told.port);
	kill(d.pid, SIGKILL);
	ns = rn_now_ns();
	cr_expect_eq(poll(&p, 1, SOON_MS), 1);
	cr_log_info("%llu files: the peer saw the end after %llu us",
		    (unsigned long long)d.files.rlim_cur,
		    (unsigned long long)(rn_now_ns() - ns) / 1000);
	waitpid(d.pid, NULL, 0);
	cr_expect(stays_locked());
	close(p.fd);
	cr_assert_eq(change_object(store, act_declare_dead, &d.told.self), CLUSTER_OK);
	cr_assert_eq(change_object(store, act_enforce, &other), CLUSTER_OK);
	await_earlier_run();
	cr_expect_eq(try_lock(), 0); /* without any waiting */
	finish(&d);
}

Test(keeper, is_refused)
{
	const struct rn_logger log = { .level = RN_ERROR, .write = daemon_log };
	struct keeper_cfg cfg = { .member = "a/b",
				  .store.path = path_of("store"),
				  .state_dir = path_of("state"),
				  .log = &log };
	struct keeper *k = NULL;

	cr_expect_eq(keeper_start(&cfg, &k), -EINVAL);
	cfg.member = "member";
	cfg.store.path = path_of("nowhere");
	cr_expect_eq(keeper_start(&cfg, &k), -ENOENT);
	cr_expect_null(k);
	keeper_dismiss(NULL);
}
