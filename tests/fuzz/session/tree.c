/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/checked.h"
#include "tests/fuzz/session/finding.h"

#define RW SS_BASE "/rw"
#define RO SS_BASE "/ro"
#define MANY 300

/* What is there at the start, the directories' contents after them. */
static const struct object {
	const char *path;
	mode_t mode; /* with the type */
	off_t size;
} objects[] = {
	{ RW, S_IFDIR | 0777, 0 },
	{ RW "/file", S_IFREG | 0666, 10000 },
	{ RW "/link", S_IFLNK, 0 },
	{ RW "/dir", S_IFDIR | 0777, 0 },
	{ RW "/dir/inner", S_IFREG | 0644, 100 },
	{ RW "/big", S_IFREG | 0666, 3 << 20 },
	{ RW "/fifo", S_IFIFO | 0666, 0 },
	{ SS_BASE "/sq", S_IFDIR | 0777, 0 },
};

static struct timespec changed_at[rn_array_size(objects)];

static void must(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	must(f && fputs(text, f) >= 0 && fclose(f) == 0, path);
}

static void make_fixed_part(void)
{
	char path[64];

	must(mkdir(SS_BASE "/state", 0700) == 0 && mkdir(RO, 0755) == 0 &&
		     mkdir(RO "/many", 0755) == 0,
	     SS_BASE);
	write_text(RO "/file", "what cannot be changed\n");
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), RO "/many/%.*s%u", (int)(i % 40),
			 "a-name-that-is-now-long-and-now-short--", i);
		write_text(path, "");
	}
	write_text(SS_BASE "/exports",
		   RW " 127.0.0.0/8(rw,no_root_squash,insecure,sync,sec=sys:none)\n" RO
		      " 127.0.0.0/8(ro,insecure) localhost(ro,insecure)\n" SS_BASE
		      "/sq 127.0.0.0/8(rw,all_squash,insecure,async)\n");
}

const char *ss_tree_mount(void)
{
	if (geteuid() != 0)
		return "file handles and identities need root";
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", SS_BASE, "tmpfs", 0, "size=96m,nr_inodes=4096,mode=0755") < 0)
		return "a mount namespace and a tmpfs in it cannot be had";
	umask(0);
	make_fixed_part();
	ss_tree_reset();
	return NULL;
}

static bool unchanged(void)
{
	struct stat st;

	for (size_t i = 0; i < rn_array_size(objects); i++)
		if (lstat(objects[i].path, &st) < 0 || st.st_ctim.tv_sec != changed_at[i].tv_sec ||
		    st.st_ctim.tv_nsec != changed_at[i].tv_nsec)
			return false;
	return true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	if (ftw->level > 0)
		remove(path); /* what stays shows when it is to be made anew */
	return 0;
}

static void fill(const char *path, off_t size)
{
	uint8_t block[4096];
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_NOFOLLOW, 0600);

	must(fd >= 0, path);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)(i * 13);
	while (size > 0) {
		size_t n = rn_min((size_t)size, sizeof(block));

		must(write(fd, block, n) == (ssize_t)n, path);
		size -= (off_t)n;
	}
	close(fd);
}

static void make_object(const struct object *o)
{
	switch (o->mode & S_IFMT) {
	case S_IFDIR:
		must(mkdir(o->path, 0700) == 0 || errno == EEXIST, o->path);
		break;
	case S_IFLNK:
		must(symlink("dir/inner", o->path) == 0, o->path);
		return;
	case S_IFIFO:
		must(mkfifo(o->path, 0600) == 0, o->path);
		break;
	default:
		fill(o->path, o->size);
	}
	must(chown(o->path, 0, 0) == 0 && chmod(o->path, o->mode & 07777) == 0, o->path);
}

bool ss_tree_reset(void)
{
	struct stat st;

	if (unchanged())
		return false;
	/* The exports' own directories stay: the server has them open. A mode of 0 does not stop
	 * root. */
	nftw(RW, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	nftw(SS_BASE "/sq", remove_one, 16, FTW_DEPTH | FTW_PHYS);
	for (size_t i = 0; i < rn_array_size(objects); i++)
		make_object(&objects[i]);
	for (size_t i = 0; i < rn_array_size(objects); i++) {
		must(lstat(objects[i].path, &st) == 0, objects[i].path);
		changed_at[i] = st.st_ctim;
	}
	return true;
}

/* Failure is as good: the object may be gone, or another. */
void ss_tree_change(unsigned which)
{
	int err = 0;

	switch (which % 8) {
	case 0:
		err = unlink(RW "/file");
		break;
	case 1:
		err = rename(RW "/file", RW "/dir/was-file");
		break;
	case 2:
		err = truncate(RW "/file", 100);
		break;
	case 3:
		err = nftw(RW "/dir", remove_one, 16, FTW_DEPTH | FTW_PHYS) || rmdir(RW "/dir");
		break;
	case 4:
		err = rename(RW "/big", RW "/file");
		break;
	case 5:
		err = chmod(RW "/dir", 0);
		break;
	case 6:
		err = symlink("/etc/hostname", RW "/made");
		break;
	default:
		err = chmod(RW "/file", 06777);
	}
	(void)err;
}
