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
#include "lib/error.h"
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
	snprintf(path, sizeof(path), "%s/" NSM_RECORDS_NAME ".new", dir);
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

/* A host by its number, at an IPv4 address of its own. */
static struct nsm_peer numbered(unsigned i, const char *name)
{
	struct nsm_peer p = peer(0, name);

	p.addr.bytes[13] = (uint8_t)(1 + (i >> 16));
	p.addr.bytes[14] = (uint8_t)(i >> 8);
	p.addr.bytes[15] = (uint8_t)i;
	return p;
}

/* An address of one IPv6 /64. */
static struct nsm_peer of_network(unsigned i, const char *name)
{
	struct nsm_peer p = peer(0, name);

	p.addr = (struct rpc_address){
		.bytes = { 0x20, 1, 0x0d, 0xb8, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i }
	};
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

	while ((rc = nsm_host_get(n, p, 0, h)) == -RN_ESOON)
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

/* A file of a server that had room for more. */
Test(nsm, all_records_are_read)
{
	const unsigned many = NSM_HOSTS_MAX + 1000;
	struct nsm_text t = { .data = NULL };
	struct nsm_host *h;
	struct nsm *n;

	nsm_text_begin(&t, 1);
	for (unsigned i = 0; i < many; i++) {
		const struct nsm_peer host = numbered(i, "x");

		nsm_text_add(&t, &host);
	}
	nsm_text_end(&t, many);
	cr_assert_eq(nsm_records_save(dir, NSM_RECORDS_NAME, &t), 0);
	nsm_text_free(&t);
	n = start();
	cr_assert_eq(nsm_former_hosts(n), many);
	for (unsigned i = 0; i < many; i++) {
		const struct nsm_peer host = numbered(i, "x");

		cr_assert_eq(nsm_host_get(n, &host, NSM_RECLAIM | NSM_BY_DATAGRAM, &h), 0, "%u", i);
		if (i % 2)
			nsm_host_put(n, h);
	}
	const struct nsm_peer stranger = numbered(many, "x");

	cr_expect_eq(nsm_host_get(n, &stranger, NSM_RECLAIM, &h), -EPERM);
	cr_expect_eq(n->nhosts, many, "who may not reclaim is not put on record");
	nsm_hosts_retire(n, rn_now_ns());
	cr_expect_leq(n->nhosts, (unsigned)NSM_HOSTS_MAX, "room is made once grace is over");
	cr_expect_geq(n->held.used, many / 2, "but not of those with locks");
	nsm_free(n);
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

	cr_expect_eq(nsm_host_get(n, &p, 0, &h), -RN_ESOON);
	cr_assert_eq(get(n, &p, &h), 0);
	cr_assert_eq(nsm_records_load(dir, NSM_RECORDS_NAME, &t), 0);
	cr_assert_eq(nsm_text_read(t.data, t.len, &state, see, &s), 0);
	cr_expect(s.n == 1 && state == 1 && rpc_address_equal(&s.host[0].addr, &p.addr));
	cr_expect_gt(recorded, 0u);
	cr_expect(!h->former);
	snprintf(path, sizeof(path), "%s/" NSM_RECORDS_NAME, dir);
	cr_expect(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	nsm_text_free(&t);
	nsm_host_put(n, h);
	nsm_free(n);

	n = start();
	cr_expect_eq(nsm_former_hosts(n), 1u);
	cr_expect_eq(n->state, 3u);
	cr_assert_eq(nsm_host_get(n, &p, 0, &h), 0, "a host of before is on record");
	cr_expect(h->former);
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
	cr_expect_eq(nsm_host_get(n, &p, 0, &h), -RN_ESOON);
	cr_assert_eq(get(n, &p, &h), 0);
	cr_expect_eq(h->local.bytes[15], 99);
	nsm_host_put(n, h);
	nsm_free(n);
}

/* Nobody writes, so that no get has to wait. */
static struct nsm *start_unwritten(void)
{
	struct nsm *n = start();

	nsm_stop(n);
	n->failing = true;
	return n;
}

/* Names of the host, as many as it gets up to most. Puts each, if it is to keep no lock. */
static unsigned fill(struct nsm *n, struct nsm_peer p, unsigned flags, unsigned most, bool keep)
{
	unsigned got = 0;

	for (unsigned i = 0; i < most; i++) {
		struct nsm_host *h;
		char name[16];

		snprintf(name, sizeof(name), "name %u", i);
		p.name = (const uint8_t *)name;
		p.name_len = (uint32_t)strlen(name);
		if (nsm_host_get(n, &p, flags, &h))
			continue;
		got++;
		if (!keep)
			nsm_host_put(n, h);
	}
	return got;
}

/* A victim's locks, each on a name of its own. */
static bool polite(struct nsm *n)
{
	const struct nsm_peer p = peer(200, "polite");

	return fill(n, p, 0, NSM_HELD_SURE, true) == NSM_HELD_SURE;
}

Test(nsm, an_address_has_few_names)
{
	struct nsm *n = start_unwritten();

	cr_expect_eq(fill(n, peer(2, ""), 0, NSM_NAMES_MAX + 6, true), NSM_NAMES_MAX);
	cr_expect(polite(n), "another address has names of its own");
	nsm_free(n);
}

/* Records of clients without locks make room for new ones. */
Test(nsm, an_address_of_many_names_without_locks_may_lock)
{
	struct nsm *n = start_unwritten();
	struct nsm_stats s;

	cr_expect_eq(fill(n, peer(2, ""), 0, NSM_NAMES_MAX + 6, false), NSM_NAMES_MAX + 6);
	cr_expect_eq(n->nhosts, NSM_NAMES_MAX);
	cr_expect_eq(fill(n, peer(2, ""), 0, NSM_NAMES_MAX, true), NSM_NAMES_MAX);
	nsm_stats(n, &s);
	cr_expect(s.made_room >= 6 && s.with_locks == NSM_NAMES_MAX && s.without == 0);
	nsm_free(n);
}

/* Anybody may send them in the host's name. */
Test(nsm, names_by_datagrams_leave_room_for_those_by_connections)
{
	const unsigned by = NSM_BY_DATAGRAM | NSM_CONNECTED;
	struct nsm_host *h;
	struct nsm_peer p = peer(2, "itself");
	struct nsm *n = start_unwritten();

	cr_expect_eq(fill(n, p, by, 70, true), NSM_DATAGRAM_NAMES);
	cr_assert_eq(nsm_host_get(n, &p, NSM_CONNECTED, &h), 0);
	nsm_host_put(n, h);
	cr_expect_eq(nsm_host_get(n, &p, by, &h), 0, "it is on record");
	nsm_free(n);
}

/* 128 addresses of an IPv6 network, each with as many names as it may have. */
static unsigned fill_by_network(struct nsm *n, bool keep)
{
	unsigned got = 0;

	for (unsigned i = 0; i < 128; i++)
		got += fill(n, of_network(i, ""), 0, NSM_NAMES_MAX, keep);
	return got;
}

Test(nsm, a_network_cannot_take_all_records)
{
	struct nsm *n = start_unwritten();
	struct nsm_stats s;

	cr_expect_eq(fill_by_network(n, true), (NSM_HOSTS_MAX - NSM_HELD_RESERVE) / 2);
	cr_expect(polite(n));
	nsm_stats(n, &s);
	cr_expect(s.refused > 0 && s.made_room == 0);
	nsm_free(n);
}

Test(nsm, a_network_without_locks_makes_room)
{
	struct nsm *n = start_unwritten();
	struct nsm_stats s;

	cr_expect_eq(fill_by_network(n, false), NSM_HOSTS_MAX);
	cr_expect(polite(n));
	cr_expect_eq(n->nhosts, NSM_HOSTS_MAX);
	nsm_stats(n, &s);
	cr_expect(s.refused == 0 && s.made_room == NSM_HELD_SURE);
	nsm_free(n);
}

Test(nsm, many_hosts_leave_room_for_others)
{
	for (unsigned keep = 0; keep < 2; keep++) {
		struct nsm *n = start_unwritten();

		for (unsigned i = 0; i < 200; i++)
			fill(n, numbered(i, ""), 0, NSM_NAMES_MAX, keep);
		cr_expect(polite(n), "%s", keep ? "with locks" : "without");
		cr_expect_leq(n->nhosts, (unsigned)NSM_HOSTS_MAX);
		nsm_free(n);
	}
}

/* In the name of hosts that do not answer. */
Test(nsm, datagrams_record_nobody)
{
	struct nsm *n = start_unwritten();
	unsigned waiting = 0;
	bool ask = false;

	for (unsigned i = 0; i < NSM_HOSTS_MAX + 256; i++) {
		const struct nsm_peer p = numbered(i, "forged");
		struct nsm_host *h;

		const int rc = nsm_host_get(n, &p, NSM_BY_DATAGRAM, &h);

		cr_assert(rc == -RN_ESOON || rc == -EINPROGRESS);
		waiting += rc == -RN_ESOON;
	}
	cr_expect_eq(n->nhosts, 0u);
	cr_expect_lt(waiting, 1000u, "few wait");
	cr_expect(polite(n));
	const struct nsm_peer p = numbered(0, "forged");
	const uint64_t now = rn_now_ns();

	/* The first call was a while ago, and each has another question sent. */
	for (unsigned i = 0; i < 3; i++)
		cr_expect_neq(nsm_prove(n, &p.addr, now + i * RN_NS_PER_SECOND, &ask), 0);
	cr_expect_eq(nsm_prove(n, &p.addr, now + 5 * RN_NS_PER_SECOND, &ask), -EHOSTDOWN);
	nsm_free(n);
}

Test(nsm, a_silent_host_is_asked_three_times)
{
	struct nsm *n = start_unwritten();
	const struct nsm_peer p = peer(2, "");
	unsigned questions = 0;

	for (unsigned ms = 0; ms < 59000; ms += 50) {
		bool ask = false, waits;
		const int rc = nsm_prove(n, &p.addr, (1000 + ms) * RN_NS_PER_MS, &ask);

		/* 300 ms behind each question */
		waits = ms < 300 || (ms >= 500 && ms < 800) || (ms >= 1500 && ms < 1800);
		cr_expect_eq(rc,
			     ms > 4000 ? -EHOSTDOWN
			     : waits   ? -RN_ESOON
				       : -EINPROGRESS,
			     "%u ms", ms);
		questions += ask;
	}
	cr_expect_eq(questions, 3u);
	nsm_free(n);
}

static void count_end(void *ctx, int rc, struct xdr_in *results)
{
	(void)results;
	cr_expect_eq(rc, -ECANCELED);
	++*(unsigned *)ctx;
}

/* 200 hosts send more messages than are answered at a time. */
Test(nsm, answers_are_shared)
{
	struct nsm *n = start_unwritten();
	unsigned taken = 0, ended = 0;
	const struct nsm_call_end end = { .done = count_end, .ctx = &ended };

	n->stop = false;
	n->messaging = true; /* nobody takes them */
	for (unsigned i = 0; i < 200 * 20; i++) {
		const struct nsm_callee to = { .peer = numbered(i % 200, "").addr, .answer = true };

		taken += nsm_submit(n, &to, NULL, 0, &end) == 0;
	}
	const struct nsm_callee polite = { .peer = peer(200, "").addr, .answer = true };

	cr_expect_eq(nsm_submit(n, &polite, NULL, 0, &end), 0);
	cr_expect(taken == 200 * 20 && ended > 0, "%u taken, %u ended", taken, ended);
	n->messaging = false;
	nsm_free(n);
	cr_expect_eq(ended, taken + 1);
}

/* The host was put on record before its lock was tried. */
Test(nsm, a_host_that_gets_no_lock_is_not_on_record)
{
	const struct nsm_peer p = peer(2, "refused"), q = peer(3, "gone");
	struct nsm *n = start();
	struct nsm_host *h, *second;

	cr_assert_eq(get(n, &p, &h), 0);
	cr_assert_eq(get(n, &p, &second), 0);
	nsm_host_drop(n, h);
	cr_expect_eq(n->nhosts, 1u);
	nsm_host_drop(n, second);
	cr_expect_eq(n->nhosts, 0u);
	cr_expect_eq(nsm_host_get(n, &q, 0, &h), -RN_ESOON, "and does not come again");
	nsm_hosts_retire(n, rn_now_ns() + (NSM_UNUSED_SECONDS + 1) * RN_NS_PER_SECOND);
	cr_expect_eq(n->nhosts, 0u);
	cr_assert_eq(get(n, &p, &h), 0);
	nsm_host_put(n, h);
	cr_assert_eq(get(n, &p, &h), 0);
	nsm_host_drop(n, h);
	cr_expect_eq(n->nhosts, 1u, "it has had one");
	nsm_free(n);
	n = start();
	cr_expect_eq(nsm_former_hosts(n), 1u);
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
	cr_assert_eq(nsm_host_get(n, &p, 0, &h), 0);
	nsm_hosts_retire(n, rn_now_ns());
	cr_expect(!h->former, "grace is over");
	cr_expect_eq(nsm_host_get(n, &q, 0, &late), -RN_ESOON, "not on record any more");
	cr_assert_eq(get(n, &q, &late), 0);
	cr_expect(!late->former);
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
		cr_assert_eq(nsm_host_get(n, all[i], 0, &h[i]), 0);
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
