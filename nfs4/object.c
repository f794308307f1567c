/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolves filehandles of a COMPOUND to objects, and squashes its caller for their export. */
#include "nfs4/object.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/error.h"
#include "lib/log_ids.h"
#include "nfs/caller.h"
#include "nfs/nested.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/told.h"
#include "rpc/principal.h"

#define CREDENTIAL_WORDS 7u

/* Hash of the credential as sent, of which an export's squashing is a function, and of the connection's protection: a reply that went
 * under TLS never goes without. */
static uint64_t nfs4_credential_hash(const struct nfs4_compound *c, uint64_t seed)
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

/* Adds the export of p, an object of an export, to those of c's reply. */
static void nfs4_reply_exports_add(struct nfs4_compound *c, const struct nfs4_object *p)
{
	struct nfs4_reply_exports *a = &c->exports;

	for (uint32_t i = 0; i < a->n && i < NFS4_REPLY_EXPORTS_MOST; i++) {
		if (a->export_id[i] == p->export_id)
			return;
	}
	if (a->n >= NFS4_REPLY_EXPORTS_MOST) {
		a->n = NFS4_REPLY_EXPORTS_MOST + 1;
		return;
	}
	a->export_id[a->n++] = p->export_id;
	a->who = of_export(a->who, &p->ctx.access, !p->wrongsec && !p->bad_port);
}

struct nfs4_reply_exports nfs4_reply_exports_of(const struct nfs4_compound *c)
{
	struct nfs4_reply_exports a = c->exports;

	a.who = nfs4_credential_hash(c, a.who);
	return a;
}

static int reply_enter_export(const struct nfs4_compound *c, uint32_t id, uint64_t *who)
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

int nfs4_reply_exports_check(const struct nfs4_compound *c, const struct nfs4_reply_exports *a)
{
	uint64_t who = 0;
	int rc = a->n > NFS4_REPLY_EXPORTS_MOST ? -EACCES : 0;

	for (uint32_t i = 0; i < a->n && rc == 0; i++)
		rc = reply_enter_export(c, a->export_id[i], &who);
	if (rc < 0)
		return rc;
	return nfs4_credential_hash(c, who) == a->who ? 0 : -EACCES;
}

void nfs4_object_clear(struct nfs4_object *p)
{
	if (p->kind == NFS4_FILE) {
		vfs_node_put(p->node);
		vfs_export_put(p->ctx.exp);
	}
	p->kind = NFS4_NOWHERE;
}

void nfs4_object_copy(struct nfs4_object *to, const struct nfs4_object *from)
{
	if (to == from)
		return;
	if (from->kind == NFS4_FILE) {
		vfs_node_ref(from->node);
		vfs_export_ref(from->ctx.exp);
	}
	nfs4_object_clear(to);
	*to = *from;
}

void nfs4_object_take(struct nfs4_object *to, struct nfs4_object *from)
{
	nfs4_object_clear(to);
	*to = *from;
	from->kind = NFS4_NOWHERE;
}

static void set_node(struct nfs4_object *p, struct vfs_node *n)
{
	p->node = n;
	p->type = vfs_node_type(n);
	p->fh = *vfs_node_fh(n);
}

void nfs4_object_move(struct nfs4_object *p, struct vfs_node *n)
{
	if (!n) {
		nfs4_object_clear(p);
		p->kind = NFS4_GONE;
		return;
	}
	vfs_node_put(p->node);
	set_node(p, n);
}

/* The administrator sees why a mount that the exports seem to allow does not work. */
static void log_refused(struct nfs4_compound *c, const struct nfs4_object *p, const char *why)
{
	const struct nfs4_config *cfg = &c->server->cfg;
	const struct sockaddr *peer = (const struct sockaddr *)&c->req->conn->peer;
	const char *path = vfs_export_path(p->ctx.exp);
	struct nfs4_told t;
	const struct rn_log_event event = {
		.id = RN_ID_MOUNT_REFUSED,
		.client = t.client,
		.export = path,
		.operation = c->op ? c->op->name : NULL,
	};
	char line[768] = "";

	if (!nfs4_told_begin(c, RN_NOTICE, &t))
		return;
	if (cfg->exports.why)
		cfg->exports.why(cfg->exports.ctx, path, peer, line, sizeof(line));
	rn_log_event(cfg->log, RN_NOTICE, &event, "%s: use of %s by NFSv4 refused: %s%s%s",
		     t.client, path, why, line[0] ? "; " : "", line);
	nfs4_told_end(c, &t);
}

/* Finds the export, and the caller's rights there. */
static int nfs4_object_find_export(struct nfs4_compound *c, uint32_t id, struct nfs4_object *p)
{
	const struct vfs_exports *exports = &c->server->cfg.exports;
	const struct sockaddr *peer = (const struct sockaddr *)&c->req->conn->peer;
	int rc;

	do
		rc = exports->by_id(exports->ctx, id, peer, &p->ctx.exp, &p->ctx.access);
	while (nfs4_await(c, rc));
	/* A caller who may not use an export does not learn whether it exists. */
	if (rc < 0)
		return rc == -EACCES ? NFS4ERR_STALE : nfs4_status(c->minor, rc);
	return NFS4_OK;
}

static int nfs4_object_find_caller(struct nfs4_compound *c, struct nfs4_object *p)
{
	const struct nfs4_config *cfg = &c->server->cfg;
	const struct nfs_groups groups = { cfg->lookup_groups, cfg->lookup_ctx,
					   (const struct sockaddr *)&c->req->conn->peer,
					   !cfg->manage_gids };
	int rc;

	do
		rc = nfs_caller(&groups, &c->req->call.cred, &p->ctx.access, &p->ctx.cred);
	while (!p->wrongsec && nfs4_await(c, rc));
	return rc;
}

/* Enters the export that was found, and squashes the caller's identity for it: sets the rest of p->ctx. Puts the
 * export if it fails. */
static int enter_export(struct nfs4_compound *c, struct nfs4_object *p)
{
	const struct nfs4_config *cfg = &c->server->cfg;
	int rc;

	p->export_id = vfs_export_id(p->ctx.exp);
	p->bad_port = nfs_check_port(&p->ctx.access, c->req->conn) < 0;
	p->wrongsec = !nfs_access_use(&c->req->call.cred, &p->ctx.access);
	if (p->bad_port)
		log_refused(c, p, "its port is not below 1024, which the option secure wants");
	rc = nfs4_object_find_caller(c, p);
	if (rc == 0 || p->wrongsec)
		rc = vfs_exports_enter(&cfg->exports, p->export_id);
	if (rc < 0) {
		vfs_export_put(p->ctx.exp);
		return nfs4_status(c->minor, rc);
	}
	p->kind = NFS4_FILE;
	p->ctx.vfs = cfg->vfs;
	p->ctx.fiber = c->req->fiber;
	p->ctx.client = c->client || c->minor > 0 ? c->client : nfs4_client_of_conn(c);
	p->ctx.caller = c->req->conn->id;
	nfs4_reply_exports_add(c, p);
	return NFS4_OK;
}

/* Checks that the export governs the object of the handle. */
static int nfs4_object_check_governed(struct nfs4_compound *c, const struct vfs_ctx *ctx,
				      const struct vfs_fh *fh)
{
	const struct sockaddr *peer = (const struct sockaddr *)&c->req->conn->peer;
	int rc;

	do
		rc = nfs_governed(&c->server->cfg.exports, ctx, peer, fh);
	while (nfs4_await(c, rc));
	return rc;
}

/* p has the export and the caller's rights. fh NULL: the root of the export. */
static int open_in_export(struct nfs4_compound *c, struct nfs4_object *p, const struct vfs_fh *fh,
			  struct nfs4_object *out)
{
	struct vfs_node *n;
	int status = enter_export(c, p);
	int rc;

	if (status != NFS4_OK)
		return status;
	rc = fh ? vfs_fh_open(&p->ctx, fh, &n) : vfs_root(&p->ctx, &n);
	if (rc == 0 && fh) {
		rc = nfs4_object_check_governed(c, &p->ctx, fh);
		if (rc < 0)
			vfs_node_put(n);
	}
	if (rc < 0) {
		vfs_export_put(p->ctx.exp);
		return nfs4_status(c->minor, rc);
	}
	set_node(p, n);
	nfs4_object_take(out, p);
	return NFS4_OK;
}

int nfs4_object_in_export(struct nfs4_compound *c, uint32_t id, const struct vfs_fh *fh,
			  struct nfs4_object *out)
{
	struct nfs4_object p = { .kind = NFS4_NOWHERE };
	const int status = nfs4_object_find_export(c, id, &p);

	return status == NFS4_OK ? open_in_export(c, &p, fh, out) : status;
}

int nfs4_object_of_nested(struct nfs4_compound *c, struct vfs_export *exp,
			  const struct vfs_access *access, struct nfs4_object *out)
{
	struct nfs4_object p = { .kind = NFS4_NOWHERE };

	p.ctx.exp = exp;
	p.ctx.access = *access;
	vfs_export_ref(exp);
	return open_in_export(c, &p, NULL, out);
}

int nfs4_object_enter(const struct nfs4_compound *c, const struct nfs4_object *p)
{
	int rc = 0;

	if (p->kind == NFS4_FILE)
		rc = vfs_exports_enter(&c->server->cfg.exports, p->export_id);
	return nfs4_status(c->minor, rc);
}

bool nfs4_object_is_absent(const struct nfs4_object *p)
{
	return p->kind == NFS4_FILE && (p->ctx.access.flags & VFS_ABSENT);
}

int nfs4_object_usable(const struct nfs4_object *p)
{
	if (p->kind == NFS4_FOREIGN || p->kind == NFS4_GONE)
		return NFS4ERR_STALE;
	if (p->kind != NFS4_FILE)
		return NFS4_OK;
	if (p->bad_port)
		return NFS4ERR_ACCESS;
	return p->wrongsec ? NFS4ERR_WRONGSEC : NFS4_OK;
}

static int need_reg(const struct nfs4_compound *c, const struct nfs4_object *p)
{
	if (p->type == S_IFDIR)
		return NFS4ERR_ISDIR;
	if (p->type == S_IFREG)
		return NFS4_OK;
	if (c->minor == 0)
		return NFS4ERR_INVAL;
	return p->type == S_IFLNK ? NFS4ERR_SYMLINK : NFS4ERR_WRONG_TYPE;
}

int nfs4_no_dir(const struct nfs4_object *p)
{
	return p->type == S_IFLNK ? NFS4ERR_SYMLINK : NFS4ERR_NOTDIR;
}

int nfs4_need(const struct nfs4_compound *c, const struct nfs4_object *p, unsigned need)
{
	int status = nfs4_object_usable(p);

	if (status == NFS4ERR_WRONGSEC && p->machine &&
	    (c->op->flags & (NFS4_OP_MACHINE_TOO | NFS4_OP_MACHINE_PASSES)))
		status = NFS4_OK;
	if (p->kind == NFS4_NOWHERE)
		return NFS4ERR_NOFILEHANDLE;
	if (status == NFS4_OK && (need & NFS4_NEED_DIR) && p->type != S_IFDIR)
		status = nfs4_no_dir(p);
	if (status == NFS4_OK && (need & NFS4_NEED_REG))
		status = need_reg(c, p);
	if (status == NFS4_OK && (need & NFS4_NEED_FILE) && p->kind == NFS4_PSEUDO)
		status = NFS4ERR_ROFS;
	if (status == NFS4_OK && (need & NFS4_NEED_WRITABLE) &&
	    (p->kind == NFS4_PSEUDO || (p->ctx.access.flags & VFS_RO)))
		status = NFS4ERR_ROFS;
	return status;
}
