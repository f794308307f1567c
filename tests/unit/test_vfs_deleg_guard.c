/* SPDX-License-Identifier: BSD-2-Clause */
/* Write delegations and local processes: whoever opens the file waits (vfs/hold/open_guard.h). */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/error.h"
#include "tests/unit/deleg_local.h"
#include "vfs/base/instance.h"
#include "vfs/fs/handle.h"
#include "vfs/hold/open_guard.h"

TestSuite(vfs_deleg_guard, .timeout = 120);

int __real_vfs_handle_of(int dirfd, const char *name, struct vfs_handle *out, uint64_t *mnt_id);
int __wrap_vfs_handle_of(int dirfd, const char *name, struct vfs_handle *out, uint64_t *mnt_id);

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);

/* 0, or the errors that all calls are answered with. */
static _Atomic int handle_error, stat_error;

int __wrap_fstat(int fd, struct stat *st)
{
	const int error = atomic_load(&stat_error);

	if (!error)
		return __real_fstat(fd, st);
	errno = error;
	return -1;
}

int __wrap_vfs_handle_of(int dirfd, const char *name, struct vfs_handle *out, uint64_t *mnt_id)
{
	const int error = atomic_load(&handle_error);

	return error ? error : __real_vfs_handle_of(dirfd, name, out, mnt_id);
}

/* Local opens that wait. */
static uint32_t waiting(struct fx *f)
{
	struct vfs_guards *gs = f->vfs->guards;
	uint32_t n;

	pthread_mutex_lock(&gs->lock);
	n = gs->nopeners;
	pthread_mutex_unlock(&gs->lock);
	return n;
}

static const int alice, bob;

static void open_fx(struct fx *f)
{
	dl_open(f);
	if (f->vfs->guards->group < 0)
		cr_skip_test("the kernel has no permission events, or not for this process");
	f->ctx.client = &alice;
}

static int give(struct fx *f, struct vfs_node *n, struct deleg *d)
{
	return dl_give(f, n, d, &alice, VFS_DELEG_WRITE);
}

static uint64_t guards(const struct fx *f)
{
	return atomic_load(&f->vfs->files->guards);
}

static int open_to_read(const char *path)
{
	return open(path, O_RDONLY);
}

static int open_to_write(const char *path)
{
	return open(path, O_WRONLY);
}

static int open_to_cut(const char *path)
{
	return open(path, O_WRONLY | O_TRUNC);
}

static int open_at_once(const char *path)
{
	return open(path, O_RDONLY | O_NONBLOCK);
}

static int open_link(const char *path)
{
	char other[FX_PATH + 64];

	snprintf(other, sizeof(other), "%s.link", path);
	return open(other, O_RDONLY);
}

static int execute(const char *path)
{
	char *const args[] = { (char *)path, NULL };

	return execv(path, args);
}

static int open_by_handle(const char *path)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = { .h.handle_bytes = MAX_HANDLE_SZ };
	int id, fd = open(path, O_PATH);

	if (name_to_handle_at(fd, "", &u.h, &id, AT_EMPTY_PATH) != 0)
		return -1;
	*strrchr((char *)path, '/') = '\0';
	return open_by_handle_at(open(path, O_RDONLY), &u.h, O_RDONLY);
}

/* 0 if the file says what the holder has written. */
static int read_last_write(const char *path)
{
	char data[8] = "";
	int fd = open(path, O_RDONLY);

	if (fd < 0 || read(fd, data, sizeof(data)) != 4 || memcmp(data, "last", 4) != 0)
		return -1;
	return 0;
}

/* The process waits until the delegation has ended, and ends with that error. */
static void must_wait(struct fx *f, int (*run)(const char *path), int error)
{
	struct vfs_node *n = fx_file(f, "file", "old", 3);
	struct deleg d;
	int status;
	pid_t pid;

	cr_assert_eq(give(f, n, &d), 0);
	cr_expect_eq(dl_leases(f), 1);
	cr_expect_eq(guards(f), 1);
	cr_expect(vfs_is_guarded(f->vfs, &n->fh));
	pid = dl_start(run, fx_path(f, "file"));
	cr_expect(dl_is_recalled(&d));
	cr_expect_gt(d.d.within_s, 0u);
	cr_expect_eq(waitpid(pid, &status, WNOHANG), 0, "it did not wait");
	/* Meanwhile the holder writes back. */
	cr_expect_eq(fx_write(f, n, 0, "last", 4, VFS_FILE_SYNC), 4);
	vfs_deleg_end(&d.d);
	cr_expect_eq(dl_end_of(pid), error);
	cr_expect_eq(guards(f), 0);
	cr_expect_not(vfs_is_guarded(f->vfs, &n->fh));
	cr_expect_eq(waiting(f), 0);
	vfs_node_put(n);
	fx_command("rm -f %s/*", f->dir);
}

Test(vfs_deleg_guard, all_who_open_wait)
{
	struct fx f;

	open_fx(&f);
	must_wait(&f, open_to_read, 0);
	must_wait(&f, open_to_write, 0);
	must_wait(&f, open_to_cut, 0);
	must_wait(&f, open_at_once, 0);
	must_wait(&f, open_by_handle, 0);
	must_wait(&f, read_last_write, 0);
	dl_close(&f);
}

Test(vfs_deleg_guard, by_another_link)
{
	char to[FX_PATH + 64];
	struct fx f;

	open_fx(&f);
	vfs_node_put(fx_file(&f, "file", "old", 3));
	snprintf(to, sizeof(to), "%s.link", fx_path(&f, "file"));
	cr_assert_eq(link(fx_path(&f, "file"), to), 0);
	must_wait(&f, open_link, 0);
	dl_close(&f);
}

Test(vfs_deleg_guard, by_execution)
{
	struct fx f;

	open_fx(&f);
	vfs_node_put(fx_file(&f, "file", "old", 3));
	cr_assert_eq(chmod(fx_path(&f, "file"), 0755), 0);
	/* The server may have it open to write, and the text is no program. */
	must_wait(&f, execute, ETXTBSY);
	dl_close(&f);
}

/* Several processes, of which one is killed while it waits. */
Test(vfs_deleg_guard, many_wait)
{
	struct vfs_node *n;
	struct deleg d;
	pid_t pid[8];
	struct fx f;

	open_fx(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(give(&f, n, &d), 0);
	for (unsigned i = 0; i < 8; i++)
		pid[i] = dl_start(open_to_read, fx_path(&f, "file"));
	while (waiting(&f) < 8)
		usleep(1000);
	cr_expect_eq(d.recalls, 1);
	kill(pid[0], SIGKILL);
	cr_expect_eq(waitpid(pid[0], NULL, 0), pid[0]);
	vfs_deleg_end(&d.d);
	for (unsigned i = 1; i < 8; i++)
		cr_expect_eq(dl_end_of(pid[i]), 0);
	cr_expect_eq(give(&f, n, &d), 0, "nothing of the events is left");
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
}

/* Whoever has the file open or mapped already is in the way. */
Test(vfs_deleg_guard, users_are_in_the_way)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;
	void *map;
	int fd;

	open_fx(&f);
	n = fx_file(&f, "file", "old", 3);
	fd = open(fx_path(&f, "file"), O_RDONLY);
	cr_expect_eq(give(&f, n, &d), -RN_ENOTNOW);
	map = mmap(NULL, 3, PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_neq(map, MAP_FAILED);
	close(fd);
	cr_expect_eq(give(&f, n, &d), -RN_ENOTNOW, "mapped");
	munmap(map, 3);
	fd = open(fx_path(&f, "file"), O_WRONLY);
	cr_expect_eq(give(&f, n, &d), -RN_ENOTNOW);
	close(fd);
	cr_expect_eq(guards(&f), 0);
	fd = open(fx_path(&f, "file"), O_PATH);
	cr_expect_eq(give(&f, n, &d), 0, "nobody can read by it");
	close(fd);
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
}

/* Cached descriptors are closed, but for one, unless they are needed. */
Test(vfs_deleg_guard, descriptors_of_the_server)
{
	struct vfs_node *n;
	struct deleg d;
	char data[8];
	struct fx f;
	bool eof;

	open_fx(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(fx_read(&f, n, 0, 3, data, &eof), 3);
	cr_assert_eq(fx_write(&f, n, 0, "new", 3, VFS_UNSTABLE), 3);
	cr_expect_eq(give(&f, n, &d), -RN_ENOTNOW, "not on disk yet");
	cr_assert_eq(fx_commit(&f, n, 0, 0), 0);
	vfs_node_ref(n);
	cr_expect_eq(give(&f, n, &d), -RN_ENOTNOW, "somebody else may use a descriptor");
	vfs_node_put(n);
	cr_assert_eq(give(&f, n, &d), 0);
	cr_expect_geq(atomic_load(&n->data_fd[VFS_FD_WRITE]), 0, "the holder writes by it");
	vfs_deleg_end(&d.d);
	vfs_node_ref(n);
	cr_expect_eq(give(&f, n, &d), 0, "one is open");
	vfs_node_put(n);
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
}

/* The holder uses the file in all ways, and waits for nobody. */
Test(vfs_deleg_guard, the_holder_does_not_wait)
{
	struct vfs_node *n;
	struct deleg d;
	char data[8];
	struct fx f;
	bool eof;
	int fd;

	open_fx(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(give(&f, n, &d), 0);
	cr_expect_eq(fx_read(&f, n, 0, 3, data, &eof), 3);
	cr_expect_eq(fx_write(&f, n, 0, "mine", 4, VFS_UNSTABLE), 4);
	cr_expect_eq(fx_commit(&f, n, 0, 0), 0);
	for (unsigned kind = 0; kind < VFS_FD_KINDS; kind++) {
		fd = vfs_node_fd(&f.ctx, n, (enum vfs_fd_kind)kind);
		cr_expect(fd >= 0 || fd == -EINVAL, "%u: %d", kind, fd);
	}
	cr_expect_eq(d.recalls, 0);
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
}

static int cut(const char *path)
{
	return truncate(path, 1);
}

static int change_mode(const char *path)
{
	return chmod(path, 0600);
}

static int status_of(const char *path)
{
	struct stat st;

	return stat(path, &st);
}

/* Local changes without an open (truncate, chmod, unlink) wait for nobody: the holder learns of them afterwards. */
Test(vfs_deleg_guard, uses_without_an_open)
{
	static int (*const use[])(const char *path) = { cut, change_mode, unlink };
	struct vfs_node *n;
	struct deleg d;
	struct fx f;

	open_fx(&f);
	for (unsigned i = 0; i < sizeof(use) / sizeof(use[0]); i++) {
		n = fx_file(&f, "file", "old", 3);
		cr_assert_eq(give(&f, n, &d), 0);
		/* Events of the holder's own changes come before. */
		cr_expect_eq(fx_write(&f, n, 0, "mine", 4, VFS_UNSTABLE), 4);
		cr_assert_eq(fx_commit(&f, n, 0, 0), 0);
		cr_expect_eq(dl_end_of(dl_start(status_of, fx_path(&f, "file"))), 0);
		usleep(1000);
		cr_expect_eq(d.recalls, 0);
		cr_expect_eq(dl_end_of(dl_start(use[i], fx_path(&f, "file"))), 0, "%u", i);
		cr_expect(dl_is_recalled(&d), "%u", i);
		vfs_deleg_end(&d.d);
		vfs_node_put(n);
		fx_command("rm -f %s/*", f.dir);
	}
	dl_close(&f);
}

/* A client has asked for the delegation before, and would have waited for longer. */
Test(vfs_deleg_guard, a_local_process_hastens_a_recall)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;
	pid_t pid;

	open_fx(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(give(&f, n, &d), 0);
	f.ctx.client = &bob;
	cr_expect_eq(vfs_deleg_check(&f.ctx, n, VFS_USE_READ), -RN_EDELEG);
	cr_expect_eq(d.recalls, 1);
	cr_expect_eq(d.d.within_s, 0);
	pid = dl_start(open_to_read, fx_path(&f, "file"));
	while (atomic_load(&d.d.within_s) == 0)
		usleep(1000);
	cr_expect_eq(d.recalls, 1);
	vfs_deleg_end(&d.d);
	cr_expect_eq(dl_end_of(pid), 0);
	vfs_node_put(n);
	dl_close(&f);
}

/* One file has more opens than may wait, and leaves places for those of another. */
Test(vfs_deleg_guard, a_file_has_a_share_of_those_that_wait)
{
	struct vfs_node *n, *other;
	struct deleg d, e;
	pid_t pid[4], last;
	struct fx f;

	open_fx(&f);
	n = fx_file(&f, "file", "old", 3);
	other = fx_file(&f, "other", "old", 3);
	cr_assert_eq(give(&f, n, &d), 0);
	cr_assert_eq(give(&f, other, &e), 0);
	f.vfs->cfg.max_fds = 8 * 16; /* so 8 may wait */
	for (unsigned i = 0; i < 4; i++) {
		pid[i] = dl_start(open_to_read, fx_path(&f, "file"));
		while (waiting(&f) <= i)
			usleep(1000);
	}
	/* Bounds the wait of an open that is not refused. */
	f.vfs->guards->patience_s = 2;
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(dl_end_of(dl_start(open_to_read, fx_path(&f, "file"))), EPERM);
	f.vfs->guards->patience_s = 1000;
	last = dl_start(open_to_read, fx_path(&f, "other"));
	cr_expect(dl_is_recalled(&e));
	cr_expect_eq(waiting(&f), 5);
	vfs_deleg_end(&e.d);
	cr_expect_eq(dl_end_of(last), 0);
	vfs_deleg_end(&d.d);
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(dl_end_of(pid[i]), 0);
	cr_expect_eq(waiting(&f), 0);
	vfs_node_put(n);
	vfs_node_put(other);
	dl_close(&f);
}

/* The thread cannot tell which file is opened: nobody is let in under a delegation. */
Test(vfs_deleg_guard, a_file_that_cannot_be_told)
{
	static const int error[] = { -EBADF, -ENOMEM, -EIO, -EOPNOTSUPP };
	struct vfs_node *n;
	struct deleg d;
	struct fx f;

	open_fx(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(give(&f, n, &d), 0);
	for (unsigned i = 0; i < sizeof(error) / sizeof(error[0]); i++) {
		atomic_store(&handle_error, error[i]);
		cr_expect_eq(dl_end_of(dl_start(open_to_read, fx_path(&f, "file"))), EPERM, "%d",
			     error[i]);
	}
	atomic_store(&handle_error, 0);
	atomic_store(&stat_error, EIO);
	cr_expect_eq(dl_end_of(dl_start(open_to_read, fx_path(&f, "file"))), EPERM);
	atomic_store(&stat_error, 0);
	cr_expect_eq(waiting(&f), 0);
	vfs_deleg_end(&d.d);
	cr_expect_eq(dl_end_of(dl_start(open_to_read, fx_path(&f, "file"))), 0);
	cr_expect_eq(give(&f, n, &d), 0, "nothing of the events is left");
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
}

/* The thread cannot tell the file either, but there is no delegation of any file. */
Test(vfs_deleg_guard, a_mark_without_a_delegation)
{
	struct vfs_node *n;
	struct fx f;

	open_fx(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(fanotify_mark(f.vfs->guards->group, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD,
				   fx_path(&f, "file")),
		     0);
	atomic_store(&handle_error, -ENOMEM);
	cr_expect_eq(dl_end_of(dl_start(open_to_read, fx_path(&f, "file"))), 0);
	atomic_store(&handle_error, 0);
	vfs_node_put(n);
	dl_close(&f);
}

/* A delegation that does not end keeps nobody for ever, nor beyond the server's end. */
Test(vfs_deleg_guard, patience_ends)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;
	pid_t pid;

	open_fx(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(give(&f, n, &d), 0);
	f.vfs->guards->patience_s = 1;
	cr_expect_eq(dl_end_of(dl_start(open_to_read, fx_path(&f, "file"))), 0);
	f.vfs->guards->patience_s = 1000;
	pid = dl_start(open_to_read, fx_path(&f, "file"));
	while (waiting(&f) == 0)
		usleep(1000);
	vfs_leases_stop(f.vfs);
	cr_expect_eq(dl_end_of(pid), 0);
	cr_expect_eq(fx_write(&f, n, 0, "mine", 4, VFS_FILE_SYNC), 4);
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
}

/* The server is killed while a local process waits. */
Test(vfs_deleg_guard, a_crash_lets_all_go_on)
{
	char path[FX_PATH + 8];
	int up[2];
	pid_t server, pid;
	char c;

	fx_need_root();
	fx_temp_dir(path);
	strcat(path, "/file");
	cr_assert_eq(pipe(up), 0);
	server = fork();
	if (server == 0) {
		struct vfs_node *n;
		struct deleg d;
		struct fx f;

		*strrchr(path, '/') = '\0';
		fx_open(&f, FX_SYSCALL, VFS_IO_BUFFERED, path);
		if (vfs_leases_start(f.vfs) != 0)
			_exit(1);
		n = fx_file(&f, "file", "old", 3);
		if (give(&f, n, &d) != 0)
			_exit(1);
		(void)!write(up[1], "x", 1);
		while (dl_is_recalled(&d))
			pause();
		_exit(1);
	}
	close(up[1]);
	if (read(up[0], &c, 1) != 1)
		cr_skip_test("no write delegation here");
	pid = dl_start(open_to_read, path);
	usleep(10000);
	cr_expect_eq(waitpid(pid, NULL, WNOHANG), 0, "it did not wait");
	kill(server, SIGKILL);
	cr_expect_eq(dl_end_of(pid), 0);
	cr_expect_eq(waitpid(server, NULL, 0), server);
	*strrchr(path, '/') = '\0';
	fx_command("rm -rf %s", path);
}

/* Reload: the export does not promise any more that there are no local processes. */
Test(vfs_deleg_guard, a_promise_is_taken_back)
{
	struct vfs_node *n, *other;
	struct deleg d, e;
	struct fx f;

	open_fx(&f);
	n = fx_file(&f, "file", "old", 3);
	other = fx_file(&f, "other", "old", 3);
	cr_assert_eq(give(&f, other, &e), 0);
	vfs_export_set_nfs_only(f.exp, true);
	cr_assert_eq(give(&f, n, &d), 0);
	cr_expect_eq(guards(&f), 1);
	vfs_export_set_nfs_only(f.exp, false);
	vfs_deleg_recall_unguarded(f.vfs);
	cr_expect_eq(d.recalls, 1);
	cr_expect_eq(e.recalls, 0, "this one has an open guard");
	vfs_deleg_end(&d.d);
	vfs_deleg_end(&e.d);
	vfs_node_put(n);
	vfs_node_put(other);
	dl_close(&f);
}

static int read_often(const char *path)
{
	for (unsigned i = 0; i < 1000000; i++) {
		int fd = open(path, O_RDONLY);

		if (fd < 0 || close(fd) != 0)
			return -1;
		if (i % 8 == 0)
			usleep(100);
	}
	return 0;
}

/* A local process opens the file as fast as it can; whenever there is a delegation it is out. */
Test(vfs_deleg_guard, no_open_under_a_delegation)
{
	unsigned given = 0, recalled = 0;
	struct vfs_node *n;
	struct fx f;
	pid_t pid;

	open_fx(&f);
	n = fx_file(&f, "file", "zero", 4);
	pid = dl_start(read_often, fx_path(&f, "file"));
	for (unsigned i = 0; i < 20000 && given < 200; i++) {
		struct deleg d;
		int fd;

		if (give(&f, n, &d) != 0)
			continue;
		given++;
		fd = vfs_node_fd(&f.ctx, n, VFS_FD_READ);
		cr_assert_geq(fd, 0);
		usleep(200);
		/* Ours is the only description, beside those that wait. */
		if (d.recalls == 0) {
			signal(SIGIO, SIG_IGN);
			if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0)
				fcntl(fd, F_SETLEASE, F_UNLCK);
			else
				cr_expect(dl_is_recalled(&d), "somebody was let in");
		}
		vfs_deleg_end(&d.d);
		recalled += d.recalls;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_expect_gt(given, 0u);
	cr_expect_gt(recalled, 0u);
	vfs_node_put(n);
	dl_close(&f);
}

static int open_and_close(const char *path)
{
	for (unsigned i = 0; i < 20000; i++) {
		int fd = open(path, O_RDONLY);

		if (fd < 0)
			return -1;
		close(fd);
	}
	return 0;
}

/* No open is refused because the server looks at that moment whether a delegation can be given. */
Test(vfs_deleg_guard, looking_whether_it_is_alone_refuses_nobody)
{
	struct vfs_node *n;
	struct fx f;
	int status;
	pid_t pid;

	open_fx(&f);
	n = fx_file(&f, "file", "zero", 4);
	pid = dl_start(open_and_close, fx_path(&f, "file"));
	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct deleg d;

		if (give(&f, n, &d) == 0)
			vfs_deleg_end(&d.d);
	}
	cr_expect(WIFEXITED(status));
	cr_expect_eq(WEXITSTATUS(status), 0, "%s", strerror(WEXITSTATUS(status)));
	vfs_node_put(n);
	dl_close(&f);
}
