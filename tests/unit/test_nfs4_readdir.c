/* SPDX-License-Identifier: BSD-2-Clause */
/* READDIR in each minor version. */
#include <stdlib.h>
#include <sys/xattr.h>
#include <time.h>

#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_attrs.h"
#include "tests/unit/nfs4_minors.h"

NFS3_SUITE(nfs4_readdir);

#define ENTRIES_MAX 4096

struct entry {
	char name[256];
	uint64_t cookie;
	struct fix4_attrs attrs;
};

static struct entry *entries;
static unsigned nentries;
static bool eof;
static size_t result_size;

static const int plain[] = { FATTR4_RDATTR_ERROR, FATTR4_MOUNTED_ON_FILEID, -1 };
static const int full[] = { FATTR4_TYPE,
			    FATTR4_CHANGE,
			    FATTR4_SIZE,
			    FATTR4_FSID,
			    FATTR4_RDATTR_ERROR,
			    FATTR4_FILEHANDLE,
			    FATTR4_FILEID,
			    FATTR4_MODE,
			    FATTR4_NUMLINKS,
			    FATTR4_OWNER,
			    FATTR4_OWNER_GROUP,
			    FATTR4_SPACE_USED,
			    FATTR4_TIME_ACCESS,
			    FATTR4_TIME_METADATA,
			    FATTR4_TIME_MODIFY,
			    FATTR4_MOUNTED_ON_FILEID,
			    -1 };

struct listing {
	const struct vfs_fh *dir; /* NULL: the root of the pseudo file system */
	uint64_t cookie, verifier;
	uint32_t dircount, maxcount;
	const int *bits;
};

static uint32_t ask(struct fix4_session *s, const struct listing *l)
{
	struct xdr_out *c = &f->out;

	fix4_begin(f, s);
	if (l->dir)
		fix4_putfh(f, l->dir);
	else
		fix4_op(f, OP_PUTROOTFH);
	fix4_op(f, OP_READDIR);
	xdr_put_u64(c, l->cookie);
	xdr_put_u64(c, l->verifier);
	xdr_put_u32(c, l->dircount);
	xdr_put_u32(c, l->maxcount);
	fix4_put_bits(f, l->bits);
	return fix4_send(f);
}

static void get_entries(struct xdr_in *r)
{
	if (!entries)
		entries = calloc(ENTRIES_MAX, sizeof(*entries));
	nentries = 0;
	cr_expect_eq(xdr_get_u64(r), 0, "the verifier");
	while (xdr_get_bool(r)) {
		struct entry *e = &entries[nentries++];
		const uint8_t *p;
		uint32_t len;

		cr_assert_lt(nentries, ENTRIES_MAX);
		e->cookie = xdr_get_u64(r);
		p = xdr_get_opaque(r, 255, &len);
		cr_assert(p);
		memcpy(e->name, p, len);
		e->name[len] = '\0';
		cr_assert(fix4_get_attrs(r, &e->attrs), "attributes of %s", e->name);
		cr_expect_gt(e->cookie, 2);
		cr_expect_leq(e->cookie, INT64_MAX);
	}
	eof = xdr_get_bool(r);
}

static uint32_t list(struct fix4_session *s, const struct listing *l)
{
	uint32_t status = ask(s, l);

	fix4_result(f, l->dir ? OP_PUTFH : OP_PUTROOTFH);
	cr_expect_eq(fix4_result(f, OP_READDIR), status);
	result_size = f->in.left;
	if (status == NFS4_OK)
		get_entries(&f->in);
	whole();
	return status;
}

static const struct entry *find(const char *name)
{
	for (unsigned i = 0; i < nentries; i++) {
		if (strcmp(entries[i].name, name) == 0)
			return &entries[i];
	}
	return NULL;
}

static struct listing root_listing(const int *bits)
{
	return (struct listing){
		.dir = &f->root, .dircount = 65536, .maxcount = 65536, .bits = bits
	};
}

static void check_attrs(struct fix4_session *s, uint32_t minor)
{
	struct listing l = root_listing(full);
	struct fix4_attrs one;
	struct vfs_fh fh = handle("file");

	(void)minor;
	cr_assert_eq(list(s, &l), NFS4_OK);
	cr_expect(eof);
	cr_expect_eq(nentries, 3);
	cr_expect_null(find("."));
	cr_expect_null(find(".."));
	cr_assert(find("file") && find("dir") && find("link"));
	cr_expect_eq(find("dir")->attrs.type, NF4DIR);
	cr_expect_eq(find("link")->attrs.type, NF4LNK);
	cr_assert_eq(fix4_getattr(f, s, &fh, &one), NFS4_OK);
	const struct fix4_attrs *a = &find("file")->attrs;
	cr_expect(a->fh.len == fh.len && memcmp(a->fh.data, fh.data, fh.len) == 0);
	cr_expect(a->type == NF4REG && a->size == 5 && a->mode == 0644);
	cr_expect(a->change == one.change && a->fileid == one.fileid);
	cr_expect(a->fsid[0] == one.fsid[0] && a->fsid[1] == one.fsid[1]);
	cr_expect(a->mounted_on == one.fileid && a->rdattr_error == NFS4_OK);
	cr_expect_str_eq(a->owner, one.owner);
	for (unsigned i = 0; full[i] >= 0; i++)
		cr_expect(nfs4_bitmap_has(&a->have, (unsigned)full[i]), "attribute %d", full[i]);
}

Test(nfs4_readdir, entries_with_attributes)
{
	NEED_FIXTURE();
	make_file("file", "hello", 0644);
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0755), 0);
	cr_assert_eq(symlink("x", fix_path(f, "link")), 0);
	FOR_MINORS(check_attrs);
}

static void check_plain(struct fix4_session *s, uint32_t minor)
{
	struct listing l = root_listing(plain);
	struct stat st;

	(void)minor;
	cr_assert_eq(list(s, &l), NFS4_OK);
	cr_assert_eq(stat(fix_path(f, "file"), &st), 0);
	cr_assert(find("file"));
	cr_expect_eq(find("file")->attrs.mounted_on, st.st_ino);
	l.bits = (const int[]){ -1 };
	cr_expect_eq(list(s, &l), NFS4_OK);
	cr_expect(find("file"));
	/* The same with attributes of the file system. */
	l.bits = (const int[]){ FATTR4_SPACE_TOTAL, FATTR4_MAXNAME, -1 };
	cr_expect_eq(list(s, &l), NFS4_OK);
	cr_expect_eq(find("file")->attrs.maxname, 255);
	cr_expect_gt(find("file")->attrs.space[2], 0);
}

Test(nfs4_readdir, few_attributes_and_none)
{
	NEED_FIXTURE();
	make_file("file", "hello", 0644);
	FOR_MINORS(check_plain);
}

static void make_many(unsigned n)
{
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "entry-%05u", i);
		cr_assert_eq(mknod(fix_path(f, name), S_IFREG | 0600, 0), 0);
	}
}

/* In pages of several sizes, each name must come once. */
static void check_pages(struct fix4_session *s, uint32_t minor)
{
	static bool seen[600];
	struct listing l = root_listing(full);
	unsigned pages = 0, n = 0;

	(void)minor;
	memset(seen, 0, sizeof(seen));
	l.maxcount = 4096;
	do {
		cr_assert_eq(list(s, &l), NFS4_OK);
		cr_expect_leq(result_size, l.maxcount);
		/* The page before had room for the last entry, and for no more. */
		if (nentries == 0) {
			cr_assert(eof);
			break;
		}
		for (unsigned i = 0; i < nentries; i++) {
			unsigned long k = strtoul(entries[i].name + 6, NULL, 10);

			cr_assert_lt(k, 600);
			cr_expect_not(seen[k], "%s twice", entries[i].name);
			seen[k] = true;
			n++;
		}
		l.cookie = entries[nentries - 1].cookie;
		pages++;
	} while (!eof);
	cr_expect_eq(n, 600);
	cr_expect_gt(pages, 20);
	/* There are no entries behind the last cookie. */
	cr_expect_eq(list(s, &l), NFS4_OK);
	cr_expect(nentries == 0 && eof);
}

Test(nfs4_readdir, page_by_page)
{
	NEED_FIXTURE();
	make_many(600);
	FOR_MINORS(check_pages);
}

static void check_limits(struct fix4_session *s, uint32_t minor)
{
	struct listing l = root_listing(plain);
	uint32_t one;

	l.dircount = 1; /* only a hint: one entry comes at any value */
	cr_expect_eq(list(s, &l), NFS4_OK);
	cr_expect_eq(nentries, 1);
	one = (uint32_t)result_size;
	l.dircount = 2 * (8 + 4 + 12);
	cr_expect_eq(list(s, &l), NFS4_OK);
	cr_expect_eq(nentries, 2);
	l.dircount = 0; /* no limit by dircount */
	l.maxcount = 100000;
	cr_expect_eq(list(s, &l), NFS4_OK);
	cr_expect_eq(nentries, 40);
	l.maxcount = one;
	cr_expect_eq(list(s, &l), NFS4_OK);
	cr_expect_eq(nentries, 1);
	cr_expect_eq(result_size, one);
	for (uint32_t less = 1; less <= one; less += 4) {
		l.maxcount = one - less;
		cr_expect_eq(list(s, &l), NFS4ERR_TOOSMALL, "maxcount %u", l.maxcount);
	}
	(void)minor;
}

Test(nfs4_readdir, limits)
{
	NEED_FIXTURE();
	make_many(40);
	FOR_MINORS(check_limits);
}

Test(nfs4_readdir, an_empty_directory_has_limits_too)
{
	struct listing l;

	NEED_FIXTURE();
	l = root_listing(plain);
	l.maxcount = 16;
	cr_expect_eq(list(NULL, &l), NFS4_OK);
	cr_expect(nentries == 0 && eof);
	l.maxcount = 15;
	cr_expect_eq(list(NULL, &l), NFS4ERR_TOOSMALL);
}

/* The client can take less than the maxcount that it gives. */
Test(nfs4_readdir, the_reply_bounds_it)
{
	struct listing l;

	NEED_FIXTURE();
	make_many(40);
	l = root_listing(full);
	f->reply_max = 1000;
	cr_expect_eq(list(NULL, &l), NFS4_OK);
	cr_expect(nentries > 0 && nentries < 40 && !eof);
	cr_expect_leq(f->reply_len, 1000);
	f->reply_max = 128;
	cr_expect_eq(list(NULL, &l), NFS4ERR_RESOURCE);
	f->reply_max = FIX_REPLY_SIZE;
}

static void check_errors(struct fix4_session *s, uint32_t minor)
{
	struct listing l = root_listing(plain);
	struct vfs_fh file = handle("file"), dir = handle("secret");

	(void)minor;
	for (l.cookie = 1; l.cookie <= 2; l.cookie++)
		cr_expect_eq(list(s, &l), NFS4ERR_BAD_COOKIE);
	l.cookie = 1ull << 63;
	cr_expect_eq(list(s, &l), NFS4ERR_BAD_COOKIE);
	l.cookie = 77;
	l.verifier = 1;
	cr_expect_eq(list(s, &l), NFS4ERR_NOT_SAME);
	l.cookie = 0;
	cr_expect_eq(list(s, &l), NFS4_OK, "a first call has no verifier");
	l.verifier = 0;
	l.bits = (const int[]){ FATTR4_TIME_MODIFY_SET, -1 };
	cr_expect_eq(list(s, &l), NFS4ERR_INVAL);
	l.bits = plain;
	l.dir = &file;
	cr_expect_eq(list(s, &l), NFS4ERR_NOTDIR);
	l.dir = &dir;
	f->uid = f->gid = 1003;
	cr_expect_eq(list(s, &l), NFS4ERR_ACCESS);
	f->uid = f->gid = 0;
	fix4_begin(f, s);
	fix4_op(f, OP_READDIR);
	for (int i = 0; i < 7; i++)
		xdr_put_u32(&f->out, 0);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOFILEHANDLE);
	fix4_begin(f, s);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_READDIR);
	xdr_put_u64(&f->out, 0);
	cr_expect_eq(fix4_send(f), NFS4ERR_BADXDR);
}

Test(nfs4_readdir, errors)
{
	NEED_FIXTURE();
	make_file("file", "x", 0644);
	cr_assert_eq(mkdir(fix_path(f, "secret"), 0700), 0);
	FOR_MINORS(check_errors);
}

/*
 * A readable directory without search permission: the attributes of its entries are not accessible.
 */
static void check_rdattr_error(struct fix4_session *s, uint32_t minor)
{
	struct listing l = root_listing(full);
	struct vfs_fh dir = handle("names");
	struct nfs4_bitmap only = { 0 };

	(void)minor;
	f->uid = f->gid = 1003;
	l.dir = &dir;
	cr_expect_eq(list(s, &l), NFS4_OK);
	cr_expect(nentries == 1 && eof);
	cr_expect_eq(entries[0].attrs.rdattr_error, NFS4ERR_ACCESS);
	nfs4_bitmap_add(&only, FATTR4_RDATTR_ERROR);
	nfs4_bitmap_add(&only, FATTR4_MOUNTED_ON_FILEID);
	cr_expect_arr_eq(&entries[0].attrs.have, &only, sizeof(only));
	/* Without rdattr_error in the request, READDIR fails as a whole. */
	l.bits = (const int[]){ FATTR4_SIZE, -1 };
	cr_expect_eq(list(s, &l), NFS4ERR_ACCESS);
	/* Attributes that the directory entry itself holds are accessible. */
	l.bits = plain;
	cr_expect_eq(list(s, &l), NFS4_OK);
	cr_expect_eq(entries[0].attrs.rdattr_error, NFS4_OK);
	f->uid = f->gid = 0;
}

Test(nfs4_readdir, rdattr_error)
{
	char path[128];

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "names"), 0755), 0);
	snprintf(path, sizeof(path), "%s/names/file", f->dir[0]);
	cr_assert_eq(mknod(path, S_IFREG | 0644, 0), 0);
	cr_assert_eq(chmod(fix_path(f, "names"), 0744), 0);
	FOR_MINORS(check_rdattr_error);
}

/* Lists the directories between the root and the exports. */
static void check_pseudo(struct fix4_session *s, uint32_t minor)
{
	struct listing l = { .dircount = 4096, .maxcount = 4096, .bits = full };
	struct vfs_fh tmp, pseudo_tmp;
	uint64_t fsid;

	(void)minor;
	cr_assert_eq(list(s, &l), NFS4_OK);
	cr_expect(eof);
	cr_assert_eq(nentries, 1);
	cr_expect_str_eq(entries[0].name, "tmp");
	cr_expect_eq(entries[0].attrs.type, NF4DIR);
	pseudo_tmp = entries[0].attrs.fh;
	fsid = entries[0].attrs.fsid[0];
	l.dir = &pseudo_tmp;
	cr_assert_eq(list(s, &l), NFS4_OK);
	cr_assert_eq(nentries, FIX_EXPORTS);
	for (unsigned i = 0; i < FIX_EXPORTS; i++) {
		const struct entry *e = find(f->dir[i] + 5);

		cr_assert(e, "%s", f->dir[i]);
		cr_expect_neq(e->attrs.fsid[0], fsid);
		cr_expect_eq(e->attrs.type, NF4DIR);
		cr_expect_neq(e->attrs.mounted_on, 0);
		if (i > 0)
			continue;
		tmp = e->attrs.fh;
		cr_expect(tmp.len == f->root.len && memcmp(tmp.data, f->root.data, tmp.len) == 0);
	}
	/* One entry at a time. */
	l.dircount = 1;
	cr_assert_eq(list(s, &l), NFS4_OK);
	cr_assert_eq(nentries, 1);
	cr_expect_not(eof);
	l.cookie = entries[0].cookie;
	cr_assert_eq(list(s, &l), NFS4_OK);
	cr_expect(nentries == 1 && eof);
}

Test(nfs4_readdir, the_pseudo_file_system)
{
	NEED_FIXTURE();
	FOR_MINORS(check_pseudo);
}

/* Names that are not UTF-8 are returned unchanged. */
Test(nfs4_readdir, names_of_any_bytes)
{
	struct listing l;

	NEED_FIXTURE();
	make_file("caf\xe9", "x", 0644);
	l = root_listing(plain);
	cr_expect_eq(list(NULL, &l), NFS4_OK);
	cr_expect(find("caf\xe9"));
}

/* Prints the cost of ls -l of 2,000 entries, with the sizes that the Linux client requests. */
Test(nfs4_readdir, two_thousand_entries)
{
	struct listing l;
	struct timespec t0, t1;
	unsigned n = 0, calls = 0;

	NEED_FIXTURE();
	make_many(2000);
	l = root_listing(full);
	l.maxcount = 262144;
	l.dircount = 0;
	clock_gettime(CLOCK_MONOTONIC, &t0);
	do {
		cr_assert_eq(list(NULL, &l), NFS4_OK);
		n += nentries;
		calls++;
		l.cookie = entries[nentries - 1].cookie;
	} while (!eof);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	cr_expect_eq(n, 2000);
	cr_log_info("2000 entries in %u calls: %.1f ms", calls,
		    (double)(t1.tv_sec - t0.tv_sec) * 1e3 +
			    (double)(t1.tv_nsec - t0.tv_nsec) / 1e6);
}
