/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers with rows whose paths are searched for on threads of their own, as the file systems may not answer. After
 * two seconds the answer goes without the paths that are missing.
 */
#ifndef RN_DAEMON_ADMIN_ADMIN_PATH_SEARCH_H
#define RN_DAEMON_ADMIN_ADMIN_PATH_SEARCH_H

#include <jansson.h>

#include "admin/admin.h"
#include "vfs/view.h"

/* Rows to search for. */
struct path_search;
/* Counts the threads that search, so that a file system which does not answer holds up few. */
struct path_searchers;

struct path_searchers *path_searchers_new(void); /* NULL: no memory */
/* Threads that still wait are left to themselves. NULL is allowed. */
void path_searchers_free(struct path_searchers *all);

/* Adds a row of a file below exp, whose member path is to be set; it makes *search if that is NULL. Without memory, or
 * while too many searches wait, nothing happens. */
void path_search_add(struct path_searchers *all, struct path_search **search, json_t *row,
		     struct vfs_export *exp, const struct vfs_fh *fh);
/* Answers with reply, whose reference it takes, when the search is over. */
void path_search_answer(struct path_search *search, const struct admin_request *req,
			struct admin_reply *r, json_t *reply);
/* For one that shall not be answered. NULL is allowed. */
void path_search_free(struct path_search *search);

#endif
