/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Supplementary groups by the server's own databases (the setting nfs3.manage_gids): AUTH_SYS
 * carries only 16. Answers are kept for five minutes, for a bounded number of users. Thread-safe; a
 * look-up blocks its caller.
 */
#ifndef RN_DAEMON_GROUPS_H
#define RN_DAEMON_GROUPS_H

#include "vfs/types.h"

struct groups;

struct groups *groups_new(void);
void groups_free(struct groups *g);
/* Replaces cred's groups (and only those) by what the server knows of cred->uid; an unknown user
 * has none. ctx is a struct groups. */
void groups_lookup(void *ctx, struct vfs_cred *cred);

#endif
