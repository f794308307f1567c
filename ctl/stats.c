/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl stats */
#include "ctl/stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/ctl_options.h"
#include "ctl/pages.h"
#include "lib/clock.h"
#include "lib/util.h"

#define SECONDS_USUAL 2
#define SECONDS_MOST 86400
#define CLEAR "\033[H\033[J" /* the screen of a terminal */

struct choice {
	enum stats_by by;
	bool watch;
	unsigned seconds;
};

static const char *const words[] = {
	[STATS_BY_OPERATION] = "operation",
	[STATS_BY_EXPORT] = "export",
	[STATS_BY_CLIENT] = "client",
};

static bool read_by(const char *text, enum stats_by *by)
{
	for (size_t i = 0; text && i < rn_array_size(words); i++) {
		if (strcmp(words[i], text) != 0)
			continue;
		*by = (enum stats_by)i;
		return true;
	}
	if (text)
		fprintf(stderr,
			"ringnfsctl: stats: --by takes operation, export or client, and not '%s'\n",
			text);
	return !text;
}

static bool read_seconds(const char *text, unsigned *seconds)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n == 0 || n > SECONDS_MOST) {
		fprintf(stderr, "ringnfsctl: stats: 1 to %d seconds are possible, and not '%s'\n",
			SECONDS_MOST, text);
		return false;
	}
	*seconds = (unsigned)n;
	return true;
}

static bool stats_read_choice(int argc, char **argv, struct choice *c)
{
	const char *by = NULL;
	const struct ctl_option options[] = { { "by", &by, NULL }, { "watch", NULL, &c->watch } };
	const int left = ctl_options(options, rn_array_size(options), argc, argv);

	if (left < 0 || !read_by(by, &c->by))
		return false;
	if (left > (c->watch ? 2 : 1)) {
		fprintf(stderr, "ringnfsctl: stats: one word too many: '%s'%s\n", argv[left - 1],
			c->watch ? "" : "; seconds are for --watch");
		return false;
	}
	return left == 1 || read_seconds(argv[1], &c->seconds);
}

/* Gets the sums. With --json they are printed, and look->rows is NULL. */
static int look_at_sums(const struct ctl *ctl, enum stats_by by, struct stats_look *look)
{
	json_t *answer = NULL;
	const int status = ctl_get(ctl, "/v1/stats", &answer);

	look->time_ns = pages_number(answer, "time_ns");
	look->rows = json_incref(
		json_object_get(answer, by == STATS_BY_EXPORT ? "exports" : "operations"));
	json_decref(answer);
	return status;
}

/* Clients of all versions, in one list. */
static int look_at_clients(const struct ctl *ctl, struct stats_look *look)
{
	const struct pages_query nfs4 = { .path = "/v1/clients", .list = "clients" };
	const struct pages_query nfs3 = { .path = "/v1/nfs3_clients", .list = "nfs3_clients" };
	json_t *more = NULL;
	int status = pages_get(ctl, &nfs4, &look->rows);

	look->time_ns = rn_now_ns();
	if (status == CTL_DONE)
		status = pages_get(ctl, &nfs3, &more);
	if (status == CTL_DONE)
		json_array_extend(look->rows, more);
	json_decref(more);
	return status;
}

static int look_and_print(const struct ctl *ctl, const struct choice *c, struct stats_view *v)
{
	struct stats_look now = { .rows = NULL };
	const bool clients = c->by == STATS_BY_CLIENT;
	int status = clients ? look_at_clients(ctl, &now) : look_at_sums(ctl, c->by, &now);

	json_decref(v->before.rows);
	v->before = v->now;
	v->now = now;
	if (status != CTL_DONE || !now.rows)
		return status;
	if (ctl->json)
		return pages_print_json(&(struct pages_query){ .list = "clients" }, now.rows);
	return stats_print(v);
}

static int stats_watch(const struct ctl *ctl, const struct choice *c, struct stats_view *v)
{
	const struct timespec pause = { .tv_sec = c->seconds };
	const bool terminal = isatty(STDOUT_FILENO) && !ctl->json;
	int status = CTL_DONE;

	while (status == CTL_DONE && !ferror(stdout)) {
		if (terminal)
			fputs(CLEAR, stdout);
		status = look_and_print(ctl, c, v);
		if (!ctl->json)
			putchar('\n');
		fflush(stdout);
		if (status == CTL_DONE)
			nanosleep(&pause, NULL);
	}
	return status;
}

int ctl_stats(const struct ctl *ctl, int argc, char **argv)
{
	struct choice c = { .seconds = SECONDS_USUAL };

	if (!stats_read_choice(argc, argv, &c))
		return CTL_USAGE;
	struct stats_view v = { .by = c.by };
	const int status = c.watch ? stats_watch(ctl, &c, &v) : look_and_print(ctl, &c, &v);

	json_decref(v.now.rows);
	json_decref(v.before.rows);
	return status;
}
