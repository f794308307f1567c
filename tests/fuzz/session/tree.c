/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/users.h"

#define RW SS_BASE "/rw"
#define RO SS_BASE "/ro"
#define MANY 300

/* Objects of the tree at the start. Directories stand before their contents. */
static const struct object {
	const char *path;
	mode_t mode; /* type and permissions */
	off_t size;
	uid_t uid;
} objects[] = {
	{ RW, S_IFDIR | 0777, 0, 0 },
	{ RW "/file", S_IFREG | 0666, 10000, 0 },
	{ RW "/link", S_IFLNK, 0, 0 },
	{ RW "/dir", S_IFDIR | 0777, 0, 0 },
	{ RW "/dir/inner", S_IFREG | 0644, 100, 0 },
	{ RW "/big", S_IFREG | 0666, 3 << 20, 0 },
	{ RW "/fifo", S_IFIFO | 0666, 0, 0 },
	{ RW "/secret", S_IFREG | 0600, 0, SS_UID_OWNER },
	{ RW "/private", S_IFREG | 0600, 0, SS_UID_OWNER },
	{ SS_BASE "/sq", S_IFDIR | 0777, 0, 0 },
	{ SS_LATE_DIR, S_IFDIR | 0777, 0, 0 },
	{ SS_CROSS_DIR, S_IFDIR | 0777, 0, 0 },
	{ SS_SUB_DIR, S_IFDIR | 0777, 0, 0 },
};

/* The file with the secret and the one that gets it later, as the driver left them. */
static struct {
	int fd;
	struct timespec changed_at;
} kept[2] = { { .fd = -1 }, { .fd = -1 } };

/* Objects that nobody may change. */
static struct {
	const char *const path;
	struct timespec changed_at;
} read_only[] = {
	{ RO, { 0 } },
	{ RO "/file", { 0 } },
	{ RO "/many", { 0 } },
	{ SS_KRB_DIR, { 0 } },
	{ SS_KRB_DIR "/" SS_KRB_NAME, { 0 } },
	{ SS_TLS_DIR, { 0 } },
	{ SS_TLS_DIR "/" SS_TLS_NAME, { 0 } },
};

static atomic_bool secret_copied; /* since the tree was made */

static struct timespec changed_at[rn_array_size(objects)];

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

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

void ss_tree_exports(unsigned variant)
{
	static const char *const nets[] = { "127.0.0.0/23", "127.0.2.0/24", "127.0.4.0/24" };
	static const char *const rights[] = { "rw,no_root_squash", "ro,no_root_squash",
					      "rw,root_squash" };
	static const struct {
		const char *path, *options, *more; /* more: for others than the driver */
	} exports[] = {
		{ RW, "sync,sec=sys:none:krb5:krb5i:krb5p", "" },
		{ RO, "ro,sec=sys:krb5i:krb5", "" },
		{ SS_BASE "/sq", "all_squash,async", ",sec=sys:krb5p" },
		{ SS_LATE_DIR, "sync", "" },
		{ SS_CROSS_DIR, "crossmnt", "" },
		{ SS_DISK_DIR, "sync", ",sec=sys:krb5p:krb5" },
		{ SS_KRB_DIR, "ro", ",sec=krb5p" },
		{ SS_TLS_DIR, "ro", ",sec=sys:krb5i,xprtsec=tls:mtls" },
	};
	char text[4096];
	size_t n = 0;

	for (size_t i = 0; i < rn_array_size(exports); i++) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", exports[i].path);
		/* The driver's own address keeps its access. */
		n += (size_t)snprintf(text + n, sizeof(text) - n, " 127.0.0.0/24(%s,insecure,%s)",
				      rights[0], exports[i].options);
		for (unsigned k = 0; k < rn_array_size(nets); k++)
			if (variant != k + 1)
				n += (size_t)snprintf(text + n, sizeof(text) - n,
						      " %s(%s,insecure,%s%s)", nets[k], rights[k],
						      exports[i].options, exports[i].more);
		/* A host name, so that the server asks a name service about all other hosts. */
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\n",
				      i == 1 ? " localhost(ro,insecure)" : "");
	}
	write_text(SS_BASE "/exports", text);
}

static void make_fixed_part(void)
{
	char path[64];

	must(mkdir(SS_BASE "/state", 0700) == 0 && mkdir(RO, 0755) == 0 &&
		     mkdir(RO "/many", 0755) == 0 && mkdir(SS_KRB_DIR, 0755) == 0 &&
		     mkdir(SS_TLS_DIR, 0755) == 0,
	     SS_BASE);
	write_text(SS_KRB_DIR "/" SS_KRB_NAME, SS_KRB_NAME "\n");
	write_text(SS_TLS_DIR "/" SS_TLS_NAME, SS_TLS_NAME "\n");
	write_text(SS_IDMAP_FILE,
		   "[General]\nDomain = fuzz\nLocal-Realms = FUZZ\n[Translation]\nMethod = static\n"
		   "[Static]\nalice@FUZZ = root\nbob@FUZZ = daemon\n");
	write_text(RO "/file", "what cannot be changed\n");
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), RO "/many/%.*s%u", (int)(i % 40),
			 "a-name-that-is-now-long-and-now-short--", i);
		write_text(path, "");
	}
	ss_tree_exports(0);
}

const char *ss_tree_changed_read_only(void)
{
	struct stat st;

	for (size_t i = 0; i < rn_array_size(read_only); i++)
		if (lstat(read_only[i].path, &st) < 0 ||
		    !same_time(&st.st_ctim, &read_only[i].changed_at))
			return read_only[i].path;
	return NULL;
}

/* After this nothing of it may change. */
static void note_read_only(void)
{
	struct stat st;

	for (size_t i = 0; i < rn_array_size(read_only); i++) {
		must(lstat(read_only[i].path, &st) == 0, read_only[i].path);
		read_only[i].changed_at = st.st_ctim;
	}
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
	note_read_only();
	ss_tree_reset(true);
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

/* truncate(2) would wait for the lease of a delegated file, while nobody answers the recall. */
static int truncate_now(const char *path, off_t size)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	int err = fd < 0 ? -1 : ftruncate(fd, size);

	if (fd >= 0)
		close(fd);
	return err;
}

/* Room of a long file is given back at once: the server may keep it open for a while. */
#define LONG (1 << 20)

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_F && st->st_size > LONG)
		(void)truncate_now(path, 0);
	if (ftw->level > 0)
		remove(path); /* a failure shows when the object is made anew */
	return 0;
}

static void fill(const char *path, off_t size)
{
	static uint8_t block[256 << 10];
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
	must(chown(o->path, o->uid, o->uid) == 0 && chmod(o->path, o->mode & 07777) == 0, o->path);
}

static struct timespec last_change(int fd)
{
	struct stat st;

	must(fstat(fd, &st) == 0, "a file of the tree");
	return st.st_ctim;
}

static void write_secrets(int fd, const char *path)
{
	enum { COPIES = 100, LEN = sizeof(SS_SECRET) - 1 };
	char text[COPIES * LEN];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = SS_SECRET[i % LEN];
	must(write(fd, text, sizeof(text)) == (ssize_t)sizeof(text), path);
	/* Older tmpfs have no such attributes. */
	(void)!fsetxattr(fd, "user.key", SS_SECRET, LEN, 0);
}

/* The driver keeps both files open. The old times of the empty file act as the verifier of an
 * EXCLUSIVE create. */
static void make_secrets(void)
{
	static const char *const paths[] = { RW "/secret", RW "/private" };
	const struct timespec times[2] = { { .tv_sec = 0x01020304 }, { .tv_sec = 0x05060708 } };

	for (unsigned i = 0; i < rn_array_size(kept); i++) {
		if (kept[i].fd >= 0)
			close(kept[i].fd);
		kept[i].fd = open(paths[i], O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		must(kept[i].fd >= 0, paths[i]);
	}
	write_secrets(kept[0].fd, paths[0]);
	must(futimens(kept[1].fd, times) == 0, paths[1]);
	for (unsigned i = 0; i < rn_array_size(kept); i++)
		kept[i].changed_at = last_change(kept[i].fd);
	atomic_store(&secret_copied, false);
}

bool ss_tree_may_copy(int from, int to)
{
	struct stat a, b, k;

	if (fstat(from, &a) != 0 || fstat(to, &b) != 0)
		return true;
	for (unsigned i = 0; i < rn_array_size(kept); i++) {
		if (fstat(kept[i].fd, &k) != 0 || a.st_dev != k.st_dev || a.st_ino != k.st_ino)
			continue;
		if (b.st_dev != a.st_dev)
			return false;
		atomic_store(&secret_copied, true);
	}
	return true;
}

bool ss_tree_secret_is_kept(void)
{
	if (atomic_load(&secret_copied))
		return false;
	for (unsigned i = 0; i < rn_array_size(kept); i++) {
		struct timespec now = last_change(kept[i].fd);

		if (!same_time(&now, &kept[i].changed_at))
			return false;
	}
	return true;
}

uint64_t ss_tree_exclusive(void)
{
	struct stat st;

	must(fstat(kept[1].fd, &st) == 0, "a file of the tree");
	return (uint64_t)st.st_atim.tv_sec << 32 | (uint32_t)st.st_mtim.tv_sec;
}

/* The owner of the empty file writes the secret into it. Not if another user has changed the file
 * meanwhile, because its mode may now let others read it. */
static int write_private(void)
{
	if (!ss_tree_secret_is_kept())
		return 0;
	ssize_t n = pwrite(kept[1].fd, SS_SECRET, sizeof(SS_SECRET) - 1, 0);

	kept[1].changed_at = last_change(kept[1].fd);
	return n < 0 ? -1 : 0;
}

void ss_tree_fill(const char *path, bool full)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	off_t step = 16 << 20, at = 0;

	must(fd >= 0 && ftruncate(fd, 0) == 0, path);
	while (full && step >= 4096) {
		if (fallocate(fd, 0, at, step) == 0)
			at += step;
		else
			step /= 2;
	}
	close(fd);
}

void ss_tree_full(bool full)
{
	ss_tree_fill(SS_BASE "/filler", full);
}

bool ss_tree_reset(bool anew)
{
	struct stat st;

	if (!anew && unchanged())
		return false;
	/* The exports' own directories stay, because the server has them open. A mode of 0 does not
	 * stop root. */
	nftw(RW, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	nftw(SS_BASE "/sq", remove_one, 16, FTW_DEPTH | FTW_PHYS);
	nftw(SS_LATE_DIR, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	nftw(SS_CROSS_DIR, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	for (size_t i = 0; i < rn_array_size(objects); i++)
		make_object(&objects[i]);
	make_secrets();
	for (size_t i = 0; i < rn_array_size(objects); i++) {
		must(lstat(objects[i].path, &st) == 0, objects[i].path);
		changed_at[i] = st.st_ctim;
	}
	return true;
}

/* Failures are ignored: a client may have removed or replaced the object. */
void ss_tree_change(unsigned which)
{
	int err = 0;

	switch (which % 12) {
	case 0:
		err = unlink(RW "/file");
		break;
	case 1:
		err = rename(RW "/file", RW "/dir/was-file");
		break;
	case 2:
		err = truncate_now(RW "/file", 100);
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
	case 8:
	case 9:
		err = write_private();
		break;
	case 10:
		err = rename(RW "/private", RW "/made");
		break;
	default:
		err = chmod(RW "/file", 06777);
	}
	(void)err;
}
