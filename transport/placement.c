/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/placement.h"

#include <stdbool.h>

struct rank {
	unsigned load, conns;
};

static struct rank rank_of(struct ev_loop *loop)
{
	const struct ev_load *l = ev_loop_load(loop);
	const bool idle = ev_load_measured(l) < EV_PLACE_IDLE;

	return (struct rank){ idle ? 0 : ev_load_expected(l),
			      atomic_load_explicit(&l->conns, memory_order_relaxed) };
}

static bool is_better(struct rank a, struct rank b)
{
	return a.load < b.load || (a.load == b.load && a.conns < b.conns);
}

unsigned ev_place(struct ev_loop *const *loops, unsigned n)
{
	struct rank best = rank_of(loops[0]);
	unsigned at = 0;

	for (unsigned i = 1; i < n; i++) {
		const struct rank r = rank_of(loops[i]);

		if (is_better(r, best)) {
			best = r;
			at = i;
		}
	}
	ev_load_join(ev_loop_load(loops[at]));
	ev_load_expect(ev_loop_load(loops[at]), EV_LOAD_NEW);
	return at;
}

unsigned ev_place_least(struct ev_loop *const *loops, unsigned n)
{
	unsigned at = 0;

	for (unsigned i = 1; i < n; i++)
		if (ev_load_expected(ev_loop_load(loops[i])) <
		    ev_load_expected(ev_loop_load(loops[at])))
			at = i;
	return at;
}
