/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/lanes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define IDS 4096u /* most exports; further ones use lane 0 */
#define KNOWN (1ull << 63)
#define SLOW_NS 1000000000ull

struct lane {
	_Atomic bool blocked, doubted;
	_Atomic bool foreign;	     /* some file system of the lane is not local */
	_Atomic uint64_t slow_until; /* rn_now_ns */
	_Atomic uint64_t dev;
	char *path; /* of the export that was put last; under the lock */
};

struct lanes {
	pthread_mutex_t lock; /* guards changes */
	unsigned n;	      /* lanes that have a file system, and lane 0 */
	struct lane lane[RPC_LANES];
	_Atomic uint64_t
		id[IDS]; /* open addressing: KNOWN, lane << 32, export id; none is removed */
};

struct lanes *lanes_new(void)
{
	struct lanes *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	l->n = 1;
	return l;
}

void lanes_free(struct lanes *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < RPC_LANES; i++)
		free(l->lane[i].path);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Under the lock. */
static unsigned lane_of_device(struct lanes *l, dev_t dev)
{
	for (unsigned i = 1; i < l->n; i++)
		if (atomic_load(&l->lane[i].dev) == dev)
			return i;
	if (l->n == RPC_LANES)
		return 1 + (unsigned)(dev % (RPC_LANES - 1));
	atomic_store(&l->lane[l->n].dev, dev);
	return l->n++;
}

static unsigned lanes_place_of(uint32_t id, unsigned i)
{
	return ((id ^ id >> 16) * 0x9e3779b1u + i) % IDS;
}

void lanes_put(struct lanes *l, const struct lanes_export *e)
{
	pthread_mutex_lock(&l->lock);
	const unsigned lane = lane_of_device(l, e->dev);
	const uint64_t entry = KNOWN | (uint64_t)lane << 32 | e->id;

	if (!e->local)
		atomic_store(&l->lane[lane].foreign, true);
	free(l->lane[lane].path);
	l->lane[lane].path = strdup(e->path);
	for (unsigned i = 0; i < IDS; i++) {
		_Atomic uint64_t *at = &l->id[lanes_place_of(e->id, i)];
		const uint64_t is = atomic_load(at);

		if (!is || (uint32_t)is == e->id) {
			atomic_store(at, entry);
			break;
		}
	}
	pthread_mutex_unlock(&l->lock);
}

unsigned lanes_of(const struct lanes *l, uint32_t export_id)
{
	for (unsigned i = 0; i < IDS; i++) {
		const uint64_t is = atomic_load_explicit(&l->id[lanes_place_of(export_id, i)],
							 memory_order_relaxed);

		if (!is)
			break;
		if ((uint32_t)is == export_id)
			return (unsigned)(is >> 32 & 0xffff);
	}
	return 0;
}

bool lanes_blocked(const struct lanes *l, unsigned lane)
{
	return atomic_load_explicit(&l->lane[lane].blocked, memory_order_relaxed);
}

bool lanes_prompt(const struct lanes *l, unsigned lane, uint64_t now)
{
	const struct lane *at = &l->lane[lane];

	return lane > 0 && !atomic_load_explicit(&at->foreign, memory_order_relaxed) &&
	       !atomic_load_explicit(&at->doubted, memory_order_relaxed) &&
	       now >= atomic_load_explicit(&at->slow_until, memory_order_relaxed);
}

void lanes_was_slow(struct lanes *l, unsigned lane, uint64_t now)
{
	atomic_store_explicit(&l->lane[lane].slow_until, now + SLOW_NS, memory_order_relaxed);
}

void lanes_doubt(struct lanes *l, unsigned lane, bool stuck)
{
	atomic_store_explicit(&l->lane[lane].doubted, stuck, memory_order_relaxed);
}

void lanes_block(struct lanes *l, unsigned lane, bool blocked)
{
	atomic_store(&l->lane[lane].blocked, blocked);
}

void lanes_name(struct lanes *l, unsigned lane, char text[LANES_NAME])
{
	const dev_t dev = atomic_load(&l->lane[lane].dev);

	pthread_mutex_lock(&l->lock);
	const char *path = l->lane[lane].path;

	/* Lane 0 has the calls that name no file, such as MNT. */
	if (lane == 0)
		snprintf(text, LANES_NAME, "a file system that a path of the exports leads over");
	else
		snprintf(text, LANES_NAME, "the file system of export %s on device %u:%u",
			 path ? path : "?", major(dev), minor(dev));
	pthread_mutex_unlock(&l->lock);
}
