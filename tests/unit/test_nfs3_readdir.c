/* SPDX-License-Identifier: BSD-2-Clause */
/* READDIR and READDIRPLUS: completeness, and every limit to the byte. */
#include "tests/unit/nfs3_suite.h"

#define MANY 300

NFS3_SUITE(nfs3_readdir);

/* Result of one call. */
struct batch {
	uint32_t status;
	unsigned entries;
	unsigned with_fh; /* entries with handle and attributes */
	size_t resok;	  /* bytes of the resok structure */
	size_t dir_bytes; /* bytes that dircount limits */
	uint64_t last_cookie, verf;
	bool eof;
	unsigned seen[MANY + 2]; /* number of times that each name was seen: "nameNNN", ".", ".." */
};

static void note_name(struct batch *b, const uint8_t *name, uint32_t len)
{
	char s[256] = { 0 };
	unsigned n;

	memcpy(s, name, len);
	if (!strcmp(s, "."))
		b->seen[MANY]++;
	else if (!strcmp(s, ".."))
		b->seen[MANY + 1]++;
	else if (sscanf(s, "name%u", &n) == 1 && n < MANY)
		b->seen[n]++;
}

static void get_entries(struct batch *b, bool plus)
{
	struct xdr_in *r = &f->in;
	struct fix_attr a;
	struct vfs_fh fh;

	while (xdr_get_bool(r) && !r->err) {
		uint64_t fileid = xdr_get_u64(r);
		uint32_t len;
		const uint8_t *name = xdr_get_opaque(r, 255, &len);

		b->last_cookie = xdr_get_u64(r);
		cr_assert_not(r->err);
		note_name(b, name, len);
		b->entries++;
		b->dir_bytes += 4 + 8 + 4 + (len + 3) / 4 * 4 + 8;
		if (!plus)
			continue;
		if (fix_get_post_attr(r, &a) + fix_get_post_fh(r, &fh) == 2)
			b->with_fh++;
		cr_expect_eq(a.fileid, fileid);
	}
	b->eof = xdr_get_bool(r);
}

static struct xdr_out *start(bool plus, const struct vfs_fh *dir, uint64_t cookie, uint64_t verf)
{
	struct xdr_out *c = call(plus ? NFSPROC3_READDIRPLUS : NFSPROC3_READDIR);

	fix_put_fh(c, dir);
	xdr_put_u64(c, cookie);
	xdr_put_u64(c, verf);
	return c;
}

static void get_batch(struct batch *b, bool plus)
{
	memset(b, 0, sizeof(*b));
	b->status = status();
	if (f->outcome != FIX_REPLY)
		return;
	b->resok = f->in.left;
	cr_expect(fix_get_post_attr(&f->in, NULL));
	if (b->status == NFS3_OK) {
		b->verf = xdr_get_u64(&f->in);
		get_entries(b, plus);
	}
	whole();
}

static void do_readdir(struct batch *b, uint64_t cookie, uint32_t count)
{
	xdr_put_u32(start(false, &f->root, cookie, 0), count);
	get_batch(b, false);
}

static void do_plus(struct batch *b, uint64_t cookie, uint32_t dircount, uint32_t maxcount)
{
	struct xdr_out *c = start(true, &f->root, cookie, 0);

	xdr_put_u32(c, dircount);
	xdr_put_u32(c, maxcount);
	get_batch(b, true);
}

static void make_many(void)
{
	for (int i = 0; i < MANY; i++) {
		char name[300];

		/* Names with every length of padding. */
		snprintf(name, sizeof(name), "name%d%.*s", i, i % 7, "-------");
		make_file(name, "", 0600);
	}
}

/* Lists the whole directory by calls of at most count bytes; each name must come exactly once. */
static void list_all(bool plus, uint32_t dircount, uint32_t maxcount)
{
	unsigned seen[MANY + 2] = { 0 }, calls = 0;
	uint64_t cookie = 0;
	struct batch b;

	do {
		if (plus)
			do_plus(&b, cookie, dircount, maxcount);
		else
			do_readdir(&b, cookie, maxcount);
		cr_assert_eq(b.status, NFS3_OK);
		cr_assert(b.entries > 0 || b.eof, "no progress");
		cr_expect_leq(b.resok, maxcount);
		cr_expect(!plus || b.dir_bytes <= dircount);
		cr_expect(!plus || b.with_fh == b.entries);
		for (unsigned i = 0; i < MANY + 2; i++)
			seen[i] += b.seen[i];
		cookie = b.last_cookie;
	} while (!b.eof && ++calls < 2 * MANY);
	cr_assert(b.eof);
	for (unsigned i = 0; i < MANY + 2; i++)
		cr_expect_eq(seen[i], 1, "name %u came %u times", i, seen[i]);
}

Test(nfs3_readdir, complete_with_any_count)
{
	NEED_FIXTURE();
	make_many();
	list_all(false, 0, 144); /* exactly the longest entry */
	list_all(false, 0, 512);
	list_all(false, 0, 4096);
	list_all(false, 0, 1u << 20);
}

Test(nfs3_readdir, plus_is_complete_with_any_counts)
{
	NEED_FIXTURE();
	make_many();
	list_all(true, UINT32_MAX, 400);
	list_all(true, 100, 8192);
	list_all(true, 4096, 32768);
	list_all(true, UINT32_MAX, 1u << 20);
}

/* A result of n entries is as long as the smallest count that returns them. */
Test(nfs3_readdir, count_is_exact)
{
	struct batch all, b;

	NEED_FIXTURE();
	make_many();
	do_readdir(&all, 0, 2000);
	cr_assert_eq(all.status, NFS3_OK);
	cr_assert_gt(all.entries, 10);
	do_readdir(&b, 0, (uint32_t)all.resok);
	cr_expect_eq(b.entries, all.entries);
	do_readdir(&b, 0, (uint32_t)all.resok - 1);
	cr_expect_eq(b.entries, all.entries - 1);

	do_plus(&all, 0, UINT32_MAX, 4000);
	do_plus(&b, 0, UINT32_MAX, (uint32_t)all.resok);
	cr_expect_eq(b.entries, all.entries);
	do_plus(&b, 0, UINT32_MAX, (uint32_t)all.resok - 1);
	cr_expect_eq(b.entries, all.entries - 1);
	do_plus(&b, 0, (uint32_t)all.dir_bytes, 4000);
	cr_expect_eq(b.entries, all.entries);
	do_plus(&b, 0, (uint32_t)all.dir_bytes - 1, 4000);
	cr_expect_eq(b.entries, all.entries - 1);
}

Test(nfs3_readdir, what_the_client_can_take_is_exact)
{
	struct batch all, b;

	NEED_FIXTURE();
	make_many();
	do_readdir(&all, 0, 2000);
	f->reply_max = 24 + 4 + all.resok;
	do_readdir(&b, 0, 100000);
	cr_expect_eq(b.entries, all.entries);
	f->reply_max--;
	do_readdir(&b, 0, 100000);
	cr_expect_eq(b.entries, all.entries - 1);
}

Test(nfs3_readdir, too_small)
{
	struct batch b;

	NEED_FIXTURE();
	for (uint32_t count = 0; count < 88 + 8 + 8 + 28; count++) {
		do_readdir(&b, 0, count);
		cr_assert_eq(b.status, NFS3ERR_TOOSMALL, "count %u", count);
	}
	do_plus(&b, 0, 0, 4096);
	cr_expect_eq(b.status, NFS3ERR_TOOSMALL);
	do_plus(&b, 0, 4096, 88 + 8 + 8 + 28);
	cr_expect_eq(b.status, NFS3ERR_TOOSMALL);
}

Test(nfs3_readdir, cookie_verifier)
{
	struct batch b;
	uint64_t cookie;

	NEED_FIXTURE();
	make_many();
	do_readdir(&b, 0, 400);
	cr_assert_eq(b.status, NFS3_OK);
	cookie = b.last_cookie;
	xdr_put_u32(start(false, &f->root, cookie, b.verf), 400);
	get_batch(&b, false);
	cr_expect_eq(b.status, NFS3_OK);
	xdr_put_u32(start(false, &f->root, cookie, b.verf + 1), 400);
	get_batch(&b, false);
	cr_expect_eq(b.status, NFS3ERR_BAD_COOKIE);
}

Test(nfs3_readdir, of_a_file)
{
	struct vfs_fh fh;
	struct batch b;

	NEED_FIXTURE();
	make_file("x", "", 0600);
	fh = handle("x");
	xdr_put_u32(start(false, &fh, 0, 0), 400);
	get_batch(&b, false);
	cr_expect_eq(b.status, NFS3ERR_NOTDIR);
}

/* The option nordirplus of exports(5): clients then use READDIR. */
Test(nfs3_readdir, plus_where_the_export_has_none)
{
	struct batch b;

	NEED_FIXTURE();
	make_many();
	f->access.flags |= VFS_NO_READDIRPLUS;
	do_plus(&b, 0, 4096, 4096);
	cr_expect_eq(b.status, NFS3ERR_NOTSUPP);
	do_readdir(&b, 0, 400);
	cr_expect_eq(b.status, NFS3_OK);
	f->access.flags &= ~(uint32_t)VFS_NO_READDIRPLUS;
	do_plus(&b, 0, 4096, 4096);
	cr_expect_eq(b.status, NFS3_OK);
}

Test(nfs3_readdir, needs_read_permission)
{
	struct vfs_fh fh;
	struct batch b;

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "d"), 0711), 0);
	fh = handle("d");
	f->uid = f->gid = 4000;
	xdr_put_u32(start(false, &fh, 0, 0), 400);
	get_batch(&b, false);
	cr_expect_eq(b.status, NFS3ERR_ACCES);
}

/* A readable directory without search permission: names come without handles. */
Test(nfs3_readdir, plus_without_search_permission)
{
	struct xdr_out *c;
	struct vfs_fh fh;

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "d"), 0744), 0);
	make_file("d/name7", "", 0600);
	fh = handle("d");
	f->uid = f->gid = 4000;
	c = start(true, &fh, 0, 0);
	xdr_put_u32(c, 4096);
	xdr_put_u32(c, 4096);
	cr_assert_eq(status(), NFS3_OK);
	fix_get_post_attr(&f->in, NULL);
	xdr_get_u64(&f->in);
	while (xdr_get_bool(&f->in)) {
		struct vfs_fh got;
		uint32_t len;
		const uint8_t *name;

		xdr_get_u64(&f->in);
		name = xdr_get_opaque(&f->in, 255, &len);
		xdr_get_u64(&f->in);
		if (len == 5 && !memcmp(name, "name7", 5)) {
			cr_expect_not(fix_get_post_attr(&f->in, NULL));
			cr_expect_not(fix_get_post_fh(&f->in, &got));
		} else {
			fix_get_post_attr(&f->in, NULL);
			fix_get_post_fh(&f->in, &got);
		}
	}
	cr_expect(xdr_get_bool(&f->in));
	whole();
}
