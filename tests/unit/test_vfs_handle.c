/* SPDX-License-Identifier: BSD-2-Clause */
/* File handles: events that they survive, and invalid ones. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/fs/handle.h"
#include "vfs_fixture.h"

static const uint8_t key[16 + 1] = "a secret of 16 b";

static struct vfs_handle sample(uint32_t len)
{
	struct vfs_handle h = { .export_id = 0x01020304, .submount_id = 9, .type = 1, .len = len };

	for (uint32_t i = 0; i < len; i++)
		h.bytes[i] = (uint8_t)(i * 7 + 1);
	return h;
}

static int decode(const struct vfs_fh *fh, vfs_handle_key mac, struct vfs_handle *out)
{
	int rc = vfs_handle_parse(fh, mac, out);

	return rc == 0 ? vfs_handle_check(fh, mac) : rc;
}

Test(vfs_handle, every_length_comes_back)
{
	for (uint32_t len = 0; len <= VFS_KERNEL_FH_MAX; len++) {
		struct vfs_handle h = sample(len), back;
		struct vfs_fh fh;
		bool fits = len > 0, fits_mac = fits && len <= VFS_KERNEL_FH_MAX - 8;

		cr_assert_eq(vfs_handle_encode(&h, NULL, &fh), fits ? 0 : -EOPNOTSUPP);
		if (fits) {
			cr_assert_eq(decode(&fh, NULL, &back), 0);
			cr_assert_eq(back.export_id, h.export_id);
			cr_assert_eq(back.submount_id, h.submount_id);
			cr_assert_eq(back.type, h.type);
			cr_assert_eq(back.len, len);
			cr_assert_eq(memcmp(back.bytes, h.bytes, len), 0);
			cr_assert_eq(decode(&fh, key, &back), -EBADF, "without a MAC");
		}
		cr_assert_eq(vfs_handle_encode(&h, key, &fh), fits_mac ? 0 : -EOPNOTSUPP);
		if (fits_mac) {
			cr_assert_leq(fh.len, VFS_FH_MAX);
			cr_assert_eq(decode(&fh, key, &back), 0);
			cr_assert_eq(memcmp(back.bytes, h.bytes, len), 0);
			cr_assert_eq(decode(&fh, NULL, &back), -EBADF, "with a MAC");
		}
	}
}

Test(vfs_handle, every_forged_bit_is_seen)
{
	struct vfs_handle h = sample(12), back;
	struct vfs_fh fh;

	cr_assert_eq(vfs_handle_encode(&h, key, &fh), 0);
	for (uint32_t bit = 0; bit < fh.len * 8; bit++) {
		struct vfs_fh bad = fh;
		int rc;

		bad.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* Bytes 0 to 3, and 12 to 15, give the format; the MAC protects the others. */
		rc = decode(&bad, key, &back);
		cr_assert(bit < 32 ? rc == -EBADF
				   : rc == -ESTALE || (bit / 32 == 3 && rc == -EBADF),
			  "bit %u: %d", bit, rc);
	}
}

Test(vfs_handle, every_truncation_and_extension_is_seen)
{
	const uint8_t *keys[] = { NULL, key };
	struct vfs_handle h = sample(12), back;
	struct vfs_fh fh, bad;

	for (unsigned k = 0; k < 2; k++) {
		cr_assert_eq(vfs_handle_encode(&h, keys[k], &fh), 0);
		for (uint32_t len = 0; len <= VFS_FH_MAX + 8; len++) {
			bad = fh;
			bad.len = len;
			cr_assert_eq(decode(&bad, keys[k], &back), len == fh.len ? 0 : -EBADF,
				     "length %u", len);
		}
	}
}

Test(vfs_handle, another_secret_is_refused)
{
	static const uint8_t other[16 + 1] = "A secret of 16 b";
	struct vfs_handle h = sample(8), back;
	struct vfs_fh fh;

	cr_assert_eq(vfs_handle_encode(&h, key, &fh), 0);
	cr_assert_eq(decode(&fh, other, &back), -ESTALE);
}

Test(vfs_handle, types_that_carry_kernel_flags_are_refused)
{
	struct vfs_handle h = sample(8), back;
	struct vfs_fh fh;
	const uint32_t bad[] = { 0, 255, 0x100, 0x10001, 0x80000001 };

	cr_assert_eq(vfs_handle_encode(&h, NULL, &fh), 0);
	for (unsigned i = 0; i < 5; i++) {
		fh.data[12] = (uint8_t)(bad[i] >> 24);
		fh.data[13] = (uint8_t)(bad[i] >> 16);
		fh.data[14] = (uint8_t)(bad[i] >> 8);
		fh.data[15] = (uint8_t)bad[i];
		cr_assert_eq(decode(&fh, NULL, &back), -EBADF, "%x", bad[i]);
	}
}

/* Creates dir/file and returns its handle. */
static struct vfs_fh make_file(struct fixture *f, const char *name)
{
	struct vfs_node *n = must_create(&f->ctx, f->root, name, 0644);
	struct vfs_fh fh = *vfs_node_fh(n);

	vfs_node_put(n);
	return fh;
}

static void survives(unsigned flags)
{
	struct fixture f;
	struct vfs_fh fh, root_fh;
	struct vfs_node *n;
	uint64_t fileid, fsid;

	fixture_open(&f, flags);
	fh = make_file(&f, "a");
	root_fh = *vfs_node_fh(f.root);
	n = must_lookup(&f.ctx, f.root, "a");
	fileid = must_getattr(&f.ctx, n).fileid;
	fsid = must_getattr(&f.ctx, n).fsid;
	vfs_node_put(n);

	cr_assert_eq(rename(in_export(&f, "a"), in_export(&f, "b")), 0);
	fixture_restart(&f);
	cr_assert_eq(try_open(&f.ctx, &root_fh), 0);
	cr_assert_eq(vfs_fh_open(&f.ctx, &fh, &n), 0);
	cr_expect_eq(must_getattr(&f.ctx, n).fileid, fileid);
	cr_expect_eq(must_getattr(&f.ctx, n).fsid, fsid);
	cr_expect_eq(memcmp(vfs_node_fh(n)->data, fh.data, fh.len), 0);
	vfs_node_put(n);
	fixture_close(&f);
}

Test(vfs_handle, survives_restart_and_rename)
{
	survives(0);
}

Test(vfs_handle, survives_restart_and_rename_with_mac)
{
	survives(FIX_MAC);
}

struct maker {
	const char *path;
	atomic_bool stop;
};

static void *make_and_unmake(void *arg)
{
	struct maker *m = arg;

	while (!atomic_load(&m->stop)) {
		put_file(m->path, "");
		unlink(m->path);
	}
	return NULL;
}

/* Other files take the inode number again and again while the handle is checked. */
Test(vfs_handle, is_stale_while_its_inode_is_taken_anew)
{
	struct fixture f;
	struct vfs_fh fh;
	struct maker m = { 0 };
	pthread_t thread;
	unsigned other = 0;

	fixture_open(&f, 0);
	fh = make_file(&f, "gone");
	cr_assert_eq(vfs_remove(&f.ctx, f.root, "gone", 4, NULL), 0);
	m.path = in_export(&f, "new");
	cr_assert_eq(pthread_create(&thread, NULL, make_and_unmake, &m), 0);
	for (unsigned i = 0; i < 5000; i++)
		other += try_open(&f.ctx, &fh) != -ESTALE;
	atomic_store(&m.stop, true);
	pthread_join(thread, NULL);
	cr_expect_eq(other, 0, "%u of 5000 opens said something else", other);
	fixture_close(&f);
}

Test(vfs_handle, is_stale_after_removal)
{
	struct fixture f;
	struct vfs_fh by_us, by_others, held;
	struct vfs_attr a;
	struct vfs_node *n;

	fixture_open(&f, FIX_MAC);
	by_us = make_file(&f, "us");
	by_others = make_file(&f, "others");
	held = make_file(&f, "held");
	cr_assert_eq(vfs_remove(&f.ctx, f.root, "us", 2, NULL), 0);
	cr_expect_eq(try_open(&f.ctx, &by_us), -ESTALE);

	/* Removed by a local process: noticed at the next use. */
	cr_assert_eq(vfs_fh_open(&f.ctx, &by_others, &n), 0);
	cr_assert_eq(unlink(in_export(&f, "others")), 0);
	cr_expect_eq(vfs_getattr(&f.ctx, n, &a), -ESTALE);
	vfs_node_put(n);
	cr_expect_eq(try_open(&f.ctx, &by_others), -ESTALE);

	/* Removed while a local process keeps it open. */
	int fd = open(in_export(&f, "held"), O_RDONLY);
	cr_assert_eq(vfs_remove(&f.ctx, f.root, "held", 4, NULL), 0);
	cr_expect_eq(try_open(&f.ctx, &held), -ESTALE);
	close(fd);
	fixture_close(&f);
}

Test(vfs_handle, another_link_keeps_it_alive)
{
	struct fixture f;
	struct vfs_fh fh;

	fixture_open(&f, FIX_MAC);
	fh = make_file(&f, "a");
	cr_assert_eq(link(in_export(&f, "a"), in_export(&f, "b")), 0);
	cr_assert_eq(vfs_remove(&f.ctx, f.root, "a", 1, NULL), 0);
	cr_expect_eq(try_open(&f.ctx, &fh), 0);
	fixture_close(&f);
}

Test(vfs_handle, another_export_refuses_it)
{
	struct fixture f;
	struct vfs_export *other;
	struct vfs_ctx ctx;
	struct vfs_fh fh;
	const char *why;
	uint32_t id;

	fixture_open(&f, FIX_MAC);
	fh = make_file(&f, "a");
	cr_assert_eq(mkdir(in_base(&f, "other"), 0755), 0);
	cr_assert_eq(vfs_export_open(f.vfs,
				     &(struct vfs_export_config){ in_base(&f, "other"), 8,
								  VFS_IO_BUFFERED, false },
				     &other, &why),
		     0);
	ctx = f.ctx;
	ctx.exp = other;
	cr_expect_eq(try_open(&ctx, &fh), -ESTALE);
	cr_assert_eq(vfs_fh_export_id(f.vfs, &fh, &id), 0);
	cr_expect_eq(id, 7);
	fh.data[7] = 8; /* the other export's id with this one's MAC */
	cr_expect_eq(try_open(&ctx, &fh), -ESTALE);
	vfs_export_put(other);
	fixture_close(&f);
}

/* Without a MAC, only the decoder's checks protect the file system from forged handles. */
Test(vfs_handle, forged_bits_without_mac_do_no_harm)
{
	struct fixture f;
	struct vfs_fh fh;

	fixture_open(&f, 0);
	fh = make_file(&f, "a");
	for (uint32_t bit = 0; bit < fh.len * 8; bit++) {
		struct vfs_fh bad = fh;
		int rc;

		bad.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		rc = try_open(&f.ctx, &bad);
		cr_expect(rc == -EBADF || rc == -ESTALE, "bit %u: %d", bit, rc);
	}
	fixture_close(&f);
}

/* ext4 takes generation 0 as a wildcard: the object found has another handle than the given one. */
Test(vfs_handle, a_wildcard_generation_is_refused)
{
	struct fixture f;
	struct vfs_fh fh;
	struct vfs_handle h;

	fixture_open(&f, 0);
	fh = make_file(&f, "a");
	cr_assert_eq(decode(&fh, NULL, &h), 0);
	if (h.len == 8) {
		memset(h.bytes + 4, 0, 4);
		cr_assert_eq(vfs_handle_encode(&h, NULL, &fh), 0);
		cr_expect_eq(try_open(&f.ctx, &fh), -ESTALE);
	}
	fixture_close(&f);
}
