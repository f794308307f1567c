/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clocks. rn_now_* are monotonic, from an arbitrary start: for intervals and deadlines, the unit is
 * in the name. rn_wall_* are the time of day in nanoseconds since 1970, which may jump. The coarse
 * ones are behind by up to a tick (10 ms at most) and cost less: not to be compared with the others.
 */
#ifndef RN_CLOCK_H
#define RN_CLOCK_H

#include <stdint.h>
#include <time.h>

#define RN_NS_PER_SECOND UINT64_C(1000000000)
#define RN_NS_PER_MS UINT64_C(1000000)
#define RN_MS_PER_SECOND UINT64_C(1000)

static inline struct timespec rn_clock_read(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts;
}

static inline uint64_t rn_clock_ns(clockid_t id)
{
	struct timespec ts = rn_clock_read(id);

	return (uint64_t)ts.tv_sec * RN_NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

static inline uint64_t rn_now_ns(void)
{
	return rn_clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t rn_now_ms(void)
{
	return rn_clock_ns(CLOCK_MONOTONIC) / RN_NS_PER_MS;
}

static inline uint64_t rn_now_seconds(void)
{
	return (uint64_t)rn_clock_read(CLOCK_MONOTONIC).tv_sec;
}

static inline uint64_t rn_now_coarse_seconds(void)
{
	return (uint64_t)rn_clock_read(CLOCK_MONOTONIC_COARSE).tv_sec;
}

/* The deadline that is so many seconds away, for pthread_cond_timedwait on CLOCK_MONOTONIC. */
static inline struct timespec rn_after_seconds(unsigned seconds)
{
	struct timespec ts = rn_clock_read(CLOCK_MONOTONIC);

	ts.tv_sec += seconds;
	return ts;
}

/* The same in milliseconds, fewer than a second. */
static inline struct timespec rn_after_ms(unsigned ms)
{
	struct timespec ts = rn_clock_read(CLOCK_MONOTONIC);

	ts.tv_nsec += (long)(ms * RN_NS_PER_MS);
	ts.tv_sec += ts.tv_nsec / (long)RN_NS_PER_SECOND;
	ts.tv_nsec %= (long)RN_NS_PER_SECOND;
	return ts;
}

/* Sleeps; a signal may end it earlier. */
static inline void rn_sleep_ms(unsigned ms)
{
	const struct timespec ts = { ms / 1000, (long)(ms % 1000 * RN_NS_PER_MS) };

	nanosleep(&ts, NULL);
}

static inline uint64_t rn_wall_ns(void)
{
	return rn_clock_ns(CLOCK_REALTIME);
}

/* The clock that Linux takes the times of files from. */
static inline uint64_t rn_wall_coarse_ns(void)
{
	return rn_clock_ns(CLOCK_REALTIME_COARSE);
}

#endif
