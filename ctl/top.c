/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl top: reads GET /metrics again and again, and shows what has happened in between. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/http.h"
#include "ctl/ctl_options.h"
#include "ctl/top_screen.h"
#include "lib/clock.h"
#include "lib/util.h"

#define PATH "/metrics"
#define INTERVAL_MAX 3600
#define INTERVAL 2 /* seconds between readings */
#define PATIENCE 3 /* seconds that the server may be silent; keys wait meanwhile */
#define NS_PER_MILLISECOND 1000000

struct top {
	const struct ctl *ctl;
	unsigned interval;
	struct top_screen *screen;
	struct top_reading readings[2]; /* now is readings[at] */
	unsigned at;
	struct top_rows rows;
	struct top_view view;
	char failure[128];
	uint64_t next_ns; /* time of the next reading */
};

/* 0, or -errno, or a status of HTTP other than 200; the answer is to be freed in each case. */
static int top_ask(const struct top *t, struct http_answer *a)
{
	const struct http_question q = { .method = "GET", .path = PATH, .seconds = PATIENCE };
	const int rc = http_ask(t->ctl->socket, &q, a);

	return rc || a->status == 200 ? rc : a->status;
}

/* Reads into the older of the two. */
static int top_read_metrics(struct top *t)
{
	struct top_reading *r = &t->readings[!t->at];
	struct http_answer a;
	int rc = top_ask(t, &a);

	if (!rc && !top_read(r, a.text + (a.body - a.text), (double)rn_now_ns() / RN_NS_PER_SECOND))
		rc = -EPROTO;
	http_free(&a);
	t->next_ns = rn_now_ns() + t->interval * RN_NS_PER_SECOND;
	return rc;
}

static void tell_failure(struct top *t, int rc)
{
	if (rc > 0)
		snprintf(t->failure, sizeof(t->failure), "status %d", rc);
	else
		snprintf(t->failure, sizeof(t->failure), "%s", strerror(-rc));
	t->view.failure = t->failure;
}

static void sort(struct top *t)
{
	top_sort_rows(&t->rows, t->view.sort);
}

/* Reads, and compares with the reading before. Rows that there are stay if it fails. */
static void top_refresh(struct top *t)
{
	const int rc = top_read_metrics(t);

	if (rc) {
		tell_failure(t, rc);
		return;
	}
	t->at = !t->at;
	t->view.now = &t->readings[t->at];
	t->view.failure = NULL;
	t->view.heard = time(NULL);
	t->view.rows = top_compare(&t->rows, &t->readings[!t->at], t->view.now) ? &t->rows : NULL;
	sort(t);
}

static int left_ms(const struct top *t)
{
	const uint64_t now = rn_now_ns();

	return t->next_ns > now ? (int)((t->next_ns - now) / NS_PER_MILLISECOND) + 1 : 0;
}

/* False: the user wants to leave. */
static bool take_key(struct top *t, enum top_key key)
{
	const unsigned room = top_screen_room(t->screen);

	switch (key) {
	case TOP_QUIT:
		return false;
	case TOP_HELP:
		t->view.help = !t->view.help;
		break;
	case TOP_UP:
		t->view.first -= t->view.first > 0;
		break;
	case TOP_DOWN:
		t->view.first += t->view.first + room < t->rows.n;
		break;
	case TOP_REFRESH:
		t->next_ns = 0;
		break;
	case TOP_SORT:
		t->view.help = false;
		t->view.first = 0;
		sort(t);
		break;
	case TOP_NO_KEY:
	case TOP_OTHER:
		break;
	}
	return true;
}

static void top_run(struct top *t)
{
	for (;;) {
		if (left_ms(t) == 0)
			top_refresh(t);
		top_screen_draw(t->screen, &t->view);
		if (!take_key(t, top_screen_key(t->screen, left_ms(t), &t->view.sort)))
			return;
	}
}

/* The first reading, before the screen is taken: an error is told as other commands do it. */
static int top_begin(struct top *t)
{
	struct http_answer a;
	const int rc = top_ask(t, &a);
	const int status = rc ? ctl_failed(t->ctl, rc < 0 ? rc : 0, &a) : CTL_DONE;

	http_free(&a);
	if (rc)
		return status;
	top_refresh(t);
	if (t->view.failure)
		return ctl_failed(t->ctl, -EPROTO, NULL);
	t->screen = top_screen_open();
	if (t->screen)
		return CTL_DONE;
	fprintf(stderr, "ringnfsctl: top does not know this terminal (TERM=%s)\n",
		getenv("TERM") ? getenv("TERM") : "");
	return CTL_USAGE;
}

static int top_show(const struct ctl *ctl, unsigned interval)
{
	struct top *t = calloc(1, sizeof(*t));

	if (!t)
		return ctl_failed(ctl, -ENOMEM, NULL);
	t->ctl = ctl;
	t->interval = interval;
	int status = top_begin(t);

	if (status == CTL_DONE)
		top_run(t);
	top_screen_close(t->screen);
	free(t);
	return status;
}

static int top_wrong_usage(const char *text)
{
	fprintf(stderr, "ringnfsctl: %s\n", text);
	return CTL_USAGE;
}

int ctl_top(const struct ctl *ctl, int argc, char **argv)
{
	const char *interval = NULL;
	const struct ctl_option options[] = { { "interval", &interval, NULL } };
	char *end = NULL;

	argc = ctl_options(options, rn_array_size(options), argc, argv);
	if (argc < 0)
		return CTL_USAGE;
	const unsigned long n = interval ? strtoul(interval, &end, 10) : INTERVAL;

	if (n < 1 || n > INTERVAL_MAX || (end && *end))
		return top_wrong_usage("--interval takes seconds, from 1 to 3600");
	if (argc > 1)
		return top_wrong_usage("top takes no argument");
	if (ctl->json)
		return top_wrong_usage("top has no --json: programs ask for " PATH);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return top_wrong_usage("top needs a terminal; see ringnfsctl status");
	setlocale(LC_CTYPE, "");
	return top_show(ctl, (unsigned)n);
}
