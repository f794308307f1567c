/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a running case: verdict, memory, connections. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform.h"
#include "tools/conform/conform_wire.h"
#include "tools/conform/run.h"

struct cf_memory {
	struct cf_memory *next;
	max_align_t data[];
};

void cf_test_begin(struct cf_test *t, struct cf_run *run, const struct cf_case *c, unsigned number)
{
	*t = (struct cf_test){
		.run = run,
		.c = c,
		.number = number,
		.arg = c ? c->arg : 0,
		.started = cf_now_ms(),
		.deadline = cf_now_ms() + run->timeout_ms,
	};
}

bool cf_fail(struct cf_test *t, const char *expected, const char *seen, ...)
{
	if (t->verdict != CF_PASS)
		return false;
	va_list ap;
	va_start(ap, seen);
	vsnprintf(t->seen, sizeof(t->seen), seen, ap);
	va_end(ap);
	snprintf(t->expected, sizeof(t->expected), "%s", expected);
	t->verdict = CF_FAIL;
	return false;
}

bool cf_skip(struct cf_test *t, const char *reason, ...)
{
	if (t->verdict != CF_PASS)
		return false;
	va_list ap;
	va_start(ap, reason);
	vsnprintf(t->seen, sizeof(t->seen), reason, ap);
	va_end(ap);
	t->verdict = CF_SKIP;
	return false;
}

void cf_seen_words(struct cf_test *t, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t at = strlen(t->seen);

	for (size_t i = 0; i + 4 <= len && i < 160 && at + 16 < sizeof(t->seen); i += 4)
		at += snprintf(t->seen + at, sizeof(t->seen) - at, "%s%08x", i ? " " : "; words ",
			       cf_word(p + i));
}

void *cf_alloc_raw(struct cf_test *t, size_t size)
{
	struct cf_memory *m = malloc(sizeof(*m) + size);

	if (!m) {
		fprintf(stderr, "rpcrdma-conform: out of memory\n");
		exit(3);
	}
	m->next = t->memory;
	t->memory = m;
	return m->data;
}

void *cf_alloc(struct cf_test *t, size_t size)
{
	return memset(cf_alloc_raw(t, size), 0, size);
}

struct cf_memory *cf_mark(const struct cf_test *t)
{
	return t->memory;
}

void cf_release(struct cf_test *t, struct cf_memory *mark)
{
	while (t->memory && t->memory != mark) {
		struct cf_memory *m = t->memory;
		t->memory = m->next;
		free(m);
	}
}

struct cf_conn_options cf_default_options(const struct cf_run *run)
{
	return (struct cf_conn_options){ .inline_size = run->inline_size };
}

static struct cf_conn **cf_test_free_slot(struct cf_test *t)
{
	for (size_t i = 0; i < rn_array_size(t->conns); i++)
		if (!t->conns[i])
			return &t->conns[i];
	return NULL;
}

struct cf_conn *cf_open(struct cf_test *t, const struct cf_conn_options *o)
{
	struct cf_conn_options usual = cf_default_options(t->run);
	struct cf_conn **slot = cf_test_free_slot(t), *c = calloc(1, sizeof(*c));

	if (!slot || !c)
		abort();
	int rc = cf_conn_open(c, t->run->host, t->run->port, o ? o : &usual, t->deadline);
	if (rc) {
		cf_fail(t, "the server accepts the connection", "%s: %s", strerror(-rc),
			c->why[0] ? c->why : "no answer");
		free(c);
		return NULL;
	}
	*slot = c;
	t->conn = c;
	return c;
}

void cf_close(struct cf_test *t, struct cf_conn *c, bool polite)
{
	for (size_t i = 0; i < rn_array_size(t->conns); i++) {
		if (t->conns[i] != c || !c)
			continue;
		cf_conn_close(c, polite);
		free(c);
		t->conns[i] = NULL;
	}
	if (t->conn == c)
		t->conn = NULL;
}

bool cf_reopen(struct cf_test *t)
{
	struct cf_conn_options o = t->conn ? t->conn->o : cf_default_options(t->run);

	cf_close(t, t->conn, true);
	return cf_open(t, &o) != NULL;
}

uint32_t cf_xid(struct cf_test *t)
{
	return ++t->run->next_xid;
}

void cf_test_end(struct cf_test *t)
{
	for (size_t i = 0; i < rn_array_size(t->conns); i++)
		if (t->conns[i])
			cf_close(t, t->conns[i], true);
	cf_release(t, NULL);
	free(t->out);
	t->out = NULL;
}
