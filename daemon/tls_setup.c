/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS: the settings, the keys, and the users whom certificates stand for. */
#include "daemon/tls_setup.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conf/tls_users.h"
#include "daemon/names/names.h"
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

/* Like idmap_user(), under the lock. */
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

#define SOON_DAYS 14

static const char *tls_setup_path(const char *set)
{
	return set && set[0] ? set : NULL;
}

/* Certificates are forgotten until they have expired. */
static void log_expiry(struct tls *t, const struct rn_logger *log)
{
	struct tls_own own;

	tls_own(t, &own);
	const int64_t left = own.expires - (int64_t)time(NULL);

	if (left < 0)
		rn_warn(log, "the TLS certificate has expired, and clients refuse it: write a new "
			     "one to the files of tls.certificate and tls.key, and reload");
	else if (left < SOON_DAYS * 86400)
		rn_warn(log,
			"the TLS certificate expires in %d days: write a new one to the files of "
			"tls.certificate and tls.key, and reload",
			(int)(left / 86400));
}

int tls_setup(const struct cfg_tls *set, struct rn_budget *budget, const struct rn_logger *log,
	      struct tls **out)
{
	const struct tls_config cfg = {
		.certificate = tls_setup_path(set->certificate),
		.key = tls_setup_path(set->key) ? tls_setup_path(set->key)
						: tls_setup_path(set->certificate),
		.ca = tls_setup_path(set->ca),
		.crl = tls_setup_path(set->crl),
		.require_alpn = set->require_alpn,
		.ktls = set->ktls,
		.budget = budget,
		.log = log,
	};
	char why[TLS_WHY] = "no memory, or no thread";
	int rc;

	*out = NULL;
	if (!cfg.certificate) {
		if (cfg.key || cfg.ca)
			rn_warn(log, "TLS is not offered: tls.key or tls.ca is set, and "
				     "tls.certificate is not; set it, too");
		return 0;
	}
	rc = tls_new(&cfg, out, why);
	if (rc)
		rn_err(log, "%s; correct that, or take out tls.certificate to serve without TLS",
		       why);
	else
		rn_notice(log, "TLS is offered to NFS clients over TCP%s",
			  cfg.ca ? ", and their certificates are verified" : "");
	if (!rc)
		log_expiry(*out, log);
	return rc;
}

void tls_setup_reload(struct tls *t, const struct rn_logger *log)
{
	char why[TLS_WHY] = "no memory";

	if (!t)
		return;
	if (tls_reload(t, why) != 0)
		rn_warn(log, "the old TLS certificate stays in use: %s", why);
	else
		rn_notice(log, "the TLS certificate was read again, new connections have it");
	log_expiry(t, log);
}
