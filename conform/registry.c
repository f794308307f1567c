/* SPDX-License-Identifier: BSD-2-Clause */
/* Every group of cases, in the order in which they run. A group's numbers are its own hundreds. */
#include "conform/conform.h"

extern const struct cf_group cf_group_private;
extern const struct cf_group cf_group_v4;

const struct cf_group *const cf_groups[] = {
	&cf_group_private,
	&cf_group_v4,
	NULL,
};
