/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl drain: nothing new is given, and what is held is waited for. The server remembers it, not the tool. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/ctl.h"
#include "ctl/ctl_options.h"
#include "ctl/pages.h"
#include "ctl/put_json.h"
#include "ctl/rows.h"
#include "ctl/uri.h"
#include "lib/clock.h"
#include "lib/util.h"

#define PAUSE_NS 500000000L
#define SECONDS_MOST 31536000u

struct draining {
	const struct ctl *ctl;
	struct ctl plain; /* without --json, to ask by */
	const char *export;
	bool waits_for_ever;
	uint64_t deadline_ns;
	bool free_before; /* nothing was held at the last look */
	char *printed;	  /* what was held when it was last printed */
};

/* True if something is held, or that is not known. */
static bool is_held(const json_t *answer)
{
	const json_t *held = json_object_get(answer, "held");

	return !json_is_object(held) || pages_number(held, "opens") + pages_number(held, "locks") +
							pages_number(held, "delegations") +
							pages_number(held, "nlm_owners") >
						0;
}

static void drain_put_client(struct table *t, const json_t *c)
{
	static const char *const numbers[] = { "opens", "locks", "delegations" };

	table_cell(t, pages_text(c, "client"));
	table_cell(t, pages_text(c, "address"));
	for (size_t i = 0; i < rn_array_size(numbers); i++)
		table_cellf(t, "%" PRIu64, pages_number(c, numbers[i]));
}

static int drain_print_clients(const json_t *clients)
{
	static const struct table_column columns[] = { { "CLIENT", false },
						       { "ADDRESS", false },
						       { "OPENS", true },
						       { "LOCKS", true },
						       { "DELEGATIONS", true } };
	static const struct rows_shape shape = { columns, rn_array_size(columns),
						 drain_put_client };
	const int status = rows_print(&shape, clients, stdout);

	fflush(stdout);
	return status;
}

static int drain_print_held(const json_t *answer)
{
	const json_t *held = json_object_get(answer, "held");

	if (!json_is_object(held)) {
		puts("the server cannot count now what is held");
		return CTL_DONE;
	}
	printf("held: %" PRIu64 " opens, %" PRIu64 " locks and %" PRIu64
	       " delegations of NFSv4, locks of %" PRIu64 " owners of NFSv3\n",
	       pages_number(held, "opens"), pages_number(held, "locks"),
	       pages_number(held, "delegations"), pages_number(held, "nlm_owners"));
	return drain_print_clients(json_object_get(held, "clients"));
}

/* Prints what is held, unless it is the same as before. */
static int drain_report_held(struct draining *d, const json_t *answer)
{
	char *held = json_dumps(json_object_get(answer, "held"), JSON_COMPACT | JSON_ENCODE_ANY);
	const bool same = held && d->printed && strcmp(held, d->printed) == 0;

	free(d->printed);
	d->printed = held;
	return same || d->ctl->json ? CTL_DONE : drain_print_held(answer);
}

static void drain_print_json(const json_t *answer)
{
	put_json(answer, JSON_INDENT(2));
	putchar('\n');
}

/* *over is set when there is nothing more to wait for: nothing is held at two looks, as a call that began before the
 * drain may have been under way at the first. */
static int drain_look_at(struct draining *d, const json_t *answer, bool *over)
{
	const bool active = json_is_true(json_object_get(answer, "active"));
	const bool held = active && is_held(answer), first = !held && !d->free_before;
	int status = CTL_DONE;

	d->free_before = !held;
	*over = !active || !first;
	if (!*over)
		return CTL_DONE;
	if (!active) {
		fputs("ringnfsctl: the drain was cancelled, or the server was started anew\n",
		      stderr);
		return CTL_REFUSED;
	}
	if (held)
		status = drain_report_held(d, answer);
	if (status == CTL_DONE && held && !d->waits_for_ever && rn_now_ns() >= d->deadline_ns) {
		fputs("ringnfsctl: this is held still; clients get nothing new until "
		      "ringnfsctl drain --cancel\n",
		      stderr);
		status = CTL_HELD;
	} else if (status == CTL_DONE && held) {
		*over = false;
	}
	if (*over && d->ctl->json)
		drain_print_json(answer);
	else if (*over && !held)
		puts("drained: nothing is held; clients get nothing new until ringnfsctl drain "
		     "--cancel");
	return status;
}

static char *uri_of(const char *path, const char *export)
{
	char *uri = uri_new(path);

	return export ? uri_add(uri, "export", export) : uri;
}

static int drain_wait_for_end(struct draining *d)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	char *uri = uri_of("/v1/drain", d->export);
	bool over = false;
	json_t *answer;
	int status = uri ? ctl_post(&d->plain, uri, NULL, &answer) : pages_no_memory();

	while (uri && status == CTL_DONE) {
		status = drain_look_at(d, answer, &over);
		json_decref(answer);
		if (status != CTL_DONE || over)
			break;
		nanosleep(&pause, NULL);
		status = ctl_get(&d->plain, uri, &answer);
	}
	free(uri);
	free(d->printed);
	return status;
}

static int cancel(const struct ctl *ctl, const char *export)
{
	char *uri = uri_of("/v1/drain/cancel", export);
	json_t *answer = NULL;
	const int status = uri ? ctl_post(ctl, uri, NULL, &answer) : pages_no_memory();

	free(uri);
	if (status == CTL_DONE && answer)
		printf("clients get opens and locks again%s%s\n", export ? " of " : "",
		       export ? export : "");
	json_decref(answer);
	return status;
}

/* False: it is no number of seconds. */
static bool set_timeout(struct draining *d, const char *timeout)
{
	char *end;

	d->waits_for_ever = !timeout;
	if (!timeout)
		return true;
	errno = 0;
	const unsigned long long n = strtoull(timeout, &end, 10);

	d->deadline_ns = rn_now_ns() + n * RN_NS_PER_SECOND;
	return *timeout >= '0' && *timeout <= '9' && !*end && !errno && n <= SECONDS_MOST;
}

int ctl_drain(const struct ctl *ctl, int argc, char **argv)
{
	struct draining d = { .ctl = ctl, .plain = { .socket = ctl->socket } };
	const char *timeout = NULL;
	bool ends = false;
	const struct ctl_option options[] = {
		{ "export", &d.export, NULL },
		{ "timeout", &timeout, NULL },
		{ "cancel", NULL, &ends },
	};
	const int left = ctl_options(options, rn_array_size(options), argc, argv);

	if (left < 0)
		return CTL_USAGE;
	if (left > 1 || (ends && timeout) || !set_timeout(&d, timeout)) {
		fputs("usage: ringnfsctl drain [--export PATH] [--timeout SECONDS | --cancel]\n",
		      stderr);
		return CTL_USAGE;
	}
	return ends ? cancel(ctl, d.export) : drain_wait_for_end(&d);
}
