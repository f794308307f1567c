/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations of directories: what their holders are told by CB_NOTIFY, and GET_DIR_DELEGATION. */
#include "nfs4/deleg/delegations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/deleg/grant.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/stateid_check.h"

/* Bytes of changes in a call, below which a client or a connection is not worth the calls. Attributes of a
 * directory fit. */
#define ROOM_LEAST 128u

/* Longest time that attributes wait. A client that asks for more is told earlier. */
#define DELAY_MAX 60u

struct nfs4_dir_notify_list {
	pthread_mutex_t lock; /* a leaf; taken under the locks of clients */
	TAILQ_HEAD(, nfs4_dir_notify) waiting;
	uint32_t count;
};

int nfs4_dir_notify_list_new(struct nfs4_server *srv)
{
	struct nfs4_dir_notify_list *list = calloc(1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	pthread_mutex_init(&list->lock, NULL);
	TAILQ_INIT(&list->waiting);
	srv->dir_notifies = list;
	return 0;
}

/* Takes the first that waits, with its reference, or NULL. */
static struct nfs4_deleg *nfs4_dir_notify_take_first(struct nfs4_dir_notify_list *list)
{
	struct nfs4_dir_notify *n;

	pthread_mutex_lock(&list->lock);
	n = TAILQ_FIRST(&list->waiting);
	if (n) {
		TAILQ_REMOVE(&list->waiting, n, link);
		list->count--;
		n->listed = false;
	}
	pthread_mutex_unlock(&list->lock);
	return n ? n->deleg : NULL;
}

void nfs4_dir_notify_list_free(struct nfs4_dir_notify_list *list)
{
	struct nfs4_deleg *d;

	if (!list)
		return;
	while ((d = nfs4_dir_notify_take_first(list)) != NULL)
		nfs4_state_unref(&d->st);
	pthread_mutex_destroy(&list->lock);
	free(list);
}

bool nfs4_dir_notify_new(struct nfs4_deleg *d, const struct nfs4_dir_notify_wish *wish)
{
	struct nfs4_dir_notify *n;

	if (!nfs4_state_charge(d->st.client, sizeof(*n)))
		return false;
	n = calloc(1, sizeof(*n));
	if (!n) {
		nfs4_state_discharge(d->st.client, sizeof(*n));
		return false;
	}
	n->attrs = wish->attrs;
	n->delay = wish->delay;
	n->room = NFS4_NOTIFY_BATCH;
	n->deleg = d;
	d->dir_notify = n;
	atomic_store(&d->vfs.notify_kinds, wish->kinds);
	return true;
}

/* The functions below, down to the next comment, need the client's lock. */

/* Adds it to those that nfs4_dir_notify_tick() looks at. */
static void wait_for_time(struct nfs4_deleg *d)
{
	struct nfs4_dir_notify_list *list = d->st.client->srv->dir_notifies;
	struct nfs4_dir_notify *n = d->dir_notify;

	pthread_mutex_lock(&list->lock);
	if (!n->listed) {
		n->listed = true;
		nfs4_state_ref(&d->st);
		TAILQ_INSERT_TAIL(&list->waiting, n, link);
		list->count++;
	}
	pthread_mutex_unlock(&list->lock);
}

static bool make_queue(struct nfs4_deleg *d)
{
	struct nfs4_dir_notify *n = d->dir_notify;

	if (n->queue)
		return true;
	if (!nfs4_state_charge(d->st.client, NFS4_DIR_NOTIFY_QUEUE))
		return false;
	n->queue = malloc(NFS4_DIR_NOTIFY_QUEUE);
	if (!n->queue)
		nfs4_state_discharge(d->st.client, NFS4_DIR_NOTIFY_QUEUE);
	return n->queue;
}

bool nfs4_dir_notify_resume(struct nfs4_deleg *d, const uint8_t *changes, uint32_t len,
			    uint32_t room)
{
	struct nfs4_dir_notify *n = d->dir_notify;

	n->room = room;
	if (len == 0)
		return true;
	if (!make_queue(d))
		return false;
	memcpy(n->queue, changes, len);
	n->used = len;
	return true;
}

static void drop_queue(struct nfs4_deleg *d)
{
	struct nfs4_dir_notify *n = d->dir_notify;

	if (n->queue)
		nfs4_state_discharge(d->st.client, NFS4_DIR_NOTIFY_QUEUE);
	free(n->queue);
	n->queue = NULL;
	n->used = 0;
	n->has_dir = false;
}

/* Handles of other exports are none of the holder's. */
static struct vfs_dir_notification for_holder(const struct nfs4_deleg *d,
					      const struct vfs_dir_notification *notification)
{
	struct vfs_dir_notification mine = *notification;

	if (notification->export_id != d->export_id)
		mine.attr = NULL;
	return mine;
}

/* False: no room. */
static bool add_entry(struct nfs4_deleg *d, const struct vfs_dir_notification *notification)
{
	const struct vfs_dir_notification mine = for_holder(d, notification);
	struct nfs4_dir_notify *n = d->dir_notify;
	struct xdr_out x;

	if (!make_queue(d))
		return false;
	xdr_out_init(&x, n->queue + n->used, NFS4_DIR_NOTIFY_QUEUE - n->used);
	nfs4_put_entry_notification(&n->attrs, &mine, &x);
	if (x.overflow)
		return false;
	n->used += (uint32_t)x.used;
	return true;
}

static void nfs4_dir_notify_add_dir(struct nfs4_deleg *d, const struct vfs_attr *attr)
{
	struct nfs4_dir_notify *n = d->dir_notify;

	if (!n->has_dir)
		n->dir_at = nfs4_clients_now(d->st.client->srv) + n->delay;
	n->has_dir = true;
	n->dir = *attr;
}

/* False: the client cannot be told of it. */
static bool nfs4_dir_notify_add(struct nfs4_deleg *d,
				const struct vfs_dir_notification *notification)
{
	if (notification->what == VFS_NOTIFY_ATTRS && !notification->dir)
		return false;
	if (notification->what != VFS_NOTIFY_ATTRS && !add_entry(d, notification))
		return false;
	if (notification->dir && (atomic_load(&d->vfs.notify_kinds) & VFS_NOTIFY_ATTRS))
		nfs4_dir_notify_add_dir(d, notification->dir);
	return true;
}

/* Puts the directory's attributes behind the changes, all of which are in the call. If it has no
 * room they go with the next. */
static void put_dir(struct nfs4_deleg *d)
{
	struct nfs4_dir_notify *n = d->dir_notify;
	struct xdr_out x;

	xdr_out_init(&x, n->call.changes + n->call.len, n->room - n->call.len);
	nfs4_put_dir_notification(&n->attrs, &n->dir, &x);
	if (x.overflow)
		return;
	n->call.len += (uint32_t)x.used;
	n->call.count++;
	n->with_dir = true;
	n->has_dir = false;
}

/* Copies as many changes into the call as one may have. One that is longer than that goes alone. */
static void nfs4_dir_notify_fill_call(struct nfs4_deleg *d)
{
	struct nfs4_dir_notify *n = d->dir_notify;
	struct nfs4_notify *call = &n->call;
	uint32_t size;

	call->len = call->count = 0;
	n->with_dir = false;
	while (call->len < n->used) {
		size = nfs4_dir_notify_size(n->queue + call->len);
		if (call->count > 0 && call->len + size > n->room)
			break;
		call->len += size;
		call->count++;
	}
	n->queued = call->len;
	if (n->queue)
		memcpy(call->changes, n->queue, call->len);
	if (n->has_dir && call->len == n->used && call->len < n->room)
		put_dir(d);
}

/* True if the call is to be made now. */
static bool nfs4_dir_notify_prepare_call(struct nfs4_deleg *d, bool returns)
{
	struct nfs4_dir_notify *n = d->dir_notify;
	const uint64_t now = nfs4_clients_now(d->st.client->srv);

	if (!d->given || d->queued || n->over || n->calling || (n->used == 0 && !n->has_dir))
		return false;
	if (returns || now < n->again_at || (n->used == 0 && now < n->dir_at)) {
		wait_for_time(d);
		return false;
	}
	nfs4_dir_notify_fill_call(d);
	if (n->call.count == 0)
		return false;
	n->calling = true;
	nfs4_state_ref(&d->st);
	nfs4_state_stateid(&d->st, &n->call.stateid);
	return true;
}

/* The client has taken what the call had. */
static void taken(struct nfs4_dir_notify *n)
{
	/* The queue was dropped if the delegation has been recalled meanwhile. */
	if (n->used >= n->queued) {
		n->used -= n->queued;
		if (n->queue)
			memmove(n->queue, n->queue + n->queued, n->used);
	}
	n->tries = 0;
}

/* True if the client may take the same changes later: it is busy, or has not read the reply to its
 * GET_DIR_DELEGATION yet. */
static bool is_passing(int rc, uint32_t status)
{
	if (rc != 0)
		return rc == -RN_ELATER || rc == -ENOMEM;
	return status == NFS4ERR_DELAY || status == NFS4ERR_BAD_STATEID ||
	       status == NFS4ERR_BADHANDLE;
}

/* The end of a call. False: the client cannot be told. */
static bool note_end(struct nfs4_deleg *d, int rc, uint32_t status)
{
	struct nfs4_dir_notify *n = d->dir_notify;

	n->calling = false;
	if (rc == 0 && status == NFS4_OK) {
		taken(n);
		return true;
	}
	n->has_dir = n->has_dir || n->with_dir;
	if (rc == -EMSGSIZE && n->call.count > 1 && n->call.len / 2 >= ROOM_LEAST) {
		n->room = n->call.len / 2;
		return true;
	}
	if (!is_passing(rc, status) || ++n->tries >= NFS4_DIR_NOTIFY_TRIES)
		return false;
	n->again_at = nfs4_clients_now(d->st.client->srv) + 1;
	return true;
}

/* From now on changes recall the delegation. */
static void nfs4_dir_notify_give_up(struct nfs4_deleg *d)
{
	d->dir_notify->over = true;
	atomic_store(&d->vfs.notify_kinds, 0);
	drop_queue(d);
}

/* The functions below are called without locks. */

static void nfs4_dir_notify_call_ended(struct nfs4_notify *call, int rc, uint32_t status);

/* Sends what can be sent. The caller holds a reference. */
static void nfs4_dir_notify_pump(struct nfs4_deleg *d)
{
	struct nfs4_client *cl = d->st.client;
	const bool returns = nfs4_cb_returns(cl);
	bool ready;

	pthread_mutex_lock(&cl->lock);
	ready = nfs4_dir_notify_prepare_call(d, returns);
	pthread_mutex_unlock(&cl->lock);
	if (!ready)
		return;
	d->dir_notify->call.fh = d->fh;
	d->dir_notify->call.fh_len = d->fh_len;
	d->dir_notify->call.ended = nfs4_dir_notify_call_ended;
	d->dir_notify->call.cb.referring = &d->giver;
	nfs4_notify_tell(cl, &d->dir_notify->call);
}

/* Sends the next notifications, or recalls the delegation that was given up. Not under the client's lock. */
static void nfs4_dir_notify_go_on(struct nfs4_deleg *d, bool good)
{
	if (good)
		nfs4_dir_notify_pump(d);
	else
		nfs4_recall_own(d);
}

static void nfs4_dir_notify_call_ended(struct nfs4_notify *call, int rc, uint32_t status)
{
	struct nfs4_deleg *d = rn_container_of(call, struct nfs4_dir_notify, call)->deleg;
	struct nfs4_client *cl = d->st.client;
	bool good;

	pthread_mutex_lock(&cl->lock);
	good = note_end(d, rc, status);
	if (!good)
		nfs4_dir_notify_give_up(d);
	pthread_mutex_unlock(&cl->lock);
	nfs4_dir_notify_go_on(d, good);
	nfs4_state_unref(&d->st);
}

/* d stays while this runs: vfs_deleg_end() waits for it. A client that does not know the delegation yet does not
 * get it (nfs4_deleg_add). */
void nfs4_dir_notify_told(struct vfs_deleg *v, const struct vfs_dir_notification *notification)
{
	struct nfs4_deleg *d = rn_container_of(v, struct nfs4_deleg, vfs);
	struct nfs4_client *cl = d->st.client;
	bool good = false;

	pthread_mutex_lock(&cl->lock);
	if (d->given)
		good = d->queued || d->dir_notify->over || nfs4_dir_notify_add(d, notification);
	if (!good)
		nfs4_dir_notify_give_up(d);
	pthread_mutex_unlock(&cl->lock);
	nfs4_dir_notify_go_on(d, good);
}

void nfs4_dir_notify_go(struct nfs4_deleg *d, const struct vfs_attr *dir, uint64_t seconds)
{
	struct nfs4_dir_notify *n = d->dir_notify;
	struct nfs4_client *cl = d->st.client;

	pthread_mutex_lock(&cl->lock);
	if (dir) {
		n->has_dir = true;
		n->dir = *dir;
		n->dir_at = nfs4_clients_now(cl->srv) + rn_min(seconds, DELAY_MAX);
	}
	if (n->used > 0 || n->has_dir)
		wait_for_time(d);
	pthread_mutex_unlock(&cl->lock);
}

void nfs4_dir_notify_tick(struct nfs4_server *srv)
{
	struct nfs4_dir_notify_list *list = srv->dir_notifies;
	struct nfs4_deleg *d;
	uint32_t left;

	pthread_mutex_lock(&list->lock);
	left = list->count; /* those whose time has not come are added again behind them */
	pthread_mutex_unlock(&list->lock);
	for (; left > 0 && (d = nfs4_dir_notify_take_first(list)) != NULL; left--) {
		nfs4_dir_notify_pump(d);
		nfs4_state_unref(&d->st);
	}
}

/*
 * GET_DIR_DELEGATION (RFC 8881 sections 10.9 and 18.39). The delegation is recalled at the first change by
 * somebody else of which the client has not asked to be told. No wants are registered.
 *
 * Section 18.39.3 has NFS4ERR_DIRDELEG_UNAVAIL for a refusal, and GDD4_UNAVAIL for a client that has
 * the delegation already. But an error ends the COMPOUND, in which clients put the operation beside
 * others. So as in nfsd a refusal is GDD4_UNAVAIL, which the XDR allows, too; a want that is not
 * registered is the error.
 *
 * Of what the client asks to be told this is granted; doc/design/delegations.md says why.
 *
 *	NOTIFY4_ADD_ENTRY, _REMOVE_ENTRY, _RENAME_ENTRY
 *	NOTIFY4_CHANGE_DIR_ATTRS, if the attributes have change among them
 *	of entries: attributes that never change
 *	of the directory: attributes that its entries or SETATTR change, but none of permissions
 */

enum { GDD4_OK = 0, GDD4_UNAVAIL = 1 };

#define BITMAP_MAX (4u + 4u * NFS4_ATTR_WORDS)
/* status, cookie verifier, stateid, three bitmaps */
#define REPLY_MAX (4u + 8u + NFS4_STATEID_SIZE + 3u * BITMAP_MAX)

#define BIT(attr) (1u << (attr) % 32)
/* Attributes of an entry that stay the same for as long as it is there. */
static const uint32_t entry_attrs[NFS4_ATTR_WORDS] = { BIT(FATTR4_TYPE) | BIT(FATTR4_FSID) |
						       BIT(FATTR4_FILEHANDLE) |
						       BIT(FATTR4_FILEID) };
static const uint32_t dir_attrs[NFS4_ATTR_WORDS] = {
	BIT(FATTR4_CHANGE) | BIT(FATTR4_SIZE),
	BIT(FATTR4_NUMLINKS) | BIT(FATTR4_SPACE_USED) | BIT(FATTR4_TIME_METADATA) |
		BIT(FATTR4_TIME_MODIFY),
};

struct get_dir_args {
	bool wants;	    /* to be told when there is one */
	bool bad_delay;	    /* no valid nfstime4 */
	uint32_t types;	    /* bits of enum notify_type4 */
	uint64_t dir_delay; /* seconds */
	struct nfs4_notify_attrs attrs;
};

static uint64_t get_delay(struct xdr_in *x, struct get_dir_args *a)
{
	const int64_t seconds = (int64_t)xdr_get_u64(x);

	if (xdr_get_u32(x) >= 1000000000u)
		a->bad_delay = true;
	return seconds > 0 ? (uint64_t)seconds : 0;
}

/* Bits beyond the words are nothing that this server knows. */
static void get_bitmap(struct xdr_in *x, uint32_t *word, unsigned words)
{
	const size_t n = xdr_get_u32(x);

	for (unsigned i = 0; i < words; i++)
		word[i] = i < n ? xdr_get_u32(x) : 0;
	if (n > words)
		xdr_skip(x, 4 * (n - words));
}

static void decode_get_dir(struct nfs4_compound *c, void *args)
{
	struct get_dir_args *a = args;

	a->wants = xdr_get_bool(c->in);
	get_bitmap(c->in, &a->types, 1);
	get_delay(c->in, a); /* of attributes of entries, whose changes are not told */
	a->dir_delay = get_delay(c->in, a);
	get_bitmap(c->in, a->attrs.entry, NFS4_ATTR_WORDS);
	get_bitmap(c->in, a->attrs.dir, NFS4_ATTR_WORDS);
}

static int get_dir_check(struct nfs4_compound *c, const struct get_dir_args *a)
{
	struct nfs4_object *p = &c->current;
	unsigned granted;
	int status = nfs4_need(c, p, NFS4_NEED_DIR);

	if (status == NFS4_OK && a->bad_delay)
		status = NFS4ERR_INVAL;
	if (status != NFS4_OK || p->kind == NFS4_PSEUDO)
		return status;
	status = nfs4_status(c->minor, vfs_access(&p->ctx, p->node, VFS_MAY_READ, &granted, NULL));
	return status == NFS4_OK && !(granted & VFS_MAY_READ) ? NFS4ERR_ACCESS : status;
}

static bool asks(const struct get_dir_args *a, unsigned type)
{
	return a->types >> type & 1;
}

/* Keeps what can be told. True if there is anything. */
static bool get_dir_keep_supported(uint32_t *word, const uint32_t *supported)
{
	uint32_t all = 0;

	for (unsigned i = 0; i < NFS4_ATTR_WORDS; i++)
		all |= word[i] &= supported[i];
	return all != 0;
}

/*
 * Attributes that are told without change would leave the client unaware of changes that it must know of, such
 * as those of extended attributes.
 */
static struct nfs4_dir_notify_wish wish_of(const struct get_dir_args *a)
{
	struct nfs4_dir_notify_wish w = {
		.attrs = a->attrs,
		.delay = a->dir_delay < DELAY_MAX ? (uint32_t)a->dir_delay : DELAY_MAX,
	};

	if (asks(a, NOTIFY4_ADD_ENTRY))
		w.kinds |= VFS_NOTIFY_ADD;
	if (asks(a, NOTIFY4_REMOVE_ENTRY))
		w.kinds |= VFS_NOTIFY_REMOVE;
	if (asks(a, NOTIFY4_RENAME_ENTRY))
		w.kinds |= VFS_NOTIFY_RENAME;
	if (get_dir_keep_supported(w.attrs.entry, entry_attrs) &&
	    (w.kinds & (VFS_NOTIFY_ADD | VFS_NOTIFY_RENAME)))
		w.kinds |= VFS_NOTIFY_ENTRY;
	get_dir_keep_supported(w.attrs.dir, dir_attrs);
	if (asks(a, NOTIFY4_CHANGE_DIR_ATTRS) && (w.attrs.dir[0] & BIT(FATTR4_CHANGE)))
		w.kinds |= VFS_NOTIFY_ATTRS;
	return w;
}

/* 0 or -errno, as nfs4_deleg_give(). The pseudo file system changes with reloads alone, and has no
 * delegations. */
static int get_dir_give_deleg(struct nfs4_compound *c, struct nfs4_dir_notify_wish *notify,
			      struct nfs4_stateid *sid)
{
	const struct nfs4_deleg_request r = { .object = &c->current, .notify = notify };

	if (c->current.kind == NFS4_PSEUDO || !nfs4_deleg_is_available(c))
		return -RN_ENOTNOW;
	return nfs4_deleg_give(c, &r, sid);
}

static void put_bitmap(struct xdr_out *x, const uint32_t *word, unsigned words)
{
	while (words > 0 && word[words - 1] == 0)
		words--;
	xdr_put_u32(x, words);
	for (unsigned i = 0; i < words; i++)
		xdr_put_u32(x, word[i]);
}

static uint32_t types_of(unsigned kinds)
{
	return (kinds & VFS_NOTIFY_ADD ? BIT(NOTIFY4_ADD_ENTRY) : 0) |
	       (kinds & VFS_NOTIFY_REMOVE ? BIT(NOTIFY4_REMOVE_ENTRY) : 0) |
	       (kinds & VFS_NOTIFY_RENAME ? BIT(NOTIFY4_RENAME_ENTRY) : 0) |
	       (kinds & VFS_NOTIFY_ATTRS ? BIT(NOTIFY4_CHANGE_DIR_ATTRS) : 0);
}

static void get_dir_put_deleg(struct nfs4_compound *c, const struct nfs4_dir_notify_wish *notify,
			      const struct nfs4_stateid *sid)
{
	const uint32_t types = types_of(notify->kinds);
	struct xdr_out *x = c->out;

	xdr_put_u32(x, GDD4_OK);
	xdr_put_u64(x, 0); /* the cookie verifier of READDIR, which never changes */
	nfs4_put_stateid(x, sid);
	put_bitmap(x, &types, 1);
	put_bitmap(x, notify->attrs.entry, notify->kinds & VFS_NOTIFY_ENTRY ? NFS4_ATTR_WORDS : 0);
	put_bitmap(x, notify->attrs.dir, notify->kinds & VFS_NOTIFY_ATTRS ? NFS4_ATTR_WORDS : 0);
	nfs4_set_current_stateid(c, sid);
}

static int run_get_dir(struct nfs4_compound *c, void *args)
{
	const struct get_dir_args *a = args;
	struct nfs4_dir_notify_wish notify = wish_of(a);
	struct nfs4_stateid sid;
	int status = get_dir_check(c, a), rc;

	if (status != NFS4_OK)
		return status;
	rc = get_dir_give_deleg(c, &notify, &sid);
	if (rc == 0) {
		get_dir_put_deleg(c, &notify, &sid);
		return NFS4_OK;
	}
	if (a->wants && rc != -EALREADY)
		return NFS4ERR_DIRDELEG_UNAVAIL;
	xdr_put_u32(c->out, GDD4_UNAVAIL);
	xdr_put_bool(c->out, false); /* the client will not be told when there is one */
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_get_dir_delegation = {
	.name = "GET_DIR_DELEGATION",
	.minors = { 1, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = REPLY_MAX,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL | NFS4_E_NOTDIR |
			      NFS4_E_NOTSUPP),
	.args_size = sizeof(struct get_dir_args),
	.decode = decode_get_dir,
	.run = run_get_dir,
};
