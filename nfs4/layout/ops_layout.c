/* SPDX-License-Identifier: BSD-2-Clause */
/* LAYOUTGET (RFC 8881 section 18.43), LAYOUTRETURN (section 18.44) and LAYOUTCOMMIT (section 18.42). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nfs/caller.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/layout/data_server.h"
#include "nfs4/layout/ff_wire.h"
#include "nfs4/layout/layout_report.h"
#include "nfs4/layout/layouts.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/state/stateid_check.h"

/* Bytes of layout4 without its body: offset, length, iomode, type, length of the body. */
#define LAYOUT_HEAD (8u + 8u + 4u + 4u + 4u)

struct layoutget_args {
	uint32_t type, iomode;
	uint64_t offset, length, minlength;
	struct nfs4_stateid sid;
	uint32_t maxcount;
};

static void decode_layoutget(struct nfs4_compound *c, void *args)
{
	struct layoutget_args *a = args;

	xdr_get_bool(c->in); /* nobody is told when a layout is available */
	a->type = xdr_get_u32(c->in);
	a->iomode = xdr_get_u32(c->in);
	a->offset = xdr_get_u64(c->in);
	a->length = xdr_get_u64(c->in);
	a->minlength = xdr_get_u64(c->in);
	nfs4_get_stateid(c->in, &a->sid);
	a->maxcount = xdr_get_u32(c->in);
}

/* True if the range ends behind the last byte that a file can have. */
static bool layout_range_is_too_far(uint64_t offset, uint64_t length)
{
	return length != UINT64_MAX && length > UINT64_MAX - offset;
}

static int layoutget_check_args(const struct layoutget_args *a)
{
	if (a->type != LAYOUT4_FLEX_FILES)
		return NFS4ERR_UNKNOWN_LAYOUTTYPE;
	if (a->iomode != LAYOUTIOMODE4_READ && a->iomode != LAYOUTIOMODE4_RW)
		return NFS4ERR_BADIOMODE;
	if (a->length < a->minlength || layout_range_is_too_far(a->offset, a->minlength) ||
	    layout_range_is_too_far(a->offset, a->length))
		return NFS4ERR_INVAL;
	return NFS4_OK;
}

/* A file of an export, and pNFS is on. */
static int layout_check_object(struct nfs4_compound *c)
{
	const struct nfs4_object *p = &c->current;
	int status = nfs4_need(c, p, 0);

	if (!nfs4_gives_layouts(c->server))
		return NFS4ERR_NOTSUPP;
	if (status == NFS4_OK && (p->kind != NFS4_FILE || p->type != S_IFREG))
		status = NFS4ERR_WRONG_TYPE;
	return status;
}

/*
 * Layout stateids have rules of their own (RFC 8881 section 12.5.3): calls of one client may overtake each other, so an older
 * seqid is good; 0 stands for nothing. The current stateid is that of the operation before.
 */
static int check_layout_seqid(const struct nfs4_state *st, const struct nfs4_stateid *sid)
{
	if (st->gone)
		return NFS4ERR_BAD_STATEID;
	if (nfs4_stateid_is_current(sid))
		return NFS4_OK;
	return sid->seqid != 0 && st->seqid - sid->seqid < 1u << 31 ? NFS4_OK : NFS4ERR_BAD_STATEID;
}

int nfs4_layout_get(struct nfs4_compound *c, const struct nfs4_stateid *sid,
		    struct nfs4_layout **out)
{
	struct nfs4_state *st;
	int status = nfs4_state_lookup(c, sid, &st);

	*out = NULL;
	if (status != NFS4_OK)
		return status;
	if (st->kind != NFS4_STATE_LAYOUT || !nfs4_state_is_of(st, &c->current)) {
		nfs4_state_unref(st);
		return NFS4ERR_BAD_STATEID;
	}
	pthread_mutex_lock(&st->client->lock);
	status = check_layout_seqid(st, sid);
	pthread_mutex_unlock(&st->client->lock);
	if (status == NFS4_OK)
		*out = nfs4_as_layout(st);
	else
		nfs4_state_unref(st);
	return status;
}

/* True if a step ended because the caller may not do it, so that he gets no layout; this server will tell him why when he reads or
 * writes here. */
static bool layoutget_is_refused(int rc)
{
	return rc == -EACCES || rc == -EPERM || rc == -EROFS;
}

static int layoutget_check_permission(struct nfs4_compound *c, uint32_t iomode)
{
	struct nfs4_object *p = &c->current;
	int rc;

	do
		rc = vfs_open_check(&p->ctx, p->node,
				    iomode == LAYOUTIOMODE4_RW ? VFS_MAY_WRITE : VFS_MAY_READ);
	while (nfs4_await(c, rc));
	return layoutget_is_refused(rc) ? NFS4ERR_LAYOUTUNAVAILABLE : nfs4_status(c->minor, rc);
}

/* By an open, a lock or a delegation. */
static int layoutget_check_by_open(struct nfs4_compound *c, const struct layoutget_args *a)
{
	struct nfs4_io_right right;
	const unsigned access = a->iomode == LAYOUTIOMODE4_RW ? NFS4_IO_WRITE : NFS4_IO_READ;
	int status = nfs4_io_begin(c, &a->sid, access, &right);
	bool opened;

	if (status != NFS4_OK)
		return status;
	opened = right.opened;
	nfs4_io_end(&right);
	return opened ? NFS4_OK : layoutget_check_permission(c, a->iomode);
}

static int layoutget_check_stateid(struct nfs4_compound *c, const struct layoutget_args *a)
{
	struct nfs4_layout *l;
	struct nfs4_state *st;
	int status = nfs4_state_lookup(c, &a->sid, &st);

	if (status != NFS4_OK)
		return status;
	const bool is_layout = st->kind == NFS4_STATE_LAYOUT;

	nfs4_state_unref(st);
	if (!is_layout)
		return layoutget_check_by_open(c, a);
	status = nfs4_layout_get(c, &a->sid, &l);
	if (status != NFS4_OK)
		return status;
	nfs4_state_unref(&l->st);
	return layoutget_check_permission(c, a->iomode);
}

/*
 * The identity for calls at the data server, if the client is to use it. By NFSv3, Linux's client sends all of its users' calls with
 * the ids of the layout. The owner of a file may always read and write there, so they are the owner's. That gives a client nothing
 * that AUTH_SYS would not let it take. Where calls prove their users (Kerberos, certificates), and where
 * the data server would take the owner for somebody else, there are no layouts.
 */
static bool may_act_as_owner(const struct nfs4_compound *c, const struct vfs_attr *attr)
{
	const struct nfs4_object *p = &c->current;
	struct vfs_cred cred = { .uid = attr->uid, .gid = attr->gid };

	if (c->req->call.cred.flavor != RPC_AUTH_SYS || c->req->call.cred.mapped)
		return false;
	vfs_cred_squash(&cred, &p->ctx.access, false);
	return cred.uid == attr->uid || cred.uid == p->ctx.cred.uid;
}

/* What a new layout says. */
struct offer {
	struct nfs4_device device;
	struct vfs_attr attr;
};

static int find_offer(struct nfs4_compound *c, struct offer *o)
{
	struct nfs4_object *p = &c->current;
	int rc;

	/* Nothing conflicts with a layout, so clients need not wait for the end of grace to get one: until then they read and
	 * write here, by what they have reclaimed. */
	if (nfs4_in_grace(c->server) || nfs4_drain_check(p) != NFS4_OK ||
	    !nfs4_device_of_file(c->server, &p->fh, &o->device) || o->device.member.own)
		return NFS4ERR_LAYOUTUNAVAILABLE;
	if (nfs4_layout_is_troubled(c->client, o->device.id, nfs4_layout_file(c)))
		return NFS4ERR_LAYOUTUNAVAILABLE;
	do
		rc = vfs_getattr(&p->ctx, p->node, &o->attr);
	while (nfs4_await(c, rc));
	if (rc != 0)
		return nfs4_status(c->minor, rc);
	return may_act_as_owner(c, &o->attr) ? NFS4_OK : NFS4ERR_LAYOUTUNAVAILABLE;
}

static struct nfs4_layout *layout_new(struct nfs4_compound *c, struct vfs_file *f,
				      const struct offer *o)
{
	const struct nfs4_object *p = &c->current;
	struct nfs4_layout *l = calloc(1, sizeof(*l) + p->fh.len);

	if (!l)
		return NULL;
	nfs4_state_init(&l->st, NFS4_STATE_LAYOUT, c->client, NULL, f);
	l->export_id = p->export_id;
	l->fsid = o->attr.fsid;
	memcpy(l->device, o->device.id, sizeof(l->device));
	snprintf(l->data_server, sizeof(l->data_server), "%.*s", (int)sizeof(l->data_server) - 1,
		 o->device.member.name);
	l->fh_len = (uint8_t)p->fh.len;
	memcpy(l->fh, p->fh.data, p->fh.len);
	return l;
}

/* Under the client's lock. */
static int give_more(struct nfs4_compound *c, struct nfs4_layout *l, const struct offer *o)
{
	if (l->recalled)
		return NFS4ERR_RECALLCONFLICT;
	/* Another data server is the file's since, and this layout is about to be recalled. */
	if (memcmp(l->device, o->device.id, sizeof(l->device)) != 0)
		return NFS4ERR_LAYOUTUNAVAILABLE;
	l->st.seqid = nfs4_next_seqid(l->st.seqid);
	l->giver = nfs4_cb_refer(c);
	return NFS4_OK;
}

/* Under the client's lock. Without memory, or with many layouts, clients read and write here. */
static int give_first(struct nfs4_compound *c, struct nfs4_layout *l)
{
	struct nfs4_client *cl = c->client;

	if (cl->holdings->layouts >= c->server->layouts->max_of_client ||
	    nfs4_state_add(cl, &l->st) != 0)
		return NFS4ERR_LAYOUTUNAVAILABLE;
	l->st.seqid = 1;
	l->giver = nfs4_cb_refer(c);
	return NFS4_OK;
}

/* Gives the file's layout an iomode. *out: the layout, with a reference. */
static int give(struct nfs4_compound *c, struct vfs_file *f, const struct offer *o, uint32_t iomode,
		struct nfs4_stateid *sid, struct nfs4_layout **out)
{
	struct nfs4_client *cl = c->client;
	struct nfs4_layout *fresh = layout_new(c, f, o), *l = fresh;
	struct nfs4_state *st;
	int status;

	if (!fresh)
		return NFS4ERR_LAYOUTUNAVAILABLE;
	pthread_mutex_lock(&cl->lock);
	st = nfs4_layout_by_file(cl, f);
	if (st) {
		l = nfs4_as_layout(st);
		nfs4_state_ref(st);
		status = give_more(c, l, o);
	} else {
		nfs4_state_ref(&fresh->st);
		status = give_first(c, fresh);
	}
	if (status == NFS4_OK) {
		l->iomodes |= iomode;
		nfs4_state_stateid(&l->st, sid);
	}
	pthread_mutex_unlock(&cl->lock);
	nfs4_state_unref(&fresh->st);
	if (status == NFS4_OK)
		*out = l;
	else
		nfs4_state_unref(&l->st);
	return status;
}

/* A data server that has gone meanwhile may have been missed by nfs4_layouts_tick(); and a reload may have taken the export. */
static int check_given(struct nfs4_compound *c, struct nfs4_layout *l)
{
	struct nfs4_device device;

	if (nfs4_device_find(c->server, l->device, &device) &&
	    nfs_still_served(&c->server->cfg.exports, l->export_id, c->req->conn))
		return NFS4_OK;
	nfs4_layout_end(l);
	return NFS4ERR_LAYOUTUNAVAILABLE;
}

static void layoutget_put(struct nfs4_compound *c, const struct offer *o, uint32_t iomode)
{
	const struct nfs4_ff_layout layout = {
		.device = o->device.id,
		.fh = &c->current.fh,
		.uid = o->attr.uid,
		.gid = o->attr.gid,
	};
	size_t at;

	xdr_put_u32(c->out, 1);
	xdr_put_u64(c->out, 0);
	xdr_put_u64(c->out, UINT64_MAX);
	xdr_put_u32(c->out, iomode);
	xdr_put_u32(c->out, LAYOUT4_FLEX_FILES);
	at = xdr_out_pos(c->out);
	xdr_put_u32(c->out, 0);
	nfs4_put_ff_layout(c->out, &layout);
	xdr_patch_u32(c->out, at, (uint32_t)(xdr_out_pos(c->out) - at - 4));
}

static int give_and_put(struct nfs4_compound *c, const struct layoutget_args *a,
			const struct offer *o, struct vfs_file *f)
{
	struct nfs4_layout *l = NULL;
	struct nfs4_stateid sid;
	int status = give(c, f, o, a->iomode, &sid, &l);

	if (status != NFS4_OK)
		return status;
	status = check_given(c, l);
	nfs4_state_unref(&l->st);
	if (status != NFS4_OK)
		return status;
	atomic_fetch_add_explicit(&c->server->layouts->given, 1, memory_order_relaxed);
	xdr_put_bool(c->out, true); /* to be returned with the last CLOSE, so that few are kept */
	nfs4_put_stateid(c->out, &sid);
	layoutget_put(c, o, a->iomode);
	nfs4_set_current_stateid(c, &sid);
	return NFS4_OK;
}

static int run_layoutget(struct nfs4_compound *c, void *args)
{
	const struct layoutget_args *a = args;
	struct vfs_file *f;
	struct offer o;
	int status = layout_check_object(c);

	if (status == NFS4_OK)
		status = layoutget_check_args(a);
	if (status == NFS4_OK)
		status = layoutget_check_stateid(c, a);
	if (status == NFS4_OK && a->maxcount < LAYOUT_HEAD + NFS4_FF_LAYOUT_MAX)
		status = NFS4ERR_TOOSMALL;
	if (status == NFS4_OK && a->iomode == LAYOUTIOMODE4_RW &&
	    (c->current.ctx.access.flags & VFS_RO))
		status = NFS4ERR_LAYOUTUNAVAILABLE;
	if (status == NFS4_OK)
		status = find_offer(c, &o);
	if (status == NFS4_OK)
		status = nfs4_status(c->minor, vfs_file_get(&c->current.ctx, c->current.node, &f));
	if (status != NFS4_OK)
		return status;
	status = give_and_put(c, a, &o, f);
	vfs_file_put(f);
	return status;
}

const struct nfs4_op nfs4_op_layoutget = {
	.name = "LAYOUTGET",
	.minors = { 1, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = 4 + NFS4_STATEID_SIZE + 4 + LAYOUT_HEAD + NFS4_FF_LAYOUT_MAX,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_INVAL | NFS4_E_IO | NFS4_E_LOCKED |
			      NFS4_E_NOSPC | NFS4_E_NOTSUPP),
	.args_size = sizeof(struct layoutget_args),
	.decode = decode_layoutget,
	.run = run_layoutget,
};

struct layoutreturn_args {
	bool reclaim;
	uint32_t type, iomode, what;
	/* LAYOUTRETURN4_FILE */
	uint64_t offset, length;
	struct nfs4_stateid sid;
	struct nfs4_ff_errors errors;
};

static void decode_layoutreturn(struct nfs4_compound *c, void *args)
{
	struct layoutreturn_args *a = args;

	a->reclaim = xdr_get_bool(c->in);
	a->type = xdr_get_u32(c->in);
	a->iomode = xdr_get_u32(c->in);
	a->what = xdr_get_u32(c->in);
	switch (a->what) {
	case LAYOUT4_RET_REC_FILE:
		a->offset = xdr_get_u64(c->in);
		a->length = xdr_get_u64(c->in);
		nfs4_get_stateid(c->in, &a->sid);
		nfs4_get_ff_return(c->in, &a->errors);
		break;
	case LAYOUT4_RET_REC_FSID:
	case LAYOUT4_RET_REC_ALL:
		break;
	default:
		c->in->err = true;
	}
}

static int layoutreturn_check_args(const struct nfs4_compound *c, const struct layoutreturn_args *a)
{
	const bool file = a->what == LAYOUT4_RET_REC_FILE;

	if (!nfs4_gives_layouts(c->server))
		return NFS4ERR_NOTSUPP;
	if (a->type != LAYOUT4_FLEX_FILES)
		return NFS4ERR_UNKNOWN_LAYOUTTYPE;
	if (a->iomode < LAYOUTIOMODE4_READ || a->iomode > LAYOUTIOMODE4_ANY)
		return NFS4ERR_INVAL;
	if (a->reclaim && !file)
		return NFS4ERR_INVAL;
	if (a->reclaim && !nfs4_in_grace(c->server))
		return NFS4ERR_NO_GRACE;
	if (file && layout_range_is_too_far(a->offset, a->length))
		return NFS4ERR_INVAL;
	return NFS4_OK;
}

/* Takes iomodes back. True: that was all of the layout. A part of the range ends nothing: layouts are for whole files. */
static bool layoutreturn_take_back(struct nfs4_compound *c, struct nfs4_layout *l,
				   const struct layoutreturn_args *a, struct nfs4_stateid *sid)
{
	struct nfs4_client *cl = c->client;
	bool mine = false, over;

	pthread_mutex_lock(&cl->lock);
	if (a->offset == 0 && a->length == UINT64_MAX)
		l->iomodes &= ~a->iomode;
	over = l->iomodes == 0 || l->st.gone;
	if (over) {
		mine = nfs4_layout_take_out(l);
	} else {
		l->st.seqid = nfs4_next_seqid(l->st.seqid);
		nfs4_state_stateid(&l->st, sid);
	}
	pthread_mutex_unlock(&cl->lock);
	if (mine)
		nfs4_state_unref(&l->st); /* the tables' */
	return over;
}

static int return_file(struct nfs4_compound *c, const struct layoutreturn_args *a)
{
	struct nfs4_layout *l;
	struct nfs4_stateid sid;
	int status = nfs4_layout_get(c, &a->sid, &l);

	if (status != NFS4_OK)
		return status;
	nfs4_layout_report(c, l, &a->errors);
	if (layoutreturn_take_back(c, l, a, &sid)) {
		xdr_put_bool(c->out, false);
		c->has_current_sid = false;
	} else {
		xdr_put_bool(c->out, true);
		nfs4_put_stateid(c->out, &sid);
		nfs4_set_current_stateid(c, &sid);
	}
	nfs4_state_unref(&l->st);
	return NFS4_OK;
}

struct bulk_return {
	uint32_t iomode;
	bool all;
	uint64_t fsid;
};

static bool is_returned(void *arg, const struct nfs4_layout *l)
{
	const struct bulk_return *r = arg;

	return (r->all || l->fsid == r->fsid) && (l->iomodes & r->iomode);
}

static void return_one(void *arg, struct nfs4_layout *l)
{
	const struct bulk_return *r = arg;
	pthread_mutex_t *lock = &l->st.client->lock;
	bool mine;

	pthread_mutex_lock(lock);
	l->iomodes &= ~r->iomode;
	mine = l->iomodes == 0 && nfs4_layout_take_out(l);
	pthread_mutex_unlock(lock);
	if (mine)
		nfs4_state_unref(&l->st); /* the tables' */
	nfs4_state_unref(&l->st);
}

static int return_several(struct nfs4_compound *c, const struct layoutreturn_args *a)
{
	struct bulk_return r = { .iomode = a->iomode, .all = a->what == LAYOUT4_RET_REC_ALL };
	const struct nfs4_layout_walk w = { .pick = is_returned, .each = return_one, .arg = &r };
	struct nfs4_object *p = &c->current;
	struct vfs_attr attr;
	int status = r.all ? NFS4_OK : nfs4_need(c, p, 0), rc = 0;

	if (status == NFS4_OK && !r.all && p->kind == NFS4_FILE) {
		do
			rc = vfs_getattr(&p->ctx, p->node, &attr);
		while (nfs4_await(c, rc));
		r.fsid = rc == 0 ? attr.fsid : 0;
		status = nfs4_status(c->minor, rc);
	}
	if (status != NFS4_OK)
		return status;
	if (r.all || p->kind == NFS4_FILE) /* the pseudo file system has no layouts */
		nfs4_layouts_walk(c->client, &w);
	xdr_put_bool(c->out, false);
	return NFS4_OK;
}

static int run_layoutreturn(struct nfs4_compound *c, void *args)
{
	const struct layoutreturn_args *a = args;
	int status = layoutreturn_check_args(c, a);

	if (status != NFS4_OK)
		return status;
	if (a->what != LAYOUT4_RET_REC_FILE)
		return return_several(c, a);
	status = layout_check_object(c);
	if (status != NFS4_OK)
		return status;
	if (!a->reclaim)
		return return_file(c, a);
	/* This run of the server has not given it. */
	xdr_put_bool(c->out, false);
	c->has_current_sid = false;
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_layoutreturn = {
	.name = "LAYOUTRETURN",
	.minors = { 1, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT | NFS4_OP_MACHINE_TOO,
	.reply_max = 4 + NFS4_STATEID_SIZE,
	.errors = NFS4_ERRORS(NFS4_E_INVAL | NFS4_E_ISDIR | NFS4_E_NOTSUPP | NFS4_E_STALE),
	.args_size = sizeof(struct layoutreturn_args),
	.decode = decode_layoutreturn,
	.run = run_layoutreturn,
};

struct layoutcommit_args {
	uint64_t offset, length;
	bool reclaim;
	struct nfs4_stateid sid;
	bool has_last;
	uint64_t last;
	uint32_t type, body_len;
};

static void decode_layoutcommit(struct nfs4_compound *c, void *args)
{
	struct layoutcommit_args *a = args;

	a->offset = xdr_get_u64(c->in);
	a->length = xdr_get_u64(c->in);
	a->reclaim = xdr_get_bool(c->in);
	nfs4_get_stateid(c->in, &a->sid);
	a->has_last = xdr_get_bool(c->in);
	if (a->has_last)
		a->last = xdr_get_u64(c->in);
	if (xdr_get_bool(c->in))
		xdr_skip(c->in, 8 + 4); /* a time that the client suggests */
	a->type = xdr_get_u32(c->in);
	a->body_len = xdr_get_u32(c->in);
	xdr_skip(c->in, (size_t)a->body_len + rn_xdr_pad(a->body_len));
}

static int layoutcommit_check_args(const struct nfs4_compound *c, const struct layoutcommit_args *a)
{
	if (a->type != LAYOUT4_FLEX_FILES)
		return NFS4ERR_UNKNOWN_LAYOUTTYPE;
	if (a->body_len > 0 || layout_range_is_too_far(a->offset, a->length))
		return NFS4ERR_INVAL;
	if (a->has_last && (a->last < a->offset || a->last > INT64_MAX ||
			    (a->length != UINT64_MAX && a->last - a->offset >= a->length)))
		return NFS4ERR_INVAL;
	if (a->reclaim && !nfs4_in_grace(c->server))
		return NFS4ERR_NO_GRACE;
	return NFS4_OK;
}

/* The row of the operation's errors has no status for a stateid that is wrong. */
static int layoutcommit_check_layout(struct nfs4_compound *c, const struct layoutcommit_args *a)
{
	struct nfs4_layout *l;
	int status = nfs4_layout_get(c, &a->sid, &l);

	if (status == NFS4ERR_BAD_STATEID)
		return NFS4ERR_BADLAYOUT;
	if (status != NFS4_OK)
		return status;
	pthread_mutex_lock(&c->client->lock);
	status = l->iomodes & LAYOUTIOMODE4_RW ? NFS4_OK : NFS4ERR_BADIOMODE;
	pthread_mutex_unlock(&c->client->lock);
	nfs4_state_unref(&l->st);
	return status;
}

/* The data server has changed size and times of the file itself, and committed them with its data, so nothing is left to do: also for
 * what was written by a layout of before a restart. */
static int run_layoutcommit(struct nfs4_compound *c, void *args)
{
	const struct layoutcommit_args *a = args;
	int status = layout_check_object(c);

	if (status == NFS4ERR_WRONG_TYPE)
		status = c->current.type == S_IFLNK ? NFS4ERR_SYMLINK
			 : c->current.kind == NFS4_PSEUDO || c->current.type == S_IFDIR
				 ? NFS4ERR_ISDIR
				 : NFS4ERR_INVAL;
	if (status == NFS4_OK)
		status = layoutcommit_check_args(c, a);
	if (status == NFS4_OK && !a->reclaim)
		status = layoutcommit_check_layout(c, a);
	if (status == NFS4_OK)
		xdr_put_bool(c->out, false); /* the size has not changed by this */
	return status;
}

const struct nfs4_op nfs4_op_layoutcommit = {
	.name = "LAYOUTCOMMIT",
	.minors = { 1, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = 4,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_FBIG | NFS4_E_IO | NFS4_E_FILE_ONLY |
			      NFS4_E_NOTSUPP),
	.args_size = sizeof(struct layoutcommit_args),
	.decode = decode_layoutcommit,
	.run = run_layoutcommit,
};
