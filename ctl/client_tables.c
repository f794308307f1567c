/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client_tables.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ctl/pages.h"
#include "ctl/print.h"
#include "ctl/rows.h"
#include "lib/util.h"

static void client_put_number(struct table *t, const json_t *c, const char *name)
{
	table_cellf(t, "%" PRIu64, pages_number(c, name));
}

static void client_put_size(struct table *t, const json_t *c, const char *name)
{
	char text[PRINT_MAX];

	table_cell(t, print_size(pages_number(c, name), text));
}

/* The transport of its last connection, with its device; without connections that of its registration. */
static void client_put_transport(struct table *t, const json_t *c)
{
	const char *transport = pages_text(c, "transport"), *device = pages_text(c, "device");

	if (!device) /* TLS is over TCP */
		device = pages_text(c, "tls");
	if (device)
		table_cellf(t, "%s %s", transport, device);
	else
		table_cell(t, transport ? transport : pages_text(c, "netid"));
}

static void client_put_state(struct table *t, const json_t *c)
{
	char since[PRINT_MAX], left[PRINT_MAX];
	const char *state = pages_text(c, "state");

	if (json_object_get(c, "lease_left"))
		table_cellf(t, "%s, lease for %s", state,
			    print_age(pages_number(c, "lease_left"), left));
	else
		table_cellf(t, "%s for %s", state, print_age(pages_number(c, "since"), since));
}

static void put_nfs4(struct table *t, const json_t *c)
{
	table_cell(t, pages_text(c, "id"));
	table_cell(t, pages_text(c, "address"));
	client_put_transport(t, c);
	table_cell(t, pages_text(c, "version"));
	client_put_number(t, c, "sessions");
	client_put_number(t, c, "opens");
	client_put_number(t, c, "locks");
	client_put_number(t, c, "delegations");
	client_put_number(t, c, "operations");
	client_put_number(t, c, "errors");
	client_put_size(t, c, "bytes_read");
	client_put_size(t, c, "bytes_written");
	if (json_object_get(c, "oldest_ms"))
		table_cellf(t, "%" PRIu64 " ms", pages_number(c, "oldest_ms"));
	else
		table_cell(t, NULL);
	client_put_state(t, c);
	table_cell(t, pages_text(c, "name"));
}

static void put_nfs3(struct table *t, const json_t *c)
{
	char idle[PRINT_MAX];

	table_cellf(t, "%s%s", pages_text(c, "address"),
		    json_is_true(json_object_get(c, "network")) ? "/64" : "");
	client_put_number(t, c, "connections");
	client_put_number(t, c, "calls");
	client_put_number(t, c, "errors");
	client_put_size(t, c, "bytes_read");
	client_put_size(t, c, "bytes_written");
	table_cell(t, print_age(pages_number(c, "idle"), idle));
}

int client_table_nfs4(const json_t *rows)
{
	static const struct table_column columns[] = {
		{ "ID", false },    { "ADDRESS", false },    { "NET", false },
		{ "VERS", false },  { "SESSIONS", true },    { "OPENS", true },
		{ "LOCKS", true },  { "DELEGATIONS", true }, { "OPERATIONS", true },
		{ "ERRORS", true }, { "READ", true },	     { "WRITTEN", true },
		{ "OLDEST", true }, { "STATE", false },	     { "NAME", false },
	};
	const struct rows_shape kind = { columns, rn_array_size(columns), put_nfs4 };

	return rows_print(&kind, rows, stdout);
}

int client_table_nfs3(const json_t *rows)
{
	static const struct table_column columns[] = {
		{ "NFSV3 CLIENT", false }, { "CONNECTIONS", true }, { "CALLS", true },
		{ "ERRORS", true },	   { "READ", true },	    { "WRITTEN", true },
		{ "IDLE", true },
	};
	const struct rows_shape kind = { columns, rn_array_size(columns), put_nfs3 };

	return rows_print(&kind, rows, stdout);
}

static void print_endpoint(const char *title, const json_t *e)
{
	const char *address = pages_text(e, "address"), *device = pages_text(e, "device");

	if (!device)
		device = pages_text(e, "tls");
	const bool v6 = address && strchr(address, ':');

	printf("%-12s %s%s%s:%" PRIu64 " %s%s%s\n", title, v6 ? "[" : "", address ? address : "?",
	       v6 ? "]" : "", pages_number(e, "port"), pages_text(e, "transport"),
	       device ? " " : "", device ? device : "");
}

/* Limits of the last connection, over RDMA. */
static void print_rdma(const json_t *row)
{
	char in[PRINT_MAX], out[PRINT_MAX];

	if (json_object_get(row, "credits"))
		printf("rdma         inline %s from the client, %s to it; %" PRIu64 " credits\n",
		       print_size(pages_number(row, "inline_in"), in),
		       print_size(pages_number(row, "inline_out"), out),
		       pages_number(row, "credits"));
}

/* Flavours of the calls, and the principal who registered the client. */
static void print_security(const json_t *row)
{
	const char *principal = pages_text(row, "principal");
	char flavors[PRINT_MAX];

	pages_join(row, "security", flavors, sizeof(flavors));
	if (*flavors || principal)
		printf("security     %s%s%s\n", *flavors ? flavors : "no call yet",
		       principal ? ", registered by " : "", principal ? principal : "");
}

/* Session of the last connection, and the user of its certificate. */
static void client_print_tls(const json_t *row)
{
	const char *version = pages_text(row, "tls_version"), *cipher = pages_text(row, "cipher");
	const char *subject = pages_text(row, "subject"), *user = pages_text(row, "user");

	if (!pages_text(row, "tls"))
		return;
	printf("tls          %s %s, encrypted by the %s\n", version ? version : "?",
	       cipher ? cipher : "?", pages_text(row, "encrypted_by"));
	if (subject)
		printf("certificate  %s%s%s\n", subject, user ? ", user " : "", user ? user : "");
}

void client_print_detail(const json_t *row)
{
	const char *title = "connections", *name;
	const json_t *e;
	json_t *n;
	size_t i;

	json_array_foreach(json_object_get(row, "endpoints"), i, e)
	{
		print_endpoint(title, e);
		title = "";
	}
	print_rdma(row);
	print_security(row);
	client_print_tls(row);
	printf("calls        %" PRIu64, pages_number(row, "calls"));
	if (json_object_get(row, "under_way"))
		printf(", %" PRIu64 " under way", pages_number(row, "under_way"));
	putchar('\n');
	json_object_foreach(json_object_get(row, "by_operation"), name, n)
		printf("%12" JSON_INTEGER_FORMAT " %s\n", json_integer_value(n), name);
}

void client_print_others(const json_t *others)
{
	char in[PRINT_MAX], out[PRINT_MAX];

	if (!pages_number(others, "clients"))
		return;
	printf("others of NFSv3, without connections: %" PRIu64 " clients, %" PRIu64
	       " calls, %" PRIu64 " errors, %s read, %s written\n",
	       pages_number(others, "clients"), pages_number(others, "calls"),
	       pages_number(others, "errors"), print_size(pages_number(others, "bytes_read"), in),
	       print_size(pages_number(others, "bytes_written"), out));
}
