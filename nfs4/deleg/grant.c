/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/deleg/grant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/error.h"
#include "nfs/caller.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/deleg/deleg_pressure.h"
#include "nfs4/deleg/delegations.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/stateid_check.h"

#define MAY (-1) /* no reason against it */

static uint32_t nfs4_deleg_wanted(const struct nfs4_deleg_request *r)
{
	return r->want & OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
}

/* The type that the client is to get. */
static enum vfs_deleg_type nfs4_deleg_wanted_type(const struct nfs4_deleg_request *r)
{
	if (r->reclaim)
		return r->reclaimed == OPEN_DELEGATE_WRITE ? VFS_DELEG_WRITE : VFS_DELEG_READ;
	switch (nfs4_deleg_wanted(r)) {
	case OPEN4_SHARE_ACCESS_WANT_READ_DELEG:
		return VFS_DELEG_READ;
	case OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG:
		return VFS_DELEG_WRITE;
	default:
		return r->access & OPEN4_SHARE_ACCESS_WRITE ? VFS_DELEG_WRITE : VFS_DELEG_READ;
	}
}

/*
 * Reasons in what the client asks for: MAY or enum why_no_delegation4. As in nfsd, clients of minor
 * version 0 get no write delegations: their GETATTRs do not tell who sends them, so the holder would
 * be asked for its own, and a GETATTR before its DELEGRETURN could not be answered.
 */
static int look_at_wish(struct nfs4_compound *c, const struct nfs4_deleg_request *r)
{
	if (c->minor == 0 && nfs4_deleg_wanted_type(r) == VFS_DELEG_WRITE)
		return WND4_WRITE_DELEG_NOT_SUPP_FTYPE;
	if (r->reclaim)
		return MAY;
	switch (nfs4_deleg_wanted(r)) {
	case OPEN4_SHARE_ACCESS_WANT_NO_DELEG:
		return WND4_NOT_WANTED;
	case OPEN4_SHARE_ACCESS_WANT_CANCEL:
		return WND4_CANCELLED;
	default:
		return MAY;
	}
}

/* In minor version 0 the path must have been tried: nothing tells the client that it is down before
 * the next RENEW. */
static bool is_reached(struct nfs4_compound *c)
{
	return c->minor > 0 ? nfs4_cb_works(c->session) : nfs4_cb_reaches(c->client);
}

/* Reasons in the state of the server and of the client. */
static int look_at_server(struct nfs4_compound *c, const struct nfs4_deleg_request *r)
{
	if (!c->server->cfg.delegations)
		return WND4_NOT_SUPP_FTYPE;
	if (!r->reclaim && nfs4_drain_check(r->object ? r->object : &c->current) != NFS4_OK)
		return WND4_RESOURCE;
	/* Others may still reclaim what is in the way; or have got it since a delegation was
	 * revoked. */
	if (r->reclaim ? !nfs4_may_reclaim_deleg(&c->client->record) : nfs4_in_grace(c->server))
		return WND4_CONTENTION;
	return is_reached(c) && nfs4_deleg_has_room(c->client) ? MAY : WND4_RESOURCE;
}

bool nfs4_deleg_is_available(struct nfs4_compound *c)
{
	const struct nfs4_deleg_request r = { .reclaim = false };

	return look_at_server(c, &r) == MAY;
}

static int nfs4_deleg_check_wish(struct nfs4_compound *c, const struct nfs4_deleg_request *r)
{
	const int why = look_at_wish(c, r);

	return why == MAY ? look_at_server(c, r) : why;
}

/* Bits that the client's record must have before it gets the delegation. */
static unsigned bits_of(const struct nfs4_deleg_request *r)
{
	return NFS4_RECORD_DELEG |
	       (nfs4_deleg_wanted_type(r) == VFS_DELEG_WRITE ? NFS4_RECORD_DELEG_WRITE : 0u);
}

unsigned nfs4_deleg_record(struct nfs4_compound *c, const struct nfs4_deleg_request *r)
{
	return nfs4_deleg_check_wish(c, r) == MAY ? bits_of(r) : 0;
}

bool nfs4_deleg_is_possible(struct nfs4_compound *c, const struct nfs4_deleg_request *r)
{
	if (nfs4_deleg_check_wish(c, r) != MAY)
		return false;
	return r->want != 0 || /* the reason is asked for */
	       vfs_deleg_possible(&r->object->ctx, r->object->node, nfs4_deleg_wanted_type(r));
}

/* True if the name still leads to the file, or the directory is still there. A REMOVE or RENAME that
 * ended between the lookup and the gift has met no delegation. From now on it would. */
static bool nfs4_deleg_is_named(const struct nfs4_deleg_request *r, const struct vfs_file *f)
{
	struct vfs_attr attr;
	struct vfs_node *n;
	bool same;

	if (!r->dir)
		return r->object->type != S_IFDIR ||
		       vfs_getattr(&r->object->ctx, r->object->node, &attr) == 0;
	if (vfs_lookup(&r->dir->ctx, r->dir->node, r->name, r->name_len, &n, NULL))
		return false;
	same = vfs_file_is(f, n);
	vfs_node_put(n);
	return same;
}

/* A reload may have taken the export from the client since the OPEN began, and has revoked only what
 * it found. */
static bool nfs4_deleg_is_served(struct nfs4_compound *c, const struct nfs4_object *p)
{
	return nfs_still_served(&c->server->cfg.exports, p->export_id, c->req->conn);
}

/* Checks the rights that come with the delegation, and that the OPEN has not asked for. */
static int check_rights(const struct nfs4_deleg_request *r)
{
	const unsigned rights = nfs4_deleg_wanted_type(r) == VFS_DELEG_WRITE
					? OPEN4_SHARE_ACCESS_BOTH
					: OPEN4_SHARE_ACCESS_READ;
	const unsigned more = rights & ~r->access;
	const unsigned want = (more & OPEN4_SHARE_ACCESS_READ ? VFS_MAY_READ : 0u) |
			      (more & OPEN4_SHARE_ACCESS_WRITE ? VFS_MAY_WRITE : 0u);

	if (more == 0 || r->object->type != S_IFREG)
		return 0;
	return vfs_open_check(&r->object->ctx, r->object->node, want);
}

/*
 * d has been given by vfs/, so nobody else changes the file. 0, or -RN_ENOTNOW: it has set-id bits, which
 * the first WRITE takes away, while the client would go on to believe them; as in nfsd.
 */
static int note_file(const struct nfs4_deleg_request *r, struct nfs4_deleg *d)
{
	struct vfs_attr attr;
	int rc;

	if (d->vfs.type != VFS_DELEG_WRITE)
		return 0;
	rc = vfs_getattr(&r->object->ctx, r->object->node, &attr);
	d->change = attr.change;
	return rc == 0 && (attr.mode & (S_ISUID | S_ISGID)) ? -RN_ENOTNOW : rc;
}

static uint8_t type_bit(const struct nfs4_object *p, enum vfs_deleg_type type)
{
	if (p->type == S_IFDIR)
		return NFS4_ANY_DIR;
	return type == VFS_DELEG_WRITE ? NFS4_ANY_WRITE : NFS4_ANY_READ;
}

/* Makes a delegation in no table, with a reference for the caller; type and ops of d->vfs are set.
 * NULL: no memory. */
static struct nfs4_deleg *nfs4_deleg_new(struct nfs4_client *cl, struct vfs_file *f,
					 const struct nfs4_object *p, enum vfs_deleg_type type)
{
	const struct vfs_fh *fh = &p->fh;
	struct nfs4_deleg *d = calloc(1, sizeof(*d) + fh->len);

	if (!d)
		return NULL;
	nfs4_state_init(&d->st, NFS4_STATE_DELEG, cl, NULL, f);
	d->vfs.ops = &nfs4_recall_ops;
	d->vfs.client = cl;
	d->vfs.type = type;
	d->type = type_bit(p, type);
	d->opener = p->ctx.cred.uid;
	d->export_id = p->export_id;
	d->fh_len = (uint8_t)fh->len;
	memcpy(d->fh, fh->data, fh->len);
	return d;
}

/* Adds one that vfs/ has given to the tables, and gives its stateid. Otherwise it has ended towards
 * vfs/: -RN_ENOTNOW: it was recalled meanwhile, or the client has another of the file; -ESTALE: the
 * client's state is being dropped; -ENOMEM, -ENOSPC. */
static int nfs4_deleg_add(struct nfs4_deleg *d, struct nfs4_stateid *sid)
{
	struct nfs4_client *cl = d->st.client;
	int rc = -RN_ENOTNOW;

	pthread_mutex_lock(&cl->lock);
	if (!d->recalled && !nfs4_state_by_file(cl, NULL, d->st.file))
		rc = nfs4_state_add(cl, &d->st);
	if (rc == 0) {
		d->given = true;
		nfs4_deleg_count(d);
		nfs4_deleg_one_more(cl);
		d->st.seqid = 1;
		nfs4_state_stateid(&d->st, sid);
	} else if (rc == -ENOMEM) {
		nfs4_deleg_refused(cl);
	}
	pthread_mutex_unlock(&cl->lock);
	if (rc != 0)
		vfs_deleg_end(&d->vfs);
	return rc;
}

static int nfs4_deleg_give_new(struct nfs4_compound *c, const struct nfs4_deleg_request *r,
			       struct vfs_file *f, struct nfs4_stateid *sid)
{
	struct nfs4_deleg *d;
	int rc;

	if (nfs4_deleg_type(c->client, f) != 0)
		return -EALREADY;
	d = nfs4_deleg_new(c->client, f, r->object, nfs4_deleg_wanted_type(r));
	if (!d)
		return -ENOMEM;
	d->giver = nfs4_cb_refer(c);
	if (r->notify && r->notify->kinds && !nfs4_dir_notify_new(d, r->notify))
		r->notify->kinds = 0;
	rc = vfs_deleg_give(&r->object->ctx, r->object->node, &d->vfs);
	if (rc == 0) {
		rc = note_file(r, d);
		if (rc != 0)
			vfs_deleg_end(&d->vfs);
	}
	if (rc == 0 && r->notify)
		r->notify->kinds = atomic_load(&d->vfs.notify_kinds);
	if (rc == 0)
		rc = nfs4_deleg_add(d, sid);
	if (rc == 0 && !(nfs4_deleg_is_named(r, f) && nfs4_deleg_is_served(c, r->object))) {
		nfs4_deleg_end(d);
		rc = -RN_ENOTNOW;
	}
	nfs4_state_unref(&d->st);
	return rc;
}

/* The client has a delegation of the file. As in nfsd, none is made another: it is to return it first. */
static uint32_t why_not_another(struct nfs4_compound *c, const struct nfs4_deleg_request *r)
{
	struct vfs_file *f;
	unsigned has = 0;

	if (vfs_file_get(&r->object->ctx, r->object->node, &f) == 0) {
		has = nfs4_deleg_type(c->client, f);
		vfs_file_put(f);
	}
	if (has == VFS_DELEG_READ && nfs4_deleg_wanted_type(r) == VFS_DELEG_WRITE)
		return WND4_NOT_SUPP_UPGRADE;
	if (has == VFS_DELEG_WRITE && nfs4_deleg_wanted_type(r) == VFS_DELEG_READ)
		return WND4_NOT_SUPP_DOWNGRADE;
	return WND4_CONTENTION;
}

static uint32_t why_of(struct nfs4_compound *c, const struct nfs4_deleg_request *r, int rc)
{
	switch (rc) {
	case -EALREADY:
		return why_not_another(c, r);
	case -RN_ENOTNOW:
		return WND4_CONTENTION;
	case -EOPNOTSUPP:
		return nfs4_deleg_wanted_type(r) == VFS_DELEG_WRITE
			       ? WND4_WRITE_DELEG_NOT_SUPP_FTYPE
			       : WND4_NOT_SUPP_FTYPE;
	default:
		return WND4_RESOURCE;
	}
}

int nfs4_deleg_give(struct nfs4_compound *c, const struct nfs4_deleg_request *r,
		    struct nfs4_stateid *sid)
{
	struct vfs_file *f;
	int rc = vfs_file_get(&r->object->ctx, r->object->node, &f);

	if (rc != 0)
		return rc;
	rc = nfs4_deleg_give_new(c, r, f, sid);
	vfs_file_put(f);
	return rc;
}

/* MAY: it was given. */
static int try_to_give(struct nfs4_compound *c, const struct nfs4_deleg_request *r,
		       struct nfs4_stateid *sid)
{
	int rc;

	/* Not on disk: the callback path has come up meanwhile, or records cannot be written. */
	if (!nfs4_record_has(&c->client->record, bits_of(r)))
		return WND4_RESOURCE;
	rc = check_rights(r);
	if (rc == 0)
		rc = nfs4_deleg_give(c, r, sid);
	return rc == 0 ? MAY : (int)why_of(c, r, rc);
}

/* True if a local process may have changed the file while the server was away. The client returns the
 * delegation then, and looks at the file when it opens it again. */
static bool is_suspect(const struct nfs4_deleg_request *r)
{
	return r->reclaim && !vfs_export_is_nfs_only(r->object->ctx.exp);
}

void nfs4_deleg_offer(struct nfs4_compound *c, const struct nfs4_deleg_request *r,
		      struct nfs4_deleg_offer *out)
{
	const bool writes = nfs4_deleg_wanted_type(r) == VFS_DELEG_WRITE;
	int why = nfs4_deleg_check_wish(c, r);

	*out = (struct nfs4_deleg_offer){ .recalled = is_suspect(r) };
	if (why == MAY)
		why = rpc_on_event_thread(c->req) ? WND4_RESOURCE : try_to_give(c, r, &out->sid);
	out->type = writes ? OPEN_DELEGATE_WRITE : OPEN_DELEGATE_READ;
	if (why == MAY)
		return;
	out->why = (uint32_t)why;
	out->type = c->minor > 0 && r->want != 0 ? OPEN_DELEGATE_NONE_EXT : OPEN_DELEGATE_NONE;
}

/* Users whom the client may let read without asking: none. The file's mode and ACL decide, and
 * clients ask by ACCESS. nfsd puts an empty ace, too. */
static void nfs4_deleg_put_ace(struct xdr_out *x)
{
	static const char who[] = "EVERYONE@";

	xdr_put_u32(x, ACE4_ACCESS_ALLOWED_ACE_TYPE);
	xdr_put_u32(x, 0); /* flags */
	xdr_put_u32(x, 0); /* rights */
	xdr_put_opaque(x, (const uint8_t *)who, sizeof(who) - 1);
}

/* The limit is 0, as in nfsd: the client writes back at CLOSE, since the server reserves no space and could not
 * tell later that there is none (RFC 8881 section 10.4.1). */
static void put_space_limit(struct xdr_out *x)
{
	xdr_put_u32(x, NFS_LIMIT_SIZE);
	xdr_put_u64(x, 0);
}

void nfs4_put_delegation(struct nfs4_compound *c, const struct nfs4_deleg_offer *offer)
{
	struct xdr_out *x = c->out;

	xdr_put_u32(x, offer->type);
	switch (offer->type) {
	case OPEN_DELEGATE_READ:
		nfs4_put_stateid(x, &offer->sid);
		xdr_put_bool(x, offer->recalled);
		nfs4_deleg_put_ace(x);
		break;
	case OPEN_DELEGATE_WRITE:
		nfs4_put_stateid(x, &offer->sid);
		xdr_put_bool(x, offer->recalled);
		put_space_limit(x);
		nfs4_deleg_put_ace(x);
		break;
	case OPEN_DELEGATE_NONE_EXT:
		xdr_put_u32(x, offer->why);
		if (offer->why == WND4_CONTENTION || offer->why == WND4_RESOURCE)
			xdr_put_bool(x, false); /* the server will not tell when it is gone */
		break;
	default:
		break;
	}
}
