/* SPDX-License-Identifier: BSD-2-Clause */
/* Every group of cases, in the order in which they run. A group's numbers are its own hundreds. */
#include "conform/conform.h"

extern const struct cf_group cf_group_private;

const struct cf_group *const cf_groups[] = {
	&cf_group_private,
	NULL,
};
