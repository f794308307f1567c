/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl(8): asks a running ringnfsd over its control socket. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "ctl/ctl.h"
#include "ctl/ctl_exports.h"
#include "ctl/http.h"
#include "ctl/put_json.h"
#include "ctl/ctl_table.h"
#include "lib/util.h"

#define SOCKET "/run/ringnfs/control"
#define POST_SECONDS 300 /* without a byte from the server, which may wait for file systems */

static int ctl_help(const struct ctl *ctl, int argc, char **argv);

static const struct ctl_command commands[] = {
	{ "calls", "calls under way, and what they wait for", ctl_calls },
	{ "client evict", "end all that a client holds, and its sessions", ctl_client },
	{ "clients", "clients, how much they hold and what they did", ctl_clients },
	{ "cluster", "members of the cluster, and to give one up", ctl_cluster },
	{ "config show", "settings, and where each comes from", ctl_config },
	{ "connections", "connections, what goes over them and their limits", ctl_connections },
	{ "delegation recall", "have clients return delegations", ctl_delegation },
	{ "delegations", "delegations that clients hold", ctl_delegations },
	{ "drain", "give nothing new, and wait until nothing is held", ctl_drain },
	{ "exports", "what is exported to whom, and changes of it", ctl_exports },
	{ "grace status|end", "the grace period after a restart", ctl_grace },
	{ "help", "this text, or what one command is for: help [COMMAND]", ctl_help },
	{ "layouts", "files that clients read and write at other members of the cluster",
	  ctl_layouts },
	{ "lock release", "end locks that clients hold", ctl_lock },
	{ "locks", "byte-range locks that clients hold", ctl_locks },
	{ "log", "levels of the log, and to set them", ctl_log },
	{ "open close", "end opens that clients hold", ctl_open },
	{ "opens", "files that clients have open", ctl_opens },
	{ "restart", "run the server's program anew; clients go on", ctl_restart },
	{ "sessions", "sessions of NFSv4.1 and 4.2: slots, callbacks, connections", ctl_sessions },
	{ "stats", "calls, their times and bytes, by operation, export or client", ctl_stats },
	{ "status", "what the server is, and how it does", ctl_status },
	{ "support-bundle", "an archive for a report, without secrets", ctl_support_bundle },
	{ "top", "operations and their times, live", ctl_top },
	{ "trace", "calls as they are answered", ctl_trace },
};

static const struct option options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "json", no_argument, NULL, 'j' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void ctl_print_help(FILE *out)
{
	fprintf(out, "usage: ringnfsctl [OPTION ...] COMMAND\n"
		     "Asks a running ringnfsd, and changes what it does.\n\n"
		     "  -s, --socket PATH  its control socket (" SOCKET ")\n"
		     "  -j, --json  print the server's answer as it is\n"
		     "  -V, --version  print the version, then exit\n"
		     "  -h, --help  print this text, then exit\n\n");
	for (size_t i = 0; i < rn_array_size(commands); i++)
		fprintf(out, "  %-18s %s\n", commands[i].name, commands[i].help);
}

/* A row may name what its command does by a second word. */
static bool ctl_command_is(const char *row, const char *word)
{
	const size_t len = strcspn(row, " ");

	return strlen(word) == len && strncmp(row, word, len) == 0;
}

static int unknown(const char *word)
{
	fprintf(stderr, "ringnfsctl: '%s' is no command; see ringnfsctl --help\n", word);
	return CTL_USAGE;
}

/* Rows of one command. */
static int print_command(const char *word)
{
	bool found = false;

	for (size_t i = 0; i < rn_array_size(commands); i++) {
		if (!ctl_command_is(commands[i].name, word))
			continue;
		printf("ringnfsctl %s: %s\n", commands[i].name, commands[i].help);
		found = true;
	}
	if (!found)
		return unknown(word);
	if (strcmp(word, "exports") == 0)
		exports_print_help(stdout);
	puts("The manual page ringnfsctl(8) says more.");
	return CTL_DONE;
}

static int ctl_help(const struct ctl *ctl, int argc, char **argv)
{
	(void)ctl;
	if (argc > 2) {
		fputs("usage: ringnfsctl help [COMMAND]\n", stderr);
		return CTL_USAGE;
	}
	if (argc == 2)
		return print_command(argv[1]);
	ctl_print_help(stdout);
	return CTL_DONE;
}

static int unreachable(const struct ctl *ctl, int rc)
{
	const char *hint = "";

	if (rc == -ENOENT || rc == -ECONNREFUSED)
		hint = "; does ringnfsd run, with this path as server.control_socket?";
	else if (rc == -EACCES || rc == -EPERM)
		hint = "; only root and members of the group ringnfs may use it";
	fprintf(stderr, "ringnfsctl: %s: %s%s\n", ctl->socket,
		rc == -EPROTO ? "no whole answer of ringnfsd" : strerror(-rc), hint);
	return rc == -EACCES || rc == -EPERM ? CTL_REFUSED : CTL_UNREACHABLE;
}

static int ctl_refused(const struct ctl *ctl, int http_status, const json_t *answer)
{
	const char *error = json_string_value(json_object_get(answer, "error"));
	const char *code = json_string_value(json_object_get(answer, "code"));
	/* The reason may name paths and machines. */
	char *safe = table_safe_text(error ? error : "no reason was given");

	fprintf(stderr, "ringnfsctl: %s: refused: %s (%s, status %d)\n", ctl->socket,
		safe ? safe : "?", code ? code : "?", http_status);
	free(safe);
	return CTL_REFUSED;
}

int ctl_failed(const struct ctl *ctl, int rc, const struct http_answer *a)
{
	if (rc)
		return unreachable(ctl, rc);
	json_t *answer = json_loadb(a->body, a->body_len, 0, NULL);
	const int status = ctl_refused(ctl, a->status, answer);

	json_decref(answer);
	return status;
}

static int ctl_ask(const struct ctl *ctl, const struct http_question *q, json_t **out)
{
	struct http_answer a;
	int rc = http_ask(ctl->socket, q, &a), status = CTL_DONE;

	*out = rc ? NULL : json_loadb(a.body, a.body_len, 0, NULL);
	if (!rc && !*out && a.status == 200)
		rc = -EPROTO;
	if (rc)
		status = unreachable(ctl, rc);
	else if (a.status != 200)
		status = ctl_refused(ctl, a.status, *out);
	if (!rc && ctl->json) {
		put_json_text(a.body, a.body_len, *out);
		json_decref(*out);
		*out = NULL;
	}
	http_free(&a);
	return status;
}

int ctl_get(const struct ctl *ctl, const char *path, json_t **out)
{
	return ctl_ask(ctl, &(struct http_question){ .method = "GET", .path = path }, out);
}

int ctl_post_text(const struct ctl *ctl, const char *path, const char *text, size_t len,
		  json_t **out)
{
	const struct http_question q = {
		.method = "POST",
		.path = path,
		.body = text,
		.body_len = len,
		.seconds = POST_SECONDS,
	};

	return ctl_ask(ctl, &q, out);
}

int ctl_post(const struct ctl *ctl, const char *path, const json_t *body, json_t **out)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

	*out = NULL;
	const int status = body && !text
				   ? unreachable(ctl, -ENOMEM)
				   : ctl_post_text(ctl, path, text, text ? strlen(text) : 0, out);

	free(text);
	return status;
}

static int ctl_run_command(const struct ctl *ctl, int argc, char **argv)
{
	for (size_t i = 0; argc > 0 && i < rn_array_size(commands); i++)
		if (ctl_command_is(commands[i].name, argv[0]))
			return commands[i].run(ctl, argc, argv);
	if (argc > 0)
		return unknown(argv[0]);
	ctl_print_help(stderr);
	return CTL_USAGE;
}

static int wrong_option(const char *option)
{
	fprintf(stderr, "ringnfsctl: unknown option, or one without its value: '%s'\n", option);
	return CTL_USAGE;
}

/* -o is that of exportfs(8), for `exports add`. */
static bool is_option_of_command(const char *word)
{
	return strncmp(word, "--", 2) == 0 || strcmp(word, "-o") == 0;
}

/*
 * Options of the tool may stand before and behind the command. The words of the command stay in argv, in
 * their order, with its own options among them (ctl/ctl_options.h). Their number, or -1: *status is to be returned.
 */
static int take_options(struct ctl *ctl, int argc, char **argv, int *status)
{
	int c, n = 0;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "-:s:jVh", options, NULL)) != -1) {
		const char *word = argv[optind - 1];

		if (c == 's')
			ctl->socket = optarg;
		else if (c == 'j')
			ctl->json = true;
		else if (c == 'V')
			return *status = puts("ringnfsctl (" PACKAGE_STRING ")") < 0, -1;
		else if (c == 'h')
			return ctl_print_help(stdout), *status = CTL_DONE, -1;
		else if (c == 1 || (c == '?' && n > 0 && is_option_of_command(word)))
			argv[n++] = argv[optind - 1];
		else
			return *status = wrong_option(word), -1;
	}
	if (n > 0 && optind < argc)
		argv[n++] = argv[optind - 1]; /* the -- that has ended the options */
	while (optind < argc)
		argv[n++] = argv[optind++];
	return n;
}

int main(int argc, char **argv)
{
	struct ctl ctl = { .socket = SOCKET };
	int status = CTL_USAGE;
	const int n = take_options(&ctl, argc, argv, &status);

	if (n >= 0)
		status = ctl_run_command(&ctl, n, argv);
	/* An answer that could not be written, to a full disk for example, was not given. */
	if (fflush(stdout) != 0 && status == CTL_DONE) {
		perror("ringnfsctl: standard output");
		return CTL_UNREACHABLE;
	}
	return status;
}
