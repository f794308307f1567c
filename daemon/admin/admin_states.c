/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/opens, /v1/locks, /v1/delegations, /v1/layouts: a page of what clients hold. ringnfsctl(8) describes the answers. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/admin_query.h"
#include "daemon/admin/control_private.h"
#include "daemon/admin/state_rows.h"
#include "rpc/client.h"

#define LIMIT_USUAL 1000u
#define LIMIT_MOST 5000u
/* Bounds on the entries that one request looks at: other peers of the socket wait meanwhile, and a filter may pass over
 * most of them. */
#define PIECES 100u
#define STEPS 20000u

static const char *const names[] = {
	[NFS4_VIEW_OPENS] = "opens",
	[NFS4_VIEW_LOCKS] = "locks",
	[NFS4_VIEW_DELEGATIONS] = "delegations",
	[NFS4_VIEW_LAYOUTS] = "layouts",
};

static bool states_add_row(struct state_page *p, json_t *row, uint32_t export_id,
			   const struct vfs_fh *fh)
{
	struct vfs_export *exp = row ? state_filter_export(&p->filter, export_id) : NULL;

	if (exp && json_is_null(json_object_get(row, "path")))
		path_search_add(p->searchers, &p->search, row, exp, fh);
	if (row)
		json_array_append_new(p->rows, row);
	return json_array_size(p->rows) < p->limit;
}

static bool show4(void *arg, const struct nfs4_view_state *st)
{
	struct state_page *p = arg;

	return states_add_row(p, state_row4(&p->filter, p->kind, st), st->export_id, &st->fh);
}

static bool show3(void *arg, const struct nlm_view_owner *o)
{
	struct state_page *p = arg;

	return states_add_row(p, state_row3(&p->filter, o), o->export_id, &o->fh);
}

/* Fills the page. True: nothing is left. */
static bool states_fill_page(struct state_page *p, const struct control_sources *from)
{
	const struct nfs4_view_query q = {
		.kind = p->kind,
		.clientid = p->filter.clientid,
		.show = show4,
		.arg = p,
	};
	const bool nfs4 = from->parts.nfs4 && (!p->filter.by_client || p->filter.clientid != 0);

	if (!p->nlm && nfs4 && !nfs4_view(from->parts.nfs4, &q, &p->at4, PIECES))
		return false;
	p->nlm = true;
	if (p->kind != NFS4_VIEW_LOCKS || !from->nfs3 || p->filter.clientid != 0)
		return true;
	return json_array_size(p->rows) < p->limit &&
	       nlm_view(from->nfs3, &p->at3, STEPS, show3, p);
}

static json_t *place_text(const struct state_page *p)
{
	char text[64];

	if (p->nlm)
		snprintf(text, sizeof(text), "n%" PRIx32 ".%" PRIx64, p->at3.bucket, p->at3.id);
	else
		snprintf(text, sizeof(text), "%" PRIx32 ".%" PRIx32, p->at4.client, p->at4.entry);
	return json_string(text);
}

static bool parse_place(struct state_page *p, const char *text)
{
	int len = -1;

	p->nlm = text[0] == 'n';
	if (p->nlm)
		sscanf(text + 1, "%8" SCNx32 ".%16" SCNx64 "%n", &p->at3.bucket, &p->at3.id, &len);
	else
		sscanf(text, "%8" SCNx32 ".%8" SCNx32 "%n", &p->at4.client, &p->at4.entry, &len);
	return len >= 0 && text[len + p->nlm] == '\0';
}

/* False: r has an error. */
static bool states_parse_query(struct state_page *p, const struct control *c,
			       const struct admin_request *req, struct admin_reply *r)
{
	char after[64];
	int rc = admin_query_number(req, "limit", LIMIT_MOST, &p->limit);

	if ((rc && rc != -ENOENT) || p->limit == 0) {
		admin_reply_error(r, 400, "bad_request", "limit: a number from 1 to %u is expected",
				  LIMIT_MOST);
		return false;
	}
	rc = admin_query_text(req, "after", after, sizeof(after));
	if (rc != -ENOENT && (rc || !parse_place(p, after))) {
		admin_reply_error(r, 400, "bad_request",
				  "after: that member of the page before is expected");
		return false;
	}
	return state_filter_init(&p->filter, &c->from.view, req, r);
}

/* True if nothing is found because the address is that of no NFSv3 client; r then has the answer. */
static bool is_mistaken(const struct state_page *p, const struct control *c, struct admin_reply *r)
{
	struct sockaddr_storage peer;
	struct rpc_usage_view usage;

	if (!p->filter.by_client || p->filter.clientid || !p->all || json_array_size(p->rows) > 0 ||
	    !endpoint_read_address(p->filter.client, &peer) ||
	    rpc_usage_find(c->from.clients, &peer, &usage))
		return false;
	admin_reply_error(r, 404, "not_found",
			  "there is no NFSv3 client %s; one of NFSv4 is named by its id",
			  p->filter.client);
	return true;
}

bool state_page_init(struct state_page *p, const struct control *c, const struct admin_request *req,
		     struct admin_reply *r)
{
	p->limit = LIMIT_USUAL;
	p->searchers = c->searchers;
	if (!states_parse_query(p, c, req, r))
		return false;
	const bool first = !p->nlm && !p->at4.client && !p->at4.entry;

	if (first && p->filter.clientid && !control_has_client(c, p->filter.clientid, r))
		return false;
	p->rows = json_array();
	p->all = states_fill_page(p, &c->from);
	return !first || !is_mistaken(p, c, r);
}

void state_page_answer(struct state_page *p, const struct admin_request *req, struct admin_reply *r)
{
	json_t *reply = json_object();

	json_object_set_new(reply, names[p->kind], p->rows);
	p->rows = NULL;
	if (!p->all)
		json_object_set_new(reply, "after", place_text(p));
	if (p->search)
		path_search_answer(p->search, req, r, reply);
	else
		admin_reply_json(r, reply);
	p->search = NULL;
}

void state_page_done(struct state_page *p)
{
	path_search_free(p->search);
	json_decref(p->rows);
	state_filter_done(&p->filter);
}

static void states_answer(const struct control *c, const struct admin_request *req,
			  struct admin_reply *r, enum nfs4_view_kind kind)
{
	struct state_page p = { .kind = kind };

	if (state_page_init(&p, c, req, r))
		state_page_answer(&p, req, r);
	state_page_done(&p);
}

void control_opens(void *control, const struct admin_request *req, struct admin_reply *r)
{
	states_answer(control, req, r, NFS4_VIEW_OPENS);
}

void control_locks(void *control, const struct admin_request *req, struct admin_reply *r)
{
	states_answer(control, req, r, NFS4_VIEW_LOCKS);
}

void control_delegations(void *control, const struct admin_request *req, struct admin_reply *r)
{
	states_answer(control, req, r, NFS4_VIEW_DELEGATIONS);
}

void control_layouts(void *control, const struct admin_request *req, struct admin_reply *r)
{
	states_answer(control, req, r, NFS4_VIEW_LAYOUTS);
}
