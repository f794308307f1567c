/* SPDX-License-Identifier: BSD-2-Clause */
/* Cost of shares and locks in time and memory as their number grows: printed, not asserted.
 * RINGNFS_SCALE=full has 100,000 of each. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vfs/lock.h"
#include "vfs/share.h"
#include "vfs_fixture.h"

#define STEPS 3u

struct scale {
	struct fixture f;
	struct vfs_node *n;
	struct vfs_file *file;
	unsigned count;
};

/* Processor time of this process, in microseconds: other work on the machine does not change it. */
static double spent_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static size_t in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static unsigned step_count(unsigned i)
{
	static const unsigned count[] = { 1000, 10000, 100000 };
	const char *how = getenv("RINGNFS_SCALE");

	return how && how[0] == 'f' ? count[i] : count[i] / 10;
}

static void scale_open(struct scale *s)
{
	fixture_open(&s->f, 0);
	s->n = must_create(&s->f.ctx, s->f.root, "f", 0644);
	cr_assert_eq(vfs_file_get(&s->f.ctx, s->n, &s->file), 0);
}

static void scale_close(struct scale *s)
{
	vfs_file_put(s->file);
	vfs_node_put(s->n);
	fixture_close(&s->f);
}

static void report(const char *what, unsigned count, double us, size_t bytes, double undo_us)
{
	printf("%-28s %7u: %6.2f us each, %4zu bytes each, %6.2f us to undo\n", what, count,
	       us / count, bytes / count, undo_us / count);
}

Test(vfs_scale, shares_of_one_file)
{
	struct scale s;

	scale_open(&s);
	for (unsigned i = 0; i < STEPS; i++) {
		unsigned count = step_count(i);
		struct vfs_share *share = calloc(count, sizeof(*share)), late;
		double start = spent_us(), took;

		for (unsigned k = 0; k < count; k++)
			cr_assert_eq(vfs_share_open(&s.f.ctx, s.n, &share[k],
						    &(struct vfs_share_request){ NULL, 1, 0 },
						    NULL),
				     0);
		took = spent_us() - start;
		cr_assert_eq(vfs_share_open(&s.f.ctx, s.n, &late,
					    &(struct vfs_share_request){ NULL, 2, 1 }, NULL),
			     -RN_ESHARE);
		start = spent_us();
		for (unsigned k = 0; k < count; k++)
			vfs_share_close(&share[k]);
		report("shares of a file", count, took, sizeof(*share) * count, spent_us() - start);
		free(share);
	}
	scale_close(&s);
}

static void lock_ranges(struct scale *s, const char *what, unsigned count, unsigned owners)
{
	struct vfs_lock_owner *o = calloc(owners, sizeof(*o));
	size_t before = in_use(), bytes;
	double start, took;

	for (unsigned k = 0; k < owners; k++)
		vfs_lock_owner_init(&o[k], s->file, NULL);
	start = spent_us();
	for (unsigned k = 0; k < count; k++) {
		struct vfs_lock_request r = { .type = VFS_LOCK_WRITE,
					      .offset = 2ull * k,
					      .length = 1 };

		cr_assert_eq(vfs_lock(&s->f.ctx, s->n, &o[k % owners], &r, NULL), 0);
	}
	took = spent_us() - start;
	bytes = in_use() - before;
	start = spent_us();
	for (unsigned k = 0; k < owners; k++)
		vfs_lock_owner_end(&o[k]);
	report(what, count, took, bytes, spent_us() - start);
	free(o);
}

Test(vfs_scale, locks_of_one_file)
{
	struct scale s;

	scale_open(&s);
	for (unsigned i = 0; i < STEPS; i++)
		lock_ranges(&s, "locks of one owner", step_count(i), 1);
	for (unsigned i = 0; i < STEPS; i++)
		lock_ranges(&s, "locks of 100 owners", step_count(i), 100);
	for (unsigned i = 0; i < STEPS; i++)
		lock_ranges(&s, "locks of as many owners", step_count(i), step_count(i));
	scale_close(&s);
}

/* Opens and locks each file once. Most have no descriptor, because the budget has too few. */
static void open_files(struct scale *s, unsigned count)
{
	struct vfs_share *share = calloc(count, sizeof(*share));
	struct vfs_lock_owner *o = calloc(count, sizeof(*o));
	struct vfs_lock_request r = { .type = VFS_LOCK_WRITE, .length = UINT64_MAX };
	double took = 0, start;
	size_t bytes = 0, before;
	char name[32];

	for (unsigned k = 0; k < count; k++) {
		struct vfs_node *n;

		snprintf(name, sizeof(name), "%u-%u", count, k);
		n = must_create(&s->f.ctx, s->f.root, name, 0644);
		start = spent_us();
		before = in_use();
		cr_assert_eq(vfs_share_open(&s->f.ctx, n, &share[k],
					    &(struct vfs_share_request){ NULL, 3, 0 }, NULL),
			     0);
		vfs_lock_owner_init(&o[k], share[k].file, NULL);
		cr_assert_eq(vfs_lock(&s->f.ctx, n, &o[k], &r, NULL), 0);
		bytes += in_use() - before;
		took += spent_us() - start;
		vfs_node_put(n);
	}
	start = spent_us();
	for (unsigned k = 0; k < count; k++) {
		vfs_lock_owner_end(&o[k]);
		vfs_share_close(&share[k]);
	}
	report("files opened and locked", count, took, bytes, spent_us() - start);
	free(share);
	free(o);
}

Test(vfs_scale, files)
{
	struct scale s;

	scale_open(&s);
	open_files(&s, step_count(2) / 10);
	if (step_count(2) == 100000)
		open_files(&s, step_count(2));
	scale_close(&s);
}
