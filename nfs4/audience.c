/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/audience.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "lib/error.h"
#include "nfs/caller.h"
#include "nfs4/compound.h"
#include "nfs4/hash.h"
#include "nfs4/nfs4_private.h"
#include "rpc/principal.h"

#define CREDENTIAL_WORDS 7u

/* Hash of the credential as sent, of which an export's squashing is a function, and of the connection's protection: a reply that went
 * under TLS never goes without. */
uint64_t nfs4_credential_hash(const struct nfs4_compound *c, uint64_t seed)
{
	const struct rpc_cred *cred = &c->req->call.cred;
	uint32_t words[CREDENTIAL_WORDS + RPC_AUTH_SYS_GIDS_MAX] = {
		(uint32_t)seed,	     (uint32_t)(seed >> 32),
		(uint32_t)cred->sec, (uint32_t)cred->protection,
		cred->uid,	     cred->gid,
		cred->ngids,
	};
	uint64_t h, of_name;

	memcpy(words + CREDENTIAL_WORDS, cred->gids, cred->ngids * sizeof(cred->gids[0]));
	crypto_shorthash((uint8_t *)&h, (const uint8_t *)words,
			 (CREDENTIAL_WORDS + cred->ngids) * sizeof(words[0]), c->server->hash_key);
	if (cred->principal) {
		crypto_shorthash((uint8_t *)&of_name, (const uint8_t *)cred->principal->name,
				 cred->principal->len, c->server->hash_key);
		h = nfs4_mix(h ^ of_name);
	}
	return h;
}

static uint64_t of_export(uint64_t h, const struct vfs_access *access, bool usable)
{
	const uint32_t squash = access->flags & (VFS_ROOT_SQUASH | VFS_ALL_SQUASH);

	h = nfs4_mix(h ^ ((uint64_t)access->anonuid << 32 | access->anongid));
	return nfs4_mix(h ^ ((uint64_t)squash << 1 | usable));
}

void nfs4_audience_add(struct nfs4_compound *c, const struct nfs4_place *p)
{
	struct nfs4_audience *a = &c->audience;

	for (uint32_t i = 0; i < a->n && i < NFS4_AUDIENCE_MOST; i++) {
		if (a->export_id[i] == p->export_id)
			return;
	}
	if (a->n >= NFS4_AUDIENCE_MOST) {
		a->n = NFS4_AUDIENCE_MOST + 1;
		return;
	}
	a->export_id[a->n++] = p->export_id;
	a->who = of_export(a->who, &p->ctx.access, !p->weak && !p->refused);
}

struct nfs4_audience nfs4_audience_of(const struct nfs4_compound *c)
{
	struct nfs4_audience a = c->audience;

	a.who = nfs4_credential_hash(c, a.who);
	return a;
}

static int audience_enter_export(const struct nfs4_compound *c, uint32_t id, uint64_t *who)
{
	const struct vfs_exports *exports = &c->server->cfg.exports;
	const struct rpc_conn *conn = c->req->conn;
	struct vfs_access access;
	struct vfs_export *exp;
	bool usable;
	int rc = exports->by_id(exports->ctx, id, (const struct sockaddr *)&conn->peer, &exp,
				&access);

	if (rc < 0)
		return rc == -RN_EUNNAMED ? rc : -EACCES;
	vfs_export_put(exp);
	usable = nfs_access_use(&c->req->call.cred, &access) && nfs_check_port(&access, conn) == 0;
	*who = of_export(*who, &access, usable);
	return 0;
}

int nfs4_audience_check(const struct nfs4_compound *c, const struct nfs4_audience *a)
{
	uint64_t who = 0;
	int rc = a->n > NFS4_AUDIENCE_MOST ? -EACCES : 0;

	for (uint32_t i = 0; i < a->n && rc == 0; i++)
		rc = audience_enter_export(c, a->export_id[i], &who);
	if (rc < 0)
		return rc;
	return nfs4_credential_hash(c, who) == a->who ? 0 : -EACCES;
}
