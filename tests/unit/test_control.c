/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the control socket and of ringnfsctl(8) that need no server. tests/net/control.py has the rest. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "admin/peer.h"
#include "admin/route.h"
#include "ctl/http.h"
#include "ctl/print.h"

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
