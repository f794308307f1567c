/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations and local processes: the kernel's leases, and who breaks them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/error.h"
#include "tests/unit/deleg_local.h"

TestSuite(vfs_deleg_local, .timeout = 120);

static const int alice, bob;

static int give(struct fx *f, struct vfs_node *n, struct deleg *d, const void *client)
{
	return dl_give(f, n, d, client, VFS_DELEG_READ);
}

static int open_to_write(const char *path)
{
	return open(path, O_WRONLY);
}

static int open_to_write_at_once(const char *path)
{
	return open(path, O_WRONLY | O_NONBLOCK);
}

static int open_to_read(const char *path)
{
	return open(path, O_RDONLY);
}

static int cut(const char *path)
{
	return truncate(path, 0);
}

/* The process waits until the delegation has ended. */
static void must_wait(struct fx *f, int (*run)(const char *path))
{
	struct vfs_node *n = fx_file(f, "file", "old", 3);
	struct deleg d;
	int status;
	pid_t pid;

	cr_assert_eq(give(f, n, &d, &alice), 0);
	cr_expect_eq(dl_leases(f), 1);
	pid = dl_start(run, fx_path(f, "file"));
	cr_expect(dl_is_recalled(&d));
	cr_expect_gt(d.d.within_s, 0u);
	cr_expect_eq(waitpid(pid, &status, WNOHANG), 0, "it did not wait");
	vfs_deleg_end(&d.d);
	cr_expect_eq(dl_end_of(pid), 0);
	cr_expect_eq(dl_leases(f), 0);
	vfs_node_put(n);
}

Test(vfs_deleg_local, writers_wait)
{
	struct fx f;

	dl_open(&f);
	must_wait(&f, open_to_write);
	must_wait(&f, cut);
	dl_close(&f);
}

Test(vfs_deleg_local, readers_do_not)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;

	dl_open(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(give(&f, n, &d, &alice), 0);
	cr_expect_eq(dl_end_of(dl_start(open_to_read, fx_path(&f, "file"))), 0);
	cr_expect_eq(d.recalls, 0);
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
}

Test(vfs_deleg_local, all_of_a_file_share_a_lease)
{
	struct vfs_node *n;
	struct deleg a, b;
	struct fx f;

	dl_open(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(give(&f, n, &a, &alice), 0);
	cr_assert_eq(give(&f, n, &b, &bob), 0);
	cr_expect_eq(dl_leases(&f), 1);
	cr_expect_eq(dl_end_of(dl_start(open_to_write_at_once, fx_path(&f, "file"))), EWOULDBLOCK);
	cr_expect(dl_is_recalled(&a));
	cr_expect(dl_is_recalled(&b));
	vfs_deleg_end(&a.d);
	cr_expect_eq(dl_end_of(dl_start(open_to_write_at_once, fx_path(&f, "file"))), EWOULDBLOCK);
	cr_expect_eq(give(&f, n, &a, &alice), -RN_ENOTNOW);
	vfs_deleg_end(&b.d);
	cr_expect_eq(dl_end_of(dl_start(open_to_write_at_once, fx_path(&f, "file"))), 0);
	vfs_node_put(n);
	dl_close(&f);
}

Test(vfs_deleg_local, who_writes_already_is_in_the_way)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;
	int fd;

	dl_open(&f);
	n = fx_file(&f, "file", "old", 3);
	fd = open(fx_path(&f, "file"), O_RDWR);
	cr_assert_geq(fd, 0);
	cr_expect_eq(give(&f, n, &d, &alice), -RN_ENOTNOW);
	cr_expect_eq(dl_leases(&f), 0);
	close(fd);
	fd = open(fx_path(&f, "file"), O_RDONLY);
	cr_expect_eq(give(&f, n, &d, &alice), 0);
	close(fd);
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
}

/* A process that has the file to itself by a lease of its own. */
Test(vfs_deleg_local, others_leases_are_in_the_way)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;
	int fd;

	dl_open(&f);
	n = fx_file(&f, "file", "old", 3);
	signal(SIGIO, SIG_IGN);
	fd = open(fx_path(&f, "file"), O_RDWR);
	cr_assert_eq(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	cr_expect_eq(give(&f, n, &d, &alice), -RN_ENOTNOW);
	close(fd);
	cr_expect_eq(give(&f, n, &d, &alice), 0);
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
}

/* Cached descriptors to write are closed, unless they are needed. */
Test(vfs_deleg_local, descriptors_of_the_server)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;

	dl_open(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(fx_write(&f, n, 0, "new", 3, VFS_UNSTABLE), 3);
	cr_expect_eq(give(&f, n, &d, &alice), -RN_ENOTNOW, "not on disk yet");
	cr_assert_eq(fx_commit(&f, n, 0, 0), 0);
	vfs_node_ref(n);
	cr_expect_eq(give(&f, n, &d, &alice), -RN_ENOTNOW, "somebody else may use the descriptor");
	vfs_node_put(n);
	cr_assert_eq(give(&f, n, &d, &alice), 0);
	cr_expect_eq(fx_commit(&f, n, 0, 0), 0);
	cr_expect_eq(d.recalls, 0, "COMMIT opens nothing to write");

	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
}

/* An open guard takes the lease's place: the holder is not in its own way, and local processes wait as before. */
Test(vfs_deleg_local, holder_writes)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;
	pid_t pid;

	dl_open(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(give(&f, n, &d, &alice), 0);
	f.ctx.client = &alice;
	cr_expect_eq(fx_write(&f, n, 0, "mine", 4, VFS_UNSTABLE), 4);
	cr_expect_eq(d.recalls, 0);
	pid = dl_start(open_to_write, fx_path(&f, "file"));
	cr_expect(dl_is_recalled(&d));
	cr_expect_eq(fx_write(&f, n, 0, "more", 4, VFS_UNSTABLE), 4);
	cr_expect_eq(waitpid(pid, NULL, WNOHANG), 0, "it waits");
	vfs_deleg_end(&d.d);
	cr_expect_eq(dl_end_of(pid), 0);
	cr_assert_eq(fx_commit(&f, n, 0, 0), 0);
	vfs_node_put(n);
	dl_close(&f);
}

/* A local process waits to write already. */
Test(vfs_deleg_local, holder_writes_too_late)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;
	pid_t pid;

	dl_open(&f);
	n = fx_file(&f, "file", "old", 3);
	cr_assert_eq(give(&f, n, &d, &alice), 0);
	pid = dl_start(open_to_write, fx_path(&f, "file"));
	cr_expect(dl_is_recalled(&d));
	f.ctx.client = &alice;
	cr_expect_eq(fx_write(&f, n, 0, "mine", 4, VFS_UNSTABLE), -RN_ELEASE);
	vfs_deleg_end(&d.d);
	cr_expect_eq(dl_end_of(pid), 0);
	vfs_node_put(n);
	dl_close(&f);
}

/* The queue of signals is full: the kernel only says that there is something. */
Test(vfs_deleg_local, overflow)
{
	const struct rlimit none = { 0, 0 };
	struct vfs_node *n[3];
	struct deleg d[3];
	char name[8];
	struct fx f;

	dl_open(&f);
	cr_assert_eq(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		n[i] = fx_file(&f, name, "old", 3);
		cr_assert_eq(give(&f, n[i], &d[i], &alice), 0);
	}
	cr_expect_eq(dl_end_of(dl_start(open_to_write_at_once, fx_path(&f, "f1"))), EWOULDBLOCK);
	cr_expect(dl_is_recalled(&d[1]));
	cr_expect_eq(d[0].recalls + d[2].recalls, 0);
	cr_expect_eq(dl_end_of(dl_start(open_to_write_at_once, fx_path(&f, "f2"))), EWOULDBLOCK);
	cr_expect(dl_is_recalled(&d[2]));
	cr_expect_eq(d[0].recalls, 0);
	for (unsigned i = 0; i < 3; i++) {
		vfs_deleg_end(&d[i].d);
		vfs_node_put(n[i]);
	}
	dl_close(&f);
}

Test(vfs_deleg_local, without_the_thread)
{
	struct vfs_node *n;
	struct deleg d;
	struct fx f;

	fx_open(&f, FX_SYSCALL, VFS_IO_BUFFERED, NULL);
	n = fx_file(&f, "file", "old", 3);
	cr_expect_eq(give(&f, n, &d, &alice), -EOPNOTSUPP);
	vfs_node_put(n);
	fx_close(&f);
}

/* An overlay that can be exported: of another kind than those whose leases are believed in. */
Test(vfs_deleg_local, file_system_without_leases)
{
	char base[FX_PATH], dir[FX_PATH + 8];
	struct vfs_node *n;
	struct deleg d;
	struct fx f;

	fx_need_root();
	fx_temp_dir(base);
	fx_mount_tmpfs(base, "");
	snprintf(dir, sizeof(dir), "%s/m", base);
	if (fx_command("cd %s && mkdir l u w m && mount -t overlay -o index=on,nfs_export=on,"
		       "lowerdir=l,upperdir=u,workdir=w overlay m",
		       base) != 0) {
		umount2(base, MNT_DETACH);
		rmdir(base);
		cr_skip_test("no overlay file system with handles");
	}
	fx_open(&f, FX_SYSCALL, VFS_IO_BUFFERED, dir);
	cr_assert_eq(vfs_leases_start(f.vfs), 0);
	n = fx_file(&f, "file", "old", 3);
	cr_expect_not(vfs_deleg_possible(&f.ctx, n, VFS_DELEG_READ));
	cr_expect_eq(give(&f, n, &d, &alice), -EOPNOTSUPP);
	vfs_export_set_nfs_only(f.exp, true);
	cr_expect_eq(give(&f, n, &d, &alice), 0, "nobody else changes it");
	vfs_deleg_end(&d.d);
	vfs_node_put(n);
	dl_close(&f);
	umount2(dir, MNT_DETACH);
	umount2(base, MNT_DETACH);
	rmdir(base);
}

static int change_mode(const char *path)
{
	return chmod(path, 0600);
}

static int change_owner(const char *path)
{
	return chown(path, 4711, 4711);
}

static int change_times(const char *path)
{
	return utimensat(AT_FDCWD, path, NULL, 0);
}

static int set_xattr(const char *path)
{
	return setxattr(path, "user.a", "b", 1, 0);
}

static const char *beside(const char *path)
{
	static char other[FX_PATH + 64];

	snprintf(other, sizeof(other), "%s.beside", path);
	return other;
}

static int link_to(const char *path)
{
	return link(path, beside(path));
}

static int move(const char *path)
{
	return rename(path, beside(path));
}

static int replace(const char *path)
{
	return rename(beside(path), path);
}

static uint64_t change_seen_by(struct fx *f, struct vfs_node *n, const void *client)
{
	struct vfs_attr attr;

	f->ctx.client = client;
	cr_assert_eq(vfs_getattr(&f->ctx, n, &attr), 0);
	f->ctx.client = NULL;
	return attr.change;
}

/* A client takes the change attribute that it gets with the return for that of what it knows, as if its own doing had led there. So the
 * holder is not told the last one before the return. */
static void end_late(struct fx *f, struct vfs_node *n, struct deleg *d)
{
	const uint64_t before = change_seen_by(f, n, &alice);

	cr_expect_gt(change_seen_by(f, n, &bob), before);
	vfs_deleg_end(&d->d);
	cr_expect_gt(change_seen_by(f, n, &alice), before);
}

/* Nobody waits: the holder learns of it afterwards. */
Test(vfs_deleg_local, changes_without_a_descriptor)
{
	static int (*const change[])(const char *path) = { change_mode, change_owner, change_times,
							   set_xattr,	link_to,      move,
							   replace,	unlink };
	struct vfs_node *n;
	struct deleg d, e;
	struct fx f;

	dl_open(&f);
	for (unsigned i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
		struct vfs_node *other = fx_file(&f, "other", "old", 3);

		n = fx_file(&f, "file", "old", 3);
		if (change[i] == replace) {
			/* First of the two, since both calls of fx_path use one buffer. */
			const char *to = beside(fx_path(&f, "file"));

			cr_assert_eq(link(fx_path(&f, "other"), to), 0);
		}
		cr_assert_eq(give(&f, n, &d, &alice), 0, "%u", i);
		cr_assert_eq(give(&f, other, &e, &alice), 0, "%u", i);
		cr_expect_eq(dl_end_of(dl_start(change[i], fx_path(&f, "file"))), 0, "%u", i);
		cr_expect(dl_is_recalled(&d), "%u", i);
		cr_expect_eq(d.d.within_s, 0);
		if (change[i] == replace)
			cr_expect(dl_is_recalled(&e), "the file that took its name");
		if (change[i] == unlink || change[i] == replace)
			vfs_deleg_end(
				&d.d); /* without an open of the file nobody else comes to it */
		else
			end_late(&f, n, &d);
		vfs_deleg_end(&e.d);
		cr_expect_eq(e.recalls, change[i] == replace, "another file's, %u", i);
		vfs_node_put(n);
		vfs_node_put(other);
		fx_command("rm -f %s/*", f.dir);
	}
	dl_close(&f);
}

/* Changes that this server makes for the holder recall nothing. */
Test(vfs_deleg_local, changes_of_the_holder)
{
	const struct vfs_setattr sa = { .set_mode = true, .mode = 0600 };
	struct vfs_node *n;
	struct deleg d, e;
	struct fx f;

	dl_open(&f);
	n = fx_file(&f, "file", "old", 3);
	f.ctx.client = &alice;
	cr_assert_eq(give(&f, n, &d, &alice), 0);
	cr_expect_eq(vfs_setattr(&f.ctx, n, &sa, NULL), 0);
	cr_expect_eq(vfs_link(&f.ctx, n, f.root, "link", 4, NULL), 0);
	/* Events come in order: that of another file is behind. */
	struct vfs_node *other = fx_file(&f, "other", "old", 3);

	cr_assert_eq(give(&f, other, &e, &bob), 0);
	cr_expect_eq(dl_end_of(dl_start(change_mode, fx_path(&f, "other"))), 0);
	cr_expect(dl_is_recalled(&e));
	cr_expect_eq(d.recalls, 0);
	vfs_deleg_end(&d.d);
	vfs_deleg_end(&e.d);
	vfs_node_put(n);
	vfs_node_put(other);
	dl_close(&f);
}

static int write_often(const char *path)
{
	for (unsigned i = 0; i < 100000; i++) {
		int fd = open(path, O_WRONLY);

		if (fd < 0 || write(fd, &i, sizeof(i)) != sizeof(i) || close(fd) != 0)
			return -1;
	}
	return 0;
}

static unsigned content(const char *path)
{
	unsigned i = 0;
	int fd = open(path, O_RDONLY);

	cr_assert_eq(read(fd, &i, sizeof(i)), sizeof(i));
	close(fd);
	return i;
}

/* A local process writes as fast as it can: never while there is a delegation. */
Test(vfs_deleg_local, no_write_under_a_delegation)
{
	unsigned given = 0, recalled = 0;
	struct vfs_node *n;
	struct fx f;
	pid_t pid;

	dl_open(&f);
	n = fx_file(&f, "file", "zero", 4);
	pid = dl_start(write_often, fx_path(&f, "file"));
	for (unsigned i = 0; i < 20000 && given < 300; i++) {
		struct deleg d;
		unsigned before;

		if (give(&f, n, &d, &alice) != 0)
			continue;
		given++;
		before = content(fx_path(&f, "file"));
		usleep(200);
		cr_assert_eq(content(fx_path(&f, "file")), before);
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
