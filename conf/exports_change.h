/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables that differ from another one by one client: for temporary changes, which no file names. The files
 * are not read, so that nothing else of them comes into force.
 */
#ifndef RINGNFS_CONF_EXPORTS_CHANGE_H
#define RINGNFS_CONF_EXPORTS_CHANGE_H

#include "conf/exports.h"

/* A client of an export, as a person names it. Any bytes are safe. */
struct exp_change {
	const char *client, *path;
	const char *options; /* as in brackets behind the client; NULL or empty: the usual ones */
};

/*
 * Makes a table with that client as well, which replaces one of the same name. The path is checked as opts says,
 * and those of the other exports are not. Files, text and strict of opts are not used. 0, -EINVAL with errors in
 * diags, or -ENOMEM.
 */
int exp_table_add(const struct exp_table *old, const struct exp_change *change,
		  const struct exp_load_opts *opts, struct cfg_diags *diags,
		  struct exp_table **out);
/* Makes a table without that client; its export is left out if it was the last one. Errors as above. */
int exp_table_remove(const struct exp_table *old, const struct exp_change *change,
		     struct cfg_diags *diags, struct exp_table **out);

#endif
