/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups of users, and users of Kerberos principals, as the system knows them. */
#include "daemon/names/names.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/tls_setup.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "nfs3/nfs3_server.h"
#include "rpc/principal.h"

#define SLOTS 1024u
#define TTL_SECONDS 300
#define TTL_FAILED_SECONDS 3 /* the databases gave no answer */
#define OLD_SECONDS 3600     /* longest use of an expired answer, while there is no newer one */

/* A direct-mapped cache: a colliding user is looked up again, which is only slower. */
struct slot {
	bool valid;
	bool asking;
	uint32_t uid;
	time_t expires; /* time after which it is asked again */
	time_t ends;	/* time after which it is not used any more */
	uint32_t n;
	uint32_t groups[VFS_GROUPS_MAX];
};

struct groups {
	struct askers *askers;
	pthread_mutex_t lock; /* guards slots; never held over a look-up */
	struct slot slots[SLOTS];
};

struct groups *groups_new(struct askers *askers)
{
	struct groups *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->askers = askers;
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

/* 0, or -RN_ELATER: the databases gave no answer. */
static int ask_databases(uint32_t uid, struct slot *out)
{
	struct passwd pw, *found = NULL;
	gid_t list[VFS_GROUPS_MAX];
	char buf[16384];
	int n = VFS_GROUPS_MAX;
	int rc = getpwuid_r(uid, &pw, buf, sizeof(buf), &found);

	out->n = 0;
	if (!found)
		return rc == 0 || rc == ENOENT || rc == ESRCH ? 0 : -RN_ELATER;
	/* -1: there are more than fit; the list then holds as many as fit. */
	if (getgrouplist(pw.pw_name, pw.pw_gid, list, &n) < 0)
		n = VFS_GROUPS_MAX;
	for (int i = 0; i < n; i++)
		out->groups[out->n++] = list[i];
	return 0;
}

struct job {
	struct groups *g;
	uint32_t uid;
};

/* Under the lock: records that no answer came. An older one stays in use. */
static void keep_old(struct slot *s, uint32_t uid, time_t now)
{
	if (!s->valid || s->uid != uid || s->ends <= now)
		*s = (struct slot){ .uid = uid };
	s->expires = now + TTL_FAILED_SECONDS;
	s->asking = false;
}

static void groups_run_job(void *arg, bool cancelled)
{
	struct job *j = arg;
	struct groups *g = j->g;
	struct slot *s = &g->slots[j->uid % SLOTS];
	struct slot mine = { .valid = true, .uid = j->uid };
	int rc = cancelled ? -ECANCELED : ask_databases(j->uid, &mine);
	const time_t now = (time_t)rn_now_seconds();

	mine.expires = now + TTL_SECONDS;
	mine.ends = mine.expires + OLD_SECONDS;
	pthread_mutex_lock(&g->lock);
	if (rc == 0)
		*s = mine;
	else
		keep_old(s, j->uid, now);
	pthread_mutex_unlock(&g->lock);
	free(j);
}

static void groups_ask(struct groups *g, const struct sockaddr *peer, uint32_t uid)
{
	struct job *j = malloc(sizeof(*j));

	if (j) {
		*j = (struct job){ g, uid };
		if (askers_ask(g->askers, ASK_GROUPS, peer, groups_run_job, j))
			return;
		free(j);
	}
	pthread_mutex_lock(&g->lock);
	g->slots[uid % SLOTS].asking = false;
	pthread_mutex_unlock(&g->lock);
}

int groups_lookup(void *ctx, const struct sockaddr *peer, struct vfs_cred *cred)
{
	struct groups *g = ctx;
	struct slot *s = &g->slots[cred->uid % SLOTS];
	const time_t now = (time_t)rn_now_seconds();
	bool known, wanted;

	pthread_mutex_lock(&g->lock);
	known = s->valid && s->uid == cred->uid && now < s->ends;
	wanted = !s->asking && (s->uid != cred->uid || now >= s->expires);
	if (wanted)
		s->asking = true;
	cred->ngroups = known ? s->n : 0;
	memcpy(cred->groups, s->groups, cred->ngroups * sizeof(s->groups[0]));
	pthread_mutex_unlock(&g->lock);
	if (wanted)
		groups_ask(g, peer, cred->uid);
	return known ? 0 : -RN_EUNNAMED;
}

static int by_kerberos(struct idmap *idmap, struct rpc_request *req)
{
	const struct sockaddr *peer = (const struct sockaddr *)&req->conn->peer;
	struct rpc_cred *cred = &req->call.cred;
	const int rc = idmap_principal(idmap, peer, cred->principal->name, cred->principal->len,
				       &cred->uid, &cred->gid);

	if (rc == -RN_EUNNAMED)
		return rc;
	if (rc < 0)
		cred->uid = cred->gid = (uint32_t)-1;
	cred->ngids = 0;
	return 0;
}

/*
 * Nobody knows yet whose files these are, and the call has waited long enough, or there is no room for it to wait: better no answer than a
 * wrong one. NFSv3 and NFSv4 have a word for "come again", which Linux's client obeys, while SYSTEM_ERR is an I/O error for its user. NFSv4's
 * state is that of the principal, whose name is known, but that of the certificate's user, who is not.
 */
static enum rpc_run come_again(struct rpc_request *req)
{
	const struct rpc_call *call = &req->call;
	struct rpc_cred *cred = &req->call.cred;

	if (call->prog != NFS_PROGRAM || call->vers < 3 || (call->vers > 3 && !req->secured))
		return RPC_RUN_SYSTEM_ERR;
	cred->unknown = true;
	cred->uid = cred->gid = (uint32_t)-1;
	cred->ngids = 0;
	return RPC_RUN_DONE;
}

/* 0, or -RN_EUNNAMED: the name service is being asked. */
static int principals_identify_call(const struct principals *p, struct rpc_request *req)
{
	if (req->secured)
		return by_kerberos(p->idmap, req);
	return p->users ? tls_users_identify(p->users, req) : 0;
}

enum rpc_run principals_identify(void *ctx, struct rpc_request *req)
{
	const struct principals *p = ctx;
	int rc;

	if (req->secured && !p->idmap)
		return RPC_RUN_AUTH_BADCRED;
	do
		rc = principals_identify_call(p, req);
	while (rc == -RN_EUNNAMED && rpc_try_later(req, RN_WAIT_USER, 0));
	req->call.cred.unknown = false;
	return rc == -RN_EUNNAMED ? come_again(req) : RPC_RUN_DONE;
}
