/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, locks and delegations as JSON; ringnfsctl(8) describes the members. */
#ifndef RN_DAEMON_ADMIN_STATE_ROWS_H
#define RN_DAEMON_ADMIN_STATE_ROWS_H

#include <jansson.h>

#include "daemon/admin/state_filter.h"
#include "nfs3/nlm/nlm_view.h"
#include "nfs4/nfs4_view.h"

/* Rows of those that the filter means; NULL: it is not meant, or there is no memory. */
json_t *state_row4(const struct state_filter *f, enum nfs4_view_kind kind,
		   const struct nfs4_view_state *st);
json_t *state_row3(const struct state_filter *f, const struct nlm_view_owner *o);
/* A path; one that is no UTF-8 has its other bytes as \xNN. */
json_t *state_path_text(const char *path);

#endif
