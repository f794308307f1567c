/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl trace. A tool that is interrupted leaves the end of its trace to the server's patience. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/ctl.h"
#include "ctl/ctl_options.h"
#include "ctl/print.h"
#include "ctl/put_json.h"
#include "ctl/ctl_table.h"
#include "ctl/uri.h"
#include "lib/clock.h"
#include "lib/util.h"

#define PAUSE_NS 100000000 /* between two questions for calls */
#define LINE_MAX_ 1024u	   /* bytes of the names of a COMPOUND's operations */

struct choice {
	const char *client, *export, *operation, *slower;
	bool errors;
	uint64_t count, seconds; /* 0: no end */
};

struct run {
	const struct ctl *ctl; /* without --json: each answer is looked at */
	const struct choice *choice;
	bool json;
	char id[24];
	uint64_t shown;
	uint64_t end_ns; /* 0: none */
	bool more;	 /* the server has more calls */
};

static int ctl_trace_no_memory(void)
{
	fputs("ringnfsctl: out of memory\n", stderr);
	return CTL_UNREACHABLE;
}

static const char *ctl_trace_text(const json_t *from, const char *name)
{
	return json_string_value(json_object_get(from, name));
}

static uint64_t ctl_trace_number(const json_t *from, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(from, name));
}

/* A whole number above 0. False: it is none, which is printed. */
static bool read_number(const char *option, const char *value, uint64_t *out)
{
	char *end;

	if (!value)
		return true;
	errno = 0;
	*out = strtoull(value, &end, 10);
	if (*value >= '0' && *value <= '9' && !*end && !errno && *out > 0)
		return true;
	fprintf(stderr, "ringnfsctl: trace: %s takes a number above 0, and not '%s'\n", option,
		value);
	return false;
}

/* A time with its unit, as nanoseconds. */
static bool read_time(const char *value, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	const double n = strtod(value, &end);

	for (size_t i = 0; end > value && i < rn_array_size(units); i++) {
		if (strcmp(end, units[i].name) != 0 || !(n >= 0) || n * units[i].ns > 1e18)
			continue;
		*ns = (uint64_t)(n * units[i].ns);
		return true;
	}
	fprintf(stderr,
		"ringnfsctl: trace: --slower-than takes a time such as 10ms, and not '%s'\n",
		value);
	return false;
}

static bool ctl_trace_read_choice(int argc, char **argv, struct choice *c)
{
	const char *count = NULL, *seconds = NULL;
	const struct ctl_option options[] = {
		{ "client", &c->client, NULL },	      { "export", &c->export, NULL },
		{ "operation", &c->operation, NULL }, { "error", NULL, &c->errors },
		{ "slower-than", &c->slower, NULL },  { "count", &count, NULL },
		{ "seconds", &seconds, NULL },
	};
	const int left = ctl_options(options, rn_array_size(options), argc, argv);

	if (left > 1)
		fprintf(stderr, "ringnfsctl: trace takes options only, and not '%s'\n", argv[1]);
	return left == 1 && read_number("--count", count, &c->count) &&
	       read_number("--seconds", seconds, &c->seconds);
}

static char *start_uri(const struct choice *c, uint64_t slower_ns)
{
	char *uri = uri_new("/v1/trace"), ns[24];

	if (c->client)
		uri = uri_add(uri, "client", c->client);
	if (c->export)
		uri = uri_add(uri, "export", c->export);
	if (c->operation)
		uri = uri_add(uri, "operation", c->operation);
	if (c->errors)
		uri = uri_add(uri, "errors", "1");
	snprintf(ns, sizeof(ns), "%" PRIu64, slower_ns);
	return slower_ns ? uri_add(uri, "slower_ns", ns) : uri;
}

static int ctl_trace_start(struct run *r)
{
	uint64_t slower_ns = 0;
	json_t *answer = NULL;

	if (r->choice->slower && !read_time(r->choice->slower, &slower_ns))
		return CTL_USAGE;
	char *uri = start_uri(r->choice, slower_ns);

	if (!uri)
		return ctl_trace_no_memory();
	const int status = ctl_post(r->ctl, uri, NULL, &answer);

	snprintf(r->id, sizeof(r->id), "%" PRIu64, ctl_trace_number(answer, "id"));
	json_decref(answer);
	free(uri);
	return status;
}

/* The time of day here. */
static void print_clock(const char *utc)
{
	struct tm tm = { 0 };
	const char *fraction = utc ? strchr(utc, '.') : NULL;

	if (!fraction || !strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm)) {
		printf("%-15s ", "?");
		return;
	}
	const time_t t = timegm(&tm);

	localtime_r(&t, &tm);
	printf("%02d:%02d:%02d%.7s ", tm.tm_hour, tm.tm_min, tm.tm_sec, fraction);
}

/* Operations of a COMPOUND, or the procedure. */
static void name_call(const json_t *call, char out[LINE_MAX_])
{
	const json_t *list = json_object_get(call, "operations"), *op;
	const uint64_t total = ctl_trace_number(call, "operations_total");
	size_t i, len = 0;

	snprintf(out, LINE_MAX_, "%s", ctl_trace_text(call, "procedure"));
	json_array_foreach(list, i, op)
	{
		const int n = snprintf(out + len, LINE_MAX_ - len, "%s%s", i ? " " : "",
				       json_string_value(op));

		len = rn_min(len + (size_t)n, LINE_MAX_ - 1);
	}
	if (total > json_array_size(list))
		snprintf(out + len, LINE_MAX_ - len, " (and %" PRIu64 " more)",
			 total - json_array_size(list));
}

static void print_file(const json_t *call)
{
	const char *path = ctl_trace_text(call, "path"), *export = ctl_trace_text(call, "export");
	char *safe = table_safe_text(path ? path : export ? export : "");

	if (path)
		printf("  %s", safe ? safe : "?");
	else if (export)
		printf("  %s:%s", safe ? safe : "?", ctl_trace_text(call, "handle"));
	else if (ctl_trace_text(call, "handle"))
		printf("  %s", ctl_trace_text(call, "handle"));
	free(safe);
}

static void print_call(const json_t *call)
{
	char what[LINE_MAX_], time[PRINT_MAX], in[PRINT_MAX], out[PRINT_MAX], version[32];

	print_clock(ctl_trace_text(call, "time"));
	name_call(call, what);
	snprintf(version, sizeof(version), "%s%s",
		 strcmp(ctl_trace_text(call, "program"), "nfs") ? ctl_trace_text(call, "program")
								: "",
		 ctl_trace_text(call, "version"));
	printf("%-15s %-5s %-9s %10s %10s %10s  %s", ctl_trace_text(call, "client"), version,
	       json_is_true(json_object_get(call, "failed")) ? ctl_trace_text(call, "status")
							     : "ok",
	       print_duration(ctl_trace_number(call, "duration_ns"), time),
	       print_size(ctl_trace_number(call, "bytes_in"), in),
	       print_size(ctl_trace_number(call, "bytes_out"), out), what);
	print_file(call);
	if (json_object_get(call, "waited_ms"))
		printf("  (waited %" PRIu64 " ms for %s)", ctl_trace_number(call, "waited_ms"),
		       ctl_trace_text(call, "waited_for"));
	putchar('\n');
}

static bool is_whole(const json_t *call)
{
	return ctl_trace_text(call, "client") && ctl_trace_text(call, "program") &&
	       ctl_trace_text(call, "version") && ctl_trace_text(call, "status") &&
	       ctl_trace_text(call, "procedure");
}

static bool ctl_trace_is_over(const struct run *r)
{
	return (r->choice->count && r->shown >= r->choice->count) ||
	       (r->end_ns && rn_now_ns() >= r->end_ns);
}

static void ctl_trace_show(struct run *r, const json_t *answer)
{
	const uint64_t lost = ctl_trace_number(answer, "lost");
	const json_t *call;
	size_t i;

	json_array_foreach(json_object_get(answer, "calls"), i, call)
	{
		if (r->choice->count && r->shown >= r->choice->count)
			break;
		r->shown++;
		if (r->json) {
			put_json(call, JSON_COMPACT);
			putchar('\n');
		} else if (is_whole(call)) {
			print_call(call);
		}
	}
	fflush(stdout);
	if (lost)
		fprintf(stderr,
			"ringnfsctl: %" PRIu64 " calls were not shown: they came faster than they "
			"could be kept\n",
			lost);
	r->more = json_is_true(json_object_get(answer, "more"));
}

static int poll_once(struct run *r)
{
	char *uri = uri_add(uri_new("/v1/trace"), "id", r->id);
	json_t *answer = NULL;

	if (!uri)
		return ctl_trace_no_memory();
	const int status = ctl_get(r->ctl, uri, &answer);

	free(uri);
	if (status == CTL_DONE)
		ctl_trace_show(r, answer);
	json_decref(answer);
	return status;
}

static int ctl_trace_stop(const struct run *r)
{
	char *uri = uri_add(uri_new("/v1/trace/stop"), "id", r->id);
	json_t *answer = NULL;

	if (!uri)
		return ctl_trace_no_memory();
	const int status = ctl_post(r->ctl, uri, NULL, &answer);

	json_decref(answer);
	free(uri);
	return status;
}

int ctl_trace(const struct ctl *ctl, int argc, char **argv)
{
	const struct ctl plain = { .socket = ctl->socket };
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct choice choice = { .count = 0 };
	struct run r = { .ctl = &plain, .choice = &choice, .json = ctl->json };

	if (!ctl_trace_read_choice(argc, argv, &choice))
		return CTL_USAGE;
	int status = ctl_trace_start(&r);

	if (status != CTL_DONE)
		return status;
	if (choice.seconds)
		r.end_ns = rn_now_ns() + choice.seconds * RN_NS_PER_SECOND;
	while (!ctl_trace_is_over(&r) && !ferror(stdout)) {
		if (!r.more)
			nanosleep(&pause, NULL);
		status = poll_once(&r);
		if (status != CTL_DONE)
			return status;
	}
	return ctl_trace_stop(&r);
}
