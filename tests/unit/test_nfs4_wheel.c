/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "lib/util.h"
#include "nfs4/recovery/wheel.h"

#define START 1000u
#define MANY 5000u

struct thing {
	struct nfs4_timer timer;
	unsigned fired;
	uint64_t fired_at;
};

static struct nfs4_wheel w;
static uint64_t now;
static unsigned total;

static void start(void)
{
	now = START;
	total = 0;
	nfs4_wheel_init(&w, now);
}

static void stop(void)
{
	nfs4_wheel_fini(&w);
}

TestSuite(wheel, .init = start, .fini = stop);

static void fire(void *ctx, struct nfs4_timer *t)
{
	struct thing *x = rn_container_of(t, struct thing, timer);

	(void)ctx;
	x->fired++;
	x->fired_at = now;
	total++;
}

static void tick_to(uint64_t to)
{
	while (now < to) {
		now++;
		nfs4_wheel_tick(&w, now, fire, NULL);
	}
}

static struct thing *thing(uint64_t due)
{
	struct thing *x = calloc(1, sizeof(*x));

	nfs4_timer_init(&x->timer);
	nfs4_wheel_add(&w, &x->timer, due);
	return x;
}

Test(wheel, fires_once_at_its_second)
{
	struct thing *x = thing(START + 10);

	tick_to(START + 9);
	cr_assert_eq(x->fired, 0);
	tick_to(START + 600);
	cr_assert_eq(x->fired, 1);
	cr_assert_eq(x->fired_at, START + 10);
	free(x);
}

Test(wheel, what_is_due_already_fires_at_the_next_tick)
{
	struct thing *x = thing(START), *y = thing(3);

	tick_to(START + 1);
	cr_assert_eq(x->fired, 1);
	cr_assert_eq(y->fired, 1);
	free(x);
	free(y);
}

Test(wheel, a_turn_of_the_wheel_and_more_ahead)
{
	const uint64_t ahead[] = { 255, 256, 257, 511, 512, 513, 86400 };
	struct thing *x[rn_array_size(ahead)];

	for (unsigned i = 0; i < rn_array_size(ahead); i++)
		x[i] = thing(START + ahead[i]);
	tick_to(START + 86400);
	for (unsigned i = 0; i < rn_array_size(ahead); i++) {
		cr_assert_eq(x[i]->fired, 1);
		cr_assert_eq(x[i]->fired_at, START + ahead[i]);
		free(x[i]);
	}
}

Test(wheel, put_off_again_and_again)
{
	struct thing *x = thing(START + 10);

	for (unsigned i = 0; i < 1000; i++) {
		nfs4_timer_renew(&x->timer, now + 10);
		tick_to(now + 7);
		cr_assert_eq(x->fired, 0);
	}
	tick_to(now + 2);
	cr_assert_eq(x->fired, 0);
	tick_to(now + 1);
	cr_assert_eq(x->fired, 1);
	free(x);
}

Test(wheel, a_tick_after_a_long_pause_fires_everything_due)
{
	struct thing *x = thing(START + 10), *y = thing(START + 300), *z = thing(START + 1001);

	now = START + 1000;
	nfs4_wheel_tick(&w, now, fire, NULL);
	cr_assert_eq(x->fired, 1);
	cr_assert_eq(y->fired, 1);
	cr_assert_eq(z->fired, 0);
	tick_to(now + 1);
	cr_assert_eq(z->fired, 1);
	free(x);
	free(y);
	free(z);
}

Test(wheel, time_that_stands_still_or_goes_back_fires_nothing)
{
	struct thing *x = thing(START + 1);

	nfs4_wheel_tick(&w, START, fire, NULL);
	nfs4_wheel_tick(&w, START - 5, fire, NULL);
	cr_assert_eq(x->fired, 0);
	tick_to(START + 1);
	cr_assert_eq(x->fired, 1);
	free(x);
}

Test(wheel, cancelled_does_not_fire)
{
	struct thing *x = thing(START + 10), *y = thing(START + 10), *z = thing(START + 10);

	cr_assert(nfs4_wheel_cancel(&w, &y->timer));
	cr_assert_not(nfs4_wheel_cancel(&w, &y->timer));
	tick_to(START + 20);
	cr_assert_eq(y->fired, 0);
	cr_assert_eq(x->fired + z->fired, 2);
	cr_assert_not(nfs4_wheel_cancel(&w, &x->timer));
	nfs4_wheel_add(&w, &y->timer, START + 30);
	tick_to(START + 30);
	cr_assert_eq(y->fired, 1);
	free(x);
	free(y);
	free(z);
}

static void add_again(void *ctx, struct nfs4_timer *t)
{
	fire(ctx, t);
	nfs4_wheel_add(&w, t, now + 5);
}

Test(wheel, may_be_added_when_it_fires)
{
	struct thing *x = thing(START + 5);

	while (now < START + 500)
		nfs4_wheel_tick(&w, ++now, add_again, NULL);
	cr_assert_eq(x->fired, 100);
	cr_assert(nfs4_wheel_cancel(&w, &x->timer));
	free(x);
}

/* Random additions, renewals and cancellations, compared with expiry times computed here. */
Test(wheel, many_against_arithmetic)
{
	struct thing **x = calloc(MANY, sizeof(*x));
	bool *filed = calloc(MANY, sizeof(*filed));
	unsigned gone = 0;

	srandom(7);
	for (unsigned i = 0; i < MANY; i++) {
		x[i] = thing(START + 1 + (unsigned)random() % 700);
		filed[i] = true;
	}
	while (gone < MANY) {
		const unsigned i = (unsigned)random() % MANY;

		if (filed[i] && !x[i]->fired && random() % 2) {
			cr_assert(nfs4_wheel_cancel(&w, &x[i]->timer));
			filed[i] = false;
			gone++;
		} else if (filed[i] && !x[i]->fired && now < START + 400) {
			nfs4_timer_renew(&x[i]->timer, x[i]->timer.due + (unsigned)random() % 300);
		}
		tick_to(now + 1);
		for (unsigned k = 0; k < MANY; k++) {
			const bool due = x[k]->timer.due <= now;

			cr_assert_eq(x[k]->fired, filed[k] && due);
			cr_assert(!x[k]->fired || x[k]->fired_at >= x[k]->timer.due);
		}
		if (now > START + 2000)
			break;
	}
	for (unsigned k = 0; k < MANY; k++)
		free(x[k]);
	free(filed);
	free(x);
}
