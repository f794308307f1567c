/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replacing a file: the order of the system calls, on which a crash's outcome rests, and what is left after each of them has failed. The test's
 * definitions of these calls take the place of libc's.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/saved_file.h"

enum step { WRITE, SYNC_FILE, CLOSE, RENAME, SYNC_DIR, STEPS };

static const char *const step_names[] = { "write", "sync file", "close", "rename", "sync dir" };

static char dir[] = "/tmp/ringnfs-file-XXXXXX";
static int dirfd = -1;
static bool watching;
static enum step fail_at = STEPS; /* STEPS: none fails */
static size_t most = SIZE_MAX;	  /* bytes that one write takes */
static bool interrupted;	  /* the next write is */
static char seen[256];		  /* names of the calls, in their order */

static bool step_fails(enum step step)
{
	strncat(seen, step_names[step], sizeof(seen) - strlen(seen) - 1);
	strncat(seen, ";", sizeof(seen) - strlen(seen) - 1);
	if (step == fail_at)
		errno = EDQUOT;
	return step == fail_at;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	if (watching && interrupted) {
		interrupted = false;
		errno = EINTR;
		return -1;
	}
	if (watching && step_fails(WRITE))
		return -1;
	return syscall(SYS_write, fd, bytes, watching && len > most ? most : len);
}

int fsync(int fd)
{
	struct stat st;

	if (watching && fstat(fd, &st) == 0 &&
	    step_fails(S_ISDIR(st.st_mode) ? SYNC_DIR : SYNC_FILE))
		return -1;
	return (int)syscall(SYS_fsync, fd);
}

int close(int fd)
{
	const bool fails = watching && step_fails(CLOSE);
	const int rc = (int)syscall(SYS_close, fd);

	if (!fails)
		return rc;
	errno = EDQUOT;
	return -1;
}

int renameat(int from, const char *name, int to, const char *other)
{
	if (watching && step_fails(RENAME))
		return -1;
	return (int)syscall(SYS_renameat2, from, name, to, other, 0);
}

static void file_setup(void)
{
	cr_assert(mkdtemp(dir));
	dirfd = open(dir, O_RDONLY | O_DIRECTORY);
	cr_assert(dirfd >= 0);
}

static void file_end(void)
{
	unlinkat(dirfd, "f", 0);
	unlinkat(dirfd, "f" RN_FILE_NEW, 0);
	unlinkat(dirfd, "other", 0);
	close(dirfd);
	rmdir(dir);
}

TestSuite(saved_file, .init = file_setup, .fini = file_end);

static int replace(const char *text)
{
	int rc;

	seen[0] = '\0';
	watching = true;
	rc = rn_file_replace(dirfd, "f", text, strlen(text));
	watching = false;
	return rc;
}

static void assert_has(const char *name, const char *text)
{
	char got[64] = "";
	const int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW);

	cr_assert(fd >= 0, "%s: %s", name, strerror(errno));
	cr_assert(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	cr_assert_str_eq(got, text);
}

static bool is_there(const char *name)
{
	return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Test(saved_file, bytes_are_on_disk_before_the_name_and_the_name_before_the_return)
{
	cr_assert_eq(replace("old"), 0);
	cr_assert_eq(replace("new"), 0);
	cr_assert_str_eq(seen, "write;sync file;close;rename;sync dir;");
	assert_has("f", "new");
	cr_assert_not(is_there("f" RN_FILE_NEW));
}

Test(saved_file, mode_is_that_of_its_owner_alone)
{
	struct stat st;

	cr_assert_eq(replace("key"), 0);
	cr_assert_eq(fstatat(dirfd, "f", &st, AT_SYMLINK_NOFOLLOW), 0);
	cr_assert_eq(st.st_mode, S_IFREG | 0600);
}

Test(saved_file, failed_step_leaves_the_old_file_and_no_other)
{
	for (enum step step = WRITE; step < SYNC_DIR; step++) {
		fail_at = STEPS;
		cr_assert_eq(replace("old"), 0);
		fail_at = step;
		cr_assert_eq(replace("new"), -EDQUOT, "%s", step_names[step]);
		assert_has("f", "old");
		cr_assert_not(is_there("f" RN_FILE_NEW), "%s", step_names[step]);
	}
}

Test(saved_file, failed_sync_of_the_directory_is_an_error)
{
	cr_assert_eq(replace("old"), 0);
	fail_at = SYNC_DIR;
	cr_assert_eq(replace("new"), -EDQUOT);
	assert_has("f", "new");
	cr_assert_not(is_there("f" RN_FILE_NEW));
}

Test(saved_file, short_and_interrupted_writes_go_on)
{
	most = 2;
	interrupted = true;
	cr_assert_eq(replace("longer"), 0);
	cr_assert_str_eq(seen, "write;write;write;sync file;close;rename;sync dir;");
	assert_has("f", "longer");
}

Test(saved_file, file_of_a_crash_is_not_written_to)
{
	const int other = openat(dirfd, "other", O_WRONLY | O_CREAT, 0644);

	cr_assert_eq(rn_write_all(other, "keep", 4), 0);
	close(other);
	cr_assert_eq(linkat(dirfd, "other", dirfd, "f" RN_FILE_NEW, 0), 0);
	cr_assert_eq(replace("new"), 0);
	assert_has("f", "new");
	assert_has("other", "keep");
}

Test(saved_file, symbolic_link_is_not_followed)
{
	cr_assert_eq(symlinkat("other", dirfd, "f" RN_FILE_NEW), 0);
	cr_assert_eq(replace("new"), 0);
	assert_has("f", "new");
	cr_assert_not(is_there("other"));
}

Test(saved_file, name_without_room_for_the_suffix_is_refused)
{
	char name[NAME_MAX + 1];

	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	cr_assert_eq(rn_file_replace(dirfd, name, "x", 1), -ENAMETOOLONG);
	cr_assert_not(is_there(name));
}
