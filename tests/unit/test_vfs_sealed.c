/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chattr(1) between two changes by descriptors that are open already: each way to change a file's data, with
 * each attribute, on each file system that has them. The owner's rights and a stateid's do not outlast it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "tests/unit/vfs_disk.h"
#include "vfs/space.h"

TestSuite(vfs_sealed, .timeout = 60);

#define OWNER 1000

struct calling {
	struct fx *f;
	struct vfs_node *n, *source;
	bool opened;
};

static int write_io(const struct calling *c)
{
	char data[] = "new";
	struct vfs_io io = { .ctx = &c->f->ctx,
			     .node = c->n,
			     .opened = c->opened,
			     .count = sizeof(data),
			     .piece = { { data, sizeof(data) } },
			     .npieces = 1 };
	const int64_t n = vfs_write(&io);

	return n < 0 ? (int)n : 0;
}

static int space_of(const struct calling *c, enum vfs_space_what what)
{
	struct vfs_space s = {
		.ctx = &c->f->ctx, .node = c->n, .what = what, .length = 4096, .opened = c->opened
	};

	return vfs_space(&s);
}

static int reserve(const struct calling *c)
{
	return space_of(c, VFS_SPACE_RESERVE);
}

static int punch(const struct calling *c)
{
	return space_of(c, VFS_SPACE_PUNCH);
}

static struct vfs_copy copy_of(const struct calling *c)
{
	return (struct vfs_copy){ .from = { .ctx = &c->f->ctx, .node = c->source, .opened = true },
				  .ctx = &c->f->ctx,
				  .node = c->n,
				  .opened = c->opened };
}

static int copy(const struct calling *c)
{
	struct vfs_copy k = copy_of(c);
	const int64_t n = vfs_copy(&k);

	return n < 0 ? (int)n : 0;
}

static int clone_of(const struct calling *c)
{
	const struct vfs_copy k = copy_of(c);

	return vfs_clone(&k);
}

static int set_size(const struct calling *c)
{
	const struct vfs_setattr sa = { .set_size = true, .size = 10, .opened = c->opened };

	return vfs_setattr(&c->f->ctx, c->n, &sa, NULL);
}

static int create(const struct calling *c)
{
	const struct vfs_setattr sa = { .set_size = true, .size = 0 };
	struct vfs_create how = { .how = VFS_UNCHECKED, .sa = &sa };
	struct vfs_node *n;
	int rc = vfs_create(&c->f->ctx, c->f->root, "file", 4, &how, &n);

	if (rc == 0)
		vfs_node_put(n);
	return rc;
}

static const struct {
	const char *name;
	int (*run)(const struct calling *c);
	bool optional; /* not on all file systems */
} changes[] = {
	{ "WRITE", write_io, false },  { "ALLOCATE", reserve, false },
	{ "DEALLOCATE", punch, true }, { "COPY", copy, false },
	{ "CLONE", clone_of, true },   { "SETATTR", set_size, false },
	{ "CREATE", create, false },
};

/* By a process, as this thread may act as the user. */
static void chattr(struct fx *f, const char *mode)
{
	cr_assert_eq(fx_command("chattr %s %s", mode, fx_path(f, "file")), 0);
}

static void check_change(struct calling *c, unsigned i, const char *fs)
{
	static const char *const set[] = { "+i", "+a" }, *const unset[] = { "-i", "-a" };
	const int before = changes[i].run(c); /* opens what stays open */

	if (before == -EOPNOTSUPP && changes[i].optional)
		return;
	cr_assert_eq(before, 0, "%s, %s: %d", fs, changes[i].name, before);
	for (unsigned k = 0; k < 2; k++) {
		chattr(c->f, set[k]);
		cr_expect_eq(changes[i].run(c), -EPERM, "%s, %s, %s, uid %u%s", fs, changes[i].name,
			     set[k], c->f->ctx.cred.uid, c->opened ? ", opened" : "");
		cr_expect_eq(fx_commit(c->f, c->n, 0, 0), 0, "nothing is changed");
		chattr(c->f, unset[k]);
		cr_expect_eq(changes[i].run(c), 0);
	}
}

static void check_fs(const char *fs, const char *mkfs_options)
{
	static uint8_t text[8192];
	struct disk d;
	struct calling c = { .f = &d.f };

	disk_open(&d, fs, mkfs_options);
	c.n = fx_file(&d.f, "file", text, sizeof(text));
	c.source = fx_file(&d.f, "source", text, sizeof(text));
	cr_assert_eq(chown(fx_path(&d.f, "file"), OWNER, OWNER), 0);
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		for (unsigned how = 0; how < 4; how++) {
			fx_user(&d.f, how & 1 ? OWNER : 0);
			c.opened = how & 2;
			check_change(&c, i, fs);
		}
	}
	vfs_node_put(c.n);
	vfs_node_put(c.source);
	disk_close(&d);
}

Test(vfs_sealed, ext4)
{
	check_fs("ext4", "-q");
}

Test(vfs_sealed, xfs)
{
	check_fs("xfs", "-q");
}

Test(vfs_sealed, btrfs)
{
	check_fs("btrfs", "-q");
}
