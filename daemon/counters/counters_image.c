/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters on their way to the next program (lib/image.h), so that who watches them sees no reset. Each counter goes by the names that it is shown by. A counter that the
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

#define NAME_SIZE 64u /* of a version or an operation, with the NUL; no program has longer ones */
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

/* Takes the next pair. False: there is none. */
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

/* The places of all counters, sorted by their names. */
struct places_index {
	struct counters_place *place; /* the caller's to free */
	size_t n, size;
	int rc;
};

static void index_place(void *ctx, const struct counters_place *place)
{
	struct places_index *index = ctx;

	if (!index->rc && index->n == index->size) {
		const size_t size = index->size ? 2 * index->size : 512;
		struct counters_place *more = realloc(index->place, size * sizeof(*more));

		index->rc = more ? 0 : -ENOMEM;
		index->size = more ? size : index->size;
		index->place = more ? more : index->place;
	}
	if (!index->rc)
		index->place[index->n++] = *place;
}

static int compare_place_names(const void *left, const void *right)
{
	const struct counters_place *a = left, *b = right;
	int rc = (int)a->kind - (int)b->kind;

	if (rc == 0)
		rc = strcmp(a->version, b->version);
	return rc ? rc : strcmp(a->operation, b->operation);
}

/* Operations with the same names are in their order, procedures in the opposite one: that which counts the unknown ones comes first. */
static int compare_places(const void *left, const void *right)
{
	const struct counters_place *a = left, *b = right;
	const int rc = compare_place_names(a, b);
	const int order = (a->counter > b->counter) - (a->counter < b->counter);

	return rc ? rc : a->kind == COUNTERS_OP ? order : -order;
}

/* Sorts, and keeps the first of each name. */
static void sort_places(struct places_index *index)
{
	size_t n = 0;

	qsort(index->place, index->n, sizeof(*index->place), compare_places);
	for (size_t i = 0; i < index->n; i++)
		if (n == 0 || compare_place_names(&index->place[n - 1], &index->place[i]) != 0)
			index->place[n++] = index->place[i];
	index->n = n;
}

/* True if the bytes are a text, which is copied to out. */
static bool text_of_bytes(const struct image_bytes *bytes, char *out, size_t size)
{
	if (!bytes->at || bytes->len >= size || memchr(bytes->at, 0, bytes->len))
		return false;
	memcpy(out, bytes->at, bytes->len);
	out[bytes->len] = '\0';
	return true;
}

/* NULL: this program has no counter of these names. */
static const struct counters_place *place_of_row(const struct places_index *index,
						 const struct saved_row *s)
{
	char version[NAME_SIZE], operation[NAME_SIZE];
	const struct counters_place key = {
		.kind = (enum counters_kind)s->kind,
		.version = version,
		.operation = operation,
	};

	if (!text_of_bytes(&s->version, version, sizeof(version)) ||
	    !text_of_bytes(&s->operation, operation, sizeof(operation)))
		return NULL;
	return bsearch(&key, index->place, index->n, sizeof(key), compare_place_names);
}

static int load_row(const struct places_index *index, struct image_at *at)
{
	struct saved_row s = { .kind = 0 };
	struct pair p;
	const int rc = image_get(at, &saved_row_kind, &s);
	const struct counters_place *to = rc ? NULL : place_of_row(index, &s);

	if (!to)
		return rc;
	load_times(to->counter, &s);
	if (to->untimed)
		*to->untimed += s.untimed;
	while (next_pair(&s.failures, &p))
		to->failures[to->nfailures == 1 ? 0 : place_of(p.of)] += p.n;
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

static int load_rows(struct counters *c, const struct places_index *index, struct image_at *at)
{
	int rc = 0;

	while (rc == 0 && image_next(at)) {
		if (image_next(at) == saved_row_kind.kind)
			rc = load_row(index, at);
		else if (image_next(at) == saved_export_kind.kind)
			rc = load_export(c, at);
		else
			rc = image_skip(at);
	}
	return rc;
}

int counters_load(struct counters *c, struct image_reader *image)
{
	struct places_index index = { .n = 0 };
	struct image_at at;

	if (!image_enter(image, COUNTERS_SECTION, &at))
		return 0;
	counters_each_place(c, index_place, &index);
	if (!index.rc) {
		sort_places(&index);
		index.rc = load_rows(c, &index, &at);
	}
	free(index.place);
	return index.rc;
}
