/* SPDX-License-Identifier: BSD-2-Clause */
/* A page of what clients hold, as a request asks for it. */
#ifndef RN_DAEMON_ADMIN_STATE_PAGE_H
#define RN_DAEMON_ADMIN_STATE_PAGE_H

#include "daemon/admin/control_private.h"
#include "daemon/admin/admin_path_search.h"
#include "daemon/admin/state_filter.h"
#include "nfs3/nlm/nlm_view.h"
#include "nfs4/nfs4_view.h"

struct state_page {
	enum nfs4_view_kind kind; /* set before state_page_init(); all else is zeroed */
	struct state_filter filter;
	json_t *rows;
	bool all; /* nothing is left behind the page */
	uint64_t limit;
	/* The place to go on from: in the tables of NFSv4, then in those of NLM. */
	bool nlm;
	struct nfs4_view_place at4;
	struct nlm_view_place at3;
	struct path_searchers *searchers;
	struct path_search *search; /* of rows without a path; NULL: there are none */
};

/* Reads the query, and fills rows. False: r has an error. state_page_done() follows in each case. */
bool state_page_init(struct state_page *p, const struct control *c, const struct admin_request *req,
		     struct admin_reply *r);
/* Answers with the rows, and where the next page begins, at once or later. */
void state_page_answer(struct state_page *p, const struct admin_request *req,
		       struct admin_reply *r);
void state_page_done(struct state_page *p);

#endif
