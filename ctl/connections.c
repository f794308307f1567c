/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl connections */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/pages.h"
#include "ctl/print.h"
#include "ctl/rows.h"
#include "lib/util.h"

static void put_endpoint(struct table *t, const json_t *c, const char *address, const char *port)
{
	const char *text = pages_text(c, address);
	const bool v6 = text && strchr(text, ':');

	table_cellf(t, v6 ? "[%s]:%" PRIu64 : "%s:%" PRIu64, text ? text : "?",
		    pages_number(c, port));
}

/* Transport and device, and whether it is in no usual state. */
static void connections_put_transport(struct table *t, const json_t *c)
{
	const char *device = pages_text(c, "device"), *tls = pages_text(c, "tls");
	const char *mark = json_is_true(json_object_get(c, "closing"))	? " (closing)"
			   : json_is_true(json_object_get(c, "dialed")) ? " (to the client)"
									: "";

	if (tls) /* over TCP, which has no device */
		device = tls;
	table_cellf(t, "%s%s%s%s", pages_text(c, "transport"), device ? " " : "",
		    device ? device : "", mark);
}

/* Longest messages from and to the client, and credits. */
static void connections_put_rdma(struct table *t, const json_t *c)
{
	char in[PRINT_MAX], out[PRINT_MAX];

	if (!json_object_get(c, "credits")) {
		table_cell(t, NULL);
		table_cell(t, NULL);
		return;
	}
	table_cellf(t, "%s/%s", print_size(pages_number(c, "inline_in"), in),
		    print_size(pages_number(c, "inline_out"), out));
	table_cellf(t, "%" PRIu64 "/%" PRIu64, pages_number(c, "credits_used"),
		    pages_number(c, "credits"));
}

static void put_calls(struct table *t, const json_t *c)
{
	table_cellf(t, "%" PRIu64, pages_number(c, "answered"));
	table_cellf(t, "%" PRIu64, pages_number(c, "under_way"));
	if (json_object_get(c, "oldest_ms"))
		table_cellf(t, "%" PRIu64 " ms", pages_number(c, "oldest_ms"));
	else
		table_cell(t, NULL);
}

static uint64_t errors(const json_t *c)
{
	json_t *all = json_object_get(c, "errors");
	const char *name;
	json_t *n;
	uint64_t sum = 0;

	json_object_foreach(all, name, n) sum += (uint64_t)json_integer_value(n);
	return sum;
}

/* Version and cipher, by whom data are encrypted, and whose certificate the client has. */
static void connections_put_tls(struct table *t, const json_t *c)
{
	const char *version = pages_text(c, "tls_version"), *cipher = pages_text(c, "cipher");
	const char *by = pages_text(c, "encrypted_by"), *alpn = pages_text(c, "alpn");

	if (version)
		table_cellf(t, "%s %s %s%s", version, cipher ? cipher : "?",
			    alpn ? alpn : "no-alpn",
			    by && strcmp(by, "kernel") == 0 ? " kernel" : "");
	else
		table_cell(t, NULL);
	table_cell(t, pages_text(c, "user"));
	table_cell(t, pages_text(c, "subject"));
}

static void connections_put_row(struct table *t, const json_t *c)
{
	char text[PRINT_MAX];

	put_endpoint(t, c, "address", "port");
	put_endpoint(t, c, "local_address", "local_port");
	connections_put_transport(t, c);
	connections_put_rdma(t, c);
	table_cell(t, print_age(pages_number(c, "age"), text));
	table_cell(t, print_age(pages_number(c, "idle"), text));
	put_calls(t, c);
	table_cell(t, print_size(pages_number(c, "bytes_in"), text));
	table_cell(t, print_size(pages_number(c, "bytes_out"), text));
	table_cellf(t, "%" PRIu64, errors(c));
	table_cell(t, json_is_true(json_object_get(c, "callbacks")) ? "yes" : "no");
	table_cell(t, pages_text(c, "client"));
	pages_join(c, "security", text, sizeof(text));
	table_cell(t, *text ? text : NULL);
	connections_put_tls(t, c);
}

static int connections_print(const json_t *rows)
{
	static const struct table_column columns[] = {
		{ "PEER", false },    { "LOCAL", false },  { "NET", false },
		{ "INLINE", false },  { "CREDITS", true }, { "AGE", true },
		{ "IDLE", true },     { "CALLS", true },   { "UNDER WAY", true },
		{ "OLDEST", true },   { "IN", true },	   { "OUT", true },
		{ "ERRORS", true },   { "BACK", false },   { "CLIENT", false },
		{ "SEC", false },     { "TLS", false },	   { "USER", false },
		{ "SUBJECT", false },
	};
	static const struct rows_shape shape = { columns, rn_array_size(columns),
						 connections_put_row };

	return rows_print(&shape, rows, stdout);
}

int ctl_connections(const struct ctl *ctl, int argc, char **argv)
{
	const struct pages_query q = {
		.path = "/v1/connections",
		.list = "connections",
		.name = "address",
		.value = argc > 1 ? argv[1] : NULL,
	};
	json_t *rows;

	if (argc > 2) {
		fprintf(stderr, "ringnfsctl: connections takes an address at most, and not '%s'\n",
			argv[2]);
		return CTL_USAGE;
	}
	int status = pages_get(ctl, &q, &rows);

	if (status == CTL_DONE && q.value && json_array_size(rows) == 0) {
		fprintf(stderr, "ringnfsctl: there is no connection of %s\n", q.value);
		status = CTL_REFUSED;
	}
	if (status == CTL_DONE)
		status = ctl->json ? pages_print_json(&q, rows) : connections_print(rows);
	json_decref(rows);
	return status;
}
