/* SPDX-License-Identifier: BSD-2-Clause */
/* Visits the states of the machine, breadth first. Symmetric states count as one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/nfs4_machine.h"

const char *const mach_fault_name[MACH_FAULTS] = {
	"none",
	"opens are not compared with what others deny",
	"locks are not compared with those of others",
	"what a client that is away holds is given to others, and kept for it",
	"an open does not wait for the end of a recall",
	"a recall that timed out ends the delegation, and nobody tells its holder",
	"a client whose state was dropped goes on when it renews",
	"grace admits what others may reclaim",
	"grace lets others read what may be delegated to write",
	"grace lets others write what may be delegated",
	"reclaims are taken after grace",
	"the record of a client outlives the loss of its state",
	"a delegation that was revoked is reclaimed",
	"a client that has booted reclaims what it had before",
	"a lease that had run out before the restart leaves the delegation",
	"delegations are given whatever others hold",
	"CLOSE leaves the locks",
};

struct mach_event mach_event(unsigned i)
{
	const unsigned per_file = MACH_PER_FILE * MACH_CLIENTS * MACH_FILES;
	const unsigned per_client = (MACH_PER_CLIENT - MACH_PER_FILE) * MACH_CLIENTS;
	struct mach_event e = { 0 };

	if (i < per_file) {
		e.kind = (uint8_t)(i / (MACH_CLIENTS * MACH_FILES));
		e.c = (uint8_t)(i / MACH_FILES % MACH_CLIENTS);
		e.f = (uint8_t)(i % MACH_FILES);
	} else if (i < per_file + per_client) {
		e.kind = (uint8_t)(MACH_PER_FILE + (i - per_file) / MACH_CLIENTS);
		e.c = (uint8_t)((i - per_file) % MACH_CLIENTS);
	} else {
		e.kind = (uint8_t)(MACH_PER_CLIENT + i - per_file - per_client);
	}
	return e;
}

void mach_tell(char *to, size_t size, struct mach_event e)
{
	static const char *const what[MACH_KINDS] = {
		"opens %c to read",
		"opens %c to write",
		"opens %c to read, denying others to write",
		"opens %c to read, and wants a delegation",
		"opens %c to write, and wants a delegation",
		"opens %c by its delegation",
		"closes %c",
		"downgrades its open of %c to reading",
		"locks %c to read",
		"locks %c to write",
		"unlocks %c",
		"returns or frees its delegation of %c",
		"uses its open of %c",
		"uses its delegation of %c",
		"reclaims its open of %c",
		"reclaims its lock of %c",
		"reclaims %c, too late",
		"registers",
		"renews its lease",
		"boots",
		"comes back",
		"has reclaimed all",
		"is away for a lease",
		"a lease passes",
		"the server restarts",
		"grace ends",
	};
	char text[96];

	snprintf(text, sizeof(text), what[e.kind], 'a' + e.f);
	if (e.kind < MACH_PER_CLIENT)
		snprintf(to, size, "client %u %s", e.c, text);
	else
		snprintf(to, size, "%s", text);
}

void mach_tell_says(char *to, size_t size, uint32_t says)
{
	static const char *const word[] = { "OK",
					    "SHARE_DENIED",
					    "DENIED",
					    "DELAY",
					    "GRACE",
					    "OPENMODE",
					    "DELEG_REVOKED",
					    "no reclaim",
					    "unknown or expired" };
	size_t at = 0;

	*to = '\0';
	for (unsigned i = 0; i < sizeof(word) / sizeof(word[0]) && at < size; i++) {
		if (says >> i & 1)
			at += (size_t)snprintf(to + at, size - at, "%s%s", at ? " or " : "",
					       word[i]);
	}
}

void mach_print_path(const struct mach_event *path, unsigned n)
{
	char text[128];

	for (unsigned i = 0; i < n; i++) {
		mach_tell(text, sizeof(text), path[i]);
		printf("  %2u. %s\n", i + 1, text);
	}
}

struct mach_event mach_turn_event(struct mach_event e, unsigned symmetry)
{
	if ((symmetry & 1) && e.c > 0 && e.kind < MACH_PER_CLIENT)
		e.c = (uint8_t)(3 - e.c);
	if ((symmetry & 2) && e.kind < MACH_PER_FILE)
		e.f = !e.f;
	return e;
}

void mach_turn(struct mach_state *s, unsigned symmetry)
{
	const struct mach_state was = *s;

	for (int c = 0; c < MACH_CLIENTS; c++) {
		const int from = (symmetry & 1) && c > 0 ? 3 - c : c;

		s->life[c] = was.life[from];
		s->flags[c] = was.flags[from];
		for (int f = 0; f < MACH_FILES; f++)
			s->hold[c][f] = was.hold[from][symmetry & 2 ? !f : f];
	}
}

unsigned mach_canonical(struct mach_state *s)
{
	struct mach_state least = *s;
	unsigned by = 0;

	for (unsigned i = 1; i < MACH_SYMMETRIES; i++) {
		struct mach_state t = *s;

		mach_turn(&t, i);
		if (memcmp(&t, &least, sizeof(t)) < 0) {
			least = t;
			by = i;
		}
	}
	*s = least;
	return by;
}

/* A state that was reached, and the first way to it. */
struct node {
	struct mach_state s;
	uint32_t parent;
	uint8_t event, symmetry, depth;
};

static struct {
	struct node *node;
	uint32_t n, room;
	uint32_t *slot; /* number of the node + 1; 0: free */
	uint32_t mask;
} all;

static uint32_t hash(const struct mach_state *s)
{
	const uint8_t *p = (const uint8_t *)s;
	uint64_t h = 0xcbf29ce484222325u;
	uint64_t word;

	for (size_t i = 0; i < sizeof(*s); i += 8) {
		word = 0;
		memcpy(&word, p + i, sizeof(*s) - i < 8 ? sizeof(*s) - i : 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return (uint32_t)(h >> 16);
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void grow(void)
{
	all.mask = all.mask * 2 + 1;
	free(all.slot);
	all.slot = must(calloc((size_t)all.mask + 1, sizeof(*all.slot)));
	for (uint32_t i = 0; i < all.n; i++) {
		uint32_t at = hash(&all.node[i].s) & all.mask;

		while (all.slot[at])
			at = (at + 1) & all.mask;
		all.slot[at] = i + 1;
	}
}

/* True if the state is new. */
static bool visit(const struct mach_state *s, uint32_t parent, uint8_t event, uint8_t symmetry)
{
	uint32_t at = hash(s) & all.mask;

	for (; all.slot[at]; at = (at + 1) & all.mask) {
		if (memcmp(&all.node[all.slot[at] - 1].s, s, sizeof(*s)) == 0)
			return false;
	}
	if (all.n == all.room) {
		all.room = all.room * 2;
		all.node = must(realloc(all.node, (size_t)all.room * sizeof(*all.node)));
	}
	const uint8_t depth = all.n ? (uint8_t)(all.node[parent].depth + 1) : 0;

	all.slot[at] = all.n + 1;
	all.node[all.n] = (struct node){ *s, parent, event, symmetry, depth };
	all.n++;
	if (all.n > all.mask / 2)
		grow();
	return true;
}

uint32_t mach_number(const struct mach_state *s)
{
	uint32_t at = hash(s) & all.mask;

	for (; all.slot[at]; at = (at + 1) & all.mask) {
		if (memcmp(&all.node[all.slot[at] - 1].s, s, sizeof(*s)) == 0)
			return all.slot[at] - 1;
	}
	return MACH_NONE;
}

const struct mach_state *mach_numbered(uint32_t i)
{
	return &all.node[i].s;
}

unsigned mach_depth(uint32_t i)
{
	return all.node[i].depth;
}

unsigned mach_path(uint32_t to, unsigned last, struct mach_event path[MACH_PATH])
{
	unsigned n = 1, turned = 0, steps = 0;
	uint32_t back[MACH_PATH];

	back[0] = to;
	for (uint32_t i = to; i != 0 && n < MACH_PATH - 1; i = all.node[i].parent)
		back[n++] = all.node[i].parent;
	for (unsigned i = n - 1; i-- > 0;) {
		const struct node *at = &all.node[back[i]];

		path[steps++] = mach_turn_event(mach_event(at->event), turned);
		turned ^= at->symmetry;
	}
	path[steps++] = mach_turn_event(mach_event(last), turned);
	return steps;
}

/* All events in one state. True if an invariant is violated. */
static bool expand(struct mach_found *out, uint32_t at, uint64_t kinds)
{
	const struct mach_state s = all.node[at].s;
	struct mach_outcome o[MACH_OUTCOMES];

	for (unsigned i = 0; i < MACH_EVENTS; i++) {
		const struct mach_event e = mach_event(i);
		const unsigned n = kinds >> e.kind & 1 ? mach_outcomes(&s, e, o) : 0;

		for (unsigned k = 0; k < n; k++) {
			out->violated = mach_step_violates(&s, e, &o[k]);
			if (!out->violated)
				out->violated = mach_violates(&o[k].next);
			if (out->violated) {
				out->steps = mach_path(at, i, out->path);
				return true;
			}
			out->edges++;
			const unsigned by = mach_canonical(&o[k].next);

			visit(&o[k].next, at, (uint8_t)i, (uint8_t)by);
		}
	}
	return false;
}

double mach_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void mach_search(uint64_t kinds, unsigned depth, struct mach_found *out)
{
	const double began = mach_seconds();
	struct mach_state s;
	uint32_t at = 0;

	memset(out, 0, sizeof(*out));
	free(all.node);
	free(all.slot);
	all.n = 0;
	all.room = 1u << 12;
	all.mask = (1u << 13) - 1;
	all.node = must(malloc((size_t)all.room * sizeof(*all.node)));
	all.slot = must(calloc((size_t)all.mask + 1, sizeof(*all.slot)));
	mach_init(&s);
	visit(&s, 0, 0, 0);
	while (out->depth < depth && at < all.n && !out->violated) {
		const uint32_t level = all.n;

		while (at < level && !expand(out, at, kinds))
			at++;
		out->depth += !out->violated;
	}
	out->states = all.n;
	out->all = at == all.n;
	out->seconds = mach_seconds() - began;
}
