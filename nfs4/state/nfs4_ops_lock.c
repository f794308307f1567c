/* SPDX-License-Identifier: BSD-2-Clause */
/* LOCK, LOCKT and LOCKU (RFC 7530 sections 16.10 to 16.12, RFC 8881 sections 18.10 to 18.12), and RELEASE_LOCKOWNER
 * (RFC 7530 section 16.37). */
#include <errno.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/state/lock_waiter.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/owner.h"
#include "nfs4/state/stateid_check.h"

enum nfs4_lock_type { NFS4_READ_LT = 1, NFS4_WRITE_LT, NFS4_READW_LT, NFS4_WRITEW_LT };

/* Any other value sets c->in->err. */
static uint32_t nfs4_get_lock_type(struct nfs4_compound *c)
{
	uint32_t type = xdr_get_u32(c->in);

	if (type < NFS4_READ_LT || type > NFS4_WRITEW_LT)
		c->in->err = true;
	return type;
}

/* NFS4ERR_INVAL if the range is empty or ends beyond the largest offset (RFC 8881 section 18.10.3). */
static int nfs4_check_range(uint64_t offset, uint64_t length)
{
	if (length == 0 || (length != UINT64_MAX && length > UINT64_MAX - offset))
		return NFS4ERR_INVAL;
	return NFS4_OK;
}

/* Status for the result of a call of vfs/lock.h. */
static int nfs4_lock_status(const struct nfs4_compound *c, int rc)
{
	if (rc == -ENOLCK)
		return nfs4_state_no_memory(c);
	return rc == -EFBIG ? NFS4ERR_BAD_RANGE : nfs4_status(c->minor, rc);
}

static enum vfs_lock_type nfs4_vfs_lock_type(uint32_t type)
{
	return type == NFS4_WRITE_LT || type == NFS4_WRITEW_LT ? VFS_LOCK_WRITE : VFS_LOCK_READ;
}

/* Puts the LOCK4denied of a conflict. Returns NFS4ERR_DENIED. A local process, or a client of NLM, has no NFSv4 name:
 * it is shown as client id 0, which no client has. */
static int nfs4_put_denied(struct nfs4_compound *c, const struct vfs_conflict *cf)
{
	const struct nfs4_owner *o = NULL;

	if (nfs4_holder_is_ours(cf->holder))
		o = nfs4_owner_of_holder(cf->holder);
	xdr_put_u64(c->out, cf->offset);
	xdr_put_u64(c->out, cf->length);
	xdr_put_u32(c->out, cf->type == VFS_LOCK_WRITE ? NFS4_WRITE_LT : NFS4_READ_LT);
	xdr_put_u64(c->out, o ? o->client->clientid : 0);
	xdr_put_opaque(c->out, o ? o->name : NULL, o ? o->len : 0);
	c->keep_body = true;
	return NFS4ERR_DENIED;
}

struct lock_args {
	uint32_t type; /* enum nfs_lock_type4 */
	bool reclaim;
	uint64_t offset, length;
	bool new_owner;
	uint32_t open_seqid; /* new_owner only */
	uint32_t lock_seqid;
	struct nfs4_stateid sid;      /* stateid of the open if new_owner, else of the lock */
	struct nfs4_wire_owner owner; /* new_owner only */
};

/* One LOCK under way; it never waits. */
struct locking {
	const struct lock_args *args;
	struct nfs4_owner *owner; /* for a new lock: used until the end */
	struct nfs4_open *open;	  /* for a new lock: a reference */
	struct nfs4_lock *lock;	  /* a reference; a new lock is set only while it is tried */
	bool fresh;		  /* true if the lock was made by this call */
	struct nfs4_stateid sid;  /* the result */
};

static void decode_lock(struct nfs4_compound *c, void *args)
{
	struct lock_args *a = args;
	struct xdr_in *x = c->in;

	a->type = nfs4_get_lock_type(c);
	a->reclaim = xdr_get_bool(x);
	a->offset = xdr_get_u64(x);
	a->length = xdr_get_u64(x);
	a->new_owner = xdr_get_bool(x);
	if (a->new_owner)
		a->open_seqid = xdr_get_u32(x);
	nfs4_get_stateid(x, &a->sid);
	a->lock_seqid = xdr_get_u32(x);
	if (a->new_owner)
		nfs4_get_wire_owner(c, &a->owner);
}

/*
 * Gets the lock-owner of a first LOCK. In minor version 0 its sequence continues. If the owner has
 * a stateid for the file already, that one is used; the sequence number proves that nothing was
 * missed.
 */
static int get_owner(struct nfs4_compound *c, struct locking *l)
{
	const struct lock_args *a = l->args;
	const struct nfs4_owner_name name = { NFS4_LOCK_OWNER, a->owner.name, a->owner.len };
	struct nfs4_client *cl = c->client;
	int status;

	if (c->minor == 0 && a->owner.clientid != cl->clientid)
		return NFS4ERR_BAD_STATEID;
	status = nfs4_owner_get(c, cl, &name, &l->owner);
	if (status != NFS4_OK || c->minor > 0)
		return status;
	if (!nfs4_seq_is_next(l->owner, a->lock_seqid)) {
		nfs4_owner_release(l->owner);
		l->owner = NULL; /* its sequence stays unchanged */
		return NFS4ERR_BAD_SEQID;
	}
	return NFS4_OK;
}

/* A client that returns a delegation brings the locks that it has granted by itself. */
static int check_drain(struct nfs4_compound *c, const struct nfs4_open *open)
{
	const int status = nfs4_drain_check(&c->current);

	return status != NFS4_OK && nfs4_deleg_type(c->client, open->st.file) != 0 ? NFS4_OK
										   : status;
}

static int nfs4_lock_check_args(struct nfs4_compound *c, const struct locking *l)
{
	const struct lock_args *a = l->args;
	const unsigned access =
		nfs4_vfs_lock_type(a->type) == VFS_LOCK_WRITE ? VFS_SHARE_WRITE : VFS_SHARE_READ;
	const struct nfs4_open *open = l->open ? l->open : l->lock->open;
	struct nfs4_record *rec = &c->client->record;
	int status = nfs4_need(c, &c->current, NFS4_NEED_FILE | NFS4_NEED_REG);

	if (status == NFS4_OK)
		status = nfs4_check_range(a->offset, a->length);
	if (status == NFS4_OK)
		status = a->reclaim ? nfs4_may_reclaim(c->server, rec, false)
				    : nfs4_may_lock(c->server, rec);
	if (status == NFS4_OK && !a->reclaim)
		status = check_drain(c, open);
	if (status == NFS4_OK && !(open->access & access))
		status = NFS4ERR_OPENMODE;
	return status;
}

/* Gets the lock of that owner and file, or a new one that is in no table yet. */
static int find_lock(struct nfs4_compound *c, struct locking *l)
{
	l->lock = nfs4_lock_find(c->client, l->owner, l->open->st.file);
	l->fresh = !l->lock;
	if (l->fresh)
		l->lock = nfs4_lock_new(l->owner, l->open);
	return l->lock ? NFS4_OK : nfs4_state_no_memory(c);
}

/* Under busy. Adds the new lock to the tables. NFS4_YIELDED: another call has made one. */
static int add_lock(struct nfs4_compound *c, const struct locking *l)
{
	struct nfs4_client *cl = c->client;
	const struct nfs4_state *open = &l->open->st;
	int status = NFS4_OK, rc = 0;

	pthread_mutex_lock(&cl->lock);
	if (nfs4_state_by_file(cl, l->owner, open->file))
		status = NFS4_YIELDED;
	else if (open->revoked)
		status = (int)open->revoked;
	else if (open->gone)
		status = NFS4ERR_BAD_STATEID;
	else
		rc = nfs4_state_add(cl, &l->lock->st);
	pthread_mutex_unlock(&cl->lock);
	if (rc == -ESTALE)
		return NFS4ERR_EXPIRED;
	return rc == 0 ? status : nfs4_state_no_memory(c);
}

static uint64_t nfs4_lock_waiter_id(const struct nfs4_owner *o)
{
	uint64_t h = nfs4_client_hash(o->client, o->client->clientid, o->name, o->len);

	return h != 0 ? h : 1;
}

static struct vfs_lock_request nfs4_lock_request(const struct locking *l)
{
	const struct lock_args *a = l->args;
	const bool waits = a->type >= NFS4_READW_LT;
	const struct nfs4_owner *o = l->owner ? l->owner : l->lock->st.owner;

	return (struct vfs_lock_request){
		.type = nfs4_vfs_lock_type(a->type),
		.offset = a->offset,
		.length = a->length,
		.waiter = waits ? nfs4_lock_waiter_id(o) : 0,
		.reclaim = a->reclaim,
	};
}

/* Under busy. */
static int nfs4_lock_ask(struct nfs4_compound *c, struct locking *l, struct vfs_conflict *cf)
{
	const struct vfs_lock_request r = nfs4_lock_request(l);
	struct nfs4_lock *lock = l->lock;
	int rc = -ENOLCK;

	if (nfs4_ranges_fit(lock))
		rc = vfs_lock(&c->current.ctx, c->current.node, &lock->ranges, &r, cf);
	if (rc == 0)
		nfs4_ranges_changed(lock);
	if (rc == 0)
		nfs4_state_changed(c, &lock->st, &l->sid);
	else if (lock->st.seqid == 0)
		nfs4_lock_end(lock); /* the client has not been given it */
	return rc;
}

/* Asks under busy. NFS4_OK: *rc is the result. NFS4_YIELDED: the lock is gone or revoked meanwhile. */
static int enter_and_ask(struct nfs4_compound *c, struct locking *l, struct vfs_conflict *cf,
			 int *rc)
{
	struct nfs4_lock *lock = l->lock;
	int status = NFS4_OK;

	rn_lock_take(&lock->open->busy);
	if (l->fresh)
		status = add_lock(c, l);
	else if (!l->args->new_owner)
		status = nfs4_state_check(c, &lock->st, &l->args->sid, NFS4_STATE_LOCK);
	if (status == NFS4_OK && (lock->st.gone || lock->st.revoked))
		status = NFS4_YIELDED;
	if (status == NFS4_OK)
		*rc = nfs4_lock_ask(c, l, cf);
	rn_lock_give(&lock->open->busy);
	return status;
}

static int nfs4_lock_refuse(struct nfs4_compound *c, const struct locking *l,
			    struct vfs_conflict *cf)
{
	const struct vfs_lock_request r = nfs4_lock_request(l);
	const int status =
		nfs4_conflict(c, cf, l->args->reclaim ? NFS4ERR_RECLAIM_CONFLICT : NFS4ERR_DENIED);

	if (status == NFS4ERR_DENIED) {
		nfs4_lock_wait(c, l->lock, &r, cf->holder);
		nfs4_put_denied(c, cf);
	}
	vfs_conflict_put(cf);
	return status;
}

static int nfs4_lock_try(struct nfs4_compound *c, struct locking *l)
{
	struct vfs_conflict cf = { .holder = NULL };
	int status = l->args->new_owner ? find_lock(c, l) : NFS4_OK, rc;

	if (status != NFS4_OK)
		return status;
	status = enter_and_ask(c, l, &cf, &rc);
	if (status == NFS4_OK && rc == -RN_EDENIED)
		status = nfs4_lock_refuse(c, l, &cf);
	else if (status == NFS4_OK)
		status = nfs4_lock_status(c, rc);
	if (l->args->new_owner) {
		nfs4_state_unref(&l->lock->st);
		l->lock = NULL;
	}
	return status;
}

static int nfs4_lock_run(struct nfs4_compound *c, struct locking *l)
{
	int status = NFS4_OK;

	if (l->args->new_owner)
		status = get_owner(c, l);
	if (status == NFS4_OK)
		status = nfs4_lock_check_args(c, l);
	if (status != NFS4_OK)
		return status;
	do
		status = nfs4_lock_try(c, l);
	while (nfs4_try_again(c, status));
	if (status == NFS4_OK)
		nfs4_put_stateid(c->out, &l->sid);
	return status;
}

static int nfs4_run_lock(struct nfs4_compound *c, void *args)
{
	const struct lock_args *a = args;
	struct locking l = { .args = a };
	struct nfs4_state *st;
	bool replayed;
	int status;

	status = nfs4_state_get_seq(c, &a->sid, a->new_owner ? a->open_seqid : a->lock_seqid,
				    a->new_owner ? NFS4_STATE_OPEN : NFS4_STATE_LOCK, &st,
				    &replayed);
	if (status != NFS4_OK || replayed)
		return status;
	if (a->new_owner)
		l.open = nfs4_as_open(st);
	else
		l.lock = nfs4_as_lock(st);
	status = nfs4_lock_run(c, &l);
	if (c->minor == 0 && l.owner && nfs4_seq_advances(status))
		nfs4_seq_set(l.owner, a->lock_seqid);
	nfs4_owner_release(l.owner);
	nfs4_state_unref(st);
	return status;
}

const struct nfs4_op nfs4_op_lock = {
	.name = "LOCK",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_EVENT_THREAD,
	/* LOCK4denied is longer, but comes only if nothing has changed */
	.reply_max = NFS4_STATEID_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_ISDIR | NFS4_E_INVAL, 0,
				       NFS4_E_ROFS | NFS4_E_SYMLINK),
	.args_size = sizeof(struct lock_args),
	.decode = decode_lock,
	.run = nfs4_run_lock,
};

struct lockt_args {
	uint32_t type;
	uint64_t offset, length;
	struct nfs4_wire_owner owner;
};

static void decode_lockt(struct nfs4_compound *c, void *args)
{
	struct lockt_args *a = args;

	a->type = nfs4_get_lock_type(c);
	a->offset = xdr_get_u64(c->in);
	a->length = xdr_get_u64(c->in);
	nfs4_get_wire_owner(c, &a->owner);
}

struct testing {
	struct nfs4_compound *c;
	const struct lockt_args *args;
	struct nfs4_lock *lock; /* the owner's of that file; NULL: it has none */
};

static int test_ranges(const struct testing *t, struct vfs_conflict *cf)
{
	const struct vfs_lock_request r = {
		.type = nfs4_vfs_lock_type(t->args->type),
		.offset = t->args->offset,
		.length = t->args->length,
	};
	struct nfs4_object *p = &t->c->current;
	struct nfs4_lock *lock = t->lock;
	int rc;

	if (lock)
		rn_lock_take(&lock->open->busy);
	rc = vfs_lock_test(&p->ctx, p->node, lock && !lock->st.gone ? &lock->ranges : NULL, &r, cf);
	if (lock)
		rn_lock_give(&lock->open->busy);
	return rc;
}

static int nfs4_test_lock(const struct testing *t)
{
	struct vfs_conflict cf = { .holder = NULL };
	int rc = test_ranges(t, &cf), status;

	if (rc != -RN_EDENIED)
		return nfs4_lock_status(t->c, rc);
	status = nfs4_conflict(t->c, &cf, NFS4ERR_DENIED);
	if (status == NFS4ERR_DENIED)
		nfs4_put_denied(t->c, &cf);
	vfs_conflict_put(&cf);
	return status;
}

static int run_lockt(struct nfs4_compound *c, void *args)
{
	const struct lockt_args *a = args;
	const struct nfs4_owner_name name = { NFS4_LOCK_OWNER, a->owner.name, a->owner.len };
	struct testing t = { .c = c, .args = a };
	struct nfs4_client *cl;
	struct nfs4_owner *o;
	struct vfs_file *f;
	int status, rc;

	status = nfs4_need(c, &c->current, NFS4_NEED_FILE | NFS4_NEED_REG);
	if (status == NFS4_OK)
		status = nfs4_check_range(a->offset, a->length);
	if (status == NFS4_OK)
		status = nfs4_caller(c, a->owner.clientid, &cl);
	if (status == NFS4_OK)
		status = nfs4_may_lock(c->server, &cl->record);
	if (status != NFS4_OK)
		return status;
	rc = vfs_file_get(&c->current.ctx, c->current.node, &f);
	if (rc != 0)
		return nfs4_status(c->minor, rc);
	o = nfs4_owner_find(cl, &name);
	t.lock = o ? nfs4_lock_find(cl, o, f) : NULL;
	do
		status = nfs4_test_lock(&t);
	while (nfs4_try_again(c, status));
	if (t.lock)
		nfs4_state_unref(&t.lock->st);
	nfs4_owner_release(o);
	vfs_file_put(f);
	return status;
}

struct locku_args {
	uint32_t type;
	uint32_t seqid;
	struct nfs4_stateid sid;
	uint64_t offset, length;
};

static void decode_locku(struct nfs4_compound *c, void *args)
{
	struct locku_args *a = args;

	a->type = nfs4_get_lock_type(c);
	a->seqid = xdr_get_u32(c->in);
	nfs4_get_stateid(c->in, &a->sid);
	a->offset = xdr_get_u64(c->in);
	a->length = xdr_get_u64(c->in);
}

/* Under busy. */
static int nfs4_unlock(struct nfs4_compound *c, const struct locku_args *a, struct nfs4_lock *lock,
		       struct nfs4_stateid *sid)
{
	int status = nfs4_state_check(c, &lock->st, &a->sid, NFS4_STATE_LOCK), rc;

	if (status == NFS4_OK)
		status = nfs4_check_range(a->offset, a->length);
	if (status != NFS4_OK)
		return status;
	rc = vfs_unlock(&c->current.ctx, &lock->ranges, a->offset, a->length);
	if (rc != 0)
		return nfs4_lock_status(c, rc);
	nfs4_ranges_changed(lock);
	nfs4_state_changed(c, &lock->st, sid);
	return NFS4_OK;
}

static int run_locku(struct nfs4_compound *c, void *args)
{
	const struct locku_args *a = args;
	struct nfs4_stateid sid;
	struct nfs4_open *open;
	struct nfs4_state *st;
	bool replayed;
	int status;

	status = nfs4_state_get_seq(c, &a->sid, a->seqid, NFS4_STATE_LOCK, &st, &replayed);
	if (status != NFS4_OK || replayed)
		return status;
	open = nfs4_open_of(st);
	rn_lock_take(&open->busy);
	status = nfs4_unlock(c, a, nfs4_as_lock(st), &sid);
	rn_lock_give(&open->busy);
	if (status == NFS4_OK)
		nfs4_put_stateid(c->out, &sid);
	nfs4_state_unref(st);
	return status;
}

struct release_lockowner_args {
	struct nfs4_wire_owner owner;
};

static void decode_release_lockowner(struct nfs4_compound *c, void *args)
{
	struct release_lockowner_args *a = args;

	nfs4_get_wire_owner(c, &a->owner);
}

/* True if the owner holds any locked range. */
static bool nfs4_lock_owner_holds(struct nfs4_client *cl, const struct nfs4_owner *o)
{
	const struct nfs4_lock *lock;
	bool held = false;

	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (lock, &o->locks, owner_link)
		held |= lock->held;
	pthread_mutex_unlock(&cl->lock);
	return held;
}

/* Any lock of the owner, with a reference. */
static struct nfs4_lock *nfs4_lock_owner_first_lock(struct nfs4_client *cl,
						    const struct nfs4_owner *o)
{
	struct nfs4_lock *lock;

	pthread_mutex_lock(&cl->lock);
	lock = LIST_FIRST(&o->locks);
	if (lock)
		nfs4_state_ref(&lock->st);
	pthread_mutex_unlock(&cl->lock);
	return lock;
}

/* Resets the owner's sequence, so that the owner is freed with its last user. */
static void forget_sequence(struct nfs4_client *cl, struct nfs4_owner *o)
{
	pthread_mutex_lock(&cl->lock);
	if (o->states == 0)
		o->seq_known = false;
	pthread_mutex_unlock(&cl->lock);
}

static void nfs4_lock_owner_release(struct nfs4_client *cl, struct nfs4_owner *o)
{
	struct nfs4_lock *lock;

	while ((lock = nfs4_lock_owner_first_lock(cl, o))) {
		rn_lock_take(&lock->open->busy);
		if (!lock->st.gone)
			nfs4_lock_end(lock);
		rn_lock_give(&lock->open->busy);
		nfs4_state_unref(&lock->st);
	}
	forget_sequence(cl, o);
}

static int run_release_lockowner(struct nfs4_compound *c, void *args)
{
	const struct release_lockowner_args *a = args;
	const struct nfs4_owner_name name = { NFS4_LOCK_OWNER, a->owner.name, a->owner.len };
	struct nfs4_client *cl;
	struct nfs4_owner *o;
	int status = nfs4_caller(c, a->owner.clientid, &cl);

	if (status != NFS4_OK)
		return status;
	o = nfs4_owner_find(cl, &name);
	if (!o)
		return NFS4_OK;
	if (nfs4_lock_owner_holds(cl, o))
		status = NFS4ERR_LOCKS_HELD;
	else
		nfs4_lock_owner_release(cl, o);
	nfs4_owner_release(o);
	return status;
}

const struct nfs4_op nfs4_op_lockt = {
	.name = "LOCKT",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_EVENT_THREAD,
	.reply_max = 8 + 8 + 4 + 8 + 4 + NFS4_OPAQUE_LIMIT, /* LOCK4denied */
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_ISDIR | NFS4_E_INVAL, 0,
				       NFS4_E_ROFS | NFS4_E_SYMLINK),
	.shape = NFS4_SHAPE(4 + 8 + 8 + 8, 0, 1),
	.args_size = sizeof(struct lockt_args),
	.decode = decode_lockt,
	.run = run_lockt,
};

const struct nfs4_op nfs4_op_locku = {
	.name = "LOCKU",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT | NFS4_OP_EVENT_THREAD | NFS4_OP_MACHINE_TOO,
	.reply_max = NFS4_STATEID_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_INVAL, NFS4_E_ISDIR, 0),
	.args_size = sizeof(struct locku_args),
	.decode = decode_locku,
	.run = run_locku,
};

const struct nfs4_op nfs4_op_release_lockowner = {
	.name = "RELEASE_LOCKOWNER",
	.minors = { 0, 2 },
	.gone_from = 1,
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct release_lockowner_args),
	.decode = decode_release_lockowner,
	.run = run_release_lockowner,
};
