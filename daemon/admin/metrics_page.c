/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/metrics_page.h"

#include "lib/clock.h"

#define FRESH_NS (RN_NS_PER_SECOND / 5)

static struct admin_text *metrics_page_make(const struct metrics_page *p,
					    enum metrics_format format)
{
	size_t len;
	char *text = metrics_collect(&p->from, format, &len);

	return text ? admin_text_new(text, len) : NULL;
}

void metrics_page_init(struct metrics_page *p)
{
	*p = (struct metrics_page){ .kept[0].text = NULL };
	pthread_mutex_init(&p->lock, NULL);
}

void metrics_page_show(void *ctx, const struct admin_request *req, struct admin_reply *r)
{
	struct metrics_page *p = ctx;
	const enum metrics_format format = metrics_accepted(req->accept);
	const uint64_t now = rn_now_ns();

	pthread_mutex_lock(&p->lock);
	if (!p->kept[format].text || now - p->kept[format].made_ns > FRESH_NS) {
		admin_text_put(p->kept[format].text);
		p->kept[format].text = metrics_page_make(p, format);
		p->kept[format].made_ns = now;
	}
	if (p->kept[format].text)
		admin_reply_text(r, metrics_content_type(format), p->kept[format].text);
	pthread_mutex_unlock(&p->lock);
}

void metrics_page_fini(struct metrics_page *p)
{
	for (unsigned i = 0; i < METRICS_FORMATS; i++)
		admin_text_put(p->kept[i].text);
	pthread_mutex_destroy(&p->lock);
}
