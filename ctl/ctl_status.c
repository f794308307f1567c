/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl status */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/print.h"
#include "ctl/ctl_table.h"
#include "lib/util.h"

/* A number of an object within the answer; 0 if there is none, as of an older server. */
static uint64_t ctl_status_number(const json_t *from, const char *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(json_object_get(from, object), name));
}

static const char *ctl_status_text(const json_t *from, const char *name)
{
	const char *s = json_string_value(json_object_get(from, name));

	return s ? s : "?";
}

static void print_server(const json_t *st)
{
	const uint64_t up = (uint64_t)json_integer_value(json_object_get(st, "uptime"));
	const json_int_t pid = json_integer_value(json_object_get(st, "pid"));
	char age[PRINT_MAX];

	printf("server       ringnfsd %s, process %" PRIu64 "\n", ctl_status_text(st, "version"),
	       (uint64_t)pid);
	printf("running for  %s, since %s\n", print_age(up, age), ctl_status_text(st, "started"));
}

static void print_listeners(const json_t *st)
{
	const char *title = "listening";
	const json_t *l;
	size_t i;

	json_array_foreach(json_object_get(st, "listeners"), i, l)
	{
		const char *address = ctl_status_text(l, "address");
		const bool v6 = strchr(address, ':') != NULL;

		printf("%-12s %s%s%s:%" PRIu64 " %s %s\n", title, v6 ? "[" : "", address,
		       v6 ? "]" : "", (uint64_t)json_integer_value(json_object_get(l, "port")),
		       ctl_status_text(l, "transport"), ctl_status_text(l, "service"));
		title = "";
	}
	if (!i)
		printf("%-12s nowhere\n", title);
}

static void ctl_status_print_grace(const json_t *st)
{
	char left[PRINT_MAX];

	if (!json_is_true(json_object_get(json_object_get(st, "grace"), "active"))) {
		printf("grace        over\n");
		return;
	}
	printf("grace        %s left; %" PRIu64 " of %" PRIu64
	       " clients have not reclaimed their locks\n",
	       print_age(ctl_status_number(st, "grace", "seconds_left"), left),
	       ctl_status_number(st, "grace", "waiting"),
	       ctl_status_number(st, "grace", "expected"));
}

/* The names of members in that state, or that may reclaim (state NULL); nothing if there are none. */
static void print_members(const json_t *cluster, const char *state, const char *title)
{
	const json_t *m;
	bool any = false;
	size_t i;

	json_array_foreach(json_object_get(cluster, "members"), i, m)
	{
		char *safe;

		if (state ? strcmp(ctl_status_text(m, "state"), state) != 0
			  : !json_is_true(json_object_get(m, "reclaims")))
			continue;
		safe = table_safe_text(ctl_status_text(m, "name"));
		printf("%s%s", any ? ", " : title, safe ? safe : "?");
		free(safe);
		any = true;
	}
}

static void print_grace_of_cluster(const json_t *cluster)
{
	printf("             new locks wait, for %" PRIu64 " s so far",
	       (uint64_t)json_integer_value(json_object_get(cluster, "grace_seconds")));
	print_members(cluster, NULL, ": clients may reclaim at member ");
	fputs(" (ringnfsctl cluster status)", stdout);
}

/* Nothing if the server is alone. */
static void print_cluster(const json_t *st)
{
	const json_t *cluster = json_object_get(st, "cluster");

	if (!cluster)
		return;
	printf("cluster      %s, member %s", ctl_status_text(cluster, "name"),
	       ctl_status_text(cluster, "instance"));
	print_members(cluster, "running", "; running: ");
	print_members(cluster, "stopped", "; stopped: ");
	print_members(cluster, "dead", "; DEAD: ");
	printf("; epoch %" PRIu64 "\n", ctl_status_number(st, "cluster", "epoch"));
	if (json_is_true(json_object_get(cluster, "grace")))
		print_grace_of_cluster(cluster);
	else if (!json_is_true(json_object_get(cluster, "grants")))
		printf("             new locks wait");
	else
		return;
	putchar('\n');
}

static void print_records(const json_t *st)
{
	if (json_is_true(json_object_get(json_object_get(st, "records"), "failing")))
		printf("records      of clients cannot be written: after a restart they "
		       "would "
		       "not get their locks back; the log says why\n");
}

static void print_exports(const json_t *st)
{
	static const char *const kinds[][2] = {
		{ "in_error", "in error" },	      { "failed", "not to be opened" },
		{ "unmounted", "unmounted" },	      { "removed", "removed" },
		{ "waiting", "waiting for a mount" },
	};
	bool any = false;

	printf("exports      %" PRIu64 " served", ctl_status_number(st, "exports", "served"));
	for (size_t i = 0; i < rn_array_size(kinds); i++) {
		const uint64_t n = ctl_status_number(st, "exports", kinds[i][0]);

		if (n)
			printf("%s%" PRIu64 " %s", any ? ", " : "; NOT served: ", n, kinds[i][1]);
		any |= n > 0;
	}
	puts(any ? " (ringnfsctl exports list)" : "");
	if (json_is_true(json_object_get(json_object_get(st, "exports"), "reload_refused")))
		puts("reload       the last one was REFUSED: the exports before it are in force "
		     "(ringnfsctl exports diff)");
}

static void print_drain(const json_t *st)
{
	const json_t *drain = json_object_get(st, "drain"), *path;
	char age[PRINT_MAX];
	size_t i;

	if (!json_is_true(json_object_get(drain, "active")))
		return;
	printf("drain        for %s, of %s",
	       print_age(ctl_status_number(st, "drain", "seconds"), age),
	       json_is_true(json_object_get(drain, "all")) ? "all exports\n" : "");
	if (json_is_true(json_object_get(drain, "all")))
		return;
	json_array_foreach(json_object_get(drain, "exports"), i, path)
	{
		char *safe =
			table_safe_text(json_string_value(path) ? json_string_value(path) : "?");

		printf("%s%s", i ? ", " : "", safe ? safe : "?");
		free(safe);
	}
	putchar('\n');
}

static uint64_t failures(const json_t *shakes)
{
	json_t *failed = json_object_get(shakes, "failed");
	const char *name;
	json_t *n;
	uint64_t sum = 0;

	json_object_foreach(failed, name, n) sum += (uint64_t)json_integer_value(n);
	return sum;
}

static void print_failures(const json_t *shakes)
{
	json_t *failed = json_object_get(shakes, "failed");
	const char *name, *before = " (";
	json_t *n;

	json_object_foreach(failed, name, n)
	{
		if (!json_integer_value(n))
			continue;
		printf("%s%s %" PRIu64, before, name, (uint64_t)json_integer_value(n));
		before = ", ";
	}
	puts(failures(shakes) ? ")" : "");
}

static void ctl_status_print_tls(const json_t *st)
{
	const json_t *tls = json_object_get(st, "tls");
	const json_t *shakes = json_object_get(tls, "handshakes");
	const json_int_t days = json_integer_value(json_object_get(tls, "days_left"));
	char *subject = table_safe_text(ctl_status_text(tls, "subject"));

	if (!tls) {
		printf("TLS          not offered\n");
		free(subject);
		return;
	}
	printf("TLS          %s, valid until %s, %" JSON_INTEGER_FORMAT " days\n",
	       subject ? subject : "?", ctl_status_text(tls, "expires"), days);
	free(subject);
	printf("             clients' certificates are %sverified; data are encrypted by the %s\n",
	       json_is_true(json_object_get(tls, "verifies_clients")) ? "" : "not ",
	       json_is_true(json_object_get(tls, "kernel")) ? "kernel where it can" : "server");
	printf("handshakes   %" PRIu64 " TLS, %" PRIu64 " mutual TLS, %" PRIu64
	       " with the kernel, %" PRIu64 " without room, %" PRIu64 " failed",
	       ctl_status_number(tls, "handshakes", "tls"),
	       ctl_status_number(tls, "handshakes", "mtls"),
	       ctl_status_number(tls, "handshakes", "encrypted_by_kernel"),
	       ctl_status_number(tls, "handshakes", "refused"), failures(shakes));
	print_failures(shakes);
}

static void print_threads(const json_t *st)
{
	const uint64_t stuck = ctl_status_number(st, "threads", "stuck");

	printf("threads      %" PRIu64 " event threads, %" PRIu64 " workers",
	       ctl_status_number(st, "threads", "event"),
	       ctl_status_number(st, "threads", "workers"));
	if (stuck)
		printf("; %" PRIu64 " WAIT for a file system that does not answer", stuck);
	putchar('\n');
}

static void print_status(const json_t *st)
{
	char used[PRINT_MAX], limit[PRINT_MAX];

	print_server(st);
	print_listeners(st);
	print_threads(st);
	printf("connections  %" PRIu64 " TCP, %" PRIu64 " RDMA, of %" PRIu64 " clients\n",
	       ctl_status_number(st, "connections", "tcp"),
	       ctl_status_number(st, "connections", "rdma"),
	       ctl_status_number(st, "clients", "connected"));
	printf("NFSv4        %" PRIu64 " clients (%" PRIu64 " with an expired lease), %" PRIu64
	       " opens, %" PRIu64 " locks, %" PRIu64 " delegations\n",
	       ctl_status_number(st, "clients", "nfs4"),
	       ctl_status_number(st, "clients", "nfs4_courtesy"),
	       ctl_status_number(st, "held", "nfs4_opens"),
	       ctl_status_number(st, "held", "nfs4_locks"),
	       ctl_status_number(st, "held", "nfs4_delegations"));
	ctl_status_print_grace(st);
	print_cluster(st);
	print_exports(st);
	print_records(st);
	print_drain(st);
	ctl_status_print_tls(st);
	printf("memory       %s of %s\n", print_size(ctl_status_number(st, "memory", "used"), used),
	       print_size(ctl_status_number(st, "memory", "limit"), limit));
}

int ctl_status(const struct ctl *ctl, int argc, char **argv)
{
	json_t *st;

	if (argc > 1) {
		fprintf(stderr, "ringnfsctl: status takes no argument, such as '%s'\n", argv[1]);
		return CTL_USAGE;
	}
	int status = ctl_get(ctl, "/v1/status", &st);

	if (status == CTL_DONE && st)
		print_status(st);
	json_decref(st);
	return status;
}
