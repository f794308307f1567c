/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters on their way to the next program (lib/image.h), so that who watches them sees no reset. Each goes by the names that it is shown by. One that the
 * next program does not have is left out there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/counters/counters.h"
#include "lib/util.h"

#define COUNTERS_SECTION "calls"

struct pair {
	uint64_t of, n;
};

#define STATUS_OTHER UINT64_MAX
#define STATUS_REFUSED (UINT64_MAX - 1)

struct saved_row {
	uint8_t kind; /* enum counters_kind */
	struct image_bytes version, operation;
	uint64_t ok, untimed, sum_ns, max_ns;
	/* Pairs: the first nanosecond beyond a bucket, and those in it; a status, and those that have failed by it. */
	struct image_bytes times, failures;
};
static const struct image_field saved_row_fields[] = {
	IMAGE_NUMBER(1, struct saved_row, kind),     IMAGE_BYTES(2, struct saved_row, version),
	IMAGE_BYTES(3, struct saved_row, operation), IMAGE_NUMBER(4, struct saved_row, ok),
	IMAGE_NUMBER(5, struct saved_row, untimed),  IMAGE_NUMBER(6, struct saved_row, sum_ns),
	IMAGE_NUMBER(7, struct saved_row, max_ns),   IMAGE_BYTES(8, struct saved_row, times),
	IMAGE_BYTES(9, struct saved_row, failures),
};
static const struct image_kind saved_row_kind = { 1, rn_array_size(saved_row_fields),
						  saved_row_fields };

struct saved_export {
	bool further;
	uint32_t id;
	uint64_t read, written;
};
static const struct image_field saved_export_fields[] = {
	IMAGE_NUMBER(1, struct saved_export, further),
	IMAGE_NUMBER(2, struct saved_export, id),
	IMAGE_NUMBER(3, struct saved_export, read),
	IMAGE_NUMBER(4, struct saved_export, written),
};
static const struct image_kind saved_export_kind = { 2, rn_array_size(saved_export_fields),
						     saved_export_fields };

static struct image_bytes bytes_of_text(const char *name)
{
	return (struct image_bytes){ (const uint8_t *)name, (uint32_t)strlen(name) };
}

static struct image_bytes bytes_of_pairs(const struct pair *pairs, unsigned n)
{
	return (struct image_bytes){ (const uint8_t *)pairs, n * (uint32_t)sizeof(struct pair) };
}

static uint64_t status_at(unsigned place)
{
	switch (place) {
	case COUNTERS_STATUS_OTHER:
		return STATUS_OTHER;
	case COUNTERS_STATUS_REFUSED:
		return STATUS_REFUSED;
	default:
		return place < COUNTERS_STATUS_HIGH ? place : place - COUNTERS_STATUS_HIGH + 10000;
	}
}

static unsigned place_of(uint64_t status)
{
	for (unsigned place = 0; place < COUNTERS_STATUSES; place++) {
		if (status_at(place) == status)
			return place;
	}
	return COUNTERS_STATUS_OTHER;
}

static void save_row(void *w, const struct counters_row *row)
{
	struct pair times[RN_HISTOGRAM_BUCKETS], failures[COUNTERS_STATUSES];
	unsigned ntimes = 0, nfailures = 0;

	for (unsigned i = 0; i < RN_HISTOGRAM_BUCKETS; i++) {
		if (row->time.bucket[i])
			times[ntimes++] =
				(struct pair){ rn_histogram_end_ns(i), row->time.bucket[i] };
	}
	for (unsigned i = 0; i < row->nfailures; i++) {
		const uint64_t n = atomic_load_explicit(&row->failures[i], memory_order_relaxed);

		if (n)
			failures[nfailures++] =
				(struct pair){ row->nfailures == 1 ? STATUS_REFUSED : status_at(i),
					       n };
	}
	image_put(w, &saved_row_kind,
		  &(struct saved_row){
			  .kind = (uint8_t)row->kind,
			  .version = bytes_of_text(row->version),
			  .operation = bytes_of_text(row->operation),
			  .ok = row->ok - (row->calls - row->time.count),
			  .untimed = row->calls - row->time.count,
			  .sum_ns = row->time.sum_ns,
			  .max_ns = row->time.max_ns,
			  .times = bytes_of_pairs(times, ntimes),
			  .failures = bytes_of_pairs(failures, nfailures),
		  });
}

static void save_export(void *w, const struct counters_export *row)
{
	image_put(w, &saved_export_kind,
		  &(struct saved_export){ row->further, row->id, row->read, row->written });
}

void counters_save(const struct counters *c, struct image_writer *w)
{
	image_begin(w, COUNTERS_SECTION);
	counters_each(c, save_row, w);
	counters_each_export(c, save_export, w);
}

/* The next program. */

/* The next of the pairs. False: there is none. */
static bool next_pair(struct image_bytes *from, struct pair *out)
{
	if (!from->at || from->len < sizeof(*out))
		return false;
	memcpy(out, from->at, sizeof(*out));
	from->at += sizeof(*out);
	from->len -= (uint32_t)sizeof(*out);
	return true;
}

static void load_times(struct counter *to, struct saved_row *s)
{
	struct pair p;

	while (next_pair(&s->times, &p))
		to->time.bucket[rn_histogram_bucket(p.of - 1)] += p.n;
	to->time.sum_ns += s->sum_ns;
	to->time.max_ns = rn_max(to->time.max_ns, s->max_ns);
	to->ok += s->ok;
}

static int load_row(struct counters *c, struct image_at *at)
{
	struct saved_row s = { .kind = 0 };
	struct counters_place to;
	struct pair p;
	int rc = image_get(at, &saved_row_kind, &s);
	const struct counters_name name = {
		.kind = (enum counters_kind)s.kind,
		.version = s.version,
		.operation = s.operation,
	};

	if (rc != 0 || !counters_find(c, &name, &to))
		return rc;
	load_times(to.counter, &s);
	if (to.untimed)
		*to.untimed += s.untimed;
	while (next_pair(&s.failures, &p))
		to.failures[to.nfailures == 1 ? 0 : place_of(p.of)] += p.n;
	return 0;
}

static int load_export(struct counters *c, struct image_at *at)
{
	struct saved_export s = { .id = 0 };
	const int rc = image_get(at, &saved_export_kind, &s);

	if (rc != 0)
		return rc;
	struct counters_bytes *to = counters_bytes_of(c, s.further, s.id);

	to->read += s.read;
	to->written += s.written;
	return 0;
}

int counters_load(struct counters *c, struct image_reader *image)
{
	struct image_at at;
	int rc = 0;

	if (!image_enter(image, COUNTERS_SECTION, &at))
		return 0;
	while (rc == 0 && image_next(&at)) {
		if (image_next(&at) == saved_row_kind.kind)
			rc = load_row(c, &at);
		else if (image_next(&at) == saved_export_kind.kind)
			rc = load_export(c, &at);
		else
			rc = image_skip(&at);
	}
	return rc;
}
