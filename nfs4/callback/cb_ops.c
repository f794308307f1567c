/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of callbacks (RFC 8881 section 20): each a row, with its arguments and its end. */
#include "nfs4/callback/cb_ops.h"

#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nfs4/callback/callback.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/nfs4_proto.h"
#include "rpc/principal.h"
#include "rpc/program.h"
#include "rpc/security.h"

static void cb_recall_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_recall *r = rn_container_of(cb, const struct nfs4_recall, cb);

	nfs4_put_stateid(x, &r->stateid);
	xdr_put_bool(x, false); /* the file is not about to be truncated to nothing */
	xdr_put_opaque(x, r->fh, r->fh_len);
}

static void cb_recall_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_recall *r = rn_container_of(cb, struct nfs4_recall, cb);

	(void)results;
	r->ended(r, rc == 0 && status == NFS4_OK);
}

static const struct nfs4_cb_op recall_op = {
	.name = "CB_RECALL",
	.opnum = OP_CB_RECALL,
	.encode = cb_recall_encode,
	.done = cb_recall_done,
};

void nfs4_recall(struct nfs4_client *cl, struct nfs4_recall *r)
{
	nfs4_cb_call(&r->cb, &recall_op, cl);
}

static void cb_layoutrecall_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_layout_recall *r =
		rn_container_of(cb, const struct nfs4_layout_recall, cb);

	xdr_put_u32(x, LAYOUT4_FLEX_FILES);
	xdr_put_u32(x, LAYOUTIOMODE4_ANY);
	xdr_put_bool(
		x, false); /* the data have not moved: what is not written yet may still go there */
	xdr_put_u32(x, LAYOUT4_RET_REC_FILE);
	xdr_put_opaque(x, r->fh, r->fh_len);
	xdr_put_u64(x, 0);
	xdr_put_u64(x, UINT64_MAX);
	nfs4_put_stateid(x, &r->stateid);
}

static void cb_layoutrecall_done(struct nfs4_cb *cb, int rc, uint32_t status,
				 struct xdr_in *results)
{
	struct nfs4_layout_recall *r = rn_container_of(cb, struct nfs4_layout_recall, cb);
	enum nfs4_layout_recall_end how = NFS4_LAYOUT_UNTOLD;

	(void)results;
	if (rc == 0 && status == NFS4_OK)
		how = NFS4_LAYOUT_TOLD;
	else if (rc == 0 && status == NFS4ERR_NOMATCHING_LAYOUT)
		how = NFS4_LAYOUT_NONE;
	r->ended(r, how);
}

static const struct nfs4_cb_op layoutrecall_op = {
	.name = "CB_LAYOUTRECALL",
	.opnum = OP_CB_LAYOUTRECALL,
	.encode = cb_layoutrecall_encode,
	.done = cb_layoutrecall_done,
};

void nfs4_layout_recall(struct nfs4_client *cl, struct nfs4_layout_recall *r)
{
	nfs4_cb_call(&r->cb, &layoutrecall_op, cl);
}

struct device_notice {
	struct nfs4_cb cb;
	uint8_t id[NFS4_DEVICEID_SIZE];
};

static void cb_notify_deviceid_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	xdr_put_u32(x, 1); /* changes */
	xdr_put_u32(x, 1); /* words of the bitmap */
	xdr_put_u32(x, 1u << NOTIFY_DEVICEID4_DELETE);
	xdr_put_u32(x, 4 + NFS4_DEVICEID_SIZE);
	xdr_put_u32(x, LAYOUT4_FLEX_FILES);
	xdr_put_fixed(x, rn_container_of(cb, const struct device_notice, cb)->id,
		      NFS4_DEVICEID_SIZE);
}

static void cb_notify_deviceid_done(struct nfs4_cb *cb, int rc, uint32_t status,
				    struct xdr_in *results)
{
	(void)rc;
	(void)status;
	(void)results;
	free(rn_container_of(cb, struct device_notice, cb));
}

static const struct nfs4_cb_op notify_deviceid_op = {
	.name = "CB_NOTIFY_DEVICEID",
	.opnum = OP_CB_NOTIFY_DEVICEID,
	.encode = cb_notify_deviceid_encode,
	.done = cb_notify_deviceid_done,
};

void nfs4_tell_device_gone(struct nfs4_client *cl, const uint8_t id[NFS4_DEVICEID_SIZE])
{
	struct device_notice *n = calloc(1, sizeof(*n));

	if (!n)
		return; /* the client keeps an id that it meets no more */
	memcpy(n->id, id, sizeof(n->id));
	nfs4_cb_call(&n->cb, &notify_deviceid_op, cl);
}

static void cb_recall_any_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_recall_any *r = rn_container_of(cb, const struct nfs4_recall_any, cb);

	xdr_put_u32(x, r->keep);
	xdr_put_u32(x, 1); /* words of the mask */
	xdr_put_u32(x, r->types);
}

static void cb_recall_any_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_recall_any *r = rn_container_of(cb, struct nfs4_recall_any, cb);

	(void)results;
	r->ended(r, rc == 0 && status == NFS4_OK);
}

static const struct nfs4_cb_op recall_any_op = {
	.name = "CB_RECALL_ANY",
	.opnum = OP_CB_RECALL_ANY,
	.encode = cb_recall_any_encode,
	.done = cb_recall_any_done,
};

void nfs4_recall_any(struct nfs4_client *cl, struct nfs4_recall_any *r)
{
	nfs4_cb_call(&r->cb, &recall_any_op, cl);
}

struct slot_recall {
	struct nfs4_cb cb;
	uint32_t highest;
};

static void cb_recall_slot_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	xdr_put_u32(x, rn_container_of(cb, const struct slot_recall, cb)->highest);
}

/* Nothing depends on the answer: the slots are free when the client's next requests show that it knows. */
static void cb_recall_slot_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	(void)rc;
	(void)status;
	(void)results;
	free(rn_container_of(cb, struct slot_recall, cb));
}

static const struct nfs4_cb_op recall_slot_op = {
	.name = "CB_RECALL_SLOT",
	.opnum = OP_CB_RECALL_SLOT,
	.encode = cb_recall_slot_encode,
	.done = cb_recall_slot_done,
};

void nfs4_recall_slots(struct nfs4_session *s, uint32_t highest)
{
	struct slot_recall *r = calloc(1, sizeof(*r));

	if (!r)
		return; /* SEQUENCE's replies say it, too */
	r->highest = highest;
	nfs4_session_ref(s);
	nfs4_cb_start(&r->cb, &recall_slot_op, s);
}

/* The one word of the bitmap. */
#define ASKED (1u << FATTR4_CHANGE | 1u << FATTR4_SIZE)
#define VALUES (8u + 8u) /* bytes of both */

static void cb_getattr_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_cb_getattr *g = rn_container_of(cb, const struct nfs4_cb_getattr, cb);

	xdr_put_opaque(x, g->fh, g->fh_len);
	xdr_put_u32(x, 1);
	xdr_put_u32(x, ASKED);
}

/* The fattr4 must have both attributes and no other. More words of the bitmap may follow, all zero:
 * Linux's client puts three at times. */
static bool cb_getattr_get_attrs(struct xdr_in *x, struct nfs4_held_attrs *attrs)
{
	const uint32_t words = xdr_get_u32(x);
	bool good = words > 0 && words <= NFS4_ATTR_WORDS && xdr_get_u32(x) == ASKED;

	for (uint32_t i = 1; good && i < words; i++)
		good = xdr_get_u32(x) == 0;
	good = good && xdr_get_u32(x) == VALUES;
	attrs->change = xdr_get_u64(x);
	attrs->size = xdr_get_u64(x);
	return good && !x->err && x->left == 0 && attrs->size <= INT64_MAX;
}

static void cb_getattr_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_cb_getattr *g = rn_container_of(cb, struct nfs4_cb_getattr, cb);
	struct nfs4_held_attrs attrs;
	const bool good = rc == 0 && status == NFS4_OK && cb_getattr_get_attrs(results, &attrs);

	g->ended(g, good ? &attrs : NULL);
}

static const struct nfs4_cb_op getattr_op = {
	.name = "CB_GETATTR",
	.opnum = OP_CB_GETATTR,
	.encode = cb_getattr_encode,
	.done = cb_getattr_done,
};

void nfs4_cb_getattr(struct nfs4_client *cl, struct nfs4_cb_getattr *g)
{
	nfs4_cb_call(&g->cb, &getattr_op, cl);
}

/*
 * A cookie says where a READDIR goes on, and neither it nor the entry's neighbour can be known without
 * reading the directory. So no new cookie and no previous entry are given, and the cookie of an entry
 * that has gone, which the XDR has no way to leave out, is 0: READDIR never returns that (RFC 8881
 * section 18.23.3).
 */

static void cb_notify_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_notify *n = rn_container_of(cb, const struct nfs4_notify, cb);

	nfs4_put_stateid(x, &n->stateid);
	xdr_put_opaque(x, n->fh, n->fh_len);
	xdr_put_u32(x, n->count);
	xdr_put_fixed(x, n->changes, n->len);
}

static void cb_notify_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_notify *n = rn_container_of(cb, struct nfs4_notify, cb);

	(void)results;
	n->ended(n, rc, status);
}

static const struct nfs4_cb_op notify_op = {
	.name = "CB_NOTIFY",
	.opnum = OP_CB_NOTIFY,
	.encode = cb_notify_encode,
	.done = cb_notify_done,
};

void nfs4_notify_tell(struct nfs4_client *cl, struct nfs4_notify *n)
{
	nfs4_cb_call(&n->cb, &notify_op, cl);
}

static void cb_notify_lock_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_notify_lock *n = rn_container_of(cb, const struct nfs4_notify_lock, cb);

	xdr_put_opaque(x, n->fh, n->fh_len);
	xdr_put_u64(x, n->clientid);
	xdr_put_opaque(x, n->owner, n->owner_len);
}

static void cb_notify_lock_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_notify_lock *n = rn_container_of(cb, struct nfs4_notify_lock, cb);

	(void)results;
	n->ended(n, rc == 0 && status != NFS4ERR_DELAY);
}

static const struct nfs4_cb_op notify_lock_op = {
	.name = "CB_NOTIFY_LOCK",
	.opnum = OP_CB_NOTIFY_LOCK,
	.encode = cb_notify_lock_encode,
	.done = cb_notify_lock_done,
};

void nfs4_notify_lock(struct nfs4_client *cl, struct nfs4_notify_lock *n)
{
	struct nfs4_session *s = nfs4_cb_session(cl);

	n->clientid = cl->clientid;
	if (s)
		nfs4_cb_start(&n->cb, &notify_lock_op, s);
	else
		n->ended(n, false);
}

static void cb_offload_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	const struct nfs4_offload *o = rn_container_of(cb, const struct nfs4_offload, cb);

	xdr_put_opaque(x, o->fh->data, o->fh->len);
	nfs4_put_stateid(x, &o->sid);
	xdr_put_u32(x, o->status);
	if (o->status == NFS4_OK)
		xdr_put_u32(x, 0); /* no wr_callback_id */
	xdr_put_u64(x, o->count);
	if (o->status != NFS4_OK)
		return;
	xdr_put_u32(x, o->committed);
	xdr_put_u64(x, o->verifier);
}

static void cb_offload_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_offload *o = rn_container_of(cb, struct nfs4_offload, cb);

	(void)results;
	o->ended(o, rc, status);
}

static const struct nfs4_cb_op offload_op = {
	.name = "CB_OFFLOAD",
	.opnum = OP_CB_OFFLOAD,
	.encode = cb_offload_encode,
	.done = cb_offload_done,
};

void nfs4_offload_tell(struct nfs4_client *cl, struct nfs4_offload *o)
{
	nfs4_cb_call(&o->cb, &offload_op, cl);
}

#define PATIENCE 30u /* seconds that a probe waits for a thread that asks the KDC */

/* The path's state was set by the answer. */
static void cb_probe_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	(void)rc;
	(void)status;
	(void)results;
	free(cb);
}

static const struct nfs4_cb_op probe_op = { .name = "the probe", .done = cb_probe_done };

/* Without memory the next binding, or RENEW, gives another chance. */
void nfs4_cb_probe(struct nfs4_session *s)
{
	struct nfs4_cb *cb = calloc(1, sizeof(*cb));

	if (!cb)
		return;
	nfs4_session_ref(s);
	nfs4_cb_start(cb, &probe_op, s);
}

/* The probe of a client under Kerberos: a context is made first, which the probe then tries. */
struct initiating {
	struct rpc_cb_initiation init;
	struct nfs4_client *client; /* a reference */
};

static void cb_probe_auth_made(struct rpc_cb_initiation *init, struct rpc_cb_auth *auth)
{
	struct initiating *w = rn_container_of(init, struct initiating, init);
	struct nfs4_cb *cb = auth ? calloc(1, sizeof(*cb)) : NULL;

	if (cb) {
		nfs4_cb_try(cb, &probe_op, w->client, auth);
	} else {
		rpc_cb_auth_put(auth);
		nfs4_cb_conn_no_auth(w->client);
	}
	nfs4_client_put(w->client);
	free(w);
}

/* False: no context is needed. */
static bool probe_by_context(struct nfs4_client *cl, const struct rpc_server *rpc)
{
	struct initiating *w = calloc(1, sizeof(*w));
	bool needed = true, begun = false;

	if (w)
		needed = nfs4_cb_conn_initiation(cl, &w->init);
	if (w && needed) {
		const struct rpc_principal *from = w->init.from, *to = w->init.to;

		w->init.due_ns = rn_now_ns() + PATIENCE * RN_NS_PER_SECOND;
		w->init.made = cb_probe_auth_made;
		w->client = cl;
		nfs4_client_ref(cl);
		begun = rpc->security->initiate(rpc->security_ctx, &w->init);
		if (!begun)
			nfs4_client_put(cl);
		rpc_principal_put(from);
		rpc_principal_put(to);
	}
	if (!begun)
		free(w);
	if (needed && !begun)
		nfs4_cb_conn_no_auth(cl);
	return needed;
}

void nfs4_cb_probe_client(struct nfs4_client *cl, const struct rpc_server *rpc)
{
	struct nfs4_cb *cb;

	if (cl->principal.name && probe_by_context(cl, rpc))
		return;
	cb = calloc(1, sizeof(*cb));
	if (cb)
		nfs4_cb_call(cb, &probe_op, cl);
	else
		nfs4_cb_conn_is(cl, NULL, NFS4_CB_DOWN);
}
