/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_opens.h"

#include <endian.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/client_table.h"
#include "nfs4/state/owner.h"

uint32_t op_client_new(struct fixture *f, struct op_client *c, uint32_t minor, const char *name)
{
	uint32_t status;

	memset(c, 0, sizeof(*c));
	c->minor = minor;
	if (minor == 0)
		return fix4_clientid_new(f, name, &c->clientid);
	status = fix4_session_new(f, &c->session, minor, name, true);
	c->clientid = c->session.clientid;
	return status;
}

void op_begin(struct fixture *f, struct op_client *c)
{
	fix4_begin(f, c->minor > 0 ? &c->session : NULL);
}

/*
 * Sends PUTFH and one operation. Returns the status of the last result, with the cursor behind it.
 */
static uint32_t send_one(struct fixture *f, uint32_t opnum)
{
	uint32_t status = fix4_send(f);

	if (fix4_results_left(f) == 0)
		return status;
	status = fix4_result(f, OP_PUTFH);
	return status == NFS4_OK ? fix4_result(f, opnum) : status;
}

static uint32_t advance(struct op_owner *o, uint32_t status)
{
	if (o->client->minor == 0 && nfs4_seq_advances((int)status))
		o->seqid++;
	return status;
}

static void put_owner(struct fixture *f, const struct op_owner *o)
{
	xdr_put_u64(&f->out, o->client->clientid);
	fix4_name(f, o->name);
}

static void put_attrs(struct fixture *f, const struct op_how *how)
{
	struct xdr_out *x = &f->out;

	xdr_put_u32(x, 2);
	xdr_put_u32(x, how->set_size ? 1u << FATTR4_SIZE : 0);
	xdr_put_u32(x, how->set_mode ? 1u << (FATTR4_MODE - 32) : 0);
	xdr_put_u32(x, (how->set_size ? 8 : 0) + (how->set_mode ? 4 : 0));
	if (how->set_size)
		xdr_put_u64(x, how->size);
	if (how->set_mode)
		xdr_put_u32(x, how->mode);
}

static void put_how(struct fixture *f, const struct op_how *how)
{
	const char *verifier = how->verifier ? how->verifier : "exclusiv";

	xdr_put_u32(&f->out, how->create != OP_NOCREATE);
	if (how->create == OP_NOCREATE)
		return;
	xdr_put_u32(&f->out, (uint32_t)how->create - 1);
	if (how->create >= OP_EXCLUSIVE)
		xdr_put_fixed(&f->out, verifier, NFS4_VERIFIER_SIZE);
	if (how->create != OP_EXCLUSIVE)
		put_attrs(f, how);
}

void op_put_open(struct fixture *f, const struct op_owner *o, const struct op_how *how)
{
	static const struct nfs4_stateid none;
	struct xdr_out *x = &f->out;

	fix4_op(f, OP_OPEN);
	xdr_put_u32(x, o->seqid);
	xdr_put_u32(x, how->access ? how->access : OPEN4_SHARE_ACCESS_BOTH);
	xdr_put_u32(x, how->deny);
	put_owner(f, o);
	put_how(f, how);
	xdr_put_u32(x, how->claim);
	if (how->claim == OP_RECLAIM)
		xdr_put_u32(x, how->delegation);
	if (how->claim == OP_DELEG_CUR || how->claim == OP_DCUR_FH)
		fix4_stateid(f, how->delegated ? how->delegated : &none);
	if (how->claim == OP_BY_NAME || how->claim == OP_DELEG_CUR || how->claim == OP_DELEG_PREV)
		fix4_name(f, how->name);
}

void op_get_delegation(struct fixture *f, struct op_file *out)
{
	struct xdr_in *r = &f->in;
	uint32_t len;

	out->delegation = xdr_get_u32(r);
	if (out->delegation == OPEN_DELEGATE_READ || out->delegation == OPEN_DELEGATE_WRITE) {
		fix4_get_stateid(f, &out->deleg);
		xdr_skip(r,
			 out->delegation == OPEN_DELEGATE_WRITE ? 4 + 12 : 4); /* recall, limit */
		xdr_skip(r, 12); /* type, flags and rights of the ace */
		xdr_get_opaque(r, NFS4_OPAQUE_LIMIT, &len);
	} else if (out->delegation == OPEN_DELEGATE_NONE_EXT) {
		out->why = xdr_get_u32(r);
		if (out->why == WND4_CONTENTION || out->why == WND4_RESOURCE)
			xdr_get_u32(r);
	}
}

uint32_t op_delegreturn(struct fixture *f, struct op_client *c, const struct vfs_fh *fh,
			const struct nfs4_stateid *sid)
{
	op_begin(f, c);
	fix4_putfh(f, fh);
	fix4_op(f, OP_DELEGRETURN);
	fix4_stateid(f, sid);
	return send_one(f, OP_DELEGRETURN);
}

void op_get_open(struct fixture *f, struct op_file *out)
{
	struct xdr_in *r = &f->in;
	uint32_t words;
	bool atomic;

	memset(out, 0, sizeof(*out));
	fix4_get_stateid(f, &out->sid);
	fix4_get_cinfo(f, &atomic, &out->before, &out->after);
	out->rflags = xdr_get_u32(r);
	words = xdr_get_u32(r);
	for (uint32_t i = 0; i < words && i < 3; i++)
		out->attrset[i] = xdr_get_u32(r);
	op_get_delegation(f, out);
}

uint32_t op_open_only(struct fixture *f, struct op_owner *o, const struct op_how *how,
		      struct op_file *out)
{
	uint32_t status;

	op_begin(f, o->client);
	fix4_putfh(f, how->fh);
	op_put_open(f, o, how);
	fix4_op(f, OP_GETFH);
	status = send_one(f, OP_OPEN);
	advance(o, status);
	if (status != NFS4_OK)
		return status;
	op_get_open(f, out);
	status = fix4_result(f, OP_GETFH);
	if (status == NFS4_OK)
		fix4_get_fh(f, &out->fh);
	return status;
}

uint32_t op_confirm(struct fixture *f, struct op_owner *o, struct op_file *file)
{
	uint32_t status;

	op_begin(f, o->client);
	fix4_putfh(f, &file->fh);
	fix4_op(f, OP_OPEN_CONFIRM);
	fix4_stateid(f, &file->sid);
	xdr_put_u32(&f->out, o->seqid);
	status = advance(o, send_one(f, OP_OPEN_CONFIRM));
	if (status == NFS4_OK)
		fix4_get_stateid(f, &file->sid);
	return status;
}

uint32_t op_open(struct fixture *f, struct op_owner *o, const struct op_how *how,
		 struct op_file *out)
{
	uint32_t status = op_open_only(f, o, how, out);

	if (status == NFS4_OK && (out->rflags & OPEN4_RESULT_CONFIRM))
		status = op_confirm(f, o, out);
	return status;
}

uint32_t op_close(struct fixture *f, struct op_owner *o, struct op_file *file)
{
	uint32_t status;

	op_begin(f, o->client);
	fix4_putfh(f, &file->fh);
	fix4_op(f, OP_CLOSE);
	xdr_put_u32(&f->out, o->seqid);
	fix4_stateid(f, &file->sid);
	status = advance(o, send_one(f, OP_CLOSE));
	if (status == NFS4_OK)
		fix4_get_stateid(f, &file->sid);
	return status;
}

uint32_t op_downgrade(struct fixture *f, struct op_owner *o, struct op_file *file, uint32_t access,
		      uint32_t deny)
{
	uint32_t status;

	op_begin(f, o->client);
	fix4_putfh(f, &file->fh);
	fix4_op(f, OP_OPEN_DOWNGRADE);
	fix4_stateid(f, &file->sid);
	xdr_put_u32(&f->out, o->seqid);
	xdr_put_u32(&f->out, access);
	xdr_put_u32(&f->out, deny);
	status = advance(o, send_one(f, OP_OPEN_DOWNGRADE));
	if (status == NFS4_OK)
		fix4_get_stateid(f, &file->sid);
	return status;
}

static void get_denied(struct fixture *f, struct op_denied *d)
{
	struct op_denied unused;
	const uint8_t *name;

	d = d ? d : &unused;
	memset(d, 0, sizeof(*d));
	d->offset = xdr_get_u64(&f->in);
	d->length = xdr_get_u64(&f->in);
	d->type = xdr_get_u32(&f->in);
	d->clientid = xdr_get_u64(&f->in);
	name = xdr_get_opaque(&f->in, NFS4_OPAQUE_LIMIT, &d->owner_len);
	if (name)
		snprintf(d->owner, sizeof(d->owner), "%.*s", (int)d->owner_len, name);
}

static void put_lock(struct fixture *f, const struct vfs_fh *fh, const struct op_range *r)
{
	fix4_putfh(f, fh);
	fix4_op(f, OP_LOCK);
	xdr_put_u32(&f->out, r->type);
	xdr_put_bool(&f->out, r->reclaim);
	xdr_put_u64(&f->out, r->offset);
	xdr_put_u64(&f->out, r->length);
}

static uint32_t send_lock(struct fixture *f, struct nfs4_stateid *lock, struct op_denied *denied)
{
	uint32_t status = send_one(f, OP_LOCK);

	if (status == NFS4_OK)
		fix4_get_stateid(f, lock);
	else if (status == NFS4ERR_DENIED)
		get_denied(f, denied);
	return status;
}

uint32_t op_lock_first(struct fixture *f, struct op_owner *open_owner, struct op_owner *lock_owner,
		       const struct op_file *file, const struct op_range *r,
		       struct nfs4_stateid *lock, struct op_denied *denied)
{
	uint32_t status;

	op_begin(f, open_owner->client);
	put_lock(f, &file->fh, r);
	xdr_put_bool(&f->out, true);
	xdr_put_u32(&f->out, open_owner->seqid);
	fix4_stateid(f, &file->sid);
	xdr_put_u32(&f->out, lock_owner->seqid);
	put_owner(f, lock_owner);
	status = send_lock(f, lock, denied);
	advance(open_owner, status);
	return advance(lock_owner, status);
}

uint32_t op_lock(struct fixture *f, struct op_owner *lock_owner, const struct vfs_fh *fh,
		 const struct op_range *r, struct nfs4_stateid *lock, struct op_denied *denied)
{
	op_begin(f, lock_owner->client);
	put_lock(f, fh, r);
	xdr_put_bool(&f->out, false);
	fix4_stateid(f, lock);
	xdr_put_u32(&f->out, lock_owner->seqid);
	return advance(lock_owner, send_lock(f, lock, denied));
}

uint32_t op_unlock(struct fixture *f, struct op_owner *lock_owner, const struct vfs_fh *fh,
		   const struct op_range *r, struct nfs4_stateid *lock)
{
	uint32_t status;

	op_begin(f, lock_owner->client);
	fix4_putfh(f, fh);
	fix4_op(f, OP_LOCKU);
	xdr_put_u32(&f->out, r->type);
	xdr_put_u32(&f->out, lock_owner->seqid);
	fix4_stateid(f, lock);
	xdr_put_u64(&f->out, r->offset);
	xdr_put_u64(&f->out, r->length);
	status = advance(lock_owner, send_one(f, OP_LOCKU));
	if (status == NFS4_OK)
		fix4_get_stateid(f, lock);
	return status;
}

uint32_t op_lockt(struct fixture *f, struct op_owner *lock_owner, const struct vfs_fh *fh,
		  const struct op_range *r, struct op_denied *denied)
{
	uint32_t status;

	op_begin(f, lock_owner->client);
	fix4_putfh(f, fh);
	fix4_op(f, OP_LOCKT);
	xdr_put_u32(&f->out, r->type);
	xdr_put_u64(&f->out, r->offset);
	xdr_put_u64(&f->out, r->length);
	put_owner(f, lock_owner);
	status = send_one(f, OP_LOCKT);
	if (status == NFS4ERR_DENIED)
		get_denied(f, denied);
	return status;
}

/* As send_one(), for an operation that needs no filehandle. */
static uint32_t send_bare(struct fixture *f, uint32_t opnum)
{
	uint32_t status = fix4_send(f);

	return fix4_results_left(f) > 0 ? fix4_result(f, opnum) : status;
}

uint32_t op_release_lockowner(struct fixture *f, struct op_owner *o)
{
	op_begin(f, o->client);
	fix4_op(f, OP_RELEASE_LOCKOWNER);
	put_owner(f, o);
	return send_bare(f, OP_RELEASE_LOCKOWNER);
}

uint32_t op_free_stateid(struct fixture *f, struct op_client *c, const struct nfs4_stateid *sid)
{
	op_begin(f, c);
	fix4_op(f, OP_FREE_STATEID);
	fix4_stateid(f, sid);
	return send_bare(f, OP_FREE_STATEID);
}

uint32_t op_test_stateid(struct fixture *f, struct op_client *c, const struct nfs4_stateid *sid)
{
	uint32_t status;

	op_begin(f, c);
	fix4_op(f, OP_TEST_STATEID);
	xdr_put_u32(&f->out, 1);
	fix4_stateid(f, sid);
	status = send_bare(f, OP_TEST_STATEID);
	if (status != NFS4_OK)
		return status;
	if (xdr_get_u32(&f->in) != 1)
		return FIX4_NO_STATUS;
	return xdr_get_u32(&f->in);
}

uint32_t op_read(struct fixture *f, struct op_client *c, const struct vfs_fh *fh,
		 const struct nfs4_stateid *sid)
{
	op_begin(f, c);
	fix4_putfh(f, fh);
	fix4_op(f, OP_READ);
	fix4_stateid(f, sid);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 1);
	return send_one(f, OP_READ);
}

uint32_t op_write(struct fixture *f, struct op_client *c, const struct vfs_fh *fh,
		  const struct nfs4_stateid *sid)
{
	op_begin(f, c);
	fix4_putfh(f, fh);
	fix4_op(f, OP_WRITE);
	fix4_stateid(f, sid);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 0); /* UNSTABLE4 */
	xdr_put_opaque(&f->out, "x", 1);
	return send_one(f, OP_WRITE);
}

static bool somebody_waits(struct rn_lock *l)
{
	pthread_mutex_lock(&l->guard);
	const bool waits = !STAILQ_EMPTY(&l->waiting);
	pthread_mutex_unlock(&l->guard);
	return waits;
}

static void *hold_busy(void *arg)
{
	struct op_busy *b = arg;

	rn_lock_take(&b->open->busy);
	b->f->moved = UINT32_MAX;
	while (!somebody_waits(&b->open->busy))
		sched_yield();
	rn_lock_give(&b->open->busy);
	return NULL;
}

void op_busy_begin(struct op_busy *b, struct fixture *f, const struct op_client *c)
{
	struct nfs4_client *cl = nfs4_client_get(f->server4->clients, c->clientid);

	if (!cl)
		abort();
	b->f = f;
	b->open = nfs4_open_of(TAILQ_FIRST(&cl->holdings->states));
	if (pthread_create(&b->thread, NULL, hold_busy, b) != 0)
		abort();
	while (f->moved != UINT32_MAX)
		sched_yield();
	nfs4_client_put(cl);
}

void op_busy_end(struct op_busy *b)
{
	pthread_join(b->thread, NULL);
}

void op_retag(struct fixture *f, struct nfs4_stateid *sid)
{
	uint32_t words[NFS4_OTHER_SIZE / 4];

	memcpy(words, sid->other, sizeof(words));
	words[0] = htobe32(nfs4_stateid_tag(f->server4, be32toh(words[1]), be32toh(words[2])));
	memcpy(sid->other, words, sizeof(words));
}
