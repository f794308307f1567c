/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define USUAL_GROUPS 64 /* room for a peer's groups; more are asked for again */

enum admin_right admin_right_of(const struct ucred *peer, const gid_t *groups, size_t n, uid_t own,
				gid_t group)
{
	if (peer->uid == 0 || peer->uid == own)
		return ADMIN_CHANGE;
	if (group == ADMIN_NO_GROUP)
		return ADMIN_NOTHING;
	if (peer->gid == group)
		return ADMIN_READ;
	for (size_t i = 0; i < n; i++)
		if (groups[i] == group)
			return ADMIN_READ;
	return ADMIN_NOTHING;
}

/* The right of a peer with more groups than are usual. */
static enum admin_right with_many_groups(int fd, const struct ucred *cred, socklen_t len,
					 gid_t group)
{
	gid_t *groups = malloc(len);
	size_t n = 0;

	if (groups && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0)
		n = len / sizeof(groups[0]);
	enum admin_right right = admin_right_of(cred, groups, n, geteuid(), group);

	free(groups);
	return right;
}

enum admin_right admin_peer(int fd, gid_t group, struct admin_peer *out)
{
	struct ucred cred;
	gid_t groups[USUAL_GROUPS];
	socklen_t len = sizeof(cred);

	*out = (struct admin_peer){ .uid = (uid_t)-1 };
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return ADMIN_NOTHING;
	*out = (struct admin_peer){ .uid = cred.uid, .pid = cred.pid };
	len = sizeof(groups);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0)
		return admin_right_of(&cred, groups, len / sizeof(groups[0]), geteuid(), group);
	if (errno == ERANGE)
		return with_many_groups(fd, &cred, len, group);
	return admin_right_of(&cred, NULL, 0, geteuid(), group);
}
