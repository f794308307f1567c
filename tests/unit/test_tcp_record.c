/* SPDX-License-Identifier: BSD-2-Clause */
/* Record marking: the parser's results for streams, whole, cut anywhere, and over the limits. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/tcp_record.h"

#define MAX 1000u

/* Result for a stream: the data of each record, with '|' behind each, then the final state. */
struct outcome {
	char text[4096];
	size_t len;
	enum tcp_record_state state;
};

static void run(struct tcp_record *r, const uint8_t *p, size_t n, struct outcome *o)
{
	for (;;) {
		o->state = tcp_record_feed(r, &p, &n);
		if (o->state == TCP_RECORD_END) {
			o->text[o->len++] = '|';
			tcp_record_start(r, MAX);
		} else if (o->state == TCP_RECORD_DATA && n) {
			size_t take = n < r->frag_left ? n : r->frag_left;
			memcpy(o->text + o->len, p, take);
			o->len += take;
			tcp_record_took(r, (uint32_t)take);
			p += take;
			n -= take;
		} else {
			return;
		}
	}
}

#define S(text) (const uint8_t *)(text), sizeof(text) - 1

struct row {
	const uint8_t *in;
	size_t n;
	const char *text;
	enum tcp_record_state state;
};

static const struct row rows[] = {
	{ S(""), "", TCP_RECORD_MARK },
	{ S("\x80\0\0"), "", TCP_RECORD_MARK },
	{ S("\x80\0\0\0"), "|", TCP_RECORD_MARK },
	{ S("\x80\0\0\3abc"), "abc|", TCP_RECORD_MARK },
	{ S("\x80\0\0\3ab"), "ab", TCP_RECORD_DATA },
	{ S("\0\0\0\3abc"), "abc", TCP_RECORD_MARK },
	{ S("\0\0\0\2ab\x80\0\0\1c"), "abc|", TCP_RECORD_MARK },
	{ S("\0\0\0\2ab\x80\0\0\0"), "ab|", TCP_RECORD_MARK },
	{ S("\0\0\0\0\0\0\0\0\x80\0\0\1c"), "c|", TCP_RECORD_MARK },
	{ S("\x80\0\0\1a\x80\0\0\1b\x80\0\0\1"), "a|b|", TCP_RECORD_DATA },
	{ S("\x80\0\3\xe8"), "", TCP_RECORD_DATA },
	{ S("\x80\0\3\xe9"), "", TCP_RECORD_TOO_LONG },
	{ S("\xff\xff\xff\xff"), "", TCP_RECORD_TOO_LONG },
	{ S("\x7f\xff\xff\xff"), "", TCP_RECORD_TOO_LONG },
	{ S("\0\0\0\1a\x80\0\3\xe7"), "a", TCP_RECORD_DATA },
	{ S("\0\0\0\1a\x80\0\3\xe8"), "a", TCP_RECORD_TOO_LONG },
	{ S("\0\0\0\1a\x7f\xff\xff\xff"), "a", TCP_RECORD_TOO_LONG },
	{ S("GET / HTTP/1.1\r\n"), "", TCP_RECORD_TOO_LONG },
};

Test(tcp_record, table)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tcp_record r;
		struct outcome o = { 0 };

		tcp_record_start(&r, MAX);
		run(&r, rows[i].in, rows[i].n, &o);
		cr_expect_eq(o.state, rows[i].state, "row %zu: state %d", i, o.state);
		cr_expect_str_eq(o.text, rows[i].text, "row %zu", i);
	}
}

Test(tcp_record, any_cut_gives_the_same)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t cut = 0; cut <= rows[i].n; cut++) {
			struct tcp_record r;
			struct outcome o = { 0 };

			tcp_record_start(&r, MAX);
			run(&r, rows[i].in, cut, &o);
			if (o.state != TCP_RECORD_TOO_LONG)
				run(&r, rows[i].in + cut, rows[i].n - cut, &o);
			cr_expect_eq(o.state, rows[i].state, "row %zu cut %zu", i, cut);
			cr_expect_str_eq(o.text, rows[i].text, "row %zu cut %zu", i, cut);
		}
	}
}

Test(tcp_record, empty_fragments_are_counted_for_each_record)
{
	uint8_t in[4 * TCP_RECORD_EMPTY_MAX + 4] = { 0 };
	struct tcp_record r;
	struct outcome o = { 0 };

	tcp_record_start(&r, MAX);
	cr_expect(tcp_record_idle(&r));
	run(&r, in, 4 * TCP_RECORD_EMPTY_MAX, &o);
	cr_expect_eq(o.state, TCP_RECORD_MARK);
	cr_expect(!tcp_record_idle(&r));
	run(&r, S("\x80\0\0\1a"), &o);
	cr_expect_str_eq(o.text, "a|");
	cr_expect(tcp_record_idle(&r));
	run(&r, in, sizeof(in), &o);
	cr_expect_eq(o.state, TCP_RECORD_TOO_EMPTY);
}

Test(tcp_record, one_byte_fragments_up_to_the_limit)
{
	struct tcp_record r;
	struct outcome o = { 0 };

	tcp_record_start(&r, MAX);
	for (unsigned i = 0; i < MAX; i++)
		run(&r, S("\0\0\0\1x"), &o);
	cr_expect_eq(o.len, MAX);
	cr_expect_eq(o.state, TCP_RECORD_MARK);
	run(&r, S("\0\0\0\1x"), &o);
	cr_expect_eq(o.state, TCP_RECORD_TOO_LONG);
}
