/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, locks and delegations that a request is about: the parameters file, handle, device, client, export and id of
 * its query. */
#ifndef RN_DAEMON_ADMIN_STATE_ROWS_H
#define RN_DAEMON_ADMIN_STATE_ROWS_H

#include <jansson.h>

#include "admin/admin.h"
#include "daemon/admin/admin_path_search.h"
#include "daemon/admin/control_private.h"
#include "nfs3/nlm/nlm_view.h"
#include "nfs4/nfs4_view.h"
#include "vfs/view.h"

#define STATE_PATH_MAX 4096u
#define STATE_NAME_MAX 256u
#define STATE_HANDLE_MAX 132u

struct state_filter {
	/* With by_handle the file's path is for the log only. */
	bool by_file, by_handle, by_export, by_client, by_id;
	uint8_t handle[STATE_HANDLE_MAX]; /* as the member handle of a row has it */
	uint32_t handle_len;
	uint32_t dev_major, dev_minor; /* of the file, with handle */
	char file[STATE_PATH_MAX], export[STATE_PATH_MAX];
	char client[STATE_NAME_MAX]; /* an address as the row shows it, or any form of an id */
	uint64_t clientid;	     /* the same of an NFSv4 client; 0: it is none */
	char id[STATE_NAME_MAX];
	/* The exports in force, by their ids, with a reference each. */
	struct vfs_export **exp;
	size_t n, room;
};

/* Location of a state: its export, NULL if that is gone, and its path. */
struct state_where {
	struct vfs_export *exp;
	struct vfs_view_path path;
};

/* False: the query is wrong, or there is no memory; r has the answer. state_filter_done() follows in each case. */
bool state_filter_init(struct state_filter *f, const struct vfs_exports *exports,
		       const struct admin_request *req, struct admin_reply *r);
void state_filter_done(struct state_filter *f);

/* True if the query names something. */
bool state_filter_is_set(const struct state_filter *f);
/* The export in force with that id; NULL: none. */
struct vfs_export *state_filter_export(const struct state_filter *f, uint32_t id);
/* Finds out where a file is; true if that is meant. */
bool state_filter_where(const struct state_filter *f, uint32_t export_id, const struct vfs_fh *fh,
			struct vfs_file *file, struct state_where *out);

/* Opens, locks and delegations as JSON; ringnfsctl(8) describes the members. */

/* Rows of those that the filter means; NULL: it is not meant, or there is no memory. */
json_t *state_row4(const struct state_filter *f, enum nfs4_view_kind kind,
		   const struct nfs4_view_state *st);
json_t *state_row3(const struct state_filter *f, const struct nlm_view_owner *o);
/* A path; one that is no UTF-8 has its other bytes as \xNN. */
json_t *state_path_text(const char *path);

/* A page of what clients hold, as a request asks for it. */

struct state_page {
	enum nfs4_view_kind kind; /* set before state_page_init(); all else is zeroed */
	struct state_filter filter;
	json_t *rows;
	bool all; /* nothing is left behind the page */
	uint64_t limit;
	/* The place to go on from: in the tables of NFSv4, then in those of NLM. */
	bool nlm;
	struct nfs4_view_cursor at4;
	struct nlm_view_cursor at3;
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
