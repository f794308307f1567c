/* SPDX-License-Identifier: BSD-2-Clause */
/* Running the cases: functions for main(), beside those for cases. */
#ifndef RN_CONFORM_RUN_H
#define RN_CONFORM_RUN_H

#include <stdio.h>

#include "tools/conform/conform.h"

/* Releases what the case left: connections, memory. */
void cf_test_end(struct cf_test *t);
/* Starts one: t is overwritten. */
void cf_test_begin(struct cf_test *t, struct cf_run *run, const struct cf_case *c, unsigned number);

/* Mounts the export and makes the scratch directory; finds out about NFSv4. 0, or -1 with the
 * reason in why. */
int cf_run_set_up(struct cf_run *run, char *why, size_t size);
/* Removes the scratch directory with what is in it. 0, or -1 with the reason in why. */
int cf_run_tear_down(struct cf_run *run, char *why, size_t size);

/* Runs one case on a connection of its own. */
void cf_run_case(struct cf_run *run, const struct cf_case *c, unsigned number, struct cf_test *t);

/* True if the list selects the case: "101,200-230,private,read-chunk-1": numbers, ranges, groups,
 * ids. */
bool cf_selected(const char *list, const struct cf_group *g, unsigned index);
/* NULL, or the first word of the list that selects nothing. */
const char *cf_select_check(const char *list, char *word, size_t size);

/* MOUNT by TCP, for servers that do not answer it over RDMA. port NULL: rpcbind is asked. 0 and the
 * handle, or -1 with the reason. */
int cf_mount_by_tcp(const struct cf_run *run, struct cf_fh *fh, char *why, size_t size);

enum cf_format { CF_TEXT, CF_TAP, CF_JSON };
struct cf_report {
	FILE *out;
	enum cf_format format;
	unsigned passed, failed, warned, skipped;
	bool verbose;
};
void cf_report_begin(struct cf_report *r, const struct cf_run *run, unsigned ncases);
void cf_report_case(struct cf_report *r, const struct cf_group *g, const struct cf_test *t);
void cf_report_end(struct cf_report *r);
void cf_report_list(FILE *out, const char *only);

#endif
