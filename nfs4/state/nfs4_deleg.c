/* SPDX-License-Identifier: BSD-2-Clause */
/* A delegation as a state of its client: the lists that it is in, and its end. */
#include "nfs4/state/nfs4_deleg.h"

#include <stdlib.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"

void nfs4_recalls_init(struct nfs4_recall_queue *rs)
{
	TAILQ_INIT(&rs->all);
	TAILQ_INIT(&rs->due);
}

void nfs4_deleg_account_init(struct nfs4_deleg_account *a)
{
	TAILQ_INIT(&a->order);
	a->asked.keep = NFS4_DELEG_KEEP_ALL;
	atomic_init(&a->keep, NFS4_DELEG_KEEP_ALL);
}

void nfs4_deleg_used(struct nfs4_deleg *d)
{
	atomic_store_explicit(&d->used, true, memory_order_relaxed);
}

void nfs4_dir_notify_free(struct nfs4_deleg *d)
{
	struct nfs4_dir_notify *n = d->dir_notify;

	if (!n)
		return;
	if (n->queue)
		nfs4_state_discharge(d->st.client, NFS4_DIR_NOTIFY_QUEUE);
	nfs4_state_discharge(d->st.client, sizeof(*n));
	free(n->queue);
	free(n);
}

/* The functions below, down to the next comment, need the client's lock. */

/* The functions below, down to the next comment, need the client's lock. */

static void recall_list_client(struct nfs4_client *cl, bool listed)
{
	struct nfs4_recall_list *list = cl->srv->recalls;
	struct nfs4_recall_queue *rs = &cl->holdings->recalls;

	pthread_mutex_lock(&list->lock);
	if (listed && !rs->listed) {
		rs->client = cl;
		rs->round = list->round;
		TAILQ_INSERT_TAIL(&list->clients, rs, link);
	} else if (!listed && rs->listed) {
		TAILQ_REMOVE(&list->clients, rs, link);
	}
	rs->listed = listed;
	pthread_mutex_unlock(&list->lock);
}

void nfs4_recall_enqueue(struct nfs4_deleg *d)
{
	struct nfs4_client *cl = d->st.client;
	struct nfs4_recall_queue *rs = &cl->holdings->recalls;

	d->recalled_at = nfs4_clients_now(cl->srv);
	d->call_at = d->recalled_at;
	d->queued = d->due = true;
	TAILQ_INSERT_TAIL(&rs->all, d, recall_link);
	TAILQ_INSERT_HEAD(&rs->due, d, due_link); /* before those that are told again */
	recall_list_client(cl, true);
}

static void nfs4_recall_dequeue(struct nfs4_deleg *d)
{
	struct nfs4_client *cl = d->st.client;
	struct nfs4_recall_queue *rs = &cl->holdings->recalls;

	if (!d->queued)
		return;
	d->queued = false;
	TAILQ_REMOVE(&rs->all, d, recall_link);
	if (d->due)
		TAILQ_REMOVE(&rs->due, d, due_link);
	d->due = false;
	if (TAILQ_EMPTY(&rs->all))
		recall_list_client(cl, false);
}

/* The functions below, down to the next comment, need the client's lock. */

static void nfs4_deleg_list_client(struct nfs4_client *cl, bool listed)
{
	struct nfs4_deleg_holders *h = cl->srv->deleg_holders;
	struct nfs4_deleg_account *a = &cl->holdings->deleg_account;

	pthread_mutex_lock(&h->lock);
	if (listed)
		TAILQ_INSERT_TAIL(&h->clients, a, link);
	else
		TAILQ_REMOVE(&h->clients, a, link);
	pthread_mutex_unlock(&h->lock);
}

static void ask_for_nothing(struct nfs4_deleg_account *a)
{
	a->asked.keep = NFS4_DELEG_KEEP_ALL;
	atomic_store(&a->keep, NFS4_DELEG_KEEP_ALL);
	atomic_store(&a->refused, false);
}

void nfs4_deleg_count(struct nfs4_deleg *d)
{
	struct nfs4_client *cl = d->st.client;
	struct nfs4_deleg_holders *h = cl->srv->deleg_holders;
	struct nfs4_deleg_account *a = &cl->holdings->deleg_account;
	const uint32_t n = atomic_fetch_add(&a->n, 1) + 1;

	TAILQ_INSERT_TAIL(&a->order, d, order_link);
	d->ordered = true;
	atomic_fetch_add(&h->given, 1);
	atomic_fetch_add(&a->leased, d->vfs.leased ? 1 : 0);
	a->types |= d->type;
	if (n == 1) {
		a->client = cl;
		a->types = d->type;
		nfs4_deleg_list_client(cl, true);
	}
}

static void nfs4_deleg_unlist(struct nfs4_deleg *d)
{
	struct nfs4_deleg_account *a = &d->st.client->holdings->deleg_account;
	const uint32_t n = atomic_fetch_sub(&a->n, 1) - 1;

	TAILQ_REMOVE(&a->order, d, order_link);
	d->ordered = false;
	atomic_fetch_sub(&a->leased, d->vfs.leased ? 1 : 0);
	if (n <= a->asked.keep && a->asked.keep != NFS4_DELEG_KEEP_ALL)
		ask_for_nothing(a);
	if (n == 0)
		nfs4_deleg_list_client(d->st.client, false);
}

void nfs4_deleg_count_recalled(struct nfs4_deleg *d)
{
	nfs4_deleg_unlist(d);
	d->recalling = true;
	atomic_fetch_add(&d->st.client->srv->deleg_holders->recalling, 1);
}

static void nfs4_deleg_uncount(struct nfs4_deleg *d)
{
	struct nfs4_deleg_holders *h = d->st.client->srv->deleg_holders;

	if (d->ordered)
		nfs4_deleg_unlist(d);
	if (d->recalling)
		atomic_fetch_sub(&h->recalling, 1);
	d->recalling = false;
	atomic_fetch_sub(&h->given, 1);
}

/* The functions below are called without locks. */

unsigned nfs4_deleg_type(struct nfs4_client *cl, const struct vfs_file *f)
{
	struct nfs4_state *st;
	unsigned type;

	pthread_mutex_lock(&cl->lock);
	st = nfs4_state_by_file(cl, NULL, f);
	type = st ? nfs4_as_deleg(st)->vfs.type : 0;
	if (st) /* the client uses the file */
		nfs4_deleg_used(nfs4_as_deleg(st));
	pthread_mutex_unlock(&cl->lock);
	return type;
}

void nfs4_deleg_end(struct nfs4_deleg *d)
{
	struct nfs4_client *cl = d->st.client;
	bool mine, given;

	pthread_mutex_lock(&cl->lock);
	mine = !d->st.gone;
	given = d->given;
	d->given = false;
	if (given)
		nfs4_deleg_uncount(d);
	if (mine) {
		nfs4_recall_dequeue(d);
		nfs4_state_remove(cl, &d->st, false);
	}
	pthread_mutex_unlock(&cl->lock);
	if (given)
		vfs_deleg_end(&d->vfs);
	if (mine)
		nfs4_state_unref(&d->st); /* the tables' */
}

bool nfs4_deleg_revoke(struct nfs4_deleg *d, int status)
{
	struct nfs4_client *cl = d->st.client;
	bool mine, given;

	pthread_mutex_lock(&cl->lock);
	mine = !d->st.gone && !d->st.revoked;
	given = mine && d->given;
	if (mine) {
		d->given = false;
		if (given)
			nfs4_deleg_uncount(d);
		nfs4_recall_dequeue(d);
		nfs4_state_revoke(cl, &d->st, status);
	}
	pthread_mutex_unlock(&cl->lock);
	if (given)
		vfs_deleg_end(&d->vfs);
	return mine;
}
