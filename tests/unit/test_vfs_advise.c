/* SPDX-License-Identifier: BSD-2-Clause */
/* Advice about ranges of files, as seen in the page cache. A file system whose pages cannot be
 * dropped is skipped. */
#include <criterion/criterion.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/vfs_io_fixture.h"
#include "vfs/share.h"
#include "vfs/space.h"

TestSuite(vfs_advise, .timeout = 60);

#define PAGES 1024u
#define PAGE 4096u
#define ME 1u
#define OTHER 2u

/* Gives the advice and returns what is followed. */
static unsigned advise(struct fx *f, struct vfs_node *n, struct vfs_advise *a)
{
	a->ctx = &f->ctx;
	a->node = n;
	return vfs_advise(a);
}

static unsigned advise_all(struct fx *f, struct vfs_node *n, unsigned advice)
{
	struct vfs_advise a = { .advice = advice };

	return advise(f, n, &a);
}

/* A file of 4 MiB on the disk, with nothing of it in the page cache. */
static struct vfs_node *cold_file(struct fx *f, enum fx_how how, enum vfs_io_mode mode)
{
	static uint8_t data[PAGES * PAGE];
	struct vfs_node *n;

	fx_open(f, how, mode, NULL);
	f->ctx.caller = ME;
	fx_fill(data, sizeof(data), 0, 1);
	n = fx_file(f, "file", data, sizeof(data));
	fx_drop_cache(f, "file");
	if (fx_cached_pages(f, "file") > 0)
		cr_skip_test("pages cannot be dropped here");
	return n;
}

static void end(struct fx *f, struct vfs_node *n)
{
	vfs_node_put(n);
	fx_close(f);
}

/* Pages in memory after a caller has read the first one. */
static unsigned pages_by_read(struct fx *f, struct vfs_node *n, uint64_t caller)
{
	uint8_t page[PAGE];
	bool eof;

	fx_drop_cache(f, "file");
	f->ctx.caller = caller;
	cr_assert_eq(fx_read(f, n, 0, PAGE, page, &eof), PAGE);
	f->ctx.caller = ME;
	return fx_cached_pages(f, "file");
}

Test(vfs_advise, a_pattern_is_its_givers)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		struct vfs_node *n;
		struct fx f;

		n = cold_file(&f, (enum fx_how)how, VFS_IO_BUFFERED);
		if (pages_by_read(&f, n, ME) < 2)
			cr_skip_test("nothing is read ahead here");
		cr_assert_eq(advise_all(&f, n, VFS_ADVICE_RANDOM), VFS_ADVICE_RANDOM);
		cr_expect_eq(pages_by_read(&f, n, ME), 1);
		cr_expect_eq(pages_by_read(&f, n, ME), 1);
		cr_expect_gt(pages_by_read(&f, n, OTHER), 1, "another reads as usual");
		cr_expect_gt(pages_by_read(&f, n, ME), 1, "the advice has ended");
		cr_assert_eq(advise_all(&f, n, VFS_ADVICE_RANDOM), VFS_ADVICE_RANDOM);
		cr_assert_eq(advise_all(&f, n, 0), 0);
		cr_expect_gt(pages_by_read(&f, n, ME), 1, "later advice has no pattern");
		cr_expect_eq(advise_all(&f, n, VFS_ADVICE_SEQUENTIAL), VFS_ADVICE_SEQUENTIAL);
		cr_expect_gt(pages_by_read(&f, n, ME), 1);
		end(&f, n);
	}
}

Test(vfs_advise, a_range_is_read_soon)
{
	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		struct vfs_advise a = { .advice = VFS_ADVICE_WILLNEED, .length = 64 * PAGE };
		struct vfs_node *n;
		struct fx f;

		n = cold_file(&f, (enum fx_how)how, VFS_IO_BUFFERED);
		cr_assert_eq(advise(&f, n, &a), VFS_ADVICE_WILLNEED);
		/* The disk is not waited for. */
		for (int i = 0; i < 5000 && fx_cached_pages(&f, "file") < 64; i++)
			usleep(2000);
		cr_expect_geq(fx_cached_pages(&f, "file"), 64);
		end(&f, n);
	}
}

static void read_all(struct fx *f, struct vfs_node *n)
{
	static uint8_t data[64 * PAGE];
	bool eof;

	for (uint64_t at = 0; at < PAGES * PAGE; at += sizeof(data))
		cr_assert_eq(fx_read(f, n, at, sizeof(data), data, &eof), sizeof(data));
}

Test(vfs_advise, pages_are_dropped_unless_somebody_has_the_file_open)
{
	const struct vfs_share_request r = { .access = VFS_SHARE_READ };

	for (int how = FX_FIXED; how < FX_HOWS; how++) {
		struct vfs_advise a = { .advice = VFS_ADVICE_DONTNEED };
		struct vfs_share mine, others;
		struct vfs_node *n;
		struct fx f;

		n = cold_file(&f, (enum fx_how)how, VFS_IO_BUFFERED);
		read_all(&f, n);
		cr_assert_eq(fx_cached_pages(&f, "file"), PAGES);
		cr_assert_eq(vfs_share_open(&f.ctx, n, &mine, &r, NULL), 0);
		cr_assert_eq(vfs_share_open(&f.ctx, n, &others, &r, NULL), 0);
		a.own_shares = 1;
		cr_expect_eq(advise(&f, n, &a), 0);
		cr_expect_eq(fx_cached_pages(&f, "file"), PAGES);
		vfs_share_close(&others);
		a.own_shares = 0;
		cr_expect_eq(advise(&f, n, &a), 0, "a stranger");
		a.own_shares = 1;
		a.length = 512 * PAGE;
		cr_expect_eq(advise(&f, n, &a), VFS_ADVICE_DONTNEED);
		cr_expect_eq(fx_cached_pages(&f, "file"), PAGES - 512);
		a.length = 0;
		cr_expect_eq(advise(&f, n, &a), VFS_ADVICE_DONTNEED);
		cr_expect_eq(fx_cached_pages(&f, "file"), 0);
		vfs_share_close(&mine);
		end(&f, n);
	}
}

Test(vfs_advise, what_is_not_followed)
{
	const unsigned all = VFS_ADVICE_SEQUENTIAL | VFS_ADVICE_WILLNEED;
	struct vfs_advise far = { .advice = VFS_ADVICE_WILLNEED, .offset = UINT64_MAX };
	struct vfs_node *n;
	struct fx f;

	n = cold_file(&f, FX_FIXED, VFS_IO_BUFFERED);
	cr_expect_eq(advise_all(&f, n, VFS_ADVICE_SEQUENTIAL | VFS_ADVICE_RANDOM), 0);
	cr_expect_eq(advise_all(&f, n, VFS_ADVICE_WILLNEED | VFS_ADVICE_DONTNEED), 0);
	cr_expect_eq(advise_all(&f, f.root, all), 0, "a directory");
	cr_expect_eq(advise(&f, n, &far), 0);
	far = (struct vfs_advise){ .advice = VFS_ADVICE_WILLNEED,
				   .offset = INT64_MAX - 1,
				   .length = UINT64_MAX };
	cr_expect_eq(advise(&f, n, &far), VFS_ADVICE_WILLNEED);
	f.ctx.caller = 0;
	cr_expect_eq(advise_all(&f, n, all), VFS_ADVICE_WILLNEED, "nobody's pattern");
	f.ctx.caller = ME;
	cr_assert_eq(chmod(fx_path(&f, "file"), 0600), 0);
	cr_assert_eq(chmod(f.dir, 0755), 0);
	fx_user(&f, 1000);
	cr_expect_eq(advise_all(&f, n, all), 0, "who may not read");
	end(&f, n);
	n = cold_file(&f, FX_FIXED, VFS_IO_DIRECT);
	cr_expect_eq(advise_all(&f, n, all), 0, "without a page cache");
	end(&f, n);
}
