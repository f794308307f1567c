/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /metrics: a text that is made anew when it is older than a fifth of a second, so that many who ask cost as much
 * as one. Each server of HTTP has a page of its own, which its threads share. */
#ifndef RN_DAEMON_ADMIN_METRICS_PAGE_H
#define RN_DAEMON_ADMIN_METRICS_PAGE_H

#include <pthread.h>

#include "admin/admin.h"
#include "daemon/metrics/collect.h"

struct metrics_page {
	struct metrics_sources from;
	pthread_mutex_t lock; /* guards kept, while a text is made, too */
	struct {
		struct admin_text *text; /* NULL: none was made yet */
		uint64_t made_ns;
	} kept[METRICS_FORMATS];
};

void metrics_page_init(struct metrics_page *p); /* from is to be set */
/* An admin_handler's run; ctx is a struct metrics_page. */
void metrics_page_show(void *ctx, const struct admin_request *req, struct admin_reply *r);
/* After the end of its server. */
void metrics_page_fini(struct metrics_page *p);

#endif
