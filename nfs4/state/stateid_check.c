/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/stateid_check.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/nfs4_status.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/state/copy_source.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/owner.h"
#include "nfs4/state/state.h"
#include "vfs/vfs_worker.h"

/* The constant bytes of a stateid, big endian so that traces can be read. */
struct other {
	uint32_t tag;	 /* nfs4_stateid_tag(): differs for other runs and forged stateids */
	uint32_t number; /* number of the client */
	uint32_t id;	 /* id of the state: table entry and generation */
};
_Static_assert(sizeof(struct other) == NFS4_OTHER_SIZE, "stateid");

static struct other take_apart(const struct nfs4_stateid *sid)
{
	struct other o;

	memcpy(&o, sid->other, sizeof(o));
	o.tag = be32toh(o.tag);
	o.number = be32toh(o.number);
	o.id = be32toh(o.id);
	return o;
}

void nfs4_state_stateid(const struct nfs4_state *st, struct nfs4_stateid *sid)
{
	const struct nfs4_client *cl = st->client;
	struct other o = { htobe32(st->tag), htobe32(cl->number), htobe32(st->id) };

	memcpy(sid->other, &o, sizeof(o));
	sid->seqid = st->seqid;
}

int nfs4_caller(struct nfs4_compound *c, uint64_t clientid, struct nfs4_client **out)
{
	struct nfs4_client *cl;
	int status;

	*out = c->client;
	if (c->minor > 0)
		return c->client ? NFS4_OK : NFS4ERR_OP_NOT_IN_SESSION;
	status = nfs4_client_by_id(c->server, clientid, &cl);
	if (status != NFS4_OK)
		return status;
	nfs4_origin_note(cl, c);
	nfs4_client_calls(cl, c);
	*out = cl;
	return NFS4_OK;
}

/* Sets *out to *sid, or to the current stateid if *sid stands for that. False: there is none. Its
 * seqid is 0 but for two operations (RFC 8881 section 8.2.3): other operations of the client may
 * have changed the state since the COMPOUND has got it. */
static bool get_meant_stateid(const struct nfs4_compound *c, const struct nfs4_stateid *sid,
			      struct nfs4_stateid *out)
{
	const bool current = c->minor > 0 && nfs4_stateid_is_current(sid);

	*out = current ? c->current_sid : *sid;
	if (current && c->opnum != OP_CLOSE && c->opnum != OP_OPEN_DOWNGRADE)
		out->seqid = 0;
	return !current || c->has_current_sid;
}

/* True if the stateid was given by this run of the server. */
static bool is_ours(const struct nfs4_compound *c, const struct other *o)
{
	return o->tag == nfs4_stateid_tag(c->server, o->number, o->id);
}

/* Sets c->client to the client that the stateid was given to, if this server gave it. */
static int find_client(struct nfs4_compound *c, const struct other *o)
{
	struct nfs4_client *cl;

	if (c->minor > 0)
		return c->client && o->number == c->client->number ? NFS4_OK : NFS4ERR_BAD_STATEID;
	if (!is_ours(c, o))
		return NFS4ERR_STALE_STATEID;
	if (!c->client || c->client->number != o->number) {
		cl = nfs4_client_by_number(c->server, o->number);
		if (!cl)
			/* Expired so long ago that the client has been removed */
			return NFS4ERR_EXPIRED;
		nfs4_client_calls(cl, c);
	}
	if (c->client->sessions)
		return NFS4ERR_BAD_STATEID;
	nfs4_origin_note(c->client, c);
	return nfs4_client_renew(c->client) ? NFS4_OK : NFS4ERR_EXPIRED;
}

/* Compares seqids, with wrap-around (RFC 7530 section 9.1.3). */
static int check_seqid(const struct nfs4_compound *c, uint32_t is, uint32_t given)
{
	if (given == is || (given == 0 && c->minor > 0))
		return NFS4_OK;
	return is - given < 1u << 31 ? NFS4ERR_OLD_STATEID : NFS4ERR_BAD_STATEID;
}

/* Under the client's lock. */
static int nfs4_state_check_locked(const struct nfs4_compound *c, const struct nfs4_state *st,
				   const struct nfs4_stateid *sid, unsigned kinds)
{
	if (st->gone || st->seqid == 0)
		return NFS4ERR_BAD_STATEID;
	if (st->revoked)
		return (int)st->revoked;
	if (!(st->kind & kinds))
		return NFS4ERR_BAD_STATEID;
	if (st->kind == NFS4_STATE_OPEN && st->owner->unconfirmed && c->opnum != OP_OPEN_CONFIRM)
		return NFS4ERR_BAD_STATEID;
	return check_seqid(c, st->seqid, sid->seqid);
}

int nfs4_state_check(const struct nfs4_compound *c, struct nfs4_state *st,
		     const struct nfs4_stateid *sid, unsigned kinds)
{
	pthread_mutex_t *lock = &st->client->lock;
	struct nfs4_stateid meant;
	int status;

	if (!get_meant_stateid(c, sid, &meant))
		return NFS4ERR_BAD_STATEID;
	pthread_mutex_lock(lock);
	status = nfs4_state_check_locked(c, st, &meant, kinds);
	pthread_mutex_unlock(lock);
	return status;
}

/* Under the client's lock: the state of c->client that is named; its tag proves that this server
 * gave the stateid. All stateids of an expired client have expired. */
static int find_state(struct nfs4_compound *c, const struct other *o, struct nfs4_state **out)
{
	const struct nfs4_holdings *held = c->client->holdings;

	*out = nfs4_stateid_find(held, o->id);
	if (*out)
		return (*out)->tag == o->tag ? NFS4_OK : NFS4ERR_BAD_STATEID;
	return held->dropped && is_ours(c, o) ? NFS4ERR_EXPIRED : NFS4ERR_BAD_STATEID;
}

/* kinds 0: the state is not checked. */
static int lookup(struct nfs4_compound *c, const struct nfs4_stateid *sid, unsigned kinds,
		  struct nfs4_state **out)
{
	struct nfs4_stateid meant;
	struct nfs4_client *cl;
	struct nfs4_state *st;
	struct other o;
	int status;

	*out = NULL;
	if (!get_meant_stateid(c, sid, &meant) || nfs4_stateid_is_special(&meant))
		return NFS4ERR_BAD_STATEID;
	o = take_apart(&meant);
	status = find_client(c, &o);
	if (status != NFS4_OK)
		return status;
	cl = c->client;
	pthread_mutex_lock(&cl->lock);
	status = find_state(c, &o, &st);
	if (status == NFS4_OK && kinds != 0)
		status = nfs4_state_check_locked(c, st, &meant, kinds);
	if (status == NFS4_OK) {
		nfs4_state_ref(st);
		*out = st;
	}
	pthread_mutex_unlock(&cl->lock);
	return status;
}

int nfs4_state_lookup(struct nfs4_compound *c, const struct nfs4_stateid *sid,
		      struct nfs4_state **out)
{
	return lookup(c, sid, 0, out);
}

int nfs4_state_get(struct nfs4_compound *c, struct nfs4_object *p, const struct nfs4_stateid *sid,
		   unsigned kinds, struct nfs4_state **out)
{
	int status = lookup(c, sid, kinds, out);

	if (status == NFS4_OK && !nfs4_state_is_of(*out, p)) {
		nfs4_state_unref(*out);
		*out = NULL;
		status = NFS4ERR_BAD_STATEID;
	}
	return status;
}

static int begin_seq(struct nfs4_compound *c, struct nfs4_owner *o, uint32_t seqid, bool *replayed)
{
	int status;

	pthread_mutex_lock(&o->client->lock);
	nfs4_owner_use(o);
	pthread_mutex_unlock(&o->client->lock);
	status = nfs4_seq_begin(c, o, seqid, replayed);
	nfs4_owner_release(o);
	return status;
}

bool nfs4_may_end(const struct nfs4_compound *c, const struct nfs4_client *cl, uint64_t opener)
{
	if (c->minor > 0 || opener == NFS4_OPENER_NONE || opener == NFS4_OPENER_SEVERAL ||
	    nfs4_principal_made(c, cl))
		return true;
	return c->current.kind == NFS4_FILE && opener == c->current.ctx.cred.uid;
}

static bool is_theirs(const struct nfs4_compound *c, struct nfs4_state *st)
{
	return nfs4_may_end(c, st->client,
			    atomic_load_explicit(&nfs4_open_of(st)->opener, memory_order_relaxed));
}

int nfs4_state_get_seq(struct nfs4_compound *c, const struct nfs4_stateid *sid, uint32_t seqid,
		       unsigned kinds, struct nfs4_state **out, bool *replayed)
{
	struct nfs4_state *st;
	int status = nfs4_state_lookup(c, sid, &st);

	*out = NULL;
	*replayed = false;
	if (status != NFS4_OK)
		return status;
	if (!(st->kind & kinds) || !is_theirs(c, st))
		status = NFS4ERR_BAD_STATEID;
	if (status == NFS4_OK && c->minor == 0)
		status = begin_seq(c, st->owner, seqid, replayed);
	if (status == NFS4_OK && !*replayed)
		status = nfs4_state_check(c, st, sid, kinds);
	if (status == NFS4_OK && !*replayed && !nfs4_state_is_of(st, &c->current))
		status = NFS4ERR_BAD_STATEID;
	if (status != NFS4_OK || *replayed)
		nfs4_state_unref(st);
	else
		*out = st;
	return status;
}

void nfs4_set_current_stateid(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	c->current_sid = *sid;
	c->has_current_sid = true;
}

void nfs4_state_changed(struct nfs4_compound *c, struct nfs4_state *st, struct nfs4_stateid *out)
{
	pthread_mutex_t *lock = &st->client->lock;

	pthread_mutex_lock(lock);
	st->seqid = nfs4_next_seqid(st->seqid);
	nfs4_state_stateid(st, out);
	pthread_mutex_unlock(lock);
	nfs4_set_current_stateid(c, out);
}

int nfs4_conflict(struct nfs4_compound *c, struct vfs_conflict *cf, int otherwise)
{
	struct nfs4_client *cl;

	if (!nfs4_holder_is_ours(cf->holder))
		return otherwise;
	cl = nfs4_owner_of_holder(cf->holder)->client;
	if (rpc_on_event_thread(c->req) && nfs4_client_is_alive(cl))
		return otherwise;
	rpc_move(c->req); /* the end of a courtesy client's state may wait */
	nfs4_client_ref(cl);
	switch (vfs_conflict_yield(cf)) {
	case VFS_YIELDED:
	case VFS_BEGUN:
		otherwise = NFS4_YIELDED;
		break;
	case VFS_YIELDING:
		otherwise = nfs4_record_settled(c, &cl->record);
		if (otherwise == NFS4_OK)
			otherwise = NFS4_YIELDED;
		break;
	case VFS_HOLDS:
		break;
	}
	nfs4_client_put(cl);
	return otherwise;
}

struct asking {
	struct nfs4_compound *c;
	struct nfs4_object *place;
	struct nfs4_open *open; /* NULL: none */
	unsigned access;
};

/* Asks whether a share other than that of the open denies the access. CLOSE ends a share under
 * busy. */
static int ask_shares(const struct asking *a, struct vfs_conflict *cf)
{
	struct nfs4_open *open = a->open;
	const struct vfs_share *self = NULL;
	int rc;

	if (open)
		rn_lock_take(&open->busy);
	if (open && open->share.file)
		self = &open->share;
	rc = vfs_share_check_io(&a->place->ctx, a->place->node, self, (uint8_t)a->access, cf);
	if (open)
		rn_lock_give(&open->busy);
	return rc;
}

static int ask_once(const struct asking *a)
{
	struct vfs_conflict cf = { .holder = NULL };
	int rc = ask_shares(a, &cf), status;

	if (rc != -RN_ESHARE)
		return nfs4_status(a->c->minor, rc);
	status = nfs4_conflict(a->c, &cf, NFS4ERR_LOCKED);
	vfs_conflict_put(&cf);
	return status;
}

static int check_share(struct asking a)
{
	int status;

	do
		status = ask_once(&a);
	while (nfs4_try_again(a.c, status));
	return status;
}

/* Special stateids: checked as a caller without an open. READ bypass may ignore shares (RFC 8881
 * section 8.2.3), but need not. */
static int begin_special(struct nfs4_compound *c, struct nfs4_object *p, unsigned access)
{
	if (nfs4_grace_blocks_io(c->server))
		return NFS4ERR_GRACE;
	return check_share((struct asking){ c, p, NULL, access });
}

/* Shares change under the open's busy lock only, which is not taken for each READ: the byte read
 * during a change has either the old or the new value. */
static unsigned access_of(struct nfs4_open *open)
{
	return atomic_load_explicit(&open->access, memory_order_relaxed);
}

/* True if the caller is the user that opened the file. A stateid is no password: other users are
 * checked as without it (RFC 8881 section 18.16.3). */
static bool opened_by_caller(const struct nfs4_object *p, struct nfs4_open *open)
{
	return atomic_load_explicit(&open->opener, memory_order_relaxed) == p->ctx.cred.uid;
}

/* A delegation stands for opens that the client has not sent. Others than the caller of the OPEN
 * that it came with are checked as without it. */
static int begin_delegated(const struct nfs4_object *p, unsigned access, struct nfs4_io_right *r)
{
	struct nfs4_deleg *d = nfs4_as_deleg(r->state);

	if ((access & NFS4_IO_WRITE) && d->vfs.type == VFS_DELEG_READ) {
		nfs4_io_end(r);
		return NFS4ERR_OPENMODE;
	}
	nfs4_deleg_used(d);
	r->opened = d->opener == p->ctx.cred.uid;
	return NFS4_OK;
}

/*
 * READ by the stateid of a COPY_NOTIFY: by another server, for the client that has the state. The
 * client's delegations do not stand against it. Permission was checked by COPY_NOTIFY.
 */
static int begin_for_copy(struct nfs4_compound *c, struct nfs4_object *p,
			  const struct nfs4_stateid *sid, struct nfs4_io_right *r)
{
	if (c->opnum != OP_READ && c->opnum != OP_READ_PLUS && c->opnum != OP_SEEK)
		return NFS4ERR_BAD_STATEID;
	r->state = nfs4_copy_source_use(c, p, sid);
	if (!r->state)
		return NFS4ERR_BAD_STATEID;
	r->opened = true;
	r->lent = p;
	r->own = p->ctx.client;
	p->ctx.client = r->state->client;
	return NFS4_OK;
}

int nfs4_io_begin_at(struct nfs4_compound *c, struct nfs4_object *p, const struct nfs4_stateid *sid,
		     unsigned access, struct nfs4_io_right *r)
{
	struct nfs4_open *open;
	unsigned may;
	int status;

	*r = (struct nfs4_io_right){ .opened = false };
	if (nfs4_stateid_is_anonymous(sid) || nfs4_stateid_is_bypass(sid))
		return begin_special(c, p, access);
	status = nfs4_state_get(c, p, sid, NFS4_STATE_ANY, &r->state);
	if (status == NFS4ERR_BAD_STATEID && c->minor > 0)
		return begin_for_copy(c, p, sid, r);
	if (status != NFS4_OK)
		return status;
	if (r->state->kind == NFS4_STATE_DELEG)
		return begin_delegated(p, access, r);
	open = nfs4_open_of(r->state);
	may = access_of(open);
	if (access & ~may & NFS4_IO_WRITE) {
		nfs4_io_end(r);
		return NFS4ERR_OPENMODE;
	}
	r->opened = (access & ~may) == 0 && opened_by_caller(p, open);
	/* Clients read to fill up pages that they write. Such a READ is allowed if it would be
	 * without the open, by the file's mode and the shares of others. */
	if (access & ~may)
		status = check_share((struct asking){ c, p, open, access & ~may });
	if (status != NFS4_OK)
		nfs4_io_end(r);
	return status;
}

int nfs4_io_begin(struct nfs4_compound *c, const struct nfs4_stateid *sid, unsigned access,
		  struct nfs4_io_right *r)
{
	return nfs4_io_begin_at(c, &c->current, sid, access, r);
}

void nfs4_io_end(struct nfs4_io_right *r)
{
	if (r->lent)
		r->lent->ctx.client = r->own;
	r->lent = NULL;
	nfs4_state_unref(r->state);
	r->state = NULL;
}

int nfs4_data_status(const struct nfs4_compound *c, int rc)
{
	/* ETXTBSY: a running program cannot be written by any user. */
	return rc == -ETXTBSY || rc == -EPERM ? NFS4ERR_ACCESS : nfs4_status(c->minor, rc);
}
