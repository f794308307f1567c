/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists that the server gives in pages, each with the place of the next one. */
#ifndef RN_CTL_PAGES_H
#define RN_CTL_PAGES_H

#include <stdint.h>

#include "ctl/ctl.h"

struct pages_query {
	const char *path; /* such as "/v1/clients" */
	const char *list; /* member of the answers that has the rows */
	/* A parameter, or NULL */
	const char *name, *value;
	json_t **last; /* NULL, or a place for the last page, for the caller to free */
};

/* Gets all pages. An exit status: CTL_DONE, and *rows is an array for the caller to free; or another with a message on
 * standard error, and *rows is NULL. */
int pages_get(const struct ctl *ctl, const struct pages_query *q, json_t **rows);
/* Prints the rows as the server would in one page. An exit status. */
int pages_print_json(const struct pages_query *q, json_t *rows);

/* Members of a row. */
const char *pages_text(const json_t *row, const char *name); /* NULL: there is none */
uint64_t pages_number(const json_t *row, const char *name);  /* 0: there is none */
int pages_no_memory(void); /* says so on standard error, and returns the exit status */

/* Texts of a list, with commas between them, cut to the size; empty if there are none. */
const char *pages_join(const json_t *object, const char *list, char *text, size_t size);

#endif
