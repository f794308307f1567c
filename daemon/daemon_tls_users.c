/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/daemon_tls_users.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/tls_users.h"
#include "daemon/idmap.h"
#include "lib/error.h"
#include "lib/log_ids.h"

#define NOBODY ((uint32_t)-1)

struct tls_users {
	const char *file;
	struct idmap *idmap;
	pthread_rwlock_t lock; /* guards the next two; taken before the locks of idmap */
	struct cfg_tls_users *map;
	uint32_t number; /* of the map: each reload has a new one, and it is not 0 */
};

/* The messages go to the log. */
static int tls_users_load(const char *file, const struct rn_logger *log, struct cfg_tls_users **out)
{
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	const int rc = cfg_tls_users_load(file, &diags, out);

	for (unsigned i = 0; i < diags.n; i++) {
		char line[1024];

		cfg_diag_format(&diags.items[i], line, sizeof(line));
		rn_err(log, "%s", line);
	}
	cfg_diags_free(&diags);
	return rc;
}

int tls_users_new(const char *file, struct idmap *idmap, const struct rn_logger *log,
		  struct tls_users **out)
{
	struct tls_users *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return -ENOMEM;
	rc = tls_users_load(file, log, &u->map);
	if (rc) {
		rn_err(log,
		       "tls.user_map: %s is refused; correct it, or take out tls.user_map to take "
		       "users from calls",
		       file);
		free(u);
		return rc;
	}
	u->file = file;
	u->idmap = idmap;
	u->number = 1;
	pthread_rwlock_init(&u->lock, NULL);
	*out = u;
	return 0;
}

void tls_users_free(struct tls_users *u)
{
	if (!u)
		return;
	cfg_tls_users_free(u->map);
	pthread_rwlock_destroy(&u->lock);
	free(u);
}

int tls_users_reload(struct tls_users *u, const struct rn_logger *log)
{
	struct cfg_tls_users *map, *old;
	const int rc = tls_users_load(u->file, log, &map);

	if (rc) {
		rn_warn(log,
			"the old map of certificates to users stays in force: correct %s, and "
			"reload",
			u->file);
		return rc;
	}
	pthread_rwlock_wrlock(&u->lock);
	old = u->map;
	u->map = map;
	if (++u->number == 0)
		u->number = 1;
	pthread_rwlock_unlock(&u->lock);
	cfg_tls_users_free(old);
	return 0;
}

unsigned tls_users_count(struct tls_users *u)
{
	pthread_rwlock_rdlock(&u->lock);
	const unsigned n = u->map->n;
	pthread_rwlock_unlock(&u->lock);
	return n;
}

/* With the lock. The certificate keeps the answer, as it stays the same for all calls under one map. */
static const struct cfg_tls_user *tls_users_find(const struct tls_users *u,
						 const struct rn_certificate *cert)
{
	struct rn_certificate *kept = (struct rn_certificate *)(uintptr_t)cert;
	uint64_t found = atomic_load_explicit(&kept->found, memory_order_relaxed);

	if (found >> 32 != u->number) {
		const struct cfg_tls_user *line = cfg_tls_users_find(u->map, cert);
		const uint32_t at = line ? (uint32_t)(line - u->map->lines) + 1 : 0;

		found = (uint64_t)u->number << 32 | at;
		atomic_store_explicit(&kept->found, found, memory_order_relaxed);
	}
	return (uint32_t)found ? &u->map->lines[(uint32_t)found - 1] : NULL;
}

/* The same as idmap_user, under the lock. */
static int tls_users_ask(struct tls_users *u, const struct cfg_tls_user *line,
			 const struct sockaddr *peer, struct rpc_cred *to)
{
	uint32_t uid = line->uid, gid = line->gid;

	if (line->as == CFG_AS_NAME) {
		const int rc = idmap_user(u->idmap, peer, line->name, &uid, &gid);

		if (rc)
			return rc;
	}
	if ((uid == 0 || gid == 0) && !line->root)
		return -ENOENT;
	to->uid = uid;
	to->gid = gid;
	return 0;
}

int tls_users_identify(struct tls_users *u, struct rpc_request *req)
{
	const struct sockaddr *peer = (const struct sockaddr *)&req->conn->peer;
	struct rpc_cred *cred = &req->call.cred, ids = { .uid = NOBODY, .gid = NOBODY };
	int rc = 0;

	pthread_rwlock_rdlock(&u->lock);
	const struct cfg_tls_user *line = tls_users_find(u, rpc_conn_certificate(req->conn));
	const bool own = line && line->as == CFG_AS_CALL;

	if (line && !own && line->as != CFG_AS_NOBODY)
		rc = tls_users_ask(u, line, peer, &ids);
	pthread_rwlock_unlock(&u->lock);
	if (own || rc == -RN_EUNNAMED)
		return own ? 0 : rc;
	cred->flavor = RPC_AUTH_SYS;
	cred->sec = RPC_SEC_SYS;
	cred->mapped = true;
	cred->uid = ids.uid;
	cred->gid = ids.gid;
	cred->ngids = 0;
	return 0;
}

static void put_user(const struct cfg_tls_user *line, char text[TLS_USERS_TEXT_MAX])
{
	const enum cfg_tls_as as = line ? line->as : CFG_AS_NOBODY;

	switch (as) {
	case CFG_AS_NAME:
		snprintf(text, TLS_USERS_TEXT_MAX, "%s", line->name);
		break;
	case CFG_AS_NUMBER:
		snprintf(text, TLS_USERS_TEXT_MAX, "%" PRIu32 ":%" PRIu32, line->uid, line->gid);
		break;
	case CFG_AS_CALL:
		snprintf(text, TLS_USERS_TEXT_MAX, "@call");
		break;
	case CFG_AS_NOBODY:
		snprintf(text, TLS_USERS_TEXT_MAX, "@nobody");
		break;
	}
}

bool tls_users_describe(struct tls_users *u, uint64_t found, char text[TLS_USERS_TEXT_MAX])
{
	const uint32_t at = (uint32_t)found;

	pthread_rwlock_rdlock(&u->lock);
	const bool known = found >> 32 == u->number && at <= u->map->n;

	if (known)
		put_user(at ? &u->map->lines[at - 1] : NULL, text);
	pthread_rwlock_unlock(&u->lock);
	return known;
}
