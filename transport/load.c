/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/load.h"

#include <stdbool.h>

#include "lib/util.h"

void ev_load_init(struct ev_loop *l, uint64_t now)
{
	l->awake_ns = l->measured_ns = now;
}

void ev_load_wait(struct ev_loop *l, uint64_t now)
{
	if (l->awake_ns)
		l->busy_ns += now - l->awake_ns;
	l->awake_ns = 0;
	l->waits_ns = now;
}

void ev_load_work(struct ev_loop *l, uint64_t now)
{
	if (!l->awake_ns)
		l->awake_ns = now - l->waits_ns < EV_LOAD_SLEEP_NS ? l->waits_ns : now;
}

void ev_load_measure(struct ev_loop *l, uint64_t now)
{
	const uint64_t span = now - l->measured_ns;
	uint64_t busy = l->busy_ns;

	if (l->awake_ns) {
		busy += now - l->awake_ns;
		l->awake_ns = now;
	}
	if (span == 0)
		return;
	busy = rn_min(busy, span);
	l->busy_ns = 0;
	l->measured_ns = now;
	atomic_store_explicit(&l->measured, (unsigned)(busy * EV_LOAD_FULL / span),
			      memory_order_relaxed);
	atomic_store_explicit(&l->expected, 0, memory_order_relaxed);
}

struct rank {
	unsigned load, conns;
};

static struct rank rank_of(const struct ev_loop *l)
{
	const bool idle = ev_load_measured(l) < EV_PLACE_IDLE;

	return (struct rank){ idle ? 0 : ev_load_expected(l),
			      atomic_load_explicit(&l->conns, memory_order_relaxed) };
}

static bool ev_rank_is_better(struct rank a, struct rank b)
{
	return a.load < b.load || (a.load == b.load && a.conns < b.conns);
}

unsigned ev_place(struct ev_loop *const *loops, unsigned n)
{
	struct rank best = rank_of(loops[0]);
	unsigned at = 0;

	for (unsigned i = 1; i < n; i++) {
		const struct rank r = rank_of(loops[i]);

		if (ev_rank_is_better(r, best)) {
			best = r;
			at = i;
		}
	}
	ev_load_join(loops[at]);
	ev_load_expect(loops[at], EV_LOAD_NEW);
	return at;
}

unsigned ev_place_least(struct ev_loop *const *loops, unsigned n)
{
	unsigned at = 0;

	for (unsigned i = 1; i < n; i++)
		if (ev_load_expected(loops[i]) < ev_load_expected(loops[at]))
			at = i;
	return at;
}
