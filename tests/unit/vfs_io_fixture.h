/* SPDX-License-Identifier: BSD-2-Clause */
/* A served directory, one worker and short forms for the data path's tests. Needs root (handles,
 * identities) and a file system with handles; otherwise the test is skipped with the reason. */
#ifndef RN_TESTS_VFS_IO_FIXTURE_H
#define RN_TESTS_VFS_IO_FIXTURE_H

#include "lib/payload.h"
#include "vfs/io.h"
#include "vfs/vfs_worker.h"

#define FX_PATH 64

/* The worker's way to move data. */
enum fx_how { FX_FIXED, FX_PLAIN, FX_SYSCALL, FX_HOWS };

struct fx {
	struct rn_budget budget;
	struct rn_payload_pool *pool;
	struct vfs *vfs;
	struct vfs_export *exp;
	struct vfs_worker *w;
	struct rn_fiber fiber; /* this thread */
	struct vfs_ctx ctx;    /* root, until fx_user() is called */
	struct vfs_node *root;
	char dir[FX_PATH];
	bool own_dir; /* fx_open() has made the directory, and fx_close() removes it */
};

/* A fresh directory in $TMPDIR, otherwise in /var/tmp (/tmp may be without file handles). */
void fx_temp_dir(char path[FX_PATH]);
/* Skips the test unless it runs as root. */
void fx_need_root(void);
/* dir NULL: a fresh directory. entries: 0 for FX_SYSCALL. */
void fx_open(struct fx *f, enum fx_how how, enum vfs_io_mode mode, const char *dir);
void fx_open_entries(struct fx *f, unsigned entries, enum vfs_io_mode mode, const char *dir);
void fx_close(struct fx *f);

/* Acts as this user from here on, without additional groups. */
void fx_user(struct fx *f, uint32_t uid);

/* Creates a file in the directory by plain system calls. */
struct vfs_node *fx_file(struct fx *f, const char *name, const void *data, size_t len);
struct vfs_node *fx_lookup(struct fx *f, const char *name);
/* Path of a file, in a static buffer. */
const char *fx_path(const struct fx *f, const char *name);

/* Bytes that depend on offset and seed. */
uint8_t fx_byte(uint64_t offset, unsigned seed);
void fx_fill(void *buf, size_t len, uint64_t offset, unsigned seed);

/* Runs the worker's loop until *flag is true. */
void fx_run(struct fx *f, const bool *flag);
/* Starts a fiber on the worker: main(ctx, arg). It has ended, or waits for the ring, and goes on in fx_run. */
void fx_start(struct fx *f, void (*main)(struct vfs_ctx *ctx, void *arg), void *arg);

/* Whole operations: bytes moved, or -errno. out has room for count bytes. */
int64_t fx_read(struct fx *f, struct vfs_node *n, uint64_t offset, uint32_t count, void *out,
		bool *eof);
int64_t fx_write(struct fx *f, struct vfs_node *n, uint64_t offset, const void *data,
		 uint32_t count, enum vfs_stable stable);
int64_t fx_commit(struct fx *f, struct vfs_node *n, uint64_t offset, uint32_t count);
int fx_sync(struct fx *f, struct vfs_node *a, struct vfs_node *b, struct vfs_node *c);
int fx_sync_metadata(struct fx *f, struct vfs_node *n);

/* Number of a file's pages in the page cache; and a call that drops them. */
unsigned fx_cached_pages(struct fx *f, const char *name);
void fx_drop_cache(struct fx *f, const char *name);

/* Mounts a tmpfs in a private mount namespace; skips the test where that is not allowed. */
void fx_mount_tmpfs(const char *at, const char *options);
/* A disk that loses data, mounted at mnt: ext4 in a sparse image on a tmpfs that is too small for
 * it, at dir. Unstable writes of more than 12 MiB are accepted; writing them back fails. */
void fx_lossy_disk(char dir[FX_PATH], char mnt[FX_PATH + 16]);
void fx_lossy_disk_end(const char *dir, const char *mnt);
/* Unmounts mnt, the image in base, and then base, and removes base. Waits up to five seconds until
 * nobody looks at the image's loop device any more: that keeps the image open. True: it is done. */
bool fx_unmount_image(const char *mnt, const char *base);
/* Runs a command; returns its exit status. */
int fx_command(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
