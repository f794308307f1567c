/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 5,000 clients with sessions: memory for each, and the cost of operations, which must not grow
 * with the number of clients. Figures are printed; times are compared within wide margins only, as
 * machines are shared. Other tests let clients come, go and expire while threads use them.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "nfs4/client/client_table.h"
#include "nfs4/state/holdings.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"

NFS3_SUITE(nfs4_clients_scale);

#define CLIENTS 5000u
#define CALLS 2000u

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Costs are processor time: what else runs on the machine is none of theirs. */
static uint64_t spent_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static struct fix4_session sessions[CLIENTS];

static void make_clients(unsigned from, unsigned to)
{
	char name[64];

	for (unsigned i = from; i < to; i++) {
		snprintf(name, sizeof(name), "Linux NFSv4.1 client-%u.example.org", i);
		cr_assert_neq(confirmed_client(f, name, "verf0001", &sessions[i]), 0);
	}
}

/* Nanoseconds of one COMPOUND with SEQUENCE alone, on sessions far apart; the smallest of some
 * runs. */
static double sequence_cost(unsigned clients)
{
	uint64_t best = UINT64_MAX;

	for (unsigned run = 0; run < 5; run++) {
		const uint64_t start = spent_ns();

		for (unsigned i = 0; i < CALLS; i++)
			cr_assert_eq(call_sequence(f, &sessions[i * 7919u % clients]), NFS4_OK);
		const uint64_t took = spent_ns() - start;
		best = took < best ? took : best;
	}
	return (double)best / CALLS;
}

/* Nanoseconds of EXCHANGE_ID by a known client; the smallest of some runs. */
static double exchange_cost(unsigned clients)
{
	uint64_t best = UINT64_MAX;
	struct eid_result r;
	char name[64];

	for (unsigned run = 0; run < 5; run++) {
		const uint64_t start = spent_ns();

		for (unsigned i = 0; i < CALLS; i++) {
			const struct eid_args e = { .owner = name, .verifier = "verf0001" };

			snprintf(name, sizeof(name), "Linux NFSv4.1 client-%u.example.org",
				 i * 7919u % clients);
			cr_assert_eq(call_exchange_id(f, NULL, &e, &r), NFS4_OK);
		}
		const uint64_t took = spent_ns() - start;
		best = took < best ? took : best;
	}
	return (double)best / CALLS;
}

Test(nfs4_clients_scale, five_thousand_clients)
{
	double seq[2], eid[2];
	struct nfs4_held held;
	size_t budget, heap;

	NEED_FIXTURE();
	make_clients(0, 50);
	seq[0] = sequence_cost(50);
	eid[0] = exchange_cost(50);
	budget = f->budget.used;
	heap = mallinfo2().uordblks;
	make_clients(50, CLIENTS);
	budget = f->budget.used - budget;
	heap = mallinfo2().uordblks - heap;
	seq[1] = sequence_cost(CLIENTS);
	eid[1] = exchange_cost(CLIENTS);
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.clients, CLIENTS);
	cr_expect_eq(held.sessions, CLIENTS);
	printf("%u clients with a session: %zu bytes each of the heap, %zu of the budget\n",
	       CLIENTS, heap / (CLIENTS - 50), budget / (CLIENTS - 50));
	printf("SEQUENCE: %.0f ns with 50 clients, %.0f ns with %u\n", seq[0], seq[1], CLIENTS);
	printf("EXCHANGE_ID: %.0f ns with 50 clients, %.0f ns with %u\n", eid[0], eid[1], CLIENTS);
	/* The budget accounts for all memory but malloc's overhead. */
	cr_expect_leq(heap, budget + budget / 4);
	cr_expect_leq(heap / (CLIENTS - 50), 4096);
	/* Colder caches explain this factor; a larger one would mean a walk over all clients. */
	cr_expect_leq(seq[1], seq[0] * 8 + 2000);
	cr_expect_leq(eid[1], eid[0] * 8 + 2000);
	nfs4_clients_skip_time(f->server4, 200);
	nfs4_tick(f->server4);
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.courtesy_clients, CLIENTS);
}

#define THREADS 3
#define CROWD 16

static struct {
	_Atomic uint64_t clientid[CROWD];
	pthread_mutex_t lock;
	uint8_t id[CROWD][NFS4_SESSIONID_SIZE]; /* protected by the lock above */
	atomic_bool stop;
	_Atomic unsigned found, dropped;
} crowd = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void use_one(unsigned i)
{
	struct nfs4_server *srv = f->server4;
	struct nfs4_session *s;
	struct nfs4_client *cl;
	uint8_t id[NFS4_SESSIONID_SIZE];

	pthread_mutex_lock(&crowd.lock);
	memcpy(id, crowd.id[i], sizeof(id));
	pthread_mutex_unlock(&crowd.lock);
	s = nfs4_session_get(srv->clients, id);
	if (s) {
		atomic_fetch_add(&crowd.found, 1);
		nfs4_client_renew(s->client);
	}
	cl = nfs4_client_by_number(srv, (uint32_t)atomic_load(&crowd.clientid[i]));
	if (cl && nfs4_client_expire_courtesy(srv, cl) == NFS4_DROPPED)
		atomic_fetch_add(&crowd.dropped, 1);
	nfs4_client_put(cl);
	nfs4_session_put(s);
}

static void *use_them(void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;

	while (!atomic_load(&crowd.stop))
		use_one(i++ % CROWD);
	return NULL;
}

/* Ends one client: by its own call, by a restart, or by its lease. Another takes its place. */
static void change_one(unsigned n)
{
	static struct fix4_session s[CROWD];
	const unsigned i = n % CROWD;
	char name[16], verifier[16];

	if (n % 3 == 0 && n >= CROWD) {
		call_destroy_session(f, NULL, s[i].id);
		call_destroy_clientid(f, NULL, s[i].clientid);
	}
	snprintf(name, sizeof(name), "%u", i);
	snprintf(verifier, sizeof(verifier), "%08u", n);
	cr_assert_neq(confirmed_client(f, name, verifier, &s[i]), 0);
	atomic_store(&crowd.clientid[i], s[i].clientid);
	pthread_mutex_lock(&crowd.lock);
	memcpy(crowd.id[i], s[i].id, sizeof(crowd.id[i]));
	pthread_mutex_unlock(&crowd.lock);
	cr_expect_eq(call_sequence(f, &s[i]), NFS4_OK);
	if (n % 5 == 0) {
		nfs4_clients_skip_time(f->server4, 60);
		nfs4_tick(f->server4);
	}
}

Test(nfs4_clients_scale, coming_and_going_amid_use)
{
	pthread_t threads[THREADS];
	struct nfs4_held held;
	uint64_t begin;

	NEED_FIXTURE();
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, use_them, (void *)(uintptr_t)(i * 5));
	/* On a busy machine the threads may start late: wait until one has met a session. */
	begin = now_ns();
	for (unsigned n = 0; n < 200 || now_ns() < begin + 150000000ull ||
			     (!crowd.found && now_ns() < begin + 60000000000ull);
	     n++)
		change_one(n);
	atomic_store(&crowd.stop, true);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	nfs4_held(f->server4, &held);
	cr_expect_leq(held.clients, 2 * CROWD);
	cr_expect_gt(crowd.found, 0);
	printf("%u sessions found, %u times dropped\n", crowd.found, crowd.dropped);
}
