/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names in the export table that the name service does not know: a warning each. They are no error,
 * since the name service may know them later; until then such a line lets nobody in.
 */
#ifndef RINGNFS_CONF_EXPORTS_NAMES_H
#define RINGNFS_CONF_EXPORTS_NAMES_H

#include "conf/exports_match.h"

/* Waits for the name service: for a thread that may. Ends at the first name for which it does not
 * answer, with a warning that says so. */
void exp_names_check(const struct exp_table *table, const struct exp_resolver *resolver,
		     struct cfg_diags *diags);

#endif
