/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store of files in a directory that all members have mounted:
 *
 *   object       the shared object: version, length, bytes, checksum
 *   object.new   the next one while it is written (lib/saved_file.h); left behind by a crash, and replaced
 *   lock         taken (F_OFD_SETLK) to replace the object; reading needs no lock
 *   beat.NAME    heartbeat of a member, overwritten in place by it alone
 *
 * The object is written aside, synced, renamed, and the directory is synced. So a crash at any step leaves the old or the new one,
 * and a reader finds either of them whole. The lock of a machine that dies meanwhile stays until the file system gives it up.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/cluster_store.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/saved_file.h"
#include "lib/util.h"

#define HEADER 12u  /* version, length */
#define CHECKSUM 8u /* behind the bytes */
#define FILE_MAX (HEADER + CLUSTER_BYTES_MAX + CHECKSUM)
#define BEAT_BYTES (CLUSTER_NAME_SIZE + 3 * 8u + CHECKSUM)
#define DIRECT_ALIGN 4096u /* largest alignment that O_DIRECT asks for */
#define DIRECT_MAX ((FILE_MAX / DIRECT_ALIGN + 1) * DIRECT_ALIGN) /* longer than any file here */
#define LOCK_MS 1000u /* time limit for the lock of another swap */
#define LOCK_POLL_MS 5u

struct store_file {
	struct cluster_store store;
	int dir, lock;
};

static struct store_file *store_file_of(struct cluster_store *s)
{
	return rn_container_of(s, struct store_file, store);
}

/*
 * Reads a file whole, past the kernel's page cache where that can be: a member must see what others wrote, and ceph-fuse of Debian 12 on Linux 6.18 lets
 * old pages stand. -EMSGSIZE: it is longer than size.
 */
static int store_read_file(int dir, const char *name, uint8_t *bytes, size_t size, size_t *len)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	_Alignas(DIRECT_ALIGN) uint8_t file[DIRECT_MAX];
	int fd = openat(dir, name, flags | O_DIRECT);
	ssize_t n;

	if (fd < 0 && errno == EINVAL) /* the file system has no O_DIRECT, as tmpfs */
		fd = openat(dir, name, flags);
	if (fd < 0)
		return -errno;
	n = pread(fd, file, sizeof(file), 0);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return (int)n;
	if ((size_t)n > size)
		return -EMSGSIZE;
	memcpy(bytes, file, (size_t)n);
	*len = (size_t)n;
	return 0;
}

static int store_file_read(struct cluster_store *s, uint8_t *bytes, size_t size, size_t *len,
			   uint64_t *version)
{
	struct store_file *f = store_file_of(s);
	uint8_t file[FILE_MAX];
	size_t n;
	int rc;

	*version = 0;
	rc = store_read_file(f->dir, "object", file, sizeof(file), &n);
	if (rc == -ESTALE) /* it was replaced between the look-up and the opening */
		rc = store_read_file(f->dir, "object", file, sizeof(file), &n);
	if (rc != 0)
		return rc == -EMSGSIZE ? -EBADMSG : rc;
	if (n < HEADER + CHECKSUM || rn_get32(file + 8) != n - HEADER - CHECKSUM ||
	    rn_get32(file + 8) > size ||
	    rn_get64(file + n - CHECKSUM) != XXH3_64bits(file, n - CHECKSUM) || rn_get64(file) == 0)
		return -EBADMSG;
	*version = rn_get64(file);
	*len = n - HEADER - CHECKSUM;
	memcpy(bytes, file + HEADER, *len);
	return 0;
}

/* -ETIMEDOUT: another process has the lock, perhaps on a machine that has died. */
static int store_lock(struct store_file *f)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const uint64_t until = rn_now_ms() + LOCK_MS;

	while (fcntl(f->lock, F_OFD_SETLK, &fl) != 0) {
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
		if (rn_now_ms() >= until)
			return -ETIMEDOUT;
		rn_sleep_ms(LOCK_POLL_MS);
	}
	return 0;
}

static void store_unlock(struct store_file *f)
{
	struct flock fl = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	fcntl(f->lock, F_OFD_SETLK, &fl);
}

static int store_replace(struct store_file *f, uint64_t version, const uint8_t *bytes, size_t len)
{
	uint8_t file[FILE_MAX];

	rn_put64(file, version);
	rn_put32(file + 8, (uint32_t)len);
	memcpy(file + HEADER, bytes, len);
	rn_put64(file + HEADER + len, XXH3_64bits(file, HEADER + len));
	return rn_file_replace(f->dir, "object", file, HEADER + len + CHECKSUM);
}

static int store_file_swap(struct cluster_store *s, uint64_t version, const uint8_t *bytes,
			   size_t len)
{
	struct store_file *f = store_file_of(s);
	uint8_t old[CLUSTER_BYTES_MAX];
	uint64_t current;
	size_t n;
	int rc;

	if (len > CLUSTER_BYTES_MAX)
		return -EMSGSIZE;
	rc = store_lock(f);
	if (rc != 0)
		return rc;
	rc = store_file_read(s, old, sizeof(old), &n, &current);
	if (rc == 0 || rc == -ENOENT)
		rc = current == version ? store_replace(f, version + 1, bytes, len) : -RN_ECHANGED;
	store_unlock(f);
	return rc;
}

static void store_beat_file(char file[CLUSTER_NAME_SIZE + 8], const char *name)
{
	snprintf(file, CLUSTER_NAME_SIZE + 8, "beat.%s", name);
}

static int store_file_beat(struct cluster_store *s, const struct cluster_beat *beat)
{
	struct store_file *f = store_file_of(s);
	char name[CLUSTER_NAME_SIZE + 8];
	uint8_t bytes[BEAT_BYTES] = { 0 };
	int fd, rc;

	memcpy(bytes, beat->name, strnlen(beat->name, CLUSTER_NAME_SIZE));
	rn_put64(bytes + CLUSTER_NAME_SIZE, beat->incarnation);
	rn_put64(bytes + CLUSTER_NAME_SIZE + 8, beat->count);
	rn_put64(bytes + CLUSTER_NAME_SIZE + 16, beat->wall_ns);
	rn_put64(bytes + BEAT_BYTES - CHECKSUM, XXH3_64bits(bytes, BEAT_BYTES - CHECKSUM));
	store_beat_file(name, beat->name);
	fd = openat(f->dir, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	rc = rn_write_all(fd, bytes, sizeof(bytes));
	if (close(fd) != 0 && rc == 0)
		rc = -errno;
	return rc;
}

static int store_file_look(struct cluster_store *s, const char *name, struct cluster_beat *beat)
{
	struct store_file *f = store_file_of(s);
	char file[CLUSTER_NAME_SIZE + 8];
	uint8_t bytes[BEAT_BYTES];
	size_t len;
	int rc;

	store_beat_file(file, name);
	rc = store_read_file(f->dir, file, bytes, sizeof(bytes), &len);
	if (rc != 0)
		return rc == -EMSGSIZE ? -EBADMSG : rc;
	if (len != sizeof(bytes) ||
	    rn_get64(bytes + BEAT_BYTES - CHECKSUM) != XXH3_64bits(bytes, BEAT_BYTES - CHECKSUM) ||
	    strncmp((const char *)bytes, name, CLUSTER_NAME_SIZE) != 0)
		return -EBADMSG;
	memcpy(beat->name, bytes, CLUSTER_NAME_SIZE);
	beat->incarnation = rn_get64(bytes + CLUSTER_NAME_SIZE);
	beat->count = rn_get64(bytes + CLUSTER_NAME_SIZE + 8);
	beat->wall_ns = rn_get64(bytes + CLUSTER_NAME_SIZE + 16);
	return 0;
}

static int store_file_use(struct cluster_store *s, const struct cluster_self *self,
			  const uint64_t *clients, unsigned n)
{
	(void)s;
	(void)self;
	(void)clients;
	(void)n;
	return 0;
}

static int store_file_evict(struct cluster_store *s, const char *name, uint64_t incarnation)
{
	(void)s;
	(void)name;
	(void)incarnation;
	return -EOPNOTSUPP;
}

static void store_file_close(struct cluster_store *s)
{
	struct store_file *f = store_file_of(s);

	close(f->lock);
	close(f->dir);
	free(f);
}

static const struct cluster_store_ops store_file_ops = {
	.read = store_file_read,
	.swap = store_file_swap,
	.beat = store_file_beat,
	.look = store_file_look,
	.use = store_file_use,
	.evict = store_file_evict,
	.close = store_file_close,
};

int cluster_store_file_open(const char *path, struct cluster_store **store)
{
	struct store_file *f = calloc(1, sizeof(*f));
	int rc = 0;

	if (!f)
		return -ENOMEM;
	f->store.ops = &store_file_ops;
	f->lock = -1;
	f->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dir >= 0)
		f->lock = openat(f->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->lock >= 0) {
		*store = &f->store;
		return 0;
	}
	rc = -errno;
	if (f->dir >= 0)
		close(f->dir);
	free(f);
	return rc;
}
