/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/page.h"

#include <string.h>

#include "daemon/admin/page_text.h"

void page_show(void *ctx, const struct admin_request *req, struct admin_reply *r)
{
	(void)ctx;
	(void)req;
	r->status = 200;
	r->type = "text/html; charset=utf-8";
	r->policy = page_policy;
	r->body = strndup((const char *)page_text, page_text_len);
}
