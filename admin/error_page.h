/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors that evhttp answers by itself (a request that it cannot read, or a header that is too long)
 * as JSON. libevent 2.1 has no way to ask for that: its HTML page is replaced in the output buffer
 * before anything is sent.
 */
#ifndef RN_ADMIN_ERROR_PAGE_H
#define RN_ADMIN_ERROR_PAGE_H

struct evbuffer;

/* Replaces the page if the buffer has one and nothing else. A body with < and > of its own never
 * looks like one: it is within JSON. Returns the page's status, or 0. */
int admin_error_page(struct evbuffer *out);

#endif
