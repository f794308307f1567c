/* SPDX-License-Identifier: BSD-2-Clause */
/* fattr4 in calls: bitmaps, values, invalid encodings, and UTF-8. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/error.h"
#include "nfs4/attr/attr_table.h"
#include "nfs4/attr/nfs4_attr.h"
#include "nfs4/attr/owner_name.h"
#include "nfs4/nfs4_private.h"

static uint8_t message[4096];
static struct xdr_out x;
static struct nfs4_server server;
static struct rpc_request *req;

static void start(void)
{
	static struct rpc_server rpc; /* where calls do not wait */

	req = calloc(1, sizeof(*req));
	req->server = &rpc;
	req->call.cred.flavor = RPC_AUTH_SYS;
	xdr_out_init(&x, message, sizeof(message));
}

static void stop(void)
{
	free(req);
}

TestSuite(nfs4_fattr, .init = start, .fini = stop);

static size_t len_at;

static void put_bits(const unsigned *bits, unsigned n)
{
	struct nfs4_bitmap b = { 0 };

	for (unsigned i = 0; i < n; i++)
		nfs4_bitmap_add(&b, bits[i]);
	nfs4_put_bitmap(&x, &b);
	len_at = xdr_out_pos(&x);
	xdr_put_u32(&x, 0);
}
#define BITS(...)                                                                                  \
	put_bits((const unsigned[]){ __VA_ARGS__ },                                                \
		 sizeof((const unsigned[]){ __VA_ARGS__ }) / sizeof(unsigned))

static uint32_t left_over;

/* Decodes the encoded attributes, cut in two segments. Returns the status of nfs4_sattr_check(), or
 * BADXDR. */
static int decode(uint32_t minor, enum nfs4_sattr_use use, struct nfs4_sattr *sa)
{
	static char mem[8192];
	struct rn_arena arena;
	struct xdr_in in;
	struct nfs4_compound c = { .minor = minor, .in = &in, .server = &server, .req = req };
	size_t half;
	struct rpc_seg seg[2];

	if (len_at > 0)
		xdr_patch_u32(&x, len_at, (uint32_t)(xdr_out_pos(&x) - len_at - 4));
	len_at = 0;
	xdr_put_u32(&x, 0x55555555); /* a word behind the attributes, which must stay unread */
	half = x.used / 2;
	seg[0] = (struct rpc_seg){ .base = message, .len = (uint32_t)half };
	seg[1] = (struct rpc_seg){ .base = message + half, .len = (uint32_t)(x.used - half) };
	rn_arena_init(&arena, mem, sizeof(mem));
	xdr_in_init(&in, seg, 2, &arena);
	nfs4_get_sattr(&c, sa);
	xdr_out_init(&x, message, sizeof(message));
	if (in.err)
		return NFS4ERR_BADXDR;
	left_over = xdr_get_u32(&in);
	cr_expect_eq(left_over, 0x55555555, "the cursor is behind the attributes");
	return nfs4_sattr_check(&c, sa, use);
}

static int decode_set(struct nfs4_sattr *sa)
{
	return decode(2, NFS4_SATTR_SETATTR, sa);
}

static void put_text(const char *s)
{
	xdr_put_opaque(&x, s, (uint32_t)strlen(s));
}

Test(nfs4_fattr, nothing_is_fine)
{
	struct nfs4_sattr sa;

	put_bits(NULL, 0);
	cr_expect_eq(decode_set(&sa), NFS4_OK);
	cr_expect(nfs4_bitmap_empty(&sa.given));
}

Test(nfs4_fattr, all_that_can_be_set)
{
	struct nfs4_sattr sa;

	BITS(FATTR4_SIZE, FATTR4_MODE, FATTR4_OWNER, FATTR4_OWNER_GROUP, FATTR4_TIME_ACCESS_SET,
	     FATTR4_TIME_MODIFY_SET);
	xdr_put_u64(&x, 77);
	xdr_put_u32(&x, 04755);
	put_text("1000");
	put_text("0");
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 1);
	xdr_put_u64(&x, (uint64_t)-5);
	xdr_put_u32(&x, 999999999);
	cr_assert_eq(decode_set(&sa), NFS4_OK);
	cr_expect(sa.set.set_size && sa.set.size == 77);
	cr_expect(sa.set.set_mode && sa.set.mode == 04755);
	cr_expect(sa.set.set_uid && sa.set.uid == 1000);
	cr_expect(sa.set.set_gid && sa.set.gid == 0);
	cr_expect_eq(sa.set.set_atime, VFS_TIME_SERVER);
	cr_expect_eq(sa.set.set_mtime, VFS_TIME_CLIENT);
	cr_expect_eq(sa.set.mtime.tv_sec, -5);
	cr_expect_eq(sa.set.mtime.tv_nsec, 999999999);
}

Test(nfs4_fattr, attributes_that_there_are_not)
{
	static const struct {
		unsigned bit;
		uint32_t minor;
		int status;
	} rows[] = {
		{ FATTR4_ARCHIVE, 0, NFS4ERR_ATTRNOTSUPP },
		{ FATTR4_HIDDEN, 1, NFS4ERR_ATTRNOTSUPP },
		{ FATTR4_TIME_BACKUP, 2, NFS4ERR_ATTRNOTSUPP },
		{ FATTR4_SEC_LABEL, 1, NFS4ERR_ATTRNOTSUPP },
		{ 95, 2, NFS4ERR_ATTRNOTSUPP },
		{ FATTR4_MODE_SET_MASKED, 0, NFS4ERR_ATTRNOTSUPP },
		{ FATTR4_CLONE_BLKSIZE, 1, NFS4ERR_ATTRNOTSUPP },
		{ FATTR4_CLONE_BLKSIZE, 2, NFS4ERR_INVAL },
		{ FATTR4_CHANGE_ATTR_TYPE, 1, NFS4ERR_ATTRNOTSUPP },
		{ FATTR4_CHANGE_ATTR_TYPE, 2, NFS4ERR_INVAL },
		{ FATTR4_TYPE, 0, NFS4ERR_INVAL },
		{ FATTR4_CHANGE, 1, NFS4ERR_INVAL },
		{ FATTR4_FILEID, 2, NFS4ERR_INVAL },
		{ FATTR4_TIME_ACCESS, 0, NFS4ERR_INVAL },
		{ FATTR4_SUPPORTED_ATTRS, 0, NFS4ERR_INVAL },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nfs4_sattr sa;

		/* Any values: without knowing the attribute, the decoder cannot tell where its
		 * value ends. */
		BITS(FATTR4_SIZE, rows[i].bit);
		xdr_put_u64(&x, 1);
		xdr_put_u32(&x, 7);
		cr_expect_eq(decode(rows[i].minor, NFS4_SATTR_SETATTR, &sa), rows[i].status,
			     "attribute %u of 4.%u", rows[i].bit, rows[i].minor);
	}
}

/* The time of birth is decoded, so that what follows it is set, and then dropped. */
Test(nfs4_fattr, time_create_is_passed_over)
{
	struct nfs4_bitmap want = { 0 };
	struct nfs4_sattr sa;

	nfs4_bitmap_add(&want, FATTR4_SIZE);
	nfs4_bitmap_add(&want, FATTR4_TIME_MODIFY_SET);
	for (uint32_t minor = 0; minor <= 2; minor++) {
		BITS(FATTR4_SIZE, FATTR4_TIME_CREATE, FATTR4_TIME_MODIFY_SET);
		xdr_put_u64(&x, 7);
		xdr_put_u64(&x, 1);
		xdr_put_u32(&x, 2);
		xdr_put_u32(&x, 0);
		cr_expect_eq(decode(minor, NFS4_SATTR_SETATTR, &sa), NFS4_OK);
		cr_expect(sa.set.size == 7 && sa.set.set_mtime == VFS_TIME_SERVER);
		cr_expect_arr_eq(&sa.given, &want, sizeof(want));
		BITS(FATTR4_TIME_CREATE);
		xdr_put_u64(&x, 1);
		xdr_put_u32(&x, 1000000000);
		cr_expect_eq(decode(minor, NFS4_SATTR_SETATTR, &sa), NFS4ERR_INVAL);
		BITS(FATTR4_TIME_CREATE);
		xdr_put_u64(&x, 1);
		cr_expect_eq(decode(minor, NFS4_SATTR_SETATTR, &sa), NFS4ERR_BADXDR);
	}
}

/* Labels are decoded; that this place has none is found out later. */
Test(nfs4_fattr, labels)
{
	static const struct {
		uint32_t format, policy, len;
		int status;
	} rows[] = {
		{ 0, 0, 5, NFS4ERR_ATTRNOTSUPP }, { 0, 0, 2000, NFS4ERR_ATTRNOTSUPP },
		{ 1, 0, 5, NFS4ERR_WRONG_LFS },	  { 0, 7, 5, NFS4ERR_WRONG_LFS },
		{ 0, 0, 0, NFS4ERR_BADLABEL },
	};
	static const uint8_t bytes[2000] = { 1, 2, 3 };

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nfs4_sattr sa;

		BITS(FATTR4_SEC_LABEL);
		xdr_put_u32(&x, rows[i].format);
		xdr_put_u32(&x, rows[i].policy);
		xdr_put_opaque(&x, bytes, rows[i].len);
		cr_expect_eq(decode_set(&sa), rows[i].status, "row %u", i);
		cr_expect_eq(sa.set.label.len, rows[i].len);
	}
	BITS(FATTR4_SEC_LABEL);
	xdr_put_u64(&x, 0);
	xdr_put_u32(&x, 8);
	xdr_put_u32(&x, 0);
	cr_expect_eq(decode_set(&(struct nfs4_sattr){ 0 }), NFS4ERR_BADXDR);
}

Test(nfs4_fattr, unsupported_comes_before_read_only)
{
	struct nfs4_sattr sa;

	BITS(FATTR4_TYPE, FATTR4_ARCHIVE);
	cr_expect_eq(decode_set(&sa), NFS4ERR_ATTRNOTSUPP);
}

Test(nfs4_fattr, words_that_no_attribute_has)
{
	struct nfs4_sattr sa;

	xdr_put_u32(&x, 5);
	for (int i = 0; i < 4; i++)
		xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, 0);
	cr_expect_eq(decode_set(&sa), NFS4ERR_ATTRNOTSUPP);
	/* Additional bitmap words without a bit set are accepted. */
	xdr_put_u32(&x, 5);
	for (int i = 0; i < 5; i++)
		xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 0);
	cr_expect_eq(decode_set(&sa), NFS4_OK);
}

Test(nfs4_fattr, lengths_that_are_wrong)
{
	static const uint32_t lens[] = { 0, 4, 7, 12, 16, 4096, UINT32_MAX };

	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct nfs4_sattr sa;

		BITS(FATTR4_SIZE);
		xdr_patch_u32(&x, len_at, lens[i]);
		len_at = 0;
		xdr_put_u64(&x, 1);
		cr_expect_eq(decode_set(&sa), NFS4ERR_BADXDR, "a length of %u", lens[i]);
	}
}

Test(nfs4_fattr, a_bitmap_that_is_cut_short)
{
	struct nfs4_sattr sa;

	xdr_put_u32(&x, UINT32_MAX);
	xdr_put_u32(&x, 1);
	cr_expect_eq(decode_set(&sa), NFS4ERR_BADXDR);
}

Test(nfs4_fattr, values_that_no_file_has)
{
	struct nfs4_sattr sa;

	BITS(FATTR4_MODE);
	xdr_put_u32(&x, 010000);
	cr_expect_eq(decode_set(&sa), NFS4ERR_INVAL);
	BITS(FATTR4_TIME_ACCESS_SET);
	xdr_put_u32(&x, 1);
	xdr_put_u64(&x, 1);
	xdr_put_u32(&x, 1000000000);
	cr_expect_eq(decode_set(&sa), NFS4ERR_INVAL);
	BITS(FATTR4_TIME_ACCESS_SET);
	xdr_put_u32(&x, 2);
	cr_expect_eq(decode_set(&sa), NFS4ERR_BADXDR);
}

static int try_owner(const char *name, uint32_t len, struct nfs4_sattr *sa)
{
	BITS(FATTR4_OWNER);
	xdr_put_opaque(&x, name, len);
	return decode_set(sa);
}

Test(nfs4_fattr, owners_by_number)
{
	static const struct {
		const char *name;
		int status;
		uint32_t uid;
	} rows[] = {
		{ "0", NFS4_OK, 0 },
		{ "4294967294", NFS4_OK, 4294967294u },
		{ "4294967295", NFS4ERR_BADOWNER, 0 },
		{ "4294967296", NFS4ERR_BADOWNER, 0 },
		{ "18446744073709551616", NFS4ERR_BADOWNER, 0 },
		{ "007", NFS4ERR_BADOWNER, 0 },
		{ "-1", NFS4ERR_BADOWNER, 0 },
		{ "1 ", NFS4ERR_BADOWNER, 0 },
		{ "", NFS4ERR_INVAL, 0 },
		{ "someone@example.net", NFS4ERR_BADOWNER, 0 },
		{ "\xff\xfe", NFS4ERR_INVAL, 0 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nfs4_sattr sa;

		cr_expect_eq(try_owner(rows[i].name, (uint32_t)strlen(rows[i].name), &sa),
			     rows[i].status, "\"%s\"", rows[i].name);
		if (rows[i].status == NFS4_OK)
			cr_expect_eq(sa.set.uid, rows[i].uid);
	}
}

Test(nfs4_fattr, owners_of_any_length)
{
	struct nfs4_sattr sa;
	char name[2000];

	memset(name, 'a', sizeof(name));
	cr_expect_eq(try_owner(name, NFS4_OWNER_MAX, &sa), NFS4ERR_BADOWNER);
	cr_expect_eq(try_owner(name, sizeof(name), &sa), NFS4ERR_BADOWNER);
}

static int map_name(void *ctx, const struct sockaddr *peer, const char *name, uint32_t len,
		    uint32_t *id)
{
	(void)ctx;
	(void)peer;
	*id = 42;
	return len == 8 && memcmp(name, "who@here", 8) == 0 ? 0 : -1;
}

Test(nfs4_fattr, owners_by_name)
{
	struct nfs4_sattr sa;

	server.cfg.idmap = (struct nfs4_idmap){ .name_to_uid = map_name, .name_to_gid = map_name };
	cr_expect_eq(try_owner("who@here", 8, &sa), NFS4_OK);
	cr_expect_eq(sa.set.uid, 42);
	cr_expect_eq(try_owner("who@hero", 8, &sa), NFS4ERR_BADOWNER);
	cr_expect_eq(try_owner("12", 2, &sa), NFS4_OK);
	cr_expect_eq(sa.set.uid, 12);
}

static int map_id(void *ctx, const struct sockaddr *peer, uint32_t id, char *name, size_t size)
{
	(void)ctx;
	(void)peer;
	if (id != 42)
		return -1;
	snprintf(name, size, "who@here");
	return 0;
}

static void expect_names(bool always, enum rpc_auth_flavor flavor, uint32_t id, const char *name)
{
	struct nfs4_compound c = { .server = &server, .req = req };
	struct nfs4_owner_name user, group;

	server.cfg.idmap.names_always = always;
	req->call.cred.flavor = flavor;
	nfs4_user_name(&c, id, &user);
	nfs4_group_name(&c, id, &group);
	cr_expect_eq(user.len, strlen(name));
	cr_expect_arr_eq(user.s, name, strlen(name));
	cr_expect_eq(group.len, strlen(name));
	cr_expect_arr_eq(group.s, name, strlen(name));
}

Test(nfs4_fattr, who_is_told_names)
{
	expect_names(false, RPC_AUTH_NONE, 42, "42");
	server.cfg.idmap = (struct nfs4_idmap){ .uid_to_name = map_id, .gid_to_name = map_id };
	expect_names(false, RPC_AUTH_SYS, 42, "42");
	expect_names(false, RPC_AUTH_NONE, 42, "who@here");
	expect_names(true, RPC_AUTH_SYS, 42, "who@here");
	expect_names(true, RPC_AUTH_SYS, 0, "0");
	expect_names(true, RPC_AUTH_SYS, 4294967294u, "4294967294");
}

static int busy(void *ctx, const struct sockaddr *peer, const char *name, uint32_t len,
		uint32_t *id)
{
	(void)ctx;
	(void)peer;
	(void)name;
	(void)len;
	(void)id;
	return -RN_EUNNAMED;
}

Test(nfs4_fattr, a_name_service_that_is_busy)
{
	struct nfs4_sattr sa;

	server.cfg.idmap = (struct nfs4_idmap){ .name_to_uid = busy };
	cr_expect_eq(try_owner("who@here", 8, &sa), NFS4ERR_DELAY);
	cr_expect_eq(try_owner("7", 1, &sa), NFS4_OK);
}

Test(nfs4_fattr, mode_set_masked)
{
	struct nfs4_sattr sa;

	BITS(FATTR4_MODE_SET_MASKED);
	xdr_put_u32(&x, 04000);
	xdr_put_u32(&x, 06000);
	cr_expect_eq(decode_set(&sa), NFS4_OK);
	cr_expect_eq(sa.set.mode, 04000);
	cr_expect_eq(sa.mode_mask, 06000);
	BITS(FATTR4_MODE_SET_MASKED);
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 010000);
	cr_expect_eq(decode_set(&sa), NFS4ERR_INVAL);
	BITS(FATTR4_MODE, FATTR4_MODE_SET_MASKED);
	xdr_put_u32(&x, 0600);
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 0);
	cr_expect_eq(decode_set(&sa), NFS4ERR_INVAL, "both");
	for (int use = NFS4_SATTR_CREATE; use <= NFS4_SATTR_EXCLUSIVE; use++) {
		BITS(FATTR4_MODE_SET_MASKED);
		xdr_put_u32(&x, 0);
		xdr_put_u32(&x, 0);
		cr_expect_eq(decode(1, (enum nfs4_sattr_use)use, &sa), NFS4ERR_INVAL);
	}
}

Test(nfs4_fattr, mode_umask)
{
	struct nfs4_sattr sa;

	for (int use = NFS4_SATTR_SETATTR; use <= NFS4_SATTR_EXCLUSIVE; use++) {
		BITS(FATTR4_MODE_UMASK);
		xdr_put_u32(&x, 02777);
		xdr_put_u32(&x, 027);
		cr_expect_eq(decode(2, (enum nfs4_sattr_use)use, &sa),
			     use == NFS4_SATTR_SETATTR ? NFS4ERR_INVAL : NFS4_OK);
		cr_expect(sa.set.set_mode && sa.set.mode == 02777 && sa.set.umask == 027);
	}
	BITS(FATTR4_MODE_UMASK);
	xdr_put_u32(&x, 0777);
	xdr_put_u32(&x, 01000);
	cr_expect_eq(decode(2, NFS4_SATTR_OPEN, &sa), NFS4ERR_INVAL);
	BITS(FATTR4_MODE, FATTR4_MODE_UMASK);
	xdr_put_u32(&x, 0777);
	xdr_put_u32(&x, 0777);
	xdr_put_u32(&x, 0);
	cr_expect_eq(decode(2, NFS4_SATTR_OPEN, &sa), NFS4ERR_INVAL, "both");
	BITS(FATTR4_MODE_UMASK);
	xdr_put_u32(&x, 0777);
	xdr_put_u32(&x, 0);
	cr_expect_eq(decode(1, NFS4_SATTR_OPEN, &sa), NFS4ERR_ATTRNOTSUPP);
}

Test(nfs4_fattr, what_each_use_takes)
{
	static const struct {
		unsigned bit;
		int create, open, exclusive;
	} rows[] = {
		{ FATTR4_SIZE, NFS4ERR_INVAL, NFS4_OK, NFS4_OK },
		{ FATTR4_TIME_ACCESS_SET, NFS4_OK, NFS4_OK, NFS4ERR_INVAL },
		{ FATTR4_TIME_MODIFY_SET, NFS4_OK, NFS4_OK, NFS4ERR_INVAL },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int want[] = { NFS4_OK, rows[i].create, rows[i].open, rows[i].exclusive };

		for (int use = NFS4_SATTR_SETATTR; use <= NFS4_SATTR_EXCLUSIVE; use++) {
			struct nfs4_sattr sa;

			BITS(rows[i].bit);
			if (rows[i].bit == FATTR4_SIZE)
				xdr_put_u64(&x, 0);
			else
				xdr_put_u32(&x, 0);
			cr_expect_eq(decode(2, (enum nfs4_sattr_use)use, &sa), want[use],
				     "attribute %u, use %d", rows[i].bit, use);
		}
	}
}

Test(nfs4_fattr, what_is_supported_is_what_can_be_asked_for_or_set)
{
	for (uint32_t level = 0; level <= NFS4_LEVEL_MAX; level++) {
		struct nfs4_bitmap all, excl;

		nfs4_attr_supported(level, &all);
		nfs4_attr_exclusive(level, &excl);
		for (unsigned i = 0; i < NFS4_ATTR_WORDS * 32; i++) {
			const struct nfs4_attr_row *row = nfs4_attr_find(i, level);

			cr_expect_eq(nfs4_bitmap_has(&all, i), row != NULL);
			if (row)
				cr_expect(row->get || row->set, "attribute %u", i);
			if (nfs4_bitmap_has(&excl, i))
				cr_expect(row && row->set, "attribute %u", i);
		}
		/* the REQUIRED attributes of RFC 8881 table 4 */
		cr_expect_eq(all.word[0] & 0x80fff, 0x80fff, "required");
		cr_expect_eq(nfs4_bitmap_has(&all, FATTR4_SUPPATTR_EXCLCREAT), level > 0);
		cr_expect_not(nfs4_bitmap_has(&excl, FATTR4_TIME_ACCESS_SET));
		cr_expect(nfs4_bitmap_has(&excl, FATTR4_MODE));
	}
}

Test(nfs4_fattr, bitmaps_come_back_as_short_as_they_can)
{
	static const struct {
		uint32_t word[3], n;
	} rows[] = {
		{ { 0, 0, 0 }, 0 }, { { 1, 0, 0 }, 1 }, { { 0, 1, 0 }, 2 }, { { 0, 0, 8 }, 3 }
	};

	for (unsigned i = 0; i < 4; i++) {
		struct nfs4_bitmap b, back;
		struct xdr_in in;
		struct rpc_seg seg = { .base = message };

		memcpy(b.word, rows[i].word, sizeof(b.word));
		xdr_out_init(&x, message, sizeof(message));
		nfs4_put_bitmap(&x, &b);
		cr_expect_eq(x.used, 4 + 4 * rows[i].n);
		cr_expect_eq(nfs4_bitmap_size(&b), x.used);
		seg.len = (uint32_t)x.used;
		xdr_in_init(&in, &seg, 1, NULL);
		cr_expect(nfs4_get_bitmap(&in, &back));
		cr_expect_arr_eq(&b, &back, sizeof(b));
	}
}

Test(nfs4_fattr, utf8)
{
	static const struct {
		const char *s;
		bool valid;
	} rows[] = {
		{ "", true },
		{ "plain", true },
		{ "\xc3\xa4", true },
		{ "\xe2\x82\xac", true },
		{ "\xf0\x9f\x90\xa7", true },
		{ "\xf4\x8f\xbf\xbf", true },
		{ "\xf4\x90\x80\x80", false }, /* beyond U+10FFFF */
		{ "\xed\xa0\x80", false },     /* a surrogate */
		{ "\xc0\xaf", false },	       /* '/' in two bytes */
		{ "\xe0\x80\xaf", false },
		{ "\xf0\x80\x80\xaf", false },
		{ "\x80", false },
		{ "a\xc3", false },
		{ "\xe2\x82", false },
		{ "\xe2\x28\xa1", false },
		{ "\xff", false },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(nfs4_utf8_valid(rows[i].s, (uint32_t)strlen(rows[i].s)), rows[i].valid,
			     "row %u", i);
}
