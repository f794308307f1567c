/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/vfs_io_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/worker/worker_state.h"

void fx_need_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: handles and identities");
}

void fx_temp_dir(char path[FX_PATH])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(path, FX_PATH, "%s/ringnfs-io.XXXXXX", tmp ? tmp : "/var/tmp");
	cr_assert_not_null(mkdtemp(path));
}

static void fx_open_worker(struct fx *f, unsigned entries)
{
	int rc = vfs_worker_new(f->vfs, entries, &f->w);

	cr_assert_eq(rc, 0, "vfs_worker_new: %s", strerror(-rc));
	if (entries && !vfs_worker_has_ring(f->w))
		cr_skip_test("io_uring is switched off here");
	rn_fiber_of_thread(&f->fiber, f->w);
	f->ctx = (struct vfs_ctx){ .vfs = f->vfs, .fiber = &f->fiber, .exp = f->exp };
	vfs_access_accept(&f->ctx.access, VFS_SEC_SYS, 0);
	rc = vfs_root(&f->ctx, &f->root);
	cr_assert_eq(rc, 0, "vfs_root: %s", strerror(-rc));
}

void fx_open_entries(struct fx *f, unsigned entries, enum vfs_io_mode mode, const char *dir)
{
	struct vfs_config cfg = { .max_fds = 1000, .write_verifier = 4711 };
	const char *why = "";
	int rc;

	fx_need_root();
	memset(f, 0, sizeof(*f));
	rn_budget_init(&f->budget, 64u << 20);
	f->pool = rn_payload_pool_new(&f->budget);
	cr_assert_not_null(f->pool);
	cfg.pool = f->pool;
	cr_assert_eq(vfs_new(&cfg, &f->vfs), 0);
	f->own_dir = dir == NULL;
	if (f->own_dir)
		fx_temp_dir(f->dir);
	else
		snprintf(f->dir, sizeof(f->dir), "%s", dir);
	cr_assert_eq(chmod(f->dir, 0755), 0);
	rc = vfs_export_open(f->vfs, &(struct vfs_export_config){ f->dir, 1, mode, false }, &f->exp,
			     &why);
	if (rc == -EOPNOTSUPP && f->own_dir)
		rmdir(f->dir);
	if (rc == -EOPNOTSUPP)
		cr_skip_test("no file handles in the directory for temporary files: set TMPDIR");
	cr_assert_eq(rc, 0, "vfs_export_open: %s: %s", strerror(-rc), why);
	fx_open_worker(f, entries);
}

void fx_open(struct fx *f, enum fx_how how, enum vfs_io_mode mode, const char *dir)
{
	fx_open_entries(f, how == FX_SYSCALL ? 0 : 64, mode, dir);
	if (how == FX_PLAIN)
		f->w->fixed = false;
	else if (how == FX_FIXED)
		cr_assert(f->w->fixed);
}

void fx_close(struct fx *f)
{
	cr_assert_eq(vfs_worker_in_flight(f->w), 0);
	vfs_node_put(f->root);
	cr_assert_eq(vfs_identity_root(&f->w->identity), 0);
	vfs_worker_free(f->w);
	vfs_forget_export(f->vfs, 1);
	vfs_export_put(f->exp);
	vfs_free(f->vfs);
	rn_payload_pool_free(f->pool);
	if (f->own_dir)
		fx_command("rm -rf %s", f->dir);
}

void fx_user(struct fx *f, uint32_t uid)
{
	f->ctx.cred = (struct vfs_cred){ .uid = uid, .gid = uid };
}

const char *fx_path(const struct fx *f, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	return path;
}

struct vfs_node *fx_lookup(struct fx *f, const char *name)
{
	struct vfs_cred user = f->ctx.cred;
	struct vfs_node *n = NULL;
	int rc;

	memset(&f->ctx.cred, 0, sizeof(f->ctx.cred));
	rc = vfs_lookup(&f->ctx, f->root, name, (uint32_t)strlen(name), &n, NULL);
	f->ctx.cred = user;
	cr_assert_eq(rc, 0, "vfs_lookup: %s", strerror(-rc));
	return n;
}

struct vfs_node *fx_file(struct fx *f, const char *name, const void *data, size_t len)
{
	int fd;

	cr_assert_eq(vfs_identity_root(&f->w->identity), 0);
	fd = open(fx_path(f, name), O_CREAT | O_TRUNC | O_WRONLY, 0644);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, data, len), (ssize_t)len);
	close(fd);
	return fx_lookup(f, name);
}

uint8_t fx_byte(uint64_t offset, unsigned seed)
{
	return (uint8_t)((offset * 31 + (offset >> 8) * 7 + (offset >> 16) + seed) | 1);
}

void fx_fill(void *buf, size_t len, uint64_t offset, unsigned seed)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = fx_byte(offset + i, seed);
}

void fx_run(struct fx *f, const bool *flag)
{
	while (!*flag) {
		int rc = vfs_worker_wait(f->w, 10000);

		cr_assert_eq(rc, 0, "vfs_worker_wait: %s", strerror(-rc));
	}
}

struct started {
	struct vfs_ctx ctx;
	void (*main)(struct vfs_ctx *ctx, void *arg);
	void *arg;
};

struct woken {
	struct vfs_ring_op op;
	struct rn_fiber *fiber;
};

static void go_on(struct vfs_ring_op *op, int res)
{
	struct woken *w = rn_container_of(op, struct woken, op);
	struct rn_fiber *fiber = w->fiber;

	(void)res;
	free(w);
	rn_fiber_resume(fiber);
}

static void wake_fiber(struct rn_fiber *fiber)
{
	struct woken *w = calloc(1, sizeof(*w));

	cr_assert_not_null(w);
	*w = (struct woken){ .op.complete = go_on, .fiber = fiber };
	vfs_ring_finish(fiber->worker, &w->op, 0);
}

static void in_fiber(struct rn_fiber *fiber, void *arg)
{
	struct started s = *(struct started *)arg;

	s.ctx.fiber = fiber;
	s.main(&s.ctx, s.arg);
}

void fx_start(struct fx *f, void (*main)(struct vfs_ctx *ctx, void *arg), void *arg)
{
	static struct rn_budget budget = { .max = SIZE_MAX };
	static struct rn_stacks *stacks;
	struct rn_fiber *fiber;

	if (!stacks)
		stacks = rn_stacks_new(&budget, 1);
	fiber = rn_fiber_get(stacks);
	cr_assert_not_null(fiber);
	fiber->worker = f->w;
	fiber->wake = wake_fiber;
	if (rn_fiber_begin(fiber, in_fiber, &(struct started){ f->ctx, main, arg }))
		rn_fiber_put(fiber);
}

int64_t fx_read(struct fx *f, struct vfs_node *n, uint64_t offset, uint32_t count, void *out,
		bool *eof)
{
	struct vfs_io io = { .ctx = &f->ctx, .node = n, .offset = offset, .count = count };
	int64_t got;

	io.payload = rn_payload_get(f->pool, vfs_read_buffer_size(f->exp, offset, count));
	cr_assert_not_null(io.payload);
	memset(io.payload->data, 0xee, io.payload->size);
	got = vfs_read(&io);
	if (got > 0) {
		cr_assert_leq(got, count);
		cr_assert_leq(io.data_off + (uint64_t)got, io.payload->size);
		memcpy(out, io.payload->data + io.data_off, (size_t)got);
	}
	rn_payload_put(io.payload);
	*eof = io.eof;
	return got;
}

int64_t fx_write(struct fx *f, struct vfs_node *n, uint64_t offset, const void *data,
		 uint32_t count, enum vfs_stable stable)
{
	struct vfs_io io = {
		.ctx = &f->ctx, .node = n, .offset = offset, .count = count, .stable = stable
	};
	struct rn_payload *p = rn_payload_get(f->pool, count ? count : 1);
	int64_t result;

	cr_assert_not_null(p);
	memcpy(p->data, data, count);
	io.piece[0] = (struct iovec){ p->data, count };
	io.piece_payload[0] = p;
	io.npieces = 1;
	result = vfs_write(&io);
	rn_payload_put(p);
	return result;
}

int64_t fx_commit(struct fx *f, struct vfs_node *n, uint64_t offset, uint32_t count)
{
	struct vfs_io io = { .ctx = &f->ctx, .node = n, .offset = offset, .count = count };

	return vfs_commit(&io);
}

static int run_sync(struct fx *f, struct vfs_sync *s)
{
	s->ctx = &f->ctx;
	return vfs_sync(s);
}

int fx_sync(struct fx *f, struct vfs_node *a, struct vfs_node *b, struct vfs_node *c)
{
	return run_sync(f, &(struct vfs_sync){ .node = { a, b, c } });
}

int fx_sync_metadata(struct fx *f, struct vfs_node *n)
{
	return run_sync(f, &(struct vfs_sync){ .node = { n }, .data_from = VFS_SYNC_METADATA });
}

unsigned fx_cached_pages(struct fx *f, const char *name)
{
	int fd = open(fx_path(f, name), O_RDONLY);
	off_t size = lseek(fd, 0, SEEK_END);
	unsigned char in_core[1024];
	unsigned n = 0;
	void *map;

	cr_assert(size > 0 && size <= (off_t)sizeof(in_core) * 4096);
	map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_neq(map, MAP_FAILED);
	cr_assert_eq(mincore(map, (size_t)size, in_core), 0);
	for (off_t i = 0; i < (size + 4095) / 4096; i++)
		n += in_core[i] & 1;
	munmap(map, (size_t)size);
	close(fd);
	return n;
}

void fx_drop_cache(struct fx *f, const char *name)
{
	int fd = open(fx_path(f, name), O_RDWR);

	cr_assert_eq(fsync(fd), 0);
	cr_assert_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
}

void fx_mount_tmpfs(const char *at, const char *options)
{
	fx_need_root();
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", at, "tmpfs", 0, options) < 0)
		cr_skip_test("cannot mount here: %s", strerror(errno));
}

void fx_lossy_disk(char dir[FX_PATH], char mnt[FX_PATH + 16])
{
	fx_need_root();
	fx_temp_dir(dir);
	snprintf(mnt, FX_PATH + 16, "%s/mnt", dir);
	fx_mount_tmpfs(dir, "size=12m");
	if (fx_command("mkdir %s && truncate -s 128M %s/img && mkfs.ext4 -q -J size=4 %s/img && "
		       "mount -o loop,errors=continue %s/img %s",
		       mnt, dir, dir, dir, mnt) != 0) {
		fx_command("umount %s; rmdir %s", dir, dir);
		cr_skip_test("no loop mount of ext4 here");
	}
}

void fx_lossy_disk_end(const char *dir, const char *mnt)
{
	fx_unmount_image(mnt, dir);
}

bool fx_unmount_image(const char *mnt, const char *base)
{
	if (fx_command("umount %s", mnt) != 0)
		return false;
	for (int i = 0; umount(base) != 0; i++) {
		if (errno != EBUSY || i == 500) {
			fx_command("losetup -a; grep %s /proc/self/mountinfo", base);
			return false;
		}
		usleep(10000);
	}
	return rmdir(base) == 0;
}

int fx_command(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int rc;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	rc = system(line);
	return rc;
}
