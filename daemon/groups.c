/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/groups.h"

#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOTS 1024u
#define TTL_SECONDS 300

/* A direct-mapped cache: a colliding user is looked up again, which is only slower. */
struct slot {
	bool valid;
	uint32_t uid;
	time_t expires;
	uint32_t n;
	uint32_t groups[VFS_GROUPS_MAX];
};

struct groups {
	pthread_mutex_t lock; /* guards slots; never held over a look-up */
	struct slot slots[SLOTS];
};

struct groups *groups_new(void)
{
	struct groups *g = calloc(1, sizeof(*g));

	if (g)
		pthread_mutex_init(&g->lock, NULL);
	return g;
}

void groups_free(struct groups *g)
{
	if (!g)
		return;
	pthread_mutex_destroy(&g->lock);
	free(g);
}

static time_t now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static void ask_databases(uint32_t uid, struct slot *out)
{
	struct passwd pw, *found = NULL;
	gid_t list[VFS_GROUPS_MAX];
	char buf[16384];
	int n = VFS_GROUPS_MAX;

	out->n = 0;
	if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) != 0 || !found)
		return;
	/* -1: there are more than fit; the list then holds as many as fit. */
	if (getgrouplist(pw.pw_name, pw.pw_gid, list, &n) < 0)
		n = VFS_GROUPS_MAX;
	for (int i = 0; i < n; i++)
		out->groups[out->n++] = list[i];
}

void groups_lookup(void *ctx, struct vfs_cred *cred)
{
	struct groups *g = ctx;
	struct slot *s = &g->slots[cred->uid % SLOTS];
	struct slot mine;
	time_t now = now_seconds();

	pthread_mutex_lock(&g->lock);
	mine = *s;
	pthread_mutex_unlock(&g->lock);
	if (!mine.valid || mine.uid != cred->uid || mine.expires <= now) {
		mine = (struct slot){ .valid = true,
				      .uid = cred->uid,
				      .expires = now + TTL_SECONDS };
		ask_databases(cred->uid, &mine);
		pthread_mutex_lock(&g->lock);
		*s = mine;
		pthread_mutex_unlock(&g->lock);
	}
	cred->ngroups = mine.n;
	memcpy(cred->groups, mine.groups, mine.n * sizeof(mine.groups[0]));
}
