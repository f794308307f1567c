/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the settings ask for. Most of it is taken out of the budget at the start, so a budget that
 * is too small is known before. The same is asked at the start and by --check-config.
 */
#ifndef RN_DAEMON_MEMORY_NEED_H
#define RN_DAEMON_MEMORY_NEED_H

#include <stddef.h>

#include "conf/settings.h"

/* The smallest server.memory_max that does for the settings, in bytes: a whole number of MiB. */
size_t memory_need_least(const struct cfg_settings *s);
/* The budget in force: as set; else a quarter of ram, or as much as is needed up to a half of it. */
size_t memory_need_budget(const struct cfg_settings *s, size_t ram);
/* 0, or -EINVAL with a message that says what would be right. */
int memory_need_check(const struct cfg_settings *s, size_t ram, struct cfg_diags *diags);

#endif
