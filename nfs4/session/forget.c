/* SPDX-License-Identifier: BSD-2-Clause */
/* Destruction of clients that have left the tables. */
#include "nfs4/session/forget.h"

#include "nfs4/client/cb_conn.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/session.h"
#include "nfs4/state/holdings.h"

static void drop_sessions(struct nfs4_client *cl)
{
	struct nfs4_session *s;

	do {
		pthread_mutex_lock(&cl->lock);
		s = LIST_FIRST(&cl->session_list);
		if (s)
			nfs4_session_leave(s);
		pthread_mutex_unlock(&cl->lock);
		nfs4_session_put(s);
	} while (s);
}

void nfs4_client_destroy(struct nfs4_client *cl)
{
	if (!cl)
		return;
	drop_sessions(cl);
	nfs4_cb_conn_drop(cl);
	nfs4_holdings_drop(cl);
	nfs4_client_put(cl);
}

void nfs4_client_forget(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status)
{
	bool mine;

	pthread_mutex_lock(&all->lock);
	mine = nfs4_client_status(cl) == status;
	if (mine)
		nfs4_client_detach(all, cl);
	pthread_mutex_unlock(&all->lock);
	if (mine)
		nfs4_client_destroy(cl);
	nfs4_client_put(cl);
}

void nfs4_clients_forget(struct nfs4_server *srv, struct nfs4_client_queue *old)
{
	struct nfs4_client *cl;

	while ((cl = TAILQ_FIRST(old)) != NULL) {
		TAILQ_REMOVE(old, cl, aging);
		/* An unconfirmed client has no record; a record of its owner belongs to another
		 * client. */
		if (cl->was_confirmed)
			nfs4_record_forget(srv, &cl->record);
		nfs4_client_destroy(cl);
	}
}
