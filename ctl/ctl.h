/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the commands of ringnfsctl(8): exit statuses, options, and asking the server. */
#ifndef RN_CTL_CTL_H
#define RN_CTL_CTL_H

#include <jansson.h>
#include <stdbool.h>

/* Exit statuses, for scripts. CTL_HELD: the time is over, and clients hold something still. */
enum { CTL_DONE = 0, CTL_REFUSED = 1, CTL_USAGE = 2, CTL_UNREACHABLE = 3, CTL_HELD = 4 };

struct ctl {
	const char *socket;
	bool json; /* the answer is printed as the server gives it */
};

struct ctl_command {
	const char *name;
	const char *help;
	int (*run)(const struct ctl *ctl, int argc, char **argv); /* argv[0] is the name */
};

/* Sends a request, and parses the answer. path may have a query (ctl/uri.h). An exit status: CTL_DONE, or another
 * with a message on standard error; the answer may say more then. With ctl->json it is printed, and *out is NULL. */
int ctl_get(const struct ctl *ctl, const char *path, json_t **out);
/* Like ctl_get(), but by POST, which may take minutes. body may be NULL. */
int ctl_post(const struct ctl *ctl, const char *path, const json_t *body, json_t **out);
/* Like ctl_post(), with a body of any kind. */
int ctl_post_text(const struct ctl *ctl, const char *path, const char *text, size_t len,
		  json_t **out);

struct http_answer;
/* Says on standard error why a request to the server (ctl/http.h) has failed: by rc, or if that is 0 by an answer whose
 * status is not 200. An exit status. */
int ctl_failed(const struct ctl *ctl, int rc, const struct http_answer *a);

int ctl_calls(const struct ctl *ctl, int argc, char **argv);
int ctl_client(const struct ctl *ctl, int argc, char **argv);
int ctl_clients(const struct ctl *ctl, int argc, char **argv);
int ctl_connections(const struct ctl *ctl, int argc, char **argv);
int ctl_config(const struct ctl *ctl, int argc, char **argv);
int ctl_delegation(const struct ctl *ctl, int argc, char **argv);
int ctl_delegations(const struct ctl *ctl, int argc, char **argv);
int ctl_drain(const struct ctl *ctl, int argc, char **argv);
int ctl_cluster(const struct ctl *ctl, int argc, char **argv);
int ctl_grace(const struct ctl *ctl, int argc, char **argv);
int ctl_lock(const struct ctl *ctl, int argc, char **argv);
int ctl_layouts(const struct ctl *ctl, int argc, char **argv);
int ctl_locks(const struct ctl *ctl, int argc, char **argv);
int ctl_log(const struct ctl *ctl, int argc, char **argv);
int ctl_open(const struct ctl *ctl, int argc, char **argv);
int ctl_opens(const struct ctl *ctl, int argc, char **argv);
int ctl_exports(const struct ctl *ctl, int argc, char **argv);
int ctl_restart(const struct ctl *ctl, int argc, char **argv);
int ctl_sessions(const struct ctl *ctl, int argc, char **argv);
int ctl_stats(const struct ctl *ctl, int argc, char **argv);
int ctl_status(const struct ctl *ctl, int argc, char **argv);
int ctl_support_bundle(const struct ctl *ctl, int argc, char **argv);
int ctl_top(const struct ctl *ctl, int argc, char **argv);
int ctl_trace(const struct ctl *ctl, int argc, char **argv);

#endif
