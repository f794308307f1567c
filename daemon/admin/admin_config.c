/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GET /v1/config: every setting, its value, the place that it comes from, and what the server has made of it where that
 * is something else. No setting is a secret: keys are in files, which are not read for this.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/admin/control_private.h"
#include "daemon/admin/text.h"
#include "lib/util.h"

#define TEXT_MAX 128 /* bytes */

/* Each puts the value in force; an empty text: it is the configured one. */
static void put_threads(const struct control_sources *from, char text[TEXT_MAX])
{
	if (from->settings->server.threads != from->limits->threads)
		snprintf(text, TEXT_MAX, "%u", from->limits->threads);
}

static void config_put_memory(const struct control_sources *from, char text[TEXT_MAX])
{
	if (from->settings->server.memory_max != from->parts.budget->max)
		snprintf(text, TEXT_MAX, "%zu", from->parts.budget->max);
}

static void put_fds(const struct control_sources *from, char text[TEXT_MAX])
{
	if (from->settings->server.max_fds != from->limits->cache_fds)
		snprintf(text, TEXT_MAX, "%u", from->limits->cache_fds);
}

static void put_connections(const struct control_sources *from, char text[TEXT_MAX])
{
	if (from->parts.tcp && from->settings->tcp.max_connections > from->limits->connections)
		snprintf(text, TEXT_MAX, "%u", from->limits->connections);
}

static void config_put_rdma(const struct control_sources *from, char text[TEXT_MAX])
{
	if (from->settings->rdma.enabled == CFG_AUTO)
		snprintf(text, TEXT_MAX, "%s", from->parts.rdma ? "yes" : "no");
}

static void config_append(char text[TEXT_MAX], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void config_append(char text[TEXT_MAX], const char *fmt, ...)
{
	const size_t len = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + len, TEXT_MAX - len, fmt, ap);
	va_end(ap);
}

/* One word if all modules have one level, else those that ringnfsctl log has set. */
static void put_log_level(const struct control_sources *from, char text[TEXT_MAX])
{
	const enum rn_level configured = RN_ERROR + (enum rn_level)from->settings->server.log_level;
	const enum rn_level first = logs_level(from->logs, (enum log_module)0);
	bool one = true;

	for (int i = 1; i < LOG_MODULES; i++)
		one &= logs_level(from->logs, (enum log_module)i) == first;
	if (one && first != configured)
		snprintf(text, TEXT_MAX, "%s", logs_level_name(first));
	for (int i = 0; !one && i < LOG_MODULES; i++) {
		const enum rn_level level = logs_level(from->logs, (enum log_module)i);

		if (level != configured)
			config_append(text, "%s%s: %s", *text ? ", " : "",
				      logs_module_name((enum log_module)i), logs_level_name(level));
	}
}

static const struct {
	const char *key;
	void (*put)(const struct control_sources *from, char text[TEXT_MAX]);
} in_force[] = {
	{ "rdma.enabled", config_put_rdma }, { "server.log_level", put_log_level },
	{ "server.max_fds", put_fds },	     { "server.memory_max", config_put_memory },
	{ "server.threads", put_threads },   { "tcp.max_connections", put_connections },
};

static void add_in_force(json_t *to, const struct control_sources *from, const char *key)
{
	char text[TEXT_MAX] = "";

	for (size_t i = 0; i < rn_array_size(in_force); i++)
		if (strcmp(in_force[i].key, key) == 0)
			in_force[i].put(from, text);
	if (*text)
		json_object_set_new(to, "in_force", json_string(text));
}

static void add_origin(json_t *to, const struct cfg_origin *o)
{
	const char *from = !o->name ? "default" : o->line ? "file" : "command line";

	json_object_set_new(to, "from", json_string(from));
	if (o->name)
		json_object_set_new(to, o->line ? "file" : "option", control_text(o->name));
	if (o->line)
		json_object_set_new(to, "line", json_integer(o->line));
}

struct listing {
	const struct control_sources *from;
	json_t *list;
};

static void add_setting(void *ctx, const struct cfg_shown *s)
{
	const struct listing *l = ctx;
	json_t *object = json_object();

	json_object_set_new(object, "key", json_string(s->key));
	json_object_set_new(object, "value", control_text(s->value));
	add_in_force(object, l->from, s->key);
	add_origin(object, s->origin);
	json_array_append_new(l->list, object);
}

void control_config(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	struct listing l = { .from = &c->from, .list = json_array() };

	(void)req;
	cfg_each(c->from.settings, add_setting, &l);
	admin_reply_json(r, json_pack("{s:o}", "settings", l.list));
}
