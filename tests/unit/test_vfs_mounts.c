/* SPDX-License-Identifier: BSD-2-Clause */
/* The mount table, and the mounts that handles may name. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs/base/instance.h"
#include "vfs/mount_table.h"
#include "vfs_fixture.h"

/* Makes a private mount namespace, which ends with the test's process. */
static void own_mounts(void)
{
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		cr_skip_test("may not mount: %s", strerror(errno));
}

static void mount_tmpfs(const char *at)
{
	cr_assert_eq(mount("ringnfs-test", at, "tmpfs", 0, "size=1m"), 0, "%s: %s", at,
		     strerror(errno));
}

static uint64_t mount_of(const char *path)
{
	struct statx sx;

	cr_assert_eq(vfs_statx_mount(AT_FDCWD, path, 0, 0, &sx), 0);
	return sx.stx_mnt_id;
}

Test(vfs_mounts, table_has_names_as_they_are)
{
	static const char *const names[] = { "plain", "two words", "a\nb\tc", "back\\040slash" };
	struct vfs_mount_table t;
	struct fixture f;

	fixture_open(&f, 0);
	own_mounts();
	for (unsigned i = 0; i < 4; i++) {
		char path[sizeof(f.dir) + 32];
		uint64_t id;

		snprintf(path, sizeof(path), "%s/%s", f.dir, names[i]);
		cr_assert_eq(mkdir(path, 0755), 0);
		mount_tmpfs(path);
		id = mount_of(path);
		cr_assert_eq(vfs_mount_table_load(&t), 0);
		cr_assert_not_null(vfs_mount_table_find(&t, id));
		cr_expect_str_eq(vfs_mount_table_find(&t, id)->path, path);
		cr_expect_eq(vfs_mount_table_find(&t, id)->parent, mount_of(f.dir));
		vfs_mount_table_free(&t);
		umount(path);
	}
	fixture_close(&f);
}

Test(vfs_mounts, table_tells_what_is_covered)
{
	struct vfs_mount_table t;
	struct fixture f;
	uint64_t id;

	fixture_open(&f, 0);
	own_mounts();
	mount_tmpfs(f.dir);
	id = mount_of(f.dir);
	cr_assert_eq(vfs_mount_table_load(&t), 0);
	cr_expect(vfs_mount_table_shows(&t, id, f.dir));
	cr_expect_not(vfs_mount_table_shows(&t, id, f.base), "it is mounted elsewhere");
	cr_expect_str_eq(vfs_mount_table_find(&t, id)->type, "tmpfs");
	cr_expect(vfs_mount_has_option(vfs_mount_table_find(&t, id), "rw"), "%s",
		  vfs_mount_table_find(&t, id)->fs_options);
	vfs_mount_table_free(&t);
	mount_tmpfs(f.dir);
	cr_assert_eq(vfs_mount_table_load(&t), 0);
	cr_expect_not(vfs_mount_table_shows(&t, id, f.dir), "another one is over it");
	vfs_mount_table_free(&t);
	umount(f.dir);
	umount(f.dir);
	cr_assert_eq(vfs_mount_table_load(&t), 0);
	cr_expect_null(vfs_mount_table_find(&t, id));
	vfs_mount_table_free(&t);
	fixture_close(&f);
}

Test(vfs_mounts, options)
{
	const struct vfs_mount_entry e = { .fs_options = "rw,name=x,recover_session=clean,acl" };
	const struct vfs_mount_entry none = { .fs_options = "" };

	cr_expect(vfs_mount_has_option(&e, "recover_session=clean"));
	cr_expect(vfs_mount_has_option(&e, "rw"));
	cr_expect(vfs_mount_has_option(&e, "acl"));
	cr_expect_not(vfs_mount_has_option(&e, "recover_session"));
	cr_expect_not(vfs_mount_has_option(&e, "recover_session=cle"));
	cr_expect_not(vfs_mount_has_option(&e, "name=xy"));
	cr_expect_not(vfs_mount_has_option(&none, "rw"));
}

Test(vfs_mounts, changes_are_told_once)
{
	struct fixture f;
	int fd;

	fixture_open(&f, 0);
	own_mounts();
	fd = vfs_mount_table_watch();
	cr_assert_geq(fd, 0);
	cr_expect_not(vfs_mount_table_changed(fd));
	mount_tmpfs(f.dir);
	cr_expect(vfs_mount_table_changed(fd));
	cr_expect_not(vfs_mount_table_changed(fd));
	umount(f.dir);
	cr_expect(vfs_mount_table_changed(fd));
	close(fd);
	fixture_close(&f);
}

/* Invented ids of submounts: only the first one causes the table to be read, until the table
 * changes. */
Test(vfs_mounts, made_up_submounts_cost_no_reading)
{
	struct vfs_mount *mnt;
	struct fixture f;
	const uint32_t *ids;

	own_mounts();
	fixture_open(&f, FIX_MAC | FIX_CROSSMNT);
	cr_assert_eq(vfs_mount_by_id(f.exp, 1, &mnt), -ESTALE);
	ids = f.exp->sub_ids;
	cr_assert_not_null(ids);
	cr_expect_eq(f.exp->sub_nids, 0);
	for (uint32_t id = 2; id < 1000; id++)
		cr_assert_eq(vfs_mount_by_id(f.exp, id, &mnt), -ESTALE);
	cr_expect_eq(f.exp->sub_ids, ids, "listed again");
	cr_assert_eq(mkdir(in_export(&f, "m"), 0755), 0);
	mount_tmpfs(in_export(&f, "m"));
	cr_assert_eq(vfs_mount_by_id(f.exp, 1, &mnt), -ESTALE);
	cr_expect_eq(f.exp->sub_nids, 1, "the new mount is known");
	cr_assert_eq(vfs_mount_by_id(f.exp, f.exp->sub_ids[0], &mnt), 0);
	vfs_mount_put(mnt);
	umount2(in_export(&f, "m"), MNT_DETACH);
	fixture_close(&f);
}

/* The server's mount is busy, whether or not the server uses a clone of it. */
Test(vfs_mounts, an_exported_mount_is_busy)
{
	struct vfs_export *exp;
	struct fixture f;
	const char *why;

	own_mounts();
	fixture_open(&f, 0);
	cr_assert_eq(mkdir(in_export(&f, "m"), 0755), 0);
	mount_tmpfs(in_export(&f, "m"));
	for (unsigned flags = 0; flags <= VFS_EXPORT_CROSSMNT; flags++) {
		cr_assert_eq(vfs_export_open(f.vfs,
					     &(struct vfs_export_config){ in_export(&f, "m"), 9,
									  VFS_IO_BUFFERED, flags },
					     &exp, &why),
			     0, "%s", why);
		cr_expect_eq(umount(in_export(&f, "m")), -1);
		cr_expect_eq(errno, EBUSY);
		vfs_export_put(exp);
	}
	cr_expect_eq(umount(in_export(&f, "m")), 0, "%s", strerror(errno));
	fixture_close(&f);
}
