/* SPDX-License-Identifier: BSD-2-Clause */
/* Making of tables; for the exports parser alone. */
#ifndef RINGNFS_CONF_EXPORTS_TABLE_H
#define RINGNFS_CONF_EXPORTS_TABLE_H

#include "conf/exports.h"

/* An empty table with room for max exports and one reference, or NULL. */
struct exp_table *exp_table_new(size_t max);
/* Make the index by id, when all exports are in. 0 or -ENOMEM. */
int exp_table_index(struct exp_table *table);
/* Replaces the refused paths by those of another table. 0 or -ENOMEM. */
int exp_table_copy_refused(struct exp_table *to, const struct exp_table *from);

#endif
