/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl cluster status and cluster remove */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/confirm.h"
#include "ctl/ctl.h"
#include "ctl/ctl_options.h"
#include "ctl/pages.h"
#include "ctl/rows.h"
#include "ctl/uri.h"
#include "lib/util.h"

static bool ctl_cluster_is_true(const json_t *from, const char *name)
{
	return json_is_true(json_object_get(from, name));
}

static const char *ctl_cluster_text(const json_t *from, const char *name)
{
	const char *text = pages_text(from, name);

	return text ? text : "?";
}

/* "192.0.2.1, 2001:db8::1", cut where it does not fit. */
static void ctl_cluster_addresses(const json_t *m, char *text, size_t size)
{
	const json_t *address;
	size_t i, len = 0;

	*text = '\0';
	json_array_foreach(json_object_get(m, "addresses"), i, address)
	{
		if (len < size && json_is_string(address))
			len += (size_t)snprintf(text + len, size - len, "%s%s", i ? ", " : "",
						json_string_value(address));
	}
}

static bool ctl_cluster_waits(const json_t *m, const char *what)
{
	return strcmp(ctl_cluster_text(m, "waits"), what) == 0;
}

static void ctl_cluster_put_member(struct table *t, const json_t *m)
{
	const uint64_t ms = pages_number(m, "heartbeat_ms");
	char addresses[512], beat[32] = "";

	table_cell(t, pages_text(m, "name"));
	table_cell(t, pages_text(m, "state"));
	if (strcmp(ctl_cluster_text(m, "state"), "running") == 0)
		snprintf(beat, sizeof(beat), "%" PRIu64 ".%" PRIu64 " s ago", ms / 1000,
			 ms % 1000 / 100);
	table_cell(t, beat);
	ctl_cluster_addresses(m, addresses, sizeof(addresses));
	table_cell(t, addresses);
	table_cell(t, ctl_cluster_waits(m, "enforce")	    ? "still grants locks"
		      : ctl_cluster_is_true(m, "reclaims")  ? "its clients may reclaim"
		      : ctl_cluster_is_true(m, "enforcing") ? "grants no new locks"
							    : "");
}

/* Says what the grace waits for at a member, and what helps. */
static void ctl_cluster_print_wait(const json_t *m, FILE *out)
{
	char *name = table_safe_text(ctl_cluster_text(m, "name"));
	const char *safe = name ? name : "?";

	if (ctl_cluster_waits(m, "start"))
		fprintf(out,
			"  for member %s, which %s: start it, on any machine, or give it up: "
			"ringnfsctl cluster remove %s\n",
			safe,
			strcmp(ctl_cluster_text(m, "state"), "dead") == 0 ? "is dead" : "has left",
			safe);
	else if (ctl_cluster_waits(m, "enforce"))
		fprintf(out, "  for member %s, which still grants locks\n", safe);
	else if (ctl_cluster_waits(m, "reclaim"))
		fprintf(out,
			"  for clients of member %s, who reclaim: ringnfsctl grace status, there\n",
			safe);
	free(name);
}

static void ctl_cluster_print_head(const json_t *c, FILE *out)
{
	const json_t *m;
	size_t i;

	fprintf(out, "cluster %s, seen by member %s; epoch %" PRIu64 "; ",
		ctl_cluster_text(c, "name"), ctl_cluster_text(c, "instance"),
		pages_number(c, "epoch"));
	if (!ctl_cluster_is_true(c, "grace")) {
		fputs(ctl_cluster_is_true(c, "grants") ? "no grace period\n" : "new locks wait\n",
		      out);
		return;
	}
	fprintf(out, "GRACE: new locks wait, for %" PRIu64 " s so far\n",
		pages_number(c, "grace_seconds"));
	json_array_foreach(json_object_get(c, "members"), i, m)
	{
		ctl_cluster_print_wait(m, out);
	}
}

static int ctl_cluster_print(const json_t *c, FILE *out)
{
	static const struct table_column columns[] = { { "MEMBER", false },
						       { "STATE", false },
						       { "HEARTBEAT", false },
						       { "ADDRESSES", false },
						       { "LOCKS", false } };
	static const struct rows_shape shape = { columns, rn_array_size(columns),
						 ctl_cluster_put_member };

	ctl_cluster_print_head(c, out);
	return rows_print(&shape, json_object_get(c, "members"), out);
}

static int ctl_cluster_show(const struct ctl *ctl, FILE *out)
{
	json_t *c = NULL;
	int status = ctl_get(ctl, "/v1/cluster", &c);

	if (status == CTL_DONE && c)
		status = ctl_cluster_print(c, out);
	json_decref(c);
	return status;
}

/* True if the member is to be removed; else *status is to be returned. */
static bool ctl_cluster_confirm(const struct ctl *ctl, const char *member, int *status)
{
	const struct ctl plain = { .socket = ctl->socket };
	char question[256];

	*status = confirm_possible() ? ctl_cluster_show(&plain, stderr) : CTL_USAGE;
	if (*status != CTL_DONE)
		return false;
	*status = CTL_REFUSED;
	snprintf(question, sizeof(question),
		 "Clients of member %.64s lose the locks that they have not reclaimed. Remove it?",
		 member);
	return confirm_ask(question);
}

static int ctl_cluster_remove(const struct ctl *ctl, const char *member, bool yes)
{
	char *uri = uri_add(uri_new("/v1/cluster/remove"), "member", member);
	json_t *answer = NULL;
	int status = CTL_USAGE;

	if (!uri)
		return pages_no_memory();
	if (yes || ctl_cluster_confirm(ctl, member, &status))
		status = ctl_post(ctl, uri, NULL, &answer);
	if (answer)
		printf("member %s is removed\n", ctl_cluster_text(answer, "removed"));
	json_decref(answer);
	free(uri);
	return status;
}

int ctl_cluster(const struct ctl *ctl, int argc, char **argv)
{
	bool yes = false;
	const struct ctl_option options[] = { { "yes", NULL, &yes } };
	const int left = ctl_options(options, 1, argc, argv);

	if (left == 2 && strcmp(argv[1], "status") == 0 && !yes)
		return ctl_cluster_show(ctl, stdout);
	if (left == 3 && strcmp(argv[1], "remove") == 0)
		return ctl_cluster_remove(ctl, argv[2], yes);
	if (left >= 0)
		fputs("usage: ringnfsctl cluster status|remove MEMBER [--yes]\n", stderr);
	return CTL_USAGE;
}
