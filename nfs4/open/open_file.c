/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of an OPEN. An existing file is truncated later, after its share was granted. So
 * vfs_create is called for new files only; if it fails because the file exists, the name is looked
 * up again.
 */
#include <errno.h>
#include <sys/stat.h>

#include "lib/clock.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/open/opening.h"
#include "nfs4/pseudo/pseudo.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/stateid_check.h"

#define RACES 8		  /* tries while other callers create and remove the name */
#define LOGGED_SECONDS 60 /* file systems write their logs by themselves in less time */

/*
 * Status for objects that are no regular files (RFC 7530 section 16.16.6, RFC 8881 section
 * 18.16.4). For a FIFO or a device 4.1 has NFS4ERR_WRONG_TYPE. But Linux's client, which tries to
 * open objects that it knows only by name, handles NFS4ERR_SYMLINK and reports an I/O error after
 * anything else.
 */
static int nfs4_open_check_type(uint32_t type)
{
	switch (type) {
	case S_IFREG:
		return NFS4_OK;
	case S_IFDIR:
		return NFS4ERR_ISDIR;
	default:
		return NFS4ERR_SYMLINK;
	}
}

/* Sets w->file to n, an object of the directory's export; takes over its reference. */
static void nfs4_open_set_found(struct nfs4_compound *c, struct nfs4_opening *w, struct vfs_node *n)
{
	nfs4_object_copy(&w->file, &c->current);
	nfs4_object_move(&w->file, n);
}

/* The pseudo file system contains only directories, and roots of exports, which may be files. */
static int find_in_pseudo(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_open_args *a = w->args;
	int status = nfs4_pseudo_lookup(c, &c->current, a->name.bytes, a->name.len, &w->file);

	if (status == NFS4ERR_NOENT && a->create)
		return NFS4ERR_ROFS;
	if (status != NFS4_OK)
		return status;
	status = nfs4_object_usable(&w->file);
	if (status != NFS4_OK)
		return status;
	if (a->create && a->how != NFS4_UNCHECKED)
		return NFS4ERR_EXIST;
	return w->file.kind == NFS4_PSEUDO ? NFS4ERR_ISDIR : NFS4_OK;
}

/* True if the create that made the file may not have been answered, so that nothing has brought it to disk: another
 * client's, or this one's, which sends it again to a server that was killed. The answer to this OPEN tells of the file. */
static bool may_be_unlogged(const struct vfs_attr *attr)
{
	const time_t now = (time_t)(rn_wall_coarse_ns() / RN_NS_PER_SECOND);

	return attr->size == 0 && attr->has_btime && now - attr->btime.tv_sec < LOGGED_SECONDS;
}

static int nfs4_open_look_up(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_name *name = &w->args->name;
	struct nfs_entry step = { .name = name->bytes, .len = name->len };
	struct vfs_attr attr;
	struct vfs_node *n;
	int status, rc;

	/* To create finds out by itself that the directory is gone. */
	rc = (w->args->create ? vfs_lookup_below : vfs_lookup)(&c->current.ctx, c->current.node,
							       name->bytes, name->len, &n,
							       w->args->create ? &attr : NULL);
	if (rc != 0)
		return nfs4_status(c->minor, rc);
	step.found = vfs_node_fh(n);
	if (!nfs4_cross_down(c, &step, &w->file, &status)) {
		nfs4_open_set_found(c, w, n);
		w->found = true;
		w->sync_name = w->args->create && may_be_unlogged(&attr);
		return NFS4_OK;
	}
	vfs_node_put(n);
	return status == NFS4_OK ? nfs4_object_usable(&w->file) : status;
}

static int nfs4_open_create(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_open_args *a = w->args;
	const bool exclusive = a->how >= NFS4_EXCLUSIVE;
	struct vfs_create cr = { .how = exclusive ? VFS_EXCLUSIVE : VFS_GUARDED,
				 .sa = &a->attrs.set,
				 .verf = a->verifier,
				 .may = nfs4_open_rights(w),
				 .change = &w->change };
	struct vfs_node *n;
	int rc;

	do
		rc = vfs_create(&c->current.ctx, c->current.node, a->name.bytes, a->name.len, &cr,
				&n);
	while (nfs4_await(c, rc));
	if (rc != 0)
		return nfs4_status(c->minor, rc);
	nfs4_open_set_found(c, w, n);
	w->made = cr.made;
	w->granted = true;
	w->attrs_set = true;
	w->sync_name = true;
	w->attrset = a->attrs.given;
	if (exclusive)
		nfs4_add_verifier_attrs(&w->attrset);
	return nfs4_status(c->minor, rc);
}

static int find_or_create(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_open_args *a = w->args;
	int status = NFS4ERR_DELAY;

	if (!a->create)
		return nfs4_open_look_up(c, w);
	for (int i = 0; i < RACES; i++) {
		status = a->how == NFS4_UNCHECKED ? nfs4_open_look_up(c, w) : NFS4ERR_NOENT;
		if (status != NFS4ERR_NOENT)
			return status;
		rpc_move(c->req); /* to create waits for the disk */
		status = nfs4_open_create(c, w);
		if (status != NFS4ERR_EXIST || a->how != NFS4_UNCHECKED)
			return status;
	}
	return status;
}

/* The directory, which this call has not changed: it is the same before and after. */
static int unchanged(struct nfs4_compound *c, struct nfs4_opening *w)
{
	struct vfs_attr *attr = &w->change.before;
	int status;

	if (c->current.kind == NFS4_PSEUDO)
		status = nfs4_pseudo_attr(c, &c->current, attr);
	else
		status = nfs4_status(c->minor, vfs_getattr(&c->current.ctx, c->current.node, attr));
	w->change.known = w->change.atomic = status == NFS4_OK;
	w->change.after = *attr;
	return status;
}

static int check_attrs(struct nfs4_compound *c, struct nfs4_opening *w)
{
	struct nfs4_open_args *a = w->args;

	if (!a->create || a->how == NFS4_EXCLUSIVE)
		return NFS4_OK;
	return nfs4_sattr_check(
		c, &a->attrs, a->how == NFS4_EXCLUSIVE_1 ? NFS4_SATTR_EXCLUSIVE : NFS4_SATTR_OPEN);
}

static int nfs4_open_by_name(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_open_args *a = w->args;
	unsigned need = NFS4_NEED_DIR;
	int status;

	if (c->current.kind != NFS4_PSEUDO)
		need |= NFS4_NEED_FILE;
	status = nfs4_need(c, &c->current, need);
	if (status == NFS4_OK)
		status = nfs4_name_check(&a->name);
	if (status == NFS4_OK)
		status = check_attrs(c, w);
	if (status != NFS4_OK)
		return status;
	w->by_name = true;
	status = c->current.kind == NFS4_PSEUDO ? find_in_pseudo(c, w) : find_or_create(c, w);
	return status == NFS4_OK && !w->made ? unchanged(c, w) : status;
}

/* True if the client, by what it says, has had the file open already. */
static bool had_it_open(const struct nfs4_opening *w)
{
	return w->args->claim == NFS4_CLAIM_PREVIOUS ||
	       (nfs4_claims_delegated(w->args) &&
		(w->wrote_delegated || !(w->access & VFS_SHARE_WRITE)));
}

/* Checks the access. A client that reclaims, or that has opened the file by itself under its
 * delegation, had it open already: the file's owner may open it again, whatever the mode is now. */
static int nfs4_open_check_access(struct nfs4_compound *c, struct nfs4_opening *w,
				  struct nfs4_object *p)
{
	const unsigned want = nfs4_open_rights(w);
	struct vfs_attr attr;
	int rc;

	if (w->granted)
		return NFS4_OK;
	if (w->found)
		rc = vfs_open_check_found(&p->ctx, p->node, want);
	else
		rc = vfs_open_check(&p->ctx, p->node, want);
	if (rc == -EACCES && had_it_open(w) && vfs_getattr(&p->ctx, p->node, &attr) == 0 &&
	    attr.uid == p->ctx.cred.uid)
		rc = 0;
	return nfs4_status(c->minor, rc);
}

/*
 * Checks the right to deny access. Denying access keeps out those who may write. So it requires
 * write permission on the file and a writable export; the file's owner, who could change the mode,
 * may also do it. The kernel's server requires that for DENY_READ, and nothing for DENY_WRITE, so
 * any reader could stop the writers there.
 */
static int check_deny(struct nfs4_compound *c, struct nfs4_opening *w, struct nfs4_object *p)
{
	/* Write access has been checked already. */
	if (w->deny == 0 || w->granted || (w->access & VFS_SHARE_WRITE))
		return NFS4_OK;
	return nfs4_status(c->minor, vfs_may_write(&p->ctx, p->node));
}

/*
 * The delegation that the client claims the file by. It may have been recalled. Nothing else depends
 * on it: permission and shares are checked as for any OPEN. So the access may go beyond that of the
 * delegation. Linux's client claims all modes that a file is open with, when it returns a
 * delegation to read (nfs4_open_recover() in fs/nfs/nfs4proc.c, as of 6.12).
 */
static int check_delegation(struct nfs4_compound *c, struct nfs4_opening *w, struct nfs4_object *p)
{
	struct nfs4_state *st;
	int status;

	if (!nfs4_claims_delegated(w->args))
		return NFS4_OK;
	status = nfs4_state_get(c, p, &w->args->delegate_sid, NFS4_STATE_DELEG, &st);
	if (status != NFS4_OK)
		return status;
	w->wrote_delegated = nfs4_as_deleg(st)->vfs.type == VFS_DELEG_WRITE;
	nfs4_state_unref(st);
	return NFS4_OK;
}

struct nfs4_deleg_request nfs4_open_wants(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_open_args *a = w->args;
	struct nfs4_deleg_request r = {
		.object = nfs4_opened_object(c, w),
		.want = a->access & (OPEN4_SHARE_ACCESS_WANT_DELEG_MASK | NFS4_WANT_LATER),
		.access = w->access,
		.reclaim = a->claim == NFS4_CLAIM_PREVIOUS,
		.reclaimed = a->delegate_type,
	};

	if (w->found) {
		r.dir = &c->current;
		r.name = a->name.bytes;
		r.name_len = a->name.len;
	}
	return r;
}

/* True if an event thread's worker leaves the OPEN to another: the rest waits. */
static bool nfs4_open_is_long(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_deleg_request r = nfs4_open_wants(c, w);

	return w->truncate || nfs4_deleg_is_possible(c, &r);
}

int nfs4_open_file(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_open_args *a = w->args;
	struct nfs4_object *p;
	int status;

	if (a->claim == NFS4_CLAIM_NULL || a->claim == NFS4_CLAIM_DELEGATE_CUR)
		status = nfs4_open_by_name(c, w);
	else
		status = nfs4_need(c, &c->current, NFS4_NEED_FILE);
	p = nfs4_opened_object(c, w);
	if (status == NFS4_OK)
		status = nfs4_open_check_type(p->type);
	if (status == NFS4_OK)
		status = check_delegation(c, w, p);
	if (status == NFS4_OK)
		status = nfs4_open_check_access(c, w, p);
	if (status == NFS4_OK)
		status = check_deny(c, w, p);
	if (status != NFS4_OK)
		return status;
	w->truncate = a->create && !w->attrs_set && a->attrs.set.set_size && a->attrs.set.size == 0;
	if (rpc_on_event_thread(c->req) && nfs4_open_is_long(c, w))
		rpc_move(c->req);
	return NFS4_OK;
}
