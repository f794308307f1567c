/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables that differ from another one by one client. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/exports.h"

#define TEXT                                                                                       \
	"/dev -sync host1(rw) 10.0.0.0/8(ro) *.example.org(fsid=7)\n"                              \
	"/etc @lab(mp=/mnt) 192.0.2.1(mp,rw,refer=/x@y)\n"                                         \
	"/gone *(ro)\n"

static struct exp_table *parse_with(const char *text, unsigned errors)
{
	const struct exp_load_opts none = { .file = NULL };
	struct exp_table *table = NULL;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert(exp_table_parse("f", text, strlen(text), &none, &diags, &table) == 0);
	cr_assert_eq(diags.errors, errors);
	cfg_diags_free(&diags);
	return table;
}

static struct exp_table *parse(const char *text)
{
	return parse_with(text, 0);
}

/* "PATH#ID CLIENT(rw|ro)FILE:LINE ..." */
static char *show(const struct exp_table *t)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	for (unsigned i = 0; i < t->n_exports; i++) {
		const struct exp_export *e = &t->exports[i];

		fprintf(out, "%s", e->path);
		if (e->id < 1000)
			fprintf(out, "#%u", e->id);
		for (unsigned j = 0; j < e->n_clients; j++)
			fprintf(out, " %s(%s%s%s%s%s)%s:%u", e->clients[j].spec,
				e->clients[j].opts.flags & EXP_RW ? "rw" : "ro",
				e->clients[j].opts.mountpoint ? ",mp=" : "",
				e->clients[j].opts.mountpoint ? e->clients[j].opts.mountpoint : "",
				e->clients[j].opts.locations ? ",at=" : "",
				e->clients[j].opts.locations ? e->clients[j].opts.locations : "",
				e->clients[j].file ? e->clients[j].file : "", e->clients[j].line);
		fprintf(out, "; ");
	}
	fclose(out);
	return text;
}

static struct exp_load_opts checked(void)
{
	return (struct exp_load_opts){ .check_paths = true };
}

struct result {
	int rc;
	char *table, *said; /* "" without */
};

static struct result change(const char *text, bool add, const struct exp_change *what)
{
	const struct exp_load_opts opts = checked();
	struct exp_table *old = parse(text), *now = NULL;
	struct result r;
	struct cfg_diags diags;
	size_t len;

	cfg_diags_init(&diags);
	r.rc = add ? exp_table_add(old, what, &opts, &diags, &now)
		   : exp_table_remove(old, what, &diags, &now);
	cr_expect_eq(!now, r.rc != 0);
	exp_table_unref(old); /* the new one must not need it */
	r.table = now ? show(now) : strdup("");
	exp_table_unref(now);
	FILE *out = open_memstream(&r.said, &len);

	cfg_diags_print(&diags, out);
	fclose(out);
	cr_expect_eq(r.rc == -EINVAL, diags.errors > 0, "%s", r.said);
	cfg_diags_free(&diags);
	return r;
}

static void expect(bool add, struct exp_change what, const char *table, const char *said)
{
	struct result r = change(TEXT, add, &what);

	cr_expect_str_eq(r.table, table, "%s: %s", r.table, r.said);
	cr_expect(strstr(r.said, said), "%s", r.said);
	free(r.table);
	free(r.said);
}

#define A "/dev#7 host1(rw)f:1 10.0.0.0/8(ro)f:1 *.example.org(ro)f:1"
#define B "; /etc @lab(ro,mp=/mnt)f:2 192.0.2.1(rw,mp=/etc,at=/x@y)f:2"
#define GONE "; /gone *(ro)f:3; "

Test(exports_change, add)
{
	expect(true, (struct exp_change){ "host2", "/dev/.", "rw" }, A " host2(rw):0" B GONE, "");
	expect(true, (struct exp_change){ "HOST1", "/dev", "" },
	       "/dev#7 host1(ro):0 10.0.0.0/8(ro)f:1 *.example.org(ro)f:1" B GONE,
	       "HOST1:/dev: note: f line 1 names it, too");
	expect(true, (struct exp_change){ "*", "/", "rw,fsid=0" }, "/#0 *(rw):0; " A B GONE, "");
	expect(true, (struct exp_change){ "host2", "/dev", "fsid=8" }, A " host2(ro):0" B GONE,
	       "the first counts");
	expect(true, (struct exp_change){ "host2", "/tmp", "fsid=7" },
	       A B GONE "/tmp host2(ro):0; ", "it does not count for /tmp");
}

Test(exports_change, add_refused)
{
	expect(true, (struct exp_change){ "host2", "/none/there", "rw" }, "",
	       "/none/there: No such file or directory");
	expect(true, (struct exp_change){ "host2", "relative", "rw" }, "", "absolute path");
	expect(true, (struct exp_change){ "host2", "/etc", "fsid=8" }, "", "leave it out");
	expect(true, (struct exp_change){ "host2", "/tmp", "rv" }, "", "rv");
	expect(true, (struct exp_change){ "", "/tmp", "rw" }, "", "no client is named");
}

/* Paths in error stay refused while others change, and are not mended by hand. */
Test(exports_change, paths_in_error)
{
	static const char text[] = "/dev host1(rw)\n/etc host1(rv)\n/tmp/none host1(rw)\n";
	const struct exp_load_opts opts = checked();
	const struct exp_change good = { "host2", "/dev", "rw" }, bad = { "host2", "/etc", "rw" };
	struct exp_table *old = parse_with(text, 1), *now = NULL;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert_eq(old->n_exports, 2, "paths are looked at for changes alone");
	cr_assert_eq(old->n_refused, 1);
	cr_expect_eq(exp_table_add(old, &bad, &opts, &diags, &now), -EINVAL);
	cr_expect_null(now);
	cr_expect_eq(diags.errors, 1);
	cr_expect(strstr(diags.items[0].text, "/etc is in error in f line 2"), "%s",
		  diags.items[0].text);
	cr_expect_eq(exp_table_remove(old, &bad, &diags, &now), -EINVAL);
	cr_assert_eq(exp_table_add(old, &good, &opts, &diags, &now), 0);
	exp_table_unref(old);
	cr_assert_eq(now->n_refused, 1);
	cr_expect_str_eq(now->refused[0].path, "/etc");
	cr_expect_str_eq(now->refused[0].file, "f");
	cr_expect_eq(now->refused[0].line, 2);
	exp_table_unref(now);
	cfg_diags_free(&diags);
}

/* Nothing that a person writes becomes another line, client or option. */
Test(exports_change, add_odd)
{
	static const char *const odd[] = { "a b", "a\nb", "a(rw)", "\"a", "a#b",
					   "a\\", "a)",	  "\x01",  "a,b" };

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		expect(true, (struct exp_change){ odd[i], "/tmp", NULL }, "", ":/tmp");
		expect(true, (struct exp_change){ "host2", "/tmp", odd[i] }, "", "host2:/tmp");
	}
}

Test(exports_change, add_odd_path)
{
	char folder[] = "/tmp/change-XXXXXX", path[64], want[256];

	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/a b(c)#\"", folder);
	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(want, sizeof(want), A B GONE "%s host2(ro):0; ", path);
	expect(true, (struct exp_change){ "host2", path, NULL }, want, "");
	rmdir(path);
	rmdir(folder);
}

Test(exports_change, remove)
{
	expect(false, (struct exp_change){ "10.0.0.0/8", "/dev/", "" },
	       "/dev#7 host1(rw)f:1 *.example.org(ro)f:1" B GONE, "note: f line 1 names it");
	/* The others keep the identity that it has given. */
	expect(false, (struct exp_change){ "*.example.org", "/dev", "" },
	       "/dev#7 host1(rw)f:1 10.0.0.0/8(ro)f:1" B GONE, "");
	expect(false, (struct exp_change){ "*", "/gone", "" }, A B "; ", "");
	expect(false, (struct exp_change){ "host9", "/dev", "" }, "",
	       "/dev is exported to host1, 10.0.0.0/8, *.example.org, and not to host9");
	expect(false, (struct exp_change){ "host1", "/c", "" }, "", "/c is not exported");
}

Test(exports_change, twice)
{
	const struct exp_load_opts opts = checked();
	const struct exp_change line = { "host2", "/tmp", "rw" }, other = { "host2", "/tmp", "ro" };
	struct exp_table *first = parse("/x *\n"), *second, *third, *last;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert_eq(exp_table_add(first, &line, &opts, &diags, &second), 0);
	cr_assert_eq(exp_table_add(second, &other, &opts, &diags, &third), 0);
	cr_expect_eq(diags.n, 1);
	cr_expect_str_eq(diags.items[0].text, "it replaces an earlier temporary one");
	cr_assert_eq(exp_table_remove(third, &other, &diags, &last), 0);
	char *text = show(last);

	cr_expect_str_eq(text, "/x *(ro)f:1; ");
	free(text);
	cfg_diags_free(&diags);
	exp_table_unref(first);
	exp_table_unref(second);
	exp_table_unref(third);
	exp_table_unref(last);
}

/* Words that would be default options of a line. */
Test(exports_change, add_dash)
{
	expect(true, (struct exp_change){ "-rw", "/tmp", NULL }, A B GONE "/tmp -rw(ro):0; ", "");
}
