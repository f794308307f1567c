/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Supplementary groups by the server's own databases (the setting nfs3.manage_gids): AUTH_SYS
 * carries only 16. Answers are kept for five minutes, for a bounded number of users; past that they
 * are used for an hour more, while a new answer is fetched. Thread-safe; no caller waits.
 */
#ifndef RN_DAEMON_GROUPS_H
#define RN_DAEMON_GROUPS_H

#include <sys/socket.h>

#include "vfs/types.h"

struct askers;
struct groups;

struct groups *groups_new(struct askers *askers); /* NULL: no memory */
/* No question may be under way. */
void groups_free(struct groups *g);
/* Replaces cred's groups (and only those) by the server's groups of cred->uid; an unknown user has
 * none. -RN_EUNNAMED: not known yet, asked on behalf of the peer. ctx is a struct groups. */
int groups_lookup(void *ctx, const struct sockaddr *peer, struct vfs_cred *cred);

#endif
