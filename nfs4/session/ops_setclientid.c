/* SPDX-License-Identifier: BSD-2-Clause */
/* SETCLIENTID and SETCLIENTID_CONFIRM (RFC 7530 sections 16.33 and 16.34). A new record that
 * differs from a confirmed one only in its callback is stored as the `update` of that one. */
#include <stdlib.h>
#include <string.h>

#include "nfs4/callback/cb_ops.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_host.h"
#include "nfs4/compound.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/session/session_private.h"

/* Leaves out empty if the text is too long or has a NUL. */
static void setclientid_get_text(struct xdr_in *x, char *out, uint32_t size)
{
	uint32_t len;
	const uint8_t *p = xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &len);

	out[0] = '\0';
	if (!p || len >= size || memchr(p, 0, len))
		return;
	memcpy(out, p, len);
	out[len] = '\0';
}

struct setclientid_args {
	struct nfs4_client_init who;
	struct nfs4_callback_args callback;
};

static void decode_setclientid(struct nfs4_compound *c, void *args)
{
	struct setclientid_args *a = args;

	xdr_get_fixed(c->in, a->who.verifier, sizeof(a->who.verifier));
	a->who.ownerid = xdr_get_opaque(c->in, NFS4_OPAQUE_LIMIT, &a->who.ownerid_len);
	a->callback.program = xdr_get_u32(c->in);
	setclientid_get_text(c->in, a->callback.netid, sizeof(a->callback.netid));
	setclientid_get_text(c->in, a->callback.addr, sizeof(a->callback.addr));
	a->callback.ident = xdr_get_u32(c->in);
}

static int in_use(struct nfs4_compound *c, const struct nfs4_client *cl)
{
	char addr[NFS4_UADDR_MAX];

	nfs4_uaddr(&cl->addr, addr);
	xdr_put_opaque(c->out, cl->netid, (uint32_t)strlen(cl->netid));
	xdr_put_opaque(c->out, addr, (uint32_t)strlen(addr));
	c->keep_body = true;
	return NFS4ERR_CLID_INUSE;
}

static int setclientid_put_result(struct nfs4_compound *c, uint64_t clientid,
				  const uint8_t confirm[NFS4_VERIFIER_SIZE])
{
	xdr_put_u64(c->out, clientid);
	xdr_put_fixed(c->out, confirm, NFS4_VERIFIER_SIZE);
	return NFS4_OK;
}

/* Stores a new callback of the same client. Takes over *callback. */
static int setclientid_update(struct nfs4_compound *c, struct nfs4_client *cl,
			      struct nfs4_callback **callback)
{
	nfs4_callback_free(cl->update); /* which has no connection */
	cl->update = *callback;
	*callback = NULL;
	randombytes_buf(cl->update_confirm, NFS4_VERIFIER_SIZE);
	return setclientid_put_result(c, cl->clientid, cl->update_confirm);
}

/* The cases of section 16.33.5. *fresh and *callback are set to NULL if they were used. all->lock
 * is held. */
static int setclientid_set_up(struct nfs4_compound *c, const struct nfs4_client_init *who,
			      struct nfs4_client **fresh, struct nfs4_callback **callback,
			      struct nfs4_client *old[2])
{
	struct nfs4_clients *all = c->server->clients;
	struct nfs4_client *cl = nfs4_client_find(all, who);
	int status;

	if (cl && nfs4_principal_made(c, cl) && nfs4_verifier_is(cl, c, who->verifier))
		return setclientid_update(c, cl, callback);
	status = cl ? nfs4_client_contest(cl, c) : nfs4_drain_check_client(c->server);
	if (status == NFS4_OK)
		status = nfs4_client_contest_record(*fresh, c);
	if (status != NFS4_OK)
		return status == NFS4ERR_CLID_INUSE ? in_use(c, cl) : status;
	old[0] = nfs4_client_waiting(all, who, (*fresh)->host);
	if (old[0])
		nfs4_client_detach(all, old[0]);
	cl = *fresh;
	*fresh = NULL;
	cl->callback = *callback;
	*callback = NULL;
	randombytes_buf(cl->confirm, NFS4_VERIFIER_SIZE);
	old[1] = nfs4_client_enter(all, cl);
	return setclientid_put_result(c, cl->clientid, cl->confirm);
}

static int run_setclientid(struct nfs4_compound *c, void *args)
{
	const struct setclientid_args *a = args;
	struct nfs4_clients *all = c->server->clients;
	struct nfs4_client *fresh = nfs4_client_new(c, &a->who), *old[2] = { NULL, NULL };
	struct nfs4_callback *callback = nfs4_callback_new(c, &a->callback);
	int status = NFS4ERR_DELAY;

	if (fresh && callback) {
		pthread_mutex_lock(&all->lock);
		status = setclientid_set_up(c, &a->who, &fresh, &callback, old);
		pthread_mutex_unlock(&all->lock);
	}
	nfs4_client_put(fresh);
	nfs4_callback_free(callback);
	nfs4_client_destroy(old[0]);
	nfs4_client_destroy(old[1]);
	return status;
}

struct setclientid_confirm_args {
	uint64_t clientid;
	uint8_t confirm[NFS4_VERIFIER_SIZE];
};

static void decode_setclientid_confirm(struct nfs4_compound *c, void *args)
{
	struct setclientid_confirm_args *a = args;

	a->clientid = xdr_get_u64(c->in);
	xdr_get_fixed(c->in, a->confirm, sizeof(a->confirm));
}

/* Clients and the callback that a SETCLIENTID_CONFIRM replaces. */
struct replaced {
	struct nfs4_client_queue clients;
	struct nfs4_callback *callback;
};

/* The cases of section 16.34.5; all->lock is held. */
static int setclientid_do_confirm(struct nfs4_compound *c, struct nfs4_client *cl,
				  const struct setclientid_confirm_args *a, struct replaced *old)
{
	enum nfs4_client_status status = nfs4_client_status(cl);
	const bool first = sodium_memcmp(a->confirm, cl->confirm, NFS4_VERIFIER_SIZE) == 0;

	if (cl->sessions || status == NFS4_CLIENT_EXPIRED || status == NFS4_CLIENT_GONE)
		return NFS4ERR_STALE_CLIENTID;
	if (!nfs4_principal_made(c, cl))
		return NFS4ERR_CLID_INUSE;
	if (status == NFS4_CLIENT_UNCONFIRMED)
		return first ? nfs4_client_confirm(c, cl, &old->clients) : NFS4ERR_STALE_CLIENTID;
	if (cl->update && sodium_memcmp(a->confirm, cl->update_confirm, NFS4_VERIFIER_SIZE) == 0) {
		old->callback = nfs4_callback_replace(cl);
		memcpy(cl->confirm, cl->update_confirm, NFS4_VERIFIER_SIZE);
		return NFS4_OK;
	}
	return first ? NFS4_OK : NFS4ERR_STALE_CLIENTID;
}

static int run_setclientid_confirm(struct nfs4_compound *c, void *args)
{
	const struct setclientid_confirm_args *a = args;
	struct nfs4_clients *all = c->server->clients;
	struct nfs4_client *cl = nfs4_client_get(all, a->clientid);
	struct replaced old = { .callback = NULL };
	bool was;
	int status;

	if (!cl)
		return NFS4ERR_STALE_CLIENTID;
	TAILQ_INIT(&old.clients);
	pthread_mutex_lock(&all->lock);
	was = cl->was_confirmed;
	status = setclientid_do_confirm(c, cl, a, &old);
	pthread_mutex_unlock(&all->lock);
	nfs4_clients_forget(c->server, &old.clients);
	nfs4_callback_free(old.callback);
	if (status == NFS4_OK) {
		nfs4_origin_note(cl, c);
		nfs4_client_renew(cl);
	}
	if (status == NFS4_OK && !was) {
		nfs4_record_confirmed(c->server, &cl->record);
		nfs4_client_log_confirmed(c, cl);
	}
	if (status == NFS4_OK && nfs4_cb_conn_begin_probe(cl))
		nfs4_cb_probe_client(cl, c->req->server);
	nfs4_client_put(cl);
	return status;
}

const struct nfs4_op nfs4_op_setclientid = {
	.name = "SETCLIENTID",
	.minors = { 0, 2 },
	.gone_from = 1,
	.flags = NFS4_OP_CHANGES,
	.reply_max = 8 + NFS4_VERIFIER_SIZE + 8 + 4 + 8 + 4 + 64 /* clientaddr4 */,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct setclientid_args),
	.decode = decode_setclientid,
	.run = run_setclientid,
};

const struct nfs4_op nfs4_op_setclientid_confirm = {
	.name = "SETCLIENTID_CONFIRM",
	.minors = { 0, 2 },
	.gone_from = 1,
	.flags = NFS4_OP_CHANGES,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct setclientid_confirm_args),
	.decode = decode_setclientid_confirm,
	.run = run_setclientid_confirm,
};
