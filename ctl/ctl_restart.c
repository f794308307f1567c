/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl restart */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/ctl.h"
#include "ctl/ctl_options.h"
#include "ctl/http.h"
#include "ctl/pages.h"
#include "ctl/put_json.h"
#include "lib/clock.h"

#define RESTART_SECONDS 120u /* the next program looks at all exports before it serves */
#define PAUSE_NS 20000000

/* The server's word on its restarts; NULL: it does not answer now. */
static json_t *ask_restarts(const struct ctl *ctl)
{
	const struct http_question q = { .method = "GET", .path = "/v1/status" };
	struct http_answer a;
	json_t *restart = NULL;

	if (http_ask(ctl->socket, &q, &a) == 0) {
		json_t *status = json_loadb(a.body, a.body_len, 0, NULL);

		restart = json_incref(json_object_get(status, "restart"));
		json_decref(status);
	}
	http_free(&a);
	return restart;
}

static int print_restart(const struct ctl *ctl, const json_t *after)
{
	const char *how = pages_text(after, "how");

	if (ctl->json) {
		put_json(after, JSON_INDENT(2));
		putchar('\n');
	} else if (strcmp(how, "whole") == 0) {
		printf("restarted: calls waited for %" PRIu64 " ms\n",
		       pages_number(after, "waited_ms"));
	} else {
		printf("restarted anew, clients reclaim what they had: %s\n",
		       strcmp(how, "ordinary") == 0 ? pages_text(after, "reason")
						    : "the program is of another version");
	}
	return CTL_DONE;
}

/* before: as the server answered the request. */
static int await_restart(const struct ctl *ctl, const json_t *before)
{
	const uint64_t until = rn_now_ns() + RESTART_SECONDS * RN_NS_PER_SECOND;
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int status = CTL_UNREACHABLE;

	while (status == CTL_UNREACHABLE && rn_now_ns() < until) {
		json_t *now = ask_restarts(ctl);

		if (now && pages_number(now, "count") != pages_number(before, "count")) {
			status = print_restart(ctl, now);
		} else if (now && pages_number(now, "refused") != pages_number(before, "refused")) {
			fputs("ringnfsctl: the server goes on as it was: the program does not "
			      "start with the settings as they are; its log says why\n",
			      stderr);
			status = CTL_REFUSED;
		}
		json_decref(now);
		if (status == CTL_UNREACHABLE)
			nanosleep(&pause, NULL);
	}
	if (status == CTL_UNREACHABLE)
		fprintf(stderr, "ringnfsctl: %s: the server has not come back in %u seconds\n",
			ctl->socket, RESTART_SECONDS);
	return status;
}

int ctl_restart(const struct ctl *ctl, int argc, char **argv)
{
	const struct ctl plain = { .socket = ctl->socket };
	json_t *before = NULL;

	(void)argv;
	if (argc > 1) {
		fputs("usage: ringnfsctl restart\n", stderr);
		return CTL_USAGE;
	}
	int status = ctl_post(&plain, "/v1/restart", NULL, &before);

	if (status == CTL_DONE && before)
		status = await_restart(ctl, before);
	json_decref(before);
	return status;
}
