/* SPDX-License-Identifier: BSD-2-Clause */
/* Share reservations, and open files that lose their last link. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/node/node.h"
#include "vfs/share.h"
#include "vfs_fixture.h"

struct owner {
	struct vfs_holder holder;
	int refs;
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

static struct vfs_file_stats stats(const struct fixture *f)
{
	struct vfs_file_stats st;

	vfs_file_stats(f->vfs, &st);
	return st;
}

static int open_share(struct fixture *f, struct vfs_node *n, struct vfs_share *s, unsigned access,
		      unsigned deny)
{
	return vfs_share_open(&f->ctx, n, s,
			      &(struct vfs_share_request){ NULL, (uint8_t)access, (uint8_t)deny },
			      NULL);
}

/* Other servers have the same files, and would not see what is denied here. */
Test(vfs_share, nothing_is_denied_where_others_do_not_see_it)
{
	struct vfs_share a, b;
	struct fixture f;
	struct vfs_node *n;

	fixture_open(&f, 0);
	f.cfg.shared = true;
	fixture_restart(&f);
	n = must_create(&f.ctx, f.root, "f", 0644);
	cr_assert_eq(open_share(&f, n, &a, VFS_SHARE_BOTH, 0), 0);
	cr_assert_eq(open_share(&f, n, &b, VFS_SHARE_BOTH, 0), 0);
	vfs_share_close(&a);
	for (unsigned deny = 1; deny <= VFS_SHARE_BOTH; deny++) {
		cr_expect(!vfs_share_may_deny(f.vfs, (uint8_t)deny));
		cr_expect_eq(open_share(&f, n, &a, VFS_SHARE_READ, deny), -RN_ESHARE);
		cr_expect_eq(vfs_share_change(&b, VFS_SHARE_READ, (uint8_t)deny, NULL), -RN_ESHARE);
		cr_expect_eq(vfs_share_check(b.file, VFS_SHARE_READ, (uint8_t)deny, NULL),
			     -RN_ESHARE);
	}
	cr_expect_eq(b.access, VFS_SHARE_BOTH);
	cr_expect(!vfs_share_any_denying(f.vfs));
	vfs_share_close(&b);
	vfs_node_put(n);
	fixture_close(&f);
}

/* RFC 8881 section 9.7: every combination of access and deny against every other. */
Test(vfs_share, every_pair)
{
	struct vfs_share a, b;
	struct fixture f;
	struct vfs_node *n;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "f", 0644);
	for (unsigned i = 0; i < 256; i++) {
		unsigned access1 = i & 3, deny1 = i >> 2 & 3, access2 = i >> 4 & 3, deny2 = i >> 6;
		int want = (access2 & deny1) || (deny2 & access1) ? -RN_ESHARE : 0;

		if (!access1 || !access2)
			continue;
		cr_assert_eq(open_share(&f, n, &a, access1, deny1), 0);
		cr_expect_eq(open_share(&f, n, &b, access2, deny2), want, "%u/%u then %u/%u",
			     access1, deny1, access2, deny2);
		vfs_share_close(&b);
		cr_assert_eq(open_share(&f, n, &b, 0, 0), 0);
		cr_expect_eq(vfs_share_change(&b, (uint8_t)access2, (uint8_t)deny2, NULL), want);
		cr_expect_eq(b.access, want ? 0 : access2);
		cr_expect_eq(vfs_share_check_io(&f.ctx, n, NULL, (uint8_t)access2, NULL),
			     (access2 & (deny1 | b.deny)) ? -RN_ESHARE : 0);
		cr_expect_eq(vfs_share_check_io(&f.ctx, n, &a, 3, NULL), b.deny ? -RN_ESHARE : 0);
		vfs_share_close(&b);
		vfs_share_close(&a);
	}
	vfs_node_put(n);
	cr_expect_eq(stats(&f).files, 0);
	cr_expect_eq(stats(&f).held, 0);
	cr_expect_eq(stats(&f).shares, 0);
	fixture_close(&f);
}

Test(vfs_share, the_one_in_the_way_is_named)
{
	struct owner o[3] = { { .holder.ops = &owner_ops },
			      { .holder.ops = &owner_ops },
			      { .holder.ops = &owner_ops } };
	struct vfs_share s[3], late;
	struct vfs_conflict c;
	struct fixture f;
	struct vfs_node *n;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "f", 0644);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(vfs_share_open(&f.ctx, n, &s[i],
					    &(struct vfs_share_request){
						    &o[i].holder,
						    i == 1 ? VFS_SHARE_WRITE : VFS_SHARE_READ, 0 },
					    NULL),
			     0);
	cr_assert_eq(
		vfs_share_open(&f.ctx, n, &late,
			       &(struct vfs_share_request){ NULL, VFS_SHARE_READ, VFS_SHARE_WRITE },
			       &c),
		-RN_ESHARE);
	cr_expect_eq(c.holder, &o[1].holder);
	cr_expect_eq(c.access, VFS_SHARE_WRITE);
	cr_expect_eq(o[1].refs, 1);
	vfs_conflict_put(&c);
	cr_expect_eq(o[1].refs, 0);
	cr_expect_eq(vfs_share_change(&s[1], VFS_SHARE_READ, 0, NULL), 0);
	cr_expect_eq(
		vfs_share_open(&f.ctx, n, &late,
			       &(struct vfs_share_request){ NULL, VFS_SHARE_READ, VFS_SHARE_WRITE },
			       &c),
		0);
	cr_expect_eq(vfs_share_change(&s[0], VFS_SHARE_BOTH, 0, NULL), -RN_ESHARE);
	cr_expect_eq(vfs_share_change(&late, VFS_SHARE_BOTH, VFS_SHARE_WRITE, NULL), 0);
	vfs_share_close(&late);
	for (unsigned i = 0; i < 3; i++)
		vfs_share_close(&s[i]);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_share, only_regular_files)
{
	struct vfs_share s;
	struct fixture f;
	struct vfs_node *n;

	fixture_open(&f, 0);
	cr_expect_eq(open_share(&f, f.root, &s, 1, 0), -EISDIR);
	cr_assert_eq(symlink("x", in_export(&f, "link")), 0);
	n = must_lookup(&f.ctx, f.root, "link");
	cr_expect_eq(open_share(&f, n, &s, 1, 0), -EINVAL);
	vfs_share_close(&s);
	vfs_node_put(n);
	fixture_close(&f);
}

/* The same file through another export, under another name, and after a rename. */
Test(vfs_share, one_file_one_state)
{
	struct vfs_export *other;
	struct vfs_node *a, *b, *c, *root;
	struct vfs_share s, t;
	struct vfs_file *fa, *fb;
	struct vfs_ctx ctx;
	struct fixture f;
	const char *why;

	fixture_open(&f, 0);
	cr_assert_eq(
		vfs_export_open(f.vfs,
				&(struct vfs_export_config){ f.base, 8, VFS_IO_BUFFERED, false },
				&other, &why),
		0);
	ctx = f.ctx;
	ctx.exp = other;
	cr_assert_eq(vfs_root(&ctx, &root), 0);
	a = must_create(&f.ctx, f.root, "f", 0644);
	cr_assert_eq(link(in_export(&f, "f"), in_base(&f, "g")), 0);
	b = must_lookup(&ctx, root, "g");
	cr_assert_neq(a, b);
	cr_assert_eq(vfs_file_get(&f.ctx, a, &fa), 0);
	cr_assert_eq(vfs_file_get(&ctx, b, &fb), 0);
	cr_expect_eq(fa, fb);
	cr_expect(vfs_file_is(fa, b));
	vfs_file_put(fb);
	cr_assert_eq(rename(in_base(&f, "g"), in_export(&f, "h")), 0);
	c = must_lookup(&f.ctx, f.root, "h");
	cr_assert_eq(vfs_file_get(&f.ctx, c, &fb), 0);
	cr_expect_eq(fa, fb);
	cr_assert_eq(open_share(&f, a, &s, 1, 2), 0);
	cr_expect_eq(vfs_share_open(&ctx, b, &t, &(struct vfs_share_request){ NULL, 2, 0 }, NULL),
		     -RN_ESHARE);
	cr_expect_eq(vfs_share_check_io(&ctx, b, NULL, 2, NULL), -RN_ESHARE);
	cr_expect_not(vfs_file_is(fa, f.root));
	vfs_share_close(&s);
	vfs_file_put(fa);
	vfs_file_put(fb);
	vfs_node_put(a), vfs_node_put(b), vfs_node_put(c), vfs_node_put(root);
	vfs_forget_export(f.vfs, 8);
	vfs_export_put(other);
	fixture_close(&f);
}

/* Number of descriptors of files without a link. The test program itself may have some. */
static long unlinked_open(void)
{
	struct stat st;
	long n = 0;

	for (int fd = 3; fd < 64; fd++)
		n += fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0;
	return n;
}

/* An open file loses its last link: its opener can still read, and others find the file gone. */
static void use_unlinked(struct fixture *f, void (*unlink_it)(struct fixture *f))
{
	struct vfs_share s, t;
	struct vfs_attr attr;
	struct vfs_node *n;
	struct vfs_fh fh;
	long before = unlinked_open();

	n = must_create(&f->ctx, f->root, "f", 0644);
	fh = *vfs_node_fh(n);
	cr_assert_eq(open_share(f, n, &s, 3, 0), 0);
	vfs_node_put(n);
	vfs_forget_export(f->vfs, 7); /* only the share still refers to the file */
	unlink_it(f);
	vfs_forget_export(f->vfs, 7);
	cr_assert_eq(vfs_fh_open(&f->ctx, &fh, &n), 0);
	cr_assert_eq(vfs_getattr(&f->ctx, n, &attr), 0);
	cr_expect_eq(attr.nlink, 0);
	cr_expect_eq(
		vfs_setattr(&f->ctx, n, &(struct vfs_setattr){ .set_size = true, .size = 5 }, NULL),
		0);
	cr_expect_eq(open_share(f, n, &t, 1, 0), 0);
	vfs_share_close(&s);
	cr_expect_eq(vfs_getattr(&f->ctx, n, &attr), 0);
	vfs_share_close(&t);
	vfs_node_put(n);
	be_root(f);
	cr_expect_eq(try_open(&f->ctx, &fh), -ESTALE);
	cr_expect_eq(unlinked_open(), before);
}

static void remove_it(struct fixture *f)
{
	cr_assert_eq(vfs_remove(&f->ctx, f->root, "f", 1, NULL), 0);
}

static void replace_it(struct fixture *f)
{
	struct vfs_rename r = { .from_dir = f->root,
				.to_dir = f->root,
				.from = "g",
				.to = "f",
				.from_len = 1,
				.to_len = 1 };

	put_file(in_export(f, "g"), "new");
	cr_assert_eq(vfs_rename(&f->ctx, &r), 0);
	cr_assert_eq(vfs_remove(&f->ctx, f->root, "f", 1, NULL), 0);
}

static void remove_it_locally(struct fixture *f)
{
	be_root(f);
	cr_assert_eq(unlink(in_export(f, "f")), 0);
}

Test(vfs_share, open_files_outlive_their_names)
{
	struct fixture f;

	fixture_open(&f, 0);
	use_unlinked(&f, remove_it);
	use_unlinked(&f, replace_it);
	use_unlinked(&f, remove_it_locally);
	cr_expect_eq(stats(&f).held, 0);
	fixture_close(&f);
}

/* More open files than descriptors: those that we unlink ourselves are kept all the same. */
Test(vfs_share, precautions_keep_to_the_budget)
{
	enum { FILES = 100 };
	static struct vfs_share s[FILES];
	struct vfs_stats st;
	struct fixture f;
	struct vfs_node *n;
	char name[16];

	fixture_open(&f, FIX_FEW_FDS);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		n = must_create(&f.ctx, f.root, name, 0644);
		cr_assert_eq(open_share(&f, n, &s[i], 1, 0), 0);
		vfs_node_put(n);
	}
	cr_expect_eq(stats(&f).held, f.cfg.max_fds / 4);
	vfs_stats(f.vfs, &st);
	cr_expect_leq(st.fds, f.cfg.max_fds + 1);
	use_unlinked(&f, remove_it);
	use_unlinked(&f, replace_it);
	for (unsigned i = 0; i < FILES; i++)
		vfs_share_close(&s[i]);
	cr_expect_eq(stats(&f).files, 0);
	fixture_close(&f);
}

/* The last link goes between the lookup and the open. If that is seen before the share, the file is
 * stale; if after, the file counts as open. */
Test(vfs_share, unlinked_before_it_is_open)
{
	long before = unlinked_open();
	struct vfs_share s;
	struct fixture f;
	struct vfs_node *n;
	struct vfs_fh fh;

	fixture_open(&f, 0);
	n = must_create(&f.ctx, f.root, "f", 0644);
	fh = *vfs_node_fh(n);
	cr_assert_eq(vfs_open_check(&f.ctx, n, VFS_MAY_READ), 0);
	cr_assert_eq(vfs_remove(&f.ctx, f.root, "f", 1, NULL), 0);
	cr_expect_eq(vfs_open_check(&f.ctx, n, VFS_MAY_READ), -ESTALE);
	cr_assert_eq(open_share(&f, n, &s, 1, 0), 0);
	vfs_node_put(n);
	cr_expect_eq(stats(&f).held, 1);
	cr_assert_eq(vfs_fh_open(&f.ctx, &fh, &n), 0);
	vfs_share_close(&s);
	vfs_node_put(n);
	cr_expect_eq(try_open(&f.ctx, &fh), -ESTALE);
	cr_expect_eq(stats(&f).files, 0);
	cr_expect_eq(unlinked_open(), before);
	fixture_close(&f);
}
