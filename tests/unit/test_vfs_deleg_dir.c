/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations of directories: what recalls them, through the server and by local processes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/unit/kernel_can.h"
#include "tests/unit/vfs_io_fixture.h"
#include "vfs/base/instance.h"
#include "vfs/deleg.h"
#include "vfs/hold/file_change.h"
#include "vfs/hold/lease.h"
#include "vfs/xattr.h"

TestSuite(vfs_deleg_dir, .timeout = 120);

#define WAIT_MS 20000 /* for what must happen */

static const int alice, bob; /* clients: only their addresses count */

struct deleg {
	struct vfs_deleg d;
	_Atomic unsigned recalls;
};

static void count_recall(struct vfs_deleg *d)
{
	atomic_fetch_add(&((struct deleg *)d)->recalls, 1);
}

static const struct vfs_deleg_ops ops = { .recall = count_recall };

static int give(struct fx *f, struct vfs_node *n, struct deleg *d, const void *client)
{
	*d = (struct deleg){ .d = { .ops = &ops, .client = client, .type = VFS_DELEG_READ } };
	memset(&f->vfs->files->recalled, 0, sizeof(f->vfs->files->recalled));
	return vfs_deleg_give(&f->ctx, n, &d->d);
}

/* The directory "dir" with "file" and "sub", and beside it "other" with "file"; nothing else. */
static struct vfs_node *make_tree(struct fx *f)
{
	cr_assert_eq(fx_command("cd %s && rm -rf * && mkdir -p dir/sub other && touch dir/file "
				"other/file",
				f->dir),
		     0);
	return fx_lookup(f, "dir");
}

static int op_create(struct fx *f, struct vfs_node *dir)
{
	struct vfs_create how = { .how = VFS_UNCHECKED };
	struct vfs_node *made;
	int rc = vfs_create(&f->ctx, dir, "new", 3, &how, &made);

	if (rc == 0)
		vfs_node_put(made);
	return rc;
}

static int op_mkdir(struct fx *f, struct vfs_node *dir)
{
	const struct vfs_make m = { .dir = dir, .name = "new", .len = 3 };
	struct vfs_node *made;
	int rc = vfs_mkdir(&f->ctx, &m, &made);

	if (rc == 0)
		vfs_node_put(made);
	return rc;
}

static int op_symlink(struct fx *f, struct vfs_node *dir)
{
	const struct vfs_setattr none = { 0 };
	const struct vfs_make m = { .dir = dir, .name = "new", .len = 3, .sa = &none };
	struct vfs_node *made;
	int rc = vfs_symlink(&f->ctx, &m, "x", &made);

	if (rc == 0)
		vfs_node_put(made);
	return rc;
}

static int op_remove(struct fx *f, struct vfs_node *dir)
{
	return vfs_remove(&f->ctx, dir, "file", 4, NULL);
}

static int op_rmdir(struct fx *f, struct vfs_node *dir)
{
	return vfs_rmdir(&f->ctx, dir, "sub", 3, NULL);
}

static int move(struct fx *f, struct vfs_node *from, const char *old, struct vfs_node *to,
		const char *new)
{
	const struct vfs_rename r = { .from_dir = from,
				      .to_dir = to,
				      .from = old,
				      .to = new,
				      .from_len = (uint32_t)strlen(old),
				      .to_len = (uint32_t)strlen(new) };

	return vfs_rename(&f->ctx, &r);
}

static int op_rename(struct fx *f, struct vfs_node *dir)
{
	return move(f, dir, "file", dir, "new");
}

static int op_move_in(struct fx *f, struct vfs_node *dir)
{
	struct vfs_node *other = fx_lookup(f, "other");
	int rc = move(f, other, "file", dir, "file");

	vfs_node_put(other);
	return rc;
}

static int op_move_out(struct fx *f, struct vfs_node *dir)
{
	struct vfs_node *other = fx_lookup(f, "other");
	int rc = move(f, dir, "file", other, "new");

	vfs_node_put(other);
	return rc;
}

static int op_move_it(struct fx *f, struct vfs_node *dir)
{
	(void)dir;
	return move(f, f->root, "dir", f->root, "moved");
}

static int op_link(struct fx *f, struct vfs_node *dir)
{
	struct vfs_node *other = fx_lookup(f, "other"), *file;
	int rc;

	cr_assert_eq(vfs_lookup(&f->ctx, other, "file", 4, &file, NULL), 0);
	rc = vfs_link(&f->ctx, file, dir, "new", 3, NULL);
	vfs_node_put(file);
	vfs_node_put(other);
	return rc;
}

static int op_mode(struct fx *f, struct vfs_node *dir)
{
	const struct vfs_setattr sa = { .set_mode = true, .mode = 0700 };

	return vfs_setattr(&f->ctx, dir, &sa, NULL);
}

static int op_times(struct fx *f, struct vfs_node *dir)
{
	const struct vfs_setattr sa = { .set_mtime = VFS_TIME_SERVER };

	return vfs_setattr(&f->ctx, dir, &sa, NULL);
}

static int op_xattr(struct fx *f, struct vfs_node *dir)
{
	struct vfs_xattr_change c = {
		.how = VFS_XATTR_EITHER, .name = { "x", 1 }, .value = "y", .size = 1
	};

	return vfs_xattr_change(&f->ctx, dir, &c);
}

static const struct op {
	const char *name;
	int (*run)(struct fx *f, struct vfs_node *dir);
} table[] = {
	{ "create", op_create },   { "mkdir", op_mkdir },	{ "symlink", op_symlink },
	{ "remove", op_remove },   { "rmdir", op_rmdir },	{ "rename", op_rename },
	{ "move in", op_move_in }, { "move out", op_move_out }, { "move it", op_move_it },
	{ "link", op_link },	   { "mode", op_mode },		{ "times", op_times },
	{ "attribute", op_xattr },
};

static bool same_dir(const struct stat *a, const struct stat *b)
{
	return a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* The operation by a client, while alice has the delegation. */
static void meet(struct fx *f, const struct op *op, const void *client)
{
	const bool conflict = client != &alice;
	struct vfs_node *dir = make_tree(f);
	struct stat before, after;
	struct deleg d;
	int rc;

	cr_assert_eq(give(f, dir, &d, &alice), 0, "%s", op->name);
	cr_assert_eq(stat(fx_path(f, "dir"), &before), 0);
	f->ctx.client = client;
	rc = op->run(f, dir);
	if (conflict) {
		cr_expect_eq(rc, -RN_EDELEG, "%s: %d", op->name, rc);
		cr_expect_eq(op->run(f, dir), -RN_EDELEG, "%s again", op->name);
		cr_assert_eq(stat(fx_path(f, "dir"), &after), 0, "%s", op->name);
		cr_expect(same_dir(&before, &after), "%s has changed something", op->name);
	} else {
		cr_expect_eq(rc, 0, "%s: %d", op->name, rc);
	}
	cr_expect_eq(d.recalls, conflict, "%s: %u recalls", op->name, d.recalls);
	vfs_deleg_end(&d.d);
	if (conflict)
		cr_expect_eq(op->run(f, dir), 0, "%s when the delegation has ended", op->name);
	cr_expect_eq(atomic_load(&f->vfs->files->changing[vfs_file_slot(&dir->fh)]), 0, "%s",
		     op->name);
	f->ctx.client = NULL;
	vfs_node_put(dir);
}

static void open_fx(struct fx *f)
{
	fx_open(f, FX_SYSCALL, VFS_IO_BUFFERED, NULL);
	vfs_export_set_nfs_only(f->exp, true);
}

Test(vfs_deleg_dir, every_operation)
{
	const void *clients[] = { &alice, &bob, NULL };
	struct fx f;

	open_fx(&f);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		for (unsigned c = 0; c < 3; c++)
			meet(&f, &table[i], clients[c]);
	}
	fx_close(&f);
}

/* The same where local processes may change the directory, and the server's own changes have events. */
Test(vfs_deleg_dir, every_operation_with_events)
{
	const void *clients[] = { &alice, &bob, NULL };
	struct fx f;

	NEED_KERNEL_CAN(watch_files);
	fx_open(&f, FX_SYSCALL, VFS_IO_BUFFERED, NULL);
	cr_assert_eq(vfs_leases_start(f.vfs), 0);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		for (unsigned c = 0; c < 3; c++)
			meet(&f, &table[i], clients[c]);
	}
	cr_expect_eq(atomic_load(&f.vfs->files->leases), 0);
	vfs_leases_stop(f.vfs);
	fx_close(&f);
}

/* Files below it are no part of it, and neither is what is above. */
Test(vfs_deleg_dir, changes_elsewhere)
{
	const struct vfs_setattr sa = { .set_mode = true, .mode = 0600 };
	struct vfs_node *dir, *file, *sub;
	struct deleg d;
	struct fx f;

	open_fx(&f);
	dir = make_tree(&f);
	cr_assert_eq(give(&f, dir, &d, &alice), 0);
	cr_assert_eq(vfs_lookup(&f.ctx, dir, "file", 4, &file, NULL), 0);
	cr_assert_eq(vfs_lookup(&f.ctx, dir, "sub", 3, &sub, NULL), 0);
	f.ctx.client = &bob;
	cr_expect_eq(vfs_setattr(&f.ctx, file, &sa, NULL), 0);
	cr_expect_eq(fx_write(&f, file, 0, "new", 3, VFS_UNSTABLE), 3);
	cr_expect_eq(op_create(&f, sub), 0);
	cr_expect_eq(op_create(&f, f.root), 0);
	cr_expect_eq(d.recalls, 0);
	vfs_deleg_end(&d.d);
	vfs_node_put(file);
	vfs_node_put(sub);
	vfs_node_put(dir);
	fx_close(&f);
}

/* A call that fails anyway recalls nothing: a create of a file that is there is an open. */
Test(vfs_deleg_dir, no_recall_for_nothing)
{
	struct vfs_create how = { .how = VFS_UNCHECKED };
	struct vfs_node *dir, *other, *found;
	struct deleg d;
	struct fx f;

	open_fx(&f);
	dir = make_tree(&f);
	other = fx_lookup(&f, "other");
	cr_assert_eq(give(&f, dir, &d, &alice), 0);
	f.ctx.client = &bob;
	cr_assert_eq(vfs_create(&f.ctx, dir, "file", 4, &how, &found), 0);
	cr_expect_not(how.made);
	vfs_node_put(found);
	how.how = VFS_GUARDED;
	cr_expect_eq(vfs_create(&f.ctx, dir, "file", 4, &how, &found), -EEXIST);
	cr_expect_eq(vfs_remove(&f.ctx, dir, "none", 4, NULL), -ENOENT);
	cr_expect_eq(move(&f, dir, "none", dir, "x"), -ENOENT);
	cr_expect_eq(move(&f, other, "none", dir, "x"), -ENOENT);
	fx_user(&f, 4711);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int rc = table[i].run(&f, dir);

		cr_expect(rc == -EACCES || rc == -EPERM, "%s: %d", table[i].name, rc);
	}
	cr_expect_eq(d.recalls, 0);
	vfs_deleg_end(&d.d);
	vfs_node_put(other);
	vfs_node_put(dir);
	fx_close(&f);
}

/* Its removal recalls the delegations of others. The remover returns its own afterwards: the directory stays reachable. */
Test(vfs_deleg_dir, removal)
{
	struct vfs_node *dir;
	struct vfs_fh fh;
	struct deleg d, e;
	struct fx f;

	open_fx(&f);
	dir = make_tree(&f);
	cr_assert_eq(fx_command("rm -r %s/dir/*; mkdir %s/another", f.dir, f.dir), 0);
	cr_assert_eq(give(&f, dir, &d, &alice), 0);
	cr_assert_eq(give(&f, dir, &e, &bob), 0);
	f.ctx.client = &alice;
	cr_expect_eq(vfs_rmdir(&f.ctx, f.root, "dir", 3, NULL), -RN_EDELEG);
	cr_expect_eq(d.recalls, 0);
	cr_expect_eq(e.recalls, 1);
	cr_expect_eq(move(&f, f.root, "another", f.root, "dir"), -RN_EDELEG, "it is replaced");
	vfs_deleg_end(&e.d);
	cr_expect_eq(move(&f, f.root, "another", f.root, "dir"), 0, "it is replaced");
	fh = *vfs_node_fh(dir);
	vfs_node_put(dir);
	vfs_forget_export(f.vfs, vfs_export_id(f.exp));
	cr_expect_eq(vfs_fh_open(&f.ctx, &fh, &dir), 0, "its holder comes back to it");
	vfs_deleg_end(&d.d);
	vfs_node_put(dir);
	cr_expect_eq(vfs_fh_open(&f.ctx, &fh, &dir), -ESTALE);
	dir = fx_lookup(&f, "dir");
	cr_assert_eq(give(&f, dir, &d, &bob), 0);
	vfs_node_put(dir);
	vfs_forget_export(f.vfs, vfs_export_id(f.exp));
	cr_expect_eq(vfs_rmdir(&f.ctx, f.root, "dir", 3, NULL), -RN_EDELEG, "without a node");
	vfs_deleg_end(&d.d);
	cr_expect_eq(vfs_rmdir(&f.ctx, f.root, "dir", 3, NULL), 0);
	fx_close(&f);
}

Test(vfs_deleg_dir, changes_under_way)
{
	struct vfs_file_change change;
	struct vfs_node *dir;
	struct deleg d;
	struct fx f;

	open_fx(&f);
	dir = make_tree(&f);
	vfs_file_change_count(f.vfs, &dir->fh, &change);
	cr_expect_eq(give(&f, dir, &d, &alice), -RN_ENOTNOW);
	vfs_file_change_end(&change);
	cr_expect_eq(give(&f, dir, &d, &alice), 0);
	f.ctx.client = &bob;
	cr_expect_eq(op_create(&f, dir), -RN_EDELEG);
	vfs_deleg_end(&d.d);
	d = (struct deleg){ .d = { .ops = &ops, .client = &bob, .type = VFS_DELEG_READ } };
	cr_expect_eq(vfs_deleg_give(&f.ctx, dir, &d.d), -RN_ENOTNOW, "quiet");
	vfs_node_put(dir);
	fx_close(&f);
}

static void local(struct fx *f, const char *command)
{
	cr_expect_eq(fx_command("cd %s && %s", f->dir, command), 0, "%s", command);
}

static bool is_recalled(struct deleg *d)
{
	for (unsigned i = 0; i < WAIT_MS && atomic_load(&d->recalls) == 0; i++)
		usleep(1000);
	return atomic_load(&d->recalls) == 1;
}

/* Local processes wait for nobody: the holder learns of it afterwards. */
Test(vfs_deleg_dir, local_changes)
{
	static const char *const commands[] = {
		"touch dir/new",	 "mkdir dir/new",	"ln -s x dir/new",
		"ln other/file dir/new", "rm dir/file",		"rmdir dir/sub",
		"mv dir/file dir/x",	 "mv other/file dir/x", "mv dir/file .",
		"mv other/file dir",	 "chmod 0700 dir",	"chown 4711 dir",
		"touch -d @1 dir",	 "mv dir moved",	"mkfifo dir/new",
		"mv dir other",
	};
	struct vfs_node *dir, *other;
	struct deleg d, e;
	struct fx f;

	NEED_KERNEL_CAN(watch_files);
	fx_open(&f, FX_SYSCALL, VFS_IO_BUFFERED, NULL);
	cr_assert_eq(vfs_leases_start(f.vfs), 0);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		dir = make_tree(&f);
		cr_assert_eq(vfs_lookup(&f.ctx, dir, "sub", 3, &other, NULL), 0);
		cr_assert_eq(give(&f, dir, &d, &alice), 0, "%s", commands[i]);
		cr_assert_eq(give(&f, other, &e, &alice), 0, "%s", commands[i]);
		local(&f, "touch dir/sub/../../other/x; chmod 0600 dir/file; cat dir/file; ls dir "
			  ">/dev/null");
		local(&f, commands[i]);
		cr_expect(is_recalled(&d), "%s", commands[i]);
		cr_expect_eq(d.d.within_s, 0);
		cr_expect_eq(e.recalls, 0, "another directory's, %s", commands[i]);
		vfs_deleg_end(&d.d);
		vfs_deleg_end(&e.d);
		vfs_node_put(other);
		vfs_node_put(dir);
	}
	cr_expect_eq(atomic_load(&f.vfs->files->leases), 0);
	vfs_leases_stop(f.vfs);
	fx_close(&f);
}

/* Neither changes of files below it nor those of the holder recall it. */
Test(vfs_deleg_dir, events_that_are_no_reason)
{
	struct vfs_node *dir, *other;
	struct deleg d, e;
	struct fx f;

	NEED_KERNEL_CAN(watch_files);
	fx_open(&f, FX_SYSCALL, VFS_IO_BUFFERED, NULL);
	cr_assert_eq(vfs_leases_start(f.vfs), 0);
	dir = make_tree(&f);
	other = fx_lookup(&f, "other");
	cr_assert_eq(give(&f, dir, &d, &alice), 0);
	cr_assert_eq(give(&f, other, &e, &alice), 0);
	local(&f, "chmod 0600 dir/file; echo x >dir/file; touch dir/sub/x; touch dir/file");
	f.ctx.client = &alice;
	cr_expect_eq(op_create(&f, dir), 0);
	cr_expect_eq(op_mode(&f, dir), 0);
	/* Events come in order: that of another directory is behind. */
	local(&f, "touch other/x");
	cr_expect(is_recalled(&e));
	cr_expect_eq(d.recalls, 0);
	vfs_deleg_end(&d.d);
	vfs_deleg_end(&e.d);
	vfs_node_put(other);
	vfs_node_put(dir);
	vfs_leases_stop(f.vfs);
	fx_close(&f);
}

/* Without events, or where a directory cannot be marked, there is no delegation. */
Test(vfs_deleg_dir, without_events)
{
	struct vfs_node *dir;
	struct deleg d;
	struct fx f;
	int changes;

	NEED_KERNEL_CAN(watch_files);
	fx_open(&f, FX_SYSCALL, VFS_IO_BUFFERED, NULL);
	dir = make_tree(&f);
	cr_expect_eq(give(&f, dir, &d, &alice), -EOPNOTSUPP, "nobody reads events");
	cr_assert_eq(vfs_leases_start(f.vfs), 0);
	changes = f.vfs->leases->changes;
	f.vfs->leases->changes = -1;
	cr_expect_eq(give(&f, dir, &d, &alice), -EOPNOTSUPP, "no mark");
	f.vfs->leases->changes = changes;
	cr_expect_eq(atomic_load(&f.vfs->files->leases), 0);
	cr_expect_eq(give(&f, dir, &d, &alice), 0);
	vfs_deleg_end(&d.d);
	vfs_node_put(dir);
	vfs_leases_stop(f.vfs);
	fx_close(&f);
}

/* Lost events may have been about any directory: all delegations are recalled. The kernel's overflow takes
 * 16384 processes, so a pipe in the place of its queue says that there was one. */
Test(vfs_deleg_dir, lost_events)
{
	const struct fanotify_event_metadata overflow = { .event_len = sizeof(overflow),
							  .vers = FANOTIFY_METADATA_VERSION,
							  .metadata_len = sizeof(overflow),
							  .mask = FAN_Q_OVERFLOW,
							  .fd = FAN_NOFD };
	struct vfs_node *dir, *other;
	struct deleg d, e;
	struct fx f;
	int ends[2];

	NEED_KERNEL_CAN(watch_files);
	fx_open(&f, FX_SYSCALL, VFS_IO_BUFFERED, NULL);
	cr_assert_eq(vfs_leases_start(f.vfs), 0);
	dir = make_tree(&f);
	other = fx_lookup(&f, "other");
	cr_assert_eq(give(&f, dir, &d, &alice), 0);
	cr_assert_eq(give(&f, other, &e, &bob), 0);
	cr_assert_eq(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	cr_assert_geq(dup2(ends[0], f.vfs->leases->changes), 0);
	/* The thread waits for the old queue until something else happens. */
	cr_assert_eq(tgkill(getpid(), atomic_load(&f.vfs->leases->tid), SIGIO), 0);
	cr_assert_eq(write(ends[1], &overflow, sizeof(overflow)), (ssize_t)sizeof(overflow));
	cr_expect(is_recalled(&d));
	cr_expect(is_recalled(&e));
	vfs_deleg_end(&d.d);
	vfs_deleg_end(&e.d);
	close(ends[0]);
	close(ends[1]);
	vfs_node_put(other);
	vfs_node_put(dir);
	vfs_leases_stop(f.vfs);
	fx_close(&f);
}

/* A holder that is told of changes instead. */
struct reader {
	struct vfs_deleg d;
	unsigned recalls, told;
	struct {
		enum vfs_notification what;
		char name[16], to[16];
		bool replaced, known, dir;
		uint32_t mode;
	} last[4];
};

static void note_recall(struct vfs_deleg *d)
{
	((struct reader *)d)->recalls++;
}

static void note_notification(struct vfs_deleg *d, const struct vfs_dir_notification *notification)
{
	struct reader *r = (struct reader *)d;
	const unsigned i = r->told++ % 4;

	r->last[i].what = notification->what;
	snprintf(r->last[i].name, sizeof(r->last[i].name), "%s",
		 notification->name ? notification->name : "");
	snprintf(r->last[i].to, sizeof(r->last[i].to), "%s",
		 notification->to ? notification->to : "");
	r->last[i].replaced = notification->replaced;
	r->last[i].known = notification->attr;
	r->last[i].mode = notification->attr ? notification->attr->mode & S_IFMT : 0;
	r->last[i].dir = notification->dir;
}

static const struct vfs_deleg_ops reader_ops = { .recall = note_recall, .tell = note_notification };

static int give_with_notifications(struct fx *f, struct vfs_node *n, struct reader *r,
				   const void *client, unsigned kinds)
{
	*r = (struct reader){ .d = { .ops = &reader_ops,
				     .client = client,
				     .type = VFS_DELEG_READ,
				     .notify_kinds = kinds } };
	memset(&f->vfs->files->recalled, 0, sizeof(f->vfs->files->recalled));
	return vfs_deleg_give(&f->ctx, n, &r->d);
}

#define ALL_NOTIFICATIONS (VFS_NOTIFY_ENTRIES | VFS_NOTIFY_ATTRS | VFS_NOTIFY_ENTRY)

/* Notification of each operation of the table above; 0: it recalls all the same. */
static const struct {
	unsigned what;
	const char *name, *to;
	uint32_t mode; /* type of the entry; 0: it comes without attributes */
} notification_of[sizeof(table) / sizeof(table[0])] = {
	{ VFS_NOTIFY_ADD, "new", "", S_IFREG },
	{ VFS_NOTIFY_ADD, "new", "", S_IFDIR },
	{ VFS_NOTIFY_ADD, "new", "", S_IFLNK },
	{ VFS_NOTIFY_REMOVE, "file", "", 0 },
	{ VFS_NOTIFY_REMOVE, "sub", "", 0 },
	{ VFS_NOTIFY_RENAME, "file", "new", S_IFREG },
	{ VFS_NOTIFY_ADD, "file", "file", S_IFREG },
	{ VFS_NOTIFY_REMOVE, "file", "", 0 },
	{ 0, "", "", 0 }, /* the directory itself is moved */
	{ VFS_NOTIFY_ADD, "new", "", S_IFREG },
	{ 0, "", "", 0 }, /* its mode */
	{ VFS_NOTIFY_ATTRS, "", "", 0 },
	{ VFS_NOTIFY_ATTRS, "", "", 0 },
};

static void check_notification(unsigned i, const struct reader *r, bool own)
{
	const bool told = notification_of[i].what != 0 &&
			  !(own && notification_of[i].what == VFS_NOTIFY_ATTRS);
	const char *op = table[i].name;

	cr_expect_eq(r->recalls, notification_of[i].what == 0 && !own, "%s: %u recalls", op,
		     r->recalls);
	cr_expect_eq(r->told, told, "%s: told %u times", op, r->told);
	if (!told)
		return;
	cr_expect_eq(r->last[0].what, notification_of[i].what, "%s", op);
	cr_expect_str_eq(r->last[0].name, notification_of[i].name, "%s", op);
	cr_expect_str_eq(r->last[0].to, notification_of[i].to, "%s", op);
	cr_expect_eq(r->last[0].replaced, table[i].run == op_move_in, "%s", op);
	cr_expect_eq(r->last[0].mode, notification_of[i].mode, "%s: %o", op, r->last[0].mode);
	cr_expect(r->last[0].dir, "%s", op);
}

/* A holder that takes all notifications is told, after the fact; others do not wait for it. */
Test(vfs_deleg_dir, notifications_of_every_operation)
{
	const void *clients[] = { &alice, &bob, NULL };
	struct vfs_node *dir;
	struct reader r;
	struct fx f;

	open_fx(&f);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		for (unsigned c = 0; c < 3; c++) {
			const bool own = clients[c] == &alice;

			dir = make_tree(&f);
			cr_assert_eq(
				give_with_notifications(&f, dir, &r, &alice, ALL_NOTIFICATIONS), 0);
			f.ctx.client = clients[c];
			cr_expect_eq(table[i].run(&f, dir),
				     notification_of[i].what == 0 && !own ? -RN_EDELEG : 0, "%s",
				     table[i].name);
			check_notification(i, &r, own);
			vfs_deleg_end(&r.d);
			f.ctx.client = NULL;
			vfs_node_put(dir);
		}
	}
	fx_close(&f);
}

/* Changes of a kind that the holder has not asked to be told of recall its delegation, and so does every change
 * once the holder wants no more notifications. */
Test(vfs_deleg_dir, other_notification)
{
	struct vfs_node *dir;
	struct reader r;
	struct fx f;

	open_fx(&f);
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		dir = make_tree(&f);
		cr_assert_eq(give_with_notifications(&f, dir, &r, &alice,
						     ALL_NOTIFICATIONS & ~notification_of[i].what),
			     0);
		f.ctx.client = &bob;
		cr_expect_eq(table[i].run(&f, dir), -RN_EDELEG, "%s", table[i].name);
		cr_expect_eq(r.recalls, 1);
		cr_expect_eq(r.told, 0);
		vfs_deleg_end(&r.d);
		vfs_node_put(dir);
	}
	dir = make_tree(&f);
	cr_assert_eq(give_with_notifications(&f, dir, &r, &alice, ALL_NOTIFICATIONS), 0);
	cr_expect_eq(op_create(&f, dir), 0);
	atomic_store(&r.d.notify_kinds, 0);
	cr_expect_eq(op_remove(&f, dir), -RN_EDELEG);
	cr_expect_eq(r.recalls, 1);
	cr_expect_eq(r.told, 1);
	atomic_store(&r.d.notify_kinds, ALL_NOTIFICATIONS);
	cr_expect_eq(op_remove(&f, dir), -RN_EDELEG, "a recalled one is told nothing");
	vfs_deleg_end(&r.d);
	vfs_node_put(dir);
	fx_close(&f);
}

/* A name that replaces another, links of one file, and failures, which nobody is told of. */
Test(vfs_deleg_dir, notifications_of_renamings)
{
	struct vfs_node *dir;
	struct reader r;
	struct fx f;

	open_fx(&f);
	dir = make_tree(&f);
	cr_assert_eq(fx_command("cd %s/dir && touch a && ln a b", f.dir), 0);
	cr_assert_eq(give_with_notifications(&f, dir, &r, &alice, ALL_NOTIFICATIONS), 0);
	f.ctx.client = &bob;
	cr_expect_eq(move(&f, dir, "a", dir, "b"), 0);
	cr_expect_eq(move(&f, dir, "none", dir, "b"), -ENOENT);
	cr_expect_eq(vfs_rmdir(&f.ctx, dir, "file", 4, NULL), -ENOTDIR);
	cr_expect_eq(r.told, 0);
	cr_expect_eq(move(&f, dir, "a", dir, "file"), 0);
	cr_assert_eq(r.told, 1);
	cr_expect(r.last[0].replaced);
	cr_expect_str_eq(r.last[0].to, "file");
	cr_expect_eq(move(&f, dir, "sub", dir, "moved"), 0);
	cr_assert_eq(r.told, 2);
	cr_expect_not(r.last[1].known, "a directory may be another export's");
	cr_expect_eq(r.recalls, 0);
	vfs_deleg_end(&r.d);
	vfs_node_put(dir);
	fx_close(&f);
}

/* A directory has at most VFS_NOTIFY_HOLDERS holders that are told, each once; a file has none. */
Test(vfs_deleg_dir, holders_of_notifications)
{
	static struct reader r[VFS_NOTIFY_HOLDERS + 1];
	struct vfs_node *dir, *file;
	struct fx f;

	open_fx(&f);
	dir = make_tree(&f);
	cr_assert_eq(vfs_lookup(&f.ctx, dir, "file", 4, &file, NULL), 0);
	cr_assert_eq(give_with_notifications(&f, file, &r[0], &alice, ALL_NOTIFICATIONS), 0);
	cr_expect_eq(atomic_load(&r[0].d.notify_kinds), 0, "a file's");
	vfs_deleg_end(&r[0].d);
	for (unsigned i = 0; i <= VFS_NOTIFY_HOLDERS; i++) {
		cr_assert_eq(give_with_notifications(&f, dir, &r[i], &r[i], ALL_NOTIFICATIONS), 0);
		cr_expect_eq(atomic_load(&r[i].d.notify_kinds),
			     i < VFS_NOTIFY_HOLDERS ? ALL_NOTIFICATIONS : 0);
	}
	cr_expect_eq(op_create(&f, dir), -RN_EDELEG);
	cr_expect_eq(r[VFS_NOTIFY_HOLDERS].recalls, 1);
	vfs_deleg_end(&r[VFS_NOTIFY_HOLDERS].d);
	cr_expect_eq(op_create(&f, dir), 0);
	for (unsigned i = 0; i < VFS_NOTIFY_HOLDERS; i++) {
		cr_expect_eq(r[i].told, 1, "%u", i);
		cr_expect_eq(r[i].recalls, 0);
		vfs_deleg_end(&r[i].d);
	}
	cr_assert_eq(give_with_notifications(&f, dir, &r[0], &alice, ALL_NOTIFICATIONS), 0);
	cr_expect_eq(atomic_load(&r[0].d.notify_kinds), ALL_NOTIFICATIONS, "there is room again");
	vfs_deleg_end(&r[0].d);
	vfs_node_put(file);
	vfs_node_put(dir);
	fx_close(&f);
}
