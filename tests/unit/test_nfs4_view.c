/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks in pages over opens, locks and delegations, while state comes and goes. */
#include <stdio.h>
#include <string.h>

#include "nfs4/nfs4_view.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_view);

#define CLIENTS 3u
#define FILES 5u /* files that each client has open */
#define MOST 64u
#define WRITE_LT 2

static uint32_t minor;
static struct op_client client[CLIENTS];
static struct op_owner owner[CLIENTS];
static struct op_file file[CLIENTS][FILES];

static uint32_t open_file(unsigned c, unsigned i, struct op_file *out)
{
	char name[16];
	const struct op_how how = {
		.fh = &f->root, .name = name, .create = OP_UNCHECKED, .deny = OPEN4_SHARE_DENY_WRITE
	};

	snprintf(name, sizeof(name), "f%u-%u", c, i);
	return op_open(f, &owner[c], &how, out);
}

static void begin(void)
{
	static const char *const names[] = { "one", "two", "three" };

	for (unsigned c = 0; c < CLIENTS; c++) {
		cr_assert_eq(op_client_new(f, &client[c], minor, names[c]), NFS4_OK);
		owner[c] = (struct op_owner){ &client[c], "owner", 1 };
		for (unsigned i = 0; i < FILES; i++)
			cr_assert_eq(open_file(c, i, &file[c][i]), NFS4_OK);
	}
}

/* States that a walk has shown, and how many more this page may. */
struct seen {
	struct nfs4_view_state st[MOST];
	unsigned n, page;
};

static bool show(void *arg, const struct nfs4_view_state *st)
{
	struct seen *s = arg;

	cr_assert_lt(s->n, MOST);
	s->st[s->n++] = *st;
	return --s->page > 0;
}

/* Walks a page of that many states. True: the walk has ended. */
static bool walk(struct seen *s, struct nfs4_view_query *q, struct nfs4_view_cursor *at,
		 unsigned page)
{
	q->show = show;
	q->arg = s;
	s->page = page;
	return nfs4_view(f->server4, q, at, 1000);
}

static unsigned times(const struct seen *s, const struct op_file *of)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++)
		n += s->st[i].fh.len == of->fh.len &&
		     memcmp(s->st[i].fh.data, of->fh.data, of->fh.len) == 0;
	return n;
}

OP_MINORS_TEST(nfs4_view, all_at_once)
{
	struct nfs4_view_query q = { .kind = NFS4_VIEW_OPENS };
	struct nfs4_view_cursor at = { 0 };
	struct seen s = { .n = 0 };

	begin();
	cr_expect(walk(&s, &q, &at, MOST));
	cr_assert_eq(s.n, CLIENTS * FILES);
	for (unsigned i = 0; i < s.n; i++) {
		cr_expect_eq(s.st[i].sessions, minor > 0);
		cr_expect_eq(s.st[i].export_id, 1);
		cr_expect_eq(s.st[i].owner_len, 5);
		cr_expect(s.st[i].share_known);
		cr_expect_eq(s.st[i].access, VFS_SHARE_BOTH);
		cr_expect_eq(s.st[i].deny, VFS_SHARE_WRITE);
		cr_expect_not(s.st[i].revoked);
		cr_expect_eq((uint32_t)(s.st[i].id >> 32), (uint32_t)s.st[i].clientid);
		for (unsigned j = 0; j < i; j++)
			cr_expect_neq(s.st[i].id, s.st[j].id);
	}
	for (unsigned c = 0; c < CLIENTS; c++)
		for (unsigned i = 0; i < FILES; i++)
			cr_expect_eq(times(&s, &file[c][i]), 1);
	cr_expect(walk(&s, &q, &at, MOST), "an ended walk stays there");
	cr_expect_eq(s.n, CLIENTS * FILES);
}

/* Between the pages of three states each, every client closes a file and opens another. */
OP_MINORS_TEST(nfs4_view, pages_while_state_changes)
{
	struct nfs4_view_query q = { .kind = NFS4_VIEW_OPENS };
	struct nfs4_view_cursor at = { 0 };
	struct op_file extra[CLIENTS][MOST];
	struct seen s = { .n = 0 };
	unsigned pages = 0;

	begin();
	while (!walk(&s, &q, &at, 3)) {
		cr_assert_lt(pages, MOST - 10);
		for (unsigned c = 0; c < CLIENTS; c++) {
			/* File 0 goes at once, and then each further one that has come. */
			cr_expect_eq(
				op_close(f, &owner[c], pages ? &extra[c][pages - 1] : &file[c][0]),
				NFS4_OK);
			cr_assert_eq(open_file(c, 10 + pages, &extra[c][pages]), NFS4_OK);
		}
		pages++;
	}
	for (unsigned c = 0; c < CLIENTS; c++) {
		for (unsigned i = 1; i < FILES; i++)
			cr_expect_eq(times(&s, &file[c][i]), 1, "held from begin to end");
		cr_expect_leq(times(&s, &file[c][0]), 1);
		for (unsigned i = 0; i < pages; i++)
			cr_expect_leq(times(&s, &extra[c][i]), 1);
	}
}

OP_MINORS_TEST(nfs4_view, one_client)
{
	struct nfs4_view_query q = { .kind = NFS4_VIEW_OPENS };
	struct nfs4_view_cursor at = { 0 };
	struct seen s = { .n = 0 };

	begin();
	q.clientid = client[1].clientid;
	cr_expect_not(walk(&s, &q, &at, 2));
	cr_expect(walk(&s, &q, &at, MOST));
	cr_assert_eq(s.n, FILES);
	for (unsigned i = 0; i < FILES; i++) {
		cr_expect_eq(times(&s, &file[1][i]), 1);
		cr_expect_eq(s.st[i].clientid, client[1].clientid);
	}
	/* The number alone does not name a client. */
	q.clientid ^= UINT64_C(1) << 40;
	at = (struct nfs4_view_cursor){ 0 };
	cr_expect(walk(&s, &q, &at, MOST));
	cr_expect_eq(s.n, FILES);
}

OP_MINORS_TEST(nfs4_view, any_place)
{
	static const uint32_t values[] = { 0, 1, 77, 8191, UINT32_MAX - 1, UINT32_MAX };
	struct nfs4_view_query q = { .kind = NFS4_VIEW_OPENS };

	begin();
	for (unsigned i = 0; i < 36; i++) {
		struct nfs4_view_cursor at = { values[i / 6], values[i % 6] };
		struct seen s = { .n = 0 };

		cr_expect(walk(&s, &q, &at, MOST));
		cr_expect_leq(s.n, CLIENTS * FILES);
	}
}

struct ranges_seen {
	unsigned n;
	uint64_t offset[2], length[2];
};

static bool show_ranges(void *arg, const struct nfs4_view_state *st)
{
	struct ranges_seen *r = arg;

	cr_expect_eq(st->owner_len, 6);
	cr_expect_eq(memcmp(st->owner, "locker", 6), 0);
	cr_assert(st->ranges_known);
	cr_assert_eq(st->ranges->n, 2);
	r->n++;
	for (unsigned i = 0; i < 2; i++) {
		r->offset[i] = st->ranges->range[i].offset;
		r->length[i] = st->ranges->range[i].length;
	}
	return true;
}

OP_MINORS_TEST(nfs4_view, locks)
{
	struct op_owner locker = { &client[0], "locker", 1 };
	const struct op_range first = { .type = WRITE_LT, .offset = 5, .length = 10 };
	const struct op_range rest = { .type = 1, .offset = 100, .length = UINT64_MAX };
	struct ranges_seen seen = { 0 };
	const struct nfs4_view_query q = { .kind = NFS4_VIEW_LOCKS,
					   .show = show_ranges,
					   .arg = &seen };
	struct nfs4_view_cursor at = { 0 };
	struct nfs4_stateid lock;

	begin();
	cr_assert_eq(op_lock_first(f, &owner[0], &locker, &file[0][0], &first, &lock, NULL),
		     NFS4_OK);
	cr_assert_eq(op_lock(f, &locker, &file[0][0].fh, &rest, &lock, NULL), NFS4_OK);
	cr_expect(nfs4_view(f->server4, &q, &at, 1000));
	cr_expect_eq(seen.n, 1);
	cr_expect_eq(seen.offset[0], 5);
	cr_expect_eq(seen.length[0], 10);
	cr_expect_eq(seen.offset[1], 100);
	cr_expect_eq(seen.length[1], UINT64_MAX);
	cr_assert_eq(op_unlock(f, &locker, &file[0][0].fh, &first, &lock), NFS4_OK);
	cr_assert_eq(op_unlock(f, &locker, &file[0][0].fh, &rest, &lock), NFS4_OK);
	at = (struct nfs4_view_cursor){ 0 };
	cr_expect(nfs4_view(f->server4, &q, &at, 1000));
	cr_expect_eq(seen.n, 1, "a lock-owner without locks is not shown");
}
