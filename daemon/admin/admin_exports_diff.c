/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/admin_exports_diff.h"

#include <string.h>

#include "conf/exports.h"
#include "daemon/admin/exports_json.h"
#include "daemon/admin/text.h"

static void append_option(void *list, uint32_t bit, const char *text)
{
	(void)bit;
	json_array_append_new(list, control_text(text));
}

static json_t *option_list(const struct exp_opts *opts)
{
	json_t *list = json_array();

	exp_opts_each(opts, append_option, list);
	return list;
}

/* Equal texts may come again behind another sec=. */
static size_t exports_diff_count(const json_t *list, const json_t *text)
{
	const json_t *item;
	size_t i, n = 0;

	json_array_foreach(list, i, item) n += json_equal(item, text);
	return n;
}

/* The options of a that b does not have as often. */
static json_t *only_in(const json_t *a, const json_t *b)
{
	json_t *list = json_array();
	json_t *item;
	size_t i;

	json_array_foreach(a, i, item)
	{
		if (exports_diff_count(list, item) + exports_diff_count(b, item) <
		    exports_diff_count(a, item))
			json_array_append(list, item);
	}
	return list;
}

static json_t *change_of(const char *key, const char *name, const char *change)
{
	return json_pack("{s:o, s:s}", key, control_text(name), "change", change);
}

static void add_whole_client(json_t *list, const struct exp_client *c, const char *change)
{
	json_t *object = change_of("client", c->spec, change);

	json_object_set_new(object, "options", exports_options(&c->opts));
	json_array_append_new(list, object);
}

static void add_changed_client(json_t *list, const struct exp_client *was,
			       const struct exp_client *is)
{
	json_t *before = option_list(&was->opts), *after = option_list(&is->opts);

	if (!json_equal(before, after)) {
		json_t *object = change_of("client", is->spec, "changed");

		json_object_set_new(object, "gained", only_in(after, before));
		json_object_set_new(object, "lost", only_in(before, after));
		json_array_append_new(list, object);
	}
	json_decref(before);
	json_decref(after);
}

static const struct exp_client *client_of(const struct exp_export *e, const char *spec)
{
	for (unsigned i = 0; e && i < e->n_clients; i++)
		if (strcmp(e->clients[i].spec, spec) == 0)
			return &e->clients[i];
	return NULL;
}

/* One of them may be NULL. */
static json_t *client_changes(const struct exp_export *was, const struct exp_export *is)
{
	json_t *list = json_array();

	for (unsigned i = 0; was && i < was->n_clients; i++) {
		const struct exp_client *c = &was->clients[i], *now = client_of(is, c->spec);

		if (now)
			add_changed_client(list, c, now);
		else
			add_whole_client(list, c, "removed");
	}
	for (unsigned i = 0; is && i < is->n_clients; i++)
		if (!client_of(was, is->clients[i].spec))
			add_whole_client(list, &is->clients[i], "added");
	return list;
}

static void exports_diff_add_export(json_t *list, const struct exp_export *was,
				    const struct exp_export *is)
{
	const char *change = !was ? "added" : !is ? "removed" : "changed";
	json_t *clients = client_changes(was, is);

	if (json_array_size(clients) > 0 || !was || !is) {
		json_t *object = change_of("path", is ? is->path : was->path, change);

		json_object_set_new(object, "clients", clients);
		json_array_append_new(list, object);
	} else {
		json_decref(clients);
	}
}

json_t *exports_diff(const struct exp_table *was, const struct exp_table *is)
{
	const unsigned n = was ? was->n_exports : 0, m = is ? is->n_exports : 0;
	json_t *list = json_array();

	/* Both are sorted by path. */
	for (unsigned i = 0, j = 0; i < n || j < m;) {
		const struct exp_export *a = i < n ? &was->exports[i] : NULL;
		const struct exp_export *b = j < m ? &is->exports[j] : NULL;
		const int order = !a ? 1 : !b ? -1 : strcmp(a->path, b->path);

		exports_diff_add_export(list, order <= 0 ? a : NULL, order >= 0 ? b : NULL);
		i += order <= 0;
		j += order >= 0;
	}
	return list;
}
