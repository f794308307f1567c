/* SPDX-License-Identifier: BSD-2-Clause */
/* A bounded queue of jobs with threads: jobs that never end, hosts with very many, and the stop. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "lib/jobs.h"
#include "lib/util.h"

#define THREADS 4u
#define HOST_THREADS 2u
#define JOBS 256u
#define HOST_JOBS 16u

static const struct rn_jobs_config few = {
	.name = "jobs",
	.threads = THREADS,
	.host_threads = HOST_THREADS,
	.max = JOBS,
	.host_max = HOST_JOBS,
};

struct slow_job {
	struct rn_job job;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool started, released, abandoned, done;
};

static void set(struct slow_job *s, bool *what)
{
	pthread_mutex_lock(&s->lock);
	*what = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void wait_for(struct slow_job *s, const bool *what)
{
	pthread_mutex_lock(&s->lock);
	while (!*what)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void slow_run(struct rn_job *job)
{
	struct slow_job *s = (struct slow_job *)job;

	set(s, &s->started);
	wait_for(s, &s->released);
}

static void slow_abandon(struct rn_job *job)
{
	struct slow_job *s = (struct slow_job *)job;

	set(s, &s->abandoned);
}

static void slow_done(struct rn_job *job)
{
	struct slow_job *s = (struct slow_job *)job;

	cr_expect_eq(job->abandoned, s->abandoned);
	set(s, &s->done);
}

static void slow_init(struct slow_job *s, uint8_t host)
{
	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->job.host.bytes[15] = host;
	s->job.run = slow_run;
	s->job.abandon = slow_abandon;
	s->job.done = slow_done;
}

/* A thread that hangs in its job holds up neither the calls that wait for it nor the stop. */
Test(jobs, a_hung_thread_does_not_hold_the_stop)
{
	struct rn_jobs *a = rn_jobs_new(&few);
	struct slow_job running, queued[2];

	cr_assert_not_null(a);
	slow_init(&running, 1);
	cr_assert(rn_jobs_submit(a, &running.job));
	wait_for(&running, &running.started);
	/* A host has two threads: the second of these waits. */
	for (unsigned i = 0; i < 2; i++) {
		slow_init(&queued[i], 1);
		cr_assert(rn_jobs_submit(a, &queued[i].job));
	}
	wait_for(&queued[0], &queued[0].started);
	set(&queued[0], &queued[0].released);
	wait_for(&queued[0], &queued[0].done);
	wait_for(&queued[1], &queued[1].started);
	cr_expect_not(queued[0].abandoned);
	cr_expect_not(rn_jobs_free(a, 0));
	cr_expect(running.abandoned);
	cr_expect(queued[1].abandoned);
	cr_expect_not(running.done, "its thread is still in its job");
	slow_init(&queued[0], 2);
	cr_expect_not(rn_jobs_submit(a, &queued[0].job), "it is closed");
	set(&running, &running.released);
	set(&queued[1], &queued[1].released);
	wait_for(&running, &running.done);
	cr_expect(rn_jobs_free(a, 60));
}

/* Jobs that no thread has begun are abandoned and done at once. */
Test(jobs, waiting_jobs_end_at_the_stop)
{
	struct rn_jobs *a = rn_jobs_new(&few);
	struct slow_job busy[HOST_THREADS], waiting;

	cr_assert_not_null(a);
	for (unsigned i = 0; i < HOST_THREADS; i++) {
		slow_init(&busy[i], 1);
		cr_assert(rn_jobs_submit(a, &busy[i].job));
		wait_for(&busy[i], &busy[i].started);
	}
	slow_init(&waiting, 1);
	cr_assert(rn_jobs_submit(a, &waiting.job));
	rn_jobs_close(a);
	cr_expect(waiting.done);
	cr_expect(waiting.abandoned);
	cr_expect_not(waiting.started);
	for (unsigned i = 0; i < HOST_THREADS; i++)
		set(&busy[i], &busy[i].released);
	cr_expect(rn_jobs_free(a, 60));
}

/* Sixteen hosts that fill the queue do not keep another out: one that has most loses its oldest job. */
Test(jobs, a_queue_that_sixteen_hosts_fill)
{
	static struct slow_job busy[THREADS], queued[JOBS], more;
	struct rn_jobs *a = rn_jobs_new(&few);
	unsigned pushed_out = 0;

	cr_assert_not_null(a);
	for (unsigned i = 0; i < THREADS; i++) {
		slow_init(&busy[i], (uint8_t)(200 + i));
		cr_assert(rn_jobs_submit(a, &busy[i].job));
		wait_for(&busy[i], &busy[i].started);
	}
	for (unsigned i = 0; i < JOBS; i++) {
		slow_init(&queued[i], (uint8_t)(1 + i / HOST_JOBS));
		cr_assert(rn_jobs_submit(a, &queued[i].job));
	}
	slow_init(&more, 100);
	cr_assert(rn_jobs_submit(a, &more.job));
	for (unsigned i = 0; i < JOBS; i++) {
		pushed_out += queued[i].done;
		cr_expect_eq(queued[i].job.made_room, queued[i].abandoned);
	}
	cr_expect_eq(pushed_out, 1);
	cr_expect(queued[0].done && queued[0].abandoned);
	rn_jobs_close(a);
	for (unsigned i = 0; i < THREADS; i++)
		set(&busy[i], &busy[i].released);
	cr_expect(rn_jobs_free(a, 60));
	cr_expect(more.abandoned);
}

/* Hosts take turns, however many jobs one of them has; and a thread that is started on demand does them all. */
Test(jobs, hosts_take_turns)
{
	const struct rn_jobs_config one = {
		.name = "jobs", .threads = 1, .max = JOBS, .on_demand = true
	};
	static struct slow_job busy, many[100], other;
	struct rn_jobs *a = rn_jobs_new(&one);

	cr_assert_not_null(a);
	slow_init(&busy, 1);
	cr_assert(rn_jobs_submit(a, &busy.job));
	wait_for(&busy, &busy.started);
	for (unsigned i = 0; i < rn_array_size(many); i++) {
		slow_init(&many[i], 1);
		many[i].released = true;
		cr_assert(rn_jobs_submit(a, &many[i].job));
	}
	slow_init(&other, 2);
	cr_assert(rn_jobs_submit(a, &other.job));
	set(&busy, &busy.released);
	wait_for(&other, &other.started);
	cr_expect_not(many[2].started, "the other host's turn was before");
	set(&other, &other.released);
	for (unsigned i = 0; i < rn_array_size(many); i++)
		wait_for(&many[i], &many[i].done);
	cr_expect(many[0].job.ran && !many[0].job.abandoned);
	cr_expect(rn_jobs_free(a, 60));
}

static void again(struct rn_job *job)
{
	struct slow_job *s = (struct slow_job *)job;
	struct rn_jobs *q = *(struct rn_jobs **)(s + 1);

	if (!job->abandoned && !s->released) {
		s->released = true;
		cr_assert(rn_jobs_submit(q, job));
	} else {
		set(s, &s->done);
	}
}

/* done() may submit the job once more. */
Test(jobs, a_job_in_steps)
{
	struct {
		struct slow_job slow;
		struct rn_jobs *q;
	} it;

	it.q = rn_jobs_new(&few);
	cr_assert_not_null(it.q);
	slow_init(&it.slow, 1);
	it.slow.job.run = (void (*)(struct rn_job *))slow_abandon;
	it.slow.job.done = again;
	cr_assert(rn_jobs_submit(it.q, &it.slow.job));
	wait_for(&it.slow, &it.slow.done);
	cr_expect(it.slow.released && it.slow.job.ran);
	cr_expect(rn_jobs_free(it.q, RN_JOBS_FOREVER));
}
