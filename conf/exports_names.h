/* SPDX-License-Identifier: BSD-2-Clause */
/* Warnings for names in the export table that the name service does not know. They are no errors,
 * since the name service may know them later; until then such a line admits nobody. */
#ifndef RINGNFS_CONF_EXPORTS_NAMES_H
#define RINGNFS_CONF_EXPORTS_NAMES_H

#include "conf/exports_match.h"

/* Waits for the name service, so for a thread that may wait. Ends at the first name without an
 * answer, with a warning about that. */
void exp_names_check(const struct exp_table *table, const struct exp_resolver *resolver,
		     struct cfg_diags *diags);

#endif
