/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, locks, delegations and layouts of clients: the pages of /v1/opens and its like, and their rows for people. */
#ifndef RN_CTL_STATES_H
#define RN_CTL_STATES_H

#include <stdio.h>

#include "ctl/ctl.h"
#include "ctl/file_handle.h"

enum states_kind { STATES_OPENS, STATES_LOCKS, STATES_DELEGATIONS, STATES_LAYOUTS };

/* Options that choose states; NULL: not given. */
struct states_choice {
	const char *file, *client, *export, *id;
	const char *revoke; /* "1": delegations are revoked */
	/* Set by states_find_file(): these decide, and file is for the server's log. */
	const char *handle, *device;
	struct file_handle_text found;
	int lost; /* -errno: why the file could not be looked up; 0: it was, or none is chosen */
};

/* "opens", "locks", "delegations", "layouts": the path below /v1/, and the member of the answer. */
const char *states_name(enum states_kind kind);
/* Chooses the file by its handle if it can be looked up. A file that is gone is chosen by the path that it had. */
void states_find_file(struct states_choice *choice);
/* True if the choice names a file that cannot be looked up, which is said on standard error: for a choice that no row fits. */
bool states_file_is_lost(const struct states_choice *choice);
/* /v1/PATH with the choice as its query. The caller frees it. NULL: no memory. */
char *states_uri(const char *path, const struct states_choice *choice);
/* Asks for all pages. *rows is an array, to be freed with json_decref(); NULL on errors. An exit status. */
int states_get(const struct ctl *ctl, enum states_kind kind, const struct states_choice *choice,
	       json_t **rows);
/* Like states_get(), by POST to that path, which ends what is chosen; each row has its result. *rows has those of the pages that
 * were answered, on errors too. */
int states_end(const struct ctl *ctl, enum states_kind kind, const char *path,
	       const struct states_choice *choice, json_t **rows);
/* Prints rows as a table. An exit status. */
int states_print(enum states_kind kind, const json_t *rows, FILE *out);
/* Prints one object with all rows. An exit status. */
int states_print_json(enum states_kind kind, json_t *rows);

#endif
