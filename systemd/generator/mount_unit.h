/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_SYSTEMD_MOUNT_UNIT_H
#define RN_SYSTEMD_MOUNT_UNIT_H

#include <stdbool.h>
#include <stddef.h>

enum { MOUNT_UNIT_SIZE = 256 }; /* of a unit's name with its end, as systemd has it */

/* Name of the mount unit of the first len bytes of a cleaned absolute path, as `systemd-escape --path --suffix=mount` has
 * it. False if it would be too long, or if there is none of that name by this rule. */
bool mount_unit_name(const char *path, size_t len, char name[MOUNT_UNIT_SIZE]);

#endif
