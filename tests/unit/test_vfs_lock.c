/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte-range locks, compared with a model that records the owner of each piece of a file, and with
 * the locks that the kernel shows to others. The pieces tile all offsets. Each edge that matters
 * (0, the kernel's largest offset, the protocol's) has small pieces around it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/hold/file.h"
#include "vfs/lock.h"
#include "vfs/node/node.h"
#include "vfs/share.h"
#include "vfs_fixture.h"

#define OWNERS 5
#define KERNEL_MAX ((uint64_t)INT64_MAX)

static const uint64_t starts[] = {
	0,
	1,
	2,
	3,
	4,
	5,
	6,
	7,
	8,
	9,
	10,
	100,
	1000,
	1001,
	1002,
	KERNEL_MAX - 1,
	KERNEL_MAX,
	KERNEL_MAX + 1,
	KERNEL_MAX + 2,
	UINT64_MAX - 2,
	UINT64_MAX - 1,
	UINT64_MAX,
};
#define PIECES ((unsigned)(sizeof(starts) / sizeof(starts[0])))
#define KERNEL_PIECES 17u /* pieces that the kernel can lock */

struct owner {
	struct vfs_holder holder;
	int refs;
	unsigned index;
	struct vfs_lock_owner locks;
	uint8_t has[PIECES];
};

struct model {
	struct fixture f;
	struct vfs_node *n;
	struct vfs_file *file;
	struct owner owner[OWNERS];
	int local_fd; /* another open file description, as of a local process */
	uint8_t local[PIECES];
	unsigned pieces; /* that are locked */
	unsigned seed;
};

static void owner_ref(struct vfs_holder *h)
{
	((struct owner *)h)->refs++;
}

static void owner_put(struct vfs_holder *h)
{
	((struct owner *)h)->refs--;
}

static const struct vfs_holder_ops owner_ops = { .ref = owner_ref, .put = owner_put };

static uint64_t end_of(unsigned piece)
{
	return piece + 1 < PIECES ? starts[piece + 1] - 1 : UINT64_MAX;
}

static uint64_t length_of(unsigned first, unsigned last)
{
	return last + 1 < PIECES ? end_of(last) - starts[first] + 1 : UINT64_MAX;
}

static void open_model_on(struct model *m, const char *name, bool remote)
{
	memset(m, 0, sizeof(*m));
	fixture_open(&m->f, 0);
	m->f.exp->root_mnt->fs.local = !remote;
	m->pieces = remote ? KERNEL_PIECES : PIECES;
	m->n = must_create(&m->f.ctx, m->f.root, name, 0644);
	cr_assert_eq(vfs_file_get(&m->f.ctx, m->n, &m->file), 0);
	for (unsigned i = 0; i < OWNERS; i++) {
		m->owner[i].holder.ops = &owner_ops;
		m->owner[i].index = i;
		vfs_lock_owner_init(&m->owner[i].locks, m->file, &m->owner[i].holder);
	}
	be_root(&m->f);
	m->local_fd = open(in_export(&m->f, name), O_RDWR | O_CLOEXEC);
	cr_assert_geq(m->local_fd, 0);
}

static void open_model(struct model *m, const char *name)
{
	open_model_on(m, name, false);
}

static void close_model(struct model *m)
{
	struct vfs_file_stats st;

	for (unsigned i = 0; i < OWNERS; i++) {
		vfs_lock_owner_end(&m->owner[i].locks);
		cr_expect_eq(m->owner[i].refs, 0);
	}
	close(m->local_fd);
	vfs_file_put(m->file);
	vfs_node_put(m->n);
	vfs_file_stats(m->f.vfs, &st);
	cr_expect_eq(st.files + st.locks + st.held + st.unheld + st.waiters, 0);
	fixture_close(&m->f);
}

static bool conflicting(unsigned a, unsigned b)
{
	return a && b && (a == VFS_LOCK_WRITE || b == VFS_LOCK_WRITE);
}

/* True if an owner other than o has a conflicting lock in pieces first to last. */
static bool model_refuses(const struct model *m, const struct owner *o, unsigned type,
			  unsigned first, unsigned last)
{
	for (unsigned p = first; p <= last; p++) {
		for (unsigned i = 0; i < OWNERS; i++) {
			if (&m->owner[i] != o && conflicting(m->owner[i].has[p], type))
				return true;
		}
		if (conflicting(m->local[p], type))
			return true;
	}
	return false;
}

static void check_conflict(const struct model *m, struct vfs_conflict *c, const struct owner *o,
			   unsigned type, unsigned first, unsigned last)
{
	uint64_t end = c->length == UINT64_MAX ? UINT64_MAX : c->offset + c->length - 1;
	const struct owner *h = (struct owner *)c->holder;
	const uint8_t *has = h ? h->has : m->local;

	cr_assert(h != o && conflicting(c->type, type));
	cr_assert(c->offset <= end_of(last) && end >= starts[first]);
	if (c->offset == 0 && end == UINT64_MAX)
		end--; /* the range may lack the last byte: see below */
	for (unsigned p = 0; p < (h ? PIECES : KERNEL_PIECES); p++) {
		if (starts[p] >= c->offset && end_of(p) <= end)
			cr_assert_eq(has[p], c->type, "piece %u", p);
	}
	vfs_conflict_put(c);
}

static bool kernel_refuses(const struct model *m, short type, unsigned piece)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET };

	fl.l_start = (off_t)starts[piece];
	fl.l_len = end_of(piece) > KERNEL_MAX ? 0 : (off_t)(end_of(piece) - starts[piece] + 1);
	cr_assert_eq(fcntl(m->local_fd, F_OFD_GETLK, &fl), 0);
	return fl.l_type != F_UNLCK;
}

/* Closes the descriptors by which the file's data go: locks need one of their own. */
static void close_data(struct model *m)
{
	vfs_node_put(m->n);
	vfs_forget_export(m->f.vfs, 7); /* id of the fixture's export */
	m->n = must_lookup(&m->f.ctx, m->f.root, "f");
}

/* The kernel's locks must be the union of all owners' locks, and each owner must have as few ranges
 * as possible. */
static void check_all(const struct model *m)
{
	for (unsigned p = 0; p < KERNEL_PIECES; p++) {
		unsigned all = 0;

		for (unsigned i = 0; i < OWNERS; i++)
			all |= m->owner[i].has[p];
		cr_assert_eq(kernel_refuses(m, F_RDLCK, p), (all & VFS_LOCK_WRITE) != 0, "piece %u",
			     p);
		cr_assert_eq(kernel_refuses(m, F_WRLCK, p), all != 0, "piece %u", p);
	}
	for (unsigned i = 0; i < OWNERS; i++) {
		const struct owner *o = &m->owner[i];
		unsigned runs = 0;

		for (unsigned p = 0; p < PIECES; p++)
			runs += o->has[p] && (p == 0 || o->has[p] != o->has[p - 1]);
		cr_assert_eq(o->locks.count, runs);
		cr_assert_eq(vfs_lock_held(&o->locks), runs > 0);
	}
}

static unsigned rnd(struct model *m, unsigned below)
{
	return (unsigned)rand_r(&m->seed) % below;
}

static void step_local(struct model *m, unsigned first, unsigned last)
{
	unsigned type = rnd(m, 3);
	struct flock fl = { .l_type = type == 0 ? F_UNLCK : type == 1 ? F_RDLCK : F_WRLCK };
	bool refused = false;

	if (first >= KERNEL_PIECES)
		return;
	if (last >= KERNEL_PIECES)
		last = KERNEL_PIECES - 1;
	fl.l_start = (off_t)starts[first];
	fl.l_len = end_of(last) >= KERNEL_MAX ? 0 : (off_t)(end_of(last) - starts[first] + 1);
	for (unsigned p = first; p <= last; p++) {
		for (unsigned i = 0; i < OWNERS; i++)
			refused |= conflicting(type, m->owner[i].has[p]);
	}
	cr_assert_eq(fcntl(m->local_fd, F_OFD_SETLK, &fl) != 0, refused);
	for (unsigned p = first; !refused && p <= last; p++)
		m->local[p] = (uint8_t)type;
}

static void step_lock(struct model *m, struct owner *o, unsigned first, unsigned last)
{
	struct vfs_lock_request r = { .type = 1 + rnd(m, 2),
				      .offset = starts[first],
				      .length = length_of(first, last) };
	int want = model_refuses(m, o, r.type, first, last) ? -RN_EDENIED : 0;
	struct vfs_conflict c = { 0 };

	cr_assert_eq(vfs_lock_test(&m->f.ctx, m->n, &o->locks, &r, &c), want);
	if (want)
		check_conflict(m, &c, o, r.type, first, last);
	if (rnd(m, 4) == 0)
		return;
	cr_assert_eq(vfs_lock(&m->f.ctx, m->n, &o->locks, &r, &c), want);
	if (want)
		check_conflict(m, &c, o, r.type, first, last);
	for (unsigned p = first; want == 0 && p <= last; p++)
		o->has[p] = (uint8_t)r.type;
}

static void step(struct model *m)
{
	struct owner *o = &m->owner[rnd(m, OWNERS)];
	unsigned first = rnd(m, m->pieces), last = first + rnd(m, m->pieces - first);
	unsigned what = rnd(m, 20);

	/* A range of all bytes but the last cannot be expressed: its length means "to the end". */
	if (first == 0 && last == PIECES - 2)
		last--;

	if (what < 10) {
		step_lock(m, o, first, last);
	} else if (what < 16) {
		cr_assert_eq(
			vfs_unlock(&m->f.ctx, &o->locks, starts[first], length_of(first, last)), 0);
		memset(o->has + first, 0, last - first + 1);
	} else if (what < 19) {
		step_local(m, first, last);
	} else {
		vfs_lock_drop_all(&o->locks);
		memset(o->has, 0, sizeof(o->has));
	}
	check_all(m);
}

Test(vfs_lock, as_the_model_has_it)
{
	struct model m;

	for (unsigned seed = 1; seed <= 8; seed++) {
		open_model_on(&m, "f", seed > 6);
		if (seed % 2)
			close_data(&m);
		m.seed = seed;
		for (unsigned i = 0; i < 1500; i++)
			step(&m);
		close_model(&m);
	}
}

static int try_lock(struct model *m, unsigned owner, unsigned type, uint64_t offset,
		    uint64_t length, uint64_t waiter)
{
	struct vfs_lock_request r = {
		.type = type, .offset = offset, .length = length, .waiter = waiter
	};
	int rc = vfs_lock(&m->f.ctx, m->n, &m->owner[owner].locks, &r, NULL);

	if (rc == -RN_EDENIED)
		vfs_lock_remember_waiter(m->file, &r, NULL);
	return rc;
}

Test(vfs_lock, ranges_out_of_range)
{
	struct model m;

	open_model(&m, "f");
	cr_expect_eq(try_lock(&m, 0, 1, 0, 0, 0), -EINVAL);
	cr_expect_eq(try_lock(&m, 0, 1, 2, UINT64_MAX - 1, 0), 0);
	cr_expect_eq(m.owner[0].locks.count, 1);
	cr_expect_eq(try_lock(&m, 0, 1, 3, UINT64_MAX - 1, 0), -EINVAL);
	cr_expect_eq(try_lock(&m, 0, 1, 3, UINT64_MAX, 0), 0);
	cr_expect_eq(vfs_unlock(&m.f.ctx, &m.owner[0].locks, 5, 0), -EINVAL);
	cr_expect_eq(vfs_unlock(&m.f.ctx, &m.owner[0].locks, UINT64_MAX, 1), 0);
	cr_expect_eq(m.owner[0].locks.count, 1);
	cr_expect_eq(vfs_unlock(&m.f.ctx, &m.owner[0].locks, UINT64_MAX, 2), -EINVAL);
	close_model(&m);
}

Test(vfs_lock, no_more_than_are_allowed)
{
	struct model m;

	open_model(&m, "f");
	vfs_node_put(m.n);
	for (unsigned i = 0; i < OWNERS; i++)
		vfs_lock_owner_end(&m.owner[i].locks);
	vfs_file_put(m.file);
	m.f.cfg.max_locks = 3;
	fixture_restart(&m.f);
	m.n = must_lookup(&m.f.ctx, m.f.root, "f");
	cr_assert_eq(vfs_file_get(&m.f.ctx, m.n, &m.file), 0);
	for (unsigned i = 0; i < OWNERS; i++)
		vfs_lock_owner_init(&m.owner[i].locks, m.file, NULL);
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(try_lock(&m, i, 1, 10 * i, 5, 0), i < 3 ? 0 : -ENOLCK);
	close_model(&m);
}

/* A separate local process, with traditional fcntl(2) locks instead of OFD locks. */
Test(vfs_lock, a_local_process)
{
	struct flock fl = { .l_type = F_WRLCK, .l_start = 100, .l_len = 10 };
	struct vfs_lock_request r = { .type = VFS_LOCK_READ, .offset = 90, .length = 11 };
	struct vfs_conflict c;
	int up[2], down[2], status;
	struct model m;
	pid_t pid;
	char b = 0;

	open_model(&m, "f");
	cr_assert(pipe(up) == 0 && pipe(down) == 0);
	pid = fork();
	if (pid == 0) {
		status = fcntl(m.local_fd, F_SETLK, &fl) == 0;
		status &= write(up[1], &b, 1) == 1 && read(down[0], &b, 1) == 1;
		_exit(!status);
	}
	cr_assert_eq(read(up[0], &b, 1), 1);
	cr_expect_eq(vfs_lock_test(&m.f.ctx, m.n, NULL, &r, &c), -RN_EDENIED);
	cr_expect(!c.holder && c.type == VFS_LOCK_WRITE && c.offset == 100 && c.length == 10);
	cr_expect_eq(vfs_lock(&m.f.ctx, m.n, &m.owner[0].locks, &r, &c), -RN_EDENIED);
	cr_expect(!c.holder && c.offset == 100 && c.length == 10);
	r.length = 10;
	cr_expect_eq(vfs_lock(&m.f.ctx, m.n, &m.owner[0].locks, &r, NULL), 0);
	cr_assert_eq(write(down[1], &b, 1), 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	r.length = 11;
	cr_expect_eq(vfs_lock_test(&m.f.ctx, m.n, NULL, &r, NULL), 0);
	close_model(&m);
}

/* One descriptor serves read locks of a file that may not be written, and is later replaced by
 * another. */
Test(vfs_lock, the_mirror_grows_stricter)
{
	struct model m;

	open_model(&m, "f");
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_READ, 0, 1, 0), 0);
	cr_expect_eq(try_lock(&m, 1, VFS_LOCK_READ, 0, 2, 0), 0);
	cr_expect_eq(try_lock(&m, 1, VFS_LOCK_WRITE, 5, 1, 0), 0);
	cr_expect(kernel_refuses(&m, F_WRLCK, 0) && !kernel_refuses(&m, F_RDLCK, 0));
	cr_expect(kernel_refuses(&m, F_RDLCK, 5));
	cr_expect_eq(vfs_unlock(&m.f.ctx, &m.owner[1].locks, 0, 2), 0);
	cr_expect(kernel_refuses(&m, F_WRLCK, 0) && !kernel_refuses(&m, F_WRLCK, 1));
	close_model(&m);
}

/* Local locks are in the way of those that were not mirrored at first: nothing is mirrored then, nor
 * left in the kernel by the attempt. */
Test(vfs_lock, a_mirror_that_comes_too_late)
{
	struct flock fl = { .l_type = F_RDLCK, .l_start = 10, .l_len = 1 };
	struct vfs_file_stats st;
	struct model m;

	for (unsigned shared = 0; shared < 2; shared++) {
		open_model(&m, "f");
		if (!shared)
			close_data(&m);
		vfs_set_fds(m.f.vfs, 1, 0, 1);
		cr_expect_eq(try_lock(&m, 0, VFS_LOCK_WRITE, 0, 1, 0), 0);
		cr_expect_eq(try_lock(&m, 0, VFS_LOCK_WRITE, 10, 1, 0), 0);
		cr_expect_not(kernel_refuses(&m, F_WRLCK, 0));
		cr_assert_eq(fcntl(m.local_fd, F_OFD_SETLK, &fl), 0);
		vfs_set_fds(m.f.vfs, 256, 0, 64);
		cr_expect_eq(try_lock(&m, 1, VFS_LOCK_WRITE, 5, 1, 0), 0);
		cr_expect_not(kernel_refuses(&m, F_WRLCK, 0));
		vfs_file_stats(m.f.vfs, &st);
		cr_expect_eq(st.held, 0);
		cr_expect_eq(st.unheld, 1);
		close_model(&m);
	}
}

/* Locks of an open file stay when its last link is removed. */
Test(vfs_lock, of_an_unlinked_file)
{
	struct vfs_share s;
	struct model m;

	open_model(&m, "f");
	cr_assert_eq(
		vfs_share_open(&m.f.ctx, m.n, &s, &(struct vfs_share_request){ NULL, 3, 0 }, NULL),
		0);
	cr_assert_eq(vfs_remove(&m.f.ctx, m.f.root, "f", 1, NULL), 0);
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_WRITE, 0, 1, 0), 0);
	cr_expect_eq(try_lock(&m, 1, VFS_LOCK_WRITE, 0, 1, 0), -RN_EDENIED);
	cr_expect_eq(vfs_unlock(&m.f.ctx, &m.owner[0].locks, 0, 1), 0);
	cr_expect_eq(try_lock(&m, 1, VFS_LOCK_WRITE, 0, 1, 0), 0);
	vfs_share_close(&s);
	close_model(&m);
}

/* RFC 8881 section 9.6: an owner that has asked for long enough gets the lock before a newcomer. */
Test(vfs_lock, whose_turn_it_is)
{
	struct vfs_file_stats st;
	struct model m;

	open_model(&m, "f");
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_WRITE, 0, 10, 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(try_lock(&m, 1, VFS_LOCK_WRITE, 0, 10, 101), -RN_EDENIED);
		cr_expect_eq(try_lock(&m, 2, VFS_LOCK_WRITE, 5, 10, 102), -RN_EDENIED);
	}
	/* The owner that they wait for may take more locks. */
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_WRITE, 0, 15, 0), 0);
	vfs_lock_drop_all(&m.owner[0].locks);
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_WRITE, 0, 1, 0), -RN_EDENIED);
	cr_expect_eq(try_lock(&m, 2, VFS_LOCK_WRITE, 5, 10, 102), -RN_EDENIED);
	cr_expect_eq(try_lock(&m, 3, VFS_LOCK_WRITE, 20, 1, 0), 0);
	cr_expect_eq(try_lock(&m, 1, VFS_LOCK_WRITE, 0, 10, 101), 0);
	vfs_lock_drop_all(&m.owner[1].locks);
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_READ, 6, 1, 0), -RN_EDENIED);
	vfs_lock_forget_waiter(m.file, 102);
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_READ, 6, 1, 0), 0);
	vfs_file_stats(m.f.vfs, &st);
	cr_expect_eq(st.waiters, 0);
	close_model(&m);
}

struct notice {
	struct vfs_lock_notice n;
	unsigned told;
};

static void count_told(struct vfs_lock_notice *n)
{
	((struct notice *)n)->told++;
}

static void ignore(struct vfs_lock_notice *n)
{
	(void)n;
}

/* Waiters whose protocol takes the lock when they are told: who came first has it first, though all are told. */
Test(vfs_lock, told_waiters_have_their_order)
{
	static const struct vfs_lock_notice_ops ops = { .tell = count_told, .end = ignore };
	struct notice notice[2] = {
		{ .n = { .ops = &ops, .held_by_client = true, .in_order = true } },
		{ .n = { .ops = &ops, .held_by_client = true, .in_order = true } }
	};
	struct vfs_conflict c = { .holder = NULL };
	struct model m;

	open_model(&m, "f");
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_WRITE, 0, 10, 0), 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct vfs_lock_request r = { .type = VFS_LOCK_WRITE,
						    .length = 10,
						    .waiter = 101 + i };

		cr_expect_eq(vfs_lock(&m.f.ctx, m.n, &m.owner[1 + i].locks, &r, NULL), -RN_EDENIED);
		vfs_lock_remember_waiter(m.file, &r, &notice[i].n);
	}
	vfs_lock_drop_all(&m.owner[0].locks);
	cr_expect(notice[0].told == 1 && notice[1].told == 1);
	const struct vfs_lock_request later = { .type = VFS_LOCK_WRITE,
						.length = 10,
						.waiter = 102 };

	cr_expect_eq(vfs_lock(&m.f.ctx, m.n, &m.owner[2].locks, &later, &c), -RN_EDENIED);
	cr_expect(c.kept && !c.holder);
	vfs_lock_remember_waiter(m.file, &later, &notice[1].n);
	cr_expect_eq(notice[1].told, 2, "the range is free still");
	cr_expect_eq(try_lock(&m, 3, VFS_LOCK_WRITE, 5, 1, 0), -RN_EDENIED, "who did not wait");
	cr_expect_eq(try_lock(&m, 1, VFS_LOCK_WRITE, 0, 10, 101), 0);
	vfs_lock_drop_all(&m.owner[1].locks);
	cr_expect_eq(try_lock(&m, 2, VFS_LOCK_WRITE, 0, 10, 102), 0);
	close_model(&m);
}

/* An owner that has asked only once or twice does not hold others up. */
Test(vfs_lock, newcomers_have_no_turn)
{
	struct model m;

	open_model(&m, "f");
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_WRITE, 0, 10, 0), 0);
	cr_expect_eq(try_lock(&m, 1, VFS_LOCK_WRITE, 0, 10, 101), -RN_EDENIED);
	vfs_lock_drop_all(&m.owner[0].locks);
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_WRITE, 0, 10, 0), 0);
	for (uint64_t id = 1; id < 200; id++)
		cr_expect_eq(try_lock(&m, 2, VFS_LOCK_WRITE, 0, 10, id), -RN_EDENIED);
	close_model(&m);
}

static bool is_locked(const struct model *m, uint64_t offset)
{
	struct flock fl = { .l_type = F_WRLCK, .l_start = (off_t)offset, .l_len = 1 };

	cr_assert_eq(fcntl(m->local_fd, F_OFD_GETLK, &fl), 0);
	return fl.l_type != F_UNLCK;
}

/* The mirror of very many locks is coarser, and always covers all locked bytes. A local process's
 * lock among them stays, and ranges that it does not cover can be locked. */
Test(vfs_lock, a_mirror_of_many_pieces)
{
	enum { LOCKS = 5000, STEP = 100, LOCAL = 250050 };
	struct flock local = { .l_type = F_WRLCK, .l_start = LOCAL, .l_len = 1 };
	struct model m;

	open_model(&m, "f");
	cr_assert_eq(fcntl(m.local_fd, F_OFD_SETLK, &local), 0);
	for (unsigned i = 0; i < LOCKS; i++)
		cr_assert_eq(try_lock(&m, i % OWNERS, 1 + i % 2, STEP * i, 2, 0), 0);
	cr_expect_eq(try_lock(&m, 0, VFS_LOCK_READ, LOCAL, 1, 0), -RN_EDENIED);
	for (unsigned i = 0; i < LOCKS; i++)
		cr_assert(is_locked(&m, STEP * i + 1), "lock %u", i);
	cr_expect_not(is_locked(&m, 2 * STEP * LOCKS));
	for (unsigned i = 0; i < LOCKS; i++) {
		if (i % 16)
			cr_assert_eq(vfs_unlock(&m.f.ctx, &m.owner[i % OWNERS].locks, STEP * i, 2),
				     0);
	}
	for (unsigned i = 0; i < LOCKS; i++)
		cr_assert(i % 16 || is_locked(&m, STEP * i), "lock %u", i);
	/* One lock in sixteen stays, and units are a thousand bytes, so there are gaps. */
	cr_expect_not(is_locked(&m, STEP * 16 * 10 + STEP * 8));
	for (unsigned i = 0; i < OWNERS; i++)
		vfs_lock_drop_all(&m.owner[i].locks);
	for (unsigned i = 0; i < LOCKS; i++)
		cr_assert_not(is_locked(&m, STEP * i));
	close_model(&m);
}

/* Permission of the cluster, by vfs_lock_request.reclaim, and the number of locks under way when it was asked. */
struct gate {
	struct model *m;
	bool may[2];
	uint32_t seen;
};

static bool gate_may_lock(void *ctx, bool reclaim)
{
	struct gate *g = ctx;

	g->seen = g->m->f.vfs->files->locking[reclaim];
	return g->may[reclaim];
}

/* A call is counted before it asks, so that none is overlooked by whoever forbids it. */
Test(vfs_lock, the_cluster_forbids_new_locks_or_reclaims)
{
	struct vfs_lock_request r = { .type = VFS_LOCK_WRITE, .offset = 0, .length = 1 };
	struct model m;
	struct gate g = { .m = &m };

	open_model(&m, "f");
	m.f.vfs->cfg.may_lock = gate_may_lock;
	m.f.vfs->cfg.may_lock_ctx = &g;
	for (unsigned reclaim = 0; reclaim < 2; reclaim++) {
		r.reclaim = reclaim;
		g.may[reclaim] = false;
		g.may[!reclaim] = true;
		cr_expect_eq(vfs_lock(&m.f.ctx, m.n, &m.owner[0].locks, &r, NULL), -RN_EGRACE);
		cr_expect_eq(g.seen, 1);
		cr_expect_not(is_locked(&m, 0));
		g.may[reclaim] = true;
		cr_expect_eq(vfs_lock(&m.f.ctx, m.n, &m.owner[0].locks, &r, NULL), 0);
		cr_expect(is_locked(&m, 0));
		vfs_lock_settle(m.f.vfs, reclaim);
		g.may[reclaim] = false;
		cr_expect_eq(vfs_unlock(&m.f.ctx, &m.owner[0].locks, 0, 1), 0);
	}
	close_model(&m);
}
