/* SPDX-License-Identifier: BSD-2-Clause */
/* The status monitor without its sockets: the record file, state numbers, the table of hosts, and which
 * host a notice is about. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "nsm/nsm_private.h"

static char dir[64];
static _Atomic unsigned recorded;

static void on_recorded(void *ctx)
{
	(void)ctx;
	recorded++;
}

static bool on_reboot(void *ctx, const struct nsm_reboot *r)
{
	(void)ctx;
	(void)r;
	return true;
}

static bool no_grace(void *ctx)
{
	(void)ctx;
	return true;
}

static void make_dir(void)
{
	strcpy(dir, "/tmp/ringnfs-nsm-XXXXXX");
	cr_assert(mkdtemp(dir));
}

static void remove_dir(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/" NSM_RECORDS_NAME, dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/" NSM_RECORDS_NAME ".damaged", dir);
	unlink(path);
	cr_expect_eq(rmdir(dir), 0, "something else is left in %s", dir);
}

TestSuite(nsm, .init = make_dir, .fini = remove_dir, .timeout = 60);

static struct nsm_peer peer(uint8_t host, const char *name)
{
	struct nsm_peer p = { .name = (const uint8_t *)name, .name_len = (uint32_t)strlen(name) };

	p.addr.bytes[10] = p.addr.bytes[11] = p.local.bytes[10] = p.local.bytes[11] = 0xff;
	p.addr.bytes[12] = p.local.bytes[12] = 10;
	p.addr.bytes[15] = host;
	p.local.bytes[15] = 1;
	return p;
}

static struct nsm *start(void)
{
	const struct nsm_config cfg = { .state_dir = dir, .recorded = on_recorded };
	const struct nsm_hooks hooks = { .rebooted = on_reboot, .in_grace = no_grace };
	struct nsm *n;

	cr_assert_eq(nsm_new(&cfg, &n), 0);
	cr_assert_eq(nsm_start(n, &hooks), 0);
	return n;
}

/* As a client that comes again until it is on record. */
static int get(struct nsm *n, const struct nsm_peer *p, struct nsm_host **h)
{
	int rc;

	while ((rc = nsm_host_get(n, p, h)) == -EAGAIN)
		usleep(1000);
	return rc;
}

Test(nsm, state_numbers)
{
	cr_expect_eq(nsm_next_state(0), 1u);
	cr_expect_eq(nsm_next_state(1), 3u);
	cr_expect_eq(nsm_next_state(4), 5u);
	cr_expect_eq(nsm_next_state(INT32_MAX - 4), (uint32_t)INT32_MAX - 2);
	for (uint32_t last = INT32_MAX - 3; last != 0; last++) {
		const uint32_t next = nsm_next_state(last);

		cr_assert(next % 2 == 1 && next <= INT32_MAX && next != last, "%u: %u", last, next);
		if (last == INT32_MAX)
			break;
	}
	cr_expect_eq(nsm_next_state(UINT32_MAX), 1u);
}

struct seen {
	unsigned n;
	struct nsm_peer host[4];
	char name[4][NSM_NAME_MAX];
};

static int see(void *ctx, const struct nsm_peer *p)
{
	struct seen *s = ctx;

	if (s->n == 4)
		return -E2BIG;
	s->host[s->n] = *p;
	memcpy(s->name[s->n], p->name, p->name_len);
	s->n++;
	return 0;
}

/* Hosts with names as peers may choose them. */
static unsigned strange(struct nsm_peer out[4])
{
	static uint8_t longest[NSM_NAME_MAX];

	memset(longest, 0xfe, sizeof(longest));
	out[0] = peer(2, "../../etc/passwd\nend 0\n");
	out[1] = peer(3, "");
	out[2] = peer(4, "client.example");
	out[2].addr = (struct rpc_address){ .bytes = { 0xfe, 0x80, [15] = 9 }, .scope = 7 };
	out[3] = peer(5, "");
	out[3].name = longest;
	out[3].name_len = sizeof(longest);
	return 4;
}

static struct nsm_text text_of(const struct nsm_peer *host, unsigned n, uint32_t state)
{
	struct nsm_text t = { .data = NULL };

	nsm_text_begin(&t, state);
	for (unsigned i = 0; i < n; i++)
		nsm_text_add(&t, &host[i]);
	nsm_text_end(&t, n);
	cr_assert(!t.failed);
	return t;
}

Test(nsm, records_read_back)
{
	struct nsm_peer host[4];
	const unsigned n = strange(host);
	struct nsm_text t = text_of(host, n, 77);
	static struct seen s;
	uint32_t state;

	cr_assert_eq(nsm_text_read(t.data, t.len, &state, see, &s), 0);
	cr_expect_eq(state, 77u);
	cr_assert_eq(s.n, n);
	for (unsigned i = 0; i < n; i++) {
		cr_expect(rpc_address_equal(&s.host[i].addr, &host[i].addr));
		cr_expect(rpc_address_equal(&s.host[i].local, &host[i].local));
		cr_expect_eq(s.host[i].name_len, host[i].name_len);
		cr_expect_eq(memcmp(s.name[i], host[i].name, host[i].name_len), 0);
	}
	nsm_text_free(&t);
}

static int nothing(void *ctx, const struct nsm_peer *p)
{
	(void)ctx;
	(void)p;
	return 0;
}

Test(nsm, damaged_records_are_refused)
{
	struct nsm_peer host[4];
	struct nsm_text t = text_of(host, strange(host), 77);
	uint32_t state;

	for (size_t len = 0; len < t.len; len++)
		cr_assert_eq(nsm_text_read(t.data, len, &state, nothing, NULL), -EINVAL,
			     "cut to %zu", len);
	/* Each byte of the first lines changed to one that is nowhere. */
	for (size_t i = 0; i < 200; i++) {
		const char was = t.data[i];

		t.data[i] = '\t';
		cr_expect_eq(nsm_text_read(t.data, t.len, &state, nothing, NULL), -EINVAL,
			     "byte %zu", i);
		t.data[i] = was;
	}
	cr_expect_eq(nsm_text_read(t.data, t.len, &state, nothing, NULL), 0);
	nsm_text_end(&t, 4);
	cr_expect_eq(nsm_text_read(t.data, t.len, &state, nothing, NULL), -EINVAL, "a second end");
	nsm_text_free(&t);
}

Test(nsm, too_many_records_are_refused)
{
	const struct nsm_peer host = peer(2, "x");
	struct nsm_text t = { .data = NULL };
	uint32_t state;

	nsm_text_begin(&t, 1);
	for (unsigned i = 0; i <= NSM_HOSTS_MAX; i++)
		nsm_text_add(&t, &host);
	nsm_text_end(&t, NSM_HOSTS_MAX + 1);
	cr_expect_eq(nsm_text_read(t.data, t.len, &state, nothing, NULL), -EINVAL);
	nsm_text_free(&t);
}

static bool same(const char *a, const char *b)
{
	return nsm_same_name((const uint8_t *)a, (uint32_t)strlen(a), (const uint8_t *)b,
			     (uint32_t)strlen(b));
}

Test(nsm, names_of_one_host)
{
	cr_expect(same("client", "client"));
	cr_expect(same("CLIENT", "client"));
	cr_expect(same("client", "client.example.org"));
	cr_expect(same("Client.example.org", "client"));
	cr_expect(same("", ""));
	cr_expect(!same("client", "cliend"));
	cr_expect(!same("client", "client2"));
	cr_expect(!same("client.example", "client.example.org"));
	cr_expect(!same("", ".example"));
	cr_expect(!same("", "client"));
}

Test(nsm, a_host_is_on_disk_before_it_may_lock)
{
	const struct nsm_peer p = peer(2, "client");
	struct nsm_text t = { .data = NULL };
	static struct seen s;
	struct nsm *n = start();
	struct nsm_host *h;
	struct stat st;
	uint32_t state;
	char path[128];

	cr_expect_eq(nsm_host_get(n, &p, &h), -EAGAIN);
	cr_assert_eq(get(n, &p, &h), 0);
	cr_assert_eq(nsm_records_load(dir, NSM_RECORDS_NAME, &t), 0);
	cr_assert_eq(nsm_text_read(t.data, t.len, &state, see, &s), 0);
	cr_expect(s.n == 1 && state == 1 && rpc_address_equal(&s.host[0].addr, &p.addr));
	cr_expect_gt(recorded, 0u);
	cr_expect(!nsm_host_is_former(n, h));
	snprintf(path, sizeof(path), "%s/" NSM_RECORDS_NAME, dir);
	cr_expect(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	nsm_text_free(&t);
	nsm_host_put(n, h);
	nsm_free(n);

	n = start();
	cr_expect_eq(nsm_former_hosts(n), 1u);
	cr_expect_eq(n->state, 3u);
	cr_assert_eq(nsm_host_get(n, &p, &h), 0, "a host of before is on record");
	cr_expect(nsm_host_is_former(n, h));
	nsm_host_put(n, h);
	nsm_free(n);
}

Test(nsm, a_host_that_calls_another_address_is_recorded_anew)
{
	struct nsm_peer p = peer(2, "client");
	struct nsm *n = start();
	struct nsm_host *h;

	cr_assert_eq(get(n, &p, &h), 0);
	nsm_host_put(n, h);
	p.local.bytes[15] = 99;
	cr_expect_eq(nsm_host_get(n, &p, &h), -EAGAIN);
	cr_assert_eq(get(n, &p, &h), 0);
	cr_expect_eq(h->local.bytes[15], 99);
	nsm_host_put(n, h);
	nsm_free(n);
}

Test(nsm, an_address_has_few_names)
{
	struct nsm_host *h[NSM_NAMES_MAX], *more;
	struct nsm *n = start();
	char name[16];

	for (unsigned i = 0; i < NSM_NAMES_MAX; i++) {
		const struct nsm_peer p = peer(2, name);

		snprintf(name, sizeof(name), "name %02u", i);
		cr_assert_eq(get(n, &(struct nsm_peer){ p.addr, p.local, p.name, 7 }, &h[i]), 0);
	}
	const struct nsm_peer next = peer(2, "one more"), other = peer(3, "one more");

	cr_expect_eq(get(n, &next, &more), -ENOLCK);
	cr_assert_eq(get(n, &other, &more), 0, "another address has names of its own");
	nsm_host_put(n, more);
	for (unsigned i = 0; i < NSM_NAMES_MAX; i++)
		nsm_host_put(n, h[i]);
	nsm_free(n);
}

/* A record stays while there are locks, and for some time. */
Test(nsm, records_end)
{
	const uint64_t later = rn_now_ns() + 2 * NSM_IDLE_SECONDS * RN_NS_PER_SECOND;
	const struct nsm_peer p = peer(2, "client"), q = peer(3, "idle");
	struct nsm *n = start();
	struct nsm_host *h, *idle;

	cr_assert_eq(get(n, &p, &h), 0);
	cr_assert_eq(get(n, &q, &idle), 0);
	nsm_host_put(n, idle);
	nsm_hosts_retire(n, rn_now_ns());
	cr_expect_eq(n->nhosts, 2u);
	nsm_hosts_retire(n, later);
	cr_expect_eq(n->nhosts, 1u);
	nsm_host_put(n, h);
	nsm_free(n);

	/* A host that has not been told of the restart is told for a while, but is on record only until grace ends. */
	n = start();
	nsm_hosts_retire(n, later);
	cr_expect_eq(n->nhosts, 1u);
	nsm_free(n);
	n = start();
	cr_expect_eq(nsm_former_hosts(n), 0u);
	nsm_free(n);
}

/* A host that has reclaimed is on record after grace, and one that comes late is once more. */
Test(nsm, grace_ends)
{
	const struct nsm_peer p = peer(2, "in time"), q = peer(3, "late");
	struct nsm *n = start();
	struct nsm_host *h, *late;

	cr_assert(get(n, &p, &h) == 0 && get(n, &q, &late) == 0);
	nsm_host_put(n, h);
	nsm_host_put(n, late);
	nsm_free(n);
	n = start();
	cr_assert_eq(nsm_host_get(n, &p, &h), 0);
	nsm_hosts_retire(n, rn_now_ns());
	cr_expect(!nsm_host_is_former(n, h), "grace is over");
	cr_expect_eq(nsm_host_get(n, &q, &late), -EAGAIN, "not on record any more");
	cr_assert_eq(get(n, &q, &late), 0);
	cr_expect(!nsm_host_is_former(n, late));
	nsm_host_put(n, h);
	nsm_host_put(n, late);
	nsm_free(n);
	n = start();
	cr_expect_eq(nsm_former_hosts(n), 2u);
	nsm_free(n);
}

Test(nsm, a_notice_is_about_one_host)
{
	const struct nsm_peer p = peer(2, "client.example"), q = peer(2, "behind the same address"),
			      s = peer(3, "client.example");
	const struct nsm_peer *const all[] = { &p, &q, &s };
	struct nsm_host *h[3];
	struct nsm *n = start();
	unsigned rebooted = 0;

	nsm_stop(n);	   /* the messenger takes no notice */
	n->failing = true; /* nobody writes */
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(nsm_host_get(n, all[i], &h[i]), 0);
	const struct nsm_peer stranger = peer(4, "client.example"), unknown = peer(2, "clien"),
			      by_short = peer(2, "CLIENT");

	cr_expect_eq(nsm_host_rebooted(n, &stranger, 7), 0u);
	cr_expect_eq(nsm_host_rebooted(n, &unknown, 7), 0u);
	cr_expect_eq(nsm_host_rebooted(n, &by_short, 7), 1u);
	for (unsigned i = 0; i < 3; i++)
		rebooted += h[i]->rebooted;
	cr_expect(rebooted == 1 && h[0]->rebooted && h[0]->state == 7);
	h[0]->rebooted = false;
	cr_expect_eq(nsm_host_rebooted(n, &by_short, 7), 1u);
	cr_expect(!h[0]->rebooted, "the same notice counts once");
	for (unsigned i = 0; i < 3; i++)
		nsm_host_put(n, h[i]);
	nsm_free(n);
}

/* Locks are more useful than records. */
Test(nsm, records_that_cannot_be_written_hold_up_nobody)
{
	const struct nsm_config cfg = { .state_dir = "/nonexistent", .recorded = on_recorded };
	const struct nsm_hooks hooks = { .rebooted = on_reboot, .in_grace = no_grace };
	const struct nsm_peer p = peer(2, "client");
	struct nsm_host *h;
	struct nsm *n;

	cr_assert_eq(nsm_new(&cfg, &n), 0);
	cr_assert_eq(nsm_start(n, &hooks), 0);
	cr_assert_eq(get(n, &p, &h), 0);
	nsm_host_put(n, h);
	nsm_free(n);
}
