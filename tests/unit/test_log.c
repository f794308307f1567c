/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages: their levels, limits for each client, and their form in the journal. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/logs.h"
#include "lib/log.h"

#define SECOND 1000000000ull
#define SPAN (RN_LOG_LIMIT_SECONDS * SECOND)

struct seen {
	unsigned plain, events;
	char text[64];
	const struct rn_log_event *event;
};

static void take(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	struct seen *s = ctx;

	(void)level;
	s->plain++;
	vsnprintf(s->text, sizeof(s->text), fmt, ap);
}

static void take_event(void *ctx, enum rn_level level, const struct rn_log_event *event,
		       const char *fmt, va_list ap)
{
	struct seen *s = ctx;

	(void)level;
	(void)fmt;
	(void)ap;
	s->events++;
	s->event = event;
}

Test(log, levels)
{
	struct seen s = { 0 };
	struct rn_logger log = { .level = RN_NOTICE, .write = take, .ctx = &s };
	const struct rn_log_event event = { .client = "::1" };

	rn_info(&log, "dropped");
	rn_log_event(&log, RN_INFO, &event, "dropped");
	cr_expect(s.plain == 0 && !rn_log_wants(&log, RN_INFO) && !rn_log_wants(NULL, RN_ERROR));
	rn_log_event(&log, RN_NOTICE, &event, "%d", 7);
	cr_expect_str_eq(s.text, "7", "a logger without fields has the text");
	log.level = RN_INFO;
	rn_info(&log, "not dropped");
	cr_expect_str_eq(s.text, "not dropped");
	log.level = RN_ERROR;
	rn_log_always(&log, RN_NOTICE, "always");
	cr_expect(s.plain == 3);
	log.write_event = take_event;
	rn_log_event(&log, RN_ERROR, &event, "7");
	cr_expect(s.plain == 3 && s.events == 1 && s.event == &event);
	rn_err(NULL, "nobody");
	rn_log_always(NULL, RN_ERROR, "nobody");
	rn_log_event(NULL, RN_ERROR, &event, "nobody");
}

static struct rn_log_hosts hosts;

/* Messages of one client that pass, of n at that time. */
static unsigned pass(uint32_t client, uint64_t now_ns, unsigned n, unsigned *left_out)
{
	struct rn_host key = { 0 };
	unsigned passed = 0;

	memcpy(key.bytes, &client, sizeof(client));
	while (n--)
		passed += rn_log_hosts_pass(&hosts, &key, now_ns, left_out);
	return passed;
}

Test(log, each_client_has_a_limit)
{
	unsigned left_out = 0;

	rn_log_hosts_init(&hosts);
	cr_expect_eq(pass(1, SPAN, 100, &left_out), RN_LOG_LIMIT);
	cr_expect_eq(pass(2, SPAN, 3, &left_out), 3, "others are not held up");
	cr_expect_eq(left_out, 0);
	cr_expect_eq(pass(1, 2 * SPAN, 1, &left_out), 1);
	cr_expect_eq(left_out, 90);
	cr_expect_eq(pass(1, 2 * SPAN, 1, &left_out), 1);
	cr_expect_eq(left_out, 0, "it was told");
	rn_log_hosts_fini(&hosts);
}

Test(log, many_clients_together_have_one, .timeout = 60)
{
	unsigned left_out = 0, passed = 0;

	rn_log_hosts_init(&hosts);
	for (uint32_t client = 1; client <= 100000; client++)
		passed += pass(client, SPAN, 1, &left_out);
	cr_expect_eq(passed, RN_LOG_ALL);
	cr_expect_eq(pass(7, 2 * SPAN, 1, &left_out), 1, "the next span is another");
	cr_expect(left_out >= 100000 - RN_LOG_ALL - 10 * RN_LOG_HOSTS && left_out < 100000, "%u",
		  left_out);
	rn_log_hosts_fini(&hosts);
}

Test(log, journal_fields)
{
	const struct journal_field fields[] = {
		{ "MESSAGE", "a b=c" }, { "CLIENT", NULL }, { "EXPORT", "x\ny" }, { "EMPTY", "" }
	};
	static const char want[] = "MESSAGE=a b=c\nEXPORT\n\3\0\0\0\0\0\0\0x\ny\nEMPTY=\n";
	uint8_t out[128];

	cr_assert_eq(journal_encode(out, sizeof(out), fields, 4), sizeof(want) - 1);
	cr_expect_eq(memcmp(out, want, sizeof(want) - 1), 0);
	for (size_t size = 0; size < sizeof(want) - 1; size++)
		cr_expect_eq(journal_encode(out, size, fields, 4), 0, "no room in %zu", size);
}

static const char *text_of(size_t size, const void *bytes, size_t len)
{
	static char out[64];

	memset(out, '#', sizeof(out));
	rn_log_text(out, size, bytes, len);
	return out;
}

Test(log, bytes_of_peers)
{
	cr_expect_str_eq(text_of(64, "", 0), "");
	cr_expect_str_eq(text_of(64, "a name", 6), "a name");
	cr_expect_str_eq(text_of(64, "a\0b\n\x1b[2J\x7f\xc2\x9b", 11),
			 "a\\x00b\\x0a\\x1b[2J\\x7f\\xc2\\x9b");
	cr_expect_str_eq(text_of(64, "\\\") has registered", 18), "\\x5c\\x22) has registered");
	/* Cut at each length: never within an escape, and never behind the end. */
	cr_expect_str_eq(text_of(8, "1234567", 7), "1234567");
	cr_expect_str_eq(text_of(8, "12345678", 8), "1234...");
	cr_expect_str_eq(text_of(8, "\1\2\3", 3), "\\x01...");
	cr_expect_str_eq(text_of(8, "12\2\3", 4), "12...");
	for (size_t size = 8; size < 40; size++) {
		const char *t = text_of(size, "1\2\3\4\5\6\a\b9", 9);

		cr_expect_lt(strlen(t), size);
		cr_expect_eq(t[size], '#');
	}
}
