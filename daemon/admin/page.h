/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GET /: a page for browsers, which shows what /metrics tells. Its sources are in page/, joined to one document when
 * the daemon is built. It needs nothing from elsewhere, and its policy lets the browser run its own script alone.
 */
#ifndef RN_DAEMON_ADMIN_PAGE_H
#define RN_DAEMON_ADMIN_PAGE_H

#include "admin/admin.h"

/* A handler, which needs no context. */
void page_show(void *ctx, const struct admin_request *req, struct admin_reply *r);

#endif
