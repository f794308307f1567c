/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl exports explain */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_exports.h"
#include "ctl/ctl_options.h"
#include "ctl/rows.h"
#include "ctl/uri.h"
#include "lib/util.h"

#define ADDRESSES_MAX 16 /* of a name */

struct question {
	const char *path, *uid, *gid;
};

static const char *exports_explain_text(const json_t *from, const char *name)
{
	return json_string_value(json_object_get(from, name));
}

static void add_place(struct table *t, const json_t *line)
{
	const char *file = exports_explain_text(line, "file");

	if (file)
		table_cellf(t, "%s:%" JSON_INTEGER_FORMAT, file,
			    json_integer_value(json_object_get(line, "line")));
	else
		table_cell(t, "temporary");
}

static void explain_put_line(struct table *t, const json_t *line)
{
	table_cell(t, exports_explain_text(line, "client"));
	table_cell(t, exports_explain_text(line, "kind"));
	table_cell(t, exports_explain_text(line, "applies"));
	table_cell(t, exports_explain_text(line, "why"));
	add_place(t, line);
}

static int print_lines(const json_t *answer)
{
	static const struct table_column columns[] = {
		{ "LINE FOR", false }, { "KIND", false }, { "APPLIES", false },
		{ "WHY", false },      { "FROM", false },
	};
	static const struct rows_shape shape = { columns, rn_array_size(columns),
						 explain_put_line };

	return rows_print(&shape, json_object_get(answer, "lines"), stdout);
}

static void explain_put_option(struct table *t, const json_t *option)
{
	table_cell(t, exports_explain_text(option, "option"));
	table_cell(t, exports_explain_text(option, "from"));
}

static int explain_print_options(const json_t *answer)
{
	static const struct table_column columns[] = { { "OPTION", false }, { "FROM", false } };
	static const struct rows_shape shape = { columns, rn_array_size(columns),
						 explain_put_option };

	return rows_print(&shape, json_object_get(answer, "options"), stdout);
}

static void print_rights(const json_t *answer)
{
	const json_t *flavor, *id = json_object_get(answer, "identity");
	size_t i;

	json_array_foreach(json_object_get(answer, "flavors"), i, flavor)
	{
		printf("sec=");
		exports_print_text(flavor, "flavor", ": ", stdout);
		exports_print_text(flavor, "access", "\n", stdout);
	}
	if (json_is_true(json_object_get(answer, "read_only_mount")))
		printf("its file system is mounted read-only\n");
	printf("source port over TCP: ");
	exports_print_text(answer, "port", "\n", stdout);
	printf("uid %" JSON_INTEGER_FORMAT " gid %" JSON_INTEGER_FORMAT
	       " of the client acts as uid %" JSON_INTEGER_FORMAT " gid %" JSON_INTEGER_FORMAT "\n",
	       json_integer_value(json_object_get(id, "uid")),
	       json_integer_value(json_object_get(id, "gid")),
	       json_integer_value(json_object_get(id, "as_uid")),
	       json_integer_value(json_object_get(id, "as_gid")));
}

static void print_nesting(const json_t *answer)
{
	const json_t *path;
	size_t i;

	json_array_foreach(json_object_get(answer, "no_line_in"), i, path)
	{
		char *safe = table_safe_text(json_string_value(path));

		printf("no line for the client in %s: what lies around it counts\n",
		       safe ? safe : "?");
		free(safe);
	}
	if (exports_explain_text(answer, "mount_below")) {
		exports_print_text(answer, "mount_below", "", stdout);
		printf(" is a mount of its own, %s\n",
		       json_is_true(json_object_get(answer, "mount_shown"))
			       ? "shown by crossmnt"
			       : "not shown without crossmnt: clients see an empty directory, and "
				 "MNT is refused");
	}
	if (!exports_explain_text(answer, "within"))
		return;
	printf("within ");
	exports_print_text(answer, "within", ", entered from there by ", stdout);
	exports_print_text(answer, "entered_by", "\n", stdout);
}

/* CTL_REFUSED if the client has no access. */
static int exports_explain_print(const char *address, const struct question *q,
				 const json_t *answer)
{
	printf("%s at %s: ", address, q->path);
	if (exports_explain_text(answer, "in_error")) {
		exports_print_text(answer, "in_error",
				   ": its lines are in error: nobody has access until they are "
				   "mended; see the log\n",
				   stdout);
		return CTL_REFUSED;
	}
	if (!exports_explain_text(answer, "export")) {
		printf("no access: no export leads there\n");
		return CTL_REFUSED;
	}
	printf("access ");
	exports_print_text(answer, "access", ", by the export ", stdout);
	exports_print_text(answer, "export", ", which is ", stdout);
	exports_print_text(answer, "state", "\n", stdout);
	if (exports_explain_text(answer, "reason"))
		exports_print_text(answer, "reason", "\n", stdout);
	print_nesting(answer);
	if (print_lines(answer) != CTL_DONE)
		return CTL_UNREACHABLE;
	if (!json_object_get(answer, "options"))
		return CTL_REFUSED;
	if (explain_print_options(answer) != CTL_DONE)
		return CTL_UNREACHABLE;
	print_rights(answer);
	return exports_explain_text(answer, "reason") ? CTL_REFUSED : CTL_DONE;
}

static int exports_explain_one(const struct ctl *ctl, const char *address, const struct question *q)
{
	char *uri = uri_add(uri_add(uri_new("/v1/exports/explain"), "client", address), "path",
			    q->path);
	json_t *answer = NULL;
	int status = CTL_UNREACHABLE;

	if (q->uid)
		uri = uri_add(uri, "uid", q->uid);
	if (q->gid)
		uri = uri_add(uri, "gid", q->gid);
	if (uri)
		status = ctl_get(ctl, uri, &answer);
	else
		fprintf(stderr, "ringnfsctl: out of memory\n");
	if (status == CTL_DONE && answer)
		status = exports_explain_print(address, q, answer);
	free(uri);
	json_decref(answer);
	return status;
}

/* A name may have several addresses, and be another client by each. The worst status counts. */
static int explain_all(const struct ctl *ctl, const char *client, const struct question *q)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *a;
	int rc = getaddrinfo(client, NULL, &hints, &list), status = CTL_DONE, n = 0;

	if (rc) {
		fprintf(stderr, "ringnfsctl: %s: %s\n", client, gai_strerror(rc));
		return CTL_USAGE;
	}
	for (a = list; a && n < ADDRESSES_MAX; a = a->ai_next, n++) {
		char address[NI_MAXHOST];

		if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address), NULL, 0,
				NI_NUMERICHOST) != 0)
			continue;
		address[strcspn(address, "%")] = '\0'; /* exports(5) has no scopes */
		const int one = exports_explain_one(ctl, address, q);

		status = one > status ? one : status;
	}
	freeaddrinfo(list);
	return status;
}

int exports_explain(const struct ctl *ctl, int argc, char **argv)
{
	struct question q = { 0 };
	const struct ctl_option options[] = { { "uid", &q.uid, NULL }, { "gid", &q.gid, NULL } };

	argc = ctl_options(options, rn_array_size(options), argc, argv);
	if (argc != 3) {
		if (argc >= 0)
			fprintf(stderr, "usage: ringnfsctl exports explain CLIENT PATH [--uid N] "
					"[--gid N]\n");
		return CTL_USAGE;
	}
	q.path = argv[2];
	return explain_all(ctl, argv[1], &q);
}
