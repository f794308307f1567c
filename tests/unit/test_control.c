/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the control socket and of ringnfsctl(8) that need no server. tests/net/control.py has the rest. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin/peer.h"
#include "admin/admin_query.h"
#include "admin/route.h"
#include "ctl/http.h"
#include "ctl/ctl_options.h"
#include "ctl/print.h"
#include "ctl/ctl_table.h"
#include "ctl/uri.h"

static const struct admin_handler handlers[] = {
	{ .method = "GET", .path = "/v1/a" },
	{ .method = "POST", .path = "/v1/a" },
	{ .method = "GET", .path = "/v1/b" },
};

static const struct admin_handler *route(const char *method, const char *path, char *allow)
{
	return admin_route(handlers, sizeof(handlers) / sizeof(handlers[0]), method, path, allow);
}

Test(control, routes)
{
	char allow[ADMIN_ALLOW_MAX];

	cr_expect_eq(route("GET", "/v1/a", allow), &handlers[0]);
	cr_expect_eq(route("POST", "/v1/a", allow), &handlers[1]);
	cr_expect_eq(route("GET", "/v1/b", allow), &handlers[2]);
	cr_expect_null(route("PUT", "/v1/a", allow));
	cr_expect_str_eq(allow, "GET, POST");
	cr_expect_null(route("POST", "/v1/b", allow));
	cr_expect_str_eq(allow, "GET");
	cr_expect_null(route("GET", "/v1/b/", allow));
	cr_expect_str_eq(allow, "");
	cr_expect_null(route("GET", "", allow));
}

Test(control, rights)
{
	const struct ucred root = { .uid = 0, .gid = 5 }, own = { .uid = 7, .gid = 5 };
	const struct ucred user = { .uid = 8, .gid = 5 }, reader = { .uid = 8, .gid = 9 };
	const gid_t groups[] = { 1, 9, 0 };

	cr_expect_eq(admin_right_of(&root, NULL, 0, 7, ADMIN_NO_GROUP), ADMIN_CHANGE);
	cr_expect_eq(admin_right_of(&own, NULL, 0, 7, ADMIN_NO_GROUP), ADMIN_CHANGE);
	cr_expect_eq(admin_right_of(&user, groups, 3, 7, 9), ADMIN_READ);
	cr_expect_eq(admin_right_of(&user, groups, 1, 7, 9), ADMIN_NOTHING);
	cr_expect_eq(admin_right_of(&reader, NULL, 0, 7, 9), ADMIN_READ);
	cr_expect_eq(admin_right_of(&reader, groups, 3, 7, ADMIN_NO_GROUP), ADMIN_NOTHING);
}

static int parse(const char *text, struct http_answer *a)
{
	static char copy[256];

	strcpy(copy, text);
	*a = (struct http_answer){ .status = 0 };
	return http_parse(copy, strlen(copy), a);
}

Test(control, answers)
{
	struct http_answer a;

	cr_assert_eq(parse("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", &a), 0);
	cr_expect_eq(a.status, 200);
	cr_expect_eq(a.body_len, 2);
	cr_expect_arr_eq(a.body, "{}", 2);
	cr_assert_eq(parse("HTTP/1.0 403 Forbidden\r\nx: y\r\ncontent-length:0\r\n\r\n", &a), 0);
	cr_expect_eq(a.status, 403);
}

Test(control, answers_that_are_none)
{
	static const char *const bad[] = {
		"",
		"HTTP/1.1 200 OK\r\n",
		"SSH-2.0-OpenSSH\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\n\r\nContent-Length: 2\r\n{}",
	};
	struct http_answer a;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(parse(bad[i], &a), -EPROTO, "%s", bad[i]);
}

Test(control, sizes_and_ages)
{
	char text[PRINT_MAX];

	cr_expect_str_eq(print_size(0, text), "0 B");
	cr_expect_str_eq(print_size(1023, text), "1023 B");
	cr_expect_str_eq(print_size(1024, text), "1.0 KiB");
	cr_expect_str_eq(print_size(1536, text), "1.5 KiB");
	cr_expect_str_eq(print_size(UINT64_C(256) << 20, text), "256.0 MiB");
	cr_expect_str_eq(print_size(UINT64_MAX, text), "15.9 EiB");
	cr_expect_str_eq(print_age(59, text), "59 s");
	cr_expect_str_eq(print_age(65, text), "1 min 5 s");
	cr_expect_str_eq(print_age(7200, text), "2 h 0 min");
	cr_expect_str_eq(print_age(86400 * 3 + 3600 * 4, text), "3 d 4 h");
}

static int text_of(const char *query, const char *name, char value[16])
{
	const struct admin_request req = { .query = query };

	return admin_query_text(&req, name, value, 16);
}

Test(control, text_in_a_query)
{
	char value[16];

	cr_assert_eq(text_of("a=1&path=%2fsrv+x%41", "path", value), 0);
	cr_expect_str_eq(value, "/srv xA");
	cr_assert_eq(text_of("path", "path", value), 0);
	cr_expect_str_eq(value, "");
	cr_assert_eq(text_of("a=1&a=2", "a", value), 0);
	cr_expect_str_eq(value, "1");
	cr_assert_eq(text_of("a==&&b=", "a", value), 0);
	cr_expect_str_eq(value, "=");
	cr_expect_eq(text_of("path2=x&xpath=y", "path", value), -ENOENT);
	cr_expect_eq(text_of(NULL, "path", value), -ENOENT);
	cr_expect_eq(text_of("a=012345678901234", "a", value), 0);
	cr_expect_eq(text_of("a=0123456789012345", "a", value), -EINVAL);
	cr_expect_eq(text_of("a=b%00c", "a", value), -EINVAL);
}

static int number_of(const char *query, uint64_t max, uint64_t *value)
{
	const struct admin_request req = { .query = query };

	return admin_query_number(&req, "n", max, value);
}

Test(control, numbers_in_a_query)
{
	uint64_t n = 0;

	cr_expect(number_of("n=17", 17, &n) == 0 && n == 17);
	cr_expect(number_of("n=0xff", UINT64_MAX, &n) == 0 && n == 255);
	cr_expect(number_of("n=18446744073709551615", UINT64_MAX, &n) == 0 && n == UINT64_MAX);
	cr_expect(number_of("n=010", 100, &n) == 0 && n == 10, "a leading zero is no octal");
	n = 5;
	static const char *const bad[] = { "n=",   "n=18", "n=-1", "n=+1",
					   "n= 1", "n=1x", "n=0x", "n=18446744073709551616" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(number_of(bad[i], 17, &n), -EINVAL, "%s", bad[i]);
	cr_expect_eq(number_of("m=1", 17, &n), -ENOENT);
	cr_expect_eq(n, 5);
}

Test(control, text_for_a_terminal)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
		  "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "a\x1b[2Jb\n", "a\\x1b[2Jb\\x0a" },
		{ "\xc2\x9b\x7f", "\\xc2\\x9b\\x7f" },
		{ "\xc0\xaf\xed\xa0\x80\xe2\x82", "\\xc0\\xaf\\xed\\xa0\\x80\\xe2\\x82" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *safe = table_safe_text(cases[i].in);

		cr_expect_str_eq(safe, cases[i].out);
		free(safe);
	}
}

Test(control, tables)
{
	static const struct table_column columns[] = { { "NAME", false },
						       { "SIZE", true },
						       { "AT", false } };
	struct table *t = table_new(columns, 3);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	cr_assert_eq(table_print(t, f), 0);
	fflush(f);
	cr_expect_str_eq(text, "", "no rows, no titles");
	table_cell(t, "\xc3\xa4rger");
	table_cellf(t, "%d", 5);
	table_cell(t, NULL);
	table_cell(t, "a");
	table_cellf(t, "%d", 12345);
	table_cell(t, "x\ny");
	cr_expect_eq(table_rows(t), 2);
	cr_assert_eq(table_print(t, f), 0);
	fclose(f);
	cr_expect_str_eq(text, "NAME    SIZE  AT\n"
			       "\xc3\xa4rger      5  -\n"
			       "a      12345  x\\x0ay\n");
	free(text);
	table_free(t);
	cr_expect_null(table_new(columns, TABLE_COLUMNS_MAX + 1));
}

Test(control, uris)
{
	char *uri = uri_add(uri_add(uri_new("/v1/opens"), "file", "/srv/a b&c%"), "client", "1");

	cr_assert_not_null(uri);
	cr_expect_str_eq(uri, "/v1/opens?file=%2Fsrv%2Fa%20b%26c%25&client=1");
	free(uri);
	cr_expect_null(uri_add(NULL, "a", "b"));
}

/* Parses `opens` and three words; the number of words that are left. */
static int options(const char *a, const char *b, const char *c, const char **file, bool *yes)
{
	const struct ctl_option all[] = { { "file", file, NULL }, { "yes", NULL, yes } };
	char opens[] = "opens";
	char *argv[] = { opens, (char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)c };

	*file = NULL;
	*yes = false;
	return ctl_options(all, 2, c ? 4 : b ? 3 : 2, argv);
}

Test(control, options)
{
	const char *file;
	bool yes;

	cr_expect_eq(options("--file", "/a", "--yes", &file, &yes), 1);
	cr_expect_str_eq(file, "/a");
	cr_expect(yes);
	cr_expect_eq(options("--file=/a=b", "word", "--", &file, &yes), 2);
	cr_expect_str_eq(file, "/a=b");
	cr_expect_not(yes);
	cr_expect_eq(options("--", "--yes", NULL, &file, &yes), 2, "no option behind --");
	cr_expect_not(yes);
	cr_expect_eq(options("--file", "--yes", NULL, &file, &yes), 1, "a value may be anything");
	cr_expect_eq(options("word", "--file", NULL, &file, &yes), -1, "no value");
	cr_expect_eq(options("--yes=1", NULL, NULL, &file, &yes), -1);
	cr_expect_eq(options("--yes", "--yes", NULL, &file, &yes), -1);
	cr_expect_eq(options("--file=", "--file=", NULL, &file, &yes), -1);
	cr_expect_eq(options("--fil", "x", NULL, &file, &yes), -1);
	cr_expect_eq(options("--files", "x", NULL, &file, &yes), -1);
}
