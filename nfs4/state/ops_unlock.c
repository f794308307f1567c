/* SPDX-License-Identifier: BSD-2-Clause */
/* LOCKT, LOCKU and RELEASE_LOCKOWNER. */
#include <errno.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/state/stateid_check.h"
#include "nfs4/state/owner.h"
#include "nfs4/state/lock_wire.h"

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
	struct nfs4_place *p = &t->c->current;
	struct nfs4_lock *lock = t->lock;
	int rc;

	if (lock)
		rn_lock_take(&lock->open->busy);
	rc = vfs_lock_test(&p->ctx, p->node, lock && !lock->st.gone ? &lock->ranges : NULL, &r, cf);
	if (lock)
		rn_lock_give(&lock->open->busy);
	return rc;
}

static int nfs4_test_lock(void *arg)
{
	const struct testing *t = arg;
	struct vfs_conflict cf = { .holder = NULL };
	int rc = test_ranges(t, &cf), status;

	if (rc != -RN_EDENIED)
		return nfs4_status(t->c->minor, rc);
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
	status = nfs4_attempt(c, nfs4_test_lock, &t);
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
	if (rc == -ENOMEM || rc == -ENOLCK)
		return nfs4_state_no_memory(c);
	if (rc != 0)
		return nfs4_status(c->minor, rc);
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
	.flags = NFS4_OP_PROMPT,
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
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER | NFS4_OP_PROMPT | NFS4_OP_MACHINE_TOO,
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
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct release_lockowner_args),
	.decode = decode_release_lockowner,
	.run = run_release_lockowner,
};
