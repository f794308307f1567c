/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl cluster status, check, move and remove */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
	table_cell(t, pages_join(m, "addresses", addresses, sizeof(addresses)));
	table_cell(t, ctl_cluster_waits(m, "enforce")	    ? "still grants locks"
		      : ctl_cluster_is_true(m, "lost")	    ? "lost: its clients may not reclaim"
		      : ctl_cluster_is_true(m, "reclaims")  ? "its clients may reclaim"
		      : ctl_cluster_is_true(m, "enforcing") ? "grants no new locks"
							    : "");
}

/* Says that a member's clients may not reclaim, and why. */
static void ctl_cluster_print_loss(const json_t *m, FILE *out)
{
	char *name;

	if (!ctl_cluster_is_true(m, "lost"))
		return;
	name = table_safe_text(ctl_cluster_text(m, "name"));
	fprintf(out,
		"LOST: member %s's locks were dropped by the file system while others granted "
		"theirs; its clients may not reclaim. Was its machine's client evicted by hand?\n",
		name ? name : "?");
	free(name);
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
	if (ctl_cluster_is_true(c, "grace"))
		fprintf(out, "GRACE: new locks wait, for %" PRIu64 " s so far\n",
			pages_number(c, "grace_seconds"));
	else
		fputs(ctl_cluster_is_true(c, "grants") ? "no grace period\n" : "new locks wait\n",
		      out);
	json_array_foreach(json_object_get(c, "members"), i, m)
	{
		if (ctl_cluster_is_true(c, "grace"))
			ctl_cluster_print_wait(m, out);
		ctl_cluster_print_loss(m, out);
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

/* For scripts: whether the member is alive to the others. A server that does not answer is another exit status. */
static int ctl_cluster_check(const struct ctl *ctl)
{
	const struct ctl plain = { .socket = ctl->socket };
	json_t *c = NULL;
	int status = ctl_get(&plain, "/v1/cluster", &c);

	if (status == CTL_DONE && pages_number(c, "lease_ms") == 0) {
		fprintf(stderr, "ringnfsctl: %s: the lease of member %s is over\n", ctl->socket,
			ctl_cluster_text(c, "instance"));
		status = CTL_REFUSED;
	}
	json_decref(c);
	return status;
}

/* The state that the member leaves in its state directory, under this name (daemon/cluster_state.h). The next run may take it as soon as the process ends. */
#define STATE_NAME "/moved-state"
#define LOOK_MS 5

/* *left is 1 once the state is seen, 0 as long as it is not, and -1 if the user may not see it. */
static void ctl_cluster_look_for_state(const char *path, int *left)
{
	struct stat st;

	if (*left == 0 && lstat(path, &st) == 0)
		*left = 1;
	else if (*left == 0 && errno != ENOENT)
		*left = -1;
}

/* Waits for the end of the process: its locks of the state directory are free then. */
static int ctl_cluster_await_end(const char *member, pid_t pid, const char *state, int *left)
{
	const int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd < 0 && (pid <= 0 || errno != ESRCH)) {
		fprintf(stderr, "ringnfsctl: member %s leaves, but its process cannot be seen\n",
			member);
		return CTL_UNREACHABLE;
	}
	while (fd >= 0 && poll(&p, 1, LOOK_MS) <= 0)
		ctl_cluster_look_for_state(state, left);
	ctl_cluster_look_for_state(state, left);
	if (fd >= 0)
		close(fd);
	return CTL_DONE;
}

static int ctl_cluster_move(const struct ctl *ctl)
{
	static const char *const with[] = {
		"",
		" without its clients' state, as its log says",
		" with its clients' state",
	};
	const struct ctl plain = { .socket = ctl->socket };
	char state[PATH_MAX];
	json_t *answer = NULL;
	int left = 0, status = ctl_post(&plain, "/v1/cluster/move", NULL, &answer);

	if (status == CTL_DONE) {
		const char *member = ctl_cluster_text(answer, "moves");

		snprintf(state, sizeof(state), "%s" STATE_NAME,
			 ctl_cluster_text(answer, "state_dir"));
		status = ctl_cluster_await_end(member, (pid_t)pages_number(answer, "pid"), state,
					       &left);
		if (status == CTL_DONE)
			printf("member %s has left%s, and its server has ended: move its address, "
			       "and start it elsewhere\n",
			       member, with[left + 1]);
	}
	json_decref(answer);
	return status;
}

int ctl_cluster(const struct ctl *ctl, int argc, char **argv)
{
	bool yes = false;
	const struct ctl_option options[] = { { "yes", NULL, &yes } };
	const int left = ctl_options(options, 1, argc, argv);

	if (left == 2 && strcmp(argv[1], "status") == 0 && !yes)
		return ctl_cluster_show(ctl, stdout);
	if (left == 2 && strcmp(argv[1], "check") == 0 && !yes)
		return ctl_cluster_check(ctl);
	if (left == 2 && strcmp(argv[1], "move") == 0 && !yes)
		return ctl_cluster_move(ctl);
	if (left == 3 && strcmp(argv[1], "remove") == 0)
		return ctl_cluster_remove(ctl, argv[2], yes);
	if (left >= 0)
		fputs("usage: ringnfsctl cluster status|check|move|remove MEMBER [--yes]\n",
		      stderr);
	return CTL_USAGE;
}
