/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of gss/ that need no Kerberos: the credential, the sequence window, the table of contexts. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

#include "gss/contexts.h"
#include "lib/util.h"
#include "gss/gss_private.h"
#include "lib/clock.h"
#include "rpc/xdr_out.h"

static uint64_t clock_ns;

static uint64_t test_clock(void)
{
	return clock_ns;
}

static void host_number(uint32_t n, struct rn_host *host)
{
	memset(host, 0, sizeof(*host));
	memcpy(host->bytes + 12, &n, sizeof(n));
}

static struct gss_contexts *table(unsigned max)
{
	struct gss_contexts *t = gss_contexts_new(max, 2);

	cr_assert_not_null(t);
	clock_ns = RN_NS_PER_SECOND;
	gss_contexts_set_clock(t, test_clock);
	return t;
}

/* A context of that host; the table has the only reference. */
static void add(struct gss_contexts *t, uint32_t host, bool established,
		uint8_t handle[GSS_HANDLE_SIZE])
{
	struct rn_host from;
	struct gss_context *c = gss_context_new(NULL);

	cr_assert_not_null(c);
	c->established = established;
	c->ends_ns = clock_ns + 3600 * RN_NS_PER_SECOND;
	host_number(host, &from);
	cr_assert(gss_contexts_add(t, c, &from));
	if (handle)
		memcpy(handle, c->handle, GSS_HANDLE_SIZE);
	gss_context_put(c);
}

static bool has(struct gss_contexts *t, const uint8_t handle[GSS_HANDLE_SIZE])
{
	struct gss_context *c = gss_contexts_find(t, handle, GSS_HANDLE_SIZE);

	gss_context_put(c);
	return c;
}

static struct gss_contexts_stats stats(struct gss_contexts *t)
{
	struct gss_contexts_stats s;

	gss_contexts_stats(t, &s);
	return s;
}

Test(gss, a_number_is_taken_once)
{
	struct gss_window w = { 0 };

	cr_expect(gss_window_take(&w, 0));
	cr_expect_not(gss_window_take(&w, 0));
	cr_expect(gss_window_take(&w, 5));
	cr_expect(gss_window_take(&w, 3));
	cr_expect_not(gss_window_take(&w, 3));
	cr_expect_not(gss_window_take(&w, 5));
	cr_expect(gss_window_take(&w, 4));
}

/* A window and a set of all numbers that have come agree on random calls, of which some come very late. */
Test(gss, late_calls_are_fresh_once)
{
	static struct gss_window w;
	static bool came[200000];
	uint32_t late[GSS_LATE / 2], nlate = 0, next = 1;

	srandom(3);
	while (next < rn_array_size(came) - 8) {
		const uint32_t i = nlate > 0 ? (uint32_t)random() % nlate : 0;

		switch (random() % 64) {
		case 0: /* held up */
			if (nlate < rn_array_size(late))
				late[nlate++] = next++;
			break;
		case 1: /* comes at last, and once more */
			if (nlate == 0)
				break;
			cr_assert(gss_window_take(&w, late[i]), "%u after %u", late[i], w.highest);
			came[late[i]] = true;
			cr_assert_not(gss_window_take(&w, late[i]));
			late[i] = late[--nlate];
			break;
		case 2: { /* a replay of any call so far */
			const uint32_t seq = 1 + (uint32_t)random() % (next - 1 ? next - 1 : 1);

			if (came[seq])
				cr_assert_not(gss_window_take(&w, seq));
			break;
		}
		default:
			came[next] = true;
			cr_assert(gss_window_take(&w, next++));
		}
	}
}

Test(gss, the_window_moves)
{
	struct gss_window w = { 0 };

	cr_expect(gss_window_take(&w, 1));
	cr_expect(gss_window_take(&w, GSS_WINDOW));
	cr_expect_not(gss_window_take(&w, 1));
	cr_expect(gss_window_take(&w, 2));
	cr_expect(gss_window_take(&w, GSS_WINDOW + 1));
	cr_expect_not(gss_window_take(&w, 1), "below the window");
	cr_expect_not(gss_window_take(&w, 2));
	cr_expect(gss_window_take(&w, 3));
	cr_expect(gss_window_take(&w, GSS_SEQ_MAX - 1));
	cr_expect_not(gss_window_take(&w, GSS_WINDOW + 2));
	cr_expect(gss_window_take(&w, GSS_SEQ_MAX - GSS_WINDOW));
	cr_expect_not(gss_window_take(&w, GSS_SEQ_MAX - GSS_WINDOW - 1));
}

/* Every number of a long run, some of them late, is taken exactly once. */
Test(gss, numbers_out_of_order)
{
	struct gss_window w = { 0 };

	for (uint32_t i = 1; i < 20000; i++) {
		const uint32_t late = i > 700 ? i - 700 : 0;

		if (i % 7)
			cr_assert(gss_window_take(&w, i), "%u", i);
		if (late && late % 7 == 0) {
			cr_assert(gss_window_take(&w, late), "late %u", late);
			cr_assert_not(gss_window_take(&w, late), "again %u", late);
		}
	}
}

Test(gss, credentials)
{
	uint8_t body[64];
	struct gss_cred c;
	struct xdr_out x;

	xdr_out_init(&x, body, sizeof(body));
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, GSS_DATA);
	xdr_put_u32(&x, 77);
	xdr_put_u32(&x, GSS_PRIVACY);
	xdr_put_opaque(&x, "handle", 6);
	cr_assert(gss_get_cred(body, (uint32_t)x.used, &c));
	cr_expect_eq(c.seq, 77);
	cr_expect_eq(c.service, GSS_PRIVACY);
	cr_expect_eq(c.handle_len, 6);
	cr_expect_arr_eq(c.handle, "handle", 6);
	for (uint32_t n = 0; n < x.used; n++)
		cr_expect_not(gss_get_cred(body, n, &c), "%u bytes", n);
	cr_expect_not(gss_get_cred(body, (uint32_t)x.used + 4, &c));
	for (unsigned at = 0; at < 16; at += 4) {
		uint8_t bent[64];

		memcpy(bent, body, sizeof(bent));
		bent[at + 3] = 9;
		cr_expect_eq(gss_get_cred(bent, (uint32_t)x.used, &c), at == 8, "word %u", at / 4);
	}
}

Test(gss, contexts_are_found_by_their_handle)
{
	struct gss_contexts *t = table(10);
	uint8_t a[GSS_HANDLE_SIZE], b[GSS_HANDLE_SIZE];
	struct gss_context *c;

	add(t, 1, true, a);
	add(t, 1, true, b);
	cr_expect(memcmp(a, b, sizeof(a)) != 0);
	c = gss_contexts_find(t, a, sizeof(a));
	cr_assert_not_null(c);
	cr_expect_null(gss_contexts_find(t, a, sizeof(a) - 1));
	gss_contexts_remove(t, c);
	gss_contexts_remove(t, c);
	cr_expect_not(has(t, a));
	cr_expect(has(t, b));
	gss_context_put(c);
	cr_expect_eq(stats(t).established, 1);
	gss_contexts_free(t);
}

/* A host that has many loses the one that it has not used for longest; another keeps its only one. */
Test(gss, the_host_with_most_gives_way)
{
	uint8_t quiet[GSS_HANDLE_SIZE], handle[9][GSS_HANDLE_SIZE];
	struct gss_contexts *t = table(9);

	add(t, 2, true, quiet);
	for (unsigned i = 0; i < 8; i++)
		add(t, 1, true, handle[i]);
	cr_expect(has(t, handle[0]));
	add(t, 1, true, handle[8]);
	cr_expect_eq(stats(t).established, 9);
	cr_expect_eq(stats(t).evicted, 1);
	cr_expect(has(t, quiet), "the quiet host lost its context");
	cr_expect(has(t, handle[0]), "the used one went");
	cr_expect_not(has(t, handle[1]));
	gss_contexts_free(t);
}

/* The host with most gives way though all its contexts are used more than the others'. */
Test(gss, a_busy_host_pushes_out_its_own)
{
	uint8_t quiet[200][GSS_HANDLE_SIZE], busy[200][GSS_HANDLE_SIZE];
	struct gss_contexts *t = table(400);
	unsigned left = 0;

	for (uint32_t i = 0; i < 200; i++)
		add(t, 100 + i / 2, true, quiet[i]);
	for (unsigned i = 0; i < 200; i++)
		add(t, 1, true, busy[i]);
	for (unsigned i = 0; i < 150; i++)
		add(t, i % 2 ? 1 : 2, true, NULL);
	cr_expect_eq(stats(t).established, 400);
	for (unsigned i = 0; i < 200; i++)
		cr_expect(has(t, quiet[i]), "%u", i);
	for (unsigned i = 0; i < 200; i++)
		left += has(t, busy[i]);
	cr_expect_eq(left, 50);
	cr_expect_not(has(t, busy[0]), "the least used ones go first");
	gss_contexts_free(t);
}

/* Half-made contexts, which cost their makers nothing, evict no established one. */
Test(gss, half_made_ones_are_few)
{
	uint8_t mine[GSS_HANDLE_SIZE], first[GSS_HANDLE_SIZE];
	struct gss_contexts *t = table(4);

	add(t, 1, true, mine);
	add(t, 2, false, first);
	for (unsigned i = 0; i < 10; i++)
		add(t, 2, false, NULL);
	cr_expect_eq(stats(t).half, GSS_HALF_HOST);
	cr_expect_not(has(t, first));
	for (uint32_t host = 3; host < 500; host++)
		add(t, host, false, NULL);
	cr_expect_eq(stats(t).half, GSS_HALF_MAX);
	cr_expect(has(t, mine));
	gss_contexts_free(t);
}

/* Many hosts with as many as they may have leave a newcomer his only one. */
Test(gss, half_made_ones_are_shared)
{
	uint8_t mine[GSS_HANDLE_SIZE];
	struct gss_contexts *t = table(4);

	for (uint32_t i = 0; i < 4000; i++) {
		if (i == 1000)
			add(t, 1, false, mine);
		add(t, 2 + i % 64, false, NULL);
	}
	cr_expect_eq(stats(t).half, GSS_HALF_MAX);
	cr_expect(has(t, mine));
	gss_contexts_free(t);
}

Test(gss, old_ones_are_swept)
{
	struct gss_contexts *t = table(100);
	uint8_t ended[GSS_HANDLE_SIZE];

	for (unsigned i = 0; i < 3; i++) {
		add(t, 1, true, ended);
		add(t, 2, false, NULL);
	}
	clock_ns += 3601 * RN_NS_PER_SECOND;
	add(t, 3, true, NULL);
	cr_expect_eq(stats(t).established, 1);
	cr_expect_eq(stats(t).half, 0);
	cr_expect_not(has(t, ended));
	gss_contexts_free(t);
}

static struct gss_context *find(struct gss_contexts *t, const uint8_t handle[GSS_HANDLE_SIZE])
{
	struct gss_context *c = gss_contexts_find(t, handle, GSS_HANDLE_SIZE);

	cr_assert_not_null(c);
	return c;
}

/* The table has room for two contexts with copies. */
Test(gss, few_contexts_have_copies)
{
	struct gss_contexts *t = table(10);
	uint8_t handle[GSS_HANDLE_SIZE];
	struct gss_context *c[3];

	for (unsigned i = 0; i < 3; i++) {
		add(t, 1, true, handle);
		c[i] = find(t, handle);
	}
	cr_expect(gss_contexts_may_grow(t, c[0]));
	cr_expect_not(gss_contexts_may_grow(t, c[0]), "again at once");
	cr_expect(gss_contexts_may_grow(t, c[1]));
	cr_expect_eq(stats(t).grown, 2);
	cr_expect(gss_contexts_may_grow(t, c[2]));
	cr_expect_eq(stats(t).grown, 2);
	cr_expect_not(gss_contexts_is_grown(t, c[0]), "the first one gives way");
	cr_expect(gss_contexts_is_grown(t, c[1]));
	clock_ns += (GSS_GROW_SECONDS + 1) * RN_NS_PER_SECOND;
	cr_expect(gss_contexts_may_grow(t, c[0]));
	cr_expect_not(gss_contexts_is_grown(t, c[1]));
	gss_contexts_remove(t, c[0]);
	cr_expect_eq(stats(t).grown, 1);
	cr_expect_not(gss_contexts_may_grow(t, c[0]), "it has ended");
	for (unsigned i = 0; i < 3; i++)
		gss_context_put(c[i]);
	gss_contexts_free(t);
}

Test(gss, memory_is_an_eighth_at_most)
{
	const unsigned cpus[] = { 1, 2, 4, 64 };
	struct gss_memory m;

	for (unsigned i = 0; i < 4; i++) {
		for (size_t whole = (size_t)64 << 20; whole < (size_t)1 << 40; whole *= 2) {
			gss_memory_divide(whole, 16384, cpus[i], &m);
			cr_expect_leq(m.bytes, whole / 8);
			cr_expect_geq(m.contexts, 128);
			cr_expect_leq(m.contexts, 16384);
			cr_expect_geq(m.tokens, (size_t)1 << 20);
			cr_expect_leq(m.copies, GSS_COPIES_MOST);
			cr_expect_eq(m.grown > 0, m.copies > 1);
		}
		cr_expect_eq(m.contexts, 16384);
	}
	gss_memory_divide((size_t)1 << 40, 64, 1, &m);
	cr_expect_eq(m.contexts, 64);
	cr_expect_eq(m.grown, 0);
}
