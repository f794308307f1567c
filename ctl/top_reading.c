/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/top_reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ctl/metrics_text.h"
#include "lib/util.h"

#define TOP_COMPOUND "COMPOUND"

/* Sums of samples of one name, of all or of those with one value of a label. */
static const struct {
	const char *name, *label, *value; /* label NULL: all */
	size_t offset;			  /* of a double in struct top_reading */
} sums[] = {
#define SUM(name, label, value, member)                                                            \
	{                                                                                          \
		"ringnfs_" name, label, value, offsetof(struct top_reading, member)                \
	}
	SUM("start_time_seconds", NULL, NULL, started),
	SUM("read_bytes_total", NULL, NULL, read),
	SUM("written_bytes_total", NULL, NULL, written),
	SUM("connections", "transport", "tcp", tcp),
	SUM("connections", "transport", "rdma", rdma),
	SUM("nfs4_clients", NULL, NULL, clients),
	SUM("nfs4_clients", "state", "courtesy", clients_idle),
	SUM("nfs4_state", "kind", "open", opens),
	SUM("nfs4_state", "kind", "lock", locks),
	SUM("nfs4_state", "kind", "delegation", delegations),
	SUM("exports", NULL, NULL, exports),
	SUM("process_open_fds", NULL, NULL, descriptors),
	SUM("memory_used_bytes", NULL, NULL, memory),
	SUM("memory_limit_bytes", NULL, NULL, memory_limit),
	SUM("workers", NULL, NULL, workers),
	SUM("workers", "state", "busy", workers_busy),
	SUM("stuck_threads", NULL, NULL, stuck),
#undef SUM
};

/* A label may be anything, and a terminal would take some bytes for commands. */
static void copy_name(char to[TOP_NAME_MAX], const char *from)
{
	snprintf(to, TOP_NAME_MAX, "%s", from);
	for (char *p = to; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
}

/* NULL: there is no room. */
static struct top_operation *operation_of(struct top_reading *r, const char *of_version,
					  const char *of_name)
{
	char version[TOP_NAME_MAX], name[TOP_NAME_MAX];

	copy_name(version, of_version);
	copy_name(name, of_name);
	for (unsigned i = 0; i < r->noperations; i++)
		if (strcmp(r->operations[i].name, name) == 0 &&
		    strcmp(r->operations[i].version, version) == 0)
			return &r->operations[i];
	if (r->noperations == TOP_OPERATIONS_MAX)
		return NULL;
	struct top_operation *op = &r->operations[r->noperations++];

	memcpy(op->version, version, sizeof(version));
	memcpy(op->name, name, sizeof(name));
	return op;
}

static void top_operation_add_calls(struct top_operation *op, const struct metrics_sample *s)
{
	const char *status = metrics_label(s, "status");

	op->calls += s->value;
	if (*status && strcmp(status, "OK") != 0)
		op->errors += s->value;
}

static void add_bucket(struct top_reading *r, struct top_operation *op,
		       const struct metrics_sample *s)
{
	const double bound = strtod(metrics_label(s, "le"), NULL);
	unsigned i = 0;

	while (i < r->nbounds && r->bounds[i] != bound)
		i++;
	if (i == TOP_BOUNDS_MAX)
		return;
	if (i == r->nbounds)
		r->bounds[r->nbounds++] = bound;
	op->within[i] += s->value;
}

/* Families by operation. COMPOUND has families of its own, of which the count tells how often it was called. */
static const struct {
	const char *name;
	bool compound, bucket;
} families[] = {
	{ "ringnfs_calls_total", false, false },
	{ "ringnfs_call_duration_seconds_bucket", false, true },
	{ "ringnfs_compound_duration_seconds_count", true, false },
	{ "ringnfs_compound_duration_seconds_bucket", true, true },
};

static void top_reading_add_operation(struct top_reading *r, const struct metrics_sample *s)
{
	size_t i = 0;

	while (i < rn_array_size(families) && strcmp(s->name, families[i].name) != 0)
		i++;
	if (i == rn_array_size(families))
		return;
	struct top_operation *op =
		operation_of(r, metrics_label(s, "version"),
			     families[i].compound ? TOP_COMPOUND : metrics_label(s, "operation"));

	if (op && families[i].bucket)
		add_bucket(r, op, s);
	else if (op)
		top_operation_add_calls(op, s);
}

static void top_reading_add(struct top_reading *r, const struct metrics_sample *s)
{
	top_reading_add_operation(r, s);
	if (strcmp(s->name, "ringnfs_build_info") == 0)
		copy_name(r->version, metrics_label(s, "version"));
	else if (strcmp(s->name, "ringnfs_grace_active") == 0)
		r->grace = s->value != 0;
	for (size_t i = 0; i < rn_array_size(sums); i++)
		if (strcmp(s->name, sums[i].name) == 0 &&
		    (!sums[i].label || strcmp(metrics_label(s, sums[i].label), sums[i].value) == 0))
			*(double *)((char *)r + sums[i].offset) += s->value;
}

bool top_read(struct top_reading *r, char *text, double seconds)
{
	struct metrics_sample s;
	bool ours = false;

	memset(r, 0, sizeof(*r));
	r->seconds = seconds;
	while (metrics_next(&text, &s)) {
		ours = ours || strncmp(s.name, "ringnfs_", 8) == 0;
		top_reading_add(r, &s);
	}
	return ours;
}

bool top_is_compound(const struct top_operation *op)
{
	return strcmp(op->name, TOP_COMPOUND) == 0;
}

bool top_is_part(const struct top_operation *op)
{
	return op->version[0] == '4' && !top_is_compound(op) && strcmp(op->name, "NULL") != 0;
}
