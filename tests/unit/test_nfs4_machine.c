/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state machines of NFSv4 (nfs4_machine.h): all states to a depth are visited, and each invariant
 * holds; each fault that is put into the machine is found; and the server does what the machine
 * permits, in every state that it reaches within a smaller depth, and on random walks beyond.
 * MACHINE_DEPTH and MACHINE_CODE_DEPTH are the depths, MACHINE_WALKS and MACHINE_SEED the number of
 * walks and their seed.
 */
#include <stdlib.h>

#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_machine.h"

NFS3_SUITE(nfs4_machine);

#define NOT_DONE 0
#define SEGMENT 400u /* steps before a new server */
#define TOLD 60u     /* of these are told at most */
#define LEASES 60u   /* leases before a new server: a client that is away for a day is dropped */

static unsigned number(const char *name, unsigned otherwise)
{
	const char *s = getenv(name);

	return s ? (unsigned)strtoul(s, NULL, 10) : otherwise;
}

Test(nfs4_machine, every_state_keeps_the_invariants, .timeout = 7200)
{
	struct mach_found found;

	mach_search(MACH_ALL_KINDS, number("MACHINE_DEPTH", 6), &found);
	printf("nfs4_machine: %zu states, %zu edges, depth %u, %.1f s\n", (size_t)found.states,
	       (size_t)found.edges, found.depth, found.seconds);
	if (found.violated)
		mach_print_path(found.path, found.steps);
	cr_expect_null(found.violated, "%s", found.violated);
}

/* Where the server is. */
static struct {
	struct mach_state s;
	struct mach_event did[SEGMENT];
	unsigned ndid, leases, seed;
	uint64_t steps, anew;
} now;

static void anew(void)
{
	mach_code_anew();
	mach_init(&now.s);
	now.ndid = now.leases = 0;
	now.anew++;
}

/* One event. Returns the outcome, or -1 if it is not permitted; *n is the number of outcomes. */
static int step(struct mach_event e, unsigned *n, char why[256])
{
	struct mach_outcome out[MACH_OUTCOMES];
	int got;

	*n = mach_outcomes(&now.s, e, out);
	if (*n == 0)
		return 0;
	got = mach_code_step(&now.s, e, out, *n, why);
	now.did[now.ndid++] = e;
	now.steps++;
	now.leases += e.kind == MACH_LEASE_ENDS || e.kind == MACH_TIME;
	if (got >= 0)
		now.s = out[got].next;
	return got;
}

/* Tells the shortest story of a failure that can be repeated. */
static void tell(uint32_t at, unsigned event, const char *why)
{
	struct mach_event path[MACH_PATH];
	char again[256] = "";
	unsigned n, steps;

	printf("nfs4_machine: %s\n", why);
	mach_print_path(now.did + (now.ndid > TOLD ? now.ndid - TOLD : 0),
			now.ndid > TOLD ? TOLD : now.ndid);
	if (at == MACH_NONE)
		return;
	steps = mach_path(at, event, path);
	anew();
	for (unsigned i = 0; i < steps && !*again; i++)
		step(path[i], &n, again);
	printf("the shortest path to that: %s\n", *again ? again : "nothing is wrong");
	mach_print_path(path, now.ndid);
}

/* Which events the server has done in which state, and what came of it. */
static struct {
	uint8_t (*done)[MACH_EVENTS]; /* outcome + 1; 0: not done; 255: impossible */
	uint32_t *from, *queue;	      /* of a search for what is not done */
	uint8_t *by;
	uint32_t n;
	unsigned depth;
} tour;

#define IMPOSSIBLE 255

/* The state behind an edge that was done, or is expected; MACH_NONE: outside. */
static uint32_t behind(uint32_t at, unsigned i)
{
	struct mach_outcome out[MACH_OUTCOMES];
	const unsigned n = mach_outcomes(mach_numbered(at), mach_event(i), out);
	const unsigned did = tour.done[at][i];

	if (n == 0)
		return MACH_NONE;
	struct mach_state s = out[did ? did - 1u : 0].next;

	mach_canonical(&s);
	return mach_number(&s);
}

/* An event of that state that has not been done; MACH_EVENTS: none. */
static unsigned not_done(uint32_t at)
{
	struct mach_outcome out[MACH_OUTCOMES];

	if (mach_depth(at) >= tour.depth)
		return MACH_EVENTS;
	for (unsigned i = 0; i < MACH_EVENTS; i++) {
		if (tour.done[at][i] != NOT_DONE)
			continue;
		if (mach_outcomes(mach_numbered(at), mach_event(i), out) > 0)
			return i;
		tour.done[at][i] = IMPOSSIBLE;
	}
	return MACH_EVENTS;
}

/* The first event of the shortest way to something that is not done; MACH_EVENTS: there is none near. */
static unsigned way_on(uint32_t start)
{
	uint32_t head = 0, n = 0, at;

	if (not_done(start) < MACH_EVENTS)
		return not_done(start);
	memset(tour.from, 0xff, tour.n * sizeof(*tour.from));
	tour.queue[n++] = start;
	tour.from[start] = start;
	while (head < n) {
		at = tour.queue[head++];
		if (at != start && not_done(at) < MACH_EVENTS) {
			while (tour.from[at] != start)
				at = tour.from[at];
			return tour.by[at];
		}
		for (unsigned i = 0; i < MACH_EVENTS; i++) {
			const uint32_t to =
				tour.done[at][i] == IMPOSSIBLE ? MACH_NONE : behind(at, i);

			if (to == MACH_NONE || tour.from[to] != MACH_NONE)
				continue;
			tour.from[to] = at;
			tour.by[to] = (uint8_t)i;
			tour.queue[n++] = to;
		}
	}
	return MACH_EVENTS;
}

/* The server goes on to what it has not done. False: there is nothing left, or it has failed. */
static bool go_on(void)
{
	struct mach_state s = now.s;
	const unsigned turned = mach_canonical(&s);
	uint32_t at = mach_number(&s);
	const bool enough = now.ndid == SEGMENT || now.leases == LEASES;
	unsigned i = at == MACH_NONE || enough ? MACH_EVENTS : way_on(at), n;
	char why[256] = "";
	int got;

	if (i == MACH_EVENTS && now.ndid == 0)
		return false;
	if (i == MACH_EVENTS) {
		anew();
		return true;
	}
	got = step(mach_turn_event(mach_event(i), turned), &n, why);
	if (got >= 0) {
		tour.done[at][i] = (uint8_t)(got + 1);
		return true;
	}
	tell(at, i, why);
	cr_expect_fail("the server does what is not permitted: %s", why);
	return false;
}

static void visit_all(struct mach_found *found)
{
	tour.n = (uint32_t)found->states;
	tour.done = calloc(tour.n, sizeof(*tour.done));
	tour.from = calloc(tour.n, sizeof(*tour.from));
	tour.queue = calloc(tour.n, sizeof(*tour.queue));
	tour.by = calloc(tour.n, 1);
	cr_assert(tour.done && tour.from && tour.queue && tour.by);
	while (go_on())
		;
}

static void count_all(void)
{
	uint32_t states = 0, edges = 0;

	for (uint32_t at = 0; at < tour.n; at++) {
		uint32_t here = 0;

		for (unsigned i = 0; i < MACH_EVENTS; i++)
			here += tour.done[at][i] != NOT_DONE && tour.done[at][i] != IMPOSSIBLE;
		states += here > 0;
		edges += here;
	}
	printf("nfs4_machine: the server: %u states, %u edges, depth %u\n", states, edges,
	       tour.depth);
	free(tour.done);
	free(tour.from);
	free(tour.queue);
	free(tour.by);
}

/* A random event that can happen now; those that take something from somebody are rarer. */
static struct mach_event draw(void)
{
	struct mach_outcome out[MACH_OUTCOMES];
	struct mach_event e = { 0 };
	bool rare;

	do {
		e.kind = (uint8_t)((unsigned)rand_r(&now.seed) % MACH_KINDS);
		e.c = e.kind < MACH_PER_CLIENT ? (uint8_t)(rand_r(&now.seed) % MACH_CLIENTS) : 0;
		e.f = e.kind < MACH_PER_FILE ? (uint8_t)(rand_r(&now.seed) % MACH_FILES) : 0;
		rare = e.kind >= MACH_LEASE_ENDS || e.kind == MACH_REBOOT;
	} while ((rare && rand_r(&now.seed) % 4 > 0) || mach_outcomes(&now.s, e, out) == 0);
	return e;
}

/* Random events from a new server. False: it has done what is not permitted. */
static bool walk(unsigned steps)
{
	char why[256];
	unsigned n;

	anew();
	while (now.ndid < steps) {
		if (step(draw(), &n, why) >= 0)
			continue;
		tell(MACH_NONE, 0, why);
		cr_expect_fail("the server does what is not permitted: %s", why);
		return false;
	}
	return true;
}

static void begin(void)
{
	make_file("a", "0123456789abcdef", 0666);
	make_file("b", "0123456789abcdef", 0666);
	mach_code_begin(f);
	mach_init(&now.s);
}

/* True if the server, too, does the last step of a path as a faulty machine does. */
static bool server_does(const struct mach_found *found)
{
	struct mach_state before = now.s;
	char why[256];
	unsigned n;
	int got = 0;

	anew();
	for (unsigned i = 0; i < found->steps && got >= 0; i++) {
		before = now.s;
		got = step(found->path[i], &n, why);
	}
	const struct mach_outcome did = { .next = now.s };

	return got >= 0 && (mach_violates(&now.s) ||
			    mach_step_violates(&before, found->path[found->steps - 1], &did));
}

Test(nfs4_machine, every_fault_of_the_machine_is_found_and_is_not_the_servers, .timeout = 600)
{
	struct mach_found found;

	NEED_FIXTURE();
	begin();
	for (mach_fault = 1; mach_fault < MACH_FAULTS; mach_fault++) {
		const char *name = mach_fault_name[mach_fault];

		mach_search(MACH_ALL_KINDS, 6, &found);
		cr_expect_not_null(found.violated, "%s: nothing is violated", name);
		printf("nfs4_machine: %s: after %u steps: %s\n", name, found.steps, found.violated);
		cr_expect_not(server_does(&found), "%s: so does the server", name);
	}
	mach_fault = MACH_RIGHT;
	mach_code_end();
}

Test(nfs4_machine, the_server_does_what_is_permitted, .timeout = 7200)
{
	const unsigned walks = number("MACHINE_WALKS", 30);
	const double began = mach_seconds();
	struct mach_found found;

	NEED_FIXTURE();
	begin();
	tour.depth = number("MACHINE_CODE_DEPTH", 3);
	now.seed = number("MACHINE_SEED", (unsigned)getpid());
	printf("nfs4_machine: MACHINE_SEED=%u\n", now.seed);
	mach_search(MACH_ALL_KINDS, tour.depth, &found);
	visit_all(&found);
	count_all();
	for (unsigned i = 0; i < walks && walk(60); i++)
		;
	mach_code_end();
	printf("nfs4_machine: the server: %zu steps, %zu new servers, %.1f s\n", (size_t)now.steps,
	       (size_t)now.anew, mach_seconds() - began);
}
