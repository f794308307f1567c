/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte-range locks on a file system that other servers may share. The kernel's calls fail or hang there as the test
 * says (__wrap_fcntl); what others may lock is seen by another open file.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs/lock.h"
#include "vfs/node/node.h"
#include "vfs/share.h"
#include "vfs/view.h"
#include "vfs_fixture.h"

#define KERNEL_MAX ((uint64_t)INT64_MAX)
#define OWNERS 3

/* The next `fails` calls of that command (type: if it is one for locking) answer error. */
static struct {
	_Atomic unsigned fails;
	int cmd, error;
	short type;
} fault;
/* The next call for locking in a thread with `hangs` set says that it has come, and waits. */
static _Thread_local bool hangs;
static sem_t has_come, may_go;

int __real_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...);

int __wrap_fcntl(int fd, int cmd, ...)
{
	const struct flock *fl;
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	fl = arg;
	if (cmd == F_OFD_SETLK && hangs) {
		hangs = false;
		sem_post(&has_come);
		sem_wait(&may_go);
	}
	if (cmd == fault.cmd && atomic_load(&fault.fails) > 0 &&
	    (cmd != F_OFD_SETLK || fl->l_type == fault.type)) {
		atomic_fetch_sub(&fault.fails, 1);
		errno = fault.error;
		return -1;
	}
	return __real_fcntl(fd, cmd, arg);
}

static void fail_next(unsigned n, int cmd, short type, int error)
{
	fault.cmd = cmd;
	fault.type = type;
	fault.error = error;
	atomic_store(&fault.fails, n);
}

struct remote {
	struct fixture f;
	struct vfs_node *n;
	struct vfs_file *file;
	struct vfs_holder holder;
	struct vfs_lock_owner owner[OWNERS];
	int other; /* another server's */
};

static void holder_nothing(struct vfs_holder *h)
{
	(void)h;
}

static const struct vfs_holder_ops holder_ops = { .ref = holder_nothing, .put = holder_nothing };

static void remote_open(struct remote *t)
{
	memset(t, 0, sizeof(*t));
	fixture_open(&t->f, 0);
	t->f.exp->root_mnt->fs.local = false;
	t->n = must_create(&t->f.ctx, t->f.root, "f", 0644);
	cr_assert_eq(vfs_file_get(&t->f.ctx, t->n, &t->file), 0);
	t->holder.ops = &holder_ops;
	for (unsigned i = 0; i < OWNERS; i++)
		vfs_lock_owner_init(&t->owner[i], t->file, &t->holder);
	be_root(&t->f);
	t->other = open(in_export(&t->f, "f"), O_RDWR | O_CLOEXEC);
	cr_assert_geq(t->other, 0);
}

static void remote_close(struct remote *t)
{
	struct vfs_file_stats st;

	for (unsigned i = 0; i < OWNERS; i++)
		vfs_lock_owner_end(&t->owner[i]);
	close(t->other);
	vfs_file_put(t->file);
	vfs_node_put(t->n);
	vfs_file_stats(t->f.vfs, &st);
	cr_expect_eq(st.files + st.locks + st.held + st.unheld + st.surplus + st.waiters, 0);
	fixture_close(&t->f);
}

static int lock(struct remote *t, unsigned owner, enum vfs_lock_type type, uint64_t offset,
		uint64_t length)
{
	const struct vfs_lock_request r = { .type = type, .offset = offset, .length = length };

	return vfs_lock(&t->f.ctx, t->n, &t->owner[owner], &r, NULL);
}

static int test(struct remote *t, uint64_t offset, uint64_t length)
{
	const struct vfs_lock_request r = { .type = VFS_LOCK_WRITE,
					    .offset = offset,
					    .length = length };

	return vfs_lock_test(&t->f.ctx, t->n, NULL, &r, NULL);
}

static int unlock(struct remote *t, unsigned owner, uint64_t offset, uint64_t length)
{
	return vfs_unlock(&t->f.ctx, &t->owner[owner], offset, length);
}

/* True if another server would be refused. */
static bool others_refused(const struct remote *t, short type, off_t start, off_t length)
{
	struct flock fl = { .l_type = type, .l_start = start, .l_len = length };

	cr_assert_eq(__real_fcntl(t->other, F_OFD_GETLK, &fl), 0);
	return fl.l_type != F_UNLCK;
}

static uint64_t surplus(const struct remote *t)
{
	struct vfs_file_stats st;

	vfs_file_stats(t->f.vfs, &st);
	return st.surplus;
}

Test(vfs_lock_remote, beyond_the_kernels_offsets)
{
	static const struct {
		uint64_t offset, length;
		int rc;
	} ranges[] = {
		{ KERNEL_MAX + 1, 1, -EFBIG },	    { KERNEL_MAX + 1, UINT64_MAX, -EFBIG },
		{ UINT64_MAX, UINT64_MAX, -EFBIG }, { 0, KERNEL_MAX + 2, -EFBIG },
		{ KERNEL_MAX, 2, -EFBIG },	    { 0, 0, -EINVAL },
		{ 0, KERNEL_MAX + 1, 0 },	    { KERNEL_MAX, 1, 0 },
		{ KERNEL_MAX, UINT64_MAX, 0 },	    { 0, UINT64_MAX, 0 },
	};
	struct remote t;

	remote_open(&t);
	for (unsigned i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const uint64_t offset = ranges[i].offset, length = ranges[i].length;

		cr_expect_eq(test(&t, offset, length), ranges[i].rc, "%u", i);
		cr_expect_eq(lock(&t, 0, VFS_LOCK_WRITE, offset, length), ranges[i].rc, "%u", i);
		cr_expect_eq(others_refused(&t, F_RDLCK, INT64_MAX, 0), ranges[i].rc == 0, "%u", i);
		cr_expect_eq(unlock(&t, 0, offset, length), ranges[i].rc, "%u", i);
		cr_expect_not(others_refused(&t, F_WRLCK, 0, 0), "%u", i);
	}
	remote_close(&t);
}

/* A read lock's descriptor is no use to a write lock. */
Test(vfs_lock_remote, without_a_descriptor)
{
	struct remote t;

	remote_open(&t);
	vfs_set_fds(t.f.vfs, 1, 0, 1);
	cr_expect_eq(lock(&t, 0, VFS_LOCK_WRITE, 0, 1), -RN_EFULL);
	cr_expect_eq(lock(&t, 0, VFS_LOCK_READ, 0, 1), -RN_EFULL);
	cr_expect_not(vfs_lock_held(&t.owner[0]));
	vfs_set_fds(t.f.vfs, 256, 0, 64);
	cr_expect_eq(lock(&t, 0, VFS_LOCK_READ, 0, 1), 0);
	cr_expect(others_refused(&t, F_WRLCK, 0, 1) && !others_refused(&t, F_RDLCK, 0, 1));
	cr_expect_eq(lock(&t, 0, VFS_LOCK_WRITE, 0, 1), 0);
	cr_expect(others_refused(&t, F_RDLCK, 0, 1));
	remote_close(&t);
}

/* The mirror that would be stricter cannot be made: nothing is granted, and what there was stays. */
Test(vfs_lock_remote, a_mirror_that_does_not_grow)
{
	struct remote t;

	remote_open(&t);
	cr_assert_eq(lock(&t, 0, VFS_LOCK_READ, 0, 1), 0);
	fail_next(1, F_OFD_SETLK, F_RDLCK, EIO);
	cr_expect_eq(lock(&t, 1, VFS_LOCK_WRITE, 5, 1), -ENOLCK);
	cr_expect(others_refused(&t, F_WRLCK, 0, 1) && !others_refused(&t, F_WRLCK, 5, 1));
	cr_expect_eq(lock(&t, 1, VFS_LOCK_WRITE, 5, 1), 0);
	cr_expect(others_refused(&t, F_WRLCK, 0, 1) && others_refused(&t, F_RDLCK, 5, 1));
	remote_close(&t);
}

Test(vfs_lock_remote, many_pieces_stay_exact)
{
	enum { LOCKS = 3000, STEP = 10 };
	struct remote t;

	remote_open(&t);
	for (unsigned i = 0; i < LOCKS; i++)
		cr_assert_eq(lock(&t, i % OWNERS, VFS_LOCK_WRITE, STEP * i, 1), 0);
	for (unsigned i = 0; i < LOCKS; i += 100) {
		cr_assert(others_refused(&t, F_RDLCK, STEP * i, 1), "%u", i);
		cr_assert_not(others_refused(&t, F_WRLCK, STEP * i + 1, STEP - 1), "%u", i);
	}
	remote_close(&t);
}

Test(vfs_lock_remote, errors_of_locking)
{
	static const int errors[] = { ENOLCK, EINTR, ENOMEM, EIO };
	struct remote t;

	remote_open(&t);
	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		fail_next(1, F_OFD_SETLK, F_WRLCK, errors[i]);
		cr_expect_eq(lock(&t, 0, VFS_LOCK_WRITE, 0, 1), -ENOLCK);
		cr_expect_not(vfs_lock_held(&t.owner[0]));
		cr_expect_eq(lock(&t, 0, VFS_LOCK_WRITE, 0, 1), 0);
		fail_next(1, F_OFD_GETLK, 0, errors[i]);
		cr_expect_eq(test(&t, 5, 1), -ENOLCK);
		cr_expect_eq(test(&t, 5, 1), 0);
		cr_expect_eq(unlock(&t, 0, 0, 1), 0);
		cr_expect_eq(surplus(&t), 0);
	}
	remote_close(&t);
}

/* What the kernel does not unlock stays locked for others, is free for this server's clients, and is unlocked later. */
Test(vfs_lock_remote, errors_of_unlocking)
{
	struct vfs_share s;
	struct remote t;

	remote_open(&t);
	cr_assert_eq(lock(&t, 0, VFS_LOCK_WRITE, 0, 10), 0);
	cr_assert_eq(lock(&t, 1, VFS_LOCK_WRITE, 20, 10), 0);
	fail_next(2, F_OFD_SETLK, F_UNLCK, EIO);
	cr_expect_eq(unlock(&t, 0, 0, 10), 0);
	cr_expect_not(vfs_lock_held(&t.owner[0]));
	cr_expect_eq(surplus(&t), 1);
	cr_expect(others_refused(&t, F_RDLCK, 0, 10));
	/* The next lock tries again, in vain, and has the range. */
	cr_expect_eq(lock(&t, 2, VFS_LOCK_READ, 0, 5), 0);
	cr_expect_eq(surplus(&t), 1);
	cr_expect(others_refused(&t, F_WRLCK, 0, 5) && others_refused(&t, F_WRLCK, 5, 5));
	vfs_reap(t.f.vfs);
	cr_expect_eq(surplus(&t), 0);
	cr_expect(others_refused(&t, F_WRLCK, 0, 5) && !others_refused(&t, F_RDLCK, 0, 5));
	cr_expect_not(others_refused(&t, F_WRLCK, 5, 15));
	cr_expect(others_refused(&t, F_RDLCK, 20, 10));

	/* The file is open: its descriptor outlives the last lock. */
	cr_assert_eq(vfs_share_open(&t.f.ctx, t.n, &s,
				    &(struct vfs_share_request){ &t.holder, VFS_SHARE_READ, 0 },
				    NULL),
		     0);
	vfs_lock_drop_all(&t.owner[1]);
	fail_next(2, F_OFD_SETLK, F_UNLCK, ENOLCK);
	vfs_lock_drop_all(&t.owner[2]);
	cr_expect(others_refused(&t, F_WRLCK, 0, 5));
	vfs_reap(t.f.vfs);
	cr_expect(others_refused(&t, F_WRLCK, 0, 5));
	vfs_reap(t.f.vfs);
	cr_expect_not(others_refused(&t, F_WRLCK, 0, 0));
	cr_expect_eq(surplus(&t), 0);
	vfs_share_close(&s);

	/* The file is not open: its descriptor is closed with the last lock. */
	cr_assert_eq(lock(&t, 0, VFS_LOCK_WRITE, 0, 10), 0);
	fail_next(1, F_OFD_SETLK, F_UNLCK, EIO);
	vfs_lock_drop_all(&t.owner[0]);
	cr_expect_eq(surplus(&t), 0);
	cr_expect_not(others_refused(&t, F_WRLCK, 0, 0));
	remote_close(&t);
}

/* A call in a thread of its own, as a worker has it. */
struct caller {
	struct remote *t;
	pthread_t id;
	unsigned owner;
	bool hangs, unlocks;
	_Atomic bool done;
	int rc;
};

static void *call(void *arg)
{
	struct caller *c = arg;
	struct vfs_ctx ctx = c->t->f.ctx;
	const struct vfs_lock_request r = { .type = VFS_LOCK_WRITE, .offset = 0, .length = 10 };
	struct rn_fiber fiber;
	struct vfs_worker *w;

	cr_assert_eq(vfs_worker_new(c->t->f.vfs, 0, &w), 0);
	rn_fiber_of_thread(&fiber, w);
	ctx.fiber = &fiber;
	hangs = c->hangs;
	c->rc = c->unlocks ? vfs_unlock(&ctx, &c->t->owner[c->owner], 0, 10)
			   : vfs_lock(&ctx, c->t->n, &c->t->owner[c->owner], &r, NULL);
	atomic_store(&c->done, true);
	vfs_worker_free(w);
	return NULL;
}

static void caller_start(struct caller *c)
{
	cr_assert_eq(pthread_create(&c->id, NULL, call, c), 0);
	if (c->hangs)
		cr_assert_eq(sem_wait(&has_come), 0);
}

static unsigned ranges_seen(struct remote *t, unsigned owner)
{
	struct vfs_view_ranges seen;

	cr_assert(vfs_view_ranges(t->file, &t->owner[owner], &seen));
	return seen.total;
}

/* Whatever does not lock that file goes on. */
static void use_while_it_hangs(struct remote *t)
{
	const struct vfs_lock_request r = {
		.type = VFS_LOCK_WRITE, .offset = 0, .length = 1, .waiter = 7
	};
	struct vfs_node *n = must_lookup(&t->f.ctx, t->f.root, "g");
	struct vfs_lock_owner o;
	struct vfs_file *file;
	struct vfs_share s;

	must_getattr(&t->f.ctx, t->n);
	cr_expect_eq(vfs_share_open(&t->f.ctx, t->n, &s,
				    &(struct vfs_share_request){ &t->holder, VFS_SHARE_BOTH, 0 },
				    NULL),
		     0);
	vfs_share_close(&s);
	vfs_lock_remember_waiter(t->file, &r, NULL);
	vfs_lock_forget_waiter(t->file, 7);
	cr_assert_eq(vfs_file_get(&t->f.ctx, n, &file), 0);
	vfs_lock_owner_init(&o, file, &t->holder);
	vfs_file_put(file);
	cr_expect_eq(vfs_lock(&t->f.ctx, n, &o, &r, NULL), 0);
	vfs_lock_owner_end(&o);
	vfs_node_put(n);
}

static void wait_a_moment(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

Test(vfs_lock_remote, calls_that_hang)
{
	struct remote t;
	struct caller first = { .t = &t, .owner = 0, .hangs = true };
	struct caller second = { .t = &t, .owner = 1 };

	remote_open(&t);
	vfs_node_put(must_create(&t.f.ctx, t.f.root, "g", 0644));
	sem_init(&has_come, 0, 0);
	sem_init(&may_go, 0, 0);
	caller_start(&first);
	caller_start(&second);
	use_while_it_hangs(&t);
	wait_a_moment();
	cr_expect_eq(ranges_seen(&t, 0), 0);
	cr_expect_not(atomic_load(&first.done) || atomic_load(&second.done));
	sem_post(&may_go);
	pthread_join(first.id, NULL);
	pthread_join(second.id, NULL);
	cr_expect_eq(first.rc, 0);
	cr_expect_eq(second.rc, -RN_EDENIED);
	cr_expect_eq(ranges_seen(&t, 0), 1);

	/* Unlocking: who asks meanwhile has it behind that. */
	first = (struct caller){ .t = &t, .owner = 0, .hangs = true, .unlocks = true };
	second = (struct caller){ .t = &t, .owner = 1 };
	caller_start(&first);
	caller_start(&second);
	use_while_it_hangs(&t);
	wait_a_moment();
	cr_expect_not(atomic_load(&first.done) || atomic_load(&second.done));
	cr_expect(others_refused(&t, F_RDLCK, 0, 10));
	sem_post(&may_go);
	pthread_join(first.id, NULL);
	pthread_join(second.id, NULL);
	cr_expect(first.rc == 0 && second.rc == 0);
	cr_expect(ranges_seen(&t, 0) == 0 && ranges_seen(&t, 1) == 1);
	cr_expect(others_refused(&t, F_RDLCK, 0, 10));
	remote_close(&t);
}
