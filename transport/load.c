/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/load.h"

#include "lib/util.h"

void ev_load_init(struct ev_load *l, uint64_t now)
{
	*l = (struct ev_load){ .awake_ns = now, .measured_ns = now };
}

void ev_load_wait(struct ev_load *l, uint64_t now)
{
	if (l->awake_ns)
		l->busy_ns += now - l->awake_ns;
	l->awake_ns = 0;
	l->waits_ns = now;
}

void ev_load_work(struct ev_load *l, uint64_t now)
{
	if (!l->awake_ns)
		l->awake_ns = now - l->waits_ns < EV_LOAD_SLEEP_NS ? l->waits_ns : now;
}

void ev_load_measure(struct ev_load *l, uint64_t now)
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
