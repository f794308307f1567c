/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's answers in a support bundle. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/bundle.h"
#include "ctl/http.h"
#include "ctl/uri.h"
#include "lib/util.h"

#define PAGES_MOST 20u /* of one list */
#define SESSIONS "/v1/sessions"

static const struct {
	const char *name, *path;
	bool paths; /* has names of files */
} parts[] = {
	{ "status.json", "/v1/status", false },
	{ "config.json", "/v1/config", false },
	{ "exports.json", "/v1/exports", false },
	{ "clients.json", "/v1/clients", false },
	{ "connections.json", "/v1/connections", false },
	{ "sessions.json", SESSIONS, false },
	{ "grace.json", "/v1/grace", false },
	{ "log-levels.json", "/v1/log", false },
	{ "metrics.txt", "/metrics", false },
	{ "stats.json", "/v1/stats", false },
	{ "opens.json", "/v1/opens", true },
	{ "locks.json", "/v1/locks", true },
	{ "delegations.json", "/v1/delegations", true },
};

/* Root is told the ids of sessions. A stranger who knows one can use the session until it ends. */
static void drop_ids(json_t *answer)
{
	json_t *session;
	size_t i;

	json_array_foreach(json_object_get(answer, "sessions"), i, session)
		json_object_del(session, "id");
}

static void add_without_ids(struct bundle *b, const char *name, json_t *answer)
{
	drop_ids(answer);
	char *text = answer ? json_dumps(answer, JSON_INDENT(2)) : NULL;

	if (text)
		tar_add(&b->tar, name, text, strlen(text));
	else
		bundle_missing(b, name, "the answer cannot be read");
	free(text);
}

/* Adds an answer. The parsed one, for the caller to free; NULL: none, or no JSON. */
static json_t *bundle_add_answer(struct bundle *b, const char *name, const char *path)
{
	const struct http_question q = { .method = "GET", .path = path };
	struct http_answer a;
	json_t *answer = NULL;

	if (b->silent)
		return NULL;
	const int rc = http_ask(b->socket, &q, &a);

	if (rc) {
		b->silent = true;
		bundle_missing(b, name, "%s: %s; nothing else was asked", b->socket, strerror(-rc));
	} else if (a.status != 200) {
		bundle_missing(b, name, "the server answers %s with status %d", path, a.status);
	} else {
		answer = json_loadb(a.body, a.body_len, 0, NULL);
		if (strncmp(path, SESSIONS, strlen(SESSIONS)) == 0)
			add_without_ids(b, name, answer);
		else
			tar_add(&b->tar, name, a.body, a.body_len);
	}
	http_free(&a);
	return answer;
}

/* The next page's path; NULL: this was the last one. */
static char *next_page(const char *path, const json_t *answer)
{
	const json_t *after = json_object_get(answer, "after");
	char number[32];

	if (json_is_string(after))
		return uri_add(uri_new(path), "after", json_string_value(after));
	if (!json_is_integer(after))
		return NULL;
	snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(after));
	return uri_add(uri_new(path), "after", number);
}

static void bundle_keep_answer(struct bundle *b, const char *name, const json_t *answer)
{
	if (strcmp(name, "status.json") == 0)
		b->pid = (pid_t)json_integer_value(json_object_get(answer, "pid"));
	else if (strcmp(name, "exports.json") == 0)
		b->exports = json_deep_copy(answer);
}

/* All pages of a list, each as a file of its own. */
static void add_pages(struct bundle *b, const char *name, const char *path)
{
	char *at = uri_new(path), page[64];

	for (unsigned n = 1; at && n <= PAGES_MOST; n++) {
		const size_t stem = strcspn(name, ".");

		if (n == 1)
			snprintf(page, sizeof(page), "%s", name);
		else
			snprintf(page, sizeof(page), "%.*s-%u%s", (int)stem, name, n, name + stem);
		json_t *answer = bundle_add_answer(b, page, at);

		bundle_keep_answer(b, page, answer);
		free(at);
		at = next_page(path, answer);
		json_decref(answer);
	}
	if (at)
		bundle_missing(b, name, "only the first %u pages are here", PAGES_MOST);
	free(at);
}

void bundle_server(struct bundle *b, bool with_paths)
{
	for (size_t i = 0; i < rn_array_size(parts); i++)
		if (with_paths || !parts[i].paths)
			add_pages(b, parts[i].name, parts[i].path);
}
