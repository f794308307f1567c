/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/nfs4_io.h"

#include "nfs4/recovery/grace.h"
#include "nfs4/state/stateid_check.h"
#include "nfs4/state/copy_source.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/deleg_pressure.h"
#include "nfs4/nfs4_status.h"
#include "vfs/vfs_worker.h"

struct asking {
	struct nfs4_compound *c;
	struct nfs4_place *place;
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

static int ask_once(void *arg)
{
	const struct asking *a = arg;
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
	return nfs4_attempt(a.c, ask_once, &a);
}

/* Special stateids: checked as a caller without an open. READ bypass may ignore shares (RFC 8881
 * section 8.2.3), but need not. */
static int begin_special(struct nfs4_compound *c, struct nfs4_place *p, unsigned access)
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
static bool opened_by_caller(const struct nfs4_place *p, struct nfs4_open *open)
{
	return atomic_load_explicit(&open->opener, memory_order_relaxed) == p->ctx.cred.uid;
}

/* A delegation stands for opens that the client has not sent. Others than the caller of the OPEN
 * that it came with are checked as without it. */
static int begin_delegated(const struct nfs4_place *p, unsigned access, struct nfs4_io_right *r)
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
static int begin_for_copy(struct nfs4_compound *c, struct nfs4_place *p,
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

int nfs4_io_begin_at(struct nfs4_compound *c, struct nfs4_place *p, const struct nfs4_stateid *sid,
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
